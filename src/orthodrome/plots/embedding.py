"""Scatter plots of embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.checks import check_finite_vector, check_integer, check_numbers
from ._classes import (
    EDGE,
    SCALE,
    check_labels,
    draw_classes,
    is_continuous,
    marker_area,
)
from ._matplotlib import axes_of, finished
from .palette import MAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["embedding"]


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
    """Draw two coordinates of an embedding as a scatter plot.

    Parameters
    ----------
    Z : array-like of shape (n_samples, n_components)
        Coordinates, such as ``KernelPCA(…).fit_transform(X)`` or ``KernelPGA(…)``'s.
    labels : array-like of shape (n_samples,), optional
        Classes, each with a colour and a marker of its own and a line in the legend; numbers with
        more than 20 different values are shown on a colour scale.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.
    components : (int, int), default=(0, 1)
        The columns of Z on the horizontal and the vertical axis.
    ratios : array-like of shape (n_components,), optional
        Fractions of variance (``explained_variance_ratio_``) for the axes' labels.
    title : str, optional
        Title of the axes.
    legend_title : str, optional
        Title of the legend, or label of the colour scale.
    size : float, optional
        Area of a marker in points²; by the number of samples if absent.

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
    horizontal, vertical = _check_components(components)
    array = check_numbers(Z, "Z", "embedding", dtype=[np.float64, np.float32])
    if array.shape[1] <= max(horizontal, vertical):
        raise ValueError(
            f"Z must have a column for each of components={components!r} of embedding; "
            f"got shape {array.shape}."
        )
    names = _axis_names((horizontal, vertical), ratios, array.shape[1])
    groups = None if labels is None else check_labels(labels, len(array), "embedding", "Z")
    ax = axes_of(ax, (4.8, 3.8))
    x, y = array[:, horizontal], array[:, vertical]
    area = marker_area(len(array), size)
    if groups is None:
        ax.scatter(x, y, s=area, color=MAIN, alpha=0.8, linewidths=0)
    elif is_continuous(groups):
        points = ax.scatter(x, y, c=groups, cmap=SCALE, s=area, linewidths=0)
        ax.figure.colorbar(points, ax=ax, label="" if legend_title is None else legend_title)
    else:
        draw_classes(
            ax,
            groups,
            legend_title,
            lambda rows, style: ax.scatter(x[rows], y[rows], s=area, alpha=0.85, **style, **EDGE),
        )
    ax.set(xlabel=names[0], ylabel=names[1])
    return finished(ax, title)


def _check_components(components: Any) -> tuple[int, int]:
    if not isinstance(components, tuple | list) or len(components) != 2:
        raise ValueError(f"components of embedding must be two column numbers; got {components!r}.")
    first, second = (check_integer(c, "components", "embedding", minimum=0) for c in components)
    return first, second


def _axis_names(columns: tuple[int, int], ratios: ArrayLike | None, n_columns: int) -> list[str]:
    names = [f"Component {column + 1}" for column in columns]
    if ratios is None:
        return names
    fractions = check_finite_vector(ratios, n_columns, "ratios", "embedding")
    return [
        f"{name} ({fractions[column]:.1%} of the variance)"
        for name, column in zip(names, columns, strict=True)
    ]
