"""Bandwidth rules against loops over pairs; weights are repetition."""

import itertools
from itertools import product

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from orthodrome.kernels import Gaussian, bandwidth, mean_squared_distance

RULES = ["mean", "median"]
DATA = np.random.default_rng(0).normal(size=(40, 5)) * [3, 1, 1, 0.5, 0.1] + 7


def brute_force(X, rule):
    """The scale from a Python loop over pairs."""
    if rule == "mean":
        squares = [np.sum((x - y) ** 2) for x, y in itertools.product(X, X)]
        return np.sqrt(np.mean(squares))
    return np.median([np.sqrt(np.sum((x - y) ** 2)) for x, y in itertools.combinations(X, 2)])


@pytest.mark.parametrize("rule", RULES)
def test_rule_equals_brute_force(rule):
    for n in (2, 3, 4, 39, 40):
        expected = brute_force(DATA[:n], rule)
        assert Gaussian(rule).fit(DATA[:n]).sigma_ == pytest.approx(expected, rel=1e-12)
    sigma = Gaussian(rule).fit(DATA).sigma_
    for scale in (1e-150, 1e-3, 1e3, 1e140):
        assert Gaussian(rule).fit(DATA * scale).sigma_ == pytest.approx(scale * sigma, rel=1e-12)
    exact = (DATA + 1e8).astype(np.longdouble)  # of the rounded numbers
    expected = float(2 * np.square(exact - exact.mean(axis=0)).mean(axis=0).sum())
    assert mean_squared_distance(DATA + 1e8) == pytest.approx(expected, rel=1e-12)
    narrow = Gaussian(rule).fit(DATA.astype(np.float32)).sigma_
    assert isinstance(narrow, float)
    assert narrow == pytest.approx(sigma, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(RULES),
    st.lists(st.integers(0, 4), min_size=2, max_size=12).filter(lambda w: sum(w) > 0),
    st.booleans(),
)
def test_weights_are_repetition(rule, weights, ties):
    X = DATA[: len(weights)]
    X = np.round(X) if ties else X
    weighted = scale_or_error(rule, X, weights)
    assert weighted == pytest.approx(scale_or_error(rule, np.repeat(X, weights, axis=0)), rel=1e-12)


def scale_or_error(rule, X, weights=None):
    """Return the scale, or -1 if more than half of the pairs coincide."""
    try:
        return Gaussian(rule).fit(X, sample_weight=weights).sigma_
    except ValueError as error:
        if "more than half of the pairs coincide" not in str(error):
            raise
        return -1.0


@pytest.mark.parametrize("rule", RULES)
def test_many_chunks_of_rows(rule):
    """Above the 4,096 rows and 65,536 pairs that are handled at once."""
    X = np.random.default_rng(1).normal(size=(5000 if rule == "mean" else 500, 3)) + 100
    expected = np.sqrt(2 * X.var(axis=0).sum()) if rule == "mean" else brute_force(X, rule)
    assert Gaussian(rule).fit(X).sigma_ == pytest.approx(expected, rel=1e-12)


# rows, weights, pairs drawn, tolerance: four standard errors of the quantile, or more
SAMPLED = {
    "plain": (400, None, 20_000, 0.02),
    "weighted": (400, np.random.default_rng(3).integers(0, 3, size=400), 20_000, 0.02),
    # a third of all pairs are copies of one of three rows
    "heavy rows": (200, np.r_[np.full(3, 100.0), np.ones(197)], 10_000, 0.1),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_the_median_of_many_rows_is_sampled(name, monkeypatch):
    n, weights, n_pairs, tolerance = SAMPLED[name]
    X = np.random.default_rng(2).normal(size=(n, 4))
    exact = Gaussian("median").fit(X, sample_weight=weights).sigma_
    monkeypatch.setattr(bandwidth, "_MAX_PAIRS", n_pairs)
    sampled = Gaussian("median").fit(X, sample_weight=weights).sigma_
    assert sampled != exact
    assert sampled == pytest.approx(exact, rel=tolerance)
    assert Gaussian("median").fit(X, sample_weight=weights).sigma_ == sampled


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
def test_data_without_extent_have_scale_one(rule, container):
    for n, value in product([1, 2, 3, 10, 100], [0.0, 0.1, 1 / 3, -7.7e5]):
        X = container(np.full((n, 2), value))
        kernel = Gaussian(rule).fit(X)
        assert kernel.sigma_ == 1.0, (n, value)
        np.testing.assert_array_equal(kernel(X), 1.0)
        weights = np.arange(1.0, n + 1)
        assert Gaussian(rule).fit(X, sample_weight=weights).sigma_ == 1.0, (n, value)


def test_a_median_of_zero_raises_if_points_differ():
    X = np.concatenate([np.zeros((75, 2)), 1000 * np.random.default_rng(0).random((25, 2))])
    with pytest.raises(ValueError, match="more than half of the pairs coincide"):
        Gaussian("median").fit(X)
    assert Gaussian("mean").fit(X).sigma_ > 100
