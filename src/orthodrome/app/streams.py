"""Standard output and standard error, closed, full or narrow; and progress on the latter."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

#: Categories of characters that control a terminal, or cannot be written.
_CONTROL = ("Cc", "Cs", "Zl", "Zp")
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class OutputError(Exception):
    """Standard output cannot be written."""

    def __init__(self, problem: OSError) -> None:
        super().__init__(problem)
        self.problem = problem


def say(text: str) -> None:
    """Write to standard output."""
    try:
        sys.stdout.write(text)
    except OSError as problem:
        raise OutputError(problem) from problem


def tell(text: str) -> None:
    """Write to standard error; if it is full or closed, the work goes on."""
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def printable(text: str) -> str:
    """Return a text from a file with the characters that control a terminal made visible."""
    return "".join(
        repr(sign)[1:-1] if sign in _DIRECTION or unicodedata.category(sign) in _CONTROL else sign
        for sign in text
    )


@contextmanager
def prepared() -> Iterator[tuple[Any, Any]]:
    """Replace closed streams, and escape characters that a stream's encoding lacks."""
    before: tuple[Any, Any] = sys.stdout, sys.stderr
    is_open = [stream is not None and not getattr(stream, "closed", False) for stream in before]
    strict = [
        stream
        for stream, usable in zip(before, is_open, strict=True)
        if usable and getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure")
    ]
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stdout, sys.stderr = (
            stream if usable else nowhere for stream, usable in zip(before, is_open, strict=True)
        )
        try:
            for stream in strict:
                stream.reconfigure(errors="backslashreplace")
            yield sys.stdout, sys.stderr
        finally:
            sys.stdout, sys.stderr = before
            for stream in strict:
                with suppress(OSError):  # reconfigure flushes
                    stream.reconfigure(errors="strict")


def finish(stream: Any) -> OSError | None:
    """Flush a stream; return the error, and keep Python from flushing again at its end."""
    try:
        stream.flush()
    except OSError as problem:
        with suppress(OSError), open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), stream.fileno())
        return problem
    return None


# ---------------------------------------------------------------------------- progress


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[float, str], None]]:
    """Yield a function that takes the fraction done and the name of the current task.

    It draws a bar with the time left if standard error is a terminal, else a line for each task.
    """
    if quiet:
        yield lambda fraction, task: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress, TimeRemainingColumn

        columns = (*Progress.get_default_columns()[:-1], TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            whole = bar.add_task("", total=1.0)
            yield lambda fraction, task: bar.update(whole, completed=fraction, description=task)
    else:
        last = ""

        def report(fraction: float, task: str) -> None:
            nonlocal last
            if task and task != last:
                last = task
                tell(f"[{fraction:4.0%}] {task}\n")

        yield report
