"""Gram matrices in square tiles: kept in memory, kept on disk, or evaluated anew each time.

Only the tiles on and above the diagonal are evaluated and kept, and each serves twice in a
product. The three kinds of storage run through the same loop over the same tiles, so that they
give the same numbers.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.files import temporary_map
from .._core.threads import VALUE_WORK, n_threads, run_in_threads
from ..kernels.base import TILE, Kernel, block_dtype, rectangular_block, symmetric_block
from ._loops import gather_rows
from .base import CrossOperator, GramOperator, as_indices

__all__ = ["CrossGram", "TiledGram", "stored_bytes"]


def stored_bytes(n: int, itemsize: int) -> int:
    """Return the bytes of the stored half of an n x n matrix in tiles."""
    return _Layout(n).total * itemsize


class _Layout:
    """Which tiles there are and where each starts in one long buffer."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.corners = [(i, j) for i in range(0, n, TILE) for j in range(i, n, TILE)]
        sizes = [(min(i + TILE, n) - i) * (min(j + TILE, n) - j) for i, j in self.corners]
        self.offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.total = int(self.offsets[-1])

    def shape(self, index: int) -> tuple[int, int]:
        """Return the shape of a tile."""
        i, j = self.corners[index]
        return min(i + TILE, self.n) - i, min(j + TILE, self.n) - j

    def view(self, buffer: NDArray[Any], index: int) -> NDArray[Any]:
        """Return a tile as a view of the long buffer."""
        return buffer[self.offsets[index] : self.offsets[index + 1]].reshape(self.shape(index))


class _Tiles(Protocol):
    """Where tiles come from; `scratch` is a buffer of one tile that may be used."""

    def get(self, index: int, scratch: NDArray[Any]) -> NDArray[Any]: ...


class _Recomputed:
    """Evaluates a tile whenever it is asked for."""

    def __init__(self, kernel: Kernel, points: Any, layout: _Layout) -> None:
        self._kernel, self._points, self._layout = kernel, points, layout

    def get(self, index: int, scratch: NDArray[Any]) -> NDArray[Any]:
        i, j = self._layout.corners[index]
        height, width = self._layout.shape(index)
        out = scratch.reshape(-1)[: height * width].reshape(height, width)
        return self._kernel.evaluate(self._points[i : i + TILE], self._points[j : j + TILE], out)


class _Stored:
    """Evaluates every tile once, into a buffer in memory or on disk."""

    def __init__(self, source: _Recomputed, layout: _Layout, buffer: NDArray[Any], serial: bool):
        self._layout, self._buffer = layout, buffer

        def fill(share: int, n_shares: int) -> None:
            for index in range(share, len(layout.corners), n_shares):
                tile = layout.view(buffer, index)
                made = source.get(index, tile)
                if not np.may_share_memory(made, tile):
                    tile[...] = made

        run_in_threads(fill, len(layout.corners), serial=serial, work=VALUE_WORK * layout.total)

    def get(self, index: int, scratch: NDArray[Any]) -> NDArray[Any]:
        return self._layout.view(self._buffer, index)

    def rows(self, chosen: NDArray[np.intp]) -> NDArray[Any]:
        n = self._layout.n
        result = np.empty((len(chosen), n), dtype=self._buffer.dtype)
        places = np.argsort(chosen, kind="stable")
        tiles = chosen[places] // TILE
        groups = np.split(places, np.flatnonzero(np.diff(tiles)) + 1) if len(chosen) else []
        buffer, offsets = np.asarray(self._buffer), self._layout.offsets

        def gather(share: int, n_shares: int) -> None:
            for group in groups[share::n_shares]:
                gather_rows(buffer, offsets, TILE, n, chosen[group], group, result)

        run_in_threads(gather, len(groups), work=VALUE_WORK // 4 * result.size)  # copies
        return result


class TiledGram(GramOperator):
    """The Gram matrix of a fitted kernel on its data.

    Parameters
    ----------
    kernel : Kernel
        A fitted kernel.
    X : validated data
        What ``kernel.validate`` returned.
    storage : {"memory", "disk", "recompute"}
        Where the tiles live between products. ``"disk"`` is a temporary file without a name, in
        the folder that ``TMPDIR`` names; it disappears with the operator.
    """

    def __init__(self, kernel: Kernel, X: Any, storage: str) -> None:
        points = kernel.prepare(X)
        super().__init__(shape=(len(points), len(points)), dtype=points.dtype)
        self.kernel = kernel
        self.points = points
        self.storage = storage
        self.recomputes = storage == "recompute"
        self._layout = _Layout(len(points))
        self._tiles: _Tiles = _Recomputed(kernel, points, self._layout)
        if storage != "recompute":
            serial = not kernel.threadsafe
            self._tiles = _Stored(self._tiles, self._layout, self._allocate(), serial)

    def _identity(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "points": self.points}

    def _allocate(self) -> NDArray[Any]:
        size = self._layout.total
        if self.storage == "memory":
            return np.empty(size, dtype=self.dtype)
        return temporary_map("The Gram matrix", (size,), self.dtype)

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        # With the few vectors in rows, products with a tile were 6 to 40 % faster in trials.
        dtype = np.result_type(self.dtype, V.dtype)
        Vt = np.ascontiguousarray(V.T)
        layout = self._layout

        def share_of_product(share: int, n_shares: int) -> NDArray[Any]:
            scratch = np.empty(TILE * TILE, dtype=self.dtype)
            product = np.zeros((Vt.shape[0], self.shape[0]), dtype=dtype)
            for index in range(share, len(layout.corners), n_shares):
                i, j = layout.corners[index]
                tile = self._tiles.get(index, scratch)
                product[:, i : i + TILE] += Vt[:, j : j + TILE] @ tile.T
                if i != j:
                    product[:, j : j + TILE] += Vt[:, i : i + TILE] @ tile
            return product

        parts = run_in_threads(
            share_of_product,
            len(layout.corners),
            serial=self.recomputes and not self.kernel.threadsafe,
            work=self.shape[0] ** 2 * (V.shape[1] + 16),  # the same sums for every storage
        )
        for part in parts[1:]:
            parts[0] += part
        return parts[0].T

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return rows: read from the stored tiles, or evaluated."""
        chosen = as_indices(indices, self.shape[0])
        if isinstance(self._tiles, _Stored):
            return self._tiles.rows(chosen)
        return rectangular_block(self.kernel, self.points[chosen], self.points)

    def toarray(self) -> NDArray[Any]:
        """Return the whole matrix."""
        if self.recomputes:
            return symmetric_block(self.kernel, self.points)
        return super().toarray()

    def diagonal(self) -> NDArray[Any]:
        """Return k(x, x) for each point."""
        return self.kernel.diagonal(self.points)

    def cross(self, X_new: Any) -> CrossGram:
        """Return the operator k(X_new, X); X_new is what ``kernel.validate`` returned."""
        return CrossGram(self.kernel, self.kernel.prepare(X_new), self.points)


class CrossGram(CrossOperator):
    """The rectangular matrix k(X_new, X), evaluated in tiles for each product."""

    def __init__(self, kernel: Kernel, new: Any, points: Any) -> None:
        super().__init__(shape=(len(new), len(points)), dtype=block_dtype(new, points))
        self.kernel = kernel
        self.new = new
        self.points = points

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        V = np.ascontiguousarray(V)
        product = np.zeros((self.shape[0], V.shape[1]), dtype=np.result_type(self.dtype, V.dtype))
        # few new points: thinner slices, so that every thread has its share
        step = min(TILE, max(32, -(-self.shape[0] // n_threads())))
        starts = range(0, self.shape[0], step)

        def fill(share: int, n_shares: int) -> None:
            scratch = np.empty(step * TILE, dtype=self.dtype)
            for i in starts[share::n_shares]:
                rows = self.new[i : i + step]
                for j in range(0, self.shape[1], TILE):
                    columns = self.points[j : j + TILE]
                    out = scratch[: len(rows) * len(columns)].reshape(len(rows), len(columns))
                    block = self.kernel.evaluate(rows, columns, out)
                    product[i : i + step] += block @ V[j : j + TILE]

        work = self.shape[0] * self.shape[1] * (VALUE_WORK + V.shape[1])
        run_in_threads(fill, len(starts), serial=not self.kernel.threadsafe, work=work)
        return product

    def rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Evaluate the rows of these new points."""
        return rectangular_block(
            self.kernel, self.new[as_indices(indices, self.shape[0])], self.points
        )
