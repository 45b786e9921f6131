"""Load a data set as a Bunch or as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils import Bunch

from .._core.checks import check_flag
from ._download import Folder, check_arrays, data_folders, fetch_dataset, missing_message
from ._readers import read_fields
from ._registry import DatasetEntry, find_entry, registry


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
