"""Make rows from any kind of input."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.kinds import as_numpy, library_of
from ..kernels import Kernel, Precomputed
from .base import Rows
from .dask import DaskRows
from .local import ArrayRows, BatchRows, ZarrRows, once_error

_INDEXED: dict[str, Any] = {"array": ArrayRows, "zarr": ZarrRows, "dask": DaskRows}


def kind_of(X: Any, kernel: Kernel | None = None) -> str:
    """Return the kind of input from its type; reads no data and imports no library.

    Parameters
    ----------
    X : data
        Input of an estimator.
    kernel : Kernel, optional
        The kernel; if its points are arrays (shapes, matrices), a list of 2-D arrays is a list of
        points, not of batches.

    Returns
    -------
    {"array", "zarr", "dask", "batches", "once"}
        "array" can be passed to ``kernel.validate``; "once" is an iterator of batches.

    Examples
    --------
    >>> import numpy as np
    >>> kind_of([[1.0, 2.0]]), kind_of([np.ones((3, 2)), np.ones((4, 2))])
    ('array', 'batches')
    >>> kind_of(np.ones((3, 2)) for _ in range(4))
    'once'
    """
    if isinstance(X, (list, tuple)):
        vectors = kernel is None or kernel.takes_vectors
        flat = len(X) > 0 and all(len(getattr(entry, "shape", ())) == 2 for entry in X)
        return "batches" if vectors and flat else "array"
    library = library_of(X)
    if library is not None:
        return library
    if isinstance(X, (str, bytes, dict)) or not hasattr(X, "__iter__"):
        return "array"
    if hasattr(X, "__next__"):
        return "once"
    arrays = ("shape", "__array__", "__array_interface__", "__dataframe__", "columns")
    return "array" if any(hasattr(X, name) for name in arrays) else "batches"


def as_rows(
    X: Any, kernel: Kernel, estimator: Any, *, reset: bool = True, once: bool = False
) -> Rows:
    """Make rows that a kernel validates for an estimator.

    Parameters
    ----------
    X : array, memory map, sparse array, zarr array, dask array, or iterable of batches
        The rows. For more than one pass, each ``iter(X)`` must start from the beginning.
    kernel : Kernel
        Its ``validate`` checks the blocks.
    estimator : estimator
        The estimator, whose ``n_features_in_`` and ``feature_names_in_`` are set or compared.
    reset : bool, default=True
        Whether to set them.
    once : bool, default=False
        Whether one pass is sufficient, so that an iterator is allowed.

    Returns
    -------
    Rows
        The rows.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome import KernelPCA
    >>> from orthodrome.kernels import Gaussian
    >>> rows = as_rows([np.ones((3, 2)), np.zeros((4, 2))], Gaussian(), KernelPCA())
    >>> rows.shape, rows.take(np.array([2, 5])).tolist()
    ((7, 2), [[1.0, 1.0], [0.0, 0.0]])
    """
    X = as_numpy(X, "X", type(estimator).__name__)
    kind = "array" if isinstance(X, np.ndarray) else kind_of(X, kernel)
    if kind != "array" and isinstance(kernel, Precomputed):
        raise ValueError(
            f"{type(estimator).__name__} needs a precomputed Gram matrix as one array, in memory "
            f"or memory-mapped, not {'as a dask array' if kind == 'dask' else 'in blocks'}."
        )
    if kind in _INDEXED:
        return _INDEXED[kind](X, kernel, estimator, reset=reset)
    if kind == "once" and reset and not once:
        partial = ", or partial_fit" if hasattr(estimator, "partial_fit") else ""
        raise once_error(X, f"fit of {type(estimator).__name__}", partial)
    return BatchRows(X, kernel, estimator, reset=reset, count=not once)
