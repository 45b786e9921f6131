"""Fit kernels to rows that are read in blocks, from their moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from .._core.types import Floats
from ..kernels import Kernel
from ..kernels.bandwidth import Moments
from .base import Rows


@dataclass(frozen=True)
class _Moments:
    """Sums of weights, of differences from a center, and of their squares."""

    center: Floats

    def __call__(self, rows: Any, start: int, weights: Any = None) -> tuple[Any, ...]:
        w = np.ones(rows.shape[0]) if weights is None else weights
        if scipy.sparse.issparse(rows):  # not centred: differences would not be sparse
            squares = np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
            return w.sum(), np.asarray(rows.T @ w).ravel(), w @ squares
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks that it is finite
            difference = np.subtract(rows, self.center, dtype=np.float64)
            squares = np.einsum("ij,ij->i", difference, difference)
            return w.sum(), w @ difference, w @ squares


def row_moments(rows: Rows, center: Floats) -> Moments:
    r"""Return the mean of all rows and the mean squared distance between them, in one pass.

    .. math:: \sum_{ij} p_i p_j \|x_i - x_j\|^2
        = 2 \sum_i p_i \|x_i - c\|^2 - 2\, \|\bar x - c\|^2, \qquad \bar x = \sum_i p_i x_i,

    for any c; with c near the mean there is no cancellation. The weights p are those of the rows.

    Examples
    --------
    >>> from orthodrome import KernelPCA
    >>> from orthodrome.kernels import Gaussian
    >>> from orthodrome.rows import as_rows
    >>> rows = as_rows([np.array([[0.0]]), np.array([[2.0]])], Gaussian(), KernelPCA())
    >>> row_moments(rows, np.zeros(1)).squared_distance
    2.0
    """
    total, first, second = rows.reduce(_Moments(center))
    with np.errstate(over="ignore", invalid="ignore"):
        shift, square = first / total, float(second / total)
        distance = 2.0 * (square - float(shift @ shift))
    error = 64 * float(np.finfo(np.float64).eps) * square
    return Moments(center + shift, max(distance, 0.0), error)


def fit_kernel(kernel: Kernel, rows: Rows, sample: Any, sample_weight: Floats | None) -> Kernel:
    """Return a clone of a kernel, fitted to the moments of all rows and to a sample."""
    fresh = clone(kernel)
    if sample.shape[0] == rows.shape[0]:
        return fresh.fit_validated(sample, sample_weight)
    return fresh.fit_sampled(sample, sample_weight, lambda center: row_moments(rows, center))
