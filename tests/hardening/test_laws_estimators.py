"""Laws of every estimator: equivalent inputs give the same results.

The order of rows, weights for repetition, a Gram matrix for data, the memory budget, the storage
and the number of threads change nothing. laws_product.py says to what precision, for each
configuration.
"""

import re
import runpy
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from laws_product import (
    ANCHORS,
    BITS,
    COMPLEX,
    CONFIGURATIONS,
    DTYPES,
    FIRST,
    FOLDS,
    KERNELS,
    METHODS,
    NOT_CALLED,
    NOT_COMPARED,
    OF_ALL,
    OF_ROWS,
    OF_ROWS_NESTED,
    ROUNDING,
    TOLERANCE,
    Sample,
    estimator_classes,
    examples,
    fitted,
    refused,
    results,
    sample,
    suited,
)
from orthodrome import KernelPCA, KernelPGA, KernelPNS, NestedSpheresClassifier, RobustKernelPCA
from orthodrome._core import threads
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Normalized

every_configuration = pytest.mark.parametrize("name", CONFIGURATIONS)
every_estimator = pytest.mark.parametrize("name", FIRST.values())
weighted_only = [name for name, each in CONFIGURATIONS.items() if each.takes_weights]

slow = pytest.mark.slow
#: With α given, leave-one-out is computed when it is needed.
LAZY = {"KernelRidgeRegressionClassifier, given", "PerTurbo, truncated"}
QUICK = {*FIRST.values(), *LAZY}
first_is_quick = pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=slow) for name in CONFIGURATIONS]
)
#: Relative tolerances of results that are equal up to rounding, for each precision.
ROUNDED = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 3e-4}
#: The same for searches that stop by a tolerance: pre-images, subspheres.
SEARCHED = {np.dtype(np.float64): 1e-5, np.dtype(np.float32): 3e-2}

#: Parameters that are read by every method, not only by fit.
OF_EVERY_CALL = {"memory_budget"}

FEW = examples(8)
seeds = st.integers(0, 2**16)


def test_every_estimator_has_a_configuration():
    assert estimator_classes() == {each.make for each in CONFIGURATIONS.values()}


def test_every_estimator_passes_scikit_learns_checks():
    """Modules that run scikit-learn's checks list their estimators in `ESTIMATORS`."""
    tests = Path(__file__).parents[1]
    given = [
        runpy.run_path(str(path))["ESTIMATORS"]
        for path in tests.glob("*/test_*.py")
        if "\n@parametrize_with_checks(ESTIMATORS" in path.read_text(encoding="utf-8")
    ]
    assert estimator_classes() == {type(each) for estimators in given for each in estimators}


@every_configuration
def test_every_attribute_and_method_is_compared_or_listed(name):
    each = CONFIGURATIONS[name]
    model = fitted(each(suited(each, "Gaussian")), sample("Gaussian", each.n))
    attributes = {a for a in dir(model) if a.endswith("_") and not a.startswith("_")}
    assert attributes <= OF_ROWS | OF_ROWS_NESTED | OF_ALL | NOT_COMPARED
    own = {a for a in dir(model) if not a.startswith("_") and a not in attributes}
    methods = {a for a in own if callable(getattr(model, a)) and not a.endswith("_request")}
    assert methods - set(model.get_params()) <= METHODS | NOT_CALLED


def assert_close(actual, expected, tol, message):
    scale = max(float(np.abs(expected).max(initial=0.0)), 1e-12)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tol * scale, err_msg=message)


def turn_of(each, kernel, given, k=2):
    """Return the condition of the leading eigenvectors: λ₁ over their smallest gap."""
    if each.make not in (KernelPCA, KernelPGA):
        return 1.0
    try:
        exact = fitted(each.make(k + 1, kernel=kernel, solver="dense"), given)
    except ValueError:  # indefinite, which anchors did not show
        return np.inf
    values = exact.eigenvalues_.astype(float)
    return values[0] / max(np.abs(np.diff(values)).min(), 1e-300)


TURNED = {"embedding_", "sphere_coordinates_", "transform"}


def assert_same(actual, expected, sense, dtype, turn=1.0, tolerances=ROUNDED):
    """Compare the results of two fits, as precisely as `sense` says."""
    assert actual.keys() == expected.keys()
    for key, value in expected.items():
        if sense == BITS or value.dtype.kind not in "f":
            np.testing.assert_array_equal(actual[key], value, err_msg=key)
            continue
        assert actual[key].shape == value.shape, key
        tol = tolerances[np.dtype(dtype)]
        if key == "inverse_transform":
            tol = SEARCHED[np.dtype(dtype)] * turn
        if key in TURNED:
            tol *= turn
        if sense == TOLERANCE:
            tol = 6e-3 * (turn if key in TURNED else 1.0)
            if key == "inverse_transform":  # coordinates have too few digits
                continue
        if tol < 0.5:  # eigenvectors of equal eigenvalues are not unique
            assert_close(actual[key], value, tol, key)


def with_copies(given, count, seed):
    """Return the sample with some rows repeated."""
    again = np.random.default_rng(seed).integers(0, len(given.X), count)
    return given[np.concatenate([np.arange(len(given.X)), again])]


def refusal(model, *rows):
    """Return the error message of a fit, or None."""
    try:
        fitted(model, *rows)
    except ValueError as error:
        return str(error)
    return None


#: Kernels that are definite for some data only, and refused for others.
SOMETIMES_REFUSED = {"Sigmoid"}


def fits(kernel, *models_and_rows):
    """Return the fitted models, or None if the kernel may be refused and all refuse it."""
    refusals = [refusal(model, *rows) for model, *rows in models_and_rows]
    if None in refusals or kernel not in SOMETIMES_REFUSED:
        assert refusals == [None] * len(refusals)
        return [model for model, *_ in models_and_rows]
    return None


def check_order(name, kernel="Gaussian", dtype=np.float64, seed=0):
    each = CONFIGURATIONS[name]
    given = with_copies(sample(kernel, each.n, seed, dtype), 3, seed)
    order = np.random.default_rng(seed + 2).permutation(len(given.X))
    chosen = suited(each, kernel)
    sense, place, more = each.order, np.argsort(order), ({}, {})
    if sense == ANCHORS:
        rows = np.random.default_rng(seed).choice(len(given.X), 10, replace=False)
        more = tuple({"solver": Nystroem(anchors=r)} for r in (rows, place[rows]))
    if sense == FOLDS:
        folds = list(StratifiedKFold(2).split(given.X, given.y))
        more = {"cv": folds}, {"cv": [(place[a], place[b]) for a, b in folds]}
    both = fits(kernel, (each(chosen, **more[0]), given), (each(chosen, **more[1]), given[order]))
    if both is None:
        return
    plain, permuted = both
    turn = turn_of(each, chosen, given)
    assert_same(results(permuted, given.new), results(plain, given.new, order), sense, dtype, turn)


def check_weights(name, kernel="Gaussian", dtype=np.float64, seed=0):
    each = CONFIGURATIONS[name]
    given = sample(kernel, each.n, seed, dtype)
    rng = np.random.default_rng(seed + 3)
    counts = rng.permutation(np.arange(each.n) % 4)
    for label in np.unique(given.y):  # no class may vanish, nor be a single point
        counts[np.flatnonzero(given.y == label)[:2]] = 2
    rows = np.repeat(np.arange(each.n), counts)
    if each.order != ANCHORS:  # anchors depend on the order of rows
        rows = rng.permutation(rows)
    chosen = suited(each, kernel)
    both = fits(kernel, (each(chosen), given, counts), (each(chosen), given[rows]))
    if both is None:
        return
    turn = turn_of(each, chosen, given[rows])
    weighted, repeated = both
    both = results(weighted, given.new, rows), results(repeated, given.new)
    assert_same(*both, each.order, dtype, turn)


def nested(each):
    return each.make in (KernelPNS, NestedSpheresClassifier)


def kernels_of_matrices(name):
    """Return kernels for which a matrix gives the same results as the data.

    Matrices must be real. Residuals of an indefinite kernel depend on k(x, x), which a matrix does
    not contain.
    """
    indefinite = {"Sigmoid"} if CONFIGURATIONS[name].is_classifier else set()
    return sorted(set(KERNELS) - COMPLEX - indefinite - refused(name))


def check_gram(name, kernel="Gaussian", dtype=np.float64, seed=0):
    each = CONFIGURATIONS[name]
    if each.is_classifier or nested(each):
        # classifiers compute in double precision; in single precision the outer nested spheres are
        # fitted to rounding errors
        dtype = np.float64
    given = sample(kernel, each.n, seed, dtype)
    chosen = suited(each, kernel)
    with warnings.catch_warnings():  # an indefinite kernel
        warnings.simplefilter("ignore", UserWarning)
        values = clone(chosen).fit(given.X)
    matrix = replace(given, X=values(given.X), new=values(given.new, given.X))
    drawn = nested(each) and "n_anchors" in each.options
    more = {"n_anchors": each.n} if drawn else {}  # use all rows: draws differ
    both = fits(kernel, (each("precomputed", **more), matrix), (each(chosen, **more), given))
    if both is None:
        return
    found = [
        of_matrices(results(m, g.new, frame=False))
        for m, g in zip(both, (matrix, given), strict=True)
    ]
    if chosen.has_coordinates:  # a matrix has none, so its number of anchors differs
        for one in found:
            one.pop("n_anchors_", None)
    searched = nested(each) or each.make is RobustKernelPCA
    turn = turn_of(each, chosen, given)
    assert_same(*found, ROUNDING, dtype, turn, SEARCHED if searched else ROUNDED)


def of_matrices(found):
    """Return the results that do not need inputs, nor k(x, x) of new points, nor are rounding."""
    for key in ("inverse_transform", "sigmas_", "loo_scores_"):
        found.pop(key, None)
    for key in ("class_residuals", "decision_function"):
        if "class_residuals" in found and found[key].ndim == 2:
            found[key] = found[key] - found[key].mean(axis=1, keepdims=True)
    return found


#: Without those whose starts, subsets or folds depend on the order of the sorted rows.
takes_matrices = [
    name
    for name, each in CONFIGURATIONS.items()
    if each.matrices
    and not each.is_clustering
    and not (nested(each) and each.options.get("p", 2.0) != 2.0)
    and not (each.is_classifier and {"subspace_size", "n_components"} & each.options.keys())
]


def usable_kernels(name):
    return sorted(set(KERNELS) - refused(name))


#: The check of a law, the configurations that obey it, and the kernels for each.
LAWS = {
    "order": (check_order, list(CONFIGURATIONS), usable_kernels),
    "weights": (check_weights, weighted_only, usable_kernels),
    "gram": (check_gram, takes_matrices, kernels_of_matrices),
}
every_law = pytest.mark.parametrize(
    ("law", "name"), [(law, name) for law, (_, names, _) in LAWS.items() for name in names]
)


@pytest.mark.parametrize(
    ("law", "name"),
    [
        pytest.param(law, name, marks=() if name in QUICK else slow)
        for law, (_, names, _) in LAWS.items()
        for name in names
    ],
)
def test_equivalent_rows_give_the_same_results(law, name):
    LAWS[law][0](name)


@slow
@every_law
@FEW
@given(st.data(), st.sampled_from(DTYPES), seeds)
def test_any_equivalent_rows_give_the_same_results(law, name, data, dtype, seed):
    check, _, kernels = LAWS[law]
    check(name, data.draw(st.sampled_from(kernels(name))), dtype, seed)


@slow
@every_estimator
def test_kernels_that_an_estimator_cannot_use_are_refused(name):
    each = CONFIGURATIONS[name]
    for kernel in refused(name):
        with pytest.raises(ValueError, match=r"kernel|Kernel|similarit|Normalized"):
            fitted(each(suited(each, kernel)), sample(kernel, each.n))


def check_options(name, kernel, given, *options):
    """Check that fits with different options are equal up to rounding."""
    each = CONFIGURATIONS[name]
    chosen = suited(each, kernel)
    found = fits(kernel, *((each(chosen, **more), given) for more in options))
    if found is None:
        return
    turn = turn_of(each, chosen, given)
    first, *others = (results(model, given.new, frame=False) for model in found)
    for other in others:
        assert_same(other, first, ROUNDING, given.X.dtype, turn)


#: More, and less than half of what the Gram matrix of a few rows needs.
ROOMY, TIGHT = "2GiB", "256B"


def places(name):
    """Return options for the storage of the Gram matrix or its features."""
    takes = CONFIGURATIONS[name].takes
    found = [{"memory_budget": amount} for amount in (ROOMY, TIGHT)]
    if "storage" in takes:
        found += [{"storage": each} for each in ("memory", "disk", "recompute")]
    return found if "memory_budget" in takes else []


@first_is_quick
def test_memory_does_not_matter(name):
    given = sample("Gaussian", CONFIGURATIONS[name].n)
    check_options(name, "Gaussian", given, *places(name))


@slow
@every_configuration
@FEW
@given(st.data(), st.sampled_from(DTYPES), seeds)
def test_memory_does_not_matter_for_any_rows(name, data, dtype, seed):
    kernel = data.draw(st.sampled_from(usable_kernels(name)))
    given = sample(kernel, CONFIGURATIONS[name].n, seed, dtype)
    check_options(name, kernel, given, *places(name))


def fit_with_threads(monkeypatch, count, model, given):
    monkeypatch.setattr(threads, "_cores", lambda: count)
    monkeypatch.setattr(threads, "_SMALL_WORK", 0)
    with threadpool_limits(count, user_api="blas"):
        return fitted(model, given)


@slow
@every_configuration
@pytest.mark.parametrize("count", [2, 3])
def test_threads_do_not_matter(name, count, monkeypatch):
    """With more rows than a tile has, and a kernel of low rank, so that chains are short."""
    each = CONFIGURATIONS[name]
    kernel = "Gaussian" if each.inputs else "Cosine"
    given = sample(kernel, 600)
    chosen = suited(each, kernel)
    both = [fit_with_threads(monkeypatch, c, each(chosen), given) for c in (1, count)]
    turn = turn_of(each, chosen, given)
    one, many = (results(model, given.new, frame=False) for model in both)
    assert_same(many, one, ROUNDING, np.float64, turn)


def fitted_to_copies(each, data, weights):
    """Return a model, and the arrays that it was fitted to."""
    arrays = replace(data, X=data.X.copy(), y=data.y.copy())
    given = weights.copy() if each.takes_weights else None
    seed = {"random_state": 0} if each.is_random else {}
    return fitted(each(suited(each, "Gaussian"), **seed), arrays, given), arrays, given


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@first_is_quick
def test_arrays_of_the_caller_and_parameters_may_change_after_a_fit(name):
    each = CONFIGURATIONS[name]
    data = sample("Gaussian", each.n)
    weights = np.random.default_rng(0).uniform(1, 2, each.n)
    expected = results(fitted_to_copies(each, data, weights)[0], data.new)
    model, arrays, given = fitted_to_copies(each, data, weights)
    arrays.X[:] = 7.0
    arrays.y[:] = arrays.y[0]
    if given is not None:
        given[1:] = 0.0
    for parameter in each.takes - OF_EVERY_CALL:
        setattr(model, parameter, "of the next fit")
    assert_equal(results(model, data.new), expected)


def _directions():
    X = sample("Gaussian", 18).X
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _with(X, row):
    X = X.copy()
    X[7] = row
    return X


#: Kernels, and data whose row 7 some estimators refuse.
FAULTS = {
    "another length": ("linear", _with(_directions(), [3.0, 3.0, 3.0])),
    "not normalised": (Normalized("linear"), _with(_directions(), 0.0)),
    "negative": ("chi2", _with(_directions() ** 2, [-1.0, 1.0, 1.0])),
}


def must_name(each, fault):
    """Return whether a configuration refuses such data with an error that names the row."""
    if each.inputs and fault != "negative":  # a kernel without pre-images is refused first
        return False
    return each.sphere or fault != "another length"


@pytest.mark.parametrize("fault", FAULTS)
@first_is_quick
def test_errors_name_the_row_of_the_caller(name, fault):
    """The number is that before rows were merged and sorted."""
    each, (kernel, X) = CONFIGURATIONS[name], FAULTS[fault]
    y = sample("Gaussian", 18).y
    order = np.roll(np.arange(18), 4)
    for rows, number in ((np.arange(18), 7), (order, 11)):
        why = refusal(each(kernel), Sample(X[rows], y[rows], X[rows])) or ""
        named = re.findall(r"\brow (\d+)", why, flags=re.IGNORECASE)
        assert named or not must_name(each, fault), why or "it is not refused"
        assert not named or int(named[0]) == number, why
