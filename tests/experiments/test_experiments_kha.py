"""The experiments of the KHA paper: search for gains, runs, and counts."""

import math

import numpy as np
import pytest

from experiment_scripts import experiment_scripts
from orthodrome.eigen import hebbian
from real_data import load_or_skip


@pytest.fixture(scope="module")
def kha():
    with experiment_scripts("kha", "usps", "gains", "starts", "clustering") as scripts:
        yield scripts


@pytest.fixture(scope="module")
def problem(kha):
    """A small problem, of 90 points and 3 components."""
    X = np.random.default_rng(0).standard_normal((90, 6)) * np.array([5, 3, 2, 1, 1, 1])
    return kha.common.make_problem("small", X @ X.T, 3)


# ---------------------------------------------------------------------------- the search


def test_search_finds_the_minimum_from_either_side(kha):
    def error(x):
        return (math.log10(x) + 3.3) ** 2

    for start in (1e-7, 1e-3, 10.0):
        found = kha.common.local_search(error, start, reach=1)
        assert found.best == (0.0005,)
        assert found.error == error(0.0005)
        assert all(found.error <= other for other in found.tried.values())
        assert {(0.0002,), (0.001,)} <= set(found.tried)  # it has looked on both sides


def test_search_comes_down_from_where_all_diverge(kha):
    found = kha.common.local_search(lambda x: 1 / x if x < 2e-5 else math.inf, 1.0)
    assert found.best == (1e-5,)
    assert math.isinf(found.tried[(1.0,)])
    lost = kha.common.local_search(lambda x: math.nan, 1.0, most_steps=3)
    assert math.isinf(lost.error)


# ---------------------------------------------------------------------------- problems and runs


def test_curve_is_one_run_looked_at_now_and_then(kha, problem):
    errors = kha.common.curve(problem, (1, 4, 6), random_state=1)
    whole = hebbian(
        problem.operator, 3, n_passes=6, tol=0.0, polish=False, start="orthonormal", random_state=1
    )
    assert errors[-1] == pytest.approx(kha.common.excess_of(problem, whole.coefficients), rel=1e-9)
    assert errors[-1] < errors[0]
    assert kha.common.final_excess(problem, 4, random_state=1) == pytest.approx(errors[1], rel=1e-9)


def test_divergence_is_infinite_from_then_on(kha, problem):
    options = {"gain": "constant", "eta0": 100.0, "start": "paper", "random_state": 0}
    assert kha.common.curve(problem, (1, 2, 3), **options) == [math.inf] * 3
    assert kha.common.n_divergences(kha.common.run(problem, 2, **options)) == 1
    assert kha.common.n_divergences(kha.common.run(problem, 2, random_state=0)) == 0


def test_every_row_is_counted(kha, problem):
    counted = kha.starts.Counted(problem.operator)
    V = np.random.default_rng(1).standard_normal((90, 2))
    np.testing.assert_allclose(counted @ V, problem.operator.matrix @ V, rtol=1e-12)
    assert counted.sweeps == 1
    np.testing.assert_array_equal(counted.rows([3, 5, 3]), problem.operator.matrix[[3, 5, 3]])
    assert counted.n_rows == 90 + 3
    before = counted.n_rows
    hebbian(counted, 3, n_passes=2, tol=0.0, start="sparse", random_state=0)
    # at the very least the start and two passes
    assert counted.n_rows - before >= 4 * 3 + 2 * 90


def test_tuner_tunes_as_the_paper_does(kha, problem):
    size = kha.usps.Size(seeds=(0, 1), marks=(1, 4), rates=(0.0, 1.0))
    tuner = kha.usps.Tuner("small", problem, size)
    chosen = {(s.method, s.gains): s for s in tuner.choose()}
    assert chosen["smd", "hand"].eta0 == chosen["et", "hand"].eta0
    for key in (("constant", "hand"), ("t", "hand"), ("et", "hand")):
        rows = [r for r in tuner.rows if (r["method"], r["gains"]) == (key[0], "search, hand")]
        by_eta0 = {}
        for row in rows:
            by_eta0.setdefault(row["eta0"], []).append(row["excess"])
        means = {e: kha.common.geometric_mean(v) for e, v in by_eta0.items() if len(v) == 2}
        assert chosen[key].eta0 == min(means, key=means.get)
        assert len(by_eta0) >= 3
    assert {row["n_pass"] for row in tuner.rows} == {4}


def test_an_error_above_that_of_nothing_is_a_divergence(kha, problem):
    tuner = kha.usps.Tuner("small", problem, kha.usps.Size(seeds=(0,)))
    much, little = 1.01 * problem.error_of_nothing, 0.99 * problem.error_of_nothing
    assert tuner._failures([much, math.inf, 0.1]) == (2, pytest.approx(0.1))
    assert tuner._failures([little]) == (0, pytest.approx(little))


# ---------------------------------------------------------------------------- pages


def test_clustering_counts_passes_until_clusters_are_as_good(kha):
    clustering = kha.clustering
    exact = {"n_points": 9, "method": clustering.EXACT, "seed": 0, "n_pass": 0, "means_seed": 0}
    rows = [exact | {"excess": 0.0, "variation_of_information": 1.0}]

    def with_distances(*by_seed):
        return rows + [
            exact
            | {"method": "KHA/t", "seed": seed, "n_pass": n_pass, "excess": 0.1}
            | {"variation_of_information": distance}
            for seed, distances in enumerate(by_seed)
            for n_pass, distance in zip((5, 10, 30), distances, strict=True)
        ]

    # good, bad and good again counts from the last time on
    made = with_distances([1.0, 1.2, 1.04], [1.2, 0.9, 1.0], [1.2, 1.2, 1.2])
    found = clustering.Findings(made)
    np.testing.assert_array_equal(found.as_exact_after("KHA/t"), [30, 10, 31])
    row = {"where": "§5.3", "method": "KHA/t", "needs": "after more than", "passes": 30}
    assert clustering.needed(found, row).finding == "open"
    never = clustering.Findings(with_distances(*[[1.2] * 3] * 3))
    assert clustering.needed(never, row).finding == "holds"
    early = clustering.Findings(with_distances([1.0] * 3, [1.2, 1.0, 1.0], [1.0] * 3))
    against = clustering.needed(early, row)
    assert against.finding == "contradicted"
    assert against.ours == pytest.approx(np.mean([5, 10, 5]) - 30)
    within = clustering.needed(early, row | {"needs": "within", "passes": 20})
    assert (within.finding, within.ours) == ("holds", pytest.approx(21 - np.mean([5, 10, 5])))
    just = clustering.Findings(with_distances(*[[1.2, 1.0, 1.0]] * 3))
    assert clustering.needed(just, row | {"needs": "within", "passes": 10}).finding == "holds"
    assert clustering.needed(just, row | {"needs": "within", "passes": 9}).finding == "open"


# ---------------------------------------------------------------------------- the data


def test_first_hundred_of_each_digit(kha):
    usps = load_or_skip("usps")
    X = kha.common.usps_subset()
    assert X.shape == (1000, 256)
    assert X.dtype == np.float64
    first = [np.flatnonzero(usps.y_train == digit)[:100] for digit in range(10)]
    np.testing.assert_array_equal(X, usps.X_train[np.sort(np.concatenate(first))])
    assert kha.common.usps_subset(7).shape == (70, 256)
