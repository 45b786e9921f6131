"""Mixtures on the sphere against naive densities and updates."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.special
from sklearn.mixture import GaussianMixture

from laws_mixture import (
    KINDS,
    cap,
    every_kind,
    every_update,
    matrices,
    naive_frame,
    naive_log_densities,
    naive_memberships,
    naive_tangents,
    one_hot,
    some_mixture,
    transported,
    unit,
)
from orthodrome import KernelPCA, sphere
from orthodrome.kernels import Linear
from orthodrome.metrics import clustering_error
from orthodrome.rows import ArrayRows, DaskRows, as_rows
from orthodrome.sphere import mixture as room
from orthodrome.sphere.mixture import (
    COVARIANCES,
    Cloud,
    Mixture,
    estimate_covariances,
    scatters_of,
    tangent_frame_at,
)


def expectation_maximization(points, memberships, weights, *, kind="full", **options):
    """EM from memberships to begin with."""
    share = 1 / weights.sum()
    first = room.first_mixture(
        points, memberships * weights * share, kind, options["floor"], unit_mass=share
    )
    cloud = Cloud(ArrayRows.of(points).zip(weights=weights))
    return room.expectation_maximization(cloud, first, **{"mean_update": "karcher"} | options)


def mean_gradient(points, shares, mixture):
    """The gradients of Σ P d² with respect to the means, from the steps of an E step."""
    cloud = Cloud(ArrayRows.of(points))
    gradients = []
    for component, (p, C) in enumerate(zip(shares, matrices(mixture), strict=True)):
        order = np.array([component])
        alone = replace(mixture.reordered(order), weights=np.ones(1))  # all points are its own
        step = Cloud(cloud.rows.zip(weights=p)).expected(alone, "likelihood").steps[0]
        gradients.append(-2 * p.sum() * np.linalg.solve(C, step))
    return np.array(gradients)


def fit(points, labels, k=3, weights=None, **options):
    options = {"floor": 1e-8, "tol": 1e-10, "max_iter": 200} | options
    weights = np.ones(len(points)) if weights is None else weights
    return expectation_maximization(points, one_hot(labels, k), weights, **options)


def labels_of(found, points):
    joint = found.mixture.log_densities(points) + np.log(found.mixture.weights)
    return joint.argmax(axis=1)


def likelihoods(found):
    return np.array([entry["log_likelihood"] for entry in found.history])


@every_kind
def test_densities_parameters_and_samples(kind):
    points, mixture = cap(50), some_mixture(kind)
    found = mixture.log_densities(points)
    np.testing.assert_allclose(found, naive_log_densities(points, mixture), rtol=1e-10)
    order = np.array([2, 0, 1])
    np.testing.assert_array_equal(mixture.reordered(order).log_densities(points), found[:, order])
    peer = GaussianMixture(3, covariance_type=kind).fit(np.random.default_rng(0).random((40, 3)))
    assert mixture.n_parameters == peer._n_parameters()
    assert sorted(COVARIANCES) == sorted(KINDS)
    ends = mixture.log_densities(np.vstack([mixture.means, -mixture.means]))  # and antipodes
    assert np.all(np.isfinite(ends))
    for component in range(3):
        assert ends[component, component] == ends[:, component].max()
        assert ends[3 + component, component] <= ends[:, component].min() + 1e-9
    narrow = some_mixture(kind, scale=0.001)
    drawn, y = narrow.sample(400, np.random.RandomState(0))
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1, atol=1e-14)
    assert np.array_equal(narrow.log_densities(drawn).argmax(axis=1), y)
    np.testing.assert_allclose(np.bincount(y) / 400, narrow.weights, atol=0.1)


@every_kind
@pytest.mark.parametrize("q", [1, 2, 4])
def test_gradient_of_the_mean_equals_finite_differences(kind, q):
    rng = np.random.default_rng(q)
    points, shares = cap(40, q), rng.random((2, 40))
    mixture = some_mixture(kind, 2, q, seed=q, scale=1.0)
    found = mean_gradient(points, shares, mixture)
    for component in range(2):
        mean, frame = mixture.means[component], tangent_frame_at(mixture.means[component])

        def objective(step, component=component, mean=mean, frame=frame):
            moved = unit(sphere.exp(frame @ step, base_point=mean))
            covariance = matrices(mixture)[component]
            if kind == "full":  # carried along; the others keep their place in the frame
                carried = [transported(mean, moved, column) for column in frame.T]
                turn = tangent_frame_at(moved).T @ np.column_stack(carried)
                covariance = turn @ covariance @ turn.T
            tangents = naive_tangents(points, moved)
            squares = np.einsum("ij,ji->i", tangents, np.linalg.solve(covariance, tangents.T))
            return shares[component] @ squares

        h = 1e-5
        expected = [(objective(h * e) - objective(-h * e)) / (2 * h) for e in np.eye(q)]
        np.testing.assert_allclose(found[component], expected, rtol=1e-6, atol=1e-6)


def naive_karcher_update(points, mixture):
    """Memberships; means one step toward the weighted mean of Logs; covariances about them."""
    shares = naive_memberships(points, mixture)
    means, scatters = [], []
    for component in range(mixture.n_components):
        p = shares[:, component] / shares[:, component].sum()
        step = p @ sphere.log(points, base_point=mixture.means[component])
        means.append(sphere.exp(step, base_point=mixture.means[component]))
        tangents = naive_tangents(points, means[-1])
        scatters.append((tangents * p[:, None]).T @ tangents)
    weights = shares.mean(axis=0)
    scatters = np.array(scatters)
    q = mixture.n_modes
    covariance = {
        "full": scatters,
        "tied": np.einsum("k,kij->ij", weights, scatters),
        "diag": np.einsum("kqq->kq", scatters),
        "spherical": np.einsum("kqq->k", scatters) / q,
    }[mixture.kind]
    return Mixture(weights, np.array(means), covariance, mixture.kind)


@every_kind
def test_iterations_equal_the_naive_ones(kind):
    points = some_mixture(kind, scale=0.1).sample(200, np.random.RandomState(0))[0]
    start = some_mixture(kind).log_densities(points).argmax(axis=1)
    shares = one_hot(start, 3) / 200
    expected = room.first_mixture(points, shares, kind, 1e-8, unit_mass=1 / 200)
    for _ in range(3):
        expected = naive_karcher_update(points, expected)
    found = fit(points, start, kind=kind, max_iter=3, tol=0.0)
    assert found.n_iter == 3
    assert len(found.history) == 4
    np.testing.assert_allclose(found.mixture.weights, expected.weights, rtol=1e-9)
    np.testing.assert_allclose(found.mixture.means, expected.means, atol=1e-9)
    np.testing.assert_allclose(found.mixture.covariances, expected.covariances, rtol=1e-8)
    evidence = np.log(np.exp(naive_log_densities(points, expected)) @ expected.weights)
    np.testing.assert_allclose(found.log_likelihood, evidence.mean(), rtol=1e-9)


@every_kind
def test_covariances_are_the_likeliest_above_the_floor(kind):
    rng = np.random.default_rng(0)
    scatter = np.diag([1.0, 1e-3, 0.2]) + 0.01
    floor, mass = 0.05, 2.0
    best = estimate_covariances(kind, np.array([scatter]), np.array([mass]), floor)

    def cost(covariance):
        mixture = Mixture(np.ones(1), np.eye(4)[:1], covariance, kind)
        matrix = matrices(mixture)[0]
        return mass * np.linalg.slogdet(matrix)[1] + np.trace(np.linalg.solve(matrix, scatter))

    def least_eigenvalue(covariance):
        return np.linalg.eigvalsh(matrices(Mixture(np.ones(1), np.eye(4)[:1], covariance, kind))[0])

    assert least_eigenvalue(best).min() >= floor * (1 - 1e-12)
    tried = 0
    for _ in range(400):
        noise = 0.05 * rng.standard_normal(best.shape)
        other = best + (noise + noise.swapaxes(-1, -2) if kind in ("full", "tied") else noise)
        if least_eigenvalue(other).min() >= floor:
            tried += 1
            assert cost(other) >= cost(best) - 1e-12
    assert tried > 20


def three_arms(n=100, seed=0, length=0.3, turns=None):
    """Clusters a quarter circle apart, each long in one direction and thin in the other."""
    rng = np.random.default_rng(seed)
    points = []
    for mean, turn in zip(
        np.eye(3), turns or [np.array([[0.6, -0.8], [0.8, 0.6]])] * 3, strict=True
    ):
        tangents = rng.standard_normal((n, 2)) * [length, 0.02] @ turn
        points.append(sphere.exp_at_pole(tangents) @ np.column_stack([mean, naive_frame(mean)]).T)
    return unit(np.concatenate(points)), np.repeat(np.arange(3), n)


@pytest.mark.parametrize("n_there", [1, 60])
def test_components_do_not_restart_at_points_of_weight_0(n_there):
    points, y = three_arms(30)
    points[-1] = unit(-points.mean(axis=0))  # far from all
    weights = np.where(np.arange(90) < n_there, 2.0, 0.0)
    first = room.first_mixture(points, one_hot(y, 3) / 90, "full", 1e-4, unit_mass=1 / 90)
    local, blocks, lazy = *clouds(points, weights), dask_cloud(points, weights)
    evidence = first.log_densities(points[:n_there]) + np.log(first.weights)
    worst = np.argsort(scipy.special.logsumexp(evidence, axis=1), kind="stable")[:4]
    for cloud in (local, blocks, lazy):
        found, p = cloud.least_likely(cloud.expected(first, "karcher"), 4)
        np.testing.assert_array_equal(found, points[worst])
        np.testing.assert_allclose(p, np.full(len(worst), 1 / n_there))
    plain = Cloud(ArrayRows.of(points))
    found, p = plain.least_likely(plain.expected(first, "karcher"), 1)  # all count alike
    np.testing.assert_array_equal(found, points[-1:])
    assert p == pytest.approx(1 / 90)


def dask_cloud(points, weights):
    """The same points in a dask array, as their weights are."""
    da = pytest.importorskip("dask.array")
    rows = DaskRows.of(da.from_array(points, chunks=(40, -1)))
    return Cloud(rows.zip(weights=da.from_array(weights, chunks=40)))


def clouds(points, weights):
    """The same points in memory, and in uneven blocks."""
    batches = np.split(points, [1, len(points) // 3, len(points) // 2])
    source = as_rows(batches, Linear(), KernelPCA(kernel="linear"))
    return [Cloud(rows.zip(weights=weights)) for rows in (ArrayRows.of(points), source)]


@every_kind
@every_update
def test_degenerate_components_stay_finite_and_above_the_floor(kind, update):
    """A component of one point, and antipodal points that coincide."""
    points, y = three_arms(20)
    single = np.where(np.arange(60) == 0, 2, np.minimum(y, 1))
    entries = []
    options = {"kind": kind, "mean_update": update, "floor": 1e-3, "callback": entries.append}
    found = fit(points, single, **options)
    for matrix in matrices(found.mixture):
        assert np.linalg.eigvalsh(matrix).min() >= 1e-3 * (1 - 1e-9)
    assert np.all(np.isfinite(likelihoods(found)))
    assert entries == list(found.history)
    poles = np.repeat([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]], 5, axis=0)
    y = np.repeat([0, 1, 2, 3], 5)
    found = fit(poles, y, 4, max_iter=20, **options)
    assert np.all(np.isfinite(likelihoods(found)))
    assert clustering_error(y, labels_of(found, poles)) == 0


def test_empty_components_restart_at_the_least_likely_points():
    points, y = three_arms(30)
    points[-1] = unit(-points.mean(axis=0))  # far from all
    memberships = one_hot(np.minimum(y, 1), 3)
    options = {"floor": 1e-4, "tol": 0.0, "max_iter": 1}
    found = expectation_maximization(points, memberships, np.ones(90), **options)
    assert found.history[1]["reseeded"] == (2,)
    first = room.first_mixture(points, memberships / 90, "full", 1e-4, unit_mass=1 / 90)
    for cloud in clouds(points, np.ones(90)):
        begun = room._reseed_empty(cloud, cloud.expected(first, "karcher"), found.mixture)[0]
        np.testing.assert_array_equal(begun.means[2], points[-1])


def test_first_covariances_are_shrunk_towards_the_pooled_one():
    """By the mass of as many points as there are coordinates."""
    points, n = unit(np.random.default_rng(0).standard_normal((60, 4)) + 3 * np.eye(4)[0]), 60
    shares = one_hot((np.arange(n) % 7 > 0).astype(int), 2) / n
    found = room.first_mixture(points, shares, "full", 0.0, unit_mass=1 / n)
    scatters, masses, prior = scatters_of(points, shares, found.means), shares.sum(axis=1), 4 / n
    expected = (scatters + prior * scatters.sum(axis=0)) / (masses + prior)[:, None, None]
    np.testing.assert_allclose(found.covariances, expected, atol=1e-14)


def test_steps_towards_the_likeliest_means_are_whole_if_they_help():
    points = cap(n=60)
    for seed in range(5):
        mixture = some_mixture("full", seed=seed, scale=1.0)
        cloud = Cloud(ArrayRows.of(points))
        expected = cloud.expected(mixture, "likelihood")
        moved = room._m_step(cloud, expected, "likelihood", 1e-8).means
        for mean, step, found in zip(mixture.means, expected.steps, moved, strict=True):
            whole = room.geodesic_step(mean, tangent_frame_at(mean) @ step, np.pi / 2)
            np.testing.assert_allclose(found, whole, atol=1e-12)
