"""Laws of Lloyd's iteration: naive versions, descent, means, empty clusters, ties."""

import numpy as np
import pytest

from laws_cluster import same_partition
from laws_kmeans import cloud, every_kind, geometry, naive_hyperspherical_k_means, random_labels
from laws_sphere import DTYPES, cap, slow_gradient, unit
from orthodrome._core.status import Status
from orthodrome.gram import DenseGram
from orthodrome.kernels import Gaussian
from orthodrome.sphere import karcher_mean
from orthodrome.sphere import lloyd as module
from orthodrome.sphere.lloyd import Centers, GeodesicCenters, lloyd


def run_of(centers, labels, k, max_iter=300):
    return lloyd(centers, [labels], k, max_iter=max_iter)[0]


def points_on_a_sphere(n=80, d=4, seed=0, dtype=np.float64):
    """Unit vectors, most of them within a hemisphere."""
    rng = np.random.default_rng(seed)
    return unit(rng.standard_normal((n, d)) + 0.8).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_intrinsic_centers_equal_naive_k_means_in_coordinates(dtype):
    groups = [cap(20, 4, 0.6, seed) for seed in (1, 2, 3)]
    Y = np.concatenate(groups).astype(dtype)
    w = np.random.default_rng(1).uniform(0.5, 2, len(Y))
    start = random_labels(len(Y), 3, seed=5)
    run = run_of(GeodesicCenters(DenseGram(Y @ Y.T), w), start, 3)
    double = Y.astype(np.float64)
    labels, means, inertia = naive_hyperspherical_k_means(unit(double), start, 3, w)
    tol = 1e-8 if dtype is np.float64 else 1e-3
    np.testing.assert_array_equal(run.labels, labels)
    np.testing.assert_allclose(run.centers.coefficients.T @ double, means, rtol=0, atol=tol)
    assert run.inertia == pytest.approx(inertia, rel=tol)
    for seed in range(4):  # no naive iteration leads away from the end
        Y = points_on_a_sphere(seed=seed)
        run = run_of(GeodesicCenters(DenseGram(Y @ Y.T), np.ones(80)), random_labels(80, 5), 5)
        labels, means, inertia = naive_hyperspherical_k_means(Y, run.labels, 5)
        np.testing.assert_array_equal(run.labels, labels)
        np.testing.assert_allclose(run.centers.coefficients.T @ Y, means, rtol=0, atol=1e-8)


@pytest.mark.filterwarnings("ignore:.*a quarter of a great circle or more:UserWarning")
@pytest.mark.parametrize("seed", range(20))
def test_gradients_of_intrinsic_means_vanish(seed):
    """Also where labels change late, when the gradients were already small."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(50, 250)), int(rng.integers(2, 9))
    if seed % 2:
        Y = points_on_a_sphere(n, int(rng.integers(2, 6)), seed)
        K = Y @ Y.T
    else:
        K = Gaussian(sigma=[0.3, 1.0, 3.0][seed % 3]).fit(X := cloud(n, seed=seed))(X)
    w = rng.uniform(0.2, 2, n)
    run = run_of(GeodesicCenters(DenseGram(K), w), rng.integers(0, k, n), k)
    assert run.status is Status.CONVERGED
    assert run.centers.gradient_norms.max() <= 1e-10
    lifted = np.linalg.cholesky(K + 1e-12 * np.eye(n)) if seed % 2 == 0 else Y
    for c in range(k):
        members = run.labels == c
        mean = run.centers.coefficients[:, c] @ lifted
        gradient = slow_gradient(lifted[members], w[members] / w[members].sum(), mean)
        assert np.linalg.norm(gradient) <= 1e-8
        found = karcher_mean(DenseGram(K[np.ix_(members, members)]), w[members], tol=1e-12)
        np.testing.assert_allclose(found.point @ lifted[members], mean, rtol=0, atol=1e-7)


@pytest.mark.parametrize("most", [1, 400, 2**24])
@every_kind
def test_starts_together_equal_single_starts(kind, most, monkeypatch):
    X, k, entries = cloud(60), 4, []
    centers = geometry(kind, X)
    starts = [random_labels(len(X), k, seed) for seed in range(5)]
    kept = [start.copy() for start in starts]
    alone = [run_of(centers, start, k) for start in starts]
    monkeypatch.setattr(module, "_MAX_ENTRIES", most)
    together = lloyd(centers, starts, k, max_iter=300, callback=entries.append)
    assert len({run.n_iter for run in alone}) > 1
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        assert one.inertia == pytest.approx(other.inertia, rel=1e-12)
        assert (one.n_iter, one.status) == (other.n_iter, other.status)
    np.testing.assert_array_equal(starts, kept)  # they are the caller's
    if most == 2**24:  # all at once
        assert [entry["n_iter"] for entry in entries] == list(range(1, 1 + len(entries)))
        assert entries[-1]["n_done"] == entries[-1]["n_runs"] == 5


STARTS = {
    "all in one": lambda n: np.zeros(n, dtype=np.intp),
    "all in the last": lambda n: np.full(n, 4),
    "three of five": lambda n: np.arange(n) % 3,
    "a single point": lambda n: np.append(np.zeros(n - 1, dtype=np.intp), 3),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
@every_kind
def test_empty_clusters_are_filled(kind, start):
    X = cloud(50)
    run = run_of(geometry(kind, X), start(len(X)), 5)
    assert set(run.labels) == set(range(5))
    inertias = [entry["inertia"] for entry in run.history]
    assert np.all(np.diff(inertias) <= 1e-12 * inertias[0])
    assert run.status is Status.CONVERGED


def test_antipodal_points():
    """Two caps about opposite poles, as one cluster and as two."""
    top = cap(15, 3, 0.4)
    Y = np.concatenate([top, -top])
    start = random_labels(30, 2)
    run = run_of(GeodesicCenters(DenseGram(Y @ Y.T), np.ones(30)), start, 2)
    assert same_partition(run.labels, np.repeat([0, 1], 15))
    with pytest.raises(ValueError, match=r"cluster cancel, as antipodal .* another init"):
        run_of(GeodesicCenters(DenseGram(Y @ Y.T), np.ones(30)), np.zeros(30, dtype=np.intp), 1)


def test_inner_products_beyond_one_are_refused():
    K = np.array([[1.0, 0.99, 0.99], [0.99, 1.0, -0.5], [0.99, -0.5, 1.0]])
    with pytest.raises(ValueError, match=r"is 1\.98, more than 1 .*not positive definite"):
        run_of(GeodesicCenters(DenseGram(K), np.ones(3)), np.array([1, 0, 0]), 2)


@every_kind
def test_points_that_coincide_leave_clusters_empty(kind):
    X = np.repeat([[0.0, 0.0], [1.0, 2.0]], 4, axis=0)
    for start in (np.arange(8) // 2, np.arange(8) // 4, np.zeros(8, dtype=np.intp)):
        run = run_of(geometry(kind, X), start, 4)
        assert run.status is Status.CONVERGED
        assert run.n_iter < 20
        assert run.inertia == pytest.approx(0, abs=1e-12)
        assert not set(run.labels[:4]) & set(run.labels[4:])


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_tolerance_it_ends_at_rounding(monkeypatch, dtype):
    monkeypatch.setattr(module, "GRADIENT_TOL", -1.0)
    Y = points_on_a_sphere(dtype=dtype)
    run = run_of(GeodesicCenters(DenseGram(Y @ Y.T), np.ones(80)), random_labels(80, 3), 3)
    assert run.status.converged
    assert run.n_iter < 100
    for label in range(3):
        own = unit(Y[run.labels == label].astype(np.float64))
        mean = unit(run.centers.coefficients[:, label] @ Y.astype(np.float64))
        p = np.full(len(own), 1 / len(own))
        assert np.linalg.norm(slow_gradient(own, p, mean)) < (1e-7 if dtype == np.float64 else 1e-3)


class Oscillating(Centers):
    """Two centres that change places for ever, without gain."""

    weights, rounding, turns = np.ones(4), 1e-12, 0

    def squared_from(self, chosen):
        raise NotImplementedError

    def inertia(self, run):
        return 1.0

    def advance(self, runs):
        self.turns += 1
        for run in runs:
            run.squared = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
            run.squared[3, self.turns % 2] = 0.4
            run.settled = True


def test_labels_that_oscillate_without_gain_end_the_run():
    run = run_of(Oscillating(), np.array([0, 0, 1, 0]), 2, max_iter=100)
    assert run.status is Status.ROUNDING
    assert run.n_iter < 5
