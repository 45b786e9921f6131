r"""Spectral filters of the Gram matrix of a class, with closed-form leave-one-out.

A class is a set of points with weights w and the Gram matrix K. With
:math:`K_w = W^{1/2} K W^{1/2} = U S U^\top`, the residual of another point x from the class is

.. math:: r(x) = k(x, x) - \sum_j f(s_j)\, \bigl(u_j^\top W^{1/2} k_x\bigr)^2, \qquad
    k_x = (k(x, x_n))_n.

The classifiers differ only in the filter f. One eigendecomposition serves every filter, and also
gives the residual of each point of the class from the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._core.unit import angles_from_cosines

# A single α, or an array of them.
Alphas = float | NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)

# Minimum α, as a fraction of the trace of K, for which a Cholesky factorisation may replace the
# eigendecomposition; its error is then 1e-10 of k(x, x).
_MIN_SHIFT = 1e-6

# Residuals that differ by less than this fraction of k(x, x) differ only by rounding error.
_TIE_TOL = 256 * _EPS

# Error of the entries of a Gram matrix, in units in the last place of the squared norms.
_ENTRY_ULPS = 8


@dataclass(frozen=True)
class ClassSpectrum:
    """Eigendecomposition of the weighted Gram matrix of a class.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Eigenvalues of W^½ K W^½, descending; negative ones are set to 0.
    vectors : ndarray of shape (n, n)
        Eigenvectors as columns; complex for a Hermitian matrix.
    weights : ndarray of shape (n,)
        Weights of the points.
    rounding : float
        Upper bound of eigenvalues that may be caused by rounding errors of K.
    """

    values: NDArray[np.float64]
    vectors: NDArray[Any]
    weights: NDArray[np.float64]
    rounding: float

    def directions(self) -> NDArray[Any]:
        """Return W^½ U, shape (n, n), which maps kernel values to projections."""
        return np.sqrt(self.weights)[:, None] * self.vectors

    def row_sums(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the diagonal of U diag(gains) Uᵀ, for each column of gains."""
        return squared_magnitudes(self.vectors) @ gains

    def floored(self, alpha: Alphas) -> NDArray[np.float64]:
        """Return s, raised so that s + α is positive and at least the rounding error.

        For an array of α, return a column for each.
        """
        floor = max(self.rounding, float(np.finfo(np.float64).tiny))
        values = _as_column(self.values, alpha)
        raised = np.maximum(values, floor - alpha)
        return np.where(values > self.rounding, values, raised)


def class_spectrum(
    gram: NDArray[Any],
    weights: NDArray[np.float64] | None = None,
    *,
    entry_size: float | None = None,
) -> ClassSpectrum:
    """Decompose the Gram matrix of a class.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        The symmetric or complex Hermitian matrix. It is decomposed in double precision; its
        dtype determines which eigenvalues are rounding errors.
    weights : ndarray of shape (n,), optional
        Positive weights. Default: all 1.
    entry_size : float, optional
        Magnitude of the terms, if entries are differences of larger terms.

    Returns
    -------
    ClassSpectrum
        Eigenvalues and eigenvectors.

    Notes
    -----
    Negative eigenvalues are set to 0, so only the positive part of an indefinite matrix is used.

    Examples
    --------
    >>> class_spectrum(np.array([[2.0, 1.0], [1.0, 2.0]])).values
    array([3., 1.])
    """
    w = np.ones(len(gram)) if weights is None else weights
    matrix = _weighted(gram, w)
    # |K_ij| <= √(K_ii K_jj): errors of that size have a norm of at most the trace
    size = float(np.trace(matrix).real)
    if entry_size is not None:
        size = max(size, entry_size * float(w.sum()))
    values, vectors = scipy.linalg.eigh(matrix, overwrite_a=True, check_finite=False, driver="evd")
    return ClassSpectrum(
        values=np.maximum(values[::-1], 0.0),
        vectors=np.ascontiguousarray(vectors[:, ::-1]),
        weights=w,
        rounding=_ENTRY_ULPS * float(np.finfo(gram.dtype).eps) * max(size, 0.0),
    )


def _weighted(gram: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[Any]:
    """Return W^½ K W^½ in double precision."""
    if not np.all(np.isfinite(gram)):
        raise ValueError(
            "The Gram matrix of a class has entries that are not finite: the kernel overflows. "
            "Rescale the data, or choose other parameters of the kernel."
        )
    roots = np.sqrt(weights)
    wide = np.complex128 if np.iscomplexobj(gram) else np.float64
    return roots[:, None] * gram.astype(wide) * roots


def _triangular(
    gram: NDArray[Any], weights: NDArray[np.float64], alpha: Any, penalty: Any = 0.0
) -> NDArray[Any] | None:
    """Return the lower triangular D with D Dᴴ = W^½ (P + penalty P²) W^½, P = (K_w + α)⁻¹.

    Return None if α is too small for accurate Cholesky factorisations.
    """
    matrix = _weighted(gram, weights)
    if alpha < _MIN_SHIFT * float(np.trace(matrix).real):
        return None
    np.fill_diagonal(matrix, np.diagonal(matrix) + alpha)
    factorise, invert = scipy.linalg.get_lapack_funcs(("potrf", "potri"), (matrix,))
    factor, failed = factorise(matrix, lower=True, overwrite_a=True)
    if failed:  # not positive semidefinite: use the spectrum
        return None
    inverse, _ = invert(factor, lower=True, overwrite_c=True)
    lower = np.tril(inverse, -1)
    inverse = lower + lower.conj().T + np.diag(np.diagonal(inverse).real)
    if penalty:
        inverse = inverse + penalty * (inverse @ inverse)
    return np.sqrt(weights)[:, None] * np.linalg.cholesky(inverse)


def _as_column(values: NDArray[Any], alpha: Alphas) -> NDArray[Any]:
    """Return values in a shape that broadcasts with a single α or an array of them."""
    return values[:, None] if np.ndim(alpha) else values


@dataclass(frozen=True)
class Perturbation:
    r"""Filter of regularised PerTurbo: f(s) = 1/(s + α).

    The residual is the squared distance from Φ(x) to the span of the class, plus α times the
    squared coefficients. The residual of each point of the class from the others is

    .. math:: r_n = \frac{1/P_{nn} - \alpha}{w_n}, \qquad P = (K_w + \alpha I)^{-1}.

    Parameters
    ----------
    alpha : float, or ndarray of shape (n_alphas,)
        Not negative; for an array, results have a column for each α. For eigenvalues within
        rounding error, α is raised to that error, so α = 0 gives the numerical pseudo-inverse.

    Examples
    --------
    >>> pair = class_spectrum(np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> Perturbation(alpha=0.0).left_out(pair).round(12)  # 1 - k² for both points
    array([0.75, 0.75])
    """

    alpha: Alphas

    def gains(self, spectrum: ClassSpectrum) -> NDArray[np.float64]:
        """Return 1/(s + α)."""
        gains = 1 / (spectrum.floored(self.alpha) + self.alpha)
        return np.where(_as_column(spectrum.values, self.alpha) > 0, gains, 0.0)

    def left_out(self, spectrum: ClassSpectrum) -> NDArray[np.float64]:
        """Return the residual of each point from the rest of its class, shape (n,).

        If α = 0, the residual of a point in the span of the others is 0.
        """
        values = spectrum.floored(self.alpha)
        shifted = values + self.alpha
        # 1/P - α = (1 - αP)/P, and 1 - α/(s + α) = s/(s + α) has no cancellation
        kept = spectrum.row_sums(values / shifted)
        return kept / spectrum.row_sums(1 / shifted) / _as_column(spectrum.weights, self.alpha)

    def directions(self, gram: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[Any] | None:
        """Return the lower triangular D for which the class captures ‖Dᵀ k_x‖².

        For a single α and a positive semidefinite matrix; uses Cholesky factorisations.
        Return None if α is too small for them.
        """
        return _triangular(gram, weights, self.alpha)


@dataclass(frozen=True)
class RidgeResidual:
    r"""Filter of kernel ridge regression: f(s) = (s + 2λ)/(s + λ)².

    The residual is the squared distance from Φ(x) to its ridge regression on the class, without
    the penalty. The residual of each point of the class from the others is

    .. math:: r_n = \frac{(P K_w P)_{nn}}{w_n P_{nn}^2}, \qquad P = (K_w + \lambda I)^{-1}.

    Parameters
    ----------
    alpha : float, or ndarray of shape (n_alphas,)
        λ, not negative; 0 gives the pseudo-inverse, as for :class:`Perturbation`.

    Examples
    --------
    >>> pair = class_spectrum(np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> RidgeResidual(alpha=0.0).left_out(pair).round(12)
    array([0.75, 0.75])
    """

    alpha: Alphas

    def gains(self, spectrum: ClassSpectrum) -> NDArray[np.float64]:
        """Return (s + 2λ)/(s + λ)²."""
        values = spectrum.floored(self.alpha)
        shifted = values + self.alpha
        gains = (values + 2 * self.alpha) / shifted / shifted
        return np.where(_as_column(spectrum.values, self.alpha) > 0, gains, 0.0)

    def left_out(self, spectrum: ClassSpectrum) -> NDArray[np.float64]:
        """Return the residual of each point from the rest of its class, shape (n,)."""
        values = spectrum.floored(self.alpha)
        shifted = values + self.alpha
        # divide P by its largest eigenvalue, so that squares do not overflow
        scaled = shifted.min(axis=0) / shifted
        kept = spectrum.row_sums(values * scaled**2)
        return kept / (spectrum.row_sums(scaled) ** 2 * _as_column(spectrum.weights, self.alpha))

    def directions(self, gram: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[Any] | None:
        """Return the triangular directions, as :meth:`Perturbation.directions` does."""
        # (K + λ)⁻¹ (K + 2λ) (K + λ)⁻¹ = P + λP²
        return _triangular(gram, weights, self.alpha, penalty=self.alpha)


@dataclass(frozen=True)
class Truncation:
    """Filter of truncated PerTurbo: f(s) = 1/(s + α) for the leading eigenvalues, else 0.

    With α = 0 the residual is the squared distance from Φ(x) to the span of the leading components.
    There is no closed form for the points of the class itself; see :func:`folded_residuals`.

    Parameters
    ----------
    n_components : int
        Number of leading components; those within rounding error capture nothing.
    alpha : float, or ndarray of shape (n_alphas,), default=0.0
        Not negative.
    """

    n_components: int
    alpha: Alphas = 0.0

    def gains(self, spectrum: ClassSpectrum) -> NDArray[np.float64]:
        """Return 1/(s + α) or 0."""
        leading = np.arange(len(spectrum.values)) < self.n_components
        gains = Perturbation(self.alpha).gains(spectrum)
        return np.where(_as_column(leading, self.alpha), gains, 0.0)

    def directions(self, gram: NDArray[Any], weights: NDArray[np.float64]) -> None:
        """Return None, because truncation needs the eigendecomposition."""


#: Filters have ``gains(spectrum)``, f(s) of each eigenvalue, and ``directions(gram, weights)``.
Filter = Perturbation | RidgeResidual | Truncation


def captured(projections: NDArray[Any], gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the part of k(x, x) that the class captures, Σ f(s) projection².

    Parameters
    ----------
    projections : ndarray of shape (m, n)
        Kernel values with the class times :meth:`ClassSpectrum.directions`.
    gains : ndarray of shape (n,) or (n, n_filters)
        f(s) of a filter, or of one filter per column.

    Returns
    -------
    ndarray of shape (m,) or (m, n_filters)
        The captured part; see :func:`remainder`.
    """
    return squared_magnitudes(projections) @ gains


def squared_magnitudes(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return |z|² of real or complex numbers as float64."""
    if np.iscomplexobj(values):
        return np.square(values.real, dtype=np.float64) + np.square(values.imag, dtype=np.float64)
    return np.square(values, dtype=np.float64)


def squared_lengths(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return ‖z‖² of each row, real or complex."""
    if np.iscomplexobj(rows):
        return squared_lengths(rows.real) + squared_lengths(rows.imag)
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)


def remainder(diagonal: NDArray[Any], captured: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the residual of each point from one class: k(x, x) minus the captured part.

    It may be negative because of rounding errors or an indefinite kernel;
    :func:`tie_within_rounding` corrects that, given the residuals from all classes.

    Parameters
    ----------
    diagonal : ndarray of shape (m,)
        k(x, x) of each point.
    captured : ndarray of shape (m,) or (m, ...)
        Result of :func:`captured`.
    """
    diagonal = np.asarray(diagonal, dtype=np.float64)
    return diagonal.reshape(-1, *[1] * (captured.ndim - 1)) - captured


def tie_within_rounding(
    residuals: NDArray[np.float64], diagonal: NDArray[Any]
) -> NDArray[np.float64]:
    """Return nonnegative residuals; those within rounding error of the smallest are set to it.

    If no class captures any part of a point, or every class captures all of it, the residuals
    differ only by rounding error and tie. If the smallest is negative, as for an indefinite kernel,
    it is subtracted from all, which preserves their differences.

    Parameters
    ----------
    residuals : ndarray of shape (m, n_classes) or (m, n_classes, ...)
        Results of :func:`remainder` for each class.
    diagonal : ndarray of shape (m,)
        k(x, x) of each point.

    Examples
    --------
    >>> tie_within_rounding(np.array([[0.5 + 1e-16, 0.5, 0.7]]), np.array([1.0]))
    array([[0.5, 0.5, 0.7]])
    >>> tie_within_rounding(np.array([[-0.5, -0.25, 0.5]]), np.array([1.0]))
    array([[0.  , 0.25, 1.  ]])
    """
    smallest = residuals.min(axis=1, keepdims=True)
    residuals = residuals - np.minimum(smallest, 0.0)
    smallest = np.maximum(smallest, 0.0)
    allowed = _TIE_TOL * np.abs(diagonal).reshape(-1, *[1] * (residuals.ndim - 1))
    return np.where(residuals <= smallest + allowed, smallest, residuals)


def folded_residuals(
    gram: NDArray[Any], weights: NDArray[np.float64], class_filter: Filter, n_folds: int = 5
) -> NDArray[np.float64]:
    """Return the residual of each point of a class from the other folds.

    This replaces leave-one-out for filters without a closed form. Fold i holds the points i,
    i + n_folds, and so on. The residual of a single point is k(x, x).

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        The Gram matrix of the class.
    weights : ndarray of shape (n,)
        Positive weights.
    class_filter : Filter
        The filter.
    n_folds : int, default=5
        Number of folds, at most the number of points.
    """
    n = len(gram)
    residuals = np.diagonal(gram).real.astype(np.float64)
    if n == 1:
        return residuals
    folds = np.arange(n) % min(n_folds, n)
    for fold in range(int(folds.max()) + 1):
        out, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        spectrum = class_spectrum(gram[np.ix_(rest, rest)], weights[rest])
        projections = gram[np.ix_(out, rest)] @ spectrum.directions()
        gains = class_filter.gains(spectrum)
        residuals[out] = remainder(residuals[out], captured(projections, gains))
    return residuals


def left_out_mean_cosines(
    gram: NDArray[np.float64], coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Return the cosines of all points with each leave-one-out mean.

    At the Karcher mean :math:`\mu = \sum_m \xi_m \Phi(x_m)` the coefficients are proportional to
    :math:`w_m \theta_m / \sin\theta_m`. Without one point, the other coefficients are unchanged to
    first order: the mean is :math:`\mu - \xi_n \Phi(x_n)`, normalised.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        The Gram matrix of at least two points of unit length.
    coefficients : ndarray of shape (n,)
        Coefficients ξ of the mean of all points, which has unit length.

    Returns
    -------
    ndarray of shape (n, n)
        Column n: the cosines of all points with the mean of those other than n.
    """
    cosines, diagonal = gram @ coefficients, np.diagonal(gram)
    products = cosines[:, None] - gram * coefficients
    squared_norms = 1 - 2 * coefficients * cosines + coefficients**2 * diagonal
    return np.clip(products / np.sqrt(np.maximum(squared_norms, _EPS)), -1.0, 1.0)


def left_out_tangent_residuals(
    gram: NDArray[Any],
    weights: NDArray[np.float64],
    cosines: NDArray[np.float64],
    left_out_cosines: NDArray[np.float64],
    alphas: NDArray[np.float64],
) -> NDArray[np.float64]:
    r"""Return leave-one-out residuals in tangent space, with the reference recomputed.

    With the geodesic kernel the class has the Gram matrix :math:`D (K - c c^\top) D`, where the
    cosines c and :math:`D = \operatorname{diag}(\theta / \sin\theta)` belong to a reference that
    was fitted to the whole class, including the point left out. At the Karcher mean, for example,
    the tangent vectors sum to zero, so each lies in the span of the others, and all residuals would
    be 0. The reference is therefore fitted to the other points only, with the cosines
    :math:`c^{(n)}`, and

    .. math:: r_n = \frac{1/M_{nn} - \alpha}{w_n}\, \Bigl(\frac{g^{(n)}_n}{g_n}\Bigr)^2, \qquad
        M = (B + \alpha I - z z^\top)^{-1}, \quad
        z = W^{1/2} D c^{(n)}, \quad B = W^{1/2} D K D W^{1/2},

    with the Sherman-Morrison formula and a single eigendecomposition of B. This neglects the change
    of D at the other points: a relative change of about 1/n of a factor near 1. Without
    regularisation, at the Karcher mean, it is the residual of the plain kernel times (θ/sin θ)².

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        K, of points of unit length.
    weights : ndarray of shape (n,)
        Positive weights.
    cosines : ndarray of shape (n,)
        Cosines with the reference of all points.
    left_out_cosines : ndarray of shape (n, n)
        Column n: cosines with the reference of the points other than n.
    alphas : ndarray of shape (n_alphas,)
        Values of α.

    Returns
    -------
    ndarray of shape (n, n_alphas)
        The residual of each point from the rest of its class.
    """
    scales = angles_from_cosines(cosines)[1]
    left_out_scales = angles_from_cosines(np.diagonal(left_out_cosines))[1]
    # a point antipodal to the reference of the others has no Log and keeps its scale
    factors = np.where(np.isfinite(left_out_scales), left_out_scales / scales, 1.0) ** 2
    spectrum = class_spectrum(scales[:, None] * gram * scales, weights)
    products = spectrum.vectors.T @ ((np.sqrt(weights) * scales)[:, None] * left_out_cosines)

    def residuals(alpha: float) -> NDArray[np.float64]:
        values = spectrum.floored(alpha)
        shifted = values + alpha
        # 1 - zᵀ(B + α)⁻¹z is the residual of the reference, and not negative
        rest = np.maximum(1 - (1 / shifted) @ np.square(products), 64 * _EPS)
        entries = (spectrum.vectors * products.T) @ (1 / shifted)
        change = entries * (entries / rest)
        inverse = spectrum.row_sums(1 / shifted) + change
        kept = spectrum.row_sums(values / shifted) - alpha * change
        return np.maximum(kept, 0.0) / (inverse * weights) * factors

    return np.column_stack([residuals(float(alpha)) for alpha in alphas])
