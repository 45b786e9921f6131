"""The Gram matrix of explicit features, of which a product costs two passes over the features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .base import CrossOperator, GramOperator, as_indices
from .nystroem import NystroemFeatures

__all__ = ["FeatureCross", "FeatureGram", "FeatureRows"]


class FeatureGram(GramOperator):
    r"""The matrix :math:`F F^\top` of features F, never made.

    A product with a few columns takes :math:`O(nr)` operations for r features, where one with the
    Gram matrix takes :math:`O(n^2)`.

    Parameters
    ----------
    features : NystroemFeatures
        The features of all points.

    Examples
    --------
    >>> from orthodrome.gram import choose_anchors, nystroem_features
    >>> from orthodrome.kernels import Linear
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    >>> kernel = Linear().fit(X)
    >>> gram = FeatureGram(nystroem_features(kernel, X, choose_anchors(kernel, X, 3)))
    >>> (gram @ np.ones(3)).round(6), gram.diagonal().round(6)
    (array([2., 5., 6.]), array([1., 2., 4.]))
    """

    def __init__(self, features: NystroemFeatures) -> None:
        n = features.shape[0]
        super().__init__(shape=(n, n), dtype=features.dtype)
        self.features = features
        self.recomputes = features.storage == "recompute"

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        return _product(self.features, self.features, V, self.dtype)

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return rows."""
        chosen = as_indices(indices, self.shape[0])
        return _rows(self.features.take(chosen), self.features)

    def toarray(self) -> NDArray[Any]:
        """Return the whole matrix."""
        features = self.features.toarray()
        return features @ features.T

    def diagonal(self) -> NDArray[Any]:
        """Return the squared lengths of the features."""
        if self.features.unit:
            return np.ones(self.shape[0], dtype=self.dtype)
        return self.features.squared_lengths.astype(self.dtype)

    def cross(self, X_new: Any) -> FeatureCross:
        """Return the inner products of the features of new points with these."""
        return FeatureCross(self.features.of(X_new), self.features)


class FeatureCross(CrossOperator):
    """Inner products of the features of new points (rows) with those of the training points."""

    def __init__(self, new: NystroemFeatures, features: NystroemFeatures) -> None:
        super().__init__(shape=(new.shape[0], features.shape[0]), dtype=features.dtype)
        self._new, self._features = new, features

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        return _product(self._new, self._features, V, self.dtype)

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return rows of these new points."""
        chosen = as_indices(indices, self.shape[0])
        return _rows(self._new.take(chosen), self._features)


class FeatureRows(CrossOperator):
    """The features of new points themselves, (m, r): inner products with the axes of the space."""

    def __init__(self, features: NystroemFeatures) -> None:
        super().__init__(shape=features.shape, dtype=features.dtype)
        self._features = features

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        return self._features.apply(V).astype(np.result_type(V.dtype, self.dtype), copy=False)

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return the features of these points."""
        return self._features.take(as_indices(indices, self.shape[0]))


def _product(
    left: NystroemFeatures, right: NystroemFeatures, V: NDArray[Any], dtype: Any
) -> NDArray[Any]:
    """Return the product of the features on the left with (features on the right)ᵀ V."""
    wanted = np.result_type(V.dtype, dtype)
    # vectors of fewer digits than the features, integers among them, take those of the features
    sums = right.combine(V.astype(wanted, copy=False)).T
    return left.apply(sums.astype(wanted, copy=False)).astype(wanted, copy=False)


def _rows(chosen: NDArray[Any], features: NystroemFeatures) -> NDArray[Any]:
    return np.ascontiguousarray(features.apply(chosen.T).T.astype(features.dtype, copy=False))
