"""TPS files, the landmark files of tpsDig and its kin: read in their dialects, written exactly.

A specimen is a block of coordinates and some fields, in this order or another::

    LM=3
    104.5 220.0
    98.25 311.0
    150.0 275.5
    IMAGE=leaf_01.jpg
    ID=caerulea_1
    SCALE=0.0125

The reader of ktch 0.11 (the extra ``[shapes]``) tells no line numbers and stops at a missing ID, at
exponents, double blanks, NA, decimal commas, remarks and keywords in small letters, so this module
reads the files by itself.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path, PureWindowsPath
from typing import Any, Literal, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_choice

__all__ = ["TPSFile", "read_tps", "write_tps"]

_FIELD = re.compile(r"([A-Za-z_][^=]*?)\s*=\s*(.*)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# With digits on both sides, so that "1, 2" cannot be taken for two numbers with decimal commas.
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?")
_COUNT = re.compile(r"[0-9]{1,9}")
_MISSING = {"NA", "NAN", "?"}
_REMARK = ("#", '"', "//")
_SAME_KEY = {"COMMENTS": "COMMENT", "OUTLINES": "CURVES", "LM3": "LM"}
# What tells specimens apart; a remark at the head of a file does not.
_IDENTITY = frozenset({"ID", "IMAGE", "SCALE"})
_LONGEST_SHOWN = 60


@dataclass(frozen=True, eq=False)
class TPSFile:
    """What :func:`read_tps` found in a file of n specimens.

    Attributes
    ----------
    landmarks : ndarray of shape (n, k, 2) or (n, k, 3)
        Coordinates, float64; NaN where a landmark is missing.
    ids : list of str
        The ID of each specimen; without one the stem of its IMAGE, else its number from 1.
    images : list of str or None
        The IMAGE of each specimen.
    scales : ndarray of shape (n,)
        The SCALE of each specimen as it stands in the file, NaN where there is none.
    curves : list of lists of ndarray of shape (m, 2) or (m, 3)
        The curves of each specimen; empty where they were appended to the landmarks.
    comments : list of str or None
        The COMMENT of each specimen; several are joined by line breaks.
    other : list of dict
        All other fields of each specimen, by their names in capitals.
    """

    landmarks: NDArray[np.float64]
    ids: list[str]
    images: list[str | None]
    scales: NDArray[np.float64]
    curves: list[list[NDArray[np.float64]]]
    comments: list[str | None]
    other: list[dict[str, str]]

    def labels(self, pattern: str) -> NDArray[np.str_]:
        r"""Return class labels that a regular expression finds in the ids.

        Parameters
        ----------
        pattern : str
            A regular expression; its first group is the label. It may match anywhere in the id:
            begin it with ``^`` to hold it to the beginning.

        Returns
        -------
        ndarray of str of shape (n,)
            One label per specimen.

        Raises
        ------
        ValueError
            Where the pattern has no group, or an id does not match; the message names the id.

        Examples
        --------
        >>> import io
        >>> from orthodrome.spaces import read_tps
        >>> text = "LM=1\n1 2\nID=edulis_07\nLM=1\n3 4\nID=caerulea_12"
        >>> read_tps(io.StringIO(text)).labels(r"^([a-z]+)_")
        array(['edulis', 'caerulea'], dtype='<U8')
        """
        try:
            expression = re.compile(pattern)
        except re.error as problem:
            raise ValueError(f"pattern {pattern!r} is no regular expression: {problem}.") from None
        if not expression.groups:
            raise ValueError(
                f"pattern {pattern!r} needs a group in parentheses: the part of the id which is "
                "the label."
            )
        found = []
        for position, name in enumerate(self.ids, start=1):
            match = expression.search(name)
            if match is None or match[1] is None:
                raise ValueError(
                    f"The id {name!r} of specimen {position} does not match {pattern!r}; change "
                    "the pattern, or give the labels yourself."
                )
            found.append(match[1])
        return np.array(found, dtype=np.str_)


def read_tps(
    path: str | os.PathLike[str] | TextIO,
    *,
    apply_scale: bool = False,
    missing: Literal["error", "nan"] = "error",
    negative: Literal["missing", "keep"] = "missing",
    curves: Literal["drop", "append"] = "drop",
) -> TPSFile:
    r"""Read the landmarks of a TPS file, and what else it says of its specimens.

    Parameters
    ----------
    path : str, path-like or open text file
        The file. It is read as UTF-8, or as Latin-1 where it is not that.
    apply_scale : bool, default=False
        Multiply landmarks and curves by the specimen's SCALE; all specimens must have one. `scales`
        of the result stay as read, so do not write them beside scaled landmarks.
    missing : {"error", "nan"}, default="error"
        What to do about missing landmarks: an error that names the first, or NaN coordinates.
    negative : {"missing", "keep"}, default="missing"
        What negative coordinates mean; see Notes.
    curves : {"drop", "append"}, default="drop"
        Whether the points of the curves follow the landmarks in `landmarks` ("append"), or are in
        `curves` alone.

    Returns
    -------
    TPSFile
        Landmarks, ids, images, scales, curves, comments and other fields.

    Raises
    ------
    ValueError
        Where the file cannot be read; the message has the name of the file, the number of the line,
        the line and the reason. All specimens must have as many landmarks, in as many dimensions,
        as the first: there are no ragged arrays here.
    FileNotFoundError
        Where there is no such file.

    See Also
    --------
    write_tps : Writes such files.

    Notes
    -----
    *Dialects.* Keywords in any case, with blanks around ``=``; LM3 for three dimensions; OUTLINES
    for CURVES, COMMENTS for COMMENT; blank lines, and remarks, which are whole lines that begin
    with ``#``, ``"`` or ``//``; any line ends; blanks or tabs. Unknown fields are kept in `other`.

    *Where a specimen begins.* At its LM; but if ID, IMAGE or SCALE stands before the first LM of
    the file, then after a block of landmarks any of the fields which stood before the first begins
    the next specimen too.

    *Commas.* A line of d coordinates with commas has decimal commas where blanks part it into d
    numbers without a point (``1,5 2,75``), and commas between the numbers where these part it into
    d numbers (``1.5, 2.75`` or ``1.5,2.75``). No line is both. A line that is neither, such as
    ``1,5,2,75``, is an error, and so is a file that has lines of both kinds. There are no commas
    for thousands.

    *Missing landmarks.* A coordinate ``NA``, ``NaN`` or ``?`` is missing. So is a landmark (or a
    point of a curve) all coordinates of which are negative or missing: programs such as tpsDig
    record a missing landmark by negative coordinates. Aligned or centred landmarks are negative by
    right, so in two cases this is not assumed and there is an error, whatever `missing` is: where
    the file also has a point with a negative coordinate beside one that is not, and where no point
    would be left. ``negative="keep"`` takes all numbers as they are. (geomorph's `readland.tps`
    keeps them unless told ``negNA=TRUE``, and then each negative coordinate is missing by itself.)
    The default here is the other way round because the error is loud, while a landmark at (-1, -1)
    spoils a shape silently.

    References
    ----------
    Rohlf, "The tps series of software", Hystrix 26 (2015) 9-12. Adams and Otárola-Castillo,
    "geomorph: an R package for the collection and analysis of geometric morphometric shape data",
    Methods in Ecology and Evolution 4 (2013) 393-399.

    Examples
    --------
    >>> import io
    >>> from orthodrome.spaces import read_tps
    >>> leaf = read_tps(io.StringIO("LM=3\n1 2\n3,5 4\nNA NA\nIMAGE=leaf_1.jpg"), missing="nan")
    >>> leaf.landmarks[0]
    array([[1. , 2. ],
           [3.5, 4. ],
           [nan, nan]])
    >>> leaf.ids
    ['leaf_1']
    """
    check_choice(missing, ("error", "nan"), "missing", "read_tps")
    check_choice(negative, ("missing", "keep"), "negative", "read_tps")
    check_choice(curves, ("drop", "append"), "curves", "read_tps")
    lines = _Lines(*_name_and_text(path))
    specimens = _Parser(lines).specimens()
    _check_uniform(lines, specimens, with_curves=curves == "append")
    _settle_missing(lines, specimens, missing=missing, negative=negative)
    if apply_scale:
        for specimen in specimens:
            _apply_scale(lines, specimen)
    appended = curves == "append"
    return TPSFile(
        landmarks=np.stack([specimen.coordinates(with_curves=appended) for specimen in specimens]),
        ids=[specimen.name for specimen in specimens],
        images=[specimen.fields.get("IMAGE") or None for specimen in specimens],
        scales=np.array([specimen.scale for specimen in specimens]),
        curves=[[] if appended else [c.coordinates for c in s.curves] for s in specimens],
        comments=[specimen.fields.get("COMMENT") or None for specimen in specimens],
        other=[specimen.other() for specimen in specimens],
    )


def write_tps(
    path: str | os.PathLike[str],
    landmarks: ArrayLike,
    *,
    ids: Sequence[str | int] | None = None,
    images: Sequence[str | None] | None = None,
    scales: ArrayLike | None = None,
    curves: Sequence[Sequence[ArrayLike] | None] | None = None,
    comments: Sequence[str | None] | None = None,
) -> None:
    """Write landmarks to a TPS file, so that :func:`read_tps` gives them back to the last bit.

    Parameters
    ----------
    path : str or path-like
        The file. It is replaced in one step when all is written: nothing is left half-written.
    landmarks : array-like of shape (n, k, 2) or (n, k, 3)
        Coordinates. NaN is written as NA; three dimensions as LM3.
    ids : sequence of n str or int, optional
        The names of the specimens; their numbers from 1 if there are none.
    images : sequence of n str or None, optional
        The image files.
    scales : array-like of shape (n,), optional
        Positive numbers that the coordinates are to be multiplied by; NaN for none. The coordinates
        are written as they are.
    curves : sequence of n sequences of array-likes of shape (m, 2) or (m, 3), optional
        The curves of each specimen, or None.
    comments : sequence of n str or None, optional
        Comments; one with line breaks becomes several COMMENT lines.

    Raises
    ------
    ValueError
        Where something could not be read back: a text with a line break or with blanks at its ends,
        an infinite coordinate, a length that does not fit.

    See Also
    --------
    read_tps : Reads such files. Of aligned or centred landmarks, with ``negative="keep"``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from orthodrome.spaces import read_tps, write_tps
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "leaves.tps"
    ...     write_tps(file, [[[0.1, 2], [3, 1e-9]]], ids=["edulis_1"], scales=[0.05])
    ...     print(file.read_text(), end="")
    LM=2
    0.1 2.0
    3.0 1e-09
    ID=edulis_1
    SCALE=0.05
    """
    points = _checked_points(landmarks, 3, "landmarks")
    n, _, dimension = points.shape
    if n == 0:
        raise ValueError("landmarks of write_tps must have at least one specimen; got none.")
    texts = {
        "IMAGE": _checked_lines(images, n, "images"),
        "ID": _checked_lines(range(1, n + 1) if ids is None else ids, n, "ids"),
        "SCALE": _scale_lines(scales, n),
        "COMMENT": _checked_lines(comments, n, "comments"),
    }
    outlines = _checked_curves(curves, n, dimension)
    written: list[str] = []
    for i in range(n):
        written += [f"{'LM' if dimension == 2 else 'LM3'}={points.shape[1]}"]
        written += _coordinate_lines(points[i])
        if outlines[i]:
            written += [f"CURVES={len(outlines[i])}"]
        for curve in outlines[i]:
            written += [f"POINTS={len(curve)}", *_coordinate_lines(curve)]
        written += [f"{key}={text}" for key, values in texts.items() for text in values[i]]
    _replace_file(path, "\n".join(written) + "\n")


# ---------------------------------------------------------------------------- lines


def _name_and_text(source: Any) -> tuple[str, str]:
    """Return what errors call a file, and its text."""
    if hasattr(source, "read"):
        name = str(getattr(source, "name", "<text>"))
        try:
            content = source.read()
        except UnicodeDecodeError as problem:
            raise ValueError(
                f"{name} is not in the encoding it was opened with ({problem}); give its path, or "
                "open it with encoding='latin-1'."
            ) from None
    else:
        if not isinstance(source, str | os.PathLike):
            raise ValueError(
                f"path of read_tps must be a path or an open text file; got {source!r}."
            )
        file = Path(source)
        name = str(file)
        if file.is_dir():
            raise ValueError(f"{name} is a folder, not a TPS file; give the path of one file.")
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(f"There is no TPS file {name}; check the path.") from None
    return name, _decoded(content) if isinstance(content, bytes) else content


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


class _Lines:
    """The lines that say something, with their numbers in the file, and errors that name them."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        # Not splitlines: to it a form feed ends a line too, and numbers would differ from editors'.
        # DOS programs may end a text with Ctrl-Z.
        self._lines = re.split("\r\n|\r|\n", text.removeprefix("\ufeff").rstrip("\x1a"))
        while len(self._lines) > 1 and not self._lines[-1].strip():
            self._lines.pop()
        self.last = len(self._lines)
        for number, line in enumerate(self._lines, start=1):
            if "\0" in line:
                raise self.error(
                    number, "the file holds zero bytes, so it is binary or UTF-16; save it as UTF-8"
                )
        stripped = ((number, line.strip()) for number, line in enumerate(self._lines, start=1))
        self._telling = [line for line in stripped if line[1] and not line[1].startswith(_REMARK)]
        self._position = 0

    def peek(self) -> tuple[int, str] | None:
        """Return the next line and its number; None at the end."""
        if self._position == len(self._telling):
            return None
        return self._telling[self._position]

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> tuple[int, str]:
        if (line := self.peek()) is None:
            raise StopIteration
        self._position += 1
        return line

    def error(self, number: int, reason: str) -> ValueError:
        """Return the error of a line: file, number, reason, and the line, shortened."""
        line = self._lines[number - 1].strip()
        if len(line) > _LONGEST_SHOWN:
            line = line[:_LONGEST_SHOWN] + "…"
        return ValueError(f"{self.name}, line {number}: {reason}. The line is {line!r}.")


# ---------------------------------------------------------------------------- specimens


@dataclass
class _Points:
    """Points of shape (m, d), and the number of the line that each stands on."""

    coordinates: NDArray[np.float64]
    lines: list[int]


@dataclass
class _Specimen:
    """One specimen while it is read."""

    line: int
    position: int
    dimension: int = 2
    landmarks: _Points | None = None
    curves: list[_Points] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    field_lines: dict[str, int] = field(default_factory=dict)
    scale: float = math.nan

    @property
    def name(self) -> str:
        # PureWindowsPath knows both kinds of slashes, whatever system reads the file.
        stem = PureWindowsPath(self.fields.get("IMAGE", "")).stem
        return self.fields.get("ID") or stem or str(self.position)

    def blocks(self) -> list[_Points]:
        """Return the landmarks, then each curve."""
        return [*([] if self.landmarks is None else [self.landmarks]), *self.curves]

    def coordinates(self, *, with_curves: bool) -> NDArray[np.float64]:
        """Return the landmarks, followed by the points of the curves if asked."""
        return np.concatenate([b.coordinates for b in self.blocks()[: None if with_curves else 1]])

    def other(self) -> dict[str, str]:
        """Return the fields that have no place of their own."""
        known = _IDENTITY | {"COMMENT", "LM", "CURVES"}
        return {key: value for key, value in self.fields.items() if key not in known}


class _Parser:
    """Makes specimens of lines: one pass, one line at a time."""

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines
        self._specimens: list[_Specimen] = []
        # The fields before the first LM; None until there is one.
        self._leading: frozenset[str] | None = None
        # What commas have meant so far, and on which line that was seen.
        self._commas: tuple[str, int] | None = None

    def specimens(self) -> list[_Specimen]:
        """Read all lines."""
        for number, text in self._lines:
            match = _FIELD.fullmatch(text)
            if match is None:
                raise self._lines.error(number, self._stray(text))
            spelling = match[1].upper()
            key = _SAME_KEY.get(spelling, spelling)
            specimen = self._specimen_of(key, number)
            self._store(specimen, key, match[2], number)
            if key == "LM":
                self._read_landmarks(specimen, spelling, number)
            elif key == "CURVES":
                self._read_curves(specimen, number)
            elif key == "POINTS":
                raise self._lines.error(number, "more POINTS= than a CURVES= before it promises")
            elif key == "SCALE":
                specimen.scale = self._read_scale(match[2], number)
        self._check_end()
        return self._specimens

    def _stray(self, text: str) -> str:
        """Return why a line without a keyword has no place here."""
        if all(_NUMBER.fullmatch(part) for part in text.replace(",", " ").split()):
            return (
                "coordinates outside a block; the LM= or POINTS= before them promises fewer lines "
                "than there are"
            )
        return "neither a field such as ID=name, nor coordinates where they are due"

    def _specimen_of(self, key: str, number: int) -> _Specimen:
        """Return the specimen that a field belongs to, a new one where it begins one."""
        current = self._specimens[-1] if self._specimens else None
        if current is None or (
            current.landmarks is not None and (key == "LM" or key in (self._leading or ()))
        ):
            current = _Specimen(line=number, position=len(self._specimens) + 1)
            self._specimens.append(current)
        if key == "LM" and self._leading is None:
            before = frozenset(current.fields)
            self._leading = before if before & _IDENTITY else frozenset()
        return current

    def _store(self, specimen: _Specimen, key: str, value: str, number: int) -> None:
        if key in specimen.fields:
            if key in _IDENTITY or key == "CURVES":
                raise self._lines.error(
                    number,
                    f"a second {key}= for one specimen; the first is on line "
                    f"{specimen.field_lines[key]}, and no LM= begins another specimen between them",
                )
            value = f"{specimen.fields[key]}\n{value}"
        specimen.fields[key] = value
        specimen.field_lines[key] = number

    def _read_landmarks(self, specimen: _Specimen, spelling: str, number: int) -> None:
        specimen.dimension = 3 if spelling == "LM3" else 2
        count = self._read_count(specimen.fields["LM"], spelling, number)
        specimen.landmarks = self._read_points(specimen, spelling, count, number)

    def _read_curves(self, specimen: _Specimen, number: int) -> None:
        if specimen.landmarks is None:
            raise self._lines.error(
                number, "curves before the landmarks; move them below the LM= of their specimen"
            )
        count = self._read_count(specimen.fields["CURVES"], "CURVES", number)
        for index in range(count):
            following = self._lines.peek()
            match = None if following is None else _FIELD.fullmatch(following[1])
            if following is None or match is None or match[1].upper() != "POINTS":
                raise self._lines.error(
                    self._lines.last if following is None else following[0],
                    f"CURVES={count} on line {number} promises {count} blocks that begin with "
                    f"POINTS=; here number {index + 1} is due",
                )
            next(self._lines)
            points = self._read_count(match[2], "POINTS", following[0])
            specimen.curves.append(self._read_points(specimen, "POINTS", points, following[0]))

    def _read_count(self, value: str, keyword: str, number: int) -> int:
        if not _COUNT.fullmatch(value):
            raise self._lines.error(number, f"{keyword}= needs a whole number, got {value[:20]!r}")
        return int(value)

    def _read_points(self, specimen: _Specimen, keyword: str, count: int, opening: int) -> _Points:
        rows: list[list[float]] = []
        numbers: list[int] = []
        while len(rows) < count:
            following = self._lines.peek()
            if following is None or "=" in following[1]:
                raise self._lines.error(
                    self._lines.last if following is None else following[0],
                    f"{keyword}={count} on line {opening} promises {count} lines of coordinates; "
                    f"there are {len(rows)} before this {'end' if following is None else 'line'}",
                )
            number, text = next(self._lines)
            rows.append(self._read_coordinates(text, specimen.dimension, keyword, number))
            numbers.append(number)
        return _Points(np.array(rows, dtype=np.float64).reshape(-1, specimen.dimension), numbers)

    def _read_coordinates(
        self, text: str, dimension: int, keyword: str, number: int
    ) -> list[float]:
        parts = self._parted(text, dimension, number) if "," in text else text.split()
        if len(parts) != dimension:
            advice = "; LM3= holds three" if keyword == "LM" and len(parts) == 3 else ""
            raise self._lines.error(
                number, f"{dimension} coordinates are due here, there are {len(parts)}{advice}"
            )
        return [self._read_number(part, number) for part in parts]

    def _parted(self, text: str, dimension: int, number: int) -> list[str]:
        """Return the numbers of a line with commas, by the rule of :func:`read_tps`."""
        by_blanks, by_commas = text.split(), re.split(r"\s*,\s*", text)
        if len(by_blanks) == dimension and all(map(_is_comma_number, by_blanks)):
            meaning, parts = "decimal signs", [part.replace(",", ".") for part in by_blanks]
        elif len(by_commas) == dimension and all(map(_is_number, by_commas)):
            meaning, parts = "separators", by_commas
        else:
            raise self._lines.error(
                number,
                f"neither with commas as decimal signs and blanks between the numbers, nor with "
                f"commas between them, is this {dimension} coordinates",
            )
        if self._commas is None:
            self._commas = meaning, number
        elif self._commas[0] != meaning:
            raise self._lines.error(
                number,
                f"commas are {meaning} here and {self._commas[0]} on line {self._commas[1]}; use "
                "one kind throughout",
            )
        return parts

    def _read_scale(self, value: str, number: int) -> float:
        if not value:
            return math.nan
        decimal = value.replace(",", ".") if _is_comma_number(value) else value
        return self._read_number(decimal, number)

    def _read_number(self, text: str, number: int) -> float:
        if text.upper() in _MISSING:
            return math.nan
        if not _NUMBER.fullmatch(text):
            raise self._lines.error(number, f"{text[:20]!r} is not a number")
        if math.isinf(value := float(text)):
            raise self._lines.error(number, f"{text[:20]!r} is too large a number")
        return value

    def _check_end(self) -> None:
        if not self._specimens or self._leading is None:
            raise self._lines.error(
                self._lines.last, "no LM= or LM3= up to this last line, so no landmarks"
            )
        if self._specimens[-1].landmarks is None:
            raise self._lines.error(
                self._specimens[-1].line,
                "a specimen begins here, and the file ends without an LM= for it",
            )


def _is_number(text: str) -> bool:
    return text.upper() in _MISSING or _NUMBER.fullmatch(text) is not None


def _is_comma_number(text: str) -> bool:
    return text.upper() in _MISSING or _COMMA_NUMBER.fullmatch(text) is not None


# ---------------------------------------------------------------------------- the whole file


def _check_uniform(lines: _Lines, specimens: list[_Specimen], *, with_curves: bool) -> None:
    """Raise at the first specimen that has not as many landmarks and dimensions as the first."""
    what = "landmarks and points of curves" if with_curves else "landmarks"
    first = specimens[0]
    count, dimension = first.coordinates(with_curves=with_curves).shape
    for specimen in specimens[1:]:
        own_count, own_dimension = specimen.coordinates(with_curves=with_curves).shape
        for own, expected, things in (
            (own_dimension, dimension, "dimensions"),
            (own_count, count, what),
        ):
            if own != expected:
                raise lines.error(
                    specimen.field_lines["LM"],
                    f"specimen {specimen.name!r} has {own} {things}, the first one, "
                    f"{first.name!r}, has {expected}; all must have the same number",
                )


def _settle_missing(
    lines: _Lines, specimens: list[_Specimen], *, missing: str, negative: str
) -> None:
    """Turn missing points into NaN, or raise at the first of them."""
    if negative == "missing":
        _check_negative(lines, specimens)
    for specimen in specimens:
        for index, block in enumerate(specimen.blocks()):
            points = block.coordinates
            absent: NDArray[np.bool_] = np.all(~(points >= 0), axis=1)
            if negative == "keep":
                absent[:] = False
            gone = absent | np.isnan(points).any(axis=1)
            if missing == "error" and gone.any():
                row = int(np.argmax(gone))
                which = f"point {row + 1} of curve {index}" if index else f"landmark {row + 1}"
                sign = bool((points[row] < 0).any() and absent[row])
                raise lines.error(
                    block.lines[row],
                    f"{which} of specimen {specimen.name!r} is missing"
                    + (", as negative coordinates say" if sign else "")
                    + "; complete it, or pass missing='nan' to have NaN"
                    + (", or negative='keep' if it truly lies there" if sign else ""),
                )
            points[absent] = np.nan


def _check_negative(lines: _Lines, specimens: list[_Specimen]) -> None:
    """Raise where negative points may well be positions, and no signs of missing landmarks."""
    blocks = [block for specimen in specimens for block in specimen.blocks()]
    points = np.concatenate([block.coordinates for block in blocks])
    numbers = [number for block in blocks for number in block.lines]
    below, above = (points < 0).any(axis=1), (points >= 0).any(axis=1)
    suspect, mixed = below & ~above, below & above
    if not suspect.any() or (above.any() and not mixed.any()):
        return
    evidence = (
        f"line {numbers[int(np.argmax(mixed))]} has a negative coordinate beside one that is not"
        if mixed.any()
        else "no point of the file would be left"
    )
    raise lines.error(
        numbers[int(np.argmax(suspect))],
        f"negative coordinates stand for a missing landmark, but {evidence}, so these may be "
        "positions; pass negative='keep' if they are, or write NA for missing landmarks",
    )


def _apply_scale(lines: _Lines, specimen: _Specimen) -> None:
    if not specimen.scale > 0:
        problem = "no SCALE" if math.isnan(specimen.scale) else "a SCALE that is not positive"
        raise lines.error(
            specimen.field_lines.get("SCALE", specimen.field_lines["LM"]),
            f"specimen {specimen.name!r} has {problem}; correct the file, or pass "
            "apply_scale=False",
        )
    for block in specimen.blocks():
        with np.errstate(over="ignore"):
            block.coordinates *= specimen.scale
        if np.isinf(block.coordinates).any():
            raise lines.error(
                specimen.field_lines["SCALE"],
                f"the scaled coordinates of specimen {specimen.name!r} are too large",
            )


# ---------------------------------------------------------------------------- writing


def _checked_points(points: ArrayLike, n_axes: int, what: str) -> NDArray[np.float64]:
    """Return points as float64; raise unless they have the axes due and no infinite value."""
    try:
        array = np.asarray(points)
    except ValueError as problem:
        raise ValueError(f"{what} of write_tps must make one array: {problem}.") from None
    shapes = "(n, k, 2) or (n, k, 3)" if n_axes == 3 else "(m, 2) or (m, 3)"
    if array.ndim != n_axes or array.shape[-1] not in (2, 3) or array.dtype.kind not in "fiu":
        raise ValueError(
            f"{what} of write_tps must be real numbers of shape {shapes}; got {array.dtype} of "
            f"shape {array.shape}."
        )
    array = array.astype(np.float64)
    if np.isinf(array).any():
        position = tuple(int(i) for i in np.argwhere(np.isinf(array))[0][:-1])
        raise ValueError(
            f"{what} of write_tps must not be infinite, as at position {position}; write NaN for "
            "a missing landmark."
        )
    return array


def _checked_length(values: Any, n: int, what: str) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) != n:
        got = f"{len(values)} entries" if hasattr(values, "__len__") else repr(values)
        raise ValueError(
            f"{what} of write_tps must have one entry for each of the {n} specimens; got {got} "
            f"in a {type(values).__name__}."
        )
    return list(values)


def _checked_lines(values: Any, n: int, what: str) -> list[list[str]]:
    """Return the lines of text of each specimen; raise where they could not be read back."""
    if values is None:
        return [[] for _ in range(n)]
    checked = []
    for position, value in enumerate(_checked_length(values, n, what), start=1):
        is_number = what == "ids" and isinstance(value, Integral) and not isinstance(value, bool)
        if what == "ids" and value in (None, ""):
            raise ValueError(f"The id of specimen {position} is {value!r}; give it a name.")
        if not (value is None or is_number or isinstance(value, str)):
            raise ValueError(
                f"{what} of write_tps must be text; got {value!r} for specimen {position}."
            )
        text = "" if value is None else str(value)
        lines = text.split("\n") if what == "comments" else [text]
        if not all(map(_is_readable, lines)):
            raise ValueError(
                f"{what} of write_tps must be plain text on one line, without blanks at the ends; "
                f"got {value!r} for specimen {position}."
            )
        checked.append(lines if text else [])
    return checked


def _is_readable(line: str) -> bool:
    """Whether a text comes back from a file as it is."""
    # Lone surrogates have no place in UTF-8.
    strange = any(c in "\r\n\0" or "\ud800" <= c <= "\udfff" for c in line)
    return not strange and line == line.strip()


def _scale_lines(scales: ArrayLike | None, n: int) -> list[list[str]]:
    if scales is None:
        return [[] for _ in range(n)]
    array = np.asarray(scales)
    real = array.shape == (n,) and array.dtype.kind in "fiu"
    if not real or (array <= 0).any() or np.isinf(array).any():
        raise ValueError(
            f"scales of write_tps must be {n} positive finite numbers, NaN for none; got {array!r}."
        )
    values = array.astype(np.float64).tolist()
    return [[] if math.isnan(value) else [repr(value)] for value in values]


def _checked_curves(values: Any, n: int, dimension: int) -> list[list[NDArray[np.float64]]]:
    if values is None:
        return [[] for _ in range(n)]
    checked = []
    for position, specimen in enumerate(_checked_length(values, n, "curves"), start=1):
        own = []
        for number, curve in enumerate(() if specimen is None else specimen, start=1):
            what = f"curve {number} of specimen {position}"
            own.append(_checked_points(curve, 2, what))
            if own[-1].shape[1] != dimension:
                raise ValueError(
                    f"{what} has {own[-1].shape[1]} dimensions, its landmarks have {dimension}."
                )
        checked.append(own)
    return checked


def _coordinate_lines(points: NDArray[np.float64]) -> list[str]:
    # repr is the shortest text that reads back as the same float
    return [" ".join("NA" if math.isnan(x) else repr(x) for x in row) for row in points.tolist()]


def _replace_file(path: str | os.PathLike[str], text: str) -> None:
    """Write a file so that at every moment there is the old one, or the whole new one."""
    # A symbolic link stays one: it is the file it leads to which is replaced.
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise ValueError(f"{target} is a folder; give write_tps the path of a file.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to write {target.name} in.")
    temporary = target.parent / f".{uuid.uuid4().hex}.tps"
    try:
        # "x" makes a file with the rights that a plain open would give; tempfile's are its owner's
        with open(temporary, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:  # an interrupt too must not leave the temporary file behind
        temporary.unlink(missing_ok=True)
        raise
