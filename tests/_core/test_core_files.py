"""Atomic writing, temporary maps and folders; see also tests/hardening/test_faults.py."""

import errno
import os
import stat
import threading

import numpy as np
import pytest

from orthodrome._core.files import temporary_map, writable_folder, write_atomically, write_together

posix = pytest.mark.skipif(os.name != "posix", reason="links and permissions as on POSIX systems")


def failing(error):
    def fail(*_):
        raise error

    return fail


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs posix_fallocate to remove it")
@pytest.mark.parametrize("absent", [True, False], ids=["no such call", "no such file system"])
def test_without_fallocate_zeros_are_written(monkeypatch, absent):
    monkeypatch.setattr("orthodrome._core.files._CHUNK", 1000)
    if absent:
        monkeypatch.delattr(os, "posix_fallocate")
    else:
        monkeypatch.setattr(os, "posix_fallocate", failing(OSError(errno.EOPNOTSUPP, "not here")))
    found = temporary_map("The Gram matrix", (33, 11), np.float64)  # no multiple of a chunk
    np.testing.assert_array_equal(found, np.zeros((33, 11)))
    found[-1, -1] = 2.0
    assert found.sum() == 2.0


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("error", [OSError("no"), KeyboardInterrupt()], ids=repr)
def test_a_failed_write_leaves_the_old_files_and_nothing_else(tmp_path, monkeypatch, error):
    files = [tmp_path / "a", tmp_path / "b"]
    for file in files:
        file.write_bytes(b"old")
    for content in (failing(error), b"new"):  # writing fails, or replacing does
        if content == b"new":
            monkeypatch.setattr(os, "replace", failing(error))
        with pytest.raises(type(error)):
            write_together({files[0]: b"new", files[1]: content})
        assert sorted(tmp_path.iterdir()) == files
        assert {file.read_bytes() for file in files} == {b"old"}


def test_a_read_only_file_leaves_no_temporary_one(tmp_path, monkeypatch):
    """Windows neither replaces nor deletes read-only files."""
    unlink = os.unlink

    def refuse_read_only(path, **keywords):
        if not os.stat(path).st_mode & stat.S_IWRITE:
            raise PermissionError(errno.EACCES, "read-only")
        unlink(path, **keywords)

    file = tmp_path / "file"
    file.write_bytes(b"old")
    file.chmod(0o444)
    monkeypatch.setattr(os, "unlink", refuse_read_only)
    monkeypatch.setattr(os, "replace", failing(PermissionError(errno.EACCES, "read-only")))
    with pytest.raises(PermissionError):
        write_atomically(file, b"new")
    assert os.listdir(tmp_path) == ["file"]


@posix
def test_permissions_are_kept(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    file = tmp_path / "file"
    write_atomically(file, b"x")
    assert permissions(file) == permissions(tmp_path / "plain")
    modes = []

    def record_mode(open_file):
        modes.append(stat.S_IMODE(os.fstat(open_file.fileno()).st_mode))

    for mode in (0o600, 0o664):  # one of them is more than a umask lets through
        file.chmod(mode)
        write_atomically(file, record_mode)
        assert permissions(file) == mode
        assert not modes[-1] & ~mode  # nor could more people read it meanwhile


@posix
@pytest.mark.parametrize("refused", [False, True])
def test_a_replaced_file_is_not_opened_to_another_group(tmp_path, monkeypatch, refused):
    file, others = tmp_path / "file", [group for group in os.getgroups() if group != os.getegid()]
    file.write_bytes(b"old")
    group = 12345 if os.geteuid() == 0 else (*others, None)[0]
    if group is None:
        pytest.skip("needs a second group")
    os.chown(file, -1, group)
    file.chmod(0o664)
    if refused:
        monkeypatch.setattr(os, "chown", failing(PermissionError(errno.EPERM, "no")))
    write_atomically(file, b"new")
    assert (file.stat().st_gid == group) is not refused
    assert permissions(file) == (0o604 if refused else 0o664)


@pytest.mark.skipif(os.name == "nt", reason="Windows does not replace open files")
def test_concurrent_writers_of_one_file(tmp_path):
    contents = [bytes([number]) * 100_000 for number in range(8)]
    failed = []

    def write(content):
        try:
            for _ in range(20):
                write_atomically(tmp_path / "file", content)
                assert (tmp_path / "file").read_bytes() in contents
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert os.listdir(tmp_path) == ["file"]


def test_folders(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotADirectoryError) as caught, writable_folder(tmp_path / "file"):
        pass
    assert caught.value.filename == str(tmp_path / "file")

    def interrupted(write):
        with writable_folder(tmp_path / "a" / "b" / "c") as folder:
            if write:
                (folder.parent / "part.csv").write_text("1,2")
            raise KeyboardInterrupt

    for write in (False, True):
        with pytest.raises(KeyboardInterrupt):
            interrupted(write)
        assert (tmp_path / "a").exists() is write  # a folder that holds something stays
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["part.csv"]


def test_errors_name_the_path_as_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    for path in ("file/below", "absent/file", "loop", "."):
        with pytest.raises(OSError, match=f"'{path}'"):
            write_atomically(path, b"new")
    assert sorted(os.listdir()) == ["file", "loop"]
    assert (tmp_path / "loop").is_symlink()


@posix
def test_links_are_followed(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    for link, target in (("link", "real"), ("new", "made")):
        (tmp_path / link).symlink_to(target)
        write_atomically(tmp_path / link, b"new")
        assert (tmp_path / link).is_symlink()
        assert (tmp_path / target).read_bytes() == b"new"
