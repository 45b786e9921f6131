"""Scatter plots of embeddings."""

from __future__ import annotations

from numpy.typing import ArrayLike

from .._core.checks import check_finite_vector, check_integer
from ._classes import (
    EDGE,
    SCALE,
    check_labels,
    check_points,
    draw_classes,
    is_continuous,
    marker_area,
)
from ._matplotlib import Axes, Figure, axes_of, set_title
from .palette import MAIN


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
        Area of a marker in points²; depends on the number of samples if absent.

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
    if not isinstance(components, tuple | list) or len(components) != 2:
        raise ValueError(f"components of embedding must be two column numbers; got {components!r}.")
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
    return set_title(ax, title)
