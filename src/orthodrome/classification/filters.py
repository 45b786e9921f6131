r"""Spectral filters of the Gram matrices of classes, with closed-form leave-one-out.

A class is a set of points with weights w and the Gram matrix K. With
:math:`K_w = W^{1/2} K W^{1/2} = U S U^\top`, the residual of another point x from the class is

.. math:: r(x) = k(x, x) - \sum_j f(s_j)\, \bigl(u_j^\top W^{1/2} k_x\bigr)^2, \qquad
    k_x = (k(x, x_n))_n.

The classifiers differ only in the filter f. One eigendecomposition serves every filter and every α,
and also gives the residual of each point of the class from the others.

All functions work on groups of G classes with n points each. α has the shape (G, A): A values for
each class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._core.types import Floats
from .._core.unit import angles_from_cosines

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)

# Minimum α, as a fraction of the trace of K, for which a Cholesky factorisation may replace the
# eigendecomposition; its error is then 1e-10 of k(x, x).
_MIN_SHIFT = 1e-6

# Residuals that differ by less than this fraction of k(x, x) differ only by rounding error.
TIE_TOL = 256 * _EPS

# Rounding error of an entry of a Gram matrix, in ulps (units in the last place) of k(x, x).
_ENTRY_ULPS = 8


@dataclass(frozen=True)
class ClassSpectrum:
    """Eigendecompositions of the weighted Gram matrices of a group of classes.

    Attributes
    ----------
    values : ndarray of shape (G, n)
        Eigenvalues of W^½ K W^½, descending; negative ones are set to 0.
    vectors : ndarray of shape (G, n, n)
        Eigenvectors as columns; complex for a Hermitian matrix.
    weights : ndarray of shape (G, n)
        Weights of the points.
    rounding : ndarray of shape (G,)
        Upper bound of eigenvalues that may be caused by rounding errors of K.
    """

    values: Floats
    vectors: NDArray[Any]
    weights: Floats
    rounding: Floats

    def directions(self) -> NDArray[Any]:
        """Return W^½ U, shape (G, n, n), which maps kernel values to projections."""
        return np.sqrt(self.weights)[..., None] * self.vectors

    def row_sums(self, gains: Floats) -> Floats:
        """Return the diagonal of U diag(gains) Uᵀ, for each column of gains."""
        return squared_magnitudes(self.vectors) @ gains

    def floored(self, alphas: Floats) -> Floats:
        """Return s, raised so that s + α is positive and at least the rounding error.

        The result has shape (G, n, A).
        """
        values, rounding = self.values[..., None], self.rounding[:, None, None]
        raised = np.maximum(values, np.maximum(rounding, _TINY) - alphas[:, None])
        return np.where(values > rounding, values, raised)


def class_spectrum(
    gram: NDArray[Any], weights: Floats, *, entry_size: float | None = None
) -> ClassSpectrum:
    """Decompose the Gram matrices of a group of classes.

    Parameters
    ----------
    gram : ndarray of shape (G, n, n)
        The symmetric or complex Hermitian matrices. They are decomposed in double precision;
        their dtype determines which eigenvalues are rounding errors.
    weights : ndarray of shape (G, n)
        Positive weights.
    entry_size : float, optional
        If entries are differences of larger terms, the magnitude of these terms. It determines the
        rounding error.

    Returns
    -------
    ClassSpectrum
        Eigenvalues and eigenvectors.

    Notes
    -----
    Negative eigenvalues are set to 0, so only the positive part of an indefinite matrix is used.

    Examples
    --------
    >>> class_spectrum(np.array([[[2.0, 1.0], [1.0, 2.0]]]), np.ones((1, 2))).values
    array([[3., 1.]])
    """
    matrices = _weighted(gram, weights)
    # |K_ij| <= √(K_ii K_jj), so relative errors ε of the entries have a norm of at most ε trace(K)
    size = np.trace(matrices, axis1=1, axis2=2).real
    if entry_size is not None:
        size = np.maximum(size, entry_size * weights.sum(axis=1))
    values, vectors = np.linalg.eigh(matrices)
    return ClassSpectrum(
        values=np.maximum(values[:, ::-1], 0.0),
        vectors=np.ascontiguousarray(vectors[..., ::-1]),
        weights=weights,
        rounding=_ENTRY_ULPS * float(np.finfo(gram.dtype).eps) * np.maximum(size, 0.0),
    )


def _weighted(gram: NDArray[Any], weights: Floats) -> NDArray[Any]:
    """Return W^½ K W^½ in double precision."""
    if not np.all(np.isfinite(gram)):
        raise ValueError(
            "The Gram matrix of a class has entries that are not finite: the kernel overflows. "
            "Rescale the data, or choose other parameters of the kernel."
        )
    roots = np.sqrt(weights)
    return roots[..., None] * gram.astype(np.result_type(gram, np.float64)) * roots[..., None, :]


def triangular_directions(
    gram: NDArray[Any], weights: Floats, alpha: float, penalty: float
) -> NDArray[Any] | None:
    """Return the lower triangular D with D Dᴴ = W^½ (P + penalty P²) W^½, P = (K_w + α)⁻¹.

    The residual of a point is then k(x, x) - ‖Dᴴ k_x‖². `gram` and `weights` belong to a single
    class. Return None if α is too small for accurate Cholesky factorisations.
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


class Perturbation:
    r"""Filter of regularised PerTurbo: f(s) = 1/(s + α).

    The residual is the squared distance from Φ(x) to the span of the class, plus α times the
    squared coefficients. The residual of each point of the class from the others is

    .. math:: r_n = \frac{1/P_{nn} - \alpha}{w_n}, \qquad P = (K_w + \alpha I)^{-1}.

    α is not negative. Eigenvalues within rounding error are raised so that s + α is at least this
    error. With α = 0, the filter therefore gives the numerical pseudo-inverse.

    Examples
    --------
    >>> pair = class_spectrum(np.array([[[1.0, 0.5], [0.5, 1.0]]]), np.ones((1, 2)))
    >>> Perturbation().left_out(pair, np.zeros((1, 1))).round(12)  # 1 - k² for both points
    array([[[0.75],
            [0.75]]])
    """

    def gains(self, spectrum: ClassSpectrum, alphas: Floats) -> Floats:
        """Return 1/(s + α), shape (G, n, A)."""
        gains = 1 / (spectrum.floored(alphas) + alphas[:, None])
        return np.where(spectrum.values[..., None] > 0, gains, 0.0)

    def left_out(self, spectrum: ClassSpectrum, alphas: Floats) -> Floats:
        """Return the residual of each point from the rest of its class, shape (G, n, A).

        If α = 0, the residual of a point in the span of the others is 0.
        """
        values = spectrum.floored(alphas)
        shifted = values + alphas[:, None]
        # 1/P - α = (1 - αP)/P, and 1 - α/(s + α) = s/(s + α) has no cancellation
        kept = spectrum.row_sums(values / shifted)
        return kept / spectrum.row_sums(1 / shifted) / spectrum.weights[..., None]

    def directions(self, gram: NDArray[Any], weights: Floats, alpha: float) -> NDArray[Any] | None:
        """Return the directions of :func:`triangular_directions`."""
        return triangular_directions(gram, weights, alpha, penalty=0.0)


class RidgeResidual:
    r"""Filter of kernel ridge regression: f(s) = (s + 2λ)/(s + λ)², λ = α.

    The residual is the squared distance from Φ(x) to its ridge regression on the class, without
    the penalty. The residual of each point of the class from the others is

    .. math:: r_n = \frac{(P K_w P)_{nn}}{w_n P_{nn}^2}, \qquad P = (K_w + \lambda I)^{-1}.

    Examples
    --------
    >>> pair = class_spectrum(np.array([[[1.0, 0.5], [0.5, 1.0]]]), np.ones((1, 2)))
    >>> RidgeResidual().left_out(pair, np.zeros((1, 1))).round(12)
    array([[[0.75],
            [0.75]]])
    """

    def gains(self, spectrum: ClassSpectrum, alphas: Floats) -> Floats:
        """Return (s + 2λ)/(s + λ)², shape (G, n, A)."""
        values = spectrum.floored(alphas)
        shifted = values + alphas[:, None]
        gains = (values + 2 * alphas[:, None]) / shifted / shifted
        return np.where(spectrum.values[..., None] > 0, gains, 0.0)

    def left_out(self, spectrum: ClassSpectrum, alphas: Floats) -> Floats:
        """Return the residual of each point from the rest of its class, shape (G, n, A)."""
        values = spectrum.floored(alphas)
        shifted = values + alphas[:, None]
        # divide P by its largest eigenvalue, so that squares do not overflow
        scaled = shifted.min(axis=1, keepdims=True) / shifted
        kept = spectrum.row_sums(values * scaled**2)
        return kept / (spectrum.row_sums(scaled) ** 2 * spectrum.weights[..., None])

    def directions(self, gram: NDArray[Any], weights: Floats, alpha: float) -> NDArray[Any] | None:
        """Return the directions of :func:`triangular_directions`."""
        # (K + λ)⁻¹ (K + 2λ) (K + λ)⁻¹ = P + λP²
        return triangular_directions(gram, weights, alpha, penalty=alpha)


@dataclass(frozen=True)
class Truncation:
    """Filter of truncated PerTurbo: f(s) = 1/(s + α) for the leading eigenvalues, else 0.

    With α = 0 the residual is the squared distance from Φ(x) to the span of the leading components.

    Parameters
    ----------
    n_components : int
        Number of leading components. If an eigenvalue is within rounding error, its component has
        practically no effect.
    n_folds : int, default=5
        Number of folds for :meth:`left_out`, at most the number of points.
    """

    n_components: int
    n_folds: int = 5

    def gains(self, spectrum: ClassSpectrum, alphas: Floats) -> Floats:
        """Return 1/(s + α) or 0, shape (G, n, A)."""
        gains = Perturbation().gains(spectrum, alphas)
        gains[:, self.n_components :] = 0.0
        return gains

    def left_out(self, group: Any, alphas: Floats) -> Floats:
        """Return the residual of each point of a ClassGroup from the other folds, (G, n, A).

        This replaces leave-one-out, which has no closed form. Fold i holds the points i,
        i + n_folds, and so on. If a class has a single point, its residual is k(x, x).
        """
        gram, weights, n = group.gram, group.weights, group.gram.shape[1]
        diagonal = np.diagonal(gram, axis1=1, axis2=2).real.astype(np.float64)
        residuals = np.repeat(diagonal[..., None], alphas.shape[1], axis=2)
        folds = np.arange(n) % min(self.n_folds, n)
        for fold in range(int(folds.max()) + 1 if n > 1 else 0):
            out, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            spectrum = class_spectrum(gram[:, rest[:, None], rest], weights[:, rest])
            projections = gram[:, out[:, None], rest] @ spectrum.directions()
            residuals[:, out] -= squared_magnitudes(projections) @ self.gains(spectrum, alphas)
        return residuals

    def directions(self, gram: NDArray[Any], weights: Floats, alpha: float) -> None:
        """Return None, because truncation needs the eigendecomposition."""


#: Every filter has ``gains(spectrum, alphas)``, which returns f(s) for the eigenvalues s, and
#: ``directions``.
Filter = Perturbation | RidgeResidual | Truncation


def squared_magnitudes(values: NDArray[Any]) -> Floats:
    """Return |z|² of real or complex numbers as float64."""
    if np.iscomplexobj(values):
        return np.square(values.real, dtype=np.float64) + np.square(values.imag, dtype=np.float64)
    return np.square(values, dtype=np.float64)


def squared_lengths(rows: NDArray[Any]) -> Floats:
    """Return ‖z‖² along the last axis, real or complex."""
    if np.iscomplexobj(rows):
        return squared_lengths(rows.real) + squared_lengths(rows.imag)
    return np.einsum("...j,...j->...", rows, rows, dtype=np.float64)


def tie_within_rounding(residuals: Floats, diagonal: NDArray[Any]) -> Floats:
    """Return nonnegative residuals; those within rounding error of the smallest are set to it.

    If no class captures any part of a point, or every class captures all of it, the residuals
    differ only by rounding error and tie. If the smallest is negative, as for an indefinite kernel,
    it is subtracted from all, which preserves their differences.

    Parameters
    ----------
    residuals : ndarray of shape (m, n_classes) or (m, n_classes, ...)
        k(x, x) minus the part that each class captures; rounding errors or an indefinite kernel
        may make it negative.
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
    allowed = TIE_TOL * np.abs(diagonal).reshape(-1, *[1] * (residuals.ndim - 1))
    return np.where(residuals <= smallest + allowed, smallest, residuals)


def left_out_mean_cosines(gram: Floats, coefficients: Floats) -> Floats:
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
    weights: Floats,
    cosines: Floats,
    left_out_cosines: Floats,
    alphas: Floats,
) -> Floats:
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

    where :math:`g_n` is the n-th diagonal entry of D, and :math:`g^{(n)}_n` is computed from
    :math:`c^{(n)}` instead of c. The Sherman-Morrison formula needs only one eigendecomposition, of
    B. The other entries of D are not recomputed; they are near 1, and would change by about 1/n.
    If α = 0 and the reference is the Karcher mean, r_n is the residual of the plain kernel times
    (θ/sin θ)².

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
    spectrum = class_spectrum((scales[:, None] * gram * scales)[None], weights[None])
    vectors = spectrum.vectors[0]
    products = vectors.T @ ((np.sqrt(weights) * scales)[:, None] * left_out_cosines)
    values = spectrum.floored(alphas[None])[0]
    shifted = values + alphas
    # 1 - zᵀ(B + α)⁻¹z is the residual of the reference, and not negative
    rest = np.maximum(1 - np.square(products).T @ (1 / shifted), 64 * _EPS)
    entries = (vectors * products.T) @ (1 / shifted)
    change = entries * (entries / rest)
    inverse = spectrum.row_sums((1 / shifted)[None])[0] + change
    kept = spectrum.row_sums((values / shifted)[None])[0] - alphas * change
    return np.maximum(kept, 0.0) / (inverse * weights[:, None]) * factors[:, None]
