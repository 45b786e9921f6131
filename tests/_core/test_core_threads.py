"""Threads over blocks: order, errors, the BLAS limit, forks, and callers in several threads."""

import multiprocessing
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bounded import in_child
from orthodrome._core import threads
from orthodrome._core.threads import n_threads, run_in_threads, run_over_rows, single_threaded_blas


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def unlimited():
    """Check that no test leaves BLAS limited."""
    before = blas_threads()
    yield
    assert blas_threads() == before


# Shares -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_items", [0, 1, 2, 7])
@pytest.mark.parametrize("serial", [True, False])
def test_shares_cover_all_items_once_in_order(two_threads, n_items, serial):
    results = run_in_threads(
        lambda worker, n_workers: list(range(worker, n_items, n_workers)), n_items, serial=serial
    )
    assert sorted(item for part in results for item in part) == list(range(n_items))
    assert [part[0] for part in results] == list(range(len(results)))
    assert len(results) == min(n_items, 1 if serial else 2)


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_is_raised_after_all_shares_have_ended(two_threads, failing):
    started, ended = threading.Event(), threading.Event()

    def function(worker, n_workers):
        if worker == failing:
            assert started.wait(10)
            raise KeyError("mine")
        started.set()
        time.sleep(0.1)
        ended.set()

    with pytest.raises(KeyError, match="mine"):
        run_in_threads(function, 2)
    assert ended.is_set()
    assert blas_threads() == {2}


# The BLAS limit -----------------------------------------------------------------------------------


def test_blas_has_one_thread_inside_the_limit(two_threads):
    assert n_threads() == 2
    with single_threaded_blas():
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
        assert n_threads() == 2  # what the caller may use does not change
    assert blas_threads() == {2}
    with pytest.raises(ZeroDivisionError), single_threaded_blas():
        raise ZeroDivisionError
    assert blas_threads() == {2}


def test_overlapping_callers_restore_the_limit(two_threads):
    """First in, first out: with plain `threadpool_limits` the second would restore the limit 1."""
    first_inside, second_inside, first_outside = (threading.Event() for _ in range(3))
    found = []

    def first():
        with single_threaded_blas():
            first_inside.set()
            assert second_inside.wait(10)
        first_outside.set()

    def second():
        assert first_inside.wait(10)
        with single_threaded_blas():
            second_inside.set()
            assert first_outside.wait(10)
            found.append(blas_threads())

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(first), pool.submit(second)]:
            future.result()
        # while both threads live: threadpoolctl lets only the first of them change the limit
        assert blas_threads() == {2}
    assert found == [{1}]


def test_the_limits_of_the_user_and_of_the_machine_are_respected(monkeypatch):
    with threadpool_limits(1, user_api="blas"):
        assert n_threads() == 1
        assert run_in_threads(lambda worker, n_workers: n_workers, 8) == [1]
    monkeypatch.setattr(threads, "_cores", lambda: 1)
    with threadpool_limits(2, user_api="blas"):
        assert n_threads() == 1


# Callers ------------------------------------------------------------------------------------------


# A parent that has used its threads, one that is inside the limit, one whose lock is held by a
# thread that does not exist in the child.
FORK = """
import os, signal, threading, warnings
import numpy as np
from threadpoolctl import threadpool_limits
from orthodrome._core import threads
from orthodrome._core.threads import _blas, single_threaded_blas
from orthodrome.kernels import Gaussian
threads._cores = lambda: 2
threadpool_limits(2, user_api="blas")
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of every fork with threads

X = np.random.default_rng(0).normal(size=(1100, 3))
kernel = Gaussian(1.0).fit(X)
expected = kernel(X)
assert threading.active_count() > 1, "the parent has a pool"

def child_agrees():
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)  # a deadlock ends here
        os._exit(0 if np.array_equal(kernel(X), expected) else 3)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

assert child_agrees() == 0, "plain"
with single_threaded_blas():
    assert child_agrees() == 0, "inside the limit"
with _blas._lock:
    assert child_agrees() == 0, "lock held"
"""


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_forked_child_may_evaluate_kernels():
    result = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.parametrize("kind", [threads.ForkSafeLock, threads._SingleThreadedBlas])
def test_a_lock_is_released_in_a_forked_child(kind):
    lock = kind()
    with ThreadPoolExecutor(1) as other:
        other.submit(lock.__enter__).result()
        assert not lock._lock.acquire(blocking=False)
        assert in_child(lambda: lock._lock.acquire(blocking=False)).result
        other.submit(lock.__exit__).result()
    with lock, lock:
        pass


def test_nested_calls_use_one_thread(two_threads):
    both = threading.Barrier(2)  # so that each worker has its own thread

    def outer(worker, n_workers):
        both.wait(10)
        inner = run_in_threads(lambda s, n: (threading.get_ident(), n), 4)
        return threading.get_ident(), inner, run_over_rows(lambda rows: rows, 5000)

    for thread, inner, slices in run_in_threads(outer, 2):
        assert inner == [(thread, 1)]
        assert slices == [slice(0, 5000)]
    assert len(run_in_threads(lambda s, n: n, 2)) == 2  # afterwards there are two again
