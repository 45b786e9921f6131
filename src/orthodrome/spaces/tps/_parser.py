"""Parser for the text of TPS files; error messages contain the line number."""

from __future__ import annotations

import math
import re
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np

from ..._core.checks import check_path
from ..._core.types import Floats

FIELD = re.compile(r"([A-Za-z_][^=]*?)\s*=\s*(.*)", re.DOTALL)
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
RESERVED = _IDENTITY | {"COMMENT", "LM", "CURVES", "POINTS"} | set(_ALIASES)
_MAX_SHOWN = 60


def number_and_index(kind: str, index: int) -> str:
    """Return a label for error messages, such as "specimen 3 (index 2)"."""
    return f"{kind} {index + 1} (index {index})"


def name_and_text(source: Any) -> tuple[str, str]:
    """Return the name and the text of a file, given as a path or an open file."""
    if hasattr(source, "read"):
        name, content = str(getattr(source, "name", "<text>")), source.read()
    else:
        name = str(check_path(source, "path", "read_tps"))
        content = Path(name).read_bytes()
    if not isinstance(content, bytes):
        return name, content
    try:
        return name, content.decode("utf-8")
    except UnicodeDecodeError:
        return name, content.decode("latin-1")


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
        for line_number, line in enumerate(self._lines, start=1):
            if "\0" in line:
                reason = "the file has null bytes, so it is binary or UTF-16; save it as UTF-8"
                raise self.error(line_number, reason)
        stripped = enumerate(map(str.strip, self._lines), start=1)
        self._remaining = deque(
            line for line in stripped if line[1] and not line[1].startswith(_REMARK)
        )
        self._specimens: list[Specimen] = []
        # The fields before the first LM; None until the first LM is read.
        self._leading: frozenset[str] | None = None
        # The meaning of commas, and the line that determined it.
        self._commas: tuple[str, int] | None = None

    def error(self, line_number: int, reason: str) -> ValueError:
        """Return an error with the file, the line number, the reason and the (shortened) line."""
        line = self._lines[line_number - 1].strip()
        if len(line) > _MAX_SHOWN:
            line = line[:_MAX_SHOWN] + "…"
        return ValueError(f"{self._name}, line {line_number}: {reason}. The line is {line!r}.")

    def _peek(self) -> tuple[int, str]:
        """Return the number and the text of the next line; the text is empty at the end."""
        return self._remaining[0] if self._remaining else (len(self._lines), "")

    def specimens(self) -> list[Specimen]:
        """Parse all lines."""
        while self._remaining:
            line_number, text = self._remaining.popleft()
            match = FIELD.fullmatch(text)
            if match is None:
                raise self.error(line_number, _reason(text))
            spelling, value = match[1].upper(), match[2]
            key = _ALIASES.get(spelling, spelling)
            specimen = self._specimen_of(key, line_number)
            self._store(specimen, key, value, line_number)
            if key == "LM":
                dimension = 3 if spelling == "LM3" else 2
                specimen.blocks.append(self._read_points(spelling, value, dimension, line_number))
            elif key == "CURVES":
                self._read_curves(specimen, value, line_number)
            elif key == "POINTS":
                raise self.error(line_number, "POINTS= is not declared by a CURVES= above it")
            elif key == "SCALE" and value:
                commas = _is_number(value, _COMMA_NUMBER)
                decimal = value.replace(",", ".") if commas else value
                specimen.scale = self._read_number(decimal, line_number)
        if self._leading is None:
            raise self.error(len(self._lines), "the file has no LM= or LM3=, so no landmarks")
        if not self._specimens[-1].blocks:
            raise self.error(
                self._specimens[-1].line,
                "the last specimen, which starts here, has no LM=",
            )
        return self._specimens

    def _specimen_of(self, key: str, line_number: int) -> Specimen:
        """Return the specimen that a field belongs to, which may be a new one."""
        starts = key == "LM" or key in (self._leading or ())
        if not self._specimens or (self._specimens[-1].blocks and starts):
            self._specimens.append(Specimen(line_number, len(self._specimens)))
        current = self._specimens[-1]
        if key == "LM" and self._leading is None:
            before = frozenset(current.fields)
            self._leading = before if before & _IDENTITY else frozenset()
        return current

    def _store(self, specimen: Specimen, key: str, value: str, line_number: int) -> None:
        if key in specimen.fields:
            if key in _IDENTITY or key == "CURVES":
                raise self.error(
                    line_number,
                    f"a second {key}= for one specimen; the first is on line "
                    f"{specimen.field_lines[key]}. There is no LM= between them",
                )
            value = f"{specimen.fields[key]}\n{value}"
        specimen.fields[key] = value
        specimen.field_lines[key] = line_number

    def _read_curves(self, specimen: Specimen, value: str, line_number: int) -> None:
        if not specimen.blocks:
            raise self.error(
                line_number, "curves before the landmarks; move them below LM= of their specimen"
            )
        dimension = specimen.blocks[0].coordinates.shape[1]
        count = self._read_count(value, "CURVES", line_number)
        for index in range(count):
            header, text = self._peek()
            match = FIELD.fullmatch(text)
            if match is None or match[1].upper() != "POINTS":
                raise self.error(
                    header,
                    f"CURVES={count} on line {line_number} declares {count} blocks that begin with "
                    f"POINTS=; expected block {index + 1} here",
                )
            self._remaining.popleft()
            specimen.blocks.append(self._read_points("POINTS", match[2], dimension, header))

    def _read_count(self, value: str, keyword: str, line_number: int) -> int:
        if not _COUNT.fullmatch(value):
            raise self.error(line_number, f"{keyword}= needs a whole number, got {value[:20]!r}")
        return int(value)

    def _read_points(self, keyword: str, value: str, dimension: int, header: int) -> Points:
        count = self._read_count(value, keyword, header)
        rows: list[list[float]] = []
        numbers: list[int] = []
        while len(rows) < count:
            line_number, text = self._peek()
            coordinates = _TRAILING_REMARK.sub("", text)
            if not text or "=" in coordinates:
                raise self.error(
                    line_number,
                    f"{keyword}={count} on line {header} declares {count} lines of coordinates; "
                    f"found {len(rows)} before {'this line' if text else 'the end of the file'}",
                )
            self._remaining.popleft()
            parts = self._split(coordinates, dimension, line_number)
            if len(parts) != dimension:
                advice = "; use LM3= for three" if keyword == "LM" and len(parts) == 3 else ""
                raise self.error(
                    line_number, f"expected {dimension} coordinates, found {len(parts)}{advice}"
                )
            rows.append([self._read_number(part, line_number) for part in parts])
            numbers.append(line_number)
        return Points(np.array(rows, dtype=np.float64).reshape(-1, dimension), numbers)

    def _split(self, text: str, dimension: int, line_number: int) -> list[str]:
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
                line_number,
                f"expected {dimension} coordinates, with commas either as decimal signs or as "
                "separators",
            )
        self._commas = self._commas or (meaning, line_number)
        if self._commas[0] != meaning:
            raise self.error(
                line_number,
                f"commas are {meaning} here and {self._commas[0]} on line {self._commas[1]}; use "
                "one kind throughout",
            )
        return parts

    def _read_number(self, text: str, line_number: int) -> float:
        if text.upper() in _MISSING:
            return math.nan
        if not _NUMBER.fullmatch(text):
            raise self.error(line_number, f"{text[:20]!r} is not a number")
        if math.isinf(value := float(text)):
            raise self.error(line_number, f"the number {text[:20]!r} is too large")
        return value


def _reason(text: str) -> str:
    """Return the reason why a line without a keyword is an error."""
    parts = _TRAILING_REMARK.sub("", text).replace(",", " ").split()
    if all(_NUMBER.fullmatch(part) for part in parts):
        return "coordinates outside a block; the LM= or POINTS= before them has too small a count"
    return "expected a field such as ID=name, or coordinates after LM= or POINTS="


def _is_number(text: str, pattern: re.Pattern[str]) -> bool:
    return text.upper() in _MISSING or pattern.fullmatch(text) is not None
