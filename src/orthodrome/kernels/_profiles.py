"""Profiles and squared distances of kernels that are functions of a distance."""

from __future__ import annotations

import numpy as np

from .._core.types import Array
from ._prepared import Prepared
from .base import Kernel
from .extrinsic import ExtrinsicGaussian
from .radial import Gaussian, Radial, squared_distances
from .shapes import VeroneseWhitney, squared_sines


def has_profile(kernel: Kernel) -> bool:
    """Return whether a kernel is a known function of a squared distance."""
    return isinstance(kernel, (Radial, ExtrinsicGaussian, VeroneseWhitney))


def profile_of(kernel: Kernel) -> Radial:
    """Return the radial kernel whose profile at the distances of `squares_of` is this kernel.

    For shapes the squared distance is 1 - |u*v|², the full Procrustes distance.
    """
    if isinstance(kernel, Radial):
        return kernel
    if isinstance(kernel, ExtrinsicGaussian):
        return kernel.kernel_
    if isinstance(kernel, VeroneseWhitney):
        return Gaussian(kernel.sigma_ / np.sqrt(2 * kernel._factor))
    raise TypeError(f"{type(kernel).__name__} is not a function of a distance.")


def squares_of(kernel: Kernel, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
    """Return squared distances between points prepared by such a kernel."""
    if isinstance(kernel, VeroneseWhitney):
        return squared_sines(a, b, out)[0]
    return squared_distances(a, b, out)
