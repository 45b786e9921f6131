"""Compare automatic gains with the best of a search, on many data sets, kernels and scales.

KHA/et with automatic start and gains is compared with KHA/et from the paper's start, with the best
η0 of a local search over {1, 2, 5}·10^b for the same data and seed. Both run for 50 passes, without
a Rayleigh-Ritz step and without a pilot. KHA-SMD with automatic gains is run too. Data are
multiplied by 0.001, 1 and 1000. If the kernel's scale follows the data, the matrix does not change,
and the search is not repeated.

    python experiments/kha/gains.py [--quick]

writes gains.csv, gains.md and gains.png next to this file. Needs the data (ORTHODROME_DATA).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn.datasets
from common import (
    METHODS,
    STYLES,
    Problem,
    Row,
    command_line,
    count,
    excess,
    final_excess,
    geometric_mean,
    guess_eta0,
    load,
    local_search,
    make_problem,
    n_divergences,
    new_figure,
    plain,
    publish,
    run,
    scientific,
    table,
    timed,
    usps_subset,
)
from numpy.typing import NDArray
from sklearn.preprocessing import scale as standardised

from orthodrome.kernels import (
    Cosine,
    Exponential,
    Gaussian,
    Kernel,
    Linear,
    Matern,
    Polynomial,
    mean_squared_distance,
)

Data = NDArray[np.float64]

GOAL = 3.0
N_POINTS = 500  # at most, of each data set
USELESS = 10.0  # an excess error that is no result
SCALES = (1e-3, 1.0, 1e3)


def narrow(part: float) -> Callable[[Data], Kernel]:
    """A Gaussian whose σ is this part of the root of the mean squared distance."""
    return lambda X: Gaussian(sigma=part * math.sqrt(mean_squared_distance(X)))


def as_it_is(kernel: type[Kernel], **parameters: Any) -> Callable[[Data], Kernel]:
    return lambda X: kernel(**parameters)


@dataclass(frozen=True)
class Case:
    """Data, a kernel made for them, and how many components.

    `homogeneous` is the power of the data's scale that the kernel grows with; None if it changes in
    other ways than by a factor.
    """

    name: str
    data: Callable[[], Data]
    kernel_name: str
    kernel: Callable[[Data], Kernel]
    n_components: int
    homogeneous: int | None = 0

    def gram(self, scale: float = 1.0) -> Data:
        X = scale * self.data()
        return self.kernel(X).fit(X)(X)


def of(name: str, *, scaled: bool = False) -> Callable[[], Data]:
    """The first rows of a data set; its columns scaled to unit variance if `scaled`."""

    def data() -> Data:
        X = np.asarray(load(name).data[:N_POINTS], dtype=np.float64)
        return standardised(X) if scaled else X

    return data


def usps() -> Data:
    return usps_subset(N_POINTS // 10)


def digits() -> Data:
    return sklearn.datasets.load_digits().data[:N_POINTS]


def cancer() -> Data:
    return sklearn.datasets.load_breast_cancer().data[:N_POINTS]


def roll() -> Data:
    return sklearn.datasets.make_swiss_roll(N_POINTS, random_state=0)[0]


MEAN, HALF = as_it_is(Gaussian), narrow(0.5)
CUBIC = as_it_is(Polynomial, degree=3, gamma=1.0, coef0=1.0)
LINEAR = as_it_is(Linear)

CASES = (
    Case("USPS", usps, "Gaussian, σ half the mean", HALF, 16),
    Case("USPS", usps, "linear", LINEAR, 16, 2),
    Case("digits", digits, "Gaussian, σ mean", MEAN, 16),
    Case("digits", digits, "Gaussian, σ half the mean", HALF, 16),
    Case("MNIST", of("mnist"), "Gaussian, σ mean", MEAN, 12),
    Case("pendigits", of("pendigits"), "Gaussian, σ mean", MEAN, 16),
    Case("Swiss roll", roll, "Gaussian, σ a fifth of the mean", narrow(0.2), 12),
    Case("breast cancer, scaled", lambda: standardised(cancer()), "Gaussian, σ mean", MEAN, 10),
    Case("breast cancer", cancer, "linear", LINEAR, 5, 2),
    Case("ionosphere", of("ionosphere"), "Gaussian, σ half the mean", HALF, 10),
    Case("seeds", of("seeds"), "Gaussian, σ mean", MEAN, 8),
    Case("sonar", of("sonar"), "exponential", as_it_is(Exponential), 10),
    Case("glass", of("glass"), "exponential", as_it_is(Exponential), 8),
    Case("ecoli", of("ecoli"), "Matérn", as_it_is(Matern), 10),
    Case("parkinsons", of("parkinsons"), "linear", LINEAR, 3, 2),
    Case("wine, scaled", of("wine", scaled=True), "polynomial", CUBIC, 8, None),
    Case(
        "German credit, scaled",
        of("german_credit_numeric", scaled=True),
        "polynomial",
        CUBIC,
        10,
        None,
    ),
    Case("Pima diabetes, scaled", of("pima_diabetes", scaled=True), "cosine", as_it_is(Cosine), 5),
    Case("vertebral column", of("vertebral_column_3c"), "cosine", as_it_is(Cosine), 4),
)


@dataclass(frozen=True)
class Size:
    """How much is run."""

    cases: tuple[Case, ...] = CASES
    seeds: tuple[int, ...] = (0, 1, 2)
    n_passes: int = 50
    reach: int = 2

    @staticmethod
    def of(quick: bool) -> Size:
        small = tuple(
            case for case in CASES if case.name in ("seeds", "wine, scaled", "parkinsons")
        )
        return Size(small, (0, 1), 20, 1) if quick else Size()


# ---------------------------------------------------------------------------- runs


def measure(size: Size) -> list[Row]:
    rows = []
    for case in size.cases:
        with timed(f"{case.name}, {case.kernel_name}"):
            gram = case.gram()
            found = {}
            for scale in SCALES:
                K = gram if scale == 1 else case.gram(scale)
                problem = make_problem(case.name, K, case.n_components)
                rows += errors(case, problem, scale, size, found)
            rows += scaling_of_data(case, size, found)
            rows += scaling_of_kernel(case, gram, size, found)
    return rows


def errors(
    case: Case, problem: Problem, scale: float, size: Size, found: dict[Any, Data]
) -> list[Row]:
    """Runs with automatic gains and, where the matrix is a new one, the search; A into `found`."""
    rows = []
    searched = scale == 1 or case.homogeneous != 0
    guess = guess_eta0(problem, "et")
    for seed in size.seeds:
        for method in ("et", "smd"):
            result = run(problem, size.n_passes, gain=method, random_state=seed)
            found[scale, method, seed] = result.coefficients
            rows.append(
                row_of(case, "error", scale, seed, method)
                | {"excess": excess(problem, result), "n_divergences": n_divergences(result)}
            )
        if searched:
            eta0, least = search(problem, guess, seed, size)
            guess = eta0 if math.isfinite(eta0) else guess  # the next seed's is near
            rows.append(
                row_of(case, "error", scale, seed, "hand") | {"eta0": eta0, "excess": least}
            )
    return rows


def search(problem: Problem, guess: float, seed: int, size: Size) -> tuple[float, float]:
    """The best η0 of KHA/et from the paper's start for this seed, and its error.

    NaN and infinity where every η0 diverges, down to the smallest that are looked at.
    """

    def error(eta0: float) -> float:
        options = {"gain": "et", "eta0": eta0, "start": "paper", "random_state": seed}
        return final_excess(problem, size.n_passes, **options)

    found = local_search(error, guess, reach=size.reach)
    return found.best[0] if math.isfinite(found.error) else math.nan, found.error


def scaling_of_data(case: Case, size: Size, found: dict[Any, Data]) -> list[Row]:
    """How far coefficients are from those of the data as they were, but for the factor."""
    if case.homogeneous is None:
        return []
    rows = []
    for scale in SCALES:
        for method in ("et", "smd"):
            if scale != 1:
                factor = scale ** (case.homogeneous / 2)
                pairs = [(found[s, method, size.seeds[0]]) for s in (scale, 1.0)]
                difference = relative_difference(factor * pairs[0], pairs[1])
                row = row_of(case, "data", scale, size.seeds[0], method)
                rows.append(row | {"difference": difference})
    return rows


def scaling_of_kernel(case: Case, gram: Data, size: Size, found: dict[Any, Data]) -> list[Row]:
    """The same after multiplying the kernel."""
    rows = []
    for scale in SCALES:
        if scale != 1:
            problem = make_problem(case.name, scale * gram, case.n_components)
            for method in ("et", "smd"):
                seed = size.seeds[0]
                A = run(problem, size.n_passes, gain=method, random_state=seed).coefficients
                difference = relative_difference(math.sqrt(scale) * A, found[1.0, method, seed])
                rows.append(
                    row_of(case, "kernel", scale, seed, method) | {"difference": difference}
                )
    return rows


def relative_difference(A: Data, B: Data) -> float:
    return float(np.linalg.norm(A - B) / np.linalg.norm(B))


def row_of(case: Case, study: str, scale: float, seed: int, method: str) -> Row:
    return {
        "study": study,
        "data": case.name,
        "kernel": case.kernel_name,
        "n_components": case.n_components,
        "scale": scale,
        "seed": seed,
        "method": method,
        "eta0": math.nan,
        "excess": math.nan,
        "n_divergences": 0,
        "difference": math.nan,
    }


# ---------------------------------------------------------------------------- what it shows


@dataclass(frozen=True)
class Comparison:
    """A matrix: the errors of the hand-tuned and the automatic runs, seed by seed."""

    data: str
    kernel: str
    n_components: int
    scale: float
    eta0: tuple[float, ...]
    errors: dict[str, tuple[float, ...]]

    @property
    def label(self) -> str:
        times = "" if self.scale == 1 else f" × {plain(self.scale)}"
        return f"{self.data}{times}, {self.kernel}"

    @property
    def is_tuned(self) -> bool:
        """Whether the search found an η0 of any use."""
        return geometric_mean(self.errors["hand"]) < USELESS

    def ratios(self, method: str) -> list[float]:
        return [a / b for a, b in zip(self.errors[method], self.errors["hand"], strict=True)]

    def ratio(self, method: str) -> float:
        return geometric_mean(self.ratios(method))


def comparisons(rows: list[Row]) -> list[Comparison]:
    """One for each matrix that a search was made on, in the order of the rows."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["study"] == "error":
            names = ("data", "kernel", "n_components", "scale")
            groups.setdefault(tuple(row[name] for name in names), []).append(row)
    found = []
    for key, group in groups.items():
        by_method = {
            method: tuple(row["excess"] for row in group if row["method"] == method)
            for method in ("hand", "et", "smd")
        }
        if by_method["hand"]:
            eta0 = tuple(row["eta0"] for row in group if row["method"] == "hand")
            found.append(Comparison(*key, eta0, by_method))
    return found


def page(rows: list[Row]) -> str:
    pairs = comparisons(rows)
    n_seeds = len(pairs[0].eta0)
    header = [
        "data",
        "kernel",
        "r",
        "η0",
        "hand-tuned",
        "automatic",
        "ratio",
        "by seed",
        "KHA-SMD: ratio",
        "by seed",
    ]
    text = [
        "# Automatic gains compared with hand-tuned ones",
        "",
        "Written by `experiments/kha/gains.py` (`make experiments`); do not edit. Excess error of "
        "KHA/et with automatic start and gains, and of KHA/et from the paper's start with the best "
        "η0 of a local search over {1, 2, 5}·10^b. The search is repeated for each matrix and each "
        f"seed ({count(n_seeds, 'seed')}). There is no Rayleigh-Ritz step and no pilot. Errors and "
        "ratios are geometric means over the seeds. A ratio below 1 means that automatic gains are "
        f"better than tuned ones. The goal is a ratio of at most {plain(GOAL)}.",
        "",
        *(verdict(pairs, method) for method in ("et", "smd")),
        divergences(rows),
        failures(pairs),
        "",
        "![Ratios of errors](gains.png)",
        "",
        *table(header, map(cells, pairs)),
        "",
        "× 0.001 and × 1000: the data were multiplied by this factor. These rows are listed only "
        "for kernels whose matrix changes; the next table covers the other kernels.",
        "",
        "## Scaling the data or the kernel",
        "",
        "The relative difference ‖√c A_c - A‖ / ‖A‖ after the last pass. A are the coefficients "
        "for the original matrix, A_c those for the matrix multiplied by c. The table shows the "
        "largest value over all cases in which scaling multiplies the matrix by a constant, or "
        "leaves it unchanged.",
        "",
        *scaling_table(rows),
    ]
    return "\n".join(text) + "\n"


def cells(pair: Comparison) -> list[str]:
    times = "" if pair.scale == 1 else f" × {plain(pair.scale)}"
    found = [
        pair.data + times,
        pair.kernel,
        str(pair.n_components),
        between([eta0 for eta0 in pair.eta0 if eta0 == eta0]),
        *(scientific(geometric_mean(pair.errors[method])) for method in ("hand", "et")),
    ]
    for method in ("et", "smd"):
        mean = f"{pair.ratio(method):.2g}"
        found.append(f"**{mean}**" if pair.ratio(method) > GOAL else mean)
        found.append(", ".join(f"{ratio:.2g}" for ratio in pair.ratios(method)))
    return found


def between(values: list[float]) -> str:
    """The least and the largest; a word where there is none."""
    if not values:
        return "none"
    low, high = plain(min(values)), plain(max(values))
    return low if low == high else f"{low} … {high}"


def verdict(pairs: list[Comparison], method: str) -> str:
    """Say where the goal is met and where it is not."""
    pairs = [pair for pair in pairs if pair.is_tuned]
    each = [ratio for pair in pairs for ratio in pair.ratios(method)]
    missed = [pair for pair in pairs if not pair.ratio(method) <= GOAL]
    names = "; ".join(f"{pair.label} ({pair.ratio(method):.2g})" for pair in missed)
    better = sum(pair.ratio(method) < 1 for pair in pairs)
    n_data = len({pair.data for pair in pairs})
    return (
        f"- {METHODS[method]}, automatic: the error is at most {plain(GOAL)} times that of "
        f"hand-tuned KHA/et on {len(pairs) - len(missed)} of {len(pairs)} matrices from {n_data} "
        f"data sets, and lower on {better}. (Matrices on which hand-tuning fails are excluded.) "
        f"The same holds for {sum(ratio <= GOAL for ratio in each)} of {len(each)} single runs; "
        f"the worst ratio is {max(each):.2g}. The goal is missed on: {names or 'none'}."
    )


def divergences(rows: list[Row]) -> str:
    runs = [row for row in rows if row["study"] == "error" and row["method"] != "hand"]
    undone = sum(row["n_divergences"] for row in runs)
    scales = ", ".join(plain(scale) for scale in sorted({row["scale"] for row in runs}))
    return (
        f"- Divergences: {count(undone, 'pass', 'passes')} had to be undone in "
        f"{len(runs)} automatic runs (data multiplied by {scales})."
    )


def failures(pairs: list[Comparison]) -> str:
    """Say where the search found nothing of use, so that a ratio means little."""
    failed = [pair for pair in pairs if not pair.is_tuned]
    names = [
        f"{pair.label} ({scientific(geometric_mean(pair.errors['hand']))}, automatic "
        f"{scientific(geometric_mean(pair.errors['et']))})"
        for pair in failed
    ]
    hard = [pair.label for pair in pairs if not geometric_mean(pair.errors["et"]) < USELESS]
    return (
        f"- Failures: from the paper's start, which depends on the scale of the data, no η0 gives "
        f"an excess error below {plain(USELESS)} on {len(failed)} of {len(pairs)} matrices: "
        f"{'; '.join(names) or 'none'}. With automatic gains the error is above {plain(USELESS)} "
        f"on {'; '.join(hard) or 'none of the matrices'}."
    )


def scaling_table(rows: list[Row]) -> list[str]:
    groups: dict[tuple[str, float, str], list[Row]] = {}
    for row in rows:
        if row["study"] != "error":
            groups.setdefault((row["study"], row["scale"], row["method"]), []).append(row)
    lines = []
    for (study, scale, method), group in sorted(groups.items()):
        worst = max(group, key=lambda row: row["difference"])
        name = f"{worst['data']}, {worst['kernel']}"
        size = scientific(worst["difference"])
        lines.append([f"{study} × {plain(scale)}", METHODS[method], str(len(group)), size, name])
    return table(["", "method", "cases", "largest difference", "at"], lines)


def figure(rows: list[Row]) -> Any:
    pairs = comparisons(rows)[::-1]
    fig, axes = new_figure(8.5, 1.4 + 0.29 * len(pairs), 1, 1)
    ax, least, most = axes[0, 0], 0.01, 30.0
    for method, offset in (("et", 0.16), ("smd", -0.16)):
        color, marker = STYLES[METHODS[method]]
        heights = [place + offset for place in range(len(pairs))]
        for height, pair in zip(heights, pairs, strict=True):
            ratios = np.clip(pair.ratios(method), least, most)
            ax.plot(ratios, [height] * len(ratios), marker, color=color, alpha=0.35, ms=4.5)
        means = np.clip([pair.ratio(method) for pair in pairs], least, most)
        label = f"{METHODS[method]}, automatic (outlined: mean over seeds)"
        ax.plot(means, heights, marker, color=color, ms=6, mec="black", mew=0.8, label=label)
    ax.axvline(1.0, color="0.4", linewidth=1)
    ax.axvline(GOAL, color="0.4", linewidth=1, linestyle="--")
    ax.text(0.95, len(pairs) - 0.3, "as hand-tuned", ha="right", fontsize=8, color="0.3")
    ax.text(1.05 * GOAL, len(pairs) - 0.3, f"goal: {plain(GOAL)}×", fontsize=8, color="0.3")
    ax.set_yticks(range(len(pairs)), [pair.label for pair in pairs], fontsize=8)
    ax.set(xscale="log", xlim=(0.8 * least, 1.25 * most), ylim=(-0.7, len(pairs) + 0.3))
    ax.set_xticks([least, 0.1, 1, 10, most], [f"≤ {least:g}", "0.1", "1", "10", f"≥ {most:g}"])
    ax.set_xlabel("Excess error, divided by that of the best hand-tuned KHA/et")
    fig.legend(loc="outside lower center", frameon=False)
    return fig


def main(quick: bool = False) -> None:
    publish("gains", measure(Size.of(quick)), page, figure, quick=quick)


if __name__ == "__main__":
    command_line(main, __doc__)
