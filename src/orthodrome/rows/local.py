"""Rows on this machine: arrays, memory maps, sparse arrays, zarr arrays, and batches."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from threading import Lock
from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._core.checks import numbers_expected
from .._core.files import temporary_map
from .._core.kinds import is_memory_map
from .._core.threads import run_in_threads, run_over_rows
from ..kernels import Kernel
from .base import (
    BlockFunction,
    RowCheck,
    Rows,
    added,
    block_rows,
    block_sums,
    rows_at_once,
    rows_named,
    stacked,
)

__all__ = ["ArrayRows", "BatchRows", "ZarrRows", "zarr_rows"]

# The most rows of a block where the data have no blocks of their own.
_BLOCK = 4096

# Batches with fewer rows are put together, so that threads have something to share.
_SMALL = 8192


class _Result:
    """What a function returns for each row, written where it belongs by several threads.

    Where the number of rows is known, each array is allocated once, when the first part arrives;
    otherwise the parts are put together in the end, which takes twice the memory for a moment.
    """

    def __init__(self, n: int | None, keep: str) -> None:
        self._n, self._keep, self._lock = n, keep, Lock()
        self._whole: list[NDArray[Any]] = []
        self._parts: dict[int, tuple[NDArray[Any], ...]] = {}
        self._single = True

    def write(self, start: int, part: Any) -> None:
        """Keep what belongs to rows from `start` on; None if there are none."""
        if part is None:
            return
        self._single = not isinstance(part, tuple)
        arrays = (part,) if self._single else part
        if self._n is None:
            self._parts[start] = arrays
            return
        with self._lock:
            if not self._whole:
                self._whole = [self._allocate(array) for array in arrays]
        for whole, array in zip(self._whole, arrays, strict=True):
            whole[start : start + len(array)] = array

    def _allocate(self, part: NDArray[Any]) -> NDArray[Any]:
        shape = (int(self._n or 0), *part.shape[1:])
        if self._keep == "disk" and part.ndim > 1:
            return temporary_map("The matrix of coordinates", shape, part.dtype)
        return np.empty(shape, dtype=part.dtype)

    def all(self) -> Any:
        """Return what was written."""
        arrays = self._whole or [
            np.concatenate(parts)
            for parts in zip(*[self._parts[start] for start in sorted(self._parts)], strict=True)
        ]
        return arrays[0] if self._single else tuple(arrays)


class _LocalRows(Rows):
    """Rows that are read by threads of this process.

    A subclass supplies `_visited`, which calls a function for each block of one pass.
    """

    serial: bool  # whether functions of blocks must run in one thread
    _check: RowCheck | None
    _count: int | None  # of rows, where it is known

    @abstractmethod
    def _visited(
        self, visit: Callable[[Any, int, dict[str, Any]], Any], function: BlockFunction
    ) -> Iterator[Any]:
        """Yield, for each thread or block, a list of what `visit` returned."""

    def _attached(self, start: int, stop: int) -> dict[str, Any]:
        return {name: column[start:stop] for name, column in self.columns.items()}

    def reduce(self, function: BlockFunction) -> tuple[NDArray[np.float64], ...]:
        """Add up what the function returns for each block: one pass over the rows."""

        def visit(block: Any, start: int, columns: dict[str, Any]) -> Any:
            return block_sums(function, self._check, block, start, columns)

        total = None
        for part in self._visited(visit, function):
            total = added(total, part)
        if total is None:
            raise ValueError("There is no row to add up.")
        return total

    def map(self, function: BlockFunction, keep: str = "memory") -> Any:
        """Return what the function returns for each block, one below the other."""
        found = _Result(self._count, keep)

        def visit(block: Any, start: int, columns: dict[str, Any]) -> None:
            found.write(start, block_rows(function, self._check, block, start, columns))

        for _ in self._visited(visit, function):
            pass
        return found.all()

    def blocks(self, first: int = 0) -> Iterator[Any]:
        """Yield validated blocks in order; errors count rows from the number `first` on."""
        for start, block in self._in_order():
            yield block if self._check is None else self._check(block, first + start)

    @abstractmethod
    def _in_order(self) -> Iterator[tuple[int, Any]]:
        """Yield blocks and the numbers of their first rows."""

    def _gathered(
        self, indices: NDArray[np.intp], blocks: Iterator[tuple[int, int, Any]], check: RowCheck
    ) -> Any:
        """Return rows by number from blocks (start, stop, function that reads it) in order."""
        order = np.argsort(indices, kind="stable")
        wanted = indices[order]
        parts = []
        for start, stop, read in blocks:
            low, high = np.searchsorted(wanted, [start, stop])
            if low < high:
                numbers = wanted[low:high]
                parts.append(check(read()[numbers - start], numbers))
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return stacked(parts)[places]


class _IndexedRows(_LocalRows):
    """Blocks that can be read in any order: each thread reads its own."""

    _X: Any

    def _set(self, X: Any, check: RowCheck | None, first: Any, serial: bool) -> None:
        self._X, self._check, self.serial = X, check, serial
        self._count = int(X.shape[0])
        self.shape = (self._count, *first.shape[1:])
        self.dtype = np.dtype(first.dtype)

    def _block_size(self, function: BlockFunction) -> int:
        """Return how many rows are read together."""
        return min(rows_at_once(function), _BLOCK)

    def _read(self, start: int, stop: int) -> Any:
        return self._X[start:stop]

    def _visited(
        self, visit: Callable[[Any, int, dict[str, Any]], Any], function: BlockFunction
    ) -> Iterator[Any]:
        n, step = self.shape[0], self._block_size(function)
        starts = range(0, n, step)

        def share(first: int, n_shares: int) -> Any:
            total: Any = None
            for start in starts[first::n_shares]:
                stop = min(start + step, n)
                part = visit(self._read(start, stop), start, self._attached(start, stop))
                total = added(total, part)
            return total

        work = n * getattr(function, "work_per_row", math.inf)
        yield from run_in_threads(share, len(starts), serial=self.serial, work=work)

    def _in_order(self) -> Iterator[tuple[int, Any]]:
        n, step = self.shape[0], self._block_size(len)
        return ((start, self._read(start, min(start + step, n))) for start in range(0, n, step))


class ArrayRows(_IndexedRows):
    """Rows of an array, a memory map or a sparse array: blocks are views.

    They are validated here, once; only memory maps that must be converted for that are validated
    block by block, in every pass. `mapped` tells whether they are a memory map.
    """

    def __init__(self, X: Any, kernel: Kernel, estimator: Any, *, reset: bool = True) -> None:
        check = None
        self.mapped = is_memory_map(X)
        if self.mapped:
            refuse_no_rows(X, estimator)
        if not self.mapped or (kernel.takes_vectors and X.dtype in (np.float32, np.float64)):
            with rows_named(X, 0, type(estimator).__name__):
                X = kernel.validate(X, estimator=estimator, reset=reset)
        else:
            check = RowCheck.of(kernel, X[:1], estimator, reset=reset)
        first = X[:1] if check is None else check(X[:1], 0)
        self._set(X, check, first, not kernel.threadsafe)

    @classmethod
    def of(cls, X: Any, *, serial: bool = False) -> Self:
        """Make rows of an array that needs no check; `serial` keeps them in one thread."""
        rows = cls.__new__(cls)
        rows.mapped = is_memory_map(X)
        rows._set(X, None, X[:1], serial)
        return rows

    @property
    def array(self) -> Any:
        """The rows as they are stored, which those of a memory map may not have been checked."""
        return self._X

    def _in_order(self) -> Iterator[tuple[int, Any]]:
        return iter([(0, self._X)]) if self._check is None else super()._in_order()

    def whole(self) -> Any:
        """Return all validated rows."""
        return self._X if self._check is None else self._check(self._X, 0)

    def together(self, indices: NDArray[np.intp]) -> Any:
        """Return rows in ascending order; all of them as they are."""
        everything = self._check is None and len(indices) == self.shape[0]
        return self._X if everything else self.take(indices)

    def take(self, indices: NDArray[np.intp]) -> Any:
        """Return a few validated rows."""
        numbers = np.asarray(indices, dtype=np.intp)
        rows = self._X[numbers]
        return rows if self._check is None else self._check(rows, numbers)


def zarr_rows(X: Any) -> int:
    """Return how many rows of a zarr array are stored together: those of a shard or chunk."""
    return max(1, int((getattr(X, "shards", None) or X.chunks)[0]))


class ZarrRows(_IndexedRows):
    """Rows of a zarr array: blocks are its chunks, or several small ones; a thread reads one."""

    def __init__(self, X: Any, kernel: Kernel, estimator: Any, *, reset: bool = True) -> None:
        refuse_no_rows(X, estimator)
        first = np.asarray(X[0:1])
        check = RowCheck.of(kernel, first, estimator, reset=reset)
        self._set(X, check, check(first, 0), not kernel.threadsafe)

    def _block_size(self, function: BlockFunction) -> int:
        rows = zarr_rows(self._X)
        return rows * max(1, _BLOCK // rows)

    def _read(self, start: int, stop: int) -> Any:
        return np.asarray(self._X[start:stop])

    def take(self, indices: NDArray[np.intp]) -> Any:
        """Return a few validated rows; a block that holds some of them is read once."""
        step, n = zarr_rows(self._X), self.shape[0]
        blocks = (
            (start, min(start + step, n), lambda start=start: self._read(start, start + step))
            for start in range(0, n, step)
        )
        assert self._check is not None
        return self._gathered(np.asarray(indices, dtype=np.intp), blocks, self._check)


def refuse_no_rows(X: Any, estimator: Any) -> None:
    """Raise unless X has rows of features, at least one."""
    if len(X.shape) < 2 or not X.shape[0]:
        raise ValueError(
            f"{type(estimator).__name__} takes rows of features, at least one; got data of "
            f"shape {tuple(X.shape)}. Reshape them to (n_samples, n_features)."
        )


class BatchRows(_LocalRows):
    """Rows of batches that are read one after the other, anew in every pass.

    Small batches are put together, and threads share what was read. With `reset` and `count` the
    rows are counted first, which is a pass; otherwise they have no shape.
    """

    def __init__(
        self,
        X: Iterable[Any],
        kernel: Kernel,
        estimator: Any,
        *,
        reset: bool = True,
        count: bool = True,
    ) -> None:
        self._X = X
        self.once = hasattr(X, "__next__")
        self.serial = not kernel.threadsafe
        self._kernel, self._estimator = kernel, estimator
        self._owner = type(estimator).__name__
        self._check = None
        self._names: list[Any] | None = None
        self._count = None
        self._read_before = False
        self._reset = reset
        if reset and count:
            self._count_rows()

    def _count_rows(self) -> None:
        """Pass over the batches once, for the number of rows, their shape and their precision."""
        n, single, row = 0, True, None
        for start, block in self._in_order():
            n = start + block.shape[0]
            single = single and block.dtype == np.float32
            row = block[:1].copy() if row is None else row
        if self._check is None:
            raise ValueError(f"{self._owner} takes at least one row; the batches have none.")
        self._count = n
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self._check = replace(self._check, dtype=self.dtype)
        self.shape = (n, *self._check(row, 0).shape[1:])

    def weights(self, sample_weight: Any, owner: str, dtype: Any = None) -> Any:
        """Return checked weights; to know how many there must be, the rows are counted."""
        if sample_weight is None:
            return None
        if self._count is None:
            self._count_rows()
        return super().weights(sample_weight, owner, dtype)

    # ------------------------------------------------------------------ reading

    def _batches(self) -> Iterator[Any]:
        """Read the batches as arrays; the first of all is seen by the kernel."""
        if self._read_before and self.once:
            raise ValueError(
                f"{type(self._X).__name__} can be read only once, and {self._owner} needs another "
                "pass. Give a list of batches, or an object whose __iter__ starts anew."
            )
        self._read_before = True
        for batch in self._X:
            array = self._as_array(batch)
            if not array.shape[0]:
                continue
            if self._check is None:
                first = batch if hasattr(batch, "columns") else array
                self._check = RowCheck.of(self._kernel, first, self._estimator, reset=self._reset)
            yield array

    def _as_array(self, batch: Any) -> Any:
        if hasattr(batch, "columns"):  # a data frame: the columns of the first, in their order
            columns = list(batch.columns)
            self._names = self._names or columns
            if columns != self._names:
                raise ValueError(
                    f"All batches for {self._owner} must have the same columns, "
                    f"{self._names}; one has {columns}."
                )
        with numbers_expected(batch, "A batch", self._owner):
            array = batch.tocsr() if scipy.sparse.issparse(batch) else np.asarray(batch)
        if array.ndim < 2:
            raise ValueError(
                f"The batches for {self._owner} must be arrays of rows, of two dimensions; got one "
                f"of shape {array.shape}. A single row is batch[None, :]."
            )
        return array

    def _in_order(self) -> Iterator[tuple[int, Any]]:
        """Yield blocks with the numbers of their first rows, small batches put together."""
        waiting: list[Any] = []
        start = n_waiting = 0
        for array in self._batches():
            if waiting and array.shape[1:] != waiting[0].shape[1:]:
                first = self._check.features  # type: ignore[union-attr]  # a batch was read
                raise ValueError(
                    f"All batches for {self._owner} must have rows of the same shape, {first}; the "
                    f"one that begins at row {start + n_waiting} has {array.shape[1:]}."
                )
            n_waiting += array.shape[0]
            if self._count is not None and start + n_waiting > self._count:
                self._refuse_other_rows("more")
            if n_waiting >= _SMALL:
                yield start, stacked([*waiting, array])
                start, waiting, n_waiting = start + n_waiting, [], 0
            else:  # a copy: the next batch may be read into the same array
                waiting.append(array.copy())
        if waiting:
            yield start, stacked(waiting)
            start += n_waiting
        if self._count is not None and start != self._count:
            self._refuse_other_rows(str(start))

    def _refuse_other_rows(self, found: str) -> NoReturn:
        raise ValueError(
            f"The batches for {self._owner} had {self._count} rows in the first pass and {found} "
            "in a later one; every pass must give the same rows."
        )

    def _visited(
        self, visit: Callable[[Any, int, dict[str, Any]], Any], function: BlockFunction
    ) -> Iterator[Any]:
        for start, block in self._in_order():

            def share(rows: slice, start: int = start, block: Any = block) -> Any:
                first, last = start + rows.start, start + rows.stop
                return visit(block[rows], first, self._attached(first, last))

            n = block.shape[0]
            yield from [share(slice(0, n))] if self.serial else run_over_rows(share, n)
        if self._check is None:
            raise ValueError(f"{self._owner} takes at least one row; the batches have none.")

    def take(self, indices: NDArray[np.intp]) -> Any:
        """Return a few validated rows: a pass over the batches."""
        blocks = (
            (start, start + block.shape[0], lambda block=block: block)
            for start, block in self._in_order()
        )
        if self._check is None:
            raise ValueError("Rows can be taken of batches that have been counted.")
        return self._gathered(np.asarray(indices, dtype=np.intp), blocks, self._check)
