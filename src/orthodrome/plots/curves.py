"""Curves over a common axis, neighbourhood curves and spectra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._core.checks import check_choice, check_flag
from .._core.types import Floats
from ._classes import ACCENT, MAIN, check_mapping, check_row, class_style, line_style
from ._matplotlib import Axes, Figure, axes_of, font_points, legend_above, set_title

_TOL = 1e-9


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
        Scale of the horizontal axis. "log2" is for values that double; each gets a tick.
    yscale : {"linear", "log"}, default="linear"
        Scale of the vertical axis; a logarithmic one shows positive values only.
    markers : bool, default=True
        Draw a marker at each point. Without markers, lines have different dashes; use this for
        curves of many points.
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
    check_mapping(values, "values", "curves")
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


def _check_curve(curve: ArrayLike, name: str, positions: Floats, yscale: str) -> Floats:
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
    ax: Axes, x: Floats, rows: Mapping[str, Floats], xscale: str, *, markers: bool
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


def neighborhood(
    curves: Mapping[str, ArrayLike],
    *,
    xscale: str = "linear",
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    r"""Draw the fraction of κ nearest neighbours that embeddings preserve.

    A thin line shows the expectation for a random embedding, :math:`\kappa / (N - 1)`.
    The vertical axis begins at 0; if all curves are close to 1, set its limits on the axes.

    Parameters
    ----------
    curves : mapping of str to array-like of shape (n_samples - 1,)
        Q(1), …, Q(n_samples - 1) of each method by name, as returned by
        :func:`orthodrome.metrics.neighborhood_preservation`, all for the same data.
    xscale : {"linear", "log"}, default="linear"
        "log" gives small neighbourhoods as much space as large ones, like
        :func:`orthodrome.metrics.neighborhood_area`.
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
    >>> from sklearn.datasets import load_wine
    >>> from orthodrome import KernelPCA, plots
    >>> from orthodrome.metrics import neighborhood_preservation
    >>> X = load_wine().data
    >>> kept = {
    ...     f"{q} components": neighborhood_preservation(X, KernelPCA(q, "linear").fit_transform(X))
    ...     for q in (2, 3)
    ... }
    >>> fig = plots.neighborhood(kept, xscale="log")
    >>> [text.get_text() for text in fig.axes[0].get_legend().get_texts()]
    ['2 components', '3 components', 'random, κ/(N − 1)']
    """
    check_choice(xscale, ("linear", "log"), "xscale", "neighborhood")
    check_mapping(curves, "curves", "neighborhood")
    rows = {str(name): _check_fractions(curve, str(name)) for name, curve in curves.items()}
    lengths = {name: len(row) for name, row in rows.items()}
    others = max(lengths.values())
    if min(lengths.values()) < others:
        raise ValueError(
            f"curves of neighborhood must have equal lengths, for the same data; got {lengths}."
        )
    names = [*rows, "random, κ/(N − 1)"]
    ax = axes_of(ax, (4.8, 3.3 + 0.2 * len(names)))
    sizes = np.arange(1.0, others + 1)
    lines = draw_lines(ax, sizes, rows, xscale, markers=False)
    # drawn below the curves; all points are needed for a smooth line on a log scale
    lines += ax.plot(sizes, sizes / others, color="#888888", linewidth=0.8, zorder=1)
    ax.set(xlabel="Neighbours, κ", ylabel="Fraction of neighbours kept, Q(κ)")
    ax.set(xlim=(1, others), ylim=(0, 1.02))
    legend_above(ax, lines, names, handlelength=2.6)
    pad = font_points() * (1.0 + 1.6 * len(names))  # above the legend
    return set_title(ax, title, loc="left", pad=pad)


def _check_fractions(curve: ArrayLike, name: str) -> Floats:
    row = check_row(curve, f"curves[{name!r}]", "neighborhood")
    # N, and so the random line, is computed from the length of the curve
    if row.min() < 0 or abs(row.max() - 1) > _TOL or abs(row[-1] - 1) > _TOL:
        raise ValueError(
            f"curves[{name!r}] of neighborhood must be fractions Q(1), …, Q(n - 1) from 0 to 1, "
            f"the last 1; got values from {row.min():g} to {row.max():g}, the last {row[-1]:g}. "
            "Pass the whole result of neighborhood_preservation."
        )
    return row


def spectrum(
    model: Any,
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the variance explained by each component, and the cumulative sum.

    Parameters
    ----------
    model : fitted estimator, or array-like of shape (n_components,)
        An estimator with ``explained_variance_ratio_``, or all eigenvalues in descending order,
        which are divided by their sum.
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
    >>> fig = plots.spectrum([6.0, 3.0, 1.0])
    >>> [round(bar.get_height()) for bar in fig.axes[0].patches]
    [60, 30, 10]
    """
    ratios = _ratios(model)
    ax = axes_of(ax, (4.8, 3.4))
    from matplotlib.ticker import MaxNLocator

    positions = np.arange(1, len(ratios) + 1)
    bars = ax.bar(positions, 100 * ratios, color=MAIN)
    (line,) = ax.plot(positions, 100 * np.cumsum(ratios), color=ACCENT, marker="o", markersize=3.5)
    ax.set(xlabel="Component", ylabel="Variance explained (%)", ylim=(0, 105))
    ax.set_xlim(0.4, len(ratios) + 0.6)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    legend_above(ax, [bars, line], ["each component", "cumulative"], ncols=2, right=True)
    return set_title(ax, title, loc="left", pad=22)


def _ratios(model: Any) -> Floats:
    if hasattr(model, "fit"):
        check_is_fitted(model)
        if not hasattr(model, "explained_variance_ratio_"):
            raise ValueError(
                "spectrum needs eigenvalues, or an estimator with explained_variance_ratio_; got "
                f"{type(model).__name__}."
            )
        return np.asarray(model.explained_variance_ratio_, dtype=np.float64)
    values = check_row(model, "eigenvalues", "spectrum")
    if values.min() < 0 or not values.any():
        raise ValueError(
            "eigenvalues of spectrum must not be negative (the kernel may be indefinite), nor all "
            f"zero; the smallest is {values.min():g}."
        )
    return values / values.sum()
