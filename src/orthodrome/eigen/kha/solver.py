"""The Kernel Hebbian Algorithm: a function, and a solver of :func:`~orthodrome.eigen.leading`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..._core.checks import (
    check_callback,
    check_columns,
    check_flag,
    check_integer,
    check_number,
    check_numbers,
    check_positive,
)
from ..._core.parameters import Check, choice, integer, optional, or_word, positive, seed
from ..._core.types import Array, Callback, Indices
from ...gram import DenseGram, GramOperator
from ..dense import Dense
from ..pairs import Eigenpairs, Solver, check_initial, complete_basis
from .run import HebbianResult, Run
from .starts import STARTS, start_from
from .sweep import GAINS, UPDATES

_DENSE_ROWS = 256  # rows per block, unless block_size is given
_DENSE_RATIO = 5  # LAPACK is used if n_rows < _DENSE_RATIO * n_components
_MAX_LENGTH = 1e75  # fourth powers of larger lengths overflow


@dataclass(frozen=True)
class Hebbian(Solver):
    r"""The Kernel Hebbian Algorithm: a rough solution after one or two passes over the matrix.

    The matrix must be positive semidefinite. If all rows fit in one block, or more than a fifth of
    all eigenpairs are wanted, LAPACK is used instead, without a checkpoint. It is then exact and
    cheaper.

    :class:`~orthodrome.eigen.Krylov` is faster. From the same start, it is more accurate after one
    product with the matrix than this solver after one pass.

    The random order of visits depends on the number of rows and on their positions in the data.
    Therefore two properties hold only up to `tol`: weights are equivalent to repeated rows, and
    the order of rows in the data does not matter.

    Parameters
    ----------
    gain : {"constant", "t", "et", "smd"}, default="et"
        The variant of the algorithm. "constant" (KHA): the same gain throughout. "t" (KHA/t):
        :math:`\eta_0\, l/(t+l)`, where l is the number of rows, and t counts the visits to rows.
        "et" (KHA/et): also divided by the estimated eigenvalue of each component (eq. 12, 13 of
        the paper). "smd" (KHA-SMD): stochastic meta-descent on the logarithms of those gains
        (eq. 16, 21).
    eta0 : float or "auto", default="auto"
        With a number η0, the gains are those of the paper. "auto" needs no tuning; see Notes.
    mu : float or "auto", default="auto"
        KHA-SMD: the gain of the log-gains.
    xi : float, default=0.99
        KHA-SMD: decay of the memory of past steps.
    rho0 : float or "auto", default="auto"
        KHA-SMD: initial logarithm ρ of the gains. "auto": 1 with a number for `eta0`, as in the
        paper, and 0 with automatic gains.
    eigenvalue_updates : {"auto", "pass", "block", "step"}, default="auto"
        When the eigenvalues in the gains (eq. 13) are estimated: at the start of each pass (§3 of
        the paper), every 64 samples, or at each sample (its Algorithm 1; several times slower).
        "auto": "block" for KHA/et with automatic gains, otherwise "pass".
    n_passes : int, default=50
        Maximum number of passes over the data.
    tol : float, default=1e-2
        Stop after a pass when the estimated residual ‖K'v - λv‖ of every pair that would be
        returned is at most tol times the largest eigenvalue.
    start : {"pilot", "orthonormal", "nystroem", "paper", "sparse"}, default="pilot"
        "pilot": the principal components within the span of a few points. "nystroem": the same
        with points drawn by randomly pivoted Cholesky. "orthonormal": random coefficients over a
        few points, orthonormal in feature space. "paper": random coefficients over all l points,
        drawn from N(0, 1/(rl)) for r components; this start costs a product with the matrix.
        "sparse": random coefficients over a few points.
    block_size : int, optional
        Samples per block; the iterates do not depend on it, except for rounding errors. Default:
        256, or as many rows of K' as fit in 256 MiB, but at least 32.
    checkpoint : str or path, optional
        File to which the state is written after each pass. If the file exists, the same call
        continues from it and gives the same result as an uninterrupted run; a file for other data,
        kernel or parameters raises a ValueError. (`n_passes` and `tol` may differ, to extend a
        finished run.)
    random_state : int, RandomState, Generator or None
        Source of the start and of the order of visits.
    initial : ndarray of shape (n, m), "nystroem" or HebbianResult, optional
        Approximate eigenvectors to start from, or the result of a run to continue; "nystroem" is
        equivalent to ``start="nystroem"``.
    memory_budget : str or number, optional
        Maximum memory for the rows of a block (at most 256 MiB), and for the whole matrix if LAPACK
        is used. Default: not checked.

    Notes
    -----
    Automatic gains: :math:`\eta_i = \min(10/\lambda_i, 2/\bar k_i) \cdot l/(t+l)`, where
    :math:`\bar k_i` is the mean :math:`\bar k` of k'(x, x) minus the contribution of the components
    before the i-th. At each sample all gains are scaled down until :math:`\max_i D_i \sum_{j \le i}
    y_j^2 \le 1`, with :math:`D_i = e^{\rho_i} \eta_i` and the coordinates y of the sample (see
    :func:`hebbian`). KHA/et with ``eigenvalue_updates="block"`` uses :math:`9/\lambda_i` instead of
    :math:`10/\lambda_i`, and sorts the components every 64 samples by :math:`\|A_i K'\|`, the
    spread of the data along them, so that no component displaces a later one. KHA/t uses a fraction
    of the largest of these gains for all components; KHA does the same without decay. KHA-SMD
    starts from :math:`\rho = 0` with :math:`\mu = 0.2/\bar k`, which decays like the gains, and
    keeps :math:`|\rho| \le 1.5`. A good start needs smaller gains. Good starts are "pilot",
    "nystroem", and an `initial` that is better than a random start. For these, t does not start at
    0 but at the equivalent of 3 to 1000 passes: the smaller the residual of the start, the larger
    the first t. Results do not depend on the scale of the kernel. If a pass diverges, it is undone
    and repeated with half the gains, with a warning. With a number for `eta0`, a run that diverges
    ends after the last good pass.

    References
    ----------
    Schraudolph, Günter and Vishwanathan, "Fast Iterative Kernel PCA", NIPS 2006 ("the paper").
    """

    gain: str = "et"
    eta0: float | str = "auto"
    mu: float | str = "auto"
    xi: float = 0.99
    rho0: float | str = "auto"
    eigenvalue_updates: str = "auto"
    n_passes: int = 50
    tol: float = 1e-2
    start: str = "pilot"
    block_size: int | None = None
    checkpoint: Any = None
    random_state: Any = None
    initial: Any = None
    memory_budget: str | float | None = None

    name = "hebbian"
    _PARAMETERS: ClassVar[dict[str, Check]] = {
        "gain": choice(*GAINS),
        "eta0": or_word("auto", positive()),
        "mu": or_word("auto", positive(or_zero=True)),
        "xi": partial(check_positive, or_zero=True, maximum=1.0),
        "rho0": or_word("auto", check_number),
        "eigenvalue_updates": choice("auto", *UPDATES),
        "n_passes": integer(),
        "tol": positive(or_zero=True),
        "start": choice(*STARTS),
        "block_size": optional(integer()),
        "random_state": seed,
        "initial": check_initial,
    }

    def updates(self) -> str:
        """Return when eigenvalues are estimated, "pass", "block" or "step"."""
        if self.eigenvalue_updates != "auto":
            return self.eigenvalue_updates
        return "block" if self.gain == "et" and isinstance(self.eta0, str) else "pass"

    def for_size(self, n: int, k: int) -> Hebbian | Dense:
        """Return this solver, or LAPACK if the n x n matrix is small or k is large."""
        small = n <= (self.block_size or _DENSE_ROWS) or k * _DENSE_RATIO > n
        return Dense(self.memory_budget) if small else self

    def solve(self, operator: Any, k: int, *, callback: Callback | None = None) -> Eigenpairs:
        """Return the k leading eigenpairs."""
        solver = self.for_size(operator.shape[0], k)
        if isinstance(solver, Dense):
            return solver.solve(operator, k, callback=callback)
        settings = replace(self, start=self.initial) if isinstance(self.initial, str) else self
        given = self._initial(operator, k)
        found = Run(settings, operator, k, given, self.n_passes, callback=callback).result()
        rank = int(np.count_nonzero(found.eigenvalues > 0))
        return Eigenpairs(
            values=found.eigenvalues,
            vectors=complete_basis(found.eigenvectors[:, :rank], k),
            residuals=found.residuals,
            n_iter=found.n_passes,
            status=found.status,
            solver=self.name,
            history=found.history,
            coefficients=np.ascontiguousarray(found.coefficients.T),
            resume=found,
        )

    def _initial(self, operator: Any, k: int) -> Array | HebbianResult | None:
        """Return the coefficients or the result to start from, or None."""
        given, n = self.initial, operator.shape[0]
        if given is None or isinstance(given, str):
            return None
        if isinstance(given, HebbianResult):
            if given.state.coefficients.shape == _state_shape(k, n, self.gain):
                return given
            given = given.eigenvectors
        vectors = check_columns(given, n, "initial", "the hebbian solver")
        vectors = check_numbers(vectors, "initial", "the hebbian solver", ensure_min_features=0)
        start = np.random.default_rng(0).standard_normal((k, n)) / n
        start[: min(k, vectors.shape[1])] = vectors.T[:k]
        return start_from(operator, start, orthonormal=True)[0]


def _state_shape(r: int, n: int, gain: str) -> tuple[int, int]:
    """Return the shape of the coefficients in the state of a run."""
    return (2 * r if gain == "smd" else r), n


def hebbian(
    operator: Any,
    n_components: int,
    *,
    n_passes: int = 50,
    initial: ArrayLike | HebbianResult | None = None,
    order: ArrayLike | None = None,
    polish: bool = True,
    callback: Callback | None = None,
    **options: Any,
) -> HebbianResult:
    r"""Find leading eigenvectors with the Kernel Hebbian Algorithm (KHA) or its variants.

    The components :math:`w = A\Phi'` follow Sanger's rule in feature space (eq. 8, 11, 15),

    .. math:: A \leftarrow A + \operatorname{diag}(e^{\rho}\eta)
        \bigl[y e_i^\top - \operatorname{lt}(y y^\top) A\bigr], \qquad y = A k'_i ,

    where lt keeps the lower triangle. The updates are exactly those of the paper, sample by
    sample, but are computed in blocks with matrix products.

    One or two passes over K' give a rough solution, with O(r l) memory. For accuracy and speed,
    use :class:`~orthodrome.eigen.Krylov`, which needs fewer passes over K'.

    Parameters
    ----------
    operator : GramOperator or array-like of shape (l, l)
        K', symmetric and positive semidefinite: a :class:`~orthodrome.gram.Centered` matrix for
        kernel PCA, a :class:`~orthodrome.gram.Tangent` one for kernel PGA. Each pass reads every
        row once.
    n_components : int
        Number of components, r, at most l. Components beyond the rank of K' are zeros.
    n_passes : int, default=50
        Maximum number of passes over the data in this call; 0 returns the start.
    initial : ndarray of shape (r, l) or HebbianResult, optional
        Initial coefficients, used instead of `start`, or the result of a run to continue.
    order : array-like of int of shape (n_passes, l), optional
        Order in which samples are visited. A run that continues from a checkpoint needs the order
        of the first run. Default: a random permutation for each pass.
    polish : bool, default=True
        End with a Rayleigh-Ritz step within the span of the components.
    callback : callable, optional
        Called with each entry of the history as it is made.
    **options
        Other parameters of :class:`~orthodrome.eigen.Hebbian`: gains, start, tolerance, block
        size, checkpoint file and seed.

    Returns
    -------
    HebbianResult
        Coefficients, eigenvalues, eigenvectors, estimated residuals, status, history.

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
    settings, n = Hebbian(**options), operator.shape[0]
    check_integer(n_passes, "n_passes", "hebbian", minimum=0)
    r = check_integer(n_components, "n_components", "hebbian", maximum=n)
    check_flag(polish, "polish", "hebbian")
    check_callback(callback, "hebbian")
    given = _checked_initial(initial, r, settings.gain, operator)
    orders = _check_order(order, n_passes, n)
    return Run(settings, operator, r, given, n_passes, orders, polish, callback).result()


def _checked_initial(initial: Any, r: int, gain: str, operator: Any) -> Any:
    """Return the coefficients or the result to start from, or None."""
    n = operator.shape[0]
    if initial is None:
        return None
    if isinstance(initial, HebbianResult):
        found, shape = initial.state.coefficients.shape, _state_shape(r, n, gain)
        if found != shape:
            raise ValueError(
                f"initial of hebbian is the result of another run: its coefficients have shape "
                f"{found}, this run's {shape}. Use the same operator, n_components and gain."
            )
        return initial
    A = check_numbers(initial, "initial", "hebbian", dtype=np.float64)
    if A.shape != (r, n):
        raise ValueError(
            f"initial of hebbian must be an array of shape ({r}, {n}), one row of coefficients per "
            f"component; got {A.shape}."
        )
    with np.errstate(over="ignore"):
        length = float(np.abs(A).sum(axis=1).max() * np.abs(operator.diagonal()).max() ** 0.5)
    if not length <= _MAX_LENGTH:
        raise ValueError(
            f"initial of hebbian has a component of length {length:.2g}, whose fourth power "
            f"overflows. Divide the coefficients by {length:.2g}."
        )
    return A


def _check_order(order: Any, n_passes: int, n: int) -> Indices | None:
    """Check an order of visits, with one row per pass; return it as integers, or None."""
    if order is None:
        return None
    indices = check_numbers(order, "order", "hebbian", dtype=None, ensure_min_samples=0)
    valid = indices.shape[0] >= n_passes and indices.shape[1] == n and indices.dtype.kind in "iu"
    if not valid or np.any((indices < 0) | (indices >= n)):
        raise ValueError(
            f"order of hebbian must hold integers from 0 to {n - 1}, in an array of shape "
            f"({n_passes}, {n}); got {indices.dtype} of shape {indices.shape}."
        )
    return indices.astype(np.intp)
