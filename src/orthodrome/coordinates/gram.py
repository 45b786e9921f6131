"""The Gram matrix of points with coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.types import Array
from ..gram import CrossOperator, GramOperator
from ..gram.base import as_indices
from .points import Coordinates


class CoordinateGram(GramOperator):
    r"""The matrix :math:`F F^\top` of features F, without storing it.

    A product with a vector needs :math:`O(nr)` operations for r features, instead of
    :math:`O(n^2)`, in two passes over the points.

    Parameters
    ----------
    points : Coordinates
        The points.

    Examples
    --------
    >>> from orthodrome.coordinates import anchor_coordinates, choose_anchors
    >>> from orthodrome.kernels import Linear
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    >>> kernel = Linear().fit(X)
    >>> gram = CoordinateGram(anchor_coordinates(kernel, X, choose_anchors(kernel, X, 3)))
    >>> (gram @ np.ones(3)).round(6), gram.diagonal().round(6)
    (array([2., 5., 6.]), array([1., 2., 4.]))
    """

    def __init__(self, points: Coordinates) -> None:
        n = points.shape[0]
        super().__init__(shape=(n, n), dtype=points.dtype)
        self.points = points
        self.recomputes = points.recomputes
        self._as_cross = CoordinateCross(points, points)

    def _matmat(self, V: Array) -> Array:
        return self._as_cross @ V

    def rows(self, indices: ArrayLike) -> Array:
        """Return the rows of the matrix with these indices."""
        return self._as_cross.rows(indices)

    def toarray(self) -> Array:
        """Return the whole matrix."""
        features = self.points.toarray()
        return features @ features.T

    def diagonal(self) -> Array:
        """Return the squared lengths of the points."""
        if self.points.unit:
            return np.ones(self.shape[0], dtype=self.dtype)
        squared_lengths = self.points.captured
        return squared_lengths.astype(self.dtype)

    def cross(self, X_new: Any) -> CoordinateCross:
        """Return the inner products of the features of new points and of the training points."""
        return CoordinateCross(self.points.of(X_new), self.points)


class CoordinateCross(CrossOperator):
    """Inner products of the features of new points (rows) and training points (columns)."""

    def __init__(self, new: Coordinates, points: Coordinates) -> None:
        super().__init__(shape=(new.shape[0], points.shape[0]), dtype=points.dtype)
        self._new, self._points = new, points

    def _matmat(self, V: Array) -> Array:
        dtype = np.result_type(V.dtype, self.dtype)
        # V may hold integers, or have a lower precision than the features
        sums = self._points.combine(V.astype(dtype, copy=False)).T  # Fᵀ V
        return self._new.apply(sums.astype(dtype, copy=False)).astype(dtype, copy=False)

    def rows(self, indices: ArrayLike) -> Array:
        """Return the rows of the new points with these indices."""
        chosen = self._new.take(as_indices(indices, self.shape[0]))
        return np.ascontiguousarray(self._points.apply(chosen.T).T.astype(self.dtype, copy=False))
