"""Points, memberships and naive versions for the laws of mixtures on the sphere."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from laws_sphere import unit
from orthodrome import sphere
from orthodrome.sphere.mixture import Mixture

KINDS = ["full", "diag", "tied", "spherical"]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_update = pytest.mark.parametrize("update", ["karcher", "likelihood"])


def cap(n: int = 60, q: int = 3, seed: int = 0) -> NDArray:
    """Points on the hemisphere about the pole."""
    points = np.random.default_rng(seed).standard_normal((n, q + 1))
    points[:, 0] = np.abs(points[:, 0]) + 0.5
    return unit(points)


def covariances(kind: str, k: int, q: int, seed: int = 0, scale: float = 0.05) -> NDArray:
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((k, q, q))
    full = scale * (factors @ factors.transpose(0, 2, 1) / q + 0.2 * np.eye(q))
    return {
        "full": full,
        "tied": full[0],
        "diag": np.einsum("kqq->kq", full),
        "spherical": np.einsum("kqq->k", full) / q,
    }[kind]


def matrices(mixture: Mixture) -> NDArray:
    """The covariances as full matrices, one per component."""
    k, q, c = mixture.n_components, mixture.n_modes, mixture.covariances
    if mixture.kind in ("full", "tied"):
        return c if mixture.kind == "full" else np.array([c] * k)
    return np.array([np.broadcast_to(row, q) * np.eye(q) for row in c])


def some_mixture(kind: str, k: int = 3, q: int = 3, seed: int = 0, scale: float = 0.05) -> Mixture:
    rng = np.random.default_rng(seed)
    means = unit(rng.standard_normal((k, q + 1)) + 2.0 * np.eye(q + 1)[0])
    weights = rng.dirichlet(np.full(k, 5.0))
    return Mixture(weights, means, covariances(kind, k, q, seed, scale), kind)


def transported(base: NDArray, target: NDArray, vector: NDArray) -> NDArray:
    """A tangent vector at base, carried along the great circle to target."""
    return vector - (base + target) * (target @ vector) / (1 + base @ target)


def naive_frame(mean: NDArray) -> NDArray:
    pole = np.eye(len(mean))[0]
    return np.column_stack([transported(pole, mean, e) for e in np.eye(len(mean))[1:]])


def naive_tangents(points: NDArray, mean: NDArray) -> NDArray:
    return sphere.log(points, base_point=mean) @ naive_frame(mean)


def naive_log_densities(points: NDArray, mixture: Mixture) -> NDArray:
    """SciPy's normal density of the tangent vectors at each mean."""
    return np.column_stack(
        [
            multivariate_normal.logpdf(
                naive_tangents(points, mean), np.zeros(mixture.n_modes), covariance
            )
            for mean, covariance in zip(mixture.means, matrices(mixture), strict=True)
        ]
    )


def naive_memberships(points: NDArray, mixture: Mixture) -> NDArray:
    """Posterior probabilities, shape (n, k), without logarithms."""
    joint = np.exp(naive_log_densities(points, mixture)) * mixture.weights
    return joint / joint.sum(axis=1, keepdims=True)


def one_hot(labels: NDArray, k: int) -> NDArray:
    return np.eye(k)[labels].T.copy()
