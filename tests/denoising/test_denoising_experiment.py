"""The experiment on denoising: its measures and a quick run."""

import importlib
import sys

import numpy as np
import pytest

from orthodrome import PatchDenoiser
from real_data import REPOSITORY, load_or_skip, real_folder

pytest.importorskip("skimage")
pytest.importorskip("matplotlib")
FOLDER = REPOSITORY / "experiments/kha"


@pytest.fixture(scope="module")
def experiment():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORTHODROME_DATA", str(real_folder()))
        patch.syspath_prepend(str(FOLDER))
        yield importlib.import_module("denoising")
    for name in ("denoising", "common"):
        sys.modules.pop(name, None)


def test_signal_to_noise_ratio(experiment):
    clean = np.array([0.0, 2.0, 0.0, 2.0])
    assert experiment.snr(clean, clean + 0.1) == pytest.approx(20.0)
    assert experiment.snr(clean + 5, clean + 5.1) == pytest.approx(20.0)


def test_linear_pca_with_all_components_is_the_image(experiment):
    image = np.random.default_rng(0).standard_normal((20, 17))
    denoiser = PatchDenoiser(4, 2)
    images = experiment.linear_images(image, denoiser)
    assert len(images) == 16
    np.testing.assert_allclose(images[-1], image, atol=1e-10)
    errors = [np.mean((z - image) ** 2) for z in images]
    assert np.all(np.diff(errors) < 0)
    # the same as kernel PCA with the linear kernel, fitted to all patches
    flat = PatchDenoiser(4, 2, 5, "linear", noise=1.0, blend=1.0, max_train=10_000)
    np.testing.assert_allclose(images[4], flat.denoise(image), atol=1e-4)


def test_the_low_pass_filter_keeps_slow_motion(experiment):
    t = np.arange(400) / 120
    slow, fast = np.sin(2 * np.pi * t), np.sin(2 * np.pi * 40 * t)
    filtered = experiment.low_pass((slow + fast)[:, None], 120.0)[:, 0]
    np.testing.assert_allclose(filtered[20:-20], slow[20:-20], atol=0.02)


@pytest.mark.slow
def test_a_quick_run(experiment, tmp_path, monkeypatch):
    for name in ("camera_256", "cmu_walk_35"):
        load_or_skip(name)
    pytest.importorskip("pywt")
    monkeypatch.setattr(experiment, "HERE", tmp_path)
    experiment.main(quick=True)
    rows = experiment.Findings(experiment.read_rows(tmp_path / "scratch" / "denoising.csv"))
    image, walk = rows.settings
    assert rows.value(image, experiment.KERNEL) > rows.value(image, experiment.BEST)
    assert rows.value(walk, experiment.KERNEL) > 0.85
    assert rows.value(walk, experiment.KERNEL_PAPER) > 0.85
    assert {file.name for file in (tmp_path / "scratch").glob("*.png")} == {
        "denoising_images.png",
        "denoising_motion.png",
        "denoising_walk.png",
    }
    assert (tmp_path / "scratch" / "denoising_walk.gif").stat().st_size > 0
