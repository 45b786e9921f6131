"""What a computation ran on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .threads import n_threads

__all__ = ["machine", "versions"]

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
    """Return what Linux calls the processor, or nothing."""
    try:
        lines = _CPUINFO.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else ""


def versions(*packages: str) -> list[tuple[str, str]]:
    """Return the versions of Python and of packages, and the machine they run on."""
    found = [("Python", platform.python_version())]
    for package in packages:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return [*found, ("system", f"{platform.system()} {platform.machine()}")]
