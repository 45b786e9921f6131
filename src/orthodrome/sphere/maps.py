"""Log, Exp and distances on the unit sphere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.checks import check_numbers, numbers_expected
from .._core.kinds import as_numpy
from .._core.types import Array, Data, Floats
from .._core.unit import (
    LENGTH_TOLERANCE,
    angles_from_chords,
    angles_from_complements,
    angles_from_cosines,
    check_no_antipodes,
    check_unit_length,
    squared_radius,
)
from ..kernels import Precomputed, as_fitted_kernel
from ..kernels.base import Prepared, finite_squared_norms, rectangular_block
from ..kernels.manifolds import has_profile, profile_of, squared_distances_of
from ..kernels.radial import squared_distances

_NEAR = 4  # in units of √eps: chords below this are computed pair by pair
_PAIRS = 65_536  # number of pairs in a batch


def distance(first: ArrayLike, second: ArrayLike) -> Array:
    r"""Return the geodesic distance (angle) between points, row by row.

    .. math:: d_g(a, b) = 2 \operatorname{atan2}(\|a - b\|, \|a + b\|)

    This is accurate at small angles, where arccos⟨a, b⟩ loses half of its digits.

    Parameters
    ----------
    first, second : array-like of shape (m, d) or (d,)
        Unit vectors; one of the two may be a single point.

    Returns
    -------
    ndarray of shape (m,), or a number if both are single points
        Angles in [0, π].

    Examples
    --------
    >>> distance([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]]).round(4)
    array([1.5708, 0.    ])
    """
    a = _points(first, "first", "distance")
    b = _points(second, "second", "distance", a.shape[1])
    if len(a) != len(b) and 1 not in (len(a), len(b)):
        raise ValueError(
            f"first and second must have the same number of points, or one of them a single point; "
            f"got {len(a)} and {len(b)}. Use geodesic_distances for all pairs."
        )
    angles = paired_angles(a, b)
    single = np.ndim(first) == 1 and np.ndim(second) == 1
    return angles[0] if single else angles


def log(points: ArrayLike, *, base_point: ArrayLike) -> Array:
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

    Returns
    -------
    ndarray of the shape of `points`
        Tangent vectors.

    Examples
    --------
    >>> log([0.0, 1.0], base_point=[1.0, 0.0]).round(4)
    array([0.    , 1.5708])
    """
    b = _base(base_point, "log")
    y = _points(points, "points", "log", len(b))
    chords, sums = _chords(y, b[None])
    check_no_antipodes(sums**2 / 2 - 1, float(np.finfo(y.dtype).eps), "points")
    angles, _ = angles_from_chords(chords, sums)
    # project the smaller of y - b and y + b, to avoid cancellation
    tangents = y - np.where(chords <= sums, 1, -1).astype(y.dtype)[:, None] * b
    tangents -= (tangents @ b / (b @ b))[:, None] * b
    lengths = _norms(tangents)
    tangents *= (angles / np.where(lengths > 0, lengths, 1))[:, None].astype(y.dtype)
    return tangents.reshape(np.shape(points))


def exp(tangents: ArrayLike, *, base_point: ArrayLike) -> Array:
    r"""Map tangent vectors at a base point to the sphere, along great circles.

    .. math:: \operatorname{Exp}_b(t) = \cos\|t\|\, b + \frac{\sin\|t\|}{\|t\|}\, t

    (Awate, Yu and Whitaker, "Kernel Principal Geodesic Analysis", 2014, eq. 2).

    Parameters
    ----------
    tangents : array-like of shape (m, d) or (d,)
        Vectors orthogonal to the base point.
    base_point : array-like of shape (d,)
        The base point, a unit vector.

    Returns
    -------
    ndarray of the shape of `tangents`
        Unit vectors.

    Examples
    --------
    >>> exp([0.0, 3.141592653589793], base_point=[1.0, 0.0]).round(4)
    array([-1.,  0.])
    """
    b = _base(base_point, "exp")
    t = _vectors(tangents, "tangents", "exp", len(b))
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = _norms(t)
    if not np.all(np.isfinite(lengths)):
        row = int(np.argmin(np.isfinite(lengths)))
        raise ValueError(
            f"The length of the tangent vector in row {row} overflows in {t.dtype}. Scale it down."
        )
    inner = np.abs(t @ b)
    # inner products up to `allowed` hardly change the length of the result. For short tangents the
    # limit is absolute, since their inner products are mostly rounding errors.
    allowed = LENGTH_TOLERANCE[t.dtype] * np.maximum(lengths, 1.0)
    if np.any(inner > allowed):
        row = int(np.argmax(inner - allowed))
        raise ValueError(
            f"tangents must be orthogonal to base_point; row {row} (length {lengths[row]:.2g}) has "
            f"inner product {inner[row]:.2g} with it. Project it onto the tangent space first."
        )
    # normalise first, since a factor sin‖t‖ / ‖t‖ would underflow for huge t
    directions = t / np.where(lengths > 0, lengths, 1)[:, None]
    points = np.cos(lengths)[:, None] * b + np.sin(lengths)[:, None] * directions
    return points.reshape(np.shape(tangents))


def exp_at_pole(coordinates: ArrayLike) -> Array:
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
    t = _vectors(coordinates, "coordinates", "exp_at_pole")
    tangents = np.column_stack([np.zeros(len(t), dtype=t.dtype), t])
    return exp(tangents, base_point=np.eye(1, tangents.shape[1], dtype=t.dtype)[0])


def log_at_pole(points: ArrayLike) -> Array:
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
    y = _vectors(points, "points", "log_at_pole")
    return log(y, base_point=np.eye(1, y.shape[1], dtype=y.dtype)[0])[:, 1:]


def geodesic_distances(X: Data, Y: Data | None = None, *, kernel: Any = None) -> Array:
    r"""Return the geodesic distances between all points of X and of Y.

    Without a kernel the points are unit vectors, and :math:`\theta = 2\operatorname{atan2}(\|x -
    y\|, \|x + y\|)`. With a kernel they are normalised feature vectors. For kernels that are
    functions of a distance (of vectors, shapes or matrices),

    .. math:: \theta = \operatorname{atan2}\left(\sqrt{(1 - k)(1 + k)}, k\right)

    with 1 - k computed without cancellation. This is accurate for near points, where arccos k would
    be 0 (‖x - y‖ < 1e-8 σ). For other kernels the accuracy is that of their values.

    Parameters
    ----------
    X : array-like of shape (m, d)
        Points.
    Y : array-like of shape (n, d), optional
        Points. Default: X.
    kernel : Kernel, str, callable or None, default=None
        The kernel, which is fitted to X if it is not fitted. k(x, x) must be constant. With
        ``"precomputed"``, X is the Gram matrix.

    Returns
    -------
    ndarray of shape (m, n)
        Angles in [0, π].

    Examples
    --------
    >>> from orthodrome.kernels import Gaussian
    >>> geodesic_distances([[0.0], [1e-9]], kernel=Gaussian(sigma=1.0))[0, 1]
    np.float64(1e-09)
    """
    if kernel is None:
        x = _unit_vectors(X, "X")
        y = x if Y is None else _unit_vectors(Y, "Y")
        d, found = x.coordinates.shape[1], y.coordinates.shape[1]
        if d != found:
            raise ValueError(f"Y must have as many columns as X, {d}; got {found}.")
        return _angles_between(x, y)
    fitted = as_fitted_kernel(kernel, X)
    X = fitted.validate(X, reset=False)
    if isinstance(fitted, Precomputed):
        if Y is not None:
            raise ValueError("Y must be None if X is a precomputed Gram matrix.")
        return angles_from_cosines(X / X.dtype.type(squared_radius(np.diagonal(X))))[0]
    Y = X if Y is None else fitted.validate(Y, reset=False)
    x, y = fitted.prepare(X), fitted.prepare(Y)
    radius = squared_radius(fitted.diagonal(x))
    squared_radius(fitted.diagonal(y), radius, what="Y")
    if has_profile(fitted):
        complement = profile_of(fitted).one_minus(squared_distances_of(fitted, x, y))
        return angles_from_complements(complement)[0]
    block = rectangular_block(fitted, x, y)
    block /= block.dtype.type(radius)
    return angles_from_cosines(block)[0]


def _angles_between(x: Prepared, y: Prepared) -> Array:
    """Return the angles between unit vectors."""
    opposite = Prepared(-y.coordinates, y.per_point)
    chords, sums = (np.sqrt(squared_distances(x, z)) for z in (y, opposite))
    angles = angles_from_chords(chords, sums)[0]
    # for near points, errors of squared lengths matter, and squares may underflow
    i, j = np.nonzero(chords <= _NEAR * np.sqrt(np.finfo(chords.dtype).eps))
    for start in range(0, len(i), _PAIRS):
        a, b = i[start : start + _PAIRS], j[start : start + _PAIRS]
        angles[a, b] = paired_angles(x.coordinates[a], y.coordinates[b])
    return angles


def _unit_vectors(X: Data, name: str) -> Prepared:
    array = check_numbers(X, name, "geodesic_distances", dtype=[np.float64, np.float32])
    squares = finite_squared_norms(array)
    check_unit_length(squares, array.dtype, name)
    return Prepared(array, squares)


# ---------------------------------------------------------------------------- checks and norms


def paired_angles(a: Array, b: Array) -> Array:
    """Return the angles between unit vectors, row by row; one array may have a single row."""
    return angles_from_chords(*_chords(a, b))[0]


def _chords(a: Array, b: Array) -> tuple[Array, Array]:
    """Return ‖a - b‖ and ‖a + b‖ of unit vectors, row by row.

    a - b and a + b are orthogonal if a and b have the same length. Since lengths are 1 up to
    rounding errors only, the component of the shorter vector along the longer one is removed.
    """
    difference, total = a - b, a + b
    chords, sums = _norms(difference), _norms(total)
    near = chords <= sums
    short = np.where(near[:, None], difference, total)
    long = np.where(near[:, None], total, difference)
    short -= (np.vecdot(short, long) / np.where(near, sums, chords) ** 2)[:, None] * long
    lengths = _norms(short)
    return np.where(near, lengths, chords), np.where(near, sums, lengths)


def geodesic_step(point: Floats, step: Floats, max_angle: float = np.inf) -> Floats:
    """Return Exp of a tangent vector at a point, shortened to an angle of at most `max_angle`."""
    length = float(np.linalg.norm(step))
    if length == 0:
        return point
    angle = min(length, max_angle)
    end = np.cos(angle) * point + np.sin(angle) / length * step
    return end / np.linalg.norm(end)


def _vectors(values: ArrayLike, name: str, owner: str, d: int | None = None) -> Array:
    """Return values as rows; raise unless each has d numbers."""
    with numbers_expected(values, name, owner):
        rows = np.atleast_2d(as_numpy(values, name, owner))
    vectors = check_numbers(rows, name, owner, dtype=[np.float64, np.float32], order="C")
    if d is not None and vectors.shape[1] != d:
        raise ValueError(f"{name} must have {d} coordinates; got {vectors.shape[1]}.")
    return vectors


def _points(values: ArrayLike, name: str, owner: str, d: int | None = None) -> Array:
    vectors = _vectors(values, name, owner, d)
    with np.errstate(over="ignore"):  # check_unit_length also rejects infinite squares
        squares = _norms(vectors) ** 2
    check_unit_length(squares, vectors.dtype, name)
    return vectors


def _base(base_point: ArrayLike, owner: str) -> Array:
    with numbers_expected(base_point, "base_point", owner):
        dimensions = np.ndim(base_point)
    if dimensions != 1:
        raise ValueError(
            f"base_point must be a single point, one-dimensional; got {dimensions} dimensions."
        )
    return _points(base_point, "base_point", owner)[0]


def _norms(vectors: Array) -> Array:
    # scale first, since squares of tiny differences underflow
    scales = np.abs(vectors).max(axis=1, initial=0.0)
    scales = np.where(scales > 0, scales, 1).astype(vectors.dtype)
    return scales * np.linalg.norm(vectors / scales[:, None], axis=1)
