"""Cluster centres that are inputs: RKHS-GEO, eqs. (8) and (9), Algorithm 2."""

import numpy as np
import pytest

from laws_cluster import blobs
from laws_kmeans import algorithm_2, cloud, geometry, random_labels, slopes
from laws_kmeans import squared_angles as naive_squared_angles
from orthodrome import HypersphericalKMeans
from orthodrome._core.status import Status
from orthodrome.kernels import Gaussian, Matern, RationalQuadratic, Wave
from orthodrome.preimage import karcher_mean_preimage
from orthodrome.sphere.lloyd import lloyd

SMOOTH = {
    **{f"gaussian {sigma}": Gaussian(sigma=sigma) for sigma in (0.1, 0.3, 1.0, 3.0, 30.0)},
    "rational quadratic": RationalQuadratic(alpha=0.7, sigma=0.5),
    "matern 3/2": Matern(nu=1.5, sigma=0.5),
    "matern 5/2": Matern(nu=2.5, sigma=0.5),
    "matern 5/2 narrow": Matern(nu=2.5, sigma=0.1),
    "wave": Wave(sigma=2.0),
}


def run_of(X, kernel, k=4, seed=0, weights=None):
    return lloyd(
        geometry("preimage", X, weights, kernel),
        [random_labels(len(X), k, seed)],
        k,
        max_iter=300,
    )[0]


@pytest.mark.parametrize("kernel", SMOOTH.values(), ids=SMOOTH)
def test_objective_is_least_at_every_center(kernel):
    X = cloud(80, d=2)
    run = run_of(X, kernel)
    sigma = kernel.sigma_
    for c, center in enumerate(run.centers.points):
        members = X[run.labels == c]
        p = np.ones(len(members))
        assert np.linalg.norm(slopes(kernel, members, p, center, 0.1 * sigma / 20)) <= 1e-8
        value = naive_squared_angles(kernel, members, center).mean()
        best = karcher_mean_preimage(kernel, members, starts="all")
        assert value <= best.objective * (1 + 1e-6)
        for direction in ([1, 0], [0, 1], [1, 1], [1, -1]):
            for sign in (0.02, -0.02):
                place = center + sign * sigma * np.array(direction)
                assert naive_squared_angles(kernel, members, place).mean() >= value - 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.8, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_algorithm_2_is_not_better(sigma, seed):
    """From the same centres; nor from ours, which it leaves where they are.

    (With a smaller σ the angles of the paper are π/2 to the last digit, and its nearest centre is
    the first one.)
    """
    X = blobs(45, seed=seed)
    init = X[np.random.default_rng(seed).choice(45, 3, replace=False)]
    model = HypersphericalKMeans(3, kernel=Gaussian(sigma=sigma), init=init).fit(X)
    _, _, naive = algorithm_2(X, sigma, init)
    assert model.inertia_ <= naive * (1 + 1e-9)
    labels, centers, again = algorithm_2(X, sigma, model.cluster_centers_)
    np.testing.assert_array_equal(labels, model.labels_)
    assert model.inertia_ == pytest.approx(again, rel=1e-9)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=0, atol=1e-5)


def test_precision_and_data_far_from_the_origin():
    X, kernel = cloud(60), Gaussian(sigma=1.0)
    for dtype, tol in ((np.float64, 1e-12), (np.float32, 2e-3)):
        given = X.astype(dtype)
        run, double = run_of(given, kernel), run_of(given.astype(np.float64), kernel)
        assert run.centers.points.dtype == dtype
        np.testing.assert_array_equal(run.labels, double.labels)
        np.testing.assert_allclose(run.centers.points, double.centers.points, rtol=0, atol=tol)
    X = cloud(60, d=2)
    near, far = (run_of(X + shift, Gaussian(sigma=0.5)) for shift in (0.0, 1e6))
    np.testing.assert_array_equal(near.labels, far.labels)
    np.testing.assert_allclose(far.centers.points - 1e6, near.centers.points, rtol=0, atol=1e-6)


def test_kernels_that_underflow():
    """Clusters are Voronoi cells all the same, and a centre is one of its points."""
    X = cloud(60, d=2)
    centers = geometry("preimage", X, kernel=Gaussian(sigma=1e-4))
    run = lloyd(centers, [random_labels(60, 4)], 4, max_iter=300)[0]
    assert run.status is Status.CONVERGED
    squares = np.sum((X[:, None] - run.centers.points[None]) ** 2, axis=-1)
    np.testing.assert_array_equal(run.labels, squares.argmin(axis=1))
    np.testing.assert_allclose(squares.min(axis=0), 0, atol=1e-20)
    assert run.inertia == pytest.approx(56 * (np.pi / 2) ** 2, rel=1e-12)
