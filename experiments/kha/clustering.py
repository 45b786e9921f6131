"""Spectral clustering of all USPS digits: the KHA paper's Figure 3 (§5.3).

7,291 images, 10 components, the Gaussian kernel with σ = 8. How far the clusters are from the ten
digits (variation of information, in nats) with exact kernel PCA, and with KHA/t, KHA/et and KHA-SMD
after a few passes. As in the paper: gains tuned by hand for the least error after 10 passes, and
components as they come. Also with automatic gains and a Rayleigh-Ritz step. Each embedding is
clustered by k-means with three seeds, of which the median counts.
"""

from __future__ import annotations

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
RITZ = "automatic gains, Rayleigh-Ritz step"
PAPER = {way: f"gains tuned as in the paper, {way}" for way in RHO0}
WAYS = (*PAPER.values(), RITZ)
MARKS = (1, 2, 5, 10, 30)
# how labels are drawn that stand for chance
DRAWN, AS_DIGITS = "each cluster equally often", "as often as the digits: twice their entropy"


def jobs(quick: bool) -> Iterable[tuple[Any, ...]]:
    per_digit, marks = (100, (1, 2, 10)) if quick else (None, MARKS)
    runs = [(method, PAPER["ρ_0 = 0"], 0) for method in ("KHA/t", "KHA/et")]
    runs += [("KHA-SMD", way, 0) for way in PAPER.values()]
    runs += [(m, RITZ, s) for m in list(METHODS)[1:] for s in range(1 if quick else 3)]
    return [(per_digit, marks, *run) for run in [(EXACT, "", 0), *runs]]


def measure(
    per_digit: int | None, marks: tuple[int, ...], method: str, way: str, seed: int
) -> Values:
    usps = load("usps")
    rows = np.concatenate([np.flatnonzero(usps.y_train == d)[:per_digit] for d in range(10)])
    X, digits = usps.X_train[np.sort(rows)].astype(np.float64), usps.y_train[np.sort(rows)]
    problem = Problem.of(Gaussian(sigma=8.0), X, N_CLUSTERS)
    if method == EXACT:
        drawn = [np.random.default_rng(n).integers(N_CLUSTERS, size=len(X)) for n in range(3)]
        chance = [variation_of_information(digits, labels) for labels in drawn]
        shares = np.bincount(digits) / len(digits)
        return {
            (EXACT, "distance"): distance(problem, problem.exact, digits),
            DRAWN: chance,
            AS_DIGITS: 2 * float(entropy(shares)),
        }
    options: dict[str, Any] = {"gain": METHODS[method], "polish": True, "start": "orthonormal"}
    if way != RITZ:
        options = tuned_options(problem, method, way)
    found: Values = {}
    for mark, components in zip(marks, followed(problem, marks, seed, options), strict=True):
        found[method, way, mark, "excess"] = decades([problem.excess(components)])[0]
        if components is not None:
            found[method, way, mark, "distance"] = distance(problem, components, digits)
    return found


def tuned_options(problem: Problem, method: str, way: str) -> dict[str, Any]:
    if method != "KHA-SMD":
        return tuned(problem, method, TUNED_AFTER, (0,))
    rho0 = {text: RHO0[name] for name, text in PAPER.items()}[way]
    eta0 = tuned(problem, "KHA/et", TUNED_AFTER, (0,))["eta0"]
    return tuned(problem, method, TUNED_AFTER, (0,), eta0=eta0, rho0=rho0)


def distance(problem: Problem, components: NDArray[Any], digits: NDArray[Any]) -> float:
    """From clusters of the normalised rows of the eigenvectors to the digits: the median."""
    vectors = problem.operator @ components.T
    vectors /= np.linalg.norm(vectors, axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    means = [KMeans(N_CLUSTERS, n_init=10, tol=0.0, random_state=seed) for seed in range(3)]
    found = [variation_of_information(digits, each.fit_predict(vectors)) for each in means]
    return float(np.median(found))


def key_of(method: str, way: str) -> tuple[str, str]:
    return (method, PAPER["ρ_0 = 0"] if method != "KHA-SMD" and way != RITZ else way)


def as_exact_after(found: Found, method: str, way: str) -> Sample:
    """For each seed, the mark from which on clusters are as good as exact, or one pass more."""
    marks = [mark for mark in MARKS if (*key_of(method, way), mark, "distance") in found]
    values = np.array([found(*key_of(method, way), m, "distance").values for m in marks])
    good = values <= found(EXACT, "distance").mean + GOAL
    after = []
    for column in good.T:
        since = marks[-1] + 1
        for mark, fine in zip(reversed(marks), reversed(column), strict=True):
            if not fine:
                break
            since = mark
        after.append(since)
    return Sample.of(after)


def compare(found: Found, way: str) -> list[Compared]:
    """The lower excess error, and passes until clusters are as good as those of kernel PCA."""
    made = []
    if (*key_of("KHA-SMD", way), 10, "excess") not in found:
        return []
    for better, than in (("KHA/et", "KHA/t"), ("KHA-SMD", "KHA/et")):
        pair = [found(*key_of(m, way), 10, "excess") for m in (than, better)]
        what = f"{better} before {than}, after 10 passes"
        unit = "decades of excess error"
        made.append(order(what, pair[0] - pair[1], where="Figure 3", unit=unit))
    for method, words, sign, passes in (
        ("KHA/et", "within 10", -1, 11),
        ("KHA-SMD", "within 10", -1, 11),
        ("KHA/t", "after more than 30", 1, 30),
    ):
        if (*key_of(method, way), 1, "distance") in found:
            gain = as_exact_after(found, method, way).map(lambda n, s=sign, p=passes: s * (n - p))
            what = f"{method} clusters as kernel PCA does {words} passes"
            made.append(order(what, gain, where="§5.3", unit="passes"))
    return made


def compare_chance(found: Found, drawn: str) -> list[Compared]:
    if drawn not in found:
        return []
    more: dict[str, Any] = {"own": False, "better": 0, "where": "§5.3", "unit": "nats"}
    return [number("4.54", "variation of information of random labels", found(drawn), **more)]


PARTS = [
    Part(compare, WAYS, "ρ_0, and for how many passes η0 is tuned"),
    Part(compare_chance, (DRAWN, AS_DIGITS), "how random labels are drawn"),
]
ABOUT = About(
    title="Spectral clustering of USPS digits",
    where="Figure 3",
    says="The excess error and the variation of information over passes. KHA-SMD dominates KHA/et, "
    "which outperforms KHA/t. KHA/et and KHA-SMD cluster as well as exact kernel PCA within 10 "
    "passes, KHA/t after more than 30. Random labels have a variation of information of 4.54.",
    differs="KHA/t clusters as well as exact kernel PCA after 5 passes; in the paper it needs more "
    "than 30. KHA/et needs 10, as in the paper.",
    tried="Gains tuned as in the paper, and automatic gains with a Rayleigh-Ritz step, with which "
    "all methods need one or two passes. Random labels drawn as often as the digits have the "
    "published 4.54, which is twice the entropy of the digits.",
    reason="The paper does not say for how many passes the η0 of KHA/t was tuned, nor which "
    "difference from exact kernel PCA counts as as good; we allow 0.05 nats.",
    partial="One seed with gains tuned as in the paper, three with automatic gains.",
)
