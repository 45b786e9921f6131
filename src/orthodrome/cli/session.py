"""One run of a command: what it reads, computes, writes and says."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from .._core.files import writable_folder
from ..persist.files import packed
from ..plots._matplotlib import require_matplotlib
from ..plots.interactive import require_plotly
from ..plots.report import Section, render_report
from ..runs import Data, InputError, read_data
from ..runs.inputs import UnknownColumnError
from ..runs.inputs.data import shown
from ..runs.pages import How
from ..runs.results import table_of, table_text, write_files
from .options import GIVEN
from .progress import progress
from .streams import printable, say, tell

__all__ = [
    "MODEL",
    "Session",
    "answer",
    "given_sigma",
    "has_names",
    "how",
    "learned_from",
    "read_file",
    "read_like",
    "refuse_to_overwrite",
    "rows_to_test",
    "with_model",
]

MODEL, PAGE = "model.orthodrome", "report.html"

Found = TypeVar("Found")


def read_file(path: str, **options: Any) -> tuple[Data, str]:
    """The data, and the Python expression that reads them."""
    given = {name: value for name, value in options.items() if value not in (None, False)}
    if isinstance(given.get("columns"), str):
        given["columns"] = _names_in(given["columns"])
    words = "".join(f", {name}={value!r}" for name, value in given.items())
    return read_data(path, **given), f"read_data({path!r}{words})"


def _names_in(columns: str) -> list[str]:
    try:
        return next(csv.reader([columns], skipinitialspace=True))
    except csv.Error as problem:  # of the end of a line within, or of a very long name
        raise InputError(
            f"--columns {shown(columns)}: give names of columns, separated by commas ({problem})."
        ) from None


def has_names(path: str) -> bool:
    """Whether the columns of such a file have names."""
    return not path.lower().endswith((".npy", ".npz"))


def refuse_to_overwrite(out: str, written: Iterable[Path], read: Iterable[str | None]) -> None:
    """Refuse to write a file that is also read, by whatever name and through whatever link."""
    sources = [source for source in read if source and os.path.exists(source)]
    for target in written:
        for source in sources:
            if os.path.exists(target) and os.path.samefile(target, source):
                raise InputError(
                    f"--out {out}: {target} would be written over {source}, which is read. Name "
                    "another place."
                )


def how(reading: str, testing: str = "") -> How:
    """The command line, and the Python expressions that read its files."""
    as_module = Path(sys.argv[0]).name == "__main__.py"
    program = ["python", "-m", "orthodrome"] if as_module else ["orthodrome"]
    return How([*program, *GIVEN.get()], reading, testing)


class Session:
    """One run of a command: where it writes `names` and the page, and how much it says.

    What it reads, `source` and perhaps `more`, it does not write over.
    """

    def __init__(
        self,
        source: str,
        *more: str | None,
        out: str,
        names: Sequence[str],
        as_json: bool,
        quiet: bool,
    ) -> None:
        self._source, self._out = source, Path(out)
        self._json, self._quiet = as_json, quiet
        self._files: dict[str, Path] = {}
        if self._out.is_file():
            raise InputError(
                f"--out {self._out} is a file; name a folder, which is made if need be."
            )
        written = [self._out / name for name in (*names, PAGE)]
        refuse_to_overwrite(out, written, (source, *more))

    def carry_out(
        self,
        title: str,
        compute: Callable[[Any], Found],
        sections: Callable[[Found], list[Section]],
        contents: Callable[[Found], dict[str, bytes]],
    ) -> Found:
        """Compute, and only then write the contents and the page, all of them or none."""
        require_plotly()  # what the page needs, before time is spent
        require_matplotlib()
        with writable_folder(self._out) as folder, progress(self._quiet) as report:
            try:
                found = compute(lambda fraction, task: report(0.9 * fraction, task))
            except InputError:
                raise
            except ValueError as error:  # of an estimator, which does not know the file
                raise InputError(f"{self._source}: {error}") from error
            report(0.9, "page")
            page = render_report(title, sections(found))
            # a name of a file that is not UTF-8 has halves of surrogates
            files = {**contents(found), PAGE: page.encode("utf-8", errors="replace")}
            self._files = write_files(folder, files)
        return found

    def summary(self, facts: dict[str, Any], lines: Sequence[str], notes: Sequence[str]) -> None:
        """Print notes on stderr; facts and files as JSON, or lines for people, the page last."""
        if not self._quiet:
            for text in notes:
                tell(f"note: {printable(text)}\n")
        paths = {name: str(path.resolve()) for name, path in self._files.items()}
        if self._json:
            say(json.dumps(facts | {"files": paths}) + "\n")
        else:
            say("\n".join([*map(printable, lines), *paths.values()]) + "\n")


def with_model(found: Any, name: str, table: str) -> dict[str, bytes]:
    """A table and the fitted model, which remembers the columns that it has learned from."""
    notes = {"columns": list(found.data.columns), "kind": found.data.kind}
    return {name: table.encode("utf-8"), MODEL: packed(found.model, notes)}


def rows_to_test(path: str, train: Data, **options: Any) -> tuple[Data, str]:
    """The rows to test, with labels if their file has them, and the columns of the model."""
    columns = list(train.columns) if train.kind == "table" and has_names(path) else None
    try:
        return read_like(train.kind, path, columns, **options)
    except UnknownColumnError:  # of the labels: a file without them can still be predicted
        return read_like(train.kind, path, columns)


def read_like(kind: str, path: str, columns: list[str] | None, **options: Any) -> tuple[Data, str]:
    """Rows of the kind and with the columns that a model has learned from."""
    is_tps = path.lower().endswith(".tps")
    if kind == "table" and is_tps:
        raise InputError(f"{path} has landmarks, and the model has learned from a table.")
    if kind == "shapes" and not is_tps and has_names(path):
        raise InputError(f"{path} is a table, and the model has learned from landmarks (TPS).")
    try:
        return read_file(path, columns=columns, **options)
    except UnknownColumnError as error:
        if error.name == options.get("label"):
            raise
        raise InputError(
            f"{path} has no column {error.name!r}, which the model has learned from."
        ) from None


def learned_from(path: str, notes: dict[str, Any]) -> tuple[list[str] | None, str]:
    """Columns and kind of the data of a model, by its notes, which anyone may have written."""
    columns, kind = notes.get("columns"), notes.get("kind", "table")
    texts = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    if not (columns is None or texts) or kind not in ("table", "shapes"):
        raise InputError(
            f"{path} has notes that no command writes: columns {shown(str(columns))} of the kind "
            f"{shown(str(kind))}. Save the model without them, or with a list of names."
        )
    return columns, kind


def answer(fitted: Any, read: Data, as_json: bool) -> str:
    """What a model says of rows, as CSV or as JSON."""
    header, rows = table_of(fitted, read)
    if not as_json:
        return table_text(header, rows)
    return json.dumps([dict(zip(header, row, strict=True)) for row in rows]) + "\n"


def given_sigma(sigma: str | None) -> float | str | None:
    """A bandwidth as a number, if it is one."""
    if sigma in (None, "mean", "median"):
        return sigma
    try:
        return float(sigma or "")
    except ValueError:
        raise InputError(f"--sigma {sigma}: give a number, mean or median.") from None
