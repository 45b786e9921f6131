"""The canonical form of weighted data: distinct rows with summed weights, sorted.

Weights mean repetition, and the order of rows means nothing. Computations whose path depends on
either (seeding, restarts, a stochastic order) start from this form.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .types import Array, Floats, Indices

# Number of order statistics by which rows of a Gram matrix are sorted.
_N_RANKS = 32


@dataclass(frozen=True)
class Canonical:
    """Distinct rows of positive weight, sorted.

    Attributes
    ----------
    data : array or sparse array of m rows
        Copies of the distinct rows; for a Gram matrix the (m, m) block of the distinct points.
    weights : ndarray of shape (m,)
        The summed weights of all copies, in float64.
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

    Rows are sorted by their first entry, where it ties by their second, and so on; 0 and -0 are
    equal. A sparse array is sorted as the dense one would be.

    Parameters
    ----------
    X : ndarray of shape (n, ...) or sparse array of shape (n, d)
        Finite numbers, real or complex, in two or more dimensions; rows are compared flattened.
    sample_weight : ndarray of shape (n,), optional
        Weights, not negative and not all zero. Default: all 1.

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
    weights, index, inverse = _merged(keys, sample_weight)
    return Canonical(X[index], weights, index, inverse)


def canonical_gram(K: Array, sample_weight: Floats | None = None) -> Canonical:
    """Merge and sort the points of a Gram matrix.

    Copies of a point have identical rows to the last bit; points whose rows differ by rounding are
    distinct. Points are sorted by quantiles of their kernel values, which do not depend on the
    order of the columns. Points with equal quantiles keep their order.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric.
    sample_weight : ndarray of shape (n,), optional
        Weights, not negative and not all zero. Default: all 1.

    Returns
    -------
    Canonical
        ``data`` has both axes reduced, to ``K[index][:, index]``.
    """
    keys = np.array([hashlib.sha256((row + 0).tobytes()).digest() for row in K], dtype=object)
    weights, index, inverse = _merged(keys, sample_weight)
    order = np.lexsort([weights, *_row_quantiles(K, index).T[::-1]])
    place = np.empty(len(order) + 1, dtype=np.intp)
    place[order] = np.arange(len(order))
    place[-1] = -1  # rows without a distinct row
    index = index[order]
    return Canonical(K[np.ix_(index, index)], weights[order], index, place[inverse])


def _merged(keys: Array, sample_weight: Floats | None) -> tuple[Floats, Indices, Indices]:
    """Return weights, index and inverse of the distinct keys of positive weight, sorted."""
    n = len(keys)
    given = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    _, index, inverse = np.unique(keys, return_index=True, return_inverse=True)
    # summed in ascending order, so that the order of the rows does not change the rounding
    order = np.lexsort((given, inverse))
    starts = np.searchsorted(inverse[order], np.arange(len(index)))
    sums = np.add.reduceat(given[order], starts)
    kept = sums > 0
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    return sums[kept], index[kept], place[inverse]


def _dense_keys(X: Array) -> Array:
    """Return one byte string per row; byte strings sort as the rows do."""
    flat = np.ascontiguousarray(X.reshape(len(X), -1) + 0)  # -0 + 0 is 0
    if np.iscomplexobj(flat):
        flat = flat.view(flat.real.dtype)
    if flat.shape[1] == 0:
        return np.zeros(len(X), dtype=np.intp)
    ordered = _ordered_bits(flat)
    return ordered.view(np.dtype((np.void, ordered.shape[1] * ordered.itemsize)))[:, 0]


def _ordered_bits(values: Array) -> Array:
    """Return unsigned integers, most significant byte first, that compare as these floats do."""
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    unsigned = np.dtype(f"u{values.itemsize}")
    bits = values.astype(values.dtype.newbyteorder("="), copy=False).view(unsigned)
    sign = unsigned.type(1 << (8 * values.itemsize - 1))
    # negative numbers grow with falling bits, and come before the others
    return np.where(bits & sign, ~bits, bits | sign).astype(unsigned.newbyteorder(">"))


def _sparse_keys(X: Any) -> Array:
    """Return one byte string per row; byte strings sort as the dense rows would.

    Every entry becomes a token (sign, column, value). Tokens of negative entries sort before the
    end of a row, earlier for smaller columns; those of positive entries after it, later for smaller
    columns.
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
    kept = values != 0  # explicit zeros, and parts of complex numbers
    ends = np.concatenate([[0], np.cumsum(kept)])[X.indptr * width]
    token = token[kept]
    keys = np.empty(X.shape[0], dtype=object)
    keys[:] = [token[a:b].tobytes() + b"\x01" for a, b in itertools.pairwise(ends)]
    return keys


def _row_quantiles(K: Array, index: Indices) -> Array:
    """Return order statistics of each row of K[index][:, index], a block of rows at a time."""
    m = len(index)
    ranks = np.unique(np.linspace(0, m - 1, min(m, _N_RANKS)).astype(np.intp))
    step = max(1, 2**20 // m)
    parts = [
        np.sort(K[np.ix_(index[start : start + step], index)], axis=1)[:, ranks]
        for start in range(0, m, step)
    ]
    return np.concatenate(parts) + 0
