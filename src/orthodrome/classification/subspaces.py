"""The training points of a class, and what is captured of other points by their span."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.threads import single_threaded_blas
from ..eigen import ClassSpectrum, captured
from ..gram import cross_operator
from ..gram.tiled import CrossGram
from ..kernels import Kernel

__all__ = ["ClassPoints", "Subspace"]

# Kernel values of new points held at once: 32 MiB in float64.
BLOCK_ELEMENTS = 2**22


@dataclass(frozen=True)
class ClassPoints:
    """The training points of one class, each different one once, sorted.

    n of them span its subspace; there may be more, beside it, of which is known only where they
    come from.

    Attributes
    ----------
    kernel : Kernel
        The fitted kernel of the class.
    data : array, sparse array or None
        The points; None for a precomputed kernel.
    index : ndarray of shape (n,)
        For each a row of the training data that equals it.
    members : ndarray of shape (n_members,)
        The rows of the training data that belong to the class.
    inverse : ndarray of shape (n_members,)
        For each of them the number of its twin among the n and those beside, or -1: a row of
        weight 0.
    weights : ndarray of shape (n,)
        The weights of the n.
    gram : ndarray of shape (n, n)
        Their Gram matrix.
    spectrum : ClassSpectrum
        Its eigendecomposition.
    beside : ndarray of shape (m,)
        For each point beside the subspace a row of the training data that equals it.
    beside_weights : ndarray of shape (m,)
        Their weights.
    """

    kernel: Kernel
    data: Any
    index: NDArray[np.intp]
    members: NDArray[np.intp]
    inverse: NDArray[np.intp]
    weights: NDArray[np.float64]
    gram: NDArray[Any]
    spectrum: ClassSpectrum
    beside: NDArray[np.intp]
    beside_weights: NDArray[np.float64]

    @property
    def every(self) -> NDArray[np.intp]:
        """For each different point of the class a row of the training data that equals it."""
        return np.concatenate([self.index, self.beside])

    @property
    def every_weight(self) -> NDArray[np.float64]:
        """Their weights."""
        return np.concatenate([self.weights, self.beside_weights])

    @property
    def spanning(self) -> NDArray[np.bool_]:
        """Which of them span the subspace."""
        return np.arange(len(self.index) + len(self.beside)) < len(self.index)

    def subspace(self, gains: NDArray[np.float64] | None = None) -> Subspace:
        """Return what is needed to place other points: all directions, or those with gains."""
        directions = self.spectrum.directions()
        if gains is not None:
            # there is always one column; the first has the largest eigenvalue
            chosen = np.union1d([0], np.flatnonzero(gains))
            directions = directions[:, chosen] * np.sqrt(gains[chosen])
        return Subspace(self.kernel, self.data, self.index, directions)


@dataclass(frozen=True)
class Subspace:
    """The span of a class: its points, and combinations of them."""

    kernel: Kernel
    data: Any
    index: NDArray[np.intp]
    directions: NDArray[Any]

    def captured(
        self, X: Any, gains: NDArray[np.float64] | None = None
    ) -> tuple[NDArray[Any] | None, NDArray[np.float64]]:
        """Return k(x, x), None if it is not known, and what the class captures of each point.

        That is the sum of the squares along the directions, or one for each column of gains. The
        kernel values are made for some rows of X at a time.
        """
        if self.data is None:
            blocks = (
                cross_operator(self.kernel, X[rows][:, self.index], None)
                for rows in self._slices(X)
            )
            return None, self._taken(blocks, gains)
        diagonals = []

        def blocks_of_rows() -> Iterator[CrossGram]:
            points = self.kernel.prepare(self.data)
            for rows in self._slices(X):
                try:
                    new = self.kernel.prepare(X[rows])
                except ValueError:
                    # a message that names a row should name the caller's, not that of the block
                    self.kernel.prepare(X)
                    raise
                diagonals.append(self.kernel.diagonal(new))
                yield CrossGram(self.kernel, new, points)

        taken = self._taken(blocks_of_rows(), gains)
        return np.concatenate(diagonals), taken

    def captured_of_prepared(self, new: Any, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same of points that the kernel has prepared already."""
        points = self.kernel.prepare(self.data)
        blocks = (CrossGram(self.kernel, new[rows], points) for rows in self._slices(new))
        return self._taken(blocks, gains)

    def _slices(self, X: Any) -> list[slice]:
        step = max(1, BLOCK_ELEMENTS // len(self.index))
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        return [slice(start, start + step) for start in range(0, n, step)]

    def _taken(
        self, blocks: Iterable[Any], gains: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        if gains is None:
            gains = np.ones((self.directions.shape[1], 1))
        with single_threaded_blas():
            return np.concatenate([captured(cross @ self.directions, gains) for cross in blocks])
