"""Format names for messages, choose the columns of tables, and check values and memory."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core.memory import format_bytes
from .data import InputError, UnknownColumnError

_MEMINFO = Path("/proc/meminfo")
# Container limits: files of cgroups version 2, then version 1.
_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_memory() -> int | None:
    """Return the number of available bytes, or None if it is unknown.

    It is the smaller of the system's available memory and the rest of the container's limit.

    Examples
    --------
    >>> from orthodrome.app.inputs.checks import available_memory
    >>> found = available_memory()
    >>> found is None or found > 0
    True
    """
    known = [size for size in (_system_memory(), *_container_memory()) if size is not None]
    return max(min(known), 0) if known else None


def _system_memory() -> int | None:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:  # no /proc: assume that half of the installed memory is free
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _container_memory() -> list[int]:
    remaining = []
    for limit, usage in _LIMITS:
        try:
            remaining.append(int(Path(limit).read_text()) - int(Path(usage).read_text()))
        except (OSError, ValueError):  # no such file, or no limit ("max")
            continue
    return remaining


# Without --missing, incomplete rows are dropped if they are at most this fraction.
MAX_DROPPED = 0.05

_MAX_QUOTED = 40
_MAX_LISTED = 12
# A first column with one of these names holds row names; pandas names its index "".
_ROW_NAME_COLUMNS = {"", "unnamed: 0", "__index_level_0__", "index", "id", "ids", "name", "row"}


def column_names(count: int, dimension: int = 1) -> tuple[str, ...]:
    """Return default column names: x1, x2, …; for landmarks x1, y1, and so on."""
    return tuple(f"{axis}{i + 1}" for i in range(count) for axis in "xyz"[:dimension])


def row_names(count: int) -> tuple[str, ...]:
    """Return default row names: row 1, row 2, and so on."""
    return tuple(f"row {i + 1}" for i in range(count))


def quote(text: str) -> str:
    """Quote text for a message: shortened, on one line."""
    return repr(text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "…")


def format_names(names: Iterable[Any], max_names: int = _MAX_LISTED) -> str:
    """Format names for a message; only the first `max_names` are listed."""
    all_names = [quote(str(name)) for name in names]
    rest = len(all_names) - max_names
    return ", ".join(all_names[:max_names]) + (f" and {rest} more" if rest > 0 else "")


# ---------------------------------------------------------------------------- columns


class Selection(NamedTuple):
    """Positions of columns: the features, the labels and the names of the rows."""

    features: tuple[int, ...]
    label: int | None
    ids: int | None

    @property
    def texts(self) -> list[int]:
        """Columns to read as text."""
        return [i for i in (self.label, self.ids) if i is not None]


def choose_columns(
    path: str, names: Sequence[str], label: str | None, columns: Sequence[str] | None
) -> Selection:
    """Choose columns by name.

    Without `columns`, all columns are features except the label and a first column of row names.
    """
    label_column = None if label is None else position(path, names, label, "--label")
    name_column = 0 if names and names[0].strip().lower() in _ROW_NAME_COLUMNS else None
    if columns is None:
        features = [i for i in range(len(names)) if i not in (label_column, name_column)]
    else:
        features = [position(path, names, name, "--columns") for name in columns]
    if len(set(features)) < len(features):
        twice = next(names[i] for i in features if features.count(i) > 1)
        raise InputError(f"{path}: --columns has {quote(twice)} twice. Name each column once.")
    if label_column in features:
        raise InputError(
            f"{path}: {quote(label or '')} is both in --label and in --columns. Remove it from one."
        )
    if not features:
        raise InputError(
            f"{path} has no columns of features; it has only {format_names(names)}. Add columns of "
            "numbers."
        )
    is_free = name_column not in (label_column, *features)
    return Selection(tuple(features), label_column, name_column if is_free else None)


def position(path: str, names: Sequence[str], wanted: str, option: str) -> int:
    """Return the position of a column by its name."""
    if wanted in names:
        return list(names).index(wanted)
    near = difflib.get_close_matches(wanted, names, n=1)
    hint = f" Did you mean {quote(near[0])}?" if near else ""
    raise UnknownColumnError(
        f"{path} has no column {quote(wanted)} ({option}).{hint} Its columns are "
        f"{format_names(names)}.",
        wanted,
    )


# ---------------------------------------------------------------------------- checks


def is_missing_label(text: str) -> bool:
    """Return whether a label is missing: empty or nan. "NA" or "none" may name a class."""
    return not text or text.lower() == "nan"


def unlabelled_rows(labels: Sequence[str] | NDArray[np.str_] | None, n: int) -> NDArray[np.bool_]:
    """Return which of n rows lack a label; none if there are no labels at all."""
    return np.array([is_missing_label(t) for t in (["known"] * n if labels is None else labels)])


def check_labels(path: str, texts: Sequence[str], column: str) -> NDArray[np.str_]:
    """Return the labels of all rows; raise if one is missing."""
    for row, text in enumerate(texts, start=1):
        if is_missing_label(text):
            raise missing_label(f"{path}, row {row}", column)
    return np.array(texts, dtype=np.str_)


def missing_label(where: str, column: str) -> InputError:
    """Return the error for a row without a label."""
    return InputError(
        f"{where}, column {quote(column)}: there is no label. Add it, or remove the row."
    )


def drop_incomplete(
    place: str,
    noun: str,
    problems: Mapping[str, NDArray[np.bool_]],
    missing: str | None,
    fill: str,
) -> tuple[NDArray[np.bool_], str]:
    """Return which rows are complete, and a note on the others; raise if the user has to decide.

    Parameters
    ----------
    place : str
        The file, and the place of the first incomplete row.
    noun : str
        What a row is called.
    problems : mapping of str to ndarray of bool
        What rows lack, and which rows lack it. At least one row is incomplete.
    missing : str or None
        The option --missing. None drops rows if they are few.
    fill : str
        The option that keeps incomplete rows, and what it does; "" if there is none.
    """
    dropped = np.any(list(problems.values()), axis=0)
    n, counts = len(dropped), {lacking: rows.sum() for lacking, rows in problems.items()}
    what = " and ".join(f"{k} of {n} {noun}s have {lacking}" for lacking, k in counts.items() if k)
    too_many = missing is None and max(counts.values()) > MAX_DROPPED * n
    if missing == "error" or too_many or dropped.all():
        drop = "" if dropped.all() else f"--missing drop to leave these {noun}s out"
        options = " or ".join(filter(None, (drop, fill)))
        raise InputError(f"{place}: {what}. Fill them in{options and f', or use {options}'}.")
    keep = f" Use {fill}." if fill else ""
    return ~dropped, f"{what}. These {noun}s were dropped.{keep}"


def infinite_value(path: str, X: NDArray[Any], columns: Sequence[str]) -> str:
    """Return where a value is infinite; "" if none is."""
    infinite = np.isinf(X)
    if not infinite.any():
        return ""
    row, column = (int(index) for index in np.argwhere(infinite)[0])
    return (
        f"{path}, row {row + 1}, column {quote(columns[column])}: the value is infinite. Correct "
        "it, or remove the row."
    )


def check_memory(needed: float, what: str, advice: str = "Use a sample of the rows.") -> None:
    """Raise if `what` would not fit in the available memory."""
    available = available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"{what} would need about {format_bytes(needed)} of memory, but only "
            f"{format_bytes(available)} are available. {advice}".strip()
        )
