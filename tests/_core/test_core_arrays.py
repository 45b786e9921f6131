"""Arrays of files that anyone may have written: what they promise is compared with what is."""

import io
import struct
import warnings
import zipfile

import pytest

from orthodrome._core.arrays import Arrays, read_header


def header(text: str, data: bytes = b"") -> bytes:
    content = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(content)) + content + data


def described(kind: str, shape: tuple[int, ...], data: bytes = b"") -> bytes:
    return header(f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}", data)


def archive(*members: tuple[str, bytes]) -> Arrays:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as packed:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, content in members:
            packed.writestr(name, content)
    return Arrays(buffer, len(buffer.getvalue()))


@pytest.mark.parametrize(("kind", "shape"), [("<f8", (2, -1)), ("<U0", (9,)), ("|V0", (1,))])
def test_a_header_of_no_size_is_refused(kind, shape):
    content = described(kind, shape, bytes(64))
    with pytest.raises(ValueError, match=r"its header promises an array of .* of shape \("):
        read_header(io.BytesIO(content), len(content))


def test_nothing_of_no_size_is_an_array():
    content = described("<U0", (0,))
    assert read_header(io.BytesIO(content), len(content)).nbytes == 0


def test_a_member_that_is_there_twice_is_refused():
    content = described("<f8", (1,), bytes(8))
    with pytest.raises(ValueError, match=r"its member 'X\.npy' is there twice"):
        archive(("X.npy", content), ("X.npy", content))


def test_texts_have_letters():
    """NumPy would make such a text, and Python end with SystemError where it is looked at."""
    letters = struct.pack("<2I", ord("a"), 0x110000)
    found = archive(("X.npy", described("<U2", (1,), letters)))
    with pytest.raises(ValueError, match="its texts have invalid letters"):
        found["X"]
    assert archive(("X.npy", described("<U1", (1,), letters[:4])))["X"].tolist() == ["a"]


def test_a_member_that_ends_early_is_refused():
    """Its directory says that it unpacks to more than there is."""
    content = described("<f8", (10,), bytes(40))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("X.npy", content)
    forged = bytearray(buffer.getvalue())
    at = forged.index(b"PK\x01\x02") + 24
    assert struct.unpack_from("<I", forged, at) == (len(content),)
    struct.pack_into("<I", forged, at, len(content) + 40)
    found = Arrays(io.BytesIO(forged), len(forged))
    with pytest.raises(ValueError, match="it ends after 40 of 80 bytes of numbers"):
        found["X"]
