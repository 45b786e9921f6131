"""Run the papers' experiments and build a page of published results, ours, and verdicts.

    python experiments/reproduce.py [--full] [--only kpga/sphere …] [--page] [--out FOLDER]

A quick run takes minutes, writes into the folders `scratch`, and gives no verdict but *indicative*.
With `--full` the papers' protocols are run, which takes hours, and RESULTS.md is written as well.
The file `published.toml` in the folder of each paper has its results, and says where our
protocol differs. The rule of the verdicts is in verdicts.py. `--page` builds the page from existing
results, without running anything; with `--full` it writes RESULTS.md too. Warnings of the scripts
are counted, printed and shown on the page.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pages import NEEDS_DATA, advancing, read_compared, table
from verdicts import NUMBER, Compared, tally, verdict

from orthodrome._core.files import write_atomically
from orthodrome.plots.report import (
    Block,
    Code,
    Note,
    Picture,
    Section,
    Table,
    Text,
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
# how the page of full runs was made: by running them or not
HOW_MADE = {
    True: "This page was written by `experiments/reproduce.py --full` (`make reproduce-full`), "
    "which ran every experiment.",
    False: "This page was written by `experiments/reproduce.py --full --page`, which does not run "
    "experiments. It shows the results of the last full run of each experiment; the table gives "
    "the date of that run. If a comparison was changed later, it was computed again from the CSV "
    "file of the run.",
}
WIDEST = 1000  # CSS pixels of a picture on the page
# a line such as "/a/b.py:12: UserWarning: what is the matter"
WARNING = re.compile(r"^.*?:\d+: (\w*Warning: .*)$", re.MULTILINE)
# what the parts of a discussion begin with
PARTS = re.compile(
    r"(?=What differs: |What was tried: |Likely reason: |What it (?:also )?depends on: )"
)
RESUMED = " Resumed runs use parts of an earlier run, whose time is not included."
# the number of threads in the description of a machine
THREADS = re.compile(r", (\d+) threads?")
# the rule of verdicts.py
RULE = (
    "A published number agrees with ours if they differ by at most two standard errors of our "
    "number, or by at most the deviation that is printed in the paper. A published order says that "
    "one method is better than another. It holds if our difference in this direction is more than "
    "two standard errors above zero. It is contradicted if the difference is more than two "
    "standard errors below zero. Otherwise it is open. An experiment is “reproduced” if the paper "
    "has numbers, all of them agree, and no order is contradicted; orders may be open. It has the "
    "“same ordering” if the paper has orders and all of them hold, even if numbers differ. "
    "Otherwise it is “not reproduced”. “(partial)” after a verdict means that our protocol omits "
    "or changes a part of the paper's protocol. The differences are described below."
)
WORDS = {
    "KHA": "the kernel Hebbian algorithm with a constant gain",
    "KHA/t": "KHA with a gain that decays over time",
    "KHA/et": "KHA/t with a gain that also depends on the eigenvalue of each component",
    "KHA-SMD": "KHA/et with gains that are adapted by stochastic meta-descent",
    "η0": "the initial gain",
    "ρ, ρ_0": "the logarithms of the gain factors of KHA-SMD, and their initial value",
    "μ": "the rate at which KHA-SMD changes ρ",
    "automatic gains": "the library's default gains, which are not tuned by hand",
    "excess error": "the difference between the reconstruction error and the smallest possible "
    "one, as a fraction of the smallest possible one",
    "decade": "a factor of ten",
    "pass": "one use of every row of the data",
    "Rayleigh-Ritz step": "replaces the components by the best ones within their span",
    "mode": "a component; Q and D are numbers of modes",
    "p": "the power of the residuals that robust methods minimise",
    "κ": "the number of neighbours",
    "part, half, split": "a random subset of the data, on which an experiment is repeated",
    "seed": "a random start of a method on the same data",
    "draw": "a random sample of the data or of the noise",
    "variant": "a choice that the paper leaves open, such as the scaling of the features",
    "features as published": "features that are not scaled",
    "plain kernel, geodesic kernel": "the Gaussian kernel, and its version in the tangent space",
    "RRC, KRRC": "the ridge regression classifier, and the kernel ridge regression classifier",
    "Veronese-Whitney kernel (VW)": "a Gaussian kernel of planar shapes",
}


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
        """Its figures: name.png, name_something.png, and what moves, name_something.gif."""
        folder = self.folder(quick)
        more = [
            path for end in ("png", "gif") for path in sorted(folder.glob(f"{self.name}_*.{end}"))
        ]
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

    @property
    def partial(self) -> str:
        """What of the paper's protocol a full run leaves out, or does otherwise."""
        return in_one_line(self.experiment.published.get("partial", ""))

    @property
    def shown(self) -> str:
        """The verdict, and whether it is of a part."""
        return self.verdict + (" (partial)" if self.partial and not self.missing else "")


def in_one_line(text: str) -> str:
    return " ".join(text.split())


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
    """Run a script; return "" or why there is no result.

    What an earlier run has recorded is taken away first: if this one fails there is no result.
    """
    folder = experiment.folder(quick)
    folder.mkdir(exist_ok=True)
    (folder / f"{experiment.name}_run.json").unlink(missing_ok=True)
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
    warned = warnings_in(finished.stderr)
    said = f", {len(warned)} warnings" if warned else ""
    print(f"{experiment.key}: {seconds:.0f} s, status {finished.returncode}{said}", flush=True)
    for each in dict.fromkeys(warned):
        print(f"  {each} ({warned.count(each)} times)", flush=True)
    if finished.returncode == NEEDS_DATA:
        return finished.stderr.strip().split("\n")[-1]
    if finished.returncode:
        raise RuntimeError(f"{experiment.key} failed; what it said is in {log}:\n{finished.stderr}")
    note_warnings(folder / f"{experiment.name}_run.json", warned)
    return ""


def warnings_in(said: str) -> list[str]:
    """The warnings among what a script wrote to the standard error, without their places."""
    return WARNING.findall(said)


def note_warnings(how: Path, warned: Sequence[str]) -> None:
    """Keep warnings with how the run was made."""
    if how.exists():
        run = json.loads(how.read_text(encoding="utf-8")) | {"warnings": list(warned)}
        write_atomically(how, (json.dumps(run, indent=1) + "\n").encode())


def outcome(experiment: Experiment, *, quick: bool, missing: str = "") -> Outcome:
    """Read what a script has written."""
    folder = experiment.folder(quick)
    how = folder / f"{experiment.name}_run.json"
    if missing or not how.exists():
        return Outcome(experiment, [], {}, missing or "It has not been run.")
    compared = read_compared(folder / f"{experiment.name}_compared.csv")
    return Outcome(experiment, compared, json.loads(how.read_text(encoding="utf-8")))


# ---------------------------------------------------------------------------- the page


def page(outcomes: Sequence[Outcome], *, quick: bool, ran: bool) -> list[Section]:
    return [Section("Summary", [*summary(outcomes, quick, ran)]), *map(section, outcomes)]


def summary(outcomes: Sequence[Outcome], quick: bool, ran: bool) -> Iterable[Block]:
    if quick:
        yield Note(
            "This is a quick run, with fewer repeats, sets and parameters than the papers. Its "
            "numbers are only indicative and give no verdict. make reproduce-full gives verdicts; "
            "the last ones are in experiments/RESULTS.md."
        )
    else:
        yield Note(HOW_MADE[ran].replace("`", ""))
    yield Text(f"{RULE} The rule is experiments/verdicts.py.")
    warned = {each.experiment.key: len(each.run.get("warnings", ())) for each in outcomes}
    if any(warned.values()):
        text = ", ".join(f"{key} ({n})" for key, n in warned.items() if n)
        yield Note(f"Unexpected warnings: {text}; see the sections of these experiments.")
    rows = [
        [
            each.experiment.key,
            each.experiment.published["title"],
            each.shown,
            each.missing or tally(each.compared),
            each.run.get("date", ""),
            seconds_of(each),
        ]
        for each in outcomes
    ]
    yield Table(
        "Experiments", ["experiment", "title", "verdict", "comparisons", "date", "seconds"], rows
    )


def seconds_of(each: Outcome) -> str:
    seconds = each.run.get("seconds")
    if seconds is None:
        return ""
    return f"{seconds:.0f}" + (" (resumed)" if each.run.get("kept") else "")


def section(each: Outcome) -> Section:
    said = each.experiment.published
    blocks: list[Block] = [
        Text(f"{PAPERS[each.experiment.paper]}: {said['where']}."),
        Text(f"The paper: {in_one_line(said['says'])}"),
    ]
    if each.partial:
        blocks.append(
            Text(f"Differences from the paper's protocol, even in a full run: {each.partial}")
        )
    if each.missing:
        blocks.append(Note(f"Not run. {each.missing}"))
    else:
        blocks.append(Note(f"{each.verdict.capitalize()}: {tally(each.compared)}."))
        if each.compared:
            blocks.append(comparison_table(each.compared))
        blocks += pictures(each)
    blocks += map(Text, discussion(each.experiment))
    if not each.missing:
        warned = each.run.get("warnings", [])
        for text in dict.fromkeys(warned):
            blocks.append(Note(f"Warning, {warned.count(text)} times: {text}"))
        blocks.append(Code(each.run["command"], how_it_was_run(each.run)))
    return Section(f"{said['title']} ({each.experiment.key})", blocks)


def comparison_table(compared: Sequence[Compared]) -> Table:
    rows = [
        [
            each.finding,
            each.what,
            f"{each.published:.4g}" if each.kind == NUMBER else "",
            f"{each.deviation:.2g}" if each.deviation else "",
            f"{each.ours:.4g}".replace("inf", "∞"),
            f"{each.error:.2g}" if each.error else "",
            each.where,
        ]
        for each in compared
    ]
    # the first column does not wrap, and what is compared may be long
    header = ["finding", "what", "published", "±", "ours", "± (s.e.)", "in the paper"]
    return Table("Published and measured values (for an order: our difference)", header, rows)


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
        return f"{run['date']}; time and machine were not recorded."
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"])
    return f"{run['date']}, {run['seconds']:.0f} s on {run['machine']}. {versions}."


def results(outcomes: Sequence[Outcome], *, ran: bool) -> str:
    """experiments/RESULTS.md: the full runs in one table, and where they differ from the papers.

    `ran` says whether they were run for it, or found as earlier runs had left them.
    """
    rows = []
    for each in outcomes:
        said, paper = each.experiment.published, each.experiment.paper
        link = f"[{each.experiment.key}]({paper}/{each.experiment.name}.md)"
        how = [each.run["date"], seconds_of(each)] if not each.missing else ["", ""]
        compared = each.missing or tally(each.compared)
        rows.append([link, said["title"], said["where"], each.shown, compared, *how])
    header = ["experiment", "title", "in the paper", "verdict", "comparisons"]
    resumed = any(each.run.get("kept") for each in outcomes)
    text = [
        "# Reproduction of five papers",
        "",
        f"{HOW_MADE[ran]} Do not edit this page. The folder of each paper has the published "
        "results in `published.toml`, and every comparison in the files `*_compared.csv`. Machine: "
        f"{machines(outcomes)}.",
        "",
        "The papers:",
        "",
        *(f"- **{paper}**: {title}" for paper, title in PAPERS.items()),
        "",
        f"The rule ([verdicts.py](verdicts.py)): {RULE}",
        "",
        *table([*header, "date of the run", "seconds"], rows),
        "",
        f"Seconds are wall-clock time on a machine that also ran other jobs.{RESUMED * resumed}",
        "",
        "## Terms",
        "",
        *(f"- **{word}**: {meaning}." for word, meaning in WORDS.items()),
        "",
        "## Differences from the papers' protocols",
        "",
        "We followed the protocols as far as the papers describe them, with these exceptions.",
        "",
        *points(outcomes, lambda each: each.partial),
        "",
        "## Differences from the papers' results",
        "",
        "The list gives, for each experiment, the verdict, what differs from the paper, what was "
        "tried, and the likely reason if we know one. “Here” means in our run.",
        "",
        *points(outcomes, difference),
    ]
    return "\n".join(text) + "\n"


def machines(outcomes: Sequence[Outcome]) -> str:
    """Return the machines of the runs, each with its numbers of threads."""
    threads: dict[str, set[str]] = {}
    for each in outcomes:
        if machine := each.run.get("machine"):
            threads.setdefault(THREADS.sub("", machine), set()).update(THREADS.findall(machine))
    return "; ".join(
        f"{name}, with {' or '.join(sorted(counts))} threads" for name, counts in threads.items()
    )


def discussion(experiment: Experiment) -> list[str]:
    """What is to be said of the differences, in parts, each begun by what it is about."""
    said = in_one_line(experiment.published.get("discussion", ""))
    return [part.strip() for part in PARTS.split(said) if part.strip()]


def points(outcomes: Sequence[Outcome], said_of: Callable[[Outcome], str]) -> Iterable[str]:
    """A list of what is to be said of experiments, if anything."""
    for each in outcomes:
        if text := said_of(each):
            title = each.experiment.published["title"]
            yield f"- **{title}** ({each.experiment.key}): {text}"


def difference(each: Outcome) -> str:
    """Return the verdict, what holds, and why; a verdict may depend on a choice."""
    if each.missing:
        return ""
    parts = discussion(each.experiment)
    return "\n  - ".join([f"{each.verdict}, {tally(each.compared)}.", *parts])


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
    lead = "Each paper's tables and figures, computed with orthodrome and compared with the paper."
    target = write_report(
        arguments.out / "index.html",
        "Reproduction of five papers",
        page(found, quick=quick, ran=not arguments.page),
        lead=lead,
    )
    if arguments.full and not arguments.only:
        text = results(found, ran=not arguments.page)
        write_atomically(HERE / "RESULTS.md", text.encode("utf-8"))
    print(target.resolve())


if __name__ == "__main__":
    main()
