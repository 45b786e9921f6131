"""How much memory this process may still take, and refusals before it is full."""

from __future__ import annotations

import os
from pathlib import Path

from .._core.memory import format_bytes

__all__ = ["available_memory", "memory_refusal", "resident_memory"]

_MEMINFO = Path("/proc/meminfo")
# Limits of containers: version 2 of control groups, then version 1.
_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def available_memory() -> int | None:
    """Return the bytes that can still be taken, or None where the system does not tell.

    The least of what the kernel says is available and of what the container's limit leaves.

    Examples
    --------
    >>> from orthodrome.runs.memory import available_memory
    >>> found = available_memory()
    >>> found is None or found > 0
    True
    """
    known = [size for size in (_of_the_machine(), *_of_the_container()) if size is not None]
    return max(min(known), 0) if known else None


def memory_refusal(needed: float, what: str) -> str | None:
    """Return why `what` cannot be held in memory, or None where it fits or nobody knows."""
    available = available_memory()
    if available is None or needed <= available:
        return None
    return (
        f"{what} would take about {format_bytes(needed)} of memory, and "
        f"{format_bytes(available)} are available"
    )


def _of_the_machine() -> int | None:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:  # no /proc: half of what is installed is a fair guess at what is free
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _of_the_container() -> list[int]:
    left = []
    for limit, usage in _LIMITS:
        try:
            left.append(int(Path(limit).read_text()) - int(Path(usage).read_text()))
        except (OSError, ValueError):  # no such group, or its limit is the word "max"
            continue
    return left


def resident_memory() -> int | None:
    """Return the bytes that this process has in memory now, or None where nobody tells.

    Examples
    --------
    >>> from orthodrome.runs.memory import resident_memory
    >>> found = resident_memory()
    >>> found is None or found > 2**20
    True
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError, IndexError):
        return None
