"""Measurements of errors, in units of the machine epsilon, and the bounds that hold for them.

A measurement compares the library with an oracle on many inputs and yields the error of each. Its
bound stands in hardening/bounds.toml under the same name; the tests hold it to that, and the page
docs/accuracy.md shows both.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["BOUNDS", "DTYPES", "MEASUREMENTS", "Measurement", "bounds", "largest", "measurement"]

BOUNDS = Path(__file__).resolve().parent / "hardening" / "bounds.toml"
DTYPES = {"float64": np.float64, "float32": np.float32}

Errors = Callable[[type[np.floating[Any]]], Iterable[Any]]


@dataclass(frozen=True)
class Measurement:
    """A function of the precision that yields errors."""

    errors: Errors
    slow: bool

    def largest(self, dtype: type[np.floating[Any]]) -> float:
        """The largest error, in units of eps; what is no number counts as infinite."""
        return largest(self.errors(dtype)) / float(np.finfo(dtype).eps)


#: All, by their names; they come in as the modules accuracy_*.py are imported.
MEASUREMENTS: dict[str, Measurement] = {}


def measurement(name: str, *, slow: bool = False) -> Callable[[Errors], Errors]:
    """Make a function that yields errors (not yet divided by eps) a measurement."""

    def register(errors: Errors) -> Errors:
        known = MEASUREMENTS.setdefault(name, Measurement(errors, slow))
        if known.errors.__qualname__ != errors.__qualname__:
            raise ValueError(f"There are two measurements {name}.")
        return errors

    return register


def largest(errors: Iterable[Any]) -> float:
    """The largest of many, at least one."""
    found = [float(error) for error in errors]
    if not found:
        raise ValueError("nothing was measured")
    return max(np.inf if np.isnan(error) else error for error in found)


def bounds() -> dict[str, dict[str, Any]]:
    """What bounds.toml says of each measurement, in the order of the page."""
    said = tomllib.loads(BOUNDS.read_text(encoding="utf-8"))
    return {
        f"{room}.{name}": each
        for room, table in said.items()
        for name, each in table.items()
        if isinstance(each, dict)
    }
