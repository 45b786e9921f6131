"""The Kernel Hebbian Algorithm as a solver of :func:`~orthodrome.eigen.leading`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..._core.checks import (
    check_choice,
    check_columns,
    check_integer,
    check_positive,
    check_random_state,
)
from ..dense import Dense
from ..pairs import Eigenpairs
from .gains import GAINS
from .run import HebbianResult, hebbian
from .starts import STARTS, start_from
from .sweep import resolve_block_size

__all__ = ["Hebbian"]

_DENSE_ROWS = 256  # a block, unless another size is asked for
_DENSE_SHARE = 5  # beyond one pair in so many rows the matrix is LAPACK's


@dataclass(frozen=True)
class Hebbian:
    """The Kernel Hebbian Algorithm: a usable answer after a pass or two over the matrix.

    Parameters are those of :func:`~orthodrome.eigen.hebbian`, with a pilot as the default start.
    The matrix must be positive semidefinite. Where one block holds all rows, or the pairs are more
    than a fifth of them, LAPACK is exact and cheaper, and is used instead; no checkpoint is then
    written.

    For speed take :class:`~orthodrome.eigen.Krylov`: from the same pilot, as its ``initial``, it is
    more accurate even after a single product with the matrix (experiments/kha/starts.md).

    The samples are visited in an order that depends on their number and place: weights are
    repetition, and the order of rows means nothing, only up to `tol`.

    Parameters
    ----------
    gain, eta0, mu, xi, n_passes, tol, start, block_size, checkpoint, checkpoint_seconds
        As in :func:`~orthodrome.eigen.hebbian`.
    random_state : int, RandomState, Generator or None
        Source of the start and the orders.
    initial : ndarray of shape (n, m), "nystroem" or HebbianResult, optional
        Approximate eigenvectors to start from, or a run to go on with; "nystroem" is
        ``start="nystroem"``, by the name that other solvers have for it.
    memory_budget : str or number, optional
        What the rows of a block may take, 256 MiB at the most; and the whole matrix where LAPACK is
        used instead. Default: not checked.
    """

    gain: str = "et"
    eta0: float | str = "auto"
    mu: float | str = "auto"
    xi: float = 0.99
    n_passes: int = 50
    tol: float = 1e-2
    start: str = "pilot"
    block_size: int | None = None
    checkpoint: Any = None
    checkpoint_seconds: float | None = None
    random_state: Any = None
    initial: Any = None
    memory_budget: str | float | None = None

    name = "hebbian"

    def __post_init__(self) -> None:
        check_choice(self.gain, GAINS, "gain", "the hebbian solver")
        check_choice(self.start, STARTS, "start", "the hebbian solver")
        check_integer(self.n_passes, "n_passes", "the hebbian solver")
        if self.block_size is not None:
            check_integer(self.block_size, "block_size", "the hebbian solver")
        check_positive(self.tol, "tol", "the hebbian solver", or_zero=True)
        check_random_state(self.random_state, "the hebbian solver")
        if isinstance(self.initial, str):
            check_choice(self.initial, ("nystroem",), "initial", "the hebbian solver")

    def for_size(self, n: int, k: int) -> Hebbian | Dense:
        """Return what runs for k pairs of an n x n matrix: this solver, or LAPACK if small."""
        small = n <= (self.block_size or _DENSE_ROWS) or k * _DENSE_SHARE > n
        return Dense(self.memory_budget) if small else self

    def solve(
        self, operator: Any, k: int, *, callback: Callable[[dict[str, Any]], None] | None = None
    ) -> Eigenpairs:
        """Return the k leading eigenpairs."""
        stand_in = self.for_size(operator.shape[0], k)
        if isinstance(stand_in, Dense):
            return stand_in.solve(operator, k, callback=callback)
        found = hebbian(
            operator,
            k,
            gain=self.gain,
            eta0=self.eta0,
            mu=self.mu,
            xi=self.xi,
            n_passes=self.n_passes,
            tol=self.tol,
            start=self.initial if isinstance(self.initial, str) else self.start,
            initial=self._initial(operator, k),
            block_size=resolve_block_size(self.block_size, operator, self.memory_budget),
            checkpoint=self.checkpoint,
            checkpoint_seconds=self.checkpoint_seconds,
            callback=callback,
            random_state=self.random_state,
        )
        return Eigenpairs(
            values=found.eigenvalues,
            vectors=_completed(found.eigenvectors, found.eigenvalues > 0),
            residuals=found.residuals,
            n_iter=found.n_passes,
            status=found.status,
            solver=self.name,
            history=found.history,
            coefficients=np.ascontiguousarray(found.coefficients.T),
            resume=found,
        )

    def _initial(self, operator: Any, k: int) -> NDArray[Any] | HebbianResult | None:
        """Return what :func:`hebbian` starts from, if anything is given."""
        given, n = self.initial, operator.shape[0]
        if given is None or isinstance(given, str):
            return None
        if self._goes_on(given, k, n):
            return given
        vectors = given.eigenvectors if isinstance(given, HebbianResult) else given
        vectors = check_columns(vectors, n, "initial", "the hebbian solver")
        start = np.random.default_rng(0).standard_normal((k, n)) / n
        start[: min(k, vectors.shape[1])] = vectors.T[:k]
        return start_from(operator, start, orthonormal=True)[0]

    def _goes_on(self, given: Any, k: int, n: int) -> bool:
        shape = (k * (2 if self.gain == "smd" else 1), n)
        return isinstance(given, HebbianResult) and given.state.coefficients.shape == shape


def _completed(vectors: NDArray[Any], found: NDArray[np.bool_]) -> NDArray[Any]:
    """Fill the columns that are not found, beyond the rank, with vectors orthogonal to the rest."""
    if np.all(found):
        return vectors
    missing = int(np.count_nonzero(~found))
    fresh = np.random.default_rng(0).standard_normal((len(vectors), missing))
    basis = scipy.linalg.qr(np.hstack([vectors[:, found], fresh]), mode="economic")[0]
    vectors = vectors.copy()
    vectors[:, ~found] = basis[:, len(found) - missing :]
    return vectors
