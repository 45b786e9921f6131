"""Turn tables with text, dates, identifiers and missing cells into numbers."""

from __future__ import annotations

import re
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._core.checks import check_choice, check_flag
from ._core.types import Floats

__all__ = ["TableCleaner"]

#: Texts that mark a missing cell; cells are converted to lower case before the comparison.
MISSING = frozenset({"", "na", "n/a", "nan", "#n/a", "null", "none", "?", "-", ".", "missing"})

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_CURRENCY = "[$€£¥]"
_UNITS = "%|°[CF]|[kmcµn]?m|[kmµ]?g|[mµ]?s|m?l|min|h"
# A number with a currency sign or a unit, and perhaps commas.
_AMOUNT = re.compile(
    rf"([+-]?)\s*({_CURRENCY}?)\s*(\d[\d,]*(?:\.\d+)?)\s*((?:{_CURRENCY}|{_UNITS})?)"
)
THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?([T ]\d{1,2}:\d{2}.*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}.*"
    r"|\d{1,2}:\d{2}(:\d{2}.*)?"
)
_IDENTIFIER_NAME = re.compile(
    r"ids?|index|rows?|row.?names?|no\.?|nr\.?|unnamed: \d+|.*[_ .-]id|id[_ .-].*", re.IGNORECASE
)
_DATE_NAME = re.compile(r"years?|yr|jahr|date", re.IGNORECASE)
_YEARS = 1500, 2100

# A text column is an identifier if the number of its distinct values exceeds both this number and
# half of its non-missing cells.
_MAX_CATEGORIES = 20

# In a table with at least this many rows, a column that counts up by 1 holds row numbers.
_MIN_NUMBERED = 10


class TableCleaner(TransformerMixin, BaseEstimator):
    """Choose the columns of a table that hold measurements, and return them as numbers.

    Columns of dates, identifiers and constants are left out. Text columns are left out too, or
    become columns of zeros and ones, one for each distinct value. Missing cells are filled in.

    Parameters
    ----------
    missing : {"median", "mean", "error"}, default="median"
        How to fill missing cells: with the median or the mean of the column in the training data.
        "error" raises an error if a cell is missing.
    text : {"ignore", "onehot", "error"}, default="ignore"
        What to do with columns of text: leave them out; make a column of zeros and ones for each
        distinct value; or raise an error.
    choose_columns : bool, default=True
        Whether to leave out columns of numbers that are dates, identifiers or constants. If False,
        all columns of numbers are used.

    Attributes
    ----------
    kinds_ : list of str
        What each column holds: "number", "text", "date", "identifier", "constant" or "empty".
    fill_values_ : ndarray of shape (n_columns,)
        The value that fills missing cells of each column; 0 for columns that are not numbers.
    categories_ : list of lists of str
        With ``text="onehot"``, the sorted distinct values of each text column. The list is empty
        for other columns.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    Notes
    -----
    A column holds dates if all its cells look like dates or times. A column of years holds dates
    too if its name says so, for example "year" or "date". A column holds identifiers in three
    cases: it holds text with more than 20 distinct values, which are more than half as many as its
    cells; it holds whole numbers, mostly distinct, and has a name such as "id"; or it holds row
    numbers. If all columns of numbers are constant, they are used. Numbers may have a currency
    sign or a unit such as % or mm, if all numbers of the column have the same one.

    `transform` treats new rows like the training data. If a cell of a text column holds a value
    that the training data do not contain, all columns made from that text column are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.preprocessing import TableCleaner
    >>> table = np.array([["ash", 3.1, 7], ["oak", None, 9], ["ash", 2.5, 8]], dtype=object)
    >>> TableCleaner(text="onehot").fit_transform(table)
    array([[1. , 0. , 3.1, 7. ],
           [0. , 1. , 2.8, 9. ],
           [1. , 0. , 2.5, 8. ]])
    """

    def __init__(
        self, *, missing: str = "median", text: str = "ignore", choose_columns: bool = True
    ) -> None:
        self.missing = missing
        self.text = text
        self.choose_columns = choose_columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what each column holds.

        Parameters
        ----------
        X : DataFrame, or array-like of shape (n_samples, n_columns)
            The table; cells are numbers or text. None, NaN and texts such as "NA" are missing.
        y : ignored
            Present by convention.

        Returns
        -------
        self
            The fitted cleaner.
        """
        owner = type(self).__name__
        check_choice(self.missing, ("median", "mean", "error"), "missing", owner)
        check_choice(self.text, ("ignore", "onehot", "error"), "text", owner)
        names, columns = self._columns(X, reset=True)
        check_flag(self.choose_columns, "choose_columns", owner)
        self.kinds_ = [column_kind(*pair) for pair in zip(names, columns, strict=True)]
        if not self.choose_columns:
            for i, column in enumerate(columns):
                if column.dtype != object and self.kinds_[i] != "empty":
                    self.kinds_[i] = "number"
        if "number" not in self.kinds_:  # use constant numbers, so that some column remains
            for i, column in enumerate(columns):
                if column.dtype != object and self.kinds_[i] == "constant":
                    self.kinds_[i] = "number"
        self.fill_values_ = np.zeros(len(columns))
        self.categories_: list[list[str]] = [[] for _ in columns]
        for i, kind in enumerate(self.kinds_):
            if kind == "text" and self.text == "error":
                raise ValueError(
                    f"Column {names[i]!r} holds text. Leave it out, or set text to 'onehot' or "
                    "'ignore'."
                )
            if kind == "text" and self.text == "onehot":
                self.categories_[i] = sorted({cell for cell in columns[i] if cell is not None})
            if kind == "number":
                center = np.nanmean if self.missing == "mean" else np.nanmedian
                self.fill_values_[i] = center(columns[i])
        if not len(self.get_feature_names_out()):
            pairs = zip(names, self.kinds_, strict=True)
            described = ", ".join(f"{name!r} ({kind})" for name, kind in pairs)
            raise ValueError(f"No column holds measurements. The columns are: {described}.")
        return self

    def transform(self, X: Any) -> Floats:
        """Return the columns of measurements as numbers.

        Parameters
        ----------
        X : DataFrame, or array-like of shape (n_samples, n_columns)
            A table with the columns of the training data. The columns of a DataFrame are found by
            name, and additional columns are ignored.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Numbers without missing values.
        """
        check_is_fitted(self)
        known = getattr(self, "feature_names_in_", None)
        if hasattr(X, "columns") and known is not None:
            absent = [name for name in known[self.used_columns()] if name not in X.columns]
            if absent:
                raise ValueError(f"X has no column {absent[0]!r}, but the training data have it.")
            if hasattr(X, "reindex"):
                X = X.reindex(columns=known)
            else:  # polars
                X = X[[name for name in known if name in X.columns]]
        names, columns = self._columns(X, reset=False)
        found = []
        for i in self.used_columns():
            values = columns[i]
            if self.kinds_[i] == "text":
                found += [
                    np.array([cell == value for cell in values], float)
                    for value in self.categories_[i]
                ]
                continue
            if values.dtype == object:
                values = _numbers(values, names[i])
            gaps = np.isnan(values)
            if self.missing == "error" and gaps.any():
                raise ValueError(
                    f"Row {np.argmax(gaps)}, column {names[i]!r}: the value is missing. Remove the "
                    "row, or set missing='median' or 'mean'."
                )
            found.append(np.where(gaps, self.fill_values_[i], values))
        return np.column_stack(found)

    def _columns(self, X: Any, *, reset: bool) -> tuple[list[str], list[NDArray[Any]]]:
        """Return the names and the columns of a table.

        Each column is an array of floats, with NaN for missing cells, or of text, with None.
        """
        is_frame = hasattr(X, "columns")
        options = {"dtype": None, "ensure_all_finite": False, "skip_check_array": is_frame}
        X = validate_data(self, X, reset=reset, **options)
        names = [str(name) for name in X.columns] if is_frame else _default_names(X.shape[1])
        raw = [np.asarray(X[name]) for name in X.columns] if is_frame else X.T
        return names, [_column(*pair) for pair in zip(names, raw, strict=True)]

    def missing_cells(self, X: Any) -> dict[str, NDArray[np.bool_]]:
        """Return which cells of a DataFrame are missing, for each used column of numbers."""
        found = {}
        for name, kind in zip(self.feature_names_in_, self.kinds_, strict=True):
            if kind == "number":
                values = _column(name, np.asarray(X[name]))
                is_text = values.dtype == object
                found[name] = values == np.array(None) if is_text else np.isnan(values)
        return found

    def unknown_categories(self, X: Any) -> dict[str, set[str]]:
        """Return values of text columns of a DataFrame that are not in the training data."""
        found = {}
        for name, known in zip(self.feature_names_in_, self.categories_, strict=True):
            if known:
                cells = {cell for cell in map(_cell, X[name]) if cell is not None}
                found[str(name)] = cells - set(known)
        return found

    def used_columns(self) -> list[int]:
        """Return the indices of the input columns that are used."""
        return [i for i, kind in enumerate(self.kinds_) if kind == "number" or self.categories_[i]]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the output columns; "name=value" for columns made from text."""
        check_is_fitted(self, "kinds_")
        names = getattr(self, "feature_names_in_", _default_names(self.n_features_in_))
        found: list[str] = []
        for i in self.used_columns():
            values = self.categories_[i]
            found += [f"{names[i]}={value}" for value in values] or [str(names[i])]
        return np.array(found, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.string = True
        return tags


def column_kind(name: str, values: NDArray[Any]) -> str:
    """Return what a column holds; see `TableCleaner`.

    `values` are floats, with NaN for missing cells, or text, with None for missing cells.
    """
    if values.dtype == object:
        texts = [cell for cell in values if cell is not None]
        distinct = set(texts)
        if len(distinct) < 2:
            return "constant" if distinct else "empty"
        if all(_DATE.fullmatch(text) for text in distinct):
            return "date"
        many = len(distinct) > max(_MAX_CATEGORIES, len(texts) / 2)
        return "identifier" if many else "text"
    present = values[~np.isnan(values)]
    if not len(present):
        return "empty"
    if present.min() == present.max():
        return "constant" if len(present) > 1 else "number"
    if np.all(present == np.floor(present)):
        first, n = present[0], len(values)
        if n >= _MIN_NUMBERED and np.array_equal(values, np.arange(first, first + n)):
            return "identifier"
        mostly_distinct = len(np.unique(present)) > n / 2
        if _IDENTIFIER_NAME.fullmatch(name.strip()) and mostly_distinct:
            return "identifier"
        in_range = _YEARS[0] <= present.min() and present.max() <= _YEARS[1]
        if _DATE_NAME.fullmatch(name.strip()) and in_range:
            return "date"
    return "number"


def _default_names(count: int) -> list[str]:
    return [f"x{i}" for i in range(count)]


def _column(name: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind in "fiub":
        numbers = values.astype(np.float64)
        _check_finite(numbers, name)
        return numbers
    if values.dtype.kind in "mM":
        return np.array([None if cell is None else str(cell)[:10] for cell in values], object)
    cells = np.array([_cell(cell) for cell in values], dtype=object)
    present = [cell for cell in cells if cell is not None]
    are_numbers = all(_number(cell) is not None for cell in present)
    if are_numbers and len(set(map(unit_of, present))) == 1:
        return _numbers(cells, name)
    return cells


def unit_of(cell: str) -> str:
    """Return the currency sign or the unit of a number, "" if it has none."""
    amount = _AMOUNT.fullmatch(cell)
    return amount[2] or amount[4] if amount else ""


def _number(cell: str) -> float | None:
    """Return the number in a cell without unit and thousands commas, or None if it is text."""
    if _NUMBER.fullmatch(cell):
        return float(cell)
    amount = _AMOUNT.fullmatch(cell)
    if amount is None:
        return None
    in_thousands = THOUSANDS.fullmatch(amount[3])
    digits = amount[3].replace(",", "" if in_thousands else ".")
    # a decimal comma is accepted only in a number with a unit
    is_number = _NUMBER.fullmatch(digits) and (in_thousands or unit_of(cell))
    return float(amount[1] + digits) if is_number else None


def _cell(cell: Any) -> str | None:
    """Return the text of a cell, or None if it is missing."""
    text = "" if cell is None else str(cell).strip()
    return None if text.lower() in MISSING or text in ("<NA>", "NaT") else text


def _numbers(cells: NDArray[Any], name: str) -> Floats:
    found = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if cell is None:
            continue
        number = _number(cell)
        if number is None:
            raise ValueError(f"Row {row}, column {name!r}: {cell!r} is not a number.")
        found[row] = number
    _check_finite(found, name)
    return found


def _check_finite(values: Floats, name: str) -> None:
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise ValueError(f"Row {row}, column {name!r}: the value is infinite. Correct it.")
