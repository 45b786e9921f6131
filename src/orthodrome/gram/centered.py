"""The Gram matrix of points centred at their weighted mean in feature space."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_sample_weight
from .base import GramOperator, WrappedCross, WrappedGram


def squared_distance_to_mean(
    diagonal: NDArray[Any], means: NDArray[Any], mean_square: float
) -> NDArray[np.float64]:
    """Return ‖Φ(x) - μ‖² = k(x, x) - 2 <Φ(x), μ> + ‖μ‖², in float64."""
    return np.asarray(diagonal, dtype=np.float64) - 2.0 * means + mean_square


class _CenteredCross(WrappedCross):
    """Rows k(x, X) centred about the training mean on both sides."""

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        V = self._gram._center_columns(V)
        product = self._cross @ V
        product -= (self._gram.means @ V).astype(product.dtype, copy=False)
        return product

    def _transform_rows(self, block: NDArray[Any]) -> NDArray[Any]:
        return self._gram._center_rows(block, block @ self._gram.weights)


class Centered(WrappedGram):
    r"""Gram matrix of centred points, computed from any Gram operator.

    .. math:: K' = K - \mathbf 1 m^\top - m \mathbf 1^\top + s,
        \qquad m = K p, \quad s = p^\top K p

    is the Gram matrix of Φ(x_n) - Σ_j p_j Φ(x_j) (Schraudolph, Günter and Vishwanathan, "Fast
    Iterative Kernel PCA", NIPS 2006, eq. 5, with equal weights). A product costs one product with
    K.

    Parameters
    ----------
    operator : GramOperator
        The matrix K.
    sample_weight : array-like of shape (n,), optional
        Weights of the mean; they are divided by their sum. Default: equal.

    Attributes
    ----------
    weights : ndarray of shape (n,)
        The weights p, with sum 1.
    means : ndarray of shape (n,)
        m, the inner products with the mean.
    mean_square : float
        s, the squared length of the mean.
    """

    _cross = _CenteredCross

    def __init__(self, operator: GramOperator, sample_weight: ArrayLike | None = None) -> None:
        super().__init__(operator)
        given = check_sample_weight(sample_weight, self.shape[0], "Centered")
        p = np.ones(self.shape[0]) if given is None else given
        self.weights: NDArray[np.float64] = p / p.sum()
        # in float64 also over a float32 Gram: these sums are subtracted from every entry
        self.means: NDArray[np.float64] = np.asarray(
            operator @ self.weights[:, None], dtype=np.float64
        )[:, 0]
        self.mean_square = float(self.weights @ self.means)

    def _identity(self) -> dict[str, Any]:
        # not the means: their last bits depend on the number of threads
        return {"operator": self.operator, "weights": self.weights}

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        # K' = H K Hᵀ with H = I - 1 pᵀ. Centring V first avoids subtracting terms of the size of K
        # afterwards, and rounding errors that all rows share cancel with their mean.
        product = self.operator @ self._center_columns(V)
        product -= (self.weights @ product).astype(product.dtype, copy=False)
        return product

    def _center_columns(self, V: NDArray[Any]) -> NDArray[Any]:
        """Return Hᵀ V, whose columns sum to 0, in the precision of V and K."""
        sums = V.sum(axis=0, dtype=np.result_type(V.dtype, np.float64))
        dtype = np.result_type(V.dtype, self.dtype)
        return V - np.outer(self.weights, sums).astype(dtype, copy=False)

    def _transform_rows(self, block: NDArray[Any], chosen: NDArray[np.intp]) -> NDArray[Any]:
        return self._center_rows(block, self.means[chosen])

    def _center_rows(self, block: NDArray[Any], means: NDArray[Any]) -> NDArray[Any]:
        block -= self.means.astype(block.dtype, copy=False)
        block -= (means - self.mean_square).astype(block.dtype, copy=False)[:, None]
        return block

    def diagonal(self) -> NDArray[Any]:
        """Return the squared distances to the mean."""
        distances = squared_distance_to_mean(self.operator.diagonal(), self.means, self.mean_square)
        return distances.astype(self.dtype)

    def term_size(self, _weights: NDArray[np.float64] | None = None) -> float:
        """Return the size of the terms subtracted in an entry."""
        return max(float(np.abs(self.operator.diagonal()).max()), float(np.abs(self.means).max()))
