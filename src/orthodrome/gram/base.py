"""Base classes of Gram operators."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator

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
