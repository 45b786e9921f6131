"""The Gram matrix as a graph: similarities divided by degrees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_finite_vector, check_number, check_sample_weight
from .base import CrossOperator, GramOperator, WrappedGram

_BLOCK = 256  # rows at a time


class Degree(WrappedGram):
    r"""Degree geometry over any Gram operator, matrix-free: the graph of spectral clustering.

    .. math:: N = \Delta^{-1/2} (K - \operatorname{diag} K) \Delta^{-1/2} + \sigma I, \qquad
        \Delta_i = \sum_{j \ne i} K_{ij}

    (Ng, Jordan and Weiss, NIPS 14, 2002; the shift σ is ours). With weights w, which mean
    repetition, it is

    .. math:: \Delta^{-1/2} W^{1/2} (K - \operatorname{diag}(K_{ii} / w_i)) W^{1/2} \Delta^{-1/2}
        + \sigma I, \qquad \Delta_i = \sum_j w_j K_{ij} - K_{ii} :

    its eigenvalues are those of the matrix with every point written w times, and its eigenvectors
    are :math:`W^{1/2}` times those that are the same on all copies of a point. (The others have the
    eigenvalues :math:`\sigma - K_{ii}/\Delta_i`.) A product costs one product with K.

    Parameters
    ----------
    operator : GramOperator
        The matrix K of similarities, with degrees that are not negative.
    sample_weight : array-like of shape (n,), optional
        Weights w. A point of weight 0 is left out: its row is zero. Default: all 1.
    shift : float, default=0.0
        σ. Similarities that are not negative have eigenvalues from -1 to 1, so that a shift of 1
        makes the matrix positive semidefinite; see also :meth:`largest_own_share`.
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
        W^½ Δ^-½; 0 for isolated points, whose degree is 0 and whose row is zero but for the shift.
    shift : float
        σ; it may be set.

    Notes
    -----
    If a point has hardly any similarity to others, subtracting K_ii from a product would leave
    only rounding. Such rows are taken from K in full, without their diagonal entry.

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
        self.weights: NDArray[np.float64] = np.ones(n) if weights is None else weights
        self._own = operator.diagonal().astype(np.float64)
        self.degrees: NDArray[np.float64] = self._sum_rows()
        # a quarter of the digits may be lost where K_ii was subtracted
        share = float(np.finfo(self.dtype).eps) ** 0.25
        loose = np.flatnonzero((self.degrees < share * np.abs(self._own)) & (self.weights > 0))
        self._sum_without_own(loose)
        if uncertainty is not None:
            allowed = check_finite_vector(uncertainty, n, "uncertainty", "Degree")
            self.degrees[(self.degrees < 0) & (self.degrees >= -allowed)] = 0.0
        _check_degrees(np.where(self.weights > 0, self.degrees, 0.0), numbers, "other points")
        self.inverse_roots: NDArray[np.float64] = np.sqrt(self.weights) * _inverse_roots(
            self.degrees
        )
        self._loose = loose[self.inverse_roots[loose] > 0]

    def _identity(self) -> dict[str, Any]:
        # not the degrees: their last bits depend on the number of threads
        return {"operator": self.operator, "weights": self.weights, "shift": self.shift}

    # ------------------------------------------------------------------ degrees

    def _sum_rows(self) -> NDArray[np.float64]:
        """Return Σ_j w_j K_ij - K_ii; K_ii is not in the sum for a point of weight 0."""
        # in float64 also over a float32 Gram: K_ii is subtracted
        sums = np.asarray(self.operator @ self.weights[:, None], dtype=np.float64)[:, 0]
        if not np.all(np.isfinite(sums)):
            raise ValueError(
                f"Similarities or their sums overflow in {self.dtype}; rescale the data, or choose "
                "other parameters of the kernel."
            )
        return sums - np.where(self.weights > 0, self._own, 0.0)

    def _sum_without_own(self, loose: NDArray[np.intp]) -> None:
        """Sum these rows again, leaving K_ii out rather than subtracting it."""
        for start in range(0, len(loose), _BLOCK):
            chosen = loose[start : start + _BLOCK]
            block = self._rows_without_own(chosen).astype(np.float64)
            own = (self.weights[chosen] - 1) * self._own[chosen]
            sums, sizes = block @ self.weights + own, np.abs(block) @ self.weights + np.abs(own)
            # similarities of both signs that cancel to rounding: no degree is left
            rounding = 4 * float(np.finfo(self.dtype).eps) * sizes
            self.degrees[chosen] = np.where(np.abs(sums) <= rounding, 0.0, sums)

    def _rows_without_own(self, chosen: NDArray[np.intp]) -> NDArray[Any]:
        """Return rows of K with a zero in the place of K_ii."""
        block = self.operator.rows(chosen)
        block[np.arange(len(chosen)), chosen] = 0
        return block

    def distinguishes_points(self) -> bool:
        r"""Return whether the similarities differ by more than rounding.

        The mean squared distance of points from their mean is the mean of K_ii less that of all of
        K. If it is 0 and the row sums are equal, all similarities are equal, and every direction
        but the first is an eigenvector.
        """
        total = float(self.weights.sum())
        share = self.weights / total
        sums = self.degrees + self._own
        length = float(share @ self._own)
        spread = length - float(share @ (sums / total))
        rounding = 8 * float(np.finfo(self.dtype).eps)
        even = np.ptp(sums[self.weights > 0]) <= rounding * len(sums) * np.abs(sums).max()
        return not (even and abs(spread) <= rounding * abs(length))

    def largest_own_share(self) -> float:
        r"""Return the largest K_ii / Δ_i of all points with a degree, or 0.

        If K is positive semidefinite, so is :math:`N + \operatorname{diag}(K_{ii}/\Delta_i)`: a
        shift by this number is enough.
        """
        return float(self._own_shares().max(initial=0.0))

    def _own_shares(self) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):  # a point may be almost isolated
            return self._over_degrees(self._own)

    def held_by_matrix(
        self, vectors: NDArray[Any], values: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        r"""Return which eigenvectors of N are more than rounding to K.

        .. math:: v^\top \Delta^{-1/2} K \Delta^{-1/2} v = \lambda + \sum_i v_i^2 K_{ii} / \Delta_i

        is 0 if v differs only between points that are equal to K: N leaves out the similarity of
        each point to itself, and any such v is an eigenvector.
        """
        squares = vectors.astype(np.float64) ** 2
        own = np.where(squares > 0, self._own_shares()[:, None] * squares, 0.0).sum(axis=0)
        return np.asarray(values + own > 64 * float(np.finfo(self.dtype).eps) * (1 + own))

    # ------------------------------------------------------------------ the matrix

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        dtype = np.result_type(V.dtype, self.dtype)
        scale = self.inverse_roots.astype(dtype, copy=False)[:, None]
        scaled = V * scale
        product = np.asarray(self.operator @ scaled).astype(dtype, copy=False)
        for start in range(0, len(self._loose), _BLOCK):
            chosen = self._loose[start : start + _BLOCK]
            product[chosen] = self._rows_without_own(chosen) @ scaled
        product *= scale
        # the product has w K_ii and must have (w - 1) K_ii; loose rows have nothing of it
        own = -self._own
        own[self._loose] *= 1 - self.weights[self._loose]
        product += (self._over_degrees(own) + self.shift).astype(dtype, copy=False)[:, None] * V
        return product

    def _over_degrees(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return values / Δ, 0 where the row is zero."""
        zero = np.zeros_like(values)
        return np.divide(values, self.degrees, out=zero, where=self.inverse_roots > 0)

    def _changed(self, block: NDArray[Any], chosen: NDArray[np.intp]) -> NDArray[Any]:
        # two divisions: the product of the roots may underflow
        block *= self.inverse_roots.astype(block.dtype, copy=False)
        block *= self.inverse_roots.astype(block.dtype, copy=False)[chosen, None]
        block[np.arange(len(chosen)), chosen] = self.diagonal()[chosen]
        return block

    def diagonal(self) -> NDArray[Any]:
        """Return the diagonal: the similarity of a point to its further copies, and the shift."""
        copies = self._over_degrees((self.weights - 1) * self._own)
        return (copies + self.shift).astype(self.dtype)

    def cross(self, X_new: Any) -> DegreeCross:
        """Return similarities of new points, divided by the degrees on both sides."""
        return DegreeCross(self.operator.cross(X_new), self.weights, self.inverse_roots)


class DegreeCross(CrossOperator):
    r"""Rows :math:`k(x, X) W^{1/2} / \sqrt{\Delta(x) \Delta}`, with Δ(x) = Σ_j w_j k(x, x_j).

    For an eigenvector v of the graph, with eigenvalue λ (without shift), ``cross @ v / λ`` is its
    Nyström extension. A new point without similarity to any training point has a row of zeros.

    Parameters
    ----------
    cross : CrossOperator
        The similarities k(x, X).
    weights, inverse_roots : ndarrays of shape (n,)
        Those of the :class:`Degree` of the training points.
    """

    def __init__(
        self,
        cross: CrossOperator,
        weights: NDArray[np.float64],
        inverse_roots: NDArray[np.float64],
    ) -> None:
        super().__init__(shape=cross.shape, dtype=cross.dtype)
        self._cross = cross
        self._weights = weights
        self._inverse_roots = inverse_roots

    def product_and_degrees(self, V: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return the product with V, shape (n, k), and the degrees Δ(x), from one pass."""
        dtype = np.result_type(V.dtype, self.dtype)
        scaled = V * self._inverse_roots.astype(dtype, copy=False)[:, None]
        product = self._cross @ np.hstack([scaled, self._weights[:, None]])
        degrees = product[:, -1].real.astype(np.float64)
        _check_degrees(degrees, np.arange(len(degrees)), "training points", " of the new points")
        block = np.ascontiguousarray(product[:, :-1]).astype(dtype, copy=False)
        block *= _inverse_roots(degrees).astype(dtype, copy=False)[:, None]
        return block, degrees

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        return self.product_and_degrees(V)[0]

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return rows of these new points."""
        block = self._cross.rows(indices)
        degrees = block @ self._weights
        _check_degrees(degrees, np.arange(len(degrees)), "training points", " of the new points")
        block *= self._inverse_roots.astype(block.dtype, copy=False)
        block *= _inverse_roots(degrees).astype(block.dtype, copy=False)[:, None]
        return block


def _inverse_roots(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 / √Δ, and 0 where the degree is not positive."""
    roots = np.sqrt(np.maximum(degrees, 0.0))
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)


def _check_degrees(
    degrees: NDArray[np.float64], numbers: NDArray[Any], others: str, of: str = ""
) -> None:
    """Raise if a degree is negative, naming the first such row."""
    negative = np.flatnonzero(degrees < 0)
    if len(negative):
        row = int(negative[0])
        raise ValueError(
            f"The degree of row {int(numbers[row])}{of}, the sum of its similarities to {others}, "
            f"is {degrees[row]:.4g} (one of {len(negative)} below 0). Use a kernel such as "
            "Gaussian, whose values are not negative, and no weights below 1: they count copies, "
            "without the similarity of a copy to itself."
        )
