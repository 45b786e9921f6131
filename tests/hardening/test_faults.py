"""Faults: a process killed while it writes a file, a full disk, folders without write access."""

import contextlib
import errno
import os
import re
import signal
import stat
import sys
import tempfile
from unittest import mock

import numpy as np
import pytest

from bounded import in_child, killed_at, lines_of
from optional import needs
from orthodrome import KernelPCA, datasets, load, save
from orthodrome.app import main
from orthodrome.datasets import _load
from orthodrome.datasets._readers import DatasetEntry, Source, arrays_sha256, read_fields
from orthodrome.eigen import hebbian
from orthodrome.eigen.kha.checkpoint import Checkpoint, Record
from orthodrome.eigen.kha.sweep import State
from orthodrome.gram import gram_operator
from orthodrome.kernels import Gaussian
from orthodrome.spaces import read_tps, write_tps

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bounds of Linux")

X = np.random.default_rng(0).normal(size=(40, 3))


FITTED = {version: KernelPCA(version, kernel=Gaussian(1.0)).fit(X) for version in (1, 2)}


def write_model(path, version):
    save(FITTED[version], path)


def write_checkpoint(path, version):
    arrays = (np.full((2, 500), float(version)) for _ in range(2))
    state = State(*arrays, np.zeros(2), n_passes=version, eigenvalues=np.ones(2))
    Checkpoint(path, "fingerprint").write(Record(state, 1, []))


def write_landmarks(path, version):
    write_tps(path, np.full((50, 10, 2), float(version)))


SETS = {version: b"a,class\n" + b"%d,x\n" % version * 300 for version in (1, 2)}


def load_set(path, version, **options):
    """Load a data set of one version, with this file in the cache."""
    texts = dict.fromkeys(("title", "description", "source_url", "license"), "of a test")
    source = Source(("https://example.org/set.data",), "text_table", {"header": 1})
    known = DatasetEntry(
        "set", path.name, "", "", "table", **texts, columns=("a", "class"), sources=(source,)
    )
    object.__setattr__(known, "arrays_sha256", arrays_sha256(read_fields(SETS[version], known)))
    with (
        mock.patch.dict(os.environ, ORTHODROME_CACHE=str(path.parent), ORTHODROME_DATA=""),
        mock.patch("orthodrome.datasets._load.registry", return_value={"set": known}),
        mock.patch.object(_load, "download", return_value=[SETS[version]]),
    ):
        return datasets.load("set", verbose=False, **options)


def write_set(path, version):
    with mock.patch("orthodrome.datasets._load._find_file", return_value=None):
        load_set(path, version)


def version_of_set(path):
    """Read the cache, which checks the arrays."""
    for version in (1, 2):
        with contextlib.suppress(ValueError):
            return int(load_set(path, version, download_if_missing=False).data[0, 0])
    raise ValueError("neither version")


WRITERS = {
    "model": (write_model, lambda path: load(path).n_components, "m.orthodrome"),
    "checkpoint": (
        write_checkpoint,
        lambda path: Checkpoint(path, "fingerprint").read((2, 500)).state.n_passes,
        "run.npz",
    ),
    "data set": (write_set, version_of_set, "set.csv"),
    "landmarks": (write_landmarks, lambda path: int(read_tps(path).landmarks[0, 0, 0]), "l.tps"),
}
every_writer = pytest.mark.parametrize("kind", WRITERS)


# Code that writes files, ours and Python's.
WRITING = ("/files.py", "/checkpoint.py", "/tps.py", "_load.py", "/tempfile.py")


def both_contents(kind, path):
    """Write both versions, check them, and return the contents of the files."""
    write, version_in, _ = WRITERS[kind]
    contents = []
    for version in (2, 1):
        write(path, version)
        assert version_in(path) == version
        contents.append(path.read_bytes())
    return contents


def check_written_anew(kind, path):
    """Check that remains of a killed process do not disturb the next one."""
    write, version_in, _ = WRITERS[kind]
    write(path, 2)
    assert version_in(path) == 2


@every_writer
@pytest.mark.parametrize("most", [16, pytest.param(150, marks=pytest.mark.slow)])
def test_killed_while_writing(kind, most, tmp_path):
    """After SIGKILL at any line of the writing code, the file is the old or the new one."""
    write, _, name = WRITERS[kind]
    path = tmp_path / name
    new, old = both_contents(kind, path)
    n_lines = lines_of(lambda: write(path, 2), WRITING)
    assert n_lines > 10
    contents = []
    for place in np.unique(np.linspace(1, n_lines, min(most, n_lines)).astype(int)):
        path.write_bytes(old)
        assert killed_at(int(place), lambda: write(path, 2), WRITING) == -signal.SIGKILL
        contents.append(path.read_bytes())
        assert contents[-1] in (old, new)
        # what is left behind is hidden
        assert all(one == path or one.name.startswith(".") for one in tmp_path.iterdir())
    assert contents[0] == old
    assert contents[-1] == new  # after the last line
    assert sorted(contents, key=lambda content: content == new) == contents
    check_written_anew(kind, path)


@every_writer
@pytest.mark.parametrize("killed", [False, True], ids=["error", "killed"])
def test_a_disk_that_is_full_in_the_middle(kind, killed, tmp_path):
    """A limited file size is an OSError that names the file, or ends the process."""
    write, _, name = WRITERS[kind]
    path = tmp_path / name
    old = both_contents(kind, path)[1]

    def report():
        try:
            write(path, 2)
        except OSError as error:
            return [error.errno, str(error)]
        except UserWarning as warning:  # data that cannot be cached are returned
            return [errno.EFBIG, str(warning)]
        return None

    for size in (0, 1, len(old) // 3, len(old) // 2, len(old) - 100):
        outcome = in_child(report, file_size=size, dies_of_file_size=killed)
        if killed:
            assert outcome.code == -signal.SIGXFSZ
        else:
            number, words = outcome.result
            assert number == errno.EFBIG
            assert name in words
            assert os.listdir(tmp_path) == [name]
        assert path.read_bytes() == old
    check_written_anew(kind, path)


@every_writer
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_folder_that_refuses(kind, number, tmp_path):
    """If a file cannot be moved to its place, the error is reported and nothing is lost."""
    write, version_in, name = WRITERS[kind]
    path = tmp_path / name
    write(path, 1)
    with (
        mock.patch("os.replace", side_effect=OSError(number, os.strerror(number))),
        pytest.raises((OSError, UserWarning), match=os.strerror(number)),
    ):
        write(path, 2)
    assert os.listdir(tmp_path) == [name]
    assert version_in(path) == 1


@every_writer
def test_a_pipe_is_not_replaced_by_a_file(kind, tmp_path):
    """Nor a device: with enough rights, a rename would replace /dev/null."""
    write, _, name = WRITERS[kind]
    path = tmp_path / name
    os.mkfifo(path)
    with pytest.raises((OSError, UserWarning), match="Not a regular file"):
        write(path, 1)
    assert stat.S_ISFIFO(path.stat().st_mode)
    if kind == "checkpoint":  # reading does not wait for it
        with pytest.raises(OSError, match="Not a regular file"):
            Checkpoint(path, "fingerprint").read((2, 500))
    assert os.listdir(tmp_path) == [name]


GRAM = np.cov(np.random.default_rng(1).normal(size=(60, 90)))


def run(path, n_passes=3, **options):
    options = {"tol": 0, "random_state": 0, "block_size": 16} | options
    return hebbian(GRAM, 2, checkpoint=path, n_passes=n_passes, **options)


def test_a_folder_without_write_access_is_refused_before_the_work(tmp_path):
    passes = []
    with (
        mock.patch("os.access", return_value=False),
        pytest.raises(ValueError, match=r"checkpoint.*write access"),
    ):
        run(tmp_path / "run.npz", callback=passes.append)
    assert not passes


@pytest.mark.parametrize("how", ["limit", "fallocate"])
def test_a_matrix_on_a_full_disk_is_refused_and_does_not_end_the_process(how, tmp_path):
    """A memory-mapped file on a full disk would end the process (SIGBUS)."""
    many = np.random.default_rng(0).normal(size=(600, 3))
    kernel = Gaussian(1.0).fit(many)

    def report():
        with mock.patch.object(Gaussian, "evaluate") as evaluate:
            try:
                gram_operator(kernel, many, storage="disk")
            except OSError as error:
                return [error.errno, str(error), evaluate.call_count]

    def refuse(descriptor, offset, length):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with mock.patch.object(tempfile, "tempdir", str(tmp_path)):
        if how == "limit":
            number, words, n_evaluated = in_child(report, file_size=2**20).result
        else:
            with mock.patch("os.posix_fallocate", refuse):
                number, words, n_evaluated = report()
    assert number == (errno.EFBIG if how == "limit" else errno.ENOSPC)
    assert re.search(r"[GM]iB", words)
    assert str(tmp_path) in words
    assert "storage='recompute'" in words
    assert n_evaluated == 0
    assert os.listdir(tmp_path) == []


def command(*arguments):
    """Run the command line in a child; return its exit code and what it wrote to stderr."""
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        sys.stderr = open(os.dup(2), "w")  # noqa: SIM115
        code = main([str(argument) for argument in arguments])
        sys.stderr.flush()
        file.seek(0)
        return [code, file.read().decode()]


@needs("typer", "matplotlib")
def test_outputs_of_the_command_line_on_a_full_disk(tmp_path):
    """For any limit of the file size, all outputs are of this run, or none is."""
    data, out = tmp_path / "data.csv", tmp_path / "out"
    rows = "\n".join(f"{a:.3f},{b:.3f},{c:.3f}" for a, b, c in X.tolist())
    data.write_text(f"a,b,c\n{rows}\n")
    names = {"coordinates.csv", "model.orthodrome", "report.html"}
    arguments = ("embed", data, "--method", "kpca", "--out", out)
    assert main([str(argument) for argument in arguments]) == 0  # imports once for all children
    sizes = sorted(one.stat().st_size for one in out.iterdir())
    earlier = {name: f"{name} of an earlier run".encode() for name in names}
    for size in (200, sizes[1] - 100, sizes[-1] - 100):
        for name, content in earlier.items():
            (out / name).write_bytes(content)
        code, errors = in_child(lambda: command(*arguments), file_size=size).result
        assert code == 1
        assert "Traceback" not in errors
        assert f"orthodrome: File too large: {out}" in errors
        assert {one.name: one.read_bytes() for one in out.iterdir()} == earlier
    assert in_child(lambda: command(*arguments), file_size=2 * sizes[-1]).result[0] == 0
    assert {one.name for one in out.iterdir()} == names
    assert all((out / name).read_bytes() != earlier[name] for name in names)
