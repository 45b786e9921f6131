"""Log, Exp and distance on the unit sphere.

A point is a vector of unit length, given by its coordinates, or by its coefficients over the points
of a Gram operator: the same formulas with another inner product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_numbers, numbers_expected
from .._core.types import Floats
from .._core.unit import SAME_LENGTH, angles_from_halves, check_no_antipodes, check_unit_length
from ..gram import GramOperator
from ..gram.base import check_operator

__all__ = ["distance", "exp", "exp_at_pole", "log", "log_at_pole", "moved_along", "paired_angles"]


def distance(
    first: ArrayLike, second: ArrayLike, *, gram: GramOperator | None = None
) -> NDArray[Any]:
    r"""Return the geodesic distance, the angle between points, row by row.

    .. math:: d_g(a, b) = 2 \operatorname{atan2}(\|a - b\|, \|a + b\|)

    Unlike arccos⟨a, b⟩ this keeps its digits at small angles, where arccos loses half of them.

    Parameters
    ----------
    first, second : array-like of shape (m, d) or (d,)
        Points of unit length; one of them may be a single point.
    gram : GramOperator, optional
        If given, points are coefficients over its d points, :math:`y = \sum_n a_n \Phi(x_n)`.

    Returns
    -------
    ndarray of shape (m,), or a number where both are single points
        Angles in [0, π].

    Examples
    --------
    >>> distance([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]]).round(4)
    array([1.5708, 0.    ])
    """
    _check_gram(gram)
    a, b = _points(first, gram, "first"), _points(second, gram, "second")
    _check_dimension(b, gram, "second", a.shape[1])
    if len(a) != len(b) and 1 not in (len(a), len(b)):
        raise ValueError(
            f"first and second must have as many points, or one of them a single one; got {len(a)} "
            f"and {len(b)}. For all pairs there is geodesic_distances."
        )
    angles = paired_angles(a, b, gram)
    single = np.ndim(first) == 1 and np.ndim(second) == 1
    return angles[0] if single else angles


def log(
    points: ArrayLike, *, base_point: ArrayLike, gram: GramOperator | None = None
) -> NDArray[Any]:
    r"""Map points of the sphere to the tangent space at a base point.

    .. math:: \operatorname{Log}_b(y) = \frac{\theta}{\sin\theta} (y - \cos\theta\, b),
        \qquad \cos\theta = \langle y, b \rangle

    (kPGA, eq. 1). The length of the result is the distance, its direction that of the great
    circle. At the antipode of b there is no direction, and an error says so.

    Parameters
    ----------
    points : array-like of shape (m, d) or (d,)
        Points of unit length.
    base_point : array-like of shape (d,)
        The base point, of unit length.
    gram : GramOperator, optional
        If given, points and tangents are coefficients over its d points.

    Returns
    -------
    ndarray of the shape of `points`
        Tangent vectors.

    Examples
    --------
    >>> log([0.0, 1.0], base_point=[1.0, 0.0]).round(4)
    array([0.    , 1.5708])
    """
    _check_gram(gram)
    y, b = _points(points, gram, "points"), _base(base_point, gram)
    _check_dimension(y, gram, "points", len(b))
    chord, sums = _halves(y, b[None], gram)
    check_no_antipodes(sums**2 / 2 - 1, float(np.finfo(_precision(y, gram)).eps), "points")
    angles, _ = angles_from_halves(chord, sums)
    # the part across b of what is small: y - b, or y + b, which point the same way there
    tangents = y - np.where(chord <= sums, 1, -1).astype(y.dtype)[:, None] * b
    tangents -= (_inner(tangents, b[None], gram) / _inner(b[None], b[None], gram))[:, None] * b
    lengths = _norms(tangents, gram)
    tangents *= (angles / np.where(lengths > 0, lengths, 1))[:, None].astype(y.dtype)
    return tangents.reshape(np.shape(points))


def exp(
    tangents: ArrayLike, *, base_point: ArrayLike, gram: GramOperator | None = None
) -> NDArray[Any]:
    r"""Map tangent vectors at a base point to the sphere, along great circles.

    .. math:: \operatorname{Exp}_b(t) = \cos\|t\|\, b + \frac{\sin\|t\|}{\|t\|}\, t

    (kPGA, eq. 2).

    Parameters
    ----------
    tangents : array-like of shape (m, d) or (d,)
        Vectors orthogonal to the base point.
    base_point : array-like of shape (d,)
        The base point, of unit length.
    gram : GramOperator, optional
        If given, points and tangents are coefficients over its d points.

    Returns
    -------
    ndarray of the shape of `tangents`
        Points of unit length.

    Examples
    --------
    >>> exp([0.0, 3.141592653589793], base_point=[1.0, 0.0]).round(4)
    array([-1.,  0.])
    """
    _check_gram(gram)
    b = _base(base_point, gram)
    t = _vectors(tangents, "tangents")
    _check_dimension(t, gram, "tangents", len(b))
    lengths = _finite_norms(t, gram, "tangents")
    along = np.abs(t @ b) if gram is None else np.abs(t @ (gram @ b))
    # as much as leaves the length of the result 1; of a short tangent rounding is a large part
    allowed = SAME_LENGTH[_precision(t, gram)] * np.maximum(lengths, 1.0)
    if np.any(along > allowed):
        row = int(np.argmax(along - allowed))
        raise ValueError(
            f"tangents must be orthogonal to base_point; row {row} has the inner product "
            f"{along[row]:.2g} with it and the length {lengths[row]:.2g}."
        )
    points = np.cos(lengths)[:, None] * b + _across(t, lengths)
    return points.reshape(np.shape(tangents))


def exp_at_pole(coordinates: ArrayLike) -> NDArray[Any]:
    """Map tangent coordinates at the pole (1, 0, …, 0) to unit vectors.

    Parameters
    ----------
    coordinates : array-like of shape (m, q)
        Coordinates in an orthonormal frame of the tangent space, such as kPGA's embedding.

    Returns
    -------
    ndarray of shape (m, q + 1)
        Unit vectors in the frame (base point, v_1, …, v_q).

    Examples
    --------
    >>> exp_at_pole([[0.0, 0.0]])
    array([[1., 0., 0.]])
    """
    t = _vectors(coordinates, "coordinates")
    lengths = _finite_norms(t, None, "coordinates")
    return np.column_stack([np.cos(lengths), _across(t, lengths)])


def log_at_pole(points: ArrayLike) -> NDArray[Any]:
    """Map unit vectors to tangent coordinates at the pole: the inverse of :func:`exp_at_pole`.

    Parameters
    ----------
    points : array-like of shape (m, q + 1)
        Unit vectors.

    Returns
    -------
    ndarray of shape (m, q)
        Tangent coordinates, of length at most π.

    Examples
    --------
    >>> log_at_pole([[0.0, 1.0, 0.0]]).round(4)
    array([[1.5708, 0.    ]])
    """
    y = np.atleast_2d(_points(points, None, "points"))
    pole = np.zeros(y.shape[1], dtype=y.dtype)
    pole[0] = 1
    return log(y, base_point=pole)[:, 1:]


# ---------------------------------------------------------------------------- checks and norms


def paired_angles(
    a: NDArray[Any], b: NDArray[Any], gram: GramOperator | None = None
) -> NDArray[Any]:
    """Return the angles between the rows of two arrays of unit vectors, or of one row and all."""
    return angles_from_halves(*_halves(a, b, gram))[0]


def _halves(
    a: NDArray[Any], b: NDArray[Any], gram: GramOperator | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ‖a - b‖ and ‖a + b‖ of unit vectors, row by row.

    Of vectors of one length these two are orthogonal. Where lengths are 1 to rounding only, the
    part of the shorter along the longer one is rounding, and most of it for the nearest points.
    """
    difference, total = a - b, a + b
    chord, sums = _norms(difference, gram), _norms(total, gram)
    near = chord <= sums
    short = np.where(near[:, None], difference, total)
    long = np.where(near[:, None], total, difference)
    short -= (_inner(short, long, gram) / np.where(near, sums, chord) ** 2)[:, None] * long
    lengths = _norms(short, gram)
    return np.where(near, lengths, chord), np.where(near, sums, lengths)


def moved_along(point: Floats, step: Floats, farthest: float = np.inf) -> Floats:
    """Return the end of a tangent step from a point, or of the part up to an angle `farthest`."""
    length = float(np.linalg.norm(step))
    if length == 0:
        return point
    angle = min(length, farthest)
    moved = np.cos(angle) * point + np.sin(angle) / length * step
    return moved / np.linalg.norm(moved)


def _check_gram(gram: Any) -> None:
    if gram is not None:
        check_operator(gram, "the sphere", "gram")


def _vectors(values: ArrayLike, name: str) -> NDArray[Any]:
    with numbers_expected(values, name, "the sphere"):
        rows = np.atleast_2d(values)
    return check_numbers(rows, name, "the sphere", dtype=[np.float64, np.float32], order="C")


def _check_dimension(
    vectors: NDArray[Any], gram: GramOperator | None, name: str, d: int | None = None
) -> None:
    d = gram.shape[0] if gram is not None else d
    if d is not None and vectors.shape[1] != d:
        unit = "coefficients, one per point of gram" if gram is not None else "coordinates"
        raise ValueError(f"{name} must have {d} {unit}; got {vectors.shape[1]}.")


def _points(values: ArrayLike, gram: GramOperator | None, name: str) -> NDArray[Any]:
    vectors = _vectors(values, name)
    _check_dimension(vectors, gram, name)
    with np.errstate(over="ignore"):  # a length whose square overflows is not 1 either
        squares = _norms(vectors, gram) ** 2
    check_unit_length(squares, _precision(vectors, gram), name)
    return vectors


def _base(base_point: ArrayLike, gram: GramOperator | None) -> NDArray[Any]:
    with numbers_expected(base_point, "base_point", "the sphere"):
        dimensions = np.ndim(base_point)
    if dimensions != 1:
        raise ValueError(
            f"base_point must be a single point, one-dimensional; got {dimensions} dimensions."
        )
    return _points(base_point, gram, "base_point")[0]


def _norms(vectors: NDArray[Any], gram: GramOperator | None) -> NDArray[Any]:
    if gram is None:  # scaled, so that squares of tiny differences do not underflow
        scales = np.abs(vectors).max(axis=1, initial=0.0)
        scales = np.where(scales > 0, scales, 1).astype(vectors.dtype)
        return scales * np.linalg.norm(vectors / scales[:, None], axis=1)
    squares = np.einsum("ij,ij->i", vectors, np.ascontiguousarray((gram @ vectors.T).T))
    return np.sqrt(np.maximum(squares, 0.0))


def _finite_norms(vectors: NDArray[Any], gram: GramOperator | None, name: str) -> NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = _norms(vectors, gram)
    if not np.all(np.isfinite(lengths)):
        row = int(np.argmin(np.isfinite(lengths)))
        raise ValueError(f"The length of row {row} of {name} overflows in {vectors.dtype}.")
    return lengths


def _inner(first: NDArray[Any], second: NDArray[Any], gram: GramOperator | None) -> NDArray[Any]:
    """Return inner products, row by row, or of one row with all."""
    images = second if gram is None else np.ascontiguousarray((gram @ second.T).T)
    return np.vecdot(first, images.astype(first.dtype, copy=False))


def _precision(vectors: NDArray[Any], gram: GramOperator | None) -> np.dtype[Any]:
    """Return the coarser type of the vectors and of the inner product."""
    coarse = vectors.dtype == np.float32 or (gram is not None and gram.dtype == np.float32)
    return np.dtype(np.float32 if coarse else np.float64)


def _across(tangents: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """Return sin‖t‖ t/‖t‖, t itself at 0; the direction first, whose length is 1 for every t."""
    present = lengths > 0
    directions = tangents / np.where(present, lengths, 1)[:, None].astype(tangents.dtype)
    return np.where(present, np.sin(lengths), 1)[:, None].astype(tangents.dtype) * directions
