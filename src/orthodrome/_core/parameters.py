"""Checks for the parameter tables of estimators.

A check is called with the value, the name and the owner of a parameter; its ValueError names them.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .checks import (
    as_number,
    check_choice,
    check_finite_vector,
    check_integer,
    check_positive,
    check_random_state,
    invalid,
)
from .memory import parse_bytes

Check = Callable[[Any, str, str], Any]


def integer(minimum: int = 1, maximum: int | None = None) -> Check:
    """Require an integer in a range."""
    return partial(check_integer, minimum=minimum, maximum=maximum)


def positive(*, or_zero: bool = False, maximum: float = math.inf) -> Check:
    """Require a finite number > 0, or >= 0, up to a maximum."""
    return partial(check_positive, or_zero=or_zero, maximum=maximum)


def choice(*choices: Any) -> Check:
    """Require one of the choices."""
    return lambda value, name, owner: check_choice(value, choices, name, owner)


def optional(check: Check) -> Check:
    """Accept None and the values that `check` accepts."""
    return lambda value, name, owner: None if value is None else check(value, name, owner)


def or_word(word: str, check: Check) -> Check:
    """Accept a word and the values that `check` accepts; errors suggest the word."""

    def checked(value: Any, name: str, owner: str) -> None:
        if isinstance(value, str) and value == word:
            return
        try:
            check(value, name, owner)
        except ValueError as error:
            raise ValueError(f"{error} Or write {name}={word!r}.") from None

    return checked


def count_or_fraction(value: Any, name: str, owner: str) -> None:
    """Require an integer >= 1 or a fraction between 0 and 1."""
    number, is_integer = as_number(value), isinstance(value, numbers.Integral)
    if not (number >= 1 if is_integer else 0 < number < 1):
        raise invalid(name, owner, "an integer >= 1 or a fraction between 0 and 1", value)


def grid(*, or_zero: bool = False) -> Check:
    """Require one or more finite numbers > 0, or >= 0."""

    def check(value: Any, name: str, owner: str) -> None:
        values = check_finite_vector(value, None, name, owner)
        if not len(values) or np.any(values < 0 if or_zero else values <= 0):
            bound = ">= 0" if or_zero else "> 0"
            raise invalid(name, owner, f"one or more numbers {bound}", value)

    return check


def memory_size(value: Any, name: str, owner: str) -> None:
    """Require a size in bytes, such as "2GiB"."""
    parse_bytes(value, f"{name} of {owner}")


def seed(value: Any, name: str, owner: str) -> None:
    """Require a seed, a generator or None."""
    check_random_state(value, owner)


def verbosity(value: Any, name: str, owner: str) -> None:
    """Require True, False or an integer >= 0."""
    if not isinstance(value, bool | np.bool_):
        check_integer(value, name, owner, minimum=0)
