"""Choose the default method of RobustKernelPCA: angles to the components of clean data.

Outliers are added to simulated data and to tables. The score is the mean principal angle, in
degrees, between two components fitted to all rows and two components of kernel PCA of the rows
without the outliers.

    python benchmarks/defaults/robust_pca.py
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from common import CHOOSE, CONFIRM, markdown_table, table, write
from sklearn.exceptions import ConvergenceWarning

from orthodrome import KernelPCA, RobustKernelPCA
from orthodrome.kernels import Gaussian, Linear

N_COMPONENTS = 2
MAX_ROWS = 150
FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4)
METHODS = {
    "kernel PCA": lambda kernel: KernelPCA(N_COMPONENTS, kernel),
    "spatial-sign": lambda kernel: RobustKernelPCA(N_COMPONENTS, kernel, method="spatial-sign"),
    "pursuit, mean (earlier default)": lambda kernel: RobustKernelPCA(
        N_COMPONENTS, kernel, method="pursuit"
    ),
    "pursuit, spatial median": lambda kernel: RobustKernelPCA(
        N_COMPONENTS, kernel, method="pursuit", center="spatial-median"
    ),
    "mrcd": lambda kernel: RobustKernelPCA(N_COMPONENTS, kernel, method="mrcd"),
}
#: Simulated sets, as numbers of rows and columns: two planted directions and noise.
SIMULATED = {
    "choose": ((150, 10), (150, 50), (100, 200)),
    "confirm": ((120, 5), (150, 20), (80, 100)),
}


def simulated(n: int, d: int, seed: int) -> np.ndarray:
    """Return rows with standard deviations 5 and 4 along two directions, and 1 along the others."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    scales = np.concatenate([[5.0, 4.0], np.ones(d - 2)])
    return (rng.standard_normal((n, d)) * scales) @ rotation


def clean_sets(part: str, n_seeds: int) -> Iterator[tuple[str, int, np.ndarray]]:
    """Yield the name, the seed and the rows of each set."""
    for seed in range(n_seeds):
        for n, d in SIMULATED[part]:
            yield f"simulated {n} x {d}", seed, simulated(n, d, seed)
        for name in CHOOSE if part == "choose" else CONFIRM:
            yield name, seed, table(name, max_rows=MAX_ROWS, seed=seed)[0]


def scattered(n: int, size: float, across: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return rows in random directions, three to six times as far as usual rows."""
    rows = rng.standard_normal((n, len(across)))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * size * rng.uniform(3, 6, (n, 1))


def clustered(n: int, size: float, across: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a small group of rows, three times as far as usual rows."""
    noise = rng.standard_normal((n, len(across))) / np.sqrt(len(across))
    return 3 * size * across + 0.2 * size * noise


def two_clusters(n: int, size: float, across: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return two small groups of rows on opposite sides."""
    return clustered(n, size, across, rng) * rng.choice([-1, 1], (n, 1))


KINDS = {"scattered": scattered, "one cluster": clustered, "two clusters": two_clusters}


def angle(model: KernelPCA | RobustKernelPCA, reference: KernelPCA) -> float:
    """Return the mean principal angle between two sets of components, in degrees."""
    kernel = reference.kernel_
    products = model.dual_coef_.T @ kernel(model.X_fit_, reference.X_fit_) @ reference.dual_coef_
    cosines = np.linalg.svd(products, compute_uv=False)
    return float(np.degrees(np.arccos(np.clip(cosines, 0.0, 1.0))).mean())


def angles(part: str, n_seeds: int) -> dict[tuple[str, str, float], dict[str, list[float]]]:
    """Return the angles of all sets, by kernel, kind and fraction of outliers, and method."""
    found: dict[tuple[str, str, float], dict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for name, seed, X in clean_sets(part, n_seeds):
        print(part, name, seed, flush=True)
        centered = X - X.mean(axis=0)
        size = np.sqrt(np.mean(np.sum(centered**2, axis=1)))
        across = np.linalg.svd(centered, full_matrices=False)[2][-1]
        for kernel in (Linear(), Gaussian().fit(X)):
            kernel = Gaussian(kernel.sigma_) if isinstance(kernel, Gaussian) else kernel
            reference = KernelPCA(N_COMPONENTS, kernel, solver="dense").fit(X)
            for kind, outliers in KINDS.items():
                for fraction in FRACTIONS:
                    rng = np.random.default_rng(seed)
                    n = round(len(X) * fraction / (1 - fraction))
                    rows = np.vstack([X, X.mean(axis=0) + outliers(n, size, across, rng)])
                    for method, make in METHODS.items():
                        model = make(kernel).fit(rows)
                        key = (type(kernel).__name__, kind, fraction)
                        found[key][method].append(angle(model, reference))
    return found


def section(title: str, found: dict[tuple[str, str, float], dict[str, list[float]]]) -> list[str]:
    """Return a table of mean angles and standard errors for each kernel."""
    lines = []
    for kernel in ("Linear", "Gaussian"):
        rows = []
        for (name, kind, fraction), scores in found.items():
            if name == kernel:
                cells = []
                for method in METHODS:
                    values = np.array(scores[method])
                    error = values.std(ddof=1) / np.sqrt(len(values))
                    cells.append(f"{values.mean():.1f} ± {error:.1f}")
                rows.append([kind, f"{fraction:.0%}", *cells])
        lines += [f"### {title}, {kernel.lower()} kernel", ""]
        lines += [*markdown_table(["outliers", "fraction", *METHODS], rows), ""]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="samples of each set")
    parser.add_argument("--parts", nargs="+", default=["choose", "confirm"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    found = {part: angles(part, arguments.seeds) for part in arguments.parts}
    lines = [
        "## Robust kernel PCA",
        "",
        "The numbers are mean angles in degrees, with standard errors, between two components "
        "fitted to data with outliers and two components of kernel PCA of the same data without "
        f"them. To choose, we used {len(SIMULATED['choose'])} simulated sets and the tables "
        f"{', '.join(CHOOSE)}. To confirm, we used {len(SIMULATED['confirm'])} other simulated "
        f"sets and the tables {', '.join(CONFIRM)}.",
        "",
        "mrcd is the default. It is never the worst, always within five degrees of the best, "
        "and the only method that tolerates more than 10 % of clustered outliers. With the linear "
        "kernel, spatial signs are as good for scattered outliers, and faster. With the Gaussian "
        "kernel, no method finds the components if clusters of outliers hold 40 % of the "
        "points.",
        "",
    ]
    for part, scores in found.items():
        lines += section({"choose": "Choice", "confirm": "Confirmation"}[part], scores)
    if set(arguments.parts) == {"choose", "confirm"}:
        write("robust_pca", lines)
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
