"""Gram matrices of points that are combinations of others: W K Wᵀ."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_numbers
from .base import CrossOperator, GramOperator, as_indices, check_operator

_BLOCK = 256  # rows computed at once


class Combined(GramOperator):
    r"""Inner products of M combinations of N points, :math:`y_m = \sum_n w_{mn} \Phi(x_n)`.

    .. math:: \langle y_m, y_{m'} \rangle = (W K W^\top)_{mm'}

    Parameters
    ----------
    operator : GramOperator
        The matrix K of the N points.
    combination : array-like or sparse array of shape (M, N), or array-like of shape (N,)
        W; a vector stands for a diagonal matrix, which scales the points.
    """

    def __init__(self, operator: GramOperator, combination: Any) -> None:
        check_operator(operator, "Combined")
        W: Any = check_numbers(
            combination,
            "combination",
            "Combined",
            accept_sparse="csr",
            ensure_2d=False,
            dtype=[np.float64, np.float32],
        )
        W = scipy.sparse.diags_array(W) if W.ndim == 1 else W
        if W.ndim != 2 or W.shape[1] != operator.shape[0]:
            raise ValueError(
                f"combination must have {operator.shape[0]} columns, one per point of the "
                f"operator; got shape {W.shape}."
            )
        W = scipy.sparse.csr_array(W) if scipy.sparse.issparse(W) else W
        if float(abs(W).max()) > float(np.finfo(operator.dtype).max) ** 0.5:
            raise ValueError(
                f"Squares of combination of Combined overflow in {operator.dtype}; scale it down."
            )
        super().__init__(shape=(W.shape[0], W.shape[0]), dtype=operator.dtype)
        self.operator = operator
        self.combination: Any = W.astype(operator.dtype, copy=False)
        self.recomputes = operator.recomputes

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        return self.combination @ (self.operator @ (self.combination.T @ V))

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return rows of W K Wᵀ."""
        return self._left_product(as_indices(indices, self.shape[0])) @ self.combination.T

    def _left_product(self, chosen: NDArray[np.intp]) -> NDArray[Any]:
        """Return W[chosen] K, from rows of K if few are needed, otherwise from a product."""
        W = self.combination[chosen]
        needed = np.flatnonzero(abs(W).sum(axis=0))
        if len(needed) > max(len(chosen), self.operator.shape[0] // 8):
            W = W.toarray() if scipy.sparse.issparse(W) else W
            return np.ascontiguousarray((self.operator @ W.T).T)
        step = max(len(chosen), _BLOCK)
        product = W[:, needed[:step]] @ self.operator.rows(needed[:step])
        for start in range(step, len(needed), step):
            columns = needed[start : start + step]
            product += W[:, columns] @ self.operator.rows(columns)
        return product

    def diagonal(self) -> NDArray[Any]:
        """Return the squared lengths of the combinations."""
        W = self.combination
        if np.all((W != 0).sum(axis=1) <= 1):  # each combination is a multiple of one point
            return ((W * W) @ self.operator.diagonal()).astype(self.dtype)
        blocks = []
        for start in range(0, self.shape[0], _BLOCK):
            chosen = np.arange(start, min(start + _BLOCK, self.shape[0]))
            blocks.append((W[chosen] * self._left_product(chosen)).sum(axis=1))
        return np.concatenate(blocks).astype(self.dtype)

    def term_size(self, _weights: NDArray[np.float64] | None = None) -> float:
        """Return the size of the terms subtracted in an entry."""
        return self.operator.term_size() * float(abs(self.combination).sum(axis=1).max()) ** 2

    def cross(self, X_new: Any) -> CrossOperator:
        """Return inner products of new points with the combinations."""
        return _CombinedCross(self.operator.cross(X_new), self.combination)


class _CombinedCross(CrossOperator):
    """k(X_new, X) Wᵀ."""

    def __init__(self, cross: CrossOperator, combination: Any) -> None:
        super().__init__(shape=(cross.shape[0], combination.shape[0]), dtype=cross.dtype)
        self._cross = cross
        self._combination = combination

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        return self._cross @ (self._combination.T @ V)

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return rows of these new points."""
        return np.asarray(self._cross.rows(indices) @ self._combination.T)
