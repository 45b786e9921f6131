"""Pre-images for any kernel by ridge regression of the inputs on their feature vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._core.memory import format_bytes, parse_bytes
from ..gram import Centered, GramOperator

__all__ = ["decode_components", "ridge"]


def ridge(
    gram: GramOperator,
    X: NDArray[Any],
    coefficients: NDArray[Any],
    *,
    alpha: float,
    memory_budget: str | float,
) -> NDArray[Any]:
    r"""Predict the input that belongs to an expansion, :math:`y = \sum_n \beta_n \Phi(x_n)`.

    The linear map from feature space to the inputs that minimises
    :math:`\sum_n \|x_n - f(\Phi(x_n))\|^2 + \alpha\tau \|f\|^2`, both sides centred, is

    .. math::
        f(y) = \bar x + (K' (\beta - \tfrac1N))^\top (K' + \alpha\tau I)^{-1} (X - \bar x),
        \qquad \tau = \operatorname{tr} K' / N.

    Parameters
    ----------
    gram : GramOperator
        The Gram operator of the points of the expansion.
    X : ndarray of shape (n, d)
        Their inputs.
    coefficients : ndarray of shape (m, n)
        β, one row per expansion.
    alpha : float
        The ridge, relative to the trace of K' over n (a scale-free choice).
    memory_budget : str or number
        The n x n system must fit into it.

    Returns
    -------
    ndarray of shape (m, d)
        The predicted inputs.
    """
    n = gram.shape[0]
    # in float64 always: with a small alpha the system is ill-conditioned in float32
    needed, budget = n * n * np.dtype(np.float64).itemsize, parse_bytes(memory_budget)
    if needed > budget:
        raise ValueError(
            f"The ridge pre-image of a general expansion solves an {n} x {n} system, which takes "
            f"{format_bytes(needed)}; memory_budget is {format_bytes(budget)}. Raise it, or use "
            "fewer points."
        )
    matrix = Centered(gram).toarray().astype(np.float64, copy=False)
    mean = X.mean(axis=0, dtype=np.float64)
    scale = float(np.trace(matrix)) / n
    # where all points coincide the prediction is their mean, whatever the penalty
    penalty = alpha * scale if scale > 1e-200 else 1.0
    right = matrix @ (coefficients - 1.0 / n).T
    matrix.flat[:: n + 1] += penalty
    solution = scipy.linalg.solve(matrix, X - mean, assume_a="sym", overwrite_a=True)
    return (mean + right.T @ solution).astype(X.dtype, copy=False)


def decode_components(
    embedding: NDArray[Any],
    eigenvalues: NDArray[Any],
    X: NDArray[Any],
    weights: NDArray[np.float64],
    alpha: float,
) -> tuple[NDArray[Any], NDArray[Any]]:
    r"""Return the ridge map from component coordinates to inputs, :math:`e \mapsto \bar x + e B`.

    Applied to a kernel PCA reconstruction, the ridge map of :func:`ridge` acts on the q component
    coordinates only,

    .. math:: B = (E^\top P E + \alpha\lambda_1)^{-1} E^\top P (X - \bar x),

    and EᵀPE is the diagonal matrix of the eigenvalues: no n x n system is solved.

    Parameters
    ----------
    embedding : ndarray of shape (n, q)
        Coordinates E of the training points.
    eigenvalues : ndarray of shape (q,)
        Weighted sums of squares of the columns of E.
    X : ndarray of shape (n, d)
        Training inputs.
    weights : ndarray of shape (n,)
        Sample weights P, on the scale that made the eigenvalues.
    alpha : float
        The ridge relative to the largest eigenvalue.

    Returns
    -------
    center : ndarray of shape (d,)
        The weighted mean of the inputs.
    decoder : ndarray of shape (q, d)
        B.
    """
    center = np.average(X, axis=0, weights=weights)
    ridged = eigenvalues + alpha * max(float(eigenvalues.max(initial=0.0)), np.finfo(float).tiny)
    return center, (embedding * weights[:, None]).T @ (X - center) / ridged[:, None]
