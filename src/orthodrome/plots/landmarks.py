"""Planar shapes: specimens of each class with their means, and how shapes change along modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_integer, check_positive
from ..spaces import as_points, extrinsic_mean, procrustes_align
from ._classes import check_labels, classes_of
from ._matplotlib import figure_of
from .palette import COLORS, MAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["shape_modes", "shapes"]

_MOST_DRAWN = 300  # specimens of a panel; more are a blot
_MARGIN = 1.12


def shapes(
    X: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    closed: bool = True,
    turn: float = 0.0,
    mean: bool = True,
    n_columns: int = 4,
    figure: Figure | None = None,
    title: str | None = None,
) -> Figure:
    """Draw specimens, one panel for each class, with the mean shape of each.

    All are turned to the mean shape of all, and have centroid size 1. Of a class of more than 300
    every so many-th is drawn; means are of all.

    Parameters
    ----------
    X : array-like of shape (n, k) complex, (n, k, 2) or (n, 2k)
        Landmarks, in the order in which a line goes through them.
    labels : array-like of shape (n,), optional
        Classes.
    closed : bool, default=True
        Join the last landmark to the first.
    turn : float, default=0
        Turn all by so many degrees, anticlockwise.
    mean : bool, default=True
        Draw the extrinsic mean of each class, as a bold line.
    n_columns : int, default=4
        The most panels side by side.
    figure : matplotlib Figure, optional
        Where to draw; a new one if absent.
    title : str, optional
        Title of the figure.

    Returns
    -------
    matplotlib Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome import plots
    >>> rng = np.random.default_rng(0)
    >>> kites = np.array([0, 1 + 1j, 3j, -1 + 1j]) + 0.1 * rng.standard_normal((20, 4))
    >>> fig = plots.shapes(kites, np.repeat(["first", "second"], 10))
    >>> [ax.get_title() for ax in fig.axes]
    ['first (10)', 'second (10)']
    """
    points = as_points(X)
    groups = (
        np.zeros(len(points))
        if labels is None
        else check_labels(labels, len(points), "shapes", "X")
    )
    check_integer(n_columns, "n_columns", "shapes")
    aligned = _turned(procrustes_align(points), turn)
    panels = list(classes_of(groups))
    columns = min(n_columns, len(panels))
    rows = -(-len(panels) // columns)
    figure = figure_of(figure, (2.6 * columns, 2.6 * rows + 0.3))
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    box = _box(aligned, 0.005)
    for ax, (name, chosen, color, _) in zip(axes, panels, strict=False):
        own = aligned[chosen]
        every = -(-len(own) // _MOST_DRAWN)
        opacity = float(np.clip(8 / len(own[::every]), 0.06, 0.5))
        for specimen in own[::every]:
            _draw(ax, specimen, closed, color=color, linewidth=0.7, alpha=opacity)
        if mean:
            center = procrustes_align(extrinsic_mean(own)[None], aligned[chosen].mean(axis=0))[0]
            _draw(ax, center, closed, color="white", linewidth=4.0)  # so that it stands out
            _draw(ax, center, closed, color="#111111", linewidth=1.8, marker="o", markersize=3)
        if labels is not None:
            ax.set_title(f"{name} ({len(own)})", parse_math=False)
        _frame(ax, box)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    if title is not None:
        figure.suptitle(title)
    return figure


def shape_modes(
    model: Any,
    *,
    n_modes: int = 3,
    extent: float = 2.0,
    n_steps: int = 5,
    closed: bool = True,
    turn: float = 0.0,
    figure: Figure | None = None,
    title: str | None = None,
) -> Figure:
    r"""Draw how shapes change along the modes of a decomposition, one row for each.

    From left to right: the pre-images of coordinates from :math:`-e\,s` to :math:`+e\,s` along one
    mode, 0 along the others, with its standard deviation s; behind each the one in the middle.

    Parameters
    ----------
    model : fitted KernelPGA, KernelPCA or RobustKernelPCA
        A decomposition of landmarks, with ``inverse_transform``.
    n_modes : int, default=3
        How many rows; no more than the model has components.
    extent : float, default=2.0
        e, the ends in standard deviations.
    n_steps : int, default=5
        How many shapes in a row, an odd number.
    closed : bool, default=True
        Join the last landmark to the first.
    turn : float, default=0
        Turn all by so many degrees, anticlockwise.
    figure : matplotlib Figure, optional
        Where to draw; a new one if absent.
    title : str, optional
        Title of the figure.

    Returns
    -------
    matplotlib Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome import KernelPGA, plots
    >>> rng = np.random.default_rng(0)
    >>> kites = np.array([0, 1 + 1j, 3j, -1 + 1j]) + 0.2 * rng.standard_normal((30, 4))
    >>> model = KernelPGA(2, "veronese_whitney").fit(kites)
    >>> len(plots.shape_modes(model, n_steps=3).axes)
    6
    """
    check_integer(n_modes, "n_modes", "shape_modes")
    check_integer(n_steps, "n_steps", "shape_modes", minimum=3)
    check_positive(extent, "extent", "shape_modes")
    if n_steps % 2 == 0:
        raise ValueError(f"n_steps of shape_modes must be odd, with a middle; got {n_steps}.")
    embedding = np.asarray(model.embedding_, dtype=np.float64)
    rows = min(n_modes, embedding.shape[1])
    amounts = np.linspace(-extent, extent, n_steps)
    spread = embedding.std(axis=0)
    coordinates = np.zeros((rows, n_steps, embedding.shape[1]))
    for mode in range(rows):
        coordinates[mode, :, mode] = amounts * spread[mode]
    found = model.inverse_transform(coordinates.reshape(rows * n_steps, -1))
    aligned = _turned(procrustes_align(found), turn).reshape(rows, n_steps, -1, 2)
    figure = figure_of(figure, (1.9 * n_steps, 1.9 * rows + 0.3))
    axes = figure.subplots(rows, n_steps, squeeze=False)
    box = _box(aligned, 0.0)
    for mode in range(rows):
        middle = aligned[mode, n_steps // 2]
        for step, ax in enumerate(axes[mode]):
            _draw(ax, middle, closed, color="#9AA5B1", linewidth=1.0)
            if step != n_steps // 2:
                color = COLORS[1] if amounts[step] < 0 else MAIN
                _draw(ax, aligned[mode, step], closed, color=color, linewidth=1.8)
            _frame(ax, box)
            if mode == 0:
                ax.set_title(f"{amounts[step]:+.3g} s" if amounts[step] else "0")
        axes[mode, 0].set_ylabel(f"Mode {mode + 1}{_share(model, mode)}")
    if title is not None:
        figure.suptitle(title)
    return figure


def _share(model: Any, mode: int) -> str:
    ratios = getattr(model, "explained_variance_ratio_", None)
    return "" if ratios is None else f" ({100 * ratios[mode]:.0f} %)"


def _turned(points: NDArray[Any], degrees: float) -> NDArray[Any]:
    angle = np.radians(degrees)
    matrix = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return points @ matrix


def _draw(ax: Axes, points: NDArray[Any], closed: bool, **style: Any) -> None:
    line = np.vstack([points, points[:1]]) if closed else points
    ax.plot(line[:, 0], line[:, 1], solid_joinstyle="round", **style)


def _box(points: NDArray[Any], cut: float) -> tuple[NDArray[Any], float]:
    """Return the middle and half the side of a square that holds all but a few of the points."""
    flat = points.reshape(-1, 2)
    low, high = np.quantile(flat, [cut, 1 - cut], axis=0)
    return (low + high) / 2, _MARGIN * float((high - low).max()) / 2


def _frame(ax: Axes, box: tuple[NDArray[Any], float]) -> None:
    """Give all panels one scale, and neither ticks nor box."""
    (x, y), half = box
    ax.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect="equal")
    ax.set(xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set_visible(False)
