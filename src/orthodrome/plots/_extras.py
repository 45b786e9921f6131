"""Import optional dependencies."""

from __future__ import annotations

import importlib
from typing import Any


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message says how to install it."""


def require(module: str, what: str, extra: str) -> Any:
    """Import and return a module of an optional dependency.

    Parameters
    ----------
    module : str
        Name of the module, such as "pyarrow.parquet".
    what : str
        The features that need it, a plural noun for the error message.
    extra : str
        The extra of orthodrome that installs it.

    Raises
    ------
    MissingExtraError
        If the package is not installed. Other import errors, as from a broken installation, are
        not changed.
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
