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
from .checkpoint import Checkpoint, Saved
from .checks import check_same_matrix, check_semidefinite
from .gains import Gains
from .ritz import Ritz, component_pairs, estimate_residuals, raw_pairs, rayleigh_ritz
from .starts import start_from, start_with
from .sweep import PHASES, State, resolve_block_size, sweep

if TYPE_CHECKING:
    from .solver import Hebbian

# With automatic gains, whose steps are limited, components stay near unit length. A pass in which
# one grows tenfold has diverged. The paper's gains may overshoot and come back: only what is
# beyond all bounds has diverged there.
_GROWTH = 10.0
_BEYOND_ALL_BOUNDS = 1e12
_MOST_DAMPING = 2.0**-20
# Full gains would undo a good start, small ones would leave a bad one as it is: t begins at as many
# passes as one over the residual of a pilot, within these limits (experiments/kha/starts.py).
_HEAD_STARTS = (3.0, 1000.0)
_MOST_ZEROS = 2**24  # coefficients: a few components too many do no harm


@dataclass(frozen=True)
class HebbianResult:
    """Result of a run of the Kernel Hebbian Algorithm.

    Attributes
    ----------
    coefficients : ndarray of shape (r, l)
        A, the components' coefficients over the points; after the Rayleigh-Ritz step they have
        unit length in feature space and are orthogonal there.
    eigenvalues : ndarray of shape (r,)
        Estimates: Ritz values, descending, or eq. (13) in the order of the rows without that step.
    eigenvectors : ndarray of shape (l, r)
        Of K', in columns: the coordinates of the points on each component, made of unit length.
        Orthonormal after the Rayleigh-Ritz step.
    residuals : ndarray of shape (r,)
        ‖K'v - λv‖ of each pair, estimated from a sample of rows (exact for l <= 64).
    n_passes : int
        Passes over the data, those before `initial` included.
    status : Status
        How it ended; ``status.advice`` says what to do.
    history : tuple of dict
        One entry for each pass: ``n_pass``; ``eigenvalues``; ``gains`` at its end;
        ``max_residual``, the error estimate, relative to the largest eigenvalue; ``clipped``, the
        part of the samples whose step was limited; ``diverged``; ``seconds``, by phase: ``rows``
        of K', the loop over ``samples``, ``products``, and the ``estimate``.
    state : State
        The start of the next pass; ``hebbian(..., initial=result)`` continues from it.
    seed : int
        Of the orders in which the data are visited.
    """

    coefficients: NDArray[Any]
    eigenvalues: NDArray[Any]
    eigenvectors: NDArray[Any]
    residuals: NDArray[Any]
    n_passes: int
    ended: str  # the status by its value: an estimator keeps results, and then plain data alone
    history: tuple[dict[str, Any], ...]
    state: State
    seed: int

    @property
    def status(self) -> Status:
        """How it ended."""
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
    if r > n and r * n > _MOST_ZEROS:
        raise ValueError(
            f"n_components of hebbian is {r}, but a matrix of {n} rows has at most {n} components."
        )
    check_semidefinite(operator)
    block_size = resolve_block_size(settings.block_size, operator, settings.memory_budget)
    gains = Gains(settings, operator)
    file, saved = None, None
    if settings.checkpoint is not None:
        fingerprint = _fingerprint(settings, operator, r, given, orders, block_size)
        file = Checkpoint(settings.checkpoint, fingerprint, settings.checkpoint_seconds)
        saved = _further(file.read((r * (1 + gains.meta), n)), given, file)
        if saved is not None:  # the fingerprint omits globals that a kernel function reads
            check_same_matrix(saved.state, operator, f"{file.path} is the checkpoint of a run")
    with single_threaded_blas():
        if saved is None:
            saved = _beginning(settings, operator, r, gains, given, block_size)
        first = given.n_passes if isinstance(given, HebbianResult) else 0
        last, tol = first + n_passes, settings.tol
        return _Passes(
            operator, gains, tol, block_size, orders, polish, callback, file, first, last
        ).finish(saved)


def _fingerprint(
    settings: Hebbian, operator: Any, r: int, given: Any, orders: Any, block_size: int
) -> str:
    """Identify a run by its data, kernel and parameters, but not those that may change."""
    rates = (settings.eta0, settings.mu, settings.xi)
    numbers = [value if isinstance(value, str) else float(value) for value in rates]
    parts = (operator, r, settings.gain, numbers, settings.start, orders, block_size)
    seed = settings.random_state
    seed = int(seed) if isinstance(seed, (int, np.integer)) else None
    return digest(*parts, None if isinstance(given, HebbianResult) else given, seed)


def _further(saved: Saved | None, given: Any, file: Checkpoint) -> Saved | None:
    """Return the content of a checkpoint, unless the result given as initial has more passes."""
    if saved is None or not isinstance(given, HebbianResult):
        return saved
    if saved.seed != given.seed:
        raise ValueError(
            f"{file.path} is the checkpoint of another run than the result given as initial: their "
            "seeds differ. Delete it, or name another file."
        )
    return saved if saved.state.n_passes >= given.n_passes else None


def _beginning(
    settings: Hebbian, operator: Any, r: int, gains: Gains, given: Any, block_size: int
) -> Saved:
    """Return the state before the first pass of this run."""
    if isinstance(given, HebbianResult):
        check_same_matrix(given.state, operator, "initial of hebbian is a result")
        return Saved(given.state.copy(), None, given.seed, list(given.history))
    seed, start = one_seed(settings.random_state), settings.start
    if given is None:
        A, projections = start_with(start, operator, r, np.random.default_rng([seed, 0]))
    else:
        A, projections = start_from(operator, given)
    if gains.meta:
        A, projections = (np.vstack([part, np.zeros_like(part)]) for part in (A, projections))
    state = State(A, projections, np.full(r, gains.log_gain))
    state.eigenvalues = state.estimate_eigenvalues()
    if gains.automatic and (given is not None or start in ("pilot", "nystroem")):
        passes = _passes_ahead(state, operator, np.random.default_rng([seed, 3]), block_size)
        fewest, most = _HEAD_STARTS
        if given is None or passes > fewest:  # given coefficients may be no better than random ones
            state.clock = round(min(max(passes, fewest), most) * operator.shape[0])
    return Saved(state, None, seed, [])


def _passes_ahead(state: State, operator: Any, rng: np.random.Generator, block_size: int) -> float:
    """Return after how many passes a random start would be about as accurate."""
    lengths = state.squared_lengths()
    if not np.all((lengths == 0) | ((lengths > 0.5) & (lengths < 2))):
        return 0.0  # their lengths are still to be found
    pairs = component_pairs(state)
    largest = float(pairs.values.max()) or 1.0
    residuals = estimate_residuals(operator, pairs, rng, block_size) / largest
    size, residual = np.linalg.norm(pairs.values / largest), np.linalg.norm(residuals)
    return float(size / residual) if residual > 0 else math.inf


@dataclass
class _Passes:
    """Passes over one operator, up to the pass `last`; the run began after the pass `first`."""

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

    def finish(self, saved: Saved) -> HebbianResult:
        """Continue from `saved` until the error is small, or the last pass is done."""
        self.seed, self.history = saved.seed, list(saved.history)
        self.found: tuple[Ritz, Floats] | None = None  # pairs and residuals of the latest state
        self.state, self.pass_start, self.pending = saved.state, saved.pass_start, saved.pending
        before = saved.state if saved.pass_start is None else saved.pass_start
        status = Status.DIVERGED if saved.diverged else self._status(before)
        if status is not None:  # the file may hold half a pass too many
            self.state = before
        while status is None:
            status = self._pass()
            self.pass_start, self.pending = None, {}
            self._keep(ended=status)
            if self.callback is not None:  # if it raises, the pass is in the checkpoint
                self.callback(dict(self.history[-1]))
        if status is Status.DIVERGED:
            _warn(self.state, " and was undone; the run ends before it.")
        return self._result(status)

    def _pass(self) -> Status | None:
        """Make or finish one pass; return how the run has ended, if it has.

        A pass that diverges is undone; automatic gains are halved.
        """
        self.pass_start = self.pass_start or self.state.copy()
        self.pending = dict(self.pending) or dict.fromkeys((*PHASES, "estimate", "clipped"), 0.0)
        if self._visit(self.pass_start):
            self._record(diverged=False)
            return self._status(self.state)
        state = self.state = self.pass_start
        self._record(diverged=True)
        if not self.gains.automatic or state.damping <= _MOST_DAMPING:
            return Status.DIVERGED
        state.damping /= 2
        _warn(state, "; it is repeated with half the gains.")
        return None

    def _visit(self, before: State) -> bool:
        """Visit the rest of a pass that began with `before`; return whether it went well."""
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
                    self._keep()
            return not self._has_diverged(before)

    def _check_rows(self, block: NDArray[np.intp]) -> None:
        """Raise if infinities or NaN came from the matrix, not from the gains."""
        fault = ~np.isfinite(self.operator.rows(block)).all(axis=1)
        if np.any(fault):
            raise ValueError(
                f"hebbian needs finite numbers; row {int(block[np.argmax(fault)])} of the matrix "
                "has NaN or infinity."
            )

    def _has_diverged(self, before: State) -> bool:
        lengths = float(self.state.squared_lengths().max())
        if self.gains.automatic:
            return not lengths <= _GROWTH * max(1.0, float(before.squared_lengths().max()))
        # where e^ρ is 0 the component can never move again
        return not lengths < _BEYOND_ALL_BOUNDS or not np.all(np.exp(self.state.log_gains) > 0)

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
        """All stopping tests: tolerance and the number of passes."""
        latest = self.history[-1] if self.history else None
        if latest is not None and not latest["diverged"] and latest["max_residual"] <= self.tol:
            return Status.CONVERGED
        return Status.MAX_ITER if state.n_passes >= self.last else None

    def _keep(self, ended: Status | None = None) -> None:
        """Write the checkpoint if one is due."""
        file, start = self.file, self.pass_start
        if file is not None and (ended is not None or file.due(pass_ended=start is None)):
            diverged = ended is Status.DIVERGED
            file.write(Saved(self.state, start, self.seed, self.history, self.pending, diverged))

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


def _warn(state: State, then: str) -> None:
    warn_user(f"hebbian: Pass {state.n_passes + 1} diverged{then}", ConvergenceWarning)
