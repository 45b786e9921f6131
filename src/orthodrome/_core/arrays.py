"""Read NumPy's files without trusting their headers.

``numpy.load`` allocates the memory that a header declares before it reads, and raises many kinds of
errors on damaged files. This module checks sizes first, unpickles nothing, and raises a ValueError
for every fault. The messages do not name the file ("it is damaged"); the caller adds its name.
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

from .types import Array

_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_MAX_CODE_POINT = 0x10FFFF
# Deflate expands a byte to at most 1032 bytes; the overhead allows for short members.
_MAX_EXPANSION, _OVERHEAD = 1032, 64


@dataclass(frozen=True)
class ArrayHeader:
    """Shape, order and dtype of an array, and the offset of its values in the file."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def nbytes(self) -> int:
        """Size of the values in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: IO[bytes], size: int) -> ArrayHeader:
    """Read the header of an array from the start of a file of `size` bytes.

    Raises
    ------
    ValueError
        If the header is missing or invalid, if the array holds Python objects (they would have to
        be unpickled), or if the file is too short for the array.
    """
    try:
        reader = _READERS[np.lib.format.read_magic(file)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers of Python 2 are accepted
            shape, fortran_order, dtype = reader(file)
    except Exception as error:  # NumPy's parser raises many errors, from TokenError to MemoryError
        raise ValueError(f"no valid array header ({error})") from error
    if dtype.hasobject:
        raise ValueError("it holds pickled Python objects")
    # In NumPy 2.0 the size of a long string dtype overflows and is negative.
    is_sized = dtype.itemsize > 0 or (dtype.itemsize == 0 and 0 in shape)
    if any(length < 0 for length in shape) or not is_sized:
        raise ValueError(f"its header declares an invalid dtype or shape: {dtype}, {shape}")
    header = ArrayHeader(tuple(shape), bool(fortran_order), dtype, file.tell())
    if header.nbytes > size - header.offset:
        raise ValueError(
            f"its header declares {header.nbytes} bytes (dtype {dtype}, shape {shape}), but only "
            f"{max(size - header.offset, 0)} are left in the file"
        )
    return header


def read_array(file: IO[bytes]) -> Array:
    """Read an array with a valid header from the start of a file."""
    with warnings.catch_warnings(action="ignore"):  # headers of Python 2 are accepted
        array = np.lib.format.read_array(file, allow_pickle=False)
    if array.dtype.kind == "U" and array.size:
        codes = np.ascontiguousarray(array).view(f"{array.dtype.byteorder}u4")
        if codes.max() > _MAX_CODE_POINT:
            raise ValueError("its texts contain invalid characters")
    return array


class Arrays:
    """The arrays of a .npz file by name, each read on access.

    Parameters
    ----------
    file : binary file
        An open file. The caller closes it.
    size : int
        Size of the file in bytes.

    Raises
    ------
    ValueError
        If the file is not a zip archive, or its directory lists impossible sizes.
    """

    def __init__(self, file: IO[bytes], size: int) -> None:
        with _report_corruption():
            self._archive = zipfile.ZipFile(file)
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in self._archive.infolist():
            max_size = _MAX_EXPANSION * member.compress_size + _OVERHEAD
            if member.file_size > max_size:
                raise ValueError(
                    f"its member {member.filename!r} cannot unpack to {member.file_size} bytes: "
                    f"it has only {member.compress_size} compressed bytes"
                )
            name = member.filename.removesuffix(".npy")
            if name in self._members:
                raise ValueError(f"its member {member.filename!r} appears twice")
            self._members[name] = member
        if sum(member.compress_size for member in self._members.values()) > size:
            raise ValueError("its members are larger than the file")

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return list(self._members)

    def unpacked_size(self, name: str) -> int:
        """Return the number of bytes of an array, including its header."""
        return self._members[name].file_size

    def header(self, name: str) -> ArrayHeader:
        """Return the header of an array, without reading its values."""
        with _report_corruption(), self._archive.open(self._members[name]) as file:
            return read_header(file, self.unpacked_size(name))

    def __getitem__(self, name: str) -> Array:
        self.header(name)  # check sizes before allocating memory
        with _report_corruption(), self._archive.open(self._members[name]) as file:
            return read_array(file)


@contextmanager
def _report_corruption() -> Iterator[None]:
    """Raise a ValueError for any error of zipfile, zlib and NumPy on damaged bytes."""
    try:
        yield
    except (ValueError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"it is damaged ({type(error).__name__}: {error})") from error
