"""Patches on a grid and the average of overlapping patches, compared with a slow oracle."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from orthodrome.denoising.image import PatchGrid


def oracle_starts(size, patch, step):
    """Where patches begin, in pixels of the image: from patch - step before it, until covered."""
    starts = [step - patch]
    while starts[-1] + step < size:
        starts.append(starts[-1] + step)
    return starts


def mirrored(index, size):
    """Return the index of the pixel that replaces one outside the image."""
    index %= 2 * size
    return index if index < size else 2 * size - 1 - index


def oracle_patches(image, patch, step):
    height, width, channels = image.shape
    found = []
    for top in oracle_starts(height, patch[0], step):
        for left in oracle_starts(width, patch[1], step):
            found.append(
                [
                    image[mirrored(top + i, height), mirrored(left + j, width), c]
                    for c in range(channels)
                    for i in range(patch[0])
                    for j in range(patch[1])
                ]
            )
    return np.array(found)


def oracle_average(patches, shape, patch, step):
    height, width, channels = shape
    total, count = np.zeros(shape), np.zeros((height, width, 1))
    numbered = iter(patches)
    for top in oracle_starts(height, patch[0], step):
        for left in oracle_starts(width, patch[1], step):
            pixels = next(numbered).reshape(channels, *patch)
            for i in range(patch[0]):
                for j in range(patch[1]):
                    row, column = top + i, left + j
                    if 0 <= row < height and 0 <= column < width:
                        total[row, column] += pixels[:, i, j]
                        count[row, column] += 1
    return total / count, count


@st.composite
def grids(draw):
    height, width = draw(st.integers(2, 11)), draw(st.integers(2, 11))
    patch = draw(st.integers(2, height)), draw(st.integers(2, width))
    step = draw(st.integers(1, min(patch)))
    return PatchGrid((height, width, draw(st.sampled_from([1, 3]))), patch, step)


def image_for(grid, seed=0):
    return np.random.default_rng(seed).standard_normal(grid.image_shape)


def averaged(grid, patches):
    total = np.zeros_like(grid.extend(np.zeros(grid.image_shape)))
    grid.add(total, patches, grid.positions)
    return grid.average(total)


def n_features(grid):
    return grid.patch_size[0] * grid.patch_size[1] * grid.image_shape[2]


@settings(deadline=None)
@given(grids())
def test_patches_are_those_of_the_oracle(grid):
    image = image_for(grid)
    patches = grid.extract(grid.extend(image), grid.positions)
    expected = oracle_patches(image, grid.patch_size, grid.step)
    np.testing.assert_array_equal(patches, expected)
    positions = np.arange(0, len(patches), 3)
    np.testing.assert_array_equal(grid.extract(grid.extend(image), positions), expected[positions])


@settings(deadline=None)
@given(grids())
def test_averages_are_those_of_the_oracle(grid):
    patches = np.random.default_rng(1).standard_normal((len(grid.positions), n_features(grid)))
    expected, count = oracle_average(patches, grid.image_shape, grid.patch_size, grid.step)
    np.testing.assert_allclose(averaged(grid, patches), expected, rtol=1e-12, atol=1e-12)
    # every pixel, also at the border, is covered by enough patches
    sides = np.array(grid.patch_size)
    assert count.min() >= np.prod(sides // grid.step)
    if not np.any(sides % grid.step):
        assert count.max() == count.min()
    image = np.round(64 * image_for(grid))  # sums of integers are exact
    unchanged = grid.extract(grid.extend(image), grid.positions)
    np.testing.assert_array_equal(averaged(grid, unchanged), image)
