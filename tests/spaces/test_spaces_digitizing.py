"""Mistakes in landmarks are found and named; missing landmarks are estimated."""

import numpy as np
import pytest

from orthodrome.spaces import (
    estimate_landmarks,
    find_landmark_errors,
    procrustes_distance,
    reflect_specimens,
)

every_dimension = pytest.mark.parametrize("m", [2, 3])


def specimens(m, n=30, k=9, noise=0.03, seed=0):
    """Noisy copies of one shape, rotated, scaled and moved."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((k, m)) + noise * random.standard_normal((n, k, m))
    turns = np.linalg.qr(random.standard_normal((n, m, m)))[0]
    turns[:, :, 0] *= np.linalg.det(turns)[:, None]
    return X @ turns * random.uniform(1, 5, (n, 1, 1)) + random.uniform(-9, 9, (n, 1, m))


@every_dimension
def test_good_specimens_are_not_reported(m):
    found = find_landmark_errors(specimens(m))
    assert not found.swapped
    assert not found.displaced
    assert len(found.mirrored) == len(found.outlying) == 0
    assert np.all(found.distances <= found.limit)


@every_dimension
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_each_mistake_is_found_and_named(m, scale):
    X = specimens(m)
    X[[2, 11]] *= [-1.0] + [1.0] * (m - 1)
    X[5, [1, 6]] = X[5, [6, 1]]
    X[7, 4] += 3 * np.ptp(X[7], axis=0)
    X[9] = np.random.default_rng(1).standard_normal(X[9].shape)
    found = find_landmark_errors(X * scale)
    assert found.mirrored.tolist() == [2, 11]
    assert found.swapped == [(5, 1, 6)]
    assert found.displaced == [(7, 4)]
    assert found.outlying.tolist() == [9]
    again = find_landmark_errors(reflect_specimens(X, found.mirrored))
    assert len(again.mirrored) == 0
    np.testing.assert_allclose(
        np.delete(again.distances, [2, 11]), np.delete(found.distances, [2, 11]), rtol=0.05
    )


@every_dimension
def test_the_smaller_half_is_mirrored(m):
    X = reflect_specimens(specimens(m), np.arange(13))
    assert find_landmark_errors(X).mirrored.tolist() == list(range(13))


def test_distances_are_procrustes_distances():
    X = specimens(2)
    found = find_landmark_errors(X)
    # the reference is a median, so compare with the distances from one specimen near it
    nearest = X[np.argmin(found.distances)]
    expected = procrustes_distance(X, nearest[None])[:, 0]
    assert np.all(np.abs(found.distances - expected) <= found.distances.min() + 1e-12)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_few_specimens_are_not_judged(n):
    found = find_landmark_errors(specimens(2, n))
    assert len(found.mirrored) == len(found.outlying) == 0


def test_equal_and_degenerate_specimens():
    same = np.repeat(specimens(2, 1), 8, axis=0)
    assert len(find_landmark_errors(same).outlying) == 0
    same[3] = 0.0  # all landmarks coincide
    assert find_landmark_errors(same).outlying.tolist() == [3]


@every_dimension
def test_estimates_are_near_the_truth(m):
    X = specimens(m, noise=0.01)
    missing = np.random.default_rng(3).random(X.shape[:2]) < 0.15
    missing[:10] = False
    with_gaps = np.where(missing[:, :, None], np.nan, X)
    filled, estimated = estimate_landmarks(with_gaps)
    np.testing.assert_array_equal(estimated, missing)
    np.testing.assert_array_equal(filled[~missing], X[~missing])
    sizes = np.linalg.norm(X - X.mean(axis=1, keepdims=True), axis=(1, 2))
    errors = np.linalg.norm(filled - X, axis=2) / sizes[:, None]
    assert errors.max() < 0.05


def test_estimates_with_landmarks_on_a_line():
    X = specimens(2, 6, 5, noise=0)
    X[:, :3] = X[:, [0]] + np.arange(3)[:, None] * (X[:, [1]] - X[:, [0]])
    with_gaps = X.copy()
    with_gaps[5, 3:] = np.nan
    np.testing.assert_allclose(estimate_landmarks(with_gaps)[0], X, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[:, :, 0], r"must be landmarks of shape \(n, k, 2\) or \(n, k, 3\); got"),
        (lambda X: np.where(np.arange(9)[:, None] < 8, X, np.nan), "All specimens have missing"),
        (
            lambda X: np.where(
                (np.arange(9)[:, None] < 7) & (np.arange(30) == 4)[:, None, None], np.nan, X
            ),
            "Specimen 4 has 2 landmarks; .* at least 3",
        ),
    ],
)
def test_what_cannot_be_estimated(change, message):
    with pytest.raises(ValueError, match=message):
        estimate_landmarks(change(specimens(2)))


def test_missing_landmarks_are_refused():
    X = specimens(2)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="call estimate_landmarks"):
        find_landmark_errors(X)
