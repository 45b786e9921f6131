"""Hashes of the content of arrays, kernels and operators."""

from __future__ import annotations

import functools
import hashlib
import types
from typing import Any

import joblib
import numpy as np
import scipy.sparse


def digest(*objects: Any) -> str:
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
        return str(joblib.hash(_content(objects), hash_name="sha1"))
    except MemoryError:
        raise
    except Exception as error:  # pickling an object may raise any error
        kinds = ", ".join(sorted({type(item).__name__ for item in objects}))
        raise ValueError(f"Cannot compute a fingerprint of {kinds}: {error}") from error


def sketch(values: np.ndarray, decimals: int) -> list[float]:
    """Return rounded random-sign sums of a normalised vector.

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


def _content(value: Any) -> Any:
    """Return the content of an object, independent of shared references."""
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return ["objects", value.shape, _content(value.ravel().tolist())]
    if isinstance(value, np.ndarray):  # joblib would distinguish orders and memory maps
        values = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        return ["array", value.dtype.str, value.shape, hashlib.sha256(values.data).hexdigest()]
    if scipy.sparse.issparse(value):
        csr = value.tocsr(copy=True)
        csr.sum_duplicates()
        indices = [array.astype(np.int64) for array in (csr.indices, csr.indptr)]
        return ["sparse", csr.shape, _content([csr.data, *indices])]
    if hasattr(value, "_identity"):
        return [name, _content(value._identity())]
    if isinstance(value, dict):
        return {key: _content(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_content(item) for item in value]
    if hasattr(value, "py_func"):  # compiled by numba
        return [name, _content(value.py_func)]
    if isinstance(value, types.FunctionType):
        closure = [cell.cell_contents for cell in value.__closure__ or ()]
        content = [value.__code__, value.__defaults__, value.__kwdefaults__, closure]
        return [name, value.__module__, value.__qualname__, _content(content)]
    if isinstance(value, types.CodeType):
        return [name, value.co_code, value.co_names, _content(value.co_consts)]
    if isinstance(value, functools.partial):
        return [name, _content([value.func, value.args, value.keywords])]
    if isinstance(value, types.MethodType):
        return [name, _content([value.__func__, value.__self__])]
    attributes = None if isinstance(value, type) else getattr(value, "__dict__", None)
    return [name, _content(attributes)] if attributes else value
