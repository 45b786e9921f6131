"""Tables of text as arrays of numbers; what is not a number is refused where it stands."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np

from ..memory import memory_refusal
from .data import Data, InputError, listed, shown
from .selection import Selection, choose_columns, likely_label
from .text import (
    SNIFFED_BYTES,
    TextTable,
    is_no_label,
    is_number,
    open_table,
    place,
    restore_formula,
)

__all__ = ["MISSING", "missing_advice", "read_table", "text_columns"]

# What stands for a value that is not there, in lower case.
MISSING = frozenset({"", "na", "n/a", "nan", "#n/a", "null", "none", "?", "-", ".", "missing"})
_INFINITE = frozenset({"inf", "infinity"})
# Of each row beside its numbers: the number of its line, its id and perhaps its label as texts.
_BYTES_PER_ROW = 200
# The growing buffer, and the array that is cut out of it.
_COPIES = 2
# Cells as texts, each an object of Python, over the bytes of the file.
_BYTES_PER_BYTE_OF_TEXT = 40


class _DecimalCommas(Exception):
    """A number with a decimal comma was met; the table is to be read again so."""


def read_table(
    path: Path, *, label: str | None = None, columns: Sequence[str] | None = None
) -> Data:
    """Read a table of text (csv, tsv, txt); see :func:`read_data`."""
    table = open_table(path)
    selection = choose_columns(table.path, table.names, label, columns)
    _refuse_large(path, table, selection)
    try:
        reading = _Reading(table, selection, decimal_comma=False)
        reading.run()
    except _DecimalCommas:
        reading = _Reading(table, selection, decimal_comma=True)
        reading.run()
    return reading.data()


class _Reading:
    """One pass over the records: numbers into a buffer, labels and ids as texts."""

    def __init__(self, table: TextTable, selection: Selection, *, decimal_comma: bool) -> None:
        self.table, self.selection, self.decimal_comma = table, selection, decimal_comma
        self.names = [table.names[i] for i in selection.features]
        self.numbers = array("d")
        self.n_rows = 0
        self.labels: list[str] = []
        self.ids: list[str] = []

    def run(self) -> None:
        """Read all records."""
        positions = self.selection.features
        pick = itemgetter(*positions) if len(positions) > 1 else lambda r: (r[positions[0]],)
        label, ids = self.selection.label, self.selection.ids
        for line, cells in self.table.records():
            self.n_rows += 1
            self._add(line, pick(cells))
            if label is not None:
                self.labels.append(self._label(line, restore_formula(cells[label].strip())))
            if ids is not None:
                self.ids.append(restore_formula(cells[ids].strip()))
        if not self.n_rows:
            raise InputError(
                f"{self.table.path} has a header and no rows of data. Its columns are "
                f"{listed(self.table.names)}."
            )

    def _add(self, line: int, cells: Sequence[str]) -> None:
        numbers = [self._with_point(cell) for cell in cells] if self.decimal_comma else cells
        try:
            values = list(map(float, numbers))
        except ValueError:
            self._refuse(line, cells)
            raise
        # Python reads 1_000 as a thousand, and "nan" and "1e999" without an error
        if not math.isfinite(sum(values)) or "_" in "".join(cells):
            self._refuse(line, cells)
        self.numbers.extend(values)

    def _with_point(self, cell: str) -> str:
        """Return a number as Python has it; one with a point is none among decimal commas."""
        if not self.decimal_comma:
            return cell
        return "." if "." in cell else cell.replace(",", ".")

    def _label(self, line: int, text: str) -> str:
        if not is_no_label(text):
            return text
        where = self._place(line, self._label_name)
        raise InputError(f"{where}: there is no label. Complete it, or remove the row.")

    @property
    def _label_name(self) -> str | None:
        position = self.selection.label
        return None if position is None else self.table.names[position]

    # ------------------------------------------------------------------ refusals

    def _place(self, line: int, name: str | None) -> str:
        return place(self.table.path, line, self.n_rows, name)

    def _refuse(self, line: int, cells: Sequence[str]) -> None:
        """Raise for the first cell of a record that is no finite number, if there is one."""
        for name, cell in zip(self.names, cells, strict=True):
            number = self._with_point(cell)
            if is_number(number) and math.isfinite(float(number)):
                continue
            if self._has_decimal_comma(cell):
                raise _DecimalCommas
            where, text = f"{self._place(line, name)}: ", cell.strip().lower()
            if self.decimal_comma and is_number(cell):
                raise InputError(
                    f"{where}{shown(cell)} has a decimal point, and other numbers of the file have "
                    "decimal commas. Write all of them with a point."
                )
            if is_number(number) or text.lstrip("+-") in _INFINITE:
                raise InputError(
                    f"{where}{shown(cell)} is infinite, or too large for a number of 64 bits. "
                    "Correct it, or remove the row."
                )
            if text in MISSING:
                counts = self._counts(lambda text: text.strip().lower() in MISSING)
                raise InputError(
                    f"{where}the value is missing ({shown(cell)}). {missing_advice(counts)}"
                )
            counts = self._counts(lambda text: not self._could_be_number(text))
            texts = [column for column in self.names if counts[column]]
            numbers = [column for column in self.names if not counts[column]]
            raise InputError(f"{where}{shown(cell)} is not a number. {text_advice(texts, numbers)}")

    def _has_decimal_comma(self, cell: str) -> bool:
        if self.decimal_comma or self.table.separator == ",":
            return False
        return cell.count(",") == 1 and "." not in cell and is_number(cell.replace(",", "."))

    def _could_be_number(self, text: str) -> bool:
        return is_number(self._with_point(text)) or text.strip().lower() in MISSING

    def _counts(self, holds: Callable[[str], bool]) -> dict[str, int]:
        """Count the cells of each feature, over the whole file, for which `holds`."""
        counts = dict.fromkeys(self.names, 0)
        places = list(zip(self.names, self.selection.features, strict=True))
        for _, cells in self.table.records():
            for name, position in places:
                counts[name] += holds(cells[position])
        return counts

    # ------------------------------------------------------------------ what was read

    def data(self) -> Data:
        """Return the data of a finished pass."""
        X = np.frombuffer(self.numbers, dtype=np.float64).reshape(self.n_rows, -1).copy()
        notes = list(self.table.notes)
        if self.decimal_comma:
            notes.append("Numbers were read with decimal commas.")
        id_name, ids = None, tuple(f"row {number + 1}" for number in range(self.n_rows))
        if self.selection.ids is not None:
            id_name, ids = self.table.names[self.selection.ids] or "(no name)", tuple(self.ids)
        labels = None if self.selection.label is None else np.array(self.labels, dtype=np.str_)
        return Data(
            self.table.path,
            "table",
            X,
            tuple(self.names),
            ids,
            labels,
            self._label_name,
            id_name,
            tuple(notes),
        )


def missing_advice(counts: dict[str, int]) -> str:
    """Return what to do about missing values; `counts` by the name of the column."""
    found = [name for name, count in counts.items() if count]
    complete = [name for name in counts if name not in found]
    total = sum(counts.values())
    return (
        f"In all, {total} of the values {'is' if total == 1 else 'are'} missing, in "
        f"{listed(found)}. Remove these rows, or fill the values in (impute; for instance "
        "sklearn.impute.SimpleImputer)"
        + (
            f", or take the complete columns alone with --columns: {listed(complete)}"
            * bool(complete)
        )
        + "."
    )


def text_advice(texts: Sequence[str], numbers: Sequence[str]) -> str:
    """Return what to do about columns of texts, beside those of numbers."""
    label = likely_label(texts)
    plural = len(texts) != 1
    return (
        f"Column{'s' * plural} with texts: {listed(texts)}. "
        + (f"If {shown(label)} holds the classes, say --label {shown(label)}. " if label else "")
        + "Otherwise encode the texts as numbers (for instance sklearn.preprocessing.OneHotEncoder)"
        + (
            f", or take the columns of numbers alone with --columns: {listed(numbers)}"
            * bool(numbers)
        )
        + "."
    )


def text_columns(path: Path) -> tuple[TextTable, list[tuple[int, list[str]]]]:
    """Return a small table, such as one of labels, as texts with the numbers of their lines."""
    table = open_table(path)
    refusal = memory_refusal(path.stat().st_size * _BYTES_PER_BYTE_OF_TEXT, str(path))
    if refusal:
        raise InputError(f"{refusal}.")
    rows = [
        (line, [restore_formula(cell.strip()) for cell in cells]) for line, cells in table.records()
    ]
    if not rows:
        raise InputError(f"{path} has a header and no rows below it.")
    return table, rows


def _refuse_large(path: Path, table: TextTable, selection: Selection) -> None:
    """Raise before reading if the numbers would not fit, judged by the first lines."""
    size = path.stat().st_size
    if size <= SNIFFED_BYTES:
        return
    with path.open("rb") as file:
        lines = max(file.read(SNIFFED_BYTES).count(b"\n"), 1)
    rows = size * lines / SNIFFED_BYTES
    needed = rows * (_COPIES * 8 * len(selection.features) + _BYTES_PER_ROW)
    refusal = memory_refusal(needed, f"{path}, about {rows:.0f} rows,")
    if refusal:
        raise InputError(
            f"{refusal}. Take a sample of the rows, or fewer of its {len(table.names)} columns "
            "with --columns."
        )
