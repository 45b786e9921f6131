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
from .._core.types import Callback
from .pairs import Eigenpairs, Solver

# Up to this many rows, a second thread of LAPACK costs more than it saves.
_ONE_THREAD_ROWS = 600


@dataclass(frozen=True)
class Dense(Solver):
    """LAPACK's ``syevr`` on the whole matrix: exact, O(n²) memory, O(n³) time.

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
        fast = {"overwrite_a": True, "check_finite": False}
        if k < n:
            chosen = [n - k, n - 1]
            with single_threaded_blas() if n <= _ONE_THREAD_ROWS else nullcontext():
                values, vectors = scipy.linalg.eigh(matrix, subset_by_index=chosen, **fast)
            # LAPACK's bisection may return fewer than k eigenvalues if some are exactly equal, as
            # for a centred identity matrix; then compute all eigenvalues instead
            matrix = operator.toarray() if len(values) < k else None
        if matrix is not None:
            values, vectors = scipy.linalg.eigh(matrix, driver="evd", **fast)
            values, vectors = values[n - k :], vectors[:, n - k :]
        values, vectors = values[::-1], np.ascontiguousarray(vectors[:, ::-1])
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
