"""Make a model from its description, see :mod:`.encode`, by an exact list of classes.

Nothing that a file names is imported or called: a node of another kind or class than those of
:mod:`.allowed` is rejected, and every other field is ignored.
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
        self._made: dict[int, tuple[str, Any]] = {}  # class and value

    def value(self, node: Any) -> Any:
        """Return the value of a node."""
        loader, name, number = node["__loader__"], _class_name(node), node["__id__"]
        if LOADERS.get(name) != loader:
            raise ValueError(f"it names {name} as a {loader}, which a model file never holds")
        if number not in self._made:
            self._made[number] = name, self._make(loader, name, node)
        found, value = self._made[number]
        if found != name:
            raise ValueError("two different values in it have the same number")
        return value

    def _make(self, loader: str, name: str, node: Node) -> Any:
        match loader:
            case "JsonNode":
                value = json.loads(node["content"])
                if type(value) not in PRIMITIVES:
                    raise ValueError("a number or text in it is malformed")
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
            raise ValueError(f"attributes of {name} in it have no names")
        made: Any = object.__new__(OBJECTS[name])
        if name.startswith("orthodrome."):
            made.__dict__.update({_OLD_ATTRIBUTES.get(key, key): state[key] for key in state})
            check_parameters(made)
        else:  # warns if another version of scikit-learn wrote it
            made.__setstate__(dict(state))
        check_location(made, type(made).__name__)
        return made

    def _array(self, node: Node, name: str) -> Any:
        if node["type"] != "json":
            array = _read_array(self._file(node), name)
            return array if name == _ARRAY else array[()]
        items = [self.value(item) for item in node["content"]]
        primitive = all(type(item) in PRIMITIVES for item in items)
        if name != _ARRAY or not primitive or self.value(node["shape"]) != (len(items),):
            raise ValueError("an array of objects in it is malformed")
        return np.array(items, dtype=object)  # such as the names of columns

    def _file(self, node: Node) -> bytes:
        if node["file"] in self.files:  # a small file could fill the memory
            raise ValueError("two values in it have the same array")
        self.files.add(node["file"])
        return self._read(node["file"])


def _class_name(node: Node) -> str:
    """Return the class that a node names, by its present name."""
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
            raise ValueError("it has compressed members, which a model file never has")
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
        raise ValueError(f"a value in it is not the {name} that it claims to be")
    found = np.frombuffer(content, dtype, offset=header.offset).copy()
    if dtype.kind == "U" and (found.view(np.uint32) > sys.maxunicode).any():
        raise ValueError("an array in it contains invalid text")
    return found.reshape(shape, order="F" if header.fortran_order else "C")


def _read_sparse(content: bytes, kind: Any) -> Any:
    """Return a CSR array whose indices are within its shape; compiled code relies on that."""
    with ZipFile(io.BytesIO(content)) as archive:
        names = checked_sizes(archive, len(content))
        parts = {name.removesuffix(".npy"): _read_array(archive.read(name)) for name in names}
    is_array = bool(parts.pop("_is_array", False))
    if parts.keys() != {"data", "format", "indices", "indptr", "shape"}:
        raise ValueError("a sparse array in it lacks parts, or has others")
    if parts["format"] != b"csr" or is_array != kind.__name__.endswith("array"):
        raise ValueError(f"a sparse array in it is not the {name_of(kind)} that it claims to be")
    made = kind((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
    made.check_format(full_check=True)
    return made
