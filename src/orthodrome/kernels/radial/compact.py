"""Radial kernels of compact support: spherical and circular."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..._core.types import Array
from .. import _loops
from .base import ScaledRadial, as_float


class _Compact(ScaledRadial):
    """Base class of kernels that are functions of t = min(d/σ, 1), with a cusp at 0."""

    cusp = True
    positive_definite = False

    def _argument(self, d2: ArrayLike) -> Array:
        return np.minimum(np.sqrt(as_float(d2)) / self._scale(), 1.0)


class Spherical(_Compact):
    r"""Spherical kernel of geostatistics: compact support, a cusp at 0.

    .. math:: k(x, y) = 1 - \tfrac32 t + \tfrac12 t^3, \quad t = \min(\|x - y\|/\sigma, 1)

    Positive definite for inputs of dimension 3 or less.

    Parameters
    ----------
    sigma : float, "mean" or "median", default="mean"
        The radius of the support; see :class:`Gaussian`.

    Examples
    --------
    >>> from orthodrome.kernels import Spherical
    >>> Spherical(sigma=2.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.3125],
           [0.3125, 1.    ]])
    """

    def profile(self, d2: ArrayLike) -> Array:
        """Evaluate 1 - 3t/2 + t³/2."""
        t = self._argument(d2)
        # the factored form is accurate at the edge of the support
        return 0.5 * (1 - t) ** 2 * (2 + t)

    def profile_derivative(self, d2: ArrayLike) -> Array:
        """Evaluate -3(1 - t²)/(4σd), -inf at 0."""
        t = self._argument(d2)
        with np.errstate(divide="ignore"):
            return -0.75 * (1 - t) * (1 + t) / (t * self._scale() ** 2)

    def one_minus(self, d2: ArrayLike) -> Array:
        """Evaluate 3t/2 - t³/2."""
        t = self._argument(d2)
        return t * (1.5 - 0.5 * t * t)

    def _is_definite(self, n_features: int) -> bool:
        return n_features <= 3

    def _apply_profile(self, block: Array) -> None:
        _loops.spherical(block, 1.0 / self._scale())


class Circular(_Compact):
    r"""Circular kernel of geostatistics: compact support, a cusp at 0.

    .. math::
        k(x, y) = \tfrac2\pi\left(\arccos t - t\sqrt{1 - t^2}\right),
        \quad t = \min(\|x - y\|/\sigma, 1)

    Positive definite for inputs of dimension 2 or less.

    Parameters
    ----------
    sigma : float, "mean" or "median", default="mean"
        The radius of the support; see :class:`Gaussian`.

    Examples
    --------
    >>> from orthodrome.kernels import Circular
    >>> Circular(sigma=2.0)([[0.0], [1.0]]).round(4)
    array([[1.   , 0.391],
           [0.391, 1.   ]])
    """

    def profile(self, d2: ArrayLike) -> Array:
        """Evaluate (2/π)(arccos t - t √(1 - t²))."""
        t = self._argument(d2)
        return (np.arccos(t) - t * np.sqrt((1 - t) * (1 + t))) * (2 / math.pi)

    def profile_derivative(self, d2: ArrayLike) -> Array:
        """Evaluate -(2/π) √(1 - t²)/(σd), -inf at 0."""
        t = self._argument(d2)
        with np.errstate(divide="ignore"):
            return np.sqrt((1 - t) * (1 + t)) * (-2 / (math.pi * self._scale() ** 2)) / t

    def one_minus(self, d2: ArrayLike) -> Array:
        """Evaluate (2/π)(arcsin t + t √(1 - t²))."""
        t = self._argument(d2)
        return (np.arcsin(t) + t * np.sqrt((1 - t) * (1 + t))) * (2 / math.pi)

    def _is_definite(self, n_features: int) -> bool:
        return n_features <= 2
