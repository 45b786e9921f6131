"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import math
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .memory import format_bytes

__all__ = [
    "Content",
    "errors_name",
    "refuse_special",
    "temporary_map",
    "writable_folder",
    "write_atomically",
    "write_together",
]

#: What goes into a file: bytes, or a function that writes them into an open one.
Content = bytes | Callable[[IO[bytes]], object]

_PIECE = 2**20
_PART = ".orthodrome-part"  # how the names of temporary files end
_LONGEST_STEM = 200  # bytes; of 255 that file systems take
_LONG_AGO = 86400.0  # seconds after which a temporary file is one that a kill has left


@contextmanager
def errors_name(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let what the system refuses name the file that was to be written.

    A full disk is told by the write itself, which knows no name, and a move tells the temporary
    one.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error


def refuse_special(path: str | os.PathLike[str]) -> None:
    """Raise where a device or a pipe is, which a file would replace, or which may never end."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise FileExistsError(errno.EEXIST, "Not a regular file, and left as it is", str(path))


def temporary_map(what: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return an array in a temporary file without a name, which disappears with it.

    The file has all its room on the disk before anything is written. Where a hole of a
    memory-mapped file cannot be filled, because the disk is full by then, the system ends the
    process (SIGBUS); here that is an OSError, and `what` is told to be too large.
    """
    folder = tempfile.gettempdir()
    needed, free = math.prod(shape) * np.dtype(dtype).itemsize, shutil.disk_usage(folder).free
    advice = "; set TMPDIR to another folder or take storage='recompute'."
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"{what} needs {format_bytes(needed)} on disk and {folder} has "
            f"{format_bytes(free)} free{advice}",
        )
    try:
        with tempfile.TemporaryFile(prefix="orthodrome-") as file:
            _reserve(file, needed)
            return np.memmap(file, dtype=dtype, mode="r+", shape=shape)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{what} needs {format_bytes(needed)} on disk, and {folder} refuses "
            f"({error.strerror}){advice}",
        ) from error


def _reserve(file: IO[bytes], size: int) -> None:
    """Give an empty file `size` bytes that the disk has, rather than holes to be filled later."""
    try:
        os.posix_fallocate(file.fileno(), 0, size)
        return
    except AttributeError:  # macOS, Windows
        pass
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise
    for start in range(0, size, _PIECE):
        file.write(bytes(min(_PIECE, size - start)))
    file.flush()


def write_atomically(path: str | os.PathLike[str], content: Content) -> None:
    """Write a file so that at every moment there is the old one, or the whole new one."""
    write_together({path: content})


def write_together(files: Mapping[str | os.PathLike[str], Content]) -> None:
    """Write files, each whole or not at all; if one of them cannot be written, none is.

    A link stays one, and the file that it leads to is replaced, with its rights and its owner as
    far as the system lets. What processes that were killed have left here long ago is removed.

    Parameters
    ----------
    files : mapping
        What goes where: bytes, or a function that writes into an open file.

    Notes
    -----
    Nothing is replaced before all is on the disk. Should the system refuse to replace one of them
    then, or an interrupt come, the others are put back, on file systems that have hard links.
    """
    parts = [_Part.of(path) for path in files]
    begun: list[_Part] = []
    try:
        for part, content in zip(parts, files.values(), strict=True):
            with errors_name(part.path):
                part.write(content)
        for part in parts if len(parts) > 1 else []:
            part.keep_old()
        for part in parts:
            begun.append(part)
            with errors_name(part.path):
                os.replace(part.temporary, part.target)
    except BaseException:
        for part in begun:
            part.put_back()
        raise
    finally:  # after an interrupt too
        for part in parts:
            part.clean_up()
    for folder in {part.target.parent for part in parts}:
        _remove_leftovers(folder, {_stem(part.target) for part in parts})


@dataclass(frozen=True)
class _Part:
    """A file that is to be written: as it was named, where that leads, and two names beside it."""

    path: str | os.PathLike[str]
    target: Path
    temporary: Path
    old: Path
    was_there: bool

    @staticmethod
    def of(path: str | os.PathLike[str]) -> _Part:
        refuse_special(path)
        with errors_name(path):
            with suppress(FileNotFoundError):
                os.stat(path)  # the system follows links, or refuses to: loops, links of others
            target = Path(os.path.realpath(path))
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        return _Part(path, target, _beside(target), _beside(target), target.exists())

    def write(self, content: Content) -> None:
        """Write the temporary file; at no time may others read it who may not read the old one."""
        old = os.stat(self.target) if self.was_there else None
        mode = 0o666 if old is None else stat.S_IMODE(old.st_mode) & 0o777

        def opener(path: str, flags: int) -> int:
            return os.open(path, flags, mode if old is None else mode & 0o700)

        with open(self.temporary, "xb", opener=opener) as file:  # "x": a link there is not followed
            if callable(content):
                content(file)
            else:
                file.write(content)
            file.flush()
            os.fsync(file.fileno())  # or a power cut may leave the new name with nothing in it
            if old is not None and os.name == "posix":
                _make_alike(file.fileno(), old, mode)

    def keep_old(self) -> None:
        """Give the old file a second name, where the file system has such."""
        if self.was_there:
            with suppress(OSError):
                os.link(self.target, self.old)

    def put_back(self) -> None:
        """Put the old file, or none, in the place of the new one."""
        with suppress(OSError):
            if self.old.exists():
                os.replace(self.old, self.target)
            elif not self.was_there:
                self.target.unlink(missing_ok=True)

    def clean_up(self) -> None:
        for name in (self.temporary, self.old):
            with suppress(OSError):
                name.unlink(missing_ok=True)


def _make_alike(descriptor: int, old: os.stat_result, mode: int) -> None:
    """Give an open file owner, group and rights of another; what cannot be is not widened."""
    for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
        with suppress(OSError):
            os.fchown(descriptor, owner, group)
    now = os.fstat(descriptor)
    if now.st_gid != old.st_gid:
        mode &= ~0o070
    if stat.S_IMODE(now.st_mode) != mode:
        os.fchmod(descriptor, mode)


def _stem(target: Path) -> str:
    """How the names of temporary files beside a file begin; they must not become too long."""
    name = target.name if len(os.fsencode(target.name)) <= _LONGEST_STEM else "orthodrome"
    return f".{name}."


def _beside(target: Path) -> Path:
    """Return a name beside a file that nobody else has: two writers do not meet."""
    return target.with_name(f"{_stem(target)}{secrets.token_hex(8)}{_PART}")


def _remove_leftovers(folder: Path, stems: set[str]) -> None:
    """Remove temporary files that nobody is writing any more; it does not matter if not."""
    named = "|".join(map(re.escape, stems))
    pattern = re.compile(f"({named})[0-9a-f]{{16}}{re.escape(_PART)}")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name):
                with suppress(OSError):
                    if time.time() - entry.stat().st_mtime > _LONG_AGO:
                        os.unlink(entry.path)


@contextmanager
def writable_folder(folder: Path) -> Iterator[Path]:
    """Make the folder and see that it can be written, before time is spent on computing.

    If the work fails or is interrupted, folders that were made and are still empty are removed.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
        yield folder
    except BaseException:
        for path in made:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        raise
