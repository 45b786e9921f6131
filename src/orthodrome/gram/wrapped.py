"""Gram matrices computed from another one: scaled, weighted, centred, or of Log maps."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.checks import check_finite_vector, check_positive, check_sample_weight
from .._core.types import Array, Floats, Indices
from .._core.unit import angles_from_cosines, check_no_antipodes, squared_radius
from .base import CrossOperator, GramOperator, as_indices, check_operator


class WrappedGram(GramOperator):
    """A Gram operator whose entries are computed from those of another one.

    A subclass supplies `_transform_rows`, which converts rows of the other operator. For new points
    it supplies `_transform_cross`, which converts rows of their inner products, and
    `_multiply_cross`.
    """

    def __init__(self, operator: GramOperator) -> None:
        check_operator(operator, type(self).__name__)
        super().__init__(shape=operator.shape, dtype=operator.dtype)
        self.operator = operator
        self.recomputes = operator.recomputes

    @abstractmethod
    def _transform_rows(self, block: Array, chosen: Indices) -> Array:
        """Convert rows `chosen` of the other operator; may overwrite `block`."""

    @abstractmethod
    def _transform_cross(self, block: Array) -> Array:
        """Convert inner products of new points (rows); may overwrite `block`."""

    @abstractmethod
    def _multiply_cross(self, cross: CrossOperator, V: Array) -> Array:
        """Multiply the converted inner products of new points by a block of columns."""

    def rows(self, indices: ArrayLike) -> Array:
        """Return rows."""
        chosen = as_indices(indices, self.shape[0])
        return self._transform_rows(self.operator.rows(chosen), chosen)

    def toarray(self) -> Array:
        """Return the whole matrix."""
        return self._transform_rows(self.operator.toarray(), np.arange(self.shape[0]))

    def cross(self, X_new: Any) -> CrossOperator:
        """Return inner products of new points with these points."""
        return _WrappedCross(self.operator.cross(X_new), self)


class _WrappedCross(CrossOperator):
    """The cross operator of a :class:`WrappedGram`."""

    def __init__(self, cross: CrossOperator, gram: WrappedGram) -> None:
        super().__init__(shape=cross.shape, dtype=cross.dtype)
        self._cross, self._gram = cross, gram

    def _matmat(self, V: Array) -> Array:
        return self._gram._multiply_cross(self._cross, V)

    def rows(self, indices: ArrayLike) -> Array:
        """Return rows of these new points."""
        return self._gram._transform_cross(self._cross.rows(indices))


class Scaled(WrappedGram):
    """A Gram matrix times a positive number, as if all points were scaled by its root."""

    def __init__(self, operator: GramOperator, factor: float) -> None:
        super().__init__(operator)
        self.factor = check_positive(factor, "factor", "Scaled")

    def _matmat(self, V: Array) -> Array:
        return self._transform_cross(self.operator @ V)

    def _multiply_cross(self, cross: CrossOperator, V: Array) -> Array:
        return self._transform_cross(cross @ V)

    def _transform_rows(self, block: Array, chosen: Indices) -> Array:
        return self._transform_cross(block)

    def _transform_cross(self, block: Array) -> Array:
        block *= block.dtype.type(self.factor)
        return block

    def diagonal(self) -> Array:
        """Return the diagonal."""
        return self._transform_cross(self.operator.diagonal())

    def term_size(self, weights: Floats | None = None) -> float:
        """Return the size of the terms subtracted in an entry."""
        return self.factor * self.operator.term_size(weights)


class Weighted(WrappedGram):
    r"""Gram matrix D K D of points that are multiplied by factors, :math:`d_n \Phi(x_n)`.

    With the roots of sample weights as factors, its spectrum is that of K with repeated points.

    Parameters
    ----------
    operator : GramOperator
        The matrix K.
    factors : array-like of shape (n,)
        The diagonal of D.
    """

    def __init__(self, operator: GramOperator, factors: ArrayLike) -> None:
        super().__init__(operator)
        given = check_finite_vector(factors, self.shape[0], "factors", "Weighted")
        if np.abs(given).max() > float(np.finfo(self.dtype).max) ** 0.5:
            raise ValueError(f"Squares of factors of Weighted overflow in {self.dtype}.")
        self.factors: Array = given.astype(self.dtype)

    def _matmat(self, V: Array) -> Array:
        factors = self.factors[:, None]
        return factors * (self.operator @ (factors * V))

    def _multiply_cross(self, cross: CrossOperator, V: Array) -> Array:
        return cross @ (self.factors[:, None] * V)

    def _transform_rows(self, block: Array, chosen: Indices) -> Array:
        block *= self.factors[chosen, None]
        return self._transform_cross(block)

    def _transform_cross(self, block: Array) -> Array:
        return block * self.factors

    def diagonal(self) -> Array:
        """Return the squared lengths of the points."""
        return self.factors**2 * self.operator.diagonal()

    def term_size(self, _weights: Floats | None = None) -> float:
        """Return the size of the terms subtracted in an entry."""
        return self.operator.term_size() * float(abs(self.factors).max()) ** 2


def squared_distance_to_mean(diagonal: Array, means: Array, mean_square: float) -> Floats:
    """Return ‖Φ(x) - μ‖² = k(x, x) - 2 <Φ(x), μ> + ‖μ‖², in float64."""
    return np.asarray(diagonal, dtype=np.float64) - 2.0 * means + mean_square


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

    def __init__(self, operator: GramOperator, sample_weight: ArrayLike | None = None) -> None:
        super().__init__(operator)
        given = check_sample_weight(sample_weight, self.shape[0], "Centered")
        p = np.ones(self.shape[0]) if given is None else given
        self.weights: Floats = p / p.sum()
        # in float64 also over a float32 Gram: these sums are subtracted from every entry
        self.means: Floats = np.asarray(operator @ self.weights[:, None], dtype=np.float64)[:, 0]
        self.mean_square = float(self.weights @ self.means)

    def _matmat(self, V: Array) -> Array:
        # K' = H K Hᵀ with H = I - 1 pᵀ. Centring V first avoids subtracting terms of the size of K
        # afterwards, and rounding errors that all rows share cancel with their mean.
        product = self.operator @ self._center_columns(V)
        product -= (self.weights @ product).astype(product.dtype, copy=False)
        return product

    def _multiply_cross(self, cross: CrossOperator, V: Array) -> Array:
        V = self._center_columns(V)
        product = cross @ V
        product -= (self.means @ V).astype(product.dtype, copy=False)
        return product

    def _center_columns(self, V: Array) -> Array:
        """Return Hᵀ V, whose columns sum to 0, in the precision of V and K."""
        sums = V.sum(axis=0, dtype=np.result_type(V.dtype, np.float64))
        dtype = np.result_type(V.dtype, self.dtype)
        return V - np.outer(self.weights, sums).astype(dtype, copy=False)

    def _transform_rows(self, block: Array, chosen: Indices) -> Array:
        return self._center_rows(block, self.means[chosen])

    def _transform_cross(self, block: Array) -> Array:
        return self._center_rows(block, block @ self.weights)

    def _center_rows(self, block: Array, means: Array) -> Array:
        block -= self.means.astype(block.dtype, copy=False)
        block -= (means - self.mean_square).astype(block.dtype, copy=False)[:, None]
        return block

    def diagonal(self) -> Array:
        """Return the squared distances to the mean."""
        distances = squared_distance_to_mean(self.operator.diagonal(), self.means, self.mean_square)
        return distances.astype(self.dtype)

    def term_size(self, _weights: Floats | None = None) -> float:
        """Return the size of the terms subtracted in an entry."""
        return max(float(np.abs(self.operator.diagonal()).max()), float(np.abs(self.means).max()))


class Tangent(WrappedGram):
    r"""Gram matrix of Log maps, computed from the Gram operator of unit vectors.

    .. math:: T = D (K - c c^\top) D, \qquad c = K \xi, \quad
        D = \operatorname{diag}(\theta / \sin\theta), \quad \cos\theta = c

    is the Gram matrix of :math:`\operatorname{Log}_\mu y_n` at the base point
    :math:`\mu = \sum_n \xi_n y_n` of unit length (Awate, Yu and Whitaker, "Kernel Principal
    Geodesic Analysis", ECML PKDD 2014, eq. 1 and §4.2). A product costs one product with K.

    Parameters
    ----------
    operator : GramOperator
        The matrix K, with a diagonal of ones.
    base_point : array-like of shape (n,)
        The coefficients ξ of the base point, such as those of
        :func:`orthodrome.sphere.karcher_mean`.
    cosines : array-like of shape (n,), optional
        c, if known; this saves a product.

    Attributes
    ----------
    base_point, cosines : ndarrays of shape (n,)
        ξ and c.
    angles : ndarray of shape (n,)
        θ, the distances from the base point.
    stretches : ndarray of shape (n,)
        θ / sin θ, the diagonal of D.
    """

    def __init__(
        self, operator: GramOperator, base_point: ArrayLike, cosines: ArrayLike | None = None
    ) -> None:
        super().__init__(operator)
        n = self.shape[0]
        self.base_point: Floats = check_finite_vector(base_point, n, "base_point", "Tangent")
        # in float64 also over a float32 Gram: c cᵀ is subtracted from every entry
        self.cosines: Floats = (
            np.asarray(operator @ self.base_point, dtype=np.float64)
            if cosines is None
            else check_finite_vector(cosines, n, "cosines", "Tangent")
        )
        self._eps = float(np.finfo(self.dtype).eps)
        squared_radius(self.operator.diagonal(), expected=1.0, what="points")
        with np.errstate(over="ignore", invalid="ignore"):
            square = float(self.base_point @ self.cosines)
        if not abs(square - 1) <= (1e-6 if self.dtype == np.float64 else 1e-3):
            raise ValueError(
                f"base_point of Tangent must have unit length; its square is {square:.8g}. Divide "
                "it by sqrt(base_point @ operator @ base_point)."
            )
        check_no_antipodes(self.cosines, self._eps, "points")
        self.angles, self.stretches = angles_from_cosines(self.cosines)

    def _matmat(self, V: Array) -> Array:
        # K - c cᵀ = (I - c ξᵀ) K (I - ξ cᵀ). K is multiplied by vectors orthogonal to the base
        # point, which avoids subtracting terms of the size of K afterwards.
        product = self.operator @ self._orthogonal(V)
        radial = self.base_point @ product
        product -= np.outer(self.cosines, radial).astype(product.dtype, copy=False)
        product *= self.stretches.astype(product.dtype, copy=False)[:, None]
        return product

    def _multiply_cross(self, cross: CrossOperator, V: Array) -> Array:
        # one pass gives both the products and the cosines, from which the factors d(x) follow
        dtype = np.result_type(V.dtype, self.dtype)
        orthogonal = self._orthogonal(V)
        product = cross @ np.hstack([orthogonal, self.base_point[:, None]])
        cosines = product[:, -1].real.astype(np.float64)
        block = np.ascontiguousarray(product[:, :-1]).astype(dtype, copy=False)
        radial = self.cosines @ orthogonal  # rounding error along the base point
        block -= np.outer(cosines, radial).astype(dtype, copy=False)
        block *= self._new_stretches(cosines).astype(dtype, copy=False)[:, None]
        return block

    def _new_stretches(self, cosines: Array) -> Array:
        check_no_antipodes(cosines, self._eps, "new points")
        return angles_from_cosines(cosines)[1]

    def _orthogonal(self, V: Array) -> Array:
        """Return (I - ξ cᵀ) D V in the precision of V and K."""
        dtype = np.result_type(V.dtype, self.dtype)
        radial = (self.cosines * self.stretches) @ V
        orthogonal = V * self.stretches.astype(dtype, copy=False)[:, None]
        orthogonal -= np.outer(self.base_point, radial).astype(dtype, copy=False)
        return orthogonal

    def _transform_rows(self, block: Array, chosen: Indices) -> Array:
        return self._project_rows(block, self.cosines[chosen], self.stretches[chosen])

    def _transform_cross(self, block: Array) -> Array:
        cosines = block @ self.base_point
        return self._project_rows(block, cosines, self._new_stretches(cosines))

    def _project_rows(self, block: Array, cosines: Array, stretches: Array) -> Array:
        block -= np.outer(cosines, self.cosines).astype(block.dtype, copy=False)
        block *= stretches.astype(block.dtype, copy=False)[:, None]
        block *= self.stretches.astype(block.dtype, copy=False)
        return block

    def diagonal(self) -> Array:
        """Return the squared distances from the base point."""
        sines = self.operator.diagonal().astype(np.float64) - self.cosines**2
        return (sines * self.stretches**2).astype(self.dtype)

    def term_size(self, weights: Floats | None = None) -> float:
        """Return the average size of the terms subtracted in an entry.

        Large coefficients of the base point that cancel increase the terms of the cosines.
        """
        growth = max(1.0, float(np.linalg.norm(self.base_point)))
        return growth * float(np.average(self.stretches**2, weights=weights))
