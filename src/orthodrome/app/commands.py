"""The command line. Heavy imports happen inside the commands, so that the help is fast."""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Annotated, Any

import typer

from .. import __version__
from .streams import OutputError, printable, progress, say, tell

__all__ = ["GIVEN", "application", "run"]

FAILED, INTERRUPTED = 1, 130  # 128 + SIGINT, as in shells

# The keys of the tables in ``models``, which takes seconds to import.
DECOMPOSITIONS = ("kpga", "kpca", "kpns", "robust")
CLUSTERINGS = ("mixture", "kmeans", "kernel-kmeans", "spectral")
CLASSIFIERS = ("krrc", "perturbo", "nested-spheres")

#: The arguments of the program, for the page to show.
GIVEN: ContextVar[list[str]] = ContextVar("arguments")

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
        # typer and rich call it a failure if the reader of a pipe stops early
        return 0 if isinstance(stop.__context__, BrokenPipeError) else int(stop.code or 0)
    finally:
        GIVEN.reset(token)
    return 0


# ---------------------------------------------------------------------------- options


def _check_name(out: str | None) -> str | None:
    if out == "":
        raise typer.BadParameter("the name is empty; is it a variable that is not set?")
    return out


def _option(kind: Any, default: Any, *names: str, help: str, **more: Any) -> inspect.Parameter:
    """Return a parameter for the signature of a command, called like its first long name."""
    name = names[0].lstrip("-").replace("-", "_")
    annotation = Annotated[kind, typer.Option(*names, help=help, **more)]
    return _parameter(name, annotation, default)


def _parameter(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _method(names: Sequence[str]) -> Any:
    """Return the option that chooses a method."""

    def check(value: str) -> str:
        if value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(names)}.")
        return value

    return typer.Option(
        "--method", metavar="NAME", help="one of " + ", ".join(names), callback=check
    )


def _argument(metavar: str, help: str) -> Any:
    return Annotated[str, typer.Argument(metavar=metavar, help=help)]


DATA = _parameter("data", _argument("DATA", "csv, tsv, parquet, npy, npz or tps"))
KEEP_NEGATIVE = _option(
    bool, False, "--keep-negative", help="keep negative coordinates: not missing landmarks (TPS)"
)
READING = (
    _option(str | None, None, "--label", metavar="COL", help="column that holds the labels"),
    _option(str | None, None, "--columns", metavar="A,B,…", help="use only these columns"),
    _option(
        *(str | None, None, "--labels"),
        metavar="FILE",
        help="table of labels, joined on ID or IMAGE (TPS)",
    ),
    _option(
        *(str | None, None, "--label-regex"),
        metavar="REGEX",
        help="labels are its first group in IMAGE or ID (TPS)",
    ),
    KEEP_NEGATIVE,
)
SEED = _option(int, 0, "--seed", min=0, max=2**32 - 1, help="seed of random choices")
MODEL = (
    _option(
        *(str | None, None, "--kernel"),
        metavar="NAME",
        help="default: gaussian; veronese_whitney for shapes",
    ),
    _option(str | None, None, "--sigma", metavar="σ", help="bandwidth: a number, mean or median"),
    _option(bool, False, "--standardize", help="scale columns to mean 0 and variance 1 first"),
    SEED,
)
JSON = _option(bool, False, "--json", help="print a summary as JSON on stdout")
QUIET = _option(bool, False, "--quiet", help="no progress and no notes on stderr")
Components = Annotated[int, typer.Option("--components", "-q", min=1, help="number of coordinates")]


def _output(folder: str) -> tuple[inspect.Parameter, ...]:
    """Return the options of a command that writes files into a folder."""
    out = _option(str, folder, "--out", metavar="DIR", help="folder to write", callback=_check_name)
    return out, JSON, QUIET


# ---------------------------------------------------------------------------- errors


def _command(
    name: str, example: str, *shared: inspect.Parameter
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command with shared options; an error becomes one line and an exit code.

    The command gets the values of its shared options as ``**shared``.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def guarded(**options: Any) -> None:
            try:
                function(**options)
            except KeyboardInterrupt:
                tell("\northodrome: interrupted\n")
                raise typer.Exit(INTERRUPTED) from None
            except OutputError:
                raise
            except Exception as error:
                expected = isinstance(error, ValueError | OSError | ImportError | MemoryError)
                if _debugging() and (not expected or isinstance(error, ImportError)):
                    raise
                words = _words(error)
                if not expected:
                    words = (
                        f"unexpected {type(error).__name__}: {words}. This is a bug in orthodrome; "
                        "ORTHODROME_DEBUG=1 shows where."
                    )
                tell(f"orthodrome: {printable(words)}\n")
                raise typer.Exit(FAILED) from None

        keyword = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in inspect.signature(function, eval_str=True).parameters.values()
            if each.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        arguments = [each for each in shared if each.default is inspect.Parameter.empty]
        others = [each for each in shared if each not in arguments]
        parameters = [*arguments, *keyword, *others]
        guarded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        guarded.__annotations__ = {each.name: each.annotation for each in parameters}
        summary = (function.__doc__ or "").split("\n")[0]
        return application.command(name, short_help=summary, epilog=f"Example: {example}")(guarded)

    return register


def _debugging() -> bool:
    return bool(os.environ.get("ORTHODROME_DEBUG"))


def _words(error: BaseException) -> str:
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
        say(f"orthodrome {__version__}\n")
        raise typer.Exit(0)


@_command("demo", "orthodrome demo --out report && xdg-open report/index.html", *_output("report"))
def demo(**shared: Any) -> None:
    """PCA, kernel PCA and kernel PGA side by side, as one HTML page.

    Uses data that ship with scikit-learn (digits, wine) and simulated directions. Shows
    embeddings, spectra and pre-images, and writes the figures as PNG files next to the page. The
    last line on stdout is the path of the page. Needs no network and takes less than a minute.
    """
    from .demo import run_demo
    from .session import command_line, print_paths

    with progress(shared["quiet"]) as report:
        page = run_demo(shared["out"], command=command_line(), report=report)
    print_paths({page.name: page}, shared["json"])


@_command(
    *("info", "orthodrome info measurements.csv --label species"),
    *(DATA, *READING, JSON, QUIET),
)
def info(components: Components = 10, **shared: Any) -> None:
    """Describe the data, suggest a kernel, and estimate what a run will take.

    Size, kind and scales of the columns; a kernel and its bandwidth; how far the data spread on
    the sphere of the feature space (if not far, flat methods do as well); the solver; memory and
    time.
    """
    from .info import describe
    from .session import read

    data, _ = read(shared)
    with progress(shared["quiet"]) as report:
        report(0.0, "probe of this machine")
        found = describe(data, n_components=components)
    if shared["json"]:
        say(json.dumps(found.as_dict()) + "\n")
    else:
        say("\n".join(map(printable, found.lines())) + "\n")


@_command(
    *("embed", "orthodrome embed measurements.csv --label species --method kpga"),
    *(DATA, *READING, *MODEL, *_output("embedding")),
)
def embed(
    method: Annotated[str, _method(DECOMPOSITIONS)] = "kpga",
    components: Components = 2,
    sphere: Annotated[
        str | None, typer.Option("--sphere", metavar="NAME", help="for kpns: small or great")
    ] = None,
    p: Annotated[
        float | None, typer.Option("--p", metavar="P", help="for kpns and robust: at most 2")
    ] = None,
    **shared: Any,
) -> None:
    """Coordinates of the rows, by kernel PGA, kernel PCA, nested spheres or robust kernel PCA.

    Writes coordinates.csv, the fitted model (for orthodrome predict) and report.html, a
    self-contained page: the points to explore, the spectrum, the neighbours that are preserved,
    and the Python lines that do the same. Labels only colour the points.
    """
    from .session import run_command

    parameters = {"n_components": components, "sphere": sphere, "p": p}
    given = {name: value for name, value in parameters.items() if value is not None}
    run_command("embed", shared, method=method, parameters=given)


@_command(
    *("cluster", "orthodrome cluster measurements.csv -k 3 --label species"),
    *(DATA, *READING, *MODEL, *_output("clustering")),
)
def cluster(
    k: Annotated[int, typer.Option("-k", "--clusters", min=1, help="number of clusters")],
    method: Annotated[str, _method(CLUSTERINGS)] = "mixture",
    **shared: Any,
) -> None:
    """Groups of rows, by a mixture or k-means on the sphere, kernel k-means or spectrally.

    Writes clusters.csv, the fitted model and report.html. Labels are not used to cluster; with
    them, the page compares clusters and labels.
    """
    from .session import run_command

    parameters = {"n_components" if method == "mixture" else "n_clusters": k}
    run_command("cluster", shared, method=method, parameters=parameters)


@_command(
    *("classify", "orthodrome classify train.csv --label species --test new.csv"),
    _parameter("data", _argument("TRAIN", "csv, tsv, parquet, npz or tps")),
    *(*READING, *MODEL, *_output("classification")),
)
def classify(
    test: Annotated[
        str | None, typer.Option("--test", metavar="FILE", help="rows to predict")
    ] = None,
    cv: Annotated[
        int | None, typer.Option("--cv", metavar="FOLDS", help="folds to test by (default: 5)")
    ] = None,
    method: Annotated[str, _method(CLASSIFIERS)] = "krrc",
    **shared: Any,
) -> None:
    """A classifier by kernel ridge regression, PerTurbo or nested spheres, and its accuracy.

    Tested on the rows of another file (--test), or by folds (--cv). Writes predictions.csv, the
    model of all training rows (for orthodrome predict) and report.html with accuracy and
    confusions. A TPS file has no columns: give --labels FILE or --label-regex.
    """
    from .session import run_command

    run_command("classify", shared, method=method, test=test, cv=cv)


@_command(
    *("compare", "orthodrome compare measurements.csv --label species"),
    *(DATA, *READING, *MODEL, *_output("comparison")),
)
def compare(components: Components = 2, **shared: Any) -> None:
    """PCA and all decompositions side by side, and which one to use.

    Compares the fraction of nearest neighbours that each preserves, and recommends one. Writes
    report.html. Of more than 500 rows, a sample of 500 is used.
    """
    from .session import run_command

    run_command("compare", shared, n_components=components)


@_command(
    *("predict", "orthodrome predict classification/model.orthodrome new.csv"),
    _parameter("model", _argument("MODEL", "a file that a command has written")),
    *(DATA, KEEP_NEGATIVE, JSON, QUIET),
)
def predict(
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FILE", help="table to write (default: stdout)", callback=_check_name
        ),
    ] = None,
    **shared: Any,
) -> None:
    """Labels, clusters or coordinates of new rows, by a model that was fitted before.

    The table goes to stdout as CSV, or to a file. The columns of the model are found by their
    names; others are ignored.
    """
    from .session import run_predict

    run_predict(out, shared, debugging=_debugging())


@_command(
    *("denoise", "orthodrome denoise photo.png --out cleaned"),
    _parameter("image", _argument("IMAGE", "png or jpg, grey or colour")),
    *(SEED, *_output("denoised")),
)
def denoise(
    patch_size: Annotated[int, typer.Option("--patch-size", min=2, help="side of a patch")] = 8,
    noise: Annotated[
        float | None,
        typer.Option("--noise", metavar="SD", min=0.0, help="noise, of 255 (default: estimated)"),
    ] = None,
    **shared: Any,
) -> None:
    """An image without its noise, by kernel PCA of its patches.

    Noise level, bandwidth and number of components are estimated from the image. Writes
    cleaned.png and report.html, which also shows what was removed.
    """
    from .session import run_denoise

    run_denoise(shared, patch_size, "auto" if noise is None else noise / 255)
