"""Loaders, on small files written here and on the real data if they are there."""

import io
import math
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from orthodrome.datasets import available, cache_folder, load, path
from orthodrome.datasets._readers import arrays_sha256
from real_data import load_or_skip

# Small files --------------------------------------------------------------------------------------


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


TABLE = b"length,width,class\n1.5,2,b\n,3,a\n4,,b\n"
CATEGORIES = b"purpose,age,class\nA410,20,1\nA49,30,2\nA40,40,1\n,50,1\n"
LEAVES = b"plant,class,age,x1,y1,x2,y2\np1,A,3,0,1,2,3\np2,B,4,4,5,6,7\n"
PIXELS = np.arange(12, dtype=np.uint8).reshape(3, 4)
SPLIT = {"X_train": PIXELS, "y_train": [7, 3, 3], "X_test": PIXELS[:2] + 20, "y_test": [3, 7]}
OBJECTS = {"X": np.array([{}, {}], dtype=object)}

#: A file, facts of its entry, and the fields that must be read from it.
LAYOUTS = {
    "table": (
        ("small.csv", TABLE, "table", {}),
        {
            "data": np.array([[1.5, 2.0], [np.nan, 3.0], [4.0, np.nan]]),
            "target": [1, 0, 1],
            "target_names": ["a", "b"],
            "feature_names": ["length", "width"],
        },
    ),
    "integer labels sort as integers": (
        ("small.csv", b"x,class\n0,10\n0,9\n0,100\n0,9\n", "table", {}),
        {"target": [1, 0, 2, 0], "target_names": ["9", "10", "100"]},
    ),
    "categories": (
        ("small.csv", CATEGORIES, "table", {"categorical_columns": ("purpose",)}),
        {
            "data": np.array([[2.0, 20], [1, 30], [0, 40], [np.nan, 50]]),
            "categories": {"purpose": ("A40", "A49", "A410")},
        },
    ),
    "numeric targets": (
        ("small.csv", b"x,target_a,target_b\n1,2,3\n4,5,6\n", "table", {}),
        {"target": np.array([[2.0, 3.0], [5.0, 6.0]]), "target_names": ["a", "b"]},
    ),
    "no target": (
        ("small.csv", b"x\n1\n2\n", "table", {}),
        {"data": np.array([[1.0], [2.0]]), "target": None},
    ),
    "landmark table": (
        ("small.csv", LEAVES, "landmark_table", {"extra_columns": ("plant", "age")}),
        {
            "data": np.arange(8.0).reshape(2, 2, 2),
            "landmarks": np.arange(8.0).reshape(2, 2, 2),
            "plant": ["p1", "p2"],
            "age": [3, 4],
            "target": [0, 1],
            "target_names": ["A", "B"],
        },
    ),
    "split images": (
        ("small.npz", npz(**SPLIT), "split_images", {"image_shape": (2, 2)}),
        {
            "data": np.concatenate([PIXELS, PIXELS[:2] + 20]),
            "images": np.concatenate([PIXELS, PIXELS[:2] + 20]).reshape(5, 2, 2),
            "is_test": [False, False, False, True, True],
            "X_train": PIXELS,
            "X_test": PIXELS[:2] + 20,
            "y_train": [1, 0, 0],
            "y_test": [0, 1],
            "feature_names": ["pixel_0_0", "pixel_0_1", "pixel_1_0", "pixel_1_1"],
        },
    ),
    "pen strokes keep rows and labels together": (
        ("small.npz", npz(X=PIXELS, y=[5, 6, 5], is_test=[1, 0, 0]), "pen_strokes", {}),
        {
            "data": PIXELS[[1, 2, 0]].astype(float),
            "X_train": PIXELS[1:].astype(float),
            "X_test": PIXELS[:1].astype(float),
            "target": [1, 0, 0],
            "landmarks": PIXELS[[1, 2, 0]].reshape(3, 2, 2).astype(float),
        },
    ),
    "landmarks without labels": (
        ("small.npz", npz(X=np.zeros((4, 2, 3))), "landmarks", {}),
        {
            "data": np.zeros((4, 2, 3)),
            "target": None,
            "feature_names": ["x1", "y1", "z1", "x2", "y2", "z2"],
        },
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fields_of_a_file(layout, place, tmp_path):
    (name, content, reader, facts), expected = LAYOUTS[layout]
    file = place(name, content, reader, **facts)
    bunch = load("small", data_home=tmp_path)
    for field, value in expected.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(bunch[field], value, err_msg=field)
            assert bunch[field].dtype == value.dtype, field
        else:
            found = bunch[field]
            assert (found.tolist() if isinstance(found, np.ndarray) else found) == value, field
    for view in {"X_train", "X_test", "landmarks", "images"} & bunch.keys():
        assert np.shares_memory(bunch[view], bunch.data), view
    assert bunch.filename == str(file)
    for fact in ("Small set", "written by a test", "https://example.org/small"):
        assert fact in bunch.DESCR
    X, y = load("small", data_home=tmp_path, return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


def test_image(place, tmp_path, monkeypatch):
    Image = pytest.importorskip("PIL.Image", reason="reading PNG files needs pillow")
    buffer = io.BytesIO()
    Image.fromarray(PIXELS).save(buffer, format="PNG")
    place("small.png", buffer.getvalue(), reader="image")
    bunch = load("small", data_home=tmp_path)
    np.testing.assert_array_equal(bunch.image, PIXELS)
    assert bunch.target is None
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"pip install 'orthodrome\[image\]'"):
        load("small", data_home=tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("small.csv", b"", "small.csv needs a header"),
        ("small.csv", b"x,class\n", "small.csv needs a header"),
        ("small.csv", b"x,class\n1,a\n2\n", "row 3: expected 2 .* found 1"),
        ("small.csv", b"x,class\n1,a\nten,b\n", "column 'x': .*'ten'"),
        ("small.csv", b"x,class\n1,a\n2,\n", "row 3: .*label is empty"),
        ("small.npz", b"no archive", "small.npz is not a readable NPZ file"),
        ("small.npz", npz(**OBJECTS), "small.npz is not a readable NPZ file .*pickled"),
        ("small.npz", npz(Z=np.zeros(3)), r"lacks the arrays \['X'\]; it has \['Z'\]"),
    ],
)
def test_errors_of_malformed_files_name_the_place(place, tmp_path, name, content, message):
    place(name, content, "table" if name.endswith("csv") else "landmarks")
    with pytest.raises(ValueError, match=message):
        load("small", data_home=tmp_path)


# Where files are searched for ---------------------------------------------------------------------


def test_order_of_folders(place, tmp_path, monkeypatch, cache):
    """`data_home` is searched first, then the environment variable's folder, then the cache."""
    file = place("small.csv", TABLE)
    cached = cache / "folder" / "small.csv"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(TABLE)
    elsewhere = tmp_path / "elsewhere"
    assert path("small") == cached
    assert path("small", data_home=str(tmp_path)) == file
    assert path("small", data_home=elsewhere) == cached
    monkeypatch.setenv("ORTHODROME_DATA", str(elsewhere))
    assert path("small", data_home=tmp_path) == file
    monkeypatch.setenv("ORTHODROME_DATA", str(tmp_path))
    assert path("small") == file
    assert path("small", data_home=elsewhere) == file
    assert load("small").filename == str(file)


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"HOME": "/h"}, "/h/.cache/orthodrome"),
        ("linux", {"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x/orthodrome"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Caches/orthodrome"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/orthodrome"),
        ("linux", {"HOME": "/h", "ORTHODROME_CACHE": "~/mine"}, "/h/mine"),
    ],
)
def test_cache_folder_of_each_platform(monkeypatch, platform, variables, expected):
    for name in ("ORTHODROME_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("orthodrome.datasets._load.sys.platform", platform)
    assert cache_folder() == Path(expected)


@pytest.mark.skipif(os.name != "posix", reason="homes of POSIX")
def test_a_user_without_a_home(monkeypatch, tmp_path):
    """As in a container whose user has no entry in the list of users."""

    def unknown(*arguments):
        raise KeyError("getpwuid(): uid not found")

    for name in ("HOME", "ORTHODROME_CACHE", "XDG_CACHE_HOME", "ORTHODROME_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert cache_folder() == tmp_path / "orthodrome"
    with pytest.raises(FileNotFoundError, match="iris"):
        load("iris", download_if_missing=False)


@pytest.mark.parametrize("name", ["data_home", "ORTHODROME_DATA", "ORTHODROME_CACHE"])
def test_an_unknown_home_is_an_error(monkeypatch, name):
    folder = "~no-such-user/data"
    if name != "data_home":
        monkeypatch.setenv(name, folder)
    with pytest.raises(RuntimeError, match="home"):
        load("iris", data_home=folder if name == "data_home" else None)


@pytest.mark.parametrize(
    "content",
    [
        b"length,width,class\n1.5000000000000002,2,b\n,3,a\n4,,b\n",
        b"length,width,class\n1.5,2,b\n0,3,a\n4,,b\n",
        b"length,width,class\n,3,a\n1.5,2,b\n4,,b\n",
        b"width,length,class\n2,1.5,b\n3,,a\n,4,b\n",
        b"length,width,class\n1.5,2,c\n,3,a\n4,,c\n",
    ],
    ids=["last bit", "missing", "order of rows", "order of columns", "name of a class"],
)
def test_other_arrays_are_refused(place, tmp_path, content):
    file = place("small.csv", TABLE)
    file.write_bytes(content)
    with pytest.raises(ValueError, match="over the parsed arrays, found"):
        load("small", data_home=tmp_path)
    assert load("small", data_home=tmp_path, verify=False).data.shape == (3, 2)
    file.write_bytes(b"l,w,class\r\n15e-1,2.0,b\r\n,3,a\r\n4.00,,b\r\n")  # the same arrays
    np.testing.assert_array_equal(load("small", data_home=tmp_path).data[0], [1.5, 2.0])


# The fingerprint ----------------------------------------------------------------------------------


def test_fingerprint_depends_on_names_shapes_dtypes_and_values():
    x = np.arange(6.0)
    different = [
        {"data": x},
        {"other": x},
        {"data": x.reshape(2, 3)},
        {"data": x.reshape(3, 2)},
        {"data": x.astype(np.float32)},
        {"data": x.astype(np.int64)},
        {"data": x + 1e-15},
        {"data": x, "target": None},
        {"data": x, "target": np.arange(6)},
        {"data": x, "target_names": np.array(["a"])},
        {"data": x, "target_names": np.array(["b"])},
        {"data": np.where(x == 5, np.nan, x)},
    ]
    assert len({arrays_sha256(fields) for fields in different}) == len(different)


def test_fingerprint_does_not_depend_on_storage():
    x = np.array([[0.0, 1.5], [np.nan, -2.0]])
    other_nan = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)[0]
    same = [
        x,
        np.asfortranarray(x),
        x.astype(">f8"),
        np.repeat(x, 2, axis=1)[:, ::2],
        np.where(x == 0, -0.0, x),
        np.where(np.isnan(x), other_nan, x),
    ]
    assert len({arrays_sha256({"data": array}) for array in same}) == 1
    whole = [np.arange(3, dtype=dtype) for dtype in ("<i8", ">i8")]
    assert len({arrays_sha256({"data": array}) for array in whole}) == 1
    names = [np.array(["a", "bc"]), np.array(["a", "bc"], dtype="<U9"), ["a", "bc"]]
    assert len({arrays_sha256({"target_names": array}) for array in names}) == 1
    assert arrays_sha256({"data": x, "feature_names": ["a", "b"]}) == arrays_sha256({"data": x})


@pytest.mark.parametrize("function", [load, path])
def test_unknown_name_suggests_the_nearest(function):
    with pytest.raises(ValueError, match=r"no data set 'irs'. Did you mean 'iris'\?.*available"):
        function("irs")


@pytest.mark.parametrize("name", available())
def test_real_set_is_verified_and_consistent(name):
    if name.startswith("camera"):
        pytest.importorskip("PIL", reason="reading PNG files needs pillow")
    bunch = load_or_skip(name)  # which compares its arrays with the registry
    if "image" in bunch:
        assert bunch.feature_names == []
        return
    assert len(bunch.feature_names) == math.prod(bunch.data.shape[1:])
    if bunch.target is not None:
        assert len(bunch.target) == len(bunch.data)
    if bunch.target is not None and bunch.target.ndim == 1:
        assert set(bunch.target) == set(range(len(bunch.target_names)))
