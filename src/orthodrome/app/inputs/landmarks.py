"""TPS files, and labels for their specimens from a second file or from their names."""

from __future__ import annotations

import os
import re
from pathlib import Path, PureWindowsPath

import numpy as np
from numpy.typing import NDArray

from ...spaces import read_tps
from ...spaces.tps import TPSFile
from .data import (
    Data,
    InputError,
    check_memory,
    column_names,
    is_missing_label,
    listed,
    missing_label,
    position,
    quoted,
)
from .text import TextTable, open_table, restore_formula

# Memory relative to the bytes of the file: lines of text, parsed points and the array; and the
# cells of a table of labels as Python strings.
_BYTES_PER_BYTE = 100
_BYTES_PER_BYTE_OF_TEXT = 40
_MOST_LISTED = 5


def read_specimens(
    path: Path,
    *,
    label: str | None,
    labels: str | os.PathLike[str] | None,
    label_regex: str | None,
    keep_negative: bool = False,
) -> Data:
    """Read a TPS file; see :func:`read_data`."""
    advice = "Take a part of the specimens."
    check_memory(path.stat().st_size * _BYTES_PER_BYTE, str(path), advice)
    if labels is not None and label_regex is not None:
        raise InputError(f"{path}: give the labels by --labels or by --label-regex, not by both.")
    if label is not None and labels is None:
        raise InputError(
            f"{path} is a TPS file, which has no columns for --label. Use --labels FILE (a table "
            "with the ID or IMAGE of each specimen and its label), or --label-regex (a part of "
            "the name of its image)."
        )
    try:
        file = read_tps(path, negative="keep" if keep_negative else "missing")
    except ValueError as problem:
        # advice for Python becomes advice for the command line
        text = str(problem).replace("negative='keep'", "--keep-negative")
        text = text.replace("pass missing='nan' to have NaN", "remove the specimen")
        raise InputError(text) from None
    found: NDArray[np.str_] | None = None
    name = label_regex
    if labels is not None:
        found, name = _joined(path, file, Path(labels), label)
    elif label_regex is not None:
        found = _matched(path, file, label_regex)
    columns = column_names(*file.landmarks.shape[1:])
    return Data(str(path), "shapes", file.landmarks, columns, tuple(file.ids), found, name, "ID")


def _matched(path: Path, file: TPSFile, pattern: str) -> NDArray[np.str_]:
    """Return the part of each specimen's IMAGE, else ID, that a regular expression finds."""
    try:
        expression = re.compile(pattern)
    except re.error as problem:
        raise InputError(
            f"--label-regex {quoted(pattern)} is not a regular expression: {problem}."
        ) from None
    if not expression.groups:
        raise InputError(
            f"--label-regex {quoted(pattern)} needs a group in parentheses: the part of the name "
            "that is the label, for instance '^([a-z]+)_'."
        )
    group: str | int = "label" if "label" in expression.groupindex else 1
    names = [image or identity for identity, image in zip(file.ids, file.images, strict=True)]
    matches = [expression.search(name) for name in names]
    labels = [match[group] if match else None for match in matches]
    unmatched = [name for name, label in zip(names, labels, strict=True) if not label]
    if unmatched:
        raise InputError(
            f"{path}: --label-regex {quoted(pattern)} finds no label in {len(unmatched)} of "
            f"{len(names)} names: {listed(unmatched, _MOST_LISTED)}. Change the pattern, or use "
            "--labels FILE."
        )
    return np.array(labels, dtype=np.str_)


# ---------------------------------------------------------------------------- by a second file

_Record = tuple[int, list[str]]  # the number of its line, and its cells


def _joined(
    path: Path, file: TPSFile, labels: Path, label: str | None
) -> tuple[NDArray[np.str_], str]:
    """Return the label of each specimen from a table, and the name of its column."""
    if labels.is_dir():
        raise InputError(f"{labels} is a folder; --labels takes one file (csv or tsv).")
    if not labels.exists():
        raise FileNotFoundError(f"There is no file of labels {labels}; check the path.")
    table = open_table(labels)
    check_memory(labels.stat().st_size * _BYTES_PER_BYTE_OF_TEXT, str(labels), "")
    rows = [
        (line, [restore_formula(cell.strip()) for cell in cells]) for line, cells in table.records()
    ]
    candidates = _keys(file)
    if not candidates:
        raise InputError(
            f"{path}: several specimens share their ID, and their IMAGE, so {labels} cannot be "
            "matched with them. Give every specimen its own ID."
        )
    cells_of = [{cells[i] for _, cells in rows} for i in range(len(table.names))]
    pairs = [(i, keys) for keys in candidates for i in range(len(cells_of))]
    column, keys = max(pairs, key=lambda pair: len(cells_of[pair[0]].intersection(pair[1])))
    known = _rows_by_key(table, rows, column)
    absent = [key for key in keys if key not in known]
    if absent:
        raise InputError(
            f"{labels}, column {quoted(table.names[column])}: {len(absent)} of {len(keys)} "
            f"specimens of {path} are missing: {listed(absent, _MOST_LISTED)}. The column should "
            "hold the ID or the IMAGE of every specimen."
        )
    chosen = _label_column(table, column, label)
    for key in keys:
        line, cells = known[key]
        if is_missing_label(cells[chosen]):
            raise missing_label(f"{labels}, line {line} ({quoted(key)})", table.names[chosen])
    found = np.array([known[key][1][chosen] for key in keys], dtype=np.str_)
    return found, table.names[chosen]


def _keys(file: TPSFile) -> list[list[str]]:
    """Return the names that specimens may have in the table, if all of them differ."""
    kinds = [list(file.ids)]
    if all(file.images):
        images = [image or "" for image in file.images]
        # a Windows path has a name and a stem for either kind of slash
        paths = [PureWindowsPath(image) for image in images]
        kinds += [images, [path.name for path in paths], [path.stem for path in paths]]
    return [keys for keys in kinds if len(set(keys)) == len(keys)]


def _rows_by_key(table: TextTable, rows: list[_Record], column: int) -> dict[str, _Record]:
    known: dict[str, _Record] = {}
    for line, cells in rows:
        first, _ = known.setdefault(cells[column], (line, cells))
        if first != line:
            raise InputError(
                f"{table.path}, line {line}, column {quoted(table.names[column])}: "
                f"{quoted(cells[column])} is already in line {first}. Keep one line for each "
                "specimen."
            )
    return known


def _label_column(table: TextTable, keys: int, label: str | None) -> int:
    if label is not None:
        return position(table.path, table.names, label, "--label")
    others = [i for i in range(len(table.names)) if i != keys]
    usual = [i for i in others if table.names[i].lower() in ("label", "labels", "class")]
    if len(others) == 1 or len(usual) == 1:
        return (usual or others)[0]
    raise InputError(
        f"{table.path}: choose the column of labels with --label. Besides "
        f"{quoted(table.names[keys])} it has {listed(table.names[i] for i in others) or 'none'}."
    )
