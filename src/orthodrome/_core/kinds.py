"""Arrays of other libraries, arrays that are not in memory, and memory maps."""

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


def as_numpy(X: Any, name: str, owner: str) -> Any:
    """Return an array of another library, such as PyTorch, as a NumPy array; others as they are."""
    if isinstance(X, np.ndarray) or not hasattr(X, "__dlpack__"):
        return X
    try:
        return np.asarray(X)
    except (RuntimeError, TypeError, BufferError) as error:
        raise ValueError(
            f"{name} of {owner} cannot be converted to a NumPy array: {error} Move it to the CPU, "
            "detach it from gradients, or convert it to float32."
        ) from error


def is_dask_array(X: Any) -> bool:
    """Return whether X is a dask array, without importing dask."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(X, module.Array)


def is_memory_map(X: Any) -> bool:
    """Return whether X is a memory map, or a view of one."""
    while X is not None and not isinstance(X, np.memmap):
        X = getattr(X, "base", None)
    return X is not None
