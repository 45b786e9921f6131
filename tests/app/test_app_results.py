"""Models from options, results and their tables, parts of pages."""

import csv
import io
import warnings
from dataclasses import replace

import numpy as np
import pytest

from app_data import rows_of
from orthodrome.app.classification import check_same_columns
from orthodrome.app.embedding import TITLES, Comparison, MethodResult, compare_methods
from orthodrome.app.inputs import InputError, read_data
from orthodrome.app.models import LINEAR, Choice, make_model
from orthodrome.app.results import Work, table_text

SQUARE = rows_of(np.array([[0.0, 1.0], [2.0, 5.0], [3.0, 1.0], [7.0, 2.0]]))
LEAVES = rows_of(np.random.default_rng(0).normal(size=(4, 5, 2)), path="leaves.tps")

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


def test_shapes_in_three_dimensions_are_refused():
    with pytest.raises(ValueError, match=r"leaves\.tps has landmarks in three dimensions"):
        make_model(Choice("kpca"), replace(LEAVES, X=np.zeros((4, 5, 3))))


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


def compared(*scores, criterion="neighbourhoods", error=0.0):
    names = (LINEAR, "kpca", "kpns")
    results = [
        MethodResult(name, score, error, SQUARE.X, np.ones(3), 0.0)
        for name, score in zip(names, scores, strict=False)
    ]
    return Comparison(criterion, SQUARE, 2, results)


def test_recommendations():
    """The simplest method within one standard error of the best is recommended."""
    assert compared(0.5, 0.5, 0.5).best.method == LINEAR
    assert compared(0.5, 0.9, 0.9).best.method == "kpca"
    assert compared(0.5, 0.9, error=0.5).best.method == LINEAR
    assert compared(0.7, 0.75, 0.8, error=0.06).best.method == "kpca"
    assert "Worse by more than one standard error: PCA 0.100" in compared(0.1, 0.5).recommendation()


def scored(data, standardize=False):
    choice = Choice("kpca", standardize=standardize)
    return compare_methods(data, choice, Work(None, **dict.fromkeys(TITLES, 1.0)))


def test_a_bad_scale_is_not_rewarded():
    """The neighbours are those in the standardised table, even if a method does not use it."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    raw = scored(rows_of(X * [1e4, 1.0]))
    assert raw.criterion == "neighbourhoods"
    unit = scored(rows_of(X * [1e4, 1.0]), standardize=True)
    assert unit.results[0].score > 0.99
    assert raw.results[1].score < 0.6


def test_labels_decide_the_criterion():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 30)
    radius = np.where(y == "a", 1.0, 5.0) + 0.1 * rng.normal(size=60)
    directions = rng.normal(size=(60, 3))
    X = directions / np.linalg.norm(directions, axis=1, keepdims=True) * radius[:, None]
    data = replace(rows_of(X, columns=("a", "b", "c")), labels=y)
    found = scored(data)
    assert found.criterion == "accuracy"
    assert all(0.5 < each.score <= 1.0 for each in found.results)
    few = np.where(np.arange(60) < 4, "a", "b")
    for labels in (few, np.repeat("a", 60)):
        found = scored(replace(data, labels=labels))
        assert found.criterion == "neighbourhoods"
        assert "The labels were not used" in found.recommendation()
