"""What commands share: results, runs in parts with progress and notes, and tables as CSV."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from .._core.progress import reporting
from ..persist.archive import pack
from .inputs import Data
from .inputs.text import escape_formula
from .models import Choice, last_step

MODEL = "model.orthodrome"

#: Called with the fraction of the run that is done, and the name of the current part.
Report = Callable[[float, str], None]


def silent(fraction: float, task: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Result:
    """The result of a command.

    Each command has a subclass with ``columns()`` of its table, ``summary()`` (facts for JSON and
    lines for people) and ``sections()`` of its page.
    """

    #: The name of its table.
    file: ClassVar[str] = ""

    data: Data
    choice: Choice
    model: Any
    notes: tuple[str, ...]
    seconds: dict[str, float]

    @property
    def rows(self) -> Data:
        """The rows of the table."""
        return self.data

    def columns(self) -> dict[str, Iterable[Any]]:
        """Return the columns of the table, after the name and the label of each row."""
        raise NotImplementedError

    def files(self) -> dict[str, bytes]:
        """Return the files to write besides the page: the table and the fitted model."""
        notes = {"columns": list(self.data.columns), "kind": self.data.kind}
        table = named_rows(self.rows, self.columns())
        return {self.file: table.encode("utf-8"), MODEL: pack(self.model, notes)}

    def python(self, testing: str) -> list[str]:
        """Return the lines of Python that use the model on ``data``."""
        return ["coordinates = model.fit_transform(data.X)"]


class Work:
    """A run in parts, each with its share of the time.

    Parameters
    ----------
    report : callable
        Called with the fraction of the whole that is done, and the name of the part.
    shares : float
        The parts in their order, with their shares; they need not add up to 1.

    Examples
    --------
    >>> from orthodrome.app.results import Work
    >>> work = Work(lambda fraction, task: print(f"{task} {fraction:.2f}"), fit=3, page=1)
    >>> with work.part("fit") as advance:
    ...     advance(0.5)
    fit 0.00
    fit 0.38
    fit 0.75
    """

    def __init__(self, report: Report = silent, **shares: float) -> None:
        self._report, self._shares = report, shares
        self.notes: list[str] = []
        self.seconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str, model: Any = None) -> Iterator[Callable[[float], None]]:
        """Do one part; warnings become notes, and fits of `model` report their progress."""
        shares = list(self._shares.values())
        before = sum(shares[: list(self._shares).index(name)])

        def advance(fraction: float) -> None:
            self._report((before + fraction * self._shares[name]) / sum(shares), name)

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


def drawn(n: int, most: int, seed: int) -> NDArray[np.intp]:
    """Return all rows, or a random sample of `most`, in their order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


def rows_of(data: Data, rows: NDArray[np.intp]) -> Data:
    """Return some of the rows."""
    if len(rows) == len(data):
        return data
    ids = tuple(data.ids[row] for row in rows)
    labels = None if data.labels is None else data.labels[rows]
    return replace(data, X=data.X[rows], ids=ids, labels=labels)


# ---------------------------------------------------------------------------- tables


def table_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV: floats with all digits, text safe to open in a spreadsheet."""
    return "".join(",".join(map(_cell, row)) + "\n" for row in (header, *rows))


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return repr(float(value))
    text = escape_formula(value) if isinstance(value, str) else str(value)
    # csv.writer leaves a lone carriage return unquoted, and what follows it begins a new row
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text


def named_rows(data: Data, columns: dict[str, Iterable[Any]]) -> str:
    """Return a table as CSV: the name of each row, its label if it has one, and `columns`."""
    named: dict[str, Iterable[Any]] = {"row": data.ids}
    if data.labels is not None:
        named[data.label_title] = data.labels.tolist()
    every = {**named, **columns}
    return table_text(list(every), zip(*every.values(), strict=True))


def predicted_table(model: Any, data: Data) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the rows of the table of the command predict.

    It has the labels of a classifier, the clusters of a clustering, or coordinates.
    """
    if hasattr(model, "predict"):
        header = ["predicted" if is_classifier(model) else "cluster"]
        columns = [np.asarray(model.predict(data.X)).tolist()]
    else:
        header = list(map(str, last_step(model).get_feature_names_out()))
        columns = np.asarray(model.transform(data.X)).T.tolist()
    return ["row", *header], list(map(list, zip(data.ids, *columns, strict=True)))
