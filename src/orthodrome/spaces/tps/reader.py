"""Read TPS files as arrays; missing landmarks become NaN or raise an error."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, TextIO

import numpy as np
from numpy.typing import NDArray

from ..._core.checks import check_choice
from ..._core.types import Floats
from ..landmark_text import match_labels
from ._parser import RESERVED, Parser, Specimen, name_and_text, number_and_index


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
        The file, in UTF-8 or else Latin-1.
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
    parser = Parser(*name_and_text(path))
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
        other=[{key: s.fields[key] for key in s.fields if key not in RESERVED} for s in specimens],
    )


def _check_uniform(parser: Parser, specimens: list[Specimen]) -> None:
    """Raise unless all specimens have as many landmarks and dimensions as the first one."""
    shapes = [specimen.blocks[0].coordinates.shape for specimen in specimens]
    for specimen, shape in zip(specimens, shapes, strict=True):
        if shape != shapes[0]:
            raise parser.error(
                specimen.field_lines["LM"],
                f"{specimen.label} has {shape[0]} landmarks in {shape[1]} dimensions, but the "
                f"first specimen, {specimens[0].name!r}, has {shapes[0][0]} in {shapes[0][1]}; all "
                "must have the same number",
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
                block.lines[row],
                f"{number_and_index('landmark', row)} of {specimen.label} is missing; pass "
                "missing='nan' to read it as NaN, or negative='keep' if negative coordinates are "
                "positions",
            )
        points[absent] = np.nan


def _negative_is_missing(parser: Parser, specimens: list[Specimen]) -> bool:
    """Return whether negative coordinates mark missing points; raise if they may be positions."""
    blocks = [
        (index, block) for specimen in specimens for index, block in enumerate(specimen.blocks)
    ]
    points = np.concatenate([block.coordinates for _, block in blocks])
    lines = [number for _, block in blocks for number in block.lines]
    is_landmark = [not index for index, block in blocks for _ in block.lines]
    has_negative, has_positive = (points < 0).any(axis=1), (points >= 0).any(axis=1)
    mixed = has_negative & has_positive
    if has_positive.any() and not mixed.any():
        return True
    suspect = has_negative & ~has_positive & np.array(is_landmark, dtype=bool)
    if not suspect.any():
        return False
    evidence = (
        f"line {lines[int(np.argmax(mixed))]} has coordinates of both signs"
        if mixed.any()
        else "no point of the file would be left"
    )
    raise parser.error(
        lines[int(np.argmax(suspect))],
        f"negative coordinates mark a missing landmark, but {evidence}, so these may be positions; "
        "pass negative='keep' if they are, or write NA for missing landmarks",
    )
