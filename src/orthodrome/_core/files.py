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
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .memory import format_bytes

__all__ = [
    "Content",
    "refuse_special",
    "temporary_map",
    "writable_folder",
    "write_atomically",
    "write_together",
]

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
    """Write several files, each atomically; if one cannot be written, none is.

    The contents are written to temporary files in the same folders first. If one of them then
    cannot replace its file, the files before it are put back, where the file system has hard
    links. Symbolic links are followed, and a file that is replaced keeps its permissions.
    Temporary files of processes that were killed more than a day ago are removed.
    """
    parts: list[tuple[Path, Path]] = []
    with ExitStack() as at_end:
        for path, content in files.items():
            refuse_special(path)
            with _errors_name(path):
                target = _target(path)
                part = at_end.enter_context(_temporary_name(target))
                parts.append((part, target))
                _write(part, target, content)
        with ExitStack() as undo:
            for path, (part, target) in zip(files, parts, strict=True):
                if len(files) > 1:
                    old = at_end.enter_context(_temporary_name(target))
                    undo.callback(_put_back, old, target, target.exists())
                    with suppress(OSError):
                        os.link(target, old)
                with _errors_name(path):
                    os.replace(part, target)
            undo.pop_all()
    for _, target in parts:
        _remove_leftovers(target)


@contextmanager
def _temporary_name(target: Path) -> Iterator[Path]:
    """Yield a new name in the folder of a file; remove what has this name in the end."""
    part = target.with_name(f"{_part_stem(target)}{secrets.token_hex(8)}{_PART}")
    try:
        yield part
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _put_back(old: Path, target: Path, was_there: bool) -> None:
    """Replace a new file by the old one, or remove it if there was none."""
    with suppress(OSError):
        if was_there:
            os.replace(old, target)
        else:
            target.unlink(missing_ok=True)


def _part_stem(target: Path) -> str:
    """Return how the names of temporary files for a file begin; a digest is short enough."""
    return f".{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]}."


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files that killed processes left long ago."""
    for part in target.parent.glob(f"{_part_stem(target)}*{_PART}"):
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > _LONG_AGO:
                part.unlink()


@contextmanager
def _errors_name(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors of the system name this file instead of the temporary one."""
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
    mode = 0o600 if target.exists() else 0o666  # at no time readable by more people

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


def temporary_map(what: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return an array in a temporary file without a name, which disappears with it.

    The disk space is reserved first. Otherwise a disk that gets full would end the process with
    SIGBUS; here it is an OSError that says that `what` is too large.
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
    """Make a folder and check that it is writable, before time is spent on computing.

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
