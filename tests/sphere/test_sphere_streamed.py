"""The Karcher mean of rows in blocks, with representative and misleading samples."""

from functools import partial

import numpy as np
import pytest

from orthodrome import KernelPCA
from orthodrome._core.status import Status
from orthodrome.coordinates import Coordinates, anchor_coordinates, choose_anchors
from orthodrome.coordinates.blocks import AnchorMap
from orthodrome.coordinates.points import Sample
from orthodrome.kernels import Linear
from orthodrome.rows import as_rows
from orthodrome.sphere import karcher_mean, log, vector_lloyd
from orthodrome.sphere.karcher import bend_ratios, coordinate_mean, log_sums
from orthodrome.sphere.maps import geodesic_step
from orthodrome.sphere.vector_lloyd import lloyd_on_vectors, with_better_centers


class Sampled(Coordinates):
    """Points with a given sample."""

    def __init__(self, rows, by, vectors):
        super().__init__(rows, by)
        self.vectors = vectors

    def sample(self, count):
        n = len(self.vectors)
        return Sample(self.vectors, np.full(n, 1 / n))


def mean_of(rows, sample, weights=None, max_iter=100, tol=1e-9):
    """The mean of rows on S², by three anchors that span the space."""
    kernel = Linear().fit(rows)
    anchors = choose_anchors(kernel, rows, 3, anchors=np.eye(3))
    batches = as_rows(np.array_split(rows, 3), Linear(), KernelPCA(kernel="linear"))
    by = AnchorMap(kernel, anchors.prepared(kernel), anchors.decoder, rows.dtype)
    vectors = anchor_coordinates(kernel, sample, anchors).toarray()
    points = Sampled(batches.zip(weights=weights), by, vectors)
    found = coordinate_mean(points, tol=tol, max_iter=max_iter)
    return found, np.linalg.solve(anchors.decoder.T, found.point)


def arc(angles, towards):
    """Points at these angles from the first axis."""
    return np.outer(np.cos(angles), np.eye(3)[0]) + np.outer(np.sin(angles), np.eye(3)[towards])


def misleading():
    """Rows along one great circle, and a sample along another that crosses it at a right angle."""
    return arc(np.repeat([1.55, -1.55], [60, 40]), 1), arc(np.linspace(-0.1, 0.1, 11), 2)


def test_steps_that_are_too_long_do_not_end_the_search():
    rows, sample = misleading()
    found, point = mean_of(rows, sample)
    raised = [entry["objective"] > found.history[0]["objective"] for entry in found.history]
    assert raised[1:4] == [True, True, True]  # the first step, its half and its quarter
    assert found.converged
    assert found.gradient_norm <= 1e-7  # of an objective that is known to rounding
    np.testing.assert_allclose(point, arc([0.2 * 1.55], 1)[0], atol=1e-6)
    short, _ = mean_of(rows, sample, max_iter=3)
    assert short.gradient_norm > 0.1
    assert not short.converged


def cap_of(n=400, seed=0):
    """Points in an oval cap, far enough out that the sphere bends."""
    t = np.random.default_rng(seed).uniform(-1, 1, size=(n, 2)) * [1.3, 0.4]
    lengths = np.linalg.norm(t, axis=1, keepdims=True)
    return np.hstack([np.cos(lengths), np.sin(lengths) / lengths * t])


def test_a_representative_sample_gives_newton_steps():
    """Each step squares the error, or nearly; without the sample's curvature there are dozens."""
    rows = cap_of()
    sample = rows[::2]
    found, point = mean_of(rows, sample)
    assert found.converged
    assert found.n_iter <= 5
    assert len(found.history) == found.n_iter + 1
    assert "gradient_norm': " not in repr(found)
    exact = karcher_mean(rows, tol=1e-12)
    np.testing.assert_allclose(point, exact.point, atol=1e-8)
    assert found.variance == pytest.approx(exact.variance, rel=1e-10)


def test_without_tolerance_it_ends_at_rounding():
    found, _ = mean_of(cap_of(), cap_of()[::2], tol=0.0)
    at_zero = found.gradient_norm == 0  # on some processors
    assert found.status is (Status.CONVERGED if at_zero else Status.ROUNDING)
    assert found.gradient_norm < 1e-15
    assert found.n_iter <= 15


@pytest.mark.parametrize("length", [0.0, 1e-200, 1e-9, 0.5, 3.0])
def test_geodesic_step(length):
    moved = geodesic_step(arc([0.0], 1)[0], np.array([0.0, length, 0.0]))
    np.testing.assert_allclose(moved, arc([length], 1)[0], rtol=0, atol=1e-15)
    short = geodesic_step(arc([0.0], 1)[0], np.array([0.0, length, 0.0]), 0.4)
    np.testing.assert_allclose(short, arc([min(length, 0.4)], 1)[0], rtol=0, atol=1e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.9e-3, 1.1e-3, 0.1, 1.5, 3.0])
def test_bend_ratios(angle):
    """By the series of θ cot θ where its digits cancel."""
    level = angle / np.tan(angle) if angle else 1.0
    expected = (1 - level) / angle**2 if angle > 0.05 else 1 / 3 + angle**2 / 45
    found = bend_ratios(np.array([angle]), np.array([level]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_trial_starts_from_the_mean_of_the_merged_clusters_and_from_two_halves(monkeypatch):
    groups = [[0, 1, 0], [0, 1.5, 0], [20, 0, 1], [20, 0, -1]]
    labels = np.array([0] * 30 + [1] * 10 + [2] * 20)
    X = np.repeat(np.array(groups), [30, 10, 10, 10], axis=0)
    X += 0.01 * np.random.default_rng(0).standard_normal(X.shape)
    kernel = Linear().fit(X)
    points = anchor_coordinates(kernel, X, choose_anchors(kernel, X, 3, anchors=np.eye(3)))
    vectors, starts = points.toarray(), []

    def lloyd(points, centers, **options):
        starts.append(centers.copy())
        return lloyd_on_vectors(points, centers, **options)

    monkeypatch.setattr(vector_lloyd, "lloyd_on_vectors", lloyd)
    means = [vectors[labels == i].mean(axis=0) for i in range(3)]
    with_better_centers(points, lloyd_on_vectors(points, np.array(means), sphere=False, max_iter=9))
    expected = [vectors[part].mean(axis=0) for part in (slice(40), slice(40, 50), slice(50, 60))]
    for center in expected:
        assert np.abs(starts[0] - center).sum(axis=1).min() < 1e-9


def test_sums_of_log_maps_equal_naive_sums():
    X = cap_of(50)
    kernel, w = Linear().fit(X), np.random.default_rng(0).uniform(0.5, 2, 50)
    anchors = choose_anchors(kernel, X, 3, anchors=np.eye(3))
    points = anchor_coordinates(kernel, X, anchors)
    points, vectors = Coordinates(points.rows.zip(weights=w), points.by), points.toarray()
    mean = vectors.mean(axis=0) / np.linalg.norm(vectors.mean(axis=0))
    logs = log(vectors, base_point=mean)
    angles = np.linalg.norm(logs, axis=1)
    ratios = angles / np.sin(angles)
    expected = (w.sum(), (logs.T * w) @ logs, w @ angles**2, w @ ratios**2, w.sum(), w.sum())
    for found, exact in zip(points.reduce(partial(log_sums, mean)), expected, strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-12)
