"""What the experiments of all papers share: data, tables, pages, figures, the command line."""

from __future__ import annotations

import argparse
import csv
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthodrome import datasets

HERE = Path(__file__).resolve().parent

Row = dict[str, Any]


# ---------------------------------------------------------------------------- data


def load(name: str) -> Any:
    """Load a data set from ORTHODROME_DATA, else from ../shared/data beside the repository."""
    folder = os.environ.get("ORTHODROME_DATA") or HERE.parents[1] / "shared" / "data"
    return datasets.load(name, data_home=folder)


def labelled(name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The complete rows of a labelled table, features as they are published, and their classes."""
    table_read = load(name)
    complete = ~np.isnan(table_read.data).any(axis=1)
    return table_read.data[complete], table_read.target[complete]


def side_by_side(function: Callable[..., Any], jobs: Sequence[Any], *, quick: bool) -> list[Any]:
    """`function(*job)` of each job, in as many processes as there are cores; in this one if quick.

    What the function prints appears as it happens, and each process computes with one thread.
    """
    if quick:
        return [function(*job) for job in jobs]
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        return Parallel(n_jobs=os.cpu_count(), batch_size=1)(delayed(function)(*j) for j in jobs)


# ---------------------------------------------------------------------------- what is written


def scientific(value: float) -> str:
    """A number with two digits; a word for infinity."""
    return f"{value:.1e}" if math.isfinite(value) else "diverged"


def count(n: int, one: str, many: str | None = None) -> str:
    """A number of things."""
    return f"{n} {one}" if n == 1 else f"{n} {many or one + 's'}"


def plain(value: float) -> str:
    """A parameter as it was set."""
    return f"{value:g}"


def median_and_range(values: Sequence[float], form: Callable[[float], str] = scientific) -> str:
    """The median, and in brackets the least and the largest where they differ."""
    middle, low, high = (form(float(f(values))) for f in (np.median, min, max))
    return middle if low == high else f"{middle} ({low} … {high})"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return [*lines, *("| " + " | ".join(cells) + " |" for cells in rows)]


def write_rows(file: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV, numbers with six digits."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def read_rows(file: Path) -> list[Row]:
    """Read what `write_rows` has written."""
    with file.open(newline="", encoding="utf-8") as stream:
        return [
            {name: _parsed(cell) for name, cell in row.items()} for row in csv.DictReader(stream)
        ]


def _parsed(cell: str) -> Any:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def publish(
    home: Path,
    name: str,
    rows: Sequence[Row],
    page: Callable[[list[Row]], str],
    figure: Callable[[list[Row]], Any],
    *,
    quick: bool,
) -> None:
    """Write name.csv, and from what it says name.md and name.png; a quick run into scratch/.

    `home` is the folder of the experiment.
    """
    folder = home / "scratch" if quick else home
    folder.mkdir(exist_ok=True)
    write_rows(folder / f"{name}.csv", rows)
    kept = read_rows(folder / f"{name}.csv")
    (folder / f"{name}.md").write_text(page(kept), encoding="utf-8")
    figure(kept).savefig(folder / f"{name}.png", dpi=144, metadata={"Software": None})
    print(page(kept))
    print(f"Wrote {name}.csv, .md and .png in {folder}")


def new_figure(width: float, height: float, rows: int, columns: int, **options: Any) -> Any:
    """A figure with its axes, without any global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="0.92", linewidth=0.8)
        ax.set_axisbelow(True)
    return figure, axes


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print what was done and the time of the processor that it took."""
    since = time.process_time()
    yield
    print(f"{what}: {time.process_time() - since:.1f} s", flush=True)


def command_line(main: Callable[[bool], None], description: str | None) -> None:
    """Run `main` with what the command line says."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small run, written to scratch/")
    with timed("All"):
        main(parser.parse_args().quick)
