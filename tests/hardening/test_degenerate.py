"""Degenerate data: every estimator returns the right answer or raises a clear error.

Never NaN, never a hang, never an error of NumPy, SciPy or LAPACK. answers.py has an oracle for the
first configuration of each estimator; all configurations must agree with the twins of their data.
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
    CASES,
    GROUPS,
    MOTIONS,
    PICTURES,
    SINGLE,
    good,
    has_residuals,
    motion,
    picture,
)
from laws_product import CONFIGURATIONS, FIRST, METHODS, ROUNDING, partition
from optional import needs
from orthodrome import KernelPCA, KernelPGA, KernelPNS, PatchDenoiser
from orthodrome.denoising import SequenceDenoiser

HOME = Path(orthodrome.__file__).parent
CHECKS = Path(sklearn.__file__).parent / "utils"  # checks of arrays and targets
SECONDS = 60  # for a fit of a dozen points and its methods

#: NaN for a kernel without a scale.
MAY_BE_NAN = {"sigmas_"}
#: Infinite while the basis of a Krylov solver has fewer vectors than components.
RESIDUAL = "max_residual"
#: Compared with the fit to the twin.
ATTRIBUTES = ("embedding_", "labels_", "explained_variance_ratio_", "loo_score_")
COMPARED = {"transform", "predict", "predict_proba"}


# Results and errors -------------------------------------------------------------------------------


def attempted(action):
    """Return the result of an action, or its error. Only warnings of this library are allowed."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        try:
            found, error = action(), None
        except Exception as caught:
            found, error = None, caught
    foreign = [str(each.message) for each in shown if not issubclass(each.category, UserWarning)]
    assert not foreign, foreign
    if error is not None:
        check_clear(error)
    return found, error


def check_clear(error):
    """Check that an error comes from a `raise` of this library or of scikit-learn's checks."""
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
    tree = ast.parse(file.read_text(encoding="utf-8"))
    raises = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    return {line for node in raises for line in range(node.lineno, node.end_lineno + 1)}


def check_finite(values, what):
    """Check numbers, and lists, dictionaries and records of numbers."""
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
    """Return the model and its error, if any."""
    options = each.options if case.options is None else each.options | case.options(each)
    options = {key: value for key, value in options.items() if key in each.takes}
    options.pop("reg_covar", None)  # the default
    options |= {"n_init": 2} if "n_init" in each.takes else {}
    model = each.make(**({"kernel": case.kernel} | options))
    more = {} if case.weight is None else {"sample_weight": case.weight}
    return model, attempted(lambda: model.fit(case.X, case.classes, **more))[1]


def answers(model, case):
    """Return results or errors of all methods that return something for each new row."""
    return {
        name: attempted(lambda name=name: getattr(model, name)(case.new_rows))
        for name in sorted(METHODS - {"inverse_transform"})
        if hasattr(model, name)
    }


def sums(model, case):
    """Return scores of all new rows, sampled rows, and pre-images of coordinates."""
    rows = 0 if case.new_rows is None else len(case.new_rows)
    targets = (case.classes[:rows],) if is_classifier(model) else ()
    found = {
        name: attempted(lambda name=name: getattr(model, name)(case.new_rows, *targets))
        for name in ("score", "bic", "aic")
        if hasattr(model, name)
    }
    if hasattr(model, "sample"):
        found["sample"] = attempted(lambda: model.sample(3))
    if hasattr(model, "inverse_transform"):
        some = model.embedding_[:3]
        found["inverse_transform"] = attempted(lambda: model.inverse_transform(some))
    return found


def names(text):
    return {name.strip() for name in text.split(";")}


#: All points coincide in feature space: there is no variance to explain.
NO_EXTENT = names("""
    one point; two equal points; all equal; all zero; classes in one place; sigma 1e9; sigma 1e12;
    sigma 1e6 in single precision; sigma 1e12 in single precision; sphere: no lengths;
    sphere: one column of ones; sphere: only the pole; gram: of one point; gram: ones; gram: zeros;
    shapes: equal; shapes: one; shapes: one, turned and moved; matrices: equal;
    matrices: identities; matrices: one
""")
NO_EXTENT_IN_SINGLE = NO_EXTENT | {"nearly equal", "far from zero", "sigma 1e6"}
#: The diagonal is not constant, so k(x, x) of new rows is not known.
NO_DIAGONAL = names("""
    gram: another diagonal; gram: rank one; gram: zero on the diagonal;
    gram: negative on the diagonal
""")
NO_VARIANCE = {"gram: negative definite"}
#: Classes are far apart.
SEPARATE_CLASSES = names("""
    a class of one; classes of one; a class without variance; classes without variance;
    a class in two places; sigma 1e-12; sigma 1e-6 in single precision; sigma 1e0
""")
ONE_CLUSTER = {"all equal", "all zero", "shapes: equal", "matrices: identities"}
THREE_PLACES = {"three places", "gram: blocks"}
#: The sphere is nearly flat: embeddings times σ are those of the linear kernel.
LINEAR = {"sigma 1e3": (1e3, 1e-4), "sigma 1e6": (1e6, 1e-3)}


def may_refuse(model, case, given, method):
    """Whether a method has no answer for a case, though the fit had one."""
    if method == "score" and isinstance(model, (KernelPCA, KernelPGA)):
        single = getattr(given.X, "dtype", None) == np.float32
        none = (NO_EXTENT_IN_SINGLE if single else NO_EXTENT) | NO_VARIANCE
        return case in none or (isinstance(model, KernelPCA) and case in NO_DIAGONAL)
    without_inputs = method in ("sample", "inverse_transform") and given.kernel == "precomputed"
    return without_inputs and not isinstance(model, KernelPNS)


# The battery --------------------------------------------------------------------------------------


def check_case(name, case, given):
    """Fit one configuration to one case and check all results."""
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=sys.__stderr__)
    each = CONFIGURATIONS[name]
    model, error = fitted(each, given)
    assert (error is not None) == given.expected(each), error
    if error is not None:
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
        return
    check_attributes(model)
    check_methods(model, case, given, given.expected_of_new(each))
    check_known(each, model, case, given)
    double = getattr(given.X, "dtype", None) != np.float32
    answered = not given.expected_of_new(each)
    # shapes far away have no digits left in single precision
    if name in FIRST.values() and answered and (double or case != "shapes: far away"):
        check_answers(model, given)
    if given.twin is not None and given.alike(each):
        check_same(model, each, given)


def check_attributes(model):
    for name in (name for name in dir(model) if name.endswith("_") and name[0] != "_"):
        value, error = attempted(lambda name=name: getattr(model, name))
        assert error is None, name
        if name not in MAY_BE_NAN:
            check_finite(value, name)


def check_methods(model, case, given, expected):
    for method, (found, refusal) in answers(model, given).items():
        assert (refusal is not None) == expected, f"{method}: {refusal}"
        if refusal is None:
            check_finite(found, method)
            assert len(found) == len(given.new_rows), method
    for method, (found, refusal) in sums(model, given).items():
        of_new = expected and method in ("score", "bic", "aic")
        refused = of_new or may_refuse(model, case, given, method)
        assert (refusal is not None) == refused, f"{method}: {refusal or 'no error'}"
        if refusal is None:
            check_finite(found, method)
    if given.kernel == "precomputed":
        check_without_inputs(model)


def check_without_inputs(model):
    """Check samples and pre-images of a Gram matrix, which has no inputs."""
    if hasattr(model, "sample"):
        for space in ("embedding", "sphere"):
            check_finite(model.sample(3, space=space, random_state=0), "sample")
    if hasattr(model, "inverse_transform") and not isinstance(model, KernelPNS):
        inputs = np.arange(2.0 * len(model.embedding_)).reshape(-1, 2)
        found = model.inverse_transform(model.embedding_[:3], inputs=inputs)
        check_finite(found, "inverse_transform")
        assert found.shape == (len(model.embedding_[:3]), 2)


def check_known(each, model, case, given):
    """Check known results of some cases, for every configuration."""
    if each.is_clustering:
        if case in ONE_CLUSTER:
            assert len(set(model.labels_)) == 1, "clusters of equal points"
        if case in THREE_PLACES:
            np.testing.assert_array_equal(partition(model.labels_), np.arange(12) // 4)
    elif hasattr(model, "embedding_") and case in NO_EXTENT:
        assert np.abs(model.embedding_).max(initial=0) < 1e-6, "embedding_ of equal points"
        assert np.abs(model.transform(given.X)).max(initial=0) < 1e-6, "transform of equal points"
    whole_classes = not {"n_components", "subspace_size"} & set(each.options)
    if has_residuals(each) and whole_classes and case in SEPARATE_CLASSES:
        np.testing.assert_array_equal(model.predict(given.X), given.classes)
    single = getattr(given.X, "dtype", None) == np.float32
    if isinstance(model, (KernelPCA, KernelPGA)) and each.order == ROUNDING and not single:
        check_linear(model, case)


def check_linear(model, case):
    if case in LINEAR:
        sigma, tolerance = LINEAR[case]
        left, sizes, _ = np.linalg.svd(good() - good().mean(axis=0), full_matrices=False)
        linear = (left * sizes)[:, :2]
        linear = linear * np.sign((linear**3).sum(axis=0))
        atol = tolerance * np.abs(linear).max()
        np.testing.assert_allclose(model.embedding_ * sigma, linear, rtol=0, atol=atol)


def check_same(model, each, given):
    """Compare with the twin, for training and new rows; clusters as partitions."""
    twin, error = fitted(each, given.twin)
    assert error is None, error
    one, other = (
        {name: getattr(fit, name) for name in ATTRIBUTES if hasattr(fit, name)}
        | {name: found for name, (found, _) in answers(fit, case).items() if name in COMPARED}
        for fit, case in ((model, given), (twin, given.twin))
    )
    if each.is_clustering:
        one, other = (
            {"partition": partition([*each["labels_"], *each["predict"]])} for each in (one, other)
        )
    assert one.keys() == other.keys()
    for name, expected in other.items():
        if np.asarray(expected).dtype.kind == "f":
            atol = given.tolerance * np.abs(expected).max(initial=1e-300)
            np.testing.assert_allclose(one[name], expected, rtol=0, atol=atol, err_msg=name)
        else:
            np.testing.assert_array_equal(one[name], expected, err_msg=name)


def check_cases(name, cases):
    """Check all cases of a group and report those that fail together."""
    failed = []
    for case, given in cases.items():
        if given.weight is not None and not CONFIGURATIONS[name].takes_weights:
            continue
        try:
            check_case(name, case, given)
        except AssertionError as error:
            failed.append(f"{case}: {error}")
        finally:
            faulthandler.cancel_dump_traceback_later()
    assert not failed, "\n".join(failed)


#: Checked by `make test` in single precision and for costly estimators; the others are slow.
QUICK_CASES = names("""
    two points; all equal; collinear; equidistant; nearly equal; an outlier of 1e6; sigma 1e-3;
    sigma 1e3; a class of one; weights of 1e+40; weights of 1e-50; weights of 1e+300;
    weights of 1e-310; gram: blocks; gram: indefinite; shapes: mirrored
""")

#: The first configurations whose fits take the longest.
COSTLY = [FIRST[each] for each in ("KernelPNS", "GeodesicMixture", "NestedSpheresClassifier")]


def first_is_quick(name):
    quick = name in FIRST.values() and name not in COSTLY
    return pytest.param(name, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", [first_is_quick(each) for each in CONFIGURATIONS])
def test_the_right_answer_or_a_clear_error(name, group):
    check_cases(name, GROUPS[group])


@pytest.mark.parametrize("name", COSTLY)
def test_the_right_answer_of_costly_estimators(name):
    check_cases(name, {case: CASES[case] for case in QUICK_CASES})


@pytest.mark.parametrize("name", FIRST.values())
def test_single_precision(name):
    cases = {case: given for group in SINGLE.values() for case, given in group.items()}
    check_cases(name, {case: cases[case] for case in QUICK_CASES})


@pytest.mark.slow
@pytest.mark.parametrize("group", SINGLE)
@pytest.mark.parametrize("name", FIRST.values())
def test_single_precision_in_full(name, group):
    check_cases(name, SINGLE[group])


@pytest.mark.parametrize("make", FIRST)
def test_the_oracles_find_wrong_answers(make, monkeypatch):
    """The oracle of each estimator fails if its answers are doubled or exchanged."""
    case = CASES["sigma 1e0"]
    model, error = fitted(CONFIGURATIONS[FIRST[make]], case)
    assert error is None
    check_answers(model, case)
    for name in ("embedding_", "labels_", "loo_residuals_", "features_"):
        if name in vars(model):
            right = vars(model)[name]
            wrong = np.roll(right, 1) if name == "labels_" else 2 * right
            monkeypatch.setattr(model, name, wrong)
            with pytest.raises(AssertionError):
                check_answers(model, case)
            monkeypatch.setattr(model, name, right)


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
def test_denoisers(kind, case):
    make, cases, good = DENOISERS[kind]
    data, expected = cases[case]
    found, error = attempted(lambda: dataclasses.replace(make).denoise(data))
    assert (error is not None) == expected, error
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
