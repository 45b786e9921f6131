"""Laws of every estimator: equivalent inputs give the same results.

The order of rows, weights for repetition, a Gram matrix for data, the memory budget, the storage
and the number of threads change nothing. laws_product.py says to what precision, for each
configuration:

- to the last bit, random draws included, if rows are merged and sorted first: clusterings,
  explicit coordinates, residuals of classes;
- to rounding, signs included: KernelPCA and KernelPGA by LAPACK or Krylov, and the support vector
  machines of NestedSpheresClassifier;
- to its tolerance: the Hebbian algorithm;
- to rounding, given the same anchors or folds: Nyström, and NestedSpheresClassifier(p="cv").

A Gram matrix cannot be sorted like rows, so random starts and anchors differ. Clusterings are then
compared as partitions, if both find the best one.
"""

import re
import threading
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from laws_product import (
    ANCHORS,
    BITS,
    CLEAR,
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
    partition,
    refused,
    results,
    sample,
    solver_name,
    suited,
)
from orthodrome import (
    GeodesicMixture,
    HypersphericalKMeans,
    KernelMRCD,
    KernelPCA,
    KernelPGA,
    KernelPNS,
    KernelRidgeRegressionClassifier,
    KernelSpectralClustering,
    NestedSpheresClassifier,
    PatchDenoiser,
    PerTurbo,
    RobustKernelPCA,
)
from orthodrome._core import threads
from orthodrome.coordinates import Coordinates
from orthodrome.denoising import SequenceDenoiser
from orthodrome.eigen import SOLVERS, Hebbian, Nystroem
from orthodrome.eigen.kha import run as kha_run
from orthodrome.eigen.kha import solver as kha_solver
from orthodrome.eigen.kha import sweep
from orthodrome.gram import tiled
from orthodrome.gram.tiled import TiledGram
from orthodrome.kernels import Embedded, Gaussian, Normalized
from orthodrome.metrics import clustering_error
from recording import Recorder


def motion(seed=0, dtype=np.float64, n=24):
    """Return a motion of four joints with noise."""
    rng = np.random.default_rng(seed)
    time = np.linspace(0, 6, n)[:, None, None]
    joints = rng.normal(size=(1, 4, 3))
    return (np.sin(time + joints) + 0.1 * rng.normal(size=(n, 4, 3))).astype(dtype)


def picture(seed=0, dtype=np.float64):
    """Return an image of blocks with noise."""
    rng = np.random.default_rng(seed)
    blocks = np.add.outer(np.arange(14) // 5, np.arange(14) // 4) % 2
    return (blocks + 0.1 * rng.normal(size=(14, 14))).astype(dtype)


every_configuration = pytest.mark.parametrize("name", CONFIGURATIONS)
every_estimator = pytest.mark.parametrize("name", FIRST.values())
weighted_only = [name for name, each in CONFIGURATIONS.items() if each.takes_weights]

slow = pytest.mark.slow
QUICK = set(FIRST.values())
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


# Coverage of the package --------------------------------------------------------------------------


def test_every_estimator_has_a_configuration():
    assert estimator_classes() == {each.make for each in CONFIGURATIONS.values()}


@pytest.mark.parametrize("make", [CONFIGURATIONS[name].make for name in FIRST.values()])
def test_every_solver_of_every_estimator_has_a_configuration(make):
    configurations = [each for each in CONFIGURATIONS.values() if each.make is make]
    if "solver" not in configurations[0].takes:
        return
    listed = {solver_name(each.options.get("solver", "auto")) for each in configurations}
    taken = set()
    for solver in (*SOLVERS, "exact"):
        model = configurations[0](KERNELS["Gaussian"])
        model.set_params(solver=solver)
        if "centers" in configurations[0].takes:  # pre-images need no solver
            model.set_params(centers="intrinsic")
        why = refusal(model, sample("Gaussian"))
        assert why is None or "solver" in why
        taken |= {solver} if why is None else set()
    assert taken == listed


@every_configuration
def test_every_attribute_and_method_is_compared_or_listed(name):
    each = CONFIGURATIONS[name]
    model = fitted(each(suited(each, "Gaussian")), sample("Gaussian", each.n))
    attributes = {a for a in dir(model) if a.endswith("_") and not a.startswith("_")}
    assert attributes <= OF_ROWS | OF_ROWS_NESTED | OF_ALL | NOT_COMPARED
    own = {a for a in dir(model) if not a.startswith("_") and a not in attributes}
    methods = {a for a in own if callable(getattr(model, a)) and not a.endswith("_request")}
    assert methods - set(model.get_params()) <= METHODS | NOT_CALLED


# Comparisons --------------------------------------------------------------------------------------


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
#: How often results were compared, and how often left out: eigenvectors of equal eigenvalues, and
#: coordinates along them, are not unique.
COMPARED = Counter()
MOST_LEFT_OUT = 0.05


@pytest.fixture(autouse=True, scope="module")
def _little_is_left_out():
    """Check that most results were compared."""
    COMPARED.clear()
    yield
    left_out = {key: n for (key, was), n in COMPARED.items() if not was}
    assert sum(left_out.values()) <= 2 + MOST_LEFT_OUT * COMPARED.total(), left_out


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
        COMPARED[key, tol < 0.5] += 1
        if tol < 0.5:
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


# Sparse rows --------------------------------------------------------------------------------------


@first_is_quick
@pytest.mark.parametrize("convert", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_sparse_rows_give_the_same_results(name, convert):
    each = CONFIGURATIONS[name]
    given = sample("Gaussian", each.n)
    given = replace(given, X=np.where(given.X < 2, 0, given.X))
    chosen = suited(each, "Gaussian")
    sparse = replace(given, X=convert(given.X), new=convert(given.new))
    if not each(chosen).__sklearn_tags__().input_tags.sparse:
        with pytest.raises((TypeError, ValueError), match=r"Call X\.toarray|sparse X"):
            fitted(each(chosen), sparse)
        return
    models = [fitted(each(chosen), rows) for rows in (sparse, given)]
    both = [results(m, g.new, frame=False) for m, g in zip(models, (sparse, given), strict=True)]
    for found in both:
        found.pop("inverse_transform", None)  # sparse rows have pre-images by regression only
    turn = turn_of(each, chosen, given)
    assert_same(*both, ROUNDING, np.float64, turn, SEARCHED if nested(each) else ROUNDED)


# The order of rows --------------------------------------------------------------------------------


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


# Weights are repetition ---------------------------------------------------------------------------


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


# A Gram matrix for data ---------------------------------------------------------------------------


def nested(each):
    return each.make in (KernelPNS, NestedSpheresClassifier)


def kernels_of_matrices(name):
    """Return kernels for which a matrix gives the same results as the data.

    Clusterings need a single best solution, since random starts differ. Matrices must be real.
    Residuals of an indefinite kernel depend on k(x, x), which a matrix does not contain.
    """
    each = CONFIGURATIONS[name]
    found = CLEAR if each.is_clustering else set(KERNELS) - COMPLEX
    if each.is_classifier:
        found = found - {"Sigmoid"}
    if each.make is KernelMRCD:
        # many products are 0, so many distances tie; the order of rows decides about its starts
        found = found - {"Circular", "Spherical"}
    return sorted(found - refused(name))


def check_gram(name, kernel="Gaussian", dtype=np.float64, seed=0):
    each = CONFIGURATIONS[name]
    if each.is_classifier or nested(each) or each.make is KernelMRCD:
        # classifiers compute in double precision; in single precision the outer nested spheres are
        # fitted to rounding errors, and these may decide which points KernelMRCD keeps
        dtype = np.float64
    given = sample(kernel, each.n, seed, dtype)
    if each.make is KernelMRCD and not KERNELS[kernel].unit_norm:
        given = replace(given, new=given.X)  # distances of new rows need k(x, x)
    chosen = suited(each, kernel)
    with warnings.catch_warnings():  # an indefinite kernel
        warnings.simplefilter("ignore", UserWarning)
        values = clone(chosen).fit(given.X)
    matrix = replace(given, X=values(given.X), new=values(given.new, given.X))
    more = {"n_anchors": each.n} if "n_anchors" in each.options else {}  # all rows: draws differ
    both = fits(kernel, (each("precomputed", **more), matrix), (each(chosen, **more), given))
    if both is None:
        return
    if each.is_clustering:
        check_same_clustering(*both, matrix, given, dtype, strict=seed == 0)
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
    """Return the results that do not need inputs, nor k(x, x) of new points.

    Residuals of classes differ by k(x, x) only. Scores for very small alpha are decided by rounding
    and left out too.
    """
    for key in ("inverse_transform", "sigmas_", "loo_scores_"):
        found.pop(key, None)
    for key in ("class_residuals", "decision_function"):
        if "class_residuals" in found and found[key].ndim == 2:
            found[key] = found[key] - found[key].mean(axis=1, keepdims=True)
    return found


#: Bound for the ratio of two local optima from different random starts. A mean log-likelihood may
#: differ by the logarithm of this factor in each of two modes.
WORSE = 1.5


def check_same_clustering(one, other, matrix, given, dtype, strict):
    """Compare the objectives and the partitions of training and new rows.

    Unless `strict`, one of them may have found another local optimum, since random starts differ.
    If its objective is the same, it differs in a few rows between two clusters only.
    """
    hebbian = solver_name(getattr(other, "solver", "auto")) == "hebbian"
    tol = 0.03 if hebbian else SEARCHED[np.dtype(dtype)]
    for name in ("inertia_", "lower_bound_", "eigenvalues_"):
        if hasattr(other, name):
            values = [np.asarray(getattr(model, name)) for model in (one, other)]
            same = np.allclose(*values, rtol=0, atol=tol * np.abs(values).max())
            if not same and not strict and name != "eigenvalues_":
                check_not_much_worse(name, *values)
                return
            assert same, name
    first = np.concatenate([one.labels_, one.predict(matrix.new)])
    second = np.concatenate([other.labels_, other.predict(given.new)])
    if strict:
        np.testing.assert_array_equal(partition(first), partition(second))
    assert clustering_error(first, second) <= 0.1


def check_not_much_worse(name, one, other):
    if name == "inertia_":
        assert max(one, other) <= WORSE * min(one, other), name
    else:
        assert abs(one - other) <= 2 * np.log(WORSE), name


#: Without those whose starts (p < 2), subsets or folds depend on the order of the sorted rows.
takes_matrices = [
    name
    for name, each in CONFIGURATIONS.items()
    if each.matrices
    and not (nested(each) and each.options.get("p", 2.0) != 2.0)
    and not (each.is_classifier and {"subspace_size", "n_components"} & each.options.keys())
]


# All three laws -----------------------------------------------------------------------------------


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
@pytest.mark.parametrize("name", FIRST.values())
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_kernel_with_every_estimator(law, name, dtype):
    check, names, kernels = LAWS[law]
    for kernel in kernels(name) if name in names else ():
        check(name, kernel, dtype)


@slow
@every_estimator
def test_kernels_that_an_estimator_cannot_use_are_refused(name):
    each = CONFIGURATIONS[name]
    for kernel in refused(name):
        with pytest.raises(ValueError, match=r"kernel|Kernel|similarit|Normalized"):
            fitted(each(suited(each, kernel)), sample(kernel, each.n))


# Memory, storage and threads -----------------------------------------------------


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
#: Estimators for which the budget decides only whether a fit is refused.
REFUSED_BEYOND = (
    *(KernelMRCD, KernelPNS, RobustKernelPCA, NestedSpheresClassifier),
    *(KernelRidgeRegressionClassifier, PerTurbo),
)
#: Pre-images need no Gram matrix, so the budget has no effect.
WITHOUT_MATRIX = {"HypersphericalKMeans, preimage"}


def reads_budget(name):
    """Return whether the storage depends on the budget."""
    each = CONFIGURATIONS[name]
    features = solver_name(each.options.get("solver", "auto")) == "nystroem"
    return name not in WITHOUT_MATRIX and (features or each.make not in REFUSED_BEYOND)


def places(name):
    """Return options for the storage of the Gram matrix or its features."""
    takes = CONFIGURATIONS[name].takes
    found = [{"memory_budget": amount} for amount in (ROOMY, TIGHT)]
    if "storage" in takes:
        found += [{"storage": each} for each in ("memory", "disk", "recompute")]
    return found if "memory_budget" in takes else []


@pytest.fixture
def trail(monkeypatch):
    """Return a function that lists what a fit stores, and counts kernel evaluations."""
    kept, evaluated = [], []

    def watched(owner):
        right = owner.__init__

        def init(self, *given, **options):
            right(self, *given, **options)
            recomputed = "recompute" if self.recomputes else "memory"
            kept.append((owner.__name__, getattr(self, "storage", recomputed)))

        monkeypatch.setattr(owner, "__init__", init)

    for owner in (TiledGram, Coordinates):
        watched(owner)
    right = Gaussian.evaluate

    def evaluate(self, *given, **options):
        evaluated.append(1)
        return right(self, *given, **options)

    monkeypatch.setattr(Gaussian, "evaluate", evaluate)

    def of(model, given):
        kept.clear()
        evaluated.clear()
        fitted(model, given)
        return [*kept], len(evaluated)

    return of


def check_path(name, given, trail):
    """Check that a small budget changes the storage where it should."""
    each = CONFIGURATIONS[name]
    roomy, tight = (
        trail(each(suited(each, "Gaussian"), memory_budget=amount), given)
        for amount in (ROOMY, TIGHT)
    )
    if not reads_budget(name):
        assert tight == roomy
        return
    assert ("memory" in {where for _, where in roomy[0]}) > (
        "memory" in {where for _, where in tight[0]}
    )
    assert tight[1] > roomy[1]


@first_is_quick
def test_memory_does_not_matter(name, trail):
    given = sample("Gaussian", CONFIGURATIONS[name].n)
    check_options(name, "Gaussian", given, *places(name))
    check_path(name, given, trail)


@pytest.mark.parametrize("name", ["KernelPCA, hebbian", "KernelPGA, hebbian"])
def test_blocks_of_hebbian_passes_do_not_matter(name, monkeypatch):
    monkeypatch.setattr(kha_solver, "_DENSE_ROWS", 20)
    monkeypatch.setattr(sweep, "_BLOCK_SIZE", 16)
    monkeypatch.setattr(sweep, "_MIN_BLOCK", 3)
    sizes, right = [], kha_run.resolve_block_size
    monkeypatch.setattr(
        kha_run, "resolve_block_size", lambda *given: sizes.append(right(*given)) or sizes[-1]
    )
    solver = Hebbian(tol=1e-3, n_passes=300)
    options = [{"memory_budget": amount, "solver": solver} for amount in (ROOMY, "3KiB", TIGHT)]
    check_options(name, "Gaussian", sample("Gaussian", CONFIGURATIONS[name].n), *options)
    assert sizes == [16, 6, 3]


@pytest.mark.parametrize("name", ["KernelPCA, krylov", "KernelPGA, auto", "KernelKMeans, exact"])
def test_tiles_do_not_matter(name, monkeypatch):
    each = CONFIGURATIONS[name]
    given = sample("Gaussian", each.n)
    whole = fitted(each(KERNELS["Gaussian"]), given)
    monkeypatch.setattr(tiled, "TILE", 7)
    for storage in ("memory", "disk", "recompute"):
        parts = fitted(each(KERNELS["Gaussian"], storage=storage), given)
        both = (results(model, given.new, frame=False) for model in (parts, whole))
        assert_same(*both, ROUNDING, np.float64, turn_of(each, KERNELS["Gaussian"], given))


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


class CallingThreads(Recorder):
    """A scikit-learn callback that also records the threads that call it."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __getattribute__(self, name):
        if name.startswith(("on_", "setup", "teardown")):
            self.found.add(threading.get_ident())
        return super().__getattribute__(name)


@first_is_quick
def test_callbacks_follow_the_fit_and_do_not_change_it(name, two_threads):
    """They are called by the thread that called fit, because they are not thread-safe."""
    each = CONFIGURATIONS[name]
    given, callback = sample("Gaussian", max(each.n, 60)), CallingThreads()
    model = fitted(each(suited(each, "Gaussian")).set_callbacks(callback), given)
    assert callback.found == {threading.get_ident()}
    assert callback.events[:2] == ["setup", ("begin", "fit")]
    assert callback.events[-2:] == [("end", "fit"), "teardown"]
    steps = [event for event, _ in callback.events[2:-2]]
    assert steps == ["begin", "end"] * 20
    assert not hasattr(model, "_callback_fit_ctx")
    plain = fitted(each(suited(each, "Gaussian")), given)
    assert_equal(results(model, given.new), results(plain, given.new))


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


# Changes after a fit -------------------------------------------------------------------------


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
def test_arrays_of_the_caller_may_change_after_a_fit(name):
    each = CONFIGURATIONS[name]
    data = sample("Gaussian", each.n)
    weights = np.random.default_rng(0).uniform(1, 2, each.n)
    expected = results(fitted_to_copies(each, data, weights)[0], data.new)
    model, arrays, given = fitted_to_copies(each, data, weights)
    arrays.X[:] = 7.0
    arrays.y[:] = arrays.y[0]
    if given is not None:
        given[1:] = 0.0
    assert_equal(results(model, data.new), expected)


@first_is_quick
def test_parameters_may_change_after_a_fit(name):
    each = CONFIGURATIONS[name]
    data, weights = sample("Gaussian", each.n), np.ones(each.n)
    expected = results(fitted_to_copies(each, data, weights)[0], data.new)
    model, _, _ = fitted_to_copies(each, data, weights)
    for parameter in each.takes - OF_EVERY_CALL:
        setattr(model, parameter, "of the next fit")
    assert_equal(results(model, data.new), expected)


@pytest.mark.parametrize(
    "name", [name for name in FIRST.values() if not CONFIGURATIONS[name].inputs]
)
def test_functions_that_write_to_what_they_get_change_nothing(name):
    """The function of an Embedded kernel gets a copy."""
    each = CONFIGURATIONS[name]
    data = sample("Gaussian", each.n)
    data.X.flags.writeable = data.new.flags.writeable = False

    def halved(X):
        X *= 0.5
        return X

    model = fitted(each(Embedded(halved, Gaussian(sigma=2.0))), data)
    assert_equal(results(model, data.new), results(model, data.new))


# Denoisers ----------------------------------------------------------------------------------------


#: With all parameters given: those that the denoiser chooses depend on a random subset of rows.
GIVEN = {"kernel": Gaussian(sigma=2.0), "noise": 0.1, "blend": 0.8, "random_state": 0}
SEQUENCES = SequenceDenoiser(n_components=4, **GIVEN)
PATCHES = PatchDenoiser(patch_size=4, step=1, n_components=6, **GIVEN)


@examples(4)
@given(seeds, st.sampled_from(DTYPES))
def test_the_order_of_frames_does_not_matter(seed, dtype):
    frames = motion(seed, dtype, n=40)
    order = np.random.default_rng(seed).permutation(len(frames))
    found = replace(SEQUENCES).denoise(frames[order])
    assert_close(found, replace(SEQUENCES).denoise(frames)[order], SEARCHED[np.dtype(dtype)], "")


@examples(4)
@given(seeds, st.sampled_from([np.flipud, np.fliplr, np.rot90, np.transpose]))
def test_a_rotated_image_is_denoised_the_same(seed, turn):
    image = picture(seed)
    cleaned = replace(PATCHES).denoise(image)
    assert np.abs(cleaned - image).max() > 0.05
    assert_close(replace(PATCHES).denoise(turn(image)), turn(cleaned), 1e-5, "")


@pytest.mark.parametrize("make", [SEQUENCES, PATCHES], ids=["SequenceDenoiser", "PatchDenoiser"])
def test_threads_do_not_matter_to_denoisers(make, monkeypatch):
    data = motion(n=40) if isinstance(make, SequenceDenoiser) else picture()
    found = []
    for count in (1, 2):
        monkeypatch.setattr(threads, "_cores", lambda count=count: count)
        with threadpool_limits(count, user_api="blas"):
            found.append(replace(make).denoise(data))
    assert_close(*found, 1e-5, "")


# Errors -------------------------------------------------------------------------------------------


def _directions():
    X = sample("Gaussian", 18).X
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _opposite():
    """Return directions around a known mean, and its antipode."""
    angles = np.linspace(-0.4, 0.4, 17)
    X = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(17)])
    return np.insert(X, 7, [-1.0, 0.0, 0.0], axis=0)


def _indefinite():
    """Return a matrix with a similarity that is too large for any points."""
    K = np.full((18, 18), 0.5) + 1e-3 * np.add.outer(np.arange(18), np.arange(18))
    K[7] = K[:, 7] = 1.4
    np.fill_diagonal(K, 1.0)
    return K


def _with(X, row):
    X = X.copy()
    X[7] = row
    return X


#: Kernels, and data whose row 7 some estimators refuse.
FAULTS = {
    "another length": ("linear", _with(_directions(), [3.0, 3.0, 3.0])),
    "no length": ("linear", _with(_directions(), 0.0)),
    "no length to divide by": ("cosine", _with(_directions(), 0.0)),
    "not normalised": (Normalized("linear"), _with(_directions(), 0.0)),
    "negative": ("chi2", _with(_directions() ** 2, [-1.0, 1.0, 1.0])),
    "antipode": ("linear", _opposite()),
    "indefinite": ("precomputed", _indefinite()),
}


def must_name(each, fault):
    """Return whether a configuration refuses such data with an error that names the row.

    Others may refuse the kernel, or the matrix as a whole, or accept the data.
    """
    if fault in ("another length", "no length", "no length to divide by"):
        return each.sphere and not each.inputs
    if fault == "not normalised":  # a kernel without pre-images is refused before the data
        return not each.inputs
    if fault == "antipode":
        graph = each.make is KernelSpectralClustering
        means = each.make in (KernelPGA, GeodesicMixture) or "karcher" in each.options.values()
        return means or (graph and each.options.get("laplacian") != "kernel-pca")
    if fault == "indefinite":  # the row may not be an anchor
        angles = each.make in (KernelPGA, GeodesicMixture, HypersphericalKMeans)
        return angles and each.matrices and each.options.get("solver") != "nystroem"
    return True


NAMING = QUICK | {"HypersphericalKMeans, intrinsic"}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "name", [name if name in NAMING else pytest.param(name, marks=slow) for name in CONFIGURATIONS]
)
def test_errors_name_the_row_of_the_caller(name, fault):
    """The number is that before rows were merged and sorted."""
    each, (kernel, X) = CONFIGURATIONS[name], FAULTS[fault]
    y = sample("Gaussian", 18).y
    order = np.roll(np.arange(18), 4)
    for rows, number in ((np.arange(18), 7), (order, 11)):
        given = X[np.ix_(rows, rows)] if kernel == "precomputed" else X[rows]
        why = refusal(each(kernel), Sample(given, y[rows], given)) or ""
        named = re.findall(r"\brow (\d+)", why, flags=re.IGNORECASE)
        assert named or not must_name(each, fault), why or "it is not refused"
        assert not named or int(named[0]) == number, why
