"""Squared distances in blocks, accurate also between near points."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ..._core.types import Array, Floats, Indices
from .. import _loops
from .._prepared import Prepared

# Squared distances below this, relative to the squared norms, are computed from differences. This
# keeps 12 digits in float64 and 5 in float32.
_CANCELLATION = {np.dtype(np.float64): 1e-4, np.dtype(np.float32): 0.05}


def _threshold(a: Prepared, b: Prepared) -> float:
    """Return the threshold for the less precise of two sets."""
    return max(_CANCELLATION[a.dtype], _CANCELLATION[b.dtype])


def squared_distances(a: Prepared, b: Prepared, out: Array | None = None) -> Array:
    """Return squared distances between prepared points, accurate also for near points."""
    if scipy.sparse.issparse(a.coordinates) or scipy.sparse.issparse(b.coordinates):
        return _sparse_squared_distances(a, b)
    dtype = np.result_type(a.dtype, b.dtype)
    left, right = (points.coordinates.astype(dtype, copy=False) for points in (a, b))
    block = np.matmul(left, right.T, out=out)
    if a.given is not None and b.given is not None:
        left, right = (points.given.astype(dtype, copy=False) for points in (a, b))
    _loops.distances_from_products(block, left, right, a.per_point, b.per_point, _threshold(a, b))
    return block


def _sparse_squared_distances(a: Prepared, b: Prepared) -> Array:
    products = a.coordinates @ b.coordinates.T
    block = products.toarray() if scipy.sparse.issparse(products) else np.asarray(products)
    totals = np.add.outer(a.per_point, b.per_point)
    block *= -2
    block += totals
    i, j = np.nonzero(block <= _threshold(a, b) * totals)
    if len(i):
        block[i, j] = paired_squared_distances(a.coordinates, b.coordinates, i, j)
    return block


def paired_squared_distances(A: Any, B: Any, i: Indices, j: Indices) -> Floats:
    """Return squared distances between row i_k of A and row j_k of B, from differences."""
    distances = np.empty(len(i))
    for start in range(0, len(i), 65536):
        rows = slice(start, start + 65536)
        difference = A[i[rows]].astype(np.float64) - B[j[rows]]
        if scipy.sparse.issparse(difference):
            distances[rows] = np.asarray(difference.multiply(difference).sum(axis=1)).ravel()
        else:
            difference = np.asarray(difference)
            distances[rows] = np.einsum("ij,ij->i", difference, difference)
    return distances
