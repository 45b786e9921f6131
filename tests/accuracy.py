"""Measure how far the library is from its oracles, and write hardening/accuracy.json.

    python tests/accuracy.py [name ...]

Names are those of hardening/bounds.toml, or begin like them; without any, all is measured, which
takes minutes. docs/accuracy.md shows what was written beside the bounds: nobody types a figure. The
tests measure anew and hold every error to its bound.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import measuring

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


def main(names: list[str]) -> int:
    known, said = measurements(), measuring.bounds()
    chosen = [name for name in said if not names or name.startswith(tuple(names))]
    if not chosen:
        print(f"Nothing is called {', '.join(names)}.", file=sys.stderr)
        return 2
    record: dict[str, Any] = recorded()
    beyond = []
    for name in chosen:
        record[name] = {
            precision: float(f"{known[name].largest(measuring.DTYPES[precision]):.2g}")
            for precision in said[name]["bound"]
        }
        print(f"{name}: {record[name]}", flush=True)
        over = any(error > said[name]["bound"][each] for each, error in record[name].items())
        beyond += [name] if over else []
    ordered = {name: record[name] for name in said if name in record}
    RECORD.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")
    print(f"Wrote {RECORD.relative_to(ROOT)}")
    if beyond:
        print(f"Beyond their bounds: {', '.join(beyond)}", file=sys.stderr)
    return int(bool(beyond))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
