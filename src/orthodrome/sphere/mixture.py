r"""EM for mixtures of normal distributions on the sphere.

The density of a component is that of the tangent vectors at its mean,

.. math:: P(y \mid \mu, C) = \frac{\exp(-\tfrac12\, d_g^2(\mu, y; C))}{(2\pi)^{q/2} |C|^{1/2}},
    \qquad d_g^2(\mu, y; C) = t^\top C^{-1} t, \quad t = \operatorname{Log}_\mu y

(Awate, Yu and Whitaker, "Kernel Principal Geodesic Analysis", 2014, §5.2). As in the paper, it is
not normalised over the sphere. If C is small compared with π², the missing constant is nearly 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from .._core.kinds import is_dask_array
from .._core.status import Status
from .._core.types import Array, Callback, Floats, Indices
from .._core.unit import ANTIPODAL, angles_from_cosines
from ..rows import Rows
from ..rows.dask import rows_of
from .karcher import bend_ratios, find_mean
from .maps import exp_at_pole, geodesic_step

EPS = float(np.finfo(np.float64).eps)
_LOG_2PI = float(np.log(2 * np.pi))
_ROUNDING = 1e-10  # smaller decreases of the mean log-likelihood are rounding errors
_MAX_HALVINGS = 8  # after so many halvings of a step, the mean is not moved
_BLOCK = 16384  # number of points in a block

#: The covariance types of scikit-learn's GaussianMixture.
COVARIANCES = ("full", "tied", "diag", "spherical")


def estimate_covariances(kind: str, scatters: Floats, masses: Floats, floor: float) -> Floats:
    """Return the maximum-likelihood covariances with eigenvalues of at least `floor`.

    The scatters Σ P t tᵀ have shape (k, q, q), the masses Σ P have shape (k,).
    """
    if kind == "full":
        return _clip_eigenvalues(scatters / masses[:, None, None], floor)
    if kind == "tied":
        return _clip_eigenvalues(scatters.sum(axis=0) / masses.sum(), floor)
    variances = np.einsum("kqq->kq", scatters) / masses[:, None]
    return np.maximum(variances if kind == "diag" else variances.mean(axis=1), floor)


def _clip_eigenvalues(matrices: Floats, floor: float) -> Floats:
    """Clip eigenvalues at `floor` from below.

    This is the maximum-likelihood covariance under that bound.
    """
    symmetric = (matrices + np.swapaxes(matrices, -1, -2)) / 2
    values, vectors = np.linalg.eigh(symmetric)
    # smaller eigenvalues cannot be distinguished from rounding errors
    floors = np.maximum(floor, 4 * values.shape[-1] * EPS * values[..., -1:])
    clipped = with_spectrum(np.maximum(values, floors), vectors)
    return np.where((values[..., :1] >= floors)[..., None], symmetric, clipped)


def with_spectrum(values: Floats, vectors: Floats) -> Floats:
    """Return matrices with these eigenvalues and eigenvectors."""
    return (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)


@dataclass(frozen=True)
class Mixture:
    """A mixture of normal distributions on the unit sphere of R^(q + 1).

    Attributes
    ----------
    weights : ndarray of shape (k,)
        Probabilities of the components.
    means : ndarray of shape (k, q + 1)
        Means of the components, unit vectors.
    covariances : ndarray
        Covariances in the frames of :func:`tangent_frame_at`: of shape (k, q, q) for "full", (k, q)
        for "diag", (q, q) for "tied", (k,) for "spherical".
    kind : str
        The covariance type, one of :data:`COVARIANCES`.
    """

    weights: Floats
    means: Floats
    covariances: Floats
    kind: str

    @property
    def n_components(self) -> int:
        """The number of components k."""
        return len(self.weights)

    @property
    def n_modes(self) -> int:
        """The dimension q of the sphere."""
        return self.means.shape[1] - 1

    @property
    def n_parameters(self) -> int:
        """The number of free parameters."""
        k, q = self.n_components, self.n_modes
        tied = q * (q + 1) // 2
        own = {"full": k * tied, "tied": tied, "diag": k * q, "spherical": k}[self.kind]
        return own + k * q + k - 1

    def spectra(self) -> tuple[Floats, Floats]:
        """Return the eigenvalues (k, q) and eigenvectors (k, q, q) of the covariances."""
        k, q = self.n_components, self.n_modes
        if self.kind in ("full", "tied"):
            values, vectors = np.linalg.eigh(self.covariances)
        else:
            values, vectors = self.covariances.reshape(k, -1), np.eye(q)
        return np.broadcast_to(values, (k, q)), np.broadcast_to(vectors, (k, q, q))

    def log_densities(self, points: Array) -> Floats:
        """Return log P(y | μ_l, C_l) of unit vectors, shape (n, k), without the weights."""
        return np.ascontiguousarray(distances_from_means(points, self).log_densities.T)

    def reordered(self, order: Indices) -> Mixture:
        """Return the mixture with these components, in this order."""
        return replace(
            self,
            weights=self.weights[order],
            means=self.means[order],
            covariances=self.covariances if self.kind == "tied" else self.covariances[order],
        )

    def sample(self, n: int, random: np.random.RandomState) -> tuple[Floats, Indices]:
        """Draw n unit vectors and the component of each.

        Tangent vectors are drawn from a normal distribution and mapped with Exp; those longer than
        π pass the antipode.
        """
        components = random.choice(self.n_components, size=n, p=self.weights)
        normal = random.standard_normal((n, self.n_modes))
        points = np.empty((n, self.n_modes + 1))
        values, vectors = self.spectra()
        for number, mean in enumerate(self.means):
            rows = components == number
            tangents = (normal[rows] * np.sqrt(values[number])) @ vectors[number].T
            basis = np.column_stack([mean, tangent_frame_at(mean)])
            points[rows] = exp_at_pole(tangents) @ basis.T if len(tangents) else 0.0
        return points / np.linalg.norm(points, axis=1, keepdims=True), components


def tangent_frame_at(mean: Floats) -> Floats:
    r"""Return an orthonormal frame of the tangent space at a point, shape (d, d - 1).

    This is the frame (e_2, …, e_d) at the pole e_1, transported along the great circle:

    .. math:: F_j = e_j - \frac{\mu_j}{1 + \mu_1} (e_1 + \mu) .
    """
    frame = np.eye(len(mean))[:, 1:].copy()
    if 1 + mean[0] <= ANTIPODAL * EPS:  # transport to the antipode is not unique
        return frame
    toward = mean.copy()
    toward[0] += 1
    return frame - np.outer(toward, mean[1:] / (1 + mean[0]))


class Distances(NamedTuple):
    """Distances of points from the means of a mixture, arrays of shape (k, n).

    `angle_ratios` are θ/sin θ, set to 0 at the antipode, where Log is not defined. `log_densities`
    do not include the weights of the components.
    """

    cosines: Floats
    angles: Floats
    angle_ratios: Floats
    squared_mahalanobis: Floats
    log_densities: Floats


def distances_from_means(points: Array, mixture: Mixture) -> Distances:
    """Return the distances of all points from all means."""
    cosines, squared = np.empty((2, mixture.n_components, len(points)))
    values, vectors = mixture.spectra()
    whitening = vectors / np.sqrt(values)[:, None]
    for number, mean in enumerate(mixture.means):
        cosines[number] = points @ mean
        # differences are accurate for near points; the frame is orthogonal to the mean
        whitened = (points - mean) @ (tangent_frame_at(mean) @ whitening[number])
        np.einsum("ij,ij->i", whitened, whitened, out=squared[number])
    angles, angle_ratios = angles_from_mean(cosines)
    squared *= angle_ratios
    squared *= angle_ratios
    # the antipode has no direction: use the largest distance
    squared = np.where(angle_ratios == 0, np.pi**2 / values.min(axis=1)[:, None], squared)
    constants = np.log(values).sum(axis=1) + mixture.n_modes * _LOG_2PI
    return Distances(cosines, angles, angle_ratios, squared, -0.5 * (squared + constants[:, None]))


def angles_from_mean(cosines: Floats) -> tuple[Floats, Floats]:
    """Return θ and θ/sin θ; the ratio is set to 0 at the antipode, where Log is not defined."""
    angles, angle_ratios = angles_from_cosines(cosines)
    angle_ratios[cosines <= ANTIPODAL * EPS - 1] = 0.0
    return angles, angle_ratios


def scatter(points: Floats, memberships: Floats, mean: Floats) -> Floats:
    """Return Σ P t tᵀ of tangent vectors t, in the frame at the mean."""
    _, angle_ratios = angles_from_mean(points @ mean)
    scaled = points - mean  # accurate for near points
    scaled *= (angle_ratios * np.sqrt(memberships))[:, None]
    frame = tangent_frame_at(mean)
    return frame.T @ (scaled.T @ scaled) @ frame


def scatters_of(points: Floats, memberships: Floats, means: Floats) -> Floats:
    """Return Σ P t tᵀ in the frame at each mean, shape (k, q, q)."""
    return np.array([scatter(points, *pair) for pair in zip(memberships, means, strict=True)])


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
        Σ_n P_nl p_n of each component l, with the probabilities P_nl that point n belongs to it,
        and the weights p_n = w_n / Σ w.
    squared_distances : ndarray of shape (k,)
        Σ_n P_nl p_n d_nl² of each component, with Mahalanobis distances d_nl.
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


def _block(points: Any, weights: Any) -> tuple[Array, Floats]:
    points = np.asarray(points, dtype=np.float64)
    return points, np.ones(len(points)) if weights is None else weights


def _memberships(points: Floats, w: Floats, mixture: Mixture) -> tuple[Floats, Floats, Distances]:
    """Return P_nl w_n of shape (k, n), log P(y) of shape (n,), and the distances from the means."""
    distances = distances_from_means(points, mixture)
    memberships = distances.log_densities + np.log(mixture.weights)[:, None]
    evidence = logsumexp(memberships, axis=0)
    memberships -= evidence
    np.exp(memberships, out=memberships)
    memberships *= w
    return memberships, evidence, distances


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
        return self.mean_update != "karcher" and self.mixture.kind in ("tied", "diag")

    def __call__(self, points: Any, start: int, weights: Any = None) -> tuple[Any, ...]:
        points, w = _block(points, weights)
        memberships, evidence, distances = _memberships(points, w, self.mixture)
        if self.memberships is not None:
            self.memberships[start : start + len(points)] = memberships.T
        pulls = memberships * distances.angle_ratios
        if self.mean_update != "karcher":
            theta_cot_theta = distances.cosines * distances.angle_ratios
            ratios = bend_ratios(distances.angles, theta_cot_theta)  # (1 - θ cot θ) / θ²
            second = pulls * (ratios * distances.squared_mahalanobis)
            pulls = np.vstack([pulls * theta_cot_theta, second])
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
            values, vectors = self.mixture.spectra()
            covariances, inverses = (with_spectrum(v, vectors) for v in (values, 1 / values))
            for number, C in enumerate(covariances):
                steps[number] += C @ (pulls[k + number] @ frames[number])
                m, denominator = means[number, 1:], 1 + means[number, 0]
                if self.needs_scatters and denominator > ANTIPODAL * EPS:
                    # if the mean moves by δ, its frame rotates by (m δᵀ - δ mᵀ) / (1 + μ_1)
                    turn = C @ (scatters[number] @ (inverses[number] @ m)) - scatters[number] @ m
                    steps[number] += turn / denominator
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


# ---------------------------------------------------------------------------- EM


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

    mixture: Any  # Mixture, or DirectionMixture
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
    the mean moves. Then the covariance is estimated at the new mean. If the new mean and covariance
    decrease the expected log-likelihood of points and memberships, the step is halved. Therefore
    the likelihood decreases at most by rounding errors.

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
    tied = mixture.kind == "tied"
    alive = masses > 10 * EPS
    usable = np.where(alive, masses, 1.0)
    steps = np.where(alive[:, None], expected.steps, 0.0)
    before = _costs(masses, mixture.spectra()[0], expected.squared_distances)
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
        covariances = estimate_covariances(mixture.kind, scatters, usable, floor)
        if not tied:
            covariances[~alive] = mixture.covariances[~alive]
        new = replace(mixture, weights=masses / masses.sum(), means=means, covariances=covariances)
        if mean_update == "karcher":
            break
        values, vectors = new.spectra()
        w = vectors / np.sqrt(values)[:, None]
        squared = np.einsum("kij,kil,klj->k", w, scatters, w, optimize=True)  # Σ P d²
        increase = _costs(masses, values, squared) - before
        if tied:
            increase = np.full_like(increase, increase.sum())
        worse = increase > 1e-12 * (1 + np.abs(before))
        if not worse.any():
            break
        fraction[worse] = fraction[worse] / 2 if halvings < _MAX_HALVINGS - 1 else 0.0
    return new


def _costs(masses: Floats, eigenvalues: Floats, squared_distances: Floats) -> Floats:
    """Return ½ (Σ P log |C| + Σ P d²) of each component."""
    return 0.5 * (masses * np.log(eigenvalues).sum(axis=1) + squared_distances)


# ---------------------------------------------------------------------------- initial mixtures


def first_mixture(
    points: Floats, memberships: Floats, kind: str, floor: float, *, unit_mass: float
) -> Mixture:
    """Return the initial mixture for given memberships, of shape (k, n).

    `unit_mass` is the mass of a point of weight 1. Each covariance is shrunk towards the pooled
    covariance, which counts like q + 1 points; otherwise components with few points would start
    nearly singular.
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
    covariances = estimate_covariances(kind, scatters, usable, floor)
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
    if mixture.kind != "tied":
        others = np.delete(np.arange(len(weights)), empty)
        covariances[empty] = np.average(
            mixture.covariances[others], axis=0, weights=mixture.weights[others]
        )
    found = replace(mixture, weights=weights / weights.sum(), means=means, covariances=covariances)
    return found, tuple(int(number) for number in empty)
