"""Save models to zip archives, and load them with checks.

An archive is not compressed, so the size of the file limits the memory needed to read it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from .._core.arrays import read_header
from .._core.checks import check_flag, check_path
from .._core.files import write_atomically
from .._core.kinds import is_dask_array
from .._core.machine import versions
from .._core.warn import warn_user
from ..eigen import Hebbian
from ..kernels import as_kernel
from ..kernels.manifolds import DistanceGaussian
from .allowed import ARRAY, LOADERS, OBJECTS, PRIMITIVES, SPARSE, is_plain, name_of

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


_PROTOCOL = 2

# Parameters with paths of files that a later fit would read.
_LOCATIONS: dict[type, str] = {Pipeline: "memory", Hebbian: "checkpoint"}

# Callbacks and the state of warm starts belong to the session, not to the model.
_SESSION_STATE = {
    *("_skl_callbacks", "_skl_callbacks_to_teardown", "_callback_fit_ctx", "_parent_callback_ctx"),
    "_solution_",
}

# Attributes that are not saved if they are dask arrays: they can be recomputed from the rows.
_ROW_RESULTS = {"embedding_", "eigenvectors_", "mean_cosines_", "labels_"}

# The fields of every node.
_HEAD = ("__class__", "__module__", "__loader__", "__id__")

_KEY_TYPES: dict[str, type] = {"builtins.str": str, "builtins.int": int}

# Renamed classes and attributes: old name to new name.
_OLD_CLASSES = {"Landmarks": "Anchors"}
_OLD_ATTRIBUTES = {
    "n_landmarks": "n_anchors",
    "n_landmarks_": "n_anchors_",
    "landmark_indices_": "anchor_indices_",
    "landmarks": "anchors",
    "strays": "unmatched_data",
}
_REMOVED_ATTRIBUTES = {"checkpoint_seconds"}

# Parameters that files of earlier versions lack, with the values that keep their behaviour.
_ADDED_PARAMETERS: dict[str, dict[str, Any]] = {
    "Hebbian": {"rho0": "auto", "eigenvalue_updates": "auto"},
    "KernelRidgeRegressionClassifier": {"sigmas": None},
    "NestedSpheresClassifier": {"n_anchors": None, "random_state": None},
    "PerTurbo": {"sigmas": None},
    "RobustKernelPCA": {"method": "pursuit"},
}

Node = dict[str, Any]


def encode(model: Any) -> tuple[Node, dict[str, bytes]]:
    """Return the description of a model and its arrays by file name.

    Callbacks, the state of warm starts and dask arrays with one value per row are not saved. Memory
    maps are converted to arrays, other byte orders to the native one, and float16 to float32.

    Raises
    ------
    ValueError
        If a value cannot be saved; the message says where it is and what to do.
    """
    encoder = _Encoder()
    try:
        node = encoder.node(model, type(model).__name__)
    except RecursionError as error:
        raise ValueError(
            f"{type(model).__name__} refers to itself, or is nested too deeply for a model file."
        ) from error
    return node | {"protocol": _PROTOCOL}, encoder.files


class _Encoder:
    """Describe each object once; `files` are the arrays by file name."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._count = 0
        # holds the objects too, because the id of a deleted object may be reused
        self._known: dict[int, tuple[Any, Node]] = {}

    def node(self, value: Any, where: str) -> Node:
        """Return the node of the value at the path `where` in the model."""
        kind, name = type(value), name_of(type(value))
        if id(value) in self._known:
            return self._known[id(value)][1]
        if kind in PRIMITIVES:
            return self._head("builtins.str") | {"content": json.dumps(value), "is_json": True}
        if kind in (list, tuple):
            node = self._head(name)
            node["content"] = [self.node(item, f"{where}[{i}]") for i, item in enumerate(value)]
        elif kind is dict:
            node = self._dict(value, where, "[{!r}]")
        elif kind in (np.ndarray, np.memmap) or isinstance(value, np.generic):
            node = self._array(value, where)
        elif name in SPARSE:
            node = self._head(name) | self._file("scipy", _npz(value, where))
        elif OBJECTS.get(name) is kind:
            node = self._head(name)
            node["content"] = self._dict(_state(value, where), where, ".{}")
        else:
            _raise_for_object(value, where)
        self._known[id(value)] = value, {key: node[key] for key in _HEAD}
        return node

    def _head(self, name: str, loader: str = "") -> Node:
        self._count += 1
        module, _, kind = name.rpartition(".")
        return dict(zip(_HEAD, (kind, module, loader or LOADERS[name], self._count), strict=True))

    def _dict(self, items: dict[Any, Any], where: str, suffix: str) -> Node:
        for key in items:
            if type(key) not in (str, int):
                _raise_unsupported(f"a key of {where}", repr(key), "Use keys that are str or int.")
        node = self._head("builtins.dict")
        kinds = [self._head(name_of(type(key)), "TypeNode") for key in items]
        node["key_types"] = self._head("builtins.list") | {"content": kinds}
        node["content"] = {
            str(key): self.node(item, where + suffix.format(key)) for key, item in items.items()
        }
        return node

    def _array(self, value: Any, where: str) -> Node:
        array = np.asarray(value)
        if array.dtype != object:
            array = _plain(array, where)
            name = name_of(array.dtype.type) if isinstance(value, np.generic) else ARRAY
            return self._head(name) | self._file("numpy", _npy(array))
        if array.ndim != 1 or any(type(item) not in PRIMITIVES for item in array):
            _raise_unsupported(where, "an array of objects", "Use a list of text and numbers.")
        items, shape = [self.node(item, where) for item in array], self.node(array.shape, where)
        return self._head(ARRAY) | {"type": "json", "content": items, "shape": shape}

    def _file(self, kind: str, content: bytes) -> Node:
        file = f"{len(self.files) + 1}.{'npy' if kind == 'numpy' else 'npz'}"
        self.files[file] = content
        return {"type": kind, "file": file}


def _state(value: Any, where: str) -> dict[str, Any]:
    """Return the attributes of an object that are saved."""
    _check_location(value, where)
    state = value.__getstate__() or {}
    dask_arrays = {key for key, item in state.items() if is_dask_array(item)}
    excluded = _SESSION_STATE | (dask_arrays & _ROW_RESULTS)
    saved = {key: item for key, item in state.items() if key not in excluded}
    if "sample_weight_" in dask_arrays:  # not needed after the fit
        saved["sample_weight_"] = None
    return saved


def _check_location(value: Any, where: str) -> None:
    """Raise a ValueError if a parameter is a path of files that a later fit would read."""
    name = _LOCATIONS.get(type(value), "")
    location = vars(value).get(name)
    if location is not None:
        raise ValueError(
            f"{where}.{name} is {location!r}, but a model file must not refer to other files: set "
            f"{name}=None."
        )


def _plain(array: Any, where: str) -> Any:
    """Return an array of numbers or text with a dtype that a model file may hold."""
    dtype = np.dtype(np.float32) if array.dtype == np.float16 else array.dtype.newbyteorder("=")
    if not is_plain(dtype):
        advice = "Use text, integers, float32 or float64."
        _raise_unsupported(where, f"an array of dtype {array.dtype}", advice)
    return array.astype(dtype, copy=False)


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _npz(matrix: Any, where: str) -> bytes:
    """Return a CSR array as an uncompressed NPZ file."""
    matrix.check_format(full_check=True)
    data, buffer = _plain(matrix.data, where), io.BytesIO()
    plain = type(matrix)((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    scipy.sparse.save_npz(buffer, plain, compressed=False)
    return buffer.getvalue()


def _raise_for_object(value: Any, where: str) -> NoReturn:
    kind = type(value)
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        advice = "Use a seed instead, such as random_state=0."
    elif is_dask_array(value):
        advice = "Fit with solver='nystroem', which keeps only anchors, or use pickle."
    elif scipy.sparse.issparse(value):
        advice = "Convert it with .tocsr()."
    else:
        advice = (
            "It can hold estimators, denoisers, kernels and solvers of orthodrome (no functions "
            "and no subclasses), and scikit-learn's Pipeline and scalers. Use pickle instead."
        )
    what = f"of class {kind.__module__}.{kind.__qualname__}"
    if callable(value) and hasattr(value, "__name__"):
        what = f"the function or class {value.__name__!r}"
    _raise_unsupported(where, what, advice)


def _raise_unsupported(where: str, what: str, advice: str) -> NoReturn:
    raise ValueError(f"{where} is {what}, which a model file cannot hold. {advice}")


def decode(schema: Any, read: Callable[[str], bytes], version: tuple[int, ...]) -> Any:
    """Return the model of a description; `read` returns the content of a file by its name.

    `version` is the version of the format.

    Raises
    ------
    ValueError
        If a class is not in :mod:`.allowed`. A malformed description may raise other errors.
    """
    if schema["protocol"] != _PROTOCOL or schema["__loader__"] != "ObjectNode":
        raise ValueError("the protocol of its description is unknown to this version of orthodrome")
    return _Decoder(read, version).value(schema)


class _Decoder:
    """Create each object once, and read each array once."""

    def __init__(self, read: Callable[[str], bytes], version: tuple[int, ...]) -> None:
        self._read, self._version = read, version
        self._files: set[str] = set()  # names of the arrays that were read
        self._values: dict[int, tuple[str, Any]] = {}  # class and value by node number

    def value(self, node: Any) -> Any:
        """Return the value of a node."""
        loader, name, number = node["__loader__"], _class_name(node), node["__id__"]
        if LOADERS.get(name) != loader:
            raise ValueError(f"it has a {loader} of class {name}, which is not allowed")
        if number not in self._values:
            self._values[number] = name, self._make(loader, name, node)
        found, value = self._values[number]
        if found != name:
            raise ValueError("two different values in it have the same __id__")
        return value

    def _make(self, loader: str, name: str, node: Node) -> Any:
        match loader:
            case "JsonNode":
                value = json.loads(node["content"])
                if type(value) not in PRIMITIVES:
                    raise ValueError("a number or string in it is malformed")
                return value
            case "ListNode" | "TupleNode":
                items = [self.value(item) for item in node["content"]]
                return items if loader == "ListNode" else tuple(items)
            case "DictNode":
                kinds = [_KEY_TYPES[_class_name(kind)] for kind in node["key_types"]["content"]]
                pairs = zip(kinds, node["content"].items(), strict=True)
                return {kind(key): self.value(item) for kind, (key, item) in pairs}
            case "ObjectNode":
                return self._object(node, OBJECTS[name])
            case "SparseMatrixNode":
                return _read_sparse(self._file(node), SPARSE[name])
            case _:
                return self._array(node, name)

    def _object(self, node: Node, kind: Any) -> Any:
        state = self.value(node["content"])
        if type(state) is not dict or any(type(key) is not str for key in state):
            raise ValueError(f"the attribute names of {kind.__name__} in it are not strings")
        result = object.__new__(kind)
        if kind.__module__.startswith("sklearn."):  # warns if another version wrote it
            result.__setstate__(dict(state))
        else:
            result.__dict__.update(_ADDED_PARAMETERS.get(kind.__name__, {}))
            if self._version < (1, 1):
                state = state | _current_scales(kind, state)
            kept = [key for key in state if key not in _REMOVED_ATTRIBUTES]
            result.__dict__.update({_OLD_ATTRIBUTES.get(key, key): state[key] for key in kept})
        _check_location(result, kind.__name__)
        return result

    def _array(self, node: Node, name: str) -> Any:
        if node["type"] != "json":
            array = _read_array(self._file(node))
            if name == ARRAY:
                return array
            if array.shape != () or name_of(array.dtype.type) != name:
                raise ValueError(f"the dtype or shape of a value in it is not that of {name}")
            return array[()]
        items = [self.value(item) for item in node["content"]]
        primitive = all(type(item) in PRIMITIVES for item in items)
        if name != ARRAY or not primitive or self.value(node["shape"]) != (len(items),):
            raise ValueError("an array of objects in it is malformed")
        return np.array(items, dtype=object)  # for example column names

    def _file(self, node: Node) -> bytes:
        if node["file"] in self._files:  # otherwise a small file could fill the memory
            raise ValueError("two values in it use the same array")
        self._files.add(node["file"])
        return self._read(node["file"])


def _current_scales(kind: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Return the kernel scales of an object of format 1.0, converted to the current definition.

    In format 1.0, kernels of shapes and matrices were exp(-ρ²/σ²). Now they are exp(-ρ²/2σ²).
    """
    names: tuple[str, ...] = ()
    if issubclass(kind, DistanceGaussian):
        names = ("sigma", "sigma_")
    elif "sigmas" in state and isinstance(as_kernel(state["kernel"]), DistanceGaussian):
        names = ("sigmas", "sigmas_")
    found = {name: state[name] for name in names if name in state}
    return {
        name: (float(value) if np.ndim(value) == 0 else np.array(value)) / math.sqrt(2)
        for name, value in found.items()
        if value is not None and not isinstance(value, str)
    }


def _class_name(node: Node) -> str:
    """Return the current name of the class of a node."""
    module, kind = node["__module__"], node["__class__"]
    if module.startswith("orthodrome."):  # our own classes may have been in another module
        return f"orthodrome.{_OLD_CLASSES.get(kind, kind)}"
    return f"{module}.{kind}"


# ---------------------------------------------------------------------- arrays


def check_sizes(archive: ZipFile, limit: int) -> set[str]:
    """Return the names of the members; raise a ValueError if they need more than `limit` bytes."""
    members = archive.infolist()
    names = {member.filename for member in members}
    if any(m.compress_type != ZIP_STORED or m.file_size != m.compress_size for m in members):
        raise ValueError("it has compressed members, which are not allowed in a model file")
    if len(names) != len(members):
        raise ValueError("one of its members appears twice")
    if sum(member.file_size for member in members) > limit:
        raise ValueError("its members are larger than the file")
    return names


def _read_array(content: bytes) -> Any:
    """Return an array of numbers or text; check its header and size first."""
    try:
        header = read_header(io.BytesIO(content), len(content))
    except ValueError as error:
        raise ValueError(f"an array in it is damaged: {error}") from error
    if not is_plain(header.dtype):
        raise ValueError(f"an array in it has dtype {header.dtype}, which is not allowed")
    if header.offset + header.nbytes != len(content):
        raise ValueError("the size of an array in it does not match its header")
    array = np.frombuffer(content, header.dtype, offset=header.offset).copy()
    if header.dtype.kind == "U" and (array.view(np.uint32) > sys.maxunicode).any():
        raise ValueError("an array in it contains invalid text")
    return array.reshape(header.shape, order="F" if header.fortran_order else "C")


def _read_sparse(content: bytes, kind: Any) -> Any:
    """Return a CSR array; check its indices, which compiled code does not check."""
    with ZipFile(io.BytesIO(content)) as archive:
        names = check_sizes(archive, len(content))
        arrays = {name.removesuffix(".npy"): _read_array(archive.read(name)) for name in names}
    if arrays["format"] != b"csr":
        raise ValueError("a sparse array in it is not in CSR format")
    csr = (arrays["data"], arrays["indices"], arrays["indptr"])
    matrix = kind(csr, shape=tuple(arrays["shape"]))
    matrix.check_format(full_check=True)
    return matrix
