"""The page about reliability: it says what pytest reports, and a failure turns its row red."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import coverage_rooms
import elsewhere
import reliability
import repeats

HERE = Path(__file__).resolve().parent

REPORT = (
    '<testsuites><testsuite errors="{errors}" failures="{failures}" skipped="2" tests="9"/>'
    "</testsuites>"
)
BATTERY = reliability.Battery("Storms", "Wind.", ["tests/storms.py"], ["A leak.", "A crack."])


def row_of(report):
    counts = replace(reliability.Counts.of(report), date="today", commit="abc")
    text = reliability.page([(BATTERY, counts)], reliability.Kept(), "today")
    return next(line for line in text.splitlines() if line.startswith("| Storms")), text


def test_a_row_says_what_pytest_reports():
    row, text = row_of(REPORT.format(errors=0, failures=0))
    green, command = reliability.GREEN, "`pytest tests/storms.py`"
    assert row == f"| Storms | {green} | 7 | 0 | 2 | 2 | today at abc | {command} |"
    assert "Open failures: 0. Found and mended: 2." in text
    assert "- A leak." in text


@pytest.mark.parametrize("counts", [{"errors": 1, "failures": 0}, {"errors": 0, "failures": 1}])
def test_a_failure_turns_its_row_red(counts):
    row, text = row_of(REPORT.format(**counts))
    assert reliability.RED in row
    assert "Open failures: 1." in text


def test_a_battery_without_cases_is_red():
    assert reliability.state(reliability.Counts()) == reliability.RED


def test_a_bug_turns_its_row_red(tmp_path):
    """Through pytest itself: a battery that fails."""
    broken = tmp_path / "test_broken.py"
    broken.write_text("def test_it():\n    assert 1 + 1 == 3\n\ndef test_other():\n    pass\n")
    battery = reliability.Battery("Broken", "", [str(broken)], [])
    counts = reliability.run(battery)
    assert (counts.cases, counts.failed) == (2, 1)


def test_every_module_of_this_folder_belongs_to_a_battery():
    said = tomllib.loads((HERE / "batteries.toml").read_text(encoding="utf-8"))
    listed = {name for each in said.values() for name in each["tests"]}
    here = {f"tests/hardening/{path.name}" for path in HERE.glob("test_*.py")}
    tools = {"test_reliability.py", "test_coverage_tool.py"}
    assert here - listed == {f"tests/hardening/{name}" for name in tools}
    assert all((HERE.parents[1] / name).exists() for name in listed)


def test_mutants_are_told_as_they_were_counted():
    rooms = {"sphere": {"mutants": 40, "before": 30, "after": 38, "date": "today"}}
    left = [{"where": "sphere/maps.py:1", "why": "it changes nothing"}]
    lines = reliability.mutant_lines({"rooms": rooms, "left": left})
    assert "| `sphere` | 40 | 30 (75%) | 38 (95%) | today |" in lines
    assert "- `sphere/maps.py:1`: it changes nothing" in lines


def test_a_run_that_failed_is_told_and_ends_the_count():
    good = {"date": "today", "commit": "abc", "processor": "", "seconds": 9, "tests": 7}
    good |= {"failed": []}
    bad = good | {"commit": "def", "processor": "Nehalem", "failed": ["tests.x::test_y[a|b]"]}
    text = "\n".join(repeats.told([good, bad, good, good]))
    assert "run 4 times" in text
    assert "the last 2 of these runs" in text
    assert "| today | def | Nehalem | `tests.x::test_y[a\\|b]` |" in text
    assert "1 of the runs computed with the BLAS kernels of another processor (Nehalem)" in text
    assert "the last 2 of these runs" in "\n".join(repeats.told([good, good]))


def test_failures_are_read_from_the_report():
    report = (
        '<testsuites><testsuite><testcase classname="a" name="b"/>'
        '<testcase classname="a" name="c"><failure/></testcase>'
        '<testcase classname="a" name="d"><error/></testcase>'
        '<testcase classname="a" name="e"><skipped/></testcase></testsuite></testsuites>'
    )
    assert repeats.failures(report) == (3, ["a::c", "a::d"])


def test_the_wheel_elsewhere_is_told_as_it_was_run():
    run = {"date": "today", "commit": "abc", "versions": "numpy 2.0", "tests": 9, "failed": ["a"]}
    assert "| oldest | numpy 2.0 | 9 | 1 | today | abc |" in elsewhere.told({"oldest": run})
    assert "not been run" in elsewhere.told({})[-1]


def test_coverage_is_told_by_rooms():
    counts = dict.fromkeys(coverage_rooms.COUNTS, 0) | {"num_statements": 30, "missing_lines": 3}
    kept = {"date": "today", "commit": "abc", "rooms": {"gram": counts, "eigen": counts}}
    lines = coverage_rooms.told(kept)
    assert "| `gram` | 30 | 3 | 0 | 0 | 90.0 % |" in lines
    assert "| `all` | 60 | 6 | 0 | 0 | 90.0 % |" in lines
    assert "not been measured" in coverage_rooms.told(None)[-1]


def test_a_battery_can_be_run_again_alone(tmp_path, monkeypatch):
    """What is known of the others stays; one that was never run is red."""
    others = [replace(BATTERY, name=name) for name in ("Storms", "Floods", "Droughts")]
    monkeypatch.setattr(reliability, "batteries", lambda: others)
    monkeypatch.setattr(reliability, "COUNTS", tmp_path / "counts.json")
    monkeypatch.setattr(reliability, "run", lambda battery: reliability.Counts(cases=3))
    reliability.counted(["Storms"])
    monkeypatch.setattr(reliability, "run", lambda battery: reliability.Counts(5, failed=1))
    known = {battery.name: counts for battery, counts in reliability.counted(["Floods"])}
    assert [known[each.name].cases for each in others] == [3, 5, 0]
    states = [reliability.state(known[each.name]) for each in others]
    assert states == [reliability.GREEN, reliability.RED, reliability.RED]
    with pytest.raises(SystemExit, match="Quakes"):
        reliability.counted(["Quakes"])
