"""Rows of small images."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from .._core.checks import check_finite_vector, numbers_expected
from .._core.types import Array
from ._classes import check_mapping
from ._matplotlib import Figure, figure_of

_WIDTH = 5.0


def images(
    rows: Mapping[str, ArrayLike],
    *,
    shape: tuple[int, int] | None = None,
    limits: tuple[float, float] | None = None,
    cmap: str = "gray_r",
    figure: Figure | None = None,
    title: str | None = None,
) -> Figure:
    """Draw rows of small images with a title for each row.

    Parameters
    ----------
    rows : mapping of str to array-like of shape (n_images, height, width[, 3]) or \
            (n_images, n_pixels)
        Images of each row by name, with the same number of images in each row. A last axis of
        length 3 means red, green and blue.
    shape : (int, int), optional
        Height and width, for images given as flat rows of pixels.
    limits : (float, float), optional
        Values at the ends of the colour scale; others are clipped. If absent, the smallest and
        largest value of all images, or 0 and 1 for colour images.
    cmap : str, default="gray_r"
        Name of a matplotlib colour map. The default draws large values dark, which suits digits
        and drawings; use "gray" for photographs. Colour images ignore it.
    figure : matplotlib Figure or SubFigure, optional
        Figure to draw into; a new one if absent.
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
    if limits is None and all(stack.ndim == 4 for stack in stacks.values()):
        limits = (0.0, 1.0)
    elif limits is None:
        values = np.concatenate([stack.ravel() for stack in stacks.values()])
        limits = values.min(), values.max()
    low, high = check_finite_vector(limits, 2, "limits", "images").tolist()
    high = max(high, low + max(1e-12, 4 * float(np.spacing(abs(low)))))
    n_images, height, width = next(iter(stacks.values())).shape[:3]
    inches = _WIDTH / n_images * height / width + 0.32  # an image and its title
    size = (_WIDTH, inches * len(stacks) + (0.3 if title is not None else 0))
    figure = figure_of(figure, size, title)
    axes = figure.subplots(len(stacks), squeeze=False)[:, 0]
    for ax, (name, stack) in zip(axes, stacks.items(), strict=True):
        clipped = np.clip(stack, low, high)
        if stack.ndim == 3:
            ax.imshow(_strip(clipped, np.nan), cmap=cmap, vmin=low, vmax=high)
        else:  # imshow ignores vmin and vmax for colours, and draws NaN black
            ax.imshow(_strip((clipped - low) / (high - low), 1.0))
        ax.set_title(name, loc="left", fontsize="medium", pad=4)
        ax.set_axis_off()
    return figure


def _check_rows(rows: Mapping[str, ArrayLike], shape: tuple[int, int] | None) -> dict[str, Array]:
    check_mapping(rows, "rows", "images")
    if shape is not None:
        check_finite_vector(shape, 2, "shape", "images")
    stacks: dict[str, Array] = {}
    for name, images_ in rows.items():
        with numbers_expected(images_, f"rows[{name!r}]", "images"):
            stack = np.asarray(images_, dtype=np.float64)
        if stack.ndim == 2 and shape is not None and stack.shape[1] == np.prod(shape):
            stack = stack.reshape(-1, *shape)
        is_stack = stack.ndim == 3 or (stack.ndim == 4 and stack.shape[3] == 3)
        if not is_stack or not stack.size or not np.isfinite(stack).all():
            raise ValueError(
                f"rows[{name!r}] of images must be finite, of shape (n_images, height, width), or "
                "(n_images, height, width, 3) in colour, or (n_images, n_pixels) with "
                f"shape=(height, width); got {stack.shape} with shape={shape!r}."
            )
        stacks[name] = stack
    shapes = {stack.shape[:3] for stack in stacks.values()}
    if len(shapes) > 1:
        raise ValueError(
            f"All arrays in rows of images() must have the same shape; got {sorted(shapes)}."
        )
    return stacks


def _strip(stack: Array, blank: float) -> Array:
    """Join images side by side, with a blank column between them."""
    column = np.full_like(stack[0, :, :1], blank)
    return np.concatenate([block for image in stack for block in (column, image)][1:], axis=1)
