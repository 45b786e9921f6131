"""How far a command has come, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from .streams import tell

__all__ = ["progress"]

#: Called with the fraction of the work that is done, and the name of what is being done.
Report = Callable[[float, str], None]


@contextmanager
def progress(quiet: bool) -> Iterator[Report]:
    """Yield a function that shows how far the work has come.

    A bar with the time left where standard error is a terminal, else one line for each task.
    """
    if quiet:
        yield lambda fraction, task: None
    elif sys.stderr.isatty():
        with _bar() as report:
            yield report
    else:
        yield _lines()


def _lines() -> Report:
    last = ""

    def report(fraction: float, task: str) -> None:
        nonlocal last
        if task and task != last:
            last = task
            tell(f"[{fraction:4.0%}] {task}\n")

    return report


@contextmanager
def _bar() -> Iterator[Report]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as bar:
        whole = bar.add_task("", total=1.0)

        def report(fraction: float, task: str) -> None:
            bar.update(whole, completed=fraction, description=task)

        yield report
