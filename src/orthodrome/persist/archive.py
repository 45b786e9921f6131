"""The archive around a model: bounded, whole, and with the versions that wrote it.

A zip archive whose members are stored as they are. None is compressed, so that a file is never
larger inside than outside, and nothing is made that the file's own size does not bound.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import scipy.sparse

from .._core.machine import versions
from .._core.warn import warn_user
from .allowed import ARRAYS, SPARSE, is_plain, name_of, names_of
from .renames import renewed
from .schema import audit, named_files, parse, renumbered

__all__ = ["FORMAT", "check", "pack"]

#: Major and minor number of the format; a reader reads those up to its own.
FORMAT = (1, 0)

_MANIFEST, _SCHEMA = "orthodrome.json", "schema.json"
_ARRAY_NAME = re.compile(r"[0-9]{1,20}\.np[yz]")
_SPARSE_PARTS = frozenset(
    f"{part}.npy" for part in ("data", "format", "indices", "indptr", "shape")
)
_SPARSE_MARK = "_is_array.npy"  # of scipy's sparse arrays, beside matrices
_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def pack(dumped: bytes, notes: Mapping[str, Any]) -> bytes:
    """Return skops' archive as ours: stored, in order, with digests, versions and notes."""
    with ZipFile(io.BytesIO(dumped)) as archive:
        schema = parse(archive.read(_SCHEMA))
        names = {
            file: f"{number}{PurePath(file).suffix}"
            for number, file in enumerate(named_files(schema), 1)
        }
        members = {
            new: _stored_sparse(archive.read(old)) if old.endswith(".npz") else archive.read(old)
            for old, new in names.items()
        }
    members[_SCHEMA] = json.dumps(renumbered(schema, names)).encode()
    manifest = {
        "format": list(FORMAT),
        "versions": _versions(),
        "notes": checked_notes(notes),
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    return _written({_MANIFEST: json.dumps(manifest, indent=1).encode(), **members})


def checked_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return notes as they will be read again; what JSON cannot hold exactly is refused."""
    if not isinstance(notes, Mapping):
        raise ValueError(f"notes of a model file must be a dictionary; got {notes!r}.")
    given = dict(notes)
    try:
        same = json.loads(json.dumps(given, allow_nan=False)) == given
    except (TypeError, ValueError):
        same = False
    if not same:
        raise ValueError(
            "notes of a model file are text, numbers, True, False, None, and lists and "
            f"dictionaries of them by text; got {given!r}."
        )
    return given


def check(data: bytes) -> tuple[bytes, dict[str, Any]]:
    """Check an archive from end to end; return it with today's names, and its notes.

    Only the arrays' numbers are taken as they are.

    Raises
    ------
    ValueError
        With the reason, in words that go on from "the file cannot be loaded:".
    """
    with ZipFile(io.BytesIO(data)) as archive:
        sizes = _stored_sizes(archive.infolist(), len(data))
        for needed in (_MANIFEST, _SCHEMA):
            if needed not in sizes:
                raise ValueError(f"it is a zip archive, but without {needed}: no model file")
        manifest = parse(archive.read(_MANIFEST))
        digests = _checked_manifest(manifest)
        if digests.keys() != sizes.keys() - {_MANIFEST}:
            raise ValueError("it has other members than it was written with")
        content = archive.read(_SCHEMA)
        _check_digest(_SCHEMA, content, digests)
        given = parse(content)
        schema = renewed(given)
        files = audit(schema)
        if files.keys() != sizes.keys() - {_MANIFEST, _SCHEMA}:
            raise ValueError("its arrays are not those that its description names")
        for file, kind in files.items():
            content = archive.read(file)
            _check_digest(file, content, digests)
            _check_sparse(content, kind) if file.endswith(".npz") else _check_array(content, kind)
        if schema != given:
            members = {file: archive.read(file) for file in files}
            data = _written({_SCHEMA: json.dumps(schema).encode(), **members})
    return data, manifest["notes"]


# ---------------------------------------------------------------------- writing


def _written(members: dict[str, bytes]) -> bytes:
    """Return an archive of members that are stored as they are, the same for the same members."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(ZipInfo(name), content)  # without the time of day
    return buffer.getvalue()


def _stored_sparse(content: bytes) -> bytes:
    """Return the archive of a sparse array without its compression."""
    with ZipFile(io.BytesIO(content)) as archive:
        return _written({name: archive.read(name) for name in archive.namelist()})


def _versions() -> dict[str, str]:
    return dict(versions("orthodrome", "numpy", "scipy", "scikit-learn", "skops"))


# ---------------------------------------------------------------------- reading


def _stored_sizes(members: Iterable[ZipInfo], limit: int) -> dict[str, int]:
    """Return the sizes of the members by name, after the promise that reading them is bounded."""
    sizes: dict[str, int] = {}
    for member in members:
        if member.compress_type != ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError("it has compressed members, which model files have not")
        if member.filename in sizes:
            raise ValueError(f"its member {member.filename!r} is there twice")
        sizes[member.filename] = member.file_size
    if sum(sizes.values()) > limit:
        raise ValueError("its members are larger than itself")
    return sizes


def _check_digest(name: str, content: bytes, digests: dict[str, Any]) -> None:
    if hashlib.sha256(content).hexdigest() != digests[name]:
        raise ValueError(f"its member {name} is not as it was written: damaged, or changed since")


def _checked_manifest(manifest: Any) -> dict[str, Any]:
    """Check format and version, and return the digests."""
    fields = {"format": list, "versions": dict, "notes": dict, "sha256": dict}
    if not isinstance(manifest, dict) or not manifest.keys() >= fields.keys():
        raise ValueError(f"{_MANIFEST} in it is not that of a model file")
    if any(not isinstance(manifest[name], kind) for name, kind in fields.items()):
        raise ValueError(f"{_MANIFEST} in it is not that of a model file")
    _check_format(manifest["format"], manifest["versions"].get("orthodrome"))
    for name in manifest["sha256"]:
        if name != _SCHEMA and not _ARRAY_NAME.fullmatch(name):
            raise ValueError(f"it has a member {name!r}, which model files have not")
    found: dict[str, Any] = manifest["sha256"]
    return found


def _check_format(found: list[Any], version: Any) -> None:
    ours = _versions().get("orthodrome")
    if len(found) != 2 or any(type(number) is not int for number in found):
        raise ValueError("the number of its format is missing")
    writer, reader = _release(version), _release(ours)
    if tuple(found) > FORMAT or (writer and reader and writer > reader):
        raise ValueError(
            f"it was written by orthodrome {version} in format {found[0]}.{found[1]}, and this is "
            f"orthodrome {ours}, which reads formats up to {FORMAT[0]}.{FORMAT[1]} of releases up "
            "to its own. Upgrade orthodrome"
        )
    if found[0] < FORMAT[0]:
        raise ValueError(
            f"it was written in format {found[0]}.{found[1]} by orthodrome {version}, which this "
            "version no longer reads. Load it there and fit anew here"
        )
    if writer and reader and writer < reader:
        warn_user(
            f"The model was saved by orthodrome {version} and is loaded by {ours}. Fit it again if "
            "what it says has changed.",
        )


def _release(version: Any) -> tuple[int, int] | None:
    """Return major and minor number of a version, None where there are none."""
    found = re.match(r"(\d{1,9})\.(\d{1,9})", version) if isinstance(version, str) else None
    return (int(found[1]), int(found[2])) if found else None


def _check_array(content: bytes, kind: str) -> None:
    """Check that the header of an array is that of plain data of exactly the size there is."""
    stream = io.BytesIO(content)
    reader = _READERS.get(np.lib.format.read_magic(stream))
    if reader is None:
        raise ValueError("an array in it is of an unknown format")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            shape, _, dtype = reader(stream)
    except Warning as warning:  # of a header as Python 2 wrote it
        raise ValueError("an array in it has a header that save does not write") from warning
    scalar = kind not in names_of(ARRAYS)  # which Python reads in any precision
    if not is_plain(dtype) and not (scalar and dtype == np.float16):
        raise ValueError(f"an array in it has dtype {dtype}, which save does not write")
    size = math.prod(shape) * dtype.itemsize
    if any(length < 0 for length in shape) or stream.tell() + size != len(content):
        raise ValueError("an array in it has not the size that it says")
    if scalar and (shape != () or name_of(dtype.type) != kind):
        raise ValueError(f"a value in it is not the {kind} that it says")


def _check_sparse(content: bytes, kind: str) -> None:
    """Check a sparse array and its indices, which compiled code follows without looking."""
    with ZipFile(io.BytesIO(content)) as archive:
        sizes = _stored_sizes(archive.infolist(), len(content))
        if sizes.keys() - {_SPARSE_MARK} != _SPARSE_PARTS:
            raise ValueError("a sparse array in it has not the parts of one")
        for name in sizes:
            _check_array(archive.read(name), name_of(np.ndarray))
    matrix = scipy.sparse.load_npz(io.BytesIO(content))
    if type(matrix) not in SPARSE or name_of(type(matrix)) != kind:
        raise ValueError(f"a sparse array in it is not the {kind} that it says")
    matrix.check_format(full_check=True)
