"""Read TPS files, with labels from a table or from the names of the specimens."""

from __future__ import annotations

import os
import re
from pathlib import Path, PureWindowsPath

import numpy as np
from numpy.typing import NDArray

from ...spaces import read_tps
from ...spaces.tps import TPSFile
from . import checks
from .checks import format_names, quote
from .data import Data, InputError
from .tables import TextTable, open_table, restore_formula

# Memory per byte of the file: for a TPS file (lines of text, parsed points and the array), and for
# a table of labels (cells as Python strings).
_TPS_MEMORY_FACTOR = 100
_LABELS_MEMORY_FACTOR = 40
_MAX_LISTED = 5


def read_specimens(
    path: Path,
    *,
    label: str | None,
    labels: str | os.PathLike[str] | None,
    label_regex: str | None,
    keep_negative: bool = False,
) -> Data:
    """Read a TPS file; see :func:`read_data`."""
    advice = "Use fewer specimens."
    checks.check_memory(path.stat().st_size * _TPS_MEMORY_FACTOR, str(path), advice)
    if labels is not None and label_regex is not None:
        raise InputError(f"{path}: use --labels or --label-regex, not both.")
    if label is not None and labels is None:
        raise InputError(
            f"{path} is a TPS file, which has no columns for --label. Use --labels FILE (a table "
            "with the ID or IMAGE of each specimen and its label), or --label-regex (which finds "
            "the label in the IMAGE or ID)."
        )
    try:
        file = read_tps(path, negative="keep" if keep_negative else "missing")
    except ValueError as problem:
        # replace advice for Python by advice for the command line
        text = str(problem).replace("negative='keep'", "--keep-negative")
        text = text.replace("pass missing='nan' to read it as NaN", "remove the specimen")
        raise InputError(text) from None
    found: NDArray[np.str_] | None = None
    name = label_regex
    if labels is not None:
        found, name = _labels_from_table(path, file, Path(labels), label)
    elif label_regex is not None:
        found = _labels_from_names(path, file, label_regex)
    columns = checks.column_names(*file.landmarks.shape[1:])
    return Data(str(path), "shapes", file.landmarks, columns, tuple(file.ids), found, name, "ID")


def _labels_from_names(path: Path, file: TPSFile, pattern: str) -> NDArray[np.str_]:
    """Return the labels that a regular expression finds in the IMAGE, or else in the ID."""
    try:
        expression = re.compile(pattern)
    except re.error as problem:
        raise InputError(
            f"--label-regex {quote(pattern)} is not a regular expression: {problem}."
        ) from None
    if not expression.groups:
        raise InputError(
            f"--label-regex {quote(pattern)} needs a group in parentheses around the label, for "
            "instance '^([a-z]+)_'."
        )
    group: str | int = "label" if "label" in expression.groupindex else 1
    names = [image or identity for identity, image in zip(file.ids, file.images, strict=True)]
    matches = [expression.search(name) for name in names]
    labels = [match[group] if match else None for match in matches]
    unmatched = [name for name, label in zip(names, labels, strict=True) if not label]
    if unmatched:
        raise InputError(
            f"{path}: --label-regex {quote(pattern)} finds no label in {len(unmatched)} of "
            f"{len(names)} names: {format_names(unmatched, _MAX_LISTED)}. Change the pattern, or "
            "use --labels FILE."
        )
    return np.array(labels, dtype=np.str_)


# ---------------------------------------------------------------------------- labels from a table


def _labels_from_table(
    path: Path, file: TPSFile, labels: Path, label: str | None
) -> tuple[NDArray[np.str_], str]:
    """Return the label of each specimen from a table, and the name of the label column."""
    if labels.is_dir():
        raise InputError(f"{labels} is a folder. Give --labels a csv or tsv file.")
    if not labels.exists():
        raise FileNotFoundError(f"There is no file {labels} (--labels). Check the path.")
    table = open_table(labels)
    checks.check_memory(labels.stat().st_size * _LABELS_MEMORY_FACTOR, str(labels), "")
    lines, rows = [], []
    for line, cells in table.records():
        lines.append(line)
        rows.append([restore_formula(cell.strip()) for cell in cells])
    keys, column = _matching_column(path, file, table, rows)
    where = f"column {quote(table.names[column])}"
    known: dict[str, int] = {}
    for number, cells in enumerate(rows):
        first = known.setdefault(cells[column], number)
        if first != number:
            raise InputError(
                f"{labels}, line {lines[number]}, {where}: {quote(cells[column])} is already in "
                f"line {lines[first]}. Keep one line per specimen."
            )
    absent = [key for key in keys if key not in known]
    if absent:
        raise InputError(
            f"{labels}, {where}: {len(absent)} of {len(keys)} specimens of {path} are missing: "
            f"{format_names(absent, _MAX_LISTED)}. The column must hold the ID or the IMAGE of "
            "each specimen."
        )
    chosen = _label_column(table, column, label)
    found = [rows[known[key]][chosen] for key in keys]
    for key, text in zip(keys, found, strict=True):
        if checks.is_missing_label(text):
            place = f"{labels}, line {lines[known[key]]} ({quote(key)})"
            raise checks.missing_label(place, table.names[chosen])
    return np.array(found, dtype=np.str_), table.names[chosen]


def _matching_column(
    path: Path, file: TPSFile, table: TextTable, rows: list[list[str]]
) -> tuple[list[str], int]:
    """Return names that identify the specimens, and the column that holds most of them."""
    lists = [list(file.ids)]
    if all(file.images):
        images = [image or "" for image in file.images]
        # PureWindowsPath splits at both kinds of slashes
        paths = [PureWindowsPath(image) for image in images]
        lists += [images, [path.name for path in paths], [path.stem for path in paths]]
    lists = [keys for keys in lists if len(set(keys)) == len(keys)]
    if not lists:
        raise InputError(
            f"{path}: several specimens share an ID, and the IMAGE does not distinguish them, so "
            f"{table.path} cannot be matched. Give each specimen its own ID."
        )
    column_cells = [{cells[i] for cells in rows} for i in range(len(table.names))]
    pairs = [(keys, i) for keys in lists for i in range(len(column_cells))]
    return max(pairs, key=lambda pair: len(column_cells[pair[1]] & set(pair[0])))


def _label_column(table: TextTable, keys: int, label: str | None) -> int:
    if label is not None:
        return checks.position(table.path, table.names, label, "--label")
    others = [i for i in range(len(table.names)) if i != keys]
    likely = [i for i in others if table.names[i].lower() in ("label", "labels", "class")]
    if len(others) == 1 or len(likely) == 1:
        return (likely or others)[0]
    raise InputError(
        f"{table.path}: name the column of labels with --label. Columns other than "
        f"{quote(table.names[keys])}: {format_names(table.names[i] for i in others) or 'none'}."
    )
