"""Read TPS files, with labels from a table or from the names of the specimens."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..._core.types import Array, Indices
from ...spaces import (
    LandmarkFile,
    as_complex,
    estimate_landmarks,
    extrinsic_mean,
    find_landmark_errors,
    find_mirrored,
    landmarks_from_table,
    match_labels,
    read_morphologika,
    read_nts,
    read_tps,
    reflect_specimens,
)
from ...spaces.tps import TPSFile
from . import checks
from .checks import format_names, quote
from .data import Data, InputError, RawTable
from .tables import TextTable, open_table, restore_formula

# Memory per byte of the file: for a TPS file (lines of text, parsed points and the array), and for
# a table of labels (cells as Python strings).
_TPS_MEMORY_FACTOR = 100
_LABELS_MEMORY_FACTOR = 40
_MAX_LISTED = 5
_NTS_LINE = re.compile(r"1\s+\d+[LBE]?\s+\d+L?\s+[01]\b", re.IGNORECASE)

Specimens = TPSFile | LandmarkFile
Notes = tuple[str, ...]
Labels = NDArray[np.str_]


def read_specimens(path: Path, *, keep_negative: bool = False) -> tuple[Specimens, Notes]:
    """Read a file of landmarks (TPS, Morphologika or NTS); return the specimens and notes."""
    checks.check_memory(path.stat().st_size * _TPS_MEMORY_FACTOR, str(path), "Use fewer specimens.")
    if path.suffix.lower() == ".tps":
        return _read_tps(path, "keep" if keep_negative else "missing")
    try:
        return (read_morphologika if _is_morphologika(path) else read_nts)(path), ()
    except ValueError as problem:
        raise InputError(str(problem)) from None


def is_landmark_text(path: Path) -> bool:
    """Return whether a text file is a Morphologika or an NTS file, not a table."""
    return bool(_NTS_LINE.match(_first_line(path))) or _is_morphologika(path)


def _is_morphologika(path: Path) -> bool:
    """Return whether a file begins with a section, or has points after a title."""
    if _first_line(path).startswith("["):
        return True
    with path.open("rb") as file:
        return any(line.strip().lower() == b"[rawpoints]" for line in file)


def _first_line(path: Path) -> str:
    """Return the first line that is neither blank nor a comment, which begins with a quote."""
    with path.open("rb") as file:
        head = file.read(1 << 12).decode("utf-8-sig", errors="replace")
    lines = map(str.strip, head.splitlines())
    return next((line for line in lines if line and line[0] not in "\"'"), "")


def specimens_of(raw: RawTable) -> tuple[tuple[LandmarkFile, Notes] | None, Labels | None]:
    """Return the landmarks of a table, with notes, and the labels.

    The table may be long or wide. The landmarks are None if the table holds none, and the labels
    are None if it has no landmarks or no labels.
    """
    columns: dict[str, Any] = {}
    if raw.id_name is not None:
        columns["id" if raw.id_name == "(no name)" else raw.id_name] = list(raw.ids)
    columns |= {str(name): raw.values[name].to_numpy() for name in raw.values.columns}
    try:
        found = landmarks_from_table(columns)
    except ValueError as problem:
        raise InputError(f"{raw.path}: {problem}") from None
    if found is None:
        return None, None
    file, used, rows = found
    labels = None if raw.labels is None else np.array([raw.labels[i] for i in rows], dtype=np.str_)
    kind = "long" if len(file.ids) < len(raw.ids) else "wide"
    note = (
        f"The columns {format_names(used, 4)} were read as {file.landmarks.shape[1]} landmarks of "
        f"{len(file.ids)} specimens ({kind} table). Use --columns to read a table of numbers."
    )
    return (file, (*raw.notes, note)), labels


def label_specimens(
    path: Path,
    file: Specimens,
    notes: Notes,
    found: Labels | None,
    label: str | None,
    labels: str | os.PathLike[str] | None,
    label_regex: str | None,
) -> Data:
    """Return landmarks with labels from a table, or from the names of the specimens.

    `found` are labels from the same file.
    """
    if labels is not None and label_regex is not None:
        raise InputError(f"{path}: use --labels or --label-regex, not both.")
    if label is not None and labels is None and found is None:
        raise InputError(
            f"{path} has landmarks, and no column for --label. Use --labels FILE (a table with the "
            "ID or IMAGE of each specimen and its label), or --label-regex (which finds the label "
            "in the IMAGE or ID)."
        )
    name = label_regex if found is None else label
    if labels is not None:
        found, name = _labels_from_table(path, file, Path(labels), label)
    elif label_regex is not None:
        found = _labels_from_names(path, file, label_regex)
    columns = checks.column_names(*file.landmarks.shape[1:])
    names = tuple(file.names) if isinstance(file, LandmarkFile) else ()
    ids = tuple(file.ids)
    data = Data(str(path), "shapes", file.landmarks, columns, ids, found, name, "ID", notes)
    return replace(data, landmarks=names)


def _read_tps(path: Path, negative: Literal["keep", "missing"]) -> tuple[TPSFile, Notes]:
    """Read a TPS file. If coordinates have both signs, keep negative ones, and add a note."""
    try:
        return read_tps(path, missing="nan", negative=negative), ()
    except ValueError as problem:
        if "negative='keep'" not in str(problem):
            raise InputError(str(problem)) from None
    try:
        file = read_tps(path, missing="nan", negative="keep")
    except ValueError as problem:
        raise InputError(str(problem)) from None
    note = (
        "Coordinates have both signs, so negative ones were read as positions, not as missing "
        "landmarks."
    )
    return file, (note,)


def complete_landmarks(data: Data, missing: str | None) -> Data:
    """Drop specimens with missing landmarks or labels, or estimate landmarks; add a note."""
    if missing == "estimate":
        data = _estimated(data, None)
    gaps = np.asarray(np.isnan(data.X).any(axis=(1, 2)))
    unlabelled = checks.unlabelled_rows(data.labels, len(data))
    incomplete = np.flatnonzero(gaps | unlabelled)
    if not len(incomplete):
        return data
    names = format_names((data.ids[i] for i in incomplete), _MAX_LISTED)
    can_estimate = np.any(gaps & ~unlabelled)  # a specimen without a label is dropped anyway
    fill = "--missing estimate to estimate the landmarks" if can_estimate else ""
    problems = {"missing landmarks": gaps, "no label": unlabelled}
    place = f"{data.path}, {names}"
    complete, note = checks.drop_incomplete(place, "specimen", problems, missing, fill)
    return _noted(data.take(np.flatnonzero(complete)), f"{note} Incomplete: {names}.")


def _estimated(data: Data, mean: Any) -> Data:
    """Estimate missing landmarks from a mean shape, or from the complete specimens; add a note."""
    if not np.isnan(data.X).any():
        return data
    try:
        X, estimated = estimate_landmarks(data.X, mean=mean)
    except ValueError as problem:
        raise InputError(f"{data.path}: {problem}") from None
    names = format_names((data.ids[i] for i in np.flatnonzero(estimated.any(axis=1))), 20)
    note = f"{estimated.sum()} missing landmarks were estimated, of {names}."
    return _noted(replace(data, X=X), note)


def _noted(data: Data, note: str) -> Data:
    return replace(data, notes=(*data.notes, note))


def _reflected(data: Data, mirrored: Indices) -> Data:
    ids = tuple(data.ids[i] for i in mirrored)
    note = f"{len(ids)} mirrored specimens were reflected: {format_names(ids, 20)}."
    return _noted(replace(data, X=reflect_specimens(data.X, mirrored), reflected=ids), note)


def fix_mirrored(data: Data) -> Data:
    """Reflect specimens that are mirror images of the others; add a note."""
    found = find_landmark_errors(data.X).mirrored
    return _reflected(data, found) if len(found) else _noted(data, "No specimen is mirrored.")


def treat_like_training(data: Data, mean: Any, *, reflect: bool) -> Data:
    """Estimate missing landmarks of new specimens, and reflect mirrored ones if `reflect`.

    Both are done relative to the mean shape of the training data. No specimen is dropped.
    """
    reference = np.array(mean, dtype=np.float64)
    if reference.shape != data.X.shape[1:]:
        return data  # the model reports the wrong number of landmarks
    data = _estimated(data, reference)
    mirrored = find_mirrored(data.X, reference)
    if not len(mirrored):
        return data
    if reflect:
        return _reflected(data, mirrored)
    names = format_names((data.ids[i] for i in mirrored), 20)
    return _noted(data, f"{len(mirrored)} specimens look mirrored: {names}.")


def landmark_notes(data: Data) -> list[str]:
    """Return notes on specimens that were probably digitised wrongly."""
    found, notes = find_landmark_errors(data.X), []
    ids, landmarks = data.ids, data.landmarks
    if len(found.mirrored):
        names = format_names((ids[i] for i in found.mirrored), 20)
        notes.append(
            f"{len(found.mirrored)} of {len(data)} specimens look mirrored: {names}. They would "
            "distort the result. Use --fix-mirrored to reflect them."
        )
    for i, first, second in found.swapped:
        pair = f"{landmarks[first]} and {landmarks[second]}"
        notes.append(f"Landmarks {pair} of specimen {quote(ids[i])} look exchanged.")
    for i, landmark in found.displaced:
        name = landmarks[landmark]
        notes.append(f"Landmark {name} of specimen {quote(ids[i])} is far from its place.")
    if len(found.outlying):
        names = format_names((ids[i] for i in found.outlying), _MAX_LISTED)
        notes.append(f"Far from the mean shape: {names}. Check these specimens.")
    return notes


def _labels_from_names(path: Path, file: Specimens, pattern: str) -> Labels:
    """Return the labels that a regular expression finds in all images, or else in all ids."""
    problems = []
    for names in (file.images, file.ids) if all(file.images) else (file.ids,):
        try:
            return match_labels(names, pattern)
        except ValueError as problem:
            problems.append(str(problem))
    listed = " Nor in the IDs: ".join(dict.fromkeys(problems))
    raise InputError(f"{path}: --label-regex {listed} Or use --labels FILE.")


# ---------------------------------------------------------------------------- labels from a table


def _labels_from_table(
    path: Path, file: Specimens, labels: Path, label: str | None
) -> tuple[Labels, str]:
    """Return the label of each specimen from a table, and the name of the label column."""
    if not labels.is_file():
        raise InputError(f"--labels {labels} is not a file. Give the path of a csv or tsv file.")
    table = open_table(labels)
    checks.check_memory(labels.stat().st_size * _LABELS_MEMORY_FACTOR, str(labels), "")
    rows = {n: [restore_formula(cell.strip()) for cell in cells] for n, cells in table.records()}
    keys, column = _matching_column(path, file, table, list(rows.values()))
    where = f"column {quote(table.names[column])}"
    known: dict[str, int] = {}
    for line, cells in rows.items():
        first = known.setdefault(cells[column], line)
        if first != line:
            raise InputError(
                f"{labels}, line {line}, {where}: {quote(cells[column])} is already in line "
                f"{first}. Keep one line per specimen."
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
    missing = [key for key, text in zip(keys, found, strict=True) if checks.is_missing_label(text)]
    # fewer specimens are left out later, with a note
    if len(missing) > checks.MAX_DROPPED * len(keys):
        place = f"{labels}, line {known[missing[0]]} ({quote(missing[0])})"
        raise checks.missing_label(place, table.names[chosen])
    return np.array(found, dtype=np.str_), table.names[chosen]


def _matching_column(
    path: Path, file: Specimens, table: TextTable, rows: list[list[str]]
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


def with_links(data: Data, path: str | None) -> Data:
    """Add the pairs of landmarks that figures join: those of a file, or a default.

    By default, landmarks are joined in their order (``links`` is None). If this outline would cross
    itself in the plane, no landmarks are joined (``links`` is empty).
    """
    if path is not None:
        if data.kind != "shapes":
            raise InputError(f"{data.path} has no landmarks. Remove --links.")
        return replace(data, links=_read_links(path, data.landmarks))
    if data.kind == "shapes" and data.X.shape[2] == 2 and _crosses_itself(data.X):
        return replace(data, links=np.empty((0, 2), dtype=np.intp))
    return data


def _read_links(path: str | os.PathLike[str], landmarks: Sequence[str]) -> Indices:
    """Read pairs of landmarks, one per line, with the names in the file of landmarks.

    The two names are separated by a comma, a semicolon or blanks. The first line may be a header.
    """
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        lines = [line.split("#")[0].strip() for line in file]
    pairs = []
    for n, line in enumerate(lines, start=1):
        if not line or (n == 1 and not re.search("[0-9]", line)):
            continue
        cells = [cell.strip("\"' ") for cell in re.split(r"[,;\s]+", line)]
        pair = [landmarks.index(cell) for cell in cells if cell in landmarks]
        if not len(pair) == len(cells) == 2:
            raise InputError(
                f"{path}, line {n}: {quote(line)} is not a pair of landmarks. They are called "
                f"{landmarks[0]} to {landmarks[-1]}. Write two per line, such as "
                f"{landmarks[0]},{landmarks[1]}."
            )
        pairs.append(pair)
    if not pairs:
        raise InputError(f"{path} has no pairs of landmarks. Write one per line, such as 1,2.")
    return np.array(pairs)


def _crosses_itself(X: Array) -> bool:
    """Return whether a line through the landmarks of the mean shape, in order, crosses itself."""
    outline = extrinsic_mean(as_complex(X))
    start, end = outline, np.roll(outline, -1)
    sides = (end - start).conj()[:, None]
    # the ends of side j are on opposite sides of the line through side i
    before = (sides * (start[None] - start[:, None])).imag
    after = (sides * (end[None] - start[:, None])).imag
    opposite = before * after < 0
    return bool((opposite & opposite.T).any())
