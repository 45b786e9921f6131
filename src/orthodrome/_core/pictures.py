"""Plausibility of the size of an image."""

from __future__ import annotations

# PNG's deflate expands a byte to at most 1032, each of eight black-and-white pixels; JPEG needs
# more than a bit for a block of 64 pixels.
_MOST_PIXELS_PER_BYTE = 8 * 1032


def pixels_beyond(size: tuple[int, int], n_bytes: int) -> str | None:
    """Return why a file of `n_bytes` cannot hold an image of this size, or None if it may.

    Examples
    --------
    >>> pixels_beyond((512, 512), 100_000) is None
    True
    >>> pixels_beyond((13_000, 13_000), 1_000)
    'its header promises 13000 x 13000 pixels, which 1000 bytes cannot hold'
    """
    width, height = size
    if width * height <= _MOST_PIXELS_PER_BYTE * n_bytes:
        return None
    return f"its header promises {width} x {height} pixels, which {n_bytes} bytes cannot hold"
