"""Log, Exp and distance on the unit sphere.

A point is a unit vector, given as coordinates or as coefficients over the points of a Gram
operator. The formulas are the same; only the inner product differs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_numbers, numbers_expected
from .._core.types import Floats
from .._core.unit import LENGTH_TOLERANCE, angles_from_chords, check_no_antipodes, check_unit_length
from ..gram import GramOperator
from ..gram.base import check_operator


def distance(
    first: ArrayLike, second: ArrayLike, *, gram: GramOperator | None = None
) -> NDArray[Any]:
    r"""Return the geodesic distance (angle) between points, row by row.

    .. math:: d_g(a, b) = 2 \operatorname{atan2}(\|a - b\|, \|a + b\|)

    This is accurate at small angles, where arccos⟨a, b⟩ loses half of its digits.

    Parameters
    ----------
    first, second : array-like of shape (m, d) or (d,)
        Unit vectors; one of the two may be a single point.
    gram : GramOperator, optional
        If given, the points are coefficients over its d points, :math:`y = \sum_n a_n \Phi(x_n)`.

    Returns
    -------
    ndarray of shape (m,), or a number if both are single points
        Angles in [0, π].

    Examples
    --------
    >>> distance([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]]).round(4)
    array([1.5708, 0.    ])
    """
    a = _points(first, gram, "first", "distance")
    b = _points(second, gram, "second", "distance", a.shape[1])
    if len(a) != len(b) and 1 not in (len(a), len(b)):
        raise ValueError(
            f"first and second must have the same number of points, or one of them a single point; "
            f"got {len(a)} and {len(b)}. Use geodesic_distances for all pairs."
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

    (Awate, Yu and Whitaker, "Kernel Principal Geodesic Analysis", 2014, eq. 1). The length of the
    result is the distance; its direction is that of the great circle from b to y. Log is not
    defined at the antipode of b, which raises a ValueError.

    Parameters
    ----------
    points : array-like of shape (m, d) or (d,)
        Unit vectors.
    base_point : array-like of shape (d,)
        The base point, a unit vector.
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
    b = _base(base_point, gram, "log")
    y = _points(points, gram, "points", "log", len(b))
    chords, sums = _chords(y, b[None], gram)
    check_no_antipodes(sums**2 / 2 - 1, float(np.finfo(_precision(y, gram)).eps), "points")
    angles, _ = angles_from_chords(chords, sums)
    # project the smaller of y - b and y + b, to avoid cancellation
    tangents = y - np.where(chords <= sums, 1, -1).astype(y.dtype)[:, None] * b
    tangents -= (_inner(tangents, b[None], gram) / _inner(b[None], b[None], gram))[:, None] * b
    lengths = _norms(tangents, gram)
    tangents *= (angles / np.where(lengths > 0, lengths, 1))[:, None].astype(y.dtype)
    return tangents.reshape(np.shape(points))


def exp(
    tangents: ArrayLike, *, base_point: ArrayLike, gram: GramOperator | None = None
) -> NDArray[Any]:
    r"""Map tangent vectors at a base point to the sphere, along great circles.

    .. math:: \operatorname{Exp}_b(t) = \cos\|t\|\, b + \frac{\sin\|t\|}{\|t\|}\, t

    (Awate, Yu and Whitaker, "Kernel Principal Geodesic Analysis", 2014, eq. 2).

    Parameters
    ----------
    tangents : array-like of shape (m, d) or (d,)
        Vectors orthogonal to the base point.
    base_point : array-like of shape (d,)
        The base point, a unit vector.
    gram : GramOperator, optional
        If given, points and tangents are coefficients over its d points.

    Returns
    -------
    ndarray of the shape of `tangents`
        Unit vectors.

    Examples
    --------
    >>> exp([0.0, 3.141592653589793], base_point=[1.0, 0.0]).round(4)
    array([-1.,  0.])
    """
    b = _base(base_point, gram, "exp")
    t = _vectors(tangents, gram, "tangents", "exp", len(b))
    lengths = _finite_norms(t, gram, "tangents")
    inner = np.abs(t @ (b if gram is None else gram @ b))
    # an inner product up to this hardly changes the length of the result; short tangents are mostly
    # rounding errors
    allowed = LENGTH_TOLERANCE[_precision(t, gram)] * np.maximum(lengths, 1.0)
    if np.any(inner > allowed):
        row = int(np.argmax(inner - allowed))
        raise ValueError(
            f"tangents must be orthogonal to base_point; row {row} (length {lengths[row]:.2g}) has "
            f"inner product {inner[row]:.2g} with it. Project it onto the tangent space first."
        )
    points = np.cos(lengths)[:, None] * b + _tangential_part(t, lengths)
    return points.reshape(np.shape(tangents))


def exp_at_pole(coordinates: ArrayLike) -> NDArray[Any]:
    """Map tangent coordinates at the pole (1, 0, …, 0) to unit vectors.

    Parameters
    ----------
    coordinates : array-like of shape (m, q)
        Coordinates in an orthonormal frame of the tangent space, such as the embedding of
        :class:`~orthodrome.KernelPGA`.

    Returns
    -------
    ndarray of shape (m, q + 1)
        Unit vectors in the frame (base point, v_1, …, v_q).

    Examples
    --------
    >>> exp_at_pole([[0.0, 0.0]])
    array([[1., 0., 0.]])
    """
    t = _vectors(coordinates, None, "coordinates", "exp_at_pole")
    lengths = _finite_norms(t, None, "coordinates")
    return np.column_stack([np.cos(lengths), _tangential_part(t, lengths)])


def log_at_pole(points: ArrayLike) -> NDArray[Any]:
    """Map unit vectors to tangent coordinates at the pole (1, 0, …, 0).

    This is the inverse of :func:`exp_at_pole`.

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
    y = _vectors(points, None, "points", "log_at_pole")
    return log(y, base_point=np.eye(1, y.shape[1], dtype=y.dtype)[0])[:, 1:]


# ---------------------------------------------------------------------------- checks and norms


def paired_angles(
    a: NDArray[Any], b: NDArray[Any], gram: GramOperator | None = None
) -> NDArray[Any]:
    """Return the angles between unit vectors, row by row; one array may have a single row."""
    return angles_from_chords(*_chords(a, b, gram))[0]


def _chords(
    a: NDArray[Any], b: NDArray[Any], gram: GramOperator | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ‖a - b‖ and ‖a + b‖ of unit vectors, row by row.

    a - b and a + b are orthogonal if a and b have the same length. Since lengths are 1 up to
    rounding errors only, the component of the shorter vector along the longer one is removed.
    """
    difference, total = a - b, a + b
    chords, sums = _norms(difference, gram), _norms(total, gram)
    near = chords <= sums
    short = np.where(near[:, None], difference, total)
    long = np.where(near[:, None], total, difference)
    short -= (_inner(short, long, gram) / np.where(near, sums, chords) ** 2)[:, None] * long
    lengths = _norms(short, gram)
    return np.where(near, lengths, chords), np.where(near, sums, lengths)


def geodesic_step(point: Floats, step: Floats, max_angle: float = np.inf) -> Floats:
    """Return Exp of a tangent vector at a point, shortened to an angle of at most `max_angle`."""
    length = float(np.linalg.norm(step))
    if length == 0:
        return point
    angle = min(length, max_angle)
    end = np.cos(angle) * point + np.sin(angle) / length * step
    return end / np.linalg.norm(end)


def _vectors(
    values: ArrayLike, gram: GramOperator | None, name: str, owner: str, d: int | None = None
) -> NDArray[Any]:
    """Return values as rows; raise unless each has d numbers, or one per point of `gram`."""
    unit = "coordinates"
    if gram is not None:
        check_operator(gram, owner, "gram")
        d, unit = gram.shape[0], "coefficients, one per point of gram"
    with numbers_expected(values, name, owner):
        rows = np.atleast_2d(values)
    vectors = check_numbers(rows, name, owner, dtype=[np.float64, np.float32], order="C")
    if d is not None and vectors.shape[1] != d:
        raise ValueError(f"{name} must have {d} {unit}; got {vectors.shape[1]}.")
    return vectors


def _points(
    values: ArrayLike, gram: GramOperator | None, name: str, owner: str, d: int | None = None
) -> NDArray[Any]:
    vectors = _vectors(values, gram, name, owner, d)
    with np.errstate(over="ignore"):  # check_unit_length also rejects infinite squares
        squares = _norms(vectors, gram) ** 2
    check_unit_length(squares, _precision(vectors, gram), name)
    return vectors


def _base(base_point: ArrayLike, gram: GramOperator | None, owner: str) -> NDArray[Any]:
    with numbers_expected(base_point, "base_point", owner):
        dimensions = np.ndim(base_point)
    if dimensions != 1:
        raise ValueError(
            f"base_point must be a single point, one-dimensional; got {dimensions} dimensions."
        )
    return _points(base_point, gram, "base_point", owner)[0]


def _norms(vectors: NDArray[Any], gram: GramOperator | None) -> NDArray[Any]:
    if gram is None:  # scale first, since squares of tiny differences underflow
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
        raise ValueError(
            f"The length of row {row} of {name} overflows in {vectors.dtype}. Scale it down."
        )
    return lengths


def _inner(first: NDArray[Any], second: NDArray[Any], gram: GramOperator | None) -> NDArray[Any]:
    """Return inner products, row by row; one array may have a single row."""
    images = second if gram is None else np.ascontiguousarray((gram @ second.T).T)
    return np.vecdot(first, images.astype(first.dtype, copy=False))


def _precision(vectors: NDArray[Any], gram: GramOperator | None) -> np.dtype[Any]:
    """Return the lower precision of the vectors and of the inner product."""
    coarse = vectors.dtype == np.float32 or (gram is not None and gram.dtype == np.float32)
    return np.dtype(np.float32 if coarse else np.float64)


def _tangential_part(tangents: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """Return sin‖t‖ t/‖t‖, or 0 if t = 0. Normalising first avoids overflow for huge t."""
    present = lengths > 0
    directions = tangents / np.where(present, lengths, 1)[:, None].astype(tangents.dtype)
    return np.where(present, np.sin(lengths), 1)[:, None].astype(tangents.dtype) * directions
