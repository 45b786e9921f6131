"""Scatter plots of embeddings and clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_finite_vector, check_integer, check_numbers
from .._core.types import Array, Floats
from ._classes import EDGE, check_labels, check_points, class_legend, draw_points, marker_area
from ._matplotlib import Axes, Figure, axes_of, set_title
from .palette import class_style

if TYPE_CHECKING:
    from matplotlib.collections import PathCollection

_MAX_LINES = 16  # maximum number of clusters in the legend
_MIN_OPACITY, _MAX_OPACITY = 0.12, 0.85  # for probabilities of 1 / n_clusters and 1
_CENTER_AREAS = (40.0, 150.0)  # smallest and largest area of a star, in points²
_LEGEND_STAR = 80.0


def embedding(
    Z: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    components: tuple[int, int] = (0, 1),
    ratios: ArrayLike | None = None,
    title: str | None = None,
    legend_title: str | None = None,
    size: float | None = None,
) -> Figure:
    """Draw a scatter plot of two coordinates of an embedding.

    Parameters
    ----------
    Z : array-like of shape (n_samples, n_components)
        Coordinates, such as ``KernelPCA(…).fit_transform(X)``.
    labels : array-like of shape (n_samples,), optional
        Classes, drawn in different colours and markers, with a legend. Numbers with more than 20
        different values are shown on a colour scale.
    ax : matplotlib Axes, optional
        Axes to draw into; a new figure if absent.
    components : (int, int), default=(0, 1)
        The columns of Z on the horizontal and the vertical axis.
    ratios : array-like of shape (n_components,), optional
        Fractions of variance (``explained_variance_ratio_``) for the axes' labels.
    title : str, optional
        Title of the axes.
    legend_title : str, optional
        Title of the legend, or label of the colour scale.
    size : float, optional
        Area of a marker in points². The default depends on the number of samples.

    Returns
    -------
    matplotlib Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from orthodrome import KernelPCA, plots
    >>> X, y = load_wine(return_X_y=True)
    >>> fig = plots.embedding(KernelPCA(2).fit_transform(X / X.std(axis=0)), y)
    >>> [text.get_text() for text in fig.axes[0].get_legend().get_texts()]
    ['0', '1', '2']
    """
    check_finite_vector(components, 2, "components", "embedding")
    columns = [check_integer(c, "components", "embedding", minimum=0) for c in components]
    hint = f" Choose components from its columns; got {components!r}."
    array = check_points(Z, "Z", "embedding", max(columns) + 1, hint=hint)
    names = [f"Component {column + 1}" for column in columns]
    if ratios is not None:
        fractions = check_finite_vector(ratios, array.shape[1], "ratios", "embedding")[columns]
        names = [f"{n} ({f:.1%} of the variance)" for n, f in zip(names, fractions, strict=True)]
    groups = None if labels is None else check_labels(labels, len(array), "embedding", "Z")
    ax = axes_of(ax, (4.8, 3.8))
    x, y = array[:, columns].T
    area = marker_area(len(array), size)
    draw_points(
        ax,
        groups,
        legend_title,
        lambda rows, style: ax.scatter(x[rows], y[rows], s=area, alpha=0.85, **style, **EDGE),
    )
    ax.set(xlabel=names[0], ylabel=names[1])
    return set_title(ax, title)


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
    """Draw a scatter plot of clusters and their centres.

    Parameters
    ----------
    Z : array-like of shape (n_samples, d)
        Points, or an embedding of them, d >= 2; the first two columns are drawn.
    labels : array-like of shape (n_samples,)
        The cluster of each point. Clusters get a colour and a marker in the order of their labels;
        up to 100 clusters, no two look the same. The legend lists the clusters with their numbers
        of points. If there are more than 16 clusters, it lists the largest ones.
    centers : array-like of shape (n_clusters, d), optional
        Centres, drawn as stars in the colours of their clusters. If the labels are integers, row j
        is the centre of cluster j, even if it has no points; other labels are in sorted order.
    proba : array-like of shape (n_samples,) or (n_samples, n_clusters), optional
        Probability that each point belongs to its cluster, or to each cluster, as
        ``predict_proba`` returns it. Points fade as it approaches 1 / n_clusters.
    ax : matplotlib Axes, optional
        Axes to draw into; a new figure if absent.
    title : str, optional
        Title of the axes.
    legend_title : str or None, default="cluster (points)"
        Title of the legend.
    xlabel, ylabel : str, default="Coordinate 1", "Coordinate 2"
        Labels of the axes.
    size : float, optional
        Area of a marker in points². The default depends on the number of samples.

    Returns
    -------
    matplotlib Figure
        The figure that holds the axes.

    See Also
    --------
    orthodrome.plots.embedding : Draw any two columns, coloured by class or by value.

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
    points = check_points(Z, "Z", "clusters", 2)
    array = check_labels(labels, len(points), "clusters", "Z", limited=False)
    names, index = np.unique(array, return_inverse=True)
    positions = None
    if centers is not None:
        n_columns = points.shape[1]
        positions = check_points(centers, "centers", "clusters", n_columns, exactly=True)
    if positions is not None and np.issubdtype(array.dtype, np.integer) and names[0] >= 0:
        names, index = np.arange(max(len(positions), names[-1] + 1)), array
    if positions is not None and len(positions) != len(names):
        raise ValueError(
            f"centers of clusters must have one row for each of the {len(names)} clusters; got "
            f"{len(positions)}."
        )
    opacity = _opacity(proba, len(points), len(names))
    sizes = np.bincount(index, minlength=len(names))
    listed = np.sort(np.argsort(-sizes, kind="stable")[:_MAX_LINES])
    n_lines = 3 + len(listed)  # with a title, a centre and a faint point
    ax = axes_of(ax, (4.8, max(3.8, 0.26 * n_lines)))
    drawn = _draw_members(ax, points, index, opacity, len(names), marker_area(len(points), size))
    handles = [drawn[i] for i in listed]
    lines = [f"{names[i]} ({sizes[i]})" for i in listed]
    if proba is not None:
        handles.append(ax.scatter([], [], facecolor="#E4E4E4", edgecolor="#AAAAAA", linewidth=0.5))
        lines.append("faint: unsure")
    if positions is not None:
        handles.append(_draw_centers(ax, positions))
        lines.append("centre")
    legend = class_legend(ax, handles, lines, legend_title)
    if positions is not None:
        legend.legend_handles[-1].set_sizes([_LEGEND_STAR])  # type: ignore[union-attr]  # a scatter
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return set_title(ax, title)


def _opacity(proba: ArrayLike | None, n_samples: int, n_clusters: int) -> Floats:
    """Return the opacity of each point, which grows with the probability of its cluster."""
    if proba is None or n_clusters == 1:
        return np.full(n_samples, _MAX_OPACITY)
    values = check_numbers(proba, "proba", "clusters", ensure_2d=False, dtype=np.float64)
    membership = values if values.ndim == 1 else values.max(axis=1)
    if len(membership) != n_samples:
        raise ValueError(
            f"proba of clusters must have {n_samples} rows, one per row of Z; got shape "
            f"{values.shape}."
        )
    above_chance = np.clip((membership - 1 / n_clusters) / (1 - 1 / n_clusters), 0.0, 1.0)
    return _MIN_OPACITY + (_MAX_OPACITY - _MIN_OPACITY) * above_chance


def _draw_members(
    ax: Axes, points: Array, index: NDArray[np.intp], opacity: Floats, n_clusters: int, area: float
) -> list[PathCollection]:
    from matplotlib.colors import to_rgba_array

    handles = []
    for number in range(n_clusters):
        color, marker = class_style(number)
        chosen = index == number
        # an empty cluster needs a colour for the legend
        visible = opacity[chosen] if chosen.any() else np.array([_MAX_OPACITY])
        style = {
            "facecolor": to_rgba_array(color, visible),
            "edgecolor": to_rgba_array(EDGE["edgecolor"], visible),
            "linewidth": EDGE["linewidth"] * min(1.0, area / 8),
        }
        x, y = points[chosen, :2].T
        handles.append(ax.scatter(x, y, s=area, marker=marker, **style))
    return handles


def _draw_centers(ax: Axes, positions: Array) -> PathCollection:
    """Draw a star with a white rim for each centre."""
    x, y = positions[:, 0], positions[:, 1]
    area = float(np.clip(1500 / len(positions), *_CENTER_AREAS))
    star: dict[str, Any] = {"marker": "*", "edgecolor": "black", "linewidth": 1.0}
    colors = [class_style(number)[0] for number in range(len(positions))]
    ax.scatter(x, y, s=2.2 * area, marker="*", color="white", linewidth=0, zorder=3)
    ax.scatter(x, y, s=area, facecolor=colors, zorder=4, **star)
    return ax.scatter([], [], facecolor="white", **star)
