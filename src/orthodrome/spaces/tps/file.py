"""What a TPS file holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..._core.checks import check_choice
from ._parser import counted

__all__ = ["TPSFile"]


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
        The curves of each specimen, NaN where a point is missing; empty where they were appended
        to the landmarks.
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

    def labels(self, pattern: str, *, of: Literal["ids", "images"] = "ids") -> NDArray[np.str_]:
        r"""Return class labels that a regular expression finds in the ids or the images.

        Parameters
        ----------
        pattern : str
            A regular expression; its first group is the label. It may match anywhere in the text:
            begin it with ``^`` to hold it to the beginning.
        of : {"ids", "images"}, default="ids"
            What is searched: the ids, or the images, with their folders as the file has them.

        Returns
        -------
        ndarray of str of shape (n,)
            One label per specimen.

        Raises
        ------
        ValueError
            Where the pattern has no group, or a specimen has no match; the message names it.

        Examples
        --------
        >>> import io
        >>> from orthodrome.spaces import read_tps
        >>> text = "LM=1\n1 2\nID=edulis_07\nLM=1\n3 4\nID=caerulea_12"
        >>> read_tps(io.StringIO(text)).labels(r"^([a-z]+)_")
        array(['edulis', 'caerulea'], dtype='<U8')
        """
        check_choice(of, ("ids", "images"), "of", "labels")
        what = of.removesuffix("s")
        try:
            expression = re.compile(pattern)
        except re.error as problem:
            raise ValueError(f"pattern {pattern!r} is no regular expression: {problem}.") from None
        if not expression.groups:
            raise ValueError(
                f"pattern {pattern!r} needs a group in parentheses: the part of the {what} which "
                "is the label."
            )
        found = []
        for index, text in enumerate(self.ids if of == "ids" else self.images):
            specimen = counted("specimen", index)
            if text is None:
                raise ValueError(
                    f"There is no image of {specimen}, {self.ids[index]!r}; search the ids, or "
                    "give the labels yourself."
                )
            match = expression.search(text)
            if match is None or match[1] is None:
                raise ValueError(
                    f"The {what} {text!r} of {specimen} does not match {pattern!r}; change the "
                    "pattern, search the ids or images with of=, or give the labels yourself."
                )
            found.append(match[1])
        return np.array(found, dtype=np.str_)
