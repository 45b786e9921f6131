"""How many passes over the Gram matrix a Nyström start saves: counts, which no other work disturbs.

Every row of K' that a run asks for is counted, whatever for: anchors (those drawn and rejected
too), products, estimates of errors; N rows are one pass.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from harness import Table, size
from numpy.typing import ArrayLike, NDArray
from sklearn.datasets import load_digits, make_swiss_roll

from orthodrome.eigen import Hebbian, Krylov
from orthodrome.gram import Centered, CrossOperator, Degree, GramOperator, gram_operator
from orthodrome.kernels import Gaussian, Kernel, Linear

N, K = size(1797, 300), 16
SEEDS = size((0, 1, 2), (0,))
N_PASSES = size(30, 3)  # of hebbian, at most


class Counted(GramOperator):
    """A Gram matrix that counts the rows it is asked for."""

    def __init__(self, operator: GramOperator) -> None:
        super().__init__(shape=operator.shape, dtype=operator.dtype)
        self.operator = operator
        self.recomputes = True  # as where the matrix does not fit, and passes count
        self.n_rows = 0

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        self.n_rows += self.shape[0]
        return self.operator @ V

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        found = self.operator.rows(indices)
        self.n_rows += len(found)
        return found

    def diagonal(self) -> NDArray[Any]:
        return self.operator.diagonal()

    def cross(self, X_new: Any) -> CrossOperator:
        return self.operator.cross(X_new)


def digits() -> NDArray[Any]:
    return load_digits().data[:N]


def groups() -> NDArray[Any]:
    """One large group, and thirty small ones that lie apart."""
    rng = np.random.default_rng(0)
    label = np.where(rng.random(N) < 0.9, 0, rng.integers(1, 31, size=N))
    centers = 2.5 * rng.standard_normal((31, 16))
    return centers[label] + 0.5 * rng.standard_normal((N, 16))


def roll() -> NDArray[Any]:
    return make_swiss_roll(N, random_state=0)[0]


DATA: dict[str, Callable[[], NDArray[Any]]] = {
    "digits": digits,
    "31 groups": groups,
    "Swiss roll": roll,
}
KERNELS: dict[str, Callable[[], Kernel]] = {
    "Gaussian": Gaussian,
    "Gaussian, a quarter of the scale": Gaussian,
    "linear": Linear,
}
SOLVERS: dict[str, tuple[Any, Any]] = {
    "krylov, tol 1e-8": (lambda **a: Krylov(tol=1e-8, **a), ({}, {"initial": "nystroem"})),
    "krylov, tol 1e-3": (lambda **a: Krylov(tol=1e-3, **a), ({}, {"initial": "nystroem"})),
    "hebbian, tol 1e-2": (
        lambda **a: Hebbian(tol=1e-2, n_passes=N_PASSES, **a),
        ({"start": "orthonormal"}, {"start": "pilot"}, {"initial": "nystroem"}),
    ),
}


@cache
def matrix(data: str, kernel: str) -> GramOperator:
    X = DATA[data]()
    chosen = KERNELS[kernel]().fit(X)
    if "quarter" in kernel:
        chosen = Gaussian(sigma=chosen.sigma_ / 4).fit(X)
    return gram_operator(chosen, X)


def passes(geometry: GramOperator, make: Any, options: dict[str, Any], seed: int) -> float:
    """Return the rows that a run asked for, over all rows; infinite where it did not converge."""
    counted = Counted(geometry)
    found = make(random_state=seed, **options).solve(counted, K)
    return counted.n_rows / len(found.vectors) if found.converged else float("inf")


def counts(geometry: GramOperator, solver: str) -> list[str]:
    make, starts = SOLVERS[solver]
    cells = [
        statistics.median(passes(geometry, make, options, seed) for seed in SEEDS)
        for options in starts
    ]
    text = [f"{cell:.1f}" if np.isfinite(cell) else f"over {N_PASSES}" for cell in cells]
    return [text[0], text[1] if len(text) == 3 else "", text[-1]]


def run(full: bool = False) -> list[Table]:
    return [passes_needed()] if full else []  # counts, which do not change with the machine


def passes_needed() -> Table:
    rows = []
    for data in DATA:
        for kernel in KERNELS:
            gram = matrix(data, kernel)
            problems = {"centred": Centered(gram)}
            if "quarter" in kernel:
                problems["graph"] = Degree(gram, shift=1.0)
            for name, geometry in problems.items():
                for solver in SOLVERS:
                    rows.append([data, kernel, name, solver, *counts(geometry, solver)])
    return Table(
        f"Passes over the Gram matrix from different starts, N = {N:,}, {K} pairs",
        ["data", "kernel", "matrix", "solver", "random start", "pilot", "Nyström start"],
        rows,
        f"Medians over {len(SEEDS)} seeds. The rows of the anchors are counted. The graph is "
        "that of spectral clustering, shifted by 1.",
    )
