"""Markers, dashes, and colours that are distinct for every kind of colour vision."""

from __future__ import annotations

__all__ = ["ACCENT", "COLORS", "DASHES", "MAIN", "MARKERS", "class_style", "line_style"]

# Okabe and Ito, "Color Universal Design" (2008), in an order that keeps the first few far apart;
# light grey and dark brown follow for the ninth and tenth class.
COLORS = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # bluish green
    "#CC79A7",  # reddish purple
    "#56B4E9",  # sky blue
    "#D55E00",  # vermilion
    "#000000",  # black
    "#F0E442",  # yellow
    "#BBBBBB",  # light grey; deuteranopes confuse darker greys with reddish purple
    "#661100",  # dark brown
)
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "p")
DASHES = ("-", "--", "-.", ":")

MAIN, ACCENT = "#0072B2", "#D55E00"


def class_style(index: int) -> tuple[str, str]:
    """Return the colour and marker of a class; the first hundred pairs differ.

    Examples
    --------
    >>> class_style(0)
    ('#0072B2', 'o')
    >>> class_style(10)
    ('#0072B2', '^')
    """
    n = len(COLORS)
    return COLORS[index % n], MARKERS[(index + index // n) % n]


def line_style(index: int) -> tuple[str, str]:
    """Return the colour and dashes of a line; the first forty pairs differ.

    Coinciding lines stay visible through the gaps between dashes.

    Examples
    --------
    >>> line_style(1)
    ('#E69F00', '--')
    """
    n = len(COLORS)
    return COLORS[index % n], DASHES[(index + index // n) % len(DASHES)]
