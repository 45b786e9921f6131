"""Data sets and tables shared by the scripts that chose the defaults.

Each script of this folder compares settings on the sets in ``CHOOSE``, confirms the choice on the
sets in ``CONFIRM``, and writes ``docs/defaults/<area>.md``, a part of the page "How the defaults
were chosen". Run one with ``python benchmarks/defaults/<area>.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from orthodrome import datasets

#: Tables to choose settings on, and others to confirm the choice.
CHOOSE = (
    "iris",
    "wine",
    "glass",
    "ionosphere",
    "sonar",
    "heart_statlog",
    "pima_diabetes",
    "digits",
)
CONFIRM = ("seeds", "ecoli", "parkinsons", "vertebral_column_3c", "australian_credit", "liver_bupa")
CONFIRM += ("breast_cancer", "pendigits")

_DOCS = Path(__file__).resolve().parents[2] / "docs" / "defaults"


def table(name: str, *, max_rows: int = 1000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised columns and labels; of large sets, a random sample of the rows."""
    if name in ("breast_cancer", "digits"):
        X, y = {"breast_cancer": load_breast_cancer, "digits": load_digits}[name](return_X_y=True)
    else:
        bunch = datasets.load(name)
        X, y = np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target)
    if len(X) > max_rows:
        rows = np.sort(np.random.default_rng(seed).choice(len(X), max_rows, replace=False))
        X, y = X[rows], y[rows]
    return StandardScaler().fit_transform(X), np.unique(y, return_inverse=True)[1]


def mean_and_error(scores: Iterable[float], digits: int = 3) -> str:
    """Return the mean of scores with its standard error."""
    values = np.array(list(scores), dtype=np.float64)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(map(str, cells)) + " |" for cells in lines]


def write(area: str, lines: Sequence[str]) -> None:
    """Write one part of the page."""
    _DOCS.mkdir(exist_ok=True)
    path = _DOCS / f"{area}.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"wrote {path}")
