"""Data, solvers and twins for the laws of decompositions."""

import numpy as np
from numpy.typing import NDArray

#: Solvers as parameters of an estimator; exact enough for laws at 1e-8.
SOLVERS = {
    "dense": {"solver": "dense"},
    "krylov": {"solver": "krylov", "tol": 1e-12, "random_state": 0},
}


def training(n: int = 120, d: int = 5, dtype=np.float64) -> NDArray:
    """Skewed data, so that the third moments which fix the signs are far from 0."""
    rng = np.random.default_rng(31)
    return (rng.gumbel(size=(n, d)) * np.linspace(2, 0.5, d)).astype(dtype)


def held_out(m: int = 30, d: int = 5, dtype=np.float64) -> NDArray:
    rng = np.random.default_rng(32)
    return (rng.gumbel(size=(m, d)) * np.linspace(2, 0.5, d)).astype(dtype)


def assert_same(actual: NDArray, expected: NDArray, tol: float = 1e-8) -> None:
    """Equal to `tol` relative to the largest entry."""
    expected = np.asarray(expected)
    scale = max(np.abs(expected).max(initial=0.0), np.finfo(np.float64).tiny)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tol * scale)


def same_signs(actual: NDArray, expected: NDArray) -> NDArray:
    """Return signs for the columns of `expected` that make them those of `actual`."""
    return np.where(np.sum(actual * expected, axis=0) < 0, -1.0, 1.0)
