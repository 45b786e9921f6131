"""Profiles and squared distances for kernels that are functions of a distance."""

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
    """Return a radial kernel with the same values: k(x, y) = h(d²) with its profile h.

    d² is the squared distance of :func:`squared_distances_of`; for shapes it is 1 - |u*v|², the
    squared full Procrustes distance.
    """
    if isinstance(kernel, Radial):
        return kernel
    if isinstance(kernel, ExtrinsicGaussian):
        return kernel.kernel_
    if isinstance(kernel, VeroneseWhitney):
        return Gaussian(kernel.sigma_ / np.sqrt(kernel._factor))
    raise TypeError(f"{type(kernel).__name__} is not a function of a distance.")


def squared_distances_of(
    kernel: Kernel, a: Prepared, b: Prepared, out: Array | None = None
) -> Array:
    """Return squared distances between points prepared by a kernel that has a profile."""
    if isinstance(kernel, VeroneseWhitney):
        return squared_sines(a, b, out)[0]
    return squared_distances(a, b, out)
