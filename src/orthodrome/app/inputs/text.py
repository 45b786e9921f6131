"""Text in columns: its encoding, separator, header and records, with line numbers for errors."""

from __future__ import annotations

import codecs
import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, TextIO

from .data import InputError, listed, numbered_columns, shown

__all__ = ["BLANKS", "TextTable", "escape_formula", "is_number", "open_table", "restore_formula"]

_SNIFFED_BYTES = 1 << 16
_SNIFFED_RECORDS = 20
_CHUNK = 1 << 20
_LONGEST_LINE = 1 << 24  # 16 MiB, about a million numbers
BLANKS = " "
# Tab before semicolon before comma: commas are often inside cells, as decimal commas and in text.
_SEPARATORS = ("\t", ";", ",")
_CALLED = {"\t": "tab", ";": "semicolon", ",": "comma", BLANKS: "blank"}
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


# ---------------------------------------------------------------------------- cells


def is_number(cell: str) -> bool:
    """Return whether a cell is a finite number; not "nan", nor Python's "1_000"."""
    return _NUMBER.fullmatch(cell) is not None and math.isfinite(float(cell))


def escape_formula(text: str) -> str:
    """Return a cell with ``'`` in front if a spreadsheet might run it as a formula.

    Text that is a finite number, such as the label "-1", is not changed.

    Examples
    --------
    >>> from orthodrome.app.inputs.text import escape_formula
    >>> escape_formula("=1+1"), escape_formula("-1.5"), escape_formula("ash")
    ("'=1+1", '-1.5', 'ash')
    """
    return f"'{text}" if _is_formula(text.lstrip("'")) else text


def restore_formula(cell: str) -> str:
    """Return the text of a cell that :func:`escape_formula` may have changed.

    Examples
    --------
    >>> from orthodrome.app.inputs.text import restore_formula
    >>> restore_formula("'=1+1"), restore_formula("'ash")
    ('=1+1', "'ash")
    """
    return cell[1:] if cell.startswith("'") and _is_formula(cell.lstrip("'")) else cell


def _is_formula(text: str) -> bool:
    return text.startswith(_FORMULA_STARTS) and not is_number(text)


# ---------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class TextTable:
    """A text file in columns. Its records are read on request."""

    path: str
    encoding: str
    separator: str
    names: tuple[str, ...] = ()
    has_header: bool = False
    notes: tuple[str, ...] = ()
    rows: float = 1.0  # estimated from the first lines
    plain: bool = True  # False: zero bytes or an endless line, to be refused with their line

    def open(self) -> TextIO:
        """Open the file."""
        # cp1252 leaves five bytes undefined; they must not stop the reading of numbers
        errors = "replace" if self.encoding == "cp1252" else "strict"
        return open(self.path, encoding=self.encoding, errors=errors, newline="")

    def raw_records(self, file: TextIO) -> Iterator[tuple[int, list[str]]]:
        """Yield the records of an open file that are not blank, each with its first line."""
        reader = csv.reader(self._lines(file), delimiter=self.separator, strict=True)
        begin = 1
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as problem:
                raise InputError(f"{self.path}, line {begin}: {_advice(str(problem))}.") from None
            except UnicodeError:
                raise InputError(
                    f"{self.path}, line {begin}: the text is not {self.encoding}, though the file "
                    "begins so. Save it as CSV in UTF-8."
                ) from None
            if cells is None:
                return
            if any(cell.strip() for cell in cells):
                yield begin, cells
            begin = reader.line_num + 1

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each record below the header, with the number of its first line."""
        with self.open() as file:
            for number, (line, cells) in enumerate(self.raw_records(file)):
                if number == 0 and self.has_header:
                    continue
                if len(cells) != len(self.names):
                    raise self._ragged(line, cells)
                yield line, cells

    def _lines(self, file: TextIO) -> Iterator[str]:
        number = 0
        while line := file.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE:
                raise InputError(
                    f"{self.path}, line {number}: the line is longer than {_LONGEST_LINE} "
                    "characters. A table has one line for each row."
                )
            if "\0" in line:
                raise InputError(
                    f"{self.path}, line {number}: the line holds zero bytes, so the file is binary "
                    "or damaged. Save it as CSV in UTF-8."
                )
            # not split(): to it a no-break space, which may be within a name, is a blank
            if self.separator == BLANKS:
                line = " ".join(filter(None, line.strip().split(BLANKS))) + "\n"
            yield line

    def _ragged(self, line: int, cells: list[str]) -> InputError:
        first = "the header has" if self.has_header else "the first line has"
        separator = _CALLED[self.separator]
        fewer = len(cells) < len(self.names)
        advice = (
            f"{'Complete' if fewer else 'Shorten'} the line, or put quotes around cells that "
            f"contain a {separator}"
        )
        if len(cells) == len(self.names) + 1 and self.has_header:
            advice += "; if every line begins with a name of its row, name that column too"
        return InputError(
            f"{self.path}, line {line}: the line has {len(cells)} cells, {first} "
            f"{len(self.names)} (separated by {separator}). {advice}."
        )


def open_table(path: Path) -> TextTable:
    """Find the encoding, the separator and the header of a text file."""
    encoding, notes, plain = _encoding(path)
    bare = TextTable(str(path), encoding, _separator(str(path), encoding))
    with bare.open() as file:
        line, cells = next(bare.raw_records(file), (1, []))
    if not cells:
        raise InputError(
            f"{path} is empty. It should have a header and one line for each row of data."
        )
    names = [restore_formula(cell.strip()) for cell in cells]
    has_header = not _all_numbers(names, bare.separator) or _counts_columns(names)
    if not has_header:
        names = list(numbered_columns(len(cells)))
        notes.append(
            "The first line has only numbers, so there is no header: the columns are called "
            f"{listed(names, 3)}."
        )
    elif sum(map(is_number, names)) > len(names) / 2:
        notes.append(
            f"The first line was taken for a header, though most of it is numbers: "
            f"{listed(names, 4)}. If it is data, add a line with the names of the columns above it."
        )
    _check_names(bare, line, names)
    return replace(
        bare,
        names=tuple(names),
        has_header=has_header,
        notes=tuple(notes),
        rows=_estimated_rows(path),
        plain=plain,
    )


def _estimated_rows(path: Path) -> float:
    with path.open("rb") as file:
        head = file.read(_SNIFFED_BYTES)
    return path.stat().st_size * max(head.count(b"\n"), 1) / len(head)


def _all_numbers(cells: list[str], separator: str) -> bool:
    """Return whether all cells are numbers, perhaps with decimal commas."""
    commas = separator != ","
    return all(is_number(cell.replace(",", ".", 1) if commas else cell) for cell in cells)


def _counts_columns(cells: list[str]) -> bool:
    """Return whether these are pandas' names of unnamed columns: 0, 1, 2, …."""
    return len(cells) > 2 and cells == [str(number) for number in range(len(cells))]


def _check_names(table: TextTable, line: int, names: list[str]) -> None:
    first: dict[str, int] = {}
    for position, name in enumerate(names):
        if not name and position:
            trailing = f", or remove the {_CALLED[table.separator]} at the end of the lines"
            raise InputError(
                f"{table.path}, line {line}: column {position + 1} of the header has no name. "
                f"Name it{trailing * (position == len(names) - 1)}."
            )
        if first.setdefault(name, position) != position:
            raise InputError(
                f"{table.path}, line {line}: columns {first[name] + 1} and {position + 1} are both "
                f"called {shown(name)}. Give every column its own name."
            )


# ---------------------------------------------------------------------------- encoding, separator


def _encoding(path: Path) -> tuple[str, list[str], bool]:
    """Return the encoding of a text file, notes on it, and whether its lines look plain."""
    with path.open("rb") as file:
        head = file.read(_SNIFFED_BYTES)
        for magic, what in _BINARY.items():
            if head.startswith(magic):
                raise InputError(f"{path} is not text in columns but {what}.")
        for mark, encoding in _MARKS.items():
            if head.startswith(mark):
                return encoding, [], True
        if b"\0" in head:
            raise InputError(
                f"{path} is not text in columns: it holds zero bytes, so it is binary, or UTF-16 "
                "without a byte order mark. Save it as CSV in UTF-8."
            )
        is_utf8, plain = _scan(head, file)
    if is_utf8:
        return "utf-8", [], plain
    note = (
        "The file is not UTF-8 and was read as Windows-1252 (Latin-1). Check names with accents; "
        "if they are wrong, save the file as UTF-8."
    )
    return "cp1252", [note], plain


def _scan(head: bytes, file: BinaryIO) -> tuple[bool, bool]:
    """Return whether a file is UTF-8, and whether it has no zero bytes and no endless line."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8, plain, line = True, True, 0
    chunk = head
    while chunk:
        line = 0 if b"\n" in chunk or b"\r" in chunk else line + len(chunk)
        plain = plain and b"\0" not in chunk and line < _LONGEST_LINE
        following = file.read(_CHUNK)
        if is_utf8:
            try:
                decoder.decode(chunk, final=not following)
            except UnicodeDecodeError:
                is_utf8 = False
        chunk = following
    return is_utf8, plain


def _separator(path: str, encoding: str) -> str:
    """Return the first separator that splits the first records into equally many cells."""
    widths: dict[str, list[int]] = {}
    for separator in (*_SEPARATORS, BLANKS):
        table = TextTable(path, encoding, separator)
        try:
            with table.open() as file:
                first = zip(range(_SNIFFED_RECORDS), table.raw_records(file), strict=False)
                found = widths[separator] = [len(cells) for _, (_, cells) in first]
        except InputError:  # quotes that do not fit this separator
            found = widths[separator] = []
        if found and found[0] > 1 and len(set(found)) == 1:
            return separator
    # ragged lines, which will be refused with their number, or a single column
    return max(reversed(_SEPARATORS), key=lambda separator: max(widths[separator][:1], default=0))


def _advice(problem: str) -> str:
    """Return what to do about an error of the csv module."""
    if "field larger" in problem:
        return (
            f"a cell is longer than {csv.field_size_limit()} characters. Look for a quote that is "
            "not closed, here or above; or remove the column"
        )
    if "unexpected end" in problem:
        return "a quote is opened here and never closed. Close it, or remove it"
    return f"{problem}. Write a quote inside quotes twice, or remove it"
