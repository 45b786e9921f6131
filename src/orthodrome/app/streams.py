"""Write to standard output and standard error, which may be closed or full; show progress."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

# Unicode categories of characters that control a terminal or cannot be encoded.
_CONTROL = ("Cc", "Cs", "Zl", "Zp")
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

STDOUT = "standard output"


def write_stdout(text: str) -> None:
    """Write to standard output; errors name it."""
    try:
        sys.stdout.write(text)
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, STDOUT) from problem


def write_stderr(text: str) -> None:
    """Write to standard error. Errors, such as a full disk, are ignored."""
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def printable(text: str) -> str:
    """Return text with the characters that control a terminal escaped."""
    return "".join(
        repr(char)[1:-1] if char in _DIRECTION or unicodedata.category(char) in _CONTROL else char
        for char in text
    )


@contextmanager
def safe_streams() -> Iterator[tuple[Any, Any]]:
    """Replace closed streams, and escape characters that a stream cannot encode."""
    original: tuple[Any, Any] = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as sink:
        for name, stream in zip(("stdout", "stderr"), original, strict=True):
            if stream is None or getattr(stream, "closed", False):
                setattr(sys, name, sink)
            elif hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            yield sys.stdout, sys.stderr
        finally:
            sys.stdout, sys.stderr = original


def flush(stream: Any) -> OSError | None:
    """Flush a stream. On an error, return it and redirect the stream to the null device.

    Otherwise Python would flush again at exit, and fail again.
    """
    try:
        stream.flush()
    except OSError as problem:
        with suppress(OSError), open(os.devnull, "wb") as sink:
            os.dup2(sink.fileno(), stream.fileno())
        return problem
    return None


# ---------------------------------------------------------------------------- progress


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[float, str], None]]:
    """Yield a function that takes the fraction done and the name of the current task.

    The function draws a progress bar if standard error is a terminal; otherwise it prints one line
    per task.
    """
    if quiet:
        yield lambda fraction, task: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            bar_task = bar.add_task("", total=1.0)
            yield lambda fraction, task: bar.update(bar_task, completed=fraction, description=task)
    else:
        last = ""

        def report(fraction: float, task: str) -> None:
            nonlocal last
            if task and task != last:
                last = task
                write_stderr(f"[{fraction:4.0%}] {task}\n")

        yield report
