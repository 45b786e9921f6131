"""How far the numbers of each column spread, and whether they can be worked with at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .inputs.data import listed

__all__ = [
    "Extremes",
    "extremes_of",
    "hopeless",
    "scale_advice",
    "scales_of",
    "spreads_of",
    "unit_advice",
]

_SCALES = 1e3  # columns whose spreads differ by more should be standardised
_MARGIN = 1e3  # squares are added up, and differences are larger than values


def spreads_of(flat: NDArray[Any]) -> NDArray[np.float64]:
    """Return the standard deviations of columns, without squares of very large or small numbers.

    It is 0 of columns of one value only.
    """
    sizes = np.abs(flat).max(axis=0).astype(np.float64)
    scaled = flat / np.where(sizes > 0, sizes, 1.0)
    varies = (flat != flat[0]).any(axis=0)
    found = scaled.std(axis=0) * sizes
    return np.where(varies, np.maximum(found, np.finfo(np.float64).smallest_subnormal), 0.0)


def scales_of(
    spreads: NDArray[np.float64], columns: Sequence[str]
) -> tuple[tuple[str, ...], float]:
    """Return the columns of one value, and how much the spreads of the others differ."""
    constant = tuple(name for name, spread in zip(columns, spreads, strict=True) if not spread)
    if not spreads.any():
        return constant, 1.0
    with np.errstate(over="ignore"):
        ratio = float(spreads.max() / spreads[spreads > 0].min())
    return constant, min(ratio, float(np.finfo(np.float64).max))  # JSON has no infinity


class Extremes(NamedTuple):
    """Which columns have values, or spreads, whose squares are no numbers any more.

    Distances are sums of squares, and so are standard deviations.
    """

    huge: NDArray[np.bool_]
    tiny: NDArray[np.bool_]


def extremes_of(flat: NDArray[Any], spreads: NDArray[np.float64]) -> Extremes:
    """Find the columns whose numbers are too large or too small to be squared."""
    limits = np.finfo(flat.dtype)
    huge = np.abs(flat).max(axis=0) > np.sqrt(float(limits.max)) / _MARGIN
    return Extremes(huge, (spreads > 0) & (spreads < np.sqrt(float(limits.tiny)) * _MARGIN))


def scale_advice(
    spreads: NDArray[np.float64],
    columns: Sequence[str],
    constant: Sequence[str],
    ratio: float,
    extremes: Extremes,
) -> list[str]:
    """Say which columns to leave out, and whether to standardise."""
    advice = []
    if constant and len(constant) < len(columns):
        advice.append(f"Columns of one value say nothing; leave them out: {listed(constant)}.")
    if ratio > _SCALES and not np.any(extremes):  # those cannot be standardised either
        smallest = columns[int(np.argmin(np.where(spreads > 0, spreads, np.inf)))]
        advice.append(
            f"Spreads of columns differ {ratio:.2g}-fold, from {smallest} to "
            f"{columns[int(np.argmax(spreads))]}, so that distances are those of the latter alone: "
            "use --standardize."
        )
    return advice


def unit_advice(
    flat: NDArray[Any],
    spreads: NDArray[np.float64],
    columns: Sequence[str],
    extremes: Extremes,
) -> list[str]:
    """Say which columns need other units, or that there is nothing to find in any."""
    if not spreads.any():
        found = "All rows are equal" if len(flat) > 1 else "There is one row only"
        return [f"{found}: nothing can be embedded, clustered or classified."]
    advice = []
    for chosen, what, squares, sizes in (
        (extremes.huge, "Values as large as", "overflow", np.abs(flat).max(axis=0)),
        (extremes.tiny, "Spreads as small as", "vanish", spreads),
    ):
        if chosen.any():
            size = sizes.max() if squares == "overflow" else sizes[chosen].min()
            names = [name for name, one in zip(columns, chosen, strict=True) if one]
            advice.append(
                f"{what} {size:.2g} cannot be used, their squares {squares}: rescale to other "
                f"units (--standardize would fail too): {listed(names)}."
            )
    return advice


def hopeless(n: int, spreads: NDArray[np.float64], extremes: Extremes) -> str | None:
    """Say why no method can work on such numbers, where that is so."""
    if not spreads.any():
        return "all rows are equal" if n > 1 else "there is one row only"
    if extremes.huge.any():
        return "some values are so large that their squares overflow"
    if (extremes.tiny | (spreads == 0)).all():
        return "the values differ so little that squares of differences vanish"
    return None
