"""Explained variance of components."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.checks import check_integer, check_positive
from ._classes import check_row
from ._matplotlib import Axes, Figure, axes_of, legend_above, set_title
from .palette import ACCENT, MAIN

_MAX_RATIO = 1e6  # ratios above 1 occur if negative eigenvalues were omitted


def spectrum(
    model: Any,
    *,
    total: float | None = None,
    n_components: int | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the variance explained by each component, and the sum.

    Parameters
    ----------
    model : fitted estimator, or array-like of shape (n_components,)
        An estimator with ``explained_variance_ratio_``, or eigenvalues in descending order.
    total : float, optional
        Trace, by which the eigenvalues are divided. If absent, the sum of the eigenvalues; the
        fractions are then too large if some eigenvalues are missing. Not for an estimator.
    n_components : int, optional
        Show only the first components; all if absent.
    ax : matplotlib Axes, optional
        Axes to draw into; a new figure if absent.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib Figure
        The figure that holds the axes.

    Examples
    --------
    >>> from orthodrome import plots
    >>> fig = plots.spectrum([6.0, 3.0, 1.0])
    >>> [round(bar.get_height()) for bar in fig.axes[0].patches]
    [60, 30, 10]
    """
    ratios = _ratios(model, total)
    if n_components is not None:
        ratios = ratios[: check_integer(n_components, "n_components", "spectrum")]
    ax = axes_of(ax, (4.8, 3.4))
    from matplotlib.ticker import MaxNLocator

    positions = np.arange(1, len(ratios) + 1)
    bars = ax.bar(positions, 100 * ratios, color=MAIN)
    (line,) = ax.plot(positions, 100 * np.cumsum(ratios), color=ACCENT, marker="o", markersize=3.5)
    ax.set(xlabel="Component", ylabel="Variance explained (%)", ylim=(0, 105))
    ax.set_xlim(0.4, len(ratios) + 0.6)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    legend_above(ax, [bars, line], ["each component", "sum so far"], ncols=2, right=True)
    return set_title(ax, title, loc="left", pad=22)


def _ratios(model: Any, total: float | None) -> NDArray[np.float64]:
    if hasattr(model, "fit"):
        if total is not None:
            raise ValueError("total of spectrum is only for eigenvalues. Omit it for an estimator.")
        check_is_fitted(model)
        if not hasattr(model, "explained_variance_ratio_"):
            raise ValueError(
                f"spectrum needs explained_variance_ratio_, which {type(model).__name__} does not "
                "have. Pass its eigenvalues instead."
            )
        return np.asarray(model.explained_variance_ratio_, dtype=np.float64)
    values = check_row(model, "eigenvalues", "spectrum")
    if np.any(values < 0):
        index = int(np.flatnonzero(values < 0)[0])
        raise ValueError(
            f"eigenvalues of spectrum must not be negative; entry {index} is {values[index]:g}. "
            "An indefinite kernel has no fractions of variance."
        )
    divisor = float(values.sum()) if total is None else check_positive(total, "total", "spectrum")
    if divisor <= 0:
        raise ValueError("eigenvalues of spectrum are all zero: there is no variance.")
    if not values.max() <= divisor * _MAX_RATIO:
        raise ValueError(
            f"total of spectrum must be the sum of all eigenvalues; got {divisor:g}, far below "
            f"the largest, {values.max():g}."
        )
    return values / divisor
