"""Points on the sphere S², seen from outside."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_flag, check_number, check_numbers
from ..sphere.maps import check_unit_length
from ._classes import (
    EDGE,
    SCALE,
    check_labels,
    draw_classes,
    is_continuous,
    marker_area,
)
from ._matplotlib import axes_of, finished
from .palette import COLORS, MAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["sphere"]

_GRID = 30  # degrees between circles around the mean, and between great circles through it
_FAINT = 0.6  # opacity of what lies on the far side; the sphere's own veil comes on top
_VEIL_OPACITY = 0.5
_GRID_STYLE: dict[str, Any] = {"color": "#A3AEB9", "linewidth": 0.5}
_MEAN_COLOR = "#D50032"
# from back to front
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
    r"""Draw unit vectors of R³ on a sphere, those on the far side faint.

    The first axis is the mean, marked by a star. Around it runs a grid of distances from it and of
    directions, 30° apart. The view is parallel (orthographic), so that any axes can hold it.

    Parameters
    ----------
    points : array-like of shape (n_samples, 3)
        Unit vectors in a frame (mean, v_1, v_2), such as ``KernelPGA(2).sphere_coordinates_``.
        For any other points of S², ``KernelPGA(2, "linear")`` finds their mean and that frame.
    labels : array-like of shape (n_samples,), optional
        Classes or numbers, as in :func:`orthodrome.plots.embedding`.
    geodesics : bool, default=True
        Draw the principal geodesics, the great circles through the mean in the directions v_1 and
        v_2 (the second and the third axis).
    curves : mapping of str to array-like of shape (n, 3), optional
        Closed lines of unit vectors to draw, such as the subspheres of
        :func:`orthodrome.sphere.nested_spheres`, by name.
    tilt : float, default=35
        How far the mean is turned up from the viewer, in degrees: at 0 it faces the viewer, at 90
        it is on top.
    turn : float, default=20
        How far the sphere is turned around the mean, in degrees. With neither tilt nor turn, v_1
        points to the right and v_2 up.
    ax : matplotlib Axes, optional
        Where to draw, plain axes and not 3-D ones; a new figure if absent.
    title : str, optional
        Title of the axes.
    legend_title : str, optional
        Title of the legend of classes, or label of the colour scale.
    size : float, optional
        Area of a marker in points²; by the number of samples if absent.

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
        raise ValueError(f"curves of sphere must be lines by name, a dict; got {type(curves)}.")
    closed = {
        name: _check_points(line, f"curves[{name!r}]") for name, line in (curves or {}).items()
    }
    camera = _camera(_check_angle(tilt, "tilt"), _check_angle(turn, "turn"))
    check_flag(geodesics, "geodesics", "sphere")
    ax = axes_of(ax, (4.8, 4.4))
    if ax.name == "3d":
        raise ValueError("ax of sphere must be ordinary axes: the sphere is drawn as it is seen.")
    _draw_globe(ax, camera)
    lines = _draw_geodesics(ax, camera) if geodesics else {}
    n_colors = 1 if groups is None or is_continuous(groups) else len(np.unique(groups))
    lines |= _draw_curves(ax, camera, closed, n_colors)
    seen = array @ camera.T
    near = seen[:, 2] >= 0
    area = marker_area(len(array), size)
    if groups is None:
        _scatter(ax, seen, near, area, facecolor=MAIN)
    elif is_continuous(groups):
        limits = {"vmin": np.nanmin(groups), "vmax": np.nanmax(groups)}  # alike on both sides
        drawn = _scatter(ax, seen, near, area, groups, cmap=SCALE, **limits)
        ax.figure.colorbar(drawn, ax=ax, label=legend_title, shrink=0.75)
    else:
        legend = draw_classes(
            ax,
            groups,
            legend_title,
            lambda rows, style: _scatter(ax, seen[rows], near[rows], area, **style),
        )
        ax.add_artist(legend).set_clip_on(False)  # else the layout takes no notice of it
    mean = ax.scatter(
        camera[0, 0],
        camera[1, 0],
        s=130,
        marker="*",
        color=_MEAN_COLOR,
        edgecolor="white",
        linewidth=0.8,
        zorder=_MEAN,
    )
    _legend_below(ax, mean, lines, far=bool(np.any(~near)))
    return finished(ax, title)


def _check_points(points: ArrayLike, name: str = "points") -> NDArray[Any]:
    array = check_numbers(points, name, "sphere", dtype=[np.float64, np.float32])
    if array.shape[1] != 3:
        raise ValueError(
            f"{name} of sphere must have shape (n, 3); got {array.shape}. "
            "KernelPGA(2).sphere_coordinates_ has."
        )
    check_unit_length(np.einsum("ij,ij->i", array, array), array.dtype, f"{name} of sphere")
    return array


def _check_angle(degrees: Any, name: str) -> float:
    return math.radians(check_number(degrees, name, "sphere"))


def _camera(tilt: float, turn: float) -> NDArray[np.float64]:
    """Return the rows right, up and toward the viewer, in the frame (mean, v_1, v_2)."""
    mean = np.array([1.0, 0.0, 0.0])
    right = np.array([0.0, np.cos(turn), np.sin(turn)])
    above = np.array([0.0, -np.sin(turn), np.cos(turn)])
    return np.stack(
        [
            right,
            np.sin(tilt) * mean + np.cos(tilt) * above,
            np.cos(tilt) * mean - np.sin(tilt) * above,
        ]
    )


# ---------------------------------------------------------------------------- globe and lines


def _draw_globe(ax: Axes, camera: NDArray[np.float64]) -> None:
    from matplotlib.patches import Circle

    full = np.radians(np.arange(0, 361, 2))
    for distance in np.radians(np.arange(_GRID, 180, _GRID)):
        around = np.stack([np.cos(full), np.sin(full)])
        circle = np.vstack([np.full(len(full), np.cos(distance)), np.sin(distance) * around])
        _draw_line(ax, camera @ circle, _FAR_GRID, _GRID_LINES, **_GRID_STYLE)
    for direction in np.radians(np.arange(0, 180, _GRID)):
        circle = _great_circle(np.array([0.0, np.cos(direction), np.sin(direction)]))
        _draw_line(ax, camera @ circle, _FAR_GRID, _GRID_LINES, **_GRID_STYLE)
    # a veil that makes what is behind it faint, and the outline
    veil = {"color": "#EAF0F6", "alpha": _VEIL_OPACITY, "linewidth": 0, "zorder": _VEIL}
    ax.add_patch(Circle((0, 0), 1, **veil))
    ax.add_patch(Circle((0, 0), 1, fill=False, color="#5B6773", linewidth=1.0, zorder=_GRID_LINES))
    ax.set(xlim=(-1.06, 1.06), ylim=(-1.06, 1.06), aspect="equal")
    ax.set_axis_off()


def _great_circle(direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the great circle from the mean in a direction, points as columns."""
    angles = np.radians(np.arange(0, 361, 2))
    return np.outer([1.0, 0.0, 0.0], np.cos(angles)) + np.outer(direction, np.sin(angles))


def _draw_line(ax: Axes, seen: NDArray[np.float64], far: int, near: int, **style: Any) -> Any:
    """Draw a closed line in two halves, the far one faint; return the near one."""
    x, y, depth = seen
    behind = depth < 0
    # a half goes on to the next point, so that the two meet at the rim
    reach = behind | np.roll(behind, 1) | np.roll(behind, -1)
    ax.plot(np.where(reach, x, np.nan), y, alpha=_FAINT, zorder=far, **style)
    return ax.plot(np.where(behind, np.nan, x), y, zorder=near, **style)[0]


def _draw_geodesics(ax: Axes, camera: NDArray[np.float64]) -> dict[str, Any]:
    return {
        f"geodesic {number}": _draw_line(
            ax,
            camera @ _great_circle(direction),
            _FAR_LINES,
            _LINES,
            color="#222222",
            linewidth=1.4,
            linestyle=dashes,
        )
        for number, direction, dashes in zip((1, 2), np.eye(3)[1:], ("-", "--"), strict=True)
    }


def _draw_curves(
    ax: Axes, camera: NDArray[np.float64], curves: dict[str, NDArray[Any]], first: int
) -> dict[str, Any]:
    """Draw closed lines in the colours that the points leave, from number `first` on."""
    lines = {}
    for number, (name, points) in enumerate(curves.items()):
        closed = np.vstack([points, points[:1]])
        color = COLORS[(first + number) % len(COLORS)]
        lines[name] = _draw_line(
            ax, camera @ closed.T, _FAR_LINES, _LINES, color=color, linewidth=2.2
        )
    return lines


# ---------------------------------------------------------------------------- points


def _scatter(
    ax: Axes,
    seen: NDArray[Any],
    near: NDArray[np.bool_],
    area: float,
    values: NDArray[Any] | None = None,
    **style: Any,
) -> Any:
    """Draw the points of both sides; return those of the near one, opaque, perhaps none."""
    for side, opacity, order in ((~near, _FAINT, _FAR_POINTS), (near, 1.0, _POINTS)):
        drawn = ax.scatter(
            seen[side, 0],
            seen[side, 1],
            s=area,
            c=None if values is None else values[side],
            alpha=opacity,
            zorder=order,
            **style,
            **EDGE,
        )
    return drawn


def _legend_below(ax: Axes, mean: Any, lines: dict[str, Any], *, far: bool) -> None:
    """Explain star, lines and faint points below the sphere, where nothing is drawn."""
    handles = [mean, *lines.values()]
    names = ["mean", *lines]
    if far:
        from matplotlib.lines import Line2D

        behind_the_veil = Line2D([], [], linestyle="", marker="o", markersize=5, color="#444444")
        behind_the_veil.set_alpha(_FAINT * (1 - _VEIL_OPACITY))
        handles.append(behind_the_veil)
        names.append("far side")
    ax.legend(
        handles,
        names,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        borderaxespad=0.2,
        ncols=min(len(handles), 4),
        frameon=False,
        fontsize="small",
        handletextpad=0.4,
        columnspacing=1.2,
        handlelength=1.8,
    )
