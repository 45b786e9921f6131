r"""EM for mixtures of normal distributions on the sphere.

The density of a component is that of the tangent vectors at its mean,

.. math:: P(y \mid \mu, C) = \frac{\exp(-\tfrac12\, d_g^2(\mu, y; C))}{(2\pi)^{q/2} |C|^{1/2}},
    \qquad d_g^2(\mu, y; C) = t^\top C^{-1} t, \quad t = \operatorname{Log}_\mu y

(kPGA §5.2). As in the paper, it is not normalised over the sphere. The missing constant is 1 to
within the tails if C is small compared with π².
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
from .maps import moved_along

__all__ = ["COVARIANCES", "Mixture", "MixtureFit", "first_mixture", "improved", "tangent_frame_at"]

_FALL = 1e-10  # a decrease of the mean log-likelihood that is rounding
_MOST_HALVINGS = 8  # of a step that raises the cost; then the mean does not move


@dataclass(frozen=True)
class MixtureFit:
    """The result of EM.

    Attributes
    ----------
    mixture : Mixture
        The likeliest mixture of all iterations.
    log_likelihood : float
        Its weighted mean of log P(y).
    n_iter : int
        Iterations, each of an M step and an E step.
    status : Status
        How the iteration ended.
    history : tuple of dict
        ``log_likelihood`` at the start and after each accepted iteration, and ``reseeded``, the
        components that had lost all their points and were restarted in it.
    """

    mixture: Mixture
    log_likelihood: float
    n_iter: int
    status: Status
    history: tuple[dict[str, Any], ...] = field(default=(), repr=False)


def improved(
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

    which is -C/2P times the gradient of :math:`\sum_n P_n d_g^2(\mu, y_n; C)` with C transported
    along with the mean (paper, step 6); on a flat sphere it leads to the new mean at once. An
    oriented covariance ("diag", "tied") stays the same in the frame of :func:`tangent_frame_at`
    instead, which turns. Then the covariance is estimated at the new mean. If both together raise
    the expected cost, the step is halved. The likelihood therefore never falls by more than
    rounding.

    With ``mean_update="karcher"`` the step is the weighted mean of the t_n, which leads to the
    Karcher means of the memberships, Σ P_n t_n = 0, as in kPGA. It is cheaper and needs fewer
    iterations, but for wide components the likeliest means may differ: a step that lowers the mean
    log-likelihood by more than `tol` is undone, and EM continues with the likeliest means.

    The mean log-likelihood never falls by more than `tol`, unless a component without points is
    restarted. The likeliest mixture of all iterations is returned.

    Parameters
    ----------
    cloud : Cloud
        The points.
    mixture : Mixture
        The start, such as :func:`first_mixture`.
    mean_update : {"karcher", "likelihood"}
        The step of the means.
    floor : float
        The least eigenvalue of covariances.
    tol : float
        Stop when the mean log-likelihood gains less.
    max_iter : int
        The maximum number of iterations.
    callback : callable, optional
        Called with each entry of the history.

    Returns
    -------
    MixtureFit
        The likeliest mixture, and the course of EM.
    """
    here = cloud.expected(mixture, mean_update)
    best, status, n_iter = here, Status.MAX_ITER, 0
    history: list[dict[str, Any]] = []

    def record(step: Expected, reseeded: tuple[int, ...]) -> None:
        history.append({"log_likelihood": step.likelihood, "reseeded": reseeded})
        if callback is not None:
            callback(history[-1])

    record(here, ())
    while n_iter < max_iter and status is Status.MAX_ITER:
        n_iter += 1
        moved = _maximized(cloud, here, mean_update, floor)
        moved, reseeded = _reseeded(cloud, here, moved)
        there = cloud.expected(moved, mean_update)
        gain = there.likelihood - here.likelihood
        if mean_update == "karcher" and not reseeded and gain < -max(tol, _FALL):
            mean_update = "likelihood"  # Karcher means are too far from the likeliest ones
            here = cloud.expected(here.mixture, mean_update)
            continue
        if gain < tol and not reseeded:
            status = Status.CONVERGED
        here = there
        record(here, reseeded)
        if here.likelihood > best.likelihood:
            best = here
    return MixtureFit(best.mixture, best.likelihood, n_iter, status, tuple(history))


# ---------------------------------------------------------------------------- the M step


def _maximized(cloud: Cloud, expected: Expected, mean_update: str, floor: float) -> Mixture:
    """Return the mixture after an M step; components without mass do not change."""
    mixture, masses = expected.mixture, expected.masses
    kind = COVARIANCES[mixture.kind]
    alive = masses > 10 * EPS
    usable = np.where(alive, masses, 1.0)
    steps = np.where(alive[:, None], expected.steps, 0.0)
    before = _costs(masses, mixture.spectra(), expected.squares)
    fraction = np.ones(len(masses))
    means, scatters = mixture.means.copy(), np.empty((len(masses), *2 * (mixture.n_modes,)))
    worse = np.ones(len(masses), dtype=bool)
    for halvings in range(_MOST_HALVINGS + 1):
        moving = np.flatnonzero(worse)
        for number in moving:
            mean = mixture.means[number]
            step = tangent_frame_at(mean) @ (fraction[number] * steps[number])
            means[number] = moved_along(mean, step, np.pi / 2)
        scatters[moving] = cloud.scatters(expected, moving, means[moving])
        covariances = kind.estimate(scatters, usable, floor)
        if not kind.shared:
            covariances[~alive] = mixture.covariances[~alive]
        new = replace(mixture, weights=masses / masses.sum(), means=means, covariances=covariances)
        if mean_update == "karcher":
            break
        spectra = new.spectra()
        pairs = zip((spectrum.whitening for spectrum in spectra), scatters, strict=True)
        squares = [np.einsum("ij,ik,kj->", w, scatter, w) for w, scatter in pairs]  # Σ P d²
        rise = _costs(masses, spectra, squares) - before
        if kind.shared:
            rise = np.full_like(rise, rise.sum())
        worse = rise > 1e-12 * (1 + np.abs(before))
        if not worse.any():
            break
        fraction[worse] = fraction[worse] / 2 if halvings < _MOST_HALVINGS - 1 else 0.0
    return new


def _costs(masses: Floats, spectra: list[Spectrum], squares: Any) -> Floats:
    """Return ½ (Σ P log |C| + Σ P d²) of each component."""
    logs = np.array([spectrum.log_determinant for spectrum in spectra])
    return 0.5 * (masses * logs + np.asarray(squares))


# ---------------------------------------------------------------------------- starts


def first_mixture(
    points: Floats, shares: Floats, kind: str, floor: float, *, of_a_point: float
) -> Mixture:
    """Return the mixture of given memberships; `of_a_point` is the mass of a point of weight 1.

    Each covariance is shrunk towards the pooled one, with the mass of q + 1 points: components of
    few points would begin collapsed otherwise.
    """
    masses = shares.sum(axis=1)
    k, q = len(masses), points.shape[1] - 1
    usable = np.where(masses > 0, masses, 1.0)
    means = np.array(
        [
            find_mean(points, share, tol=1e-12, max_iter=200).point if mass > 0 else points[0]
            for share, mass in zip(shares, masses, strict=True)
        ]
    )
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    scatters = scatters_of(points, shares, means)
    if k > 1:
        pooled = scatters.sum(axis=0) / masses.sum()
        borrowed = (q + 1) * of_a_point
        ratio = usable / (usable + borrowed)
        scatters = ratio[:, None, None] * (scatters + borrowed * pooled)
    covariances = COVARIANCES[kind].estimate(scatters, usable, floor)
    weights = np.maximum(masses, np.finfo(np.float64).tiny)
    return Mixture(weights / weights.sum(), means, covariances, kind)


def _reseeded(
    cloud: Cloud, expected: Expected, mixture: Mixture
) -> tuple[Mixture, tuple[int, ...]]:
    """Restart components without mass at the least likely points, with the mean covariance."""
    empty = np.flatnonzero(expected.masses <= 10 * EPS)
    if not len(empty):
        return mixture, ()
    weights, means = mixture.weights.copy(), mixture.means.copy()
    covariances = mixture.covariances.copy()
    # with fewer points than components, several restart at the same one
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
