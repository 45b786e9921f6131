"""One image without its noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..denoising import PatchDenoiser
from .inputs import InputError
from .work import Work, silent

__all__ = ["Denoising", "denoise"]


@dataclass(frozen=True)
class Denoising:
    """What :func:`denoise` has found.

    Attributes
    ----------
    image, cleaned : ndarray of shape (height, width) or (height, width, 3)
        Pixels between 0 and 1.
    noise : tuple of float
        Standard deviation of the noise in each channel.
    n_components : tuple of int
        Components that were kept in each.
    """

    path: str
    image: NDArray[np.float64]
    cleaned: NDArray[np.float64]
    model: PatchDenoiser
    noise: tuple[float, ...]
    given: bool  # whether the noise was told, and not estimated
    n_components: tuple[int, ...]
    notes: tuple[str, ...]
    seconds: dict[str, float]


def denoise(
    path: str,
    image: NDArray[np.float64],
    *,
    patch_size: int = 8,
    noise: float | str = "auto",
    seed: int = 0,
    report: Any = silent,
) -> Denoising:
    """Clean an image, each channel by itself, by kernel PCA of its patches.

    Parameters
    ----------
    path : str
        Where the image is from, for the page.
    image : ndarray of shape (height, width) or (height, width, 3)
        Pixels between 0 and 1.
    patch_size : int, default=8
        Side of a patch.
    noise : float or "auto", default="auto"
        Standard deviation of the noise, between 0 and 1; estimated by default.
    seed : int, default=0
        Of the patches that are drawn.
    report : callable, optional
        Told how far the work has come.

    Returns
    -------
    denoising : Denoising
        The cleaned image, clipped to [0, 1].
    """
    if min(image.shape[:2]) < patch_size:
        raise InputError(
            f"{path} has {image.shape[1]} x {image.shape[0]} pixels, less than a patch of "
            f"{patch_size} (--patch-size)."
        )
    channels = [image] if image.ndim == 2 else list(np.moveaxis(image, -1, 0))
    names = ["pixels"] if image.ndim == 2 else ["red", "green", "blue"]
    work = Work(report, **dict.fromkeys(names, 1.0))
    cleaned, models = [], []
    for name, channel in zip(names, channels, strict=True):
        with work.part(name):
            models.append(PatchDenoiser(patch_size, noise=noise, random_state=seed))
            found = models[-1].denoise(np.ascontiguousarray(channel))
            cleaned.append(np.clip(found, 0.0, 1.0))
    return Denoising(
        path,
        image,
        cleaned[0] if image.ndim == 2 else np.stack(cleaned, axis=-1),
        models[0],
        tuple(float(model.noise_) for model in models),
        noise != "auto",
        tuple(int(model.n_components_) for model in models),
        tuple(work.notes),
        work.seconds,
    )
