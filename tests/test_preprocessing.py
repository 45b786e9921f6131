"""Tables with text, dates, identifiers and missing cells become numbers."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from orthodrome import KernelPCA
from orthodrome.persist import load, save
from orthodrome.preprocessing import TableCleaner

pandas = pytest.importorskip("pandas")

N = 30


def frame(seed=0):
    random = np.random.default_rng(seed)
    girth = random.normal(50, 9, N)
    girth[[3, 8]] = np.nan
    return pandas.DataFrame(
        {
            "tree": [f"tree {i}" for i in range(N)],
            "id": random.permutation(10 * N)[:N],
            "number": np.arange(5, 5 + N),
            "year": random.integers(1990, 2020, N),
            "planted": [f"{1990 + i % 20}-03-{i % 28 + 1:02}" for i in range(N)],
            "kind": random.choice(["ash", "oak", "elm"], N),
            "height": random.normal(9, 2, N).round(2).astype(str),
            "girth": girth,
            "healthy": random.random(N) < 0.5,
            "country": "here",
            "altitude": 7.0,
            "remark": [None] * N,
        }
    )


KINDS = [
    *("identifier", "identifier", "identifier", "date", "date", "text", "number", "number"),
    *("number", "constant", "constant", "empty"),
]


@pytest.mark.parametrize("missing", ["mean", "median"])
def test_columns_against_scikit_learn(missing):
    table = frame()
    cleaner = TableCleaner(missing=missing, text="onehot").fit(table)
    assert cleaner.kinds_ == KINDS
    numbers = table[["height", "girth", "healthy"]].astype(float)
    expected = np.hstack(
        [
            OneHotEncoder(sparse_output=False).fit_transform(table[["kind"]]),
            SimpleImputer(strategy=missing).fit_transform(numbers),
        ]
    )
    np.testing.assert_allclose(cleaner.transform(table), expected, rtol=1e-14)
    names = ["kind=ash", "kind=elm", "kind=oak", "height", "girth", "healthy"]
    assert cleaner.get_feature_names_out().tolist() == names


def test_new_rows_are_treated_like_the_training_data():
    table = frame()
    cleaner = TableCleaner(text="onehot").fit(table)
    new = table.iloc[:2].drop(columns=["tree", "remark"])
    new = new[new.columns[::-1]].assign(kind=["yew", None], height=[" NA ", "9.5"], extra=1)
    found = cleaner.transform(new)
    np.testing.assert_array_equal(found[:, :3], 0)
    assert found[:, 3].tolist() == [np.median(table["height"].astype(float)), 9.5]
    with pytest.raises(ValueError, match="no column 'girth'"):
        cleaner.transform(new.drop(columns="girth"))
    with pytest.raises(ValueError, match="Row 1, column 'height': 'tall' is not a number"):
        cleaner.transform(new.assign(height=["1", "tall"]))


def test_all_numbers_if_columns_were_chosen():
    columns = ["id", "year", "altitude", "girth"]
    cleaner = TableCleaner(choose_columns=False).fit(frame()[columns])
    assert cleaner.get_feature_names_out().tolist() == columns


def test_constants_rather_than_nothing():
    np.testing.assert_array_equal(TableCleaner().fit_transform([[1.0, 2], [1, 2]]), [[1, 2]] * 2)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (frame()[["kind", "girth"]], {"text": "error"}, "Column 'kind' holds text.*onehot"),
        (frame()[["kind", "tree"]], {}, r"No column .*'kind' \(text\), 'tree' \(identifier\)"),
        (frame()[["girth"]], {"missing": "error"}, "Row 3, column 'girth': the value is missing"),
        (np.array([[1.0], [np.inf]]), {}, "Row 1, column 'x0': the value is infinite"),
        (np.eye(2), {"missing": "drop"}, "missing of TableCleaner must be one of"),
        (np.eye(2), {"text": "encode"}, "text of TableCleaner must be one of"),
    ],
)
def test_what_cannot_be_used(table, options, message):
    with pytest.raises(ValueError, match=message):
        TableCleaner(**options).fit_transform(table)


def test_saved_in_a_pipeline(tmp_path):
    table = frame()
    model = make_pipeline(TableCleaner(text="onehot"), StandardScaler(), KernelPCA(2)).fit(table)
    path = tmp_path / "model.orthodrome"
    save(model, path)
    again = load(path)
    np.testing.assert_array_equal(again.transform(table[:5]), model.transform(table[:5]))
    assert clone(again[0]).get_params() == model[0].get_params()


def test_measurements_with_names_of_identifiers_and_dates():
    """Repeated whole numbers are no identifiers, and large ones no years."""
    table = pandas.DataFrame({"row": [1, 2, 3, 1, 2, 3] * 2, "year": np.arange(12) * 4000 + 1600})
    assert TableCleaner().fit(table).kinds_ == ["number", "number"]
