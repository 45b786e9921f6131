"""The command line, ``orthodrome`` or ``python -m orthodrome``, and its readers of files.

======================  ==========================================================================
``commands``            the commands and their options
``session``             one run: read, compute, write all files or none
``inputs``              files of data as arrays: csv, tsv, parquet, npy, npz, tps; images
``models``              estimators from options, and the Python lines that make the same
``info``                a description of data, and estimates of time and memory
``embedding``, …        a module for each command: its run, its table and its page
``demo``                the demonstration
======================  ==========================================================================
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
