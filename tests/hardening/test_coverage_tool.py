"""What is told of the coverage: rooms are summed, and nothing that no test runs is left out."""

import json
import os
import subprocess
import sys

import pytest

import coverage_rooms

MODULE = """\
def sign(x):
    if x > 0:
        return 1
    return -1


def other(x):
    while x:
        x -= 1
    return "never"
"""


def test_a_measurement_is_told_by_rooms(tmp_path, monkeypatch):
    pytest.importorskip("coverage", reason="needs coverage: pip install orthodrome[dev]")
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "src" / "orthodrome"
    for name, text in {
        "__init__.py": "x = 1\n",
        "left/__init__.py": "",
        "left/sign.py": MODULE,
        "right/__init__.py": "y = 2\n",
    }.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    (tmp_path / "use.py").write_text(
        "import orthodrome.right\nfrom orthodrome.left.sign import sign\nsign(2)\n"
    )
    command = [sys.executable, "-m", "coverage", "run", "--branch", "--include=src/*", "use.py"]
    paths = os.pathsep.join([str(source.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": paths})
    told = coverage_rooms.lines(coverage_rooms.report(tmp_path / ".coverage"))
    rows = {line.split()[0]: line.split()[1:] for line in told if line and ":" not in line}
    assert rows["(top)"] == ["1", "0", "0", "0", "100.0%"]
    assert rows["right"] == ["1", "0", "0", "0", "100.0%"]
    # 8 lines of which 4 ran; 1 of 4 ways
    assert rows["left"] == ["8", "4", "4", "3", f"{100 * 5 / 12:.1f}%"]
    assert rows["all"] == ["10", "4", "4", "3", "50.0%"]
    assert told[-1] == "left/sign.py: 4, 8-10"
    monkeypatch.setattr(coverage_rooms, "STORE", tmp_path / "kept.json")
    coverage_rooms.keep(coverage_rooms.report(tmp_path / ".coverage"))
    kept = json.loads(coverage_rooms.STORE.read_text())
    assert kept["missing"] == {"left/sign.py": "4, 8-10"}


def test_ways_between_lines_that_run_are_named():
    summary = dict.fromkeys(coverage_rooms.COUNTS, 1)
    each = {"summary": summary, "missing_lines": [], "missing_branches": [[3, 7], [5, -1]]}
    told = coverage_rooms.lines({"files": {"src/orthodrome/left/a.py": each}})
    assert told[-1] == "left/a.py: 3->7, 5->-1"


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([4], "4"), ([1, 2], "1-2"), ([1, 3, 4, 5, 9], "1, 3-5, 9")]
)
def test_runs_of_numbers(numbers, text):
    assert coverage_rooms.spans(numbers) == text
