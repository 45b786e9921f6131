"""Read tables, landmarks and images as arrays.

======================  ==========================================================================
:func:`read_data`       reads a csv, tsv, txt, parquet, npy, npz or tps file
:class:`Data`           the result of :func:`read_data`
:func:`read_image`      reads a PNG or JPEG image
:func:`write_image`     writes a PNG or JPEG image
:class:`InputError`     the error for a file that cannot be used
======================  ==========================================================================
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...preprocessing import TableCleaner
from .arrays import read_npy, read_npz
from .cleaning import (
    MISSING_RULES,
    TEXT_RULES,
    Description,
    apply_cleaner,
    clean,
    describe_columns,
    tolerant_table,
)
from .data import Data, InputError, RawTable, UnknownColumnError
from .images import IMAGE_SUFFIXES, read_image, write_image
from .landmarks import (
    complete_landmarks,
    is_landmark_text,
    label_specimens,
    read_specimens,
    specimens_of,
    treat_like_training,
)
from .landmarks import fix_mirrored as reflect_mirrored
from .tables import read_parquet, read_table

__all__ = [
    "Data",
    "InputError",
    "UnknownColumnError",
    "read_data",
    "read_description",
    "read_image",
    "read_new_rows",
    "write_image",
]

_READERS: dict[str, Any] = {
    ".csv": read_table,
    ".tsv": read_table,
    ".txt": read_table,
    ".parquet": read_parquet,
    ".npy": read_npy,
    ".npz": read_npz,
}
_ARRAYS = (".npy", ".npz")
_LANDMARK_SUFFIXES = (".tps", ".nts", ".dta")


def read_data(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    label_regex: str | None = None,
    keep_negative: bool = False,
    missing: str | None = None,
    text: str | None = None,
    fix_mirrored: bool = False,
) -> Data:
    r"""Read a table of numbers or a file of landmarks.

    Parameters
    ----------
    path : str or path-like
        The file. Its suffix gives its format: ``.csv``, ``.tsv`` and ``.txt`` (text tables),
        ``.parquet``, ``.npy`` and ``.npz`` (arrays), ``.tps`` (landmarks).
    label : str, optional
        Column with the labels, or array with the labels in a .npz file. Labels are kept as text.
        With `labels`, it is the column of that file.
    columns : sequence of str, optional
        Columns to use as features, in this order. Default: all columns except the label. A first
        column without a name, or called index, id, name or row, is used as row names instead.
    labels : str or path-like, optional
        For TPS files: a table (csv or tsv) with a column for the ID or the IMAGE of each specimen
        (the IMAGE with or without its folder and suffix), and a column for its label.
    label_regex : str, optional
        For landmarks: a regular expression, searched in the IMAGE of each specimen, or in the ID
        if not every specimen has a matching IMAGE. The label is the group named ``label``, or else
        the first group.
    keep_negative : bool, default=False
        For TPS files: treat negative coordinates as values, as in aligned or centred landmarks.
        By default they mark missing landmarks.
    missing : {"error", "drop", "mean", "median", "estimate"} or None
        What to do with rows that have missing cells: drop them, or fill in the mean or the median
        of the column; for landmarks, "estimate" fills in a thin-plate spline. Default: drop the
        rows if they are at most 5 %, else raise an error.
    text : {"ignore", "onehot", "error"} or None
        What to do with columns of text. Default: ignore them, unless they are in `columns`.
    fix_mirrored : bool, default=False
        For landmarks: reflect specimens that are mirror images of the others.

    Returns
    -------
    Data
        Numbers, names, and labels if requested. In a .npz file an array ``y``, ``labels``,
        ``label`` or ``target`` is used as labels by default.

    Raises
    ------
    InputError
        If a value is missing, infinite or not a number, a line has too few cells, a column is
        missing, or the file is damaged or does not fit in memory. The message names the file, the
        line and the column, and says what to do.
    FileNotFoundError
        If the file does not exist.
    MissingExtraError
        If pandas is not installed (for text), or pyarrow (for parquet).

    Notes
    -----
    *Text tables* may be separated by commas, semicolons, tabs, bars (|) or blanks. The separator is
    the first that splits the first records into equally many cells. Unless it is the comma, numbers
    may have decimal commas. A first line ``sep=;`` declares the separator. Lines before the header
    that begin with # are comments. If the first line has only numbers, there is no header and the
    columns are called x1, x2, …; except for 0, 1, 2, …, which pandas writes for columns without
    names. The encoding is UTF-8, or UTF-16 with a byte order mark. Other files are read as
    Windows-1252, with a remark in `notes` of the result.

    *Arrays* of shape (n, d) are tables; arrays of shape (n, k, 2) or (n, k, 3) are landmarks. In a
    .npz file the data are the array X, or else the only array with two or three dimensions.

    In messages, lines are counted from 1, including the header; data rows are counted from 1,
    without the header.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from orthodrome.app import read_data
    >>> path = pathlib.Path(tempfile.mkdtemp(), "leaves.csv")
    >>> _ = path.write_text("length,width,species\n2.5,1,edulis\n3,1.5,caerulea\n")
    >>> data = read_data(path, label="species")
    >>> data.X
    array([[2.5, 1. ],
           [3. , 1.5]])
    >>> data.columns, data.labels.tolist()
    (('length', 'width'), ['edulis', 'caerulea'])
    """
    found = _open(
        path,
        label=label,
        columns=columns,
        labels=labels,
        label_regex=label_regex,
        keep_negative=keep_negative,
    )
    _check_rules(found, missing, text, fix_mirrored)
    return _clean(found, missing, text, columns is not None, fix_mirrored)


def read_description(
    path: str | os.PathLike[str],
    *,
    missing: str | None = None,
    text: str | None = None,
    fix_mirrored: bool = False,
    **options: Any,
) -> Description:
    """Read a file to describe it, even if the commands could not use it as it is.

    Parameters
    ----------
    path, missing, text, fix_mirrored, **options :
        As in :func:`read_data`.

    Returns
    -------
    Description
        The data, what the columns hold, and why other commands would stop.
    """
    found = _open(path, **options)
    chosen, problem = options.get("columns") is not None, ""
    _check_rules(found, missing, text, fix_mirrored)
    data: Data | None
    try:
        data = _clean(found, missing, text, chosen, fix_mirrored)
    except InputError as error:
        problem = str(error)
        data = _usable(found, chosen, fix_mirrored)
    columns = describe_columns(found, text, chosen)
    return Description(found.path, data, columns, problem, len(found.ids))


def _usable(found: RawTable | Data, chosen: bool, fix_mirrored: bool) -> Data | None:
    """Return what can be used with other options, if there is anything."""
    rules: list[tuple[str, str | None]] = [("estimate", None), ("drop", None)]
    if isinstance(found, RawTable):
        found = tolerant_table(found)
        rules = [("median", "ignore"), ("median", "onehot")]
    for missing, text in rules:
        with suppress(InputError):
            return _clean(found, missing, text, chosen, fix_mirrored)
    return None


def _open(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    label_regex: str | None = None,
    keep_negative: bool = False,
) -> RawTable | Data:
    """Read a file as it is, with text and missing cells."""
    file = Path(path)
    suffix = _suffix(file)
    specimens, own_labels = None, None
    if suffix in _LANDMARK_SUFFIXES or (suffix == ".txt" and is_landmark_text(file)):
        if columns is not None:
            raise InputError(f"{file} has landmarks and no columns. Remove --columns.")
        specimens = read_specimens(file, keep_negative=keep_negative)
    else:
        columns = [columns] if isinstance(columns, str) else columns
        own = label if labels is None else None  # with labels, it is a column of that file
        found = _READERS[suffix](file, label=own, columns=columns)
        if isinstance(found, RawTable) and suffix not in _ARRAYS and columns is None:
            specimens, own_labels = specimens_of(found)
    if specimens is not None:
        return label_specimens(file, *specimens, own_labels, label, labels, label_regex)
    if labels is not None or label_regex is not None or keep_negative:
        raise InputError(
            f"{file} has no landmarks, but --labels, --label-regex and --keep-negative are only "
            "for landmarks. Remove them. For labels, name their column with --label."
        )
    return found


def _check_rules(
    found: RawTable | Data, missing: str | None, text: str | None, fix_mirrored: bool
) -> None:
    """Raise if an option does not suit the file."""
    is_shapes = isinstance(found, Data) and found.kind == "shapes"
    rules = [("missing", missing, MISSING_RULES), ("text", text, TEXT_RULES)]
    if is_shapes:
        rules = [("missing", missing, ("error", "drop", "estimate"))]
    elif fix_mirrored:
        raise InputError(f"{found.path} has no landmarks. Remove --fix-mirrored.")
    for option, value, allowed in rules:
        if value is not None and value not in allowed:
            what = "landmarks" if is_shapes else "a table"
            raise InputError(f"--{option} {value}: for {what}, use one of {', '.join(allowed)}.")


def _clean(
    found: RawTable | Data, missing: str | None, text: str | None, chosen: bool, fix_mirrored: bool
) -> Data:
    """Return numbers without missing ones."""
    if isinstance(found, RawTable):
        return clean(found, missing=missing, text=text, chosen=chosen)
    if found.kind == "shapes":
        found = complete_landmarks(found, missing)
    return reflect_mirrored(found) if fix_mirrored else found


def read_new_rows(
    path: str | os.PathLike[str],
    kind: str,
    columns: Sequence[str] | None = None,
    cleaner: TableCleaner | None = None,
    *,
    mean: Any = None,
    reflected: bool = False,
    **options: Any,
) -> Data:
    """Read rows to predict, and treat them like the training data.

    Parameters
    ----------
    path : str or path-like
        The file.
    kind : {"table", "shapes"}
        The kind of the training data.
    columns : sequence of str, optional
        The columns of the training data.
    cleaner : TableCleaner, optional
        What turned the training table into numbers. Its columns are read; missing cells are filled
        in as there.
    mean : array-like of shape (k, 2) or (k, 3), optional
        The mean shape of the training data. Missing landmarks are estimated from it.
    reflected : bool, default=False
        Whether to reflect specimens that are mirror images of the mean shape.
    **options
        As in :func:`read_data`: label, labels, label_regex, keep_negative.

    Returns
    -------
    Data
        The rows.
    """
    suffix = _suffix(Path(path))
    names = None if suffix in _ARRAYS else columns
    found: RawTable | Data
    if kind == "shapes" or suffix in _LANDMARK_SUFFIXES:
        found = _open(path, **options)
    elif cleaner is None:
        found = read_data(path, columns=names, **options)
    else:
        if names is not None:
            names = cleaner.feature_names_in_[cleaner.used_columns()].tolist()
        found = _READERS[suffix](Path(path), label=options.get("label"), columns=names)
        if isinstance(found, RawTable):
            return apply_cleaner(cleaner, found)
    has_landmarks = isinstance(found, Data) and found.kind == "shapes"
    if isinstance(found, RawTable) or has_landmarks != (kind == "shapes"):
        training = "landmarks" if kind == "shapes" else "a table"
        raise InputError(
            f"{path} is not {training}, but the model was fitted to {training}. Use a file of the "
            "same kind."
        )
    if not has_landmarks:
        return found
    if mean is not None:
        found = treat_like_training(found, mean, reflect=reflected)
    return complete_landmarks(found, "error")


def _suffix(path: Path) -> str:
    """Return the suffix of a file, in lower case; raise if the file cannot be read."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}. Check the path.")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise InputError(f"{path} is {kind}. Give the path of a file.")
    suffix = path.suffix.lower()
    if suffix in IMAGE_SUFFIXES:
        raise InputError(f"{path} is an image. Use `orthodrome denoise` for images.")
    known = (*_READERS, *_LANDMARK_SUFFIXES)
    if suffix not in known:
        raise InputError(
            f"{path}: the suffix {suffix!r} is not one of {', '.join(known)}. Save the data in one "
            "of these formats, or rename the file."
        )
    if not path.stat().st_size:
        raise InputError(f"{path} is empty (0 bytes). Check how it was saved.")
    return suffix
