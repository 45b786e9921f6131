"""Pictures whose header promises more than their file can hold."""

from __future__ import annotations

__all__ = ["pixels_beyond"]

# PNG's deflate makes at most 1032 bytes of one, and a byte is eight pixels of black and white;
# JPEG's 64 pixels of a block take more than a bit.
_MOST_PIXELS_PER_BYTE = 8 * 1032


def pixels_beyond(size: tuple[int, int], n_bytes: int) -> str | None:
    """Return why a file of so many bytes cannot hold a picture of this size, None where it may.

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
