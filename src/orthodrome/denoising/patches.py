"""Cut an image into overlapping patches on a regular grid, and average them to an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .._core.types import Floats, Indices


@dataclass(frozen=True)
class PatchGrid:
    r"""A grid of patches, `step` pixels apart, on an extended image.

    Along each axis the image is mirrored at its border, as with mode "symmetric" of ``numpy.pad``.
    This adds ``patch_size - step`` pixels before the image and at least as many after it, so that
    the last patch ends exactly at the edge of the extended image. Therefore each pixel, also at the
    border, is covered by at least :math:`\lfloor p_h/s \rfloor \lfloor p_w/s \rfloor` patches,
    where p_h and p_w are the height and width of a patch and s is the step. The sizes need not be
    multiples of the step. Positions on the grid are numbered row by row from 0.

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
    >>> patches = grid.extract(extended, grid.positions)
    >>> patches.shape
    (12, 9)
    >>> total = np.zeros_like(extended)
    >>> grid.add(total, patches, grid.positions)
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
    def positions(self) -> Indices:
        """All positions."""
        return np.arange(self.shape[0] * self.shape[1])

    def _margins(self, axis: int) -> tuple[int, int]:
        """Return how many pixels are added before and after the image along an axis."""
        overlap = self.patch_size[axis] - self.step
        length = overlap + self.image_shape[axis] + overlap
        return overlap, overlap + -(length - self.patch_size[axis]) % self.step

    def extend(self, image: NDArray[Any]) -> NDArray[Any]:
        """Return the extended image, shape (rows, columns, channels)."""
        return np.pad(image, (self._margins(0), self._margins(1), (0, 0)), mode="symmetric")

    def extract(self, extended: NDArray[Any], positions: Indices) -> NDArray[Any]:
        """Return a copy of the patches at positions, shape (n_positions, n_features)."""
        windows = sliding_window_view(extended, self.patch_size, axis=(0, 1))
        rows, columns = np.unravel_index(positions, self.shape)
        return windows[self.step * rows, self.step * columns].reshape(len(positions), -1)

    def add(self, total: NDArray[Any], patches: NDArray[Any], positions: Indices) -> None:
        """Add patches at distinct positions to `total`, which has the shape of extended images."""
        stack = patches.reshape(len(positions), -1, *self.patch_size)
        rows, columns = (self.step * index for index in np.unravel_index(positions, self.shape))
        # For one (i, j), pixel (i, j) of each patch lies at a different place, so one += adds all.
        for i, j in np.ndindex(self.patch_size):
            total[rows + i, columns + j] += stack[..., i, j]

    def coverage(self, positions: Indices) -> Floats:
        """Return how many patches cover each pixel of the extended image, as one channel."""
        counts = self.extend(np.zeros((*self.image_shape[:2], 1)))
        self.add(
            counts, np.ones((len(positions), self.patch_size[0] * self.patch_size[1])), positions
        )
        return counts

    def average(self, total: NDArray[Any]) -> NDArray[Any]:
        """Return the image in which each pixel is the average of the patches that cover it.

        `total` is the sum of all patches, made with :meth:`add`.
        """
        (top, _), (left, _) = self._margins(0), self._margins(1)
        inside = (slice(top, top + self.image_shape[0]), slice(left, left + self.image_shape[1]))
        return total[inside] / self.coverage(self.positions)[inside]
