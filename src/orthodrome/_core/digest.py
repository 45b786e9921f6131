"""A fingerprint of the content of arrays, kernels and operators."""

from __future__ import annotations

import functools
import hashlib
import types
from typing import Any

import joblib
import numpy as np
import scipy.sparse


def digest(*things: Any) -> str:
    """Return a hexadecimal hash of the content of these objects.

    The hash covers dtype, shape and values of arrays; name, bytecode, defaults and closure of
    functions, but not the globals that they use; class and attributes of other objects, or the
    result of their method ``_identity()``. An object that cannot be pickled raises a ValueError.

    Examples
    --------
    >>> digest(np.zeros(3)) == digest(np.zeros(3)), digest(np.zeros(3)) == digest(np.zeros(4))
    (True, False)
    """
    try:
        return str(joblib.hash(_content(things), hash_name="sha1"))
    except MemoryError:
        raise
    except Exception as error:  # an object decides how it is pickled
        kinds = ", ".join(sorted({type(thing).__name__ for thing in things}))
        raise ValueError(f"Cannot compute a fingerprint of {kinds}: {error}") from error


def sketch(values: np.ndarray, decimals: int) -> list[float]:
    """Return a few sums of a vector with random signs, divided by its length and rounded.

    Vectors that differ only by rounding errors have the same sketch.

    Examples
    --------
    >>> x = np.linspace(0, 1, 100)
    >>> sketch(x, 6) == sketch(x * (1 + 1e-15), 6), sketch(x, 6) == sketch(x + np.eye(100)[3], 6)
    (True, False)
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(8, len(values)))
    length = float(np.linalg.norm(values)) or 1.0
    return (np.round(signs @ values / length, decimals) + 0.0).tolist()  # no negative zeros


def _content(thing: Any) -> Any:
    """Return the content of an object, in a form that does not depend on shared references."""
    name = f"{type(thing).__module__}.{type(thing).__qualname__}"
    if isinstance(thing, np.ndarray):
        return _array_content(thing)
    if scipy.sparse.issparse(thing):
        csr = thing.tocsr(copy=True)
        csr.sum_duplicates()
        places = [part.astype(np.int64) for part in (csr.indices, csr.indptr)]  # of any width
        return ["sparse", csr.shape, _content([csr.data, *places])]
    if hasattr(thing, "_identity"):
        return [name, _content(thing._identity())]
    if isinstance(thing, dict):
        return {key: _content(item) for key, item in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_content(item) for item in thing]
    if hasattr(thing, "py_func"):  # compiled by numba
        return [name, _content(thing.py_func)]
    if isinstance(thing, types.FunctionType):
        closure = [cell.cell_contents for cell in thing.__closure__ or ()]
        parts = [thing.__code__, thing.__defaults__, thing.__kwdefaults__, closure]
        return [name, thing.__module__, thing.__qualname__, _content(parts)]
    if isinstance(thing, types.CodeType):
        return [name, thing.co_code, thing.co_names, _content(thing.co_consts)]
    if isinstance(thing, functools.partial):
        return [name, _content([thing.func, thing.args, thing.keywords])]
    if isinstance(thing, types.MethodType):
        return [name, _content([thing.__func__, thing.__self__])]
    attributes = None if isinstance(thing, type) else getattr(thing, "__dict__", None)
    return [name, _content(attributes)] if attributes else thing


def _array_content(array: np.ndarray) -> Any:
    """Return dtype, shape and a hash of the values in C order, without a copy of the whole."""
    if array.dtype.hasobject:
        return ["objects", array.shape, _content(array.ravel().tolist())]
    rows, result = np.atleast_1d(array), hashlib.sha256()
    step = max(1, 2**22 // max(1, rows[:1].nbytes))
    for first in range(0, len(rows) if rows.nbytes else 0, step):
        block = np.ascontiguousarray(rows[first : first + step])
        result.update(block.reshape(-1).view(np.uint8).data)
    return ["array", array.dtype.str, array.shape, result.hexdigest()]
