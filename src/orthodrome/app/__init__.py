"""The command line, ``orthodrome`` or ``python -m orthodrome``, and its file readers.

A run uses these modules, in this order:

======================  ==========================================================================
``commands``            defines the commands and their options
``session``             runs one command; ``COMMANDS`` lists the function and files of each
``inputs``              reads csv, tsv, parquet, npy, npz, tps and images as arrays
``models``              makes an estimator from the options, and the Python code for it
``embedding``, …        the commands: their computations, tables and pages
``results``             shared by the commands: progress, notes, CSV tables and parts of pages
======================  ==========================================================================

``info`` describes data and estimates time and memory, ``demo`` runs the demonstration.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .streams import STDOUT, flush, safe_streams, write_stderr

if TYPE_CHECKING:
    from .inputs import Data, InputError, read_data, read_image, write_image

__all__ = [
    "Data",
    "InputError",
    "main",
    "read_data",
    "read_image",
    "read_new_rows",
    "write_image",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(".inputs", __name__), name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command-line arguments. Default: ``sys.argv[1:]``.

    Returns
    -------
    int
        0: success; 1: failure, explained on standard error; 2: invalid command line;
        130: interrupted.
    """
    with safe_streams() as (output, errors):
        code, problem = 0, None
        try:
            code = _run(list(sys.argv[1:] if arguments is None else arguments))
        except OSError as error:  # raised while printing the help or the version
            problem = error
        sys.stdout, sys.stderr = output, errors  # typer wraps them if a pipe is closed
        problem = flush(output) or problem
        if not (code or problem is None or isinstance(problem, BrokenPipeError)):
            write_stderr(f"orthodrome: {problem.strerror or problem}: {STDOUT}\n")
            code = 1
        flush(errors)
    return code


def _run(arguments: list[str]) -> int:
    try:
        commands = importlib.import_module(".commands", __name__)
    except KeyboardInterrupt:
        write_stderr("\northodrome: interrupted\n")
        return 130  # 128 + SIGINT, as in shells
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("typer", "rich"):
            raise
        write_stderr(
            f"orthodrome: the command line needs {error.name}: pip install 'orthodrome[cli]'\n"
        )
        return 1
    return int(commands.run(arguments))
