"""The E step of mixtures over weighted points on the sphere, block by block."""

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
from ._laws import COVARIANCES, EPS, Distances, Mixture, mean_angles, scatter, tangent_frame_at

_BLOCK = 16384  # points


@dataclass(frozen=True)
class Expected:
    """A mixture and the results of the E step for it.

    Attributes
    ----------
    mixture : Mixture
        The mixture.
    likelihood : float
        The weighted mean of log P(y).
    masses : ndarray of shape (k,)
        Σ P_nl p_n of each component.
    squares : ndarray of shape (k,)
        Σ P_nl p_n d² of each component.
    steps : ndarray of shape (k, q)
        The step of each mean, in its frame.
    total : float
        The sum of the weights.
    shares : ndarray of shape (n, k) or None
        P_nl w_n, if it is kept.
    """

    mixture: Mixture
    likelihood: float
    masses: Floats
    squares: Floats
    steps: Floats
    total: float
    shares: Floats | None = None


# ---------------------------------------------------------------------------- functions of a block


def _block(points: Any, weights: Any) -> tuple[NDArray[Any], Floats]:
    points = np.asarray(points, dtype=np.float64)
    return points, np.ones(len(points)) if weights is None else weights


def _shares(points: Floats, w: Floats, mixture: Mixture) -> tuple[Floats, Floats, Distances]:
    """Return P_nl w_n of shape (k, n), log P(y) of shape (n,), and the distances."""
    distances = Distances.of(points, mixture)
    shares = distances.logs + np.log(mixture.weights)[:, None]
    evidence = logsumexp(shares, axis=0)
    shares -= evidence
    np.exp(shares, out=shares)
    shares *= w
    return shares, evidence, distances


def scatters_of(points: Floats, shares: Floats, means: Floats) -> Floats:
    """Return Σ P t tᵀ in the frame at each mean, shape (k, q, q)."""
    return np.array([scatter(points, *pair) for pair in zip(shares, means, strict=True)])


@dataclass(frozen=True)
class _Sums:
    """Sums over a block: weights, log P(y), masses, squares, pulls, scatters.

    Pulls are weighted sums of the points from which the steps of the means follow, of shape (k, d)
    for Karcher means, (2 k, d) for the likeliest ones. If `shares` is an array, the shares of the
    points are written to it.
    """

    mixture: Mixture
    mean_update: str
    shares: Floats | None = None

    rows_at_once = _BLOCK

    @property
    def needs_scatters(self) -> bool:
        """Whether steps need the scatters, because frames turn as the means move."""
        return self.mean_update != "karcher" and COVARIANCES[self.mixture.kind].oriented

    def __call__(self, points: Any, start: int, weights: Any = None) -> tuple[Any, ...]:
        points, w = _block(points, weights)
        shares, evidence, distances = _shares(points, w, self.mixture)
        if self.shares is not None:
            self.shares[start : start + len(points)] = shares.T
        pulls = shares * distances.stretches
        if self.mean_update != "karcher":
            levels = distances.cosines * distances.stretches  # θ cot θ
            bends = bend_ratios(distances.angles, levels) * distances.squares
            pulls = np.vstack([pulls * levels, pulls * bends])
        scatters: Any = 0.0
        if self.needs_scatters:
            scatters = scatters_of(points, shares, self.mixture.means)
        squares = np.vecdot(shares, distances.squares)
        return w.sum(), w @ evidence, shares.sum(axis=1), squares, pulls @ points, scatters

    def steps(self, pulls: Floats, masses: Floats, scatters: Floats) -> Floats:
        """Return the step of each mean, in its frame, from the sums over all points."""
        k, means = self.mixture.n_components, self.mixture.means
        frames = [tangent_frame_at(mean) for mean in means]
        steps = np.array([pulls[number] @ frames[number] for number in range(k)])
        if self.mean_update != "karcher":
            for number, spectrum in enumerate(self.mixture.spectra()):
                steps[number] += spectrum.matrix @ (pulls[k + number] @ frames[number])
                m, past = means[number, 1:], 1 + means[number, 0]
                if self.needs_scatters and past > ANTIPODAL * EPS:
                    # as the mean moves by δ its frame turns by (m δᵀ - δ mᵀ) / (1 + μ_1)
                    whitened = spectrum.whitening @ (spectrum.whitening.T @ m)
                    turn = spectrum.matrix @ (scatters[number] @ whitened) - scatters[number] @ m
                    steps[number] += turn / past
        return steps / np.maximum(masses, np.finfo(np.float64).tiny)[:, None]


@dataclass(frozen=True)
class _Scatters:
    """Sums of P t tᵀ over a block, at new means of some components."""

    mixture: Mixture
    numbers: Indices
    means: Floats

    rows_at_once = _BLOCK

    def __call__(
        self, points: Any, start: int, weights: Any = None, shares: Any = None
    ) -> tuple[Any, ...]:
        points, w = _block(points, weights)
        known = _shares(points, w, self.mixture)[0] if shares is None else shares.T
        return (scatters_of(points, known[self.numbers], self.means),)


def _evidence(points: Any, start: int, weights: Any = None, *, mixture: Mixture) -> Floats:
    """Return log P(y) of the points of a block, infinite for points of weight 0."""
    points, w = _block(points, weights)
    return np.where(w > 0, _shares(points, w, mixture)[1], np.inf)


def _spread(points: Any, start: int, weights: Any = None) -> tuple[Any, ...]:
    """Return the sums of the weights and of squared tangent coordinates at the pole."""
    points, w = _block(points, weights)
    _, stretches = mean_angles(points[:, 0])
    return w.sum(), w @ (stretches[:, None] * points[:, 1:]) ** 2


# ---------------------------------------------------------------------------- all points


@dataclass(frozen=True)
class Cloud:
    """Weighted points on the sphere; an iteration of EM takes two passes over them.

    Attributes
    ----------
    rows : Rows
        Unit vectors, with the weights as a column.
    """

    rows: Rows

    def variance(self) -> float:
        """Return the mean variance of the tangent coordinates at the pole."""
        count, squares = self.rows.reduce(_spread)
        return float((squares / count).mean())

    def expected(self, mixture: Mixture, mean_update: str) -> Expected:
        """Make the E step and compute the steps of the means."""
        shares = None
        if not self.rows.lazy:
            shares = np.empty((self.rows.shape[0], mixture.n_components), order="F")
        sums = _Sums(mixture, mean_update, shares)
        total, *found = self.rows.reduce(sums)
        likelihood, masses, squares, pulls, scatters = (term / total for term in found)
        steps = sums.steps(pulls, masses, scatters)
        return Expected(mixture, float(likelihood), masses, squares, steps, float(total), shares)

    def scatters(self, expected: Expected, numbers: Indices, means: Floats) -> Floats:
        """Return Σ P t tᵀ of some components in the frames at their new means."""
        rows = self.rows.zip(shares=expected.shares)
        visit = _Scatters(expected.mixture, numbers, means)
        return np.asarray(rows.reduce(visit)[0] / expected.total)

    def least_likely(self, expected: Expected, count: int) -> tuple[Floats, Floats]:
        """Return at most `count` points of least density and positive weight, and their weights."""
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
