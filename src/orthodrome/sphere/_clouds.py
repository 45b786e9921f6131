"""Weighted points on the sphere as EM sees them: in memory, or block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .._core.unit import ANTIPODAL
from ..gram import RowSource
from ..gram.dask_blocks import is_dask_array, rows_of
from ._covariances import COVARIANCES
from ._laws import EPS, Mixture, Seen, look, scatter, tangent_frame_at

__all__ = ["BlockCloud", "Cloud", "Expected", "LocalCloud", "steps_of"]


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
    """

    mixture: Mixture
    likelihood: float
    masses: NDArray[np.float64]
    squares: NDArray[np.float64]


class Cloud(Protocol):
    """What EM needs of points with weights that add up to 1."""

    def expected(self, mixture: Mixture) -> Any:
        """Make the E step."""

    def steps(self, expected: Any, mean_update: str) -> NDArray[np.float64]:
        """Return where each mean should go, in its frame, shape (k, q)."""

    def scatters(
        self, expected: Any, numbers: NDArray[np.intp], means: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return Σ P t tᵀ of these components in the frames at new means, one for each of them."""

    def least_likely(
        self, expected: Any, count: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return so many points of the smallest density, or all there are, and their weights.

        Points of weight 0 are not there.
        """


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


# ---------------------------------------------------------------------------- in memory


@dataclass(frozen=True)
class _LocalExpected(Expected):
    found: _Shares


@dataclass(frozen=True)
class LocalCloud:
    """Points in an array, with weights p."""

    points: NDArray[np.float64]
    p: NDArray[np.float64]

    def expected(self, mixture: Mixture) -> _LocalExpected:
        """Make the E step."""
        found = _shares(self.points, self.p, mixture)
        squares = np.vecdot(found.shares, found.seen.squares)
        likelihood = float(self.p @ found.evidence)
        return _LocalExpected(mixture, likelihood, found.shares.sum(axis=1), squares, found)

    def steps(self, expected: _LocalExpected, mean_update: str) -> NDArray[np.float64]:
        """Return where each mean should go."""
        found = expected.found
        return steps_of(self.points, found.shares, found.seen, expected.mixture, mean_update)

    def scatters(
        self, expected: _LocalExpected, numbers: NDArray[np.intp], means: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return Σ P t tᵀ at new means."""
        pairs = zip(expected.found.shares[numbers], means, strict=True)
        return np.array([scatter(self.points, *pair) for pair in pairs])

    def least_likely(
        self, expected: _LocalExpected, count: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the points of the smallest density, and their weights."""
        evidence = _of_present(expected.found.evidence, self.p)
        chosen = np.argsort(evidence, kind="stable")[:count]
        chosen = chosen[self.p[chosen] > 0]
        return self.points[chosen], self.p[chosen]


# ---------------------------------------------------------------------------- block by block


@dataclass(frozen=True)
class _Sums:
    """Sums over a block: weights, log P(y), masses, squares, pulls of both kinds, scatters."""

    mixture: Mixture

    def __call__(self, points: Any, start: int, *along: Any) -> tuple[Any, ...]:
        points, w = _block(points, along)
        found = _shares(points, w, self.mixture)
        shares, seen = found.shares, found.seen
        pulls = [_pulls(points, shares, seen, kind) for kind in ("karcher", "likelihood")]
        scatters: Any = 0.0
        if _turning(self.mixture, "likelihood"):
            pairs = zip(shares, self.mixture.means, strict=True)
            scatters = np.array([scatter(points, *pair) for pair in pairs])
        squares = np.vecdot(shares, seen.squares)
        return w.sum(), w @ found.evidence, shares.sum(axis=1), squares, *pulls, scatters


@dataclass(frozen=True)
class _Scatters:
    """Sums of P t tᵀ over a block, at new means of some components."""

    mixture: Mixture
    numbers: NDArray[np.intp]
    means: NDArray[np.float64]

    def __call__(self, points: Any, start: int, *along: Any) -> tuple[Any, ...]:
        points, w = _block(points, along)
        shares = _shares(points, w, self.mixture).shares[self.numbers]
        pairs = zip(shares, self.means, strict=True)
        return (np.array([scatter(points, *pair) for pair in pairs]),)


@dataclass(frozen=True)
class _Evidence:
    """log P(y) of the points of a block, infinite where they count for nothing."""

    mixture: Mixture

    def __call__(self, points: Any, start: int, *along: Any) -> NDArray[np.float64]:
        points, w = _block(points, along)
        return _of_present(_shares(points, w, self.mixture).evidence, w)


def _of_present(evidence: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log P(y) with points of weight 0 behind all others."""
    return np.where(w > 0, evidence, np.inf)


def _block(points: Any, along: tuple[Any, ...]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    points = np.asarray(points, dtype=np.float64)
    return points, along[0] if along else np.ones(len(points))


@dataclass(frozen=True)
class _BlockExpected(Expected):
    pulls: dict[str, NDArray[np.float64]]
    scatters: NDArray[np.float64] | None


class BlockCloud:
    """Points that come in blocks: two passes over them for each iteration of EM.

    Parameters
    ----------
    source : RowSource
        The points, unit vectors.
    weights : array, optional
        Weights that go along with them.
    """

    def __init__(self, source: RowSource, weights: Any = None) -> None:
        self.source = source
        self._along = () if weights is None else (weights,)
        self._total = 1.0

    def expected(self, mixture: Mixture) -> _BlockExpected:
        """Make the E step."""
        sums = self.source.sums(_Sums(mixture), along=self._along)
        self._total = float(sums[0])
        likelihood, masses, squares, karcher, likely, scatters = (s / sums[0] for s in sums[1:])
        return _BlockExpected(
            mixture,
            float(likelihood),
            masses,
            squares,
            {"karcher": karcher, "likelihood": likely},
            scatters if _turning(mixture, "likelihood") else None,
        )

    def steps(self, expected: _BlockExpected, mean_update: str) -> NDArray[np.float64]:
        """Return where each mean should go."""
        sums, scatters = expected.pulls[mean_update], expected.scatters
        return _steps_from(sums, expected.masses, scatters, expected.mixture, mean_update)

    def scatters(
        self, expected: _BlockExpected, numbers: NDArray[np.intp], means: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return Σ P t tᵀ at new means: a pass."""
        visit = _Scatters(expected.mixture, numbers, means)
        return self.source.sums(visit, along=self._along)[0] / self._total

    def least_likely(
        self, expected: _BlockExpected, count: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the points of the smallest density, and their weights: a pass."""
        evidence = self.source.per_row(_Evidence(expected.mixture), along=self._along)
        if self.source.lazy:  # so many of each block, and of those the smallest
            chosen = np.asarray(evidence.argtopk(-min(count, evidence.shape[0])))
        else:
            chosen = np.argsort(evidence, kind="stable")[:count]
        p = np.ones(len(chosen))
        if self._along:
            (weights,) = self._along
            p = rows_of(weights, chosen) if is_dask_array(weights) else weights[chosen]
            chosen, p = chosen[p > 0], p[p > 0]
        return np.asarray(self.source.take(chosen), dtype=np.float64), p / self._total
