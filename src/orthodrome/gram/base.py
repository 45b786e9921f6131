"""Base classes of Gram operators."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator


def as_indices(indices: ArrayLike, n: int) -> NDArray[np.intp]:
    """Return the row numbers, 0 to n-1, that a NumPy index of n rows selects."""
    chosen = np.asarray(indices)
    return np.arange(n)[chosen if chosen.size else chosen.astype(np.intp)]


class _Operator(LinearOperator):
    """A linear operator whose subclasses supply products with blocks of columns."""

    @abstractmethod
    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        """Multiply by a block of columns."""

    @abstractmethod
    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return the rows with these indices as a dense array."""

    def toarray(self) -> NDArray[Any]:
        """Return the whole matrix."""
        return self.rows(np.arange(self.shape[0]))


class GramOperator(_Operator):
    """A symmetric N x N matrix of inner products, as a linear operator of SciPy."""

    #: Whether each product evaluates the kernel again, so that wide blocks of vectors are cheap.
    recomputes: bool = False

    def _identity(self) -> dict[str, Any]:
        """Return the attributes that define the matrix, for a fingerprint."""
        return {name: value for name, value in vars(self).items() if name != "recomputes"}

    def _adjoint(self) -> GramOperator:
        return self

    def _transpose(self) -> GramOperator:
        return self

    @abstractmethod
    def diagonal(self) -> NDArray[Any]:
        """Return the diagonal, shape (N,)."""

    def trace(self) -> float:
        """Return the sum of the diagonal, in float64."""
        return float(self.diagonal().sum(dtype=np.float64))

    def term_size(self, _weights: NDArray[np.float64] | None = None) -> float:
        """Return the size of the terms subtracted in an entry, for error bounds; 0 if none."""
        return 0.0

    def rounding(self) -> float:
        """Return the largest rounding error of an entry."""
        return 16 * float(np.finfo(self.dtype).eps) * self.term_size()

    @abstractmethod
    def cross(self, X_new: Any) -> CrossOperator:
        """Return the operator of inner products of new points (rows) with the N points."""


class CrossOperator(_Operator):
    """A matrix of inner products of M new points with the N points of a Gram operator."""

    def _adjoint(self) -> LinearOperator:
        raise NotImplementedError(
            "Products with the transposed cross-Gram are not provided; use rows() or toarray()."
        )


class WrappedGram(GramOperator):
    """A Gram operator whose entries are computed from those of another one.

    A subclass supplies `_transform_rows`, which converts rows of the other operator, and `_cross`,
    the class of its cross operator, a :class:`WrappedCross`.
    """

    _cross: type[WrappedCross]

    def __init__(self, operator: GramOperator) -> None:
        check_operator(operator, type(self).__name__)
        super().__init__(shape=operator.shape, dtype=operator.dtype)
        self.operator = operator
        self.recomputes = operator.recomputes

    @abstractmethod
    def _transform_rows(self, block: NDArray[Any], chosen: NDArray[np.intp]) -> NDArray[Any]:
        """Convert rows `chosen` of the other operator; may overwrite `block`."""

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return rows."""
        chosen = as_indices(indices, self.shape[0])
        return self._transform_rows(self.operator.rows(chosen), chosen)

    def toarray(self) -> NDArray[Any]:
        """Return the whole matrix."""
        return self._transform_rows(self.operator.toarray(), np.arange(self.shape[0]))

    def cross(self, X_new: Any) -> CrossOperator:
        """Return inner products of new points with these points."""
        return self._cross(self.operator.cross(X_new), self)


class WrappedCross(CrossOperator):
    """The cross operator of a :class:`WrappedGram`."""

    def __init__(self, cross: CrossOperator, gram: Any) -> None:
        super().__init__(shape=cross.shape, dtype=cross.dtype)
        self._cross, self._gram = cross, gram

    @abstractmethod
    def _transform_rows(self, block: NDArray[Any]) -> NDArray[Any]:
        """Convert rows of the other operator; may overwrite `block`."""

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return rows of these new points."""
        return self._transform_rows(self._cross.rows(indices))


def check_operator(operator: Any, owner: str, name: str = "operator") -> None:
    """Raise unless `operator` is a Gram operator."""
    if not isinstance(operator, GramOperator):
        raise ValueError(
            f"{name} of {owner} must be a GramOperator; got {type(operator).__name__}. Wrap a "
            "matrix in DenseGram."
        )
