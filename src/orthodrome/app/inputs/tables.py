"""Read text tables (csv, tsv, txt) and parquet files with pandas."""

from __future__ import annotations

import codecs
import csv
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ...plots._matplotlib import require
from ...preprocessing import MISSING, THOUSANDS
from . import checks
from .checks import format_names, quote
from .data import InputError, RawTable

_SNIFFED_BYTES = 1 << 16
_SNIFFED_RECORDS = 20
_CHUNK = 1 << 20
_MAX_LINE = 1 << 24  # 16 MiB, about a million numbers
_BLANKS = " "
# In order of preference. The comma comes late because cells often contain commas.
_SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma", _BLANKS: "blank"}
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
# Spreadsheets may run a cell that starts with =, +, -, @ or tab (CWE-1236). Line breaks and the
# full-width forms of these characters are included to be safe.
_FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
# Bytes per row in addition to its numbers (its name and perhaps its label), and per column.
_BYTES_PER_ROW, _BYTES_PER_COLUMN = 200, 7000
_COPIES = 3  # copies in memory: what pandas reads, the columns, and the final array
_MISSING_CELLS = sorted({form for cell in MISSING for form in (cell, cell.upper(), cell.title())})
# The first line of some files for Excel.
_DECLARED_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")


def read_table(
    path: Path, *, label: str | None = None, columns: Sequence[str] | None = None
) -> RawTable:
    """Read a text table (csv, tsv, txt); see :func:`read_data`."""
    table = open_table(path)
    names = table.names
    chosen = checks.choose_columns(table.path, names, label, columns)
    rows, width = _estimated_rows(path), len(names)
    checks.check_memory(
        rows * (_COPIES * 8 * len(chosen.features) + _BYTES_PER_ROW) + width * _BYTES_PER_COLUMN,
        f"{path}, about {rows:.0f} rows,",
        f"Use a sample of the rows, or fewer of its {width} columns (--columns).",
    )
    decimal, notes = ".", table.notes
    frame = _read_frame(table, chosen, decimal)
    texts = frame[list(chosen.features)].select_dtypes(exclude=["number", "bool"])
    if table.separator != "," and any(
        texts[i].dropna().map(_COMMA_NUMBER.fullmatch).notna().any() for i in texts
    ):
        decimal, notes = ",", (*notes, "Numbers were read with decimal commas.")
        frame = _read_frame(table, chosen, decimal)
    if frame.empty:
        raise InputError(
            f"{table.path} has a header but no rows. Its columns are {format_names(names)}."
        )
    features = frame[list(chosen.features)].set_axis([names[i] for i in chosen.features], axis=1)
    problems = (_invalid_number(table, features[name], decimal) for name in features)
    cells = {i: [restore_formula(cell.strip()) for cell in frame[i]] for i in chosen.texts}
    return RawTable(
        table.path,
        features,
        checks.row_names(len(frame)) if chosen.ids is None else tuple(cells[chosen.ids]),
        None if chosen.label is None else cells[chosen.label],
        label,
        None if chosen.ids is None else names[chosen.ids] or "(no name)",
        notes,
        locate=lambda row: table.record(row)[0],
        problem=next(filter(None, problems), ""),
    )


def _estimated_rows(path: Path) -> float:
    with path.open("rb") as file:
        head = file.read(_SNIFFED_BYTES)
    return path.stat().st_size * max(head.count(b"\n"), 1) / len(head)


def _read_frame(table: TextTable, chosen: checks.Selection, decimal: str) -> Any:
    """Read each column as numbers (NaN if missing) or, if not all are numbers, text (None)."""
    frame = _read_with_pandas(table, chosen, decimal)
    for i in chosen.features:
        if frame[i].dtype.kind in "fiub":
            continue
        cells = frame[i].map(str, na_action="ignore").str.strip().astype(object)
        cells = cells.where(cells.notna() & ~cells.str.lower().isin(MISSING), None)
        numbers = [None if cell is None else _number(cell, decimal) for cell in cells]
        is_text = any(each is not None and math.isnan(each) for each in numbers)
        frame[i] = cells if is_text else np.array(numbers, dtype=np.float64)
    return frame


def _read_with_pandas(table: TextTable, chosen: checks.Selection, decimal: str) -> Any:
    pandas = require("pandas", "Tables", "cli")
    width = len(table.names)
    # before 3.1, the default parser sometimes makes an error in the last bit
    is_old = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    try:
        with table.open() as file, warnings.catch_warnings():
            warnings.simplefilter("error")  # pandas warns if it drops cells
            if table.has_header:
                next(table.raw_records(file))
            frame = pandas.read_csv(
                file,
                sep=r"\s+" if table.separator == _BLANKS else table.separator,
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
    except (ValueError, OverflowError, Warning) as problem:
        table.check_records()
        raise InputError(f"{table.path} is not a valid table: {problem}.") from None
    last = frame[width - 1]
    if (last.isna() | (last == "")).any():
        table.check_records()  # pandas pads lines with too few cells
        frame = frame[~(frame.isna() | (frame == "")).all(axis=1)]  # blank lines
    return frame.reset_index(drop=True)


def _invalid_number(table: TextTable, column: Any, decimal: str) -> str:
    """Return an error message if a column of numbers has infinite values or text; else ""."""
    if column.dtype.kind in "fiub":
        invalid = np.isinf(column.to_numpy(dtype=np.float64))
    else:
        cells = [c.replace(",", "") if c and THOUSANDS.fullmatch(c) else c for c in column]
        numbers = [math.nan if cell is None else _number(cell, decimal) for cell in cells]
        present = column.notna().to_numpy()
        invalid = ~np.isfinite(numbers) & present
        if 2 * (np.isnan(numbers) & present).sum() > present.sum():  # a column of text
            return ""
    if not invalid.any():
        return ""
    where, record = table.record(int(np.argmax(invalid)))
    return (
        f"{table.path}, {where}, column {quote(column.name)}: "
        f"{quote(record[table.names.index(column.name)])} is not a finite number"
        f"{' with a decimal comma' if decimal == ',' else ''}, but other cells of the column are. "
        "Correct it, or leave the column out (--columns)."
    )


def _number(cell: str, decimal: str = ".") -> float:
    """Return a cell as a number, NaN if it is none; with decimal commas, points are invalid."""
    if decimal == ",":
        cell = cell.replace(".", " ").replace(",", ".")
    return float(cell) if _NUMBER.fullmatch(cell) else math.nan


# ---------------------------------------------------------------------------- cells


def is_number(cell: str) -> bool:
    """Return whether a cell is a finite number; "nan" and "1_000" are not."""
    return math.isfinite(_number(cell))


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
    """A text table. Records are read from the file each time they are iterated over.

    The first `skipped` lines are not part of the table.
    """

    path: str
    encoding: str
    separator: str
    names: tuple[str, ...] = ()
    has_header: bool = False
    notes: tuple[str, ...] = ()
    skipped: int = 0

    def open(self) -> TextIO:
        """Open the file at the first line of the table."""
        # five bytes are undefined in cp1252; replace them so that numbers can still be read
        errors = "replace" if self.encoding == "cp1252" else "strict"
        file = open(  # noqa: SIM115, the caller closes it
            self.path, encoding=self.encoding, errors=errors, newline=""
        )
        for _ in range(self.skipped):
            file.readline()
        return file

    def raw_records(self, file: TextIO) -> Iterator[tuple[int, list[str]]]:
        """Yield, for each record that is not blank, the number of its first line and its cells."""
        # not split(), which also splits at no-break spaces inside names
        lines = (" ".join(filter(None, line.strip().split(_BLANKS))) + "\n" for line in file)
        reader = csv.reader(
            lines if self.separator == _BLANKS else file, delimiter=self.separator, strict=True
        )
        line = self.skipped + 1
        while True:
            try:
                cells = next(reader, None)
            except (csv.Error, UnicodeError) as problem:
                raise InputError(
                    f"{self.path}, line {line}: {problem}. Look, here or above, for a quote that "
                    "is not closed or not doubled inside a cell. Save the file as CSV in UTF-8."
                ) from None
            if cells is None:
                return
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = self.skipped + reader.line_num + 1

    def first_record(self) -> tuple[int, list[str]]:
        """Return the line number and the cells of the first record; no cells if there is none."""
        with self.open() as file:
            return next(self.raw_records(file), (1, []))

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line number and the cells of each record after the header."""
        first = "header" if self.has_header else "first line"
        with self.open() as file:
            for line, cells in islice(self.raw_records(file), int(self.has_header), None):
                if len(cells) != len(self.names):
                    raise InputError(
                        f"{self.path}, line {line}: the line has {len(cells)} cells, but the "
                        f"{first} has {len(self.names)}, separated by "
                        f"{_SEPARATORS[self.separator]}. Correct the line, put quotes around cells "
                        "that contain the separator, or name all columns, also that of row names."
                    )
                yield line, cells

    def check_records(self) -> None:
        """Raise if a record has too few or too many cells, or an open quote."""
        for _ in self.records():
            pass

    def record(self, row: int) -> tuple[str, list[str]]:
        """Return the place of a row in the file, for messages, and its cells."""
        line, cells = next(islice(self.records(), row, None))
        return f"line {line} (data row {row + 1})", cells


def open_table(path: Path) -> TextTable:
    """Find the encoding, the separator and the header of a text file."""
    encoding, notes = _encoding(path)
    skipped, comment, declared = _preamble(str(path), encoding)
    separator = declared or _separator(str(path), encoding, skipped)
    bare = TextTable(str(path), encoding, separator, skipped=skipped)
    line, cells = bare.first_record()
    decimal = "." if separator == "," else ","
    width = len(comment.split(None if separator == _BLANKS else separator))
    has_number = any(is_number(cell.replace(decimal, ".", 1)) for cell in cells)
    if comment and width == len(cells) and has_number:  # a header, whose first name begins with #
        bare = replace(bare, skipped=skipped - 1)
        line, cells = bare.first_record()
    if not cells:
        raise InputError(f"{path} is empty. A table needs a header and one line for each row.")
    names = [restore_formula(cell.strip()) for cell in cells]
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
    for position, name in enumerate(names):
        if name in names[:position] or (position and not name):
            raise InputError(
                f"{path}, line {line}: column {position + 1} of the header "
                f"{f'is called {quote(name)} like another' if name else 'has no name'}. Give each "
                "column a different name, and remove separators at the end of the lines."
            )
    return replace(bare, names=tuple(names), has_header=has_header, notes=tuple(notes))


# ---------------------------------------------------------------------------- encoding, separator


def _encoding(path: Path) -> tuple[str, list[str]]:
    """Return the encoding of a text file, and notes; raise if the file is binary."""
    with path.open("rb") as file:
        head = file.read(_SNIFFED_BYTES)
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding, []
    decoder, is_utf8 = codecs.getincrementaldecoder("utf-8")(), True
    line, length, chunk = 1, 0, b"\n"
    with path.open("rb") as file:
        while chunk:
            chunk = file.read(_CHUNK)
            length = 0 if b"\n" in chunk or b"\r" in chunk else length + len(chunk)
            if b"\0" in chunk or length >= _MAX_LINE:
                line += chunk[: max(chunk.find(b"\0"), 0)].count(b"\n")
                raise InputError(
                    f"{path}, line {line}: the line has zero bytes or is longer than {_MAX_LINE} "
                    "bytes, so this is not a text table. Save Excel workbooks, archives and other "
                    "binary files as CSV in UTF-8. Names of parquet and NumPy files must end in "
                    ".parquet, .npy or .npz."
                )
            line += chunk.count(b"\n")
            try:
                if is_utf8:
                    decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError:
                is_utf8 = False
    if is_utf8:
        return "utf-8", []
    note = (
        "The file is not UTF-8 and was read as Windows-1252 (Latin-1). Check letters with accents. "
        "If they are wrong, save the file as UTF-8."
    )
    return "cp1252", [note]


def _preamble(path: str, encoding: str) -> tuple[int, str, str | None]:
    """Return the number of lines before the table, the last comment, and the declared separator.

    Comments begin with #; the last one is "" unless the table follows it. The first line may
    declare the separator, as in ``sep=;``.
    """
    skipped, comment, declared = 0, "", None
    with TextTable(path, encoding, ",").open() as file, suppress(UnicodeError):
        for line in file:
            found = None if skipped else _DECLARED_SEPARATOR.fullmatch(line.rstrip("\r\n"))
            if found and found[1] in _SEPARATORS:
                declared = found[1]
            elif line.strip() and not line.startswith("#"):
                break
            skipped, comment = skipped + 1, line if line.startswith("#") else ""
    return skipped, comment, declared


def _separator(path: str, encoding: str, skipped: int) -> str:
    """Return the first separator that splits the first records into the same number of cells.

    If there is none, the table has one column, or ragged lines, which raise an error later.
    """
    widest, best = 0, ","
    for separator in _SEPARATORS:
        table = TextTable(path, encoding, separator, skipped=skipped)
        try:
            with table.open() as file:
                records = islice(table.raw_records(file), _SNIFFED_RECORDS)
                widths = [len(cells) for _, cells in records]
        except InputError:  # the quotes do not fit this separator
            continue
        if widths and widths[0] > 1 and len(set(widths)) == 1:
            return separator
        if separator != _BLANKS and max(widths[:1], default=0) >= max(widest, 2):
            widest, best = widths[0], separator
    return best


def read_parquet(path: Path, *, label: str | None, columns: Sequence[str] | None) -> RawTable:
    """Read a table from a parquet file; see :func:`read_data`."""
    parquet = require("pyarrow.parquet", "Parquet files", "cli")
    pandas = require("pandas", "Tables", "cli")
    try:
        n, names = parquet.read_metadata(path).num_rows, parquet.read_schema(path).names
        wanted = names if columns is None else [*columns, *([] if label is None else [label])]
        is_known = columns is not None and set(wanted) <= set(names)
        advice = "Use a sample of the rows, or fewer columns (--columns)."
        checks.check_memory(2 * 8 * n * len(wanted) + 200 * n, f"{path}, {n} rows,", advice)
        frame = pandas.read_parquet(path, columns=wanted if is_known else None)
    except (InputError, PermissionError):
        raise
    except Exception as problem:  # pyarrow raises many kinds of errors for damaged files
        raise InputError(
            f"{path} is not a valid parquet file: {' '.join(str(problem).split())}. Save it again."
        ) from None
    names = tuple(map(str, frame.columns))
    if frame.empty:
        raise InputError(f"{path} has columns but no rows: {format_names(names)}.")
    frame.columns = names
    chosen = checks.choose_columns(str(path), names, label, columns)
    id_name, ids = None, checks.row_names(n)
    if not isinstance(frame.index, pandas.RangeIndex):
        id_name, ids = str(frame.index.name or "index"), tuple(map(str, frame.index))
    elif chosen.ids is not None:
        id_name, ids = names[chosen.ids], tuple(map(str, frame[names[chosen.ids]]))
    labels = None
    if label is not None:
        labels = frame[label].map(str, na_action="ignore").astype(object).fillna("").tolist()
    values = frame[[names[i] for i in chosen.features]].reset_index(drop=True)
    numbers = values.select_dtypes("number")
    infinite = checks.infinite_value(str(path), numbers.to_numpy(), tuple(numbers))
    return RawTable(str(path), values, ids, labels, label, id_name, problem=infinite)
