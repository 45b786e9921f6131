"""Span of the training points of each class, and the part of new points that it captures.

Classes with the same number of points form groups, which are decomposed and evaluated together. A
large class is a group of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._core.canonical import Canonical, canonical_gram, canonical_rows
from .._core.checks import RowError, rows_renumbered
from .._core.memory import format_bytes, parse_bytes
from .._core.threads import VALUE_WORK, run_in_threads, single_threaded_blas
from .._core.types import Floats, Indices
from ..gram import cross_operator
from ..gram.tiled import CrossGram
from ..kernels import Kernel
from ..kernels.base import rectangular_block, symmetric_block
from ..rows.base import stacked
from .filters import (
    ClassSpectrum,
    Filter,
    class_spectrum,
    squared_lengths,
    squared_magnitudes,
    tie_within_rounding,
)


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


# Maximum number of kernel values of new points in memory: 32 MiB in float64.
BLOCK_ELEMENTS = 2**22

# Maximum number of points of a group of classes.
GROUP_POINTS = 512

# Maximum size of a class whose matrix one thread decomposes as fast as more threads.
SMALL_CLASS = 512

# Number of columns of triangular directions in a product.
PANEL = 96

# Allowed range of k(x, x). Outside it, k(x, x)² / α overflows or underflows for small α.
_MAX_DIAGONAL, _MIN_DIAGONAL = 1e140, 1e-140

Result = TypeVar("Result")


@dataclass(frozen=True)
class ClassGroup:
    """Distinct training points that span the subspaces of G classes, n points for each class.

    Attributes
    ----------
    kernel : Kernel
        The fitted kernel of these classes.
    data : array, sparse array or None
        The points of a single class with its own kernel, else None.
    points : Prepared or None
        All G n points, prepared by the kernel; None for a precomputed kernel.
    classes : ndarray of shape (G,)
        The number of each class, ascending.
    members : ndarray of shape (G, n)
        Numbers of the points among all training points.
    index : ndarray of shape (G, n)
        Training row of each point.
    weights : ndarray of shape (G, n)
        Weights of the points.
    gram : ndarray of shape (G, n, n)
        Gram matrix of each class.
    entry_size : float or None
        As in :func:`~orthodrome.classification.filters.class_spectrum`.
    """

    kernel: Kernel
    data: Any
    points: Any
    classes: Indices
    members: Indices
    index: Indices
    weights: Floats
    gram: NDArray[Any]
    entry_size: float | None

    @cached_property
    def spectrum(self) -> ClassSpectrum:
        """The eigendecomposition of the Gram matrices."""
        return class_spectrum(self.gram, self.weights, entry_size=self.entry_size)

    @property
    def diagonals(self) -> Floats:
        """k(x, x) of the points, shape (G, n)."""
        return np.diagonal(self.gram, axis1=1, axis2=2).real

    def subspace(self, directions: NDArray[Any], *, triangular: bool = False) -> Subspace:
        """Return the subspaces with these directions."""
        return Subspace(self.kernel, self.points, self.index, directions, triangular, self.classes)

    def filtered(self, kept: Filter, alphas: Floats) -> Subspace:
        """Return the subspaces with the directions of a filter times its gains.

        `alphas` has shape (G,). For a single class with a large α, triangular directions are
        accurate; they are used instead of the spectrum, which is then not computed.
        """
        is_single = len(self.classes) == 1 and "spectrum" not in vars(self)
        if is_single and self.kernel.positive_definite:
            found = kept.directions(self.gram[0], self.weights[0], float(alphas[0]))
            if found is not None:
                return self.subspace(found[None], triangular=True)
        gains = kept.gains(self.spectrum, alphas[:, None])[..., 0]
        # keep at least one column; the first has the largest eigenvalue
        chosen = np.union1d([0], np.flatnonzero(gains.any(axis=0)))
        directions = self.spectrum.directions()[..., chosen] * np.sqrt(gains[:, None, chosen])
        return self.subspace(directions)


def diagonal_blocks(kernel: Kernel, points: Any, n_classes: int) -> NDArray[Any]:
    """Return the Gram matrix of each class, shape (G, n, n), from the points of all G classes."""
    whole = symmetric_block(kernel, points)
    if n_classes == 1:
        return whole[None]
    n = len(points) // n_classes
    blocks = whole.reshape(n_classes, n, n_classes, n)
    numbers = np.arange(n_classes)
    return blocks[numbers, :, numbers]


@dataclass(frozen=True)
class Subspace:
    """Span of G classes: their points, and directions as linear combinations of them.

    The points are prepared by the kernel; they are None for a precomputed kernel. `directions` has
    shape (G, n, n_directions). In old model files a subspace belongs to one class, and `index` and
    `directions` have one dimension less.
    """

    kernel: Kernel
    points: Any
    index: Indices
    directions: NDArray[Any]
    triangular: bool = False
    classes: Any = None

    def captured(self, new: Any, gains: Floats | None = None) -> Floats:
        """Return the sum of squared projections of points on the directions, shape (G, m, 1).

        With gains, of shape (G, n, A), return weighted sums, shape (G, m, A). New points are
        prepared by the kernel, or are rows of a matrix of kernel values.
        """
        n_classes, n, _ = self.directions.shape
        with single_threaded_blas():
            if n_classes == 1 and not (self.triangular and n <= SMALL_CLASS):
                if self.points is None:
                    cross: Any = cross_operator(self.kernel, new[:, self.index[0]], None)
                else:
                    cross = CrossGram(self.kernel, new, self.points)
                projections = (cross @ self.directions[0])[None]  # in threads
            else:
                values = self._values(new)
                if self.triangular:
                    return self._captured_by_panels(values)[None, :, None]
                stack = values.reshape(len(new), n_classes, n).transpose(1, 0, 2)
                projections = stack @ self.directions
            if gains is None:
                return squared_lengths(projections)[..., None]
            return squared_magnitudes(projections) @ gains

    def _values(self, new: Any) -> NDArray[Any]:
        """Return kernel values of new points with the points of all G classes."""
        if self.points is None:
            return new[:, self.index.ravel()]
        return rectangular_block(self.kernel, new, self.points)

    def _captured_by_panels(self, values: NDArray[Any]) -> Floats:
        """Return sums of squared projections; skip the zeros above the diagonal."""
        total = np.zeros(len(values))
        for start in range(0, values.shape[1], PANEL):
            panel = self.directions[0, start:, start : start + PANEL]
            total += squared_lengths(values[:, start:] @ panel)
        return total


def in_groups(subspaces: Sequence[Subspace]) -> list[Subspace]:
    """Return subspaces with the number of each class; those of old files have one class each."""
    return [
        one
        if one.classes is not None
        else replace(
            one, index=one.index[None], directions=one.directions[None], classes=np.array([number])
        )
        for number, one in enumerate(subspaces)
    ]


def row_blocks(n_rows: int, width: int) -> list[slice]:
    """Return slices of rows with at most `BLOCK_ELEMENTS` elements for this row width."""
    step = max(1, BLOCK_ELEMENTS // width)
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def check_overflow(diagonal: NDArray[Any]) -> None:
    """Raise if k(x, x) is so large that squares of kernel values overflow."""
    if len(diagonal) and float(diagonal.max()) > _MAX_DIAGONAL:
        largest = int(np.argmax(diagonal))
        raise RowError(
            f"k(x, x) is {diagonal[largest]:g} at row {{0}} of X, so large that its square "
            "overflows. Rescale the data or the Gram matrix.",
            largest,
        )


def check_diagonals(groups: Sequence[ClassGroup]) -> None:
    """Raise if squares of kernel values over- or underflow, or squared norms are negative."""
    diagonal = np.concatenate([group.diagonals.ravel() for group in groups])
    with rows_renumbered(np.concatenate([group.index.ravel() for group in groups])):
        check_overflow(diagonal)
    largest = float(np.abs(diagonal).max())
    if 0 < largest < _MIN_DIAGONAL:
        raise ValueError(
            f"k(x, x) is at most {largest:g}, so small that its square underflows. Rescale the "
            "data or the Gram matrix."
        )
    if not diagonal.any() and any(group.gram.any() for group in groups):
        raise ValueError(
            "k(x, x) is 0 for all training points, but other kernel values are not. Conditionally "
            "definite kernels, such as Power and Log, define distances but no norms. Choose "
            "another kernel."
        )
    mean = mean_square(groups)
    if mean < 0:
        raise ValueError(
            f"The mean of k(x, x) over the training points is {mean:g}, but squared norms are "
            "not negative. Choose another kernel, or add a constant to the diagonal of the matrix."
        )


def mean_square(groups: Sequence[ClassGroup]) -> float:
    """Return the weighted mean of k(x, x) over the points of all classes."""
    total = sum(float(np.sum(group.weights * group.diagonals)) for group in groups)
    return total / sum(float(group.weights.sum()) for group in groups)


def over_groups(
    function: Callable[[int], Result],
    shapes: Sequence[tuple[int, int]],
    *,
    rows: int | None = None,
    serial: bool = False,
    report: Callable[[float], None] = lambda fraction: None,
) -> list[Result]:
    """Return ``function(number)`` for each group of shape (G, n); use threads for small classes.

    The function decomposes the matrices of the group, or evaluates `rows` new points. Only the
    calling thread calls ``report(fraction)``.
    """
    G, n = np.array(shapes, dtype=np.float64).T
    work = 10 * G * n**3 if rows is None else rows * G * n * (VALUE_WORK + n)
    order = np.argsort(work, kind="stable")[::-1]  # balances the work of the threads
    found: dict[int, Result] = {}
    caller = threading.get_ident()

    def run_worker(worker: int, n_workers: int) -> None:
        for number in order[worker::n_workers]:
            found[int(number)] = function(int(number))
            if threading.get_ident() == caller:
                report(len(found) / len(order))

    serial = serial or n.max() > SMALL_CLASS
    run_in_threads(run_worker, len(order), serial=serial, work=float(work.sum()))
    report(1.0)
    return [found[number] for number in range(len(order))]


def class_residuals(subspaces: Sequence[Subspace], X: Any, mean_diagonal: float | None) -> Floats:
    """Return the residual of each row from each class, computed in blocks of rows.

    With a precomputed kernel, k(x, x) is not known and is replaced by `mean_diagonal`, or by the
    largest part that a class captures.
    """
    shapes = [one.index.shape for one in subspaces]
    n_classes = sum(G for G, _ in shapes)
    kernels = {id(one.kernel): one.kernel for one in subspaces}  # often shared
    residuals = np.empty((X.shape[0], n_classes))
    for block in row_blocks(X.shape[0], max(n_classes, *(G * n for G, n in shapes))):
        rows = X[block]
        with rows_renumbered(np.arange(block.start, block.stop)):
            if mean_diagonal is not None:
                check_overflow(np.abs(rows).max(axis=1))
                points = dict.fromkeys(kernels, rows)
                diagonals: dict[int, Any] = dict.fromkeys(kernels, 0.0)
            else:
                points = {key: kernel.prepare(rows) for key, kernel in kernels.items()}
                diagonals = {key: kernels[key].diagonal(new) for key, new in points.items()}
                largest = np.max(list(diagonals.values()), axis=0)
                check_overflow(largest)

        def captured(number: int, points: dict[int, Any] = points) -> Floats:
            return subspaces[number].captured(points[id(subspaces[number].kernel)])

        serial = not subspaces[0].kernel.threadsafe
        parts = over_groups(captured, shapes, rows=rows.shape[0], serial=serial)
        for one, part in zip(subspaces, parts, strict=True):
            residuals[block, one.classes] = (diagonals[id(one.kernel)] - part[..., 0]).T
        if mean_diagonal is not None:
            largest = np.maximum(-residuals[block].min(axis=1), mean_diagonal)
            residuals[block] += largest[:, None]
        residuals[block] = tie_within_rounding(residuals[block], largest)
    return residuals
