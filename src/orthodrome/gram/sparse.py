"""Gram operators for matrices given as sparse arrays."""

from __future__ import annotations

from typing import Any

import scipy.sparse
from numpy.typing import ArrayLike

from .._core.types import Array
from .base import CrossOperator, GramOperator, as_indices


class SparseGram(GramOperator):
    """A Gram operator over a symmetric sparse array, such as a graph of neighbours."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(shape=matrix.shape, dtype=matrix.dtype)
        self.matrix = scipy.sparse.csr_array(matrix)

    def _matmat(self, V: Array) -> Array:
        return self.matrix @ V

    def rows(self, indices: ArrayLike) -> Array:
        """Return these rows as a dense array."""
        return self.matrix[as_indices(indices, self.shape[0])].toarray()

    def diagonal(self) -> Array:
        """Return the diagonal."""
        return self.matrix.diagonal()

    def cross(self, X_new: Any) -> SparseCross:
        """Return `X_new` as an operator: a sparse (m, n) array of inner products of new points."""
        return SparseCross(X_new)


class SparseCross(CrossOperator):
    """Inner products of m new points with the n points of a Gram operator.

    They are given as a sparse array of shape (m, n).
    """

    def __init__(self, matrix: Any) -> None:
        super().__init__(shape=matrix.shape, dtype=matrix.dtype)
        self.matrix = scipy.sparse.csr_array(matrix)

    def _matmat(self, V: Array) -> Array:
        return self.matrix @ V

    def rows(self, indices: ArrayLike) -> Array:
        """Return these rows as a dense array."""
        return self.matrix[as_indices(indices, self.shape[0])].toarray()
