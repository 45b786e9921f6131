"""Read parquet files with pandas and pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...plots._extras import require
from . import checks
from .checks import format_names
from .data import InputError, RawTable


def read_parquet(path: Path, *, label: str | None, columns: Sequence[str] | None) -> RawTable:
    """Read a table from a parquet file; see :func:`read_data`."""
    parquet = require("pyarrow.parquet", "Parquet files", "cli")
    pandas = require("pandas", "Tables", "cli")
    try:
        n, names = parquet.read_metadata(path).num_rows, parquet.read_schema(path).names
        wanted = names if columns is None else [*columns, *([] if label is None else [label])]
        is_known = columns is not None and set(wanted) <= set(names)
        advice = "Use a sample of the rows, or fewer columns (--columns)."
        checks.check_memory(2 * 8 * n * len(wanted) + 200 * n, f"{path}, {n} rows,", advice)
        frame = pandas.read_parquet(path, columns=wanted if is_known else None)
    except (InputError, PermissionError):
        raise
    except Exception as problem:  # pyarrow raises many kinds of errors for damaged files
        raise InputError(
            f"{path} is not a valid parquet file: {' '.join(str(problem).split())}. Save it again."
        ) from None
    names = tuple(map(str, frame.columns))
    if frame.empty:
        raise InputError(f"{path} has columns but no rows: {format_names(names)}.")
    frame.columns = names
    chosen = checks.choose_columns(str(path), names, label, columns)
    id_name, ids = None, checks.row_names(n)
    if not isinstance(frame.index, pandas.RangeIndex):
        id_name, ids = str(frame.index.name or "index"), tuple(map(str, frame.index))
    elif chosen.ids is not None:
        id_name, ids = names[chosen.ids], tuple(map(str, frame[names[chosen.ids]]))
    labels = None
    if label is not None:
        labels = frame[label].map(str, na_action="ignore").astype(object).fillna("").tolist()
    values = frame[[names[i] for i in chosen.features]].reset_index(drop=True)
    numbers = values.select_dtypes("number")
    infinite = checks.infinite_value(str(path), numbers.to_numpy(), tuple(numbers))
    return RawTable(str(path), values, ids, labels, label, id_name, problem=infinite)
