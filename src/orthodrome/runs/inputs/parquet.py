"""Parquet files, by pyarrow."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plots import MissingExtraError
from ..memory import memory_refusal
from .data import Data, InputError, listed, shown
from .selection import Selection, choose_columns
from .tables import missing_advice, text_advice
from .text import is_no_label

__all__ = ["read_parquet"]


def read_parquet(path: Path, *, label: str | None, columns: Sequence[str] | None) -> Data:
    """Read a table from a parquet file; see :func:`read_data`."""
    pyarrow = _require_pyarrow()
    with _damage_told(path), path.open("rb") as opened:
        return _checked_and_read(pyarrow, path, opened, label, columns)


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """Let whatever pyarrow raises on damaged bytes, of many kinds, name the file."""
    try:
        yield
    except (InputError, MissingExtraError, PermissionError):
        raise
    except Exception as problem:
        raise InputError(f"{path} is not a whole parquet file: {str(problem).strip()}.") from None


def _checked_and_read(
    pyarrow: Any, path: Path, opened: Any, label: str | None, columns: Sequence[str] | None
) -> Data:
    file = pyarrow.parquet.ParquetFile(opened)
    schema = file.schema_arrow
    names = list(schema.names)
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(
            f"{path} has several columns called {shown(twice[0])}. Give each a name of its own."
        )
    index = _pandas_index(schema)
    ordered = [*([index] if index else []), *(name for name in names if name != index)]
    selection = _chosen(path, ordered, index, label, columns)
    features = [ordered[i] for i in selection.features]
    _refuse_texts(path, schema, features, pyarrow.types)
    n = file.metadata.num_rows
    if not n:
        raise InputError(f"{path} has columns and no rows: {listed(names)}.")
    refusal = memory_refusal(2 * 8 * n * len(features) + 200 * n, f"{path}, {n} rows,")
    if refusal:
        raise InputError(f"{refusal}. Take a sample of the rows, or fewer columns with --columns.")
    return _read(path, file, ordered, features, selection)


def _require_pyarrow() -> Any:
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "pyarrow":
            raise
        raise MissingExtraError(
            "Parquet files need pyarrow: pip install 'orthodrome[data]'", name="pyarrow"
        ) from error


def _pandas_index(schema: Any) -> str | None:
    """Return the column that holds pandas' index, if pandas has written one."""
    try:
        wanted = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, ValueError, TypeError):
        return None
    found = [name for name in wanted if isinstance(name, str) and name in schema.names]
    return found[0] if found else None


def _chosen(
    path: Path,
    names: list[str],
    index: str | None,
    label: str | None,
    columns: Sequence[str] | None,
) -> Selection:
    """Choose columns; pandas' index names the rows, whatever it is called."""
    if index is None:
        return choose_columns(str(path), names, label, columns)
    if columns is None:
        columns = [name for name in names if name not in (index, label)]
    selection = choose_columns(str(path), names, label, columns)
    ids = 0 if 0 not in (selection.label, *selection.features) else None
    return Selection(selection.features, selection.label, ids)


def _refuse_texts(path: Path, schema: Any, features: Sequence[str], types: Any) -> None:
    def numeric(name: str) -> bool:
        kind = schema.field(name).type
        return bool(
            types.is_integer(kind)
            or types.is_floating(kind)
            or types.is_decimal(kind)
            or types.is_boolean(kind)
        )

    texts = [name for name in features if not numeric(name)]
    if texts:
        kind = schema.field(texts[0]).type
        raise InputError(
            f"{path}, column {shown(texts[0])}: its values are of type {kind}, not numbers. "
            + text_advice(texts, [name for name in features if name not in texts])
        )


def _read(
    path: Path, file: Any, names: Sequence[str], features: Sequence[str], selection: Selection
) -> Data:
    label = None if selection.label is None else names[selection.label]
    ids = None if selection.ids is None else names[selection.ids]
    wanted = [*features, *(name for name in (label, ids) if name is not None)]
    table = file.read(columns=wanted)
    X = np.column_stack([_floats(table.column(name)) for name in features])
    _check_finite(path, X, features)
    n = len(X)
    return Data(
        str(path),
        "table",
        np.ascontiguousarray(X),
        tuple(features),
        tuple(f"row {i + 1}" for i in range(n)) if ids is None else tuple(_texts(table, ids)),
        None if label is None else _labels(path, table, label),
        label,
        ids,
    )


def _floats(column: Any) -> NDArray[np.float64]:
    """Return a column as numbers, NaN where there is none."""
    values = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64)


def _texts(table: Any, name: str) -> list[str]:
    return ["" if value is None else str(value) for value in table.column(name).to_pylist()]


def _labels(path: Path, table: Any, name: str) -> NDArray[np.str_]:
    texts = _texts(table, name)
    absent = [row for row, text in enumerate(texts) if is_no_label(text)]
    if absent:
        raise InputError(
            f"{path}, row {absent[0] + 1}, column {shown(name)}: there is no label. Complete it, "
            "or remove the row."
        )
    return np.array(texts, dtype=np.str_)


def _check_finite(path: Path, X: NDArray[np.float64], features: Sequence[str]) -> None:
    bad = ~np.isfinite(X)
    if not bad.any():
        return
    row, column = (int(found) for found in np.argwhere(bad)[0])
    where = f"{path}, row {row + 1}, column {shown(features[column])}"
    if np.isnan(X[row, column]):
        counts = dict(zip(features, np.isnan(X).sum(axis=0).tolist(), strict=True))
        raise InputError(f"{where}: the value is missing. " + missing_advice(counts))
    raise InputError(f"{where}: the value is infinite. Correct it, or remove the row.")
