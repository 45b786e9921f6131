"""Gram matrices of points of one length, brought to length 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.unit import SAME_LENGTH
from .base import CrossOperator, GramOperator, as_indices

__all__ = ["Scaled", "squared_radius"]


def squared_radius(
    diagonal: NDArray[Any], expected: float | None = None, *, what: str = "X"
) -> float:
    """Return the common squared length of points in feature space, or raise if there is none.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        k(x, x) of each point.
    expected : float, optional
        The squared length that they must have; default: whichever they share.
    what : str, default="X"
        The name of the data in messages.
    """
    values = np.asarray(diagonal, dtype=np.float64)
    if not np.all(np.isfinite(values)):
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"k(x, x) overflows at row {row} of {what}; rescale the data, or choose other "
            "parameters of the kernel."
        )
    fault = np.flatnonzero(values <= 0)
    if len(fault):
        row = int(fault[0])
        raise ValueError(
            f"k(x, x) is {values[row]:g} at row {row} of {what} ({len(fault)} such rows): a point "
            "of no length has no direction and lies on no sphere. Leave these rows out, or choose "
            "a kernel with k(x, x) > 0, such as Gaussian."
        )
    radius = float(np.mean(values)) if expected is None else expected
    tolerance = SAME_LENGTH[np.asarray(diagonal).dtype]
    worst = int(np.argmax(np.abs(values - radius)))
    if abs(values[worst] - radius) > tolerance * radius:
        other = int(np.argmax(np.abs(values - values[worst])))
        beside = f"{values[other]:.8g} at row {other}" if expected is None else f"not {radius:.8g}"
        raise ValueError(
            f"k(x, x) must be the same for all points, which then lie on a sphere; it is "
            f"{values[worst]:.8g} at row {worst} of {what} and {beside}. "
            "Normalise the kernel, kernel=Normalized(kernel), or scale the data to unit length."
        )
    return radius


class Scaled(GramOperator):
    """A Gram matrix times a positive number: the points, old and new, times its root."""

    def __init__(self, operator: GramOperator, factor: float) -> None:
        super().__init__(shape=operator.shape, dtype=operator.dtype)
        self.operator = operator
        self.factor = float(factor)
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
