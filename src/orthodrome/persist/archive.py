"""Pack a model into a zip archive, and unpack it with checks.

The archive is not compressed, so the size of the file limits the memory needed to read it.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping
from typing import Any
from zipfile import ZipFile

from sklearn.base import BaseEstimator

from .._core.machine import versions
from .._core.warn import warn_user
from .allowed import OBJECTS
from .decode import check_sizes, decode
from .encode import encode, zip_members

#: Major and minor version of the format; older minor versions can be read.
FORMAT = (1, 0)

_MANIFEST, _SCHEMA = "orthodrome.json", "schema.json"
_FIELDS = {"format": list, "versions": dict, "notes": dict, "sha256": dict}


def pack(model: Any, notes: Mapping[str, Any] | None = None) -> bytes:
    """Return the content of a model file: a manifest with hashes, a description, and arrays."""
    # for other estimators, `encode` raises a more specific error
    if type(model) not in OBJECTS.values() and not isinstance(model, BaseEstimator):
        raise ValueError(
            "model of save must be an estimator, a denoiser, a kernel, a solver or a pipeline; got "
            f"{type(model).__name__}."
        )
    checked_notes = _check_notes({} if notes is None else notes)
    schema, files = encode(model)
    members = files | {_SCHEMA: json.dumps(schema).encode()}
    manifest = {
        "format": list(FORMAT),
        "versions": _versions(),
        "notes": checked_notes,
        "sha256": {name: _digest(data) for name, data in members.items()},
    }
    return zip_members({_MANIFEST: json.dumps(manifest, indent=1).encode(), **members})


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _check_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return notes as a dictionary; raise a ValueError unless JSON can store it exactly."""
    given = dict(notes) if isinstance(notes, Mapping) else None
    try:
        is_exact = json.loads(json.dumps(given, allow_nan=False)) == given
    except (TypeError, ValueError):
        is_exact = False
    if given is None or not is_exact:
        raise ValueError(
            "notes of a model file must be a dictionary with string keys and values that are "
            "strings, finite numbers, True, False, None, or lists and dictionaries of these; got "
            f"{notes!r}."
        )
    return given


def _versions() -> dict[str, str]:
    return dict(versions("orthodrome", "numpy", "scipy", "scikit-learn"))


def unpack(data: bytes) -> tuple[Any, dict[str, Any]]:
    """Return the model and the notes of a model file, checked before use.

    Raises
    ------
    ValueError
        If the file is invalid. The message continues "the file cannot be loaded as a model:".
    """
    with ZipFile(io.BytesIO(data)) as archive:
        names = check_sizes(archive, len(data)).keys()
        for needed in (_MANIFEST, _SCHEMA):
            if needed not in names:
                raise ValueError(f"it is a zip archive without {needed}, not a model file")
        manifest = _parse(archive.read(_MANIFEST))
        _check_manifest(manifest)
        digests = manifest["sha256"]
        if digests.keys() != names - {_MANIFEST}:
            raise ValueError("its members are not those in its manifest")

        def read(name: str) -> bytes:
            if name not in digests:
                raise ValueError(f"its description names {name}, which the file does not hold")
            content = archive.read(name)
            if _digest(content) != digests[name]:
                raise ValueError(f"its member {name} was damaged or changed after it was written")
            return content

        model, used = decode(_parse(read(_SCHEMA)), read)
        if used != digests.keys() - {_SCHEMA}:
            raise ValueError("it contains arrays that its description does not name")
    return model, manifest["notes"]


def _parse(content: bytes) -> Any:
    """Parse JSON; raise a ValueError for repeated fields."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a field appears twice in its JSON data")
        return found

    return json.loads(content, object_pairs_hook=unique)


def _check_manifest(manifest: Any) -> None:
    """Check the fields, the format and the version; warn about an older version."""
    if not isinstance(manifest, dict) or any(
        not isinstance(manifest.get(name), kind) for name, kind in _FIELDS.items()
    ):
        raise ValueError(f"its {_MANIFEST} is not the manifest of a model file")
    found, version = tuple(manifest["format"]), manifest["versions"].get("orthodrome")
    if len(found) != 2 or any(type(number) is not int for number in found):
        raise ValueError("its format version is missing or invalid")
    ours = _versions().get("orthodrome")
    writer, reader = _release(version), _release(ours)
    known = writer and reader
    if found > FORMAT or found[0] < FORMAT[0] or (known and writer > reader):
        raise ValueError(
            f"it was written by orthodrome {version} in format {found[0]}.{found[1]}, but "
            f"orthodrome {ours} reads only formats {FORMAT[0]}.0 to {FORMAT[0]}.{FORMAT[1]} of "
            "releases up to its own. Upgrade orthodrome"
        )
    if known and writer < reader:
        warn_user(
            f"The model was saved by orthodrome {version} and is loaded by {ours}. Fit it again if "
            "its results have changed.",
        )


def _release(version: Any) -> tuple[int, ...]:
    """Return the major and minor number of a version, or () if it has none."""
    found = re.match(r"(\d{1,9})\.(\d{1,9})", version) if isinstance(version, str) else None
    return tuple(map(int, found.groups())) if found else ()
