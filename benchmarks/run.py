"""Run the benchmarks and write RESULTS.md with its figures; no number is typed by hand.

    python benchmarks/run.py [--full] [--smoke] [name ...]

Without names every bench_*.py runs, the quick part of each; with --full all of it. Results of what
does not run are kept from the last time (results.json), with the date on which they were measured.
--smoke runs the same code on data so small that figures mean nothing, and writes to a temporary
folder alone.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import inspect
import json
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

#: Files of which nothing is quick: they run with --full, or if they are named.
LONG = ("bench_dask", "bench_roofline")
#: What a file that takes its size as an argument, ``run(n, repeats)``, is tried with.
SMOKE_POINTS = 50_000

sys.path.insert(0, str(HERE))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="files, without .py; default: every bench_*.py")
    parser.add_argument("--full", action="store_true", help="everything, not the quick part")
    parser.add_argument("--smoke", action="store_true", help="try the code; keep nothing")
    chosen = parser.parse_args(arguments)
    if chosen.smoke:
        os.environ["ORTHODROME_BENCH_SMOKE"] = "1"  # before any benchmark is imported
        with tempfile.TemporaryDirectory() as folder:
            return run(chosen.names, chosen.full, Path(folder))
    return run(chosen.names, chosen.full, HERE)


def run(names: list[str], full: bool, folder: Path) -> int:
    """Run files one after the other, and write everything after each; return how many failed."""
    from report import line, merged, ordered

    store, failed = folder / "results.json", []
    results: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    every = [path.stem for path in HERE.glob("bench_*.py") if full or path.stem not in LONG]
    for name in names or ordered(every):
        print(f"== {name}", flush=True)
        start = time.perf_counter()
        try:
            found = results_of(name, full)
        except Exception:  # the others shall not be lost with it
            traceback.print_exc()
            failed.append(name)
            continue
        seconds = time.perf_counter() - start
        if not found:
            print("   nothing of it is quick: make bench-full")
            continue
        for result in found:
            print(line(result), flush=True)
        print(f"   {seconds:.0f} s", flush=True)
        results[name] = merged(
            results.get(name), found, conditions=conditions(), seconds=seconds, full=full
        )
        if results[name]["rows"]:
            write(results, folder)
        else:
            del results[name]
    if failed:
        print(f"FAILED: {', '.join(failed)}; their earlier results are kept.")
    return len(failed)


def results_of(name: str, full: bool) -> list[Any]:
    """Call ``run()`` of a file, or ``run(full=…)`` where it has parts that take long."""
    function = importlib.import_module(name).run
    takes = inspect.signature(function).parameters
    arguments: dict[str, Any] = {"full": full} if "full" in takes else {}
    if os.environ.get("ORTHODROME_BENCH_SMOKE") and {"n", "repeats"} <= set(takes):
        arguments |= {"n": SMOKE_POINTS, "repeats": 1}
    return list(function(**arguments))


def conditions() -> dict[str, Any]:
    from importlib.metadata import version

    from orthodrome._core.machine import machine

    packages = ("orthodrome", "numpy", "scipy", "scikit-learn", "numba")
    return {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "versions": {name: version(name) for name in packages},
    }


def write(results: dict[str, Any], folder: Path) -> None:
    from report import page, write_figures

    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "RESULTS.md").write_text(page(results))
    write_figures(results, folder / "figures")
    print(f"wrote {folder.name}/RESULTS.md", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
