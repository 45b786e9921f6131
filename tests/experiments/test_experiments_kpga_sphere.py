"""Points on a sphere in the kPGA paper: draws, neighbourhoods, modes."""

import math

import numpy as np
import pytest

from experiment_scripts import experiment_scripts
from real_data import load_or_skip


@pytest.fixture(scope="module")
def kpga():
    with experiment_scripts("kpga", "sphere") as found:
        yield found


@pytest.fixture(scope="module")
def script(kpga):
    return kpga.sphere


@pytest.fixture(scope="module")
def draw(script):
    """The cells of one draw, by method, number, quantity and κ."""
    return {tuple(cell[:4]): cell[4] for cell in script.one_draw(8.8, 3)}


# ---------------------------------------------------------------------------- draws


def logarithms(X):
    """The points in the tangent space at their Karcher mean, by plain steps."""
    mean = X.mean(axis=0) / np.linalg.norm(X.mean(axis=0))
    for _ in range(60):
        cosines = X @ mean
        angles = np.arccos(cosines)
        logs = (angles / np.sin(angles))[:, None] * (X - cosines[:, None] * mean)
        step = logs.mean(axis=0)
        mean = mean * np.cos(np.linalg.norm(step)) + np.sinc(np.linalg.norm(step) / np.pi) * step
    return logs


def test_eigenvalues_are_of_the_covariances(script, draw):
    X = script.points_of(8.8, 3)
    logs = logarithms(X)
    flat = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    sphere = np.linalg.eigvalsh(logs.T @ logs / len(X))[::-1]
    for method, values in ((script.PCA, flat), (script.PGA, sphere)):
        own = [draw[method, n, script.EIGENVALUE, 0] for n in (1, 2, 3)]
        np.testing.assert_allclose(own, values[:3], atol=1e-12)
    assert draw[script.PCA, 0, script.RANK, 0] == 3
    assert draw[script.PGA, 0, script.RANK, 0] == 2
    ratio = sphere[:2].sum() / flat[:2].sum()
    assert draw[script.PGA, 0, script.RATIO, 0] == pytest.approx(ratio)


def kept_by_hand(high, low):
    """Q(κ) for every κ, from distances."""
    n = len(high)
    before, after = (np.argsort(np.argsort(d, axis=1), axis=1) for d in (high, low))
    off = ~np.eye(n, dtype=bool)
    return np.array(
        [np.sum((before <= k) & (after <= k) & off) / (k * n) for k in range(1, n)],
    )


def distances(X):
    return np.linalg.norm(X[:, None] - X[None], axis=2)


@pytest.mark.parametrize("n_components", [1, 2])
def test_neighbourhoods_are_counted_over_every_size(script, draw, n_components):
    X = script.points_of(8.8, 3)
    _, _, axes = np.linalg.svd(X - X.mean(axis=0))
    flat = (X - X.mean(axis=0)) @ axes[:n_components].T
    _, _, axes = np.linalg.svd(logarithms(X))
    bent = logarithms(X) @ axes[:n_components].T
    angle = np.linalg.norm(bent, axis=1, keepdims=True)
    along = np.hstack([np.cos(angle), np.sinc(angle / np.pi) * bent])
    means = {}
    for method, low in ((script.PCA, flat), (script.PGA, bent), (script.ALONG, along)):
        curve = kept_by_hand(distances(X), distances(low))
        for size in script.SIZES:
            value = draw[method, n_components, script.KEPT, size]
            assert value == pytest.approx(curve[size - 1], abs=1e-3)
        means[method] = draw[method, n_components, script.KEPT_MEAN, 0]
        assert means[method] == pytest.approx(curve.mean(), abs=1e-4)
        least = draw[method, n_components, script.KEPT_LEAST, 0]
        assert least == pytest.approx(curve.min(), abs=1e-3)
        share = draw[method, n_components, script.KEPT_ALMOST, 0]
        assert share == pytest.approx(np.mean(curve >= 0.99), abs=0.03)
    for method in (script.PGA, script.ALONG):
        gain = draw[script.gain_of(method), n_components, script.KEPT_MEAN, 0]
        assert gain == pytest.approx(means[method] - means[script.PCA])


def test_summary_is_over_draws(script):
    cells = [[[script.PGA, 1, script.EIGENVALUE, 0, value]] for value in (0.1, 0.2, 0.6)]
    (row,) = script.summary(8.8, cells)
    assert row["mean"] == pytest.approx(0.3)
    assert row["deviation"] == pytest.approx(math.sqrt(0.07))
    assert row["n_repeats"] == 3
    assert script.error_of_mean(row) == pytest.approx(math.sqrt(0.07 / 3))
    assert script.distance(0.5, row) == pytest.approx(0.2 / math.sqrt(0.07))


# ---------------------------------------------------------------------------- modes


def test_missing_votes_are_neither_yes_nor_no(script):
    votes = load_or_skip("vote").data
    filled = script.filled_vote()
    assert filled.shape == (435, 16)
    np.testing.assert_array_equal(filled == 0.5, np.isnan(votes))
    np.testing.assert_array_equal(filled[filled != 0.5], votes[~np.isnan(votes)])
