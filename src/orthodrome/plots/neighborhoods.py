"""Fraction of nearest neighbours that embeddings preserve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_choice, check_numbers, check_positive
from ._matplotlib import axes_of, finished, legend_above, small_points
from .curves import draw_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["neighborhood"]

_ZERO_BELOW = 0.5  # an axis that has to reach down to here may as well begin at 0
_LEAST_ROOM = 0.01  # on the vertical axis: less would make something of nothing
_WIDTH = 38  # characters that two columns of the legend above the axes hold
_ROUNDING = 1e-9


def neighborhood(
    curves: Mapping[str, ArrayLike],
    *,
    xscale: str = "linear",
    bottom: float | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    r"""Draw the fraction of the κ nearest neighbours that each embedding preserves, for all κ.

    A thin line shows the expectation for a random embedding, :math:`\kappa / (N - 1)`.

    Parameters
    ----------
    curves : mapping of str to array-like of shape (n_samples - 1,)
        Q(1), …, Q(n_samples - 1) by the name of the method, as
        :func:`orthodrome.metrics.neighborhood_preservation` returns it; all of the same data.
    xscale : {"linear", "log"}, default="linear"
        "log" gives small neighbourhoods as much room as large ones, as
        :func:`orthodrome.metrics.neighborhood_area` does.
    bottom : float in [0, 1), optional
        Where the vertical axis begins; it ends at 1. If absent, at 0 where a curve comes below
        0.5, else as near under the lowest curve as leaves differences visible; the axis says so.
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
    ['2 components', '3 components', 'random, seen from κ = 154']
    """
    check_choice(xscale, ("linear", "log"), "xscale", "neighborhood")
    rows = _check_curves(curves)
    others = len(next(iter(rows.values())))
    low = _bottom(rows, bottom)
    names = [*rows, _random_name(others, low)]
    n_columns = _columns(names)
    n_lines = -(-len(names) // n_columns)  # of the legend
    ax = axes_of(ax, (4.8, 3.3 + 0.2 * n_lines))
    sizes = np.arange(1.0, others + 1)
    lines = draw_lines(ax, sizes, rows, xscale, markers=False)
    # under the curves, and with as many points, so that it is smooth on either scale
    lines += ax.plot(sizes, sizes / others, color="#888888", linewidth=0.8, zorder=1)
    cut = f"\n(axis from {low:g} to 1)" if low > 0 else ""
    ax.set(xlabel="Neighbours, κ", ylabel=f"Fraction of neighbours kept, Q(κ){cut}")
    ax.set(xlim=(1, others), ylim=(low, 1 + 0.02 * (1 - low)))
    legend_above(ax, lines, names, n_columns=n_columns, handlelength=2.6)
    # over the legend
    return finished(ax, title, loc="left", pad=small_points() * (1.0 + 1.6 * n_lines))


def _check_curves(curves: Mapping[str, ArrayLike]) -> dict[str, NDArray[np.float64]]:
    if not isinstance(curves, Mapping):
        raise ValueError(
            "curves of neighborhood must be a mapping, {name: Q(1), …, Q(n - 1)}; "
            f"got {type(curves).__name__}."
        )
    if not curves:
        raise ValueError("curves of neighborhood must hold at least one curve.")
    if len({str(name) for name in curves}) < len(curves):
        raise ValueError("curves of neighborhood must have names that differ as text.")
    rows: dict[str, NDArray[np.float64]] = {}
    for name, curve in ((str(name), curve) for name, curve in curves.items()):
        row = check_numbers(
            curve, f"curves[{name!r}]", "neighborhood", ensure_2d=False, dtype=np.float64
        )
        if row.ndim != 1 or len(row) < 2:
            raise ValueError(
                f"curves[{name!r}] of neighborhood must be Q(1), …, Q(n - 1) of at least three "
                f"points; got shape {row.shape}."
            )
        if np.any(row < 0) or np.any(row > 1 + _ROUNDING):
            raise ValueError(
                f"curves[{name!r}] of neighborhood must hold fractions from 0 to 1; got "
                f"{row.min():g} to {row.max():g}."
            )
        if abs(row[-1] - 1) > _ROUNDING:
            # N, and with it the random line, is known from the length of the whole curve only
            raise ValueError(
                f"curves[{name!r}] of neighborhood must end with Q(n - 1) = 1, the neighbourhood "
                f"of all points; got {row[-1]:g}. Pass all that neighborhood_preservation returned."
            )
        rows[name] = row
    lengths = {name: len(row) for name, row in rows.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"curves of neighborhood must all have the same length, as they have for the same "
            f"data; got {lengths}."
        )
    return rows


def _bottom(rows: dict[str, NDArray[np.float64]], bottom: float | None) -> float:
    """Return where the axis begins: 0, or a round number a little under the lowest curve."""
    if bottom is not None:
        low = check_positive(bottom, "bottom", "neighborhood", or_zero=True, maximum=1.0)
        if low == 1:
            raise ValueError("bottom of neighborhood must be below 1, where the axis ends.")
        return low
    lowest = min(float(row.min()) for row in rows.values())
    if lowest < _ZERO_BELOW:
        return 0.0
    room = max(1.1 * (1 - lowest), _LEAST_ROOM)
    unit = 10.0 ** np.floor(np.log10(room) - 1)
    return float(np.round(1 - np.ceil(room / unit - _ROUNDING) * unit, 12))


def _random_name(others: int, low: float) -> str:
    seen_from = int(np.ceil(low * others))
    return f"random, seen from κ = {seen_from}" if low > 0 else "random, κ/(N − 1)"


def _columns(names: list[str]) -> int:
    """Return how many columns of names have room side by side."""
    half = -(-len(names) // 2)
    return 2 if max(map(len, names[:half])) + max(map(len, names[half:])) <= _WIDTH else 1
