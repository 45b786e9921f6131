"""The one place that imports matplotlib, late and without pyplot."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._extras import MissingExtraError, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MissingExtraError", "axes_of", "figure_of", "house_style", "png", "require_matplotlib"]

_DPI = 192  # twice the pixels of a screen inch: sharp on a phone and in print


def require_matplotlib() -> Any:
    """Import and return matplotlib, or say how to install it."""
    return require("matplotlib", "Plots", "plot")


def figure_of(figure: Figure | None, size: tuple[float, float]) -> Figure:
    """Return `figure`, or a new one of `size` inches that no global state knows of."""
    require_matplotlib()
    from matplotlib.figure import Figure as NewFigure
    from matplotlib.figure import FigureBase

    if figure is not None:
        if not isinstance(figure, FigureBase):
            raise ValueError(f"figure must be a matplotlib Figure or None; got {figure!r}.")
        return figure

    return NewFigure(figsize=size, layout="constrained")


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return `ax`, or the axes of a new figure of `size` inches."""
    if ax is None:
        return figure_of(None, size).subplots()
    require_matplotlib()
    from matplotlib.axes import Axes as AnyAxes

    if not isinstance(ax, AnyAxes):
        raise ValueError(f"ax must be matplotlib Axes or None; got {ax!r}.")
    return ax


@contextmanager
def house_style() -> Iterator[None]:
    """Draw with matplotlib's defaults, whatever the user's settings: for pages of our own."""
    require_matplotlib()
    import matplotlib.style

    ours = {
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": "medium",
        "font.size": 10.0,
    }
    with matplotlib.style.context(["default", ours]):
        yield


def png(figure: Figure) -> bytes:
    """Return a figure as the bytes of a PNG file, the same for the same figure.

    Letters that the font does not have are boxes there; the page says them in its text.
    """
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return buffer.getvalue()
