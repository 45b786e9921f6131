"""Stein's estimate, the search by it, and the noise levels."""

import math

import numpy as np
import pytest
from sklearn.base import clone

from orthodrome import KernelPCA
from orthodrome.denoising.base import (
    Risk,
    Sample,
    Trial,
    _scaled_kernels,
    choose,
    clean,
    component_counts,
    estimate_risk,
)
from orthodrome.denoising.image import image_noise
from orthodrome.denoising.sequence import sequence_noise
from orthodrome.kernels import Gaussian, Linear, Matern


def curve(n=150, d=12, noise=0.1, seed=0):
    """A closed curve in d dimensions, clean and noisy."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 2 * np.pi, n))
    waves = np.stack([f(k * t) for k in (1, 2) for f in (np.cos, np.sin)], axis=1)
    clean_points = waves @ rng.standard_normal((4, d)) / 2
    return clean_points, clean_points + noise * rng.standard_normal((n, d))


def trial_of(points, noise, seed=1):
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=points.shape)
    epsilon = 0.1 * noise
    moved = points + epsilon * signs
    samples = Sample(points, points), Sample(moved, moved)
    return Trial(*samples, np.ravel, points.ravel(), signs.ravel(), epsilon)


def test_the_blend_is_the_minimum_of_the_risk():
    risk = Risk(change=2.0, divergence=0.3, noise=1.1)
    grid = np.linspace(0, 1, 2001)
    values = [risk.at(t) for t in grid]
    assert abs(grid[np.argmin(values)] - risk.blend) <= 1e-3
    assert risk.at(0.0) == pytest.approx(1.1**2)  # unchanged data keep the noise
    assert risk.at(1.0) == pytest.approx(2.0 - 1.1**2 + 2 * 1.1**2 * 0.3)
    assert risk.blend**2 * risk.change <= risk.noise**2
    for change, divergence, blend in (
        (0.5, 0.1, 1.0),
        (0.0, 0.0, 1.0),
        (1.0, 1.0, 0.0),
        (1.0, 1.5, 0.0),
        (1.8, 0.1, 0.5),
    ):
        assert Risk(change, divergence, 1.0).blend == pytest.approx(blend)


def test_the_estimate_is_the_error_of_kernel_pca_for_large_data():
    noise = 0.2
    clean_points, points = curve(n=400, d=30, noise=noise)
    trial = trial_of(points, noise)
    for sigma, r in [(1.0, 20), (3.0, 8)]:
        found = []
        for sample in (trial.original, trial.perturbed):
            model = KernelPCA(r, Gaussian(sigma)).fit(sample.training)
            found.append(clean(model, sample.queries, tol=1e-5)[0])
        risk = estimate_risk(trial, *found, noise)
        error = np.mean((found[0] - clean_points) ** 2)
        assert risk.at(1.0) == pytest.approx(error, abs=0.05 * noise**2)
        assert 0 < risk.divergence < 0.5


def test_cleaning_is_transform_and_inverse_transform():
    _, points = curve()
    model = KernelPCA(10, Gaussian(2.0)).fit(points)
    expected = model.inverse_transform(model.transform(points))
    found, n_unconverged = clean(model, points, tol=1e-8)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert n_unconverged == 0


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Linear(), Matern(2.5, 2.0)])
def test_fewer_components_are_those_of_a_smaller_model(kernel):
    _, points = curve()
    large, small = (KernelPCA(r, clone(kernel)).fit(points) for r in (9, 4))
    np.testing.assert_allclose(
        clean(large, points, n_components=4, tol=1e-8)[0],
        clean(small, points, tol=1e-8)[0],
        atol=1e-5,
    )


def test_a_given_scale_is_kept():
    _, points = curve(n=120)
    choice = choose(trial_of(points, 0.1), Gaussian(1.7), 0.1, [2, 4, 8, 16])
    assert choice.kernel.sigma == 1.7


@pytest.mark.parametrize("noise", [0.03, pytest.param(0.3, marks=pytest.mark.slow)])
def test_the_choice_is_near_the_best_of_all(noise):
    clean_points, points = curve(noise=noise)
    counts = component_counts(16)
    choice = choose(trial_of(points, noise), Gaussian(), noise, counts, blend=1.0)

    def error(kernel, r):
        model = KernelPCA(r, clone(kernel)).fit(points)
        return np.mean((clean(model, points)[0] - clean_points) ** 2)

    best = min(error(k, r) for _, k in _scaled_kernels(Gaussian(), points) for r in counts)
    found = error(choice.kernel, choice.n_components)
    assert found < 1.25 * best
    assert choice.risk == pytest.approx(found, abs=0.1 * noise**2)


def test_sequence_noise_ignores_smooth_motion_and_jumps():
    rng = np.random.default_rng(4)
    t = np.linspace(0, 12, 600)[:, None]
    motion = 5 * np.sin(t + np.arange(8)) + 3 * t
    motion[300:] += 20  # a second trial
    noise = rng.standard_normal(motion.shape)
    for level in (0.01, 0.3):
        assert sequence_noise(motion + level * noise) == pytest.approx(level, rel=0.05)
    assert sequence_noise(motion) < 1e-3
    assert sequence_noise(7 * (motion + noise)) == pytest.approx(7 * sequence_noise(motion + noise))


@pytest.mark.parametrize("channels", [1, 3])
def test_image_noise_is_that_of_scikit_image(channels):
    pytest.importorskip("pywt")
    pytest.importorskip("skimage")
    rows, columns = np.mgrid[:64, :64]
    image = np.sin(rows / 9) + (columns > 30)
    noisy = image[..., None] + 0.2 * np.random.default_rng(5).standard_normal((64, 64, channels))
    assert image_noise(noisy) == pytest.approx(0.2, rel=0.1)
    noisy[..., -1] = 1.0  # a flat channel has no noise
    expected = 0.0 if channels == 1 else 0.2 * math.sqrt(2 / 3)
    assert image_noise(noisy) == pytest.approx(expected, rel=0.1)
