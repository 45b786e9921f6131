"""Data frames: the same numbers as the arrays."""

import sys

import numpy as np
import pytest

from orthodrome.datasets import load

pandas = pytest.importorskip("pandas", reason="as_frame needs pandas")


def both(tmp_path):
    return load("small", data_home=tmp_path), load("small", data_home=tmp_path, as_frame=True)


def test_table_as_frame(place, tmp_path):
    place("small.csv", b"length,width,class\n1.5,2,b\n,3,a\n4,,b\n")
    arrays, frames = both(tmp_path)
    assert list(frames.data.columns) == ["length", "width"]
    np.testing.assert_array_equal(frames.data.to_numpy(), arrays.data)
    assert isinstance(frames.target, pandas.Series)
    assert frames.target.name == "target"
    np.testing.assert_array_equal(frames.target, arrays.target)
    assert list(frames.frame.columns) == ["length", "width", "target"]
    assert frames.frame.shape == (3, 3)
    np.testing.assert_array_equal(frames.target_names, arrays.target_names)
    assert "frame" not in arrays
    X, y = load("small", data_home=tmp_path, as_frame=True, return_X_y=True)
    pandas.testing.assert_frame_equal(X, frames.data)
    pandas.testing.assert_series_equal(y, frames.target)


def test_category_columns_hold_their_codes(place, tmp_path):
    content = b"purpose,age,class\nA410,20,1\nA49,30,2\nA40,40,1\n,50,1\n"
    place("small.csv", content, categorical_columns=("purpose",))
    frames = both(tmp_path)[1]
    purpose = frames.data["purpose"]
    assert purpose.cat.categories.tolist() == ["A40", "A49", "A410"]
    assert purpose.tolist()[:3] == ["A410", "A49", "A40"]
    assert purpose.isna().tolist() == [False, False, False, True]
    assert frames.data["age"].tolist() == [20, 30, 40, 50]


def test_landmarks_are_laid_out_row_by_row(place, tmp_path):
    content = b"plant,class,x1,y1,x2,y2\np1,A,0,1,2,3\np2,B,4,5,6,7\n"
    place("small.csv", content, "landmark_table", extra_columns=("plant",))
    frames = both(tmp_path)[1]
    assert list(frames.data.columns) == ["x1", "y1", "x2", "y2"]
    assert frames.data.loc[1].tolist() == [4, 5, 6, 7]
    assert frames.landmarks.shape == (2, 2, 2)


def test_one_image_is_no_frame(monkeypatch):
    pytest.importorskip("skimage", reason="the picture comes with scikit-image")
    monkeypatch.delenv("ORTHODROME_DATA", raising=False)
    with pytest.raises(ValueError, match=r"'camera_512' is one image.*as_frame=False"):
        load("camera_512", as_frame=True, download_if_missing=False)


def test_without_pandas_there_is_a_hint(place, tmp_path, monkeypatch):
    place("small.csv", b"x,class\n1,a\n2,b\n")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert load("small", data_home=tmp_path).data.shape == (2, 1)
    with pytest.raises(ImportError, match=r"pip install 'orthodrome\[data\]'"):
        load("small", data_home=tmp_path, as_frame=True)
