"""Gram matrices of points of one length, brought to length 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_positive
from ..kernels._unit import squared_radius
from .base import CrossOperator, GramOperator, as_indices, check_operator

__all__ = ["Scaled", "squared_radius"]


class Scaled(GramOperator):
    """A Gram matrix times a positive number: the points, old and new, times its root."""

    def __init__(self, operator: GramOperator, factor: float) -> None:
        check_operator(operator, "Scaled")
        super().__init__(shape=operator.shape, dtype=operator.dtype)
        self.operator = operator
        self.factor = check_positive(factor, "factor", "Scaled")
        self.recomputes = operator.recomputes

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        return _times(self.operator @ V, self.factor)

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return rows."""
        return _times(self.operator.rows(as_indices(indices, self.shape[0])), self.factor)

    def toarray(self) -> NDArray[Any]:
        """Return the whole matrix."""
        return _times(self.operator.toarray(), self.factor)

    def diagonal(self) -> NDArray[Any]:
        """Return the diagonal."""
        return _times(self.operator.diagonal(), self.factor)

    def term_size(self, weights: NDArray[np.float64] | None = None) -> float:
        """Return how large the terms are whose difference an entry is."""
        return self.factor * self.operator.term_size(weights)

    def cross(self, X_new: Any) -> CrossOperator:
        """Return inner products of new points, scaled as the training points are."""
        return _ScaledCross(self.operator.cross(X_new), self.factor)


class _ScaledCross(CrossOperator):
    def __init__(self, cross: CrossOperator, factor: float) -> None:
        super().__init__(shape=cross.shape, dtype=cross.dtype)
        self._cross = cross
        self._factor = factor

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        return _times(self._cross @ V, self._factor)

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return rows of these new points."""
        return _times(self._cross.rows(indices), self._factor)


def _times(array: NDArray[Any], factor: float) -> NDArray[Any]:
    """Multiply in place, in the precision of the array."""
    array *= array.dtype.type(factor)
    return array
