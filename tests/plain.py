"""Slow and obvious formulas for a few points, in NumPy alone.

They take Gram matrices. Weights p sum to 1; a row of weight 0 is treated like a new one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def squared_distances(X: Array, Y: Array) -> Array:
    return ((X[:, None] - Y[None]) ** 2).sum(axis=2)


def gaussian(
    X: Array, p: Array, sigma: float | None, factor: float, coarse: float = 0.0
) -> Callable[[Array], Array]:
    """Return k(x, x_n) = exp(-d²/(factor σ²)) as a function; by default σ² is the mean of d².

    Distances up to `coarse` count as 0.
    """

    def squares(new: Array) -> Array:
        found = squared_distances(new, X)
        return np.where(found > coarse**2, found, 0.0)

    square = float(p @ squares(X) @ p) if sigma is None else sigma**2

    def values(new: Array) -> Array:
        found = squares(new)
        return np.exp(-found / (factor * square)) if square > 0 else np.where(found > 0, 0.0, 1.0)

    return values


def shapes(X: Array) -> Array:
    """Return u u* of the pre-shapes u of landmarks (n, k, 2), as vectors."""
    z = X[..., 0] + 1j * X[..., 1]
    z = z - z.mean(axis=1, keepdims=True)
    u = z / np.sqrt((np.abs(z) ** 2).sum(axis=1, keepdims=True))
    products = (u[:, :, None] * u[:, None].conj()).reshape(len(X), -1)
    return np.column_stack([products.real, products.imag])


def logarithms(X: Array) -> Array:
    """Return logarithms of symmetric matrices, as vectors."""
    values, vectors = np.linalg.eigh(X)
    logs = np.einsum("nij,nj,nkj->nik", vectors, np.log(values), vectors)
    return logs.reshape(len(X), -1)


def centered(cross: Array, K: Array, p: Array) -> Array:
    """Return ⟨Φ(x) - m, Φ(x_n) - m⟩ with the mean m of the training points."""
    return cross - (cross @ p)[:, None] - K @ p + p @ K @ p


def angles(cosines: Array) -> Array:
    return np.arccos(np.clip(cosines, -1.0, 1.0))


def stretch(theta: Array) -> Array:
    """Return θ / sin θ."""
    return np.where(theta > 1e-6, theta / np.where(theta > 1e-6, np.sin(theta), 1.0), 1.0)


def karcher_mean(K: Array, p: Array) -> Array:
    """Return coefficients of the Karcher mean, by gradient descent."""
    point = p / np.sqrt(p @ K @ p)
    for _ in range(5000):
        cosines = K @ point
        pull = p * stretch(angles(cosines))
        step = pull - (pull @ cosines) * point
        length = np.sqrt(max(step @ K @ step, 0.0))
        if length < 1e-15:
            break
        point = np.cos(length) * point + np.sin(length) / length * step
        point = point / np.sqrt(point @ K @ point)
    return point


def tangents(cross: Array, K: Array, mean: Array) -> Array:
    """Return ⟨Log Φ(x), Log Φ(x_n)⟩ at the mean."""
    new, own = cross @ mean, K @ mean
    rows = stretch(angles(new))[:, None] * (cross - np.outer(new, own))
    return rows * stretch(angles(own))


def perturbation(own: Array, cross: Array, K: Array, weights: Array, alpha: float) -> Array:
    """Return k(x, x) - kᵀ (K + α W^-1)^-1 k, the residual of PerTurbo."""
    scaled = _solved(cross, K, weights, alpha)
    root = np.sqrt(weights)
    return own - np.einsum("ij,ij->i", cross * root, scaled)


def ridge_residual(own: Array, cross: Array, K: Array, weights: Array, alpha: float) -> Array:
    """Return ‖Φ(x) - Σ a_n Φ(x_n)‖² with the coefficients a of a ridge regression."""
    root = np.sqrt(weights)
    a = _solved(cross, K, weights, alpha) * root
    return own - 2 * np.einsum("ij,ij->i", a, cross) + np.einsum("ij,jk,ik->i", a, K, a)


def _solved(cross: Array, K: Array, weights: Array, alpha: float) -> Array:
    root = np.sqrt(weights)
    regular = K * np.outer(root, root) + alpha * np.eye(len(K))
    return (cross * root) @ np.linalg.pinv(regular, hermitian=True)
