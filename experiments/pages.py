"""What the experiments of all papers share: data, tables, pages, figures, the command line."""

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
KEPT: list[int] = []  # how many jobs of each call of side_by_side an earlier run had finished

Row = dict[str, Any]

NEEDS_DATA = 3  # the status of a script that ends for want of data


# ---------------------------------------------------------------------------- data


def load(name: str) -> Any:
    """Load a data set from ORTHODROME_DATA, else from ../shared/data beside the repository.

    What is in neither is looked for in the cache, and then where it is published.
    """
    folder = os.environ.get("ORTHODROME_DATA") or HERE.parents[1] / "shared" / "data"
    return datasets.load(name, data_home=folder)


def labelled(name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The complete rows of a labelled table, features as they are published, and their classes."""
    table_read = load(name)
    complete = ~np.isnan(table_read.data).any(axis=1)
    return table_read.data[complete], table_read.target[complete]


# ---------------------------------------------------------------------------- runs


def side_by_side(function: Callable[..., Any], jobs: Sequence[Any], *, quick: bool) -> list[Any]:
    """`function(*job)` of each job, in as many processes as there are cores; in this one if quick.

    What the function prints appears as it happens, each process computes with one thread, and a bar
    tells how much time is left. Of a run that is not quick every finished job is kept in
    scratch/runs beside the script, and not run again until the script or the library has changed,
    if what the function returns are lists, dictionaries by strings, strings and numbers.
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
    """The same steps, with a bar that tells how much time is left, where there is a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(steps, "runs", total=total, console=console, disable=not console.is_terminal)


@dataclass(frozen=True)
class Kept:
    """Results of finished jobs, one file each, under a name that says what made them."""

    folder: Path
    origin: str

    @staticmethod
    def of(function: Callable[..., Any]) -> Kept:
        """Those of a function in a script: of this script, its neighbours and this library."""
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
        """The result of a finished job, or None."""
        try:
            return json.loads(self._file(job).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def write(self, job: Any, result: Any) -> Any:
        """Keep a result, unless JSON has no form for it, and return it as it will be read."""
        try:
            text = json.dumps(_plainly(result))
        except TypeError:
            return result
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file(job), text.encode())
        return json.loads(text)


def _plainly(value: Any) -> Any:
    """The same in lists, dictionaries by strings, and Python's numbers."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a dictionary by something else than strings")
        return {key: _plainly(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plainly(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


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
    compared: Callable[[list[Row]], list[Compared]] | None = None,
) -> None:
    """Write name.csv, and from what it says name.md and name.png; a quick run into scratch/.

    `home` is the folder of the experiment. What `compared` says goes to name_compared.csv, and how
    the run was made to name_run.json; see :func:`record`.
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
    """Write what the paper says beside what we got, and how the run was made."""
    folder = home / "scratch" if quick else home
    folder.mkdir(exist_ok=True)
    rows = [asdict(each) | {"finding": each.finding} for each in compared]
    write_rows(folder / f"{name}_compared.csv", rows)
    run = {
        "command": f"python experiments/{home.name}/{name}.py" + (" --quick" if quick else ""),
        "quick": quick,
        "date": datetime.date.today().isoformat(),
        "seconds": round(time.perf_counter() - STARTED, 1),
        "kept": sum(KEPT),  # jobs of an earlier run, whose time is not in the seconds
        "machine": machine(),
        "versions": versions("orthodrome", "numpy", "scipy", "scikit-learn", "numba"),
    }
    write_atomically(folder / f"{name}_run.json", (json.dumps(run, indent=1) + "\n").encode())


def read_compared(file: Path) -> list[Compared]:
    """Read what `record` has written."""
    names = [field.name for field in fields(Compared)]
    return [Compared(**{key: row[key] for key in names}) for row in read_rows(file)]


def published(home: Path, name: str) -> dict[str, Any]:
    """What a paper says of an experiment: published.toml in its folder."""
    return tomllib.loads((home / "published.toml").read_text(encoding="utf-8"))[name]


def error_of_mean(values: NDArray[np.float64]) -> float:
    """The standard error of a mean; 0 of one value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def paired(where: str, what: str, gains: NDArray[np.float64]) -> Compared:
    """An order, from differences within repeats; one that diverged contradicts it.

    Where a difference is not known (NaN) the order is open, unless another contradicts it.
    """
    if not np.isfinite(gains).all():
        worst = -math.inf if np.any(gains == -math.inf) else float(np.max(gains))
        return Compared.order(where, what, worst, 0.0)
    return Compared.order(where, what, float(np.mean(gains)), error_of_mean(gains))


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
    """Run `main` with what the command line says; without data, say which and end."""
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
