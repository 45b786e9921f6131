"""Rows of a symmetric matrix that is kept as the tiles on and above its diagonal."""

from __future__ import annotations

from typing import Any

from .._core.compiled import compiled


@compiled
def gather_rows(
    buffer: Any, offsets: Any, tile: int, n: int, rows: Any, places: Any, out: Any
) -> None:
    """Copy rows that lie in one row of tiles from the buffer of tiles to `out[places]`.

    Entries left of the diagonal are columns of the tiles above it; each tile is read once.
    """
    n_tiles = -(-n // tile)
    own = rows[0] // tile
    first = own * tile
    own_width = min(first + tile, n) - first
    for above in range(own):
        start = offsets[above * n_tiles - above * (above - 1) // 2 + own - above]
        for p in range(tile):
            line = start + p * own_width - first
            for q in range(len(rows)):
                out[places[q], above * tile + p] = buffer[line + rows[q]]
    for right in range(own, n_tiles):
        start = offsets[own * n_tiles - own * (own - 1) // 2 + right - own]
        left = right * tile
        width = min(left + tile, n) - left
        for q in range(len(rows)):
            line = start + (rows[q] - first) * width
            out[places[q], left : left + width] = buffer[line : line + width]
