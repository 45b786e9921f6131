"""Starts of the Kernel Hebbian Algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..._core.types import Floats
from ...coordinates import partial_cholesky
from ...coordinates.pivots import pilot_size

#: A pair A, A K'.
Start = tuple[Floats, Floats]

STARTS = ("orthonormal", "pilot", "nystroem", "paper", "sparse")

_CLEARLY = 1e-3  # beyond rounding, in float32 too
_UNITS = 8  # at least so many units of rounding count as a null direction


def start_with(kind: str, operator: Any, r: int, rng: np.random.Generator) -> Start:
    """Make r rows of coefficients and their products with K'.

    ``"paper"`` draws A ~ N(0, 1/(rl)), which takes a sweep over K' for A K'; ``"sparse"`` draws
    it over some of the points only, which takes the rows of these. ``"orthonormal"`` makes such
    rows orthonormal in feature space. ``"pilot"`` takes the principal components of all data
    within the span of some; ``"nystroem"`` the same with points drawn by randomly pivoted Cholesky,
    each where the others leave much out.
    """
    n = operator.shape[0]
    if kind == "paper":
        return start_from(operator, rng.standard_normal((r, n)) / np.sqrt(r * n))
    present = nonzero_rows(operator)
    if len(present) == 0:
        return np.zeros((r, n)), np.zeros((r, n))
    of_data = kind in ("pilot", "nystroem")
    m = min(len(present), pilot_size(n, r) if of_data else 4 * r)
    if kind == "nystroem":
        chosen = np.sort(partial_cholesky(operator, max_rank=m, random_state=rng).pivots)
    else:
        chosen = np.sort(present[rng.choice(len(present), size=m, replace=False)])
    m = len(chosen)
    rows = np.asarray(operator.rows(chosen), dtype=np.float64)
    rounding = operator.rounding()
    if of_data:
        small = _pilot(rows, rows[:, chosen], r, rounding)
    else:
        small = rng.standard_normal((r, m)) / np.sqrt(r * m)
    coefficients, projections = np.zeros((r, n)), small @ rows
    coefficients[:, chosen] = small
    if kind == "sparse":
        return coefficients, projections
    return _topped_up(operator, *orthonormalised(coefficients, projections, rounding), rng)


def nonzero_rows(operator: Any) -> NDArray[np.intp]:
    """Return the rows of a semidefinite matrix that are not zeros, as those of weight 0 are."""
    return np.flatnonzero(operator.diagonal() > operator.rounding())


def _topped_up(operator: Any, A: Floats, projections: Floats, rng: np.random.Generator) -> Start:
    """Replace rows of zeros by random ones over all points, orthonormal to the rest.

    The points drawn may be copies of each other, and a row of zeros would never change. After one
    more product with K' there are zeros only beyond its rank.
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

    `rounding` is that of an entry of K'.
    """
    lengths = np.linalg.norm(A, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    A, projections = A / lengths, projections / lengths
    mixing = whitening(A @ projections.T, rounding)
    return mixing @ A, mixing @ projections


def whitening(inner: Floats, rounding: float = 0.0) -> Floats:
    """Return M with M G Mᵀ = I, lower triangular where G allows; null directions become zeros.

    `rounding` is that of an entry of G; a direction whose square is within the rounding of its
    entries is a null one. A clearly negative square raises a ValueError.
    """
    inner = (inner + inner.T) / 2
    r = len(inner)
    floor, units = np.sqrt(r) * rounding, max(r, _UNITS)
    try:
        factor = scipy.linalg.cholesky(inner, lower=True, check_finite=False)
        least = max(units * np.finfo(float).eps * np.trace(inner), floor)
        if np.diag(factor).min() ** 2 > least:
            return scipy.linalg.solve_triangular(factor, np.eye(r), lower=True)
    except scipy.linalg.LinAlgError:
        pass
    # null eigenvalues of evd are a few units of rounding, of evr, the default, now and then many
    values, vectors = scipy.linalg.eigh(inner, check_finite=False, driver="evd")
    values, vectors = values[::-1], vectors[:, ::-1]
    if values[-1] < -max(_CLEARLY * np.abs(values).max(), floor):
        raise ValueError(
            "hebbian needs a positive semidefinite matrix, and this one has clearly negative "
            "eigenvalues. Take solver='krylov', which takes any symmetric matrix."
        )
    kept = values > max(units * np.finfo(float).eps * values[0], floor)
    roots = np.sqrt(np.where(kept, values, 1.0))
    return np.where(kept[:, None], vectors.T / roots[:, None], 0.0)


def _pilot(rows: Floats, own: Floats, r: int, rounding: float) -> Floats:
    """Return the leading components of all data within the span of the pilot points."""
    mixing = whitening(own, rounding)
    products = mixing @ rows
    vectors = scipy.linalg.eigh(products @ products.T, check_finite=False, driver="evd")[1]
    leading = vectors[:, ::-1][:, :r].T @ mixing
    return np.vstack([leading, np.zeros((r - len(leading), len(own)))])
