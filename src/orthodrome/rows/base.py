"""The base class of rows, and functions for one block of rows."""

from __future__ import annotations

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from sklearn.base import clone

from .._core.checks import RowError, check_sample_weight
from .._core.types import Array, Floats, Indices
from ..kernels import Kernel
from ..kernels.bandwidth import Moments

#: A block function: ``function(block, start, **columns)``.
BlockFunction = Callable[..., Any]

# Default number of rows per call, for functions without the attribute `rows_at_once`.
_ROWS_PER_CALL = 2048


class Rows(ABC):
    """Rows of data that are read in blocks, in a fixed order.

    Block functions are called as ``function(block, start, **columns)``: `block` holds validated
    rows, `start` is the index of the first, and `columns` are the same rows of the arrays attached
    by :meth:`zip`. They must be picklable and must not change their arguments. Optional attributes:
    ``rows_at_once``, the maximum number of rows per call, and ``work_per_row``, an estimate in
    multiply-adds that decides whether threads are used.

    Attributes
    ----------
    shape : tuple
        Shape of all validated rows, rows first; empty if their number is unknown.
    dtype : dtype
        Type of the validated rows, float32 or float64.
    lazy : bool
        Whether :meth:`map` returns a dask array.
    once : bool
        Whether the rows can be read only once.
    mapped : bool
        Whether the rows are a memory map.
    columns : dict of arrays
        Arrays attached by :meth:`zip`.
    """

    lazy: ClassVar[bool] = False
    once: bool = False
    mapped: bool = False

    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any]
    columns: dict[str, Any] = {}  # noqa: RUF012  # never modified: zip makes a new dict
    _check: RowCheck | None = None  # applied to each block; None if the rows are validated

    def _check_rows_by(
        self, kernel: Kernel, first: Any, n: int, estimator: Any, *, reset: bool
    ) -> Any:
        """Let the kernel check each block, set shape and dtype; return the first row, validated."""
        self._check = RowCheck.of(kernel, first, estimator, reset=reset)
        valid = self._check(first, 0)
        self.shape, self.dtype = (n, *valid.shape[1:]), np.dtype(valid.dtype)
        return valid

    def zip(self, **columns: Any) -> Self:
        """Return the same rows with more columns attached; None is skipped."""
        rows = copy.copy(self)
        rows.columns = self.columns | {k: each for k, each in columns.items() if each is not None}
        return rows

    @abstractmethod
    def reduce(self, function: BlockFunction) -> tuple[Floats, ...]:
        """Sum the tuples of numbers or arrays that a block function returns, in float64."""

    @abstractmethod
    def map(self, function: BlockFunction, keep: str = "memory") -> Any:
        """Return the concatenated results of a block function.

        Parameters
        ----------
        function : callable
            Returns an array with one row, or one number, for each row of its block; or a tuple of
            such arrays (not for lazy rows).
        keep : {"memory", "disk"}, default="memory"
            Store the result in an array, or in a temporary memory map. Lazy rows ignore it.

        Returns
        -------
        array of shape (n, ...), or tuple of arrays
            A dask array for lazy rows, else an ndarray.
        """

    def take(self, indices: Indices) -> Any:
        """Return the validated rows with these indices, in this order, as one array."""
        rows = self._fetch(indices)
        return rows if self._check is None else self._check(rows, indices)

    @abstractmethod
    def _fetch(self, indices: Indices) -> Any:
        """Return the rows with these indices, in this order, before validation."""

    def blocks(self, first: int = 0) -> Iterator[Any]:
        """Yield validated blocks in order; row numbers in errors begin at `first`."""
        raise ValueError("Rows of a dask array cannot be read in order.")

    def whole(self) -> Any:
        """Return all validated rows as one array."""
        raise ValueError("Rows that are read in blocks cannot be returned as one array.")

    def together(self, indices: Indices) -> Any:
        """Return rows with ascending indices, for :func:`~orthodrome.gram.gram_operator`."""
        return self.take(indices)

    def spread(
        self, count: int, weights: Any = None, random: np.random.Generator | None = None
    ) -> tuple[Indices, Floats]:
        """Draw at most `count` rows, evenly over the weights; see :func:`spread_rows`."""
        return spread_rows(self.shape[0], weights, count, random)

    def weighted(self, sample_weight: Any, owner: str, dtype: Any = None) -> Self:
        """Return the same rows with checked weights attached, unless they are None."""
        return self.zip(weights=self.weights(sample_weight, owner, dtype))

    def weights(self, sample_weight: Any, owner: str, dtype: Any = None) -> Any:
        """Return checked weights for :meth:`zip`, or None; `dtype` limits their sum."""
        return check_sample_weight(sample_weight, self.shape[0], owner, dtype)


def spread_rows(
    n: int, weights: Floats | None, count: int, random: np.random.Generator | None = None
) -> tuple[Indices, Floats]:
    """Draw at most `count` of n rows, evenly over the cumulative weights.

    One row is drawn from each of `count` intervals of equal weight. (Equally spaced rows would be
    biased if the data are periodic.)

    Parameters
    ----------
    n : int
        Number of rows; if at most `count`, all rows are returned.
    weights : ndarray of shape (n,) or None
        Weights, not all 0; rows of weight 0 are not drawn.
    count : int
        Number of draws.
    random : Generator, optional
        Generator; by default one with a fixed seed.

    Returns
    -------
    rows : ndarray of shape (at most count,)
        Indices, ascending.
    weights : ndarray of that shape
        How often each row was drawn; or, if all rows are returned, their weights.

    Examples
    --------
    >>> spread_rows(10, None, 3)
    (array([2, 4, 6]), array([1., 1., 1.]))
    >>> spread_rows(3, np.array([1.0, 0.0, 5.0]), 2)
    (array([2]), array([2.]))
    """
    if n <= count:
        return np.arange(n), np.ones(n) if weights is None else weights
    fractions = stratified_fractions(count, random)
    if weights is None:  # same result as with n weights of 1
        rows = np.minimum((fractions * n).astype(np.intp), n - 1)
    else:
        rows = rows_at(weights, fractions)
    rows, counts = np.unique(rows, return_counts=True)
    return rows, counts.astype(np.float64)


def rows_at(weights: Floats, fractions: Floats) -> Indices:
    """Return the rows at fractions, in [0, 1), of the cumulative weights; skip weights of 0."""
    sums = np.cumsum(weights)
    rows = np.searchsorted(sums, fractions * sums[-1], side="right")
    return np.minimum(rows, np.searchsorted(sums, sums[-1]))


def stacked(arrays: Sequence[Any]) -> Any:
    """Concatenate arrays, dense or sparse; a single one is not copied."""
    if len(arrays) == 1:
        return arrays[0]
    if any(scipy.sparse.issparse(array) for array in arrays):
        return scipy.sparse.vstack(arrays, format="csr")
    return np.concatenate(arrays)


def stratified_fractions(count: int, random: np.random.Generator | None) -> Floats:
    """Draw a number from each of `count` equal intervals of [0, 1), ascending."""
    random = np.random.default_rng(0) if random is None else random
    return np.asarray((np.arange(count) + random.random(count)) / count)


@dataclass(frozen=True)
class RowCheck:
    """Validation of each block by the kernel.

    Attributes
    ----------
    kernel : Kernel
        A kernel that has validated the first block; its ``validate`` checks the others.
    owner : str
        Name of the estimator, for errors.
    dtype : dtype, optional
        Type of the validated rows; None leaves it unchanged.
    """

    kernel: Kernel
    owner: str
    dtype: np.dtype[Any] | None = None

    @classmethod
    def of(cls, kernel: Kernel, first: Any, estimator: Any, *, reset: bool) -> RowCheck:
        """Validate the first block for an estimator; return the check of all blocks."""
        owner = type(estimator).__name__
        with rows_named(first, 0, owner):
            valid = kernel.validate(first, estimator=estimator, reset=reset)
        if reset or not hasattr(kernel, "n_features_in_"):  # the estimator compares the names
            kernel = clone(kernel)
            kernel.validate(np.asarray(first) if hasattr(first, "columns") else first)
        return cls(kernel, owner, valid.dtype if reset else None)

    def __call__(self, block: Any, start: int | Indices) -> Any:
        """Return the validated rows of a block; `start` is as in :func:`rows_named`."""
        with rows_named(block, start, self.owner):
            valid = self.kernel.validate(block, reset=False)
        return valid if self.dtype is None else valid.astype(self.dtype, copy=False)


@contextmanager
def rows_named(block: Any, start: int | Indices, owner: str) -> Iterator[None]:
    """Translate row numbers of a block in errors to those of the data.

    `start` is the index of the first row of the block, or an array of the indices of all its rows.
    """
    try:
        yield
    except ValueError as error:
        numbers = range(start, sys.maxsize) if isinstance(start, int) else start
        if isinstance(error, RowError):
            raise error.renumbered(numbers) from None
        row = _first_not_finite(block)
        if row is not None:
            raise ValueError(
                f"Input X of {owner} contains NaN or infinity in row {numbers[row]}. Remove such "
                "rows, or fill in the missing values."
            ) from error
        if not isinstance(start, int) or start == 0:
            raise
        raise ValueError(f"{error} (Row numbers count from row {start} of the data.)") from error


def _first_not_finite(block: Any) -> int | None:
    """Return the first row with NaN or infinity, or None."""
    if scipy.sparse.issparse(block):
        entries = block.tocoo()
        rows = entries.coords[0][~np.isfinite(entries.data)]
    else:
        try:
            values = np.asarray(block)
        except ValueError:  # ragged lists
            return None
        if values.dtype.kind not in "fc" or not values.ndim:
            return None
        features = tuple(range(1, values.ndim))
        rows = np.flatnonzero(~np.isfinite(values).all(axis=features))
    return int(rows.min()) if len(rows) else None


# ---------------------------------------------------------------------- one block


def visit_block(
    collect: Callable[[Iterable[Any]], Any],
    function: BlockFunction,
    check: RowCheck | None,
    block: Any,
    start: int,
    columns: dict[str, Any],
) -> Any:
    """Call a block function for the pieces of a block, and collect the results.

    `collect` is :func:`sum_results` or :func:`join_results`, `start` is the index of the first row,
    and `columns` are the attached columns of this block.
    """
    rows = block if check is None else check(block, start)
    owner = "the data" if check is None else check.owner
    step = rows_at_once(function)

    def results() -> Iterator[Any]:
        for first in range(0, rows.shape[0], step):
            window = slice(first, first + step)
            piece = rows[window]
            attached = {name: column[window] for name, column in columns.items()}
            with rows_named(piece, start + first, owner):
                result = function(piece, start + first, **attached)
            yield result

    return collect(results())


def rows_at_once(function: BlockFunction) -> int:
    """Return the maximum number of rows per call of a block function."""
    return int(getattr(function, "rows_at_once", _ROWS_PER_CALL))


def sum_results(results: Iterable[tuple[Any, ...]]) -> tuple[Array, ...]:
    """Sum one or more tuples of numbers or arrays in float64."""
    results = iter(results)
    total = tuple(np.array(term, dtype=np.result_type(term, np.float64)) for term in next(results))
    for result in results:
        for sum_, term in zip(total, result, strict=True):
            np.add(sum_, term, out=sum_)
    return total


def join_results(results: Iterable[Any]) -> Any:
    """Concatenate arrays, or tuples of arrays."""
    results = list(results)
    if isinstance(results[0], tuple):
        return tuple(map(stacked, zip(*results, strict=True)))
    return stacked(results)


@dataclass(frozen=True)
class _Moments:
    """Sums of weights, of differences from a center, and of their squares."""

    center: Floats

    def __call__(self, rows: Any, start: int, weights: Any = None) -> tuple[Any, ...]:
        w = np.ones(rows.shape[0]) if weights is None else weights
        if scipy.sparse.issparse(rows):  # not centred: differences would not be sparse
            squares = np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
            return w.sum(), np.asarray(rows.T @ w).ravel(), w @ squares
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks that it is finite
            difference = np.subtract(rows, self.center, dtype=np.float64)
            squares = np.einsum("ij,ij->i", difference, difference)
            return w.sum(), w @ difference, w @ squares


def row_moments(rows: Rows, center: Floats) -> Moments:
    r"""Return the mean of all rows and the mean squared distance between them, in one pass.

    .. math:: \sum_{ij} p_i p_j \|x_i - x_j\|^2
        = 2 \sum_i p_i \|x_i - c\|^2 - 2\, \|\bar x - c\|^2, \qquad \bar x = \sum_i p_i x_i,

    for any c; with c near the mean there is no cancellation. The weights p are those of the rows.

    Examples
    --------
    >>> from orthodrome import KernelPCA
    >>> from orthodrome.kernels import Gaussian
    >>> from orthodrome.rows import as_rows
    >>> rows = as_rows([np.array([[0.0]]), np.array([[2.0]])], Gaussian(), KernelPCA())
    >>> row_moments(rows, np.zeros(1)).squared_distance
    2.0
    """
    total, first, second = rows.reduce(_Moments(center))
    with np.errstate(over="ignore", invalid="ignore"):
        shift, square = first / total, float(second / total)
        distance = 2.0 * (square - float(shift @ shift))
    error = 64 * float(np.finfo(np.float64).eps) * square
    return Moments(center + shift, max(distance, 0.0), error)
