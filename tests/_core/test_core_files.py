"""Files and folders: what is in the way is named, and what was made stays if it holds anything."""

import errno
import os

import numpy as np
import pytest

from orthodrome._core.files import temporary_map, writable_folder


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
