"""Eigenpairs of components: the Rayleigh-Ritz step and residual estimates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ..._core.types import Floats
from .starts import nonzero_rows, whitening
from .sweep import State, quotient


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


def component_pairs(state: State) -> Ritz:
    """Return the components as they are, with their Rayleigh quotients, ‖A_i K'‖² / ‖w_i‖²."""
    sums, lengths = (state.component_projections**2).sum(axis=1), state.squared_lengths()
    return raw_pairs(state)._replace(values=quotient(sums, lengths))


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
