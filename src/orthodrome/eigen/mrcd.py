"""The minimum regularised covariance determinant: a robust mean and covariance of points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._core.types import Floats
from .pursuit import signs_of, spatial_median

# Maximum number of directions for the outlyingness of Stahel and Donoho.
_MAX_DIRECTIONS = 500
# Quantiles of the standard normal distribution: 99.5 % (for the cut-off) and 75 %.
_CUTOFF_QUANTILE, _QUARTILE = 2.575829, 0.674490
# Makes the logarithm of distances finite.
_LOG_OFFSET = 0.1
# Rounding error of sums of weights.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class RobustCovariance:
    """The mean and the covariance of the points that are not outliers.

    Attributes
    ----------
    center : ndarray of shape (m,)
        The mean.
    covariance : ndarray of shape (m, m)
        The covariance, without regularisation.
    ridge : float
        The multiple of the identity that is added to the covariance for distances.
    factor : ndarray of shape (m, m)
        The lower Cholesky factor of the regularised covariance.
    cutoff : float
        Points at a larger distance are outliers.
    support : ndarray of shape (n,), bool
        Whether each point contributes to the final mean and covariance.
    n_iter : int
        Number of concentration steps.
    converged : bool
        Whether the search from every start ended before `max_iter` steps.
    """

    center: Floats
    covariance: Floats
    ridge: float
    factor: Floats
    cutoff: float
    support: NDArray[np.bool_]
    n_iter: int
    converged: bool

    def distances(self, points: Floats, outside: Floats | float = 0.0) -> Floats:
        """Return the Mahalanobis distances of points from the mean.

        A point may also have a component orthogonal to the space of the coordinates. There the
        regularised covariance is the ridge times the identity. `outside` is the squared length of
        this component for each point.
        """
        squares = _squared_distances(points, self.center, self.factor)
        return np.sqrt(squares + outside / self.ridge)


def mrcd(
    points: Floats,
    weights: Floats,
    *,
    support_fraction: float = 0.5,
    max_condition: float = 50.0,
    max_iter: int = 100,
) -> RobustCovariance:
    r"""Estimate mean and covariance by the minimum regularised covariance determinant.

    The method searches for a subset of given size whose regularised covariance
    :math:`\Sigma + \delta I` has the smallest determinant. A concentration step computes the mean
    and the covariance of a subset, and replaces the subset by the points nearest to this mean in
    the Mahalanobis distance of the regularised covariance. The determinant never rises. The steps
    start from three subsets, and the result with the smallest determinant is kept. Points whose
    distance is below a cut-off give the final mean and covariance.

    Parameters
    ----------
    points : ndarray of shape (n, m)
        The points.
    weights : ndarray of shape (n,)
        Positive weights; a weight of 2 is equivalent to repeating the point.
    support_fraction : float in (0, 1], default=0.5
        The size of the subset, as a fraction of the sum of the weights.
    max_condition : float, default=50.0
        The condition number from which δ is computed for each start. The median δ is used.
    max_iter : int, default=100
        Maximum number of concentration steps from a start.

    Returns
    -------
    RobustCovariance
        The mean, the covariance, and the cut-off.

    Notes
    -----
    The three starting subsets are the points nearest to the spatial median, the points with the
    smallest outlyingness of Stahel and Donoho, and the points nearest to the densest point. The
    densest point is the one whose nearest points lie in the smallest ball. The cut-off assumes that
    the logarithms of distances are normal, and takes their location and scale from the shortest
    interval that contains half of them.

    References
    ----------
    Schreurs, Vranckx, Hubert, Suykens and Rousseeuw, "Outlier detection in non-elliptical data by
    kernel MRCD", Statistics and Computing 31, 2021.

    Examples
    --------
    >>> points = np.vstack([np.random.default_rng(0).standard_normal((90, 2)), np.full((10, 2), 9)])
    >>> found = mrcd(points, np.ones(100))
    >>> int(np.sum(found.distances(points) > found.cutoff))
    10
    """
    size = support_fraction * float(weights.sum())
    distances = _starting_distances(points, weights, size)
    subsets = [nearest_weights(each, weights, size) for each in distances]
    ridges = [_ridge(moments(points, subset)[1], max_condition) for subset in subsets]
    ridge = max(float(np.median(ridges)), _smallest_ridge(points, weights))
    best, lowest, n_iter, converged = subsets[0], np.inf, 0, True
    for start in subsets:
        subset, determinant, steps = _concentrate(points, weights, start, ridge, size, max_iter)
        n_iter, converged = n_iter + steps, converged and steps < max_iter
        if determinant < lowest:
            best, lowest = subset, determinant
    center, covariance = moments(points, best)
    lengths = np.sqrt(_squared_distances(points, center, _factor(covariance, ridge)))
    support = lengths <= log_cutoff(lengths, weights)
    center, covariance = moments(points, weights * support)
    factor = _factor(covariance, ridge)
    cutoff = log_cutoff(np.sqrt(_squared_distances(points, center, factor)), weights)
    return RobustCovariance(center, covariance, ridge, factor, cutoff, support, n_iter, converged)


def nearest_weights(distances: Floats, weights: Floats, size: float) -> Floats:
    """Return the weights of the nearest points, and 0 for the others.

    The sum is `size`, so the last of the nearest points may keep only a part of its weight.
    """
    order = np.argsort(distances, kind="stable")
    sums = np.cumsum(weights[order])
    found = np.empty_like(weights)
    found[order] = np.clip(size - (sums - weights[order]), 0.0, weights[order])
    return found


def moments(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean and covariance."""
    fractions = weights / weights.sum()
    center = fractions @ points
    deviations = points - center
    return center, (deviations * fractions[:, None]).T @ deviations


def log_cutoff(distances: Floats, weights: Floats) -> float:
    """Return the 99.5 % quantile of distances.

    The logarithms of the distances are assumed to be normal, except for outliers.
    """
    order = np.argsort(distances, kind="stable")
    logs, sums = np.log(_LOG_OFFSET + distances[order]), np.cumsum(weights[order])
    half = 0.5 * (1 - _ROUNDING) * sums[-1]
    last = np.searchsorted(sums, sums - weights[order] + half)
    first = np.flatnonzero(last < len(logs))
    lengths = logs[last[first]] - logs[first]
    shortest = int(np.argmin(lengths))
    location = logs[first[shortest]] + lengths[shortest] / 2
    scale = lengths[shortest] / 2 / _QUARTILE
    # a little more, since equal distances differ by rounding errors
    return float(np.exp(location + _CUTOFF_QUANTILE * scale) * (1 + 1e-9) - _LOG_OFFSET)


def _concentrate(
    points: Floats, weights: Floats, subset: Floats, ridge: float, size: float, max_iter: int
) -> tuple[Floats, float, int]:
    """Concentrate a subset; return the result, its log determinant and the number of steps."""
    lowest, steps = np.inf, 0
    while True:
        center, covariance = moments(points, subset)
        factor = _factor(covariance, ridge)
        determinant = 2 * float(np.sum(np.log(np.diagonal(factor))))
        if steps == max_iter or determinant > lowest - _ROUNDING * len(factor):
            return subset, min(determinant, lowest), steps
        lowest, steps = determinant, steps + 1
        squares = _squared_distances(points, center, factor)
        subset = nearest_weights(squares, weights, size)


def _factor(covariance: Floats, ridge: float) -> Floats:
    """Return the lower Cholesky factor of the regularised covariance."""
    return scipy.linalg.cholesky(covariance + ridge * np.eye(len(covariance)), lower=True)


def _squared_distances(points: Floats, center: Floats, factor: Floats) -> Floats:
    scaled = scipy.linalg.solve_triangular(factor, (points - center).T, lower=True)
    return np.einsum("ij,ij->j", scaled, scaled)


def _ridge(covariance: Floats, max_condition: float) -> float:
    """Return the multiple of the identity that reduces the condition number to a maximum."""
    values = np.linalg.eigvalsh(covariance)
    return float((values[-1] - max_condition * values[0]) / (max_condition - 1))


def _smallest_ridge(points: Floats, weights: Floats) -> float:
    """Return the smallest ridge: 1e-12 of the mean squared length, or 1 if that is 0.

    KernelMRCD leaves smaller variances out of the coordinates.
    """
    square = float(weights @ np.einsum("ij,ij->i", points, points) / weights.sum())
    return 1e-12 * square or 1.0


def _starting_distances(points: Floats, weights: Floats, size: float) -> list[Floats]:
    """Return three kinds of distances; for each kind, a search starts from the nearest points."""
    median = spatial_median(points, weights)
    lengths = np.linalg.norm(points - median, axis=1)
    return [lengths, _outlyingness(points, weights, median), _from_densest(points, weights, size)]


def _outlyingness(points: Floats, weights: Floats, median: Floats) -> Floats:
    """Return the outlyingness of Stahel and Donoho of each point.

    The points are projected on directions from the spatial median to points. In each direction,
    the projections are standardised by their median and median absolute deviation. The
    outlyingness of a point is its largest absolute value over the directions.
    """
    signs, lengths = signs_of(points - median)
    order = np.argsort(lengths, kind="stable")
    step = -(-len(order) // _MAX_DIRECTIONS)
    projections = (points - median) @ signs[order[::step]].T
    projections = np.abs(projections - _medians(projections, weights))
    scales = _medians(projections, weights)
    used = scales > 1e-10 * scales.max(initial=0.0)
    return np.max(projections[:, used] / scales[used], axis=1, initial=0.0)


def _medians(columns: Floats, weights: Floats) -> Floats:
    """Return the lower weighted median of each column."""
    half = 0.5 * (1 - _ROUNDING)
    return np.quantile(columns, half, axis=0, weights=weights, method="inverted_cdf")


def _from_densest(points: Floats, weights: Floats, size: float) -> Floats:
    """Return squared distances from the densest point.

    It is the point around which the smallest ball holds points of weight `size`.
    """
    squares = np.einsum("ij,ij->i", points, points)
    distances = np.maximum(squares[:, None] + squares - 2 * points @ points.T, 0.0)
    order = np.argsort(distances, axis=1, kind="stable")
    farthest = np.argmax(np.cumsum(weights[order], axis=1) >= (1 - _ROUNDING) * size, axis=1)
    radii = distances[np.arange(len(points)), order[np.arange(len(points)), farthest]]
    return distances[int(np.argmin(radii))]
