"""Points on spheres, slow oracles in coordinates, and kinds of Gram operators."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthodrome.gram import DenseGram, GramOperator, Scaled, Weighted
from orthodrome.gram.tiled import TiledGram
from orthodrome.kernels import Linear

DTYPES = [np.float64, np.float32]


def unit(vectors: Any) -> NDArray:
    """Rows divided by their lengths."""
    vectors = np.asarray(vectors)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def rotation(d: int, seed: int = 0) -> NDArray:
    """A random orthogonal matrix."""
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def cap(n: int, d: int, radius: float, seed: int = 0) -> NDArray:
    """Unit vectors at distances up to `radius` from the first axis, turned at random."""
    rng = np.random.default_rng(seed)
    angles = radius * rng.random(n)
    directions = unit(rng.normal(size=(n, d - 1)))
    points = np.column_stack([np.cos(angles), np.sin(angles)[:, None] * directions])
    return points @ rotation(d, seed).T


def slow_log(y: NDArray, b: NDArray) -> NDArray:
    """Log_b(y), by projection on the tangent space and atan2."""
    y, b = np.asarray(y, dtype=np.float64), np.asarray(b, dtype=np.float64)
    tangent = y - (y @ b) * b
    tangent -= (tangent @ b) * b
    length = np.sqrt(tangent @ tangent)
    return tangent if length == 0 else np.arctan2(length, y @ b) * tangent / length


def slow_exp(t: NDArray, b: NDArray) -> NDArray:
    length = np.sqrt(t @ t)
    return b.copy() if length == 0 else np.cos(length) * b + np.sin(length) * t / length


def slow_objective(points: NDArray, p: NDArray, mean: NDArray) -> float:
    """Σ p θ² for weights of sum 1."""
    return sum(weight * np.sum(slow_log(y, mean) ** 2) for y, weight in zip(points, p, strict=True))


def slow_gradient(points: NDArray, p: NDArray, mean: NDArray) -> NDArray:
    return sum(weight * slow_log(y, mean) for y, weight in zip(points, p, strict=True))


def slow_karcher_mean(points: NDArray, weights: NDArray | None = None) -> NDArray:
    """Gradient descent with steps of fixed length, until nothing moves."""
    points = np.asarray(points, dtype=np.float64)
    weights = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=np.float64)
    p = weights / weights.sum()
    mean = unit(p @ points)
    for _ in range(400):
        gradient = slow_gradient(points, p, mean)
        if np.linalg.norm(gradient) < 1e-15:
            break
        mean = unit(slow_exp(0.9 * gradient, mean))
    return mean


def tiled(storage: str) -> Callable[[NDArray], tuple[GramOperator, NDArray]]:
    return lambda Y: (TiledGram(Linear().fit(Y), Y, storage), Y)


#: Functions from unit vectors to an operator and the coordinates of its points.
OPERATORS = {
    "dense": lambda Y: (DenseGram(Y @ Y.T), Y),
    "memory": tiled("memory"),
    "disk": tiled("disk"),
    "recompute": tiled("recompute"),
    "scaled": lambda Y: (Scaled(DenseGram(4 * (Y @ Y.T)), 0.25), Y),
    "weighted": lambda Y: (Weighted(DenseGram(4 * (Y @ Y.T)), np.full(len(Y), 0.5)), Y),
}
