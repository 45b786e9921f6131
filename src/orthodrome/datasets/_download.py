"""Download data sets from where they are published; only :func:`load` starts it."""

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

from .._core.warn import warn_user
from ._fingerprint import arrays_sha256
from ._folders import CACHE_VARIABLE, DATA_VARIABLE, cache_folder, keep
from ._readers import read_fields
from ._registry import DatasetEntry, Source
from ._sources import CONVERTERS, table_file

_SECONDS_TO_WAIT = 30


class _OtherArrays(ValueError):
    """A source that answered, but not with the arrays of the registry."""


def obtain(
    entry: DatasetEntry, folders: Sequence[Path], *, network: bool, verbose: bool
) -> tuple[dict[str, Any], str]:
    """Return the fields of a set from the first source that has them, and the origin.

    A download is stored in the cache. Without `network` only files of installed packages are used.

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
        if not (network or source.local) or not (source.data_id or source.parser in CONVERTERS):
            continue
        try:
            content = _fetch(source, entry, verbose)
            fields = checked_fields(content, entry, str(source))
        except Exception as error:  # from the network to a changed format: ask the next source
            # the cause is at the end of the long messages of requests
            text = str(error)[-160:] if isinstance(error, OSError) else str(error)
            reasons.append(f"{source}: {type(error).__name__}: {text}")
            refused = refused or isinstance(error, _OtherArrays)
            continue
        return fields, str(source) if source.local else _kept(content, source, entry)
    message = absent_message(entry, folders, reasons)
    raise ValueError(message) if refused else FileNotFoundError(message)


def checked_fields(content: bytes, entry: DatasetEntry, origin: str) -> dict[str, Any]:
    """Return the fields of a file; raise a ValueError if the arrays are not those expected."""
    fields = read_fields(content, entry)
    check_arrays(fields, entry, origin)
    return fields


def check_arrays(
    fields: dict[str, Any], entry: DatasetEntry, origin: str, advice: str = ""
) -> None:
    """Raise a ValueError that names both hashes if the arrays are not those of the registry."""
    found = arrays_sha256(fields)
    if found != entry.arrays_sha256:
        raise _OtherArrays(
            f"{origin} does not hold the arrays that the registry knows as {entry.name!r}: "
            f"expected SHA-256 {entry.arrays_sha256} over the parsed arrays, found {found}.{advice}"
        )


def absent_message(
    entry: DatasetEntry, folders: Sequence[Path], reasons: Sequence[str] = ()
) -> str:
    """Return what is missing, where it was searched for, and which file to place where."""
    lines = [f"The data set {entry.name!r} ({entry.title}) is not on this machine."]
    lines += [f"Looked for {folder / entry.path}." for folder in folders]
    lines += [f"Tried {reason}" for reason in reasons]
    lines += [f"To use it without network, place {folders[0] / entry.path} ({entry.description})."]
    if any(source.parser and source.parser not in CONVERTERS for source in entry.sources):
        script = f"'python experiments/data/convert.py {entry.name}'"
        lines += [f"From the repository, {script} downloads and converts what is published."]
    lines += [
        f"Other folders: data_home=..., or the environment variables {DATA_VARIABLE} and "
        f"{CACHE_VARIABLE} (downloads are kept there).",
        f"Published at {entry.source_url}. Licence: {entry.license}.",
    ]
    return "\n".join(lines)


def _kept(content: bytes, source: Source, entry: DatasetEntry) -> str:
    """Store a file in the cache and return its path; warn if that is not possible."""
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
        names = [url.removeprefix("package:").partition("/") for url in source.urls]
        files = [resources.files(name).joinpath(file).read_bytes() for name, _, file in names]
    else:
        files = download(source, verbose)
    return CONVERTERS[source.parser](files, source.options, entry)


def download(source: Source, verbose: bool) -> list[bytes]:
    """Return the files of a source; nothing of them is kept."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError("Downloading needs pooch: pip install 'orthodrome[data]'") from error
    bar = verbose and importlib.util.find_spec("tqdm") is not None
    fetch = pooch.HTTPDownloader(progressbar=bar, timeout=_SECONDS_TO_WAIT)
    contents = []
    with tempfile.TemporaryDirectory(prefix="orthodrome-") as folder:
        for url in source.urls:
            file = Path(folder) / "download"
            fetch(url.partition("#")[0], str(file), None)
            contents.append(file.read_bytes())
    return contents


def _openml_table(source: Source, entry: DatasetEntry) -> bytes:
    """Return features and target of an OpenML set as rows of text."""
    from sklearn.datasets import fetch_openml

    if importlib.util.find_spec("pandas") is None:
        raise ImportError("Tables of OpenML need pandas: pip install 'orthodrome[data]'")
    if not urllib.request.getproxies():
        # Fails at once without network, where the fetcher tries four times, a second apart.
        socket.getaddrinfo("www.openml.org", 443)
    with warnings.catch_warnings():
        # It warns of each retry; the final error says the same.
        warnings.filterwarnings("ignore", "A network error occurred", UserWarning)
        # pandas' parser may round the last digit of a number. Our own cache holds the checked file.
        found = fetch_openml(
            data_id=source.data_id, as_frame=True, parser="liac-arff", cache=False, n_retries=1
        )
    rows = found.frame[[*found.feature_names, *found.target_names]].astype(object).to_numpy()
    texts = [[_text(value) for value in row] for row in rows]
    return table_file(texts, source.options, entry)


def _text(value: Any) -> str:
    """Return a cell as text: empty if missing, and without a point if a float is whole."""
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
