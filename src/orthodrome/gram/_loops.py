"""Rows of a symmetric matrix, stored as the tiles on and above its diagonal."""

from __future__ import annotations

from typing import Any

from .._core.compiled import compiled


@compiled
def gather_rows(
    buffer: Any, offsets: Any, tile: int, n: int, rows: Any, targets: Any, out: Any
) -> None:
    """Copy rows that lie in one row of tiles from the buffer to `out[targets]`.

    Entries left of the diagonal are columns of the tiles above it; each tile is read once.
    """
    n_tiles = -(-n // tile)
    tile_row = rows[0] // tile
    first = tile_row * tile
    row_width = min(first + tile, n) - first
    for above in range(tile_row):
        start = offsets[above * n_tiles - above * (above - 1) // 2 + tile_row - above]
        for p in range(tile):
            line = start + p * row_width - first
            for q in range(len(rows)):
                out[targets[q], above * tile + p] = buffer[line + rows[q]]
    for right in range(tile_row, n_tiles):
        start = offsets[tile_row * n_tiles - tile_row * (tile_row - 1) // 2 + right - tile_row]
        left = right * tile
        width = min(left + tile, n) - left
        for q in range(len(rows)):
            line = start + (rows[q] - first) * width
            out[targets[q], left : left + width] = buffer[line : line + width]
