"""Read parquet files with pyarrow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...plots._extras import require
from . import checks
from .checks import format_names, quote
from .data import InputError, RawTable


def read_parquet(path: Path, *, label: str | None, columns: Sequence[str] | None) -> RawTable:
    """Read a table from a parquet file; see :func:`read_data`."""
    parquet = require("pyarrow.parquet", "Parquet files", "cli")
    try:
        with path.open("rb") as opened:
            return _read(parquet.ParquetFile(opened), str(path), label, columns)
    except (InputError, PermissionError):
        raise
    except Exception as problem:  # pyarrow raises many kinds of errors for damaged files
        raise InputError(
            f"{path} is not a valid parquet file: {str(problem).strip()}. Save it again."
        ) from None


def _read(file: Any, path: str, label: str | None, columns: Sequence[str] | None) -> RawTable:
    schema, n = file.schema_arrow, file.metadata.num_rows
    names = list(schema.names)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(
            f"{path} has several columns called {quote(twice[0])}. Give each a different name."
        )
    index = _pandas_index(schema)
    if index is not None:  # holds row names, whatever its own name
        names = [index, *(name for name in names if name != index)]
        if columns is None:
            columns = [name for name in names if name not in (index, label)]
    chosen = checks.choose_columns(path, names, label, columns)
    if index is not None and 0 not in (chosen.label, *chosen.features):
        chosen = chosen._replace(ids=0)
    features = [names[i] for i in chosen.features]
    if not n:
        raise InputError(f"{path} has columns but no rows: {format_names(names)}.")
    advice = "Use a sample of the rows, or fewer columns (--columns)."
    checks.check_memory(2 * 8 * n * len(features) + 200 * n, f"{path}, {n} rows,", advice)
    ids = None if chosen.ids is None else names[chosen.ids]
    table = file.read(columns=[*features, *(names[i] for i in chosen.texts)])
    row_ids = checks.row_names(n) if ids is None else tuple(_texts(table, ids))
    labels = None if label is None else _texts(table, label)
    values = table.select(features).to_pandas(ignore_metadata=True)
    numbers = values.select_dtypes("number")
    problem = checks.infinite_value(path, numbers.to_numpy(), tuple(numbers))
    return RawTable(path, values, row_ids, labels, label, ids, problem=problem)


def _pandas_index(schema: Any) -> str | None:
    """Return the name of the column with the pandas index, if there is one."""
    try:
        indexes = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, ValueError, TypeError):
        return None
    return next((name for name in indexes if isinstance(name, str) and name in schema.names), None)


def _texts(table: Any, name: str) -> list[str]:
    return ["" if value is None else str(value) for value in table.column(name).to_pylist()]
