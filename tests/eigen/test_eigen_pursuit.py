"""Projection pursuit and the spatial median, compared with exhaustive searches."""

import numpy as np
import pytest
import scipy.optimize

from orthodrome.eigen.pursuit import projection_pursuit, spatial_median

every_power = pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0])


def cloud(n=80, m=4, seed=0):
    points = np.random.default_rng(seed).standard_normal((n, m)) * np.linspace(2, 0.5, m)
    return points - points.mean(axis=0)


@every_power
@pytest.mark.parametrize("seed", range(5))
def test_in_the_plane_no_direction_is_better(p, seed):
    points = cloud(30, 2, seed)
    found = projection_pursuit(points, np.ones(30), 1, p=p)
    angles = np.linspace(0, np.pi, 5001)
    values = (np.abs(points @ np.array([np.cos(angles), np.sin(angles)])) ** p).mean(axis=0)
    assert found.dispersions[0] >= values.max() - 1e-4 * values.max()


@every_power
def test_points_without_extent(p):
    found = projection_pursuit(np.zeros((5, 3)), np.ones(5), 3, p=p)
    np.testing.assert_allclose(found.directions.T @ found.directions, np.eye(3), atol=1e-12)
    np.testing.assert_array_equal(found.dispersions, 0)
    line = np.outer(np.arange(-2.0, 3.0), [0.6, 0.8, 0.0])
    found = projection_pursuit(line, np.ones(5), 3, p=p)
    np.testing.assert_allclose(np.abs(found.directions[:, 0]), [0.6, 0.8, 0.0], atol=1e-9)
    np.testing.assert_allclose(found.directions.T @ found.directions, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_median_has_the_least_sum_of_distances(seed):
    rng = np.random.default_rng(seed)
    points, weights = rng.standard_normal((15, 3)), rng.random(15)

    def cost(c):
        return weights @ np.linalg.norm(points - c, axis=1)

    found = spatial_median(points, weights)
    best = scipy.optimize.minimize(cost, points.mean(axis=0), options={"gtol": 1e-10}).fun
    assert cost(found) <= best * (1 + 1e-9)
    heavy = weights.copy()
    heavy[3] = 20.0  # more than all the others: it is the median
    np.testing.assert_allclose(spatial_median(points, heavy), points[3], atol=1e-6)


def test_medians_of_few_points():
    # the search begins at the mean, which is that point: others pull with 1, and it holds with 3
    points, weights = np.array([[-2.0], [0.0], [1.0]]), np.array([1.0, 3.0, 2.0])
    np.testing.assert_array_equal(spatial_median(points, weights), [0.0])
    np.testing.assert_array_equal(spatial_median(np.ones((4, 2)), np.ones(4)), [1, 1])
    np.testing.assert_allclose(spatial_median(np.array([[0.0], [1.0], [5.0]]), np.ones(3)), [1])
