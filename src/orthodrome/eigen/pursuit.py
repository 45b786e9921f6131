"""Robust projection pursuit with deflation, and the spatial median."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize

from .._core.types import Floats

# Maximum number of points whose directions are tried, and number of those that start a search.
_MAX_CANDIDATES, _N_STARTS = 256, 4
# Smooths powers below 1 near 0; relative to the mean square.
_EPSILON = 1e-8
# Spatial median: maximum number of iterations, and the last step relative to the mean distance.
_MAX_MEDIAN, _MEDIAN_TOL = 10_000, 1e-12


@dataclass(frozen=True)
class Pursuit:
    """Orthonormal directions and the dispersion of points along them.

    Attributes
    ----------
    directions : ndarray of shape (m, k)
        Orthonormal columns.
    dispersions : ndarray of shape (k,)
        The weighted mean of |⟨v, z⟩|^p along each.
    n_iter : int
        Iterations of all searches that were kept.
    converged : bool
        Whether all of them reached their tolerance.
    """

    directions: Floats
    dispersions: Floats
    n_iter: int
    converged: bool = True


def projection_pursuit(
    points: Floats,
    weights: Floats,
    n_directions: int,
    *,
    p: float,
    max_iter: int = 1000,
    callback: Callable[[int], None] | None = None,
) -> Pursuit:
    r"""Find orthogonal directions of largest dispersion, one after the other.

    .. math:: v_q = \arg\max_{\|v\| = 1,\; v \perp v_1, \dots, v_{q-1}}
        \sum_n w_n |\langle v, z_n \rangle|^p

    With p = 2 these are the principal directions, from an eigendecomposition. For 1 <= p < 2, each
    iteration computes :math:`s = Zv`, replaces v by
    :math:`\sum_n w_n |s_n|^{p-1} \operatorname{sign}(s_n) z_n`, and normalises it. This never
    lowers the sum, which is convex in v. For p < 1, the smoothed sum is maximised with L-BFGS. Both
    start from the leading principal directions and the best directions of points; the best result
    is kept.

    Parameters
    ----------
    points : ndarray of shape (n, m)
        The points, relative to their centre.
    weights : ndarray of shape (n,)
        Weights; they are divided by their sum.
    n_directions : int
        Number of directions, at most m.
    p : float in (0, 2]
        The power; smaller powers are less sensitive to outliers.
    max_iter : int, default=1000
        Maximum number of iterations per search.
    callback : callable, optional
        Called after each direction with the number of directions so far.

    Returns
    -------
    Pursuit
        Directions in the order in which they were found.

    References
    ----------
    Kwak, "Principal component analysis based on L1-norm maximization", IEEE TPAMI 30, 2008; Awate,
    Dhar and Kulkarni, "Robust Kernel Principal Nested Spheres", ICPR 2016, §VII.
    """
    fractions = weights / weights.sum()
    k = min(n_directions, points.shape[1])
    if p == 2:
        values, vectors = np.linalg.eigh((points * fractions[:, None]).T @ points)
        if callback is not None:
            for number in range(k):
                callback(number + 1)
        return Pursuit(vectors[:, ::-1][:, :k], np.maximum(values[::-1][:k], 0.0), 0)
    residuals, found = points.copy(), np.empty((points.shape[1], k))
    dispersions, n_iter, converged = np.empty(k), 0, True
    for number in range(k):
        direction, steps = _Search(residuals, fractions, p, max_iter).best_direction()
        converged &= steps < max_iter
        earlier = found[:, :number]
        for _ in range(2):  # twice, for full accuracy
            direction = direction - earlier @ (earlier.T @ direction)
        length = float(np.linalg.norm(direction))
        if length < 0.5:  # the residuals are 0: use any orthogonal direction
            direction, length = scipy.linalg.null_space(earlier.T)[:, 0], 1.0
        found[:, number] = direction / length
        scores = residuals @ found[:, number]
        dispersions[number] = float(fractions @ np.abs(scores) ** p)
        residuals -= np.outer(scores, found[:, number])
        n_iter += steps
        if callback is not None:
            callback(number + 1)
    return Pursuit(found, dispersions, n_iter, converged)


def spatial_median(points: Floats, weights: Floats) -> Floats:
    r"""Return the point c that minimises the weighted sum of distances, Σ w_n ‖y_n - c‖.

    This is Weiszfeld's iteration, with the step of Vardi and Zhang at data points.

    Parameters
    ----------
    points : ndarray of shape (n, m)
        The points.
    weights : ndarray of shape (n,)
        Weights.
    """
    fractions = weights / weights.sum()
    center = fractions @ points
    scale = float(fractions @ np.linalg.norm(points - center, axis=1))
    for _ in range(_MAX_MEDIAN):
        distances = np.linalg.norm(points - center, axis=1)
        at_center = distances <= 1e-14 * max(scale, np.finfo(np.float64).tiny)
        pulls = np.divide(fractions, distances, out=np.zeros_like(fractions), where=~at_center)
        total = float(pulls.sum())
        if total == 0:
            return center
        target = pulls @ points / total
        center_weight = float(fractions[at_center].sum())
        force = float(np.linalg.norm(target - center)) * total
        fraction = max(0.0, 1 - center_weight / force) if force > 0 else 0.0
        step = fraction * (target - center)
        center = center + step
        if np.linalg.norm(step) <= _MEDIAN_TOL * scale:
            return center
    return center


def signs_of(points: Floats) -> tuple[Floats, Floats]:
    """Return points normalised to unit length, or 0 if negligible, and their lengths."""
    lengths = np.linalg.norm(points, axis=1)
    known = (lengths > 1e-12 * lengths.max(initial=0.0))[:, None]
    return np.divide(points, lengths[:, None], out=np.zeros_like(points), where=known), lengths


@dataclass(frozen=True)
class _Search:
    """Searches for the direction of largest dispersion."""

    residuals: Floats
    fractions: Floats
    p: float
    max_iter: int

    def best_direction(self) -> tuple[Floats, int]:
        """Return the best direction of all starts, and the iterations that it took."""
        best, highest, steps = np.eye(1, self.residuals.shape[1])[0], -np.inf, 0
        for start in self._starts():
            direction, n_iter = self._climb(start, max(self.p, 1.0))
            if self.p < 1:
                direction, n_iter = self._smooth_climb(direction)
            value = float(self.fractions @ np.abs(self.residuals @ direction) ** self.p)
            if value > highest * (1 + 1e-12):
                best, highest, steps = direction, value, n_iter
        return best, steps

    def _starts(self) -> list[Floats]:
        residuals, fractions = self.residuals, self.fractions
        second = (residuals * fractions[:, None]).T @ residuals
        principal = np.linalg.eigh(second)[1][:, ::-1][:, :2]
        lengths = np.linalg.norm(residuals, axis=1)
        usable = np.flatnonzero(lengths > 1e-12 * lengths.max(initial=0.0))
        chosen = usable[:: -(-len(usable) // _MAX_CANDIDATES)] if len(usable) else usable
        directions = residuals[chosen] / lengths[chosen, None]
        values = fractions @ np.abs(residuals @ directions.T) ** self.p
        order = np.argsort(-values, kind="stable")[:_N_STARTS]
        return [*principal.T, *directions[order]]

    def _climb(self, direction: Floats, p: float) -> tuple[Floats, int]:
        for n_iter in range(1, self.max_iter + 1):
            scores = self.residuals @ direction
            pulls = self.fractions * np.sign(scores) * np.abs(scores) ** (p - 1)
            pull = pulls @ self.residuals
            length = float(np.linalg.norm(pull))
            if length == 0:
                return direction, n_iter
            before, direction = direction, pull / length
            if np.linalg.norm(direction - before) <= 1e-12:
                return direction, n_iter
        return direction, self.max_iter

    def _smooth_climb(self, start: Floats) -> tuple[Floats, int]:
        residuals, fractions, p = self.residuals, self.fractions, self.p
        epsilon = _EPSILON * float(fractions @ (residuals @ start) ** 2)
        if epsilon == 0:
            return start, 0

        def value_and_gradient(x: Floats) -> tuple[float, Floats]:
            length = float(np.linalg.norm(x))
            direction = x / length
            scores = residuals @ direction
            smoothed = scores**2 + epsilon
            gradient = (fractions * (p * scores * smoothed ** (p / 2 - 1))) @ residuals
            gradient -= (gradient @ direction) * direction
            return -float(fractions @ smoothed ** (p / 2)), -gradient / length

        options = {"maxiter": self.max_iter, "ftol": 1e-14, "gtol": 1e-10}
        found: Any = scipy.optimize.minimize(
            value_and_gradient, start, jac=True, method="L-BFGS-B", options=options
        )
        return found.x / np.linalg.norm(found.x), int(found.nit)
