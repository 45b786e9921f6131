"""Span of the training points of each class, and the part of new points that it captures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._core.checks import RowError, rows_renumbered
from .._core.threads import VALUE_WORK, run_in_threads, single_threaded_blas
from ..gram import cross_operator
from ..gram.tiled import CrossGram
from ..kernels import Kernel
from .filters import ClassSpectrum, Filter, captured, class_spectrum, squared_lengths

# Maximum number of kernel values of new points in memory: 32 MiB in float64.
BLOCK_ELEMENTS = 2**22

# Maximum size of a class whose matrix one thread decomposes as fast as more threads.
SMALL_CLASS = 512

# Number of columns of triangular directions in a product.
PANEL = 96

# Range of k(x, x): outside, its square, divided by a small α, overflows or underflows.
_MAX_DIAGONAL, _MIN_DIAGONAL = 1e140, 1e-140

Result = TypeVar("Result")


@dataclass(frozen=True)
class ClassPoints:
    """Distinct training points that span the subspace of one class.

    Attributes
    ----------
    kernel : Kernel
        The fitted kernel of the class.
    data : array, sparse array or None
        The points; None for a precomputed kernel.
    points : Prepared or None
        The points, prepared by the kernel.
    index : ndarray of shape (n,)
        Training row of each point.
    weights : ndarray of shape (n,)
        Weights of the points.
    gram : ndarray of shape (n, n)
        Gram matrix of the points.
    entry_size : float or None
        As in :func:`~orthodrome.classification.filters.class_spectrum`.
    """

    kernel: Kernel
    data: Any
    points: Any
    index: NDArray[np.intp]
    weights: NDArray[np.float64]
    gram: NDArray[Any]
    entry_size: float | None

    @cached_property
    def spectrum(self) -> ClassSpectrum:
        """The eigendecomposition of the Gram matrix."""
        return class_spectrum(self.gram, self.weights, entry_size=self.entry_size)

    def subspace(self, kept: Filter | None = None) -> Subspace:
        """Return the subspace, with all directions or with those of a filter times its gains."""
        directions = None
        if kept and "spectrum" not in self.__dict__ and self.kernel.positive_definite:
            directions = kept.directions(self.gram, self.weights)
        triangular = directions is not None
        if directions is None:
            directions = self.spectrum.directions()
            if kept:
                gains = kept.gains(self.spectrum)
                # keep at least one column; the first has the largest eigenvalue
                chosen = np.union1d([0], np.flatnonzero(gains))
                directions = directions[:, chosen] * np.sqrt(gains[chosen])
        return Subspace(self.kernel, self.points, self.index, directions, triangular)


@dataclass(frozen=True)
class Subspace:
    """Span of a class: its points, and directions as linear combinations of them.

    The points are prepared by the kernel; they are None for a precomputed kernel.
    """

    kernel: Kernel
    points: Any
    index: NDArray[np.intp]
    directions: NDArray[Any]
    triangular: bool = False

    def captured(self, new: Any, gains: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the sum of squared projections of points on the directions, as one column.

        With gains, return a weighted sum for each of their columns. New points are prepared by the
        kernel, or are rows of a matrix of kernel values. Kernel values are computed in blocks.
        """
        step = max(1, BLOCK_ELEMENTS // len(self.index))
        if len(new) > step:
            starts = range(0, len(new), step)
            return np.concatenate([self.captured(new[i : i + step], gains) for i in starts])
        if self.points is None:
            cross: Any = cross_operator(self.kernel, new[:, self.index], None)
        else:
            cross = CrossGram(self.kernel, new, self.points)
        with single_threaded_blas():
            if self.triangular and len(self.index) <= SMALL_CLASS:
                return self._captured_by_panels(cross.toarray())[:, None]
            projections = cross @ self.directions
            if gains is None:
                return squared_lengths(projections)[:, None]
            return captured(projections, gains)

    def _captured_by_panels(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return sums of squared projections; skip the zeros above the diagonal."""
        total = np.zeros(len(values))
        for start in range(0, len(self.index), PANEL):
            panel = self.directions[start:, start : start + PANEL]
            total += squared_lengths(values[:, start:] @ panel)
        return total


def check_overflow(diagonal: NDArray[Any]) -> None:
    """Raise if k(x, x) is so large that squares of kernel values overflow."""
    if len(diagonal) and float(diagonal.max()) > _MAX_DIAGONAL:
        largest = int(np.argmax(diagonal))
        raise RowError(
            f"k(x, x) is {diagonal[largest]:g} at row {{0}} of X, so large that its square "
            "overflows. Rescale the data or the Gram matrix.",
            largest,
        )


def check_diagonals(classes: Sequence[ClassPoints]) -> None:
    """Raise if squares of kernel values over- or underflow, or squared norms are negative."""
    diagonal = np.concatenate([np.diagonal(points.gram).real for points in classes])
    with rows_renumbered(np.concatenate([points.index for points in classes])):
        check_overflow(diagonal)
    largest = float(np.abs(diagonal).max())
    if 0 < largest < _MIN_DIAGONAL:
        raise ValueError(
            f"k(x, x) is at most {largest:g}, so small that its square underflows. Rescale the "
            "data or the Gram matrix."
        )
    if not diagonal.any() and any(points.gram.any() for points in classes):
        raise ValueError(
            "k(x, x) is 0 for all training points, but other kernel values are not. Conditionally "
            "definite kernels, such as Power and Log, define distances but no norms. Choose "
            "another kernel."
        )
    weights = np.concatenate([points.weights for points in classes])
    mean = float(np.average(diagonal, weights=weights))
    if mean < 0:
        raise ValueError(
            f"The mean of k(x, x) over the training points is {mean:g}, but squared norms are "
            "not negative. Choose another kernel, or add a constant to the diagonal of the matrix."
        )


def over_classes(
    function: Callable[[int], Result],
    sizes: Sequence[int],
    *,
    rows: int | None = None,
    serial: bool = False,
    report: Callable[[float], None] = lambda fraction: None,
) -> list[Result]:
    """Return ``function(number)`` for each class; compute small classes in threads.

    The function decomposes the matrix of the class, or evaluates `rows` new points. Only the
    calling thread calls ``report(fraction)``.
    """
    order = np.argsort(sizes, kind="stable")[::-1]  # balances the work of the threads
    found: dict[int, Result] = {}
    caller = threading.get_ident()

    def run_worker(worker: int, n_workers: int) -> None:
        for number in order[worker::n_workers]:
            found[int(number)] = function(int(number))
            if threading.get_ident() == caller:
                report(len(found) / len(order))

    n = np.asarray(sizes, dtype=float)
    work = float(np.sum(10 * n**3 if rows is None else rows * n * (VALUE_WORK + n)))
    serial = serial or max(sizes) > SMALL_CLASS
    run_in_threads(run_worker, len(order), serial=serial, work=work)
    report(1.0)
    return [found[number] for number in range(len(order))]


def captured_by_each(
    subspaces: Sequence[Subspace], X: Any
) -> tuple[NDArray[Any] | None, NDArray[np.float64]]:
    """Return k(x, x), or None if it is unknown, and the part that each class captures.

    Both have a column for each class. Points and kernel values are computed in blocks.
    """
    sizes = [len(subspace.index) for subspace in subspaces]
    step = max(1, BLOCK_ELEMENTS // max(sizes))
    diagonals, parts = [], []
    for start in range(0, X.shape[0], step):
        rows = X[start : start + step]
        with rows_renumbered(np.arange(start, start + rows.shape[0])):
            if subspaces[0].points is None:
                check_overflow(np.abs(rows).max(axis=1))
                points = [rows] * len(subspaces)
            else:
                kernels = {id(one.kernel): one.kernel for one in subspaces}  # often shared
                prepared = {key: kernel.prepare(rows) for key, kernel in kernels.items()}
                points = [prepared[id(one.kernel)] for one in subspaces]
                pairs = zip(subspaces, points, strict=True)
                diagonals.append(np.column_stack([one.kernel.diagonal(new) for one, new in pairs]))
                check_overflow(diagonals[-1].max(axis=1))

        def captured_by(number: int, points: list[Any] = points) -> NDArray[np.float64]:
            return subspaces[number].captured(points[number])

        serial = not subspaces[0].kernel.threadsafe
        parts.append(np.hstack(over_classes(captured_by, sizes, rows=rows.shape[0], serial=serial)))
    return np.concatenate(diagonals) if diagonals else None, np.concatenate(parts)
