"""Covariances of the components of a mixture: full, diagonal, tied, spherical."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["COVARIANCES", "CovarianceKind", "Spectrum", "spectra"]

Estimate = Callable[[NDArray[np.float64], NDArray[np.float64], float], NDArray[np.float64]]


@dataclass(frozen=True)
class Spectrum:
    """A covariance by its eigenvalues and eigenvectors (columns)."""

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]

    @property
    def log_determinant(self) -> float:
        """Return log |C|."""
        return float(np.log(self.values).sum())

    @property
    def whitening(self) -> NDArray[np.float64]:
        """Return W with W Wᵀ = C⁻¹."""
        return self.vectors / np.sqrt(self.values)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Return C."""
        return (self.vectors * self.values) @ self.vectors.T


@dataclass(frozen=True)
class CovarianceKind:
    """How components share and restrict their covariances.

    Attributes
    ----------
    estimate : callable
        ``estimate(scatters, masses, floor)`` returns the covariances that maximise the likelihood,
        among those whose eigenvalues are at least `floor`, from Σ P t tᵀ of each component, shape
        (k, q, q), and Σ P of each.
    n_parameters : callable
        ``n_parameters(k, q)`` returns how many numbers they have.
    oriented : bool
        Whether a covariance is tied to the directions of its frame, so that it cannot turn freely.
    shared : bool
        Whether components have one covariance together.
    """

    estimate: Estimate
    n_parameters: Callable[[int, int], int]
    oriented: bool = False
    shared: bool = False


def spectra(kind: str, covariances: NDArray[np.float64], k: int, q: int) -> list[Spectrum]:
    """Return the eigenvalues and eigenvectors of the covariance of each component."""
    if kind in ("diag", "spherical"):
        diagonal = covariances if kind == "diag" else np.repeat(covariances[:, None], q, axis=1)
        return [Spectrum(values, np.eye(q)) for values in diagonal]
    if kind == "tied":
        return [Spectrum(*np.linalg.eigh(covariances))] * k
    return [Spectrum(*np.linalg.eigh(matrix)) for matrix in covariances]


def _floored(matrix: NDArray[np.float64], floor: float) -> NDArray[np.float64]:
    """Raise eigenvalues to a floor: the likeliest covariance of all that do not go below it."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    # below the rounding of the largest there is no eigenvalue that could be told from 0
    floor = max(floor, 4 * len(values) * float(np.finfo(np.float64).eps * values[-1]))
    if values[0] >= floor:
        return (matrix + matrix.T) / 2
    raised = np.maximum(values, floor)
    return (vectors * raised) @ vectors.T


def _full(scatters: Any, masses: Any, floor: float) -> NDArray[np.float64]:
    return np.array([_floored(s / mass, floor) for s, mass in zip(scatters, masses, strict=True)])


def _tied(scatters: Any, masses: Any, floor: float) -> NDArray[np.float64]:
    return _floored(scatters.sum(axis=0) / masses.sum(), floor)


def _diagonal(scatters: Any, masses: Any, floor: float) -> NDArray[np.float64]:
    return np.maximum(np.einsum("kqq->kq", scatters) / masses[:, None], floor)


def _spherical(scatters: Any, masses: Any, floor: float) -> NDArray[np.float64]:
    q = scatters.shape[1]
    return np.maximum(np.einsum("kqq->k", scatters) / (q * masses), floor)


#: The kinds of scikit-learn's GaussianMixture.
COVARIANCES = {
    "full": CovarianceKind(_full, lambda k, q: k * q * (q + 1) // 2),
    "tied": CovarianceKind(
        _tied,
        lambda k, q: q * (q + 1) // 2,
        oriented=True,
        shared=True,
    ),
    "diag": CovarianceKind(
        _diagonal,
        lambda k, q: k * q,
        oriented=True,
    ),
    "spherical": CovarianceKind(
        _spherical,
        lambda k, q: k,
    ),
}
