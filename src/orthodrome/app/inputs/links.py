"""Landmarks that figures join by lines: pairs from a file, or a default."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..._core.types import Array, Indices
from ...spaces import as_complex, extrinsic_mean
from .checks import quote
from .data import Data, InputError


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
