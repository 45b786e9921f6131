"""Optional dependencies, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["MissingExtraError", "require"]


class MissingExtraError(ImportError):
    """An optional dependency is absent; the message is the one line that installs it."""


def require(module: str, what: str, extra: str) -> Any:
    """Import a module of an optional dependency; if it is absent, say how to install it.

    Parameters
    ----------
    module : str
        The module, for instance "pyarrow.parquet".
    what : str
        What needs it, in the plural, for the message.
    extra : str
        The extra of orthodrome that brings it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        if error.name is None or error.name.split(".")[0] != package:
            raise
        title = {"PIL": "Pillow"}.get(package, package)
        raise MissingExtraError(
            f"{what} need {title}: pip install 'orthodrome[{extra}]'", name=package
        ) from error
