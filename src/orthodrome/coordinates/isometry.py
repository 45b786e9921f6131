"""Explicit coordinates of the points of a Gram operator of low rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._core.checks import check_integer, check_positive
from ..gram import GramOperator
from ..gram.base import check_operator
from .points import Coordinates

# Directions with a smaller fraction of the trace are dropped.
_MIN_FRACTION = 1e-12


def pivoted_cholesky(
    operator: GramOperator, *, tol: float, max_rank: int
) -> tuple[NDArray[np.float64], float]:
    r"""Factor a positive semidefinite Gram matrix, :math:`K \approx L L^\top`, from a few rows.

    The rows of L are coordinates of the points. Each step uses the row of the point farthest from
    the span of the previous ones.

    Parameters
    ----------
    operator : GramOperator
        The matrix K.
    tol : float
        Stop when no diagonal entry of K - LLᵀ exceeds tol times the largest one of K.
    max_rank : int
        Maximum rank.

    Returns
    -------
    factor : ndarray of shape (n, rank)
        L, in float64.
    residual : float
        The largest diagonal entry of K - LLᵀ in modulus; above the bound only if `max_rank` was
        reached, or K is not positive semidefinite.

    Examples
    --------
    >>> from orthodrome.gram import DenseGram
    >>> factor, residual = pivoted_cholesky(DenseGram(np.ones((3, 3))), tol=1e-12, max_rank=3)
    >>> factor.T, residual
    (array([[1., 1., 1.]]), 0.0)
    """
    check_operator(operator, "pivoted_cholesky")
    check_positive(tol, "tol", "pivoted_cholesky", or_zero=True)
    check_integer(max_rank, "max_rank", "pivoted_cholesky")
    remaining: NDArray[Any] = operator.diagonal().astype(np.float64)
    limit = min(tol, 1.0) * float(remaining.max())
    max_rank = min(max_rank, len(remaining))
    columns = np.empty((max_rank, len(remaining)))  # memory of unused rows is never touched
    rank = 0
    while rank < max_rank and remaining.max() > limit:
        pivot = int(np.argmax(remaining))
        column = operator.rows([pivot])[0].astype(np.float64)
        column -= columns[:rank, pivot] @ columns[:rank]
        column /= np.sqrt(remaining[pivot])
        columns[rank] = column
        remaining -= column**2
        remaining[pivot] = 0.0
        rank += 1
    return columns[:rank].T, float(np.abs(remaining).max())


@dataclass(frozen=True)
class Isometry:
    """Coordinates of the points of a Gram operator in their span.

    Attributes
    ----------
    points : ndarray of shape (n, rank)
        Coordinates with the inner products of the matrix; columns in order of decreasing second
        moment.
    decoder : ndarray of shape (n, rank)
        Maps inner products with the points to coordinates: ``k @ decoder``.
    left_out : float
        Sum of squares in the directions that were dropped.
    """

    points: NDArray[np.float64]
    decoder: NDArray[np.float64]
    left_out: float


def isometric_coordinates(operator: GramOperator) -> Isometry:
    r"""Return coordinates Y of points, :math:`K = Y Y^\top`, from the eigenvectors of K.

    The whole matrix is computed. Directions below 1e-12 of the trace, or within rounding error, are
    dropped. The result always has at least two columns; the second may be 0.

    Parameters
    ----------
    operator : GramOperator
        The matrix K, which must be positive semidefinite.

    Returns
    -------
    Isometry
        Coordinates of the points, and the map for new points.

    Examples
    --------
    >>> from orthodrome.gram import DenseGram
    >>> found = isometric_coordinates(DenseGram(np.array([[2.0, 1.0], [1.0, 2.0]])))
    >>> (found.points @ found.points.T).round(6)
    array([[2., 1.],
           [1., 2.]])
    """
    check_operator(operator, "isometric_coordinates")
    matrix = operator.toarray().astype(np.float64)
    if not np.all(np.isfinite(matrix)):
        raise ValueError(
            f"Kernel values overflow in {operator.dtype}; rescale the data, or change the "
            "parameters of the kernel."
        )
    values, vectors = scipy.linalg.eigh(matrix, overwrite_a=True, driver="evd")
    limit = _largest_negligible(values, operator.dtype)
    if values[0] < -100 * limit:
        raise ValueError(
            f"The Gram matrix has the eigenvalue {values[0]:.2g}: the kernel is not positive "
            "definite on these data, so they have no coordinates. Use another kernel, or add "
            "a constant to the diagonal of the matrix."
        )
    kept, left_out = _kept(values, limit)
    roots = np.sqrt(np.maximum(values[kept][::-1], 0.0))
    vectors = vectors[:, kept][:, ::-1]
    decoder = np.divide(vectors, roots, out=np.zeros_like(vectors), where=roots > 0)
    return _with_two_columns(vectors * roots, decoder, left_out)


def principal_coordinates(features: Coordinates) -> Isometry:
    r"""Return the features of points, rotated to their principal axes.

    With as many anchors as the rank, they equal those of :func:`isometric_coordinates`, up to the
    signs of the axes. The same directions are dropped.

    Parameters
    ----------
    features : Coordinates
        The features of the points; all are computed.

    Returns
    -------
    Isometry
        Coordinates of the points, and the decoder for new points. Multiply it by inner products
        with the anchors, scaled as for the features; normalise afterwards.

    Examples
    --------
    >>> from orthodrome.coordinates import anchor_coordinates, choose_anchors
    >>> from orthodrome.kernels import Linear
    >>> X = np.array([[3.0, 4.0], [0.0, 2.0], [6.0, 8.0]])
    >>> kernel = Linear().fit(X)
    >>> anchors = choose_anchors(kernel, X, 3)
    >>> found = principal_coordinates(anchor_coordinates(kernel, X, anchors, unit=True))
    >>> (found.points @ found.points.T).round(6)
    array([[1. , 0.8, 1. ],
           [0.8, 1. , 0.8],
           [1. , 0.8, 1. ]])
    """
    coordinates = features.toarray().astype(np.float64)
    values, axes = scipy.linalg.eigh(coordinates.T @ coordinates, driver="evd")
    kept, left_out = _kept(values, _largest_negligible(values, features.dtype))
    axes = axes[:, kept][:, ::-1]
    return _with_two_columns(coordinates @ axes, features.decoder @ axes, left_out)


def _largest_negligible(values: NDArray[np.float64], dtype: Any) -> float:
    """Return the limit below which eigenvalues are negligible."""
    return max(_MIN_FRACTION, 8 * float(np.finfo(dtype).eps)) * float(np.abs(values).sum())


def _kept(values: NDArray[np.float64], limit: float) -> tuple[NDArray[np.bool_], float]:
    """Return which directions are kept, and the sum of the eigenvalues of the others."""
    kept = values > limit
    kept[-1] = True  # even if all data are 0
    return kept, float(np.maximum(values[~kept], 0.0).sum())


def _with_two_columns(
    points: NDArray[np.float64], decoder: NDArray[np.float64], left_out: float
) -> Isometry:
    """Return an isometry with at least two columns; the second may be 0."""
    if points.shape[1] == 1:
        points, decoder = (np.pad(array, [(0, 0), (0, 1)]) for array in (points, decoder))
    return Isometry(points, decoder, left_out)
