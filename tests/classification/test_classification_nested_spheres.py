"""Laws of the classifier by nested spheres: features, support vector machines, powers, errors."""

import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from laws_classification import KERNEL, gaussian, three_classes
from orthodrome import KernelPNS, NestedSpheresClassifier
from orthodrome.kernels import Gaussian, Normalized, Polynomial

pytestmark = pytest.mark.filterwarnings("ignore:The points take up:UserWarning")

POLYNOMIAL = Normalized(Polynomial(degree=3, coef0=1.0))
every_kind = pytest.mark.parametrize("features", ["scores", "paper"])
every_sphere = pytest.mark.parametrize("sphere", ["small", "great"])


def estimator(n_components=3, **options):
    return NestedSpheresClassifier(n_components, **{"kernel": KERNEL, **options})


def arc_residuals(points, axes, radii):
    """Return the signed residuals along the chain by the paper's formulas."""
    found = []
    local = points.copy()  # unit vectors orthogonal to the axes so far
    for axis, radius in zip(axes, radii, strict=True):
        theta = np.arccos(np.clip(local @ axis, -1, 1))
        found.append(theta - radius)
        projected = local * np.sin(radius) + np.outer(np.sin(theta - radius), axis)
        projected /= np.sin(theta)[:, None]
        local = (projected - np.cos(radius) * axis) / np.sin(radius)
    return np.array(found).T


@every_sphere
@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_features(sphere, n_features):
    X, y = three_classes(18)
    paper = estimator(n_features, features="paper", sphere=sphere).fit(X, y)
    pns = paper.decomposition_
    residuals = arc_residuals(pns.sphere_coordinates(X[:7]), pns.axes_, pns.radii_)
    scales = np.cumprod([1.0, *np.sin(pns.radii_[-n_features:-1])])[:n_features]
    expected = (residuals[:, -n_features:] * scales)[:, ::-1]  # the innermost first
    np.testing.assert_allclose(paper.features_of(X[:7]), expected, atol=1e-6)

    model = estimator(n_features, sphere=sphere).fit(X, y)
    chain = model.decomposition_.nested_spheres_
    scores = chain.scores(model.decomposition_.sphere_coordinates(X))[:, :n_features]
    found = model.features_of(X)
    np.testing.assert_allclose(found, scores / chain.scales[n_features - 1], rtol=1e-9)
    np.testing.assert_allclose(found, model.features_, atol=1e-9)


def test_the_number_of_features():
    X, y = three_classes(12)
    model = estimator(100).fit(X, y)
    assert model.n_components_ == model.decomposition_.nested_spheres_.n_modes == 11
    np.testing.assert_allclose(model.features_, model.decomposition_.residuals_, atol=1e-12)
    paper = estimator(100, features="paper").fit(X, y)
    np.testing.assert_allclose(paper.features_, paper.decomposition_.residuals_[:, 1:], atol=1e-12)
    chain = KernelPNS(kernel=KERNEL).fit(X).nested_spheres_
    for circle, most in ((True, 11), (False, 10)):
        for n in (0, most + 1):
            with pytest.raises(ValueError, match=f"n_features must be from 1 to {most}; got {n}"):
                chain.features(np.eye(1, 12), n, circle=circle)


@every_kind
@pytest.mark.parametrize("kernel", [KERNEL, POLYNOMIAL], ids=["gaussian", "polynomial"])
def test_it_is_a_linear_machine_on_features_of_mean_square_one(features, kernel):
    X, y = three_classes(30)
    new = three_classes(30, seed=1)[0]
    model = estimator(4, kernel=kernel, features=features, C=0.5).fit(X, y)
    size = np.sqrt(np.mean(model.features_**2))
    by_hand = make_pipeline(
        FunctionTransformer(lambda U: U / size), LinearSVC(C=0.5, dual=False, tol=1e-8)
    ).fit(model.features_, y)
    found = model.decision_function(new)
    assert found.shape == (30, 3)
    np.testing.assert_allclose(found, by_hand.decision_function(model.features_of(new)), atol=2e-3)
    np.testing.assert_array_equal(model.predict(new), model.classes_[found.argmax(axis=1)])


def test_c_means_the_same_for_every_radius_and_smooths():
    X, y = three_classes(30)
    model = estimator().fit(X, y)
    scaled = estimator(kernel=lambda A, B: 100 * KERNEL(A, B)).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), scaled.decision_function(X), atol=1e-3)
    smooth = estimator(C=1e-2).fit(X, y)
    assert np.linalg.norm(smooth.svm_.coef_) < np.linalg.norm(model.svm_.coef_)


# ------------------------------------------------------------------ p by cross-validation


@pytest.mark.slow
@every_kind
def test_the_power_is_that_of_a_plain_search(features):
    X, y = three_classes(60, seed=3)
    powers = (2.0, 1.9)  # in any order; smaller ones have several minima
    model = estimator(2, p="cv", ps=powers, cv=3, features=features).fit(X, y)
    expected = []
    for p in powers:
        single, accuracies = estimator(2, p=p, features=features), []
        for train, test in StratifiedKFold(3).split(X, y):
            single.fit(X[train], y[train])
            accuracies.append(single.score(X[test], y[test]))
        expected.append(np.mean(accuracies))
    np.testing.assert_allclose(model.cv_scores_, expected, rtol=1e-12)
    powers = (2.0, 1.0, 0.5)
    model = estimator(2, p="cv", ps=powers, cv=3, features=features).fit(X, y)
    assert model.p_ == powers[int(np.argmax(model.cv_scores_))]
    same = estimator(2, p=model.p_, features=features).fit(X, y)
    np.testing.assert_array_equal(model.features_, same.features_)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))


def test_ties_go_to_the_largest_power_and_no_scores_remain():
    X = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [9.0, 9.0], [9.1, 9.0], [9.0, 9.1]])
    y = [0, 0, 0, 1, 1, 1]
    model = estimator(2, kernel=Gaussian(sigma=5.0), p="cv", ps=(1.0, 2.0, 1.5), cv=3).fit(X, y)
    np.testing.assert_array_equal(model.cv_scores_, 1.0)
    assert model.p_ == 2.0
    assert not hasattr(model.set_params(p=2.0).fit(X, y), "cv_scores_")


def test_folds_of_a_gram_matrix():
    X, y = three_classes(15)
    options = {"p": "cv", "ps": (1.5, 2.0), "cv": 2, "sphere": "great"}
    model = estimator(2, **options).fit(X, y)
    found = estimator(2, **{**options, "kernel": "precomputed"}).fit(KERNEL(X), y)
    np.testing.assert_allclose(found.cv_scores_, model.cv_scores_)
    new = three_classes(20, seed=1)[0]
    np.testing.assert_allclose(
        found.decision_function(KERNEL(new, X)), model.decision_function(new), atol=1e-3
    )


def test_folds_are_at_most_the_points_of_the_smallest_class():
    X, y = three_classes(12)  # 6, 4 and 2 points
    model = estimator(2, p="cv", ps=(2.0,)).fit(X, y)
    single = estimator(2, p="cv", ps=(2.0,)).fit(X[:11], y[:11])
    folds = list(StratifiedKFold(2).split(X, y))
    parts = [(estimator(2).fit(X[train], y[train]), test) for train, test in folds]
    expected = np.mean([part.score(X[test], y[test]) for part, test in parts])
    np.testing.assert_allclose(model.cv_scores_, expected)
    for given in (StratifiedKFold(2), folds):
        again = estimator(2, p="cv", ps=(2.0,), cv=given).fit(X, y)
        np.testing.assert_array_equal(again.cv_scores_, model.cv_scores_)
    assert single.p_ == 2.0


def test_points_without_a_place_count_as_errors():
    X, y = three_classes(20)
    X = np.vstack([X, [[1e4, 0, 0]]])
    for test, allowed in (([18, 19, 20], (0, 1 / 3, 2 / 3)), ([20], (0,))):
        model = estimator(2, p="cv", ps=(2.0,), cv=[(np.arange(20), np.array(test))])
        model.fit(X, np.append(y, "ash"))
        assert model.cv_scores_[0] in allowed


# ------------------------------------------------------------------ anchors


@pytest.mark.parametrize("p", [2.0, "cv"])
def test_as_many_anchors_as_the_rank_give_the_exact_classifier(p):
    X, y = three_classes(40)
    X = np.column_stack([X, np.ones(40)])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    options = {"kernel": "linear", "p": p, "ps": (1.0, 2.0), "cv": 3, "random_state": 0}
    exact = estimator(3, **options).fit(X, y)
    found = estimator(3, n_anchors=X.shape[1], **options).fit(X, y)
    assert found.decomposition_.n_anchors_ == X.shape[1]
    assert found.p_ == exact.p_
    np.testing.assert_allclose(found.decision_function(X), exact.decision_function(X), atol=1e-3)


def test_anchors_need_less_memory():
    X, y = load_digits(return_X_y=True)
    options = {"kernel": "gaussian", "memory_budget": "8MiB", "random_state": 0}
    with pytest.raises(ValueError, match=r"Gram matrix of 600 points.* 8 MiB.*n_anchors"):
        estimator(10, **options).fit(X[:600], y[:600])
    model = estimator(10, n_anchors=100, **options).fit(X[:600], y[:600])
    assert model.score(X[600:1200], y[600:1200]) > 0.85


# ------------------------------------------------------------------ data and errors


#: Parameters that the battery of absurd values in tests/hardening does not try.
BAD = [
    ({"p": 2.5}, r"p of .* got 2.5. Or write p='cv'"),
    ({"ps": (1.0, 3.0)}, "ps of .* got 3"),
    ({"C": 1e300}, r"C of .* got 1e\+300"),
    ({"kernel": Polynomial()}, r"k\(x, x\)"),
    ({"p": "cv", "cv": []}, r"cv of .* got \[\]: it has no"),
    ({"p": "cv", "cv": "many"}, "cv of .* got 'many'"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=str)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        NestedSpheresClassifier(**parameters).fit(*three_classes(12))


def test_data_without_folds_or_subspheres():
    X, y = three_classes(12)
    with pytest.raises(ValueError, match="two classes of two points or more"):
        estimator(p="cv").fit(X[[0, 1, 10]], ["a", "a", "b"])
    with pytest.raises(ValueError, match=r"span a circle .*features='scores'"):
        estimator(features="paper").fit(X[[0, 10]], ["a", "b"])
    with pytest.raises(ValueError, match="Row 1 of X has no similarity"):
        estimator().fit(X, y).predict([X[0], [1e4, 0.0, 0.0]])


def test_a_long_circle_is_warned_about_if_it_is_a_feature():
    X, y = three_classes(30, seed=2)
    X = gaussian(X, sigma=3.0)
    narrow = estimator(kernel=Gaussian(sigma=0.5), sphere="small")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        narrow.set_params(features="paper").fit(X, y)
    with pytest.warns(UserWarning, match="The points take up"):
        narrow.set_params(features="scores").fit(X, y)


# ------------------------------------------------------------------ probabilities


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits])
def test_probabilities_are_calibrated(load):
    X, y = load(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[:400]), y[:400].astype(str)
    train, test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=1)
    model = estimator(20, kernel="gaussian", sphere="great").fit(train, y_train)
    probabilities = model.predict_proba(test)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    best = model.classes_[probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(best, model.predict(test))
    # as good as Platt's method on the same features, and far better than a guess
    oracle = CalibratedClassifierCV(LinearSVC()).fit(model.features_, y_train)
    expected = log_loss(y_test, oracle.predict_proba(model.features_of(test)))
    found = log_loss(y_test, probabilities)
    assert found < 1.05 * expected + 0.02
    assert found < 0.35 * np.log(len(model.classes_))


@pytest.mark.parametrize("sizes", [(1, 1), (1, 9), (1, 2, 9), (2, 2), (3, 40)])
def test_probabilities_of_small_classes(sizes):
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = 4.0 * y[:, None] + np.random.default_rng(0).standard_normal((len(y), 3))
    model = estimator(2).fit(X, y)
    probabilities = model.predict_proba(X)
    assert np.all(np.isfinite(probabilities))
    assert probabilities.shape == (len(y), len(sizes))
    shuffled = np.random.default_rng(1).permutation(len(y))
    again = estimator(2).fit(X[shuffled], y[shuffled]).predict_proba(X)
    np.testing.assert_allclose(again, probabilities, atol=1e-3)


def test_labels_without_relation_to_the_data_get_equal_probabilities():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 3)), rng.integers(0, 2, 200)
    assert np.all(np.abs(estimator(3).fit(X, y).predict_proba(X) - 0.5) < 0.15)


def test_a_model_of_an_older_version_has_no_probabilities():
    model = estimator(2).fit(*three_classes(30))
    del model.temperature_
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'") as caught:
        model.predict_proba([[0.0, 0.0]])
    assert "Fit it again" in str(caught.value.__cause__)
