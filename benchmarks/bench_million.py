"""Kernel PGA of a million points on disk, compared with one pass over their features."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import numpy as np
from harness import REPEATS, Measured, peak_anonymous_memory, size

SMALL, LARGE = size((100_000, 1_000_000), (2_000, 20_000))
D, ANCHORS, MODES = 32, size(512, 32), size(16, 4)
BLOCK = 2048  # rows of the pass: the fastest of 1,024 to 16,384 in a trial


def write_points(path: Path, n: int) -> None:
    """Twenty groups, block by block: never more than one of them in memory."""
    rng = np.random.default_rng(2)
    centers = 3.0 * rng.standard_normal((20, D))
    points = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, D))
    for first in range(0, n, 50_000):
        rows = points[first : first + 50_000]
        rows[:] = centers[rng.integers(20, size=len(rows))] + rng.standard_normal(rows.shape)
    points.flush()


# A first fit of a few rows has compiled loops loaded; both sides read the same file.
_FIT = f"""
import numpy as np
from orthodrome import KernelPGA
from orthodrome.eigen import Nystroem
X = np.load({{path!r}}, mmap_mode="r")[:{{n}}]
def fit(rows):
    solver = Nystroem(n_anchors={ANCHORS}, random_state=0)
    return KernelPGA({MODES}, solver=solver, storage="recompute").fit(rows)
fit(X[:2000])
"""
_PASS = """
import bench_million
import numpy as np
X = np.load({path!r}, mmap_mode="r")[:{n}]
anchors = bench_million.pass_anchors(X)
bench_million.one_pass(X[:20000], *anchors)
"""


def pass_anchors(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Any rows, the map of their kernel values to features, and a scale: not timed."""
    L = np.asarray(X[:: len(X) // ANCHORS][:ANCHORS])
    spread = 2 * float(np.var(X[:20_000], axis=0, dtype=np.float64).sum())
    d2 = ((L[:, None].astype(np.float64) - L[None]) ** 2).sum(axis=-1)
    values = np.exp(-0.5 * d2 / spread) + 1e-6 * np.eye(len(L))
    return L, np.linalg.inv(np.linalg.cholesky(values)).T.astype(np.float32), spread


def one_pass(X: np.ndarray, L: np.ndarray, decoder: np.ndarray, spread: float) -> float:
    """Compute the features of all points, block by block, and keep nothing of them."""
    squares, total = np.einsum("ij,ij->i", L, L), 0.0
    scale = np.float32(-0.5 / spread)
    for first in range(0, len(X), BLOCK):
        block = X[first : first + BLOCK]
        d2 = np.einsum("ij,ij->i", block, block)[:, None] + squares - 2 * block @ L.T
        total += float((np.exp(scale * np.maximum(d2, 0)) @ decoder)[0, 0])
    return total


def sides(path: Path, n: int) -> dict[str, tuple[str, str]]:
    """Setup and work of the processes, by what they do."""
    where = {"path": str(path)}
    return {
        "large": (_FIT.format(n=n, **where), "fit(X)"),
        "pass": (_PASS.format(n=n, **where), "bench_million.one_pass(X, *anchors)"),
        "small": (_FIT.format(n=SMALL, **where), "fit(X)"),
        "small pass": (_PASS.format(n=SMALL, **where), "bench_million.one_pass(X, *anchors)"),
    }


def measured(names: tuple[str, ...]) -> dict[str, list[dict[str, float]]]:
    """Run the processes in turn."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.npy"
        n = LARGE if "large" in names else SMALL
        write_points(path, n)
        for _ in range(REPEATS):
            for name in names:
                runs[name].append(peak_anonymous_memory(*sides(path, n)[name]))
    return runs


def compared_with_a_pass(n: int, fits: list, passes: list) -> Measured:
    return Measured(
        name=f"KernelPGA of {n:,} x {D} float32 points on disk, {ANCHORS} anchors, {MODES} "
        "modes, compared with one pass over them",
        ours_label="orthodrome.KernelPGA, the whole fit, choice of anchors included",
        theirs_label="one NumPy pass that only computes the features",
        ours=[run["seconds"] for run in fits],
        theirs=[run["seconds"] for run in passes],
        target=12.0,
        note="The other side does only a part of the work, as a unit of comparison. Points are "
        "memory-mapped, features are recomputed for each pass over them "
        "(storage='recompute'); each run in a fresh process after a small fit, or pass.",
    )


def memory(n: int, fits: list, passes: list) -> Measured:
    above = statistics.median(run["bytes"] for run in fits) / 2**30
    return Measured(
        name=f"Anonymous memory of KernelPGA of {n:,} points, as above",
        ours_label="orthodrome.KernelPGA",
        theirs_label="one NumPy pass that only computes the features",
        ours=[run["total"] for run in fits],
        theirs=[run["total"] for run in passes],
        unit="bytes",
        limit=2.0 * 2**30,
        note="The peak of the whole process, imports included; the points are a mapped file. "
        f"Above the process before the fit: {above:.3g} GiB.",
    )


def run(full: bool = False) -> list[Measured]:
    if not full:
        runs = measured(("small", "small pass"))
        return [compared_with_a_pass(SMALL, runs["small"], runs["small pass"])]
    runs = measured(("large", "pass", "small", "small pass"))
    tenfold = Measured(
        name=f"KernelPGA of {LARGE:,} points compared with {SMALL:,} of them",
        ours_label=f"N = {LARGE:,}",
        theirs_label=f"N = {SMALL:,}",
        ours=[run["seconds"] for run in runs["large"]],
        theirs=[run["seconds"] for run in runs["small"]],
        target=12.0,
        note="Both sides are ours, with the same settings, in the same turn.",
    )
    return [
        compared_with_a_pass(LARGE, runs["large"], runs["pass"]),
        memory(LARGE, runs["large"], runs["pass"]),
        tenfold,
        compared_with_a_pass(SMALL, runs["small"], runs["small pass"]),
    ]
