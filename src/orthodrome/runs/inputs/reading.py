"""The one door to files of data: which reader takes a file, by the end of its name."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .arrays import read_npy, read_npz
from .data import Data, InputError
from .landmarks import read_specimens
from .parquet import read_parquet
from .tables import read_table

__all__ = ["SUFFIXES", "read_data"]

SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".npy", ".npz", ".tps")
_IMAGES = (".png", ".jpg", ".jpeg")


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
        The file; the end of its name says what it is: ``.csv``, ``.tsv`` and ``.txt`` (text in
        columns), ``.parquet``, ``.npy`` and ``.npz`` (arrays), ``.tps`` (landmarks).
    label : str, optional
        The column with the labels, which are kept as texts; in a .npz file the array. With
        `labels`, the column of that file.
    columns : sequence of str, optional
        The features, in this order. Default: all columns but the label, and but the first one if
        it has no name, or is called index, id, name or row: it names the rows.
    labels : str or path-like, optional
        For TPS files: a table (csv or tsv) of which one column holds the ID or the IMAGE of every
        specimen (the IMAGE with or without its folder and its ending), and another one its label.
    label_regex : str, optional
        For TPS files: a regular expression. Its group called ``label``, else its first one, is
        what it finds in the IMAGE of each specimen, or in the ID where there is no IMAGE.
    keep_negative : bool, default=False
        For TPS files: negative coordinates are positions, as of aligned or centred landmarks, and
        do not stand for missing ones.

    Returns
    -------
    Data
        Numbers, names, and labels if asked for; in a .npz file also if there is an array ``y``,
        ``labels``, ``label`` or ``target``.

    Raises
    ------
    InputError
        Where the file cannot be used: a value that is missing, infinite or no number, a line with
        too few cells, a column that is not there, a file that is not what its name says or that
        would not fit in memory. The message names the file, and where they matter the line, the
        row of data and the column, and says what to do.
    FileNotFoundError
        Where there is no such file.
    MissingExtraError
        Where a parquet file is to be read, and pyarrow is not installed.

    Notes
    -----
    *Text in columns* may be separated by commas, semicolons, tabs or blanks: by what parts the
    first records alike. With any of them but the comma, numbers may have decimal commas. A first
    line of numbers only is data, and the columns are called x1, x2, …; unless it counts 0, 1, 2, …
    as pandas writes names of columns that have none. The encoding is UTF-8, or UTF-16 with a mark;
    what is neither is read as Windows-1252, and `notes` of the result say so.

    *Arrays* of shape (n, d) are tables, of shape (n, k, 2) or (n, k, 3) landmarks. Of a .npz file
    X is taken, else its only array of two or three dimensions.

    Lines count from 1, with the header; rows of data count from 1 below it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from orthodrome.runs.inputs import read_data
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
    if isinstance(columns, str):  # its letters would be taken for names
        columns = [columns]
    found = _read(
        Path(path),
        columns,
        label=label,
        labels=labels,
        label_regex=label_regex,
        keep_negative=keep_negative,
    )
    return replace(found, read_seconds=time.perf_counter() - begin)


def _read(
    file: Path,
    columns: Sequence[str] | None,
    *,
    label: str | None,
    labels: str | os.PathLike[str] | None,
    label_regex: str | None,
    keep_negative: bool,
) -> Data:
    """Hand a file to the reader of its kind, with the options that this one has."""
    suffix = _suffix(file)
    if suffix == ".tps":
        if columns is not None:
            raise InputError(f"{file} is a TPS file, which has no columns for --columns.")
        return read_specimens(
            file,
            label=label,
            labels=labels,
            label_regex=label_regex,
            keep_negative=keep_negative,
        )
    if keep_negative:
        raise InputError(f"{file} is not a TPS file, and --keep-negative is for those.")
    if labels is not None or label_regex is not None:
        option = "--labels" if labels is not None else "--label-regex"
        raise InputError(
            f"{file} is not a TPS file, and {option} is for those. Name the column with --label."
        )
    readers = {".npy": read_npy, ".npz": read_npz, ".parquet": read_parquet}
    return readers.get(suffix, read_table)(file, label=label, columns=columns)


def _suffix(path: Path) -> str:
    """Return the end of the name of a file that is there and can be read, in lower case."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the path of one file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}; check the path.")
    if not path.is_file():
        raise InputError(f"{path} is not a regular file; save the data in one.")
    suffix = path.suffix.lower()
    if suffix in _IMAGES:
        raise InputError(f"{path} is an image; `orthodrome denoise` takes images.")
    if suffix not in SUFFIXES:
        raise InputError(
            f"{path}: the end of the name, {suffix!r}, is not one of {', '.join(SUFFIXES)}. Save "
            "the data in one of these forms, or rename the file."
        )
    if not path.stat().st_size:
        raise InputError(f"{path} is empty, of 0 bytes.")
    try:
        path.open("rb").close()
    except PermissionError:
        raise InputError(f"{path} cannot be opened: you may not read it.") from None
    return suffix
