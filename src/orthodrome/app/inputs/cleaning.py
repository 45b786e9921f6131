"""Turn the columns of a table into numbers, and say what was done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...preprocessing import TableCleaner
from . import checks
from .checks import format_names, quote
from .data import Data, InputError, RawTable

MISSING_RULES = ("error", "drop", "mean", "median")
TEXT_RULES = ("ignore", "onehot", "error")

# Without --missing, incomplete rows are dropped if they are fewer than this fraction.
_MAX_DROPPED = 0.05

# Why a column is left out, by its kind.
_REASONS = {
    "text": "text",
    "date": "dates",
    "identifier": "names or numbers of the rows",
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
        Whether the user named the columns; then all columns of numbers are used.

    Returns
    -------
    Data
        The numbers, with notes on what was left out or filled in.
    """
    _check_values(raw)
    text = text or ("error" if chosen else "ignore")
    filling = "mean" if missing == "mean" else "median"
    cleaner = TableCleaner(missing=filling, text=text, choose_columns=not chosen)
    _fit(cleaner, raw, raw.values)
    notes = [*raw.notes, *_column_notes(cleaner, raw)]
    gaps = _gaps(cleaner, raw)
    keep = ~gaps if missing in (None, "drop") else np.ones(len(gaps), dtype=bool)
    unlabelled = _unlabelled(raw)
    n_incomplete = int(np.count_nonzero(gaps | unlabelled))
    if n_incomplete:
        keep &= ~unlabelled
        notes.append(_missing_note(raw, cleaner, gaps, unlabelled, missing, filling))
        if not keep.all():
            _fit(cleaner, raw, raw.values[keep])
    rows = np.flatnonzero(keep)
    labels = None if raw.labels is None else np.array([raw.labels[i] for i in rows], dtype=np.str_)
    return Data(
        raw.path,
        "table",
        cleaner.transform(raw.values[keep]),
        _names(cleaner, raw),
        tuple(raw.ids[i] for i in rows),
        labels,
        raw.label_name,
        raw.id_name,
        notes=tuple(notes),
        cleaner=cleaner,
    )


def _check_values(raw: RawTable) -> None:
    """Raise if a number is infinite or has a typing error."""
    if raw.problem:
        raise InputError(raw.problem)
    for name in getattr(raw.values, "columns", ()):
        column = raw.values[name].to_numpy()
        if column.dtype.kind == "f" and np.isinf(column).any():
            where = raw.locate(int(np.argmax(np.isinf(column))))
            raise InputError(
                f"{raw.path}, {where}, column {quote(str(name))}: the value is infinite. Correct "
                "it, or remove the row."
            )


def _fit(cleaner: TableCleaner, raw: RawTable, values: Any) -> None:
    try:
        cleaner.fit(values)
    except ValueError as error:
        text = str(error).replace("set text to 'onehot' or 'ignore'", "use --text onehot or ignore")
        if text.startswith("No column") and "(text)" in text:
            text += " Use --text onehot to turn text into numbers."
        raise InputError(f"{raw.path}: {text}") from None


def _names(cleaner: TableCleaner, raw: RawTable) -> tuple[str, ...]:
    if raw.columns:
        return tuple(raw.columns[i] for i in cleaner.used_columns())
    return tuple(map(str, cleaner.get_feature_names_out()))


def _all_names(raw: RawTable) -> list[str]:
    return list(raw.columns) or [str(name) for name in raw.values.columns]


def _gaps_by_column(
    cleaner: TableCleaner, raw: RawTable
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the name of each column of numbers that is used, and which of its cells are missing."""
    for i, kind in enumerate(cleaner.kinds_):
        if kind == "number":
            if hasattr(raw.values, "columns"):
                name = cleaner.feature_names_in_[i]
                column = raw.values[name]
            else:
                name, column = raw.columns[i], raw.values[:, i]
            values = np.asarray(column)
            if values.dtype.kind == "O":
                is_gap = [cell is None or cell != cell for cell in values]
                values = np.where(is_gap, np.nan, 0.0)
            yield str(name), np.isnan(values.astype(np.float64))


def _gaps(cleaner: TableCleaner, raw: RawTable) -> NDArray[np.bool_]:
    """Return which rows have a missing cell in a column of numbers that is used."""
    found = np.zeros(len(raw.ids), dtype=bool)
    for _, gaps in _gaps_by_column(cleaner, raw):
        found |= gaps
    return found


def _unlabelled(raw: RawTable) -> NDArray[np.bool_]:
    labels = raw.labels if raw.labels is not None else ["known"] * len(raw.ids)
    return np.array([checks.is_missing_label(label) for label in labels], dtype=bool)


def _column_notes(cleaner: TableCleaner, raw: RawTable) -> list[str]:
    """Return notes on the columns that are left out."""
    names, notes = _all_names(raw), []
    for kind, reason in _REASONS.items():
        found = [names[i] for i, each in enumerate(cleaner.kinds_) if each == kind]
        if not found or (kind == "text" and cleaner.text == "onehot"):
            continue
        columns = "Column" if len(found) == 1 else "Columns"
        advice = ""
        if kind in ("date", "identifier", "constant"):
            advice = " Name it in --columns to use it."
        if kind == "text":
            advice = " Use --text onehot to turn text into numbers"
            advice += (
                "." if raw.labels is not None else f", or --label {quote(found[0])} for labels."
            )
        notes.append(f"{columns} {format_names(found)} left out: {reason}.{advice}")
    return notes


def _missing_note(
    raw: RawTable,
    cleaner: TableCleaner,
    gaps: NDArray[np.bool_],
    unlabelled: NDArray[np.bool_],
    missing: str | None,
    filling: str,
) -> str:
    """Return what is done about missing cells; raise if the user has to decide."""
    n, incomplete = len(gaps), gaps | unlabelled
    count = int(np.count_nonzero(incomplete))
    dropped = unlabelled if missing in ("mean", "median") else incomplete
    n_dropped = int(np.count_nonzero(dropped))
    what = f"{count} of {n} rows have missing cells"
    if np.any(unlabelled):
        what += f" or no label in {quote(raw.label_name or '')}"
    if not gaps.any():
        what = f"{count} of {n} rows have no label in {quote(raw.label_name or '')}"
    keep = " Use --missing median to keep them." if gaps.any() else ""
    columns = [name for name, gaps_of in _gaps_by_column(cleaner, raw) if gaps_of.any()]
    if columns:
        what += f" (in {format_names(columns)})"
    first = ""
    if missing in (None, "error") or n_dropped == n:  # finding the line takes time
        first = f"{raw.path}, {raw.locate(int(np.argmax(incomplete)))}"
    if missing == "error":
        raise InputError(f"{first}: {what}. Fill them in, or remove the rows.")
    if n_dropped == n:
        raise InputError(f"{first}: {what}, so none would remain.{keep}")
    if missing is None and count > _MAX_DROPPED * n:
        raise InputError(
            f"{first}: {what}, too many to drop them without asking. Use "
            "--missing drop to drop these rows"
            + (", or --missing median (or mean) to fill in the cells." if keep else ".")
        )
    if n_dropped < count:
        return f"{what}. Missing cells were replaced by the {filling} of their column." + (
            f" {n_dropped} rows without a label were dropped." if n_dropped else ""
        )
    return f"{what}; these rows were dropped.{keep}"


def apply_cleaner(cleaner: TableCleaner, raw: RawTable) -> Data:
    """Return new rows as numbers, treated like the training data."""
    _check_values(raw)
    try:
        X = cleaner.transform(raw.values)
    except ValueError as error:
        raise InputError(f"{raw.path}: {error}") from None
    notes = list(raw.notes)
    n_gaps = int(np.count_nonzero(_gaps(cleaner, raw)))
    if n_gaps:
        notes.append(
            f"{n_gaps} of {len(raw.ids)} rows have missing cells, which were replaced by the "
            f"{cleaner.missing} of the training data."
        )
    for name, values in zip(_all_names(raw), cleaner.unknown_categories(raw.values), strict=False):
        if values:
            notes.append(
                f"Column {quote(name)} has values that are not in the training data and count as "
                f"none of them: {format_names(sorted(values), 5)}."
            )
    labels = None
    if raw.labels is not None:
        unlabelled = _unlabelled(raw)
        if unlabelled.any():
            where = f"{raw.path}, {raw.locate(int(np.argmax(unlabelled)))}"
            raise checks.missing_label(where, raw.label_name or "")
        labels = np.array(raw.labels, dtype=np.str_)
    return Data(
        raw.path,
        "table",
        X,
        _names(cleaner, raw),
        raw.ids,
        labels,
        raw.label_name,
        raw.id_name,
        notes=tuple(notes),
        cleaner=cleaner,
    )
