"""Images as arrays of numbers between 0 and 1, by Pillow."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._core.files import write_atomically
from ..._core.pictures import image_size_error
from ...plots._extras import require
from .data import InputError, check_memory

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")


def read_image(path: str | os.PathLike[str]) -> NDArray[np.float64]:
    """Read a PNG or JPEG image.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    ndarray of shape (height, width) or (height, width, 3)
        Grey values or colours, between 0 and 1. Transparent pixels are on white, and a photo is
        turned upright as its camera noted.

    Raises
    ------
    InputError
        If the file is not an image that can be read, or would not fit in memory.
    FileNotFoundError
        If there is no such file.
    MissingExtraError
        If Pillow is not installed.
    """
    file = Path(path)
    if file.is_dir():
        raise InputError(f"{file} is a folder; give the path of one image.")
    if not file.exists():
        raise FileNotFoundError(f"There is no image {file}; check the path.")
    pillow = _require_pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of many pixels; we check memory
            # from memory: Pillow would read as many bytes as a damaged chunk claims
            content = file.read_bytes()
            with pillow.Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
                width, height = image.size
                check_memory(
                    2 * 3 * 8 * width * height,
                    f"{file}, {width} x {height} pixels,",
                    "Cut out a part, or make it smaller.",
                )
                if beyond := image_size_error(image.size, len(content)):
                    raise InputError(f"{file} is a damaged image: {beyond}.")
                return _as_numbers(pillow, pillow.ImageOps.exif_transpose(image))
    except pillow.UnidentifiedImageError:
        raise InputError(f"{file} is not a PNG or JPEG image.") from None
    except pillow.Image.DecompressionBombError as problem:
        raise InputError(f"{file} is too large an image: {problem}") from None
    except (OSError, SyntaxError, ValueError) as problem:
        if isinstance(problem, InputError | PermissionError):
            raise
        raise InputError(f"{file} is a damaged image: {problem}.") from None


def write_image(path: str | os.PathLike[str], image: ArrayLike) -> None:
    """Write an image with 8 bits for each value, whole or not at all.

    Parameters
    ----------
    path : str or path-like
        The file; ``.png``, ``.jpg`` or ``.jpeg``.
    image : array-like of shape (height, width) or (height, width, 3)
        Grey values or colours between 0 and 1; those beyond are clipped.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in IMAGE_SUFFIXES:
        raise InputError(f"{path}: images are written as {', '.join(IMAGE_SUFFIXES)}.")
    write_atomically(path, encoded_image(image, suffix))


def encoded_image(image: ArrayLike, suffix: str = ".png") -> bytes:
    """Return the content of the file that :func:`write_image` writes."""
    values = np.asarray(image, dtype=np.float64)
    if not (values.ndim == 2 or (values.ndim == 3 and values.shape[2] == 3)) or not values.size:
        raise ValueError(
            f"image of write_image must have the shape (h, w) or (h, w, 3); got {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError("image of write_image must be finite; it has NaN or infinite values.")
    pillow = _require_pillow()
    pixels = np.round(np.clip(values, 0.0, 1.0) * 255).astype(np.uint8)
    buffer = io.BytesIO()
    pillow.Image.fromarray(pixels).save(buffer, "PNG" if suffix == ".png" else "JPEG", quality=95)
    return buffer.getvalue()


def _require_pillow() -> Any:
    for module in ("PIL.ImageOps", "PIL.Image"):
        require(module, "Images", "image")
    return require("PIL", "Images", "image")


def _as_numbers(pillow: Any, image: Any) -> NDArray[np.float64]:
    if image.mode.startswith("I"):  # 16 bits of grey
        return np.asarray(image, dtype=np.float64) / 65535.0
    if "A" in image.mode or "transparency" in image.info:
        grey = image.mode == "LA"
        above = image.convert("RGBA")
        white = pillow.Image.new("RGBA", above.size, "white")
        image = pillow.Image.alpha_composite(white, above).convert("L" if grey else "RGB")
    else:
        image = image.convert("L" if image.mode in ("1", "L") else "RGB")
    return np.asarray(image, dtype=np.float64) / 255.0
