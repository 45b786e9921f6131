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
    """Eigenvalues and eigenvectors (columns) of a covariance C."""

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
    """A covariance type: the constraints on the covariances of the components.

    Attributes
    ----------
    estimate : callable
        ``estimate(scatters, masses, floor)`` returns the maximum-likelihood covariances with
        eigenvalues of at least `floor`. The scatters Σ P t tᵀ have shape (k, q, q), the masses Σ P
        have shape (k,).
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


def _clip_eigenvalues(matrix: Floats, floor: float) -> Floats:
    """Clip eigenvalues at `floor` from below.

    This is the maximum-likelihood covariance under that bound.
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    # smaller eigenvalues cannot be distinguished from rounding errors
    floor = max(floor, 4 * len(values) * float(EPS * values[-1]))
    if values[0] >= floor:
        return (matrix + matrix.T) / 2
    return (vectors * np.maximum(values, floor)) @ vectors.T


def _full(scatters: Floats, masses: Floats, floor: float) -> Floats:
    return np.array(
        [_clip_eigenvalues(s / mass, floor) for s, mass in zip(scatters, masses, strict=True)]
    )


def _tied(scatters: Floats, masses: Floats, floor: float) -> Floats:
    return _clip_eigenvalues(scatters.sum(axis=0) / masses.sum(), floor)


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
        Means of the components, unit vectors.
    covariances : ndarray
        Covariances in the frames of :func:`tangent_frame_at`: of shape (k, q, q) for "full", (k, q)
        for "diag", (q, q) for "tied", (k,) for "spherical".
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
        return np.ascontiguousarray(Distances.of(points, self).log_densities.T)

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

        Tangent vectors are drawn from a normal distribution and mapped with Exp; those longer than
        π pass the antipode.
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

    This is the frame (e_2, …, e_d) at the pole e_1, transported along the great circle:

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

    `angle_ratios` are θ/sin θ, set to 0 at the antipode, where Log is not defined. `log_densities`
    do not include the weights of the components.
    """

    cosines: Floats
    angles: Floats
    angle_ratios: Floats
    squared_mahalanobis: Floats
    log_densities: Floats

    @classmethod
    def of(cls, points: NDArray[Any], mixture: Mixture) -> Distances:
        """Compute the distances of all points from all means."""
        shape = mixture.n_components, len(points)
        cosines, squared_mahalanobis = np.empty(shape), np.empty(shape)
        spectra = mixture.spectra()
        for number, spectrum in enumerate(spectra):
            mean = mixture.means[number]
            cosines[number] = points @ mean
            # differences are accurate for near points; the frame is orthogonal to the mean
            whitened = (points - mean) @ (tangent_frame_at(mean) @ spectrum.whitening)
            np.einsum("ij,ij->i", whitened, whitened, out=squared_mahalanobis[number])
        angles, angle_ratios = angles_from_mean(cosines)
        squared_mahalanobis *= angle_ratios
        squared_mahalanobis *= angle_ratios
        for number, spectrum in enumerate(spectra):
            # the antipode has no direction: use the largest distance
            squared_mahalanobis[number, angle_ratios[number] == 0] = np.pi**2 / spectrum.values[0]
        constants = np.array([spectrum.log_determinant for spectrum in spectra])
        constants += mixture.n_modes * _LOG_2PI
        return cls(
            cosines,
            angles,
            angle_ratios,
            squared_mahalanobis,
            -0.5 * (squared_mahalanobis + constants[:, None]),
        )


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
