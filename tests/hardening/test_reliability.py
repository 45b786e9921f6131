"""The page about reliability: it says what pytest reports, and a failure turns its row red."""

import tomllib
from pathlib import Path

import pytest

import reliability
import repeats

HERE = Path(__file__).resolve().parent

REPORT = (
    '<testsuites><testsuite errors="{errors}" failures="{failures}" skipped="2" tests="9"/>'
    "</testsuites>"
)
BATTERY = reliability.Battery("Storms", "Wind.", ["tests/storms.py"], ["A leak.", "A crack."])


def row_of(report):
    text = reliability.page([(BATTERY, reliability.Counts.of(report))], None, [], "today")
    return next(line for line in text.splitlines() if line.startswith("| Storms")), text


def test_a_row_says_what_pytest_reports():
    row, text = row_of(REPORT.format(errors=0, failures=0))
    assert row == f"| Storms | {reliability.GREEN} | 7 | 0 | 2 | 2 | `pytest tests/storms.py` |"
    assert "Open failures: 0." in text
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
    good = {"date": "today", "commit": "abc", "seconds": 9, "tests": 7, "failed": []}
    bad = good | {"commit": "def", "failed": ["tests.x::test_y[a|b]"]}
    text = "\n".join(repeats.told([good, bad, good, good]))
    assert "run 4 times" in text
    assert "the last 2 of these runs" in text
    assert "| today | def | `tests.x::test_y[a\\|b]` |" in text
    assert "the last 2 of these runs" in "\n".join(repeats.told([good, good]))


def test_failures_are_read_from_the_report():
    report = (
        '<testsuites><testsuite><testcase classname="a" name="b"/>'
        '<testcase classname="a" name="c"><failure/></testcase>'
        '<testcase classname="a" name="d"><error/></testcase>'
        '<testcase classname="a" name="e"><skipped/></testcase></testsuite></testsuites>'
    )
    assert repeats.failures(report) == (3, ["a::c", "a::d"])
