"""Rows on this machine: arrays, memory maps, sparse arrays, zarr arrays, and batches."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from threading import Lock
from typing import Any, Self

import numpy as np
import scipy.sparse

from .._core.checks import numbers_expected
from .._core.files import temporary_map
from .._core.kinds import is_memory_map
from .._core.threads import run_in_threads, run_over_rows
from .._core.types import Array, Floats, Indices
from ..kernels import Kernel
from .base import (
    BlockFunction,
    RowCheck,
    Rows,
    join_results,
    rows_at_once,
    rows_named,
    stacked,
    sum_results,
    visit_block,
)

# Maximum number of rows per block, if the data have no chunks.
_BLOCK = 4096

# Smaller batches are concatenated, so that threads have enough work.
_SMALL = 8192

#: The index of the first row of a block, and the block.
Numbered = tuple[int, Any]

#: A function that one thread calls with its blocks.
Worker = Callable[[Iterable[Numbered]], Any]


class _LocalRows(Rows):
    """Rows that are read by threads of this process."""

    serial: bool  # whether block functions must run in one thread

    @abstractmethod
    def _run(self, worker: Worker, function: BlockFunction) -> Iterable[Any]:
        """Make one pass over the rows; return ``worker(blocks)`` of each thread."""

    @abstractmethod
    def _in_order(self) -> Iterator[Numbered]:
        """Yield the blocks of one pass, each with the index of its first row."""

    def _visit(self, collect: Any, function: BlockFunction, start: int, block: Any) -> Any:
        """Call a block function with the columns of the block."""
        rows = slice(start, start + block.shape[0])
        columns = {name: column[rows] for name, column in self.columns.items()}
        return visit_block(collect, function, self._check, block, start, columns)

    def reduce(self, function: BlockFunction) -> tuple[Floats, ...]:
        """Sum the results of a block function, in one pass."""

        def worker(blocks: Iterable[Numbered]) -> Any:
            return sum_results(self._visit(sum_results, function, *block) for block in blocks)

        return sum_results(self._run(worker, function))

    def map(self, function: BlockFunction, keep: str = "memory") -> Any:
        """Return the concatenated results of a block function, in one pass.

        If the number of rows is known, results are allocated once; otherwise the blocks are
        concatenated at the end, which briefly needs twice the memory.
        """
        targets: list[Array] = []
        results: dict[int, tuple[Array, ...]] = {}
        lock = Lock()
        single = True

        def worker(blocks: Iterable[Numbered]) -> None:
            nonlocal single
            for start, block in blocks:
                result = self._visit(join_results, function, start, block)
                single = not isinstance(result, tuple)
                arrays = (result,) if single else result
                if not self.shape:
                    results[start] = arrays
                    continue
                with lock:
                    if not targets:
                        targets.extend(_allocate(self.shape[0], each, keep) for each in arrays)
                for target, array in zip(targets, arrays, strict=True):
                    target[start : start + len(array)] = array

        for _ in self._run(worker, function):
            pass
        in_order = [results[start] for start in sorted(results)]
        found = targets or [np.concatenate(each) for each in zip(*in_order, strict=True)]
        return found[0] if single else tuple(found)

    def blocks(self, first: int = 0) -> Iterator[Any]:
        """Yield validated blocks in order; row numbers in errors begin at `first`."""
        for start, block in self._in_order():
            yield block if self._check is None else self._check(block, first + start)


def _allocate(n: int, like: Array, keep: str) -> Array:
    """Return an uninitialised array, or memory map, with n rows like those of `like`."""
    shape = (n, *like.shape[1:])
    if keep == "disk" and like.ndim > 1:
        return temporary_map("The matrix of coordinates", shape, like.dtype)
    return np.empty(shape, dtype=like.dtype)


class _IndexedRows(_LocalRows):
    """Rows that can be read in any order, so that each thread reads its blocks itself."""

    array: Any  # validated, unless `_check` is set
    _step: int | None = None  # rows per block, if the data have chunks

    def _run(self, worker: Worker, function: BlockFunction) -> Iterable[Any]:
        step = self._step or min(rows_at_once(function), _BLOCK)
        starts = range(0, self.shape[0], step)
        work = self.shape[0] * getattr(function, "work_per_row", math.inf)

        def run_worker(index: int, n_workers: int) -> Any:
            assigned = starts[index::n_workers]
            return worker((start, self.array[start : start + step]) for start in assigned)

        return run_in_threads(run_worker, len(starts), serial=self.serial, work=work)

    def _in_order(self) -> Iterator[Numbered]:
        step = self._step or _BLOCK
        for start in range(0, self.shape[0], step):
            yield start, self.array[start : start + step]


class ArrayRows(_IndexedRows):
    """Rows of an array, a memory map or a sparse array: blocks are views.

    They are validated once, except memory maps that must be converted: these are validated block by
    block, in every pass.
    """

    def __init__(self, X: Any, kernel: Kernel, estimator: Any, *, reset: bool = True) -> None:
        self.mapped = is_memory_map(X)
        floating = self.mapped and X.dtype in (np.float32, np.float64)
        if self.mapped and X.ndim > 1 and not (floating and kernel.takes_vectors):
            self._check_rows_by(kernel, X[:1], X.shape[0], estimator, reset=reset)
        else:
            with rows_named(X, 0, type(estimator).__name__):
                X = kernel.validate(X, estimator=estimator, reset=reset)
            self.shape, self.dtype = X.shape, np.dtype(X.dtype)
        self.array, self.serial = X, not kernel.threadsafe

    @classmethod
    def of(cls, X: Any, *, serial: bool = False) -> Self:
        """Make rows of an array that needs no validation; `serial` allows only one thread."""
        rows = cls.__new__(cls)
        rows.mapped = is_memory_map(X)
        rows.array, rows.serial = X, serial
        rows.shape, rows.dtype = X.shape, np.dtype(X.dtype)
        return rows

    def _in_order(self) -> Iterator[Numbered]:
        return iter([(0, self.array)]) if self._check is None else super()._in_order()

    def whole(self) -> Any:
        """Return all validated rows."""
        return self.array if self._check is None else self._check(self.array, 0)

    def together(self, indices: Indices) -> Any:
        """Return rows with ascending indices; avoid a copy if these are all rows."""
        all_rows = self._check is None and len(indices) == self.shape[0]
        return self.array if all_rows else self.take(indices)

    def _fetch(self, indices: Indices) -> Any:
        return self.array[indices]


class ZarrRows(_IndexedRows):
    """Rows of a zarr array; a block is one chunk, or a few small ones."""

    def __init__(self, X: Any, kernel: Kernel, estimator: Any, *, reset: bool = True) -> None:
        if len(X.shape) < 2 or not X.shape[0]:
            raise ValueError(
                f"{type(estimator).__name__} needs at least one row and two dimensions; got shape "
                f"{tuple(X.shape)}. Reshape the array to (n_samples, n_features)."
            )
        self._check_rows_by(kernel, X[0:1], X.shape[0], estimator, reset=reset)
        self.array, self.serial = X, not kernel.threadsafe
        chunk = max(1, int((getattr(X, "shards", None) or X.chunks)[0]))
        self._step = chunk * max(1, _BLOCK // chunk)

    def _fetch(self, indices: Indices) -> Any:
        return self.array.oindex[indices]


def once_error(X: Any, owner: str, advice: str = "") -> ValueError:
    """Return the error for an iterator that would have to be read several times."""
    return ValueError(
        f"{owner} passes over the rows several times, and a {type(X).__name__} can be read only "
        f"once. Use a list of batches, or an object whose __iter__ starts again{advice}."
    )


class BatchRows(_LocalRows):
    """Rows from batches. Each pass iterates over the batches again.

    Small batches are concatenated. With `reset` and `count`, a first pass counts the rows;
    otherwise their shape is unknown.
    """

    # until the rows are counted, blocks keep their own type
    dtype: np.dtype[Any] = np.dtype(np.float64)

    def __init__(
        self,
        X: Iterable[Any],
        kernel: Kernel,
        estimator: Any,
        *,
        reset: bool = True,
        count: bool = True,
    ) -> None:
        self._X, self._kernel, self._estimator, self._reset = X, kernel, estimator, reset
        self.once = hasattr(X, "__next__")
        self.serial = not kernel.threadsafe
        self._owner = type(estimator).__name__
        self._names: list[Any] | None = None
        self._read_before = False
        if reset and count:
            self._count_rows()

    def _count_rows(self) -> None:
        """Find the number, shape and type of the rows in one pass."""
        n, single, row = 0, True, None
        for start, block in self._in_order():
            n = start + block.shape[0]
            single = single and block.dtype == np.float32
            row = block[:1].copy() if row is None else row
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self._check = replace(self._checked(), dtype=self.dtype)
        self.shape = (n, *self._check(row, 0).shape[1:])

    def weights(self, sample_weight: Any, owner: str, dtype: Any = None) -> Any:
        """Return checked weights; count the rows if necessary."""
        if sample_weight is None:
            return None
        if not self.shape:
            self._count_rows()
        return super().weights(sample_weight, owner, dtype)

    # ------------------------------------------------------------------ reading

    def _batches(self) -> Iterator[Any]:
        """Yield the batches as arrays; create the row check from the first batch."""
        if self._read_before and self.once:
            raise once_error(self._X, self._owner)
        self._read_before = True
        start = 0
        for batch in self._X:
            array = self._as_array(batch)
            if not array.shape[0]:
                continue
            if self._check is None:
                first = batch if hasattr(batch, "columns") else array
                self._check = RowCheck.of(self._kernel, first, self._estimator, reset=self._reset)
                self._features = array.shape[1:]
            if array.shape[1:] != self._features:
                raise ValueError(
                    f"All batches for {self._owner} must have rows of the same shape, "
                    f"{self._features}; the one that begins at row {start} has {array.shape[1:]}."
                )
            yield array
            start += array.shape[0]

    def _as_array(self, batch: Any) -> Any:
        if hasattr(batch, "columns"):  # data frames need the same columns, in the same order
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
                f"The batches for {self._owner} must have at least two dimensions; got one of "
                f"shape {array.shape}. For a single row, use batch[None, :]."
            )
        return array

    def _in_order(self) -> Iterator[Numbered]:
        """Yield the blocks of one pass; small batches are concatenated."""
        pending: list[Any] = []
        start = n = 0
        for array in self._batches():
            n += array.shape[0]
            if self.shape and n > self.shape[0]:
                break
            if n - start >= _SMALL:
                yield start, stacked([*pending, array])
                start, pending = n, []
            else:  # a copy: the next batch may be read into the same array
                pending.append(array.copy())
        if self.shape and n != self.shape[0]:
            found = "more" if n > self.shape[0] else n
            raise ValueError(
                f"The batches for {self._owner} had {self.shape[0]} rows in the first pass and "
                f"{found} in a later one; every pass must give the same rows."
            )
        if pending:
            yield start, stacked(pending)

    def _run(self, worker: Worker, function: BlockFunction) -> Iterable[Any]:
        for start, block in self._in_order():

            def run_worker(rows: slice, start: int = start, block: Any = block) -> Any:
                return worker([(start + rows.start, block[rows])])

            yield from run_over_rows(run_worker, block.shape[0], serial=self.serial)
        self._checked()

    def _checked(self) -> RowCheck:
        """Return the check of the blocks, or raise if there were no rows."""
        if self._check is None:
            raise ValueError(f"{self._owner} needs at least one row; the batches have none.")
        return self._check

    def _fetch(self, indices: Indices) -> Any:
        """Return rows, in one pass over the batches."""
        order = np.argsort(indices, kind="stable")
        wanted, found = indices[order], []
        for start, block in self._in_order():
            low, high = np.searchsorted(wanted, [start, start + block.shape[0]])
            if low < high:
                found.append(block[wanted[low:high] - start])
        return stacked(found)[np.argsort(order)]
