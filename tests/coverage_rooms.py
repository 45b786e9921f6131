"""Tell what `make coverage` has measured: each room's share, and every line that no test runs.

    python tests/coverage_rooms.py [--keep] [.coverage]

With --keep (of a run of the whole suite) the sums of rooms and these lines are kept in
hardening/coverage.json, for the page about reliability. Branches count as coverage.py counts them;
`12->15` is a way from one line to another that was never taken. Compiled loops are not counted: no
tracer sees them, and uncompiled they are neither quick enough nor the same (numba's arithmetic does
not raise). `make mutation` changes those of its rooms.
"""

from __future__ import annotations

import argparse
import datetime
import json
import tempfile
from pathlib import Path
from typing import Any

import repeats

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / "tests" / "hardening" / "coverage.json"
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
        "without the slow batteries. Compiled loops are not counted: no tracer sees them.",
        "",
        "| room | lines | missed | branches | missed | share |",
        "|---|---|---|---|---|---|",
    ]
    for room, total in with_sum(kept["rooms"]).items():
        cells = [f"`{room}`", *(str(total[count]) for count in COUNTS), f"{share(total):.1f} %"]
        found.append("| " + " | ".join(cells) + " |")
    for room in kept["rooms"]:
        gone = {name: s for name, s in kept.get("missing", {}).items() if room_of(name) == room}
        if gone:
            found += ["", "<details>", f"<summary>Not run in {room}</summary>", ""]
            found += [f"- `{name}`: {where}" for name, where in gone.items()]
            found += ["", "</details>"]
    return found


def keep(said: dict[str, Any]) -> None:
    """Keep the sums of rooms, and what is missing in each file."""
    date = datetime.date.today().isoformat()
    kept = {"date": date, "commit": repeats.commit(), "rooms": rooms(said["files"])}
    kept["missing"] = missing(said["files"])
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
