"""Spectra: how much of the variance each component explains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.checks import check_integer, check_numbers, check_positive
from ._matplotlib import axes_of, finished, legend_above
from .palette import ACCENT, MAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["spectrum"]

_MOST_EXPLAINED = 1e6  # times the trace: rounding, and negative eigenvalues that were left out


def spectrum(
    model: Any,
    *,
    total: float | None = None,
    n_components: int | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the fraction of variance of each component as bars and their sum as a line.

    Parameters
    ----------
    model : fitted estimator, or array-like of shape (n_components,)
        An estimator with ``explained_variance_ratio_``, or eigenvalues in descending order.
    total : float, optional
        What eigenvalues are a fraction of: the trace. Their own sum if absent, which overstates
        the fractions unless the eigenvalues are all there are. Not for an estimator.
    n_components : int, optional
        Show only the first so many.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if absent.
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
    legend_above(ax, [bars, line], ["each component", "sum so far"], n_columns=2, right=True)
    return finished(ax, title, loc="left", pad=22)


def _ratios(model: Any, total: float | None) -> NDArray[np.float64]:
    if hasattr(model, "fit"):
        if total is not None:
            raise ValueError("total of spectrum is for eigenvalues; an estimator has ratios.")
        check_is_fitted(model)
        if not hasattr(model, "explained_variance_ratio_"):
            raise ValueError(
                f"spectrum needs explained_variance_ratio_ and {type(model).__name__} has none; "
                "pass its eigenvalues."
            )
        return np.asarray(model.explained_variance_ratio_, dtype=np.float64)
    values = check_numbers(model, "eigenvalues", "spectrum", ensure_2d=False, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"eigenvalues of spectrum must be one row; got shape {values.shape}.")
    if np.any(values < 0):
        index = int(np.flatnonzero(values < 0)[0])
        raise ValueError(
            f"eigenvalues of spectrum must not be negative; entry {index} is {values[index]:g}. "
            "An indefinite kernel has no fractions of variance."
        )
    divisor = float(values.sum()) if total is None else check_positive(total, "total", "spectrum")
    if divisor <= 0:
        raise ValueError("eigenvalues of spectrum are all zero: there is nothing to explain.")
    if not values.max() <= divisor * _MOST_EXPLAINED:
        raise ValueError(
            f"total of spectrum, {divisor:g}, is nothing beside the eigenvalues, of which it is "
            "the sum; take their trace."
        )
    return values / divisor
