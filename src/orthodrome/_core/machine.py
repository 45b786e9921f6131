"""What a computation ran on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .threads import n_threads

__all__ = ["machine", "versions"]


def machine() -> str:
    """Describe the machine in one line: processor, cores, threads, system and Python."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        model = names[0].split(":")[1].strip() if names else model
    cores, threads = os.cpu_count() or 1, n_threads()
    return (
        f"{model}, {cores} core{'s' * (cores != 1)}, {threads} thread{'s' * (threads != 1)}, "
        f"{platform.system()}, Python {platform.python_version()}"
    )


def versions(*packages: str) -> list[tuple[str, str]]:
    """Return the versions of Python and of packages, and the machine they run on."""
    found = [("Python", platform.python_version())]
    for package in packages:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return [*found, ("system", f"{platform.system()} {platform.machine()}")]
