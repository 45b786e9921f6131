"""Folders to search for data, and the cache."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from .._core.checks import check_path
from .._core.files import write_atomically

DATA_VARIABLE = "ORTHODROME_DATA"
CACHE_VARIABLE = "ORTHODROME_CACHE"

Folder = str | os.PathLike[str]


def cache_folder() -> Path:
    """Return the folder of downloaded data sets, which need not exist.

    The environment variable ``ORTHODROME_CACHE`` sets it. The default is ``orthodrome`` in the
    platform's folder for caches: ``$XDG_CACHE_HOME`` or ``~/.cache`` on Linux,
    ``~/Library/Caches`` on macOS, ``%LOCALAPPDATA%`` on Windows. For a user without a home
    folder, it is in the folder for temporary files.

    Returns
    -------
    folder : pathlib.Path
        The folder. It is created when the first file is stored.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> from orthodrome.datasets import cache_folder
    >>> with mock.patch.dict(os.environ, ORTHODROME_CACHE="somewhere"):
    ...     print(cache_folder())
    somewhere
    """
    folder = os.environ.get(CACHE_VARIABLE)
    if folder:
        return _expand(folder, CACHE_VARIABLE)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(base).expanduser() / "orthodrome"
    except RuntimeError:  # users in containers may have no home; files are verified when read
        return Path(tempfile.gettempdir()) / "orthodrome"


def data_folders(data_home: Folder | None) -> list[Path]:
    """Return the folders to search, in order; the cache is last.

    Parameters
    ----------
    data_home : str, path-like or None
        The folder to search first.

    Returns
    -------
    folders : list of pathlib.Path
        Distinct folders, which need not exist.
    """
    given = {"data_home": data_home, DATA_VARIABLE: os.environ.get(DATA_VARIABLE)}
    folders = [
        _expand(folder, name)
        for name, folder in given.items()
        if not (folder is None or (isinstance(folder, str) and not folder))
    ]
    return list(dict.fromkeys([*folders, cache_folder()]))


def _expand(folder: Folder, name: str) -> Path:
    """Expand a leading ~ of a path; errors name the parameter or variable `name`."""
    try:
        return check_path(folder, name, "the data sets").expanduser()
    except RuntimeError:
        raise ValueError(
            f"{name}: cannot expand {str(folder)!r}: no such user. Use an absolute path."
        ) from None


def store_file(content: bytes, file: Path) -> None:
    """Write a file atomically; create its folder if needed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content)
