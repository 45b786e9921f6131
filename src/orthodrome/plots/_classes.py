"""Checks of points and labels, the order of classes, and their legend."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_not_masked, check_numbers, check_positive
from .._core.types import Array, Floats
from ._matplotlib import Axes, Legend, plain_legend

if TYPE_CHECKING:
    from matplotlib.collections import PathCollection


# Okabe and Ito, "Color Universal Design" (2008), in an order that keeps the first few far apart;
# light grey and dark brown follow for the ninth and tenth class.
COLORS = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # bluish green
    "#CC79A7",  # reddish purple
    "#56B4E9",  # sky blue
    "#D55E00",  # vermilion
    "#000000",  # black
    "#F0E442",  # yellow
    "#BBBBBB",  # light grey; deuteranopes confuse darker greys with reddish purple
    "#661100",  # dark brown
)
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "p")
DASHES = ("-", "--", "-.", ":")

MAIN, ACCENT = "#0072B2", "#D55E00"


def class_style(index: int) -> tuple[str, str]:
    """Return the colour and marker of a class; the first hundred pairs differ.

    Parameters
    ----------
    index : int
        The number of the class.

    Returns
    -------
    color, marker : str
        As matplotlib names them.

    Examples
    --------
    >>> class_style(0)
    ('#0072B2', 'o')
    >>> class_style(10)
    ('#0072B2', '^')
    """
    n = len(COLORS)
    return COLORS[index % n], MARKERS[(index + index // n) % n]


def line_style(index: int) -> tuple[str, str]:
    """Return the colour and dashes of a line; the first forty pairs differ.

    Coinciding lines stay visible through the gaps between dashes.

    Examples
    --------
    >>> line_style(1)
    ('#E69F00', '--')
    """
    n = len(COLORS)
    return COLORS[index % n], DASHES[(index + index // n) % len(DASHES)]


_MAX_CLASSES = 20  # maximum number of classes in a legend next to the axes
_LABEL_WIDTH = 16  # maximum number of characters in a line of the legend

# A thin edge separates neighbours and keeps yellow visible on white.
EDGE: dict[str, Any] = {"edgecolor": "#333333", "linewidth": 0.25}
SCALE = "cividis"  # suitable for every kind of colour vision


def check_points(
    values: Any, name: str, owner: str, n_columns: int, *, exactly: bool = False, hint: str = ""
) -> Array:
    """Return points as floats; raise if they have fewer than `n_columns` columns.

    If `exactly`, also raise if they have more.
    """
    points = check_numbers(values, name, owner, dtype=[np.float64, np.float32])
    found = points.shape[1]
    if found < n_columns or (exactly and found > n_columns):
        bound = "" if exactly else "at least "
        raise ValueError(
            f"{name} of {owner} must have {bound}{n_columns} columns; got {found}.{hint}"
        )
    return points


def check_mapping(values: Any, name: str, owner: str) -> None:
    """Raise unless values are a non-empty mapping from names."""
    if not isinstance(values, Mapping) or not values:
        raise ValueError(
            f"{name} of {owner} must be a non-empty mapping, {{name: values}}; got a "
            f"{type(values).__name__}."
        )


def check_row(values: Any, name: str, owner: str, **options: Any) -> Floats:
    """Return a vector of numbers as float64; `options` are passed to ``check_array``."""
    options = {"ensure_2d": False, "allow_nd": True, "dtype": np.float64} | options
    row = check_numbers(values, name, owner, **options)
    if row.ndim != 1:
        raise ValueError(f"{name} of {owner} must be a vector of numbers; got shape {row.shape}.")
    return row


def check_labels(
    labels: ArrayLike, n_samples: int, owner: str, rows: str, *, limited: bool = True
) -> Array:
    """Return one label per row as a sortable array.

    Error messages name `owner` and `rows`, the argument whose rows are labelled. If `limited`,
    raise for more text labels than fit into a legend.
    """
    array = label_array(labels, "labels", owner)
    if array.shape != (n_samples,):
        raise ValueError(
            f"labels of {owner} must have shape ({n_samples},), one per row of {rows}; "
            f"got {array.shape}."
        )
    if limited and not np.issubdtype(array.dtype, np.number):
        n_classes = len(np.unique(array))
        if n_classes > _MAX_CLASSES:
            raise ValueError(
                f"labels of {owner} has {n_classes} different values, but a legend shows at most "
                f"{_MAX_CLASSES}. Merge rare labels, or pass numbers for a colour scale."
            )
    return array


def label_array(labels: Any, name: str, owner: str) -> Array:
    """Return labels as a sortable array."""
    check_not_masked(labels, name, owner)
    try:
        array = np.asarray(labels)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim != 1:
        raise ValueError(
            f"{name} of {owner} must be a vector with one label for each point; got "
            f"{type(labels).__name__}."
        )
    return sortable(array)


def sortable(labels: Array) -> Array:
    """Return labels as text if they are objects, which may have no order."""
    return labels.astype(str) if labels.dtype == object else labels


def is_continuous(labels: Array) -> bool:
    """Return whether labels are numbers with too many values for a legend."""
    return np.issubdtype(labels.dtype, np.number) and len(np.unique(labels)) > _MAX_CLASSES


def classes_of(labels: Array) -> Iterator[tuple[str, NDArray[np.bool_], str, str]]:
    """Yield the name, the mask of rows, the colour and the marker of each class."""
    for index, label in enumerate(sorted_classes(labels)):
        chosen = labels == label if label == label else labels != labels  # NaN is a class
        yield str(label), chosen, *class_style(index)


def sorted_classes(labels: Array) -> Array:
    """Return the different labels in natural order: "cluster 2" before "cluster 10".

    If all texts are numbers, they are ordered by value.
    """
    found = np.unique(labels)
    if found.dtype.kind not in "US":
        return found
    try:
        keys: list[Any] = [float(name) for name in found]
    except ValueError:
        keys = [math.nan]
    if not all(map(math.isfinite, keys)):
        keys = [(re.sub("[0-9]+", lambda run: run[0].zfill(20), name), name) for name in found]
    return found[sorted(range(len(found)), key=keys.__getitem__)]


def draw_points(
    ax: Axes,
    labels: Array | None,
    title: str | None,
    draw: Callable[[Any, dict[str, Any]], PathCollection],
) -> Legend | None:
    """Draw points with ``draw(rows, style)``, coloured by class or value; add a legend or scale."""
    if labels is None:
        draw(slice(None), {"facecolor": MAIN})
        return None
    if is_continuous(labels):
        style = {"c": labels, "cmap": SCALE, "vmin": np.nanmin(labels), "vmax": np.nanmax(labels)}
        ax.figure.colorbar(draw(slice(None), style), ax=ax, label=title, shrink=0.8)
        return None
    classes = list(classes_of(labels))
    handles = [draw(rows, {"marker": m, "facecolor": color}) for _, rows, color, m in classes]
    return class_legend(ax, handles, [name for name, *_ in classes], title)


def marker_area(n_samples: int, size: float | None) -> float:
    """Return the area of a marker in points²: `size`, or a default for this many points."""
    if size is None:
        return float(min(np.clip(3000 / n_samples, 8, 36), max(40_000 / n_samples, 2.0)))
    return check_positive(size, "size", "the markers")


def class_legend(
    ax: Axes, handles: Sequence[PathCollection], names: Sequence[str], title: str | None
) -> Legend:
    """Add a legend of classes to the right of the axes."""
    texts = ["\n".join(textwrap.wrap(name, _LABEL_WIDTH)) or "(empty)" for name in names]
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.3}
    style = {"handletextpad": 0.2, "scatterpoints": 1}
    title = None if title is None else str(title)
    legend = plain_legend(ax, handles, texts, title=title, **place, **style)
    for handle in legend.legend_handles:
        handle.set_sizes([30.0])  # type: ignore[union-attr]  # a scatter
        handle.set_alpha(1.0)  # type: ignore[union-attr]  # a scatter
    return legend
