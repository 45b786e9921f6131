"""Import optional dependencies; import matplotlib lazily and without pyplot."""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
else:
    Axes = Figure = Legend = Any  # for annotations; importing matplotlib is slow

__all__ = ["Axes", "Figure", "Legend"]


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message says how to install it."""


def require(module: str, what: str, extra: str) -> Any:
    """Import and return a module of an optional dependency.

    Parameters
    ----------
    module : str
        Name of the module, such as "pyarrow.parquet".
    what : str
        The features that need it, a plural noun for the error message.
    extra : str
        The extra of orthodrome that installs it.

    Raises
    ------
    MissingExtraError
        If the package is not installed. Other import errors, as from a broken installation, are
        not changed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        if error.name is None or error.name.split(".")[0] != package:
            raise
        title = {"PIL": "Pillow"}.get(package, package)
        raise MissingExtraError(
            f"{what} need {title}: pip install 'orthodrome[{extra}]'", name=package
        ) from error


_DPI = 192  # two pixels per CSS pixel, for sharp text on phones and in print


def require_matplotlib() -> Any:
    """Import and return matplotlib; raise MissingExtraError if it is not installed."""
    return require("matplotlib", "Plots", "plot")


def figure_of(figure: Figure | None, size: tuple[float, float], title: str | None = None) -> Figure:
    """Return `figure`, or a new figure of `size` inches if it is None; set the title if given."""
    require_matplotlib()
    from matplotlib.figure import Figure as NewFigure
    from matplotlib.figure import FigureBase

    if figure is None:
        figure = NewFigure(figsize=size, layout="constrained")
    elif not isinstance(figure, FigureBase):
        raise ValueError(f"figure must be a matplotlib Figure or None; got {figure!r}.")
    if title is not None:
        figure.suptitle(title)
    return figure


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return `ax`, or the axes of a new figure of `size` inches."""
    if ax is None:
        return figure_of(None, size).subplots()
    require_matplotlib()
    from matplotlib.axes import Axes as AnyAxes

    if not isinstance(ax, AnyAxes):
        raise ValueError(f"ax must be matplotlib Axes or None; got {ax!r}.")
    return ax


def set_title(ax: Axes, title: str | None, **options: Any) -> Figure:
    """Set the title of the axes unless it is None; return their figure."""
    if title is not None:
        ax.set_title(title, **options)
    return ax.figure  # type: ignore[return-value]  # never a SubFigure


def plain_legend(ax: Axes, handles: Sequence[Any], names: Sequence[str], **options: Any) -> Legend:
    """Add a legend that shows names literally, even with dollar signs or leading underscores."""
    legend = ax.legend(handles, [" "] * len(names), frameon=False, **options)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
    return legend


def legend_above(
    ax: Axes, handles: Sequence[Any], names: Sequence[str], *, right: bool = False, **options: Any
) -> Legend:
    """Add a legend above the axes, where it hides no data."""
    options = {"borderaxespad": 0.0, "fontsize": "small"} | options
    side = "right" if right else "left"
    return plain_legend(
        ax, handles, names, loc=f"lower {side}", bbox_to_anchor=(float(right), 1.0), **options
    )


def font_points(size: Any = "small") -> float:
    """Return a font size, such as "small", in points."""
    from matplotlib.font_manager import FontProperties

    return float(FontProperties(size=size).get_size_in_points())


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the style of the library's reports; ignore the user's settings."""
    require_matplotlib()
    import matplotlib.style

    style = {
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": "medium",
        "font.size": 10.0,
    }
    with matplotlib.style.context(["default", style]):
        yield


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file; equal figures give equal bytes."""
    return _saved(figure, format="png", metadata={"Software": None})


def svg(figure: Figure) -> bytes:
    """Return a figure as an SVG file without a background; equal figures give equal bytes."""
    with require_matplotlib().rc_context({"svg.hashsalt": "orthodrome"}):
        return _saved(figure, format="svg", transparent=True, metadata={"Date": None})


def _saved(figure: Figure, **options: Any) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # characters missing from the font become boxes; the text of the page shows them
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(buffer, dpi=_DPI, **options)
    return buffer.getvalue()
