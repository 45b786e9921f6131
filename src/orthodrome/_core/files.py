"""Atomic writing of files, and temporary memory maps."""

from __future__ import annotations

import errno
import math
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from .memory import format_bytes
from .types import Array

#: The content of a file: bytes, or a function that writes into an open file.
Content = bytes | Callable[[IO[bytes]], object]

_CHUNK = 2**20
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def check_regular_file(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if the path is a device or a pipe."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise FileExistsError(errno.EEXIST, "Not a regular file; choose another path", str(path))


def write_atomically(path: str | os.PathLike[str], content: Content) -> None:
    """Write a file atomically: readers find the old content or the new one, never a mix."""
    write_together({path: content})


def write_together(files: Mapping[str | os.PathLike[str], Content]) -> None:
    """Write several files, each atomically; if one cannot be written, replace none.

    All contents are written to temporary files in the same folders before the first file is
    replaced. Symbolic links are followed, and a file that is replaced keeps its permissions.
    Windows replaces no file that a program has open: that raises a PermissionError.
    """
    pending: list[tuple[Path, Path, str]] = []
    try:
        for path, content in files.items():
            check_regular_file(path)
            with _errors_name(path):
                target = _target(path)
                temporary = target.with_name(f".{secrets.token_hex(8)}.orthodrome-part")
                pending.append((temporary, target, os.fspath(path)))
                _write(temporary, target, content)
        for temporary, target, name in pending:
            with _errors_name(name):
                os.replace(temporary, target)
    finally:
        for temporary, _, _ in pending:
            with suppress(OSError):
                temporary.chmod(0o600)  # Windows does not delete read-only files
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


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
    """Return the file that a path refers to, with symbolic links resolved."""
    with suppress(FileNotFoundError):
        os.stat(path)  # raises for loops of links
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return target


def _write(temporary: Path, target: Path, content: Content) -> None:
    """Write a temporary file with the permissions of the file that it will replace."""
    # A replacement is private until it gets the permissions of the old file.
    mode = 0o600 if target.exists() else 0o666
    with open(temporary, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as file:
        if callable(content):
            content(file)
        else:
            file.write(content)
        file.flush()
        os.fsync(file.fileno())  # otherwise a power cut may leave an empty file
    if target.exists():
        old = target.stat()
        for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
            with suppress(OSError, AttributeError):  # not allowed, or no chown (Windows)
                os.chown(temporary, owner, group)
        same_group = temporary.stat().st_gid == old.st_gid
        temporary.chmod(old.st_mode & (0o777 if same_group else 0o707))


def temporary_map(what: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array in an unnamed temporary file, which is deleted with the array.

    The disk space is reserved first. If the disk is full, this raises an OSError that names `what`
    and its size. Without the reservation, a later write would kill the process with SIGBUS.
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
            f"{what} needs {format_bytes(needed)} on disk, but {folder} has too little space "
            f"({error.strerror}); set TMPDIR to another folder or use storage='recompute'.",
        ) from error


def _reserve(file: IO[bytes], size: int) -> None:
    """Allocate `size` bytes on the disk for an empty file."""
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except (AttributeError, OSError) as error:  # macOS and Windows lack the function
        if getattr(error, "errno", None) not in (None, *_NOT_SUPPORTED):
            raise
        for start in range(0, size, _CHUNK):
            file.write(bytes(min(_CHUNK, size - start)))
        file.flush()


@contextmanager
def writable_folder(folder: Path) -> Iterator[Path]:
    """Create a folder and check that it is writable, before a long computation.

    If the body raises, created folders that are still empty are removed.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
        yield folder
    except BaseException:
        for path in created:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        raise
