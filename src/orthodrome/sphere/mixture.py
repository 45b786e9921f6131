r"""EM for mixtures of normal distributions on the sphere.

The density of a component is that of the tangent vectors at its mean,

.. math:: P(y \mid \mu, C) = \frac{\exp(-\tfrac12\, d_g^2(\mu, y; C))}{(2\pi)^{q/2} |C|^{1/2}},
    \qquad d_g^2(\mu, y; C) = t^\top C^{-1} t, \quad t = \operatorname{Log}_\mu y

(Awate, Yu and Whitaker, "Kernel Principal Geodesic Analysis", 2014, §5.2). As in the paper, it is
not normalised over the sphere. If C is small compared with π², the missing constant is nearly 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._core.status import Status
from .._core.types import Callback, Floats
from ._clouds import Cloud, Expected, scatters_of
from ._laws import COVARIANCES, EPS, Mixture, Spectrum, tangent_frame_at
from .karcher import find_mean
from .maps import geodesic_step

__all__ = [
    "COVARIANCES",
    "Mixture",
    "MixtureFit",
    "expectation_maximization",
    "first_mixture",
    "tangent_frame_at",
]

_ROUNDING = 1e-10  # smaller decreases of the mean log-likelihood are rounding errors
_MAX_HALVINGS = 8  # after so many halvings of a step, the mean is not moved


@dataclass(frozen=True)
class MixtureFit:
    """Result of expectation-maximization (EM).

    Attributes
    ----------
    mixture : Mixture
        The most likely mixture of all iterations.
    log_likelihood : float
        The weighted mean of log P(y) for it.
    n_iter : int
        Number of iterations; each is an M step followed by an E step.
    status : Status
        How the iteration ended.
    history : tuple of dict
        ``log_likelihood`` at the start and after each accepted iteration, and ``reseeded``, the
        components without points that were restarted in that iteration.
    """

    mixture: Mixture
    log_likelihood: float
    n_iter: int
    status: Status
    history: tuple[dict[str, Any], ...] = field(default=(), repr=False)


def expectation_maximization(
    cloud: Cloud,
    mixture: Mixture,
    *,
    mean_update: str,
    floor: float,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> MixtureFit:
    r"""Fit a mixture on the sphere by EM, from an initial mixture.

    The M step moves each mean along

    .. math:: \delta = \frac1{P} \sum_n P_n \Bigl( a_n t_n
        + \frac{(1 - a_n)\, d_n^2}{\theta_n^2}\, C\, t_n \Bigr), \qquad
        a = \theta \cot\theta, \quad d_n^2 = t_n^\top C^{-1} t_n,

    which is -C/2P times the gradient of :math:`\sum_n P_n d_g^2(\mu, y_n; C)` if C is transported
    with the mean (paper, step 6); in flat space one step reaches the new mean. A "diag" or "tied"
    covariance is instead kept constant in the frame of :func:`tangent_frame_at`, which rotates as
    the mean moves. Then the covariance is estimated at the new mean. If both together increase the
    expected cost, the step is halved, so the likelihood decreases at most by rounding errors.

    With ``mean_update="karcher"`` the step is the weighted mean of the t_n. It converges to the
    Karcher means weighted with the memberships, Σ P_n t_n = 0, as in the paper. It is cheaper and
    needs fewer iterations, but for wide components the maximum-likelihood means may differ. If a
    step decreases the mean log-likelihood by more than `tol`, it is undone, and EM continues with
    ``mean_update="likelihood"``.

    The mean log-likelihood never decreases by more than `tol`, unless a component without points
    is restarted.

    Parameters
    ----------
    cloud : Cloud
        The points.
    mixture : Mixture
        The initial mixture, for example from :func:`first_mixture`.
    mean_update : {"karcher", "likelihood"}
        How the means are updated.
    floor : float
        Minimum eigenvalue of the covariances.
    tol : float
        Stop when the mean log-likelihood increases by less than this.
    max_iter : int
        The maximum number of iterations.
    callback : callable, optional
        Called with each entry of the history.

    Returns
    -------
    MixtureFit
        The most likely mixture, and the history of EM.
    """
    current = cloud.expected(mixture, mean_update)
    best, status, n_iter = current, Status.MAX_ITER, 0
    history: list[dict[str, Any]] = []

    def record(step: Expected, reseeded: tuple[int, ...]) -> None:
        history.append({"log_likelihood": step.likelihood, "reseeded": reseeded})
        if callback is not None:
            callback(history[-1])

    record(current, ())
    while n_iter < max_iter and status is Status.MAX_ITER:
        n_iter += 1
        new_mixture = _m_step(cloud, current, mean_update, floor)
        new_mixture, reseeded = _reseed_empty(cloud, current, new_mixture)
        proposed = cloud.expected(new_mixture, mean_update)
        gain = proposed.likelihood - current.likelihood
        if mean_update == "karcher" and not reseeded and gain < -max(tol, _ROUNDING):
            mean_update = "likelihood"  # Karcher means are too far from the most likely ones
            current = cloud.expected(current.mixture, mean_update)
            continue
        if gain < tol and not reseeded:
            status = Status.CONVERGED
        current = proposed
        record(current, reseeded)
        if current.likelihood > best.likelihood:
            best = current
    return MixtureFit(best.mixture, best.likelihood, n_iter, status, tuple(history))


# ---------------------------------------------------------------------------- the M step


def _m_step(cloud: Cloud, expected: Expected, mean_update: str, floor: float) -> Mixture:
    """Return the mixture after an M step; components without mass do not change."""
    mixture, masses = expected.mixture, expected.masses
    kind = COVARIANCES[mixture.kind]
    alive = masses > 10 * EPS
    usable = np.where(alive, masses, 1.0)
    steps = np.where(alive[:, None], expected.steps, 0.0)
    before = _costs(masses, mixture.spectra(), expected.squared_distances)
    fraction = np.ones(len(masses))
    means, scatters = mixture.means.copy(), np.empty((len(masses), *2 * (mixture.n_modes,)))
    worse = np.ones(len(masses), dtype=bool)
    for halvings in range(_MAX_HALVINGS + 1):
        moving = np.flatnonzero(worse)
        for number in moving:
            mean = mixture.means[number]
            step = tangent_frame_at(mean) @ (fraction[number] * steps[number])
            means[number] = geodesic_step(mean, step, np.pi / 2)
        scatters[moving] = cloud.scatters(expected, moving, means[moving])
        covariances = kind.estimate(scatters, usable, floor)
        if not kind.shared:
            covariances[~alive] = mixture.covariances[~alive]
        new = replace(mixture, weights=masses / masses.sum(), means=means, covariances=covariances)
        if mean_update == "karcher":
            break
        spectra = new.spectra()
        pairs = zip((spectrum.whitening for spectrum in spectra), scatters, strict=True)
        squared = [np.einsum("ij,ik,kj->", w, scatter, w) for w, scatter in pairs]  # Σ P d²
        increase = _costs(masses, spectra, squared) - before
        if kind.shared:
            increase = np.full_like(increase, increase.sum())
        worse = increase > 1e-12 * (1 + np.abs(before))
        if not worse.any():
            break
        fraction[worse] = fraction[worse] / 2 if halvings < _MAX_HALVINGS - 1 else 0.0
    return new


def _costs(masses: Floats, spectra: list[Spectrum], squared_distances: Any) -> Floats:
    """Return ½ (Σ P log |C| + Σ P d²) of each component."""
    log_determinants = np.array([spectrum.log_determinant for spectrum in spectra])
    return 0.5 * (masses * log_determinants + np.asarray(squared_distances))


# ---------------------------------------------------------------------------- initial mixtures


def first_mixture(
    points: Floats, memberships: Floats, kind: str, floor: float, *, unit_mass: float
) -> Mixture:
    """Return the initial mixture for given memberships, of shape (k, n).

    `unit_mass` is the mass of a point of weight 1. Each covariance is shrunk towards the pooled
    one, which has the mass of q + 1 points; otherwise components with few points would start nearly
    singular.
    """
    masses = memberships.sum(axis=1)
    k, q = len(masses), points.shape[1] - 1
    usable = np.where(masses > 0, masses, 1.0)
    means = np.array(
        [
            find_mean(points, weights, tol=1e-12, max_iter=200).point if mass > 0 else points[0]
            for weights, mass in zip(memberships, masses, strict=True)
        ]
    )
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    scatters = scatters_of(points, memberships, means)
    if k > 1:
        pooled = scatters.sum(axis=0) / masses.sum()
        prior_mass = (q + 1) * unit_mass
        ratio = usable / (usable + prior_mass)
        scatters = ratio[:, None, None] * (scatters + prior_mass * pooled)
    covariances = COVARIANCES[kind].estimate(scatters, usable, floor)
    weights = np.maximum(masses, np.finfo(np.float64).tiny)
    return Mixture(weights / weights.sum(), means, covariances, kind)


def _reseed_empty(
    cloud: Cloud, expected: Expected, mixture: Mixture
) -> tuple[Mixture, tuple[int, ...]]:
    """Restart components without mass at the least likely points, with the average covariance."""
    empty = np.flatnonzero(expected.masses <= 10 * EPS)
    if not len(empty):
        return mixture, ()
    weights, means = mixture.weights.copy(), mixture.means.copy()
    covariances = mixture.covariances.copy()
    # with fewer points than empty components, some restart at the same point
    points, p = cloud.least_likely(expected, len(empty))
    chosen = np.resize(np.arange(len(points)), len(empty))
    weights[empty], means[empty] = p[chosen], points[chosen]
    if not COVARIANCES[mixture.kind].shared:
        others = np.delete(np.arange(len(weights)), empty)
        covariances[empty] = np.average(
            mixture.covariances[others], axis=0, weights=mixture.weights[others]
        )
    found = replace(mixture, weights=weights / weights.sum(), means=means, covariances=covariances)
    return found, tuple(int(number) for number in empty)
