"""The commands: each reads, runs, writes and says what it did.

What a command works with it imports when it is called: the help and the version do not wait for it.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import __version__
from .options import (
    CLASSIFIERS,
    CLUSTERINGS,
    DECOMPOSITIONS,
    GIVEN,
    AsJson,
    Columns,
    Components,
    DataFile,
    KeepNegative,
    KernelName,
    Label,
    LabelRegex,
    Labels,
    Quiet,
    Seed,
    Sigma,
    Standardize,
    folder_option,
    method_option,
    not_empty,
)
from .progress import progress
from .streams import Unwritten, printable, say, tell

__all__ = ["application", "run"]

FAILED, INTERRUPTED = 1, 130  # 128 + SIGINT, as shells have it
COORDINATES, CLUSTERS, PREDICTIONS = "coordinates.csv", "clusters.csv", "predictions.csv"
CLEANED = "cleaned.png"

application = typer.Typer(
    name="orthodrome",
    help="Kernel methods on Hilbert spheres and shape spaces, for a CSV, a TPS file or an image.",
    epilog="Begin with: orthodrome demo. Then: orthodrome info my.csv. Exit codes: 0 done, 1 "
    "failed (the last line on stderr says why), 2 command not understood, 130 interrupted.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code."""
    token = GIVEN.set(arguments)
    try:
        application(arguments or ["--help"], prog_name="orthodrome")
    except SystemExit as stop:
        # the reader of a pipe has had enough of the help, which typer and rich call a failure
        return 0 if isinstance(stop.__context__, BrokenPipeError) else int(stop.code or 0)
    finally:
        GIVEN.reset(token)
    return 0


# ---------------------------------------------------------------------------- errors


def _command(name: str, epilog: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command; what goes wrong in it becomes one line on stderr and an exit code."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def guarded(*arguments: Any, **options: Any) -> None:
            try:
                function(*arguments, **options)
            except KeyboardInterrupt:
                _complain("interrupted", before="\n")
                raise typer.Exit(INTERRUPTED) from None
            except Unwritten:
                raise
            except (ValueError, OSError, ImportError, MemoryError) as error:
                if isinstance(error, ImportError) and _debugging():
                    raise
                _complain(_words(error))
                raise typer.Exit(FAILED) from None
            except Exception as error:
                if _debugging():
                    raise
                _complain(
                    f"unexpectedly, {type(error).__name__}: {_words(error)}. This is a fault of "
                    "orthodrome; with ORTHODROME_DEBUG=1 it tells where."
                )
                raise typer.Exit(FAILED) from None

        summary = (function.__doc__ or "").split("\n")[0]
        return application.command(name, short_help=summary, epilog=epilog)(guarded)

    return register


def _debugging() -> bool:
    return bool(os.environ.get("ORTHODROME_DEBUG"))


def _complain(words: str, before: str = "") -> None:
    tell(f"{before}orthodrome: {printable(words)}\n")


def _words(error: BaseException) -> str:
    """What an exception says, on one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "out of memory; orthodrome info DATA says what a run would take"
    return " ".join(str(error).split()) or type(error).__name__


# ---------------------------------------------------------------------------- commands


def count(n: int, thing: str) -> str:
    """So many things."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


@application.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="print the version")] = False,
) -> None:
    if version:
        say(f"orthodrome {__version__}\n")
        raise typer.Exit(0)


@_command("demo", "Example: orthodrome demo --out report && xdg-open report/index.html")
def demo(
    out: Annotated[str, folder_option()] = "report",
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="show no progress on stderr")] = False,
) -> None:
    """PCA, kernel PCA and kernel PGA side by side, as one HTML page.

    Data that ship with scikit-learn (digits, wine) and simulated directions: embeddings, spectra,
    pre-images and how they were computed, with the figures as PNG files beside the page. The last
    line on stdout is the path of the page. Needs no network and takes less than a minute.
    """
    from ..plots.demo import run_demo
    from .session import how

    with progress(quiet) as report:
        page = run_demo(
            out,
            command=how("").command,
            progress=lambda done, total, task: report(done / total, task),
        )
    where = str(page.resolve())
    say((json.dumps({"files": {page.name: where}}) if as_json else where) + "\n")


@_command("info", "Example: orthodrome info measurements.csv --label species")
def info(
    data: DataFile,
    label: Label = None,
    columns: Columns = None,
    labels: Labels = None,
    label_regex: LabelRegex = None,
    keep_negative: KeepNegative = False,
    components: Components = 10,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """What the data are, which kernel suits them, and what a run will take.

    Size, kind and scales of the columns; a kernel and its bandwidth; how far around the sphere of
    the feature space the data reach (if not far, flat methods do as well); which solver would be
    chosen; memory and time, estimated before anything is run.
    """
    from ..runs import describe
    from .session import read_file

    read, _ = read_file(
        data,
        label=label,
        columns=columns,
        labels=labels,
        label_regex=label_regex,
        keep_negative=keep_negative,
    )
    with progress(quiet) as report:
        report(0.0, "probe of this machine")
        found = describe(read, n_components=components)
    if as_json:
        say(json.dumps(found.as_dict()) + "\n")
    else:
        say("\n".join(map(printable, found.lines())) + "\n")


@_command("embed", "Example: orthodrome embed measurements.csv --label species --method kpga")
def embed_command(
    data: DataFile,
    method: Annotated[str, method_option(DECOMPOSITIONS)] = "kpga",
    kernel: KernelName = None,
    sigma: Sigma = None,
    components: Components = 2,
    sphere: Annotated[
        str | None, typer.Option("--sphere", metavar="NAME", help="of kpns: small or great")
    ] = None,
    p: Annotated[
        float | None, typer.Option("--p", metavar="P", help="of kpns and robust: at most 2")
    ] = None,
    label: Label = None,
    columns: Columns = None,
    labels: Labels = None,
    label_regex: LabelRegex = None,
    keep_negative: KeepNegative = False,
    standardize: Standardize = False,
    seed: Seed = 0,
    out: Annotated[str, folder_option()] = "embedding",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Coordinates of the rows, by kernel PGA, kernel PCA, nested spheres or robust kernel PCA.

    Writes coordinates.csv, the fitted model (for orthodrome predict) and report.html, a page that
    needs nothing else: the points to explore, the spectrum, which neighbours are kept, and the
    lines of Python that do the same. Labels only colour the points.
    """
    from ..runs import Choice, embed
    from ..runs.pages import embedding_page
    from ..runs.results import coordinates_table
    from .session import MODEL, Session, given_sigma, how, read_file, with_model

    names = (COORDINATES, MODEL)
    session = Session(data, labels, out=out, names=names, as_json=as_json, quiet=quiet)
    read, reading = read_file(
        data,
        label=label,
        columns=columns,
        labels=labels,
        label_regex=label_regex,
        keep_negative=keep_negative,
    )
    parameters: dict[str, Any] = {"n_components": components}
    parameters |= {} if sphere is None else {"sphere": sphere}
    parameters |= {} if p is None else {"p": p}
    choice = Choice(method, kernel, given_sigma(sigma), standardize, seed, parameters)
    found = session.carry_out(
        f"Embedding of {Path(data).name}",
        lambda report: embed(read, choice, report),
        lambda found: embedding_page(found, how(reading)),
        lambda found: with_model(found, COORDINATES, coordinates_table(found)),
    )
    q = found.coordinates.shape[1]
    facts = {"command": "embed", "method": method, "n_rows": len(read), "n_components": q}
    lines = [f"{count(len(read), 'row')}, {count(q, 'coordinate')} by {method}."]
    if found.quality is not None:
        facts["neighborhood_area"] = found.quality.area
        lines.append(f"Area of kept neighbours: {found.quality.area:.3f} (1 all, 0 chance).")
    session.summary(facts, lines, [*read.notes, *found.notes])


@_command("cluster", "Example: orthodrome cluster measurements.csv -k 3 --label species")
def cluster_command(
    data: DataFile,
    k: Annotated[int, typer.Option("-k", "--clusters", min=1, help="how many clusters")],
    method: Annotated[str, method_option(CLUSTERINGS)] = "mixture",
    kernel: KernelName = None,
    sigma: Sigma = None,
    label: Label = None,
    columns: Columns = None,
    labels: Labels = None,
    label_regex: LabelRegex = None,
    keep_negative: KeepNegative = False,
    standardize: Standardize = False,
    seed: Seed = 0,
    out: Annotated[str, folder_option()] = "clustering",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Groups of rows, by a mixture on the sphere, k-means on it, kernel k-means or spectrally.

    Writes clusters.csv, the fitted model and report.html. Labels are not used to cluster; with
    them the page says how well clusters and labels agree.
    """
    from ..runs import Choice, cluster
    from ..runs.pages import clustering_page
    from ..runs.results import clusters_table
    from .session import MODEL, Session, given_sigma, how, read_file, with_model

    names = (CLUSTERS, MODEL)
    session = Session(data, labels, out=out, names=names, as_json=as_json, quiet=quiet)
    read, reading = read_file(
        data,
        label=label,
        columns=columns,
        labels=labels,
        label_regex=label_regex,
        keep_negative=keep_negative,
    )
    parameters = {"n_components" if method == "mixture" else "n_clusters": k}
    choice = Choice(method, kernel, given_sigma(sigma), standardize, seed, parameters)
    found = session.carry_out(
        f"Clusters of {Path(data).name}",
        lambda report: cluster(read, choice, report),
        lambda found: clustering_page(found, how(reading)),
        lambda found: with_model(found, CLUSTERS, clusters_table(found)),
    )
    sizes = found.sizes.tolist()
    facts = {"command": "cluster", "method": method, "n_rows": len(read), "sizes": sizes}
    lines = [f"{count(len(read), 'row')} in clusters of {', '.join(map(str, sizes))} by {method}."]
    if found.agreement is not None:
        error, majority_error = found.agreement.error, found.agreement.majority_error
        facts |= {"error": error, "majority_error": majority_error}
        lines.append(
            f"{error:.1%} of the rows disagree with the labels (one cluster of all: "
            f"{majority_error:.1%})."
        )
    session.summary(facts, lines, [*read.notes, *found.notes])


@_command("classify", "Example: orthodrome classify train.csv --label species --test new.csv")
def classify_command(
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="csv, tsv, parquet, npz or tps")],
    label: Label = None,
    test: Annotated[
        str | None, typer.Option("--test", metavar="FILE", help="rows to predict")
    ] = None,
    cv: Annotated[
        int | None, typer.Option("--cv", metavar="FOLDS", help="folds to test by (default: 5)")
    ] = None,
    method: Annotated[str, method_option(CLASSIFIERS)] = "krrc",
    kernel: KernelName = None,
    sigma: Sigma = None,
    columns: Columns = None,
    labels: Labels = None,
    label_regex: LabelRegex = None,
    keep_negative: KeepNegative = False,
    standardize: Standardize = False,
    seed: Seed = 0,
    out: Annotated[str, folder_option()] = "classification",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """A classifier by kernel ridge regression, PerTurbo or nested spheres, and how good it is.

    Tested on the rows of another file (--test), or by folds (--cv). Writes predictions.csv, the
    model of all training rows (for orthodrome predict) and report.html with accuracy and
    confusions. A TPS file has no columns: give --labels FILE or --label-regex.
    """
    from ..runs import Choice, InputError, classify
    from ..runs.pages import classification_page
    from ..runs.results import predictions_table
    from .session import MODEL, Session, given_sigma, how, read_file, rows_to_test, with_model

    if test is not None and cv is not None:
        raise InputError("--test and --cv exclude each other: give one of them.")
    names = (PREDICTIONS, MODEL)
    session = Session(train, test, labels, out=out, names=names, as_json=as_json, quiet=quiet)
    read, reading = read_file(
        train,
        label=label,
        columns=columns,
        labels=labels,
        label_regex=label_regex,
        keep_negative=keep_negative,
    )
    other, testing = None, ""
    if test is not None:
        other, testing = rows_to_test(
            test,
            read,
            label=label,
            labels=labels,
            label_regex=label_regex,
            keep_negative=keep_negative,
        )
    choice = Choice(method, kernel, given_sigma(sigma), standardize, seed)
    found = session.carry_out(
        f"Classes of {Path(train).name}",
        lambda report: classify(
            read, choice, test=other, n_folds=5 if cv is None else cv, report=report
        ),
        lambda found: classification_page(found, how(reading, testing)),
        lambda found: with_model(found, PREDICTIONS, predictions_table(found.trial)),
    )
    trial = found.trial
    facts: dict[str, Any] = {"command": "classify", "method": method, "n_rows": len(read)}
    lines = [f"{count(len(read), 'row')} of {len(found.classes)} classes by {method}."]
    if not trial.accuracies:
        lines.append(f"{trial.data.path} has no labels, so that there is no accuracy.")
    else:
        facts |= {"accuracy": trial.accuracy, "error": trial.error, "majority": trial.majority}
        error = "" if trial.error is None else f" ± {trial.error:.1%}"
        lines.append(
            f"Accuracy {trial.accuracy:.1%}{error} (largest class: {trial.majority:.1%}) on "
            f"{trial.how}."
        )
    session.summary(facts, lines, [*read.notes, *found.notes])


@_command("predict", "Example: orthodrome predict classification/model.orthodrome new.csv")
def predict(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="a file that a command has written")
    ],
    data: DataFile,
    keep_negative: KeepNegative = False,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="table to write (default: stdout)",
            callback=not_empty,
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Labels, clusters or coordinates of new rows, by a model that was fitted before.

    The table goes to stdout as CSV, or to a file. The columns that the model has learned from are
    found by their names; others are left alone.
    """
    from .. import load
    from .._core.files import writable_folder
    from ..runs import InputError
    from ..runs.classification import check_same_columns
    from ..runs.results import write_files
    from .session import answer, has_names, learned_from, read_like, refuse_to_overwrite

    if out is not None:
        if os.path.isdir(out):
            raise InputError(f"--out {out} is a folder; name a file for the table.")
        refuse_to_overwrite(out, [Path(out)], (model, data))
    fitted, notes = load(model, with_notes=True)
    columns, kind = learned_from(model, notes)
    named = columns if kind == "table" and has_names(data) else None
    read, _ = read_like(kind, data, named, keep_negative=keep_negative)
    if columns:
        check_same_columns(tuple(columns), read)
    with progress(quiet) as report:
        report(0.0, "prediction")
        try:
            text = answer(fitted, read, as_json)
        except (MemoryError, OSError, ImportError, Warning):  # of the machine, or made errors
            raise
        except Exception as error:  # of the rows, or of a model whose parts do not go together
            known = isinstance(error, ValueError)
            if _debugging() and not known:
                raise
            words = str(error) if known else f"{type(error).__name__}: {error}"
            raise InputError(f"{model} has no answer for {data}: {words}") from error
    if out is None:
        say(text)
        return
    target = Path(out)
    with writable_folder(target.parent) as folder:
        write_files(folder, {target.name: text.encode("utf-8")})
    where = str(target.resolve())
    say((json.dumps({"files": {target.name: where}}) if as_json else where) + "\n")


@_command("compare", "Example: orthodrome compare measurements.csv --label species")
def compare_command(
    data: DataFile,
    kernel: KernelName = None,
    sigma: Sigma = None,
    components: Components = 2,
    label: Label = None,
    columns: Columns = None,
    labels: Labels = None,
    label_regex: LabelRegex = None,
    keep_negative: KeepNegative = False,
    standardize: Standardize = False,
    seed: Seed = 0,
    out: Annotated[str, folder_option()] = "comparison",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """PCA and all decompositions side by side, and which one to use.

    Which share of the nearest neighbours the coordinates of each keep, and a recommendation in
    words. Writes report.html. Of more than 500 rows so many are drawn.
    """
    from ..runs import Choice, compare
    from ..runs.pages import comparison_page
    from .session import Session, given_sigma, how, read_file

    session = Session(data, labels, out=out, names=(), as_json=as_json, quiet=quiet)
    read, reading = read_file(
        data,
        label=label,
        columns=columns,
        labels=labels,
        label_regex=label_regex,
        keep_negative=keep_negative,
    )
    choice = Choice("kpca", kernel, given_sigma(sigma), standardize, seed)
    found = session.carry_out(
        f"Decompositions of {Path(data).name}",
        lambda report: compare(read, choice, n_components=components, report=report),
        lambda found: comparison_page(found, how(reading)),
        lambda found: {},
    )
    words = found.recommendation()
    facts = {
        "command": "compare",
        "n_rows": len(found.data),
        "areas": {each.method: each.quality.area for each in found.methods},
        "best": found.best.method,
        "recommendation": words,
    }
    session.summary(facts, [words], [*read.notes, *found.notes])


@_command("denoise", "Example: orthodrome denoise photo.png --out cleaned")
def denoise_command(
    image: Annotated[str, typer.Argument(metavar="IMAGE", help="png or jpg, grey or colour")],
    patch_size: Annotated[int, typer.Option("--patch-size", min=2, help="side of a patch")] = 8,
    noise: Annotated[
        float | None,
        typer.Option("--noise", metavar="SD", min=0.0, help="noise, of 255 (default: estimated)"),
    ] = None,
    seed: Seed = 0,
    out: Annotated[str, folder_option()] = "denoised",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """An image without its noise, by kernel PCA of its patches.

    Noise level, bandwidth and number of components are estimated from the image itself. Writes
    cleaned.png and report.html, which also shows what was removed.
    """
    from ..runs import denoise, read_image
    from ..runs.inputs.images import encoded_image
    from ..runs.pages import denoising_page
    from .session import Session, how

    session = Session(image, out=out, names=(CLEANED,), as_json=as_json, quiet=quiet)
    pixels = read_image(image)
    found = session.carry_out(
        f"{Path(image).name} without its noise",
        lambda report: denoise(
            image,
            pixels,
            patch_size=patch_size,
            noise="auto" if noise is None else noise / 255,
            seed=seed,
            report=report,
        ),
        lambda found: denoising_page(found, how(f"read_image({image!r})")),
        lambda found: {CLEANED: encoded_image(found.cleaned)},
    )
    levels = [255 * value for value in found.noise]
    facts = {"command": "denoise", "noise": levels, "n_components": list(found.n_components)}
    words = ", ".join(f"{level:.1f}" for level in levels)
    kind = "Noise as given" if found.given else "Estimated noise"
    session.summary(facts, [f"{kind}: {words} of 255."], found.notes)
