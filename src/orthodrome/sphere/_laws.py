"""Mixtures of normal distributions on the sphere, each in the tangent space at its mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.types import Floats, Indices
from .._core.unit import ANTIPODAL, angles_from_cosines
from .maps import exp_at_pole

EPS = float(np.finfo(np.float64).eps)
_LOG_2PI = float(np.log(2 * np.pi))


# ---------------------------------------------------------------------------- covariances


@dataclass(frozen=True)
class Spectrum:
    """A covariance C by its eigenvalues and eigenvectors (columns)."""

    values: Floats
    vectors: Floats

    @property
    def log_determinant(self) -> float:
        """The log-determinant log |C|."""
        return float(np.log(self.values).sum())

    @property
    def whitening(self) -> Floats:
        """A matrix W with W Wᵀ = C⁻¹."""
        return self.vectors / np.sqrt(self.values)

    @property
    def matrix(self) -> Floats:
        """The matrix C."""
        return (self.vectors * self.values) @ self.vectors.T


@dataclass(frozen=True)
class CovarianceKind:
    """A covariance type: how components restrict and share their covariances.

    Attributes
    ----------
    estimate : callable
        ``estimate(scatters, masses, floor)`` returns the maximum-likelihood covariances with
        eigenvalues of at least `floor`, from Σ P t tᵀ of each component, shape (k, q, q), and Σ P.
    n_parameters : callable
        ``n_parameters(k, q)`` returns the number of free parameters.
    oriented : bool
        Whether the covariance depends on the directions of the frame.
    shared : bool
        Whether all components have the same covariance.
    """

    estimate: Callable[[Floats, Floats, float], Floats]
    n_parameters: Callable[[int, int], int]
    oriented: bool = False
    shared: bool = False


def _floored(matrix: Floats, floor: float) -> Floats:
    """Raise eigenvalues to a floor, which gives the likeliest covariance above it."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    # smaller eigenvalues are rounding errors of the largest
    floor = max(floor, 4 * len(values) * float(EPS * values[-1]))
    if values[0] >= floor:
        return (matrix + matrix.T) / 2
    return (vectors * np.maximum(values, floor)) @ vectors.T


def _full(scatters: Floats, masses: Floats, floor: float) -> Floats:
    return np.array([_floored(s / mass, floor) for s, mass in zip(scatters, masses, strict=True)])


def _tied(scatters: Floats, masses: Floats, floor: float) -> Floats:
    return _floored(scatters.sum(axis=0) / masses.sum(), floor)


def _diagonal(scatters: Floats, masses: Floats, floor: float) -> Floats:
    return np.maximum(np.einsum("kqq->kq", scatters) / masses[:, None], floor)


def _spherical(scatters: Floats, masses: Floats, floor: float) -> Floats:
    return np.maximum(np.einsum("kqq->k", scatters) / (scatters.shape[1] * masses), floor)


#: The covariance types of scikit-learn's GaussianMixture.
COVARIANCES = {
    "full": CovarianceKind(_full, lambda k, q: k * q * (q + 1) // 2),
    "tied": CovarianceKind(_tied, lambda k, q: q * (q + 1) // 2, oriented=True, shared=True),
    "diag": CovarianceKind(_diagonal, lambda k, q: k * q, oriented=True),
    "spherical": CovarianceKind(_spherical, lambda k, q: k),
}


# ---------------------------------------------------------------------------- mixtures


@dataclass(frozen=True)
class Mixture:
    """A mixture of normal distributions on the unit sphere of R^(q + 1).

    Attributes
    ----------
    weights : ndarray of shape (k,)
        Probabilities of the components.
    means : ndarray of shape (k, q + 1)
        Their means, unit vectors.
    covariances : ndarray
        Their covariances in the frames of :func:`tangent_frame_at`, of shape (k, q, q) for "full",
        (k, q) for "diag", (q, q) for "tied", (k,) for "spherical".
    kind : str
        The covariance type, a key of :data:`COVARIANCES`.
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
        return COVARIANCES[self.kind].n_parameters(k, q) + k * q + k - 1

    def spectra(self) -> list[Spectrum]:
        """Return the eigendecomposition of each covariance."""
        k, q, found = self.n_components, self.n_modes, self.covariances
        if self.kind == "tied":
            return [Spectrum(*np.linalg.eigh(found))] * k
        if self.kind == "full":
            return [Spectrum(*np.linalg.eigh(matrix)) for matrix in found]
        diagonals = found if self.kind == "diag" else np.repeat(found[:, None], q, axis=1)
        return [Spectrum(values, np.eye(q)) for values in diagonals]

    def log_densities(self, points: NDArray[Any]) -> Floats:
        """Return log P(y | μ_l, C_l) of unit vectors, shape (n, k), without the weights."""
        return np.ascontiguousarray(Distances.of(points, self).logs.T)

    def reordered(self, order: Indices) -> Mixture:
        """Return the mixture with these components, in this order."""
        shared = COVARIANCES[self.kind].shared
        return replace(
            self,
            weights=self.weights[order],
            means=self.means[order],
            covariances=self.covariances if shared else self.covariances[order],
        )

    def sample(self, n: int, random: np.random.RandomState) -> tuple[Floats, Indices]:
        """Draw n unit vectors and the component of each.

        Normal tangent vectors are mapped by Exp; those longer than π go past the antipode.
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


def tangent_frame_at(mean: Floats) -> Floats:
    r"""Return an orthonormal frame of the tangent space at a point, shape (d, d - 1).

    It is the frame (e_2, …, e_d) at the pole e_1, transported along the great circle to the point:

    .. math:: F_j = e_j - \frac{\mu_j}{1 + \mu_1} (e_1 + \mu) .
    """
    frame = np.eye(len(mean))[:, 1:].copy()
    if 1 + mean[0] <= ANTIPODAL * EPS:  # transport to the antipode is not unique
        return frame
    toward = mean.copy()
    toward[0] += 1
    return frame - np.outer(toward, mean[1:] / (1 + mean[0]))


@dataclass(frozen=True)
class Distances:
    """Distances of points from the means of a mixture, arrays of shape (k, n).

    `stretches` are θ/sin θ (0 at the antipode), `squares` squared Mahalanobis distances, and `logs`
    log-densities.
    """

    cosines: Floats
    angles: Floats
    stretches: Floats
    squares: Floats
    logs: Floats

    @classmethod
    def of(cls, points: NDArray[Any], mixture: Mixture) -> Distances:
        """Compute the distances of all points from all means."""
        shape = mixture.n_components, len(points)
        cosines, squares = np.empty(shape), np.empty(shape)
        spectra = mixture.spectra()
        for number, spectrum in enumerate(spectra):
            mean = mixture.means[number]
            cosines[number] = points @ mean
            # differences, which the frame allows, are accurate for near points
            whitened = (points - mean) @ (tangent_frame_at(mean) @ spectrum.whitening)
            np.einsum("ij,ij->i", whitened, whitened, out=squares[number])
        angles, stretches = mean_angles(cosines)
        squares *= stretches
        squares *= stretches
        for number, spectrum in enumerate(spectra):
            # the antipode has no direction: take the largest distance
            squares[number, stretches[number] == 0] = np.pi**2 / spectrum.values[0]
        constants = np.array([spectrum.log_determinant for spectrum in spectra])
        constants += mixture.n_modes * _LOG_2PI
        return cls(cosines, angles, stretches, squares, -0.5 * (squares + constants[:, None]))


def mean_angles(cosines: Floats) -> tuple[Floats, Floats]:
    """Return θ and θ/sin θ, the latter 0 at the antipode."""
    angles, stretches = angles_from_cosines(cosines)
    stretches[cosines <= ANTIPODAL * EPS - 1] = 0.0
    return angles, stretches


def scatter(points: Floats, shares: Floats, mean: Floats) -> Floats:
    """Return Σ P t tᵀ in the frame at the mean."""
    _, stretches = mean_angles(points @ mean)
    scaled = points - mean  # accurate for near points
    scaled *= (stretches * np.sqrt(shares))[:, None]
    frame = tangent_frame_at(mean)
    return frame.T @ (scaled.T @ scaled) @ frame
