"""Find the encoding, separator and header of a text table, and read its records."""

from __future__ import annotations

import codecs
import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TextIO

from .data import InputError, column_names, format_names, quote

_SNIFFED_BYTES = 1 << 16
_SNIFFED_RECORDS = 20
_CHUNK = 1 << 20
_MAX_LINE = 1 << 24  # 16 MiB, about a million numbers
BLANKS = " "
# In order of preference. The comma comes late because cells often contain commas.
_SEPARATORS = {"\t": "tab", ";": "semicolon", ",": "comma", BLANKS: "blank"}
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
# Spreadsheets may run a cell that starts with =, +, -, @ or tab (CWE-1236). Line breaks and the
# full-width forms of these characters are included to be safe.
_FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_BINARY = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF": "a PDF document",
    b"PAR1": "a parquet file; rename it to .parquet",
    b"\x93NUMPY": "a NumPy array; rename it to .npy",
    b"PK\x03\x04": "a zip archive; save an Excel workbook as CSV, or rename NumPy arrays to .npz",
    b"\x1f\x8b": "a gzip file; decompress it first",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save it as CSV",
    b"\x89HDF": "an HDF5 file; save the array as .npy",
}
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


# ---------------------------------------------------------------------------- cells


def is_number(cell: str) -> bool:
    """Return whether a cell is a finite number; "nan" and "1_000" are not."""
    return NUMBER.fullmatch(cell) is not None and math.isfinite(float(cell))


def escape_formula(text: str) -> str:
    """Prefix a cell with ``'`` if a spreadsheet might run it as a formula.

    Finite numbers, such as the label "-1", are not changed.

    Examples
    --------
    >>> from orthodrome.app.inputs.text import escape_formula
    >>> escape_formula("=1+1"), escape_formula("-1.5"), escape_formula("ash")
    ("'=1+1", '-1.5', 'ash')
    """
    return f"'{text}" if _is_formula(text.lstrip("'")) else text


def restore_formula(cell: str) -> str:
    """Undo :func:`escape_formula`.

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
    """A text table. Records are read from the file each time they are iterated over."""

    path: str
    encoding: str
    separator: str
    names: tuple[str, ...] = ()
    has_header: bool = False
    notes: tuple[str, ...] = ()
    # False if there are zero bytes or a very long line, which pandas would accept silently
    plain: bool = True

    def open(self) -> TextIO:
        """Open the file."""
        # five bytes are undefined in cp1252; replace them so that numbers can still be read
        errors = "replace" if self.encoding == "cp1252" else "strict"
        return open(self.path, encoding=self.encoding, errors=errors, newline="")

    def raw_records(self, file: TextIO) -> Iterator[tuple[int, list[str]]]:
        """Yield, for each record that is not blank, the number of its first line and its cells."""
        reader = csv.reader(self._lines(file), delimiter=self.separator, strict=True)
        line = 1
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as problem:
                raise InputError(
                    f"{self.path}, line {line}: {problem}. Look, here or above, for a quote that "
                    "is not closed, or not doubled inside a quoted cell."
                ) from None
            except UnicodeError:
                raise InputError(
                    f"{self.path}, line {line}: the text is not {self.encoding}. Save the file as "
                    "CSV in UTF-8."
                ) from None
            if cells is None:
                return
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line number and the cells of each record after the header."""
        with self.open() as file:
            for line, cells in islice(self.raw_records(file), int(self.has_header), None):
                if len(cells) != len(self.names):
                    raise self._ragged_line_error(line, cells)
                yield line, cells

    def _lines(self, file: TextIO) -> Iterator[str]:
        for number, line in enumerate(iter(lambda: file.readline(_MAX_LINE), ""), start=1):
            if len(line) == _MAX_LINE:
                raise InputError(
                    f"{self.path}, line {number}: the line is longer than {_MAX_LINE} "
                    "characters. Write one line for each row."
                )
            if "\0" in line:
                raise InputError(
                    f"{self.path}, line {number}: the line has zero bytes, so the file is binary "
                    "or damaged. Save the data as CSV in UTF-8."
                )
            # not split(), which also splits at no-break spaces inside names
            if self.separator == BLANKS:
                line = " ".join(filter(None, line.strip().split(BLANKS))) + "\n"
            yield line

    def _ragged_line_error(self, line: int, cells: list[str]) -> InputError:
        first = "header" if self.has_header else "first line"
        extra = len(cells) == len(self.names) + 1 and self.has_header
        advice = ". If the first column holds row names, name that column too"
        return InputError(
            f"{self.path}, line {line}: the line has {len(cells)} cells, but the {first} has "
            f"{len(self.names)}, separated by {_SEPARATORS[self.separator]}. Correct the line, or "
            f"put quotes around cells that contain the separator{advice if extra else ''}."
        )


def open_table(path: Path) -> TextTable:
    """Find the encoding, the separator and the header of a text file."""
    encoding, notes, plain = _encoding(path)
    bare = TextTable(str(path), encoding, _separator(str(path), encoding), plain=plain)
    with bare.open() as file:
        line, cells = next(bare.raw_records(file), (1, []))
    if not cells:
        raise InputError(f"{path} is empty. A table needs a header and one line for each row.")
    names = [restore_formula(cell.strip()) for cell in cells]
    has_header = not _all_numbers(names, bare.separator) or _are_default_names(names)
    if not has_header:
        names = list(column_names(len(cells)))
        notes.append(
            "The first line has only numbers, so there is no header. The columns are called "
            f"{format_names(names, 3)}."
        )
    elif sum(map(is_number, names)) > len(names) / 2:
        notes.append(
            "The first line was used as the header, although most of its cells are numbers: "
            f"{format_names(names, 4)}. If it is data, add a line with column names above it."
        )
    _check_names(f"{path}, line {line}", names)
    return replace(bare, names=tuple(names), has_header=has_header, notes=tuple(notes))


def _all_numbers(cells: list[str], separator: str) -> bool:
    """Return whether all cells are numbers; decimal commas are allowed."""
    return all(is_number(cell if separator == "," else cell.replace(",", ".", 1)) for cell in cells)


def _are_default_names(cells: list[str]) -> bool:
    """Return whether the names are 0, 1, 2, …, the default of pandas."""
    return len(cells) > 2 and cells == [str(number) for number in range(len(cells))]


def _check_names(where: str, names: list[str]) -> None:
    for position, name in enumerate(names):
        if not name and position:
            raise InputError(
                f"{where}: column {position + 1} of the header has no name. Name it, or remove "
                "separators at the end of the lines."
            )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        columns = [str(i + 1) for i, name in enumerate(names) if name == twice]
        raise InputError(
            f"{where}: columns {' and '.join(columns)} are called {quote(twice)}. Give "
            "each column a different name."
        )


# ---------------------------------------------------------------------------- encoding, separator


def _encoding(path: Path) -> tuple[str, list[str], bool]:
    """Return the encoding of a text file, notes, and whether its lines are plain."""
    with path.open("rb") as file:
        head = file.read(_SNIFFED_BYTES)
    for magic, what in _BINARY.items():
        if head.startswith(magic):
            raise InputError(f"{path} is not a text table but {what}.")
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding, [], True
    if b"\0" in head:
        raise InputError(
            f"{path} is not a text table: it has zero bytes, so it is binary, or UTF-16 without a "
            "byte order mark. Save the data as CSV in UTF-8."
        )
    is_utf8, plain = _scan(path)
    if is_utf8:
        return "utf-8", [], plain
    note = (
        "The file is not UTF-8 and was read as Windows-1252 (Latin-1). Check letters with accents. "
        "If they are wrong, save the file as UTF-8."
    )
    return "cp1252", [note], plain


def _scan(path: Path) -> tuple[bool, bool]:
    """Return whether a file is UTF-8, and whether it has no zero bytes and no very long line."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8, plain, length, chunk = True, True, 0, b"\n"
    with path.open("rb") as file:
        while chunk:
            chunk = file.read(_CHUNK)
            length = 0 if b"\n" in chunk or b"\r" in chunk else length + len(chunk)
            plain = plain and b"\0" not in chunk and length < _MAX_LINE
            try:
                if is_utf8:
                    decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError:
                is_utf8 = False
    return is_utf8, plain


def _separator(path: str, encoding: str) -> str:
    """Return the first separator that splits the first records into equally many cells.

    If there is none, the table has one column, or ragged lines, which raise an error later.
    """
    widest, best = 0, ","
    for separator in _SEPARATORS:
        table = TextTable(path, encoding, separator)
        try:
            with table.open() as file:
                records = islice(table.raw_records(file), _SNIFFED_RECORDS)
                widths = [len(cells) for _, cells in records]
        except InputError:  # the quotes do not fit this separator
            continue
        if widths and widths[0] > 1 and len(set(widths)) == 1:
            return separator
        if separator != BLANKS and max(widths[:1], default=0) >= max(widest, 2):
            widest, best = widths[0], separator
    return best
