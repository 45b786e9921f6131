"""Turn a model into a description in JSON and arrays, or say why that is not possible.

Each value is a node: its class, the kind of node (``__loader__``), a number (``__id__``) and its
content. If a value occurs again, its node has no content. skops has the same format, protocol 2.
"""

from __future__ import annotations

import io
import json
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import scipy.sparse
from sklearn.pipeline import Pipeline

from .._core.kinds import is_dask_array
from ..eigen import Hebbian
from ..kernels import Embedded, FromCallable
from .allowed import OBJECTS, SCALARS, SPARSE, is_plain, name_of

__all__ = ["LOCATIONS", "PROTOCOL", "Node", "encode", "zipped"]

PROTOCOL = 2
_PRIMITIVES = (type(None), bool, int, float, str)

#: Parameters that name files which a later fit would read.
LOCATIONS: dict[type, str] = {Pipeline: "memory", Hebbian: "checkpoint"}

# Callbacks and the state of warm starts belong to the session, not to the model.
_OF_THE_SESSION = {
    *("_skl_callbacks", "_skl_callbacks_to_teardown", "_callback_fit_ctx", "_parent_callback_ctx"),
    "_solution_",
}

# Left out where they are dask arrays: they can be computed again from the rows.
_OF_ROWS = {"embedding_", "eigenvectors_", "mean_cosines_", "labels_"}

# Fields of every node.
_HEAD = ("__class__", "__module__", "__loader__", "__id__")

Node = dict[str, Any]


def encode(model: Any) -> tuple[Node, dict[str, bytes]]:
    """Return the description of a model and its arrays by file name.

    Callbacks, the state of warm starts and dask arrays with one value per row are left out. Memory
    maps become arrays, arrays get native byte order, and float16 becomes float32.

    Raises
    ------
    ValueError
        If something is not data; the message says where it is and what to do.
    """
    encoder = _Encoder()
    try:
        node = encoder.node(model, type(model).__name__)
    except RecursionError as error:
        raise ValueError(
            f"{type(model).__name__} refers to itself, or is nested too deeply for a model file."
        ) from error
    return node | {"protocol": PROTOCOL}, encoder.files


def zipped(members: dict[str, bytes]) -> bytes:
    """Return an archive of uncompressed members, the same for the same members."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(ZipInfo(name), content)  # without the time of day
    return buffer.getvalue()


class _Encoder:
    """Describes each object once; `files` are the arrays."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._count = 0
        # the objects too: one that is gone might leave its id to another
        self._known: dict[int, tuple[Any, Node]] = {}

    def node(self, value: Any, where: str) -> Node:
        """Return the node of a value, which is at `where` in the model."""
        kind, name = type(value), name_of(type(value))
        if id(value) in self._known:
            return self._known[id(value)][1]
        if kind in _PRIMITIVES:
            head = self._head("JsonNode", "builtins.str")
            return head | {"content": json.dumps(value), "is_json": True}
        if name in SCALARS:
            return self._head("NdArrayNode", name) | self._file("numpy", _npy(np.asarray(value)))
        if kind in (list, tuple):
            head = self._head("ListNode" if kind is list else "TupleNode", name)
            items = [self.node(item, f"{where}[{i}]") for i, item in enumerate(value)]
            node = head | {"content": items}
        elif kind is dict:
            node = self._dict(value, {key: f"{where}[{key!r}]" for key in value}, where)
        elif kind in (np.ndarray, np.memmap):
            node = self._array(np.asarray(value), where)
        elif name in SPARSE:
            node = self._head("SparseMatrixNode", name) | self._file("scipy", _npz(value, where))
        elif OBJECTS.get(name) is kind:
            head, state = self._head("ObjectNode", name), _state(value, where)
            places = {key: f"{where}.{key}" for key in state}
            node = head | {"content": self._dict(state, places, where)}
        else:
            raise ValueError(_refusal(value, where))
        self._known[id(value)] = value, {key: node[key] for key in _HEAD}
        return node

    def _head(self, loader: str, name: str) -> Node:
        self._count += 1
        module, _, kind = name.rpartition(".")
        return dict(zip(_HEAD, (kind, module, loader, self._count), strict=True))

    def _dict(self, held: dict[Any, Any], places: dict[Any, str], where: str) -> Node:
        strange = [key for key in held if type(key) not in (str, int)]
        if strange:
            raise ValueError(
                f"{where} has the key {strange[0]!r} of type {type(strange[0]).__name__}; a model "
                "file holds dictionaries whose keys are str or int."
            )
        node = self._head("DictNode", "builtins.dict")
        kinds = [self._head("TypeNode", name_of(type(key))) for key in held]
        node["key_types"] = self._head("ListNode", "builtins.list") | {"content": kinds}
        node["content"] = {str(key): self.node(item, places[key]) for key, item in held.items()}
        return node

    def _array(self, array: Any, where: str) -> Node:
        head = self._head("NdArrayNode", "numpy.ndarray")
        if array.dtype != object:
            return head | self._file("numpy", _npy(_plain(array, where)))
        if array.ndim != 1 or any(type(item) not in _PRIMITIVES for item in array):
            raise ValueError(
                f"{where} is an array of objects; a model file holds such arrays only where they "
                "are one-dimensional lists of text and numbers, such as names of columns."
            )
        items = [self.node(item, where) for item in array]
        return head | {"type": "json", "content": items, "shape": self.node(array.shape, where)}

    def _file(self, kind: str, content: bytes) -> Node:
        file = f"{len(self.files) + 1}.{'npy' if kind == 'numpy' else 'npz'}"
        self.files[file] = content
        return {"type": kind, "file": file}


def _state(value: Any, where: str) -> dict[str, Any]:
    """Return the attributes of an object that belong into a file."""
    location = LOCATIONS.get(type(value))
    if location is not None and getattr(value, location, None) is not None:
        raise ValueError(
            f"{where}.{location} is {getattr(value, location)!r}, a place whose files a later fit "
            f"would read; a model file does not carry it. Set {location}=None."
        )
    state = value.__getstate__() or {}
    kept = {key: item for key, item in state.items() if key not in _OF_THE_SESSION}
    remote = {key for key, item in kept.items() if is_dask_array(item)}
    if "sample_weight_" in remote:  # not needed after the fit
        kept["sample_weight_"] = None
    return {key: item for key, item in kept.items() if key not in remote & _OF_ROWS}


def _plain(array: Any, where: str) -> Any:
    """Return an array of numbers or text with a dtype that a model file holds."""
    dtype = np.dtype(np.float32) if array.dtype == np.float16 else array.dtype.newbyteorder("=")
    if not is_plain(dtype):
        raise ValueError(
            f"{where} is an array of dtype {array.dtype}; a model file holds text, integers, and "
            "real and complex numbers of single and double precision."
        )
    return array.astype(dtype, copy=False)


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _npz(matrix: Any, where: str) -> bytes:
    """Return a CSR array as ``scipy.sparse.save_npz`` writes it, uncompressed."""
    named = {name: _plain(getattr(matrix, name), where) for name in ("indices", "indptr", "data")}
    matrix.check_format(full_check=True)
    named |= {"format": np.array(b"csr"), "shape": np.array(matrix.shape)}
    if isinstance(matrix, scipy.sparse.sparray):
        named["_is_array"] = np.array(True)
    return zipped({f"{name}.npy": _npy(part) for name, part in named.items()})


def _refusal(value: Any, where: str) -> str:
    """Return why a value cannot be in a model file, and what to do."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, (Embedded, FromCallable)):
        return (
            f"{where} is {kind.__name__}, which calls a function, and a model file holds no "
            "functions. Fit with a kernel of orthodrome.kernels or kernel='precomputed', or use "
            "pickle."
        )
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return (
            f"{where} is a random generator, which a model file does not hold. Set a number "
            "instead, such as random_state=0: the fitted values stay as they are."
        )
    if callable(value) and not hasattr(value, "get_params"):
        return (
            f"{where} is {getattr(value, '__name__', name)!r}, a function or class, and a model "
            "file holds only data. Use a named option, or use pickle."
        )
    if is_dask_array(value):
        return (
            f"{where} is a dask array, which does not hold its rows itself; a model file holds its "
            "data. Fit with solver='nystroem', which keeps only anchors, or use pickle."
        )
    if scipy.sparse.issparse(value):
        return f"{where} is of the sparse format {value.format}; a model file holds CSR: .tocsr()."
    return (
        f"{where} is of class {name}, which is not among those that a model file may hold: "
        "orthodrome's own estimators, denoisers, kernels and solvers (not subclasses of them), and "
        "scikit-learn's Pipeline and scalers. Use pickle instead."
    )
