"""Get a data set from where it is published. Nothing here runs unless :func:`load` asks for it."""

from __future__ import annotations

import importlib.util
import socket
import tempfile
import urllib.request
import warnings
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from orthodrome.datasets._find import absent_message, check_arrays
from orthodrome.datasets._folders import CACHE_VARIABLE, cache_folder, keep
from orthodrome.datasets._raw import converted, table_file
from orthodrome.datasets._readers import read_fields
from orthodrome.datasets._registry import DatasetEntry, Source

from .._core.warn import warn_user

__all__ = ["obtain"]

_SECONDS_TO_WAIT = 30


class _OtherArrays(ValueError):
    """A source that answered, but not with the arrays of the registry."""


def obtain(
    entry: DatasetEntry, folders: Sequence[Path], *, network: bool, verbose: bool
) -> tuple[dict[str, Any], str]:
    """Ask the sources of a set one after the other, and keep the first that is right.

    Parameters
    ----------
    entry : DatasetEntry
        The set.
    folders : sequence of pathlib.Path
        The folders that were searched, for the message.
    network : bool
        Whether to download; else only files of installed packages are looked at.
    verbose : bool
        Show a progress bar on standard error while a file is downloaded.

    Returns
    -------
    fields : dict
        The parsed fields.
    origin : str
        The file in the cache, or the source where nothing was kept.

    Raises
    ------
    FileNotFoundError
        If no source answers; the message says which file to place where.
    ValueError
        If a source answers with other arrays and no other one is right.
    """
    reasons: list[str] = []
    refused = False
    for source in entry.sources:
        if not (network or source.local):
            continue
        try:
            content = _fetch(source, entry, verbose)
            fields = _checked(content, source, entry)
        # Whatever is wrong with one source, from the network to a changed format: ask the next.
        except Exception as error:
            reasons.append(f"{source}: {_in_short(error)}")
            refused = refused or isinstance(error, _OtherArrays)
            continue
        return fields, str(source) if source.local else _kept(content, source, entry)
    message = absent_message(entry, folders, reasons)
    raise ValueError(message) if refused else FileNotFoundError(message)


def _in_short(error: Exception) -> str:
    text = str(error)
    if isinstance(error, OSError) and len(text) > 160:
        text = f"…{text[-160:]}"  # requests tells the whole history; its end is the cause
    return f"{type(error).__name__}: {text}"


def _checked(content: bytes, source: Source, entry: DatasetEntry) -> dict[str, Any]:
    fields = read_fields(content, entry)
    try:
        check_arrays(fields, entry, str(source))
    except ValueError as error:
        raise _OtherArrays(str(error)) from None
    return fields


def _kept(content: bytes, source: Source, entry: DatasetEntry) -> str:
    """Put a file into the cache and return where it lies; warn where that cannot be."""
    file = cache_folder() / entry.path
    try:
        keep(content, file)
    except OSError as error:
        warn_user(
            f"The data set {entry.name!r} was downloaded but cannot be kept as {file} ({error}); "
            f"it will be downloaded again. Name a folder that can be written to with the "
            f"environment variable {CACHE_VARIABLE}.",
        )
        return str(source)
    return str(file)


def _fetch(source: Source, entry: DatasetEntry, verbose: bool) -> bytes:
    """Return the file that the set's reader takes."""
    if source.data_id:
        return _openml_table(source, entry)
    if source.local:
        return converted([_package_file(url) for url in source.urls], source, entry)
    return converted(_files(source, verbose), source, entry)


def _package_file(url: str) -> bytes:
    package, _, name = url.removeprefix("package:").partition("/")
    return resources.files(package).joinpath(name).read_bytes()


def _files(source: Source, verbose: bool) -> list[bytes]:
    """Download the files of a source; on any failure nothing of them stays."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError("Downloading needs pooch: pip install 'orthodrome[data]'") from error
    bar = verbose and importlib.util.find_spec("tqdm") is not None
    download = pooch.HTTPDownloader(progressbar=bar, timeout=_SECONDS_TO_WAIT)
    contents = []
    with tempfile.TemporaryDirectory(prefix="orthodrome-") as folder:
        for url in source.urls:
            file = Path(folder) / "download"
            download(url.partition("#")[0], str(file), None)
            contents.append(file.read_bytes())
    return contents


def _openml_table(source: Source, entry: DatasetEntry) -> bytes:
    """Fetch features, then the target, as rows of text with the names of the registry."""
    from sklearn.datasets import fetch_openml

    if importlib.util.find_spec("pandas") is None:
        raise ImportError("Tables of OpenML need pandas: pip install 'orthodrome[data]'")
    if not urllib.request.getproxies():
        # Without network this fails at once, where the fetcher tries four times, a second apart.
        socket.getaddrinfo("www.openml.org", 443)
    # Not pandas' parser: it may round the last digit of a number. Nothing is kept in
    # scikit-learn's own folder: the cache here holds the checked file.
    with warnings.catch_warnings():
        # It warns of each retry; the error that comes in the end says the same.
        warnings.filterwarnings("ignore", "A network error occurred", UserWarning)
        found = fetch_openml(
            data_id=source.data_id, as_frame=True, parser="liac-arff", cache=False, n_retries=1
        )
    columns = [found.data[name] for name in found.data.columns]
    if found.target is not None:
        columns.append(found.target)
    texts = [[_text(value) for value in column.astype(object)] for column in columns]
    return table_file(list(zip(*texts, strict=True)), source.options, entry)


def _text(value: Any) -> str:
    """Return a cell as text; empty where missing, and without a point where a float is whole."""
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
