"""Patches and walks of the KHA paper: windows, cleaning, and what is compared."""

import math

import numpy as np
import pytest

from experiment_scripts import experiment_scripts


@pytest.fixture(scope="module")
def kha():
    names = ("quarters", "patches", "skeletons", "denoising")
    with experiment_scripts("kha", *names) as scripts:
        yield scripts


# ---------------------------------------------------------------------------- windows


def test_windows_lie_two_pixels_apart_and_are_mirrored_at_the_border(kha):
    image = np.arange(24.0 * 24).reshape(24, 24)
    windows = kha.quarters.windows_of(image).reshape(10, 10, 11, 11)
    np.testing.assert_array_equal(windows[1, 2], image[:11, 2:13])
    np.testing.assert_array_equal(windows[0, 1, :3, 0], image[[1, 0, 0], 0])
    np.testing.assert_array_equal(windows[9, 9, -3:, 0], image[[-1, -2, -3], 16])


def test_windows_put_together_are_the_image(kha):
    image = np.random.default_rng(0).standard_normal((24, 24))
    windows = kha.quarters.windows_of(image)
    np.testing.assert_allclose(kha.quarters.image_of(windows, 24), image, rtol=1e-12)
    # the average: what one of the windows over a pixel says counts as one of them
    corner = windows.copy()
    corner[0] += 4.0
    changed = kha.quarters.image_of(corner, 24) - image
    assert changed[0, 0] == pytest.approx(4.0 / 4)
    assert changed[8, 8] == pytest.approx(4.0 / 36)
    assert np.count_nonzero(np.abs(changed) > 1e-12) == 9 * 9


def test_quarters_tile_the_image(kha):
    image = np.arange(64.0).reshape(8, 8)
    parts = [kha.quarters.quarter_of(image, n) for n in range(4)]
    joined = kha.patches.joined(
        [{"a": part, "b": 1} if n else {"a": part} for n, part in enumerate(parts)]
    )
    assert list(joined) == ["a"]
    np.testing.assert_array_equal(joined["a"], image)
    np.testing.assert_array_equal(parts[1], image[:4, 4:])


# ---------------------------------------------------------------------------- a whole small run


@pytest.fixture(scope="module")
def small(kha):
    """Rows and images of a run of a few passes on a small image, its ground a grey of 255."""
    rows, columns = np.mgrid[:48, :48] / 48
    made = 128 / 255 + 0.4 * np.sin(9 * rows) * (columns > 0.4)
    everywhere = kha.quarters.QUARTERS
    size = kha.patches.Size(48, (0.03, 0.2), (0, 1), (1, 4), (8,), everywhere, (4, 8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kha.quarters, "picture", lambda side: made)
        return kha.patches.measure(size, True)


def test_ratio_is_of_the_whole_image(kha, small):
    rows, images = small
    found = kha.patches.Findings(rows)
    clean_image, exact = (images[name] / 255 for name in ("clean", "exact kernel PCA"))
    expected = 10 * math.log10(clean_image.var() / np.mean((exact - clean_image) ** 2))
    assert found.level_snr("exact kernel PCA") == pytest.approx(expected, abs=0.1)  # of greys


# ---------------------------------------------------------------------------- the walk


def test_share_removed_has_the_deviation_of_one_draw(kha):
    denoising = kha.denoising
    rows = [
        {"part": "motion", "name": name, "level": 0.01, "method": denoising.KERNEL_PAPER}
        | {"value": share, "draw": draw}
        for name, shares in {"near": (0.86, 0.87, 0.88), "far": (0.875, 0.93, 0.93)}.items()
        for draw, share in enumerate(shares)
    ]
    (made,) = denoising.compared(rows)
    assert (made.ours, made.error) == (pytest.approx(87.0), pytest.approx(1.0))
    assert made.finding == "agrees"
    assert "near with noise of 10 mm" in made.what
    assert made.what.endswith("3 draws of the noise")
    (made,) = denoising.compared([row | {"value": row["value"] - 0.02} for row in rows[:3]])
    assert made.finding == "differs"
