"""Scatter plots of embeddings."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from .._core.checks import check_integer
from ._matplotlib import axes_of
from .palette import MAIN, class_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["embedding"]

_MAX_CLASSES = 20  # more lines than this do not fit beside the axes
_LABEL_WIDTH = 16  # characters after which a class name goes on in the next line


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
        Coordinates, such as ``KernelPCA(…).fit_transform(X)``.
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
    array = check_array(Z, input_name="Z", dtype=[np.float64, np.float32])
    if array.shape[1] <= max(horizontal, vertical):
        raise ValueError(
            f"Z must have a column for each of components={components!r} of embedding; "
            f"got shape {array.shape}."
        )
    names = _axis_names((horizontal, vertical), ratios, array.shape[1])
    groups = None if labels is None else _check_labels(labels, len(array))
    ax = axes_of(ax, (4.8, 3.8))
    x, y = array[:, horizontal], array[:, vertical]
    area = float(np.clip(3000 / len(array), 8, 36)) if size is None else size
    if groups is None:
        ax.scatter(x, y, s=area, color=MAIN, alpha=0.8, linewidths=0)
    elif _continuous(groups):
        points = ax.scatter(x, y, c=groups, cmap="cividis", s=area, linewidths=0)
        ax.figure.colorbar(points, ax=ax, label=legend_title or "")
    else:
        _draw_classes(ax, x, y, groups, area, legend_title)
    ax.set(xlabel=names[0], ylabel=names[1])
    if title is not None:
        ax.set_title(title)
    return ax.figure  # type: ignore[return-value]  # never a SubFigure


def _check_components(components: Any) -> tuple[int, int]:
    if not isinstance(components, tuple | list) or len(components) != 2:
        raise ValueError(f"components of embedding must be two column numbers; got {components!r}.")
    first, second = (check_integer(c, "components", "embedding", minimum=0) for c in components)
    return first, second


def _axis_names(columns: tuple[int, int], ratios: ArrayLike | None, n_columns: int) -> list[str]:
    names = [f"Component {column + 1}" for column in columns]
    if ratios is None:
        return names
    fractions = np.asarray(ratios, dtype=np.float64)
    if fractions.shape != (n_columns,):
        raise ValueError(
            f"ratios of embedding must have one entry per column of Z, {n_columns}; "
            f"got shape {fractions.shape}."
        )
    return [
        f"{name} ({fractions[column]:.1%} of the variance)"
        for name, column in zip(names, columns, strict=True)
    ]


def _check_labels(labels: ArrayLike, n_samples: int) -> NDArray[Any]:
    array = np.asarray(labels)
    if array.shape != (n_samples,):
        raise ValueError(
            f"labels of embedding must have shape ({n_samples},), one per row of Z; "
            f"got {array.shape}."
        )
    if array.dtype == object:  # None, strings and numbers side by side have no order
        array = array.astype(str)
    if len(np.unique(array)) > _MAX_CLASSES and not np.issubdtype(array.dtype, np.number):
        raise ValueError(
            f"labels of embedding has {len(np.unique(array))} different values and a legend holds "
            f"{_MAX_CLASSES}: merge the rare ones, or pass numbers for a colour scale."
        )
    return array


def _continuous(labels: NDArray[Any]) -> bool:
    return np.issubdtype(labels.dtype, np.number) and len(np.unique(labels)) > _MAX_CLASSES


def _draw_classes(
    ax: Axes,
    x: NDArray[Any],
    y: NDArray[Any],
    labels: NDArray[Any],
    area: float,
    legend_title: str | None,
) -> None:
    classes = np.unique(labels)
    handles = []
    for index, label in enumerate(classes):
        color, marker = class_style(index)
        chosen = labels == label if label == label else labels != labels  # NaN is a class too
        handles.append(
            ax.scatter(
                x[chosen],
                y[chosen],
                s=area,
                marker=marker,
                facecolor=color,
                # a thin edge keeps yellow visible on white and neighbours apart
                edgecolor="#333333",
                linewidth=0.25,
                alpha=0.85,
            )
        )
    legend = ax.legend(
        handles,
        [" "] * len(handles),  # the real names come below, where they cannot be mathematics
        title=legend_title,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.3,
        frameon=False,
        handletextpad=0.2,
        scatterpoints=1,
    )
    for text, label in zip(legend.get_texts(), classes, strict=True):
        text.set_parse_math(False)
        text.set_text("\n".join(textwrap.wrap(str(label), _LABEL_WIDTH)) or "(empty)")
    for handle in legend.legend_handles:
        handle.set_sizes([30.0])  # type: ignore[union-attr]  # of a scatter
        handle.set_alpha(1.0)  # type: ignore[union-attr]  # of a scatter
