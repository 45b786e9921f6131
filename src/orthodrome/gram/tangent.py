"""The Gram matrix of Log maps of points on the unit sphere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_finite_vector
from .._core.digest import sketch
from .._core.unit import angles_from_cosines, check_no_antipodes
from .base import GramOperator, WrappedCross, WrappedGram
from .unit import squared_radius


class _TangentCross(WrappedCross):
    """Rows d(x) (k(x, X) - c(x) cᵀ) D."""

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        # one pass gives both the products and the cosines, from which the factors d(x) follow
        dtype = np.result_type(V.dtype, self.dtype)
        orthogonal = self._gram._orthogonal(V)
        product = self._cross @ np.hstack([orthogonal, self._gram.base_point[:, None]])
        cosines = product[:, -1].real.astype(np.float64)
        block = np.ascontiguousarray(product[:, :-1]).astype(dtype, copy=False)
        radial = self._gram.cosines @ orthogonal  # rounding error along the base point
        block -= np.outer(cosines, radial).astype(dtype, copy=False)
        block *= self._stretches(cosines).astype(dtype, copy=False)[:, None]
        return block

    def _stretches(self, cosines: NDArray[Any]) -> NDArray[Any]:
        check_no_antipodes(cosines, self._gram._eps, "new points")
        return angles_from_cosines(cosines)[1]

    def _transform_rows(self, block: NDArray[Any]) -> NDArray[Any]:
        cosines = block @ self._gram.base_point
        return self._gram._project_rows(block, cosines, self._stretches(cosines))


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

    _cross = _TangentCross

    def __init__(
        self, operator: GramOperator, base_point: ArrayLike, cosines: ArrayLike | None = None
    ) -> None:
        super().__init__(operator)
        n = self.shape[0]
        self.base_point: NDArray[np.float64] = check_finite_vector(
            base_point, n, "base_point", "Tangent"
        )
        # in float64 also over a float32 Gram: c cᵀ is subtracted from every entry
        self.cosines: NDArray[np.float64] = (
            np.asarray(operator @ self.base_point, dtype=np.float64)
            if cosines is None
            else check_finite_vector(cosines, n, "cosines", "Tangent")
        )
        self._eps = float(np.finfo(self.dtype).eps)
        self._check_unit_length()
        check_no_antipodes(self.cosines, self._eps, "points")
        self.angles, self.stretches = angles_from_cosines(self.cosines)

    def _check_unit_length(self) -> None:
        squared_radius(self.operator.diagonal(), expected=1.0, what="points")
        with np.errstate(over="ignore", invalid="ignore"):
            square = float(self.base_point @ self.cosines)
        if not abs(square - 1) <= (1e-6 if self.dtype == np.float64 else 1e-3):
            raise ValueError(
                f"base_point of Tangent must have unit length; its square is {square:.8g}. Divide "
                "it by sqrt(base_point @ operator @ base_point)."
            )

    def _identity(self) -> dict[str, Any]:
        # the last digits of the base point, an iterative solution, depend on the number of threads
        decimals = 6 if self.dtype == np.float64 else 3
        return {"operator": self.operator, "base_point": sketch(self.base_point, decimals)}

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        # K - c cᵀ = (I - c ξᵀ) K (I - ξ cᵀ). K is multiplied by vectors orthogonal to the base
        # point, which avoids subtracting terms of the size of K afterwards.
        product = self.operator @ self._orthogonal(V)
        radial = self.base_point @ product
        product -= np.outer(self.cosines, radial).astype(product.dtype, copy=False)
        product *= self.stretches.astype(product.dtype, copy=False)[:, None]
        return product

    def _orthogonal(self, V: NDArray[Any]) -> NDArray[Any]:
        """Return (I - ξ cᵀ) D V in the precision of V and K."""
        dtype = np.result_type(V.dtype, self.dtype)
        radial = (self.cosines * self.stretches) @ V
        orthogonal = V * self.stretches.astype(dtype, copy=False)[:, None]
        orthogonal -= np.outer(self.base_point, radial).astype(dtype, copy=False)
        return orthogonal

    def _transform_rows(self, block: NDArray[Any], chosen: NDArray[np.intp]) -> NDArray[Any]:
        return self._project_rows(block, self.cosines[chosen], self.stretches[chosen])

    def _project_rows(
        self, block: NDArray[Any], cosines: NDArray[Any], stretches: NDArray[Any]
    ) -> NDArray[Any]:
        block -= np.outer(cosines, self.cosines).astype(block.dtype, copy=False)
        block *= stretches.astype(block.dtype, copy=False)[:, None]
        block *= self.stretches.astype(block.dtype, copy=False)
        return block

    def diagonal(self) -> NDArray[Any]:
        """Return the squared distances from the base point."""
        sines = self.operator.diagonal().astype(np.float64) - self.cosines**2
        return (sines * self.stretches**2).astype(self.dtype)

    def term_size(self, weights: NDArray[np.float64] | None = None) -> float:
        """Return the average size of the terms subtracted in an entry.

        Large coefficients of the base point that cancel increase the terms of the cosines.
        """
        growth = max(1.0, float(np.linalg.norm(self.base_point)))
        return growth * float(np.average(self.stretches**2, weights=weights))
