"""Descent to the Karcher mean, for points given by coordinates or by their inner products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from .._core.angles import ANTIPODAL, angles_from_cosines, angles_from_halves
from .._core.status import Status
from .._core.threads import run_over_rows
from ..gram import GramOperator, pivoted_cholesky, squared_radius
from .maps import check_unit_length

__all__ = ["Coefficients", "Coordinates", "Descent", "Space", "Vector", "descend", "start"]

_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 16 * _EPS  # of an objective, from cosines
_PATIENCE = 5  # iterations without progress after which only rounding is left
_RESTATABLE, _MOST_RESTATED = 0.25, 3  # the smallest w · c at which, and how often
_CANCELLING = 8.0  # growth of the coefficients of the mean that says that they cancel
_MAX_RANK = 512  # of a Gram matrix whose points get coordinates

# ---------------------------------------------------------------------------- two kinds of points


@dataclass(frozen=True)
class Vector:
    """A vector with its inner products with all points: both are linear in it."""

    vector: NDArray[np.float64]
    products: NDArray[np.float64]

    def plus(self, a: float, other: Vector, b: float) -> Vector:
        """Return a self + b other."""
        return Vector(a * self.vector + b * other.vector, a * self.products + b * other.products)

    def over(self, length: float) -> Vector:
        """Return self / length."""
        return Vector(self.vector / length, self.products / length)


class Space(Protocol):
    """What the iteration needs of the points."""

    n: int  # points
    size: int  # numbers in a vector
    dtype: np.dtype[Any]  # of the result
    eps: float  # machine epsilon of the inner products

    def combine(self, weights: NDArray[np.float64]) -> Vector: ...
    def at(self, vector: NDArray[np.float64]) -> Vector: ...
    def inner(self, a: Vector, b: Vector) -> float: ...
    def angles(self, mean: Vector) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def gradient(self, mean: Vector, weights: NDArray[np.float64]) -> Vector: ...
    def doubt(self, gradient: Vector) -> float: ...
    def growth(self, mean: Vector, start: Vector) -> float: ...


class Coefficients:
    """Vectors are coefficients over the points; inner products go through the Gram operator."""

    def __init__(self, gram: GramOperator) -> None:
        self.gram = gram
        self.n = self.size = gram.shape[0]
        self.dtype = np.dtype(np.float64)
        self.eps = float(np.finfo(gram.dtype).eps)
        squared_radius(gram.diagonal(), expected=1.0, what="points")

    def combine(self, weights: NDArray[np.float64]) -> Vector:
        return self.at(weights)

    def at(self, vector: NDArray[np.float64]) -> Vector:
        # float64 weights: a sum over a float32 Gram matrix is then as exact as its entries
        return Vector(vector, np.asarray(self.gram @ vector, dtype=np.float64))

    def inner(self, a: Vector, b: Vector) -> float:
        return float(a.vector @ b.products)

    def angles(self, mean: Vector) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return angles_from_cosines(mean.products)

    def gradient(self, mean: Vector, weights: NDArray[np.float64]) -> Vector:
        return self.combine(weights).plus(1.0, mean, -float(weights @ mean.products))

    def doubt(self, gradient: Vector) -> float:
        """Return the rounding of ‖g‖²: large where large coefficients cancel in feature space."""
        return _EPS * float(np.abs(gradient.vector).sum())

    def growth(self, mean: Vector, start: Vector) -> float:
        """Return how much larger the coefficients of the mean have become."""
        lengths = [max(1.0, float(np.linalg.norm(v.vector))) for v in (mean, start)]
        return lengths[0] / lengths[1]


class Coordinates:
    """Vectors are coordinates; small angles and gradients are taken from differences."""

    def __init__(self, points: ArrayLike) -> None:
        given = check_array(points, dtype=[np.float64, np.float32], input_name="points")
        check_unit_length(np.einsum("ij,ij->i", given, given), given.dtype, "points")
        self.points = given.astype(np.float64, copy=False)
        self.n, self.size = given.shape
        self.dtype = given.dtype
        self.eps = float(np.finfo(given.dtype).eps)

    def combine(self, weights: NDArray[np.float64]) -> Vector:
        return self.at(weights @ self.points)

    def at(self, vector: NDArray[np.float64]) -> Vector:
        return Vector(vector, self.points @ vector)

    def inner(self, a: Vector, b: Vector) -> float:
        return float(a.vector @ b.vector)

    def angles(self, mean: Vector) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        def chords(rows: slice) -> NDArray[np.float64]:
            return np.linalg.norm(self.points[rows] - mean.vector, axis=1)

        chord = np.concatenate(run_over_rows(chords, self.n))
        return angles_from_halves(chord, np.sqrt(np.maximum(4 - chord**2, 0.0)))

    def gradient(self, mean: Vector, weights: NDArray[np.float64]) -> Vector:
        # Σ w (y - c μ), summed as differences y - μ: near points keep their digits
        def share(rows: slice) -> NDArray[np.float64]:
            return weights[rows] @ (self.points[rows] - mean.vector)

        g = np.sum(run_over_rows(share, self.n), axis=0)
        return self.at(g - (g @ mean.vector) * mean.vector)

    def doubt(self, gradient: Vector) -> float:
        """Return the rounding of ‖g‖² beyond that of g."""
        return 0.0

    def growth(self, mean: Vector, start: Vector) -> float:
        """Return how much longer the mean has become."""
        return 1.0


# ---------------------------------------------------------------------------- the iteration


def start(space: Space, p: NDArray[np.float64], initial: ArrayLike | None) -> Vector:
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


@dataclass(frozen=True)
class Descent:
    """Where a descent ended, and how; `cancelling`: because coefficients of the mean cancel."""

    mean: Vector
    n_iter: int
    status: Status
    history: tuple[dict[str, Any], ...]
    cancelling: bool = False


def descend(
    space: Space,
    p: NDArray[np.float64],
    first: Vector,
    tol: float,
    max_iter: int,
    callback: Callable[[dict[str, Any]], None] | None,
) -> Descent:
    """Minimise Σ p θ² from a first point of unit length.

    Over points that depend on each other a vector has many coefficients. Far from the mean of
    widely spread points they grow from step to step until the cancellation of large ones is all
    that is left. Where that happens and the rank is low, the points get coordinates instead.
    """
    descent = _conjugate_gradients(space, p, first, tol, max_iter, callback, watchful=True)
    if not descent.cancelling or not isinstance(space, Coefficients):
        return descent
    factor, residual = pivoted_cholesky(space.gram, tol=32 * space.eps, max_rank=_MAX_RANK)
    if residual > 32 * space.eps:  # no way out: on, as far as rounding lets it
        again = _conjugate_gradients(space, p, descent.mean, tol, max_iter, callback)
        return _joined(descent, again, again.mean)
    coordinates = Coordinates(factor)
    begin = coordinates.at(descent.mean.vector @ factor)
    begin = begin.over(np.sqrt(coordinates.inner(begin, begin)))
    end = _conjugate_gradients(coordinates, p, begin, tol, max_iter, callback)
    # the smallest coefficients of all that give this point
    smallest = np.linalg.lstsq(factor.T, end.mean.vector, rcond=None)[0].astype(np.float64)
    return _joined(descent, end, Vector(smallest, end.mean.products))


def _joined(first: Descent, second: Descent, mean: Vector) -> Descent:
    """Return a descent that went on where another left off."""
    return Descent(
        mean=mean,
        n_iter=first.n_iter + second.n_iter,
        status=second.status,
        history=first.history[:-1] + second.history,
    )


def _conjugate_gradients(
    space: Space,
    p: NDArray[np.float64],
    first: Vector,
    tol: float,
    max_iter: int,
    callback: Callable[[dict[str, Any]], None] | None,
    *,
    watchful: bool = False,
) -> Descent:
    """Conjugate gradients along great circles (Polak and Ribière, restarted where they ascend).

    A watchful descent stops as soon as the coefficients of the mean cancel.
    """
    mean = first
    history: list[dict[str, Any]] = []
    search: _Search | None = None
    best = lowest = np.inf
    stalled = n_iter = n_restated = 0
    while True:
        _check_definite(mean.products, space)
        angles, stretches = space.angles(mean)
        # an antipode pulls in every direction, and so in none
        stretches = np.where(1 + mean.products > ANTIPODAL * space.eps, stretches, 0.0)
        objective = float(p @ angles**2)
        pulls = p * stretches
        gradient = space.gradient(mean, pulls)
        square, doubt = max(space.inner(gradient, gradient), 0.0), space.doubt(gradient)
        norm = float(np.sqrt(square + doubt))
        history.append({"objective": objective, "gradient_norm": norm})
        if callback is not None:
            callback(history[-1])
        slack = _ROUNDING * (1 + objective)
        stalled = 0 if norm < 0.9 * best or objective < lowest - slack else stalled + 1
        best, lowest = min(best, norm), min(lowest, objective)
        if norm <= tol:
            return Descent(mean, n_iter, Status.CONVERGED, tuple(history))
        if watchful and space.growth(mean, first) > _CANCELLING:
            return Descent(mean, n_iter, Status.ROUNDING, tuple(history), cancelling=True)
        if stalled >= _PATIENCE:
            return Descent(mean, n_iter, Status.ROUNDING, tuple(history))
        if n_iter == max_iter:
            return Descent(mean, n_iter, Status.MAX_ITER, tuple(history))
        if square < 100 * doubt:
            level = float(pulls @ mean.products)
            if level > _RESTATABLE and n_restated < _MOST_RESTATED:
                mean, search = _restate(space, mean, gradient, level), None
                n_iter, n_restated = n_iter + 1, n_restated + 1
                continue
            if watchful or square <= doubt:
                return Descent(mean, n_iter, Status.ROUNDING, tuple(history), cancelling=True)
        search = _next_search(space, gradient, norm, search)
        slope = space.inner(search.direction, gradient)
        along = search.direction.products
        step = _step(p, mean.products, stretches, along, slope, objective + slack)
        if step == 0:
            return Descent(mean, n_iter, Status.ROUNDING, tuple(history))
        mean, search = _walk(space, mean, search, step)
        n_iter += 1


def _restate(space: Space, mean: Vector, gradient: Vector, level: float) -> Vector:
    """Replace the mean by the direction of Σ w_n y_n, which is the mean where the gradient is 0.

    Where points depend on each other the same vector has many coefficients, and those of the
    gradient may stay large while it goes to 0. From here on they go to 0 with it. `level` is w · c;
    the error of the mean is multiplied by 1 / level - 1 at the most.
    """
    moved = gradient.plus(1.0, mean, level)
    return moved.over(np.sqrt(space.inner(moved, moved)))


@dataclass(frozen=True)
class _Search:
    """Where a step went: a direction of unit length, its length before, and the gradient there."""

    direction: Vector
    length: float
    gradient: Vector
    norm: float


def _next_search(space: Space, gradient: Vector, norm: float, last: _Search | None) -> _Search:
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


def _walk(space: Space, mean: Vector, search: _Search, step: float) -> tuple[Vector, _Search]:
    """Move the mean along a great circle and transport the direction with it."""
    cosine, sine = float(np.cos(step)), float(np.sin(step))
    moved = mean.plus(cosine, search.direction, sine)
    direction = search.direction.plus(cosine, mean, -sine)
    moved = moved.over(np.sqrt(space.inner(moved, moved)))
    return moved, replace(search, direction=direction)


def _check_definite(cosines: NDArray[np.float64], space: Space) -> None:
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
