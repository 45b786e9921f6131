"""Gram matrices of points of equal length, scaled to unit length."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.checks import check_positive
from ..kernels._unit import squared_radius
from .base import GramOperator, WrappedCross, WrappedGram

__all__ = ["Scaled", "squared_radius"]


class _ScaledCross(WrappedCross):
    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        return self._transform_rows(self._cross @ V)

    def _transform_rows(self, block: NDArray[Any]) -> NDArray[Any]:
        return _times(block, self._gram.factor)


class Scaled(WrappedGram):
    """A Gram matrix times a positive number, as if all points were scaled by its root."""

    _cross = _ScaledCross

    def __init__(self, operator: GramOperator, factor: float) -> None:
        super().__init__(operator)
        self.factor = check_positive(factor, "factor", "Scaled")

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        return _times(self.operator @ V, self.factor)

    def _transform_rows(self, block: NDArray[Any], chosen: NDArray[np.intp]) -> NDArray[Any]:
        return _times(block, self.factor)

    def diagonal(self) -> NDArray[Any]:
        """Return the diagonal."""
        return _times(self.operator.diagonal(), self.factor)

    def term_size(self, weights: NDArray[np.float64] | None = None) -> float:
        """Return the size of the terms subtracted in an entry."""
        return self.factor * self.operator.term_size(weights)


def _times(array: NDArray[Any], factor: float) -> NDArray[Any]:
    """Multiply in place, in the precision of the array."""
    array *= array.dtype.type(factor)
    return array
