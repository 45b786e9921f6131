"""The training points of a class, and what is captured of other points by their span."""

from __future__ import annotations

from collections.abc import Iterator
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
        if gains is None:
            gains = np.ones((self.directions.shape[1], 1))
        own, taken = [], []
        with single_threaded_blas():
            for diagonal, cross in self._blocks(X):
                own.append(diagonal)
                taken.append(captured(cross @ self.directions, gains))
        known = None if self.data is None else np.concatenate(own)
        return known, np.concatenate(taken)

    def _blocks(self, X: Any) -> Iterator[tuple[Any, Any]]:
        step = max(1, BLOCK_ELEMENTS // len(self.index))
        blocks = [slice(start, start + step) for start in range(0, X.shape[0], step)]
        if self.data is None:
            for rows in blocks:
                yield None, cross_operator(self.kernel, X[rows][:, self.index], None)
            return
        points = self.kernel.prepare(self.data)
        for rows in blocks:
            try:
                new = self.kernel.prepare(X[rows])
            except ValueError:
                # a message that names a row should name the caller's, not that of the block
                self.kernel.prepare(X)
                raise
            yield self.kernel.diagonal(new), CrossGram(self.kernel, new, points)
