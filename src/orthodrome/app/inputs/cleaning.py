"""Turn the columns of a table into numbers, and describe the columns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.types import Indices
from ...preprocessing import TableCleaner, column_kind, unit_of
from . import checks
from .checks import format_names, is_missing_label, quote
from .data import Data, InputError, RawTable

MISSING_RULES = ("error", "drop", "mean", "median")
TEXT_RULES = ("ignore", "onehot", "error")

# Numbers that often mark missing cells.
_CODES = (-99, -999, -9999, 999, 9999, 99999)

# Why a column is left out, by its kind.
_REASONS = {
    "text": "text",
    "date": "dates",
    "identifier": "identifiers of rows; nearly all values differ",
    "constant": "the same value in all rows",
    "empty": "no values",
}


def clean(
    raw: RawTable, *, missing: str | None = None, text: str | None = None, chosen: bool = False
) -> Data:
    """Return the columns of measurements as numbers.

    Parameters
    ----------
    raw : RawTable
        The table.
    missing : {"error", "drop", "mean", "median"} or None
        What to do with rows that have missing cells. None: drop them if they are few, else raise.
    text : {"ignore", "onehot", "error"} or None
        What to do with columns of text. None: ignore them, unless they were named by the user.
    chosen : bool
        Whether the user named the columns. If so, columns of numbers are used even if they look
        like identifiers or dates, or are constant.

    Returns
    -------
    Data
        The numbers, with notes on what was left out or filled in.
    """
    if raw.problem:
        raise InputError(raw.problem)
    text = text or ("error" if chosen else "ignore")
    statistic = "mean" if missing == "mean" else "median"
    cleaner = TableCleaner(missing=statistic, text=text, choose_columns=not chosen)
    _fit(cleaner, raw, raw.values)
    notes = [*_column_notes(cleaner, raw), *_value_notes(cleaner, raw)]
    cells = cleaner.missing_cells(raw.values)
    gaps, unlabelled = _incomplete(cells, raw), checks.unlabelled_rows(raw.labels, len(raw.ids))
    lacking = f"missing cells (in {format_names(name for name, c in cells.items() if c.any())})"
    if gaps.any() and missing in ("mean", "median"):
        notes.append(
            f"{gaps.sum()} of {len(gaps)} rows have {lacking}. Missing cells were replaced by the "
            f"{missing} of their column."
        )
        gaps = np.zeros_like(gaps)
    if not (gaps | unlabelled).any():
        return _as_data(raw, cleaner, np.arange(len(gaps)), notes)
    place = f"{raw.path}, {raw.locate(int(np.argmax(gaps | unlabelled)))}"
    problems = {lacking: gaps, f"no label in {quote(raw.label_name or '')}": unlabelled}
    can_fill = np.any(gaps & ~unlabelled)  # a row without a label is dropped anyway
    fill = "--missing median to fill in the cells" if can_fill else ""
    keep, note = checks.drop_incomplete(place, "row", problems, missing, fill)
    _fit(cleaner, raw, raw.values[keep])
    return _as_data(raw, cleaner, np.flatnonzero(keep), [*notes, note])


def apply_cleaner(cleaner: TableCleaner, raw: RawTable) -> Data:
    """Return new rows as numbers, treated like the training data."""
    if raw.problem:
        raise InputError(raw.problem)
    notes = []
    cells = cleaner.missing_cells(raw.values)
    n_gaps = _incomplete(cells, raw).sum()
    if n_gaps:
        _check_empty_rows(cleaner, raw, cells)
        notes.append(
            f"{n_gaps} of {len(raw.ids)} rows have missing cells, which were replaced by the "
            f"{cleaner.missing} of the training data."
        )
    for name, values in cleaner.unknown_categories(raw.values).items():
        if values:
            notes.append(
                f"Column {quote(name)} has values that are not in the training data; they match "
                f"no known category: {format_names(sorted(values), 5)}."
            )
    unlabelled = checks.unlabelled_rows(raw.labels, len(raw.ids))
    if unlabelled.any():
        where = f"{raw.path}, {raw.locate(int(np.argmax(unlabelled)))}"
        raise checks.missing_label(where, raw.label_name or "")
    return _as_data(raw, cleaner, np.arange(len(raw.ids)), notes)


def _check_empty_rows(
    cleaner: TableCleaner, raw: RawTable, cells: dict[str, NDArray[np.bool_]]
) -> None:
    """Raise if a row has no value in any column of the model."""
    used = cleaner.feature_names_in_[cleaner.used_columns()]
    columns = [cells[name] if name in cells else raw.values[name].isna() for name in used]
    empty = np.flatnonzero(np.all(columns, axis=0))
    if len(empty):
        places = ", ".join(raw.locate(int(row)) for row in empty[:5])
        more = f" and {len(empty) - 5} more" if len(empty) > 5 else ""
        raise InputError(
            f"{raw.path}, {places}{more}: all cells in the columns of the model are missing. Fill "
            "them in, or remove the rows."
        )


def _as_data(raw: RawTable, cleaner: TableCleaner, rows: Indices, notes: Sequence[str]) -> Data:
    """Return some rows as numbers."""
    try:
        X = cleaner.transform(raw.values.iloc[rows])
    except ValueError as error:
        raise InputError(f"{raw.path}: {error}") from None
    labels = None if raw.labels is None else np.array([raw.labels[i] for i in rows], dtype=np.str_)
    return Data(
        raw.path,
        "table",
        X,
        tuple(map(str, cleaner.get_feature_names_out())),
        tuple(raw.ids[i] for i in rows),
        labels,
        raw.label_name,
        raw.id_name,
        notes=(*raw.notes, *notes),
        cleaner=cleaner,
    )


def _fit(cleaner: TableCleaner, raw: RawTable, values: Any) -> None:
    try:
        cleaner.fit(values)
    except ValueError as error:
        text = str(error).replace("set text to 'onehot' or 'ignore'", "use --text onehot or ignore")
        if text.startswith("No column") and "(text)" in text:
            text += " Use --text onehot to turn text into numbers."
        raise InputError(f"{raw.path}: {text}") from None


def _incomplete(cells: dict[str, NDArray[np.bool_]], raw: RawTable) -> NDArray[np.bool_]:
    """Return which rows have a missing cell."""
    return np.any([np.zeros(len(raw.ids), dtype=bool), *cells.values()], axis=0)


def _column_notes(cleaner: TableCleaner, raw: RawTable) -> list[str]:
    """Return notes on the columns that are left out."""
    notes = []
    for kind, reason in _REASONS.items():
        found = [
            name for name, k in zip(raw.values.columns, cleaner.kinds_, strict=True) if k == kind
        ]
        if not found or (kind == "text" and cleaner.text == "onehot"):
            continue
        columns = "Column" if len(found) == 1 else "Columns"
        advice = "" if kind == "empty" else " To use them, name the columns in --columns."
        if kind == "text":
            labels = "" if raw.labels is not None else f", or --label {quote(found[0])} for labels"
            advice = f" Use --text onehot to turn text into numbers{labels}."
        notes.append(f"{columns} {format_names(found)} left out: {reason}.{advice}")
    return notes


def _value_notes(cleaner: TableCleaner, raw: RawTable) -> list[str]:
    """Return notes on numbers with units, and on numbers that may mark missing cells."""
    notes = []
    for name, kind in zip(raw.values.columns, cleaner.kinds_, strict=True):
        column = raw.values[name].dropna()
        if kind != "number" or not len(column):
            continue
        if column.dtype == object:
            sign = unit_of(str(column.iloc[0]).strip()) or "thousands commas"
            notes.append(f"Column {quote(name)} was read as numbers, ignoring {sign}.")
            continue
        for code in _CODES:
            others = column[column != code]
            if 0 < len(others) < len(column) and np.abs(others - code).min() > np.ptp(others):
                notes.append(
                    f"Column {quote(name)} has {len(column) - len(others)} cells with {code}, far "
                    "from its other values. If they are missing, make them empty."
                )
    return notes


_MAX_LINES = 20  # longest list of columns


@dataclass(frozen=True)
class Description:
    """What a file holds.

    Attributes
    ----------
    path : str
        The file.
    data : Data or None
        The data that the commands use. If the commands would stop with an error, the data that
        they could use with other options, or None if there are none.
    columns : list of dict
        For each column of a table: name, kind, missing (number of cells), n_values (different
        values), minimum and maximum (of numbers), use ("used", "one-hot", "left out", "labels" or
        "row names").
    problem : str
        Why the commands would stop, and the option to use; "" if they would not.
    n_rows : int
        Number of rows or specimens in the file.
    """

    path: str
    data: Data | None
    columns: list[dict[str, Any]]
    problem: str
    n_rows: int


def tolerant_table(raw: RawTable) -> RawTable:
    """Return a table without problems.

    Infinite numbers become missing, and labels are removed if all of them are missing.
    """
    tolerant = replace(raw, values=raw.values.replace([np.inf, -np.inf], np.nan), problem="")
    if raw.labels is not None and all(map(is_missing_label, raw.labels)):
        tolerant = replace(tolerant, labels=None, label_name=None)
    return tolerant


def describe_columns(
    found: RawTable | Data, text: str | None, chosen: bool
) -> list[dict[str, Any]]:
    """Return the facts of each column; see `Description`. Landmarks have none."""
    if isinstance(found, Data):
        if found.kind == "shapes":
            return []
        pairs = zip(found.columns, found.X.T.astype(np.float64), strict=True)
        return [_facts(name, column_kind(name, column), column) for name, column in pairs]
    raw = tolerant_table(found)
    cleaner = TableCleaner(text=text or "ignore", choose_columns=not chosen)
    with suppress(ValueError):  # raised if no column can be used; the kinds are known by then
        cleaner.fit(raw.values)
    facts = []
    if raw.id_name is not None:
        facts.append(_facts(raw.id_name, "identifier", np.array(raw.ids, object), "row names"))
    for name, kind in zip(raw.values.columns, cleaner.kinds_, strict=True):
        use = "used" if kind == "number" else "left out"
        if kind == "text" and text == "onehot":
            use = "one-hot"
        facts.append(_facts(str(name), kind, np.asarray(raw.values[name]), use))
    if found.labels is not None:
        cells = [None if is_missing_label(label) else label for label in found.labels]
        facts.append(_facts(found.label_name or "", "text", np.array(cells, object), "labels"))
    return facts


def _facts(name: str, kind: str, column: Any, use: str = "used") -> dict[str, Any]:
    is_number = column.dtype.kind in "fiub"
    if is_number:
        present = column[~np.isnan(column)]
    else:
        present = np.array([str(cell) for cell in column if cell is not None and cell == cell])
    facts = {
        "name": name,
        "kind": kind,
        "missing": len(column) - len(present),
        "n_values": len(np.unique(present)),
        "use": use,
    }
    if is_number and len(present):
        facts |= {"minimum": float(present.min()), "maximum": float(present.max())}
    return facts


def column_lines(columns: list[dict[str, Any]]) -> list[str]:
    """Return a line for each column.

    If there are more than 20, return lines only for columns that have missing cells or are not
    simply used (at most 20), and one line that names others.
    """
    special = [each for each in columns if each["use"] != "used" or each["missing"]]
    shown = columns if len(columns) <= _MAX_LINES else special[:_MAX_LINES]
    lines = [f"column {quote(each['name'])}: {_column_text(each)}" for each in shown]
    rest = [each["name"] for each in columns if each not in shown]
    return lines + ([f"other columns: {len(rest)}: {format_names(rest, 3)}"] if rest else [])


def _column_text(facts: dict[str, Any]) -> str:
    text = facts["kind"]
    if "minimum" in facts and facts["kind"] != "constant":
        text += f", {facts['minimum']:g} to {facts['maximum']:g}"
    elif facts["kind"] not in ("constant", "empty"):
        text += f", {facts['n_values']} values"
    if facts["missing"]:
        text += f", {facts['missing']} missing"
    return f"{text}; {facts['use']}"
