"""Kernels of finite smoothness: exponential and Matérn."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.special
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyval

from .._core.checks import check_positive
from .._core.types import Array
from .radial import ScaledRadial


class Matern(ScaledRadial):
    r"""Matérn kernel of smoothness ν.

    .. math::
        k(x, y) = \frac{2^{1-\nu}}{\Gamma(\nu)} u^\nu K_\nu(u),
        \qquad u = \sqrt{2\nu}\, \|x - y\| / \sigma

    with closed forms for ν = 1/2, 3/2, 5/2; ν = ∞ is the Gaussian kernel.

    Parameters
    ----------
    nu : float, default=1.5
        Smoothness, positive; ``inf`` is allowed.
    sigma : float, "mean" or "median", default="mean"
        The scale; see :class:`Gaussian`.

    Examples
    --------
    >>> from orthodrome.kernels import Matern
    >>> Matern(nu=1.5, sigma=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.4834],
           [0.4834, 1.    ]])
    """

    def __init__(self, nu: float = 1.5, sigma: float | str = "mean") -> None:
        self.nu = nu
        self.sigma = sigma

    @property
    def cusp(self) -> bool:  # type: ignore[override]  # depends on nu
        """Whether the profile has infinite slope in d² at 0, which holds for ν <= 1."""
        return self.nu <= 1

    def profile(self, d2: Any) -> Array:
        """Evaluate the kernel at squared distances."""
        return _matern(*self._argument(d2))

    def profile_derivative(self, d2: Any) -> Array:
        """Evaluate the derivative in d², -inf at 0 for ν <= 1."""
        u, nu = self._argument(d2)
        variance = self._scale() ** 2
        if nu > 1:
            ratio = 1.0 if math.isinf(nu) else nu / (nu - 1)
            return -0.5 * ratio / variance * _matern(u, nu - 1)
        return np.where(u > 0, -nu / variance * _bessel_term(u, nu, nu - 1), -np.inf)

    def one_minus(self, d2: Any) -> Array:
        """Evaluate 1 - k with incomplete gamma functions or quadrature."""
        u, nu = self._argument(d2)
        if nu == 0.5:
            return -np.expm1(-u)
        if nu == 1.5:
            return scipy.special.gammainc(2.0, u)
        if nu == 2.5:
            u = np.minimum(u, _MAX_ARGUMENT)
            return scipy.special.gammainc(3.0, u) + u * u / 6 * np.exp(-u)
        if math.isinf(nu):
            return -np.expm1(-0.5 * u * u)
        near = max(1.0, math.sqrt(2 * nu))  # 1 - k may be small below this
        return np.where(u < near, _matern_integral(u, nu, near), 1.0 - _matern(u, nu))

    def _argument(self, d2: Any) -> tuple[Array, float]:
        nu = self.nu if self.nu < _GAUSSIAN_ORDER else math.inf
        return np.sqrt(d2) * self._rate(), nu

    def _rate(self) -> float:
        root = 1.0 if self.nu >= _GAUSSIAN_ORDER else math.sqrt(2 * self.nu)
        return root / self._scale()

    def _check_parameters(self) -> None:
        check_positive(self.nu, "nu", "Matern", infinite=True)
        if self.nu < _MIN_ORDER:
            raise ValueError(f"nu of Matern must be at least {_MIN_ORDER:g}; got {self.nu!r}.")

    def _apply_profile(self, block: Array, loops: Any) -> None:
        if loops is None or self.nu not in _POLYNOMIALS:
            super()._apply_profile(block, loops)
        else:
            loops.MATERN[self.nu](block, self._rate())


class Exponential(Matern):
    r"""Exponential kernel, the Matérn kernel with ν = 1/2; it has a cusp at 0.

    .. math:: k(x, y) = \exp(-\|x - y\| / \sigma)

    Parameters
    ----------
    sigma : float, "mean" or "median", default="mean"
        The scale; see :class:`Gaussian`.

    Examples
    --------
    >>> from orthodrome.kernels import Exponential
    >>> Exponential(sigma=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    nu = 0.5

    def __init__(self, sigma: float | str = "mean") -> None:
        self.sigma = sigma


def _matern(u: Array, nu: float) -> Array:
    """Return the kernel of order ν at u."""
    if math.isinf(nu):
        return np.exp(-0.5 * u * u)
    if nu in _POLYNOMIALS:
        # for larger u, an infinite polynomial times exp(-u) = 0 would be NaN
        u = np.minimum(u, _MAX_ARGUMENT)
        return polyval(u, _POLYNOMIALS[nu]) * np.exp(-u)
    return np.where(u > 0, _bessel_term(u, nu, nu), 1.0)


def _bessel_term(u: Array, nu: float, order: float, factor: Any = 1.0) -> Array:
    """Return 2^(1-ν)/Γ(ν) u^order K_order(u) times a factor, for the orders ν and ν - 1.

    Computing it from logarithms would lose digits.
    """
    if order > _LARGE_ORDER:
        logarithm = _log_matern(np.minimum(u, _MAX_RATIO * order), order)
        return np.exp(logarithm) * (factor if order == nu else 0.5 * factor / (nu - 1))
    u = np.minimum(u, _MAX_ARGUMENT)
    half, constant = u / 2, (2.0 if order == nu else 1.0) / math.gamma(nu)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        bessel = scipy.special.kve(order, u)
        decay = np.exp(-half)  # applied twice, since exp(-u) underflows earlier
        values = constant * (factor * half**order * decay) * (bessel * decay)
    if order > 0:  # use the first terms of the series if K overflows or u^order underflows
        limit = factor * (constant * math.gamma(order) / 2)
        correction = 1 - half * half / (order - 1) if order > 1 else 1.0
        values = np.where(bessel < _MAX_BESSEL, values, limit * correction)
    return values


# Closed forms: the factor of exp(-u), by order.
_POLYNOMIALS = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1.0, 1.0, 1 / 3)}
# Above this order K_ν overflows at distances where the kernel still differs from 1, but eight terms
# of Debye's expansion are accurate to rounding error.
_LARGE_ORDER = 40.0
_MIN_ORDER = 1e-300  # Γ overflows below about 1e-308
# Above this order ν - 1 equals ν in float64, and values differ from those of the Gaussian kernel by
# less than 0.3/ν, which is below rounding error.
_GAUSSIAN_ORDER = 2.0**53
# For large orders: above this multiple of the order the kernel is 0, and squares would overflow.
_MAX_RATIO = 1e8
# For other orders: above this argument the kernel is 0.
_MAX_ARGUMENT = 2e3
_MAX_BESSEL = 1e300


@lru_cache(maxsize=1)
def _debye_polynomials() -> list[Polynomial]:
    """Return u_0 … u_8 of Debye's expansion, from the recurrence DLMF 10.41.9."""
    p = Polynomial([0.0, 1.0])
    polynomials = [Polynomial([1.0])]
    for _ in range(8):
        u = polynomials[-1]
        polynomials.append(
            0.5 * p**2 * (1 - p**2) * u.deriv() + 0.125 * ((1 - 5 * p**2) * u).integ()
        )
    return polynomials


def _log_matern(u: Array, nu: float) -> Array:
    """Return log(2^(1-ν)/Γ(ν) u^ν K_ν(u)) for large ν, from Debye's uniform expansion of K_ν.

    It is computed relative to u = 0, where the value is 1, so that no large logarithms cancel.
    """
    z = u / nu
    w = np.hypot(1.0, z)
    excess = z * z / (1 + w)  # w - 1
    correction = np.log(_debye_sum(1 / w, nu) / _debye_sum(np.ones(()), nu))
    return nu * (np.log1p(excess / 2) - excess) - 0.5 * np.log(w) + correction


def _debye_sum(p: Array, nu: float) -> Array:
    """Return Σ_k (-1)^k u_k(p) / ν^k."""
    terms = (u(p) * (-1 / nu) ** k for k, u in enumerate(_debye_polynomials()))
    return np.sum(list(terms), axis=0)


def _matern_integral(u: Array, nu: float, near: float) -> Array:
    """Return 1 - k(u) = c ∫_0^u t^ν K_(ν-1)(t) dt for u < near with Gauss-Legendre quadrature.

    The integrand behaves like t^min(1, 2ν-1). Substituting t = u x^m, with m large enough, makes it
    smooth.
    """
    m = max(1.0, math.ceil(2.0 / nu))
    nodes, weights = np.polynomial.legendre.leggauss(64)
    x, weights = (nodes + 1) / 2, weights / 2
    small = np.where((u > 0) & (u < near), u, near / 2)
    t = small[..., None] * x**m
    integrand = _bessel_term(t, nu, nu - 1, factor=t)
    result = (integrand * (weights * m * x ** (m - 1))).sum(axis=-1) * small
    return np.where(u > 0, result, 0.0)
