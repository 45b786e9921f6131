"""Faults: numba's cache on a full disk, damaged, read-only, or without a folder."""

import gc
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import orthodrome
from bounded import in_child, killed_at, lines_of
from orthodrome._core.compiled import compiled

SOURCE = (
    "def double(array):\n    for i in range(array.shape[0]):\n        array[i] = 2 * array[i]\n"
)
MODULE = "loops_of_a_test"


@pytest.fixture(autouse=True)
def module_forgotten():
    yield
    sys.modules.pop(MODULE, None)


def loop_in(folder):
    """Compile a function of a file in this folder, as if for the first time.

    The module must be in sys.modules, where numba looks for it when it loads from the cache.
    """
    file = folder / f"{MODULE}.py"
    if not file.exists():
        file.write_text(SOURCE)
    found = importlib.util.spec_from_file_location(MODULE, file)
    module = sys.modules[MODULE] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return compiled(module.double)


def doubled(loop):
    array = np.array([1.0, 3.0])
    loop(array)
    return array.tolist()


def cache_files(folder):
    return sorted(one for one in folder.rglob("*.nb?") if one.is_file())


def test_a_cache_is_used_where_there_is_one(tmp_path):
    assert doubled(loop_in(tmp_path)) == [2, 6]
    assert len(cache_files(tmp_path)) == 2
    gc.collect()  # drop the first one
    again = loop_in(tmp_path)
    assert doubled(again) == [2, 6]
    assert sum(again.dispatcher.stats.cache_hits.values()) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="bounds of Linux")
@pytest.mark.parametrize("size", [0, 100, 3000])
def test_a_full_disk_is_no_error(size, tmp_path):
    loop = loop_in(tmp_path)
    assert in_child(lambda: doubled(loop), file_size=size).result == [2, 6]
    assert doubled(loop_in(tmp_path)) == [2, 6]  # no incomplete file is used


@pytest.mark.parametrize("which", [0, 1], ids=["data", "index"])
def test_a_damaged_cache_is_no_error(which, tmp_path):
    assert doubled(loop_in(tmp_path)) == [2, 6]
    file = cache_files(tmp_path)[which]
    whole = file.read_bytes()
    for content in (b"", whole[:20], whole[:-30], b"\x80\x04" + bytes(50), b"no pickle"):
        file.write_bytes(content)
        assert doubled(loop_in(tmp_path)) == [2, 6]


WITHOUT_FOLDERS = """
import sys, tempfile
import numpy as np
import orthodrome
from orthodrome.kernels import _loops
assert orthodrome.__file__.startswith(sys.argv[1]), orthodrome.__file__
assert not _loops.gaussian.cached
block = np.arange(12.0).reshape(4, 3)
_loops.gaussian(block, 0.5)
print(float(block.sum()))
"""


def test_no_folder_for_a_cache_at_all(tmp_path):
    """Files block every folder: in the package, at home and in TMPDIR."""
    package = tmp_path / "site" / "orthodrome"
    shutil.copytree(
        Path(orthodrome.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    for folder in (package, *(one for one in package.rglob("*") if one.is_dir())):
        (folder / "__pycache__").write_text("in the way")
    nowhere = str(package / "__pycache__" / "nowhere")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    places = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR", "TMP", "TEMP"), nowhere)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_FOLDERS, str(tmp_path)],
        env=kept | places | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(np.exp(-0.5 * np.arange(12)).sum(), rel=1e-14)


def test_threads_that_meet_a_damaged_cache(tmp_path):
    """One of them drops the cache while another still reads it."""
    assert doubled(loop_in(tmp_path)) == [2, 6]
    for file in cache_files(tmp_path):
        file.write_bytes(b"no pickle")
    loop = loop_in(tmp_path)
    reading = loop.dispatcher

    def dispatcher(*arrays):
        loop._drop_cache()  # as the other thread does
        return reading(*arrays)

    loop.dispatcher = dispatcher
    assert doubled(loop) == [2, 6]


KEEPING = ("/caching.py", "/compiled.py")  # numba's code that writes caches, and ours around it


@pytest.mark.skipif(sys.platform != "linux", reason="bounds of Linux")
@pytest.mark.parametrize("most", [8, pytest.param(60, marks=pytest.mark.slow)])
def test_killed_while_the_cache_is_written(most, tmp_path):
    """The next process computes the same, and can write its own cache."""
    counting = tmp_path / "counting"
    counting.mkdir()
    n_lines = lines_of(lambda: doubled(loop_in(counting)), KEEPING)
    assert len(cache_files(counting)) == 2
    left = set()
    for place in np.unique(np.linspace(1, n_lines, most).astype(int)).tolist():
        folder = tmp_path / str(place)
        folder.mkdir()
        code = killed_at(place, lambda here=folder: doubled(loop_in(here)), KEEPING)
        assert code == -signal.SIGKILL
        left.add(len(cache_files(folder)))
        assert doubled(loop_in(folder)) == [2, 6]
        again = loop_in(folder)
        assert doubled(again) == [2, 6]
        assert sum(again.dispatcher.stats.cache_hits.values()) == 1
    assert 0 in left  # before the first file; coverage changes the last line


@pytest.mark.skipif(sys.platform != "linux", reason="bounds of Linux")
@pytest.mark.parametrize("full", [False, True], ids=["empty", "with what was kept before"])
def test_a_read_only_cache(full, monkeypatch):
    """It is no error, and the cache is unchanged."""
    with tempfile.TemporaryDirectory() as shared:  # other users cannot enter pytest's folders
        folder = Path(shared)
        cache = folder / "cache"
        cache.mkdir()
        folder.chmod(0o755)
        monkeypatch.setattr("numba.core.config.CACHE_DIR", str(cache))
        (folder / f"{MODULE}.py").write_text(SOURCE)
        if full:
            doubled(loop_in(folder))
            assert len(cache_files(cache)) == 2
        kept = {file: file.read_bytes() for file in cache_files(cache)}
        for one in (cache, *cache.rglob("*")):
            one.chmod(0o555 if one.is_dir() else 0o444)

        def without_rights():
            if os.geteuid() == 0:
                os.seteuid(65534)  # root may write anywhere, so become nobody
            return doubled(loop_in(folder))

        assert in_child(without_rights).result == [2, 6]
        assert {file: file.read_bytes() for file in cache_files(cache)} == kept
        for one in (cache, *cache.rglob("*")):
            one.chmod(0o755)
