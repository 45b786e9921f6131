"""Small data: fits compared with scikit-learn's best solver, the first fit, and imports."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import HERE, REPEATS, Measured, Table, size
from sklearn.decomposition import KernelPCA as SklearnKernelPCA

from orthodrome import KernelPCA, KernelPGA
from orthodrome.eigen import choose_solver
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


def solver_map(estimator: Any) -> Table:
    """Time dense and krylov for small N and k; mark the one that "auto" takes."""
    ns, ks = size((50, 100, 200, 500, 1_000, 2_000, 5_000), (50, 100)), size((1, 5, 16, 50), (1, 5))
    rows = []
    for n in ns:
        X, cells = data(n), []
        for k in ks:
            solvers = ["dense", "krylov"] if n <= 2_000 else ["krylov"]
            works = {
                solver: partial(estimator(k, solver=solver, random_state=0).fit, X)
                for solver in solvers
            }
            found = timed(works, 3)
            chosen = choose_solver(n, k).solver
            cells.append(
                ", ".join(
                    f"{name[0]}{'*' if name == chosen else ''} {1e3 * statistics.median(one):.1f}"
                    for name, one in found.items()
                )
            )
        rows.append([f"{n:,}", *cells])
    return Table(
        name=f"Solvers of {estimator.__name__}, milliseconds of a fit",
        columns=["N", *(f"k = {k}" for k in ks)],
        rows=rows,
        note='d: dense, k: krylov; a star marks what solver="auto" takes.',
    )


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


# ------------------------------------------------------------------ first fits and imports

_SETUP = f"""
import json, time
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal(({size(1000, 60)}, 8)) * np.linspace(2, 0.2, 8)
y = (X[:, 0] > 0).astype(int)
shapes = np.stack([X[:, :4], X[:, 4:]], axis=2)
image = rng.standard_normal(({size(64, 24)}, {size(64, 24)}))
frames = rng.standard_normal(({size(240, 60)}, 10, 3))
"""

#: Every estimator, and the solvers and kernels with loops of their own.
FITS = {
    "KernelPCA": "from orthodrome import KernelPCA as E; E(4).fit(X)",
    "KernelPCA, hebbian": "from orthodrome import KernelPCA as E; E(4, solver='hebbian').fit(X)",
    "KernelPCA, nystroem": "from orthodrome import KernelPCA as E; E(4, n_anchors=64).fit(X)",
    "KernelPCA, shapes": (
        "from orthodrome import KernelPCA as E; E(4, kernel='veronese_whitney').fit(shapes)"
    ),
    "KernelPCA, Matérn": "from orthodrome import KernelPCA as E; E(4, kernel='matern').fit(X)",
    "KernelPGA": "from orthodrome import KernelPGA as E; E(4).fit(X)",
    "KernelPNS": "from orthodrome import KernelPNS as E; E(2, n_anchors=16).fit(X)",
    "RobustKernelPCA": "from orthodrome import RobustKernelPCA as E; E(2).fit(X)",
    "KernelMRCD": "from orthodrome import KernelMRCD as E; E().fit(X)",
    "KernelKMeans": "from orthodrome import KernelKMeans as E; E(2).fit(X)",
    "HypersphericalKMeans": "from orthodrome import HypersphericalKMeans as E; E(2).fit(X)",
    "KernelSpectralClustering": "from orthodrome import KernelSpectralClustering as E; E(2).fit(X)",
    "GeodesicMixture": "from orthodrome import GeodesicMixture as E; E(2).fit(X)",
    "PerTurbo": "from orthodrome import PerTurbo as E; E().fit(X, y)",
    "KernelRidgeRegressionClassifier": (
        "from orthodrome import KernelRidgeRegressionClassifier as E; E().fit(X, y)"
    ),
    "NestedSpheresClassifier": (
        "from orthodrome import NestedSpheresClassifier as E; E().fit(X, y)"
    ),
    "PatchDenoiser": "from orthodrome import PatchDenoiser as E; E().denoise(image)",
    "SequenceDenoiser": (
        "from orthodrome.denoising import SequenceDenoiser as E; E().denoise(frames)"
    ),
}

_TWICE = """
import warnings
warnings.simplefilter("ignore")
np.random.seed(0)
found = []
for _ in range(2):
    start = time.perf_counter()
    {fit}
    found.append(time.perf_counter() - start)
print(json.dumps(found))
"""


def child(code: str, cache: str) -> str:
    """Run code in a fresh process with its own cache of compiled loops; return what it prints."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=kept | {"NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{code}\nended with\n{done.stderr}")
    return done.stdout


def first_fits() -> Table:
    """Time two fits in a fresh process without a cache, and in another one with the cache."""
    rows = []
    for name, fit in list(FITS.items())[: size(None, 3)]:
        imported, call = fit.split("; ")
        code = _SETUP + imported + _TWICE.format(fit=call)
        with tempfile.TemporaryDirectory() as cache:
            (cold, again), (warm, _) = (json.loads(child(code, cache)) for _ in range(2))
        rows.append([name, *(f"{one:.2f}" for one in (cold, warm, again, cold - again))])
    worst = max(float(row[-1]) for row in rows)
    return Table(
        name="The first fit in a fresh process, seconds",
        columns=["", "empty cache", "filled cache", "second fit", "empty cache - second fit"],
        rows=rows,
        note=f"N = {size(1000, 60):,}. Largest difference: {worst:.2f} s; the goal was 1 s.",
    )


def imports() -> Measured:
    """Import the estimator in a fresh process."""
    seconds: dict[str, list[float]] = {"orthodrome": [], "sklearn": []}
    with tempfile.TemporaryDirectory() as cache:
        for repeat in range(-1, REPEATS):  # the first one writes the bytecode
            for package, found in seconds.items():
                start = time.perf_counter()
                child(f"from {package}.decomposition import KernelPCA", cache)
                if repeat >= 0:
                    found.append(time.perf_counter() - start)
    return Measured(
        name="from … import KernelPCA, in a fresh process",
        ours_label="orthodrome.decomposition",
        theirs_label="sklearn.decomposition",
        ours=seconds["orthodrome"],
        theirs=seconds["sklearn"],
        target=1.2,
    )


def run() -> list[Measured | Table]:
    fitted = [one for n in SIZES for one in fits(n)]
    maps = [solver_map(KernelPCA), solver_map(KernelPGA)]
    return [*fitted, *maps, *one_row(), first_fits(), imports()]
