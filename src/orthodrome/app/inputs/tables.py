"""Read text tables (csv, tsv, txt): pandas reads them, and our code finds the line of an error."""

from __future__ import annotations

import codecs
import csv
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ...plots._extras import require
from ...preprocessing import MISSING
from . import checks
from .checks import format_names, quote
from .data import InputError, RawTable

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


_INFINITE = frozenset({"inf", "infinity"})
# Bytes per row in addition to its numbers: its name and perhaps its label.
_BYTES_PER_ROW = 200
_COPIES = 3  # what pandas reads, the columns, and the array made from them
_MAX_PANDAS_COLUMNS = 20_000  # with more, pandas needs much memory
_MISSING_CELLS = sorted({form for cell in MISSING for form in (cell, cell.upper(), cell.title())})
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")


def read_table(
    path: Path, *, label: str | None = None, columns: Sequence[str] | None = None
) -> RawTable:
    """Read a text table (csv, tsv, txt); see :func:`read_data`."""
    table = open_table(path)
    chosen = checks.choose_columns(table.path, table.names, label, columns)
    rows = _estimated_rows(path)
    checks.check_memory(
        rows * (_COPIES * 8 * len(chosen.features) + _BYTES_PER_ROW),
        f"{path}, about {rows:.0f} rows,",
        f"Use a sample of the rows, or fewer of its {len(table.names)} columns (--columns).",
    )
    decimal, notes = ".", table.notes
    frame = _read_frame(table, chosen, decimal)
    if table.separator != "," and _has_comma_numbers(frame, chosen):
        decimal, notes = ",", (*notes, "Numbers were read with decimal commas.")
        frame = _read_frame(table, chosen, decimal)
    if frame.empty:
        raise InputError(
            f"{table.path} has a header but no rows. Its columns are {format_names(table.names)}."
        )
    features = frame[list(chosen.features)]
    problems = (_invalid_number(table, features[i], i, decimal) for i in chosen.features)
    texts = {i: [restore_formula(cell.strip()) for cell in frame[i]] for i in chosen.texts}
    return RawTable(
        table.path,
        features.set_axis([table.names[i] for i in chosen.features], axis=1),
        checks.row_names(len(frame)) if chosen.ids is None else tuple(texts[chosen.ids]),
        None if chosen.label is None else texts[chosen.label],
        label,
        None if chosen.ids is None else table.names[chosen.ids] or "(no name)",
        notes,
        locate=partial(_locate, table),
        problem=next(filter(None, problems), ""),
    )


def _locate(table: TextTable, row: int) -> str:
    line, _ = next(islice(table.records(), row, None))
    return f"line {line} (data row {row + 1})"


def _estimated_rows(path: Path) -> float:
    with path.open("rb") as file:
        head = file.read(_SNIFFED_BYTES)
    return path.stat().st_size * max(head.count(b"\n"), 1) / len(head)


def _read_frame(table: TextTable, chosen: checks.Selection, decimal: str) -> Any:
    """Read all columns as numbers, with NaN for missing cells, or as text, with None."""
    frame = _read_with_pandas(table, chosen, decimal)
    if frame is None:
        pandas = require("pandas", "Tables", "cli")
        records = [cells for _, cells in table.records()]
        frame = pandas.DataFrame(records, columns=range(len(table.names)), dtype=object)
    for i in chosen.features:
        if frame[i].dtype.kind in "fiub":
            continue
        cells = frame[i].map(str, na_action="ignore").str.strip()
        present = cells.notna() & ~cells.str.lower().isin(MISSING)
        numbers = [_with_point(cell, decimal) for cell in cells[present]]
        frame[i] = cells.astype(object).where(present, None)
        if all(map(is_number, numbers)):
            values = np.full(len(frame), np.nan)
            values[present.to_numpy(dtype=bool)] = list(map(float, numbers))
            frame[i] = values
    return frame


def _read_with_pandas(table: TextTable, chosen: checks.Selection, decimal: str) -> Any:
    """Read all columns quickly; return None if the file needs the slower reader."""
    pandas = require("pandas", "Tables", "cli")
    width = len(table.names)
    if not table.plain or width > _MAX_PANDAS_COLUMNS:
        return None
    # before 3.1, the default parser sometimes makes an error in the last bit
    is_old = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    try:
        with table.open() as file, warnings.catch_warnings():
            warnings.simplefilter("error")  # pandas warns if it drops cells
            if table.has_header:
                next(table.raw_records(file))
            frame = pandas.read_csv(
                file,
                sep=r"\s+" if table.separator == BLANKS else table.separator,
                decimal=decimal,
                header=None,
                names=range(width),
                index_col=False,
                dtype=dict.fromkeys(chosen.texts, object),
                keep_default_na=False,
                na_values=dict.fromkeys(chosen.features, _MISSING_CELLS),
                low_memory=False,
                float_precision="round_trip" if is_old else None,
            )
    except (ValueError, OverflowError, Warning):
        return None
    last = frame[width - 1]
    if (last.isna() | (last == "")).any():
        for _ in table.records():  # pandas pads lines with too few cells
            pass
        frame = frame[~(frame.isna() | (frame == "")).all(axis=1)]  # blank lines
    return frame.reset_index(drop=True)


def _has_comma_numbers(frame: Any, chosen: checks.Selection) -> bool:
    """Return whether a feature has a number with a decimal comma."""
    for i in chosen.features:
        if frame[i].dtype.kind not in "fiub":
            cells = frame[i].dropna().astype(str).str.strip()
            if cells.map(_COMMA_NUMBER.fullmatch).notna().any():
                return True
    return False


def _invalid_number(table: TextTable, column: Any, position: int, decimal: str) -> str:
    """Return where a number is infinite, or where a column of numbers has text; else ""."""
    if column.dtype.kind in "fiub":
        if not np.isinf(column.to_numpy(dtype=np.float64)).any():
            return ""
    else:
        cells = [_with_point(cell, decimal) for cell in column.dropna().astype(str)]
        n_numbers = sum(NUMBER.fullmatch(cell) is not None for cell in cells)
        if n_numbers < len(cells) / 2 or all(map(is_number, cells)):
            return ""
    for row, (line, cells) in enumerate(table.records(), start=1):
        cell, number = cells[position], _with_point(cells[position], decimal)
        text = cell.strip().lower()
        if text in MISSING or is_number(number):
            continue
        if is_number(cell):
            reason = "has a decimal point, but other numbers of the file have decimal commas"
            advice = "Use decimal points for all numbers."
        elif NUMBER.fullmatch(number) or text.lstrip("+-") in _INFINITE:
            reason, advice = "is infinite or too large", "Correct it, or remove the row."
        else:
            reason = "is not a number, but other cells of the column are"
            advice = "Correct it, or leave the column out (--columns)."
        return (
            f"{table.path}, line {line} (data row {row}), column {quote(table.names[position])}: "
            f"{quote(cell)} {reason}. {advice}"
        )
    return ""


def _with_point(cell: str, decimal: str) -> str:
    """Return a number with a decimal point; if commas are expected, a point is invalid."""
    if decimal == ".":
        return cell
    return "." if "." in cell else cell.replace(",", ".")


# ---------------------------------------------------------------------------- cells


def is_number(cell: str) -> bool:
    """Return whether a cell is a finite number; "nan" and "1_000" are not."""
    return NUMBER.fullmatch(cell) is not None and math.isfinite(float(cell))


def escape_formula(text: str) -> str:
    """Prefix a cell with ``'`` if a spreadsheet might run it as a formula.

    Finite numbers, such as the label "-1", are not changed.

    Examples
    --------
    >>> from orthodrome.app.inputs.tables import escape_formula
    >>> escape_formula("=1+1"), escape_formula("-1.5"), escape_formula("ash")
    ("'=1+1", '-1.5', 'ash')
    """
    return f"'{text}" if _is_formula(text.lstrip("'")) else text


def restore_formula(cell: str) -> str:
    """Undo :func:`escape_formula`.

    Examples
    --------
    >>> from orthodrome.app.inputs.tables import restore_formula
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
            if len(line) == _MAX_LINE or "\0" in line:
                problem = (
                    "has zero bytes" if "\0" in line else f"is longer than {_MAX_LINE} characters"
                )
                raise InputError(
                    f"{self.path}, line {number}: the line {problem}, so the file is binary or "
                    "damaged. Save the data as CSV in UTF-8, with one line for each row."
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
    decimal = "." if bare.separator == "," else ","
    # pandas writes 0, 1, 2, … for columns without names
    is_default = len(names) > 2 and names == [str(number) for number in range(len(names))]
    has_header = is_default or not all(is_number(name.replace(decimal, ".", 1)) for name in names)
    if not has_header:
        names = list(checks.column_names(len(cells)))
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
