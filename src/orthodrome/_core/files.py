"""Atomic writing of files, and temporary memory maps."""

from __future__ import annotations

import errno
import hashlib
import math
import os
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

from .memory import format_bytes
from .types import Array

#: The content of a file: bytes, or a function that writes into an open file.
Content = bytes | Callable[[IO[bytes]], object]

_PIECE = 2**20
_PART = ".orthodrome-part"  # suffix of temporary files
_LONG_AGO = 86400.0  # seconds


def refuse_special(path: str | os.PathLike[str]) -> None:
    """Raise if the path is a device or a pipe."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise FileExistsError(errno.EEXIST, "Not a regular file, and left as it is", str(path))


def write_atomically(path: str | os.PathLike[str], content: Content) -> None:
    """Write a file so that at every moment the path has the old content or the new one."""
    write_together({path: content})


def write_together(files: Mapping[str | os.PathLike[str], Content]) -> None:
    """Write several files, each atomically; if one cannot be written, none is replaced.

    All contents are written to temporary files in the same folders before the first file is
    replaced. Symbolic links are followed, and a file that is replaced keeps its permissions.
    Temporary files of processes that were killed more than a day ago are removed.
    """
    parts: list[tuple[Path, Path, str]] = []
    try:
        for path, content in files.items():
            refuse_special(path)
            with _errors_name(path):
                target = _target(path)
                part = target.with_name(f"{_part_stem(target)}{secrets.token_hex(8)}{_PART}")
                parts.append((part, target, os.fspath(path)))
                _write(part, target, content)
        for part, target, name in parts:
            with _errors_name(name):
                os.replace(part, target)
    finally:
        for part, _, _ in parts:
            with suppress(OSError):
                part.unlink(missing_ok=True)
    for _, target, _ in parts:
        _remove_leftovers(target)


def _part_stem(target: Path) -> str:
    """Return how temporary names for a file begin; a digest, since the name itself may be long."""
    return f".{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]}."


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files that killed processes left long ago."""
    for part in target.parent.glob(f"{_part_stem(target)}*{_PART}"):
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > _LONG_AGO:
                part.unlink()


@contextmanager
def _errors_name(path: str | os.PathLike[str]) -> Iterator[None]:
    """Re-raise system errors with this path instead of the temporary one."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error


def _target(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path leads to."""
    with suppress(FileNotFoundError):
        os.stat(path)  # raises for loops of links
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return target


def _write(part: Path, target: Path, content: Content) -> None:
    """Write a temporary file with the permissions of the file that it will replace."""
    mode = 0o600 if target.exists() else 0o666  # never readable by more people than the old file
    with open(part, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as file:
        if callable(content):
            content(file)
        else:
            file.write(content)
        file.flush()
        os.fsync(file.fileno())  # or a power cut may leave an empty file
    if target.exists():
        _copy_permissions(target, part)


def _copy_permissions(target: Path, part: Path) -> None:
    """Copy owner, group and mode as far as the system allows."""
    old = target.stat()
    for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
        with suppress(OSError, AttributeError):  # Windows has no chown
            os.chown(part, owner, group)
    mode = stat.S_IMODE(old.st_mode) & 0o777
    if part.stat().st_gid != old.st_gid:
        mode &= ~0o070  # the permissions were for another group
    part.chmod(mode)


def temporary_map(what: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array in an unnamed temporary file, which is deleted with the array.

    The disk space is reserved first. Otherwise a full disk would end the process with SIGBUS; here
    it is an OSError that names `what` and its size.
    """
    folder = tempfile.gettempdir()
    needed, free = math.prod(shape) * np.dtype(dtype).itemsize, shutil.disk_usage(folder).free
    try:
        if needed > free:
            raise OSError(errno.ENOSPC, f"{format_bytes(free)} are free")
        with tempfile.TemporaryFile(prefix="orthodrome-") as file:
            _reserve(file, needed)
            return np.memmap(file, dtype=dtype, mode="r+", shape=shape)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{what} needs {format_bytes(needed)} on disk, which {folder} does not have "
            f"({error.strerror}); set TMPDIR to another folder or use storage='recompute'.",
        ) from error


def _reserve(file: IO[bytes], size: int) -> None:
    """Allocate `size` bytes on the disk for an empty file."""
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


@contextmanager
def writable_folder(folder: Path) -> Iterator[Path]:
    """Create a folder and check that it is writable, before time is spent on computing.

    If the work fails or is interrupted, created folders that are still empty are removed.
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
