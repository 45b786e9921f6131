"""Measure how far the library is from its oracles, and write hardening/accuracy.json.

    python tests/accuracy.py [name ...]

Names are those of hardening/bounds.toml, or begin like them; without any, all is measured, which
takes minutes. Processors round in ways of their own, so all is measured with the BLAS kernels of
several, and the largest error is kept. docs/accuracy.md shows what was written beside the bounds:
nobody types a figure. The tests measure anew and hold every error to its bound.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import measuring
import repeats

ROOT = Path(__file__).resolve().parents[1]
RECORD = measuring.BOUNDS.with_name("accuracy.json")
MODULES = ("accuracy_sphere", "accuracy_kernels", "accuracy_fits", "accuracy_spectra")


def measurements() -> dict[str, measuring.Measurement]:
    """All measurements, by their names."""
    for name in MODULES:
        importlib.import_module(name)
    return measuring.MEASUREMENTS


def recorded() -> dict[str, dict[str, float]]:
    """The largest errors that were seen, in units of eps, by name and precision."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def measured(names: list[str]) -> dict[str, dict[str, float]]:
    """Measure the largest errors, in units of eps, with the kernels of this process."""
    known, said = measurements(), measuring.bounds()
    found = {}
    for name in names:
        found[name] = {
            precision: float(f"{known[name].largest(measuring.DTYPES[precision]):.2g}")
            for precision in said[name]["bound"]
        }
        print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    return found


def measured_elsewhere(names: list[str], processor: str) -> dict[str, dict[str, float]]:
    """Measure in a process that computes with the BLAS kernels of a processor."""
    print(f"Kernels of {processor or 'this processor'}", file=sys.stderr, flush=True)
    kernels = {"OPENBLAS_CORETYPE": processor} if processor else {}
    command = [sys.executable, __file__, "--print", *names]
    env = os.environ | kernels
    finished = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(finished.stdout)


def main(arguments: list[str]) -> int:
    names = [name for name in arguments if name != "--print"]
    said = measuring.bounds()
    chosen = [name for name in said if not names or name.startswith(tuple(names))]
    if not chosen:
        print(f"Nothing is called {', '.join(names)}.", file=sys.stderr)
        return 2
    if "--print" in arguments:
        print(json.dumps(measured(chosen)))
        return 0
    found = [measured_elsewhere(chosen, each) for each in dict.fromkeys(repeats.PROCESSORS)]
    record: dict[str, Any] = recorded()
    beyond = []
    for name in chosen:
        bound = said[name]["bound"]
        record[name] = {each: max(one[name][each] for one in found) for each in bound}
        over = any(error > bound[each] for each, error in record[name].items())
        beyond += [name] if over else []
    ordered = {name: record[name] for name in said if name in record}
    RECORD.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")
    print(f"Wrote {RECORD.relative_to(ROOT)}")
    if beyond:
        print(f"Beyond their bounds: {', '.join(beyond)}", file=sys.stderr)
    return int(bool(beyond))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
