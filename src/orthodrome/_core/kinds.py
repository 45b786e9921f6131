"""Arrays of other libraries that keep their rows elsewhere: on disk, or on a cluster."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_LIBRARIES = ("dask", "zarr")


def library_of(X: Any) -> str | None:
    """Return "dask" or "zarr" for an array of that library, else None.

    Only the type of X is examined: nothing is read, and no library imported.

    Examples
    --------
    >>> library_of([[1.0]]) is None
    True
    """
    modules = {base.__module__.partition(".")[0] for base in type(X).__mro__}
    return next((library for library in _LIBRARIES if library in modules), None)


def refuse_unread(X: Any, owner: Any) -> None:
    """Raise for an array that would silently be read into memory as a whole."""
    library = library_of(X)
    if library is not None:
        whole = "X.compute()" if library == "dask" else "X[:]"
        raise ValueError(
            f"{type(owner).__name__} takes arrays in memory here, and a {library} array would be "
            f"read into memory as a whole. If it fits, pass {whole}; else reduce it first with "
            "KernelPCA or KernelPGA and solver='nystroem', which read it in blocks."
        )


def is_dask_array(X: Any) -> bool:
    """Return whether X is a dask array, without importing dask."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(X, module.Array)


def is_memory_map(X: Any) -> bool:
    """Return whether X is a memory map, or a view of one."""
    while X is not None and not isinstance(X, np.memmap):
        X = getattr(X, "base", None)
    return X is not None
