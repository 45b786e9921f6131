"""Confusion matrices."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from .._core.checks import check_choice
from .._core.types import Array
from ._classes import label_array
from ._matplotlib import Axes, Figure, axes_of, set_title

# One hue from light to dark, suitable for every kind of colour vision.
_SCALE = "Blues"
_MAX_PERCENT = 8  # maximum number of classes for counts and percentages in the cells
_MAX_COUNTS = 40  # maximum number of classes for counts in the cells
_DARK = 0.725  # position on the scale with equal contrast to black and white
_FRACTION_LABELS = {
    "true": "Fraction of the true class",
    "pred": "Fraction of the predicted class",
    "all": "Fraction of all points",
}


def confusion(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    normalize: str | None = "true",
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    r"""Draw a confusion matrix.

    Rows are true classes and columns predicted ones; the diagonal, with the correct predictions,
    is outlined. Cells show counts and, for up to eight classes, percentages; zeros are omitted.
    Colour shows the fraction.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes.
    y_pred : array-like of shape (n_samples,)
        Predicted classes.
    labels : array-like of shape (n_classes,), optional
        All classes, in the order in which they are drawn; sorted if absent.
    normalize : {"true", "pred", "all"} or None, default="true"
        Denominator of the fractions: the points of the true class (the diagonal shows recall), of
        the predicted class (precision), or all points. None shows counts only.
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
    check_choice(normalize, (*_FRACTION_LABELS, None), "normalize", "confusion")
    true = column_or_1d(label_array(y_true, "y_true", "confusion"))
    predicted = column_or_1d(label_array(y_pred, "y_pred", "confusion"))
    if len(true) != len(predicted) or not len(true):
        raise ValueError(
            "y_true and y_pred of confusion must have the same length, at least 1; "
            f"got {len(true)} and {len(predicted)}."
        )
    classes = _check_classes(labels, true, predicted)
    counts = _counts(true, predicted, classes)
    values = counts.astype(np.float64)
    if normalize is not None:
        axis = {"true": 1, "pred": 0, "all": None}[normalize]
        values /= np.maximum(values.sum(axis=axis, keepdims=True), 1.0)  # classes without points
    n = len(classes)
    cell = 0.62 if n <= _MAX_PERCENT else 0.34 if n <= _MAX_COUNTS else 0.2
    ax = axes_of(ax, (max(n * cell, 1.6) + 2.4, max(n * cell, 1.6) + 1.3))
    image = ax.imshow(values, cmap=_SCALE, vmin=0.0, vmax=1.0 if normalize else None)
    if n <= _MAX_COUNTS:
        _write_cells(ax, image, counts, percentages=normalize is not None and n <= _MAX_PERCENT)
    _outline_diagonal(ax, n)
    _name_classes(ax, [str(name) for name in classes])
    label = _FRACTION_LABELS.get(normalize or "", "Points")
    ax.figure.colorbar(image, ax=ax, label=label, shrink=0.8, aspect=25)
    return set_title(ax, title)


def _check_classes(labels: ArrayLike | None, true: Array, predicted: Array) -> Array:
    classes = true[:0] if labels is None else label_array(labels, "labels", "confusion")
    for name, array in (("y_pred", predicted), ("labels", classes)):
        if _kind(array) != _kind(true) and array.size:
            raise ValueError(
                f"y_true and {name} of confusion must both be text, or both numbers, or both "
                f"dates; got {true.dtype} and {array.dtype}."
            )
    found = np.union1d(true, predicted)
    if labels is None:
        return found
    if (
        classes.ndim != 1
        or len(np.unique(classes)) < len(classes)
        or not np.isin(found, classes).all()
    ):
        unknown = np.setdiff1d(found, classes).tolist()
        raise ValueError(
            "labels of confusion must be a list of different classes, with every class of y_true "
            f"and y_pred; missing: {unknown}."
        )
    return classes


def _kind(labels: Array) -> str:
    """Return the kind of labels; labels of the same kind can be sorted together."""
    return labels.dtype.kind if labels.dtype.kind in "USMm" else "number"


def _counts(true: Array, predicted: Array, classes: Array) -> NDArray[np.intp]:
    """Return the confusion matrix, without scikit-learn's warning about a single class."""
    order = np.argsort(classes)
    rows, columns = (order[np.searchsorted(classes, y, sorter=order)] for y in (true, predicted))
    counts = np.zeros((len(classes), len(classes)), dtype=np.intp)
    np.add.at(counts, (rows, columns), 1)
    return counts


def _write_cells(ax: Axes, image: Any, counts: NDArray[np.intp], *, percentages: bool) -> None:
    values = np.asarray(image.get_array())
    dark = image.norm(values) > _DARK
    digits = len(str(counts.max()))
    # in points, to fit the cell
    size = 9.5 if len(counts) <= _MAX_PERCENT else min(7.5, 28.0 / digits)
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size}
    for row, column in np.argwhere(counts):
        fraction = "\n" + _percent(values[row, column]) if percentages else ""
        color = "white" if dark[row, column] else "black"
        ax.text(column, row, f"{counts[row, column]}{fraction}", color=color, **style)


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
