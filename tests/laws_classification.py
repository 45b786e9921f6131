"""Data, configurations and naive oracles for the classifiers by class residuals."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

from orthodrome import KernelRidgeRegressionClassifier, PerTurbo
from orthodrome.kernels import Gaussian

SIGMA = 1.5
KERNEL = Gaussian(sigma=SIGMA)

PERTURBO = {
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
RIDGE = {
    "loo": {},
    "loo, relative": {"alpha_scale": "relative"},
    "absolute": {"alpha": 0.03},
    "interpolating": {"alpha": 0.0},
    "scales": {"sigmas": [0.5, 1.5, 4.0]},
    "automatic": {"kernel": "auto"},
    "few of each class": {"subspace_size": 9, "random_state": 0},
    "balanced": {"class_weight": "balanced"},
    "weighted": {"class_weight": {"ash": 3.0, "oak": 0.5}, "alpha": 0.1},
}
CASES = {f"PerTurbo: {name}": (PerTurbo, options) for name, options in PERTURBO.items()} | {
    f"ridge: {name}": (KernelRidgeRegressionClassifier, options) for name, options in RIDGE.items()
}
every_case = pytest.mark.parametrize(("Classifier", "options"), CASES.values(), ids=list(CASES))
#: One case of each way to compute residuals, for properties that hardly depend on the options.
QUICK = ["PerTurbo: loo", "PerTurbo: truncated", "PerTurbo: preimage", "PerTurbo: mean"]
QUICK += ["ridge: loo", "ridge: scales", "ridge: few of each class", "ridge: balanced"]
some_cases = pytest.mark.parametrize(
    ("Classifier", "options"),
    [
        pytest.param(*case, marks=[] if name in QUICK else pytest.mark.slow)
        for name, case in CASES.items()
    ],
    ids=list(CASES),
)


def fit(Classifier, X, y, *, sample_weight=None, kernel=KERNEL, **options):
    return Classifier(kernel, **options).fit(X, y, sample_weight=sample_weight)


def own_column(residuals, model, y):
    """Return the residuals of points from their own class."""
    return residuals[np.arange(len(y)), np.searchsorted(model.classes_, y)]


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def three_classes(n: int = 60, seed: int = 0, dtype=np.float64) -> tuple[NDArray, NDArray]:
    """Return three overlapping groups of different sizes, with names."""
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
    """Return k(x, x) - kᵀ(K + α)⁻¹k by solving, or by the pseudo-inverse."""
    if alpha == 0:
        return float(own - k @ np.linalg.pinv(K, rcond=1e-12, hermitian=True) @ k)
    return float(own - k @ np.linalg.solve(K + alpha * np.eye(len(K)), k))


def naive_ridge(K: NDArray, k: NDArray, own: float, alpha: float) -> float:
    """Return ‖Φ(x) - Σ a_n Φ(x_n)‖² with the coefficients of ridge regression."""
    if alpha == 0:
        return naive_perturbation(K, k, own, 0.0)
    a = np.linalg.solve(K + alpha * np.eye(len(K)), k)
    return float(own - 2 * a @ k + a @ K @ a)


def naive_truncation(K: NDArray, k: NDArray, own: float, n_components: int) -> float:
    """Return the squared distance to the leading components, one at a time."""
    values, vectors = np.linalg.eigh(K)
    for value, vector in list(zip(values, vectors.T, strict=True))[::-1][:n_components]:
        own -= (vector @ k) ** 2 / value
    return float(own)
