"""Leading eigenpairs by LAPACK, from the whole matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from .._core.status import Status
from .pairs import Eigenpairs

__all__ = ["Dense"]


@dataclass(frozen=True)
class Dense:
    """LAPACK's ``syevr`` on the matrix in full: exact, O(n²) memory, O(n³) time.

    It reports residuals of the size of rounding, n times the machine epsilon times the largest
    eigenvalue, rather than spend a further product on measuring them.
    """

    name = "dense"

    def solve(
        self, operator: Any, k: int, *, callback: Callable[[dict[str, Any]], None] | None = None
    ) -> Eigenpairs:
        """Return the k leading eigenpairs."""
        n = operator.shape[0]
        matrix = operator.toarray()
        values, vectors = scipy.linalg.eigh(
            matrix,
            subset_by_index=None if k == n else [n - k, n - 1],
            driver="evd" if k == n else "evr",
            overwrite_a=True,
            check_finite=False,
        )
        values, vectors = values[::-1], np.ascontiguousarray(vectors[:, ::-1])
        scale = max(abs(values[0]), np.finfo(values.dtype).tiny)
        rounding = n * np.finfo(values.dtype).eps
        entry = {"basis_size": n, "max_residual": float(rounding)}
        if callback is not None:
            callback(entry)
        return Eigenpairs(
            values=np.ascontiguousarray(values),
            vectors=vectors,
            residuals=np.full(k, rounding * scale, dtype=values.dtype),
            n_iter=1,
            status=Status.CONVERGED,
            solver=self.name,
            history=(entry,),
        )
