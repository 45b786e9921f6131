"""Curves over a common axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_choice, check_flag
from ._classes import check_row
from ._matplotlib import Axes, Figure, axes_of, set_title
from .palette import class_style, line_style


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
    """Draw curves over a common horizontal axis.

    Parameters
    ----------
    x : array-like of shape (n_points,)
        Positions on the horizontal axis.
    values : mapping of str to array-like of shape (n_points,)
        Curves by name; NaN leaves a gap.
    xlabel, ylabel : str
        Labels of the axes.
    xscale : {"linear", "log", "log2"}, default="linear"
        "log2" is for values that double; each has a tick.
    yscale : {"linear", "log"}, default="linear"
        Scale of the vertical axis; a logarithmic one shows positive values only.
    markers : bool, default=True
        Mark every point. Without markers, for curves of many points, lines differ by dashes.
    ax : matplotlib Axes, optional
        Axes to draw into; a new figure if absent.
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
    check_choice(xscale, ("linear", "log", "log2"), "xscale", "curves")
    check_choice(yscale, ("linear", "log"), "yscale", "curves")
    check_flag(markers, "markers", "curves")
    positions = check_row(x, "x", "curves")
    if xscale != "linear" and np.any(positions <= 0):
        raise ValueError("x of curves must be positive on a logarithmic axis.")
    if not isinstance(values, Mapping) or not values:
        raise ValueError("values of curves must be a non-empty mapping, {name: curve}.")
    rows = {name: _check_curve(curve, name, positions, yscale) for name, curve in values.items()}
    ax = axes_of(ax, (4.8, 3.4))
    draw_lines(ax, positions, rows, xscale, markers=markers)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if yscale == "log":
        ax.set_yscale("log")
    elif all(np.nanmin(row) >= 0 for row in rows.values()):
        ax.set_ylim(bottom=0.0)  # so that heights can be compared
    ax.legend(frameon=False)
    return set_title(ax, title)


def _check_curve(
    curve: ArrayLike, name: str, positions: NDArray[np.float64], yscale: str
) -> NDArray[np.float64]:
    row = check_row(curve, f"values[{name!r}]", "curves", ensure_all_finite=False)
    if row.shape != positions.shape:
        raise ValueError(
            f"values[{name!r}] of curves must have the shape of x, {positions.shape}; got "
            f"{row.shape}."
        )
    kind = "positive" if yscale == "log" else "finite"
    if not np.any(np.isfinite(row) & ((row > 0) | (yscale == "linear"))):
        raise ValueError(f"values[{name!r}] of curves has no {kind} entry to show.")
    return row


def draw_lines(
    ax: Axes,
    x: NDArray[np.float64],
    rows: Mapping[str, NDArray[np.float64]],
    xscale: str,
    *,
    markers: bool,
) -> list[Any]:
    """Draw curves in different styles, scale the horizontal axis, and return the lines."""
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
