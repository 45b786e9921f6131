"""Time two versions of the library against each other, turn by turn in one run.

    python benchmarks/compare_versions.py REVISION [case ...] [--repeats 7]

REVISION is a git revision; the other version is the working tree. Each version runs in its own
process. For every repeat the old one is timed, then the new one, and the table gives medians with
the range. Run it with nothing else on the machine.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]


def rows(n: int, d: int = 32) -> Any:
    return np.random.default_rng(0).standard_normal((n, d))


def cases() -> dict[str, Callable[[], Any]]:
    """Return what is timed, by name. Data are made before the clock starts."""
    import dask.array as da
    from sklearn.base import clone
    from sklearn.datasets import load_digits
    from sklearn.decomposition import KernelPCA as Peer

    import orthodrome as o

    parameters = o.KernelPCA().get_params()
    few_anchors = {("n_anchors" if "n_anchors" in parameters else "n_landmarks"): 256}
    X, large = {n: rows(n) for n in (200, 500, 1000, 2000, 4000)}, rows(50_000)
    digits, labels = load_digits(return_X_y=True)
    few = digits[:300]
    batches = np.split(large, 10)
    blocks = da.from_array(large, chunks=(10_000, 32))
    found: dict[str, Callable[[], Any]] = {}
    for n, data in X.items():
        gamma = 0.25 / data.var(axis=0).sum()  # as the default, sigma="mean"
        arpack = Peer(16, kernel="rbf", gamma=gamma, eigen_solver="arpack", random_state=0)
        found[f"scikit-learn ARPACK, N = {n}"] = lambda model=arpack, data=data: model.fit(data)
        for solver in ("auto", "krylov"):
            name = f"KernelPCA(16, {solver}), N = {n}"
            model = o.KernelPCA(16, solver=solver, random_state=0)
            found[name] = lambda model=model, data=data: model.fit(data)
        model = o.KernelPGA(16, random_state=0)
        found[f"KernelPGA(16), N = {n}"] = lambda model=model, data=data: model.fit(data)
    for make in (o.KernelPCA, o.KernelPGA):
        model, name = make(16, random_state=0, **few_anchors), make.__name__
        found[f"{name}, 256 anchors, memory"] = lambda model=model: model.fit(large)
        found[f"{name}, 256 anchors, batches"] = lambda model=model: model.fit(batches)
        found[f"{name}, 256 anchors, Dask"] = lambda model=model: model.fit(blocks)
        again = clone(model)
        found[f"{name}, 256 anchors, transform"] = lambda model=again: (
            model if hasattr(model, "kernel_") else model.fit(large)
        ).transform(large)
    partial = o.KernelPCA(16, random_state=0, **few_anchors)
    found["KernelPCA, 256 anchors, partial_fit"] = lambda: [
        model.partial_fit(batch) for model in [clone(partial)] for batch in batches
    ]
    hebbian = o.KernelPGA(16, solver="hebbian", random_state=0, max_iter=3, tol=1.0)
    found["KernelPGA(16, hebbian), digits"] = lambda: hebbian.fit(digits)
    models = (
        o.KernelKMeans(10, random_state=0),
        o.HypersphericalKMeans(10, random_state=0),
        o.KernelSpectralClustering(10, random_state=0),
        o.GeodesicMixture(10, random_state=0),
        o.RobustKernelPCA(5),
    )
    for model in models:
        found[f"{type(model).__name__}, digits"] = lambda model=model: model.fit(digits)
    found["KernelPNS(2, great), 300 digits"] = lambda: o.KernelPNS(2, sphere="great").fit(few)
    for make in (o.PerTurbo, o.KernelRidgeRegressionClassifier):
        found[f"{make.__name__}, digits"] = lambda make=make: make().fit(digits, labels)
        found[f"{make.__name__}, 300 digits"] = lambda make=make: make().fit(few, labels[:300])
    return found


def work() -> None:
    """Read names of cases, write seconds and a sum of the answer; first, write all names."""
    warnings.simplefilter("ignore")
    known, warm = cases(), set()
    print("\t".join(known), flush=True)
    for line in sys.stdin:
        run = known[line.rstrip("\n")]
        if line not in warm:
            warm.add(line)
            run()  # compile, and read what is read once
        start = time.perf_counter()
        found = run()
        print(time.perf_counter() - start, answer(found), flush=True)


def answer(model: Any) -> float:
    """Return one number that sums up a fit, to see whether both versions found the same."""
    if isinstance(model, list):
        model = model[-1]
    for name in ("eigenvalues_", "dispersions_", "inertia_", "lower_bound_", "loo_score_"):
        if hasattr(model, name):
            return float(np.sum(getattr(model, name)))
    return float(np.abs(np.asarray(getattr(model, "embedding_", model))).sum())


class Version:
    """A process that imports the library from one folder."""

    def __init__(self, source: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work"],
            env=os.environ | {"PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.cases = self._line().split("\t")

    def _line(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            sys.exit("A version failed; its error is above.")
        return line.rstrip("\n")

    def seconds(self, case: str) -> tuple[float, float]:
        time.sleep(0.2)  # BLAS threads of the other version keep a core busy for a while
        print(case, file=self.process.stdin, flush=True)
        seconds, found = self._line().split()
        return float(seconds), float(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision")
    parser.add_argument("cases", nargs="*", help="parts of names; default: all")
    parser.add_argument("--repeats", type=int, default=7)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", chosen.revision, "src"], cwd=ROOT, check=True, capture_output=True
        )
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as source:
            source.extractall(folder, filter="data")
        versions = [Version(Path(folder) / "src"), Version(ROOT / "src")]
        print("| case | old, ms | new, ms | new / old |\n|---|---|---|---|")
        for case in versions[1].cases:
            if chosen.cases and not any(part in case for part in chosen.cases):
                continue
            times = [[v.seconds(case) for v in versions] for _ in range(chosen.repeats)]
            old, new = ([1e3 * pair[i][0] for pair in times] for i in range(2))
            cells = [
                f"{statistics.median(each):.1f} ({min(each):.1f} to {max(each):.1f})"
                for each in (old, new)
            ]
            ratio = statistics.median(new) / statistics.median(old)
            one, other = (found for _, found in times[-1])
            same = abs(one - other) <= 1e-6 * abs(one)
            note = "" if same else f" (answers differ: {one:.9g}, {other:.9g})"
            print(f"| {case} | {cells[0]} | {cells[1]} | {ratio:.2f}{note} |", flush=True)


if __name__ == "__main__":
    work() if sys.argv[1:] == ["--work"] else main()
