"""Facts about each data set: its file, checksums, sources and licence, from `registry.json`.

``path``, ``sha256``
    The file in a data folder, and the SHA-256 of the copy from which the facts were recorded. A
    file with other bytes is accepted if its arrays are the same.
``arrays_sha256``
    SHA-256 over the parsed arrays (:mod:`orthodrome.datasets._fingerprint`), by which files are
    accepted. The error of :func:`load` for other arrays names the hash that was found.
``columns``
    The header of a table, separated by spaces; it names the fields of files without header.
``sources``
    Where the set is published, tried in this order; see :class:`Source`.

The copies in scikit-learn (wine), scikit-image (camera), CMU's motion files and the connectomes of
geomstats were verified to give the recorded arrays. The other OpenML numbers and URLs are taken
from public pages and are not verified. What a wrong one returns is rejected by its arrays, and the
next source is tried.

Some sets are not fetched from OpenML because, as far as known, its copy differs: glass (order),
vertebral_column_3c (two decimals), german_credit (words for codes), liver_bupa (other target).
mnist and pendigits are not because their own files are smaller. Kaggle, where pima_diabetes and the
connectomes are published, requires an account; OpenML and GitHub replace it.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from typing import Any


@dataclass(frozen=True)
class Source:
    """One place where a data set is published.

    Parameters
    ----------
    data_id : int, default=0
        The number of an OpenML set, else 0.
    urls : tuple of str
        Files of one set. The part after ``#`` names a member of an archive;
        ``package:name/path`` is a file of an installed Python package.
    parser : str
        The converter of the files, in `_sources.py` or ``experiments/data/convert.py``.
    options : mapping of str to object
        Options of the converter.
    """

    data_id: int = 0
    urls: tuple[str, ...] = ()
    parser: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def local(self) -> bool:
        """Whether the files come with a Python package, so that no network is needed."""
        return bool(self.urls) and all(url.startswith("package:") for url in self.urls)

    @property
    def file_names(self) -> tuple[str, ...]:
        """Names of the published files, one per URL."""
        return tuple(PurePosixPath(url.partition("#")[0]).name for url in self.urls)

    def __str__(self) -> str:
        if self.data_id:
            return f"https://www.openml.org/d/{self.data_id}"
        more = f" and {len(self.urls) - 1} more" if len(self.urls) > 1 else ""
        return "".join(self.urls[:1]) + more


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
        SHA-256 of the copy of the file from which the entry was made, 64 hexadecimal digits.
    arrays_sha256 : str
        SHA-256 over the parsed arrays, by which files are accepted.
    reader : str
        The reader of the file in `_readers.py`.
    title, description : str
        A readable name, and what the arrays mean.
    source_url, license : str
        Where the set is published, and under which terms.
    papers : sequence of str
        The papers whose experiments use it; empty for extra sets.
    extra_columns : sequence of str
        Columns of a table that are neither features nor target.
    categorical_columns : sequence of str
        Columns of a table that hold category codes.
    image_shape : sequence of int
        Height and width where the file holds flattened images.
    columns : tuple of str
        The header of a table.
    sources : tuple of Source
        Where the set is published, in the order to try.
    """

    name: str
    path: str
    sha256: str
    arrays_sha256: str
    reader: str
    title: str
    description: str
    source_url: str
    license: str
    papers: Sequence[str] = ()
    extra_columns: Sequence[str] = ()
    categorical_columns: Sequence[str] = ()
    image_shape: Sequence[int] = ()
    columns: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()


@cache
def registry() -> Mapping[str, DatasetEntry]:
    """Read the registry that ships with the package.

    Returns
    -------
    entries : mapping of str to DatasetEntry
        In alphabetical order of the names.
    """
    text = resources.files(__package__).joinpath("registry.json").read_text(encoding="utf-8")
    return {name: _entry(name, **facts) for name, facts in sorted(json.loads(text).items())}


def _entry(name: str, columns: str = "", sources: Any = (), **facts: Any) -> DatasetEntry:
    places = tuple(_source(**source) for source in sources)
    return DatasetEntry(name=name, columns=tuple(columns.split()), sources=places, **facts)


def _source(data_id: int = 0, urls: Sequence[str] = (), parser: str = "", **options: Any) -> Source:
    return Source(data_id, tuple(urls), parser, options)


def find_entry(name: str, entries: Mapping[str, DatasetEntry]) -> DatasetEntry:
    """Return the entry of a data set; the error for an unknown name suggests the nearest one."""
    if isinstance(name, str) and name in entries:
        return entries[name]
    near = difflib.get_close_matches(str(name), entries, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"There is no data set {name!r}.{hint} orthodrome.datasets.available() lists all names."
    )
