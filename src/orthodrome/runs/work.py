"""How far a run has come, how long it took, and what was warned of meanwhile."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Work", "silent"]

#: Called with the fraction of the run that is done, and the name of what is being done.
Report = Callable[[float, str], None]


def silent(fraction: float, task: str) -> None:
    """Report to nobody."""


class Work:
    """A run in parts, each with its share of the time.

    Parameters
    ----------
    report : callable, optional
        Called with the fraction of the whole that is done, and the name of the part.
    shares : float
        The parts in their order, with their shares; they need not add up to 1.

    Examples
    --------
    >>> from orthodrome.runs.work import Work
    >>> work = Work(lambda fraction, task: print(f"{task} {fraction:.2f}"), fit=3, page=1)
    >>> with work.part("fit") as advance:
    ...     advance(0.5)
    fit 0.00
    fit 0.38
    fit 0.75
    """

    def __init__(self, report: Report = silent, **shares: float) -> None:
        self._report, self._shares = report, shares
        self._whole = sum(shares.values())
        self.notes: list[str] = []
        self.seconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[Callable[[float], None]]:
        """Do one part; what is warned of becomes a note, once."""
        names = list(self._shares)
        before = sum(self._shares[each] for each in names[: names.index(name)])
        task = name.replace("_", " ")

        def advance(fraction: float) -> None:
            self._report((before + fraction * self._shares[name]) / self._whole, task)

        advance(0.0)
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield advance
        self.seconds[name] = time.perf_counter() - started
        for warning in caught:
            text = " ".join(str(warning.message).split())
            if text not in self.notes and not issubclass(warning.category, DeprecationWarning):
                self.notes.append(text)
        advance(1.0)
