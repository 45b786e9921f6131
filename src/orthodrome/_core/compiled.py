"""The one way in which loops are compiled here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["compiled"]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop with numba on first call: no GIL, no fork hazards, cached when possible.

    ``cache=True`` raises at decoration when no cache folder is writable (a read-only
    installation, a container without a home); the loop is then compiled anew in each process.
    So it is where a cache that was found later refuses: a full disk, a damaged file.
    Only the contraction of ``a * b + c`` is allowed as a floating-point liberty.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    try:
        loop = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)
    if hasattr(getattr(loop, "_cache", None), "save_overload"):
        loop._cache = _ForgivingCache(loop._cache)
    return loop


class _ForgivingCache:
    """A cache of numba whose failures are as if it did not hold what is asked for.

    numba lets errors of reading and of writing its files through to whoever calls the loop.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def load_overload(self, *given: Any) -> Any:
        try:
            return self._cache.load_overload(*given)
        except Exception:  # of a damaged pickle anything may come
            return None

    def save_overload(self, *given: Any) -> None:
        try:
            self._cache.save_overload(*given)
        except Exception:  # beside OSError: to save is to read what is there, too
            return

    def __getattr__(self, name: str) -> Any:
        if name == "_cache":  # while it is made of a pickle
            raise AttributeError(name)
        return getattr(self._cache, name)
