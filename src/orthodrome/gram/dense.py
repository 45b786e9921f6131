"""Gram matrices that are given as arrays, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator

from .._core.checks import check_symmetric, numbers_expected
from .._core.threads import run_over_rows
from .._core.types import Array
from .base import CrossOperator, GramOperator, _Operator, as_indices


def _as_floating(matrix: ArrayLike) -> Array:
    if scipy.sparse.issparse(matrix) or isinstance(matrix, LinearOperator):
        raise ValueError(
            f"A Gram matrix must be a dense array or a GramOperator; got {type(matrix).__name__}. "
            "Call toarray() on a sparse matrix."
        )
    with numbers_expected(matrix, "A Gram matrix", "kernel values"):
        array = np.asarray(matrix)
        if np.iscomplexobj(array):
            raise ValueError("A Gram matrix must be real; got complex numbers.")
        return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


class _GivenMatrix(_Operator):
    """An operator over a given array, dense or sparse."""

    matrix: Any

    def _matmat(self, V: Array) -> Array:
        return self.matrix @ V

    def rows(self, indices: ArrayLike) -> Array:
        """Return a copy of these rows as a dense array."""
        rows = self.matrix[as_indices(indices, self.shape[0])]
        return rows.toarray() if scipy.sparse.issparse(rows) else rows


class DenseGram(_GivenMatrix, GramOperator):
    """A Gram operator over a symmetric array: a precomputed kernel, or any dense matrix.

    Parameters
    ----------
    matrix : array-like of shape (n, n)
        The matrix; it is not copied.
    check : bool, default=True
        Whether to check that it is symmetric.
    """

    def __init__(self, matrix: ArrayLike, *, check: bool = True) -> None:
        array = _as_floating(matrix)
        if check:
            check_symmetric(array, "A Gram matrix")
        super().__init__(shape=array.shape, dtype=array.dtype)
        self.matrix = array

    def _matmat(self, V: Array) -> Array:
        work = self.matrix.size * V.shape[1]
        blocks = run_over_rows(lambda rows: self.matrix[rows] @ V, self.shape[0], work=work)
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def toarray(self) -> Array:
        """Return a copy of the matrix."""
        return np.array(self.matrix)

    def diagonal(self) -> Array:
        """Return a copy of the diagonal."""
        return np.array(np.diagonal(self.matrix))

    def cross(self, X_new: Any) -> MatrixCross:
        """Return the operator of a given (m, n) matrix of inner products with new points."""
        matrix, n = _as_floating(X_new), self.shape[0]
        if matrix.ndim != 2 or matrix.shape[1] != n:
            raise ValueError(
                f"The kernel values of new points must have shape (n_new, {n}), one column per "
                f"training point; got {matrix.shape}."
            )
        return MatrixCross(matrix)


class SparseGram(_GivenMatrix, GramOperator):
    """A Gram operator over a symmetric sparse array, such as a graph of neighbours."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(shape=matrix.shape, dtype=matrix.dtype)
        self.matrix = scipy.sparse.csr_array(matrix)

    def diagonal(self) -> Array:
        """Return the diagonal."""
        return self.matrix.diagonal()

    def cross(self, X_new: Any) -> MatrixCross:
        """Return the operator of a given sparse (m, n) array of inner products with new points."""
        return MatrixCross(X_new)


class MatrixCross(_GivenMatrix, CrossOperator):
    """A given (m, n) array, dense or sparse, of inner products of new points with n points."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(shape=matrix.shape, dtype=matrix.dtype)
        self.matrix = matrix.tocsr() if scipy.sparse.issparse(matrix) else matrix
