"""The command line: ``orthodrome`` or ``python -m orthodrome``. It parses, calls and reports."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from .streams import Unwritten, finish, prepared, tell

__all__ = ["main"]


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
    with prepared() as (output, errors):
        code, problem = 0, None
        try:
            code = _run(list(sys.argv[1:] if arguments is None else arguments))
        except Unwritten as unwritten:
            problem = unwritten.problem
        except OSError as error:  # of the help or the version
            problem = error
        sys.stdout, sys.stderr = output, errors  # typer wraps them where a pipe is closed
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
        return 130  # 128 + SIGINT, as shells have it
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("typer", "rich"):
            raise
        tell(f"orthodrome: the command line needs {error.name}: pip install 'orthodrome[cli]'\n")
        return 1
    return int(commands.run(arguments))
