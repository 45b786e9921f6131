"""The command line: ``orthodrome`` or ``python -m orthodrome``. It parses, calls and reports."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

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
    _prepare_streams()
    output, errors = sys.stdout, sys.stderr
    code, problem = 0, None
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
    except OSError as error:  # of the help or the version; commands tell their own
        problem = error
    sys.stdout, sys.stderr = output, errors  # typer wraps them where a pipe is closed
    problem = _finish(output) or problem
    if not (code or problem is None or isinstance(problem, BrokenPipeError)):
        with suppress(OSError):
            errors.write(f"orthodrome: {problem.strerror}: standard output\n")
        code = 1
    _finish(errors)
    return code


def _run(arguments: list[str]) -> int:
    try:
        commands = importlib.import_module(".commands", __name__)
    except KeyboardInterrupt:
        sys.stderr.write("\northodrome: interrupted\n")
        return 130  # 128 + SIGINT, as shells have it
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("typer", "rich"):
            raise
        sys.stderr.write(
            f"orthodrome: the command line needs {error.name}: pip install 'orthodrome[cli]'\n"
        )
        return 1
    return int(commands.run(arguments))


def _prepare_streams() -> None:
    """Let standard output and standard error be there, closed as they may be, and take any sign."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="backslashreplace")


def _finish(stream: Any) -> OSError | None:
    """Write what a stream still holds, or return why not; Python does not try again at its end."""
    try:
        stream.flush()
    except OSError as problem:
        with suppress(OSError), open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), stream.fileno())
        return problem
    return None
