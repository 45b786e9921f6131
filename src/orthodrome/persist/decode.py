"""Make a model from its description, see :mod:`.encode`, by an exact list of classes.

Nothing that a file names is imported or called: a node of another kind or class than those below
is rejected, and every other field is ignored.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable, Collection
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from sklearn.base import BaseEstimator

from .._core.arrays import read_header
from .allowed import OBJECTS, SCALARS, SPARSE, is_plain, name_of
from .encode import LOCATIONS, PROTOCOL, Node

__all__ = ["check_parameters", "checked_sizes", "decode", "parameter_names"]

_ARRAY = "numpy.ndarray"
_KEY_TYPES: dict[str, type] = {"builtins.str": str, "builtins.int": int}

# Names of earlier versions.
_OLD_CLASSES = {"orthodrome.gram.landmarks.Landmarks": "orthodrome.coordinates.anchors.Anchors"}
_OLD_ATTRIBUTES = {
    "n_landmarks": "n_anchors",
    "n_landmarks_": "n_anchors_",
    "landmark_indices_": "anchor_indices_",
    "landmarks": "anchors",
}

# Parameters that earlier versions did not have, and that have a default.
_NEW_PARAMETERS = {"PartialFit": {"radius"}}


def decode(schema: Any, read: Callable[[str], bytes]) -> tuple[Any, set[str]]:
    """Return the model and the names of the files that it was made of.

    `read` returns the content of a file by its name.

    Raises
    ------
    ValueError
        If a class is not on the list. A malformed description may raise other errors.
    """
    if schema["protocol"] != PROTOCOL or schema["__loader__"] != "ObjectNode":
        raise ValueError("its description is not of a kind that this version of orthodrome knows")
    decoder = _Decoder(read)
    return decoder.value(schema), decoder.files


class _Decoder:
    """Makes each object once; `files` are the arrays that were read."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self.files: set[str] = set()
        self._read = read
        self._made: dict[int, tuple[tuple[str, str], Any]] = {}  # loader, class and value

    def value(self, node: Any, *loaders: str) -> Any:
        """Return the value of a node, which must have one of these loaders if any are given."""
        loader, name, number = node["__loader__"], _class_name(node), node["__id__"]
        classes, make = _LOADERS.get(loader, ((), None))
        if make is None or name not in classes:
            raise ValueError(f"it names {name} as a {loader}, which a model file never holds")
        if loaders and loader not in loaders:
            raise ValueError(f"it has a {loader} where a model file has a {loaders[0]}")
        if number not in self._made:
            self._made[number] = (loader, name), make(self, node, name)
        found, value = self._made[number]
        if found != (loader, name):
            raise ValueError("two different values in it have the same number")
        return value

    def _json(self, node: Node, name: str) -> Any:
        value = json.loads(node["content"])
        if isinstance(value, (list, dict)):
            raise ValueError("a number or text in it is malformed")
        return value

    def _list(self, node: Node, name: str) -> list[Any]:
        return [self.value(item) for item in node["content"]]

    def _tuple(self, node: Node, name: str) -> tuple[Any, ...]:
        return tuple(self._list(node, name))

    def _dict(self, node: Node, name: str) -> dict[Any, Any]:
        kinds = [_KEY_TYPES[_class_name(kind)] for kind in node["key_types"]["content"]]
        pairs = zip(kinds, node["content"].items(), strict=True)
        return {kind(key): self.value(item) for kind, (key, item) in pairs}

    def _object(self, node: Node, name: str) -> Any:
        state = self.value(node["content"], "DictNode")
        if any(type(key) is not str for key in state):
            raise ValueError(f"attributes of {name} in it have no names")
        made: Any = object.__new__(OBJECTS[name])
        if name.startswith("orthodrome."):
            made.__dict__.update({_OLD_ATTRIBUTES.get(key, key): state[key] for key in state})
            check_parameters(made)
        else:  # warns if another version of scikit-learn wrote it
            made.__setstate__(dict(state))
        location = LOCATIONS.get(type(made), "")
        if getattr(made, location, None) is not None:
            found = getattr(made, location)
            raise ValueError(f"{location} is {found!r}, a place whose files a later fit would read")
        return made

    def _array(self, node: Node, name: str) -> Any:
        if node["type"] != "json":
            array = _read_array(self._file(node), name)
            return array if name == _ARRAY else array[()]
        items = [self.value(item, "JsonNode") for item in node["content"]]
        made = np.empty(len(items), dtype=object)  # such as the names of columns
        made[:] = items
        if name != _ARRAY or self.value(node["shape"], "TupleNode") != made.shape:
            raise ValueError("an array of objects in it is malformed")
        return made

    def _sparse(self, node: Node, name: str) -> Any:
        return _read_sparse(self._file(node), SPARSE[name])

    def _file(self, node: Node) -> bytes:
        if node["file"] in self.files:  # a small file could fill the memory
            raise ValueError("two values in it have the same array")
        self.files.add(node["file"])
        return self._read(node["file"])


#: Classes and method by kind of node.
_LOADERS: dict[str, tuple[Collection[str], Callable[[_Decoder, Node, str], Any]]] = {
    "DictNode": (("builtins.dict",), _Decoder._dict),
    "JsonNode": (("builtins.str",), _Decoder._json),
    "ListNode": (("builtins.list",), _Decoder._list),
    "NdArrayNode": ((_ARRAY, *SCALARS), _Decoder._array),
    "ObjectNode": (OBJECTS, _Decoder._object),
    "SparseMatrixNode": (SPARSE, _Decoder._sparse),
    "TupleNode": (("builtins.tuple",), _Decoder._tuple),
}


def _class_name(node: Node) -> str:
    """Return the class that a node names, as it is called today."""
    name = f"{node['__module__']}.{node['__class__']}"
    return _OLD_CLASSES.get(name, name)


def check_parameters(made: Any) -> None:
    """Raise a ValueError if an object of orthodrome lacks a parameter or field."""
    newer = _NEW_PARAMETERS.get(type(made).__name__, set())
    for name in set(parameter_names(made)) - vars(made).keys() - newer:
        raise ValueError(f"its {type(made).__name__} has no {name}")


def parameter_names(part: Any) -> list[str]:
    """Return the names of the parameters or fields of an object."""
    if isinstance(part, BaseEstimator):
        return part._get_param_names()
    return [field.name for field in dataclasses.fields(part)]


# ---------------------------------------------------------------------- arrays


def checked_sizes(archive: ZipFile, limit: int) -> dict[str, int]:
    """Return the sizes of the members; raise a ValueError unless they are at most `limit`."""
    sizes: dict[str, int] = {}
    for member in archive.infolist():
        if member.compress_type != ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError("it has compressed members, which model files have not")
        if member.filename in sizes:
            raise ValueError(f"its member {member.filename!r} is there twice")
        sizes[member.filename] = member.file_size
    if sum(sizes.values()) > limit:
        raise ValueError("its members are larger than itself")
    return sizes


def _read_array(content: bytes, name: str = _ARRAY) -> Any:
    """Return an array of plain numbers or text, after checking its header and size."""
    try:
        header = read_header(io.BytesIO(content), len(content))
    except ValueError as error:
        raise ValueError(f"an array in it is damaged: {error}") from error
    shape, dtype, scalar = header.shape, header.dtype, name != _ARRAY
    if not is_plain(dtype) and not (scalar and dtype == np.float16):
        raise ValueError(f"an array in it has dtype {dtype}, which save does not write")
    if header.offset + header.nbytes != len(content):
        raise ValueError("the size of an array in it does not agree with its header")
    if scalar and (shape != () or name_of(dtype.type) != name):
        raise ValueError(f"a value in it is not the {name} that it says")
    found = np.frombuffer(content, dtype, offset=header.offset).copy()
    return found.reshape(shape, order="F" if header.fortran_order else "C")


def _read_sparse(content: bytes, kind: Any) -> Any:
    """Return a CSR array whose indices are within its shape; compiled code relies on that."""
    with ZipFile(io.BytesIO(content)) as archive:
        names = checked_sizes(archive, len(content))
        parts = {name.removesuffix(".npy"): _read_array(archive.read(name)) for name in names}
    is_array = bool(parts.pop("_is_array", False))
    if parts.keys() != {"data", "format", "indices", "indptr", "shape"}:
        raise ValueError("a sparse array in it has not the parts of one")
    if parts["format"] != b"csr" or is_array != kind.__name__.endswith("array"):
        raise ValueError(f"a sparse array in it is not the {name_of(kind)} that it says")
    made = kind((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
    made.check_format(full_check=True)
    return made
