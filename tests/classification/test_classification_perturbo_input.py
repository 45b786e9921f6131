"""PerTurbo with data of every kind: the right answer or a clear error, never NaN."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from laws_classification import CONFIGURATIONS, every_configuration, gaussian, three_classes
from optional import optional
from orthodrome.classification import KernelRidgeRegressionClassifier, PerTurbo
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial

pd = optional("pandas")

KERNEL = Gaussian(sigma=1.5)
every_reference = pytest.mark.parametrize("reference", ["preimage", "mean"])


def estimator(**options):
    return PerTurbo(**{"kernel": KERNEL, **options})


def assert_finite(model, X):
    for found in (model.class_residuals(X), model.predict_proba(X), model.loo_residuals_):
        assert np.all(np.isfinite(found))
        assert np.all(found >= 0)
    assert np.isfinite(model.temperature_)
    assert 0 <= model.loo_score_ <= 1
    assert set(model.predict(X)) <= set(model.classes_)


# ------------------------------------------------------------------ degenerate data


@every_configuration
def test_one_point_per_class(options):
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    model = estimator(**options).fit(X, ["a", "b", "c"])
    np.testing.assert_array_equal(model.predict(X + 0.1), ["a", "b", "c"])
    assert_finite(model, np.concatenate([X, 10 * X + 7]))
    farthest = (np.pi / 2) ** 2 if model.geodesic else 1.0
    np.testing.assert_allclose(np.diagonal(model.loo_residuals_), farthest, rtol=1e-12)
    assert model.loo_score_ == 0  # without it there is no class


@every_configuration
def test_a_class_of_copies_is_a_class_of_one_point(options):
    X = np.array([[0.0, 0.0]] * 4 + [[3.0, 0.0], [3.5, 0.0], [4.0, 0.5]])
    y = [0, 0, 0, 0, 1, 1, 1]
    model = estimator(**options).fit(X, y)
    farthest = (np.pi / 2) ** 2 if model.geodesic else 1.0
    np.testing.assert_allclose(model.loo_residuals_[:4, 0], farthest, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), y)
    assert_finite(model, X)


@every_reference
def test_a_class_of_two_points_on_the_sphere(reference):
    """Without one of them the other is the reference, and what is left is the distance."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 0.0], [5.0, 1.0]])
    model = estimator(geodesic=True, reference=reference, alpha=0.01).fit(X, [0, 0, 1, 1])
    expected = [np.arccos(gaussian(X, sigma=1.5)[i, i ^ 1]) ** 2 for i in range(4)]
    found = model.loo_residuals_[np.arange(4), [0, 0, 1, 1]]
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@every_configuration
def test_the_same_points_in_both_classes(options):
    X = three_classes(20)[0]
    model = estimator(**options).fit(np.concatenate([X, X]), np.repeat([0, 1], 20))
    residuals = model.class_residuals(X)
    np.testing.assert_array_equal(residuals[:, 0], residuals[:, 1])
    np.testing.assert_array_equal(model.predict(X), 0)
    np.testing.assert_array_equal(model.predict_proba(X), 0.5)
    assert_finite(model, X)


@pytest.mark.parametrize("sigma", [1e-8, 1e-3, 1e3, 1e6, 1e9])
@every_configuration
def test_scales_of_every_size(options, sigma):
    X, y = three_classes()
    model = estimator(**{**options, "kernel": Gaussian(sigma=sigma)}).fit(X, y)
    assert_finite(model, np.concatenate([X, three_classes(30, seed=1)[0]]))


def test_the_mean_of_points_that_are_one_to_rounding():
    """Their tangents are differences of numbers near 1: what is left spans nothing."""
    X, y = three_classes()
    options = {"kernel": Gaussian(sigma=1e8), "geodesic": True, "reference": "mean", "alpha": 0.0}
    model = estimator(**options).fit(X, y)
    own = np.column_stack([kernel.diag(X + 1) for kernel in model.class_kernels_])
    np.testing.assert_allclose(model.class_residuals(X + 1), own, rtol=0.3)


@every_configuration
def test_far_points(options):
    X, y = three_classes()
    far = np.array([[1e3, 0.0, 0.0], [0.0, -1e6, 0.0], [1e150, 0.0, 0.0]])
    model = estimator(**options).fit(X, y)
    assert_finite(model, far)
    farthest = (np.pi / 2) ** 2 if model.geodesic else 1.0
    np.testing.assert_allclose(model.class_residuals(far), farthest, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(far), 1 / 3, rtol=1e-12)


@every_configuration
def test_constant_columns_change_nothing(options):
    X, y = three_classes()
    wide = np.column_stack([np.full(60, 7.0), X, np.zeros(60)])
    plain, model = estimator(**options).fit(X, y), estimator(**options).fit(wide, y)
    # interpolation magnifies rounding by the condition of the Gram matrix
    tolerance = 1e-5 if options.get("alpha") == 0 else 1e-8
    np.testing.assert_allclose(
        model.class_residuals(wide), plain.class_residuals(X), rtol=0, atol=tolerance
    )


@every_configuration
def test_nothing_but_constant_columns(options):
    X = np.ones((6, 2))
    model = estimator(**options).fit(X, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(model.predict(X), 0)
    assert_finite(model, X)


@settings(max_examples=12, deadline=None)
@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(1, 3)),
        elements=st.floats(-100, 100).map(lambda value: round(value, 2)),
    ),
    sigma=st.sampled_from([0.01, 1.0, 1e5]),
    precision=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 100),
)
@every_configuration
def test_anything_finite_gives_something_finite(options, X, sigma, precision, seed):
    y = np.random.default_rng(seed).integers(0, 3, size=len(X))
    y[:2] = [0, 1]
    model = estimator(**{**options, "kernel": Gaussian(sigma=sigma)})
    with warnings.catch_warnings():  # a pre-image on a plateau may not converge
        warnings.simplefilter("ignore")
        model.fit(X.astype(precision), y)
    assert_finite(model, X.astype(precision))


# ------------------------------------------------------------------ containers and types


@every_configuration
def test_single_precision(options):
    X, y = three_classes()
    new, _ = three_classes(30, seed=1)
    model = estimator(**options).fit(X.astype(np.float32), y)
    expected = estimator(**options).fit(X, y).class_residuals(new)
    found = model.class_residuals(new.astype(np.float32))
    assert_finite(model, new.astype(np.float32))
    if options.get("alpha") != 0:  # what it interpolates is rounding
        np.testing.assert_allclose(found, expected, rtol=0, atol=3e-3)


@every_configuration
def test_containers(options, tmp_path):
    X, y = three_classes()
    expected = estimator(**options).fit(X, y).class_residuals(X)
    frozen = X.copy()
    frozen.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for made in (frozen, mapped, np.asfortranarray(X), X.tolist(), frame, np.repeat(X, 2, 0)[::2]):
        model = estimator(**options).fit(made, pd.Series(y))
        np.testing.assert_allclose(model.class_residuals(made), expected, rtol=0, atol=1e-12)
    assert list(estimator().fit(frame, y).feature_names_in_) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "labels", [[3, 7, 9], ["x", "yy", "z"], [True, False, True], [0.0, 1.0, 5.0]]
)
def test_labels(labels):
    X, y = three_classes()
    made = np.array(labels)[np.unique(y, return_inverse=True)[1]]
    for given_labels in (made, made.tolist(), pd.Series(made)):
        model = estimator().fit(X, given_labels)
        np.testing.assert_array_equal(model.classes_, np.unique(made))
        assert model.score(X, made) > 0.8


def test_training_data_are_not_changed_and_not_shared():
    X, y = three_classes()
    before, w = X.copy(), np.ones(60)
    model = estimator().fit(X, y, sample_weight=w)
    expected = model.class_residuals(before)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(w, 1)
    X[:] = 0
    np.testing.assert_array_equal(model.class_residuals(before), expected)


# ------------------------------------------------------------------ errors

BAD_PARAMETERS = [
    ({"alpha": -1.0}, r"alpha of PerTurbo must be a finite number >= 0; got -1.0\. Or write .*loo"),
    ({"alpha": "auto"}, "alpha of PerTurbo must be"),
    ({"alpha": np.nan}, "alpha of PerTurbo must be"),
    ({"alpha": None}, "alpha of PerTurbo must be"),
    ({"alpha_scale": "log"}, "alpha_scale of PerTurbo must be one of 'relative', 'absolute'"),
    ({"alphas": []}, "alphas of PerTurbo must be one or more numbers >= 0"),
    ({"alphas": [0.1, -1]}, "alphas of PerTurbo must be one or more numbers >= 0"),
    ({"alphas": [np.inf]}, "alphas of PerTurbo must be finite"),
    ({"alphas": "many"}, "alphas of PerTurbo must be"),
    ({"n_components": 0}, "n_components of PerTurbo must be an integer >= 1"),
    ({"n_components": 2.5}, "n_components of PerTurbo must be an integer >= 1"),
    ({"geodesic": "yes"}, "geodesic of PerTurbo must be True or False"),
    ({"reference": "median"}, "reference of PerTurbo must be one of 'preimage', 'mean'"),
    ({"kernel": "gauss"}, "Unknown kernel 'gauss'"),
    ({"kernel": "linear", "geodesic": True}, "radial kernel .*Linear is none; take reference="),
    (
        {"kernel": "linear", "geodesic": True, "reference": "mean"},
        r"k\(x, x\) must be the same for all points",
    ),
    ({"memory_budget": "much"}, "memory_budget of .* must be"),
    ({"verbose": -1}, "verbose of PerTurbo must be an integer >= 0"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS, ids=str)
def test_bad_parameters(parameters, message):
    """Refused by fit, not by the constructor; and nothing fitted is left behind."""
    model = estimator(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(*three_classes())
    assert {name for name in vars(model) if name.endswith("_")} <= {"n_features_in_"}
    for method in ("predict", "predict_proba", "decision_function", "class_residuals"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(three_classes()[0])


def test_bad_data():
    X, y = three_classes()
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        estimator().fit(bad, y)
    with pytest.raises(ValueError, match="infinity"):
        estimator().fit(np.where(np.isnan(bad), np.inf, bad), y)
    with pytest.raises(ValueError, match="Complex data not supported"):
        estimator().fit(X + 1j, y)
    model = estimator().fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(bad)
    with pytest.raises(ValueError, match=r"X has 2 features, but PerTurbo is expecting 3"):
        model.predict(X[:, :2])
    for kernel in (Polynomial(degree=3), Linear()):
        with pytest.raises(ValueError, match=r"so large that .* overflow"):
            estimator(kernel=kernel).fit(1e200 * X, y)


def test_bad_labels():
    X, y = three_classes()
    with pytest.raises(ValueError, match=r"at least two classes.* got one class"):
        estimator().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="got one class"):
        estimator().fit(X, y, sample_weight=(y == "ash").astype(float))
    with pytest.raises(ValueError, match="target y is None"):
        estimator().fit(X, None)
    with pytest.raises(ValueError, match="Unknown label type"):
        estimator().fit(X, np.linspace(0, 1, 60))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        estimator().fit(X, y[:-1])
    with pytest.raises(ValueError, match="Input y contains NaN"):
        estimator().fit(X, np.where(np.arange(60) == 5, np.nan, 1.0))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"shape \(60,\), one weight per sample; got \(3,\)"),
        (np.where(np.arange(60) == 7, -1.0, 1.0), "must not be negative; entry 7 is -1"),
        (np.zeros(60), "must have a positive entry"),
    ],
)
def test_bad_weights(weights, message):
    X, y = three_classes()
    with pytest.raises(ValueError, match=message):
        estimator().fit(X, y, sample_weight=weights)


def test_what_a_geodesic_kernel_does_not_take():
    X, y = three_classes()
    with pytest.raises(ValueError, match="not a precomputed matrix"):
        estimator(kernel="precomputed", geodesic=True).fit(gaussian(X), y)
    with pytest.raises(ValueError, match=r"does not take sparse X: .*reference='mean'"):
        estimator(geodesic=True).fit(scipy.sparse.csr_array(X), y)


def test_antipodes_are_named():
    """On a circle under the linear kernel: a point opposite to the mean of a class has no Log."""
    angles = np.array([-0.1, 0.1, 0.9, 1.1])
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    model = estimator(kernel="linear", geodesic=True, reference="mean", alpha=0.1)
    model.fit(X, [0, 0, 1, 1])
    new = np.concatenate([X, [[-1.0, 0.0]]])
    with pytest.raises(ValueError, match=r"row 4\) is antipodal"):
        model.predict(new)
    with pytest.raises(ValueError, match=r"row 4 of X"):
        model.predict(np.concatenate([X, [[2.0, 0.0]]]))


def test_rows_are_named_as_the_caller_has_them(monkeypatch):
    angles = np.array([-0.1, 0.1, 0.9, 1.1])
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    options = {"kernel": "linear", "geodesic": True, "reference": "mean", "alpha": 0.1}
    model = estimator(**options).fit(X, [0, 0, 1, 1])
    monkeypatch.setattr("orthodrome.classification.subspaces.BLOCK_ELEMENTS", 4)
    with pytest.raises(ValueError, match=r"row 4\) is antipodal"):
        model.predict(np.concatenate([X, [[-1.0, 0.0]]]))
    opposite = np.concatenate([[[0.3, 0.7], [-1.0, 0.0]], X])
    opposite[0] /= np.linalg.norm(opposite[0])
    with pytest.raises(ValueError, match=r"row 1\) is antipodal"):
        estimator(**options).fit(opposite, [1, 2, 0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"cannot normalise row 2:"):
        estimator(kernel=Normalized("linear")).fit(X * [[1], [1], [0], [1]], [0, 0, 1, 1])
    longer = X * [[1], [1], [1], [2]]
    with pytest.raises(ValueError, match=r"at row 3 of X"):
        estimator(**options).fit(longer, [0, 0, 1, 1])


@pytest.mark.parametrize("Classifier", [PerTurbo, KernelRidgeRegressionClassifier])
def test_kernel_values_without_squares_are_refused(Classifier):
    X, y = three_classes(24)
    gram, model = gaussian(X), Classifier(kernel="precomputed")
    with pytest.raises(ValueError, match=r"is 1e\+200 at row \d+ of X, .*overflows; rescale"):
        model.fit(gram * 1e200, y)
    with pytest.raises(ValueError, match=r"is 1e-200 at the most, .*underflows; rescale"):
        model.fit(gram * 1e-200, y)
    with pytest.raises(ValueError, match=r"mean of k\(x, x\) .* is -1, .*not negative"):
        model.fit(-gram, y)
    gram[:, 3] *= 1e200
    with pytest.raises(ValueError, match=r"at row 3 of X, .*overflows; rescale"):
        model.fit(gaussian(X), y).predict(gram.T)
    far = np.where(np.arange(24)[:, None] == 7, 1e120, 1.0) * X
    with pytest.raises(ValueError, match=r"at row 7 of X, .*overflows; rescale"):
        Classifier(kernel="linear").fit(X, y).predict(far)
    with pytest.raises(ValueError, match=r"at row 7 of X, .*overflows; rescale"):
        Classifier(kernel="linear").fit(far, y)


@pytest.mark.parametrize("Classifier", [PerTurbo, KernelRidgeRegressionClassifier])
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_answers_do_not_depend_on_the_size_of_kernel_values(Classifier, scale):
    X, y = three_classes(24)
    model = Classifier(kernel="precomputed").fit(gaussian(X), y)
    scaled = Classifier(kernel="precomputed").fit(scale * gaussian(X), y)
    expected = model.predict_proba(gaussian(X))
    np.testing.assert_allclose(scaled.predict_proba(scale * gaussian(X)), expected, atol=1e-8)
    np.testing.assert_allclose(scaled.loo_residuals_ / scale, model.loo_residuals_, atol=1e-8)


def test_classes_that_do_not_fit():
    """Refused before the kernel is evaluated."""

    def kernel(A, B):
        raise AssertionError("evaluated")

    X = np.random.default_rng(0).standard_normal((1500, 2))
    with pytest.raises(ValueError, match=r"1499 x 1499 for .* memory_budget is 1 MiB"):
        estimator(kernel=kernel, memory_budget="1MiB").fit(X, np.arange(1500) == 0)
    # copies take no place
    few = estimator(memory_budget="1MiB").fit(np.repeat(X[:10], 150, axis=0), np.arange(1500) < 750)
    assert_finite(few, X)


def test_a_failing_refit_keeps_the_last_fit():
    X, y = three_classes()
    model = estimator().fit(X, y)
    before, names = model.class_residuals(X), set(vars(model))
    with pytest.raises(ValueError, match="got one class"):
        model.fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((6, 2), np.nan), [0, 1] * 3)
    model.alpha = -1
    with pytest.raises(ValueError, match="alpha"):
        model.fit(X, y)
    np.testing.assert_array_equal(model.class_residuals(X), before)
    assert set(vars(model)) == names


# ------------------------------------------------------------------ protocol


@every_configuration
def test_pickling_and_cloning(options):
    X, y = three_classes()
    model = estimator(**options).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.class_residuals(X), model.class_residuals(X))
    copy = clone(model)
    assert not hasattr(copy, "kernel_")
    np.testing.assert_array_equal(copy.fit(X, y).predict_proba(X), model.predict_proba(X))


class Recorder:
    """The FitCallback protocol, writing down what it is told."""

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, **_):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, **_):
        self.events.append(("end", context.task_name))


@pytest.mark.parametrize("name", ["loo", "preimage", "truncated"])
def test_callbacks_see_the_fit_from_begin_to_end(name):
    recorder = Recorder()
    X, y = three_classes()
    model = estimator(**CONFIGURATIONS[name]).set_callbacks(recorder)
    model.fit(X, y)
    events = recorder.events
    assert events[:2] == ["setup", ("begin", "fit")]
    assert events[-2:] == [("end", "fit"), "teardown"]
    assert [kind for kind, _ in events[2:-2]] == ["begin", "end"] * 20
    plain = estimator(**CONFIGURATIONS[name]).fit(X, y)
    np.testing.assert_array_equal(model.loo_residuals_, plain.loo_residuals_)


@pytest.mark.parametrize(
    "options", [{}, {"geodesic": True}, {"geodesic": True, "reference": "mean"}]
)
@pytest.mark.parametrize("alpha", ["loo", 1e-8])
def test_float32_data_are_computed_with_in_double_precision(options, alpha):
    """Residuals are differences, and the choice of α would be that of rounding."""
    X, y = three_classes()
    X = X.astype(np.float32)
    coarse = PerTurbo(Gaussian(), alpha=alpha, **options).fit(X, y)
    exact = PerTurbo(Gaussian(), alpha=alpha, **options).fit(X.astype(np.float64), y)
    assert coarse.alpha_ == exact.alpha_
    np.testing.assert_array_equal(coarse.loo_residuals_, exact.loo_residuals_)
    np.testing.assert_array_equal(coarse.class_residuals(X), exact.class_residuals(X))


def test_a_budget_counts_what_is_needed_on_the_way():
    X, y = np.random.default_rng(0).standard_normal((1200, 2)), np.arange(1200) % 2
    with pytest.raises(ValueError, match=r"memory_budget is 16 MiB"):
        PerTurbo(memory_budget="16MiB").fit(X, y)


@pytest.mark.parametrize("Classifier", [PerTurbo, KernelRidgeRegressionClassifier])
@pytest.mark.parametrize("kernel", ["power", "log", "additive_chi2"])
def test_kernels_without_lengths_are_refused(Classifier, kernel):
    """All residuals would be 0, and the first class have every point."""
    X, y = three_classes()
    with pytest.raises(ValueError, match=r"k\(x, x\) is 0 for all .* choose another"):
        Classifier(kernel).fit(np.abs(X), y)
    model = Classifier("linear").fit(np.zeros((6, 2)), y[[0, -1] * 3])  # of which all are 0
    np.testing.assert_array_equal(model.class_residuals(np.zeros((2, 2))), 0)
