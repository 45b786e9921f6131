"""Starting coefficients of the Kernel Hebbian Algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..._core.types import Floats
from ...coordinates import partial_cholesky
from ...coordinates.pivots import pilot_size

#: The coefficients A and the products A K'.
Start = tuple[Floats, Floats]

STARTS = ("orthonormal", "pilot", "nystroem", "paper", "sparse")

_NEGATIVE_TOL = 1e-3  # relative; exceeds rounding errors, also in float32
_MIN_UNITS = 8  # minimum size of a null direction, in units of the machine epsilon


def start_with(kind: str, operator: Any, r: int, rng: np.random.Generator) -> Start:
    """Make r rows of coefficients and their products with K'.

    ``"paper"`` draws A ~ N(0, 1/(rl)), which needs a product with K'; ``"sparse"`` draws it over a
    few of the points, which needs only their rows. ``"orthonormal"`` makes such rows orthonormal in
    feature space. ``"pilot"`` computes the principal components of all data within the span of a
    few points; ``"nystroem"`` does the same with points drawn by randomly pivoted Cholesky.
    """
    n = operator.shape[0]
    if kind == "paper":
        return start_from(operator, rng.standard_normal((r, n)) / np.sqrt(r * n))
    nonzero = nonzero_rows(operator)
    if len(nonzero) == 0:
        return np.zeros((r, n)), np.zeros((r, n))
    uses_data = kind in ("pilot", "nystroem")
    m = min(len(nonzero), pilot_size(n, r) if uses_data else 4 * r)
    if kind == "nystroem":
        chosen = np.sort(partial_cholesky(operator, max_rank=m, random_state=rng).pivots)
    else:
        chosen = np.sort(nonzero[rng.choice(len(nonzero), size=m, replace=False)])
    m = len(chosen)
    rows = np.asarray(operator.rows(chosen), dtype=np.float64)
    rounding = operator.rounding()
    if uses_data:
        small = _pilot(rows, rows[:, chosen], r, rounding)
    else:
        small = rng.standard_normal((r, m)) / np.sqrt(r * m)
    coefficients, projections = np.zeros((r, n)), small @ rows
    coefficients[:, chosen] = small
    if kind == "sparse":
        return coefficients, projections
    return _without_zero_rows(operator, *orthonormalised(coefficients, projections, rounding), rng)


def nonzero_rows(operator: Any) -> NDArray[np.intp]:
    """Return the nonzero rows of a semidefinite matrix; rows of weight 0 are zero."""
    return np.flatnonzero(operator.diagonal() > operator.rounding())


def _without_zero_rows(
    operator: Any, A: Floats, projections: Floats, rng: np.random.Generator
) -> Start:
    """Replace rows of zeros by random ones over all points, orthonormal to the others.

    Rows of zeros arise if the points drawn are copies of each other, and would never change. After
    one more product with K', only rows beyond its rank are zero.
    """
    missing = np.flatnonzero(~A.any(axis=1))
    if len(missing) == 0:
        return A, projections
    A[missing], projections[missing] = start_from(
        operator, rng.standard_normal((len(missing), A.shape[1])) / A.shape[1]
    )
    return orthonormalised(A, projections, operator.rounding())


def start_from(operator: Any, coefficients: NDArray[Any], *, orthonormal: bool = False) -> Start:
    """Return given coefficients and their products with K'."""
    A = np.array(coefficients, dtype=np.float64)
    product = np.ascontiguousarray(np.asarray(operator @ A.T.astype(operator.dtype)).T)
    start = A, product.astype(np.float64, copy=False)
    return orthonormalised(*start, operator.rounding()) if orthonormal else start


def orthonormalised(A: Floats, projections: Floats, rounding: float) -> Start:
    """Combine the rows so that A K' Aᵀ = I; rows beyond the rank of K' become zeros.

    `rounding` is the rounding error of an entry of K'.
    """
    lengths = np.linalg.norm(A, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    A, projections = A / lengths, projections / lengths
    mixing = whitening(A @ projections.T, rounding)
    return mixing @ A, mixing @ projections


def whitening(inner: Floats, rounding: float = 0.0) -> Floats:
    """Return M with M G Mᵀ = I, lower triangular where G allows; null directions become zeros.

    `rounding` is the rounding error of an entry of G. Directions whose eigenvalue is within
    rounding error are null directions. A clearly negative eigenvalue raises a ValueError.
    """
    inner = (inner + inner.T) / 2
    r = len(inner)
    floor, units = np.sqrt(r) * rounding, max(r, _MIN_UNITS)
    try:
        factor = scipy.linalg.cholesky(inner, lower=True, check_finite=False)
        threshold = max(units * np.finfo(float).eps * np.trace(inner), floor)
        if np.diag(factor).min() ** 2 > threshold:
            return scipy.linalg.solve_triangular(factor, np.eye(r), lower=True)
    except scipy.linalg.LinAlgError:
        pass
    # null eigenvalues are within a few epsilon with evd, but sometimes larger with evr, the default
    values, vectors = scipy.linalg.eigh(inner, check_finite=False, driver="evd")
    values, vectors = values[::-1], vectors[:, ::-1]
    if values[-1] < -max(_NEGATIVE_TOL * np.abs(values).max(), floor):
        raise ValueError(
            "hebbian needs a positive semidefinite matrix, and this one has clearly negative "
            "eigenvalues. Use solver='krylov', which accepts any symmetric matrix."
        )
    kept = values > max(units * np.finfo(float).eps * values[0], floor)
    roots = np.sqrt(np.where(kept, values, 1.0))
    return np.where(kept[:, None], vectors.T / roots[:, None], 0.0)


def _pilot(rows: Floats, gram: Floats, r: int, rounding: float) -> Floats:
    """Return the leading components of all data within the span of the pilot points."""
    mixing = whitening(gram, rounding)
    products = mixing @ rows
    vectors = scipy.linalg.eigh(products @ products.T, check_finite=False, driver="evd")[1]
    leading = vectors[:, ::-1][:, :r].T @ mixing
    return np.vstack([leading, np.zeros((r - len(leading), len(gram)))])
