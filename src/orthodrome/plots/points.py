"""Scatter plots: embeddings, clusters, and points on the sphere S² in orthographic projection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import (
    check_finite_vector,
    check_flag,
    check_integer,
    check_number,
    check_numbers,
)
from .._core.types import Array, Floats
from .._core.unit import check_unit_length
from ._classes import (
    COLORS,
    EDGE,
    check_labels,
    check_points,
    class_legend,
    class_style,
    draw_points,
    is_continuous,
    marker_area,
)
from ._matplotlib import Axes, Figure, axes_of, plain_legend, set_title

if TYPE_CHECKING:
    from matplotlib.collections import PathCollection


_MAX_LISTED = 30  # maximum number of clusters in the legend
_MIN_OPACITY, _MAX_OPACITY = 0.12, 0.85  # for probabilities of 1 / n_clusters and 1
_CENTER_AREAS = (40.0, 150.0)  # smallest and largest area of a star, in points²


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
        of points, at most the first 30.
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
        if np.issubdtype(array.dtype, np.integer) and names[0] >= 0:  # a cluster may be empty
            names, index = np.arange(max(len(positions), names[-1] + 1)), array
        if len(positions) != len(names):
            raise ValueError(
                f"centers of clusters must have one row for each of the {len(names)} clusters; "
                f"got {len(positions)}."
            )
    opacity = _opacity(proba, len(points), len(names))
    ax = axes_of(ax, (4.8, max(3.8, 0.26 * (min(len(names), _MAX_LISTED) + 3))))
    area, handles, lines = marker_area(len(points), size), [], []
    for number, name in enumerate(names):
        rows, (color, marker) = index == number, class_style(number)
        x, y = points[rows, :2].T
        style = _faded(color, opacity[rows])
        handles.append(ax.scatter(x, y, s=area, marker=marker, **style))
        lines.append(f"{name} ({rows.sum()})")
    handles, lines = handles[:_MAX_LISTED], lines[:_MAX_LISTED]
    if proba is not None:
        handles.append(ax.scatter([], [], facecolor="#E4E4E4", edgecolor="#AAAAAA", linewidth=0.5))
        lines.append("faint: unsure")
    if positions is not None:
        handles.append(_draw_centers(ax, positions))
        lines.append("centre")
    class_legend(ax, handles, lines, legend_title)
    ax.set(xlabel="Coordinate 1", ylabel="Coordinate 2")
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


def _faded(color: str, opacity: Floats) -> dict[str, Any]:
    """Return the colours of points; an empty cluster needs one for the legend."""
    from matplotlib.colors import to_rgba_array

    visible = opacity if len(opacity) else np.array([_MAX_OPACITY])
    edge = to_rgba_array(EDGE["edgecolor"], visible)
    return EDGE | {"facecolor": to_rgba_array(color, visible), "edgecolor": edge}


def _draw_centers(ax: Axes, positions: Array) -> PathCollection:
    """Draw a star with a white rim for each centre."""
    x, y = positions[:, 0], positions[:, 1]
    area = float(np.clip(1500 / len(positions), *_CENTER_AREAS))
    star: dict[str, Any] = {"marker": "*", "edgecolor": "black", "linewidth": 1.0}
    colors = [class_style(number)[0] for number in range(len(positions))]
    ax.scatter(x, y, s=2.2 * area, marker="*", color="white", linewidth=0, zorder=3)
    ax.scatter(x, y, s=area, facecolor=colors, zorder=4, **star)
    return ax.scatter([], [], facecolor="white", **star)


_GRID = 30  # degrees between grid lines
_FAINT = 0.6  # opacity of points and lines on the far side
_VEIL_OPACITY = 0.5  # of a disc in front of the far side, which makes it fainter still
_GRID_STYLE: dict[str, Any] = {"color": "#A3AEB9", "linewidth": 0.5}
_MEAN_STYLE: dict[str, Any] = {"marker": "*", "color": "#D50032", "edgecolor": "white"}
_ANGLES = np.radians(np.arange(0, 361, 2))
# z-orders from back to front
_FAR_GRID, _FAR_LINES, _FAR_POINTS, _VEIL, _GRID_LINES, _LINES, _POINTS, _MEAN = range(1, 9)


def sphere(
    points: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    geodesics: bool = True,
    curves: Mapping[str, ArrayLike] | None = None,
    tilt: float = 35.0,
    turn: float = 20.0,
    ax: Axes | None = None,
    title: str | None = None,
    legend_title: str | None = None,
    size: float | None = None,
) -> Figure:
    r"""Draw unit vectors of R³ on a sphere.

    A star marks the mean, which is the first axis. A grid shows distances and directions from the
    mean in steps of 30°. Points on the far side are faint. The projection is orthographic, in 2-D
    axes.

    Parameters
    ----------
    points : array-like of shape (n_samples, 3)
        Unit vectors in a frame (mean, v_1, v_2), such as ``KernelPGA(2).sphere_coordinates_``.
        For other points on S², ``KernelPGA(2, "linear")`` finds the mean and the frame.
    labels : array-like of shape (n_samples,), optional
        Classes or numbers, as in :func:`orthodrome.plots.embedding`.
    geodesics : bool, default=True
        Draw the principal geodesics: the great circles through the mean in the directions v_1
        and v_2 (the second and the third axis).
    curves : mapping of str to array-like of shape (n, 3), optional
        Closed lines of unit vectors by name, such as the subspheres of
        :func:`orthodrome.sphere.nested_spheres`.
    tilt : float, default=35
        Angle in degrees between the mean and the direction of the viewer: at 0 the mean is in the
        middle, at 90 on top.
    turn : float, default=20
        Rotation around the mean in degrees. With tilt=0 and turn=0, v_1 points to the right and v_2
        up.
    ax : matplotlib Axes, optional
        2-D axes to draw into; a new figure if absent.
    title : str, optional
        Title of the axes.
    legend_title : str, optional
        Title of the legend of classes, or label of the colour scale.
    size : float, optional
        Area of a marker in points²; depends on the number of samples if absent.

    Returns
    -------
    matplotlib Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from orthodrome import KernelPGA, plots
    >>> from orthodrome.datasets import make_von_mises_fisher
    >>> X = make_von_mises_fisher(100, n_dimensions=50, concentration=10, random_state=0)
    >>> model = KernelPGA(2, "linear").fit(X)
    >>> fig = plots.sphere(model.sphere_coordinates_)
    >>> [text.get_text() for text in fig.axes[0].get_legend().get_texts()]
    ['mean', 'geodesic 1', 'geodesic 2']
    """
    array = _check_points(points)
    groups = None if labels is None else check_labels(labels, len(array), "sphere", "points")
    if curves is not None and not isinstance(curves, Mapping):
        raise ValueError(
            f"curves of sphere must be a mapping, {{name: line}}; got a {type(curves).__name__}."
        )
    lines = {
        name: _check_points(each, f"curves[{name!r}]") for name, each in (curves or {}).items()
    }
    angles = [check_number(tilt, "tilt", "sphere"), check_number(turn, "turn", "sphere")]
    camera = _camera(*np.radians(angles))
    check_flag(geodesics, "geodesics", "sphere")
    ax = axes_of(ax, (4.8, 4.4))
    if ax.name == "3d":
        raise ValueError("ax of sphere must be 2-D axes.")
    _draw_globe(ax, camera)
    n_colors = 1 if groups is None or is_continuous(groups) else len(np.unique(groups))
    drawn = _draw_lines(ax, camera, lines, n_colors, geodesics=geodesics)
    view = array @ camera.T
    near = view[:, 2] >= 0
    area = marker_area(len(array), size)
    legend = draw_points(
        ax,
        groups,
        legend_title,
        lambda rows, style: _scatter(ax, view[rows], near[rows], area, **style),
    )
    if legend is not None:
        ax.add_artist(legend).set_clip_on(False)  # so that the layout includes it
    x, y, _ = camera[:, 0]
    mean = ax.scatter(x, y, s=130, linewidth=0.8, zorder=_MEAN, **_MEAN_STYLE)
    _legend_below(ax, [mean, *drawn.values()], ["mean", *drawn], far=bool(np.any(~near)))
    return set_title(ax, title)


def _check_points(points: ArrayLike, name: str = "points") -> Array:
    hint = " Use KernelPGA(2).sphere_coordinates_."
    array = check_points(points, name, "sphere", 3, exactly=True, hint=hint)
    check_unit_length(np.einsum("ij,ij->i", array, array), array.dtype, f"{name} of sphere")
    return array


def _camera(tilt: float, turn: float) -> Floats:
    """Return the directions right, up and toward the viewer in the frame (mean, v_1, v_2)."""
    mean = np.array([1.0, 0.0, 0.0])
    right = np.array([0.0, np.cos(turn), np.sin(turn)])
    above = np.array([0.0, -np.sin(turn), np.cos(turn)])
    up = np.sin(tilt) * mean + np.cos(tilt) * above
    return np.stack([right, up, np.cos(tilt) * mean - np.sin(tilt) * above])


# ---------------------------------------------------------------------------- globe and lines


def _draw_globe(ax: Axes, camera: Floats) -> None:
    from matplotlib.patches import Circle

    for distance in np.radians(np.arange(_GRID, 180, _GRID)):
        around = np.sin(distance) * np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])
        circle = np.vstack([np.full(len(_ANGLES), np.cos(distance)), around])
        _draw_line(ax, camera @ circle, _FAR_GRID, _GRID_LINES, **_GRID_STYLE)
    for direction in np.radians(np.arange(0, 180, _GRID)):
        circle = _great_circle(np.array([0.0, np.cos(direction), np.sin(direction)]))
        _draw_line(ax, camera @ circle, _FAR_GRID, _GRID_LINES, **_GRID_STYLE)
    veil = {"color": "#EAF0F6", "alpha": _VEIL_OPACITY, "linewidth": 0, "zorder": _VEIL}
    ax.add_patch(Circle((0, 0), 1, **veil))  # makes the far side faint
    ax.add_patch(Circle((0, 0), 1, fill=False, color="#5B6773", linewidth=1.0, zorder=_GRID_LINES))
    ax.set(xlim=(-1.06, 1.06), ylim=(-1.06, 1.06), aspect="equal")
    ax.set_axis_off()


def _great_circle(direction: Floats) -> Floats:
    """Return the great circle through the mean in a direction, with points as columns."""
    return np.outer([1.0, 0.0, 0.0], np.cos(_ANGLES)) + np.outer(direction, np.sin(_ANGLES))


def _draw_line(ax: Axes, view: Floats, far: int, near: int, **style: Any) -> Any:
    """Draw a closed line, with its far part faint; return the artist of the near part."""
    x, y, depth = view
    behind = depth < 0
    # the far part includes the adjacent points, so that the two parts meet at the rim
    extended = behind | np.roll(behind, 1) | np.roll(behind, -1)
    ax.plot(np.where(extended, x, np.nan), y, alpha=_FAINT, zorder=far, **style)
    return ax.plot(np.where(behind, np.nan, x), y, zorder=near, **style)[0]


def _draw_lines(
    ax: Axes, camera: Floats, curves: dict[str, Array], first_color: int, *, geodesics: bool
) -> dict[str, Any]:
    """Draw geodesics and curves; return them by name. Curve i has the colour `first_color` + i."""
    lines = {}
    for number, dashes in ((1, "-"), (2, "--")) if geodesics else ():
        style = {"color": "#222222", "linewidth": 1.4, "linestyle": dashes}
        line = camera @ _great_circle(np.eye(3)[number])
        lines[f"geodesic {number}"] = _draw_line(ax, line, _FAR_LINES, _LINES, **style)
    for number, (name, points) in enumerate(curves.items(), start=first_color):
        style = {"color": COLORS[number % len(COLORS)], "linewidth": 2.2}
        line = camera @ np.vstack([points, points[:1]]).T
        lines[name] = _draw_line(ax, line, _FAR_LINES, _LINES, **style)
    return lines


# ---------------------------------------------------------------------------- points


def _scatter(
    ax: Axes, view: Array, near: NDArray[np.bool_], area: float, c: Any = None, **style: Any
) -> Any:
    """Draw the points of both sides; return the scatter of the near side, which may be empty."""
    for side, opacity, order in ((~near, _FAINT, _FAR_POINTS), (near, 1.0, _POINTS)):
        values = None if c is None else c[side]
        options = {"s": area, "c": values, "alpha": opacity, "zorder": order, **style, **EDGE}
        drawn = ax.scatter(view[side, 0], view[side, 1], **options)
    return drawn


def _legend_below(ax: Axes, handles: list[Any], names: list[str], *, far: bool) -> None:
    """Add a legend of mean, lines and faint points below the sphere."""
    if far:
        from matplotlib.lines import Line2D

        faint = Line2D([], [], linestyle="", marker="o", markersize=5, color="#444444")
        faint.set_alpha(_FAINT * (1 - _VEIL_OPACITY))
        handles, names = [*handles, faint], [*names, "far side"]
    style = {"fontsize": "small", "handletextpad": 0.4, "columnspacing": 1.2, "handlelength": 1.8}
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "borderaxespad": 0.2}
    plain_legend(ax, handles, names, ncols=min(len(handles), 4), **place, **style)
