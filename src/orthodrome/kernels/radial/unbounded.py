"""Radial kernels with zero diagonal, only conditionally positive definite: power and log."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._core.checks import check_positive
from ..._core.types import Array, Floats
from .base import Radial, as_float


class _Unbounded(Radial):
    """A radial kernel with zero diagonal that is only conditionally positive definite."""

    unit_norm = False
    positive_definite = False

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta

    @property
    def cusp(self) -> bool:  # type: ignore[override]  # depends on beta
        """Whether the profile has infinite slope in d² at 0, which holds for β < 2."""
        return self.beta < 2

    def _exponent(self) -> float:
        return check_positive(self.beta, "beta", type(self).__name__, maximum=2.0) / 2

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        self._exponent()
        super()._resolve(X, sample_weight)

    def _is_definite(self, _n_features: int) -> bool:
        return False


class Power(_Unbounded):
    r"""Power kernel; conditionally positive definite, zero on the diagonal, not on a sphere.

    .. math:: k(x, y) = -\|x - y\|^\beta

    Centred in feature space it is positive semidefinite, so kernel PCA can use it.

    Parameters
    ----------
    beta : float, default=1.0
        The exponent, in (0, 2].

    Examples
    --------
    >>> from orthodrome.kernels import Power
    >>> Power(beta=2.0)([[0.0], [3.0]])
    array([[-0., -9.],
           [-9., -0.]])
    """

    def profile(self, d2: ArrayLike) -> Array:
        """Evaluate -d^β."""
        return -(as_float(d2) ** self._exponent())

    def profile_derivative(self, d2: ArrayLike) -> Array:
        """Evaluate -(β/2) d^(β-2), -inf at 0 for β < 2."""
        exponent = self._exponent()
        with np.errstate(divide="ignore"):
            return -exponent * as_float(d2) ** (exponent - 1)

    def one_minus(self, d2: ArrayLike) -> Array:
        """Evaluate 1 + d^β."""
        return 1 - self.profile(d2)


class Log(_Unbounded):
    r"""Log kernel; conditionally positive definite, zero on the diagonal, not on a sphere.

    .. math:: k(x, y) = -\log(1 + \|x - y\|^\beta)

    Centred in feature space it is positive semidefinite, so kernel PCA can use it.

    Parameters
    ----------
    beta : float, default=1.0
        The exponent, in (0, 2].

    Examples
    --------
    >>> from orthodrome.kernels import Log
    >>> Log(beta=2.0)([[0.0], [1.0]]).round(4)
    array([[-0.    , -0.6931],
           [-0.6931, -0.    ]])
    """

    def profile(self, d2: ArrayLike) -> Array:
        """Evaluate -log(1 + d^β)."""
        return -np.log1p(as_float(d2) ** self._exponent())

    def profile_derivative(self, d2: ArrayLike) -> Array:
        """Evaluate -(β/2) d^(β-2)/(1 + d^β), -inf at 0 for β < 2."""
        exponent, s = self._exponent(), as_float(d2)
        with np.errstate(divide="ignore"):
            return -exponent * s ** (exponent - 1) / (1 + s**exponent)

    def one_minus(self, d2: ArrayLike) -> Array:
        """Evaluate 1 + log(1 + d^β)."""
        return 1 - self.profile(d2)
