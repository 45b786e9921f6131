"""Files of results: tables, the model and the page, all of them there or none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._core.files import write_together
from .classification import Trial
from .clustering import Clustering
from .embedding import Embedding
from .inputs import Data
from .inputs.text import escape_formula
from .models import last_step

__all__ = [
    "clusters_table",
    "coordinates_table",
    "predictions_table",
    "table_of",
    "table_text",
    "write_files",
]


def table_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV: floats with all their digits, text safe to open in a spreadsheet."""
    return "".join(",".join(map(_cell, row)) + "\n" for row in (header, *rows))


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return repr(float(value))
    text = escape_formula(value) if isinstance(value, str) else str(value)
    # csv.writer leaves a lone carriage return unquoted, and what follows it begins a new row
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text


def coordinates_table(found: Embedding) -> str:
    """Name, label and coordinates of every row, as CSV."""
    header, names = _names_of_rows(found.data)
    rows = ([*name, *point] for name, point in zip(names, found.coordinates.tolist(), strict=True))
    return table_text([*header, *found.names], rows)


def clusters_table(found: Clustering) -> str:
    """Name, label and cluster of every row, and how sure it is where the model tells, as CSV."""
    header, names = _names_of_rows(found.data)
    columns = [found.labels.tolist()]
    header = [*header, "cluster"]
    if found.probabilities is not None:
        columns.append(found.probabilities.tolist())
        header.append("probability")
    rows = ([*name, *cells] for name, *cells in zip(names, *columns, strict=True))
    return table_text(header, rows)


def predictions_table(trial: Trial) -> str:
    """Name, label and predicted label of every row, as CSV."""
    header, names = _names_of_rows(trial.data)
    rows = ([*name, label] for name, label in zip(names, trial.predicted.tolist(), strict=True))
    return table_text([*header, "predicted"], rows)


def _names_of_rows(data: Data) -> tuple[list[str], list[list[str]]]:
    """The first columns of every table: the row's name and, if it has one, its label."""
    if data.labels is None:
        return ["row"], [[name] for name in data.ids]
    labels = map(str, data.labels)
    return ["row", data.label_title], list(map(list, zip(data.ids, labels, strict=True)))


def write_files(folder: Path, files: dict[str, bytes]) -> dict[str, Path]:
    """Write files into a folder that exists; if one of them cannot be written, none is."""
    paths = {name: folder / name for name in files}
    write_together({paths[name]: content for name, content in files.items()})
    return paths


def table_of(model: Any, data: Data) -> tuple[list[str], list[list[Any]]]:
    """What a fitted model says of the rows of a file: header and rows.

    Labels of a classifier, clusters of a clustering, coordinates of a decomposition.
    """
    names = [[name] for name in data.ids]
    if is_classifier(model):
        header, columns = ["predicted"], [np.asarray(model.predict(data.X)).tolist()]
    elif hasattr(model, "predict"):
        header, columns = ["cluster"], [np.asarray(model.predict(data.X)).tolist()]
    else:
        header = list(map(str, last_step(model).get_feature_names_out()))
        columns = np.asarray(model.transform(data.X)).T.tolist()
    rows = [[*name, *cells] for name, *cells in zip(names, *columns, strict=True)]
    return ["row", *header], rows
