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
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .arrays import read_npy, read_npz
from .data import Data, InputError, UnknownColumnError
from .images import IMAGE_SUFFIXES, read_image, write_image
from .landmarks import read_specimens
from .parquet import read_parquet
from .tables import read_table

__all__ = ["Data", "InputError", "UnknownColumnError", "read_data", "read_image", "write_image"]

_READERS: dict[str, Any] = {
    ".csv": read_table,
    ".tsv": read_table,
    ".txt": read_table,
    ".parquet": read_parquet,
    ".npy": read_npy,
    ".npz": read_npz,
    ".tps": read_specimens,
}


def read_data(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    label_regex: str | None = None,
    keep_negative: bool = False,
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
        For TPS files: a regular expression, searched in the IMAGE of each specimen, or in the ID
        if there is no IMAGE. The label is the group named ``label``, or else the first group.
    keep_negative : bool, default=False
        For TPS files: treat negative coordinates as values, as in aligned or centred landmarks.
        By default they mark missing landmarks.

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
    *Text tables* may be separated by commas, semicolons, tabs or blanks. The separator is the
    first that splits the first records into equally many cells. Unless it is the comma, numbers may
    have decimal commas. If the first line has only numbers, there is no header and the columns are
    called x1, x2, …; except for 0, 1, 2, …, which pandas writes for columns without names. The
    encoding is UTF-8, or UTF-16 with a byte order mark. Other files are read as Windows-1252, with
    a remark in `notes` of the result.

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
    begin = time.perf_counter()
    file = Path(path)
    suffix = _suffix(file)
    for_tps = {"labels": labels, "label_regex": label_regex, "keep_negative": keep_negative}
    options: dict[str, Any] = {"label": label}
    if suffix == ".tps":
        if columns is not None:
            raise InputError(f"{file} is a TPS file, which has no columns. Remove --columns.")
        options |= for_tps
    else:
        given = [name for name, value in for_tps.items() if value not in (None, False)]
        if given:
            raise InputError(
                f"{file} is not a TPS file, but --{given[0].replace('_', '-')} is only for TPS "
                "files. Remove it. For labels, name their column with --label."
            )
        options["columns"] = [columns] if isinstance(columns, str) else columns
    found = _READERS[suffix](file, **options)
    return replace(found, read_seconds=time.perf_counter() - begin)


def _suffix(path: Path) -> str:
    """Return the suffix of a file, in lower case; raise if the file cannot be read."""
    if path.is_dir():
        raise InputError(f"{path} is a folder. Give the path of a file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}. Check the path.")
    if not path.is_file():
        raise InputError(f"{path} is not a regular file. Save the data in a regular file.")
    suffix = path.suffix.lower()
    if suffix in IMAGE_SUFFIXES:
        raise InputError(f"{path} is an image. Use `orthodrome denoise` for images.")
    if suffix not in _READERS:
        raise InputError(
            f"{path}: the suffix {suffix!r} is not one of {', '.join(_READERS)}. Save the data in "
            "one of these formats, or rename the file."
        )
    if not path.stat().st_size:
        raise InputError(f"{path} is empty (0 bytes). Check how it was saved.")
    try:
        path.open("rb").close()
    except PermissionError:
        raise InputError(f"{path} cannot be opened: permission denied.") from None
    return suffix
