"""The experiment of the KRRC paper: measures, splits and the search for parameters."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from experiment_scripts import experiment_scripts
from real_data import load_or_skip


@pytest.fixture(scope="module")
def krrc():
    with experiment_scripts("krrc", "passiflora") as found:
        yield found


def test_measures_are_those_of_the_paper(krrc):
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=60)
    predicted = np.where(rng.random(60) < 0.7, y, rng.integers(4, size=60))
    counts = confusion_matrix(y, predicted)
    true = np.diag(counts)
    false_positive, false_negative = counts.sum(axis=0) - true, counts.sum(axis=1) - true
    precision, recall = true / (true + false_positive), true / (true + false_negative)
    p, r = precision.mean(), recall.mean()
    expected = {
        "precision": p,
        "recall": r,
        "f1": 2 * p * r / (p + r),
        "f1_classes": np.mean(2 * precision * recall / (precision + recall)),
        "accuracy": np.mean((60 - false_positive - false_negative) / 60),
    }
    assert krrc.passiflora.measured(y, predicted) == pytest.approx(expected)


def test_split_is_sixty_percent_of_each_class_and_the_draw_is_within(krrc):
    load_or_skip("passiflora")
    X, y = krrc.passiflora.leaves()
    split = krrc.passiflora.Split.of(X, y, 10, 3)
    assert not set(split.train) & set(split.test)
    assert len(split.train) + len(split.test) == len(y) == 3319
    for label in np.unique(y):
        whole = np.sum(y == label)
        assert np.sum(y[split.train] == label) == round(0.6 * whole)
        assert np.sum(y[split.drawn] == label) == 10
    assert set(split.drawn) < set(split.train)
    assert set(split.rest) == set(split.train) - set(split.drawn)
    again = krrc.passiflora.Split.of(X, y, 10, 4)
    assert not np.array_equal(split.train, again.train)


def test_search_takes_what_the_rest_says(krrc):
    class Constant:
        def __init__(self, penalty):
            self.penalty = penalty

        def fit(self, X, y):
            assert len(y) == 2
            return self

        def score(self, X, y):
            assert len(y) == 3
            return -abs(self.penalty - 3)

        def predict(self, X):
            return np.full(len(X), self.penalty)

    split = krrc.passiflora.Split(np.arange(5), np.arange(5, 9), np.arange(2), 1, 0)
    run = krrc.passiflora.searched({"penalty": (2.0, 2.9, 5.0)}, Constant)
    X = np.random.default_rng(0).normal(size=(9, 8))
    predicted, chosen = run(X, np.zeros(9), split)
    assert chosen == {"penalty": 2.9}
    assert list(predicted) == [2.9] * 4
