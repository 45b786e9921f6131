"""Files of data: what is read, and what is refused with the file, the place and advice."""

import io
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optional import needs
from orthodrome.app import memory
from orthodrome.app.inputs import InputError, read_data, read_image, write_image
from orthodrome.plots import MissingExtraError
from real_data import real_folder

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.fixture
def write(tmp_path):
    """Write a file and return its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def refused(path, *words, **options):
    """The one-line message with which a file is refused; it names the file and these words."""
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
    path = write("a.csv", "a,b,c,d\n1,2,x,4\n5,6,y,8\n")
    data = read_data(path, label="c", columns=["d", "a"])
    assert np.array_equal(data.X, [[4, 1], [8, 5]])
    assert data.X.dtype == np.float64
    assert data.columns == ("d", "a")
    assert data.labels.tolist() == ["x", "y"]
    assert data.label_name == "c"
    assert data.ids == ("row 1", "row 2")
    assert (data.kind, data.path, data.notes, data.id_name) == ("table", str(path), (), None)


def test_labels_stay_texts(write):
    data = read_data(write("a.csv", "a,k\n1,01\n2,1\n"), label="k")
    assert data.labels.tolist() == ["01", "1"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "a,b\n1.5,2\n3,-4e1\n"),
        ("a.csv", "a;b\n1.5;2\n3;-4e1\n"),
        ("a.csv", "a;b\n1,5;2\n3;-4e1\n"),
        ("a.csv", "a;b\n3;-4e1\n1,5;2\n"),  # the decimal comma comes late
        ("a.tsv", "a\tb\n1.5\t2\n3\t-4e1\n"),
        ("a.tsv", "a\tb\n1,5\t2\n3\t-4e1\n"),
        ("a.txt", "a b\n  1.5   2 \n3 -4e1\n"),
        ("a.txt", "a,b\r\n1.5,2\r\n\r\n3,-4e1"),
        ("a.CSV", "\ufeffa,b\n 1.5 , 2\n3,-4e1\n\n"),
        ("a.csv", '"a","b"\n"1.5","2"\n3,-4e1\n'),
    ],
)
def test_forms_of_one_table(write, name, text):
    data = read_data(write(name, text))
    assert sorted(data.X.ravel().tolist()) == [-40, 1.5, 2, 3]
    assert data.columns == ("a", "b")


def test_utf16_of_excel(write):
    data = read_data(write("a.txt", "é\tb\n1\t2\n".encode("utf-16")))
    assert data.columns == ("é", "b")


def test_latin1_is_read_and_said(write):
    data = read_data(write("a.csv", "l,größe\nä,2\nb,3\n".encode("latin-1")), label="l")
    assert data.columns == ("größe",)
    assert data.labels.tolist() == ["ä", "b"]
    assert any("UTF-8" in note for note in data.notes)


def test_latin1_far_into_the_file(write):
    rows = "".join(f"{i},x\n" for i in range(40_000))
    data = read_data(
        write("a.csv", ("a,l\n" + rows).encode() + "1,ä\n".encode("latin-1")), label="l"
    )
    assert data.labels[-1] == "ä"


def test_quoted_line_breaks_keep_the_count_of_lines(write):
    text = 'l,a\n"one\ntwo",1\n"three",2\nfour,oops\n'
    assert read_data(write("b.csv", text.replace("oops", "3")), label="l").labels[0] == "one\ntwo"
    refused(write("a.csv", text), "line 5", "data row 3", "'a'", "'oops'", label="l")
    # of a record of several lines the first is named
    refused(write("c.csv", 'l,a\nx,1\n"y\nz",oops\n'), "line 3", "data row 2", label="l")


def test_decimal_commas_without_a_header(write):
    data = read_data(write("a.csv", "1,5;2,5\n3,5;4,5\n"))
    assert np.array_equal(data.X, [[1.5, 2.5], [3.5, 4.5]])
    assert data.columns == ("x1", "x2")


def test_no_header(write):
    data = read_data(write("a.csv", "1,2\n3,4\n"))
    assert np.array_equal(data.X, [[1, 2], [3, 4]])
    assert data.columns == ("x1", "x2")
    assert "no header" in data.notes[0]


def test_pandas_numbers_of_columns_are_a_header(write):
    data = read_data(write("a.csv", "0,1,2\n7,8,9\n"))
    assert data.columns == ("0", "1", "2")
    assert np.array_equal(data.X, [[7, 8, 9]])


def test_header_of_numbers_with_one_name_is_noted(write):
    data = read_data(write("a.csv", "5.1,3.5,setosa\n4.9,3.0,setosa\n"), label="setosa")
    assert any("taken for a header" in note for note in data.notes)


@pytest.mark.parametrize("name", ["", "ID", "index", "Name"])
def test_first_column_names_the_rows(write, name):
    data = read_data(write("a.csv", f"{name},a\nleaf 1,1\nleaf 2,2\n"))
    assert data.ids == ("leaf 1", "leaf 2")
    assert data.columns == ("a",)
    assert data.id_name == (name or "(no name)")


def test_id_column_can_be_a_feature_or_a_label(write):
    path = write("a.csv", "id,a\n7,1\n8,2\n")
    assert read_data(path, columns=["id", "a"]).X.shape == (2, 2)
    assert read_data(path, label="id").labels.tolist() == ["7", "8"]


def test_text_column_is_refused_with_advice(write):
    text = "a,b,species\n1,2,edulis\n3,4,rubra\n"
    message = refused(
        write("a.csv", text), "line 2", "data row 1", "'species'", "'edulis'", "--label 'species'"
    )
    assert "--columns" in message
    assert "'a', 'b'" in message
    assert "OneHotEncoder" in message


@pytest.mark.parametrize("value", ["", "NA", "nan", "?", "null", " - "])
def test_missing_values_are_refused_with_advice(write, value):
    text = f"a,b,c\n1,2,3\n4,{value},6\n7,8,{value}\n"
    message = refused(write("a.csv", text), "line 3", "data row 2", "'b'", "missing", "impute")
    assert "2 of the values" in message
    assert "--columns: 'a'" in message


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e999"])
def test_infinite_values(write, value):
    refused(write("a.csv", f"a,b\n1,2\n3,{value}\n"), "line 3", "'b'", value, "infinite")


def test_huge_finite_values_are_kept(write):
    data = read_data(write("a.csv", "a,b\n1e308,1e308\n1,2\n"))
    assert data.X[0].tolist() == [1e308, 1e308]


@pytest.mark.parametrize("value", ["1_000", "0x10", "1,5", "1 000", "12%", "--1", "1.2.3"])
def test_what_python_or_people_might_take_for_a_number(write, value):
    refused(write("a.csv", f'a,b\n1,2\n3,"{value}"\n'), "line 3", "'b'", "not a number")


def test_points_among_decimal_commas(write):
    refused(write("a.csv", "a;b\n1,5;2\n3;4.25\n"), "line 3", "'4.25'", "decimal commas")
    refused(write("b.csv", "a;b\n1.234,5;2\n3;4\n"), "line 2", "not a number")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["0 bytes"]),
        ("\n \n\n", ["is empty"]),
        ("a,b\n", ["no rows", "'a', 'b'"]),
        ("a,b,a\n1,2,3\n", ["columns 1 and 3", "'a'"]),
        ("a,,b\n1,2,3\n", ["column 2", "no name"]),
        ("a,b,\n1,2,\n", ["column 3", "end of the lines"]),
        ("a,b\n1,2\n3\n", ["line 3", "1 cells", "2"]),
        ("a,b\n1,2\n3,4,5\n", ["line 3", "3 cells"]),
        ('a,b\n1,2\n"3,4\n5,6\n', ["line 3", "quote"]),
        ('a,b\n1,"2"x\n', ["line 2"]),
        ('a,b\n1,"' + "x" * 200_000 + '"\n', ["line 2", "cell is longer"]),
        (PNG, ["PNG"]),
        (b"PAR1" + bytes(50), ["parquet"]),
        (b"a,b\n1,\x002\n", ["zero bytes"]),
        (b"PK\x03\x04" + bytes(50), ["Excel"]),
        (bytes(range(128, 256)) * 4, ["no rows"]),
    ],
)
def test_what_is_no_table(write, content, words):
    refused(write("a.csv", content), *words)


def test_zero_bytes_far_into_the_file(write):
    content = b"a,b\n" + b"1,2\n" * 40_000 + b"1,\x00\n"
    refused(write("a.csv", content), "line 40002", "zero bytes")


def test_half_a_letter_at_the_end_of_utf16(write):
    content = "a,b\n1,2\n".encode("utf-16")
    refused(write("a.csv", content + b"1"), "line 3", "the text is not utf-16")


def test_endless_line(write, monkeypatch):
    monkeypatch.setattr("orthodrome.app.inputs.text._LONGEST_LINE", 1000)
    refused(write("a.csv", "a,b\n1," + "2" * 2000), "line 2", "longer than")


def test_names_that_are_not_there(write):
    path = write("a.csv", "length,width\n1,2\n")
    refused(path, "'lenght'", "--columns", "Did you mean 'length'", columns=["lenght"])
    refused(path, "'species'", "--label", "'length', 'width'", label="species")
    refused(path, "'width'", "twice", columns=["width", "width"])
    refused(path, "'width'", "both", label="width", columns=["width"])
    refused(write("b.csv", "a\nx\n"), "no columns of features", label="a")


def test_a_single_name_of_a_column_may_be_a_text(write):
    assert read_data(write("a.csv", "ab,a,b\n1,2,3\n"), columns="ab").columns == ("ab",)


def test_missing_label(write):
    refused(write("a.csv", "a,k\n1,x\n2,\n"), "line 3", "'k'", "no label", label="k")
    refused(write("a.csv", "a,k\n1,x\n2,NaN\n"), "line 3", "'k'", "no label", label="k")


def test_paths(tmp_path, write):
    refused(tmp_path, "folder")
    with pytest.raises(FileNotFoundError, match=r"no file .*none\.csv"):
        read_data(tmp_path / "none.csv")
    refused(write("a.xlsx", "x"), "'.xlsx'", ".csv")
    refused(write("noend", "x"), ".csv")
    refused(write("a.png", PNG), "denoise")


def test_options_of_tps_files_only(write):
    path = write("a.csv", "a\n1\n")
    refused(path, "--labels", "--label", labels=path)
    refused(path, "--label-regex", label_regex="(a)")
    refused(path, "not a TPS file, and --keep-negative is for those", keep_negative=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    refused(tmp_path / "a.csv", "is not a regular file; save the data in one")


def test_a_file_that_may_not_be_read(write, monkeypatch):
    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    path = write("a.csv", "a\n1\n")
    monkeypatch.setattr(Path, "open", forbidden)
    refused(path, "cannot be opened: you may not read it")


def test_long_values_are_shortened(write):
    message = refused(write("a.csv", "a,b\n1," + "y" * 5000 + "\n"), "line 2")
    assert len(message) < 500


@pytest.mark.parametrize("content", ["a,b\n" + "1,2\n" * 50_000, None])
def test_refused_before_it_fills_the_memory(write, monkeypatch, content):
    if content is None:
        path = write("a.npy", b"")
        np.save(path, np.zeros((1000, 50)))
    else:
        path = write("a.csv", content)
    monkeypatch.setattr(memory, "available_memory", lambda: 100_000)
    monkeypatch.setattr("numpy.frombuffer", None)  # nothing is read
    message = refused(path, "of memory", "97.7 KiB are available", "sample of the rows")
    assert "MiB" in message or "KiB" in message


def test_memory_is_estimated_within_a_factor(write, monkeypatch):
    """What a table is said to take is above what it takes, and not by far."""
    import tracemalloc

    rng = np.random.default_rng(0)
    lines = "\n".join(",".join(f"{x:.3f}" for x in row) for row in rng.normal(size=(20_000, 8)))
    path = write("a.csv", "a,b,c,d,e,f,g,h\n" + lines)
    said = []
    monkeypatch.setattr(
        "orthodrome.app.inputs.tables.memory_refusal", lambda size, what: said.append(size)
    )
    tracemalloc.start()
    try:
        read_data(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < said[0] < 3 * peak


NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=5).map(
    "n".__add__
)


@settings(max_examples=40, deadline=None)
@given(
    names=st.lists(NAMES, min_size=2, max_size=4, unique=True),
    rows=st.integers(1, 5),
    data=st.data(),
)
def test_written_tables_come_back(tmp_path_factory, names, rows, data):
    import csv

    numbers = st.floats(allow_nan=False, allow_infinity=False)
    X = [[data.draw(numbers) for _ in names] for _ in range(rows)]
    separator = data.draw(st.sampled_from([",", ";", "\t"]))
    path = tmp_path_factory.mktemp("t") / "a.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(names)
        writer.writerows([[repr(x) for x in row] for row in X])
    found = read_data(path)
    assert found.columns == tuple(names)
    assert np.array_equal(found.X, X)


@needs("pyarrow")
@settings(max_examples=60, deadline=None)
@given(
    content=st.binary(min_size=1, max_size=200),
    suffix=st.sampled_from(["csv", "npy", "npz", "tps", "parquet"]),
)
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, suffix):
    path = tmp_path_factory.mktemp("b") / f"a.{suffix}"
    path.write_bytes(content)
    try:
        data = read_data(path)
    except InputError as problem:
        message = str(problem)
    else:
        message = path.name
        assert np.isfinite(data.X).all()
    assert path.name in message


@pytest.mark.slow
def test_csv_needs_neither_pandas_nor_pyarrow(write):
    path = write("a.csv", "a,b\n1,2\n")
    code = (
        "import sys\n"
        "for name in ('pandas', 'pyarrow', 'PIL', 'matplotlib', 'plotly'):\n"
        "    sys.modules[name] = None\n"
        "from orthodrome.app.inputs import read_data\n"
        f"assert read_data({str(path)!r}).X.shape == (1, 2)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------------------- NumPy's files


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.eye(2), "float64"),
        (np.eye(2, dtype="f4"), "float32"),
        (np.eye(2, dtype="u1"), "float64"),
        (np.eye(2, dtype=bool), "float64"),
        (np.asfortranarray(np.eye(2, dtype=">f8")), "float64"),
        (np.eye(2, dtype="f2"), "float64"),
    ],
)
def test_npy(tmp_path, array, dtype):
    np.save(tmp_path / "a.npy", array)
    data = read_data(tmp_path / "a.npy")
    assert np.array_equal(data.X, np.eye(2))
    assert data.X.dtype == np.dtype(dtype)
    assert data.X.flags.c_contiguous
    assert data.X.flags.owndata
    assert data.columns == ("x1", "x2")
    assert np.array_equal(read_data(tmp_path / "a.npy", columns=["x2"]).X, [[0], [1]])


def test_npy_landmarks(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(2, 3, 2))
    data = read_data(tmp_path / "a.npy")
    assert data.kind == "shapes"
    assert data.columns == ("x1", "y1", "x2", "y2", "x3", "y3")


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.arange(3.0), ["(3,)", "Reshape"]),
        (np.zeros((2, 5, 5)), ["(2, 5, 5)", "height*width"]),
        (np.zeros((2, 3), dtype=complex), ["complex128", "(n, k, 2)"]),
        (np.array([["a", "b"]]), ["<U1", "Encode"]),
        (np.zeros(3, dtype=[("a", "f8")]), ["columns"]),
        (np.zeros((0, 3)), ["empty"]),
        (np.array([[1.0, 2], [3, np.nan]]), ["row 2 (index 1)", "'x2'", "missing"]),
        (np.array([[1.0, np.inf]]), ["row 1", "'x2'", "infinite"]),
        (np.array([[[1.0, 2], [np.nan, 1]]]), ["row 1", "'x2'", "missing"]),
        (np.array([[object()]], dtype=object), ["pickled"]),
    ],
)
def test_npy_refused(tmp_path, array, words):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    refused(tmp_path / "a.npy", *words)


def test_npy_has_neither_labels_nor_names(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    refused(tmp_path / "a.npy", "holds one array, without a column 'k' for --label", label="k")
    np.save(tmp_path / "b.npy", np.zeros((4, 5, 2)))
    refused(tmp_path / "b.npy", "landmarks, which have no columns for --columns", columns=["x1"])


def test_npy_cut_short(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(20))
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content[:-100])
    refused(tmp_path / "a.npy")


def test_npz_data_and_labels(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.eye(3), y=[1, 2, 1], other=np.eye(4), groups=["a", "b", "b"])
    data = read_data(path)
    assert np.array_equal(data.X, np.eye(3))
    assert data.labels.tolist() == ["1", "2", "1"]
    assert data.label_name == "y"
    assert read_data(path, label="groups").labels.tolist() == ["a", "b", "b"]
    refused(path, "no array 'kind'", "--label", label="kind")
    refused(path, "'other'", "one value for each", label="other")


def test_npz_labels_of_bytes(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=[b"x", b"z"])
    assert read_data(tmp_path / "a.npz", label="y").labels.tolist() == ["x", "z"]
    np.savez(tmp_path / "b.npz", X=np.eye(2), y=["\u00e9".encode("latin-1"), b"z"])
    refused(tmp_path / "b.npz", "'y'", "bytes beyond ASCII", "as text", label="y")


def test_npz_without_a_label(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(3), y=["x", "", "z"])
    refused(tmp_path / "a.npz", "'y'", "row 2", "no label", label="y")


def test_npz_names_of_features(tmp_path):
    np.savez(tmp_path / "a.npz", table=np.eye(2), feature_names=["a", "b"])
    data = read_data(tmp_path / "a.npz")
    assert data.columns == ("a", "b")
    assert data.labels is None
    assert np.array_equal(read_data(tmp_path / "a.npz", columns=["b"]).X, [[0], [1]])


def test_npz_that_does_not_say_which(tmp_path):
    np.savez(tmp_path / "a.npz", X_train=np.eye(3), X_test=np.eye(2))
    refused(tmp_path / "a.npz", "X_train (3, 3)", "X_test (2, 2)", "as X")
    np.savez(tmp_path / "b.npz", v=np.arange(3))
    refused(tmp_path / "b.npz", "v (3,)", "none")
    np.savez(tmp_path / "c.npz")
    refused(tmp_path / "c.npz")


def test_npz_with_objects_or_foreign_files(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.array([[object()]], dtype=object))
    refused(tmp_path / "a.npz", "pickled")
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    refused(tmp_path / "b.npz")
    (tmp_path / "c.npz").write_bytes(PNG)
    refused(tmp_path / "c.npz", ".npz")


def test_npz_that_unpacks_to_much(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, X=np.zeros((2000, 500)))
    assert path.stat().st_size < 50_000
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    refused(path, "of memory")


# ---------------------------------------------------------------------------- parquet


def test_parquet(tmp_path):
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
    refused(path, "'k'", "--label 'k'", "--columns: 'a', 'b', 't'")
    refused(path, "'c'", columns=["c"])
    frame.loc["q", "b"] = None
    frame.loc["q", "k"] = None
    frame.to_parquet(path)
    refused(path, "row 2", "'b'", "missing", columns=["a", "b"])
    refused(path, "row 2", "'k'", "no label", columns=["a"], label="k")
    refused_path = tmp_path / "b.parquet"
    refused_path.write_bytes(b"PAR1 no")
    refused(refused_path, "parquet")


def test_parquet_refused(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"

    def written(names, *columns):
        parquet.write_table(pyarrow.table(list(map(pyarrow.array, columns)), names=names), path)
        return path

    numbers = [1.0, float("inf")]
    refused(written(["a", "b"], [1.0, 2.0], numbers), "row 2", "'b'", "the value is infinite")
    refused(written(["a", "a"], numbers, numbers), "several columns called 'a'")
    refused(written(["a"], pyarrow.array([], pyarrow.float64())), "has columns and no rows: 'a'")
    monkeypatch.setattr(memory, "available_memory", lambda: 100)
    refused(written(["a"], numbers), "2 rows, would take about 432 B of memory", "--columns")


@pytest.mark.parametrize("name", ["a.parquet", "a.png"])
def test_a_fault_within_an_extra_is_not_that_it_is_absent(write, monkeypatch, name):
    def broken(name):
        raise ModuleNotFoundError("No module named 'packaging'", name="packaging")

    path = write(name, "PAR1")
    monkeypatch.setattr("importlib.import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="packaging"):
        (read_image if name.endswith("png") else read_data)(path)


def test_parquet_without_pyarrow(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"^Parquet .* pip install 'orthodrome\[data\]'$"):
        read_data(write("a.parquet", "PAR1"))


# ---------------------------------------------------------------------------- TPS files

LEAVES = (
    ("edulis", "11", r"C:\scans\edulis_1.jpg"),
    ("rubra", "12", r"C:\scans\rubra_1.jpg"),
    ("edulis", "13", r"C:\scans\edulis_2.jpg"),
)


def tps(with_id=True, with_image=True, same_id=False):
    text = ""
    for number, (_, identity, image) in enumerate(LEAVES):
        text += f"LM=3\n0 0\n1 {number + 1}\n2 0.5\n"
        text += f"IMAGE={image}\n" if with_image else ""
        text += f"ID={0 if same_id else identity}\n" if with_id else ""
    return text


def test_tps(write):
    data = read_data(write("a.tps", tps()))
    assert data.kind == "shapes"
    assert data.X.shape == (3, 3, 2)
    assert data.ids == ("11", "12", "13")
    assert data.columns == ("x1", "y1", "x2", "y2", "x3", "y3")
    assert data.labels is None


@pytest.mark.parametrize("pattern", [r"([a-z]+)_\d", r"(\w:).*\\(?P<label>[a-z]+)_"])
def test_labels_by_a_pattern(write, pattern):
    data = read_data(write("a.tps", tps()), label_regex=pattern)
    assert data.labels.tolist() == ["edulis", "rubra", "edulis"]
    assert data.label_name == pattern


def test_pattern_on_ids_where_there_is_no_image(write):
    data = read_data(write("a.tps", tps(with_image=False)), label_regex="1(.)")
    assert data.labels.tolist() == ["1", "2", "3"]


def test_patterns_refused(write):
    path = write("a.tps", tps())
    refused(path, "2 of 3 names", "edulis_1.jpg", "--labels", label_regex="(rubra)")
    for pattern, word in (("rubra", "parentheses"), ("(", "regular expression")):
        with pytest.raises(InputError, match=word):
            read_data(path, label_regex=pattern)


@pytest.mark.parametrize(
    "table",
    [
        "ID,label\n13,edulis\n11,edulis\n12,rubra\n99,other\n",
        "label\tname\nrubra\trubra_1.jpg\nedulis\tedulis_1.jpg\nedulis\tedulis_2.jpg\n",
        "image;class;plot\nrubra_1;rubra;3\nedulis_1;edulis;4\nedulis_2;edulis;4\n",
        "IMAGE,label\n" + "".join(f"{image},{kind}\n" for kind, _, image in LEAVES),
    ],
)
@pytest.mark.parametrize("same_id", [False, True])
def test_labels_by_a_second_file(write, table, same_id):
    if same_id and table.startswith("ID"):
        table = table.replace("ID", "name").replace("13", "edulis_2").replace("11", "edulis_1")
        table = table.replace("12", "rubra_1")
    labels = write("labels.csv", table)
    data = read_data(write("a.tps", tps(same_id=same_id)), labels=labels)
    assert data.labels.tolist() == ["edulis", "rubra", "edulis"]


def test_which_column_of_the_second_file(write):
    path = write("a.tps", tps())
    labels = write("labels.csv", "ID,site,soil\n11,a,x\n12,b,y\n13,a,y\n")
    assert read_data(path, labels=labels, label="soil").labels.tolist() == ["x", "y", "y"]
    for options, words in (
        ({}, ["labels.csv", "'site', 'soil'", "--label"]),
        ({"label": "sight"}, ["labels.csv", "'sight'", "'site'"]),
    ):
        with pytest.raises(InputError) as caught:
            read_data(path, labels=labels, **options)
        assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("ID,label\n11,a\n12,b\n", ["1 of 3", "'13'"]),
        ("ID,label\n11,a\n12,b\n13,c\n12,d\n", ["line 5", "'12'", "line 3"]),
        ("ID,label\n11,a\n12,\n13,c\n", ["line 3", "no label", "'12'"]),
        ("ID,label\n11,a\n12,nan\n13,c\n", ["line 3", "no label", "'12'"]),
        ("ID\n11\n12\n13\n", ["second one"]),
        ("ID,label\n", ["no rows"]),
        (PNG, ["PNG"]),
    ],
)
def test_second_files_refused(write, table, words):
    path, labels = write("a.tps", tps()), write("labels.csv", table)
    with pytest.raises(InputError) as caught:
        read_data(path, labels=labels)
    assert all(word in str(caught.value) for word in ("labels.csv", *words)), caught.value


def test_specimens_that_cannot_be_told_apart(write):
    labels = write("labels.csv", "ID,label\n0,a\n")
    refused(write("a.tps", tps(with_image=False, same_id=True)), "share", labels=labels)


def test_tps_refused(write, tmp_path, monkeypatch):
    path = write("a.tps", tps())
    refused(path, "--labels FILE", "--label-regex", label="species")
    refused(path, "no columns", columns=["x1"])
    refused(path, "not by both", labels=path, label_regex="(a)")
    refused(write("b.tps", "hello"))
    refused(write("c.tps", "LM=2\n1 2\n3 x\n"), "line 3")
    refused(write("d.tps", PNG))
    with pytest.raises(FileNotFoundError, match="labels"):
        read_data(path, labels=tmp_path / "labels.csv")
    with pytest.raises(InputError, match="folder"):
        read_data(path, labels=tmp_path)
    table = write("labels.csv", "ID,kind\n11,a\n")
    monkeypatch.setattr(memory, "available_memory", lambda: path.stat().st_size)
    refused(path, "of memory", "Take a part of the specimens")
    monkeypatch.setattr("orthodrome.app.inputs.landmarks.memory_refusal", lambda *_: None)
    monkeypatch.setattr(memory, "available_memory", lambda: 1)
    with pytest.raises(
        InputError, match=r"labels\.csv would take about .* of memory.*available\.$"
    ):
        read_data(path, labels=table)


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


@needs("PIL")
def test_values_beyond_are_clipped(tmp_path):
    write_image(tmp_path / "a.png", [[-1.0, 0.5, 2.0]])
    assert read_image(tmp_path / "a.png").tolist() == [[0.0, 128 / 255, 1.0]]


@pytest.mark.parametrize(
    ("mode", "color", "expected"),
    [
        ("1", 1, [[1.0]]),
        ("I;16", 65535, [[1.0]]),
        ("P", 0, [[[0.0, 0.0, 0.0]]]),
        ("RGBA", (255, 0, 0, 0), [[[1.0, 1.0, 1.0]]]),
        ("RGBA", (255, 0, 0, 255), [[[1.0, 0.0, 0.0]]]),
        ("LA", (0, 255), [[0.0]]),
    ],
)
def test_kinds_of_png(tmp_path, mode, color, expected):
    pil = pytest.importorskip("PIL.Image")
    pil.new(mode, (1, 1), color).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png").tolist() == expected


def test_photo_stands_upright(tmp_path):
    pil = pytest.importorskip("PIL.Image")
    exif = pil.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    pil.new("L", (4, 2)).save(tmp_path / "a.jpg", exif=exif)
    assert read_image(tmp_path / "a.jpg").shape == (4, 2)


@needs("PIL")
def test_images_refused(tmp_path, write, monkeypatch):
    for content in (b"", b"a,b\n1,2\n", PNG):
        with pytest.raises(InputError, match=r"a\.png"):
            read_image(write("a.png", content))
    write_image(tmp_path / "b.png", np.random.default_rng(0).random((50, 50)))
    cut = write("c.png", (tmp_path / "b.png").read_bytes()[:500])
    with pytest.raises(InputError, match=r"c\.png is a damaged"):
        read_image(cut)
    with pytest.raises(FileNotFoundError):
        read_image(tmp_path / "none.png")
    with pytest.raises(InputError, match="folder"):
        read_image(tmp_path)
    with pytest.raises(InputError, match=r"\.png"):
        write_image(tmp_path / "a.gif", np.eye(2))
    with pytest.raises(ValueError, match="shape"):
        write_image(tmp_path / "a.png", np.zeros((2, 2, 4)))
    with pytest.raises(ValueError, match="finite"):
        write_image(tmp_path / "a.png", [[np.nan]])
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(InputError, match="of memory"):
        read_image(tmp_path / "b.png")


def png_of(width, height):
    """A PNG file that promises so many pixels, and has none."""

    def chunk(kind, content):
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    parts = [(b"IHDR", struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)), (b"IEND", b"")]
    parts.insert(1, (b"IDAT", zlib.compress(b"")))
    return PNG[:8] + b"".join(chunk(*part) for part in parts)


@needs("PIL")
def test_images_that_promise_too_much(write, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    with pytest.raises(InputError, match=r"a damaged image: its header promises 9000 x 9000 pix"):
        read_image(write("a.png", png_of(9000, 9000)))
    with pytest.raises(InputError, match=r"too large an image: .*exceeds limit"):
        read_image(write("a.png", png_of(30_000, 30_000)))


def test_images_without_pillow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    (tmp_path / "a.png").write_bytes(PNG)
    with pytest.raises(MissingExtraError, match=r"pip install 'orthodrome\[image\]'"):
        read_image(tmp_path / "a.png")


# ---------------------------------------------------------------------------- real files


def test_published_tables():
    folder = real_folder() / "uci"
    if not (folder / "iris.csv").exists():
        pytest.skip(f"no data in {folder}; set ORTHODROME_DATA")
    iris = read_data(folder / "iris.csv", label="class")
    assert iris.X.shape == (150, 4)
    assert sorted(set(iris.labels)) == ["Iris-setosa", "Iris-versicolor", "Iris-virginica"]
    refused(folder / "iris.csv", "line 2", "'class'", "--label 'class'")
    message = refused(folder / "vote.csv", "missing", label="class")
    assert "392 of the values" in message


def test_npz_in_memory_is_like_the_file(tmp_path):
    """A .npz that is called .npy is told its name."""
    buffer = io.BytesIO()
    np.savez(buffer, X=np.eye(2))
    (tmp_path / "a.npy").write_bytes(buffer.getvalue())
    refused(tmp_path / "a.npy", ".npz")
