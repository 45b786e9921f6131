"""Gram matrices in square tiles: in memory, on disk, or recomputed for each product.

Only the tiles on and above the diagonal are evaluated and stored; products use each of them twice.
All kinds of storage use the same loop over the tiles, so that they give the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.files import temporary_map
from .._core.threads import VALUE_WORK, n_threads, run_in_threads
from .._core.types import Array
from ..kernels.base import TILE, Kernel, block_dtype, rectangular_block, symmetric_block
from .base import CrossOperator, GramOperator, as_indices


def stored_bytes(n: int, itemsize: int) -> int:
    """Return the bytes of the tiles on and above the diagonal of an n x n matrix."""
    whole, rest = divmod(n, TILE)
    return (n * n + whole * TILE**2 + rest**2) // 2 * itemsize


class TiledGram(GramOperator):
    """The Gram matrix of a fitted kernel on its data.

    Parameters
    ----------
    kernel : Kernel
        A fitted kernel.
    X : validated data
        Result of ``kernel.validate``.
    storage : {"memory", "disk", "recompute"}
        Where tiles are kept between products. ``"disk"`` is a temporary file in the folder
        ``TMPDIR``, deleted with the operator.
    """

    def __init__(self, kernel: Kernel, X: Any, storage: str) -> None:
        points = kernel.prepare(X)
        n = len(points)
        super().__init__(shape=(n, n), dtype=points.dtype)
        self.kernel = kernel
        self.points = points
        self.storage = storage
        self.recomputes = storage == "recompute"
        self._corners = [(i, j) for i in range(0, n, TILE) for j in range(i, n, TILE)]
        self._buffer: Array | None = None
        if not self.recomputes:
            sizes = [min(TILE, n - i) * min(TILE, n - j) for i, j in self._corners]
            self._offsets = np.cumsum([0, *sizes], dtype=np.int64)
            self._buffer = self._evaluate_tiles(sum(sizes))

    def _evaluate_tiles(self, size: int) -> Array:
        """Evaluate all tiles into one buffer, in memory or on disk."""
        if self.storage == "memory":
            buffer = np.empty(size, dtype=self.dtype)
        else:
            buffer = temporary_map("The Gram matrix", (size,), self.dtype)

        def fill(worker: int, n_workers: int) -> None:
            for index in range(worker, len(self._corners), n_workers):
                target = buffer[self._offsets[index] : self._offsets[index + 1]]
                tile = self._tile(index, target)
                if not np.may_share_memory(tile, target):
                    target[:] = tile.reshape(-1)

        serial = not self.kernel.threadsafe
        run_in_threads(fill, len(self._corners), serial=serial, work=VALUE_WORK * size)
        return buffer

    def _tile(self, index: int, scratch: Any) -> Array:
        """Return a stored tile as a view, or evaluate it, into `scratch` if possible."""
        i, j = self._corners[index]
        shape = (min(TILE, self.shape[0] - i), min(TILE, self.shape[0] - j))
        if self._buffer is not None:
            return self._buffer[self._offsets[index] : self._offsets[index + 1]].reshape(shape)
        out = scratch[: shape[0] * shape[1]].reshape(shape)
        return self.kernel.evaluate(self.points[i : i + TILE], self.points[j : j + TILE], out)

    def _matmat(self, V: Array) -> Array:
        # With the vectors in rows, products with a tile were 6 to 40 % faster in trials.
        dtype = np.result_type(self.dtype, V.dtype)
        Vt = np.ascontiguousarray(V.T)

        def partial_product(worker: int, n_workers: int) -> Array:
            scratch = np.empty(TILE * TILE, dtype=self.dtype) if self.recomputes else None
            product = np.zeros((Vt.shape[0], self.shape[0]), dtype=dtype)
            for index in range(worker, len(self._corners), n_workers):
                i, j = self._corners[index]
                tile = self._tile(index, scratch)
                product[:, i : i + TILE] += Vt[:, j : j + TILE] @ tile.T
                if i != j:
                    product[:, j : j + TILE] += Vt[:, i : i + TILE] @ tile
            return product

        products = run_in_threads(
            partial_product,
            len(self._corners),
            serial=self.recomputes and not self.kernel.threadsafe,
            work=self.shape[0] ** 2 * (V.shape[1] + 16),  # the same split for every storage
        )
        for product in products[1:]:
            products[0] += product
        return products[0].T

    def rows(self, indices: ArrayLike) -> Array:
        """Return rows: read from the stored tiles, or evaluated."""
        chosen = as_indices(indices, self.shape[0])
        if self._buffer is None:
            return rectangular_block(self.kernel, self.points[chosen], self.points)
        result = np.empty((len(chosen), self.shape[0]), dtype=self.dtype)
        order = np.argsort(chosen, kind="stable")
        tiles, n_tiles = chosen[order] // TILE, -(-self.shape[0] // TILE)
        groups = np.split(order, np.flatnonzero(np.diff(tiles)) + 1) if len(chosen) else []

        def gather(worker: int, n_workers: int) -> None:
            for group in groups[worker::n_workers]:
                row, inside = int(chosen[group[0]]) // TILE, chosen[group] % TILE
                for other in range(n_tiles):
                    # tiles left of the diagonal are not stored: read columns of those above it
                    i, j = sorted((row, other))
                    tile = self._tile(i * n_tiles - i * (i + 1) // 2 + j, None)
                    part = tile[inside] if row == i else tile[:, inside].T
                    result[group, TILE * other : TILE * (other + 1)] = part

        run_in_threads(gather, len(groups), work=VALUE_WORK // 4 * result.size)  # only copies
        return result

    def toarray(self) -> Array:
        """Return the whole matrix."""
        if self.recomputes:
            return symmetric_block(self.kernel, self.points)
        if len(self._corners) == 1:
            return np.array(self._tile(0, None))  # not a memory map
        return super().toarray()

    def diagonal(self) -> Array:
        """Return k(x, x) for each point."""
        return self.kernel.diagonal(self.points)

    def cross(self, X_new: Any) -> CrossGram:
        """Return the operator k(X_new, X); X_new is the result of ``kernel.validate``."""
        return CrossGram(self.kernel, self.kernel.prepare(X_new), self.points)


class CrossGram(CrossOperator):
    """The rectangular matrix k(X_new, X), evaluated in tiles for each product."""

    def __init__(self, kernel: Kernel, new: Any, points: Any) -> None:
        super().__init__(shape=(len(new), len(points)), dtype=block_dtype(new, points))
        self.kernel = kernel
        self.new = new
        self.points = points

    def _matmat(self, V: Array) -> Array:
        V = np.ascontiguousarray(V)
        product = np.zeros((self.shape[0], V.shape[1]), dtype=np.result_type(self.dtype, V.dtype))
        # smaller slices for few new points, so that all threads have work
        step = min(TILE, max(32, -(-self.shape[0] // n_threads())))
        starts = range(0, self.shape[0], step)

        def fill(worker: int, n_workers: int) -> None:
            scratch = np.empty(step * TILE, dtype=self.dtype)
            for i in starts[worker::n_workers]:
                rows = self.new[i : i + step]
                for j in range(0, self.shape[1], TILE):
                    columns = self.points[j : j + TILE]
                    out = scratch[: len(rows) * len(columns)].reshape(len(rows), len(columns))
                    block = self.kernel.evaluate(rows, columns, out)
                    product[i : i + step] += block @ V[j : j + TILE]

        work = self.shape[0] * self.shape[1] * (VALUE_WORK + V.shape[1])
        run_in_threads(fill, len(starts), serial=not self.kernel.threadsafe, work=work)
        return product

    def rows(self, indices: ArrayLike) -> Array:
        """Evaluate the rows of these new points."""
        return rectangular_block(
            self.kernel, self.new[as_indices(indices, self.shape[0])], self.points
        )
