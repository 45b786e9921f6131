"""Run the batteries of tests/hardening and write docs/reliability.md: nobody types a count.

    python tests/reliability.py [battery ...]

A battery is called by its first word. Which batteries there are, and what each has found, stands in
batteries.toml; how many cases there are and how many fail is read from what pytest reports, and
kept in counts.json, so that some of them can be run again. What other commands measure is kept
beside it: the score of mutants in mutation.json (`make mutation`), repeated runs in runs.json
(`make repeat`), coverage in coverage.json (`make coverage`), and the suite with the wheel in empty
environments in elsewhere.json (`make test-wheel`, `make test-oldest`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import coverage_rooms
import elsewhere
import repeats

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "tests" / "hardening"
PAGE = ROOT / "docs" / "reliability.md"
COUNTS = HERE / "counts.json"

RED, GREEN = "🟥 red", "🟩 green"
RUNS = 20  # without a failure, in a row, before there is reason to say that no test is flaky
COVERED = 90.0  # percent of lines and branches that tests must run, the rest having reasons
#: What every battery depends on, beside its tests: where one of these has changed since it was run,
#: its row says so. What the commands keep of their measurements is none of it: rows would be stale
#: as soon as they are committed. (The records of accuracy and of mutants are read by tests.)
SOURCES = (
    *("src", "conftest.py", "tests/hardening", ":(glob)tests/*.py", ":(glob)tests/**/conftest.py"),
    *(f":(exclude)tests/hardening/{name}.json" for name in ("counts", "coverage", "elsewhere")),
    ":(exclude)tests/hardening/runs.json",
)


@dataclass(frozen=True)
class Counts:
    """What pytest reports of a run."""

    cases: int = 0
    failed: int = 0
    skipped: int = 0
    date: str = ""
    commit: str = ""

    @staticmethod
    def of(report: str) -> Counts:
        """Read a report in JUnit's form. Expected failures count as skipped."""
        suites = list(ElementTree.fromstring(report).iter("testsuite"))

        def total(*names: str) -> int:
            return sum(int(suite.get(name, 0)) for suite in suites for name in names)

        skipped = total("skipped")
        return Counts(total("tests") - skipped, total("failures", "errors"), skipped)

    def now(self) -> Counts:
        """The same, with when and of what."""
        return replace(self, date=datetime.date.today().isoformat(), commit=repeats.commit())


@dataclass(frozen=True)
class Battery:
    """Tests that belong together, and what was wrong before they were there."""

    name: str
    about: str
    tests: list[str]
    found: list[str]

    @property
    def word(self) -> str:
        """What it is called on the command line."""
        return self.name.split()[0]

    @property
    def command(self) -> str:
        return f"make reliability BATTERY={self.word}"


def batteries() -> list[Battery]:
    """All that batteries.toml names."""
    said = tomllib.loads((HERE / "batteries.toml").read_text(encoding="utf-8"))
    return [Battery(name, **each) for name, each in said.items()]


def run(battery: Battery) -> Counts:
    """Run all tests of a battery, the slow ones too."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", f"--junitxml={report}"]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        subprocess.run([*command, *battery.tests], cwd=ROOT, env=os.environ | threads, check=False)
        if not report.exists():  # pytest itself did not come so far
            return Counts(failed=1).now()
        return Counts.of(report.read_text(encoding="utf-8")).now()


def is_stale(commit: str, tests: Iterable[str] = ()) -> bool:
    """Whether the source, or the batteries, or these tests, are not those that a commit had.

    A plus marks changes that were never committed. Where there is no git, nobody knows.
    """
    if not commit:
        return False
    named = commit.removesuffix("+")
    try:
        known = _git("rev-parse", "--verify", "--quiet", "HEAD")
        before = _git("merge-base", "--is-ancestor", named, "HEAD")
        same = _git("diff", "--quiet", named, "HEAD", "--", *SOURCES, *tests)
    except OSError:  # there is no git
        return False
    return known and (commit != named or not (before and same))


def _git(*arguments: str) -> bool:
    """Whether git says yes."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
    return done.returncode == 0


# ---------------------------------------------------------------------------- the page


def state(counts: Counts) -> str:
    """A battery without a case shows nothing, so it is red too."""
    return GREEN if counts.cases and not counts.failed else RED


@dataclass(frozen=True)
class Kept:
    """What other commands have measured, as they keep it."""

    mutants: dict[str, Any] | None = None
    runs: list[dict[str, Any]] | None = None
    coverage: dict[str, Any] | None = None
    elsewhere: dict[str, Any] | None = None

    @staticmethod
    def stored() -> Kept:
        names = {"mutants": "mutation", "runs": "runs"}
        names |= {name: name for name in ("coverage", "elsewhere")}
        files = {field: HERE / f"{name}.json" for field, name in names.items()}
        return Kept(
            **{
                field: json.loads(path.read_text(encoding="utf-8"))
                for field, path in files.items()
                if path.exists()
            }
        )


@dataclass(frozen=True)
class Longer:
    """What takes longer than a battery: whether it is as it should be, and what was counted."""

    name: str
    is_fine: bool
    numbers: str
    command: str

    @property
    def state(self) -> str:
        return GREEN if self.is_fine else RED


def longer(kept: Kept) -> list[Longer]:
    """What the other commands have measured; what was not measured shows nothing, and is red."""
    row, ran = repeats.in_a_row(kept.runs or []), len(kept.runs or [])
    there = kept.elsewhere or {}
    wheel = [
        f"{name}: {there[name]['tests']} tests, {len(there[name]['failed'])} failing"
        if name in there
        else f"{name}: not run"
        for name in elsewhere.NAMES
    ]
    return [
        _mutants(kept.mutants),
        Longer(
            "repeated runs",
            row >= RUNS,
            f"{row} of {ran} clean in a row, {RUNS} asked for",
            "make repeat",
        ),
        Longer(
            "the wheel elsewhere",
            elsewhere.is_fine(there),
            "; ".join(wheel),
            "make test-wheel test-oldest",
        ),
        _coverage(kept.coverage),
    ]


def _coverage(coverage: dict[str, Any] | None) -> Longer:
    total = coverage_rooms.with_sum(coverage["rooms"])["all"] if coverage else None
    if not total or not total["num_statements"]:
        return Longer("coverage", False, "not measured", "make coverage")
    share = coverage_rooms.share(total)
    numbers = f"{coverage_rooms.in_short(coverage)}, {COVERED:g} % asked for"
    is_fine = share >= COVERED and not coverage_rooms.n_unexplained(coverage)
    return Longer("coverage", is_fine, numbers, "make coverage")


def _mutants(mutants: dict[str, Any] | None) -> Longer:
    if not mutants or not mutants["rooms"]:
        return Longer("mutants", False, "none made", "make mutation")
    total = sum(each["mutants"] for each in mutants["rooms"].values())
    left = mutants.get("left", [])
    unexplained = [each for each in left if not is_explained(each.get("why", ""))]
    gone, untried = (
        sum(of(mutants, room) for room in mutants["rooms"]) for of in (_gone, _untried)
    )
    numbers = (
        f"{total} made, {len(left)} remain, {len(unexplained)} of them unexplained or open; "
        f"{gone} gone with their lines, {untried} not tried"
    )
    return Longer("mutants", not unexplained and not untried, numbers, "make mutation")


def is_explained(why: str) -> bool:
    """Whether words say why a mutant may remain, and do not begin by saying that it is open."""
    return bool(why.strip()) and not re.match(r"\s*(still )?open\b", why, re.IGNORECASE)


def _latest(mutants: dict[str, Any], room: str) -> list[str | None]:
    every = mutants.get("mutants", {}).get(room, [])
    return [each.get("after", each.get("before")) for each in every]


def _gone(mutants: dict[str, Any], room: str) -> int:
    """How many of a room's mutants changed lines that are not there any more."""
    return _latest(mutants, room).count("gone")


def _untried(mutants: dict[str, Any], room: str) -> int:
    return _latest(mutants, room).count(None)


def page(results: list[tuple[Battery, Counts]], kept: Kept, date: str) -> str:
    """The page from what was counted."""
    lines = [
        "# Reliability",
        "",
        f"Written by `tests/reliability.py` (`make reliability`) on {date}; do not edit. A case is "
        "one test with one set of parameters, the slow ones included; many of them look at many "
        "inputs. *Found* counts what was wrong when the battery was written and has been mended "
        "since. A battery with a failure, or without a case, is red. A row says so if the source "
        "or the batteries have changed since it was counted.",
        "",
        "| battery | state | cases | failing | skipped | found and mended | run | command |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for battery, counts in results:
        cells = [battery.name, state(counts), counts.cases, counts.failed, counts.skipped]
        when = f"{counts.date} at {counts.commit}"
        when += ", older than the source" if is_stale(counts.commit, battery.tests) else ""
        cells += [len(battery.found), when, f"`{battery.command}`"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    still = sum(counts.failed for _, counts in results)
    found = sum(len(battery.found) for battery, _ in results)
    lines += ["", f"Open failures: {still}. Found and mended: {found}."]
    lines += ["", "## What takes longer", "", "| what | state | numbers | command |"]
    lines += ["|---|---|---|---|"]
    for each in longer(kept):
        lines.append(f"| {each.name} | {each.state} | {each.numbers} | `{each.command}` |")
    lines += ["", *mutant_lines(kept.mutants), "", *repeats.told(kept.runs or [])]
    lines += ["", *elsewhere.told(kept.elsewhere or {})]
    lines += ["", *coverage_rooms.told(kept.coverage)]
    for battery, _ in results:
        lines += ["", f"## {battery.name}", "", battery.about.strip()]
        if battery.found:
            lines += ["", "Found and mended:", "", *(f"- {each}" for each in battery.found)]
    return "\n".join(lines) + "\n"


def mutant_lines(mutants: dict[str, Any] | None) -> list[str]:
    """The table of the mutants: how many the tests noticed."""
    if not mutants:
        return ["## Mutants", "", "No mutants have been made yet (`make mutation`)."]
    lines = [
        "## Mutants",
        "",
        "Small changes made to the source by cosmic-ray, a random sample for each room; a mutant "
        "is *noticed* if a test of its room fails or does not end. Before: with the tests as they "
        "were when this was first measured; after: the same mutants with the tests of the date "
        "given. Those that remain are explained below the table. A mutant is *gone* if the line "
        "that it changed is; it is not counted among the others.",
        "",
        "| room | mutants | noticed before | noticed after | gone | date |",
        "|---|---|---|---|---|---|",
    ]
    for room, each in mutants["rooms"].items():
        n = each["mutants"]
        before, after = (f"{each[k]} ({each[k] / n:.0%})" for k in ("before", "after"))
        lines.append(
            f"| `{room}` | {n} | {before} | {after} | {_gone(mutants, room)} | {each['date']} |"
        )
    left = [f"- `{each['where']}`: {each['why'] or 'open'}" for each in mutants.get("left", [])]
    return [*lines, "", *left] if left else lines


def counted(names: list[str]) -> list[tuple[Battery, Counts]]:
    """Run the batteries whose names begin so, or all, and return what is known of each."""
    known = json.loads(COUNTS.read_text(encoding="utf-8")) if COUNTS.exists() else {}
    there = batteries()
    strangers = set(names) - {battery.word for battery in there}
    if strangers:
        raise SystemExit(f"No battery is called {sorted(strangers)[0]!r}; see {HERE.name}.")
    for battery in there:
        if not names or battery.word in names:
            known[battery.name] = asdict(run(battery))
            COUNTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return [(battery, Counts(**known.get(battery.name, {}))) for battery in there]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("battery", nargs="*", help="which to run; all of them if none is named")
    results = counted(parser.parse_args().battery)
    date = datetime.date.today().isoformat()
    kept = Kept.stored()
    PAGE.write_text(page(results, kept, date), encoding="utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)}")
    red = [battery.name for battery, counts in results if state(counts) == RED]
    red += [each.name for each in longer(kept) if each.state == RED]
    if red:
        print(f"Red: {', '.join(red)}", file=sys.stderr)
    return int(bool(red))


if __name__ == "__main__":
    sys.exit(main())
