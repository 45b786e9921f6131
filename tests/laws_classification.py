"""Data and naive twins for the laws of class-subspace classifiers."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

CONFIGURATIONS = {
    "loo": {},
    "loo, relative": {"alpha_scale": "relative"},
    "absolute": {"alpha": 0.03},
    "relative": {"alpha": 0.003, "alpha_scale": "relative"},
    "interpolating": {"alpha": 0.0},
    "truncated": {"n_components": 4},
    "truncated and regularised": {"n_components": 4, "alpha": 0.01},
    "preimage": {"geodesic": True},
    "mean": {"geodesic": True, "reference": "mean"},
    "mean, relative": {"geodesic": True, "reference": "mean", "alpha_scale": "relative"},
    "preimage, truncated": {"geodesic": True, "n_components": 3},
}
every_configuration = pytest.mark.parametrize(
    "options", CONFIGURATIONS.values(), ids=list(CONFIGURATIONS)
)


def three_classes(n: int = 60, seed: int = 0, dtype=np.float64) -> tuple[NDArray, NDArray]:
    """Three groups that overlap, of different sizes, with names."""
    X, y = make_blobs(
        [n // 2, n // 3, n - n // 2 - n // 3],
        centers=[[0, 0, 0], [2.5, 1, 0], [0, 2.5, 1]],
        cluster_std=[0.9, 1.1, 0.7],
        random_state=seed,
    )
    return X.astype(dtype), np.array(["ash", "beech", "oak"])[y]


def gaussian(X: NDArray, Y: NDArray | None = None, sigma: float = 1.0) -> NDArray:
    Y = X if Y is None else Y
    squares = np.square(X[:, None].astype(np.float64) - Y[None].astype(np.float64)).sum(axis=-1)
    return np.exp(-squares / (2 * sigma**2))


def naive_perturbation(K: NDArray, k: NDArray, own: float, alpha: float) -> float:
    """k(x, x) - kᵀ(K + α)⁻¹k by solving, or by the pseudo-inverse."""
    if alpha == 0:
        return float(own - k @ np.linalg.pinv(K, rcond=1e-12, hermitian=True) @ k)
    return float(own - k @ np.linalg.solve(K + alpha * np.eye(len(K)), k))


def naive_ridge(K: NDArray, k: NDArray, own: float, alpha: float) -> float:
    """‖Φ(x) - Σ a_n Φ(x_n)‖² with the coefficients of ridge regression."""
    if alpha == 0:
        return naive_perturbation(K, k, own, 0.0)
    a = np.linalg.solve(K + alpha * np.eye(len(K)), k)
    return float(own - 2 * a @ k + a @ K @ a)


def naive_truncation(K: NDArray, k: NDArray, own: float, n_components: int) -> float:
    """The squared distance to the leading components, one at a time."""
    values, vectors = np.linalg.eigh(K)
    for value, vector in list(zip(values, vectors.T, strict=True))[::-1][:n_components]:
        own -= (vector @ k) ** 2 / value
    return float(own)


def left_out_naively(naive, K: NDArray, alpha: float, copies: NDArray | None = None) -> NDArray:
    """Remove all copies of a point, and measure it from the rest; for each point."""
    counts = np.ones(len(K), dtype=int) if copies is None else copies
    rows = np.repeat(np.arange(len(K)), counts)
    found = []
    for n in range(len(K)):
        rest = rows[rows != n]
        found.append(naive(K[np.ix_(rest, rest)], K[rest, n], K[n, n], alpha))
    return np.array(found)
