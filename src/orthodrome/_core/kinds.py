"""Arrays that are not in memory: those of dask and zarr, and memory maps."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_LIBRARIES = ("dask", "zarr")


def library_of(X: Any) -> str | None:
    """Return "dask" or "zarr" for an array of that library, else None.

    Only the type of X is examined: nothing is read, and no library is imported.

    Examples
    --------
    >>> library_of([[1.0]]) is None
    True
    """
    modules = {base.__module__.partition(".")[0] for base in type(X).__mro__}
    return next((library for library in _LIBRARIES if library in modules), None)


def check_in_memory(X: Any, owner: Any) -> None:
    """Raise a ValueError for a dask or zarr array, which would be read into memory as a whole."""
    library = library_of(X)
    if library is not None:
        raise ValueError(
            f"{type(owner).__name__} accepts only arrays in memory here, not a {library} array. "
            "Convert it to a NumPy array, or first reduce it with KernelPCA(solver='nystroem'), "
            "which reads it in blocks."
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
