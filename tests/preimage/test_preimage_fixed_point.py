"""Pre-images by the fixed point, for every radial kernel."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from laws_preimage import (
    CUSPS,
    RADIAL,
    SMOOTH,
    climb,
    cloud,
    expansions,
    gradient,
    objective,
    starts,
)
from orthodrome.kernels import Exponential, Gaussian, Matern, RationalQuadratic
from orthodrome.preimage import preimage
from orthodrome.preimage.fixed_point import Vectors, fixed_point

every_kernel = pytest.mark.parametrize("kernel", RADIAL.values(), ids=RADIAL)
smooth_kernel = pytest.mark.parametrize("kernel", SMOOTH.values(), ids=SMOOTH)
every_kind = pytest.mark.parametrize("kind", ["few", "all", "mixed"])


@every_kernel
def test_preimage_of_a_single_point(kernel):
    X = cloud()
    result = preimage(kernel(), X, np.eye(len(X)))
    np.testing.assert_allclose(result.points, X, rtol=0, atol=1e-12)
    expected = kernel().fit(X).diag(X)
    np.testing.assert_allclose(result.similarity, expected, rtol=1e-12, atol=1e-12)
    assert result.converged
    assert result.method == "fixed-point"


@every_kind
@smooth_kernel
def test_gradient_vanishes(kernel, kind):
    X = cloud()
    kernel = kernel().fit(X)
    spread = np.sqrt(X.var(axis=0).sum())
    beta = expansions(kind, len(X))
    result = preimage(kernel, X, beta, tol=1e-9, max_iter=5000)
    for row, z in zip(beta, result.points, strict=True):
        slope = gradient(kernel, X, row, z, step=1e-4 * spread)
        steepest = max(np.linalg.norm(gradient(kernel, X, row, x, 1e-4 * spread)) for x in X)
        assert np.linalg.norm(slope) <= 1e-6 * steepest


@every_kind
@every_kernel
def test_objective_is_never_below_the_starts(kernel, kind):
    X = cloud()
    kernel = kernel().fit(X)
    beta = expansions(kind, len(X))
    result = preimage(kernel, X, beta, max_iter=2000)
    for row, z, reached in zip(beta, result.points, result.similarity, strict=True):
        value = objective(kernel, X, row, z)
        np.testing.assert_allclose(value, reached, rtol=1e-12)
        for start in starts(kernel, X, row):
            assert value >= objective(kernel, X, row, start) - 1e-12 * abs(value)


@pytest.mark.slow
@every_kernel
def test_no_optimiser_does_better_from_the_same_starts(kernel):
    X = cloud(n=25, d=2)
    kernel = kernel().fit(X)
    beta = np.concatenate([expansions(kind, len(X), m=2, seed=1) for kind in ("few", "mixed")])
    result = preimage(kernel, X, beta, tol=1e-8, max_iter=5000)
    for row, reached in zip(beta, result.similarity, strict=True):
        assert reached >= climb(kernel, X, row) - 1e-9


@every_kernel
def test_batches_and_duplicates(kernel):
    """Expansions do not affect each other; a duplicate adds to the coefficient."""
    X, beta = cloud(), expansions("mixed", len(cloud()))
    kernel = kernel().fit(X)
    options = {"tol": 1e-9, "max_iter": 5000}
    together = preimage(kernel, X, beta, **options).points
    for row, z in zip(beta, together, strict=True):
        alone = preimage(kernel, X, row, **options).points
        assert alone.shape == (1, X.shape[1])
        np.testing.assert_allclose(alone[0], z, rtol=0, atol=1e-6)
    few = expansions("few", len(X))
    split = np.concatenate([few, 0.25 * few[:, :10]], axis=1)
    split[:, :10] -= split[:, len(X) :]
    expected = preimage(kernel, X, few, **options).points
    found = preimage(kernel, np.concatenate([X, X[:10]]), split, **options).points
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("coefficient", [0.0, 1e-6])
@every_kernel
def test_training_points_do_not_hold_the_iterate(kernel, coefficient):
    """At distance 0 the weight h'(0) of a cusp is infinite; the point is left out instead."""
    X = cloud()
    kernel = kernel().fit(X)
    beta = np.zeros(len(X))
    beta[[1, 2, 3]] = 0.5, 0.3, 0.2
    far = int(np.argmax(np.linalg.norm(X - beta @ X, axis=1) * (beta == 0)))
    near = int(np.argmin(np.linalg.norm(X - beta @ X, axis=1) + 1e9 * (beta > 0)))
    beta[[far, near]] = coefficient
    starts = X[[near, far]]
    result = fixed_point(Vectors(kernel, X), np.stack([beta, beta]), starts, 1e-8, 5000)
    best = preimage(kernel, X, beta, tol=1e-8, max_iter=5000).similarity[0]
    for index, reached in zip((near, far), result.objective, strict=True):
        start = objective(kernel, X, beta, X[index])
        if abs(kernel.profile_derivative(np.sum((X[index] - X[1]) ** 2))) > 0:  # not beyond support
            assert reached > start + 0.1 * (best - start)


def test_the_mean_is_a_start():
    """Each corner of this triangle is a local maximum, at a cusp; the best lies between them."""
    angles = 2 * np.pi * np.arange(3) / 3
    corners = np.column_stack([np.cos(angles), np.sin(angles)])
    points = preimage(Exponential(sigma=3.0), corners, [1 / 3] * 3).points
    np.testing.assert_allclose(points, [[0.0, 0.0]], atol=1e-6)


# ------------------------------------------------------------------ extremes


@pytest.mark.parametrize("sigma", [1e-3, 1e-8, 1e-100])
@pytest.mark.parametrize(
    "kernel", [Gaussian, Exponential, Matern, *(CUSPS[name] for name in ("spherical", "circular"))]
)
def test_tiny_sigma(kernel, sigma):
    """All weights underflow, but for a point with itself: the heaviest point is the answer."""
    X = cloud()
    beta = expansions("all", len(X))
    result = preimage(kernel().set_params(sigma=sigma), X, beta)
    np.testing.assert_allclose(result.points, X[beta.argmax(axis=1)], rtol=1e-14)
    assert result.converged


@pytest.mark.parametrize("kind", ["few", "mixed"])
@pytest.mark.parametrize("kernel", [Gaussian, lambda sigma: Matern(2.5, sigma), RationalQuadratic])
def test_huge_sigma(kernel, kind):
    X = cloud()
    beta = 3 * expansions(kind, len(X))
    kernel = RationalQuadratic(sigma=1e6) if kernel is RationalQuadratic else kernel(1e6)
    points = preimage(kernel, X, beta).points
    np.testing.assert_allclose(points, beta @ X / beta.sum(axis=1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("offset", [1e3, 1e6])
@every_kernel
def test_far_from_the_origin(kernel, offset):
    X = cloud()
    beta = expansions("few", len(X))
    options = {"tol": 1e-8, "max_iter": 2000}
    near = preimage(kernel(), X, beta, **options)
    far = preimage(kernel(), X + offset, beta, **options)
    np.testing.assert_allclose(far.points - offset, near.points, rtol=0, atol=1e-10 * offset + 1e-6)
    np.testing.assert_allclose(far.similarity, near.similarity, rtol=1e-7)


@pytest.mark.parametrize("offset", [0.0, 100.0, 1e5])
@every_kernel
def test_float32(kernel, offset):
    X = cloud()
    beta = expansions("few", len(X))
    exact = preimage(kernel(), X + offset, beta, max_iter=2000)
    single = preimage(kernel(), (X + offset).astype(np.float32), beta.astype(np.float32))
    assert single.points.dtype == single.similarity.dtype == np.float32
    # at the top of a smooth hill, half the digits of the place are lost; inputs are rounded
    eps = np.finfo(np.float32).eps
    tolerance = 10 * np.sqrt(eps) + 2 * eps * offset
    np.testing.assert_allclose(single.points, exact.points, rtol=0, atol=tolerance)


def test_max_iter_is_reported():
    X = cloud()
    beta = expansions("all", len(X), m=5)
    message = r"preimage: stopped at max_iter \(5 of 5 pre-images after 2 iterations\).*max_iter"
    with pytest.warns(ConvergenceWarning, match=message):
        result = preimage(Gaussian(), X, beta, max_iter=2, tol=1e-14)
    assert not result.converged
    assert result.n_iter == 2
