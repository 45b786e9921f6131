"""What `describe` says is true of the data, and estimates are of the right order."""

import json
import os
import tracemalloc
import warnings

import numpy as np
import pytest

from app_data import rows_of
from optional import needs
from orthodrome.app.clustering import cluster
from orthodrome.app.embedding import Comparison, MethodResult, compare, embed
from orthodrome.app.info import _reach, describe, description_lines, estimate, kpga_plan
from orthodrome.app.inputs import InputError
from orthodrome.app.inputs.checks import available_memory, check_memory
from orthodrome.app.models import Choice
from orthodrome.kernels import Gaussian

needs_pages = needs("matplotlib")


def cloud(n, d=8, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(4, d)) * 3
    return centers[rng.integers(4, size=n)] + spread * rng.normal(size=(n, d))


def described(X, **options):
    return describe(rows_of(X, **options), probe=False)


# ---------------------------------------------------------------------------- facts


def test_facts_of_a_table():
    X = cloud(30, d=3)
    X[4] = X[7] = X[2]
    X[:, 1] = 5.0
    info = described(X, labels=["a"] * 20 + ["b"] * 10)
    assert (info["n"], info["d"], info["shape"], info["dtype"]) == (30, 3, (30, 3), "float64")
    assert info["constant_columns"] == ("x2",)
    assert info["n_duplicates"] == 2
    assert info["class_sizes"] == {"a": 20, "b": 10}
    assert any("'x2'" in advice for advice in info["advice"])
    assert described([[0.0, 1.0], [-0.0, 1.0], [2.0, 3.0]])["n_duplicates"] == 1


def test_data_in_which_nothing_differs():
    info = describe(rows_of(np.ones((5, 2))))
    assert info["constant_columns"] == ("x1", "x2")
    assert any("All rows are equal" in advice for advice in info["advice"])
    assert [info[name] for name in ("n_duplicates", "kernel", "solver", "estimate")] == [
        *(4, None, None, None)
    ]
    assert "suggested kernel: none: all rows are equal" in description_lines(info)
    lines = description_lines(describe(rows_of([[1.0, 2.0]])))
    assert "data: 1 row of 2 features, float64" in lines
    assert "equal" not in "\n".join(lines)
    assert "only one row" in "\n".join(lines)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("direction", [1, -1])
def test_numbers_that_cannot_be_squared(dtype, direction):
    """There is no warning (they are errors here), and the advice names the columns."""
    extreme = dtype(10.0 ** (direction * (30 if dtype is np.float32 else 300)))
    X = cloud(30, d=3).astype(dtype)
    X[:, 1] *= extreme
    info = describe(rows_of(X), probe=dtype is np.float64)
    (advice,) = (text for text in info["advice"] if "other units" in text)
    assert "'x2'" in advice
    assert "'x1'" not in advice
    # a vanishing column leaves the others, and products of float32 are computed in float64
    assert (info["kernel"] is None) == (direction > 0 and dtype is np.float64)
    json.dumps(info, allow_nan=False)
    everywhere = describe(rows_of(cloud(30, d=3).astype(dtype) * extreme))
    assert any("other units" in advice for advice in everywhere["advice"])


# ---------------------------------------------------------------------------- kernel and sphere


def test_suggested_kernels():
    X = cloud(50)
    assert described(X)["kernel"] == "gaussian"
    assert described(X)["sigma"] == Gaussian("mean").fit(X).sigma_
    shapes = np.random.default_rng(0).normal(size=(10, 5, 2))
    info = described(shapes)
    assert info["kernel"] == "veronese_whitney"
    assert description_lines(info)[0].startswith("data: 10 shapes of 5 landmarks in 2 dimensions")
    names = tuple(f"{axis}{i}" for i in range(1, 6) for axis in "xy")
    flat = described(shapes.reshape(10, 10), columns=names)
    assert flat["kernel"] == "veronese_whitney"
    assert flat["sigma"] == pytest.approx(info["sigma"])
    assert flat["reach"]["mean_angle"] == pytest.approx(info["reach"]["mean_angle"])
    solid = describe(rows_of(np.random.default_rng(0).normal(size=(10, 5, 3))))
    assert (solid["kernel"], solid["reach"], solid["estimate"]) == (None, None, None)
    assert "table" in solid["kernel_reason"]


def test_wide_data():
    info = described([[1.0, 0.0], [-1.0, 0.0]])
    assert info["reach"] is None
    assert any("is not defined: " in note for note in info["notes"])
    around = np.linspace(0, 5, 40)
    wide = described(np.column_stack([np.cos(around), np.sin(around)]))
    assert wide["reach"]["largest_angle"] > 90
    line = f"{wide['reach']['largest_angle']:.0f}° at most"
    assert line in "\n".join(description_lines(wide))
    assert "larger bandwidth" in wide["reach"]["meaning"]
    data = rows_of(cloud(60))
    reach = _reach(Gaussian(sigma=0.05).fit(data.X), data, [])
    assert reach["mean_angle"] > 75
    assert "larger bandwidth" in reach["meaning"]


# ---------------------------------------------------------------------------- files and columns


@pytest.fixture
def info(here, run):
    """Return a function that writes a file and returns the JSON and the lines of info."""
    pytest.importorskip("typer")

    def info(content, *options, name="a.csv"):
        if isinstance(content, str):
            (here / name).write_text(content, encoding="utf-8")
        else:
            np.save(here / name, content)
        facts = json.loads(run("info", name, "--quiet", "--json", *options).out)
        return facts, "\n".join(description_lines(facts))

    return info


def mixed_table(n=40):
    """A table with columns of all kinds; every third size is missing."""
    lines = ["id,size,code,when,kind,one,nothing"]
    sizes = np.random.default_rng(0).uniform(size=n).round(3)
    for i, size in enumerate(sizes):
        cell = size if i % 3 else ""
        lines.append(f"n{i},{cell},c{i},2020-01-{i % 28 + 1:02d},{'ab'[i % 2]},5,")
    return "\n".join(lines)


def test_every_column_is_described(info):
    pytest.importorskip("pandas")
    facts, text = info(mixed_table(), "--missing", "median", "--label", "kind")
    assert facts["problem"] is None
    columns = {each.pop("name"): each for each in facts["file_columns"]}
    found = {name: (each["kind"], each["missing"], each["use"]) for name, each in columns.items()}
    assert found == {
        "id": ("identifier", 0, "row names"),
        "size": ("number", 14, "used"),
        "code": ("identifier", 0, "left out"),
        "when": ("date", 0, "left out"),
        "one": ("constant", 0, "left out"),
        "nothing": ("empty", 40, "left out"),
        "kind": ("text", 0, "labels"),
    }
    assert 0 <= columns["size"]["minimum"] < columns["size"]["maximum"] <= 1
    assert "column 'kind': text, 2 values; labels" in text
    assert ", 14 missing; used" in text
    facts, text = info(mixed_table(), "--missing", "median", "--text", "onehot")
    assert "column 'kind': text, 2 values; one-hot" in text
    assert facts["d"] == 3
    facts, text = info("a,b\n" + "1,2\n" * 3 + "3,4\n", "--label", "b")
    assert "column 'b': text, 2 values; labels" in text


@pytest.mark.parametrize(
    ("content", "options", "problem", "d"),
    [
        (mixed_table(), (), "use --missing drop", 1),
        (mixed_table(), ("--missing", "error"), "Fill them in", 1),
        ("a,b\nu,x\nu,y\nv,y\nv,x\n", (), "Use --text onehot", 4),
        ("a,b\n1,2\n3,4x\n5,6\n7,8\n", (), "line 3 (data row 2), column 'b': '4x'", 1),
        ("a,b\n1,2\n3,inf\n5,6\n7,8\n", (), "line 3 (data row 2), column 'b': 'inf'", 2),
        ("a,b\n1,\n3,\n5,\n7,\n", ("--label", "b"), "no label in 'b'", 1),
        ("a,b\n1,u\n3,u\n5,v\n7,v\n", ("--columns", "a,b"), "'b' holds text", 1),
        ("when\n2020-01-01\n2020-01-02\n", (), "'when' (date)", None),
    ],
)
def test_a_file_that_other_commands_reject_is_described(info, content, options, problem, d, run):
    pytest.importorskip("pandas")
    facts, text = info(content, *options)
    assert problem in facts["problem"]
    assert f"problem: the other commands would stop: {facts['problem']}" in text
    assert len(facts["file_columns"]) == len(content.split("\n")[0].split(","))
    assert facts.get("d") == d
    assert facts["problem"] in " ".join(run("embed", "a.csv", *options, code=1).err.split())


def test_arrays_and_many_columns(info):
    X = np.arange(6 * 50.0).reshape(6, 50) ** 2
    X[:, 0] = 1
    facts, text = info(X, name="a.npy")
    assert len(facts["file_columns"]) == 50
    assert facts["file_columns"][0]["kind"] == "constant"
    assert "other columns: 50: 'x1', 'x2', 'x3' and 47 more" in text
    assert "column 'x1'" not in text
    X[2, 7] = np.nan
    X[3, 8] = np.inf
    facts, text = info(X, name="a.npy")
    assert "the value is infinite" in facts["problem"]
    assert "column 'x8': number" in text
    assert "other columns: 47: " in text


def test_landmark_files_are_described(info):
    X = np.random.default_rng(0).normal(size=(5, 3)) + 0.02 * np.random.default_rng(1).normal(
        size=(20, 5, 3)
    )
    facts, text = info(X, name="solid.npy")
    assert "20 shapes of 5 landmarks in 3 dimensions" in text
    assert (facts["kernel"], facts["file_columns"]) == (None, [])
    flat = X[:, :, :2].copy()
    flat[3, :, 0] *= -1
    facts, text = info(flat, name="flat.npy")
    assert "1 of 20 specimens look mirrored: 'row 4'" in text
    flat[:4, 2] = np.nan
    facts, text = info(flat, name="flat.npy")
    assert "4 of 20 specimens have missing landmarks" in facts["problem"]
    assert facts["n"] == 20
    flat[:, 2] = np.nan
    facts, text = info(flat, name="flat.npy")
    assert "data: 20 rows" in text


def test_info_does_what_compare_does():
    """Same rows, same scale, same rule."""
    data = rows_of(cloud(40, d=3) * [1, 1, 100], labels=["a", "b"] * 20)
    info = describe(data)
    assert info["standardize"]
    assert any("Columns were scaled" in note for note in info["notes"])
    choice = Choice("kpca", standardize=True)
    assert info["comparison"] == compare(data, choice).facts
    text = "\n".join(description_lines(info))
    assert f"recommended method: {info['comparison']['recommendation']}" in text
    assert "worth using" not in text
    assert not describe(data, standardize="no", probe=False)["standardize"]
    few = describe(rows_of([[1.0, 2.0], [3.0, 4.0], [0.0, 5.0]]))
    assert few["comparison"] is None
    assert any("at least four rows" in note for note in few["notes"])


# ---------------------------------------------------------------------------- estimates


def estimated(X, seconds=1.0):
    """The estimate, if kernel PGA of 100 rows took this time."""
    result = MethodResult("kpga", 0.0, np.zeros(2), X[:1], X[:1], seconds)
    sample = Comparison("neighbourhoods", rows_of(X[:100]), 2, [result])
    data = rows_of(X)
    return estimate(data, kpga_plan(data, None, 2), sample)


@needs_pages
@pytest.mark.parametrize(("run", "method"), [(embed, "kpga"), (cluster, "kernel-kmeans")])
def test_memory_is_of_the_right_order(run, method):
    X = cloud(300)
    found = estimated(X)
    name = "n_components" if run is embed else "n_clusters"
    choice = Choice(method, parameters={name: 3})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(rows_of(X), choice)  # what the first run loads is not the run's
        tracemalloc.start()
        try:
            run(rows_of(X), choice)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak / 3 < found["bytes"] < 3 * peak


def test_times_are_extrapolated_by_the_plan():
    """Cubic in the rows with LAPACK, quadratic with products, linear with coordinates."""
    X = np.random.default_rng(0).normal(size=(1000, 2))
    for n, factor in ((300, 3**3), (3000, 30**2), (300_000, 3000)):
        found = [estimated(np.resize(X, (n, 2)), seconds)["seconds"] for seconds in (0.0, 1.0)]
        assert found[1] - found[0] == pytest.approx(factor)
        assert 0 < found[0] < 15  # to import the package and to write the page


@needs_pages
def test_what_cannot_run_is_not_estimated(monkeypatch):
    spoiled = rows_of(np.random.default_rng(0).normal(size=(80, 4, 2)))
    spoiled.X[3] = 1.0  # one place for all landmarks: no shape
    info = describe(spoiled)
    assert info["estimate"] is None
    assert "3" in info["kernel_reason"]
    monkeypatch.setattr("orthodrome.app.info.available_memory", lambda: 1000)
    info = describe(rows_of(cloud(40)), n_components=2)
    assert any("sample of the rows" in advice for advice in info["advice"])


def test_memory_of_this_machine(monkeypatch, tmp_path):
    available = available_memory()
    if available is not None:
        check_memory(available / 4, "x")
        with pytest.raises(InputError, match="about"):
            check_memory(available * 4, "x")
    monkeypatch.setattr("orthodrome.app.inputs.checks._MEMINFO", tmp_path / "none")
    monkeypatch.setattr("orthodrome.app.inputs.checks._LIMITS", ())
    pages = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)
    assert available_memory() == 2_048_000
    monkeypatch.delattr(os, "sysconf")  # as on Windows
    assert available_memory() is None
    check_memory(2**70, "x")
    info = describe(rows_of(cloud(40)), n_components=2, probe=False)
    assert info["available_bytes"] is None
    assert not any(line.startswith("available memory") for line in description_lines(info))
