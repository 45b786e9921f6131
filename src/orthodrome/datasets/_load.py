"""Find a data set's file, check it, hand it out as a Bunch. Nothing is written or downloaded."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Literal, overload

from numpy.typing import NDArray
from sklearn.utils import Bunch

from orthodrome.datasets._readers import read_fields
from orthodrome.datasets._registry import DatasetEntry, find_entry, registry

__all__ = ["available", "load", "path"]

DATA_VARIABLE = "ORTHODROME_DATA"

Folder = str | os.PathLike[str]


def available() -> tuple[str, ...]:
    """Names of all data sets that :func:`load` knows, whether or not their files are here.

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
    """Where the file of a data set lies.

    Parameters
    ----------
    name : str
        One of :func:`available`.
    data_home : str or path-like, default=None
        The data folder; it is searched before the folder that the environment
        variable ``ORTHODROME_DATA`` names.

    Returns
    -------
    file : pathlib.Path
        An existing file. Its checksum has not been looked at.

    Raises
    ------
    FileNotFoundError
        If no folder has it; the message says which file to place where.
    """
    entry = find_entry(name, registry())
    folders = _data_folders(data_home)
    for folder in folders:
        file = folder / entry.path
        if file.is_file():
            return file
    raise FileNotFoundError(_absent_message(entry, folders))


@overload
def load(
    name: str,
    *,
    data_home: Folder | None = ...,
    return_X_y: Literal[False] = ...,
    verify: bool = ...,
) -> Bunch: ...
@overload
def load(
    name: str,
    *,
    data_home: Folder | None = ...,
    return_X_y: Literal[True],
    verify: bool = ...,
) -> tuple[NDArray[Any], NDArray[Any] | None]: ...
def load(
    name: str,
    *,
    data_home: Folder | None = None,
    return_X_y: bool = False,
    verify: bool = True,
) -> Bunch | tuple[NDArray[Any], NDArray[Any] | None]:
    """Load a data set from a folder on this machine.

    Nothing is downloaded or written. A file is looked for under `data_home`, then under the
    folder that the environment variable ``ORTHODROME_DATA`` names.

    Parameters
    ----------
    name : str
        One of :func:`available`.
    data_home : str or path-like, default=None
        The data folder to search first.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    verify : bool, default=True
        Compare the file's SHA-256 with the registry's. With False, a changed or own file of the
        same layout is accepted.

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
            Title, reading, source and licence; where the file lies.
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
        If the file is absent; the message says which file to place where.
    ValueError
        If the name is unknown, the checksum differs or the file cannot be parsed.
    ImportError
        If a PNG file is read without pillow.

    Examples
    --------
    >>> from orthodrome.datasets import load
    >>> iris = load("iris", data_home="../shared/data")  # doctest: +SKIP
    >>> iris.data.shape  # doctest: +SKIP
    (150, 4)
    """
    entry = find_entry(name, registry())
    file = path(name, data_home=data_home)
    content = file.read_bytes()
    if verify:
        _check_sha256(content, entry, file)
    fields = read_fields(content, entry)
    if return_X_y:
        return fields["data"], fields["target"]
    return Bunch(**fields, DESCR=_description(entry), filename=str(file))


def _data_folders(data_home: Folder | None) -> list[Path]:
    """Folders to search, in order; a user cache will join at the end."""
    named = [data_home, os.environ.get(DATA_VARIABLE)]
    folders = (Path(folder).expanduser() for folder in named if folder)
    return list(dict.fromkeys(folders))


def _absent_message(entry: DatasetEntry, folders: list[Path]) -> str:
    looked = ", ".join(str(folder / entry.path) for folder in folders)
    where = f"Looked for {looked}." if looked else "No data folder is named."
    return (
        f"The data set {entry.name!r} ({entry.title}) is not on this machine. {where} "
        f"Place the file as {entry.path} in a folder and name that folder with data_home=... or "
        f"the environment variable {DATA_VARIABLE}. Published at {entry.source_url}; the file is: "
        f"{entry.description}; SHA-256 {entry.sha256}."
    )


def _check_sha256(content: bytes, entry: DatasetEntry, file: Path) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != entry.sha256:
        raise ValueError(
            f"{file} is not the file that the registry knows as {entry.name!r}: expected SHA-256 "
            f"{entry.sha256}, found {found}. Replace the file, or pass verify=False to use it as "
            "it is."
        )


def _description(entry: DatasetEntry) -> str:
    papers = ", ".join(entry.papers) or "none (extra set)"
    return (
        f"{entry.title}\n\n{entry.description}\n\n"
        f"Source: {entry.source_url}\nLicence: {entry.license}\nPapers that use it: {papers}\n"
    )
