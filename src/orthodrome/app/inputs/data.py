"""The data of a file, the choice of its columns, and errors for files that cannot be used."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..._core.memory import format_bytes
from .. import memory

_LONGEST_QUOTED = 40
_MOST_LISTED = 12
# Names of a first column that names the rows; pandas writes its index as "".
_NAMES_OF_ROWS = {"", "unnamed: 0", "__index_level_0__", "index", "id", "ids", "name", "row"}
# Usual names of a column of classes, for advice.
_NAMES_OF_LABELS = ("label", "labels", "class", "target", "species", "group", "y")
_RESERVED = ("row", "predicted", "cluster")  # columns of the tables that commands write


class InputError(ValueError):
    """A file cannot be used; the message says what is wrong, where, and what to do."""


class UnknownColumnError(InputError):
    """A file has no column of this name."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, eq=False)
class Data:
    """The data of a file of n rows or specimens.

    Attributes
    ----------
    path : str
        The file.
    kind : {"table", "shapes"}
        Rows of numbers, or landmarks.
    X : ndarray of shape (n, d), (n, k, 2) or (n, k, 3)
        Features or landmarks: finite, float64, or float32 if the file has that.
    columns : tuple of str
        Names of the d features; x1, y1, x2, y2, … for landmarks.
    ids : tuple of str
        Name of each row: a TPS file's ID or IMAGE, an index column, else "row 1", "row 2", …
    labels : ndarray of str of shape (n,) or None
        Class of each row.
    label_name : str or None
        Source of the labels: a column's name, or the regular expression.
    id_name : str or None
        The column that the ids come from, if any.
    notes : tuple of str
        Remarks on how the file was read: its encoding, a missing header, ….
    read_seconds : float
        Time taken to read the file; 0 if there was none.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.app.inputs import Data
    >>> data = Data("leaves.npy", "table", np.eye(2), ("length", "width"), ("row 1", "row 2"))
    >>> len(data), data.labels is None
    (2, True)
    """

    path: str
    kind: Literal["table", "shapes"]
    X: NDArray[Any]
    columns: tuple[str, ...]
    ids: tuple[str, ...]
    labels: NDArray[np.str_] | None = None
    label_name: str | None = None
    id_name: str | None = None
    notes: tuple[str, ...] = ()
    read_seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.X)

    @property
    def label_title(self) -> str:
        """A heading for the labels: the name of their column, unless it is taken."""
        name = self.label_name or "label"
        is_pattern = self.kind == "shapes" and not name.isidentifier()
        return "label" if is_pattern or name in _RESERVED else name


# ---------------------------------------------------------------------------- names


def column_names(count: int, dimension: int = 1) -> tuple[str, ...]:
    """Return names for columns: x1, x2, …; for landmarks x1, y1, x2, y2, …."""
    return tuple(f"{axis}{i + 1}" for i in range(count) for axis in "xyz"[:dimension])


def row_names(count: int) -> tuple[str, ...]:
    """Return names for rows without names: row 1, row 2, …."""
    return tuple(f"row {i + 1}" for i in range(count))


def quoted(text: str) -> str:
    """Return text from a file for a message: quoted, shortened, on one line."""
    return repr(text if len(text) <= _LONGEST_QUOTED else text[:_LONGEST_QUOTED] + "…")


def listed(names: Iterable[Any], most: int = _MOST_LISTED) -> str:
    """Return names for a message, at most `most` of them."""
    every = [quoted(str(name)) for name in names]
    rest = len(every) - most
    return ", ".join(every[:most]) + (f" and {rest} more" if rest > 0 else "")


# ---------------------------------------------------------------------------- columns


@dataclass(frozen=True)
class Selection:
    """Positions of columns: the features, the labels and the names of the rows."""

    features: tuple[int, ...]
    label: int | None
    ids: int | None

    @property
    def texts(self) -> list[int]:
        """The columns that are read as text."""
        return [i for i in (self.label, self.ids) if i is not None]


def choose_columns(
    path: str, names: Sequence[str], label: str | None, columns: Sequence[str] | None
) -> Selection:
    """Choose columns by name.

    Without `columns`, every column is a feature except the label, and except the first one if its
    name says that it names the rows.
    """
    chosen = None if label is None else position(path, names, label, "--label")
    first = 0 if names and names[0].strip().lower() in _NAMES_OF_ROWS else None
    if columns is None:
        features = [i for i in range(len(names)) if i not in (chosen, first)]
    else:
        features = [position(path, names, name, "--columns") for name in columns]
    if len(set(features)) < len(features):
        twice = next(names[i] for i in features if features.count(i) > 1)
        raise InputError(f"{path}: --columns has {quoted(twice)} twice; name each column once.")
    if chosen in features:
        raise InputError(f"{path}: {quoted(label or '')} is both in --label and in --columns.")
    if not features:
        raise InputError(f"{path} has no columns of features. Its columns are {listed(names)}.")
    return Selection(tuple(features), chosen, first if first not in (chosen, *features) else None)


def position(path: str, names: Sequence[str], wanted: str, option: str) -> int:
    """Return the position of a column by its name."""
    if wanted in names:
        return list(names).index(wanted)
    near = difflib.get_close_matches(wanted, names, n=1)
    hint = f" Did you mean {quoted(near[0])}?" if near else ""
    raise UnknownColumnError(
        f"{path} has no column {quoted(wanted)} ({option}).{hint} Its columns are {listed(names)}.",
        wanted,
    )


# ---------------------------------------------------------------------------- checks


def is_missing_label(text: str) -> bool:
    """Return whether a cell has no label: empty, or nan. Other words may name a class."""
    return not text or text.lower() == "nan"


def check_labels(path: str, texts: Sequence[str], column: str) -> NDArray[np.str_]:
    """Return the labels of all rows; raise if one is missing."""
    for row, text in enumerate(texts, start=1):
        if is_missing_label(text):
            raise missing_label(f"{path}, row {row}", column)
    return np.array(texts, dtype=np.str_)


def missing_label(where: str, column: str) -> InputError:
    """Return the error for a row without a label."""
    return InputError(
        f"{where}, column {quoted(column)}: there is no label. Complete it, or remove the row."
    )


def check_finite(path: str, X: NDArray[Any], columns: Sequence[str]) -> None:
    """Raise if a value is missing or infinite."""
    bad = ~np.isfinite(X)
    if not bad.any():
        return
    row, column = (int(found) for found in np.argwhere(bad)[0])
    where = f"{path}, row {row + 1}, column {quoted(columns[column])}"
    if np.isnan(X[row, column]):
        counts = dict(zip(columns, np.isnan(X).sum(axis=0).tolist(), strict=True))
        raise InputError(f"{where}: the value is missing (nan). {missing_advice(counts)}")
    raise InputError(f"{where}: the value is infinite. Correct it, or remove the row.")


def check_memory(needed: float, what: str, advice: str = "Take a sample of the rows.") -> None:
    """Raise if `what` would not fit in the available memory."""
    available = memory.available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"{what} would take about {format_bytes(needed)} of memory, and "
            f"{format_bytes(available)} are available. {advice}".strip()
        )


def missing_advice(counts: dict[str, int]) -> str:
    """Return what to do about missing values, given their number in each column."""
    found = [name for name, count in counts.items() if count]
    complete = [name for name in counts if name not in found]
    others = f", or use only complete columns, with --columns: {listed(complete)}"
    return (
        f"Missing in all: {sum(counts.values())} of the values, in {listed(found)}. Remove these "
        "rows, or impute the values (for instance with sklearn.impute.SimpleImputer)"
        f"{others if complete else ''}."
    )


def text_advice(texts: Sequence[str], numbers: Sequence[str]) -> str:
    """Return what to do about columns of text, given the names of both kinds of columns."""
    usual = [name for known in _NAMES_OF_LABELS for name in texts if name.lower() == known]
    label = quoted((usual or texts)[0 if usual else -1])
    others = f", or use only columns of numbers, with --columns: {listed(numbers)}"
    return (
        f"Columns with text: {listed(texts)}. If {label} holds the classes, add --label {label}. "
        "Otherwise encode the text as numbers (for instance with "
        f"sklearn.preprocessing.OneHotEncoder){others if numbers else ''}."
    )
