"""Robust kernel PCA: kernel PCA where it is that, and what it keeps where it is not."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from laws_sphere import unit
from orthodrome import KernelPCA, KernelPNS, RobustKernelPCA
from orthodrome.eigen.pursuit import projection_pursuit
from orthodrome.kernels import Exponential, Gaussian, Linear, Normalized, Polynomial
from orthodrome.sphere import karcher_mean

KERNEL = Gaussian(sigma=2.0)
CENTERS = ["mean", "karcher", "spatial-median"]
every_center = pytest.mark.parametrize("center", CENTERS)
every_power = pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0])

ESTIMATORS = [
    RobustKernelPCA(),
    RobustKernelPCA(None, p=2.0),
    RobustKernelPCA(2, center="karcher"),
    RobustKernelPCA(1, Exponential(sigma=2.0), p=0.5, center="spatial-median"),
]


@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)


def cloud(n=40, seed=0):
    X, _ = make_blobs(n, centers=3, n_features=3, cluster_std=0.8, random_state=seed)
    return X / 4


@pytest.mark.parametrize("kernel", [KERNEL, Linear(), Polynomial(degree=2)], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_with_squares_it_is_kernel_pca(kernel, weighted):
    X, new = cloud(), cloud(10, seed=5)
    weights = np.random.default_rng(0).integers(1, 4, 40) if weighted else None
    robust = RobustKernelPCA(3, kernel, p=2.0).fit(X, sample_weight=weights)
    flat = KernelPCA(3, kernel).fit(X, sample_weight=weights)
    np.testing.assert_allclose(np.abs(robust.embedding_), np.abs(flat.embedding_), atol=1e-8)
    np.testing.assert_allclose(
        np.abs(robust.transform(new)), np.abs(flat.transform(new)), atol=1e-7
    )
    np.testing.assert_allclose(
        robust.explained_variance_ratio_, flat.explained_variance_ratio_, atol=1e-8
    )
    total = 40 if weights is None else weights.sum()
    np.testing.assert_allclose(robust.dispersions_ * total, flat.eigenvalues_, rtol=1e-8)


@every_power
@every_center
def test_directions_are_orthonormal_in_feature_space(p, center):
    X = cloud()
    model = RobustKernelPCA(5, KERNEL, p=p, center=center).fit(X)
    K = KERNEL(model.X_fit_)
    np.testing.assert_allclose(model.dual_coef_.T @ K @ model.dual_coef_, np.eye(5), atol=1e-8)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-7)
    along = np.mean(np.abs(model.embedding_) ** p, axis=0)
    np.testing.assert_allclose(model.dispersions_, along, rtol=1e-6)
    assert np.all(np.mean(model.embedding_**3, axis=0) >= -1e-6) or center != "mean"


@every_center
def test_centers_are_what_they_are_called(center):
    """Embeddings are 0 at the centre: in the linear kernel's own space that can be seen."""
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


def test_a_constant_length_is_divided_out_and_put_back():
    X, new = cloud(), cloud(5, seed=3)
    unit_model = RobustKernelPCA(2, KERNEL, center="karcher").fit(X)
    scaled = RobustKernelPCA(2, lambda A, B: 9 * KERNEL(A, B), center="karcher").fit(X)
    np.testing.assert_allclose(scaled.embedding_, 3 * unit_model.embedding_, atol=1e-6)
    np.testing.assert_allclose(scaled.transform(new), 3 * unit_model.transform(new), atol=1e-6)
    np.testing.assert_allclose(scaled.dispersions_, 3 * unit_model.dispersions_, rtol=1e-6)


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


def test_all_components_are_those_of_kernel_pca():
    X = cloud()
    robust, flat = RobustKernelPCA(None, KERNEL, p=2.0).fit(X), KernelPCA(None, KERNEL).fit(X)
    assert robust.n_components_ == flat.n_components_


def test_a_search_that_does_not_end_is_told(monkeypatch):
    def hasty(*arguments, **options):
        return projection_pursuit(*arguments, **options, max_iter=1)

    monkeypatch.setattr("orthodrome.decomposition.robust_kernel_pca.projection_pursuit", hasty)
    with pytest.warns(ConvergenceWarning, match="still moving") as caught:
        model = RobustKernelPCA(2, KERNEL).fit(cloud())
    assert caught[0].filename == __file__
    assert not model.converged_


@every_power
def test_weights_are_repetitions_to_the_last_bit(p):
    X = cloud(20)
    rng = np.random.default_rng(0)
    times = rng.integers(0, 4, 20)
    rows = rng.permutation(np.repeat(np.arange(20), times))
    repeated = RobustKernelPCA(2, KERNEL, p=p).fit(X[rows])
    weighted = RobustKernelPCA(2, KERNEL, p=p).fit(X, sample_weight=times)
    np.testing.assert_array_equal(repeated.embedding_, weighted.embedding_[rows])
    np.testing.assert_array_equal(repeated.dispersions_, weighted.dispersions_)


def test_precomputed_and_sparse():
    X, new = cloud(), cloud(10, seed=5)
    expected = RobustKernelPCA(2, KERNEL).fit(X)
    found = RobustKernelPCA(2, "precomputed").fit(KERNEL(X))
    np.testing.assert_allclose(
        np.abs(found.transform(KERNEL(new, X))), np.abs(expected.transform(new)), atol=1e-5
    )
    sparse = RobustKernelPCA(2, KERNEL).fit(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(np.abs(sparse.embedding_), np.abs(expected.embedding_), atol=1e-5)


# ------------------------------------------------------------------ back to inputs


@pytest.mark.parametrize("kernel", [KERNEL, Polynomial(degree=2), Linear()], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_with_squares_the_way_back_is_that_of_kernel_pca(kernel, weighted):
    X = cloud()
    weights = np.random.default_rng(0).integers(1, 4, 40) if weighted else None
    robust = RobustKernelPCA(2, kernel, p=2.0).fit(X, sample_weight=weights)
    flat = KernelPCA(2, kernel).fit(X, sample_weight=weights)
    found = robust.inverse_transform(robust.embedding_)
    np.testing.assert_allclose(found, flat.inverse_transform(flat.embedding_), atol=1e-5)


@every_center
@pytest.mark.parametrize("kernel", [KERNEL, Normalized(Polynomial(degree=3))], ids=repr)
def test_all_components_return_the_training_data(kernel, center):
    X = cloud(30)
    model = RobustKernelPCA(None, kernel, center=center).fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.embedding_), X, atol=2e-2)


def test_the_way_back_goes_through_the_centre_of_a_sphere_of_any_radius():
    X = cloud(30)
    models = [
        RobustKernelPCA(2, kernel, center="karcher").fit(X)
        for kernel in (KERNEL, lambda A, B: 9 * KERNEL(A, B))
    ]
    unit_model, scaled = models
    middle = [model._expansion(np.zeros((1, 2))) @ unit_model.X_fit_ for model in models]
    np.testing.assert_allclose(middle[0], middle[1], atol=1e-6)
    np.testing.assert_allclose(
        np.abs(scaled._expansion(3 * np.eye(2)) - scaled._expansion(np.zeros((1, 2)))),
        np.abs(unit_model._expansion(np.eye(2)) - unit_model._expansion(np.zeros((1, 2)))),
        atol=1e-6,
    )


def test_the_way_back_with_a_gram_matrix_takes_the_inputs():
    X = cloud()[np.r_[0:40, 3, 5]]  # some twice
    model = RobustKernelPCA(3, "precomputed").fit(KERNEL(X))
    found = model.inverse_transform(model.embedding_, inputs=X)
    twin = RobustKernelPCA(3, lambda A, B: KERNEL(A, B)).fit(X)
    np.testing.assert_allclose(found, twin.inverse_transform(twin.embedding_), atol=1e-5)
    with pytest.raises(ValueError, match="pass the training data"):
        model.inverse_transform(model.embedding_)
    with pytest.raises(ValueError, match="one row per training sample, 42; got 41"):
        model.inverse_transform(model.embedding_, inputs=X[1:])
    with pytest.raises(ValueError, match="takes 3 coordinates per sample"):
        model.inverse_transform(model.embedding_[:, :2], inputs=X)
    with pytest.raises(ValueError, match="only for kernel='precomputed'"):
        twin.inverse_transform(twin.embedding_, inputs=X)


def test_the_way_back_from_sparse_data():
    X = cloud() * (np.random.default_rng(0).random((40, 3)) < 0.7)
    model = RobustKernelPCA(3, Polynomial(degree=2)).fit(scipy.sparse.csr_array(X))
    dense = RobustKernelPCA(3, Polynomial(degree=2)).fit(X)
    found, expected = (m.inverse_transform(m.embedding_) for m in (model, dense))
    np.testing.assert_allclose(found, expected, atol=1e-6)


BAD = [
    ({"center": "median"}, "center of RobustKernelPCA must be one of 'mean'"),
    ({"p": 0.0}, "p of RobustKernelPCA"),
    ({"p": 2.1}, r"p of RobustKernelPCA must be in \(0, 2\]"),
    ({"inverse_alpha": 0.0}, "inverse_alpha of RobustKernelPCA"),
    ({"n_components": 0}, "n_components of RobustKernelPCA"),
    ({"center": "karcher", "kernel": Polynomial()}, r"k\(x, x\)"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=str)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        RobustKernelPCA(**parameters).fit(cloud(10))


@pytest.mark.parametrize("n", [1, 2])
@every_center
def test_few_points(n, center):
    X = cloud(n)
    model = RobustKernelPCA(2, Normalized(Polynomial()), center=center).fit(X)
    assert np.all(np.isfinite(model.embedding_))
    assert np.all(np.isfinite(model.explained_variance_ratio_))


@pytest.mark.parametrize("sigma", [1e8, 1e12])
@every_center
def test_points_that_the_kernel_does_not_tell_apart(center, sigma):
    """What rounding makes of them is no variance."""
    with pytest.warns(UserWarning, match="100% of the variance of Gaussian .* smaller scale"):
        model = RobustKernelPCA(2, Gaussian(sigma=sigma), center=center).fit(cloud())
    for zero in (model.embedding_, model.explained_variance_ratio_, model.dispersions_):
        np.testing.assert_array_equal(zero, 0)
    np.testing.assert_array_equal(model.transform(cloud(5, seed=1)), 0)


@pytest.mark.parametrize("Estimator", [RobustKernelPCA, KernelPNS])
def test_variance_near_rounding_is_told(Estimator):
    """Coordinates come from squared lengths, of which it is a millionth of a millionth."""
    with pytest.warns(UserWarning, match=r"\d\d% of the variance of Gaussian .* near rounding"):
        Estimator(2, Gaussian(sigma=1e6)).fit(cloud())


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@every_center
def test_extreme_scales(center, scale):
    X = cloud()
    kernel = Normalized(Linear()) if center == "karcher" else Linear()
    factor = 1.0 if center == "karcher" else scale
    model = RobustKernelPCA(2, kernel, center=center).fit(X)
    scaled = RobustKernelPCA(2, kernel, center=center).fit(X * scale)
    np.testing.assert_allclose(scaled.embedding_ / factor, model.embedding_, atol=1e-8)
    found = scaled.explained_variance_ratio_
    np.testing.assert_allclose(found, model.explained_variance_ratio_, atol=1e-12)
