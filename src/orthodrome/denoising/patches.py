"""Patches of an image on a regular grid, and the average of overlapping patches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

__all__ = ["Block", "PatchGrid"]


@dataclass(frozen=True)
class Block:
    """Neighbouring positions of a grid: its rows and its columns, each a half-open range."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def n_patches(self) -> int:
        """How many positions the block has."""
        return (self.bottom - self.top) * (self.right - self.left)


@dataclass(frozen=True)
class PatchGrid:
    r"""Positions of patches, `step` pixels apart, on an image whose border is extended.

    Along each axis the image is extended by mirroring, the border pixel repeated
    (``numpy.pad``'s "symmetric"): by ``patch - step`` pixels before it, and by as many after it,
    and those that the grid needs to end exactly at the edge. Each pixel of the image is therefore
    covered by at least :math:`\lfloor p_h/s \rfloor \lfloor p_w/s \rfloor` patches, also at the
    border, whether or not the sizes are multiples of the step.

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
        """Positions along the height and along the width."""
        rows, columns = (
            (sum(self._margins(axis)) + self.image_shape[axis] - self.patch_size[axis]) // self.step
            + 1
            for axis in (0, 1)
        )
        return rows, columns

    @property
    def whole(self) -> Block:
        """The block of all positions."""
        return Block(0, self.shape[0], 0, self.shape[1])

    def _margins(self, axis: int) -> tuple[int, int]:
        """Pixels by which the image is extended before and after it."""
        overlap = self.patch_size[axis] - self.step
        length = overlap + self.image_shape[axis] + overlap
        return overlap, overlap + -(length - self.patch_size[axis]) % self.step

    def extend(self, image: NDArray[Any]) -> NDArray[Any]:
        """Return the extended image, shape (rows, columns, channels)."""
        return np.pad(image, (self._margins(0), self._margins(1), (0, 0)), mode="symmetric")

    def bands(self, max_patches: int) -> Iterator[Block]:
        """Yield blocks of whole rows of the grid with about `max_patches` patches each."""
        rows, columns = self.shape
        depth = max(1, max_patches // columns)
        for top in range(0, rows, depth):
            yield Block(top, min(top + depth, rows), 0, columns)

    def extract(self, extended: NDArray[Any], block: Block) -> NDArray[Any]:
        """Return the patches of a block, shape (n_patches, n_features), as a copy."""
        part = self._windows(extended)[block.top : block.bottom, block.left : block.right]
        return part.reshape(block.n_patches, -1)

    def extract_at(self, extended: NDArray[Any], positions: NDArray[np.intp]) -> NDArray[Any]:
        """Return the patches at positions numbered row by row, as a copy."""
        where = np.unravel_index(positions, self.shape)
        return self._windows(extended)[where].reshape(len(positions), -1)

    def _windows(self, extended: NDArray[Any]) -> NDArray[Any]:
        """Return a view of all patches, shape (*self.shape, channels, height, width)."""
        windows = sliding_window_view(extended, self.patch_size, axis=(0, 1))
        return windows[:: self.step, :: self.step]

    def add(self, total: NDArray[Any], patches: NDArray[Any], block: Block) -> None:
        """Add the patches of a block to `total`, an array of the shape of the extended image."""
        rows, columns = block.bottom - block.top, block.right - block.left
        stack = patches.reshape(rows, columns, self.image_shape[2], *self.patch_size)
        step, part = self.step, total[block.top * self.step :, block.left * self.step :]
        # patches overlap, and none of their pixels at the same place in the patch do
        for i, j in np.ndindex(self.patch_size):
            part[i::step, j::step][:rows, :columns] += stack[..., i, j]

    def coverage(self, block: Block) -> NDArray[np.intp]:
        """Count the patches of a block over each pixel of its region."""
        counts = []
        lengths = (block.bottom - block.top, block.right - block.left)
        for n, side in zip(lengths, self.patch_size, strict=True):
            line = np.zeros((n - 1) * self.step + side, dtype=np.intp)
            for position in range(n):
                line[position * self.step : position * self.step + side] += 1
            counts.append(line)
        return np.multiply.outer(*counts)

    def average(self, total: NDArray[Any]) -> NDArray[Any]:
        """Divide the sum of all patches by their number over each pixel; cut off the extension."""
        (top, _), (left, _) = self._margins(0), self._margins(1)
        inside = (slice(top, top + self.image_shape[0]), slice(left, left + self.image_shape[1]))
        return total[inside] / self.coverage(self.whole)[inside][..., None]
