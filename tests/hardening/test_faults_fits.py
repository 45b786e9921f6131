"""Faults: fits that are interrupted, run in threads or forked children, or lack memory."""

import contextlib
import re
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import laws_persist as laws
from bounded import in_child
from orthodrome._core import threads
from orthodrome.denoising import PatchDenoiser, SequenceDenoiser
from orthodrome.kernels import Gaussian

ESTIMATORS = laws.ESTIMATORS
KERNEL = Gaussian(sigma=2.0)

X, NEW, LABELS = laws.vectors()
DATA = X[:24], LABELS[:24]
#: With another number of features, so that parts of two fits cannot pass for one.
OTHER = np.column_stack([X[::-1], X[:, 0] ** 2])[:20], LABELS[:20]

NOISE = np.random.default_rng(0)
STRIPES = np.sin(np.arange(16) / 3) * (np.arange(14)[:, None] > 6)
STRIPES = STRIPES + 0.2 * NOISE.normal(size=(14, 16))
IMAGES = (STRIPES,), (STRIPES[:12, :10, None].repeat(3, axis=2),)
TURNS = np.arange(40)[:, None] / 5 + np.arange(4)
MOTION = np.stack([np.cos(TURNS), np.sin(TURNS)], axis=2) + 0.1 * NOISE.normal(size=(40, 4, 2))
MOTIONS = (MOTION,), (MOTION[:30, :2],)
SEED = {"random_state": 0}
#: A function of the kernel that makes the model, a kernel, arguments of its fit, and other ones.
SUBJECTS = {name: (make, KERNEL, DATA, OTHER) for name, make in ESTIMATORS.items()} | {
    "PatchDenoiser, chosen": (
        lambda kernel: PatchDenoiser(4, kernel=kernel, noise=0.2, **SEED),
        *("gaussian", *IMAGES),
    ),
    "SequenceDenoiser, chosen": (
        lambda kernel: SequenceDenoiser(kernel=kernel, **SEED),
        *("gaussian", *MOTIONS),
    ),
}
every_subject = pytest.mark.parametrize("name", SUBJECTS)


def run(model, data):
    """Fit, or denoise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence
        return model.denoise(*data) if hasattr(model, "denoise") else model.fit(*data)


def results(outcome):
    """Return what all methods of a fitted model return for new rows, or the denoised data."""
    if isinstance(outcome, np.ndarray):
        return [outcome.tolist()]
    methods = ("transform", "predict", "decision_function", "predict_proba")
    found = [getattr(outcome, name)(NEW) for name in methods if hasattr(outcome, name)]
    assert found
    return [np.asarray(each).tolist() for each in found]


def results_of(name):
    make, kernel, data, _ = SUBJECTS[name]
    return results(run(make(kernel), data))


def fitted_names(model):
    return {name for name in vars(model) if name.endswith("_") and not name.startswith("__")}


class InterruptedAt:
    """Raises KeyboardInterrupt, as Ctrl-C does, at a certain line of this library."""

    def __init__(self, place):
        self.place, self.count = place, 0

    def __call__(self, frame, event, argument):
        if "/orthodrome/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.count += 1
            if self.count == self.place:
                raise KeyboardInterrupt
        return self


@contextlib.contextmanager
def interrupted_at(place):
    tracer = InterruptedAt(place)
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        yield tracer
    finally:
        sys.settrace(before)


@every_subject
@pytest.mark.parametrize("n_places", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_an_interrupted_fit_leaves_the_last_one(name, n_places):
    make, kernel, data, other = SUBJECTS[name]
    known = make(kernel)
    expected, before = results(run(known, data)), dict(vars(known))
    given = [np.copy(each) for each in data]
    run(make(kernel), other)  # fill caches, so that the number of lines is known
    with interrupted_at(-1) as counter:
        run(make(kernel), other)
    places = {1, *np.random.default_rng(len(name)).integers(1, counter.count, n_places).tolist()}
    if name not in ESTIMATORS:  # where all is done except the return
        places |= {counter.count, counter.count - 1}
    for place in places:
        fresh = make(kernel)
        for model, kept in ((fresh, dict(vars(fresh))), (known, before)):
            with pytest.raises(KeyboardInterrupt), interrupted_at(place):
                run(model, other)
            assert vars(model).keys() == kept.keys()
            assert all(vars(model)[part] is kept[part] for part in kept)
            assert not threads._blas.callers  # no limit of threads is left behind
        if name in ESTIMATORS:
            with pytest.raises(NotFittedError):
                check_is_fitted(fresh)
            assert results(known) == expected
        assert results(run(fresh, data)) == expected
    for one, copy in zip(data, given, strict=True):
        np.testing.assert_array_equal(one, copy)


class Watched:
    """A kernel that counts its calls and values."""

    def __init__(self):
        self.calls, self.values = 0, 0

    def __deepcopy__(self, memo):
        return self  # clones of estimators share the counts

    def __call__(self, X, Y):
        self.calls += 1
        self.values += len(X) * len(Y)
        return np.exp(-np.square(X[:, None] - Y[None]).sum(axis=-1) / 8)


def in_threads(work, arguments, n_threads=2):
    """Call in threads, with one filter of warnings: they share it, and would reset each other's."""
    with warnings.catch_warnings(), ThreadPoolExecutor(n_threads) as pool:
        warnings.simplefilter("ignore")
        return list(pool.map(work, arguments))


@every_subject
def test_threads_and_a_forked_child(name):
    """Compiled loops release the interpreter's lock, so they must share nothing."""
    expected = results_of(name)
    assert in_threads(results_of, [name] * 4) == [expected] * 4
    if name in ESTIMATORS:  # a fitted model that many threads use
        make, kernel, data, _ = SUBJECTS[name]
        model = run(make(kernel), data)
        assert in_threads(results, [model] * 8, 4) == [expected] * 8
    assert not threads._blas.callers
    if sys.platform == "linux":  # a forked child must not call the BLAS of macOS
        outcome = in_child(lambda: in_threads(results_of, [name] * 2), seconds=60)
        assert outcome.code == 0
        assert outcome.result == [expected] * 2


MANY = 1200  # rows; the whole matrix, 11 MiB, exceeds the minimum that is always allowed


def budgets():
    """Yield the ways in which an estimator can exceed its memory."""
    for name, make in ESTIMATORS.items():
        parameters = make("gaussian").get_params(deep=False)
        assert "memory_budget" in parameters, name
        if "storage" not in parameters:
            yield name, {}
            continue
        yield name, {"storage": "memory"}
        if "solver" in parameters and not name.endswith("KMeans"):  # those have no eigensolver
            yield name, {"solver": "dense", "storage": "recompute"}
        if "n_anchors" in parameters:
            yield name, {"n_anchors": 700, "storage": "memory"}


@pytest.mark.parametrize(("name", "options"), list(budgets()), ids=str)
def test_a_budget_that_is_too_small_is_refused_before_the_work(name, options):
    many, labels = np.random.default_rng(0).normal(size=(MANY, 20)), np.arange(MANY) % 2
    kernel = Watched()
    model = ESTIMATORS[name](kernel).set_params(memory_budget="1MB", **options)
    with pytest.raises(ValueError, match=r"[0-9.]+ [MG]iB.*977 KiB.*memory_budget") as refused:
        model.fit(many, labels)
    assert kernel.values <= MANY**2 / 25  # at most the diagonal, in small blocks
    assert not fitted_names(model)
    needed = float(re.search(r"([0-9.]+) MiB", str(refused.value))[1])
    assert needed > 2  # MiB: what is needed, not the budget


def test_an_interrupt_at_any_line_of_the_limit_of_threads_leaves_it_free():
    """A thread that waits for the lock would wait forever."""

    def limit():
        with threads.single_threaded_blas():
            pass

    with interrupted_at(-1) as counter:
        limit()
    for place in range(1, counter.count + 1):
        with contextlib.suppress(KeyboardInterrupt), interrupted_at(place):
            limit()
        limit()  # after an interrupt in its last lines this releases the lock
        other = threading.Thread(target=limit, daemon=True)
        other.start()
        other.join(10)
        assert not other.is_alive(), f"interrupted at line {place} of {counter.count}"
        assert not threads._blas.callers
