"""Download data sets from their publishers, for :func:`load`."""

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
from ._folders import CACHE_VARIABLE, DATA_VARIABLE, cache_folder, store_file
from ._readers import read_fields
from ._registry import DatasetEntry, Source
from ._sources import CONVERTERS, table_file

_TIMEOUT_SECONDS = 30


class _WrongArrays(ValueError):
    """The arrays of a source are not those of the registry."""


def fetch_dataset(
    entry: DatasetEntry, folders: Sequence[Path], *, network: bool, verbose: bool
) -> tuple[dict[str, Any], str]:
    """Return the fields of a data set from the first valid source, and their origin.

    A download is stored in the cache. Without `network`, only installed packages are searched.

    Raises
    ------
    FileNotFoundError
        If no source is available; the message says which file to place where.
    ValueError
        If a source has other arrays than the registry, and no other source is valid.
    """
    reasons: list[str] = []
    any_mismatch = False
    for source in entry.sources:
        if not (network or source.local) or not (source.data_id or source.parser in CONVERTERS):
            continue
        try:
            content = _fetch(source, entry, verbose)
            fields = read_checked_fields(content, entry, str(source))
        except Exception as error:  # network errors, changed formats: try the next source
            # requests' long messages end with the cause
            text = str(error)[-160:] if isinstance(error, OSError) else str(error)
            reasons.append(f"{source}: {type(error).__name__}: {text}")
            any_mismatch = any_mismatch or isinstance(error, _WrongArrays)
            continue
        return fields, str(source) if source.local else _store(content, source, entry)
    message = missing_message(entry, folders, reasons)
    raise ValueError(message) if any_mismatch else FileNotFoundError(message)


def read_checked_fields(content: bytes, entry: DatasetEntry, origin: str) -> dict[str, Any]:
    """Return the fields of a file; raise a ValueError for other arrays than the registry's."""
    fields = read_fields(content, entry)
    check_arrays(fields, entry, origin)
    return fields


def check_arrays(
    fields: dict[str, Any], entry: DatasetEntry, origin: str, advice: str = ""
) -> None:
    """Raise a ValueError with both hashes if the arrays are not those of the registry."""
    found = arrays_sha256(fields)
    if found != entry.arrays_sha256:
        raise _WrongArrays(
            f"{origin} does not hold the arrays of {entry.name!r} in the registry: "
            f"expected SHA-256 {entry.arrays_sha256} over the parsed arrays, found {found}.{advice}"
        )


def missing_message(
    entry: DatasetEntry, folders: Sequence[Path], reasons: Sequence[str] = ()
) -> str:
    """Return a message: what is missing, where it was searched, which file to place where."""
    lines = [f"The data set {entry.name!r} ({entry.title}) is not on this machine."]
    lines += [f"Not found: {folder / entry.path}." for folder in folders]
    lines += [f"Tried {reason}" for reason in reasons]
    lines += [f"To use it without network, place {folders[0] / entry.path} ({entry.description})."]
    if any(source.parser and source.parser not in CONVERTERS for source in entry.sources):
        script = f"'python experiments/data/convert.py {entry.name}'"
        lines += [f"In a clone of the repository, {script} downloads and converts it."]
    lines += [
        f"Other folders: data_home=..., or the environment variables {DATA_VARIABLE} and "
        f"{CACHE_VARIABLE} (the folder of downloads).",
        f"Published at {entry.source_url}. Licence: {entry.license}.",
    ]
    return "\n".join(lines)


def _store(content: bytes, source: Source, entry: DatasetEntry) -> str:
    """Store a file in the cache and return its path; warn if that fails."""
    file = cache_folder() / entry.path
    try:
        store_file(content, file)
    except OSError as error:
        warn_user(
            f"The data set {entry.name!r} was downloaded but cannot be stored as {file} ({error}); "
            "it will be downloaded again. Set the environment variable "
            f"{CACHE_VARIABLE} to a writable folder.",
        )
        return str(source)
    return str(file)


def _fetch(source: Source, entry: DatasetEntry, verbose: bool) -> bytes:
    """Return the content of the file in the format that the reader expects."""
    if source.data_id:
        return _openml_table(source, entry)
    if source.local:
        names = [url.removeprefix("package:").partition("/") for url in source.urls]
        files = [resources.files(name).joinpath(file).read_bytes() for name, _, file in names]
    else:
        files = download(source, verbose)
    return CONVERTERS[source.parser](files, source.options, entry)


def download(source: Source, verbose: bool) -> list[bytes]:
    """Download the files of a source and return their contents."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError("Downloading needs pooch: pip install 'orthodrome[data]'") from error
    bar = verbose and importlib.util.find_spec("tqdm") is not None
    fetch = pooch.HTTPDownloader(progressbar=bar, timeout=_TIMEOUT_SECONDS)
    contents = []
    with tempfile.TemporaryDirectory(prefix="orthodrome-") as folder:
        for url in source.urls:
            file = Path(folder) / "download"
            fetch(url.partition("#")[0], str(file), None)
            contents.append(file.read_bytes())
    return contents


def _openml_table(source: Source, entry: DatasetEntry) -> bytes:
    """Return features and target of an OpenML data set as a CSV file."""
    from sklearn.datasets import fetch_openml

    if importlib.util.find_spec("pandas") is None:
        raise ImportError("Tables of OpenML need pandas: pip install 'orthodrome[data]'")
    if not urllib.request.getproxies():
        # Without network this fails at once; fetch_openml would retry for seconds.
        socket.getaddrinfo("www.openml.org", 443)
    with warnings.catch_warnings():
        # fetch_openml warns at each retry; the final error has the same text.
        warnings.filterwarnings("ignore", "A network error occurred", UserWarning)
        # The pandas parser may round the last digit. No cache: we store the checked file ourselves.
        found = fetch_openml(
            data_id=source.data_id, as_frame=True, parser="liac-arff", cache=False, n_retries=1
        )
    rows = found.frame[[*found.feature_names, *found.target_names]].astype(object).to_numpy()
    texts = [[_text(value) for value in row] for row in rows]
    return table_file(texts, source.options, entry)


def _text(value: Any) -> str:
    """Return a cell as text: empty if missing, without a decimal point if a whole number."""
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
