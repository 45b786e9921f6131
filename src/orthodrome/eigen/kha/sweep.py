"""One pass of the Kernel Hebbian Algorithm, computed exactly in blocks.

Symbols and equation numbers are those of Schraudolph, Günter and Vishwanathan, "Fast Iterative
Kernel PCA", NIPS 2006: K' is the centred Gram matrix of l samples, A the r x l coefficients of the
components, ρ the logarithms of the gains of KHA-SMD, and B the derivative of A with respect to ρ.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.memory import parse_bytes
from ..._core.threads import run_over_rows
from ..._core.types import Floats
from ._loops import visit_with_gains, visit_with_meta_descent
from .gains import BOUND, Gains

_BLOCK_SIZE = 256
_MIN_BLOCK = 32
_BLOCK_BYTES = 2**28  # maximum memory of the rows of K' in a block

#: Timed phases of a pass: rows of K', the compiled loop over samples, and matrix products.
PHASES = ("rows", "samples", "products")


@dataclass
class State:
    """State of a run: everything that determines the next update.

    Attributes
    ----------
    coefficients : ndarray of shape (r, l), or (2r, l) for KHA-SMD
        A, or A stacked on B.
    projections : ndarray of the same shape
        The products of `coefficients` with K'.
    log_gains : ndarray of shape (r,)
        ρ of KHA-SMD.
    clock : int
        t in the decay l / (t + l): samples visited in all passes, plus an initial offset.
    n_passes : int
        Number of finished passes.
    position : int
        Samples visited in the current pass.
    eigenvalues : ndarray of shape (r,)
        λ of eq. (13) at the start of the pass, from which its gains follow.
    damping : float
        Factor of the automatic gains, halved each time a pass diverges.
    """

    coefficients: Floats
    projections: Floats
    log_gains: Floats
    clock: int = 0
    n_passes: int = 0
    position: int = 0
    eigenvalues: Floats = field(default_factory=lambda: np.zeros(0))
    damping: float = 1.0

    @property
    def n_components(self) -> int:
        """Number of rows of A."""
        return len(self.log_gains)

    @property
    def components(self) -> Floats:
        """A."""
        return self.coefficients[: self.n_components]

    @property
    def component_projections(self) -> Floats:
        """A K'."""
        return self.projections[: self.n_components]

    def copy(self) -> State:
        """Return a deep copy."""
        return copy.deepcopy(self)

    def squared_lengths(self) -> Floats:
        """Return ‖w_i‖² = (A K' Aᵀ)_ii of the components in feature space."""
        return np.einsum("ij,ij->i", self.components, self.component_projections)

    def estimate_eigenvalues(self) -> Floats:
        """Return λ of eq. (13), ‖A_i K'‖ / ‖A_i‖; 0 for a row of zeros."""
        return quotient(
            np.linalg.norm(self.component_projections, axis=1),
            np.linalg.norm(self.components, axis=1),
        )


def quotient(a: Floats, b: Floats) -> Floats:
    """Return a / b, 0 where b is 0."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def resolve_block_size(
    block_size: int | None, operator: Any, memory_budget: str | float | None = None
) -> int:
    """Return the samples per block: the given number, or as many as the memory allows."""
    if block_size is not None:
        return int(block_size)
    limit = _BLOCK_BYTES if memory_budget is None else min(_BLOCK_BYTES, parse_bytes(memory_budget))
    affordable = limit // (operator.shape[0] * np.dtype(operator.dtype).itemsize)
    return max(_MIN_BLOCK, min(_BLOCK_SIZE, affordable))


def sweep(
    state: State,
    operator: Any,
    order: NDArray[np.intp],
    gains: Gains,
    block_size: int,
    seconds: dict[str, float],
) -> Iterator[tuple[NDArray[np.intp], int | None]]:
    """Visit the remaining samples of a pass; yield each block and its number of clipped steps.

    The state is updated in place, and times are added to `seconds` per phase. The number of clips
    is None if values are no longer finite.
    """
    n = operator.shape[0]
    if state.position == 0:
        state.eigenvalues = state.estimate_eigenvalues()
    base = gains.of_pass(state.eigenvalues, state.damping)
    while state.position < n:
        block = order[state.position : state.position + block_size]
        yield block, _visit_block(state, operator, block, gains, base, seconds)
    state.n_passes += 1
    state.position = 0


def _visit_block(
    state: State,
    operator: Any,
    block: NDArray[np.intp],
    gains: Gains,
    base: Floats,
    seconds: dict[str, float],
) -> int | None:
    since = time.perf_counter()
    rows = operator.rows(block)
    since = _add_time(seconds, "rows", since)
    n_rows = len(state.coefficients)
    inner = state.coefficients @ state.component_projections.T if gains.meta else np.empty((0, 0))
    since = _add_time(seconds, "products", since)
    block_gram = np.asarray(rows[:, block], dtype=np.float64)  # K'[block, block]
    columns = np.hstack([state.projections[:, block].T, block_gram])
    W = np.hstack([np.eye(n_rows), np.zeros((n_rows, len(block)))])
    shared = (state.clock, gains.period, gains.automatic)
    if gains.meta:
        squares = np.diagonal(block_gram).copy()
        n_clips = visit_with_meta_descent(
            W, columns, squares, inner, base, state.log_gains, *shared, gains.mu, gains.xi, BOUND
        )
    else:
        n_clips = visit_with_gains(W, columns, base, *shared)
    since = _add_time(seconds, "samples", since)
    if not (np.isfinite(W.sum()) and np.isfinite(state.log_gains.sum())):
        return None
    _apply(state, W[:, :n_rows], W[:, n_rows:], rows, block)
    state.clock += len(block)
    state.position += len(block)
    _add_time(seconds, "products", since)
    return int(n_clips)


def _apply(state: State, T: Floats, V: Floats, rows: NDArray[Any], block: NDArray[np.intp]) -> None:
    """Apply the updates of a block: S <- T S + V Eᵀ and S K' <- T (S K') + V K'[block, :].

    S are the coefficients. T combines their rows, V holds the steps of the samples of the block,
    and E selects their columns.
    """
    S, projections = state.coefficients, state.projections
    narrow = V.astype(rows.dtype, copy=False)  # multiply in the dtype of K', add in float64

    def apply_to_columns(columns: slice) -> None:
        S[:, columns] = T @ S[:, columns]
        updated = T @ projections[:, columns]
        updated += narrow @ rows[:, columns]
        projections[:, columns] = updated

    work = S.size * (2 * len(T) + len(rows))
    run_over_rows(apply_to_columns, S.shape[1], work=work)
    np.add.at(S.T, block, V.T)  # a sample may occur twice in a block


def _add_time(seconds: dict[str, float], phase: str, since: float) -> float:
    now = time.perf_counter()
    seconds[phase] += now - since
    return now
