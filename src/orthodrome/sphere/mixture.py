r"""Mixtures of normal laws on the sphere, each in the tangent space at its own mean, and their EM.

The density of a component is that of its tangent vectors,

.. math:: P(y \mid \mu, C) = \frac{\exp(-\tfrac12\, d_g^2(\mu, y; C))}{(2\pi)^{q/2} |C|^{1/2}},
    \qquad d_g^2(\mu, y; C) = t^\top C^{-1} t, \quad t = \operatorname{Log}_\mu y

(kPGA §5.2). It leaves out the constant that would make it integrate to 1 over the sphere, as the
paper does: where C is small beside π² it is 1 to within the tails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .._core.status import Status
from .._core.unit import ANTIPODAL, angles_from_cosines
from ._covariances import COVARIANCES, Spectrum, spectra
from .karcher import find_mean
from .maps import exp_at_pole

__all__ = [
    "COVARIANCES",
    "Mixture",
    "MixtureFit",
    "expectation_maximization",
    "mean_gradient",
    "tangent_frame_at",
]

_EPS = float(np.finfo(np.float64).eps)
_LOG_2PI = float(np.log(2 * np.pi))
# What rounding may take from a mean log-likelihood.
_FALL = 1e-10
# A step that raises the cost is halved so often; then the mean stays where it is.
_MOST_HALVINGS = 8


def tangent_frame_at(mean: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return an orthonormal frame of the tangent space at a point, shape (d, d - 1).

    It is the frame (e_2, …, e_d) at the pole e_1, transported along the great circle to the point:

    .. math:: F_j = e_j - \frac{\mu_j}{1 + \mu_1} (e_1 + \mu) .
    """
    d = len(mean)
    frame = np.eye(d)[:, 1:].copy()
    if 1 + mean[0] <= ANTIPODAL * _EPS:  # every great circle leads there
        return frame
    toward = mean.copy()
    toward[0] += 1
    return frame - np.outer(toward, mean[1:] / (1 + mean[0]))


@dataclass(frozen=True)
class Mixture:
    """A mixture of normal laws on the unit sphere of R^(q + 1).

    Attributes
    ----------
    weights : ndarray of shape (k,)
        Probabilities of the components.
    means : ndarray of shape (k, q + 1)
        Their means, unit vectors.
    covariances : ndarray
        Their covariances, in the frames of :func:`tangent_frame_at`: of shape (k, q, q) for
        "full", (k, q) for "diag", (q, q) for "tied", (k,) for "spherical".
    kind : str
        Which of the four.
    """

    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    covariances: NDArray[np.float64]
    kind: str

    @property
    def n_components(self) -> int:
        """Return k."""
        return len(self.weights)

    @property
    def n_modes(self) -> int:
        """Return q."""
        return self.means.shape[1] - 1

    @property
    def n_parameters(self) -> int:
        """Return how many free numbers there are."""
        k, q = self.n_components, self.n_modes
        return COVARIANCES[self.kind].n_parameters(k, q) + k * q + k - 1

    def spectra(self) -> list[Spectrum]:
        """Return the covariance of each component by its eigenvalues."""
        return spectra(self.kind, self.covariances, self.n_components, self.n_modes)

    def log_densities(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Return log P(y | μ_l, C_l) of unit vectors, shape (n, k), without the weights."""
        return np.ascontiguousarray(_look(points, self).logs.T)

    def reordered(self, order: NDArray[np.intp]) -> Mixture:
        """Return the mixture with its components in another order."""
        shared = COVARIANCES[self.kind].shared
        return replace(
            self,
            weights=self.weights[order],
            means=self.means[order],
            covariances=self.covariances if shared else self.covariances[order],
        )

    def sample(
        self, n: int, random: np.random.RandomState
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Draw n unit vectors and the component of each.

        Tangent vectors are drawn, and followed along great circles; those longer than π go past
        the antipode of the mean.
        """
        components = random.choice(self.n_components, size=n, p=self.weights)
        normal = random.standard_normal((n, self.n_modes))
        points = np.empty((n, self.n_modes + 1))
        for number, spectrum in enumerate(self.spectra()):
            rows = components == number
            tangents = (normal[rows] * np.sqrt(spectrum.values)) @ spectrum.vectors.T
            mean = self.means[number]
            basis = np.column_stack([mean, tangent_frame_at(mean)])
            points[rows] = exp_at_pole(tangents) @ basis.T if len(tangents) else 0.0
        return points / np.linalg.norm(points, axis=1, keepdims=True), components


@dataclass(frozen=True)
class MixtureFit:
    """How EM ended.

    Attributes
    ----------
    mixture : Mixture
        The likeliest mixture on the way.
    log_likelihood : float
        Its weighted mean of log P(y).
    n_iter : int
        Iterations, each of an M step and an E step.
    status : Status
        How it ended.
    history : tuple of dict
        ``log_likelihood`` at the start and after each iteration that was not taken back, and
        ``reseeded``, the components that had lost all their points and began anew in it.
    """

    mixture: Mixture
    log_likelihood: float
    n_iter: int
    status: Status
    history: tuple[dict[str, Any], ...] = field(default=(), repr=False)


def expectation_maximization(
    points: NDArray[np.float64],
    memberships: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    kind: str = "full",
    mean_update: str = "karcher",
    floor: float,
    tol: float,
    max_iter: int,
    callback: Callable[[dict[str, Any]], None] | None = None,
) -> MixtureFit:
    r"""Fit a mixture on the sphere from memberships to begin with.

    The M step moves each mean along

    .. math:: \delta = \frac1{P} \sum_n P_n \Bigl( a_n t_n
        + \frac{(1 - a_n)\, d_n^2}{\theta_n^2}\, C\, t_n \Bigr), \qquad
        a = \theta \cot\theta, \quad d_n^2 = t_n^\top C^{-1} t_n,

    which is -C/2P times the gradient of :math:`\sum_n P_n d_g^2(\mu, y_n; C)` where C is
    transported along with the mean (paper, step 6), and the whole way to the new mean where the
    sphere is flat. Then comes the likeliest covariance there. If both together raise the expected
    cost the step is halved, so that the likelihood never falls by more than rounding.

    With ``mean_update="karcher"`` the step is the weighted mean of the t_n instead, which leads to
    the Karcher means of the memberships, at which Σ P_n t_n = 0: those of kPGA. It is cheaper, and
    needs fewer iterations. Where components are wide the likeliest means may be elsewhere: a step
    that lowers the mean log-likelihood by more than `tol` is taken back, and from there on the
    likeliest means are sought.

    So the mean log-likelihood never falls by more than `tol` (save where a component without points
    begins anew), and the likeliest mixture on the way is returned.

    Parameters
    ----------
    points : ndarray of shape (n, q + 1)
        Unit vectors.
    memberships : ndarray of shape (k, n)
        The probability of each component, for each point, to begin with.
    weights : ndarray of shape (n,)
        Weights of the points; a weight of 2 is the same as the point written twice.
    kind : {"full", "diag", "tied", "spherical"}
        What covariances may be.
    mean_update : {"karcher", "likelihood"}
        How means move.
    floor : float
        The least eigenvalue of a covariance.
    tol : float
        Stop when the mean log-likelihood gains less.
    max_iter : int
        The most iterations.
    callback : callable, optional
        Called with each entry of the history.

    Returns
    -------
    MixtureFit
        The likeliest mixture, and how it was found.
    """
    p = weights / weights.sum()
    mixture = _first_mixture(points, memberships * p, kind, floor, of_a_point=1 / weights.sum())
    here = _expectation(points, p, mixture)
    best, status, n_iter = here, Status.MAX_ITER, 0
    history: list[dict[str, Any]] = []

    def record(step: _Expectation, reseeded: tuple[int, ...]) -> None:
        history.append({"log_likelihood": step.likelihood, "reseeded": reseeded})
        if callback is not None:
            callback(history[-1])

    record(here, ())
    while n_iter < max_iter and status is Status.MAX_ITER:
        n_iter += 1
        moved = _maximized(points, here, mean_update, floor)
        moved, reseeded = _reseeded(points, p, here, moved)
        there = _expectation(points, p, moved)
        gain = there.likelihood - here.likelihood
        if mean_update == "karcher" and not reseeded and gain < -max(tol, _FALL):
            mean_update = "likelihood"  # a Karcher mean is too far from the likeliest one here
            continue
        if gain < tol and not reseeded:
            status = Status.CONVERGED
        here = there
        record(here, reseeded)
        if here.likelihood > best.likelihood:
            best = here
    return MixtureFit(best.mixture, best.likelihood, n_iter, status, tuple(history))


def mean_gradient(
    points: NDArray[np.float64],
    shares: NDArray[np.float64],
    mixture: Mixture,
) -> NDArray[np.float64]:
    r"""Return the gradients of :math:`\sum_n P_{nl}\, d_g^2(\mu_l, y_n; C_l)`, shape (k, q).

    They are in the frames at the means. A full covariance is transported along with its mean; one
    that is tied to the directions of its frame ("diag", "tied") stays the same in the frame of
    :func:`tangent_frame_at`, which turns.

    Parameters
    ----------
    points : ndarray of shape (n, q + 1)
        Unit vectors.
    shares : ndarray of shape (k, n)
        P.
    mixture : Mixture
        Means and covariances.
    """
    steps = _steps(points, shares, _look(points, mixture), mixture, "likelihood")
    factors = [spectrum.whitening for spectrum in mixture.spectra()]
    masses = shares.sum(axis=1)
    return np.array(
        [-2 * m * (w @ (w.T @ step)) for m, w, step in zip(masses, factors, steps, strict=True)]
    )


# ---------------------------------------------------------------------------- the E step


@dataclass(frozen=True)
class _Seen:
    """All points from all means, arrays of shape (k, n).

    `squares` are squared Mahalanobis distances, `stretches` are θ/sin θ (0 at the antipode).
    """

    cosines: NDArray[np.float64]
    angles: NDArray[np.float64]
    stretches: NDArray[np.float64]
    squares: NDArray[np.float64]
    logs: NDArray[np.float64]


def _look(points: NDArray[Any], mixture: Mixture) -> _Seen:
    k, q = mixture.n_components, mixture.n_modes
    cosines, squares = np.empty((k, len(points))), np.empty((k, len(points)))
    spectra_ = mixture.spectra()
    for number, spectrum in enumerate(spectra_):
        mean = mixture.means[number]
        basis = np.column_stack([mean, tangent_frame_at(mean) @ spectrum.whitening])
        products = points @ basis
        cosines[number] = products[:, 0]
        np.einsum("ij,ij->i", products[:, 1:], products[:, 1:], out=squares[number])
    angles, stretches = _angles(cosines)
    squares *= stretches
    squares *= stretches
    for number, spectrum in enumerate(spectra_):
        # in which direction an antipode lies nobody knows; it is as far as can be
        opposite = stretches[number] == 0
        squares[number, opposite] = np.pi**2 / spectrum.values[0]
    constants = np.array([q * _LOG_2PI + spectrum.log_determinant for spectrum in spectra_])
    return _Seen(cosines, angles, stretches, squares, -0.5 * (squares + constants[:, None]))


@dataclass(frozen=True)
class _Expectation:
    """A mixture, and what it makes of the points: P_nl w_n as `shares`, log P(y) as `evidence`."""

    mixture: Mixture
    seen: _Seen
    shares: NDArray[np.float64]
    evidence: NDArray[np.float64]
    likelihood: float


def _expectation(
    points: NDArray[np.float64], p: NDArray[np.float64], mixture: Mixture
) -> _Expectation:
    seen = _look(points, mixture)
    shares = seen.logs + np.log(mixture.weights)[:, None]
    evidence = logsumexp(shares, axis=0)
    shares -= evidence
    np.exp(shares, out=shares)
    shares *= p
    return _Expectation(mixture, seen, shares, evidence, float(p @ evidence))


def _angles(cosines: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    angles, stretches = angles_from_cosines(cosines)
    stretches[cosines <= ANTIPODAL * _EPS - 1] = 0.0
    return angles, stretches


# ---------------------------------------------------------------------------- the M step


def _maximized(
    points: NDArray[np.float64], expected: _Expectation, mean_update: str, floor: float
) -> Mixture:
    """Return the mixture after an M step; components without mass stay as they are."""
    mixture, seen, shares = expected.mixture, expected.seen, expected.shares
    kind = COVARIANCES[mixture.kind]
    masses = shares.sum(axis=1)
    alive = masses > 10 * _EPS
    usable = np.where(alive, masses, 1.0)
    steps = np.where(alive[:, None], _steps(points, shares, seen, mixture, mean_update), 0.0)
    before = _costs(
        masses, [s.log_determinant for s in mixture.spectra()], np.vecdot(shares, seen.squares)
    )
    fraction = np.ones(len(masses))
    means, scatters = mixture.means.copy(), np.empty((len(masses), *2 * (mixture.n_modes,)))
    worse = np.ones(len(masses), dtype=bool)
    for halvings in range(_MOST_HALVINGS + 1):
        for number in np.flatnonzero(worse):
            means[number] = _moved(mixture.means[number], fraction[number] * steps[number])
            scatters[number] = _scatter(points, shares[number], means[number])
        covariances = kind.estimate(scatters, usable, floor)
        if not kind.shared:
            covariances[~alive] = mixture.covariances[~alive]
        new = replace(mixture, weights=masses / masses.sum(), means=means, covariances=covariances)
        if mean_update == "karcher":
            break
        after = _costs(masses, *_fit_of(new, scatters))
        rise = after - before
        if kind.shared:
            rise = np.full_like(rise, rise.sum())
        worse = rise > 1e-12 * (1 + np.abs(before))
        if not worse.any():
            break
        fraction[worse] = fraction[worse] / 2 if halvings < _MOST_HALVINGS - 1 else 0.0
    return new


def _steps(
    points: NDArray[np.float64],
    shares: NDArray[np.float64],
    seen: _Seen,
    mixture: Mixture,
    mean_update: str,
) -> NDArray[np.float64]:
    """Return where each mean should go, in its frame, shape (k, q)."""
    k = mixture.n_components
    masses = np.maximum(shares.sum(axis=1), np.finfo(np.float64).tiny)
    pulls = shares * seen.stretches
    if mean_update == "karcher":
        sums = pulls @ points
        return np.array(
            [sums[i] @ tangent_frame_at(mixture.means[i]) / masses[i] for i in range(k)]
        )
    levels = seen.cosines * seen.stretches  # θ cot θ
    squared = seen.angles**2
    bends = np.full_like(levels, 1 / 3)  # of (1 - θ cot θ)/θ² at 0
    np.divide(1 - levels, squared, out=bends, where=squared > 1e-6)
    sums = np.vstack([pulls * levels, pulls * bends * seen.squares]) @ points
    steps = np.empty((k, mixture.n_modes))
    for number, spectrum in enumerate(mixture.spectra()):
        mean = mixture.means[number]
        frame = tangent_frame_at(mean)
        straight, bent = sums[number] @ frame, sums[k + number] @ frame
        steps[number] = straight + spectrum.matrix @ bent
        if COVARIANCES[mixture.kind].oriented and 1 + mean[0] > ANTIPODAL * _EPS:
            # as the mean moves by δ its frame turns by (m δᵀ - δ mᵀ) / (1 + μ_1), m = μ_2, μ_3, …
            scatter, m = _scatter(points, shares[number], mean), mean[1:]
            whitened = spectrum.whitening @ (spectrum.whitening.T @ m)
            turn = spectrum.matrix @ (scatter @ whitened) - scatter @ m
            steps[number] += turn / (1 + mean[0])
    return steps / masses[:, None]


def _moved(mean: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray[np.float64]:
    """Go along a great circle, a quarter of it at the most."""
    length = float(np.linalg.norm(step))
    if length == 0:
        return mean
    direction = tangent_frame_at(mean) @ (step / length)
    length = min(length, np.pi / 2)
    moved = np.cos(length) * mean + np.sin(length) * direction
    return moved / np.linalg.norm(moved)


def _scatter(
    points: NDArray[np.float64], shares: NDArray[np.float64], mean: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Σ P t tᵀ in the frame at the mean."""
    _, stretches = _angles(points @ mean)
    scaled = points * (stretches * stretches * shares)[:, None]
    frame = tangent_frame_at(mean)
    return frame.T @ (scaled.T @ points) @ frame


def _fit_of(
    mixture: Mixture, scatters: NDArray[np.float64]
) -> tuple[list[float], NDArray[np.float64]]:
    """Return log |C| and Σ P d² = tr C⁻¹ Σ P t tᵀ of each component."""
    found = mixture.spectra()
    squares = [
        float(np.einsum("ij,ik,kj->", s.whitening, scatter, s.whitening))
        for s, scatter in zip(found, scatters, strict=True)
    ]
    return [s.log_determinant for s in found], np.array(squares)


def _costs(masses: Any, log_determinants: Any, squares: Any) -> NDArray[np.float64]:
    return 0.5 * (masses * np.array(log_determinants) + squares)


# ---------------------------------------------------------------------------- beginnings


def _first_mixture(
    points: NDArray[np.float64],
    shares: NDArray[np.float64],
    kind: str,
    floor: float,
    *,
    of_a_point: float,
) -> Mixture:
    """Return means and covariances of memberships; `of_a_point` is the mass of one of weight 1.

    A component of few points has no covariance of its own to speak of. Each begins with q + 1
    points' worth of the covariance within all components, so that none begins collapsed.
    """
    masses = shares.sum(axis=1)
    k, q = len(masses), points.shape[1] - 1
    usable = np.where(masses > 0, masses, 1.0)
    means = np.empty((k, q + 1))
    for number in range(k):
        if masses[number] > 0:
            means[number] = find_mean(points, shares[number], tol=1e-12, max_iter=200).point
        else:
            means[number] = points[0]
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    scatters = np.array([_scatter(points, shares[i], means[i]) for i in range(k)])
    if k > 1:
        pooled = scatters.sum(axis=0) / masses.sum()
        borrowed = (q + 1) * of_a_point
        ratio = usable / (usable + borrowed)
        scatters = ratio[:, None, None] * (scatters + borrowed * pooled)
    covariances = COVARIANCES[kind].estimate(scatters, usable, floor)
    weights = np.maximum(masses, np.finfo(np.float64).tiny)
    return Mixture(weights / weights.sum(), means, covariances, kind)


def _reseeded(
    points: NDArray[np.float64], p: NDArray[np.float64], expected: _Expectation, mixture: Mixture
) -> tuple[Mixture, tuple[int, ...]]:
    """Send components without mass to the least likely points, with the covariance of all."""
    empty = np.flatnonzero(expected.shares.sum(axis=1) <= 10 * _EPS)
    if not len(empty):
        return mixture, ()
    weights, means = mixture.weights.copy(), mixture.means.copy()
    covariances = mixture.covariances.copy()
    # where points are fewer, several components begin at the same one
    chosen = np.resize(np.argsort(expected.evidence, kind="stable"), len(empty))
    weights[empty], means[empty] = p[chosen], points[chosen]
    if not COVARIANCES[mixture.kind].shared:
        others = np.delete(np.arange(len(weights)), empty)
        covariances[empty] = np.average(
            mixture.covariances[others], axis=0, weights=mixture.weights[others]
        )
    found = replace(mixture, weights=weights / weights.sum(), means=means, covariances=covariances)
    return found, tuple(int(number) for number in empty)
