"""One pass of the Kernel Hebbian Algorithm, computed exactly in blocks.

Symbols and equation numbers are those of Schraudolph, Günter and Vishwanathan, "Fast Iterative
Kernel PCA", NIPS 2006: K' is the centred Gram matrix of l samples, A the r x l coefficients of the
components, ρ the logarithms of the gains of KHA-SMD, and B the derivative of A with respect to ρ.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.memory import parse_bytes
from ..._core.threads import run_over_rows
from ..._core.types import Array, Floats, Indices
from ._loops import visit_with_gains, visit_with_meta_descent

if TYPE_CHECKING:
    from .solver import Hebbian

_BLOCK_SIZE = 256
_MIN_BLOCK = 32
_BLOCK_BYTES = 2**28  # maximum memory of the rows of K' in a block

#: KHA, KHA/t, KHA/et and KHA-SMD.
GAINS = ("constant", "t", "et", "smd")

# Limits of automatic gains: how far a component may rotate in its first pass,
_ROTATION = 10.0
# and how far a sample of average length may move it, before steps are limited.
_STEP = 2.0
# KHA-SMD: the gain of the log-gains, and their bound. Without a bound they diverged on some data,
# and the limit on steps then slowed down all components because of one.
_META_GAIN = 0.2
_BOUND = 1.5
# KHA/t and KHA use one gain for all components: this fraction of the gain of the last one. The gain
# of KHA does not decay, so it determines the final error.
_COMMON_FRACTION = {"t": 0.5, "constant": 0.03}


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
    eigenvalues: Floats = field(default_factory=lambda: np.zeros(0))
    damping: float = 1.0

    @property
    def components(self) -> Floats:
        """A."""
        return self.coefficients[: len(self.log_gains)]

    @property
    def component_projections(self) -> Floats:
        """A K'."""
        return self.projections[: len(self.log_gains)]

    def copy(self) -> State:
        """Return a deep copy."""
        return copy.deepcopy(self)

    def squared_lengths(self) -> Floats:
        """Return ‖w_i‖² = (A K' Aᵀ)_ii of the components in feature space."""
        return np.einsum("ij,ij->i", self.components, self.component_projections)

    def estimate_eigenvalues(self) -> Floats:
        """Return λ of eq. (13), ‖A_i K'‖ / ‖A_i‖; 0 for a row of zeros."""
        arrays = (self.component_projections, self.components)
        return quotient(*(np.linalg.norm(array, axis=1) for array in arrays))


def quotient(a: Floats, b: Floats) -> Floats:
    """Return a / b, 0 where b is 0."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


class Gains:
    r"""Gains :math:`D_i = e^{\rho_i} \eta_i` of the components, from the settings of a solver.

    Attributes
    ----------
    kind : {"constant", "t", "et", "smd"}
        KHA, KHA/t, KHA/et or KHA-SMD.
    eta0 : float or None
        The paper's η0; None for automatic gains.
    meta : bool
        Whether stochastic meta-descent adapts the log-gains.
    automatic : bool
        Whether the library chooses the gains; each step is then limited (clipped).
    mu, xi : float
        KHA-SMD: the gain of the log-gains, and the decay of their memory.
    log_gain : float
        Initial ρ.
    period : float
        Number of samples l in the decay l / (t + l); infinite for constant gains.
    n_points : int
        l.
    mean_square : float
        The mean of k'(x, x), the scale of the automatic gains.
    """

    def __init__(self, settings: Hebbian, operator: Any) -> None:
        self.kind, self.xi, self.n_points = settings.gain, float(settings.xi), operator.shape[0]
        self.mean_square = float(np.mean(operator.diagonal(), dtype=np.float64))
        self.eta0 = None if isinstance(settings.eta0, str) else float(settings.eta0)
        self.meta, self.automatic = self.kind == "smd", self.eta0 is None
        if isinstance(settings.mu, str):
            self.mu = _META_GAIN / self.mean_square if self.mean_square > 0 else 0.0
        else:
            self.mu = float(settings.mu)
        self.log_gain = 1.0 if self.meta and not self.automatic else 0.0
        self.period = math.inf if self.kind == "constant" else float(self.n_points)

    def of_pass(self, eigenvalues: Floats, damping: float) -> Floats:
        """Return η of each component at the start of a pass, before decay.

        The paper's rules are η0 for KHA and KHA/t and eq. (12) for KHA/et and KHA-SMD. Automatic
        gains are min(10 / λ_i, 2 / k_i); k_i is the mean square without the earlier components. KHA
        and KHA/t use one gain for all components, a fraction of the largest.
        """
        if self.eta0 is not None:
            if self.kind in ("constant", "t"):
                return np.full(len(eigenvalues), self.eta0)
            gains = np.zeros(len(eigenvalues))  # a component of length 0 never changes
            scale = self.eta0 * float(np.linalg.norm(eigenvalues))
            return np.divide(scale, eigenvalues, out=gains, where=eigenvalues > 0)
        known = np.minimum.accumulate(eigenvalues)  # λ may be overestimated before it is in order
        residual = self.mean_square - np.concatenate([[0.0], np.cumsum(known)[:-1]]) / self.n_points
        residual = np.maximum(residual, known / self.n_points)
        caps = np.divide(_STEP, residual, out=np.zeros_like(residual), where=residual > 0)
        gains = np.divide(_ROTATION, eigenvalues, out=caps.copy(), where=eigenvalues > 0)
        gains = np.minimum(gains, caps)
        if self.kind in _COMMON_FRACTION:
            gains = np.full_like(gains, _COMMON_FRACTION[self.kind] * min(gains.max(), caps[0]))
        return damping * gains


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
    state: State, operator: Any, order: Indices, gains: Gains, block_size: int
) -> tuple[int, bool]:
    """Visit all samples; return the number of clipped steps, and whether values stayed finite.

    The state is updated in place.
    """
    state.eigenvalues = state.estimate_eigenvalues()
    base, total = gains.of_pass(state.eigenvalues, state.damping), 0
    for first in range(0, len(order), block_size):
        block = order[first : first + block_size]
        n_clips = _visit_block(state, operator, block, gains, base)
        if n_clips is None:
            return total, False
        total += n_clips
    state.n_passes += 1
    return total, True


def _visit_block(
    state: State, operator: Any, block: Indices, gains: Gains, base: Floats
) -> int | None:
    """Visit a block; return the number of clips, or None if values are not finite."""
    rows = operator.rows(block)
    n_rows = len(state.coefficients)
    block_gram = np.asarray(rows[:, block], dtype=np.float64)  # K'[block, block]
    columns = np.hstack([state.projections[:, block].T, block_gram])
    W = np.hstack([np.eye(n_rows), np.zeros((n_rows, len(block)))])
    shared = (state.clock, gains.period, gains.automatic)
    if gains.meta:
        squares = np.diagonal(block_gram).copy()
        inner = state.coefficients @ state.component_projections.T
        n_clips = visit_with_meta_descent(
            W, columns, squares, inner, base, state.log_gains, *shared, gains.mu, gains.xi, _BOUND
        )
    else:
        n_clips = visit_with_gains(W, columns, base, *shared)
    if not (np.isfinite(W.sum()) and np.isfinite(state.log_gains.sum())):
        bad = ~np.isfinite(rows).all(axis=1)
        if np.any(bad):
            raise ValueError(
                f"hebbian needs finite numbers; row {int(block[np.argmax(bad)])} of the matrix "
                "has NaN or infinity."
            )
        return None
    _apply(state, W[:, :n_rows], W[:, n_rows:], rows, block)
    state.clock += len(block)
    return int(n_clips)


def _apply(state: State, T: Floats, V: Floats, rows: Array, block: Indices) -> None:
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
