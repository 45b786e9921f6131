"""Rows that come in blocks: what a method needs of data that do not fit the memory.

A method that works on a :class:`RowSource` sees a block of rows at a time, and keeps of all of them
only sums, so that it is the same whether the rows lie in an array, in a file or on a cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import clone

from .._core.checks import check_sample_weight
from ..kernels import Kernel

__all__ = [
    "OutOfSpanError",
    "RowCheck",
    "RowSource",
    "added",
    "block_rows",
    "block_sums",
    "drawn_parts",
    "rows_named",
    "spread_rows",
    "stacked",
]

#: A function of a block: ``function(rows, start, *along, *arguments)``.
BlockFunction = Callable[..., Any]

# Rows that a function has at a time unless it says otherwise (`rows_at_once`).
_PIECE = 2048


class OutOfSpanError(ValueError):
    """A point has no part in the span of the anchors, and so no direction there."""

    def __init__(self, row: int, what: str = "X") -> None:
        super().__init__(
            f"Row {row} of {what} is orthogonal to all anchors: its features have no direction. "
            "Take more anchors (n_anchors), a wider kernel, or leave such rows out."
        )
        self.row, self.what = row, what

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.row, self.what)  # not the message, which pickle would take


class RowSource(ABC):
    """Rows of data that come in blocks, in a fixed order, as often as they are asked for.

    Functions of blocks are called as ``function(rows, start, *along, *arguments)``: `rows` are
    validated rows of one block or of a piece of it, `start` is the number of the first of them
    among all rows, and `along` are the same rows of arrays that go with the data, such as weights
    or what :meth:`per_row` returned. They must be picklable, a function of a module or a frozen
    dataclass with ``__call__``, must not change their arguments, and may say by an attribute
    ``rows_at_once`` how many rows they want at the most.

    Attributes
    ----------
    shape : tuple
        Of all validated rows together, rows first.
    dtype : dtype
        That of the validated rows, float32 or float64.
    n_blocks : int
        How many blocks there are.
    lazy : bool
        Whether :meth:`per_row` returns something that is computed only when it is asked for.
    """

    #: False: ``per_row`` returns an ndarray.
    lazy: ClassVar[bool] = False

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    n_blocks: int

    @abstractmethod
    def sums(
        self, function: BlockFunction, *arguments: Any, along: Sequence[Any] = ()
    ) -> tuple[NDArray[np.float64], ...]:
        """Add up what the function returns for each block: one pass over the rows.

        Parameters
        ----------
        function : callable
            Returns a tuple of numbers or arrays, of the same shapes for every block.
        *arguments
            Further arguments of the function.
        along : sequence of arrays, default=()
            Arrays with as many rows as the data have.

        Returns
        -------
        tuple of ndarray
            The sums, in float64.
        """

    @abstractmethod
    def per_row(self, function: BlockFunction, *arguments: Any, along: Sequence[Any] = ()) -> Any:
        """Return what the function returns for each block, one below the other.

        Parameters
        ----------
        function : callable
            Returns an array with one row, or one number, for each row of its block.
        *arguments, along
            As for :meth:`sums`.

        Returns
        -------
        array of shape (n, ...)
            An ndarray; of lazy sources an array of their own kind.
        """

    def spread(
        self, count: int, weights: Any = None, random: np.random.Generator | None = None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Draw at most `count` rows evenly over the sum of the weights; :func:`spread_rows`."""
        return spread_rows(self.shape[0], weights, count, random)

    def weights(self, sample_weight: Any, owner: str) -> Any:
        """Return checked weights, as an array that goes along with the rows, or None."""
        return check_sample_weight(sample_weight, self.shape[0], owner, self.dtype)

    def together(self, indices: NDArray[np.intp]) -> Any:
        """Return rows whose kernel values with each other are asked for, as one array.

        Indices are in ascending order. What it is, :func:`~orthodrome.gram.gram_operator` takes.
        """
        return self.take(indices)

    @abstractmethod
    def take(self, indices: NDArray[np.intp]) -> Any:
        """Return a few validated rows by their numbers, in this order, as one array."""


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
        if reset:  # names of columns are the estimator's to compare
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
    """Let an error about a block say which of all rows it is about."""
    try:
        yield
    except OutOfSpanError as error:
        raise OutOfSpanError(_number(start, error.row), error.what) from None
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
    if values.dtype.kind not in "fc" or not values.size:
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
    along: Sequence[Any],
    arguments: Sequence[Any],
) -> tuple[Any, ...] | None:
    """Return the sums over one block, whose first row has the number `start` among all.

    The function sees it in pieces. `along` are the rows of this block alone. Of a block without
    rows there are none: None.
    """
    total = None
    for part in _pieces(function, check, block, start, along, arguments):
        total = added(total, part)
    return total


def block_rows(
    function: BlockFunction,
    check: RowCheck | None,
    block: Any,
    start: int,
    along: Sequence[Any],
    arguments: Sequence[Any],
) -> NDArray[Any] | None:
    """Return what the function returns for the rows of one block; None if it has no rows."""
    parts = list(_pieces(function, check, block, start, along, arguments))
    return np.concatenate(parts) if parts else None


def _pieces(
    function: BlockFunction,
    check: RowCheck | None,
    block: Any,
    start: int,
    along: Sequence[Any],
    arguments: Sequence[Any],
) -> Iterator[Any]:
    """Call the function with a piece of a block at a time."""
    n = block.shape[0]
    if not n:
        return
    rows = block if check is None else check(block, start)
    step = int(getattr(function, "rows_at_once", _PIECE))
    for first in range(0, n, step):
        part = slice(first, min(first + step, n))
        beside = [array[part] for array in along]
        with rows_named(block[part], start + first, check.owner if check else "the data"):
            result = function(rows[part], start + first, *beside, *arguments)
        yield result


def added(total: tuple[Any, ...] | None, part: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Return the sums of two parts, in float64; the arrays of `total` may be used for it."""
    if part is None:
        return total
    if total is None:
        return tuple(np.array(term, dtype=np.float64) for term in part)
    for sum_, term in zip(total, part, strict=True):
        np.add(sum_, term, out=sum_)
    return total
