"""The command line, ``orthodrome`` or ``python -m orthodrome``, and its readers of files.

A run goes through these modules, from top to bottom:

======================  ==========================================================================
``commands``            the commands and their options
``session``             one run; its table ``COMMANDS`` has the function and the files of a command
``inputs``              reading: csv, tsv, parquet, npy, npz, tps and images as arrays
``models``              preparing: an estimator from options, and the Python lines that make it
``embedding``, …        a module for each command: its method, its table and its page
``results``             what results share: tables as CSV, runs in parts with progress and notes
``pages``               what pages share
======================  ==========================================================================

``info`` describes data, ``forecast`` estimates time and memory, and ``demo`` is the demonstration.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .streams import OutputError, finish, prepared, tell

if TYPE_CHECKING:
    from .inputs import Data, InputError, read_data, read_image, write_image

__all__ = ["Data", "InputError", "main", "read_data", "read_image", "write_image"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(".inputs", __name__), name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments of the program; ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        0 for success, 1 for a failure that the message explains, 2 for a command line that cannot
        be understood, 130 for an interruption.
    """
    with prepared() as (output, errors):
        code, problem = 0, None
        try:
            code = _run(list(sys.argv[1:] if arguments is None else arguments))
        except OutputError as error:
            problem = error.problem
        except OSError as error:  # printing the help or the version
            problem = error
        sys.stdout, sys.stderr = output, errors  # typer wraps them if a pipe is closed
        problem = finish(output) or problem
        if not (code or problem is None or isinstance(problem, BrokenPipeError)):
            tell(f"orthodrome: {problem.strerror or problem}: standard output\n")
            code = 1
        finish(errors)
    return code


def _run(arguments: list[str]) -> int:
    try:
        commands = importlib.import_module(".commands", __name__)
    except KeyboardInterrupt:
        tell("\northodrome: interrupted\n")
        return 130  # 128 + SIGINT, as in shells
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("typer", "rich"):
            raise
        tell(f"orthodrome: the command line needs {error.name}: pip install 'orthodrome[cli]'\n")
        return 1
    return int(commands.run(arguments))
