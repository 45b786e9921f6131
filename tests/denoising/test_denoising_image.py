"""Laws of PatchDenoiser."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from orthodrome import PatchDenoiser
from orthodrome.decomposition import KernelPCA
from orthodrome.denoising import image as image_module
from orthodrome.denoising.image import PatchGrid
from orthodrome.kernels import Gaussian

NOISE = 0.15


def scene(height=30, width=26, channels=None):
    """Stripes, a disc and a ramp, between 0 and 1."""
    rows, columns = np.mgrid[:height, :width]
    grey = 0.3 + 0.2 * np.sin(columns / 2.5) * (rows > height / 2) + 0.3 * rows / height
    grey = np.where((rows - 9) ** 2 + (columns - 12) ** 2 < 36, 0.9, grey)
    if channels is None:
        return grey
    return np.stack([grey, 0.5 * grey + 0.2, 1 - grey, grey**2][:channels], axis=2)


def noisy_scene(height=30, width=26, channels=None, noise=NOISE, seed=0):
    clean = scene(height, width, channels)
    return clean, clean + noise * np.random.default_rng(seed).standard_normal(clean.shape)


def small(**changes):
    """A denoiser for small images that needs no scikit-image."""
    options = {"patch_size": 5, "noise": NOISE, "max_train": 120, "random_state": 0}
    return PatchDenoiser(**(options | changes))


def quick(**changes):
    """The same with a given model, which is faster."""
    return small(**({"n_components": 5, "kernel": Gaussian(1.5)} | changes))


def mean_square(a, b):
    return np.mean((np.asarray(a, dtype=float) - b) ** 2)


@pytest.mark.parametrize("channels", [None, 1, 3])
def test_noise_is_removed_and_the_image_kept(channels):
    clean, noisy = noisy_scene(channels=channels)
    denoiser = small()
    cleaned = denoiser.denoise(noisy)
    assert cleaned.shape == noisy.shape
    assert mean_square(cleaned, clean) < 0.35 * mean_square(noisy, clean)
    # the change is no larger than the noise accounts for
    assert mean_square(cleaned, noisy) < 1.2 * NOISE**2
    assert np.isfinite(denoiser.sigma_)
    assert 0 < denoiser.blend_ <= 1
    assert denoiser.risk_ == pytest.approx(mean_square(cleaned, clean), rel=0.5)


def test_the_risk_of_large_images_is_estimated_in_windows(monkeypatch):
    monkeypatch.setattr(image_module, "_TRIAL_PATCHES", 100)
    monkeypatch.setattr(image_module, "_TRIAL_WINDOWS", 3)
    clean, noisy = noisy_scene(60, 52)
    denoiser = small()
    cleaned = denoiser.denoise(noisy)
    assert mean_square(cleaned, clean) < 0.35 * mean_square(noisy, clean)
    assert denoiser.risk_ == pytest.approx(mean_square(cleaned, clean), rel=0.5)


def test_a_given_model_averages_preimages_of_patches():
    _, noisy = noisy_scene()
    denoiser = small(n_components=6, kernel=Gaussian(2.0), blend=1.0, max_train=10_000)
    cleaned = denoiser.denoise(noisy)
    grid = PatchGrid((30, 26, 1), (5, 5), 2)
    extended = grid.extend(noisy[..., None])
    patches = grid.extract(extended, grid.positions)
    model = KernelPCA(6, Gaussian(2.0)).fit(patches)
    total = np.zeros_like(extended)
    grid.add(total, model.inverse_transform(model.transform(patches)), grid.positions)
    np.testing.assert_allclose(cleaned, grid.average(total)[..., 0], atol=1e-4)
    half = replace(denoiser, blend=0.5).denoise(noisy)
    np.testing.assert_allclose(half, (cleaned + noisy) / 2, atol=1e-12)
    np.testing.assert_array_equal(replace(denoiser, blend=0).denoise(noisy), noisy)


def test_given_parameters_are_kept():
    _, noisy = noisy_scene()
    denoiser = small(n_components=7, blend=0.6, kernel=Gaussian(1.5))
    denoiser.denoise(noisy)
    assert (denoiser.n_components_, denoiser.sigma_, denoiser.blend_) == (7, 1.5, 0.6)
    assert np.isnan(denoiser.risk_)
    assert denoiser.noise_ == NOISE
    assert denoiser.explained_variance_ratio_.shape == (7,)
    assert denoiser.model_.kernel_.sigma_ == 1.5
    assert len(denoiser.model_.X_fit_) == 120
    assert (denoiser.solver_, denoiser.converged_) == ("dense", True)


def test_constant_and_noiseless_images_come_back_unchanged():
    cases = [(small(), np.full((12, 12), value)) for value in (7, 0.25, 2**60 + 1)]
    for denoiser, image in [*cases, (small(noise=0.0), scene())]:
        cleaned = denoiser.denoise(image)
        np.testing.assert_array_equal(cleaned, image)
        assert cleaned is not image
        assert (denoiser.n_components_, denoiser.blend_, denoiser.model_) == (0, 0, None)
        assert np.isnan(denoiser.sigma_)


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.uint16, np.int16, np.float32, np.float64, np.float16]
)
def test_dtype_and_range_are_kept(dtype):
    clean, noisy = noisy_scene(channels=3)
    top = 1.0 if np.dtype(dtype).kind == "f" else float(np.iinfo(dtype).max)
    levels = np.clip(noisy, 0, 1) * top
    image = levels.astype(dtype) if top == 1.0 else np.rint(levels).astype(dtype)
    denoiser = quick(noise=NOISE * top, kernel=Gaussian(1.5 * top))
    cleaned = denoiser.denoise(image)
    assert cleaned.dtype == image.dtype
    assert cleaned.shape == image.shape
    assert mean_square(cleaned / top, clean) < 0.5 * mean_square(image / top, clean)
    # the same numbers as those of the float image, rounded
    floating = denoiser.denoise(image.astype(float))
    if top != 1.0:
        floating = np.clip(np.rint(floating), np.iinfo(dtype).min, top)
    np.testing.assert_array_equal(cleaned, floating.astype(dtype))


def test_integers_are_clipped_and_do_not_wrap():
    image = np.where(scene() > 0.6, 255, 0).astype(np.uint8)
    image[::3, ::5] = 128
    denoiser = small(noise=40.0, n_components=2, kernel="linear", blend=1.0)
    floating = denoiser.denoise(image * 1.0)
    assert floating.min() < 0
    assert floating.max() > 255
    np.testing.assert_array_equal(denoiser.denoise(image), np.clip(np.rint(floating), 0, 255))
    for dtype in (np.int64, np.uint64, np.int8):
        limits = np.iinfo(dtype)
        ends = image_module._as_dtype(np.array([-1e30, 1.5, 2.5, 1e30]), np.dtype(dtype))
        assert ends[0] == limits.min
        assert list(ends[1:3]) == [2, 2]
        assert limits.max - limits.max // 2**50 <= ends[3] <= limits.max


def test_layout_does_not_matter_and_the_input_is_not_changed(tmp_path):
    _, noisy = noisy_scene(channels=3)
    expected = quick().denoise(noisy)
    before = noisy.copy()
    noisy.flags.writeable = False
    np.testing.assert_array_equal(quick().denoise(noisy), expected)
    np.testing.assert_array_equal(noisy, before)
    np.testing.assert_array_equal(quick().denoise(noisy[::-1][::-1].tolist()), expected)
    np.save(tmp_path / "image.npy", noisy)
    mapped = np.load(tmp_path / "image.npy", mmap_mode="r")
    np.testing.assert_array_equal(quick().denoise(mapped), expected)
    _, grey = noisy_scene()  # is an image of a single channel
    np.testing.assert_array_equal(quick().denoise(grey[..., None])[..., 0], quick().denoise(grey))


def test_the_same_seed_gives_the_same_image(monkeypatch):
    _, noisy = noisy_scene()
    first, second, other = (quick(random_state=s).denoise(noisy) for s in (3, 3, 4))
    np.testing.assert_array_equal(first, second)
    assert np.any(first != other)
    monkeypatch.setattr(image_module, "_BLOCK_PATCHES", 20)
    np.testing.assert_allclose(quick(random_state=3).denoise(noisy), first, atol=1e-12)


def test_unfinished_preimages_are_reported(monkeypatch):
    _, noisy = noisy_scene()
    monkeypatch.setattr("orthodrome.denoising.base._MAX_ITER", 1)
    denoiser = small(n_components=9, kernel=Gaussian(0.5), blend=1.0)
    with pytest.warns(ConvergenceWarning, match="pre-images") as caught:
        denoiser.denoise(noisy)
    assert caught[0].filename == __file__
    assert not denoiser.converged_


def test_invalid_images():
    gaps, masked = scene(), np.ma.masked_array(scene(), mask=False)
    gaps[2, 3], gaps[5, 5] = np.nan, np.inf
    masked[4, 1] = np.ma.masked
    for image, message in (
        (np.zeros(20), "2 or 3 axes"),
        (np.zeros((0, 8)), r"empty.*\(0, 8\)"),
        (np.zeros((8, 8), dtype=complex), "complex128"),
        (np.full((8, 8), "a"), "real numbers"),
        (np.zeros((4, 8)), "4 x 8 pixels, smaller than a patch of 5 x 5"),
        (1e-200 * scene(), "image of PatchDenoiser underflow"),
        (1e200 * scene(), "image of PatchDenoiser overflow"),
        (gaps, r"2 values are NaN.*\(2, 3\)"),
        (masked, r"masked.*\(4, 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            small().denoise(image)


def test_the_noise_is_estimated_if_needed():
    pytest.importorskip("pywt")
    clean, noisy = noisy_scene(60, 60)
    denoiser = small(noise="auto")
    cleaned = denoiser.denoise(noisy)
    assert denoiser.noise_ == pytest.approx(NOISE, rel=0.15)
    assert mean_square(cleaned, clean) < 0.35 * mean_square(noisy, clean)
    np.testing.assert_array_equal(denoiser.denoise(np.full((20, 20), 3)), 3)
    assert denoiser.noise_ == 0
