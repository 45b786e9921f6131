"""Compute explicit coordinates of points from their Gram operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from .._core.checks import check_integer, check_positive
from .._core.types import Array, Floats
from ..gram import GramOperator
from ..gram.base import check_operator
from .points import Coordinates

# Directions whose eigenvalue is a smaller fraction of the trace are dropped.
_MIN_FRACTION = 1e-12


def pivoted_cholesky(operator: GramOperator, *, tol: float, max_rank: int) -> tuple[Floats, float]:
    r"""Factor a positive semidefinite Gram matrix, :math:`K \approx L L^\top`, from a few rows.

    The rows of L are coordinates of the points. Each step adds a column to L. It uses the row of K
    for the point farthest from the span of the points used before.

    Parameters
    ----------
    operator : GramOperator
        The matrix K.
    tol : float
        Stop when no diagonal entry of K - LLᵀ exceeds tol times the largest diagonal entry of K.
    max_rank : int
        Maximum number of columns of L.

    Returns
    -------
    factor : ndarray of shape (n, rank)
        L, in float64.
    residual : float
        The largest absolute value of a diagonal entry of K - LLᵀ. It exceeds the bound of `tol`
        only if `max_rank` was reached, or if K is not positive semidefinite.

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
    remaining: Array = operator.diagonal().astype(np.float64)
    limit = min(tol, 1.0) * float(remaining.max())
    max_rank = min(max_rank, len(remaining))
    columns = np.empty((max_rank, len(remaining)))  # rows that stay unused take no memory
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
    """Coordinates of points, with the same inner products as in feature space.

    Attributes
    ----------
    points : ndarray of shape (n, rank)
        Coordinates. Their inner products are the entries of the Gram matrix. The columns are in
        order of decreasing sum of squares.
    decoder : ndarray of shape (n, rank), or (n_anchors, rank)
        If the vector k holds the inner products of a new point with the n points, or with the
        anchors, the coordinates of the new point are ``k @ decoder``.
    left_out : float
        Sum of the squared coordinates in the directions that were dropped.
    """

    points: Floats
    decoder: Floats
    left_out: float


def isometric_coordinates(operator: GramOperator) -> Isometry:
    r"""Return coordinates Y of points, :math:`K = Y Y^\top`, from the eigenvectors of K.

    The whole matrix is computed. Directions are dropped if their eigenvalue is below 1e-12 of the
    trace or within rounding error. Y always has at least two columns; the second may be 0.

    Parameters
    ----------
    operator : GramOperator
        The matrix K, which must be positive semidefinite.

    Returns
    -------
    Isometry
        Coordinates of the points, and the decoder for new points.

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
            f"Kernel values overflow in {operator.dtype}; rescale the data, or change the kernel."
        )
    values, vectors = scipy.linalg.eigh(matrix, overwrite_a=True, driver="evd")
    limit = _largest_negligible(values, operator.dtype)
    if values[0] < -100 * limit:
        raise ValueError(
            f"The kernel is not positive definite on these data: its Gram matrix has the "
            f"eigenvalue {values[0]:.2g}. Use another kernel, or add a constant to the diagonal."
        )
    kept, left_out = _kept(values, limit)
    roots = np.sqrt(np.maximum(values[kept][::-1], 0.0))
    vectors = vectors[:, kept][:, ::-1]
    decoder = np.divide(vectors, roots, out=np.zeros_like(vectors), where=roots > 0)
    return _with_two_columns(vectors * roots, decoder, left_out)


def principal_coordinates(features: Coordinates) -> Isometry:
    r"""Return the features of points, rotated to their principal axes.

    If the number of anchors equals the rank of the Gram matrix, the result equals that of
    :func:`isometric_coordinates`, up to the signs of the axes. Directions are dropped by the same
    criterion.

    Parameters
    ----------
    features : Coordinates
        The features of the points. They are computed for all points at once.

    Returns
    -------
    Isometry
        Coordinates of the points, and the decoder for new points. For a new point, compute the
        inner products with the anchors, scaled as in `features`, and multiply them by the decoder.
        If `features` are normalised, normalise the result.

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


def _largest_negligible(values: Floats, dtype: Any) -> float:
    """Return the limit up to which eigenvalues are negligible."""
    return max(_MIN_FRACTION, 8 * float(np.finfo(dtype).eps)) * float(np.abs(values).sum())


def _kept(values: Floats, limit: float) -> tuple[Array, float]:
    """Return which directions are kept, and the sum of the eigenvalues of the others."""
    kept = values > limit
    kept[-1] = True  # keep one direction even if all data are 0
    return kept, float(np.maximum(values[~kept], 0.0).sum())


def _with_two_columns(points: Floats, decoder: Floats, left_out: float) -> Isometry:
    """Return an isometry with at least two columns, adding a second column of zeros if needed."""
    if points.shape[1] == 1:
        points, decoder = (np.pad(array, [(0, 0), (0, 1)]) for array in (points, decoder))
    return Isometry(points, decoder, left_out)
