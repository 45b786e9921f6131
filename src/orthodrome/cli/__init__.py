"""The command line: ``orthodrome`` or ``python -m orthodrome``. It parses, calls and reports."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

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
    return int(commands.run(list(sys.argv[1:] if arguments is None else arguments)))
