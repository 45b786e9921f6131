"""Spectral clustering of all USPS digits with kernel principal components by KHA.

The KHA paper's Figure 3 (§5.3): 7,291 images, 10 components, the Gaussian kernel with σ = 8. How
far the clusters are from the ten digits (variation of information, in nats) with exact kernel PCA,
and with KHA/t, KHA/et and KHA-SMD after a few passes; automatic gains, with the Rayleigh-Ritz step,
and KHA/t and KHA/et once as in the paper, with gains tuned by hand and without that step.
k-means finds different clusters with different seeds, so that each embedding is clustered several
times.

    python experiments/kha/clustering.py [--quick]

writes clustering.csv, clustering.md and clustering.png next to this file. Needs the digits
(ORTHODROME_DATA).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from common import (
    HERE,
    STYLES,
    Problem,
    Row,
    command_line,
    count,
    decades_gained,
    error_of_mean,
    excess,
    final_excess,
    guess_eta0,
    load,
    local_search,
    median_and_range,
    new_figure,
    paired,
    plain,
    publish,
    published,
    side_by_side,
    table,
    timed,
)
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from verdicts import Compared

from orthodrome import KernelSpectralClustering
from orthodrome.eigen import Eigenpairs, HebbianResult, Krylov, hebbian
from orthodrome.gram import DenseGram
from orthodrome.kernels import Gaussian
from orthodrome.metrics import (
    excess_reconstruction_error,
    reconstruction_error,
    variation_of_information,
)

N_CLUSTERS = 10
GOAL = 0.05
EXACT, RANDOM = "exact kernel PCA", "random labels"
METHODS = {
    "KHA/t": {"gain": "t", "start": "orthonormal"},
    "KHA/et": {"gain": "et", "start": "orthonormal"},
    "KHA-SMD": {"gain": "smd", "start": "orthonormal"},
    "KHA/et from a pilot": {"gain": "et", "start": "pilot"},
}
# the paper's way: its start, gains by a search, components as they come; not run with KHA-SMD
PAPER = {
    "KHA/t, as the paper": "t",
    "KHA/et, as the paper": "et",
}
TUNED_AFTER = 10  # passes after which the error is to be least
PROMISED = (1, 10)  # passes after which KHA/et is to cluster as well as exact kernel PCA


@dataclass(frozen=True)
class Size:
    """How much is run."""

    per_digit: int | None = None
    marks: tuple[int, ...] = (1, 2, 5, 10, 30)
    seeds: tuple[int, ...] = (0, 1, 2)
    n_means: int = 3  # seeds of k-means
    paper_seeds: tuple[int, ...] = (0,)  # of the paper's way; none: it is not run

    @staticmethod
    def of(quick: bool) -> Size:
        return Size(100, (1, 2, 10), (0,), 2, ()) if quick else Size()


# ---------------------------------------------------------------------------- runs


class Passes:
    """A solver that goes on, with every fit, from where the last one ended.

    The estimator sorts its rows, always alike, and so hands over the same matrix every time. It is
    made once, by `matrix`, so that passes over it are cheap.
    """

    def __init__(self, matrix: Matrix, seed: int, options: dict[str, Any]) -> None:
        self._matrix, self._seed, self._options = matrix, seed, options
        self.n_passes = 0  # how many are wanted
        self.result: HebbianResult | None = None

    def solve(self, operator: Any, k: int, *, callback: Any = None) -> Eigenpairs:
        done = 0 if self.result is None else self.result.n_passes
        self.result = found = hebbian(
            self._matrix.of(operator),
            k,
            n_passes=self.n_passes - done,
            tol=0.0,
            initial=self.result,
            random_state=self._seed,
            eigenvalue_updates="pass",
            **self._options,
        )
        relative = float(found.residuals.max() / found.eigenvalues[0])
        return Eigenpairs(
            values=found.eigenvalues,
            vectors=found.eigenvectors,
            residuals=found.residuals,
            n_iter=found.n_passes,
            status=found.status,
            solver="hebbian",
            history=found.history or ({"max_residual": relative},),
            coefficients=np.ascontiguousarray(found.coefficients.T),
        )


class Matrix:
    """The centred Gram matrix that the estimator solves for, made once, and its least error."""

    def __init__(self) -> None:
        self._dense: DenseGram | None = None
        self._values = np.empty(0)
        self.minimal = math.nan

    def of(self, operator: Any) -> DenseGram:
        if self._dense is None:
            self._dense = DenseGram(operator.toarray(), check=False)
        return self._dense

    def solve(self, operator: Any, k: int, *, callback: Any = None) -> Eigenpairs:
        """Solve exactly, and note the error of what was found."""
        pairs = Krylov(tol=1e-10, random_state=0).solve(self.of(operator), k)
        self._values = pairs.values
        projections = (pairs.vectors * np.sqrt(pairs.values)).T
        coefficients = (pairs.vectors / np.sqrt(pairs.values)).T
        self.minimal = reconstruction_error(self._dense, coefficients, projections=projections)
        return pairs

    @property
    def problem(self) -> Problem:
        """The problem that was solved exactly."""
        diagonal = self._dense.diagonal()
        return Problem(
            name=EXACT,
            operator=self._dense,
            n_components=len(self._values),
            minimal=self.minimal,
            eigenvalues=self._values,
            mean_square=float(np.mean(diagonal)),
        )

    def excess(self, result: HebbianResult) -> float:
        """The excess error of a result of a Rayleigh-Ritz step."""
        projections = (result.eigenvectors * np.sqrt(result.eigenvalues)).T
        return excess_reconstruction_error(
            self._dense, result.coefficients, minimal=self.minimal, projections=projections
        )


def images(per_digit: int | None) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """All training images and their digits, or the first so many of each digit."""
    usps = load("usps")
    chosen = np.concatenate([np.flatnonzero(usps.y_train == d)[:per_digit] for d in range(10)])
    chosen.sort()
    return usps.X_train[chosen].astype(np.float64), usps.y_train[chosen]


def measure(size: Size, quick: bool) -> list[Row]:
    jobs = [(method, size) for method in (RANDOM, EXACT, *METHODS)]
    jobs += [(method, size) for method in PAPER if size.paper_seeds]
    parts = side_by_side(rows_of, jobs, quick=quick)
    return [row for part in parts for row in part]


def rows_of(method: str, size: Size) -> list[Row]:
    """Cluster with one solver, from each of its starts."""
    X, digits = images(size.per_digit)
    row = partial(row_of, len(X), method)
    rows = []
    if method == RANDOM:
        for n in range(size.n_means):
            labels = np.random.default_rng(n).integers(N_CLUSTERS, size=len(X))
            rows.append(row(0, 0, n, math.nan, variation_of_information(digits, labels)))
        return rows
    matrix = Matrix()
    with timed(f"{EXACT}, for {method}"):
        exactly = clustered(X, digits, matrix, size.n_means)
    if method == EXACT:
        return [row(0, 0, n, 0.0, vi) for n, vi in enumerate(exactly)]
    if method in PAPER:
        options = tuned(matrix.problem, PAPER[method], size.paper_seeds[0])
        for seed in size.paper_seeds:
            with timed(f"{method}, seed {seed}"):
                rows += paper_rows(X, digits, matrix, method, seed, options, size)
        return rows
    options = METHODS[method]
    for seed in size.seeds:
        with timed(f"{method}, seed {seed}"):
            solver = Passes(matrix, seed, options)
            for n_passes in (0, *size.marks) if options["start"] == "pilot" else size.marks:
                solver.n_passes = n_passes
                distances = clustered(X, digits, solver, size.n_means)
                error = matrix.excess(solver.result)
                rows += [row(seed, n_passes, n, error, vi) for n, vi in enumerate(distances)]
    return rows


def tuned(problem: Problem, gain: str, seed: int) -> dict[str, Any]:
    """The paper's start and gains, by a local search for the least error after a few passes."""
    options = {"gain": gain, "start": "paper", "polish": False}

    def error_with(eta0: float) -> float:
        chosen = options | {"eta0": eta0, "random_state": seed}
        found = final_excess(problem, TUNED_AFTER, **chosen)
        return found if found < problem.error_of_nothing else math.inf

    search = local_search(error_with, guess_eta0(problem, gain), reach=1)
    return options | {"eta0": search.best[0]}


def paper_rows(
    X: NDArray[Any],
    digits: NDArray[Any],
    matrix: Matrix,
    method: str,
    seed: int,
    options: dict[str, Any],
    size: Size,
) -> list[Row]:
    """Cluster with components as they come, without a Rayleigh-Ritz step."""
    solver, rows = Passes(matrix, seed, options), []
    for n_passes in size.marks:
        solver.n_passes = n_passes
        distances = clustered(X, digits, solver, size.n_means)
        error = excess(matrix.problem, solver.result)
        rows += [
            row_of(len(X), method, seed, n_passes, n, error, vi) | {"eta0": options["eta0"]}
            for n, vi in enumerate(distances)
        ]
    return rows


def clustered(X: NDArray[Any], digits: NDArray[Any], solver: Any, n_means: int) -> list[float]:
    """Embed with this solver; how far clusters are from the digits, for each seed of k-means."""
    model = KernelSpectralClustering(
        N_CLUSTERS,
        kernel=Gaussian(sigma=8.0),
        laplacian="kernel-pca",
        solver=solver,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few passes are what is asked for
        model.fit(X)
    labels = [model.labels_]
    for seed in range(1, n_means):
        means = KMeans(N_CLUSTERS, n_init=model.n_init, tol=0.0, random_state=seed)
        labels.append(means.fit_predict(model.embedding_))
    return [variation_of_information(digits, found) for found in labels]


def row_of(
    n_points: int, method: str, seed: int, n_pass: int, means: int, error: float, vi: float
) -> Row:
    return {
        "n_points": n_points,
        "method": method,
        "seed": seed,
        "n_pass": n_pass,
        "means_seed": means,
        "excess": error,
        "variation_of_information": vi,
        "eta0": math.nan,  # where it was tuned
    }


# ---------------------------------------------------------------------------- what it shows


def as_the_paper(method: str) -> str:
    return f"{method}, as the paper"


class Findings:
    """The rows, as questions that the page and the figure ask."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows
        self.n_points = rows[0]["n_points"]
        self.n_means = len({row["means_seed"] for row in rows})
        self.exact = self.median(EXACT, 0)

    def distances(self, method: str, n_pass: int, seed: int | None = None) -> list[float]:
        """Variations of information, of all seeds of k-means and of one or all of the solver."""
        return [
            row["variation_of_information"]
            for row in self._rows
            if (row["method"], row["n_pass"]) == (method, n_pass) and seed in (None, row["seed"])
        ]

    def nearest(self, *methods: str) -> tuple[list[str], str]:
        """These methods as they come nearest to the paper, all in the same way, and that way."""
        own = [as_the_paper(method) for method in methods]
        if all(map(self.passes, own)):
            return own, "gains tuned as in the paper"
        return list(methods), "automatic gains, Rayleigh-Ritz step"

    def median(self, method: str, n_pass: int) -> float:
        return float(np.median(self.distances(method, n_pass)))

    def as_exact_after(self, method: str) -> NDArray[np.float64]:
        """For each seed of the solver, the mark from which on its clusters are as good as exact.

        That is, not more than GOAL farther from the digits, by the median over seeds of k-means.
        Where they are not so after the last mark it is one pass more than that, the least that it
        can be.
        """
        marks = [n for n in self.passes(method) if n > 0]
        found = []
        for seed in self.seeds(method, marks[-1]):
            since = marks[-1] + 1
            for n_pass in reversed(marks):
                if float(np.median(self.distances(method, n_pass, seed))) > self.exact + GOAL:
                    break
                since = n_pass
            found.append(since)
        return np.array(found)

    def errors(self, method: str, n_pass: int) -> list[float]:
        """Excess errors, one for each seed of the solver."""
        found = {
            row["seed"]: row["excess"]
            for row in self._rows
            if (row["method"], row["n_pass"]) == (method, n_pass)
        }
        return list(found.values())

    def passes(self, method: str) -> list[int]:
        return sorted({row["n_pass"] for row in self._rows if row["method"] == method})

    def seeds(self, method: str, n_pass: int) -> list[int]:
        return sorted(
            {r["seed"] for r in self._rows if (r["method"], r["n_pass"]) == (method, n_pass)}
        )


def compared(rows: list[Row]) -> list[Compared]:
    """Figure 3: random labels, the lower excess error, and passes until clusters are as good."""
    found, said = Findings(rows), published(HERE, "clustering")
    chance = np.array(found.distances(RANDOM, 0))
    number = said["numbers"][0]
    made = [
        Compared.number(
            number["where"],
            "random labels, nats",
            number["value"],
            0.0,
            float(chance.mean()),
            error_of_mean(chance),
        )
    ]
    for row in said["orders"]:
        methods, way = found.nearest(row["better"], row["than"])
        errors = [found.errors(method, row["n_pass"]) for method in methods]
        if all(errors):
            what = (
                f"{row['better']} before {row['than']} after {row['n_pass']} passes, decades of "
                f"excess error, {way}, {count(len(errors[0]), 'seed')}"
            )
            made.append(paired(row["where"], what, decades_gained(*errors)))
    return [*made, *(needed(found, row) for row in said["passes"])]


def needed(found: Findings, row: Row) -> Compared:
    """Whether a method needs more, or no more, passes than the paper says; 10 are within 10."""
    (method,), way = found.nearest(row["method"])
    ours, said = found.as_exact_after(method), row["passes"]
    gains = {"within": said + 1 - ours, "after more than": ours - said}[row["needs"]]
    what = (
        f"{row['method']} clusters as exact kernel PCA does (to {GOAL:g} nats) {row['needs']} "
        f"{said} passes; difference of passes, {way}, {count(len(ours), 'seed')}"
    )
    return paired(row["where"], what, gains)


def nats(value: float) -> str:
    return f"{value:.3f}"


def page(rows: list[Row]) -> str:
    found = Findings(rows)
    cells = [
        [name, "", "", "", median_and_range(found.distances(name, 0), nats), ""]
        for name in (RANDOM, EXACT)
    ]
    for method in (*METHODS, *PAPER):
        for n_pass in found.passes(method):
            cells.append(
                [
                    method,
                    str(n_pass) if n_pass else "0 (the pilot alone)",
                    str(len(found.seeds(method, n_pass))),
                    median_and_range(found.errors(method, n_pass)),
                    median_and_range(found.distances(method, n_pass), nats),
                    f"{found.median(method, n_pass) - found.exact:+.3f}",
                ]
            )
    header = ["", "passes", "seeds", "excess error", "variation of information", "from exact"]
    text = [
        "# Spectral clustering of the USPS digits",
        "",
        "Written by `experiments/kha/clustering.py` (`make experiments`); do not edit. "
        f"{found.n_points:,} images, {N_CLUSTERS} components, Gaussian kernel with σ = 8 (KHA "
        "paper, Figure 3, which shows curves; it gives 4.54 for random labels). "
        '`KernelSpectralClustering(laplacian="kernel-pca")`, automatic gains, with the '
        "Rayleigh-Ritz step. *As in the paper*: the paper's start, η0 from a local search over "
        f"{{1, 2, 5}}·10^b for the smallest error after {TUNED_AFTER} passes, no Rayleigh-Ritz "
        "step, one seed (not run for KHA-SMD). Variation of information between clusters and "
        f"digits, in nats: the median over {count(found.n_means, 'seed')} of k-means (best of ten "
        "starts each) for every seed of the solver, with minimum and maximum in brackets.",
        "",
        *claims(found),
        "",
        "![Excess error and variation of information over passes](clustering.png)",
        "",
        *table(header, cells),
    ]
    return "\n".join(text) + "\n"


def claims(found: Findings) -> list[str]:
    """Say of each promise whether it is kept."""
    lines = [
        "- The variation of information from the digits is "
        f"{nats(found.median(RANDOM, 0))} for random labels and {nats(found.exact)} for the "
        "clusters of exact kernel PCA."
    ]
    for method in METHODS:
        for n_pass in PROMISED if METHODS[method]["gain"] == "et" else ():
            seeds = found.seeds(method, n_pass)
            medians = [float(np.median(found.distances(method, n_pass, seed))) for seed in seeds]
            worst = max(median - found.exact for median in medians)
            verdict = "holds" if worst <= GOAL else "**does not hold**"
            lines.append(
                f"- {method} after {count(n_pass, 'pass', 'passes')} clusters as well as exact "
                f"kernel PCA, to {GOAL:g} nats: {verdict}. The difference of the worst of "
                f"{count(len(seeds), 'seed')} is {worst:+.3f}."
            )
    pilot = "KHA/et from a pilot"
    lines.append(
        f"- The pilot alone, without any pass, differs by "
        f"{found.median(pilot, 0) - found.exact:+.3f}."
    )
    return [*lines, order_claim(found), passes_claim(found)]


def order_claim(found: Findings) -> str:
    """Say whether the errors are in the order of the paper."""
    marks = found.passes("KHA/et")
    pairs = (("KHA/et", "KHA/t"), ("KHA-SMD", "KHA/et"))
    parts = []
    for better, worse in pairs:
        at = [m for m in marks if np.less(found.errors(better, m), found.errors(worse, m)).all()]
        shown = ", ".join(map(str, at)) or "none"
        parts.append(f"{better} has a smaller one than {worse} after {shown}")
    measured = ", ".join(map(str, marks))
    return f"- Excess error of every seed, after {measured} passes: {'; '.join(parts)} passes."


def passes_claim(found: Findings) -> str:
    """Say after how many passes each method clusters as exact kernel PCA does."""
    last = found.passes("KHA/et")[-1]
    parts = []
    for method in ("KHA/t", "KHA/et", "KHA-SMD", *filter(found.passes, PAPER)):
        since = [
            plain(n) if n <= last else f"more than {last}" for n in found.as_exact_after(method)
        ]
        parts.append(f"{method} from {' / '.join(since)} passes on")
    return (
        "- In the paper, KHA/et and KHA-SMD cluster as well as exact kernel PCA within 10 passes, "
        f"KHA/t after more than 30. Here, to within {GOAL:g} nats, for each seed: "
        f"{'; '.join(parts)} (measured after {', '.join(map(str, found.passes('KHA/et')))})."
    )


def figure(rows: list[Row]) -> Any:
    found = Findings(rows)
    fig, axes = new_figure(11.0, 4.4, 1, 2)
    for method in (*METHODS, *filter(found.passes, PAPER)):
        color, marker = STYLES[method.removesuffix(as_the_paper(""))]
        marks = [n_pass for n_pass in found.passes(method) if n_pass > 0]
        errors = [float(np.median(found.errors(method, n))) for n in marks]
        style = {"color": color, "marker": marker, "markersize": 6}
        if method in PAPER:
            style |= {"linestyle": "--", "markerfacecolor": "white"}
        axes[0, 0].plot(marks, errors, label=method, **style)
        axes[0, 1].plot(marks, [found.median(method, n) for n in marks], **style)
    for ax in axes[0]:
        marks = [n_pass for n_pass in found.passes("KHA/et") if n_pass > 0]
        ax.set(xscale="log", xlabel="Passes over the data")
        ax.set_xticks(marks, [str(mark) for mark in marks])
        ax.minorticks_off()
    axes[0, 0].set(yscale="log", ylabel="Excess reconstruction error")
    draw_exact(axes[0, 1], found)
    fig.legend(loc="outside lower center", ncols=3, frameon=False)
    return fig


def draw_exact(ax: Any, found: Findings) -> None:
    """Exact kernel PCA as a line, and the band that is promised about it."""
    ax.axhline(found.exact, color="black", linewidth=1.2)
    ax.axhspan(found.exact - GOAL, found.exact + GOAL, color="0.9", zorder=0)
    label = f"exact kernel PCA, ± {GOAL:g}"
    ax.text(30, found.exact - 0.96 * GOAL, label, ha="right", va="bottom", fontsize=9)
    ax.set_ylabel("Variation of information (nats), median")
    ax.set_ylim(
        min(found.exact - 3 * GOAL, ax.get_ylim()[0]), max(ax.get_ylim()[1], found.exact + 3 * GOAL)
    )


def main(quick: bool = False) -> None:
    rows = measure(Size.of(quick), quick)
    publish("clustering", rows, page, figure, quick=quick, compared=compared)


if __name__ == "__main__":
    command_line(main, __doc__)
