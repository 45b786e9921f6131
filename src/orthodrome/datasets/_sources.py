"""Convert published text tables and images to the files of data sets.

The script ``experiments/data/convert.py`` converts other formats.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ._readers import read_picture
from ._registry import DatasetEntry

Options = Mapping[str, Any]
Converter = Callable[[Sequence[bytes], Options, DatasetEntry], bytes]


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
    return [line.strip() for line in re.split(r"\r\n|\r|\n", text) if line.strip()]


def fields_of(lines: Iterable[str], options: Options) -> list[list[str]]:
    delimiter = options.get("delimiter", ",")
    if delimiter == "space":  # any number of blanks and tabs
        return [line.split() for line in lines]
    return [[cell.strip() for cell in line.split(delimiter)] for line in lines]


def _same_file(files: Sequence[bytes], options: Options, entry: DatasetEntry) -> bytes:
    return files[0]


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
    "same_file": _same_file,
    "halved_image": _halved_image,
}
