"""Read and write images with Pillow, as arrays of numbers between 0 and 1."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._core.checks import check_numbers
from ..._core.files import write_atomically
from ..._core.pictures import image_size_error
from ..._core.types import Floats
from ...plots._matplotlib import require
from .checks import check_memory
from .data import InputError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")


def read_image(path: str | os.PathLike[str]) -> Floats:
    """Read a PNG or JPEG image.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    ndarray of shape (height, width) or (height, width, 3)
        Grey values or colours, between 0 and 1. Transparent pixels are drawn on white. Photos are
        rotated according to their EXIF orientation.

    Raises
    ------
    InputError
        If the file is not a readable image, or does not fit in memory.
    FileNotFoundError
        If the file does not exist.
    MissingExtraError
        If Pillow is not installed.
    """
    file = Path(path)
    pillow = _require_pillow()
    # read the bytes first: from a path, Pillow allocates any chunk size that a damaged file claims
    content = file.read_bytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns about large images
            with pillow.Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
                width, height = image.size
                check_memory(
                    2 * 3 * 8 * width * height,
                    f"{file}, {width} x {height} pixels,",
                    "Crop the image, or reduce its size.",
                )
                if problem := image_size_error(image.size, len(content)):
                    raise InputError(f"{file} is a damaged image: {problem}.")
                return _as_array(pillow, pillow.ImageOps.exif_transpose(image))
    except InputError:
        raise
    except pillow.UnidentifiedImageError:  # its message has only the address of the bytes
        raise InputError(
            f"{file} is not a PNG or JPEG image, or it is damaged. Save it again as PNG."
        ) from None
    except pillow.Image.DecompressionBombError as problem:
        raise InputError(f"{file} is too large: {problem} Reduce its size.") from None
    except (OSError, SyntaxError, ValueError) as problem:
        raise InputError(f"{file} is a damaged image: {problem}. Save it again.") from None


def write_image(path: str | os.PathLike[str], image: ArrayLike) -> None:
    """Write an image atomically, with 8 bits per value.

    Parameters
    ----------
    path : str or path-like
        The file; ``.png``, ``.jpg`` or ``.jpeg``.
    image : array-like of shape (height, width) or (height, width, 3)
        Grey values or colours. Values outside [0, 1] are clipped.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in IMAGE_SUFFIXES:
        raise InputError(f"{path}: the suffix must be one of {', '.join(IMAGE_SUFFIXES)}.")
    write_atomically(path, encode_image(image, suffix))


def encode_image(image: ArrayLike, suffix: str = ".png") -> bytes:
    """Return an image as the bytes of a PNG or JPEG file."""
    values = check_numbers(image, "image", "write_image", dtype=np.float64, allow_nd=True)
    if values.ndim != 2 and values.shape[2:] != (3,):
        raise ValueError(
            f"image of write_image must have the shape (h, w) or (h, w, 3); got {values.shape}."
        )
    pillow = _require_pillow()
    pixels = np.round(np.clip(values, 0.0, 1.0) * 255).astype(np.uint8)
    buffer = io.BytesIO()
    pillow.Image.fromarray(pixels).save(buffer, "PNG" if suffix == ".png" else "JPEG", quality=95)
    return buffer.getvalue()


def _require_pillow() -> Any:
    for module in ("PIL.ImageOps", "PIL.Image"):
        require(module, "Images", "cli")
    return require("PIL", "Images", "cli")


def _as_array(pillow: Any, image: Any) -> Floats:
    if image.mode.startswith("I"):  # 16-bit grey
        return np.asarray(image, dtype=np.float64) / 65535.0
    if "A" in image.mode or "transparency" in image.info:
        mode = "L" if image.mode == "LA" else "RGB"
        foreground = image.convert("RGBA")
        background = pillow.Image.new("RGBA", foreground.size, "white")
        image = pillow.Image.alpha_composite(background, foreground).convert(mode)
    else:
        image = image.convert("L" if image.mode in ("1", "L") else "RGB")
    return np.asarray(image, dtype=np.float64) / 255.0
