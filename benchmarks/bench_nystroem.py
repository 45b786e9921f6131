"""Nyström features compared with scikit-learn's, at equal accuracy; how long anchors take."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from functools import cache

import numpy as np
from harness import HERE, REPEATS, Comparison, Measured, compare, size
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem as PeerNystroem
from sklearn.pipeline import Pipeline, make_pipeline

from orthodrome import KernelPCA
from orthodrome._core.threads import single_threaded_blas
from orthodrome.coordinates import Anchors
from orthodrome.eigen import Krylov, Nystroem
from orthodrome.kernels import Gaussian

N, D, K = size(10_000, 500), 16, 16
ALLOWED = 0.01  # of the variance that exact kernel PCA captures may be missing
COUNTS = (*range(16, 256, 8), *range(256, 512, 32), *range(512, 2049, 128))
SEEDS = range(3)


@cache
def groups() -> np.ndarray:
    """One large group, and thirty small ones that lie apart."""
    rng = np.random.default_rng(0)
    label = np.where(rng.random(N) < 0.9, 0, rng.integers(1, 31, size=N))
    centers = 2.5 * rng.standard_normal((31, D))
    centers[0] = 0
    return centers[label] + 0.5 * rng.standard_normal((N, D))


@cache
def cloud() -> np.ndarray:
    """One group, whose spread falls from axis to axis."""
    return np.random.default_rng(1).standard_normal((N, D)) * np.linspace(2, 0.2, D)


DATA = {"31 groups of uneven size": groups, "one group": cloud}


@cache
def sigma(name: str) -> float:
    return float(Gaussian().fit(DATA[name]()).sigma_)


@cache
def exact_variance(name: str) -> float:
    solver = Krylov(tol=1e-8, random_state=0)
    model = KernelPCA(K, kernel=Gaussian(sigma=sigma(name)), solver=solver).fit(DATA[name]())
    return float(model.eigenvalues_.sum()) / N


def ours(name: str, n_anchors: int, seed: int = 0) -> np.ndarray:
    solver = Nystroem(n_anchors=n_anchors, random_state=seed)
    model = KernelPCA(K, kernel=Gaussian(sigma=sigma(name)), solver=solver)
    return model.fit_transform(DATA[name]())


def anchors(name: str, n_anchors: int) -> Anchors:
    """Choose the anchors as the fit does, and nothing else."""
    X = DATA[name]()
    with single_threaded_blas():
        solver = Nystroem(n_anchors=n_anchors, random_state=0)
        return solver.anchors_of(Gaussian(sigma=sigma(name)).fit(X), X, K)


def peer(name: str, n_anchors: int, seed: int = 0) -> Pipeline:
    gamma = 0.5 / sigma(name) ** 2
    features = PeerNystroem(gamma=gamma, n_components=n_anchors, random_state=seed)
    return make_pipeline(features, PCA(K, random_state=seed))


def theirs(name: str, n_anchors: int, seed: int = 0) -> np.ndarray:
    return peer(name, n_anchors, seed).fit_transform(DATA[name]())


def missing(name: str, embedding: np.ndarray) -> float:
    """Return the part of the exact method's variance that the components do not capture.

    Both sides project the points on orthonormal components in feature space.
    """
    return 1.0 - float(embedding.var(axis=0).sum()) / exact_variance(name)


@cache
def enough(name: str, side: str) -> int:
    """Return the least of the numbers of anchors at which a side is accurate enough."""
    fit = {"ours": ours, "theirs": theirs}[side]
    for count in COUNTS:
        if all(missing(name, fit(name, count, seed)) <= ALLOWED for seed in SEEDS):
            return count
    return COUNTS[-1]


def fit_seconds(side: str, name: str, count: int) -> float:
    """Return the median seconds of nine fits, after three to warm up."""
    fit, seconds = {"ours": ours, "theirs": theirs}[side], []
    for _ in range(12):
        start = time.perf_counter()
        fit(name, count)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[3:])


def alone(side: str, name: str, count: int) -> float:
    """Return :func:`fit_seconds`, measured in a process of its own."""
    script = f"import bench_nystroem as b; print(b.fit_seconds({side!r}, {name!r}, {count}))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    return float(done.stdout)


def at_equal_accuracy() -> list[Measured]:
    rows = []
    for name in DATA:
        m, peer_m = enough(name, "ours"), enough(name, "theirs")
        runs = [(alone("ours", name, m), alone("theirs", name, peer_m)) for _ in range(REPEATS)]
        rows.append(
            Measured(
                name=f"KernelPCA(solver='nystroem') of {name}, N = {N:,}, d = {D}, {K} "
                f"components, {ALLOWED:.0%} of the exact variance may be missing",
                ours_label=f"orthodrome, {m} anchors, {way(name, m)}",
                theirs_label=f"sklearn Nystroem + PCA, {peer_m} anchors",
                ours=[run[0] for run in runs],
                theirs=[run[1] for run in runs],
                ours_error=missing(name, ours(name, m)),
                theirs_error=missing(name, theirs(name, peer_m)),
                required=ALLOWED,
                target=1.0,
                note="Each side has the smallest number of anchors, from a list, that reaches the "
                f"accuracy with {len(SEEDS)} seeds; the search for it is not timed. Each run is "
                "the median of nine fits in a process of its own. In a common process, page faults "
                "on memory that the other side has freed decide the result.",
            )
        )
    return rows


def way(name: str, n_anchors: int) -> str:
    """Return how the anchors are chosen."""
    return anchors(name, n_anchors).choice.split(":")[0]


def choice_of_anchors() -> list[Measured]:
    rows = []
    for name in DATA:
        m = enough(name, "ours")
        rows.append(
            compare(
                Comparison(
                    name=f"The choice of {m} anchors of {name}, N = {N:,}, d = {D}, compared with "
                    "the whole fit",
                    ours=lambda name=name, m=m: anchors(name, m),  # type: ignore[misc]
                    theirs=lambda name=name, m=m: ours(name, m),  # type: ignore[misc]
                    ours_label=f"choice of the anchors, {way(name, m)}",
                    theirs_label="KernelPCA(solver='nystroem'), choice included",
                    target=0.5,
                )
            )
        )
    return rows


def run() -> list[Measured]:
    return [*at_equal_accuracy(), *choice_of_anchors()]
