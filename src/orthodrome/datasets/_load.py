"""Load data sets as a Bunch or as arrays: local folders, and downloads from publishers."""

from __future__ import annotations

import csv
import importlib.util
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._core.checks import check_flag, check_path
from .._core.files import write_atomically
from .._core.warn import warn_user
from ._readers import (
    DatasetEntry,
    Source,
    arrays_sha256,
    find_entry,
    read_fields,
    read_picture,
    registry,
)

DATA_VARIABLE = "ORTHODROME_DATA"
CACHE_VARIABLE = "ORTHODROME_CACHE"
_TIMEOUT_SECONDS = 30

Folder = str | os.PathLike[str]
Options = Mapping[str, Any]
Converter = Callable[[Sequence[bytes], Options, DatasetEntry], bytes]


# ---------------------------------------------------------------------------- folders


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
        return Path(folder).expanduser()
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
    """Return the distinct folders to search, in order: `data_home`, the variable, the cache."""
    given = {"data_home": data_home, DATA_VARIABLE: os.environ.get(DATA_VARIABLE)}
    folders = [
        check_path(folder, name, "the data sets").expanduser()
        for name, folder in given.items()
        if not (folder is None or (isinstance(folder, str) and not folder))
    ]
    return list(dict.fromkeys([*folders, cache_folder()]))


def store_file(content: bytes, file: Path) -> None:
    """Write a file atomically; create its folder if needed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content)


# ---------------------------------------------------------------------------- downloads


def fetch_dataset(
    entry: DatasetEntry, folders: Sequence[Path], *, network: bool, verbose: bool
) -> tuple[dict[str, Any], str]:
    """Return the fields of a data set from the first valid source, and their origin.

    A download is stored in the cache. Without `network`, only installed packages are searched.

    Raises
    ------
    FileNotFoundError
        If no source has the arrays of the registry; the message has the reason for each source,
        and says which file to place where.
    """
    reasons: list[str] = []
    for source in entry.sources:
        if not (network or source.local) or source.parser not in CONVERTERS:
            continue
        try:
            content = _fetch(source, entry, verbose)
            fields = read_checked_fields(content, entry, str(source))
        except Exception as error:  # network errors, changed formats: try the next source
            # requests' long messages end with the cause
            text = str(error)[-160:] if isinstance(error, OSError) else str(error)
            reasons.append(f"{source}: {type(error).__name__}: {text}")
            continue
        return fields, str(source) if source.local else _store(content, source, entry)
    raise FileNotFoundError(missing_message(entry, folders, reasons))


def read_checked_fields(content: bytes, entry: DatasetEntry, origin: str) -> dict[str, Any]:
    """Return the fields of a file; raise a ValueError if its arrays are not the registry's."""
    fields = read_fields(content, entry)
    check_arrays(fields, entry, origin)
    return fields


def check_arrays(
    fields: dict[str, Any], entry: DatasetEntry, origin: str, advice: str = ""
) -> None:
    """Raise a ValueError with both hashes if the arrays are not those of the registry."""
    found = arrays_sha256(fields)
    if found != entry.arrays_sha256:
        raise ValueError(
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
            f"{CACHE_VARIABLE} to a writable folder."
        )
        return str(source)
    return str(file)


def _fetch(source: Source, entry: DatasetEntry, verbose: bool) -> bytes:
    """Return the content of the file in the format that the reader expects."""
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


# ---------------------------------------------------------------------------- converters


def table_file(rows: Iterable[Sequence[str]], options: Options, entry: DatasetEntry) -> bytes:
    """Return rows of text as a CSV file with the header of a data set.

    Options: ``columns`` are the names of the fields (by default those of the data set); fields
    named ``-`` are dropped. ``missing`` is the text of a missing value. ``values`` and ``labels``
    map texts of the features and of the class to new texts.
    """
    names = options.get("columns", "").split() or list(entry.columns)
    positions = [names.index(column) for column in entry.columns]
    missing = {options["missing"]: ""} if "missing" in options else {}
    values = missing | options.get("values", {})
    replace = [options.get("labels", {}) if c == "class" else values for c in entry.columns]
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(entry.columns)
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise ValueError(f"Row {number} has {len(row)} fields, expected {len(names)}.")
        cells = [row[position] for position in positions]
        writer.writerow(new.get(cell, cell) for cell, new in zip(cells, replace, strict=True))
    return stream.getvalue().encode()


def _text_table(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Convert a text table, as published by UCI; the first ``header`` lines are skipped."""
    lines = lines_of(files[0])[options.get("header", 0) :]
    return table_file(fields_of(lines, options), options, entry)


def lines_of(content: bytes) -> list[str]:
    """Return the nonempty lines of a text file with any line endings."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return [line.strip() for line in io.StringIO(text, newline=None) if line.strip()]


def fields_of(lines: Iterable[str], options: Options) -> list[list[str]]:
    delimiter = options.get("delimiter", ",")
    if delimiter == "space":  # any number of blanks and tabs
        return [line.split() for line in lines]
    return [[cell.strip() for cell in line.split(delimiter)] for line in lines]


def _halved_image(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    """Return an image of the means of 2 x 2 blocks, rounded half to even."""
    from PIL import Image

    image = read_picture(files[0], entry.path)
    height, width = image.shape
    means = image.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))
    stream = io.BytesIO()
    Image.fromarray(np.round(means).astype(np.uint8)).save(stream, format="PNG")
    return stream.getvalue()


#: Converters by the name of the parser in the registry.
CONVERTERS: dict[str, Converter] = {
    "text_table": _text_table,
    "same_file": lambda files, options, entry: files[0],
    "halved_image": _halved_image,
}


def available() -> tuple[str, ...]:
    """Return the names of all data sets that :func:`load` can load.

    Returns
    -------
    names : tuple of str
        The names in alphabetical order.

    Examples
    --------
    >>> from orthodrome.datasets import available
    >>> "iris" in available()
    True
    """
    return tuple(registry())


def path(name: str, *, data_home: Folder | None = None) -> Path:
    """Return the path of the file of a data set, without downloading.

    Parameters
    ----------
    name : str
        One of :func:`available`.
    data_home : str or path-like, default=None
        The data folder to search first; see :func:`load`.

    Returns
    -------
    file : pathlib.Path
        The existing file. Its content is not checked.

    Raises
    ------
    FileNotFoundError
        If no folder has the file; the message says which file to place where.
    """
    entry = find_entry(name, registry())
    folders = data_folders(data_home)
    file = _find_file(entry, folders)
    if file is None:
        raise FileNotFoundError(missing_message(entry, folders))
    return file


def load(
    name: str,
    *,
    data_home: Folder | None = None,
    return_X_y: bool = False,
    verify: bool = True,
    download_if_missing: bool = True,
    verbose: bool = True,
) -> Any:
    """Load a data set from this machine, or download it.

    `load` searches for the file of the data set (such as ``uci/iris.csv``) in `data_home`, in the
    folder of the environment variable ``ORTHODROME_DATA``, and in the cache
    (:func:`cache_folder`). If it is in none of them, `load` uses the copies in scikit-learn and
    scikit-image (wine, camera_256, camera_512). It downloads other tables and images with pooch
    (``pip install 'orthodrome[data]'``) and stores them in the cache. The script
    ``experiments/data/convert.py`` of the repository downloads and converts data sets in other
    formats (digits, faces, landmarks, motion, connectomes).

    Parameters
    ----------
    name : str
        One of :func:`available`.
    data_home : str or path-like, default=None
        The data folder to search first. It is never written to.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    verify : bool, default=True
        Check the SHA-256 of the parsed arrays. With False, any local file of the same layout is
        accepted. Downloads are always checked.
    download_if_missing : bool, default=True
        With False, raise an error if the data set is not on this machine.
    verbose : bool, default=True
        Show a progress bar on standard error while pooch downloads (needs tqdm).

    Returns
    -------
    bunch : sklearn.utils.Bunch
        A Bunch with these fields:

        data : ndarray of shape (n_samples, n_features)
            Tables are float64 with NaN for missing values. Landmark sets have shape (n, k, 2) or
            (n, k, 3), matrices (n, d, d), a single image (height, width). Pixels and motion keep
            the dtype of the file: uint8 differences wrap around, so convert before arithmetic.
        target : ndarray of shape (n_samples,) or (n_samples, n_targets), or None
            Class codes 0, 1, …; ``target_names[target]`` are the labels of the file. Real numbers
            for regression (concrete_slump). None for data without labels.
        feature_names, target_names : list or ndarray of str
            Names of the features (row by row for landmarks, matrices and pixels) and of the
            classes.
        DESCR, filename : str
            Title, description, source and licence; the file or URL that was read.
        categories : dict of str to tuple of str
            german_credit: the codes of each category column. `data` holds indices of these codes.
        is_test, X_train, y_train, X_test, y_test : ndarray
            pendigits, usps, mnist: the published split; the arrays are views.
        images, image : ndarray of shape (n, height, width) and (height, width)
            `images`: usps, mnist, orl_faces. `image`: camera_256, camera_512.
        landmarks : ndarray of shape (n, k, 2) or (n, k, 3)
            The shape sets, passiflora, and pendigits' pen positions. mice_vertebrae adds
            `outlines`, passiflora adds `species, plant, ontogeny, total, heteroblasty`.
        frames : ndarray of shape (n_frames, n_joints, 3)
            cmu_walk_*: positions in metres, with `joints, parents` (index, -1 for the root),
            `trial` (index into `trials`) and `frames_per_second`.
        matrices : ndarray of shape (n, d, d)
            connectomes.

    Raises
    ------
    FileNotFoundError
        If the data set is not found; the message says which file to place where.
    ValueError
        If the name is unknown, the file cannot be parsed, or its arrays are not those of the
        registry (the message has both hashes).
    ImportError
        If an image is read without pillow.

    Warns
    -----
    UserWarning
        If the cache is not writable, so that the next call downloads the data again.

    Examples
    --------
    >>> from orthodrome.datasets import load
    >>> wine = load("wine", download_if_missing=False)
    >>> wine.data.shape, wine.target_names.tolist()
    ((178, 13), ['1', '2', '3'])
    """
    flags = {"return_X_y": return_X_y, "verify": verify, "verbose": verbose}
    flags["download_if_missing"] = download_if_missing
    for flag, value in flags.items():
        check_flag(value, flag, "load")
    entry = find_entry(name, registry())
    folders = data_folders(data_home)
    file = _find_file(entry, folders)
    if file is None:
        fields, origin = fetch_dataset(entry, folders, network=download_if_missing, verbose=verbose)
    else:
        fields, origin = _read(file, entry), str(file)
        if verify:
            advice = " Replace or remove the file, or pass verify=False to use it anyway."
            check_arrays(fields, entry, origin, advice)
    if return_X_y:
        return fields["data"], fields["target"]
    return Bunch(**fields, DESCR=_description(entry), filename=origin)


def _find_file(entry: DatasetEntry, folders: Sequence[Path]) -> Path | None:
    """Return the first existing file of a data set, or None."""
    files = (folder / entry.path for folder in folders)
    return next((file for file in files if file.is_file()), None)


def _read(file: Path, entry: DatasetEntry) -> dict[str, Any]:
    """Return the fields of a file; raise a ValueError with its path if it is damaged."""
    content = file.read_bytes()
    try:
        return read_fields(content, entry)
    except (MemoryError, ImportError):  # not caused by the file
        raise
    except Exception as error:  # readers index and reshape without checks
        reason = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{file} cannot be read as the data set {entry.name!r}: {reason}"
        ) from error


def _description(entry: DatasetEntry) -> str:
    papers = ", ".join(entry.papers) or "none (extra set)"
    return (
        f"{entry.title}\n\n{entry.description}\n\n"
        f"Source: {entry.source_url}\nLicence: {entry.license}\nPapers that use it: {papers}\n"
    )
