"""USPS digits: the excess error of KHA, KHA/t, KHA/et and KHA-SMD over passes.

The KHA paper's Figure 1 (§5.1): the first 100 training images of each digit, 16 components, the
dot-product kernel and the Gaussian with σ = 8. Gains tuned as in the paper, by a local search over
{1, 2, 5}·10^b from the paper's start, are compared with automatic ones; without Rayleigh-Ritz step
and pilot. KHA-SMD begins with the printed ρ_0 = 1, and also with ρ_0 = 0, the gains of KHA/et.

    python experiments/kha/usps.py [--quick]

writes usps.csv, usps.md and usps.png next to this file. Needs the digits (ORTHODROME_DATA).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from common import (
    HERE,
    METHODS,
    STYLES,
    Problem,
    Row,
    command_line,
    count,
    curve,
    decades_gained,
    final_excess,
    geometric_mean,
    grid_value,
    guess_eta0,
    kernel_problem,
    local_search,
    new_figure,
    paired,
    plain,
    publish,
    published,
    scientific,
    side_by_side,
    table,
    timed,
    usps_subset,
)
from verdicts import Compared

from orthodrome.kernels import Gaussian, Linear

KERNELS = {"dot product": Linear, "Gaussian": lambda: Gaussian(sigma=8.0)}
N_COMPONENTS = 16
MARKS = (*range(1, 7), 8, 10, 12, 15, *range(20, 51, 5))  # where curves are measured
SHOWN = (1, 2, 5, 10, 20, 50)
GAINS = {
    "hand": "hand-tuned",
    "zero": "hand-tuned, ρ_0 = 0",
    "own": "hand-tuned, η0 of its own",
    "automatic": "automatic",
}


@dataclass(frozen=True)
class Size:
    """How much is run; `rates` are the μ that are tried one by one where a search fails."""

    seeds: tuple[int, ...] = (0, 1, 2)
    marks: tuple[int, ...] = MARKS
    rates: tuple[float, ...] = (0.0, *(grid_value(index) for index in range(-18, 3)))

    @property
    def n_passes(self) -> int:
        return self.marks[-1]

    @staticmethod
    def of(quick: bool) -> Size:
        return Size((0,), (1, 2, 3, 5, 10), (0.0, 1e-4, 1e-2, 1.0)) if quick else Size()


@dataclass(frozen=True)
class Setting:
    """A kernel, a method, where its gains come from, and these."""

    kernel: str
    method: str
    gains: str
    eta0: float = math.nan
    mu: float = math.nan

    @property
    def options(self) -> dict[str, Any]:
        """Return the options of the solver."""
        if self.gains == "automatic":
            return {"gain": self.method}
        rates = {"mu": self.mu} if self.method == "smd" else {}
        rates |= {"rho0": 0.0} if self.gains == "zero" else {}
        return {"gain": self.method, "eta0": self.eta0, "start": "paper", **rates}

    def row(self, seed: int, n_pass: int, error: float) -> Row:
        return {**vars(self), "seed": seed, "n_pass": n_pass, "excess": error}


# ---------------------------------------------------------------------------- tuning by hand


class Tuner:
    """Searches on one kernel from the paper's start; every run of theirs is kept as a row.

    A parameter is as good as the geometric mean over the seeds of the error after the last pass. It
    is of no use if a seed diverges: ends with a larger error than that of no components at all.
    """

    def __init__(self, kernel: str, problem: Problem, size: Size) -> None:
        self._kernel, self._problem, self._size = kernel, problem, size
        self.rows: list[Row] = []

    def choose(self) -> list[Setting]:
        """Tune all methods as the paper does; KHA-SMD also from ρ_0 = 0, and with its own η0."""
        found = []
        for method in ("constant", "t", "et"):
            with timed(f"{self._kernel}, {METHODS[method]}: search"):
                setting = Setting(self._kernel, method, "hand")
                guess = guess_eta0(self._problem, method)
                eta0 = local_search(self._error(setting, "eta0"), guess, reach=1).best[0]
                found.append(replace(setting, eta0=eta0))
        with timed(f"{self._kernel}, KHA-SMD: searches"):
            of_et = Setting(self._kernel, "smd", "hand", eta0)
            found.append(replace(of_et, mu=self._tune_rate(of_et)))
            zero = replace(of_et, gains="zero")
            found.append(replace(zero, mu=self._tune_rate(zero)))
            own = replace(of_et, gains="own")
            start = (eta0 / 10, 0.5 / self._problem.mean_square)
            best = local_search(self._error(own, "eta0", "mu"), *start, reach=1).best
            found.append(replace(own, eta0=best[0], mu=best[1]))
        return found

    def _tune_rate(self, setting: Setting) -> float:
        """The best μ: by local search or, where that finds none of use, of a whole list."""
        guess = 0.2 / self._problem.mean_square
        search = local_search(self._error(setting, "mu"), guess, reach=1, most_steps=4)
        if math.isfinite(search.error):
            return search.best[0]
        tried = {mu: self._errors(replace(setting, mu=mu)) for mu in self._size.rates}
        return min(tried, key=lambda mu: self._failures(tried[mu]))

    def _failures(self, errors: list[float]) -> tuple[int, float]:
        """How many seeds diverge, then the error of the others."""
        good = [error for error in errors if not self._has_diverged(error)]
        return len(errors) - len(good), geometric_mean(good) if good else math.inf

    def _error(self, setting: Setting, *names: str) -> Callable[..., float]:
        """The error to minimise, as a function of these parameters."""

        def error(*values: float) -> float:
            changed = replace(setting, **dict(zip(names, values, strict=True)))
            errors = self._errors(changed, stop=True)
            return math.inf if any(map(self._has_diverged, errors)) else geometric_mean(errors)

        return error

    def _errors(self, setting: Setting, *, stop: bool = False) -> list[float]:
        """The error for each seed, until one diverges if `stop`."""
        errors: list[float] = []
        kept = replace(setting, gains=f"search, {setting.gains}")
        for seed in self._size.seeds:
            if stop and errors and self._has_diverged(errors[-1]):
                break
            options = {"random_state": seed, **setting.options}
            errors.append(final_excess(self._problem, self._size.n_passes, **options))
            self.rows.append(kept.row(seed, self._size.n_passes, errors[-1]))
        return errors

    def _has_diverged(self, error: float) -> bool:
        return not error < self._problem.error_of_nothing


def measure(size: Size, quick: bool) -> list[Row]:
    """The searches on each kernel, then the curves of what they chose and of automatic gains."""
    parts = side_by_side(on_one_kernel, [(kernel, size) for kernel in KERNELS], quick=quick)
    return [row for part in parts for row in part]


def on_one_kernel(kernel: str, size: Size) -> list[Row]:
    return tuned(kernel_problem(kernel, usps_subset(), KERNELS[kernel](), N_COMPONENTS), size)


def tuned(problem: Problem, size: Size) -> list[Row]:
    """Searches on one problem, and the curves of what they chose and of automatic gains."""
    kernel = problem.name
    tuner = Tuner(kernel, problem, size)
    settings = tuner.choose()
    settings += [Setting(kernel, method, "automatic") for method in METHODS]
    rows = [Setting(kernel, "none", "none").row(0, 0, problem.error_of_nothing), *tuner.rows]
    with timed(f"{kernel}: curves"):
        for setting in settings:
            for seed in size.seeds:
                errors = curve(problem, size.marks, random_state=seed, **setting.options)
                rows += [
                    setting.row(seed, n_pass, error)
                    for n_pass, error in zip(size.marks, errors, strict=True)
                ]
    return rows


# ---------------------------------------------------------------------------- what it shows


class Findings:
    """The rows, as questions that the page and the figure ask."""

    def __init__(self, rows: list[Row]) -> None:
        self.kernels = list(dict.fromkeys(row["kernel"] for row in rows))
        self.nothing = {row["kernel"]: row["excess"] for row in rows if row["method"] == "none"}
        self._rows = [row for row in rows if row["method"] != "none"]
        self.marks = sorted({row["n_pass"] for row in self._rows})
        self.n_passes = self.marks[-1]
        self.seeds = sorted({row["seed"] for row in self._rows})

    def of(self, **values: Any) -> list[Row]:
        return [r for r in self._rows if all(r[name] == value for name, value in values.items())]

    def settings(self, kernel: str) -> list[tuple[str, str]]:
        """Methods and gains that have curves."""
        pairs = [(r["method"], r["gains"]) for r in self.of(kernel=kernel, n_pass=1)]
        return list(dict.fromkeys(pairs))

    def curve(self, kernel: str, method: str, gains: str) -> list[float]:
        """The geometric mean over the seeds at each mark."""
        rows = self.of(kernel=kernel, method=method, gains=gains)
        return [
            geometric_mean(r["excess"] for r in rows if r["n_pass"] == n_pass)
            for n_pass in self.marks
        ]

    def ends(self, kernel: str, method: str, gains: str) -> list[float]:
        """The error of each seed after the last pass; infinite where it diverged."""
        rows = self.of(kernel=kernel, method=method, gains=gains, n_pass=self.n_passes)
        by_seed = {row["seed"]: row["excess"] for row in rows}
        return [
            math.inf if self.diverged(kernel, by_seed[seed]) else by_seed[seed]
            for seed in self.seeds
        ]

    def parameters(self, kernel: str, method: str, gains: str) -> tuple[float, float]:
        row = self.of(kernel=kernel, method=method, gains=gains)[0]
        return row["eta0"], row["mu"]

    def diverged(self, kernel: str, error: float) -> bool:
        return not error < self.nothing[kernel]

    def rates(self, kernel: str) -> dict[float, dict[int, float]]:
        """The μ tried with KHA/et's η0: for each the error of each seed."""
        found: dict[float, dict[int, float]] = {}
        for row in self.of(kernel=kernel, method="smd", gains="search, hand"):
            found.setdefault(row["mu"], {})[row["seed"]] = row["excess"]
        return dict(sorted(found.items()))


def compared(rows: list[Row], experiment: str = "usps", draws: str = "") -> list[Compared]:
    """Orders after the last pass with the gains tuned as the paper tunes them."""
    found = Findings(rows)
    made = []
    for kernel in found.kernels:
        ends = {label: found.ends(kernel, method, "hand") for method, label in METHODS.items()}
        for said in published(HERE, experiment)["orders"]:
            better, than = (ends[said[key]] for key in ("better", "than"))
            what = (
                f"{kernel}: {said['better']} before {said['than']}, decades of excess error, gains "
                f"tuned as in the paper, {count(len(better), 'seed')}{draws}"
                + lost(said["better"], better)
                + lost(said["than"], than)
            )
            made.append(paired(said["where"], what, decades_gained(better, than)))
    return made


def lost(label: str, ends: Sequence[float]) -> str:
    """Say from how many seeds a method diverges, if from any."""
    n = sum(map(math.isinf, ends))
    return f"; {label} diverges from {n} of {len(ends)}" if n else ""


def page(rows: list[Row]) -> str:
    found = Findings(rows)
    text = [
        "# USPS digits: excess error over passes",
        "",
        "Written by `experiments/kha/usps.py` (`make experiments`); do not edit. The first 100 "
        f"images of each digit, {N_COMPONENTS} components (KHA paper, Figure 1, which shows "
        "curves without numbers). The excess error is E(A)/E_min - 1, as a geometric mean over "
        f"{count(len(found.seeds), 'seed')}. There is no Rayleigh-Ritz step and no pilot. "
        "*Hand-tuned*: the paper's start and gains, with η0 from a local search over {1, 2, "
        f"5}}·10^b for the smallest error after {found.n_passes} passes over all seeds. As in the "
        "paper, KHA-SMD uses the η0 of KHA/et, tunes μ, and starts with the printed ρ_0 = 1. *ρ_0 "
        "= 0*: the same, starting with the gains of KHA/et. *η0 of its own*: both η0 and μ are "
        "searched for. *Automatic*: the default start and gains, without tuning. A run has "
        "diverged if its final error is larger than with no components at all.",
        "",
        "![Excess error over passes](usps.png)",
    ]
    for kernel in found.kernels:
        text += ["", f"## {kernel[0].upper()}{kernel[1:]} kernel", "", *errors_table(found, kernel)]
    text += ["", "## Orders", ""]
    text += [line for kernel in found.kernels for line in orderings(found, kernel)]
    for kernel in found.kernels:
        text += [
            "",
            f"## KHA-SMD with the η0 of KHA/et, {kernel} kernel",
            "",
            *fates(found, kernel),
        ]
    return "\n".join(text) + "\n"


def errors_table(found: Findings, kernel: str) -> list[str]:
    marks = [mark for mark in SHOWN if mark in found.marks]
    cells = []
    for method, gains in found.settings(kernel):
        errors = found.curve(kernel, method, gains)
        parameters = [plain(p) if p == p else "" for p in found.parameters(kernel, method, gains)]
        shown = [scientific(errors[found.marks.index(mark)]) for mark in marks]
        cells.append([METHODS[method], GAINS[gains], *parameters, *shown])
    return table(
        ["", "gains", "η0", "μ", *(count(mark, "pass", "passes") for mark in marks)], cells
    )


def orderings(found: Findings, kernel: str) -> list[str]:
    """Say of each ordering of the paper whether it holds."""
    lines = []
    settings = found.settings(kernel)
    for gains in GAINS:
        pairs = [("et", "t"), ("t", "constant"), ("smd", "et")]
        for better, worse in pairs:
            if (better, gains) not in settings:
                continue
            reference = gains if (worse, gains) in settings else "hand"
            a, b = found.curve(kernel, better, gains), found.curve(kernel, worse, reference)
            verdict = "holds" if a[-1] < b[-1] else "**does not hold**"
            n_better = sum(x < y for x, y in zip(a, b, strict=True))
            lines.append(
                f"- {kernel}, {GAINS[gains]}: {METHODS[better]} ({scientific(a[-1])}) below "
                f"{METHODS[worse]} ({scientific(b[-1])}) after {found.n_passes} passes: {verdict}; "
                f"below at {n_better} of {len(a)} measured passes."
            )
    return lines


def fates(found: Findings, kernel: str) -> list[str]:
    """Say which μ were tried from the paper's start, and how each seed ended."""
    rates = found.rates(kernel)
    lost = [[found.diverged(kernel, e) for e in by_seed.values()] for by_seed in rates.values()]
    some, every = sum(map(any, lost)), sum(map(all, lost))
    eta0, _ = found.parameters(kernel, "et", "hand")
    automatic = [
        row["excess"]
        for row in found.of(kernel=kernel, method="smd", gains="automatic", n_pass=found.n_passes)
    ]
    n_lost = sum(found.diverged(kernel, error) for error in automatic)
    own = found.parameters(kernel, "smd", "own")
    own_error = scientific(found.curve(kernel, "smd", "own")[-1])
    cells = [
        [plain(mu), *(fate(found, kernel, by_seed.get(seed)) for seed in found.seeds)]
        for mu, by_seed in rates.items()
    ]
    return [
        f"η0 = {plain(eta0)}, ρ_0 = 1 (gains start at e times those of KHA/et). "
        f"{count(len(rates), 'value')} of μ were tried: with {some} of them at least one seed "
        f"diverges, with {every} every seed that was run. With an η0 of its own, {plain(own[0])}, "
        f"and μ = {plain(own[1])} the error is {own_error}. With the automatic start and gains "
        f"{n_lost} of {len(automatic)} seeds diverge, and the error is "
        f"{scientific(geometric_mean(automatic))}.",
        "",
        *table(["μ", *(f"seed {seed}" for seed in found.seeds)], cells),
    ]


def fate(found: Findings, kernel: str, error: float | None) -> str:
    if error is None:
        return "not run"
    if math.isfinite(error) and found.diverged(kernel, error):
        return f"diverged ({scientific(error)})"
    return scientific(error)


def figure(
    rows: list[Row], what: str = " kernel", limits: tuple[float, float] = (5e-5, 5.0)
) -> Any:
    found = Findings(rows)
    n_rows = math.ceil(len(found.kernels) / 3)
    n_columns = math.ceil(len(found.kernels) / n_rows)
    fig, axes = new_figure(11.0, 0.4 + 4.2 * n_rows, n_rows, n_columns, sharey=True)
    bottom, top = limits
    dashes = {"hand": "-", "zero": "-.", "own": ":", "automatic": (0, (5, 2))}
    for ax, kernel in zip(axes.flat, found.kernels, strict=True):
        for method, gains in found.settings(kernel):
            color, marker = STYLES[METHODS[method]]
            errors = found.curve(kernel, method, gains)
            ax.plot(
                found.marks,
                [error if math.isfinite(error) else 1e3 * top for error in errors],
                color=color,
                linestyle=dashes[gains],
                linewidth=1.6,
                marker=marker,
                markersize=5,
                markevery=3 if gains == "automatic" else (1, 3),
                markerfacecolor=color if gains == "hand" else "white",
            )
            beyond = [n for n, error in zip(found.marks, errors, strict=True) if not error < top]
            if beyond and beyond[-1] == found.n_passes:
                label = f"{METHODS[method]}, {GAINS[gains]}: diverges"
                ax.text(4, 0.62 * top, label, color=color, fontsize=8)
        ax.set(yscale="log", ylim=(bottom, top), xlim=(0, found.n_passes + 1))
        ax.set(title=f"{kernel[0].upper()}{kernel[1:]}{what}")
    for ax in axes[-1]:
        ax.set_xlabel("Passes over the data")
    for ax in axes[:, 0]:
        ax.set_ylabel("Excess reconstruction error, mean over seeds")
    _legend(fig, dashes)
    return fig


def _legend(fig: Any, dashes: dict[str, Any]) -> None:
    from matplotlib.lines import Line2D

    methods = [
        Line2D([], [], color=STYLES[name][0], marker=STYLES[name][1], label=name)
        for name in METHODS.values()
    ]
    kinds = [
        Line2D([], [], color="0.3", linestyle=dashes[gains], label=GAINS[gains]) for gains in GAINS
    ]
    fig.legend(handles=[*methods, *kinds], loc="outside right center", frameon=False)


def main(quick: bool = False) -> None:
    rows = measure(Size.of(quick), quick)
    publish("usps", rows, page, figure, quick=quick, compared=compared)


if __name__ == "__main__":
    command_line(main, __doc__)
