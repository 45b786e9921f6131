"""Partial Cholesky factors of Gram matrices by chosen pivots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_integer, check_positive, check_random_state, check_sample_weight
from .._core.random import one_seed
from .._core.threads import run_over_rows
from ..gram import GramOperator
from ..gram.base import check_operator
from ..rows.base import rows_at

# Relative residual below which a point lies in the span of the pivots. The triangular factor then
# has a condition number of at most 1e6 in float64, so that features keep ten digits.
PARTS = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}

# Rows per round. Larger blocks are faster per row, but more rows are rejected.
_BLOCK = 64

#: ``draw(residual)`` proposes rows, none at the end, and a threshold for each: a row is rejected
#: if its residual is below it when it is processed.
Draw = Callable[[NDArray[np.float64]], tuple[NDArray[np.intp], NDArray[np.float64]]]


@dataclass(frozen=True)
class PartialCholesky:
    r"""A factor of a positive semidefinite matrix from a few of its rows, K ≈ FFᵀ.

    Attributes
    ----------
    pivots : ndarray of shape (rank,)
        The rows, in the order in which they were taken.
    factor : ndarray of shape (n, rank)
        F, in float64. Its first j columns are the factor by the first j pivots.
    residual : ndarray of shape (n,)
        The diagonal of K - FFᵀ.
    trace_error : float
        The (weighted) sum of the residual, relative to the trace.
    """

    pivots: NDArray[np.intp]
    factor: NDArray[np.float64]
    residual: NDArray[np.float64]
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
    r"""Factor a positive semidefinite Gram matrix, :math:`K \approx F F^\top`, by chosen rows.

    ``"rpcholesky"`` draws each row with a probability proportional to its residual,
    :math:`w_n (K - FF^\top)_{nn}`. Rows are proposed in blocks and accepted by rejection sampling,
    so that their distribution is that of single draws; copies of a row are never taken. Only the
    diagonal and the proposed rows are evaluated.

    Parameters
    ----------
    operator : GramOperator
        The matrix K.
    max_rank : int
        The most rows.
    tol : float, default=0.0
        Stop once the weighted trace of K - FFᵀ is at most tol times that of K.
    pivots : {"rpcholesky", "uniform", "k-means++"} or array-like of int, default="rpcholesky"
        How rows are chosen; or the rows themselves, in order. ``"k-means++"`` draws by the squared
        distance from the nearest chosen row. Rows that depend on previous ones are left out.
    sample_weight : array-like of shape (n,), optional
        Weights. With rpcholesky and k-means++ a weight of 2 means a repeated row; uniform draws
        rows of large weight earlier, and no row twice.
    random_state : int, RandomState, Generator or None
        Source of the draws.

    Returns
    -------
    PartialCholesky
        Pivots, factor and residual.

    Notes
    -----
    At tight tolerances rpcholesky takes no more rows than uniform, and far fewer if the data have
    small, distant clusters. At loose ones (some per cent of the trace) and with heavy tails it
    takes a few more, since the first pivots are outliers.

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
    if isinstance(pivots, str) and pivots == "rpcholesky":
        draw = _by_what_is_left(weights, min(_BLOCK, max(1, max_rank // 4)), random)
    else:
        draw = _in_order(pivot_rows(operator, pivots, max_rank, weights, random))
    return _factored(operator, draw, min(max_rank, n), tol, weights)


def pivot_rows(
    operator: GramOperator,
    pivots: Any,
    count: int,
    weights: NDArray[np.float64],
    random: np.random.Generator,
) -> NDArray[np.intp]:
    """Return rows in the order in which they are to be taken, whatever their residuals."""
    n = operator.shape[0]
    if isinstance(pivots, str):
        if pivots == "uniform":
            several = min(count, int(np.count_nonzero(weights)))
            return random.choice(n, size=several, replace=False, p=weights / weights.sum())
        if pivots == "k-means++":
            return _far_from_each_other(operator, weights, count, random)
        raise ValueError(
            f"Anchors must be 'rpcholesky', 'uniform', 'k-means++', numbers of rows, or points; "
            f"got {pivots!r}."
        )
    return checked_rows(pivots, n)


def pilot_size(n: int, count: int) -> int:
    """Return a number of anchors that is cheap, and enough for `count` starting vectors."""
    return max(8 * count, min(256, n // 16))


def checked_rows(given: Any, n: int) -> NDArray[np.intp]:
    """Return given row numbers, checked, as 0 to n-1."""
    try:
        rows = np.asarray(given)
    except ValueError:  # ragged lists
        rows = np.array(None)
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
        raise ValueError(
            "Anchors given as rows must be integers in one dimension, at least one; got "
            f"{rows.dtype} of shape {rows.shape}."
        )
    outside = (rows < -n) | (rows >= n)
    if outside.any():
        raise ValueError(
            f"Anchors must be rows of {n} points, 0 to {n - 1}; got {rows[outside][0]}."
        )
    return rows.astype(np.intp) % n


def _far_from_each_other(
    operator: GramOperator, weights: NDArray[np.float64], count: int, random: np.random.Generator
) -> NDArray[np.intp]:
    """Draw rows by k-means++ (Arthur and Vassilvitskii, 2007), one candidate each time."""
    diagonal = operator.diagonal().astype(np.float64)
    rounding = 16 * float(np.finfo(operator.dtype).eps) * np.abs(diagonal)
    nearest = np.full(len(diagonal), np.inf)
    chosen: list[int] = []
    pull = weights
    while len(chosen) < count:
        chosen.append(int(rows_at(pull, random.random(1))[0]))
        squares = diagonal + diagonal[chosen[-1]] - 2.0 * operator.rows(chosen[-1:])[0]
        nearest = np.minimum(nearest, np.where(squares > rounding, squares, 0.0))
        nearest[chosen[-1]] = 0.0
        pull = weights * nearest
        if not pull.any():
            break
    return np.array(chosen, dtype=np.intp)


def _by_what_is_left(weights: NDArray[np.float64], block: int, random: np.random.Generator) -> Draw:
    def draw(left: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        rows = rows_at(weights * left, random.random(block))
        return rows, random.random(block) * left[rows]

    return draw


def _in_order(rows: NDArray[np.intp]) -> Draw:
    blocks = iter([rows[i : i + _BLOCK] for i in range(0, len(rows), _BLOCK)])

    def draw(_left: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        block = next(blocks, rows[:0])
        return block, np.zeros(len(block))

    return draw


def _factored(
    operator: GramOperator, draw: Draw, max_rank: int, tol: float, weights: NDArray[np.float64]
) -> PartialCholesky:
    """Take blocks of rows until the tolerance, the rank, or the end of the rows is reached."""
    diagonal = operator.diagonal().astype(np.float64)
    floor = PARTS[np.dtype(operator.dtype)] * np.abs(diagonal)
    left = np.where(diagonal > 0, diagonal, 0.0)
    total = float(weights @ left)
    columns = np.empty((max_rank, len(left)))  # the pages of columns not reached are never touched
    pivots: list[int] = []
    while len(pivots) < max_rank:
        open_part = np.where(left > floor, left, 0.0)
        if not float(weights @ open_part) > tol * total:
            break
        rows, thresholds = draw(open_part)
        if not len(rows):
            break
        rank = len(pivots)
        values = operator.rows(rows).astype(np.float64)
        inner = values[:, rows] - columns[:rank, rows].T @ columns[:rank, rows]
        # rounding differs between the two: a row must not be proposed for ever
        left[rows] = np.minimum(left[rows], np.diagonal(inner))
        taken, triangle = _accepted(inner, thresholds, floor[rows], max_rank - rank)
        if not len(taken):
            continue
        chosen = rows[taken]
        _eliminate(columns, rank, chosen, values[taken], triangle, left)
        kept = _enough(columns[rank : rank + len(taken)], left, weights, tol * total)
        if kept < len(taken):
            left += np.einsum("ij,ij->j", *[columns[rank + kept : rank + len(taken)]] * 2)
        pivots += chosen[:kept].tolist()
        left[pivots] = 0.0
    error = float(weights @ np.maximum(left, 0.0)) / total if total > 0 else 0.0
    return PartialCholesky(np.array(pivots, np.intp), columns[: len(pivots)].T, left, error)


def _accepted(
    inner: NDArray[np.float64],
    thresholds: NDArray[np.float64],
    floor: NDArray[np.float64],
    most: int,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the proposals whose residual exceeds their threshold, in order, and their factor.

    `inner` is the residual of K among the proposals. The factor is the lower triangle L with
    LLᵀ = inner for the rows taken.
    """
    rest = inner.copy()
    taken: list[int] = []
    columns = np.zeros((len(inner), min(most, len(inner))))
    for i in range(len(inner)):
        if len(taken) == columns.shape[1]:
            break
        if rest[i, i] > max(thresholds[i], floor[i]):
            column = rest[:, i] / np.sqrt(rest[i, i])
            column[taken] = 0.0
            rest -= np.outer(column, column)
            columns[:, len(taken)] = column
            taken.append(i)
    places = np.array(taken, dtype=np.intp)
    return places, np.tril(columns[places][:, : len(taken)])


def _eliminate(
    columns: NDArray[np.float64],
    rank: int,
    chosen: NDArray[np.intp],
    values: NDArray[np.float64],
    triangle: NDArray[np.float64],
    left: NDArray[np.float64],
) -> None:
    """Append the columns of new pivots to the factor, and update the residual."""
    at_pivots = columns[:rank, chosen].T.copy()
    new = slice(rank, rank + len(chosen))

    def share(part: slice) -> None:
        block = values[:, part] - at_pivots @ columns[:rank, part]
        columns[new, part] = scipy.linalg.solve_triangular(
            triangle, block, lower=True, check_finite=False
        )
        left[part] -= np.einsum("ij,ij->j", columns[new, part], columns[new, part])

    work = len(values) * columns[:rank].size + len(values) ** 2 * len(left)
    run_over_rows(share, len(left), work=work)


def _enough(
    new: NDArray[np.float64],
    left: NDArray[np.float64],
    weights: NDArray[np.float64],
    goal: float,
) -> int:
    """Return how many of the new columns it takes to reach the goal: all of them if they do not."""
    captured = np.square(new) @ weights
    after = float(weights @ np.maximum(left, 0.0)) + captured.sum() - np.cumsum(captured)
    reached = np.flatnonzero(after <= goal)
    return int(reached[0]) + 1 if len(reached) else len(new)


def independent_part(
    matrix: NDArray[Any], part: float
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    r"""Return points that span the others, and the map from inner products with them to features.

    With the Gram matrix :math:`K_{mm} = R^\top R` of the points kept, the map is
    :math:`R^{-1}`: the rows of :math:`k(x, \cdot)\,R^{-1}` have the inner products
    :math:`k(x, \cdot)\,K_{mm}^{-1} k(\cdot, y)`.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        The Gram matrix of the points.
    part : float
        A point whose residual is less than this fraction of its squared length is not kept.

    Returns
    -------
    kept : ndarray of shape (rank,)
        Numbers of the points.
    decoder : ndarray of shape (rank, rank)
        R⁻¹.
    """
    matrix = matrix.astype(np.float64)
    if not np.all(np.isfinite(matrix)):
        raise ValueError(
            "Kernel values overflow at the anchors; rescale the data, or change the parameters of "
            "the kernel."
        )
    diagonal = np.diagonal(matrix)
    bad = (diagonal < 0) | ((diagonal == 0) & np.any(matrix != 0, axis=1))
    if bad.any():
        raise ValueError(_NOT_POSITIVE.format(where=f"at anchor {int(np.flatnonzero(bad)[0])}"))
    lengths = np.sqrt(diagonal)
    present = np.flatnonzero(lengths > 0)
    scaled = matrix[np.ix_(present, present)] / np.outer(lengths[present], lengths[present])
    if not len(present):
        return present, np.zeros((0, 0))
    factor, order, rank, _ = scipy.linalg.lapack.dpstrf(scaled, tol=part)
    order = order[: len(present)] - 1
    kept, rest = order[:rank], order[rank:]
    triangle = np.triu(factor[:rank, :rank])
    # for a positive matrix, the remainder of the points that are not kept is rounding
    left = np.abs(scaled[np.ix_(rest, rest)] - factor[:rank, rank:].T @ factor[:rank, rank:])
    if np.any(left > _INDEFINITE):
        worst = int(present[rest[left.max(axis=0).argmax()]])
        raise ValueError(_NOT_POSITIVE.format(where=f"at anchor {worst}"))
    inverse = scipy.linalg.lapack.dtrtri(triangle)[0]
    return present[kept], inverse / lengths[present[kept]][:, None]


_NOT_POSITIVE = (
    "The kernel is not positive definite on these data ({where}), so that a Nyström approximation "
    "is meaningless. Use another kernel, or fit without anchors."
)

# Relative to k(x, x), more than rounding. In trials, matrices computed in float32 and given as
# float64 reached 2e-4, and 1e-3 in eigenvalues; sigmoid and wave kernels began at 0.02.
_INDEFINITE = 1e-3


def check_captured(captured: NDArray[np.float64], diagonal: NDArray[np.float64]) -> None:
    """Raise if features are longer than the points: the kernel is not positive definite.

    `captured` are squared lengths of features, `diagonal` is k(x, x) of the same points.
    """
    size = np.abs(diagonal)
    excess = captured - diagonal - _INDEFINITE * size
    # the rounding of small squares is that of the largest
    if np.any(excess > float(np.finfo(np.float32).eps) * size.max(initial=0.0)):
        worst = int(np.argmax(excess))
        where = (
            f"k(x, x) is {diagonal[worst]:.3g} where the anchors alone account for "
            f"{captured[worst]:.3g}"
        )
        raise ValueError(_NOT_POSITIVE.format(where=where))


def check_remainder(matrix: NDArray[np.float64], features: NDArray[np.float64]) -> None:
    """Raise if a Gram matrix has a negative eigenvalue once features are taken from it.

    Parameters
    ----------
    matrix : ndarray of shape (s, s)
        The Gram matrix of a few points.
    features : ndarray of shape (s, m)
        Their features by anchors.
    """
    check_captured(np.einsum("ij,ij->i", features, features), np.diagonal(matrix))
    lengths = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    there = lengths > 0
    left = (matrix - features @ features.T)[np.ix_(there, there)]
    left /= np.outer(lengths[there], lengths[there])
    if there.any():
        smallest = float(scipy.linalg.eigvalsh(left, subset_by_index=[0, 0])[0])
        if smallest < -10 * _INDEFINITE:
            where = f"given the anchors, an eigenvalue of the normalised matrix is {smallest:.2g}"
            raise ValueError(_NOT_POSITIVE.format(where=where))


def refuse_nonzero(operator: GramOperator) -> None:
    """Raise if a matrix without a positive entry on its diagonal is not 0.

    A product is needed only if the first rows are 0.
    """
    n = operator.shape[0]
    bad = operator.rows(np.arange(min(32, n))).any(axis=1)
    if not bad.any():
        bad = np.asarray(operator @ np.cos(np.arange(n)).astype(operator.dtype)) != 0
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        where = f"no k(x, x) is positive, and row {row} of the matrix is not 0"
        raise ValueError(_NOT_POSITIVE.format(where=where))
