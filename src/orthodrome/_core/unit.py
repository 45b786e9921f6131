"""Angles between unit vectors, and checks of unit and of common length."""

from __future__ import annotations

from typing import Any

import numpy as np

from .checks import RowError
from .types import Array, Floats

#: Relative tolerance for squared lengths; it allows for unit vectors that were stored as float32.
LENGTH_TOLERANCE = {np.dtype(np.float64): 2e-6, np.dtype(np.float32): 2e-5}

#: A point is antipodal if 1 + cos θ is at most this multiple of the machine epsilon.
ANTIPODAL = 16


def angles_from_cosines(cosines: Array) -> tuple[Array, Array]:
    r"""Return θ and θ/sin θ for cosines, which are clipped to [-1, 1].

    .. math:: \theta = \operatorname{atan2}(s, c), \qquad s = \sqrt{(1 - c)(1 + c)}

    Near 0 the error of θ is the square root of the rounding error of c. The ratio θ/s is accurate
    everywhere. It is 1 at θ = 0 and infinite at θ = π.
    """
    c = np.clip(cosines, -1.0, 1.0)
    sines = np.sqrt((1 - c) * (1 + c))
    return _with_ratios(np.arctan2(sines, c), sines)


def angles_from_complements(complements: Array) -> tuple[Array, Array]:
    r"""Return θ and θ/sin θ from 1 - cos θ in [0, 2], accurate even for small angles."""
    sines = np.sqrt(complements * (2 - complements))
    return _with_ratios(np.arctan2(sines, 1 - complements), sines)


def angles_from_chords(chords: Array, sums: Array) -> tuple[Array, Array]:
    r"""Return θ and θ/sin θ of unit vectors from ‖a - b‖ and ‖a + b‖.

    .. math:: \theta = 2 \operatorname{atan2}(\|a - b\|, \|a + b\|), \qquad
        \sin\theta = \tfrac12 \|a - b\| \|a + b\|

    Accurate even for small angles.
    """
    return _with_ratios(2 * np.arctan2(chords, sums), chords * sums / 2)


def _with_ratios(angles: Array, sines: Array) -> tuple[Array, Array]:
    """Return angles and θ/sin θ, which is 1 at θ = 0 and infinite at θ = π."""
    ratios = np.where(angles > 1, np.inf, 1.0).astype(angles.dtype)
    np.divide(angles, sines, out=ratios, where=sines > 0)
    return angles, ratios


def squared_angles(cosines: Floats, squared_lengths: Floats | float = 1.0) -> Floats:
    """Return θ² from the cosines of points of about unit length."""
    _, ratios = angles_from_cosines(cosines)
    return np.asarray(np.maximum(squared_lengths - cosines**2, 0.0) * ratios**2)


def check_no_antipodes(cosines: Array, eps: float, what: str) -> None:
    """Raise an error that names the points whose cosine is -1 up to rounding error.

    `eps` is the machine epsilon of the precision in which the cosines were computed.
    """
    rows = np.flatnonzero(1 + np.asarray(cosines) <= ANTIPODAL * eps)
    if len(rows):
        others = ") is" if len(rows) == 1 else ", …) are"
        raise RowError(
            f"{len(rows)} of the {what} (row {{0}}{others} antipodal to the base point: Log is "
            "not unique there. Remove such points, or choose another base point or kernel.",
            int(rows[0]),
        )


def check_cosines(cosines: Array, eps: float, what: str) -> None:
    """Raise an error that names the row if a cosine exceeds 1 by more than rounding error."""
    largest = float(np.abs(cosines).max(initial=0.0))
    if not largest <= 1 + max(1e-6, 1e3 * eps):
        row = int(np.argmax(np.abs(cosines)))
        raise RowError(
            f"The inner product of row {{0}} of {what} with a point of unit length is "
            f"{cosines[row]:.8g}, more than 1 in modulus: the kernel is not positive definite on "
            "these data, or the row is not of unit length. Remove it, or choose another kernel.",
            row,
        )


def check_unit_length(squared_lengths: Array, dtype: Any, name: str) -> None:
    """Raise an error that names the worst row unless all squared lengths are 1."""
    errors = np.abs(squared_lengths - 1)
    row = int(np.argmax(errors))
    if errors[row] > LENGTH_TOLERANCE[np.dtype(dtype)]:
        length = float(np.sqrt(max(squared_lengths[row], 0.0)))
        raise ValueError(
            f"{name} must have unit length; row {row} has length {length:.8g}. Divide each row "
            "by its length."
        )


def squared_radius(diagonal: Array, expected: float | None = None, *, what: str = "X") -> float:
    """Return the common squared length of points in feature space, or raise.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        k(x, x) of each point.
    expected : float, optional
        The required squared length. Default: the mean of `diagonal`.
    what : str, default="X"
        The name of the data in error messages.
    """
    values = diagonal.astype(np.float64, copy=False)
    invalid = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if len(invalid):
        row = int(invalid[0])
        raise RowError(
            f"k(x, x) is {values[row]:g} at row {{0}} of {what} ({len(invalid)} such rows), and "
            "such a point has no direction. Remove or rescale these rows, or choose a kernel with "
            "k(x, x) > 0, such as Gaussian.",
            row,
        )
    radius = float(np.mean(values)) if expected is None else expected
    tolerance = LENGTH_TOLERANCE.get(diagonal.dtype, LENGTH_TOLERANCE[values.dtype])
    worst = int(np.argmax(np.abs(values - radius)))
    if abs(values[worst] - radius) > tolerance * radius:
        other = int(np.argmax(np.abs(values - values[worst])))
        comparison = (
            f"{values[other]:.8g} at row {{1}}" if expected is None else f"not {radius:.8g}"
        )
        raise RowError(
            f"k(x, x) must be the same for all points, so that they lie on a sphere; it is "
            f"{values[worst]:.8g} at row {{0}} of {what} and {comparison}. "
            "Normalise the kernel, kernel=Normalized(kernel), or scale the data to unit length.",
            worst,
            other,
        )
    return radius
