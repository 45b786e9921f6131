"""Normal laws on the sphere, each in the tangent space at its own mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.unit import ANTIPODAL, angles_from_cosines
from ._covariances import COVARIANCES, Spectrum, spectra
from .maps import exp_at_pole

__all__ = ["EPS", "Mixture", "Seen", "look", "scatter", "tangent_frame_at"]

EPS = float(np.finfo(np.float64).eps)
_LOG_2PI = float(np.log(2 * np.pi))


def tangent_frame_at(mean: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return an orthonormal frame of the tangent space at a point, shape (d, d - 1).

    It is the frame (e_2, …, e_d) at the pole e_1, transported along the great circle to the point:

    .. math:: F_j = e_j - \frac{\mu_j}{1 + \mu_1} (e_1 + \mu) .
    """
    d = len(mean)
    frame = np.eye(d)[:, 1:].copy()
    if 1 + mean[0] <= ANTIPODAL * EPS:  # every great circle leads there
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
        return np.ascontiguousarray(look(points, self).logs.T)

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
class Seen:
    """All points from all means, arrays of shape (k, n).

    `squares` are squared Mahalanobis distances, `stretches` are θ/sin θ (0 at the antipode).
    """

    cosines: NDArray[np.float64]
    angles: NDArray[np.float64]
    stretches: NDArray[np.float64]
    squares: NDArray[np.float64]
    logs: NDArray[np.float64]


def look(points: NDArray[Any], mixture: Mixture) -> Seen:
    k, q = mixture.n_components, mixture.n_modes
    cosines, squares = np.empty((k, len(points))), np.empty((k, len(points)))
    spectra_ = mixture.spectra()
    for number, spectrum in enumerate(spectra_):
        mean = mixture.means[number]
        cosines[number] = points @ mean
        # the frame is orthogonal to the mean: of differences near points keep their digits
        whitened = (points - mean) @ (tangent_frame_at(mean) @ spectrum.whitening)
        np.einsum("ij,ij->i", whitened, whitened, out=squares[number])
    angles, stretches = _angles(cosines)
    squares *= stretches
    squares *= stretches
    for number, spectrum in enumerate(spectra_):
        # in which direction an antipode lies nobody knows; it is as far as can be
        opposite = stretches[number] == 0
        squares[number, opposite] = np.pi**2 / spectrum.values[0]
    constants = np.array([q * _LOG_2PI + spectrum.log_determinant for spectrum in spectra_])
    return Seen(cosines, angles, stretches, squares, -0.5 * (squares + constants[:, None]))


def _angles(cosines: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    angles, stretches = angles_from_cosines(cosines)
    stretches[cosines <= ANTIPODAL * EPS - 1] = 0.0
    return angles, stretches


def scatter(
    points: NDArray[np.float64], shares: NDArray[np.float64], mean: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Σ P t tᵀ in the frame at the mean."""
    _, stretches = _angles(points @ mean)
    scaled = points - mean  # near points keep their digits
    scaled *= (stretches * np.sqrt(shares))[:, None]
    frame = tangent_frame_at(mean)
    return frame.T @ (scaled.T @ scaled) @ frame
