"""The choice of anchors for the Nyström method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.checks import check_integer, check_positive, check_random_state, check_sample_weight
from .._core.random import one_seed
from .._core.types import Floats, Indices
from ..gram import gram_operator
from ..gram.factory import check_ready
from ..kernels import Kernel, Precomputed
from ..kernels.base import rectangular_block, symmetric_block
from ..rows import ArrayRows, Rows
from .pivots import (
    RANK_TOLERANCE,
    check_remainder,
    check_zero_matrix,
    checked_rows,
    independent_points,
    partial_cholesky,
    pivot_rows,
)

# Maximum number of candidates, in total and per anchor; the larger one applies. If all rows of
# large data were candidates, updating their residuals would take longer than the features.
_CANDIDATES = 2**16
_CANDIDATES_PER_ANCHOR = 64
_MAX_FACTOR_SIZE = 2**26  # entries in the factor of the candidates: half a gigabyte

# Number of rows on which to test whether a kernel is positive definite.
_SAMPLE = 128


@dataclass(frozen=True)
class Anchors:
    """Linearly independent points, and the map from kernel values to features.

    Attributes
    ----------
    points : validated data of shape (m, ...) or None
        The anchors; None for a precomputed kernel.
    indices : ndarray of shape (m,) or None
        Their row numbers in the training data; None if they are other points.
    decoder : ndarray of shape (m, m)
        R⁻¹ with K_mm = RᵀR, in float64: features are ``k(x, anchors) @ decoder``.
    """

    points: Any
    indices: Indices | None
    decoder: Floats


def choose_anchors(
    kernel: Kernel,
    X: Any,
    n_anchors: int,
    *,
    anchors: Any = "rpcholesky",
    tol: float = 0.0,
    sample_weight: Floats | None = None,
    scale: float = 1.0,
    random_state: Any = None,
) -> Anchors:
    """Choose anchors among the rows of X, or use given ones.

    Anchors that are linearly dependent on others, such as copies, are dropped. If X has at most
    `n_anchors` rows, and `tol` is 0, all rows are used.

    Parameters
    ----------
    kernel : Kernel
        A fitted kernel; with :class:`~orthodrome.kernels.Precomputed`, X is the matrix itself.
    X : validated data, or Rows
        Result of ``kernel.validate``; or rows, of which only candidates are read.
    n_anchors : int
        Maximum number of anchors; if anchors are given, all are used.
    anchors : {"rpcholesky", "uniform", "k-means++"} or array-like, default="rpcholesky"
        How to choose anchors (see :func:`partial_cholesky`); or a 1-D array of row numbers; or
        points.
    tol : float, default=0.0
        Stop once the trace of the residual is at most tol times the trace of the Gram matrix. Both
        are computed for the candidates only (see Notes).
    sample_weight : ndarray of shape (n,), optional
        Weights; rows of weight 0 are not chosen.
    scale : float, default=1.0
        Factor by which kernel values are multiplied.
    random_state : int, RandomState, Generator or None
        Seed or generator.

    Returns
    -------
    Anchors
        The anchors and the map to features.

    Notes
    -----
    Anchors are chosen among at most 65,536 candidates. For more than 1024 anchors, there are fewer
    candidates, to limit memory, but at least two per anchor. The rows are divided into intervals
    of equal weight, and one candidate is drawn from each interval.

    Given points are converted to the precision of X.

    Examples
    --------
    >>> from orthodrome.kernels import Linear
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> found = choose_anchors(Linear().fit(X), X, 6)
    >>> found.points.shape, found.decoder.shape
    ((2, 2), (2, 2))
    """
    owner = "choose_anchors"
    if isinstance(X, Rows):
        rows: Rows = X
    else:
        check_ready(kernel, X, owner)
        sample_weight = check_sample_weight(sample_weight, X.shape[0], owner)
        rows = ArrayRows.of(X)
    check_integer(n_anchors, "n_anchors", owner)
    check_positive(tol, "tol", owner, or_zero=True)
    check_positive(scale, "scale", owner)
    check_random_state(random_state, owner)
    precomputed = isinstance(kernel, Precomputed)
    if not isinstance(anchors, str) and not _are_row_numbers(anchors):
        if precomputed:
            raise ValueError(
                "Anchors of a precomputed kernel must be row numbers, because it has no points."
            )
        # features have the precision of the rows
        try:
            given = kernel.validate(anchors, reset=False)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(
                "Anchors must be 'rpcholesky', 'uniform', 'k-means++', row numbers, or points like "
                f"the rows of X: {error}"
            ) from None
        points, indices = given.astype(rows.dtype, copy=False), None
    else:
        indices = _chosen_rows(kernel, rows, n_anchors, anchors, tol, sample_weight, random_state)
        points = None if precomputed else rows.take(indices)
    if precomputed and indices is not None:
        matrix = rows.take(indices)[:, indices]
    else:
        prepared = kernel.prepare(points)
        matrix = rectangular_block(kernel, prepared, prepared)
    kept, decoder = independent_points(matrix * scale, RANK_TOLERANCE[rows.dtype])
    if not len(kept):  # all points are 0: keep one of them
        kept, decoder = np.zeros(1, dtype=np.intp), np.zeros((1, 1))
    found = Anchors(
        points=None if precomputed else points[kept],
        indices=None if indices is None else indices[kept],
        decoder=decoder,
    )
    if not kernel.positive_definite:
        _check_on_sample(kernel, rows, sample_weight, found, scale)
    return found


def _check_on_sample(
    kernel: Kernel, rows: Rows, weights: Any, anchors: Anchors, scale: float
) -> None:
    """Raise if the kernel is not positive definite on the anchors and a few other rows."""
    numbers, _ = rows.spread(_SAMPLE, weights)
    sample = rows.take(numbers)
    if isinstance(kernel, Precomputed):
        matrix, values = sample[:, numbers], sample[:, anchors.indices]
    else:
        prepared = kernel.prepare(sample)
        matrix = symmetric_block(kernel, prepared)
        values = rectangular_block(kernel, prepared, kernel.prepare(anchors.points))
    check_remainder(
        matrix.astype(np.float64) * scale, values.astype(np.float64) @ anchors.decoder * scale
    )


def _are_row_numbers(anchors: Any) -> bool:
    try:
        return np.ndim(anchors) == 1
    except ValueError:  # ragged lists
        return False


def _chosen_rows(
    kernel: Kernel,
    rows: Rows,
    count: int,
    anchors: Any,
    tol: float,
    weights: Floats | None,
    random_state: Any,
) -> Indices:
    """Return the row numbers of the anchors, including dependent ones."""
    n = rows.shape[0]
    if not isinstance(anchors, str):
        return checked_rows(anchors, n)
    if n <= count or isinstance(weights, np.ndarray):
        all_rows = np.arange(n) if weights is None else np.flatnonzero(weights)
        if len(all_rows) <= count and not tol:
            return all_rows
    random = np.random.default_rng(one_seed(random_state))
    if isinstance(kernel, Precomputed):
        candidates, counts = np.arange(n), np.ones(n) if weights is None else weights
        gram = gram_operator(kernel, rows.together(candidates))
    else:
        candidates, counts = rows.spread(max_candidates(count), weights, random)
        gram = gram_operator(kernel, rows.together(candidates), storage="recompute")
    if anchors != "rpcholesky" and not tol:
        chosen = pivot_rows(gram, anchors, count, counts, random)
    else:
        chosen = partial_cholesky(
            gram, max_rank=count, tol=tol, pivots=anchors, sample_weight=counts, random_state=random
        ).pivots
    if not len(chosen):
        check_zero_matrix(gram)
        return np.array([0 if weights is None else np.flatnonzero(weights)[0]])
    return candidates[chosen]


def max_candidates(count: int) -> int:
    """Return the maximum number of candidates for `count` anchors."""
    limit = max(_CANDIDATES, _CANDIDATES_PER_ANCHOR * count)
    return max(2 * count, min(limit, _MAX_FACTOR_SIZE // count))
