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
    column_names,
    listed,
    quoted,
    row_names,
)

_ZIP = b"PK\x03\x04"  # first bytes of an archive
_DATA = "X"
_LABELS = ("y", "labels", "label", "target")
_NAMES = ("feature_names", "columns")


def read_npy(path: Path, *, label: str | None, columns: Sequence[str] | None) -> Data:
    """Read one array; see :func:`read_data`."""
    if label is not None:
        raise InputError(
            f"{path} holds one array, without a column {quoted(label)} for --label. Save the data "
            "as X and the labels as y in one .npz file: numpy.savez(path, X=…, y=…)."
        )
    with path.open("rb") as file, _errors_name(path):
        if file.read(len(_ZIP)) == _ZIP:
            raise InputError(f"{path} holds several arrays; name it .npz.")
        file.seek(0)
        header = read_header(file, path.stat().st_size)
        # the array as it is stored, and as 64-bit numbers
        check_memory(header.nbytes * (1 + 8 / (header.dtype.itemsize or 1)), str(path))
        array: NDArray[Any] = np.empty(header.shape, dtype=header.dtype)
        if header.nbytes:
            order: Literal["F", "C"] = "F" if header.fortran_order else "C"
            array = np.memmap(file, header.dtype, "r", header.offset, header.shape, order)
    return _as_data(path, "the array", array, columns)


def read_npz(path: Path, *, label: str | None, columns: Sequence[str] | None) -> Data:
    """Read the array of data among several, and its labels; see :func:`read_data`."""
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} is not a .npz file (NumPy's zip archive of arrays).")
    with path.open("rb") as file, _errors_name(path):
        archive = Arrays(file, path.stat().st_size)
        names = archive.names
        data_name = _data_name(path, archive)
        X = _array(path, archive, data_name)
        if label is None:
            label = next((usual for usual in _LABELS if usual in names), None)
        elif label not in names:
            raise InputError(
                f"{path} has no array {quoted(label)} (--label). It has {listed(names)}."
            )
        labels = None
        if label is not None:
            labels = _labels(path, _array(path, archive, label), label, X.shape[:1])
        columns_of = [n for n in _NAMES if n in names and archive.header(n).shape == X.shape[1:]]
        own = tuple(map(str, _array(path, archive, columns_of[0]))) if columns_of else None
    return _as_data(path, f"the array {quoted(data_name)}", X, columns, labels, label, own)


def _data_name(path: Path, archive: Arrays) -> str:
    """Return which array holds the data: X, else the only one of two or three dimensions."""
    if _DATA in archive.names:
        return _DATA
    shapes = {name: archive.header(name).shape for name in archive.names}
    fitting = [name for name, shape in shapes.items() if len(shape) in (2, 3)]
    if len(fitting) == 1:
        return fitting[0]
    held = listed(f"{name} {shape}" for name, shape in shapes.items()) or "no arrays"
    raise InputError(
        f"{path} has no array X, and {'several' if fitting else 'none'} of two or three "
        f"dimensions; it holds {held}. Save the data in it as X, or alone in a .npy file."
    )


def _array(path: Path, archive: Arrays, name: str) -> NDArray[Any]:
    """Unpack an array, if it fits in memory as it is stored and as 64-bit numbers."""
    check_memory(2 * archive.unpacked_size(name), str(path))
    with _errors_name(path, name):
        return archive[name]


def _labels(path: Path, array: NDArray[Any], name: str, shape: tuple[int, ...]) -> NDArray[np.str_]:
    what = f"{path}: the array {quoted(name)} of labels"
    if array.shape != shape:
        raise InputError(
            f"{what} should have one value for each row, shape {shape}; it has {array.shape}."
        )
    try:
        texts = array.astype(np.str_).tolist()
    except UnicodeDecodeError:
        raise InputError(f"{what} holds bytes beyond ASCII. Save them as text.") from None
    return check_labels(str(path), texts, name)


@contextmanager
def _errors_name(path: Path, name: str | None = None) -> Iterator[None]:
    """Name the file in errors of the reader, and say what to do about pickled objects."""
    what = str(path) if name is None else f"{path}, array {quoted(name)},"
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
        raise InputError(f"{what} is not a complete NumPy file: {problem}.") from None


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
    with np.errstate(over="ignore"):
        kept = np.float32 if array.dtype == np.float32 else np.float64
        X: NDArray[Any] = np.array(array, dtype=kept, order="C")
    own = names if names and kind == "table" else column_names(*X.shape[1:])
    if columns is not None:
        if kind == "shapes":
            raise InputError(f"{path} holds landmarks, which have no columns for --columns.")
        chosen = choose_columns(str(path), own, None, columns).features
        X, own = np.ascontiguousarray(X[:, chosen]), tuple(own[i] for i in chosen)
    check_finite(str(path), X.reshape(len(X), -1), own)
    return Data(str(path), kind, X, own, row_names(len(X)), labels, label_name)


def _kind(what: str, array: NDArray[Any]) -> Literal["table", "shapes"]:
    """Return whether an array holds a table or landmarks; raise if it is neither, or empty."""
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"{what} holds {array.dtype}, not real numbers. Encode text as numbers, write planar "
            "landmarks as (n, k, 2), and fields as columns of one array."
        )
    is_shapes = array.ndim == 3 and array.shape[2] in (2, 3)
    if not (array.ndim == 2 or is_shapes):
        raise InputError(
            f"{what} has the shape {array.shape}. Reshape it: (n, d) for rows of d features, "
            "(n, k, 2) or (n, k, 3) for landmarks, (n, height*width) for images."
        )
    if not array.size:
        raise InputError(f"{what} is empty, of shape {array.shape}.")
    return "shapes" if is_shapes else "table"
