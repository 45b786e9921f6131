"""Leading eigenpairs from thick-restarted block Lanczos."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from .._core.checks import check_columns, check_flag
from .._core.parameters import Check, integer, optional, positive, seed
from .._core.random import one_seed
from .._core.status import Status
from .._core.threads import run_over_rows, single_threaded_blas
from .._core.types import Array, Callback, Floats
from .dense import Dense
from .nystroem import Nystroem
from .pairs import Eigenpairs, Solver, check_initial

# Up to this many rows, computing all eigenvalues is as fast as a few products.
_DENSE_ROWS = 256

_BASIS_BYTES = 2**28  # maximum memory of the basis before a restart


@dataclass(frozen=True)
class Krylov(Solver):
    r"""Block Lanczos with full orthogonalisation, thick restarts and residual control.

    Each product with the operator adds one block of vectors to the basis Q, and
    :math:`K Q = Q T + Q_+ B E^\top` always holds. The residual of a Ritz pair
    :math:`(\theta, Q s)` is therefore :math:`\|B E^\top s\|`, which needs no further product. When
    the basis is full, it is restarted from its leading Ritz vectors and the last block.

    Parameters
    ----------
    tol : float
        Stop when every residual ‖K v - λ v‖ is at most tol times the largest eigenvalue in
        modulus (or 50 times the machine epsilon, if that is larger). The error of an eigenvalue
        is then of order tol² if it is well separated from the others.
    max_iter : int
        Maximum number of products with the operator.
    block_size : int, optional
        Vectors per product. If the multiplicity of an eigenvalue exceeds the block size, copies may
        be missed, unless the basis becomes invariant. Default: 8 more than the number of pairs, at
        most 64, if the operator evaluates the kernel again for each product. Otherwise from 4 to 8,
        or an eighth of the number of pairs; if that many eigenvalues are equal, the run is repeated
        with larger blocks.
    max_basis : int, optional
        Maximum number of basis vectors before a restart. It is raised to two vectors per pair plus
        four blocks if it is smaller. Default: as many as fit in 256 MiB, at most about 20 blocks.
    random_state : numpy.random.RandomState or Generator or int, optional
        Source of the starting block.
    initial : ndarray of shape (n, m), "nystroem" or Nystroem, optional
        Approximate eigenvectors to start from; random vectors fill the rest of the block.
        "nystroem" uses a Nyström approximation with 8 * block_size or min(256, n // 16) anchors,
        whichever is more. To set its options, pass a :class:`Nystroem` object. It costs a fraction
        of a product (`benchmarks/bench_warm_starts.py` counts the products saved). It is a good
        start only if the matrix is positive semidefinite; the result does not depend on it.
    memory_budget : str or number, optional
        Maximum memory of the whole matrix if LAPACK is used instead; default: not checked.
    or_dense : bool, default=False
        Whether LAPACK is used instead if `max_iter` is reached. ``solver="auto"`` sets it for
        small matrices.

    References
    ----------
    Wu and Simon, "Thick-restart Lanczos method for large symmetric eigenvalue problems", SIAM J.
    Matrix Anal. Appl. 22 (2000); Musco and Musco, "Randomized block Krylov methods", NIPS 2015.
    """

    tol: float = 1e-8
    max_iter: int = 200
    block_size: int | None = None
    max_basis: int | None = None
    random_state: Any = None
    initial: Any = None
    memory_budget: str | float | None = None
    or_dense: bool = field(default=False, repr=False)

    name = "krylov"

    _PARAMETERS: ClassVar[dict[str, Check]] = {
        "tol": positive(or_zero=True),
        "max_iter": integer(),
        "block_size": optional(integer()),
        "max_basis": optional(integer()),
        "random_state": seed,
        "initial": check_initial,
        "or_dense": check_flag,
    }

    def solve(self, operator: Any, k: int, *, callback: Callback | None = None) -> Eigenpairs:
        """Return the k leading eigenpairs; uses LAPACK if a basis would span the whole space."""
        n, block = operator.shape[0], self.block_size
        if block is None:
            recomputes = getattr(operator, "recomputes", False)
            block = min(k + 8 if recomputes else max(4, min(k, 8), k // 8), 64)
        while True:
            block, capacity = min(block, n), self.max_basis
            if capacity is None:
                affordable = _BASIS_BYTES // (n * np.dtype(operator.dtype).itemsize)
                capacity = min(20 * max(block, min(k, 64)) + k, affordable)
            capacity = max(2 * k + 4 * block, capacity)
            if capacity >= n:
                return Dense(self.memory_budget).solve(operator, k, callback=callback)
            with single_threaded_blas():
                found = self._iterate(operator, k, block, capacity, callback)
            if self.or_dense and not found.converged:
                return Dense(self.memory_budget).solve(operator, k, callback=callback)
            if block >= k or self.block_size is not None:
                return found
            spans = found.values[: k - block + 1] - found.values[block - 1 :]
            rounding = n * np.finfo(operator.dtype).eps * abs(found.values[0])
            if np.all(spans > 2 * found.residuals.max() + rounding):
                return found
            block *= 2

    def _iterate(
        self, operator: Any, k: int, block: int, capacity: int, callback: Callback | None
    ) -> Eigenpairs:
        rng = np.random.default_rng(one_seed(self.random_state))
        basis = _Basis(operator, capacity, self._start(rng, operator, block), rng)
        history: list[dict[str, Any]] = []
        confirmed, precision = -np.inf, 50 * float(np.finfo(operator.dtype).eps)
        smallest, residual, wait, unchecked = np.inf, np.inf, 1, 0
        goal = max(self.tol, precision)
        while True:
            basis.extend()
            is_last = len(history) + 1 >= self.max_iter
            if basis.size < k:
                residual = np.inf
            elif is_last or basis.is_full or basis.is_invariant or unchecked + 1 >= wait:
                theta, s, residuals = basis.ritz(k)
                scale, smallest = basis.scale, min(smallest, basis.smallest)
                before, residual = residual, float(residuals.max() / scale)
                wait = _products_until_check(before, residual, unchecked + 1, goal)
                unchecked = 0
            else:
                unchecked += 1
            entry = {"basis_size": basis.size, "max_residual": residual}
            history.append(entry)
            if callback is not None:
                callback(entry)
            converged = residual <= goal
            if (converged or is_last) and basis.size >= k:
                # An invariant basis has residuals 0, but may miss copies of an eigenvalue with a
                # multiplicity above the block size: search for them in new directions.
                total = float(theta.sum())
                unconfirmed = total > confirmed + precision * scale
                if is_last or not (basis.is_invariant and block < k and unconfirmed):
                    break
                confirmed = total
            if basis.is_full:
                basis.restart(min(k + block, capacity - 2 * block))
        return Eigenpairs(
            values=theta.astype(operator.dtype),
            vectors=basis.vectors(s),
            residuals=residuals.astype(operator.dtype),
            n_iter=len(history),
            status=Status.CONVERGED if converged else Status.MAX_ITER,
            solver=self.name,
            history=tuple(history),
            smallest=smallest,
        )

    def _start(self, rng: np.random.Generator, operator: Any, block: int) -> Array:
        n, initial = operator.shape[0], self.initial
        start = rng.standard_normal((n, block))
        if isinstance(initial, str):
            initial = Nystroem()
        if isinstance(initial, Nystroem):
            if initial.random_state is None:
                initial = replace(initial, random_state=rng)
            initial = initial.starting_vectors(operator, block)
        if initial is not None:
            given = check_columns(initial, n, "initial", "the krylov solver")[:, :block]
            start[:, : given.shape[1]] = given
        return start.astype(operator.dtype)


def _products_until_check(before: float, residual: float, products: int, goal: float) -> int:
    """Return after how many products to compute Ritz values again.

    `products` were made between the last two residuals. For few rows or many pairs, computing Ritz
    values takes longer than a product. Each product is expected to divide the residual by at least
    10, because convergence becomes faster.
    """
    if not goal < residual < np.inf:
        return 1
    rate = (before / residual) ** (1 / products) if residual < before < np.inf else 10.0
    return max(1, round(math.log(residual / goal) / math.log(max(10.0, rate))))


def smallest_ritz_value(operator: Any) -> float:
    """Return an upper bound of the smallest eigenvalue.

    The bound is accurate if this eigenvalue is well separated from the others. It costs a few
    products with four vectors. For a small matrix, all eigenvalues are computed instead.
    """
    n = operator.shape[0]
    if n <= _DENSE_ROWS:
        return float(scipy.linalg.eigvalsh(operator.toarray(), check_finite=False)[0])
    rng = np.random.default_rng(0)
    start = rng.standard_normal((n, 4)).astype(operator.dtype)
    with single_threaded_blas():
        basis = _Basis(operator, 5 * start.shape[1], start, rng)
        while not basis.is_full:
            basis.extend()
        basis.ritz(1)
    return basis.smallest


class _Basis:
    """An orthonormal basis Q with T = Qᵀ K Q and the coupling B of its last block."""

    def __init__(
        self, operator: Any, capacity: int, start: Array, rng: np.random.Generator
    ) -> None:
        n, self._block = start.shape
        self._operator = operator
        self._capacity = capacity
        self._rng = rng
        self._Q = np.empty((n, capacity + self._block), dtype=start.dtype, order="F")
        self._columns: list[Floats] = []  # of T, down to the diagonal, for each block
        self._largest = 0.0  # absolute entry of T so far
        self.size = 0
        self._pending = 0  # number of vectors in Q after the first `size`, not yet multiplied
        self.is_invariant = False  # whether the operator maps the basis into itself
        self._B = np.zeros((0, 0))
        self._append(start)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for the pending block."""
        return self.size + self._pending > self._capacity

    def extend(self) -> None:
        """Multiply the pending block by the operator; the product becomes the next block."""
        old, new = self.size, self.size + self._pending
        block = np.ascontiguousarray(self._Q[:, old:new])
        W = np.asarray(self._operator @ block, dtype=self._Q.dtype)
        self.size = new
        coefficients = self._orthogonalise(W)
        self._columns.append(coefficients)
        self._largest = max(self._largest, float(np.abs(coefficients).max()))
        self._append(W, last=(old, new))

    def _orthogonalise(self, W: Array) -> Floats:
        """Orthogonalise W to the basis, up to rounding errors of W; return the coefficients."""
        Q = self._Q[:, : self.size]
        work = Q.size * W.shape[1]

        def subtract(rows: slice) -> None:
            W[rows] -= Q[rows] @ coefficients

        coefficients = sum(run_over_rows(lambda rows: Q[rows].T @ W[rows], len(W), work=work))
        run_over_rows(subtract, len(W), work=work)
        return np.asarray(coefficients, dtype=np.float64)

    def _append(self, W: Array, last: tuple[int, int] | None = None) -> None:
        """Orthonormalise W as the pending block; drop directions within rounding error."""
        q, r, pivots = scipy.linalg.qr(W, mode="economic", pivoting=True, check_finite=False)
        diagonal, eps = np.abs(np.diag(r)), float(np.finfo(q.dtype).eps)
        limit = diagonal.max(initial=0.0) * 1e-12
        if last is not None:
            limit = 10 * eps * self._largest * np.sqrt(self.size)
        kept = int(np.count_nonzero(diagonal > limit))
        if last is not None:
            self._last, self._B = last, np.zeros((kept, W.shape[1]))
            self._B[:, pivots] = r[:kept]
        self.is_invariant = kept == 0
        if self.is_invariant:  # go on with random directions
            kept = min(self._block, len(q) - self.size)
            q = self._rng.standard_normal((len(q), kept)).astype(q.dtype)
            self._orthogonalise(q)
        # After QR, columns that were small are less orthogonal to the basis than the others. The
        # limit for dropping them keeps these errors below 0.1, so that one more step removes them.
        q = q[:, :kept]
        self._orthogonalise(q)
        if np.abs(q.T @ q - np.eye(kept)).max(initial=0.0) > 10 * eps:
            q = scipy.linalg.qr(q, mode="economic", check_finite=False)[0]
        self._Q[:, self.size : self.size + kept] = q
        self._pending = kept

    def ritz(self, k: int) -> tuple[Array, Array, Array]:
        """Return the k leading Ritz values, their coefficients and their residual norms."""
        upper, old = np.zeros((self.size, self.size)), 0
        for columns in self._columns:
            new = len(columns)
            upper[:new, old:new] = columns
            old = new
        values, vectors = np.linalg.eigh(upper, "U")  # reads only the upper triangle
        self._ritz_values, self._ritz_vectors = values[::-1], vectors[:, ::-1]
        # residuals are relative to `scale`, the largest absolute value, which must not be 0
        self.smallest = float(values[0])
        self.scale = max(float(np.abs(values).max()), float(np.finfo(np.float64).tiny))
        s = self._ritz_vectors[:, :k]
        first, last = self._last
        # relative to the largest value, so that squares neither overflow nor underflow
        coupling = (self._B / self.scale) @ s[first:last]
        # an invariant basis has no coupling, but its vectors have rounding errors
        relative = np.maximum(np.linalg.norm(coupling, axis=0), np.finfo(self._Q.dtype).eps)
        return self._ritz_values[:k], s, self.scale * relative

    def restart(self, keep: int) -> None:
        """Replace the basis by its `keep` leading Ritz vectors and the pending block."""
        pending = self._Q[:, self.size : self.size + self._pending].copy()
        self._Q[:, :keep] = self.vectors(self._ritz_vectors[:, :keep])
        self._Q[:, keep : keep + self._pending] = pending
        self._columns, self._largest = [np.diag(self._ritz_values[:keep])], self.scale
        self.size = keep

    def vectors(self, s: Array) -> Array:
        """Return the Ritz vectors with these coefficients.

        Rounding errors of the basis and of previous restarts accumulate in them. One step of
        Newton's iteration for the nearest orthonormal vectors, V (3 - VᵀV)/2, removes them.
        """
        V = self._Q[:, : self.size] @ s.astype(self._Q.dtype)
        excess = V.T @ V - np.eye(V.shape[1])
        return np.ascontiguousarray(V - V @ (excess / 2).astype(V.dtype))
