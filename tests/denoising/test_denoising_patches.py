"""Patches on a grid, and the average of overlapping patches, beside a slow oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orthodrome.denoising.patches import Block, PatchGrid


def oracle_starts(size, patch, step):
    """Where patches begin, in pixels of the image: from patch - step before it, until covered."""
    starts = [step - patch]
    while starts[-1] + step < size:
        starts.append(starts[-1] + step)
    return starts


def mirrored(index, size):
    """The pixel that stands for one outside, the border pixel repeated."""
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
    grid.add(total, patches, grid.whole)
    return grid.average(total)


def n_features(grid):
    return grid.patch_size[0] * grid.patch_size[1] * grid.image_shape[2]


@given(grids())
def test_patches_are_those_of_the_oracle(grid):
    image = image_for(grid)
    patches = grid.extract(grid.extend(image), grid.whole)
    expected = oracle_patches(image, grid.patch_size, grid.step)
    np.testing.assert_array_equal(patches, expected)


@given(grids())
def test_averages_are_those_of_the_oracle(grid):
    patches = np.random.default_rng(1).standard_normal((grid.whole.n_patches, n_features(grid)))
    expected, count = oracle_average(patches, grid.image_shape, grid.patch_size, grid.step)
    np.testing.assert_allclose(averaged(grid, patches), expected, rtol=1e-12, atol=1e-12)
    # every pixel, also at the border, has as many patches as the sizes allow
    least = (grid.patch_size[0] // grid.step) * (grid.patch_size[1] // grid.step)
    assert count.min() >= least


@given(grids())
def test_unchanged_patches_give_the_image_back(grid):
    image = np.round(64 * image_for(grid))  # sums of integers are exact
    patches = grid.extract(grid.extend(image), grid.whole)
    np.testing.assert_array_equal(averaged(grid, patches), image)


@given(grids(), st.integers(1, 40))
def test_bands_and_blocks_add_up_to_the_whole(grid, max_patches):
    extended = grid.extend(image_for(grid))
    bands = list(grid.bands(max_patches))
    parts = [grid.extract(extended, band) for band in bands]
    whole = grid.extract(extended, grid.whole)
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert all(len(p) <= max(max_patches, grid.shape[1]) for p in parts)
    total, at_once = np.zeros_like(extended), np.zeros_like(extended)
    for band, part in zip(bands, parts, strict=True):
        grid.add(total, 3 * part, band)
    grid.add(at_once, 3 * whole, grid.whole)
    np.testing.assert_allclose(total, at_once, rtol=1e-12, atol=1e-12)


def test_patches_at_positions_and_in_blocks():
    grid = PatchGrid((9, 12, 2), (4, 3), 2)
    extended = grid.extend(image_for(grid))
    whole = grid.extract(extended, grid.whole)
    positions = np.array([0, 5, 17, grid.whole.n_patches - 1])
    np.testing.assert_array_equal(grid.extract_at(extended, positions), whole[positions])
    block = Block(1, 3, 2, 5)
    rows, columns = np.meshgrid([1, 2], [2, 3, 4], indexing="ij")
    numbers = (rows * grid.shape[1] + columns).ravel()
    np.testing.assert_array_equal(grid.extract(extended, block), whole[numbers])
    # the coverage of a block is what adding ones to its region gives
    total = np.zeros_like(extended)
    grid.add(total, np.ones((block.n_patches, n_features(grid))), block)
    assert total.sum() == block.n_patches * n_features(grid)
    coverage = grid.coverage(block)
    height, width = coverage.shape
    covered = total[2 : 2 + height, 4 : 4 + width, 0]
    np.testing.assert_array_equal(covered, coverage)


def test_a_shift_by_the_step_shifts_the_patches():
    rng = np.random.default_rng(2)
    large = rng.standard_normal((24, 24, 1))
    grid = PatchGrid((20, 20, 1), (5, 5), 2)
    first, second = (
        grid.extract(grid.extend(large[i : i + 20, i : i + 20]), grid.whole).reshape(
            *grid.shape, -1
        )
        for i in (0, 2)
    )
    # positions whose patches lie inside both images; the extension is patch - step = 3 wide
    np.testing.assert_array_equal(first[3:-2, 3:-2], second[2:-3, 2:-3])


@pytest.mark.parametrize("step", [1, 2, 4])
def test_all_pixels_are_covered_alike_where_the_step_divides_the_patch(step):
    grid = PatchGrid((13, 10, 1), (4, 4), step)
    extended = grid.extend(np.zeros(grid.image_shape))
    total = np.zeros_like(extended)
    grid.add(total, np.ones((grid.whole.n_patches, 16)), grid.whole)
    margin = 4 - step
    inside = total[margin : margin + 13, margin : margin + 10]
    np.testing.assert_array_equal(inside, (4 // step) ** 2)
