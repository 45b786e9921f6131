"""Contours of the Karcher mean's objective over the plane of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._core.checks import check_sample_weight
from .._core.types import Array, Data, Floats
from ..kernels import Kernel, Precomputed, as_kernel
from ..preimage import karcher_mean_preimage
from ..sphere import geodesic_distances
from ._classes import check_points, marker_area
from ._matplotlib import Axes, Figure, axes_of, font_points, legend_above, set_title
from .palette import ACCENT, MAIN

_MARGIN = 0.1  # margin on each side, as a fraction of the width of the data
_LEVELS = 14
_N_GRID = 121  # grid points along a side
_BLOCK = 2**21  # maximum number of distances in memory
# Greys as in the paper; darker ones would hide the points.
_DARKEST = 0.65
_WIDE = 2.4  # width of axes in inches that fits three names in a row
_LEGEND_SIZES = (25.0, 50.0, 130.0)  # a point, a square and a star look equally large


def karcher_objective(
    kernel: Any,
    X: Data,
    *,
    sample_weight: ArrayLike | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    xlabel: str = "Feature 1",
    ylabel: str = "Feature 2",
) -> Figure:
    r"""Draw the objective of the Karcher mean's pre-image over a plane.

    .. math:: f(x) = \sum_n p_n \arccos^2 k(x_n, x)

    is drawn as filled contours, with the data, their mean, and the pre-image of the Karcher mean,
    where f is smallest, as in Figure 2 of the paper. For large σ the mean and the pre-image
    coincide; for small σ the pre-image is where the data are dense. (The caption of the paper's
    figure refers to the gradient, eq. 8, but the figure shows f.)

    Parameters
    ----------
    kernel : Kernel or str
        A radial kernel with k(x, x) = 1; fitted to X if it is not fitted.
    X : array-like of shape (n_samples, 2)
        The data.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, shown as areas of the points.
    ax : matplotlib Axes, optional
        Axes to draw into; a new figure if absent.
    title : str, optional
        Title of the axes.
    xlabel, ylabel : str, default="Feature 1", "Feature 2"
        Labels of the axes.

    Returns
    -------
    matplotlib Figure
        The figure that holds the axes.

    See Also
    --------
    orthodrome.preimage.karcher_mean_preimage : Find the pre-image.

    References
    ----------
    Courty, Burger and Marteau, "Geodesic Analysis on the Gaussian RKHS Hypersphere", ECML PKDD
    2012, §3.1, Figure 2.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome import plots
    >>> from orthodrome.kernels import Gaussian
    >>> X = np.random.default_rng(0).uniform(size=(50, 2))
    >>> fig = plots.karcher_objective(Gaussian(sigma=0.2), X)
    >>> [text.get_text() for text in fig.axes[0].get_legend().get_texts()]
    ['data', 'mean', 'Karcher pre-image']
    """
    hint = " Pass two features, or an embedding with two components."
    points = check_points(X, "X", "karcher_objective", 2, exactly=True, hint=hint)
    weights = check_sample_weight(sample_weight, len(points), "karcher_objective")
    fitted = as_kernel(kernel)
    # karcher_mean_preimage raises for a precomputed matrix
    if not (fitted.__sklearn_is_fitted__() or isinstance(fitted, Precomputed)):
        fitted = clone(fitted).fit(points, sample_weight=weights)
    preimage = karcher_mean_preimage(fitted, points, weights).point
    ax = axes_of(ax, (5.4, 4.2))
    _draw_surface(ax, fitted, points, weights)
    drawn = _draw_points(ax, points, weights, preimage, marker_area(len(points), None))
    n_columns = 3 if ax.get_window_extent().width / ax.figure.dpi > _WIDE else 2
    # space for the top label of the colour scale
    style: Any = {"borderaxespad": 0.5, "handletextpad": 0.1, "columnspacing": 0.9}
    legend = legend_above(ax, [*drawn.values()], [*drawn], ncols=n_columns, **style)
    for handle, area in zip(legend.legend_handles, _LEGEND_SIZES, strict=True):
        handle.set_sizes([area])  # type: ignore[union-attr]  # a scatter
    ax.set(xlabel=xlabel, ylabel=ylabel, aspect="equal")
    return set_title(ax, title, loc="left", pad=(3.1 if n_columns == 3 else 4.7) * font_points())


# ---------------------------------------------------------------------------- surface


def _draw_surface(ax: Axes, kernel: Kernel, points: Array, weights: Floats | None) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    sides = _square_around(points)
    grid_points = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    values = _objective(kernel, points, weights, grid_points).reshape(_N_GRID, _N_GRID)
    shades = colormaps["Greys"](np.linspace(0.0, _DARKEST, 64))
    greys = LinearSegmentedColormap.from_list("greys", shades)
    surface = ax.contourf(*sides, values, levels=_LEVELS, cmap=greys)
    ax.contour(*sides, values, levels=surface.levels, colors="#555555", linewidths=0.3)
    # inset axes have the height of the square in every layout
    scale = ax.inset_axes((1.03, 0.0, 0.045, 1.0))
    label = "Mean squared\ndistance (rad²)"
    ticks = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
    ax.figure.colorbar(surface, cax=scale, label=label, ticks=ticks)


def _square_around(points: Array) -> list[Floats]:
    """Return the grid along both sides of a square around the data."""
    low, high = points.min(axis=0).astype(np.float64), points.max(axis=0).astype(np.float64)
    width = float((high - low).max()) or 1.0  # for a single point
    center, half = (low + high) / 2, (0.5 + _MARGIN) * width
    return [np.linspace(middle - half, middle + half, _N_GRID) for middle in center]


def _objective(
    kernel: Kernel, points: Array, weights: Floats | None, grid_points: Floats
) -> Floats:
    """Return the weighted mean squared angle between each grid point and the data."""
    p = np.full(len(points), 1 / len(points)) if weights is None else weights / weights.sum()
    step = max(1, _BLOCK // len(points))
    values = np.empty(len(grid_points))
    for first in range(0, len(grid_points), step):
        block = slice(first, first + step)
        values[block] = geodesic_distances(grid_points[block], points, kernel=kernel) ** 2 @ p
    return values


# ---------------------------------------------------------------------------- points


def _draw_points(
    ax: Axes, points: Array, weights: Floats | None, preimage: Array, area: float
) -> dict[str, Any]:
    """Draw the data, their mean and the pre-image; return the scatters by name."""
    mean = np.average(points, axis=0, weights=weights)
    areas = area if weights is None else area * weights / weights.mean()
    drawn = {}
    # with these sizes, the square and the star are both visible if they coincide
    for (x, y), s, marker, color, rim, name in (
        (points.T, areas, "o", MAIN, 0.4, "data"),
        (mean, 130.0, "s", ACCENT, 1.0, "mean"),
        (preimage, 170.0, "*", "black", 0.7, "Karcher pre-image"),
    ):
        style: dict[str, Any] = {"marker": marker, "facecolor": color, "edgecolor": "white"}
        drawn[name] = ax.scatter(x, y, s=s, linewidth=rim, zorder=3, **style)
    return drawn
