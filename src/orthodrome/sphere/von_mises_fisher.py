r"""Mixtures of von Mises-Fisher distributions on the unit sphere of R^d.

.. math:: P(y \mid \mu, \kappa) = c_d(\kappa)\, e^{\kappa \langle \mu, y \rangle}, \qquad
    c_d(\kappa) = \frac{\kappa^\nu}{(2\pi)^{d/2} I_\nu(\kappa)}, \quad \nu = d/2 - 1

(Banerjee, Dhillon, Ghosh and Sra, "Clustering on the unit hypersphere using von Mises-Fisher
distributions", 2005). I is the modified Bessel function of the first kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.special
import scipy.stats
from numpy.polynomial.polynomial import polyval

from .._core.status import Status
from .._core.types import Array, Floats, Indices
from ..coordinates import Coordinates
from ..coordinates.blocks import AnchorMap
from ..kernels.radial import debye_polynomials
from ..rows import Rows
from .mixture import MixtureFit

# The asymptotic expansion is used if √(ν² + κ²) is larger than this; its error is then below 1e-8.
_ASYMPTOTIC = 30.0
# Smaller concentrations count as this one, at which the distribution is uniform.
_MIN_CONCENTRATION = 1e-6
_MAX_NEWTON = 50
# Single precision suffices if the rounding errors of κ⟨μ, y⟩ are below this.
_MAX_ROUNDING = 1e-3
# Exponent of the step size of online EM.
_FORGETTING = 0.8
_TINY = float(np.finfo(np.float64).tiny)


def log_bessel(order: float, x: Floats) -> Floats:
    r"""Return log I_ν(x) for positive x, without overflow or underflow.

    For large :math:`r = \sqrt{\nu^2 + x^2}` this is Debye's uniform expansion,

    .. math:: \log I_\nu(x) \approx r - \nu \operatorname{arsinh}(\nu/x) - \tfrac12 \log 2\pi r
        + \log \Bigl(1 + \sum_k u_k(t)\, \nu^{-k}\Bigr), \quad t = \nu/r .

    Examples
    --------
    >>> log_bessel(0.5, np.array([1.0, 1e6])).round(2).tolist()
    [-0.06, 999992.17]
    """
    r = np.hypot(order, x)
    with np.errstate(divide="ignore"):
        direct = np.log(scipy.special.ive(order, np.minimum(x, _ASYMPTOTIC))) + x
    series, _ = _debye(order, x, r)
    large = r - order * np.arcsinh(order / x) - 0.5 * np.log(2 * np.pi * r) + np.log(series)
    return np.where(r > _ASYMPTOTIC, large, direct)


def _debye(order: float, x: Floats, r: Floats) -> tuple[Floats, Floats]:
    """Return the series of Debye's expansion, and its derivative with respect to x."""
    squared, series, slope = (order / r) ** 2, np.ones_like(r), np.zeros_like(r)
    for k, polynomial in enumerate(debye_polynomials()[1:5], 1):
        # the polynomial is (ν/r)^k times one in (ν/r)²
        coefficients = np.asarray(polynomial.coef[k::2], dtype=np.float64)
        series = series + polyval(squared, coefficients) / r**k
        # a term is a multiple of r^-(2j + k), and dr/dx is x/r
        powers = coefficients * (2 * np.arange(len(coefficients)) + k)
        slope = slope - polyval(squared, powers) / r**k * x / r**2
    return series, slope


def mean_resultant_length(concentrations: Floats, dimension: int) -> Floats:
    """Return I_{d/2}(κ) / I_{d/2 - 1}(κ), the length of the mean of a distribution."""
    return _lengths_and_gaps(concentrations, dimension)[0]


def _lengths_and_gaps(concentrations: Floats, dimension: int) -> tuple[Floats, Floats]:
    """Return mean resultant lengths, and 1 less them without cancellation for large κ."""
    order, x = dimension / 2 - 1, np.maximum(concentrations, _MIN_CONCENTRATION)
    r, small = np.hypot(order, x), np.minimum(x, _ASYMPTOTIC)
    series, slope = _debye(order, x, r)
    rest = 0.5 * x / r**2 - slope / series
    with np.errstate(invalid="ignore"):
        direct = scipy.special.ive(order + 1, small) / scipy.special.ive(order, small)
    # r - x is ν²/(r + x)
    gaps = (order**2 / (r + x) + order) / (r + order) + rest
    large = r > _ASYMPTOTIC
    return np.where(large, x / (r + order) - rest, direct), np.where(large, gaps, 1 - direct)


def concentrations_of(lengths: Floats, dimension: int) -> Floats:
    r"""Return the maximum-likelihood κ for mean resultant lengths below 1, by Newton's method.

    The start is :math:`\bar r (d - \bar r^2) / (1 - \bar r^2)`.
    """
    lengths = np.clip(lengths, 0.0, 1 - 1e-14)
    kappas = np.maximum(lengths * (dimension - lengths**2) / (1 - lengths**2), _MIN_CONCENTRATION)
    for _ in range(_MAX_NEWTON):
        found, gaps = _lengths_and_gaps(kappas, dimension)
        errors = np.where(found < 0.5, found - lengths, (1 - lengths) - gaps)
        slopes = gaps * (2 - gaps) - (dimension - 1) / kappas * found
        steps = errors / np.maximum(slopes, _TINY)
        # κ at most doubles or halves in a step
        new = np.clip(kappas - steps, kappas / 2, 2 * kappas)
        new = np.maximum(new, _MIN_CONCENTRATION)
        if np.all(np.abs(new - kappas) <= 1e-12 * kappas):
            break
        kappas = new
    return np.asarray(kappas)


@dataclass(frozen=True)
class DirectionMixture:
    """A mixture of von Mises-Fisher distributions.

    Attributes
    ----------
    weights : ndarray of shape (k,)
        Probabilities of the components.
    means : ndarray of shape (k, d)
        Mean directions.
    concentrations : ndarray of shape (k,)
        The κ of the components.
    """

    weights: Floats
    means: Floats
    concentrations: Floats

    @property
    def n_parameters(self) -> int:
        """The number of free parameters."""
        k, d = self.means.shape
        return k * (d - 1) + k + k - 1

    def precise(self, points: Array) -> Array:
        """Return unit vectors; in double precision if components are too concentrated for less."""
        errors = self.concentrations.max() * float(np.finfo(points.dtype).eps)
        if points.dtype == np.float64 or errors <= _MAX_ROUNDING:
            return points
        points = points.astype(np.float64)
        return points / np.linalg.norm(points, axis=1, keepdims=True)

    def log_densities(self, points: Array) -> Floats:
        """Return log P(y | μ, κ) of points with all components, shape (n, k)."""
        d, kappas = self.means.shape[1], np.maximum(self.concentrations, _MIN_CONCENTRATION)
        order = d / 2 - 1
        constants = order * np.log(kappas) - d / 2 * np.log(2 * np.pi) - log_bessel(order, kappas)
        points = self.precise(points)
        scaled = (kappas[:, None] * self.means).astype(points.dtype)
        return np.asarray((points @ scaled.T).astype(np.float64) + constants)

    def reordered(self, order: Indices) -> DirectionMixture:
        """Return the mixture with its components in another order."""
        return replace(
            self,
            weights=self.weights[order],
            means=self.means[order],
            concentrations=self.concentrations[order],
        )

    def sample(self, n: int, random: np.random.RandomState) -> tuple[Floats, Indices]:
        """Draw n points; return them and their components."""
        labels = random.choice(len(self.weights), size=n, p=self.weights)
        points = np.empty((n, self.means.shape[1]))
        for number, (mean, kappa) in enumerate(zip(self.means, self.concentrations, strict=True)):
            members = np.flatnonzero(labels == number)
            if len(members):
                law = scipy.stats.vonmises_fisher(mean, kappa, seed=random)
                points[members] = law.rvs(len(members))
        return points, labels


@dataclass(frozen=True)
class _Expected:
    """A block function: sums of weights, log P(y), memberships and weighted points."""

    by: AnchorMap
    mixture: DirectionMixture

    @property
    def rows_at_once(self) -> int:
        return max(256, min(self.by.rows_at_once, 2**18 // len(self.mixture.weights)))

    @property
    def work_per_row(self) -> float:
        return self.by.work_per_row + 2 * self.mixture.means.size

    def __call__(self, rows: Any, start: int, **columns: Any) -> tuple[Any, ...]:
        block = self.by.block(rows, **columns)
        vectors = self.mixture.precise(block.vectors())
        w = np.ones(block.n) if block.weights is None else block.weights
        joint = self.mixture.log_densities(vectors) + np.log(self.mixture.weights)
        evidence = scipy.special.logsumexp(joint, axis=1)
        memberships = np.exp(joint - evidence[:, None]) * w[:, None]
        sums = memberships.astype(vectors.dtype).T @ vectors
        return w.sum(), w @ evidence, memberships.sum(axis=0), sums


def max_resultant_length(masses: Floats, sums: Floats, reg_covar: float) -> float:
    """Return an upper bound of mean resultant lengths, so that concentrations stay finite.

    Its distance from 1 is the fraction `reg_covar` of that of all points.
    """
    spread = 1 - np.linalg.norm(sums.sum(axis=0)) / masses.sum()
    # if all points coincide, the bound is absolute
    return 1 - max(reg_covar * (spread if spread > 1e-12 else 1.0), 1e-12)


def mixture_of(masses: Floats, sums: Floats, max_length: float, means: Floats) -> DirectionMixture:
    """Return the most likely mixture for memberships with these masses and sums of points.

    Parameters
    ----------
    masses, sums : ndarrays of shape (k,) and (k, d)
        Σ P_n and Σ P_n y_n of each component.
    max_length : float
        Upper bound of mean resultant lengths, so that concentrations stay finite.
    means : ndarray of shape (k, d)
        The means of components whose points cancel; if they are 0, any direction will do.
    """
    lengths = np.linalg.norm(sums, axis=1)
    directions = np.where(lengths[:, None] > 0, sums, means)
    directions[~directions.any(axis=1), 0] = 1.0
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    resultant = np.minimum(lengths / np.maximum(masses, _TINY), max_length)
    weights = np.maximum(masses, _TINY)
    kappas = concentrations_of(resultant, sums.shape[1])
    return DirectionMixture(weights / weights.sum(), directions, kappas)


def fit_directions(
    points: Coordinates,
    mixture: DirectionMixture,
    *,
    max_length: float,
    tol: float,
    max_iter: int,
) -> MixtureFit:
    """Fit a mixture of von Mises-Fisher distributions by EM; each iteration makes one pass.

    Stop when an iteration increases the mean log-likelihood by less than `tol`. The other
    parameters are those of :func:`mixture_of`.
    """
    status, history, n_iter, before = Status.MAX_ITER, [], 0, -np.inf
    while True:
        total, evidence, masses, sums = points.rows.reduce(_Expected(points.by, mixture))
        likelihood = float(evidence / total)
        history.append({"log_likelihood": likelihood})
        if n_iter and likelihood - before < tol:
            status = Status.CONVERGED
        if status.converged or n_iter == max_iter:
            return MixtureFit(mixture, likelihood, n_iter, status, tuple(history))
        n_iter, before = n_iter + 1, likelihood
        mixture = mixture_of(masses, sums, max_length, mixture.means)


def updated_mixture(
    rows: Rows, by: AnchorMap, mixture: DirectionMixture, mass: float, reg_covar: float
) -> tuple[DirectionMixture, float, float]:
    r"""Return the mixture after a step of online EM with a batch of rows.

    The mean memberships :math:`s` and the mean points :math:`S` of the components become

    .. math:: s + \rho\, (s_\text{batch} - s), \quad S + \rho\, (S_\text{batch} - S), \qquad
        \rho = \Bigl(\frac{m_\text{batch}}{m + m_\text{batch}}\Bigr)^{0.8},

    where the m are sums of weights. The exponent 1 would give plain sums. Smaller ones forget the
    memberships of early batches, which were found with worse parameters (Cappé and Moulines,
    "On-line expectation-maximization algorithm for latent data models", 2009).

    Parameters
    ----------
    rows : Rows
        The batch.
    by : AnchorMap
        The map from rows to unit vectors.
    mixture : DirectionMixture
        The mixture of the earlier batches.
    mass : float
        The sum of the weights of the earlier batches.
    reg_covar : float
        As in :func:`max_resultant_length`.

    Returns
    -------
    mixture : DirectionMixture
        The new mixture.
    mass : float
        The sum of all weights.
    log_likelihood : float
        The mean log-likelihood of the batch with the old mixture.
    """
    total, evidence, masses, sums = rows.reduce(_Expected(by, mixture))
    added = float(total)
    # the M step is invertible: its results are the old statistics
    old_masses = mixture.weights
    lengths = mean_resultant_length(mixture.concentrations, mixture.means.shape[1])
    old_sums = (old_masses * lengths)[:, None] * mixture.means
    step = (added / (mass + added)) ** _FORGETTING
    masses = old_masses + step * (masses / added - old_masses)
    sums = old_sums + step * (sums / added - old_sums)
    bound = max_resultant_length(masses, sums, reg_covar)
    return mixture_of(masses, sums, bound, mixture.means), mass + added, float(evidence / added)
