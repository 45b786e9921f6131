"""Read `registry.json`: the file, checksums, sources and licence of each data set.

``path``, ``sha256``
    The path of the file in a data folder, and the SHA-256 of the copy used to create the entry. A
    file with other bytes is accepted if its arrays are the same.
``arrays_sha256``
    SHA-256 of the parsed arrays (:func:`orthodrome.datasets._readers.arrays_sha256`). A file is
    accepted if its arrays have this hash. Otherwise :func:`load` raises an error that shows the
    actual hash.
``columns``
    The column names of a table, separated by spaces. They are also used for files without a header.
``sources``
    Sources to try, in this order; see :class:`Source`.

These sources were verified to give the recorded arrays: wine in scikit-learn, camera in
scikit-image, the motion files of CMU, and the connectomes in geomstats. All other URLs are copied
from public pages and were not verified. If a source returns other arrays, the next source is tried.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Source:
    """One source of a data set.

    Parameters
    ----------
    urls : tuple of str
        URLs of the files. The text after ``#`` names a member of an archive. A URL
        ``package:name/path`` means a file of an installed Python package.
    parser : str
        Name of the converter, in ``CONVERTERS`` of `_download.py` or in
        ``experiments/data/convert.py``.
    options : mapping of str to object
        Options of the converter.
    """

    urls: tuple[str, ...]
    parser: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def local(self) -> bool:
        """Whether the files belong to Python packages, so that no network is needed."""
        return all(url.startswith("package:") for url in self.urls)

    def __str__(self) -> str:
        more = f" and {len(self.urls) - 1} more" if len(self.urls) > 1 else ""
        return self.urls[0] + more


@dataclass(frozen=True)
class DatasetEntry:
    """The entry of one data set in `registry.json`.

    Parameters
    ----------
    name : str
        The name for :func:`orthodrome.datasets.load`.
    path : str
        The file, relative to the data folder, with forward slashes.
    sha256 : str
        SHA-256 of the file used to create the entry, 64 hexadecimal digits.
    arrays_sha256 : str
        SHA-256 of the parsed arrays; a file is accepted if it has this hash.
    reader : str
        Name of the reader in `_readers.py`.
    title, description : str
        A readable name, and the meaning of the arrays.
    source_url, license : str
        Web page of the publisher, and terms of use.
    papers : sequence of str
        Short names of the papers whose experiments use the data set.
    extra_columns : sequence of str
        Columns of a table that are neither features nor target.
    categorical_columns : sequence of str
        Columns of a table that hold category codes.
    image_shape : sequence of int
        Height and width, if the file holds flattened images.
    columns : tuple of str
        The column names of a table.
    sources : tuple of Source
        Sources, in the order in which they are tried.
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
    """Return the registry of the package.

    Returns
    -------
    entries : mapping of str to DatasetEntry
        Entries in alphabetical order of their names.
    """
    text = resources.files(__package__).joinpath("registry.json").read_text(encoding="utf-8")
    return {name: _entry(name, **fields) for name, fields in sorted(json.loads(text).items())}


def _entry(name: str, columns: str = "", sources: Any = (), **fields: Any) -> DatasetEntry:
    parsed = tuple(_source(**source) for source in sources)
    return DatasetEntry(name=name, columns=tuple(columns.split()), sources=parsed, **fields)


def _source(urls: Sequence[str], parser: str, **options: Any) -> Source:
    return Source(tuple(urls), parser, options)


def find_entry(name: str, entries: Mapping[str, DatasetEntry]) -> DatasetEntry:
    """Return the entry of a data set; the error for an unknown name suggests a similar one."""
    if isinstance(name, str) and name in entries:
        return entries[name]
    near = difflib.get_close_matches(str(name), entries, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"There is no data set {name!r}.{hint} orthodrome.datasets.available() lists all names."
    )
