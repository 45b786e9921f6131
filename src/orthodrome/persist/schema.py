"""What a file says its objects are, read before anything is made of it.

skops describes a model as a tree of nodes in ``schema.json``; each names a class and the loader
that makes an object of it. skops' own check trusts all of scikit-learn and NumPy's functions. Here
only some loaders are known, each with the classes and the fields that it may have, and everything
else is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .allowed import ARRAYS, OBJECTS, SCALARS, SPARSE, names_of

__all__ = ["PROTOCOL", "audit", "named_files", "parse", "renumbered"]

PROTOCOL = 2  # of skops, since its 0.11; another may mean something else by the same words

_COMMON = frozenset(("__class__", "__module__", "__loader__", "__id__"))
_OF_THE_ROOT = frozenset(("protocol", "_skops_version"))
_KEY_TYPES = frozenset(("builtins.str", "builtins.int"))

Node = dict[str, Any]


def parse(content: bytes) -> Any:
    """Return JSON as data; a field that is there twice is refused."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a field is there twice")
        return found

    return json.loads(content, object_pairs_hook=unique)


def audit(schema: Any) -> dict[str, str]:
    """Check a whole description, and return the name of each array's class by its file.

    Raises
    ------
    ValueError
        At the first node that is not one of those known here.
    """
    if not isinstance(schema, dict) or schema.get("protocol") != PROTOCOL:
        raise ValueError("its description is not of a kind that this version of orthodrome knows")
    if schema.get("__loader__") != "ObjectNode":
        raise ValueError("it holds no model")
    auditor = _Auditor()
    auditor.visit({key: value for key, value in schema.items() if key not in _OF_THE_ROOT})
    return auditor.files


class _Auditor:
    """Visits every node; ``files`` are the arrays that nodes refer to.

    An object that is there several times is described at the first place; at the others there is
    its number alone, and skops makes of all one object.
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self._known: dict[int, tuple[str, str]] = {}  # loader and class by number
        self._loaders: dict[str, Callable[[Node, str], None]] = {
            "DictNode": self._dict,
            "JsonNode": self._json,
            "ListNode": self._sequence,
            "NdArrayNode": self._array,
            "ObjectNode": self._object,
            "SparseMatrixNode": self._sparse,
            "TupleNode": self._sequence,
        }

    def visit(self, node: Any) -> None:
        """Check a node and all below it."""
        loader, name = found = _identity(node)
        if node["__id__"] in self._known:
            self._refer(node, found)
            return
        if loader not in self._loaders:
            raise ValueError(f"it names {name} as a {loader}, which a model file never holds")
        self._known[node["__id__"]] = found
        self._loaders[loader](node, name)

    def _refer(self, node: Node, found: tuple[str, str]) -> None:
        _check_fields(node)
        if self._known[node["__id__"]] != found:
            raise ValueError("two different things in it have the same number")

    def _expect(self, node: Any, loader: str) -> None:
        """Check a node that must be described here, by this loader."""
        if _identity(node)[0] != loader or node["__id__"] in self._known:
            raise ValueError(f"its description has no {loader} where a model's has one")

    # ------------------------------------------------------------------ kinds of nodes

    def _object(self, node: Node, name: str) -> None:
        _check_class(name, names_of(OBJECTS))
        _check_fields(node, "content")
        self._expect(node["content"], "DictNode")
        self.visit(node["content"])
        if any(kind["__class__"] != "str" for kind in node["content"]["key_types"]["content"]):
            raise ValueError(f"attributes of {name} in it have no names")

    def _dict(self, node: Node, name: str) -> None:
        _check_class(name, frozenset(("builtins.dict",)))
        _check_fields(node, "content", "key_types")
        types, content = node["key_types"], node["content"]
        self._expect(types, "ListNode")
        _check_fields(types, "content")
        _check_class(_identity(types)[1], frozenset(("builtins.list",)))
        if not isinstance(types["content"], list) or not isinstance(content, dict):
            raise ValueError("a dictionary in it is malformed")
        if len(types["content"]) != len(content):
            raise ValueError("a dictionary in it is malformed")
        self._known[types["__id__"]] = _identity(types)
        for kind in types["content"]:
            self._key_type(kind)
        for value in content.values():
            self.visit(value)

    def _key_type(self, node: Any) -> None:
        found = _identity(node)
        if found[0] != "TypeNode":
            raise ValueError("a dictionary in it is malformed")
        _check_class(found[1], _KEY_TYPES)
        self._known.setdefault(node["__id__"], found)
        self._refer(node, found)

    def _sequence(self, node: Node, name: str) -> None:
        expected = "builtins.list" if node["__loader__"] == "ListNode" else "builtins.tuple"
        _check_class(name, frozenset((expected,)))
        _check_fields(node, "content")
        if not isinstance(node["content"], list):
            raise ValueError("a list in it is malformed")
        for value in node["content"]:
            self.visit(value)

    def _json(self, node: Node, name: str) -> None:
        _check_class(name, frozenset(("builtins.str",)))
        _check_fields(node, "content", "is_json")
        if not isinstance(node["content"], str) or isinstance(
            json.loads(node["content"]), (list, dict)
        ):
            raise ValueError("a number or text in it is malformed")

    def _array(self, node: Node, name: str) -> None:
        if node.get("type") == "json":  # an array of objects, such as the names of columns
            self._array_of_objects(node, name)
            return
        _check_class(name, names_of(ARRAYS | SCALARS))
        self._file(node, name, kind="numpy", suffix=".npy")

    def _array_of_objects(self, node: Node, name: str) -> None:
        _check_class(name, names_of(ARRAYS))
        _check_fields(node, "type", "content", "shape")
        content = node["content"]
        if not isinstance(content, list):
            raise ValueError("an array in it is malformed")
        for value in content:
            if _identity(value)[0] != "JsonNode":
                raise ValueError("an array in it holds other things than text and numbers")
            self.visit(value)
        self._expect(node["shape"], "TupleNode")
        self.visit(node["shape"])
        sizes = node["shape"]["content"]
        if len(sizes) != 1 or _identity(sizes[0])[0] != "JsonNode":
            raise ValueError("an array of objects in it has more than one dimension")

    def _sparse(self, node: Node, name: str) -> None:
        _check_class(name, names_of(SPARSE))
        self._file(node, name, kind="scipy", suffix=".npz")

    def _file(self, node: Node, name: str, kind: str, suffix: str) -> None:
        _check_fields(node, "type", "file")
        file = node["file"]
        if node["type"] != kind or not isinstance(file, str) or not file.endswith(suffix):
            raise ValueError("an array in it is malformed")
        if self.files.setdefault(file, name) != name:
            raise ValueError("two different things in it have the same array")


def _identity(node: Any) -> tuple[str, str]:
    """Return the loader and the class of a node."""
    if not isinstance(node, dict) or not node.keys() >= _COMMON:
        raise ValueError("its description is not that of a model")
    loader, module, kind = (node[key] for key in ("__loader__", "__module__", "__class__"))
    texts = isinstance(loader, str) and isinstance(module, str) and isinstance(kind, str)
    if not texts or type(node["__id__"]) is not int or node["__id__"] <= 0:
        raise ValueError("its description is not that of a model")
    return loader, f"{module}.{kind}"


def _check_class(name: str, allowed: frozenset[str]) -> None:
    if name not in allowed:
        raise ValueError(f"it names {name}, which is not among the classes of model files")


def _check_fields(node: Node, *fields: str) -> None:
    if node.keys() != _COMMON | set(fields):
        raise ValueError("its description has other fields than a model's")


def renumbered(schema: Node, files: dict[str, str]) -> Node:
    """Return the description of skops as a model file has it.

    skops numbers objects by their addresses in memory and describes one that is there several times
    at each place. Here they are numbered as they come, so that a model gives the same file twice,
    and described once. Arrays have the new names that `files` gives for the old.
    """
    numbers: dict[int, int] = {}

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(item) for item in value]
        if not isinstance(value, dict):
            return value
        if type(value.get("__id__")) is not int:  # what a dictionary holds, by its keys
            return {key: changed(item) for key, item in value.items()}
        number, known = value["__id__"], value["__id__"] in numbers
        numbers.setdefault(number, len(numbers) + 1)
        kept = {key: item for key, item in value.items() if not known or key in _COMMON}
        made = {key: changed(item) for key, item in kept.items()}
        made["__id__"] = numbers[number]
        if "file" in made:
            made["file"] = files[made["file"]]
        return made

    renewed: Node = changed(schema)
    return renewed


def named_files(schema: Any) -> list[str]:
    """Return the files that a description of skops names, in its order, each once."""
    found: dict[str, None] = {}

    def visit(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("file"), str):
                found[value["file"]] = None
            for item in value.values():
                visit(item)
        elif isinstance(value, list):
            for item in value:
                visit(item)

    visit(schema)
    return list(found)
