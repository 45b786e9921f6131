"""Checks of parameters and arrays; errors name the parameter, its owner and the value."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from .kinds import as_numpy
from .types import Array, Floats

# How NumPy's messages for strings, objects, ragged lists and very large integers begin.
_CONVERSION_ERRORS = (
    *("could not convert", "setting an array element", "float() argument must be"),
    *("int too large to convert", "Python int"),
)
# Minimum and maximum sum of weights, by item size of the dtype. Within this range, products with
# squared kernel values are finite.
_WEIGHT_SUM_RANGES = {4: (1e-30, 1e30), 8: (1e-300, float(np.finfo(np.float64).max))}


class RowError(ValueError):
    """An error about rows of a block, which can be renumbered for the caller.

    Parameters
    ----------
    message : str
        The message, with ``{0}``, ``{1}``, … for the row numbers.
    *rows : int
        The row numbers.

    Examples
    --------
    >>> error = RowError("Row {0} is longer than row {1}.", 0, 2)
    >>> str(error), str(error.renumbered([5, 6, 7]))
    ('Row 0 is longer than row 2.', 'Row 5 is longer than row 7.')
    """

    def __init__(self, message: str, *rows: int) -> None:
        # unpickling passes the formatted message without rows, then sets the attributes
        super().__init__(message.format(*rows) if rows else message)
        self.message, self.rows = message, rows

    def renumbered(self, numbers: Any) -> RowError:
        """Return a copy of the error with ``numbers[row]`` for each row."""
        return RowError(self.message, *(int(numbers[row]) for row in self.rows))


def invalid(name: str, owner: str, requirement: str, value: Any) -> ValueError:
    """Return an error with the parameter, its owner, the requirement and the value."""
    return ValueError(f"{name} of {owner} must be {requirement}; got {value!r}.")


@contextmanager
def rows_renumbered(numbers: Any) -> Iterator[None]:
    """Replace row numbers in a RowError: row i becomes ``numbers[i]``, the caller's row."""
    try:
        yield
    except RowError as error:
        raise error.renumbered(numbers) from None


@contextmanager
def numbers_expected(values: Any, name: str, owner: str) -> Iterator[None]:
    """Re-raise NumPy's conversion errors with the parameter's name.

    Dates, which NumPy would convert silently, and masked entries raise a ValueError.
    """
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "mM":
        raise ValueError(
            f"{name} of {owner} must hold numbers; got {dtype}. Convert dates to numbers of days."
        )
    check_not_masked(values, name, owner)
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        if not str(error).startswith(_CONVERSION_ERRORS):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = f"{name} of {owner} must hold numbers, with rows of equal length: {error}"
        raise kind(message) from None


def check_not_masked(values: Any, name: str, owner: str) -> None:
    """Raise a ValueError if values have masked entries; the library ignores masks."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} of {owner} has masked entries, but missing values are not supported. Fill "
            "them with .filled(), or remove their rows."
        )


def as_array(values: Any, name: str, owner: str) -> Array:
    """Return values as an array; raise a ValueError for masked entries and ragged lists."""
    check_not_masked(values, name, owner)
    values = as_numpy(values, name, owner)
    try:
        return np.asarray(values)
    except ValueError:
        message = f"{name} of {owner} must be one array; got lists of unequal length."
        raise ValueError(message) from None


def check_numbers(values: Any, name: str, owner: str, **options: Any) -> Array:
    """Call scikit-learn's ``check_array``; errors name the parameter."""
    if isinstance(values, (list, tuple)):  # dates are detected by the dtype of an array
        with numbers_expected(values, name, owner):
            values = np.asarray(values)
    values = as_numpy(values, name, owner)
    with numbers_expected(values, name, owner):
        return check_array(values, input_name=name, **options)


def check_choice(value: Any, choices: Iterable[Any], name: str, owner: str) -> None:
    """Raise unless `value` is one of `choices`."""
    options = list(choices)
    if not any(
        value is option or (type(value) is type(option) and value == option) for option in options
    ):
        listed = ", ".join(repr(option) for option in options)
        raise invalid(name, owner, f"one of {listed}", value)


def check_callback(value: Any, owner: str) -> None:
    """Raise unless `value` is callable or None."""
    if not (value is None or callable(value)):
        raise invalid("callback", owner, "a function or None", value)


def check_finite_vector(values: Any, size: int | None, name: str, owner: str) -> Floats:
    """Return finite real numbers as float64 of shape (size,), or of any length if size is None."""
    vector = as_array(values, name, owner)
    shape = (vector.size if size is None else size,)
    with np.errstate(over="ignore"):  # long doubles may overflow
        is_real = vector.dtype.kind in "fiu" and np.all(np.isfinite(vector.astype(np.float64)))
    if vector.shape != shape or not is_real:
        count = "" if size is None else f"{size} "
        raise ValueError(
            f"{name} of {owner} must be {count}finite real numbers in one dimension; got "
            f"{vector.dtype} of shape {vector.shape}."
        )
    return vector.astype(np.float64)


def check_flag(value: Any, name: str, owner: str) -> bool:
    """Return `value` as bool; raise unless it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise invalid(name, owner, "True or False", value)
    return bool(value)


def check_path(value: Any, name: str, owner: str) -> Path:
    """Return `value` as a path; raise unless it is a string or a path."""
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else ""
    if not isinstance(path, str) or not path or "\0" in path:
        raise invalid(name, owner, "a path (str or PathLike)", value)
    return Path(path)


def check_columns(vectors: Any, n: int, name: str, owner: str) -> Array:
    """Return `vectors` as an array; raise unless its shape is (n, m)."""
    found = as_array(vectors, name, owner)
    if found.ndim != 2 or found.shape[0] != n:
        raise ValueError(
            f"{name} of {owner} must have shape ({n}, m), vectors in columns; got {found.shape}."
        )
    return found


def check_integer(
    value: Any, name: str, owner: str, *, minimum: int = 1, maximum: int | None = None
) -> int:
    """Return `value` as int; raise unless it is an integer in the stated range."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    if not is_integer or value < minimum or (maximum is not None and value > maximum):
        upper = "" if maximum is None else f" and <= {maximum}"
        raise invalid(name, owner, f"an integer >= {minimum}{upper}", value)
    return int(value)


def as_number(value: Any) -> float:
    """Return a real number as float, ±inf if it overflows; NaN for other values."""
    if not isinstance(value, numbers.Real) or isinstance(value, (bool, np.bool_)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def check_number(value: Any, name: str, owner: str) -> float:
    """Return `value` as float; raise unless it is a finite number."""
    number = as_number(value)
    if not math.isfinite(number):
        raise invalid(name, owner, "a finite number", value)
    return number


def check_positive(
    value: Any, name: str, owner: str, *, or_zero: bool = False, maximum: float = math.inf
) -> float:
    """Return `value` as float; raise unless it is a finite number in the stated range."""
    number = as_number(value)
    above = number >= 0 if or_zero else number > 0
    if not (above and number <= maximum and math.isfinite(number)):
        lower = ">= 0" if or_zero else "> 0"
        upper = "" if math.isinf(maximum) else f" and <= {maximum:g}"
        raise invalid(name, owner, f"a finite number {lower}{upper}", value)
    return number


def check_random_state(value: Any, owner: str) -> None:
    """Raise unless `value` is a seed, a generator or None."""
    is_seed = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0
    generators = (np.random.RandomState, np.random.Generator)
    if not (value is None or is_seed or isinstance(value, generators)):
        requirement = "an integer >= 0, a RandomState, a Generator or None"
        raise invalid("random_state", owner, requirement, value)


def check_sample_weight(
    sample_weight: ArrayLike | None,
    n_samples: int,
    owner: str,
    dtype: Any = None,
    *,
    allow_zeros: bool = False,
) -> Floats | None:
    """Return a copy of the weights as float64 of shape (n_samples,); None stays None.

    A weight is the number of repetitions of a row. Weights must be finite and nonnegative. They
    must not all be zero, unless `allow_zeros` is set (for one of several batches). Products of
    their sum with data of `dtype`, by default float64, must not overflow or underflow.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Number):
        sample_weight = np.full(n_samples, sample_weight)
    sample_weight = as_numpy(sample_weight, "sample_weight", owner)
    with numbers_expected(sample_weight, "sample_weight", owner):
        weights = check_array(
            sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight", copy=True
        )
    check_weight_shape(weights, n_samples, owner)
    row = int(np.argmin(weights))
    if weights[row] < 0:
        raise ValueError(
            f"sample_weight of {owner} must not be negative; entry {row} is {weights[row]:g}."
        )
    if np.any(weights):
        with np.errstate(over="ignore"):
            check_weight_sum(float(weights.sum()), owner, np.dtype(dtype or np.float64))
    elif not allow_zeros:
        raise ValueError(f"sample_weight of {owner} must have a positive entry; all are zero.")
    return weights


def check_weight_shape(weights: Any, n_samples: int, owner: str) -> None:
    """Raise unless there is one weight per sample."""
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight of {owner} must have shape ({n_samples},), one weight per sample; "
            f"got {weights.shape}."
        )


def check_weight_sum(total: float, owner: str, dtype: np.dtype[Any]) -> None:
    """Raise if products with weights of this sum would overflow or underflow."""
    minimum, maximum = _WEIGHT_SUM_RANGES.get(dtype.itemsize, _WEIGHT_SUM_RANGES[8])
    if not minimum <= total <= maximum:
        raise ValueError(
            f"The sum of sample_weight of {owner} is {total:g}; for {dtype} data it must be "
            f"between {minimum:g} and {maximum:g}: "
            f"{'divide' if total > maximum else 'multiply'} the weights by a constant."
        )


def _check_square(matrix: Any, name: str) -> float:
    """Return the relative tolerance of symmetry; raise unless a matrix is square."""
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise ValueError(f"{name} must be a square matrix; got shape {matrix.shape}.")
    return 1e-8 if matrix.dtype == np.float64 else 1e-4


def _not_symmetric(matrix: Any, i: int, j: int, name: str) -> ValueError:
    return ValueError(
        f"{name} must be symmetric; entries ({i}, {j}) and ({j}, {i}) are {matrix[i, j]:g} and "
        f"{matrix[j, i]:g}. If the difference is rounding error, or the matrix is a graph of "
        "neighbours, pass (K + K.T) / 2."
    )


def check_symmetric(matrix: Array, name: str) -> None:
    """Raise unless a matrix is square, finite and symmetric up to rounding error."""
    tolerance = _check_square(matrix, name)
    step = max(1, 2**22 // matrix.shape[0])
    for start in range(0, matrix.shape[0], step):
        rows = matrix[start : start + step]
        mirrored = matrix[:, start : start + step].T
        largest = np.maximum(np.abs(rows), np.abs(mirrored)).max()
        if not largest <= np.finfo(matrix.dtype).max / matrix.shape[0]:  # or NaN
            i, j = _largest_entry(rows, start)
            raise ValueError(
                f"{name} must be finite, and its sums must not overflow in {matrix.dtype}; entry "
                f"({i}, {j}) is {matrix[i, j]:g}. Correct it, or rescale the data."
            )
        difference = np.abs(rows - mirrored)
        if difference.max() > tolerance * largest:
            raise _not_symmetric(matrix, *_largest_entry(difference, start), name)


def check_graph(graph: Any, name: str, *, symmetric: bool) -> None:
    """Raise unless a sparse array has no negative weights and, with `symmetric`, is symmetric."""
    if graph.nnz and graph.data.min() < 0:
        i, j = _largest_weight(-graph)
        raise ValueError(
            f"{name} must not have negative weights; entry ({i}, {j}) is {graph[i, j]:g}."
        )
    if symmetric:
        tolerance = _check_square(graph, name)
        difference = abs(graph - graph.T)
        if difference.nnz and difference.max() > tolerance * graph.max():
            raise _not_symmetric(graph, *_largest_weight(difference), name)


def _largest_weight(graph: Any) -> tuple[int, int]:
    entries = graph.tocoo()
    largest = int(np.argmax(entries.data))
    return int(entries.row[largest]), int(entries.col[largest])


def _largest_entry(rows: Array, first_row: int) -> tuple[int, int]:
    """Return row and column of the largest absolute value, or of a NaN."""
    row, column = np.unravel_index(int(np.argmax(np.abs(rows))), rows.shape)
    return int(row) + first_row, int(column)


def check_targets(y: Any, n: int, owner: str) -> Array:
    """Return y as an array; raise unless it has one class label per row."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    check_not_masked(y, "y", owner)
    y = as_array(y, "y", owner) if isinstance(y, (list, tuple)) else as_numpy(y, "y", owner)
    labels = column_or_1d(y, warn=True)
    try:
        labels = check_array(labels, ensure_2d=False, dtype=None, input_name="y")
        check_classification_targets(labels)
    except TypeError as error:  # None or NA among strings, strings among numbers
        raise ValueError(f"y of {owner} must have labels of one type: {error}.") from None
    check_consistent_length(np.empty(n), labels)
    return labels


def check_classes(labels: Array, owner: str, of: str = "points") -> Array:
    """Return the distinct labels, sorted; raise unless there are at least two."""
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs {of} of at least two classes; got one class, {classes.tolist()[0]!r}."
        )
    return classes
