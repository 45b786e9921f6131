"""Battery "faults": fits that are interrupted, at once in threads, in children, without memory."""

import contextlib
import os
import re
import signal
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import laws_persist as laws
from bounded import in_child, without_coverage
from orthodrome._core import threads
from orthodrome.denoising import PatchDenoiser, SequenceDenoiser
from orthodrome.eigen import leading
from orthodrome.gram import gram_operator
from orthodrome.kernels import FromCallable, Gaussian
from orthodrome.metrics import coranking_matrix

ESTIMATORS = laws.ESTIMATORS
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
KERNEL = Gaussian(sigma=2.0)


def first_data():
    X, new, labels = laws.vectors()
    return X[:24], new, labels[:24]


def other_data():
    """Of another number of features, so that halves of two fits cannot pass for one."""
    X, _, labels = laws.vectors()
    return np.column_stack([X[::-1], X[:, 0] ** 2])[:20], labels[:20]


def fit(model, X, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence
        return model.fit(X, labels)


def answers(model, new):
    """All that a model says of new rows."""
    found = []
    for method in ("transform", "predict", "decision_function", "predict_proba"):
        with contextlib.suppress(AttributeError):
            found.append(np.asarray(getattr(model, method)(new)))
    assert found
    return found


def fitted_names(model):
    return {name for name in vars(model) if name.endswith("_") and not name.startswith("__")}


def check_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


# Ctrl-C ------------------------------------------------------------------------------------------


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


@every_estimator
@pytest.mark.parametrize("n_places", [3, pytest.param(25, marks=pytest.mark.slow)])
def test_an_interrupted_fit_leaves_what_was_there(name, n_places):
    """Nothing where nothing was; the last fit, whole, where there was one."""
    X, new, labels = first_data()
    with interrupted_at(-1) as counter:
        known = fit(ESTIMATORS[name](KERNEL), X, labels)
    expected, names = answers(known, new), fitted_names(known)
    rng = np.random.default_rng(len(name))
    places = {1, counter.count, *rng.integers(1, counter.count, n_places - 2).tolist()}
    for place in places:
        fresh = ESTIMATORS[name](KERNEL)
        if interrupt(fresh, place, X, labels):
            with pytest.raises(NotFittedError):
                check_is_fitted(fresh)
            assert not fitted_names(fresh)
        check_same(answers(fit(fresh, X, labels), new), expected)
        if interrupt(known, place, *other_data()):
            assert fitted_names(known) == names
            check_same(answers(known, new), expected)
        else:  # it was done before
            fit(known, X, labels)


def interrupt(model, place, X, labels):
    """Fit with Ctrl-C at this line; return whether it came to that."""
    try:
        with interrupted_at(place):
            fit(model, X, labels)
    except KeyboardInterrupt:
        return True
    finally:
        assert not threads._blas.active  # no limit of threads is left behind
    return False


def test_an_interrupt_at_any_line_of_the_limit_of_threads_leaves_it_free():
    """For other threads too: one that waits for the lock would wait forever."""

    def limit():
        with threads.single_threaded_blas():
            pass

    with interrupted_at(-1) as counter:
        limit()
    for place in range(1, counter.count + 1):
        with contextlib.suppress(KeyboardInterrupt), interrupted_at(place):
            limit()
        limit()  # after an interrupt within its very last lines this lets the lock go
        other = threading.Thread(target=limit, daemon=True)
        other.start()
        other.join(10)
        assert not other.is_alive(), f"interrupted at line {place} of {counter.count}"
        assert not threads._blas.active


class Watched:
    """A kernel that counts the blocks it is asked for, and is interrupted in one of them."""

    def __init__(self, after=10**9):
        self.after, self.calls, self.values = after, 0, 0

    def __deepcopy__(self, memo):
        return self  # clones of estimators count here too

    def __call__(self, X, Y):
        self.calls += 1
        self.values += len(X) * len(Y)
        if self.calls > self.after:
            signal.raise_signal(signal.SIGINT)
        return np.exp(-np.square(X[:, None] - Y[None]).sum(axis=-1) / 8)


@pytest.fixture
def interrupts():
    """SIGINT raises KeyboardInterrupt, also where the suite runs in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@every_estimator
@pytest.mark.usefixtures("interrupts")
def test_a_signal_within_the_kernel(name):
    """SIGINT itself, while a kernel of the caller's is evaluated."""
    X, new, labels = first_data()
    kernel = Watched()
    model = fit(ESTIMATORS[name](kernel), X, labels)
    expected = answers(model, new)
    kernel.calls = 0
    fit(ESTIMATORS[name](kernel), *other_data())
    assert kernel.calls > 0
    kernel.calls, kernel.after = 0, kernel.calls // 2
    with pytest.raises(KeyboardInterrupt):
        fit(model, *other_data())
    kernel.after = 10**9
    check_same(answers(model, new), expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    "name",
    [
        "KernelPCA",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ESTIMATORS if n != "KernelPCA"),
    ],
)
def test_signals_at_any_time(name):
    """Ctrl-C from outside by the clock, again and again, while a model is fitted anew."""
    X, new, labels = first_data()
    more, more_labels = other_data()
    model = fit(ESTIMATORS[name](KERNEL), X, labels)
    expected = answers(model, new)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code, n_interrupts = 3, 0
        without_coverage()
        os.write(writing, b"!")
        try:
            while n_interrupts < 5:
                try:
                    signal.signal(signal.SIGINT, signal.default_int_handler)
                    while True:
                        fit(model, more, more_labels)
                        fit(model, X, labels)
                except KeyboardInterrupt:
                    signal.signal(signal.SIGINT, signal.SIG_IGN)  # while it is looked at
                    n_interrupts += 1
                if model.n_features_in_ == new.shape[1]:
                    check_same(answers(model, new), expected)
                else:
                    answers(model, more)
            code = 0
        except BaseException as error:
            os.write(2, repr(error).encode())
        finally:
            os._exit(code)
    os.read(reading, 1)
    for descriptor in (reading, writing):
        os.close(descriptor)
    rng = np.random.default_rng(0)
    for _ in range(200):
        time.sleep(float(rng.uniform(0.05, 0.15)))
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        os.kill(child, signal.SIGINT)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("it does not end")


# Denoisers ---------------------------------------------------------------------------------------

NOISE = np.random.default_rng(0)
STRIPES = np.sin(np.arange(16) / 3) * (np.arange(14)[:, None] > 6) + 0.2 * NOISE.normal(
    size=(14, 16)
)
TURNS = np.arange(40)[:, None] / 5 + np.arange(4)
MOTION = np.stack([np.cos(TURNS), np.sin(TURNS)], axis=2) + 0.1 * NOISE.normal(size=(40, 4, 2))
#: With all chosen by the estimated risk, and with nothing left to choose; their data, and others.
DENOISERS = {
    "PatchDenoiser, chosen": (
        lambda kernel="gaussian": PatchDenoiser(4, kernel=kernel, noise=0.2, random_state=0),
        (STRIPES, STRIPES[:12, :10, None].repeat(3, axis=2)),
    ),
    "PatchDenoiser, given": (
        lambda kernel=KERNEL: PatchDenoiser(4, 2, 3, kernel, blend=0.9, random_state=0),
        (STRIPES, STRIPES[:12, :10, None].repeat(3, axis=2)),
    ),
    "SequenceDenoiser, chosen": (
        lambda kernel="gaussian": SequenceDenoiser(kernel=kernel, random_state=0),
        (MOTION, MOTION[:30, :2]),
    ),
    "SequenceDenoiser, given": (
        lambda kernel=KERNEL: SequenceDenoiser(3, kernel, blend=0.9, random_state=0),
        (MOTION, MOTION[:30, :2]),
    ),
}
every_denoiser = pytest.mark.parametrize("name", DENOISERS)


def denoised(model, noisy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pre-images that stop early
        return model.denoise(noisy)


@every_denoiser
@pytest.mark.parametrize("n_places", [1, pytest.param(60, marks=pytest.mark.slow)])
def test_an_interrupted_denoiser_is_as_it_was(name, n_places):
    """Whoever gets no result gets no attributes of it either; the next call is undisturbed."""
    make, (noisy, other) = DENOISERS[name]
    given = noisy.copy()
    known = make()
    expected = denoised(known, noisy)
    before = dict(vars(known))
    denoised(make(), other)  # what is done but once is done
    counted = make()
    with interrupted_at(-1) as counter:
        denoised(counted, other)
    rng = np.random.default_rng(n_places)
    last = [counter.count, counter.count - 1]  # where all is done but the result handed over
    for place in {1, *last, *rng.integers(1, counter.count, n_places).tolist()}:
        fresh = make()
        for model, kept in ((fresh, dict(vars(fresh))), (known, before)):
            with pytest.raises(KeyboardInterrupt), interrupted_at(place):
                denoised(model, other)
            assert vars(model).keys() == kept.keys()
            assert all(vars(model)[part] is kept[part] for part in kept)
            assert not threads._blas.active
        np.testing.assert_array_equal(denoised(fresh, noisy), expected)
    np.testing.assert_array_equal(noisy, given)
    np.testing.assert_array_equal(denoised(known, noisy), expected)


@every_denoiser
@pytest.mark.usefixtures("interrupts")
def test_a_signal_within_the_kernel_of_a_denoiser(name):
    make, (noisy, other) = DENOISERS[name]
    kernel = Watched()
    model = make(kernel)
    expected = denoised(model, noisy)
    before = dict(vars(model))
    kernel.calls = 0
    denoised(make(kernel), other)
    assert kernel.calls > 0
    kernel.calls, kernel.after = 0, kernel.calls // 2
    with pytest.raises(KeyboardInterrupt):
        denoised(model, other)
    kernel.after = 10**9
    assert vars(model) == before
    np.testing.assert_array_equal(denoised(model, noisy), expected)


# Threads and children ----------------------------------------------------------------------------


def work_of(name):
    X, new, labels = first_data()
    return answers(fit(ESTIMATORS[name](KERNEL), X, labels), new)


def in_two_threads(work, name, times):
    """The filter of warnings is one for all threads: where each sets it, one undoes another's."""
    with warnings.catch_warnings(), ThreadPoolExecutor(2) as pool:
        warnings.simplefilter("ignore")
        return list(pool.map(work, [name] * times))


@every_estimator
def test_two_threads_at_once(name):
    """Compiled loops release the interpreter's lock: they must share nothing."""
    expected = work_of(name)
    for found in in_two_threads(work_of, name, 4):
        check_same(found, expected)
    assert not threads._blas.active


@every_estimator
def test_one_model_asked_by_many(name):
    """Threads of a server share a fitted model; what is computed late is computed once."""
    X, new, labels = first_data()
    expected = work_of(name)
    model = fit(ESTIMATORS[name](KERNEL), X, labels)
    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("ignore")
        for found in pool.map(answers, [model] * 8, [new] * 8):
            check_same(found, expected)
    assert not threads._blas.active


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@every_estimator
def test_a_forked_child(name):
    """After the parent has compiled and used its loops, in two threads too."""
    expected = [part.tolist() for part in work_of(name)]

    def both():
        return [[part.tolist() for part in one] for one in in_two_threads(work_of, name, 2)]

    outcome = in_child(both, seconds=60)
    assert outcome.code == 0
    assert outcome.result == [expected, expected]


def denoising_of(name):
    make, (noisy, _) = DENOISERS[name]
    return denoised(make(), noisy)


@every_denoiser
def test_denoisers_in_threads_and_in_a_forked_child(name):
    expected = denoising_of(name)

    def twice_at_once():
        return [found.tolist() for found in in_two_threads(denoising_of, name, 4)]

    assert twice_at_once() == [expected.tolist()] * 4
    assert not threads._blas.active
    if hasattr(os, "fork"):
        outcome = in_child(twice_at_once, seconds=60)
        assert outcome.code == 0
        assert outcome.result == [expected.tolist()] * 4


# Memory budgets ----------------------------------------------------------------------------------

MANY = 1200  # of which the whole matrix, 11 MiB, is more than is always allowed


def budgets():
    """Every way in which an estimator can be given too little memory."""
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
def test_a_budget_that_cannot_be_met_is_refused_before_the_work(name, options):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(MANY, 20)), np.arange(MANY) % 2
    kernel = Watched()
    model = ESTIMATORS[name](kernel).set_params(memory_budget="1MB", **options)
    with pytest.raises(ValueError, match=r"[0-9.]+ [MG]iB.*977 KiB.*memory_budget") as refused:
        model.fit(X, labels)
    assert kernel.values <= MANY**2 / 25  # the diagonal at most, in small blocks
    assert "memory_budget" in str(refused.value)
    assert not fitted_names(model)
    needed = float(re.search(r"([0-9.]+) MiB", str(refused.value))[1])
    assert needed > 2  # MiB: an estimate of what there would be, not of the budget


POINTS = np.random.default_rng(0).normal(size=(MANY, 2))
FUNCTIONS = {
    "leading": lambda kernel, budget: leading(
        gram_operator(kernel, POINTS, storage="recompute"),
        2,
        solver="dense",
        memory_budget=budget,
    ),
    "gram_operator": lambda kernel, budget: gram_operator(
        kernel, POINTS, storage="memory", memory_budget=budget
    ),
    "coranking_matrix": lambda kernel, budget: coranking_matrix(
        POINTS, POINTS, memory_budget=budget
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_refuse_before_the_work_too(name):
    counted = Watched()
    kernel = FromCallable(counted).fit(POINTS)
    with pytest.raises(ValueError, match=r"[0-9.]+ MiB.*977 KiB"):
        FUNCTIONS[name](kernel, "1MB")
    assert counted.calls == 0
