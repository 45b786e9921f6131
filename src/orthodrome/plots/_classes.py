"""Labels of points: which are classes and which a scale, and the legend that explains them."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_positive, refuse_masked
from ._matplotlib import plain_texts
from .palette import class_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.legend import Legend

__all__ = [
    "EDGE",
    "SCALE",
    "check_labels",
    "class_legend",
    "classes_of",
    "draw_classes",
    "is_continuous",
    "label_array",
    "marker_area",
    "sorted_classes",
]

_MAX_CLASSES = 20  # more lines than this do not fit beside the axes
_LABEL_WIDTH = 16  # characters after which a class name goes on in the next line

# A thin edge keeps yellow visible on white and neighbours apart.
EDGE: dict[str, Any] = {"edgecolor": "#333333", "linewidth": 0.25}
SCALE = "cividis"  # a colour scale that is the same to all colour visions


def check_labels(labels: ArrayLike, n_samples: int, owner: str, rows: str) -> NDArray[Any]:
    """Return one label per row as an array that can be sorted, or raise.

    `owner` is the function and `rows` the argument whose rows are labelled, for the message.
    """
    array = label_array(labels, "labels", owner)
    if array.shape != (n_samples,):
        raise ValueError(
            f"labels of {owner} must have shape ({n_samples},), one per row of {rows}; "
            f"got {array.shape}."
        )
    if len(np.unique(array)) > _MAX_CLASSES and not np.issubdtype(array.dtype, np.number):
        raise ValueError(
            f"labels of {owner} has {len(np.unique(array))} different values and a legend holds "
            f"{_MAX_CLASSES}: merge the rare ones, or pass numbers for a colour scale."
        )
    return array


def label_array(labels: Any, name: str, owner: str) -> NDArray[Any]:
    """Return labels as an array that can be sorted, or raise."""
    refuse_masked(labels, name, owner)
    if scipy.sparse.issparse(labels):
        raise ValueError(f"{name} of {owner} must be dense; call toarray() on the sparse ones.")
    try:
        array = np.asarray(labels)
    except ValueError:
        raise ValueError(
            f"{name} of {owner} must be one label for each point; got lists of unlike lengths."
        ) from None
    # None, strings and numbers side by side have no order
    return array.astype(str) if array.dtype == object else array


def is_continuous(labels: NDArray[Any]) -> bool:
    """Whether labels are numbers with too many values for a legend."""
    return np.issubdtype(labels.dtype, np.number) and len(np.unique(labels)) > _MAX_CLASSES


def classes_of(labels: NDArray[Any]) -> Iterator[tuple[str, NDArray[np.bool_], str, str]]:
    """Yield each class: its name, which rows are in it, its colour and its marker."""
    for index, label in enumerate(sorted_classes(labels)):
        chosen = labels == label if label == label else labels != labels  # NaN is a class too
        yield str(label), chosen, *class_style(index)


def sorted_classes(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the different labels in the order of a legend: "cluster 2" before "cluster 10".

    Numbers, also those that are written as text, stand by their value; in other text the digits
    count as numbers.
    """
    found = np.unique(labels)
    if found.dtype.kind not in "US":
        return found
    names = [str(name) for name in found]
    return found[sorted(range(len(names)), key=_natural_keys(names).__getitem__)]


def _natural_keys(names: Sequence[str]) -> list[Any]:
    try:
        values = [float(name) for name in names]
    except ValueError:
        values = [math.nan]
    if all(map(math.isfinite, values)):
        return values
    return [([_natural(part) for part in re.split("([0-9]+)", name)], name) for name in names]


def _natural(part: str) -> tuple[int, str]:
    """Return the key of a stretch of text or of digits, which take turns in every name."""
    if not re.fullmatch("[0-9]+", part):
        return 0, part
    digits = part.lstrip("0")  # by length, then as text: int() refuses thousands of digits
    return len(digits), digits


def draw_classes(
    ax: Axes,
    labels: NDArray[Any],
    title: str | None,
    draw: Callable[[NDArray[np.bool_], dict[str, Any]], PathCollection],
) -> Legend:
    """Draw the points of each class by `draw`, which takes the rows and a style; add a legend."""
    handles, names = [], []
    for name, chosen, color, marker in classes_of(labels):
        handles.append(draw(chosen, {"marker": marker, "facecolor": color}))
        names.append(name)
    return class_legend(ax, handles, names, title)


def marker_area(n_samples: int, size: float | None) -> float:
    """Return the area of a marker in points²: `size`, or what suits so many points."""
    if size is None:
        return float(np.clip(3000 / n_samples, 8, 36))
    return check_positive(size, "size", "the markers")


def class_legend(
    ax: Axes, handles: Sequence[PathCollection], names: Sequence[str], title: str | None
) -> Legend:
    """Set the names of classes beside the axes, where they cover no point."""
    legend = ax.legend(
        handles,
        [" "] * len(handles),  # the names follow, as plain text
        title=None if title is None else str(title),
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.3,
        frameon=False,
        handletextpad=0.2,
        scatterpoints=1,
    )
    wrapped = ["\n".join(textwrap.wrap(name, _LABEL_WIDTH)) or "(empty)" for name in names]
    plain_texts(legend.get_texts(), wrapped)
    for handle in legend.legend_handles:
        handle.set_sizes([30.0])  # type: ignore[union-attr]  # of a scatter
        handle.set_alpha(1.0)  # type: ignore[union-attr]  # of a scatter
    return legend
