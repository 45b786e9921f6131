"""Tables of results: safe to open in a spreadsheet, and read back as they were."""

import csv
import io

import numpy as np
import pytest

from orthodrome.app import read_data
from orthodrome.app.inputs.tables import text_columns
from orthodrome.app.results import table_text

FORMULAS = [
    "=1+1",
    "+a",
    "-a",
    "@a",
    "-",
    "-inf",
    "=a,b",
    '="a"',
    "-1-1",
    "\t=a",
    "\r=a",
    "＝a",
    "'=1",
    "''-",
]
PLAIN = ["ash", "a=b", "'", "'ash", "1", "-1", "+1.5e3", "-.5", "ä", "a\rb", "a\nb", ""]


def cells_of(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_a_spreadsheet_would_run_is_quoted(text):
    header, row = cells_of(table_text([text, "label"], [[np.str_(text), text]]))
    assert header == [f"'{text}", "label"]
    assert row == [f"'{text}"] * 2


@pytest.mark.parametrize("text", PLAIN)
def test_other_text_is_written_as_it_is(text):
    assert cells_of(table_text([text, "label"], [[text, 0]])) == [[text, "label"], [text, "0"]]


def test_numbers_stay_numbers():
    values = [-1.5, np.float32(-0.5), -1, np.int64(-2), float("-inf"), True]
    assert cells_of(table_text(["a"], [values]))[1] == ["-1.5", "-0.5", "-1", "-2", "-inf", "True"]


@pytest.mark.parametrize("label", ["@kind", "kind"])
def test_a_table_is_read_back_as_it_was(tmp_path, label):
    path = tmp_path / "table.csv"
    texts = FORMULAS + PLAIN[:-1]  # an empty label is refused
    rows = [[text, text, -float(i)] for i, text in enumerate(texts)]
    path.write_text(table_text(["row", label, "-x"], rows), encoding="utf-8")
    read = read_data(path, label=label)
    assert read.columns == ("-x",)
    assert read.label_name == label
    assert list(read.ids) == read.labels.tolist() == texts
    np.testing.assert_array_equal(read.X[:, 0], -np.arange(len(texts)))
    # as a file of labels
    table, lines = text_columns(path)
    assert table.names == ("row", label, "-x")
    assert [cells[:2] for _, cells in lines] == [[text, text] for text in texts]
