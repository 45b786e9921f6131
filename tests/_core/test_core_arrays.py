"""Files of arrays whose headers are wrong."""

import io
import struct
import warnings
import zipfile

import numpy as np
import pytest

from orthodrome._core.arrays import Arrays, read_header


def npy(kind: str, shape: tuple[int, ...], data: bytes = b"") -> bytes:
    """A .npy file with this header, whatever follows."""
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}"
    content = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(content)) + content + data


def archive(*contents: bytes) -> bytes:
    """A .npz file whose members are all called X."""
    buffer = io.BytesIO()
    with (
        warnings.catch_warnings(action="ignore"),  # of duplicate names
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for content in contents:
            packed.writestr("X.npy", content)
    return buffer.getvalue()


def forged(content: bytes, signature: bytes, offset: int, number: int) -> bytes:
    """Write a number into a zip file, after a signature."""
    result = bytearray(content)
    struct.pack_into("<I", result, result.index(signature) + offset, number)
    return bytes(result)


CODE_POINTS = struct.pack("<2I", ord("a"), 0x110000)
SHORT = npy("<f8", (10,), bytes(40))
WHOLE = archive(npy("<f8", (20_000,), np.random.default_rng(0).bytes(160_000)))
BAD = {
    "not a zip file": (b"nothing", "it is damaged"),
    "two members of one name": (archive(SHORT, SHORT), r"'X\.npy' appears twice"),
    "invalid characters": (archive(npy("<U2", (1,), CODE_POINTS)), "invalid characters"),
    "object": (archive(npy("|O", (1,), bytes(8))), "pickled Python objects"),
    # the directory says that members unpack to more than they do
    "short": (forged(archive(SHORT), b"PK\x01\x02", 24, len(SHORT) + 40), "EOF|ends"),
    "bomb": (forged(WHOLE, b"PK\x01\x02", 24, 2**31), r"'X\.npy' cannot unpack to 2147483648"),
    "checksum": (forged(WHOLE, b"PK\x01\x02", 16, 1), "it is damaged .*CRC"),
    "encrypted": (forged(WHOLE, b"PK\x01\x02", 8, 0x00080001), "it is damaged .*encrypted"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_a_bad_archive_raises(content, message):
    with pytest.raises(ValueError, match=message):
        Arrays(io.BytesIO(content), len(content))["X"]


def test_good_arrays_are_read():
    content = npy("<U0", (0,))
    assert read_header(io.BytesIO(content), len(content)).nbytes == 0
    for array in (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.eye(3)), np.array("aé")):
        buffer = io.BytesIO()
        np.savez(buffer, X=array)
        arrays = Arrays(buffer, len(buffer.getvalue()))
        assert (arrays.names, arrays.header("X").shape) == (["X"], array.shape)
        np.testing.assert_array_equal(arrays["X"], array)
        assert arrays["X"].flags.writeable
