"""Gram matrices computed from another one: scaled, weighted, centred, or of Log maps."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from .._core.checks import check_finite_vector, check_number, check_positive, check_sample_weight
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


_BLOCK = 256  # rows computed at once


class Degree(WrappedGram):
    r"""Normalised graph of spectral clustering, computed from any Gram operator.

    .. math:: N = \Delta^{-1/2} (K - \operatorname{diag} K) \Delta^{-1/2} + \sigma I, \qquad
        \Delta_i = \sum_{j \ne i} K_{ij}

    (Ng, Jordan and Weiss, NIPS 14, 2002; the shift σ is an addition). Weights w count copies of
    a point. With weights, the matrix is

    .. math:: \Delta^{-1/2} W^{1/2} (K - \operatorname{diag}(K_{ii} / w_i)) W^{1/2} \Delta^{-1/2}
        + \sigma I, \qquad \Delta_i = \sum_j w_j K_{ij} - K_{ii}.

    It stands for the larger matrix in which every point is repeated w times. If an eigenvector of
    the larger matrix has equal entries for all copies of a point, these entries, multiplied by
    :math:`W^{1/2}`, are an eigenvector here, with the same eigenvalue. (The other eigenvectors of
    the larger matrix have the eigenvalues :math:`\sigma - K_{ii}/\Delta_i`.) A product costs one
    product with K.

    Parameters
    ----------
    operator : GramOperator
        The matrix K of similarities, with degrees that are not negative.
    sample_weight : array-like of shape (n,), optional
        Weights w. A point of weight 0 is left out: its row is zero. Default: all 1.
    shift : float, default=0.0
        σ. If no similarity is negative, the eigenvalues without shift are from -1 to 1, so a shift
        of 1 makes the matrix positive semidefinite; see also :meth:`largest_own_share`.
    row_numbers : array-like of shape (n,), optional
        Row numbers for error messages. Default: 0, 1, 2, …
    uncertainty : array-like of shape (n,), optional
        Errors of the row sums if K is an approximation: a degree that is negative by at most this
        counts as 0. Default: 0.

    Attributes
    ----------
    weights : ndarray of shape (n,)
        w.
    degrees : ndarray of shape (n,)
        Δ, in float64.
    inverse_roots : ndarray of shape (n,)
        W^½ Δ^-½; 0 for isolated points, whose degree is 0 and whose row is 0 except for the shift.
    shift : float
        σ; it may be set.

    Notes
    -----
    If a point has hardly any similarity to others, subtracting K_ii from a product would leave
    only rounding error. Such rows are computed from the rows of K without the diagonal entry.

    Examples
    --------
    >>> from orthodrome.gram import DenseGram
    >>> K = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]])
    >>> Degree(DenseGram(K)).degrees
    array([0.5, 1. , 0.5])
    """

    def __init__(
        self,
        operator: GramOperator,
        sample_weight: ArrayLike | None = None,
        *,
        shift: float = 0.0,
        row_numbers: ArrayLike | None = None,
        uncertainty: ArrayLike | None = None,
    ) -> None:
        super().__init__(operator)
        n = self.shape[0]
        weights = check_sample_weight(sample_weight, n, "Degree")
        given = np.arange(n) if row_numbers is None else row_numbers
        numbers = check_finite_vector(given, n, "row_numbers", "Degree")
        self.shift = check_number(shift, "shift", "Degree")
        self.weights: Floats = np.ones(n) if weights is None else weights
        self._diagonal = operator.diagonal().astype(np.float64)
        # in float64 even if K is float32, because K_ii is subtracted
        sums = np.asarray(operator @ self.weights[:, None], dtype=np.float64)[:, 0]
        if not np.all(np.isfinite(sums)):
            raise ValueError(
                f"Similarities or their sums overflow in {self.dtype}; rescale the data, or change "
                "the parameters of the kernel."
            )
        # K_ii is not in the sum of a point of weight 0
        self.degrees: Floats = sums - np.where(self.weights > 0, self._diagonal, 0.0)
        # at most a quarter of the digits may be lost by subtracting K_ii
        limit = float(np.finfo(self.dtype).eps) ** 0.25 * np.abs(self._diagonal)
        nearly_isolated = np.flatnonzero((self.degrees < limit) & (self.weights > 0))
        self._sum_without_diagonal(nearly_isolated)
        if uncertainty is not None:
            allowed = check_finite_vector(uncertainty, n, "uncertainty", "Degree")
            self.degrees[(self.degrees < 0) & (self.degrees >= -allowed)] = 0.0
        _check_degrees(np.where(self.weights > 0, self.degrees, 0.0), numbers, "other points")
        self.inverse_roots: Floats = np.sqrt(self.weights) * _inverse_roots(self.degrees)
        self._nearly_isolated = nearly_isolated[self.inverse_roots[nearly_isolated] > 0]

    # ------------------------------------------------------------------ degrees

    def _sum_without_diagonal(self, rows: Indices) -> None:
        """Recompute these row sums, omitting K_ii instead of subtracting it."""
        for start in range(0, len(rows), _BLOCK):
            chosen = rows[start : start + _BLOCK]
            block = self._rows_without_diagonal(chosen).astype(np.float64)
            copies = (self.weights[chosen] - 1) * self._diagonal[chosen]
            sums = block @ self.weights + copies
            sizes = np.abs(block) @ self.weights + np.abs(copies)
            # similarities of both signs may cancel: a sum within rounding error is 0
            error = 4 * float(np.finfo(self.dtype).eps) * sizes
            self.degrees[chosen] = np.where(np.abs(sums) <= error, 0.0, sums)

    def _rows_without_diagonal(self, chosen: Indices) -> Array:
        """Return rows of K with zeros on the diagonal."""
        block = self.operator.rows(chosen)
        block[np.arange(len(chosen)), chosen] = 0
        return block

    def distinguishes_points(self) -> bool:
        r"""Return whether the similarities differ by more than rounding error.

        The mean squared distance of points from their mean is the mean of K_ii minus the mean of
        K. If it is 0 and the row sums are equal, all similarities are equal, and every direction
        but the first is an eigenvector.
        """
        total = float(self.weights.sum())
        p = self.weights / total
        sums = self.degrees + self._diagonal
        mean_diagonal = float(p @ self._diagonal)
        variance = mean_diagonal - float(p @ (sums / total))
        error = 8 * float(np.finfo(self.dtype).eps)
        equal_sums = np.ptp(sums[self.weights > 0]) <= error * len(sums) * np.abs(sums).max()
        return not (equal_sums and abs(variance) <= error * abs(mean_diagonal))

    def largest_own_share(self) -> float:
        r"""Return the largest K_ii / Δ_i of the points with a positive degree, or 0.

        If K is positive semidefinite, so is :math:`N + \operatorname{diag}(K_{ii}/\Delta_i)`: a
        shift by this number makes N positive semidefinite.
        """
        return float(self._diagonal_ratios().max(initial=0.0))

    def _diagonal_ratios(self) -> Floats:
        with np.errstate(over="ignore"):  # a point may be almost isolated
            return self._over_degrees(self._diagonal)

    def held_by_matrix(self, vectors: Array, values: Floats) -> Array:
        r"""Return which eigenvectors of N are not null vectors of K, up to rounding error.

        The test is whether this number is positive:

        .. math:: v^\top \Delta^{-1/2} K \Delta^{-1/2} v = \lambda + \sum_i v_i^2 K_{ii} / \Delta_i

        It is 0 if v only contrasts points with equal similarities. Any such v is an eigenvector of
        N, because N omits the similarity of each point to itself.
        """
        squares = vectors.astype(np.float64) ** 2
        terms = np.where(squares > 0, self._diagonal_ratios()[:, None] * squares, 0.0).sum(axis=0)
        return np.asarray(values + terms > 64 * float(np.finfo(self.dtype).eps) * (1 + terms))

    # ------------------------------------------------------------------ the matrix

    def _matmat(self, V: Array) -> Array:
        dtype = np.result_type(V.dtype, self.dtype)
        scale = self.inverse_roots.astype(dtype, copy=False)[:, None]
        scaled = V * scale
        product = np.asarray(self.operator @ scaled).astype(dtype, copy=False)
        for start in range(0, len(self._nearly_isolated), _BLOCK):
            chosen = self._nearly_isolated[start : start + _BLOCK]
            product[chosen] = self._rows_without_diagonal(chosen) @ scaled
        product *= scale
        # The diagonal should be (w - 1) K_ii. In the product it is w K_ii, but 0 in nearly isolated
        # rows.
        correction = -self._diagonal
        correction[self._nearly_isolated] *= 1 - self.weights[self._nearly_isolated]
        diagonal = self._over_degrees(correction) + self.shift
        product += diagonal.astype(dtype, copy=False)[:, None] * V
        return product

    def _over_degrees(self, values: Floats) -> Floats:
        """Return values / Δ, 0 where the row is zero."""
        zero = np.zeros_like(values)
        return np.divide(values, self.degrees, out=zero, where=self.inverse_roots > 0)

    def _transform_rows(self, block: Array, chosen: Indices) -> Array:
        # two factors in turn: their product may underflow
        block *= self.inverse_roots.astype(block.dtype, copy=False)
        block *= self.inverse_roots.astype(block.dtype, copy=False)[chosen, None]
        block[np.arange(len(chosen)), chosen] = self.diagonal()[chosen]
        return block

    def _multiply_cross(self, cross: CrossOperator, V: Array) -> Array:
        return product_and_degrees(cross, V, self.weights, self.inverse_roots)[0]

    def _transform_cross(self, block: Array) -> Array:
        scales = _checked_inverse_roots(block @ self.weights).astype(block.dtype, copy=False)
        block *= self.inverse_roots.astype(block.dtype, copy=False)
        block *= scales[:, None]
        return block

    def diagonal(self) -> Array:
        """Return the diagonal: the similarity of a point to its other copies, plus the shift."""
        copies = self._over_degrees((self.weights - 1) * self._diagonal)
        return (copies + self.shift).astype(self.dtype)

    def tosparse(self) -> Any:
        """Return the matrix as a sparse array; the operator must be a SparseGram."""
        roots = scipy.sparse.diags_array(self.inverse_roots)
        matrix = self.operator.matrix
        others = matrix - scipy.sparse.diags_array(matrix.diagonal())
        found = roots @ others @ roots + scipy.sparse.diags_array(self.diagonal())
        return found.astype(self.dtype)


def product_and_degrees(
    cross: Any, V: Array, weights: Floats, inverse_roots: Floats
) -> tuple[Array, Floats]:
    r"""Return the product of V with similarities of new points, and their degrees, in one pass.

    The similarities are the rows :math:`k(x, X) W^{1/2} / \sqrt{\Delta(x) \Delta}`, with degrees
    Δ(x) = Σ_j w_j k(x, x_j). For an eigenvector v of the graph, with eigenvalue λ (without shift),
    the product divided by λ is its Nyström extension. A new point without similarity to any
    training point has a row of zeros.

    Parameters
    ----------
    cross : LinearOperator, or Block of points
        The similarities k(x, X), or the features f(x) for a graph over features.
    V : ndarray of shape (n, k)
        Vectors in columns.
    weights, inverse_roots : ndarrays of shape (n,)
        Attributes of the :class:`Degree` of the training points.
    """
    dtype = np.result_type(V.dtype, cross.dtype)
    scaled = V * inverse_roots.astype(dtype, copy=False)[:, None]
    product = cross @ np.hstack([scaled, weights[:, None]])
    degrees = product[:, -1].real.astype(np.float64)
    block = np.ascontiguousarray(product[:, :-1]).astype(dtype, copy=False)
    block *= _checked_inverse_roots(degrees).astype(dtype, copy=False)[:, None]
    return block, degrees


def _checked_inverse_roots(degrees: Floats) -> Floats:
    """Return 1 / √Δ of new points; raise if a degree is negative."""
    _check_degrees(degrees, np.arange(len(degrees)), "training points", " of the new points")
    return _inverse_roots(degrees)


def _inverse_roots(degrees: Floats) -> Floats:
    """Return 1 / √Δ, and 0 where the degree is not positive."""
    roots = np.sqrt(np.maximum(degrees, 0.0))
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)


def _check_degrees(degrees: Floats, numbers: Array, others: str, suffix: str = "") -> None:
    """Raise if a degree is negative, naming the first such row."""
    negative = np.flatnonzero(degrees < 0)
    if len(negative):
        row = int(negative[0])
        raise ValueError(
            f"The degree of row {int(numbers[row])}{suffix}, the sum of its similarities to "
            f"{others}, is {degrees[row]:.4g} (one of {len(negative)} below 0). Use a kernel "
            "without negative values, such as Gaussian. Do not use weights below 1: weights count "
            "copies of a point."
        )
