"""Clustering of directions, such as embeddings, compared with scikit-learn's k-means."""

from __future__ import annotations

import statistics
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
from harness import REPEATS, Comparison, Measured, compare, peak_anonymous_memory, size
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from orthodrome import GeodesicMixture, HypersphericalKMeans, KernelKMeans

D, KAPPA = size((384, 180.0), (16, 90.0))
N, GROUPS = size((10_000, 50), (1_000, 5))
SMALL, LARGE, MANY_GROUPS = size((100_000, 1_000_000, 100), (3_000, 10_000, 5))
PASSES = 5
BLOCK = 50_000
SEED = {"n_init": 1, "random_state": 0}
ON_SPHERE = {"kernel": "cosine", "centers": "intrinsic"}


def draw(n: int, groups: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws from von Mises-Fisher distributions about random directions, and their groups."""
    centers = np.random.default_rng(0).standard_normal((groups, D))
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    y, X = rng.integers(groups, size=n), np.empty((n, D), dtype=np.float32)
    for group, center in enumerate(centers):
        members = np.flatnonzero(y == group)
        X[members] = scipy.stats.vonmises_fisher(center, KAPPA, seed=rng).rvs(len(members))
    return X, y


@cache
def points() -> tuple[np.ndarray, np.ndarray]:
    return draw(N, GROUPS, 1)


def error(model: Any) -> float:
    """1 - the adjusted Rand index of the labels and the groups."""
    return 1 - adjusted_rand_score(points()[1], model.labels_)


def in_memory() -> list[Measured]:
    vmf = {"kernel": "cosine", "density": "von-mises-fisher"}
    models = {
        "HypersphericalKMeans": HypersphericalKMeans(GROUPS, **ON_SPHERE, **SEED),
        "KernelKMeans": KernelKMeans(GROUPS, kernel="cosine", **SEED),
        "GeodesicMixture, von Mises-Fisher": GeodesicMixture(GROUPS, **vmf, **SEED),
    }
    measured = []
    for name, model in models.items():
        for dtype in (np.float32, np.float64):
            X = points()[0].astype(dtype)
            case = Comparison(
                name=f"{name} of {N:,} x {D} {X.dtype} directions, {GROUPS} clusters, one start",
                ours=lambda model=model, X=X: model.fit(X),  # type: ignore[misc]
                theirs=lambda X=X: KMeans(GROUPS, **SEED).fit(X),  # type: ignore[misc]
                ours_label=f"orthodrome.{name}",
                theirs_label="sklearn KMeans",
                accuracy=error,
                required=0.2,
                target=None if "Mixture" in name else 1.2,
                note="Draws from von Mises-Fisher distributions. Error: 1 - adjusted Rand index.",
            )
            measured.append(compare(case))
    return measured


# ---------------------------------------------------------------------------- on disk


def write_points(folder: Path, n: int) -> None:
    """Write points and groups, block by block."""
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float32, shape=(n, D))
    y = np.empty(n, dtype=np.int32)
    for first in range(0, n, BLOCK):
        rows = slice(first, min(first + BLOCK, n))
        X[rows], y[rows] = draw(rows.stop - first, MANY_GROUPS, first)
    X.flush()
    np.save(folder / "y.npy", y)


_SETUP = """
import warnings
import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score
from orthodrome import HypersphericalKMeans
warnings.simplefilter("ignore")
X, y = np.load({folder!r} + "/X.npy", mmap_mode="r"), np.load({folder!r} + "/y.npy")
model = {model}
model.fit(X[:2000])
"""
_WORK = """
labels = model.fit(X).labels_
peak.extra["error"] = 1 - adjusted_rand_score(y, labels)
peak.extra["iterations"] = model.n_iter_
"""
# The first assignment is a pass as well. scikit-learn reads the rows in random batches.
MODELS = {
    "ours": f"HypersphericalKMeans({MANY_GROUPS}, kernel='cosine', centers='intrinsic', n_init=1, "
    f"random_state=0, max_iter={PASSES - 1}, memory_budget='1GiB')",
    "theirs": f"MiniBatchKMeans({MANY_GROUPS}, n_init=1, random_state=0, max_iter={PASSES}, "
    "max_no_improvement=None)",
}


def on_disk(n: int) -> list[Measured]:
    runs: dict[str, list[dict[str, float]]] = {side: [] for side in MODELS}
    with tempfile.TemporaryDirectory() as folder:
        write_points(Path(folder), n)
        for _ in range(REPEATS):
            for side, model in MODELS.items():
                setup = _SETUP.format(folder=folder, model=model)
                runs[side].append(peak_anonymous_memory(setup, _WORK))
    errors = {
        side: statistics.median(run["error"] for run in found) for side, found in runs.items()
    }
    common: dict[str, Any] = {
        "ours_label": "orthodrome.HypersphericalKMeans",
        "theirs_label": "sklearn MiniBatchKMeans",
        "ours_error": errors["ours"],
        "theirs_error": errors["theirs"],
    }
    passes = {
        side: statistics.median(run["iterations"] for run in found) for side, found in runs.items()
    }
    what = f"{n:,} x {D} float32 directions on disk, {MANY_GROUPS} clusters, {PASSES} passes"
    return [
        Measured(
            name=f"k-means of {what}",
            ours=[run["seconds"] for run in runs["ours"]],
            theirs=[run["seconds"] for run in runs["theirs"]],
            target=2.0,
            note="Rows are a memory map. Each run in a process of its own. Error: 1 - adjusted "
            f"Rand index. Passes that update centres: ours {passes['ours']:.0f} after one that "
            f"assigns rows to the first centres, theirs {passes['theirs']:.0f}.",
            **common,
        ),
        Measured(
            name=f"Anonymous memory of k-means of {what}",
            ours=[run["total"] for run in runs["ours"]],
            theirs=[run["total"] for run in runs["theirs"]],
            unit="bytes",
            limit=1.0 * 2**30,
            note="The peak of the whole process, imports included.",
            **common,
        ),
    ]


def run(full: bool = False) -> list[Measured]:
    return [*in_memory(), *on_disk(LARGE if full else SMALL)]
