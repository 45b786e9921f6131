"""Blocks and sections shared by the pages of the commands."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.machine import machine, versions
from ..plots import shape_modes, shapes
from ..plots.interactive import Scatter
from ..plots.report import Block, Code, Note, Picture, Section, Table, Text
from .inputs import Data
from .models import last_step
from .results import Result, Work, sample_rows

_PACKAGES = ("orthodrome", "numpy", "scipy", "scikit-learn", "numba", "matplotlib", "plotly")
_MAX_FEATURES = 4  # maximum number of features in the text of a point
MAX_SHAPES = 300  # outlines drawn in one figure


def count(n: int, noun: str) -> str:
    """Return a number with a noun, in the plural unless the number is 1."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def opening_blocks(data: Data, work: Work, description: str) -> list[Block]:
    """Return the first blocks of a page: the data, and notes on the file and the run."""
    rows, columns = ("specimen", "landmark") if data.kind == "shapes" else ("row", "column")
    size = f"{count(len(data), rows)} of {count(data.X.shape[1], columns)}"
    notes = [Note(text) for text in (*data.notes, *work.notes)]
    return [Text(f"{data.path}: {size}; {description}"), *notes]


def scatter(
    data: Data,
    coordinates: NDArray[np.float64],
    caption: str,
    *,
    details: Any = None,
    **options: Any,
) -> Scatter:
    """Return an interactive scatter plot; `options` override those set here."""
    details = dict(details or {})
    if data.kind == "table":
        details |= zip(data.columns[:_MAX_FEATURES], data.X.T, strict=False)
    defaults: dict[str, Any] = {"labels": data.labels, "label_name": data.label_title}
    return Scatter(coordinates, caption, ids=data.ids, details=details, **defaults | options)


def shapes_section(data: Data, names: NDArray[Any], title: str) -> Section:
    """Return a section with the outlines of specimens and the mean of each group."""
    rows = sample_rows(len(data), MAX_SHAPES, 0)
    picture = Picture.of(
        shapes(data.X[rows], names[rows]),
        "shapes",
        alt=f"{title}: the outlines of {len(rows)} specimens, with the mean of each group.",
        caption=f"{title}, with their extrinsic means.",
    )
    return Section("Shapes", [picture])


def shape_modes_section(model: Any) -> list[Section]:
    """Return a section on shape change along the components, if there are pre-images."""
    try:
        figure = shape_modes(model, n_modes=min(3, model.n_components_))
    except ValueError:  # nested spheres and some kernels have no pre-images
        return []
    picture = Picture.of(
        figure,
        "modes",
        alt="One row of shapes per component, from two standard deviations below the mean to two "
        "above.",
        caption="How the shape changes along each component.",
    )
    return [Section("Modes", [picture])]


def reproduction_section(
    command: Sequence[str], programs: dict[str, str], tables: Sequence[Table], *facts: list[str]
) -> Section:
    """Return the section to reproduce a run: command, Python code, tables and versions."""
    rows = [*map(list, versions(*_PACKAGES)), ["machine", machine()], *facts]
    return Section(
        "How to reproduce this page",
        [
            Code(shlex.join(command), "Command:"),
            *(Code(lines, title) for title, lines in programs.items()),
            *tables,
            Table("Versions and times", ["item", "value"], rows),
        ],
    )


def model_reproduction_section(result: Result, command: Sequence[str], lines: str) -> Section:
    """Return the section to reproduce a fitted model, with its parameters and times."""
    estimator = last_step(result.model)
    names = sorted(inspect.signature(type(estimator)).parameters)
    rows = [[name, str(getattr(estimator, name))] for name in names]
    kernel: Any = getattr(estimator, "kernel_", None)
    if hasattr(kernel, "sigma_"):
        rows.append(["fitted bandwidth (kernel_.sigma_)", f"{float(kernel.sigma_):.6g}"])
    for name in ("alpha_", "solver_", "n_iter_", "converged_"):
        if hasattr(estimator, name):
            rows.append([f"fitted {name}", str(getattr(estimator, name))])
    table = Table(f"Parameters of {type(estimator).__name__}", ["parameter", "value"], rows)
    times = [[f"seconds: {name}", f"{time:.2f}"] for name, time in result.work.seconds.items()]
    return reproduction_section(command, {"Python code:": lines}, [table], *times)
