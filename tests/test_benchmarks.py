"""The harness and the report of the benchmarks. No time is tested.

`make test-all` also runs every file of benchmarks/ with data of a few rows.
"""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks"
FILES = sorted(path.stem for path in FOLDER.glob("bench_*.py"))


@pytest.fixture
def modules(monkeypatch):
    """The harness and the report; only the runner has them on its path."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("harness"), importlib.import_module("report")
    for name in ("harness", "report", "peak"):
        sys.modules.pop(name, None)


@pytest.fixture
def harness(modules):
    return modules[0]


@pytest.fixture
def report(modules):
    return modules[1]


# ------------------------------------------------------------------------ laws of the report


def row(harness, **changes):
    values = {
        "name": "work",
        "ours_label": "ours",
        "theirs_label": "theirs",
        "ours": [1.0, 3.0, 2.0],
        "theirs": [4.0, 4.0, 8.0],
    }
    return harness.Measured(**values | changes)


def test_verdicts(harness, report):
    for changes, said in (
        ({"target": 0.5}, "reached"),
        ({"target": 0.49}, "missed"),
        ({"limit": 3.0}, "reached"),
        ({"limit": 2.9, "target": 9.0}, "missed"),
        ({"target": 0.5, "required": 0.1, "ours_error": 0.2}, "not comparable"),
        ({"target": 0.5, "required": 0.1, "theirs_error": 0.2}, "not comparable"),
    ):
        assert report.verdict(row(harness, **changes)).startswith(said), changes


def test_peak_memory_is_measured(harness):
    held = "import time\nheld = bytearray(2**27)"
    # long enough to be measured: memory that is freed within one call may be missed
    found = harness.peak_anonymous_memory(held, "x = bytearray(2**26)\ntime.sleep(0.5)\ndel x")
    assert 2**26 <= found["bytes"] < 2**26 + 2**24
    assert found["total"] >= 2**27 + 2**26
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        harness.peak_anonymous_memory("", "1 / 0")


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_benchmarks_run_through(name):
    pytest.importorskip("skpns", exc_type=ImportError)
    before = {path: path.stat().st_mtime_ns for path in FOLDER.iterdir()}
    finished = subprocess.run(
        [sys.executable, "benchmarks/run.py", "--smoke", "--full", name],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"MPLBACKEND": "Agg"},
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "RESULTS.md" in finished.stdout or "LEFT OUT" in finished.stdout
    after = {path: path.stat().st_mtime_ns for path in FOLDER.iterdir()}
    assert {path for path, time in after.items() if before.get(path) != time} <= {
        FOLDER / "__pycache__"
    }
