"""The Karcher mean of points with coordinates, and the moments of their Log maps there.

Both are computed by passes over the points that keep only sums, wherever the points are stored.
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
from ._descent import bend_ratios, end_of_search
from .karcher import KarcherMean, find_mean
from .maps import moved_along

_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of an objective
_PATIENCE = 3  # stop after so many passes without progress, or the prospect of it
_SAMPLE_TOL = 1e-6  # of the mean of the sample, which is only an approximation
_LEAST_CURVATURE = 0.1  # replaces the mean of θ cot θ where that is smaller

# Size of the sample for the second derivative: larger if a pass is expensive.
_SAMPLE = {True: 4096, False: 2048}


@dataclass(frozen=True)
class _Evaluation:
    """The objective and its derivatives at a point, from one pass."""

    point: Floats
    objective: float
    rounding: float
    level: float  # Σ p θ cot θ
    gradient: Floats
    norm: float
    n_far: int


def coordinate_mean(points: Coordinates, *, tol: float, max_iter: int) -> KarcherMean:
    r"""Find the Karcher mean of points with coordinates.

    The search begins at the mean of a sample. The second derivative of the objective there,

    .. math:: H = \sum_n p_n \Bigl(\frac{1 - \theta_n \cot\theta_n}{\theta_n^2}\, z_n z_n^\top
        + \theta_n \cot\theta_n\, I\Bigr), \qquad z_n = \operatorname{Log}_\mu f_n,

    turns the gradient over all points into approximate Newton steps. A step that raises the
    objective is halved.

    Parameters
    ----------
    points : Coordinates
        The points; weights are a column of their rows.
    tol : float
        Stop when the norm of the gradient is at most this.
    max_iter : int
        The maximum number of steps.

    Returns
    -------
    KarcherMean
        The mean, without cosines. There was one pass more than steps.
    """
    first, bend = _sample_mean(points.sample(_SAMPLE[points.recomputes]), max_iter)
    here = best = _evaluate(points, first)
    tried = [here]
    idle, step = 0, np.zeros_like(first)
    while (
        status := end_of_search(best.norm, tol, idle >= _PATIENCE, len(tried) > max_iter)
    ) is None:
        if here is best:
            hessian = second_derivative(bend, here.level)
            step = scipy.linalg.solve(hessian, here.gradient, assume_a="pos")
            step -= (step @ here.point) * here.point
        else:
            step /= 2
        here = _evaluate(points, moved_along(best.point, step))
        tried.append(here)
        same = abs(here.objective - best.objective) <= best.rounding
        better = here.norm < best.norm if same else here.objective < best.objective
        if better and not (same and here.norm >= 0.9 * best.norm):
            idle = 0
        elif not float(best.gradient @ step) > best.rounding:  # else the step was only too long
            idle += 1
        if better:
            best = here
    return KarcherMean(
        point=best.point,
        cosines=None,
        variance=best.objective,
        gradient_norm=best.norm,
        n_far=best.n_far,
        n_points=points.shape[0],
        n_iter=len(tried) - 1,
        status=status,
        history=tuple({"objective": each.objective, "gradient_norm": each.norm} for each in tried),
    )


def _evaluate(points: Coordinates, point: Floats) -> _Evaluation:
    total, squares, level, pull, far = points.reduce(PullSums(point))
    objective, level = float(squares / total), float(level / total)
    gradient = pull / total - level * point
    gradient -= (gradient @ point) * point
    norm, rounding = float(np.linalg.norm(gradient)), _ROUNDING * (1 + objective)
    return _Evaluation(point, objective, rounding, level, gradient, norm, int(far))


def _sample_mean(sample: Sample, max_iter: int) -> tuple[Floats, Floats]:
    """Return the mean of a sample, and its :func:`bending_matrix` there."""
    vectors = sample.vectors.astype(np.float64, copy=False)
    lengths = np.linalg.norm(vectors, axis=1)
    present = lengths > np.finfo(np.float64).tiny  # zero vectors have no direction
    directions, p = vectors[present] / lengths[present, None], sample.shares[present]
    mean = find_mean(directions, p, tol=_SAMPLE_TOL, max_iter=max_iter).point.astype(np.float64)
    return mean, bending_matrix(vectors, mean, sample.shares)


def bending_matrix(vectors: Floats, mean: Floats, shares: Floats) -> Floats:
    """Return Σ p (1 - θ cot θ)/θ² z zᵀ, the part of H that is not a multiple of the identity."""
    cosines = vectors @ mean
    angles, stretches = angles_from_cosines(cosines)
    # clip: θ cot θ goes to -∞ at the antipode
    share = shares * np.clip(bend_ratios(angles, cosines * stretches), 0.0, 1.0)
    finite = np.isfinite(stretches)
    root = np.sqrt(share[finite])[:, None]
    z = root * stretches[finite, None] * (vectors[finite] - np.outer(cosines[finite], mean))
    return np.asarray(z.T @ z)


def second_derivative(bend: Floats, level: float) -> Floats:
    """Return H from its two parts, positive definite even if `level` is negative."""
    return bend + max(level, _LEAST_CURVATURE) * np.eye(len(bend))


# ---------------------------------------------------------------------- sums over blocks


@dataclass(frozen=True)
class PullSums:
    """Sums over a block of points that give the gradient of Σ w θ² at a point.

    The sums of the weights w, w θ², w θ cot θ and w f θ/sin θ, and the number of points outside the
    open hemisphere.
    """

    point: Floats

    def __call__(self, block: Block) -> tuple[Any, ...]:
        """Return the sums."""
        w = np.ones(block.n) if block.weights is None else block.weights
        cosines = block.products(self.point[:, None])[:, 0]
        check_cosines(cosines, float(np.finfo(block.dtype).eps), "the points")
        angles, stretches = angles_from_cosines(cosines)
        # Log is not defined at the antipode
        pulls = np.multiply(w, stretches, out=np.zeros_like(w), where=np.isfinite(stretches))
        far = np.count_nonzero((cosines <= 0) & (w > 0))
        return w.sum(), w @ angles**2, pulls @ cosines, block.combine(pulls), float(far)


@dataclass(frozen=True)
class LogSums:
    """Sums over a block of points: moments of their Log maps z at a point of the sphere.

    The sums of the weights w, w z zᵀ, w θ² (with the angles of the points before projection),
    w (θ/sin θ)², w k(x, x) and w ‖f‖².
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
