"""Scatter plots of embeddings and clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_finite_vector, check_integer, numbers_expected
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
_ROUNDING = 1e-6  # rounding error of probabilities in float32


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
        of points. If there are more than 16 clusters, the smallest share one line.
    centers : array-like of shape (n_clusters, d), optional
        Centres, drawn as stars in the colours of their clusters. If the labels are integers, row j
        is the centre of cluster j, even if it has no points; other labels are in sorted order.
    proba : array-like of shape (n_samples,) or (n_samples, n_clusters), optional
        Probability that each point belongs to its cluster, or to each cluster in the order of
        `centers`, as ``predict_proba`` returns it. Points fade as it approaches 1 / n_clusters.
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
    positions = None if centers is None else check_points(centers, "centers", "clusters", 2)
    if positions is not None and positions.shape[1] != points.shape[1]:
        raise ValueError(
            f"centers of clusters must have {points.shape[1]} columns, like Z; got "
            f"{positions.shape[1]}. Transform both to the same coordinates."
        )
    probabilities = None if proba is None else _check_probabilities(proba, len(points))
    names, index = _check_clusters(labels, len(points), positions, probabilities)
    n_lines = 3 + min(len(names), _MAX_LINES)  # with a title, a centre and a faint point
    ax = axes_of(ax, (4.8, max(3.8, 0.26 * n_lines)))
    opacity = _opacity(probabilities, index, len(names))
    drawn = _draw_members(ax, points, index, opacity, len(names), marker_area(len(points), size))
    sizes = np.bincount(index, minlength=len(names))
    handles, lines = _legend_lines(ax, drawn, names, sizes)
    if probabilities is not None:
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


# ---------------------------------------------------------------------------- checks


def _check_probabilities(proba: ArrayLike, n_samples: int) -> Array:
    with numbers_expected(proba, "proba", "clusters"):
        values = np.asarray(proba, dtype=np.float64)
    if values.ndim not in (1, 2) or len(values) != n_samples:
        raise ValueError(
            f"proba of clusters must have {n_samples} rows, one per row of Z; got shape "
            f"{values.shape}."
        )
    if not (values.min() >= -_ROUNDING and values.max() <= 1 + _ROUNDING):  # NaN is invalid
        raise ValueError(
            f"proba of clusters must be from 0 to 1; got {values.min():g} to "
            f"{values.max():g}. Divide each row of responsibilities by its sum."
        )
    return values


def _check_clusters(
    labels: ArrayLike, n_samples: int, positions: Array | None, proba: Array | None
) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of the clusters, in the order of centres, and the cluster of each point."""
    array = check_labels(labels, n_samples, "clusters", "Z", limited=False)
    found, index = np.unique(array, return_inverse=True)
    numbers = [] if positions is None else [len(positions)]
    numbers += [] if proba is None or proba.ndim == 1 else [proba.shape[1]]
    if len(set(numbers)) > 1:
        raise ValueError(
            f"centers and proba of clusters must have one entry per cluster; got {numbers[0]} rows "
            f"and {numbers[1]} columns."
        )
    n_clusters = numbers[0] if numbers else len(found)
    is_number = np.issubdtype(array.dtype, np.integer) and found[0] >= 0 and found[-1] < n_clusters
    if numbers and is_number:
        found, index = np.arange(n_clusters), array.astype(np.intp)
    elif len(found) != n_clusters:
        raise ValueError(
            f"labels of clusters must be integers from 0 to {n_clusters - 1}, or have "
            f"{n_clusters} different values, one for each of the centers or columns of proba; got "
            f"{len(found)} values from {found[0]} to {found[-1]}."
        )
    return [str(label) for label in found], index


# ---------------------------------------------------------------------------- drawing


def _opacity(proba: Array | None, index: NDArray[np.intp], n_clusters: int) -> Floats:
    """Return the opacity of each point, which grows with its probability."""
    if proba is None or n_clusters == 1:
        return np.full(len(index), _MAX_OPACITY)
    membership = proba[np.arange(len(index)), index] if proba.ndim == 2 else proba
    above_chance = np.clip((membership - 1 / n_clusters) / (1 - 1 / n_clusters), 0.0, 1.0)
    return _MIN_OPACITY + (_MAX_OPACITY - _MIN_OPACITY) * above_chance.astype(np.float64)


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


def _legend_lines(
    ax: Axes, handles: list[PathCollection], names: list[str], sizes: NDArray[np.intp]
) -> tuple[list[PathCollection], list[str]]:
    """Return the handles and texts of the legend; small clusters may share one line."""
    lines = [f"{name} ({count})" for name, count in zip(names, sizes, strict=True)]
    if len(lines) <= _MAX_LINES:
        return handles, lines
    largest = np.sort(np.argsort(-sizes, kind="stable")[: _MAX_LINES - 1])
    others = f"{len(lines) - len(largest)} others ({sizes.sum() - sizes[largest].sum()})"
    handles = [*(handles[i] for i in largest), ax.scatter([], [], facecolor="white", **EDGE)]
    return handles, [*(lines[i] for i in largest), others]


def _draw_centers(ax: Axes, positions: Array) -> PathCollection:
    """Draw a star with a white rim for each centre."""
    x, y = positions[:, 0], positions[:, 1]
    area = float(np.clip(1500 / len(positions), *_CENTER_AREAS))
    star: dict[str, Any] = {"marker": "*", "edgecolor": "black", "linewidth": 1.0}
    colors = [class_style(number)[0] for number in range(len(positions))]
    ax.scatter(x, y, s=2.2 * area, marker="*", color="white", linewidth=0, zorder=3)
    ax.scatter(x, y, s=area, facecolor=colors, zorder=4, **star)
    return ax.scatter([], [], facecolor="white", **star)
