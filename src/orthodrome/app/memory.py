"""The memory that this process has, and may still take."""

from __future__ import annotations

import os
from pathlib import Path

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
    """Return the bytes that can still be taken, or None if the system does not say.

    It is the smaller of what the system has available and what the container's limit leaves.

    Examples
    --------
    >>> from orthodrome.app.memory import available_memory
    >>> found = available_memory()
    >>> found is None or found > 0
    True
    """
    known = [size for size in (_of_the_machine(), *_of_the_container()) if size is not None]
    return max(min(known), 0) if known else None


def _of_the_machine() -> int | None:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:  # no /proc: guess that half of the installed memory is free
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
    """Return the bytes that this process has in memory, or None if the system does not say.

    Examples
    --------
    >>> from orthodrome.app.memory import resident_memory
    >>> found = resident_memory()
    >>> found is None or found > 2**20
    True
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError, IndexError):
        return None
