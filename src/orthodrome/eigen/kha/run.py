"""A run of the Kernel Hebbian Algorithm: passes, error estimates, divergence, checkpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._core.random import one_seed
from ..._core.status import Outcome, Status
from ..._core.threads import single_threaded_blas
from ..._core.types import Array, Callback, Floats, Indices
from ..._core.warn import warn_user
from .checkpoint import Checkpoint, Record
from .starts import Ritz, estimate_residuals, raw_pairs, rayleigh_ritz, start_from, start_with
from .sweep import Gains, State, quotient, resolve_block_size, sweep

if TYPE_CHECKING:
    from .solver import Hebbian

# Limits beyond which a pass has diverged. With automatic gains, whose steps are limited, components
# stay near unit length. With the paper's gains they may grow and shrink again.
_MAX_GROWTH = 10.0
_MAX_SQUARED_LENGTH = 1e12
_MIN_DAMPING = 2.0**-20
# Limits, in passes, for the initial time t of the gains. Full gains would destroy a good start, and
# small gains would not improve a bad one, so t begins at 1 / (2 residual) of the start
# (benchmarks/defaults/hebbian.py).
_HEAD_STARTS = (3.0, 1000.0)
_N_SAMPLED = 32  # number of rows of the matrix that are compared in a check


@dataclass(frozen=True)
class HebbianResult(Outcome):
    """Result of a run of the Kernel Hebbian Algorithm.

    Attributes
    ----------
    coefficients : ndarray of shape (r, l)
        A, the components' coefficients over the points. After the Rayleigh-Ritz step, the
        components have unit length in feature space and are orthogonal.
    eigenvalues : ndarray of shape (r,)
        Estimated eigenvalues. After the Rayleigh-Ritz step, the Ritz values, descending. Without
        it, the estimates of eq. (13), in the order of the components.
    eigenvectors : ndarray of shape (l, r)
        Eigenvectors of K' in columns: the normalised coordinates of the points on each component.
        Orthonormal after the Rayleigh-Ritz step.
    residuals : ndarray of shape (r,)
        ‖K'v - λv‖ of each pair, estimated from a sample of rows (exact for l <= 64).
    n_passes : int
        Number of passes over the data. If `initial` is a result, its passes are included.
    status : Status
        How the run ended; ``status.advice`` says what to do.
    history : tuple of dict
        One entry per pass: ``n_pass``; ``eigenvalues``; ``gains`` at its end; ``max_residual``, the
        error estimate relative to the largest eigenvalue; ``clipped``, the fraction of samples
        whose step was limited; ``diverged``.
    state : State
        State before the next pass; ``hebbian(..., initial=result)`` continues from it.
    seed : int
        Seed of the orders in which the data are visited.
    """

    coefficients: Array
    eigenvalues: Array
    eigenvectors: Array
    residuals: Array
    n_passes: int
    status: Status
    history: tuple[dict[str, Any], ...]
    state: State
    seed: int


@dataclass
class Run:
    """A run over one operator. Arguments are as in :func:`hebbian`, already checked."""

    settings: Hebbian
    operator: Any
    r: int
    given: Floats | HebbianResult | None
    n_passes: int
    orders: Indices | None = None
    polish: bool = True
    callback: Callback | None = None

    def __post_init__(self) -> None:
        settings, operator = self.settings, self.operator
        check_semidefinite(operator)
        self.block_size = resolve_block_size(settings.block_size, operator, settings.memory_budget)
        self.gains = Gains(settings, operator)
        self.n_earlier = self.given.n_passes if isinstance(self.given, HebbianResult) else 0
        self.found: tuple[Ritz, Floats] | None = None  # pairs and residuals of the latest state

    def result(self) -> HebbianResult:
        """Return the result; continue from a checkpoint if there is one."""
        file, record = None, None
        if self.settings.checkpoint is not None:
            file = Checkpoint(self.settings.checkpoint, self._fingerprint())
            record = self._more_advanced(file)
        with single_threaded_blas():
            self.record = self._first_record() if record is None else record
            return self._do_passes(file)

    def _fingerprint(self) -> str:
        """Return a hash of the parameters that a continued run must share.

        The matrix is compared by `check_same_matrix`.
        """
        settings, seed = self.settings, self.settings.random_state
        rates = (settings.eta0, settings.mu, settings.xi, settings.rho0)
        numbers = [value if isinstance(value, str) else float(value) for value in rates]
        words = (settings.gain, self.gains.updates, settings.start)
        fixed = (self.r, words, numbers, self.orders, self.block_size)
        given = None if isinstance(self.given, HebbianResult) else self.given
        seed = int(seed) if isinstance(seed, (int, np.integer)) else None
        return str(joblib.hash((self.operator.shape, self.operator.dtype.str, fixed, given, seed)))

    def _more_advanced(self, file: Checkpoint) -> Record | None:
        """Return the record of a checkpoint, or None if `given` is a result with more passes."""
        record = file.read((self.r * (1 + self.gains.meta), self.operator.shape[0]))
        if record is None:
            return None
        if isinstance(self.given, HebbianResult) and record.seed != self.given.seed:
            raise ValueError(
                f"The checkpoint {file.path} and the result given as initial are not from the same "
                "run: their seeds differ. Delete the checkpoint, or choose another file."
            )
        if record.state.n_passes < self.n_earlier:
            return None
        check_same_matrix(record.state, self.operator, f"{file.path} is the checkpoint of a run")
        return record

    def _first_record(self) -> Record:
        """Return the record before the first pass of this run."""
        given, operator, gains, start = self.given, self.operator, self.gains, self.settings.start
        if isinstance(given, HebbianResult):
            check_same_matrix(given.state, operator, "initial of hebbian is a result")
            return Record(given.state.copy(), given.seed, list(given.history))
        seed = one_seed(self.settings.random_state)
        if given is None:
            A, projections = start_with(start, operator, self.r, np.random.default_rng([seed, 0]))
        else:
            A, projections = start_from(operator, given)
        if gains.meta:
            A, projections = (np.vstack([rows, np.zeros_like(rows)]) for rows in (A, projections))
        state = State(A, projections, np.full(self.r, gains.log_gain))
        state.eigenvalues = state.estimate_eigenvalues()
        if gains.automatic and (given is not None or start in ("pilot", "nystroem")):
            passes, (low, high) = self._equivalent_passes(state, seed), _HEAD_STARTS
            if given is None or passes > low:  # given coefficients may be no better than random
                state.clock = round(min(max(passes, low), high) * operator.shape[0])
        return Record(state, seed, [])

    def _equivalent_passes(self, state: State, seed: int) -> float:
        """Return half the number of passes that would make a random start as accurate as this."""
        lengths = state.squared_lengths()
        if not np.all((lengths == 0) | ((lengths > 0.5) & (lengths < 2))):
            return 0.0  # not normalised, so not a good start
        # the unchanged components, with their Rayleigh quotients ‖A_i K'‖² / ‖w_i‖² as eigenvalues
        sums = (state.component_projections**2).sum(axis=1)
        pairs = raw_pairs(state)._replace(values=quotient(sums, lengths))
        largest, rng = float(pairs.values.max()) or 1.0, np.random.default_rng([seed, 3])
        residuals = estimate_residuals(self.operator, pairs, rng, self.block_size) / largest
        size, residual = np.linalg.norm(pairs.values / largest), np.linalg.norm(residuals)
        return float(size / residual) / 2 if residual > 0 else math.inf

    def _do_passes(self, file: Checkpoint | None) -> HebbianResult:
        """Do passes until the error is small or the last one is done."""
        record = self.record
        status = Status.DIVERGED if record.diverged else self._status()
        while status is None:
            status = self._pass()
            record.diverged = status is Status.DIVERGED
            if file is not None:
                file.write(record)
            if self.callback is not None:  # after the checkpoint, since it may raise
                self.callback(dict(record.history[-1]))
        if status is Status.DIVERGED:
            _warn(record.state, " and was undone. The run has ended.")
        pairs, residuals = self.found or self._pairs()
        dtype = self.operator.dtype
        return HebbianResult(
            coefficients=pairs.coefficients.astype(dtype),
            eigenvalues=pairs.values.astype(dtype),
            eigenvectors=np.ascontiguousarray(pairs.vectors.T, dtype=dtype),
            residuals=residuals.astype(dtype),
            n_passes=record.state.n_passes,
            status=status,
            history=tuple(record.history),
            state=record.state,
            seed=record.seed,
        )

    def _pass(self) -> Status | None:
        """Do one pass; return the final status if the run has ended.

        A pass that diverges is undone, and automatic gains are halved.
        """
        record, before = self.record, self.record.state.copy()
        if self.orders is None:
            rng = np.random.default_rng([record.seed, 1, before.n_passes])
            order = rng.permutation(self.operator.shape[0])
        else:
            order = self.orders[before.n_passes - self.n_earlier]
        with np.errstate(over="ignore", invalid="ignore"):
            n_clips, finite = sweep(record.state, self.operator, order, self.gains, self.block_size)
            diverged = not finite or self._has_diverged(before)
        if diverged:
            record.state = before
        self._add_to_history(diverged, n_clips)
        if not diverged:
            return self._status()
        if not self.gains.automatic or before.damping <= _MIN_DAMPING:
            return Status.DIVERGED
        before.damping /= 2
        _warn(before, "; it is repeated with half the gains.")
        return None

    def _has_diverged(self, before: State) -> bool:
        state = self.record.state
        lengths = float(state.squared_lengths().max())
        if self.gains.automatic:
            return not lengths <= _MAX_GROWTH * max(1.0, float(before.squared_lengths().max()))
        # with a gain e^ρ of 0, a component can never change again
        return not lengths < _MAX_SQUARED_LENGTH or not np.all(np.exp(state.log_gains) > 0)

    def _add_to_history(self, diverged: bool, n_clips: int) -> None:
        state = self.record.state
        pairs, residuals = self.found = self._pairs()
        largest = float(np.abs(pairs.values).max())
        entry = {
            "n_pass": state.n_passes + diverged,
            "eigenvalues": pairs.values.tolist(),
            "gains": self.gains.at(state).tolist(),
            "max_residual": float(residuals.max()) / largest if largest > 0 else 0.0,
            "clipped": n_clips / self.operator.shape[0],
            "diverged": diverged,
        }
        self.record.history.append(entry)

    def _pairs(self) -> tuple[Ritz, Floats]:
        """Return the pairs of the state, with estimates of their residuals."""
        state = self.record.state
        pairs = rayleigh_ritz(state) if self.polish else raw_pairs(state)
        rng = np.random.default_rng([self.record.seed, 2, state.n_passes])
        return pairs, estimate_residuals(self.operator, pairs, rng, self.block_size)

    def _status(self) -> Status | None:
        """Return the status if a stopping test holds: tolerance or number of passes."""
        record = self.record
        latest = record.history[-1] if record.history else {"diverged": True}
        if not latest["diverged"] and latest["max_residual"] <= self.settings.tol:
            return Status.CONVERGED
        is_last = record.state.n_passes >= self.n_earlier + self.n_passes
        return Status.MAX_ITER if is_last else None


def _warn(state: State, consequence: str) -> None:
    warn_user(f"hebbian: Pass {state.n_passes + 1} diverged{consequence}", ConvergenceWarning)


# ---------------------------------------------------------------------- checks of the matrix


_INDEFINITE = (
    "hebbian needs a positive semidefinite matrix; {}. Use solver='krylov', which accepts any "
    "symmetric matrix."
)


def check_semidefinite(operator: Any) -> None:
    """Raise if the diagonal shows that a matrix is not finite or not semidefinite.

    Negative diagonal entries are not allowed, nor zeros in rows with nonzero entries. Other
    negative eigenvalues are detected when the components are orthonormalised.
    """
    diagonal = np.asarray(operator.diagonal(), dtype=np.float64)
    if not np.all(np.isfinite(diagonal)):
        row = int(np.argmin(np.isfinite(diagonal)))
        raise ValueError(f"hebbian needs finite numbers; row {row} of the matrix has NaN or inf.")
    largest, precision = float(np.abs(diagonal).max()), np.finfo(operator.dtype)
    if 0 < largest < float(precision.tiny) / float(precision.eps):
        raise ValueError(
            f"The diagonal of the matrix is at most {largest:g}, so small that hebbian would "
            "underflow; rescale the data or the kernel."
        )
    rounding = operator.rounding()
    allowed = max(rounding, np.sqrt(float(precision.eps)) * largest)
    worst = int(np.argmin(diagonal))
    if diagonal[worst] < -allowed:
        raise ValueError(_INDEFINITE.format(f"row {worst} has {diagonal[worst]:g} on the diagonal"))
    zero_diagonal = np.flatnonzero(diagonal <= rounding)
    if len(zero_diagonal):
        sample = zero_diagonal[_spaced(len(zero_diagonal))]
        rows = np.abs(operator.rows(sample)).max(axis=1)
        worst = int(np.argmax(rows))
        # |K_ij|² <= K_ii K_jj, up to rounding errors, which may be as large as the largest entry
        limit = max(allowed, np.sqrt(allowed) * np.sqrt(largest))
        if not rows[worst] <= max(limit, 4 * (rounding + np.sqrt(rounding) * np.sqrt(largest))):
            reason = f"row {sample[worst]} has 0 on the diagonal and an entry of {rows[worst]:g}"
            raise ValueError(_INDEFINITE.format(reason))


def _spaced(n: int) -> Indices:
    """Return a few of n rows, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, _N_SAMPLED).astype(np.intp))


def check_same_matrix(state: State, operator: Any, what: str) -> None:
    """Raise if the products stored in a state are not those with this matrix."""
    sample = _spaced(operator.shape[0])
    expected = state.coefficients @ np.asarray(operator.rows(sample), dtype=np.float64).T
    stored = state.projections[:, sample]
    rounding = operator.rounding() * np.abs(state.coefficients).sum(axis=1, keepdims=True)
    tolerance = 1e-6 if operator.dtype == np.float64 else 1e-4
    allowed = tolerance * np.abs(state.projections).max() + rounding
    if not np.all(np.abs(expected - stored) <= allowed):
        raise ValueError(
            f"{what} on another matrix. Continue with the same data, kernel and weights, or start "
            "over."
        )
