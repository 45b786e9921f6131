"""The command denoise: an image without its noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..denoising import PatchDenoiser
from ..plots import images
from ..plots._matplotlib import house_style
from ..plots.report import Block, Note, Picture, Section, Table, Text
from .inputs import InputError
from .inputs.images import encoded_image
from .pages import How, again
from .results import Report, Work, silent

__all__ = ["Denoising", "denoise"]


@dataclass(frozen=True)
class Denoising:
    """The result of :func:`denoise`.

    Attributes
    ----------
    image, cleaned : ndarray of shape (height, width) or (height, width, 3)
        Pixels between 0 and 1.
    noise : tuple of float
        Standard deviation of the noise in each channel.
    given : bool
        Whether the noise was given, not estimated.
    n_components : tuple of int
        Components that were kept in each channel.
    """

    path: str
    image: NDArray[np.float64]
    cleaned: NDArray[np.float64]
    model: PatchDenoiser
    noise: tuple[float, ...]
    given: bool
    n_components: tuple[int, ...]
    notes: tuple[str, ...]
    seconds: dict[str, float]

    def files(self) -> dict[str, bytes]:
        """Return the files to write besides the page."""
        return {"cleaned.png": encoded_image(self.cleaned)}

    def summary(self) -> tuple[dict[str, Any], list[str]]:
        """Return facts for JSON, and lines for people."""
        levels = [255 * value for value in self.noise]
        words = ", ".join(f"{level:.1f}" for level in levels)
        kind = "Noise as given" if self.given else "Estimated noise"
        facts = {"noise": levels, "n_components": list(self.n_components)}
        return facts, [f"{kind}: {words} of 255."]

    def sections(self, how: How) -> list[Section]:
        """Return the sections of the page."""
        channels = ["grey"] if self.image.ndim == 2 else ["red", "green", "blue"]
        rows = [
            [name, f"{255 * noise:.1f}", n]
            for name, noise, n in zip(channels, self.noise, self.n_components, strict=True)
        ]
        kind = "given" if self.given else "estimated"
        header = ["channel", f"{kind} noise (of 255)", "components"]
        height, width = self.image.shape[:2]
        blocks: list[Block] = [
            Text(f"{self.path}, {width} x {height} pixels."),
            *map(Note, self.notes),
            Table("Channels, each cleaned separately", header, rows),
            *self._pictures(),
        ]
        return [Section("Image", blocks), again(self.model, self.seconds, how, self._lines(how))]

    def _pictures(self) -> list[Picture]:
        removed = 0.5 + (self.image - self.cleaned) / 2
        shown = {
            "original": (self.image, f"{self.path}, original."),
            "cleaned": (self.cleaned, f"{self.path}, cleaned."),
            "removed": (
                removed,
                "What was removed, on a middle grey; visible edges would be more than noise.",
            ),
        }
        with house_style():
            return [
                Picture.of(
                    images({name: image[None]}, limits=(0.0, 1.0), cmap="gray"),
                    name,
                    alt=caption,
                    caption=caption,
                )
                for name, (image, caption) in shown.items()
            ]

    def _lines(self, how: How) -> str:
        use = ["cleaned = model.denoise(image)"]
        if self.image.ndim == 3:
            use = [
                "channels = [model.denoise(image[..., c].copy()) for c in range(3)]",
                "cleaned = np.stack(channels, axis=-1)",
            ]
        return "\n".join(
            [
                "import numpy as np",
                "from orthodrome import PatchDenoiser",
                "from orthodrome.app import read_image, write_image",
                "",
                f"image = {how.reading}",
                f"model = {self.model!r}",
                *use,
                'write_image("cleaned.png", np.clip(cleaned, 0.0, 1.0))',
            ]
        )


def denoise(
    path: str,
    image: NDArray[np.float64],
    report: Report = silent,
    *,
    patch_size: int = 8,
    noise: float | str = "auto",
    seed: int = 0,
) -> Denoising:
    """Clean an image, each channel separately, by kernel PCA of its patches.

    Parameters
    ----------
    path : str
        The file of the image, for the page.
    image : ndarray of shape (height, width) or (height, width, 3)
        Pixels between 0 and 1.
    report : callable, optional
        Called with the progress.
    patch_size : int, default=8
        Side of a patch.
    noise : float or "auto", default="auto"
        Standard deviation of the noise, between 0 and 1; estimated by default.
    seed : int, default=0
        Seed for the sample of patches.

    Returns
    -------
    Denoising
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
