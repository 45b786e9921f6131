"""Descent to the Karcher mean by conjugate gradients along great circles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.checks import check_numbers
from .._core.status import Status
from .._core.types import Floats
from .._core.unit import ANTIPODAL, angles_from_cosines, check_cosines
from ..coordinates import pivoted_cholesky
from ._points import Coefficients, Coordinates, Space, Vector

__all__ = ["Descent", "bend_ratios", "bending", "descend", "ended", "first_point"]

Callback = Callable[[dict[str, Any]], None]

_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of an objective, from cosines
_ORTHOGONAL = 0.2  # gradients that overlap by more have lost conjugacy (Powell's restart)
_PATIENCE = 10  # iterations without progress after which only rounding is left
_RESTATABLE, _MOST_RESTATED = 0.25, 3  # the smallest w · c at which, and how often
_CANCELLING = 8.0  # growth of the coefficients of the mean that says that they cancel
_MAX_RANK, _MAX_FACTOR = 512, 2**23  # of a Gram matrix whose points get coordinates; numbers


@dataclass(frozen=True)
class Descent:
    """Where a descent ended, and how."""

    mean: Vector
    n_iter: int
    status: Status
    history: tuple[dict[str, Any], ...]


def first_point(space: Space, p: Floats, initial: ArrayLike | None) -> Vector:
    """Return where to begin, of unit length: as given, or the direction of the weighted mean."""
    if initial is None:
        first = space.combine(p)
        square = space.squared_norm(first)
        if not square > 64 * space.eps:
            raise ValueError(
                "The weighted mean of the points is 0 to rounding: they cancel, as antipodal "
                "points do, and no point of the sphere is their mean more than another. Leave "
                "points out, weight them, or choose another kernel."
            )
        return first.over(np.sqrt(square))
    vector = check_numbers(initial, "initial", "the mean", ensure_2d=False, dtype=np.float64)
    if vector.shape != (space.size,):
        raise ValueError(
            f"initial of karcher_mean must have shape ({space.size},); got {vector.shape}."
        )
    first = space.at(vector / max(float(np.abs(vector).max()), np.finfo(np.float64).tiny))
    square = space.inner(first, first)
    if not square > 64 * space.eps * float(np.abs(first.vector).sum()) ** 2 / space.size:
        raise ValueError("initial of karcher_mean has no length.")
    return first.over(np.sqrt(square))


def descend(
    space: Space, p: Floats, first: Vector, tol: float, max_iter: int, callback: Callback | None
) -> Descent:
    """Minimise Σ p θ² from a first point of unit length.

    Over points that depend on each other a vector has many coefficients. Far from the mean of
    widely spread points they grow from step to step, until the cancellation of large ones is all
    that is left. Where that happens and the rank is low, the points get coordinates instead.
    """
    descent = _conjugate_gradients(space, p, first, tol, max_iter, callback)
    if descent.status is not Status.CANCELLING or not isinstance(space, Coefficients):
        return descent
    limit, max_rank = 32 * space.eps, min(_MAX_RANK, max(1, _MAX_FACTOR // space.n))
    factor, residual = pivoted_cholesky(space.gram, tol=limit, max_rank=max_rank)
    if not residual <= limit:  # the rank is too high: go on, as far as rounding allows
        return _verified(
            space, _conjugate_gradients(space, p, descent.mean, tol, max_iter, callback, descent)
        )
    coordinates = Coordinates(factor, space.gram.dtype)
    begin = _of_unit_length(coordinates, coordinates.at(descent.mean.vector @ factor))
    end = _conjugate_gradients(coordinates, p, begin, tol, max_iter, callback, descent)
    # the smallest coefficients of all that give this point
    smallest = np.linalg.lstsq(factor.T, end.mean.vector, rcond=None)[0].astype(np.float64)
    return replace(end, mean=Vector(smallest, end.mean.products))


def _of_unit_length(space: Space, vector: Vector) -> Vector:
    """Return the direction of a vector, or raise where its squared length is not positive."""
    square = space.inner(vector, vector)
    if not square > 0:
        raise ValueError(
            "The way to the mean leads through a point of no length: the kernel is not positive "
            "definite on these points, or they cancel. Choose another kernel, or leave points out."
        )
    return vector.over(float(np.sqrt(square)))


def _verified(space: Space, end: Descent) -> Descent:
    """Change the status if rounding left a point that is not a mean."""
    mean = space.at(end.mean.vector)
    off = abs(space.inner(mean, mean) - 1)
    if end.status.converged and max(off, end.history[-1]["gradient_norm"]) > 1e-6:
        return replace(end, status=Status.CANCELLING)
    return end


@dataclass(frozen=True)
class _View:
    """The objective and its gradient g at a point; `pulls` are p θ / sin θ, `norm` is that of g."""

    stretches: Floats
    pulls: Floats
    objective: float
    gradient: Vector
    square: float
    doubt: float

    @property
    def norm(self) -> float:
        return float(np.sqrt(self.square + self.doubt))

    @property
    def ceiling(self) -> float:
        """The largest value that is the same objective to rounding."""
        return self.objective + _ROUNDING * (1 + self.objective)


def _look(space: Space, p: Floats, mean: Vector) -> _View:
    check_cosines(mean.products, space.eps, "the points")
    angles, stretches = space.angles(mean)
    # an antipode pulls in every direction, and so in none
    stretches = np.where(1 + mean.products > ANTIPODAL * space.eps, stretches, 0.0)
    gradient = space.gradient(mean, p * stretches)
    return _View(
        stretches=stretches,
        pulls=p * stretches,
        objective=float(p @ angles**2),
        gradient=gradient,
        square=space.squared_norm(gradient),
        doubt=space.doubt(gradient),
    )


class _Record:
    """The iterations so far, those of an earlier descent included, and whether they progress."""

    def __init__(self, callback: Callback | None, before: Descent | None = None) -> None:
        self.callback = callback
        self.history = [] if before is None else list(before.history)
        self.n_iter = 0 if before is None else before.n_iter
        self.is_reported = before is not None  # of the point where the earlier descent ended
        self.n_restated = self.idle = 0
        self.lowest = self.smallest = np.inf

    def add(self, view: _View) -> None:
        progress = view.norm < 0.9 * self.smallest or view.ceiling < self.lowest
        self.idle = 0 if progress else self.idle + 1
        self.lowest = min(self.lowest, view.objective)
        self.smallest = min(self.smallest, view.norm)
        if not self.is_reported:
            self.history.append({"objective": view.objective, "gradient_norm": view.norm})
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
    """Descend (Polak and Ribière, with Powell's restart, and where they would ascend).

    Stop as soon as the coefficients of the mean cancel, unless an earlier descent, which this one
    continues, did so.
    """
    watchful = before is None
    record, mean, search = _Record(callback, before), first, None
    while True:
        view = _look(space, p, mean)
        record.add(view)
        status = ended(view.norm, tol, record.idle >= _PATIENCE, record.n_iter >= max_iter)
        if status is None and watchful and space.growth(mean, first) > _CANCELLING:
            status = Status.CANCELLING
        if status is not None:
            return record.end(mean, status)
        if view.square < 100 * view.doubt:
            level = float(view.pulls @ mean.products)
            if level > _RESTATABLE and record.n_restated < _MOST_RESTATED:
                mean, search = _restate(space, mean, view.gradient, level), None
                record.n_restated += 1
                record.n_iter += 1
                continue
            if watchful or view.square <= view.doubt:
                return record.end(mean, Status.CANCELLING if watchful else Status.ROUNDING)
        search = _next_search(space, view, search)
        step = _step(p, mean, view, search.direction, space.inner(search.direction, view.gradient))
        if step == 0:
            return record.end(mean, Status.ROUNDING)
        mean, search = _walk(space, mean, search, step)
        record.n_iter += 1


def ended(norm: float, tol: float, is_idle: bool, is_last: bool) -> Status | None:
    """Return how a search with a gradient of this norm has ended, None if it goes on."""
    if norm <= tol:
        return Status.CONVERGED
    if is_idle:
        return Status.ROUNDING
    return Status.MAX_ITER if is_last else None


def _restate(space: Space, mean: Vector, gradient: Vector, level: float) -> Vector:
    """Replace the mean by the direction of Σ w_n y_n, which is the mean where the gradient is 0.

    Where points depend on each other the same vector has many coefficients, and those of the
    gradient may stay large while it goes to 0. From here on they go to 0 with it. `level` is w · c;
    the error of the mean is multiplied by at most 1 / level - 1.
    """
    return _of_unit_length(space, gradient.combined(1.0, mean, level))


@dataclass(frozen=True)
class _Search:
    """Where a step went: a direction of unit length, its length before, and the gradient there."""

    direction: Vector
    length: float
    gradient: Vector
    norm: float


def _next_search(space: Space, view: _View, last: _Search | None) -> _Search:
    """Combine the gradient with the last direction, which was transported to the mean."""
    gradient, norm = view.gradient, view.norm
    # the last gradient need not be transported: only its inner product with this one counts
    overlap = np.inf if last is None else space.inner(gradient, last.gradient)
    if last is not None and abs(overlap) <= _ORTHOGONAL * norm**2:
        beta = max((norm**2 - overlap) / last.norm**2, 0.0)
        candidate = gradient.combined(1.0, last.direction, beta * last.length)
        square = space.inner(candidate, candidate)
        if square > 0 and space.inner(candidate, gradient) > 0.1 * norm * np.sqrt(square):
            length = float(np.sqrt(square))
            return _Search(candidate.over(length), length, gradient, norm)
    return _Search(gradient.over(norm), norm, gradient, norm)


def _walk(space: Space, mean: Vector, search: _Search, step: float) -> tuple[Vector, _Search]:
    """Move the mean along a great circle and transport the direction with it."""
    cosine, sine = float(np.cos(step)), float(np.sin(step))
    moved = mean.combined(cosine, search.direction, sine)
    direction = search.direction.combined(cosine, mean, -sine)
    return _of_unit_length(space, moved), replace(search, direction=direction)


def bending(cosines: Floats, stretches: Floats, along: Floats) -> Floats:
    r"""Return half the second derivative of each θ² along a great circle.

    Along :math:`\cos t\,\mu + \sin t\,d` the cosines are :math:`\cos t\,c + \sin t\,q`, and at 0
    it is :math:`(1 - c\,\theta/\sin\theta)\,q^2/\sin^2\theta + c\,\theta/\sin\theta`.
    """
    level = cosines * stretches  # θ cot θ
    squared_sines = (1 - cosines) * (1 + cosines)
    bend = np.zeros_like(level)  # at θ = 0 it multiplies nothing: q² is at most sin²θ
    np.divide(1 - level, squared_sines, out=bend, where=squared_sines > 1e-8)
    return bend * along**2 + level


def bend_ratios(angles: Floats, levels: Floats) -> Floats:
    """Return (1 - θ cot θ)/θ² from θ and θ cot θ; 1/3 at 0."""
    squares = angles**2
    ratios = np.full_like(levels, 1 / 3)
    np.divide(1 - levels, squares, out=ratios, where=squares > 1e-6)
    return ratios


def _step(p: Floats, mean: Vector, view: _View, direction: Vector, slope: float) -> float:
    """Return how far to go along a great circle: Newton's step, halved while it ascends."""
    cosines, along = mean.products, direction.products
    curvature = float(p @ bending(cosines, view.stretches, along))
    step = min(slope / curvature, np.pi / 2) if curvature > 0 else np.pi / 4
    while step > 1e-18:
        angles, _ = angles_from_cosines(np.cos(step) * cosines + np.sin(step) * along)
        if float(p @ angles**2) <= view.ceiling:
            return step
        step /= 2
    return 0.0
