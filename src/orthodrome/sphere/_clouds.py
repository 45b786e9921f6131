"""Weighted points on the sphere as EM sees them, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .._core.kinds import is_dask_array
from .._core.unit import ANTIPODAL
from ..rows import Rows
from ..rows.dask_blocks import rows_of
from ._covariances import COVARIANCES
from ._laws import EPS, Mixture, Seen, look, scatter, tangent_frame_at
from .maps import log_at_pole

__all__ = ["Cloud", "Expected", "steps_of"]

# Points that are looked at together.
_BLOCK = 16384


@dataclass(frozen=True)
class Expected:
    """A mixture, and what the E step makes of all points.

    Attributes
    ----------
    mixture : Mixture
        The mixture.
    likelihood : float
        The weighted mean of log P(y).
    masses : ndarray of shape (k,)
        Σ P_nl p_n of each component.
    squares : ndarray of shape (k,)
        Σ P_nl p_n d² of each.
    steps : ndarray of shape (k, q)
        Where each mean should go, in its frame.
    total : float
        The sum of the weights.
    shares : ndarray of shape (n, k) or None
        P_nl w_n, where it is kept.
    """

    mixture: Mixture
    likelihood: float
    masses: NDArray[np.float64]
    squares: NDArray[np.float64]
    steps: NDArray[np.float64]
    total: float
    shares: NDArray[np.float64] | None = None


# ---------------------------------------------------------------------------- what a block gives


@dataclass(frozen=True)
class _Shares:
    """What a mixture makes of some points: P_nl p_n as `shares`, log P(y) as `evidence`."""

    seen: Seen
    shares: NDArray[np.float64]
    evidence: NDArray[np.float64]


def _shares(points: NDArray[np.float64], p: NDArray[np.float64], mixture: Mixture) -> _Shares:
    seen = look(points, mixture)
    shares = seen.logs + np.log(mixture.weights)[:, None]
    evidence = logsumexp(shares, axis=0)
    shares -= evidence
    np.exp(shares, out=shares)
    shares *= p
    return _Shares(seen, shares, evidence)


def _pulls(
    points: NDArray[np.float64], shares: NDArray[np.float64], seen: Seen, mean_update: str
) -> NDArray[np.float64]:
    """Return the sums of points that the steps of the means are made of.

    For Karcher means they have the shape (k, d); for the likeliest ones (2 k, d).
    """
    pulls = shares * seen.stretches
    if mean_update == "karcher":
        return pulls @ points
    levels = seen.cosines * seen.stretches  # θ cot θ
    squared = seen.angles**2
    bends = np.full_like(levels, 1 / 3)  # of (1 - θ cot θ)/θ² at 0
    np.divide(1 - levels, squared, out=bends, where=squared > 1e-6)
    return np.vstack([pulls * levels, pulls * bends * seen.squares]) @ points


def _steps_from(
    sums: NDArray[np.float64],
    masses: NDArray[np.float64],
    scatters: NDArray[np.float64] | None,
    mixture: Mixture,
    mean_update: str,
) -> NDArray[np.float64]:
    """Return the steps that sums of pulls stand for; `scatters` are those at the means."""
    k = mixture.n_components
    masses = np.maximum(masses, np.finfo(np.float64).tiny)
    if mean_update == "karcher":
        return np.array(
            [sums[i] @ tangent_frame_at(mixture.means[i]) / masses[i] for i in range(k)]
        )
    steps = np.empty((k, mixture.n_modes))
    for number, spectrum in enumerate(mixture.spectra()):
        mean = mixture.means[number]
        frame = tangent_frame_at(mean)
        straight, bent = sums[number] @ frame, sums[k + number] @ frame
        steps[number] = straight + spectrum.matrix @ bent
        if scatters is not None and 1 + mean[0] > ANTIPODAL * EPS:
            # as the mean moves by δ its frame turns by (m δᵀ - δ mᵀ) / (1 + μ_1), m = μ_2, μ_3, …
            m = mean[1:]
            whitened = spectrum.whitening @ (spectrum.whitening.T @ m)
            turn = spectrum.matrix @ (scatters[number] @ whitened) - scatters[number] @ m
            steps[number] += turn / (1 + mean[0])
    return steps / masses[:, None]


def _turning(mixture: Mixture, mean_update: str) -> bool:
    """Tell whether steps need the scatters at the means, since the frames turn under them."""
    return mean_update != "karcher" and COVARIANCES[mixture.kind].oriented


def steps_of(
    points: NDArray[np.float64],
    shares: NDArray[np.float64],
    seen: Seen,
    mixture: Mixture,
    mean_update: str,
) -> NDArray[np.float64]:
    """Return where each mean should go, in its frame, shape (k, q)."""
    scatters = None
    if _turning(mixture, mean_update):
        scatters = np.array(
            [scatter(points, *pair) for pair in zip(shares, mixture.means, strict=True)]
        )
    sums = _pulls(points, shares, seen, mean_update)
    return _steps_from(sums, shares.sum(axis=1), scatters, mixture, mean_update)


# ---------------------------------------------------------------------------- all points


@dataclass(frozen=True)
class _Sums:
    """Sums over a block: weights, log P(y), masses, squares, pulls, scatters.

    Where `shares` is an array, the shares of the points are written there.
    """

    mixture: Mixture
    mean_update: str
    shares: NDArray[np.float64] | None = None

    rows_at_once = _BLOCK

    def __call__(self, points: Any, start: int, weights: Any = None) -> tuple[Any, ...]:
        points, w = _block(points, weights)
        found = _shares(points, w, self.mixture)
        shares, seen = found.shares, found.seen
        if self.shares is not None:
            self.shares[start : start + len(points)] = shares.T
        pulls = _pulls(points, shares, seen, self.mean_update)
        scatters: Any = 0.0
        if _turning(self.mixture, self.mean_update):
            pairs = zip(shares, self.mixture.means, strict=True)
            scatters = np.array([scatter(points, *pair) for pair in pairs])
        squares = np.vecdot(shares, seen.squares)
        return w.sum(), w @ found.evidence, shares.sum(axis=1), squares, pulls, scatters


@dataclass(frozen=True)
class _Scatters:
    """Sums of P t tᵀ over a block, at new means of some components."""

    mixture: Mixture
    numbers: NDArray[np.intp]
    means: NDArray[np.float64]

    rows_at_once = _BLOCK

    def __call__(
        self, points: Any, start: int, weights: Any = None, shares: Any = None
    ) -> tuple[Any, ...]:
        points, w = _block(points, weights)
        known = _shares(points, w, self.mixture).shares if shares is None else shares.T
        pairs = zip(known[self.numbers], self.means, strict=True)
        return (np.array([scatter(points, *pair) for pair in pairs]),)


@dataclass(frozen=True)
class _Evidence:
    """log P(y) of the points of a block, infinite where they count for nothing."""

    mixture: Mixture

    def __call__(self, points: Any, start: int, weights: Any = None) -> NDArray[np.float64]:
        points, w = _block(points, weights)
        return np.where(w > 0, _shares(points, w, self.mixture).evidence, np.inf)


def _spread(points: Any, start: int, weights: Any = None) -> tuple[Any, ...]:
    """Return sums of the weights, and of squared coordinates seen from the pole."""
    points, w = _block(points, weights)
    return w.sum(), w @ log_at_pole(points) ** 2


def _block(points: Any, weights: Any) -> tuple[NDArray[Any], NDArray[np.float64]]:
    points = np.asarray(points, dtype=np.float64)
    return points, np.ones(len(points)) if weights is None else weights


class Cloud:
    """Weighted points on the sphere as EM sees them: two passes for each of its iterations.

    Parameters
    ----------
    rows : Rows
        The points, unit vectors; weights are a column of theirs.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def variance(self) -> float:
        """Return the mean variance along the directions at the pole."""
        count, squares = self.rows.reduce(_spread)
        return float((squares / count).mean())

    def expected(self, mixture: Mixture, mean_update: str) -> Expected:
        """Make the E step, and what the M step needs for means that move by `mean_update`."""
        shares = None
        if not self.rows.lazy:
            shares = np.empty((self.rows.shape[0], mixture.n_components), order="F")
        total, *sums = self.rows.reduce(_Sums(mixture, mean_update, shares))
        likelihood, masses, squares, pulls, scatters = (term / total for term in sums)
        turning = _turning(mixture, mean_update)
        steps = _steps_from(pulls, masses, scatters if turning else None, mixture, mean_update)
        return Expected(mixture, float(likelihood), masses, squares, steps, float(total), shares)

    def scatters(
        self, expected: Expected, numbers: NDArray[np.intp], means: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return Σ P t tᵀ of these components in the frames at new means, one for each of them."""
        rows = self.rows.zip(shares=expected.shares)
        visit = _Scatters(expected.mixture, numbers, means)
        return np.asarray(rows.reduce(visit)[0] / expected.total)

    def least_likely(
        self, expected: Expected, count: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return so many points of the smallest density, or all there are, and their weights.

        Points of weight 0 are not there.
        """
        evidence = self.rows.map(_Evidence(expected.mixture))
        if self.rows.lazy:  # so many of each block, and of those the smallest
            chosen = np.asarray(evidence.argtopk(-min(count, evidence.shape[0])))
        else:
            chosen = np.argsort(evidence, kind="stable")[:count]
        p, weights = np.ones(len(chosen)), self.rows.columns.get("weights")
        if weights is not None:
            p = rows_of(weights, chosen) if is_dask_array(weights) else weights[chosen]
            chosen, p = chosen[p > 0], p[p > 0]
        points = np.asarray(self.rows.take(chosen), dtype=np.float64)
        return points, p / expected.total
