"""Load a data set as a Bunch, arrays or data frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils import Bunch

from .._core.checks import check_flag
from ._download import absent_message, check_arrays, obtain
from ._folders import Folder, data_folders
from ._frames import with_frames
from ._readers import read_fields
from ._registry import DatasetEntry, find_entry, registry


def available() -> tuple[str, ...]:
    """Return the names of all data sets that :func:`load` knows.

    Returns
    -------
    names : tuple of str
        In alphabetical order.

    Examples
    --------
    >>> from orthodrome.datasets import available
    >>> "iris" in available()
    True
    """
    return tuple(registry())


def path(name: str, *, data_home: Folder | None = None) -> Path:
    """Return the path of the file of a data set. Nothing is downloaded.

    Parameters
    ----------
    name : str
        One of :func:`available`.
    data_home : str or path-like, default=None
        The data folder to search first; see :func:`load`.

    Returns
    -------
    file : pathlib.Path
        An existing file. Its content is not checked.

    Raises
    ------
    FileNotFoundError
        If no folder has it; the message says which file to place where.
    """
    entry = find_entry(name, registry())
    folders = data_folders(data_home)
    file = _find_file(entry, folders)
    if file is None:
        raise FileNotFoundError(absent_message(entry, folders))
    return file


def load(
    name: str,
    *,
    data_home: Folder | None = None,
    return_X_y: bool = False,
    as_frame: bool = False,
    verify: bool = True,
    download_if_missing: bool = True,
    verbose: bool = True,
) -> Any:
    """Load a data set from this machine, or else from where it is published.

    Its file (such as ``uci/iris.csv``) is looked for in `data_home`, in the folder that the
    environment variable ``ORTHODROME_DATA`` names, and in the cache (:func:`cache_folder`). Then
    come the copies in scikit-learn and scikit-image (wine, camera_256, camera_512), and last a
    download of tables and pictures: by scikit-learn's OpenML fetcher if the set has a number there,
    else by pooch (both of ``pip install 'orthodrome[data]'``). Downloads are kept in the cache.
    Sets that are published in other formats (digits, faces, landmarks, motion, connectomes) are
    downloaded and converted by ``experiments/data/convert.py`` of the repository.

    Parameters
    ----------
    name : str
        One of :func:`available`.
    data_home : str or path-like, default=None
        The data folder to search first. It is never written to.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Give `data` as a pandas DataFrame and `target` as a Series (a DataFrame where there are
        several), and add `frame`, which holds both. Landmarks and matrices are laid out row by
        row; category columns hold their codes.
    verify : bool, default=True
        Compare the SHA-256 over the parsed arrays with the registry's. With False, a changed or
        own file of the same layout is accepted. A download is always checked.
    download_if_missing : bool, default=True
        With False, a set that is not on this machine is an error at once.
    verbose : bool, default=True
        Show a progress bar on standard error while pooch downloads (needs tqdm).

    Returns
    -------
    bunch : sklearn.utils.Bunch
        With these fields:

        data : ndarray of shape (n_samples, n_features)
            Tables are float64 with NaN for missing values. Landmark sets have shape (n, k, 2) or
            (n, k, 3), matrices (n, d, d), a single image (height, width). Pixels and motion keep
            the dtype of the file: uint8 differences wrap around, so convert before arithmetic.
        target : ndarray of shape (n_samples,) or (n_samples, n_targets), or None
            Class codes 0, 1, …: ``target_names[target]`` are the labels of the file. Numbers where
            the set is one of regression (concrete_slump). None where there are no labels.
        feature_names, target_names : list or ndarray of str
            Names of the features (row by row for landmarks, matrices and pixels) and classes.
        DESCR, filename : str
            Title, reading, source and licence; where the set was read.
        categories : dict of str to tuple of str
            german_credit: the code that each position in a category column stands for.
        is_test, X_train, y_train, X_test, y_test : ndarray
            pendigits, usps, mnist: the published split, as views.
        images, image : ndarray of shape (n, height, width) and (height, width)
            usps, mnist, orl_faces; camera_256, camera_512.
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
        If the set is not found; the message says which file to place where.
    ValueError
        If the name is unknown, the arrays are not those of the registry (both hashes are named)
        or the file cannot be parsed.
    ImportError
        If a picture is read without pillow, or `as_frame` is set without pandas.

    Warns
    -----
    UserWarning
        If the cache cannot be written to, so that the set will be downloaded again.

    Examples
    --------
    >>> from orthodrome.datasets import load
    >>> wine = load("wine", download_if_missing=False)
    >>> wine.data.shape, wine.target_names.tolist()
    ((178, 13), ['1', '2', '3'])
    """
    check_flag(return_X_y, "return_X_y", "load")
    check_flag(as_frame, "as_frame", "load")
    check_flag(verify, "verify", "load")
    check_flag(download_if_missing, "download_if_missing", "load")
    check_flag(verbose, "verbose", "load")
    entry = find_entry(name, registry())
    folders = data_folders(data_home)
    file = _find_file(entry, folders)
    if file is None:
        fields, origin = obtain(entry, folders, network=download_if_missing, verbose=verbose)
    else:
        fields, origin = _read(file, entry), str(file)
        if verify:
            advice = " Replace or remove the file, or pass verify=False to use it as it is."
            check_arrays(fields, entry, origin, advice)
    if as_frame:
        fields = with_frames(fields, entry)
    if return_X_y:
        return fields["data"], fields["target"]
    return Bunch(**fields, DESCR=_description(entry), filename=origin)


def _find_file(entry: DatasetEntry, folders: Sequence[Path]) -> Path | None:
    """Return the first existing file of a set, or None."""
    files = (folder / entry.path for folder in folders)
    return next((file for file in files if file.is_file()), None)


def _read(file: Path, entry: DatasetEntry) -> dict[str, Any]:
    """Return the fields of a file; raise a ValueError that names it if it is damaged."""
    content = file.read_bytes()
    try:
        return read_fields(content, entry)
    except (MemoryError, ImportError):  # no fault of the file
        raise
    except Exception as error:  # readers trust what they index and reshape
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
