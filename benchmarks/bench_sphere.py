"""KernelPGA compared with kernel PCA; the Karcher mean and tangent PCA compared with geomstats."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from bench_foundation import N_COMPONENTS, N, data, gamma
from bench_foundation import eigenvalue_error as flat_error
from harness import Comparison, Measured, Missing, Peer, compare, size
from scipy.sparse.linalg import eigsh
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import KernelPCA as SklearnKernelPCA
from sklearn.metrics.pairwise import rbf_kernel

from orthodrome import KernelPCA, KernelPGA
from orthodrome.eigen import Nystroem
from orthodrome.gram import DenseGram
from orthodrome.kernels import Gaussian
from orthodrome.sphere import karcher_mean

GRADIENT = 1e-10

# geomstats stops when the squared norm of the gradient is at most epsilon times the dimension. This
# epsilon is the largest power of ten with which it reached GRADIENT on these data (1e-21 ended at
# 1.04e-10); 0 stands for its default.
EPSILON = 1e-22

N_DIRECTIONS = size(10_000, 500)
MODES = 16


@cache
def reference() -> np.ndarray:
    """Eigenvalues to rounding, by plain NumPy and ARPACK on the whole matrix."""
    K = rbf_kernel(data(), gamma=gamma())
    n = len(K)
    mean = np.full(n, 1.0)
    for _ in range(40):  # the paper's steps, with τ = 1
        mean /= np.sqrt(mean @ K @ mean)
        cosines = K @ mean
        stretches = np.arccos(cosines) / np.sqrt(1 - cosines**2)
        log = stretches - (stretches @ cosines) * mean
        length = np.sqrt(max(log @ K @ log, 0.0)) / n
        mean = np.cos(length) * mean + np.sinc(length / np.pi) * log / n
    K -= np.outer(cosines, cosines)
    K *= np.outer(stretches, stretches) / n
    values = eigsh(K, N_COMPONENTS, which="LA", tol=1e-14, return_eigenvectors=False)
    return np.sort(values)[::-1]


def eigenvalue_error(model: Any) -> float:
    if isinstance(model, KernelPGA):
        return float(np.max(np.abs(model.eigenvalues_ / reference() - 1)))
    return flat_error(model)


@cache
def directions(n: int = N_DIRECTIONS) -> tuple[np.ndarray, np.ndarray]:
    """Weighted points on S⁵⁰, about a radian from their mean."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((n, 51))
    points[:, 0] += 5
    return points / np.linalg.norm(points, axis=1)[:, None], rng.integers(1, 5, n) * 1.0


def gradient_norm(point: Any) -> float:
    """‖Σ p Log_μ(y)‖ by the definition."""
    points, weights = directions()
    cosines = points @ point
    stretches = weights / weights.sum() * np.arccos(cosines) / np.sqrt(1 - cosines**2)
    return float(np.linalg.norm(stretches @ (points - np.outer(cosines, point))))


def paper_steps(K: np.ndarray, tol: float) -> int:
    """Count the paper's steps with τ = 1 until the gradient is at most tol."""
    n = len(K)
    mean = np.full(n, 1.0)
    mean /= np.sqrt(mean @ K @ mean)
    for count in range(10_000):
        cosines = K @ mean
        pulls = 1 / np.sinc(np.arccos(np.clip(cosines, -1, 1)) / np.pi) / n
        log = pulls - (pulls @ cosines) * mean
        length = np.sqrt(max(log @ K @ log, 0.0))
        if length <= tol:
            return count
        mean = np.cos(length) * mean + np.sinc(length / np.pi) * log
    return count


def steps() -> str:
    """Count steps to a gradient of 1e-12 on data of scikit-learn, ours and the paper's."""
    ours, theirs = [], []
    for load in (load_digits, load_iris, load_wine):
        X = load().data
        for factor in (0.2, 0.5, 1.0, 2.0):
            kernel = Gaussian(sigma=factor * Gaussian().fit(X).sigma_)
            K = kernel(X)
            ours.append(karcher_mean(DenseGram(K), tol=1e-12).n_iter)
            theirs.append(paper_steps(K, 1e-12))
    return (
        "Steps to a gradient of 1e-12 on scikit-learn's digits, iris and wine under Gaussian "
        "kernels, σ of 0.2 to 2 times the root mean squared distance: "
        f"{min(ours)} to {max(ours)}; the paper's with τ = 1: {min(theirs)} to {max(theirs)}."
    )


def run() -> list[Measured | Missing]:
    def ours() -> KernelPGA:
        return KernelPGA(N_COMPONENTS, random_state=0).fit(data())

    setting = f"N = {N:,}, d = 32, 16 components, Gaussian, σ² = mean"
    against_sklearn = Comparison(
        name=f"KernelPGA.fit compared with scikit-learn's kernel PCA, {setting}",
        ours=ours,
        theirs=lambda: SklearnKernelPCA(
            N_COMPONENTS, kernel="rbf", gamma=gamma(), eigen_solver="arpack", random_state=0
        ).fit(data()),
        ours_label="orthodrome.KernelPGA",
        theirs_label="sklearn KernelPCA (arpack)",
        accuracy=eigenvalue_error,
        required=1e-8,
        target=0.5,
        note=(
            "Error: largest relative error of the 16 eigenvalues, each method's own; for kernel "
            "PGA against plain NumPy and ARPACK on the whole tangent matrix."
        ),
    )
    model = ours()
    against_ourselves = Comparison(
        name=f"KernelPGA.fit compared with our KernelPCA, {setting}",
        ours=ours,
        theirs=lambda: KernelPCA(N_COMPONENTS, random_state=0).fit(data()),
        ours_label="orthodrome.KernelPGA",
        theirs_label="orthodrome.KernelPCA",
        accuracy=eigenvalue_error,
        required=1e-8,
        target=1.3,
        note=(
            f"The Karcher mean took {model.mean_n_iter_} steps of one product each, to a gradient "
            f"of {model.mean_gradient_norm_:.0e}."
        ),
    )
    return [compare(against_sklearn), compare(against_ourselves), *compared_with_geomstats()]


# ---------------------------------------------------------------------------- geomstats


def saved(folder: str, n: int = N_DIRECTIONS) -> str:
    """Write the points for the peer; return where."""
    points, weights = directions(n)
    path = Path(folder) / "data.npz"
    np.savez(path, points=points, weights=weights, modes=MODES)
    return str(path)


def compared_with_geomstats() -> list[Measured | Missing]:
    if not Peer.can_run("geomstats"):
        return [Missing("geomstats", "its environment is not there")]
    with tempfile.TemporaryDirectory() as folder:
        path = saved(folder)
        default = Peer("geomstats", path, "0")
        stops_at = gradient_norm(np.array(default.run("mean")["point"]))
        default.close()
        peer = Peer("geomstats", path, str(EPSILON))
        measured = [compare(mean_case(peer, stops_at)), compare(pca_case(peer))]
        peer.close()
    return list(measured)


def mean_case(peer: Peer, stops_at: float) -> Comparison:
    points, weights = directions()
    return Comparison(
        name=f"Weighted Karcher mean of {N_DIRECTIONS:,} points on S⁵⁰, to a gradient of 1e-10",
        ours=lambda: karcher_mean(points, weights, tol=GRADIENT).point,
        theirs=lambda: np.array(peer.run("mean")["point"]),
        ours_label="orthodrome.sphere.karcher_mean",
        theirs_label=f"geomstats {peer.version} FrechetMean (epsilon={EPSILON:g})",
        accuracy=gradient_norm,
        required=GRADIENT,
        note="Error: the norm of the gradient, recomputed. geomstats runs in a process and an "
        "environment of its own, with numpy < 2; by default it stops at a norm of "
        f"{stops_at:.2g}. {steps()}",
    )


@cache
def tangent_variances(n: int = N_DIRECTIONS) -> np.ndarray:
    """Variances along the leading modes, by a singular value decomposition at the mean."""
    points = directions(n)[0]
    mean = karcher_mean(points, tol=1e-14).point
    cosines = points @ mean
    logs = (points - np.outer(cosines, mean)) * (np.arccos(cosines) / np.sqrt(1 - cosines**2))[
        :, None
    ]
    return np.linalg.svd(logs, compute_uv=False)[:MODES] ** 2 / n


def variance_error(result: Any, n: int = N_DIRECTIONS) -> float:
    return float(np.max(np.abs(np.asarray(result) / tangent_variances(n) - 1)))


def our_tangent_pca(n: int = N_DIRECTIONS) -> np.ndarray:
    """With the linear kernel, and as many anchors as coordinates, it is exact."""
    points = directions(n)[0]
    solver = Nystroem(n_anchors=points.shape[1], random_state=0)
    return KernelPGA(MODES, kernel="linear", solver=solver).fit(points).eigenvalues_


def their_tangent_pca(peer: Peer, n: int = N_DIRECTIONS) -> np.ndarray:
    return np.array(peer.run(f"pca {n}")["variances"]) * (n - 1) / n


def pca_case(peer: Peer) -> Comparison:
    return Comparison(
        name=f"Tangent PCA of {N_DIRECTIONS:,} points on S⁵⁰, {MODES} modes",
        ours=our_tangent_pca,
        theirs=lambda: their_tangent_pca(peer),
        ours_label="orthodrome.KernelPGA(kernel='linear', solver='nystroem'), 51 anchors",
        theirs_label=f"geomstats {peer.version} TangentPCA (epsilon={EPSILON:g})",
        accuracy=variance_error,
        required=1e-8,
        note="Error: largest relative error of the variances, against a singular value "
        "decomposition of the Log maps at the mean. The linear kernel with as many anchors as "
        "coordinates leaves nothing out. geomstats in a process of its own, as above.",
    )
