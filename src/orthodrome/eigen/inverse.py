"""Leading eigenpairs of a sparse matrix from its shifted inverse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, splu

from .._core.status import Status
from .._core.types import Array
from .krylov import Krylov
from .pairs import Eigenpairs

# The shift lies above the upper bound of the eigenvalues by this much. For graphs, the eigenvalues
# span a range of at most 2.
_DISTANCE = 1e-5


class _Inverse(LinearOperator):
    """The inverse of a sparse symmetric matrix, from its LU factors."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(np.dtype(np.float64), matrix.shape)
        symmetric = {"SymmetricMode": True}  # keeps the factors sparse
        self._factors = splu(
            matrix.tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric
        )

    def _matmat(self, V: Array) -> Array:
        return self._factors.solve(np.asarray(V, dtype=np.float64))

    def toarray(self) -> Array:
        """Return the inverse."""
        return self._matmat(np.eye(self.shape[0]))


def leading_by_inverse(
    matrix: Any,
    bound: float,
    k: int,
    *,
    tol: float,
    random_state: Any = None,
) -> Eigenpairs:
    r"""Compute the k largest eigenpairs of a sparse symmetric matrix A by shift and invert.

    Let σ be a little above `bound`, an upper bound of the eigenvalues λ of A. The inverse
    :math:`(\sigma I - A)^{-1}` has the same eigenvectors, with eigenvalues
    :math:`\theta = 1 / (\sigma - \lambda)`. The largest λ may be very close to each other, as for
    graphs of long thin clusters, but the corresponding θ are far apart, so that a Krylov method
    finds them. The LU factors of such graphs are sparse.
    """
    shift = (bound + _DISTANCE) * scipy.sparse.eye_array(matrix.shape[0])
    found = Krylov(1e-12, random_state=random_state).solve(_Inverse(shift - matrix), k)
    vectors = found.vectors.astype(matrix.dtype)
    products = matrix @ vectors
    values = np.sum(vectors * products, axis=0)
    residuals = np.linalg.norm(products - vectors * values, axis=0)
    precision = max(tol, 50 * float(np.finfo(matrix.dtype).eps))
    reached = residuals.max() <= precision * np.abs(values).max()
    return replace(
        found,
        values=values,
        vectors=vectors,
        residuals=residuals,
        status=Status.CONVERGED if reached else found.status,
        solver="shift-invert",
        smallest=None,
    )
