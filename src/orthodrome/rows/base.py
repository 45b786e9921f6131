"""Rows of data, wherever they are stored: the contract, and what happens to one block."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import clone

from .._core.checks import RowError, check_sample_weight
from ..kernels import Kernel

__all__ = [
    "RowCheck",
    "Rows",
    "added",
    "block_rows",
    "block_sums",
    "drawn_parts",
    "rows_named",
    "spread_rows",
    "stacked",
]

#: A function of a block: ``function(block, start, **columns)``.
BlockFunction = Callable[..., Any]

# Rows that a function gets at a time unless it says otherwise (`rows_at_once`).
_PIECE = 2048


class Rows(ABC):
    """Rows of data that are read in blocks, in a fixed order.

    A function of blocks is called as ``function(block, start, **columns)``: `block` holds validated
    rows, `start` is the number of the first of them among all rows, and `columns` are the same rows
    of the arrays that :meth:`zip` has attached. It must be picklable and must not change its
    arguments. It may have the attributes ``rows_at_once``, the most rows that it wants at a time,
    and ``work_per_row``, an estimate of its work that decides whether threads are used.

    Attributes
    ----------
    shape : tuple
        Of all validated rows together, rows first.
    dtype : dtype
        That of the validated rows, float32 or float64.
    lazy : bool
        Whether :meth:`map` returns a dask array, which is computed when it is asked for.
    once : bool
        Whether the rows can be read only once.
    columns : dict of arrays
        What :meth:`zip` has attached.
    """

    lazy: ClassVar[bool] = False
    once: bool = False

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    columns: dict[str, Any] = {}  # noqa: RUF012  # never changed: zip makes a new one

    def zip(self, **columns: Any) -> Self:
        """Return the same rows with arrays attached that have a row for each; None is left out."""
        rows = copy.copy(self)
        rows.columns = dict(self.columns)
        for name, column in columns.items():
            if column is not None:
                rows.columns[name] = column
        return rows

    @abstractmethod
    def reduce(self, function: BlockFunction) -> tuple[NDArray[np.float64], ...]:
        """Add up the tuples of numbers or arrays that the function returns, in float64."""

    @abstractmethod
    def map(self, function: BlockFunction, keep: str = "memory") -> Any:
        """Return what the function returns for each block, one below the other.

        Parameters
        ----------
        function : callable
            Returns an array with one row, or one number, for each row of its block; or a tuple of
            such arrays (not for lazy rows).
        keep : {"memory", "disk"}, default="memory"
            Where the result is kept: in an array, or in a temporary memory map. Lazy rows ignore
            it.

        Returns
        -------
        array of shape (n, ...), or tuple of arrays
            A dask array for lazy rows, else an ndarray.
        """

    @abstractmethod
    def take(self, indices: NDArray[np.intp]) -> Any:
        """Return a few validated rows by their numbers, in this order, as one array."""

    def blocks(self, first: int = 0) -> Iterator[Any]:
        """Yield validated blocks in order; errors count rows from the number `first` on."""
        raise ValueError("Rows of a dask array are not read in order.")

    def whole(self) -> Any:
        """Return all rows as one array; rows that are read in blocks have none."""
        raise ValueError("Rows that are read in blocks are never held as one array.")

    def together(self, indices: NDArray[np.intp]) -> Any:
        """Return rows, in ascending order, as what :func:`~orthodrome.gram.gram_operator` takes."""
        return self.take(indices)

    def spread(
        self, count: int, weights: Any = None, random: np.random.Generator | None = None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Draw at most `count` rows evenly over the sum of the weights; :func:`spread_rows`."""
        return spread_rows(self.shape[0], weights, count, random)

    def weighted(self, sample_weight: Any, owner: str, dtype: Any = None) -> Self:
        """Return the same rows with checked weights attached, if there are any."""
        return self.zip(weights=self.weights(sample_weight, owner, dtype))

    def weights(self, sample_weight: Any, owner: str, dtype: Any = None) -> Any:
        """Return checked weights, as an array that :meth:`zip` takes, or None.

        Where they multiply numbers of a `dtype`, their sum must be within what it can hold.
        """
        return check_sample_weight(sample_weight, self.shape[0], owner, dtype)


def spread_rows(
    n: int,
    weights: NDArray[np.float64] | None,
    count: int,
    random: np.random.Generator | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Draw at most `count` of n rows, evenly over the sum of the weights.

    One is drawn from each of `count` equal parts of that sum. (Rows at equal distances would all be
    of one kind where kinds take turns.)

    Parameters
    ----------
    n : int
        How many rows there are; if no more than `count`, all are chosen.
    weights : ndarray of shape (n,) or None
        Weights, not all 0; rows of weight 0 are not chosen, except where all are.
    count : int
        How many to choose.
    random : Generator, optional
        Source of the draws; by default they are the same every time.

    Returns
    -------
    rows : ndarray of shape (at most count,)
        Numbers of rows, ascending.
    weights : ndarray of that shape
        How often each counts: also without weights a row may be drawn twice, where it lies in two
        parts.

    Examples
    --------
    >>> spread_rows(10, None, 3)
    (array([2, 4, 6]), array([1., 1., 1.]))
    >>> spread_rows(3, np.array([1.0, 0.0, 5.0]), 2)
    (array([2]), array([2.]))
    """
    if n <= count:
        return np.arange(n), np.ones(n) if weights is None else weights
    parts = drawn_parts(count, random)
    if weights is None:  # what the sums of so many ones would give, without them
        rows = np.minimum((parts * n).astype(np.intp), n - 1)
    else:
        sums = np.cumsum(weights)
        last = np.flatnonzero(weights)[-1]
        rows = np.minimum(np.searchsorted(sums, parts * sums[-1], side="right"), last)
    rows, counts = np.unique(rows, return_counts=True)
    return rows, counts.astype(np.float64)


def stacked(parts: Sequence[Any]) -> Any:
    """Return arrays one below the other; one alone is returned as it is."""
    if len(parts) == 1:
        return parts[0]
    if any(scipy.sparse.issparse(part) for part in parts):
        return scipy.sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def drawn_parts(count: int, random: np.random.Generator | None) -> NDArray[np.float64]:
    """Return a number of [0, 1) from each of `count` equal parts of it, ascending."""
    random = np.random.default_rng(0) if random is None else random
    return np.asarray((np.arange(count) + random.random(count)) / count)


@dataclass(frozen=True)
class RowCheck:
    """The check of each block: by the kernel, for as many features as the first one had.

    Attributes
    ----------
    kernel : Kernel
        Its ``validate`` is what checks; it has seen the first block.
    owner : str
        Whose data they are.
    features : tuple
        The shape of one row before the check.
    dtype : dtype, optional
        What the checked rows are brought to; None leaves the one they have.
    """

    kernel: Kernel
    owner: str
    features: tuple[int, ...]
    dtype: np.dtype[Any] | None = None

    @classmethod
    def of(cls, kernel: Kernel, first: Any, estimator: Any, *, reset: bool) -> RowCheck:
        """Let the kernel see the first block, on behalf of an estimator."""
        owner = type(estimator).__name__
        with rows_named(first, 0, owner):
            valid = kernel.validate(first, estimator=estimator, reset=reset)
        if reset or not hasattr(kernel, "n_features_in_"):  # names are the estimator's to compare
            kernel = clone(kernel)
            kernel.validate(np.asarray(first) if hasattr(first, "columns") else first)
        return cls(kernel, owner, tuple(first.shape[1:]), valid.dtype if reset else None)

    def __call__(self, block: Any, start: int | NDArray[np.intp]) -> Any:
        """Return the rows of a block, checked; `start` is the number of the first, or of all."""
        if tuple(block.shape[1:]) != self.features:
            raise ValueError(
                f"All blocks of the data for {self.owner} must have rows of shape "
                f"{self.features}, as the first has; that of row {_number(start, 0)} has "
                f"{tuple(block.shape[1:])}."
            )
        with rows_named(block, start, self.owner):
            valid = self.kernel.validate(block, reset=False)
        return valid if self.dtype is None else valid.astype(self.dtype, copy=False)


@contextmanager
def rows_named(block: Any, start: int | NDArray[np.intp], owner: str) -> Iterator[None]:
    """Translate row numbers of a block in errors to the caller's.

    `start` is the number of the first row of the block, or holds the numbers of all of them.
    """
    try:
        yield
    except RowError as error:
        numbers = start + np.arange(max(error.rows) + 1) if isinstance(start, int) else start
        raise error.renumbered(numbers) from None
    except ValueError as error:
        row = _first_not_finite(block)
        if row is not None:
            raise ValueError(
                f"Input X of {owner} contains NaN or infinity in row {_number(start, row)}. Leave "
                "such rows out, or fill what is missing."
            ) from error
        if not isinstance(start, int) or start == 0:
            raise
        raise ValueError(
            f"{error} (In the block that begins at row {start} of the data, whose rows are counted "
            "from there.)"
        ) from error


def _number(start: int | NDArray[np.intp], row: int) -> int:
    return start + row if isinstance(start, int) else int(start[row])


def _first_not_finite(block: Any) -> int | None:
    """Return the first row with a value that is NaN or infinite, None if there is none."""
    try:
        values = block.data if scipy.sparse.issparse(block) else np.asarray(block)
    except ValueError:  # lists of unlike lengths
        return None
    if values.dtype.kind not in "fc" or not values.size or not values.ndim:
        return None
    if scipy.sparse.issparse(block):
        entries = block.tocoo()
        rows = entries.coords[0][~np.isfinite(entries.data)]
    else:
        rows = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    return int(rows.min()) if len(rows) else None


# ---------------------------------------------------------------------- one block


def block_sums(
    function: BlockFunction,
    check: RowCheck | None,
    block: Any,
    start: int,
    columns: dict[str, Any],
) -> tuple[Any, ...] | None:
    """Return the sums over one block, whose first row has the number `start` among all.

    The function sees it in pieces. `columns` are the rows of this block alone. A block without rows
    has no sums: None.
    """
    total = None
    for part in _pieces(function, check, block, start, columns):
        total = added(total, part)
    return total


def block_rows(
    function: BlockFunction,
    check: RowCheck | None,
    block: Any,
    start: int,
    columns: dict[str, Any],
) -> Any:
    """Return what the function returns for the rows of one block; None if it has no rows."""
    parts = list(_pieces(function, check, block, start, columns))
    if not parts:
        return None
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _pieces(
    function: BlockFunction,
    check: RowCheck | None,
    block: Any,
    start: int,
    columns: dict[str, Any],
) -> Iterator[Any]:
    """Call the function with a piece of a block at a time."""
    n = block.shape[0]
    if not n:
        return
    rows = block if check is None else check(block, start)
    step = rows_at_once(function)
    for first in range(0, n, step):
        part = slice(first, min(first + step, n))
        attached = {name: column[part] for name, column in columns.items()}
        with rows_named(block[part], start + first, check.owner if check else "the data"):
            result = function(rows[part], start + first, **attached)
        yield result


def rows_at_once(function: BlockFunction) -> int:
    """Return how many rows a function wants at a time."""
    return int(getattr(function, "rows_at_once", _PIECE))


def added(total: tuple[Any, ...] | None, part: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Return the sums of two parts, in double precision; arrays of `total` may be used for it."""
    if part is None:
        return total
    if total is None:
        return tuple(np.array(term, dtype=np.result_type(term, np.float64)) for term in part)
    for sum_, term in zip(total, part, strict=True):
        np.add(sum_, term, out=sum_)
    return total
