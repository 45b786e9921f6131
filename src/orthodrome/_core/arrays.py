"""NumPy's files, read with care: a header is believed as far as the file is long, and no further.

``numpy.load`` makes room for the numbers that a header promises before it looks for them, and what
it raises on a damaged file is of a dozen kinds, some of them no subclasses of ValueError or
OSError. Here the sizes come first, nothing is unpickled, and what is wrong is a ValueError.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ArrayHeader", "Arrays", "read_header"]

_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_SUFFIX = ".npy"
_HIGHEST_LETTER = 0x10FFFF
_PIECE = 2**20
# Deflate makes at most 1032 bytes of one; a few more are in the frame of a short member.
_MOST_PER_BYTE, _FRAME = 1032, 64


@dataclass(frozen=True)
class ArrayHeader:
    """What an array is: shape, order and dtype, and where in its file the numbers begin."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def nbytes(self) -> int:
        """The size of the numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: IO[bytes], size: int) -> ArrayHeader:
    """Read the header of an array from the beginning of a file of `size` bytes.

    Raises
    ------
    ValueError
        If there is none, if it is of objects, which would have to be unpickled, or if the file is
        shorter than the numbers that it promises.
    """
    try:
        reader = _READERS[np.lib.format.read_magic(file)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a header as Python 2 wrote it is as good
            shape, fortran_order, dtype = reader(file)
    except Exception as error:  # NumPy's parser of Python: from TokenError to MemoryError
        raise ValueError(f"it has no header of an array ({error})") from error
    if dtype.hasobject:
        raise ValueError("it holds pickled Python objects")
    # NumPy 2.0 counts the bytes of long texts beyond the largest integer, to below 0.
    is_sized = dtype.itemsize > 0 or (dtype.itemsize == 0 and 0 in shape)
    if any(length < 0 for length in shape) or not is_sized:
        raise ValueError(f"its header promises an array of {dtype} of shape {shape}")
    header = ArrayHeader(tuple(shape), bool(fortran_order), dtype, file.tell())
    if header.nbytes > size - header.offset:
        raise ValueError(
            f"its header promises {header.nbytes} bytes of numbers, an array of {dtype} of shape "
            f"{shape}, and there are {max(size - header.offset, 0)}"
        )
    return header


class Arrays:
    """The arrays of a .npz file by name, each read when it is asked for.

    Parameters
    ----------
    file : binary file
        Open, and of `size` bytes. It is not closed here.
    size : int
        Of the file.

    Raises
    ------
    ValueError
        If it is no archive of arrays, or says that it unpacks to more than it can.
    """

    def __init__(self, file: IO[bytes], size: int) -> None:
        with _damage_told():
            self._archive = zipfile.ZipFile(file)
            members = self._archive.infolist()
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in members:
            _check_member(member)
            name = member.filename.removesuffix(_SUFFIX)
            if name in self._members:
                raise ValueError(f"its member {member.filename!r} is there twice")
            self._members[name] = member
        if sum(member.compress_size for member in members) > size:
            raise ValueError("its members are larger than itself")

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return list(self._members)

    def unpacked_size(self, name: str) -> int:
        """Return the bytes of an array with its header."""
        return self._members[name].file_size

    def header(self, name: str) -> ArrayHeader:
        """Return what an array is, without reading its numbers."""
        with _damage_told(), self._archive.open(self._members[name]) as file:
            return read_header(file, self._members[name].file_size)

    def __getitem__(self, name: str) -> NDArray[Any]:
        with _damage_told(), self._archive.open(self._members[name]) as file:
            header = read_header(file, self._members[name].file_size)
            return _numbers(file, header)


def _check_member(member: zipfile.ZipInfo) -> None:
    """Refuse a member that cannot be what ``numpy.savez`` writes."""
    if member.flag_bits & 0x1:
        raise ValueError(f"its member {member.filename!r} is encrypted")
    most = member.compress_size
    if member.compress_type == zipfile.ZIP_DEFLATED:
        most = _MOST_PER_BYTE * most + _FRAME
    elif member.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"its member {member.filename!r} is compressed in a foreign way")
    if member.file_size > most:
        raise ValueError(
            f"its member {member.filename!r} is said to unpack to {member.file_size} bytes, which "
            f"its {member.compress_size} bytes cannot"
        )


def _numbers(file: IO[bytes], header: ArrayHeader) -> NDArray[Any]:
    flat = np.empty(math.prod(header.shape), dtype=header.dtype)
    room, filled = flat.view(np.uint8) if flat.nbytes else np.empty(0, np.uint8), 0
    while filled < len(room):
        content = file.read(min(len(room) - filled, _PIECE))
        if not content:
            raise ValueError(f"it ends after {filled} of {len(room)} bytes of numbers")
        room[filled : filled + len(content)] = np.frombuffer(content, np.uint8)
        filled += len(content)
    file.read(1)  # at the end of a member zipfile compares its checksum
    if header.dtype.kind == "U" and flat.size and _highest_letter(flat) > _HIGHEST_LETTER:
        raise ValueError("its texts have letters that there are none of")
    return flat.reshape(header.shape, order="F" if header.fortran_order else "C")


def _highest_letter(texts: NDArray[Any]) -> int:
    letters = texts.view(np.dtype(np.uint32).newbyteorder(texts.dtype.byteorder))
    return int(letters.max())


@contextmanager
def _damage_told() -> Iterator[None]:
    """Turn whatever zipfile, zlib and NumPy raise on damaged bytes into a ValueError."""
    try:
        yield
    except (ValueError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"it is damaged ({type(error).__name__}: {error})") from error
