"""Confusion matrices."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.types import Array, Floats
from ._classes import label_array
from ._matplotlib import Axes, Figure, axes_of, set_title

# One hue from light to dark, suitable for every kind of colour vision.
_SCALE = "Blues"
_MAX_PERCENT = 8  # maximum number of classes for counts and percentages in the cells
_MAX_COUNTS = 40  # maximum number of classes for counts in the cells
_DARK = 0.725  # position on the scale with equal contrast to black and white


def confusion(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    r"""Draw a confusion matrix.

    Rows are true classes and columns predicted ones; the diagonal, with the correct predictions,
    is outlined. Cells show counts and, for up to eight classes, percentages; zeros are omitted.
    Colours and percentages show the fraction of the true class; on the diagonal it is the recall.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes.
    y_pred : array-like of shape (n_samples,)
        Predicted classes.
    labels : array-like of shape (n_classes,), optional
        All classes, in the order in which they are drawn; sorted if absent.
    ax : matplotlib Axes, optional
        Axes to draw into; a new figure, larger for more classes, if absent.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from orthodrome import plots
    >>> fig = plots.confusion(["cat", "cat", "dog"], ["cat", "dog", "dog"])
    >>> [text.get_text() for text in fig.axes[0].texts]
    ['1\n50%', '1\n50%', '1\n100%']
    """
    true, predicted = (
        label_array(y, name, "confusion") for y, name in ((y_true, "y_true"), (y_pred, "y_pred"))
    )
    if len(true) != len(predicted) or not len(true):
        raise ValueError(
            "y_true and y_pred of confusion must have the same length, at least 1; "
            f"got {len(true)} and {len(predicted)}."
        )
    classes = _check_classes(labels, true, predicted)
    counts = _counts(true, predicted, classes)
    fractions = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)  # of classes with points
    n = len(classes)
    cell = 0.62 if n <= _MAX_PERCENT else 0.34 if n <= _MAX_COUNTS else 0.2
    ax = axes_of(ax, (max(n * cell, 1.6) + 2.4, max(n * cell, 1.6) + 1.3))
    image = ax.imshow(fractions, cmap=_SCALE, vmin=0.0, vmax=1.0)
    if n <= _MAX_COUNTS:
        _write_cells(ax, fractions, counts)
    _outline_diagonal(ax, n)
    _name_classes(ax, [str(name) for name in classes])
    ax.figure.colorbar(image, ax=ax, label="Fraction of the true class", shrink=0.8, aspect=25)
    return set_title(ax, title)


def _check_classes(labels: ArrayLike | None, true: Array, predicted: Array) -> Array:
    classes = true[:0] if labels is None else label_array(labels, "labels", "confusion")
    found = np.union1d(true, predicted)
    if labels is None:
        return found
    if len(np.unique(classes)) < len(classes) or not np.isin(found, classes).all():
        unknown = np.setdiff1d(found, classes).tolist()
        raise ValueError(
            "labels of confusion must be a list of different classes, with every class of y_true "
            f"and y_pred; missing: {unknown}."
        )
    return classes


def _counts(true: Array, predicted: Array, classes: Array) -> NDArray[np.intp]:
    """Return the confusion matrix, without scikit-learn's warning about a single class."""
    order = np.argsort(classes)
    rows, columns = (order[np.searchsorted(classes, y, sorter=order)] for y in (true, predicted))
    counts = np.zeros((len(classes), len(classes)), dtype=np.intp)
    np.add.at(counts, (rows, columns), 1)
    return counts


def _write_cells(ax: Axes, fractions: Floats, counts: NDArray[np.intp]) -> None:
    """Write the counts into the cells and, for few classes, the percentages."""
    few = len(counts) <= _MAX_PERCENT
    size = 9.5 if few else min(7.5, 28.0 / len(str(counts.max())))  # in points, to fit the cell
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size}
    for row, column in np.argwhere(counts):
        fraction = float(fractions[row, column])
        percentage = "\n" + _percent(fraction) if few else ""
        # not quite white and black, which reports replace on a dark page
        color = "#fefefe" if fraction > _DARK else "#010101"
        ax.text(column, row, f"{counts[row, column]}{percentage}", color=color, **style)


def _percent(fraction: float) -> str:
    """Return a whole percentage, but never 0% or 100% for a fraction in between."""
    if 0 < fraction < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= fraction < 1 else f"{fraction:.0%}"


def _outline_diagonal(ax: Axes, n: int) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    cells = [Rectangle((i - 0.5, i - 0.5), 1, 1) for i in range(n)]
    style: dict[str, Any] = {"facecolor": "none", "edgecolor": "#666666", "linewidth": 0.8}
    ax.add_collection(PatchCollection(cells, **style))


def _name_classes(ax: Axes, names: list[str]) -> None:
    """Label both axes with class names, wrapped or shortened to fit."""
    few = len(names) <= _MAX_PERCENT
    width, max_lines = (16, 3) if few else (22, 1)
    rows = [textwrap.wrap(name, width, max_lines=max_lines, placeholder="…") for name in names]
    shown = ["\n".join(lines) or "(empty)" for lines in rows]
    positions = np.arange(len(names))
    upright = few and max(len(line) for name in shown for line in name.split("\n")) <= 7
    size = "medium" if few else "small" if len(names) <= _MAX_COUNTS else "xx-small"
    ax.set_xticks(positions, [" "] * len(names), rotation=0 if upright else 90, fontsize=size)
    ax.set_yticks(positions, [" "] * len(names), fontsize=size)
    ax.tick_params(length=0)
    for axis in (ax.xaxis, ax.yaxis):
        for tick in axis.get_major_ticks():
            tick.label1.set_parse_math(False)
        axis.set_ticklabels(shown)  # after set_parse_math, so that names are shown literally
    ax.spines[:].set_visible(False)
    ax.set(xlabel="Predicted class", ylabel="True class")
