"""Threads over blocks: one BLAS thread inside each, as many of them as BLAS would have used.

A BLAS thread that has finished keeps its core busy for a while, waiting for more: between threaded
BLAS calls, products by threads of our own took 0.14 s each instead of 0.08 s in a trial.
Whole computations therefore run inside :func:`single_threaded_blas`, and thread their large
products themselves, by rows.

The compiled loops of this library are serial and release the GIL; parallel work is a plain
thread per share of the blocks. Forked children and nested callers are therefore safe: no thread
outlives a call, and no OpenMP runtime is started.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

__all__ = [
    "LockOfOneProcess",
    "n_threads",
    "one_share",
    "run_in_threads",
    "run_over_rows",
    "single_threaded_blas",
]

Result = TypeVar("Result")


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def _set_threads(library: Any, n: int) -> None:
    """Set the threads of one BLAS library for the process, from whichever thread.

    Since 3.8 ``set_num_threads`` of threadpoolctl does nothing, silently, in all Python threads but
    the first that ever called it, as long as that one lives: the last to leave could not lift the
    limit. The counter below does what that rule is for.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n)


def _limit_openmp_here() -> None:
    """Limit, in a thread of ours, the BLAS libraries whose number of threads is each thread's own.

    Those are the ones built on OpenMP (conda's, some distributions'); NumPy's and SciPy's wheels
    have one number for the process, which is set already.
    """
    for library in _controller().lib_controllers:
        if getattr(library, "threading_layer", "") == "openmp":
            _set_threads(library, 1)


class _SingleThreadedBlas:
    """Re-entrant, thread-safe limit: the first to enter sets it, the last to leave lifts it.

    ``threadpool_limits`` alone is not enough: two overlapping callers would each restore what
    they saw on entry, and the second would leave the whole process limited to one thread.

    Ctrl-C may come between two lines, the lock held: a thread can take it again, and lets it go
    for good when it leaves.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._inside: set[object] = set()
        self._before: list[tuple[Any, int]] = []
        self.threads_outside = 1

    def enter(self, caller: object) -> None:
        with self._lock:
            if not self._inside:
                self.threads_outside = _blas_threads()
                libraries = _controller().lib_controllers
                self._before = [(library, library.num_threads) for library in libraries]
                for library in libraries:
                    _set_threads(library, 1)
            self._inside.add(caller)

    def leave(self, caller: object) -> None:
        """Leave; to do so twice, or without having entered, does no harm."""
        with self._lock:
            self._inside.discard(caller)
            if not self._inside:
                for library, n in self._before:
                    _set_threads(library, n)
                self._before = []
        with suppress(RuntimeError):  # that it does not hold the lock
            while True:
                self._lock.release()

    @property
    def active(self) -> bool:
        return bool(self._inside)

    def renew_lock(self) -> None:
        """In a forked child: the thread that may have held the lock is not there any more."""
        self._lock = threading.RLock()


class LockOfOneProcess:
    """A lock that a thread may take again, and that no forked child finds taken by nobody."""

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


_blas = _SingleThreadedBlas()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.renew_lock)


@lru_cache(maxsize=1)
def _cores() -> int:
    """Return the cores this process may use, by affinity and control group."""
    return int(joblib.cpu_count())


def _blas_threads() -> int:
    threads = [library.num_threads for library in _controller().lib_controllers]
    return max(threads, default=_cores())


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
    finally:  # again: Ctrl-C may have come before the line above was done
        _blas.leave(caller)


def n_threads() -> int:
    """Count the threads that block loops use: what BLAS may use, at most the usable cores.

    ``OPENBLAS_NUM_THREADS``, ``threadpool_limits`` and joblib's own limits in its workers are
    thereby respected.
    """
    allowed = _blas.threads_outside if _blas.active else _blas_threads()
    return max(1, min(allowed, _cores()))


def run_in_threads(
    function: Callable[[int, int], Result], n_items: int, *, serial: bool = False
) -> list[Result]:
    """Call ``function(share, n_shares)`` once per thread and return the results in order.

    Each call works on the items ``share, share + n_shares, …`` below `n_items`: a fixed
    assignment, so that sums come out the same in every run with the same number of threads. With
    `serial` all items are one share, and so they are where the caller is such a thread itself.
    """
    alone = serial or getattr(_here, "is_share", False)
    n_shares = 1 if alone else min(n_threads(), n_items)
    if n_shares <= 1:
        return [function(0, 1)] if n_items else []
    with (
        single_threaded_blas(),
        ThreadPoolExecutor(n_shares, initializer=_begin_share) as pool,
    ):
        futures = [pool.submit(function, share, n_shares) for share in range(n_shares)]
        return [future.result() for future in futures]


_here = threading.local()


def _begin_share() -> None:
    """In a new thread: one thread of OpenMP too, and none of its own."""
    _limit_openmp_here()
    _here.is_share = True


@contextmanager
def one_share() -> Iterator[None]:
    """Run what is inside in this thread alone: a scheduler has others of its kind beside it."""
    before = getattr(_here, "is_share", False)
    with single_threaded_blas():
        _begin_share()
        try:
            yield
        finally:
            _here.is_share = before


def run_over_rows(function: Callable[[slice], Result], n_rows: int) -> list[Result]:
    """Call ``function(rows)`` once per thread, each with its own slice of the rows, in order."""
    alone = getattr(_here, "is_share", False)  # then all rows are one share
    n_shares = 1 if alone else max(1, min(n_threads(), n_rows // 256))
    bounds = [n_rows * share // n_shares for share in range(n_shares + 1)]

    def one_share(share: int, _n_shares: int) -> Result:
        return function(slice(bounds[share], bounds[share + 1]))

    return run_in_threads(one_share, n_shares)
