"""Run the papers' experiments and build one page: what each paper says, what we get, a verdict.

    python experiments/reproduce.py [--full] [--only kpga/sphere …] [--page] [--out FOLDER]

A quick run takes minutes, writes into the folders `scratch` and only ever says *indicative*; with
`--full` the papers' protocols are run, which takes hours, and experiments/RESULTS.md is written as
well. What a paper says stands in `published.toml` in its folder, the rule of the verdicts in
verdicts.py. `--page` builds the page from what is there, without running anything.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pages import NEEDS_DATA, advancing, read_compared, table
from verdicts import NUMBER, Compared, tally, verdict

from orthodrome.plots.report import (
    Block,
    Code,
    Note,
    Picture,
    Section,
    Table,
    Text,
    write_atomically,
    write_report,
)

HERE = Path(__file__).resolve().parent

PAPERS = {
    "kpga": "Awate, Yu and Whitaker, Kernel Principal Geodesic Analysis (2014)",
    "kha": "Schraudolph, Günter and Vishwanathan, Fast Iterative Kernel PCA (2006)",
    "rkpns": "Awate, Dhar and Kulkarni, Robust Kernel Principal Nested Spheres (2016)",
    "rkhs_geo": "Courty, Burger and Marteau, Geodesic Analysis on the RKHS Hypersphere (2012)",
    "krrc": "Lee and Patrangenaru, Extrinsic Kernel Ridge Regression Classifier (2019)",
}
NOT_RUN = "not run"
WIDEST = 1000  # CSS pixels of a picture on the page


@dataclass(frozen=True)
class Experiment:
    """A script, and what its paper says."""

    paper: str
    name: str
    published: dict[str, Any]

    @property
    def key(self) -> str:
        return f"{self.paper}/{self.name}"

    def folder(self, quick: bool) -> Path:
        return HERE / self.paper / "scratch" if quick else HERE / self.paper

    def pictures(self, quick: bool) -> list[Path]:
        """Its figures: name.png and name_something.png."""
        folder = self.folder(quick)
        more = sorted(folder.glob(f"{self.name}_*.png"))
        return [path for path in (folder / f"{self.name}.png", *more) if path.exists()]


@dataclass(frozen=True)
class Outcome:
    """What came of an experiment: its comparisons and how it was run, or why there is nothing."""

    experiment: Experiment
    compared: list[Compared]
    run: dict[str, Any]
    missing: str = ""

    @property
    def verdict(self) -> str:
        if self.missing:
            return NOT_RUN
        return verdict(self.compared, quick=self.run["quick"])


def experiments(only: Sequence[str] = ()) -> list[Experiment]:
    """All of them, in the order of the papers, or those that are named."""
    found = []
    for paper in PAPERS:
        said = tomllib.loads((HERE / paper / "published.toml").read_text(encoding="utf-8"))
        found += [Experiment(paper, name, about) for name, about in said.items()]
    unknown = set(only) - {each.key for each in found}
    if unknown:
        names = ", ".join(each.key for each in found)
        raise ValueError(
            f"There is no experiment {', '.join(sorted(unknown))}. There are: {names}."
        )
    return [each for each in found if not only or each.key in only]


# ---------------------------------------------------------------------------- runs


def run(experiment: Experiment, *, quick: bool) -> str:
    """Run a script; return "" or why there is no result."""
    folder = experiment.folder(quick)
    folder.mkdir(exist_ok=True)
    stale = folder / f"{experiment.name}_run.json"
    if quick:
        stale.unlink(missing_ok=True)  # the page must not show an older run
    command = [sys.executable, str(HERE / experiment.paper / f"{experiment.name}.py")]
    start = time.perf_counter()
    finished = subprocess.run(
        command + ["--quick"] * quick,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )
    seconds = time.perf_counter() - start
    log = experiment.folder(True) / f"{experiment.name}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text(finished.stdout + finished.stderr, encoding="utf-8")
    print(f"{experiment.key}: {seconds:.0f} s, status {finished.returncode}", flush=True)
    if finished.returncode == NEEDS_DATA:
        return finished.stderr.strip().split("\n")[-1]
    if finished.returncode:
        raise RuntimeError(f"{experiment.key} failed; what it said is in {log}:\n{finished.stderr}")
    return ""


def outcome(experiment: Experiment, *, quick: bool, missing: str = "") -> Outcome:
    """Read what a script has written."""
    folder = experiment.folder(quick)
    how = folder / f"{experiment.name}_run.json"
    if missing or not how.exists():
        return Outcome(experiment, [], {}, missing or "It has not been run.")
    compared = read_compared(folder / f"{experiment.name}_compared.csv")
    return Outcome(experiment, compared, json.loads(how.read_text(encoding="utf-8")))


# ---------------------------------------------------------------------------- the page


def page(outcomes: Sequence[Outcome], *, quick: bool) -> list[Section]:
    return [Section("Summary", [*summary(outcomes, quick)]), *map(section, outcomes)]


def summary(outcomes: Sequence[Outcome], quick: bool) -> Iterable[Block]:
    if quick:
        yield Note(
            "This is a quick run: fewer repeats, sets and parameters than the papers have. Its "
            "numbers are indicative, and no verdict is made from them; make reproduce-full makes "
            "one, and experiments/RESULTS.md has the last."
        )
    yield Text(
        "A published number agrees if it is within two standard errors of ours, or within the "
        "deviation printed with it; a published order holds if our difference is more than two "
        "standard errors. Reproduced: all numbers agree and no order is contradicted. Same "
        "ordering: all orders hold. The rule is experiments/verdicts.py."
    )
    rows = [
        [
            each.experiment.key,
            each.experiment.published["title"],
            each.verdict,
            each.missing or tally(each.compared),
            seconds_of(each),
        ]
        for each in outcomes
    ]
    yield Table("Experiments", ["experiment", "what", "verdict", "compared", "seconds"], rows)


def seconds_of(each: Outcome) -> str:
    seconds = each.run.get("seconds")
    if seconds is None:
        return ""
    return f"{seconds:.0f}" + (" (resumed)" if each.run.get("kept") else "")


def section(each: Outcome) -> Section:
    said = each.experiment.published
    blocks: list[Block] = [
        Text(f"{PAPERS[each.experiment.paper]}: {said['where']}."),
        Text(f"The paper: {' '.join(said['says'].split())}"),
    ]
    if each.missing:
        blocks.append(Note(f"Not run. {each.missing}"))
    else:
        blocks.append(Note(f"{each.verdict.capitalize()}: {tally(each.compared)}."))
        if each.compared:
            blocks.append(comparison_table(each.compared))
        blocks += pictures(each)
    if said.get("discussion"):
        blocks.append(Text(f"Discussion: {' '.join(said['discussion'].split())}"))
    if not each.missing:
        blocks.append(Code(each.run["command"], how_it_was_run(each.run)))
    return Section(f"{said['title']} ({each.experiment.key})", blocks)


def comparison_table(compared: Sequence[Compared]) -> Table:
    rows = [
        [
            each.what,
            each.finding,
            f"{each.published:.4g}" if each.kind == NUMBER else "",
            f"{each.deviation:.2g}" if each.deviation else "",
            f"{each.ours:.4g}",
            f"{each.error:.2g}" if each.error else "",
            each.where,
        ]
        for each in compared
    ]
    header = ["what", "finding", "published", "±", "ours", "± (s.e.)", "in the paper"]
    return Table("What is published, and ours (of an order: our difference)", header, rows)


def pictures(each: Outcome) -> Iterable[Picture]:
    title = each.experiment.published["title"]
    for path in each.experiment.pictures(each.run["quick"]):
        yield Picture(
            f"{each.experiment.paper}-{path.stem}",
            path.read_bytes(),
            alt=f"{title}: figure of the experiment {each.experiment.key}.",
            caption=f"{path.name}, of this run.",
            width=WIDEST,
        )


def how_it_was_run(run: dict[str, Any]) -> str:
    if run["seconds"] is None:
        return f"{run['date']}; time and machine were not recorded then."
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"])
    return f"{run['date']}, {run['seconds']:.0f} s on {run['machine']}. {versions}."


def results(outcomes: Sequence[Outcome]) -> str:
    """experiments/RESULTS.md: the full runs in one table."""
    rows = []
    for each in outcomes:
        said, paper = each.experiment.published, each.experiment.paper
        link = f"[{each.experiment.key}]({paper}/{each.experiment.name}.md)"
        how = [each.run["date"], seconds_of(each)] if not each.missing else ["", ""]
        compared = each.missing or tally(each.compared)
        rows.append([link, said["title"], said["where"], each.verdict, compared, *how])
    machines = sorted({each.run["machine"] for each in outcomes if each.run.get("machine")})
    text = [
        "# The five papers, reproduced",
        "",
        "Written by `experiments/reproduce.py --full` (`make reproduce-full`); do not edit. The "
        "rule of the verdicts: [verdicts.py](verdicts.py); what the papers print: `published.toml` "
        "in "
        f"each folder. Machine: {'; '.join(machines)}.",
        "",
        *table(
            ["experiment", "what", "in the paper", "verdict", "compared", "date", "seconds"], rows
        ),
        "",
        "## Where we differ",
        "",
    ]
    for each in outcomes:
        said = each.experiment.published
        if each.verdict not in ("reproduced",) and said.get("discussion"):
            text.append(
                f"- **{said['title']}** ({each.verdict}): {' '.join(said['discussion'].split())}"
            )
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--full", action="store_true", help="the papers' protocols; hours")
    parser.add_argument("--only", nargs="+", default=(), help="experiments, such as kpga/sphere")
    parser.add_argument("--page", action="store_true", help="build the page, run nothing")
    parser.add_argument("--out", type=Path, default=Path("reproduction"), help="folder of the page")
    arguments = parser.parse_args()
    quick = not arguments.full
    chosen = experiments(arguments.only)
    found = []
    for each in advancing(chosen, len(chosen)):
        missing = "" if arguments.page else run(each, quick=quick)
        found.append(outcome(each, quick=quick, missing=missing))
    lead = "Each paper's tables and figures, made by orthodrome, beside what was published."
    target = write_report(
        arguments.out / "index.html",
        "The five papers, reproduced",
        page(found, quick=quick),
        lead=lead,
    )
    if arguments.full and not arguments.only:
        write_atomically(HERE / "RESULTS.md", results(found).encode("utf-8"))
    print(target.resolve())


if __name__ == "__main__":
    main()
