"""Read NumPy files: one array (npy) or several (npz), never pickled objects."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..._core.arrays import Arrays, read_array, read_header
from ..._core.types import Array
from ...plots._matplotlib import require
from . import checks
from .checks import format_names, quote
from .data import Data, InputError, RawTable

_ZIP = b"PK\x03\x04"  # first bytes of an archive
_DATA = "X"
_LABELS = ("y", "labels", "label", "target")
_NAMES = ("feature_names", "columns")


def read_npy(path: Path, *, label: str | None, columns: Sequence[str] | None) -> Data | RawTable:
    """Read one array; see :func:`read_data`."""
    if label is not None:
        raise InputError(
            f"{path} holds a single array, so it has no column {quote(label)} for --label. Save "
            "data and labels in one .npz file: numpy.savez(path, X=…, y=…)."
        )
    with path.open("rb") as file, _name_file_in_errors(path):
        if file.read(len(_ZIP)) == _ZIP:
            raise InputError(f"{path} holds several arrays. Rename it to .npz.")
        file.seek(0)
        header = read_header(file, path.stat().st_size)
        # memory for the stored array and for its copy as 64-bit numbers
        checks.check_memory(header.nbytes * (1 + 8 / (header.dtype.itemsize or 1)), str(path))
        file.seek(0)
        array = read_array(file)
    return _as_data(path, "the array", array, columns)


def read_npz(path: Path, *, label: str | None, columns: Sequence[str] | None) -> Data | RawTable:
    """Read the data array of an archive, and its labels; see :func:`read_data`."""
    if not zipfile.is_zipfile(path):
        raise InputError(
            f"{path} is not a .npz archive, or it is damaged. Write it with numpy.savez, or rename "
            "it to .npy if it holds one array."
        )
    with path.open("rb") as file, _name_file_in_errors(path):
        archive = Arrays(file, path.stat().st_size)
        names = archive.names

        def read(name: str) -> Array:
            checks.check_memory(2 * archive.unpacked_size(name), str(path))
            with _name_file_in_errors(f"{path}, array {quote(name)},"):
                return archive[name]

        data_name = _data_name(path, archive)
        X = read(data_name)
        if label is None:
            label = next((name for name in _LABELS if name in names), None)
        elif label not in names:
            raise InputError(
                f"{path} has no array {quote(label)} (--label). It has {format_names(names)}."
            )
        labels = None if label is None else _labels(path, read(label), label, X.shape[:1])
        stored = [n for n in _NAMES if n in names and archive.header(n).shape == X.shape[1:]]
        feature_names = tuple(map(str, read(stored[0]))) if stored else ()
    what = f"the array {quote(data_name)}"
    return _as_data(path, what, X, columns, labels, label, feature_names)


def _data_name(path: Path, archive: Arrays) -> str:
    """Return the name of the data array: X, or else the only one with 2 or 3 dimensions."""
    if _DATA in archive.names:
        return _DATA
    shapes = {name: archive.header(name).shape for name in archive.names}
    candidates = [name for name, shape in shapes.items() if len(shape) in (2, 3)]
    if len(candidates) == 1:
        return candidates[0]
    contents = format_names(f"{name} {shape}" for name, shape in shapes.items()) or "no arrays"
    raise InputError(
        f"{path} has no array X, and {'several' if candidates else 'none'} with two or three "
        f"dimensions. It holds {contents}. Save the data as X, or as a .npy file."
    )


def _labels(path: Path, array: Array, name: str, shape: tuple[int, ...]) -> NDArray[np.str_]:
    what = f"{path}: the array {quote(name)} of labels"
    if array.shape != shape:
        raise InputError(
            f"{what} has the shape {array.shape}, but needs one value for each row: {shape}."
        )
    try:
        texts = array.astype(np.str_).tolist()
    except UnicodeDecodeError:
        raise InputError(f"{what} holds bytes that are not ASCII. Save them as text.") from None
    return checks.check_labels(str(path), texts, name)


@contextmanager
def _name_file_in_errors(what: Path | str) -> Iterator[None]:
    """Re-raise reading errors as InputError with the name of the file and advice."""
    try:
        yield
    except InputError:
        raise
    except ValueError as problem:
        raise InputError(
            f"{what} is not a valid array of numbers: {problem}. Pickled Python objects are not "
            "read, since they can run code. Save it again: numpy.save(path, array.astype(float))."
        ) from None


def _as_data(
    path: Path,
    what: str,
    array: Array,
    columns: Sequence[str] | None,
    labels: NDArray[np.str_] | None = None,
    label_name: str | None = None,
    names: tuple[str, ...] = (),
) -> Data | RawTable:
    is_shapes = array.ndim == 3 and array.shape[2] in (2, 3)
    if array.dtype.kind not in "fiub" or not (array.ndim == 2 or is_shapes) or not array.size:
        raise InputError(
            f"{path}: {what} has the dtype {array.dtype} and the shape {array.shape}. Save real "
            "numbers (encode text) of shape (n, d) for n rows of d columns, (n, k, 2) or (n, k, 3) "
            "for landmarks, (n, height*width) for images, with n > 0."
        )
    with np.errstate(over="ignore"):
        dtype = np.float32 if array.dtype == np.float32 else np.float64
        X: Array = np.array(array, dtype=dtype, order="C")
    if not names or is_shapes:
        names = checks.column_names(*X.shape[1:])
    if columns is not None:
        if is_shapes:
            raise InputError(f"{path} holds landmarks, which have no columns. Remove --columns.")
        chosen = checks.choose_columns(str(path), names, None, columns).features
        X, names = np.ascontiguousarray(X[:, chosen]), tuple(names[i] for i in chosen)
    problem = checks.infinite_value(str(path), X.reshape(len(X), -1), names)
    ids = checks.row_names(len(X))
    if not is_shapes and (problem or np.isnan(X).any()):
        frame = require("pandas", "Missing values", "cli").DataFrame(X, columns=names)
        given = None if labels is None else labels.tolist()
        return RawTable(str(path), frame, ids, given, label_name, problem=problem)
    if problem:
        raise InputError(problem)
    return Data(str(path), "shapes" if is_shapes else "table", X, names, ids, labels, label_name)
