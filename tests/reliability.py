"""Run the batteries of tests/hardening and write docs/reliability.md: nobody types a count.

    python tests/reliability.py [--keep]

Which batteries there are, and what each has found, stands in batteries.toml; how many cases there
are and how many fail is read from what pytest reports. `--keep` leaves a failing battery out of the
status of the script, for a page that shows it. The score of the mutants is that of mutation.json,
which `make mutation` writes, and repeated runs are those of runs.json (`make repeat`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import repeats

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "tests" / "hardening"
PAGE = ROOT / "docs" / "reliability.md"

RED, GREEN = "🟥 red", "🟩 green"


@dataclass(frozen=True)
class Counts:
    """What pytest reports of a run."""

    cases: int = 0
    failed: int = 0
    skipped: int = 0

    @staticmethod
    def of(report: str) -> Counts:
        """Read a report in JUnit's form. Expected failures count as skipped."""
        suites = list(ElementTree.fromstring(report).iter("testsuite"))

        def total(*names: str) -> int:
            return sum(int(suite.get(name, 0)) for suite in suites for name in names)

        skipped = total("skipped")
        return Counts(total("tests") - skipped, total("failures", "errors"), skipped)


@dataclass(frozen=True)
class Battery:
    """Tests that belong together, and what was wrong before they were there."""

    name: str
    about: str
    tests: list[str]
    found: list[str]

    @property
    def command(self) -> str:
        return f"pytest {' '.join(self.tests)}"


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
            return Counts(0, 1, 0)
        return Counts.of(report.read_text(encoding="utf-8"))


# ---------------------------------------------------------------------------- the page


def state(counts: Counts) -> str:
    """A battery without a case shows nothing, so it is red too."""
    return GREEN if counts.cases and not counts.failed else RED


def page(
    results: list[tuple[Battery, Counts]],
    mutants: dict[str, Any] | None,
    runs: list[dict[str, Any]],
    date: str,
) -> str:
    """The page from what was counted."""
    lines = [
        "# Reliability",
        "",
        f"Written by `tests/reliability.py` (`make reliability`) on {date}; do not edit. "
        "Each battery is run when the page is written; a case is one test with one set of "
        "parameters (many of them look at many inputs). *Found* counts what was wrong when the "
        "battery was written and has been mended since.",
        "",
        "| battery | state | cases | failing | skipped | found and mended | command |",
        "|---|---|---|---|---|---|---|",
    ]
    for battery, counts in results:
        cells = [battery.name, state(counts), counts.cases, counts.failed, counts.skipped]
        cells += [len(battery.found), f"`{battery.command}`"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    still = sum(counts.failed for _, counts in results)
    lines += ["", f"Open failures: {still}.", "", *mutant_lines(mutants)]
    lines += ["", *repeats.told(runs)]
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
        "given. Those that remain are explained below the table.",
        "",
        "| room | mutants | noticed before | noticed after | date |",
        "|---|---|---|---|---|",
    ]
    for room, each in mutants["rooms"].items():
        n = each["mutants"]
        before, after = (f"{each[k]} ({each[k] / n:.0%})" for k in ("before", "after"))
        lines.append(f"| `{room}` | {n} | {before} | {after} | {each['date']} |")
    left = [f"- `{each['where']}`: {each['why']}" for each in mutants.get("left", [])]
    return [*lines, "", *left] if left else lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--keep", action="store_true", help="end with status 0 even if one is red")
    keep = parser.parse_args().keep
    results = [(battery, run(battery)) for battery in batteries()]
    stored = HERE / "mutation.json"
    mutants = json.loads(stored.read_text(encoding="utf-8")) if stored.exists() else None
    date = datetime.date.today().isoformat()
    PAGE.write_text(page(results, mutants, repeats.stored(), date), encoding="utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)}")
    red = [battery.name for battery, counts in results if state(counts) == RED]
    if red:
        print(f"Red: {', '.join(red)}", file=sys.stderr)
    return int(bool(red) and not keep)


if __name__ == "__main__":
    sys.exit(main())
