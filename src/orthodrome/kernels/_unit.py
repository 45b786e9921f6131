"""The common length of feature vectors."""

from __future__ import annotations

import numpy as np

from .._core.checks import RowError
from .._core.types import Array
from .._core.unit import LENGTH_TOLERANCE


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
