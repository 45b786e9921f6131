"""Read the registry of data sets, and convert the bytes of a file to the fields of a Bunch."""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from .._core.arrays import Arrays
from .._core.pictures import image_size_error
from .._core.types import Array, Floats


@dataclass(frozen=True)
class Source:
    """One source of a data set.

    Parameters
    ----------
    urls : tuple of str
        URLs of the files. The text after ``#`` names a member of an archive. A URL
        ``package:name/path`` means a file of an installed Python package.
    parser : str
        Name of the converter, in ``CONVERTERS`` of `_load.py` or in
        ``experiments/data/convert.py``.
    options : mapping of str to object
        Options of the converter.
    """

    urls: tuple[str, ...]
    parser: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def local(self) -> bool:
        """Whether the files belong to Python packages, so that no network is needed."""
        return all(url.startswith("package:") for url in self.urls)

    def __str__(self) -> str:
        more = f" and {len(self.urls) - 1} more" if len(self.urls) > 1 else ""
        return self.urls[0] + more


@dataclass(frozen=True)
class DatasetEntry:
    """The entry of one data set in `registry.json`.

    Parameters
    ----------
    name : str
        The name for :func:`orthodrome.datasets.load`.
    path : str
        The file, relative to the data folder, with forward slashes.
    sha256 : str
        SHA-256 of the file used to create the entry, 64 hexadecimal digits.
    arrays_sha256 : str
        SHA-256 of the parsed arrays; a file is accepted if it has this hash.
    reader : str
        Name of the reader in `_readers.py`.
    title, description : str
        A readable name, and the meaning of the arrays.
    source_url, license : str
        Web page of the publisher, and terms of use.
    papers : sequence of str
        Short names of the papers whose experiments use the data set.
    extra_columns : sequence of str
        Columns of a table that are neither features nor target.
    categorical_columns : sequence of str
        Columns of a table that hold category codes.
    image_shape : sequence of int
        Height and width, if the file holds flattened images.
    columns : tuple of str
        The column names of a table.
    sources : tuple of Source
        Sources, in the order in which they are tried.
    """

    name: str
    path: str
    sha256: str
    arrays_sha256: str
    reader: str
    title: str
    description: str
    source_url: str
    license: str
    papers: Sequence[str] = ()
    extra_columns: Sequence[str] = ()
    categorical_columns: Sequence[str] = ()
    image_shape: Sequence[int] = ()
    columns: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()


@cache
def registry() -> Mapping[str, DatasetEntry]:
    """Return the registry of the package.

    Returns
    -------
    entries : mapping of str to DatasetEntry
        Entries in alphabetical order of their names.
    """
    text = resources.files(__package__).joinpath("registry.json").read_text(encoding="utf-8")
    return {name: _entry(name, **fields) for name, fields in sorted(json.loads(text).items())}


def _entry(name: str, columns: str = "", sources: Any = (), **fields: Any) -> DatasetEntry:
    parsed = tuple(_source(**source) for source in sources)
    return DatasetEntry(name=name, columns=tuple(columns.split()), sources=parsed, **fields)


def _source(urls: Sequence[str], parser: str, **options: Any) -> Source:
    return Source(tuple(urls), parser, options)


def find_entry(name: str, entries: Mapping[str, DatasetEntry]) -> DatasetEntry:
    """Return the entry of a data set; the error for an unknown name suggests a similar one."""
    if isinstance(name, str) and name in entries:
        return entries[name]
    near = difflib.get_close_matches(str(name), entries, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"There is no data set {name!r}.{hint} orthodrome.datasets.available() lists all names."
    )


Fields = dict[str, Any]
Target = tuple[Any, Any]  # class codes or numbers, and their names

# CMU's recording rate, which the files do not contain.
_MOTION_FRAMES_PER_SECOND = 120.0


def read_fields(content: bytes, entry: DatasetEntry) -> Fields:
    """Return the fields of a Bunch: at least data, target, feature_names and target_names."""
    return _READERS[entry.reader](content, entry)


# Tables -------------------------------------------------------------------------------------------


def _read_table(content: bytes, entry: DatasetEntry) -> Fields:
    """Read features, target and extra columns of a CSV file with a header."""
    features: dict[str, Any] = {}
    targets: dict[str, Sequence[str]] = {}
    extras: Fields = {"categories": {}} if entry.categorical_columns else {}
    for name, values in _csv_columns(content, entry).items():
        if name == "class" or name.startswith("target_"):
            targets[name] = values
        elif name in entry.extra_columns:
            extras[name] = _extra_column(values)
        elif name in entry.categorical_columns:
            features[name], extras["categories"][name] = _category_indices(values)
        else:
            features[name] = _numeric_column(values, name, entry)
    data = np.column_stack(list(features.values()))
    return _fields(data, list(features), _table_target(targets, entry), **extras)


def _read_landmark_table(content: bytes, entry: DatasetEntry) -> Fields:
    """Read a table whose features are x1, y1, x2, y2, … of planar landmarks."""
    fields = _read_table(content, entry)
    landmarks = fields["data"].reshape(len(fields["data"]), -1, 2)
    return fields | {"data": landmarks, "landmarks": landmarks}


def _csv_columns(content: bytes, entry: DatasetEntry) -> dict[str, Sequence[str]]:
    rows = list(csv.reader(io.StringIO(content.decode("utf-8"), newline="")))
    if len(rows) < 2:
        raise ValueError(f"{entry.path} needs a header and at least one row.")
    for line, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{entry.path}, row {line}: expected {len(rows[0])} fields as in the header, "
                f"found {len(row)}."
            )
    return {name: column for name, *column in zip(*rows, strict=True)}


def _numeric_column(values: Sequence[str], name: str, entry: DatasetEntry) -> Floats:
    """Return numbers, with NaN for empty fields."""
    try:
        return np.array([text or "nan" for text in values], dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{entry.path}, column {name!r}: {error}.") from None


def _category_indices(values: Sequence[str]) -> tuple[Floats, tuple[str, ...]]:
    """Return the index of each value's code, and the codes, sorted by length: A49, A410."""
    codes = sorted({text for text in values if text}, key=lambda code: (len(code), code))
    positions = {"": np.nan} | {code: float(index) for index, code in enumerate(codes)}
    return np.array([positions[text] for text in values]), tuple(codes)


def _extra_column(values: Sequence[str]) -> Array:
    column = np.array(values)
    try:
        return column.astype(np.int64)
    except ValueError:
        return column


def _table_target(targets: dict[str, Sequence[str]], entry: DatasetEntry) -> Target:
    """Return class codes from the column ``class``, or numbers from the columns ``target_*``."""
    labels = targets.pop("class", None)
    if labels and "" in labels:
        raise ValueError(f"{entry.path}, row {labels.index('') + 2}: the class label is empty.")
    if labels or not targets:
        return _encode_labels(labels)
    numbers = [_numeric_column(values, name, entry) for name, values in targets.items()]
    return np.column_stack(numbers), [name.removeprefix("target_") for name in targets]


def _encode_labels(labels: Iterable[Any] | None) -> Target:
    """Return codes and the label of each code; integer labels are sorted numerically."""
    if labels is None:
        return None, []
    names, codes = np.unique([str(label) for label in labels], return_inverse=True)
    try:
        order = np.argsort(names.astype(np.int64))
    except ValueError:
        order = np.arange(len(names))
    return np.argsort(order)[codes].astype(np.int64), names[order]


# Arrays -------------------------------------------------------------------------------------------


def _npz_arrays(content: bytes, entry: DatasetEntry, *required: str) -> dict[str, Array]:
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


def _fields(data: Any, names: list[str], target: Target = (None, []), **views: Any) -> Fields:
    found = {"data": data, "target": target[0], "target_names": target[1], "feature_names": names}
    return found | views


def _read_target(arrays: dict[str, Array]) -> Target:
    """Return the class codes and class names of a file, if it has classes."""
    if "classes" in arrays:
        return arrays["y"].astype(np.int64), arrays["classes"]
    return _encode_labels(arrays.get("y"))


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
    data, labels = (np.concatenate([arrays[f"{x}_train"], arrays[f"{x}_test"]]) for x in "Xy")
    images = data.reshape(-1, *entry.image_shape)
    names = _entry_names("pixel", images)
    fields = _fields(data, names, _encode_labels(labels), images=images)
    return _split_fields(fields, len(arrays["X_train"]))


def _read_pen_strokes(content: bytes, entry: DatasetEntry) -> Fields:
    arrays = _npz_arrays(content, entry, "X", "y", "is_test")
    order = np.argsort(arrays["is_test"], kind="stable")
    data, target = arrays["X"][order].astype(np.float64), _encode_labels(arrays["y"][order])
    landmarks = data.reshape(len(data), -1, 2)
    fields = _fields(data, _coordinate_names(landmarks), target, landmarks=landmarks)
    return _split_fields(fields, int(np.count_nonzero(arrays["is_test"] == 0)))


def _read_samples(content: bytes, entry: DatasetEntry) -> Fields:
    """Read images, landmarks or matrices; the name of the reader is the name of the field."""
    arrays = _npz_arrays(content, entry, "X")
    samples, what = arrays["X"], entry.reader
    if what == "landmarks":
        names = _coordinate_names(samples)
    else:
        names = _entry_names("pixel" if what == "images" else "entry", samples)
    data = samples.reshape(len(samples), -1) if what == "images" else samples
    views = {what: samples} | {key: arrays[key] for key in ("outlines",) if key in arrays}
    return _fields(data, names, _read_target(arrays), **views)


def _read_motion(content: bytes, entry: DatasetEntry) -> Fields:
    kept = ("joints", "parents", "trial", "trials")
    arrays = _npz_arrays(content, entry, "xyz", *kept)
    frames, rate = arrays["xyz"], _MOTION_FRAMES_PER_SECOND
    names = [f"{joint}_{axis}" for joint in arrays["joints"] for axis in "xyz"]
    fields = _fields(frames.reshape(len(frames), -1), names, frames=frames, frames_per_second=rate)
    return fields | {name: arrays[name] for name in kept}


def read_picture(content: bytes, name: str) -> Array:
    """Return the pixels of an image in any format of pillow; errors use `name`."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            f"Reading {name} needs pillow: pip install 'orthodrome[image]'"
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # checked below
            with Image.open(io.BytesIO(content)) as image:
                if message := image_size_error(image.size, len(content)):
                    raise ValueError(message)
                return np.array(image)
    except MemoryError:
        raise
    except Exception as error:  # decoders raise OSError, SyntaxError, ValueError, struct.error, …
        raise ValueError(f"{name} is not a readable image: {error}.") from error


def _read_image(content: bytes, entry: DatasetEntry) -> Fields:
    image = read_picture(content, entry.path)
    return _fields(image, [], image=image)  # without features: it is a single sample


def _entry_names(what: str, matrices: Array) -> list[str]:
    _, height, width = matrices.shape
    return [f"{what}_{row}_{column}" for row in range(height) for column in range(width)]


def _coordinate_names(landmarks: Array) -> list[str]:
    _, n_landmarks, n_axes = landmarks.shape
    return [f"{axis}{index + 1}" for index in range(n_landmarks) for axis in "xyz"[:n_axes]]


_READERS: dict[str, Callable[[bytes, DatasetEntry], Fields]] = {
    "table": _read_table,
    "landmark_table": _read_landmark_table,
    "split_images": _read_split_images,
    "pen_strokes": _read_pen_strokes,
    "images": _read_samples,
    "landmarks": _read_samples,
    "motion": _read_motion,
    "matrices": _read_samples,
    "image": _read_image,
}


# Fingerprints -------------------------------------------------------------------------------------

# Not hashed: our own names, and views or copies of `data` and `target`.
_VIEWS = {"images", "image", "landmarks", "frames", "matrices"}
_SPLIT = {"X_train", "X_test", "y_train", "y_test"}
_EXCLUDED = {"feature_names", "frames_per_second"} | _VIEWS | _SPLIT


def arrays_sha256(fields: Mapping[str, Any]) -> str:
    """Hash the parsed arrays of a data set: names, shapes, dtypes and values.

    Two files have the same hash if and only if they hold the same arrays. The hash does not depend
    on the format, the compression, the notation of numbers (7 or 7.0), the byte order, the sign of
    zeros and the names of the features.

    Parameters
    ----------
    fields : mapping of str to object
        The fields of a Bunch, as returned by the readers.

    Returns
    -------
    sha256 : str
        64 hexadecimal digits.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.datasets._readers import arrays_sha256
    >>> arrays_sha256({"data": np.zeros(2)}) == arrays_sha256({"data": -np.zeros(2)})
    True
    >>> arrays_sha256({"data": np.zeros(2)}) == arrays_sha256({"data": np.zeros((2, 1))})
    False
    """
    result = hashlib.sha256()
    for name in sorted(set(fields) - _EXCLUDED):
        head, body = _header_and_bytes(fields[name])
        result.update(f"{name} {head} {len(body)};".encode())
        result.update(body)
    return result.hexdigest()


def _header_and_bytes(value: Any) -> tuple[str, memoryview | bytes]:
    """Return shape and dtype as text, and the values as bytes."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        array = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        if array.dtype.kind == "f":
            array = array + array.dtype.type(0)  # copies, and turns -0 into 0
            array[np.isnan(array)] = np.nan  # NaN has many bit patterns
        return f"{array.dtype.str} {array.shape}", array.reshape(-1).view(np.uint8).data
    items = value.tolist() if isinstance(value, np.ndarray) else value
    # Strings are hashed without their dtype, whose width depends on the reader.
    return "text", json.dumps(items, sort_keys=True).encode()
