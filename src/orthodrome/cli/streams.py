"""Standard output and standard error, closed, full or narrow as they may be."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

__all__ = ["Unwritten", "finish", "prepared", "printable", "say", "tell"]

#: Kinds of signs that a terminal obeys, or cannot write; and those that turn the text around.
_STEERING = ("Cc", "Cs", "Zl", "Zp")
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Unwritten(Exception):
    """Standard output takes no more."""

    def __init__(self, problem: OSError) -> None:
        super().__init__(problem)
        self.problem = problem


def say(text: str) -> None:
    """Write to standard output; raise :class:`Unwritten` where it takes no more."""
    try:
        sys.stdout.write(text)
    except OSError as problem:
        raise Unwritten(problem) from problem


def tell(text: str) -> None:
    """Write to standard error; where that is full or closed, the work goes on all the same."""
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def printable(text: str) -> str:
    """Return a text with what a terminal would obey, as a name in a file may hold it, visible."""
    return "".join(
        repr(sign)[1:-1] if sign in _TURNING or unicodedata.category(sign) in _STEERING else sign
        for sign in text
    )


@contextmanager
def prepared() -> Iterator[tuple[Any, Any]]:
    """Let both streams be there and take any sign; after it they are as they were."""
    before: tuple[Any, Any] = sys.stdout, sys.stderr
    there = [stream for stream in before if not _is_closed(stream)]
    strict = [stream for stream in there if getattr(stream, "errors", None) == "strict"]
    strict = [stream for stream in strict if hasattr(stream, "reconfigure")]
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stdout, sys.stderr = (nowhere if _is_closed(stream) else stream for stream in before)
        try:
            for stream in strict:
                stream.reconfigure(errors="backslashreplace")
            yield sys.stdout, sys.stderr
        finally:
            sys.stdout, sys.stderr = before
            for stream in strict:
                with suppress(OSError):  # it writes what the stream holds
                    stream.reconfigure(errors="strict")


def _is_closed(stream: Any) -> bool:
    return stream is None or getattr(stream, "closed", False)


def finish(stream: Any) -> OSError | None:
    """Write what a stream still holds, or return why not; Python does not try again at its end."""
    try:
        stream.flush()
    except OSError as problem:
        with suppress(OSError), open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), stream.fileno())
        return problem
    return None
