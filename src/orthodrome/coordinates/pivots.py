"""Partial Cholesky factors of Gram matrices from chosen pivots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from .._core.checks import check_integer, check_positive, check_random_state, check_sample_weight
from .._core.random import one_seed
from .._core.threads import run_over_rows
from .._core.types import Array, Floats, Indices
from ..gram import GramOperator
from ..gram.base import check_operator
from ..rows.base import rows_at

# Relative residual below which a point lies in the span of the pivots. The triangular factor then
# has a condition number of at most 1e6 in float64, so features keep ten digits.
RANK_TOLERANCE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}

# Rows proposed at once. Larger blocks are faster per row, but more rows are rejected.
_BLOCK = 64

#: ``draw(residual)`` returns row numbers (none when finished) and a threshold per row. A row is
#: rejected if its residual is below its threshold by the time it is processed.
Draw = Callable[[Floats], tuple[Indices, Floats]]


@dataclass(frozen=True)
class PartialCholesky:
    r"""A factor of a positive semidefinite matrix from a few of its rows, K ≈ FFᵀ.

    Attributes
    ----------
    pivots : ndarray of shape (rank,)
        Row numbers, in the order in which they were chosen.
    factor : ndarray of shape (n, rank)
        F, in float64. Its first j columns are the factor from the first j pivots.
    residual : ndarray of shape (n,)
        The diagonal of K - FFᵀ.
    trace_error : float
        The (weighted) sum of the residual, relative to the trace.
    """

    pivots: Indices
    factor: Floats
    residual: Floats
    trace_error: float


def partial_cholesky(
    operator: GramOperator,
    *,
    max_rank: int,
    tol: float = 0.0,
    pivots: str | ArrayLike = "rpcholesky",
    sample_weight: ArrayLike | None = None,
    random_state: Any = None,
) -> PartialCholesky:
    r"""Factor a positive semidefinite Gram matrix, :math:`K \approx F F^\top`, from a few rows.

    ``"rpcholesky"`` draws each row with a probability proportional to its residual,
    :math:`w_n (K - FF^\top)_{nn}`. Rows are proposed in blocks and accepted by rejection sampling,
    so they are distributed as if drawn one at a time; copies of a row are never chosen. Only the
    diagonal and the proposed rows are evaluated.

    Parameters
    ----------
    operator : GramOperator
        The matrix K.
    max_rank : int
        Maximum number of rows.
    tol : float, default=0.0
        Stop once the weighted trace of K - FFᵀ is at most tol times that of K.
    pivots : {"rpcholesky", "auto", "uniform", "k-means++"} or array-like, default="rpcholesky"
        How to choose rows; or row numbers, in order. ``"auto"`` is rpcholesky, since the residuals
        of all rows are computed in any case. ``"k-means++"`` draws rows with a probability
        proportional to the squared distance from the nearest chosen row. Rows that are linearly
        dependent on previous ones are skipped.
    sample_weight : array-like of shape (n,), optional
        Weights. For rpcholesky and k-means++, a weight of 2 is equivalent to repeating the row.
        For uniform, rows of large weight tend to be drawn earlier; no row is drawn twice.
    random_state : int, RandomState, Generator or None
        Seed or generator.

    Returns
    -------
    PartialCholesky
        Pivots, factor and residual.

    Notes
    -----
    At tight tolerances rpcholesky needs no more rows than uniform, and far fewer if the data have
    small, distant clusters. At loose tolerances (a few percent of the trace) and with heavy tails
    it needs a few more, since the first pivots are outliers.

    References
    ----------
    Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky: practical approximation of a kernel
    matrix with few entry evaluations", 2022; Epperly, Tropp and Webber, "Embrace rejection: kernel
    matrix approximation by accelerated randomly pivoted Cholesky", 2024.

    Examples
    --------
    >>> from orthodrome.gram import DenseGram
    >>> Y = np.arange(12.0).reshape(6, 2)
    >>> found = partial_cholesky(DenseGram(Y @ Y.T), max_rank=6, random_state=0)
    >>> found.factor.shape, bool(found.trace_error < 1e-12)
    ((6, 2), True)
    """
    owner = "partial_cholesky"
    check_operator(operator, owner)
    check_integer(max_rank, "max_rank", owner)
    check_positive(tol, "tol", owner, or_zero=True)
    check_random_state(random_state, owner)
    n = operator.shape[0]
    given = check_sample_weight(sample_weight, n, owner)
    weights = np.ones(n) if given is None else given
    random = np.random.default_rng(one_seed(random_state))
    if isinstance(pivots, str) and pivots in ("auto", "rpcholesky"):
        draw = _draw_by_residual(weights, max_rank, random)
    else:
        draw = _draw_in_order(pivot_rows(operator, pivots, max_rank, weights, random))
    return _factor(operator, draw, min(max_rank, n), tol, weights)


def pivot_rows(
    operator: GramOperator, pivots: Any, count: int, weights: Floats, random: np.random.Generator
) -> Indices:
    """Return rows in order: given, or chosen without a tolerance."""
    n = operator.shape[0]
    if isinstance(pivots, str):
        if pivots == "rpcholesky":
            random = np.random.default_rng(one_seed(random))  # as in partial_cholesky
            draw = _draw_by_residual(weights, count, random)
            return _factor(operator, draw, min(count, n), 0.0, weights, only_pivots=True).pivots
        if pivots == "uniform":
            return uniform_rows(count, weights, random)
        if pivots == "k-means++":
            return _kmeans_plus_plus(operator, weights, count, random)
        raise ValueError(
            "Anchors must be 'rpcholesky', 'uniform', 'k-means++', 'auto', row numbers, or points; "
            f"got {pivots!r}."
        )
    return checked_rows(pivots, n)


def uniform_rows(count: int, weights: Floats, random: Any) -> Indices:
    """Draw at most `count` different rows, with probabilities proportional to the weights."""
    size = min(count, int(np.count_nonzero(weights)))
    return random.choice(len(weights), size=size, replace=False, p=weights / weights.sum())


def pilot_size(n: int, count: int) -> int:
    """Return the number of anchors from which to compute `count` starting vectors."""
    return max(8 * count, min(256, n // 16))


def checked_rows(given: Any, n: int) -> Indices:
    """Check row numbers; return them with negative ones counted from the end."""
    try:
        rows = np.asarray(given)
    except ValueError:  # ragged lists
        rows = np.array(None)
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
        raise ValueError(
            "Anchors given as row numbers must be a non-empty 1-D array of integers; got "
            f"{rows.dtype} of shape {rows.shape}."
        )
    outside = (rows < -n) | (rows >= n)
    if outside.any():
        raise ValueError(
            f"Anchor row {rows[outside][0]} is out of range for {n} points (0 to {n - 1})."
        )
    return rows.astype(np.intp) % n


def _kmeans_plus_plus(
    operator: GramOperator, weights: Floats, count: int, random: np.random.Generator
) -> Indices:
    """Draw rows with k-means++ (Arthur and Vassilvitskii, 2007), one candidate per step."""
    diagonal = operator.diagonal().astype(np.float64)
    error = 16 * float(np.finfo(operator.dtype).eps) * np.abs(diagonal)
    nearest = np.full(len(diagonal), np.inf)
    chosen: list[int] = []
    scores = weights
    while len(chosen) < count:
        chosen.append(int(rows_at(scores, random.random(1))[0]))
        distances = diagonal + diagonal[chosen[-1]] - 2.0 * operator.rows(chosen[-1:])[0]
        nearest = np.minimum(nearest, np.where(distances > error, distances, 0.0))
        nearest[chosen[-1]] = 0.0
        scores = weights * nearest
        if not scores.any():
            break
    return np.array(chosen, dtype=np.intp)


def _draw_by_residual(weights: Floats, max_rank: int, random: np.random.Generator) -> Draw:
    block = min(_BLOCK, max(1, max_rank // 4))

    def draw(residual: Floats) -> tuple[Indices, Floats]:
        rows = rows_at(weights * residual, random.random(block))
        return rows, random.random(block) * residual[rows]

    return draw


def _draw_in_order(rows: Indices) -> Draw:
    blocks = iter([rows[i : i + _BLOCK] for i in range(0, len(rows), _BLOCK)])

    def draw(_residual: Floats) -> tuple[Indices, Floats]:
        block = next(blocks, rows[:0])
        return block, np.zeros(len(block))

    return draw


def _factor(
    operator: GramOperator,
    draw: Draw,
    max_rank: int,
    tol: float,
    weights: Floats,
    *,
    only_pivots: bool = False,
) -> PartialCholesky:
    """Process blocks of rows until the tolerance or the rank is reached, or no rows remain.

    With `only_pivots`, the columns of the last block, which take longest, are not computed.
    """
    diagonal = operator.diagonal().astype(np.float64)
    floor = RANK_TOLERANCE[np.dtype(operator.dtype)] * np.abs(diagonal)
    residual = np.where(diagonal > 0, diagonal, 0.0)
    total = float(weights @ residual)
    columns = np.empty((max_rank, len(residual)))  # memory of unused rows is never touched
    pivots: list[int] = []
    while len(pivots) < max_rank:
        eligible = np.where(residual > floor, residual, 0.0)
        if not float(weights @ eligible) > tol * total:
            break
        rows, thresholds = draw(eligible)
        if not len(rows):
            break
        rank = len(pivots)
        values = operator.rows(rows).astype(np.float64, copy=False)
        inner = values[:, rows] - columns[:rank, rows].T @ columns[:rank, rows]
        # both are residuals, up to rounding; with the larger one a row might be proposed forever
        residual[rows] = np.minimum(residual[rows], np.diagonal(inner))
        accepted, triangle = _accept(inner, thresholds, floor[rows], max_rank - rank)
        if not len(accepted):
            continue
        chosen = rows[accepted]
        if only_pivots and rank + len(chosen) == max_rank:
            pivots += chosen.tolist()
            break
        _eliminate(columns, rank, chosen, values[accepted], triangle, residual)
        new = columns[rank : rank + len(accepted)]
        kept = _columns_needed(new, residual, weights, tol * total) if tol else len(new)
        if kept < len(accepted):
            residual += np.einsum("ij,ij->j", new[kept:], new[kept:])
        pivots += chosen[:kept].tolist()
        residual[pivots] = 0.0
    error = float(weights @ np.maximum(residual, 0.0)) / total if total > 0 else 0.0
    return PartialCholesky(np.array(pivots, np.intp), columns[: len(pivots)].T, residual, error)


def _accept(
    inner: Floats, thresholds: Floats, floor: Floats, max_count: int
) -> tuple[Indices, Floats]:
    """Return the proposals whose residual exceeds their threshold, in order, and their factor.

    `inner` is the residual of K among the proposals. The factor is the lower triangle L with
    LLᵀ = inner for the accepted rows.
    """
    residual = inner.copy()
    accepted: list[int] = []
    columns = np.zeros((len(inner), min(max_count, len(inner))))
    for i in range(len(inner)):
        if len(accepted) == columns.shape[1]:
            break
        if residual[i, i] > max(thresholds[i], floor[i]):
            column = residual[:, i] / np.sqrt(residual[i, i])
            column[accepted] = 0.0
            residual -= np.outer(column, column)
            columns[:, len(accepted)] = column
            accepted.append(i)
    indices = np.array(accepted, dtype=np.intp)
    return indices, np.tril(columns[indices][:, : len(accepted)])


def _eliminate(
    columns: Floats, rank: int, chosen: Indices, values: Floats, triangle: Floats, residual: Floats
) -> None:
    """Append the columns of new pivots to the factor, and update the residual."""
    at_pivots = columns[:rank, chosen].T.copy()
    new, solve = slice(rank, rank + len(chosen)), scipy.linalg.blas.dtrsm

    def update(points: slice) -> None:
        block = values[:, points] - at_pivots @ columns[:rank, points]
        # solves for the transpose, in place
        solve(1.0, triangle, block.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        columns[new, points] = block
        residual[points] -= np.einsum("ij,ij->j", block, block)

    work = len(values) * columns[:rank].size + len(values) ** 2 * len(residual)
    run_over_rows(update, len(residual), work=work)


def _columns_needed(new: Floats, residual: Floats, weights: Floats, goal: float) -> int:
    """Return how many of the new columns are needed to reach the goal; all if it is not reached."""
    captured = np.square(new) @ weights
    after = float(weights @ np.maximum(residual, 0.0)) + captured.sum() - np.cumsum(captured)
    reached = np.flatnonzero(after <= goal)
    return int(reached[0]) + 1 if len(reached) else len(new)


def times_decoder(values: Array, decoder: Array) -> Array:
    """Return values @ decoder; the decoder is an upper triangle, which halves the work."""
    (multiply,) = scipy.linalg.get_blas_funcs(("trmm",), (values,))
    triangle = decoder.astype(values.dtype, copy=False).T
    return np.asarray(multiply(1.0, triangle, values.T, lower=1).T)


def independent_points(matrix: Array, tol: float) -> tuple[Indices, Floats]:
    r"""Return linearly independent points that span all points, and the decoder for features.

    The decoder maps kernel values with these points to features. It is :math:`R^{-1}`, where
    :math:`K_{mm} = R^\top R` is the Gram matrix of these points. The features
    :math:`k(x, \cdot)\,R^{-1}` have the inner products
    :math:`k(x, \cdot)\,K_{mm}^{-1} k(\cdot, y)`.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        The Gram matrix of the points.
    tol : float
        A point is dropped if its residual is less than this fraction of its squared length.

    Returns
    -------
    kept : ndarray of shape (rank,)
        Indices of the points kept.
    decoder : ndarray of shape (rank, rank)
        R⁻¹.
    """
    matrix = matrix.astype(np.float64)
    if not np.all(np.isfinite(matrix)):
        raise ValueError(
            "Kernel values overflow at the anchors; rescale the data, or change the kernel."
        )
    diagonal = np.diagonal(matrix)
    bad = (diagonal < 0) | ((diagonal == 0) & np.any(matrix != 0, axis=1))
    if bad.any():
        raise ValueError(_NOT_POSITIVE.format(where=f"at anchor {int(np.flatnonzero(bad)[0])}"))
    lengths = np.sqrt(diagonal)
    nonzero = np.flatnonzero(lengths > 0)
    scaled = matrix[np.ix_(nonzero, nonzero)] / np.outer(lengths[nonzero], lengths[nonzero])
    if not len(nonzero):
        return nonzero, np.zeros((0, 0))
    factor, order, rank, _ = scipy.linalg.lapack.dpstrf(scaled, tol=tol)
    order = order[: len(nonzero)] - 1
    kept, dropped = order[:rank], order[rank:]
    triangle = np.triu(factor[:rank, :rank])
    # for a positive semidefinite matrix, the residual of the dropped points is rounding error
    products = factor[:rank, rank:].T @ factor[:rank, rank:]
    residual = np.abs(scaled[np.ix_(dropped, dropped)] - products)
    if np.any(residual > _INDEFINITE_TOL):
        worst = int(nonzero[dropped[residual.max(axis=0).argmax()]])
        raise ValueError(_NOT_POSITIVE.format(where=f"at anchor {worst}"))
    inverse = scipy.linalg.lapack.dtrtri(triangle)[0]
    return nonzero[kept], inverse / lengths[nonzero[kept]][:, None]


_NOT_POSITIVE = (
    "The kernel is not positive definite on these data ({where}), so a Nyström approximation is "
    "meaningless. Use another kernel, or fit without anchors."
)

# Larger errors, relative to k(x, x), are not rounding errors. In trials, float32 matrices passed as
# float64 had errors up to 2e-4 (1e-3 in eigenvalues); indefinite kernels (sigmoid, wave) had 0.02.
_INDEFINITE_TOL = 1e-3


def check_captured(captured: Floats, diagonal: Floats) -> None:
    """Raise if features are longer than their points: the kernel is not positive definite.

    `captured` are squared lengths of features, `diagonal` is k(x, x) of the same points.
    """
    size = np.abs(diagonal)
    excess = captured - diagonal - _INDEFINITE_TOL * size
    # rounding errors scale with the largest value
    if np.any(excess > float(np.finfo(np.float32).eps) * size.max(initial=0.0)):
        worst = int(np.argmax(excess))
        where = (
            f"k(x, x) is {diagonal[worst]:.3g}, less than {captured[worst]:.3g}, the squared "
            "length of its projection on the anchors"
        )
        raise ValueError(_NOT_POSITIVE.format(where=where))


def check_remainder(matrix: Floats, features: Floats) -> None:
    """Raise if the residual K - FFᵀ of a Gram matrix and its features has a negative eigenvalue.

    Parameters
    ----------
    matrix : ndarray of shape (s, s)
        The Gram matrix of a few points.
    features : ndarray of shape (s, m)
        Their features from anchors.
    """
    check_captured(np.einsum("ij,ij->i", features, features), np.diagonal(matrix))
    lengths = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    nonzero = lengths > 0
    residual = (matrix - features @ features.T)[np.ix_(nonzero, nonzero)]
    residual /= np.outer(lengths[nonzero], lengths[nonzero])
    if nonzero.any():
        smallest = float(scipy.linalg.eigvalsh(residual, subset_by_index=[0, 0])[0])
        if smallest < -10 * _INDEFINITE_TOL:
            where = f"given the anchors, an eigenvalue of the normalised matrix is {smallest:.2g}"
            raise ValueError(_NOT_POSITIVE.format(where=where))


def check_zero_matrix(operator: GramOperator) -> None:
    """Raise if a matrix with no positive diagonal entry has entries other than 0.

    The first rows are checked. If they are 0, a product with the matrix is checked too.
    """
    n = operator.shape[0]
    bad = operator.rows(np.arange(min(32, n))).any(axis=1)
    if not bad.any():
        bad = np.asarray(operator @ np.cos(np.arange(n)).astype(operator.dtype)) != 0
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        where = f"no k(x, x) is positive, and row {row} of the matrix is not 0"
        raise ValueError(_NOT_POSITIVE.format(where=where))
