"""The objective of a Karcher mean over the plane of the data, and its minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from .._core.checks import check_integer, check_numbers, check_sample_weight
from .._core.types import Data
from ..kernels import Kernel, Precomputed, as_kernel
from ..preimage import karcher_mean_preimage
from ..sphere import geodesic_distances
from ._classes import marker_area
from ._matplotlib import axes_of, finished, legend_above, small_points
from .palette import ACCENT, MAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["karcher_objective"]

_MARGIN = 0.1  # of the width of the data, on each side of them
_LEVELS = 14
_FINEST = 10_000  # places along a side: more than any picture has
_BLOCK = 2**21  # distances that are in memory at a time
# Greys, as in the paper, leave all colours to the points; the darkest would hide them.
_DARKEST = 0.65
_WIDE = 2.4  # inches of axes that have room for three names side by side
_LEGEND_SIZES = (25.0, 50.0, 130.0)  # of a point, a square and a star that look alike in size


def karcher_objective(
    kernel: Any,
    X: Data,
    *,
    sample_weight: ArrayLike | None = None,
    ax: Axes | None = None,
    n_grid: int = 121,
    title: str | None = None,
    xlabel: str = "Feature 1",
    ylabel: str = "Feature 2",
    size: float | None = None,
) -> Figure:
    r"""Draw the objective of the Karcher mean's pre-image over the plane of two features.

    .. math:: f(x) = \sum_n p_n \arccos^2 k(x_n, x)

    as filled contours, with the data, their mean, and the pre-image of the Karcher mean, where f is
    least (RKHS-GEO, Figure 2). For large σ the two coincide; for small σ the pre-image goes where
    the data are dense. (The caption of the paper's figure names eq. 8, the gradient; this is f.)

    Parameters
    ----------
    kernel : Kernel or str
        A radial kernel with k(x, x) = 1, fitted to X unless it is fitted already.
    X : array-like of shape (n_samples, 2)
        The data.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, which the areas of the points show.
    ax : matplotlib Axes, optional
        Where to draw, one of several beside each other, say; a new figure if absent.
    n_grid : int, default=121
        Points along each side of the square on which f is evaluated.
    title : str, optional
        Title of the axes.
    xlabel, ylabel : str, default="Feature 1", "Feature 2"
        Labels of the axes.
    size : float, optional
        Area of a marker in points²; by the number of samples if absent.

    Returns
    -------
    matplotlib Figure
        The figure that holds the axes.

    See Also
    --------
    orthodrome.preimage.karcher_mean_preimage : Finds the point.

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
    check_integer(n_grid, "n_grid", "karcher_objective", minimum=2, maximum=_FINEST)
    points = check_numbers(X, "X", "karcher_objective", dtype=[np.float64, np.float32])
    if points.shape[1] != 2:
        raise ValueError(
            f"X of karcher_objective must have 2 columns, those of the plane; got "
            f"{points.shape[1]}. Pass two of its features, or an embedding with two components."
        )
    weights = check_sample_weight(sample_weight, len(points), "karcher_objective")
    fitted = as_kernel(kernel)
    # a precomputed matrix is refused below, in the right words
    if not (fitted.__sklearn_is_fitted__() or isinstance(fitted, Precomputed)):
        fitted = clone(fitted).fit(points, sample_weight=weights)
    preimage = karcher_mean_preimage(fitted, points, weights).point
    ax = axes_of(ax, (5.4, 4.2))
    _draw_surface(ax, fitted, points, weights, n_grid)
    drawn = _draw_points(ax, points, weights, preimage, marker_area(len(points), size))
    n_columns = 3 if ax.get_window_extent().width / ax.figure.dpi > _WIDE else 2
    legend = legend_above(
        ax,
        list(drawn.values()),
        list(drawn),
        n_columns=n_columns,
        borderaxespad=0.5,  # half of a number at the upper end of the scale
        handletextpad=0.1,
        columnspacing=0.9,
        scatterpoints=1,
    )
    for handle, area in zip(legend.legend_handles, _LEGEND_SIZES, strict=True):
        handle.set_sizes([area])  # type: ignore[union-attr]  # of a scatter
    ax.set(xlabel=xlabel, ylabel=ylabel, aspect="equal")
    pad = (3.1 if n_columns == 3 else 4.7) * small_points()
    return finished(ax, title, loc="left", pad=pad)


# ---------------------------------------------------------------------------- surface


def _draw_surface(
    ax: Axes,
    kernel: Kernel,
    points: NDArray[Any],
    weights: NDArray[np.float64] | None,
    n_grid: int,
) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    sides = _square_around(points, n_grid)
    places = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    values = _objective(kernel, points, weights, places).reshape(n_grid, n_grid)
    greys = LinearSegmentedColormap.from_list(
        "greys", colormaps["Greys"](np.linspace(0.0, _DARKEST, 64))
    )
    surface = ax.contourf(*sides, values, levels=_LEVELS, cmap=greys)
    ax.contour(*sides, values, levels=surface.levels, colors="#555555", linewidths=0.3)
    # beside the square itself, where the layout of several axes leaves it as high as the square
    scale = ax.inset_axes((1.03, 0.0, 0.045, 1.0))
    label = "Mean squared\ndistance (rad²)"
    ticks = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
    ax.figure.colorbar(surface, cax=scale, label=label, ticks=ticks)


def _square_around(points: NDArray[Any], n_grid: int) -> list[NDArray[np.float64]]:
    """Return the places on both sides of a square that holds the data and a margin."""
    low, high = points.min(axis=0).astype(np.float64), points.max(axis=0).astype(np.float64)
    width = float((high - low).max()) or 1.0  # of one point: any
    center, half = (low + high) / 2, (0.5 + _MARGIN) * width
    return [np.linspace(middle - half, middle + half, n_grid) for middle in center]


def _objective(
    kernel: Kernel,
    points: NDArray[Any],
    weights: NDArray[np.float64] | None,
    places: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the weighted mean of the squared angles from each of the places to the data."""
    p = np.full(len(points), 1 / len(points)) if weights is None else weights / weights.sum()
    step = max(1, _BLOCK // len(points))
    parts = (places[first : first + step] for first in range(0, len(places), step))
    return np.concatenate(
        [geodesic_distances(part, points, kernel=kernel) ** 2 @ p for part in parts]
    )


# ---------------------------------------------------------------------------- points


def _draw_points(
    ax: Axes,
    points: NDArray[Any],
    weights: NDArray[np.float64] | None,
    preimage: NDArray[Any],
    area: float,
) -> dict[str, Any]:
    """Mark the data, their mean and the pre-image; return the markers by name."""
    mean = np.average(points, axis=0, weights=weights)
    areas = area if weights is None else area * weights / weights.mean()
    drawn = {}
    # square and star have sizes at which both are visible if the two coincide
    for (x, y), s, marker, color, rim, name in (
        (points.T, areas, "o", MAIN, 0.4, "data"),
        (mean, 130.0, "s", ACCENT, 1.0, "mean"),
        (preimage, 170.0, "*", "black", 0.7, "Karcher pre-image"),
    ):
        style: dict[str, Any] = {"marker": marker, "facecolor": color, "edgecolor": "white"}
        drawn[name] = ax.scatter(x, y, s=s, linewidth=rim, zorder=3, **style)
    return drawn
