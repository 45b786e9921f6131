"""Sizes in bytes, as text and as numbers."""

from __future__ import annotations

import math
import re

from .checks import as_number

_UNITS = (
    {"": 1, "B": 1}
    | {f"{letter}B": 1000**power for power, letter in enumerate("KMGT", start=1)}
    | {f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", start=1)}
)
_PATTERN = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_bytes(size: str | float, name: str = "memory_budget") -> int:
    """Read a size such as ``"2GiB"``, ``"500 MB"`` or a number of bytes.

    Parameters
    ----------
    size : str or number
        The size. Units are B, KB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB
        (powers of 1024), in any case.
    name : str, default="memory_budget"
        The parameter's name in error messages.

    Returns
    -------
    int
        The size in bytes, at least 1.

    Examples
    --------
    >>> parse_bytes("2GiB")
    2147483648
    >>> parse_bytes("1.5 kB")
    1500
    """
    value = as_number(size)
    if isinstance(size, str) and (match := _PATTERN.fullmatch(size)):
        number, unit = match.groups()
        if unit.upper() not in _UNITS:
            raise ValueError(
                f"{name} has the unknown unit {unit!r}; got {size!r}. Use for example '512MiB'."
            )
        value = float(number) * _UNITS[unit.upper()]
    elif math.isnan(value):
        raise ValueError(
            f"{name} must be a number of bytes or a string such as '2GiB'; got {size!r}."
        )
    if not math.isfinite(value) or value < 1:
        raise ValueError(f"{name} must be finite and at least one byte; got {size!r}.")
    return int(value)


def format_bytes(size: float) -> str:
    """Return a number of bytes as readable text.

    Examples
    --------
    >>> format_bytes(3_200_000_000)
    '2.98 GiB'
    """
    value, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB"]
    while abs(value) >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    # three significant digits, but no fewer than those before the decimal point
    number = f"{value:.0f}" if units[0] == "B" or abs(value) >= 100 else f"{value:.3g}"
    return f"{number} {units[0]}"
