"""Read text tables with pandas; a slower reader finds the line of an error."""

from __future__ import annotations

import math
import warnings
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...plots._extras import require
from .data import (
    Data,
    InputError,
    Selection,
    check_memory,
    choose_columns,
    format_names,
    is_missing_label,
    missing_advice,
    missing_label,
    quote,
    row_names,
    text_advice,
)
from .text import BLANKS, NUMBER, TextTable, is_number, open_table, restore_formula

# Cells that mean a missing value, in lower case.
_MISSING = frozenset({"", "na", "n/a", "nan", "#n/a", "null", "none", "?", "-", ".", "missing"})
_INFINITE = frozenset({"inf", "infinity"})
# Bytes per row in addition to its numbers: its name and perhaps its label.
_BYTES_PER_ROW = 200
_COPIES = 2  # the chunks, and the array concatenated from them
_CHUNK_CELLS = 1 << 20
_CHUNK_ROWS = 1000  # minimum, since pandas has a cost per column of a chunk
_MAX_PANDAS_COLUMNS = 20_000  # with more, pandas needs much memory
_SNIFFED_BYTES = 1 << 16

#: The features, the text columns by position, and the decimal separator.
_Columns = tuple[NDArray[np.float64], dict[int, list[str]], str]


def read_table(
    path: Path, *, label: str | None = None, columns: Sequence[str] | None = None
) -> Data:
    """Read a text table (csv, tsv, txt); see :func:`read_data`."""
    table = open_table(path)
    chosen = choose_columns(table.path, table.names, label, columns)
    rows = _estimated_rows(path)
    check_memory(
        rows * (_COPIES * 8 * len(chosen.features) + _BYTES_PER_ROW),
        f"{path}, about {rows:.0f} rows,",
        f"Use a sample of the rows, or fewer of its {len(table.names)} columns (--columns).",
    )
    X, texts, decimal = _read_with_pandas(table, chosen) or _read_records(table, chosen, ".")
    notes = ("Numbers were read with decimal commas.",) if decimal == "," else ()
    return Data(
        table.path,
        "table",
        X,
        tuple(table.names[i] for i in chosen.features),
        row_names(len(X)) if chosen.ids is None else tuple(texts[chosen.ids]),
        None if chosen.label is None else np.array(texts[chosen.label], dtype=np.str_),
        label,
        None if chosen.ids is None else table.names[chosen.ids] or "(no name)",
        notes=(*table.notes, *notes),
    )


def _estimated_rows(path: Path) -> float:
    with path.open("rb") as file:
        head = file.read(_SNIFFED_BYTES)
    return path.stat().st_size * max(head.count(b"\n"), 1) / len(head)


# ---------------------------------------------------------------------------- with pandas


def _read_with_pandas(table: TextTable, chosen: Selection) -> _Columns | None:
    """Read the columns quickly; return None if the file needs the slower reader."""
    first = next(table.records(), None)
    if first is None or not table.plain or len(table.names) > _MAX_PANDAS_COLUMNS:
        return None
    cells = [first[1][i] for i in chosen.features]
    for decimal in "." if table.separator == "," else ".,":
        # pandas would read a column of True and False as numbers
        if not all(is_number(cell.replace(decimal, ".")) for cell in cells):
            continue
        try:
            return _read_chunks(table, chosen, decimal)
        except (ValueError, OverflowError, Warning):  # pandas warns if it drops cells
            continue
    return None


def _read_chunks(table: TextTable, chosen: Selection, decimal: str) -> _Columns:
    pandas = require("pandas", "Tables", "cli")
    features, width = list(chosen.features), len(table.names)
    # before 3.1, the default parser sometimes makes an error in the last bit
    is_old = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    numbers: list[NDArray[np.float64]] = []
    texts: dict[int, list[str]] = {i: [] for i in chosen.texts}
    with table.open() as file, warnings.catch_warnings():
        warnings.simplefilter("error")
        if table.has_header:
            next(table.raw_records(file))
        for chunk in pandas.read_csv(
            file,
            sep=r"\s+" if table.separator == BLANKS else table.separator,
            decimal=decimal,
            header=None,
            names=range(width),
            index_col=False,
            dtype=dict.fromkeys(range(width), object) | dict.fromkeys(features, np.float64),
            keep_default_na=False,
            chunksize=max(_CHUNK_CELLS // width, _CHUNK_ROWS),
            float_precision="round_trip" if is_old else None,
        ):
            numbers.append(chunk[features].to_numpy(dtype=np.float64))
            for i, column in texts.items():
                column.extend(restore_formula(cell.strip()) for cell in chunk[i])
            # pandas pads a line with too few cells with empty cells
            if width - 1 not in features and (chunk[width - 1] == "").any():
                raise ValueError("a line may have too few cells")
    X = np.ascontiguousarray(np.concatenate(numbers))
    labels = [] if chosen.label is None else texts[chosen.label]
    if not np.isfinite(X).all() or any(map(is_missing_label, labels)):
        raise ValueError("a missing or infinite value")
    return X, texts, decimal


# ---------------------------------------------------------------------------- record by record


def _read_records(table: TextTable, chosen: Selection, decimal: str) -> _Columns:
    """Read the columns record by record; raise errors with the line, row and column."""
    numbers = array("d")
    texts: dict[int, list[str]] = {i: [] for i in chosen.texts}
    row = 0
    for row, (line, cells) in enumerate(table.records(), start=1):
        location = f"{table.path}, line {line} (data row {row})"
        features = [_with_point(cells[i], decimal) for i in chosen.features]
        try:
            values = list(map(float, features))
        except ValueError:
            values = [math.nan]
        # float() also accepts "1_000", "nan" and "1e999"
        if not math.isfinite(sum(values)) or "_" in "".join(features):
            for i, cell in zip(chosen.features, features, strict=True):
                if not is_number(cell):
                    if decimal == "." and _has_decimal_comma(table, cell):
                        return _read_records(table, chosen, ",")
                    where = f"{location}, column {quote(table.names[i])}: "
                    raise InputError(where + _explain(table, chosen, decimal, cells[i]))
        numbers.extend(values)
        for i, column in texts.items():
            column.append(restore_formula(cells[i].strip()))
            if i == chosen.label and is_missing_label(column[-1]):
                raise missing_label(location, table.names[i])
    if not row:
        raise InputError(
            f"{table.path} has a header but no rows. Its columns are {format_names(table.names)}."
        )
    X = np.frombuffer(numbers, dtype=np.float64).reshape(row, -1).copy()
    return X, texts, decimal


def _with_point(cell: str, decimal: str) -> str:
    """Return a number with a decimal point; if commas are expected, a point is invalid."""
    if decimal == ".":
        return cell
    return "." if "." in cell else cell.replace(",", ".")


def _has_decimal_comma(table: TextTable, cell: str) -> bool:
    return table.separator != "," and cell.count(",") == 1 and is_number(cell.replace(",", "."))


def _explain(table: TextTable, chosen: Selection, decimal: str, cell: str) -> str:
    """Return why a cell is not a finite number and what to do."""
    if decimal == "," and is_number(cell):
        return (
            f"{quote(cell)} has a decimal point, but other numbers of the file have decimal "
            "commas. Use decimal points for all numbers."
        )
    text, number = cell.strip().lower(), cell.replace(",", ".")
    overflows = NUMBER.fullmatch(number) is not None and math.isinf(float(number))
    if overflows or text.lstrip("+-") in _INFINITE:
        return f"{quote(cell)} is infinite or too large. Correct it, or remove the row."
    if text in _MISSING:
        counts = _count_cells(table, chosen, lambda text: text.strip().lower() in _MISSING)
        return f"the value is missing ({quote(cell)}). {missing_advice(counts)}"

    def is_text(text: str) -> bool:
        return not (is_number(_with_point(text, decimal)) or text.strip().lower() in _MISSING)

    counts = _count_cells(table, chosen, is_text)
    numbers = [name for name, count in counts.items() if not count]
    texts = [name for name, count in counts.items() if count]
    return f"{quote(cell)} is not a number. {text_advice(texts, numbers)}"


def _count_cells(
    table: TextTable, chosen: Selection, condition: Callable[[str], bool]
) -> dict[str, int]:
    """Count the cells of each feature, in the whole file, that satisfy a condition."""
    counts: Counter[int] = Counter()
    for _, cells in table.records():
        counts.update(i for i in chosen.features if condition(cells[i]))
    return {table.names[i]: counts[i] for i in chosen.features}
