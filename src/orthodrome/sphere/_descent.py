"""Conjugate gradients along great circles, which find the Karcher mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._core.checks import check_finite_vector
from .._core.status import Status
from .._core.threads import VALUE_WORK, run_over_rows
from .._core.types import Array, Callback, Floats
from .._core.unit import (
    ANTIPODAL,
    angles_from_chords,
    angles_from_cosines,
    check_cosines,
    squared_radius,
)
from ..coordinates import pivoted_cholesky
from ..gram import GramOperator

_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 16 * _EPS  # relative rounding error of an objective
_ORTHOGONAL = 0.2  # restart if gradients overlap by a larger fraction (Powell)
_PATIENCE = 10  # stop after this many iterations without progress
# Maximum number of times that the mean is recomputed from Σ w y, and the minimum w · c for it.
_MAX_RECOMPUTED, _MIN_LEVEL = 3, 0.25
_CANCELLING = 8.0  # treat coefficients of the mean as cancelling if they grew by a larger factor
# Maximum rank and maximum number of entries of the Cholesky factor, whose rows are coordinates.
_MAX_RANK, _MAX_FACTOR = 512, 2**23


@dataclass(frozen=True)
class Vector:
    """A vector and its inner products with all points."""

    vector: Floats
    products: Floats

    def combined(self, a: float, other: Vector, b: float) -> Vector:
        """Return a self + b other."""
        return Vector(a * self.vector + b * other.vector, a * self.products + b * other.products)

    def over(self, length: float) -> Vector:
        """Return self / length."""
        return Vector(self.vector / length, self.products / length)


class _Space:
    """Points on the sphere, given as coordinates or as a Gram operator.

    Subclasses have the attributes `n` (number of points), `size` (length of a vector), `dtype` (of
    the result) and `eps` (machine epsilon of the inner products).
    """

    def inner(self, a: Vector, b: Vector) -> float:
        """Return the inner product of two vectors."""
        return float(a.vector @ b.vector)

    def squared_norm(self, a: Vector) -> float:
        """Return the squared length of a vector; never negative."""
        return self.inner(a, a)

    def rounding(self, gradient: Vector) -> float:
        """Return the rounding error of ‖g‖² that does not come from g."""
        return 0.0

    def growth(self, mean: Vector, first: Vector) -> float:
        """Return the factor by which the coefficients of the mean have grown."""
        return 1.0


class CoefficientSpace(_Space):
    """Vectors as coefficients over the points of a Gram operator."""

    def __init__(self, gram: GramOperator) -> None:
        self.gram = gram
        self.n = self.size = gram.shape[0]
        self.dtype = np.dtype(np.float64)
        self.eps = float(np.finfo(gram.dtype).eps)
        squared_radius(gram.diagonal(), expected=1.0, what="points")

    def at(self, vector: Floats) -> Vector:
        # with float64 coefficients, sums over a float32 Gram matrix are as exact as its entries
        return Vector(vector, np.asarray(self.gram @ vector, dtype=np.float64))

    combine = at

    def inner(self, a: Vector, b: Vector) -> float:
        return float(a.vector @ b.products)

    def squared_norm(self, a: Vector) -> float:
        square = self.inner(a, a)
        # rounding errors of the products and of the matrix itself
        rounding = 100 * self.rounding(a) + 10 * self.eps * self.n * float(a.vector @ a.vector)
        if square < -rounding:
            raise ValueError(
                f"A vector has the squared length {square:.2g}: the kernel is not positive "
                "definite on these data. Choose another kernel."
            )
        return max(square, 0.0)

    def angles(self, mean: Vector) -> tuple[Floats, Floats]:
        return angles_from_cosines(mean.products)

    def gradient(self, mean: Vector, weights: Floats) -> Vector:
        return self.combine(weights).combined(1.0, mean, -float(weights @ mean.products))

    def rounding(self, gradient: Vector) -> float:
        # cancellation of large coefficients in feature space causes rounding errors
        return _EPS * float(np.abs(gradient.vector).sum())

    def growth(self, mean: Vector, first: Vector) -> float:
        norm, first_norm = (max(1.0, float(np.linalg.norm(v.vector))) for v in (mean, first))
        return norm / first_norm


class CoordinateSpace(_Space):
    """Vectors as coordinates; small angles and gradients are computed from differences."""

    def __init__(self, points: Array, dtype: Any = np.float64) -> None:
        # Normalise, so that angles from differences and from products agree. Do not divide vectors
        # that have unit length already: the rounding errors would separate near points.
        lengths = np.linalg.norm(points.astype(np.float64, copy=False), axis=1)
        lengths[np.abs(lengths - 1) <= 4 * _EPS] = 1.0
        self.points: Floats = points / lengths[:, None]
        self.n, self.size = points.shape
        self.dtype = np.dtype(dtype)
        self.eps = float(np.finfo(dtype).eps)

    def combine(self, weights: Floats) -> Vector:
        return self.at(weights @ self.points)

    def at(self, vector: Floats) -> Vector:
        return Vector(vector, self.points @ vector)

    def angles(self, mean: Vector) -> tuple[Floats, Floats]:
        def chords(rows: slice) -> Floats:
            return np.linalg.norm(self.points[rows] - mean.vector, axis=1)

        work = VALUE_WORK * self.points.size
        chord = np.concatenate(run_over_rows(chords, self.n, work=work))
        sums = np.sqrt(np.maximum(4 - chord**2, 0.0))
        far = chord > sums
        sums[far] = np.linalg.norm(self.points[far] + mean.vector, axis=1)
        return angles_from_chords(chord, sums)

    def gradient(self, mean: Vector, weights: Floats) -> Vector:
        # Σ w (y - c μ) is summed as differences y - μ, which are accurate for near points
        def partial_sum(rows: slice) -> Floats:
            return weights[rows] @ (self.points[rows] - mean.vector)

        g = np.sum(run_over_rows(partial_sum, self.n, work=VALUE_WORK * self.points.size), axis=0)
        for _ in range(2):  # the first leaves a rounding error that matters for small gradients
            g = g - (g @ mean.vector) * mean.vector
        return self.at(g)


#: Points whose Karcher mean is computed.
Space: TypeAlias = CoefficientSpace | CoordinateSpace


def first_point(space: Space, p: Floats, initial: ArrayLike | None) -> Vector:
    """Return `initial`, or else the weighted mean of the points, normalised."""
    if initial is None:
        first = space.combine(p)
        square = space.squared_norm(first)
        if not square > 64 * space.eps:
            raise ValueError(
                "The weighted mean of the points is 0 up to rounding errors: they cancel, as "
                "antipodal points do, and have no unique mean. Leave points out, weight them, or "
                "choose another kernel."
            )
        return first.over(np.sqrt(square))
    vector = check_finite_vector(initial, space.size, "initial", "karcher_mean")
    first = space.at(vector / max(float(np.abs(vector).max()), np.finfo(np.float64).tiny))
    square = space.inner(first, first)
    if not square > 64 * space.eps * float(np.abs(first.vector).sum()) ** 2 / space.size:
        raise ValueError("initial of karcher_mean is 0 up to rounding errors. Give another start.")
    return first.over(np.sqrt(square))


@dataclass
class Record:
    """History of a descent."""

    callback: Callback | None
    history: list[dict[str, Any]] = field(default_factory=list)
    n_iter: int = 0
    n_recomputed: int = 0
    idle: int = 0
    lowest: float = np.inf
    smallest: float = np.inf
    is_reported: bool = False

    def add(self, current: _Evaluation) -> None:
        """Add an iteration; count those without progress."""
        progress = current.norm < 0.9 * self.smallest or current.ceiling < self.lowest
        self.idle = 0 if progress else self.idle + 1
        self.lowest = min(self.lowest, current.objective)
        self.smallest = min(self.smallest, current.norm)
        if not self.is_reported:
            self.history.append({"objective": current.objective, "gradient_norm": current.norm})
            if self.callback is not None:
                self.callback(self.history[-1])
        self.is_reported = False


def descend(
    space: Space, p: Floats, first: Vector, tol: float, max_iter: int, callback: Callback | None
) -> tuple[Vector, Status, Record]:
    """Minimise Σ p θ² from a unit vector.

    Coefficients over linearly dependent points are not unique. For widely spread points they can
    grow from step to step, until cancellation leaves only rounding errors. If that happens and the
    rank is low, the descent continues in coordinates.
    """
    record = Record(callback)
    mean, status = _conjugate_gradients(space, p, first, tol, max_iter, record)
    if status is not Status.CANCELLING or not isinstance(space, CoefficientSpace):
        return mean, status, record
    # the last point has been reported
    record = Record(callback, record.history, record.n_iter, is_reported=True)
    limit, max_rank = 32 * space.eps, min(_MAX_RANK, max(1, _MAX_FACTOR // space.n))
    factor, residual = pivoted_cholesky(space.gram, tol=limit, max_rank=max_rank)
    if residual <= limit:
        coordinates = CoordinateSpace(factor, space.gram.dtype)
        start = _normalized(coordinates, coordinates.at(mean.vector @ factor))
        mean, status = _conjugate_gradients(coordinates, p, start, tol, max_iter, record)
        # the smallest coefficients that give this point
        smallest = np.linalg.lstsq(factor.T, mean.vector, rcond=None)[0].astype(np.float64)
        return Vector(smallest, mean.products), status, record
    # the rank is too high: continue as far as rounding errors allow
    mean, status = _conjugate_gradients(space, p, mean, tol, max_iter, record)
    exact = space.at(mean.vector)
    error = max(abs(space.inner(exact, exact) - 1), record.history[-1]["gradient_norm"])
    return mean, Status.CANCELLING if status.converged and error > 1e-6 else status, record


def _normalized(space: Space, vector: Vector) -> Vector:
    """Return a vector divided by its length; raise if its squared length is not positive."""
    square = space.inner(vector, vector)
    if not square > 0:
        raise ValueError(
            "The search for the mean reached a vector without length: the kernel is not positive "
            "definite on these points, or they cancel. Choose another kernel, or leave points out."
        )
    return vector.over(float(np.sqrt(square)))


class _Evaluation(NamedTuple):
    """The objective and its gradient g at a point.

    `angle_ratios` are θ / sin θ. `square` is ‖g‖², and `rounding` is its rounding error.
    """

    angle_ratios: Floats
    objective: float
    gradient: Vector
    square: float
    rounding: float

    @property
    def norm(self) -> float:
        """Return √(‖g‖² + rounding), the norm of the gradient with its rounding error."""
        return float(np.sqrt(self.square + self.rounding))

    @property
    def ceiling(self) -> float:
        """Return the largest objective that differs from this one only by rounding errors."""
        return self.objective + _ROUNDING * (1 + self.objective)


def _evaluate(space: Space, p: Floats, mean: Vector) -> _Evaluation:
    check_cosines(mean.products, space.eps, "the points")
    angles, ratios = space.angles(mean)
    # Log is not defined at the antipode
    ratios = np.where(1 + mean.products > ANTIPODAL * space.eps, ratios, 0.0)
    g = space.gradient(mean, p * ratios)
    return _Evaluation(ratios, float(p @ angles**2), g, space.squared_norm(g), space.rounding(g))


def _conjugate_gradients(
    space: Space, p: Floats, first: Vector, tol: float, max_iter: int, record: Record
) -> tuple[Vector, Status]:
    """Minimise with the method of Polak and Ribière, and Powell's restart.

    Stop if the coefficients of the mean cancel, unless this continues an earlier descent.
    """
    may_cancel = record.is_reported
    mean, search = first, None
    while True:
        current = _evaluate(space, p, mean)
        record.add(current)
        status = end_of_search(
            current.norm, tol, record.idle >= _PATIENCE, record.n_iter >= max_iter
        )
        if status is None and not may_cancel and space.growth(mean, first) > _CANCELLING:
            status = Status.CANCELLING
        if status is not None:
            return mean, status
        if current.square < 100 * current.rounding:
            level = float((p * current.angle_ratios) @ mean.products)
            if level > _MIN_LEVEL and record.n_recomputed < _MAX_RECOMPUTED:
                # Replace the mean with the direction of Σ w y. Both are equal where the gradient is
                # 0, and the coefficients of the gradient then converge to 0. The error of the mean
                # is multiplied by at most 1 / level - 1.
                mean, search = _normalized(space, current.gradient.combined(1.0, mean, level)), None
                record.n_recomputed += 1
                record.n_iter += 1
                continue
            if not may_cancel or current.square <= current.rounding:
                return mean, Status.ROUNDING if may_cancel else Status.CANCELLING
        search = _next_search(space, current, search)
        direction = search.direction
        step = _step_length(p, mean, current, direction, space.inner(direction, current.gradient))
        if step == 0:
            return mean, Status.ROUNDING
        # move along the great circle, and transport the direction
        cosine, sine = float(np.cos(step)), float(np.sin(step))
        search = search._replace(direction=direction.combined(cosine, mean, -sine))
        mean = _normalized(space, mean.combined(cosine, direction, sine))
        record.n_iter += 1


def end_of_search(norm: float, tol: float, is_idle: bool, is_last: bool) -> Status | None:
    """Return the status of a search that ends at this gradient norm, or None if it continues."""
    if norm <= tol:
        return Status.CONVERGED
    if is_idle:
        return Status.ROUNDING
    return Status.MAX_ITER if is_last else None


class _Search(NamedTuple):
    """A unit search direction, its length before normalisation, and the gradient at its start."""

    direction: Vector
    length: float
    gradient: Vector
    norm: float


def _next_search(space: Space, current: _Evaluation, last: _Search | None) -> _Search:
    """Return the next direction, from the gradient and the last direction (transported)."""
    gradient, norm = current.gradient, current.norm
    # only an inner product with the last gradient is used, so it need not be transported
    overlap = np.inf if last is None else space.inner(gradient, last.gradient)
    if last is not None and abs(overlap) <= _ORTHOGONAL * norm**2:
        beta = max((norm**2 - overlap) / last.norm**2, 0.0)
        candidate = gradient.combined(1.0, last.direction, beta * last.length)
        square = space.inner(candidate, candidate)
        if square > 0 and space.inner(candidate, gradient) > 0.1 * norm * np.sqrt(square):
            length = float(np.sqrt(square))
            return _Search(candidate.over(length), length, gradient, norm)
    return _Search(gradient.over(norm), norm, gradient, norm)


def bending(cosines: Floats, angle_ratios: Floats, slopes: Floats) -> Floats:
    r"""Return half the second derivative of each θ² along a great circle.

    At :math:`\cos t\,\mu + \sin t\,d` the cosines are :math:`\cos t\,c + \sin t\,q`, with slopes q
    at t = 0, where the result is
    :math:`(1 - c\,\theta/\sin\theta)\,q^2/\sin^2\theta + c\,\theta/\sin\theta`.
    """
    level = cosines * angle_ratios  # θ cot θ
    squared_sines = (1 - cosines) * (1 + cosines)
    bend = np.zeros_like(level)  # the value at θ = 0 does not matter, as q² is at most sin²θ
    np.divide(1 - level, squared_sines, out=bend, where=squared_sines > 1e-8)
    return bend * slopes**2 + level


def bend_ratios(angles: Floats, levels: Floats) -> Floats:
    """Return (1 - θ cot θ)/θ² from θ and θ cot θ; the value at θ = 0 is 1/3."""
    squares = angles**2
    ratios = np.full_like(levels, 1 / 3)
    np.divide(1 - levels, squares, out=ratios, where=squares > 1e-6)
    return ratios


def _step_length(
    p: Floats, mean: Vector, current: _Evaluation, direction: Vector, slope: float
) -> float:
    """Return the length of Newton's step, halved until the objective does not increase."""
    cosines, slopes = mean.products, direction.products
    curvature = float(p @ bending(cosines, current.angle_ratios, slopes))
    step = min(slope / curvature, np.pi / 2) if curvature > 0 else np.pi / 4
    while step > 1e-18:
        angles, _ = angles_from_cosines(np.cos(step) * cosines + np.sin(step) * slopes)
        if float(p @ angles**2) <= current.ceiling:
            return step
        step /= 2
    return 0.0
