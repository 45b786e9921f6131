"""TPS files, and labels for their specimens from a second file or from their names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PureWindowsPath

import numpy as np
from numpy.typing import NDArray

from ...spaces import read_tps
from ...spaces.tps import TPSFile
from ..memory import memory_refusal
from .data import Data, InputError, columns_of_landmarks, listed, shown
from .selection import unknown_column
from .tables import text_columns
from .text import TextTable, is_no_label

__all__ = ["read_specimens"]

# Lines of text, parsed points and the array take up to so many times the bytes of the file where
# its numbers are of one digit; a third of that where they have four.
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
    refusal = memory_refusal(path.stat().st_size * _BYTES_PER_BYTE, str(path))
    if refusal:
        raise InputError(f"{refusal}. Take a part of the specimens.")
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
        # what the reader is told in Python, the command line is told by what it has
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
            f"--label-regex {shown(pattern)} is no regular expression: {problem}."
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
    """Return the label of each specimen in a table, and the name of its column."""
    _check_file(labels)
    table, rows = text_columns(labels)
    keys = _keys(file)
    if not keys:
        raise InputError(
            f"{path}: several specimens share their ID, and their IMAGE, so {labels} cannot tell "
            "them apart. Give every specimen an ID of its own."
        )
    column, kind = _best_match(keys, table, rows)
    known = _lines_by_key(table, rows, column)
    absent = [key for key in keys[kind] if key not in known]
    if absent:
        raise InputError(
            f"{labels}, column {shown(table.names[column])}: {len(absent)} of {len(keys[kind])} "
            f"specimens of {path} are not there: {listed(absent, _MOST_LISTED)}. The column should "
            "hold the ID or the IMAGE of every specimen."
        )
    chosen = _label_column(table, column, label)
    found = []
    for key in keys[kind]:
        line, cells = rows[known[key]]
        if is_no_label(cells[chosen]):
            raise InputError(
                f"{labels}, line {line}, column {shown(table.names[chosen])}: there is no label "
                f"for {shown(key)}."
            )
        found.append(cells[chosen])
    return np.array(found, dtype=np.str_), table.names[chosen]


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder; --labels takes one file (csv or tsv).")
    if not path.exists():
        raise FileNotFoundError(f"There is no file of labels {path}; check the path.")


def _keys(file: TPSFile) -> dict[str, list[str]]:
    """Return what specimens may be called in the table, if that tells them all apart."""
    kinds = {"ID": list(file.ids)}
    if all(file.images):
        images = [image or "" for image in file.images]
        # a Windows path has a name and a stem for either kind of slash
        kinds["IMAGE"] = images
        kinds["name of the IMAGE"] = [PureWindowsPath(image).name for image in images]
        kinds["stem of the IMAGE"] = [PureWindowsPath(image).stem for image in images]
    return {kind: keys for kind, keys in kinds.items() if len(set(keys)) == len(keys)}


def _best_match(
    keys: Mapping[str, Sequence[str]], table: TextTable, rows: Sequence[tuple[int, list[str]]]
) -> tuple[int, str]:
    """Return the column and the kind of name that have most in common."""
    best, most = (0, next(iter(keys))), -1
    for kind, wanted in keys.items():
        names = set(wanted)
        for column in range(len(table.names)):
            shared = len(names & {cells[column] for _, cells in rows})
            if shared > most:
                best, most = (column, kind), shared
    return best


def _lines_by_key(
    table: TextTable, rows: Sequence[tuple[int, list[str]]], column: int
) -> dict[str, int]:
    known: dict[str, int] = {}
    for position, (line, cells) in enumerate(rows):
        key = cells[column]
        if key in known:
            raise InputError(
                f"{table.path}, line {line}, column {shown(table.names[column])}: {shown(key)} "
                f"stands in line {rows[known[key]][0]} already. Keep one line for each specimen."
            )
        known[key] = position
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
        f"{listed(table.names[i] for i in others)}. Say which with --label."
    )
