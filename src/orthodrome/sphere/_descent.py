"""Conjugate gradients along great circles, which find the Karcher mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.checks import check_numbers
from .._core.status import Status
from .._core.types import Callback, Floats
from .._core.unit import ANTIPODAL, angles_from_cosines, check_cosines
from ..coordinates import pivoted_cholesky
from ._points import Coefficients, Coordinates, Space, Vector

_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # relative rounding error of an objective
_ORTHOGONAL = 0.2  # restart if gradients overlap by a larger fraction (Powell)
_PATIENCE = 10  # stop after this many iterations without progress
# Recompute the mean from Σ w y at most this often, and only if w · c is larger.
_MAX_RECOMPUTED, _MIN_LEVEL = 3, 0.25
_CANCELLING = 8.0  # growth of the coefficients of the mean from which on they cancel
# Maximum rank, and number of entries, of the factor that gives the points coordinates.
_MAX_RANK, _MAX_FACTOR = 512, 2**23


@dataclass(frozen=True)
class Descent:
    """Result of a descent."""

    mean: Vector
    n_iter: int
    status: Status
    history: tuple[dict[str, Any], ...]


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
    vector = check_numbers(initial, "initial", "karcher_mean", ensure_2d=False, dtype=np.float64)
    if vector.shape != (space.size,):
        raise ValueError(
            f"initial of karcher_mean must have shape ({space.size},); got {vector.shape}."
        )
    first = space.at(vector / max(float(np.abs(vector).max()), np.finfo(np.float64).tiny))
    square = space.inner(first, first)
    if not square > 64 * space.eps * float(np.abs(first.vector).sum()) ** 2 / space.size:
        raise ValueError("initial of karcher_mean is 0 up to rounding errors. Give another start.")
    return first.over(np.sqrt(square))


def descend(
    space: Space, p: Floats, first: Vector, tol: float, max_iter: int, callback: Callback | None
) -> Descent:
    """Minimise Σ p θ² from a unit vector.

    Coefficients over linearly dependent points are not unique. For widely spread points they can
    grow from step to step, until cancellation leaves only rounding errors. If that happens and the
    rank is low, the descent continues in coordinates.
    """
    descent = _conjugate_gradients(space, p, first, tol, max_iter, callback)
    if descent.status is not Status.CANCELLING or not isinstance(space, Coefficients):
        return descent
    limit, max_rank = 32 * space.eps, min(_MAX_RANK, max(1, _MAX_FACTOR // space.n))
    factor, residual = pivoted_cholesky(space.gram, tol=limit, max_rank=max_rank)
    if not residual <= limit:  # the rank is too high: continue as far as rounding errors allow
        return _check_end(
            space, _conjugate_gradients(space, p, descent.mean, tol, max_iter, callback, descent)
        )
    coordinates = Coordinates(factor, space.gram.dtype)
    start = _normalized(coordinates, coordinates.at(descent.mean.vector @ factor))
    end = _conjugate_gradients(coordinates, p, start, tol, max_iter, callback, descent)
    # the smallest coefficients that give this point
    smallest = np.linalg.lstsq(factor.T, end.mean.vector, rcond=None)[0].astype(np.float64)
    return replace(end, mean=Vector(smallest, end.mean.products))


def _normalized(space: Space, vector: Vector) -> Vector:
    """Return a vector divided by its length; raise if its squared length is not positive."""
    square = space.inner(vector, vector)
    if not square > 0:
        raise ValueError(
            "The search for the mean reached a vector without length: the kernel is not positive "
            "definite on these points, or they cancel. Choose another kernel, or leave points out."
        )
    return vector.over(float(np.sqrt(square)))


def _check_end(space: Space, end: Descent) -> Descent:
    """Return the result, with status CANCELLING if rounding errors have spoilt the mean."""
    mean = space.at(end.mean.vector)
    error = abs(space.inner(mean, mean) - 1)
    if end.status.converged and max(error, end.history[-1]["gradient_norm"]) > 1e-6:
        return replace(end, status=Status.CANCELLING)
    return end


@dataclass(frozen=True)
class _Evaluation:
    """The objective and its gradient g at a point.

    `angle_ratios` are θ / sin θ. `square` is ‖g‖², `rounding` is its rounding error, and `norm` is
    the root of their sum. Objectives up to `ceiling` differ by rounding errors only.
    """

    angle_ratios: Floats
    objective: float
    ceiling: float
    gradient: Vector
    square: float
    rounding: float
    norm: float


def _evaluate(space: Space, p: Floats, mean: Vector) -> _Evaluation:
    check_cosines(mean.products, space.eps, "the points")
    angles, angle_ratios = space.angles(mean)
    # Log is not defined at the antipode
    angle_ratios = np.where(1 + mean.products > ANTIPODAL * space.eps, angle_ratios, 0.0)
    gradient = space.gradient(mean, p * angle_ratios)
    objective = float(p @ angles**2)
    square, rounding = space.squared_norm(gradient), space.rounding(gradient)
    return _Evaluation(
        angle_ratios,
        objective,
        ceiling=objective + _ROUNDING * (1 + objective),
        gradient=gradient,
        square=square,
        rounding=rounding,
        norm=float(np.sqrt(square + rounding)),
    )


class _Record:
    """History of the iterations, including those of an earlier descent that is continued."""

    def __init__(self, callback: Callback | None, before: Descent | None = None) -> None:
        self.callback = callback
        self.history = [] if before is None else list(before.history)
        self.n_iter = 0 if before is None else before.n_iter
        self.is_reported = before is not None  # the earlier descent has reported its last point
        self.n_recomputed = self.idle = 0
        self.lowest = self.smallest = np.inf

    def add(self, current: _Evaluation) -> None:
        progress = current.norm < 0.9 * self.smallest or current.ceiling < self.lowest
        self.idle = 0 if progress else self.idle + 1
        self.lowest = min(self.lowest, current.objective)
        self.smallest = min(self.smallest, current.norm)
        if not self.is_reported:
            self.history.append({"objective": current.objective, "gradient_norm": current.norm})
            if self.callback is not None:
                self.callback(self.history[-1])
        self.is_reported = False

    def end(self, mean: Vector, status: Status) -> Descent:
        return Descent(mean, self.n_iter, status, tuple(self.history))


def _conjugate_gradients(
    space: Space,
    p: Floats,
    first: Vector,
    tol: float,
    max_iter: int,
    callback: Callback | None,
    before: Descent | None = None,
) -> Descent:
    """Minimise with the method of Polak and Ribière, and Powell's restart.

    Stop if the coefficients of the mean cancel, unless this continues an earlier descent.
    """
    may_cancel = before is not None
    record, mean, search = _Record(callback, before), first, None
    while True:
        current = _evaluate(space, p, mean)
        record.add(current)
        status = end_of_search(
            current.norm, tol, record.idle >= _PATIENCE, record.n_iter >= max_iter
        )
        if status is None and not may_cancel and space.growth(mean, first) > _CANCELLING:
            status = Status.CANCELLING
        if status is not None:
            return record.end(mean, status)
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
                return record.end(mean, Status.ROUNDING if may_cancel else Status.CANCELLING)
        search = _next_search(space, current, search)
        direction = search.direction
        step = _step_length(p, mean, current, direction, space.inner(direction, current.gradient))
        if step == 0:
            return record.end(mean, Status.ROUNDING)
        # move along the great circle, and transport the direction
        cosine, sine = float(np.cos(step)), float(np.sin(step))
        search = replace(search, direction=direction.combined(cosine, mean, -sine))
        mean = _normalized(space, mean.combined(cosine, direction, sine))
        record.n_iter += 1


def end_of_search(norm: float, tol: float, is_idle: bool, is_last: bool) -> Status | None:
    """Return the status of a search that ends at this gradient norm, or None if it continues."""
    if norm <= tol:
        return Status.CONVERGED
    if is_idle:
        return Status.ROUNDING
    return Status.MAX_ITER if is_last else None


@dataclass(frozen=True)
class _Search:
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
