"""Planar shapes of each class with their mean, and modes of variation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.checks import check_integer, check_positive
from .._core.types import Array, Floats, Indices
from ..spaces import as_points, extrinsic_mean, procrustes_align
from ._classes import COLORS, MAIN, check_labels, check_row, classes_of, is_continuous
from ._matplotlib import Axes, Figure, figure_of

_MAX_DRAWN = 300  # maximum number of specimens in a panel
_MARGIN = 1.06
_MAGNIFICATIONS = (1, 2, 3, 5, 10, 20, 50, 100)
_LARGEST_MOVE = 0.15
_DARK = "#111111"


def shapes(
    X: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    links: ArrayLike | None = None,
    n_columns: int = 4,
    figure: Figure | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the shapes of each class in a panel, with their mean.

    All shapes are rotated to the overall mean shape and scaled to centroid size 1. A bold line is
    the extrinsic mean of a class. If a class has more than 300 shapes, an evenly spaced subset is
    drawn; the mean uses all of them.

    Parameters
    ----------
    X : array-like of shape (n, k) complex, (n, k, 2) or (n, 2k)
        Landmarks, in the order of the line that joins them.
    labels : array-like of shape (n,), optional
        Classes.
    links : array-like of shape (m, 2), optional
        Pairs of landmarks, numbered from 0, to join by lines; empty for points only. By default,
        landmarks are joined in their order, and the last one to the first.
    n_columns : int, default=4
        Maximum number of panels in a row.
    figure : matplotlib Figure, optional
        Figure to draw into; a new one if absent.
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
    panels = _panels(labels, len(points))
    check_integer(n_columns, "n_columns", "shapes")
    order, style = _line_order(points.shape[1], links, "shapes")
    aligned = procrustes_align(points)
    groups = [aligned[chosen] for _, chosen, *_ in panels]
    means = [_mean_of(group) for group in groups]
    drawn = [group[:: -(-len(group) // _MAX_DRAWN)] for group in groups]
    columns = min(n_columns, len(panels))
    rows = -(-len(panels) // columns)
    figure = figure_of(figure, (2.6 * columns, 2.6 * rows + 0.3), title)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    box = _box(np.concatenate([*drawn, means]))
    per_panel = zip(axes, panels, drawn, means, strict=False)
    for ax, (name, chosen, color, _), specimens, center in per_panel:
        opacity = float(np.clip(8 / len(specimens), 0.06, 0.5))
        for specimen in specimens:
            _draw(ax, specimen, order, color=color, linewidth=0.7, alpha=opacity, **style)
        _draw(ax, center, order, color="white", linewidth=4.0)  # a rim around the mean
        _draw(ax, center, order, color=_DARK, linewidth=1.8, marker="o", markersize=3)
        if labels is not None:
            ax.set_title(f"{name} ({chosen.sum()})", parse_math=False)
        _frame(ax, box)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    return figure


def shape_modes(
    model: Any,
    *,
    n_modes: int = 3,
    extent: float = 2.0,
    n_steps: int = 5,
    magnification: ArrayLike = 1.0,
    links: ArrayLike | None = None,
    figure: Figure | None = None,
    title: str | None = None,
) -> Figure:
    r"""Draw how shapes change along the modes of a decomposition.

    Each row shows one mode. Its coordinate varies from :math:`-e\,s` to :math:`+e\,s`, where s is
    its standard deviation; the other coordinates are 0. The shapes are the pre-images of these
    coordinates. The middle shape is drawn behind each shape.

    Parameters
    ----------
    model : fitted KernelPGA, KernelPCA or RobustKernelPCA
        A decomposition of landmarks whose ``inverse_transform`` returns landmarks.
    n_modes : int, default=3
        Number of rows, at most the number of components.
    extent : float, default=2.0
        e, the largest deviation, in standard deviations.
    n_steps : int, default=5
        Number of shapes in a row; odd.
    magnification : float or array-like of shape (n_modes,), default=1.0
        Differences from the middle shape are multiplied by this factor: one number for all modes,
        or one per mode.
    links : array-like of shape (m, 2), optional
        Pairs of landmarks, numbered from 0, to join by lines. If empty, lines join each landmark
        to its place in the middle shape. By default, landmarks are joined in their order, and the
        last one to the first.
    figure : matplotlib Figure, optional
        Figure to draw into; a new one if absent.
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
    extent = check_positive(extent, "extent", "shape_modes")
    if n_steps % 2 == 0:
        raise ValueError(
            f"n_steps of shape_modes must be odd, so that there is a middle shape; got {n_steps}."
        )
    amounts = np.linspace(-extent, extent, n_steps)
    aligned = _mode_shapes(model, n_modes, amounts)
    order, style = _line_order(aligned.shape[2], links, "shape_modes")
    middle = aligned[:, n_steps // 2, None]
    factors = check_row(np.ravel(magnification), "magnification", "shape_modes")
    if len(factors) not in (1, len(aligned)):
        raise ValueError(
            f"magnification of shape_modes must be one number, or one for each of {len(aligned)} "
            f"modes; got {len(factors)}."
        )
    factors = np.broadcast_to(factors, len(aligned))
    aligned = middle + factors[:, None, None, None] * (aligned - middle)
    figure = figure_of(figure, (1.9 * n_steps, 1.9 * len(aligned) + 0.3), title)
    axes = figure.subplots(len(aligned), n_steps, squeeze=False)
    box, ratios = _box(aligned), getattr(model, "explained_variance_ratio_", None)
    for mode, row in enumerate(aligned):
        for step, ax in enumerate(axes[mode]):
            color = (COLORS[1], _DARK, MAIN)[1 + int(np.sign(amounts[step]))]
            if step != n_steps // 2:
                _draw(ax, row[n_steps // 2], order, color="#9AA5B1", linewidth=1.0, **style)
            if links is not None and not np.size(links):
                moves = np.stack([row[n_steps // 2], row[step]], axis=1)
                ax.plot(*moves.T, color=color, linewidth=1.0)
            _draw(ax, row[step], order, color=color, linewidth=1.8, **style)
            _frame(ax, box)
            if mode == 0:
                ax.set_title(f"{amounts[step]:+.3g} s" if amounts[step] else "0")
        percentage = "" if ratios is None else f" ({100 * ratios[mode]:.0f} %)"
        times = "" if factors[mode] == 1 else f", × {factors[mode]:g}"
        axes[mode, 0].set_ylabel(f"Mode {mode + 1}{percentage}{times}")
    return figure


def mode_magnifications(model: Any, n_modes: int, extent: float = 2.0) -> list[int]:
    """Return a factor for each mode that makes its changes visible in :func:`shape_modes`.

    It is the largest of 1, 2, 3, 5, 10, … for which no landmark moves by more than 15 % of the
    larger side of the middle shape.
    """
    aligned = _mode_shapes(model, n_modes, np.array([-extent, 0.0, extent]))
    moves = np.linalg.norm(aligned - aligned[:, 1:2], axis=3).max(axis=(1, 2))
    limits = _LARGEST_MOVE * np.ptp(aligned[0, 1], axis=0).max() / np.maximum(moves, 1e-12)
    return [max((n for n in _MAGNIFICATIONS if n <= limit), default=1) for limit in limits]


def _panels(labels: ArrayLike | None, n: int) -> list[tuple[str, NDArray[np.bool_], str, str]]:
    """Return the classes; without labels, one class of all specimens."""
    if labels is None:
        return list(classes_of(np.zeros(n)))
    groups = check_labels(labels, n, "shapes", "X")
    if is_continuous(groups):
        raise ValueError(
            f"labels of shapes has {len(np.unique(groups))} different values, but at most 20 "
            "classes can be drawn. Merge classes, or draw some of them."
        )
    return list(classes_of(groups))


def _mean_of(aligned: Array) -> Array:
    """Return the extrinsic mean, aligned to the specimens."""
    return procrustes_align(extrinsic_mean(aligned)[None], aligned.mean(axis=0))[0]


def _mode_shapes(model: Any, n_modes: int, amounts: Floats) -> Array:
    """Return the aligned shapes along each mode, of shape (n_modes, n_steps, k, 2)."""
    found = as_points(_preimages(model, n_modes, amounts), "the result of inverse_transform")
    return procrustes_align(found).reshape(-1, len(amounts), *found.shape[1:])


def _preimages(model: Any, n_modes: int, amounts: Floats) -> Array:
    """Return the pre-images of multiples of the standard deviation along each mode."""
    # inverse_transform of nested spheres returns no landmarks, but points on a sphere
    has_inverse = hasattr(model, "inverse_transform") and not hasattr(model, "nested_spheres_")
    if has_inverse:
        check_is_fitted(model)
    if not has_inverse or not hasattr(model, "embedding_"):
        raise ValueError(
            "model of shape_modes must have embedding_, and an inverse_transform that returns "
            f"landmarks, such as KernelPGA and KernelPCA; got {type(model).__name__}."
        )
    embedding = np.asarray(model.embedding_, dtype=np.float64)
    n_components = embedding.shape[1]
    weights = getattr(model, "sample_weight_", None)
    centered = embedding - np.average(embedding, axis=0, weights=weights)
    spread = np.sqrt(np.average(centered**2, axis=0, weights=weights))
    coordinates = np.zeros((min(n_modes, n_components), len(amounts), n_components))
    for mode, row in enumerate(coordinates):
        row[:, mode] = amounts * spread[mode]
    return model.inverse_transform(coordinates.reshape(-1, n_components))


def _line_order(k: int, links: ArrayLike | None, owner: str) -> tuple[Indices, dict[str, Any]]:
    """Return the order in which a line visits landmarks, and the style of their markers.

    In the order, -1 is a gap in the line.
    """
    if links is None:
        return np.arange(k + 1) % k, {}
    pairs = np.asarray(links)
    if np.size(pairs) == 0:
        pairs = np.empty((0, 2), dtype=np.intp)
    is_pairs = pairs.ndim == 2 and pairs.shape[1] == 2 and np.issubdtype(pairs.dtype, np.integer)
    if not is_pairs or np.any((pairs < 0) | (pairs >= k)):
        raise ValueError(f"links of {owner} must be pairs of landmarks from 0 to {k - 1}.")
    lines = np.insert(pairs, 2, -1, axis=1).ravel()
    unlinked = np.setdiff1d(np.arange(k), pairs)  # points without a line
    order = np.concatenate([lines, np.insert(unlinked[:, None], 1, -1, axis=1).ravel()])
    return order, {"marker": "o", "markersize": 2.5, "markeredgewidth": 0}


def _draw(ax: Axes, points: Array, order: Indices, **style: Any) -> None:
    line = np.vstack([points, np.full((1, 2), np.nan)])[order]
    ax.plot(line[:, 0], line[:, 1], solid_joinstyle="round", **style)


def _box(points: Array) -> tuple[Array, float]:
    """Return the centre and half the side of a square around the points."""
    flat = points.reshape(-1, 2)
    low, high = flat.min(axis=0), flat.max(axis=0)
    return (low + high) / 2, _MARGIN * float((high - low).max()) / 2


def _frame(ax: Axes, box: tuple[Array, float]) -> None:
    """Set the limits of a panel, and remove ticks and frame."""
    (x, y), half = box
    ax.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect="equal")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
