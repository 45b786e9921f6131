"""Radial kernels that are analytic in d²: Gaussian, rational quadratic, wave."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._core.checks import check_positive
from ..._core.types import Array, Floats
from .. import _loops
from ..base import resolve_gamma
from .base import Radial, ScaledRadial, as_float


class Gaussian(ScaledRadial):
    r"""Gaussian kernel.

    .. math:: k(x, y) = \exp\left(-\frac{\|x - y\|^2}{2\sigma^2}\right)

    Parameters
    ----------
    sigma : float, "mean" or "median", default="mean"
        The scale. ``"mean"``: σ² is the weighted mean of ‖x - y‖² over all N² ordered pairs.
        ``"median"``: σ is the median distance over pairs of different rows.

    Attributes
    ----------
    sigma_ : float
        The scale in use.

    Notes
    -----
    It is scikit-learn's ``rbf`` with ``gamma = 1 / (2 sigma**2)``.

    Examples
    --------
    >>> from orthodrome.kernels import Gaussian
    >>> Gaussian(sigma=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    def profile(self, d2: ArrayLike) -> Array:
        """Evaluate exp(-d²/2σ²)."""
        return np.exp(as_float(d2) * -self._rate())

    def profile_derivative(self, d2: ArrayLike) -> Array:
        """Evaluate -exp(-d²/2σ²)/2σ²."""
        return -self._rate() * self.profile(d2)

    def one_minus(self, d2: ArrayLike) -> Array:
        """Evaluate 1 - exp(-d²/2σ²)."""
        return -np.expm1(as_float(d2) * -self._rate())

    def _rate(self) -> float:
        return 0.5 / self._scale() ** 2

    def _apply_profile(self, block: Array) -> None:
        _loops.gaussian(block, self._rate())


class RBF(Gaussian):
    r"""The kernel that scikit-learn calls ``rbf``.

    .. math:: k(x, y) = \exp(-\gamma \|x - y\|^2)

    Parameters
    ----------
    gamma : float, optional
        The rate; None means 1 / n_features, as in scikit-learn.

    Examples
    --------
    >>> from orthodrome.kernels import RBF
    >>> RBF(gamma=0.5)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    def __init__(self, gamma: float | None = None) -> None:
        self.gamma = gamma

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        Radial._resolve(self, X, sample_weight)
        self.gamma_ = resolve_gamma(self, X)

    def _rate(self) -> float:
        if hasattr(self, "gamma_"):
            return float(self.gamma_)
        if self.gamma is None:
            raise ValueError("gamma=None of RBF means 1 / n_features: call fit(X) first.")
        return check_positive(self.gamma, "gamma", "RBF")

    def _fits_float32(self, largest: float) -> bool:
        rate = self._rate()
        return 1e-30 < rate < 1e30 and largest <= 1e30 / max(rate, 1.0)


class RationalQuadratic(ScaledRadial):
    r"""Rational quadratic kernel, a scale mixture of Gaussian kernels.

    .. math:: k(x, y) = \left(1 + \frac{\|x - y\|^2}{2\alpha\sigma^2}\right)^{-\alpha}

    Parameters
    ----------
    alpha : float, default=1.0
        Tail weight, positive; for α → ∞ the kernel tends to the Gaussian kernel.
    sigma : float, "mean" or "median", default="mean"
        The scale; see :class:`Gaussian`.

    Examples
    --------
    >>> from orthodrome.kernels import RationalQuadratic
    >>> RationalQuadratic(sigma=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6667],
           [0.6667, 1.    ]])
    """

    def __init__(self, alpha: float = 1.0, sigma: float | str = "mean") -> None:
        self.alpha = alpha
        self.sigma = sigma

    def profile(self, d2: ArrayLike) -> Array:
        """Evaluate (1 + d²/2ασ²)^-α."""
        return np.exp(-self._tail() * self._logarithms(d2))

    def profile_derivative(self, d2: ArrayLike) -> Array:
        """Evaluate -(1 + d²/2ασ²)^(-α-1)/2σ²."""
        powers = np.exp(-(self._tail() + 1) * self._logarithms(d2))
        return powers * (-0.5 / self._scale() ** 2)

    def one_minus(self, d2: ArrayLike) -> Array:
        """Evaluate 1 - (1 + d²/2ασ²)^-α."""
        return -np.expm1(-self._tail() * self._logarithms(d2))

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        self._tail()
        super()._resolve(X, sample_weight)

    def _tail(self) -> float:
        return check_positive(self.alpha, "alpha", "RationalQuadratic")

    def _logarithms(self, d2: ArrayLike) -> Array:
        """Return log(1 + d²/2ασ²)."""
        s, alpha, scale = as_float(d2), self._tail(), self._scale()
        ratios = s * (0.5 / scale**2) / alpha
        logarithms = np.asarray(np.log1p(ratios))
        far = ratios > _LARGE_RATIO
        if np.any(far):  # the ratio may be infinite, but its logarithm is finite
            logarithms[far] = np.log(s[far]) - (math.log(2 * alpha) + 2 * math.log(scale))
        return logarithms

    def _fits_float32(self, largest: float) -> bool:
        return super()._fits_float32(largest) and 1e-15 < self.alpha < 1e15


# In 1 + ratio, the 1 is negligible for larger ratios, in float64 and in float32.
_LARGE_RATIO = 1e18


class Wave(ScaledRadial):
    r"""Wave kernel (cardinal sine); it has negative values.

    .. math:: k(x, y) = \frac{\sin(d/\sigma)}{d/\sigma}, \quad d = \|x - y\|

    Positive definite for inputs of dimension 3 or less.

    Parameters
    ----------
    sigma : float, "mean" or "median", default="mean"
        The scale; see :class:`Gaussian`.

    Examples
    --------
    >>> from orthodrome.kernels import Wave
    >>> Wave(sigma=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.8415],
           [0.8415, 1.    ]])
    """

    positive_definite = False

    decreasing = False

    def profile(self, d2: ArrayLike) -> Array:
        """Evaluate sin(t)/t at t = d/σ."""
        return np.sinc(np.sqrt(as_float(d2)) / (math.pi * self._scale())).astype(
            as_float(d2).dtype, copy=False
        )

    def profile_derivative(self, d2: ArrayLike) -> Array:
        """Evaluate (cos t - sin(t)/t)/(2d²), -1/6σ² at 0."""
        s = as_float(d2)
        t = np.sqrt(s) / self._scale()
        safe = np.where(t > 0.3, t, 1.0)
        direct = (np.cos(safe) - np.sin(safe) / safe) / safe / (2 * safe)
        t2 = np.minimum(t, 0.3) ** 2
        # (cos t - sinc t)/(2t²) = Σ_n (-1)^(n+1) (n+1)/(2n+3)! t^(2n)
        series = -1 / 6 + t2 * (1 / 60 + t2 * (-1 / 1680 + t2 * (1 / 90720 - t2 / 7983360)))
        return np.where(t > 0.3, direct, series).astype(s.dtype) / self._scale() ** 2

    def one_minus(self, d2: ArrayLike) -> Array:
        """Evaluate 1 - sin(t)/t, from its series for small t."""
        s = as_float(d2)
        t = np.sqrt(s) / self._scale()
        t2 = np.minimum(t, 0.3) ** 2
        series = t2 * (
            1 / 6 + t2 * (-1 / 120 + t2 * (1 / 5040 + t2 * (-1 / 362880 + t2 / 39916800)))
        )
        return np.where(t > 0.3, 1 - self.profile(s), series).astype(s.dtype)

    def _is_definite(self, n_features: int) -> bool:
        return n_features <= 3
