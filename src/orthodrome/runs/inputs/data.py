"""What a file of data is once it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Data",
    "InputError",
    "UnknownColumnError",
    "columns_of_landmarks",
    "listed",
    "numbered_columns",
    "shown",
]

_LONGEST_SHOWN = 40
_MOST_LISTED = 12


class InputError(ValueError):
    """A file cannot be used as it is; the message says what, where, and what to do."""


class UnknownColumnError(InputError):
    """A file has no column of a name that was asked for."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, eq=False)
class Data:
    """What :func:`read_data` found in a file of n rows or specimens.

    Attributes
    ----------
    path : str
        The file.
    kind : {"table", "shapes"}
        Rows of numbers, or landmarks.
    X : ndarray of shape (n, d), (n, k, 2) or (n, k, 3)
        The features or the landmarks: finite, float64, or float32 where the file has that.
    columns : tuple of str
        Names of the d features; x1, y1, x2, y2, … for landmarks.
    ids : tuple of str
        What each row is called: a TPS file's ID or IMAGE, an index column, else "row 1", "row 2", …
    labels : ndarray of str of shape (n,) or None
        The class of each row.
    label_name : str or None
        Where the labels come from: a column's name, or the regular expression.
    id_name : str or None
        The column that the ids come from, where there is one.
    notes : tuple of str
        What a reader of the file should know: an encoding, a header that is not there, ….
    read_seconds : float
        How long the file took to read; 0 where there was none.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.runs.inputs import Data
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
        """What to call the labels: the name of their column, where it has one that is free."""
        named = self.label_name is not None and (self.kind == "table" or self.id_name is None)
        name = self.label_name if named or (self.label_name or "").isidentifier() else None
        return name if name and name not in ("row", "predicted", "cluster") else "label"


def numbered_columns(count: int) -> tuple[str, ...]:
    """Return the names of columns that have none: x1, x2, …."""
    return tuple(f"x{number + 1}" for number in range(count))


def columns_of_landmarks(count: int, dimension: int) -> tuple[str, ...]:
    """Return the names of coordinates: x1, y1, x2, y2, …."""
    axes = "xyz"[:dimension]
    return tuple(f"{axis}{number + 1}" for number in range(count) for axis in axes)


def shown(value: str) -> str:
    """Return a text of the file as messages show it: quoted, shortened, on one line."""
    text = value if len(value) <= _LONGEST_SHOWN else value[:_LONGEST_SHOWN] + "…"
    return repr(text)


def listed(names: Any, most: int = _MOST_LISTED) -> str:
    """Return names as messages list them, the first dozen of many."""
    every = [shown(str(name)) for name in names]
    rest = len(every) - most
    return ", ".join(every[:most]) + (f" and {rest} more" if rest > 0 else "")
