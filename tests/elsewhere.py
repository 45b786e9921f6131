"""Run the tests against the wheel, installed into an empty environment, away from the sources.

    python tests/elsewhere.py newest [what pytest is told]
    python tests/elsewhere.py oldest [what pytest is told]

The wheel is built from the sources and installed with what it requires and nothing optional, beside
pytest, pytest-xdist and hypothesis alone: the newest versions, or the oldest that pyproject.toml
allows. Tests of what is optional are skipped there, each with a word. What came of it is kept in
hardening/elsewhere.json, for the page about reliability, unless pytest is told to run some of the
tests only (other than those that are not slow).
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import repeats

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("pytest", "pytest-xdist", "hypothesis")
STORE = ROOT / "tests" / "hardening" / "elsewhere.json"
# scikit-learn 1.9.0 parametrises by generators, of which pytest 9 warns.
TOOLS_THEN = ("pytest==8.4.*", "pytest-xdist", "hypothesis")
NAMES = ("newest", "oldest")
# What looks at the repository and not at the package.
NOT_THERE = ("experiments", "test_architecture.py", "test_benchmarks.py", "test_docs.py")


def lower_bounds() -> list[str]:
    """What is required, each at its oldest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [each.replace(">=", "==") for each in project["dependencies"]]


def installed(python: Path, *what: str) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *what], check=True)


def environment(name: str) -> Path:
    """Make an environment with the wheel; return its interpreter."""
    folder = ROOT / ".elsewhere" / name
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    python = folder / "bin" / "python"
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, "--no-deps", "-w", scratch, str(ROOT)], check=True)
        (wheel,) = Path(scratch).glob("*.whl")
        if name == "oldest":
            installed(python, *lower_bounds(), *TOOLS_THEN, str(wheel))
        else:
            installed(python, *TOOLS, str(wheel))
    return python


def versions(python: Path) -> str:
    """What is required, as it is installed."""
    listed = [str(python), "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
    said = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    print(said, flush=True)
    installed = dict(line.split("==", 1) for line in said.splitlines() if "==" in line)
    names = [each.partition("==")[0] for each in lower_bounds()]
    return ", ".join(f"{name} {installed[name]}" for name in names)


def selects(arguments: list[str]) -> bool:
    """Whether pytest is told to run some tests only; what is not known to be harmless does so."""
    rest = list(arguments)
    while rest:
        option, _, value = rest.pop(0).partition("=")
        if option in ("-m", "-n", "-p", "-W") and rest and not value:
            value = rest.pop(0)
        if option == "-m" and value != "not slow":
            return True
        if not re.fullmatch(r"-[qvsx]+|-r\w*|-[mnpW]|--(tb|durations|color|maxfail)", option):
            return True
    return False


def came_of(report: Path, status: int) -> dict[str, Any]:
    """What ran, what was skipped and what failed; a run that did not come so far has failed too."""
    tests, skipped, failed = 0, 0, []
    if report.exists():
        text = report.read_text(encoding="utf-8")
        tests, failed = repeats.failures(text)
        skipped = len(list(ElementTree.fromstring(text).iter("skipped")))
    if not failed and (status or not tests):
        failed = [f"pytest ended with status {status}, after {tests} tests"]
    return {"tests": tests, "skipped": skipped, "failed": failed}


def keep(name: str, came: dict[str, Any], with_what: str) -> None:
    """Keep what came of a run of the whole suite, in place of what was kept before."""
    kept = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}
    kept[name] = {
        "date": datetime.date.today().isoformat(),
        "commit": repeats.commit(),
        "versions": with_what,
    } | came
    STORE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def told(kept: dict[str, Any]) -> list[str]:
    """The lines of the page about the wheel in empty environments."""
    lines = ["## The wheel elsewhere", ""]
    if not kept:
        return [
            *lines,
            "The suite has not been run there yet (`make test-wheel`, `make test-oldest`).",
        ]
    lines += [
        "The suite against the wheel, in an empty environment with nothing optional installed.",
        "",
        "| versions | with | tests | skipped | failed | date | commit |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, run in sorted(kept.items()):
        cells = [
            name,
            run["versions"],
            run["tests"],
            run.get("skipped", "?"),
            len(run["failed"]),
            run["date"],
            run["commit"],
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def is_fine(kept: dict[str, Any]) -> bool:
    """Whether the suite was run with the newest and the oldest versions, without a failure."""
    return all(name in kept and kept[name]["tests"] for name in NAMES) and not any(
        run["failed"] for run in kept.values()
    )


def main(name: str, arguments: list[str]) -> int:
    if name not in NAMES:
        raise SystemExit(__doc__)
    python = environment(name)
    with_what = versions(python)
    surroundings = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    data = os.environ.get("ORTHODROME_DATA") or ROOT.parent / "shared" / "data"
    surroundings["ORTHODROME_DATA"] = str(Path(data).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        away = Path(scratch)
        shutil.copytree(ROOT / "tests", away / "tests")
        for each in ("conftest.py", "pyproject.toml"):
            shutil.copy(ROOT / each, away / each)
        where = "import orthodrome, sys; assert orthodrome.__file__.startswith(sys.prefix)"
        subprocess.run([str(python), "-c", where], check=True, cwd=away, env=surroundings)
        command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", "-n", "auto", "tests"]
        ignored = [f"--ignore=tests/{each}" for each in NOT_THERE]
        report = away / "report.xml"
        command += [*ignored, f"--junitxml={report}", *arguments]
        status = subprocess.run(command, cwd=away, env=surroundings).returncode
        if selects(arguments):
            print("These were some of the tests only: nothing is kept.")
        else:
            keep(name, came_of(report, status), with_what)
        return status


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:2] or [""]), sys.argv[2:]))
