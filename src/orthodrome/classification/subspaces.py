"""The training points of a class, and what is captured of other points by their span."""

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

__all__ = [
    "ClassPoints",
    "Subspace",
    "captured_by_each",
    "check_lengths",
    "check_overflow",
    "over_classes",
]

# Kernel values of new points held at once: 32 MiB in float64.
BLOCK_ELEMENTS = 2**22

# Up to this many points in a class one thread decomposes its matrix as fast as several.
SMALL_CLASS = 512

# Columns of triangular directions that are multiplied at once.
PANEL = 96

# Beyond these k(x, x) has no square, or none to be divided by a small α.
_LARGEST, _SMALLEST = 1e140, 1e-140

Result = TypeVar("Result")


@dataclass(frozen=True)
class ClassPoints:
    """The training points of one class, each different one once.

    The first n of them span its subspace.

    Attributes
    ----------
    kernel : Kernel
        The fitted kernel of the class.
    data : array, sparse array or None
        The points that span the subspace; None for a precomputed kernel.
    points : Prepared or None
        The same as the kernel has prepared them.
    every : ndarray of shape (n_points,)
        For each point of the class a row of the training data that equals it.
    every_weight : ndarray of shape (n_points,)
        Their weights.
    gram : ndarray of shape (n, n)
        The Gram matrix of those that span the subspace.
    entry_size : float or None
        How large the terms are whose difference an entry of it is, if that is more.
    """

    kernel: Kernel
    data: Any
    points: Any
    every: NDArray[np.intp]
    every_weight: NDArray[np.float64]
    gram: NDArray[Any]
    entry_size: float | None

    @property
    def index(self) -> NDArray[np.intp]:
        """Rows of the training data that equal the points that span the subspace."""
        return self.every[: len(self.gram)]

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights of the points that span the subspace."""
        return self.every_weight[: len(self.gram)]

    @cached_property
    def spectrum(self) -> ClassSpectrum:
        """The eigendecomposition of the Gram matrix."""
        return class_spectrum(self.gram, self.weights, entry_size=self.entry_size)

    def subspace(self, kept: Filter | None = None) -> Subspace:
        """Return what is needed to place other points: all directions, or those of a filter."""
        if kept is None:
            return self._spanned_by(self.spectrum.directions())
        if "spectrum" not in self.__dict__ and self.kernel.positive_definite:
            found = kept.directions(self.gram, self.weights)
            if found is not None:
                return self._spanned_by(found, triangular=True)
        gains = kept.gains(self.spectrum)
        # there is always one column; the first has the largest eigenvalue
        chosen = np.union1d([0], np.flatnonzero(gains))
        return self._spanned_by(self.spectrum.directions()[:, chosen] * np.sqrt(gains[chosen]))

    def _spanned_by(self, directions: NDArray[Any], *, triangular: bool = False) -> Subspace:
        return Subspace(self.kernel, self.points, self.index, directions, triangular)


@dataclass(frozen=True)
class Subspace:
    """The span of a class: its points, and combinations of them, which may be triangular.

    The points are as the kernel has prepared them, None for a precomputed kernel.
    """

    kernel: Kernel
    points: Any
    index: NDArray[np.intp]
    directions: NDArray[Any]
    triangular: bool = False

    def captured(self, new: Any, gains: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return what the class captures of points: the sum of the squares along the directions.

        Or one for each column of gains. The points are as the kernel has prepared them; of a matrix
        of kernel values, some of its rows. Kernel values are made for some points at a time.
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
        """Return the sums of squares without the products with what is zero above the diagonal."""
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
    largest = float(np.abs(squares).max())  # of float32 too
    if 0 < largest < _SMALLEST:
        raise ValueError(
            f"k(x, x) is {largest:g} at the most, so small that its square "
            "underflows; rescale the data, or the Gram matrix."
        )
    if not squares.any() and any(points.gram.any() for points in classes):
        raise ValueError(
            "k(x, x) is 0 for all training points, and other kernel values are not: they are no "
            "inner products, and points have no lengths. Kernels that are conditionally definite, "
            "such as Power and Log, are for distances alone; choose another one."
        )
    weights = np.concatenate([points.weights for points in classes])
    mean = float(np.average(squares, weights=weights))
    if mean < 0:
        raise ValueError(
            f"The mean of k(x, x) over the training points is {mean:g}, and squared lengths are "
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
    """Return ``function(number)`` of each class; small classes are computed in threads.

    The function decomposes the matrix of the class, or evaluates `rows` new points.
    The calling thread, and no other, calls ``report(fraction)`` as classes are done.
    """
    order = np.argsort(sizes, kind="stable")[::-1]  # so that the shares are of about one size
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
    """Return k(x, x), None if it is not known, and what each class captures, a column for each.

    Of k(x, x) too there is a column for each class. Points are prepared and kernel values made for
    some rows of X at a time.
    """
    sizes = [len(subspace.index) for subspace in subspaces]
    serial = not subspaces[0].kernel.threadsafe
    step = max(1, BLOCK_ELEMENTS // max(sizes))
    diagonals, taken = [], []
    for start in range(0, X.shape[0], step):
        rows = X[start : start + step]
        numbers = np.arange(start, start + rows.shape[0])
        if subspaces[0].points is None:
            with rows_renumbered(numbers):
                check_overflow(np.abs(rows).max(axis=1))
            taken.append(np.hstack([subspace.captured(rows) for subspace in subspaces]))
            continue
        kernels = {id(one.kernel): one.kernel for one in subspaces}  # classes often share one
        with rows_renumbered(numbers):
            prepared = {key: kernel.prepare(rows) for key, kernel in kernels.items()}
            parts = [prepared[id(one.kernel)] for one in subspaces]
            pairs = zip(subspaces, parts, strict=True)
            diagonals.append(np.column_stack([one.kernel.diagonal(new) for one, new in pairs]))
            check_overflow(diagonals[-1].max(axis=1))

        def captured_by(number: int, parts: list[Any] = parts) -> NDArray[np.float64]:
            return subspaces[number].captured(parts[number])

        taken.append(np.hstack(over_classes(captured_by, sizes, rows=len(numbers), serial=serial)))
    return np.concatenate(diagonals) if diagonals else None, np.concatenate(taken)
