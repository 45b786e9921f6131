"""Files of text in columns: their encoding, their separator, their header and their records.

The csv module of Python rather than pandas: a table must be readable with what the command line
itself needs, an error must name the line of the file (pandas has none to tell), and pandas renames
columns of one name and takes words such as "NA" for missing without a word about it.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .data import InputError, listed, numbered_columns, shown

__all__ = [
    "SNIFFED_BYTES",
    "TextTable",
    "escape_formula",
    "is_no_label",
    "is_number",
    "open_table",
    "place",
    "restore_formula",
]

SNIFFED_BYTES = 1 << 16
_SNIFFED_RECORDS = 20
_LONGEST_LINE = 1 << 24  # 16 MiB, a million numbers: no table of text has such lines
_BLANKS = " "
# Tab before semicolon before comma: the later ones stand inside cells of the former, as decimal
# commas and in sentences, more often than the other way round.
_SEPARATORS = ("\t", ";", ",")
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
# First characters of a cell that may make a spreadsheet run it: =, +, -, @ (CWE-1236) and tab, and
# to be safe line breaks and the full-width forms of the four signs.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_BINARY = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF": "a PDF document",
    b"PAR1": "a parquet file; name it .parquet",
    b"\x93NUMPY": "a NumPy array; name it .npy",
    b"PK\x03\x04": "a zip archive: an Excel workbook to be saved as CSV, or NumPy arrays (.npz)",
    b"\x1f\x8b": "compressed by gzip; unpack it first",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save it as CSV",
    b"\x89HDF": "an HDF5 file; save the array as .npy",
}
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


@dataclass(frozen=True)
class TextTable:
    """A file of text whose form is known; its records are read when they are asked for."""

    path: str
    encoding: str
    separator: str
    names: tuple[str, ...]
    has_header: bool
    notes: tuple[str, ...]

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each record below the header, with the number of the line it begins on."""
        raw = _records(self.path, self.encoding, self.separator)
        if self.has_header:
            next(raw)
        for line, cells in raw:
            if len(cells) != len(self.names):
                raise self._ragged(line, cells)
            yield line, cells

    def _ragged(self, line: int, cells: list[str]) -> InputError:
        first = "the header has" if self.has_header else "the first line has"
        fewer = len(cells) < len(self.names)
        advice = (
            f"{'Complete' if fewer else 'Shorten'} the line, or put quotes around cells that hold "
            f"a {_called(self.separator)}"
        )
        if len(cells) == len(self.names) + 1 and self.has_header:
            advice += "; if every line begins with a name of its row, give that column a name too"
        return InputError(
            f"{self.path}, line {line}: the line has {len(cells)} cells, {first} "
            f"{len(self.names)} (separated by {_called(self.separator)}). {advice}."
        )


def place(path: str, line: int, row: int, column: str | None = None) -> str:
    """Return where a cell is, as errors say it; `line` and `row` count from 1."""
    where = f"{path}, line {line} (data row {row})"
    return where if column is None else f"{where}, column {shown(column)}"


def is_number(cell: str) -> bool:
    """Tell whether a cell is a finite number; not "nan", nor Python's "1_000"."""
    return _NUMBER.fullmatch(cell) is not None


def is_no_label(cell: str) -> bool:
    """Tell whether a cell holds no label: nothing, or nan. Other words may name a class."""
    return not cell or cell.lower() == "nan"


def escape_formula(text: str) -> str:
    """Return a cell with ``'`` in front if a spreadsheet might run it as a formula.

    Text that is a finite number, such as the label "-1", is not changed.

    Examples
    --------
    >>> from orthodrome.runs.inputs.text import escape_formula
    >>> escape_formula("=1+1"), escape_formula("-1.5"), escape_formula("ash")
    ("'=1+1", '-1.5', 'ash')
    """
    return f"'{text}" if _is_formula(text.lstrip("'")) else text


def restore_formula(cell: str) -> str:
    """Return the text of a cell that :func:`escape_formula` may have changed.

    Examples
    --------
    >>> from orthodrome.runs.inputs.text import restore_formula
    >>> restore_formula("'=1+1"), restore_formula("'ash")
    ('=1+1', "'ash")
    """
    return cell[1:] if cell.startswith("'") and _is_formula(cell.lstrip("'")) else cell


def _is_formula(text: str) -> bool:
    is_finite = is_number(text) and math.isfinite(float(text))
    return text.startswith(_FORMULA_STARTS) and not is_finite


def open_table(path: Path) -> TextTable:
    """Look at the beginning of a file of text, and find its form.

    Parameters
    ----------
    path : Path
        An existing file.

    Returns
    -------
    TextTable
        Encoding, separator and names.

    Raises
    ------
    InputError
        If it is empty, not text, or its header cannot be one.
    """
    name = str(path)
    encoding, notes = _encoding(path)
    separator = _separator(name, encoding)
    first = next(_records(name, encoding, separator), None)
    if first is None:
        raise InputError(
            f"{name} is empty. It should have a header and one line for each row of data."
        )
    line, cells = first
    cells = [restore_formula(cell.strip()) for cell in cells]
    has_header = not _all_numbers(cells, separator) or _counts_columns(cells)
    if not has_header:
        notes.append(
            f"The first line holds numbers only, so there is no header: the columns are called "
            f"{listed(numbered_columns(len(cells)), 3)}."
        )
        return TextTable(
            name, encoding, separator, numbered_columns(len(cells)), False, tuple(notes)
        )
    _check_names(name, line, cells, separator)
    if sum(is_number(cell) for cell in cells) > len(cells) / 2:
        notes.append(
            f"The first line was taken for a header, though most of it are numbers: "
            f"{listed(cells, 4)}. If it is data, write a line with the names of the columns "
            "above it."
        )
    return TextTable(name, encoding, separator, tuple(cells), True, tuple(notes))


def _all_numbers(cells: list[str], separator: str) -> bool:
    """Tell whether all cells are numbers, perhaps with decimal commas."""
    commas = separator != ","
    return all(is_number(cell.replace(",", ".", 1) if commas else cell) for cell in cells)


def _counts_columns(cells: list[str]) -> bool:
    """Tell whether these are pandas' names of columns without names: 0, 1, 2, …."""
    return len(cells) > 2 and cells == [str(number) for number in range(len(cells))]


def _check_names(path: str, line: int, names: list[str], separator: str) -> None:
    for position, name in enumerate(names):
        if not name and position:
            trailing = position == len(names) - 1
            raise InputError(
                f"{path}, line {line}: column {position + 1} of the header has no name. Name it"
                + (f", or remove the {_called(separator)} at the end of the lines" * trailing)
                + "."
            )
        if name in names[:position]:
            raise InputError(
                f"{path}, line {line}: columns {names.index(name) + 1} and {position + 1} are both "
                f"called {shown(name)}. Give every column a name of its own."
            )


# ---------------------------------------------------------------------------- bytes to records


def _encoding(path: Path) -> tuple[str, list[str]]:
    """Return the encoding of a file of text, and what to say about it."""
    with path.open("rb") as file:
        head = file.read(SNIFFED_BYTES)
        for magic, what in _BINARY.items():
            if head.startswith(magic):
                raise InputError(f"{path} is not text in columns but {what}.")
        for mark, encoding in _MARKS.items():
            if head.startswith(mark):
                return encoding, []
        if b"\0" in head:
            raise InputError(
                f"{path} is not text in columns: it holds zero bytes, so it is binary, or UTF-16 "
                "without a mark. Save it as CSV in UTF-8."
            )
        try:
            _check_utf8(file, head)
        except UnicodeDecodeError:
            note = "The file is not UTF-8 and was read as Windows-1252 (Latin-1): look at the names"
            return "cp1252", [f"{note} with accents, and save it as UTF-8 if they are wrong."]
    return "utf-8", []


def _check_utf8(file: IO[bytes], head: bytes) -> None:
    """Raise UnicodeDecodeError where the file, from `head` on, is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    decoder.decode(head)
    while chunk := file.read(1 << 20):
        decoder.decode(chunk)
    decoder.decode(b"", final=True)


def _separator(path: str, encoding: str) -> str:
    """Return what parts the cells: the first that parts all the first records alike."""
    widths: dict[str, list[int]] = {}
    for separator in (*_SEPARATORS, _BLANKS):
        try:
            records = _records(path, encoding, separator)
            widths[separator] = [
                len(cells) for _, (_, cells) in zip(range(_SNIFFED_RECORDS), records, strict=False)
            ]
        except InputError:  # quotes that do not fit this separator
            widths[separator] = []
    for separator in (*_SEPARATORS, _BLANKS):
        found = widths[separator]
        if found and found[0] > 1 and len(set(found)) == 1:
            return separator
    # ragged lines, which will be refused with their number, or a single column
    return max(reversed(_SEPARATORS), key=lambda separator: max(widths[separator][:1], default=0))


def _called(separator: str) -> str:
    return {"\t": "tab", ";": "semicolon", ",": "comma", _BLANKS: "blank"}[separator]


def _records(path: str, encoding: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records that are not blank, each with the number of its first line."""
    # cp1252 has five bytes without a meaning; they must not stop the reading of the numbers
    errors = "replace" if encoding == "cp1252" else "strict"
    with open(path, encoding=encoding, errors=errors, newline="") as file:
        tidy = _single_blanks if separator == _BLANKS else None
        reader = csv.reader(_lines(path, file, tidy), delimiter=separator, strict=True)
        begin = 1
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as problem:
                raise _unreadable(path, begin, str(problem)) from None
            except UnicodeError:
                raise InputError(
                    f"{path}, line {begin}: the text is not {encoding}, though the file begins so. "
                    "Save it as CSV in UTF-8."
                ) from None
            if cells is None:
                return
            if any(cell.strip() for cell in cells):
                yield begin, cells
            begin = reader.line_num + 1


def _lines(path: str, file: io.TextIOBase, tidy: Callable[[str], str] | None) -> Iterator[str]:
    number = 0
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if len(line) == _LONGEST_LINE:
            raise InputError(
                f"{path}, line {number}: the line is longer than {_LONGEST_LINE} characters; this "
                "is no table of text with one line for each row."
            )
        if "\0" in line:
            raise InputError(
                f"{path}, line {number}: the line holds zero bytes, so the file is binary or "
                "damaged. Save it as CSV in UTF-8."
            )
        yield line if tidy is None else tidy(line)


def _single_blanks(line: str) -> str:
    """Return a line whose cells are parted by single blanks, as the csv module needs them."""
    # not split(): to it a no-break space, which stands within names, parts words as well
    return " ".join(word for word in line.strip().split(_BLANKS) if word) + "\n"


def _unreadable(path: str, line: int, problem: str) -> InputError:
    if "field larger" in problem:
        advice = (
            f"a cell is longer than {csv.field_size_limit()} characters. Look for a quote that is "
            "not closed, here or above; or remove the column"
        )
    elif "unexpected end" in problem:
        advice = "a quote is opened here and never closed. Close it, or remove it"
    else:
        advice = f"{problem}. Write a quote inside quotes twice, or remove it"
    return InputError(f"{path}, line {line}: {advice}.")
