"""Models from options, results and their tables, parts of pages."""

import csv
import io
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

from orthodrome.app import embedding as comparison
from orthodrome.app.classification import check_same_columns
from orthodrome.app.embedding import MethodResult, recommendation, simplest_best
from orthodrome.app.inputs import Data, InputError, read_data
from orthodrome.app.models import LINEAR, Choice, make_model
from orthodrome.app.results import Work, table_text


def table(X, path="a.csv", columns=("a", "b")):
    ids = tuple(f"row {i + 1}" for i in range(len(X)))
    return Data(path, "table" if X.ndim == 2 else "shapes", X, columns, ids, None, None)


SQUARE = table(np.array([[0.0, 1.0], [2.0, 5.0], [3.0, 1.0], [7.0, 2.0]]))
LEAVES = table(np.random.default_rng(0).normal(size=(4, 5, 2)), "leaves.tps")

# ---------------------------------------------------------------------------- tables

FORMULAS = ["=1+1", "+a", "-a", "@a", "-", "-inf", "=a,b", '="a"', "-1-1", "\t=a", "\r=a", "＝a"]
FORMULAS += ["'=1", "''-"]
PLAIN = ["ash", "a=b", "'", "'ash", "1", "-1", "+1.5e3", "-.5", "ä", "a\rb", "a\nb", ""]


def cells_of(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("text", [*FORMULAS, *PLAIN])
def test_formulas_are_quoted(text):
    quoted = f"'{text}" if text in FORMULAS else text
    header, row = cells_of(table_text([text, "label"], [[np.str_(text), text]]))
    assert header == [quoted, "label"]
    assert row == [quoted] * 2


@pytest.mark.parametrize("label", ["@kind", "kind"])
def test_written_tables_are_read_back(tmp_path, label):
    pytest.importorskip("pandas")
    path = tmp_path / "table.csv"
    texts = FORMULAS + PLAIN[:-1]  # an empty label is refused
    rows = [[text, text, -float(i)] for i, text in enumerate(texts)]
    path.write_text(table_text(["row", label, "-x"], rows), encoding="utf-8")
    read = read_data(path, label=label)
    assert read.columns == ("-x",)
    assert read.label_name == label
    assert list(read.ids) == read.labels.tolist() == texts
    np.testing.assert_array_equal(read.X[:, 0], -np.arange(len(texts)))


# ---------------------------------------------------------------------------- models, columns


@pytest.mark.parametrize(
    ("choice", "data", "words"),
    [
        (Choice("tsne"), SQUARE, "Unknown method 'tsne'. Use one of "),
        (Choice("kpca", parameters={"k": 2}), SQUARE, "The method kpca has no parameter 'k'."),
        (
            Choice("kpca"),
            replace(LEAVES, X=np.zeros((4, 5, 3))),
            "leaves.tps has landmarks in three dimensions",
        ),
    ],
)
def test_choices_that_do_not_suit_the_data(choice, data, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        make_model(choice, data)


def test_number_of_columns_is_checked():
    check_same_columns(("a", "b"), replace(SQUARE, path="b.npy", columns=("x1", "x2")))
    with pytest.raises(InputError, match=r"b\.npy has 1 columns .* fitted to 2\."):
        check_same_columns(("a", "b"), replace(SQUARE, path="b.npy", columns=("x1",)))


def test_warnings_become_notes():
    work = Work(lambda *_: None, fit=1)
    with work.step("fit"):
        for category in (UserWarning, UserWarning, DeprecationWarning):
            warnings.warn(f"a\n {category.__name__}", category, stacklevel=1)
    assert work.notes == ["a UserWarning"]


# ---------------------------------------------------------------------------- results and pages


def compared(monkeypatch, *areas):
    monkeypatch.setattr(comparison, "neighborhood_area", lambda curve: curve[0])
    return [
        MethodResult(name, SQUARE.X, np.array([area, 1.0]), np.zeros(3), None, 0.0)
        for name, area in zip((LINEAR, "kpca", "kpga"), areas, strict=False)
    ]


def test_recommendations(monkeypatch):
    # the simplest of equals
    assert simplest_best(compared(monkeypatch, 0.5, 0.5, 0.5)).method == LINEAR
    assert simplest_best(compared(monkeypatch, 0.5, 0.9, 0.9)).method == "kpca"
    advice = "try more than 2 components (--components)."
    assert recommendation(compared(monkeypatch, 0.1, 0.2), 2).endswith(advice)
    assert advice not in recommendation(compared(monkeypatch, 0.1, 0.3), 2)
