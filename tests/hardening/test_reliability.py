"""The page about reliability: it says what pytest reports, and a failure turns its row red."""

import json
import os
import shutil
import subprocess
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
    return row_with(counts)


def row_with(counts):
    text = reliability.page([(BATTERY, counts)], reliability.Kept(), "today")
    return next(line for line in text.splitlines() if line.startswith("| Storms")), text


def test_a_row_says_what_pytest_reports(monkeypatch):
    monkeypatch.setattr(reliability, "is_stale", lambda *_: False)
    row, text = row_of(REPORT.format(errors=0, failures=0))
    green, command = reliability.GREEN, "`make reliability BATTERY=Storms`"
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


def git(folder, *arguments):
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def committed(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", name)
    return git(folder, "rev-parse", "--short=10", "HEAD").strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_battery_that_is_older_than_the_source_is_told(tmp_path, monkeypatch):
    """Its row stays green: nothing has failed. What is no source may change."""
    monkeypatch.setattr(reliability, "ROOT", tmp_path)
    assert not reliability.is_stale("abc")  # of no repository
    git(tmp_path, "init", "--quiet")
    first = committed(tmp_path, "src/sums.py", "a = 1")
    committed(tmp_path, "docs/page.md", "A page.")
    committed(tmp_path, "tests/gram/test_blocks.py", "of no battery")
    for kept in ("counts", "coverage", "elsewhere", "runs"):
        later = committed(tmp_path, f"tests/hardening/{kept}.json", "what a tool keeps")
    assert [reliability.is_stale(each) for each in (first, later, later + "+", "")] == [
        *(False, False),
        *(True, False),
    ]
    green = reliability.Counts(cases=3, date="today", commit=first)
    assert "today at" in row_with(green)[0]
    assert "older than the source" not in row_with(green)[0]
    its_own = replace(BATTERY, tests=["tests/gram/test_blocks.py"])
    assert "older than the source" in reliability.page([(its_own, green)], FINE, "today")
    for name in (
        *("src/sums.py", "tests/hardening/test_sums.py", "tests/plain.py"),
        *("conftest.py", "tests/gram/conftest.py", "tests/hardening/accuracy.json"),
    ):
        known = git(tmp_path, "rev-parse", "--short=10", "HEAD").strip()
        committed(tmp_path, name, f"a = 2  # {name}")
        assert reliability.is_stale(known)
    row, _ = row_with(green)
    assert f"| today at {first}, older than the source |" in row
    assert reliability.GREEN in row
    assert reliability.is_stale("0123456789")  # a commit that nobody knows


def test_a_bug_turns_its_row_red(tmp_path, monkeypatch):
    """Through pytest itself: a battery that fails."""
    monkeypatch.setattr(repeats, "commit", lambda: "here")  # of no repository
    broken = tmp_path / "test_broken.py"
    broken.write_text("def test_it():\n    assert 1 + 1 == 3\n\ndef test_other():\n    pass\n")
    battery = reliability.Battery("Broken", "", [str(broken)], [])
    counts = reliability.run(battery)
    assert (counts.cases, counts.failed) == (2, 1)


#: One bug of the library for each battery, and one test of that battery which must see it.
BUGS = {
    "Degenerate data": (
        "test_degenerate.py::test_the_right_answer_or_a_clear_error[KernelPCA, auto-two points]",
        """
import numpy, orthodrome
orthodrome.KernelPCA.transform = lambda self, X: numpy.full((len(X), 1), numpy.nan)
""",
    ),
    "Fuzz": (
        "test_fuzz.py::test_changed_inputs_are_read_or_refused[tps-40]",
        """
import orthodrome.spaces as spaces
right = spaces.read_tps
def read_tps(path, **options):
    try:
        return right(path, **options)
    except ValueError as error:
        raise KeyError("LM") from error
spaces.read_tps = read_tps
""",
    ),
    "Functions": (
        "test_functions.py::test_odd_values_are_taken_or_refused_in_words[gram.Centered]",
        """
import orthodrome.gram.centered as centered
centered.check_sample_weight = lambda weights, *others: weights
""",
    ),
    "Laws": (
        "test_laws_geometry.py::test_log_and_exp_are_inverse",
        """
import orthodrome.sphere as sphere
right = sphere.exp
sphere.exp = lambda vectors, *others, **options: right(1.01 * vectors, *others, **options)
""",
    ),
    "Accuracy": (
        "test_accuracy.py::test_errors_are_within_their_bounds[sphere.distance-float64]",
        """
import orthodrome.sphere as sphere
right = sphere.distance
sphere.distance = lambda *points, **options: right(*points, **options) * (1 + 1e-12)
""",
    ),
    "Faults": (
        "test_faults.py::test_a_disk_that_is_full_in_the_middle[error-model]",
        """
import pathlib
import orthodrome._core.files as files
files._write = lambda part, target, content: [path.write_bytes(content) for path in (part, target)]
""",
    ),
    "Absent packages": (
        "test_absent.py::test_what_needs_an_extra_names_it_in_one_line[a page to click]",
        # in the child, which is told by a file that Python reads when it starts
        """
import pathlib
pathlib.Path(__file__).with_name("sitecustomize.py").write_text('''
import orthodrome.plots.interactive as interactive
def require_plotly():
    import plotly
interactive.require_plotly = require_plotly
''')
""",
    ),
    "Parameters": (
        "test_parameters.py::test_absurd_values_are_taken_or_refused_in_words[KernelPCA, auto]",
        """
from orthodrome.decomposition.spectral import SpectralDecomposition
del SpectralDecomposition._PARAMETERS["n_components"]
""",
    ),
    "Mutants": (
        "../sphere/test_sphere_streamed.py::"
        "test_a_step_leads_as_far_along_the_sphere_as_it_is_long[0.5]",
        """
from orthodrome.sphere.newton import _View
right = _View.along
_View.along = lambda self, step: right(self, 1.1 * step)
""",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_of_the_library_turns_its_battery_red(name, tmp_path, monkeypatch):
    """A plugin of pytest brings the bug in before the tests import anything."""
    test, bug = BUGS[name]
    (battery,) = (each for each in reliability.batteries() if each.name == name)
    test = f"tests/hardening/{test}".replace("hardening/../", "")
    assert test.partition("::")[0] in battery.tests
    one = replace(battery, tests=[test])
    assert reliability.state(reliability.run(one)) == reliability.GREEN
    (tmp_path / "with_a_bug.py").write_text(bug)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p with_a_bug")
    counts = reliability.run(one)
    assert (counts.cases, counts.failed) == (1, 1)
    assert reliability.state(counts) == reliability.RED


def test_every_battery_has_a_bug_that_it_sees():
    assert set(BUGS) == {battery.name for battery in reliability.batteries()}


def test_every_module_of_this_folder_belongs_to_a_battery():
    said = tomllib.loads((HERE / "batteries.toml").read_text(encoding="utf-8"))
    listed = {name for each in said.values() for name in each["tests"]}
    here = {f"tests/hardening/{path.name}" for path in HERE.glob("test_*.py")}
    tools = {"test_reliability.py", "test_coverage_tool.py"}
    assert here - listed == {f"tests/hardening/{name}" for name in tools}
    assert all((HERE.parents[1] / name).exists() for name in listed)


MUTANTS = {
    "rooms": {"sphere": {"mutants": 40, "before": 30, "after": 38, "date": "today"}},
    "left": [{"where": "sphere/maps.py:1", "why": "it changes nothing"}],
    "mutants": {"sphere": [{"before": "noticed", "after": "gone"}, {"before": "missed"}]},
}


def test_mutants_are_told_as_they_were_counted():
    lines = reliability.mutant_lines(MUTANTS)
    assert "| `sphere` | 40 | 30 (75%) | 38 (95%) | 1 | today |" in lines
    assert "- `sphere/maps.py:1`: it changes nothing" in lines


# What takes longer --------------------------------------------------------------------------------

CLEAN = {"date": "today", "commit": "abc", "processor": "", "seconds": 9, "tests": 7, "failed": []}
THERE = CLEAN | {"versions": "numpy 2.0", "skipped": 3}
COVERED = dict.fromkeys(coverage_rooms.COUNTS, 0) | {"num_statements": 30, "missing_lines": 3}
FINE = reliability.Kept(
    mutants=MUTANTS,
    runs=[CLEAN] * reliability.RUNS,
    coverage={"date": "today", "commit": "abc", "rooms": {"gram": COVERED}},
    elsewhere={"newest": THERE, "oldest": THERE},
)
FAILED = {"failed": ["tests.x::test_y"]}


def of_coverage(**counts):
    return FINE.coverage | {"rooms": {"gram": COVERED | counts}}


def red_of(kept):
    return [each.name for each in reliability.longer(kept) if each.state == reliability.RED]


def with_why(*said):
    return MUTANTS | {"left": [{"where": "sphere/maps.py:1", "why": why} for why in said]}


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("mutants", {"mutants": None}),
        ("mutants", {"mutants": MUTANTS | {"rooms": {}}}),
        ("mutants", {"mutants": with_why("it changes nothing", "")}),
        ("mutants", {"mutants": with_why("Open: nobody knows")}),
        ("mutants", {"mutants": with_why("still open")}),
        ("mutants", {"mutants": MUTANTS | {"mutants": {"sphere": [{"line": 3}]}}}),
        ("repeated runs", {"runs": None}),
        ("repeated runs", {"runs": FINE.runs[1:]}),
        ("repeated runs", {"runs": [*FINE.runs, CLEAN | FAILED]}),
        ("repeated runs", {"runs": [*FINE.runs[1:], CLEAN | FAILED, *FINE.runs[1:]]}),
        ("the wheel elsewhere", {"elsewhere": None}),
        ("the wheel elsewhere", {"elsewhere": {"newest": THERE}}),
        ("the wheel elsewhere", {"elsewhere": {"newest": THERE, "oldest": THERE | FAILED}}),
        ("the wheel elsewhere", {"elsewhere": {"newest": THERE | {"tests": 0}, "oldest": THERE}}),
        ("coverage", {"coverage": None}),
        ("coverage", {"coverage": FINE.coverage | {"rooms": {}}}),
        ("coverage", {"coverage": of_coverage(missing_lines=4)}),
        ("coverage", {"coverage": of_coverage(num_branches=20, missing_branches=3)}),
        ("coverage", {"coverage": of_coverage(missing_lines=30)}),
        ("coverage", {"coverage": FINE.coverage | {"missing": {"gram/sums.py": "3"}}}),
    ],
)
def test_what_is_missing_or_wrong_is_red(what, change):
    assert red_of(FINE) == []
    kept = replace(FINE, **change)
    assert red_of(kept) == [what]
    text = reliability.page([], kept, "today")
    (row,) = (line for line in text.splitlines() if line.startswith(f"| {what} |"))
    assert reliability.RED in row


@pytest.mark.parametrize("kept", [FINE, replace(FINE, coverage=None)])
def test_the_status_counts_what_takes_longer(tmp_path, monkeypatch, capsys, kept):
    monkeypatch.setattr("sys.argv", ["reliability.py"])
    monkeypatch.setattr(reliability, "ROOT", tmp_path)
    monkeypatch.setattr(reliability, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(reliability, "counted", lambda names: [(BATTERY, reliability.Counts(1))])
    monkeypatch.setattr(reliability.Kept, "stored", lambda: kept)
    assert reliability.main() == (kept is not FINE)
    assert ("Red: coverage" in capsys.readouterr().err) == (kept is not FINE)


def test_coverage_is_told_beside_what_is_asked_for():
    (told,) = (each for each in reliability.longer(FINE) if each.name == "coverage")
    assert told.numbers == "90.0 % of lines and branches, 0 of the rest unexplained, 90 % asked for"


def test_a_mutant_that_was_left_for_a_reason_may_speak_of_open_sets():
    assert reliability.is_explained("an open hemisphere is all there is")
    assert not reliability.is_explained(" ")


def test_a_run_that_failed_is_told_and_ends_the_count():
    good = CLEAN
    bad = good | {"commit": "def", "processor": "Nehalem", "failed": ["tests.x::test_y[a|b]"]}
    text = "\n".join(repeats.told([good, bad, good, good]))
    assert "`make repeat`: 4, " in text
    assert "the last 2 of these runs" in text
    assert "| today | def | Nehalem | `tests.x::test_y[a\\|b]` |" in text
    assert "1 of the runs computed with the BLAS kernels of another processor (Nehalem)" in text
    assert "the last 2 of these runs" in "\n".join(repeats.told([good, good]))


def test_of_many_failures_some_are_named():
    bad = CLEAN | {"failed": [f"test_{i}" for i in range(9)]}
    assert "`test_5`<br>and 3 more |" in "\n".join(repeats.told([bad]))


def test_failures_are_read_from_the_report():
    report = (
        '<testsuites><testsuite><testcase classname="a" name="b"/>'
        '<testcase classname="a" name="c"><failure/></testcase>'
        '<testcase classname="a" name="d"><error/></testcase>'
        '<testcase classname="a" name="e"><skipped/></testcase></testsuite></testsuites>'
    )
    assert repeats.failures(report) == (3, ["a::c", "a::d"])


def test_the_wheel_elsewhere_is_told_as_it_was_run():
    run = THERE | FAILED
    assert "| oldest | numpy 2.0 | 7 | 3 | 1 | today | abc |" in elsewhere.told({"oldest": run})
    assert "not been run" in elsewhere.told({})[-1]


def test_a_run_elsewhere_without_a_report_has_failed(tmp_path, monkeypatch):
    """And it takes the place of the run before."""
    monkeypatch.setattr(elsewhere, "STORE", tmp_path / "elsewhere.json")
    monkeypatch.setattr(repeats, "commit", lambda: "here")
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="a" name="b"/>'
        '<testcase classname="a" name="c"><skipped/></testcase></testsuite></testsuites>'
    )
    came = elsewhere.came_of(report, 0)
    assert came == {"tests": 1, "skipped": 1, "failed": []}
    assert elsewhere.came_of(report, 3)["failed"]
    elsewhere.keep("newest", came, "numpy 2.0")
    elsewhere.keep("newest", elsewhere.came_of(tmp_path / "none.xml", 139), "numpy 2.0")
    kept = json.loads(elsewhere.STORE.read_text())["newest"]
    assert (kept["tests"], len(kept["failed"])) == (0, 1)
    assert "139" in kept["failed"][0]


@pytest.mark.parametrize(
    ("arguments", "some_only"),
    [
        ("", False),
        ("-q -m not_slow", False),
        ("-m=not_slow -n 2 --tb=short -x", False),
        ("-q -m not_slow -k gaussian", True),
        ("-m not_slow -m slow", True),
        ("-mslow", True),
        ("-q tests/gram", True),
        ("--deselect=tests/gram", True),
        ("--lf", True),
    ],
)
def test_a_run_of_some_tests_is_not_kept(arguments, some_only):
    given = [each.replace("not_slow", "not slow") for each in arguments.split()]
    assert elsewhere.selects(given) == some_only


def test_coverage_is_told_by_rooms():
    kept = {"date": "today", "commit": "abc", "rooms": {"gram": COVERED, "eigen": COVERED}}
    kept["missing"] = {"gram/sums.py": "3, 7-8, 9->12"}
    lines = coverage_rooms.told(kept)
    start = lines.index("<summary>Not run in gram</summary>")
    told = ["- `gram/sums.py`", "  - 3, 7-8, 9->12: *unexplained*"]
    assert lines[start + 2 : start + 4] == told
    assert "<summary>Not run in eigen</summary>" not in lines
    assert "| `gram` | 30 | 3 | 0 | 0 | 90.0 % |" in lines
    assert "| `all` | 60 | 6 | 0 | 0 | 90.0 % |" in lines
    assert "not been measured" in coverage_rooms.told(None)[-1]


def test_every_battery_has_a_word_of_its_own():
    words = [battery.word for battery in reliability.batteries()]
    assert len(set(words)) == len(words)


def test_a_battery_can_be_run_again_alone(tmp_path, monkeypatch):
    """What is known of the others stays; one that was never run is red."""
    others = [replace(BATTERY, name=name) for name in ("Storms", "Floods of rain", "Droughts")]
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
