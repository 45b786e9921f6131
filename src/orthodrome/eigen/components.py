"""From eigenpairs of a centred Gram matrix to components: coordinates and a map for new points."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gram import Centered, Combined, GramOperator
from .pairs import Eigenpairs, orient

__all__ = ["Components", "make_components", "solve_components", "weighted_problem"]


@dataclass(frozen=True)
class Components:
    """Principal components in feature space.

    Attributes
    ----------
    eigenvalues : ndarray of shape (k,)
        Descending; 0 where only rounding was left.
    eigenvectors : ndarray of shape (n, k)
        Of the (weighted) centred Gram matrix, with their signs chosen.
    embedding : ndarray of shape (n, k)
        Coordinates of the n points.
    explained_variance_ratio : ndarray of shape (k,)
        Eigenvalues over the trace.
    dual_coef, intercept : ndarrays of shape (n, k), (k,)
        The coordinates of any point x are k(x, X) @ dual_coef + intercept.
    rounding : float
        The floor below which an eigenvalue is rounding.
    """

    eigenvalues: NDArray[Any]
    eigenvectors: NDArray[Any]
    embedding: NDArray[Any]
    explained_variance_ratio: NDArray[Any]
    dual_coef: NDArray[Any]
    intercept: NDArray[Any]
    rounding: float


def weighted_problem(centered: Centered, weights: NDArray[np.float64] | None) -> GramOperator:
    """Return W^½ K' W^½, whose spectrum is that of K' with each row repeated w times."""
    return centered if weights is None else Combined(centered, np.sqrt(weights))


def solve_components(
    problem: GramOperator,
    n_components: int | float | None,
    solve: Callable[[int, NDArray[Any] | None], Eigenpairs],
) -> Eigenpairs:
    """Solve for as many pairs as are asked for: a number, a fraction of the trace, or all.

    ``solve(k, initial)`` computes k pairs, from approximate vectors where there are any. For a
    fraction, k is doubled until the eigenvalues add up to it.
    """
    n = problem.shape[0]
    if n_components is None:
        return solve(n, None)
    if isinstance(n_components, numbers.Integral):
        return solve(min(int(n_components), n), None)
    goal = n_components * max(problem.trace(), 0.0)
    k, initial = min(16, n), None
    while True:
        pairs = solve(k, initial)
        reached = np.cumsum(np.maximum(pairs.values, 0.0, dtype=np.float64)) >= goal
        if reached.any():
            return pairs.first(int(np.argmax(reached)) + 1)
        if k == n:
            return pairs
        k, initial = min(2 * k, n), pairs.vectors


def make_components(
    pairs: Eigenpairs,
    centered: Centered,
    weights: NDArray[np.float64] | None,
    *,
    drop_null: bool,
) -> Components:
    r"""Turn eigenpairs :math:`(\lambda_q, a_q)` into components of unit length in feature space.

    With :math:`\beta_q = W^{1/2} a_q / \sqrt{\lambda_q}` the coordinates are
    :math:`e_q(x) = \sum_n \beta_{qn} k'(x_n, x)`. Multiplied out, the centring of k' is an affine
    map of k(x, X): its matrix is :math:`\beta - p\,\mathbf 1^\top\beta`, its constant
    :math:`s\,\mathbf 1^\top\beta - m^\top\beta`. `drop_null` leaves out the pairs that are only
    rounding (one is kept); else they become columns of zeros.
    """
    floor = _rounding_floor(pairs, centered, weights)
    if drop_null:
        pairs = pairs.first(max(1, int(np.count_nonzero(pairs.values > floor))))
    dtype = pairs.values.dtype
    values = np.where(pairs.values > floor, pairs.values, 0).astype(dtype)
    roots = np.sqrt(values)
    beta = pairs.vectors * np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)
    if weights is None:
        embedding = pairs.vectors * roots
    else:  # not by dividing by the root of a weight, which may be 0
        beta = beta * np.sqrt(weights).astype(dtype)[:, None]
        embedding = centered @ beta
    signs = orient(embedding, weights).astype(dtype)
    beta *= signs
    sums = beta.sum(axis=0, dtype=np.float64)
    total = weighted_problem(centered, weights).trace()
    ratio = values / total if total > 0 else np.zeros_like(values)
    return Components(
        eigenvalues=values,
        eigenvectors=pairs.vectors * signs,
        embedding=np.ascontiguousarray(embedding * signs),
        explained_variance_ratio=ratio.astype(dtype),
        dual_coef=(beta - np.outer(centered.weights, sums)).astype(dtype),
        intercept=(centered.mean_square * sums - centered.means @ beta).astype(dtype),
        rounding=floor,
    )


def _rounding_floor(
    pairs: Eigenpairs, centered: Centered, weights: NDArray[np.float64] | None
) -> float:
    """Return the size up to which an eigenvalue may be nothing but rounding.

    Two sources: the solver, a few units in the last place of the largest eigenvalue; and the
    centring, a difference of numbers of the size of K, so that coincident points have noise for a
    spectrum. There, entries are rounded each by itself, which adds up to the root of n, and the
    means, which all rows share, to n.
    """
    n = centered.shape[0]
    count = n if weights is None else float(weights.sum())
    eps = float(np.finfo(pairs.values.dtype).eps)
    size = max(float(np.abs(centered.operator.diagonal()).max()), np.abs(centered.means).max())
    centring = 10 * size * count * (eps / np.sqrt(n) + float(np.finfo(np.float64).eps))
    return max(10 * eps * float(np.abs(pairs.values).max()), centring)
