"""What is known about each data set: where its file lies, its checksum, its source and licence."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

__all__ = ["DatasetEntry", "find_entry", "registry"]


@dataclass(frozen=True)
class DatasetEntry:
    """The facts about one data set, as `registry.json` holds them.

    Parameters
    ----------
    name : str
        The name that :func:`orthodrome.datasets.load` takes.
    path : str
        The file, relative to the data folder, with forward slashes.
    sha256 : str
        SHA-256 of that file, 64 hexadecimal digits.
    reader : str
        Which reader of `_readers.py` turns the file into arrays.
    title, description : str
        A name for people, and how the arrays are to be read.
    source_url, license : str
        Where the set is published, and under which terms.
    papers : tuple of str
        The papers whose experiments use it; empty for extra sets.
    extra_columns : tuple of str
        Columns of a table that are neither features nor target.
    categorical_columns : tuple of str
        Columns of a table that hold category codes.
    image_shape : tuple of int
        Height and width where the file holds flattened images.
    """

    name: str
    path: str
    sha256: str
    reader: str
    title: str
    description: str
    source_url: str
    license: str
    papers: tuple[str, ...] = ()
    extra_columns: tuple[str, ...] = ()
    categorical_columns: tuple[str, ...] = ()
    image_shape: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """The file format: ``"csv"``, ``"npz"`` or ``"png"``."""
        return PurePosixPath(self.path).suffix.removeprefix(".")


@cache
def registry() -> Mapping[str, DatasetEntry]:
    """Read the registry that ships with the package.

    Returns
    -------
    entries : mapping of str to DatasetEntry
        Read-only, in alphabetical order of the names.
    """
    text = resources.files(__package__).joinpath("registry.json").read_text(encoding="utf-8")
    facts: dict[str, dict[str, Any]] = json.loads(text)
    return MappingProxyType({name: _entry(name, **facts[name]) for name in sorted(facts)})


def _entry(name: str, **facts: Any) -> DatasetEntry:
    # JSON's lists become tuples, so that an entry is immutable throughout.
    frozen: dict[str, Any] = {
        key: tuple(fact) if isinstance(fact, list) else fact for key, fact in facts.items()
    }
    return DatasetEntry(name=name, **frozen)


def find_entry(name: str, entries: Mapping[str, DatasetEntry]) -> DatasetEntry:
    """Look a data set up, with an error that suggests the nearest name.

    Parameters
    ----------
    name : str
        The name of a data set.
    entries : mapping of str to DatasetEntry
        Where to look.

    Returns
    -------
    entry : DatasetEntry
        The facts about the set.
    """
    if name in entries:
        return entries[name]
    near = difflib.get_close_matches(str(name), entries, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"There is no data set {name!r}.{hint} orthodrome.datasets.available() lists all names."
    )
