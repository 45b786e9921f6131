"""Reader and writer for TPS files, the landmark files of tpsDig and related programs.

A specimen is a block of coordinates and some fields, in any order::

    LM=3
    104.5 220.0
    98.25 311.0
    150.0 275.5
    IMAGE=leaf_01.jpg
    ID=caerulea_1
    SCALE=0.0125

We do not use the reader of ktch 0.11 because it reports no line numbers and fails on missing IDs,
exponents, double blanks, NA, decimal commas, remarks and lower-case keywords. The tests compare the
two readers on files that both can read.
"""

from __future__ import annotations

import io
import math
import os
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any, Literal, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import as_array, check_choice, check_numbers, check_path
from .._core.files import write_atomically
from .._core.types import Floats
from .._core.warn import warn_user
from .landmark_text import decoded, match_labels
from .shapes import MIN_LANDMARKS, in_form

_FIELD = re.compile(r"([A-Za-z_][^=]*?)\s*=\s*(.*)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# Digits are required on both sides, so that "1, 2" is not read as numbers with decimal commas.
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?")
_COUNT = re.compile(r"[0-9]{1,9}")
_MISSING = {"NA", "NAN", "?"}
_REMARK = ("#", '"', "//")
# A remark after coordinates. Numbers do not contain these characters.
_TRAILING_REMARK = re.compile(r"""\s*(#|"|//).*""", re.DOTALL)
_ALIASES = {"COMMENTS": "COMMENT", "OUTLINES": "CURVES", "LM3": "LM"}
# Fields that identify a specimen.
_IDENTITY = frozenset({"ID", "IMAGE", "SCALE"})
# Names with a defined meaning; other fields are kept unchanged.
_RESERVED = _IDENTITY | {"COMMENT", "LM", "CURVES", "POINTS"} | set(_ALIASES)
_MAX_SHOWN = 60


def _numbered(kind: str, index: int) -> str:
    """Return a label for error messages, such as "specimen 3 (index 2)"."""
    return f"{kind} {index + 1} (index {index})"


def _name_and_text(source: Any) -> tuple[str, str]:
    """Return the name and the text of a file, given as a path or an open file."""
    if hasattr(source, "read"):
        name, content = str(getattr(source, "name", "<text>")), source.read()
    else:
        name = str(check_path(source, "path", "read_tps"))
        content = Path(name).read_bytes()
    return name, decoded(content) if isinstance(content, bytes) else content


@dataclass
class Points:
    """Points of shape (m, d), and the line number of each."""

    coordinates: Floats
    lines: list[int]


@dataclass
class Specimen:
    """One specimen while it is being read; its blocks are the landmarks, then each curve."""

    line: int
    index: int
    blocks: list[Points] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    field_lines: dict[str, int] = field(default_factory=dict)
    scale: float = math.nan

    @property
    def name(self) -> str:
        """The ID, the name of the image, or the number."""
        # PureWindowsPath splits at both kinds of slashes.
        stem = PureWindowsPath(self.fields.get("IMAGE", "")).stem
        return self.fields.get("ID") or stem or str(self.index + 1)

    @property
    def label(self) -> str:
        """The label in error messages."""
        return f"specimen {self.name!r} (index {self.index})"


class Parser:
    """Parser of the text of a TPS file. Errors contain the line number."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        # splitlines would also split at form feeds, and line numbers would differ from editors'.
        # DOS programs may end a text with Ctrl-Z.
        self._lines = re.split("\r\n|\r|\n", text.removeprefix("\ufeff").rstrip("\x1a").rstrip())
        binary = next((n for n, line in enumerate(self._lines, start=1) if "\0" in line), 0)
        if binary:
            reason = "the file has null bytes, so it is binary or UTF-16; save it as UTF-8"
            raise self.error(reason, binary)
        stripped = enumerate(map(str.strip, self._lines), start=1)
        self._remaining = deque(
            line for line in stripped if line[1] and not line[1].startswith(_REMARK)
        )
        self._line = 0  # the number of the line that is read
        self._specimens: list[Specimen] = []
        # The fields before the first LM; None until the first LM is read.
        self._leading: frozenset[str] | None = None
        # The meaning of commas, and the line that determined it.
        self._commas: tuple[str, int] | None = None

    def error(self, reason: str, line_number: int = 0) -> ValueError:
        """Return an error with the file, the line number, the reason and the (shortened) line."""
        number = line_number or self._line
        line = self._lines[number - 1].strip()
        if len(line) > _MAX_SHOWN:
            line = line[:_MAX_SHOWN] + "…"
        return ValueError(f"{self._name}, line {number}: {reason}. The line is {line!r}.")

    def _peek(self) -> str:
        """Return the text of the next line, which becomes the current one; "" at the end."""
        self._line, text = self._remaining[0] if self._remaining else (len(self._lines), "")
        return text

    def specimens(self) -> list[Specimen]:
        """Parse all lines."""
        while text := self._peek():
            self._remaining.popleft()
            match = _FIELD.fullmatch(text)
            if match is None:
                raise self.error(
                    "expected a field such as ID=name; if the line has coordinates, the count "
                    "after LM= or POINTS= above it is too small"
                )
            spelling, value = match[1].upper(), match[2]
            key = _ALIASES.get(spelling, spelling)
            specimen = self._specimen_of(key)
            self._store(specimen, key, value)
            if key == "LM":
                points = self._read_points(spelling, value, 3 if spelling == "LM3" else 2)
                specimen.blocks.append(points)
            elif key == "CURVES":
                self._read_curves(specimen, value)
            elif key == "POINTS":
                raise self.error("POINTS= is not declared by a CURVES= above it")
            elif key == "SCALE" and value:
                commas = _is_number(value, _COMMA_NUMBER)
                specimen.scale = self._read_number(value.replace(",", ".") if commas else value)
        if self._leading is None:
            raise self.error("the file has no LM= or LM3=, so no landmarks")
        last = self._specimens[-1]
        if not last.blocks:
            raise self.error("the last specimen, which starts here, has no LM=", last.line)
        return self._specimens

    def _specimen_of(self, key: str) -> Specimen:
        """Return the specimen that a field belongs to, which may be a new one."""
        starts = key == "LM" or key in (self._leading or ())
        if not self._specimens or (self._specimens[-1].blocks and starts):
            self._specimens.append(Specimen(self._line, len(self._specimens)))
        current = self._specimens[-1]
        if key == "LM" and self._leading is None:
            before = frozenset(current.fields)
            self._leading = before if before & _IDENTITY else frozenset()
        return current

    def _store(self, specimen: Specimen, key: str, value: str) -> None:
        if key in specimen.fields:
            if key in _IDENTITY or key == "CURVES":
                raise self.error(
                    f"a second {key}= for one specimen; the first is on line "
                    f"{specimen.field_lines[key]}. There is no LM= between them"
                )
            value = f"{specimen.fields[key]}\n{value}"
        specimen.fields[key] = value
        specimen.field_lines[key] = self._line

    def _read_curves(self, specimen: Specimen, value: str) -> None:
        if not specimen.blocks:
            raise self.error("curves before the landmarks; move them below LM= of their specimen")
        dimension = specimen.blocks[0].coordinates.shape[1]
        count, declared = self._read_count(value, "CURVES"), self._line
        for index in range(count):
            match = _FIELD.fullmatch(self._peek())
            if match is None or match[1].upper() != "POINTS":
                raise self.error(
                    f"CURVES={count} on line {declared} declares {count} blocks that begin with "
                    f"POINTS=; expected block {index + 1} here"
                )
            self._remaining.popleft()
            specimen.blocks.append(self._read_points("POINTS", match[2], dimension))

    def _read_count(self, value: str, keyword: str) -> int:
        if not _COUNT.fullmatch(value):
            raise self.error(f"{keyword}= needs a whole number, got {value[:20]!r}")
        return int(value)

    def _read_points(self, keyword: str, value: str, dimension: int) -> Points:
        count, header = self._read_count(value, keyword), self._line
        rows: list[list[float]] = []
        lines: list[int] = []
        while len(rows) < count:
            text = self._peek()
            coordinates = _TRAILING_REMARK.sub("", text)
            if not text or "=" in coordinates:
                raise self.error(
                    f"{keyword}={count} on line {header} declares {count} lines of coordinates; "
                    f"found {len(rows)} before {'this line' if text else 'the end of the file'}"
                )
            self._remaining.popleft()
            parts = self._split(coordinates, dimension)
            if len(parts) != dimension:
                advice = "; use LM3= for three" if keyword == "LM" and len(parts) == 3 else ""
                raise self.error(f"expected {dimension} coordinates, found {len(parts)}{advice}")
            rows.append(list(map(self._read_number, parts)))
            lines.append(self._line)
        return Points(np.array(rows, dtype=np.float64).reshape(-1, dimension), lines)

    def _split(self, text: str, dimension: int) -> list[str]:
        """Split a line into numbers; :func:`read_tps` describes the rules for commas."""
        by_blanks, by_commas = text.split(), re.split(r"\s*,\s*", text)
        if "," not in text:
            return by_blanks
        if len(by_blanks) == dimension and all(_is_number(x, _COMMA_NUMBER) for x in by_blanks):
            meaning, parts = "decimal signs", [part.replace(",", ".") for part in by_blanks]
        elif len(by_commas) == dimension and all(_is_number(x, _NUMBER) for x in by_commas):
            meaning, parts = "separators", by_commas
        else:
            raise self.error(
                f"expected {dimension} coordinates, with commas either as decimal signs or as "
                "separators"
            )
        self._commas = self._commas or (meaning, self._line)
        if self._commas[0] != meaning:
            raise self.error(
                f"commas are {meaning} here and {self._commas[0]} on line {self._commas[1]}; use "
                "one kind throughout"
            )
        return parts

    def _read_number(self, text: str) -> float:
        if text.upper() in _MISSING:
            return math.nan
        if not _NUMBER.fullmatch(text):
            raise self.error(f"{text[:20]!r} is not a number")
        if math.isinf(value := float(text)):
            raise self.error(f"the number {text[:20]!r} is too large")
        return value


def _is_number(text: str, pattern: re.Pattern[str]) -> bool:
    return text.upper() in _MISSING or pattern.fullmatch(text) is not None


@dataclass(frozen=True, eq=False, repr=False)
class TPSFile:
    """The content of a TPS file of n specimens.

    Attributes
    ----------
    landmarks : ndarray of shape (n, k, 2) or (n, k, 3)
        Coordinates, float64; NaN where a landmark is missing.
    ids : list of str
        The ID of each specimen. If it has none: the stem of its IMAGE, or else its number from 1.
    images : list of str or None
        The IMAGE of each specimen.
    scales : ndarray of shape (n,)
        The SCALE of each specimen, NaN if it has none. Landmarks are not multiplied by it; use
        ``landmarks * scales[:, None, None]``.
    curves : list of lists of ndarray of shape (m, 2) or (m, 3)
        The curves of each specimen, NaN where a point is missing. To use their points as landmarks:
        ``np.stack([np.vstack([l, *c]) for l, c in zip(file.landmarks, file.curves)])``.
    comments : list of str or None
        The COMMENT of each specimen; several are joined by line breaks.
    other : list of dict
        All other fields of each specimen, by their names in capitals.
    """

    landmarks: Floats
    ids: list[str]
    images: list[str | None]
    scales: Floats
    curves: list[list[Floats]]
    comments: list[str | None]
    other: list[dict[str, str]]

    def __repr__(self) -> str:
        """Return the numbers of specimens, landmarks and dimensions, and the first ids."""
        n, k, d = self.landmarks.shape
        ids = ", ".join([repr(one) for one in self.ids[:3]] + ["..."] * (n > 3))
        return f"TPSFile(specimens={n}, landmarks={k}, dimensions={d}, ids=[{ids}])"

    def labels(self, pattern: str, *, of: Literal["ids", "images"] = "ids") -> NDArray[np.str_]:
        r"""Extract class labels from the ids or the images with a regular expression.

        Parameters
        ----------
        pattern : str
            A regular expression, searched in each name. The label is the group called ``label``, or
            else the first group.
        of : {"ids", "images"}, default="ids"
            Search the ids, or the image paths.

        Returns
        -------
        ndarray of str of shape (n,)
            One label per specimen.

        Raises
        ------
        ValueError
            If the pattern has no group, or a specimen has no match.

        Examples
        --------
        >>> import io
        >>> from orthodrome.spaces import read_tps
        >>> text = "LM=1\n1 2\nID=edulis_07\nLM=1\n3 4\nID=caerulea_12"
        >>> read_tps(io.StringIO(text)).labels(r"^([a-z]+)_")
        array(['edulis', 'caerulea'], dtype='<U8')
        """
        check_choice(of, ("ids", "images"), "of", "labels")
        return match_labels(self.ids if of == "ids" else self.images, pattern)


def read_tps(
    path: str | os.PathLike[str] | TextIO,
    *,
    missing: Literal["error", "nan"] = "error",
    negative: Literal["missing", "keep"] = "missing",
) -> TPSFile:
    r"""Read landmarks and other fields of a TPS file.

    Parameters
    ----------
    path : str, path-like or open text file
        The file, in UTF-8, or else Windows-1252 or Latin-1.
    missing : {"error", "nan"}, default="error"
        Raise an error for missing landmarks, or return NaN. Missing points of curves are always
        NaN.
    negative : {"missing", "keep"}, default="missing"
        Meaning of negative coordinates; see Notes.

    Returns
    -------
    TPSFile
        Landmarks, ids, images, scales, curves, comments and other fields.

    Raises
    ------
    ValueError
        If the file cannot be parsed, or specimens differ in the number of landmarks or dimensions;
        the message gives the file, the line number, the line and the reason.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    write_tps : Write TPS files.

    Notes
    -----
    *Dialects.* The reader accepts keywords in any case, with blanks around ``=``; LM3 for three
    dimensions; OUTLINES for CURVES and COMMENTS for COMMENT; blank lines; remarks after ``#``,
    ``"`` or ``//``, on separate lines or after coordinates (``1 2 # tip``); any line endings;
    blanks or tabs. Unknown fields are kept in `other`.

    *Counting.* Error messages number specimens, landmarks and curves from 1 and from 0: "landmark 2
    (index 1)". Lines are numbered from 1.

    *Start of a specimen.* In most files a specimen begins with LM, and ID, IMAGE and SCALE follow.
    If one of these three is above the first LM of the file, the fields come first. Then every field
    found above the first LM begins a new specimen wherever it follows landmarks.

    *Commas.* Commas are decimal signs if blanks split the line into d numbers without a point
    (``1,5 2,75``), and separators if commas split it into d numbers (``1.5, 2.75`` or
    ``1.5,2.75``). A line that is neither, such as ``1,5,2,75``, is an error, and so is a file with
    lines of both kinds. Commas for thousands are not supported.

    *Missing landmarks.* A landmark (or a point of a curve) with a coordinate ``NA``, ``NaN`` or
    ``?`` is missing, and all its coordinates become NaN. A landmark whose coordinates are all
    negative is missing too: programs such as tpsDig mark missing landmarks in this way. However,
    aligned or centred landmarks may be negative. If the file also has a point with coordinates of
    both signs, or if no point would be left, negative numbers may be positions. Then a landmark
    whose coordinates are all negative is an error for any value of `missing`, and a point of a
    curve is kept. ``negative="keep"`` keeps all numbers. (geomorph's `readland.tps` keeps them by
    default; with ``negNA=TRUE`` each negative coordinate is treated as missing.) The default here
    is an error because a landmark at (-1, -1) would silently distort a shape.

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
    parser = Parser(*_name_and_text(path))
    specimens = parser.specimens()
    _check_uniform(parser, specimens)
    negative_is_missing = negative == "missing" and _negative_is_missing(parser, specimens)
    for specimen in specimens:
        _mark_missing(parser, specimen, negative_is_missing, missing == "error")
    return TPSFile(
        landmarks=np.stack([specimen.blocks[0].coordinates for specimen in specimens]),
        ids=[specimen.name for specimen in specimens],
        images=[specimen.fields.get("IMAGE") or None for specimen in specimens],
        scales=np.array([specimen.scale for specimen in specimens]),
        curves=[[block.coordinates for block in s.blocks[1:]] for s in specimens],
        comments=[specimen.fields.get("COMMENT") or None for specimen in specimens],
        other=[{key: s.fields[key] for key in s.fields if key not in _RESERVED} for s in specimens],
    )


def _check_uniform(parser: Parser, specimens: list[Specimen]) -> None:
    """Raise unless all specimens have as many landmarks and dimensions as the first one."""
    shapes = [specimen.blocks[0].coordinates.shape for specimen in specimens]
    for specimen, shape in zip(specimens, shapes, strict=True):
        if shape != shapes[0]:
            raise parser.error(
                f"{specimen.label} has {shape[0]} landmarks in {shape[1]} dimensions, but the "
                f"first specimen, {specimens[0].name!r}, has {shapes[0][0]} in {shapes[0][1]}; all "
                "must have the same number",
                specimen.field_lines["LM"],
            )


def _mark_missing(parser: Parser, specimen: Specimen, negative: bool, raises: bool) -> None:
    """Set missing points to NaN, or raise; with `negative`, negative points are missing."""
    for index, block in enumerate(specimen.blocks):
        points = block.coordinates
        below = negative & ~(points >= 0).any(axis=1)
        absent = np.asarray(below | np.isnan(points).any(axis=1))
        if raises and absent.any() and not index:
            row = int(np.argmax(absent))
            raise parser.error(
                f"{_numbered('landmark', row)} of {specimen.label} is missing; pass "
                "missing='nan' to read it as NaN, or negative='keep' if negative coordinates are "
                "positions",
                block.lines[row],
            )
        points[absent] = np.nan


def _negative_is_missing(parser: Parser, specimens: list[Specimen]) -> bool:
    """Return whether negative coordinates mark missing points; raise if they may be positions."""
    points = np.concatenate([b.coordinates for specimen in specimens for b in specimen.blocks])
    has_positive = (points >= 0).any(axis=1)
    if has_positive.any() and not (has_positive & (points < 0).any(axis=1)).any():
        return True
    why = "other points have both signs" if has_positive.any() else "all points are negative"
    for landmarks in (specimen.blocks[0] for specimen in specimens):
        x = landmarks.coordinates
        suspect = (x < 0).any(axis=1) & ~(x >= 0).any(axis=1)
        if suspect.any():
            raise parser.error(
                "negative coordinates mark missing landmarks, but these may be positions, since "
                f"{why}; pass negative='keep' if they are, or write NA for missing landmarks",
                landmarks.lines[int(np.argmax(suspect))],
            )
    return False


def write_tps(
    path: str | os.PathLike[str],
    landmarks: ArrayLike,
    *,
    ids: Sequence[str | int] | None = None,
    images: Sequence[str | None] | None = None,
    scales: ArrayLike | None = None,
    curves: Sequence[Sequence[ArrayLike] | None] | None = None,
    comments: Sequence[str | None] | None = None,
    other: Sequence[Mapping[str, str] | None] | None = None,
) -> None:
    """Write landmarks to a TPS file; :func:`read_tps` returns exactly the same values.

    Parameters
    ----------
    path : str or path-like
        The file. It is written atomically.
    landmarks : array-like of shape (n, k, 2) or (n, k, 3), (n, k) complex, or (n, 2k)
        Coordinates. NaN is written as NA, and a landmark with NaN is read back as missing.
        Landmarks in three dimensions are written with the keyword LM3. An array of shape (n, 2k)
        has rows x1, y1, x2, y2, … of at least three landmarks. An array of shape (k, 2) is
        rejected, since it could be a single specimen.
    ids : sequence of n str or int, optional
        Names of the specimens. Default: 1, 2, …
    images : sequence of n str or None, optional
        Names of the image files.
    scales : array-like of shape (n,), optional
        Positive scale factors, or NaN for specimens without one. Each factor is written to the
        file; the coordinates are not multiplied by it.
    curves : sequence of n sequences of array-likes of shape (m, 2) or (m, 3), optional
        The curves of each specimen, or None for a specimen without curves.
    comments : sequence of n str or None, optional
        Comments. A comment with line breaks becomes several COMMENT lines.
    other : sequence of n mappings from str to str, or None, optional
        Further fields of each specimen, as in `other` of :class:`TPSFile`. Their names must be in
        capitals. A text with line breaks becomes several lines with the same name.

    Warns
    -----
    UserWarning
        If all coordinates of a landmark are negative. :func:`read_tps` reads such a landmark as
        missing unless ``negative="keep"``.

    Raises
    ------
    ValueError
        If an argument has the wrong type or length, or could not be read back unchanged: an id or
        image name with a line break, a text with blanks at the ends of a line, a reserved field
        name, an infinite coordinate. Messages number specimens and curves as :func:`read_tps` does:
        "specimen 3 (index 2)".

    See Also
    --------
    read_tps : Read TPS files; use ``negative="keep"`` for aligned or centred landmarks.

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
    target = check_path(path, "path", "write_tps")
    points = _as_specimens(landmarks)
    n = len(points)
    given = {
        "ids": range(1, n + 1) if ids is None else ids,
        "images": images,
        "scales": _check_scales(scales, n),
        "curves": curves,
        "comments": comments,
        "other": other,
    }
    columns = {name: _check_length(values, n, name) for name, values in given.items()}
    columns["ids"] = [str(x) if isinstance(x, int | np.integer) else x for x in columns["ids"]]
    try:
        columns["curves"] = [list(each if each is not None else ()) for each in columns["curves"]]
        columns["other"] = [dict(each or {}) for each in columns["other"]]
    except (TypeError, ValueError) as problem:
        raise ValueError(
            "write_tps needs a list of arrays in curves and a dict in other for each specimen: "
            f"{problem}."
        ) from None
    rows = [dict(zip(columns, each, strict=True)) for each in zip(*columns.values(), strict=True)]
    text = "".join(_specimen_text(*each) for each in zip(points, rows, strict=True))
    _check_read_back(text, columns)
    write_atomically(target, text.encode("utf-8"))
    below = (points < 0).all(axis=2)
    if below.any():
        i, j = (int(index) for index in np.argwhere(below)[0])
        warn_user(
            f"{_numbered('landmark', j).capitalize()} of {_numbered('specimen', i)} "
            "has only negative coordinates. In a TPS file they mark a missing landmark. To keep "
            "the landmark, read the file with read_tps(path, negative='keep')."
        )


def _as_specimens(landmarks: ArrayLike) -> Floats:
    """Return complex, flat or other landmarks in shape (n, k, 2) or (n, k, 3)."""
    array = as_array(landmarks, "landmarks", "write_tps")
    if array.ndim == 2 and array.dtype.kind == "c":
        array = in_form(array, "points")
    elif array.ndim == 2 and array.shape[1] % 2 == 0 and array.shape[1] >= 2 * MIN_LANDMARKS:
        array = array.reshape(len(array), array.shape[1] // 2, 2)
    is_real = array.dtype.kind in "fiu" and not np.isinf(array).any()
    if array.ndim != 3 or array.shape[-1] not in (2, 3) or not len(array) or not is_real:
        raise ValueError(
            "landmarks of write_tps must be real numbers, finite or NaN, of shape (n, k, 2), "
            "(n, k, 3) or (n, 2k) with n >= 1 and k >= 3, or complex of shape (n, k); got "
            f"{array.dtype} of shape {array.shape}."
        )
    return array.astype(np.float64)


def _check_scales(scales: ArrayLike | None, n: int) -> list[float]:
    """Return the scales; NaN for specimens without one."""
    options = {"dtype": np.float64, "ensure_2d": False, "ensure_all_finite": "allow-nan"}
    given = np.full(n, np.nan) if scales is None else scales
    array = check_numbers(given, "scales", "write_tps", **options)
    if array.shape != (n,) or (array <= 0).any():
        raise ValueError(
            f"scales of write_tps must be {n} positive finite numbers, or NaN; got {array!r}."
        )
    return list(array.tolist())


def _check_length(values: Any, n: int, what: str) -> list[Any]:
    """Return values as a list with one entry per specimen; None becomes a list of None."""
    if values is None:
        return [None] * n
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) != n:
        raise ValueError(
            f"{what} of write_tps must have one entry for each of the {n} specimens; got "
            f"{values!r}."
        )
    return list(values)


def _specimen_text(points: Floats, fields: Mapping[str, Any]) -> str:
    """Return the lines of a specimen as text."""
    lines = [f"LM{'' if points.shape[1] == 2 else 3}={len(points)}", *_coordinate_lines(points)]
    if fields["curves"]:
        lines.append(f"CURVES={len(fields['curves'])}")
    for curve in fields["curves"]:
        lines += [f"POINTS={len(curve)}", *_coordinate_lines(curve)]
    named = {"IMAGE": fields["images"], "ID": fields["ids"]}
    lines += [f"{key}={text}" for key, text in named.items() if text is not None]
    if not math.isnan(fields["scales"]):
        lines.append(f"SCALE={fields['scales']!r}")
    for key, text in {"COMMENT": fields["comments"], **fields["other"]}.items():
        lines += [f"{key}={line}" for line in ([] if text is None else str(text).split("\n"))]
    return "".join(f"{line}\n" for line in lines)


def _coordinate_lines(points: ArrayLike) -> list[str]:
    # repr gives the shortest text that is read back as the same float
    rows = np.asarray(points, dtype=np.float64).tolist()
    return [" ".join("NA" if math.isnan(x) else repr(x) for x in row) for row in rows]


def _check_read_back(text: str, columns: Mapping[str, list[Any]]) -> None:
    """Raise unless the fields are the same when they are read back."""
    try:
        found = read_tps(io.StringIO(text), missing="nan", negative="keep")
    except ValueError as problem:
        raise ValueError(f"write_tps cannot write these arguments as TPS: {problem}") from None
    for name in ("ids", "images", "comments", "other"):
        pairs = zip(columns[name], getattr(found, name), strict=False)
        for index, (given, read) in enumerate(pairs):
            if given != read:
                raise ValueError(
                    f"{name} of write_tps has {given!r} for {_numbered('specimen', index)}, "
                    f"which would be read back as {read!r}. Use plain text without blanks at the "
                    "ends, and field names in capitals that TPS does not reserve."
                )
