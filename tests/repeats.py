"""Run the test suite many times and keep what failed: a flaky test fails in some runs alone.

    python tests/repeats.py [--runs 20]

Each run is `make test`, every second one with the BLAS kernels of another processor: there rounding
differs, and a test that hangs on the last bit is flaky too. What came of a run is added to
hardening/runs.json, so runs add up over days; reliability.py tells them on its page. The status is
that of the runs made now.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / "tests" / "hardening" / "runs.json"
#: Names that OpenBLAS has for kernels which any x86 processor of today can run; "" for its own.
PROCESSORS = ("", "Nehalem", "", "Sandybridge", "", "Haswell")
_MOST_TOLD = 6  # failures of one run that the page names


def failures(report: str) -> tuple[int, list[str]]:
    """Read a report in JUnit's form: how many tests ran, and which failed."""
    cases = list(ElementTree.fromstring(report).iter("testcase"))
    ran = [case for case in cases if case.find("skipped") is None]
    failed = {
        f"{case.get('classname')}::{case.get('name')}"
        for case in ran
        if case.find("failure") is not None or case.find("error") is not None
    }
    return len(ran), sorted(failed)


def commit() -> str:
    """Name the state of the tree; changes that are not committed are told by a plus.

    What the tools keep of their measurements is no change of what is tested.
    """
    hash_of = ["git", "rev-parse", "--short=10", "HEAD"]
    changes = ["git", "status", "--porcelain", "--untracked-files=no"]
    said = [
        subprocess.run(each, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        for each in (hash_of, changes)
    ]
    kept = STORE.parent.relative_to(ROOT).as_posix()
    changed = [
        line for line in said[1].splitlines() if kept not in line or not line.endswith(".json")
    ]
    return said[0] + ("+" if changed else "")


def once(processor: str) -> dict[str, Any]:
    """Run the suite, and say what came of it."""
    state, start = commit(), time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = ["make", "--no-print-directory", "test", f"PYTEST_ARGS=-q --junitxml={report}"]
        kernels = {"OPENBLAS_CORETYPE": processor} if processor else {}
        status = subprocess.run(command, cwd=ROOT, env=os.environ | kernels, check=False).returncode
        seconds = time.perf_counter() - start
        if report.exists():
            tests, failed = failures(report.read_text(encoding="utf-8"))
        else:
            tests, failed = 0, []
    if status and not failed:
        failed = [f"make test ended with status {status}"]
    return {
        "date": datetime.date.today().isoformat(),
        "commit": state,
        "processor": processor,
        "seconds": round(seconds),
        "tests": tests,
        "failed": failed,
    }


def in_a_row(runs: list[dict[str, Any]]) -> int:
    """How many of the last runs were without a failure, up to the first with one."""
    return next((i for i, run in enumerate(reversed(runs)) if run["failed"]), len(runs))


def told(runs: list[dict[str, Any]]) -> list[str]:
    """The lines of the page about repeated runs."""
    lines = ["## Repeated runs", ""]
    if not runs:
        return [*lines, "The suite has not been repeated yet (`make repeat`)."]
    last, since = runs[-1], in_a_row(runs)
    others = [run["processor"] for run in runs if run["processor"]]
    lines += [
        f"Runs of `make test` by `make repeat`: {len(runs)}, the last on {last['date']} with "
        f"{last['tests']} tests; the last {since} of these runs had no failure. {len(others)} of "
        f"the runs computed with the BLAS kernels of another processor "
        f"({', '.join(sorted(set(others))) or 'none'}).",
    ]
    bad = [run for run in runs if run["failed"]]
    if bad:
        lines += ["", "| date | commit | processor | failed |", "|---|---|---|---|"]
        lines += [
            f"| {run['date']} | {run['commit']} | {run['processor'] or 'its own'} | "
            f"{_listed(run['failed'])} |"
            for run in bad
        ]
    return lines


def _listed(tests: list[str]) -> str:
    shown = [f"`{test}`".replace("|", "\\|") for test in tests[:_MOST_TOLD]]
    more = len(tests) - len(shown)
    return "<br>".join([*shown, *([f"and {more} more"] if more else [])])


def stored() -> list[dict[str, Any]]:
    """All runs that were kept."""
    return json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=20, help="how many times; default 20")
    bad, known = 0, len(stored())
    processors = itertools.islice(itertools.cycle(PROCESSORS), known, None)
    for processor in itertools.islice(processors, parser.parse_args().runs):
        run = once(processor)
        STORE.write_text(json.dumps([*stored(), run], indent=1) + "\n", encoding="utf-8")
        bad += bool(run["failed"])
        print(f"{run['tests']} tests, {run['seconds']} s, failed: {run['failed'] or 'none'}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
