"""Peak anonymous memory of a piece of work, measured from inside its process.

It needs the standard library alone, so that peers in environments of their own use it too.
"""

from __future__ import annotations

import threading
import time
from typing import Any


def anonymous_memory() -> int:
    """Return RssAnon: what the process holds in memory that is not a mapped file."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))


class Peak:
    """Watch the anonymous memory of this process while a block runs, and time it.

    It looks every few milliseconds, and not while a call holds the interpreter's lock: what such a
    call takes and gives back is not seen.

    Attributes
    ----------
    bytes : int
        The highest that was seen above what there was at the start.
    total : int
        The highest that was seen in all, data and imports included.
    seconds : float
        What the block took.
    extra : dict
        What the block wants to be reported with them.
    """

    def __init__(self) -> None:
        self.extra: dict[str, Any] = {}

    def __enter__(self) -> Peak:
        self.idle = self.total = anonymous_memory()
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        self._start = time.perf_counter()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.002):
            self.total = max(self.total, anonymous_memory())

    def __exit__(self, *_: Any) -> None:
        self.seconds = time.perf_counter() - self._start
        self._stop.set()
        self._watcher.join()
        self.total = max(self.total, anonymous_memory())
        self.bytes = self.total - self.idle

    def found(self) -> dict[str, Any]:
        """Return all of it, to be written as JSON."""
        return {"bytes": self.bytes, "total": self.total, "seconds": self.seconds} | self.extra
