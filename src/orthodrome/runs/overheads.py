"""What a command takes beside its work: its start, the page, and the files of results.

Imports are counted when this module is imported, which is after nearly all others; what a first
run loads in addition (compiled code, matplotlib, plotly, skops) is what it takes longer than a
second one. Pages and files are written for small samples, into a folder that is deleted again.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..persist import save
from ..plots.interactive import MAX_POINTS
from ..plots.report import render_report
from .clustering import Clustering, cluster
from .embedding import Embedding, embed
from .inputs import Data
from .models import Choice
from .pages import How, clustering_page, embedding_page
from .results import clusters_table, coordinates_table

__all__ = ["TINY", "sample_of", "seconds_of", "start_seconds", "writing_seconds"]

TINY = 32  # rows of the smallest samples
_SAMPLE = 600  # rows of the larger one whose page and files are written
_LONG = 0.2  # seconds of what is not timed a second time
_MOST_IMPORTS = 10.0  # seconds; a program that is older has done other things before
_MOST_WAITING = 4.0  # times its processor time; a program that is older has waited for its user


def seconds_of(work: Callable[[], Any]) -> float:
    """How long some work takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def sample_of(data: Data, size: int) -> Data:
    """So many rows, always the same ones, in their order."""
    if size >= len(data):
        return data
    rows = np.sort(np.random.default_rng(0).choice(len(data), size, replace=False))
    labels = None if data.labels is None else data.labels[rows]
    return replace(data, X=data.X[rows], ids=tuple(data.ids[i] for i in rows), labels=labels)


def _age() -> float:
    """Seconds since this program began, or of processor time where it has done other things."""
    used = time.process_time()
    try:
        # after the program's name, which may hold blanks; the 22nd field is the start, in ticks
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        began = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    except (AttributeError, OSError, ValueError, IndexError):  # not Linux
        return used
    return age if used <= age <= _MOST_WAITING * used else used


_IMPORTS = min(_age(), _MOST_IMPORTS)


@cache
def start_seconds() -> float:
    """Seconds until a program is at its work: imports, and what its first run has to load.

    To be called before anything else is timed: what is loaded already is not loaded again.
    """
    X = np.random.default_rng(0).normal(size=(TINY, 2))
    data = Data("", "table", X, ("x1", "x2"), tuple(map(str, range(TINY))))

    def run() -> None:
        found = embed(data, Choice("kpga", parameters={"n_components": 2}))
        _page(found)
        _files(found)

    first, second = seconds_of(run), seconds_of(run)
    return _IMPORTS + max(first - second, 0.0)


def writing_seconds(data: Data, choice: Choice) -> dict[str, float]:
    """Seconds for the page and for the files of all rows, a line through those of two samples.

    The method of `choice` is one of embedding, or the mixture.
    """
    sizes = sorted({min(TINY, len(data)), min(_SAMPLE, len(data))})
    run = cluster if choice.method == "mixture" else embed
    count = int(choice.parameters["n_components"])
    times: list[dict[str, float]] = []
    for size in sizes:
        chosen = replace(choice, parameters={"n_components": min(count, size)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the run has to say it will say itself
            found = run(sample_of(data, size), chosen)
        times.append({"page": _fastest(_page, found), "files": _fastest(_files, found)})
    n = {"page": min(len(data), MAX_POINTS), "files": len(data)}
    return {name: _line(sizes, [each[name] for each in times], n[name]) for name in n}


def _fastest(work: Callable[[Any], None], found: Embedding | Clustering) -> float:
    """Seconds of work; of short work the better of two trials, which less disturbs."""
    first = seconds_of(lambda: work(found))
    return first if first > _LONG else min(first, seconds_of(lambda: work(found)))


def _line(sizes: list[int], seconds: list[float], n: int) -> float:
    """The line through the first and the last time, at n; it never falls."""
    if len(sizes) == 1:
        return seconds[0]
    slope = max((seconds[-1] - seconds[0]) / (sizes[-1] - sizes[0]), 0.0)
    return seconds[-1] + slope * (n - sizes[-1])


def _page(found: Embedding | Clustering) -> None:
    how = How(["orthodrome"])
    if isinstance(found, Embedding):
        render_report("", embedding_page(found, how))
    else:
        render_report("", clustering_page(found, how))


def _files(found: Embedding | Clustering) -> None:
    table = coordinates_table if isinstance(found, Embedding) else clusters_table
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "table.csv").write_text(table(found), encoding="utf-8")  # type: ignore[arg-type]
        save(found.model, Path(folder, "model"))
