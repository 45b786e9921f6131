"""Compute leading eigenpairs of the whole matrix with LAPACK."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from .._core.memory import format_bytes, parse_bytes
from .._core.status import Status
from .._core.threads import single_threaded_blas
from .._core.types import Array, Callback
from .pairs import Eigenpairs, Solver

# Up to this many rows, a second thread of LAPACK costs more than it saves.
_ONE_THREAD_ROWS = 400
# The same for products with this many entries of eigenvectors.
_ONE_THREAD_ENTRIES = 200_000


@dataclass(frozen=True)
class Dense(Solver):
    """LAPACK on the whole matrix: exact, O(n²) memory, O(n³) time.

    The residuals are not measured. They are set to a bound of the rounding error: n times the
    machine epsilon times the norm of the matrix. The norm is the largest sum of absolute values in
    a column.

    Parameters
    ----------
    memory_budget : str or number, optional
        Maximum memory of the matrix. By default, the memory is not checked.
    """

    memory_budget: str | float | None = None

    name = "dense"

    def check_memory(self, n: int, dtype: Any) -> None:
        """Raise if the whole matrix exceeds the budget; up to 8 MiB is always allowed."""
        needed = n * n * np.dtype(dtype).itemsize
        if self.memory_budget is None or needed <= max(parse_bytes(self.memory_budget), 2**23):
            return
        raise ValueError(
            f"The dense solver needs {format_bytes(needed)} for the whole {n} x {n} matrix, but "
            f"memory_budget is {format_bytes(parse_bytes(self.memory_budget))}. Use few "
            "components with solver='krylov', or raise memory_budget."
        )

    def solve(self, operator: Any, k: int, *, callback: Callback | None = None) -> Eigenpairs:
        """Return the k leading eigenpairs."""
        n = operator.shape[0]
        self.check_memory(n, operator.dtype)
        matrix = operator.toarray()
        # the 1-norm is an upper bound of the absolute values of the eigenvalues
        scale = float(scipy.linalg.norm(matrix, 1, check_finite=False))
        with single_threaded_blas() if n <= _ONE_THREAD_ROWS else nullcontext():
            found = _largest(matrix, k) if k < n else None
            if found is None:
                matrix = operator.toarray() if k < n else matrix
                found = scipy.linalg.eigh(
                    matrix, driver="evd", overwrite_a=True, check_finite=False
                )
        values, vectors = found
        values, vectors = values[: -k - 1 : -1], np.ascontiguousarray(vectors[:, : -k - 1 : -1])
        relative = n * np.finfo(values.dtype).eps
        entry = {"basis_size": n, "max_residual": float(relative)}
        if callback is not None:
            callback(entry)
        return Eigenpairs(
            values=np.ascontiguousarray(values),
            vectors=vectors,
            residuals=np.full(k, relative * scale, dtype=values.dtype),
            n_iter=1,
            status=Status.CONVERGED,
            solver=self.name,
            history=(entry,),
            smallest=float(values[-1]) if k == n else None,
        )


def _largest(matrix: Array, k: int) -> tuple[Array, Array] | None:
    """Return the k largest eigenvalues, ascending, with their vectors; overwrite the matrix.

    These are the steps of LAPACK's ``syevr``, but with ``stemr`` for the tridiagonal matrix:
    ``syevr`` computes a part of the eigenvalues by bisection, which takes twice as long. None is
    returned if LAPACK does not find all pairs.
    """
    n = len(matrix)
    sytrd, sytrd_lwork, ormqr = scipy.linalg.get_lapack_funcs(
        ("sytrd", "sytrd_lwork", "ormqr"), (matrix,)
    )
    lwork = int(sytrd_lwork(n, lower=1)[0])
    # the transpose of a symmetric matrix is itself, in the order of LAPACK
    reflectors, diagonal, off_diagonal, tau, _ = sytrd(
        matrix.T, lower=1, lwork=lwork, overwrite_a=1
    )
    try:
        values, vectors = scipy.linalg.eigh_tridiagonal(
            diagonal.astype(np.float64),  # stemr in float32 loses small eigenvalues
            off_diagonal.astype(np.float64),
            select="i",
            select_range=(n - k, n - 1),
            lapack_driver="stemr",
            check_finite=False,
        )
    except scipy.linalg.LinAlgError:
        return None
    if len(values) < k:
        return None
    values, vectors = values.astype(matrix.dtype), vectors.astype(matrix.dtype)
    with single_threaded_blas() if vectors.size <= _ONE_THREAD_ENTRIES else nullcontext():
        lwork = 512 * k  # enough for blocks of LAPACK's largest size
        vectors[1:] = ormqr("L", "N", reflectors[1:, :-1], tau, vectors[1:], lwork)[0]
        # stemr's vectors are orthonormal to about 1e-14; a step of Newton's iteration mends this
        excess = vectors.T @ vectors - np.eye(k)
        return values, vectors - vectors @ (excess / 2).astype(vectors.dtype)
