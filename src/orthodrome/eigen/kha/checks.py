"""Checks of the arguments of the Kernel Hebbian Algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.checks import check_numbers
from .sweep import State

_N_SAMPLED = 32  # rows that are compared


def check_semidefinite(operator: Any) -> None:
    """Raise if the diagonal of a matrix is not finite, or not that of a semidefinite one.

    Neither negative entries are allowed, nor zeros in rows with other entries. Other negative
    eigenvalues are detected when the components are orthonormalised.
    """
    diagonal = np.asarray(operator.diagonal(), dtype=np.float64)
    fault = np.flatnonzero(~np.isfinite(diagonal))
    if len(fault):
        raise ValueError(
            f"hebbian needs finite numbers; row {fault[0]} of the matrix has {diagonal[fault[0]]} "
            "on the diagonal."
        )
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
        raise ValueError(_indefinite(f"row {worst} has {diagonal[worst]:g} on the diagonal"))
    empty = np.flatnonzero(diagonal <= rounding)
    if len(empty):
        sample = empty[_spaced(len(empty))]
        rows = np.abs(operator.rows(sample)).max(axis=1)
        worst = int(np.argmax(rows))
        # |K_ij|² <= K_ii K_jj, each with its rounding, and the largest may be little more than that
        limit = max(allowed, np.sqrt(allowed) * np.sqrt(largest))
        if not rows[worst] <= max(limit, 4 * (rounding + np.sqrt(rounding) * np.sqrt(largest))):
            fact = f"row {sample[worst]} has 0 on the diagonal and an entry of {rows[worst]:g}"
            raise ValueError(_indefinite(fact))


def _indefinite(fact: str) -> str:
    return (
        f"hebbian needs a positive semidefinite matrix; {fact}. Take solver='krylov', which takes "
        "any symmetric matrix."
    )


def _spaced(n: int) -> NDArray[np.intp]:
    """Return a few of n rows, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, _N_SAMPLED).astype(np.intp))


def check_same_matrix(state: State, operator: Any, what: str) -> None:
    """Raise unless the products in a state are those with this matrix."""
    sample = _spaced(operator.shape[0])
    expected = state.coefficients @ np.asarray(operator.rows(sample), dtype=np.float64).T
    held = state.projections[:, sample]
    allowed = (1e-6 if operator.dtype == np.float64 else 1e-2) * np.abs(state.projections).max()
    if not np.all(np.abs(expected - held) <= allowed):
        raise ValueError(
            f"{what} on another matrix. Continue with the same data, kernel and weights, or start "
            "anew."
        )


def check_order(order: Any, n_passes: int, n: int) -> NDArray[np.intp] | None:
    """Return a valid order of visits, one row per pass, or None."""
    if order is None:
        return None
    indices = check_numbers(order, "order", "hebbian", dtype=None, ensure_min_samples=0)
    fits = indices.shape[0] >= n_passes and indices.shape[1] == n and indices.dtype.kind in "iu"
    if not fits or np.any((indices < 0) | (indices >= n)):
        raise ValueError(
            f"order of hebbian must hold integers from 0 to {n - 1} in {n_passes} rows (one per "
            f"pass) of {n}; got {indices.dtype} of shape {indices.shape}."
        )
    return indices.astype(np.intp)
