"""The sign of an eigenvector: from the third moment of all rows, not from one entry."""

import numpy as np
import pytest

from orthodrome.eigen.pairs import orient

EMBEDDING = np.random.default_rng(5).gumbel(size=(60, 7))
WEIGHTS = np.random.default_rng(6).integers(0, 5, size=60)


def test_third_moment_is_positive():
    moments = (EMBEDDING**3).sum(axis=0)
    np.testing.assert_array_equal(orient(EMBEDDING), np.sign(moments))
    assert np.all(((EMBEDDING * orient(EMBEDDING)) ** 3).sum(axis=0) > 0)


def test_order_scale_and_precision_do_not_matter_and_a_flip_does():
    signs, flips = orient(EMBEDDING), np.array([1, -1, -1, 1, -1, 1, 1.0])
    np.testing.assert_array_equal(orient(EMBEDDING * flips), signs * flips)
    np.testing.assert_array_equal(orient(EMBEDDING.astype(np.float32)), signs)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(EMBEDDING))
        np.testing.assert_array_equal(orient(EMBEDDING[order]), signs)
    for scale in (1e-200, 1e-20, 1e20, 1e200):
        np.testing.assert_array_equal(orient(EMBEDDING * scale), signs)
    np.testing.assert_array_equal(orient(np.zeros((4, 2))), [1, 1])


def test_weights_are_repetitions():
    repeated = np.repeat(EMBEDDING, WEIGHTS, axis=0)
    np.testing.assert_array_equal(orient(EMBEDDING, WEIGHTS), orient(repeated))
    # a row of weight 0 does not count, not even where the entry of largest modulus decides
    symmetric = np.array([[100.0], [-2.0], [2.0]])
    assert orient(symmetric, np.array([0.0, 1.0, 1.0])) == orient(symmetric[1:]) == -1


@pytest.mark.parametrize("first", [-3.0, 3.0])
def test_symmetric_columns_take_the_first_of_the_largest(first):
    column = np.array([1.0, first, -1.0, -first])[:, None]
    assert orient(column) == np.sign(first)
    # rounding of the other entries changes nothing
    assert orient(column * (1 + 1e-12 * np.arange(4)[::-1, None])) == np.sign(first)
