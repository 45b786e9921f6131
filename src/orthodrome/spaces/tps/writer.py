"""Write TPS files; reading them back gives exactly the same coordinates."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._core.checks import as_array, check_numbers, check_path
from ..._core.files import write_atomically
from ..._core.types import Floats
from ..._core.warn import warn_user
from ..shapes import MIN_LANDMARKS, in_form
from ._parser import number_and_index
from .reader import read_tps


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
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    text = "".join(_specimen_text(*each) for each in zip(points, rows, strict=True))
    _check_read_back(text, columns)
    write_atomically(target, text.encode("utf-8"))
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
    lines += [f"{key}={fields[name]}" for key, name in _NAMES.items() if fields[name] is not None]
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
                    f"{name} of write_tps has {given!r} for {number_and_index('specimen', index)}, "
                    f"which would be read back as {read!r}. Use plain text without blanks at the "
                    "ends, and field names in capitals that TPS does not reserve."
                )


# Keywords of fields with a single line and their parameters, in the order of writing.
_NAMES = {"IMAGE": "images", "ID": "ids"}
