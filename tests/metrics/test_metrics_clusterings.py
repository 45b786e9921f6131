"""Variation of information: a metric on clusterings, with known values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import mutual_info_score

from orthodrome.metrics import variation_of_information
from real_data import load_or_skip

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


def naive(first, second, weights):
    """H(C, C') twice, less H(C) and H(C'): a table of counts, point by point."""
    table = np.zeros((6, 6))
    for i, j, weight in zip(first, second, weights, strict=True):
        table[i + 1, j + 1] += weight
    both = entropy(table.ravel())
    return 2 * both - entropy(table.sum(axis=0)) - entropy(table.sum(axis=1))


@settings(max_examples=200, deadline=None)
@given(three_clusterings())
def test_metric_axioms(case):
    (a, b, c), w = case
    distance = lambda x, y: variation_of_information(x, y, sample_weight=w)  # noqa: E731
    weights = np.ones(len(a)) if w is None else w
    n = np.count_nonzero(weights)
    assert distance(a, a) == 0.0
    assert distance(a, b) == pytest.approx(naive(a, b, weights), abs=CLOSE)
    assert distance(a, b) == pytest.approx(distance(b, a), abs=CLOSE)
    assert distance(a, c) <= distance(a, b) + distance(b, c) + CLOSE
    assert 0 <= distance(a, b) <= np.log(max(n, 1)) + CLOSE or w is not None
    kept = weights > 0
    pairs = {(i, j) for i, j in zip(a[kept], b[kept], strict=True)}
    same = len(pairs) == len(set(a[kept])) == len(set(b[kept]))
    assert (distance(a, b) == 0) == same


@settings(max_examples=60, deadline=None)
@given(three_clusterings())
def test_names_and_order_do_not_matter_and_weights_are_repetition(case):
    (a, b, _), w = case
    expected = variation_of_information(a, b, sample_weight=w)
    renamed = np.array(["u", "v", "w", "x", "y", "z"])[a]
    assert variation_of_information(renamed, b, sample_weight=w) == pytest.approx(expected)
    back = None if w is None else w[::-1]
    assert variation_of_information(a[::-1], b[::-1], sample_weight=back) == pytest.approx(
        expected, abs=CLOSE
    )
    if w is not None:
        copies = np.repeat(np.arange(len(a)), w.astype(int))
        assert variation_of_information(a[copies], b[copies]) == pytest.approx(expected, abs=CLOSE)


def test_known_values():
    n = 12
    assert variation_of_information(np.zeros(n), np.arange(n)) == pytest.approx(np.log(n))
    # independent clusterings of 3 and 4: the sum of both entropies
    assert variation_of_information(np.arange(n) % 3, np.arange(n) % 4) == pytest.approx(np.log(12))
    # a cluster of half the points cut in half (Meilă: the entropy of the cut times its share)
    assert variation_of_information([0, 0, 1, 1], [0, 0, 1, 2]) == pytest.approx(np.log(2) / 2)


def test_against_the_mutual_information_of_scikit_learn():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 7, size=(2, 500))
    expected = entropy(np.bincount(a)) + entropy(np.bincount(b)) - 2 * mutual_info_score(a, b)
    assert variation_of_information(a, b) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("first", "second", "weights", "message"),
    [
        ([0, 1], [0, 1, 1], None, "inconsistent numbers of samples"),
        ([], [], None, "at least one point"),
        ([[0, 1], [1, 0]], [0, 1], None, "1d array|1D array"),
        ([0, 1], [0, 1], [1.0], "sample_weight of variation_of_information must have shape"),
        ([0, 1], [0, 1], [1.0, -1.0], "must not be negative"),
    ],
)
def test_refusals(first, second, weights, message):
    with pytest.raises(ValueError, match=message):
        variation_of_information(first, second, sample_weight=weights)


def test_random_labels_of_usps():
    """KHA §5.3 has 4.54 for random performance; the entropies of both clusterings add up."""
    y = load_or_skip("usps").target
    guesses = np.random.default_rng(0).integers(0, 10, size=len(y))
    expected = entropy(np.bincount(y)) + np.log(10)
    assert variation_of_information(y, guesses) == pytest.approx(expected, abs=0.02)
    assert variation_of_information(y, guesses) == pytest.approx(4.56, abs=0.02)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_labels_are_refused(missing):
    with pytest.raises(ValueError, match="labels_pred has 2 missing labels, the first at 1"):
        variation_of_information([0, 1, 1], [0, missing, missing])
    with pytest.raises(ValueError, match="labels_true has 1 missing labels, the first at 0"):
        variation_of_information(np.array([missing, "a"], dtype=object), [0, 1])


def test_labels_of_several_types_are_refused():
    with pytest.raises(ValueError, match="labels_true must have labels of one type"):
        variation_of_information(np.array([1, "a"], dtype=object), [0, 1])
