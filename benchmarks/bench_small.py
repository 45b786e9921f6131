"""Small data: fits and `transform` of one row, compared with scikit-learn's best solver."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import HERE, REPEATS, Measured, size
from sklearn.decomposition import KernelPCA as SklearnKernelPCA

from orthodrome import KernelPCA, KernelPGA
from orthodrome.kernels import Gaussian

K, D = 16, 32
SIZES = size((200, 500, 1_000, 2_000, 4_000, 10_000), (60, 120))


def data(n: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((n, D)) * np.linspace(2, 0.2, D)


def timed(works: dict[str, Callable[[], Any]], repeats: int = REPEATS) -> dict[str, list[float]]:
    """Run all works once to warm up, then `repeats` times in turn; return the seconds.

    After a product, OpenBLAS's threads keep a core busy for some milliseconds, in case another one
    follows. Therefore there is a pause before each work, and one run of it that is not timed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(repeats):
        for name, work in works.items():
            time.sleep(0.1)
            work()
            start = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - start)
    return seconds


# ------------------------------------------------------------------ fits


def sklearn_solvers(n: int) -> list[str]:
    """LAPACK on the whole of a large matrix never is the best, and takes minutes."""
    return ["dense", "arpack", "randomized"] if n <= 2_000 else ["arpack", "randomized"]


def fit_of(name: str, n: int) -> Callable[[], Any]:
    """Return the fit of an estimator of ours, or of scikit-learn with the solver `name`."""
    X = data(n)
    if name in (KernelPCA.__name__, KernelPGA.__name__):
        estimator = {one.__name__: one for one in (KernelPCA, KernelPGA)}[name]
        return lambda: estimator(K, random_state=0).fit(X)
    gamma = 0.5 / Gaussian().fit(X).sigma_ ** 2
    model = SklearnKernelPCA(K, kernel="rbf", gamma=gamma, eigen_solver=name, random_state=0)
    return lambda: model.fit(X)


def median_seconds(name: str, n: int) -> float:
    """Return the median seconds of fits in this process, after a few to warm up."""
    fit, seconds = fit_of(name, n), []
    warm, count = (5, 25) if n <= 2_000 else (1, 3)
    for _ in range(warm + count):
        start = time.perf_counter()
        fit()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[warm:])


def alone(name: str, n: int) -> float:
    """Return :func:`median_seconds`, measured in a process of its own."""
    script = f"import bench_small as b; print(b.median_seconds({name!r}, {n}))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    return float(done.stdout)


def fits(n: int) -> list[Measured]:
    """Compare both estimators with the fastest of scikit-learn's solvers that is as accurate."""
    exact = KernelPCA(K, tol=1e-13, solver="krylov", random_state=7).fit(data(n)).eigenvalues_

    def error(name: str) -> float:
        return float(np.max(np.abs(fit_of(name, n)().eigenvalues_ / exact - 1)))

    errors = {solver: error(solver) for solver in sklearn_solvers(n)}
    accurate = {solver: fit_of(solver, n) for solver in errors if errors[solver] <= 1e-8}
    quick = timed(accurate, 3)
    best = min(quick, key=lambda solver: statistics.median(quick[solver]))
    targets = {"KernelPCA": 0.33 if n >= 10_000 else 1.0, "KernelPGA": 1.2 if n <= 500 else 1.0}
    runs = [{name: alone(name, n) for name in (*targets, best)} for _ in range(REPEATS)]
    return [
        Measured(
            name=f"{name}({K}).fit, N = {n:,}, d = {D}, Gaussian",
            ours_label=f"orthodrome.{name}",
            theirs_label=f"sklearn KernelPCA ({best}), the fastest of its accurate solvers",
            ours=[run[name] for run in runs],
            theirs=[run[best] for run in runs],
            ours_error=error(name) if name == "KernelPCA" else None,
            theirs_error=errors[best],
            required=1e-8,
            target=target,
            note="Error: largest relative error of the eigenvalues. Each run is in a process of "
            "its own: the median of 25 fits, or of 3 from N = 4,000.",
        )
        for name, target in targets.items()
    ]


def one_row() -> list[Measured]:
    """`transform` of a single row."""
    results = []
    for n in size((200, 2_000), (60,)):
        X = data(n)
        model = SklearnKernelPCA(K, kernel="rbf", gamma=0.01, eigen_solver="arpack").fit(X)
        works: dict[str, Callable[[], Any]] = {
            "sklearn": lambda model=model, X=X: [model.transform(X[:1]) for _ in range(20)]
        }
        for estimator in (KernelPCA, KernelPGA):
            fitted = estimator(K, random_state=0).fit(X)
            works[estimator.__name__] = lambda fitted=fitted, X=X: [
                fitted.transform(X[:1]) for _ in range(20)
            ]
        seconds = {name: [one / 20 for one in all_] for name, all_ in timed(works).items()}
        results += [
            Measured(
                name=f"{name}({K}).transform of one row, N = {n:,}",
                ours_label=f"orthodrome.{name}",
                theirs_label="sklearn KernelPCA",
                ours=seconds[name],
                theirs=seconds["sklearn"],
            )
            for name in ("KernelPCA", "KernelPGA")
        ]
    return results


def run() -> list[Measured]:
    return [*(one for n in SIZES for one in fits(n)), *one_row()]
