"""The Karcher mean of points with coordinates, and the moments of their Log maps there.

Both take passes over the points that keep only sums, so that it does not matter where the points
are stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._core.status import Status
from .._core.unit import angles_from_cosines, check_cosines, check_no_antipodes, squared_angles
from ..coordinates import Block, Coordinates, Sample
from .karcher import find_mean

__all__ = [
    "LEAST_CURVATURE",
    "CoordinateMean",
    "LogSums",
    "PullSums",
    "bending_matrix",
    "coordinate_mean",
]

_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of an objective
_PATIENCE = 3  # passes with neither progress nor hope of it: only rounding is left
_SAMPLE_TOL = 1e-6  # of the mean of a sample, which is no nearer to that of all rows
LEAST_CURVATURE = 0.1  # of points that lie so far out that θ cot θ is about 0 or less

# Points of the sample whose second derivative is used: more where a pass is expensive.
_SAMPLE = {True: 4096, False: 2048}


@dataclass(frozen=True)
class CoordinateMean:
    """The Karcher mean of points; what :class:`KarcherMean` says without a number per point.

    Attributes
    ----------
    point : ndarray of shape (r,)
        The mean.
    variance, gradient_norm : float
        Σ p θ² and ‖Σ p Log f‖ there.
    n_far, n_points : int
        How many points lie outside the open hemisphere about the mean, and how many there are.
    n_iter : int
        Steps taken; passes over the rows are one more.
    status : Status
        How it ended.
    history : tuple of dict
        ``objective`` and ``gradient_norm`` of each pass.
    """

    point: NDArray[np.float64]
    variance: float
    gradient_norm: float
    n_far: int
    n_points: int
    n_iter: int
    status: Status
    history: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    @property
    def converged(self) -> bool:
        """Whether the tolerance, or the limit of rounding, was reached."""
        return self.status.converged


@dataclass(frozen=True)
class _View:
    """What one pass tells of a point."""

    point: NDArray[np.float64]
    objective: float
    level: float  # Σ p θ cot θ
    gradient: NDArray[np.float64]
    n_far: int

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.gradient))

    def along(self, step: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the point at the end of a tangent step."""
        length = float(np.linalg.norm(step))
        if length == 0:
            return self.point
        moved = np.cos(length) * self.point + np.sin(length) / length * step
        return moved / np.linalg.norm(moved)


def coordinate_mean(points: Coordinates, *, tol: float, max_iter: int) -> CoordinateMean:
    r"""Find the Karcher mean of points with coordinates, by passes that keep only sums.

    The search begins at the mean of a sample. The second derivative of the objective there,

    .. math:: H = \sum_n p_n \Bigl(\frac{1 - \theta_n \cot\theta_n}{\theta_n^2}\, z_n z_n^\top
        + \theta_n \cot\theta_n\, I\Bigr), \qquad z_n = \operatorname{Log}_\mu f_n,

    turns the gradient over all points into Newton steps, with a matrix as good as the sample. A
    step that raises the objective is halved.

    Parameters
    ----------
    points : Coordinates
        The points; weights are a column of their rows.
    tol : float
        Stop when the norm of the gradient is at most this.
    max_iter : int
        The most steps.

    Returns
    -------
    CoordinateMean
        The mean.
    """
    first, bend = _sample_mean(points.sample(_SAMPLE[points.recomputes]), max_iter)

    def look(point: NDArray[np.float64]) -> _View:
        return _look(points, PullSums(point))

    view = best = look(first)
    history = [_entry(view)]
    idle, n_iter, step = 0, 0, np.zeros_like(first)
    while (status := _ended(best.norm, tol, idle, n_iter, max_iter)) is None:
        if view is best:
            level = max(view.level, LEAST_CURVATURE)
            hessian = bend + level * np.eye(len(bend))
            step = scipy.linalg.solve(hessian, view.gradient, assume_a="pos")
            step -= (step @ view.point) * view.point
        else:
            step /= 2
        view, n_iter = look(best.along(step)), n_iter + 1
        history.append(_entry(view))
        if _is_progress(view, best):
            idle = 0
        elif not _is_promising(step, best):  # else it was too long, which says nothing of the end
            idle += 1
        if _is_better(view, best):
            best = view
    return CoordinateMean(
        point=best.point,
        variance=best.objective,
        gradient_norm=best.norm,
        n_far=best.n_far,
        n_points=points.shape[0],
        n_iter=n_iter,
        status=status,
        history=tuple(history),
    )


def _entry(view: _View) -> dict[str, Any]:
    return {"objective": view.objective, "gradient_norm": view.norm}


def _ended(norm: float, tol: float, idle: int, n_iter: int, max_iter: int) -> Status | None:
    """Say how the iteration ends, None if it goes on."""
    if norm <= tol:
        return Status.CONVERGED
    if idle >= _PATIENCE:
        return Status.ROUNDING
    return Status.MAX_ITER if n_iter >= max_iter else None


def _is_better(view: _View, best: _View) -> bool:
    """Tell whether the objective fell, or, where it is the same to rounding, the gradient."""
    rounding = _ROUNDING * (1 + best.objective)
    if abs(view.objective - best.objective) <= rounding:
        return view.norm < best.norm
    return view.objective < best.objective


def _is_progress(view: _View, best: _View) -> bool:
    falls = view.objective < best.objective - _ROUNDING * (1 + best.objective)
    return falls or (_is_better(view, best) and view.norm < 0.9 * best.norm)


def _is_promising(step: NDArray[np.float64], best: _View) -> bool:
    """Tell whether a step promised a fall of the objective that rounding cannot hide."""
    return float(best.gradient @ step) > _ROUNDING * (1 + best.objective)


def _look(points: Coordinates, function: PullSums) -> _View:
    total, objective, level, pull, far = points.reduce(function)
    point = function.point
    gradient = pull / total - float(level / total) * point
    return _View(
        point=point,
        objective=float(objective / total),
        level=float(level / total),
        gradient=gradient - (gradient @ point) * point,
        n_far=int(far),
    )


def _sample_mean(sample: Sample, max_iter: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean of a sample, and the part of H there that is not a multiple of I."""
    vectors = sample.vectors.astype(np.float64, copy=False)
    lengths = np.linalg.norm(vectors, axis=1)
    seen = lengths > np.finfo(np.float64).tiny  # what anchors do not show has no direction
    directions, p = vectors[seen] / lengths[seen, None], sample.shares[seen]
    mean = find_mean(directions, p, tol=_SAMPLE_TOL, max_iter=max_iter).point.astype(np.float64)
    return mean, bending_matrix(vectors, mean, sample.shares)


def bending_matrix(
    vectors: NDArray[np.float64], mean: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Σ p (1 - θ cot θ)/θ² z zᵀ, the part of H that is not a multiple of the identity."""
    cosines = vectors @ mean
    angles, stretches = angles_from_cosines(cosines)
    small = angles < 1e-3  # there (1 - θ cot θ)/θ² is 1/3 to rounding
    bend = np.where(small, 1 / 3, (1 - cosines * stretches) / np.where(small, 1, angles**2))
    # θ cot θ of points behind the mean is -∞ in the end: no more weight than others
    share = shares * np.clip(bend, 0.0, 1.0)
    finite = np.isfinite(stretches)
    root = np.sqrt(share[finite])[:, None]
    z = root * stretches[finite, None] * (vectors[finite] - np.outer(cosines[finite], mean))
    return np.asarray(z.T @ z)


# ---------------------------------------------------------------------- sums over blocks


@dataclass(frozen=True)
class PullSums:
    """Sums over a block of points: what pulls a point of the sphere towards their mean.

    They are those of the weights w, of w θ², of w θ cot θ, of w f θ/sin θ, and the number of points
    outside the open hemisphere.
    """

    point: NDArray[np.float64]

    def __call__(self, block: Block) -> tuple[Any, ...]:
        """Return the sums."""
        w = np.ones(block.n) if block.weights is None else block.weights
        cosines = block.products(self.point[:, None])[:, 0]
        check_cosines(cosines, float(np.finfo(block.dtype).eps), "the points")
        angles, stretches = angles_from_cosines(cosines)
        # an antipode pulls in every direction, and so in none
        pulls = np.multiply(w, stretches, out=np.zeros_like(w), where=np.isfinite(stretches))
        far = np.count_nonzero((cosines <= 0) & (w > 0))
        return w.sum(), w @ angles**2, pulls @ cosines, block.combine(pulls), float(far)


@dataclass(frozen=True)
class LogSums:
    """Sums over a block of points: moments of their Log maps at a point of the sphere.

    They are those of the weights w, of w z zᵀ with z the Log maps, of w θ² with the angles of the
    points themselves, of w (θ/sin θ)², of w k(x, x) and of w ‖f‖².
    """

    point: NDArray[np.float64]

    def __call__(self, block: Block) -> tuple[Any, ...]:
        """Return the sums."""
        w = np.ones(block.n) if block.weights is None else block.weights
        vectors = block.vectors()
        cosines = block.products(self.point[:, None])[:, 0]
        check_no_antipodes(cosines, float(np.finfo(block.dtype).eps), "points")
        _, stretches = angles_from_cosines(cosines)
        c, s, point = (array.astype(block.dtype) for array in (cosines, stretches, self.point))
        z = vectors - np.multiply.outer(c, point)
        z *= s[:, None]
        if block.weights is not None:
            z *= np.sqrt(w).astype(block.dtype)[:, None]
        total = w @ squared_angles(cosines * block.lengths, block.own)
        return w.sum(), z.T @ z, total, w @ stretches**2, w @ block.own, w @ block.captured
