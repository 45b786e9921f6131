"""Rows of a dask array: one task per block, and trees of tasks for sums.

Dask is imported only when a dask array is given. Tasks run on the scheduler or cluster that dask is
configured for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from .._core.checks import check_weight_shape, check_weight_sum
from .._core.kinds import is_dask_array
from .._core.threads import single_threaded
from .._core.types import Array, Floats, Indices
from ..kernels import Kernel
from .base import (
    BlockFunction,
    Rows,
    join_results,
    rows_at,
    spread_rows,
    stratified_fractions,
    sum_results,
    visit_block,
)

# Maximum number of bytes of rows that are gathered in this process.
_MAX_GATHERED = 2**26

# Number of results that one task sums; with more, m x m sums fill the memory of one worker.
_FAN_IN = 8


class DaskRows(Rows):
    """Rows of a dask array, with any scheduler or cluster.

    A pass runs one task per block; a tree of tasks sums the results, so that only the sum is
    returned to this process. Results with one row per input row stay dask arrays.

    Parameters
    ----------
    X : dask array of shape (n, ...)
        The rows. Blocks are merged along the other axes, and unknown block sizes are computed. An
        array that is not persisted is computed again in every pass.
    kernel, estimator, reset
        As for :func:`~orthodrome.rows.as_rows`.

    Attributes
    ----------
    array : dask array of shape (n, ...)
        The rows before validation.

    Examples
    --------
    >>> import dask.array as da
    >>> from orthodrome import KernelPCA
    >>> from orthodrome.kernels import Gaussian
    >>> rows = DaskRows(da.ones((7, 2), chunks=3), Gaussian(), KernelPCA())
    >>> rows.reduce(lambda block, start: (block.sum(axis=0),))
    (array([7., 7.]),)
    """

    lazy = True

    def __init__(self, X: Any, kernel: Kernel, estimator: Any, *, reset: bool = True) -> None:
        owner = type(estimator).__name__
        self.array = as_row_blocks(X, owner)
        if not self.array.shape[0]:
            raise ValueError(f"{owner} needs at least one row; the dask array has none.")
        first, n = self._fetch(np.zeros(1, dtype=np.intp)), self.array.shape[0]
        self._first = self._check_rows_by(kernel, first, n, estimator, reset=reset)

    @classmethod
    def of(cls, array: Any) -> DaskRows:
        """Make rows of a dask array that needs no validation."""
        rows = cls.__new__(cls)
        rows.array, rows._first = as_row_blocks(array), None
        rows.shape, rows.dtype = array.shape, array.dtype
        return rows

    def reduce(self, function: BlockFunction) -> tuple[Floats, ...]:
        """Sum the results of a block function, in one pass."""
        (total,) = computed(reduced(self._tasks(sum_results, function), _sum))
        return total

    def map(self, function: BlockFunction, keep: str = "memory") -> Any:
        """Return the results of a block function as a dask array.

        Only the result for the first row is computed now.
        """
        # The first row gives the shape and type of the result. A row of zeros would not do, because
        # kernels of shapes and of positive matrices reject it. Attached columns may be zeros.
        if self._first is None:
            self._first = self.take(np.zeros(1, dtype=np.intp))
        columns = {
            name: np.zeros((1, *column.shape[1:]), dtype=column.dtype)
            for name, column in self.columns.items()
        }
        like = np.asarray(visit_block(join_results, function, None, self._first, 0, columns))
        blocks = self._tasks(join_results, function)
        return as_dask_array(blocks, self.array.chunks[0], like[:0])

    def _fetch(self, indices: Indices) -> Any:
        return rows_of(self.array, indices)

    def together(self, indices: Indices) -> Any:
        """Return rows with ascending indices; persist them in a few blocks if they are large."""
        row_bytes = int(np.prod(self.shape[1:])) * self.dtype.itemsize
        if len(indices) * row_bytes <= _MAX_GATHERED:
            return self.take(indices)
        rows = max(1024, _MAX_GATHERED // (16 * row_bytes))
        return persisted(lazy_rows_of(self.whole(), indices).rechunk({0: rows}))

    def whole(self) -> Any:
        """Return the rows as a dask array that is validated when it is computed."""
        return self.map(_unchanged)

    def as_dask(self, array: Array) -> Any:
        """Return an array as a dask array in the blocks of the rows."""
        import dask.array as da

        return da.from_array(array, chunks=(self.array.chunks[0], *array.shape[1:]))

    def weights(self, sample_weight: Any, owner: str, dtype: Any = None) -> Any:
        """Return checked weights, as a dask array if they were given as one."""
        if not is_dask_array(sample_weight):
            return super().weights(sample_weight, owner, dtype)
        sample_weight = with_known_sizes(sample_weight)
        check_weight_shape(sample_weight, self.shape[0], owner)
        weights = sample_weight.astype(np.float64).rechunk((self.array.chunks[0],))
        check = task(_checked_sum)
        total = sum(computed(*[check(block, owner) for block in blocks_of(weights)]))
        if not total > 0:
            raise ValueError(f"sample_weight of {owner} must not be all zero.")
        check_weight_sum(float(total), owner, self.dtype if dtype is None else dtype)
        return weights

    def spread(
        self, count: int, weights: Any = None, random: np.random.Generator | None = None
    ) -> tuple[Indices, Floats]:
        """Draw at most `count` rows, evenly over the weights."""
        if is_dask_array(weights) and self.shape[0] <= count:
            weights = in_memory(weights)
        if not is_dask_array(weights):
            return spread_rows(self.shape[0], weights, count, random)
        blocks, bounds, pick = blocks_of(weights), bounds_of(self.array), task(_rows_at)
        ends = np.cumsum([0.0, *computed(*[task(np.sum)(block) for block in blocks])])
        positions = stratified_fractions(count, random) * ends[-1]
        cuts = np.searchsorted(positions, ends)
        drawn = []
        for i, block in enumerate(blocks):
            if cuts[i] < cuts[i + 1]:
                inside = positions[cuts[i] : cuts[i + 1]] - ends[i]
                fractions = inside / (ends[i + 1] - ends[i])
                drawn.append(pick(block, fractions, bounds[i].start))
        rows, counts = np.unique(np.concatenate(computed(*drawn)), return_counts=True)
        return rows, counts.astype(np.float64)

    def _tasks(self, collect: Any, function: BlockFunction) -> list[Any]:
        """Return a delayed call of visit_block for each block."""
        call, blocks = task(visit_block), blocks_of(self.array)
        shared = collect, constant(function), constant(self._check)
        columns = {name: self._split(column) for name, column in self.columns.items()}
        return [
            call(*shared, blocks[i], rows.start, {name: columns[name][i] for name in columns})
            for i, rows in enumerate(bounds_of(self.array))
        ]

    def _split(self, array: Any) -> list[Any]:
        """Return the blocks of an attached column."""
        if is_dask_array(array):
            chunks = {0: self.array.chunks[0], **dict.fromkeys(range(1, array.ndim), -1)}
            return blocks_of(array.rechunk(chunks))
        return [constant(np.asarray(array[rows])) for rows in bounds_of(self.array)]


def _unchanged(rows: Any, _start: int, **_columns: Any) -> Any:
    return rows


def _checked_sum(weights: Floats, owner: str) -> float:
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(f"sample_weight of {owner} must be finite and not negative.")
    return float(weights.sum())


def _rows_at(weights: Floats, fractions: Array, start: int) -> Indices:
    return start + rows_at(weights, fractions)


def _sum(*results: tuple[Any, ...]) -> tuple[Any, ...]:
    return sum_results(results)


# ---------------------------------------------------------------------- blocks and tasks


def as_row_blocks(X: Any, owner: str = "DaskGram") -> Any:
    """Return a dask array with blocks of whole rows, of known sizes.

    Unknown sizes are computed, in one pass over the data; empty blocks are dropped.
    Integers become float64.
    """
    if not is_dask_array(X):
        raise ValueError(
            f"{owner} needs a dask array; got {type(X).__name__}. Use dask.array.from_array(X), or "
            "to_dask_array(lengths=True) on a dask data frame (pip install "
            "'orthodrome[distributed]')."
        )
    if X.ndim < 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D dask array. Add an axis for features.")
    X = with_known_sizes(X)
    filled = tuple(filter(None, X.chunks[0]))
    X = X.rechunk({0: filled or 1, **dict.fromkeys(range(1, X.ndim), -1)})
    if X.dtype.kind in "biu":
        X = X.astype(np.float64)
    return X


def with_known_sizes(X: Any) -> Any:
    """Return a dask array with blocks of known sizes; unknown ones are computed in one pass."""
    if np.isnan(X.size):
        return X.copy().compute_chunk_sizes()  # in place, hence the copy
    return X


def blocks_of(X: Any) -> list[Any]:
    """Return the blocks of rows as delayed objects, in order."""
    return list(X.to_delayed().reshape(-1))


def bounds_of(X: Any) -> list[slice]:
    """Return the rows of each block as slices."""
    ends = np.cumsum((0, *X.chunks[0]))
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def rows_of(X: Any, indices: Indices) -> Array:
    """Return a few rows as an array, in this order."""
    order = np.argsort(indices, kind="stable")
    found = computed(*[rows for rows, _ in _selected_rows(X, indices[order])])
    empty = np.empty((0, *X.shape[1:]), dtype=X.dtype)  # `indices` may be empty
    return np.concatenate([empty, *found])[np.argsort(order)]


def lazy_rows_of(X: Any, indices: Indices) -> Any:
    """Return rows with ascending indices as a dask array."""
    blocks, sizes = zip(*_selected_rows(X, indices), strict=True)
    return as_dask_array(blocks, sizes, np.empty((0, *X.shape[1:]), dtype=X.dtype))


def _selected_rows(X: Any, wanted: Indices) -> Iterator[tuple[Any, int]]:
    """Yield the wanted rows of each block, delayed, and their number; skip the other blocks.

    Not ``X[wanted]``: dask would join rows of many blocks on one worker.
    """
    pick = task(_rows_of_block)
    for block, rows in zip(blocks_of(X), bounds_of(X), strict=True):
        low, high = np.searchsorted(wanted, [rows.start, rows.stop])
        if low < high:
            yield pick(block, wanted[low:high] - rows.start), int(high - low)


def _rows_of_block(block: Any, rows: Indices) -> Array:
    return np.asarray(block[rows])


def as_dask_array(blocks: Sequence[Any], sizes: Sequence[int], like: Array) -> Any:
    """Return delayed blocks of rows as a dask array; `like` is an empty block."""
    import dask.array as da

    shapes = [(size, *like.shape[1:]) for size in sizes]
    return da.concatenate(
        [
            da.from_delayed(block, shape=shape, dtype=like.dtype, meta=like)
            for block, shape in zip(blocks, shapes, strict=True)
        ]
    )


def over_rows(function: Callable[[Array], Array], array: Any) -> Any:
    """Apply a function to the rows of an array; lazily if it is a dask array."""
    if not is_dask_array(array):
        return function(array)
    like = function(np.zeros((1, *array.shape[1:]), dtype=array.dtype))
    return array.map_blocks(
        function,
        chunks=(array.chunks[0], *[(size,) for size in like.shape[1:]]),
        drop_axis=[1] if like.ndim == 1 else [],
        dtype=like.dtype,
        meta=like[:0],
    )


class Task:
    """A function that starts no threads, because a worker runs several tasks at once."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", "task")  # shown in the dashboard

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        with single_threaded():
            return self.function(*arguments)


def task(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes delayed calls."""
    from dask import delayed

    return delayed(Task(function), pure=False, traverse=False)


def constant(value: Any) -> Any:
    """Return a delayed value that many tasks share; it is sent to a worker once.

    It is part of the graph. Scattered data would be lost if a worker dies.
    """
    from dask import delayed

    return delayed(value, pure=False, traverse=False)


def reduced(values: Sequence[Any], combine: Callable[..., Any]) -> Any:
    """Combine delayed values with a tree of tasks; the result is delayed.

    ``combine(*values)`` is called with a few values, or results of previous calls, in order.
    """
    combine_group, values = task(combine), list(values)
    while len(values) > 1:
        groups = [values[i : i + _FAN_IN] for i in range(0, len(values), _FAN_IN)]
        values = [combine_group(*group) if len(group) > 1 else group[0] for group in groups]
    return values[0]


def computed(*collections: Any) -> tuple[Any, ...]:
    """Compute delayed objects with the configured scheduler."""
    import dask

    with _large_graphs_allowed():
        return tuple(dask.compute(*collections))


def in_memory(X: Any) -> Any:
    """Return a dask array as an ndarray; other arrays are returned unchanged."""
    return np.concatenate(computed(*blocks_of(X))) if is_dask_array(X) else X


def persisted(X: Any) -> Any:
    """Compute a dask array and keep it in the memory of the workers."""
    with _large_graphs_allowed():
        return X.persist()


@contextmanager
def _large_graphs_allowed() -> Iterator[None]:
    """Suppress dask's warning about large graphs.

    Graphs are large because they contain data. Scattered data would be lost if a worker dies.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        yield
