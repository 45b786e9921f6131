"""The minimum regularised covariance determinant, compared with a slow implementation."""

import numpy as np
import pytest

from orthodrome.eigen.mrcd import moments, mrcd, nearest_weights

CONDITION = 50.0


def outliers_and_more(n=60, d=4, n_outliers=18, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, d)) * np.geomspace(6, 0.3, d)
    points[:n_outliers] = [0, 0, 0, 12] + 0.3 * rng.standard_normal((n_outliers, d))
    return points


# ---------------------------------------------------------------------- a slow implementation


def slow_median(points):
    center = points.mean(axis=0)
    for _ in range(5000):
        pulls = [1 / max(np.linalg.norm(p - center), 1e-300) for p in points]
        center = sum(w * p for w, p in zip(pulls, points, strict=True)) / sum(pulls)
    return center


def lower_median(values):
    return sorted(values)[(len(values) - 1) // 2]


def slow_outlyingness(points, center):
    """Return the largest |z - median| / MAD over the directions from the centre to points."""
    found = np.zeros(len(points))
    for other in points:
        direction = (other - center) / np.linalg.norm(other - center)
        projections = np.array([(p - center) @ direction for p in points])
        deviations = np.abs(projections - lower_median(projections))
        found = np.maximum(found, deviations / lower_median(deviations))
    return found


def slow_from_densest(points, h):
    distances = [np.sort([np.linalg.norm(p - q) for q in points]) for p in points]
    center = points[np.argmin([d[h - 1] for d in distances])]
    return np.array([np.linalg.norm(p - center) for p in points])


def slow_covariance(subset):
    center = subset.mean(axis=0)
    return center, sum(np.outer(p - center, p - center) for p in subset) / len(subset)


def slow_distances(points, center, covariance, ridge):
    inverse = np.linalg.inv(covariance + ridge * np.eye(len(center)))
    return np.array([np.sqrt((p - center) @ inverse @ (p - center)) for p in points])


def slow_cutoff(distances):
    logs = np.sort(np.log(0.1 + distances))
    half = -(-len(logs) // 2)
    widths = [logs[i + half - 1] - logs[i] for i in range(len(logs) - half + 1)]
    i = int(np.argmin(widths))
    middle, scale = logs[i] + widths[i] / 2, widths[i] / 2 / 0.67448975
    return np.exp(middle + 2.5758293 * scale) - 0.1


def slow_mrcd(points):
    """Return the centre, the covariance, the ridge, the distances and the cut-off."""
    h, center = len(points) // 2, slow_median(points)
    starts = [
        [np.linalg.norm(p - center) for p in points],
        slow_outlyingness(points, center),
        slow_from_densest(points, h),
    ]
    subsets = [points[np.argsort(start)[:h]] for start in starts]
    ridges = []
    for subset in subsets:
        values = np.linalg.eigvalsh(slow_covariance(subset)[1])
        ridges.append((values[-1] - CONDITION * values[0]) / (CONDITION - 1))
    ridge, best = np.median(ridges), (np.inf, None)
    assert ridge > 0
    for subset in subsets:
        for _ in range(50):
            found = slow_covariance(subset)
            subset = points[np.argsort(slow_distances(points, *found, ridge))[:h]]
        center, covariance = slow_covariance(subset)
        determinant = np.linalg.det(covariance + ridge * np.eye(len(center)))
        best = min(best, (determinant, subset), key=lambda pair: pair[0])
    raw = slow_distances(points, *slow_covariance(best[1]), ridge)
    found = slow_covariance(points[raw <= slow_cutoff(raw)])
    distances = slow_distances(points, *found, ridge)
    return *found, ridge, distances, slow_cutoff(distances)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_slow_implementation(seed, weighted):
    points = outliers_and_more(seed=seed)
    weights = np.random.default_rng(seed).integers(1, 4, 60) if weighted else np.ones(60, int)
    weights[0] += weights.sum() % 2  # an even number of rows
    found = mrcd(points, weights.astype(float))
    center, covariance, ridge, distances, cutoff = slow_mrcd(np.repeat(points, weights, axis=0))
    np.testing.assert_allclose(found.center, center, atol=1e-8)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-8)
    assert found.ridge == pytest.approx(ridge, rel=1e-6)
    np.testing.assert_allclose(np.repeat(found.distances(points), weights), distances, rtol=1e-6)
    assert found.cutoff == pytest.approx(cutoff, rel=1e-6)
    assert found.converged


# ---------------------------------------------------------------------- laws


@pytest.mark.parametrize("ridge", [0.01, 1.0, 100.0])
def test_a_concentration_step_never_raises_the_determinant(ridge):
    points, rng = outliers_and_more(), np.random.default_rng(1)
    weights = rng.uniform(0.2, 2.0, 60)
    size = 0.5 * weights.sum()

    def log_determinant(covariance):
        return np.linalg.slogdet(covariance + ridge * np.eye(4))[1]

    for _ in range(20):
        subset = nearest_weights(rng.random(60), weights, size)
        center, before = moments(points, subset)
        distances = slow_distances(points, center, before, ridge)
        after = moments(points, nearest_weights(distances, weights, size))[1]
        assert log_determinant(after) <= log_determinant(before) + 1e-12


def test_rotations_shifts_and_scales_do_not_change_distances():
    points, rng = outliers_and_more(), np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    expected = mrcd(points, np.ones(60))
    found = mrcd(100 * points @ rotation + 5, np.full(60, 3.0))
    moved = found.distances(100 * points @ rotation + 5)
    np.testing.assert_allclose(moved, expected.distances(points), rtol=1e-7)
    assert found.cutoff == pytest.approx(expected.cutoff, rel=1e-7)
