"""The Kernel Hebbian family as its paper writes it: slow, one sample at a time, whole matrices.

Equations are those of Schraudolph, Günter and Vishwanathan, "Fast Iterative Kernel PCA". Nothing
here is shared with the library, and nothing is clever.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from orthodrome.eigen.kha import _loops, sweep
from orthodrome.eigen.kha.gains import Rule
from orthodrome.gram import Centered, DenseGram, GramOperator, Tangent, Weighted
from orthodrome.gram.tiled import TiledGram
from orthodrome.kernels import Gaussian, Linear
from orthodrome.sphere import karcher_mean

#: KHA, KHA/t, KHA/et, KHA-SMD.
GAINS = ("constant", "t", "et", "smd")


@dataclass(frozen=True)
class Iterates:
    """Where a run stands: coefficients, their differentials, log-gains, gains, limited steps."""

    A: NDArray  # (r, l)
    B: NDArray  # (r, l)
    rho: NDArray  # (r,)
    gains: NDArray  # (r,), of the last sample, before any limit
    n_clipped: list[int]  # limited steps, pass by pass


def lt(M: NDArray) -> NDArray:
    """Zero all elements above the diagonal."""
    return np.tril(M)


def estimated_eigenvalues(A: NDArray, K: NDArray) -> NDArray:
    """Eq. (13)."""
    return np.linalg.norm(A @ K, axis=1) / np.linalg.norm(A, axis=1)


def gradient(A: NDArray, K: NDArray, i: int) -> NDArray:
    """Γ, eq. (9), with y of eq. (7)."""
    e = np.eye(len(K))[i]
    y = A @ K[:, i]
    return np.outer(y, e) - lt(np.outer(y, y)) @ A


def next_differentials(
    A: NDArray, B: NDArray, K: NDArray, i: int, D: NDArray, xi: float
) -> NDArray:
    """Eq. (21)."""
    e, k = np.eye(len(K))[i], K[:, i]
    y, b = A @ k, B @ k
    change = np.outer((A + xi * B) @ k, e) - lt(np.outer(y, y)) @ (A + xi * B)
    return xi * B + D @ (change - xi * lt(np.outer(b, y) + np.outer(y, b)) @ A)


def paper_iterates(
    K: NDArray,
    A: NDArray,
    order: NDArray,
    gain: str,
    *,
    eta0: float,
    mu: float = 0.0,
    xi: float = 0.99,
    rho0: float = 1.0,
    interval: int | None = None,
) -> Iterates:
    """Run the passes of `order` by the paper's gains: eq. (8), (11)-(13), (16), (21), (15).

    Eigenvalues are estimated every `interval` samples of a pass, by default at its start.
    """
    r, n = A.shape
    B, rho, t = np.zeros_like(A), np.full(r, rho0), 0
    for one_pass in order:
        for number, i in enumerate(one_pass):
            if number % (interval or n) == 0:
                eigenvalues = estimated_eigenvalues(A, K)
            t += 1
            eta = np.full(r, eta0)
            if gain != "constant":
                eta = eta * n / (t + n)
            if gain in ("et", "smd"):
                eta = eta * np.linalg.norm(eigenvalues) / eigenvalues  # (12)
            step = gradient(A, K, i)
            if gain == "smd":
                rho = rho + mu * np.diag(step @ K @ B.T)  # (16)
                eta = np.exp(rho) * eta
                B = next_differentials(A, B, K, i, np.diag(eta), xi)  # (21), of the old A
            A = A + np.diag(eta) @ step  # (8), (11), (15)
    return Iterates(A, B, rho, eta, [0] * len(order))


def automatic_gains(
    eigenvalues: NDArray, k_mean: float, n: int, gain: str, rotation: float
) -> NDArray:
    """min(c/λ_i, 2/k_i) before decay, where k_i is what the earlier components leave of k_mean."""
    gains, caps = [], []
    for i in range(len(eigenvalues)):
        known = [min(eigenvalues[: j + 1]) for j in range(i + 1)]
        left = max(k_mean - sum(known[:-1]) / n, known[-1] / n)
        caps.append(2 / left)
        gains.append(min(rotation / eigenvalues[i], 2 / left))
    if gain in ("t", "constant"):
        part = {"t": 0.5, "constant": 0.03}[gain]
        gains = [part * min(max(gains), caps[0])] * len(gains)
    return np.array(gains)


def automatic_iterates(
    K: NDArray,
    A: NDArray,
    order: NDArray,
    gain: str,
    *,
    mu: float | None = None,
    xi: float = 0.99,
    rho0: float = 0.0,
    interval: int | None = None,
    sort: bool = False,
) -> Iterates:
    """Run the passes of `order` by the library's own rule: see the notes of `Hebbian`."""
    r, n = A.shape
    k_mean = np.mean(np.diag(K))
    mu = 0.2 / k_mean if mu is None else mu
    B, rho, t, n_clipped = np.zeros_like(A), np.full(r, rho0), 0, []
    for one_pass in order:
        n_clipped.append(0)
        for number, i in enumerate(one_pass):
            if number % (interval or n) == 0:
                if sort:
                    A = A[np.argsort(-np.linalg.norm(A @ K, axis=1))]
                rotation = 9 if sort else 10
                base = automatic_gains(estimated_eigenvalues(A, K), k_mean, n, gain, rotation)
            t += 1
            decay = 1.0 if gain == "constant" else n / (t + n)
            step = gradient(A, K, i)
            if gain == "smd":
                rho = np.clip(rho + decay * mu * np.diag(step @ K @ B.T), -1.5, 1.5)
            eta = np.exp(rho) * base * decay
            moved = max(eta * np.cumsum((A @ K[:, i]) ** 2))
            n_clipped[-1] += int(moved > 1)
            D = np.diag(eta / max(moved, 1.0))
            if gain == "smd":
                B = next_differentials(A, B, K, i, D, xi)
            A = A + D @ step
    return Iterates(A, B, rho, eta, n_clipped)


N_POINTS = 67  # a prime: no block but 1 divides it


def points(dtype=np.float64, n: int = N_POINTS, d: int = 5) -> NDArray:
    rng = np.random.default_rng(21)
    return (rng.standard_normal((n, d)) * np.linspace(2, 0.3, d) + 0.5).astype(dtype)


def _tiled(dtype, storage: str = "memory", kernel: Any = None) -> TiledGram:
    X = points(dtype)
    return TiledGram((kernel or Gaussian(sigma=1.5)).fit(X), X, storage)


def _weighted(gram: GramOperator) -> GramOperator:
    weights = np.random.default_rng(22).integers(0, 4, size=N_POINTS).astype(float)
    return Weighted(Centered(gram, weights), np.sqrt(weights))


def _tangent(gram: GramOperator) -> GramOperator:
    mean = karcher_mean(gram)
    return Tangent(gram, mean.point, mean.cosines)


#: Tiles must be smaller than the data for these to have several: see `several_tiles`.
OPERATORS = {
    "dense": lambda dtype: DenseGram(_tiled(dtype).toarray()),
    "tiled": _tiled,
    "recomputed": lambda dtype: _tiled(dtype, "recompute"),
    "centered": lambda dtype: Centered(_tiled(dtype)),
    "centered recomputed": lambda dtype: Centered(_tiled(dtype, "recompute")),
    "centered linear": lambda dtype: Centered(_tiled(dtype, kernel=Linear())),
    "weighted": lambda dtype: _weighted(_tiled(dtype)),
    "tangent": lambda dtype: _tangent(_tiled(dtype)),
}


def random_orders(n_passes: int, n: int, seed: int = 23) -> NDArray:
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(n) for _ in range(n_passes)])


def random_start(r: int, n: int, seed: int = 24) -> NDArray:
    """The paper's start, A ~ N(0, 1/(rl))."""
    return np.random.default_rng(seed).standard_normal((r, n)) / np.sqrt(r * n)


def semidefinite(values: NDArray, seed: int = 25) -> tuple[NDArray, NDArray]:
    """A matrix with these eigenvalues, and its eigenvectors in columns, in the same order."""
    n = len(values)
    vectors = scipy.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    matrix = (vectors * values) @ vectors.T
    return (matrix + matrix.T) / 2, vectors


class Counted(GramOperator):
    """An operator that records requested rows, and calls `interrupt` after `limit` rows."""

    def __init__(
        self,
        operator: GramOperator,
        limit: float = np.inf,
        interrupt: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(shape=operator.shape, dtype=operator.dtype)
        self.operator, self._limit, self._interrupt = operator, limit, interrupt
        self.asked: list[NDArray] = []  # which rows, call by call
        self.n_products = 0

    def _matmat(self, V: NDArray) -> NDArray:
        self.n_products += 1
        return self.operator @ V

    def rows(self, indices: Any) -> NDArray:
        if self._interrupt is not None and self.n_rows >= self._limit:
            self._interrupt()
        self.asked.append(np.array(indices))
        return self.operator.rows(indices)

    @property
    def n_rows(self) -> int:
        return sum(len(chosen) for chosen in self.asked)

    def diagonal(self) -> NDArray:
        return self.operator.diagonal()

    def cross(self, X_new: Any) -> Any:
        return self.operator.cross(X_new)


VISITS = {
    (_loops, "visit_with_gains"): _loops.visit_with_gains,
    (_loops, "visit_with_meta_descent"): _loops.visit_with_meta_descent,
    (sweep, "plain_visit"): sweep.plain_visit,
}


def without_limit(monkeypatch: Any, factor: float) -> None:
    """Multiply automatic gains, and take away the limit on steps that keeps them from diverging."""

    def changed(visit):
        def visit_unlimited(*arguments):
            at = next(i for i, one in enumerate(arguments) if isinstance(one, Rule))
            rule = arguments[at]
            larger = rule._replace(damping=factor * rule.damping, limited=False)
            return visit(*arguments[:at], larger, *arguments[at + 1 :])

        return visit_unlimited

    for (module, name), visit in VISITS.items():
        monkeypatch.setattr(module, name, changed(visit))


def check_same_run(one: Any, other: Any) -> None:
    """Two results are the same to the last bit."""
    for name in ("coefficients", "eigenvalues", "eigenvectors", "residuals"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("coefficients", "projections", "log_gains", "eigenvalues"):
        np.testing.assert_array_equal(getattr(one.state, name), getattr(other.state, name))
    for name in ("clock", "n_passes", "damping"):
        assert getattr(one.state, name) == getattr(other.state, name)
    assert (one.status, one.seed, one.n_passes) == (other.status, other.seed, other.n_passes)
    assert one.history == other.history


def relative_difference(actual: NDArray, expected: NDArray) -> float:
    """The largest difference, relative to the largest entry."""
    scale = max(float(np.abs(expected).max()), np.finfo(np.float64).tiny)
    return float(np.abs(actual - expected).max()) / scale
