"""Kernel ridge regression on shapes: its search, compared with a loop over pairs and SVC.

On Passiflora leaves (ORTHODROME_DATA, else ../shared/data next to the repository).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from harness import Comparison, Measured, Missing, compare, data_folder, size
from sklearn.svm import SVC

from orthodrome import KernelRidgeRegressionClassifier, datasets
from orthodrome.kernels import VeroneseWhitney

SHARE, N_SEARCHED = size((0.6, 1000), (0.1, 100))
ALPHA = 0.01
ALPHAS = np.geomspace(1e-6, 10.0, 50)
FACTORS = np.geomspace(0.25, 4.0, 10)


@cache
def leaves() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A share of each class to learn from, the others to test; landmarks and classes of both."""
    found = datasets.load("passiflora", data_home=data_folder(), download_if_missing=False)
    rng = np.random.default_rng(0)
    train = np.zeros(len(found.target), dtype=bool)
    for label in np.unique(found.target):
        rows = rng.permutation(np.flatnonzero(found.target == label))
        train[rows[: round(SHARE * len(rows))]] = True
    X, y = found.data, found.target
    return X[train], y[train], X[~train], y[~train]


@cache
def sigma() -> float:
    """The σ that the rule finds: not searched for by either side."""
    return float(VeroneseWhitney().fit(leaves()[0]).sigma_)


def error(predicted: Any) -> float:
    """The share of leaves in the wrong class."""
    return float(np.mean(predicted != leaves()[3]))


# ---------------------------------------------------------------------------- the search


def searched_leaves() -> tuple[np.ndarray, np.ndarray]:
    X, y, _, _ = leaves()
    chosen = np.random.default_rng(1).permutation(len(y))[:N_SEARCHED]
    return X[chosen], y[chosen]


def searched() -> KernelRidgeRegressionClassifier:
    X, y = searched_leaves()
    model = KernelRidgeRegressionClassifier(
        "veronese_whitney", alphas=ALPHAS, sigmas=FACTORS * sigma()
    )
    return model.fit(X, y)


def ten_plain_fits() -> KernelRidgeRegressionClassifier:
    X, y = searched_leaves()
    for factor in FACTORS:
        kernel = VeroneseWhitney(float(factor * sigma()))
        model = KernelRidgeRegressionClassifier(kernel, alpha=ALPHA).fit(X, y)
    return model


def test_error(model: KernelRidgeRegressionClassifier) -> float:
    return error(model.predict(leaves()[2]))


def search() -> Measured:
    return compare(
        Comparison(
            name=f"KRRC: λ of 50 values and σ of 10 by leave-one-out, {N_SEARCHED:,} leaves",
            ours=searched,
            theirs=ten_plain_fits,
            ours_label="one fit with alphas and sigmas",
            theirs_label="ten fits with λ given, one for each σ",
            accuracy=test_error,
            required=0.5,
            target=3.0,
            note="Error: fraction of test leaves in the wrong class (ten fits: the last, with the "
            "largest σ).",
        )
    )


# ---------------------------------------------------------------------------- fit and predict


def ours(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    new = leaves()[2]
    kernel = VeroneseWhitney(sigma())
    return KernelRidgeRegressionClassifier(kernel, alpha=ALPHA).fit(X, y).predict(new)


def preshapes(X: np.ndarray) -> np.ndarray:
    Z = X[..., 0] + 1j * X[..., 1]
    Z = Z - Z.mean(axis=1, keepdims=True)
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def loop_over_pairs(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The formulas as they stand, one kernel value after the other."""
    U, V, scale = preshapes(X), preshapes(leaves()[2]), sigma() ** 2
    residuals = []
    for label in np.unique(y):
        own = U[y == label]
        K = np.empty((len(own), len(own)))
        for i in range(len(own)):
            for j in range(i + 1):
                K[i, j] = K[j, i] = np.exp(-2 * (1 - abs(np.vdot(own[i], own[j])) ** 2) / scale)
        k = np.empty((len(own), len(V)))
        for i in range(len(own)):
            for j in range(len(V)):
                k[i, j] = np.exp(-2 * (1 - abs(np.vdot(own[i], V[j])) ** 2) / scale)
        beta = np.linalg.solve(K + ALPHA * np.eye(len(own)), k)
        residuals.append(1 - 2 * np.sum(beta * k, axis=0) + np.sum(beta * (K @ beta), axis=0))
    return np.unique(y)[np.argmin(residuals, axis=0)]


def support_vectors(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """scikit-learn's, with Gram matrices by NumPy's products."""
    U, V, scale = preshapes(X), preshapes(leaves()[2]), sigma() ** 2
    gram = np.exp(-2 * (1 - np.abs(U @ U.conj().T) ** 2) / scale)
    cross = np.exp(-2 * (1 - np.abs(V @ U.conj().T) ** 2) / scale)
    return SVC(C=100.0, kernel="precomputed").fit(gram, y).predict(cross)


def fits() -> list[Measured]:
    train, test, learn = len(leaves()[0]), len(leaves()[2]), leaves()[:2]
    work = f"KRRC, VW Gaussian: fit to {train:,} leaves and predict the other {test:,}"
    return [
        compare(
            Comparison(
                name=f"{work}, compared with {name}",
                ours=lambda: ours(*learn),
                theirs=lambda theirs=theirs: theirs(*learn),  # type: ignore[misc]
                ours_label=f"KernelRidgeRegressionClassifier, λ = {ALPHA}",
                theirs_label=label,
                accuracy=error,
                required=0.2,
                target=target,
                note="The same σ. Error: fraction of test leaves in the wrong class.",
            )
        )
        for name, theirs, label, target in (
            ("a loop over pairs", loop_over_pairs, "np.vdot for each pair, np.linalg.solve", 0.1),
            ("SVC", support_vectors, "Gram matrices by NumPy, SVC(kernel='precomputed')", 1.0),
        )
    ]


def run() -> list[Measured | Missing]:
    try:
        leaves()
    except FileNotFoundError:
        reason = f"passiflora is not in {data_folder()}; set ORTHODROME_DATA"
        return [Missing("Passiflora leaves", reason)]
    return [search(), *fits()]
