"""One run of a command: read, compute, write all files or none, and report."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import persist
from .._core.files import writable_folder, write_together
from ..plots._matplotlib import require_matplotlib
from ..plots.interactive import require_plotly
from ..plots.report import render_report
from . import inputs
from .classification import Classification, check_same_columns, classify
from .clustering import Clustering, cluster
from .commands import GIVEN
from .comparison import compare
from .denoising import denoise
from .embedding import Embedding, embed
from .inputs import Data, InputError, UnknownColumnError
from .inputs.data import shown
from .models import Choice
from .pages import How
from .results import MODEL, predicted_table, table_text
from .streams import printable, progress, say, tell

__all__ = [
    "command_line",
    "print_paths",
    "read",
    "run_command",
    "run_denoise",
    "run_predict",
]

PAGE = "report.html"
_READING = ("label", "columns", "labels", "label_regex", "keep_negative")


@dataclass(frozen=True)
class Command:
    """A command: the title of its page, the function that runs it, and the files it writes."""

    title: str
    run: Callable[..., Any]
    files: tuple[str, ...] = ()


COMMANDS = {
    "embed": Command("Embedding of {}", embed, (Embedding.file, MODEL)),
    "cluster": Command("Clusters of {}", cluster, (Clustering.file, MODEL)),
    "classify": Command("Classes of {}", classify, (Classification.file, MODEL)),
    "compare": Command("Decompositions of {}", compare),
    "denoise": Command("{} without its noise", denoise, ("cleaned.png",)),
}


def command_line() -> list[str]:
    """Return the command line, for the page."""
    as_module = Path(sys.argv[0]).name == "__main__.py"
    return [*(["python", "-m", "orthodrome"] if as_module else ["orthodrome"]), *GIVEN.get()]


def print_paths(files: dict[str, Path], as_json: bool) -> None:
    """Print the path of each file, or all as JSON."""
    paths = {name: str(path.resolve()) for name, path in files.items()}
    say((json.dumps({"files": paths}) if as_json else "\n".join(paths.values())) + "\n")


# ---------------------------------------------------------------------------- reading


def read(shared: dict[str, Any]) -> tuple[Data, str]:
    """Read the data of a command; return also the Python expression that reads them."""
    options = {name: shared[name] for name in _READING if name in shared}
    if options.get("columns"):
        columns = options["columns"]
        try:
            options["columns"] = next(csv.reader([columns], skipinitialspace=True))
        except csv.Error as problem:  # a line end inside, or a very long name
            raise InputError(
                f"--columns {shown(columns)}: give names of columns, separated by commas "
                f"({problem})."
            ) from None
    return _read(shared["data"], options)


def _read(path: str, options: dict[str, Any]) -> tuple[Data, str]:
    given = {name: value for name, value in options.items() if value not in (None, False)}
    words = "".join(f", {name}={value!r}" for name, value in given.items())
    return inputs.read_data(path, **given), f"read_data({path!r}{words})"


def _read_like(
    kind: str, columns: list[str] | None, path: str, options: dict[str, Any]
) -> tuple[Data, str]:
    """Read rows of the kind and with the columns of a model."""
    is_tps, is_array = path.lower().endswith(".tps"), path.lower().endswith((".npy", ".npz"))
    if kind == "table" and is_tps:
        raise InputError(f"{path} has landmarks, and the model was fitted to a table.")
    if kind == "shapes" and not (is_tps or is_array):
        raise InputError(f"{path} is a table, and the model was fitted to landmarks (TPS).")
    if kind == "table" and not is_array:
        options = options | {"columns": columns}
    try:
        return _read(path, options)
    except UnknownColumnError as error:
        if error.name == options.get("label"):
            raise
        raise InputError(
            f"{path} has no column {error.name!r}, which the model was fitted to."
        ) from None


def _read_test(path: str, train: Data, shared: dict[str, Any]) -> tuple[Data, str]:
    """Read rows to test, with labels if their file has them."""
    options = {name: shared[name] for name in _READING if name != "columns"}
    columns = list(train.columns)
    try:
        return _read_like(train.kind, columns, path, options)
    except UnknownColumnError:  # a file without labels can still be predicted
        return _read_like(train.kind, columns, path, {})


def _check_overwriting(out: str, written: Iterable[Path], sources: Iterable[str | None]) -> None:
    """Raise if a file that is read would be written, by whatever name or link."""
    for source in sources:
        for target in written:
            if not (source and os.path.exists(source) and os.path.exists(target)):
                continue
            if os.path.samefile(target, source):
                raise InputError(
                    f"--out {out}: {target} would be written over {source}, which is read. Choose "
                    "another place."
                )


# ---------------------------------------------------------------------------- running


def run_command(
    name: str,
    shared: dict[str, Any],
    *,
    method: str = "kpca",
    parameters: dict[str, Any] | None = None,
    test: str | None = None,
    cv: int | None = None,
    **options: Any,
) -> None:
    """Run a command that reads data and writes a page."""
    source = shared["data"]
    if test is not None and cv is not None:
        raise InputError("--test and --cv exclude each other: give one of them.")
    _check_output(name, shared["out"], (source, test, shared["labels"]))
    data, reading = read(shared)
    testing = ""
    if test is not None:
        options["test"], testing = _read_test(test, data, shared)
    elif cv is not None:
        options["n_folds"] = cv
    choice = Choice(
        method,
        shared["kernel"],
        _sigma(shared["sigma"]),
        shared["standardize"],
        shared["seed"],
        parameters or {},
    )
    how = How(command_line(), reading, testing)
    facts = {} if name == "compare" else {"method": method}
    _carry_out(name, source, shared, (data, choice), options, how, facts, data.notes)


def run_denoise(shared: dict[str, Any], patch_size: int, noise: float | str) -> None:
    """Run the command denoise."""
    image = shared["image"]
    _check_output("denoise", shared["out"], (image,))
    pixels = inputs.read_image(image)
    options = {"patch_size": patch_size, "noise": noise, "seed": shared["seed"]}
    how = How(command_line(), f"read_image({image!r})")
    _carry_out("denoise", image, shared, (image, pixels), options, how)


def _sigma(sigma: str | None) -> float | str | None:
    if sigma in (None, "mean", "median"):
        return sigma
    try:
        return float(sigma or "")
    except ValueError:
        raise InputError(f"--sigma {sigma}: give a number, mean or median.") from None


def _check_output(name: str, out: str, sources: Iterable[str | None]) -> None:
    if os.path.isfile(out):
        raise InputError(f"--out {out} is a file; name a folder, which is made if it is missing.")
    files = [Path(out) / file for file in (*COMMANDS[name].files, PAGE)]
    _check_overwriting(out, files, sources)


def _carry_out(
    name: str,
    source: str,
    shared: dict[str, Any],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    how: How,
    facts: dict[str, Any] | None = None,
    notes: tuple[str, ...] = (),
) -> None:
    """Compute; only then write the files and the page, all of them or none; print a summary."""
    require_plotly()  # the page needs them
    require_matplotlib()
    command = COMMANDS[name]
    with writable_folder(Path(shared["out"])) as folder, progress(shared["quiet"]) as report:
        try:
            found = command.run(
                *arguments, lambda fraction, task: report(0.9 * fraction, task), **options
            )
        except InputError:
            raise
        except ValueError as error:  # from an estimator, which does not know the file
            raise InputError(f"{source}: {error}") from error
        report(0.9, "page")
        page = render_report(command.title.format(Path(source).name), found.sections(how))
        # the name of a file that is not UTF-8 has lone surrogates
        contents = {**found.files(), PAGE: page.encode("utf-8", errors="replace")}
        files = {file: folder / file for file in contents}
        write_together({files[file]: content for file, content in contents.items()})
    if not shared["quiet"]:
        for text in (*notes, *found.notes):
            tell(f"note: {printable(text)}\n")
    found_facts, lines = found.summary()
    paths = {file: str(path.resolve()) for file, path in files.items()}
    if shared["json"]:
        every = {"command": name, **(facts or {}), **found_facts, "files": paths}
        say(json.dumps(every) + "\n")
    else:
        say("\n".join([*map(printable, lines), *paths.values()]) + "\n")


# ---------------------------------------------------------------------------- predicting


def run_predict(out: str | None, shared: dict[str, Any], *, debugging: bool) -> None:
    """Run the command predict."""
    model, source = shared["model"], shared["data"]
    if out is not None:
        if os.path.isdir(out):
            raise InputError(f"--out {out} is a folder; name a file for the table.")
        _check_overwriting(out, [Path(out)], (model, source))
    fitted, notes = persist.load(model, with_notes=True)
    columns, kind = _fitted_to(model, notes)
    data, _ = _read_like(kind, columns, source, {"keep_negative": shared["keep_negative"]})
    if columns:
        check_same_columns(tuple(columns), data)
    with progress(shared["quiet"]) as report:
        report(0.0, "prediction")
        try:
            header, rows = predicted_table(fitted, data)
        except (MemoryError, OSError, ImportError, Warning):  # not a fault of model or data
            raise
        except Exception as error:  # rows that do not fit, or a model with inconsistent parts
            known = isinstance(error, ValueError)
            if debugging and not known:
                raise
            words = str(error) if known else f"{type(error).__name__}: {error}"
            raise InputError(f"{model} cannot predict {source}: {words}") from error
    text = table_text(header, rows)
    if shared["json"]:
        text = json.dumps([dict(zip(header, row, strict=True)) for row in rows]) + "\n"
    if out is None:
        say(text)
        return
    target = Path(out)
    with writable_folder(target.parent) as folder:
        write_together({folder / target.name: text.encode("utf-8")})
    print_paths({target.name: target}, shared["json"])


def _fitted_to(path: str, notes: dict[str, Any]) -> tuple[list[str] | None, str]:
    """Return columns and kind of a model's data from its notes, which anyone may have written."""
    columns, kind = notes.get("columns"), notes.get("kind", "table")
    texts = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    if not (columns is None or texts) or kind not in ("table", "shapes"):
        raise InputError(
            f"{path} has notes that no command writes: columns {shown(str(columns))}, kind "
            f"{shown(str(kind))}. Save the model without them, or with a list of names."
        )
    return columns, kind
