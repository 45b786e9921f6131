"""Dask arrays in blocks of rows: tasks over them, and sums by trees of tasks.

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
from numpy.typing import NDArray

from .._core.kinds import is_dask_array
from .._core.threads import one_share

__all__ = [
    "as_dask_array",
    "as_row_blocks",
    "blocks_of",
    "bounds_of",
    "computed",
    "constant",
    "lazy_rows_of",
    "over_rows",
    "persisted",
    "reduced",
    "rows_of",
    "task",
    "with_known_sizes",
]

# Results that one task adds up; with more, m x m sums pile up on one worker.
_FAN_IN = 8


def as_row_blocks(X: Any, owner: str = "DaskGram") -> Any:
    """Return a dask array whose blocks are whole rows, each of a known number of them.

    Unknown sizes are computed, which takes a pass over the data; empty blocks are left out.
    Integers become float64.
    """
    if not is_dask_array(X):
        raise ValueError(
            f"{owner} takes dask arrays, not {type(X).__name__}. Call dask.array.from_array(X), or "
            "to_dask_array(lengths=True) of a dask data frame; dask comes with pip install "
            "'orthodrome[distributed]'."
        )
    if X.ndim < 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D dask array instead: one row per sample, one column "
            "per feature."
        )
    X = with_known_sizes(X)
    filled = tuple(filter(None, X.chunks[0]))
    X = X.rechunk({0: filled or 1, **dict.fromkeys(range(1, X.ndim), -1)})
    if X.dtype.kind in "biu":
        X = X.astype(np.float64)
    return X


def with_known_sizes(X: Any) -> Any:
    """Return a dask array whose blocks have known sizes; computing them takes a pass."""
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


def rows_of(X: Any, indices: NDArray[np.intp]) -> NDArray[Any]:
    """Return a few rows as an array, in this order."""
    order = np.argsort(indices, kind="stable")
    parts = computed(*[part for part, _ in _parts_of(X, indices[order])])
    none = np.empty((0, *X.shape[1:]), dtype=X.dtype)  # there may be no indices
    return np.concatenate([none, *parts])[np.argsort(order)]


def lazy_rows_of(X: Any, indices: NDArray[np.intp]) -> Any:
    """Return rows in ascending order as a dask array."""
    parts, sizes = zip(*_parts_of(X, indices), strict=True)
    return as_dask_array(parts, sizes, np.empty((0, *X.shape[1:]), dtype=X.dtype))


def _parts_of(X: Any, wanted: NDArray[np.intp]) -> Iterator[tuple[Any, int]]:
    """Yield the wanted rows of each block, delayed, and their number; skip the other blocks.

    Not ``X[wanted]``: dask would join rows of many blocks on one worker.
    """
    pick = task(_rows_of_block)
    for block, rows in zip(blocks_of(X), bounds_of(X), strict=True):
        low, high = np.searchsorted(wanted, [rows.start, rows.stop])
        if low < high:
            yield pick(block, wanted[low:high] - rows.start), int(high - low)


def _rows_of_block(block: Any, rows: NDArray[np.intp]) -> NDArray[Any]:
    return np.asarray(block[rows])


def as_dask_array(parts: Sequence[Any], sizes: Sequence[int], like: NDArray[Any]) -> Any:
    """Return delayed blocks of rows as a dask array; `like` is an empty block."""
    import dask.array as da

    shapes = [(size, *like.shape[1:]) for size in sizes]
    return da.concatenate(
        [
            da.from_delayed(part, shape=shape, dtype=like.dtype, meta=like)
            for part, shape in zip(parts, shapes, strict=True)
        ]
    )


def over_rows(function: Callable[[NDArray[Any]], NDArray[Any]], array: Any) -> Any:
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
    """A function that starts no threads of its own, as one task among others on a worker."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", "task")  # what a dashboard shows

    def __call__(self, *arguments: Any) -> Any:
        with one_share():
            return self.function(*arguments)


def task(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes delayed calls."""
    from dask import delayed

    return delayed(Task(function), pure=False, traverse=False)


def constant(value: Any) -> Any:
    """Return a delayed value for many tasks, which is moved once.

    It stays in the graph: unlike scattered data, it is not lost with a worker.
    """
    from dask import delayed

    return delayed(value, pure=False, traverse=False)


def reduced(parts: Sequence[Any], combine: Callable[..., Any]) -> Any:
    """Return the delayed combination of delayed parts, by a tree of tasks.

    ``combine(*parts)`` takes a few parts, or its own results, in their order.
    """
    one, parts = task(combine), list(parts)
    while len(parts) > 1:
        groups = [parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN)]
        parts = [one(*group) if len(group) > 1 else group[0] for group in groups]
    return parts[0]


def computed(*collections: Any) -> tuple[Any, ...]:
    """Compute delayed objects with the configured scheduler."""
    import dask

    with quiet_about_size():
        return tuple(dask.compute(*collections))


def persisted(X: Any) -> Any:
    """Compute a dask array on the workers, and keep it there."""
    with quiet_about_size():
        return X.persist()


@contextmanager
def quiet_about_size() -> Iterator[None]:
    """Suppress dask's warning about large graphs; scattered data could be lost with a worker."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        yield
