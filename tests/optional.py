"""Packages that the tests can do without."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

__all__ = ["optional"]


def optional(name: str) -> Any:
    """Import a package; in its absence what first asks something of it is skipped."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return _Absent(name)


class _Absent:
    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name

    def __getattr__(self, attribute: str) -> Any:
        pytest.skip(f"needs {self.name}", allow_module_level=True)
