"""Battery "degenerate data": for each the right answer or a clear error.

Never NaN, never a hang, never an error of what lies below: not of NumPy, SciPy or LAPACK. What the
right answer is, answers.py says from plain formulas, for the first configuration of each estimator;
the others must agree with the twins of their data.
"""

import ast
import dataclasses
import faulthandler
import functools
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import orthodrome
from answers import check_answers
from degenerate import (
    ANSWERED,
    CASES,
    MOTIONS,
    PICTURES,
    REFUSED,
    SINGLE,
    Case,
    N,
    good,
    motion,
    picture,
)
from laws_product import (
    CONFIGURATIONS,
    FIRST,
    METHODS,
    ROUNDING,
    partition,
)
from optional import needs
from orthodrome import (
    KernelPCA,
    KernelPGA,
    KernelPNS,
    KernelRidgeRegressionClassifier,
    PatchDenoiser,
    PerTurbo,
)
from orthodrome.denoising import SequenceDenoiser

HOME = Path(orthodrome.__file__).parent
CHECKS = Path(sklearn.__file__).parent / "utils"  # of arrays and of targets
SECONDS = 60  # for a fit of a dozen points, and what is asked of it

#: NaN where there is nothing to tell: the scale of a kernel that has none.
MAY_BE_NAN = {"sigmas_"}
#: Infinite while the basis of a Krylov solver is smaller than what is asked for.
RESIDUAL = "max_residual"
#: What is compared with the answers for the twin.
ATTRIBUTES = ("embedding_", "labels_", "explained_variance_ratio_", "loo_score_")
ASKED = {"transform", "predict", "predict_proba"}


@pytest.fixture(autouse=True)
def _no_hang():
    """Compiled loops look at no signal: what does not end takes its process along."""
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


# What an answer and a refusal are -----------------------------------------------------------------


def attempted(action):
    """Return what comes of an action, or the error; warnings are ours, or there are none."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found, error = action(), None
        except Exception as caught:
            found, error = None, caught
    strangers = [str(each.message) for each in said if not issubclass(each.category, UserWarning)]
    assert not strangers, strangers
    if error is not None:
        check_clear(error)
    return found, error


def check_clear(error):
    """An error that somebody wrote for the reader, of the kind that bad input has.

    What compiled code raises has the line that calls it for its last: that is no `raise`.
    """
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = Path(last.filename)
    at_home = place.is_relative_to(HOME) or place.is_relative_to(CHECKS)
    written_here = at_home and last.lineno in lines_that_raise(place)
    is_plain = isinstance(error, (ValueError, TypeError))
    if not (is_plain and written_here) or isinstance(error, np.linalg.LinAlgError):
        raise AssertionError(f"{type(error).__name__} of {place.name}: {error}") from error
    assert len(str(error).split()) >= 4, error


@functools.cache
def lines_that_raise(file):
    """The lines of all `raise` statements of a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    raises = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    return {line for node in raises for line in range(node.lineno, node.end_lineno + 1)}


def check_finite(values, what):
    """Numbers, and lists, dictionaries and records of numbers, to any depth."""
    if isinstance(values, dict):
        early = values.get(RESIDUAL) == np.inf
        values = [value for key, value in values.items() if not (early and key == RESIDUAL)]
    elif dataclasses.is_dataclass(values) and not isinstance(values, type):
        values = [getattr(values, field.name) for field in dataclasses.fields(values)]
    if isinstance(values, (list, tuple)):
        for value in values:
            check_finite(value, what)
    elif isinstance(values, (np.ndarray, np.generic, float, complex)):
        array = np.asarray(values)
        assert array.dtype.kind not in "fc" or np.all(np.isfinite(array)), what


def fitted(each, case):
    """Return the model, and the error that it ended with."""
    options = each.options if case.options is None else each.options | case.options(each)
    options = {key: value for key, value in options.items() if key in each.takes}
    options.pop("reg_covar", None)  # mixtures as they come
    options |= {"n_init": 2} if "n_init" in each.takes else {}  # what happens, not how often
    model = each.make(**({"kernel": case.kernel} | options))
    more = {} if case.weight is None else {"sample_weight": case.weight}
    return model, attempted(lambda: model.fit(case.X, case.classes, **more))[1]


def answers(model, case):
    """What the methods say of new rows, errors included."""
    new, found = case.new_rows, {}
    for name in sorted(METHODS - {"inverse_transform"}):
        if hasattr(model, name):
            found[name] = attempted(lambda name=name: getattr(model, name)(new))
    return found


#: Where X has no extent in feature space, of which components would explain a share.
NO_EXTENT = {
    "one point",
    "two equal points",
    "all equal",
    "all zero",
    "classes in one place",
    "sigma 1e9",
    "sigma 1e12",
    "sigma 1e6 in single precision",
    "sigma 1e12 in single precision",
    "sphere: no lengths",
    "sphere: one column of ones",
    "sphere: only the pole",
    "gram: negative definite",
    "gram: of one point",
    "gram: ones",
    "gram: zeros",
    "shapes: equal",
    "shapes: one",
    "shapes: one, turned and moved",
    "matrices: equal",
    "matrices: identities",
    "matrices: one",
}
#: Where k(x, x) of new rows, which a matrix does not say, cannot be guessed from its diagonal.
NO_DIAGONAL = {
    "gram: another diagonal",
    "gram: rank one",
    "gram: zero on the diagonal",
    "gram: negative on the diagonal",
}


#: And where single precision leaves none.
NO_EXTENT_IN_SINGLE = NO_EXTENT | {"nearly equal", "far from zero", "sigma 1e6"}


def may_refuse(model, name, given, method):
    """Whether a method has nothing to say of a case, though it was fitted to it.

    These are all pairs of a method and what a case is like; everything else is answered.
    """
    if method == "score" and isinstance(model, (KernelPCA, KernelPGA)):
        single = getattr(given.X, "dtype", None) == np.float32
        none = NO_EXTENT_IN_SINGLE if single else NO_EXTENT
        return name in none or (isinstance(model, KernelPCA) and name in NO_DIAGONAL)
    return method in ("sample", "inverse_transform") and given.kernel == "precomputed"


def sums(model, case):
    """What is said of all new rows together, rows that are drawn, and inputs of coordinates."""
    found = {}
    more = (
        (case.classes[: 0 if case.new_rows is None else len(case.new_rows)],)
        if is_classifier(model)
        else ()
    )
    for name in ("score", "bic", "aic"):
        if hasattr(model, name):
            found[name] = attempted(lambda name=name: getattr(model, name)(case.new_rows, *more))
    if hasattr(model, "sample"):
        found["sample"] = attempted(lambda: model.sample(3))
    if hasattr(model, "inverse_transform"):
        some = model.embedding_[:3]
        found["inverse_transform"] = attempted(lambda: model.inverse_transform(some))
    return found


def check_sums(model, name, given, expected):
    """All is answered, but what a case has no answer for, and what new rows are refused for."""
    for method, (found, refusal) in sums(model, given).items():
        of_new = method in ("score", "bic", "aic")
        none = may_refuse(model, name, given, method) and not isinstance(model, KernelPNS)
        refused = none or (of_new and expected == REFUSED)
        assert (refusal is not None) == refused, f"{method}: {refusal or 'it is answered'}"
        if refusal is None:
            check_finite(found, method)
    if given.kernel == "precomputed":
        check_without_inputs(model)


def check_without_inputs(model):
    """What a matrix is no answer for is answered where inputs are given, or not asked for."""
    found = []
    if hasattr(model, "sample"):
        found += [model.sample(3, space=space, random_state=0) for space in ("embedding", "sphere")]
    if hasattr(model, "inverse_transform") and not isinstance(model, KernelPNS):
        inputs = np.arange(2.0 * len(model.embedding_)).reshape(-1, 2)
        found += [model.inverse_transform(model.embedding_[:3], inputs=inputs)]
        assert found[-1].shape == (len(model.embedding_[:3]), 2)
    check_finite(found, "without inputs")


def check_attributes(model):
    for name in (name for name in dir(model) if name.endswith("_") and name[0] != "_"):
        value, error = attempted(lambda name=name: getattr(model, name))
        assert error is None, name
        if name not in MAY_BE_NAN:
            check_finite(value, name)


# The battery --------------------------------------------------------------------------------------

PRODUCT = [
    pytest.param(
        name, case, id=f"{name}-{case}", marks=() if name in FIRST.values() else pytest.mark.slow
    )
    for name, each in CONFIGURATIONS.items()
    for case, given in CASES.items()
    if given.weight is None or each.takes_weights
]


@pytest.mark.parametrize(("name", "case"), PRODUCT)
def test_the_right_answer_or_a_clear_error(name, case):
    check_case(name, case, CASES[case])


def check_case(name, case, given):
    each = CONFIGURATIONS[name]
    model, error = fitted(each, given)
    assert (ANSWERED if error is None else REFUSED) == given.expected(each), error
    if error is not None:
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
        return
    check_attributes(model)
    expected = given.expected_of_new(each)
    for method, (found, refusal) in answers(model, given).items():
        assert (ANSWERED if refusal is None else REFUSED) == expected, f"{method}: {refusal}"
        if refusal is None:
            check_finite(found, method)
            assert len(found) == len(given.new_rows), method
    check_sums(model, case, given, expected)
    if name in FIRST.values() and expected == ANSWERED and not without_digits(case, given):
        check_answers(model, given)
    if given.twin is not None and given.alike(each):
        check_same(model, each, given)


def without_digits(case, given):
    """Whether nothing is left of the data in single precision, whatever is computed from them."""
    return case == "shapes: far away" and given.X.dtype == np.float32


#: Of single precision, what is looked at every time; all cases are slow.
QUICK_IN_SINGLE = {
    "two points",
    "all equal",
    "collinear",
    "equidistant",
    "nearly equal",
    "an outlier of 1e6",
    "sigma 1e-3",
    "sigma 1e3",
    "a class of one",
    "weights of 1e+40",
    "weights of 1e-50",
    "weights of 1e+300",
    "weights of 1e-310",
    "gram: blocks",
    "gram: indefinite",
    "shapes: mirrored",
}


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(name, case, marks=() if case in QUICK_IN_SINGLE else pytest.mark.slow)
        for name in FIRST.values()
        for case, given in SINGLE.items()
        if given.weight is None or CONFIGURATIONS[name].takes_weights
    ],
)
def test_the_right_answer_or_a_clear_error_in_single_precision(name, case):
    check_case(name, case, SINGLE[case])


def test_what_is_looked_at_every_time_in_single_precision_is_there():
    assert set(SINGLE) >= QUICK_IN_SINGLE
    assert len(SINGLE) > 0.7 * len([case for case in CASES.values() if case.outcome != REFUSED])


def check_same(model, each, given):
    """The answers are those of the twin, of training and of new rows; clusters as partitions."""
    twin, error = fitted(each, given.twin)
    assert error is None, error
    one, other = (
        {name: getattr(fit, name) for name in ATTRIBUTES if hasattr(fit, name)}
        | {name: found for name, (found, _) in answers(fit, case).items() if name in ASKED}
        for fit, case in ((model, given), (twin, given.twin))
    )
    if each.is_clustering:
        one, other = (
            {"partition": partition([*said["labels_"], *said["predict"]])} for said in (one, other)
        )
    assert one.keys() == other.keys()
    for name, expected in other.items():
        if np.asarray(expected).dtype.kind == "f":
            atol = given.tolerance * np.abs(expected).max(initial=1e-300)
            np.testing.assert_allclose(one[name], expected, rtol=0, atol=atol, err_msg=name)
        else:
            np.testing.assert_array_equal(one[name], expected, err_msg=name)


# Wrong answers, and whether they are seen ---------------------------------------------------------


def doubled(value):
    return 2 * np.asarray(value)


def nothing(value):
    return 0 * np.asarray(value)


def exchanged(labels):
    """Each label in the place of the next."""
    known, places = np.unique(labels, return_inverse=True)
    return np.roll(known, 1)[places]


def turned(rows):
    """Rows whose columns say what is true of the next."""
    return np.roll(rows, 1, axis=1)


COORDINATES = {
    "embedding_": doubled,
    "transform": nothing,
    "explained_variance_ratio_": doubled,
}
DISTANCES = {"labels_": exchanged, "predict": exchanged, "transform": nothing, "inertia_": doubled}
RESIDUALS = {
    "predict": exchanged,
    "class_residuals": doubled,
    "predict_proba": turned,
    "loo_residuals_": doubled,
}
BUGS = {
    "KernelPCA": COORDINATES | {"eigenvalues_": doubled, "score": doubled},
    "KernelPGA": COORDINATES | {"eigenvalues_": doubled, "geodesic_variance_": doubled},
    "KernelPNS": COORDINATES | {"residuals_": doubled, "sphere_coordinates_": turned},
    "RobustKernelPCA": COORDINATES | {"dispersions_": doubled},
    "KernelKMeans": DISTANCES | {"score": doubled},
    "HypersphericalKMeans": DISTANCES,
    "KernelSpectralClustering": {
        "labels_": exchanged,
        "predict": exchanged,
        "embedding_": doubled,
        "eigenvalues_": doubled,
    },
    "GeodesicMixture": {
        "labels_": exchanged,
        "predict": exchanged,
        "predict_proba": turned,
        "score_samples": doubled,
        "lower_bound_": doubled,
        "means_": turned,
        "covariances_": doubled,
    },
    "KernelRidgeRegressionClassifier": RESIDUALS,
    "PerTurbo": RESIDUALS,
    "NestedSpheresClassifier": {
        "predict": exchanged,
        "decision_function": turned,
        "features_": doubled,
    },
}


def with_a_bug(monkeypatch, model, name, change):
    """What a fit says by this name is wrong: an attribute of its own, a property or a method."""
    if name in vars(model):
        monkeypatch.setattr(model, name, change(vars(model)[name]))
        return
    right = getattr(type(model), name)
    if isinstance(right, property):
        monkeypatch.setattr(type(model), name, property(lambda self: change(right.fget(self))))
    else:
        monkeypatch.setattr(model, name, lambda *given: change(right(model, *given)))


@pytest.mark.parametrize("case", ["sigma 1e0", "a class of one", "shapes: mirrored"])
@pytest.mark.parametrize(
    ("make", "what"), [(make, what) for make, several in BUGS.items() for what in several]
)
def test_wrong_answers_are_seen(make, what, case, monkeypatch):
    model = right_model(make, case)
    with_a_bug(monkeypatch, model, what, BUGS[make][what])
    with pytest.raises(AssertionError):
        check_answers(model, CASES[case])


@functools.cache
def right_model(make, case):
    model = model_of(FIRST[make], case)
    check_answers(model, CASES[case])
    return model


def test_bugs_are_tried_with_every_estimator():
    assert set(BUGS) == set(FIRST)


# What is known of the answers ---------------------------------------------------------------------


def every(condition):
    """Configurations for which something is known; the first of each estimator is not slow."""
    return pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=() if name in FIRST.values() else pytest.mark.slow)
            for name, each in CONFIGURATIONS.items()
            if condition(each)
        ],
    )


def model_of(name, case):
    model, error = fitted(CONFIGURATIONS[name], CASES[case])
    assert error is None, error
    return model


@every(lambda each: hasattr(each.make, "transform") and not each.is_clustering)
@pytest.mark.parametrize("case", ["one point", "all equal", "all zero", "shapes: equal"])
def test_equal_points_are_the_mean_and_have_no_extent(name, case):
    model = model_of(name, case)
    assert np.abs(model.embedding_).max(initial=0) < 1e-6
    assert np.abs(model.transform(CASES[case].X)).max(initial=0) < 1e-6


@every(lambda each: each.is_clustering)
@pytest.mark.parametrize("case", ["all equal", "all zero", "shapes: equal", "matrices: identities"])
def test_equal_points_are_one_cluster(name, case):
    assert len(set(model_of(name, case).labels_)) == 1


@every(lambda each: each.is_clustering)
def test_points_in_three_places_are_three_clusters(name):
    expected = np.arange(N) // 4
    np.testing.assert_array_equal(partition(model_of(name, "three places").labels_), expected)
    if CONFIGURATIONS[name].matrices:
        np.testing.assert_array_equal(partition(model_of(name, "gram: blocks").labels_), expected)


def spans_its_classes(each):
    """Whether a class is all of its points, and not a part of their span."""
    classifiers = (KernelRidgeRegressionClassifier, PerTurbo)
    return each.make in classifiers and not {"n_components", "subspace_size"} & set(each.options)


@every(spans_its_classes)
@pytest.mark.parametrize(
    "case",
    [
        "a class of one",
        "classes of one",
        "a class without variance",
        "classes without variance",
        "a class in two places",
        "sigma 1e-12",
        "sigma 1e-6 in single precision",
        "sigma 1e0",
    ],
)
def test_points_that_were_learned_are_recognised(name, case):
    """Classes that lie apart, however few their points are."""
    given = CASES[case]
    np.testing.assert_array_equal(model_of(name, case).predict(given.X), given.classes)


@every(lambda each: each.make in (KernelPCA, KernelPGA) and each.order == ROUNDING)
@pytest.mark.parametrize(("sigma", "tolerance"), [(1e3, 1e-4), (1e6, 1e-3)])
def test_a_large_scale_is_the_linear_kernel(name, sigma, tolerance):
    """Of the mean of points near together a sphere is flat: θ = d/σ, and there is no more to it."""
    left, sizes, _ = np.linalg.svd(good() - good().mean(axis=0), full_matrices=False)
    linear = (left * sizes)[:, :2]
    linear = linear * np.sign((linear**3).sum(axis=0))
    found = model_of(name, f"sigma 1e{round(np.log10(sigma))}").embedding_ * sigma
    np.testing.assert_allclose(found, linear, rtol=0, atol=tolerance * np.abs(linear).max())


@every(lambda each: each.make in (KernelPCA, KernelPGA))
@pytest.mark.parametrize("case", ["sigma 1e9", "sigma 1e12", "sigma 1e12 in single precision"])
def test_rounding_is_not_shown_as_extent(name, case):
    assert np.abs(model_of(name, case).embedding_).max(initial=0) < 1e-6


# Denoisers ----------------------------------------------------------------------------------------

DENOISERS = {
    "picture": (PatchDenoiser(4, n_components=3, random_state=0), PICTURES, picture),
    "motion": (SequenceDenoiser(3, random_state=0), MOTIONS, motion),
}


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        pytest.param(kind, case, marks=needs("skimage", "pywt") if kind == "picture" else ())
        for kind, (_, cases, _) in DENOISERS.items()
        for case in cases
    ],
)
def test_denoisers_clean_or_refuse(kind, case):
    make, cases, good = DENOISERS[kind]
    data, expected = cases[case]
    found, error = attempted(lambda: dataclasses.replace(make).denoise(data))
    assert (ANSWERED if error is None else REFUSED) == expected, error
    if error is not None:
        return
    assert found.shape == data.shape
    assert found.dtype == data.dtype
    check_finite(found, case)
    if case in ("constant", "zeros", "still"):
        np.testing.assert_array_equal(found, data)
    if case.startswith("values"):
        scale = data.flat[0] / good().flat[0]
        np.testing.assert_allclose(
            found / scale, dataclasses.replace(make).denoise(good()), atol=1e-6
        )


def test_the_battery_sees_what_it_is_for():
    """Errors and answers of each kind that is looked for are complained of."""

    def of_numpy():
        np.zeros((2, 3)) @ np.zeros((2, 3))

    def of_lapack():
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    def of_python():
        return {}["x"]

    def with_a_warning():
        return np.float64(1.0) / np.zeros(1)

    def of_compiled_code_that_we_call():
        return orthodrome.kernels.Gaussian(sigma=1.0).fit([[0.0]]).profile("a word")

    actions = (of_numpy, of_lapack, of_python, with_a_warning, of_compiled_code_that_we_call)
    for action in actions:
        with pytest.raises(AssertionError):
            attempted(action)

    @dataclasses.dataclass
    class Pass:
        value: float

    none = (
        [1.0, np.nan],
        {"a": [1, np.inf]},
        [Pass(np.nan)],
        np.float64(np.nan),
        (np.ones(1), [-np.inf]),
    )
    for values in none:
        with pytest.raises(AssertionError, match="something"):
            check_finite(values, "something")
    with pytest.raises(AssertionError, match="something"):
        check_finite([{RESIDUAL: np.nan}], "something")
    check_finite([{RESIDUAL: np.inf}], "something")
    check_finite([Pass(1.0), {"a": "nan", "b": None}, 3], "something")
    assert Case(np.zeros((2, 1))).expected(CONFIGURATIONS["KernelPCA, auto"]) == ANSWERED
