"""Compilation of loops with numba."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numba

# The only fast-math option is fused multiply-add.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def compiled_helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only compiled loops call."""
    return numba.njit(**_OPTIONS)(function)


class compiled:
    """Compile a loop with numba on first call, and cache the result if possible.

    The loop runs without the GIL. Without a usable cache (no writable folder, a full disk, a
    damaged file) every process compiles the loop again.
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
        # Set `cached` last: another thread raises if it sees cached=False with the old dispatcher.
        self.dispatcher = numba.njit(**_OPTIONS)(self.function)
        self.cached = False


def _is_from_numba(error: Exception) -> bool:
    """Return whether numba's own code raised the error, while loading or compiling the loop."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(frame.f_globals.get("__name__", "").startswith("numba.") for frame in frames)
