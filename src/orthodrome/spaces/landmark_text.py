"""Read landmarks from NTS and Morphologika files, and from long or wide tables."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.checks import check_path, invalid
from .._core.types import Floats
from .shapes import MIN_LANDMARKS

_NTS_HEADER = re.compile(r"1\s+(\d+)([LBEb]?)\s+(\d+)([Ll]?)\s+([01])(?:\s+(?!DIM)(\S+))?(.*)")
_DIMENSION = re.compile(r"dim\s*=\s*(\d)", re.IGNORECASE)
_POINT = r"(?:lm|landmark|point|pt|p|l)?"
# The names of columns of coordinates: x1, lm1_x, 1.X and similar.
_AXIS_FIRST = re.compile(rf"([xyz])[_. -]?{_POINT}[_. -]?(\d+)", re.IGNORECASE)
_NUMBER_FIRST = re.compile(rf"{_POINT}[_. -]?(\d+)[_. -]?([xyz])", re.IGNORECASE)
_MORPHOJ = re.compile(r"(?:raw|proc)?\s*coord(?:inate)?s?[_. ]?(\d+)", re.IGNORECASE)
_LANDMARK_COLUMN = re.compile(
    r"(landmarks?|lms?|points?|pts?|coord|vertex|semilandmark)([_. -]?(id|no|nr|number|name))?",
    re.IGNORECASE,
)
_SPECIMEN_COLUMN = re.compile(
    r"(specimens?|individuals?|ind|samples?|id|name|image|file|animal)([_. -]?(id|no|nr|name))?",
    re.IGNORECASE,
)


class LandmarkFile(NamedTuple):
    """Landmarks of n specimens.

    Attributes
    ----------
    landmarks : ndarray of shape (n, k, 2) or (n, k, 3)
        Coordinates; NaN where a landmark is missing.
    ids : list of str
        The name of each specimen.
    images : list of str or None
        The image of each specimen, if known.
    names : list of str
        The name or number of each landmark in the file.
    """

    landmarks: Floats
    ids: list[str]
    images: list[str | None]
    names: list[str]


class TableLandmarks(NamedTuple):
    """Landmarks from a table, the columns with coordinates, and the first row of a specimen."""

    file: LandmarkFile
    columns: list[str]
    rows: list[int]


def _file(landmarks: Floats, ids: list[str], names: list[str] | None = None) -> LandmarkFile:
    numbers = [str(i + 1) for i in range(landmarks.shape[1])]
    return LandmarkFile(landmarks, ids, [None] * len(ids), names or numbers)


def match_labels(names: Sequence[str | None], pattern: str) -> NDArray[np.str_]:
    """Find class labels in the names of specimens.

    Parameters
    ----------
    names : sequence of str or None
        Names, such as the ids or images of a file.
    pattern : str
        A regular expression, searched in each name. The label is the group called ``label``, or
        else the first group.

    Returns
    -------
    ndarray of str
        One label per name.

    Raises
    ------
    ValueError
        If the pattern is invalid or has no group, or finds no label in a name.

    Examples
    --------
    >>> match_labels(["edulis_07", "caerulea_12"], r"^([a-z]+)_")
    array(['edulis', 'caerulea'], dtype='<U8')
    """
    is_list = isinstance(names, (list, tuple, np.ndarray))
    if not is_list or any(not isinstance(name, str | None) for name in names):
        raise invalid("names", "match_labels", "a list of strings", names)
    if not isinstance(pattern, str):
        raise invalid("pattern", "match_labels", "a string", pattern)
    try:
        expression = re.compile(pattern)
    except re.error as problem:
        raise ValueError(f"{pattern!r} is not a regular expression: {problem}.") from None
    if not expression.groups:
        raise ValueError(
            f"{pattern!r} needs a group in parentheses around the label, such as '^([a-z]+)_'."
        )
    group: str | int = "label" if "label" in expression.groupindex else 1
    matches = [expression.search(name or "") for name in names]
    labels = [match[group] if match else None for match in matches]
    unmatched = [repr(name) for name, label in zip(names, labels, strict=True) if not label]
    if unmatched:
        shown = ", ".join(unmatched[:5]) + (" and others" if len(unmatched) > 5 else "")
        raise ValueError(
            f"{pattern!r} finds no label in {len(unmatched)} of {len(names)} names: {shown}. "
            "Change the pattern."
        )
    return np.array(labels, dtype=np.str_)


# ---------------------------------------------------------------------------- NTS


def read_nts(path: str | os.PathLike[str]) -> LandmarkFile:
    r"""Read an NTS file, as NTSYSpc and geomorph write it.

    Parameters
    ----------
    path : str or path-like
        The file. After comments, which begin with a quote, its first line is for instance
        ``1 20L 24 1 -999 DIM=2``: 20 specimens with names, 24 coordinates, missing values coded
        as -999, two dimensions.

    Returns
    -------
    LandmarkFile
        The landmarks.

    Raises
    ------
    ValueError
        If the file is not an NTS file. The message names the line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "wings.nts")
    >>> _ = path.write_text('" wings\n1 2L 6 0 DIM=2\nleft right\n0 0 1 0 0 1\n0 0 2 0 0 2\n')
    >>> read_nts(path).ids, read_nts(path).landmarks.shape
    (['left', 'right'], (2, 3, 2))
    """
    lines = _lines(path)
    while lines and lines[0][1][0] in "\"'":
        lines.pop(0)
    number, text = lines.pop(0) if lines else (1, "")
    header = _NTS_HEADER.fullmatch(text)
    if header is None:
        raise ValueError(
            f"{path}, line {number}: an NTS file needs a line such as '1 20L 24 0 DIM=2' here; got "
            f"{text[:40]!r}."
        )
    n, width = int(header[1]), int(header[3])
    dimension = _DIMENSION.search(text)
    m = int(dimension[1]) if dimension else 2
    if m not in (2, 3) or width % m:
        raise ValueError(f"{path}, line {number}: {width} coordinates are not points in DIM={m}.")
    tokens = [(line, token) for line, words in lines for token in words.split()]
    ids = [str(i + 1) for i in range(n)]
    if header[2] == "L":
        ids, tokens = [token for _, token in tokens[:n]], tokens[n:]
    if header[4]:
        tokens = tokens[width:]
    if header[2] and header[2] in "BEb":  # names in the rows
        at = width if header[2] == "E" else 0
        ids = [token for _, token in tokens[at :: width + 1]]
        tokens = [token for i, token in enumerate(tokens) if i % (width + 1) != at]
    if len(tokens) != n * width:
        raise ValueError(
            f"{path}: there are {len(tokens)} numbers, but line {number} announces {n} specimens "
            f"of {width} coordinates. Correct one of them."
        )
    values = np.array([_number(path, *token) for token in tokens])
    if header[5] == "1" and header[6]:
        values[values == _number(path, number, header[6])] = np.nan
    return _file(values.reshape(n, width // m, m), ids)


# ---------------------------------------------------------------------------- Morphologika


def read_morphologika(path: str | os.PathLike[str]) -> LandmarkFile:
    r"""Read a Morphologika file, which MorphoJ and geomorph also use.

    Parameters
    ----------
    path : str or path-like
        The file: sections such as ``[individuals]``, ``[landmarks]``, ``[dimensions]``,
        ``[names]`` and ``[rawpoints]``.

    Returns
    -------
    LandmarkFile
        The landmarks.

    Raises
    ------
    ValueError
        If a section or a number is missing. The message names the line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "skulls.txt")
    >>> head = "[individuals]\n1\n[landmarks]\n3\n[dimensions]\n2\n[names]\nmax\n[rawpoints]\n"
    >>> _ = path.write_text(head + "'max\n0 0\n1 0\n0 1\n")
    >>> read_morphologika(path).ids
    ['max']
    """
    sections: dict[str, list[tuple[int, str]]] = {}
    current: list[tuple[int, str]] = []
    for number, text in _lines(path):
        if text.startswith("["):
            current = sections.setdefault(text.strip("[] ").lower(), [])
        elif not text.startswith("'"):
            current.append((number, text))
    counts = {}
    for name in ("individuals", "landmarks", "dimensions"):
        if not sections.get(name):
            raise ValueError(f"{path} has no section [{name}] with a number.")
        number, text = sections[name][0]
        counts[name] = int(_number(path, number, text))
    n, k, m = counts.values()
    tokens = [
        (number, token)
        for number, text in sections.get("rawpoints", [])
        for token in text.replace(",", " ").split()
    ]
    if len(tokens) != n * k * m or m not in (2, 3):
        raise ValueError(
            f"{path}: [rawpoints] has {len(tokens)} numbers, but {n} individuals with {k} "
            f"landmarks in {m} dimensions need {n * k * m}."
        )
    names = [text for _, text in sections.get("names", [])]
    ids = names if len(names) == n else [str(i + 1) for i in range(n)]
    values = np.array([_number(path, *token) for token in tokens])
    return _file(values.reshape(n, k, m), ids)


# ---------------------------------------------------------------------------- tables


def landmarks_from_table(columns: Mapping[str, Any]) -> TableLandmarks | None:
    """Return the landmarks of a long or a wide table.

    A long table has one row for each landmark: specimen, landmark, x, y and perhaps z. A wide
    table has one row for each specimen: x1, y1, x2, y2 and so on. Return None for other tables.

    Parameters
    ----------
    columns : mapping of str to array-like
        The columns. Coordinates are numbers, or NaN if missing. The first column that holds
        neither coordinates nor landmark numbers names the specimens.

    Returns
    -------
    TableLandmarks or None
        The landmarks, the names of the columns with coordinates, and the first row of each
        specimen.

    Raises
    ------
    ValueError
        If a long table has a landmark of a specimen twice.

    Examples
    --------
    >>> table = {"id": ["a"], "x1": [0.0], "y1": [0], "x2": [1], "y2": [0], "x3": [0], "y3": [1]}
    >>> found = landmarks_from_table(table)
    >>> found.file.landmarks.shape, found.file.ids, found.columns
    ((1, 3, 2), ['a'], ['x1', 'y1', 'x2', 'y2', 'x3', 'y3'])
    """
    return _from_long(columns) or _from_wide(columns)


def _from_long(columns: Mapping[str, Any]) -> TableLandmarks | None:
    axes = [name for axis in "xyz" for name in columns if name.lower() == axis]
    landmark = [name for name in columns if _LANDMARK_COLUMN.fullmatch(name)]
    specimen = [
        name for name in columns if _SPECIMEN_COLUMN.fullmatch(name) and name not in landmark
    ]
    if len(axes) < 2 or len(landmark) != 1 or not specimen:
        return None
    points = np.column_stack([np.asarray(columns[name], dtype=np.float64) for name in axes])
    specimens = [_text(cell) for cell in columns[specimen[0]]]
    numbers = [_text(cell) for cell in columns[landmark[0]]]
    keys = Counter(zip(specimens, numbers, strict=True))
    (name, number), count = keys.most_common(1)[0]
    if count > 1:
        raise ValueError(f"Landmark {number!r} of specimen {name!r} occurs {count} times.")
    rows = {name: row for row, name in reversed(list(enumerate(specimens)))}
    ids, names = list(dict.fromkeys(specimens)), list(dict.fromkeys(numbers))
    if all(name.isdigit() for name in names):
        names.sort(key=int)
    if len(names) < MIN_LANDMARKS:
        return None
    i, j = (
        list(map({name: place for place, name in enumerate(order)}.__getitem__, cells))
        for order, cells in ((ids, specimens), (names, numbers))
    )
    landmarks = np.full((len(ids), len(names), len(axes)), np.nan)
    landmarks[i, j] = points
    return TableLandmarks(_file(landmarks, ids, names), axes, [rows[name] for name in ids])


def _from_wide(columns: Mapping[str, Any]) -> TableLandmarks | None:
    found: dict[tuple[int, str], str] = {}
    plain: list[tuple[int, str]] = []
    for name in columns:
        if match := _AXIS_FIRST.fullmatch(name):
            found[int(match[2]), match[1].lower()] = name
        elif match := _NUMBER_FIRST.fullmatch(name):
            found[int(match[1]), match[2].lower()] = name
        elif match := _MORPHOJ.fullmatch(name):
            plain.append((int(match[1]), name))
    axes = sorted({axis for _, axis in found})
    numbers = sorted({number for number, _ in found})
    used = [found.get((number, axis), "") for number in numbers for axis in axes]
    if not found and len(plain) % 2 == 0:
        axes, used = ["x", "y"], [name for _, name in sorted(plain)]
    k = len(used) // max(len(axes), 1)
    if len(axes) < 2 or "" in used or k < MIN_LANDMARKS:
        return None
    try:
        values = [np.asarray(columns[name], dtype=np.float64) for name in used]
    except (TypeError, ValueError):
        return None
    others = [name for name in columns if name not in used]
    names = [name for name in others if _SPECIMEN_COLUMN.fullmatch(name) or not name]
    ids = [str(i + 1) for i in range(len(values[0]))]
    if names and len(set(columns[names[0]])) == len(ids):
        ids = [_text(cell) for cell in columns[names[0]]]
    landmarks = np.column_stack(values).reshape(len(ids), k, len(axes))
    file = _file(landmarks, ids, list(map(str, numbers)))
    return TableLandmarks(file, used, list(range(len(ids))))


def _text(cell: Any) -> str:
    """Return the text of a cell; 3.0 becomes "3"."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


# ---------------------------------------------------------------------------- text


def _lines(path: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """Return the lines that are not empty, with their numbers."""
    text = decoded(check_path(path, "path", "the reader of landmarks").read_bytes())
    numbered = enumerate((line.strip() for line in text.splitlines()), start=1)
    return [(number, line) for number, line in numbered if line]


def decoded(content: bytes) -> str:
    """Return the text of a file in UTF-8, or else Windows-1252, or else Latin-1."""
    for encoding in ("utf-8-sig", "cp1252"):
        with suppress(UnicodeDecodeError):
            return content.decode(encoding)
    return content.decode("latin-1")


def _number(path: Any, line: int, text: str) -> float:
    if text.lower() in ("na", "nan", "?"):
        return float("nan")
    try:
        value = float(text)
    except ValueError:
        value = float("inf")
    if not np.isfinite(value):
        raise ValueError(f"{path}, line {line}: {text[:40]!r} is not a finite number.")
    return value
