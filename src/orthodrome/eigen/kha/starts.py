"""Starts of the Kernel Hebbian Algorithm, and eigenpairs of its components."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ..._core.types import Array, Floats, Indices
from ...coordinates import partial_cholesky
from ...coordinates.pivots import pilot_size
from .sweep import State, quotient

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
        # the leading components of all data within the span of the pilot points
        mixing = whitening(rows[:, chosen], rounding)
        products = mixing @ rows
        vectors = scipy.linalg.eigh(products @ products.T, check_finite=False, driver="evd")[1]
        small = np.zeros((r, m))
        small[: min(r, m)] = vectors[:, ::-1][:, :r].T @ mixing
    else:
        small = rng.standard_normal((r, m)) / np.sqrt(r * m)
    coefficients, projections = np.zeros((r, n)), small @ rows
    coefficients[:, chosen] = small
    if kind == "sparse":
        return coefficients, projections
    A, projections = orthonormalised(coefficients, projections, rounding)
    # Rows of zeros arise if the points drawn are copies of each other, and would never change.
    # Replace them by random ones: after another product, only rows beyond the rank are zero.
    missing = np.flatnonzero(~A.any(axis=1))
    if len(missing) == 0:
        return A, projections
    A[missing], projections[missing] = start_from(
        operator, rng.standard_normal((len(missing), n)) / n
    )
    return orthonormalised(A, projections, rounding)


def nonzero_rows(operator: Any) -> Indices:
    """Return the nonzero rows of a semidefinite matrix; rows of weight 0 are zero."""
    return np.flatnonzero(operator.diagonal() > operator.rounding())


def start_from(operator: Any, coefficients: Array, *, orthonormal: bool = False) -> Start:
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


class Ritz(NamedTuple):
    """Eigenvalues, coefficients A (r x l) and eigenvectors of K' in rows (r x l)."""

    values: Floats
    coefficients: Floats
    vectors: Floats


def rayleigh_ritz(state: State) -> Ritz:
    r"""Return the principal axes of the data within the span of the components.

    The span of :math:`w = A\Phi'` contains the axes :math:`u A \Phi'` with

    .. math:: (A K'^2 A^\top) u = \lambda\, (A K' A^\top) u ,

    both of which are computed from A and A K'. The coordinates of the data on an axis, divided by
    their length :math:`\sqrt\lambda`, are the eigenvector of K'.
    """
    A, projections = state.components, state.component_projections
    mixing = whitening(projections @ A.T)
    products = mixing @ projections
    values, turn = scipy.linalg.eigh(products @ products.T, check_finite=False, driver="evd")
    turn = turn[:, ::-1].T @ mixing
    coefficients, products = turn @ A, turn @ projections
    values = values[::-1]
    null = values <= len(values) * np.finfo(float).eps * max(values[0], 0.0)
    values = np.where(null, 0.0, values)
    coefficients[null] = 0.0
    return Ritz(values, coefficients, quotient(products, np.sqrt(values)[:, None]))


def raw_pairs(state: State) -> Ritz:
    """Return the components as they are, with the eigenvalues of eq. (13)."""
    projections = state.component_projections
    vectors = quotient(projections, np.linalg.norm(projections, axis=1, keepdims=True))
    return Ritz(state.estimate_eigenvalues(), state.components.copy(), vectors)


def estimate_residuals(
    operator: Any, pairs: Ritz, rng: np.random.Generator, block_size: int
) -> Floats:
    """Estimate ‖K'v - λv‖ of each pair from a random sample of rows, or from all if few.

    A sample of m of the l rows contains m / l of the squared residual on average, at a fraction of
    the cost of a pass. Rows of zeros have no residual and are skipped.
    """
    nonzero = nonzero_rows(operator)
    n = len(nonzero)
    m = min(n, max(64, min(256, n // 32)))
    sample = np.sort(nonzero[rng.choice(n, size=m, replace=False)]) if n else nonzero
    vectors = pairs.vectors.T.astype(operator.dtype)
    # relative to the largest eigenvalue, so that squares neither overflow nor underflow
    scale = float(np.abs(pairs.values).max()) or 1.0
    sums = np.zeros(len(pairs.values))
    for first in range(0, m, block_size):
        chosen = sample[first : first + block_size]
        residual = operator.rows(chosen) @ vectors - pairs.vectors[:, chosen].T * pairs.values
        residual = residual / scale
        sums += np.einsum("ij,ij->j", residual, residual)
    return scale * np.sqrt(sums * (n / max(m, 1)))
