"""Angles between unit vectors, accurate near 0 and near π."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ANTIPODAL", "angles_from_cosines", "angles_from_halves", "check_no_antipodes"]

#: Points whose 1 + cos θ is at most this many units in the last place have no Log.
ANTIPODAL = 16


def angles_from_cosines(cosines: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    r"""Return θ and θ/sin θ for cosines, which are clipped to [-1, 1].

    .. math:: \theta = \operatorname{atan2}(s, c), \qquad s = \sqrt{(1 - c)(1 + c)}

    Where only c is known, the error of θ near 0 is that of the square root of the rounding of c;
    θ/s is accurate to the last digits all the same, and is 1 at θ = 0. At θ = π it is infinite.
    """
    c = np.clip(cosines, -1.0, 1.0)
    sines = np.sqrt((1 - c) * (1 + c))
    angles = np.arctan2(sines, c)
    ratios = np.where(c < 0, np.inf, 1.0).astype(angles.dtype)
    np.divide(angles, sines, out=ratios, where=sines > 0)
    return angles, ratios


def angles_from_halves(
    differences: NDArray[Any], sums: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    r"""Return θ and θ/sin θ of unit vectors from ‖a - b‖ and ‖a + b‖.

    .. math:: \theta = 2 \operatorname{atan2}(\|a - b\|, \|a + b\|), \qquad
        \sin\theta = \tfrac12 \|a - b\| \|a + b\|

    Accurate at every angle, however small.
    """
    angles = 2 * np.arctan2(differences, sums)
    sines = differences * sums / 2
    ratios = np.where(differences > sums, np.inf, 1.0).astype(angles.dtype)
    np.divide(angles, sines, out=ratios, where=sines > 0)
    return angles, ratios


def check_no_antipodes(cosines: NDArray[Any], eps: float, what: str) -> None:
    """Raise where a cosine is -1 to rounding, naming the points.

    `eps` is the machine epsilon of the precision in which the cosines were computed.
    """
    rows = np.flatnonzero(1 + np.asarray(cosines) <= ANTIPODAL * eps)
    if len(rows):
        named = ", ".join(map(str, rows[:5])) + (", …" if len(rows) > 5 else "")
        verb = "is" if len(rows) == 1 else "are"
        raise ValueError(
            f"{len(rows)} of the {what} (row {named}) {verb} antipodal to the base point: great "
            "circles in every direction lead there, and Log is not defined. Leave such points out, "
            "or choose another base point or kernel."
        )
