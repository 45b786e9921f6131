"""The Karcher mean of points with coordinates, and moments of their Log maps at the mean.

Both are computed in passes over the points. Only sums are kept in memory.
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
from .maps import geodesic_step

_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # relative rounding error of an objective
_PATIENCE = 3  # stop after this many passes without progress
_SAMPLE_TOL = 1e-6  # tolerance for the mean of the sample, which is only an approximation
_MIN_CURVATURE = 0.1  # lower bound for the mean of θ cot θ in the second derivative

# Size of the sample for the second derivative; larger if coordinates are recomputed in each pass.
_SAMPLE = {True: 4096, False: 2048}


@dataclass(frozen=True)
class _Evaluation:
    """The objective and its derivatives at a point, computed in one pass."""

    point: Floats
    objective: float
    rounding: float
    level: float  # Σ p θ cot θ
    gradient: Floats
    norm: float
    n_far: int


def coordinate_mean(points: Coordinates, *, tol: float, max_iter: int) -> KarcherMean:
    r"""Find the Karcher mean of points with coordinates.

    The search starts from the mean of a sample. The second derivative of the objective there,

    .. math:: H = \sum_n p_n \Bigl(\frac{1 - \theta_n \cot\theta_n}{\theta_n^2}\, z_n z_n^\top
        + \theta_n \cot\theta_n\, I\Bigr), \qquad z_n = \operatorname{Log}_\mu f_n,

    is used for approximate Newton steps with the gradient over all points. A step that increases
    the objective is halved.

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
        The mean, without cosines. The number of passes is the number of steps plus one.
    """
    first, bend = _sample_mean(points.sample(_SAMPLE[points.recomputes]), max_iter)
    current = best = _evaluate(points, first)
    evaluations = [current]
    idle, step = 0, np.zeros_like(first)
    while (
        status := end_of_search(best.norm, tol, idle >= _PATIENCE, len(evaluations) > max_iter)
    ) is None:
        if current is best:
            hessian = second_derivative(bend, current.level)
            step = scipy.linalg.solve(hessian, current.gradient, assume_a="pos")
            step -= (step @ current.point) * current.point
        else:
            step /= 2
        current = _evaluate(points, geodesic_step(best.point, step))
        evaluations.append(current)
        tied = abs(current.objective - best.objective) <= best.rounding
        better = current.norm < best.norm if tied else current.objective < best.objective
        if better and not (tied and current.norm >= 0.9 * best.norm):
            idle = 0
        elif not float(best.gradient @ step) > best.rounding:  # otherwise a shorter step may help
            idle += 1
        if better:
            best = current
    return KarcherMean(
        point=best.point,
        cosines=None,
        variance=best.objective,
        gradient_norm=best.norm,
        n_far=best.n_far,
        n_points=points.shape[0],
        n_iter=len(evaluations) - 1,
        status=status,
        history=tuple(
            {"objective": each.objective, "gradient_norm": each.norm} for each in evaluations
        ),
    )


def _evaluate(points: Coordinates, point: Floats) -> _Evaluation:
    total, squares, level, pull, far = points.reduce(PullSums(point))
    objective, level = float(squares / total), float(level / total)
    gradient = pull / total - level * point
    gradient -= (gradient @ point) * point
    norm, rounding = float(np.linalg.norm(gradient)), _ROUNDING * (1 + objective)
    return _Evaluation(point, objective, rounding, level, gradient, norm, int(far))


def _sample_mean(sample: Sample, max_iter: int) -> tuple[Floats, Floats]:
    """Return the mean of a sample, and :func:`bending_matrix` at that mean."""
    vectors = sample.vectors.astype(np.float64, copy=False)
    lengths = np.linalg.norm(vectors, axis=1)
    present = lengths > np.finfo(np.float64).tiny  # zero vectors have no direction
    directions, p = vectors[present] / lengths[present, None], sample.weights[present]
    mean = find_mean(directions, p, tol=_SAMPLE_TOL, max_iter=max_iter).point.astype(np.float64)
    return mean, bending_matrix(vectors, mean, sample.weights)


def bending_matrix(vectors: Floats, mean: Floats, weights: Floats) -> Floats:
    """Return Σ p (1 - θ cot θ)/θ² z zᵀ, the term of H that is not a multiple of the identity."""
    cosines = vectors @ mean
    angles, angle_ratios = angles_from_cosines(cosines)
    # clip, because θ cot θ goes to -∞ at the antipode
    factors = weights * np.clip(bend_ratios(angles, cosines * angle_ratios), 0.0, 1.0)
    finite = np.isfinite(angle_ratios)
    root = np.sqrt(factors[finite])[:, None]
    z = root * angle_ratios[finite, None] * (vectors[finite] - np.outer(cosines[finite], mean))
    return np.asarray(z.T @ z)


def second_derivative(bend: Floats, level: float) -> Floats:
    """Return H from its two terms; it is positive definite even if `level` is negative."""
    return bend + max(level, _MIN_CURVATURE) * np.eye(len(bend))


# ---------------------------------------------------------------------- sums over blocks


@dataclass(frozen=True)
class PullSums:
    """Sums over a block, for the gradient of Σ w θ² at a point.

    These are the sums of the weights w, of w θ², w θ cot θ and w f θ/sin θ, and the number of
    points outside the open hemisphere.
    """

    point: Floats

    def __call__(self, block: Block) -> tuple[Any, ...]:
        """Return the sums."""
        w = np.ones(block.n) if block.weights is None else block.weights
        cosines = block.products(self.point[:, None])[:, 0]
        check_cosines(cosines, float(np.finfo(block.dtype).eps), "the points")
        angles, angle_ratios = angles_from_cosines(cosines)
        # Log is not defined at the antipode
        pulls = np.multiply(w, angle_ratios, out=np.zeros_like(w), where=np.isfinite(angle_ratios))
        far = np.count_nonzero((cosines <= 0) & (w > 0))
        return w.sum(), w @ angles**2, pulls @ cosines, block.combine(pulls), float(far)


@dataclass(frozen=True)
class LogSums:
    """Sums over a block, for the moments of Log maps z at a point of the sphere.

    These are the sums of the weights w, of w z zᵀ, w θ² (with the angles of the points before
    projection), w (θ/sin θ)², w k(x, x) and w ‖f‖².
    """

    point: Floats

    def __call__(self, block: Block) -> tuple[Any, ...]:
        """Return the sums."""
        w = np.ones(block.n) if block.weights is None else block.weights
        vectors = block.vectors()
        cosines = block.products(self.point[:, None])[:, 0]
        check_no_antipodes(cosines, float(np.finfo(block.dtype).eps), "points")
        _, angle_ratios = angles_from_cosines(cosines)
        c, s, point = (array.astype(block.dtype) for array in (cosines, angle_ratios, self.point))
        z = vectors - np.multiply.outer(c, point)
        z *= s[:, None]
        if block.weights is not None:
            z *= np.sqrt(w).astype(block.dtype)[:, None]
        total = w @ squared_angles(cosines * block.lengths, block.diagonal)
        return w.sum(), z.T @ z, total, w @ angle_ratios**2, w @ block.diagonal, w @ block.captured
