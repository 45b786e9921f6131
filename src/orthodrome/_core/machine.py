"""Description of the machine, and versions of packages."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .threads import n_threads

_CPUINFO = Path("/proc/cpuinfo")


def machine() -> str:
    """Describe the machine in one line: processor, cores, threads, system and Python."""
    model = _processor() or platform.processor() or platform.machine()
    cores, threads = os.cpu_count() or 1, n_threads()
    return (
        f"{model}, {cores} core{'s' * (cores != 1)}, {threads} thread{'s' * (threads != 1)}, "
        f"{platform.system()}, Python {platform.python_version()}"
    )


def _processor() -> str:
    """Return the name of the processor on Linux, or ''."""
    with suppress(OSError):
        for line in _CPUINFO.read_text("utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return ""


def versions(*packages: str) -> list[tuple[str, str]]:
    """Return the versions of Python and of the given packages, if installed, and the system."""
    result = [("Python", platform.python_version())]
    for package in packages:
        with suppress(PackageNotFoundError):
            result.append((package, version(package)))
    return [*result, ("system", f"{platform.system()} {platform.machine()}")]
