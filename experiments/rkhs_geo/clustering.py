"""Hyperspherical k-means: the RKHS-GEO paper's Table 1 and Figure 3 (§5.1).

Six UCI sets with their features as they are, Gaussian kernels over a range of σ, 20 repeats with
different random starts, and the accuracy under the best matching of clusters with classes. Vote is
reduced to the 232 rows without missing values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from reproduce import About, Found, Part, Values, labelled
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from verdicts import Compared, Sample, number, order

from orthodrome import HypersphericalKMeans, KernelKMeans, KernelSpectralClustering
from orthodrome.kernels import Gaussian
from orthodrome.metrics import clustering_error

KMEANS, KERNEL, SPECTRAL, OURS = "k-means", "kernel k-means", "spectral", "hyperspherical"
LOST, TEN = "kernel k-means, one cluster lost", "spectral, best of ten starts"
STARTS = {
    "one start in the bounding box": {"init": "bounding-box", "n_init": 1},
    "one start at random points": {"init": "random", "n_init": 1},
    "the library's default, best of ten": {},
}


class OneCluster:
    """Put all points in one cluster."""

    def fit(self, X: Any) -> OneCluster:
        self.labels_ = np.zeros(len(X), dtype=int)
        return self


def without_one(k: int, kernel: Gaussian, seed: int) -> Any:
    """Return kernel k-means with one cluster less."""
    if k == 2:
        return OneCluster()
    return KernelKMeans(k - 1, kernel, init="random", n_init=1, random_state=seed)


# number of clusters, kernel and seed -> estimator; the paper's methods begin once, at random
METHODS: dict[str, Callable[[int, Gaussian, int], Any]] = {
    KMEANS: lambda k, kernel, seed: KMeans(k, init="random", n_init=1, random_state=seed),
    KERNEL: lambda k, kernel, seed: KernelKMeans(
        k, kernel, init="random", n_init=1, random_state=seed
    ),
    LOST: without_one,
    SPECTRAL: lambda k, kernel, seed: KernelSpectralClustering(
        k, kernel, n_init=1, random_state=seed
    ),
    TEN: lambda k, kernel, seed: KernelSpectralClustering(k, kernel, random_state=seed),
} | {
    start: lambda k, kernel, seed, options=options: HypersphericalKMeans(
        k, kernel, random_state=seed, **options
    )
    for start, options in STARTS.items()
}
POWERS = tuple(range(-5, 4))  # σ is that of "mean" times 2 to this power
# mean and deviation of 20 repeats; one number of Ecoli is out of its place in our copy of the paper
TABLE_1 = {
    name: dict(zip((KMEANS, KERNEL, SPECTRAL, OURS), printed, strict=True))
    for name, *printed in (
        ("iris", "65.1 (0.5)", "66.7 (0.0)", "84.9 (3.6)", "89.1 (0.3)"),
        ("ecoli", "54.1 (5.9)", "50.0 (2.4)", "62.6 (4.9)", "65.5 (8.7)"),
        ("ionosphere", "69.1 (6.5)", "64.1 (1.4)", "72.7 (2.5)", "71.2 (0.0)"),
        ("glass", "35.6 (2.9)", "54.3 (0.9)", "49.7 (1.9)", "52.9 (1.6)"),
        ("vote", "59.1 (0.0)", "53.4 (0.0)", "84.7 (7.3)", "89.4 (0.21)"),
        ("wine", "65.6 (2.5)", "67.4 (0.0)", "66.8 (1.4)", "70.2 (4.8)"),
    )
}
# for each set, the best method of the table and the one it is compared with
ORDERS = {
    "iris": (OURS, SPECTRAL),
    "ecoli": (OURS, SPECTRAL),
    "ionosphere": (SPECTRAL, OURS),
    "glass": (KERNEL, OURS),
    "vote": (OURS, SPECTRAL),
    "wine": (OURS, KERNEL),
}


def jobs(quick: bool) -> Iterable[tuple[str, str, int]]:
    names, repeats = (("iris", "wine"), 3) if quick else (tuple(TABLE_1), 20)
    return [(name, method, seed) for name in names for method in METHODS for seed in range(repeats)]


def measure(name: str, method: str, seed: int) -> Values:
    """Cluster a set with one method and one seed, with each σ."""
    X, y = labelled(name)
    k, mean, found = len(np.unique(y)), float(Gaussian().fit(X).sigma_), {}
    with warnings.catch_warnings():
        # a tiny σ may leave fewer clusters than asked for; the accuracy shows it
        warnings.simplefilter("ignore", ConvergenceWarning)
        for power in (0,) if method == KMEANS else POWERS:
            labels = METHODS[method](k, Gaussian(sigma=mean * 2.0**power), seed).fit(X).labels_
            found[name, method, power] = 100 * (1 - clustering_error(y, labels))
    return found


def at_best(found: Found, name: str, method: str) -> Sample:
    return found.best(name, method, of=POWERS)


def compare_method(method: str) -> Callable[[Found, str], list[Compared]]:
    """Return what compares a column of the table, with one of its variants."""

    def compare(found: Found, variant: str) -> list[Compared]:
        return [
            number(
                printed[method],
                f"{name}, {method}",
                at_best(found, name, variant),
                own=method == OURS,
                repeats=20,
                where="Table 1",
                unit="accuracy, %",
            )
            for name, printed in TABLE_1.items()
            if (name, variant, 0) in found
        ]

    return compare


def compare_ours(found: Found, start: str) -> list[Compared]:
    """The column of the new algorithm, and who is better than whom."""
    made = compare_method(OURS)(found, start)
    for name, pair in ORDERS.items():
        if (name, start, 0) in found:
            ahead, behind = (
                at_best(found, name, start if method == OURS else method) for method in pair
            )
            gain = Sample(ahead.mean, ahead.deviation, ahead.n) - behind  # starts are not paired
            what = f"{name}: {pair[0]} before {pair[1]}"
            made.append(order(what, gain, where="Table 1", unit="accuracy, points"))
    return made


PARTS = [
    Part(compare_ours, tuple(STARTS), "how centres are drawn at first (“randomly”)"),
    Part(compare_method(KMEANS), (KMEANS,)),
    Part(compare_method(KERNEL), (KERNEL, LOST), "starts, and what happens to an empty cluster"),
    Part(compare_method(SPECTRAL), (SPECTRAL, TEN), "the number of starts"),
]
ABOUT = About(
    title="Hyperspherical k-means",
    where="Table 1 and Figure 3",
    says="Accuracies of k-means, kernel k-means, spectral clustering and the new algorithm on six "
    "sets, over 20 repeats, each with its best σ. The new algorithm is the best except on "
    "Ionosphere and Glass.",
    differs="With one start in the bounding box, all numbers of the new algorithm are "
    "reached. But most baselines are stronger here than in the paper. So the claim that "
    "the new algorithm is the best is contradicted on Ecoli (spectral clustering: 80 %), "
    "and open on Iris, Vote and Wine. On Ionosphere, spectral clustering is better in "
    "the paper, but not here.",
    tried="Three kinds of starts. With starts at random points, Ecoli is 12 points short. "
    "With the library's default, four numbers are exceeded. We ran spectral clustering "
    "with one start and with ten. If kernel k-means loses one cluster, it equals the "
    "printed numbers on Iris, Ionosphere, Vote and Wine to the last digit.",
    reason="The paper's kernel k-means seems to have lost a cluster, which makes it a "
    "weak competitor. We do not know why k-means and spectral clustering are weaker in "
    "the paper; it may be their starts or the graph. Each method has the σ with the best "
    "accuracy, as in the paper.",
)
