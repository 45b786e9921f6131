"""Files and folders: what is in the way is named, and what was made stays if it holds anything."""

import errno
import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

from orthodrome._core.files import (
    temporary_map,
    writable_folder,
    write_atomically,
    write_together,
)

posix = pytest.mark.skipif(os.name != "posix", reason="links and permissions as on POSIX systems")


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs what is to be without")
@pytest.mark.parametrize("absent", [True, False], ids=["no such call", "no such file system"])
def test_where_no_room_can_be_reserved_zeros_are_written(monkeypatch, absent):
    def refuse(*_):
        raise OSError(errno.EOPNOTSUPP, "not here")

    monkeypatch.setattr("orthodrome._core.files._PIECE", 1000)
    if absent:
        monkeypatch.delattr(os, "posix_fallocate")
    else:
        monkeypatch.setattr(os, "posix_fallocate", refuse)
    found = temporary_map("The Gram matrix", (33, 11), np.float64)  # no multiple of a piece
    np.testing.assert_array_equal(found, np.zeros((33, 11)))
    found[-1, -1] = 2.0
    assert found.sum() == 2.0


def test_a_file_where_the_folder_should_be_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotADirectoryError) as caught, writable_folder(tmp_path / "file"):
        pass
    assert caught.value.filename == str(tmp_path / "file")


def test_a_folder_that_holds_something_stays(tmp_path):
    def interrupted():
        with writable_folder(tmp_path / "a" / "b" / "c") as folder:
            (folder.parent / "part.csv").write_text("1,2")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["part.csv"]


# ---------------------------------------------------------------------------- whole files


def rights(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, error):
    target = tmp_path / "page.html"
    target.write_bytes(b"old")

    def fail(*_):
        raise error("no")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(error):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_of_several_files_none_is_written_if_one_cannot_be(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    for bad in ("folder", "absent/b"):
        with pytest.raises(OSError, match=bad):
            write_together({tmp_path / "a": b"new", tmp_path / bad: b"new"})
        assert (tmp_path / "a").read_bytes() == b"old"
        assert sorted(os.listdir(tmp_path)) == ["a", "folder"]
    write_together({tmp_path / "a": b"new", tmp_path / "b": lambda file: file.write(b"too")})
    assert (tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes() == b"newtoo"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("failing", [0, 1, 2])
def test_files_that_were_replaced_are_put_back(tmp_path, monkeypatch, failing, error):
    for name in ("b", "c"):
        (tmp_path / name).write_bytes(b"old")
    replace, targets = os.replace, [tmp_path / name for name in "abc"]

    def fail_once(source, target):
        if target == targets[failing] and fail:
            raise fail.pop()("no")
        replace(source, target)

    fail = [error]
    monkeypatch.setattr(os, "replace", fail_once)
    with pytest.raises(error):
        write_together(dict.fromkeys(targets, b"new"))
    assert sorted(tmp_path.iterdir()) == targets[1:]
    assert [target.read_bytes() for target in targets[1:]] == [b"old", b"old"]
    write_together(dict.fromkeys(targets, b"new"))
    assert sorted(tmp_path.iterdir()) == targets
    assert {target.read_bytes() for target in targets} == {b"new"}


def test_what_cannot_be_written_is_named_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    for path in ("file/below", "absent/file", "loop", "."):
        with pytest.raises(OSError, match=f"'{path}'"):
            write_atomically(path, b"new")
    assert sorted(os.listdir()) == ["file", "loop"]
    assert (tmp_path / "loop").is_symlink()


@posix
def test_a_new_file_has_the_rights_of_any_and_an_old_one_keeps_its_own(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    file = tmp_path / "file"
    write_atomically(file, b"x")
    assert rights(file) == rights(tmp_path / "plain")
    seen = []

    def look(open_file):
        seen.append(stat.S_IMODE(os.fstat(open_file.fileno()).st_mode))

    for mode in (0o600, 0o664):  # one of them is more than a umask lets through
        file.chmod(mode)
        write_atomically(file, look)
        assert rights(file) == mode
        assert not seen[-1] & ~mode  # nor could more people read it on the way


@posix
@pytest.mark.parametrize("refused", [False, True])
def test_a_replaced_file_is_not_opened_to_another_group(tmp_path, monkeypatch, refused):
    """It keeps its group, or nobody's group may read it."""
    file, others = tmp_path / "file", [group for group in os.getgroups() if group != os.getegid()]
    file.write_bytes(b"old")
    group = 12345 if os.geteuid() == 0 else (*others, None)[0]
    if group is None:
        pytest.skip("needs a second group")
    os.chown(file, -1, group)
    file.chmod(0o664)

    def refuse(*_):
        raise PermissionError(errno.EPERM, "no")

    if refused:
        monkeypatch.setattr(os, "chown", refuse)
    write_atomically(file, b"new")
    assert (file.stat().st_gid == group) is not refused
    assert rights(file) == (0o604 if refused else 0o664)


@posix
def test_a_link_stays_one(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    for link, target in (("link", "real"), ("new", "made")):
        (tmp_path / link).symlink_to(target)
        write_atomically(tmp_path / link, b"new")
        assert (tmp_path / link).is_symlink()
        assert (tmp_path / target).read_bytes() == b"new"


def test_names_as_long_as_the_system_takes(tmp_path):
    for name in ("x" * 250, "é" * 125):
        write_atomically(tmp_path / name, b"whole")
        assert (tmp_path / name).read_bytes() == b"whole"


def test_old_leftovers_of_killed_processes_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # as if killed
    monkeypatch.setattr(os, "replace", lambda *_: None)
    write_atomically(tmp_path / "a", b"left")
    write_atomically(tmp_path / "b", b"left")
    monkeypatch.undo()
    old, others = sorted(tmp_path.iterdir()), ["a.tmp", ".a.orthodrome-part"]
    for name in others:
        (tmp_path / name).write_bytes(b"")
    write_atomically(tmp_path / "a", b"")
    assert len(os.listdir(tmp_path)) == 5  # they are young
    for file in (*old, *(tmp_path / name for name in others)):
        os.utime(file, (0, 0))
    write_atomically(tmp_path / "a", b"")
    assert sorted(os.listdir(tmp_path)) == sorted(
        ["a", *others, *(file.name for file in old if file.exists())]
    )
    assert [file.exists() for file in old].count(True) == 1  # that of the other file


def test_writers_of_one_file_do_not_meet(tmp_path):
    """Each writes all of its own; one of them is what stays."""
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
