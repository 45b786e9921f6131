"""Checks of the arguments of the Kernel Hebbian Algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.checks import check_numbers
from .sweep import State

_N_SAMPLED = 32  # number of rows to check


def check_semidefinite(operator: Any) -> None:
    """Raise if the diagonal shows that a matrix is not finite or not semidefinite.

    Negative diagonal entries are not allowed, nor zeros in rows with nonzero entries. Other
    negative eigenvalues are detected when the components are orthonormalised.
    """
    diagonal = np.asarray(operator.diagonal(), dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(diagonal))
    if len(bad):
        raise ValueError(
            f"hebbian needs finite numbers; row {bad[0]} of the matrix has {diagonal[bad[0]]} "
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
    zero_diagonal = np.flatnonzero(diagonal <= rounding)
    if len(zero_diagonal):
        sample = zero_diagonal[_spaced(len(zero_diagonal))]
        rows = np.abs(operator.rows(sample)).max(axis=1)
        worst = int(np.argmax(rows))
        # |K_ij|² <= K_ii K_jj, up to rounding errors, which may be as large as the largest entry
        limit = max(allowed, np.sqrt(allowed) * np.sqrt(largest))
        if not rows[worst] <= max(limit, 4 * (rounding + np.sqrt(rounding) * np.sqrt(largest))):
            reason = f"row {sample[worst]} has 0 on the diagonal and an entry of {rows[worst]:g}"
            raise ValueError(_indefinite(reason))


def _indefinite(reason: str) -> str:
    return (
        f"hebbian needs a positive semidefinite matrix; {reason}. Use solver='krylov', which "
        "accepts any symmetric matrix."
    )


def _spaced(n: int) -> NDArray[np.intp]:
    """Return a few of n rows, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, _N_SAMPLED).astype(np.intp))


def check_same_matrix(state: State, operator: Any, what: str) -> None:
    """Raise if the products in a state do not belong to this matrix."""
    sample = _spaced(operator.shape[0])
    expected = state.coefficients @ np.asarray(operator.rows(sample), dtype=np.float64).T
    stored = state.projections[:, sample]
    allowed = (1e-6 if operator.dtype == np.float64 else 1e-2) * np.abs(state.projections).max()
    if not np.all(np.abs(expected - stored) <= allowed):
        raise ValueError(
            f"{what} on another matrix. Continue with the same data, kernel and weights, or start "
            "over."
        )


def check_order(order: Any, n_passes: int, n: int) -> NDArray[np.intp] | None:
    """Check an order of visits, with one row per pass; return it as integers, or None."""
    if order is None:
        return None
    indices = check_numbers(order, "order", "hebbian", dtype=None, ensure_min_samples=0)
    valid = indices.shape[0] >= n_passes and indices.shape[1] == n and indices.dtype.kind in "iu"
    if not valid or np.any((indices < 0) | (indices >= n)):
        raise ValueError(
            f"order of hebbian must hold integers from 0 to {n - 1} in {n_passes} rows (one per "
            f"pass) of {n}; got {indices.dtype} of shape {indices.shape}."
        )
    return indices.astype(np.intp)
