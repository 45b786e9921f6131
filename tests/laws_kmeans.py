"""Data, geometries and naive implementations for tests of k-means."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from laws_sphere import slow_log
from orthodrome import HypersphericalKMeans, KernelKMeans
from orthodrome.gram import DenseGram
from orthodrome.kernels import Gaussian, Radial
from orthodrome.preimage.centers import PreimageCenters
from orthodrome.sphere import karcher_mean
from orthodrome.sphere.lloyd import Centers, FlatCenters, GeodesicCenters

KINDS = ["flat", "intrinsic", "preimage"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def estimator(kind: str, n_clusters: int = 3, **options: Any) -> Any:
    """The estimator of a geometry, with a fixed scale and few starts."""
    options = {"kernel": Gaussian(sigma=1.5), "n_init": 3, "random_state": 0, **options}
    if kind == "flat":
        return KernelKMeans(n_clusters, **options)
    return HypersphericalKMeans(n_clusters, centers=kind, **options)


def geometry(kind: str, X: NDArray, weights: NDArray | None = None, kernel: Any = None) -> Centers:
    """Return the geometry of the centres; the default kernel is Gaussian."""
    kernel = (Gaussian(sigma=1.5) if kernel is None else kernel).fit(X)
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    if kind == "preimage":
        return PreimageCenters(kernel, X, w)
    return {"flat": FlatCenters, "intrinsic": GeodesicCenters}[kind](DenseGram(kernel(X)), w)


def cloud(n: int = 90, d: int = 3, dtype: Any = np.float64, seed: int = 0) -> NDArray:
    """Return one group of points, so that k-means needs many iterations."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, d)) * np.linspace(2, 1, d)).astype(dtype)


def random_labels(n: int, k: int, seed: int = 0) -> NDArray:
    return np.random.default_rng(seed).integers(0, k, n)


# ------------------------------------------------------------------ naive implementations


def naive_hyperspherical_k_means(
    Y: NDArray, labels: NDArray, k: int, weights: NDArray | None = None
) -> tuple[NDArray, NDArray, float]:
    """Labels, Karcher means and inertia of unit vectors, in coordinates."""
    w = np.ones(len(Y)) if weights is None else weights
    while True:
        means = np.array(
            [karcher_mean(Y[labels == c], w[labels == c], tol=1e-13).point for c in range(k)]
        )
        squares = np.array([[np.sum(slow_log(y, mean) ** 2) for mean in means] for y in Y])
        new = squares.argmin(axis=1)
        if np.array_equal(new, labels):
            return labels, means, float(w @ squares.min(axis=1))
        labels = new


def algorithm_1(X: NDArray, sigma: float, epsilon: float = 1e-22) -> NDArray:
    """RKHS-GEO, Algorithm 1, as printed: eq. (9) from one point after the other."""

    def similarities(z: NDArray) -> list[float]:
        return [math.exp(-sum((x - z) ** 2) / (2 * sigma**2)) for x in X]

    def objective(z: NDArray) -> float:
        return sum(math.acos(min(value, 1.0)) ** 2 for value in similarities(z))

    best = X.mean(axis=0)
    for start in X:
        z = start
        for _ in range(500):
            alpha = [
                0.0 if value > 1 - 1e-15 else math.acos(value) * value / math.sqrt(1 - value**2)
                for value in similarities(z)
            ]
            if sum(alpha) == 0:
                break
            moved = np.array(alpha) @ X / sum(alpha)
            rests = sum((moved - z) ** 2) < epsilon
            z = moved
            if rests:
                break
        if objective(z) < objective(best):
            best = z
    return best


def algorithm_2(X: NDArray, sigma: float, centers: NDArray) -> tuple[NDArray, NDArray, float]:
    """RKHS-GEO, Algorithm 2, as printed: labels, centres and the sum of squared angles."""
    labels = None
    while True:
        angles = np.array(
            [
                [
                    math.acos(min(1.0, math.exp(-sum((x - m) ** 2) / (2 * sigma**2))))
                    for m in centers
                ]
                for x in X
            ]
        )
        new = angles.argmin(axis=1)
        if labels is not None and np.array_equal(new, labels):
            return labels, centers, float(np.sum(angles.min(axis=1) ** 2))
        labels = new
        centers = np.array(
            [
                algorithm_1(X[labels == c], sigma) if np.any(labels == c) else centers[c]
                for c in range(len(centers))
            ]
        )


# ------------------------------------------------------------------ gradients of one centre


def squared_angles(kernel: Radial, X: NDArray, z: NDArray) -> NDArray:
    """θ² between Φ(z) and the points, by half angles."""
    complement = kernel.one_minus(np.array([np.sum((x - z) ** 2) for x in X]))
    return (2 * np.arcsin(np.sqrt(complement / 2))) ** 2


def slopes(kernel: Radial, X: NDArray, p: NDArray, z: NDArray, step: float) -> NDArray:
    """The gradient of Σ p θ² by central differences of fourth order, in units of 10 steps."""

    def objective(at: NDArray) -> float:
        return float(p @ squared_angles(kernel, X, at) / p.sum())

    def slope(e: NDArray) -> float:
        near = objective(z + e) - objective(z - e)
        far = objective(z + 2 * e) - objective(z - 2 * e)
        return (8 * near - far) / 12

    return np.array([slope(e) for e in step * np.eye(len(z))]) * 10
