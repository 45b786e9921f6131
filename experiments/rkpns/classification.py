"""Classify digits with few modes: nested spheres compared with kernel principal components.

The rkPNS paper's Figures 5 and 6 (§VI and §VII): pen-digits and MNIST, D = 2 … 16 features, one
linear support vector machine for each class against the rest. Points are clean; or 20 % of the
features of each training point, chosen at random, are set to 0; or those of each test point too.
Each method has the same points and the same number of features. All features are divided by one
number, their root mean square over the training points.

p is 2, or chosen for each D by five-fold cross-validation. Chains with p < 2 are slow, so they are
shortened here: outer subspheres, which give no features, are fitted with p = 2. The effect is
measured for one split with p = 1.

    python experiments/rkpns/classification.py [--quick]

writes classification.csv, classification.md and classification.png next to this file. Needs
pen-digits and MNIST (ORTHODROME_DATA).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from common import HERE, KERNELS, POLYNOMIAL, kernel_of, publish, wraps_recorded
from numpy.typing import NDArray
from pages import (
    Row,
    command_line,
    count,
    load,
    new_figure,
    plain,
    published,
    side_by_side,
    table,
    timed,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC
from verdicts import Compared

from orthodrome import KernelPCA, KernelPNS, RobustKernelPCA
from orthodrome.plots.palette import COLORS, MARKERS
from orthodrome.sphere import nested_spheres

Features = dict[str, NDArray[np.float64]]  # by the name of a set of points: TRAIN, CLEAN, ZEROED

TRAIN, CLEAN, ZEROED = "train", "clean", "zeroed"
# What is zeroed, and which test points that means.
CONDITIONS = {"nothing": CLEAN, "training": CLEAN, "both": ZEROED}
NAMES = ("pendigits", "mnist")
SAID = published(HERE, "classification")

SPHERES = ("small", "great")
KINDS = {"paper": False, "circle": True}  # whether the angle on the circle is the first feature
FLAT, UNIT, ROBUST = "kPCA", "kPCA, renormalised", "robust kPCA, p chosen"
POWERS = (0.5, 1.0, 1.5, 2.0)
DIMENSIONS = tuple(range(2, 17))
# the dimension of the smallest sphere that holds all subspheres of which features are residuals
INNER = max(DIMENSIONS) + 1
TABLE_DIMENSIONS = (2, 4, 8, 16)
C, OTHER_C = 1.0, 100.0

# What is expected (a prototype of ours): MNIST, polynomial kernel, clean; error in percent at D of
# kPNS, kPCA and kPCA on renormalised points (where known).
EXPECTED = {8: (38.0, 54.0, 45.0), 16: (26.0, 42.0, None)}


def pns(sphere: str, kind: str, power: str = "p = 2") -> str:
    """The name of a method."""
    return f"kPNS, {sphere}, {kind}, {power}"


SQUARES = tuple(pns(sphere, kind) for sphere in SPHERES for kind in KINDS)
CHOSEN = tuple(pns(sphere, kind, "p chosen") for sphere in SPHERES for kind in KINDS)
PLAIN = (*SQUARES, FLAT, UNIT)  # without a choice of p
METHODS = (*SQUARES, *CHOSEN, ROBUST, FLAT, UNIT)
INNER_ONE, WHOLE_ONE = "p = 1, inner levels", "p = 1, all levels"


@dataclass(frozen=True)
class Size:
    """How much is run; p is chosen in fewer repeats."""

    names: tuple[str, ...] = NAMES
    n_train: int = 150
    n_test: int = 1000
    n_repeats: int = 10
    cv_repeats: int = 5
    whole_repeats: int = 1
    n_folds: int = 5
    powers: tuple[float, ...] = POWERS

    @staticmethod
    def of(quick: bool) -> Size:
        return Size(("pendigits",), 40, 60, 2, 1, 1, 2, (1.0, 2.0)) if quick else Size()

    def jobs(self) -> list[tuple[str, str, bool, int, Size]]:
        """Data, kernel, whether training points are zeroed, and repeat; the longest first."""
        return [
            (name, kernel, zeroed, repeat, self)
            for repeat in range(self.n_repeats)
            for name in self.names[::-1]
            for kernel in KERNELS
            for zeroed in (False, True)
        ]


# ---------------------------------------------------------------------------- runs


def measure(size: Size, quick: bool) -> list[Row]:
    jobs = size.jobs()
    parts = side_by_side(one_split, jobs, quick=quick)
    cells: dict[tuple[str, str, str], dict[int, Outcome]] = {}
    for (name, kernel, _, repeat, _), part in zip(jobs, parts, strict=True):
        for condition, outcome in part.items():
            cells.setdefault((name, kernel, condition), {})[repeat] = Outcome.of(outcome)
    rows = []
    for name in size.names:
        for kernel in KERNELS:
            for condition in CONDITIONS:
                base = {"data": name, "kernel": kernel, "zeroed": condition}
                base |= {"n_train": size.n_train, "n_test": size.n_test}
                rows += summary(base, list(cells[name, kernel, condition].values()))
    return rows


@dataclass(frozen=True)
class Outcome:
    """Errors of one split by (method, C, D), the p that were chosen, and wraps by method."""

    errors: dict[tuple[str, float, int], float]
    chosen: dict[tuple[str, int], float]
    wraps: dict[str, float]

    def listed(self) -> dict[str, Any]:
        """The same in lists, so that it can be kept."""
        return {
            "errors": [[*key, error] for key, error in self.errors.items()],
            "chosen": [[*key, p] for key, p in self.chosen.items()],
            "wraps": self.wraps,
        }

    @staticmethod
    def of(listed: dict[str, Any]) -> Outcome:
        errors = {(method, penalty, D): e for method, penalty, D, e in listed["errors"]}
        chosen = {(method, D): p for method, D, p in listed["chosen"]}
        return Outcome(errors, chosen, listed["wraps"])


def one_split(name: str, kernel: str, zeroed: bool, repeat: int, size: Size) -> dict[str, Any]:
    """Train every method on one part of a set, and test it: an outcome for each condition."""
    points, labels = drawn(name, zeroed, repeat, size)
    with timed(f"{name}, {kernel}, {'zeroed' if zeroed else 'clean'}, {repeat}"), wraps_recorded():
        trained = Trained(points, labels, kernel)
        if repeat < size.cv_repeats:
            trained.choose(size.n_folds, size.powers)
        if repeat < size.whole_repeats:
            trained.check_shortcut()
    conditions = [c for c in CONDITIONS if (c != "nothing") == zeroed]
    return {
        condition: Outcome(where, trained.chosen, trained.wraps).listed()
        for condition in conditions
        for where in [trained.errors[CONDITIONS[condition]]]
    }


def drawn(
    name: str, zeroed: bool, repeat: int, size: Size
) -> tuple[Features, dict[str, NDArray[Any]]]:
    """Training points and test points, clean and zeroed, and their classes, from a seed."""
    everything = load(name)
    random = np.random.default_rng(repeat)
    order = random.permutation(len(everything.data))[: size.n_train + size.n_test]
    X = np.asarray(everything.data[order], dtype=np.float64)
    if name == "mnist":
        X /= 255.0
    y = np.asarray(everything.target[order])
    hidden = with_zeros(X, random)
    train, test = slice(0, size.n_train), slice(size.n_train, None)
    points = {TRAIN: (hidden if zeroed else X)[train], CLEAN: X[test], ZEROED: hidden[test]}
    return points, {TRAIN: y[train], CLEAN: y[test], ZEROED: y[test]}


def with_zeros(
    X: NDArray[np.float64], random: np.random.Generator, share: float = 0.2
) -> NDArray[np.float64]:
    """Set so many of the features of each point to 0, other ones each time."""
    hidden = X.copy()
    n_hidden = round(share * X.shape[1])
    places = np.argsort(random.random(X.shape), axis=1)[:, :n_hidden]
    np.put_along_axis(hidden, places, 0.0, axis=1)
    return hidden


class Trained:
    """All methods on one set of training points, and their errors on the test points."""

    def __init__(self, points: Features, labels: dict[str, NDArray[Any]], kernel: str) -> None:
        self.points, self.labels, self.kernel = points, labels, kernel
        self.errors: dict[str, dict[tuple[str, float, int], float]] = {CLEAN: {}, ZEROED: {}}
        self.chosen: dict[tuple[str, int], float] = {}
        self.wraps: dict[str, float] = {}
        self.chains = {sphere: Chain(points, kernel, sphere) for sphere in SPHERES}
        for sphere, chain in self.chains.items():
            for kind in KINDS:
                self.wraps[pns(sphere, kind)] = chain.wrap
                for penalty in (C, OTHER_C):
                    self.test(pns(sphere, kind), chain.of(kind, 2.0), penalty)
        for method, features in ((FLAT, flat(points, kernel)), (UNIT, self.chains["great"].flat())):
            for penalty in (C, OTHER_C):
                self.test(method, features, penalty)

    def test(
        self,
        method: str,
        features: Features,
        penalty: float = C,
        dimensions: Iterable[int] | None = None,
    ) -> None:
        """Note the errors of a method with its first features, so many as each D says."""
        for D in dimensions or DIMENSIONS:
            for where, error in errors_of(leading(features, D), self.labels, penalty).items():
                self.errors[where][method, penalty, D] = error

    def choose(self, n_folds: int = 5, powers: tuple[float, ...] = POWERS) -> None:
        """Choose p for each D by the accuracy over folds, and test with it; ties: the largest."""
        wrong = {
            key: np.zeros(len(DIMENSIONS)) for key in itertools.product((*CHOSEN, ROBUST), powers)
        }
        y = self.labels[TRAIN]
        with catch_warnings():  # of classes with fewer points than folds, which a quick run has
            simplefilter("ignore", UserWarning)
            folds = list(StratifiedKFold(n_folds).split(np.zeros(len(y)), y))
        for train, left in folds:
            points = {TRAIN: self.points[TRAIN][train], CLEAN: self.points[TRAIN][left]}
            labels = {TRAIN: y[train], CLEAN: y[left]}
            chains = {sphere: Chain(points, self.kernel, sphere) for sphere in SPHERES}
            for method, p in wrong:
                features = self._features_of(method, p, points, chains)
                for number, D in enumerate(DIMENSIONS):
                    wrong[method, p][number] += errors_of(leading(features, D), labels, C)[CLEAN]
        for method in (*CHOSEN, ROBUST):
            for number, D in enumerate(DIMENSIONS):
                # errors of folds are sums of rounded percentages: ties to a tiny margin
                least = min(wrong[method, p][number] for p in powers)
                best = max(p for p in powers if wrong[method, p][number] <= least + 1e-9)
                self.chosen[method, D] = best
                features = self._features_of(method, best, self.points, self.chains)
                self.test(method, features, dimensions=(D,))

    def _features_of(
        self, method: str, p: float, points: Features, chains: dict[str, Chain]
    ) -> Features:
        if method == ROBUST:
            return robust(points, self.kernel, p, chains["great"].robust)
        _, sphere, kind, _ = method.split(", ")
        return chains[sphere].of(kind, p)

    def check_shortcut(self) -> None:
        """Test p = 1 in the inner levels only, and in all of them."""
        chain = self.chains["small"]
        self.test(INNER_ONE, chain.of("paper", 1.0))
        of_kernel = kernel_of(self.kernel)
        model = KernelPNS(1, kernel=of_kernel, p=1.0, sphere="small", negligible=0.0)
        model.fit(self.points[TRAIN])
        whole = model.nested_spheres_
        coordinates = chain.coordinates.items()
        features = {key: whole.features(each, max(DIMENSIONS)) for key, each in coordinates}
        self.test(WHOLE_ONE, features)


class Chain:
    """Nested spheres of p = 2 fitted to training points, and with other p inside of them."""

    def __init__(self, points: Features, kernel: str, sphere: str) -> None:
        model = KernelPNS(1, kernel=kernel_of(kernel), sphere=sphere, negligible=0.0)
        model.fit(points[TRAIN])
        self.sphere, self.chain = sphere, model.nested_spheres_
        self.coordinates = {key: model.sphere_coordinates(X) for key, X in points.items()}
        self.wrap = float(self.chain.wrap)
        self.robust: dict[float, Features] = {}  # what `robust` keeps
        inner = min(INNER, self.chain.n_modes)
        self._below = {
            key: self.chain.projected(each, inner) for key, each in self.coordinates.items()
        }
        self._chains: dict[float, Any] = {}
        self._features: dict[tuple[str, float], Features] = {}

    def of(self, kind: str, p: float) -> Features:
        """The features of all points for the largest D, from which those of a smaller one follow.

        Fewer are its first columns times a factor, which the support vector machines do not see.
        """
        if (kind, p) not in self._features:
            chain, points = (self.chain, self.coordinates) if p == 2 else self._inner(p)
            self._features[kind, p] = {
                key: chain.features(each, max(DIMENSIONS), circle=KINDS[kind])
                for key, each in points.items()
            }
        return self._features[kind, p]

    def _inner(self, p: float) -> tuple[Any, Features]:
        if p not in self._chains:
            self._chains[p] = nested_spheres(
                self._below[TRAIN], p=p, sphere=self.sphere, negligible=0.0
            )
        return self._chains[p], self._below

    def flat(self) -> Features:
        """Principal components of the unit vectors that the points are in the training span."""
        train = self.coordinates[TRAIN]
        center = train.mean(axis=0)
        rows = np.linalg.svd(train - center, full_matrices=False)[2]
        directions = rows[: max(DIMENSIONS)].T
        return {key: (each - center) @ directions for key, each in self.coordinates.items()}


def flat(points: Features, kernel: str) -> Features:
    model = KernelPCA(max(DIMENSIONS), kernel=kernel_of(kernel)).fit(points[TRAIN])
    return {key: model.transform(X) for key, X in points.items()}


def robust(points: Features, kernel: str, p: float, kept: dict[float, Features]) -> Features:
    """Features of robust kernel PCA through the Karcher mean, as in the paper."""
    if p not in kept:
        model = RobustKernelPCA(
            max(DIMENSIONS), kernel=kernel_of(kernel), method="pursuit", p=p, center="karcher"
        ).fit(points[TRAIN])
        kept[p] = {key: model.transform(X) for key, X in points.items()}
    return kept[p]


def leading(features: Features, D: int) -> Features:
    return {key: each[:, :D] for key, each in features.items()}


def errors_of(
    features: Features, labels: dict[str, NDArray[Any]], penalty: float
) -> dict[str, float]:
    """Train on features divided by one number; the error on other points, in percent."""
    unit = float(np.sqrt(np.mean(features[TRAIN] ** 2))) or 1.0
    machine = LinearSVC(C=penalty, dual=False)
    with catch_warnings():  # of C = 100 on points that can be separated: it stops in time
        simplefilter("ignore", ConvergenceWarning)
        machine.fit(features[TRAIN] / unit, labels[TRAIN])
    return {
        key: 100 * (1 - float(machine.score(each / unit, labels[key])))
        for key, each in features.items()
        if key != TRAIN
    }


# ---------------------------------------------------------------------------- summary


def twin(method: str) -> str | None:
    """What a method is compared with in its last columns: itself with p = 2, or shortened."""
    if method == WHOLE_ONE:
        return INNER_ONE
    return method.replace("p chosen", "p = 2") if method in CHOSEN else None


def summary(base: Row, outcomes: list[Outcome]) -> list[Row]:
    """Mean and standard error over splits; of differences, those within each split."""
    rows = []
    for key in outcomes[0].errors:
        method, penalty, D = key
        own = [each for each in outcomes if key in each.errors]
        errors = np.array([each.errors[key] for each in own])
        row = {**base, "method": method, "C": penalty, "D": D, "n_repeats": len(own)}
        row |= moments("error", errors)
        for column, other in (("on_flat", FLAT), ("on_unit", UNIT), ("on_twin", twin(method))):
            there = (other, penalty, D)
            values = [each.errors[there] for each in own] if other else [math.nan] * len(own)
            row |= moments(column, errors - np.array(values))
        row |= moments("mean_on_robust", mean_on_robust(method, own))
        powers = [each.chosen.get((method, D), math.nan) for each in own]
        row["n_below_two"] = sum(p < 2 for p in powers)
        row["wrap"] = float(np.mean([each.wraps.get(method, math.nan) for each in own]))
        rows.append(row)
    return rows


def mean_on_robust(method: str, outcomes: list[Outcome]) -> NDArray[np.float64]:
    """The error less that of robust kPCA, the mean over D, by split; NaN where no p is chosen."""
    if method not in CHOSEN:
        return np.full(len(outcomes), math.nan)
    return np.array(
        [
            np.mean([each.errors[method, C, D] - each.errors[ROBUST, C, D] for D in DIMENSIONS])
            for each in outcomes
        ]
    )


def moments(name: str, values: NDArray[np.float64]) -> Row:
    """Mean and standard error; of one value none."""
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return {name: float(np.mean(values)), f"{name}_se": float(error)}


# ---------------------------------------------------------------------------- what it shows


class Findings:
    """The rows, as questions that the page and the figure ask."""

    def __init__(self, rows: list[Row]) -> None:
        keys = ("data", "kernel", "zeroed", "method", "C", "D")
        self._rows = {tuple(row[key] for key in keys): row for row in rows}
        self.first = rows[0]
        self.names = list(dict.fromkeys(row["data"] for row in rows))
        self.dimensions = sorted({row["D"] for row in rows})
        self.methods = [m for m in METHODS if any(row["method"] == m for row in rows)]

    def row(self, cell: Cell, method: str, D: int, penalty: float = C) -> Row:
        return self._rows[cell.name, cell.kernel, cell.zeroed, method, penalty, D]

    def cells(self, kernel: str | None = None) -> list[Cell]:
        """Every set under every condition, with every kernel or one of them."""
        return [
            Cell(name, own, zeroed)
            for own in KERNELS
            if kernel in (None, own)
            for name in self.names
            for zeroed in CONDITIONS
        ]

    def shown_dimensions(self) -> list[int]:
        return [D for D in TABLE_DIMENSIONS if D in self.dimensions]


@dataclass(frozen=True)
class Cell:
    """A set, a kernel, and what is zeroed."""

    name: str
    kernel: str
    zeroed: str

    def __str__(self) -> str:
        return f"{self.name}, {self.kernel} kernel, zeroed: {self.zeroed}"


def with_error(row: Row, column: str = "error", sign: str = "") -> str:
    """Mean and standard error over splits."""
    if math.isnan(row[f"{column}_se"]):
        return f"{row[column]:{sign}.1f}"
    return f"{row[column]:{sign}.1f} ± {row[f'{column}_se']:.1f}"


def compared(rows: list[Row]) -> list[Compared]:
    """Figure 5 over all D, about as good included; Figure 6 and its percentages at small D."""
    found = Findings(rows)
    made = [number(found, said, cell) for said in SAID["numbers"] for cell in cells_of(found, said)]
    for said in SAID["orders"]:
        for cell in cells_of(found, said):
            if "dimensions" in said:
                made += [order_at(found, said, cell, D) for D in small(found, said)]
            else:
                made.append(order_over(found, said, cell))
    return made


def cells_of(found: Findings, said: Row) -> list[Cell]:
    """The sets, kernels and conditions that a published sentence speaks of."""
    return [
        cell
        for cell in found.cells()
        if cell.zeroed in said["zeroed"] and cell.name in said.get("data", found.names)
    ]


def small(found: Findings, said: Row) -> list[int]:
    """The small D of a published sentence, as far as they were run."""
    return [D for D in said["dimensions"] if D in found.dimensions]


def gain_at(found: Findings, said: Row, cell: Cell, D: int) -> tuple[float, float]:
    """How much less one error is than another, and the standard error.

    Differences within splits are kept of the mean over D alone; here the error is that of
    independent means, which of most methods is more than that within splits.
    """
    better, than = (found.row(cell, said[key], D) for key in ("better", "than"))
    errors = [0.0 if math.isnan(row["error_se"]) else row["error_se"] for row in (better, than)]
    return than["error"] - better["error"], math.hypot(*errors)


def number(found: Findings, said: Row, cell: Cell) -> Compared:
    """How much lower the error is, mean over small D; the mean of the errors bounds that of it."""
    dimensions = small(found, said)
    gains, errors = zip(*(gain_at(found, said, cell, D) for D in dimensions), strict=True)
    what = f"{cell}: robust kPNS below robust kPCA, error in %, mean of D = {listed(dimensions)}"
    ours = (float(np.mean(gains)), float(np.mean(errors)))
    return Compared.number(said["where"], what, said["value"], said["deviation"], *ours)


def order_at(found: Findings, said: Row, cell: Cell, D: int) -> Compared:
    what = f"{cell}: robust kPNS before robust kPCA, error in %, D = {D}"
    return Compared.order(said["where"], what, *gain_at(found, said, cell, D))


def order_over(found: Findings, said: Row, cell: Cell) -> Compared:
    """Better or about as good, over all D: not worse by as much as is still about as good."""
    row = found.row(cell, said["better"], found.dimensions[0])  # the same for all D
    error = row["mean_on_robust_se"]
    what = (
        f"{cell}: robust kPNS better than robust kPCA or worse by less than {said['about']:g}, "
        "error in %, mean over D, within splits; how far from that"
    )
    gain = said["about"] - row["mean_on_robust"]
    return Compared.order(said["where"], what, gain, 0.0 if math.isnan(error) else error)


def listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def page(rows: list[Row]) -> str:
    found = Findings(rows)
    first = found.first
    plain_repeats = first["n_repeats"]
    cv_repeats = found.row(found.cells()[0], ROBUST, found.dimensions[0])["n_repeats"]
    text = [
        "# Classifying digits with few modes: nested spheres and kernel principal components",
        "",
        "Written by `experiments/rkpns/classification.py` (`make experiments`); do not edit. Error "
        "on test points in percent, mean ± standard error over random splits (rkPNS paper, Figures "
        "5 and 6, which are box plots without numbers). There are "
        f"{count(plain_repeats, 'split')}, or {cv_repeats} if p is chosen, each with "
        f"{first['n_train']} training and {first['n_test']} test points. All splits are drawn from "
        "the same set, so they overlap a little. Zeroed: a fifth of the features (3 of 16 for "
        "pen-digits), chosen at random for each point, are set to 0 in the training points, or in "
        "training and test points. The classifier uses D features, all divided by one number: "
        f"`LinearSVC` with C = {C:g}, one class against the rest. Kernels: Gaussian, where σ² is "
        "the mean squared distance, and the polynomial (xᵀx')¹⁰, normalised. A difference is "
        "significant if it exceeds two standard errors.",
        "",
        "kPNS uses small or great subspheres. *Paper*: the features are the residuals from the D "
        "innermost subspheres (§VI). *Circle*: the angle on the last circle and D - 1 residuals. "
        f"*p chosen*: one of {', '.join(map(plain, POWERS))}, for each D, by five-fold "
        "cross-validation (a quick run has p = 1 and 2, and two folds); if several are equally "
        "good, the largest. Chains with p < 2 are shortened: subspheres of more than "
        f"{INNER - 1} dimensions, which give no features, are fitted with p = 2. Robust kPCA is "
        "centred at the Karcher mean, and p is chosen in the same way. *Renormalised*: points are "
        "projected onto the span of the training points and normalised before PCA, as for nested "
        "spheres.",
        "",
        *claims(found),
        "",
        "![Error over D, one panel for each set, kernel and condition](classification.png)",
    ]
    for kernel in KERNELS:
        text += ["", f"## Error, {kernel} kernel", "", *error_table(found, kernel)]
    text += ["", "## Differences within splits", ""]
    text += [
        "Difference of the error in points, p = 2; kPNS is better if negative.",
        "",
        *difference_table(found),
    ]
    text += ["", "## Choice of p", ""]
    text += [
        "How often p < 2 is chosen, over all D and splits; and the error with p chosen minus the "
        "error with p = 2, averaged over D (± the mean standard error).",
        "",
        *power_table(found),
        "",
        "## A different C",
        "",
        f"Error with C = {OTHER_C:g}, p = 2.",
        "",
        *other_table(found),
    ]
    return "\n".join(text) + "\n"


# ---------------------------------------------------------------------------- claims


def claims(found: Findings) -> list[str]:
    lines = [
        "- Expected from a prototype: kPNS is clearly better than kPCA with the polynomial kernel, "
        "but not with the Gaussian kernel. " + expected_claim(found)
    ]
    for kernel in KERNELS[::-1]:
        for method in SQUARES:
            lines.append(gain_claim(found, kernel, method))
    return [
        *lines,
        kinds_claim(found),
        power_claim(found),
        robust_claim(found),
        unit_claim(found),
        other_claim(found),
        wrap_claim(found),
        shortcut_claim(found),
    ]


def expected_claim(found: Findings) -> str:
    """Compare the errors on MNIST with the polynomial kernel with the expected ones."""
    if "mnist" not in found.names:
        return "MNIST was not run."
    cell = Cell("mnist", POLYNOMIAL, "nothing")
    parts = []
    for D, (ours, flat_error, unit_error) in EXPECTED.items():
        expected = f"{ours:.0f} for kPNS, {flat_error:.0f} for kPCA"
        expected += f", {unit_error:.0f} for renormalised kPCA" if unit_error else ""
        kept = ", ".join(
            f"{found.row(cell, method, D)['error']:.1f} ({method.removeprefix('kPNS, ')})"
            for method in SQUARES
        )
        parts.append(
            f"D = {D}: expected {expected}; measured {kept} for kPNS, "
            f"{found.row(cell, FLAT, D)['error']:.1f} for kPCA, "
            f"{found.row(cell, UNIT, D)['error']:.1f} for renormalised kPCA"
        )
    return f"MNIST, polynomial, nothing zeroed, {'. '.join(parts)}."


def sure(row: Row, column: str) -> int:
    """-1 or 1 where a difference exceeds two standard errors, else 0."""
    return int(np.sign(row[column])) if abs(row[column]) > 2 * row[f"{column}_se"] else 0


def gain_claim(found: Findings, kernel: str, method: str) -> str:
    """Count where a method is better and worse than both kinds of kPCA."""
    parts = []
    for column, other in (("on_flat", FLAT), ("on_unit", "renormalised kPCA")):
        rows = [
            found.row(cell, method, D) for cell in found.cells(kernel) for D in found.dimensions
        ]
        better, worse = (sum(sure(row, column) == sign for row in rows) for sign in (-1, 1))
        mean = np.mean([row[column] for row in rows])
        sets = [
            f"{name} {np.mean([row[column] for row in rows if row['data'] == name]):+.1f}"
            for name in found.names
        ]
        parts.append(
            f"compared with {other}, better on {better} and worse on {worse} of {len(rows)} "
            f"({mean:+.1f} points on average; {', '.join(sets)})"
        )
    return (
        f"- {kernel[0].upper()}{kernel[1:]} kernel, {method}, significant differences over sets, "
        f"conditions and D: {'; '.join(parts)}."
    )


def kinds_claim(found: Findings) -> str:
    """Compare the features of the paper with those that include the angle on the circle."""
    parts = []
    for sphere in SPHERES:
        paper, circle = (
            np.mean(
                [
                    found.row(cell, pns(sphere, kind), D)["error"]
                    for cell in found.cells()
                    for D in found.dimensions
                ]
            )
            for kind in KINDS
        )
        word = "lower" if circle < paper else "not lower"
        parts.append(f"{sphere} spheres, {circle:.1f} with it, {paper:.1f} without it ({word})")
    return (
        "- The features of the paper do not include the angle on the circle. Mean error over all "
        f"sets, kernels, conditions and D: {'; '.join(parts)}."
    )


def power_claim(found: Findings) -> str:
    parts = []
    for zeroed in CONDITIONS:
        rows = [
            found.row(cell, method, D)
            for cell in found.cells()
            if cell.zeroed == zeroed
            for method in CHOSEN
            for D in found.dimensions
        ]
        share = sum(r["n_below_two"] for r in rows) / sum(r["n_repeats"] for r in rows)
        mean = float(np.mean([row["on_twin"] for row in rows]))
        signs = [sure(row, "on_twin") for row in rows]
        parts.append(
            f"zeroed {zeroed}: p < 2 in {100 * share:.0f} %, {mean:+.2f} points on average "
            f"(significantly better on {signs.count(-1)}, worse on {signs.count(1)} of "
            f"{len(rows)})"
        )
    means = [
        np.mean(
            [
                found.row(cell, method, D)["on_twin"]
                for method in CHOSEN
                for cell in found.cells()
                if cell.zeroed == zeroed
                for D in found.dimensions
            ]
        )
        for zeroed in ("training", "both")
    ]
    word = "helps" if max(means) < -0.5 else "**does not help**"
    return (
        f"- kPNS with p chosen compared with p = 2: {'; '.join(parts)}. With zeroed features, "
        f"p < 2 {word}. (The criterion is a gain of half a point on average under both conditions.)"
    )


def robust_claim(found: Findings) -> str:
    parts = []
    for kernel in KERNELS:
        pairs = [
            (found.row(cell, method, D)["error"], found.row(cell, ROBUST, D)["error"])
            for cell in found.cells(kernel)
            for method in (pns("small", "paper", "p chosen"),)
            for D in found.dimensions
        ]
        lower = sum(ours < other for ours, other in pairs)
        mean = float(np.mean([ours - other for ours, other in pairs]))
        parts.append(f"{kernel}, on {lower} of {len(pairs)} ({mean:+.1f} points on average)")
    return (
        "- The paper's own comparison: kPNS with small spheres, the paper's features and p chosen "
        f"has a lower mean error than robust kPCA with p chosen: {'; '.join(parts)}. The paper "
        "finds it “often better (or about as good)”, and “almost always” for zeroed features and "
        "small D."
    )


def unit_claim(found: Findings) -> str:
    """How much of the gain remains if kernel PCA uses normalised points too."""
    parts = []
    for cell in found.cells(POLYNOMIAL):
        methods = (pns("small", "paper"), UNIT, FLAT, ROBUST)
        means = [
            np.mean([found.row(cell, method, D)["error"] for D in found.dimensions])
            for method in methods
        ]
        shown = ", ".join(f"{mean:.1f}" for mean in means)
        parts.append(f"{cell.name}, zeroed {cell.zeroed}: {shown}")
    return (
        "- The effect of renormalising alone, with the polynomial kernel. Mean error over D of "
        f"kPNS (small, paper, p = 2), renormalised kPCA, kPCA, and robust kPCA (p chosen): "
        f"{'; '.join(parts)}."
    )


def other_claim(found: Findings) -> str:
    """Whether the order of methods depends on C."""
    same = total = 0
    for cell in found.cells():
        for D in found.dimensions:
            for method in SQUARES:
                signs = [
                    np.sign(found.row(cell, method, D, penalty)["on_flat"])
                    for penalty in (C, OTHER_C)
                ]
                same, total = same + (signs[0] == signs[1]), total + 1
    return (
        f"- With C = {OTHER_C:g} and with C = {C:g}, the same method is better, kPNS (p = 2) or "
        f"kPCA, in {same} of {total} cases."
    )


def wrap_claim(found: Findings) -> str:
    parts = []
    for sphere in SPHERES:
        wraps = [
            found.row(cell, pns(sphere, "circle"), found.dimensions[0])["wrap"]
            for cell in found.cells()
        ]
        beyond = sum(wrap > math.pi for wrap in wraps)
        parts.append(
            f"{sphere} spheres, {beyond} of {len(wraps)} ({min(wraps):.2f} … {max(wraps):.2f})"
        )
    return (
        "- Cases in which the training points cover more than half of the last circle (p = 2; "
        f"range of the mean arc in rad): {'; '.join(parts)}."
    )


def shortcut_claim(found: Findings) -> str:
    rows = [found.row(cell, WHOLE_ONE, D) for cell in found.cells() for D in found.dimensions]
    values = np.array([row["on_twin"] for row in rows])
    return (
        "- The effect of shortening (p = 1, small spheres, features of the paper, "
        f"{count(rows[0]['n_repeats'], 'split')}): with p = 1 on all levels, not only on the inner "
        f"ones, the error changes by {values.mean():+.2f} points on average "
        f"({np.abs(values).mean():.2f} in absolute value), from {values.min():+.1f} to "
        f"{values.max():+.1f}."
        + (" For p < 2, trust averages, not single values." if np.abs(values).max() > 2 else "")
    )


# ---------------------------------------------------------------------------- tables, figure


def error_table(found: Findings, kernel: str) -> list[str]:
    dimensions = found.shown_dimensions()
    header = ["set", "zeroed", "method", *(f"D = {D}" for D in dimensions)]
    cells = []
    for cell in found.cells(kernel):
        for number, method in enumerate(found.methods):
            first = [cell.name, cell.zeroed] if number == 0 else ["", ""]
            values = [with_error(found.row(cell, method, D)) for D in dimensions]
            cells.append([*first, method, *values])
    return table(header, cells)


def difference_table(found: Findings) -> list[str]:
    dimensions = found.shown_dimensions()
    header = ["kernel", "set", "zeroed", "method"]
    header += [f"D = {D}, minus {other}" for other in (FLAT, "renormalised") for D in dimensions]
    cells = []
    for cell in found.cells():
        for number, method in enumerate(SQUARES):
            first = [cell.kernel, cell.name, cell.zeroed] if number == 0 else ["", "", ""]
            values = [
                with_error(found.row(cell, method, D), column, "+")
                for column in ("on_flat", "on_unit")
                for D in dimensions
            ]
            cells.append([*first, method.removesuffix(", p = 2"), *values])
    return table(header, cells)


def power_table(found: Findings) -> list[str]:
    methods = (*CHOSEN, ROBUST)
    header = ["kernel", "set", "zeroed"]
    header += [f"{method.removesuffix(', p chosen')}: p < 2" for method in methods]
    header += [f"{method.removesuffix(', p chosen')}: error" for method in CHOSEN]
    cells = []
    for cell in found.cells():
        row = [cell.kernel, cell.name, cell.zeroed]
        for method in methods:
            own = [found.row(cell, method, D) for D in found.dimensions]
            share = sum(r["n_below_two"] for r in own) / sum(r["n_repeats"] for r in own)
            row.append(f"{100 * share:.0f} %")
        for method in CHOSEN:
            own = [found.row(cell, method, D) for D in found.dimensions]
            mean, error = (np.mean([r[key] for r in own]) for key in ("on_twin", "on_twin_se"))
            row.append(f"{mean:+.1f} ± {error:.1f}")
        cells.append(row)
    return table(header, cells)


def other_table(found: Findings) -> list[str]:
    dimensions = found.shown_dimensions()
    header = ["kernel", "set", "zeroed", "D", *(m.removesuffix(", p = 2") for m in PLAIN)]
    return table(
        header,
        [
            [
                cell.kernel,
                cell.name,
                cell.zeroed,
                str(D),
                *(f"{found.row(cell, method, D, OTHER_C)['error']:.1f}" for method in PLAIN),
            ]
            for cell in found.cells()
            for D in dimensions
        ],
    )


# colour by method, dashes by features
STYLES: dict[str, tuple[int, str]] = {
    pns("small", "paper"): (0, "-"),
    pns("small", "circle"): (0, "--"),
    pns("great", "paper"): (2, "-"),
    pns("great", "circle"): (2, "--"),
    pns("small", "paper", "p chosen"): (4, ":"),
    ROBUST: (3, ":"),
    FLAT: (1, "-"),
    UNIT: (5, "-."),
}


def figure(rows: list[Row]) -> Any:
    found = Findings(rows)
    n_columns = len(CONDITIONS)
    cells = found.cells()
    n_rows = len(cells) // n_columns
    fig, axes = new_figure(4.2 * n_columns, 1.3 + 2.9 * n_rows, n_rows, n_columns, sharex=True)
    for ax, cell in zip(axes.flat, cells, strict=True):
        for method, (number, dashes) in STYLES.items():
            own = [found.row(cell, method, D) for D in found.dimensions]
            ax.plot(
                found.dimensions,
                [row["error"] for row in own],
                color=COLORS[number],
                linestyle=dashes,
                marker=MARKERS[number],
                markersize=3.5,
                linewidth=1.3,
                label=method,
            )
        ax.set_title(f"{cell.name}, {cell.kernel}, zeroed: {cell.zeroed}", fontsize=10)
        ax.set_ylim(0, None)
    for ax in axes[-1]:
        ax.set_xlabel("Features D")
    for ax in axes[:, 0]:
        ax.set_ylabel("Error (%)")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return fig


def main(quick: bool = False) -> None:
    rows = measure(Size.of(quick), quick)
    publish("classification", rows, page, figure, quick=quick, compared=compared)


if __name__ == "__main__":
    command_line(main, __doc__)
