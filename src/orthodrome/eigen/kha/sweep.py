"""One pass of the Kernel Hebbian Algorithm, computed exactly in blocks.

Symbols and equation numbers are those of Schraudolph, Günter and Vishwanathan, "Fast Iterative
Kernel PCA", NIPS 2006: K' is the centred Gram matrix of l samples, A the r x l coefficients of the
components, ρ the logarithms of the gains of KHA-SMD, and B the derivative of A with respect to ρ.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.memory import parse_bytes
from ..._core.threads import run_over_rows
from ..._core.types import Array, Floats, Indices
from .gains import ROTATION, SORTED_ROTATION, Rule, gains_of, plain_visit

if TYPE_CHECKING:
    from .solver import Hebbian

# Up to this many samples, passes with NumPy take less time than the compilation of the loops.
_PLAIN_SAMPLES = 2000

_BLOCK_SIZE = 256
_MIN_BLOCK = 32
_BLOCK_BYTES = 2**28  # maximum memory of the rows of K' in a block

#: KHA, KHA/t, KHA/et and KHA-SMD.
GAINS = ("constant", "t", "et", "smd")

#: When λ (eq. 13), from which the gains follow, is estimated: at the start of each pass, every
#: _INTERVAL samples, or at each sample.
UPDATES = ("pass", "block", "step")
_INTERVAL = 64
_STEP_BLOCK = 32  # samples per block with "step"; larger blocks cost more

# KHA-SMD: the gain of the log-gains.
_META_GAIN = 0.2
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
        λ of eq. (13), from which the gains follow; see ``UPDATES``.
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

    def sort_components(self) -> None:
        """Sort the components by ‖A_i K'‖², the variance of the data along them, descending."""
        order = np.argsort(-np.linalg.norm(self.projections, axis=1), kind="stable")
        if np.any(np.diff(order) < 0):
            self.coefficients, self.projections = self.coefficients[order], self.projections[order]


def quotient(a: Floats, b: Floats) -> Floats:
    """Return a / b, 0 where b is 0."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


class Gains:
    r"""Gains :math:`D_i = e^{\rho_i} \eta_i` of the components, from the settings of a solver.

    Attributes
    ----------
    meta : bool
        Whether stochastic meta-descent adapts the log-gains.
    automatic : bool
        Whether the library chooses the gains; each step is then limited (clipped).
    updates : {"pass", "block", "step"}
        When λ is estimated.
    sorts : bool
        Whether the components are sorted before λ is estimated. Otherwise, a component that finds
        the direction of an earlier one is displaced later, and has to start again with small gains.
    mu, xi : float
        KHA-SMD: the gain of the log-gains, and the decay of their memory.
    log_gain : float
        Initial ρ.
    rule : Rule
        How η follows from λ, without damping.
    """

    def __init__(self, settings: Hebbian, operator: Any) -> None:
        kind, n = settings.gain, operator.shape[0]
        mean_square = float(np.mean(operator.diagonal(), dtype=np.float64))
        self.meta, self.automatic = kind == "smd", isinstance(settings.eta0, str)
        self.updates, self.xi = settings.updates(), float(settings.xi)
        self.sorts = self.automatic and kind == "et" and self.updates == "block"
        self.mu = _META_GAIN / mean_square if mean_square > 0 else 0.0
        if not isinstance(settings.mu, str):
            self.mu = float(settings.mu)
        self.log_gain = 1.0 if self.meta and not self.automatic else 0.0
        if self.meta and not isinstance(settings.rho0, str):
            self.log_gain = float(settings.rho0)
        self.rule = Rule(
            eta0=math.nan if isinstance(settings.eta0, str) else float(settings.eta0),
            by_eigenvalue=kind in ("et", "smd"),
            common=_COMMON_FRACTION.get(kind, 0.0),
            mean_square=mean_square,
            n_points=n,
            period=math.inf if kind == "constant" else float(n),
            rotation=SORTED_ROTATION if self.sorts else ROTATION,
            damping=1.0,
            limited=self.automatic,
        )

    def at(self, state: State) -> Floats:
        """Return the gains at the end of a pass."""
        decay = 1.0 / (1.0 + state.clock / self.rule.period)
        base = gains_of(state.eigenvalues, self.rule._replace(damping=state.damping))
        return np.exp(state.log_gains) * base * decay


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
    total = 0
    interval = {"pass": len(order), "block": _INTERVAL, "step": _STEP_BLOCK}[gains.updates]
    for start in range(0, len(order), interval):
        if gains.sorts:
            state.sort_components()
        state.eigenvalues = state.estimate_eigenvalues()
        part = order[start : start + interval]
        for first in range(0, len(part), block_size):
            n_clips = _visit_block(state, operator, part[first : first + block_size], gains)
            if n_clips is None:
                return total, False
            total += n_clips
    state.n_passes += 1
    return total, True


def _loops() -> Any:
    """Return the module of compiled loops; importing numba takes 0.3 s."""
    return import_module("._loops", __package__)


def _visit_block(state: State, operator: Any, block: Indices, gains: Gains) -> int | None:
    """Visit a block; return the number of clips, or None if values are not finite."""
    rows = operator.rows(block)
    n_rows = len(state.coefficients)
    block_gram = np.asarray(rows[:, block], dtype=np.float64)  # K'[block, block]
    columns = np.hstack([state.projections[:, block].T, block_gram])
    W = np.hstack([np.eye(n_rows), np.zeros((n_rows, len(block)))])
    forms = np.empty((2, 0, 0))
    if gains.updates == "step":
        S, copies = state.coefficients, (block[:, None] == block).astype(np.float64)
        lengths = np.block([[S @ S.T, S[:, block]], [S[:, block].T, copies]])
        products = np.vstack([state.projections, rows])
        forms = np.stack([products @ products.T, lengths])
    rule = gains.rule._replace(damping=state.damping)
    steps = state.eigenvalues, state.clock, rule
    if gains.meta:
        squares = np.diagonal(block_gram).copy()
        inner = state.coefficients @ state.component_projections.T
        meta = squares, inner, state.log_gains, gains.mu, gains.xi
        n_clips = _loops().visit_with_meta_descent(W, columns, forms, *steps, *meta)
    elif gains.updates == "step" or rule.n_points > _PLAIN_SAMPLES:
        n_clips = _loops().visit_with_gains(W, columns, forms, *steps)
    else:
        n_clips = plain_visit(W, columns, *steps)
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
