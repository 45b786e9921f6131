"""Laws of SequenceDenoiser."""

from dataclasses import replace

import numpy as np
import pytest

from orthodrome import KernelPCA, PatchDenoiser
from orthodrome.denoising import SequenceDenoiser
from orthodrome.kernels import Gaussian

NOISE = 0.05


def walk(n=120, joints=6):
    """A figure that swings its limbs and moves on."""
    t = np.linspace(0, 5 * np.pi, n)[:, None]
    phase, size = np.arange(joints) / 2, 0.5 + np.arange(joints) / joints
    forward = 0.2 * t + size * np.sin(t + phase)
    upward = np.arange(joints) + 0.3 * np.cos(2 * t + phase)
    return np.stack([forward, upward, 0 * t + phase], axis=2)


def noisy_walk(noise=NOISE, seed=0, **shape):
    frames = walk(**shape)
    return frames, frames + noise * np.random.default_rng(seed).standard_normal(frames.shape)


def mean_square(a, b):
    return np.mean((np.asarray(a, dtype=float) - b) ** 2)


@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_noise_is_removed_and_the_motion_kept(noise):
    clean, noisy = noisy_walk(noise)
    denoiser = SequenceDenoiser(random_state=0)
    cleaned = denoiser.denoise(noisy)
    assert denoiser.noise_ == pytest.approx(noise, rel=0.1)
    assert mean_square(cleaned, clean) < 0.35 * mean_square(noisy, clean)
    assert denoiser.risk_ == pytest.approx(mean_square(cleaned, clean), rel=0.5)
    assert np.isfinite(denoiser.sigma_)


def test_a_fixed_model_is_kernel_pca_of_the_frames():
    _, noisy = noisy_walk()
    points = noisy.reshape(len(noisy), -1)
    model = KernelPCA(12, Gaussian(1.0)).fit(points)
    expected = model.inverse_transform(model.transform(points)).reshape(noisy.shape)
    denoiser = SequenceDenoiser(12, Gaussian(1.0), blend=1.0)
    np.testing.assert_allclose(denoiser.denoise(noisy), expected, atol=NOISE / 50)
    assert np.isnan(denoiser.noise_)  # not needed
    assert (denoiser.n_components_, denoiser.sigma_) == (12, 1.0)


def test_results_follow_rotations_shifts_and_scales():
    _, noisy = noisy_walk()
    expected = SequenceDenoiser(random_state=0).denoise(noisy)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    options = {"n_components": 10, "kernel": Gaussian(1.5), "blend": 1.0}
    first = SequenceDenoiser(**options).denoise(noisy)
    second = SequenceDenoiser(**options).denoise(noisy @ turn + 5)
    np.testing.assert_allclose(second, first @ turn + 5, atol=1e-4)
    scaled = SequenceDenoiser(random_state=0).denoise(1000 * noisy)
    np.testing.assert_allclose(scaled, 1000 * expected, rtol=1e-5, atol=1e-3)


def test_still_and_noiseless_sequences_come_back_unchanged():
    frames = walk()
    np.testing.assert_array_equal(SequenceDenoiser(noise=0).denoise(frames), frames)
    still = np.ones((9, 4, 3))
    denoiser = SequenceDenoiser()
    np.testing.assert_array_equal(denoiser.denoise(still), still)
    assert denoiser.n_components_ == 0


def test_invalid_frames():
    frames = walk(20)
    for bad, message in [
        (frames[0], "3 axes"),
        (frames[:3], "at least 4 frames"),
    ]:
        with pytest.raises(ValueError, match=message):
            SequenceDenoiser().denoise(bad)
    frames[3, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"the first at \(3, 2, 1\)"):
        SequenceDenoiser().denoise(frames)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_every_source_of_random_numbers(make):
    _, noisy = noisy_walk(n=60, joints=3)
    image = noisy[:20, :, 0].repeat(7, axis=1)
    for denoiser, data in (
        (SequenceDenoiser(3, max_train=30), noisy),
        (PatchDenoiser(4, 2, 3, noise=0.1), image),
    ):
        one, other = (replace(denoiser, random_state=make(5)).denoise(data) for _ in range(2))
        np.testing.assert_array_equal(one, other)
        name = type(denoiser).__name__
        with pytest.raises(ValueError, match=f"random_state of {name} must be an integer"):
            replace(denoiser, random_state="seed").denoise(data)
