"""NumPy's own files: one array (npy) or several (npz), never pickled objects."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..._core.arrays import Arrays, read_header
from ..memory import memory_refusal
from .data import Data, InputError, columns_of_landmarks, listed, numbered_columns, shown
from .selection import choose_columns, unknown_column
from .tables import missing_advice
from .text import is_no_label

__all__ = ["read_npy", "read_npz"]

_ZIP = b"PK\x03\x04"  # how an archive begins
_DATA = "X"
_LABELS = ("y", "labels", "label", "target")
_NAMES = ("feature_names", "columns")
# The array as it is stored, and as 64-bit numbers.
_COPIES = 2


def read_npy(path: Path, *, label: str | None, columns: Sequence[str] | None) -> Data:
    """Read one array; see :func:`read_data`."""
    if label is not None:
        raise InputError(
            f"{path} holds one array, without a column {shown(label)} for --label. Save the data "
            "as X and the labels as y in one .npz file: numpy.savez(path, X=…, y=…)."
        )
    with path.open("rb") as file, _refusals_told(path):
        if file.read(len(_ZIP)) == _ZIP:
            raise InputError(f"{path} holds several arrays; name it .npz.")
        file.seek(0)
        header = read_header(file, path.stat().st_size)
        _refuse_large(path, header.nbytes, header.nbytes // (header.dtype.itemsize or 1))
        array: NDArray[Any] = (
            np.memmap(
                file,
                dtype=header.dtype,
                mode="r",
                offset=header.offset,
                shape=header.shape,
                order="F" if header.fortran_order else "C",
            )
            if header.nbytes
            else np.empty(header.shape, dtype=header.dtype)
        )
    return _as_data(str(path), "the array", array, columns, None, None, None)


def read_npz(path: Path, *, label: str | None, columns: Sequence[str] | None) -> Data:
    """Read the array of data among several, and the labels beside it; see :func:`read_data`."""
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} is not a .npz file (NumPy's zip archive of arrays).")
    with path.open("rb") as file:
        with _refusals_told(path):
            archive = Arrays(file, path.stat().st_size)
        arrays = _Arrays(path, archive)
        name = arrays.data_name()
        X = arrays.get(name)
        label_name = label
        if label is None:
            label_name = next((usual for usual in _LABELS if usual in arrays.names), None)
        elif label not in arrays.names:
            raise unknown_array(path, arrays.names, label)
        labels = None if label_name is None else arrays.labels(label_name, _n_rows(X))
        names = arrays.columns(X.shape[-1]) if X.ndim == 2 else None
        return _as_data(
            str(path), f"the array {shown(name)}", X, columns, labels, label_name, names
        )


def _n_rows(array: NDArray[Any]) -> int:
    return len(array) if array.ndim else 0


def unknown_array(path: Path, names: Sequence[str], wanted: str) -> InputError:
    """Return the error of an array that is not in the archive."""
    message = str(unknown_column(str(path), names, wanted, "--label"))
    return InputError(message.replace("column", "array"))


class _Arrays:
    """The arrays of an archive, each read when it is asked for."""

    def __init__(self, path: Path, archive: Arrays) -> None:
        self._path, self._archive = path, archive
        self.names = archive.names
        if not self.names:
            raise InputError(f"{path} holds no arrays. Save the data in it as X.")

    def data_name(self) -> str:
        """Return which array holds the data: X, else the only one of rows."""
        if _DATA in self.names:
            return _DATA
        fitting = [name for name in self.names if self._ndim(name) in (2, 3)]
        if len(fitting) == 1:
            return fitting[0]
        shapes = listed(f"{name} {self._shape(name)}" for name in self.names)
        raise InputError(
            f"{self._path} has no array X, and {'none' if not fitting else 'several'} of two or "
            f"three dimensions; it holds {shapes}. Save the data in it as X, or alone in a .npy "
            "file."
        )

    def get(self, name: str) -> NDArray[Any]:
        """Return an array, refused before it is unpacked where it would not fit."""
        unpacked = self._archive.unpacked_size(name)
        _refuse_large(self._path, unpacked, unpacked // 8)
        with _refusals_told(self._path, name):
            return self._archive[name]

    def labels(self, name: str, n: int) -> NDArray[np.str_]:
        array = self.get(name)
        if array.shape != (n,):
            raise InputError(
                f"{self._path}: the array {shown(name)} of labels should have one value for each "
                f"of the {n} rows, shape ({n},); it has {array.shape}."
            )
        try:
            texts: NDArray[np.str_] = array.astype(np.str_)
        except UnicodeDecodeError:
            raise InputError(
                f"{self._path}: the array {shown(name)} of labels holds bytes beyond ASCII. Save "
                "them as text."
            ) from None
        absent = [row for row, text in enumerate(texts.tolist()) if is_no_label(text)]
        if absent:
            raise InputError(
                f"{self._path}, the array {shown(name)}, row {absent[0] + 1}: there is no label. "
                "Complete it, or remove the row."
            )
        return texts

    def columns(self, d: int) -> tuple[str, ...] | None:
        """Return names of the features, where an array of them is there."""
        for name in _NAMES:
            if name in self.names and self._shape(name) == (d,):
                return tuple(str(one) for one in self.get(name))
        return None

    def _shape(self, name: str) -> tuple[int, ...]:
        with _refusals_told(self._path, name):
            return self._archive.header(name).shape

    def _ndim(self, name: str) -> int:
        return len(self._shape(name))


# ---------------------------------------------------------------------------- checks


@contextmanager
def _refusals_told(path: Path, name: str | None = None) -> Iterator[None]:
    """Let a refusal name the file, and say what to do about pickled objects."""
    what = str(path) if name is None else f"{path}, array {shown(name)},"
    try:
        yield
    except InputError:
        raise
    except ValueError as problem:
        if "pickled" in str(problem):
            raise InputError(
                f"{what} holds pickled Python objects, which can run code when they are read. Save "
                "an array of numbers: numpy.save(path, array.astype(float))."
            ) from None
        raise InputError(f"{what} is not a whole NumPy file: {problem}.") from None


def _refuse_large(path: Path, stored: int, values: int) -> None:
    refusal = memory_refusal(stored + (_COPIES - 1) * 8 * values, str(path))
    if refusal:
        raise InputError(f"{refusal}. Take a sample of the rows.")


def _as_data(
    path: str,
    what: str,
    array: NDArray[Any],
    columns: Sequence[str] | None,
    labels: NDArray[np.str_] | None,
    label_name: str | None,
    names: tuple[str, ...] | None,
) -> Data:
    kind = _kind(path, what, array)
    if not len(array) or not array.size:
        raise InputError(f"{path}: {what} is empty, of shape {array.shape}.")
    X = _floats(path, what, array)
    ids = tuple(f"row {number + 1}" for number in range(len(X)))
    if kind == "shapes":
        if columns is not None:
            raise InputError(f"{path} holds landmarks, which have no columns for --columns.")
        own = columns_of_landmarks(X.shape[1], X.shape[2])
        _check_finite(path, X.reshape(len(X), -1), own)
        return Data(path, kind, X, own, ids, labels, label_name)
    own = numbered_columns(X.shape[1]) if names is None else names
    if columns is not None:
        chosen = choose_columns(path, own, None, columns).features
        X, own = np.ascontiguousarray(X[:, chosen]), tuple(own[i] for i in chosen)
    _check_finite(path, X, own)
    return Data(path, kind, X, own, ids, labels, label_name)


def _kind(path: str, what: str, array: NDArray[Any]) -> Literal["table", "shapes"]:
    if array.dtype.kind not in "fiub":
        advice = {
            "c": "Write planar landmarks with real and imaginary part as (n, k, 2)",
            "V": "Write its fields as columns of one array of numbers",
        }.get(array.dtype.kind, "Encode texts as numbers first")
        raise InputError(f"{path}: {what} holds {array.dtype}, not real numbers. {advice}.")
    if array.ndim == 2:
        return "table"
    if array.ndim == 3 and array.shape[2] in (2, 3):
        return "shapes"
    advice = "Reshape it: (n, d) for rows of d features, (n, k, 2) or (n, k, 3) for landmarks"
    if array.ndim == 3:
        advice += "; images as (n, height*width)"
    raise InputError(f"{path}: {what} has the shape {array.shape}. {advice}.")


def _floats(path: str, what: str, array: NDArray[Any]) -> NDArray[Any]:
    kept = np.float32 if array.dtype == np.float32 else np.float64
    with np.errstate(over="ignore"):
        return np.array(array, dtype=kept, order="C")


def _check_finite(path: str, X: NDArray[Any], columns: Sequence[str]) -> None:
    bad = ~np.isfinite(X)
    if not bad.any():
        return
    row, column = (int(found) for found in np.argwhere(bad)[0])
    where = f"{path}, row {row + 1} (index {row}), column {shown(columns[column])}"
    if np.isnan(X[row, column]):
        counts = dict(zip(columns, np.isnan(X).sum(axis=0).tolist(), strict=True))
        raise InputError(f"{where}: the value is missing (nan). " + missing_advice(counts))
    raise InputError(f"{where}: the value is infinite. Correct it, or remove the row.")
