"""Valid files with changed bytes and correct checksums."""

import gzip
import hashlib
import io
import json
import os
import re
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import suppress
from zipfile import ZipFile, ZipInfo

import numpy as np

SEED = int(os.environ.get("ORTHODROME_FUZZ_SEED", "0"))
_NUMBERS = (b"-1", b"0", b"9" * 12, b"1e999", b"nan", b"inf", b"0x7f", b"1_0", b"\xef\xbc\x91")
_WORDS = (b"\x00", b"\xff" * 4, b"\x00" * 8, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\n", b"\r")
_SIGNS = (b"'", b'"', b",", b";", b"\t", b"=", b"#", b"{", b"}", b"(", b"[[[[", b"\xef\xbb\xbf")


def mutants(content: bytes, number: int, change=None) -> Iterator[bytes]:
    """Yield a valid file, cut ones, noise, and `number` changed ones; a seed fixes them."""
    rng = np.random.default_rng([SEED, len(content)])
    yield content
    yield b""
    yield content[: len(content) // 2]
    yield content[:-1]
    yield rng.bytes(200)
    yield content[:8] + rng.bytes(200)
    for _ in range(number):
        yield (change or plain)(content, rng)


def plain(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one to four places of some bytes."""
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        _change_once(changed, rng)
    return bytes(changed)


def _change_once(changed: bytearray, rng: np.random.Generator) -> None:
    place = int(rng.integers(len(changed) + 1))
    length = int(rng.integers(1, 17))
    kind = int(rng.integers(5))
    if kind == 0 and place < len(changed):
        changed[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        changed[place : place + length] = rng.bytes(length)
    elif kind == 2:  # remove or repeat a part
        part = changed[place : place + length * int(rng.choice([1, 4, 20]))]
        changed[place : place + len(part)] = part * int(rng.choice([0, 2]))
    elif kind == 3:  # replace or insert a word
        word = (*_WORDS, *_SIGNS)[int(rng.integers(len(_WORDS) + len(_SIGNS)))]
        changed[place : place + int(rng.choice([0, len(word)]))] = word
    else:  # replace a number in a text
        found = list(re.finditer(rb"[0-9]+", changed))
        if found:
            chosen = found[int(rng.integers(len(found)))]
            changed[slice(*chosen.span())] = _NUMBERS[int(rng.integers(len(_NUMBERS)))]


def of_zip(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a member of an archive, or the archive; the member's checksum is right."""
    if rng.random() < 0.2:
        return plain(content, rng)
    with ZipFile(io.BytesIO(content)) as archive:
        members = {info: archive.read(info) for info in archive.infolist()}
    _change_member(members, rng)
    return _zipped(members)


def _change_member(members: dict[ZipInfo, bytes], rng: np.random.Generator) -> None:
    infos = list(members)
    chosen = infos[int(rng.integers(len(infos)))]
    kind = rng.random()
    if kind < 0.1:
        del members[chosen]
    elif kind < 0.2:
        members[chosen] = members[infos[int(rng.integers(len(infos)))]]
    elif members[chosen][:6] == b"\x93NUMPY" and kind < 0.6:
        head = 10 + int.from_bytes(members[chosen][8:10], "little")
        members[chosen] = plain(members[chosen][:head], rng) + members[chosen][head:]
    else:
        members[chosen] = plain(members[chosen], rng)


def _zipped(members: dict[ZipInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), ZipFile(buffer, "w") as archive:
        warnings.simplefilter("ignore")  # about repeated names
        for info, data in members.items():
            archive.writestr(info.filename, data, compress_type=info.compress_type)
    return buffer.getvalue()


def of_model(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a member of a model file, and correct its digests."""
    with ZipFile(io.BytesIO(content)) as archive:
        members = {info: archive.read(info) for info in archive.infolist()}
    _change_member(members, rng)
    digests = {info.filename: hashlib.sha256(data).hexdigest() for info, data in members.items()}
    for info, data in members.items():
        if info.filename == "orthodrome.json":
            with suppress(TypeError, ValueError):  # the manifest was changed
                del digests[info.filename]
                members[info] = json.dumps(json.loads(data) | {"sha256": digests}).encode()
    return _zipped(members)


def of_png(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a chunk of a PNG image; its checksum is right."""
    if rng.random() < 0.2:
        return plain(content, rng)
    chunks, place = [], 8
    while place < len(content):
        length = int.from_bytes(content[place : place + 4], "big")
        chunks.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + length]))
        place += 12 + length
    chosen = int(rng.integers(len(chunks)))
    name, data = chunks[chosen]
    chunks[chosen] = name, plain(data, rng)
    return content[:8] + b"".join(png_chunk(name, data) for name, data in chunks)


def png_chunk(name: bytes, data: bytes) -> bytes:
    """Return a chunk with its length and checksum."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def of_gzip(content: bytes, rng: np.random.Generator) -> bytes:
    """Change the content of a gzip file, or its bytes."""
    if rng.random() < 0.2:
        return plain(content, rng)
    return gzip.compress(plain(gzip.decompress(content), rng), mtime=0)
