"""The choice of anchors for the Nyström method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core.checks import (
    check_integer,
    check_positive,
    check_random_state,
    check_sample_weight,
    rows_renumbered,
)
from .._core.kinds import is_dask_array
from .._core.random import one_seed
from .._core.threads import VALUE_WORK, run_over_rows
from .._core.types import Floats, Indices
from ..gram import gram_operator
from ..gram.factory import check_ready, prepared_points
from ..kernels import Kernel, Precomputed
from ..kernels.base import COMPILED_PAIRS, Prepared, rectangular_block, symmetric_block
from ..rows import ArrayRows, DaskRows, Rows
from .pivots import (
    RANK_TOLERANCE,
    check_remainder,
    check_zero_matrix,
    checked_rows,
    independent_points,
    partial_cholesky,
    pivot_rows,
    times_decoder,
    uniform_rows,
)

# Maximum number of candidates, in total and per anchor; the larger one applies. If all rows of
# large data were candidates, updating their residuals would take longer than the features.
_CANDIDATES = 2**16
_CANDIDATES_PER_ANCHOR = 64
_MAX_FACTOR_SIZE = 2**26  # entries in the factor of the candidates: half a gigabyte

# With "auto": the rows on which uniform anchors are tested, how many anchors are tested first (they
# often show that others are needed), how uneven the residuals may be, and the fraction of the
# anchors that must be independent.
_TESTED = 512
_TESTED_FIRST = 64
_MAX_UNEVENNESS = 3.0
_MIN_INDEPENDENT = 0.9

# With at least this many kernel values, half a block of points, compiled loops are faster.
COMPILED_VALUES = 2**17

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
        R⁻¹ with K_mm = RᵀR, an upper triangle in float64: features are ``k(x, anchors) @ decoder``.
    choice : str
        How the anchors were chosen; with "auto", also why.
    """

    points: Any
    indices: Indices | None
    decoder: Floats
    choice: str = "given"

    def prepared(self, kernel: Kernel) -> Any:
        """Return the points prepared by a fitted kernel; their row numbers if there are none."""
        return self.indices if self.points is None else prepared_points(kernel, self.points)


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
    anchors : {"auto", "rpcholesky", "uniform", "k-means++"} or array-like, default="rpcholesky"
        How to choose anchors (see :func:`partial_cholesky`, and Notes for "auto"); or a 1-D array
        of row numbers; or points.
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

    ``"auto"`` draws uniform anchors, one from each of `n_anchors` intervals of equal weight, and
    computes the residuals of 512 rows. It keeps these anchors if 90% of them are independent and
    the residuals are about even: drawn by residual, a row has on average at most 3 times the
    residual of a row drawn uniformly. Otherwise it is rpcholesky, as with `tol`, and for
    precomputed kernels.

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
    by_points = not isinstance(anchors, str) and not _are_row_numbers(anchors)
    if by_points and isinstance(kernel, Precomputed):
        raise ValueError(
            "Anchors of a precomputed kernel must be row numbers, because it has no points."
        )
    seed = 0 if by_points else one_seed(random_state)
    search = _Search(kernel, rows, sample_weight, n_anchors, tol, scale, seed)
    found = search.given_points(anchors) if by_points else search.among_rows(anchors)
    if not kernel.positive_definite:
        search.check_on_sample(found)
    return found


def _are_row_numbers(anchors: Any) -> bool:
    try:
        return np.ndim(anchors) == 1
    except ValueError:  # ragged lists
        return False


@dataclass(frozen=True)
class _Search:
    """The choice of anchors; parameters as in :func:`choose_anchors`."""

    kernel: Kernel
    rows: Rows
    weights: Any
    count: int
    tol: float
    scale: float
    seed: int

    def given_points(self, points: Any) -> Anchors:
        """Return the linearly independent ones of given points."""
        try:
            given = self.kernel.validate(points, reset=False)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(
                "Anchors must be 'rpcholesky', 'uniform', 'k-means++', 'auto', row numbers, or "
                f"points like the rows of X: {error}"
            ) from None
        # features have the precision of the rows
        return self._independent(given.astype(self.rows.dtype, copy=False), None)

    def among_rows(self, anchors: Any) -> Anchors:
        """Choose anchors among the rows."""
        named, precomputed = isinstance(anchors, str), isinstance(self.kernel, Precomputed)
        if named and anchors == "auto":
            if not (self.tol or self._n_present() <= self.count or precomputed):
                return self._uniform_if_even()
            anchors = "rpcholesky"
        numbers = self._row_numbers(anchors)
        points = None if precomputed else self.rows.take(numbers)
        with rows_renumbered(numbers):
            return self._independent(points, numbers, anchors if named else "given")

    def _n_present(self) -> int:
        """Return the number of rows of positive weight; all rows if weights are not in memory."""
        counted = isinstance(self.weights, np.ndarray)
        return int(np.count_nonzero(self.weights)) if counted else self.rows.shape[0]

    def _uniform_if_even(self) -> Anchors:
        """Choose uniform anchors, or others if residuals are uneven."""
        # read the candidates once; all rows below are among them
        random = np.random.default_rng(self.seed)
        candidates, weights = self.rows.spread(max_candidates(self.count), self.weights, random)
        pool = self.rows.together(candidates)
        rows = DaskRows.of(pool) if is_dask_array(pool) else ArrayRows.of(pool)
        search = replace(self, rows=rows, weights=weights)
        # a row of weight 2 may be drawn twice, like two equal rows
        drawn, counts = rows.spread(self.count, weights, random)
        numbers = random.permutation(np.repeat(drawn, counts.astype(np.intp)))
        points = rows.take(numbers)
        tested, counts = rows.spread(_TESTED, weights)
        tested, counts = tested[counts > 0], counts[counts > 0]
        with rows_renumbered(candidates[tested]):
            sample = self.kernel.prepare(rows.take(tested))
        if len(candidates) * self.count >= COMPILED_VALUES:
            sample = sample.among(COMPILED_PAIRS)
        for size in sorted({min(_TESTED_FIRST, len(numbers)), len(numbers)}):
            with rows_renumbered(candidates[numbers]):
                found = search._independent(points[:size], numbers[:size])
            factor = search._unevenness(sample, counts, found)
            if factor > _MAX_UNEVENNESS:
                break
        why = f"residuals are uneven by a factor of {factor:.2g}; uniform up to {_MAX_UNEVENNESS:g}"
        if factor <= _MAX_UNEVENNESS and len(found.decoder) < _MIN_INDEPENDENT * self.count:
            why = f"only {len(found.decoder)} of {self.count} uniform anchors are independent"
        elif factor <= _MAX_UNEVENNESS:
            return replace(found, indices=candidates[found.indices], choice=f"uniform: {why}")
        with rows_renumbered(candidates):
            found = search.among_rows("rpcholesky")
        return replace(found, indices=candidates[found.indices], choice=f"rpcholesky: {why}")

    def _independent(self, points: Any, indices: Any, choice: str = "given") -> Anchors:
        """Return the linearly independent ones of points, which may be rows, as anchors."""
        if points is None:
            matrix = self.rows.take(indices)[:, indices]
        else:
            prepared = self.kernel.prepare(points)
            matrix = rectangular_block(self.kernel, prepared, prepared)
        kept, decoder = independent_points(matrix * self.scale, RANK_TOLERANCE[self.rows.dtype])
        if not len(kept):  # all points are 0: keep one of them
            kept, decoder = np.zeros(1, dtype=np.intp), np.zeros((1, 1))
        points, indices = (None if each is None else each[kept] for each in (points, indices))
        return Anchors(points, indices, decoder, choice)

    def _features(self, sample: Prepared, anchors: Anchors) -> Floats:
        """Return the features of a sample of points."""
        values = rectangular_block(self.kernel, sample, self.kernel.prepare(anchors.points))
        return times_decoder(values.astype(np.float64), anchors.decoder) * self.scale

    def _unevenness(self, sample: Prepared, weights: Floats, anchors: Anchors) -> float:
        """Return how many times larger residuals are if points are drawn by residual.

        The comparison is with uniform draws. Both are averages over a sample of points. A residual
        within rounding error is 0.
        """

        def captured(rows: slice) -> Floats:
            features = self._features(sample[rows], anchors)
            return np.einsum("ij,ij->i", features, features)

        n, m = len(sample), len(anchors.decoder)
        threads: Any = {"serial": not self.kernel.threadsafe, "work": n * m * (VALUE_WORK + m / 2)}
        own = self.kernel.diagonal(sample).astype(np.float64) * self.scale
        residual = own - np.concatenate(run_over_rows(captured, n, **threads))
        residual = np.where(residual > RANK_TOLERANCE[self.rows.dtype] * own, residual, 0.0)
        largest = float(residual.max())
        if largest == 0:
            return 1.0
        residual /= largest  # squares of large or small residuals would overflow or underflow
        weights = weights / weights.sum()
        return float(weights @ residual**2) / float(weights @ residual) ** 2

    def check_on_sample(self, anchors: Anchors) -> None:
        """Raise if the kernel is not positive definite on the anchors and a few other rows."""
        numbers, _ = self.rows.spread(_SAMPLE, self.weights)
        sample = self.rows.take(numbers)
        if isinstance(self.kernel, Precomputed):
            matrix, values = sample[:, numbers], sample[:, anchors.indices].astype(np.float64)
            features = values @ anchors.decoder * self.scale
        else:
            prepared = self.kernel.prepare(sample)
            matrix, features = (
                symmetric_block(self.kernel, prepared),
                self._features(prepared, anchors),
            )
        check_remainder(matrix.astype(np.float64) * self.scale, features)

    def _row_numbers(self, anchors: Any) -> Indices:
        """Return the row numbers of the anchors, including dependent ones."""
        n, count, weights, tol = self.rows.shape[0], self.count, self.weights, self.tol
        if not isinstance(anchors, str):
            return checked_rows(anchors, n)
        if self._n_present() <= count and not tol:
            return np.arange(n) if weights is None else np.flatnonzero(weights)
        random = np.random.default_rng(self.seed)
        precomputed = isinstance(self.kernel, Precomputed)
        if precomputed:
            candidates, counts = np.arange(n), np.ones(n) if weights is None else weights
        else:
            candidates, counts = self.rows.spread(max_candidates(count), weights, random)
        if anchors == "uniform" and not tol:  # no row is read
            return candidates[uniform_rows(count, counts, random)]
        storage = "auto" if precomputed else "recompute"
        with rows_renumbered(candidates):
            gram = gram_operator(self.kernel, self.rows.together(candidates), storage=storage)
        if not tol:
            chosen = pivot_rows(gram, anchors, count, counts, random)
        else:
            options: Any = {"pivots": anchors, "sample_weight": counts, "random_state": random}
            chosen = partial_cholesky(gram, max_rank=count, tol=tol, **options).pivots
        if not len(chosen):
            check_zero_matrix(gram)
            return np.array([0 if weights is None else np.flatnonzero(weights)[0]])
        return candidates[chosen]


def max_candidates(count: int) -> int:
    """Return the maximum number of candidates for `count` anchors."""
    limit = max(_CANDIDATES, _CANDIDATES_PER_ANCHOR * count)
    return max(2 * count, min(limit, _MAX_FACTOR_SIZE // count))
