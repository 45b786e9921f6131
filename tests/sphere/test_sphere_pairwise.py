"""Geodesic distance matrices: unit vectors, and feature vectors of kernels."""

import numpy as np
import pytest

from orthodrome.sphere import distance, geodesic_distances

TOLERANCE = {np.float64: 1e-12, np.float32: 2e-4}


def unit_vectors(m, d, dtype=np.float64, seed=0):
    X = np.random.default_rng(seed).standard_normal((m, d))
    return (X / np.linalg.norm(X, axis=1)[:, None]).astype(dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_unit_vectors(dtype):
    X, Y = unit_vectors(7, 4, dtype), unit_vectors(5, 4, dtype, seed=1)
    angles = geodesic_distances(X, Y)
    assert angles.dtype == dtype
    geodesic_distances((X * (1 + 5e-6)).astype(np.float32))  # unit length to its precision
    expected = np.stack([distance(x, Y) for x in X])
    np.testing.assert_allclose(angles, expected, rtol=TOLERANCE[dtype])
    both = geodesic_distances(X)
    np.testing.assert_array_equal(np.diagonal(both), 0)
    np.testing.assert_allclose(both, both.T, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("angle", [1e-200, 1e-150, 1e-9, 0.3, 3.0, np.pi - 1e-7, np.pi])
def test_every_angle_between_unit_vectors(angle):
    points = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    found = geodesic_distances(points)[0, 1]
    np.testing.assert_allclose(found, angle, rtol=1e-14)
    assert geodesic_distances(points[:1], points[1:])[0, 0] == found, "one pair, and no other"
    np.testing.assert_allclose(np.pi - found, np.pi - angle, rtol=1e-8, atol=1e-15)


def test_precomputed_matrices():
    X = unit_vectors(6, 3)
    X[3] = X[2]
    angles = geodesic_distances(4 * X @ X.T, kernel="precomputed")
    np.testing.assert_allclose(angles, geodesic_distances(X), rtol=0, atol=1e-7)
