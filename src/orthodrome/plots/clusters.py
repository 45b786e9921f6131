"""Points coloured by cluster, with centres and membership."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_numbers, numbers_expected
from ._classes import EDGE, class_legend, label_array, marker_area
from ._matplotlib import axes_of, finished, require_matplotlib
from .palette import class_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

__all__ = ["clusters"]

_MOST_LINES = 16  # that the legend of a figure of our own has for clusters
_FAINTEST, _CLEAREST = 0.12, 0.85  # opacity at chance, and of a point that surely is a member
_CENTER_AREAS = (40.0, 150.0)  # of stars, in points²: of many clusters, and of ten or fewer
_LEGEND_STAR = 80.0


@dataclass(frozen=True)
class _Clusters:
    """The clusters in their order, that of centres and of columns of probabilities."""

    names: list[str]
    index: NDArray[np.intp]  # of each point's cluster

    @property
    def sizes(self) -> NDArray[np.intp]:
        return np.bincount(self.index, minlength=len(self.names))


def clusters(
    Z: ArrayLike,
    labels: ArrayLike,
    *,
    centers: ArrayLike | None = None,
    proba: ArrayLike | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    legend_title: str | None = "cluster (points)",
    xlabel: str = "Coordinate 1",
    ylabel: str = "Coordinate 2",
    size: float | None = None,
) -> Figure:
    """Draw points coloured by cluster, with the clusters' centres, as a scatter plot.

    Parameters
    ----------
    Z : array-like of shape (n_samples, d)
        Points, or an embedding of them, d >= 2; the first two columns are drawn.
    labels : array-like of shape (n_samples,)
        The cluster of each point. Each has a colour and a marker, in the order of the labels; the
        first hundred pairs differ. The legend has a line for each with its number of points; if
        there are more than fit next to the axes (at most 16), it lists the largest and one line
        for all others.
    centers : array-like of shape (n_clusters, d), optional
        Centres, drawn as stars in the colour of their clusters. Where the labels are integers, row
        j is the centre of cluster j, also of one without points; other labels are in sorted order.
    proba : array-like of shape (n_samples,) or (n_samples, n_clusters), optional
        How probably each point belongs to its cluster, or to each of the clusters in the order of
        `centers`, as ``predict_proba`` returns it. Points fade toward 1 / n_clusters, chance.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.
    title : str, optional
        Title of the axes.
    legend_title : str or None, default="cluster (points)"
        Title of the legend.
    xlabel, ylabel : str, default="Coordinate 1", "Coordinate 2"
        Labels of the axes.
    size : float, optional
        Area of a marker in points²; by the number of samples if absent.

    Returns
    -------
    matplotlib Figure
        The figure that holds the axes.

    See Also
    --------
    orthodrome.plots.embedding : Any two columns, coloured by class or on a scale.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import load_iris
    >>> from orthodrome import plots
    >>> X = load_iris().data
    >>> model = KMeans(3, init=X[[0, 60, 120]], n_init=1).fit(X)
    >>> fig = plots.clusters(X, model.labels_, centers=model.cluster_centers_)
    >>> [text.get_text() for text in fig.axes[0].get_legend().get_texts()]
    ['0 (50)', '1 (61)', '2 (39)', 'centre']
    """
    points = _check_columns(Z, "Z")
    places = None if centers is None else _check_columns(centers, "centers")
    if places is not None and places.shape[1] != points.shape[1]:
        raise ValueError(
            f"centers of clusters must have {points.shape[1]} columns, as Z has; got "
            f"{places.shape[1]}. Take both to the same coordinates, as by transform(centers)."
        )
    probabilities = None if proba is None else _check_probabilities(proba, len(points))
    groups = _check_clusters(labels, len(points), _number_given(places, probabilities))
    n_extra = (places is not None) + (probabilities is not None)
    ax = axes_of(ax, (4.8, _height(len(groups.names), n_extra)))
    opacity = _opacity(probabilities, groups)
    drawn = _draw_members(ax, points, groups, opacity, _area(len(points), size))
    handles, names = _lines(ax, drawn, groups, n_extra)
    if probabilities is not None:
        handles.append(ax.scatter([], [], facecolor="#E4E4E4", edgecolor="#AAAAAA", linewidth=0.5))
        names.append("faint: unsure")
    if places is not None:
        handles.append(_draw_centers(ax, places))
        names.append("centre")
    legend = class_legend(ax, handles, names, legend_title)
    if places is not None:
        legend.legend_handles[-1].set_sizes([_LEGEND_STAR])  # type: ignore[union-attr]  # a scatter
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return finished(ax, title)


# ---------------------------------------------------------------------------- checks


def _check_columns(array: ArrayLike, name: str) -> NDArray[Any]:
    checked = check_numbers(array, name, "clusters", dtype=[np.float64, np.float32])
    if checked.shape[1] < 2:
        raise ValueError(
            f"{name} of clusters must have at least 2 columns; got {checked.shape[1]}."
        )
    return checked


def _check_probabilities(proba: ArrayLike, n_samples: int) -> NDArray[Any]:
    floats = [np.float64, np.float32]
    with numbers_expected(proba, "proba", "clusters"):
        shape = np.shape(proba)
    if len(shape) not in (1, 2) or shape[0] != n_samples:
        raise ValueError(
            f"proba of clusters must have {n_samples} rows, one per row of Z; got shape {shape}."
        )
    values = check_numbers(proba, "proba", "clusters", ensure_2d=False, dtype=floats)
    rounding = 4 * np.finfo(values.dtype).eps
    if values.min() < -rounding or values.max() > 1 + rounding:
        raise ValueError(
            f"proba of clusters must be from 0 to 1; got {values.min():g} to "
            f"{values.max():g}. Divide each row of responsibilities by its sum."
        )
    return values


def _number_given(places: NDArray[Any] | None, probabilities: NDArray[Any] | None) -> int | None:
    """Return how many clusters the centres or the probabilities are for, None if not said."""
    rows = None if places is None else len(places)
    columns = None if probabilities is None or probabilities.ndim == 1 else probabilities.shape[1]
    if rows is not None and columns is not None and rows != columns:
        raise ValueError(
            f"centers and proba of clusters must be for the same clusters; got {rows} rows and "
            f"{columns} columns."
        )
    return rows if columns is None else columns


def _check_clusters(labels: ArrayLike, n_samples: int, n_clusters: int | None) -> _Clusters:
    array = label_array(labels, "labels", "clusters")
    if array.shape != (n_samples,):
        raise ValueError(
            f"labels of clusters must have shape ({n_samples},), one per row of Z; "
            f"got {array.shape}."
        )
    found, index = np.unique(array, return_inverse=True)
    if n_clusters is None:
        return _Clusters([str(label) for label in found], index)
    if np.issubdtype(array.dtype, np.integer) and found[0] >= 0 and found[-1] < n_clusters:
        return _Clusters([str(label) for label in range(n_clusters)], array.astype(np.intp))
    if len(found) != n_clusters:
        raise ValueError(
            f"labels of clusters must be integers from 0 to {n_clusters - 1}, or of "
            f"{n_clusters} different values, as there are centers or columns of proba; got "
            f"{len(found)} values from {found[0]} to {found[-1]}."
        )
    return _Clusters([str(label) for label in found], index)


# ---------------------------------------------------------------------------- drawing


def _opacity(probabilities: NDArray[Any] | None, clusters: _Clusters) -> NDArray[np.float64]:
    """Return the opacity of each point, from chance to certainty."""
    n_samples, n_clusters = len(clusters.index), len(clusters.names)
    if probabilities is None or n_clusters == 1:
        return np.full(n_samples, _CLEAREST)
    own = probabilities
    if probabilities.ndim == 2:
        own = probabilities[np.arange(n_samples), clusters.index]
    above_chance = np.clip((own - 1 / n_clusters) / (1 - 1 / n_clusters), 0.0, 1.0)
    return _FAINTEST + (_CLEAREST - _FAINTEST) * above_chance.astype(np.float64)


def _draw_members(
    ax: Axes,
    points: NDArray[Any],
    clusters: _Clusters,
    opacity: NDArray[np.float64],
    area: float,
) -> list[PathCollection]:
    from matplotlib.colors import to_rgba_array

    handles = []
    for number in range(len(clusters.names)):
        color, marker = class_style(number)
        chosen = clusters.index == number
        # of no points too: a colour, for the legend
        visible = opacity[chosen] if chosen.any() else np.array([_CLEAREST])
        handles.append(
            ax.scatter(
                points[chosen, 0],
                points[chosen, 1],
                s=area,
                marker=marker,
                facecolor=to_rgba_array(color, visible),
                edgecolor=to_rgba_array(EDGE["edgecolor"], visible),
                linewidth=EDGE["linewidth"] * min(1.0, area / 8),
            )
        )
    return handles


def _area(n_samples: int, size: float | None) -> float:
    """Return the area of a marker: smaller than in other figures where clusters would be blots."""
    area = marker_area(n_samples, size)
    return min(area, max(40_000 / n_samples, 2.0)) if size is None else area


def _line_height() -> float:
    """Return the inches that a line of the legend takes."""
    from matplotlib.font_manager import FontProperties

    settings = require_matplotlib().rcParams
    text = FontProperties(size=settings["legend.fontsize"]).get_size_in_points()
    return float(text * (1 + settings["legend.labelspacing"]) / 72)


def _height(n_clusters: int, n_extra: int) -> float:
    """Return the inches of a figure whose legend has its title and a line for each cluster."""
    n_lines = 1 + min(n_clusters, _MOST_LINES) + n_extra
    return max(3.8, _line_height() * n_lines / 0.77)  # of which the axes have 0.77


def _lines(
    ax: Axes, handles: list[PathCollection], clusters: _Clusters, n_extra: int
) -> tuple[list[PathCollection], list[str]]:
    """Return what the legend shows of the clusters: all, or the largest and one line of others."""
    sizes = clusters.sizes
    names = [f"{name} ({count})" for name, count in zip(clusters.names, sizes, strict=True)]
    inches = ax.get_window_extent().height / ax.figure.dpi
    room = round(inches / _line_height()) - 1 - n_extra  # a taller legend would shrink the axes
    room = min(max(room, 2), _MOST_LINES)
    if len(names) <= room:
        return list(handles), names
    largest = np.sort(np.argsort(-sizes, kind="stable")[: room - 1])
    rest = ax.scatter([], [], facecolor="white", **EDGE)
    line = f"{len(names) - len(largest)} others ({sizes.sum() - sizes[largest].sum()})"
    return [*(handles[i] for i in largest), rest], [*(names[i] for i in largest), line]


def _draw_centers(ax: Axes, places: NDArray[Any]) -> PathCollection:
    """Draw a star per cluster, with a white rim that parts it from its points."""
    x, y = places[:, 0], places[:, 1]
    area = float(np.clip(1500 / len(places), *_CENTER_AREAS))
    star: dict[str, Any] = {"marker": "*", "edgecolor": "black", "linewidth": 1.0}
    colors = [class_style(number)[0] for number in range(len(places))]
    ax.scatter(x, y, s=2.2 * area, marker="*", color="white", linewidth=0, zorder=3)
    ax.scatter(x, y, s=area, facecolor=colors, zorder=4, **star)
    return ax.scatter([], [], facecolor="white", **star)
