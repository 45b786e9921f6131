"""Write TPS files; reading them back gives exactly the same coordinates."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._core.checks import check_not_masked, check_numbers, check_path
from ..._core.files import write_atomically
from ..._core.types import Floats
from ..._core.warn import warn_user
from ..shapes import MIN_LANDMARKS, in_form
from ._parser import FIELD, RESERVED, number_and_index


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
    target = Path(os.path.realpath(check_path(path, "path", "write_tps")))
    points = _as_specimens(landmarks)
    n, k, dimension = points.shape
    if n == 0:
        raise ValueError("landmarks of write_tps must have at least one specimen; got none.")
    given = {
        "curves": curves,
        "images": images,
        "ids": range(1, n + 1) if ids is None else ids,
        "scales": _check_scales(scales, n),
        "comments": comments,
        "other": other,
    }
    columns = {name: _check_length(values, n, name) for name, values in given.items()}
    written: list[str] = []
    for i in range(n):
        entries = {name: values[i] for name, values in columns.items()}
        specimen = number_and_index("specimen", i)
        written += [f"LM{'' if dimension == 2 else dimension}={k}", *_coordinate_lines(points[i])]
        written += _curve_lines(entries["curves"], specimen, dimension)
        written += _field_lines(entries, specimen)
    if target.is_dir():
        raise ValueError(f"{target} is a folder; pass the path of a file to write_tps.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to write {target.name} in.")
    write_atomically(target, ("\n".join(written) + "\n").encode("utf-8"))
    below = (points < 0).all(axis=2)
    if below.any():
        i, j = (int(index) for index in np.argwhere(below)[0])
        warn_user(
            f"{number_and_index('landmark', j).capitalize()} of {number_and_index('specimen', i)} "
            "has only negative coordinates. In a TPS file they mark a missing landmark. To keep "
            "the landmark, read the file with read_tps(path, negative='keep')."
        )


def _as_specimens(landmarks: ArrayLike) -> Floats:
    """Return complex, flat or other landmarks in shape (n, k, 2) or (n, k, 3)."""
    check_not_masked(landmarks, "landmarks", "write_tps")
    array = _as_array(landmarks, "landmarks")
    if array.ndim == 2 and array.dtype.kind == "c":
        array = in_form(array, "points")
    elif array.ndim == 2 and array.shape[1] % 2 == 0 and array.shape[1] >= 2 * MIN_LANDMARKS:
        array = array.reshape(len(array), array.shape[1] // 2, 2)
    return _check_points(array, 3, "landmarks")


def _as_array(points: ArrayLike, what: str) -> NDArray[Any]:
    try:
        return np.asarray(points)
    except ValueError as problem:
        raise ValueError(f"{what} of write_tps must form one array: {problem}.") from None


def _check_points(points: ArrayLike, n_axes: int, what: str) -> Floats:
    """Return points as float64, or raise if their shape or a value is invalid."""
    array = _as_array(points, what)
    if array.ndim != n_axes or array.shape[-1] not in (2, 3) or array.dtype.kind not in "fiu":
        shapes = "(m, 2) or (m, 3)"
        if n_axes == 3:
            shapes = "(n, k, 2), (n, k, 3) or (n, 2k) with k >= 3, or complex of shape (n, k)"
        raise ValueError(
            f"{what} of write_tps must be real numbers of shape {shapes}; got {array.dtype} of "
            f"shape {array.shape}."
        )
    if np.isinf(array).any():
        position = tuple(int(i) for i in np.argwhere(np.isinf(array))[0][:-1])
        raise ValueError(
            f"{what} of write_tps must be finite, but index {position} is infinite; use NaN for "
            "a missing landmark."
        )
    return array.astype(np.float64)


def _check_scales(scales: ArrayLike | None, n: int) -> list[str | None] | None:
    """Return the scales as texts, with None for NaN."""
    if scales is None:
        return None
    options = {"dtype": "numeric", "ensure_2d": False, "ensure_all_finite": "allow-nan"}
    array = check_numbers(scales, "scales", "write_tps", **options)
    if array.shape != (n,) or array.dtype.kind not in "fiu" or (array <= 0).any():
        raise ValueError(
            f"scales of write_tps must be {n} positive finite numbers, or NaN; got {array!r}."
        )
    return [None if math.isnan(x) else repr(x) for x in array.astype(np.float64).tolist()]


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


# ---------------------------------------------------------------------------- lines of a specimen


def _coordinate_lines(points: Floats) -> list[str]:
    # repr gives the shortest text that is read back as the same float
    return [" ".join("NA" if math.isnan(x) else repr(x) for x in row) for row in points.tolist()]


def _field_lines(entries: dict[str, Any], specimen: str) -> list[str]:
    """Return the lines of all fields except the coordinates."""
    name = entries["ids"]
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        entries["ids"] = str(name)
    if name is None or name == "":
        raise ValueError(f"The id of {specimen} is {name!r}; it must be a name.")
    lines: list[str] = []
    for key, what in _FIELDS.items():
        if entries[what] not in (None, ""):
            lines += _text_lines(key, entries[what], what, specimen)
    fields = {} if entries["other"] is None else entries["other"]
    if not isinstance(fields, Mapping):
        raise ValueError(
            f"The parameter other of write_tps must hold mappings from names to texts; got "
            f"{fields!r} for {specimen}."
        )
    for key, text in fields.items():
        _check_name(key, specimen)
        lines += _text_lines(key, text, f"other[{key!r}]", specimen)
    return lines


def _curve_lines(curves: Any, specimen: str, dimension: int) -> list[str]:
    if curves is None:
        return []
    if not isinstance(curves, Sequence | np.ndarray):
        raise ValueError(
            f"curves of write_tps must hold a list of curves for each specimen, or None; got "
            f"{curves!r} for {specimen}."
        )
    lines = [f"CURVES={len(curves)}"] if len(curves) else []
    for number, curve in enumerate(curves):
        what = f"{number_and_index('curve', number)} of {specimen}"
        points = _check_points(curve, 2, what)
        if points.shape[1] != dimension:
            raise ValueError(
                f"{what} has {points.shape[1]} dimensions, but its landmarks have {dimension}."
            )
        lines += [f"POINTS={len(points)}", *_coordinate_lines(points)]
    return lines


def _text_lines(key: str, text: Any, what: str, specimen: str) -> list[str]:
    """Return one line of the file for each line of a text; ids and images have only one line."""
    split = isinstance(text, str) and key not in ("ID", "IMAGE")
    parts = text.split("\n") if split else [text]
    return [f"{key}={_one_line(part, what, specimen)}" for part in parts]


def _check_name(key: Any, specimen: str) -> None:
    """Raise if a name in `other` would not be read back unchanged."""
    _one_line(key, "Names in the parameter other", specimen)
    if key in RESERVED:
        raise ValueError(
            f"The parameter other of write_tps has the name {key!r} for {specimen}, but this name "
            "is reserved in TPS files. Use the parameter of write_tps for this field, or another "
            "name."
        )
    match = FIELD.fullmatch(f"{key}=")
    if match is None or match[1] != key or key != key.upper():
        raise ValueError(
            f"Names in the parameter other of write_tps must be in capitals, begin with a letter "
            f"and not contain '='; got {key!r} for {specimen}."
        )


def _one_line(text: Any, what: str, specimen: str) -> str:
    """Return a text, or raise if it would not be read back unchanged."""
    if not isinstance(text, str) or text != text.strip() or _UNREADABLE.search(text):
        raise ValueError(
            f"{what} of write_tps must be plain text on one line, without blanks at the ends; "
            f"got {text!r} for {specimen}."
        )
    return text


# The parameter of write_tps for each field, in the order in which fields are written.
_FIELDS = {"IMAGE": "images", "ID": "ids", "SCALE": "scales", "COMMENT": "comments"}
# Line breaks, zero bytes, and lone surrogates, which UTF-8 cannot encode.
_UNREADABLE = re.compile("[\r\n\0\ud800-\udfff]")
