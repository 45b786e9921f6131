"""Training points of a class, and residuals of other points from their span."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._core.checks import RowError
from .._core.threads import VALUE_WORK, run_in_threads, single_threaded_blas
from ..base import rows_renumbered
from ..gram import cross_operator
from ..gram.tiled import CrossGram
from ..kernels import Kernel
from .filters import ClassSpectrum, Filter, captured, class_spectrum, squared_lengths

# Kernel values of new points computed at once: 32 MiB in float64.
BLOCK_ELEMENTS = 2**22

# Up to this many points in a class one thread decomposes its matrix as fast as several.
SMALL_CLASS = 512

# Columns of triangular directions multiplied at once.
PANEL = 96

# Bounds of k(x, x): beyond, its square, or that divided by a small α, overflows or underflows.
_LARGEST, _SMALLEST = 1e140, 1e-140

Result = TypeVar("Result")


@dataclass(frozen=True)
class ClassPoints:
    """The distinct training points that span the subspace of one class.

    Attributes
    ----------
    kernel : Kernel
        The fitted kernel of the class.
    data : array, sparse array or None
        The points; None for a precomputed kernel.
    points : Prepared or None
        The same, prepared by the kernel.
    index : ndarray of shape (n,)
        The rows of the training data with these points.
    weights : ndarray of shape (n,)
        Their weights.
    gram : ndarray of shape (n, n)
        Their Gram matrix.
    entry_size : float or None
        If entries are differences of larger terms, the size of these terms.
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
        """Return the subspace: all directions, or those of a filter, scaled by its gains."""
        found = None
        if kept and "spectrum" not in self.__dict__ and self.kernel.positive_definite:
            found = kept.directions(self.gram, self.weights)
        triangular = found is not None
        if found is None:
            found = self.spectrum.directions()
            if kept:
                gains = kept.gains(self.spectrum)
                # keep at least one column; the first has the largest eigenvalue
                chosen = np.union1d([0], np.flatnonzero(gains))
                found = found[:, chosen] * np.sqrt(gains[chosen])
        return Subspace(self.kernel, self.points, self.index, found, triangular)


@dataclass(frozen=True)
class Subspace:
    """The span of a class: its points, and directions as combinations of them.

    The points are prepared by the kernel; they are None for a precomputed kernel.
    """

    kernel: Kernel
    points: Any
    index: NDArray[np.intp]
    directions: NDArray[Any]
    triangular: bool = False

    def captured(self, new: Any, gains: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the sum of squared projections of points on the directions, in one column.

        With gains, one weighted sum for each of their columns. New points are prepared by the
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
        """Return sums of squares without products with the zeros above the diagonal."""
        total = np.zeros(len(values))
        for start in range(0, len(self.index), PANEL):
            panel = self.directions[start:, start : start + PANEL]
            total += squared_lengths(values[:, start:] @ panel)
        return total


def check_overflow(squares: NDArray[Any]) -> None:
    """Raise if k(x, x) is so large that squares of kernel values overflow."""
    if len(squares) and float(squares.max()) > _LARGEST:
        worst = int(np.argmax(squares))
        raise RowError(
            f"k(x, x) is {squares[worst]:g} at row {{0}} of X, so large that its square overflows; "
            "rescale the data, or the Gram matrix.",
            worst,
        )


def check_lengths(classes: Sequence[ClassPoints]) -> None:
    """Raise if squares of kernel values over- or underflow, or squared lengths are negative."""
    squares = np.concatenate([np.diagonal(points.gram).real for points in classes])
    with rows_renumbered(np.concatenate([points.index for points in classes])):
        check_overflow(squares)
    largest = float(np.abs(squares).max())
    if 0 < largest < _SMALLEST:
        raise ValueError(
            f"k(x, x) is at most {largest:g}, so small that its square underflows; rescale the "
            "data, or the Gram matrix."
        )
    if not squares.any() and any(points.gram.any() for points in classes):
        raise ValueError(
            "k(x, x) is 0 for all training points, but other kernel values are not: points have no "
            "lengths. Conditionally definite kernels, such as Power and Log, define distances "
            "only; choose another kernel."
        )
    weights = np.concatenate([points.weights for points in classes])
    mean = float(np.average(squares, weights=weights))
    if mean < 0:
        raise ValueError(
            f"The mean of k(x, x) over the training points is {mean:g}, but squared lengths are "
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
    """Return ``function(number)`` for each class; small classes are computed in threads.

    The function decomposes the matrix of the class, or evaluates `rows` new points. Only the
    calling thread calls ``report(fraction)``.
    """
    order = np.argsort(sizes, kind="stable")[::-1]  # so that shares are of similar size
    found: dict[int, Result] = {}
    caller = threading.get_ident()

    def share_of_classes(share: int, n_shares: int) -> None:
        for number in order[share::n_shares]:
            found[int(number)] = function(int(number))
            if threading.get_ident() == caller:
                report(len(found) / len(order))

    n = np.asarray(sizes, dtype=float)
    work = float(np.sum(10 * n**3 if rows is None else rows * n * (VALUE_WORK + n)))
    serial = serial or max(sizes) > SMALL_CLASS
    run_in_threads(share_of_classes, len(order), serial=serial, work=work)
    report(1.0)
    return [found[number] for number in range(len(order))]


def captured_by_each(
    subspaces: Sequence[Subspace], X: Any
) -> tuple[NDArray[Any] | None, NDArray[np.float64]]:
    """Return k(x, x), None if it is not known, and what each class captures.

    Both have a column for each class. Points are prepared, and kernel values computed, in blocks.
    """
    sizes = [len(subspace.index) for subspace in subspaces]
    step = max(1, BLOCK_ELEMENTS // max(sizes))
    diagonals, taken = [], []
    for start in range(0, X.shape[0], step):
        rows = X[start : start + step]
        with rows_renumbered(np.arange(start, start + rows.shape[0])):
            if subspaces[0].points is None:
                check_overflow(np.abs(rows).max(axis=1))
                parts = [rows] * len(subspaces)
            else:
                kernels = {id(one.kernel): one.kernel for one in subspaces}  # often shared
                prepared = {key: kernel.prepare(rows) for key, kernel in kernels.items()}
                parts = [prepared[id(one.kernel)] for one in subspaces]
                pairs = zip(subspaces, parts, strict=True)
                diagonals.append(np.column_stack([one.kernel.diagonal(new) for one, new in pairs]))
                check_overflow(diagonals[-1].max(axis=1))

        def captured_by(number: int, parts: list[Any] = parts) -> NDArray[np.float64]:
            return subspaces[number].captured(parts[number])

        serial = not subspaces[0].kernel.threadsafe
        taken.append(np.hstack(over_classes(captured_by, sizes, rows=rows.shape[0], serial=serial)))
    return np.concatenate(diagonals) if diagonals else None, np.concatenate(taken)
