"""Base classes of Gram operators."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator

from .._core.checks import check_symmetric, numbers_expected
from .._core.threads import run_over_rows
from .._core.types import Array, Floats, Indices


def as_indices(indices: ArrayLike, n: int) -> Indices:
    """Return the row numbers, 0 to n-1, that a NumPy index of n rows selects."""
    chosen = np.asarray(indices)
    return np.arange(n)[chosen if chosen.size else chosen.astype(np.intp)]


class _Operator(LinearOperator):
    """A linear operator whose subclasses supply products with blocks of columns."""

    @abstractmethod
    def _matmat(self, V: Array) -> Array:
        """Multiply by a block of columns."""

    @abstractmethod
    def rows(self, indices: ArrayLike) -> Array:
        """Return the rows with these indices as a dense array."""

    def toarray(self) -> Array:
        """Return the whole matrix."""
        return self.rows(np.arange(self.shape[0]))


class GramOperator(_Operator):
    """A symmetric N x N matrix of inner products, as a linear operator of SciPy."""

    #: Whether each product evaluates the kernel again. If so, a product with many vectors costs
    #: little more than a product with one.
    recomputes: bool = False

    def _adjoint(self) -> GramOperator:
        return self

    def _transpose(self) -> GramOperator:
        return self

    @abstractmethod
    def diagonal(self) -> Array:
        """Return the diagonal, shape (N,)."""

    def trace(self) -> float:
        """Return the sum of the diagonal, in float64."""
        return float(self.diagonal().sum(dtype=np.float64))

    def term_size(self, _weights: Floats | None = None) -> float:
        """Return the magnitude of the terms if entries are differences of larger terms, else 0.

        Rounding errors are proportional to it.
        """
        return 0.0

    def rounding(self) -> float:
        """Return the largest rounding error of an entry."""
        return 16 * float(np.finfo(self.dtype).eps) * self.term_size()

    @abstractmethod
    def cross(self, X_new: Any) -> CrossOperator:
        """Return the operator of inner products of new points (rows) with the N points."""


class CrossOperator(_Operator):
    """A matrix of inner products of M new points with the N points of a Gram operator.

    Products with its transpose are not provided; use :meth:`rows` or :meth:`toarray`.
    """


def check_operator(operator: Any, owner: str, name: str = "operator") -> None:
    """Raise unless `operator` is a Gram operator."""
    if not isinstance(operator, GramOperator):
        raise ValueError(
            f"{name} of {owner} must be a GramOperator; got {type(operator).__name__}. Wrap a "
            "matrix in DenseGram."
        )


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
