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
from .._core.types import Array, Callback, Floats
from .pairs import Eigenpairs, Solver

# Up to this many rows, a second thread of LAPACK costs more than it saves.
_ONE_THREAD_ROWS = 400
# The same for products with this many entries of eigenvectors.
_ONE_THREAD_ENTRIES = 200_000
# Number of columns that LAPACK reduces at once; the smaller one up to _ONE_THREAD_ROWS rows.
_SMALL_BLOCK, _BLOCK = 8, 32
# Besides two for each pair, the number of first rows of a tridiagonal matrix that often suffice.
# They are doubled, if necessary, up to this fraction of all rows.
_FIRST_ROWS, _MAX_FRACTION = 32, 0.7
_EPS = float(np.finfo(np.float64).eps)


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
            found = largest_pairs(matrix, k) if k < n else None
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


def largest_pairs(matrix: Array, k: int) -> tuple[Array, Array] | None:
    """Return the k largest eigenvalues, ascending, with their vectors; overwrite the matrix.

    These are the steps of LAPACK's ``syevr``, but with :func:`_largest_tridiagonal` for the
    tridiagonal matrix. None is returned if LAPACK does not find all pairs.
    """
    n = len(matrix)
    sytrd, ormqr = scipy.linalg.get_lapack_funcs(("sytrd", "ormqr"), (matrix,))
    block = _SMALL_BLOCK if n <= _ONE_THREAD_ROWS else _BLOCK
    # the transpose of a symmetric matrix is itself, in the order of LAPACK
    reflectors, diagonal, off_diagonal, tau, _ = sytrd(
        matrix.T, lower=1, lwork=block * n, overwrite_a=1
    )
    try:
        # stemr in float32 loses small eigenvalues
        values, leading = _largest_tridiagonal(
            diagonal.astype(np.float64), off_diagonal.astype(np.float64), k
        )
    except scipy.linalg.LinAlgError:
        return None
    if len(values) < k:
        return None
    m = len(leading)
    values, vectors = values.astype(matrix.dtype), np.zeros((n, k), matrix.dtype, order="F")
    vectors[:m] = leading
    with single_threaded_blas() if vectors.size <= _ONE_THREAD_ENTRIES else nullcontext():
        # one reflector at a time for few vectors, else blocks of LAPACK's largest size
        lwork = k if k <= _BLOCK else 512 * k
        # the other reflectors change only rows that are 0
        used = reflectors[1:, : m - 1], tau[: m - 1]
        vectors[1:] = ormqr("L", "N", *used, vectors[1:], lwork)[0]
        # stemr's vectors are orthonormal to about 1e-14; a step of Newton's iteration mends this
        excess = vectors.T @ vectors - np.eye(k)
        return values, vectors - vectors @ (excess / 2).astype(vectors.dtype)


def _largest_tridiagonal(diagonal: Floats, off_diagonal: Floats, k: int) -> tuple[Floats, Floats]:
    """Return the k largest eigenpairs of a tridiagonal matrix, ascending, with ``stemr``.

    ``syevr`` computes a part of the eigenvalues by bisection, which takes twice as long. The
    tridiagonal matrix is that of Lanczos' method. If the spectrum decays, its first rows suffice:
    the last entries of their eigenvectors bound the residuals, and a Sturm count of the whole
    matrix shows whether other eigenvalues are as large. The vectors are then returned without the
    other rows, which are 0.
    """
    n = len(diagonal)
    m = 2 * k + _FIRST_ROWS
    while True:
        m = m if m < _MAX_FRACTION * n else n
        values, vectors = scipy.linalg.eigh_tridiagonal(
            diagonal[:m],
            off_diagonal[: m - 1],
            select="i",
            select_range=(m - k, m - 1),
            lapack_driver="stemr",
            check_finite=False,
        )
        if m == n or len(values) < k:
            return values, vectors
        error = _EPS * abs(values[-1])
        converged = np.abs(off_diagonal[m - 1] * vectors[-1]).max() <= error
        if converged and _count_above(values[0] - 4 * error, diagonal, off_diagonal) == k:
            return values, vectors
        m *= 2


def _count_above(bound: float, diagonal: Floats, off_diagonal: Floats) -> int:
    """Return how many eigenvalues of a tridiagonal matrix are larger than a bound."""
    top = abs(bound) + np.abs(diagonal).max() + 2 * np.abs(off_diagonal).max()
    if not bound < top:  # only for a matrix of zeros
        return 0
    # stebz counts by Sturm sequences; with this tolerance it stops before the bisection
    count, *_ = scipy.linalg.lapack.dstebz(
        diagonal, off_diagonal, 1, bound, top, 1, 1, 4 * top, b"B"
    )
    return int(count)
