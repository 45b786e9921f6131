"""Read NumPy's files without trusting their headers.

``numpy.load`` allocates the memory that a header asks for before it reads, and raises many kinds of
errors on damaged files. Here sizes are checked first, nothing is unpickled, and every fault is a
ValueError.
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
_HIGHEST_LETTER = 0x10FFFF
_PIECE = 2**20
# Deflate makes at most 1032 bytes of one; a few more are in the frame of a short member.
_MOST_PER_BYTE, _FRAME = 1032, 64


@dataclass(frozen=True)
class ArrayHeader:
    """Shape, order and dtype of an array, and where in its file the numbers begin."""

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
            warnings.simplefilter("ignore")  # a header of Python 2 is accepted
            shape, fortran_order, dtype = reader(file)
    except Exception as error:  # NumPy's parser raises from TokenError to MemoryError
        raise ValueError(f"it has no header of an array ({error})") from error
    if dtype.hasobject:
        raise ValueError("it holds pickled Python objects")
    # NumPy 2.0 gives long texts a negative size.
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
        If it is no archive of arrays, or promises more than it can hold.
    """

    def __init__(self, file: IO[bytes], size: int) -> None:
        with _corruption_reported():
            self._archive = zipfile.ZipFile(file)
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in self._archive.infolist():
            _check_member(member)
            name = member.filename.removesuffix(".npy")
            if name in self._members:
                raise ValueError(f"its member {member.filename!r} is there twice")
            self._members[name] = member
        if sum(member.compress_size for member in self._members.values()) > size:
            raise ValueError("its members are larger than itself")

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return list(self._members)

    def unpacked_size(self, name: str) -> int:
        """Return the bytes of an array with its header."""
        return self._members[name].file_size

    def header(self, name: str) -> ArrayHeader:
        """Return the header of an array, without reading its numbers."""
        with _corruption_reported(), self._archive.open(self._members[name]) as file:
            return read_header(file, self.unpacked_size(name))

    def __getitem__(self, name: str) -> NDArray[Any]:
        with _corruption_reported(), self._archive.open(self._members[name]) as file:
            return _numbers(file, read_header(file, self.unpacked_size(name)))


def _check_member(member: zipfile.ZipInfo) -> None:
    """Raise a ValueError for a member that ``numpy.savez`` cannot have written."""
    if member.flag_bits & 0x1:
        raise ValueError(f"its member {member.filename!r} is encrypted")
    most = member.compress_size
    if member.compress_type == zipfile.ZIP_DEFLATED:
        most = _MOST_PER_BYTE * most + _FRAME
    elif member.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"its member {member.filename!r} has an unknown compression")
    if member.file_size > most:
        raise ValueError(
            f"its member {member.filename!r} is said to unpack to {member.file_size} bytes, which "
            f"its {member.compress_size} bytes cannot"
        )


def _numbers(file: IO[bytes], header: ArrayHeader) -> NDArray[Any]:
    content = bytearray(header.nbytes)
    view, filled = memoryview(content), 0
    while filled < len(content):
        count = file.readinto(view[filled : filled + _PIECE])  # type: ignore[attr-defined]
        if not count:
            raise ValueError(f"it ends after {filled} of {len(content)} bytes of numbers")
        filled += count
    file.read(1)  # at the end of a member zipfile compares its checksum
    flat = np.ndarray(math.prod(header.shape), header.dtype, content)
    if header.dtype.kind == "U" and flat.size:
        letters = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
        if letters.max() > _HIGHEST_LETTER:
            raise ValueError("its texts have invalid letters")
    return flat.reshape(header.shape, order="F" if header.fortran_order else "C")


@contextmanager
def _corruption_reported() -> Iterator[None]:
    """Turn whatever zipfile, zlib and NumPy raise on damaged bytes into a ValueError."""
    try:
        yield
    except (ValueError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"it is damaged ({type(error).__name__}: {error})") from error
