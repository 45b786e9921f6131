"""Describe the columns of a table: what they hold, and what the commands do with them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...preprocessing import TableCleaner, column_kind
from .checks import format_names, is_missing_label, quote
from .data import Data, RawTable

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
    simply used (at most 20), and one line that summarises the others.
    """
    special = [each for each in columns if each["use"] != "used" or each["missing"]]
    shown = columns if len(columns) <= _MAX_LINES else special[:_MAX_LINES]
    lines = [f"column {quote(each['name'])}: {_column_text(each)}" for each in shown]
    rest = [each for each in columns if each not in shown]
    if rest:
        names = format_names((each["name"] for each in rest), 3)
        lines.append(f"other columns: {len(rest)}: {names}")
        numbers = [each for each in rest if "minimum" in each]
        if numbers:
            low, high = (f(e[k] for e in numbers) for f, k in ((min, "minimum"), (max, "maximum")))
            lines[-1] += f"; {len(numbers)} of them numbers from {low:g} to {high:g}"
    return lines


def _column_text(facts: dict[str, Any]) -> str:
    text = facts["kind"]
    if "minimum" in facts and facts["kind"] != "constant":
        text += f", {facts['minimum']:g} to {facts['maximum']:g}"
    elif facts["kind"] not in ("constant", "empty"):
        text += f", {facts['n_values']} values"
    if facts["missing"]:
        text += f", {facts['missing']} missing"
    return f"{text}; {facts['use']}"
