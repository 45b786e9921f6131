"""Fixtures that keep tests off the network and out of the user's cache."""

import hashlib
import socket

import pytest

from orthodrome.datasets._readers import DatasetEntry, arrays_sha256, read_fields


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The cache of this test, which does not exist yet."""
    folder = tmp_path / "user" / "cache"
    monkeypatch.setenv("ORTHODROME_CACHE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    resolve = socket.getaddrinfo

    def resolve_this_machine(host, *arguments, **keywords):
        if host not in ("127.0.0.1", "localhost"):
            raise socket.gaierror(-2, "Name or service not known")
        return resolve(host, *arguments, **keywords)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_this_machine)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def register(monkeypatch):
    """Make a data set the only registered one; its arrays are those of `content`."""
    monkeypatch.delenv("ORTHODROME_DATA", raising=False)

    def register_entry(name, content, reader="table", arrays_sha256=None, **facts):
        entry = DatasetEntry(
            name=name.partition(".")[0],
            path=f"folder/{name}",
            sha256=hashlib.sha256(content).hexdigest(),
            arrays_sha256="",
            reader=reader,
            title="Small set",
            description="written by a test",
            source_url="https://example.org/small",
            license="free for tests",
            **facts,
        )
        object.__setattr__(entry, "arrays_sha256", arrays_sha256 or hash_of(content, entry))
        monkeypatch.setattr("orthodrome.datasets._load.registry", lambda: {entry.name: entry})
        return entry

    return register_entry


@pytest.fixture
def place(tmp_path, register):
    """Write a file under tmp_path and make it the only registered data set."""

    def place_file(name, content, reader="table", **facts):
        file = tmp_path / register(name, content, reader, **facts).path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
        return file

    return place_file


def hash_of(content, entry):
    try:
        return arrays_sha256(read_fields(content, entry))
    except (ValueError, ImportError):
        return "0" * 64  # a file that no reader takes
