"""The one place that imports matplotlib, late and without pyplot."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

__all__ = [
    "axes_of",
    "figure_of",
    "finished",
    "house_style",
    "legend_above",
    "plain_texts",
    "png",
    "require_matplotlib",
    "small_points",
]

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


def finished(ax: Axes, title: str | None, **options: Any) -> Figure:
    """Set a title, if there is one, and return the figure of the axes."""
    if title is not None:
        ax.set_title(title, **options)
    return ax.figure  # type: ignore[return-value]  # never a SubFigure


def plain_texts(texts: Sequence[Any], names: Sequence[str]) -> None:
    """Set texts to names of the data, which are never read as mathematics."""
    for text, name in zip(texts, names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)


def legend_above(
    ax: Axes,
    handles: Sequence[Any],
    names: Sequence[str],
    *,
    n_columns: int,
    right: bool = False,
    **options: Any,
) -> Legend:
    """Explain lines or markers above the axes, where they cover nothing."""
    legend = ax.legend(
        handles,
        [" "] * len(names),  # the names follow, as plain text
        loc="lower right" if right else "lower left",
        bbox_to_anchor=(1.0 if right else 0.0, 1.0),
        ncols=n_columns,
        frameon=False,
        fontsize="small",
        **{"borderaxespad": 0.0} | options,
    )
    plain_texts(legend.get_texts(), names)
    return legend


def small_points() -> float:
    """Return the size of small letters, in points."""
    from matplotlib.font_manager import FontProperties

    return float(FontProperties(size="small").get_size_in_points())


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
