"""Kernels that are functions of the Euclidean distance, k(x, y) = h(‖x - y‖²).

Every one gives its profile h, the derivative of h with respect to d² (pre-images need it) and
1 - h without cancellation (angles on the sphere need it).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
import scipy.special
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_positive
from . import _loops
from ._prepared import Prepared
from .bandwidth import mean_squared_distance, median_distance
from .base import Kernel

__all__ = [
    "RBF",
    "Circular",
    "Exponential",
    "Gaussian",
    "Log",
    "Matern",
    "Power",
    "Radial",
    "RationalQuadratic",
    "Spherical",
    "Wave",
]


class Radial(Kernel):
    """Base class of the kernels k(x, y) = h(‖x - y‖²).

    A subclass supplies ``profile``, ``profile_derivative`` and ``one_minus``, all of the squared
    distance, and the flag ``cusp``: whether h'(0) is infinite.
    """

    unit_norm = True
    cusp: bool = False

    # ---------------------------------------------------------------- the profile

    def profile(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate h at squared distances."""
        raise NotImplementedError

    def profile_derivative(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate the derivative of h with respect to the squared distance."""
        raise NotImplementedError

    def one_minus(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate 1 - h without cancellation as the distance goes to 0."""
        raise NotImplementedError

    # ---------------------------------------------------------------- blocks

    def prepare(self, X: Any) -> Prepared:
        """Move the origin to the mean of the data, for accurate distances, and take the norms."""
        if scipy.sparse.issparse(X):
            coordinates = X.tocsr()
            norms = np.asarray(coordinates.multiply(coordinates).sum(axis=1)).ravel()
        else:
            coordinates = np.subtract(X, self.origin_, order="C", dtype=X.dtype)
            norms = np.einsum("ij,ij->i", coordinates, coordinates)
        if not np.all(np.isfinite(norms)):
            row = int(np.flatnonzero(~np.isfinite(norms))[0])
            raise ValueError(
                f"The values of row {row} are so large that squared distances overflow in "
                f"{X.dtype}; rescale the data."
            )
        return Prepared(coordinates, norms.astype(X.dtype, copy=False))

    def evaluate(self, a: Prepared, b: Prepared, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Fill the block h(‖a_i - b_j‖²)."""
        block = squared_distances(a, b, out)
        self._apply_profile(block)
        return block

    def diagonal(self, points: Prepared) -> NDArray[Any]:
        """Evaluate h(0) for each point."""
        return np.full(len(points), float(self.profile(0.0)), dtype=points.dtype)

    def _apply_profile(self, block: NDArray[Any]) -> None:
        """Replace squared distances by h of them, in place; compiled where it matters."""
        block[...] = self.profile(block)

    def _resolve(self, X: Any, sample_weight: NDArray[np.float64] | None) -> None:
        if scipy.sparse.issparse(X):
            self.origin_ = np.zeros(X.shape[1])
        else:
            self.origin_ = np.average(X, axis=0, weights=sample_weight).astype(X.dtype)
        self.positive_definite = self._definite(X.shape[1])

    def _definite(self, _n_features: int) -> bool:
        return True


class _Scaled(Radial):
    """A radial kernel with a scale sigma, a number or a rule."""

    def __init__(self, sigma: float | str = "mean") -> None:
        self.sigma = sigma

    def _resolve(self, X: Any, sample_weight: NDArray[np.float64] | None) -> None:
        super()._resolve(X, sample_weight)
        self.sigma_ = resolve_sigma(self, X, sample_weight)

    def _unresolved(self) -> str:
        return f"sigma={self.sigma!r}" if isinstance(self.sigma, str) else ""

    def _scale(self) -> float:
        """Return sigma as a number, whether or not the kernel was fitted."""
        if hasattr(self, "sigma_"):
            return float(self.sigma_)
        if isinstance(self.sigma, str):
            self._ready(None)  # raises, with advice
        return check_positive(self.sigma, "sigma", type(self).__name__)


def resolve_sigma(kernel: Any, X: Any, sample_weight: NDArray[np.float64] | None) -> float:
    """Turn ``kernel.sigma`` into a number: itself, or by the rule "mean" or "median".

    Data whose points all coincide have no scale; any gives the same kernel values, and 1 is
    taken.
    """
    sigma, owner = kernel.sigma, type(kernel).__name__
    if not isinstance(sigma, str):
        return check_positive(sigma, "sigma", owner)
    if sigma == "mean":
        scale = math.sqrt(mean_squared_distance(X, sample_weight))
    elif sigma == "median":
        scale = median_distance(lambda i, j: _paired_distances(X, i, j), X.shape[0], sample_weight)
    else:
        raise ValueError(
            f"sigma of {owner} must be a positive number, 'mean' or 'median'; got {sigma!r}."
        )
    if not math.isfinite(scale):
        raise ValueError(
            f"sigma={sigma!r} of {owner} overflows: the values of X are too large; rescale them."
        )
    return scale if scale > 0 else 1.0


def _paired_distances(X: Any, i: NDArray[np.intp], j: NDArray[np.intp]) -> NDArray[Any]:
    distances = np.empty(len(i))
    for start in range(0, len(i), 65536):
        part = slice(start, start + 65536)
        difference = X[i[part]] - X[j[part]]
        if scipy.sparse.issparse(difference):
            squares = np.asarray(difference.multiply(difference).sum(axis=1)).ravel()
        else:
            squares = np.einsum("ij,ij->i", difference, difference)
        distances[part] = np.sqrt(squares)
    return distances


# Relative error of a squared distance that is still computed from inner products: the machine
# epsilon over this. 1e-4 keeps 12 digits in float64; 0.05 keeps 5 in float32, which is less than
# the rounding of kernel values near 1.
_CANCELLATION = {np.dtype(np.float64): 1e-4, np.dtype(np.float32): 0.05}


def squared_distances(a: Prepared, b: Prepared, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Squared distances between two sets of prepared points, accurate also for near ones."""
    if scipy.sparse.issparse(a.coordinates) or scipy.sparse.issparse(b.coordinates):
        return _sparse_squared_distances(a, b)
    dtype = np.result_type(a.dtype, b.dtype)
    left, right = (points.coordinates.astype(dtype, copy=False) for points in (a, b))
    if out is None:
        out = np.empty((len(a), len(b)), dtype=dtype)
    np.matmul(left, right.T, out=out)
    _loops.distances_from_products(out, left, right, a.per_point, b.per_point, _CANCELLATION[dtype])
    return out


def _sparse_squared_distances(a: Prepared, b: Prepared) -> NDArray[Any]:
    products = a.coordinates @ b.coordinates.T
    block = products.toarray() if scipy.sparse.issparse(products) else np.asarray(products)
    totals = np.add.outer(a.per_point, b.per_point)
    block *= -2
    block += totals
    i, j = np.nonzero(block <= _CANCELLATION[block.dtype] * totals)
    if len(i):
        block[i, j] = _paired_distances_between(a.coordinates, b.coordinates, i, j)
    return block


def _paired_distances_between(
    A: Any, B: Any, i: NDArray[np.intp], j: NDArray[np.intp]
) -> NDArray[Any]:
    squares = np.empty(len(i))
    for start in range(0, len(i), 65536):
        part = slice(start, start + 65536)
        difference = A[i[part]] - B[j[part]]
        if scipy.sparse.issparse(difference):
            squares[part] = np.asarray(difference.multiply(difference).sum(axis=1)).ravel()
        else:
            squares[part] = np.square(np.asarray(difference)).sum(axis=1)
    return squares


def _as_float(d2: ArrayLike) -> NDArray[Any]:
    array = np.asarray(d2)
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


class Gaussian(_Scaled):
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

    def profile(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate exp(-d²/2σ²)."""
        return np.exp(_as_float(d2) * -self._rate())

    def profile_derivative(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate -exp(-d²/2σ²)/2σ²."""
        return -self._rate() * self.profile(d2)

    def one_minus(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate 1 - exp(-d²/2σ²)."""
        return -np.expm1(_as_float(d2) * -self._rate())

    def _rate(self) -> float:
        return 0.5 / self._scale() ** 2

    def _apply_profile(self, block: NDArray[Any]) -> None:
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

    def _resolve(self, X: Any, sample_weight: NDArray[np.float64] | None) -> None:
        Radial._resolve(self, X, sample_weight)
        self.gamma_ = (
            1.0 / X.shape[1] if self.gamma is None else check_positive(self.gamma, "gamma", "RBF")
        )

    def _unresolved(self) -> str:
        return ""

    def _rate(self) -> float:
        if hasattr(self, "gamma_"):
            return float(self.gamma_)
        if self.gamma is None:
            raise ValueError("gamma=None of RBF means 1 / n_features: call fit(X) first.")
        return check_positive(self.gamma, "gamma", "RBF")


class Exponential(_Scaled):
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

    cusp = True

    def profile(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate exp(-d/σ)."""
        return np.exp(-np.sqrt(_as_float(d2)) / self._scale())

    def profile_derivative(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate -exp(-d/σ)/(2σd), -inf at 0."""
        with np.errstate(divide="ignore"):
            return -self.profile(d2) / (2 * self._scale() * np.sqrt(_as_float(d2)))

    def one_minus(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate 1 - exp(-d/σ)."""
        return -np.expm1(-np.sqrt(_as_float(d2)) / self._scale())

    def _apply_profile(self, block: NDArray[Any]) -> None:
        _loops.exponential_of_distance(block, 1.0 / self._scale())


class Matern(_Scaled):
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
        """Whether the profile has infinite slope in d² at 0, which is so for ν <= 1."""
        return self.nu <= 1

    def profile(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate the kernel at squared distances."""
        u, nu = self._argument(d2)
        if nu == 0.5:
            return np.exp(-u)
        if nu == 1.5:
            return (1 + u) * np.exp(-u)
        if nu == 2.5:
            return (1 + u + u * u / 3) * np.exp(-u)
        if math.isinf(nu):
            return np.exp(-0.5 * u * u)
        return np.where(u > 0, _bessel_term(u, nu, nu), 1.0).astype(u.dtype)

    def profile_derivative(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate the derivative in d², -inf at 0 for ν <= 1."""
        u, nu = self._argument(d2)
        inverse_variance = 1.0 / self._scale() ** 2
        if math.isinf(nu):
            return -0.5 * inverse_variance * np.exp(-0.5 * u * u)
        if nu == 1.5:
            return -nu * inverse_variance * np.exp(-u)
        if nu == 2.5:
            return -nu * inverse_variance * (1 + u) * np.exp(-u) / 3
        at_zero = -np.inf if nu <= 1 else -0.5 * nu / (nu - 1) * inverse_variance
        with np.errstate(divide="ignore"):
            if nu == 0.5:
                return -nu * inverse_variance * np.exp(-u) / u
            values = -nu * inverse_variance * _bessel_term(u, nu, nu - 1)
        return np.where(u > 0, values, at_zero).astype(u.dtype)

    def one_minus(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate one minus the kernel, by incomplete gamma functions or by quadrature."""
        u, nu = self._argument(d2)
        if nu == 0.5:
            return -np.expm1(-u)
        if nu == 1.5:
            return scipy.special.gammainc(2.0, u)
        if nu == 2.5:
            return scipy.special.gammainc(3.0, u) + u * u / 6 * np.exp(-u)
        if math.isinf(nu):
            return -np.expm1(-0.5 * u * u)
        return np.where(u < 0.5, _matern_integral(u, nu), 1.0 - self.profile(d2)).astype(u.dtype)

    def _argument(self, d2: ArrayLike) -> tuple[NDArray[Any], float]:
        nu = check_positive(self.nu, "nu", "Matern", infinite=True)
        return np.sqrt(_as_float(d2)) * (self._root_factor(nu) / self._scale()), nu

    def _root_factor(self, nu: float) -> float:
        return 1.0 if math.isinf(nu) else math.sqrt(2 * nu)

    def _resolve(self, X: Any, sample_weight: NDArray[np.float64] | None) -> None:
        check_positive(self.nu, "nu", "Matern", infinite=True)
        super()._resolve(X, sample_weight)

    def _apply_profile(self, block: NDArray[Any]) -> None:
        loops = {
            0.5: _loops.exponential_of_distance,
            1.5: _loops.matern_three_halves,
            2.5: _loops.matern_five_halves,
        }
        if self.nu in loops:
            loops[self.nu](block, self._root_factor(self.nu) / self._scale())
        else:
            super()._apply_profile(block)


def _bessel_term(u: NDArray[Any], nu: float, order: float) -> NDArray[Any]:
    """2^(1-ν)/Γ(ν) u^order K_order(u), in logarithms so that large ν does not overflow."""
    constant = (1 - nu) * math.log(2) - math.lgamma(nu)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        u = np.asarray(u, dtype=np.float64)
        log_bessel = np.log(scipy.special.kve(order, u)) - u
        values = np.exp(constant + order * np.log(u) + log_bessel)
    if order > 0:  # K overflows before u^order K_order reaches its limit 2^(order-1) Γ(order)
        limit = math.exp(constant + (order - 1) * math.log(2) + math.lgamma(order))
        values = np.where(np.isposinf(log_bessel), limit, values)
    return values


def _matern_integral(u: NDArray[Any], nu: float) -> NDArray[Any]:
    """1 - k(u) = c ∫_0^u t^ν K_(ν-1)(t) dt, by Gauss-Legendre quadrature for u < 1/2.

    t = u x^m with m so large that the integrand, which behaves like t^min(1, 2ν-1), is smooth.
    """
    m = max(1.0, math.ceil(2.0 / nu))
    nodes, weights = np.polynomial.legendre.leggauss(64)
    x, weights = (nodes + 1) / 2, weights / 2
    small = np.where((u > 0) & (u < 0.5), u, 0.25)
    t = small[..., None] * x**m
    integrand = t * _bessel_term(t, nu, nu - 1)
    result = (integrand * (weights * m * x ** (m - 1))).sum(axis=-1) * small
    return np.where(u > 0, result, 0.0)


class RationalQuadratic(_Scaled):
    r"""Rational quadratic kernel, a scale mixture of Gaussian kernels.

    .. math:: k(x, y) = \left(1 + \frac{\|x - y\|^2}{2\alpha\sigma^2}\right)^{-\alpha}

    Parameters
    ----------
    alpha : float, default=1.0
        Tail weight, positive; the kernel tends to the Gaussian one as it grows.
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

    def profile(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate (1 + d²/2ασ²)^-α."""
        return np.exp(-self.alpha * np.log1p(self._argument(d2)))

    def profile_derivative(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate -(1 + d²/2ασ²)^(-α-1)/2σ²."""
        return np.exp(-(self.alpha + 1) * np.log1p(self._argument(d2))) * (
            -0.5 / self._scale() ** 2
        )

    def one_minus(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate 1 - (1 + d²/2ασ²)^-α."""
        return -np.expm1(-self.alpha * np.log1p(self._argument(d2)))

    def _argument(self, d2: ArrayLike) -> NDArray[Any]:
        check_positive(self.alpha, "alpha", "RationalQuadratic")
        return _as_float(d2) * (0.5 / (self.alpha * self._scale() ** 2))


class Spherical(_Scaled):
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

    cusp = True
    positive_definite = False

    def profile(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate 1 - 3t/2 + t³/2."""
        t = self._argument(d2)
        # the same polynomial as (1 - t)² (2 + t)/2, which is accurate at the edge of the support
        return 0.5 * (1 - t) ** 2 * (2 + t)

    def profile_derivative(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate -3(1 - t²)/(4σd), -inf at 0."""
        t = self._argument(d2)
        with np.errstate(divide="ignore"):
            return -0.75 * (1 - t) * (1 + t) / (t * self._scale() ** 2)

    def one_minus(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate 3t/2 - t³/2."""
        t = self._argument(d2)
        return t * (1.5 - 0.5 * t * t)

    def _argument(self, d2: ArrayLike) -> NDArray[Any]:
        return np.minimum(np.sqrt(_as_float(d2)) / self._scale(), 1.0)

    def _definite(self, n_features: int) -> bool:
        return n_features <= 3

    def _apply_profile(self, block: NDArray[Any]) -> None:
        _loops.spherical(block, 1.0 / self._scale())


class Circular(_Scaled):
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

    cusp = True
    positive_definite = False

    def profile(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate (2/π)(arccos t - t √(1 - t²))."""
        t = self._argument(d2)
        return (np.arccos(t) - t * np.sqrt((1 - t) * (1 + t))) * (2 / math.pi)

    def profile_derivative(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate -(2/π) √(1 - t²)/(σd), -inf at 0."""
        t = self._argument(d2)
        with np.errstate(divide="ignore"):
            return np.sqrt((1 - t) * (1 + t)) * (-2 / (math.pi * self._scale() ** 2)) / t

    def one_minus(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate (2/π)(arcsin t + t √(1 - t²))."""
        t = self._argument(d2)
        return (np.arcsin(t) + t * np.sqrt((1 - t) * (1 + t))) * (2 / math.pi)

    def _argument(self, d2: ArrayLike) -> NDArray[Any]:
        return np.minimum(np.sqrt(_as_float(d2)) / self._scale(), 1.0)

    def _definite(self, n_features: int) -> bool:
        return n_features <= 2


class Wave(_Scaled):
    r"""Wave kernel (cardinal sine); it takes negative values.

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

    def profile(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate sin(t)/t at t = d/σ."""
        return np.sinc(np.sqrt(_as_float(d2)) / (math.pi * self._scale())).astype(
            _as_float(d2).dtype, copy=False
        )

    def profile_derivative(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate (cos t - sin(t)/t)/(2d²), -1/6σ² at 0."""
        s = _as_float(d2)
        t = np.sqrt(s) / self._scale()
        safe = np.where(t > 0.3, t, 1.0)
        direct = (np.cos(safe) - np.sin(safe) / safe) / (2 * safe * safe)
        t2 = np.minimum(t, 0.3) ** 2
        # (cos t - sinc t)/(2t²) = Σ_n (-1)^(n+1) (n+1)/(2n+3)! t^(2n)
        series = -1 / 6 + t2 * (1 / 60 + t2 * (-1 / 1680 + t2 * (1 / 90720 - t2 / 7983360)))
        return np.where(t > 0.3, direct, series).astype(s.dtype) / self._scale() ** 2

    def one_minus(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate 1 - sin(t)/t, by its series for small t."""
        s = _as_float(d2)
        t = np.sqrt(s) / self._scale()
        t2 = np.minimum(t, 0.3) ** 2
        series = t2 * (
            1 / 6 + t2 * (-1 / 120 + t2 * (1 / 5040 + t2 * (-1 / 362880 + t2 / 39916800)))
        )
        return np.where(t > 0.3, 1 - self.profile(s), series).astype(s.dtype)

    def _definite(self, n_features: int) -> bool:
        return n_features <= 3


class _Unbounded(Radial):
    """A radial kernel with zero diagonal that is only conditionally positive definite."""

    unit_norm = False
    positive_definite = False

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta

    @property
    def cusp(self) -> bool:  # type: ignore[override]  # depends on beta
        """Whether the profile has infinite slope in d² at 0, which is so for β < 2."""
        return self.beta < 2

    def _exponent(self) -> float:
        return check_positive(self.beta, "beta", type(self).__name__, maximum=2.0) / 2

    def _resolve(self, X: Any, sample_weight: NDArray[np.float64] | None) -> None:
        self._exponent()
        super()._resolve(X, sample_weight)

    def _definite(self, _n_features: int) -> bool:
        return False


class Power(_Unbounded):
    r"""Power kernel; conditionally positive definite, zero on the diagonal, not on a sphere.

    .. math:: k(x, y) = -\|x - y\|^\beta

    Centred in feature space it is positive semidefinite, so that kernel PCA may use it.

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

    def profile(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate -d^β."""
        return -(_as_float(d2) ** self._exponent())

    def profile_derivative(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate -(β/2) d^(β-2), -inf at 0 for β < 2."""
        exponent = self._exponent()
        with np.errstate(divide="ignore"):
            return -exponent * _as_float(d2) ** (exponent - 1)

    def one_minus(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate 1 + d^β."""
        return 1 - self.profile(d2)


class Log(_Unbounded):
    r"""Log kernel; conditionally positive definite, zero on the diagonal, not on a sphere.

    .. math:: k(x, y) = -\log(1 + \|x - y\|^\beta)

    Centred in feature space it is positive semidefinite, so that kernel PCA may use it.

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

    def profile(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate -log(1 + d^β)."""
        return -np.log1p(_as_float(d2) ** self._exponent())

    def profile_derivative(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate -(β/2) d^(β-2)/(1 + d^β), -inf at 0 for β < 2."""
        exponent, s = self._exponent(), _as_float(d2)
        with np.errstate(divide="ignore"):
            return -exponent * s ** (exponent - 1) / (1 + s**exponent)

    def one_minus(self, d2: ArrayLike) -> NDArray[Any]:
        """Evaluate 1 + log(1 + d^β)."""
        return 1 - self.profile(d2)
