"""Memory that is still available."""

from __future__ import annotations

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
# Container limits: files of cgroups version 2, then version 1.
_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_memory() -> int | None:
    """Return the number of available bytes, or None if it is unknown.

    It is the smaller of the system's available memory and the rest of the container's limit.

    Examples
    --------
    >>> from orthodrome.app.memory import available_memory
    >>> found = available_memory()
    >>> found is None or found > 0
    True
    """
    known = [size for size in (_system_memory(), *_container_memory()) if size is not None]
    return max(min(known), 0) if known else None


def _system_memory() -> int | None:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:  # no /proc: assume that half of the installed memory is free
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _container_memory() -> list[int]:
    remaining = []
    for limit, usage in _LIMITS:
        try:
            remaining.append(int(Path(limit).read_text()) - int(Path(usage).read_text()))
        except (OSError, ValueError):  # no such file, or no limit ("max")
            continue
    return remaining
