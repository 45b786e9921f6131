"""Create a model from its description (see :mod:`.encode`).

Nothing named in a file is imported or called. Only the classes and node kinds of :mod:`.allowed`
are accepted, and unknown fields are ignored.
"""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from collections.abc import Callable
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from sklearn.base import BaseEstimator

from .._core.arrays import read_header
from .allowed import LOADERS, OBJECTS, PRIMITIVES, SPARSE, is_plain, name_of
from .encode import PROTOCOL, Node, check_location

_ARRAY = "numpy.ndarray"
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

# Parameters with a default that were added later, so that old files lack them.
_NEW_PARAMETERS = {"PartialFit": {"radius"}}


def decode(schema: Any, read: Callable[[str], bytes]) -> tuple[Any, set[str]]:
    """Return the model and the names of the files that were read.

    `read` returns the content of a file by its name.

    Raises
    ------
    ValueError
        If a class is not on the list. A malformed description may raise other errors.
    """
    if schema["protocol"] != PROTOCOL or schema["__loader__"] != "ObjectNode":
        raise ValueError("the protocol of its description is unknown to this version of orthodrome")
    decoder = _Decoder(read)
    return decoder.value(schema), decoder.files


class _Decoder:
    """Create each object once; `files` are the names of the arrays that were read."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self.files: set[str] = set()
        self._read = read
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
                return self._object(node, name)
            case "SparseMatrixNode":
                return _read_sparse(self._file(node), SPARSE[name])
            case _:
                return self._array(node, name)

    def _object(self, node: Node, name: str) -> Any:
        state = self.value(node["content"])
        if type(state) is not dict or any(type(key) is not str for key in state):
            raise ValueError(f"the attribute names of {name} in it are not strings")
        result: Any = object.__new__(OBJECTS[name])
        if name.startswith("orthodrome."):
            result.__dict__.update({_OLD_ATTRIBUTES.get(key, key): state[key] for key in state})
            check_parameters(result)
        else:  # warns if another version of scikit-learn wrote it
            result.__setstate__(dict(state))
        check_location(result, type(result).__name__)
        return result

    def _array(self, node: Node, name: str) -> Any:
        if node["type"] != "json":
            array = _read_array(self._file(node), name)
            return array if name == _ARRAY else array[()]
        items = [self.value(item) for item in node["content"]]
        primitive = all(type(item) in PRIMITIVES for item in items)
        if name != _ARRAY or not primitive or self.value(node["shape"]) != (len(items),):
            raise ValueError("an array of objects in it is malformed")
        return np.array(items, dtype=object)  # for example column names

    def _file(self, node: Node) -> bytes:
        if node["file"] in self.files:  # otherwise a small file could fill the memory
            raise ValueError("two values in it use the same array")
        self.files.add(node["file"])
        return self._read(node["file"])


def _class_name(node: Node) -> str:
    """Return the current name of the class of a node."""
    module, kind = node["__module__"], node["__class__"]
    if module.startswith("orthodrome."):  # our own classes may have been in another module
        return f"orthodrome.{_OLD_CLASSES.get(kind, kind)}"
    return f"{module}.{kind}"


def check_parameters(value: Any) -> None:
    """Raise a ValueError if an object lacks a parameter or field."""
    added_later = _NEW_PARAMETERS.get(type(value).__name__, set())
    for name in set(parameter_names(value)) - vars(value).keys() - added_later:
        raise ValueError(f"its {type(value).__name__} has no {name}")


def parameter_names(value: Any) -> list[str]:
    """Return the names of the parameters or fields of an object."""
    if isinstance(value, BaseEstimator):
        return value._get_param_names()
    return [field.name for field in dataclasses.fields(value)]


# ---------------------------------------------------------------------- arrays


def check_sizes(archive: ZipFile, limit: int) -> dict[str, int]:
    """Return the sizes of the members; raise a ValueError if their sum exceeds `limit`."""
    sizes: dict[str, int] = {}
    for member in archive.infolist():
        if member.compress_type != ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError("it has compressed members, which are not allowed in a model file")
        if member.filename in sizes:
            raise ValueError(f"its member {member.filename!r} appears twice")
        sizes[member.filename] = member.file_size
    if sum(sizes.values()) > limit:
        raise ValueError("its members are larger than the file")
    return sizes


def _read_array(content: bytes, name: str = _ARRAY) -> Any:
    """Return an array of numbers or text; check its header and size first."""
    try:
        header = read_header(io.BytesIO(content), len(content))
    except ValueError as error:
        raise ValueError(f"an array in it is damaged: {error}") from error
    shape, dtype, scalar = header.shape, header.dtype, name != _ARRAY
    if not is_plain(dtype) and not (scalar and dtype == np.float16):
        raise ValueError(f"an array in it has dtype {dtype}, which is not allowed in a model file")
    if header.offset + header.nbytes != len(content):
        raise ValueError("the size of an array in it does not match its header")
    if scalar and (shape != () or name_of(dtype.type) != name):
        raise ValueError(f"the dtype or shape of a value in it is not that of {name}")
    array = np.frombuffer(content, dtype, offset=header.offset).copy()
    if dtype.kind == "U" and (array.view(np.uint32) > sys.maxunicode).any():
        raise ValueError("an array in it contains invalid text")
    return array.reshape(shape, order="F" if header.fortran_order else "C")


def _read_sparse(content: bytes, kind: Any) -> Any:
    """Return a CSR array; check its indices, which compiled code does not check."""
    with ZipFile(io.BytesIO(content)) as archive:
        names = check_sizes(archive, len(content))
        arrays = {name.removesuffix(".npy"): _read_array(archive.read(name)) for name in names}
    is_array = bool(arrays.pop("_is_array", False))
    if arrays.keys() != {"data", "format", "indices", "indptr", "shape"}:
        raise ValueError("a sparse array in it has missing or unknown members")
    if arrays["format"] != b"csr" or is_array != kind.__name__.endswith("array"):
        raise ValueError(f"the format of a sparse array in it is not that of {name_of(kind)}")
    csr = (arrays["data"], arrays["indices"], arrays["indptr"])
    matrix = kind(csr, shape=tuple(arrays["shape"]))
    matrix.check_format(full_check=True)
    return matrix
