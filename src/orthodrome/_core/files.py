"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .memory import format_bytes

__all__ = [
    "errors_name",
    "refuse_special",
    "temporary_map",
    "writable_folder",
    "write_atomically",
]

_PIECE = 2**20


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


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that at every moment there is the old one, or the whole new one."""
    refuse_special(path)
    with errors_name(path):
        _write_atomically(Path(path), data)


def _write_atomically(target: Path, data: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or a power cut may leave the new name with nothing in it
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp makes files that only their owner reads
        os.replace(temporary, target)
    except BaseException:  # an interrupt too must not leave the temporary file behind
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current


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
