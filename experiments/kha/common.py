"""What the experiments of the KHA paper share: problems, runs, the search for gains."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from orthodrome.eigen import HebbianResult, Krylov, hebbian
from orthodrome.gram import Centered, DenseGram
from orthodrome.kernels import Kernel
from orthodrome.metrics import excess_reconstruction_error
from orthodrome.preimage.fixed_point import Vectors, fixed_point

METHODS = {"KHA": "constant", "KHA/t": "t", "KHA/et": "et", "KHA-SMD": "smd"}
# when eigenvalues in the gains are estimated (§3 and Algorithm 1 differ), and the first log-gain:
# ρ_0 is printed as 1, but the KHA/et gains "as a starting point" mean 0
UPDATES = {"λ once per pass": "pass", "λ at each step": "step"}
RHO0 = {"ρ_0 = 1 as printed": 1.0, "ρ_0 = 0": 0.0}
WAYS = tuple(itertools.product(UPDATES, RHO0))
UNCLEAR = (
    "when λ is estimated (§3 and Algorithm 1 differ), and ρ_0 (printed as 1; the text implies 0)"
)


@dataclass(frozen=True)
class Problem:
    """A centred Gram matrix, how many components to find, and the least error of so many."""

    operator: DenseGram
    n_components: int
    minimal: float
    eigenvalues: NDArray[np.float64]  # the leading ones
    exact: NDArray[np.float64]  # coefficients of the exact components

    @classmethod
    def of(cls, kernel: Kernel, X: NDArray[Any], n_components: int) -> Problem:
        """Return the problem of kernel PCA of these data."""
        matrix = Centered(DenseGram(kernel.fit(X)(X))).toarray()
        operator = DenseGram((matrix + matrix.T) / 2, check=False)
        del matrix
        pairs = Krylov(tol=1e-10, random_state=0).solve(operator, n_components)
        left = float(np.vdot(operator.matrix, operator.matrix) - np.sum(pairs.values**2))
        exact = (pairs.vectors / np.sqrt(pairs.values)).T
        return cls(operator, n_components, math.sqrt(left), pairs.values, exact)

    @property
    def mean_square(self) -> float:
        """The mean of k'(x, x)."""
        return float(np.mean(self.operator.diagonal()))

    @property
    def error_of_nothing(self) -> float:
        """The excess error of no components at all."""
        return float(np.linalg.norm(self.operator.matrix)) / self.minimal - 1

    def excess(self, coefficients: NDArray[Any] | None) -> float:
        """The excess error (eq. 22); infinite if larger than that of nothing: a divergence."""
        if coefficients is None:
            return math.inf
        error = excess_reconstruction_error(self.operator, coefficients, minimal=self.minimal)
        return error if error < self.error_of_nothing else math.inf


def cleaned(
    problem: Problem, kernel: Kernel, X: NDArray[Any], coefficients: NDArray[Any]
) -> NDArray[Any]:
    """Pre-images of points projected on components as they come (eq. 22).

    With c = AᵀAK'e_i of a point, its projection is Σ β_n Φ(x_n), β = c - mean(c) + 1/l.
    """
    projections = (problem.operator @ coefficients.T).T
    found = np.empty_like(X)
    for rows in np.array_split(np.arange(len(X)), max(1, len(X) // 1000)):
        expansion = projections[:, rows].T @ coefficients
        expansion += 1 / len(X) - expansion.mean(axis=1, keepdims=True)
        ends = fixed_point(Vectors(kernel, X), expansion, X[rows], tol=1e-4, max_iter=500)
        found[rows] = ends.points
    return found


def followed(
    problem: Problem, marks: Sequence[int], seed: int, options: dict[str, Any]
) -> Iterator[NDArray[Any] | None]:
    """The coefficients after these numbers of passes, as they come; None from a divergence on."""
    result: HebbianResult | None = None
    fixed = {"tol": 0.0, "polish": False, "start": "paper", "eigenvalue_updates": "pass"}
    for before, mark in itertools.pairwise([0, *marks]):
        if result is None or result.status.name != "DIVERGED":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                result = hebbian(
                    problem.operator,
                    problem.n_components,
                    n_passes=mark - before,
                    initial=result,
                    random_state=seed,
                    **(fixed | options),
                )
        yield None if result.status.name == "DIVERGED" else result.coefficients


def errors(problem: Problem, n_passes: int, seeds: Iterable[int], **options: Any) -> list[float]:
    """The excess error after so many passes, for each seed."""
    return [problem.excess(*followed(problem, (n_passes,), seed, options)) for seed in seeds]


# ---------------------------------------------------------------------------- the search for gains


def tuned(
    problem: Problem, method: str, n_passes: int, seeds: Iterable[int], **options: Any
) -> dict[str, Any]:
    """Tune η0, or the μ of KHA-SMD with a given η0, as the paper does: over {1, 2, 5}·10^b.

    A value is as good as the geometric mean over the seeds of the error after the last pass. If
    every value of the search diverges, take the one of a whole list with the fewest divergences.
    """
    gain = METHODS[method]
    name = "mu" if "eta0" in options else "eta0"
    tried: dict[float, list[float]] = {}

    def error(value: float) -> float:
        if value not in tried:
            chosen = {"gain": gain, **options, name: value}
            tried[value] = errors(problem, n_passes, seeds, **chosen)
        return geometric_mean(tried[value])

    def failures(value: float) -> tuple[int, float]:
        error(value)
        good = [each for each in tried[value] if math.isfinite(each)]
        return len(tried[value]) - len(good), geometric_mean(good)

    steps = 4 if name == "mu" else 20
    best = local_search(error, guess(problem, method, name), most_steps=steps)
    if math.isinf(error(best)):
        best = min((0.0, *(10.0**power for power in range(-6, 1))), key=failures)
    return {"gain": gain, **options, name: best}


def guess(problem: Problem, method: str, name: str) -> float:
    """Where a search begins: steps that turn a component about once in the first pass."""
    if name == "mu":
        return 0.2 / problem.mean_square
    if method in ("KHA/et", "KHA-SMD"):
        return 10 / float(np.linalg.norm(problem.eigenvalues))
    return {"KHA/t": 0.5, "KHA": 0.05}[method] / problem.mean_square


def local_search(error: Callable[[float], float], start: float, most_steps: int = 20) -> float:
    """Minimise over {1, 2, 5}·10^b from the value nearest to the start; smaller if all diverge."""
    here = grid_index(start)
    for _ in range(most_steps):
        best = min((here, here - 1, here + 1), key=lambda index: error(grid_value(index)))
        if math.isinf(error(grid_value(best))):
            here -= 2
        elif best == here:
            break
        else:
            here = best
    return grid_value(here)


def grid_value(index: int) -> float:
    """The value with this number in {1, 2, 5}·10^b; 1 has the number 0."""
    power, place = divmod(index, 3)
    return float(f"{(1, 2, 5)[place]}e{power}")


def grid_index(value: float) -> int:
    """The number of the value in {1, 2, 5}·10^b that is nearest in ratio."""
    around = math.floor(3 * math.log10(value))
    return min(range(around - 2, around + 4), key=lambda i: abs(math.log(grid_value(i) / value)))


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean; infinite if any value is, or there is none; else 0 if any is."""
    given = list(values)
    if not given or math.inf in given or 0.0 in given:
        return 0.0 if given and math.inf not in given else math.inf
    return math.exp(sum(map(math.log, given)) / len(given))


def decades(values: Iterable[float]) -> list[float]:
    """Logarithms of errors."""
    return [math.log10(value) if value > 0 else -math.inf for value in values]
