"""Data, solvers and twins for the laws of decompositions."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from orthodrome import KernelPCA, KernelPGA
from orthodrome.kernels import Kernel, Normalized, as_kernel

#: A new spectral decomposition joins the laws that they share by a name here.
every_estimator = pytest.mark.parametrize("Estimator", [KernelPCA, KernelPGA])

#: Solvers as parameters of an estimator; exact enough for laws at 1e-8.
SOLVERS = {
    "dense": {"solver": "dense"},
    "krylov": {"solver": "krylov", "tol": 1e-12, "random_state": 0},
}
every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


def suited(kernel: Any, Estimator: type) -> Kernel:
    """The kernel, normalised where the estimator needs points on a sphere."""
    kernel = as_kernel(kernel)
    return Normalized(kernel) if Estimator is KernelPGA and not kernel.unit_norm else kernel


def training(n: int = 120, d: int = 5, dtype=np.float64) -> NDArray:
    """Skewed data, so that the third moments which fix the signs are far from 0."""
    rng = np.random.default_rng(31)
    return (rng.gumbel(size=(n, d)) * np.linspace(2, 0.5, d)).astype(dtype)


def held_out(m: int = 30, d: int = 5, dtype=np.float64) -> NDArray:
    rng = np.random.default_rng(32)
    return (rng.gumbel(size=(m, d)) * np.linspace(2, 0.5, d)).astype(dtype)


def positive(n: int = 120, dtype=np.float64) -> tuple[NDArray, NDArray]:
    """Training and new rows of one sign: their directions lie in one hemisphere."""
    return np.abs(training(n, dtype=dtype)), np.abs(held_out(dtype=dtype))


def directions(X: NDArray) -> NDArray:
    """Unit vectors in one hemisphere."""
    return (X + 4) / np.linalg.norm(X + 4, axis=1, keepdims=True)


def with_zeros(X: NDArray) -> NDArray:
    """Zeros in place of negative entries, and a column of ones, so that no row is 0."""
    return np.column_stack([np.maximum(X, 0), np.ones(len(X))])


def assert_same(actual: NDArray, expected: NDArray, tol: float = 1e-8) -> None:
    """Equal to `tol` relative to the largest entry."""
    expected = np.asarray(expected)
    scale = max(np.abs(expected).max(initial=0.0), np.finfo(np.float64).tiny)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tol * scale)


def same_signs(actual: NDArray, expected: NDArray) -> NDArray:
    """Return signs for the columns of `expected` that make them those of `actual`."""
    return np.where(np.sum(actual * expected, axis=0) < 0, -1.0, 1.0)


def spectrum(Estimator: type, K: NDArray) -> NDArray:
    """All eigenvalues that the estimator has for the Gram matrix, descending, by the shortest way.

    Of the centred matrix for kernel PCA, of the covariance of the Log maps for kernel PGA.
    """
    n = len(K)
    if Estimator is KernelPGA:
        _, B = log_coefficients(K, np.eye(n), np.full(n, 1 / n))
        return np.linalg.eigvalsh(B @ K @ B.T / n)[::-1]
    center = np.eye(n) - 1 / n
    return np.linalg.eigvalsh(center @ K @ center)[::-1]


def log_coefficients(K: NDArray, W: NDArray, p: NDArray) -> tuple[NDArray, NDArray]:
    """The Karcher mean ξ of points of unit length and the rows β of their Log maps there.

    kPGA §3 and §4.1, literally: all are coefficients over N representers of Gram matrix K, the M
    points are the rows of W, the weights p add up to 1, and every step has the length 1.
    """
    xi = p @ W / np.sqrt(p @ W @ K @ W.T @ p)  # (4)
    for _ in range(500):
        cosines = np.clip(W @ (K @ xi), -1, 1)
        angles = np.arccos(cosines)
        stretches = np.where(angles > 0, angles / np.where(angles > 0, np.sin(angles), 1), 1)
        step = (p * stretches) @ W - (p * stretches) @ cosines * xi  # (5), with (1)
        length = np.sqrt(max(step @ K @ step, 0))
        if length < 1e-14:
            break
        xi = np.cos(length) * xi + np.sin(length) * step / length  # (2)
        xi /= np.sqrt(xi @ K @ xi)
    return xi, stretches[:, None] * (W - np.outer(cosines, xi))  # (1)
