"""Functions shared by all experiments: data, tables, pages, figures, the command line."""

from __future__ import annotations

import argparse
import csv
import datetime
import hashlib
import inspect
import json
import math
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from verdicts import Compared

from orthodrome import datasets
from orthodrome._core.files import write_atomically
from orthodrome._core.machine import machine, versions

HERE = Path(__file__).resolve().parent
STARTED = time.perf_counter()
KEPT: list[int] = []  # number of finished jobs of an earlier run, for each call of side_by_side

Row = dict[str, Any]

NEEDS_DATA = 3  # exit status of a script that lacks data


# ---------------------------------------------------------------------------- data


def load(name: str) -> Any:
    """Load a data set from ORTHODROME_DATA, or from ../shared/data next to the repository.

    If it is in neither folder, load it from the cache, or download it.
    """
    folder = os.environ.get("ORTHODROME_DATA") or HERE.parents[1] / "shared" / "data"
    return datasets.load(name, data_home=folder)


def labelled(name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the complete rows of a labelled table, with unscaled features, and their classes."""
    table_read = load(name)
    complete = ~np.isnan(table_read.data).any(axis=1)
    return table_read.data[complete], table_read.target[complete]


# ---------------------------------------------------------------------------- runs


def side_by_side(function: Callable[..., Any], jobs: Sequence[Any], *, quick: bool) -> list[Any]:
    """Return `function(*job)` for each job, computed in one process per core, or here if quick.

    Each process uses one thread, and a progress bar shows the remaining time. Unless the run is
    quick, finished jobs are stored in scratch/runs next to the script, and not run again until the
    script or the library changes. This requires results that JSON can store.
    """
    if quick:
        return [function(*job) for job in jobs]
    from joblib import Parallel, delayed, parallel_config

    kept = Kept.of(function)
    found = {number: result for number, job in enumerate(jobs) if (result := kept.read(job))}
    missing = [number for number in range(len(jobs)) if number not in found]
    KEPT.append(len(found))
    if found:
        print(f"{len(found)} of {len(jobs)} were finished before")
    with parallel_config(backend="loky", inner_max_num_threads=1):
        workers = Parallel(n_jobs=os.cpu_count(), batch_size=1, return_as="generator_unordered")
        results = workers(delayed(_numbered)(function, n, jobs[n]) for n in missing)
        for number, result in advancing(results, len(missing)):
            found[number] = kept.write(jobs[number], result)
    return [found[number] for number in range(len(jobs))]


def _numbered(function: Callable[..., Any], number: int, job: Any) -> tuple[int, Any]:
    return number, function(*job)


def advancing(steps: Iterable[Any], total: int) -> Iterator[Any]:
    """Yield the steps, with a progress bar if there is a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(steps, "runs", total=total, console=console, disable=not console.is_terminal)


@dataclass(frozen=True)
class Kept:
    """Results of finished jobs, in one file each, named by a hash of code and job."""

    folder: Path
    origin: str

    @staticmethod
    def of(function: Callable[..., Any]) -> Kept:
        """Return the store for a function; its key is a hash of the folder and the library."""
        script = Path(inspect.getfile(function)).resolve()
        library = Path(inspect.getfile(datasets)).resolve().parents[1]
        sources = [*script.parent.glob("*.py"), *HERE.glob("*.py"), *library.rglob("*.py")]
        digest = hashlib.sha256()
        for source in sorted(sources):
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
        folder = script.parent / "scratch" / "runs" / script.stem
        return Kept(folder, f"{function.__name__} {digest.hexdigest()}")

    def _file(self, job: Any) -> Path:
        name = hashlib.sha256(f"{self.origin} {job!r}".encode()).hexdigest()[:24]
        return self.folder / f"{name}.json"

    def read(self, job: Any) -> Any:
        """Return the result of a finished job, or None."""
        try:
            return json.loads(self._file(job).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def write(self, job: Any, result: Any) -> Any:
        """Store a result if JSON can, and return it as it will be read."""
        try:
            text = json.dumps(_plainly(result))
        except TypeError:
            return result
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file(job), text.encode())
        return json.loads(text)


def _plainly(value: Any) -> Any:
    """Return a value with lists, dictionaries with string keys, and Python numbers."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("dictionary keys must be strings")
        return {key: _plainly(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plainly(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


# ---------------------------------------------------------------------------- output


def scientific(value: float) -> str:
    """Format a number with two digits, or infinity as "diverged"."""
    return f"{value:.1e}" if math.isfinite(value) else "diverged"


def count(n: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun."""
    return f"{n} {one}" if n == 1 else f"{n} {many or one + 's'}"


def plain(value: float) -> str:
    """Format a parameter."""
    return f"{value:g}"


def median_and_range(values: Sequence[float], form: Callable[[float], str] = scientific) -> str:
    """Format the median, with minimum and maximum in brackets if they differ."""
    middle, low, high = (form(float(f(values))) for f in (np.median, min, max))
    return middle if low == high else f"{middle} ({low} … {high})"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
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
    """Read rows that `write_rows` has written."""
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
    compared: Callable[[list[Row]], list[Compared]] | None = None,
) -> None:
    """Write name.csv, and from its rows name.md and name.png; a quick run writes to scratch/.

    `home` is the folder of the experiment. The result of `compared` is written to
    name_compared.csv, and details of the run to name_run.json; see :func:`record`.
    """
    folder = home / "scratch" if quick else home
    folder.mkdir(exist_ok=True)
    write_rows(folder / f"{name}.csv", rows)
    kept = read_rows(folder / f"{name}.csv")
    (folder / f"{name}.md").write_text(page(kept), encoding="utf-8")
    figure(kept).savefig(folder / f"{name}.png", dpi=144, metadata={"Software": None})
    if compared is not None:
        record(home, name, compared(kept), quick=quick)
    print(page(kept))
    print(f"Wrote {name}.csv, .md and .png in {folder}")


def record(home: Path, name: str, compared: Sequence[Compared], *, quick: bool) -> None:
    """Write published and measured values, and details of the run."""
    folder = home / "scratch" if quick else home
    folder.mkdir(exist_ok=True)
    rows = [asdict(each) | {"finding": each.finding} for each in compared]
    write_rows(folder / f"{name}_compared.csv", rows)
    run = {
        "command": f"python experiments/{home.name}/{name}.py" + (" --quick" if quick else ""),
        "quick": quick,
        "date": datetime.date.today().isoformat(),
        "seconds": round(time.perf_counter() - STARTED, 1),
        "kept": sum(KEPT),  # jobs of an earlier run, not included in the seconds
        "machine": machine(),
        "versions": versions("orthodrome", "numpy", "scipy", "scikit-learn", "numba"),
    }
    write_atomically(folder / f"{name}_run.json", (json.dumps(run, indent=1) + "\n").encode())


def read_compared(file: Path) -> list[Compared]:
    """Read comparisons that `record` has written."""
    names = [field.name for field in fields(Compared)]
    return [Compared(**{key: row[key] for key in names}) for row in read_rows(file)]


def published(home: Path, name: str) -> dict[str, Any]:
    """Return the published results of an experiment, from published.toml in its folder."""
    return tomllib.loads((home / "published.toml").read_text(encoding="utf-8"))[name]


def error_of_mean(values: NDArray[np.float64]) -> float:
    """Return the standard error of a mean; 0 for one value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def paired(where: str, what: str, gains: NDArray[np.float64]) -> Compared:
    """Return an order from differences within repeats; a divergence contradicts it.

    If a difference is NaN, the order is open, unless a divergence contradicts it.
    """
    if not np.isfinite(gains).all():
        worst = -math.inf if np.any(gains == -math.inf) else float(np.max(gains))
        return Compared.order(where, what, worst, 0.0)
    return Compared.order(where, what, float(np.mean(gains)), error_of_mean(gains))


def new_figure(width: float, height: float, rows: int, columns: int, **options: Any) -> Any:
    """Return a figure and its axes, without global state."""
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
    """Print what was done and its CPU time."""
    since = time.process_time()
    yield
    print(f"{what}: {time.process_time() - since:.1f} s", flush=True)


def command_line(main: Callable[[bool], None], description: str | None) -> None:
    """Run `main` with the options of the command line; exit with a message if data are missing."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small run, written to scratch/")
    quick = parser.parse_args().quick
    try:
        with timed("All"):
            main(quick)
    except FileNotFoundError as error:
        if not str(error).strip():
            raise
        print(" ".join(str(error).split()), file=sys.stderr)
        sys.exit(NEEDS_DATA)
