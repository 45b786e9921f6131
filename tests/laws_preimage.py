"""Radial kernels, expansions and slow oracles for pre-images."""

from collections.abc import Iterator

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from orthodrome import kernels

#: A new radial kernel joins every law of pre-images by a line here.
SMOOTH = {
    "gaussian": kernels.Gaussian,
    "rbf": lambda: kernels.RBF(gamma=0.1),
    "matern 3/2": lambda: kernels.Matern(nu=1.5),
    "matern 5/2": lambda: kernels.Matern(nu=2.5),
    "matern 2": lambda: kernels.Matern(nu=2.0),
    "rational quadratic": lambda: kernels.RationalQuadratic(alpha=0.7),
    "wave": kernels.Wave,
    "power 2": lambda: kernels.Power(beta=2.0),
    "log 2": lambda: kernels.Log(beta=2.0),
}
CUSPS = {
    "exponential": kernels.Exponential,
    "matern 1/2": lambda: kernels.Matern(nu=0.5),
    "matern 0.8": lambda: kernels.Matern(nu=0.8),
    "spherical": kernels.Spherical,
    "circular": kernels.Circular,
    "power 1": lambda: kernels.Power(beta=1.0),
    "log 1": lambda: kernels.Log(beta=1.0),
}
RADIAL = SMOOTH | CUSPS


def cloud(n: int = 40, d: int = 3, dtype=np.float64) -> NDArray:
    rng = np.random.default_rng(21)
    return (rng.standard_normal((n, d)) * np.linspace(2, 0.5, d)).astype(dtype)


def expansions(kind: str, n: int, m: int = 6, seed: int = 0) -> NDArray:
    """Rows of coefficients with sum 1: a mean of few points, of all, or with mixed signs."""
    rng = np.random.default_rng(seed)
    if kind == "few":
        beta = np.zeros((m, n))
        for row in beta:
            row[rng.choice(n, 4, replace=False)] = rng.dirichlet(np.ones(4))
        return beta
    beta = rng.dirichlet(np.ones(n), size=m)
    if kind == "mixed":  # what a kernel PCA reconstruction looks like
        beta += 0.3 * (rng.standard_normal((m, n)) / n)
        beta /= beta.sum(axis=1, keepdims=True)
    return beta


def objective(kernel: kernels.Radial, X: NDArray, beta: NDArray, z: NDArray) -> float:
    """ρ(z) = Σ β_n h(‖z - x_n‖²), one z at a time and without any of the fast paths."""
    return float(beta @ kernel.profile(np.sum((z - X) ** 2, axis=1)))


def starts(
    kernel: kernels.Radial, X: NDArray, beta: NDArray, n_starts: int = 3
) -> Iterator[NDArray]:
    """The documented starts: the training points of largest ρ, and the mean under β₊."""
    values = np.array([objective(kernel, X, beta, x) for x in X])
    yield from X[np.argsort(-values)[:n_starts]]
    positive = np.maximum(beta, 0)
    yield positive @ X / positive.sum()


def climb(kernel: kernels.Radial, X: NDArray, beta: NDArray) -> float:
    """The best objective that a derivative-free optimiser reaches from the same starts."""
    results = (
        scipy.optimize.minimize(
            lambda z: -objective(kernel, X, beta, z),
            start,
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 2000, "maxfev": 4000},
        )
        for start in starts(kernel, X, beta)
    )
    return max(-result.fun for result in results)


def gradient(kernel: kernels.Radial, X: NDArray, beta: NDArray, z: NDArray, step: float) -> NDArray:
    """∇ρ by central differences."""
    return np.array(
        [
            (objective(kernel, X, beta, z + e) - objective(kernel, X, beta, z - e)) / (2 * step)
            for e in step * np.eye(len(z))
        ]
    )
