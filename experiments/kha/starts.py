"""Effect of the Rayleigh-Ritz step and of the pilot start, compared with block Krylov.

The first 100 USPS images of each digit, 16 components, the dot-product kernel and the Gaussian with
σ = 8; automatic gains. Every row of K that a run asks for is counted, whatever for: the start, the
passes, the error estimates; l rows are one sweep. (Centring takes one sweep more, for all alike,
and is not counted.) Then, on the matrices of gains.py, how far the gains should have decayed when
the first pass from a pilot begins.

    python experiments/kha/starts.py [--quick]

writes starts.csv, starts.md and starts.png next to this file. Needs the digits (ORTHODROME_DATA).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import (
    STYLES,
    Problem,
    Row,
    command_line,
    count,
    excess_of,
    geometric_mean,
    kernel_problem,
    make_problem,
    median_and_range,
    new_figure,
    plain,
    publish,
    run,
    scientific,
    table,
    timed,
    usps_subset,
)
from gains import CASES, Case
from numpy.typing import ArrayLike, NDArray

from orthodrome.eigen import HebbianResult, Krylov, hebbian
from orthodrome.gram import CrossOperator, DenseGram, GramOperator
from orthodrome.kernels import Gaussian, Linear

KERNELS = {"dot product": Linear, "Gaussian": lambda: Gaussian(sigma=8.0)}
N_COMPONENTS = 16
GOAL = 1e-2
PASSES = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50)
FEW = (0, 1, 2, 3, 4, 5)
HEADS = (3, 10, 40, 160, 640)  # passes at which t begins after a pilot
AUTOMATIC = "automatic"
AFTER = (1, 5)
EXACT = 1e-12  # an excess error that is rounding
METHODS = {
    "KHA/et": {"gain": "et", "start": "orthonormal", "eigenvalue_updates": "pass"},
    "KHA-SMD": {"gain": "smd", "start": "orthonormal", "eigenvalue_updates": "pass"},
    "KHA/et from a pilot": {"gain": "et", "start": "pilot", "eigenvalue_updates": "pass"},
}
KRYLOV, KRYLOV_PILOT = "block Krylov", "block Krylov from a pilot"
PILOT = "pilot alone"
DRAWN = (*METHODS, KRYLOV, KRYLOV_PILOT)


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    passes: tuple[int, ...] = PASSES
    cases: tuple[Case, ...] = CASES
    head_seeds: tuple[int, ...] = (0, 1, 2)

    @staticmethod
    def of(quick: bool) -> Size:
        few = tuple(case for case in CASES if case.name in ("seeds", "glass", "ecoli"))
        return Size((0,), PASSES[:6], few, (0,)) if quick else Size()


class Counted(GramOperator):
    """A Gram matrix that counts the rows it is asked for."""

    def __init__(self, operator: DenseGram) -> None:
        super().__init__(shape=operator.shape, dtype=operator.dtype)
        self.operator = operator
        self.n_rows = 0

    @property
    def sweeps(self) -> float:
        """Rows asked for so far, in units of all rows."""
        return self.n_rows / self.shape[0]

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        self.n_rows += self.shape[0]
        return self.operator @ V

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        found = self.operator.rows(indices)
        self.n_rows += len(found)
        return found

    def diagonal(self) -> NDArray[Any]:
        self.n_rows += 1  # as many entries as a row has
        return self.operator.diagonal()

    def cross(self, X_new: Any) -> CrossOperator:
        return self.operator.cross(X_new)


# ---------------------------------------------------------------------------- runs


def measure(size: Size) -> list[Row]:
    X = usps_subset()
    rows = []
    for kernel, make in KERNELS.items():
        problem = kernel_problem(kernel, X, make(), N_COMPONENTS)
        for seed in size.seeds:
            with timed(f"{kernel}, seed {seed}"):
                rows += with_and_without(problem, size, seed)
                rows += beside_krylov(problem, seed)
    for case in size.cases:
        with timed(f"{case.name}, {case.kernel_name}: head starts"):
            rows += head_starts(case, size.head_seeds)
    return rows


def row_of(
    problem: Problem, study: str, method: str, seed: int, n_pass: int, **found: float
) -> Row:
    names = {"kernel": problem.name, "study": study, "method": method, "seed": seed}
    values = dict.fromkeys(("head_start", "sweeps", "raw", "excess"), math.nan)
    return {**names, "n_pass": n_pass, **values, **found}


def with_and_without(problem: Problem, size: Size, seed: int) -> list[Row]:
    """The error of the iterates as they are and after the Rayleigh-Ritz step, over passes."""
    rows = []
    for method, options in METHODS.items():
        result, done = None, 0
        for n_pass in size.passes:
            result = run(
                problem, n_pass - done, polish=True, initial=result, random_state=seed, **options
            )
            done = n_pass
            raw, polished = errors(problem, result)
            rows.append(row_of(problem, "passes", method, seed, n_pass, raw=raw, excess=polished))
    return rows


def errors(problem: Problem, result: HebbianResult) -> tuple[float, float]:
    """The error of the components that the run keeps, and of those that it returns."""
    return excess_of(problem, result.state.components), excess_of(problem, result.coefficients)


def beside_krylov(problem: Problem, seed: int) -> list[Row]:
    """Whole runs of a few passes each, with the rows of K that each of them takes."""
    rows, pilot = [], None
    for method, options in METHODS.items():
        for n_pass in FEW:
            operator = Counted(problem.operator)
            result = hebbian(
                operator,
                problem.n_components,
                n_passes=n_pass,
                tol=0.0,
                random_state=seed,
                **options,
            )
            raw, polished = errors(problem, result)
            found = {"sweeps": operator.sweeps, "raw": raw, "excess": polished}
            rows.append(row_of(problem, "sweeps", method, seed, n_pass, **found))
            if n_pass == 0 and options["start"] == "pilot":
                pilot = result, operator.sweeps
                rows.append(row_of(problem, "sweeps", PILOT, seed, 0, **found))
    rows += krylov(problem, seed, KRYLOV, None, 0.0)
    return rows + krylov(problem, seed, KRYLOV_PILOT, pilot[0].eigenvectors, pilot[1])


def krylov(
    problem: Problem, seed: int, method: str, initial: NDArray[Any] | None, spent: float
) -> list[Row]:
    """Block Krylov after one, two, … products, each of which is a sweep."""
    rows = []
    for n_products in FEW[1:]:
        operator = Counted(problem.operator)
        solver = Krylov(tol=0.0, max_iter=n_products, random_state=seed, initial=initial)
        pairs = solver.solve(operator, problem.n_components)
        coefficients = (pairs.vectors / np.sqrt(pairs.values)).T
        found = {"sweeps": spent + operator.sweeps, "excess": excess_of(problem, coefficients)}
        rows.append(row_of(problem, "sweeps", method, seed, n_products, **found))
    return rows


def head_starts(case: Case, seeds: tuple[int, ...]) -> list[Row]:
    """The error after a few passes from a pilot, as t begins at so many passes."""
    problem = make_problem(f"{case.name}, {case.kernel_name}", case.gram(), case.n_components)
    rows = []
    for seed in seeds:
        pilot = run(problem, 0, start="pilot", polish=True, random_state=seed)
        for head in (AUTOMATIC, *HEADS):
            state = pilot.state.copy()
            if head != AUTOMATIC:
                state.clock = head * problem.operator.shape[0]
            result = dataclasses.replace(pilot, state=state)
            found = {"head_start": state.clock / problem.operator.shape[0]}
            for n_pass in (0, *AFTER):
                result = run(problem, n_pass - result.n_passes, polish=True, initial=result)
                error = max(excess_of(problem, result.coefficients), EXACT)
                rows.append(row_of(problem, "head", str(head), seed, n_pass, excess=error, **found))
    return rows


# ---------------------------------------------------------------------------- what it shows


class Findings:
    """The rows, as questions that the page and the figure ask."""

    def __init__(self, rows: list[Row]) -> None:
        self._groups: dict[tuple[str, str, str, int], list[Row]] = {}
        for row in rows:
            # a column of names of which some are numbers
            key = (row["kernel"], row["study"], str(row["method"]), row["n_pass"])
            self._groups.setdefault(key, []).append(row)
        self.matrices = list(dict.fromkeys(k for k, study, *_ in self._groups if study == "head"))
        self.kernels = list(dict.fromkeys(k for k, study, *_ in self._groups if study != "head"))
        self.n_seeds = len({row["seed"] for row in rows if row["study"] != "head"})

    def passes(self, study: str, method: str) -> list[int]:
        return sorted({key[3] for key in self._groups if key[1:3] == (study, method)})

    def values(self, name: str, kernel: str, study: str, method: str, n_pass: int) -> list[float]:
        """One value for each seed."""
        return [row[name] for row in self._groups[kernel, study, method, n_pass]]

    def median(self, name: str, kernel: str, study: str, method: str, n_pass: int) -> float:
        return float(np.median(self.values(name, kernel, study, method, n_pass)))

    def head_error(self, matrix: str, head: Any, n_pass: int) -> float:
        """The geometric mean over the seeds, with a head start."""
        return geometric_mean(self.values("excess", matrix, "head", str(head), n_pass))


def page(rows: list[Row]) -> str:
    found = Findings(rows)
    text = [
        "# The Rayleigh-Ritz step and the pilot start",
        "",
        "Written by `experiments/kha/starts.py` (`make experiments`); do not edit. The first 100 "
        f"USPS images of each digit, {N_COMPONENTS} components, automatic gains. Excess errors: "
        f"the median over {count(found.n_seeds, 'seed')}, with minimum and maximum in brackets. "
        "One sweep is one computation of every row of K. Sweeps count all rows that a run "
        "computes, for its start, its passes and its error estimates, but not those for centring.",
        "",
        "![Excess errors over passes and over sweeps](starts.png)",
        "",
        "## Findings",
        "",
    ]
    for kernel in found.kernels:
        text += [ritz_claim(found, kernel), *pilot_claims(found, kernel)]
    text += head_claims(found)
    for kernel in found.kernels:
        text += ["", f"## {kernel[0].upper()}{kernel[1:]} kernel, over sweeps", ""]
        text += sweeps_table(found, kernel)
    for kernel in found.kernels:
        text += ["", f"## {kernel[0].upper()}{kernel[1:]} kernel, the Rayleigh-Ritz step", ""]
        text += ritz_table(found, kernel)
    text += [
        "",
        "## Initial decay of the gains after a pilot",
        "",
        "After a pilot, the gains start as if some passes were already done. The columns show the "
        "excess error for several such numbers of passes (geometric mean over the seeds). "
        "*Automatic* is the number that the solver chooses from the residual of the pilot.",
        "",
        *head_table(found),
    ]
    return "\n".join(text) + "\n"


def ritz_claim(found: Findings, kernel: str) -> str:
    """Say how much the Rayleigh-Ritz step lowers the error."""
    gains = []
    for method in METHODS:
        for n_pass in found.passes("passes", method):
            raw = found.median("raw", kernel, "passes", method, n_pass)
            gains.append(raw / found.median("excess", kernel, "passes", method, n_pass))
    return (
        f"- {kernel}: the Rayleigh-Ritz step divides the median error by {min(gains):.2g} to "
        f"{max(gains):.2g} (over methods and passes)."
    )


def pilot_claims(found: Findings, kernel: str) -> list[str]:
    """Say what one pass from a pilot reaches, whether it was worth it, and what Krylov needs."""
    name = "KHA/et from a pilot"
    where = (kernel, "sweeps", name, 1)
    after, sweeps = found.median("excess", *where), found.median("sweeps", *where)
    plain_start = found.median("excess", kernel, "sweeps", "KHA/et", 1)
    alone = found.median("excess", kernel, "sweeps", PILOT, 0)
    met = "met" if after <= GOAL else "**not met**"
    n_met = sum(error <= GOAL for error in found.values("excess", *where))
    worth = "lowers" if after < alone else "**raises**"
    return [
        f"- {kernel}: after one pass from a pilot, {sweeps:.2f} sweeps, the median error is "
        f"{scientific(after)}: the goal of {GOAL:g} is {met} ({n_met} of {found.n_seeds} seeds "
        f"meet it); from the random start it is {scientific(plain_start)}.",
        f"- {kernel}: the pilot alone, without any pass, has {scientific(alone)}; the pass {worth} "
        "its error.",
        f"- {kernel}: {reached(found, kernel, KRYLOV)}; {reached(found, kernel, KRYLOV_PILOT)}; "
        f"{reached(found, kernel, name)}; {reached(found, kernel, 'KHA/et')}.",
    ]


def reached(found: Findings, kernel: str, method: str) -> str:
    """Say after how many sweeps the median error of a method is at the goal."""
    for n_pass in found.passes("sweeps", method):
        where = (kernel, "sweeps", method, n_pass)
        if found.median("excess", *where) <= GOAL and n_pass > 0:
            sweeps = found.median("sweeps", *where)
            unit = ("product",) if method in (KRYLOV, KRYLOV_PILOT) else ("pass", "passes")
            steps = count(n_pass, *unit)
            return f"{method} reaches {GOAL:g} with {steps}, {sweeps:.2f} sweeps"
    return f"{method} does not reach {GOAL:g} in what was run"


def head_claims(found: Findings) -> list[str]:
    """Compare the automatic initial decay with the best of the fixed ones."""
    lines = []
    for n_pass in AFTER:
        ratios = {}
        for matrix in found.matrices:
            best = min(found.head_error(matrix, head, n_pass) for head in HEADS)
            ratios[matrix] = found.head_error(matrix, AUTOMATIC, n_pass) / best
        worst = max(ratios, key=lambda matrix: ratios[matrix])
        mean = geometric_mean(ratios.values())
        lines.append(
            f"- Initial decay after a pilot: the error after {count(n_pass, 'pass', 'passes')} "
            f"with the automatic choice is {mean:.2g} times the error with the best of "
            f"{', '.join(map(str, HEADS))} (geometric mean over {len(ratios)} matrices). The worst "
            f"ratio is {ratios[worst]:.2g}, on {worst}."
        )
    raised = [
        matrix
        for matrix in found.matrices
        if found.head_error(matrix, AUTOMATIC, 1) > found.head_error(matrix, AUTOMATIC, 0)
    ]
    lines.append(
        f"- The first pass raises the error of the pilot on {len(raised)} of "
        f"{len(found.matrices)} matrices: {'; '.join(raised) or 'none'}."
    )
    return lines


def head_table(found: Findings) -> list[str]:
    heads = (AUTOMATIC, *HEADS)
    header = ["", "automatic: t begins at", "the pilot alone"]
    header += [f"{count(n, 'pass', 'passes')}: {head}" for n in AFTER for head in heads]
    cells = []
    for matrix in found.matrices:
        chosen = found.values("head_start", matrix, "head", AUTOMATIC, 0)
        line = [matrix, median_and_range(chosen, lambda value: plain(round(value, 1)))]
        line.append(scientific(found.head_error(matrix, AUTOMATIC, 0)))
        line += [scientific(found.head_error(matrix, h, n)) for n in AFTER for h in heads]
        cells.append(line)
    return table(header, cells)


def sweeps_table(found: Findings, kernel: str) -> list[str]:
    cells = []
    for method in (PILOT, *METHODS, KRYLOV, KRYLOV_PILOT):
        for n_pass in found.passes("sweeps", method):
            if n_pass == 0 and method != PILOT:
                continue
            where = (kernel, "sweeps", method, n_pass)
            errors = median_and_range(found.values("excess", *where))
            cells.append([method, str(n_pass), f"{found.median('sweeps', *where):.2f}", errors])
    return table(["", "passes or products", "sweeps", "excess error"], cells)


def ritz_table(found: Findings, kernel: str) -> list[str]:
    header, marks = ["passes"], found.passes("passes", "KHA/et")
    header += [f"{method}, {what}" for method in METHODS for what in ("without", "with")]
    cells = []
    for n_pass in marks:
        line = [str(n_pass)]
        for method in METHODS:
            for name in ("raw", "excess"):
                values = found.values(name, kernel, "passes", method, n_pass)
                line.append(median_and_range(values))
        cells.append(line)
    return table(header, cells)


def figure(rows: list[Row]) -> Any:
    found = Findings(rows)
    fig, axes = new_figure(11.0, 8.2, 2, len(found.kernels), sharey="row")
    for column, kernel in enumerate(found.kernels):
        title = f"{kernel[0].upper()}{kernel[1:]} kernel"
        draw_passes(axes[0, column], found, kernel)
        axes[0, column].set(title=f"{title}: the Rayleigh-Ritz step", xlabel="Passes")
        draw_sweeps(axes[1, column], found, kernel)
        axes[1, column].set(title=f"{title}: starts", xlabel="Sweeps over K (rows / l)")
    for ax in axes[:, 0]:
        ax.set_ylabel("Excess reconstruction error")
    _legend(fig)
    return fig


def draw_passes(ax: Any, found: Findings, kernel: str) -> None:
    for method in METHODS:
        color, marker = STYLES[method]
        marks = found.passes("passes", method)
        for name, dash in (("raw", "--"), ("excess", "-")):
            medians = [found.median(name, kernel, "passes", method, n) for n in marks]
            face = "white" if name == "raw" else color
            ax.plot(marks, medians, dash, color=color, marker=marker, ms=5, mfc=face)
    ax.set(xscale="log", yscale="log")
    ticks = [1, 2, 5, 10, 20, 50]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()


def draw_sweeps(ax: Any, found: Findings, kernel: str) -> None:
    ax.axhline(GOAL, color="0.5", linewidth=1, linestyle=":")
    ax.text(0.04, 1.12 * GOAL, f"goal {GOAL:g}", fontsize=8, color="0.35")
    for method in DRAWN:
        color, marker = STYLES[method]
        marks = found.passes("sweeps", method)
        places = [(kernel, "sweeps", method, n_pass) for n_pass in marks]
        x = [found.median("sweeps", *place) for place in places]
        values = [found.values("excess", *place) for place in places]
        ax.plot(x, [np.median(v) for v in values], color=color, marker=marker, ms=5)
        ax.fill_between(
            x, [min(v) for v in values], [max(v) for v in values], color=color, alpha=0.2
        )
    ax.set(yscale="log", xlim=(0, 5.7), ylim=(1e-6, 5))


def _legend(fig: Any) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=STYLES[name][0], marker=STYLES[name][1], label=name) for name in DRAWN
    ]
    steps = (("with the Rayleigh-Ritz step", "-"), ("without", "--"))
    handles += [Line2D([], [], color="0.3", linestyle=dash, label=name) for name, dash in steps]
    fig.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)


def main(quick: bool = False) -> None:
    publish("starts", measure(Size.of(quick)), page, figure, quick=quick)


if __name__ == "__main__":
    command_line(main, __doc__)
