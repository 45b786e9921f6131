"""What is told of the coverage: rooms are summed, and nothing that no test runs is left out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import coverage_rooms
import orthodrome

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
    there = {"4": "return -1", "8": "while x:", "9": "x -= 1", "10": 'return "never"'}
    assert kept["statements"] == {"left/sign.py": there}


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


# Why a line is not run ----------------------------------------------------------------------------


def test_statements_are_whole_and_of_blocks_the_head():
    source = """\
@cache
def f(
    x,
):
    try:
        raise ValueError(
            "one "
            "two"
        )
    except (
        ValueError,
    ):
        if x: return
"""
    assert coverage_rooms.statements(source) == {
        2: "def f( x, ):",
        5: "try:",
        6: 'raise ValueError( "one " "two" )',
        10: "except ( ValueError, ):",
        13: "if x: return",
    }


def test_places_are_single_lines_and_ways():
    found = list(coverage_rooms.places("3, 7-9, 12->15, 5->-1"))
    assert found == [("3", 3), ("7", 7), ("8", 8), ("9", 9), ("12->15", 12), ("5->-1", 5)]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage_rooms, "REASONS", tmp_path / "uncovered.toml")
    (tmp_path / "uncovered.toml").write_text(
        '["left/a.py"]\nraise = "A guard."\n"if os.name ==" = "Only elsewhere."\n'
    )
    there = {"3": "raise", "4": "raise ValueError", "8": 'if os.name == "nt":', "9": "return 1"}
    return {
        "date": "today",
        "commit": "abc",
        "rooms": {"left": dict.fromkeys(coverage_rooms.COUNTS, 9) | {"num_statements": 27}},
        "missing": {"left/a.py": "3-4, 9, 8->10", "left/b.py": "3"},
        "statements": {"left/a.py": there},
    }


def test_reasons_are_told_beside_the_lines_and_what_has_none_is_counted(kept):
    lines = coverage_rooms.told(kept)
    start = lines.index("- `left/a.py`")
    assert lines[start : start + 6] == [
        "- `left/a.py`",
        "  - 3: A guard.",
        "  - 4, 9: *unexplained*",
        "  - 8->10: Only elsewhere.",
        "- `left/b.py`",
        "  - 3: *unexplained*",
    ]
    assert coverage_rooms.n_unexplained(kept) == 3
    assert any("3 lines and branches are unexplained" in line for line in lines)
    told = "50.0 % of lines and branches, 3 of the rest unexplained"
    assert coverage_rooms.in_short(kept) == told


def test_without_reasons_all_is_unexplained(kept):
    coverage_rooms.REASONS.unlink()
    assert coverage_rooms.n_unexplained(kept) == 5


def test_every_reason_is_about_a_statement_that_is_there():
    """What is tested, changed or gone needs no reason any more."""
    stale = []
    for name, entries in coverage_rooms.reasons().items():
        source = (Path(orthodrome.__file__).parent / name).read_text(encoding="utf-8")
        there = coverage_rooms.statements(source).values()
        for piece, why in entries.items():
            if not any(coverage_rooms.is_about(piece, each) for each in there):
                stale.append(f"{name}: {piece}")
            assert why.endswith("."), f"{name}: {piece}"
    assert stale == []
