"""The E step of EM for mixtures on the sphere, computed block by block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .._core.kinds import is_dask_array
from .._core.types import Floats, Indices
from .._core.unit import ANTIPODAL
from ..rows import Rows
from ..rows.dask import rows_of
from ._descent import bend_ratios
from ._laws import COVARIANCES, EPS, Distances, Mixture, angles_from_mean, scatter, tangent_frame_at

_BLOCK = 16384  # number of points in a block


@dataclass(frozen=True)
class Expected:
    """Results of the E step for a mixture.

    Attributes
    ----------
    mixture : Mixture
        The mixture.
    likelihood : float
        The weighted mean of log P(y).
    masses : ndarray of shape (k,)
        Σ P_nl p_n of each component.
    squared_distances : ndarray of shape (k,)
        Σ P_nl p_n d² of each component, with Mahalanobis distances d.
    steps : ndarray of shape (k, q)
        The step of each mean, in the frame at that mean.
    total : float
        The sum of the weights.
    memberships : ndarray of shape (n, k) or None
        P_nl w_n; None if the rows are lazy.
    """

    mixture: Mixture
    likelihood: float
    masses: Floats
    squared_distances: Floats
    steps: Floats
    total: float
    memberships: Floats | None = None


# ---------------------------------------------------------------------------- functions of a block


def _block(points: Any, weights: Any) -> tuple[NDArray[Any], Floats]:
    points = np.asarray(points, dtype=np.float64)
    return points, np.ones(len(points)) if weights is None else weights


def _memberships(points: Floats, w: Floats, mixture: Mixture) -> tuple[Floats, Floats, Distances]:
    """Return P_nl w_n of shape (k, n), log P(y) of shape (n,), and the distances from the means."""
    distances = Distances.of(points, mixture)
    memberships = distances.log_densities + np.log(mixture.weights)[:, None]
    evidence = logsumexp(memberships, axis=0)
    memberships -= evidence
    np.exp(memberships, out=memberships)
    memberships *= w
    return memberships, evidence, distances


def scatters_of(points: Floats, memberships: Floats, means: Floats) -> Floats:
    """Return Σ P t tᵀ in the frame at each mean, shape (k, q, q)."""
    return np.array([scatter(points, *pair) for pair in zip(memberships, means, strict=True)])


@dataclass(frozen=True)
class _Sums:
    """Sums over a block: weights, log P(y), masses, squared distances, pulls and scatters.

    Pulls are weighted sums of the points, from which the steps of the means are computed. They have
    shape (k, d) for Karcher means, and (2 k, d) for maximum-likelihood means. If `memberships` is
    an array, the memberships of the points are written to it.
    """

    mixture: Mixture
    mean_update: str
    memberships: Floats | None = None

    rows_at_once = _BLOCK

    @property
    def needs_scatters(self) -> bool:
        """Whether steps depend on the scatters, because frames rotate as the means move."""
        return self.mean_update != "karcher" and COVARIANCES[self.mixture.kind].oriented

    def __call__(self, points: Any, start: int, weights: Any = None) -> tuple[Any, ...]:
        points, w = _block(points, weights)
        memberships, evidence, distances = _memberships(points, w, self.mixture)
        if self.memberships is not None:
            self.memberships[start : start + len(points)] = memberships.T
        pulls = memberships * distances.angle_ratios
        if self.mean_update != "karcher":
            levels = distances.cosines * distances.angle_ratios  # θ cot θ
            bends = bend_ratios(distances.angles, levels) * distances.squared_mahalanobis
            pulls = np.vstack([pulls * levels, pulls * bends])
        scatters: Any = 0.0
        if self.needs_scatters:
            scatters = scatters_of(points, memberships, self.mixture.means)
        squared = np.vecdot(memberships, distances.squared_mahalanobis)
        return w.sum(), w @ evidence, memberships.sum(axis=1), squared, pulls @ points, scatters

    def steps(self, pulls: Floats, masses: Floats, scatters: Floats) -> Floats:
        """Return the step of each mean, in the frame at that mean, from sums over all points."""
        k, means = self.mixture.n_components, self.mixture.means
        frames = [tangent_frame_at(mean) for mean in means]
        steps = np.array([pulls[number] @ frames[number] for number in range(k)])
        if self.mean_update != "karcher":
            for number, spectrum in enumerate(self.mixture.spectra()):
                steps[number] += spectrum.matrix @ (pulls[k + number] @ frames[number])
                m, past = means[number, 1:], 1 + means[number, 0]
                if self.needs_scatters and past > ANTIPODAL * EPS:
                    # if the mean moves by δ, its frame rotates by (m δᵀ - δ mᵀ) / (1 + μ_1)
                    whitened = spectrum.whitening @ (spectrum.whitening.T @ m)
                    turn = spectrum.matrix @ (scatters[number] @ whitened) - scatters[number] @ m
                    steps[number] += turn / past
        return steps / np.maximum(masses, np.finfo(np.float64).tiny)[:, None]


@dataclass(frozen=True)
class _Scatters:
    """Sums of P t tᵀ over a block, at the new means of the components `numbers`."""

    mixture: Mixture
    numbers: Indices
    means: Floats

    rows_at_once = _BLOCK

    def __call__(
        self, points: Any, start: int, weights: Any = None, memberships: Any = None
    ) -> tuple[Any, ...]:
        points, w = _block(points, weights)
        known = _memberships(points, w, self.mixture)[0] if memberships is None else memberships.T
        return (scatters_of(points, known[self.numbers], self.means),)


def _evidence(points: Any, start: int, weights: Any = None, *, mixture: Mixture) -> Floats:
    """Return log P(y) for the points of a block; infinity for points of weight 0."""
    points, w = _block(points, weights)
    return np.where(w > 0, _memberships(points, w, mixture)[1], np.inf)


def _spread(points: Any, start: int, weights: Any = None) -> tuple[Any, ...]:
    """Return the sums of the weights and of squared tangent coordinates at the pole."""
    points, w = _block(points, weights)
    _, angle_ratios = angles_from_mean(points[:, 0])
    return w.sum(), w @ (angle_ratios[:, None] * points[:, 1:]) ** 2


# ---------------------------------------------------------------------------- all points


@dataclass(frozen=True)
class Cloud:
    """Weighted points on the sphere. Each iteration of EM makes two passes over them.

    Attributes
    ----------
    rows : Rows
        Unit vectors, with the weights as a column.
    """

    rows: Rows

    def variance(self) -> float:
        """Return the mean variance of the tangent coordinates at the pole."""
        total, squared = self.rows.reduce(_spread)
        return float((squared / total).mean())

    def expected(self, mixture: Mixture, mean_update: str) -> Expected:
        """Return the results of an E step, with the steps of the means."""
        memberships = None
        if not self.rows.lazy:
            memberships = np.empty((self.rows.shape[0], mixture.n_components), order="F")
        sums = _Sums(mixture, mean_update, memberships)
        total, *found = self.rows.reduce(sums)
        likelihood, masses, squared, pulls, scatters = (term / total for term in found)
        steps = sums.steps(pulls, masses, scatters)
        return Expected(
            mixture, float(likelihood), masses, squared, steps, float(total), memberships
        )

    def scatters(self, expected: Expected, numbers: Indices, means: Floats) -> Floats:
        """Return Σ P t tᵀ of some components in the frames at their new means."""
        rows = self.rows.zip(memberships=expected.memberships)
        visit = _Scatters(expected.mixture, numbers, means)
        return np.asarray(rows.reduce(visit)[0] / expected.total)

    def least_likely(self, expected: Expected, count: int) -> tuple[Floats, Floats]:
        """Return `count` points of positive weight with the lowest density, and their weights."""
        evidence = self.rows.map(partial(_evidence, mixture=expected.mixture))
        if self.rows.lazy:
            chosen = np.asarray(evidence.argtopk(-min(count, evidence.shape[0])))
        else:
            chosen = np.argsort(evidence, kind="stable")[:count]
        p, weights = np.ones(len(chosen)), self.rows.columns.get("weights")
        if weights is not None:
            p = rows_of(weights, chosen) if is_dask_array(weights) else weights[chosen]
            chosen, p = chosen[p > 0], p[p > 0]
        return np.asarray(self.rows.take(chosen), dtype=np.float64), p / expected.total
