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
    Only the contraction of ``a * b + c`` is allowed as a floating-point liberty.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)
