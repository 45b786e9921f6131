"""Parts that the pages of several commands share."""

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
from .results import Result, drawn

_PACKAGES = ("orthodrome", "numpy", "scipy", "scikit-learn", "numba", "matplotlib", "plotly")
MOST_SHAPES = 300  # drawn over each other


def count(n: int, thing: str) -> str:
    """Return a number of things."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def opening(found: Result, described: str) -> list[Block]:
    """Return the first blocks of a page: the data, and notes on reading them and on the run."""
    data = found.data
    rows, columns = ("specimen", "landmark") if data.kind == "shapes" else ("row", "column")
    what = f"{count(len(data), rows)} of {count(data.X.shape[1], columns)}"
    notes = [Note(text) for text in (*data.notes, *found.notes)]
    return [Text(f"{data.path}: {what}; {described}"), *notes]


def scatter(data: Data, coordinates: NDArray[np.float64], caption: str, **options: Any) -> Scatter:
    """Return the points to explore; `options` replace those of :class:`Scatter`."""
    given: dict[str, Any] = {"labels": data.labels, "label_name": data.label_title}
    if data.kind == "table":
        given |= {"features": data.X, "columns": data.columns}
    return Scatter(coordinates, caption, ids=data.ids, **given | options)


def shapes_section(data: Data, names: NDArray[Any], title: str) -> Section:
    """Return the outlines of specimens, with the mean of each group."""
    rows = drawn(len(data), MOST_SHAPES, 0)
    picture = Picture.of(
        shapes(data.X[rows], names[rows]),
        "shapes",
        alt=f"{title}: the outlines of {len(rows)} specimens, with the mean of each group.",
        caption=f"{title}, with their extrinsic means.",
    )
    return Section("Shapes", [picture])


def shape_modes_section(model: Any) -> list[Section]:
    """Return how shapes change along the components, if the model has pre-images."""
    try:
        figure = shape_modes(model, n_modes=min(3, model.n_components_))
    except ValueError:  # nested spheres and some kernels have no pre-images
        return []
    picture = Picture.of(
        figure,
        "modes",
        alt="A line of shapes for each component, from two standard deviations below the mean to "
        "two above.",
        caption="How the shape changes along each component.",
    )
    return [Section("Modes", [picture])]


def again(
    command: Sequence[str], programs: dict[str, str], tables: Sequence[Table], *facts: list[str]
) -> Section:
    """Return how to repeat a run: the command, Python lines by title, parameters and versions."""
    rows = [*map(list, versions(*_PACKAGES)), ["machine", machine()], *facts]
    return Section(
        "How to do this again",
        [
            Code(shlex.join(command), "The command that wrote this page:"),
            *(Code(lines, title) for title, lines in programs.items()),
            *tables,
            Table("Versions and times", ["what", "value"], rows),
        ],
    )


def again_with(
    model: Any, seconds: dict[str, float], command: Sequence[str], lines: str
) -> Section:
    """Return how to repeat the run of a model, with its parameters and times."""
    own = last_step(model)
    rows = [
        [name, str(getattr(own, name))] for name in sorted(inspect.signature(type(own)).parameters)
    ]
    kernel: Any = getattr(own, "kernel_", None)
    if hasattr(kernel, "sigma_"):
        rows.append(["fitted bandwidth (kernel_.sigma_)", f"{float(kernel.sigma_):.6g}"])
    for name in ("alpha_", "solver_", "n_iter_", "converged_"):
        if hasattr(own, name):
            rows.append([f"fitted {name}", str(getattr(own, name))])
    table = Table(f"Parameters of {type(own).__name__}", ["parameter", "value"], rows)
    times = [[f"seconds: {name}", f"{time:.2f}"] for name, time in seconds.items()]
    return again(command, {"The same in Python:": lines}, [table], *times)
