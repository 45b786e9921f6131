"""Laws of initial centres: distinct points, their number and frequencies."""

from types import SimpleNamespace

import numpy as np
import pytest

from laws_kmeans import cloud
from orthodrome.sphere.lloyd import SEEDINGS

every_seeding = pytest.mark.parametrize("seeding", SEEDINGS.values(), ids=SEEDINGS)
by_distance = pytest.mark.parametrize("name", ["k-means++", "farthest-first"])


def distances(X, p=2):
    """`squared` of the seedings, and the whole matrix."""
    matrix = np.sum((X[:, None] - X[None]) ** 2, axis=-1) ** (p / 2)
    return (lambda indices: matrix[:, indices]), matrix


def draw(name, X, k, seed=0, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    return SEEDINGS[name](distances(X)[0], weights, k, np.random.RandomState(seed))


@every_seeding
def test_points_are_distinct_and_reproducible(seeding):
    X = cloud(30)
    for seed in range(10):
        chosen = seeding(distances(X)[0], np.ones(30), 7, np.random.RandomState(seed))
        assert len(set(chosen.tolist())) == len(chosen) == 7
        assert chosen.dtype.kind == "i"
        again = seeding(distances(X)[0], np.ones(30), 7, np.random.RandomState(seed))
        np.testing.assert_array_equal(chosen, again)
    assert sorted(seeding(distances(X)[0], np.ones(30), 30, np.random.RandomState(0))) == list(
        range(30)
    )


@by_distance
def test_coincident_points_are_taken_once(name):
    X = np.repeat(cloud(5), 6, axis=0)
    for seed in range(10):
        chosen = draw(name, X, 9, seed)
        assert sorted(chosen // 6) == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(draw(name, np.ones((4, 2)), 3) >= 0, [True])


def test_farthest_first_equals_a_naive_loop():
    X = cloud(40)
    _, matrix = distances(X)
    for seed in range(5):
        found = draw("farthest-first", X, 8, seed)
        chosen = [int(found[0])]
        for _ in range(7):
            nearest = [min(matrix[i, j] for j in chosen) for i in range(40)]
            chosen.append(max(range(40), key=nearest.__getitem__))
        np.testing.assert_array_equal(found, chosen)
    assert len({int(draw("farthest-first", X, 1, seed)[0]) for seed in range(60)}) > 20


@pytest.mark.parametrize("name", SEEDINGS)
def test_the_first_point_follows_the_weights(name):
    """Frequencies of 3000 draws lie within chi-square of probabilities (99.9 % of 4 degrees)."""
    X, w = cloud(5), np.array([1.0, 2.0, 3.0, 0.0, 4.0])
    random = np.random.RandomState(0)
    drawn = [SEEDINGS[name](distances(X)[0], w, 1, random)[0] for _ in range(3000)]
    counts, expected = np.bincount(drawn, minlength=5), 300 * w
    assert counts[3] == 0
    assert np.sum((counts - expected)[w > 0] ** 2 / expected[w > 0]) < 18.5


def test_k_means_plus_plus_draws_by_weighted_squared_distances():
    """Scripted: of points at 0, 1, 3, 3 the pulls are w d², and of candidates the best is kept."""
    X, w = np.array([[0.0], [1.0], [3.0], [3.0]]), np.array([1.0, 4.0, 1.0, 2.0])
    pulls = np.cumsum(w * [0.0, 1.0, 9.0, 9.0]) / 31

    def chosen(*numbers):
        random = SimpleNamespace(uniform=iter([0.01, *numbers]).__next__)
        return SEEDINGS["k-means++"](distances(X)[0], w, 2, random).tolist()

    for candidate in (1, 2, 3):
        middle = (pulls[candidate - 1] + pulls[candidate]) / 2
        assert chosen(middle, middle) == [0, candidate]  # 2 + log 2 candidates, the same one
    # 1 would leave 4 · 3 = 12, and 3 leaves 4: the better of the two candidates is taken
    low, high = (pulls[0] + pulls[1]) / 2, (pulls[2] + pulls[3]) / 2
    assert chosen(low, high) == chosen(high, low) == [0, 3]
