"""Run the papers' experiments, and build a page of published results and ours.

    python experiments/reproduce.py [--full] [--again] [--only kpga/sphere …] [--page] [--out …]

A quick run takes minutes, writes into `scratch`, and is only indicative. With `--full` the papers'
protocols are run, which takes hours, and RESULTS.md is written as well. Finished jobs of a full run
are kept in experiments/<paper>/<name>.json and not run again, unless `--again` forgets them.
`--page` builds the page from existing results.

An experiment is a module experiments/<paper>/<name>.py with

- `ABOUT`: what the paper says, and the discussion;
- `jobs(quick)`: conditions and seeds, as arguments of
- `measure(*job)`: our numbers by key; numbers with the same key are repeats;
- `PARTS`: what is compared with the paper, with the variants of what the paper does not give;
- sometimes `pictures(quick)`: figures in addition to the plots of the comparisons.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from verdicts import Compared, Sample, fit

from orthodrome import datasets
from orthodrome._core.files import write_atomically
from orthodrome._core.machine import machine, versions

HERE = Path(__file__).resolve().parent
EXPERIMENTS = {
    "kpga": ("sphere", "faces", "clustering"),
    "kha": ("usps", "patches", "clustering", "motion", "denoising"),
    "rkpns": ("variance", "neighborhoods", "classification"),
    "rkhs_geo": ("preimages", "clustering", "classification"),
    "krrc": ("passiflora",),
}
EVERY = 20.0  # seconds between two savings of results

Values = dict[Any, Any]  # a number, or a list of repeats, by key


# ---------------------------------------------------------------------------- for experiments


@dataclass(frozen=True)
class About:
    """What the paper says, and the discussion of our results.

    `partial` says where our protocol differs from the paper's, even in a full run. `short` is the
    tested reason why numbers of the own method are short, or "unknown".
    """

    title: str
    where: str
    says: str
    differs: str
    tried: str
    reason: str
    partial: str = ""
    short: str = "unknown"


@dataclass(frozen=True)
class Part:
    """Comparisons that share what the paper does not give.

    `compare` returns them for one of the variants, or none if it was not run. `open` says what the
    paper does not give. `others` are variants that depart from the paper: they are shown, and give
    no verdict.
    """

    compare: Callable[[Found, Any], list[Compared]]
    variants: Sequence[Any] = ("",)
    open: str = ""
    others: Sequence[Any] = ()


class Found:
    """Our numbers by key."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __contains__(self, key: Any) -> bool:
        return joined(key) in self._values

    def __call__(self, *key: Any) -> Sample:
        """Return the repeats of a number."""
        own = self._values[joined(key)]
        return Sample(**own) if isinstance(own, dict) else Sample.of(own)

    def best(self, *key: Any, of: Iterable[Any]) -> Sample:
        """Return the sample with the largest mean, over the last part of the key."""
        return max((self(*key, each) for each in of if (*key, each) in self), key=lambda s: s.mean)


def joined(key: Any) -> str:
    """Return a key as text."""
    return " | ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def named(variant: Any) -> str:
    """Return the name of a variant; the parts of a tuple are separated by commas."""
    return ", ".join(map(named, variant)) if isinstance(variant, tuple) else str(variant)


def load(name: str) -> Any:
    """Load a data set from ORTHODROME_DATA, or from ../shared/data next to the repository.

    If it is in neither folder, load it from the cache, or download it.
    """
    folder = os.environ.get("ORTHODROME_DATA") or HERE.parents[1] / "shared" / "data"
    return datasets.load(name, data_home=folder)


def labelled(name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the complete rows of a labelled table, with unscaled features, and their classes."""
    table = load(name)
    complete = ~np.isnan(table.data).any(axis=1)
    return table.data[complete], table.target[complete]


# ---------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class Experiment:
    """A module, and where its results are."""

    paper: str
    name: str
    quick: bool

    @property
    def key(self) -> str:
        return f"{self.paper}/{self.name}"

    @property
    def folder(self) -> Path:
        return HERE / self.paper / "scratch" if self.quick else HERE / self.paper

    @property
    def file(self) -> Path:
        return self.folder / f"{self.name}.json"

    @cached_property
    def module(self) -> ModuleType:
        return importlib.import_module(f"{self.paper}.{self.name}")

    @property
    def about(self) -> About:
        return self.module.ABOUT

    @cached_property
    def results(self) -> dict[str, Any]:
        """Return the runs, the finished jobs and the values; empty ones before the first run."""
        if not self.file.exists():
            return {"runs": [], "done": [], "values": {}}
        return json.loads(self.file.read_text(encoding="utf-8"))

    def run(self) -> str:
        """Run the jobs that are not done yet; return "" or which data are missing."""
        jobs = [job for job in self.module.jobs(self.quick) if repr(job) not in self.done]
        if not jobs:
            return ""
        self.folder.mkdir(exist_ok=True)
        start = saved = time.perf_counter()
        about = {"date": datetime.date.today().isoformat(), "machine": machine()}
        about["versions"] = versions("orthodrome", "numpy", "scipy", "scikit-learn")
        self.results["runs"].append(about)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = side_by_side(self.module.measure, jobs)
                for n, (job, values) in enumerate(zip(jobs, found, strict=True), start=1):
                    self.add(job, values)
                    now = time.perf_counter()
                    about |= {"jobs": n, "seconds": round(now - start)}
                    about["warnings"] = sorted(
                        {f"{w.category.__name__}: {w.message}" for w in caught}
                    )
                    if now - saved > EVERY or n == len(jobs):
                        saved = now
                        self.save()
            except FileNotFoundError as error:
                return " ".join(str(error).split())
        self.draw()
        return ""

    @property
    def done(self) -> list[str]:
        return self.results["done"]

    def add(self, job: Any, found: Values) -> None:
        """Add the numbers of a job."""
        self.done.append(repr(job))
        for key, value in found.items():
            own = value if isinstance(value, list) else [value]
            kept = self.results["values"].setdefault(joined(key), [])
            kept += [float(f"{each:.6g}") for each in own]

    def save(self) -> None:
        lines = [
            f"{json.dumps(part)}: {json.dumps(self.results[part], ensure_ascii=False)}"
            for part in ("runs", "done")
        ]
        values = ",\n".join(
            f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(own)}"
            for key, own in self.results["values"].items()
        )
        text = "{\n" + ",\n".join([*lines, f'"values": {{\n{values}\n}}']) + "\n}\n"
        write_atomically(self.file, text.encode())

    def draw(self) -> None:
        """Write the further pictures."""
        for name, content in getattr(self.module, "pictures", lambda quick: {})(self.quick).items():
            write_atomically(self.folder / f"{self.name}_{name}", content)

    @property
    def pictures(self) -> list[Path]:
        return sorted(
            {*self.folder.glob(f"{self.name}_*.png"), *self.folder.glob(f"{self.name}_*.gif")}
        )

    @cached_property
    def parts(self) -> list[Fitted]:
        """Return the comparisons of each part, for each of its variants."""
        found, made = Found(self.results["values"]), []
        for part in self.module.PARTS:
            every = {named(each): part.compare(found, each) for each in part.variants}
            tried = {name: compared for name, compared in every.items() if compared}
            if tried:
                others = {named(each): part.compare(found, each) for each in part.others}
                made.append(Fitted(part.open, tried, others))
        return made

    @property
    def compared(self) -> list[Compared]:
        """Return the comparisons with the variants that fit best."""
        return [each for part in self.parts for each in part.tried[part.best]]


@dataclass(frozen=True)
class Fitted:
    """Comparisons by variant."""

    open: str
    tried: dict[str, list[Compared]]
    others: dict[str, list[Compared]]

    @property
    def best(self) -> str:
        """The variant that fits best, the first of equals."""
        return max(self.tried, key=lambda name: fit(self.tried[name]))


def side_by_side(function: Callable[..., Values], jobs: Sequence[Any]) -> Iterator[Values]:
    """Return `function(*job)` for each job, in order, one process per core and thread."""
    from joblib import Parallel, delayed, parallel_config

    n_jobs = min(os.cpu_count() or 1, len(jobs))
    if n_jobs < 2 or os.environ.get("OMP_NUM_THREADS") == "1":
        yield from (function(*job) for job in jobs)
        return
    with parallel_config(backend="loky", inner_max_num_threads=1):
        workers = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator")
        yield from workers(delayed(function)(*job) for job in jobs)


def experiments(quick: bool, only: Sequence[str] = ()) -> list[Experiment]:
    """Return all of them, or those that are named."""
    found = [Experiment(p, name, quick) for p, names in EXPERIMENTS.items() for name in names]
    unknown = set(only) - {each.key for each in found}
    if unknown:
        names = ", ".join(each.key for each in found)
        raise ValueError(
            f"There is no experiment {', '.join(sorted(unknown))}. There are: {names}."
        )
    return [each for each in found if not only or each.key in only]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--full", action="store_true", help="the papers' protocols; hours")
    parser.add_argument("--again", action="store_true", help="forget finished jobs of full runs")
    parser.add_argument("--only", nargs="+", default=(), help="experiments, such as kpga/sphere")
    parser.add_argument("--page", action="store_true", help="build the page, run nothing")
    parser.add_argument("--out", type=Path, default=Path("reproduction"), help="folder of the page")
    arguments = parser.parse_args()
    quick = not arguments.full
    missing = {}
    chosen = experiments(quick, arguments.only)
    for each in () if arguments.page else chosen:
        if quick or arguments.again:
            each.file.unlink(missing_ok=True)
        start = time.perf_counter()
        missing[each.key] = each.run()
        seconds = time.perf_counter() - start
        print(f"{each.key}: {seconds:.0f} s {missing[each.key]}", flush=True)
    from page import write

    print(write(chosen, arguments.out, missing, quick=quick, whole=not arguments.only))


if __name__ == "__main__":
    import reproduce

    reproduce.main()
