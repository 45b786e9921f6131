"""Files of data: what is read, and errors with the file, the place and advice."""

import csv
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optional import needs
from orthodrome.app import Data, InputError, read_data, read_image, write_image
from orthodrome.app.inputs import checks, read_description, tables
from orthodrome.app.inputs.landmarks import landmark_notes, treat_like_training, with_links
from orthodrome.spaces import find_mirrored

pytest.importorskip("pandas")

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.fixture
def write(tmp_path):
    """Write a file and return its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def rejected(path, *words, **options):
    """The one-line error of a file; it contains the file's name and these words."""
    with pytest.raises(InputError) as caught:
        read_data(path, **options)
    message = str(caught.value)
    for word in (Path(path).name, *words):
        assert word in message, message
    assert "\n" not in message
    assert message.endswith(".")
    return message


# ---------------------------------------------------------------------------- text in columns


def test_table_with_labels_and_chosen_columns(write):
    path = write("a.csv", "a,b,c,d\n1,2,01,4\n5,6,1,8\n")
    data = read_data(path, label="c", columns=["d", "a"])
    assert np.array_equal(data.X, [[4, 1], [8, 5]])
    assert data.X.dtype == np.float64
    assert data.columns == ("d", "a")
    assert data.labels.tolist() == ["01", "1"]  # labels stay text
    assert data.label_name == "c"
    assert data.ids == ("row 1", "row 2")
    assert (data.kind, data.path, data.notes, data.id_name) == ("table", str(path), (), None)
    assert read_data(path, columns="a").columns == ("a",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "a,b\n1.5,2\n3,-4e1\n"),
        ("a.csv", "a;b\n3;-4e1\n1,5;2\n"),  # the decimal comma comes late
        ("a.tsv", "a\tb\n1,5\t2\n3\t-4e1\n"),
        ("a.csv", "a|b\n1.5|2\n3|-4e1\n"),
        ("a.txt", "a b\n  1.5   2 \n3 -4e1\n"),
        ("a.txt", "a,b\r\n1.5,2\r\n\r\n3,-4e1"),
        ("a.CSV", "\ufeffa,b\n 1.5 , 2\n3,-4e1\n\n"),
        ("a.csv", "a,b\r1.5,2\r3,-4e1\r"),
        ("a.csv", "a,b\n1.5,2\n,\n3,-4e1\n,\n"),  # blank records of a spreadsheet
        ("a.csv", "a,b\n1.5,\u00a02\n3,-4e1\n"),  # a no-break space
        ("a.csv", "sep=;\na;b\n1,5;2\n3;-4e1\n"),  # Excel
        ("a.csv", '\ufeff"SEP=,"\r\na,b\r\n1.5,2\r\n3,-4e1\r\n'),
        ("a.tsv", "sep=\t\na\tb\n1.5\t2\n3\t-4e1\n"),
        ("a.csv", '# made in "May, 2020\n\n# in mm, not cm\na,b\n1.5,2\n3,-4e1\n'),
        ("a.txt", "sep=|\n# x y z\na|b\n1.5|2\n3|-4e1\n"),
    ],
)
def test_formats_of_one_table(write, name, text):
    data = read_data(write(name, text))
    assert sorted(data.X.ravel().tolist()) == [-40, 1.5, 2, 3]
    assert data.columns == ("a", "b")


def test_encodings(write):
    assert read_data(write("a.txt", "é\tb\n1\t2\n".encode("utf-16"))).columns == ("é", "b")
    data = read_data(write("a.csv", "l,größe\nä,2\nb,3\n".encode("latin-1")), label="l")
    assert data.columns == ("größe",)
    assert data.labels.tolist() == ["ä", "b"]
    assert any("UTF-8" in note for note in data.notes)
    rows = "a,l\n" + "".join(f"{i},x\n" for i in range(40_000))  # far into the file
    data = read_data(write("a.csv", rows.encode() + "1,ä\n".encode("latin-1")), label="l")
    assert data.labels[-1] == "ä"


@pytest.mark.parametrize(
    ("text", "columns", "first", "note"),
    [
        ("1,2\n3,4\n", ("x1", "x2"), [1, 2], "no header"),
        ("1,5;2,5\n3,5;4,5\n", ("x1", "x2"), [1.5, 2.5], "no header"),
        ("0,1,2\n7,8,9\n", ("0", "1", "2"), [7, 8, 9], ""),  # pandas' names of columns
        ("#a,b\n1,2\n3,4\n", ("#a", "b"), [1, 2], ""),  # not a comment
        ("# mm\n1,2\n3,4\n", ("x1", "x2"), [1, 2], "no header"),
        ("5.1,3.5,a\n4.9,3.0,1\n", ("5.1", "3.5", "a"), [4.9, 3, 1], "used as the header"),
    ],
)
def test_headers(write, text, columns, first, note):
    data = read_data(write("a.csv", text))
    assert data.columns == columns
    assert data.X[0].tolist() == first
    assert note in " ".join(data.notes)


@pytest.mark.parametrize("name", ["", "ID", "index", "Name"])
def test_first_column_names_the_rows(write, name):
    data = read_data(write("a.csv", f"{name},a\nleaf 1,1\nleaf 2,2\n"))
    assert data.ids == ("leaf 1", "leaf 2")
    assert data.columns == ("a",)
    assert data.id_name == (name or "(no name)")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["0 bytes"]),
        ("a,b\n", ["no rows", "'a', 'b'"]),
        ("a,b,a\n1,2,3\n", ["column 3", "'a'"]),
        ("a,,b\n1,2,3\n", ["column 2", "no name"]),
        ("a,b,\n1,2,\n", ["column 3", "end of the lines"]),
        ("a,b\n1,2\n3\n", ["line 3", "1 cells", "2"]),
        ("a,b\n1,2\n3,4,5\n", ["line 3", "3 cells"]),
        ("a,b\n1,2,3\n4,5,6\n", ["line 2", "3 cells", "row names"]),
        ('a,b\n1,2\n"3,4\n5,6\n', ["line 3", "quote"]),
        (PNG, ["line 3", "not a text table"]),
        (b"PAR1" + bytes(50), ["parquet"]),
        (b"a,b\n1,\x002\n", ["zero bytes"]),
        (b"PK\x03\x04" + bytes(50), ["Excel"]),
        (bytes(range(128, 256)) * 4, ["no rows"]),
        (b"a,b\n" + b"1,2\n" * 40_000 + b"1,\x00\n", ["line 40002", "zero bytes"]),
        ("a,b\n1,2\n".encode("utf-16") + b"1", ["line 3", "utf-16"]),
        ("species,id\nedulis,1\nrubra,2\n", ["'species' (text), 'id' (identifier)"]),
        ("a;b\n1,5;2\n3;4.25\n", ["line 3", "'4.25'", "decimal comma"]),
        ("a;b\n1.234,5;2\n3;4\n", ["line 2", "not a finite number"]),
        ("a,b\n1,2\n3,1e999\n", ["line 3", "'b'", "not a finite number"]),
        ("sep=;\n# mm\n\na;b\n1;2\n3\n", ["line 6", "1 cells", "semicolon"]),
        ("# mm\na,b\n1,2\n3,1e999\n", ["line 4", "data row 2", "'b'"]),
        ("# mm\n# cm\n", ["empty"]),
        *(
            (f'a,b\n1,2\n3,"{value}"\n', ["line 3", "'b'", "not a finite number"])
            for value in ("1_000", "0x10", "1,5", "1 000", "12%", "--1", "1.2.3")
        ),
        *(
            (
                f"a,b,c\n1,2,3\n4,{value},6\n7,8,{value}\n",
                ["line 3", "'b', 'c'", "2 of 3 rows", "--missing drop", "--missing median"],
            )
            for value in ("", "NA", "nan", "?", "null", " - ")
        ),
    ],
)
def test_tables_rejected(write, content, words):
    rejected(write("a.csv", content), *words)


def test_ragged_rows_are_found_in_unused_columns(write):
    """Otherwise a missing cell would shift the others unnoticed."""
    text = "a,b,note\n1,2,x\n3,y\n"
    rejected(write("a.csv", text), "line 3", "2 cells", columns=["a"])
    rejected(write("b.csv", text.replace("3,y", "3,4,5,y")), "line 3", "4 cells", columns=["a"])
    # an empty cell is not a missing one
    assert len(read_data(write("c.csv", text.replace("3,y", "3,4,")), columns=["a"])) == 2


def test_endless_line(write, monkeypatch):
    monkeypatch.setattr("orthodrome.app.inputs.tables._MAX_LINE", 1000)
    rows = "1,2\n" * 200_000
    rejected(write("b.csv", f"l,a\n{rows}1,{'2' * 4_000_000}"), "line 200002", "longer than")


def test_unknown_columns(write):
    path = write("a.csv", "length,width\n1,2\n")
    rejected(path, "'lenght'", "--columns", "Did you mean 'length'", columns=["lenght"])
    rejected(path, "'species'", "--label", "'length', 'width'", label="species")
    rejected(path, "'width'", "twice", columns=["width", "width"])
    rejected(path, "'width'", "both", label="width", columns=["width"])
    rejected(write("b.csv", "a\nx\n"), "no columns of features", label="a")
    for label in ("", "NaN"):
        rejected(write("c.csv", f"a,k\n1,x\n2,{label}\n"), "line 3", "'k'", "no label", label="k")


def test_paths(tmp_path, write):
    rejected(tmp_path, "folder")
    with pytest.raises(FileNotFoundError, match=r"no file .*none\.csv"):
        read_data(tmp_path / "none.csv")
    rejected(write("a.xlsx", "x"), "'.xlsx'", ".csv")
    rejected(write("noend", "x"), ".csv")
    rejected(write("a.png", PNG), "denoise")
    path = write("a.csv", "a\n1\n")
    for option, name in (("labels", "--labels"), ("label_regex", "--label-regex")):
        rejected(path, name, "--label", **{option: "(a)"})
    rejected(path, "has no landmarks, but", "--keep-negative", keep_negative=True)
    rejected(path, "has no landmarks. Remove --fix-mirrored", fix_mirrored=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_named_pipe_is_rejected(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    rejected(tmp_path / "a.csv", "is not a regular file")


def test_memory_of_a_table(write, monkeypatch):
    """Too large a table is not read."""
    path = write("a.csv", "a,b\n" + "1.5,2.5\n" * 20_000)
    monkeypatch.setattr(checks, "available_memory", lambda: 100_000)
    monkeypatch.setattr(tables, "_read_frame", None)
    rejected(path, "of memory", "97.7 KiB are available", "sample of the rows")


NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=5)


@settings(deadline=None)
@given(
    names=st.lists(NAMES.map("n_".__add__), min_size=2, max_size=4, unique=True),
    rows=st.integers(1, 5),
    data=st.data(),
)
def test_written_tables_come_back(tmp_path_factory, names, rows, data):
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    X = [[data.draw(numbers) for _ in names] for _ in range(rows)]
    separator = data.draw(st.sampled_from([",", ";", "\t"]))
    path = tmp_path_factory.mktemp("t") / "a.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(names)
        writer.writerows([[repr(x) for x in row] for row in X])
    found = read_data(path, columns=names)
    assert found.columns == tuple(names)
    assert np.array_equal(found.X, X)


# ---------------------------------------------------------------------------- NumPy's files


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.eye(2), "float64"),
        (np.eye(2, dtype="f4"), "float32"),
        (np.eye(2, dtype=bool), "float64"),
        (np.asfortranarray(np.eye(2, dtype=">f8")), "float64"),
    ],
)
def test_npy(tmp_path, array, dtype):
    np.save(tmp_path / "a.npy", array)
    data = read_data(tmp_path / "a.npy")
    assert np.array_equal(data.X, np.eye(2))
    assert data.X.dtype == np.dtype(dtype)
    assert data.columns == ("x1", "x2")
    assert np.array_equal(read_data(tmp_path / "a.npy", columns=["x2"]).X, [[0], [1]])


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (np.arange(3.0), ["(3,)", "(n, d)"]),
        (np.zeros((2, 5, 5)), ["(2, 5, 5)", "height*width"]),
        (np.zeros((2, 3), dtype=complex), ["complex128", "(n, k, 2)"]),
        (np.array([["a", "b"]]), ["<U1", "encode"]),
        (np.zeros(3, dtype=[("a", "f8")]), ["real numbers"]),
        (np.zeros((0, 3)), ["(0, 3)", "n > 0"]),
        (np.array([[1.0, 2], [3, np.nan]]), ["row 2", "'x2'", "missing"]),
        (np.array([[1.0, np.inf]]), ["row 1", "'x2'", "infinite"]),
        (np.array([[object()]], dtype=object), ["Pickled"]),
        ({"X": np.eye(2), "y": ["\u00e9".encode("latin-1"), b"z"]}, ["'y'", "not ASCII"]),
        ({"X": np.eye(3), "y": ["x", "", "z"]}, ["'y'", "row 2", "no label"]),
        ({"X_train": np.eye(3), "X_test": np.eye(2)}, ["X_train (3, 3)", "X_test (2, 2)", "as X"]),
        ({"v": np.arange(3)}, ["v (3,)", "none"]),
        ({}, ["no arrays"]),
    ],
)
def test_arrays_rejected(tmp_path, arrays, words):
    """One array is saved as .npy, several by name as .npz."""
    is_npy = isinstance(arrays, np.ndarray)
    path = tmp_path / ("a.npy" if is_npy else "a.npz")
    if is_npy:
        np.save(path, arrays, allow_pickle=True)
    else:
        np.savez(path, **arrays)
    rejected(path, *words)


def test_npy_landmarks_labels_and_names(tmp_path, monkeypatch):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(12.0).reshape(2, 3, 2))
    data = read_data(path)
    assert data.kind == "shapes"
    assert data.columns == ("x1", "y1", "x2", "y2", "x3", "y3")
    rejected(path, "landmarks, which have no columns", "--columns", columns=["x1"])
    rejected(path, "no column 'k' for --label", label="k")
    path.write_bytes(path.read_bytes()[:-10])
    rejected(path)
    np.savez(tmp_path / "b.npz", X=np.eye(2))
    (tmp_path / "b.npz").rename(path)
    rejected(path, "several arrays. Rename it to .npz.")
    np.save(path, np.zeros((1000, 50)))
    monkeypatch.setattr(checks, "available_memory", lambda: 100_000)
    rejected(path, "of memory", "sample of the rows")


def test_npz(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.eye(3), y=[1, 2, 1], other=np.eye(4), groups=[b"a", b"b", b"b"])
    data = read_data(path)
    assert np.array_equal(data.X, np.eye(3))
    assert data.labels.tolist() == ["1", "2", "1"]
    assert data.label_name == "y"
    assert read_data(path, label="groups").labels.tolist() == ["a", "b", "b"]
    rejected(path, "no array 'kind'", "--label", label="kind")
    rejected(path, "'other'", "(4, 4)", "one value for each", label="other")
    np.savez(path, table=np.eye(2), feature_names=["a", "b"])
    assert read_data(path).columns == ("a", "b")
    assert np.array_equal(read_data(path, columns=["b"]).X, [[0], [1]])


def test_parquet(tmp_path, write):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {"a": [1, 2], "b": [0.5, 1.5], "k": ["x", "y"], "t": [True, False]}, index=["p", "q"]
    )
    path = tmp_path / "a.parquet"
    frame.to_parquet(path)
    data = read_data(path, label="k")
    assert np.array_equal(data.X, [[1, 0.5, 1], [2, 1.5, 0]])
    assert data.columns == ("a", "b", "t")
    assert data.ids == ("p", "q")
    assert data.labels.tolist() == ["x", "y"]
    assert read_data(path, columns=["b"]).X.tolist() == [[0.5], [1.5]]
    assert "Column 'k' left out: text" in read_data(path).notes[0]
    rejected(path, "'c'", columns=["c"])
    frame.loc["q", "b"] = None
    frame.loc["q", "k"] = None
    frame.to_parquet(path)
    rejected(path, "row 2", "'b'", "missing", columns=["a", "b"])
    assert read_data(path, columns=["a", "b"], missing="mean").X.tolist() == [[1, 0.5], [2, 0.5]]
    rejected(path, "row 2", "'k'", "no label", columns=["a"], label="k")
    rejected(write("b.parquet", "PAR1 no"), "parquet")


def test_advice_keeps_rows_that_can_be_kept(write):
    """A row without a label is dropped even if its cells are filled in."""
    lines = [f"{k},{k % 7},x" for k in range(40)]
    data = read_data(write("a.csv", "\n".join(["a,b,k", *lines, "1,,"])), label="k")
    assert data.notes[-1].endswith("These rows were dropped.")
    data = read_data(write("b.csv", "\n".join(["a,b,k", *lines, "1,,x"])), label="k")
    assert data.notes[-1].endswith("were dropped. Use --missing median to fill in the cells.")
    path = write("c.csv", "a,b,k\n1,,x\n2,3,\n")
    rejected(path, "Fill them in, or use --missing median to fill in the cells.", label="k")
    rejected(write("d.csv", "a,k\n1,\n2,\n"), "Fill them in.", label="k", missing="median")


# ---------------------------------------------------------------------------- TPS files

LEAVES = (
    ("edulis", "11", r"C:\scans\edulis_1.jpg"),
    ("rubra", "12", r"C:\scans\rubra_1.jpg"),
    ("edulis", "13", r"C:\scans\edulis_2.jpg"),
)


def tps(with_image=True, same_id=False):
    text = ""
    for number, (_, identity, image) in enumerate(LEAVES):
        text += f"LM=3\n0 0\n1 {number + 1}\n2 0.5\n"
        text += f"IMAGE={image}\n" if with_image else ""
        text += f"ID={0 if same_id else identity}\n"
    return text


@pytest.mark.parametrize("pattern", [r"([a-z]+)_\d", r"(\w:).*\\(?P<label>[a-z]+)_"])
def test_labels_by_a_pattern(write, pattern):
    path = write("a.tps", tps())
    data = read_data(path, label_regex=pattern)
    assert data.labels.tolist() == ["edulis", "rubra", "edulis"]
    assert data.label_name == pattern
    for with_image in (True, False):  # searched in the IDs if not every IMAGE matches
        ids = read_data(write("b.tps", tps(with_image=with_image)), label_regex="^1(.)")
        assert ids.labels.tolist() == ["1", "2", "3"]
    rejected(path, "2 of 3 names", "edulis_1.jpg", "--labels", label_regex="(rubra)")
    for wrong, word in (("rubra", "parentheses"), ("(", "regular expression")):
        with pytest.raises(InputError, match=word):
            read_data(path, label_regex=wrong)


@pytest.mark.parametrize(
    ("table", "same_id"),
    [
        ("ID,label\n13,edulis\n11,edulis\n12,rubra\n99,other\n", False),
        ("image;class;plot\nrubra_1;rubra;3\nedulis_1;edulis;4\nedulis_2;edulis;4\n", True),
        ("IMAGE,label\n" + "".join(f"{image},{kind}\n" for kind, _, image in LEAVES), True),
    ],
)
def test_labels_by_a_second_file(write, table, same_id):
    path = write("a.tps", tps(same_id=same_id))
    data = read_data(path, labels=write("labels.csv", table))
    assert data.labels.tolist() == ["edulis", "rubra", "edulis"]
    labels = write("labels.csv", "ID,site,soil\n11,a,x\n12,b,y\n13,a,y\n")
    if not same_id:
        assert read_data(path, labels=labels, label="soil").labels.tolist() == ["x", "y", "y"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("ID,label\n11,a\n12,b\n", ["1 of 3", "'13'"]),
        ("ID,label\n11,a\n12,b\n13,c\n12,d\n", ["line 5", "'12'", "line 3"]),
        ("ID\n11\n12\n13\n", ["--label", "none"]),
        ("ID,label\n", ["3 of 3"]),
        ("ID,site,soil\n11,a,x\n12,b,y\n13,a,y\n", ["'site', 'soil'", "--label"]),
        (PNG, ["not a text table"]),
    ],
)
def test_second_files_rejected(write, table, words):
    path, labels = write("a.tps", tps()), write("labels.csv", table)
    with pytest.raises(InputError) as caught:
        read_data(path, labels=labels)
    assert all(word in str(caught.value) for word in ("labels.csv", *words)), caught.value


def test_tps_rejected(write, tmp_path, monkeypatch):
    path = write("a.tps", tps())
    rejected(path, "--labels FILE", "--label-regex", label="species")
    rejected(path, "no columns", columns=["x1"])
    rejected(path, "not both", labels=path, label_regex="(a)")
    rejected(write("b.tps", "hello"))
    rejected(write("c.tps", "LM=2\n1 2\n3 x\n"), "line 3")
    rejected(write("d.tps", PNG))
    for labels in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(InputError, match=r"--labels .* is not a file"):
            read_data(path, labels=labels)
    labels = write("labels.csv", "ID,label\n0,a\n")
    rejected(write("e.tps", tps(with_image=False, same_id=True)), "share", labels=labels)
    monkeypatch.setattr(checks, "available_memory", lambda: path.stat().st_size)
    rejected(path, "of memory", "Use fewer specimens")


# ---------------------------------------------------------------------------- images


@needs("PIL")
@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
def test_images_come_back(tmp_path, shape):
    image = np.random.default_rng(0).integers(0, 256, shape) / 255
    write_image(tmp_path / "a.png", image)
    assert np.array_equal(read_image(tmp_path / "a.png"), image)
    write_image(tmp_path / "a.jpg", np.full(shape, 0.5))
    assert np.allclose(read_image(tmp_path / "a.jpg"), 0.5, atol=0.01)
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "a.jpg"}
    write_image(tmp_path / "a.png", [[-1.0, 0.5, 2.0]])  # clipped
    assert read_image(tmp_path / "a.png").tolist() == [[0.0, 128 / 255, 1.0]]


@pytest.mark.parametrize(
    ("mode", "color", "expected"),
    [
        ("1", 1, [[1.0]]),
        ("I;16", 65535, [[1.0]]),
        ("P", 0, [[[0.0, 0.0, 0.0]]]),
        ("RGBA", (255, 0, 0, 0), [[[1.0, 1.0, 1.0]]]),
        ("LA", (0, 255), [[0.0]]),
    ],
)
def test_kinds_of_png(tmp_path, mode, color, expected):
    pil = pytest.importorskip("PIL.Image")
    pil.new(mode, (1, 1), color).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png").tolist() == expected


@needs("PIL")
def test_images_rejected(tmp_path, write, monkeypatch):
    for content in (b"", b"a,b\n1,2\n", PNG):
        with pytest.raises(InputError, match=r"a\.png is not a PNG or JPEG"):
            read_image(write("a.png", content))
    write_image(tmp_path / "b.png", np.random.default_rng(0).random((50, 50)))
    cut = write("c.png", (tmp_path / "b.png").read_bytes()[:500])
    with pytest.raises(InputError, match=r"c\.png is a damaged"):
        read_image(cut)
    with pytest.raises(FileNotFoundError):
        read_image(tmp_path / "none.png")
    with pytest.raises(IsADirectoryError):
        read_image(tmp_path)
    for name, image, word in (
        ("a.gif", np.eye(2), r"\.png"),
        ("a.png", np.zeros((2, 2, 4)), "shape"),
        ("a.png", [[np.nan]], "NaN"),
    ):
        with pytest.raises(ValueError, match=word):
            write_image(tmp_path / name, image)
    monkeypatch.setattr(checks, "available_memory", lambda: 1000)
    with pytest.raises(InputError, match="of memory"):
        read_image(tmp_path / "b.png")


# ---------------------------------------------------------------------------- real files


def test_photo_is_turned_upright(tmp_path):
    pil = pytest.importorskip("PIL.Image")
    exif = pil.Exif()
    exif[0x0112] = 6  # a quarter turn
    pil.new("L", (4, 2)).save(tmp_path / "a.jpg", exif=exif)
    assert read_image(tmp_path / "a.jpg").shape == (4, 2)


def test_npz_invalid_or_too_large(tmp_path, write, monkeypatch):
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    rejected(tmp_path / "b.npz")
    rejected(write("c.npz", PNG), "not a .npz archive", "numpy.savez")
    path = tmp_path / "a.npz"
    np.savez_compressed(path, X=np.zeros((2000, 500)))
    assert path.stat().st_size < 50_000
    monkeypatch.setattr(checks, "available_memory", lambda: 2**20)
    rejected(path, "of memory")


def test_parquet_rejected(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"

    def written(names, *columns):
        parquet.write_table(pyarrow.table(list(map(pyarrow.array, columns)), names=names), path)
        return path

    numbers = [1.0, float("inf")]
    rejected(written(["a", "b"], [1.0, 2.0], numbers), "row 2", "'b'", "the value is infinite")
    rejected(written(["a", "a"], numbers, numbers), "parquet")
    rejected(written(["a"], pyarrow.array([], pyarrow.float64())), "has columns but no rows: 'a'")
    monkeypatch.setattr(checks, "available_memory", lambda: 100)
    rejected(written(["a"], numbers), "2 rows, would need about 432 B of memory", "--columns")


NTS = "1 3L 4 0 DIM=2\na b c\n0 0 1 0\n0 0 2 1\n0 0 1 2\n"
MORPHOLOGIKA = "[individuals]\n2\n[landmarks]\n3\n[dimensions]\n2\n[rawpoints]\n"
MORPHOLOGIKA += "0 0\n1 0\n0 1\n0 0\n2 0\n0 1\n"


@pytest.mark.parametrize(
    ("name", "text", "shape"),
    [
        ("a.nts", NTS, (3, 2, 2)),
        ("a.txt", MORPHOLOGIKA, (2, 3, 2)),
        ("a.txt", f"Skulls, digitised twice\n'remark\n{MORPHOLOGIKA}", (2, 3, 2)),
    ],
    ids=["NTS", "Morphologika", "a title"],
)
def test_other_landmark_files(write, name, text, shape):
    path = write(name, text)
    assert read_data(path).X.shape == shape
    rejected(write(name, text.rsplit(" ", 1)[0]))


def test_landmarks_of_a_long_table(write):
    """Notes and links number the landmarks as in the file."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 2)) + 0.02 * rng.normal(size=(12, 6, 2))
    X[3, [1, 4]] = X[3, [4, 1]]
    X[5, 0] += 9
    rows = [f"s{i},{j},{x},{y}" for i, each in enumerate(X) for j, (x, y) in enumerate(each)]
    found = read_data(write("a.csv", "\n".join(["specimen,landmark,x,y", *rows])))
    np.testing.assert_array_equal(found.X, X)
    assert any("long table" in note for note in found.notes)
    assert landmark_notes(found) == [
        "Landmarks 1 and 4 of specimen 's3' look exchanged.",
        "Landmark 0 of specimen 's5' is far from its place.",
    ]
    assert with_links(found, str(write("links.txt", "0 5\n"))).links.tolist() == [[0, 5]]


def test_missing_landmarks_and_labels_are_counted_apart(write):
    """Five per cent of each may be missing."""
    cells = [[f"{i},{j},{i + j**2},{j}" for j in range(3)] for i in range(40)]
    del cells[3][1], cells[5][1]
    rows = [f"{row},{'' if i in (7, 8) else 'k'}" for i, each in enumerate(cells) for row in each]
    found = read_data(write("a.csv", "\n".join(["id,lm,x,y,kind", *rows])), label="kind")
    assert len(found) == 36
    assert "2 of 40 specimens have missing landmarks and 2 of 40" in found.notes[-1]


def test_amounts_and_codes_of_missing_cells(write):
    rows = ['"$1,200.50",3 %,1,"1,500",2mm', "$30,4.5 %,2,30,3 mm", "$7,5 %,-999,7,1.5mm"]
    found = read_data(write("a.csv", "\n".join(["price,share,depth,cost,width", *rows])))
    expected = [[1200.5, 3, 1, 1500, 2], [30, 4.5, 2, 30, 3], [7, 5, -999, 7, 1.5]]
    assert found.X.tolist() == expected
    for words in ("ignoring $", "ignoring %", "ignoring thousands commas", "with -999"):
        assert any(words in note for note in found.notes), found.notes
    found = read_data(write("a.csv", "price;n\n1,25 €;1\n12,5 €;2\n"))
    assert found.X[:, 0].tolist() == [1.25, 12.5]


def test_whole_numbers_beyond_floats(write):
    path = write("a.csv", f"a,b\n{10**320},1\n{10**321},2\n")
    rejected(path, "line 2", "'a'", "not a finite number")
    assert "not a finite number" in read_description(path).problem


@pytest.mark.parametrize("reflect", [True, False])
def test_new_specimens_are_compared_with_the_training_mean(reflect):
    X = np.random.default_rng(0).normal(size=(1, 7, 2))
    mirrored = Data("a.tps", "shapes", X * [-1.0, 1.0], (), ("one",))
    found = treat_like_training(mirrored, X[0], reflect=reflect)
    assert len(find_mirrored(found.X, X[0])) == (not reflect)
    assert "'one'" in found.notes[0]
