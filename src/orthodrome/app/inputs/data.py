"""The data of a file, and the errors for files that cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..._core.types import Array, Indices
from ...preprocessing import TableCleaner

_RESERVED = ("row", "predicted", "cluster")  # columns of the tables that commands write


class InputError(ValueError):
    """The error for a file that cannot be used."""


class UnknownColumnError(InputError):
    """The error for a column that a file does not have."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, eq=False)
class RawTable:
    """A table as it is in the file, with text and missing cells.

    Attributes
    ----------
    path, ids, label_name, id_name, notes :
        As in :class:`Data`.
    values : DataFrame
        The features.
    labels : list of str or None
        The label of each row; "" if it is missing.
    locate : callable
        Returns the place of a row in the file, for messages.
    problem : str
        Why the table cannot be used as it is, for example a number with a typing error; else "".
    """

    path: str
    values: Any
    ids: tuple[str, ...]
    labels: list[str] | None = None
    label_name: str | None = None
    id_name: str | None = None
    notes: tuple[str, ...] = ()
    locate: Callable[[int], str] = lambda row: f"row {row + 1}"
    problem: str = ""


@dataclass(frozen=True, eq=False)
class Data:
    """The data of a file with n rows or specimens.

    Attributes
    ----------
    path : str
        The file.
    kind : {"table", "shapes"}
        Rows of numbers, or landmarks.
    X : ndarray of shape (n, d), (n, k, 2) or (n, k, 3)
        Features or landmarks. Finite; float32 if the file has float32, else float64.
    columns : tuple of str
        Names of the d features; x1, y1, x2, y2, … for landmarks.
    ids : tuple of str
        Row names: the ID or IMAGE in a TPS file, an index column, else "row 1", "row 2", …
    labels : ndarray of str of shape (n,) or None
        Class of each row.
    label_name : str or None
        Source of the labels: the name of a column, or the regular expression that finds them in
        the names of specimens.
    id_name : str or None
        Name of the column with the ids, if any.
    notes : tuple of str
        Remarks on how the file was read, for example its encoding or a missing header.
    cleaner : TableCleaner or None
        What turned the columns of the file into numbers; None for landmarks and arrays of numbers.
    reflected : tuple of str
        The ids of mirrored specimens that were reflected.
    links : ndarray of shape (m, 2) or None
        Pairs of landmarks to join with lines in figures; None joins all landmarks in order.
    landmarks : tuple of str
        The names or numbers of the landmarks in the file; 1, 2, … if it has none.

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
    X: Array
    columns: tuple[str, ...]
    ids: tuple[str, ...]
    labels: NDArray[np.str_] | None = None
    label_name: str | None = None
    id_name: str | None = None
    notes: tuple[str, ...] = ()
    cleaner: TableCleaner | None = None
    reflected: tuple[str, ...] = ()
    links: Indices | None = None
    landmarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind == "shapes" and not self.landmarks:
            numbers = tuple(str(i + 1) for i in range(self.X.shape[1]))
            object.__setattr__(self, "landmarks", numbers)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def noun(self) -> str:
        """What a row is called in messages."""
        return "specimen" if self.kind == "shapes" else "row"

    @property
    def label_title(self) -> str:
        """Name of the label column in written tables.

        It is "label" if `label_name` is None, reserved, or a regular expression.
        """
        name = self.label_name or "label"
        is_pattern = self.kind == "shapes" and not name.isidentifier()
        return "label" if is_pattern or name in _RESERVED else name

    def sample_rows(self, max_rows: int, seed: int = 0) -> Indices:
        """Return the indices of all rows, or a sorted random sample of `max_rows`."""
        n = len(self)
        if n <= max_rows:
            return np.arange(n)
        return np.sort(np.random.default_rng(seed).choice(n, max_rows, replace=False))

    def take(self, rows: Indices) -> Data:
        """Return the data of these rows."""
        ids = tuple(self.ids[row] for row in rows)
        labels = None if self.labels is None else self.labels[rows]
        return replace(self, X=self.X[rows], ids=ids, labels=labels)
