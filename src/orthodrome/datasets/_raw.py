"""From a publisher's files to the file of the offline folder: one small function per format."""

from __future__ import annotations

import bz2
import csv
import gzip
import importlib
import io
import lzma
import math
import re
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthodrome.datasets._motion import joint_positions, parse_amc, parse_asf
from orthodrome.datasets._readers import read_picture
from orthodrome.datasets._registry import DatasetEntry, Source

__all__ = ["converted", "table_file", "unpacked"]

Options = Mapping[str, Any]
Row = Sequence[str]


def converted(contents: Sequence[bytes], source: Source, entry: DatasetEntry) -> bytes:
    """Turn a publisher's files into the file that the offline folder would hold.

    Parameters
    ----------
    contents : sequence of bytes
        The files of ``source.urls``, in that order, as they are published.
    source : Source
        Says which format they have.
    entry : DatasetEntry
        The set.

    Returns
    -------
    content : bytes
        A CSV, NPZ or PNG file that the set's reader takes.
    """
    files = [unpacked(content, url) for content, url in zip(contents, source.urls, strict=True)]
    return _PARSERS[source.parser](files, source.options, entry)


def unpacked(content: bytes, url: str) -> bytes:
    """Undo the compression that a URL's name tells of, and pick the member after ``#``.

    Parameters
    ----------
    content : bytes
        The file as it is published.
    url : str
        Its address. Without ``#``, an archive is handed on whole.

    Returns
    -------
    content : bytes
        What the parser reads.
    """
    address, _, member = url.partition("#")
    try:
        if member and address.endswith(".zip"):
            with (
                zipfile.ZipFile(io.BytesIO(content)) as archive,
                archive.open(member) as file,
            ):
                return _read_bounded(file, len(content))
        if member:
            with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                extracted = tar.extractfile(member)
                return _read_bounded(extracted, len(content)) if extracted else b""
        for suffix, opened in _OPENERS.items():
            if address.endswith(suffix):
                with opened(io.BytesIO(content)) as file:
                    return _read_bounded(file, len(content))
    except MemoryError:
        raise
    except Exception as error:  # each module has errors of its own beside those of Python
        raise ValueError(f"{url} cannot be unpacked: {error}") from error
    return content


_OPENERS: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
# Far beyond what tables and pictures compress to, and far below what bombs do.
_MOST_PER_BYTE, _ALWAYS_ALLOWED = 200, 2**24


def _read_bounded(file: Any, packed: int) -> bytes:
    """Return what is in a compressed file, unless it is far too much for the file's size."""
    most = max(_MOST_PER_BYTE * packed, _ALWAYS_ALLOWED)
    content: bytes = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"its {packed} bytes unpack to more than {most}")
    return content


# Tables -------------------------------------------------------------------------------------------


def table_file(rows: Iterable[Row], options: Options, entry: DatasetEntry) -> bytes:
    """Write rows of text as the CSV file of a set.

    Parameters
    ----------
    rows : iterable of sequence of str
        The fields of each row.
    options : mapping
        ``columns``: the names of the fields, ``-`` for one that is left out; by default those of
        the set. ``missing``: the text of a missing value. ``values``, ``labels``: texts to
        replace in the features and in the class.
    entry : DatasetEntry
        The set.

    Returns
    -------
    content : bytes
        A CSV file with the set's header.
    """
    names = options.get("columns", "").split() or list(entry.columns)
    positions = [names.index(column) for column in entry.columns]
    missing = {options["missing"]: ""} if "missing" in options else {}
    values = missing | options.get("values", {})
    replace = [options.get("labels", {}) if c == "class" else values for c in entry.columns]
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(entry.columns)
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise ValueError(f"Row {number} has {len(row)} fields, expected {len(names)}.")
        cells = [row[position] for position in positions]
        writer.writerow(new.get(cell, cell) for cell, new in zip(cells, replace, strict=True))
    return stream.getvalue().encode()


def _text_table(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Read rows of text, as UCI publishes them; ``header`` lines are skipped."""
    lines = _lines(files[0])[options.get("header", 0) :]
    return table_file(_fields(lines, options), options, entry)


def _arff_table(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Read the rows after ``@data``; the attributes are known from the registry."""
    lines = [line for line in _lines(files[0]) if not line.startswith("%")]
    starts = [number for number, line in enumerate(lines) if line.lower() == "@data"]
    if not starts:
        raise ValueError("The ARFF file has no line '@data'.")
    return table_file(_fields(lines[starts[0] + 1 :], options), options, entry)


def _lines(content: bytes) -> list[str]:
    """Lines that are not empty; ends of line may be those of any system."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return [line.strip() for line in re.split(r"\r\n|\r|\n", text) if line.strip()]


def _fields(lines: Iterable[str], options: Options) -> list[list[str]]:
    delimiter = options.get("delimiter", ",")
    if delimiter == "space":  # any number of blanks and tabs
        return [line.split() for line in lines]
    return [[cell.strip() for cell in line.split(delimiter)] for line in lines]


def _numbers(lines: Iterable[str], options: Options, dtype: type = np.float64) -> NDArray[Any]:
    try:
        return np.array(_fields(lines, options), dtype=np.float64).astype(dtype)
    except ValueError as error:
        raise ValueError(f"The file is no table of numbers: {error}") from None


# Passiflora ---------------------------------------------------------------------------------------


def _passiflora(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Join raw landmarks and the facts about each leaf, row by row."""
    return table_file(_leaves(files), {}, entry)


def _passiflora_species(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Count the leaves of each species, in the order of class and species."""
    counts = Counter((row[2], row[1]) for row in _leaves(files))
    rows = [(label, species, str(number)) for (label, species), number in sorted(counts.items())]
    return table_file(rows, {}, entry)


def _leaves(files: Sequence[bytes]) -> list[list[str]]:
    """Return plant, species, class, ontogeny, total, heteroblasty and 30 coordinates per leaf."""
    tabs = {"delimiter": "\t"}
    landmarks = _fields(_lines(files[0]), tabs)
    facts = _fields(_lines(files[1])[1:], tabs)
    if len(landmarks) != len(facts):
        raise ValueError(f"{len(landmarks)} leaves have landmarks, but {len(facts)} have facts.")
    return [[*about[:6], *points] for about, points in zip(facts, landmarks, strict=True)]


# Digits -------------------------------------------------------------------------------------------


def _pen_digits(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    parts = [_numbers(_lines(content), options, np.uint8) for content in files]
    table = np.concatenate(parts)
    is_test = np.repeat(np.arange(len(parts), dtype=np.uint8), [len(part) for part in parts])
    return _npz_file(X=table[:, :-1], y=table[:, -1], is_test=is_test)


def _zip_digits(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Read rows of label and pixels, training then test."""
    train, test = (_numbers(_lines(content), {"delimiter": "space"}) for content in files)
    return _split_file(train[:, 1:], train[:, 0], test[:, 1:], test[:, 0], np.float32)


def _libsvm_digits(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Read svmlight files, training then test, whose labels start at 1."""
    from sklearn.datasets import load_svmlight_file

    n_pixels = int(np.prod(entry.image_shape))
    parts: list[NDArray[Any]] = []
    for content in files:
        pixels, labels = load_svmlight_file(io.BytesIO(content), n_features=n_pixels)
        parts += [pixels.toarray(), labels - 1]
    return _split_file(parts[0], parts[1], parts[2], parts[3], np.float32)


def _idx_digits(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Read idx files: training images and labels, test images and labels."""
    train, train_labels, test, test_labels = (_idx_array(content) for content in files)
    train, test = train.reshape(len(train), -1), test.reshape(len(test), -1)
    return _split_file(train, train_labels, test, test_labels, np.uint8)


def _idx_array(content: bytes) -> NDArray[np.uint8]:
    """Read an idx file of bytes: 0 0 8 n, then n big-endian lengths, then the values."""
    if content[:3] != b"\x00\x00\x08" or len(content) < 4 * (1 + content[3]):
        raise ValueError("The file is no idx file of unsigned bytes.")
    n_axes = content[3]
    shape = np.frombuffer(content, ">u4", n_axes, offset=4).tolist()
    values = np.frombuffer(content, np.uint8, offset=4 * (1 + n_axes))
    if values.size != math.prod(shape):
        raise ValueError(f"The idx file holds {values.size} values, its head says {shape}.")
    return values.reshape(shape)


def _split_file(
    train: NDArray[Any],
    train_labels: NDArray[Any],
    test: NDArray[Any],
    test_labels: NDArray[Any],
    dtype: type,
) -> bytes:
    return _npz_file(
        X_train=train.astype(dtype),
        y_train=train_labels.astype(np.uint8),
        X_test=test.astype(dtype),
        y_test=test_labels.astype(np.uint8),
    )


# Images -------------------------------------------------------------------------------------------


def _face_archive(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Read a ZIP archive with members …s<person>/<number>.pgm."""
    faces: dict[tuple[int, int], NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(files[0])) as archive:
            for member in archive.namelist():
                found = re.search(r"(?:^|/)s(\d+)/(\d+)\.pgm$", member)
                if found:
                    with archive.open(member) as file:
                        content = _read_bounded(file, len(files[0]))
                    faces[int(found[1]), int(found[2])] = read_picture(content, member)
    except zipfile.BadZipFile as error:
        raise ValueError("The file of the faces is no ZIP archive.") from error
    if not faces:
        raise ValueError("The archive has no member like s1/1.pgm.")
    order = sorted(faces)
    persons = np.array([person for person, _ in order], dtype=np.uint8)
    return _npz_file(X=np.stack([faces[key] for key in order]), y=persons)


def _same_file(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    return files[0]


def _halved_image(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Means of 2 x 2 blocks, rounded half to even."""
    from PIL import Image

    image = read_picture(files[0], entry.path)
    height, width = image.shape
    means = image.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))
    stream = io.BytesIO()
    Image.fromarray(np.round(means).astype(np.uint8)).save(stream, format="PNG")
    return stream.getvalue()


# Motion, shapes, matrices -------------------------------------------------------------------------


def _acclaim_motion(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Read one ASF file and then AMC files; ``trials`` names the latter."""
    skeleton = parse_asf(files[0].decode("latin-1").replace("\r\n", "\n"))
    motions = [
        joint_positions(skeleton, parse_amc(content.decode("latin-1"))) for content in files[1:]
    ]
    trial = np.repeat(np.arange(len(motions)), [len(motion) for motion in motions])
    return _npz_file(
        xyz=np.concatenate(motions).astype(np.float32),
        joints=np.array([bone.name for bone in skeleton.bones]),
        parents=np.array([bone.parent for bone in skeleton.bones], dtype=np.int16),
        trial=trial.astype(np.int16),
        trials=np.array(options["trials"].split()),
    )


def _r_shapes(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Read an object of R's package shapes: an array (k, dim, n), or a list x, group, outlines."""
    found = _r_object(files[0], options["object"])
    if not isinstance(found, Mapping):
        found = {"x": found}
    arrays = {"X": _samples_first(found["x"])}
    if "outlines" in found:
        arrays["outlines"] = _samples_first(found["outlines"])
    if "group" in found:
        labels = [str(label) for label in found["group"]]
        names, codes = np.unique(labels, return_inverse=True)
        arrays |= {"y": codes.astype(np.uint8), "classes": names}
    return _npz_file(**arrays)


def _r_object(content: bytes, name: str) -> Any:
    try:
        rdata = importlib.import_module("rdata")
    except ImportError as error:
        raise ImportError("Reading R data needs rdata: pip install 'orthodrome[data]'") from error
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "object.rda"
        file.write_bytes(content)
        objects = rdata.read_rda(file)
    if name not in objects:
        raise ValueError(f"The R file has no object {name!r}; it has {sorted(objects)}.")
    return objects[name]


def _samples_first(array: Any) -> NDArray[np.float64]:
    return np.ascontiguousarray(np.asarray(array, dtype=np.float64).transpose(2, 0, 1))


def _connectomes(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Put the upper triangles of correlation matrices back; both files have a header and an Id."""
    correlations, labels = (_numbers(_lines(content)[1:], {}) for content in files)
    if not np.array_equal(correlations[:, 0], labels[:, 0]):
        raise ValueError("The two files of the connectomes list other subjects.")
    triangles = correlations[:, 1:]
    size = round((1 + np.sqrt(1 + 8 * triangles.shape[1])) / 2)
    rows, columns = np.triu_indices(size, 1)
    matrices = np.tile(np.eye(size), (len(triangles), 1, 1))
    matrices[:, rows, columns] = triangles
    matrices[:, columns, rows] = triangles
    return _npz_file(X=matrices, y=labels[:, 1].astype(np.uint8))


def _npz_file(**arrays: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


_PARSERS: dict[str, Callable[[Sequence[bytes], Options, DatasetEntry], bytes]] = {
    "text_table": _text_table,
    "arff_table": _arff_table,
    "passiflora": _passiflora,
    "passiflora_species": _passiflora_species,
    "pen_digits": _pen_digits,
    "zip_digits": _zip_digits,
    "libsvm_digits": _libsvm_digits,
    "idx_digits": _idx_digits,
    "face_archive": _face_archive,
    "same_file": _same_file,
    "halved_image": _halved_image,
    "acclaim_motion": _acclaim_motion,
    "r_shapes": _r_shapes,
    "connectomes": _connectomes,
}
