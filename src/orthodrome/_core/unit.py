"""Angles between unit vectors, and checks of unit length."""

from __future__ import annotations

from typing import Any

import numpy as np

from .checks import RowError
from .types import Array, Floats

#: Relative difference up to which squared lengths count as equal; unit vectors that were stored as
#: float32 need this much.
SAME_LENGTH = {np.dtype(np.float64): 2e-6, np.dtype(np.float32): 2e-5}

#: Points whose 1 + cos θ is at most this many units in the last place have no Log.
ANTIPODAL = 16


def angles_from_cosines(cosines: Array) -> tuple[Array, Array]:
    r"""Return θ and θ/sin θ for cosines, which are clipped to [-1, 1].

    .. math:: \theta = \operatorname{atan2}(s, c), \qquad s = \sqrt{(1 - c)(1 + c)}

    The error of θ near 0 is the square root of the rounding of c; θ/s is accurate everywhere, 1 at
    θ = 0 and infinite at θ = π.
    """
    c = np.clip(cosines, -1.0, 1.0)
    sines = np.sqrt((1 - c) * (1 + c))
    return _with_ratios(np.arctan2(sines, c), sines)


def angles_from_complements(complements: Array) -> tuple[Array, Array]:
    r"""Return θ and θ/sin θ from 1 - cos θ in [0, 2], accurate at every angle, however small."""
    sines = np.sqrt(complements * (2 - complements))
    return _with_ratios(np.arctan2(sines, 1 - complements), sines)


def angles_from_halves(differences: Array, sums: Array) -> tuple[Array, Array]:
    r"""Return θ and θ/sin θ of unit vectors from ‖a - b‖ and ‖a + b‖.

    .. math:: \theta = 2 \operatorname{atan2}(\|a - b\|, \|a + b\|), \qquad
        \sin\theta = \tfrac12 \|a - b\| \|a + b\|

    Accurate at every angle, however small.
    """
    return _with_ratios(2 * np.arctan2(differences, sums), differences * sums / 2)


def _with_ratios(angles: Array, sines: Array) -> tuple[Array, Array]:
    """Return angles and θ/sin θ, which is 1 at θ = 0 and infinite at θ = π."""
    ratios = np.where(angles > 1, np.inf, 1.0).astype(angles.dtype)
    np.divide(angles, sines, out=ratios, where=sines > 0)
    return angles, ratios


def squared_angles(cosines: Floats, squares: Floats | float = 1.0) -> Floats:
    """Return θ² from cosines of points whose squared lengths are about 1."""
    _, stretches = angles_from_cosines(cosines)
    return np.asarray(np.maximum(squares - cosines**2, 0.0) * stretches**2)


def check_no_antipodes(cosines: Array, eps: float, what: str) -> None:
    """Raise if a cosine is -1 to rounding, and name the points.

    `eps` is the machine epsilon of the precision in which the cosines were computed.
    """
    rows = np.flatnonzero(1 + np.asarray(cosines) <= ANTIPODAL * eps)
    if len(rows):
        first = [int(row) for row in rows[:5]]
        named = ", ".join(f"{{{i}}}" for i in range(len(first))) + (", …" if len(rows) > 5 else "")
        verb = "is" if len(rows) == 1 else "are"
        raise RowError(
            f"{len(rows)} of the {what} (row {named}) {verb} antipodal to the base point: great "
            "circles in every direction lead there, and Log is not defined. Leave such points out, "
            "or choose another base point or kernel.",
            *first,
        )


def check_cosines(cosines: Array, eps: float, what: str) -> None:
    """Raise if a cosine exceeds 1 by more than rounding, and name the row."""
    largest = float(np.abs(cosines).max(initial=0.0))
    if not largest <= 1 + max(1e-6, 1e3 * eps):
        row = int(np.argmax(np.abs(cosines)))
        raise RowError(
            f"The inner product of row {{0}} of {what} with a point of unit length is "
            f"{cosines[row]:.8g}, more than 1 in modulus: the kernel is not positive definite on "
            "these data, or the row is not of unit length. Leave it out, or choose another kernel.",
            row,
        )


def check_unit_length(squares: Array, dtype: Any, name: str) -> None:
    """Raise unless squared lengths are 1, and name the row farthest from it."""
    off = np.abs(squares - 1)
    row = int(np.argmax(off))
    if off[row] > SAME_LENGTH[np.dtype(dtype)]:
        length = float(np.sqrt(max(squares[row], 0.0)))
        raise ValueError(
            f"{name} must have unit length; row {row} has length {length:.8g}. Divide each by its "
            "length."
        )
