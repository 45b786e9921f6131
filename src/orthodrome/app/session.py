"""One run of a command: read, prepare, compute, write all files or none, and report."""

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
from ..plots._matplotlib import house_style, require_matplotlib
from ..plots.interactive import require_plotly
from ..plots.report import render_report
from . import inputs
from .classification import Classification, check_same_columns, classify
from .clustering import Clustering, cluster
from .commands import GIVEN, debugging
from .comparison import compare
from .demo import run_demo
from .denoising import denoise
from .embedding import Embedding, embed
from .info import describe, described_lines
from .inputs import Data, InputError, UnknownColumnError
from .inputs.data import quoted
from .models import Choice, assignment, program
from .pages import again_with
from .results import MODEL, predicted_table, table_text
from .streams import printable, progress, say, tell

PAGE = "report.html"
_READING = ("label", "columns", "labels", "label_regex", "keep_negative")
# Options that are parameters of estimators.
_PARAMETERS = {"components": "n_components", "clusters": "n_clusters", "sphere": "sphere", "p": "p"}


@dataclass(frozen=True)
class Command:
    """A command: the title of its page, the function that runs it, and the files it writes.

    The result of the function has the table, the summary and the sections of the page.
    """

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


def run(name: str, options: dict[str, Any]) -> None:
    """Run a command with the values of its options."""
    others = {"demo": _demo, "info": _info, "predict": _predict}
    if name in others:
        others[name](options)
    else:
        _run_method(name, options)


# ---------------------------------------------------------------------------- reading


def _read(options: dict[str, Any]) -> tuple[Data, str]:
    """Read the data of a command; return also the Python expression that reads them."""
    given = {name: options[name] for name in _READING if name in options}
    columns = given.get("columns")
    if columns:
        try:
            given["columns"] = next(csv.reader([columns], skipinitialspace=True))
        except csv.Error as problem:  # a line end inside, or a very long name
            raise InputError(
                f"--columns {quoted(columns)}: give names of columns, separated by commas "
                f"({problem})."
            ) from None
    return _read_file(options["data"], given)


def _read_file(path: str, options: dict[str, Any]) -> tuple[Data, str]:
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
        return _read_file(path, options)
    except UnknownColumnError as error:
        if error.name == options.get("label"):
            raise
        raise InputError(
            f"{path} has no column {error.name!r}, which the model was fitted to."
        ) from None


def _read_test(path: str, train: Data, options: dict[str, Any]) -> tuple[Data, str]:
    """Read rows to test, with labels if their file has them."""
    given = {name: options[name] for name in _READING if name != "columns"}
    columns = list(train.columns)
    try:
        return _read_like(train.kind, columns, path, given)
    except UnknownColumnError:  # a file without labels can still be predicted
        return _read_like(train.kind, columns, path, {})


def _check_overwriting(out: str, written: Iterable[Path], sources: Iterable[str | None]) -> None:
    """Raise if a file that is read would be written, by whatever name or link."""
    for source in filter(None, sources):
        for target in written:
            if not (os.path.exists(source) and os.path.exists(target)):
                continue
            if os.path.samefile(target, source):
                raise InputError(
                    f"--out {out}: {target} would be written over {source}, which is read. Choose "
                    "another place."
                )


# ---------------------------------------------------------------------------- running


def _run_method(name: str, options: dict[str, Any]) -> None:
    """Run a command that reads a file, computes, and writes a page."""
    command, out, source = COMMANDS[name], options["out"], options["data"]
    if options.get("test") is not None and options["cv"] is not None:
        raise InputError("--test and --cv exclude each other: give one of them.")
    if os.path.isfile(out):
        raise InputError(f"--out {out} is a file; name a folder, which is made if it is missing.")
    files = [Path(out) / file for file in (*command.files, PAGE)]
    _check_overwriting(out, files, (source, options.get("test"), options.get("labels")))
    arguments, more, reading, testing = _prepared(name, options)
    require_plotly()
    require_matplotlib()
    with writable_folder(Path(out)) as folder, progress(options["quiet"]) as report:
        try:
            found = command.run(
                *arguments, lambda fraction, task: report(0.9 * fraction, task), **more
            )
        except InputError:
            raise
        except ValueError as error:  # from an estimator, which does not know the file
            raise InputError(f"{source}: {error}") from error
        report(0.9, "page")
        lines = program(f"data = {reading}", assignment(found.model), *found.python(testing))
        repeat = again_with(found.model, found.seconds, command_line(), lines)
        with house_style():
            page = render_report(
                command.title.format(Path(source).name), [*found.sections(), repeat]
            )
        # the name of a file that is not UTF-8 has lone surrogates
        contents = {**found.files(), PAGE: page.encode("utf-8", errors="replace")}
        write_together({folder / file: content for file, content in contents.items()})
    if not options["quiet"]:
        for text in (*getattr(arguments[0], "notes", ()), *found.notes):
            tell(f"note: {printable(text)}\n")
    facts, lines_for_people = found.summary()
    method = {"method": options["method"]} if "method" in options else {}
    _print(
        {"command": name, **method, **facts},
        lines_for_people,
        {file: folder / file for file in contents},
        options["json"],
    )


def _prepared(
    name: str, options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], str, str]:
    """Read the files of a command and choose its model.

    Return the arguments and options of its function, and the Python expressions that read the data
    and the rows to test.
    """
    source, seed = options["data"], options["seed"]
    if name == "denoise":
        noise = "auto" if options["noise"] is None else options["noise"] / 255
        more = {"patch_size": options["patch_size"], "noise": noise, "seed": seed}
        return (source, inputs.read_image(source)), more, f"read_image({source!r})", ""
    data, reading = _read(options)
    more, testing = {}, ""
    if options.get("test") is not None:
        more["test"], testing = _read_test(options["test"], data, options)
    elif options.get("cv") is not None:
        more["n_folds"] = options["cv"]
    kernel, sigma = options["kernel"], _sigma(options["sigma"])
    given = {key: options[key] for key in _PARAMETERS if options.get(key) is not None}
    parameters = {_PARAMETERS[key]: value for key, value in given.items()}
    if name == "compare":
        more, parameters = parameters, {}
    if options.get("method") == "mixture":
        parameters = {"n_components": parameters["n_clusters"]}
    method = options.get("method", "kpca")
    choice = Choice(method, kernel, sigma, options["standardize"], seed, parameters)
    return (data, choice), more, reading, testing


def _sigma(sigma: str | None) -> float | str | None:
    if sigma in (None, "mean", "median"):
        return sigma
    try:
        return float(sigma or "")
    except ValueError:
        raise InputError(f"--sigma {sigma}: give a number, mean or median.") from None


def command_line() -> list[str]:
    """Return the command line, for the page."""
    as_module = Path(sys.argv[0]).name == "__main__.py"
    program_name = ["python", "-m", "orthodrome"] if as_module else ["orthodrome"]
    return [*program_name, *GIVEN.get()]


def _print(facts: dict[str, Any], lines: list[str], files: dict[str, Path], as_json: bool) -> None:
    """Print a summary and the path of each file; or all as JSON."""
    paths = {name: str(path.resolve()) for name, path in files.items()}
    text = "\n".join([*map(printable, lines), *paths.values()])
    say((json.dumps({**facts, "files": paths}) if as_json else text) + "\n")


# ---------------------------------------------------------------------------- other commands


def _demo(options: dict[str, Any]) -> None:
    with progress(options["quiet"]) as report:
        page = run_demo(options["out"], command=command_line(), report=report)
    _print({}, [], {page.name: page}, options["json"])


def _info(options: dict[str, Any]) -> None:
    data, _ = _read(options)
    with progress(options["quiet"]) as report:
        report(0.0, "probe of this machine")
        facts = describe(data, n_components=options["components"])
    lines = "\n".join(map(printable, described_lines(facts)))
    say((json.dumps(facts) if options["json"] else lines) + "\n")


def _predict(options: dict[str, Any]) -> None:
    model, source, out = options["model"], options["data"], options["out"]
    if out is not None:
        if os.path.isdir(out):
            raise InputError(f"--out {out} is a folder; name a file for the table.")
        _check_overwriting(out, [Path(out)], (model, source))
    fitted, notes = persist.load(model, with_notes=True)
    columns, kind = _fitted_to(model, notes)
    data, _ = _read_like(kind, columns, source, {"keep_negative": options["keep_negative"]})
    if columns:
        check_same_columns(tuple(columns), data)
    with progress(options["quiet"]) as report:
        report(0.0, "prediction")
        try:
            header, rows = predicted_table(fitted, data)
        except (MemoryError, OSError, ImportError, Warning):  # not a fault of model or data
            raise
        except Exception as error:  # rows that do not fit, or a model with inconsistent parts
            known = isinstance(error, ValueError)
            if debugging() and not known:
                raise
            words = str(error) if known else f"{type(error).__name__}: {error}"
            raise InputError(f"{model} cannot predict {source}: {words}") from error
    text = table_text(header, rows)
    if options["json"]:
        text = json.dumps([dict(zip(header, row, strict=True)) for row in rows]) + "\n"
    if out is None:
        say(text)
        return
    target = Path(out)
    with writable_folder(target.parent) as folder:
        write_together({folder / target.name: text.encode("utf-8")})
    _print({}, [], {target.name: target}, options["json"])


def _fitted_to(path: str, notes: dict[str, Any]) -> tuple[list[str] | None, str]:
    """Return columns and kind of a model's data from its notes, which anyone may have written."""
    columns, kind = notes.get("columns"), notes.get("kind", "table")
    texts = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    if not (columns is None or texts) or kind not in ("table", "shapes"):
        raise InputError(
            f"{path} has notes that no command writes: columns {quoted(str(columns))}, kind "
            f"{quoted(str(kind))}. Save the model without them, or with a list of names."
        )
    return columns, kind
