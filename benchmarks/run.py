"""Run the benchmarks and write RESULTS.md: nobody types a figure.

    python benchmarks/run.py [name ...]

Without names every bench_*.py runs. The results of benchmarks that do not run are kept from the
last time (results.json), with the date on which they were measured.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from harness import Measured

from orthodrome._core.machine import machine


def main(names: list[str]) -> None:
    store = HERE / "results.json"
    results: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    for name in names or sorted(path.stem for path in HERE.glob("bench_*.py")):
        print(f"== {name}", flush=True)
        start = time.perf_counter()
        measured = importlib.import_module(name).run()
        results[name] = {
            "date": datetime.date.today().isoformat(),
            "machine": machine(),
            "versions": versions(),
            "seconds": time.perf_counter() - start,
            "rows": [dataclasses.asdict(row) for row in measured],
        }
        for row in measured:
            print(line(row), flush=True)
    store.write_text(json.dumps(results, indent=1) + "\n")
    (HERE / "RESULTS.md").write_text(page(results))
    print(f"wrote {(HERE / 'RESULTS.md').relative_to(HERE.parent)}")


def versions() -> dict[str, str]:
    from importlib.metadata import version

    return {
        name: version(name) for name in ("orthodrome", "numpy", "scipy", "scikit-learn", "numba")
    }


def show(values: list[float], unit: str) -> str:
    low, middle, high = (show_one(f(values), unit) for f in (min, statistics.median, max))
    return f"{middle} ({low} to {high})"


def show_one(value: float, unit: str) -> str:
    return f"{value:.3g} s" if unit == "s" else f"{value / 2**30:.3g} GiB"


def verdict(row: Measured) -> str:
    if not row.accurate:
        return "not comparable: the required accuracy was missed"
    if row.limit is not None:
        return "reached" if max(row.ours) <= row.limit else "missed"
    if row.target is None:
        return ""
    return "reached" if row.ratio <= row.target else "missed"


def line(row: Measured) -> str:
    low, high = row.ratio_range
    return f"{row.name}: ratio {row.ratio:.3f} ({low:.3f} to {high:.3f}) {verdict(row)}"


def page(results: dict[str, Any]) -> str:
    text = [
        "# Benchmarks",
        "",
        "Written by `benchmarks/run.py` (`make bench`); do not edit. Both sides run in turn, with "
        "the same threads, after a warm-up that also checks the accuracy of each: in one process, "
        "or in two where a note says so. Figures are medians with the range in brackets; a ratio "
        "is ours over theirs, so smaller is better, and its range is over neighbouring runs.",
    ]
    for name, entry in results.items():
        v = ", ".join(f"{package} {number}" for package, number in entry["versions"].items())
        text += [
            "",
            f"## {name}",
            "",
            f"{entry['date']}; {entry['machine']}; {v}; {entry['seconds']:.0f} s in all.",
        ]
        for data in entry["rows"]:
            text += section(Measured(**data))
    return "\n".join(text) + "\n"


def section(row: Measured) -> list[str]:
    low, high = row.ratio_range
    goal = "" if row.target is None else f"; goal {row.target:g}: {verdict(row)}"
    if row.limit is not None:
        goal = f"; goal for ours, {show_one(row.limit, row.unit)} at the most: {verdict(row)}"
    text = [
        "",
        f"### {row.name}",
        "",
        "| | median (range) | error |",
        "|---|---|---|",
    ]
    for label, values, error in (
        (row.ours_label, row.ours, row.ours_error),
        (row.theirs_label, row.theirs, row.theirs_error),
    ):
        shown = "" if error is None else f"{error:.1e}"
        text.append(f"| {label} | {show(values, row.unit)} | {shown} |")
    text += ["", f"Ratio {row.ratio:.3f} ({low:.3f} to {high:.3f}), {len(row.ours)} runs{goal}."]
    if row.required is not None:
        text.append(f"Both sides had to reach an error of {row.required:.0e}.")
    if row.note:
        text += ["", row.note]
    return text


if __name__ == "__main__":
    main(sys.argv[1:])
