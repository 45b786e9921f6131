"""Compilation of loops with numba."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numba

# Of the fast-math options only the contraction of a * b + c is allowed.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def compiled_part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that is only called by compiled loops."""
    return numba.njit(**_OPTIONS)(function)


class compiled:
    """Compile a loop with numba on first call: without the GIL, and cached where possible.

    Without a usable cache (no writable folder, a full disk, a damaged file) the loop is compiled
    anew in each process.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.cached = True
        try:
            self.dispatcher = numba.njit(cache=True, **_OPTIONS)(function)
        except RuntimeError:
            self._drop_cache()

    def __call__(self, *arrays: Any) -> Any:
        used = self.dispatcher
        try:
            return used(*arrays)
        except Exception as error:
            if not _is_from_numba(error):
                raise
            if used is self.dispatcher:  # otherwise another thread has dropped the cache
                if not self.cached:
                    raise
                self._drop_cache()
            return self.dispatcher(*arrays)

    def _drop_cache(self) -> None:
        # In this order: a thread that still sees the old dispatcher must not see "not cached".
        self.dispatcher = numba.njit(**_OPTIONS)(self.function)
        self.cached = False


def _is_from_numba(error: Exception) -> bool:
    """Return whether numba's Python code raised: it loads and compiles before the loop runs."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(frame.f_globals.get("__name__", "").startswith("numba.") for frame in frames)
