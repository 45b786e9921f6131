"""The Kernel Hebbian family: a pass compared with the plain loop over samples, and Krylov."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from harness import Comparison, Measured, Table, compare, size
from scipy.sparse.linalg import LinearOperator, eigsh

from orthodrome.eigen import Hebbian, HebbianResult, Krylov, hebbian, leading
from orthodrome.gram import Centered, DenseGram, GramOperator, gram_operator
from orthodrome.kernels import Gaussian
from orthodrome.metrics import excess_reconstruction_error, reconstruction_error

N, R = size(3000, 300), 20
ETA0, MU, XI = 0.05, 0.1, 0.99
#: Of the comparison with Krylov: points, components, and the excess error that both must reach.
N_LARGE, R_LARGE, GOAL = size(10_000, 400), 16, 1e-2
#: Points at which a pass is taken apart.


@cache
def points(n: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((n, 32)) * np.linspace(2, 0.2, 32)


def operator(n: int, storage: str) -> Centered:
    X = points(n)
    return Centered(gram_operator(Gaussian().fit(X), X, storage=storage))


# ------------------------------------------------------------------ a pass


@cache
def dense(n: int = N) -> DenseGram:
    return DenseGram(operator(n, "memory").toarray())


@cache
def begun(n: int = N) -> HebbianResult:
    """The paper's start, before the first pass."""
    return one_pass(dense(n), n_passes=0, random_state=0)


@cache
def order(n: int = N) -> np.ndarray:
    return np.random.default_rng(2).permutation(n)


def one_pass(K: Any, **arguments: Any) -> HebbianResult:
    fixed = {"gain": "smd", "eta0": ETA0, "mu": MU, "xi": XI, "start": "paper", "polish": False}
    return hebbian(K, R, tol=0, **(fixed | arguments))


def our_pass(n: int = N) -> np.ndarray:
    return one_pass(dense(n), initial=begun(n), n_passes=1, order=order(n)[None]).coefficients


def plain_pass(n: int = N) -> np.ndarray:
    """KHA-SMD sample by sample, in NumPy: O(rl) each, with A K' kept up to date (eq. 17, 18)."""
    K, state = dense(n).matrix, begun(n).state
    A, AK = state.coefficients[:R].copy(), state.projections[:R].copy()
    B, BK, rho = np.zeros_like(A), np.zeros_like(A), np.ones(R)
    eigenvalues = np.linalg.norm(AK, axis=1) / np.linalg.norm(A, axis=1)
    base = ETA0 * np.linalg.norm(eigenvalues) / eigenvalues
    for t, i in enumerate(order(n), start=1):
        k, y, b = K[i], AK[:, i].copy(), BK[:, i].copy()
        yy, mixed = np.tril(np.outer(y, y)), np.tril(np.outer(b, y) + np.outer(y, b))
        gradient_K = np.outer(y, k) - yy @ AK
        rho += MU * np.einsum("ij,ij->i", gradient_K, B)
        gains = (np.exp(rho) * base * n / (t + n))[:, None]
        change = -yy @ (A + XI * B) - XI * mixed @ A
        change[:, i] += y + XI * b
        change_K = np.outer(y + XI * b, k) - yy @ (AK + XI * BK) - XI * mixed @ AK
        B, BK = XI * B + gains * change, XI * BK + gains * change_K
        gradient = -yy @ A
        gradient[:, i] += y
        A, AK = A + gains * gradient, AK + gains * gradient_K
    return A


def coefficient_error(A: np.ndarray, n: int = N) -> float:
    """The distance from the mean of both sides' results, relative to it."""
    middle = (reference_pass(n) + A) / 2
    return float(np.abs(A - middle).max() / np.abs(middle).max())


@cache
def reference_pass(n: int = N) -> np.ndarray:
    return our_pass(n)


def recomputed_pass() -> HebbianResult:
    K = recomputed()
    return hebbian(K, R, n_passes=1, tol=0, initial=recomputed_start())


@cache
def recomputed() -> Centered:
    return operator(N_LARGE, "recompute")


@cache
def recomputed_start() -> HebbianResult:
    return hebbian(recomputed(), R, n_passes=0, random_state=0)


def rows_once() -> None:
    K = recomputed()
    for first in range(0, N_LARGE, 256):
        K.rows(np.arange(first, min(first + 256, N_LARGE)))


# ------------------------------------------------------------------ the frontier


@cache
def stored() -> Centered:
    return operator(N_LARGE, "memory")


@cache
def minimal() -> float:
    """The reconstruction error of the exact components."""
    return reconstruction_error(stored(), unit_length(exact()))


@cache
def exact() -> Any:
    return leading(stored(), R_LARGE, solver=Krylov(tol=1e-12, random_state=7))


def unit_length(pairs: Any) -> np.ndarray:
    """Coefficients of components of unit length, in rows."""
    if pairs.coefficients is not None:
        return pairs.coefficients.T
    return (pairs.vectors / np.sqrt(pairs.values)).T


def excess(pairs: Any) -> float:
    return excess_reconstruction_error(stored(), unit_length(pairs), minimal=minimal())


class Counting(GramOperator):
    """Counts the rows and the products with a vector that a solver asks for."""

    def __init__(self, operator: GramOperator) -> None:
        super().__init__(shape=operator.shape, dtype=operator.dtype)
        self.operator, self.n_rows, self.n_sweeps = operator, 0, 0

    def _matmat(self, V: np.ndarray) -> np.ndarray:
        self.n_sweeps += 1
        return self.operator @ V

    def rows(self, indices: Any) -> np.ndarray:
        self.n_rows += len(indices)
        return self.operator.rows(indices)

    def diagonal(self) -> np.ndarray:
        return self.operator.diagonal()

    def cross(self, X_new: Any) -> Any:
        return self.operator.cross(X_new)

    @property
    def sweeps(self) -> float:
        return self.n_sweeps + self.n_rows / self.shape[0]


def arpack(operator: LinearOperator, tol: float) -> Any:
    from orthodrome._core.status import Status
    from orthodrome.eigen import Eigenpairs

    start = np.random.default_rng(0).standard_normal(operator.shape[0])
    values, vectors = eigsh(operator, R_LARGE, which="LA", tol=tol, v0=start)
    down = np.argsort(values)[::-1]
    unknown = np.zeros(R_LARGE)
    return Eigenpairs(values[down], vectors[:, down], unknown, 0, Status.CONVERGED, "arpack")


def solving(solver: Any) -> Callable[[GramOperator], Any]:
    return lambda K: leading(K, R_LARGE, solver=solver, random_state=0)


def krylov_from_pilot(n_products: int) -> Callable[[GramOperator], Any]:
    """Block Krylov from the same few points that the pilot of the Hebbian family starts from."""

    def solve(K: GramOperator) -> Any:
        pilot = hebbian(K, R_LARGE, start="pilot", n_passes=0, random_state=0)
        return solving(Krylov(tol=0, max_iter=n_products, initial=pilot.eigenvectors))(K)

    return solve


def frontier_runs() -> dict[str, Callable[[GramOperator], Any]]:
    runs: dict[str, Callable[[GramOperator], Any]] = {}
    for label, options in (
        ("KHA", {"gain": "constant", "start": "orthonormal"}),
        ("KHA/t", {"gain": "t", "start": "orthonormal"}),
        ("KHA/et", {"gain": "et", "start": "orthonormal"}),
        ("KHA-SMD", {"gain": "smd", "start": "orthonormal"}),
        ("KHA/et from a pilot", {"gain": "et", "start": "pilot"}),
    ):
        for passes in (1, 2, 5, 10):
            unit = "pass" if passes == 1 else "passes"
            runs[f"{label}, {passes} {unit}"] = solving(Hebbian(tol=0, n_passes=passes, **options))
    for products in (1, 2, 3, 4, 5, 6):
        unit = "product" if products == 1 else "products"
        runs[f"block Krylov, {products} {unit}"] = solving(Krylov(tol=0, max_iter=products))
        if products < 4:
            runs[f"block Krylov from a pilot, {products} {unit}"] = krylov_from_pilot(products)
    for tol in (1e-1, 1e-2, 1e-4):
        runs[f"ARPACK, tol {tol:g}"] = lambda K, tol=tol: arpack(K, tol)
    return runs


def frontier() -> Table:
    """Excess error against sweeps over K and seconds, medians of interleaved runs."""
    runs = frontier_runs()
    seconds: dict[str, list[float]] = {label: [] for label in runs}
    found: dict[str, tuple[float, float]] = {}
    for _ in range(5):
        for label, run in runs.items():
            counting = Counting(stored())
            start = time.perf_counter()
            pairs = run(counting)
            seconds[label].append(time.perf_counter() - start)
            if label not in found:
                found[label] = counting.sweeps, excess(pairs)
    rows = []
    for label, (sweeps, error) in sorted(found.items(), key=lambda item: item[0].split(",")[0]):
        taken = seconds[label]
        middle = f"{statistics.median(taken):.2f} ({min(taken):.2f} to {max(taken):.2f})"
        rows.append([label, f"{sweeps:.2f}", middle, f"{error:.1e}"])
    return Table(
        name=f"Excess error against sweeps over K and seconds, {R_LARGE} components of {N_LARGE:,} "
        "points",
        columns=["run", "sweeps over K", "seconds", "excess error"],
        rows=rows,
        note="Excess error as in eq. 22; medians of 5 (range). K is kept in memory. Rows of K' "
        "that a start or an error estimate asks for count as parts of a sweep.",
    )


def rows_in_random_order(storage: str) -> None:
    """What a pass asks of a Gram matrix."""
    order = np.random.default_rng(3).permutation(N_LARGE)
    for start in range(0, N_LARGE, 256):
        grams()[storage].rows(order[start : start + 256])


@cache
def grams() -> dict[str, GramOperator]:
    kernel, X = Gaussian().fit(points(N_LARGE)), points(N_LARGE)
    return {kind: gram_operator(kernel, X, storage=kind) for kind in ("memory", "recompute")}


def run(full: bool = False) -> list[Measured | Table]:
    pass_to_loop = compare(
        Comparison(
            name=f"A KHA-SMD pass, l = {N}, r = {R}, Gaussian kernel, dense K'",
            ours=our_pass,
            theirs=plain_pass,
            ours_label="orthodrome.eigen.hebbian, one pass with its error estimate",
            theirs_label="the loop over samples in NumPy",
            accuracy=coefficient_error,
            required=1e-9,
            target=1 / 20,
        )
    )
    compared_with_rows = compare(
        Comparison(
            name=f"A KHA/et pass with K recomputed, l = {N_LARGE}, r = {R}",
            ours=recomputed_pass,
            theirs=rows_once,
            ours_label="orthodrome.eigen.hebbian, one pass with its error estimate",
            theirs_label="computing the rows of K' once, 256 at a time",
            target=2.0,
        )
    )
    compared_with_krylov = compare(
        Comparison(
            name=f"{R_LARGE} components of {N_LARGE} points to an excess error of {GOAL:g}",
            ours=lambda: solving(Hebbian(tol=GOAL, n_passes=50))(stored()),
            theirs=lambda: solving(Krylov(tol=GOAL))(stored()),
            ours_label='solver="hebbian" (KHA/et, pilot), tol 1e-2',
            theirs_label='solver="krylov", tol 1e-2',
            accuracy=excess,
            required=GOAL,
            note="Error: the excess error (eq. 22). K is kept in memory.",
        )
    )
    compared_with_recomputing = compare(
        Comparison(
            name=f"All rows of K in random order, 256 at a time, l = {N_LARGE}",
            ours=lambda: rows_in_random_order("memory"),
            theirs=lambda: rows_in_random_order("recompute"),
            ours_label="read from the tiles that are kept, half of the matrix",
            theirs_label="evaluated from 32 coordinates",
        )
    )
    measured = [pass_to_loop, compared_with_rows, compared_with_krylov, compared_with_recomputing]
    return [*measured, frontier()] if full else list(measured)
