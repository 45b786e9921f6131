"""Writing: TPS files that read back to the last bit, replaced whole or not at all."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._core.checks import check_path, refuse_masked
from ..._core.files import write_atomically
from ..._core.warn import warn_user
from ..shapes import LEAST_LANDMARKS, in_form
from ._parser import FIELD, RESERVED, counted

__all__ = ["write_tps"]


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
    """Write landmarks to a TPS file, so that :func:`read_tps` gives them back to the last bit.

    Parameters
    ----------
    path : str or path-like
        The file. It is replaced in one step when all is written: nothing is left half-written.
    landmarks : array-like of shape (n, k, 2) or (n, k, 3), (n, k) complex, or (n, 2k)
        Coordinates. NaN is written as NA, and a landmark with one is read back as wholly missing;
        three dimensions are written as LM3. Flat rows x1, y1, x2, y2, … are of three landmarks or
        more, so that one specimen of shape (k, 2) cannot be taken for them.
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
    other : sequence of n mappings from str to str, or None, optional
        Further fields of each specimen, as `other` of :class:`TPSFile` holds them: names in
        capitals; a text with line breaks becomes several lines of that name.

    Warns
    -----
    UserWarning
        Where a landmark has negative coordinates only, which :func:`read_tps` takes for a missing
        one unless it is told ``negative="keep"``.

    Raises
    ------
    ValueError
        Where something could not be read back: a text with a line break or with blanks at its ends,
        a field of a name that has another meaning, an infinite coordinate, a length that does not
        fit. Errors count specimens and curves as :func:`read_tps` does: "specimen 3 (index 2)".

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
    file = check_path(path, "path", "write_tps")
    points = _checked_points(_as_specimens(landmarks), 3, "landmarks")
    n, _, dimension = points.shape
    if n == 0:
        raise ValueError("landmarks of write_tps must have at least one specimen; got none.")
    texts = {
        "IMAGE": _checked_lines(images, n, "images"),
        "ID": _checked_lines(range(1, n + 1) if ids is None else ids, n, "ids"),
        "SCALE": _scale_lines(scales, n),
        "COMMENT": _checked_lines(comments, n, "comments"),
    }
    further = _other_lines(other, n)
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
        written += further[i]
    _replace_file(file, "\n".join(written) + "\n")
    _warn_of_negative(points)


# ---------------------------------------------------------------------------- checks


def _warn_of_negative(points: NDArray[np.float64]) -> None:
    """Warn of landmarks that :func:`read_tps` would take for missing, or refuse."""
    below = (points < 0).all(axis=2)
    if below.any():
        specimen, landmark = (int(i) for i in np.argwhere(below)[0])
        warn_user(
            f"{counted('landmark', landmark).capitalize()} of {counted('specimen', specimen)} has "
            "negative coordinates only, which stand for a missing landmark in a TPS file; read it "
            "back with read_tps(path, negative='keep').",
            UserWarning,
        )


def _as_specimens(landmarks: ArrayLike) -> ArrayLike:
    """Return complex and flat landmarks as (n, k, 2), all else as it is."""
    refuse_masked(landmarks, "landmarks", "write_tps")
    try:
        array = np.asarray(landmarks)
    except ValueError:  # ragged: the check of points says so
        return landmarks
    if array.ndim != 2:
        return landmarks
    if array.dtype.kind == "c":
        return in_form(array, "points")
    is_flat = array.shape[1] % 2 == 0 and array.shape[1] >= 2 * LEAST_LANDMARKS
    return array.reshape(len(array), -1, 2) if len(array) and is_flat else landmarks


def _checked_points(points: ArrayLike, n_axes: int, what: str) -> NDArray[np.float64]:
    """Return points as float64; raise unless they have the axes due and no infinite value."""
    try:
        array = np.asarray(points)
    except ValueError as problem:
        raise ValueError(f"{what} of write_tps must make one array: {problem}.") from None
    shapes = "(m, 2) or (m, 3)"
    if n_axes == 3:
        shapes = "(n, k, 2), (n, k, 3) or (n, 2k) with k >= 3, or complex of shape (n, k)"
    if array.ndim != n_axes or array.shape[-1] not in (2, 3) or array.dtype.kind not in "fiu":
        raise ValueError(
            f"{what} of write_tps must be real numbers of shape {shapes}; got {array.dtype} of "
            f"shape {array.shape}."
        )
    array = array.astype(np.float64)
    if np.isinf(array).any():
        position = tuple(int(i) for i in np.argwhere(np.isinf(array))[0][:-1])
        raise ValueError(
            f"{what} of write_tps must not be infinite, as at index {position}; write NaN for "
            "a missing landmark."
        )
    return array


def _checked_length(values: Any, n: int, what: str) -> list[Any]:
    try:
        length = len(values)
    except TypeError:  # of what has none
        length = -1
    if isinstance(values, str) or length != n:
        got = f"{length} entries" if length >= 0 else repr(values)
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
    for index, value in enumerate(_checked_length(values, n, what)):
        specimen = counted("specimen", index)
        is_number = what == "ids" and isinstance(value, Integral) and not isinstance(value, bool)
        if what == "ids" and value in (None, ""):
            raise ValueError(f"The id of {specimen} is {value!r}; give it a name.")
        if not (value is None or is_number or isinstance(value, str)):
            raise ValueError(f"{what} of write_tps must be text; got {value!r} for {specimen}.")
        text = "" if value is None else str(value)
        lines = text.split("\n") if what == "comments" else [text]
        if not all(map(_is_readable, lines)):
            raise ValueError(
                f"{what} of write_tps must be plain text on one line, without blanks at the ends; "
                f"got {value!r} for {specimen}."
            )
        checked.append(lines if text else [])
    return checked


def _is_readable(line: str) -> bool:
    """Whether a text comes back from a file as it is."""
    # Lone surrogates have no place in UTF-8.
    strange = any(c in "\r\n\0" or "\ud800" <= c <= "\udfff" for c in line)
    return not strange and line == line.strip()


def _other_lines(values: Any, n: int) -> list[list[str]]:
    """Return the further fields of each specimen as lines; raise where they would not come back."""
    if values is None:
        return [[] for _ in range(n)]
    checked = []
    for index, fields in enumerate(_checked_length(values, n, "other")):
        specimen = counted("specimen", index)
        if not (fields is None or isinstance(fields, Mapping)):
            raise ValueError(
                f"other of write_tps must hold mappings from names to texts; got {fields!r} for "
                f"{specimen}."
            )
        pairs = [] if fields is None else list(fields.items())
        checked.append([line for key, text in pairs for line in _field_lines(key, text, specimen)])
    return checked


def _field_lines(key: Any, text: Any, specimen: str) -> list[str]:
    if not (isinstance(key, str) and isinstance(text, str)):
        raise ValueError(
            f"Names and values of other of write_tps must be text; got {key!r}: {text!r} for "
            f"{specimen}."
        )
    if key in RESERVED:
        raise ValueError(
            f"other of write_tps has the name {key!r} for {specimen}, which has a meaning "
            "of its own in a TPS file; use the parameter for it, or another name."
        )
    match = FIELD.fullmatch(f"{key}=")
    if match is None or match[1] != key or key != key.upper() or not _is_readable(key):
        raise ValueError(
            f"Names in other of write_tps must be in capitals, begin with a letter and have no = "
            f"and no blanks at the ends; got {key!r} for {specimen}."
        )
    lines = text.split("\n")
    if not all(map(_is_readable, lines)):
        raise ValueError(
            f"Lines of other of write_tps must be plain text without blanks at the ends; got "
            f"{text!r} for {key} of {specimen}."
        )
    return [f"{key}={line}" for line in lines]


def _scale_lines(scales: ArrayLike | None, n: int) -> list[list[str]]:
    if scales is None:
        return [[] for _ in range(n)]
    refuse_masked(scales, "scales", "write_tps")
    try:
        array = np.asarray(scales)
    except ValueError:
        raise ValueError(
            f"scales of write_tps must be {n} numbers; got lists of unlike lengths."
        ) from None
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
    for index, specimen in enumerate(_checked_length(values, n, "curves")):
        if not (specimen is None or isinstance(specimen, Sequence | np.ndarray)):
            raise ValueError(
                f"curves of write_tps must hold a list of curves for each specimen, or None; got "
                f"{specimen!r} for {counted('specimen', index)}."
            )
        own: list[NDArray[np.float64]] = []
        for number, curve in enumerate(() if specimen is None else specimen):
            what = f"{counted('curve', number)} of {counted('specimen', index)}"
            own.append(_checked_points(curve, 2, what))
            if own[-1].shape[1] != dimension:
                raise ValueError(
                    f"{what} has {own[-1].shape[1]} dimensions, its landmarks have {dimension}."
                )
        checked.append(own)
    return checked


# ---------------------------------------------------------------------------- the file


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
    write_atomically(target, text.encode("utf-8"))
