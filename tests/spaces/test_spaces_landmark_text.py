"""NTS and Morphologika files, long and wide tables."""

import numpy as np
import pytest

from orthodrome.spaces import landmarks_from_table, read_morphologika, read_nts

X2 = np.arange(12.0).reshape(2, 3, 2) ** 2
X3 = np.arange(18.0).reshape(2, 3, 3) ** 2


def numbers(X):
    return "\n".join(" ".join(map(str, row.ravel())) for row in X)


@pytest.fixture
def write(tmp_path):
    def written(text):
        path = tmp_path / "file.nts"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def rows(X, before="", after=""):
    lines = numbers(X).splitlines()
    return "\n".join(f"{before.format(i)} {line} {after.format(i)}" for i, line in enumerate(lines))


@pytest.mark.parametrize(
    ("text", "X", "ids"),
    [
        (f'"two wings"\n\n1 2L 6 0 DIM=2\nleft right\n{numbers(X2)}', X2, ["left", "right"]),
        (f"1 2 9 0 dim=3\n{numbers(X3)}", X3, ["1", "2"]),
        (f"1 2 6L 0\na b c d e f\n{numbers(X2)}", X2, ["1", "2"]),
        (f"1 2B 6 0 DIM=2\n{rows(X2, before='w{}')}", X2, ["w0", "w1"]),
        (f"1 2E 6 0 DIM=2\n{rows(X2, after='w{}')}", X2, ["w0", "w1"]),
    ],
)
def test_nts(write, text, X, ids):
    file = read_nts(write(text))
    np.testing.assert_array_equal(file.landmarks, X)
    assert file.ids == ids


def test_missing_values_of_nts(write):
    file = read_nts(write("1 1 6 1 -999 DIM=2\n1 2 -999 -999 5 NA"))
    expected = [[[1, 2], [np.nan, np.nan], [5, np.nan]]]
    np.testing.assert_array_equal(file.landmarks, expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: an NTS file needs a line"),
        ("2 2 6 0\n", "line 1: an NTS file needs a line"),
        ("1 2 5 0 DIM=2\n", "line 1: 5 coordinates are not points in DIM=2"),
        ("1 2 6 0 DIM=2\n1 2 3", "3 numbers, but line 1 announces 2 specimens of 6"),
        ("1 1 6 0 DIM=2\n1 2 3\n4 x 6", "line 3: 'x' is not a finite number"),
        ("1 1 6 0 DIM=2\n1 2 3\n4 inf 6", "line 3: 'inf' is not a finite number"),
    ],
)
def test_bad_nts(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_nts(write(text))


HEAD = "[individuals]\n2\n[landmarks]\n3\n[Dimensions]\n3\n[names]\nanna\nbert\n[rawpoints]\n"
POINTS = "'anna\n{}\n'bert\n{}\n".format(*(numbers(each) for each in X3))


def test_morphologika(write):
    file = read_morphologika(write(HEAD + POINTS))
    np.testing.assert_array_equal(file.landmarks, X3)
    assert file.ids == ["anna", "bert"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (POINTS, r"no section \[individuals\]"),
        (HEAD, r"\[rawpoints\] has 0 numbers, but 2 individuals .* need 18"),
        (HEAD + POINTS.replace("4.0", "four"), "line 12: 'four' is not a finite number"),
    ],
)
def test_bad_morphologika(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_morphologika(write(text))


@pytest.mark.parametrize(
    "name",
    [
        "x{}|y{}",
        "X_{}|Y_{}",
        "{}.X|{}.Y",
        "lm{}_x|lm{}_y",
        "x.lm{}|y.lm{}",
        "Point {} x|Point {} y",
    ],
)
def test_wide_tables(name):
    x, y = name.split("|")
    columns = {"specimen": ["a", "b"], "mass": [1.0, 2.0]}
    for i in range(3):
        columns |= {x.format(i + 1): X2[:, i, 0], y.format(i + 1): X2[:, i, 1]}
    found = landmarks_from_table(columns)
    np.testing.assert_array_equal(found.file.landmarks, X2)
    assert found.file.ids == ["a", "b"]
    assert len(found.columns) == 6


def test_morphoj_tables():
    columns = {"ID": ["a", "b"]} | {f"RawCoord{i + 1}": X2.reshape(2, 6)[:, i] for i in range(6)}
    np.testing.assert_array_equal(landmarks_from_table(columns).file.landmarks, X2)


@pytest.mark.parametrize("axes", ["xy", "XYZ"])
def test_long_tables_in_any_order(axes):
    X = X2 if axes == "xy" else X3
    order = np.random.default_rng(0).permutation(6)
    columns = {
        "specimen_id": np.repeat([7.0, 3.0], 3)[order],
        "landmark": np.tile(["tip", "base", "side"], 2)[order],
        **{axis: X[..., i].ravel()[order] for i, axis in enumerate(axes)},
    }
    found = landmarks_from_table(columns)
    names = columns["landmark"][np.sort(np.unique(columns["landmark"], return_index=True)[1])]
    for specimen, row in zip(found.file.ids, found.rows, strict=True):
        assert float(specimen) == columns["specimen_id"][row]
        original = X[[7.0, 3.0].index(float(specimen))]
        expected = original[[["tip", "base", "side"].index(name) for name in names]]
        np.testing.assert_array_equal(
            found.file.landmarks[found.file.ids.index(specimen)], expected
        )


def test_long_tables_with_gaps_and_repeats():
    columns = {"ind": list("aaabb"), "lm": [1, 2, 3, 1, 3], "x": np.arange(5.0), "y": np.ones(5)}
    landmarks = landmarks_from_table(columns).file.landmarks
    assert np.isnan(landmarks[1, 1]).all()
    assert np.isnan(landmarks).sum() == 2
    columns["lm"] = [1, 2, 3, 1, 1]
    with pytest.raises(ValueError, match="Landmark '1' of specimen 'b' occurs 2 times"):
        landmarks_from_table(columns)


@pytest.mark.parametrize(
    "names", ["a b c", "x1 y1 x2 y2", "x1 x2 x3 x4 x5 x6", "x1 y1 x2 y2 x3", "id x y", "x y z"]
)
def test_other_tables_have_no_landmarks(names):
    assert landmarks_from_table({name: np.arange(4.0) for name in names.split()}) is None
