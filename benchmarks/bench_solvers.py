"""Which eigensolver is the fastest for few rows: the map behind solver="auto"."""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

from bench_small import data, timed
from harness import Table, size

from orthodrome import KernelPCA, KernelPGA
from orthodrome.eigen import choose_solver

NS = size((50, 100, 200, 300, 400, 500, 700, 1_000, 2_000, 5_000), (50, 100))
KS = size((1, 5, 16, 50), (1, 5))


def solver_map(estimator: Any, kernel: str) -> Table:
    """Time dense and krylov for small N and k; mark the one that "auto" takes."""
    rows = []
    for n in NS:
        X, cells = data(n), []
        for k in KS:
            solvers = ["dense", "krylov"] if n <= 2_000 else ["krylov"]
            works = {
                solver: partial(estimator(k, kernel, solver=solver, random_state=0).fit, X)
                for solver in solvers
            }
            found = timed(works)
            chosen = choose_solver(n, k).solver
            cells.append(
                ", ".join(
                    f"{name[0]}{'*' if name == chosen else ''} {1e3 * statistics.median(one):.1f}"
                    for name, one in found.items()
                )
            )
        rows.append([f"{n:,}", *cells])
    return Table(
        name=f"Solvers of {estimator.__name__}, {kernel} kernel, milliseconds of a fit",
        columns=["N", *(f"k = {k}" for k in KS)],
        rows=rows,
        note='d: dense, k: krylov; a star marks what solver="auto" takes. Medians of 5. For 50 '
        "rows krylov calls LAPACK too. The spectrum of the Laplacian kernel decays slowly.",
    )


def run() -> list[Table]:
    cases = ((KernelPCA, "gaussian"), (KernelPCA, "laplacian"), (KernelPGA, "gaussian"))
    return [solver_map(*case) for case in cases]
