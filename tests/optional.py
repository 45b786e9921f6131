"""Packages that the tests can do without."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest


def optional(name: str) -> Any:
    """Import a package; in its absence what first asks something of it is skipped."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return _Absent(name)


def needs(*names: str) -> pytest.MarkDecorator:
    """Mark what cannot be tested without these packages."""
    absent = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"needs {', '.join(absent)}")


class _Absent:
    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # pytest looks at what stands in modules
            raise AttributeError(attribute)
        pytest.skip(f"needs {self.name}", allow_module_level=True)
