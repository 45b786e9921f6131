"""The Karcher mean of points with coordinates, and the moments of their Log maps there.

Both take passes over the points that keep only sums, so that it does not matter where the points
are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from .._core.types import Floats
from .._core.unit import angles_from_cosines, check_cosines, check_no_antipodes, squared_angles
from ..coordinates import Coordinates
from ..coordinates.blocks import Block
from ..coordinates.points import Sample
from ._descent import bend_ratios, ended
from .karcher import KarcherMean, find_mean
from .maps import moved_along

__all__ = ["LogSums", "PullSums", "bending_matrix", "coordinate_mean", "second_derivative"]

_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of an objective
_PATIENCE = 3  # passes with neither progress nor hope of it: only rounding is left
_SAMPLE_TOL = 1e-6  # of the mean of a sample, which is no nearer to that of all rows
_LEAST_CURVATURE = 0.1  # of points that lie so far out that θ cot θ is about 0 or less

# Points of the sample whose second derivative is used: more where a pass is expensive.
_SAMPLE = {True: 4096, False: 2048}


@dataclass(frozen=True)
class _View:
    """The objective and its derivatives at a point, from one pass."""

    point: Floats
    objective: float
    level: float  # Σ p θ cot θ
    gradient: Floats
    n_far: int

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.gradient))

    @property
    def rounding(self) -> float:
        return _ROUNDING * (1 + self.objective)


def coordinate_mean(points: Coordinates, *, tol: float, max_iter: int) -> KarcherMean:
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
    KarcherMean
        The mean, without cosines. It took one pass more than steps.
    """
    first, bend = _sample_mean(points.sample(_SAMPLE[points.recomputes]), max_iter)
    view = best = _look(points, first)
    views = [view]
    idle, step = 0, np.zeros_like(first)
    while (status := ended(best.norm, tol, idle >= _PATIENCE, len(views) > max_iter)) is None:
        if view is best:
            hessian = second_derivative(bend, view.level)
            step = scipy.linalg.solve(hessian, view.gradient, assume_a="pos")
            step -= (step @ view.point) * view.point
        else:
            step /= 2
        view = _look(points, moved_along(best.point, step))
        views.append(view)
        if _is_progress(view, best):
            idle = 0
        elif not float(best.gradient @ step) > best.rounding:  # else the step was only too long
            idle += 1
        if _is_better(view, best):
            best = view
    return KarcherMean(
        point=best.point,
        cosines=None,
        variance=best.objective,
        gradient_norm=best.norm,
        n_far=best.n_far,
        n_points=points.shape[0],
        n_iter=len(views) - 1,
        status=status,
        history=tuple({"objective": v.objective, "gradient_norm": v.norm} for v in views),
    )


def _is_better(view: _View, best: _View) -> bool:
    """Tell whether the objective fell, or, where it is the same to rounding, the gradient."""
    if abs(view.objective - best.objective) <= best.rounding:
        return view.norm < best.norm
    return view.objective < best.objective


def _is_progress(view: _View, best: _View) -> bool:
    falls = view.objective < best.objective - best.rounding
    return falls or (_is_better(view, best) and view.norm < 0.9 * best.norm)


def _look(points: Coordinates, point: Floats) -> _View:
    total, objective, level, pull, far = points.reduce(PullSums(point))
    gradient = pull / total - float(level / total) * point
    gradient -= (gradient @ point) * point
    return _View(point, float(objective / total), float(level / total), gradient, int(far))


def _sample_mean(sample: Sample, max_iter: int) -> tuple[Floats, Floats]:
    """Return the mean of a sample, and the part of H there that is not a multiple of I."""
    vectors = sample.vectors.astype(np.float64, copy=False)
    lengths = np.linalg.norm(vectors, axis=1)
    present = lengths > np.finfo(np.float64).tiny  # vectors of length 0 have no direction
    directions, p = vectors[present] / lengths[present, None], sample.shares[present]
    mean = find_mean(directions, p, tol=_SAMPLE_TOL, max_iter=max_iter).point.astype(np.float64)
    return mean, bending_matrix(vectors, mean, sample.shares)


def bending_matrix(vectors: Floats, mean: Floats, shares: Floats) -> Floats:
    """Return Σ p (1 - θ cot θ)/θ² z zᵀ, the part of H that is not a multiple of the identity."""
    cosines = vectors @ mean
    angles, stretches = angles_from_cosines(cosines)
    # θ cot θ of points behind the mean goes to -∞: no more weight than others
    share = shares * np.clip(bend_ratios(angles, cosines * stretches), 0.0, 1.0)
    finite = np.isfinite(stretches)
    root = np.sqrt(share[finite])[:, None]
    z = root * stretches[finite, None] * (vectors[finite] - np.outer(cosines[finite], mean))
    return np.asarray(z.T @ z)


def second_derivative(bend: Floats, level: float) -> Floats:
    """Return H from its two parts; far out, where `level` may be negative, it stays definite."""
    return bend + max(level, _LEAST_CURVATURE) * np.eye(len(bend))


# ---------------------------------------------------------------------- sums over blocks


@dataclass(frozen=True)
class PullSums:
    """Sums over a block of points that give the gradient of Σ w θ² at a point.

    They are those of the weights w, of w θ², of w θ cot θ, of w f θ/sin θ, and the number of points
    outside the open hemisphere.
    """

    point: Floats

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

    point: Floats

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
