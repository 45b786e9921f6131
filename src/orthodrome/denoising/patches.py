"""Cut an image into overlapping patches on a regular grid, and average them to an image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray


@dataclass(frozen=True)
class Block:
    """A rectangle of grid positions.

    It consists of the rows ``top`` to ``bottom - 1`` and the columns ``left`` to ``right - 1``.
    """

    top: int
    bottom: int
    left: int
    right: int

    @property
    def n_patches(self) -> int:
        """The number of positions, with one patch at each."""
        return (self.bottom - self.top) * (self.right - self.left)


@dataclass(frozen=True)
class PatchGrid:
    r"""A grid of patches, `step` pixels apart, on an extended image.

    Along each axis the image is mirrored at its border, as with mode "symmetric" of ``numpy.pad``.
    This adds ``patch_size - step`` pixels before the image and at least as many after it, so that
    the last patch ends exactly at the edge of the extended image. Therefore each pixel, also at the
    border, is covered by at least :math:`\lfloor p_h/s \rfloor \lfloor p_w/s \rfloor` patches,
    where p_h and p_w are the height and width of a patch and s is the step. The sizes need not be
    multiples of the step.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels.
    patch_size : tuple of int
        Height and width of a patch, at most the height and width of the image.
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
        """Return how many pixels are added before and after the image along an axis."""
        overlap = self.patch_size[axis] - self.step
        length = overlap + self.image_shape[axis] + overlap
        return overlap, overlap + -(length - self.patch_size[axis]) % self.step

    def extend(self, image: NDArray[Any]) -> NDArray[Any]:
        """Return the extended image, shape (rows, columns, channels)."""
        return np.pad(image, (self._margins(0), self._margins(1), (0, 0)), mode="symmetric")

    def bands(self, max_patches: int) -> Iterator[Block]:
        """Yield blocks of whole grid rows with at most `max_patches` patches each.

        A block has at least one row, even if that row has more patches.
        """
        rows, columns = self.shape
        depth = max(1, max_patches // columns)
        for top in range(0, rows, depth):
            yield Block(top, min(top + depth, rows), 0, columns)

    def extract(self, extended: NDArray[Any], block: Block) -> NDArray[Any]:
        """Return the patches of a block, shape (n_patches, n_features), as a copy."""
        patches = self._windows(extended)[block.top : block.bottom, block.left : block.right]
        return patches.reshape(block.n_patches, -1)

    def extract_at(self, extended: NDArray[Any], positions: NDArray[np.intp]) -> NDArray[Any]:
        """Return a copy of the patches at positions, which are numbered row by row from 0."""
        indices = np.unravel_index(positions, self.shape)
        return self._windows(extended)[indices].reshape(len(positions), -1)

    def _windows(self, extended: NDArray[Any]) -> NDArray[Any]:
        """Return a view of all patches, shape (*self.shape, channels, height, width)."""
        windows = sliding_window_view(extended, self.patch_size, axis=(0, 1))
        return windows[:: self.step, :: self.step]

    def add(self, total: NDArray[Any], patches: NDArray[Any], block: Block) -> None:
        """Add the patches of a block to `total`, which has the shape of the extended image."""
        rows, columns = block.bottom - block.top, block.right - block.left
        stack = patches.reshape(rows, columns, self.image_shape[2], *self.patch_size)
        step, region = self.step, total[block.top * self.step :, block.left * self.step :]
        # For one (i, j), pixel (i, j) of each patch lies at a different place, so one += adds all.
        for i, j in np.ndindex(self.patch_size):
            region[i::step, j::step][:rows, :columns] += stack[..., i, j]

    def coverage(self, block: Block) -> NDArray[np.intp]:
        """Return how many patches of a block cover each pixel of the region that it spans."""
        counts = []
        lengths = (block.bottom - block.top, block.right - block.left)
        for n, side in zip(lengths, self.patch_size, strict=True):
            starts = np.zeros((n - 1) * self.step + 1, dtype=np.intp)
            starts[:: self.step] = 1
            counts.append(np.convolve(starts, np.ones(side, dtype=np.intp)))
        return np.multiply.outer(*counts)

    def average(self, total: NDArray[Any]) -> NDArray[Any]:
        """Return the image in which each pixel is the average of the patches that cover it.

        `total` is the sum of all patches, made with :meth:`add`.
        """
        (top, _), (left, _) = self._margins(0), self._margins(1)
        inside = (slice(top, top + self.image_shape[0]), slice(left, left + self.image_shape[1]))
        return total[inside] / self.coverage(self.whole)[inside][..., None]
