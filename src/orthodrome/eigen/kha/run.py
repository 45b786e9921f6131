"""A run of the Kernel Hebbian Algorithm: passes, error estimates, divergence, checkpoints."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..._core.digest import digest
from ..._core.random import one_seed
from ..._core.status import Status
from ..._core.threads import single_threaded_blas
from ..._core.types import Callback, Floats
from ..._core.warn import warn_user
from .checkpoint import Checkpoint, CheckpointData
from .checks import check_same_matrix, check_semidefinite
from .gains import Gains
from .ritz import Ritz, component_pairs, estimate_residuals, raw_pairs, rayleigh_ritz
from .starts import start_from, start_with
from .sweep import PHASES, State, resolve_block_size, sweep

if TYPE_CHECKING:
    from .solver import Hebbian

# Limits beyond which a pass has diverged. With automatic gains, whose steps are limited, components
# stay near unit length. With the paper's gains they may grow and shrink again.
_MAX_GROWTH = 10.0
_MAX_SQUARED_LENGTH = 1e12
_MIN_DAMPING = 2.0**-20
# Full gains would destroy a good start, and small gains would not improve a bad one: t begins at
# 1 / (residual of a pilot) passes, within these limits (experiments/kha/starts.py).
_HEAD_STARTS = (3.0, 1000.0)
_MAX_ZEROS = 2**24  # coefficients of components beyond the rank; a few are harmless


@dataclass(frozen=True)
class HebbianResult:
    """Result of a run of the Kernel Hebbian Algorithm.

    Attributes
    ----------
    coefficients : ndarray of shape (r, l)
        A, the components' coefficients over the points; after the Rayleigh-Ritz step they have
        unit length in feature space and are orthogonal.
    eigenvalues : ndarray of shape (r,)
        Estimates: Ritz values, descending; without that step, those of eq. (13) in the order of the
        rows.
    eigenvectors : ndarray of shape (l, r)
        Eigenvectors of K' in columns: the normalised coordinates of the points on each component.
        Orthonormal after the Rayleigh-Ritz step.
    residuals : ndarray of shape (r,)
        ‖K'v - λv‖ of each pair, estimated from a sample of rows (exact for l <= 64).
    n_passes : int
        Passes over the data, including those before `initial`.
    status : Status
        How the run ended; ``status.advice`` says what to do.
    history : tuple of dict
        One entry per pass: ``n_pass``; ``eigenvalues``; ``gains`` at its end; ``max_residual``, the
        error estimate relative to the largest eigenvalue; ``clipped``, the fraction of samples
        whose step was limited; ``diverged``; ``seconds`` per phase: ``rows`` of K', the loop over
        ``samples``, ``products``, and the ``estimate``.
    state : State
        State before the next pass; ``hebbian(..., initial=result)`` continues from it.
    seed : int
        Seed of the orders in which the data are visited.
    """

    coefficients: NDArray[Any]
    eigenvalues: NDArray[Any]
    eigenvectors: NDArray[Any]
    residuals: NDArray[Any]
    n_passes: int
    ended: str  # value of the status: results in saved models are plain data
    history: tuple[dict[str, Any], ...]
    state: State
    seed: int

    @property
    def status(self) -> Status:
        """How the run ended."""
        return Status(self.ended)

    @property
    def converged(self) -> bool:
        """Whether the error estimate reached the tolerance."""
        return self.status.converged


def run(
    settings: Hebbian,
    operator: Any,
    r: int,
    given: Floats | HebbianResult | None,
    n_passes: int,
    *,
    orders: NDArray[np.intp] | None = None,
    polish: bool = True,
    callback: Callback | None = None,
) -> HebbianResult:
    """Find r components; settings and arguments are valid, as in :func:`hebbian`."""
    n = operator.shape[0]
    if r > n and r * n > _MAX_ZEROS:
        raise ValueError(
            f"n_components of hebbian is {r}, but a matrix of {n} rows has at most {n} components."
        )
    check_semidefinite(operator)
    block_size = resolve_block_size(settings.block_size, operator, settings.memory_budget)
    gains = Gains(settings, operator)
    file, data = None, None
    if settings.checkpoint is not None:
        fingerprint = _fingerprint(settings, operator, r, given, orders, block_size)
        file = Checkpoint(settings.checkpoint, fingerprint, settings.checkpoint_seconds)
        data = _more_advanced(file.read((r * (1 + gains.meta), n)), given, file)
        if data is not None:  # the fingerprint does not cover globals used by a kernel function
            check_same_matrix(data.state, operator, f"{file.path} is the checkpoint of a run")
    with single_threaded_blas():
        if data is None:
            data = _initial_data(settings, operator, r, gains, given, block_size)
        first = given.n_passes if isinstance(given, HebbianResult) else 0
        last, tol = first + n_passes, settings.tol
        return _Passes(
            operator, gains, tol, block_size, orders, polish, callback, file, first, last
        ).run(data)


def _fingerprint(
    settings: Hebbian, operator: Any, r: int, given: Any, orders: Any, block_size: int
) -> str:
    """Return a digest of data, kernel and the parameters that may not change."""
    rates = (settings.eta0, settings.mu, settings.xi)
    numbers = [value if isinstance(value, str) else float(value) for value in rates]
    fixed = (operator, r, settings.gain, numbers, settings.start, orders, block_size)
    seed = settings.random_state
    seed = int(seed) if isinstance(seed, (int, np.integer)) else None
    return digest(*fixed, None if isinstance(given, HebbianResult) else given, seed)


def _more_advanced(
    data: CheckpointData | None, given: Any, file: Checkpoint
) -> CheckpointData | None:
    """Return the data of a checkpoint, or None if `given` is a result with more passes."""
    if data is None or not isinstance(given, HebbianResult):
        return data
    if data.seed != given.seed:
        raise ValueError(
            f"{file.path} is the checkpoint of another run than the result given as initial: their "
            "seeds differ. Delete it, or choose another file."
        )
    return data if data.state.n_passes >= given.n_passes else None


def _initial_data(
    settings: Hebbian, operator: Any, r: int, gains: Gains, given: Any, block_size: int
) -> CheckpointData:
    """Return the state before the first pass of this run."""
    if isinstance(given, HebbianResult):
        check_same_matrix(given.state, operator, "initial of hebbian is a result")
        return CheckpointData(given.state.copy(), None, given.seed, list(given.history))
    seed, start = one_seed(settings.random_state), settings.start
    if given is None:
        A, projections = start_with(start, operator, r, np.random.default_rng([seed, 0]))
    else:
        A, projections = start_from(operator, given)
    if gains.meta:
        A, projections = (np.vstack([rows, np.zeros_like(rows)]) for rows in (A, projections))
    state = State(A, projections, np.full(r, gains.log_gain))
    state.eigenvalues = state.estimate_eigenvalues()
    if gains.automatic and (given is not None or start in ("pilot", "nystroem")):
        passes = _equivalent_passes(state, operator, np.random.default_rng([seed, 3]), block_size)
        low, high = _HEAD_STARTS
        if given is None or passes > low:  # given coefficients may be no better than random ones
            state.clock = round(min(max(passes, low), high) * operator.shape[0])
    return CheckpointData(state, None, seed, [])


def _equivalent_passes(
    state: State, operator: Any, rng: np.random.Generator, block_size: int
) -> float:
    """Return the number of passes after which a random start is about as accurate."""
    lengths = state.squared_lengths()
    if not np.all((lengths == 0) | ((lengths > 0.5) & (lengths < 2))):
        return 0.0  # not normalised, so not a good start
    pairs = component_pairs(state)
    largest = float(pairs.values.max()) or 1.0
    residuals = estimate_residuals(operator, pairs, rng, block_size) / largest
    size, residual = np.linalg.norm(pairs.values / largest), np.linalg.norm(residuals)
    return float(size / residual) if residual > 0 else math.inf


@dataclass
class _Passes:
    """A run over one operator, from pass number `first` to `last`."""

    operator: Any
    gains: Gains
    tol: float
    block_size: int
    orders: NDArray[np.intp] | None
    polish: bool
    callback: Callback | None
    file: Checkpoint | None
    first: int
    last: int

    def run(self, data: CheckpointData) -> HebbianResult:
        """Continue from `data` until the error is small or the last pass is done."""
        self.seed, self.history = data.seed, list(data.history)
        self.found: tuple[Ritz, Floats] | None = None  # pairs and residuals of the latest state
        self.state, self.pass_start, self.pending = data.state, data.pass_start, data.pending
        before = data.state if data.pass_start is None else data.pass_start
        status = Status.DIVERGED if data.diverged else self._status(before)
        if status is not None:  # a checkpoint may contain an unfinished pass
            self.state = before
        while status is None:
            status = self._pass()
            self.pass_start, self.pending = None, {}
            self._write_if_due(ended=status)
            if self.callback is not None:  # after the checkpoint, since it may raise
                self.callback(dict(self.history[-1]))
        if status is Status.DIVERGED:
            _warn(self.state, " and was undone; the run ends before it.")
        return self._result(status)

    def _pass(self) -> Status | None:
        """Do or finish one pass; return the final status if the run has ended.

        A pass that diverges is undone, and automatic gains are halved.
        """
        self.pass_start = self.pass_start or self.state.copy()
        self.pending = dict(self.pending) or dict.fromkeys((*PHASES, "estimate", "clipped"), 0.0)
        if self._visit(self.pass_start):
            self._record(diverged=False)
            return self._status(self.state)
        state = self.state = self.pass_start
        self._record(diverged=True)
        if not self.gains.automatic or state.damping <= _MIN_DAMPING:
            return Status.DIVERGED
        state.damping /= 2
        _warn(state, "; it is repeated with half the gains.")
        return None

    def _visit(self, before: State) -> bool:
        """Visit the remaining samples of a pass; return False if it diverged.

        `before` is the state at the start of the pass.
        """
        state = self.state
        if self.orders is None:
            rng = np.random.default_rng([self.seed, 1, state.n_passes])
            order = rng.permutation(self.operator.shape[0])
        else:
            order = self.orders[state.n_passes - self.first]
        with np.errstate(over="ignore", invalid="ignore"):
            visits = sweep(state, self.operator, order, self.gains, self.block_size, self.pending)
            for block, n_clips in visits:
                if n_clips is None:
                    self._check_rows(block)
                    return False
                self.pending["clipped"] += n_clips
                if state.position < len(order):
                    self._write_if_due()
            return not self._has_diverged(before)

    def _check_rows(self, block: NDArray[np.intp]) -> None:
        """Raise if the matrix has NaN or infinity in these rows."""
        bad = ~np.isfinite(self.operator.rows(block)).all(axis=1)
        if np.any(bad):
            raise ValueError(
                f"hebbian needs finite numbers; row {int(block[np.argmax(bad)])} of the matrix "
                "has NaN or infinity."
            )

    def _has_diverged(self, before: State) -> bool:
        lengths = float(self.state.squared_lengths().max())
        if self.gains.automatic:
            return not lengths <= _MAX_GROWTH * max(1.0, float(before.squared_lengths().max()))
        # with a gain e^ρ of 0, a component can never change again
        return not lengths < _MAX_SQUARED_LENGTH or not np.all(np.exp(self.state.log_gains) > 0)

    def _record(self, *, diverged: bool) -> None:
        """Append an entry to the history."""
        state, since = self.state, time.perf_counter()
        pairs, residuals = self.found = self._pairs()
        self.pending["estimate"] += time.perf_counter() - since
        decay = 1.0 / (1.0 + state.clock / self.gains.period)
        base = self.gains.of_pass(state.eigenvalues, state.damping)
        largest = float(np.abs(pairs.values).max())
        entry = {
            "n_pass": state.n_passes + diverged,
            "eigenvalues": pairs.values.tolist(),
            "gains": (np.exp(state.log_gains * self.gains.meta) * base * decay).tolist(),
            "max_residual": float(residuals.max()) / largest if largest > 0 else 0.0,
            "clipped": self.pending["clipped"] / self.operator.shape[0],
            "diverged": diverged,
            "seconds": {phase: self.pending[phase] for phase in (*PHASES, "estimate")},
        }
        self.history.append(entry)

    def _pairs(self) -> tuple[Ritz, Floats]:
        """Return the pairs of the state, with estimates of their residuals."""
        pairs = rayleigh_ritz(self.state) if self.polish else raw_pairs(self.state)
        rng = np.random.default_rng([self.seed, 2, self.state.n_passes])
        return pairs, estimate_residuals(self.operator, pairs, rng, self.block_size)

    def _status(self, state: State) -> Status | None:
        """Return the status if a stopping test holds: tolerance or number of passes."""
        latest = self.history[-1] if self.history else None
        if latest is not None and not latest["diverged"] and latest["max_residual"] <= self.tol:
            return Status.CONVERGED
        return Status.MAX_ITER if state.n_passes >= self.last else None

    def _write_if_due(self, ended: Status | None = None) -> None:
        """Write the checkpoint if it is due."""
        file, start = self.file, self.pass_start
        if file is not None and (ended is not None or file.due(pass_ended=start is None)):
            diverged = ended is Status.DIVERGED
            file.write(
                CheckpointData(self.state, start, self.seed, self.history, self.pending, diverged)
            )

    def _result(self, status: Status) -> HebbianResult:
        pairs, residuals = self._pairs() if self.found is None else self.found
        dtype = self.operator.dtype
        return HebbianResult(
            coefficients=pairs.coefficients.astype(dtype),
            eigenvalues=pairs.values.astype(dtype),
            eigenvectors=np.ascontiguousarray(pairs.vectors.T, dtype=dtype),
            residuals=residuals.astype(dtype),
            n_passes=self.state.n_passes,
            ended=status.value,
            history=tuple(self.history),
            state=self.state,
            seed=self.seed,
        )


def _warn(state: State, consequence: str) -> None:
    warn_user(f"hebbian: Pass {state.n_passes + 1} diverged{consequence}", ConvergenceWarning)
