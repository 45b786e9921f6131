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
from .data import (
    Data,
    InputError,
    check_finite,
    check_labels,
    check_memory,
    choose_columns,
    columns_of_landmarks,
    listed,
    numbered_columns,
    numbered_rows,
    shown,
    unknown_column,
)

__all__ = ["read_npy", "read_npz"]

_ZIP = b"PK\x03\x04"  # first bytes of an archive
_DATA = "X"
_LABELS = ("y", "labels", "label", "target")
_NAMES = ("feature_names", "columns")


def read_npy(path: Path, *, label: str | None, columns: Sequence[str] | None) -> Data:
    """Read one array; see :func:`read_data`."""
    if label is not None:
        raise InputError(
            f"{path} holds one array, without a column {shown(label)} for --label. Save the data "
            "as X and the labels as y in one .npz file: numpy.savez(path, X=…, y=…)."
        )
    with path.open("rb") as file, _errors_of(path):
        if file.read(len(_ZIP)) == _ZIP:
            raise InputError(f"{path} holds several arrays; name it .npz.")
        file.seek(0)
        header = read_header(file, path.stat().st_size)
        # the array as it is stored, and as 64-bit numbers
        n_values = header.nbytes // (header.dtype.itemsize or 1)
        check_memory(header.nbytes + 8 * n_values, str(path))
        array: NDArray[Any] = np.empty(header.shape, dtype=header.dtype)
        if header.nbytes:
            order: Literal["F", "C"] = "F" if header.fortran_order else "C"
            array = np.memmap(file, header.dtype, "r", header.offset, header.shape, order)
    return _as_data(path, "the array", array, columns)


def read_npz(path: Path, *, label: str | None, columns: Sequence[str] | None) -> Data:
    """Read the array of data among several, and its labels; see :func:`read_data`."""
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} is not a .npz file (NumPy's zip archive of arrays).")
    with path.open("rb") as file, _errors_of(path):
        archive = Arrays(file, path.stat().st_size)
        names = archive.names
        data_name = _data_name(path, archive)
        X = _array(path, archive, data_name)
        if label is None:
            label = next((usual for usual in _LABELS if usual in names), None)
        elif label not in names:
            raise InputError(str(unknown_column(str(path), names, label, "--label", "array")))
        labels = None
        if label is not None:
            labels = _labels(path, _array(path, archive, label), label, X.shape[:1])
        own = None
        for name in _NAMES:
            if own is None and name in names and archive.header(name).shape == X.shape[1:]:
                own = tuple(map(str, _array(path, archive, name)))
    return _as_data(path, f"the array {shown(data_name)}", X, columns, labels, label, own)


def _data_name(path: Path, archive: Arrays) -> str:
    """Return which array holds the data: X, else the only one of two or three dimensions."""
    if not archive.names:
        raise InputError(f"{path} holds no arrays. Save the data in it as X.")
    if _DATA in archive.names:
        return _DATA
    shapes = {name: archive.header(name).shape for name in archive.names}
    fitting = [name for name, shape in shapes.items() if len(shape) in (2, 3)]
    if len(fitting) == 1:
        return fitting[0]
    raise InputError(
        f"{path} has no array X, and {'several' if fitting else 'none'} of two or three "
        f"dimensions; it holds {listed(f'{name} {shape}' for name, shape in shapes.items())}. "
        "Save the data in it as X, or alone in a .npy file."
    )


def _array(path: Path, archive: Arrays, name: str) -> NDArray[Any]:
    """Unpack an array, if it fits in memory as it is stored and as 64-bit numbers."""
    unpacked = archive.unpacked_size(name)
    check_memory(2 * unpacked, str(path))
    with _errors_of(path, name):
        return archive[name]


def _labels(path: Path, array: NDArray[Any], name: str, shape: tuple[int, ...]) -> NDArray[np.str_]:
    if array.shape != shape:
        raise InputError(
            f"{path}: the array {shown(name)} of labels should have one value for each row, shape "
            f"{shape}; it has {array.shape}."
        )
    try:
        texts = array.astype(np.str_).tolist()
    except UnicodeDecodeError:
        raise InputError(
            f"{path}: the array {shown(name)} of labels holds bytes beyond ASCII. Save them as "
            "text."
        ) from None
    return check_labels(str(path), texts, name)


@contextmanager
def _errors_of(path: Path, name: str | None = None) -> Iterator[None]:
    """Name the file in errors of the reader, and say what to do about pickled objects."""
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


def _as_data(
    path: Path,
    what: str,
    array: NDArray[Any],
    columns: Sequence[str] | None,
    labels: NDArray[np.str_] | None = None,
    label_name: str | None = None,
    names: tuple[str, ...] | None = None,
) -> Data:
    kind = _kind(f"{path}: {what}", array)
    if not array.size:
        raise InputError(f"{path}: {what} is empty, of shape {array.shape}.")
    with np.errstate(over="ignore"):
        kept = np.float32 if array.dtype == np.float32 else np.float64
        X: NDArray[Any] = np.array(array, dtype=kept, order="C")
    if kind == "shapes":
        if columns is not None:
            raise InputError(f"{path} holds landmarks, which have no columns for --columns.")
        own = columns_of_landmarks(X.shape[1], X.shape[2])
    else:
        own = names or numbered_columns(X.shape[1])
    if columns is not None:
        chosen = choose_columns(str(path), own, None, columns).features
        X, own = np.ascontiguousarray(X[:, chosen]), tuple(own[i] for i in chosen)
    check_finite(str(path), X.reshape(len(X), -1), own)
    return Data(str(path), kind, X, own, numbered_rows(len(X)), labels, label_name)


def _kind(what: str, array: NDArray[Any]) -> Literal["table", "shapes"]:
    if array.dtype.kind not in "fiub":
        advice = {
            "c": "Write planar landmarks with real and imaginary part as (n, k, 2)",
            "V": "Write its fields as columns of one array of numbers",
        }.get(array.dtype.kind, "Encode text as numbers first")
        raise InputError(f"{what} holds {array.dtype}, not real numbers. {advice}.")
    if array.ndim == 2:
        return "table"
    if array.ndim == 3 and array.shape[2] in (2, 3):
        return "shapes"
    advice = "Reshape it: (n, d) for rows of d features, (n, k, 2) or (n, k, 3) for landmarks"
    if array.ndim == 3:
        advice += "; images as (n, height*width)"
    raise InputError(f"{what} has the shape {array.shape}. {advice}.")
