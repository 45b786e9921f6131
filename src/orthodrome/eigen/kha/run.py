"""The Kernel Hebbian Algorithm from start to end: passes, error, divergence, checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from ..._core.checks import (
    check_callback,
    check_choice,
    check_integer,
    check_positive,
    check_random_state,
)
from ..._core.digest import digest
from ..._core.random import one_seed
from ..._core.status import Status
from ..._core.threads import single_threaded_blas
from ..._core.warn import warn_user
from ...gram import DenseGram, GramOperator
from .checkpoint import Checkpoint, Saved
from .checks import (
    check_coefficients,
    check_lengths,
    check_order,
    check_same_matrix,
    check_semidefinite,
)
from .gains import Gains, choose_gains
from .ritz import Ritz, component_pairs, estimate_residuals, raw_pairs, rayleigh_ritz
from .starts import STARTS, start_from, start_with
from .sweep import PHASES, State, resolve_block_size, sweep

__all__ = ["HebbianResult", "hebbian"]

Callback = Callable[[dict[str, Any]], None]

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
    """The end of a run of the Kernel Hebbian Algorithm.

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
        What the next pass would start from; ``hebbian(..., initial=result)`` goes on there.
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


def hebbian(
    operator: Any,
    n_components: int,
    *,
    gain: str = "et",
    eta0: float | str = "auto",
    mu: float | str = "auto",
    xi: float = 0.99,
    n_passes: int = 50,
    tol: float = 1e-2,
    start: str = "orthonormal",
    initial: ArrayLike | HebbianResult | None = None,
    order: ArrayLike | None = None,
    block_size: int | None = None,
    polish: bool = True,
    checkpoint: Any = None,
    checkpoint_seconds: float | None = None,
    callback: Callback | None = None,
    random_state: Any = None,
) -> HebbianResult:
    r"""Find leading eigenvectors by visiting one sample after the other: KHA and its family.

    The components :math:`w = A\Phi'` follow Sanger's rule in feature space (eq. 8, 11, 15),

    .. math:: A \leftarrow A + \operatorname{diag}(e^{\rho}\eta)
        \bigl[y e_i^\top - \operatorname{lt}(y y^\top) A\bigr], \qquad y = A k'_i ,

    where lt keeps the lower triangle. These are the paper's updates sample by sample, exactly;
    they are computed in blocks, so that the work is in products of matrices.

    A usable answer is there after one or two passes over K', with O(r l) memory. It is *not* the
    way to many digits, nor the fastest to a few: :class:`~orthodrome.eigen.Krylov` gets them with
    fewer sweeps over K'.

    Parameters
    ----------
    operator : GramOperator or array-like of shape (l, l)
        K', symmetric and positive semidefinite, taken as it is: wrap K in
        :class:`~orthodrome.gram.Centered` for kernel PCA, in :class:`~orthodrome.gram.Tangent` for
        kernel PGA. Only its rows are used, each once in a pass.
    n_components : int
        r. If it exceeds the rank of K', the rest are zeros.
    gain : {"constant", "t", "et", "smd"}, default="et"
        KHA: the same gain throughout. KHA/t: :math:`\eta_0\, l/(t+l)`. KHA/et: divided by the
        estimated eigenvalue of each component too (eq. 12, 13). KHA-SMD: stochastic meta-descent
        on the logarithms of those gains (eq. 16, 21).
    eta0 : float or "auto", default="auto"
        A number is the paper's η0, and its rules hold to the letter. "auto" needs no tuning; see
        Notes.
    mu : float or "auto", default="auto"
        KHA-SMD: the gain of the log-gains.
    xi : float, default=0.99
        KHA-SMD: decay of the memory of past steps.
    n_passes : int, default=50
        The most passes over the data, in this call.
    tol : float, default=1e-2
        Stop after a pass when the estimated residual ‖K'v - λv‖ of every pair that would be
        returned is at most tol times the largest eigenvalue.
    start : {"orthonormal", "pilot", "nystroem", "paper", "sparse"}, default="orthonormal"
        Random coefficients over a few points, made orthonormal in feature space; the principal
        components within the span of a few points; the same with points drawn by randomly pivoted
        Cholesky, which takes their rows twice; the paper's A ~ N(0, 1/(rl)), which takes a
        sweep over K' by itself; the same over a few points.
    initial : ndarray of shape (r, l) or HebbianResult, optional
        Coefficients to start from instead; a result goes on where it ended, as if the run had
        never stopped.
    order : array-like of int of shape (n_passes, l), optional
        The samples in the order of the visits. Default: a random permutation for each pass.
    block_size : int, optional
        Samples per block; the iterates do not depend on it, but for rounding. Default: 256, or as
        many rows of K' as 256 MiB hold, but not below 32.
    polish : bool, default=True
        End with a Rayleigh-Ritz step within the span of the components.
    checkpoint : str or path, optional
        A file that keeps the state after each pass. The same call again goes on from it and ends
        with the same result as a run that was never interrupted; a file of other data, kernel or
        parameters is refused. (`n_passes` and `tol` may differ: a finished run can be extended,
        unless its `order` was given.)
    checkpoint_seconds : float, optional
        Write the file every so many seconds instead, also in the middle of a pass.
    callback : callable, optional
        Called with each entry of the history as it is made.
    random_state : int, RandomState, Generator or None
        Source of the start and the orders.

    Returns
    -------
    HebbianResult
        Coefficients, eigenvalues, eigenvectors, estimated residuals, status, history.

    Notes
    -----
    Automatic gains: :math:`\eta_i = \min(10/\lambda_i, 2/\bar k_i) \cdot l/(t+l)`, where
    :math:`\bar k_i` is what the components before the i-th leave over of the mean
    :math:`\bar k` of k'(x, x); at each sample all gains are scaled down until
    :math:`\max_i D_i \sum_{j \le i} y_j^2 \le 1`. KHA/t and KHA take a part of the largest of
    these gains, the latter without decay. KHA-SMD starts from :math:`\rho = 0` with
    :math:`\mu = 0.2/\bar k`, which decays as the gains do, and keeps :math:`|\rho| \le 1.5`. A
    pilot start has t begin at 3 to 1000 passes, the more the smaller the residual of the pilot; so
    have coefficients given as `initial`, unless they are no better than a random start.
    Results do not depend on the scale of the kernel. Should the components grow beyond measure all
    the same, the pass is undone and repeated with half the gains, and a warning says so. With a
    number for `eta0` a run that diverges stops at the end of the last good pass.

    References
    ----------
    Schraudolph, Günter and Vishwanathan, "Fast Iterative Kernel PCA", NIPS 2006; Kim, Franz and
    Schölkopf, "Iterative kernel principal component analysis for image modeling", IEEE TPAMI 27
    (2005).

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.eigen import hebbian
    >>> X = np.random.default_rng(0).standard_normal((500, 3)) * [3, 2, 1]
    >>> found = hebbian(X @ X.T, 2, random_state=0)
    >>> exact = np.linalg.eigvalsh(X.T @ X)[::-1]
    >>> bool(np.allclose(found.eigenvalues, exact[:2], rtol=1e-3))
    True
    """
    if not isinstance(operator, GramOperator):
        operator = DenseGram(operator)
    r = check_integer(n_components, "n_components", "hebbian")
    if r > operator.shape[0] and r * operator.shape[0] > _MOST_ZEROS:
        raise ValueError(
            f"n_components of hebbian is {r}, and a matrix of {operator.shape[0]} rows has no more "
            "components than these: the others would be zeros."
        )
    check_integer(n_passes, "n_passes", "hebbian", minimum=0)
    if block_size is not None:
        check_integer(block_size, "block_size", "hebbian")
    block_size = resolve_block_size(block_size, operator)
    check_positive(tol, "tol", "hebbian", or_zero=True)
    check_choice(start, STARTS, "start", "hebbian")
    check_choice(polish, (True, False), "polish", "hebbian")
    check_callback(callback, "hebbian")
    check_random_state(random_state, "hebbian")
    if checkpoint_seconds is not None:
        check_positive(checkpoint_seconds, "checkpoint_seconds", "hebbian", or_zero=True)
    gains = choose_gains(gain, eta0, mu, xi, operator.shape[0], operator.diagonal())
    given = _check_initial(initial, r, operator.shape[0], gains)
    if isinstance(given, np.ndarray):
        check_lengths(given, operator.diagonal())
    orders = check_order(order, n_passes, operator.shape[0])
    check_semidefinite(operator)
    file, saved = None, None
    if checkpoint is not None:
        numbers = [value if isinstance(value, str) else float(value) for value in (eta0, mu, xi)]
        parts = (operator, r, gain, numbers, start, orders, block_size)
        from_array = None if isinstance(given, HebbianResult) else given
        seed = int(random_state) if isinstance(random_state, (int, np.integer)) else None
        file = Checkpoint(checkpoint, digest(*parts, from_array, seed), checkpoint_seconds)
        shape = (r * (1 + gains.meta), operator.shape[0])
        saved = _further(file.read(shape), given, file)
        if saved is not None:  # a fingerprint does not see what a function finds by name
            check_same_matrix(saved.state, operator, f"{file.path} is the checkpoint of a run")
    with single_threaded_blas():
        run = _Run(operator, gains, orders, block_size, file, callback)
        if saved is None:
            saved = _beginning(operator, r, gains, start, given, random_state, block_size)
        return run.finish(saved, given, int(n_passes), tol, polish)


def _further(saved: Saved | None, given: Any, file: Checkpoint) -> Saved | None:
    """Return what a checkpoint holds unless the result that is to be gone on with is further."""
    if saved is None or not isinstance(given, HebbianResult):
        return saved
    if saved.seed != given.seed:
        raise ValueError(
            f"{file.path} is the checkpoint of another run than the result given as initial: their "
            "seeds differ. Delete it, or name another file."
        )
    return saved if saved.state.n_passes >= given.n_passes else None


def _beginning(
    operator: Any,
    r: int,
    gains: Gains,
    start: str,
    given: Any,
    random_state: Any,
    block_size: int,
) -> Saved:
    if isinstance(given, HebbianResult):
        check_same_matrix(given.state, operator, "initial of hebbian is a result")
        return Saved(given.state.copy(), None, given.seed, list(given.history))
    seed = one_seed(random_state)
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
        if given is None or passes > fewest:  # what is given may be no better than a random start
            state.clock = round(min(max(passes, fewest), most) * operator.shape[0])
    return Saved(state, None, seed, [])


def _passes_ahead(state: State, operator: Any, rng: np.random.Generator, block_size: int) -> float:
    """Return after how many passes a random start would be about as good as these components."""
    lengths = state.squared_lengths()
    if not np.all((lengths == 0) | ((lengths > 0.5) & (lengths < 2))):
        return 0.0  # their lengths are still to be found
    pairs = component_pairs(state)
    largest = float(pairs.values.max()) or 1.0
    residuals = estimate_residuals(operator, pairs, rng, block_size) / largest
    size, residual = np.linalg.norm(pairs.values / largest), np.linalg.norm(residuals)
    return float(size / residual) if residual > 0 else math.inf


class _Run:
    """Passes over one operator with one rule."""

    def __init__(
        self,
        operator: Any,
        gains: Gains,
        orders: NDArray[np.intp] | None,
        block_size: int,
        checkpoint: Checkpoint | None,
        callback: Callback | None,
    ) -> None:
        self._operator = operator
        self._gains = gains
        self._orders = orders
        self._block_size = block_size
        self._checkpoint = checkpoint
        self._callback = callback

    def finish(
        self, saved: Saved, given: Any, n_passes: int, tol: float, polish: bool
    ) -> HebbianResult:
        """Go on from where `saved` stands until all passes are done or the error is small."""
        self._seed, self._history = saved.seed, list(saved.history)
        self._first = given.n_passes if isinstance(given, HebbianResult) else 0
        self._tol, self._polish = tol, polish
        self._last: tuple[Ritz, NDArray[np.float64]] | None = None  # of the state at hand
        state, pass_start, pending = saved.state, saved.pass_start, dict(saved.pending)
        before = state if pass_start is None else pass_start
        status = Status.DIVERGED if saved.diverged else self._status(before, n_passes)
        if status is not None:  # half a pass too many may be in the file
            state = before
        while status is None:
            pass_start = state.copy() if pass_start is None else pass_start
            pending = pending or dict.fromkeys((*PHASES, "estimate", "clipped"), 0.0)
            if self._pass(state, pass_start, pending):
                self._record(state, pending, diverged=False)
                status = self._status(state, n_passes)
            else:
                state = pass_start
                status = self._undone(state, pending)
            pass_start, pending = None, {}
            self._keep(state, None, {}, ended=status)
            if self._callback is not None:  # what it raises finds the pass in the checkpoint
                self._callback(dict(self._history[-1]))
        if status is Status.DIVERGED:
            _warn(f"Pass {state.n_passes + 1} diverged and was undone; the run ends before it.")
        return self._result(state, status)

    def _pass(self, state: State, pass_start: State, pending: dict[str, float]) -> bool:
        """Visit the rest of a pass; return whether it went well."""
        order = self._order(state.n_passes)
        visits = sweep(state, self._operator, order, self._gains, self._block_size, pending)
        with np.errstate(over="ignore", invalid="ignore"):
            for block, n_clips in visits:
                if n_clips is None:
                    self._check_rows(block)
                    return False
                pending["clipped"] += n_clips
                if state.position < self._operator.shape[0]:
                    self._keep(state, pass_start, pending)
            return not self._has_diverged(state, pass_start)

    def _check_rows(self, block: NDArray[np.intp]) -> None:
        """Raise if it was the matrix, not the gains, that brought infinities or NaN."""
        fault = ~np.isfinite(self._operator.rows(block)).all(axis=1)
        if np.any(fault):
            raise ValueError(
                f"hebbian needs finite numbers; row {int(block[np.argmax(fault)])} of the matrix "
                "has NaN or infinity."
            )

    def _order(self, n_pass: int) -> NDArray[np.intp]:
        if self._orders is not None:
            return self._orders[n_pass - self._first]
        return np.random.default_rng([self._seed, 1, n_pass]).permutation(self._operator.shape[0])

    def _has_diverged(self, state: State, pass_start: State) -> bool:
        lengths = float(state.squared_lengths().max())
        if self._gains.automatic:
            return not lengths <= _GROWTH * max(1.0, float(pass_start.squared_lengths().max()))
        # where e^ρ is 0 its component is held for good wherever it has been thrown
        return not lengths < _BEYOND_ALL_BOUNDS or not np.all(np.exp(state.log_gains) > 0)

    def _undone(self, state: State, pending: dict[str, float]) -> Status | None:
        """Record that the pass from here diverged; halve the gains if they are ours to choose."""
        self._record(state, pending, diverged=True)
        if not self._gains.automatic or state.damping <= _MOST_DAMPING:
            return Status.DIVERGED
        state.damping /= 2
        _warn(f"Pass {state.n_passes + 1} diverged; it is repeated with half the gains.")
        return None

    def _record(self, state: State, pending: dict[str, float], *, diverged: bool) -> None:
        since = time.perf_counter()
        pairs, residuals = self._last = self._found(state)
        pending["estimate"] += time.perf_counter() - since
        decay = 1.0 / (1.0 + state.clock / self._gains.period)
        base = self._gains.of_pass(state.eigenvalues, state.damping)
        entry = {
            "n_pass": state.n_passes + diverged,
            "eigenvalues": pairs.values.tolist(),
            "gains": (np.exp(state.log_gains * self._gains.meta) * base * decay).tolist(),
            "max_residual": _relative(residuals, pairs.values),
            "clipped": pending["clipped"] / self._operator.shape[0],
            "diverged": diverged,
            "seconds": {phase: pending[phase] for phase in (*PHASES, "estimate")},
        }
        self._history.append(entry)

    def _found(self, state: State) -> tuple[Ritz, NDArray[np.float64]]:
        """Return the pairs that the run would end with here, and estimates of their residuals."""
        pairs = rayleigh_ritz(state) if self._polish else raw_pairs(state)
        rng = np.random.default_rng([self._seed, 2, state.n_passes])
        return pairs, estimate_residuals(self._operator, pairs, rng, self._block_size)

    def _status(self, state: State, n_passes: int) -> Status | None:
        """All stopping tests: tolerance and the number of passes."""
        last = self._history[-1] if self._history else None
        if last is not None and not last["diverged"] and last["max_residual"] <= self._tol:
            return Status.CONVERGED
        return Status.MAX_ITER if state.n_passes - self._first >= n_passes else None

    def _keep(
        self,
        state: State,
        pass_start: State | None,
        pending: dict[str, float],
        *,
        ended: Status | None = None,
    ) -> None:
        file = self._checkpoint
        if file is not None and (ended is not None or file.due(pass_ended=pass_start is None)):
            diverged = ended is Status.DIVERGED
            file.write(Saved(state, pass_start, self._seed, self._history, pending, diverged))

    def _result(self, state: State, status: Status) -> HebbianResult:
        pairs, residuals = self._found(state) if self._last is None else self._last
        dtype = self._operator.dtype
        return HebbianResult(
            coefficients=pairs.coefficients.astype(dtype),
            eigenvalues=pairs.values.astype(dtype),
            eigenvectors=np.ascontiguousarray(pairs.vectors.T, dtype=dtype),
            residuals=residuals.astype(dtype),
            n_passes=state.n_passes,
            ended=status.value,
            history=tuple(self._history),
            state=state,
            seed=self._seed,
        )


def _relative(residuals: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Return the largest residual in units of the largest eigenvalue; 0 for a zero matrix."""
    largest = float(np.abs(values).max())
    return float(residuals.max()) / largest if largest > 0 else 0.0


def _check_initial(initial: Any, r: int, n: int, gains: Gains) -> Any:
    """Return the coefficients or the result to start from, or None."""
    if isinstance(initial, HebbianResult):
        shape = (r * (1 + gains.meta), n)
        if initial.state.coefficients.shape != shape:
            raise ValueError(
                f"initial of hebbian is the result of another run: its coefficients have shape "
                f"{initial.state.coefficients.shape}, this run's {shape}. Go on with the same "
                "operator, n_components and gain."
            )
        return initial
    if initial is None:
        return None
    return check_coefficients(initial, r, n)


def _warn(message: str) -> None:
    warn_user(f"hebbian: {message}", ConvergenceWarning)
