"""Mixtures on the sphere of any kernel."""

import warnings

import numpy as np
import pytest
import scipy.special
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import calinski_harabasz_score
from sklearn.mixture import GaussianMixture

from laws_mixture import cap, every_kind, every_update, naive_log_densities, naive_tangents, unit
from orthodrome import GeodesicMixture, KernelPGA, sphere
from orthodrome.cluster.mixture import _first_mixtures, variance_ratios
from orthodrome.gram import DenseGram
from orthodrome.kernels import Exponential, Gaussian, Normalized, Polynomial
from orthodrome.metrics import clustering_error

KERNEL = Gaussian(sigma=3.0)


def blobs(n=150, seed=0, std=1.0, centers=3):
    return make_blobs(n, centers=centers, n_features=3, cluster_std=std, random_state=seed)


def small(n=60):
    return make_blobs(n, centers=3, n_features=2, random_state=0)[0]


def estimator(n_components=3, n_modes=2, **options):
    options = {"kernel": KERNEL, "n_init": 2, "random_state": 0, **options}
    return GeodesicMixture(n_components, n_modes, **options)


@pytest.mark.parametrize(
    "kernel", [KERNEL, Exponential(), Normalized(Polynomial()), "precomputed"], ids=repr
)
@pytest.mark.parametrize("q", [1, 2, 5])
def test_one_component_is_the_mean_and_the_covariance_of_kernel_pga(kernel, q):
    X, _ = blobs()
    X = KERNEL(X) if kernel == "precomputed" else X
    model = estimator(1, q, kernel=kernel, tol=1e-12, reg_covar=1e-12).fit(X)
    pga = KernelPGA(q, kernel=kernel).fit(X)
    np.testing.assert_allclose(model.means_, np.eye(q + 1)[:1], atol=1e-10)
    np.testing.assert_allclose(model.covariances_[0], np.diag(pga.eigenvalues_), atol=1e-10)
    np.testing.assert_allclose(model.weights_, 1)
    np.testing.assert_array_equal(model.labels_, 0)


@every_kind
@every_update
def test_three_clusters_are_recovered_exactly(kind, update):
    X, y = blobs(std=0.4)
    model = estimator(covariance_type=kind, mean_update=update).fit(X)
    assert clustering_error(y, model.labels_) == 0
    assert model.converged_
    values = [entry["log_likelihood"] for entry in model.history_]
    assert len(values) == model.n_iter_ + 1
    assert max(values) == model.lower_bound_
    assert all(entry["reseeded"] == () for entry in model.history_)


def test_floor_scales_with_the_data():
    """At a large σ all points are close together, and the floor must be with them."""
    X, y = blobs(std=0.8)
    near, far = (
        estimator(kernel=Gaussian(sigma=sigma), reg_covar=1e-3, tol=1e-8).fit(X)
        for sigma in (3e2, 3e3)
    )
    assert clustering_error(y, near.labels_) < 0.05
    np.testing.assert_array_equal(near.labels_, far.labels_)
    np.testing.assert_allclose(1e2 * far.covariances_, near.covariances_, rtol=1e-2, atol=1e-7)


@every_kind
def test_densities_probabilities_and_labels_match_the_parameters(kind):
    X, _ = blobs(std=2.0)
    new = blobs(40, seed=1, std=2.0)[0]
    model = estimator(covariance_type=kind).fit(X)
    points = sphere.exp_at_pole(model.pga_.transform(new)[:, : model.n_modes_])
    expected = naive_log_densities(points, model._mixture_) + np.log(model.weights_)
    np.testing.assert_allclose(
        model.score_samples(new), scipy.special.logsumexp(expected, axis=1), rtol=1e-9
    )
    np.testing.assert_allclose(
        model.predict_proba(new), scipy.special.softmax(expected, axis=1), atol=1e-9
    )
    np.testing.assert_array_equal(model.predict(new), expected.argmax(axis=1))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.score(X), model.lower_bound_, rtol=1e-9)
    weights = np.random.default_rng(0).random(40)
    np.testing.assert_allclose(
        model.score(new, sample_weight=weights),
        np.average(model.score_samples(new), weights=weights),
    )


def test_assignment_by_density_ignores_component_weights():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((190, 2)), rng.normal((2.5, 0.0), size=(10, 2))])
    posterior = estimator(2, 2).fit(X)
    density = estimator(2, 2, assignment="density").fit(X)
    logs = density._mixture_.log_densities(sphere.exp_at_pole(density.pga_.transform(X)[:, :2]))
    np.testing.assert_array_equal(density.predict(X), logs.argmax(axis=1))
    np.testing.assert_array_equal(density.labels_, logs.argmax(axis=1))
    assert not np.array_equal(density.labels_, posterior.labels_)
    np.testing.assert_allclose(np.sort(density.weights_), np.sort(posterior.weights_))


@every_kind
def test_bic_and_aic_are_scikit_learns(kind):
    X, _ = blobs()
    model = estimator(covariance_type=kind).fit(X)
    peer = GaussianMixture(3, covariance_type=kind).fit(model.pga_.transform(X)[:, :2])
    total, n_parameters = model.score_samples(X).sum(), peer._n_parameters()
    np.testing.assert_allclose(model.bic(X), -2 * total + n_parameters * np.log(len(X)))
    np.testing.assert_allclose(model.aic(X), -2 * total + 2 * n_parameters)


def test_samples_are_reproducible_and_of_their_components():
    X, _ = blobs(std=0.5)
    model = estimator().fit(X)
    points, y = model.sample(200, space="sphere", random_state=1)
    again, _ = model.sample(200, space="sphere", random_state=1)
    np.testing.assert_array_equal(points, again)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)
    coordinates, _ = model.sample(200, space="embedding", random_state=1)
    np.testing.assert_allclose(sphere.exp_at_pole(coordinates), points, atol=1e-12)
    inputs, labels = model.sample(200, random_state=1)
    assert inputs.shape == (200, 3)
    np.testing.assert_array_equal(labels, y)
    assert np.mean(model.predict(inputs) == y) > 0.95
    np.testing.assert_allclose(np.bincount(y) / 200, model.weights_, atol=0.1)


def test_modes_by_number_and_by_fraction():
    X, _ = blobs(std=2.0)
    assert estimator(n_modes=4).fit(X).n_modes_ == 4
    model = estimator(n_modes=0.9).fit(X)
    ratio = KernelPGA(40, kernel=KERNEL).fit(X).explained_variance_ratio_.cumsum()
    assert model.n_modes_ == np.searchsorted(ratio, 0.9) + 1
    assert model.means_.shape == (3, model.n_modes_ + 1)
    flat = estimator(1, 5, kernel="linear").fit(unit(np.random.default_rng(0).random((20, 3))))
    assert flat.n_modes_ == 2  # the sphere has no more


def assert_all_finite(model, X):
    for name in ("weights_", "means_", "covariances_", "lower_bound_"):
        assert np.all(np.isfinite(getattr(model, name)))
    assert np.all(np.isfinite(model.score_samples(X)))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_warning_about_a_component_without_points():
    X = np.repeat([[0.0, 0.0], [8.0, 0.0]], 10, axis=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator(3).fit(X)
    messages = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert any("component 2 lost all points" in m for m in messages)
    assert all(w.filename == __file__ for w in caught)
    assert model.labels_[0] != model.labels_[-1]
    assert_all_finite(model, X)


def test_invalid_samples():
    model = estimator().fit(small())
    with pytest.raises(ValueError, match=r"n_samples of GeodesicMixture\.sample"):
        model.sample(0)
    with pytest.raises(ValueError, match=r"space of GeodesicMixture\.sample must be one of"):
        model.sample(2, space="feature")
    precomputed = estimator(kernel="precomputed").fit(KERNEL(small()))
    with pytest.raises(ValueError, match="space='embedding' or 'sphere'"):
        precomputed.sample(2)
    assert precomputed.sample(2, space="sphere", random_state=0)[0].shape == (2, 3)
    with pytest.raises(NotFittedError):
        estimator().sample()


def test_corrupt_model():
    X = np.random.default_rng(0).normal(size=(12, 2))
    K = Gaussian(1.0)(X)
    weights = np.where(np.arange(12) < 2, 0.0, 1.0)
    model = GeodesicMixture(2, n_modes=1, kernel="precomputed", random_state=0)
    model.fit(K, sample_weight=weights)
    model._columns_ = model._columns_[:-1]
    with pytest.raises(ValueError, match=r"GeodesicMixture is corrupt: it has 9 .* pga_ has 10"):
        model.predict(K)


# ------------------------------------------------------------------ automatic choices


def test_criterion_is_the_variance_ratio_in_feature_space():
    X, y = blobs(90)
    weights = 1.0 + np.arange(90) % 3
    repeated = np.repeat(np.arange(90), weights.astype(int))
    labels = [y, np.arange(90) % 3]
    found = variance_ratios(DenseGram(X @ X.T), weights, labels, 3)
    for ratio, each in zip(found, labels, strict=True):
        assert ratio == pytest.approx(calinski_harabasz_score(X[repeated], each[repeated]))
    with_empty = variance_ratios(DenseGram(X @ X.T), weights, labels, 5)
    assert np.all(np.array(with_empty) < found)
    assert variance_ratios(DenseGram(X @ X.T), weights, [0 * y], 1) == [0]


@pytest.mark.parametrize("kernel", [KERNEL, "precomputed"], ids=repr)
def test_automatic_modes_equal_the_given_number(kernel):
    X, y = blobs(std=0.8)
    X = KERNEL(X) if kernel == "precomputed" else X
    weights = 1.0 + np.arange(150) % 2
    model = estimator(n_modes="auto", kernel=kernel).fit(X, sample_weight=weights)
    assert clustering_error(y, model.labels_) < 0.05
    assert model.selection_[0]["n_modes"] == model.n_modes_
    criteria = [entry["criterion"] for entry in model.selection_]
    assert criteria == sorted(criteria, reverse=True)
    given = estimator(n_modes=model.n_modes_, kernel=kernel).fit(X, sample_weight=weights)
    assert given.selection_ is None
    np.testing.assert_array_equal(model.labels_, given.labels_)
    np.testing.assert_allclose(model.score_samples(X), given.score_samples(X), rtol=1e-6)
    assert estimator(1, "auto", kernel=kernel).fit(X).n_modes_ == 5


@pytest.mark.parametrize("init", ["kernel-k-means", "k-means"])
def test_automatic_number_of_components_and_covariance_type(init):
    X, y = blobs(std=0.4)
    weights = 1 + np.arange(150) % 2
    model = estimator("auto", "auto", covariance_type="auto", init_params=init)
    model.fit(X, sample_weight=weights)
    assert model.n_components_ == len(model.weights_) == 3
    assert clustering_error(y, model.labels_) == 0
    assert model.covariances_.shape[-1] == (3 if model.covariance_type_ == "spherical" else
                                            model.n_modes_)  # fmt: skip
    repeated = clone(model).fit(np.repeat(X, weights, axis=0))
    assert repeated.selection_ == model.selection_
    np.testing.assert_array_equal(repeated.labels_, np.repeat(model.labels_, weights))


def test_start_without_shrinkage_is_the_papers():
    points, labels = cap(60), np.arange(60) % 3
    starts = [
        _first_mixtures(points, np.ones(60), [labels], 3, "full", 1e-9, shrink)[0]
        for shrink in (False, True)
    ]
    for number, mean in enumerate(starts[0].means):
        tangents = naive_tangents(points[labels == number], mean)
        expected = tangents.T @ tangents / 20
        np.testing.assert_allclose(starts[0].covariances[number], expected, atol=1e-12)
        assert not np.allclose(starts[1].covariances[number], expected, atol=1e-3)
    X, _ = blobs(std=2.0)
    values = [estimator(shrink_init=shrink).fit(X).history_[0] for shrink in (False, True)]
    assert values[0]["log_likelihood"] != values[1]["log_likelihood"]
