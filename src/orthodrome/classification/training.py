"""Distinct training points of all classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._core.canonical import Canonical, canonical_gram, canonical_rows
from .._core.memory import format_bytes, parse_bytes
from .._core.threads import single_threaded_blas
from .._core.types import Floats, Indices
from ..rows.base import stacked
from .subspaces import SMALL_CLASS


@dataclass(frozen=True)
class TrainingPoints:
    """Distinct training points of all classes, sorted by class, for leave-one-out.

    The names of the fields are part of the format of model files.

    Attributes
    ----------
    data : array
        The points; empty for a precomputed kernel.
    weights, index, owners : ndarray of shape (n,)
        For each point: its weight, the index of a training row equal to it, and its class.
    inverse : ndarray of shape (n_rows,)
        For each training row, the index of its point; -1 for rows of weight 0 without a point.
    spans : ndarray of bool, shape (n,)
        Whether the point is one of those that span the subspace of its class.
    unmatched : array
        Data of the rows of weight 0 that are not equal to any point.
    gram : ndarray or None
        The precomputed Gram matrix of all training rows.
    prepared : Prepared or None
        The points, prepared by the kernel. Kernels that differ only in scale share them. None if
        each class has a different kernel.
    """

    data: Any
    weights: Floats
    index: Indices
    owners: Indices
    inverse: Indices
    spans: NDArray[np.bool_]
    unmatched: Any
    gram: Any = None
    prepared: Any = None

    @property
    def sizes(self) -> Indices:
        """Number of points that span the subspace of each class."""
        return np.bincount(self.owners[self.spans])

    def blas(self) -> AbstractContextManager[None]:
        """Limit BLAS to one thread for small matrices, where more threads are slower."""
        return single_threaded_blas() if self.sizes.max() <= SMALL_CLASS else nullcontext()


@dataclass(frozen=True)
class _Training:
    """Training points of each class, in model files of 0.1.0.dev0."""

    members: list[Indices]
    merged: list[Canonical]
    chosen: list[Indices]
    n_rows: int
    unmatched_data: Any

    def converted(self) -> TrainingPoints:
        """Return the points of all classes."""
        joined = _joined(self.members, self.merged, self.n_rows)
        pairs = zip(self.merged, self.chosen, strict=True)
        spans = [np.isin(np.arange(len(found.weights)), chosen) for found, chosen in pairs]
        data = stacked([found.data for found in self.merged])
        return TrainingPoints(data, *joined, np.concatenate(spans), self.unmatched_data)


def _joined(
    members: Sequence[Indices], merged: Sequence[Canonical], n_rows: int
) -> tuple[Floats, Indices, Indices, Indices]:
    """Join the points of all classes; return weights, index, owners and inverse."""
    sizes = np.array([len(found.weights) for found in merged])
    inverse = np.full(n_rows, -1)
    for start, rows, found in zip(np.cumsum(sizes) - sizes, members, merged, strict=True):
        inverse[rows] = np.where(found.inverse < 0, -1, start + found.inverse)
    index = [rows[found.index] for rows, found in zip(members, merged, strict=True)]
    weights = np.concatenate([found.weights for found in merged])
    return weights, np.concatenate(index), np.repeat(np.arange(len(sizes)), sizes), inverse


def training_points(
    X: Any,
    classes: Indices,
    sample_weight: Floats | None,
    precomputed: bool,
    draw: Callable[[int], Indices],
) -> TrainingPoints:
    """Merge equal points of each class; ``draw(n)`` chooses which of n points span the class.

    `classes` are the numbers of the classes, -1 for rows without a class.
    """
    rows = np.flatnonzero(classes >= 0)
    given = np.ones(len(classes)) if sample_weight is None else sample_weight
    if precomputed:
        order = rows[np.argsort(classes[rows], kind="stable")]
        members = np.split(order, np.flatnonzero(np.diff(classes[order])) + 1)
        merged = [canonical_gram(X[np.ix_(part, part)], given[part]) for part in members]
        weights, index, owners, inverse = _joined(members, merged, len(classes))
    else:
        # with the class as the first column, rows are merged within classes and sorted by class
        found = canonical_rows(_with_column(classes[rows], X[rows]), given[rows])
        weights, index = found.weights, rows[found.index]
        owners, inverse = classes[index], np.full(len(classes), -1)
        inverse[rows] = found.inverse
    sizes = np.bincount(owners)
    starts = np.cumsum(sizes) - sizes
    spanning = [start + draw(size) for start, size in zip(starts, sizes, strict=True)]
    spans = np.zeros(len(index), dtype=bool)
    spans[np.concatenate(spanning)] = True
    data, gram = (X[:0], X) if precomputed else (X[index], None)
    return TrainingPoints(data, weights, index, owners, inverse, spans, X[inverse < 0], gram)


def _with_column(column: Indices, X: Any) -> Any:
    """Flatten X to two dimensions and prepend a column."""
    if scipy.sparse.issparse(X):
        first = scipy.sparse.csr_array(column[:, None].astype(X.dtype))
        return scipy.sparse.hstack([first, X], format="csr")
    return np.column_stack([column, X.reshape(len(X), -1)])


def check_memory(sizes: Indices, memory_budget: Any, owner: str) -> None:
    """Raise if the matrices of the classes exceed the memory budget."""
    # in float64: each matrix and its eigenvectors, and workspace for the largest
    largest, budget = int(sizes.max()), parse_bytes(memory_budget)
    needed = 2 * 8 * int(np.sum(sizes.astype(np.int64) ** 2)) + 4 * 8 * largest**2
    if needed > max(budget, 2**23):  # always allow a few megabytes
        raise ValueError(
            f"{owner} decomposes the Gram matrix of each class, {largest} x {largest} for the "
            f"largest. This needs {format_bytes(needed)}, but memory_budget is "
            f"{format_bytes(budget)}. Raise memory_budget, or fit to fewer points."
        )
