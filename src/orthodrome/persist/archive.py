"""Save models to zip archives, and load them with checks.

An archive is not compressed, so the size of the file limits the memory needed to read it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

from sklearn.base import BaseEstimator

from .._core.checks import check_flag, check_path
from .._core.files import write_atomically
from .._core.machine import versions
from .._core.warn import warn_user
from .allowed import OBJECTS
from .nodes import check_sizes, decode, encode

#: Major and minor version of the format; older minor versions can be read.
FORMAT = (1, 1)

_MANIFEST, _SCHEMA = "orthodrome.json", "schema.json"
_FIELDS = {"format": list, "versions": dict, "notes": dict, "sha256": dict}
_ZIP = b"PK\x03\x04"


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Save a model to a file that holds data and no code.

    The file is written atomically. It holds the parameters and all fitted attributes, which for
    kernel methods include training rows. Callbacks, progress bars and the state of warm starts are
    not saved.

    Parameters
    ----------
    model : estimator, denoiser, kernel, solver or pipeline
        An object of orthodrome, fitted or not, or a scikit-learn ``Pipeline`` of scalers and an
        estimator of orthodrome.
    path : str or path
        The file, usually named ``*.orthodrome``. An existing file is replaced.
    notes : dict, optional
        Data to store with the model, such as column names: strings, numbers, and lists and
        dictionaries of them.

    Raises
    ------
    ValueError
        If the model holds a value that cannot be saved: a callable kernel, the function of
        :class:`~orthodrome.kernels.Embedded`, a random generator, or an object of an unsupported
        class. No file is written.

    See Also
    --------
    load : Load the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from orthodrome import KernelPCA, load, save
    >>> model = KernelPCA(1, kernel="linear").fit([[0.0], [1.0], [3.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "line.orthodrome")
    ...     again = load(Path(folder) / "line.orthodrome")
    >>> again.transform([[3.0]]) == model.transform([[3.0]])
    array([[ True]])
    """
    write_atomically(check_path(path, "path", "save"), pack(model, notes))


def load(path: str | os.PathLike[str], *, with_notes: bool = False) -> Any:
    """Load a model from a file written by :func:`save`; no code in the file is run.

    Format, version, sizes, hashes and array headers are checked before use, and only listed classes
    are accepted. The numbers themselves are not checked, so do not rely on predictions of models
    from untrusted sources.

    Parameters
    ----------
    path : str or path
        The file.
    with_notes : bool, default=False
        Whether to return the notes as well.

    Returns
    -------
    estimator, or tuple of estimator and dict
        The model, with the same predictions as the saved one; if `with_notes`, also the notes.

    Raises
    ------
    ValueError
        If the file is not a model file, is damaged or changed, or was written by a newer version.
        The message names the file and the reason.
    FileNotFoundError, PermissionError, IsADirectoryError
        If the file cannot be read.

    See Also
    --------
    save : Write the file; with an example.
    """
    check_flag(with_notes, "with_notes", "load")
    data = _read(check_path(path, "path", "load"))
    try:
        model, notes = unpack(data)
    except (MemoryError, Warning):  # not caused by the file
        raise
    except Exception as error:  # a hostile file may cause any error
        known = type(error) is ValueError
        reason = str(error) if known else f"it is damaged ({type(error).__name__}: {error})"
        raise ValueError(f"{path} cannot be loaded as a model: {reason.rstrip('.')}.") from error
    return (model, notes) if with_notes else model


def _read(path: Path) -> bytes:
    """Return the content of a file; raise a ValueError unless it begins like a model file."""
    with open(path, "rb") as file:
        start = file.read(len(_ZIP))
        if start != _ZIP:
            what = "is empty" if not start else "is not a model file of orthodrome"
            if start[:1] == b"\x80":
                what = "looks like a pickle, which is not loaded because it could run code"
            raise ValueError(
                f"{path} {what}. Use orthodrome.save(model, path) to write a model file."
            )
        return start + file.read()


def pack(model: Any, notes: Mapping[str, Any] | None = None) -> bytes:
    """Return the content of a model file: a manifest with hashes, a description, and arrays."""
    # for estimators that cannot be saved, `encode` raises a more specific error
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
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        archive.writestr(ZipInfo(_MANIFEST), json.dumps(manifest, indent=1))
        for name, content in members.items():
            # a ZipInfo omits the current time, so that equal models give equal files
            archive.writestr(ZipInfo(name), content)
    return buffer.getvalue()


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
        names = check_sizes(archive, len(data))
        if _MANIFEST not in names:
            raise ValueError(f"it is a zip archive without {_MANIFEST}")
        manifest = json.loads(archive.read(_MANIFEST))
        _check_manifest(manifest)
        digests = manifest["sha256"]
        if digests.keys() != names - {_MANIFEST}:
            raise ValueError("its members are not those in its manifest")

        def read(name: str) -> bytes:
            if name not in digests:
                raise ValueError(f"its member {name} is missing")
            content = archive.read(name)
            if _digest(content) != digests[name]:
                raise ValueError(f"its member {name} was damaged or changed after it was written")
            return content

        model = decode(json.loads(read(_SCHEMA)), read, tuple(manifest["format"]))
        return model, manifest["notes"]


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
            f"orthodrome {ours} reads only files of this or older releases, in formats "
            f"{FORMAT[0]}.0 to {FORMAT[0]}.{FORMAT[1]}. Upgrade orthodrome"
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
