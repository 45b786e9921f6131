"""Rows of small images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_finite_vector, check_integer, check_numbers
from ._matplotlib import figure_of, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["images"]

_WIDTH = 5.0
_LARGE = 1e300  # differences of larger values may overflow


def images(
    rows: Mapping[str, ArrayLike],
    *,
    shape: tuple[int, int] | None = None,
    limits: tuple[float, float] | None = None,
    cmap: str = "gray_r",
    figure: Figure | None = None,
    title: str | None = None,
) -> Figure:
    """Draw rows of images, each row under its name.

    Parameters
    ----------
    rows : mapping of str to array-like of shape (n_images, height, width[, 3]) or \
            (n_images, n_pixels)
        The images by the name of their row; as many in every row. Those with a last axis of length
        3 are in colour: red, green and blue.
    shape : (int, int), optional
        Height and width, for images given as flat rows of pixels.
    limits : (float, float), optional
        The values at the two ends of the colour scale; those beyond are clipped. The smallest and
        largest value of all images if absent; of images in colour 0 and 1.
    cmap : str, default="gray_r"
        Colour scale of matplotlib. The default draws large values dark, as ink on paper: it suits
        digits and drawings. Photographs, where large is bright, take "gray"; images in colour have
        no scale.
    figure : matplotlib Figure or SubFigure, optional
        Where to draw; a new figure if absent.
    title : str, optional
        Title of the figure.

    Returns
    -------
    matplotlib Figure
        The figure, with one axes for each row.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orthodrome import plots
    >>> fig = plots.images({"digits": load_digits().images[:10]})
    >>> fig.axes[0].get_title(loc="left")
    'digits'
    """
    stacks = _check_rows(rows, shape)
    _check_colors(cmap)
    if limits is None and all(stack.ndim == 4 for stack in stacks.values()):
        low, high = 0.0, 1.0
    elif limits is None:
        low = min(float(stack.min()) for stack in stacks.values())
        high = max(float(stack.max()) for stack in stacks.values())
    else:
        low, high = _check_limits(limits)
    size = max(abs(low), abs(high))
    scale = size if size > _LARGE else 1.0
    low, high = low / scale, high / scale
    high = max(high, low + max(1e-12, 4 * float(np.spacing(abs(low)))))
    n_images, height, width = next(iter(stacks.values())).shape[:3]
    inches = _WIDTH / n_images * height / width + 0.32  # an image and the name above it
    figure = figure_of(figure, (_WIDTH, inches * len(stacks) + (0.3 if title is not None else 0)))
    axes = figure.subplots(len(stacks), squeeze=False)[:, 0]
    for ax, (name, stack) in zip(axes, stacks.items(), strict=True):
        ax.imshow(**_drawn(np.clip(stack / scale, low, high), low, high, cmap))
        ax.set_title(name, loc="left", fontsize="medium", pad=4)
        ax.set_axis_off()
    if title is not None:
        figure.suptitle(title)
    return figure


def _check_rows(
    rows: Mapping[str, ArrayLike], shape: tuple[int, int] | None
) -> dict[str, NDArray[Any]]:
    if not isinstance(rows, Mapping) or not rows:
        raise ValueError("rows of images must be a mapping, {name: images}, of at least one row.")
    if shape is not None:
        if not isinstance(shape, tuple | list) or len(shape) != 2:
            raise ValueError(f"shape of images must be two integers; got {shape!r}.")
        for side in shape:
            check_integer(side, "shape", "images")
    stacks: dict[str, NDArray[Any]] = {}
    for name, images_ in rows.items():
        stack = check_numbers(
            images_,
            f"rows[{name!r}]",
            "images",
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0,
            ensure_min_features=0,
            dtype=np.float64,
            ensure_all_finite=False,
        )
        if stack.ndim == 2 and shape is not None and stack.shape[1] == shape[0] * shape[1]:
            stack = stack.reshape(-1, *shape)
        in_color = stack.ndim == 4 and stack.shape[3] == 3
        if not (stack.ndim == 3 or in_color) or 0 in stack.shape:
            raise ValueError(
                f"rows[{name!r}] of images must have shape (n_images, height, width), or "
                "(n_images, height, width, 3) in colour, or (n_images, n_pixels) with "
                f"shape=(height, width); got {stack.shape} with shape={shape!r}."
            )
        if not np.isfinite(stack).all():
            raise ValueError(f"rows[{name!r}] of images must be finite.")
        stacks[name] = stack
    shapes = {stack.shape[:3] for stack in stacks.values()}
    if len(shapes) > 1:
        raise ValueError(f"rows of images must all have the same shape; got {sorted(shapes)}.")
    return stacks


def _check_limits(limits: Any) -> tuple[float, float]:
    values = check_finite_vector(limits, 2, "limits", "images")
    return float(values[0]), float(values[1])


def _check_colors(cmap: Any) -> None:
    colors = require_matplotlib().colormaps
    if not isinstance(cmap, str) or cmap not in colors:
        raise ValueError(
            f"cmap of images must be the name of a colour scale of matplotlib, such as 'gray'; got "
            f"{cmap!r}."
        )


def _drawn(stack: NDArray[Any], low: float, high: float, cmap: str) -> dict[str, Any]:
    """Return what ``imshow`` is given: a strip of values on a scale, or one of colours."""
    if stack.ndim == 3:
        return {"X": _strip(stack, np.nan), "cmap": cmap, "vmin": low, "vmax": high}
    # matplotlib has no limits for colours, and a value that is missing would be black in them
    return {"X": _strip((stack - low) / (high - low), 1.0)}


def _strip(stack: NDArray[Any], blank: float) -> NDArray[Any]:
    """Set images side by side with a blank column between them."""
    n_images, height, width = stack.shape[:3]
    strip = np.full((height, n_images * (width + 1) - 1, *stack.shape[3:]), blank)
    for index in range(n_images):
        strip[:, index * (width + 1) : index * (width + 1) + width] = stack[index]
    return strip
