"""Curves over one axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_choice, check_flag, check_numbers
from ._matplotlib import axes_of, finished
from .palette import class_style, line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

__all__ = ["curves", "draw_lines"]

_SCALES = ("linear", "log", "log2")


def curves(
    x: ArrayLike,
    values: Mapping[str, ArrayLike],
    *,
    xlabel: str,
    ylabel: str,
    xscale: str = "linear",
    yscale: str = "linear",
    markers: bool = True,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw curves that share the horizontal axis.

    Parameters
    ----------
    x : array-like of shape (n_points,)
        Where the curves are known.
    values : mapping of str to array-like of shape (n_points,)
        The curves by name; NaN leaves a gap.
    xlabel, ylabel : str
        What the axes show.
    xscale : {"linear", "log", "log2"}, default="linear"
        "log2" is for numbers that were doubled; each of them then has its own tick.
    yscale : {"linear", "log"}, default="linear"
        The vertical axis; a logarithmic one shows positive values only.
    markers : bool, default=True
        Mark every point. Without, for curves of many points, lines differ by their dashes too.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from orthodrome import plots
    >>> fig = plots.curves(
    ...     [1, 2, 4],
    ...     {"linear": [3, 2, 1], "gaussian": [3, 1, 0.5]},
    ...     xlabel="Components",
    ...     ylabel="Error",
    ...     xscale="log2",
    ... )
    >>> len(fig.axes[0].lines)
    2
    """
    check_choice(xscale, _SCALES, "xscale", "curves")
    check_choice(yscale, ("linear", "log"), "yscale", "curves")
    check_flag(markers, "markers", "curves")
    positions = check_numbers(x, "x", "curves", ensure_2d=False, dtype=np.float64)
    if positions.ndim != 1:
        raise ValueError(f"x of curves must be one row of numbers; got shape {positions.shape}.")
    if xscale != "linear" and np.any(positions <= 0):
        raise ValueError("x of curves must be positive on a logarithmic axis.")
    if not isinstance(values, Mapping) or not values:
        raise ValueError("values of curves must be a mapping, {name: curve}, of at least one.")
    rows = {
        name: check_numbers(
            curve,
            f"values[{name!r}]",
            "curves",
            ensure_2d=False,
            allow_nd=True,
            dtype=np.float64,
            ensure_all_finite=False,
        )
        for name, curve in values.items()
    }
    for name, row in rows.items():
        if row.shape != positions.shape:
            raise ValueError(
                f"values[{name!r}] of curves must have shape {positions.shape}, as x; "
                f"got {row.shape}."
            )
        if not np.isfinite(row).any():
            raise ValueError(f"values[{name!r}] of curves has no finite entry.")
        if yscale == "log" and not np.any(row > 0):
            raise ValueError(f"values[{name!r}] of curves has no positive entry to show on a log.")
    ax = axes_of(ax, (4.8, 3.4))
    draw_lines(ax, positions, rows, xscale, markers=markers)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if yscale == "log":
        ax.set_yscale("log")
    elif all(np.nanmin(row) >= 0 for row in rows.values()):
        ax.set_ylim(bottom=0.0)  # so that heights can be compared
    ax.legend(frameon=False)
    return finished(ax, title)


def draw_lines(
    ax: Axes,
    x: NDArray[np.float64],
    rows: Mapping[str, NDArray[np.float64]],
    xscale: str,
    *,
    markers: bool,
) -> list[Line2D]:
    """Draw checked curves, each in a style of its own, and scale the horizontal axis."""
    lines = []
    for index, (name, row) in enumerate(rows.items()):
        if markers:
            color, marker = class_style(index)
            lines += ax.plot(x, row, color=color, marker=marker, markersize=5, label=name)
        else:
            color, dashes = line_style(index)
            lines += ax.plot(x, row, color=color, linestyle=dashes, label=name)
    if xscale == "log2":
        ax.set_xscale("log", base=2)
        ax.set_xticks(x, [f"{position:g}" for position in x])
        ax.minorticks_off()
    elif xscale == "log":
        from matplotlib.ticker import LogFormatter

        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")  # 100, not 10²
        ax.xaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False))
    return lines
