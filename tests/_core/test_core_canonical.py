"""The canonical form does not depend on the order of rows, on copies or on rows of weight 0."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from orthodrome._core.canonical import canonical_gram, canonical_rows

# few values, so that rows often repeat; -0.0 among them
VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, -2.5, 1e300, -5e-324])
WEIGHTS = st.sampled_from([0.0, 1.0, 2.0, 0.1, 0.2, 0.3])
equal = np.testing.assert_array_equal


@st.composite
def weighted_rows(draw):
    """Rows, weights and a permutation."""
    n = draw(st.integers(1, 12))
    X = draw(hnp.arrays(np.float64, (n, draw(st.integers(1, 3))), elements=VALUES))
    weights = draw(hnp.arrays(np.float64, n, elements=WEIGHTS))
    weights[draw(st.integers(0, n - 1))] = 1.0
    return X, weights, np.array(draw(st.permutations(range(n))))


def oracle(X, weights):
    """Sorted tuples with the sum of their weights, by a dictionary."""
    groups = {}
    for row, weight in zip((X + 0.0).tolist(), weights, strict=True):
        groups.setdefault(tuple(row), []).append(weight)
    return sorted((row, sum(sorted(w))) for row, w in groups.items() if sum(w) > 0)


@settings(max_examples=100, deadline=None)
@given(weighted_rows())
def test_rows_equal_a_dictionary(case):
    X, weights, order = case
    found, expected = canonical_rows(X, weights), oracle(X, weights)
    equal(found.data, [row for row, _ in expected])
    np.testing.assert_allclose(found.weights, [weight for _, weight in expected], rtol=1e-15)
    equal(found.data, X[found.index])
    merged = found.inverse >= 0
    equal(found.data[found.inverse[merged]], X[merged])
    assert np.all(merged[weights > 0])
    kept = {row for row, _ in expected}
    assert all(tuple(row) not in kept for row in (X[~merged] + 0.0).tolist())

    permuted = canonical_rows(X[order], weights[order])
    equal(permuted.data, found.data)
    equal(permuted.weights, found.weights)  # to the last bit
    equal(permuted.inverse, found.inverse[order])

    sparse = canonical_rows(scipy.sparse.csr_array(X), weights)
    equal(sparse.data.toarray(), found.data)
    for name in ("weights", "index", "inverse"):
        equal(getattr(sparse, name), getattr(found, name))


@settings(max_examples=60, deadline=None)
@given(weighted_rows())
def test_a_gram_matrix_is_merged_as_its_points_are(case):
    """Points of distinct lengths, so that no two rows of their matrix have the same values."""
    X, weights, order = case
    points = 1.0 + canonical_rows(X).inverse  # equal where the rows of X are
    K = np.exp(-np.abs(points[:, None] - points)) * np.sqrt(points[:, None] * points)
    rows, found = canonical_rows(points[:, None], weights), canonical_gram(K, weights)
    equal(found.data, K[np.ix_(found.index, found.index)])
    equal(found.weights[np.argsort(points[found.index])], rows.weights)
    equal(found.inverse < 0, rows.inverse < 0)
    merged = np.flatnonzero(found.inverse >= 0)
    equal(K[found.index[found.inverse[merged]]], K[merged])

    permuted = canonical_gram(K[np.ix_(order, order)], weights[order])
    equal(permuted.data, found.data)
    equal(permuted.weights, found.weights)
    equal(permuted.inverse, found.inverse[order])


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(40, 1), (40, 2, 2), (40, 1, 3), (40, 30), (40, 0)])
def test_types_and_dimensions(dtype, shape):
    rng = np.random.default_rng(0)
    X = rng.integers(-300, 300, size=shape).astype(dtype)
    X[:, :1] = rng.integers(-1, 2, size=X[:, :1].shape)  # ties
    if np.iscomplexobj(X):
        X += 1j * rng.integers(-1, 2, size=shape)
    found = canonical_rows(X)
    flat = found.data.reshape(len(found.data), -1)
    assert found.data.dtype == dtype
    equal(flat, np.unique(X.reshape(40, -1), axis=0))
    equal(found.data[found.inverse], X)
    equal(found.weights, np.bincount(found.inverse))
    if X.ndim == 2 and X.size:
        sparse = canonical_rows(scipy.sparse.csr_array(X))
        equal(sparse.data.toarray(), found.data)
        equal(sparse.inverse, found.inverse)
    before = X.copy()
    found.data[...] = 7  # a copy
    equal(X, before)
