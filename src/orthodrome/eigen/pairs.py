"""The base class of the eigensolvers, and their result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from .._core.checks import check_choice
from .._core.parameters import Check
from .._core.status import Outcome, Status
from .._core.types import Array, Floats


@dataclass(frozen=True)
class Solver:
    """Base of the frozen solver objects; `_PARAMETERS` gives the check of each parameter."""

    name: ClassVar[str]
    _PARAMETERS: ClassVar[dict[str, Check]] = {}

    def __post_init__(self) -> None:
        for name, check in self._PARAMETERS.items():
            check(getattr(self, name), name, f"the {self.name} solver")


def check_initial(value: Any, name: str, owner: str) -> None:
    """Raise if a string is not "nystroem"; other values are checked when used."""
    if isinstance(value, str):
        check_choice(value, ("nystroem",), name, owner)


@dataclass(frozen=True)
class Eigenpairs(Outcome):
    """Leading eigenpairs of a symmetric operator, largest eigenvalue first.

    Attributes
    ----------
    values : ndarray of shape (k,)
        Eigenvalues, descending.
    vectors : ndarray of shape (n, k)
        Orthonormal eigenvectors in columns.
    residuals : ndarray of shape (k,)
        ‖K v - λ v‖ for each pair (estimated by hebbian). The error of an eigenvalue is at most its
        residual. If a gap separates it from the others, the error is at most residual² / gap.
    n_iter : int
        Products of the operator with a block of vectors (1 for the dense solver), or passes over
        its rows (hebbian).
    status : Status
        How the iteration ended; ``status.advice`` says what to do.
    solver : str
        The solver that ran.
    history : tuple of dict
        One entry per iteration: ``max_residual``, relative to the largest eigenvalue in modulus,
        and diagnostics of the solver.
    coefficients : ndarray of shape (n, k) or None
        Coefficients of the unit-length components over the points, if the solver computes them. K
        times the coefficients equals √λ times the vectors. If None, the coefficients are the
        vectors divided by √λ.
    resume : object or None
        State from which to continue, for the parameter ``initial``.
    smallest : float or None
        The smallest Ritz value that the solver computed, an upper bound of the smallest
        eigenvalue. None if it computed only the leading ones.
    """

    values: Array
    vectors: Array
    residuals: Array
    n_iter: int
    status: Status
    solver: str
    history: tuple[dict[str, Any], ...] = field(default=())
    coefficients: Array | None = None
    resume: Any = None
    smallest: float | None = None

    def first(self, count: int) -> Eigenpairs:
        """Return the first `count` pairs, with the same diagnostics."""
        coefficients = self.coefficients
        return replace(
            self,
            values=self.values[:count],
            vectors=np.ascontiguousarray(self.vectors[:, :count]),
            residuals=self.residuals[:count],
            coefficients=None if coefficients is None else coefficients[:, :count].copy(),
        )


def complete_basis(vectors: Array, k: int) -> Array:
    """Return the first k of the orthonormal columns; add random ones if there are fewer."""
    n, rank = vectors.shape
    if k <= rank:
        return vectors[:, :k]
    fresh = np.random.default_rng(0).standard_normal((n, k - rank))
    basis = scipy.linalg.qr(np.hstack([vectors, fresh]), mode="economic")[0]
    return np.hstack([vectors, basis[:, rank:]]).astype(vectors.dtype, copy=False)


def orient(embedding: Array, weights: Array | None = None) -> Floats:
    """Choose the sign of each column so that its weighted third moment is positive.

    Weights count as repetitions. If the moment is 0 within rounding error (a column symmetric
    about 0), the sign is chosen so that the entry with the largest absolute value is positive. If
    there are ties, the first of these entries is used.

    Returns
    -------
    ndarray of shape (k,)
        Signs, 1 or -1.

    Examples
    --------
    >>> orient(np.array([[1.0, -3.0], [-0.5, 1.0], [-0.5, 2.0]]))
    array([ 1., -1.])
    """
    columns = np.asarray(embedding, dtype=np.float64)
    if weights is not None:  # rows of weight 0 do not count
        columns, weights = columns[weights > 0], weights[weights > 0]
    scale = np.abs(columns).max(axis=0, initial=0.0)
    columns = columns / np.where(scale > 0, scale, 1.0)  # cubes neither overflow nor underflow
    cubes = columns * columns * columns  # faster than a power
    if weights is not None:
        cubes = cubes * weights[:, None]
    moments = cubes.sum(axis=0)
    unclear = np.abs(moments) <= 1e-7 * np.abs(cubes).sum(axis=0)
    if not unclear.any():
        return np.where(moments < 0, -1.0, 1.0)
    largest = columns[np.argmax(np.abs(columns) > 1 - 1e-7, axis=0), np.arange(columns.shape[1])]
    return np.where(np.where(unclear, largest, moments) < 0, -1.0, 1.0)


def orient_by_moments(moments: Floats, sizes: Floats, *, fallback: Array) -> Floats:
    """Choose signs as :func:`orient` does, from the third moments of the columns.

    `sizes` are the third absolute moments. If a moment is 0 within rounding error, the sign is
    that of :func:`orient` for a few rows, `fallback`.

    Examples
    --------
    >>> few = np.array([[1.0, -1.0]])
    >>> orient_by_moments(np.array([-2.0, 0.0]), np.array([3.0, 3.0]), fallback=few)
    array([-1., -1.])
    """
    unclear = np.abs(moments) <= 1e-7 * sizes
    return np.where(unclear, orient(fallback), np.where(moments < 0, -1.0, 1.0))
