"""TPS files, and labels for their specimens from a second file or from their names."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath

import numpy as np
from numpy.typing import NDArray

from ...spaces import read_tps
from ...spaces.tps import TPSFile
from .data import (
    Data,
    InputError,
    check_memory,
    columns_of_landmarks,
    is_no_label,
    listed,
    shown,
    unknown_column,
)
from .tables import text_columns
from .text import TextTable

__all__ = ["read_specimens"]

# Lines of text, parsed points and the array, relative to the bytes of a file of short numbers.
_BYTES_PER_BYTE = 100
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
            f"{path} is a TPS file, which has no columns for --label. Give the labels by "
            "--labels FILE (a table with the ID or IMAGE of each specimen and its label), or by "
            "--label-regex (a part of the name of its image)."
        )
    try:
        file = read_tps(path, negative="keep" if keep_negative else "missing")
    except ValueError as problem:
        # advice for Python becomes advice for the command line
        said = str(problem).replace("negative='keep'", "--keep-negative")
        said = said.replace("pass missing='nan' to have NaN", "remove the specimen")
        raise InputError(said) from None
    found: NDArray[np.str_] | None = None
    name: str | None = None
    if labels is not None:
        found, name = _joined(path, file, Path(labels), label)
    elif label_regex is not None:
        found, name = _matched(path, file, label_regex), label_regex
    count, dimension = file.landmarks.shape[1:]
    return Data(
        str(path),
        "shapes",
        file.landmarks,
        columns_of_landmarks(count, dimension),
        tuple(file.ids),
        found,
        name,
        "ID",
    )


# ---------------------------------------------------------------------------- by a pattern


def _matched(path: Path, file: TPSFile, pattern: str) -> NDArray[np.str_]:
    """Return the part of each specimen's IMAGE, else ID, that a regular expression finds."""
    try:
        expression = re.compile(pattern)
    except re.error as problem:
        raise InputError(
            f"--label-regex {shown(pattern)} is not a regular expression: {problem}."
        ) from None
    if not expression.groups:
        raise InputError(
            f"--label-regex {shown(pattern)} needs a group in parentheses: the part of the name "
            "that is the label, for instance '^([a-z]+)_'."
        )
    group: str | int = "label" if "label" in expression.groupindex else 1
    found, unmatched = [], []
    for identity, image in zip(file.ids, file.images, strict=True):
        text = image or identity
        match = expression.search(text)
        if match is None or not match[group]:
            unmatched.append(text)
        else:
            found.append(match[group])
    if unmatched:
        raise InputError(
            f"{path}: --label-regex {shown(pattern)} finds no label in {len(unmatched)} of "
            f"{len(file.ids)} names: {listed(unmatched, _MOST_LISTED)}. Change the pattern, or "
            "give the labels by --labels FILE."
        )
    return np.array(found, dtype=np.str_)


# ---------------------------------------------------------------------------- by a second file


def _joined(
    path: Path, file: TPSFile, labels: Path, label: str | None
) -> tuple[NDArray[np.str_], str]:
    """Return the label of each specimen from a table, and the name of its column."""
    if labels.is_dir():
        raise InputError(f"{labels} is a folder; --labels takes one file (csv or tsv).")
    if not labels.exists():
        raise FileNotFoundError(f"There is no file of labels {labels}; check the path.")
    table, rows = text_columns(labels)
    candidates = _keys(file)
    if not candidates:
        raise InputError(
            f"{path}: several specimens share their ID, and their IMAGE, so {labels} cannot be "
            "matched with them. Give every specimen its own ID."
        )
    column, keys = _best_match(candidates, table, rows)
    known = _rows_by_key(table, rows, column)
    absent = [key for key in keys if key not in known]
    if absent:
        raise InputError(
            f"{labels}, column {shown(table.names[column])}: {len(absent)} of {len(keys)} "
            f"specimens of {path} are missing: {listed(absent, _MOST_LISTED)}. The column should "
            "hold the ID or the IMAGE of every specimen."
        )
    chosen = _label_column(table, column, label)
    for key in keys:
        line, cells = known[key]
        if is_no_label(cells[chosen]):
            raise InputError(
                f"{labels}, line {line}, column {shown(table.names[chosen])}: there is no label "
                f"for {shown(key)}."
            )
    found = np.array([known[key][1][chosen] for key in keys], dtype=np.str_)
    return found, table.names[chosen]


def _keys(file: TPSFile) -> list[list[str]]:
    """Return the names that specimens may have in the table, if all of them differ."""
    kinds = [list(file.ids)]
    if all(file.images):
        images = [image or "" for image in file.images]
        # a Windows path has a name and a stem for either kind of slash
        kinds.append(images)
        kinds.append([PureWindowsPath(image).name for image in images])
        kinds.append([PureWindowsPath(image).stem for image in images])
    return [keys for keys in kinds if len(set(keys)) == len(keys)]


def _best_match(
    candidates: Sequence[list[str]], table: TextTable, rows: Sequence[tuple[int, list[str]]]
) -> tuple[int, list[str]]:
    """Return the column and the names of specimens that have most in common."""
    columns = [{cells[i] for _, cells in rows} for i in range(len(table.names))]
    pairs = [(i, keys) for keys in candidates for i in range(len(columns))]
    return max(pairs, key=lambda pair: len(columns[pair[0]].intersection(pair[1])))


def _rows_by_key(
    table: TextTable, rows: Sequence[tuple[int, list[str]]], column: int
) -> dict[str, tuple[int, list[str]]]:
    known: dict[str, tuple[int, list[str]]] = {}
    for line, cells in rows:
        key = cells[column]
        if key in known:
            raise InputError(
                f"{table.path}, line {line}, column {shown(table.names[column])}: {shown(key)} "
                f"is already in line {known[key][0]}. Keep one line for each specimen."
            )
        known[key] = line, cells
    return known


def _label_column(table: TextTable, keys: int, label: str | None) -> int:
    if label is not None:
        if label not in table.names:
            raise unknown_column(table.path, table.names, label, "--label")
        return table.names.index(label)
    others = [i for i in range(len(table.names)) if i != keys]
    usual = [i for i in others if table.names[i].lower() in ("label", "labels", "class")]
    if len(others) == 1 or len(usual) == 1:
        return (usual or others)[0]
    if not others:
        raise InputError(
            f"{table.path} has one column, {shown(table.names[keys])}; it needs a second one with "
            "the labels."
        )
    raise InputError(
        f"{table.path} has several columns that may hold the labels: "
        f"{listed(table.names[i] for i in others)}. Choose one with --label."
    )
