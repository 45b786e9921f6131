"""The way in which loops are compiled here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["compiled", "compiled_part"]

# Only the contraction of a * b + c is allowed as a floating-point liberty.
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
        try:
            return self.dispatcher(*arrays)
        except Exception:  # the cache raises before the loop runs
            if not self.cached:
                raise
            self._drop_cache()
            return self.dispatcher(*arrays)

    def _drop_cache(self) -> None:
        self.cached = False
        self.dispatcher = numba.njit(**_OPTIONS)(self.function)
