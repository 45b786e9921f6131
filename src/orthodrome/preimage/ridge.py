"""Compute pre-images for any kernel by ridge regression of inputs on feature vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from .._core.memory import format_bytes, parse_bytes
from .._core.types import Array, Floats
from ..gram import Centered, GramOperator

_BLOCK = 2**14  # rows of inputs per block


def ridge(
    gram: GramOperator,
    X: Array,
    coefficients: Array,
    *,
    alpha: float,
    memory_budget: str | float,
) -> Array:
    r"""Predict inputs for expansions :math:`y = \sum_n \beta_n \Phi(x_n)`.

    An expansion is a linear combination of the feature vectors Φ(x_n) of N points, with
    coefficients β. Let :math:`\bar x` be the mean of the inputs x_n, which are the rows of X, and
    let K' be the Gram matrix of the centred feature vectors. Among the linear maps f from centred
    feature vectors to centred inputs, ridge regression chooses the one that minimises
    :math:`\sum_n \|x_n - f(\Phi(x_n))\|^2 + \alpha\tau \|f\|^2`. Its prediction is

    .. math::
        f(y) = \bar x + (K' (\beta - \tfrac1N))^\top (K' + \alpha\tau I)^{-1} (X - \bar x),
        \qquad \tau = \operatorname{tr} K' / N.

    Parameters
    ----------
    gram : GramOperator
        The Gram operator of the points x_n.
    X : ndarray of shape (n, d)
        The inputs x_n.
    coefficients : ndarray of shape (m, n)
        The coefficients β, one row per expansion.
    alpha : float
        The penalty α, relative to τ.
    memory_budget : str or number
        The memory for the n x n system.

    Returns
    -------
    ndarray of shape (m, d)
        The predicted inputs.
    """
    n = gram.shape[0]
    # The system is solved in float64, because it is ill-conditioned for small alpha.
    needed, budget = n * n * np.dtype(np.float64).itemsize, parse_bytes(memory_budget)
    if needed > budget:
        raise ValueError(
            f"The ridge pre-image needs {format_bytes(needed)} for an {n} x {n} system, but "
            f"memory_budget is {format_bytes(budget)}. Raise memory_budget, or use fewer points."
        )
    matrix = Centered(gram).toarray().astype(np.float64, copy=False)
    mean = X.mean(axis=0, dtype=np.float64)
    scale = float(np.trace(matrix)) / n
    # if all points coincide, the prediction is their mean for any penalty
    penalty = alpha * scale if scale > 1e-200 else 1.0
    right = matrix @ (coefficients - 1.0 / n).T
    matrix.flat[:: n + 1] += penalty
    solution = scipy.linalg.solve(matrix, X - mean, assume_a="sym", overwrite_a=True)
    return (mean + right.T @ solution).astype(X.dtype, copy=False)


@dataclass(frozen=True)
class RidgeMap:
    """The map f ↦ x̄ + (f - f̄) B from coordinates f to inputs.

    Attributes
    ----------
    center : ndarray of shape (d,)
        x̄, the mean of the inputs.
    origin : ndarray of shape (q,)
        f̄, the mean of the coordinates.
    matrix : ndarray of shape (q, d)
        The matrix B.
    """

    center: Array
    origin: Array
    matrix: Array

    def __call__(self, coordinates: Array) -> Array:
        """Return the inputs, shape (m, d), for coordinates of shape (m, q)."""
        return self.center + (coordinates - self.origin) @ self.matrix


def decode_components(features: Array, X: Any, weights: Floats, alpha: float) -> RidgeMap:
    r"""Return the ridge map from coordinates in a subspace of feature space to inputs.

    Coordinates f and inputs x are centred at their weighted means :math:`\bar f` and
    :math:`\bar x`. The map is

    .. math:: f \mapsto \bar x + (f - \bar f) B, \qquad
        B = (F^\top P F + \alpha\lambda_1)^{-1} F^\top P (X - \bar x),

    where the rows of F are the centred coordinates of the training points, the rows of X are their
    inputs, P is the diagonal matrix of the weights, and λ_1 is the largest eigenvalue of FᵀPF. For
    the coordinates of kernel PCA this is the map of :func:`ridge` restricted to the components, but
    it needs no n x n system. The inputs are read in blocks of rows.

    Parameters
    ----------
    features : ndarray of shape (n, q)
        Coordinates of the training points, not centred.
    X : ndarray or sparse array of shape (n, d)
        Training inputs.
    weights : ndarray of shape (n,)
        Sample weights. They are divided by their sum.
    alpha : float
        The penalty α, relative to λ_1.

    Returns
    -------
    RidgeMap
        The map from coordinates of shape (m, q) to inputs of shape (m, d).
    """
    weights = weights / weights.sum()
    blocks = [slice(i, i + _BLOCK) for i in range(0, X.shape[0], _BLOCK)]
    center = sum(np.asarray(weights[rows] @ X[rows]) for rows in blocks)
    origin = np.average(features, axis=0, weights=weights)
    deviations = features - origin
    weighted = (deviations * weights[:, None]).T
    moments = sum(weighted[:, rows] @ (_dense(X[rows]) - center) for rows in blocks)
    return ridge_from_moments(np.asarray(center), origin, weighted @ deviations, moments, alpha)


def ridge_from_moments(
    center: Array, origin: Array, covariance: Array, moments: Any, alpha: float
) -> RidgeMap:
    """Return the map of :func:`decode_components`, given x̄, f̄, FᵀPF and FᵀP(X - x̄)."""
    values, vectors = scipy.linalg.eigh(covariance, check_finite=False)
    # if all points coincide, the prediction is their mean for any penalty
    penalty = alpha * values[-1] if values[-1] > 1e-200 else 1.0
    matrix = (vectors / (np.maximum(values, 0.0) + penalty)) @ (vectors.T @ moments)
    return RidgeMap(center, origin, matrix)


def _dense(X: Any) -> Array:
    return X.toarray() if scipy.sparse.issparse(X) else X
