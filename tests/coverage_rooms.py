"""Tell what `make coverage` has measured: each room's share, and every line that no test runs.

    python tests/coverage_rooms.py [--keep] [.coverage]

With --keep (of a run of the whole suite) the sums of rooms and these lines are kept in
hardening/coverage.json, for the page about reliability. Branches count as coverage.py counts them;
`12->15` is a way from one line to another that was never taken. Why no quick test runs a line is
told in hardening/uncovered.toml: an entry is about the lines of its file whose statement its text
occurs in, and about the ways from them; what none is about is *unexplained*.

Compiled loops are not counted: no tracer sees them, and uncompiled they are neither quick enough
nor the same (numba's arithmetic does not raise). `make mutation` changes those of its rooms.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import repeats

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / "tests" / "hardening" / "coverage.json"
REASONS = ROOT / "tests" / "hardening" / "uncovered.toml"
PACKAGE = "src/orthodrome/"
COUNTS = ("num_statements", "missing_lines", "num_branches", "missing_branches")


def report(data: Path) -> dict[str, Any]:
    """Read what coverage.py has measured."""
    import coverage

    measured = coverage.Coverage(data_file=str(data), config_file=str(ROOT / "pyproject.toml"))
    measured.load()
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "coverage.json"
        measured.json_report(outfile=str(target))
        return json.loads(target.read_text(encoding="utf-8"))


def _short(name: str) -> str:
    return name.partition(PACKAGE)[2]


def room_of(name: str) -> str:
    """The room of a file, by its name in the package; what lies in none is `(top)`."""
    room, deeper, _ = name.partition("/")
    return room if deeper else "(top)"


def missing(files: dict[str, Any]) -> dict[str, str]:
    """The lines, and the ways between lines that run, that no test takes, of each file."""
    found = {}
    for name, each in sorted(files.items()):
        gone = set(each["missing_lines"])
        ways = [f"{a}->{b}" for a, b in each["missing_branches"] if a not in gone and b not in gone]
        if gone or ways:
            found[_short(name)] = ", ".join([spans(sorted(gone))] * bool(gone) + ways)
    return found


def statements(source: str) -> dict[int, str]:
    """The statement that begins at each line, on one line; of `if`, `def`, … the head alone."""
    lines, found = source.splitlines(), {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.stmt, ast.ExceptHandler)):
            body = getattr(node, "body", None)
            end = max(body[0].lineno - 1, node.lineno) if body else node.end_lineno
            text = " ".join(line.strip() for line in lines[node.lineno - 1 : end])
            found.setdefault(node.lineno, text)
    return found


def places(where: str) -> Iterator[tuple[str, int]]:
    """Each line and way that :func:`missing` names, with the line at which it begins."""
    for part in filter(None, where.split(", ")):
        if "->" in part:
            yield part, int(part.partition("->")[0])
        else:
            first, _, last = part.partition("-")
            yield from ((str(n), n) for n in range(int(first), int(last or first) + 1))


def standing(gone: dict[str, str], sources: dict[str, str]) -> dict[str, dict[str, str]]:
    """The statements at the lines that no test runs, for they move when the file is changed."""
    found = {}
    for name, where in gone.items():
        texts = statements(sources[name])
        found[name] = {str(line): texts.get(line, "") for _, line in places(where)}
    return found


def reasons() -> dict[str, dict[str, str]]:
    """Why no quick test runs what it does not, by file and by a piece of the statement."""
    return tomllib.loads(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}


def is_about(piece: str, statement: str) -> bool:
    """Whether a piece occurs in a statement; a word such as `raise` stands for itself alone."""
    return piece == statement if piece.isidentifier() else piece in statement


def explained(kept: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Lines and ways of each file by the reason that is told for them; '' where there is none."""
    known, found = reasons(), {}
    for name, where in kept.get("missing", {}).items():
        texts = kept.get("statements", {}).get(name, {})
        by_reason: dict[str, list[str]] = {}
        for label, line in places(where):
            text = texts.get(str(line), "")
            why = (each for piece, each in known.get(name, {}).items() if is_about(piece, text))
            by_reason.setdefault(next(why, ""), []).append(label)
        found[name] = by_reason
    return found


def n_unexplained(kept: dict[str, Any]) -> int:
    """How many lines and ways no test runs without a reason."""
    return sum(len(each.get("", [])) for each in explained(kept).values())


def _drawn_together(labels: list[str]) -> str:
    ways = [label for label in labels if "->" in label]
    numbers = sorted(int(label) for label in labels if "->" not in label)
    return ", ".join([*filter(None, [spans(numbers)]), *ways])


def rooms(files: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Sum the counts of the files of each room."""
    totals: dict[str, dict[str, int]] = {}
    for name, each in sorted(files.items()):
        total = totals.setdefault(room_of(_short(name)), dict.fromkeys(COUNTS, 0))
        for count in COUNTS:
            total[count] += each["summary"][count]
    return totals


def share(total: dict[str, int]) -> float:
    """The part of lines and branches that tests run, in percent."""
    lines, no_lines, branches, no_branches = (total[count] for count in COUNTS)
    return 100 * (1 - (no_lines + no_branches) / max(lines + branches, 1))


def spans(numbers: list[int]) -> str:
    """Write numbers with their runs drawn together: 3, 7-9."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def with_sum(totals: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The rooms, and all of them together."""
    everything = {count: sum(each[count] for each in totals.values()) for count in COUNTS}
    return totals | {"all": everything}


def told(kept: dict[str, Any] | None) -> list[str]:
    """The lines of the page about coverage."""
    heading = ["## Coverage", ""]
    if not kept:
        return [*heading, "The coverage has not been measured yet (`make coverage`)."]
    found = [
        *heading,
        f"Lines and branches that `make coverage` saw run, on {kept['date']} at {kept['commit']}, "
        "without the slow batteries. Compiled loops are not counted: no tracer sees them. Of what "
        f"was not run, {n_unexplained(kept)} lines and branches are unexplained; of the others "
        "`tests/hardening/uncovered.toml` says why.",
        "",
        "| room | lines | missed | branches | missed | share |",
        "|---|---|---|---|---|---|",
    ]
    for room, total in with_sum(kept["rooms"]).items():
        cells = [f"`{room}`", *(str(total[count]) for count in COUNTS), f"{share(total):.1f} %"]
        found.append("| " + " | ".join(cells) + " |")
    whys = explained(kept)
    for room in kept["rooms"]:
        gone = {name: by_reason for name, by_reason in whys.items() if room_of(name) == room}
        if gone:
            found += ["", "<details>", f"<summary>Not run in {room}</summary>", ""]
            for name, by_reason in gone.items():
                found.append(f"- `{name}`")
                for why, labels in by_reason.items():
                    found.append(f"  - {_drawn_together(labels)}: {why or '*unexplained*'}")
            found += ["", "</details>"]
    return found


def in_short(kept: dict[str, Any]) -> str:
    """The share of all rooms, and how much of the rest is unexplained."""
    percent = share(with_sum(kept["rooms"])["all"])
    return f"{percent:.1f} % of lines and branches, {n_unexplained(kept)} of the rest unexplained"


def keep(said: dict[str, Any]) -> None:
    """Keep the sums of rooms, what is missing in each file, and what stands there."""
    date = datetime.date.today().isoformat()
    kept = {"date": date, "commit": repeats.commit(), "rooms": rooms(said["files"])}
    kept["missing"] = missing(said["files"])
    sources = {_short(name): Path(name).read_text(encoding="utf-8") for name in said["files"]}
    kept["statements"] = standing(kept["missing"], sources)
    STORE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def lines(said: dict[str, Any]) -> list[str]:
    """The table and the list."""
    totals = with_sum(rooms(said["files"]))
    told = [f"{'room':16}{'lines':>8}{'missed':>8}{'branches':>10}{'missed':>8}{'share':>9}"]
    for room, total in totals.items():
        a, b, c, d = (total[count] for count in COUNTS)
        told.append(f"{room:16}{a:8}{b:8}{c:10}{d:8}{share(total):8.1f}%")
    return [*told, "", *(f"{name}: {where}" for name, where in missing(said["files"]).items())]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("data", nargs="?", type=Path, default=ROOT / ".coverage")
    given = parser.parse_args()
    measured = report(given.data)
    if given.keep:
        keep(measured)
    print("\n".join(lines(measured)))
