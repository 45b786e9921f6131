"""Robust kernel PCA: kernel PCA for p = 2, and robust for smaller p."""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from laws_sphere import unit
from orthodrome import KernelPCA, KernelPNS, RobustKernelPCA
from orthodrome.eigen.pursuit import projection_pursuit
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial
from orthodrome.sphere import karcher_mean

KERNEL = Gaussian(sigma=2.0)
every_center = pytest.mark.parametrize("center", ["mean", "karcher", "spatial-median"])
every_power = pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0])


def cloud(n=40, seed=0):
    X, _ = make_blobs(n, centers=3, n_features=3, cluster_std=0.8, random_state=seed)
    return X / 4


def nine_times(A, B):
    return 9 * KERNEL(A, B)


@cache
def fitted(kernel=KERNEL, n_components=2, **options):
    return RobustKernelPCA(n_components, kernel, **options).fit(cloud())


@pytest.mark.parametrize("kernel", [KERNEL, Linear(), Polynomial(degree=2)], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [3, None])
def test_with_squares_it_is_kernel_pca(k, kernel, weighted):
    X, new = cloud(), cloud(10, seed=5)
    weights = np.random.default_rng(0).integers(1, 4, 40) if weighted else None
    robust = RobustKernelPCA(k, kernel, p=2.0).fit(X, sample_weight=weights)
    flat = KernelPCA(k, kernel).fit(X, sample_weight=weights)
    assert robust.n_components_ == flat.n_components_
    if k is None:
        return
    np.testing.assert_allclose(np.abs(robust.embedding_), np.abs(flat.embedding_), atol=1e-8)
    found, expected = np.abs(robust.transform(new)), np.abs(flat.transform(new))
    np.testing.assert_allclose(found, expected, atol=1e-7)
    found, expected = robust.explained_variance_ratio_, flat.explained_variance_ratio_
    np.testing.assert_allclose(found, expected, atol=1e-8)
    total = 40 if weights is None else weights.sum()
    np.testing.assert_allclose(robust.dispersions_ * total, flat.eigenvalues_, rtol=1e-8)
    found, expected = (model.inverse_transform(model.embedding_) for model in (robust, flat))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@every_power
@every_center
def test_directions_are_orthonormal_in_feature_space(p, center):
    model = fitted(n_components=5, p=p, center=center)
    K = KERNEL(model.X_fit_)
    np.testing.assert_allclose(model.dual_coef_.T @ K @ model.dual_coef_, np.eye(5), atol=1e-8)
    np.testing.assert_allclose(model.transform(cloud()), model.embedding_, atol=1e-7)
    dispersions = np.mean(np.abs(model.embedding_) ** p, axis=0)
    np.testing.assert_allclose(model.dispersions_, dispersions, rtol=1e-6)
    assert np.all(np.mean(model.embedding_**3, axis=0) >= -1e-6) or center != "mean"


@every_center
def test_embeddings_are_0_at_the_center(center):
    """Embeddings are 0 at the centre, which has coordinates with the linear kernel."""
    X = unit(np.random.default_rng(0).standard_normal((60, 3)) * 0.3 + [1, 0, 0])
    model = RobustKernelPCA(3, Linear(), p=1.0, center=center).fit(X)
    if center == "mean":
        place = X.mean(axis=0)
    elif center == "karcher":
        place = karcher_mean(X, tol=1e-12).point
    else:
        place = model.X_fit_.T @ (model._decoder_ @ model._center_)
        gradient = (X - place) / np.linalg.norm(X - place, axis=1)[:, None]
        np.testing.assert_allclose(gradient.sum(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(model.transform(place[None]), 0, atol=1e-6)


def test_the_radius_of_a_sphere_scales_all_coordinates():
    plain, scaled = (fitted(kernel, center="karcher") for kernel in (KERNEL, nine_times))
    new = cloud(5, seed=3)
    np.testing.assert_allclose(scaled.embedding_, 3 * plain.embedding_, atol=1e-6)
    np.testing.assert_allclose(scaled.transform(new), 3 * plain.transform(new), atol=1e-6)
    np.testing.assert_allclose(scaled.dispersions_, 3 * plain.dispersions_, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_outliers_lose_the_planted_direction_for_squares_only(seed):
    rng = np.random.default_rng(seed)
    X = 0.1 * rng.standard_normal((200, 100))
    X[:, 0] += 2 * rng.standard_normal(200)
    X[:40] = 30 * unit(rng.standard_normal((40, 100)))  # a fifth, each in its own direction
    found = [RobustKernelPCA(1, Linear(), p=p, center="spatial-median").fit(X) for p in (1.0, 2.0)]
    robust, squares = (abs((m.dual_coef_.T @ m.X_fit_)[0, 0]) for m in found)
    assert robust > 0.8
    assert squares < 0.4


def test_a_search_that_does_not_end_gives_a_warning(monkeypatch):
    def hasty(*arguments, **options):
        return projection_pursuit(*arguments, **options, max_iter=1)

    monkeypatch.setattr("orthodrome.decomposition.robust_kernel_pca.projection_pursuit", hasty)
    with pytest.warns(ConvergenceWarning, match="did not converge") as caught:
        model = RobustKernelPCA(2, KERNEL).fit(cloud())
    assert caught[0].filename == __file__
    assert not model.converged_


@every_center
@pytest.mark.parametrize("kernel", [KERNEL, Normalized(Polynomial(degree=3))], ids=repr)
def test_all_components_return_the_training_data(kernel, center):
    X = cloud(30)
    model = RobustKernelPCA(None, kernel, center=center).fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.embedding_), X, atol=2e-2)


def test_inverse_transform_with_a_gram_matrix_takes_the_inputs():
    X = cloud()[np.r_[0:40, 3, 5]]  # some twice
    model = RobustKernelPCA(3, "precomputed").fit(KERNEL(X))
    found = model.inverse_transform(model.embedding_, inputs=X)
    twin = RobustKernelPCA(3, lambda A, B: KERNEL(A, B)).fit(X)
    np.testing.assert_allclose(found, twin.inverse_transform(twin.embedding_), atol=1e-5)


@pytest.mark.parametrize("sigma", [1e8, 1e12])
@every_center
def test_points_that_coincide_to_rounding_have_no_variance(center, sigma):
    with pytest.warns(UserWarning, match="100% of the variance of Gaussian .* smaller scale"):
        model = RobustKernelPCA(2, Gaussian(sigma=sigma), center=center).fit(cloud())
    for zero in (model.embedding_, model.explained_variance_ratio_, model.dispersions_):
        np.testing.assert_array_equal(zero, 0)
    np.testing.assert_array_equal(model.transform(cloud(5, seed=1)), 0)


@pytest.mark.parametrize("Estimator", [RobustKernelPCA, KernelPNS])
def test_variance_near_rounding_gives_a_warning(Estimator):
    with pytest.warns(UserWarning, match=r"\d\d% of the variance of Gaussian .* rounding errors"):
        Estimator(2, Gaussian(sigma=1e6)).fit(cloud())
