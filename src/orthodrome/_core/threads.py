"""Run block computations in threads, with one BLAS thread in each.

After a call, the threads of BLAS keep their cores busy for a while, waiting for more work. This
slows down our own threads: in a trial, they took 0.14 s instead of 0.08 s for a product between
threaded BLAS calls. Whole computations therefore run inside :func:`single_threaded_blas` and split
large products by rows.

The threads belong to one pool that lives as long as the process; the calling thread is worker 0. A
forked child starts its own pool. The compiled loops of this library are serial and release the GIL,
so no OpenMP runtime is started.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

# Below this amount of work, about a millisecond, only the calling thread is used. The unit is one
# multiply-add of a matrix product.
_SMALL_WORK = 2**24

#: Work for one kernel value, or for one element of an array expression, in multiply-adds.
VALUE_WORK = 64


@lru_cache(maxsize=1)
def _blas_libraries() -> list[Any]:
    """Return threadpoolctl's controllers of the loaded BLAS libraries."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(library: Any, n: int) -> None:
    """Set the number of threads of a BLAS library, from any thread.

    threadpoolctl >= 3.8 remembers the first thread that sets the number, and ignores all others.
    Make it forget this thread before and after the call.
    """
    clear = getattr(library, "clear_controlling_thread", lambda force: None)
    clear(force=True)
    library.set_num_threads(n)
    clear(force=True)


def _limit_openmp() -> None:
    """Set BLAS libraries that use OpenMP to one thread.

    conda and some distributions have such libraries. Their limit applies only to the calling
    thread. The limit of NumPy's and SciPy's wheels applies to the whole process, and is already
    set.
    """
    for library in _blas_libraries():
        if getattr(library, "threading_layer", "") == "openmp":
            _set_threads(library, 1)


class ForkSafeLock:
    """A re-entrant lock that is released in forked children."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class _SingleThreadedBlas(ForkSafeLock):
    """A limit for the process: the first caller to enter sets it, the last to leave removes it.

    With ``threadpool_limits``, the second of two overlapping callers would restore the limit that
    the first one set.
    """

    def __init__(self) -> None:
        super().__init__()
        self.callers: set[object] = set()
        self.before: list[int] = []  # number of threads of each library without the limit

    def enter(self, caller: object) -> None:
        with self:
            if not self.callers:
                self.before = [library.num_threads for library in _blas_libraries()]
                for library in _blas_libraries():
                    _set_threads(library, 1)
            self.callers.add(caller)

    def leave(self, caller: object) -> None:
        """Remove a caller. A second call, or one without ``enter``, does nothing."""
        with self:
            self.callers.discard(caller)
            if not self.callers:
                for library, n in zip(_blas_libraries(), self.before, strict=False):
                    _set_threads(library, n)
                self.before = []
        with suppress(RuntimeError):  # Ctrl-C may have left the lock held by this thread
            while True:
                self._lock.release()


_blas = _SingleThreadedBlas()


@lru_cache(maxsize=1)
def _cores() -> int:
    """Return the number of cores allowed by CPU affinity and control group."""
    return int(joblib.cpu_count())


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread while the caller runs its own threads."""
    caller = object()
    try:
        try:
            _blas.enter(caller)
            yield
        finally:
            _blas.leave(caller)
    finally:  # Ctrl-C may have interrupted the first call
        _blas.leave(caller)


def n_threads() -> int:
    """Return the number of threads for block loops.

    This is the number of threads of BLAS, but at most the number of usable cores. It respects
    ``OPENBLAS_NUM_THREADS``, ``threadpool_limits`` and joblib's limits in its workers.
    """
    unlimited = _blas.before or [library.num_threads for library in _blas_libraries()]
    return max(1, min(max(unlimited, default=_cores()), _cores()))


def run_in_threads(
    function: Callable[[int, int], Result],
    n_items: int,
    *,
    serial: bool = False,
    work: float = math.inf,
) -> list[Result]:
    """Call ``function(worker, n_workers)`` once per thread and return the results in order.

    Each call processes the items ``worker, worker + n_workers, …`` below `n_items`. The assignment
    is fixed, so that sums are the same in every run with the same number of threads. The calling
    thread runs worker 0, then every worker that the pool has not started yet.

    There is one worker if `serial` is set, if the `work` (in multiply-adds) is small, or if the
    caller is itself a worker.
    """
    if not n_items:
        return []
    is_worker = getattr(_thread_state, "is_worker", False)
    n_workers = 1 if serial or is_worker or work < _SMALL_WORK else min(n_threads(), n_items)
    if n_workers == 1:
        return [function(0, 1)]
    with single_threaded_blas(), _nested_calls_serial():
        futures: list[Future[Result]] = []
        try:
            with suppress(RuntimeError):  # no more threads: this one runs the other workers
                for worker in range(1, n_workers):
                    futures.append(_pool().submit(function, worker, n_workers))
            results = [function(0, n_workers)]
            for worker in range(1, n_workers):
                waiting = worker > len(futures) or futures[worker - 1].cancel()
                results.append(
                    function(worker, n_workers) if waiting else futures[worker - 1].result()
                )
        finally:  # also after an error
            # cancelled futures are excluded: they finish only when a thread of the pool is free
            wait([future for future in futures if not future.cancel()])
        return results


_thread_state = threading.local()


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Return the thread pool of this process; threads start when needed."""
    return ThreadPoolExecutor(_cores(), "orthodrome", initializer=_init_worker)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def _init_worker() -> None:
    """Prepare a thread of the pool: one OpenMP thread, and serial nested calls."""
    _limit_openmp()
    _thread_state.is_worker = True


@contextmanager
def _nested_calls_serial() -> Iterator[None]:
    """Make nested calls of :func:`run_in_threads` serial."""
    before = getattr(_thread_state, "is_worker", False)
    _thread_state.is_worker = True
    try:
        yield
    finally:
        _thread_state.is_worker = before


@contextmanager
def single_threaded() -> Iterator[None]:
    """Use only the current thread, as a worker of an external scheduler should."""
    with single_threaded_blas(), _nested_calls_serial():
        _limit_openmp()
        yield


def run_over_rows(
    function: Callable[[slice], Result],
    n_rows: int,
    *,
    serial: bool = False,
    work: float = math.inf,
) -> list[Result]:
    """Call ``function(rows)`` with one slice of rows per thread; return the results in order.

    There is one slice if `serial` is set, with little `work` (in multiply-adds), or with few rows.
    """

    def one_slice(worker: int, n_workers: int) -> Result:
        return function(slice(n_rows * worker // n_workers, n_rows * (worker + 1) // n_workers))

    return run_in_threads(one_slice, max(1, n_rows // 256), serial=serial, work=work)
