"""Nested spheres as features of support vector machines: what they are, and every kind of data."""

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from laws_classification import gaussian, three_classes
from laws_sphere import unit
from optional import optional
from orthodrome import KernelPNS, NestedSpheresClassifier
from orthodrome._core.progress import Progress
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial

pd = optional("pandas")

pytestmark = pytest.mark.filterwarnings("ignore:The points take up:UserWarning")

KERNEL = Gaussian(sigma=1.5)
POLYNOMIAL = Normalized(Polynomial(degree=3, coef0=1.0))
every_kind = pytest.mark.parametrize("features", ["scores", "paper"])
every_sphere = pytest.mark.parametrize("sphere", ["small", "great"])


def estimator(n_components=3, **options):
    return NestedSpheresClassifier(n_components, **{"kernel": KERNEL, **options})


def arc_residuals(points, axes, radii):
    """Signed residuals along the chain by the paper's formulas, never leaving the first sphere.

    Each subsphere is a set of points of the first sphere; it has a centre on the axes so far, and
    the next one is at an angle from its own axis as seen from that centre.
    """
    found = []
    local = points.copy()  # unit vectors of the space across the axes so far
    for axis, radius in zip(axes, radii, strict=True):
        theta = np.arccos(np.clip(local @ axis, -1, 1))
        found.append(theta - radius)
        projected = (local * np.sin(radius) + np.outer(np.sin(theta - radius), axis)) / np.sin(
            theta
        )[:, None]
        across = projected - np.cos(radius) * axis  # from the centre of the subsphere
        local = across / np.sin(radius)
    return np.array(found).T


# ------------------------------------------------------------------ the features


@every_sphere
@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_features_of_the_paper_by_its_formulas(sphere, n_features):
    X, y = three_classes(18)
    model = estimator(n_features, features="paper", sphere=sphere).fit(X, y)
    pns = model.decomposition_
    residuals = arc_residuals(pns.sphere_coordinates(X[:7]), pns.axes_, pns.radii_)
    last = residuals[:, -n_features:]
    expected = np.empty((7, n_features))
    for d in range(
        n_features
    ):  # from the outermost; a product over those between it and the sphere
        scale = np.prod(np.sin(pns.radii_[-n_features:][:d]))
        expected[:, n_features - 1 - d] = last[:, d] * scale
    np.testing.assert_allclose(model.features_of(X[:7]), expected, atol=1e-6)


@every_sphere
@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_scores_are_those_of_the_chain_in_units_of_their_own_sphere(sphere, n_features):
    X, y = three_classes(18)
    model = estimator(n_features, sphere=sphere).fit(X, y)
    chain = model.decomposition_.nested_spheres_
    scores = chain.scores(model.decomposition_.sphere_coordinates(X))[:, :n_features]
    found = model.features_of(X)
    np.testing.assert_allclose(found, scores / chain.scales[n_features - 1], rtol=1e-9)
    np.testing.assert_allclose(found, model.features_, atol=1e-9)


def test_all_scores_are_in_the_units_of_the_sphere():
    X, y = three_classes(12)
    model = estimator(100).fit(X, y)
    assert model.n_components_ == model.decomposition_.nested_spheres_.n_modes == 11
    np.testing.assert_allclose(model.features_, model.decomposition_.residuals_, atol=1e-12)
    paper = estimator(100, features="paper").fit(X, y)
    np.testing.assert_allclose(paper.features_, paper.decomposition_.residuals_[:, 1:], atol=1e-12)


def test_features_of_a_chain_are_counted():
    chain = KernelPNS(kernel=KERNEL).fit(three_classes(12)[0]).nested_spheres_
    points = np.eye(1, 12)
    for circle, most in ((True, 11), (False, 10)):
        for n in (0, most + 1):
            with pytest.raises(ValueError, match=f"n_features must be from 1 to {most}; got {n}"):
                chain.features(points, n, circle=circle)


# ------------------------------------------------------------------ the machines


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


def test_c_means_the_same_for_every_radius_of_the_sphere():
    X, y = three_classes(30)
    models = [estimator(kernel=kernel) for kernel in (KERNEL, lambda A, B: 100 * KERNEL(A, B))]
    found = [model.fit(X, y).decision_function(X) for model in models]
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


def test_a_small_c_smooths():
    X, y = three_classes(30)
    sizes = [np.linalg.norm(estimator(C=C).fit(X, y).svm_.coef_) for C in (1e-4, 1e-2, 1.0)]
    assert sizes[0] < sizes[1] < sizes[2]


def test_two_classes_have_one_decision():
    X, y = three_classes()
    two = y != "oak"
    model = estimator().fit(X[two], y[two])
    found = model.decision_function(X)
    assert found.shape == (60,)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(found > 0).astype(int)])


def test_it_learns():
    X, y = three_classes(150)
    new, expected = three_classes(150, seed=1)
    assert estimator(4, sphere="great").fit(X, y).score(new, expected) > 0.8


def test_data_on_a_sphere_with_the_linear_kernel():
    """Three caps around a small circle: its angle tells them apart, and residuals do not."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    angle = y - 1 + 0.2 * rng.standard_normal(90)
    circle = np.column_stack([0.6 * np.cos(angle), 0.6 * np.sin(angle), np.full(90, 0.8)])
    points = unit(circle + 0.02 * rng.standard_normal((90, 3)))
    assert estimator(1, kernel=Linear(), C=100.0).fit(points, y).score(points, y) > 0.9
    paper = estimator(1, kernel=Linear(), features="paper", C=100.0).fit(points, y)
    assert paper.score(points, y) < 0.6


# ------------------------------------------------------------------ p by cross-validation


@pytest.mark.slow
@every_kind
def test_the_power_is_that_of_a_plain_search(features):
    X, y = three_classes(30, seed=3)
    powers = (2.0, 1.0)  # in any order
    model = estimator(2, p="cv", ps=powers, cv=3, features=features).fit(X, y)
    expected = []
    for p in powers:
        single, accuracies = estimator(2, p=p, features=features), []
        for train, test in StratifiedKFold(3).split(X, y):
            single.fit(X[train], y[train])
            accuracies.append(single.score(X[test], y[test]))
        expected.append(np.mean(accuracies))
    np.testing.assert_allclose(model.cv_scores_, expected, rtol=1e-12)
    best = powers[int(np.argmax(expected))] if expected[0] != expected[1] else 2.0
    assert model.p_ == best
    same = estimator(2, p=best, features=features).fit(X, y)
    np.testing.assert_array_equal(model.features_, same.features_)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))


def test_of_powers_that_tie_the_largest():
    X = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [9.0, 9.0], [9.1, 9.0], [9.0, 9.1]])
    model = estimator(2, kernel=Gaussian(sigma=5.0), p="cv", ps=(1.0, 2.0, 1.5), cv=3)
    model.fit(X, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(model.cv_scores_, 1.0)
    assert model.p_ == 2.0


def test_a_gram_matrix_is_cut_into_folds():
    X, y = three_classes(20)
    options = {"p": "cv", "ps": (1.5, 2.0), "cv": 2}
    model = estimator(2, **options).fit(X, y)
    found = estimator(2, **{**options, "kernel": "precomputed"}).fit(KERNEL(X), y)
    np.testing.assert_allclose(found.cv_scores_, model.cv_scores_)
    new = three_classes(20, seed=1)[0]
    np.testing.assert_allclose(
        found.decision_function(KERNEL(new, X)), model.decision_function(new), atol=1e-3
    )


def test_folds_are_no_more_than_the_smallest_class_has_points():
    X, y = three_classes(12)  # 6, 4 and 2 points
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The points take up")
        model = estimator(2, p="cv", ps=(2.0,)).fit(X, y)
        single = estimator(2, p="cv", ps=(2.0,)).fit(X[:11], y[:11])
    expected = []
    for train, test in StratifiedKFold(2).split(X, y):
        part = estimator(2).fit(X[train], y[train])
        expected.append(part.score(X[test], y[test]))
    np.testing.assert_allclose(model.cv_scores_, np.mean(expected))
    assert single.p_ == 2.0


def test_folds_may_be_a_splitter():
    X, y = three_classes(30)
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    model = estimator(2, p="cv", ps=(2.0,), cv=folds).fit(X, y)
    listed = estimator(2, p="cv", ps=(2.0,), cv=list(folds.split(X, y))).fit(X, y)
    np.testing.assert_array_equal(model.cv_scores_, listed.cv_scores_)


def test_a_point_like_no_other_is_not_recognised():
    X, y = three_classes(20)
    X = np.vstack([X, [[1e4, 0, 0]]])
    model = estimator(2, p="cv", ps=(2.0,), cv=[(np.arange(20), np.array([18, 19, 20]))])
    model.fit(X, np.append(y, "ash"))
    assert model.cv_scores_[0] in (0, 1 / 3, 2 / 3)


def test_no_scores_remain_of_an_earlier_search():
    X, y = three_classes(20)
    model = estimator(2, p="cv", ps=(2.0,), cv=2).fit(X, y)
    model.set_params(p=2.0).fit(X, y)
    assert not hasattr(model, "cv_scores_")


# ------------------------------------------------------------------ within scikit-learn


@pytest.mark.slow
def test_grid_search():
    X, y = three_classes(45)
    grid = {"n_components": [1, 3], "kernel__sigma": [0.5, 2.0], "p": [1.0, 2.0]}
    search = GridSearchCV(estimator(), grid, cv=2).fit(X, y)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.score(X, y) > 0.7


def test_grid_search_with_a_gram_matrix():
    X, y = three_classes(20)
    by_kernel = GridSearchCV(estimator(), {"n_components": [1, 3]}, cv=2).fit(X, y)
    model = GridSearchCV(estimator(kernel="precomputed"), {"n_components": [1, 3]}, cv=2)
    model.fit(KERNEL(X), y)
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], by_kernel.cv_results_["mean_test_score"]
    )


def test_progress_is_reported(capsys):
    pytest.importorskip("rich")
    X, y = three_classes(20)
    estimator(2, p="cv", ps=(1.5, 2.0), cv=2, verbose=True).fit(X, y)
    assert "NestedSpheresClassifier" in capsys.readouterr().out


@pytest.mark.parametrize("p", [2.0, "cv"])
def test_progress_goes_through_the_levels(p, monkeypatch):
    fractions = []
    advance = Progress.advance
    monkeypatch.setattr(
        Progress,
        "advance",
        lambda self, fraction, name="fit": (
            (
                fractions.append(fraction)
                if isinstance(self._estimator, NestedSpheresClassifier)
                else None
            )
            or advance(self, fraction, name)
        ),
    )
    X, y = three_classes(20)
    estimator(2, p=p, ps=(2.0,), cv=2).fit(X, y)
    assert len(set(fractions)) > 10
    assert fractions[-1] == 1.0


def test_a_pickled_model_predicts_the_same():
    X, y = three_classes(30)
    model = estimator().fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))


# ------------------------------------------------------------------ data of every kind


FORMS = {
    "fortran": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=["a", "b", "c"]),
    "sparse": scipy.sparse.csr_array,
}


def test_forms_of_data():
    X, y = three_classes(20)
    expected = estimator().fit(X, y).decision_function(X)
    for name, form in FORMS.items():
        model = estimator().fit(form(X), pd.Series(y))
        found = model.decision_function(form(X))
        np.testing.assert_allclose(found, expected, atol=1e-4, err_msg=name)


def test_memory_mapped_and_read_only(tmp_path):
    X, y = three_classes(30)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = estimator().fit(mapped, y)
    np.testing.assert_array_equal(
        model.decision_function(mapped), estimator().fit(X, y).decision_function(X)
    )


def test_single_precision():
    X, y = three_classes(30, dtype=np.float32)
    model, double = estimator(2), estimator(2)
    found = model.fit(X, y).decision_function(X)
    expected = double.fit(X.astype(np.float64), y).decision_function(X)
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_the_order_of_rows_does_not_matter():
    X, y = three_classes(30)
    order = np.random.default_rng(0).permutation(30)
    first, second = estimator().fit(X, y), estimator().fit(X[order], y[order])
    np.testing.assert_allclose(second.decision_function(X), first.decision_function(X), atol=1e-6)


@every_kind
def test_repeated_rows_and_constant_columns(features):
    X, y = three_classes(20)
    wide = np.column_stack([np.repeat(X, 2, axis=0), np.full(40, 3.0)])
    model = estimator(features=features).fit(wide, np.repeat(y, 2))
    assert np.all(np.isfinite(model.decision_function(wide)))
    assert model.score(wide, np.repeat(y, 2)) > 0.4


@pytest.mark.filterwarnings("ignore:.* of the variance of Gaussian over these data is left out")
@pytest.mark.parametrize("sigma", [1e-3, 1e3, 1e6])
@every_kind
def test_scales_of_every_size(features, sigma):
    X, y = three_classes(24)
    model = estimator(kernel=Gaussian(sigma=sigma), features=features).fit(X, y)
    assert np.all(np.isfinite(model.decision_function(X)))
    assert set(model.predict(X)) <= set(model.classes_)


@pytest.mark.parametrize("n", [2, 3])
def test_few_points(n):
    X, y = three_classes(9)
    chosen = np.unique(y, return_index=True)[1][:n]
    model = estimator(8, C=100.0).fit(X[chosen], y[chosen])
    assert model.n_components_ == n - 1
    np.testing.assert_array_equal(model.predict(X[chosen]), y[chosen])


def test_points_that_are_all_the_same():
    model = estimator().fit(np.ones((6, 2)), [0, 0, 0, 0, 1, 1])
    assert np.all(np.isfinite(model.decision_function(np.ones((2, 2)))))


# ------------------------------------------------------------------ what is refused

BAD = [
    ({"p": "loo"}, r"p of NestedSpheresClassifier .* Or write p='cv'"),
    ({"p": 0.0}, "p of NestedSpheresClassifier"),
    ({"p": 2.5}, r"p of NestedSpheresClassifier must be in \(0, 2\]; got 2.5. Or write p='cv'"),
    ({"p": "cv", "ps": ()}, "ps of NestedSpheresClassifier must hold at least one power"),
    ({"p": "cv", "ps": (1.0, 3.0)}, r"ps of NestedSpheresClassifier must be in \(0, 2\]; got 3"),
    ({"p": "cv", "ps": "all"}, "ps of NestedSpheresClassifier"),
    ({"p": "cv", "cv": 1}, "cv of NestedSpheresClassifier must be an integer >= 2"),
    ({"n_components": 0}, "n_components of NestedSpheresClassifier must be an integer >= 1"),
    ({"n_components": None}, "n_components of NestedSpheresClassifier must be an integer >= 1"),
    ({"features": "angles"}, "features of NestedSpheresClassifier must be one of 'scores'"),
    ({"sphere": "tiny"}, "sphere of NestedSpheresClassifier must be one of 'small'"),
    ({"C": 0.0}, "C of NestedSpheresClassifier"),
    ({"negligible": -1.0}, "negligible of NestedSpheresClassifier"),
    ({"memory_budget": "lots"}, "lots"),
    ({"verbose": -1}, "verbose of NestedSpheresClassifier"),
    ({"kernel": Polynomial()}, r"k\(x, x\)"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=str)
def test_bad_parameters_are_named(parameters, message):
    X, y = three_classes(12)
    with pytest.raises(ValueError, match=message):
        NestedSpheresClassifier(**parameters).fit(X, y)


def test_bad_data_are_named():
    X, y = three_classes(12)
    with pytest.raises(ValueError, match="at least two classes; got one class, 'ash'"):
        estimator().fit(X, np.full(12, "ash"))
    with pytest.raises(ValueError, match="requires y to be passed"):
        estimator().fit(X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        estimator().fit(X, y[:-1])
    with pytest.raises(ValueError, match="Unknown label type"):
        estimator().fit(X, np.linspace(0, 1, 12))
    with pytest.raises(ValueError, match="NaN"):
        estimator().fit(np.full_like(X, np.nan), y)
    with pytest.raises(ValueError, match="two classes of two points or more"):
        estimator(p="cv").fit(X[[0, 1, 10]], ["a", "a", "b"])
    with pytest.raises(ValueError, match=r"span a circle in feature space.*features='scores'"):
        estimator(features="paper").fit(X[[0, 10]], ["a", "b"])


def test_a_point_like_no_other_is_named():
    X, y = three_classes(12)
    model = estimator().fit(X, y)
    with pytest.raises(ValueError, match="Row 1 of X has no similarity"):
        model.predict([X[0], [1e4, 0.0, 0.0]])


def test_a_fit_that_fails_leaves_the_last_one():
    X, y = three_classes(12)
    model = estimator().fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(X[:, :2], np.zeros(12))
    np.testing.assert_array_equal(model.decision_function(X), before)
    for method in ("predict", "decision_function", "features_of"):
        with pytest.raises(NotFittedError):
            getattr(estimator(), method)(X)


def test_a_circle_that_wraps_is_told_where_it_is_a_feature():
    X = gaussian(three_classes(60, seed=2)[0], sigma=3.0)
    y = three_classes(60, seed=2)[1]
    narrow = estimator(kernel=Gaussian(sigma=0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        narrow.set_params(features="paper").fit(X, y)
    with pytest.warns(UserWarning, match="The points take up"):
        narrow.set_params(features="scores").fit(X, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"C": 1e300}, "C of NestedSpheresClassifier must be between .*; got 1e\\+300"),
        ({"p": "cv", "cv": []}, r"must be an integer >= 2, or .* for folds; got \[\]: it has no"),
        ({"p": "cv", "cv": "many"}, "cv of NestedSpheresClassifier must be .*; got 'many': "),
    ],
)
def test_what_is_no_penalty_and_no_fold(options, words):
    X = np.random.default_rng(0).normal(size=(12, 3))
    with pytest.raises(ValueError, match=words):
        NestedSpheresClassifier(2, kernel=Gaussian(), **options).fit(X, np.arange(12) % 2)


def test_points_without_a_place_are_not_recognised():
    nowhere = SimpleNamespace(_coordinates=lambda X: np.full((len(X), 3), np.nan))
    labels = np.array([0, 1])
    assert NestedSpheresClassifier()._accuracy(nowhere, None, labels, labels) == 0.0
