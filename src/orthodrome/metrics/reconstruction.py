"""Errors of reconstructing a Gram matrix from a few components, without storing it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .._core.checks import check_numbers, check_positive, numbers_expected
from .._core.status import warn_unless_converged
from .._core.types import Floats
from ..eigen import leading
from ..gram import DenseGram, GramOperator, Scaled

_BLOCK_ELEMENTS = 2**22  # entries of the matrix in one block of rows
# maximum projection relative to the matrix; its fourth power must not overflow
_MAX_PROJECTION = 1e75
_EIGEN_TOL = 1e-12  # relative residual of the eigenvectors with the minimal error
_DENSE_BUDGET = "2GiB"  # memory for the whole matrix, if many components need it


def reconstruction_error(
    operator: GramOperator | ArrayLike,
    coefficients: ArrayLike,
    *,
    projections: ArrayLike | None = None,
) -> float:
    r"""Return the error of reconstructing a Gram matrix from r components.

    .. math:: \mathcal E(A) = \left\| K' - (A K')^\top A K' \right\|_F

    (Schraudolph et al., eq. 22), summed over blocks of rows in float64. This needs two passes over
    K', or one if the projections are given. The result is accurate even if the error is much
    smaller than ‖K'‖.

    Parameters
    ----------
    operator : GramOperator or array-like of shape (n, n)
        K', used as it is. To centre a matrix, use :class:`~orthodrome.gram.Centered`.
    coefficients : array-like of shape (r, n)
        A; each row holds the coefficients of a component over the n points.
    projections : array-like of shape (r, n), optional
        AK', if it is known.

    Returns
    -------
    float
        The error.

    See Also
    --------
    excess_reconstruction_error : The error relative to the minimal error.

    References
    ----------
    Schraudolph, Günter and Vishwanathan, "Fast Iterative Kernel PCA", NIPS 2006.

    Examples
    --------
    >>> K = np.diag([4.0, 3.0, 2.0])
    >>> round(reconstruction_error(K, [[0.5, 0.0, 0.0]]), 6)  # the root of 3² + 2²
    3.605551
    """
    gram, A, scale = _validate(operator, coefficients)
    return scale * _residual(gram, _projections(gram, A, projections, scale))[0]


def excess_reconstruction_error(
    operator: GramOperator | ArrayLike,
    coefficients: ArrayLike,
    *,
    minimal: float | None = None,
    projections: ArrayLike | None = None,
) -> float:
    r"""Return the relative excess of the reconstruction error over the minimal error.

    .. math:: \mathcal E(A) / \mathcal E_{\min} - 1, \qquad
        \mathcal E_{\min} = \min_A \mathcal E(A)

    (Schraudolph et al., §5). The r leading eigenvectors of K' have the minimal error, and an excess
    of about 0.

    Parameters
    ----------
    operator : GramOperator or array-like of shape (n, n)
        K', used as it is.
    coefficients : array-like of shape (r, n)
        A.
    minimal : float, optional
        The minimal error, if it is known. Default: computed from eigenvectors.
    projections : array-like of shape (r, n), optional
        AK', if it is known.

    Returns
    -------
    float
        The excess. If K' has rank r or less, the minimal error is only rounding error; then the
        result is 0.0 if the error is rounding error too, else infinity.

    References
    ----------
    Schraudolph, Günter and Vishwanathan, "Fast Iterative Kernel PCA", NIPS 2006, §5.

    Examples
    --------
    >>> K = np.diag([4.0, 3.0, 2.0])
    >>> excess_reconstruction_error(K, [[0.5, 0.0, 0.0]])
    0.0
    >>> round(excess_reconstruction_error(K, [[0.0, 0.0, 0.5**0.5]]), 3)
    0.387
    """
    gram, A, scale = _validate(operator, coefficients)
    error, size = _residual(gram, _projections(gram, A, projections, scale))
    rounding_error = _residual_rounding_error(gram, size)
    if minimal is None:
        minimum = _minimal_error(gram, min(len(A), gram.shape[0]), size, rounding_error)
    else:
        given = check_positive(minimal, "minimal", "excess_reconstruction_error", or_zero=True)
        minimum = given / scale
    if minimum > rounding_error:
        return error / minimum - 1
    return 0.0 if error <= 10 * rounding_error else math.inf


def _validate(
    operator: GramOperator | ArrayLike, coefficients: ArrayLike
) -> tuple[GramOperator, Floats, float]:
    """Validate the input; return K' and A scaled to avoid overflow and underflow, and the scale."""
    with numbers_expected(operator, "operator", "the reconstruction error"):
        gram = operator if isinstance(operator, GramOperator) else DenseGram(operator)
    A = _rows_over_points(coefficients, gram.shape[0], "coefficients")
    largest = float(np.abs(gram.diagonal()).max())
    # a power of 2, which is exact
    scale = 2.0 ** max(math.frexp(largest)[1], -1000) if 0 < largest < math.inf else 1.0
    return (gram if scale == 1 else Scaled(gram, 1 / scale)), A * math.sqrt(scale), scale


def _rows_over_points(matrix: ArrayLike, n: int, name: str) -> Floats:
    rows = check_numbers(matrix, name, "the reconstruction error", dtype=np.float64)
    if rows.shape[1] != n:
        raise ValueError(
            f"{name} must have one row per component and one column per point, {n}; got shape "
            f"{rows.shape}."
        )
    return rows


def _projections(
    gram: GramOperator, A: Floats, projections: ArrayLike | None, scale: float
) -> Floats:
    """Return AK', shape (r, n), in float64, divided by the square root of the scale."""
    name = "coefficients" if projections is None else "projections"
    with np.errstate(over="ignore", invalid="ignore"):
        if projections is None:
            found = np.asarray(gram @ np.ascontiguousarray(A.T), dtype=np.float64).T
        else:
            found = _rows_over_points(projections, gram.shape[0], name) / math.sqrt(scale)
    if found.shape != A.shape:
        raise ValueError(
            f"projections must have the shape of coefficients, {A.shape}; got {found.shape}."
        )
    if not np.all(np.abs(found) <= _MAX_PROJECTION):
        raise ValueError(
            f"{name} of the reconstruction error are so large compared with the matrix that "
            "squares overflow. Rescale them."
        )
    return found


def _minimal_error(gram: GramOperator, r: int, size: float, rounding_error: float) -> float:
    """Return the error of r exact components; `size` is ‖K'‖."""
    # residuals cannot converge far below the rounding errors of the entries
    tol = max(_EIGEN_TOL, 0.1 * rounding_error / size) if size > 0 else _EIGEN_TOL
    pairs = leading(gram, r, tol=tol, max_iter=1000, random_state=0, memory_budget=_DENSE_BUDGET)
    # for exact components, AK' are eigenvectors times the roots of their eigenvalues
    roots = np.sqrt(np.maximum(pairs.values.astype(np.float64), 0.0))
    minimum = _residual(gram, (pairs.vectors * roots).T)[0]
    if minimum > rounding_error:  # vectors do not converge if their eigenvalues are rounding errors
        warn_unless_converged(
            pairs.status,
            "excess_reconstruction_error, the minimal error",
            f"largest residual {pairs.residuals.max():.1e}; pass minimal if it is known",
        )
    return minimum


def _residual(gram: GramOperator, P: Floats) -> tuple[float, float]:
    """Return ‖K' - PᵀP‖ and ‖K'‖ in one pass over blocks of rows; raise if K' is not finite."""
    n = gram.shape[0]
    step = max(1, _BLOCK_ELEMENTS // n)
    errors, sizes = [], []
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        block = gram.rows(rows).astype(np.float64, copy=False)
        sizes.append(np.linalg.norm(block))
        if not math.isfinite(sizes[-1]):
            invalid = int(np.argmax(~np.isfinite(block).all(axis=1)))
            raise ValueError(f"The matrix must be finite; row {rows[invalid]} has NaN or infinity.")
        block -= P[:, rows].T @ P
        errors.append(np.linalg.norm(block))
    return float(np.linalg.norm(errors)), float(np.linalg.norm(sizes))


def _residual_rounding_error(gram: GramOperator, size: float) -> float:
    """Return the norm up to which a residual may be rounding error."""
    n = gram.shape[0]
    eps = float(np.finfo(gram.dtype).eps)
    # entries of centred matrices are differences and have the rounding errors of their terms
    return eps * (10 * math.sqrt(n) * size + 30 * n * gram.term_size())
