"""Tables of text as arrays: pandas reads them, and what it refuses is found with its line."""

from __future__ import annotations

import math
import warnings
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plots._extras import require
from .data import (
    Data,
    InputError,
    Selection,
    check_memory,
    choose_columns,
    is_no_label,
    listed,
    missing_advice,
    numbered_rows,
    shown,
    text_advice,
)
from .text import BLANKS, TextTable, is_number, open_table, restore_formula

__all__ = ["read_table", "text_columns"]

# Cells that stand for a missing value, in lower case.
_MISSING = frozenset({"", "na", "n/a", "nan", "#n/a", "null", "none", "?", "-", ".", "missing"})
_INFINITE = frozenset({"inf", "infinity"})
# Bytes for each row besides its numbers: its name and perhaps its label, as text.
_BYTES_PER_ROW = 200
_COPIES = 2  # the chunks, and the array made of them
_CHUNK_CELLS = 1 << 20
_WIDEST = 2000  # columns; of more, pandas is slower than the csv module
# Cells as Python strings, relative to the bytes of the file.
_BYTES_PER_BYTE_OF_TEXT = 40


@dataclass
class _Columns:
    """The chosen columns of a table."""

    numbers: NDArray[np.float64]
    texts: dict[int, list[str]]  # labels and names of the rows, by position
    decimal: str


def read_table(
    path: Path, *, label: str | None = None, columns: Sequence[str] | None = None
) -> Data:
    """Read a table of text (csv, tsv, txt); see :func:`read_data`."""
    table = open_table(path)
    selection = choose_columns(table.path, table.names, label, columns)
    check_memory(
        table.rows * (_COPIES * 8 * len(selection.features) + _BYTES_PER_ROW),
        f"{path}, about {table.rows:.0f} rows,",
        f"Take a sample of the rows, or fewer of its {len(table.names)} columns with --columns.",
    )
    found = _by_pandas(table, selection) or _by_hand(table, selection)
    notes = list(table.notes)
    if found.decimal == ",":
        notes.append("Numbers were read with decimal commas.")
    data = Data(
        table.path,
        "table",
        found.numbers,
        tuple(table.names[i] for i in selection.features),
        numbered_rows(len(found.numbers)),
        notes=tuple(notes),
    )
    if selection.label is not None:
        labels = np.array(found.texts[selection.label], dtype=np.str_)
        data = replace(data, labels=labels, label_name=table.names[selection.label])
    if selection.ids is not None:
        name = table.names[selection.ids] or "(no name)"
        data = replace(data, ids=tuple(found.texts[selection.ids]), id_name=name)
    return data


def text_columns(path: Path) -> tuple[TextTable, list[tuple[int, list[str]]]]:
    """Return a small table, such as one of labels, as text with line numbers."""
    table = open_table(path)
    check_memory(path.stat().st_size * _BYTES_PER_BYTE_OF_TEXT, str(path), "")
    rows = [
        (line, [restore_formula(cell.strip()) for cell in cells]) for line, cells in table.records()
    ]
    if not rows:
        raise InputError(f"{path} has a header and no rows below it.")
    return table, rows


# ---------------------------------------------------------------------------- by pandas


def _by_pandas(table: TextTable, selection: Selection) -> _Columns | None:
    """Read the columns quickly; None if anything in the file needs a closer look."""
    first = next(table.records(), None)
    if first is None or not table.plain or len(table.names) > _WIDEST:
        return None
    cells = [first[1][i] for i in selection.features]
    for decimal in "." if table.separator == "," else ".,":
        # pandas reads True and False as numbers, if a column has nothing else
        if not all(is_number(cell.replace(decimal, ".")) for cell in cells):
            continue
        try:
            return _chunks(table, selection, decimal)
        except (ValueError, OverflowError, Warning):  # pandas warns before it drops cells
            continue
    return None


def _chunks(table: TextTable, selection: Selection, decimal: str) -> _Columns:
    pandas = require("pandas", "Tables", "cli")
    features, last = list(selection.features), len(table.names) - 1
    # before 3.1, the default parser is off by a last bit now and then
    old = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    numbers: list[NDArray[np.float64]] = []
    texts: dict[int, list[str]] = {i: [] for i in selection.texts}
    with table.open() as file, warnings.catch_warnings():
        warnings.simplefilter("error")
        if table.has_header:
            next(table.raw_records(file))
        for chunk in pandas.read_csv(
            file,
            sep=r"\s+" if table.separator == BLANKS else table.separator,
            decimal=decimal,
            header=None,
            names=range(last + 1),
            index_col=False,
            dtype=dict.fromkeys(range(last + 1), object) | dict.fromkeys(features, np.float64),
            keep_default_na=False,
            chunksize=max(_CHUNK_CELLS // (last + 1), 1),
            **({"float_precision": "round_trip"} if old else {}),
        ):
            numbers.append(chunk[features].to_numpy(dtype=np.float64))
            for i, column in texts.items():
                column.extend(restore_formula(cell.strip()) for cell in chunk[i])
            # a line with too few cells is padded with empty ones
            if last not in features and (chunk[last] == "").any():
                raise ValueError("perhaps a short line")
    found = np.ascontiguousarray(np.concatenate(numbers))
    labels = [] if selection.label is None else texts[selection.label]
    if not np.isfinite(found).all() or any(map(is_no_label, labels)):
        raise ValueError("a missing or infinite value")
    return _Columns(found, texts, decimal)


# ---------------------------------------------------------------------------- record by record


class _DecimalCommas(Exception):
    """A number with a decimal comma was found."""


def _by_hand(table: TextTable, selection: Selection) -> _Columns:
    """Read the columns record by record; errors name the line, the row and the column."""
    try:
        return _Reading(table, selection, ".").run()
    except _DecimalCommas:
        return _Reading(table, selection, ",").run()


class _Reading:
    """One pass over the records."""

    def __init__(self, table: TextTable, selection: Selection, decimal: str) -> None:
        self.table, self.selection, self.decimal = table, selection, decimal
        self.names = [table.names[i] for i in selection.features]
        self.n_rows = 0

    def run(self) -> _Columns:
        positions = self.selection.features
        pick: Any = itemgetter(*positions)
        if len(positions) == 1:
            pick = itemgetter(slice(positions[0], positions[0] + 1))
        numbers = array("d")
        texts: dict[int, list[str]] = {i: [] for i in self.selection.texts}
        for line, cells in self.table.records():
            self.n_rows += 1
            numbers.extend(self._numbers(line, pick(cells)))
            for i, column in texts.items():
                column.append(restore_formula(cells[i].strip()))
                if i == self.selection.label and is_no_label(column[-1]):
                    where = self._place(line, self.table.names[i])
                    raise InputError(f"{where}: there is no label. Complete it, or remove the row.")
        if not self.n_rows:
            raise InputError(
                f"{self.table.path} has a header and no rows of data. Its columns are "
                f"{listed(self.table.names)}."
            )
        X = np.frombuffer(numbers, dtype=np.float64).reshape(self.n_rows, -1).copy()
        return _Columns(X, texts, self.decimal)

    def _place(self, line: int, column: str) -> str:
        return f"{self.table.path}, line {line} (data row {self.n_rows}), column {shown(column)}"

    def _numbers(self, line: int, cells: Sequence[str]) -> list[float]:
        try:
            values = [float(self._with_point(cell)) for cell in cells]
        except ValueError:
            values = [math.nan]
        # Python reads 1_000 as a thousand, and "nan" and "1e999" without an error
        if not math.isfinite(sum(values)) or "_" in "".join(cells):
            for name, cell in zip(self.names, cells, strict=True):
                if not is_number(self._with_point(cell)):
                    raise self._refusal(f"{self._place(line, name)}: ", cell)
        return values

    def _with_point(self, cell: str) -> str:
        """Return a number as Python writes it; one with a point is not one among decimal commas."""
        if self.decimal == ".":
            return cell
        return "." if "." in cell else cell.replace(",", ".")

    def _refusal(self, where: str, cell: str) -> Exception:
        """Return the error for a cell that is not a finite number."""
        text, number = cell.strip().lower(), cell.replace(",", ".")
        commas = self.table.separator != "," and cell.count(",") == 1 and "." not in cell
        if self.decimal == "." and commas and is_number(number):
            return _DecimalCommas()
        if self.decimal == "," and is_number(cell):
            return InputError(
                f"{where}{shown(cell)} has a decimal point, and other numbers of the file have "
                "decimal commas. Write all of them with a point."
            )
        if text.lstrip("+-") in _INFINITE or _is_too_large(number):
            return InputError(
                f"{where}{shown(cell)} is infinite, or too large for a number of 64 bits. "
                "Correct it, or remove the row."
            )
        if text in _MISSING:
            counts = self._counts(lambda text: text.strip().lower() in _MISSING)
            return InputError(
                f"{where}the value is missing ({shown(cell)}). {missing_advice(counts)}"
            )
        counts = self._counts(
            lambda text: (
                not is_number(self._with_point(text)) and text.strip().lower() not in _MISSING
            )
        )
        texts = [column for column in self.names if counts[column]]
        numbers = [column for column in self.names if not counts[column]]
        return InputError(f"{where}{shown(cell)} is not a number. {text_advice(texts, numbers)}")

    def _counts(self, holds: Callable[[str], bool]) -> dict[str, int]:
        """Count the cells of each feature, in the whole file, for which `holds`."""
        counts = dict.fromkeys(self.names, 0)
        for _, cells in self.table.records():
            for name, position in zip(self.names, self.selection.features, strict=True):
                counts[name] += holds(cells[position])
        return counts


def _is_too_large(number: str) -> bool:
    try:
        return "_" not in number and math.isinf(float(number))
    except ValueError:
        return False
