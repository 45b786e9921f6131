"""Mixtures of data of every kind: the right answer or a clear error, never NaN."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from laws_mixture import every_kind, every_update
from optional import optional
from orthodrome import GeodesicMixture
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian
from orthodrome.metrics import clustering_error

pd = optional("pandas")

KERNEL = Gaussian(sigma=3.0)
METHODS = ("predict", "predict_proba", "score_samples", "score", "bic", "aic")


def blobs(n=60, dtype=np.float64):
    X, _ = make_blobs(n, centers=3, n_features=2, random_state=0)
    return X.astype(dtype)


def estimator(n_components=3, n_modes=2, **options):
    options = {"kernel": KERNEL, "n_init": 2, "random_state": 0, **options}
    return GeodesicMixture(n_components, n_modes, **options)


def assert_all_finite(model, X):
    for name in ("weights_", "means_", "covariances_", "lower_bound_"):
        assert np.all(np.isfinite(getattr(model, name)))
    assert np.all(np.isfinite(model.score_samples(X)))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


# ------------------------------------------------------------------ degenerate data


@every_kind
@every_update
def test_one_point(kind, update):
    options = {"covariance_type": kind, "mean_update": update}
    with pytest.warns(ConvergenceWarning, match="component 0 shrank to the floor"):
        model = estimator(1, **options).fit([[1.0, 2.0]])
    np.testing.assert_array_equal(model.labels_, [0])
    assert_all_finite(model, [[1.0, 2.0], [5.0, 5.0]])
    with pytest.raises(ValueError, match=r"n_components=2 of Geo.* n_samples=1\. Ask for fewer"):
        estimator(2, **options).fit([[1.0, 2.0]])


@every_kind
@every_update
def test_all_points_equal(kind, update):
    X = np.full((6, 2), 3.0)
    options = {"covariance_type": kind, "mean_update": update}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator(2, **options).fit(X)
    assert any("shrank to the floor" in str(w.message) for w in caught)
    assert len(set(model.labels_)) == 1
    assert_all_finite(model, X)


def test_a_component_that_begins_without_points_is_named():
    X = np.repeat([[0.0, 0.0], [8.0, 0.0]], 10, axis=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator(3).fit(X)
    messages = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert any("component 2 lost all points" in m for m in messages)
    assert all(w.filename == __file__ for w in caught)
    assert model.labels_[0] != model.labels_[-1]
    assert_all_finite(model, X)


@pytest.mark.parametrize("init_params", ["kernel-k-means", "k-means", "random"])
@pytest.mark.parametrize("k", [2, 3, 5, 10])
def test_more_components_than_different_points(init_params, k):
    X = np.repeat([[0.0, 0.0], [8.0, 0.0]], 10, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        repeated = estimator(k, init_params=init_params).fit(X)
        weighted = estimator(k, init_params=init_params).fit(X[9:11], sample_weight=[10, 10])
    assert_all_finite(repeated, X)
    np.testing.assert_array_equal(repeated.labels_, np.repeat(weighted.labels_, 10))


@every_kind
def test_outliers_do_not_make_the_likelihood_unbounded(kind):
    X = np.vstack([blobs(), [[60.0, 60.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [
            estimator(4, covariance_type=kind, reg_covar=floor).fit(X) for floor in (1e-1, 1e-6)
        ]
    for model in models:
        assert_all_finite(model, X)
    for spectrum in models[0]._mixture_.spectra():
        assert spectrum.values.min() >= models[0]._floor_ * (1 - 1e-12)


@pytest.mark.parametrize("sigma", [1e-3, 1e-1, 1e2, 1e5])
@every_kind
def test_any_scale_gives_numbers(sigma, kind):
    X = blobs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(kernel=Gaussian(sigma=sigma), covariance_type=kind).fit(X)
    assert_all_finite(model, X)


# ------------------------------------------------------------------ errors


def test_bad_samples_are_refused():
    model = estimator().fit(blobs())
    with pytest.raises(ValueError, match=r"n_samples of GeodesicMixture\.sample"):
        model.sample(0)
    with pytest.raises(ValueError, match=r"space of GeodesicMixture\.sample must be one of"):
        model.sample(2, space="feature")
    precomputed = estimator(kernel="precomputed").fit(KERNEL(blobs()))
    with pytest.raises(ValueError, match="space='embedding' or 'sphere'"):
        precomputed.sample(2)
    assert precomputed.sample(2, space="sphere", random_state=0)[0].shape == (2, 3)
    with pytest.raises(NotFittedError):
        estimator().sample()


@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("reg_covar", [1e-30, 1e-60, 5e-324])
def test_a_floor_below_rounding_leaves_no_nan(covariance, reg_covar):
    """Clusters without extent: what is not told from 0 must not be divided by."""
    X = np.repeat(np.random.default_rng(0).standard_normal((3, 3)), 4, axis=0)
    options = {"covariance_type": covariance, "reg_covar": reg_covar, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of components that shrank
        model = GeodesicMixture(3, n_modes=2, **options).fit(X)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert np.isfinite(model.lower_bound_)
    assert np.all(np.isfinite(model.score_samples(X)))
    assert len(set(model.labels_)) == 3


def test_a_list_of_batches_is_the_array():
    X = np.random.default_rng(0).normal(size=(60, 3))
    options = {"n_modes": 2, "kernel": Gaussian(sigma=2.0), "random_state": 0}
    solver = Nystroem(n_anchors=60, random_state=0)
    lists = GeodesicMixture(2, solver=solver, **options).fit([X[:25], X[25:]])
    whole = GeodesicMixture(2, solver=solver, **options).fit(X)
    assert clustering_error(lists.predict(X), whole.predict(X)) < 0.2


def test_errors_about_batches_name_the_estimator_that_was_given_them():
    X = blobs()
    batches = [X[:20], X[20:]]
    bad = [X[:20], np.where(X[20:] == X[25, 1], np.nan, X[20:])]
    model = estimator(random_state=0)
    for fails, words in (
        (lambda: model.fit(bad), "Input X of GeodesicMixture contains NaN or infinity in row 25"),
        (lambda: model.fit(batches, sample_weight=[1.0]), "sample_weight of GeodesicMixture must"),
        (lambda: estimator(solver="dense").fit(batches), "solver='dense' of GeodesicMixture"),
        (lambda: estimator(kernel="linear").fit(batches), r"k\(x, x\) must be the same for all"),
        (lambda: model.fit(batches).predict(bad), "Input X of GeodesicMixture contains NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            fails()


def test_names_of_columns_in_batches_are_compared():
    X = blobs()
    frames = [pd.DataFrame(part, columns=["a", "b"]) for part in (X[:20], X[20:])]
    whole, other = pd.concat(frames), [frame.rename(columns={"a": "c"}) for frame in frames]
    for fitted in (estimator().fit(frames), estimator().fit(whole)):
        assert fitted.feature_names_in_.tolist() == ["a", "b"]
        np.testing.assert_array_equal(fitted.predict(frames), fitted.predict(whole))
        for wrong in (other, other[0]):
            with pytest.raises(ValueError, match="feature names should match"):
                fitted.predict(wrong)
        with pytest.warns(UserWarning, match="but GeodesicMixture was fitted with") as said:
            fitted.predict(X)
        assert len(said) == 1
