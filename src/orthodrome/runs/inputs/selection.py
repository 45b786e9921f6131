"""Which columns of a table are features, which one holds the labels, which one names the rows."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from .data import InputError, UnknownColumnError, listed, shown

__all__ = ["Selection", "choose_columns", "unknown_column"]

# What a first column is called that names the rows and measures nothing: pandas' index is "".
_NAMES_OF_ROWS = {"", "unnamed: 0", "__index_level_0__", "index", "id", "ids", "name", "row"}
# What a column of classes is often called, for advice.
_NAMES_OF_LABELS = ("label", "labels", "class", "target", "species", "group", "y")


@dataclass(frozen=True)
class Selection:
    """Positions of columns: the features, the labels, and what may name the rows."""

    features: tuple[int, ...]
    label: int | None
    ids: int | None


def choose_columns(
    path: str, names: Sequence[str], label: str | None, columns: Sequence[str] | None
) -> Selection:
    """Choose columns by their names.

    Without `columns` every column is a feature but the label, and the first one if its name says
    that it names the rows.
    """
    chosen = None if label is None else _position(path, names, label, "--label")
    first = 0 if names and names[0].strip().lower() in _NAMES_OF_ROWS else None
    if columns is None:
        ids = first if first != chosen else None
        features = [i for i in range(len(names)) if i not in (chosen, ids)]
    else:
        features = [_position(path, names, name, "--columns") for name in columns]
        ids = first if first not in (chosen, *features) else None
    if len(set(features)) < len(features):
        twice = next(name for name in columns or () if list(columns or ()).count(name) > 1)
        raise InputError(f"{path}: --columns names {shown(twice)} twice; name each column once.")
    if chosen in features:
        raise InputError(
            f"{path}: the column {shown(label or '')} is both the --label and one of the "
            "--columns; a label among the features would give itself away."
        )
    if not features:
        raise InputError(
            f"{path} has no columns of features; its columns are {listed(names)}. Add some, or "
            "name them with --columns."
        )
    return Selection(tuple(features), chosen, ids)


def _position(path: str, names: Sequence[str], wanted: str, option: str) -> int:
    if wanted in names:
        return list(names).index(wanted)
    raise unknown_column(path, names, wanted, option)


def unknown_column(path: str, names: Sequence[str], wanted: str, option: str) -> InputError:
    """Return the error of a column that is not there, with the nearest name."""
    near = difflib.get_close_matches(wanted, names, n=1)
    return UnknownColumnError(
        f"{path} has no column {shown(wanted)}, which {option} names."
        + (f" Did you mean {shown(near[0])}?" if near else "")
        + f" Its columns are {listed(names)}.",
        wanted,
    )


def likely_label(names: Sequence[str]) -> str | None:
    """Return the column that probably holds classes, of those that are not numbers."""
    for usual in _NAMES_OF_LABELS:
        for name in names:
            if name.lower() == usual:
                return name
    return names[-1] if names else None
