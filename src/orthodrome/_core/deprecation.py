"""Deprecation of parameters and features, as docs/versioning.md promises."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .warn import warn_user


def warn_deprecated(what: str, instead: str, removed: str) -> None:
    """Give a FutureWarning that names the replacement and the version of the removal."""
    message = f"{what} is deprecated and will be removed in {removed}; use {instead}."
    warn_user(message, FutureWarning)


def renamed_parameter(old: str, new: str, removed: str) -> Callable[..., Any]:
    """Decorate a function or an ``__init__``: the keyword `old` still sets `new`, with a warning.

    The signature has only the new name, so clones and grids of estimators use that.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(*args: Any, **keywords: Any) -> Any:
            if old in keywords:
                if new in keywords:
                    raise TypeError(f"{old} is the old name of {new}; give only {new}.")
                warn_deprecated(old, new, removed)
                keywords[new] = keywords.pop(old)
            return function(*args, **keywords)

        return wrapped

    return decorate
