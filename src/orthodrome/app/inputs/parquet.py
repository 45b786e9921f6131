"""Read parquet files with pyarrow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...plots._extras import require
from . import checks
from .checks import format_names, quote
from .data import Data, InputError


def read_parquet(path: Path, *, label: str | None, columns: Sequence[str] | None) -> Data:
    """Read a table from a parquet file; see :func:`read_data`."""
    parquet = require("pyarrow.parquet", "Parquet files", "data")
    try:
        with path.open("rb") as opened:
            return _read(parquet.ParquetFile(opened), str(path), label, columns)
    except (InputError, PermissionError):
        raise
    except Exception as problem:  # pyarrow raises many kinds of errors for damaged files
        raise InputError(
            f"{path} is not a valid parquet file: {str(problem).strip()}. Save it again."
        ) from None


def _read(file: Any, path: str, label: str | None, columns: Sequence[str] | None) -> Data:
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
    _check_numbers(path, schema, features)
    if not n:
        raise InputError(f"{path} has columns but no rows: {format_names(names)}.")
    advice = "Use a sample of the rows, or fewer columns (--columns)."
    checks.check_memory(2 * 8 * n * len(features) + 200 * n, f"{path}, {n} rows,", advice)
    ids = None if chosen.ids is None else names[chosen.ids]
    table = file.read(columns=[*features, *(names[i] for i in chosen.texts)])
    # missing values become NaN
    floats = [table.column(name).cast("float64", safe=False) for name in features]
    X = np.column_stack([column.to_numpy(zero_copy_only=False) for column in floats])
    checks.check_finite(path, X, features)
    row_ids = checks.row_names(n) if ids is None else tuple(_texts(table, ids))
    labels = None if label is None else checks.check_labels(path, _texts(table, label), label)
    return Data(path, "table", X, tuple(features), row_ids, labels, label, ids)


def _pandas_index(schema: Any) -> str | None:
    """Return the name of the column with the pandas index, if there is one."""
    try:
        indexes = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, ValueError, TypeError):
        return None
    return next((name for name in indexes if isinstance(name, str) and name in schema.names), None)


def _check_numbers(path: str, schema: Any, features: Sequence[str]) -> None:
    types = require("pyarrow", "Parquet files", "data").types
    tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    kinds = {name: schema.field(name).type for name in features}
    numbers = [name for name, kind in kinds.items() if any(test(kind) for test in tests)]
    texts = [name for name in features if name not in numbers]
    if texts:
        raise InputError(
            f"{path}, column {quote(texts[0])}: the values have the type {kinds[texts[0]]}, not "
            f"numbers. {checks.text_advice(texts, numbers)}"
        )


def _texts(table: Any, name: str) -> list[str]:
    return ["" if value is None else str(value) for value in table.column(name).to_pylist()]
