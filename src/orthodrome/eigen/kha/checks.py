"""What the Kernel Hebbian Algorithm is given: the matrix, where to start, in which order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.checks import refuse_masked
from .sweep import State

__all__ = [
    "check_coefficients",
    "check_lengths",
    "check_order",
    "check_same_matrix",
    "check_semidefinite",
]

_N_SAMPLED = 32  # rows that stand for all
_LARGEST = 1e75  # fourth powers of what is larger overflow


def check_semidefinite(operator: Any) -> None:
    """Raise where the diagonal says that a matrix is not positive semidefinite, or not finite.

    A negative entry says so, and so does a zero beside entries of its row that are none. What else
    there may be of negative eigenvalues is seen where the components are made orthonormal.
    """
    diagonal = np.asarray(operator.diagonal(), dtype=np.float64)
    fault = np.flatnonzero(~np.isfinite(diagonal))
    if len(fault):
        raise ValueError(
            f"hebbian needs finite numbers; row {fault[0]} of the matrix has {diagonal[fault[0]]} "
            "on the diagonal."
        )
    largest = float(np.abs(diagonal).max())
    eps = float(np.finfo(operator.dtype).eps)
    if 0 < largest < float(np.finfo(operator.dtype).tiny) / eps:
        raise ValueError(
            f"The diagonal of the matrix is at most {largest:g}, so small that hebbian would lose "
            "it to underflow; rescale the data or the kernel."
        )
    allowed = max(operator.rounding(), np.sqrt(eps) * largest)
    worst = int(np.argmin(diagonal))
    if diagonal[worst] < -allowed:
        raise ValueError(_indefinite(f"row {worst} has {diagonal[worst]:g} on the diagonal"))
    empty = np.flatnonzero(diagonal <= operator.rounding())
    if len(empty):
        sample = empty[np.unique(np.linspace(0, len(empty) - 1, _N_SAMPLED).astype(np.intp))]
        rows = np.abs(operator.rows(sample)).max(axis=1)
        worst = int(np.argmax(rows))
        # |K_ij|² <= K_ii K_jj, each with its rounding, and the largest may be little more than that
        rounding = operator.rounding()
        limit = max(allowed, np.sqrt(allowed) * np.sqrt(largest))
        if not rows[worst] <= max(limit, 4 * (rounding + np.sqrt(rounding) * np.sqrt(largest))):
            raise ValueError(
                _indefinite(f"row {sample[worst]} has 0 on the diagonal and {rows[worst]:g} beside")
            )


def _indefinite(fact: str) -> str:
    return (
        f"hebbian needs a positive semidefinite matrix; {fact}. Take solver='krylov', which takes "
        "any symmetric matrix."
    )


def check_coefficients(initial: Any, r: int, n: int) -> NDArray[np.float64]:
    """Return the coefficients to start from, shape (r, n)."""
    refuse_masked(initial, "initial", "hebbian")
    A = _as_array(initial)
    if A.shape != (r, n) or A.dtype.kind not in "fiu":
        raise ValueError(
            f"initial of hebbian must be an array of real numbers of shape ({r}, {n}), one row of "
            f"coefficients per component; got {A.dtype} of shape {A.shape}."
        )
    if not np.all(np.isfinite(A)):
        row, column = np.argwhere(~np.isfinite(A))[0]
        raise ValueError(f"initial of hebbian has {A[row, column]} at ({row}, {column}).")
    return A.astype(np.float64)


def check_lengths(A: NDArray[np.float64], diagonal: NDArray[Any]) -> None:
    """Raise where coefficients to start from are too large for a matrix with this diagonal."""
    with np.errstate(over="ignore"):
        length = float(np.abs(A).sum(axis=1).max()) * float(np.abs(diagonal).max()) ** 0.5
    if not length <= _LARGEST:
        raise ValueError(
            f"initial of hebbian has components of length {length:.2g}, the powers of which "
            "overflow; divide the coefficients so that they have length 1."
        )


def _as_array(values: Any) -> NDArray[Any]:
    """Return an array; of lists of unlike lengths one that fits nothing."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.array("lists of unlike lengths", dtype=object)


def check_same_matrix(state: State, operator: Any, what: str) -> None:
    """Raise unless the products with K' that a state holds are those with this matrix."""
    n = operator.shape[0]
    sample = np.unique(np.linspace(0, n - 1, _N_SAMPLED).astype(np.intp))
    expected = state.coefficients @ np.asarray(operator.rows(sample), dtype=np.float64).T
    held = state.projections[:, sample]
    allowed = (1e-6 if operator.dtype == np.float64 else 1e-2) * np.abs(state.projections).max()
    if not np.all(np.abs(expected - held) <= allowed):
        raise ValueError(
            f"{what} on another matrix. Go on with the same data, kernel and weights, or start "
            "anew."
        )


def check_order(order: Any, n_passes: int, n: int) -> NDArray[np.intp] | None:
    """Return the samples in the order of their visits, one row per pass."""
    if order is None:
        return None
    refuse_masked(order, "order", "hebbian")
    indices = _as_array(order)
    fits = indices.ndim == 2 and indices.shape[0] >= n_passes and indices.shape[1] == n
    if not fits or indices.dtype.kind not in "iu" or np.any((indices < 0) | (indices >= n)):
        raise ValueError(
            f"order of hebbian must hold integers from 0 to {n - 1} in {n_passes} rows (one per "
            f"pass) of {n}; got {indices.dtype} of shape {indices.shape}."
        )
    return indices.astype(np.intp)
