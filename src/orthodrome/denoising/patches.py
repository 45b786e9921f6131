"""Patches of an image on a regular grid, and the average of overlapping patches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray


@dataclass(frozen=True)
class Block:
    """A block of positions of a grid: half-open ranges of rows and columns."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def n_patches(self) -> int:
        """The number of positions."""
        return (self.bottom - self.top) * (self.right - self.left)


@dataclass(frozen=True)
class PatchGrid:
    r"""A grid of patches, `step` pixels apart, on an extended image.

    Along each axis the image is extended by mirroring with the border pixel repeated
    (``numpy.pad``'s "symmetric"): by ``patch - step`` pixels before it, and by at least as many
    after it, so that the grid ends exactly at the edge. Therefore each pixel, also at the border,
    is covered by at least :math:`\lfloor p_h/s \rfloor \lfloor p_w/s \rfloor` patches, whether or
    not the sizes are multiples of the step.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels.
    patch_size : tuple of int
        Height and width of a patch, at most those of the image.
    step : int
        Pixels between neighbouring patches, at most the smaller side of a patch.

    Examples
    --------
    >>> grid = PatchGrid((5, 7, 1), (3, 3), 2)
    >>> grid.shape
    (3, 4)
    >>> image = np.arange(35.0).reshape(5, 7, 1)
    >>> extended = grid.extend(image)
    >>> patches = grid.extract(extended, grid.whole)
    >>> patches.shape
    (12, 9)
    >>> total = np.zeros_like(extended)
    >>> grid.add(total, patches, grid.whole)
    >>> bool(np.array_equal(grid.average(total), image))
    True
    """

    image_shape: tuple[int, int, int]
    patch_size: tuple[int, int]
    step: int

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns of positions."""
        rows, columns = (
            (sum(self._margins(axis)) + self.image_shape[axis] - self.patch_size[axis]) // self.step
            for axis in (0, 1)
        )
        return rows + 1, columns + 1

    @property
    def whole(self) -> Block:
        """The block of all positions."""
        return Block(0, self.shape[0], 0, self.shape[1])

    def _margins(self, axis: int) -> tuple[int, int]:
        """Return the numbers of pixels added before and after the image."""
        overlap = self.patch_size[axis] - self.step
        length = overlap + self.image_shape[axis] + overlap
        return overlap, overlap + -(length - self.patch_size[axis]) % self.step

    def extend(self, image: NDArray[Any]) -> NDArray[Any]:
        """Return the extended image, shape (rows, columns, channels)."""
        return np.pad(image, (self._margins(0), self._margins(1), (0, 0)), mode="symmetric")

    def bands(self, max_patches: int) -> Iterator[Block]:
        """Yield blocks of whole rows with about `max_patches` patches each."""
        rows, columns = self.shape
        depth = max(1, max_patches // columns)
        for top in range(0, rows, depth):
            yield Block(top, min(top + depth, rows), 0, columns)

    def extract(self, extended: NDArray[Any], block: Block) -> NDArray[Any]:
        """Return the patches of a block, shape (n_patches, n_features), as a copy."""
        patches = self._windows(extended)[block.top : block.bottom, block.left : block.right]
        return patches.reshape(block.n_patches, -1)

    def extract_at(self, extended: NDArray[Any], positions: NDArray[np.intp]) -> NDArray[Any]:
        """Return the patches at positions that are numbered row by row, as a copy."""
        indices = np.unravel_index(positions, self.shape)
        return self._windows(extended)[indices].reshape(len(positions), -1)

    def _windows(self, extended: NDArray[Any]) -> NDArray[Any]:
        """Return a view of all patches, shape (*self.shape, channels, height, width)."""
        windows = sliding_window_view(extended, self.patch_size, axis=(0, 1))
        return windows[:: self.step, :: self.step]

    def add(self, total: NDArray[Any], patches: NDArray[Any], block: Block) -> None:
        """Add the patches of a block to `total`, an array of the shape of the extended image."""
        rows, columns = block.bottom - block.top, block.right - block.left
        stack = patches.reshape(rows, columns, self.image_shape[2], *self.patch_size)
        step, region = self.step, total[block.top * self.step :, block.left * self.step :]
        # pixels at the same position (i, j) of different patches do not overlap
        for i, j in np.ndindex(self.patch_size):
            region[i::step, j::step][:rows, :columns] += stack[..., i, j]

    def coverage(self, block: Block) -> NDArray[np.intp]:
        """Return the number of patches of a block over each pixel of its region."""
        counts = []
        lengths = (block.bottom - block.top, block.right - block.left)
        for n, side in zip(lengths, self.patch_size, strict=True):
            starts = np.zeros((n - 1) * self.step + 1, dtype=np.intp)
            starts[:: self.step] = 1
            counts.append(np.convolve(starts, np.ones(side, dtype=np.intp)))
        return np.multiply.outer(*counts)

    def average(self, total: NDArray[Any]) -> NDArray[Any]:
        """Return the average of all patches over the pixels of the image."""
        (top, _), (left, _) = self._margins(0), self._margins(1)
        inside = (slice(top, top + self.image_shape[0]), slice(left, left + self.image_shape[1]))
        return total[inside] / self.coverage(self.whole)[inside][..., None]
