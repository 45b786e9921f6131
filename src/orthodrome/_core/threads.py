"""Run work on blocks in threads, with one BLAS thread in each.

A BLAS thread that has finished keeps its core busy for a while, waiting for more: between threaded
BLAS calls, products by threads of our own took 0.14 s each instead of 0.08 s in a trial.
Whole computations therefore run inside :func:`single_threaded_blas` and split their large products
by rows.

The threads come from one pool that lives as long as the process; the calling thread takes the first
share itself. A forked child starts its own pool. The compiled loops of this library are serial and
release the GIL, so no OpenMP runtime is started.
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

# Less work than this, about a millisecond, is done in the calling thread. The unit is one
# multiply-add of a matrix product.
_SMALL_WORK = 2**24

#: The work for one kernel value, or for one element of an array expression, in that unit.
VALUE_WORK = 64


@lru_cache(maxsize=1)
def _blas_libraries() -> list[Any]:
    """Return threadpoolctl's controllers of the loaded BLAS libraries."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(library: Any, n: int) -> None:
    """Set the number of threads of a BLAS library, from any thread.

    threadpoolctl >= 3.8 ignores all threads but the first that called it, unless that one lets go.
    """
    let_go = getattr(library, "clear_controlling_thread", lambda force: None)
    let_go(force=True)
    library.set_num_threads(n)
    let_go(force=True)


def _limit_openmp_here() -> None:
    """Limit the BLAS libraries that have one number of threads per calling thread.

    Those are built on OpenMP (conda's, some distributions'); NumPy's and SciPy's wheels have one
    number for the process, which is set already.
    """
    for library in _blas_libraries():
        if getattr(library, "threading_layer", "") == "openmp":
            _set_threads(library, 1)


class LockOfOneProcess:
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


class _SingleThreadedBlas(LockOfOneProcess):
    """A limit of the process: the first caller to enter sets it, the last to leave lifts it.

    ``threadpool_limits`` is not enough. The second of two overlapping callers would restore the
    limit that the first has set.
    """

    def __init__(self) -> None:
        super().__init__()
        self.callers: set[object] = set()
        self._before: list[int] = []  # threads of each library outside the limit

    def enter(self, caller: object) -> None:
        with self:
            if not self.callers:
                self._before = [library.num_threads for library in _blas_libraries()]
                for library in _blas_libraries():
                    _set_threads(library, 1)
            self.callers.add(caller)

    def leave(self, caller: object) -> None:
        """Leave. A second call, or one without ``enter``, does nothing."""
        with self:
            self.callers.discard(caller)
            if not self.callers:
                for library, n in zip(_blas_libraries(), self._before, strict=False):
                    _set_threads(library, n)
                self._before = []
        with suppress(RuntimeError):  # Ctrl-C may have left the lock held by this thread
            while True:
                self._lock.release()

    def threads_outside(self) -> int:
        """Return how many threads BLAS may use outside the limit."""
        threads = self._before or [library.num_threads for library in _blas_libraries()]
        return max(threads, default=_cores())


_blas = _SingleThreadedBlas()


@lru_cache(maxsize=1)
def _cores() -> int:
    """Return the cores this process may use, by affinity and control group."""
    return int(joblib.cpu_count())


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread while the caller runs threads of its own."""
    caller = object()
    try:
        try:
            _blas.enter(caller)
            yield
        finally:
            _blas.leave(caller)
    finally:  # again: Ctrl-C may have interrupted the line above
        _blas.leave(caller)


def n_threads() -> int:
    """Return how many threads block loops use: as many as BLAS may, at most the usable cores.

    ``OPENBLAS_NUM_THREADS``, ``threadpool_limits`` and joblib's limits in its workers are thereby
    respected.
    """
    return max(1, min(_blas.threads_outside(), _cores()))


def run_in_threads(
    function: Callable[[int, int], Result],
    n_items: int,
    *,
    serial: bool = False,
    work: float = math.inf,
) -> list[Result]:
    """Call ``function(share, n_shares)`` once per thread and return the results in order.

    Each call works on the items ``share, share + n_shares, …`` below `n_items`. The assignment is
    fixed, so that sums are the same in every run with the same number of threads. The calling
    thread takes share 0, and any share that the pool has not started by then.

    All items are one share if `serial` is set, if the `work` (in multiply-adds) is small, or if the
    caller is itself such a share.
    """
    return _run(function, 1 if serial else _n_shares(n_items, work)) if n_items else []


def _run(function: Callable[[int, int], Result], n_shares: int) -> list[Result]:
    """Run `n_shares` shares, the first in this thread."""
    if n_shares == 1:
        return [function(0, 1)]
    with single_threaded_blas(), _nested_calls_serial():
        futures: list[Future[Result]] = []
        try:
            with suppress(RuntimeError):  # no more threads: this one runs what is left
                for share in range(1, n_shares):
                    futures.append(_pool().submit(function, share, n_shares))
            results = [function(0, n_shares)]
            for share in range(1, n_shares):
                waiting = share > len(futures) or futures[share - 1].cancel()
                results.append(
                    function(share, n_shares) if waiting else futures[share - 1].result()
                )
        finally:  # after an error too
            # not for cancelled ones: they count as done only when a thread of the pool is free
            wait([future for future in futures if not future.cancel()])
        return results


def _n_shares(n_items: int, work: float) -> int:
    """Return the number of shares for these items."""
    if work < _SMALL_WORK or getattr(_here, "is_share", False):
        return 1
    return min(n_threads(), n_items)


_here = threading.local()


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Return the threads of this process; each starts when it is first needed."""
    return ThreadPoolExecutor(_cores(), "orthodrome", initializer=_begin_share)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def _begin_share() -> None:
    """Prepare a thread of the pool: one OpenMP thread, and no threads for nested calls."""
    _limit_openmp_here()
    _here.is_share = True


@contextmanager
def _nested_calls_serial() -> Iterator[None]:
    """Let calls of :func:`run_in_threads` inside use this thread alone."""
    before = getattr(_here, "is_share", False)
    _here.is_share = True
    try:
        yield
    finally:
        _here.is_share = before


@contextmanager
def one_share() -> Iterator[None]:
    """Run the body in this thread alone, as a worker of a scheduler that has others."""
    with single_threaded_blas(), _nested_calls_serial():
        _limit_openmp_here()
        yield


def run_over_rows(
    function: Callable[[slice], Result], n_rows: int, *, work: float = math.inf
) -> list[Result]:
    """Call ``function(rows)`` once per thread, each with its own slice of the rows, in order.

    With little `work` (in multiply-adds), or few rows, one slice has all of them.
    """
    n_shares = max(1, min(_n_shares(n_rows, work), n_rows // 256))
    bounds = [n_rows * share // n_shares for share in range(n_shares + 1)]

    def one_slice(share: int, _n_shares: int) -> Result:
        return function(slice(bounds[share], bounds[share + 1]))

    return _run(one_slice, n_shares)
