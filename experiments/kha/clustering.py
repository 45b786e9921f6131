"""Spectral clustering of all USPS digits: the KHA paper's Figure 3 (§5.3).

7,291 images, 10 components, the Gaussian kernel with σ = 8. How far the clusters are from the ten
digits (variation of information, in nats) with exact kernel PCA, and with KHA/t, KHA/et and KHA-SMD
after a few passes. Gains are tuned by hand for the least error after 10 passes, and components are
taken as they come. Each embedding is clustered by k-means with three seeds, of which the median
counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from kha.common import METHODS, RHO0, Problem, decades, followed, tuned
from numpy.typing import NDArray
from reproduce import About, Found, Part, Values, load
from scipy.stats import entropy
from sklearn.cluster import KMeans
from verdicts import Compared, Sample, number, order

from orthodrome.kernels import Gaussian
from orthodrome.metrics import variation_of_information

N_CLUSTERS, GOAL, TUNED_AFTER = 10, 0.05, 10
EXACT = "exact kernel PCA"
TUNED = "gains tuned as in the paper"
# how many images of each digit (all: None), and how they are clustered; with all images, the search
# for the gains of KHA-SMD takes too long
VARIANTS = {f"2,000 images, {TUNED}, {way}": (200, way) for way in RHO0} | {
    f"all images, {TUNED}, without KHA-SMD": (None, TUNED),
}
MARKS = (1, 2, 5, 10, 30)
# how labels are drawn that stand for chance
DRAWN, AS_DIGITS = "each cluster equally often", "as often as the digits: twice their entropy"


def jobs(quick: bool) -> Iterable[tuple[Any, ...]]:
    several = range(1 if quick else 3)
    three = [method for method in METHODS if method != "KHA"]
    runs = [(200, method, TUNED, seed) for method in three[:2] for seed in several]
    runs += [(200, "KHA-SMD", way, seed) for way in RHO0 for seed in several]
    runs += [(None, method, TUNED, 0) for method in three[:2]]
    runs = [(200, EXACT, "", 0), (None, EXACT, "", 0), *runs]
    marks = (1, 2, 10) if quick else MARKS
    return [(100 if quick else n, marks, *run) for n, *run in runs if n or not quick]


def measure(
    per_digit: int | None, marks: tuple[int, ...], method: str, way: str, seed: int
) -> Values:
    usps = load("usps")
    rows = np.concatenate([np.flatnonzero(usps.y_train == d)[:per_digit] for d in range(10)])
    X, digits = usps.X_train[np.sort(rows)].astype(np.float64), usps.y_train[np.sort(rows)]
    problem = Problem.of(Gaussian(sigma=8.0), X, N_CLUSTERS)
    size = per_digit or "all"
    if method == EXACT:
        drawn = [np.random.default_rng(n).integers(N_CLUSTERS, size=len(X)) for n in range(3)]
        chance = [variation_of_information(digits, labels) for labels in drawn]
        twice = 2 * float(entropy(np.bincount(usps.y_train)))
        exact = {(size, EXACT, "distance"): distance(problem, problem.exact, digits)}
        return exact | ({DRAWN: chance, AS_DIGITS: twice} if per_digit is None else {})
    options, found = tuned_options(problem, method, way), {}
    for mark, components in zip(marks, followed(problem, marks, seed, options), strict=True):
        found[size, method, way, mark, "excess"] = decades([problem.excess(components)])[0]
        apart = math.inf if components is None else distance(problem, components, digits)
        found[size, method, way, mark, "distance"] = apart
    return found


def tuned_options(problem: Problem, method: str, way: str) -> dict[str, Any]:
    if method != "KHA-SMD":
        return tuned(problem, method, TUNED_AFTER, (0,))
    eta0 = tuned(problem, "KHA/et", TUNED_AFTER, (0,))["eta0"]
    return tuned(problem, method, TUNED_AFTER, (0,), eta0=eta0, rho0=RHO0[way])


def distance(problem: Problem, components: NDArray[Any], digits: NDArray[Any]) -> float:
    """From clusters of the normalised rows of the eigenvectors to the digits: the median."""
    vectors = problem.operator @ components.T
    vectors /= np.linalg.norm(vectors, axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    means = [KMeans(N_CLUSTERS, n_init=10, tol=0.0, random_state=seed) for seed in range(3)]
    found = [variation_of_information(digits, each.fit_predict(vectors)) for each in means]
    return float(np.median(found))


def as_exact_after(found: Found, size: Any, key: tuple[Any, ...]) -> Sample:
    """For each seed, the mark from which on clusters are as good as exact, or one pass more."""
    marks = [mark for mark in MARKS if (*key, mark, "distance") in found]
    values = np.array([found(*key, mark, "distance").values for mark in marks])
    good = values <= found(size, EXACT, "distance").mean + GOAL
    # as good at a mark and at all later ones
    lasting = np.logical_and.accumulate(good[::-1])[::-1].sum(axis=0)
    later = [*marks, marks[-1] + 1]
    return Sample.of([later[len(marks) - n] for n in lasting])


def compare(found: Found, variant: str) -> list[Compared]:
    """The lower excess error, and passes until clusters are as good as those of kernel PCA."""
    per_digit, way = VARIANTS[variant]
    size, made = per_digit or "all", []
    keys = {
        method: (size, method, TUNED if way in RHO0 and method != "KHA-SMD" else way)
        for method in METHODS
    }
    for better, than in (("KHA/et", "KHA/t"), ("KHA-SMD", "KHA/et")):
        if (*keys[better], 10, "excess") in found:
            pair = [found(*keys[method], 10, "excess") for method in (than, better)]
            what, unit = f"{better} before {than}, after 10 passes", "decades of excess error"
            made.append(order(what, pair[0] - pair[1], where="Figure 3", unit=unit))
    for method, words, sign, passes in (
        ("KHA/et", "within 10", -1, 11),
        ("KHA-SMD", "within 10", -1, 11),
        ("KHA/t", "after more than 30", 1, 30),
    ):
        if (*keys[method], 10, "distance") in found:
            after = as_exact_after(found, size, keys[method])
            gain = after.map(lambda n, s=sign, p=passes: s * (n - p))
            what = f"{method} clusters as kernel PCA does {words} passes"
            made.append(order(what, gain, where="§5.3", unit="passes"))
    return made


def compare_chance(found: Found, drawn: str) -> list[Compared]:
    if drawn not in found:
        return []
    more: dict[str, Any] = {"own": False, "better": 0, "where": "§5.3", "unit": "nats"}
    return [number("4.54", "variation of information of random labels", found(drawn), **more)]


PARTS = [
    Part(compare, tuple(VARIANTS), "ρ_0, and for how many passes η0 is tuned"),
    Part(compare_chance, (DRAWN, AS_DIGITS), "how random labels are drawn"),
]
ABOUT = About(
    title="Spectral clustering of USPS digits",
    where="Figure 3",
    says="Curves of the excess error and of the variation of information over passes. "
    "KHA-SMD dominates KHA/et, which outperforms KHA/t. KHA/et and KHA-SMD cluster as well "
    "as exact kernel PCA within 10 passes; KHA/t needs more than 30. Random labels have a "
    "variation of information of 4.54.",
    differs="KHA/t clusters as well as exact kernel PCA after 2 to 5 passes; in the "
    "paper it needs more than 30. The other claims hold. After 10 passes with the "
    "printed ρ_0 = 1, the error of KHA-SMD is 0.9 decades lower than that of KHA/et.",
    tried="Both values of ρ_0, on 2,000 images. In an earlier run with automatic gains and "
    "a Rayleigh-Ritz step, all methods needed one or two passes. Random labels with the "
    "frequencies of the digits have the published 4.54, which is twice the entropy of the "
    "digits.",
    reason="The paper does not say for how many passes the η0 of KHA/t was tuned; we "
    "tuned it for 10. It does not say when a clustering is as good as that of exact "
    "kernel PCA; we allow 0.05 nats.",
    partial="With 2,000 images there are three seeds; with all images and gains tuned as "
    "in the paper there is one. KHA-SMD is tuned with 2,000 images only, because the "
    "search takes too long with all.",
)
