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
_LONG_AGO = 3600.0  # seconds after which a temporary file is one that a kill has left


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

    A link stays one, and the file that it leads to is replaced, with the rights that it has. What
    processes that were killed have left here long ago, of earlier writes, is removed.

    Parameters
    ----------
    files : mapping
        What goes where: bytes, or a function that writes into an open file.
    """
    made: list[tuple[Path, Path, str | os.PathLike[str]]] = []
    try:
        for path, content in files.items():
            refuse_special(path)
            target = Path(os.path.realpath(path))
            made.append((_beside(target), target, path))
            with errors_name(path):
                _write_beside(made[-1][0], target, content)
        for temporary, target, path in made:
            with errors_name(path):
                os.replace(temporary, target)
    except BaseException:  # an interrupt too must not leave temporary files behind
        for temporary, _, _ in made:
            temporary.unlink(missing_ok=True)
        raise
    for _, target, _ in made:
        _remove_leftovers(target)


def _write_beside(temporary: Path, target: Path, content: Content) -> None:
    """Write a temporary file with the rights of the one whose place it will take."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    rights = stat.S_IMODE(target.stat().st_mode) if target.exists() else None

    def opener(path: str, flags: int) -> int:  # at no time may more people read it than the old one
        return os.open(path, flags, 0o666 if rights is None else rights)

    with open(temporary, "xb", opener=opener) as file:  # "x": what lies there, a link too, is left
        if callable(content):
            content(file)
        else:
            file.write(content)
        file.flush()
        os.fsync(file.fileno())  # or a power cut may leave the new name with nothing in it
    if rights is not None:
        os.chmod(temporary, rights)


def _stem(target: Path) -> str:
    """How the names of temporary files beside a file begin; they must not become too long."""
    name = target.name if len(os.fsencode(target.name)) <= _LONGEST_STEM else "orthodrome"
    return f".{name}."


def _beside(target: Path) -> Path:
    """Return a name beside a file that nobody else has: two writers do not meet."""
    return target.with_name(f"{_stem(target)}{secrets.token_hex(8)}{_PART}")


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files that nobody can be writing any more; it does not matter if not."""
    pattern = re.compile(re.escape(_stem(target)) + "[0-9a-f]{16}" + re.escape(_PART))
    with suppress(OSError):
        for entry in os.scandir(target.parent):
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
