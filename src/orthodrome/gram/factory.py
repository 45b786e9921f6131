"""Gram operators of a kernel and data, within a memory budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import NotFittedError

from .._core.checks import check_choice, check_not_masked
from .._core.kinds import is_dask_array
from .._core.memory import format_bytes, parse_bytes
from ..kernels import Kernel, NeighborGraph, Precomputed
from ..kernels.base import Prepared
from .base import CrossOperator, DenseGram, GramOperator, MatrixCross, SparseGram
from .dask_gram import DaskCross, DaskGram
from .tiled import CrossGram, TiledGram, stored_bytes


def gram_operator(
    kernel: Kernel, X: Any, *, memory_budget: str | float = "2GiB", storage: str = "auto"
) -> GramOperator:
    """Make the Gram operator of a fitted kernel on validated data.

    Parameters
    ----------
    kernel : Kernel
        A fitted kernel; with :class:`~orthodrome.kernels.Precomputed`, X is the matrix itself.
    X : validated data
        Result of ``kernel.validate``; or a dask array of such rows, whose kernel values are
        evaluated for every product, regardless of the budget.
    memory_budget : str or number, default="2GiB"
        Maximum memory of the stored matrix.
    storage : {"auto", "memory", "disk", "recompute"}, default="auto"
        ``"memory"`` stores half of the symmetric matrix, ``"disk"`` stores it in a temporary file,
        ``"recompute"`` evaluates it for each product. ``"auto"`` uses "memory" if
        the matrix fits in the budget. Otherwise it uses "recompute", or "disk" for kernels given as
        Python callables, which may be slow.

    Returns
    -------
    GramOperator
        The operator; its products do not depend on the storage.
    """
    check_ready(kernel, X, "gram_operator")
    if is_dask_array(X):
        return DaskGram(kernel, X)
    if isinstance(kernel, NeighborGraph):
        return SparseGram(kernel.graph().astype(X.dtype))
    if isinstance(kernel, Precomputed):  # validate has checked it
        return SparseGram(X) if scipy.sparse.issparse(X) else DenseGram(X, check=False)
    return TiledGram(kernel, X, choose_storage(kernel, X, memory_budget, storage)[0])


def cross_operator(kernel: Kernel, X_new: Any, X: Any) -> CrossOperator:
    """Make the operator k(X_new, X) of a fitted kernel; its products are evaluated in tiles.

    With a precomputed kernel, X_new contains the kernel values and X is ignored. X may be the
    result of :func:`prepared_points`, for many operators with the same X.
    """
    check_ready(kernel, X_new, "cross_operator", "X_new")
    if not isinstance(kernel, Precomputed) and not isinstance(X, Prepared):
        check_ready(kernel, X, "cross_operator")
    if is_dask_array(X) or is_dask_array(X_new):
        return DaskCross(kernel, X_new, X)
    if isinstance(kernel, NeighborGraph):
        return MatrixCross(kernel.new_edges(X_new, X).astype(X_new.dtype))
    if isinstance(kernel, Precomputed):
        return MatrixCross(X_new)
    return CrossGram(kernel, kernel.prepare(X_new), prepared_points(kernel, X))


def prepared_points(kernel: Kernel, X: Any) -> Any:
    """Return points prepared by a fitted kernel; dask arrays and None are returned unchanged."""
    return X if X is None or isinstance(X, Prepared) or is_dask_array(X) else kernel.prepare(X)


def check_ready(kernel: Any, X: Any, owner: str, name: str = "X") -> None:
    """Raise unless a kernel is fitted and real, and X has the form of validated data."""
    _check_form(kernel, X, owner, name)
    kind = type(kernel).__name__
    if kernel.hermitian:
        raise ValueError(
            f"The kernel {kind} has complex values; {owner} needs real ones. For shapes, use "
            "VeroneseWhitney."
        )
    if is_dask_array(X) or isinstance(kernel, Precomputed):
        return
    if not kernel.__sklearn_is_fitted__():
        raise NotFittedError(f"{kind} of {owner} is not fitted: call fit(X) first.")
    if kernel.takes_vectors and X.shape[1] != kernel.n_features_in_:
        raise ValueError(
            f"{name} of {owner} has {X.shape[1]} features; {kind} was fitted to "
            f"{kernel.n_features_in_}."
        )


def _check_form(kernel: Any, X: Any, owner: str, name: str) -> None:
    """Raise unless X has the type and the shape of validated data for a kernel."""
    if not isinstance(kernel, Kernel):
        raise ValueError(f"kernel of {owner} must be a fitted Kernel; got {kernel!r}.")
    if is_dask_array(X):
        return
    shape: tuple[int, ...] = getattr(X, "shape", ())
    dtype, vectors = getattr(X, "dtype", None), kernel.takes_vectors
    has_rows = len(shape) >= 2 and shape[0] > 0 and (len(shape) == 2 or not vectors)
    is_complex = getattr(dtype, "kind", "") == "c"
    is_number = dtype in (np.float64, np.float32) or (is_complex and not vectors)
    may_be_sparse = kernel.accepts_sparse or isinstance(kernel, Precomputed)
    if not has_rows or not is_number or (scipy.sparse.issparse(X) and not may_be_sparse):
        found = type(X).__name__ if dtype is None else f"{dtype} of shape {shape}"
        raise ValueError(
            f"{name} of {owner} must be validated data of at least one row; got {found}. Call "
            "kernel.validate(X) first."
        )
    check_not_masked(X, name, owner)


def choose_storage(
    kernel: Kernel, X: Any, memory_budget: str | float, storage: str
) -> tuple[str, str]:
    """Return the storage that :func:`gram_operator` would use, and the reason."""
    _check_form(kernel, X, "choose_storage", "X")
    check_choice(storage, ("auto", "memory", "disk", "recompute"), "storage", "the Gram operator")
    needed = stored_bytes(X.shape[0], X.dtype.itemsize)
    what = "half of the Gram matrix takes"
    return storage_within(memory_budget, storage, needed, what, slow=not kernel.threadsafe)


def storage_within(
    memory_budget: str | float, storage: str, needed: int, what: str, *, slow: bool
) -> tuple[str, str]:
    """Return how to store `needed` bytes, and the reason.

    If kernel values are `slow` to compute, "auto" stores them on disk instead of recomputing them.
    """
    budget = parse_bytes(memory_budget)
    comparison = f"{what} {format_bytes(needed)}, the budget is {format_bytes(budget)}"
    if storage == "memory" and needed > budget:
        raise ValueError(
            f"storage='memory' does not fit: {comparison}. Raise memory_budget, or use "
            "storage='auto'."
        )
    if storage != "auto":
        return storage, f"requested; {comparison}"
    if needed <= budget:
        return "memory", comparison
    return "disk" if slow else "recompute", comparison
