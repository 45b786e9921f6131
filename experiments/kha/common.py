"""What the experiments of the KHA paper share: problems, runs, the search for gains."""

from __future__ import annotations

import itertools
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from orthodrome.eigen import HebbianResult, hebbian
from orthodrome.gram import Centered, DenseGram
from orthodrome.kernels import Kernel
from orthodrome.metrics import excess_reconstruction_error
from orthodrome.plots.palette import COLORS, MARKERS

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # where pages.py is

import pages
from pages import (  # noqa: F401 (the scripts of this folder take them from here)
    Row,
    command_line,
    count,
    error_of_mean,
    load,
    median_and_range,
    new_figure,
    paired,
    plain,
    published,
    read_rows,
    record,
    scientific,
    side_by_side,
    table,
    timed,
    write_rows,
)

METHODS = {"constant": "KHA", "t": "KHA/t", "et": "KHA/et", "smd": "KHA-SMD"}
# colour and marker of each method, the same in every figure
STYLES = {
    name: (COLORS[i], MARKERS[i])
    for i, name in enumerate(
        (
            "KHA/et",
            "KHA/t",
            "KHA",
            "KHA-SMD",
            "block Krylov from a pilot",
            "KHA/et from a pilot",
            "block Krylov",
        )
    )
}

publish = partial(pages.publish, HERE)


# ---------------------------------------------------------------------------- data and problems


def usps_subset(per_digit: int = 100) -> NDArray[np.float64]:
    """The first so many training images of each digit, in the order of the file."""
    usps = load("usps")
    first = [np.flatnonzero(usps.y_train == digit)[:per_digit] for digit in range(10)]
    return usps.X_train[np.sort(np.concatenate(first))].astype(np.float64)


@dataclass(frozen=True)
class Problem:
    """A centred Gram matrix, how many components to find, and the least error of so many."""

    name: str
    operator: DenseGram
    n_components: int
    minimal: float
    eigenvalues: NDArray[np.float64]  # the leading ones
    mean_square: float  # of k'(x, x)

    @property
    def error_of_nothing(self) -> float:
        """The excess error of no components at all."""
        return float(np.linalg.norm(self.operator.matrix)) / self.minimal - 1


def make_problem(name: str, K: NDArray[np.float64], n_components: int) -> Problem:
    """Centre a Gram matrix and find its least error by LAPACK."""
    centered = Centered(DenseGram(K)).toarray()
    centered = (centered + centered.T) / 2
    values = np.linalg.eigvalsh(centered)[::-1]
    return Problem(
        name=name,
        operator=DenseGram(centered, check=False),
        n_components=n_components,
        minimal=float(np.linalg.norm(values[n_components:])),
        eigenvalues=values[:n_components],
        mean_square=float(np.trace(centered)) / len(K),
    )


def kernel_problem(name: str, X: NDArray[Any], kernel: Kernel, n_components: int) -> Problem:
    """The problem of kernel PCA of these data."""
    return make_problem(name, kernel.fit(X)(X), n_components)


# ---------------------------------------------------------------------------- runs


def run(problem: Problem, n_passes: int, **options: Any) -> HebbianResult:
    """Make exactly so many passes, as the iterates come; divergences are in the history."""
    fixed = {"tol": 0.0, "polish": False, "start": "orthonormal", "eigenvalue_updates": "pass"}
    options = fixed | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return hebbian(problem.operator, problem.n_components, n_passes=n_passes, **options)


def excess(problem: Problem, result: HebbianResult) -> float:
    """The excess error of a result as it is; infinite where the run diverged."""
    if result.status.name == "DIVERGED":
        return math.inf
    return excess_of(problem, result.coefficients)


def excess_of(problem: Problem, coefficients: NDArray[Any]) -> float:
    """The excess error of coefficients (eq. 22)."""
    return excess_reconstruction_error(problem.operator, coefficients, minimal=problem.minimal)


def final_excess(problem: Problem, n_passes: int, **options: Any) -> float:
    """The excess error after so many passes; infinite where the run diverged."""
    return excess(problem, run(problem, n_passes, **options))


def curve(problem: Problem, marks: Sequence[int], **options: Any) -> list[float]:
    """The excess error after these numbers of passes; infinite from a divergence on."""
    errors: list[float] = []
    result = None
    for before, mark in itertools.pairwise([0, *marks]):
        if errors and math.isinf(errors[-1]):
            errors.append(math.inf)
            continue
        # a run that goes on from a result is the same as one that was never stopped
        result = run(problem, mark - before, initial=result, **options)
        errors.append(excess(problem, result))
    return errors


def decades_gained(better: Sequence[float], than: Sequence[float]) -> NDArray[np.float64]:
    """By how many decades errors are lower than others; not known where both runs diverged."""
    ours, theirs = np.log10(better), np.log10(than)
    both = np.isinf(ours) & np.isinf(theirs)
    return np.where(both, math.nan, np.where(both, 0.0, theirs) - np.where(both, 0.0, ours))


def n_divergences(result: HebbianResult) -> int:
    """How many passes of a run were undone."""
    return sum(entry["diverged"] for entry in result.history)


# ---------------------------------------------------------------------------- the search for gains


def grid_value(index: int) -> float:
    """The value with this number in {1, 2, 5}·10^b; 1 has the number 0."""
    power, place = divmod(index, 3)
    return float(f"{(1, 2, 5)[place]}e{power}")


def grid_index(value: float) -> int:
    """The number of the value in {1, 2, 5}·10^b that is nearest in ratio."""
    around = math.floor(3 * math.log10(value))
    return min(
        range(around - 2, around + 4), key=lambda i: abs(math.log(grid_value(i)) - math.log(value))
    )


@dataclass(frozen=True)
class Search:
    """The best parameters of a search, their error, and every one tried."""

    best: tuple[float, ...]
    error: float
    tried: dict[tuple[float, ...], float]


def local_search(
    error: Callable[..., float], *starts: float, reach: int = 2, most_steps: int = 20
) -> Search:
    """Minimise over {1, 2, 5}·10^b for each parameter, from the values nearest to `starts`.

    One parameter at a time is changed, by up to `reach` steps; the search moves to the best of
    these neighbours until there is none better. Where all of them are infinite, as beyond the edge
    of stability, it goes to smaller values.
    """
    seen: dict[tuple[int, ...], float] = {}

    def at(place: tuple[int, ...]) -> float:
        if place not in seen:
            found = error(*(grid_value(index) for index in place))
            seen[place] = found if math.isfinite(found) else math.inf
        return seen[place]

    here = tuple(grid_index(start) for start in starts)
    for _ in range(most_steps):
        best = min(_neighbours(here, reach), key=at)
        if math.isinf(at(best)):
            here = tuple(index - 2 * reach for index in here)
        elif best == here:
            break
        else:
            here = best
    tried = {tuple(grid_value(i) for i in place): found for place, found in seen.items()}
    return Search(tuple(grid_value(i) for i in here), at(here), tried)


def _neighbours(here: tuple[int, ...], reach: int) -> list[tuple[int, ...]]:
    """The place itself, then those that differ in one index, the nearest first."""
    steps = [sign * size for size in range(1, reach + 1) for sign in (-1, 1)]
    near = [
        (*here[:axis], here[axis] + step, *here[axis + 1 :])
        for step in steps
        for axis in range(len(here))
    ]
    return [here, *near]


def guess_eta0(problem: Problem, gain: str) -> float:
    """Where a search for η0 begins: steps that turn a component about once in the first pass."""
    if gain in ("et", "smd"):
        return 10 / float(np.linalg.norm(problem.eigenvalues))
    return {"t": 0.5, "constant": 0.05}[gain] / problem.mean_square


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean; infinite if any value is, or else 0 if any is."""
    given = list(values)
    if math.inf in given or 0.0 in given:
        return math.inf if math.inf in given else 0.0
    return math.exp(sum(map(math.log, given)) / len(given))
