"""Mixtures of normal distributions on the sphere, each in the tangent space at its mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._core.types import Array, Floats, Indices
from .._core.unit import ANTIPODAL, angles_from_cosines
from .maps import exp_at_pole

EPS = float(np.finfo(np.float64).eps)
_LOG_2PI = float(np.log(2 * np.pi))


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
