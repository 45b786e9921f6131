"""Start the Kernel Hebbian Algorithm (KHA), and compute eigenpairs from its components.

K' is the n x n matrix of the operator. Its entries are the inner products of the centred feature
vectors Φ' of n points. There are r components w = A Φ', and row i of the r x n matrix A holds the
coefficients of component i.
"""

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

# A negative eigenvalue is an error if its absolute value exceeds this fraction of the largest one.
# Rounding errors are smaller, also in float32.
_NEGATIVE_TOL = 1e-3
# Eigenvalues of an r x r matrix are treated as 0 if they are at most max(r, _MIN_UNITS) machine
# epsilons times the largest eigenvalue.
_MIN_UNITS = 8


def start_with(kind: str, operator: Any, r: int, rng: np.random.Generator) -> Start:
    """Return r rows of coefficients A and their products A K'.

    ``"paper"`` draws all entries of A from N(0, 1/(rn)), and needs a product with K'. ``"sparse"``
    draws coefficients for only a few random points, and needs only the rows of K' of these points.
    ``"orthonormal"`` starts like "sparse", and makes the components orthonormal in feature space.
    ``"pilot"`` computes the principal components of all data within the span of a few random
    points. ``"nystroem"`` does the same with points drawn by randomly pivoted Cholesky.
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
        # leading components of all data within the span of the chosen points
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
    # Rows of A are zero if the chosen points are copies of each other. The algorithm would never
    # change such rows, so they are replaced by random coefficients of all points. After that, rows
    # are zero only if r exceeds the rank of K'.
    missing = np.flatnonzero(~A.any(axis=1))
    if len(missing) == 0:
        return A, projections
    A[missing], projections[missing] = start_from(
        operator, rng.standard_normal((len(missing), n)) / n
    )
    return orthonormalised(A, projections, rounding)


def nonzero_rows(operator: Any) -> Indices:
    """Return the indices of the nonzero rows of K'; rows of points with weight 0 are zero."""
    return np.flatnonzero(operator.diagonal() > operator.rounding())


def start_from(operator: Any, coefficients: Array, *, orthonormal: bool = False) -> Start:
    """Return the given coefficients, orthonormalised if asked for, and their products with K'."""
    A = np.array(coefficients, dtype=np.float64)
    product = np.ascontiguousarray(np.asarray(operator @ A.T.astype(operator.dtype)).T)
    start = A, product.astype(np.float64, copy=False)
    return orthonormalised(*start, operator.rounding()) if orthonormal else start


def orthonormalised(A: Floats, projections: Floats, rounding: float) -> Start:
    """Combine the rows of A so that A K' Aᵀ = I.

    If the components are linearly dependent, some rows become zeros instead. `rounding` is the
    rounding error of an entry of K'.
    """
    lengths = np.linalg.norm(A, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    A, projections = A / lengths, projections / lengths
    mixing = whitening(A @ projections.T, rounding)
    return mixing @ A, mixing @ projections


def whitening(inner: Floats, rounding: float = 0.0) -> Floats:
    """Return M with M G Mᵀ = I for the symmetric matrix G = `inner`.

    M is lower triangular if G is well-conditioned. Otherwise M is computed from the eigenvectors of
    G, and its rows are zero for eigenvalues within rounding error of 0 (null directions).
    `rounding` is the rounding error of an entry of G. A clearly negative eigenvalue raises a
    ValueError.
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
    # The computed eigenvalues of null directions are within a few epsilon of 0 with the driver evd.
    # With the default driver evr they are sometimes larger.
    values, vectors = scipy.linalg.eigh(inner, check_finite=False, driver="evd")
    values, vectors = values[::-1], vectors[:, ::-1]
    if values[-1] < -max(_NEGATIVE_TOL * np.abs(values).max(), floor):
        raise ValueError(
            "hebbian needs a positive semidefinite matrix, but this matrix has clearly negative "
            "eigenvalues. Use solver='krylov', which accepts any symmetric matrix."
        )
    kept = values > max(units * np.finfo(float).eps * values[0], floor)
    roots = np.sqrt(np.where(kept, values, 1.0))
    return np.where(kept[:, None], vectors.T / roots[:, None], 0.0)


class Ritz(NamedTuple):
    """Approximate eigenpairs of K': r eigenvalues, r x n coefficients A, r x n eigenvectors."""

    values: Floats
    coefficients: Floats
    vectors: Floats


def rayleigh_ritz(state: State) -> Ritz:
    r"""Return the principal axes of the data within the span of the components.

    The components are :math:`w = A\Phi'`. Each axis is a combination :math:`u^\top A \Phi'` of
    them, where the vector u solves

    .. math:: (A K'^2 A^\top) u = \lambda\, (A K' A^\top) u .

    Both matrices are computed from A and A K'. The vector of the coordinates of the data on an axis
    has length :math:`\sqrt\lambda`. Divided by this length, it is an approximate eigenvector of K'.
    """
    A, projections = state.components, state.component_projections
    mixing = whitening(projections @ A.T)
    products = mixing @ projections
    values, vectors = scipy.linalg.eigh(products @ products.T, check_finite=False, driver="evd")
    rotation = vectors[:, ::-1].T @ mixing
    coefficients, products = rotation @ A, rotation @ projections
    values = values[::-1]
    null = values <= len(values) * np.finfo(float).eps * max(values[0], 0.0)
    values = np.where(null, 0.0, values)
    coefficients[null] = 0.0
    return Ritz(values, coefficients, quotient(products, np.sqrt(values)[:, None]))


def raw_pairs(state: State) -> Ritz:
    """Return the components unchanged, with the eigenvalue estimates ‖A_i K'‖ / ‖A_i‖."""
    projections = state.component_projections
    vectors = quotient(projections, np.linalg.norm(projections, axis=1, keepdims=True))
    return Ritz(state.estimate_eigenvalues(), state.components.copy(), vectors)


def estimate_residuals(
    operator: Any, pairs: Ritz, rng: np.random.Generator, block_size: int
) -> Floats:
    """Estimate the residual ‖K'v - λv‖ of each pair from a random sample of rows of K'.

    With 64 rows or fewer, all rows are used. A sample of m of n rows contains on average m / n of
    the squared residual, and costs much less than a pass over all rows. Rows of zeros have no
    residual and are skipped.
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
