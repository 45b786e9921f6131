"""Convert published data sets whose formats `orthodrome.datasets.load` does not read.

    python experiments/data/convert.py mnist usps
    python experiments/data/convert.py mnist --raw downloads

The files are downloaded, or read from the folder ``downloads/mnist``. The results are checked by
the fingerprints of the registry and stored in the cache, where ``load`` finds them.
"""

import argparse
import bz2
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
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from acclaim import joint_positions, parse_amc, parse_asf
from numpy.typing import NDArray

from orthodrome.datasets import cache_folder
from orthodrome.datasets._load import (
    CONVERTERS,
    Converter,
    Options,
    download,
    fields_of,
    lines_of,
    read_checked_fields,
    store_file,
    table_file,
)
from orthodrome.datasets._readers import DatasetEntry, Source, find_entry, read_picture, registry


def convert(name: str, raw: Path | None = None) -> Path:
    """Convert a data set, and return the file in the cache."""
    entry = find_entry(name, registry())
    failures = []
    for source in entry.sources:
        if not source.urls:
            continue
        try:
            contents = _read(source, raw / name) if raw else download(source, verbose=True)
            content = converted(contents, source, entry)
            read_checked_fields(content, entry, str(source))
        except Exception as error:
            failures.append(f"{source}: {error}")
            continue
        file = cache_folder() / entry.path
        store_file(content, file)
        return file
    raise SystemExit("\n".join([f"{name} cannot be converted.", *failures]))


def converted(contents: Sequence[bytes], source: Source, entry: DatasetEntry) -> bytes:
    """Return the files of ``source.urls`` as the file that the reader of a set takes."""
    files = [unpacked(content, url) for content, url in zip(contents, source.urls, strict=True)]
    return ALL_CONVERTERS[source.parser](files, source.options, entry)


def _read(source: Source, folder: Path) -> list[bytes]:
    names = [PurePosixPath(url.partition("#")[0]).name for url in source.urls]
    return [(folder / name).read_bytes() for name in names]


def unpacked(content: bytes, url: str) -> bytes:
    """Return the uncompressed content of a file, or the member of an archive after ``#``."""
    address, _, member = url.partition("#")
    try:
        if member and address.endswith(".zip"):
            with (
                zipfile.ZipFile(io.BytesIO(content)) as archive,
                archive.open(member) as file,
            ):
                return read_bounded(file, len(content))
        if member:
            with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                extracted = tar.extractfile(member)
                return read_bounded(extracted, len(content)) if extracted else b""
        for suffix, opened in _OPENERS.items():
            if address.endswith(suffix):
                with opened(io.BytesIO(content)) as file:
                    return read_bounded(file, len(content))
    except MemoryError:
        raise
    except Exception as error:  # each module has errors of its own in addition to those of Python
        raise ValueError(f"{url} cannot be unpacked: {error}") from error
    return content


_OPENERS: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
# Far beyond what tables and pictures compress to, and far below what bombs do.
_MOST_PER_BYTE, _ALWAYS_ALLOWED = 200, 2**24


def read_bounded(file: Any, packed: int) -> bytes:
    """Return the content of a compressed file; raise if it is far too large for the file's size."""
    most = max(_MOST_PER_BYTE * packed, _ALWAYS_ALLOWED)
    content: bytes = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"its {packed} bytes unpack to more than {most}")
    return content


def _arff_table(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Read the rows after ``@data``; the attributes are known from the registry."""
    lines = [line for line in lines_of(files[0]) if not line.startswith("%")]
    starts = [number for number, line in enumerate(lines) if line.lower() == "@data"]
    if not starts:
        raise ValueError("The ARFF file has no line '@data'.")
    return table_file(fields_of(lines[starts[0] + 1 :], options), options, entry)


def _numbers(lines: Iterable[str], options: Options, dtype: type = np.float64) -> NDArray[Any]:
    try:
        return np.array(fields_of(lines, options), dtype=np.float64).astype(dtype)
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
    landmarks = fields_of(lines_of(files[0]), tabs)
    facts = fields_of(lines_of(files[1])[1:], tabs)
    if len(landmarks) != len(facts):
        raise ValueError(f"{len(landmarks)} leaves have landmarks, but {len(facts)} have facts.")
    return [[*about[:6], *points] for about, points in zip(facts, landmarks, strict=True)]


# Digits -------------------------------------------------------------------------------------------


def _pen_digits(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    parts = [_numbers(lines_of(content), options, np.uint8) for content in files]
    table = np.concatenate(parts)
    is_test = np.repeat(np.arange(len(parts), dtype=np.uint8), [len(part) for part in parts])
    return _npz_file(X=table[:, :-1], y=table[:, -1], is_test=is_test)


def _zip_digits(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Read rows of label and pixels, training then test."""
    train, test = (_numbers(lines_of(content), {"delimiter": "space"}) for content in files)
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
                        content = read_bounded(file, len(files[0]))
                    faces[int(found[1]), int(found[2])] = read_picture(content, member)
    except zipfile.BadZipFile as error:
        raise ValueError("The file of the faces is no ZIP archive.") from error
    if not faces:
        raise ValueError("The archive has no member like s1/1.pgm.")
    order = sorted(faces)
    persons = np.array([person for person, _ in order], dtype=np.uint8)
    return _npz_file(X=np.stack([faces[key] for key in order]), y=persons)


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
    correlations, labels = (_numbers(lines_of(content)[1:], {}) for content in files)
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


ALL_CONVERTERS: dict[str, Converter] = CONVERTERS | {
    "arff_table": _arff_table,
    "passiflora": _passiflora,
    "passiflora_species": _passiflora_species,
    "pen_digits": _pen_digits,
    "zip_digits": _zip_digits,
    "libsvm_digits": _libsvm_digits,
    "idx_digits": _idx_digits,
    "face_archive": _face_archive,
    "acclaim_motion": _acclaim_motion,
    "r_shapes": _r_shapes,
    "connectomes": _connectomes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Convert published data sets for the cache.")
    parser.add_argument("names", nargs="+", choices=sorted(registry()), metavar="name")
    parser.add_argument("--raw", type=Path, help="folder with the published files, by name")
    given = parser.parse_args()
    for name in given.names:
        print(convert(name, given.raw))


if __name__ == "__main__":
    main()
