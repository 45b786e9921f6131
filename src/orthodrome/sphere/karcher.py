"""The weighted Karcher mean on the unit sphere."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from .._core.angles import angles_from_cosines, angles_from_halves, check_no_antipodes
from .._core.checks import check_integer, check_positive, check_sample_weight
from .._core.status import Status, warn_unless_converged
from .._core.threads import run_over_rows, single_threaded_blas
from ..gram import GramOperator, squared_radius
from .maps import check_unit_length

__all__ = ["KarcherMean", "karcher_mean"]

_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of an objective, from cosines
_PATIENCE = 5  # iterations without progress after which only rounding is left


@dataclass(frozen=True)
class KarcherMean:
    """The weighted Karcher mean of points on the sphere.

    Attributes
    ----------
    point : ndarray of shape (d,) or (n,)
        The mean: coordinates, or coefficients over the n points of the Gram operator.
    cosines : ndarray of shape (n,)
        Inner products of the points with the mean.
    variance : float
        Σ p_n θ_n², the weighted mean of the squared distances, which the mean minimises.
    gradient_norm : float
        ‖Σ p_n Log_μ(y_n)‖ at the mean, in radians.
    n_iter : int
        Steps taken; each cost one product with the Gram operator, and the start another.
    status : Status
        How it ended.
    history : tuple of dict
        ``objective`` and ``gradient_norm`` before each step, and at the end.
    """

    point: NDArray[Any]
    cosines: NDArray[np.float64]
    variance: float
    gradient_norm: float
    n_iter: int
    status: Status
    history: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    @property
    def converged(self) -> bool:
        """Whether the tolerance, or the limit of rounding, was reached."""
        return self.status.converged


def karcher_mean(
    points: GramOperator | ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    tol: float = 1e-10,
    max_iter: int = 100,
    initial: ArrayLike | None = None,
    callback: Callable[[dict[str, Any]], None] | None = None,
) -> KarcherMean:
    r"""Find the point that minimises the weighted squared distances to points on the sphere.

    .. math:: \mu = \arg\min_\nu \sum_n p_n\, d_g^2(\nu, y_n), \qquad \sum_n p_n = 1

    (kPGA, eq. 3; there the weights are divided by the number of points instead of their sum). The
    negative gradient is :math:`g = \sum_n p_n \operatorname{Log}_\mu(y_n)`. With
    :math:`w_n = p_n \theta_n/\sin\theta_n` and the cosines c it is
    :math:`\sum_n w_n y_n - (w \cdot c)\,\mu`: one product with the Gram matrix gives it, its
    length, and the cosines of every point of the great circle along it. Steps are therefore
    conjugate gradients with the exact second derivative along the great circle, shortened until
    the objective does not rise; they need about half as many products as steps of fixed length.

    Parameters
    ----------
    points : GramOperator, or array-like of shape (n, d)
        Points of unit length: the operator of their inner products, or their coordinates.
    sample_weight : array-like of shape (n,), optional
        Weights; they are divided by their sum. Default: equal.
    tol : float, default=1e-10
        Stop when ‖g‖ <= tol. The iteration also ends, as converged, when no step lowers the
        objective or the gradient any more: with a tol below rounding, it ends there.
    max_iter : int, default=100
        The most steps.
    initial : array-like of shape (d,) or (n,), optional
        Where to start, coordinates or coefficients, of any length but 0. Default: the weighted
        mean of the points, brought to unit length.
    callback : callable, optional
        Called with each entry of the history as it is made.

    Returns
    -------
    KarcherMean
        The mean, the cosines, the variance and the diagnostics.

    Warns
    -----
    UserWarning
        If points lie outside the open hemisphere about the mean, where it need not be unique.
    ConvergenceWarning
        If `max_iter` was reached.

    Raises
    ------
    ValueError
        If points are antipodal to the mean, or cancel so that no mean is defined.

    References
    ----------
    Awate, Yu and Whitaker, "Kernel Principal Geodesic Analysis", 2014, §4.1; Buss and Fillmore,
    "Spherical averages and applications to spherical splines and interpolation", 2001.

    Examples
    --------
    >>> karcher_mean([[1.0, 0.0], [0.0, 1.0]], [2, 1]).point.round(4)
    array([0.866, 0.5  ])
    """
    check_positive(tol, "tol", "karcher_mean", or_zero=True)
    check_integer(max_iter, "max_iter", "karcher_mean")
    space: _Space = (
        _Coefficients(points) if isinstance(points, GramOperator) else _Coordinates(points)
    )
    weights = check_sample_weight(sample_weight, space.n, "karcher_mean")
    p = np.full(space.n, 1.0 / space.n) if weights is None else weights / weights.sum()
    with single_threaded_blas():
        mean = _start(space, p, initial)
        mean, n_iter, status, history = _descend(space, p, mean, tol, max_iter, callback)
    result = KarcherMean(
        point=mean.vector.astype(space.dtype, copy=False),
        cosines=mean.products,
        variance=history[-1]["objective"],
        gradient_norm=history[-1]["gradient_norm"],
        n_iter=n_iter,
        status=status,
        history=tuple(history),
    )
    detail = f"gradient norm {result.gradient_norm:.1e}, tol={tol:g}"
    warn_unless_converged(status, "karcher_mean", detail)
    _check_spread(result.cosines, p, space)
    return result


def _check_spread(cosines: NDArray[np.float64], p: NDArray[np.float64], space: _Space) -> None:
    """Raise where a point that counts has no Log at the mean, warn where one is far away."""
    counting = np.where(p > 0, cosines, 1.0)
    check_no_antipodes(counting, space.eps, "points")
    far = int(np.count_nonzero(counting <= 0))
    if far:
        warnings.warn(
            f"{far} of {space.n} points lie a quarter of a great circle or more from the Karcher "
            "mean: outside its open hemisphere the mean need not be unique, and another start may "
            "find another one.",
            UserWarning,
            stacklevel=3,
        )


# ---------------------------------------------------------------------------- two kinds of points


@dataclass(frozen=True)
class _Vector:
    """A vector with its inner products with all points: both are linear in it."""

    vector: NDArray[np.float64]
    products: NDArray[np.float64]

    def plus(self, a: float, other: _Vector, b: float) -> _Vector:
        """Return a self + b other."""
        return _Vector(a * self.vector + b * other.vector, a * self.products + b * other.products)

    def over(self, length: float) -> _Vector:
        """Return self / length."""
        return _Vector(self.vector / length, self.products / length)


class _Space(Protocol):
    """What the iteration needs of the points."""

    n: int  # points
    size: int  # numbers in a vector
    dtype: np.dtype[Any]  # of the result
    eps: float  # machine epsilon of the inner products

    def combine(self, weights: NDArray[np.float64]) -> _Vector: ...
    def at(self, vector: NDArray[np.float64]) -> _Vector: ...
    def inner(self, a: _Vector, b: _Vector) -> float: ...
    def angles(self, mean: _Vector) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def gradient(self, mean: _Vector, weights: NDArray[np.float64]) -> _Vector: ...


class _Coefficients:
    """Vectors are coefficients over the points; inner products go through the Gram operator."""

    def __init__(self, gram: GramOperator) -> None:
        self.gram = gram
        self.n = self.size = gram.shape[0]
        self.dtype = np.dtype(np.float64)
        self.eps = float(np.finfo(gram.dtype).eps)
        squared_radius(gram.diagonal(), expected=1.0, what="points")

    def combine(self, weights: NDArray[np.float64]) -> _Vector:
        return self.at(weights)

    def at(self, vector: NDArray[np.float64]) -> _Vector:
        # float64 weights: a sum over a float32 Gram matrix is then as exact as its entries
        return _Vector(vector, np.asarray(self.gram @ vector, dtype=np.float64))

    def inner(self, a: _Vector, b: _Vector) -> float:
        return float(a.vector @ b.products)

    def angles(self, mean: _Vector) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return angles_from_cosines(mean.products)

    def gradient(self, mean: _Vector, weights: NDArray[np.float64]) -> _Vector:
        return self.combine(weights).plus(1.0, mean, -float(weights @ mean.products))


class _Coordinates:
    """Vectors are coordinates; small angles and gradients are taken from differences."""

    def __init__(self, points: ArrayLike) -> None:
        given = check_array(points, dtype=[np.float64, np.float32], input_name="points")
        check_unit_length(np.einsum("ij,ij->i", given, given), given.dtype, "points")
        self.points = given.astype(np.float64, copy=False)
        self.n, self.size = given.shape
        self.dtype = given.dtype
        self.eps = float(np.finfo(given.dtype).eps)

    def combine(self, weights: NDArray[np.float64]) -> _Vector:
        return self.at(weights @ self.points)

    def at(self, vector: NDArray[np.float64]) -> _Vector:
        return _Vector(vector, self.points @ vector)

    def inner(self, a: _Vector, b: _Vector) -> float:
        return float(a.vector @ b.vector)

    def angles(self, mean: _Vector) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        def chords(rows: slice) -> NDArray[np.float64]:
            return np.linalg.norm(self.points[rows] - mean.vector, axis=1)

        chord = np.concatenate(run_over_rows(chords, self.n))
        return angles_from_halves(chord, np.sqrt(np.maximum(4 - chord**2, 0.0)))

    def gradient(self, mean: _Vector, weights: NDArray[np.float64]) -> _Vector:
        # Σ w (y - c μ), summed as differences y - μ: near points keep their digits
        def share(rows: slice) -> NDArray[np.float64]:
            return weights[rows] @ (self.points[rows] - mean.vector)

        g = np.sum(run_over_rows(share, self.n), axis=0)
        return self.at(g - (g @ mean.vector) * mean.vector)


# ---------------------------------------------------------------------------- the iteration


def _start(space: _Space, p: NDArray[np.float64], initial: ArrayLike | None) -> _Vector:
    if initial is None:
        start = space.combine(p)
        square = space.inner(start, start)
        if not square > 64 * space.eps:
            raise ValueError(
                "The weighted mean of the points is 0 to rounding: they cancel, as antipodal "
                "points do, and no point of the sphere is their mean more than another."
            )
        return start.over(np.sqrt(square))
    vector = check_array(initial, ensure_2d=False, dtype=np.float64, input_name="initial")
    if vector.shape != (space.size,):
        raise ValueError(
            f"initial of karcher_mean must have shape ({space.size},); got {vector.shape}."
        )
    start = space.at(vector / max(float(np.abs(vector).max()), np.finfo(np.float64).tiny))
    square = space.inner(start, start)
    if not square > 64 * space.eps * float(np.abs(start.vector).sum()) ** 2 / space.size:
        raise ValueError("initial of karcher_mean has no length.")
    return start.over(np.sqrt(square))


def _descend(
    space: _Space,
    p: NDArray[np.float64],
    mean: _Vector,
    tol: float,
    max_iter: int,
    callback: Callable[[dict[str, Any]], None] | None,
) -> tuple[_Vector, int, Status, list[dict[str, Any]]]:
    """Conjugate gradients along great circles (Polak and Ribière, restarted where they ascend)."""
    history: list[dict[str, Any]] = []
    search: _Search | None = None
    best = lowest = np.inf
    stalled = n_iter = 0
    while True:
        _check_definite(mean.products, space)
        angles, stretches = space.angles(mean)
        stretches = np.where(np.isfinite(stretches), stretches, 0.0)  # an antipode pulls nowhere
        objective = float(p @ angles**2)
        gradient = space.gradient(mean, p * stretches)
        norm = float(np.sqrt(max(space.inner(gradient, gradient), 0.0)))
        history.append({"objective": objective, "gradient_norm": norm})
        if callback is not None:
            callback(history[-1])
        slack = _ROUNDING * (1 + objective)
        stalled = 0 if norm < 0.9 * best or objective < lowest - slack else stalled + 1
        best, lowest = min(best, norm), min(lowest, objective)
        if norm <= tol:
            return mean, n_iter, Status.CONVERGED, history
        if stalled >= _PATIENCE:
            return mean, n_iter, Status.ROUNDING, history
        if n_iter == max_iter:
            return mean, n_iter, Status.MAX_ITER, history
        search = _next_search(space, gradient, norm, search)
        slope = space.inner(search.direction, gradient)
        along = search.direction.products
        step = _step(p, mean.products, stretches, along, slope, objective + slack)
        if step == 0:
            return mean, n_iter, Status.ROUNDING, history
        mean, search = _walk(space, mean, search, step)
        n_iter += 1


@dataclass(frozen=True)
class _Search:
    """Where a step went: a direction of unit length, its length before, and the gradient there."""

    direction: _Vector
    length: float
    gradient: _Vector
    norm: float


def _next_search(space: _Space, gradient: _Vector, norm: float, last: _Search | None) -> _Search:
    """Combine the gradient with the last direction, which was transported to the mean."""
    if last is not None:
        # the last gradient need not be transported: only its inner product with this one counts
        change = norm**2 - space.inner(gradient, last.gradient)
        beta = max(change / last.norm**2, 0.0)
        candidate = gradient.plus(1.0, last.direction, beta * last.length)
        square = space.inner(candidate, candidate)
        if square > 0 and space.inner(candidate, gradient) > 0.1 * norm * np.sqrt(square):
            length = float(np.sqrt(square))
            return _Search(candidate.over(length), length, gradient, norm)
    return _Search(gradient.over(norm), norm, gradient, norm)


def _walk(space: _Space, mean: _Vector, search: _Search, step: float) -> tuple[_Vector, _Search]:
    """Move the mean along a great circle and transport the direction with it."""
    cosine, sine = float(np.cos(step)), float(np.sin(step))
    moved = mean.plus(cosine, search.direction, sine)
    direction = search.direction.plus(cosine, mean, -sine)
    moved = moved.over(np.sqrt(space.inner(moved, moved)))
    return moved, replace(search, direction=direction)


def _check_definite(cosines: NDArray[np.float64], space: _Space) -> None:
    largest = float(np.abs(cosines).max())
    if not largest <= 1 + max(1e-6, 1e3 * space.eps):
        row = int(np.argmax(np.abs(cosines)))
        raise ValueError(
            f"The inner product of row {row} with a point of unit length is {largest:.4g}, more "
            "than 1: the kernel is not positive definite on these data, and they lie on no sphere."
        )


def _step(
    p: NDArray[np.float64],
    cosines: NDArray[np.float64],
    stretches: NDArray[np.float64],
    along: NDArray[np.float64],
    slope: float,
    ceiling: float,
) -> float:
    r"""Return how far to go along a great circle: Newton's step, halved while the objective rises.

    Along :math:`\cos t\,\mu + \sin t\,d` the cosines are :math:`\cos t\,c + \sin t\,q`, and half
    the second derivative of the objective at 0 is
    :math:`\sum p\,[(1 - c\,\theta/\sin\theta)\,q^2/\sin^2\theta + c\,\theta/\sin\theta]`.
    """
    level = cosines * stretches  # θ cot θ
    squared_sines = (1 - cosines) * (1 + cosines)
    bend = np.full_like(level, 1 / 3)  # its limit at θ = 0
    np.divide(1 - level, squared_sines, out=bend, where=squared_sines > 1e-8)
    curvature = float(p @ (bend * along**2 + level))
    step = min(slope / curvature, np.pi / 2) if curvature > 0 else np.pi / 4
    while step > 1e-18:
        angles, _ = angles_from_cosines(np.cos(step) * cosines + np.sin(step) * along)
        if float(p @ angles**2) <= ceiling:
            return step
        step /= 2
    return 0.0
