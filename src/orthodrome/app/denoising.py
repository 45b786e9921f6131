"""The command denoise: remove noise from an image."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._core.types import Floats
from ..denoising import PatchDenoiser
from ..plots import images
from ..plots.report import Note, Picture, Section, Table, Text
from .inputs.images import encode_image
from .results import Report, Result, Work


def denoise(
    path: str,
    image: Floats,
    report: Report | None = None,
    *,
    patch_size: int = 8,
    noise: float | str = "auto",
    seed: int = 0,
) -> Result:
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
    Result
        The cleaned image, clipped to [0, 1], and the page.
    """
    channels = {"grey": image}
    if image.ndim == 3:
        channels = dict(zip(("red", "green", "blue"), np.moveaxis(image, -1, 0), strict=True))
    work = Work(report, **dict.fromkeys(channels, 1.0))
    models, cleaned = {}, []
    for name, channel in channels.items():
        with work.step(name):
            models[name] = PatchDenoiser(patch_size, noise=noise, random_state=seed)
            found = models[name].denoise(np.ascontiguousarray(channel))
            cleaned.append(np.clip(found, 0.0, 1.0))
    result = np.stack(cleaned, axis=-1).reshape(image.shape)
    levels = [255 * float(model.noise_) for model in models.values()]
    components = [int(model.n_components_) for model in models.values()]
    kind = "Estimated noise" if noise == "auto" else "Given noise"
    texts = [f"{level:.1f}" for level in levels]
    lines = [f"{kind}: {', '.join(texts)} (pixels are 0 to 255)."]
    python = ["cleaned = model.denoise(data)"]
    if image.ndim == 3:
        python = [
            "channels = [model.denoise(data[..., c].copy()) for c in range(3)]",
            "cleaned = np.stack(channels, axis=-1)",
        ]
    python.append('write_image("cleaned.png", np.clip(cleaned, 0.0, 1.0))')
    rows = list(zip(channels, texts, components, strict=True))
    header = ["channel", f"{kind.lower()} (pixels 0 to 255)", "components"]
    table = Table("Channels, each cleaned separately", header, rows)
    sections = partial(_sections, path, image, result, work, table)
    facts = {"noise": levels, "n_components": components}
    files = {"cleaned.png": encode_image(result)}
    model = next(iter(models.values()))
    level = float(np.mean(levels))
    answer = f"Noise with a standard deviation of {level:.1f} (pixels are 0 to 255) was removed."
    return Result(model, work, answer, facts, lines, sections, python, files)


def _sections(path: str, image: Floats, cleaned: Floats, work: Work, table: Table) -> list[Section]:
    """Return the section of the page."""
    height, width = image.shape[:2]
    removed = "What was removed, shown on grey. Visible edges mean that detail was removed too."
    text = Text(f"{path}, {width} x {height} pixels.")
    blocks: list[Any] = []
    for name, pixels, caption in (
        ("cleaned", cleaned, f"{path}, cleaned."),
        ("original", image, f"{path}, original."),
        ("removed", 0.5 + (image - cleaned) / 2, removed),
    ):
        figure = images({name: pixels[None]}, limits=(0.0, 1.0), cmap="gray")
        blocks.append(Picture.of(figure, name, alt=caption, caption=caption))
    return [Section("Image", [*blocks, text, *map(Note, work.notes), table])]
