"""Downloads from a server on this machine."""

import http.server
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from orthodrome import datasets
from orthodrome.datasets import load, path
from orthodrome.datasets._readers import Source

TABLE = b"length,width,class\n1.5,2,b\n,3,a\n4,,b\n"
RAW = b"1.50,2.0,b\n?,3,a\n4,?,b\n\n"  # the same arrays, as a publisher may write them
OTHER = b"1.51,2.0,b\n?,3,a\n4,?,b\n"
COLUMNS = ("length", "width", "class")


class Server(http.server.ThreadingHTTPServer):
    """Serves `pages`; a page cut short promises more bytes than it sends, a halted one waits."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages = {}
        self.cut_short = set()
        self.halted = {}  # bytes after which a page waits
        self.has_halted, self.go_on = threading.Event(), threading.Event()
        self.asked = []

    def address(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/")
        self.server.asked.append(name)
        content = self.server.pages.get(name)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        missing = 1000 if name in self.server.cut_short or name in self.server.halted else 0
        self.send_header("Content-Length", str(len(content) + missing))
        self.end_headers()
        if name in self.server.halted:
            self.wfile.write(content[: self.server.halted[name]])
            self.wfile.flush()
            time.sleep(0.05)  # for what was sent to be written on the other side
            self.server.has_halted.set()
            self.server.go_on.wait(60)
            return
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    pytest.importorskip("pooch", reason="downloads need pooch")
    running = Server()
    thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder for temporary files, empty before the test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def publish(register, server):
    """Register the small set as published under these names of the server, and serve pages."""

    def publish_as(*names, **pages):
        server.pages |= {f"{name}.data": content for name, content in pages.items()}
        sources = [
            Source(urls=(server.address(name),), parser="text_table", options={"missing": "?"})
            for name in names
        ]
        return register("small.csv", TABLE, columns=COLUMNS, sources=tuple(sources))

    return publish_as


def files_under(folder):
    files = [file for file in folder.rglob("*") if file.is_file()]
    return sorted(file.relative_to(folder).as_posix() for file in files)


# From a server ------------------------------------------------------------------------------------


def test_a_download_is_parsed_verified_and_kept(publish, server, cache, temporary):
    publish("small.data", small=RAW)
    datasets.available()
    with pytest.raises(FileNotFoundError):
        path("small")
    with pytest.raises(FileNotFoundError, match="not on this machine") as caught:
        load("small", download_if_missing=False)
    assert "Tried" not in str(caught.value)
    assert server.asked == []
    assert not cache.exists()
    first = load("small", verbose=False)
    np.testing.assert_array_equal(first.data, [[1.5, 2.0], [np.nan, 3.0], [4.0, np.nan]])
    assert first.target_names[first.target].tolist() == ["b", "a", "b"]
    assert first.feature_names == ["length", "width"]
    assert files_under(cache) == ["folder/small.csv"]
    assert path("small") == cache / "folder" / "small.csv"
    assert first.filename == str(path("small"))
    again = load("small")
    np.testing.assert_array_equal(again.data, first.data)
    assert server.asked == ["small.data"]
    assert files_under(temporary) == []


def test_other_arrays_are_refused_with_both_hashes(publish, server, cache):
    entry = publish("small.data", small=OTHER)
    with pytest.raises(FileNotFoundError, match="over the parsed arrays, found") as caught:
        load("small", verbose=False, verify=False)  # downloads are always verified
    assert f"expected SHA-256 {entry.arrays_sha256}" in str(caught.value)
    found = str(caught.value).partition("found ")[2][:64]
    assert found != entry.arrays_sha256
    assert set(found) <= set("0123456789abcdef")
    assert not cache.exists()


@pytest.mark.parametrize("first", [None, OTHER, b"\xff\xfe<html>", RAW])
def test_the_next_source_is_asked_when_one_fails(publish, server, first):
    publish("first.data", "second.data", second=RAW)
    if first is not None:
        server.pages["first.data"] = first
        server.cut_short |= {"first.data"} if first == RAW else set()
    assert load("small", verbose=False).data.shape == (3, 2)
    assert server.asked == ["first.data", "second.data"]


def test_without_network_or_pooch(register, cache, monkeypatch):
    pytest.importorskip("pooch")
    source = Source(urls=("https://example.org/files/small.data",), parser="text_table")
    register("small.csv", TABLE, columns=COLUMNS, sources=(source,))
    with pytest.raises(FileNotFoundError, match="Name or service not known") as caught:
        load("small", verbose=False)
    assert str(cache / "folder" / "small.csv") in str(caught.value)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(FileNotFoundError, match=r"pip install 'orthodrome\[data\]'\n"):
        load("small")
    assert not cache.exists()


# Files of installed packages ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wine", "camera_256", "camera_512"])
def test_sets_that_come_with_a_package_need_no_network(name, monkeypatch, cache):
    monkeypatch.delenv("ORTHODROME_DATA", raising=False)
    if name != "wine":
        pytest.importorskip("skimage", reason="the picture comes with scikit-image")
    found = load(name, download_if_missing=False)
    assert found.data.shape == {"wine": (178, 13), "camera_256": (256, 256)}.get(name, (512, 512))
    assert found.filename.startswith("package:")
    assert not cache.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="bounds of Linux")
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_killed_in_the_middle_of_a_transfer(publish, server, cache, temporary, share):
    """A part of a file is never read; the next download starts again."""
    publish("small.data", small=RAW)
    server.halted["small.data"] = round(share * len(RAW))
    child = os.fork()
    if child == 0:
        try:
            load("small", verbose=False)
        finally:
            os._exit(1)  # not reached
    assert server.has_halted.wait(60)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    server.go_on.set()
    assert not cache.exists() or files_under(cache) == []
    with pytest.raises(FileNotFoundError):
        load("small", download_if_missing=False)
    server.halted.clear()
    assert load("small", verbose=False).data.shape == (3, 2)
    assert files_under(cache) == ["folder/small.csv"]


def test_an_interrupted_download_leaves_nothing(publish, server, cache, temporary, monkeypatch):
    publish("small.data", small=RAW)
    server.cut_short.add("small.data")
    with pytest.raises(FileNotFoundError, match=r"Tried http://127\.0\.0\.1:\d+/small\.data"):
        load("small", verbose=False)
    assert server.asked == ["small.data"]
    assert not cache.exists()
    assert list(temporary.iterdir()) == []

    def interrupted(self, url, output_file, pooch):
        Path(output_file).write_bytes(b"1.5")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pooch.HTTPDownloader.__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            load("small", verbose=False)
    assert not cache.exists()
    assert list(temporary.iterdir()) == []
    server.cut_short.clear()
    assert load("small", verbose=False).data.shape == (3, 2)
