"""The scripts of an experiment, as modules that find each other."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from real_data import REPOSITORY, real_folder


@contextmanager
def experiment_scripts(
    paper: str, *names: str, folder: Path | None = None
) -> Iterator[SimpleNamespace]:
    """Import scripts of a folder of experiments, its ``common`` and ``pages``; forget them after.

    Folders have modules of the same names, so only one of them can be imported at a time. `folder`
    is where they are if it is a copy.
    """
    own = ("common", *names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORTHODROME_DATA", str(real_folder()))
        patch.syspath_prepend(str(folder or REPOSITORY / "experiments" / paper))
        try:
            found = {name: importlib.import_module(name) for name in own}
            yield SimpleNamespace(pages=importlib.import_module("pages"), **found)
        finally:
            for name in own:
                sys.modules.pop(name, None)
