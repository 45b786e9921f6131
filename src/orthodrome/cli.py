"""The command line: ``orthodrome`` or ``python -m orthodrome``. It parses, calls and reports."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import __version__
from .plots import MissingExtraError

__all__ = ["main"]

Report = Callable[[int, int, str], None]

_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the program's name; ``sys.argv[1:]`` if absent.

    Returns
    -------
    int
        0 for success, 1 for a failure that the message names, 2 for a command line that cannot be
        understood, 130 for an interruption.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    try:
        options = parser.parse_args(given)
    except SystemExit as stop:  # argparse has printed its help, version or complaint
        return int(stop.code or 0)
    if options.run is None:
        parser.print_help()
        return 0
    try:
        return int(options.run(options, given))
    except MissingExtraError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"cannot write to --out {options.out}: {error.strerror or error}")
    except KeyboardInterrupt:
        sys.stderr.write("\northodrome: interrupted\n")
        return _INTERRUPTED


def _fail(message: str) -> int:
    sys.stderr.write(f"orthodrome: {message}\n")
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="orthodrome",
        description="Kernel methods on Hilbert spheres and shape spaces.",
        epilog="Begin with: orthodrome demo. Exit codes: 0 done, 1 failed (the last line on stderr "
        "says why), 2 command not understood, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"orthodrome {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="PCA, kernel PCA and kernel PGA side by side, as one HTML page",
        description="Run PCA, kernel PCA and kernel PGA on data that ship with scikit-learn "
        "(digits, wine) and on simulated directions, "
        "and write one self-contained page with embeddings, spectra, pre-images and how they were "
        "computed, and its figures as PNG files beside it. The last line on stdout is the path "
        "of the page. Needs no network and takes less than a minute.",
        epilog="Example: orthodrome demo --out report && xdg-open report/index.html",
    )
    demo.add_argument(
        "--out", default="report", metavar="DIR", help="folder to write (default: %(default)s)"
    )
    demo.add_argument("--quiet", action="store_true", help="show no progress on stderr")
    demo.set_defaults(run=_demo)
    return parser


def _demo(options: argparse.Namespace, given: Sequence[str]) -> int:
    from .plots.demo import run_demo  # not needed to print a version or help

    with _progress(options.quiet) as report:
        page = run_demo(options.out, command=[*_program(), *given], progress=report)
    sys.stdout.write(f"{page.resolve()}\n")
    return 0


def _program() -> list[str]:
    """Return how this program was called, for people to call it again."""
    as_module = Path(sys.argv[0]).name == "__main__.py"
    return ["python", "-m", "orthodrome"] if as_module else ["orthodrome"]


# ---------------------------------------------------------------------- progress


@contextmanager
def _progress(quiet: bool) -> Iterator[Report]:
    """Yield a function that shows how far the work has come, on stderr.

    A bar where stderr is a terminal and rich is installed, else one line for each task.
    """
    if quiet:
        yield lambda done, total, task: None
    elif (rich := _rich()) is None or not sys.stderr.isatty():
        yield _line
    else:
        with _bar(rich) as report:
            yield report


def _line(done: int, total: int, task: str) -> None:
    if task:
        sys.stderr.write(f"[{done + 1}/{total}] {task}\n")
        sys.stderr.flush()


def _rich() -> Any:
    try:
        import rich.console
        import rich.progress
    except ModuleNotFoundError:
        return None
    return rich


@contextmanager
def _bar(rich: Any) -> Iterator[Report]:
    columns = (
        rich.progress.SpinnerColumn(),
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TimeElapsedColumn(),
    )
    console = rich.console.Console(stderr=True)
    with rich.progress.Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=None)

        def report(done: int, total: int, task: str) -> None:
            progress.update(bar, completed=done, total=total, description=task)

        yield report
