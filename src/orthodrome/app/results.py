"""Shared by the commands: results, progress and notes of a run, and CSV tables."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from .._core.progress import reporting
from ..persist.archive import pack
from ..plots.report import Section
from .inputs import Data
from .inputs.tables import escape_formula
from .models import last_step

MODEL = "model.orthodrome"

#: Called with the fraction of the run that is done and the name of the current step.
Report = Callable[[float, str], None]


def silent(fraction: float, task: str) -> None:
    """Report nothing."""


class Work:
    """Progress, times and notes of a run in steps.

    Parameters
    ----------
    report : callable
        Called with the fraction of the run that is done and the name of the step.
    weights : float
        The steps in order, with weights proportional to their expected time.

    Examples
    --------
    >>> from orthodrome.app.results import Work
    >>> work = Work(lambda fraction, task: print(f"{task} {fraction:.2f}"), fit=3, page=1)
    >>> with work.step("fit") as advance:
    ...     advance(0.5)
    fit 0.00
    fit 0.38
    fit 0.75
    """

    def __init__(self, report: Report = silent, **weights: float) -> None:
        self._report, self._weights = report, weights
        self.notes: list[str] = []
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str, model: Any = None) -> Iterator[Callable[[float], None]]:
        """Run one step: record its time and warnings, and report the progress of `model`."""
        weights = list(self._weights.values())
        done = sum(weights[: list(self._weights).index(name)])

        def advance(fraction: float) -> None:
            self._report((done + fraction * self._weights[name]) / sum(weights), name)

        advance(0.0)
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator = last_step(model)
            if hasattr(estimator, "set_callbacks"):
                with reporting(estimator, advance):
                    yield advance
            else:
                yield advance
        self.seconds[name] = time.perf_counter() - started
        for warning in caught:
            text = " ".join(str(warning.message).split())
            if text not in self.notes and not issubclass(warning.category, DeprecationWarning):
                self.notes.append(text)
        advance(1.0)


@dataclass(frozen=True)
class Result:
    """The result of a command.

    Attributes
    ----------
    model : estimator
        The fitted model.
    work : Work
        Notes and times of the run.
    facts, lines : dict, list of str
        The summary for JSON and as text.
    sections : callable
        Returns the sections of the page.
    python : list of str
        Python code that fits ``model`` to ``data``.
    files : dict of str to bytes
        The files to write, except the page.
    """

    model: Any
    work: Work
    facts: dict[str, Any]
    lines: list[str]
    sections: Callable[[], list[Section]]
    python: list[str]
    files: dict[str, bytes]


def sample_rows(n: int, max_rows: int, seed: int) -> NDArray[np.intp]:
    """Return the indices of all rows, or a sorted random sample of `max_rows`."""
    if n <= max_rows:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, max_rows, replace=False))


def select_rows(data: Data, rows: NDArray[np.intp]) -> Data:
    """Return the data of these rows."""
    if len(rows) == len(data):
        return data
    ids = tuple(data.ids[row] for row in rows)
    labels = None if data.labels is None else data.labels[rows]
    return replace(data, X=data.X[rows], ids=ids, labels=labels)


# ---------------------------------------------------------------------------- tables


def table_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV. Floats have all digits; text is safe to open in a spreadsheet."""
    return "".join(",".join(map(_cell, row)) + "\n" for row in (header, *rows))


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return repr(float(value))
    text = escape_formula(value) if isinstance(value, str) else str(value)
    # csv.writer does not quote a lone carriage return, which would start a new row
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text


def table_and_model(
    file: str, rows: Data, columns: dict[str, Iterable[Any]], model: Any, training: Data
) -> dict[str, bytes]:
    """Return two files: a table with the names, labels and `columns` of rows, and a model."""
    table: dict[str, Iterable[Any]] = {"row": rows.ids}
    if rows.labels is not None:
        table[rows.label_title] = rows.labels.tolist()
    table |= columns
    text = table_text(list(table), zip(*table.values(), strict=True))
    notes = {"columns": list(training.columns), "kind": training.kind}
    return {file: text.encode("utf-8"), MODEL: pack(model, notes)}


def predicted_table(model: Any, data: Data) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the rows of the table written by the command predict.

    It has the labels of a classifier, the clusters of a clustering model, or coordinates.
    """
    if hasattr(model, "predict"):
        header = ["predicted" if is_classifier(model) else "cluster"]
        columns = [np.asarray(model.predict(data.X)).tolist()]
    else:
        header = list(map(str, last_step(model).get_feature_names_out()))
        columns = np.asarray(model.transform(data.X)).T.tolist()
    return ["row", *header], list(map(list, zip(data.ids, *columns, strict=True)))
