"""Work in a forked child with limits on time, memory or files, or that is killed."""

import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

with suppress(ImportError):  # not on Windows
    import resource

MEBIBYTE = 2**20


class TooSlow(BaseException):
    """Not an Exception, so that hung code does not catch it."""


@dataclass(frozen=True)
class Outcome:
    """The exit code of a child, or the negative number of a signal, and its result."""

    code: int
    result: Any


def in_child(
    work: Callable[[], Any],
    *,
    seconds: int = 60,
    more_memory: int | None = None,
    file_size: int | None = None,
    dies_of_file_size: bool = False,
) -> Outcome:
    """Call `work` in a forked child and return its exit code and result, as JSON.

    The child may compute for `seconds`, allocate `more_memory` bytes of addresses, and write files
    up to `file_size` bytes, as on a full disk. Beyond that size a write is an OSError, or ends the
    child if `dies_of_file_size`.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads
        child = os.fork()
    if child == 0:
        code, most = 70, resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        try:
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if more_memory is not None:
                limit = _addresses() + more_memory
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            if file_size is not None:
                handler = signal.SIG_DFL if dies_of_file_size else signal.SIG_IGN
                signal.signal(signal.SIGXFSZ, handler)
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, most))
            result = work()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(json.dumps(result).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            if file_size is not None:  # coverage may write its file
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        received = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Outcome(code, json.loads(received) if received and code == 0 else None)


def _addresses() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


class _KilledAt:
    """Ends the process at a certain line of files with these endings."""

    def __init__(self, place: int, files: tuple[str, ...]) -> None:
        self.place, self.files, self.count = place, files, 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.endswith(self.files):
            return None
        self.count += 1
        if self.count == self.place:
            os.kill(os.getpid(), signal.SIGKILL)
        return self


def lines_of(work: Callable[[], Any], files: tuple[str, ...]) -> int:
    """Call `work` in a child and count the lines it runs of files with these endings."""

    def counted() -> int:
        counter = _KilledAt(-1, files)
        sys.settrace(counter)
        work()
        sys.settrace(None)
        return counter.count

    return int(in_child(counted).result)


def killed_at(place: int, work: Callable[[], Any], files: tuple[str, ...]) -> int:
    """Call `work` in a child that is killed at one of these lines; return the exit code."""

    def traced() -> None:
        sys.settrace(_KilledAt(place, files))
        work()

    return in_child(traced).code


def complaints(
    parse: Callable[[Path], Any],
    file: Path,
    contents: Iterable[bytes],
    *,
    seconds_each: float = 5.0,
    seconds: int = 300,
    more_memory: int = 256 * MEBIBYTE,
    name: str | None = None,
) -> list[str]:
    """Parse files in a limited child, and return a list of failures.

    The parser may return, or raise a ValueError or OSError that names the file (its stem, or
    `name`). It must not raise anything else, warn, take longer than `seconds_each`, allocate more
    than `more_memory`, or end the process. Files that fail are kept in the folder of `file`.
    """
    count = file.with_name("count")

    def work() -> list[str]:
        signal.signal(signal.SIGPROF, _too_slow)
        signal.signal(signal.SIGALRM, _too_slow)
        found = []
        for number, content in enumerate(contents):
            count.write_text(str(number))
            file.write_bytes(content)
            complaint = _complaint(parse, file, name or file.stem, seconds_each)
            if complaint:
                kept = file.with_name(f"bad-{number}-{file.name}")
                kept.write_bytes(content)
                found.append(f"case {number} ({len(content)} bytes, {kept}): {complaint}")
        return found

    outcome = in_child(work, seconds=seconds, more_memory=more_memory)
    if outcome.result is None:
        return [f"case {count.read_text()} ({file}): the process ended with {outcome.code}"]
    return list(outcome.result)


def _complaint(parse: Callable[[Path], Any], file: Path, name: str, seconds: float) -> str | None:
    signal.setitimer(signal.ITIMER_PROF, seconds)  # CPU time
    signal.setitimer(signal.ITIMER_REAL, 60 * seconds)
    try:
        parse(file)
    except (ValueError, OSError) as error:
        return None if name in str(error) else f"the file is not named: {_described(error)}"
    except BaseException as error:
        return _described(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def _described(error: BaseException) -> str:
    places = traceback.extract_tb(error.__traceback__)[-4:]
    where = " < ".join(f"{Path(place.filename).name}:{place.lineno}" for place in reversed(places))
    return f"{type(error).__name__}: {str(error)[:200]} at {where}"


def _too_slow(*_: Any) -> None:
    raise TooSlow
