"""The canonical form of weighted data: distinct rows with summed weights, sorted.

A weight counts repetitions of a row, and results must not depend on the order of rows. Algorithms
that depend on either (seeding, restarts, stochastic order) start from this form.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .types import Array, Floats, Indices

# Number of order statistics used to sort the rows of a Gram matrix.
_N_RANKS = 32


@dataclass(frozen=True)
class Canonical:
    """Distinct rows of positive weight, sorted.

    Attributes
    ----------
    data : array or sparse array of m rows
        Copies of the distinct rows; for a Gram matrix the (m, m) block of the distinct points.
    weights : ndarray of shape (m,)
        Sum of the weights of all copies, in float64.
    index : ndarray of shape (m,)
        For each distinct row, the index of an equal original row.
    inverse : ndarray of shape (n,)
        For each original row, the index of its distinct row; -1 for a row of weight 0 that equals
        no row of positive weight.
    """

    data: Any
    weights: Floats
    index: Indices
    inverse: Indices


def canonical_rows(X: Any, sample_weight: Floats | None = None) -> Canonical:
    """Drop rows of weight 0, merge equal rows into weights, and sort.

    Rows are sorted lexicographically; 0 and -0 are equal. The order of a sparse array is that of
    the equal dense array.

    Parameters
    ----------
    X : ndarray of shape (n, ...) or sparse array of shape (n, d)
        Finite numbers, real or complex, in two or more dimensions; rows are compared flattened.
    sample_weight : ndarray of shape (n,), optional
        Nonnegative weights, not all zero. Default: all 1.

    Returns
    -------
    Canonical
        Rows, weights and indices.

    Examples
    --------
    >>> found = canonical_rows(np.array([[2.0], [1.0], [2.0]]), np.array([1.0, 0.5, 3.0]))
    >>> found.data.ravel(), found.weights, found.inverse
    (array([1., 2.]), array([0.5, 4. ]), array([1, 0, 1]))
    """
    if scipy.sparse.issparse(X):
        X = X.tocsr()
        keys = _sparse_keys(X)
    else:
        keys = _dense_keys(X)
    weights, index, inverse = _merge_keys(keys, sample_weight)
    return Canonical(X[index], weights, index, inverse)


def canonical_gram(K: Array, sample_weight: Floats | None = None) -> Canonical:
    """Merge and sort the points of a Gram matrix.

    Points are merged if their rows are equal bit for bit; points whose rows differ by rounding
    errors stay distinct. Points are sorted by quantiles of their kernel values, which do not depend
    on the order of the columns. Points with equal quantiles keep their order.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric matrix of kernel values.
    sample_weight : ndarray of shape (n,), optional
        Nonnegative weights, not all zero. Default: all 1.

    Returns
    -------
    Canonical
        Its ``data`` is ``K[index][:, index]``.
    """
    keys = np.array([hashlib.sha256((row + 0).tobytes()).digest() for row in K], dtype=object)
    weights, index, inverse = _merge_keys(keys, sample_weight)
    order = np.lexsort([weights, *_row_quantiles(K, index).T[::-1]])
    rank = np.empty(len(order) + 1, dtype=np.intp)
    rank[order] = np.arange(len(order))
    rank[-1] = -1  # the inverse is -1 for dropped rows
    index = index[order]
    return Canonical(K[np.ix_(index, index)], weights[order], index, rank[inverse])


def canonical_graph(graph: Any, sample_weight: Floats | None = None) -> Canonical:
    """Drop the points of weight 0 of a sparse graph; points are neither merged nor sorted."""
    n = graph.shape[0]
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    index, inverse = np.flatnonzero(weights), np.full(n, -1)
    inverse[index] = np.arange(len(index))
    return Canonical(graph[index][:, index], weights[index], index, inverse)


def _merge_keys(keys: Array, sample_weight: Floats | None) -> tuple[Floats, Indices, Indices]:
    """Return weights, index and inverse of the sorted distinct keys of positive weight."""
    n = len(keys)
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    _, index, inverse = np.unique(keys, return_index=True, return_inverse=True)
    # sum in ascending order, so that the rounding error does not depend on the order of rows
    order = np.lexsort((weights, inverse))
    starts = np.searchsorted(inverse[order], np.arange(len(index)))
    sums = np.add.reduceat(weights[order], starts)
    kept = sums > 0
    new_index = np.where(kept, np.cumsum(kept) - 1, -1)
    return sums[kept], index[kept], new_index[inverse]


def _dense_keys(X: Array) -> Array:
    """Return one byte string per row; the strings sort like the rows."""
    flat = np.ascontiguousarray(X.reshape(len(X), -1) + 0)  # -0 + 0 is 0
    if np.iscomplexobj(flat):
        flat = flat.view(flat.real.dtype)
    if flat.shape[1] == 0:
        return np.zeros(len(X), dtype=np.intp)
    for width in (1, 4):  # a few columns sort the rows if no two rows agree there
        if width < flat.shape[1]:
            keys = _byte_strings(flat[:, :width])
            if len(np.unique(keys)) == len(keys):
                return keys
    return _byte_strings(flat)


def _byte_strings(flat: Array) -> Array:
    """Return one byte string per row of floats; the strings sort like the rows."""
    bits = _ordered_bits(np.ascontiguousarray(flat))
    return bits.view(np.dtype((np.void, bits.shape[1] * bits.itemsize)))[:, 0]


def _ordered_bits(values: Array) -> Array:
    """Return big-endian unsigned integers that sort like these floats."""
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    unsigned = np.dtype(f"u{values.itemsize}")
    bits = values.astype(values.dtype.newbyteorder("="), copy=False).view(unsigned)
    sign = unsigned.type(1 << (8 * values.itemsize - 1))
    # negative floats increase as their bits decrease, and sort before positive ones
    return np.where(bits & sign, ~bits, bits | sign).astype(unsigned.newbyteorder(">"))


def _sparse_keys(X: Any) -> Array:
    """Return one byte string per row; the strings sort like the dense rows.

    Each entry becomes a token (sign, column, value), and each row ends with an end token. Negative
    entries sort before the end token, by increasing column; positive entries sort after it, by
    decreasing column.
    """
    X = X.copy()
    X.sum_duplicates()
    width = 2 if np.iscomplexobj(X.data) else 1  # real, or real and imaginary parts
    values = X.data.view(X.data.real.dtype) + 0
    column = np.repeat(X.indices.astype(np.int64), width) * width
    column += np.tile(np.arange(width), X.nnz)
    token = np.empty(
        len(values), dtype=[("sign", "u1"), ("column", ">i8"), ("value", f">u{values.itemsize}")]
    )
    token["sign"] = np.where(values > 0, 2, 0)
    token["column"] = np.where(values > 0, np.iinfo(np.int64).max - column, column)
    token["value"] = _ordered_bits(values)
    kept = values != 0  # drops explicit zeros, and zero real or imaginary parts
    ends = np.concatenate([[0], np.cumsum(kept)])[X.indptr * width]
    token = token[kept]
    keys = np.empty(X.shape[0], dtype=object)
    keys[:] = [token[a:b].tobytes() + b"\x01" for a, b in itertools.pairwise(ends)]
    return keys


def _row_quantiles(K: Array, index: Indices) -> Array:
    """Return order statistics of each row of K[index][:, index], computed in blocks of rows."""
    m = len(index)
    ranks = np.unique(np.linspace(0, m - 1, min(m, _N_RANKS)).astype(np.intp))
    step = max(1, 2**20 // m)
    blocks = [
        np.sort(K[np.ix_(index[start : start + step], index)], axis=1)[:, ranks]
        for start in range(0, m, step)
    ]
    return np.concatenate(blocks) + 0
