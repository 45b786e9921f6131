"""Distances of clusterings: metrics, with known values and slow twins."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from orthodrome.metrics import clustering_error, variation_of_information

# distances are sums of at most 30 terms below log 30
CLOSE = 1e-13


def labels(n):
    return hnp.arrays(np.int64, n, elements=st.integers(-1, 4))


@st.composite
def three_clusterings(draw):
    n = draw(st.integers(1, 30))
    weights = draw(hnp.arrays(np.float64, n, elements=st.integers(0, 5).map(float)))
    weights[0] += 1
    return [draw(labels(n)) for _ in "abc"], draw(st.sampled_from([None, weights]))


def entropy(counts):
    p = counts[counts > 0] / counts.sum()
    return -(p @ np.log(p))


def table_of(first, second, weights):
    """Counts of the pairs of labels, point by point."""
    table = np.zeros((6, 6))
    for i, j, weight in zip(first, second, weights, strict=True):
        table[i + 1, j + 1] += weight
    return table


def naive_information(table):
    """H(C, C') twice, less H(C) and H(C')."""
    return 2 * entropy(table.ravel()) - entropy(table.sum(axis=0)) - entropy(table.sum(axis=1))


# every way to give the labels -1, …, 4 of one clustering to those of the other
MATCHINGS = np.array(list(itertools.permutations(range(6))))


def naive_error(table):
    """The least share of misplaced points over all matchings, one after the other."""
    return 1 - table[np.arange(6), MATCHINGS].sum(axis=1).max() / table.sum()


both = pytest.mark.parametrize(
    ("function", "naive", "most"),
    [
        (variation_of_information, naive_information, lambda n: np.log(n) + CLOSE),
        (clustering_error, naive_error, lambda n: 1 - 1 / n + CLOSE),
    ],
    ids=["information", "error"],
)


@both
@settings(max_examples=60, deadline=None)
@given(case=three_clusterings(), order=st.permutations(range(6)))
def test_metrics_equal_the_naive_ones(function, naive, most, case, order):
    (a, b, c), w = case
    distance = lambda x, y, w=w: function(x, y, sample_weight=w)  # noqa: E731
    weights = np.ones(len(a)) if w is None else w
    kept = weights > 0
    found = distance(a, b)
    assert found == pytest.approx(naive(table_of(a, b, weights)), abs=CLOSE)
    assert distance(a, a) == 0.0
    assert distance(b, a) == pytest.approx(found, abs=CLOSE)
    assert distance(a, c) <= found + distance(b, c) + CLOSE
    assert found >= 0
    assert found <= most(len(a)) or w is not None
    pairs = set(zip(a[kept], b[kept], strict=True))
    assert (found == 0) == (len(pairs) == len(set(a[kept])) == len(set(b[kept])))
    # names and order do not matter, and weights are repetition
    renamed = np.array(["u", "v", "w", "x", "y", "z"])[order][a]
    back = None if w is None else w[::-1] / 7
    assert distance(renamed[::-1], b[::-1], back) == pytest.approx(found, abs=CLOSE)
    if w is not None:
        copies = np.repeat(np.arange(len(a)), w.astype(int))
        assert distance(a[copies], b[copies], None) == pytest.approx(found, abs=CLOSE)


NAN = float("nan")
DATES = np.array(["2020-01-01", "NaT"], dtype="datetime64[D]")


INVALID = [
    ([0, 1], [0, 1, 1], None, "inconsistent numbers of samples"),
    ([], [], None, "{owner} needs at least one point"),
    ([[1.0], [1.0, 2.0]], [0, 1], None, "labels_true must have one label per point"),
    ([0, 1], [0, 1], [1.0], "sample_weight of {owner} must have shape"),
    ([0, 1, 1], [0, NAN, NAN], None, "labels_pred has 2 missing labels, the first at 1"),
    (np.array([NAN, "a"], dtype=object), [0, 1], None, "labels_true has 1 missing labels"),
    ([0, 1], DATES, None, "labels_pred has 1 missing labels, the first at 1"),
    (np.array([1, "a"], dtype=object), [0, 1], None, "labels_true .* can be sorted"),
]


@pytest.mark.parametrize("distance", [variation_of_information, clustering_error])
def test_invalid_input(distance):
    for first, second, weights, message in INVALID:
        with pytest.raises(ValueError, match=message.format(owner=distance.__name__)):
            distance(first, second, sample_weight=weights)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="labels_true has 1 missing labels, the first at 1"):
        distance(pandas.Series(["x", None], dtype="string"), [1, 0])


def test_known_errors():
    n = 12
    # one cluster of all: all but the largest class; each point alone: all but one per class
    assert clustering_error([0] * 5 + [1] * 7, np.zeros(n)) == 5 / 12
    assert clustering_error([0] * 5 + [1] * 7, np.arange(n)) == 10 / 12
    # the matching that begins with the largest cell, 4, ends with 4 in place; the best has 3 + 3
    true, clusters = [0] * 7 + [1] * 3, [0] * 4 + [1] * 3 + [0] * 3
    assert clustering_error(true, clusters) == 4 / 10
    # a cluster that is best for both classes goes to one of them only: no purity
    assert clustering_error([0, 0, 1, 1], [0, 0, 0, 0]) == 0.5
