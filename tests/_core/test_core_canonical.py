"""Data that mean the same have one canonical form, whatever their rows' order, copies and zeros."""

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


@st.composite
def weighted_rows(draw):
    n = draw(st.integers(1, 12))
    X = draw(hnp.arrays(np.float64, (n, draw(st.integers(1, 3))), elements=VALUES))
    weights = draw(hnp.arrays(np.float64, n, elements=WEIGHTS))
    weights[draw(st.integers(0, n - 1))] = 1.0
    return X, weights


def oracle(X, weights):
    """Sorted tuples with the sum of their weights, by a dictionary."""
    groups = {}
    for row, weight in zip((X + 0.0).tolist(), weights, strict=True):
        groups.setdefault(tuple(row), []).append(weight)
    return sorted((row, sum(sorted(w))) for row, w in groups.items() if sum(w) > 0)


@settings(max_examples=60, deadline=None)
@given(weighted_rows())
def test_rows_against_a_dictionary(case):
    X, weights = case
    found = canonical_rows(X, weights)
    expected = oracle(X, weights)
    np.testing.assert_array_equal(found.data, [row for row, _ in expected])
    np.testing.assert_allclose(found.weights, [weight for _, weight in expected], rtol=1e-15)
    np.testing.assert_array_equal(found.data, X[found.index])
    twins = found.inverse >= 0
    np.testing.assert_array_equal(found.data[found.inverse[twins]], X[twins])
    assert np.all(twins[weights > 0])
    kept = {row for row, _ in expected}
    assert all(tuple(row) not in kept for row in (X[~twins] + 0.0).tolist())


@settings(max_examples=100, deadline=None)
@given(weighted_rows(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(case, random):
    X, weights = case
    order = np.array(random.sample(range(len(X)), len(X)))
    plain, permuted = canonical_rows(X, weights), canonical_rows(X[order], weights[order])
    np.testing.assert_array_equal(permuted.data, plain.data)
    np.testing.assert_array_equal(permuted.weights, plain.weights)  # to the last bit
    np.testing.assert_array_equal(permuted.inverse, plain.inverse[order])


@settings(max_examples=100, deadline=None)
@given(weighted_rows())
def test_sparse_rows_are_sorted_as_dense_ones(case):
    X, weights = case
    dense, sparse = canonical_rows(X, weights), canonical_rows(scipy.sparse.csr_array(X), weights)
    np.testing.assert_array_equal(sparse.data.toarray(), dense.data)
    for name in ("weights", "index", "inverse"):
        np.testing.assert_array_equal(getattr(sparse, name), getattr(dense, name))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(40, 1), (40, 2, 2), (40, 1, 3)])
def test_types_and_dimensions(dtype, shape):
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, size=shape).astype(dtype)
    if np.iscomplexobj(X):
        X += 1j * rng.integers(-1, 2, size=shape)
    found = canonical_rows(X)
    flat = found.data.reshape(len(found.data), -1)
    assert found.data.dtype == dtype
    np.testing.assert_array_equal(flat, np.unique(X.reshape(40, -1), axis=0))
    np.testing.assert_array_equal(found.data[found.inverse], X)
    np.testing.assert_array_equal(found.weights, np.bincount(found.inverse))
    if X.ndim == 2:
        sparse = canonical_rows(scipy.sparse.csr_array(X))
        np.testing.assert_array_equal(sparse.data.toarray(), found.data)
        np.testing.assert_array_equal(sparse.inverse, found.inverse)


def test_wide_rows_are_sorted_as_by_lexsort():
    X = np.random.default_rng(1).standard_normal((200, 30))
    X[:, 0] = np.round(X[:, 0])  # ties, which the next columns decide
    np.testing.assert_array_equal(canonical_rows(X).index, np.lexsort(X.T[::-1]))


def test_a_sparse_row_is_its_values_however_they_are_stored():
    """Explicit zeros, unsorted columns and entries in parts are the same row; and stay as given."""
    data = np.array([2.0, 0.0, 1.0, 1.0, 1.0, 2.0])
    X = scipy.sparse.csr_array((data, [2, 0, 1, 1, 1, 2], [0, 3, 4, 6]), shape=(3, 3))
    before = X.copy()
    found = canonical_rows(X)
    np.testing.assert_array_equal(found.data.toarray(), [[0, 1, 0], [0, 1, 2]])
    np.testing.assert_array_equal(found.inverse, [1, 0, 1])
    np.testing.assert_array_equal(X.data, before.data)
    np.testing.assert_array_equal(X.indices, before.indices)


def test_the_data_are_copies():
    X = np.array([[1.0], [2.0]])
    canonical_rows(X).data[...] = 0
    np.testing.assert_array_equal(X, [[1.0], [2.0]])


# ------------------------------------------------------------------ Gram matrices


@settings(max_examples=60, deadline=None)
@given(weighted_rows(), st.randoms(use_true_random=False))
def test_a_gram_matrix_is_merged_as_its_points_are(case, random):
    """Points of distinct lengths, so that no two rows of their matrix have the same values."""
    X, weights = case
    groups = canonical_rows(X)
    points = 1.0 + groups.inverse  # equal where the rows of X are
    K = np.exp(-np.abs(points[:, None] - points)) * np.sqrt(points[:, None] * points)
    rows, found = canonical_rows(points[:, None], weights), canonical_gram(K, weights)
    order = np.argsort(points[found.index])
    np.testing.assert_array_equal(found.data, K[np.ix_(found.index, found.index)])
    np.testing.assert_array_equal(found.weights[order], rows.weights)
    np.testing.assert_array_equal(found.inverse < 0, rows.inverse < 0)
    twins = np.flatnonzero(found.inverse >= 0)
    np.testing.assert_array_equal(K[found.index[found.inverse[twins]]], K[twins])

    shuffle = np.array(random.sample(range(len(K)), len(K)))
    permuted = canonical_gram(K[np.ix_(shuffle, shuffle)], weights[shuffle])
    np.testing.assert_array_equal(permuted.data, found.data)
    np.testing.assert_array_equal(permuted.weights, found.weights)
    np.testing.assert_array_equal(permuted.inverse, found.inverse[shuffle])


def test_a_large_gram_matrix_is_sorted_by_its_quantiles():
    rng = np.random.default_rng(2)
    X = np.repeat(rng.standard_normal((300, 4)), rng.integers(1, 4, 300), axis=0)
    K = np.exp(-np.square(X[:, None] - X).sum(axis=-1))
    found = canonical_gram(K)
    assert len(found.weights) == 300
    order = rng.permutation(len(X))
    permuted = canonical_gram(K[np.ix_(order, order)])
    np.testing.assert_array_equal(permuted.data, found.data)
    np.testing.assert_array_equal(permuted.inverse, found.inverse[order])


def test_negative_zeros_in_a_gram_matrix():
    K = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, -0.0], [0.0, -0.0, 1.0]])
    np.testing.assert_array_equal(np.sort(canonical_gram(K).weights), [1, 2])


def test_rows_without_columns_are_one():
    found = canonical_rows(np.empty((3, 0)), np.array([1.0, 2.0, 0.5]))
    assert found.data.shape == (1, 0)
    assert found.weights.tolist() == [3.5]
    assert found.inverse.tolist() == [0, 0, 0]


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_integers_are_sorted_as_numbers(form):
    """Their own bits would put -1 after 300, and 256 before 1."""
    found = canonical_rows(form(np.array([[300], [1], [-1], [256], [1]])))
    data = found.data if form is np.asarray else found.data.toarray()
    assert data.ravel().tolist() == [-1, 1, 256, 300]
    assert found.inverse.tolist() == [3, 1, 0, 2, 1]
