"""The pivoted Cholesky factor, and isometric coordinates."""

import numpy as np
import pytest

from orthodrome.coordinates import (
    anchor_coordinates,
    choose_anchors,
    isometric_coordinates,
    pivoted_cholesky,
)
from orthodrome.coordinates.isometry import principal_coordinates
from orthodrome.gram import DenseGram
from orthodrome.kernels import Linear

EPS = np.finfo(float).eps


def integers(n, rank, dtype=np.float64, seed=0):
    """A matrix of integers, which float32 represents exactly."""
    Y = np.random.default_rng(seed).integers(-9, 10, size=(n, rank))
    return (Y @ Y.T).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rank", [0, 1, 3, 20])
def test_low_rank_is_found(rank, dtype):
    K = integers(50, rank, dtype)
    factor, residual = pivoted_cholesky(DenseGram(K), tol=64 * EPS, max_rank=50)
    assert factor.shape == (50, rank)
    assert factor.dtype == np.float64
    assert residual <= 64 * EPS * K.diagonal().max()
    np.testing.assert_allclose(factor @ factor.T, K, rtol=0, atol=1e-12 * np.abs(K).max())


def test_pivots_and_residuals():
    factor, residual = pivoted_cholesky(DenseGram(integers(30, 10)), tol=1e-12, max_rank=4)
    assert factor.shape == (30, 4)
    assert residual > 1e-3
    factor, _ = pivoted_cholesky(DenseGram(np.diag([1.0, 4.0, 2.0])), tol=1e-12, max_rank=3)
    np.testing.assert_allclose(factor, [[0, 0, 1], [2, 0, 0], [0, np.sqrt(2), 0]], rtol=1e-15)
    indefinite = DenseGram(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert pivoted_cholesky(indefinite, tol=1e-12, max_rank=2)[1] == 3.0


FULL = np.random.default_rng(4).standard_normal((30, 6)) * [5, 3, 2, 1, 0.5, 0.1]
POINTS = {
    "full": FULL,
    "rank two": FULL[:, :2] @ FULL[:2, :2],
    "rank one": FULL[:, :1],
    "zero": 0 * FULL,
}


@pytest.mark.parametrize("case", POINTS)
@pytest.mark.parametrize("by", ["matrix", "features"])
def test_coordinates_have_the_inner_products_of_the_points(case, by):
    X = POINTS[case]
    if by == "matrix":
        found, anchored = isometric_coordinates(DenseGram(X @ X.T)), X
    else:
        kernel = Linear().fit(X)
        anchors = choose_anchors(kernel, X, 30, random_state=0)
        found = principal_coordinates(anchor_coordinates(kernel, X, anchors))
        anchored = anchors.points
    scale = max(np.abs(X @ X.T).max(), 1.0)
    rank = np.linalg.matrix_rank(X)
    assert found.points.shape == (30, max(rank, 2))
    assert found.decoder.shape == (len(anchored), max(rank, 2))
    np.testing.assert_allclose(found.points @ found.points.T, X @ X.T, atol=1e-12 * scale)
    # orthogonal axes, in order of decreasing length
    second = found.points.T @ found.points
    np.testing.assert_allclose(second, np.diag(np.diag(second)), atol=1e-12 * scale * 30)
    assert np.all(np.diff(np.diag(second)) <= 0)
    if case in ("full", "rank one"):
        new = np.random.default_rng(5).standard_normal((4, X.shape[1]))
        products = (new @ anchored.T) @ found.decoder
        np.testing.assert_allclose(products @ found.points.T, new @ X.T, atol=1e-10 * scale)


def test_indefinite_matrices_raise():
    with pytest.raises(ValueError, match=r"not positive definite .* eigenvalue -1"):
        isometric_coordinates(DenseGram(np.array([[1.0, 2.0], [2.0, 1.0]])))
    with pytest.raises(ValueError, match="overflow"):
        isometric_coordinates(DenseGram(np.array([[np.inf, 2.0], [2.0, 1.0]]), check=False))
