"""Choose the defaults of nested spheres: kind, outer levels and number of features.

Run ``python benchmarks/defaults/nested_spheres.py``; it writes ``docs/defaults/nested_spheres.md``.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from common import CHOOSE, CONFIRM, markdown_table, mean_and_error, table, write
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split

from orthodrome import KernelPNS, NestedSpheresClassifier

FRACTIONS = (0.0, 1e-3, 0.01, 0.03)
N_CHAIN, N_TRAIN, SEEDS = 200, 200, range(4)

BEFORE: dict[str, Any] = {"n_components": 8, "sphere": "small", "negligible": 0.0}
NOW: dict[str, Any] = {"n_components": 16, "sphere": "great", "negligible": 0.01}
SETTINGS: dict[str, dict[str, Any]] = {
    "8, small, 0 (before)": BEFORE,
    "8, great, 0.01": NOW | {"n_components": 8},
    "16, great, 0.01 (now)": NOW,
    "32, great, 0.01": NOW | {"n_components": 32},
    "now, p = 1": NOW | {"p": 1.0},
}

INTRODUCTION = f"""## Nested spheres

`KernelPNS` and `NestedSpheresClassifier` use great subspheres. Principal directions with at most
1 % of the variance (`negligible=0.01`) are not fitted one by one; one eigenproblem finds all of
them. The classifier uses 16 features. On the sets to choose on, 32 features are no better on
average. The paper's method is `sphere="small", negligible=0.0`.

The first table of each section is about {N_CHAIN} rows with a Gaussian kernel and great
subspheres. It shows the percentage of levels that are fitted one by one (mean and standard error
over the sets). Its last column compares the cumulative variance of the first 20 modes with that of
fitting every level, in percentage points: the largest difference over the sets. We
allowed half a point.

The second table shows the accuracy of the classifier with {N_TRAIN} training rows (70 % of
smaller sets), mean and standard error over {len(SEEDS)} splits. The headings give the number of
features, the kind of subspheres, and `negligible`.
"""


def chains(name: str) -> list[tuple[float, float]]:
    """Return, for each fraction, the percentage of levels fitted and the change of variance."""
    X, _ = table(name, max_rows=N_CHAIN)
    models = [KernelPNS(2, negligible=fraction).fit(X) for fraction in FRACTIONS]
    variances = [100 * float(model.explained_variance_ratio_[:20].sum()) for model in models]
    levels = [100 * len(model.nested_spheres_.subspheres) / len(model.radii_) for model in models]
    return [(n, abs(v - variances[0])) for n, v in zip(levels, variances, strict=True)]


def accuracies(name: str) -> dict[str, list[float]]:
    """Return the accuracies of each setting, one for each split."""
    X, y = table(name)
    size = min(N_TRAIN, int(0.7 * len(X)))
    found: dict[str, list[float]] = {label: [] for label in SETTINGS}
    for seed in SEEDS:
        train, test, y_train, y_test = train_test_split(
            X, y, train_size=size, stratify=y, random_state=seed
        )
        for label, options in SETTINGS.items():
            model = NestedSpheresClassifier(**options).fit(train, y_train)
            found[label].append(float(model.score(test, y_test)))
    return found


def evaluate(name: str) -> tuple[list[tuple[float, float]], dict[str, list[float]]]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The points take up", UserWarning)
        found = chains(name), accuracies(name)
    print(name, {label: mean_and_error(scores) for label, scores in found[1].items()}, flush=True)
    return found


def section(title: str, names: tuple[str, ...], results: list[Any]) -> list[str]:
    """Return the tables of some sets."""
    levels = np.array([result[0] for result in results])  # sets x fractions x 2
    first = [
        [f"{fraction:g}", mean_and_error(levels[:, i, 0], 0), f"{levels[:, i, 1].max():.2f}"]
        for i, fraction in enumerate(FRACTIONS)
    ]
    second = [
        [name, *(mean_and_error(scores) for scores in result[1].values())]
        for name, result in zip(names, results, strict=True)
    ]
    means = [np.mean([result[1][label] for result in results]) for label in SETTINGS]
    second.append(["**mean**", *(f"{mean:.3f}" for mean in means)])
    header = ["`negligible`", "levels fitted (%)", "largest change (points)"]
    return [
        *(f"### {title}", ""),
        *(*markdown_table(header, first), ""),
        *(*markdown_table(["set", *SETTINGS], second), ""),
    ]


def main() -> None:
    names = (*CHOOSE, *CONFIRM)
    results = list(Parallel(n_jobs=-1)(delayed(evaluate)(name) for name in names))
    n = len(CHOOSE)
    lines = [
        *INTRODUCTION.splitlines(),
        "",
        *section("Sets to choose on", CHOOSE, results[:n]),
        *section("Sets to confirm on", CONFIRM, results[n:]),
    ]
    write("nested_spheres", lines[:-1])


if __name__ == "__main__":
    main()
