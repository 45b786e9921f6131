"""Kernels that are functions of the Euclidean distance, k(x, y) = h(‖x - y‖²).

Each kernel provides its profile h, the derivative of h with respect to d² (pre-images need it) and
1 - h without cancellation (angles on the sphere need it).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import numpy as np
import scipy.sparse
import scipy.special
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyval

from .._core.checks import as_number, check_positive, invalid
from .._core.types import Array, Floats, Indices
from .bandwidth import Moments, mean_square, median_distance, numeric_scale, scale_from_rule
from .base import (
    Kernel,
    Prepared,
    finite_squared_norms,
    inner_products,
    loops_for,
    resolve_gamma,
    squared_norms,
)

# Squared distances below this, relative to the squared norms, are computed from differences. This
# keeps 12 digits in float64 and 5 in float32.
_CANCELLATION = {np.dtype(np.float64): 1e-4, np.dtype(np.float32): 0.05}


def squared_distances(a: Prepared, b: Prepared, out: Array | None = None) -> Array:
    """Return squared distances between prepared points, accurate also for near points."""
    threshold = max(_CANCELLATION[a.dtype], _CANCELLATION[b.dtype])
    if scipy.sparse.issparse(a.coordinates) or scipy.sparse.issparse(b.coordinates):
        block = inner_products(a, b)
        return _plain_distances(block, a, b, a.coordinates, b.coordinates, threshold)
    dtype = np.result_type(a.dtype, b.dtype)
    left, right = (points.coordinates.astype(dtype, copy=False) for points in (a, b))
    block = np.matmul(left, right.T, out=out)
    if a.given is not None and b.given is not None:
        left, right = (points.given.astype(dtype, copy=False) for points in (a, b))
    sizes = (len(a.per_point), len(b.per_point))
    if not block.shape == sizes == (len(left), len(right)) or left.shape[1:] != right.shape[1:]:
        # only a forged model file has such points; the compiled loop does not check bounds
        raise ValueError("The points of the model have inconsistent shapes. Fit the model again.")
    loops = loops_for(a, b)
    if loops is None:
        return _plain_distances(block, a, b, left, right, threshold)
    loops.distances_from_products(block, left, right, a.per_point, b.per_point, threshold)
    return block


def _plain_distances(
    block: Array, a: Prepared, b: Prepared, left: Any, right: Any, threshold: float
) -> Array:
    """Convert inner products to squared distances, as the compiled loop does."""
    norms = b.per_point
    block *= -2
    block += norms
    block += a.per_point[:, None]
    # find candidates with one limit per row, which needs no block of limits
    limits = threshold * (a.per_point + norms.max(initial=0))
    i, j = np.divmod(np.flatnonzero(block <= limits[:, None]), max(1, len(norms)))
    near = block[i, j] <= threshold * (a.per_point[i] + norms[j])
    i, j = i[near], j[near]
    block[i, j] = paired_squared_distances(left, right, i, j)
    return block


def paired_squared_distances(A: Any, B: Any, i: Indices, j: Indices) -> Floats:
    """Return squared distances between row i_k of A and row j_k of B, from differences."""
    distances = np.empty(len(i))
    for start in range(0, len(i), 65536):
        rows = slice(start, start + 65536)
        distances[rows] = squared_norms(A[i[rows]].astype(np.float64, copy=False) - B[j[rows]])
    return distances


def _in_float64(function: Callable[[Any, Floats], Floats]) -> Callable[[Any, Any], Array]:
    """Make a function of squared distances compute in float64, and return float32 for float32.

    In float32, 1/σ² may be infinite and its product with 0 NaN.
    """

    @wraps(function)
    def wrapper(self: Any, d2: Any) -> Array:
        self._check_parameters()
        given = np.asarray(d2)
        with np.errstate(over="ignore", divide="ignore"):
            values = function(self, given.astype(np.float64, copy=False))
            return values.astype(np.float32) if given.dtype == np.float32 else values

    return wrapper


class Radial(Kernel):
    """Base class of the kernels k(x, y) = h(‖x - y‖²).

    A subclass implements ``profile``, ``profile_derivative`` and ``one_minus``, which are functions
    of the squared distance, and sets the flags ``cusp`` (h'(0) is infinite) and ``decreasing`` (h
    never increases with the distance).
    """

    unit_norm = True
    cusp: bool = False
    decreasing: bool = True
    _max_definite: float = math.inf  # largest dimension in which h is positive definite

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("profile", "profile_derivative", "one_minus"):
            if name in vars(cls):
                setattr(cls, name, _in_float64(vars(cls)[name]))

    def profile(self, d2: Any) -> Array:
        """Evaluate h at squared distances."""
        raise NotImplementedError

    def profile_derivative(self, d2: Any) -> Array:
        """Evaluate the derivative of h with respect to the squared distance."""
        raise NotImplementedError

    def one_minus(self, d2: Any) -> Array:
        """Evaluate 1 - h without cancellation near distance 0."""
        raise NotImplementedError

    def prepare(self, X: Any) -> Prepared:
        """Subtract the mean of the training data, for accurate distances, and compute norms.

        Sparse points stay sparse if the kernel was fitted to sparse data, whose origin is 0;
        otherwise they are converted to dense arrays.
        """
        if scipy.sparse.issparse(X) and not np.any(self.origin_):
            return Prepared(X.tocsr(), finite_squared_norms(X.tocsr()))
        X = X.toarray() if scipy.sparse.issparse(X) else np.ascontiguousarray(X)
        coordinates = np.subtract(X, self.origin_, order="C", dtype=X.dtype)
        # the subtraction rounds points far from the mean, so differences are computed from X
        return Prepared(coordinates, finite_squared_norms(coordinates), given=X)

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block h(‖a_i - b_j‖²)."""
        block = squared_distances(a, b, out)
        self._apply_profile(block, loops_for(a, b))
        return block

    def diagonal(self, points: Prepared) -> Array:
        """Evaluate h(0) for each point."""
        at_zero = 1.0 if self.unit_norm else float(self.profile(0.0))
        return np.full(len(points), at_zero, dtype=points.dtype)

    def _apply_profile(self, block: Array, loops: Any) -> None:
        """Apply h to squared distances, in place, with the compiled loops unless they are None."""
        block[...] = self.profile(block)

    def _check_parameters(self) -> None:
        """Raise a ValueError for invalid parameters other than the scale."""

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        self._check_parameters()
        if scipy.sparse.issparse(X):
            self.origin_ = np.zeros(X.shape[1])
        else:
            with np.errstate(over="ignore"):  # prepare raises an error with the row
                self.origin_ = np.average(X, axis=0, weights=sample_weight).astype(X.dtype)
        self.positive_definite = X.shape[1] <= self._max_definite


class ScaledRadial(Radial):
    """A radial kernel with a scale sigma, a number or a rule."""

    def __init__(self, sigma: float | str = "mean") -> None:
        self.sigma = sigma

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        super()._resolve(X, sample_weight)
        self.sigma_ = scale_from_rule(
            self,
            X.dtype,
            mean_square=lambda: mean_square(X, sample_weight),
            median=lambda: median_of_rows(X, sample_weight),
        )

    def fit_sampled(
        self,
        sample: Any,
        sample_weight: Floats | None,
        moments: Callable[[Floats], Moments],
    ) -> Kernel:
        """Resolve sigma="mean" from moments of all rows, other parameters from the sample."""
        self.fit_validated(sample, sample_weight)
        if getattr(self, "sigma", None) != "mean":
            return self
        if scipy.sparse.issparse(sample):
            found = moments(self.origin_)
        else:  # the row nearest to the mean: if all points coincide, its distances are 0
            nearest = int(np.argmin(np.linalg.norm(sample - self.origin_, axis=1)))
            found = moments(np.asarray(sample[nearest], dtype=np.float64))
            self.origin_ = found.mean.astype(sample.dtype)
        self.sigma_ = scale_from_rule(
            self,
            sample.dtype,
            mean_square=lambda: found.squared_distance,
            median=lambda: math.nan,  # not used
            resolution=math.sqrt(found.rounding),
        )
        return self

    def _scale(self) -> float:
        """Return sigma as a number, for a fitted or unfitted kernel."""
        if hasattr(self, "sigma_"):
            return float(self.sigma_)
        if isinstance(self.sigma, str):
            self._ready(None)  # raises NotFittedError
        return numeric_scale(self)


def median_of_rows(X: Any, sample_weight: Floats | None) -> float:
    """Return the median distance over pairs of rows."""

    def pairwise(i: Indices, j: Indices) -> Floats:
        return np.sqrt(paired_squared_distances(X, X, i, j))

    return median_distance(pairwise, X.shape[0], sample_weight)


def gaussian(block: Array, rate: float, loops: Any) -> None:
    """Replace d² by exp(-rate d²), in place, with the compiled loops unless they are None."""
    if loops is not None:
        loops.gaussian(block, rate)
        return
    with np.errstate(over="ignore"):
        # in float32 the rate may overflow
        exponents = np.multiply(
            block, -rate, out=block if block.dtype == np.float64 else None, dtype=np.float64
        )
    np.exp(exponents, out=block, casting="same_kind")


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

    def profile(self, d2: Any) -> Array:
        """Evaluate exp(-d²/2σ²)."""
        return np.exp(d2 * -self._rate())

    def profile_derivative(self, d2: Any) -> Array:
        """Evaluate -exp(-d²/2σ²)/2σ²."""
        return -self._rate() * self.profile(d2)

    def one_minus(self, d2: Any) -> Array:
        """Evaluate 1 - exp(-d²/2σ²)."""
        return -np.expm1(d2 * -self._rate())

    def _rate(self) -> float:
        return 0.5 / self._scale() ** 2

    def _apply_profile(self, block: Array, loops: Any) -> None:
        gaussian(block, self._rate(), loops)


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

    def profile(self, d2: Any) -> Array:
        """Evaluate (1 + d²/2ασ²)^-α."""
        return np.exp(-self.alpha * self._logarithms(d2))

    def profile_derivative(self, d2: Any) -> Array:
        """Evaluate -(1 + d²/2ασ²)^(-α-1)/2σ²."""
        powers = np.exp(-(self.alpha + 1) * self._logarithms(d2))
        return powers * (-0.5 / self._scale() ** 2)

    def one_minus(self, d2: Any) -> Array:
        """Evaluate 1 - (1 + d²/2ασ²)^-α."""
        return -np.expm1(-self.alpha * self._logarithms(d2))

    def _check_parameters(self) -> None:
        check_positive(self.alpha, "alpha", "RationalQuadratic")

    def _logarithms(self, d2: Any) -> Array:
        """Return log(1 + d²/2ασ²)."""
        scale = self._scale()
        ratios = d2 * (0.5 / scale**2) / self.alpha
        # a large ratio may be infinite, but its logarithm is finite
        far = np.log(d2) - (math.log(2 * self.alpha) + 2 * math.log(scale))
        return np.where(ratios > 1e18, far, np.log1p(ratios))


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
    _max_definite = 3

    def profile(self, d2: Any) -> Array:
        """Evaluate sin(t)/t at t = d/σ."""
        return np.sinc(np.sqrt(d2) / (math.pi * self._scale()))

    def profile_derivative(self, d2: Any) -> Array:
        """Evaluate (cos t - sin(t)/t)/(2d²), -1/6σ² at 0."""
        t = np.sqrt(d2) / self._scale()
        safe = np.where(t > 0.3, t, 1.0)
        direct = (np.cos(safe) - np.sin(safe) / safe) / safe / (2 * safe)
        t2 = np.minimum(t, 0.3) ** 2
        # (cos t - sinc t)/(2t²) = Σ_n (-1)^(n+1) (n+1)/(2n+3)! t^(2n)
        series = -1 / 6 + t2 * (1 / 60 + t2 * (-1 / 1680 + t2 * (1 / 90720 - t2 / 7983360)))
        return np.where(t > 0.3, direct, series) / self._scale() ** 2

    def one_minus(self, d2: Any) -> Array:
        """Evaluate 1 - sin(t)/t, from its series for small t."""
        t = np.sqrt(d2) / self._scale()
        t2 = np.minimum(t, 0.3) ** 2
        series = t2 * (
            1 / 6 + t2 * (-1 / 120 + t2 * (1 / 5040 + t2 * (-1 / 362880 + t2 / 39916800)))
        )
        return np.where(t > 0.3, 1 - self.profile(d2), series)


class _Compact(ScaledRadial):
    """Base class of kernels that are functions of t = min(d/σ, 1), with a cusp at 0."""

    cusp = True
    positive_definite = False

    def _argument(self, d2: Any) -> Array:
        return np.minimum(np.sqrt(d2) / self._scale(), 1.0)


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

    _max_definite = 3

    def profile(self, d2: Any) -> Array:
        """Evaluate 1 - 3t/2 + t³/2."""
        t = self._argument(d2)
        # the factored form is accurate at the edge of the support
        return 0.5 * (1 - t) ** 2 * (2 + t)

    def profile_derivative(self, d2: Any) -> Array:
        """Evaluate -3(1 - t²)/(4σd), -inf at 0."""
        t = self._argument(d2)
        return -0.75 * (1 - t) * (1 + t) / (t * self._scale() ** 2)

    def one_minus(self, d2: Any) -> Array:
        """Evaluate 3t/2 - t³/2."""
        t = self._argument(d2)
        return t * (1.5 - 0.5 * t * t)

    def _apply_profile(self, block: Array, loops: Any) -> None:
        if loops is None:
            super()._apply_profile(block, loops)
        else:
            loops.spherical(block, 1.0 / self._scale())


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

    _max_definite = 2

    def profile(self, d2: Any) -> Array:
        """Evaluate (2/π)(arccos t - t √(1 - t²))."""
        t = self._argument(d2)
        return (np.arccos(t) - t * np.sqrt((1 - t) * (1 + t))) * (2 / math.pi)

    def profile_derivative(self, d2: Any) -> Array:
        """Evaluate -(2/π) √(1 - t²)/(σd), -inf at 0."""
        t = self._argument(d2)
        return np.sqrt((1 - t) * (1 + t)) * (-2 / (math.pi * self._scale() ** 2)) / t

    def one_minus(self, d2: Any) -> Array:
        """Evaluate (2/π)(arcsin t + t √(1 - t²))."""
        t = self._argument(d2)
        return (np.arcsin(t) + t * np.sqrt((1 - t) * (1 + t))) * (2 / math.pi)


class _Unbounded(Radial):
    """A radial kernel with zero diagonal that is only conditionally positive definite."""

    unit_norm = False
    positive_definite = False
    _max_definite = 0

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta

    @property
    def cusp(self) -> bool:  # type: ignore[override]  # depends on beta
        """Whether the profile has infinite slope in d² at 0, which holds for β < 2."""
        return self.beta < 2

    def _check_parameters(self) -> None:
        check_positive(self.beta, "beta", type(self).__name__, maximum=2.0)

    def one_minus(self, d2: Any) -> Array:
        """Evaluate 1 - h."""
        return 1 - self.profile(d2)


class Power(_Unbounded):
    r"""Power kernel: conditionally positive definite, with k(x, x) = 0.

    .. math:: k(x, y) = -\|x - y\|^\beta

    The centred kernel is positive semidefinite, so kernel PCA can use it. Methods on the sphere
    cannot, because feature vectors do not have unit length.

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

    def profile(self, d2: Any) -> Array:
        """Evaluate -d^β."""
        return -(d2 ** (self.beta / 2))

    def profile_derivative(self, d2: Any) -> Array:
        """Evaluate -(β/2) d^(β-2), -inf at 0 for β < 2."""
        exponent = self.beta / 2
        return -exponent * d2 ** (exponent - 1)


class Log(_Unbounded):
    r"""Log kernel: conditionally positive definite, with k(x, x) = 0.

    .. math:: k(x, y) = -\log(1 + \|x - y\|^\beta)

    The centred kernel is positive semidefinite, so kernel PCA can use it. Methods on the sphere
    cannot, because feature vectors do not have unit length.

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

    def profile(self, d2: Any) -> Array:
        """Evaluate -log(1 + d^β)."""
        return -np.log1p(d2 ** (self.beta / 2))

    def profile_derivative(self, d2: Any) -> Array:
        """Evaluate -(β/2) d^(β-2)/(1 + d^β), -inf at 0 for β < 2."""
        exponent = self.beta / 2
        return -exponent * d2 ** (exponent - 1) / (1 + d2**exponent)


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
        number = as_number(self.nu)  # infinite also for integers that are too large for a float
        if not number >= _MIN_ORDER or (math.isinf(number) and isinstance(self.nu, int)):
            raise invalid("nu", "Matern", f"a number >= {_MIN_ORDER:g}, or infinity", self.nu)

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
def debye_polynomials() -> list[Polynomial]:
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
    terms = (u(p) * (-1 / nu) ** k for k, u in enumerate(debye_polynomials()))
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
