"""How many anchors a trace error takes, by each way to choose them; features on the sphere.

Counts and errors, no times: they depend on the seeds alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from harness import Missing, Table, data_folder, size
from scipy.linalg import orthogonal_procrustes
from sklearn.datasets import load_digits, make_swiss_roll

from orthodrome import KernelPGA, datasets
from orthodrome.coordinates import partial_cholesky
from orthodrome.eigen import Nystroem
from orthodrome.gram import gram_operator
from orthodrome.kernels import Exponential, Gaussian, Matern

N, SEEDS = size(3000, 300), size(10, 2)
TOLERANCES = (1e-1, 1e-2, 1e-3)
MOST = size(1000, 250)
WAYS = ("rpcholesky", "uniform")

# ---------------------------------------------------------------------------- data


def normals(seed: int, d: int, n: int = N) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def one_group() -> np.ndarray:
    return normals(1, 16) * np.linspace(2, 0.2, 16)


def clustered(share: float) -> np.ndarray:
    """A large group with this share of the points, and thirty small ones that lie apart."""
    rng = np.random.default_rng(0)
    label = np.where(rng.random(N) < share, 0, rng.integers(1, 31, size=N))
    centers = 2.5 * rng.standard_normal((31, 8))
    centers[0] = 0
    return centers[label] + 0.1 * rng.standard_normal((N, 8))


def heavy_tails() -> np.ndarray:
    return np.random.default_rng(3).standard_t(3, size=(N, 4))


def roll() -> np.ndarray:
    return make_swiss_roll(N, random_state=0)[0]


def real(name: str) -> np.ndarray:
    found = datasets.load(name, data_home=data_folder(), download_if_missing=False)
    X = np.asarray(found.data, dtype=np.float64).reshape(len(found.data), -1)
    return X[np.random.default_rng(0).permutation(len(X))[:N]]


#: Data, and a second factor for the default bandwidth; narrow kernels need more anchors.
DATA: dict[str, tuple[Callable[[], np.ndarray], float]] = {
    "one group, 16 coordinates": (one_group, 0.5),
    "31 groups, 90 % in one": (lambda: clustered(0.9), 0.25),
    "31 groups, 99 % in one": (lambda: clustered(0.99), 0.25),
    "heavy tails (t₃), 4 coordinates": (heavy_tails, 0.25),
    "swiss roll": (roll, 0.25),
    "scikit-learn's digits": (lambda: load_digits().data, 0.5),
    "pen-digits": (lambda: real("pendigits"), 0.5),
    "USPS": (lambda: real("usps"), 1.0),
}

# ---------------------------------------------------------------------------- counts


def counts(X: np.ndarray, factor: float, way: str) -> dict[float, list[int]]:
    """How many anchors each tolerance took, for each seed; MOST + 1 where there were not enough.

    Errors at all numbers of anchors come from one run: the first columns of a factor are the
    factor by the first anchors.
    """
    kernel = Gaussian(sigma=factor * Gaussian().fit(X).sigma_).fit(X)
    gram = gram_operator(kernel, X)
    found: dict[float, list[int]] = {tol: [] for tol in TOLERANCES}
    for seed in range(SEEDS):
        chosen = partial_cholesky(
            gram, max_rank=min(MOST, len(X)), tol=min(TOLERANCES), pivots=way, random_state=seed
        )
        held = np.cumsum(np.einsum("ij,ij->j", chosen.factor, chosen.factor))
        left = 1 - held / float(gram.diagonal().sum())
        for tol in TOLERANCES:
            reached = np.flatnonzero(left <= tol * (1 + 1e-9))
            found[tol].append(int(reached[0]) + 1 if len(reached) else MOST + 1)
    return found


def spread(values: list[int]) -> str:
    def one(value: float) -> str:
        return f"over {MOST}" if value > MOST else f"{value:g}"

    return f"{one(statistics.median(values))} ({one(min(values))} to {one(max(values))})"


def needed() -> list[Table | Missing]:
    rows, missing, more, without = [], [], [], 0
    for name, (make, factor) in DATA.items():
        try:
            X = make()
        except FileNotFoundError:
            reason = f"it is not in {data_folder()}; set ORTHODROME_DATA"
            missing.append(Missing(f"anchors of {name}", reason))
            continue
        for multiple in sorted({1.0, factor}, reverse=True):
            found = {way: counts(X, multiple, way) for way in WAYS}
            for tol in TOLERANCES:
                ours, uniform = (statistics.median(found[way][tol]) for way in WAYS)
                if min(ours, uniform) > MOST:
                    without += 1
                    continue
                if ours > uniform:
                    more.append(f"{name}, σ of {multiple:g}, at {tol:g}")
                share = "" if uniform > MOST else f"{ours / uniform:.2f}"
                cells = [spread(found[way][tol]) for way in WAYS]
                rows.append([name, f"{len(X):,}", f"{multiple:g}", f"{tol:g}", *cells, share])
    table = Table(
        name="Anchors that a trace error takes, by how they are chosen",
        columns=["data", "N", "σ / rule", "trace error", *WAYS, "rpcholesky / uniform"],
        rows=rows,
        note=f"Medians over {SEEDS} seeds (range). The trace error is the fraction of the trace of "
        "the Gram matrix that the features do not capture. Gaussian kernels, with the default σ "
        f"and smaller ones. Of {len(rows) + without} settings, {without} that need more than "
        f"{MOST:,} anchors either way are omitted. Median of rpcholesky above that of uniform: "
        + ("; ".join(more) or "nowhere")
        + ".",
    )
    return [table, *missing]


# ---------------------------------------------------------------------------- on the sphere

KERNELS = {"gaussian": Gaussian, "exponential": Exponential, "matern": Matern}
FACTORS = (0.25, 0.5, 1.0, 2.0)
ANCHORS = size((32, 128, 512), (32, 64))
N_SPHERE, MODES = size(1500, 200), 8
SPHERE_SEEDS = size(3, 1)


@cache
def sphere_data() -> dict[str, np.ndarray]:
    some = slice(None, N_SPHERE)
    return {
        "one group": one_group()[some],
        "31 groups": clustered(0.9)[some],
        "digits": load_digits().data[some],
    }


def errors(exact: KernelPGA, model: KernelPGA) -> tuple[float, float]:
    """Relative errors of the variances, at the worst mode, and of the coordinates.

    Coordinates are compared after the best rotation, since near modes mix.
    """
    values = np.abs(model.eigenvalues_ / exact.eigenvalues_ - 1).max()
    turn = orthogonal_procrustes(model.embedding_, exact.embedding_)[0]
    apart = np.linalg.norm(model.embedding_ @ turn - exact.embedding_)
    return float(values), float(apart / np.linalg.norm(exact.embedding_))


def setting(kind: str, factor: float) -> dict[tuple[int, str], list[tuple[float, float]]]:
    """Errors of both ways over data and seeds, for each number of anchors."""
    found: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for X in sphere_data().values():
        kernel: Any = KERNELS[kind](sigma=factor * KERNELS[kind]().fit(X).sigma_)
        exact = KernelPGA(MODES, kernel, solver="dense").fit(X)
        for m, way, seed in product(ANCHORS, ("unit", "angles"), range(SPHERE_SEEDS)):
            solver = Nystroem(n_anchors=m, sphere=way, random_state=seed)
            model = KernelPGA(MODES, kernel, solver=solver).fit(X)
            found.setdefault((m, way), []).append(errors(exact, model))
    return found


def on_the_sphere() -> Table:
    rows, nearer = [], [0, 0]
    for kind, factor in product(KERNELS, FACTORS):
        found = setting(kind, factor)
        for m in ANCHORS:
            means = {
                way: np.exp(np.mean(np.log(np.maximum(found[m, way], 1e-16)), axis=0))
                for way in ("unit", "angles")
            }
            ratios = means["unit"] / means["angles"]
            nearer = [count + int(ratio < 1) for count, ratio in zip(nearer, ratios, strict=True)]
            cells = [f"{means[way][i]:.1e}" for i in (0, 1) for way in ("unit", "angles")]
            rows.append([kind, f"{factor:g}", str(m), *cells[:2], f"{ratios[0]:.2g}", *cells[2:]])
            rows[-1].append(f"{ratios[1]:.2g}")
    columns = ["kernel", "σ / rule", "anchors", "unit, variances", "angles, variances", "ratio"]
    columns += ["unit, coordinates", "angles, coordinates", "ratio"]
    return Table(
        name=f"Kernel PGA by anchors: sphere='unit' compared with sphere='angles', {MODES} modes",
        columns=columns,
        rows=rows,
        note="Relative errors against the exact method: of the variances, at the worst mode, and "
        f"of all coordinates after the best rotation; geometric means over {len(sphere_data())} "
        f"data sets ({', '.join(sphere_data())}) of {N_SPHERE:,} points and {SPHERE_SEEDS} seeds. "
        f"'unit' has the smaller error of the variances in {nearer[0]} of {len(rows)} settings, "
        f"and of the coordinates in {nearer[1]}.",
    )


def run(full: bool = False) -> list[Table | Missing]:
    return [*needed(), on_the_sphere()] if full else []  # they do not change with the machine
