"""Explicit coordinates of the points of a Gram operator of low rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import GramOperator

__all__ = ["pivoted_cholesky"]


def pivoted_cholesky(
    operator: GramOperator, *, tol: float, max_rank: int
) -> tuple[NDArray[np.float64], float]:
    r"""Factor a positive semidefinite Gram matrix, :math:`K \approx L L^\top`, from a few rows.

    The rows of L are coordinates of the points in a space of as many dimensions as rows were
    taken: each time that of the point farthest from the span of the ones before.

    Parameters
    ----------
    operator : GramOperator
        The matrix K.
    tol : float
        Stop when no diagonal entry of K - LLᵀ exceeds tol times the largest one of K.
    max_rank : int
        The most rows.

    Returns
    -------
    factor : ndarray of shape (n, rank)
        L, in float64.
    residual : float
        The largest diagonal entry of K - LLᵀ in modulus; above that bound only where `max_rank` was
        reached, or where K is not positive semidefinite.

    Examples
    --------
    >>> from orthodrome.gram import DenseGram
    >>> factor, residual = pivoted_cholesky(DenseGram(np.ones((3, 3))), tol=1e-12, max_rank=3)
    >>> factor.T, residual
    (array([[1., 1., 1.]]), 0.0)
    """
    left: NDArray[Any] = operator.diagonal().astype(np.float64)
    limit = tol * float(left.max())
    columns = np.empty((max_rank, len(left)))  # the pages of columns not reached are never touched
    rank = 0
    while rank < max_rank and left.max() > limit:
        pivot = int(np.argmax(left))
        column = operator.rows([pivot])[0].astype(np.float64)
        column -= columns[:rank, pivot] @ columns[:rank]
        column /= np.sqrt(left[pivot])
        columns[rank] = column
        left -= column**2
        left[pivot] = 0.0
        rank += 1
    return columns[:rank].T, float(np.abs(left).max())
