"""From the bytes of a file to the fields of a Bunch: one small function per layout."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.arrays import Arrays
from .._core.pictures import pixels_beyond
from ._registry import DatasetEntry

__all__ = ["read_fields", "read_picture"]

Fields = dict[str, Any]

# CMU's recording rate; the files hold positions only.
_MOTION_FRAMES_PER_SECOND = 120.0


def read_fields(content: bytes, entry: DatasetEntry) -> Fields:
    """Return the fields of a Bunch: at least data, target, feature_names and target_names."""
    return _READERS[entry.reader](content, entry)


# Tables -------------------------------------------------------------------------------------------


def _read_table(content: bytes, entry: DatasetEntry) -> Fields:
    """Features, target and extra columns of a CSV file with a header."""
    columns = _csv_columns(content, entry)
    categories: dict[str, tuple[str, ...]] = {}
    features: dict[str, NDArray[np.float64]] = {}
    targets: dict[str, list[str]] = {}
    extras: Fields = {}
    for name, values in columns.items():
        if name == "class" or name.startswith("target_"):
            targets[name] = values
        elif name in entry.extra_columns:
            extras[name] = _extra_column(values)
        elif name in entry.categorical_columns:
            features[name], categories[name] = _category_positions(values)
        else:
            features[name] = _numeric_column(values, name, entry)
    target, target_names = _table_target(targets, entry)
    data = np.column_stack(list(features.values()))
    if entry.categorical_columns:
        extras["categories"] = categories
    return _fields(data, list(features), (target, target_names), **extras)


def _read_landmark_table(content: bytes, entry: DatasetEntry) -> Fields:
    """Read a table whose features are x1, y1, x2, y2, … of planar landmarks."""
    fields = _read_table(content, entry)
    landmarks = fields["data"].reshape(len(fields["data"]), -1, 2)
    return fields | {"data": landmarks, "landmarks": landmarks}


def _csv_columns(content: bytes, entry: DatasetEntry) -> dict[str, list[str]]:
    rows = list(csv.reader(io.StringIO(content.decode("utf-8"), newline="")))
    if len(rows) < 2:
        raise ValueError(
            f"{entry.path} needs a header and at least one row, found {len(rows)} lines."
        )
    header = rows[0]
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise ValueError(
                f"{entry.path}, row {line}: expected {len(header)} fields as in the header, "
                f"found {len(row)}."
            )
    return dict(zip(header, map(list, zip(*rows[1:], strict=True)), strict=True))


def _numeric_column(values: Sequence[str], name: str, entry: DatasetEntry) -> NDArray[np.float64]:
    column = np.empty(len(values))
    for row, text in enumerate(values):
        try:
            column[row] = float(text) if text else np.nan
        except ValueError:
            raise ValueError(
                f"{entry.path}, row {row + 2}, column {name!r}: {text!r} is not a number; "
                "a missing value is an empty field."
            ) from None
    return column


def _category_positions(values: Sequence[str]) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Positions in the sorted codes; shorter codes come first, so that A410 follows A49."""
    codes = tuple(sorted({text for text in values if text}, key=lambda code: (len(code), code)))
    position = {code: float(index) for index, code in enumerate(codes)} | {"": np.nan}
    return np.array([position[text] for text in values]), codes


def _extra_column(values: Sequence[str]) -> NDArray[Any]:
    column = np.array(values)
    try:
        return column.astype(np.int64)
    except ValueError:
        return column


def _table_target(
    targets: dict[str, list[str]], entry: DatasetEntry
) -> tuple[NDArray[Any] | None, NDArray[np.str_] | list[str]]:
    """Class codes of the column ``class``, or numbers from the columns ``target_*``."""
    if not targets:
        return None, []
    if "class" in targets:
        if "" in targets["class"]:
            row = targets["class"].index("") + 2
            raise ValueError(f"{entry.path}, row {row}: the class label is empty.")
        return _encode_labels(targets["class"])
    numbers = [_numeric_column(values, name, entry) for name, values in targets.items()]
    return np.column_stack(numbers), [name.removeprefix("target_") for name in targets]


def _encode_labels(labels: Iterable[Any]) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """Integer codes and the label of each code; labels that are integers sort as integers."""
    texts = np.array([str(label) for label in labels])
    names, codes = np.unique(texts, return_inverse=True)
    try:
        order = np.argsort(names.astype(np.int64))
    except ValueError:
        order = np.arange(len(names))
    return np.argsort(order)[codes].astype(np.int64), names[order]


# Arrays -------------------------------------------------------------------------------------------


def _npz_arrays(content: bytes, entry: DatasetEntry, *required: str) -> dict[str, NDArray[Any]]:
    try:
        archive = Arrays(io.BytesIO(content), len(content))
        arrays = {name: archive[name] for name in archive.names}
    except ValueError as error:
        raise ValueError(
            f"{entry.path} is not a readable NPZ file of plain arrays: {error}."
        ) from error
    missing = [name for name in required if name not in arrays]
    if missing:
        raise ValueError(f"{entry.path} lacks the arrays {missing}; it has {sorted(arrays)}.")
    return arrays


def _fields(data: Any, names: list[str], labels: Any = None, **views: Any) -> Fields:
    """Return the fields of a Bunch; labels are codes with names, or any values to encode."""
    if labels is None:
        target, target_names = None, []
    else:
        target, target_names = labels if isinstance(labels, tuple) else _encode_labels(labels)
    found = {"data": data, "target": target, "target_names": target_names, "feature_names": names}
    return found | views


def _labels_of(arrays: dict[str, NDArray[Any]]) -> Any:
    """Return the array `y` of a file, with names if it has `classes`."""
    if "classes" in arrays:
        return arrays["y"].astype(np.int64), arrays["classes"]
    return arrays.get("y")


def _split_fields(fields: Fields, n_train: int) -> Fields:
    """Add the published split, as views: the first rows train, the others test."""
    data, target = fields["data"], fields["target"]
    return fields | {
        "is_test": np.arange(len(data)) >= n_train,
        "X_train": data[:n_train],
        "X_test": data[n_train:],
        "y_train": target[:n_train],
        "y_test": target[n_train:],
    }


def _read_split_images(content: bytes, entry: DatasetEntry) -> Fields:
    arrays = _npz_arrays(content, entry, "X_train", "y_train", "X_test", "y_test")
    data = np.concatenate([arrays["X_train"], arrays["X_test"]])
    labels = np.concatenate([arrays["y_train"], arrays["y_test"]])
    images = data.reshape(-1, *entry.image_shape)
    fields = _fields(data, _pixel_names(*images.shape[1:]), labels, images=images)
    return _split_fields(fields, len(arrays["X_train"]))


def _read_pen_strokes(content: bytes, entry: DatasetEntry) -> Fields:
    arrays = _npz_arrays(content, entry, "X", "y", "is_test")
    order = np.argsort(arrays["is_test"], kind="stable")
    data = arrays["X"][order].astype(np.float64)
    landmarks = data.reshape(len(data), -1, 2)
    names = _coordinate_names(*landmarks.shape[1:])
    fields = _fields(data, names, arrays["y"][order], landmarks=landmarks)
    return _split_fields(fields, int(np.count_nonzero(arrays["is_test"] == 0)))


def _read_images(content: bytes, entry: DatasetEntry) -> Fields:
    arrays = _npz_arrays(content, entry, "X", "y")
    images = arrays["X"]
    data = images.reshape(len(images), -1)
    return _fields(data, _pixel_names(*images.shape[1:]), _labels_of(arrays), images=images)


def _read_landmarks(content: bytes, entry: DatasetEntry) -> Fields:
    arrays = _npz_arrays(content, entry, "X")
    landmarks = arrays["X"]
    names = _coordinate_names(*landmarks.shape[1:])
    outlines = {name: arrays[name] for name in ("outlines",) if name in arrays}
    return _fields(landmarks, names, _labels_of(arrays), landmarks=landmarks, **outlines)


def _read_motion(content: bytes, entry: DatasetEntry) -> Fields:
    kept = ("joints", "parents", "trial", "trials")
    arrays = _npz_arrays(content, entry, "xyz", *kept)
    frames = arrays["xyz"]
    names = [f"{joint}_{axis}" for joint in arrays["joints"] for axis in "xyz"]
    views = {name: arrays[name] for name in kept}
    rate = {"frames_per_second": _MOTION_FRAMES_PER_SECOND}
    return _fields(frames.reshape(len(frames), -1), names, frames=frames, **views, **rate)


def _read_matrices(content: bytes, entry: DatasetEntry) -> Fields:
    arrays = _npz_arrays(content, entry, "X", "y")
    matrices = arrays["X"]
    rows, columns = matrices.shape[1:]
    names = [f"entry_{row}_{column}" for row in range(rows) for column in range(columns)]
    return _fields(matrices, names, _labels_of(arrays), matrices=matrices)


def read_picture(content: bytes, name: str) -> NDArray[Any]:
    """Return the pixels of a picture in any format of pillow; errors call it `name`."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            f"Reading {name} needs pillow: pip install 'orthodrome[image]'"
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # looked at below
            with Image.open(io.BytesIO(content)) as picture:
                if beyond := pixels_beyond(picture.size, len(content)):
                    raise ValueError(beyond)
                return np.array(picture)
    # beside OSError, Pillow's decoders raise SyntaxError, ValueError, struct.error, …
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"{name} is not a readable picture: {error}.") from error


def _read_image(content: bytes, entry: DatasetEntry) -> Fields:
    image = read_picture(content, entry.path)
    return _fields(image, [], image=image)  # its pixels are not features


def _pixel_names(height: int, width: int) -> list[str]:
    return [f"pixel_{row}_{column}" for row in range(height) for column in range(width)]


def _coordinate_names(n_landmarks: int, n_axes: int) -> list[str]:
    return [f"{axis}{index + 1}" for index in range(n_landmarks) for axis in "xyz"[:n_axes]]


_READERS: dict[str, Callable[[bytes, DatasetEntry], Fields]] = {
    "table": _read_table,
    "landmark_table": _read_landmark_table,
    "split_images": _read_split_images,
    "pen_strokes": _read_pen_strokes,
    "images": _read_images,
    "landmarks": _read_landmarks,
    "motion": _read_motion,
    "matrices": _read_matrices,
    "image": _read_image,
}
