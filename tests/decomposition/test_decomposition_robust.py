"""Robust kernel PCA: three methods, and outlier detection with the same covariance."""

from functools import cache

import numpy as np
import pytest
import scipy.optimize
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from laws_sphere import unit
from orthodrome import KernelMRCD, KernelPCA, KernelPNS, RobustKernelPCA
from orthodrome.eigen.pursuit import projection_pursuit
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial
from orthodrome.sphere import karcher_mean

KERNEL = Gaussian(sigma=2.0)
every_center = pytest.mark.parametrize("center", ["mean", "karcher", "spatial-median"])
every_power = pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0])
every_method = pytest.mark.parametrize("method", ["mrcd", "spatial-sign", "pursuit"])


def cloud(n=40, seed=0):
    X, _ = make_blobs(n, centers=3, n_features=3, cluster_std=0.8, random_state=seed)
    return X / 4


@cache
def fitted(kernel=KERNEL, n_components=2, **options):
    return RobustKernelPCA(n_components, kernel, **{"method": "pursuit"} | options).fit(cloud())


@pytest.mark.parametrize("kernel", [KERNEL, Linear(), Polynomial(degree=2)], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [3, None])
def test_with_squares_it_is_kernel_pca(k, kernel, weighted):
    X, new = cloud(), cloud(10, seed=5)
    weights = np.random.default_rng(0).integers(1, 4, 40) if weighted else None
    robust = RobustKernelPCA(k, kernel, method="pursuit", p=2.0).fit(X, sample_weight=weights)
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
    model = RobustKernelPCA(3, Linear(), method="pursuit", center=center).fit(X)
    if center == "mean":
        place = X.mean(axis=0)
    elif center == "karcher":
        place = karcher_mean(X, tol=1e-12).point
    else:
        place = model.X_fit_.T @ (model._decoder_ @ model._center_)
        gradient = (X - place) / np.linalg.norm(X - place, axis=1)[:, None]
        np.testing.assert_allclose(gradient.sum(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(model.transform(place[None]), 0, atol=1e-6)


OUTLIERS = {  # 60 of 200 rows; the cosine to the planted direction that each method reaches
    "scattered": {"mrcd": 0.98, "spatial-sign": 0.98, "pursuit": 0.6},
    "clustered": {"mrcd": 0.98, "spatial-sign": 0.0, "pursuit": 0.0},
}


@pytest.mark.parametrize("kind", OUTLIERS)
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_direction_among_outliers(seed, kind):
    rng = np.random.default_rng(seed)
    X = 0.1 * rng.standard_normal((200, 50))
    X[:, 0] += 2 * rng.standard_normal(200)
    far = unit(rng.standard_normal((60, 50)))
    X[:60] = 30 * far if kind == "scattered" else 10 * np.eye(50)[1] + far
    for method, cosine in OUTLIERS[kind].items():
        model = RobustKernelPCA(1, Linear(), method=method, center="spatial-median").fit(X)
        assert abs((model.dual_coef_.T @ model.X_fit_)[0, 0]) >= cosine
    squares = RobustKernelPCA(1, Linear(), method="pursuit", p=2.0).fit(X)
    assert abs((squares.dual_coef_.T @ squares.X_fit_)[0, 0]) < 0.4


@pytest.mark.parametrize("weighted", [False, True])
def test_spatial_signs_in_explicit_coordinates(weighted):
    """With the linear kernel: eigenvectors of the normalised points around their median."""
    X = cloud()
    weights = np.random.default_rng(0).integers(1, 4, 40) if weighted else np.ones(40, int)
    rows = np.repeat(X, weights, axis=0)
    center = scipy.optimize.minimize(
        lambda c: np.linalg.norm(rows - c, axis=1).sum(), rows.mean(axis=0), tol=1e-12
    ).x
    values, vectors = np.linalg.eigh(unit(rows - center).T @ unit(rows - center) / len(rows))
    model = RobustKernelPCA(3, Linear(), method="spatial-sign").fit(X, sample_weight=weights)
    np.testing.assert_allclose(model.dispersions_, values[::-1], atol=1e-5)
    np.testing.assert_allclose(model.explained_variance_ratio_, values[::-1], atol=1e-5)
    directions = model.X_fit_.T @ model.dual_coef_
    np.testing.assert_allclose(np.abs(directions.T @ vectors[:, ::-1]), np.eye(3), atol=1e-4)
    np.testing.assert_allclose(model.transform(center[None]), 0, atol=1e-5)


@pytest.mark.parametrize("kernel", [Linear(), KERNEL], ids=repr)
def test_mrcd_is_kernel_pca_of_the_points_that_are_not_outliers(kernel):
    """The points are those that `KernelMRCD` also uses for its covariance."""
    X = np.random.default_rng(0).standard_normal((40, 3))
    X[:8] += 20
    detector = KernelMRCD(kernel, support_fraction=0.5).fit(X)
    kept = np.isin(X, detector.X_fit_[detector._estimate_.support]).all(axis=1)
    assert not kept[:8].any()
    assert kept.sum() >= 20
    model = RobustKernelPCA(3, kernel).fit(X)
    expected = KernelPCA(3, kernel).fit(X[kept])
    np.testing.assert_allclose(model.transform(X), expected.transform(X), atol=1e-7)
    ratios = expected.explained_variance_ratio_
    np.testing.assert_allclose(model.explained_variance_ratio_, ratios, atol=1e-8)
    np.testing.assert_allclose(model.dispersions_, expected.eigenvalues_ / kept.sum(), atol=1e-8)


def test_a_search_that_does_not_end_gives_a_warning(monkeypatch):
    def hasty(*arguments, **options):
        return projection_pursuit(*arguments, **options, max_iter=1)

    monkeypatch.setattr("orthodrome.decomposition.robust_kernel_pca.projection_pursuit", hasty)
    with pytest.warns(ConvergenceWarning, match="did not converge") as caught:
        model = RobustKernelPCA(2, KERNEL, method="pursuit").fit(cloud())
    assert caught[0].filename == __file__
    assert not model.converged_


@every_method
@pytest.mark.parametrize("kernel", [KERNEL, Normalized(Polynomial(degree=3))], ids=repr)
def test_all_components_return_the_training_data(kernel, method):
    X = cloud(30)
    model = RobustKernelPCA(None, kernel, method=method).fit(X)
    used = model._own_weights_[:, None] > 0  # the rows of X_fit_ are sorted
    found = model.inverse_transform(model.transform(model.X_fit_))
    np.testing.assert_allclose(used * found, used * model.X_fit_, atol=2e-2)


def test_inverse_transform_with_a_gram_matrix_takes_the_inputs():
    X = cloud()[np.r_[0:40, 3, 5]]  # some twice
    model = RobustKernelPCA(3, "precomputed").fit(KERNEL(X))
    found = model.inverse_transform(model.embedding_, inputs=X)
    twin = RobustKernelPCA(3, lambda A, B: KERNEL(A, B)).fit(X)
    np.testing.assert_allclose(found, twin.inverse_transform(twin.embedding_), atol=1e-5)


@pytest.mark.parametrize("sigma", [1e8, 1e12])
@every_method
def test_points_that_coincide_to_rounding_have_no_variance(method, sigma):
    with pytest.warns(UserWarning, match="100% of the variance of Gaussian .* smaller scale"):
        model = RobustKernelPCA(2, Gaussian(sigma=sigma), method=method).fit(cloud())
    for zero in (model.embedding_, model.explained_variance_ratio_, model.dispersions_):
        np.testing.assert_array_equal(zero, 0)
    np.testing.assert_array_equal(model.transform(cloud(5, seed=1)), 0)


@pytest.mark.parametrize("Estimator", [RobustKernelPCA, KernelPNS])
def test_variance_near_rounding_gives_a_warning(Estimator):
    with pytest.warns(UserWarning, match=r"\d\d% of the variance of Gaussian .* rounding errors"):
        Estimator(2, Gaussian(sigma=1e6)).fit(cloud())


# ---------------------------------------------------------------------- KernelMRCD


def ring(n=120, n_outliers=20, seed=0):
    """A noisy circle, and scattered outliers inside and outside."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, 2 * np.pi, n)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    radii = 5 + 0.2 * rng.standard_normal(n)
    radii[:n_outliers] = np.where(np.arange(n_outliers) % 2, 2.0, 9.0)
    return radii[:, None] * directions


def test_distances_are_those_of_the_centred_kernel_matrix():
    """Equation of the paper: the covariance and its inverse through kernel values only."""
    X, new = cloud(), np.vstack([cloud(10, seed=4), np.full((1, 3), 50.0)])
    model = KernelMRCD(KERNEL).fit(X)
    subset = model.X_fit_[model._estimate_.support]
    h, ridge = len(subset), model._estimate_.ridge
    K, cross = KERNEL(subset), KERNEL(new, subset)
    means, mean = K.mean(axis=0), K.mean()
    centered = K - means - means[:, None] + mean
    products = cross - cross.mean(axis=1, keepdims=True) - means + mean
    squares = 1 - 2 * cross.mean(axis=1) + mean
    inverse = np.linalg.inv(centered + h * ridge * np.eye(h))
    expected = (squares - np.einsum("ij,jk,ik->i", products, inverse, products)) / ridge
    np.testing.assert_allclose(model.score_samples(new) ** 2, expected, rtol=1e-6)
    np.testing.assert_allclose(-model.score_samples(X), model.distances_, rtol=1e-6)


def test_outliers_around_and_inside_a_ring():
    for seed in range(3):
        X = ring(seed=seed)
        found = KernelMRCD(Gaussian(sigma=1.0)).fit_predict(X)
        assert np.all(found[:20] == -1)
        assert np.mean(found[20:] == -1) < 0.2


@pytest.mark.parametrize("contamination", [0.01, 0.1, 0.5])
def test_the_fraction_of_outliers_is_as_given(contamination):
    X = ring()
    model = KernelMRCD(contamination=contamination).fit(X)
    assert np.sum(model.predict(X) == -1) == int(contamination * len(X))
    weights = np.arange(len(X)) % 3
    model.fit(X, sample_weight=weights)
    assert weights[model.predict(X) == -1].sum() <= contamination * weights.sum()
    np.testing.assert_array_equal(model.predict(X) == -1, model.distances_ > -model.offset_)


def test_too_few_steps_give_a_warning():
    with pytest.warns(ConvergenceWarning, match="Raise max_iter") as caught:
        model = KernelMRCD(max_iter=1).fit(ring())
    assert caught[0].filename == __file__
    assert not model.converged_
