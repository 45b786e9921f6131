"""The Gram matrix as a graph: similarities divided by degrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator

from .._core.checks import check_finite_vector, check_number, check_sample_weight
from .._core.types import Array, Floats, Indices
from .base import CrossOperator, GramOperator
from .wrapped import WrappedGram

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
    cross: LinearOperator, V: Array, weights: Floats, inverse_roots: Floats
) -> tuple[Array, Floats]:
    r"""Return the product of V with similarities of new points, and their degrees, in one pass.

    The similarities are the rows :math:`k(x, X) W^{1/2} / \sqrt{\Delta(x) \Delta}`, with degrees
    Δ(x) = Σ_j w_j k(x, x_j). For an eigenvector v of the graph, with eigenvalue λ (without shift),
    the product divided by λ is its Nyström extension. A new point without similarity to any
    training point has a row of zeros.

    Parameters
    ----------
    cross : LinearOperator
        The similarities k(x, X).
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
