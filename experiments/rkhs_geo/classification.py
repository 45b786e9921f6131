"""PerTurbo with plain and geodesic kernels: the RKHS-GEO paper's Table 2 and Figure 4 (§5.2).

Half of the points, drawn at random, for training, 30 times; Gaussian kernels over a range of σ. σ
has the least error on the test points, as in the paper, which is too optimistic. C of the support
vector machine is 10 n, or 5 n over the number of classes where there are more than two.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reproduce import About, Found, Part, Values, labelled
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from verdicts import Compared, Sample, number, order

from orthodrome import PerTurbo
from orthodrome.kernels import Gaussian

SVM, FLAT, GEODESIC = "SVM", "PerTurbo", "PerTurbo, geodesic"
POWERS = tuple(range(-4, 5))  # σ is that of "mean" times 2 to this power
STANDARD, RAW = "standardised", "as published"
# features and α; the paper tunes σ only, and mentions regularisation as a possible addition
SETTINGS = {
    "standardised features, α = 0": (STANDARD, 0.0),
    "features as published, α = 0": (RAW, 0.0),
    "standardised features, α by leave-one-out": (STANDARD, "loo"),
    "features as published, α by leave-one-out": (RAW, "loo"),
}
# mean and deviation of 30 halves. In our copy Ionosphere has no numbers, and two rows have no name
# and only that of the support vector machine: by their place they are taken for Glass and Pima.
TABLE_2 = {
    "ionosphere": {},
    "blood_transfusion": {SVM: "76.2 (1.8)", FLAT: "76.9 (1.2)", GEODESIC: "77.5 (1.8)"},
    "parkinsons": {SVM: "91.0 (2.5)", FLAT: "95.3 (3.3)", GEODESIC: "94.9 (1.0)"},
    "iris": {SVM: "96.4 (1.6)", FLAT: "96.3 (1.4)", GEODESIC: "96.8 (1.0)"},
    "haberman": {SVM: "74.6 (2.4)", FLAT: "75.2 (4.2)", GEODESIC: "73.7 (0.7)"},
    "glass": {SVM: "66.0 (3.9)"},
    "wine": {SVM: "97.2 (1.5)", FLAT: "84.7 (2.2)", GEODESIC: "96.8 (1.0)"},
    "pima_diabetes": {SVM: "76.9 (1.3)"},
    "australian_credit": {SVM: "86.5 (1.2)", FLAT: "86.2 (1.0)", GEODESIC: "84.5 (1.6)"},
    "german_credit_numeric": {SVM: "75.5 (1.5)", FLAT: "70.5 (1.8)", GEODESIC: "72.0 (1.5)"},
}
# the marks of the last column, or the numbers where our copy lacks the mark; Iris is marked as
# equal, Glass has neither: whether the geodesic kernel is better
BETTER = {
    "ionosphere": True,
    "blood_transfusion": True,
    "parkinsons": False,
    "haberman": False,
    "wine": True,
    "pima_diabetes": False,
    "australian_credit": False,
    "german_credit_numeric": True,
}


def jobs(quick: bool) -> Iterable[tuple[str, str, int]]:
    names, repeats = (("iris", "wine"), 3) if quick else (tuple(TABLE_2), 30)
    kinds = [(features, SVM) for features in (STANDARD, RAW)] + list(SETTINGS.values())
    return [(name, *kind, seed) for name in names for kind in kinds for seed in range(repeats)]


def measure(name: str, features: str, alpha: float | str, seed: int) -> Values:
    """The accuracy on the test half with each σ: of the SVM, or of PerTurbo with one α."""
    X, y = labelled(name)
    mixed = np.random.default_rng(seed).permutation(len(y))
    train, test = mixed[: len(y) // 2], mixed[len(y) // 2 :]
    if features == STANDARD:
        X = StandardScaler().fit(X[train]).transform(X)
    mean, found = float(Gaussian().fit(X[train]).sigma_), {}
    with warnings.catch_warnings():
        # classes of one or two training points, and α = 0
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        for method in (SVM,) if alpha == SVM else (FLAT, GEODESIC):
            for power in POWERS:
                model = classifier(method, mean * 2.0**power, y[train], alpha)
                score = 100 * model.fit(X[train], y[train]).score(X[test], y[test])
                found[name, features, alpha, method, power] = score
    return found


def classifier(method: str, sigma: float, y: NDArray[Any], alpha: float | str) -> Any:
    if method == SVM:
        n_classes = len(np.unique(y))
        penalty = 10.0 * len(y) if n_classes == 2 else 5.0 * len(y) / n_classes
        return SVC(C=penalty, gamma=1 / (2 * sigma**2))
    return PerTurbo(Gaussian(sigma=sigma), alpha=alpha, geodesic=method == GEODESIC)


def at_best(found: Found, name: str, setting: tuple[Any, ...], method: str) -> Sample:
    return found.best(name, *setting, method, of=POWERS)


def compare(found: Found, variant: str) -> list[Compared]:
    """Table 2 at the best σ, which kernel is said to be better, and Figure 4 at its two ends."""
    setting, made = SETTINGS[variant], []
    for name, printed in TABLE_2.items():
        if (name, *setting, FLAT, 0) not in found:
            continue
        for method in (FLAT, GEODESIC):
            if method in printed:
                ours = at_best(found, name, setting, method)
                what = f"{name}, {method}"
                more = {"where": "Table 2", "unit": "accuracy, %", "repeats": 30}
                made.append(number(printed[method], what, ours, own=True, **more))
        if name in BETTER:
            pair = [at_best(found, name, setting, method) for method in (GEODESIC, FLAT)]
            ahead, behind = pair if BETTER[name] else pair[::-1]
            what = f"{name}: {'geodesic' if BETTER[name] else 'plain'} kernel better"
            made.append(order(what, ahead - behind, where="Table 2", unit="accuracy, points"))
    return made + figure_4(found, setting)


def figure_4(found: Found, setting: tuple[Any, ...]) -> list[Compared]:
    """Blood: the geodesic kernel is better for small σ, and they converge for large ones."""
    key = ("blood_transfusion", *setting)
    if (*key, FLAT, 0) not in found:
        return []
    gains = {p: found(*key, GEODESIC, p) - found(*key, FLAT, p) for p in (-4, -3, -2, 4)}
    made = [
        order(
            f"blood_transfusion: geodesic kernel better, σ = mean/{2**-power}",
            gains[power],
            where="Figure 4",
            unit="accuracy, points",
        )
        for power in (-4, -3, -2)
    ]
    # "accuracies of the two experimented kernels converge": to less than one point
    what = "blood_transfusion: kernels differ by less than 1, σ = 16 mean"
    near = Sample(1.0 - abs(gains[4].mean), gains[4].deviation, gains[4].n)
    return [*made, order(what, near, where="Figure 4", unit="accuracy, points")]


def compare_svm(found: Found, features: str) -> list[Compared]:
    more = {"where": "Table 2", "unit": "accuracy, %", "repeats": 30, "own": False}
    return [
        number(printed[SVM], f"{name}, SVM", at_best(found, name, (features, SVM), SVM), **more)
        for name, printed in TABLE_2.items()
        if SVM in printed and (name, features, SVM, SVM, 0) in found
    ]


PARTS = [
    Part(compare, tuple(SETTINGS)[:2], "the scale of the features", tuple(SETTINGS)[2:]),
    Part(compare_svm, (STANDARD, RAW), "the scale of the features"),
]
ABOUT = About(
    title="PerTurbo",
    where="Table 2 and Figure 4",
    says="Accuracies on ten sets of support vector machines, and of PerTurbo with the "
    "Gaussian and with the geodesic kernel. Half of the points are used for training, and "
    "this is repeated 30 times. The geodesic kernel helps on more than half of the sets. On "
    "Blood it is better at small σ, and the two kernels converge at large σ.",
    differs="With features as published, six of 14 numbers are short: Parkinsons and "
    "Australian with both kernels, Wine with the geodesic kernel, and Haberman with the "
    "plain kernel. With standardised features Wine is reached or exceeded, but Iris and "
    "Haberman are 1 to 3 points short. Parkinsons is short with every variant, by 3 to "
    "11 points. The geodesic kernel is significantly better than the plain kernel on at "
    "most one set. On Blood it is not better at small σ (Figure 4).",
    tried="Both scales of the features, each with α = 0 and with α chosen by "
    "leave-one-out, on 30 random halves. Leave-one-out exceeds the printed numbers on "
    "Blood, Wine and German. With leave-one-out and standardised features, the geodesic "
    "kernel is worse at small σ on Blood.",
    reason="The paper seems to mix scales. Features as published agree with its plain "
    "kernel on Wine (84.7 %, here 85.9 %). Standardised features agree with its geodesic "
    "kernel and with its support vector machine, whose package standardises by default. "
    "For Parkinsons the reason is unknown.",
    short="Wine and Australian depend on the scale of the features (tested: with "
    "standardised features they are reached, exceeded or within one point). For Haberman "
    "and Parkinsons the reason is unknown (scale and α were tested)",
)
