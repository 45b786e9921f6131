"""A fingerprint of the content of arrays, kernels and operators."""

from __future__ import annotations

import functools
import hashlib
import numbers
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse

__all__ = ["digest", "sketch"]


def digest(*things: Any) -> str:
    """Return a hexadecimal SHA-256 of the content of these things.

    Arrays and sparse arrays count by dtype, shape and values, functions by their name, compiled
    code, constants and what they were given in advance (not by what they find by name when they
    run: other functions, globals), everything else by type and attributes, or by what pickle would
    keep of it. An object that holds more than what it *is* (a cache, a place on disk) says what
    counts in a method ``_identity()``. What nothing is known of is a ValueError.

    Examples
    --------
    >>> digest(np.zeros(3)) == digest(np.zeros(3)), digest(np.zeros(3)) == digest(np.zeros(4))
    (True, False)
    """
    try:
        return _hash(*things)
    except RecursionError:
        raise ValueError(
            "What refers to itself cannot be fingerprinted; among the types here: "
            f"{', '.join(sorted({type(thing).__name__ for thing in things}))}."
        ) from None


def sketch(values: np.ndarray, decimals: int) -> list[float]:
    """Return a few sums of a vector with random signs, in units of its length, rounded.

    Vectors that differ by rounding alone, as the same computation on another number of threads
    gives them, have the same sketch; those that differ by more than the last decimal have not.

    Examples
    --------
    >>> x = np.linspace(0, 1, 100)
    >>> sketch(x, 6) == sketch(x * (1 + 1e-15), 6), sketch(x, 6) == sketch(x + np.eye(100)[3], 6)
    (True, False)
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(8, len(values)))
    length = float(np.linalg.norm(values)) or 1.0
    return (np.round(signs @ values / length, decimals) + 0.0).tolist()  # no negative zeros


def _hash(*things: Any) -> str:
    result = hashlib.sha256()
    for thing in things:
        _feed(thing, result.update)
    return result.hexdigest()


def _feed(thing: Any, update: Callable[[Any], None]) -> None:
    """Pass a description of a thing on; lengths and types keep neighbours apart."""
    if isinstance(thing, np.ndarray) and thing.dtype.hasobject:
        _feed(("objects", thing.shape, thing.ravel().tolist()), update)
    elif isinstance(thing, np.ndarray):
        update(f"array {thing.dtype.str} {thing.shape};".encode())
        for part in _rows_in_order(thing):
            update(part)
    elif scipy.sparse.issparse(thing):
        csr = thing.tocsr(copy=True)
        csr.sum_duplicates()
        places = [part.astype(np.int64) for part in (csr.indices, csr.indptr)]  # of any width
        _feed(("sparse", csr.shape, csr.data, *places), update)
    elif thing is None or isinstance(thing, (str, bytes, numbers.Number, np.generic, np.dtype)):
        text = repr(thing).encode()
        update(f"{type(thing).__name__} {len(text)};".encode() + text)
    elif isinstance(thing, Mapping):
        _feed(("mapping", sorted(_hash(key, value) for key, value in thing.items())), update)
    elif isinstance(thing, (set, frozenset)):
        _feed(("set", sorted(_hash(member) for member in thing)), update)
    elif isinstance(thing, (tuple, list)):
        update(f"sequence {len(thing)};".encode())
        for part in thing:
            _feed(part, update)
    elif hasattr(thing, "_identity"):
        _feed((_name(type(thing)), thing._identity()), update)
    elif hasattr(thing, "py_func"):  # compiled by numba
        _feed(("compiled", thing.py_func), update)
    elif isinstance(thing, (types.BuiltinFunctionType, np.ufunc, range, slice)):
        _feed((_name(type(thing)), repr(thing)), update)
    elif isinstance(thing, types.CodeType):
        _feed((thing.co_name, thing.co_code, thing.co_names, thing.co_consts), update)
    elif isinstance(thing, functools.partial):
        _feed(("partial", thing.func, thing.args, thing.keywords), update)
    elif isinstance(thing, types.MethodType):
        _feed((thing.__func__, thing.__self__), update)
    elif isinstance(thing, types.FunctionType):
        closure = [cell.cell_contents for cell in thing.__closure__ or ()]
        defaults = (thing.__defaults__, thing.__kwdefaults__)
        _feed((_name(thing), thing.__code__, defaults, closure), update)
    elif isinstance(thing, type):
        _feed(("type", _name(thing)), update)
    else:
        _feed((_name(type(thing)), _attributes(thing) or _reduced(thing)), update)


def _rows_in_order(array: np.ndarray) -> Iterator[Any]:
    """Yield the array in C order, some megabytes at a time."""
    if array.ndim == 0 or array.flags.c_contiguous:
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b""
        return
    step = max(1, 2**22 // max(1, array[:1].nbytes))
    for first in range(0, len(array), step):
        yield np.ascontiguousarray(array[first : first + step]).reshape(-1).view(np.uint8).data


def _name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', repr(type(thing)))}"


def _attributes(thing: Any) -> dict[str, Any]:
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    found = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
    return found | dict(getattr(thing, "__dict__", {}))


def _reduced(thing: Any) -> Any:
    """Return what pickle would make the thing of again, where it has no attributes to look at."""
    try:
        reduced = thing.__reduce_ex__(2)
    except TypeError:
        raise ValueError(
            f"An object of type {type(thing).__name__} cannot be fingerprinted: nothing tells what "
            "it holds."
        ) from None
    return reduced if isinstance(reduced, str) else [part for part in reduced if part is not None]
