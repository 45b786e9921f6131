"""Classify Passiflora leaves by shape: kernel ridge regression and other classifiers.

The KRRC paper's table: 60 % of each of seven classes for training, of which n leaves of each class
are drawn at random to learn from; the other 40 % are tested. Every parameter of every method is
chosen on the training part: it is the one with which most of its leaves that were not drawn are
recognised (and, in kernel ridge regression, of those that were, each left out).

    python experiments/krrc/passiflora.py [--quick]

writes passiflora.csv, .md, .png, passiflora_classes.png and passiflora_modes.png next to this file.
Needs the leaves (ORTHODROME_DATA).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import HERE, leaves, publish
from numpy.typing import NDArray
from pages import (
    Row,
    command_line,
    load,
    median_and_range,
    new_figure,
    published,
    side_by_side,
    table,
    timed,
)
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_fscore_support
from sklearn.svm import SVC
from verdicts import Compared

from orthodrome import KernelPCA, KernelPGA, KernelRidgeRegressionClassifier, plots
from orthodrome.kernels import Gaussian, Kernel, RiemannianShape, VeroneseWhitney, as_kernel
from orthodrome.plots.palette import COLORS, MARKERS
from orthodrome.spaces import extrinsic_mean, procrustes_align

VWG, RULE = "KRRC, VW Gaussian", 'KRRC, VW Gaussian, σ = "mean"'
CG, RIE, RRC = "KRRC, complex Gaussian", "KRRC, Riemannian", "RRC (Hermitian linear)"
SVM, SVM_VW, KFA, GLM = "SVM, Gaussian", "SVM, VW Gaussian", "kPCA + LDA, VW Gaussian", "GLM, ridge"
METHODS = (VWG, RULE, CG, RIE, RRC, SVM, SVM_VW, KFA, GLM)
SIZES = (10, 100)  # those of the paper's table

PRECISION, RECALL, F1, F1_CLASSES, ACCURACY = "precision", "recall", "f1", "f1_classes", "accuracy"
MEASURES = (PRECISION, RECALL, F1, F1_CLASSES, ACCURACY)

SAID = published(HERE, "passiflora")
# precision, recall, F1, accuracy
PAPER: dict[tuple[str, int], tuple[float, float, float, float]] = {
    (row["method"], row["n_each"]): (row["precision"], row["recall"], row["f1"], row["accuracy"])
    for row in SAID["numbers"]
}
TOLERANCE = 0.01

FACTORS = tuple(2.0 ** (step / 2) for step in range(-4, 5))  # of the σ of the rule
PENALTIES = (1.0, 10.0, 100.0, 1000.0)
TURN = 165.0  # of the pictures, in degrees: tips up
N_COMPONENTS = (10, 20, 40, 60, 80, 120, 160, 240, 320, 480, 640)  # fewer than leaves
N_COORDINATES = "30"  # of 15 landmarks
RIDGES = tuple(10.0**power for power in range(-1, 6))


@dataclass(frozen=True)
class Size:
    """How much is run: how many splits for each number of leaves of a class."""

    runs: tuple[tuple[int, int], ...] = ((10, 100), (20, 20), (40, 20), (70, 20), (100, 100))
    methods: tuple[str, ...] = METHODS

    @staticmethod
    def of(quick: bool) -> Size:
        return Size(((10, 3), (40, 2)), (VWG, RULE, RRC, SVM, GLM)) if quick else Size()

    def jobs(self) -> Iterable[tuple[int, int, tuple[str, ...]]]:
        """Every split, the largest first."""
        for n_each, n_runs in sorted(self.runs, reverse=True):
            for run in range(n_runs):
                yield n_each, run, self.methods


# ---------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class Split:
    """Rows of a training part and of a test part, and those of the former to learn from."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    drawn: NDArray[np.intp]
    n_each: int
    run: int

    @staticmethod
    def of(X: NDArray[Any], y: NDArray[Any], n_each: int, run: int) -> Split:
        rng = np.random.default_rng(run)
        train, test = [], []
        for label in np.unique(y):
            rows = rng.permutation(np.flatnonzero(y == label))
            cut = round(0.6 * len(rows))
            train.append(rows[:cut])
            test.append(rows[cut:])
        own = np.concatenate(train)
        draw = KernelRidgeRegressionClassifier(
            VeroneseWhitney(), alpha=0, sigmas=None, subspace_size=n_each, random_state=run
        ).fit(X[own], y[own])
        return Split(own, np.concatenate(test), own[draw.support_], n_each, run)

    @property
    def rest(self) -> NDArray[np.intp]:
        """The leaves of the training part that were not drawn."""
        return np.setdiff1d(self.train, self.drawn)


def one_split(n_each: int, run: int, methods: tuple[str, ...]) -> list[Row]:
    """Every method on one split: what it chose, and how well it does on the test part."""
    X, y = leaves()
    split = Split.of(X, y, n_each, run)
    rows = []
    with timed(f"n = {n_each}, split {run}"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "RiemannianShape is not positive definite", UserWarning)
        for method in methods:
            predicted, chosen = RUNS[method](X, y, split)
            rows.append(
                {"n_each": n_each, "run": run, "method": method}
                | measured(y[split.test], predicted)
                | {"sigma": "", "penalty": "", "n_components": ""}
                | chosen
            )
    return rows


def measured(y: NDArray[Any], predicted: NDArray[Any]) -> dict[str, float]:
    """The paper's measures, and the mean of the F1 of the classes."""
    precision, recall, f1, _ = precision_recall_fscore_support(y, predicted, zero_division=0.0)
    p, r = float(precision.mean()), float(recall.mean())
    wrong = float(np.mean(y != predicted))
    # a wrong leaf is a false negative of one class and a false positive of another
    accuracy = 1 - 2 * wrong / len(np.unique(y))
    values = (p, r, 2 * p * r / (p + r), float(f1.mean()), accuracy)
    return dict(zip(MEASURES, values, strict=True))


#: Scales of a kernel to choose from, in units of the mean distance.
SCALE_FACTORS = tuple(2.0 ** (step / 2) for step in range(-5, 5))

Run = Callable[[NDArray[Any], NDArray[Any], Split], tuple[NDArray[Any], dict[str, float]]]


def ridge(kernel: str | Kernel, factors: Sequence[float] | None = SCALE_FACTORS) -> Run:
    """Kernel ridge regression on each class, as the library has it; it draws the same leaves.

    The scale is one of these multiples of the mean distance, chosen by leave-one-out; with
    None, it is the mean distance.
    """

    def run(X: NDArray[Any], y: NDArray[Any], split: Split) -> Any:
        sigmas = None
        if factors is not None:
            sigmas = np.array(factors) * clone(as_kernel(kernel)).fit(X[split.train]).sigma_
        model = KernelRidgeRegressionClassifier(
            kernel, sigmas=sigmas, subspace_size=split.n_each, random_state=split.run
        ).fit(X[split.train], y[split.train])
        chosen = {"penalty": model.alpha_}
        if hasattr(model.kernel_, "sigma_"):
            chosen["sigma"] = float(model.kernel_.sigma_)
        return model.predict(X[split.test]), chosen

    return run


def searched(
    grid: dict[str, Sequence[float]], build: Callable[..., Any], *, aligned: bool = False
) -> Run:
    """A classifier that learns from the drawn leaves, the rest of the training part for the choice.

    `build` makes it from the values of the grid, with σ in place of a factor. Of shapes that are
    `aligned` it gets the coordinates, turned to the mean shape of the drawn ones.
    """

    def run(X: NDArray[Any], y: NDArray[Any], split: Split) -> Any:
        if aligned:
            X = procrustes_align(X, extrinsic_mean(X[split.drawn]))
        rule = (Gaussian() if aligned else VeroneseWhitney()).fit(X[split.drawn]).sigma_
        best: Any = (-1.0, None, None)
        for values in itertools.product(*grid.values()):
            chosen = dict(zip(grid, values, strict=True))
            if "sigma" in chosen:
                chosen["sigma"] *= float(rule)
            model = build(**chosen).fit(X[split.drawn], y[split.drawn])
            score = model.score(X[split.rest], y[split.rest])
            if score > best[0]:
                best = (score, model, chosen)
        return best[1].predict(X[split.test]), best[2]

    return run


def machine(sigma: float, penalty: float) -> SVC:
    return SVC(C=penalty, gamma=1 / (2 * sigma**2))


def shape_machine(sigma: float, penalty: float) -> SVC:
    return SVC(C=penalty, kernel=VeroneseWhitney(sigma))


def discriminant(X: NDArray[Any], y: NDArray[Any], split: Split) -> Any:
    """Kernel PCA and linear discriminant analysis; one kernel PCA serves all its numbers."""
    rule = float(VeroneseWhitney().fit(X[split.drawn]).sigma_)
    numbers = [q for q in N_COMPONENTS if q < len(split.drawn)]
    best: Any = (-1.0, None, None)
    for factor in FACTORS:
        model = KernelPCA(numbers[-1], kernel=VeroneseWhitney(rule * factor))
        drawn, rest, test = (
            part(X[rows])
            for part, rows in (
                (model.fit_transform, split.drawn),
                (model.transform, split.rest),
                (model.transform, split.test),
            )
        )
        for q in numbers:
            analysis = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
            analysis.fit(drawn[:, :q], y[split.drawn])
            score = analysis.score(rest[:, :q], y[split.rest])
            if score > best[0]:
                chosen = {"sigma": rule * factor, "n_components": q}
                best = (score, analysis.predict(test[:, :q]), chosen)
    return best[1], best[2]


def logistic(penalty: float) -> LogisticRegression:
    return LogisticRegression(C=penalty, max_iter=10_000)


RUNS: dict[str, Run] = {
    VWG: ridge("veronese_whitney"),
    RULE: ridge("veronese_whitney", None),
    CG: ridge("complex_gaussian"),
    RIE: ridge(RiemannianShape()),
    RRC: ridge("hermitian_linear", None),
    SVM: searched({"sigma": FACTORS, "penalty": PENALTIES}, machine, aligned=True),
    SVM_VW: searched({"sigma": FACTORS, "penalty": PENALTIES}, shape_machine),
    KFA: discriminant,
    GLM: searched({"penalty": RIDGES}, logistic, aligned=True),
}


def measure(size: Size, quick: bool) -> list[Row]:
    parts = side_by_side(one_split, list(size.jobs()), quick=quick)
    rows = [row for part in parts for row in part]
    return sorted(rows, key=lambda row: (row["n_each"], METHODS.index(row["method"]), row["run"]))


# ---------------------------------------------------------------------------- what it shows


class Findings:
    """The rows, as questions that the page and the figure ask."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows: dict[tuple[str, int], list[Row]] = {}
        for row in rows:
            self._rows.setdefault((row["method"], row["n_each"]), []).append(row)
        self.sizes = sorted({row["n_each"] for row in rows})
        self.methods = [name for name in METHODS if (name, self.sizes[0]) in self._rows]

    def n_runs(self, n_each: int) -> int:
        return len(self._rows[self.methods[0], n_each])

    def values(self, method: str, n_each: int, measure: str) -> NDArray[np.float64]:
        """One for each split; "" where the method has no such thing."""
        return np.array([row[measure] for row in self._rows[method, n_each]])

    def mean(self, method: str, n_each: int, measure: str) -> float:
        return float(self.values(method, n_each, measure).mean())

    def error(self, method: str, n_each: int, measure: str) -> float:
        """The standard error of the mean."""
        values = self.values(method, n_each, measure)
        return float(values.std(ddof=1) / np.sqrt(len(values)))

    def ahead(self, method: str, other: str, n_each: int) -> tuple[float, float]:
        """How much more F1 within the same splits, and the standard error of that."""
        gain = self.values(method, n_each, F1) - self.values(other, n_each, F1)
        return float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(len(gain)))


def page(rows: list[Row]) -> str:
    found = Findings(rows)
    text = [
        "# Passiflora leaves: kernel ridge regression on shapes, and other classifiers",
        "",
        "Written by `experiments/krrc/passiflora.py` (`make experiments`); do not edit. 3,319 "
        "leaves of seven classes, 15 landmarks each. In each run 60 % of each class are the "
        "training part, from which n leaves of each class are drawn for training; the other 40 % "
        "are the test part (table of the KRRC paper). Precision P and recall R are means over the "
        "classes. **F1** is 2PR/(P + R) of these means, as the paper defines it. **F1 of "
        "classes** is the mean of the F1 of each class. The printed F1 is compared with the "
        "latter, because it is not 2PR/(P + R) of the printed P and R: it is mostly below both. "
        "Accuracy is the mean over classes of one class against the rest, so it is 0.86 if half "
        "of the leaves are wrong.",
        "",
        "Parameters are chosen on the training part alone, by the accuracy on the leaves that "
        "were not drawn. All methods learn from the same leaves. *SVM, Gaussian* and *GLM* use "
        "coordinates rotated to the mean shape of the drawn leaves. *kPCA + LDA* stands for "
        "kernel Fisher discriminant analysis; *complex Gaussian* is this library's own "
        "definition, and not compared with the paper's undefined CG and Full PCG.",
        "",
        *claims(found),
        "",
        "![F1 of each method, and over the number of leaves](passiflora.png)",
    ]
    for n_each in found.sizes:
        runs = found.n_runs(n_each)
        text += ["", f"## {n_each} leaves of each class, {runs} runs", ""]
        text += result_table(found, n_each)
        text += ["", "Chosen parameters, median and range:", "", *choice_table(found, n_each)]
    text += [
        "",
        "## The leaves",
        "",
        "![Leaves of the seven classes with their extrinsic means](passiflora_classes.png)",
        "",
        "Every class with its extrinsic mean (bold), as in the paper's figure: the outline through "
        "the 15 landmarks.",
        "",
        "![Deformation along the first modes of kPGA](passiflora_modes.png)",
        "",
        "Kernel PGA of all leaves with the Veronese-Whitney kernel: pre-images along each mode.",
    ]
    return "\n".join(text) + "\n"


def claims(found: Findings) -> list[str]:
    lines = []
    for n_each in (n for n in SIZES if n in found.sizes):
        for measure, name in ((F1, "F1"), (F1_CLASSES, "F1 of classes")):
            got = found.mean(VWG, n_each, measure)
            paper = PAPER[VWG, n_each][2]
            verdict = "yes" if got >= paper - TOLERANCE else "**no**"
            lines.append(
                f"- {VWG}, n = {n_each}: {name} {got:.4f} ± {found.error(VWG, n_each, measure):.4f}"
                f" (standard error), the paper {paper:.4f}; not more than {TOLERANCE} below: "
                f"{verdict}."
            )
    for n_each in (n for n in SIZES if n in found.sizes):
        order = sorted(found.methods, key=lambda m: -found.mean(m, n_each, F1))
        lines.append(f"- By F1, n = {n_each}: {'; '.join(order)}.")
        near, behind, before = [], [], []
        for other in (m for m in found.methods if m not in (VWG, RULE)):
            gain, error = found.ahead(VWG, other, n_each)
            (behind if gain > 2 * error else before if gain < -2 * error else near).append(other)
        lines.append(
            f"- Within the same splits, n = {n_each}, {VWG} is significantly better (two standard "
            f"errors) than {'; '.join(behind) or 'none'}; worse than "
            f"{'; '.join(before) or 'none'}; not significantly different from "
            f"{'; '.join(near) or 'none'}."
        )
    return lines


def compared(rows: list[Row]) -> list[Compared]:
    """The table, and who is before whom in it.

    The printed F1 is compared with the mean of the F1 of the classes: in most rows it is less than
    both P and R, which 2PR/(P + R) of a split cannot be.
    """
    found = Findings(rows)
    names = {F1_CLASSES: "f1, mean of the classes"}
    own = [
        Compared.number(
            f"the table, n = {n_each}",
            f"{method}, n = {n_each}, {names.get(measure, measure)}",
            value,
            0.0,
            found.mean(method, n_each, measure),
            found.error(method, n_each, measure),
        )
        for (method, n_each), values in PAPER.items()
        if n_each in found.sizes and method in found.methods
        for measure, value in zip((PRECISION, RECALL, F1_CLASSES, ACCURACY), values, strict=True)
    ]
    for row in SAID["orders"]:
        for other in row["than"]:
            if row["n_each"] in found.sizes and other in found.methods:
                gain, error = found.ahead(row["better"], other, row["n_each"])
                what = f"{row['better']} before {other}, n = {row['n_each']}, F1"
                own.append(Compared.order(f"the table, {row['where']}", what, gain, error))
    return own


def result_table(found: Findings, n_each: int) -> list[str]:
    header = ["method", "P", "R", "F1", "± s.e.", "F1 of classes", "accuracy", "paper: P", "R"]
    cells = []
    for method in found.methods:
        values = [f"{found.mean(method, n_each, measure):.4f}" for measure in MEASURES]
        values.insert(3, f"{found.error(method, n_each, F1):.4f}")
        paper = PAPER.get((method, n_each))
        values += [f"{value:.4f}" for value in paper] if paper else [""] * 4
        cells.append([method, *values])
    return table([*header, "F1", "accuracy"], cells)


def choice_table(found: Findings, n_each: int) -> list[str]:
    cells = []
    for method in found.methods:
        row = [method]
        # the classifier has as many features as components or, without these, coordinates
        for name, otherwise in (("sigma", ""), ("penalty", ""), ("n_components", N_COORDINATES)):
            values = found.values(method, n_each, name)
            numeric = values.dtype.kind in "fi"
            row.append(median_and_range(values, lambda v: f"{v:.3g}") if numeric else otherwise)
        cells.append(row)
    return table(["method", "σ", "λ (KRRC, RRC) or C", "features"], cells)


def figure(rows: list[Row]) -> Any:
    found = Findings(rows)
    boxes = [n for n in SIZES if n in found.sizes]
    fig, axes = new_figure(6.2 * (len(boxes) + 1), 5.0, 1, len(boxes) + 1)
    names = found.methods[::-1]
    for ax, n_each in zip(axes.flat, boxes, strict=False):
        drawn = ax.boxplot(
            [found.values(name, n_each, F1) for name in names],
            orientation="horizontal",
            patch_artist=True,
            widths=0.6,
            medianprops={"color": "black"},
            flierprops={"markersize": 3, "markeredgecolor": "0.4"},
        )
        for patch, name in zip(drawn["boxes"], names, strict=True):
            patch.set_facecolor(COLORS[found.methods.index(name) % len(COLORS)])
            patch.set_alpha(0.55)
        papers = [PAPER.get((name, n_each)) for name in names]
        ax.plot(
            [paper[2] for paper in papers if paper],
            [place + 1 for place, paper in enumerate(papers) if paper],
            "D",
            color="black",
            markersize=5,
        )
        ax.set_yticks(range(1, len(names) + 1), names)
        ax.set_title(f"{n_each} leaves of each class, {found.n_runs(n_each)} runs")
        ax.set_xlabel("F1 (◆ the paper's mean)")
    ax = axes.flat[-1]
    for number, name in enumerate(found.methods):
        means = [found.mean(name, n_each, F1) for n_each in found.sizes]
        color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
        ax.plot(found.sizes, means, color=color, marker=marker, markersize=5, label=name)
    ax.set_xlabel("leaves of each class to learn from")
    ax.set_ylabel("F1, mean")
    ax.legend(frameon=False, fontsize="small")
    return fig


def pictures(folder: Any, n: int | None = None) -> None:
    """Draw the classes with their means, and the modes of kPGA."""
    every = load("passiflora")
    rows = slice(None) if n is None else slice(None, None, len(every.data) // n)
    X, names = every.data[rows], np.asarray(every.target_names)[every.target[rows]]
    model = KernelPGA(3, kernel="veronese_whitney", random_state=0).fit(X)
    drawn = {
        "classes": plots.shapes(X, names, turn=TURN),
        "modes": plots.shape_modes(model, turn=TURN),
    }
    for name, fig in drawn.items():
        fig.savefig(folder / f"passiflora_{name}.png", dpi=110, metadata={"Software": None})


def main(quick: bool = False) -> None:
    rows = measure(Size.of(quick), quick)
    publish("passiflora", rows, page, figure, quick=quick, compared=compared)
    pictures(HERE / "scratch" if quick else HERE, 300 if quick else None)


if __name__ == "__main__":
    command_line(main, __doc__)
