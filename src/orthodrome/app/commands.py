"""The commands and their options. Heavy imports are delayed so that --help is fast."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from contextvars import ContextVar
from enum import StrEnum
from typing import Annotated, Any

import typer

from .. import __version__
from .streams import STDOUT, printable, write_stderr, write_stdout

FAILED, INTERRUPTED = 1, 130  # 128 + SIGINT, as in shells

# Keys of the tables in ``models``, copied because importing ``models`` takes seconds.
DECOMPOSITIONS = ("kpga", "kpca", "kpns", "robust", "pca")
CLUSTERINGS = ("auto", "spectral", "mixture", "kmeans", "kernel-kmeans")
CLASSIFIERS = ("krrc", "perturbo", "nested-spheres")

#: The command-line arguments, to show on the page.
ARGUMENTS: ContextVar[list[str]] = ContextVar("arguments")

application = typer.Typer(
    name="orthodrome",
    help="Kernel methods on Hilbert spheres and shape spaces, for CSV, TPS and image files.",
    epilog="Begin with: orthodrome demo. Then: orthodrome info my.csv. Exit codes: 0 success, 1 "
    "failure (the last line on stderr says why), 2 invalid command line, 130 interrupted.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code."""
    token = ARGUMENTS.set(arguments)
    try:
        application(arguments or ["--help"], prog_name="orthodrome")
    except SystemExit as stop:
        # typer and rich exit with a failure when a pipe is closed early
        return 0 if isinstance(stop.__context__, BrokenPipeError) else int(stop.code or 0)
    finally:
        ARGUMENTS.reset(token)
    return 0


# ---------------------------------------------------------------------------- options


def _parameter(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _argument(name: str, metavar: str, help: str) -> inspect.Parameter:
    return _parameter(name, Annotated[str, typer.Argument(metavar=metavar, help=help)])


def _option(
    names: str, help: str, kind: Any = str | None, default: Any = None, **more: Any
) -> inspect.Parameter:
    """Return an option for the signature of a command, named after its last flag."""
    flags = names.split()
    name = flags[-1].lstrip("-").replace("-", "_")
    return _parameter(name, Annotated[kind, typer.Option(*flags, help=help, **more)], default)


def _choice(flag: str, help: str, names: tuple[str, ...], metavar: str) -> inspect.Parameter:
    """Return an option with one of these values, by default the first."""
    kind = StrEnum("Choice", [(name, name) for name in names])  # type: ignore[misc]  # from names
    return _option(flag, f"{help}{', '.join(names)}", kind, kind(names[0]), metavar=metavar)


def _method(names: tuple[str, ...]) -> inspect.Parameter:
    """Return the option --method."""
    return _choice("--method", "one of ", names, "NAME")


def _components(default: int) -> inspect.Parameter:
    return _option("-q --components", "number of coordinates", int, default, min=1)


def _check_name(out: str | None) -> str | None:
    if out == "":
        raise typer.BadParameter("the name is empty. Is a shell variable unset?")
    return out


DATA = _argument("data", "DATA", "csv, tsv, parquet, npy, npz, tps or nts file")
_NEGATIVE_HELP = "TPS: negative coordinates are not missing landmarks"
_REGEX_HELP = "landmarks: the first group matched in IMAGE or ID is the label"
_MISSING_HELP = "missing cells: drop (rows), mean, median or error; landmarks: drop or estimate"
KEEP_NEGATIVE = _option("--keep-negative", _NEGATIVE_HELP, bool, False)
READING = (
    _option("--label", "column with the labels", metavar="COL"),
    _option("--columns", "use only these columns", metavar="A,B,…"),
    _option("--labels", "landmarks: table with the label of each ID or IMAGE", metavar="FILE"),
    _option("--label-regex", _REGEX_HELP, metavar="REGEX"),
    KEEP_NEGATIVE,
    _option("--missing", _MISSING_HELP, metavar="RULE"),
    _option("--text", "columns of text: ignore, onehot or error", metavar="RULE"),
    _option("--fix-mirrored", "landmarks: reflect mirrored specimens", bool, False),
)
_STANDARDIZE = _choice(
    "--standardize",
    "scale columns to mean 0 and variance 1; auto: if their scales differ; one of ",
    ("auto", "yes", "no"),
    "RULE",
)
_LINKS_HELP = "landmarks: table of pairs of numbers to join by lines in figures"
LINKS = _option("--links", _LINKS_HELP, metavar="FILE")
SEED = _option("--seed", "random seed", int, 0, min=0, max=2**32 - 1)
MODEL = (
    _option(
        "--kernel",
        "default: gaussian, or chosen by the method; veronese_whitney for shapes",
        metavar="NAME",
    ),
    _option("--sigma", "bandwidth: a number, mean or median", metavar="σ"),
    _STANDARDIZE,
    SEED,
)
PRINTING = (
    _option("--json", "print a summary as JSON on stdout", bool, False),
    _option("--quiet", "no progress and no notes on stderr", bool, False),
)


def _output(folder: str) -> tuple[inspect.Parameter, ...]:
    """Return the options of a command that writes files into a folder."""
    out = _option("--out", "output folder", str, folder, metavar="DIR", callback=_check_name)
    return out, *PRINTING


def _fitting(folder: str) -> tuple[inspect.Parameter, ...]:
    """Return the options of a command that fits a model to data."""
    return *READING, *MODEL, *_output(folder)


# ---------------------------------------------------------------------------- errors


def _run_command(name: str, options: dict[str, Any]) -> None:
    """Run a command; report an error as one line and an exit code."""
    try:
        from .session import run

        run(name, options)
    except KeyboardInterrupt:
        write_stderr("\northodrome: interrupted\n")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if isinstance(error, BrokenPipeError) and error.filename == STDOUT:
            raise typer.Exit(0) from None  # its reader has seen enough
        expected = isinstance(error, ValueError | OSError | ImportError | MemoryError)
        if debugging() and (not expected or isinstance(error, ImportError)):
            raise
        message = _message(error)
        if not expected:
            message = (
                f"unexpected {type(error).__name__}: {message}. This is a bug in orthodrome. Set "
                "ORTHODROME_DEBUG=1 to see the traceback."
            )
        write_stderr(f"orthodrome: {printable(message)}\n")
        raise typer.Exit(FAILED) from None


def debugging() -> bool:
    """Return whether to raise unexpected errors, with a traceback."""
    return bool(os.environ.get("ORTHODROME_DEBUG"))


def _message(error: BaseException) -> str:
    """Return the message of an exception, on one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "out of memory; `orthodrome info DATA` estimates what a run needs"
    return " ".join(str(error).split()) or type(error).__name__


# ---------------------------------------------------------------------------- commands


@application.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="print the version")] = False,
) -> None:
    if version:
        write_stdout(f"orthodrome {__version__}\n")
        raise typer.Exit(0)


def _command(
    example: str, *parameters: inspect.Parameter
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a command with the name and the docstring of the decorated function."""

    def register(function: Callable[[], None]) -> Callable[[], None]:
        name = function.__name__

        def command(**options: Any) -> None:
            _run_command(name, options)

        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        help = inspect.getdoc(function) or ""
        epilog = f"Example: orthodrome {name} {example}"
        summary = help.split("\n")[0]
        application.command(name, help=help, short_help=summary, epilog=epilog)(command)
        return function

    return register


@_command("--out report && xdg-open report/index.html", *_output("report"))
def demo() -> None:
    """Show shapes, covariance matrices, directions and a table on one page.

    Uses simulated leaves and data that ship with scikit-learn and scikit-image. Writes index.html.
    """


@_command(
    "measurements.csv --label species",
    DATA,
    _components(2),
    *READING,
    _STANDARDIZE,
    *PRINTING,
)
def info() -> None:
    """Describe the data, recommend a method, and estimate time and memory of a run.

    Prints the size of the data and advice on the scales of the columns; a kernel and its
    bandwidth; the method that orthodrome compare recommends; how far the data spread on the sphere
    in feature space; the solver; memory and time.
    """


@_command(
    "measurements.csv --label species --method kpga",
    DATA,
    _method(DECOMPOSITIONS),
    _components(2),
    _option("--sphere", "for kpns: great or small (default: great)", metavar="NAME"),
    _option(
        "--p",
        "for kpns and robust (by projection pursuit): the power p, at most 2",
        float | None,
        metavar="P",
    ),
    LINKS,
    *_fitting("embedding"),
)
def embed() -> None:
    """Compute coordinates with kernel PGA, kernel PCA, nested spheres or robust kernel PCA.

    Writes coordinates.csv, the fitted model (for orthodrome predict) and report.html, a
    self-contained page: an interactive scatter plot, the spectrum, the fraction of neighbours
    preserved, and the same run as Python code. Labels are used only to colour the points.
    """


@_command(
    "measurements.csv --label species",
    DATA,
    _option("-k --clusters", "number of clusters (default: proposed)", int | None, min=1),
    _method(CLUSTERINGS),
    LINKS,
    *_fitting("clustering"),
)
def cluster() -> None:
    """Cluster rows spectrally, with mixtures or k-means on the sphere, or with kernel k-means.

    --method auto uses spectral clustering if a graph of shared neighbours shows separate groups,
    otherwise kernel k-means. Without -k, proposes a number of clusters. Writes clusters.csv, the
    fitted model and report.html. The clusters are compared with those of k-means and a Gaussian
    mixture of the columns, and with the labels, if given. Labels are not used for clustering.
    """


@_command(
    "train.csv --label species --test new.csv",
    _argument("data", "TRAIN", "csv, tsv, parquet, npz or tps file"),
    _option("--test", "rows to predict", metavar="FILE"),
    _option("--cv", "number of folds (default: 5)", int | None, metavar="FOLDS"),
    _method(CLASSIFIERS),
    LINKS,
    *_fitting("classification"),
)
def classify() -> None:
    """Fit a classifier (kernel ridge regression, PerTurbo or nested spheres) and test it.

    Tests on another file (--test) or by cross-validation (--cv). Writes predictions.csv, the model
    fitted to all training rows (for orthodrome predict) and report.html. The page shows the
    confusion matrix, and the accuracy compared with logistic regression and a support vector
    machine. For a TPS file, give --labels FILE or --label-regex. If there are more than 2,000 rows,
    a random sample is used.
    """


@_command("measurements.csv --label species", DATA, _components(2), *_fitting("comparison"))
def compare() -> None:
    """Compare PCA and all decompositions, and recommend one.

    With labels, the criterion is the accuracy of nearest neighbours, for rows that were not used in
    the fit. Without labels, it is the fraction of nearest neighbours in the standardised data that
    the coordinates preserve. The simplest method within one standard error of the best score is
    recommended. Writes report.html. If there are more than 500 rows, a random sample is used.
    """


@_command(
    "classification/model.orthodrome new.csv",
    _argument("model", "MODEL", "model.orthodrome, written by another command"),
    DATA,
    _option("--out", "table (default: stdout)", metavar="FILE", callback=_check_name),
    KEEP_NEGATIVE,
    *PRINTING,
)
def predict() -> None:
    """Compute labels, clusters or coordinates of new rows with a saved model.

    Prints the table as CSV, or writes it to a file. Columns are matched to those of the model by
    name; other columns are ignored.
    """


@_command(
    "photo.png --out cleaned",
    _argument("data", "IMAGE", "png or jpg, grey or colour"),
    _option("--patch-size", "side of a patch", int, 8, min=2),
    _option("--noise", "noise, 0 to 255 (default: estimated)", float | None, metavar="SD", min=0.0),
    SEED,
    *_output("denoised"),
)
def denoise() -> None:
    """Remove noise from an image with kernel PCA of its patches.

    Noise level, bandwidth and number of components are estimated from the image. Writes
    cleaned.png and report.html, which also shows the removed noise.
    """
