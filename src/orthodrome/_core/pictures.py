"""Plausibility check of the size of an image."""

from __future__ import annotations

# PNG: deflate expands a byte to at most 1032 bytes, and a byte holds at most eight pixels (of one
# bit). JPEG stays below this limit: it needs more than one bit per block of 64 pixels.
_MAX_PIXELS_PER_BYTE = 8 * 1032


def image_size_error(size: tuple[int, int], n_bytes: int) -> str | None:
    """Return an error message if `n_bytes` are too few for an image of this size, else None.

    Examples
    --------
    >>> image_size_error((512, 512), 100_000) is None
    True
    >>> image_size_error((13_000, 13_000), 1_000)
    'its header declares 13000 x 13000 pixels, too many for a file of 1000 bytes'
    """
    width, height = size
    if width * height <= _MAX_PIXELS_PER_BYTE * n_bytes:
        return None
    return f"its header declares {width} x {height} pixels, too many for a file of {n_bytes} bytes"
