"""Optional packages of the tests."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest


def optional(name: str) -> Any:
    """Import a package; if it is absent, tests that use it are skipped."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return _Absent(name)


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip a test without these packages."""
    absent = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"needs {', '.join(absent)}")


class _Absent:
    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # pytest inspects module attributes
            raise AttributeError(attribute)
        pytest.skip(f"needs {self.name}", allow_module_level=True)
