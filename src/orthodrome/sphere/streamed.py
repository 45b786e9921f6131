"""The Karcher mean of features that are seen a block at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._core.status import Status
from .._core.unit import angles_from_cosines
from ..gram import FeatureMap, NystroemFeatures, PullSums, RowSource
from ..gram.nystroem import log_maps
from .karcher import find_mean

__all__ = ["StreamedMean", "streamed_mean"]

_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of an objective
_PATIENCE = 3  # passes with neither progress nor hope of it: only rounding is left
_SAMPLE_TOL = 1e-6  # of the mean of a sample, which is no nearer to that of all rows
_LEAST_CURVATURE = 0.1  # of points that lie so far out that θ cot θ is about 0 or less


@dataclass(frozen=True)
class StreamedMean:
    """The Karcher mean of features; what :class:`KarcherMean` says without a number per point.

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


def streamed_mean(
    source: RowSource,
    features: FeatureMap,
    sample: NystroemFeatures,
    sample_weight: NDArray[np.float64] | None,
    *,
    weights: Any = None,
    squares: Any = None,
    tol: float,
    max_iter: int,
) -> StreamedMean:
    r"""Find the Karcher mean of all features, by passes that keep only sums.

    The mean of a sample is where it begins, and the second derivative of the objective there,

    .. math:: H = \sum_n p_n \Bigl(\frac{1 - \theta_n \cot\theta_n}{\theta_n^2}\, z_n z_n^\top
        + \theta_n \cot\theta_n\, I\Bigr), \qquad z_n = \operatorname{Log}_\mu f_n,

    turns the gradient over all rows into steps: Newton's, with a matrix as good as the sample. A
    step that raises the objective is halved.

    Parameters
    ----------
    source : RowSource
        The rows.
    features : FeatureMap
        The map to features.
    sample : NystroemFeatures
        Features of some of the rows.
    sample_weight : ndarray or None
        Their weights.
    weights : array of shape (n,), optional
        Weights of all rows.
    squares : array of shape (n,), optional
        Squared lengths of the features, before they were divided by them, if they are known.
    tol : float
        Stop when the norm of the gradient is at most this.
    max_iter : int
        The most steps.

    Returns
    -------
    StreamedMean
        The mean.
    """
    first, curvatures, directions = _sample_mean(sample, sample_weight, max_iter)
    along = tuple(array for array in (weights, squares) if array is not None)
    known = {"weighted": weights is not None, "measured": squares is not None}

    def look(point: NDArray[np.float64]) -> _View:
        return _look(source, PullSums(map=features, point=point, **known), along)

    view = best = look(first)
    history = [_entry(view)]
    idle, n_iter, step = 0, 0, np.zeros_like(first)
    while (status := _ended(best.norm, tol, idle, n_iter, max_iter)) is None:
        if view is best:
            level = max(view.level, _LEAST_CURVATURE)
            step = directions @ ((view.gradient @ directions) / (curvatures + level))
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
    return StreamedMean(
        point=best.point,
        variance=best.objective,
        gradient_norm=best.norm,
        n_far=best.n_far,
        n_points=source.shape[0],
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


def _look(source: RowSource, function: PullSums, along: tuple[Any, ...]) -> _View:
    total, objective, level, pulled, far = source.sums(function, along=along)
    point = function.point
    pull = (pulled / total) @ function.map.decoder
    gradient = pull - float(level / total) * point
    return _View(
        point=point,
        objective=float(objective / total),
        level=float(level / total),
        gradient=gradient - (gradient @ point) * point,
        n_far=int(far),
    )


def _sample_mean(
    sample: NystroemFeatures, weights: NDArray[np.float64] | None, max_iter: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean of a sample, and the part of H there that is not a multiple of I.

    That part is returned as its eigenvalues and eigenvectors.
    """
    mean = find_mean(sample, weights, tol=_SAMPLE_TOL, max_iter=max_iter)
    p = np.full(sample.shape[0], 1.0) if weights is None else weights
    p = p / p.sum()
    angles, stretches = angles_from_cosines(mean.cosines)
    small = angles < 1e-3  # there (1 - θ cot θ)/θ² is 1/3 to rounding
    bend = np.where(small, 1 / 3, (1 - mean.cosines * stretches) / np.where(small, 1, angles**2))
    # θ cot θ of points behind the mean is -∞ in the end: no more weight than others
    moved = log_maps(mean.point, mean.cosines, stretches, sample.dtype)
    second = sample.second_moment(p * np.clip(bend, 0.0, 1.0), moved)
    curvatures, directions = scipy.linalg.eigh(second)
    return mean.point, np.maximum(curvatures, 0.0), directions
