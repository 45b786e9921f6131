"""What a TPS file holds."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
