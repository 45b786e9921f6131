"""Variance and classification in the experiments of the rkPNS paper."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from experiment_scripts import experiment_scripts
from orthodrome import KernelPCA, NestedSpheresClassifier
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.kernels import Linear, Normalized
from orthodrome.sphere import nested_spheres
from real_data import load_or_skip

SCRIPTS = ("variance", "classification")


@pytest.fixture(scope="module")
def rkpns():
    with experiment_scripts("rkpns", *SCRIPTS) as found:
        yield found


def test_kernels_are_those_of_the_paper(rkpns):
    X = np.random.default_rng(0).normal(size=(12, 3)) + 1.0
    products = (X @ X.T) ** 10
    expected = products / np.sqrt(np.outer(np.diag(products), np.diag(products)))
    kernel = rkpns.common.kernel_of(rkpns.common.POLYNOMIAL)
    np.testing.assert_allclose(kernel.fit(X)(X), expected, atol=1e-12)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    kernel = rkpns.common.kernel_of(rkpns.common.GAUSSIAN)
    np.testing.assert_allclose(kernel.fit(X)(X), np.exp(-squares / (2 * squares.mean())))


# ---------------------------------------------------------------------------- variance: runs


def test_variance_on_the_sphere_is_that_of_plain_methods(rkpns):
    v = rkpns.variance
    points = make_von_mises_fisher(60, concentration=8.0, random_state=0)
    values = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) ** 2
    curve, wrap, _ = v.fitted(v.FLAT, "linear", points)
    np.testing.assert_allclose(curve[:3], 100 * np.cumsum(values) / values.sum())
    assert math.isnan(wrap)
    curve, wrap, _ = v.fitted(v.GREAT, "linear", points)
    chain = nested_spheres(points, sphere="great")
    squares = np.mean(chain.scores(points) ** 2, axis=0)
    np.testing.assert_allclose(curve[:2], 100 * np.cumsum(squares) / squares.sum(), rtol=1e-6)
    np.testing.assert_allclose(curve[2:], 100)
    assert len(curve) == v.MOST_MODES
    assert wrap == pytest.approx(chain.wrap, rel=1e-6)


@pytest.fixture
def small_data(rkpns, monkeypatch):
    """Every set is 40 flowers, so that a run is quick."""
    flowers = load_or_skip("iris")
    part = SimpleNamespace(data=flowers.data[5::3][:40], target=flowers.target[5::3][:40])
    monkeypatch.setattr(rkpns.variance, "load", lambda name: part)
    return part.data


def test_a_run_takes_all_points_or_four_fifths(rkpns, small_data, monkeypatch):
    v, used = rkpns.variance, []
    fitted = v.fitted

    def spy(method, kernel, X):
        used.append(X)
        return fitted(method, kernel, X)

    monkeypatch.setattr(v, "fitted", spy)
    runs = [
        v.one_run("iris", features, v.GAUSSIAN, repeat)
        for features, repeat in ((v.RAW, 0), (v.RAW, 1), (v.SCALED, 2))
    ]
    assert [run.n_points for run in runs] == [40, 32, 32]
    for number in range(0, 9, 3):  # all methods have the same points
        assert used[number] is used[number + 1] is used[number + 2]
    np.testing.assert_array_equal(used[0], small_data)
    np.testing.assert_allclose(used[6].std(axis=0), 1)
    expected = 100 * np.cumsum(KernelPCA(20).fit(used[3]).explained_variance_ratio_)
    np.testing.assert_allclose(runs[1].captured[v.FLAT], expected)


# ---------------------------------------------------------------------------- digits: runs


def test_a_fifth_of_the_features_of_each_point_is_zeroed(rkpns):
    X = np.ones((50, 16))
    hidden = rkpns.classification.with_zeros(X, np.random.default_rng(0))
    assert set((hidden == 0).sum(axis=1)) == {3}
    assert len({tuple(row) for row in hidden}) > 40
    assert X.all()


def test_same_split_for_clean_and_zeroed_training(rkpns, monkeypatch):
    c = rkpns.classification
    made = np.random.default_rng(0).integers(1, 256, size=(90, 784))
    images = SimpleNamespace(data=made.astype(np.uint8), target=np.arange(90) % 10)
    monkeypatch.setattr(c, "load", lambda name: images)
    size = c.Size(n_train=20, n_test=30)
    clean, labels = c.drawn("mnist", False, 3, size)
    zeroed, same = c.drawn("mnist", True, 3, size)
    assert clean[c.TRAIN].shape == (20, 784)
    assert clean[c.CLEAN].max() == 1
    np.testing.assert_array_equal(labels[c.TRAIN], same[c.TRAIN])
    kept = zeroed[c.TRAIN] != 0
    assert set(kept.sum(axis=1)) == {784 - 157}
    np.testing.assert_array_equal(zeroed[c.TRAIN][kept], clean[c.TRAIN][kept])
    assert zeroed[c.TRAIN].sum() < 0.9 * clean[c.TRAIN].sum()
    for test in (c.CLEAN, c.ZEROED):
        np.testing.assert_array_equal(clean[test], zeroed[test])
    assert clean[c.ZEROED].sum() < 0.9 * clean[c.CLEAN].sum()
    other, _ = c.drawn("mnist", False, 4, size)
    assert np.any(other[c.CLEAN] != clean[c.CLEAN])


@pytest.fixture
def flowers(rkpns, monkeypatch):
    """The directions of flowers, on a sphere of three dimensions: no level is left out."""
    load_or_skip("iris")
    c = rkpns.classification
    monkeypatch.setattr(c, "kernel_of", lambda name: Normalized(Linear()))
    monkeypatch.setattr(c, "DIMENSIONS", (1, 2))
    monkeypatch.setattr(c, "POWERS", (1.0, 2.0))
    size = c.Size(("iris",), 60, 90)
    return c.drawn("iris", True, 0, size)


@pytest.mark.slow
def test_digits_are_told_apart_as_by_the_classifier(rkpns, flowers):
    c = rkpns.classification
    points, labels = flowers
    with rkpns.common.wraps_recorded():
        trained = c.Trained(points, labels, "any")
        trained.choose()
        for sphere in c.SPHERES:
            for kind, features in (("paper", "paper"), ("circle", "scores")):
                for power, p in (("p = 2", 2.0), ("p chosen", "cv")):
                    model = NestedSpheresClassifier(
                        2,
                        Normalized(Linear()),
                        p=p,
                        ps=c.POWERS,
                        features=features,
                        sphere=sphere,
                    ).fit(points[c.TRAIN], labels[c.TRAIN])
                    method = c.pns(sphere, kind, power)
                    assert trained.chosen.get((method, 2), 2.0) == model.p_
                    for test in (c.CLEAN, c.ZEROED):
                        error = 100 * (1 - model.score(points[test], labels[test]))
                        assert trained.errors[test][method, c.C, 2] == pytest.approx(error)


def test_differences_are_within_splits(rkpns, monkeypatch):
    c = rkpns.classification
    monkeypatch.setattr(c, "DIMENSIONS", (2,))
    method, flat, unit = c.pns("small", "paper"), c.FLAT, c.UNIT
    chosen = c.pns("small", "paper", "p chosen")
    outcomes = [
        c.Outcome(
            {(method, 1.0, 2): a, (flat, 1.0, 2): b, (unit, 1.0, 2): d}
            | {(chosen, 1.0, 2): e, (c.ROBUST, 1.0, 2): e + r},
            {(chosen, 2): p},
            {method: 1.5},
        )
        for a, b, d, e, r, p in (
            (10.0, 11.0, 9.0, 12.0, 3.0, 1.0),
            (30.0, 33.0, 29.0, 30.0, 5.0, 2.0),
        )
    ]
    rows = {row["method"]: row for row in c.summary({}, outcomes)}
    assert rows[method]["error"] == 20
    assert rows[method]["error_se"] == pytest.approx(10)
    assert (rows[method]["on_flat"], rows[method]["on_unit"]) == (-2, 1)
    assert rows[method]["on_flat_se"] == pytest.approx(1)
    assert rows[method]["wrap"] == 1.5
    assert rows[chosen]["on_twin"] == 1
    assert rows[chosen]["n_below_two"] == 1
    assert math.isnan(rows[method]["on_twin"])
    assert rows[chosen]["mean_on_robust"] == -4
    assert rows[chosen]["mean_on_robust_se"] == pytest.approx(1)
    assert math.isnan(rows[method]["mean_on_robust"])
