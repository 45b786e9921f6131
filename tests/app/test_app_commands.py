"""Every command, from a file of data to files of results; and what is wrong with bad input."""

import csv
import html
import json
import os
import re
import signal
import warnings

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

from browser import external, opened
from orthodrome import KernelPCA, app, plots, save
from orthodrome.app import models, results
from orthodrome.datasets import make_landmark_shapes
from orthodrome.spaces import read_tps, write_tps

NASTY = "</script><script>alert(1)</script>"

slow = pytest.mark.slow


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def write_csv(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return str(path)


def blobs(n=30, seed=0):
    """Three groups in four dimensions, with their names."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(3, size=n)
    X = 3.0 * np.eye(4)[groups] + 0.4 * rng.standard_normal((n, 4))
    return X, np.array(["ash", "birch", "cedar"])[groups]


def write_labelled(path, X, names, header=("height", "girth", "age", "shade", "kind")):
    rows = [[*map(float, x), name] for x, name in zip(X, names, strict=True)]
    return write_csv(path, header, rows)


@pytest.fixture
def trees(here):
    return write_labelled(here / "trees.csv", *blobs())


def run_python_of(page):
    """Run the lines of Python that a page shows; return the variables that they set."""
    blocks = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page.read_text("utf-8"), re.DOTALL)
    variables = {}
    with warnings.catch_warnings():  # nested spheres warn of wide circles, as the page says
        warnings.simplefilter("ignore", UserWarning)
        exec(next(html.unescape(block) for block in blocks if "import" in block), variables)
    return variables


# ---------------------------------------------------------------------- what is written


@pytest.mark.parametrize("method", ["kpga", "kpca", "kpns", "robust"])
def test_embed(trees, here, run, method):
    printed = run("embed", trees, "--label", "kind", "--method", method, "-q", 3, "--json")
    facts = json.loads(printed.out)
    assert facts["n_rows"] == 30
    assert facts["n_components"] == 3
    assert sorted(facts["files"]) == ["coordinates.csv", "model.orthodrome", "report.html"]
    header, *rows = rows_of(here / "embedding/coordinates.csv")
    assert header[:2] == ["row", "kind"]
    assert [row[1] for row in rows] == [row[4] for row in rows_of(trees)[1:]]
    # the lines of Python on the page do the same
    space = run_python_of(here / "embedding/report.html")
    written = np.array([row[2:] for row in rows], dtype=float)
    np.testing.assert_allclose(space["coordinates"], written, atol=1e-12)
    # and so does the model, of the same rows read again
    printed = run("predict", "embedding/model.orthodrome", trees)
    again = list(csv.reader(printed.out.splitlines()))
    assert again[0] == ["row", *header[2:]]
    np.testing.assert_allclose(
        np.array([row[1:] for row in again[1:]], dtype=float), written, atol=1e-6
    )


@pytest.mark.parametrize("method", ["mixture", "kmeans", "kernel-kmeans", "spectral"])
def test_cluster(trees, here, run, method):
    printed = run("cluster", trees, "-k", 3, "--label", "kind", "--method", method, "--json")
    facts = json.loads(printed.out)
    assert sum(facts["sizes"]) == 30
    assert facts["error"] == 0.0  # the groups are far from each other
    assert 0.5 < facts["majority_error"] < 0.7
    header, *rows = rows_of(here / "clustering/clusters.csv")
    assert header[:3] == ["row", "kind", "cluster"]
    assert len({(row[1], row[2]) for row in rows}) == 3
    space = run_python_of(here / "clustering/report.html")
    assert [int(row[2]) for row in rows] == space["clusters"].tolist()
    printed = run("predict", "clustering/model.orthodrome", trees, "--json")
    assert [row["cluster"] for row in json.loads(printed.out)] == [int(row[2]) for row in rows]


@pytest.mark.parametrize("method", ["krrc", "perturbo", pytest.param("nested-spheres", marks=slow)])
def test_classify_by_folds(trees, here, run, method):
    printed = run("classify", trees, "--label", "kind", "--method", method, "--cv", 3, "--json")
    facts = json.loads(printed.out)
    assert facts["accuracy"] > 0.9
    header, *rows = rows_of(here / "classification/predictions.csv")
    assert header == ["row", "kind", "predicted"]
    right = np.mean([row[1] == row[2] for row in rows])
    assert facts["accuracy"] == pytest.approx(right, abs=0.01)  # folds of unlike sizes
    page = (here / "classification/report.html").read_text("utf-8")
    assert f"Accuracy {facts['accuracy']:.1%}" in page
    assert "true class" in page
    space = run_python_of(here / "classification/report.html")
    assert space["predicted"].tolist() == [row[2] for row in rows]
    assert space["accuracy"] == pytest.approx(right)


def test_classify_another_file_and_predict(trees, here, run):
    X, names = blobs(20, seed=1)
    # other order of columns, one more, and no labels
    new = write_csv(
        here / "new.csv",
        ["age", "note", "height", "girth", "shade"],
        [[x[2], "?", x[0], x[1], x[3]] for x in X],
    )
    printed = run("classify", trees, "--label", "kind", "--test", new, "--out", "model", "--quiet")
    assert printed.err == ""
    assert [row[1] for row in rows_of(here / "model/predictions.csv")[1:]] == names.tolist()
    printed = run("predict", "model/model.orthodrome", new, "--out", "found/labels.csv")
    assert printed.out.strip() == str((here / "found/labels.csv").resolve())
    assert [row[1] for row in rows_of(here / "found/labels.csv")[1:]] == names.tolist()


def test_compare(here, run, trees):
    rng = np.random.default_rng(0)
    plane = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 5))
    plane /= plane.std(axis=0)
    flat = write_csv(here / "flat.csv", list("abcde"), plane.tolist())
    found = json.loads(run("compare", flat, "--json", "--quiet", "--out", "flat").out)
    assert set(found["scores"]) == {"pca", "kpca", "kpga", "kpns", "robust"}
    assert found["recommendation"].startswith("Use PCA (embed --method pca). ")
    page = (here / "flat/report.html").read_text("utf-8")
    assert html.escape(found["recommendation"]) in page
    assert run_python_of(here / "flat/report.html")["coordinates"].shape == (50, 2)
    assert (found["best"], found["criterion"]) == ("pca", "neighbourhoods")
    assert found["scores"]["pca"] > 0.99
    printed = run("compare", trees, "--label", "kind", "--quiet", "--out", "trees")
    assert "accuracy of 5 nearest neighbours on held-out rows" in printed.out
    page = (here / "trees/report.html").read_text("utf-8")
    assert "Criterion: the accuracy of 5 nearest neighbours on held-out rows" in page


@pytest.fixture
def leaves(here):
    X, y = make_landmark_shapes(30, n_classes=2, random_state=0)
    X = X + 5.0  # in TPS files negative coordinates stand for missing landmarks
    ids = [f"leaf-{n}" for n in range(30)]
    write_tps(
        here / "leaves.tps", X, ids=ids, images=[f"{'AB'[c]}_{n}.jpg" for n, c in enumerate(y)]
    )
    write_csv(
        here / "kinds.csv",
        ["ID", "kind"],
        [[i, "AB"[c]] for i, c in zip(ids, y, strict=True)][::-1],
    )
    return "leaves.tps"


@pytest.mark.parametrize(
    "labels", [("--labels", "kinds.csv"), ("--label-regex", "([AB])_")], ids=["file", "regex"]
)
def test_shapes(leaves, here, run, labels):
    printed = run("classify", leaves, *labels, "--cv", 3, "--json", "--quiet")
    assert json.loads(printed.out)["accuracy"] > 0.8
    printed = run("predict", "classification/model.orthodrome", leaves)
    assert printed.out.splitlines()[1].startswith("leaf-0,")
    run("embed", leaves, *labels, "--quiet")
    page = (here / "embedding/report.html").read_text("utf-8")
    assert "VeroneseWhitney" in page
    assert ">Modes</h2>" in page
    run("embed", leaves, "--method", "kpns", "--quiet")  # has no pre-images
    assert ">Modes</h2>" not in (here / "embedding/report.html").read_text("utf-8")
    run("cluster", leaves, *labels, "-k", 2, "--quiet")
    assert "extrinsic means" in (here / "clustering/report.html").read_text("utf-8")


def test_links_draw_wireframes(leaves, here, run, monkeypatch):
    drawn = []
    for name in ("shapes", "shape_modes"):
        original = getattr(plots, name)

        def draw(*arguments, original=original, **options):
            drawn.append(options["links"])
            return original(*arguments, **options)

        monkeypatch.setattr(f"orthodrome.app.results.{name}", draw)
    regex = ("--label-regex", "([AB])_", "--quiet")
    (here / "links.csv").write_text('from;to\n1;2\n\n"2";10 # a comment\n')
    for command in ("embed", ("cluster", "-k", 2), "classify"):
        name, *more = [command] if isinstance(command, str) else command
        run(name, leaves, *more, *regex, "--links", "links.csv")
        assert drawn.pop().tolist() == [[0, 1], [1, 9]]
    run("embed", leaves, *regex)  # an outline
    assert drawn.pop() is None
    shuffled = read_tps(leaves).landmarks[:, [0, 5, 2, 7, 4, 9, 6, 1, 8, 3]]
    write_tps(here / "shuffled.tps", shuffled)
    run("embed", "shuffled.tps", "--quiet")
    assert len(drawn.pop()) == 0
    page = (here / "embedding/report.html").read_text("utf-8")
    assert "No lines are drawn, because lines in the order of the landmarks would cross" in page


def test_aligned_shapes(leaves, here, run):
    X, _ = make_landmark_shapes(12, n_classes=2, random_state=0)
    with pytest.warns(UserWarning, match="negative='keep'"):
        write_tps(here / "aligned.tps", X - X.mean(axis=1, keepdims=True))
    printed = run("embed", "aligned.tps")
    assert "note: Coordinates have both signs" in printed.err
    run("embed", "aligned.tps", "--keep-negative", "--quiet")
    printed = run("predict", "embedding/model.orthodrome", "aligned.tps", "--keep-negative")
    assert len(printed.out.splitlines()) == 13


def test_denoise(here, run):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("skimage")
    rng = np.random.default_rng(0)
    clean = np.kron(rng.integers(2, size=(4, 4)), np.ones((8, 8))) * 160 + 40
    noisy = np.clip(clean + 20 * rng.standard_normal(clean.shape), 0, 255).astype(np.uint8)
    image.fromarray(noisy).save(here / "noisy.png")
    printed = run("denoise", "noisy.png", "--json", "--quiet")
    assert 10 < json.loads(printed.out)["noise"][0] < 30
    with image.open(here / "denoised/cleaned.png") as picture:
        cleaned = np.asarray(picture, dtype=float)
    assert np.mean((cleaned - clean) ** 2) < 0.5 * np.mean((noisy - clean) ** 2)
    assert "What was removed" in (here / "denoised/report.html").read_text("utf-8")


def test_equal_rows(here, run):
    write_csv(here / "same.csv", ["a", "b"], [[1, 2]] * 20)
    printed = run("embed", "same.csv")
    assert "all rows are equal" in printed.err
    assert "area" not in printed.out
    printed = run("compare", "same.csv", code=1)
    assert "all equal" in printed.err
    facts = json.loads(run("cluster", "same.csv", "-k", 3, "--json", "--quiet").out)
    assert len(facts["sizes"]) == 3
    assert sum(facts["sizes"]) == 20


def test_rows_without_values_are_not_predicted(here, run):
    lines = ["a,b,kind", *(f"{i / 4},{i % 7},{'ash' if i < 20 else 'birch'}" for i in range(40))]
    (here / "data.csv").write_text("\n".join(lines))
    run("classify", "data.csv", "--label", "kind", "--quiet")
    (here / "new.csv").write_text("id,a,b\nx,3,\ny,,\nz,4,2\nw,NA,?\n")
    printed = run("predict", "classification/model.orthodrome", "new.csv", code=1)
    assert "line 3 (data row 2), line 5 (data row 4): all cells" in printed.err
    (here / "new.csv").write_text("id,a,b\nx,3,\nz,4,2\n")
    printed = run("predict", "classification/model.orthodrome", "new.csv")
    assert [line.split(",")[0] for line in printed.out.splitlines()] == ["row", "x", "z"]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--method", "kpns", "--kernel", "poly"), "Normalized("),
        (("--method", "kpns", "--sphere", "small"), "sphere=&#x27;small&#x27;"),
        (("--method", "robust", "--p", "1.5"), "p=1.5"),
        (("--sigma", "median", "--seed", 2**32 - 1), "sigma=&#x27;median&#x27;"),
        (("--columns", '"a, b",c,d",e'), "a, b"),
    ],
)
def test_options_reach_the_model(here, run, options, shown):
    file = write_labelled(here / "data.csv", *blobs(), ["a, b", "c", 'd"', "e", "kind"])
    (here / "embedding").mkdir()
    (here / "embedding/report.html").write_text("of an earlier run, to be replaced")
    run("embed", file, "--label", "kind", *options, "--quiet")
    assert shown in (here / "embedding/report.html").read_text("utf-8")
    printed = run("predict", "embedding/model.orthodrome", file)
    assert len(printed.out.splitlines()) == 31


# ---------------------------------------------------------------------- bad input

KIND = ("--label", "kind")
#: Command lines, the exit code, and words of the last line on stderr.
BAD = {
    "no file": (("embed", "none.csv"), 1, ["none.csv"]),
    "text column": (("embed", "trees.csv", "--text", "error"), 1, ["trees.csv", "kind", "--text"]),
    "text rule": (("embed", "trees.csv", "--text", "drop"), 1, ["--text drop", "onehot"]),
    "missing rule": (("embed", "trees.csv", "--missing", "estimate"), 1, ["--missing estimate"]),
    "standardize rule": (
        ("embed", "trees.csv", "--standardize", "maybe"),
        2,
        ["is not one of", "'auto', 'yes', 'no'"],
    ),
    "columns": (("embed", "trees.csv", "--columns", "a\nb"), 1, ["--columns"]),
    "sigma": (("embed", "trees.csv", *KIND, "--sigma", "wide"), 1, ["--sigma", "wide"]),
    "no bandwidth": (
        ("embed", "trees.csv", *KIND, "--kernel", "cosine", "--sigma", "1"),
        *(1, ["cosine", "--sigma"]),
    ),
    "no such kernel": (("embed", "trees.csv", *KIND, "--kernel", "gauss"), 1, ["gaussian"]),
    "no such option": (("embed", "trees.csv", *KIND, "--sphere", "great"), 1, ["kpga", "sphere"]),
    "kernel of tables": (("embed", "leaves.tps", "--kernel", "gaussian"), 1, ["veronese_whitney"]),
    "shape kernel": (
        ("embed", "trees.csv", *KIND, "--kernel", "veronese_whitney"),
        *(1, ["landmarks"]),
    ),
    "standard landmarks": (
        ("embed", "leaves.tps", "--standardize", "yes"),
        1,
        ["cannot be standardised"],
    ),
    "no variance": (("embed", "far.csv", "--standardize", "yes"), 1, ["far.csv, column 'b'"]),
    "links of a table": (("embed", "trees.csv", "--links", "far.csv"), 1, ["no landmarks"]),
    "three links": (
        ("embed", "leaves.tps", "--links", "trees.csv"),
        *(1, ["trees.csv, line 2", "not a pair of landmarks"]),
    ),
    "no such landmark": (
        ("embed", "leaves.tps", "--links", "links.txt"),
        *(1, ["links.txt, line 2: '3 11'", "called 1 to 10"]),
    ),
    "too many clusters": (("cluster", "trees.csv", *KIND, "-k", "31"), 1, ["30", "31"]),
    "one class": (("classify", "one.csv", *KIND), 1, ["one.csv", "'ash'"]),
    "no labels": (("classify", "trees.csv", "--columns", "age,shade"), 1, ["--label"]),
    "folds": (
        ("classify", "trees.csv", *KIND, "--cv", "40"),
        *(1, ["40 folds", "'ash (", "Use a smaller --cv, or --test"]),
    ),
    "one fold": (("classify", "trees.csv", *KIND, "--cv", "1"), 1, ["--cv=2 or more", "--cv=1"]),
    "single row": (("classify", "single.csv", *KIND), 1, ["elm (1)", "more rows"]),
    "both": (
        ("classify", "trees.csv", *KIND, "--cv", "3", "--test", "trees.csv"),
        *(1, ["--cv", "--test"]),
    ),
    "no label to test": (
        ("classify", "trees.csv", *KIND, "--test", "unlabelled.csv"),
        *(1, ["unlabelled.csv", "line 2", "kind"]),
    ),
    "few rows": (("compare", "holes.csv", "--columns", "height"), 1, ["at least four rows"]),
    "model of a table": (("predict", "model", "leaves.tps"), 1, ["fitted to a table"]),
    "model of landmarks": (("predict", "shapes", "trees.csv"), 1, ["fitted to landmarks"]),
    "foreign notes": (("predict", "foreign", "trees.csv"), 1, ["invalid notes", "'3'"]),
    "lacking column": (("predict", "model", "holes.csv"), 1, ["holes.csv", "no column 'age'"]),
    "out is a folder": (
        ("predict", "model", "trees.csv", "--out", "."),
        1,
        ["--out . is a folder"],
    ),
    "not a model": (("predict", "trees.csv", "trees.csv"), 1, ["trees.csv", "model"]),
    "small image": (("denoise", "small.png"), 1, ["small.png", "3 x 3", "--patch-size"]),
    "out is a file": (("embed", "trees.csv", *KIND, "--out", "trees.csv"), 1, ["trees.csv"]),
    "no such method": (("embed", "trees.csv", "--method", "tsne"), 2, ["is not one of", "kpga"]),
    "no components": (("embed", "trees.csv", "-q", "0"), 2, ["Error"]),
    "not a number": (("cluster", "trees.csv", "-k", "many"), 2, ["Error"]),
    "seed": (("classify", "trees.csv", "--seed", 2**32), 2, ["4294967295"]),
    "empty table": (("predict", "model", "trees.csv", "--out", ""), 2, ["the name is empty"]),
    "empty folder": (("embed", "trees.csv", "--out", ""), 2, ["the name is empty"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(trees, leaves, here, run, case):
    """One line that names what is wrong, an exit code, and nothing is written."""
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.zeros((3, 3), dtype=np.uint8)).save(here / "small.png")
    X, _ = blobs(20)
    columns = ["height", "girth", "age", "shade"]
    save(KernelPCA(2).fit(X), here / "model", notes={"columns": columns})
    save(KernelPCA(2), here / "shapes", notes={"kind": "shapes"})
    save(KernelPCA(2), here / "foreign", notes={"columns": 3})
    write_csv(here / "one.csv", ["a", "kind"], [[k, "ash"] for k in range(9)])
    write_csv(
        here / "single.csv", ["a", "kind"], [[k, "elm" if k == 0 else "ash"] for k in range(9)]
    )
    write_csv(here / "far.csv", ["a", "b"], [[k, "-1e300" if k % 2 else "1e300"] for k in range(9)])
    write_csv(here / "holes.csv", ["height", "girth"], [[1, 2], [3, ""], [4, 5]])
    write_csv(here / "unlabelled.csv", [*columns, "kind"], [[*X[0], ""]])
    (here / "links.txt").write_text("1 2\n3 11\n")
    before = sorted(path.name for path in here.iterdir())
    arguments, code, words = BAD[case]
    printed = run(*arguments, "--json", code=code)
    assert printed.out == ""
    if code == 1:
        line = printed.err.strip().splitlines()[-1]
        assert line.startswith("orthodrome: ")
    else:
        line = " ".join(printed.err.replace("│", " ").split())
    assert [word for word in words if word not in line] == []
    assert sorted(path.name for path in here.iterdir()) == before


OVERWRITING = {
    "a link to the file": ("embed", "link.csv", "--out", "w"),
    "a link to the folder": ("embed", "w/coordinates.csv", "--out", "folder"),
    "rows to test": ("classify", "trees.csv", "--test", "w/predictions.csv", "--out", "w"),
    "an image": ("denoise", "w/cleaned.png", "--out", "w"),
    "the model": ("predict", "w/model.orthodrome", "trees.csv", "--out", "w/model.orthodrome"),
}


@pytest.mark.parametrize("case", OVERWRITING)
def test_input_files_are_not_overwritten(here, run, monkeypatch, case):
    def read(*_, **__):
        raise AssertionError("it was read first")

    for name in ("app.inputs.read_data", "app.inputs.read_image", "persist.load"):
        monkeypatch.setattr(f"orthodrome.{name}", read)
    (here / "w").mkdir()
    (here / "folder").symlink_to("w")
    (here / "link.csv").symlink_to("w/coordinates.csv")
    for name in ("coordinates.csv", "clusters.csv", "predictions.csv", "model.orthodrome"):
        (here / "w" / name).write_text(name)
    for name in ("w/report.html", "w/cleaned.png", "trees.csv", "leaves.tps"):
        (here / name).write_text(name)
    before = {path: path.read_bytes() for path in here.rglob("*.*")}
    *arguments, out = OVERWRITING[case]
    error = run(*arguments, out, code=1).err
    target, source = re.search(r"--out \S+: (\S+) would be written over (\S+),", error).groups()
    assert f"--out {out}: " in error
    assert target.startswith(os.path.normpath(out))
    assert source in arguments
    assert os.path.samefile(source, target)
    assert {path: path.read_bytes() for path in here.rglob("*.*")} == before


ESCAPE = "\x1b]0;owned\x07\x9b31m"


@pytest.mark.parametrize(
    "arguments",
    [("embed", "named.csv"), ("info", "named.csv", "--label", f"kind{ESCAPE}")],
    ids=["hint", "info"],
)
def test_control_characters_of_files_are_escaped(here, run, arguments):
    X, names = blobs(30)
    header = [f"a{ESCAPE}", "b", "c", "d", f"kind{ESCAPE}"]
    write_labelled(here / "named.csv", X, [f"{name}{ESCAPE}" for name in names], header)
    printed = run(*arguments)
    text = printed.out + printed.err
    assert not set(text) & set("\x1b\x07\x9b")
    assert "\\x1b]0;owned\\x07\\x9b31m" in text
    if arguments[0] == "embed":
        assert f"or --label {f'kind{ESCAPE}'!r} for labels." in printed.err


# ---------------------------------------------------------------------- processes and pages


def test_an_interrupted_fit_leaves_nothing(trees, here, run, monkeypatch):
    def interrupted(*_, **__):
        signal.raise_signal(signal.SIGINT)

    # a shell that runs the tests in the background has them ignore the signal
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(KernelPCA, "fit", interrupted)
    arguments = ("embed", trees, "--label", "kind", "--method", "kpca", "--out", "made/deep")
    try:
        printed = run(*arguments, code=130)
    finally:
        signal.signal(signal.SIGINT, before)
    assert printed.out == ""
    assert printed.err.startswith("[  0%]")
    assert printed.err.endswith("orthodrome: interrupted\n")
    assert [path.name for path in here.iterdir()] == ["trees.csv"]


@pytest.fixture
def nasty(here):
    X, names = blobs(30)
    rows = [[*x, f"{name}{NASTY}"] for x, name in zip(X, names, strict=True)]
    return write_csv(here / "nasty.csv", [NASTY, "<b>", "%{x}", "d'\"", f"kind{NASTY}"], rows)


@pytest.mark.parametrize(
    "command",
    ["cluster", *(pytest.param(name, marks=slow) for name in ("embed", "classify", "compare"))],
)
def test_text_from_data_stays_text_on_pages(browser, nasty, here, run, command):
    more = ["-k", "3"] if command == "cluster" else []
    run(command, nasty, "--label", f"kind{NASTY}", "--out", "page", "--quiet", *more)
    with opened(browser, here / "page/report.html", width=400) as shown:
        alerts = []
        shown.page.on("dialog", lambda dialog: alerts.append(dialog) or dialog.dismiss())
        shown.page.wait_for_timeout(300)
        assert alerts == []
        assert shown.complaints == []
        assert external(shown.requests) == []
        assert "How to reproduce this page" in shown.page.locator("h2").all_inner_texts()
        assert shown.page.locator("script:text('alert')").count() == 0
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= 400


@pytest.mark.parametrize(
    ("command", "answer", "method", "keys"),
    [
        ("embed", "2 coordinates explain", "kernel principal geodesic", ["awate2014kernel"]),
        ("compare", "Use ", "with principal component analysis,", []),
    ],
)
def test_pages_begin_with_the_answer_and_can_be_cited(
    trees, here, run, command, answer, method, keys
):
    run(command, trees, "--label", "kind", "--out", "page", "--quiet")
    page = html.unescape((here / "page/report.html").read_text("utf-8"))
    assert answer in re.search(r'<p class="lead">(.*?)</p>', page)[1]
    assert re.search(r"</h2>\n<(\w+)", page)[1] == "figure"
    paper = page.split(">For your paper</h2>")[1].split("</section>")[0]
    assert method in paper
    assert re.findall(r"^(?:<.*>)?@\w+\{(\w+),$", paper, re.MULTILINE) == ["orthodrome", *keys]


def test_every_method_has_a_reference_that_exists():
    found = {results._key(method()) for method in models._METHODS.values()} - {""}
    assert found <= set(results.references())
    assert {name for _, name in results._NAMES.values()} - {""} <= set(results.references())


def test_folds_are_not_used_for_training(here, run):
    rng = np.random.default_rng(0)
    rows = [[*x, "ab"[k % 2]] for k, x in enumerate(rng.standard_normal((40, 3)))]
    file = write_csv(here / "noise.csv", [*"xyz", "kind"], rows)
    options = ("--label", "kind", "--sigma", "0.01", "--json", "--quiet")
    assert json.loads(run("classify", file, *options).out)["accuracy"] < 0.8


def test_small_classes_are_named(here, run):
    rows = [[k, "elm" if k < 2 else "ash"] for k in range(9)]
    file = write_csv(here / "small.csv", ["a", "kind"], rows)
    printed = run("classify", file, "--label", "kind", "--json").err
    assert "fewer rows than the 5 folds: 'elm (2)'" in printed
    assert "Use a smaller --cv, or --test." in printed
    assert "least populated" not in printed


def test_rows_of_an_unknown_class(trees, here, run):
    X, names = blobs(12, seed=1)
    names[:2] = "elm"
    test = write_labelled(here / "test.csv", X, names)
    printed = run("classify", trees, "--label", "kind", "--test", test, "--json")
    assert json.loads(printed.out)["accuracy"] == pytest.approx(10 / 12)
    assert "2 rows have labels that are not in the training data (elm)" in printed.err
    assert "elm" in (here / "classification/report.html").read_text("utf-8")


def test_a_model_that_fails_is_named(trees, here, run, monkeypatch):
    columns = ["height", "girth", "age", "shade"]
    save(KernelPCA(2).fit(blobs()[0]), here / "model", notes={"columns": columns})

    def fail(*_):
        raise IndexError("5 is out of bounds")

    monkeypatch.setattr("orthodrome.app.session.predicted_table", fail)
    monkeypatch.delenv("ORTHODROME_DEBUG", raising=False)
    printed = run("predict", "model", trees, "--quiet", code=1)
    words = f"orthodrome: model cannot predict {trees}: IndexError: 5 is out of bounds\n"
    assert printed.err == words
    monkeypatch.setenv("ORTHODROME_DEBUG", "1")
    with pytest.raises(IndexError):
        app.main(["predict", "model", trees])


def test_model_without_notes_takes_columns_in_order(here, run):
    X, _ = blobs()
    save(KernelPCA(2).fit(X), here / "model")
    table = write_csv(here / "a.csv", list("abcd"), X[:3])
    assert len(run("predict", "model", table).out.splitlines()) == 4
    narrow = write_csv(here / "b.csv", list("abc"), X[:3, :3])
    printed = run("predict", "model", narrow, code=1)
    assert "orthodrome: model cannot predict " in printed.err
    assert "X has 3 features, but KernelPCA is expecting 4 features" in printed.err


def test_new_specimens_are_treated_like_the_training_data(leaves, here, run):
    """Mirrored specimens are reflected, and missing landmarks estimated, also one at a time."""
    file = read_tps(here / "leaves.tps")
    X = file.landmarks.copy()
    X[3] = X[3] * [-1, 1] + [2 * X[3, :, 0].mean(), 0]
    write_tps(here / "mirrored.tps", X, ids=file.ids, images=file.images)
    options = ("--label-regex", "([A-Z])_", "--quiet")
    run("classify", "mirrored.tps", "--fix-mirrored", *options)
    for option, name in (((), "mirrored"), (("--fix-mirrored",), "mirrored, reflected")):
        run("embed", "mirrored.tps", *option, "--quiet")
        assert f"{name} (1)" in (here / "embedding/report.html").read_text("utf-8")
    X[5, 2] = np.nan
    one = X[[3, 5]]
    write_tps(here / "new.tps", one, ids=["mirrored", "incomplete"])
    printed = run("predict", "classification/model.orthodrome", "new.tps")
    assert "1 mirrored specimens were reflected: 'mirrored'" in printed.err
    assert "1 missing landmarks were estimated, of 'incomplete'" in printed.err
    whole = run("predict", "classification/model.orthodrome", "leaves.tps", "--quiet").out
    expected = [whole.splitlines()[row + 1].split(",")[1] for row in (3, 5)]
    assert [line.split(",")[1] for line in printed.out.splitlines()[1:]] == expected
