"""The tool that makes mutants, on a small package: what is drawn, which tests run, what is told."""

import json
import textwrap
from pathlib import Path

import pytest

import mutation
import mutation_draw
from mutation import ENDLESS, GONE, MISSED, NOTICED
from mutation_draw import Mutant

STORED = Path(__file__).resolve().parent / "mutation.json"

SUMS = '''\
"""Sums of 2 kinds."""

from __future__ import annotations

from .loops import compiled, doubled

LIMIT = 100


def total(values: list[int | float], start: int = 0) -> float:
    """Return 1 number."""
    for value in values:
        start = start + value
    if start > LIMIT:  # pragma: no cover
        start = LIMIT
    return start


def never(x: int, *, y: int) -> int:
    return x - y


def twice(x):
    count = 0 if dict(copy=False) else 1
    while count < 1:
        count = count + 1
    return (
        doubled(x)
        + 0
    )
'''
LOOPS = """\
def compiled(function):
    return function


@compiled
def doubled(x):
    return inner(x)


@compiled
def inner(x):
    return 2 * x
"""
TESTS = """\
import functools

import pytest
from toy.room.sums import total, twice


@functools.cache
def six():
    return total([1, 2, 3])


def test_first():
    assert six()


def test_second():
    assert six() == 6


def test_twice():
    assert twice(4) == 8


@pytest.mark.slow
def test_slow():
    assert False
"""
SETTINGS = """\
[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
markers = ["slow"]
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A package with one room, and the tool pointed at it."""
    root = tmp_path / "project"
    files = {
        "src/toy/__init__.py": "",
        "src/toy/room/__init__.py": "",
        "src/toy/room/sums.py": SUMS,
        "src/toy/room/loops.py": LOOPS,
        "tests/room/test_room.py": TESTS,
        "pyproject.toml": SETTINGS,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    plugin = Path(mutation.__file__).with_name("mutation_pytest.py")
    (root / "tests" / plugin.name).write_text(plugin.read_text())
    monkeypatch.setattr(mutation, "ROOT", root)
    monkeypatch.setattr(mutation, "SCRATCH", root / ".mutation")
    monkeypatch.setattr(mutation, "PACKAGE", "src/toy")
    monkeypatch.setattr(mutation, "ROOMS", {"room": ["tests/room"]})
    return root


@pytest.fixture
def copy(toy, tmp_path):
    pytest.importorskip("coverage", reason="needs coverage: pip install orthodrome[dev]")
    (tmp_path / "copy").mkdir()
    return mutation.Copy(toy, tmp_path / "copy")


def short(names):
    return {name.rpartition("::")[2] for name in names}


def line_of(text, part):
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


def changed(text, was, now):
    assert text.count(was) == 1
    return text.replace(was, now)


# ---------------------------------------------------------------------------- running


@pytest.mark.slow
def test_tests_run_by_the_lines_they_come_to(copy):
    """One run of the map, and all that follows from it."""
    known = mutation.map_of("room", copy)
    assert short(known.seconds) == {"test_first", "test_second", "test_twice"}

    package = copy.root / "src/toy"

    def reached(part, file="room/sums.py", text=SUMS):
        return short(mutation.reaching(package, file, line_of(text, part), known))

    both = {"test_first", "test_second"}
    assert reached("start + value") == both, "what one test remembers for another"
    assert reached("start: int = 0") == both, "defaults"
    assert reached("return x - y") == set()
    assert reached("LIMIT = 100") == {*both, "test_twice"}, "imports"
    assert reached("        + 0") == {"test_twice"}, "statements of several lines"
    assert reached("2 * x", "room/loops.py", LOOPS) == {"test_twice"}, "compiled, through another"

    def tried(was, now, file="room/sums.py", text=SUMS, **more):
        new = changed(text, was, now)
        return mutation.trial(file, new, line_of(text, was), copy, "room", known, **more)

    what, by = tried("start + value", "start - value")
    assert (what, by) == (NOTICED, "tests/room/test_room.py::test_second")
    assert tried("return x - y", "return x + y") == (MISSED, "")
    assert tried("        + 0", "        - 0") == (MISSED, "")
    assert tried("2 * x", "2 + x", "room/loops.py", LOOPS)[0] == NOTICED
    assert tried("import annotations", "import nothing")[0] == NOTICED
    assert (package / "room/sums.py").read_text() == SUMS
    assert (package / "room/loops.py").read_text() == LOOPS
    assert (mutation.ROOT / "src/toy/room/sums.py").read_text() == SUMS

    # tests that are newer than the map run too, and the map is not made again
    path = copy.root / "tests/room/test_more.py"
    path.write_text(
        "from toy.room.sums import never\n\ndef test_it():\n    assert never(3, y=1) == 2"
    )
    again = mutation.map_of("room", copy)
    new = changed(SUMS, "return x - y", "return x + y")
    line = line_of(SUMS, "return x - y")
    what, by = mutation.trial("room/sums.py", new, line, copy, "room", again)
    assert (what, short([by])) == (NOTICED, {"test_it"})


@pytest.mark.slow
@pytest.mark.parametrize("way", ["computes", "waits"])
def test_tests_that_do_not_end_are_ended(way, copy, monkeypatch):
    monkeypatch.setattr(mutation, "GRACE", 3)
    monkeypatch.setattr(mutation, "PATIENCE", 100 if way == "computes" else 2)
    known = mutation.Map({"tests/room/test_room.py::test_twice": 0.0}, {}, {})
    known.lines["room/sums.py"] = {i: set(known.seconds) for i in range(1, 40)}
    known.digests = {"tests/room/test_room.py": mutation._digest([*copy.root.glob("tests/room/*")])}
    loop = "count = count + 0" if way == "computes" else "__import__('time').sleep(1)"
    new = changed(SUMS, "count = count + 1", loop)
    line = line_of(SUMS, "count = count + 1")
    assert mutation.trial("room/sums.py", new, line, copy, "room", known) == (ENDLESS, "")
    assert (copy.root / "src/toy/room/sums.py").read_text() == SUMS


def test_tests_that_fail_without_a_mutant_are_told(copy):
    (copy.root / "tests/room/test_bad.py").write_text("def test_bad():\n    assert False\n")
    with pytest.raises(SystemExit, match="test_bad"):
        mutation.map_of("room", copy)


def test_a_changed_module_is_not_taken_for_the_compiled_old_one(copy):
    cached = copy.root / "src/toy/room/__pycache__"
    cached.mkdir()
    stale, other = cached / "sums.cpython-311.pyc", cached / "loops.cpython-311.pyc"
    stale.touch()
    other.touch()
    copy.write(Path("src/toy/room/sums.py"), SUMS)
    assert not stale.exists()
    assert other.exists()


# ---------------------------------------------------------------------------- telling


def said(was, now="x", **more):
    return {**Mutant("room/sums.py", "total", "core/Some", was, now, 0).said(), **more}


def test_results_are_counted_and_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(mutation.importlib.metadata, "version", lambda name: "1")
    path = tmp_path / "mutation.json"
    results = mutation.Results(path, 0)
    results.said["mutants"]["room"] = [
        said("a", before=NOTICED, after=NOTICED, date="2026-01-01"),
        said("b", before=MISSED, after=ENDLESS, date="2026-01-02"),
        said("c", before=MISSED, after=MISSED, date="2026-01-02", why="It is the same."),
        said("d", before=NOTICED, after=GONE, date="2026-01-02"),
        said("e", before=MISSED, date="2026-01-01"),
        said("f"),
    ]
    results.write()
    told = json.loads(path.read_text())
    assert told["rooms"] == {
        "room": {"mutants": 4, "before": 1, "after": 2, "date": "2026-01-02"},
    }
    assert told["left"] == [
        {"where": "room/sums.py, total: c → x", "why": "It is the same."},
        {"where": "room/sums.py, total: e → x", "why": ""},
    ]
    assert mutation.Results(path, 7).said == told, "the seed is that of the first draw"


def test_a_run_that_was_ended_goes_on(copy, monkeypatch, tmp_path):
    tried = []

    def attempt(mutant, *_):
        tried.append(mutant.was)
        return MISSED, ""

    monkeypatch.setattr(mutation, "attempt", attempt)
    monkeypatch.setattr(mutation, "map_of", lambda *_: None)
    monkeypatch.setattr(mutation.importlib.metadata, "version", lambda name: "1")
    results = mutation.Results(tmp_path / "mutation.json", 0)
    results.said["mutants"]["room"] = [said("a"), said("b"), said("c")]

    def run(number, until=float("inf")):
        return mutation.measure("room", number, results, copy, until)

    assert run(2)
    assert run(3)
    assert tried == ["a", "b", "c"]
    assert run(3)
    assert tried == ["a", "b", "c"], "nothing has changed"
    (copy.root / "tests/room/test_room.py").write_text(TESTS + "\n")
    assert not run(3, until=0.0), "the time is over"
    assert tried == ["a", "b", "c"]
    assert run(3)
    assert tried == ["a", "b", "c"] * 2
    assert all(each["after"] == MISSED for each in results.said["mutants"]["room"])


def test_every_mutant_that_is_left_is_explained():
    if not STORED.exists():
        pytest.skip("no mutants have been made yet")
    told = json.loads(STORED.read_text(encoding="utf-8"))
    assert [each["where"] for each in told["left"] if not each["why"].strip()] == []


# ---------------------------------------------------------------------------- drawing


def drawn(toy, number=1000, seed=0):
    pytest.importorskip("cosmic_ray", reason="needs cosmic-ray: pip install orthodrome[mutation]")
    for remembered in vars(mutation_draw).values():
        getattr(remembered, "cache_clear", lambda: None)()
    return mutation_draw.draw(toy / "src/toy", "room", number, seed)


def test_mutants_are_drawn_alike_and_changes_of_nothing_are_not(toy):
    mutants = drawn(toy)
    assert drawn(toy, 5) == mutants[:5]
    assert drawn(toy, 5, seed=1) != mutants[:5]
    assert len(set(mutants)) == len(mutants)
    texts = [mutant.was for mutant in mutants]
    assert '"""Sums of 2 kinds."""' not in texts
    assert not any("pragma" in text or "def never" in text for text in texts)
    assert {"LIMIT = 100", "return x - y", "@compiled"} <= set(texts)
    assert "count = 0 if dict(copy=False) else 1" in texts
    assert not any("copy=True" in mutant.now for mutant in mutants)
    for mutant in mutants:
        text, line = mutation_draw.mutated(toy / "src/toy", mutant)
        assert " ".join(text.split()) != " ".join(
            (toy / "src/toy" / mutant.file).read_text().split()
        )
        assert mutant.was in (toy / "src/toy" / mutant.file).read_text().splitlines()[line - 1]
        compile(text, mutant.file, "exec")
    arithmetic = {each.now for each in mutants if each.was == "return x - y"}
    assert not any(sign in now for now in arithmetic for sign in ("<<", ">>", "&", "|", "^"))


def test_mutants_are_found_again_after_lines_have_moved(toy):
    mutants = [each for each in drawn(toy) if each.file == "room/sums.py"]
    path = toy / "src/toy/room/sums.py"
    extra = textwrap.dedent("""
        def more(a):
            start = a
            start = start + value
            return start
    """)
    path.write_text(changed(SUMS, "\n\ndef total", f"\n{extra}\n\ndef total"))
    drawn(toy, 0)
    for mutant in mutants:
        text, line = mutation_draw.mutated(toy / "src/toy", mutant)
        assert text.splitlines()[: line - 1] == path.read_text().splitlines()[: line - 1]
        if mutant.inside == "total":
            assert line > line_of(SUMS, "def total") + 3
    path.write_text(SUMS.replace("start + value", "value + start"))
    drawn(toy, 0)
    moved = [mutant for mutant in mutants if mutant.was == "start = start + value"]
    assert moved
    assert all(mutation_draw.mutated(toy / "src/toy", mutant) is None for mutant in moved)
