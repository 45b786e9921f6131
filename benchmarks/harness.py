"""Side-by-side measurements: both sides in one run, interleaved, medians, the range printed."""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPEATS = 5
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Comparison:
    """Two ways to the same result, to be timed one after the other.

    ``accuracy(result)`` is the error of a result; neither side counts unless it is below
    `required`. `target` is the ratio ours / theirs that was set as the goal.
    """

    name: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    ours_label: str
    theirs_label: str
    accuracy: Callable[[Any], float] | None = None
    required: float = float("inf")
    target: float | None = None
    note: str = ""


@dataclass
class Measured:
    """What came of it; `unit` is seconds or bytes, `limit` what ours may take at the most."""

    name: str
    ours_label: str
    theirs_label: str
    ours: list[float]
    theirs: list[float]
    unit: str = "s"
    ours_error: float | None = None
    theirs_error: float | None = None
    required: float | None = None
    target: float | None = None
    limit: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.theirs)

    @property
    def ratio_range(self) -> tuple[float, float]:
        """The range of the ratios of runs that stood next to each other."""
        pairs = [a / b for a, b in zip(self.ours, self.theirs, strict=True)]
        return min(pairs), max(pairs)

    @property
    def accurate(self) -> bool:
        errors = [e for e in (self.ours_error, self.theirs_error) if e is not None]
        return self.required is None or all(error <= self.required for error in errors)


def compare(case: Comparison, repeats: int = REPEATS) -> Measured:
    """Run both sides once to warm up and check, then `repeats` times in turn."""
    errors = []
    for side in (case.ours, case.theirs):
        result = side()
        errors.append(case.accuracy(result) if case.accuracy else None)
        del result
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for side, record in zip((case.ours, case.theirs), seconds, strict=True):
            gc.collect()
            start = time.perf_counter()
            result = side()
            record.append(time.perf_counter() - start)
            del result
    return Measured(
        name=case.name,
        ours_label=case.ours_label,
        theirs_label=case.theirs_label,
        ours=seconds[0],
        theirs=seconds[1],
        ours_error=errors[0],
        theirs_error=errors[1],
        required=case.required if case.accuracy else None,
        target=case.target,
        note=case.note,
    )


_PEAK = """
import json, threading, time
def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))
peak, stop = 0, threading.Event()
def watch():
    global peak
    while not stop.wait(0.002):
        peak = max(peak, anonymous())
{setup}
idle = anonymous()
watcher = threading.Thread(target=watch); watcher.start()
start = time.perf_counter()
{work}
seconds = time.perf_counter() - start
stop.set(); watcher.join()
print(json.dumps({{"bytes": peak - idle, "seconds": seconds}}))
"""


def peak_anonymous_memory(setup: str, work: str) -> dict[str, float]:
    """Run `work` in a fresh process; return its peak RssAnon above idle, and its seconds."""
    script = _PEAK.format(setup=setup, work=work)
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return json.loads(finished.stdout.splitlines()[-1])


class PeerProcess:
    """A peer in a process of its own that waits for work.

    It prepares itself, prints a line of JSON with its version, then computes once for every line
    that it reads and answers with one line of JSON.
    """

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self._answer()["version"]

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline()  # type: ignore[union-attr]  # it is a pipe
        if not line:
            raise RuntimeError(f"the peer ended with status {self._process.wait()}")
        return json.loads(line)

    def run(self, work: str = "run") -> dict[str, Any]:
        """Let it compute once and return its answer."""
        self._process.stdin.write(work + "\n")  # type: ignore[union-attr]  # it is a pipe
        self._process.stdin.flush()  # type: ignore[union-attr]
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
        self._process.wait()


class Peer(PeerProcess):
    """A Python package that needs an environment of its own.

    It runs the script `peers/<name>.py` in the environment `.peers/<name>`, which is made from
    `peers/<name>.txt` at the first use.
    """

    def __init__(self, name: str, *arguments: str) -> None:
        python = self._environment(name)
        super().__init__([str(python), str(HERE / "peers" / f"{name}.py"), *arguments])

    @staticmethod
    def _environment(name: str) -> Path:
        folder, requirements = HERE / ".peers" / name, HERE / "peers" / f"{name}.txt"
        python, stamp = folder / "bin" / "python", folder / requirements.name
        if not stamp.exists() or stamp.read_text() != requirements.read_text():
            print(f"making {folder.relative_to(HERE.parent)}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            subprocess.run(
                [str(python), "-m", "pip", "install", "--quiet", "-r", str(requirements)],
                check=True,
                stderr=subprocess.DEVNULL,
            )
            stamp.write_text(requirements.read_text())
        return python
