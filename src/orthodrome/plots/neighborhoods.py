"""Fraction of nearest neighbours that embeddings preserve."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_choice, check_positive
from ._classes import check_row
from ._matplotlib import Axes, Figure, axes_of, font_points, legend_above, set_title
from .curves import draw_lines

_ZERO_BELOW = 0.5  # if a curve falls below this, the axis begins at 0
_MIN_RANGE = 0.01  # minimum range of the vertical axis, so as not to exaggerate differences
_MAX_WIDTH = 38  # maximum number of characters in two columns of the legend
_TOL = 1e-9


def neighborhood(
    curves: Mapping[str, ArrayLike],
    *,
    xscale: str = "linear",
    bottom: float | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    r"""Draw the fraction of κ nearest neighbours that embeddings preserve.

    A thin line shows the expectation for a random embedding, :math:`\kappa / (N - 1)`.

    Parameters
    ----------
    curves : mapping of str to array-like of shape (n_samples - 1,)
        Q(1), …, Q(n_samples - 1) of each method by name, as returned by
        :func:`orthodrome.metrics.neighborhood_preservation`, all for the same data.
    xscale : {"linear", "log"}, default="linear"
        "log" gives small neighbourhoods as much space as large ones, like
        :func:`orthodrome.metrics.neighborhood_area`.
    bottom : float in [0, 1), optional
        Lower end of the vertical axis; the upper end is 1. If absent, 0 if a curve falls below 0.5,
        otherwise a little below the lowest curve; the label of the axis then gives the range.
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
    ['2 components', '3 components', 'random, from κ = 154']
    """
    check_choice(xscale, ("linear", "log"), "xscale", "neighborhood")
    rows = _check_curves(curves)
    others = len(next(iter(rows.values())))
    low = _bottom(rows, bottom)
    start = f"from κ = {int(np.ceil(low * others))}" if low > 0 else "κ/(N − 1)"
    names = [*rows, f"random, {start}"]
    half = -(-len(names) // 2)
    widths = [max(map(len, column)) for column in (names[:half], names[half:])]
    n_columns = 2 if sum(widths) <= _MAX_WIDTH else 1
    n_lines = -(-len(names) // n_columns)
    ax = axes_of(ax, (4.8, 3.3 + 0.2 * n_lines))
    sizes = np.arange(1.0, others + 1)
    lines = draw_lines(ax, sizes, rows, xscale, markers=False)
    # drawn below the curves; all points are needed for a smooth line on a log scale
    lines += ax.plot(sizes, sizes / others, color="#888888", linewidth=0.8, zorder=1)
    cut = f"\n(axis from {low:g} to 1)" if low > 0 else ""
    ax.set(xlabel="Neighbours, κ", ylabel=f"Fraction of neighbours kept, Q(κ){cut}")
    ax.set(xlim=(1, others), ylim=(low, 1 + 0.02 * (1 - low)))
    legend_above(ax, lines, names, ncols=n_columns, handlelength=2.6)
    pad = font_points() * (1.0 + 1.6 * n_lines)  # above the legend
    return set_title(ax, title, loc="left", pad=pad)


def _check_curves(curves: Mapping[str, ArrayLike]) -> dict[str, NDArray[np.float64]]:
    if not isinstance(curves, Mapping) or not curves:
        raise ValueError(
            "curves of neighborhood must be a mapping, {name: Q(1), …, Q(n - 1)}, with at least "
            f"one curve; got {type(curves).__name__}."
        )
    rows = {str(name): _check_curve(curve, str(name)) for name, curve in curves.items()}
    if len(rows) < len(curves):
        raise ValueError("curves of neighborhood must have names that differ as text.")
    lengths = {name: len(row) for name, row in rows.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"curves of neighborhood must have equal lengths, for the same data; got {lengths}."
        )
    return rows


def _check_curve(curve: ArrayLike, name: str) -> NDArray[np.float64]:
    row = check_row(curve, f"curves[{name!r}]", "neighborhood")
    if len(row) < 2:
        raise ValueError(f"curves[{name!r}] of neighborhood needs 2 entries or more; got {row}.")
    if np.any(row < 0) or np.any(row > 1 + _TOL):
        raise ValueError(
            f"curves[{name!r}] of neighborhood must be fractions from 0 to 1; got "
            f"{row.min():g} to {row.max():g}."
        )
    if abs(row[-1] - 1) > _TOL:
        # N, and so the random line, is computed from the length of the curve
        raise ValueError(
            f"curves[{name!r}] of neighborhood must end with Q(n - 1) = 1, the neighbourhood "
            f"of all points; got {row[-1]:g}. Pass the whole result of neighborhood_preservation."
        )
    return row


def _bottom(rows: dict[str, NDArray[np.float64]], bottom: float | None) -> float:
    """Return the lower end of the axis: 0, or a round number just below the lowest curve."""
    if bottom is not None:
        low = check_positive(bottom, "bottom", "neighborhood", or_zero=True, maximum=1.0)
        if low == 1:
            raise ValueError("bottom of neighborhood must be below 1, where the axis ends.")
        return low
    lowest = min(float(row.min()) for row in rows.values())
    if lowest < _ZERO_BELOW:
        return 0.0
    extent = max(1.1 * (1 - lowest), _MIN_RANGE)
    unit = 10.0 ** np.floor(np.log10(extent) - 1)
    return float(np.round(1 - np.ceil(extent / unit - _TOL) * unit, 12))
