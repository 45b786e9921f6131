"""Files of data as arrays: tables, landmarks and images.

======================  ==========================================================================
:func:`read_data`       a file of data: csv, tsv, txt, parquet, npy, npz or tps
:class:`Data`           what it returns
:func:`read_image`      a PNG or JPEG image
:func:`write_image`     writes one
:class:`InputError`     what is wrong with a file, where, and what to do
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
    r"""Read a file of data: a table of numbers or landmarks.

    Parameters
    ----------
    path : str or path-like
        The file; the end of its name gives its format: ``.csv``, ``.tsv`` and ``.txt`` (text in
        columns), ``.parquet``, ``.npy`` and ``.npz`` (arrays), ``.tps`` (landmarks).
    label : str, optional
        The column with the labels, which are kept as text; in a .npz file the array. With
        `labels`, the column of that file.
    columns : sequence of str, optional
        The features, in this order. Default: all columns except the label, and except the first
        one if it has no name, or is called index, id, name or row: it names the rows.
    labels : str or path-like, optional
        For TPS files: a table (csv or tsv) with one column for the ID or the IMAGE of every
        specimen (the IMAGE with or without its folder and its ending), and another for its label.
    label_regex : str, optional
        For TPS files: a regular expression, searched in the IMAGE of each specimen, or in the ID
        if there is no IMAGE. Its group called ``label``, else its first one, is the label.
    keep_negative : bool, default=False
        For TPS files: keep negative coordinates, as in aligned or centred landmarks. By default
        they stand for missing landmarks.

    Returns
    -------
    Data
        Numbers, names, and labels if asked for; in a .npz file also if there is an array ``y``,
        ``labels``, ``label`` or ``target``.

    Raises
    ------
    InputError
        If the file cannot be used: a value is missing, infinite or not a number, a line has too
        few cells, a column is missing, or the file is damaged or does not fit in memory. The
        message names the file, the line and the column, and says what to do.
    FileNotFoundError
        If there is no such file.
    MissingExtraError
        If pandas is not installed (for text), or pyarrow (for parquet).

    Notes
    -----
    *Text in columns* may be separated by commas, semicolons, tabs or blanks: by the one that
    splits the first records alike. With any of them but the comma, numbers may have decimal
    commas. A first line of numbers only is data, and the columns are called x1, x2, …; unless it
    counts 0, 1, 2, … as pandas names columns without names. The encoding is UTF-8, or UTF-16 with
    a byte order mark; other files are read as Windows-1252, and `notes` of the result say so.

    *Arrays* of shape (n, d) are tables, of shape (n, k, 2) or (n, k, 3) landmarks. Of a .npz file
    X is taken, else its only array of two or three dimensions.

    Lines count from 1, with the header; rows of data count from 1 below it.

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
            raise InputError(f"{file} is a TPS file, which has no columns for --columns.")
        options |= for_tps
    else:
        given = [name for name, value in for_tps.items() if value not in (None, False)]
        if given:
            raise InputError(
                f"{file} is not a TPS file, and --{given[0].replace('_', '-')} is for those. Name "
                "the column of labels with --label."
            )
        options["columns"] = [columns] if isinstance(columns, str) else columns
    found = _READERS[suffix](file, **options)
    return replace(found, read_seconds=time.perf_counter() - begin)


def _suffix(path: Path) -> str:
    """Return the end of a file's name, in lower case; raise if it cannot be a file of data."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the path of one file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}; check the path.")
    if not path.is_file():
        raise InputError(f"{path} is not a regular file; save the data in one.")
    suffix = path.suffix.lower()
    if suffix in IMAGE_SUFFIXES:
        raise InputError(f"{path} is an image; `orthodrome denoise` takes images.")
    if suffix not in _READERS:
        raise InputError(
            f"{path}: the end of the name, {suffix!r}, is not one of {', '.join(_READERS)}. Save "
            "the data in one of these formats, or rename the file."
        )
    if not path.stat().st_size:
        raise InputError(f"{path} is empty (0 bytes).")
    try:
        path.open("rb").close()
    except PermissionError:
        raise InputError(f"{path} cannot be opened: permission denied.") from None
    return suffix
