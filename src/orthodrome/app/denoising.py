"""The command denoise: remove noise from an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..denoising import PatchDenoiser
from ..plots import images
from ..plots.report import Block, Note, Picture, Section, Table, Text
from .inputs import InputError
from .inputs.images import encode_image
from .results import Report, Work, silent


@dataclass(frozen=True)
class Denoising:
    """The result of :func:`denoise`.

    Attributes
    ----------
    image, cleaned : ndarray of shape (height, width) or (height, width, 3)
        Pixels between 0 and 1.
    noise : tuple of float
        Standard deviation of the noise in each channel.
    noise_given : bool
        Whether the noise level was given as an option instead of estimated.
    n_components : tuple of int
        Number of components kept in each channel.
    """

    path: str
    image: NDArray[np.float64]
    cleaned: NDArray[np.float64]
    model: PatchDenoiser
    noise: tuple[float, ...]
    noise_given: bool
    n_components: tuple[int, ...]
    notes: tuple[str, ...]
    seconds: dict[str, float]

    def files(self) -> dict[str, bytes]:
        """Return the files to write, except the page."""
        return {"cleaned.png": encode_image(self.cleaned)}

    def summary(self) -> tuple[dict[str, Any], list[str]]:
        """Return the summary as a dict for JSON and as lines of text."""
        levels = [255 * value for value in self.noise]
        text = ", ".join(f"{level:.1f}" for level in levels)
        kind = "Given noise" if self.noise_given else "Estimated noise"
        facts = {"noise": levels, "n_components": list(self.n_components)}
        return facts, [f"{kind}: {text} (pixels are 0 to 255)."]

    def sections(self) -> list[Section]:
        """Return the sections of the page."""
        channels = zip(channel_names(self.image), self.noise, self.n_components, strict=True)
        rows = [[name, f"{255 * noise:.1f}", n] for name, noise, n in channels]
        kind = "given" if self.noise_given else "estimated"
        header = ["channel", f"{kind} noise (pixels 0 to 255)", "components"]
        height, width = self.image.shape[:2]
        blocks: list[Block] = [
            Text(f"{self.path}, {width} x {height} pixels."),
            *map(Note, self.notes),
            Table("Channels, each cleaned separately", header, rows),
            self._picture("original", self.image, f"{self.path}, original."),
            self._picture("cleaned", self.cleaned, f"{self.path}, cleaned."),
            self._picture(
                "removed",
                0.5 + (self.image - self.cleaned) / 2,
                "What was removed, shown on grey. Visible edges mean that detail was removed too.",
            ),
        ]
        return [Section("Image", blocks)]

    def _picture(self, name: str, image: NDArray[np.float64], caption: str) -> Picture:
        figure = images({name: image[None]}, limits=(0.0, 1.0), cmap="gray")
        return Picture.of(figure, name, alt=caption, caption=caption)

    def python(self, testing: str) -> list[str]:
        """Return Python code that denoises the image."""
        lines = ["cleaned = model.denoise(data)"]
        if self.image.ndim == 3:
            lines = [
                "channels = [model.denoise(data[..., c].copy()) for c in range(3)]",
                "cleaned = np.stack(channels, axis=-1)",
            ]
        return [*lines, 'write_image("cleaned.png", np.clip(cleaned, 0.0, 1.0))']


def channel_names(image: NDArray[np.float64]) -> list[str]:
    """Return the names of the channels of an image."""
    return ["grey"] if image.ndim == 2 else ["red", "green", "blue"]


def denoise(
    path: str,
    image: NDArray[np.float64],
    report: Report = silent,
    *,
    patch_size: int = 8,
    noise: float | str = "auto",
    seed: int = 0,
) -> Denoising:
    """Denoise each channel of an image with kernel PCA of its patches.

    Parameters
    ----------
    path : str
        Name of the image file, to show on the page.
    image : ndarray of shape (height, width) or (height, width, 3)
        Pixels between 0 and 1.
    report : callable, optional
        Called with the progress.
    patch_size : int, default=8
        Side of a patch.
    noise : float or "auto", default="auto"
        Standard deviation of the noise, for pixels between 0 and 1; "auto" estimates it.
    seed : int, default=0
        Seed for the sample of patches.

    Returns
    -------
    Denoising
        The cleaned image, clipped to [0, 1].
    """
    if min(image.shape[:2]) < patch_size:
        raise InputError(
            f"{path} has {image.shape[1]} x {image.shape[0]} pixels and is smaller than a patch of "
            f"{patch_size} x {patch_size}. Use a smaller --patch-size."
        )
    channels = [image] if image.ndim == 2 else list(np.moveaxis(image, -1, 0))
    names = channel_names(image)
    work = Work(report, **dict.fromkeys(names, 1.0))
    cleaned, models = [], []
    for name, channel in zip(names, channels, strict=True):
        with work.step(name):
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
