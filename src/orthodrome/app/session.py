"""Run a command: read, compute, write all files or none, and print a summary."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .. import persist
from .._core.files import writable_folder, write_together
from ..plots._matplotlib import house_style, require_matplotlib
from ..plots.report import render_report
from ..preprocessing import TableCleaner
from ..spaces import find_landmark_errors
from . import inputs
from .classification import classify, training_sample
from .clustering import cluster
from .commands import ARGUMENTS, READING, debugging
from .demo import run_demo
from .denoising import denoise
from .embedding import compare, embed
from .info import describe_file, description_lines
from .inputs import Data, InputError, UnknownColumnError
from .inputs.checks import quote
from .inputs.landmarks import landmark_notes, with_links
from .models import Choice, assignment, option_text, program, resolve_standardize
from .results import (
    MODEL,
    Result,
    citing_section,
    model_reproduction_section,
    predicted_table,
    table_text,
)
from .streams import printable, progress, write_stderr, write_stdout

PAGE = "report.html"
_READING = tuple(option.name for option in READING)
# Options that are parameters of estimators, with the names of the parameters.
_PARAMETERS = {"components": "n_components", "clusters": "n_clusters", "sphere": "sphere", "p": "p"}


#: The title of each command's page, its function, and the files that it writes.
COMMANDS: dict[str, tuple[str, Callable[..., Result], tuple[str, ...]]] = {
    "embed": ("Embedding of {}", embed, ("coordinates.csv", MODEL)),
    "cluster": ("Clustering of {}", cluster, ("clusters.csv", MODEL)),
    "classify": ("Classification of {}", classify, ("predictions.csv", MODEL)),
    "compare": ("Comparison of decompositions of {}", compare, ()),
    "denoise": ("{}, denoised", denoise, ("cleaned.png",)),
}


def run(name: str, options: dict[str, Any]) -> None:
    """Run a command with the values of its options."""
    others = {"demo": _demo, "info": _info, "predict": _predict}
    others.get(name, partial(_run_method, name))(options)


# ---------------------------------------------------------------------------- reading


def _reading(options: dict[str, Any]) -> dict[str, Any]:
    """Return those of the given options that say how to read a file."""
    given = {name: options[name] for name in _READING if options.get(name) not in (None, False)}
    if "columns" in given:
        try:
            given["columns"] = next(csv.reader([given["columns"]], skipinitialspace=True))
        except csv.Error as problem:  # for example a line break in a name
            raise InputError(
                f"--columns {quote(given['columns'])} is not a list of names separated by commas: "
                f"{problem}."
            ) from None
    return given


def _call(name: str, path: str, arguments: Sequence[str], options: dict[str, Any]) -> str:
    """Return the Python expression that reads a file."""
    given = [f"{key}={value!r}" for key, value in options.items()]
    return f"{name}({', '.join([repr(path), *arguments, *given])})"


def _read_test(data: Data, options: dict[str, Any]) -> tuple[Data, str]:
    """Read the rows of --test like the training data; return also the Python expression."""
    names = ("label", "labels", "label_regex", "keep_negative")
    given = {key: options[key] for key in names if options.get(key) not in (None, False)}
    training: dict[str, Any] = {"cleaner": data.cleaner}
    if data.kind == "shapes":
        training = {"mean": find_landmark_errors(data.X).mean, "reflected": bool(data.reflected)}
    path = options["test"]
    try:
        test = inputs.read_new_rows(path, data.kind, data.columns, **training, **given)
    except UnknownColumnError as error:
        if error.name != options.get("label"):
            raise
        given.pop("label")  # a file without labels can still be predicted
        test = inputs.read_new_rows(path, data.kind, data.columns, **training, **given)
    like = ["data.kind", "data.columns", *(["cleaner=data.cleaner"] if data.cleaner else [])]
    return replace(test, links=data.links), _call("read_new_rows", path, like, given)


def _check_overwriting(out: str, written: Iterable[Path], sources: Iterable[str | None]) -> None:
    """Raise if an output file is an input file, perhaps under another name or link."""
    for source in filter(os.path.exists, filter(None, sources)):
        for target in filter(os.path.exists, written):
            if os.path.samefile(target, source):
                raise InputError(
                    f"--out {out}: {target} would be written over {source}, which is an input. "
                    "Choose another --out."
                )


# ---------------------------------------------------------------------------- running


def _run_method(name: str, options: dict[str, Any]) -> None:
    """Run a command that reads a file, computes, and writes a page."""
    title, function, files = COMMANDS[name]
    out, source = options["out"], options["data"]
    if options.get("test") is not None and options["cv"] is not None:
        raise InputError("--test and --cv cannot be used together. Remove one of them.")
    if os.path.isfile(out):
        raise InputError(f"--out {out} is a file. Give a folder; it need not exist.")
    written = [Path(out) / file for file in (*files, PAGE)]
    read = (source, *(options.get(name) for name in ("test", "labels", "links")))
    _check_overwriting(out, written, read)
    prepare = _prepare_image if name == "denoise" else _prepare_data
    arguments, keywords, reading = prepare(name, options)
    require_matplotlib()
    with writable_folder(Path(out)) as folder, progress(options["quiet"]) as report:
        try:
            result = function(
                *arguments, lambda fraction, task: report(0.9 * fraction, task), **keywords
            )
        except InputError:
            raise
        except ValueError as error:  # estimators do not know the name of the file
            raise InputError(f"{source}: {option_text(str(error))}") from error
        report(0.9, "page")
        code = program(*reading, assignment(result.model), *result.python)
        reproduction = model_reproduction_section(result, command_line(), code)
        with house_style():
            data = arguments[0] if isinstance(arguments[0], Data) else None
            sections = [*result.sections(), citing_section(result.model, data), reproduction]
            page = render_report(title.format(Path(source).name), sections, lead=result.answer)
        # file names that are not UTF-8 contain lone surrogates
        contents = {**result.files, PAGE: page.encode("utf-8", errors="replace")}
        write_together({folder / file: content for file, content in contents.items()})
    if not options["quiet"]:
        for text in (*getattr(arguments[0], "notes", ()), *result.work.notes):
            write_stderr(f"note: {printable(text)}\n")
    method = {"method": options["method"]} if "method" in options else {}
    facts = {"command": name, **method, **result.facts}
    _print(facts, result.lines, {file: folder / file for file in contents}, options["json"])


# The arguments and keywords of a command's function, and Python code that reads its files.
_Prepared = tuple[tuple[Any, ...], dict[str, Any], list[str]]


def _prepare_image(name: str, options: dict[str, Any]) -> _Prepared:
    source, noise = options["data"], options["noise"]
    keywords = {"patch_size": options["patch_size"], "seed": options["seed"]}
    if noise is not None:
        keywords["noise"] = noise / 255
    return (source, inputs.read_image(source)), keywords, [f"data = read_image({source!r})"]


def _prepare_data(name: str, options: dict[str, Any]) -> _Prepared:
    path, given_reading = options["data"], _reading(options)
    data = with_links(inputs.read_data(path, **given_reading), options.get("links"))
    reading = [f"data = {_call('read_data', path, [], given_reading)}"]
    keywords: dict[str, Any] = {}
    if options.get("test") is not None:
        keywords["test"], expression = _read_test(data, options)
        reading.append(f"test = {expression}")
    elif options.get("cv") is not None:
        keywords["n_folds"] = options["cv"]
    given = {key: options[key] for key in _PARAMETERS if options.get(key) is not None}
    parameters = {_PARAMETERS[key]: value for key, value in given.items()}
    if name == "compare":
        keywords, parameters = parameters, {}
    method, sigma = options.get("method", "kpca"), _sigma(options["sigma"])
    standardize, note = resolve_standardize(options["standardize"], data)
    notes = [note] if note else []
    n_rows = len(data)
    if name == "classify" and len(data := training_sample(data, options["seed"])) < n_rows:
        reading.append(f"data = training_sample(data, {options['seed']})")
        notes.append(
            f"A random sample of {len(data)} of {n_rows} rows was used, because time grows with "
            "the third power of the rows. Use orthodrome predict with the model for the others."
        )
    if data.kind == "shapes":
        notes += landmark_notes(data)
    data = replace(data, notes=(*data.notes, *notes))
    choice = Choice(method, options["kernel"], sigma, standardize, options["seed"], parameters)
    return (data, choice), keywords, reading


def _sigma(sigma: str | None) -> float | str | None:
    if sigma in (None, "mean", "median"):
        return sigma
    try:
        return float(sigma or "")
    except ValueError:
        raise InputError(f"--sigma {sigma}: give a number, 'mean' or 'median'.") from None


def command_line() -> list[str]:
    """Return the command line, to show on the page."""
    as_module = Path(sys.argv[0]).name == "__main__.py"
    program_name = ["python", "-m", "orthodrome"] if as_module else ["orthodrome"]
    return [*program_name, *ARGUMENTS.get()]


def _print(facts: dict[str, Any], lines: list[str], files: dict[str, Path], as_json: bool) -> None:
    """Print a summary and the path of each file, as text or as JSON."""
    paths = {name: str(path.resolve()) for name, path in files.items()}
    text = "\n".join([*map(printable, lines), *paths.values()])
    write_stdout((json.dumps({**facts, "files": paths}) if as_json else text) + "\n")


# ---------------------------------------------------------------------------- other commands


def _demo(options: dict[str, Any]) -> None:
    with progress(options["quiet"]) as report:
        page = run_demo(options["out"], command=command_line(), report=report)
    _print({}, [], {page.name: page}, options["json"])


def _info(options: dict[str, Any]) -> None:
    found = inputs.read_description(options["data"], **_reading(options))
    with progress(options["quiet"]) as report:
        report(0.0, "comparing methods")
        choice = {"n_components": options["components"], "standardize": options["standardize"]}
        facts = describe_file(found, **choice)
    lines = "\n".join(map(printable, description_lines(facts)))
    write_stdout((json.dumps(facts) if options["json"] else lines) + "\n")


def _predict(options: dict[str, Any]) -> None:
    model, source, out = options["model"], options["data"], options["out"]
    if out is not None:
        if os.path.isdir(out):
            raise InputError(f"--out {out} is a folder. Give a file name for the table.")
        _check_overwriting(out, [Path(out)], (model, source))
    fitted, notes = persist.load(model, with_notes=True)
    training = _training_notes(model, notes)
    if isinstance(fitted, Pipeline) and isinstance(fitted[0], TableCleaner):
        training["cleaner"], fitted = fitted[0], fitted[1:]
    training["keep_negative"] = options["keep_negative"]
    try:
        data = inputs.read_new_rows(source, **training)
    except UnknownColumnError as error:
        raise InputError(
            f"{source} has no column {error.name!r}, but the model was fitted to one. Add the "
            "column."
        ) from None
    if not options["quiet"]:
        for text in data.notes:
            write_stderr(f"note: {printable(text)}\n")
    with progress(options["quiet"]) as report:
        report(0.0, "prediction")
        try:
            header, rows = predicted_table(fitted, data)
        except (MemoryError, OSError, ImportError, Warning):  # not caused by the model or the data
            raise
        except Exception as error:  # unsuitable rows, or an inconsistent model
            expected = isinstance(error, ValueError)
            if debugging() and not expected:
                raise
            reason = option_text(str(error)) if expected else f"{type(error).__name__}: {error}"
            raise InputError(f"{model} cannot predict {source}: {reason}") from error
    text = table_text(header, rows)
    if options["json"]:
        text = json.dumps([dict(zip(header, row, strict=True)) for row in rows]) + "\n"
    if out is None:
        write_stdout(text)
        return
    target = Path(out)
    with writable_folder(target.parent) as folder:
        write_together({folder / target.name: text.encode("utf-8")})
    _print({}, [], {target.name: target}, options["json"])


def _training_notes(path: str, notes: dict[str, Any]) -> dict[str, Any]:
    """Return what the notes of a model say of its training data; raise if they are invalid."""
    columns, kind = notes.get("columns"), notes.get("kind", "table")
    texts = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    if not (columns is None or texts) or kind not in ("table", "shapes"):
        raise InputError(
            f"{path} has invalid notes: columns {quote(str(columns))}, kind {quote(str(kind))}. "
            "Save the model without notes, or with a list of column names."
        )
    found = {"columns": columns, "kind": kind}
    with suppress(TypeError, ValueError):  # the mean shape was changed by hand
        mean = np.array(notes.get("mean"), dtype=np.float64)
        if mean.ndim == 2 and mean.shape[1] in (2, 3) and np.isfinite(mean).all():
            found |= {"mean": mean, "reflected": notes.get("reflected") is True}
    return found
