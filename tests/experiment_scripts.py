"""The modules of the experiments, importable as they are when the runner loads them."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from real_data import REPOSITORY, real_folder


@contextmanager
def experiment_modules(*names: str) -> Iterator[SimpleNamespace]:
    """Import modules such as ``kha.usps``; attributes are their last names. Forget them after."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORTHODROME_DATA", str(real_folder()))
        patch.syspath_prepend(str(REPOSITORY / "experiments"))
        try:
            found = {name.split(".")[-1]: importlib.import_module(name) for name in names}
            yield SimpleNamespace(**found)
        finally:
            folder = str(REPOSITORY / "experiments")
            for name in set(sys.modules) - before:
                if str(getattr(sys.modules[name], "__file__", None)).startswith(folder):
                    del sys.modules[name]
