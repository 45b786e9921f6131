"""Sources of rows on this machine: arrays, memory maps, sparse arrays, zarr arrays, batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, NoReturn

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._core.threads import run_in_threads, run_over_rows
from ..kernels import Kernel
from .sources import BlockFunction, RowCheck, RowSource, added, block_rows, block_sums, stacked

__all__ = ["ArraySource", "BatchSource", "ZarrSource", "zarr_rows"]

# Rows of a block where the data have no blocks of their own: views, which take no memory.
_BLOCK = 4096

# Batches with fewer rows are put together, so that threads have something to share.
_SMALL = 8192


class _Rows:
    """What there is for each row, written where it belongs by several threads.

    Where the number of rows is known, there is one array for it, which the first part lays out;
    else the parts are put together in the end, for which there is twice as much for a moment.
    """

    def __init__(self, n: int | None) -> None:
        self._n, self._lock = n, Lock()
        self._whole: NDArray[Any] | None = None
        self._parts: dict[int, NDArray[Any]] = {}

    def write(self, start: int, part: Any) -> None:
        """Keep what belongs to rows from `start` on; None if there are none."""
        if part is None:
            return
        if self._n is None:
            self._parts[start] = part
            return
        with self._lock:
            if self._whole is None:
                self._whole = np.empty((self._n, *part.shape[1:]), dtype=part.dtype)
        self._whole[start : start + len(part)] = part

    def all(self) -> NDArray[Any]:
        """Return what was written."""
        if self._whole is not None:
            return self._whole
        return np.concatenate([self._parts[start] for start in sorted(self._parts)])


class _LocalSource(RowSource):
    """Blocks that are read here; a subclass says in which order, and by whom."""

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


class _IndexedSource(_LocalSource):
    """Blocks that can be read in any order: each thread reads its own."""

    def __init__(self, X: Any, kernel: Kernel, estimator: Any, *, reset: bool = True) -> None:
        if len(X.shape) < 2 or not X.shape[0]:
            raise ValueError(
                f"{type(estimator).__name__} takes rows of features, at least one; got data of "
                f"shape {tuple(X.shape)}. Reshape them to (n_samples, n_features)."
            )
        self._X, self._serial = X, not kernel.threadsafe
        self._starts = range(0, int(X.shape[0]), self._rows_of_block())
        self._check = RowCheck.of(kernel, self._read(0, 1), estimator, reset=reset)
        first = self._check(self._read(0, 1), 0)
        self.n_blocks = len(self._starts)
        self.shape = (int(X.shape[0]), *first.shape[1:])
        self.dtype = np.dtype(first.dtype)

    @abstractmethod
    def _rows_of_block(self) -> int: ...

    @abstractmethod
    def _read(self, start: int, stop: int) -> Any: ...

    def _bounds(self, block: int) -> tuple[int, int]:
        start = self._starts[block]
        return start, min(start + self._starts.step, self.shape[0])

    def sums(
        self, function: BlockFunction, *arguments: Any, along: Sequence[Any] = ()
    ) -> tuple[NDArray[np.float64], ...]:
        """Add up what the function returns for each block: one pass over the rows."""

        def visit(share: int, n_shares: int) -> tuple[Any, ...] | None:
            total = None
            for block in range(share, self.n_blocks, n_shares):
                start, stop = self._bounds(block)
                beside = [array[start:stop] for array in along]
                rows = self._read(start, stop)
                part = block_sums(function, self._check, rows, start, beside, arguments)
                total = added(total, part)
            return total

        return _sum_of(run_in_threads(visit, self.n_blocks, serial=self._serial))

    def per_row(
        self, function: BlockFunction, *arguments: Any, along: Sequence[Any] = ()
    ) -> NDArray[Any]:
        """Return what the function returns for each block, one below the other."""
        found = _Rows(self.shape[0])

        def visit(share: int, n_shares: int) -> None:
            for block in range(share, self.n_blocks, n_shares):
                start, stop = self._bounds(block)
                beside = [array[start:stop] for array in along]
                rows = self._read(start, stop)
                found.write(
                    start, block_rows(function, self._check, rows, start, beside, arguments)
                )

        run_in_threads(visit, self.n_blocks, serial=self._serial)
        return found.all()

    def take(self, indices: NDArray[np.intp]) -> Any:
        """Return a few validated rows; a block that holds some of them is read once."""

        def blocks() -> Iterator[tuple[int, int, Any]]:
            for block in range(self.n_blocks):
                start, stop = self._bounds(block)
                yield start, stop, lambda start=start, stop=stop: self._read(start, stop)

        return self._gathered(np.asarray(indices, dtype=np.intp), blocks(), self._check)


class ArraySource(_IndexedSource):
    """Rows of an array, a memory map or a sparse array: blocks are views."""

    def __init__(self, X: Any, kernel: Kernel, estimator: Any, *, reset: bool = True) -> None:
        X = X if hasattr(X, "shape") and hasattr(X, "dtype") else np.asarray(X)
        X = X.tocsr() if scipy.sparse.issparse(X) else X
        super().__init__(X, kernel, estimator, reset=reset)

    def _rows_of_block(self) -> int:
        return _BLOCK

    def _read(self, start: int, stop: int) -> Any:
        return self._X[start:stop]

    def take(self, indices: NDArray[np.intp]) -> Any:
        """Return a few validated rows."""
        numbers = np.asarray(indices, dtype=np.intp)
        return self._check(self._X[numbers], numbers)


def zarr_rows(X: Any) -> int:
    """Return how many rows of a zarr array are stored together: those of a shard or chunk."""
    return max(1, int((getattr(X, "shards", None) or X.chunks)[0]))


class ZarrSource(_IndexedSource):
    """Rows of a zarr array: blocks are its chunks, or several small ones; a thread reads one."""

    def _rows_of_block(self) -> int:
        rows = zarr_rows(self._X)
        return rows * max(1, _BLOCK // rows)

    def _read(self, start: int, stop: int) -> Any:
        return np.asarray(self._X[start:stop])


class BatchSource(_LocalSource):
    """Rows of batches that are read one after the other, anew in every pass.

    Small batches are put together, and threads share what was read. With `reset` the rows are
    counted first, which is a pass; without, there may be as few as one, and no shape.
    """

    def __init__(
        self, X: Iterable[Any], kernel: Kernel, estimator: Any, *, reset: bool = True
    ) -> None:
        self._X = X
        self._serial = not kernel.threadsafe
        self._kernel, self._estimator = kernel, estimator
        self._owner = type(estimator).__name__
        self._check: RowCheck | None = None
        self._columns: list[Any] | None = None
        self._n: int | None = None
        self._read_before = False
        if reset:
            self._count(reset=True)

    def _count(self, reset: bool) -> None:
        """Pass over the batches once, for the number of rows, their shape and their precision."""
        n = self.n_blocks = 0
        single = True
        for start, block in self._blocks(reset):
            self.n_blocks += 1
            n = start + block.shape[0]
            single = single and block.dtype == np.float32
            if self.n_blocks == 1:
                first = block[:1].copy()
        if self._check is None:
            raise ValueError(f"{self._owner} takes at least one row; the batches have none.")
        self._n = n
        dtype = np.dtype(np.float32 if single else np.float64)
        self._check = replace(self._check, dtype=dtype)
        self.dtype = dtype
        self.shape = (n, *self._check(first, 0).shape[1:])

    def weights(self, sample_weight: Any, owner: str) -> Any:
        """Return checked weights; to know how many there must be, the rows are counted."""
        if sample_weight is not None and self._n is None:
            self._count(reset=False)
        return super().weights(sample_weight, owner) if sample_weight is not None else None

    # ------------------------------------------------------------------ reading

    def _batches(self, reset: bool) -> Iterator[Any]:
        """Read the batches as arrays; the first of all is seen by the kernel."""
        if self._read_before and hasattr(self._X, "__next__"):
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
                self._check = RowCheck.of(self._kernel, first, self._estimator, reset=reset)
            yield array

    def _as_array(self, batch: Any) -> Any:
        if hasattr(batch, "columns"):  # a data frame: the columns of the first, in their order
            columns = list(batch.columns)
            self._columns = self._columns or columns
            if columns != self._columns:
                raise ValueError(
                    f"All batches for {self._owner} must have the same columns, "
                    f"{self._columns}; one has {columns}."
                )
        array = batch.tocsr() if scipy.sparse.issparse(batch) else np.asarray(batch)
        if array.ndim < 2:
            raise ValueError(
                f"The batches for {self._owner} must be arrays of rows, of two dimensions; got one "
                f"of shape {array.shape}. A single row is batch[None, :]."
            )
        return array

    def _blocks(self, reset: bool = False) -> Iterator[tuple[int, Any]]:
        """Yield blocks with the numbers of their first rows, small batches put together."""
        waiting: list[Any] = []
        start = n_waiting = 0
        for array in self._batches(reset):
            if waiting and array.shape[1:] != waiting[0].shape[1:]:
                first = self._check.features  # type: ignore[union-attr]  # a batch was read
                raise ValueError(
                    f"All batches for {self._owner} must have rows of the same shape, {first}; the "
                    f"one that begins at row {start + n_waiting} has {array.shape[1:]}."
                )
            n_waiting += array.shape[0]
            if self._n is not None and start + n_waiting > self._n:
                self._refuse_other_rows("more")
            if n_waiting >= _SMALL:
                yield start, stacked([*waiting, array])
                start, waiting, n_waiting = start + n_waiting, [], 0
            else:  # a copy: the next batch may be read into the same array
                waiting.append(array.copy())
        if waiting:
            yield start, stacked(waiting)
            start += n_waiting
        if self._n is not None and start != self._n:
            self._refuse_other_rows(str(start))

    def _refuse_other_rows(self, found: str) -> NoReturn:
        raise ValueError(
            f"The batches for {self._owner} had {self._n} rows in the first pass and {found} in a "
            "later one; every pass must give the same rows."
        )

    # ------------------------------------------------------------------ passes

    def sums(
        self, function: BlockFunction, *arguments: Any, along: Sequence[Any] = ()
    ) -> tuple[NDArray[np.float64], ...]:
        """Add up what the function returns for each block: one pass over the rows."""
        total = None
        for start, block in self._blocks():

            def visit(rows: slice, start: int = start, block: Any = block) -> Any:
                first = start + rows.start
                beside = [array[first : start + rows.stop] for array in along]
                return block_sums(function, self._check, block[rows], first, beside, arguments)

            for part in self._shared(visit, block.shape[0]):
                total = added(total, part)
        return _sum_of([total])

    def per_row(
        self, function: BlockFunction, *arguments: Any, along: Sequence[Any] = ()
    ) -> NDArray[Any]:
        """Return what the function returns for each block, one below the other."""
        found = _Rows(self._n)
        for start, block in self._blocks():

            def visit(rows: slice, start: int = start, block: Any = block) -> None:
                first = start + rows.start
                beside = [array[first : start + rows.stop] for array in along]
                part = block_rows(function, self._check, block[rows], first, beside, arguments)
                found.write(first, part)

            self._shared(visit, block.shape[0])
        if self._check is None:
            raise ValueError(f"{self._owner} takes at least one row; the batches have none.")
        return found.all()

    def _shared(self, visit: Any, n_rows: int) -> list[Any]:
        return [visit(slice(0, n_rows))] if self._serial else run_over_rows(visit, n_rows)

    def take(self, indices: NDArray[np.intp]) -> Any:
        """Return a few validated rows: a pass over the batches."""
        blocks = (
            (start, start + block.shape[0], lambda block=block: block)
            for start, block in self._blocks()
        )
        if self._check is None:
            raise ValueError("Rows can be taken of batches that have been counted.")
        return self._gathered(np.asarray(indices, dtype=np.intp), blocks, self._check)


def _sum_of(totals: list[tuple[Any, ...] | None]) -> tuple[NDArray[np.float64], ...]:
    """Return the sum of what several threads have added up."""
    total: tuple[Any, ...] | None = None
    for part in totals:
        total = added(total, part)
    if total is None:
        raise ValueError("There is no row to add up.")
    return total
