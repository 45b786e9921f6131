"""Geodesic distance matrices: unit vectors, and feature vectors of kernels."""

import numpy as np
import pytest

from orthodrome.kernels import (
    Cosine,
    Exponential,
    Gaussian,
    Normalized,
    Polynomial,
    as_kernel,
)
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


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(2.0),
        Exponential(2.0),
        Normalized(Polynomial(3)),
        Cosine(),
        "laplacian",
        lambda X, Y: 4 * np.exp(-np.abs(X[:, :1] - Y[:, 0])),
    ],
    ids=lambda kernel: getattr(type(kernel), "__name__", kernel),
)
def test_kernels_at_moderate_angles(kernel, dtype):
    X = np.random.default_rng(2).standard_normal((9, 3)).astype(dtype)
    Y = np.random.default_rng(3).standard_normal((6, 3)).astype(dtype)
    fitted = as_kernel(kernel).fit(X)
    angles = geodesic_distances(X, Y, kernel=kernel)
    assert angles.dtype == geodesic_distances(X, kernel=kernel).dtype == dtype
    if dtype is np.float64:
        values = fitted(X, Y) / fitted.diag(X[:1])
        np.testing.assert_allclose(angles, np.arccos(values), rtol=0, atol=1e-7)
    matrix = 4 * fitted(X)
    assert geodesic_distances(matrix, kernel="precomputed").dtype == matrix.dtype


def test_near_and_far_points_under_a_gaussian():
    """θ² = d²/σ² (1 - d²/6σ² + …), of which arccos k is 0 below 1e-8."""
    for ratio in (1e-12, 1e-8, 1e-5, 1e-2):
        angle = geodesic_distances([[0.0], [3 * ratio]], kernel=Gaussian(sigma=3.0))[0, 1]
        np.testing.assert_allclose(angle, ratio * (1 - ratio**2 / 12), rtol=1e-8)
    angles = geodesic_distances([[0.0], [1e8]], kernel=Gaussian(sigma=1.0))
    np.testing.assert_array_equal(angles, [[0, np.pi / 2], [np.pi / 2, 0]])
