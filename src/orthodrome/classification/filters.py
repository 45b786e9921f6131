r"""Spectral filters of one class's Gram matrix, with leave-one-out in closed form.

A class is a set of points with weights w and the Gram matrix K. With
:math:`K_w = W^{1/2} K W^{1/2} = U S U^\top`, how far another point x is from the class is

.. math:: r(x) = k(x, x) - \sum_j f(s_j)\, \bigl(u_j^\top W^{1/2} k_x\bigr)^2, \qquad
    k_x = (k(x, x_n))_n,

and only the filter f differs between the classifiers that measure it so. One eigendecomposition
serves every filter, and also the residual of each point of the class from the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._core.checks import check_finite_vector, check_positive, refuse_masked
from .._core.unit import angles_from_cosines

__all__ = [
    "ClassSpectrum",
    "Filter",
    "LeftOutTangents",
    "Perturbation",
    "RidgeResidual",
    "Truncation",
    "captured",
    "class_spectrum",
    "folded_residuals",
    "left_out_mean_cosines",
    "leveled",
    "remainder",
]

# One α, or several.
Alphas = float | NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)

# The least α, as a part of the trace of K, with which a Cholesky factorisation may take the place
# of an eigendecomposition: what is lost is then 1e-10 of k(x, x).
_LEAST_SHIFT = 1e-6

# Residuals that differ by less than this part of k(x, x) are told apart by rounding alone.
_TIE = 256 * _EPS

# Entries of a Gram matrix are wrong by so many units in the last place of the lengths.
_UNITS = 8


@dataclass(frozen=True)
class ClassSpectrum:
    """The eigendecomposition of a class's weighted Gram matrix.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Eigenvalues of W^½ K W^½, descending; 0 for those that are negative.
    vectors : ndarray of shape (n, n)
        The eigenvectors, in columns; complex for a Hermitian matrix.
    weights : ndarray of shape (n,)
        The weights of the points.
    rounding : float
        The size up to which an eigenvalue may be nothing but the rounding of the entries of K.
    """

    values: NDArray[np.float64]
    vectors: NDArray[Any]
    weights: NDArray[np.float64]
    rounding: float

    @property
    def largest(self) -> float:
        """The largest eigenvalue."""
        return float(self.values[0])

    def directions(self) -> NDArray[Any]:
        """Return W^½ U, shape (n, n): kernel values times this are projections."""
        return np.sqrt(self.weights)[:, None] * self.vectors

    def row_sums(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the diagonal of U diag(gains) Uᵀ, for each column of gains."""
        return squared_sizes(self.vectors) @ gains

    def floored(self, alpha: Alphas) -> NDArray[np.float64]:
        """Return s, so far raised where it is rounding that s + α is the rounding, and not 0.

        Of several α, a column for each.
        """
        floor = max(self.rounding, float(np.finfo(np.float64).tiny))
        values = _beside(self.values, alpha)
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
        The symmetric matrix, or a complex Hermitian one; it is decomposed in double precision, but
        trusted to its own.
    weights : ndarray of shape (n,), optional
        Positive weights. Default: all 1.
    entry_size : float, optional
        How large the terms are whose difference an entry is, where that is more than the diagonal.

    Returns
    -------
    ClassSpectrum
        Eigenvalues and eigenvectors.

    Notes
    -----
    The directions of negative eigenvalues count as null: of an indefinite matrix, the positive
    part is taken.

    Examples
    --------
    >>> class_spectrum(np.array([[2.0, 1.0], [1.0, 2.0]])).values
    array([3., 1.])
    """
    gram = _square(gram)
    w = np.ones(len(gram))
    if weights is not None:
        w = check_finite_vector(weights, len(gram), "weights", "class_spectrum")
        if not np.all(w > 0):
            raise ValueError(f"weights of class_spectrum must be positive; got {w.min():g}.")
    if entry_size is not None:
        check_positive(entry_size, "entry_size", "class_spectrum", or_zero=True)
    matrix = _weighted(gram, w)
    eps = float(np.finfo(gram.dtype).eps)
    # |K_ij| <= √(K_ii K_jj): errors of that size have a norm of at most the trace
    size = float(np.trace(matrix).real)
    if entry_size is not None:
        size = max(size, entry_size * float(w.sum()))
    values, vectors = scipy.linalg.eigh(matrix, overwrite_a=True, check_finite=False, driver="evd")
    return ClassSpectrum(
        values=np.maximum(values[::-1], 0.0),
        vectors=np.ascontiguousarray(vectors[:, ::-1]),
        weights=w,
        rounding=_UNITS * eps * max(size, 0.0),
    )


def _square(gram: Any) -> NDArray[Any]:
    """Return a square matrix of real or complex numbers, in its own precision."""
    refuse_masked(gram, "gram", "class_spectrum")
    try:
        matrix = np.asarray(gram)
    except ValueError:  # lists of unlike lengths
        matrix = np.empty((0, 0))
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] > 0
    if not square or matrix.dtype.kind not in "fciu":
        raise ValueError(
            "gram of class_spectrum must be a square matrix of numbers, of at least one row; got "
            f"{matrix.dtype} of shape {matrix.shape}."
        )
    return matrix if matrix.dtype.kind in "fc" else matrix.astype(np.float64)


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


def _inverse(gram: NDArray[Any], weights: NDArray[np.float64], alpha: float) -> NDArray[Any] | None:
    """Return (K_w + α)⁻¹ by a Cholesky factorisation; None where α is too small to trust it."""
    matrix = _weighted(gram, weights)
    if alpha < _LEAST_SHIFT * float(np.trace(matrix).real):
        return None
    np.fill_diagonal(matrix, np.diagonal(matrix) + alpha)
    factorise, invert = scipy.linalg.get_lapack_funcs(("potrf", "potri"), (matrix,))
    factor, failed = factorise(matrix, lower=True, overwrite_a=True)
    if failed:  # not positive semidefinite: the spectrum knows what to do
        return None
    inverse, _ = invert(factor, lower=True, overwrite_c=True)
    lower = np.tril(inverse, -1)
    return lower + lower.conj().T + np.diag(np.diagonal(inverse).real)


def _lower_factor(matrix: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[Any]:
    """Return the lower triangular D with D Dᴴ = W^½ A W^½, of a positive definite matrix."""
    return np.sqrt(weights)[:, None] * np.linalg.cholesky(matrix)


class Filter(Protocol):
    """What tells a classifier of this family from another."""

    def gains(self, spectrum: ClassSpectrum) -> NDArray[np.float64]:
        """Return f(s) for each eigenvalue; of several α, a column for each."""
        ...

    def directions(self, gram: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[Any] | None:
        """Return a lower triangular D for which the class captures ‖Dᵀ k_x‖², without the spectrum.

        None where there is no way.
        """
        ...


def _beside(column: NDArray[Any], alpha: Alphas) -> NDArray[Any]:
    """Return a column that goes with α, one or several."""
    return column[:, None] if np.ndim(alpha) else column


@dataclass(frozen=True)
class Perturbation:
    r"""PerTurbo, regularised: f(s) = 1/(s + α).

    The residual is the squared distance from Φ(x) to the span of the class, in which long
    coefficients cost α each. Each point of the class has, from the others,

    .. math:: r_n = \frac{1/P_{nn} - \alpha}{w_n}, \qquad P = (K_w + \alpha I)^{-1}.

    Parameters
    ----------
    alpha : float, or ndarray of shape (n_alphas,)
        Not negative; of several, what is returned has a column for each. What is below the rounding
        of K counts as that rounding, but only for eigenvalues that are rounding themselves: α = 0
        is the pseudo-inverse, as far as K tells.

    Examples
    --------
    >>> pair = class_spectrum(np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> Perturbation(alpha=0.0).left_out(pair).round(12)  # 1 - k², of either from the other
    array([0.75, 0.75])
    """

    alpha: Alphas

    def gains(self, spectrum: ClassSpectrum) -> NDArray[np.float64]:
        """Return 1/(s + α)."""
        gains = 1 / (spectrum.floored(self.alpha) + self.alpha)
        return np.where(_beside(spectrum.values, self.alpha) > 0, gains, 0.0)

    def left_out(self, spectrum: ClassSpectrum) -> NDArray[np.float64]:
        """Return the residual of each point from the rest of its class, shape (n,).

        A point in the span of the others, as every point with a part in a null direction is, has
        the residual 0 if α = 0.
        """
        values = spectrum.floored(self.alpha)
        shifted = values + self.alpha
        # 1/P - α = (1 - αP)/P, and 1 - α/(s + α) = s/(s + α) is no difference
        kept = spectrum.row_sums(values / shifted)
        return kept / spectrum.row_sums(1 / shifted) / _beside(spectrum.weights, self.alpha)

    def directions(self, gram: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[Any] | None:
        """Return the lower triangular D for which the class captures ‖Dᵀ k_x‖².

        By Cholesky factorisations instead of the spectrum: for one α, and for a matrix that is
        known to be positive semidefinite. None where α is too small for it.
        """
        inverse = _inverse(gram, weights, float(self.alpha))
        return None if inverse is None else _lower_factor(inverse, weights)


@dataclass(frozen=True)
class RidgeResidual:
    r"""Kernel ridge regression onto the class: f(s) = (s + 2λ)/(s + λ)².

    The residual is the squared distance from Φ(x) to its ridge regression on the class, without
    the penalty. Each point of the class has, from the others,

    .. math:: r_n = \frac{(P K_w P)_{nn}}{w_n P_{nn}^2}, \qquad P = (K_w + \lambda I)^{-1}.

    Parameters
    ----------
    alpha : float, or ndarray of shape (n_alphas,)
        λ, not negative, one or several; 0 is the pseudo-inverse, as for :class:`Perturbation`.

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
        return np.where(_beside(spectrum.values, self.alpha) > 0, gains, 0.0)

    def left_out(self, spectrum: ClassSpectrum) -> NDArray[np.float64]:
        """Return the residual of each point from the rest of its class, shape (n,)."""
        values = spectrum.floored(self.alpha)
        shifted = values + self.alpha
        # P by its largest term, so that squares do not overflow
        scaled = shifted.min(axis=0) / shifted
        kept = spectrum.row_sums(values * scaled**2)
        return kept / (spectrum.row_sums(scaled) ** 2 * _beside(spectrum.weights, self.alpha))

    def directions(self, gram: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[Any] | None:
        """Return D, as :meth:`Perturbation.directions` does."""
        inverse = _inverse(gram, weights, float(self.alpha))
        if inverse is None:
            return None
        # (K + λ)⁻¹ (K + 2λ) (K + λ)⁻¹ = P + λP²
        return _lower_factor(inverse + self.alpha * (inverse @ inverse), weights)


@dataclass(frozen=True)
class Truncation:
    """PerTurbo, truncated: f(s) = 1/(s + α) for the leading eigenvalues, 0 for the others.

    With α = 0 the residual is the squared distance from Φ(x) to the span of the leading components.
    There is no closed form for the points of the class itself; see :func:`folded_residuals`.

    Parameters
    ----------
    n_components : int
        How many; those that are rounding capture nothing all the same.
    alpha : float, or ndarray of shape (n_alphas,), default=0.0
        Not negative.
    """

    n_components: int
    alpha: Alphas = 0.0

    def gains(self, spectrum: ClassSpectrum) -> NDArray[np.float64]:
        """Return 1/(s + α) or 0."""
        leading = np.arange(len(spectrum.values)) < self.n_components
        gains = Perturbation(self.alpha).gains(spectrum)
        return np.where(_beside(leading, self.alpha), gains, 0.0)

    def directions(self, gram: NDArray[Any], weights: NDArray[np.float64]) -> None:
        """Return None: which eigenvalues lead, the spectrum must say."""
        return


def captured(projections: NDArray[Any], gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Σ f(s) projection²: how much of each point the class accounts for.

    Parameters
    ----------
    projections : ndarray of shape (m, n)
        Kernel values with the class times :meth:`ClassSpectrum.directions`.
    gains : ndarray of shape (n,) or (n, n_filters)
        f(s) of one filter, or of several.

    Returns
    -------
    ndarray of shape (m,) or (m, n_filters)
        To be taken from k(x, x); see :func:`remainder`.
    """
    return squared_sizes(projections) @ gains


def squared_sizes(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return |z|² of real or complex numbers, in float64."""
    if np.iscomplexobj(values):
        return np.square(values.real, dtype=np.float64) + np.square(values.imag, dtype=np.float64)
    return np.square(values, dtype=np.float64)


def squared_lengths(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return ‖z‖² of each row, real or complex."""
    parts = (rows.real, rows.imag) if np.iscomplexobj(rows) else (rows,)
    found = [np.einsum("ij,ij->i", part, part, dtype=np.float64) for part in parts]
    return found[0] if len(found) == 1 else found[0] + found[1]


def remainder(diagonal: NDArray[Any], taken: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return k(x, x) less what is captured: the residual of each point from one class.

    Rounding may make it negative, and so may a kernel that is not definite: :func:`leveled` sees
    to that, once the residuals from all classes are known.

    Parameters
    ----------
    diagonal : ndarray of shape (m,)
        k(x, x) of each point.
    taken : ndarray of shape (m,) or (m, ...)
        What :func:`captured` returned.
    """
    own = np.asarray(diagonal, dtype=np.float64)
    return own.reshape(-1, *[1] * (taken.ndim - 1)) - taken


def leveled(residuals: NDArray[np.float64], sizes: NDArray[Any]) -> NDArray[np.float64]:
    """Return residuals, none negative, of which those near the least by rounding are the least.

    Where no class captures anything of a point, or each captures all, the residuals differ by
    rounding; so they tie. Where the least is negative all are raised by it, so that how they differ
    stays as it is: of a kernel that is not definite, negative ones tell classes apart as well.

    Parameters
    ----------
    residuals : ndarray of shape (m, n_classes) or (m, n_classes, ...)
        What :func:`remainder` returned, for each class.
    sizes : ndarray of shape (m,)
        k(x, x) of each point.

    Examples
    --------
    >>> leveled(np.array([[0.5 + 1e-16, 0.5, 0.7]]), np.array([1.0]))
    array([[0.5, 0.5, 0.7]])
    >>> leveled(np.array([[-0.5, -0.25, 0.5]]), np.array([1.0]))
    array([[0.  , 0.25, 1.  ]])
    """
    least = residuals.min(axis=1, keepdims=True)
    residuals = residuals - np.minimum(least, 0.0)
    least = np.maximum(least, 0.0)
    allowed = _TIE * np.abs(sizes).reshape(-1, *[1] * (residuals.ndim - 1))
    return np.where(residuals <= least + allowed, least, residuals)


def folded_residuals(
    gram: NDArray[Any],
    weights: NDArray[np.float64],
    kept: Filter,
    n_folds: int = 5,
) -> NDArray[np.float64]:
    """Return the residual of each point of a class from those of the other folds.

    Every n_folds-th point is in one fold. It is for filters without a closed form. A point without
    any other has the residual k(x, x).

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        The Gram matrix of the class.
    weights : ndarray of shape (n,)
        Positive weights.
    kept : Filter
        The filter.
    n_folds : int, default=5
        How many folds; no more than there are points.
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
        residuals[out] = remainder(residuals[out], captured(projections, kept.gains(spectrum)))
    return residuals


def left_out_mean_cosines(
    gram: NDArray[np.float64], coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Return the cosines of points with the mean of the others, for each point left out.

    At the Karcher mean :math:`\mu = \sum_m \xi_m \Phi(x_m)` the coefficients are proportional to
    :math:`w_m \theta_m / \sin\theta_m`. Without one point, the others keep theirs to first order:
    the mean is :math:`\mu - \xi_n \Phi(x_n)`, brought to unit length.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        The Gram matrix of points of unit length, n at least 2.
    coefficients : ndarray of shape (n,)
        ξ of the mean of all, which has unit length.

    Returns
    -------
    ndarray of shape (n, n)
        Column n: the cosines of all points with the mean of those other than n.
    """
    products = (gram @ coefficients)[:, None] - gram * coefficients
    squares = 1 - 2 * coefficients * (gram @ coefficients) + coefficients**2 * np.diagonal(gram)
    return np.clip(products / np.sqrt(np.maximum(squares, _EPS)), -1.0, 1.0)


@dataclass(frozen=True)
class LeftOutTangents:
    r"""Leave-one-out in a tangent space whose base point moves with the point left out.

    With the geodesic kernel the class has the Gram matrix :math:`D (K - c c^\top) D`, where the
    cosines c and :math:`D = \operatorname{diag}(\theta / \sin\theta)` belong to a reference that
    was fitted to the class. Held fixed, it would know the point left out. (At the Karcher mean the
    tangent vectors sum to zero, each lies in the span of the others, and the residuals would be 0.)
    So the cosines are those with the reference of the others, :math:`c^{(n)}`, and

    .. math:: r_n = \frac{1/M_{nn} - \alpha}{w_n}\, \Bigl(\frac{g^{(n)}_n}{g_n}\Bigr)^2, \qquad
        M = (B + \alpha I - z z^\top)^{-1}, \quad
        z = W^{1/2} D c^{(n)}, \quad B = W^{1/2} D K D W^{1/2},

    by the formula of Sherman and Morrison from the one eigendecomposition of B. What is neglected
    is the change of D at the points that stay: a fraction of about 1/n of a factor near 1. Without
    regularisation, at the Karcher mean, this is the plain kernel's residual times
    (θ/sin θ)².

    Parameters
    ----------
    spectrum : ClassSpectrum
        Of B, as the Gram matrix D K D with the weights w.
    products : ndarray of shape (n, n)
        Uᵀ z, a column for each point left out.
    factors : ndarray of shape (n,)
        :math:`(g^{(n)}_n / g_n)^2`.
    """

    spectrum: ClassSpectrum
    products: NDArray[np.float64]
    factors: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        gram: NDArray[Any],
        weights: NDArray[np.float64],
        cosines: NDArray[np.float64],
        left_out_cosines: NDArray[np.float64],
    ) -> LeftOutTangents:
        """Make it of the Gram matrix of points of unit length and of cosines with references.

        Parameters
        ----------
        gram : ndarray of shape (n, n)
            K.
        weights : ndarray of shape (n,)
            Positive weights.
        cosines : ndarray of shape (n,)
            With the reference of all.
        left_out_cosines : ndarray of shape (n, n)
            Column n: with the reference of the points other than n.
        """
        stretches = angles_from_cosines(cosines)[1]
        moved = angles_from_cosines(np.diagonal(left_out_cosines))[1]
        spectrum = class_spectrum(stretches[:, None] * gram * stretches, weights)
        scaled = (np.sqrt(weights) * stretches)[:, None] * left_out_cosines
        # a point opposite to the reference of the others has no Log; it keeps its old factor
        factors = np.where(np.isfinite(moved), moved / stretches, 1.0) ** 2
        return cls(spectrum, spectrum.vectors.T @ scaled, factors)

    def perturbation(self, alpha: float) -> NDArray[np.float64]:
        """Return the residual of each point from the rest of its class, shape (n,)."""
        spectrum = self.spectrum
        values = spectrum.floored(alpha)
        shifted = values + alpha
        # 1 - zᵀ(B + α)⁻¹z is the residual of the reference, and not negative
        rest = np.maximum(1 - (1 / shifted) @ np.square(self.products), 64 * _EPS)
        entries = (spectrum.vectors * self.products.T) @ (1 / shifted)
        change = entries * (entries / rest)
        inverse = spectrum.row_sums(1 / shifted) + change
        kept = spectrum.row_sums(values / shifted) - alpha * change
        return np.maximum(kept, 0.0) / (inverse * spectrum.weights) * self.factors
