"""Side-by-side measurements: both sides in one run, interleaved, medians, the range printed."""

from __future__ import annotations

import gc
import json
import math
import multiprocessing
import os
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from peak import Peak

Value = TypeVar("Value")

#: Set by `run.py --smoke`: every benchmark runs through in seconds, and its figures mean nothing.
SMOKE = bool(os.environ.get("ORTHODROME_BENCH_SMOKE"))


def size(normal: Value, smoke: Value) -> Value:
    """Return the size to measure with, or the one to try the code with."""
    return smoke if SMOKE else normal


REPEATS = size(5, 1)
HERE = Path(__file__).parent


def data_folder() -> Path:
    """Return what ORTHODROME_DATA names, else ../shared/data next to the repository."""
    return Path(os.environ.get("ORTHODROME_DATA") or HERE.parents[1] / "shared" / "data")


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
    """What came of it; `unit` is seconds or bytes, `limit` what ours may take at most."""

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
        """The range of the ratios of runs that stood next to each other.

        Where one side ran less often, of all ratios.
        """
        if len(self.ours) != len(self.theirs):
            return min(self.ours) / max(self.theirs), max(self.ours) / min(self.theirs)
        pairs = [a / b for a, b in zip(self.ours, self.theirs, strict=True)]
        return min(pairs), max(pairs)

    @property
    def accurate(self) -> bool:
        errors = [e for e in (self.ours_error, self.theirs_error) if e is not None]
        return self.required is None or all(error <= self.required for error in errors)


@dataclass
class Table:
    """Figures that are no comparison of two sides; cells are text."""

    name: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""


@dataclass
class Series:
    """A method over N: the seconds of every run at each N, peak bytes, and the error reached."""

    label: str
    n: list[int] = field(default_factory=list)
    seconds: list[list[float]] = field(default_factory=list)
    bytes: list[float | None] = field(default_factory=list)
    errors: list[float | None] = field(default_factory=list)

    @property
    def medians(self) -> list[float]:
        return [statistics.median(values) for values in self.seconds]

    @property
    def exponent(self) -> float | None:
        """The slope of the last step on logarithmic axes."""
        if len(self.n) < 2:
            return None
        (a, b), (s, t) = self.n[-2:], self.medians[-2:]
        return math.log(t / s) / math.log(b / a)


@dataclass
class Curve:
    """How methods grow with N; drawn on logarithmic axes, seconds and peak memory."""

    name: str
    series: list[Series]
    required: float | None = None
    note: str = ""


@dataclass
class Missing:
    """What could not be measured here, and why: earlier results of the file are kept."""

    name: str
    reason: str = ""


Result = Measured | Table | Curve | Missing


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


_CHILD = """
import json, sys
sys.path.insert(0, {here!r})
from peak import Peak
{setup}
with Peak() as peak:
{work}
print(json.dumps(peak.found()))
"""


def peak_anonymous_memory(setup: str, work: str) -> dict[str, Any]:
    """Run `work` in a fresh process; return its peak RssAnon above idle and in all, and seconds.

    What `setup` imports of this folder is found; `work` may add to ``peak.extra``.
    """
    script = _CHILD.format(here=str(HERE), setup=setup, work=textwrap.indent(work, "    "))
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if finished.returncode:
        raise RuntimeError(f"the process that was to be measured ended with\n{finished.stderr}")
    return json.loads(finished.stdout.splitlines()[-1])


def peak_after_fork(prepare: Callable[..., Callable[[], Any]], *arguments: Any) -> float:
    """Return the peak RssAnon above idle of ``prepare(*arguments)()``, in a process of its own.

    The process is forked from one that has imported the module of `prepare` and done nothing else:
    a fresh process without the seconds that imports take.
    """
    forkserver = multiprocessing.get_context("forkserver")
    forkserver.set_forkserver_preload([prepare.__module__])
    here, there = forkserver.Pipe(duplex=False)
    process = forkserver.Process(target=_send_peak, args=(there, prepare, arguments))
    process.start()
    there.close()
    try:
        found = here.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"measuring {arguments} ended with {process.exitcode}") from None
    process.join()
    return float(found)


def _send_peak(connection: Any, prepare: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    work = prepare(*arguments)
    with Peak() as peak:
        work()
    connection.send(peak.bytes)
    connection.close()


@dataclass(frozen=True)
class Method:
    """One curve: ``prepare(n)`` returns the work to be timed, with its data in place.

    ``memory(n)`` returns peak bytes, by a process of its own.
    """

    label: str
    prepare: Callable[[int], Callable[[], Any]]
    memory: Callable[[int], float] | None = None


def grow(
    name: str,
    methods: Iterable[Method],
    sizes: Iterable[int],
    *,
    error: Callable[[Any, int], float] | None = None,
    required: float | None = None,
    longest: float = 6.0,
    note: str = "",
) -> Curve:
    """Run all methods in turn at each N, and stop a method that would take longer than `longest`.

    What it would take is judged by its last step from one N to the next.
    """
    series = {method: Series(method.label) for method in methods}
    for n in sizes:
        works = {
            method: method.prepare(n) for method, one in series.items() if _goes_on(one, n, longest)
        }
        for method, work in works.items():
            result = work()  # the warm-up
            series[method].n.append(n)
            series[method].errors.append(error(result, n) if error else None)
            series[method].seconds.append([])
            series[method].bytes.append(method.memory(n) if method.memory else None)
            del result
        for _ in range(REPEATS):
            for method, work in works.items():
                gc.collect()
                start = time.perf_counter()
                work()
                series[method].seconds[-1].append(time.perf_counter() - start)
        print(f"  {name.split(',')[0]}: N = {n:,}", flush=True)
    return Curve(name, [one for one in series.values() if one.n], required, note)


def _goes_on(series: Series, n: int, longest: float) -> bool:
    if not series.n:
        return True
    exponent = max(series.exponent or 1.5, 1.0)  # one size says nothing yet
    return series.medians[-1] * (n / series.n[-1]) ** exponent <= longest


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
    def can_run(name: str) -> bool:
        """Whether its environment is there, or may be made: not where code is only tried out."""
        return not SMOKE or (HERE / ".peers" / name / f"{name}.txt").exists()

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
