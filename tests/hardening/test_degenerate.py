"""Degenerate data: every estimator returns the right answer or raises a clear error.

Never NaN, never a hang, never an error of NumPy, SciPy or LAPACK. answers.py has an oracle for the
first configuration of each estimator; all configurations must agree with the twins of their data.
"""

import faulthandler
import sys

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from absurd import attempted, is_finite
from answers import check_answers
from degenerate import ANSWERED, CASES, EITHER, GROUPS, REFUSED, SINGLE, Case
from laws_product import CONFIGURATIONS, DTYPES, FIRST, METHODS, examples, partition
from orthodrome import KernelPNS
from orthodrome.kernels import Gaussian

SECONDS = 60  # for a fit of a dozen points and its methods

#: NaN for a kernel without a scale; infinite while a Krylov basis is too small.
MAY_BE_NAN = {"sigmas_", "history_"}
#: Compared with the fit to the twin.
ATTRIBUTES = ("embedding_", "labels_", "explained_variance_ratio_", "loo_score_")
COMPARED = {"transform", "predict", "predict_proba"}


def check_outcome(what, found, error, expected):
    """Check that a result is finite, or an error is expected."""
    assert expected in (EITHER, ANSWERED if error is None else REFUSED), f"{what}: {error}"
    assert is_finite(found), what


def fitted(each, case):
    """Return the model and its error, if any."""
    options = each.options | (case.options or {})
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


def check_case(name, given):
    """Fit one configuration to one case and check all results."""
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=sys.__stderr__)
    each = CONFIGURATIONS[name]
    model, error = fitted(each, given)
    check_outcome("fit", None, error, given.expected(each))
    if error is not None:
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
        return
    for attribute in (name for name in dir(model) if name.endswith("_") and name[0] != "_"):
        value, error = attempted(lambda name=attribute: getattr(model, name))
        check_outcome(attribute, None if attribute in MAY_BE_NAN else value, error, ANSWERED)
    refused = check_methods(model, given)
    if name in FIRST.values() and not refused:
        check_answers(model, given)
    if given.twin is not None:
        check_same(model, each, given)


def check_methods(model, given):
    """Check results for new rows, and return whether they were refused."""
    refused = False
    for method, (found, error) in answers(model, given).items():
        check_outcome(method, found, error, given.new_outcome)
        refused = refused or error is not None
        assert error is not None or len(found) == len(given.new_rows), method
    rows = 0 if given.new_rows is None else len(given.new_rows)
    targets = (given.classes[:rows],) if is_classifier(model) else ()
    for method in {"score", "bic", "aic"} & set(dir(model)):
        found, error = attempted(lambda name=method: getattr(model, name)(given.new_rows, *targets))
        expected = REFUSED if given.new_outcome == REFUSED else EITHER
        check_outcome(method, found, error, expected)
    check_inverses(model, given)
    return refused


def check_inverses(model, given):
    """Check samples and pre-images; a Gram matrix has no inputs."""
    without_inputs = given.kernel == "precomputed"
    if hasattr(model, "sample"):
        check_outcome("sample", *attempted(lambda: model.sample(3)), EITHER)
        for space in ("embedding", "sphere"):
            assert is_finite(model.sample(3, space=space, random_state=0)), "sample"
    if hasattr(model, "inverse_transform"):
        some, more = model.embedding_[:3], {}
        if without_inputs and not isinstance(model, KernelPNS):
            more = {"inputs": np.arange(2.0 * len(model.embedding_)).reshape(-1, 2)}
        found, error = attempted(lambda: model.inverse_transform(some, **more))
        check_outcome("inverse_transform", found, error, ANSWERED)


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
    """Check several cases and report those that fail together."""
    failed = []
    for case, given in cases.items():
        if given.weight is not None and not CONFIGURATIONS[name].takes_weights:
            continue
        try:
            check_case(name, given)
        except AssertionError as error:
            failed.append(f"{case}: {error}")
        finally:
            faulthandler.cancel_dump_traceback_later()
    assert not failed, "\n".join(failed)


#: Checked by `make test` in single precision and for costly estimators; the others are slow.
QUICK_CASES = (
    *("two points", "all equal", "collinear", "equidistant", "nearly equal", "an outlier of 1e6"),
    *("sigma 1e-3", "sigma 1e3", "a class of one", "weights of 1e+40", "weights of 1e-310"),
    *("gram: blocks", "gram: indefinite", "shapes: mirrored"),
)
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


@pytest.mark.parametrize("cases", [QUICK_CASES, pytest.param(SINGLE, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FIRST.values())
def test_single_precision(name, cases):
    check_cases(name, {case: SINGLE[case] for case in cases})


@examples(100)
@hypothesis.given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(1, 3)),
        elements=st.floats(-100, 100).map(lambda value: round(value, 3)),
    ),
    dtype=st.sampled_from(DTYPES),
    sigma=st.sampled_from(["mean", 1e-8, 0.01, 1.0, 1e6]),
    name=st.sampled_from(list(CONFIGURATIONS)),
)
def test_finite_data_give_finite_results_or_a_clear_error(X, dtype, sigma, name):
    case = Case(X.astype(dtype), kernel=Gaussian(sigma=sigma), outcome=EITHER, new_outcome=EITHER)
    check_cases(name, {"drawn": case})


@pytest.mark.parametrize("make", FIRST)
def test_the_oracles_find_wrong_answers(make, monkeypatch):
    """The oracle of each estimator fails if its answers are doubled or exchanged."""
    case = CASES["sigma 1e0"]
    model, error = fitted(CONFIGURATIONS[FIRST[make]], case)
    assert error is None
    check_answers(model, case)
    for name in ("distances_", "embedding_", "labels_", "features_"):
        if name in vars(model):
            right = vars(model)[name]
            wrong = np.roll(right, 1) if name == "labels_" else 2 * right
            monkeypatch.setattr(model, name, wrong)
            with pytest.raises(AssertionError):
                check_answers(model, case)
            monkeypatch.setattr(model, name, right)
