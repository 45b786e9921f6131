"""Measurements of errors in units of the machine epsilon, and their bounds.

A measurement compares the library with an oracle on many inputs and yields the error of each.
Its bound is in hardening/bounds.toml under the same name.
"""

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DTYPES = {"float64": np.float64, "float32": np.float32}
_TABLES = tomllib.loads((Path(__file__).parent / "hardening/bounds.toml").read_text("utf-8"))
BOUNDS = {f"{room}.{name}": row["bound"] for room in _TABLES for name, row in _TABLES[room].items()}

Errors = Callable[[type[np.floating[Any]]], Iterable[Any]]


@dataclass(frozen=True)
class Measurement:
    errors: Errors
    slow: bool

    def largest(self, precision: str) -> float:
        """Return the largest error, in units of eps."""
        dtype = DTYPES[precision]
        return largest(self.errors(dtype)) / float(np.finfo(dtype).eps)


#: Filled when the modules accuracy_*.py are imported.
MEASUREMENTS: dict[str, Measurement] = {}


def measurement(name: str, *, slow: bool = False) -> Callable[[Errors], Errors]:
    """Register a function that yields errors, not yet divided by eps."""

    def register(errors: Errors) -> Errors:
        MEASUREMENTS[name] = Measurement(errors, slow)
        return errors

    return register


def largest(errors: Iterable[Any]) -> float:
    """Return the largest error; NaN counts as infinite."""
    found = [float(error) for error in errors]
    if not found:
        raise ValueError("nothing was measured")
    return max(np.inf if np.isnan(error) else error for error in found)
