"""Make mutants of the core rooms, see whether tests notice, write hardening/mutation.json.

    python tests/mutation.py [room ...] [--number 80] [--minutes 60]

A mutant is a small change that cosmic-ray makes to the source; which ones are drawn, and which are
not, says mutation_draw.py. Each is made in a copy of the repository, where the tests of its room
run that come to the changed line, the quickest first, until one fails: the mutant is noticed, as
it is if the tests do not end. The tests of a room are those of its folders in ROOMS without the
slow ones. First they run unchanged, to see what they take and which lines they come to.

The first measurement of a mutant is kept as "before"; every later one is its "after". A run that
is ended goes on where it was; results of the same source and tests are not measured again. Those
that remain are told with the words of "why", which somebody writes into mutation.json.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import hashlib
import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutation_draw import Mutant, draw, mutated

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "tests" / "hardening" / "mutation.json"
SCRATCH = ROOT / ".mutation"  # what can be made again: maps of the tests, and results so far
PACKAGE = "src/orthodrome"
ROOMS = {
    "sphere": ["tests/sphere", "src/orthodrome/sphere"],
    "eigen": ["tests/eigen", "src/orthodrome/eigen"],
    "gram": ["tests/gram", "tests/distributed", "src/orthodrome/gram"],
}
# What the tests of these rooms read.
COPIED = ("src", "tests", "conftest.py", "pyproject.toml")
# The tests with a mutant may compute six times as long as without, and seconds for pytest to begin;
# beside other work, or where they wait and do not compute, that takes many times as long.
GRACE, PATIENCE = 60, 20
MEMORY = 12 * 2**30  # bytes that they may have

NOTICED, ENDLESS, MISSED, GONE = "noticed", "endless", "missed", "gone"


# ---------------------------------------------------------------------------- a copy of the tree


class Copy:
    """A copy of the repository where one file at a time is changed."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder / "tree"
        self.root.mkdir()
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".hypothesis")
        for name in COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, self.root / name, ignore=ignored)
            elif (root / name).exists():
                shutil.copy(root / name, self.root / name)
        self.cache, self.temporary = folder / "numba", folder / "tmp"
        self.temporary.mkdir()

    def write(self, file: Path, text: str) -> None:
        """Write a module; Python would take one of the same size and second for the old one."""
        (self.root / file).write_text(text, encoding="utf-8")
        for stale in (self.root / file.parent / "__pycache__").glob(f"{file.stem}.*"):
            stale.unlink()

    def environment(self, **more: str) -> dict[str, str]:
        threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        data = os.environ.get("ORTHODROME_DATA") or ROOT.parent / "shared" / "data"
        paths = [self.root / "src", self.root / "tests", os.environ.get("PYTHONPATH", "")]
        return {
            **os.environ,
            **dict.fromkeys(threads, "1"),
            "SCIPY_ARRAY_API": "1",
            "MPLBACKEND": "Agg",
            "PYTHONPATH": os.pathsep.join(map(str, paths)).rstrip(os.pathsep),
            "ORTHODROME_DATA": str(Path(data).resolve()),
            "TMPDIR": str(self.temporary),
            "NUMBA_CACHE_DIR": str(self.cache),
            **more,
        }

    def pytest(
        self, tests: Iterable[str], *, limit: float | None = None, **more: str
    ) -> int | None:
        """Run tests; return the status of pytest, or None if they do not end in time."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "no:xdist", "-p", "mutation_pytest", "-m", "not slow", *tests]
        command += ["-x"] if "MUTATION_ORDER" in more else []
        with open(self.temporary / "output.txt", "w", encoding="utf-8") as output:
            running = subprocess.Popen(
                command,
                cwd=self.root,
                env=self.environment(**more),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                return running.wait(limit)
            except subprocess.TimeoutExpired:
                return None
            finally:  # its own children too
                if running.poll() is None:
                    os.killpg(running.pid, signal.SIGKILL)
                    running.wait()

    def output(self) -> str:
        return (self.temporary / "output.txt").read_text(encoding="utf-8", errors="replace")


# ---------------------------------------------------------------------------- which tests


@dataclass
class Map:
    """Which tests come to which lines, and what they take."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]
    digests: dict[str, str]  # of the files of tests

    @staticmethod
    def of(said: dict[str, Any]) -> Map:
        names = [name for name, _ in said["tests"]]
        lines = {
            file: {int(line): {names[i] for i in tests} for line, tests in each.items()}
            for file, each in said["lines"].items()
        }
        return Map(dict(said["tests"]), lines, said["digests"])

    def covering(self, file: str, lines: Iterable[int]) -> set[str]:
        known = self.lines.get(file, {})
        return set().union(*(known.get(line, set()) for line in lines))


def map_of(room: str, copy: Copy) -> Map:
    """Run the tests of a room unchanged, once for each state of its source."""
    digests = {
        path.relative_to(copy.root).as_posix(): _digest([path])
        for folder in ROOMS[room]
        for path in sorted((copy.root / folder).rglob("*.py"))
    }
    helpers = [path for path in sorted(copy.root.glob("tests/*.py")) if "mutation" not in path.name]
    source = sorted((copy.root / PACKAGE / room).rglob("*.py"))
    digest = _digest([*source, *helpers])
    stored = SCRATCH / f"{room}-map.json"
    if stored.exists():
        said = json.loads(stored.read_text(encoding="utf-8"))
        if said["digest"] == digest:
            return Map.of(said)
    print(f"{room}: its tests run unchanged", flush=True)
    target = copy.temporary / "map.json"
    more = {"MUTATION_MAP": str(target), "MUTATION_SOURCE": str(copy.root / PACKAGE)}
    status = copy.pytest(ROOMS[room], **more)
    said = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {"failed": "all"}
    if status or said["failed"]:
        raise SystemExit(f"Tests fail without a mutant: {said['failed']}\n{copy.output()[-3000:]}")
    said |= {"digest": digest, "digests": digests}
    SCRATCH.mkdir(exist_ok=True)
    stored.write_text(json.dumps(said), encoding="utf-8")
    return Map.of(said)


def _digest(paths: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def reaching(package: Path, file: str, line: int, known: Map) -> set[str]:
    """The tests that come to a line, or to what depends on it."""
    tree = ast.parse((package / file).read_text(encoding="utf-8"))
    around = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _has(node, line)]
    functions = [node for node in around if isinstance(node, ast.FunctionDef)]
    loops = [node for node in functions if _is_compiled(node)]
    if loops:  # coverage does not see them
        return _users(package, loops[-1].name, known)
    if not functions:  # runs when the module is imported
        return set(known.seconds)
    innermost = max(around, key=_first)
    if innermost is functions[0]:  # decorators and defaults
        return known.covering(file, range(innermost.lineno + 1, (innermost.end_lineno or 0) + 1))
    body = getattr(innermost, "body", None) or getattr(innermost, "cases", None)
    end = body[0].lineno - 1 if isinstance(body, list) and body else innermost.end_lineno
    return known.covering(file, range(_first(innermost), max(end or 0, innermost.lineno) + 1))


def _first(node: ast.stmt) -> int:
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])


def _has(node: ast.stmt, line: int) -> bool:
    return _first(node) <= line <= (node.end_lineno or node.lineno)


def _is_compiled(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "compiled" for each in node.decorator_list)


def _users(package: Path, name: str, known: Map) -> set[str]:
    """The tests that come to a function that names a compiled one, perhaps through others."""
    names, found, seen = [name], set(), {name}
    while names:
        wanted = names.pop()
        for path in sorted(package.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if wanted not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                if not isinstance(node, ast.FunctionDef) or not _names(node, wanted):
                    continue
                if _is_compiled(node) and node.name not in seen:
                    names.append(node.name)
                    seen.add(node.name)
                lines = range(node.lineno + 1, (node.end_lineno or 0) + 1)
                found |= known.covering(path.relative_to(package).as_posix(), lines)
    return found


def _names(node: ast.AST, wanted: str) -> bool:
    return any(
        (isinstance(each, ast.Name) and each.id == wanted)
        or (isinstance(each, ast.Attribute) and each.attr == wanted)
        for each in ast.walk(node)
    )


# ---------------------------------------------------------------------------- one mutant


def attempt(mutant: Mutant, copy: Copy, room: str, known: Map, by: str = "") -> tuple[str, str]:
    """Make a mutant, run tests; return what came of it and the test that noticed."""
    found = mutated(copy.root / PACKAGE, mutant)
    return trial(mutant.file, *found, copy, room, known, by) if found else (GONE, "")


def trial(
    file: str, text: str, line: int, copy: Copy, room: str, known: Map, by: str = ""
) -> tuple[str, str]:
    """Run tests with a module whose text differs at a line; `by` runs first."""
    tests = reaching(copy.root / PACKAGE, file, line, known)
    wanted = sorted(tests, key=known.seconds.__getitem__)
    if by in known.seconds:
        wanted = [by, *(name for name in wanted if name != by)]
    files = {name.partition("::")[0] for name in wanted} | changed_since(copy, room, known)
    files = {name for name in files if (copy.root / name).exists()}
    if not files:
        return MISSED, ""
    seconds = GRACE + 6 * sum(known.seconds[name] for name in wanted)
    order, failed = copy.temporary / "order.json", copy.temporary / "failed.txt"
    order.write_text(json.dumps({"wanted": wanted, "known": _still_known(copy, room, known)}))
    failed.unlink(missing_ok=True)
    path = Path(PACKAGE) / file
    original = (copy.root / path).read_text(encoding="utf-8")
    more = {"MUTATION_ORDER": order, "MUTATION_FAILED": failed}
    more |= {"MUTATION_MEMORY": MEMORY, "MUTATION_SECONDS": int(seconds)}
    if "compiled" in original:  # others may have compiled it into theirs
        more["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(dir=copy.temporary)
    copy.write(path, text)
    try:
        environment = {name: str(value) for name, value in more.items()}
        status = copy.pytest(sorted(files), limit=PATIENCE * seconds, **environment)
    finally:
        copy.write(path, original)
    return outcome(status, copy), failed.read_text() if failed.exists() else ""


def outcome(status: int | None, copy: Copy) -> str:
    """What the status of pytest says of a mutant."""
    if status in (None, -signal.SIGXCPU):
        return ENDLESS
    if status in (0, 5):  # 5: nothing was collected
        return MISSED
    if status in (3, 4) and "orthodrome" not in copy.output():
        raise RuntimeError(f"pytest ended with {status}:\n{copy.output()[-3000:]}")
    return NOTICED  # a failure, an error of import, or a crash


def changed_since(copy: Copy, room: str, known: Map) -> set[str]:
    """Files of tests that the map does not know as they are."""
    return {
        name
        for folder in ROOMS[room]
        for path in (copy.root / folder).rglob("test_*.py")
        if known.digests.get(name := path.relative_to(copy.root).as_posix()) != _digest([path])
    }


def _still_known(copy: Copy, room: str, known: Map) -> list[str]:
    changed = changed_since(copy, room, known)
    return [name for name in known.seconds if name.partition("::")[0] not in changed]


# ---------------------------------------------------------------------------- all of them


class Results:
    """What mutation.json holds; `path` is written after every mutant."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.said: dict[str, Any] = {"seed": seed, "rooms": {}, "left": [], "mutants": {}}
        if path.exists():
            self.said = json.loads(path.read_text(encoding="utf-8"))

    def mutants(self, room: str, number: int) -> list[dict[str, Any]]:
        """The mutants of a room: those of before, and more if more are asked for."""
        known = self.said["mutants"].setdefault(room, [])
        if len(known) < number:
            seen = {Mutant.of(each) for each in known}
            drawn = draw(ROOT / PACKAGE, room, number, self.said["seed"])
            known += [each.said() for each in drawn if each not in seen][: number - len(known)]
        return known[:number]

    def write(self) -> None:
        """Count anew, and write."""
        self.said["cosmic-ray"] = importlib.metadata.version("cosmic-ray")
        self.said["rooms"] = rooms = {}
        self.said["left"] = left = []
        for room, all_of_it in self.said["mutants"].items():
            latest = [each.get("after", each.get("before", GONE)) for each in all_of_it]
            measured = [e for e, what in zip(all_of_it, latest, strict=True) if what != GONE]
            after = [what for what in latest if what != GONE]
            if not measured:
                continue
            rooms[room] = {
                "mutants": len(measured),
                "before": sum(each["before"] in (NOTICED, ENDLESS) for each in measured),
                "after": sum(each in (NOTICED, ENDLESS) for each in after),
                "date": max(each["date"] for each in measured),
            }
            left += [
                {"where": str(Mutant.of(each)), "why": each.get("why", "")}
                for each, state in zip(measured, after, strict=True)
                if state == MISSED
            ]
        scratch = self.path.with_suffix(".part")
        text = json.dumps(self.said, indent=1, ensure_ascii=False)
        scratch.write_text(text + "\n", encoding="utf-8")
        scratch.replace(self.path)


def measure(room: str, number: int, results: Results, copy: Copy, until: float) -> bool:
    """Try the mutants of a room that this source and these tests have not been tried with."""
    known = map_of(room, copy)
    everything = [path for name in COPIED for path in _files(copy.root / name)]
    state = _digest(sorted(path for path in everything if not path.stem.startswith("mutation")))
    for each in results.mutants(room, number):
        if each.get("state") == state:
            continue
        if time.monotonic() > until:
            return False
        begun = time.monotonic()
        what, by = attempt(Mutant.of(each), copy, room, known, each.get("by", ""))
        each["after" if "before" in each else "before"] = what
        each |= {"state": state, "by": by, "date": datetime.date.today().isoformat()}
        results.write()
        print(f"{what} in {time.monotonic() - begun:.0f} s: {Mutant.of(each)} {by}", flush=True)
    return True


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return [each for each in path.rglob("*") if each.suffix in (".py", ".toml")]
    return [path] if path.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("room", nargs="*", choices=[[], *ROOMS], help="all if none is named")
    parser.add_argument("--number", type=int, default=80, help="mutants of each room")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end after so long")
    parser.add_argument("--seed", type=int, default=0, help="of the first draw")
    said = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the copy is removed
    until = time.monotonic() + 60 * said.minutes
    results = Results(STORED, said.seed)
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as scratch:
        copy = Copy(ROOT, Path(scratch))
        done = [measure(room, said.number, results, copy, until) for room in said.room or ROOMS]
    for room, each in results.said["rooms"].items():
        n, before, after = (each[name] for name in ("mutants", "before", "after"))
        print(f"{room}: {before} of {n} noticed before, {after} after")
    if not all(done):
        print("The time is over; run it again to go on.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
