"""Pictures of a walk: frames on their way in one picture, and a short animation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthodrome.plots.palette import ACCENT

GREY = "0.6"
FORWARD, UP = 2, 1  # coordinates of the data
MARGIN = 0.15  # metres

Motion = NDArray[np.float64]  # frames x joints x 3


def bones(joints: NDArray[Any], parents: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Bones seen from the side as one broken line: forwards, and upwards.

    A NaN stands between two bones, so that a whole skeleton is one line to be drawn.
    """
    joint = np.flatnonzero(parents >= 0)
    ends = np.stack([joints[joint], joints[parents[joint]], np.full_like(joints[joint], np.nan)])
    line = ends.transpose(1, 0, 2).reshape(-1, 3)
    return line[:, FORWARD], line[:, UP]


def walk_figure(
    motions: dict[str, Motion], parents: NDArray[np.intp], title: str, n_frames: int = 7
) -> Any:
    """The first motion alone, and each other one over it: some frames, where they happen."""
    from matplotlib.figure import Figure

    original = next(iter(motions.values()))
    frames = np.linspace(0, len(original) - 1, n_frames).round().astype(int)
    figure = Figure(figsize=(7.6, 2.9 * len(motions)), layout="constrained")
    axes = figure.subplots(len(motions), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for ax, (name, motion) in zip(axes, motions.items(), strict=True):
        for frame in frames:
            ax.plot(*bones(original[frame], parents), color=GREY, linewidth=1.6)
            if motion is not original:
                ax.plot(*bones(motion[frame], parents), color=ACCENT, linewidth=1.2)
        ax.set_title(name, fontsize=10, loc="left")
        ax.set_aspect("equal")
        ax.axis("off")
    figure.suptitle(title, fontsize=11)
    return figure


def write_animation(
    file: Path,
    motions: dict[str, Motion],
    parents: NDArray[np.intp],
    rate: float,
    *,
    every: int = 8,
) -> None:
    """Write a GIF: each motion next to the others and over the first, at the speed of the walk.

    The view goes along with the first motion. `rate` are its frames in a second, of which one in
    `every` is drawn.
    """
    from matplotlib.animation import PillowWriter

    original = next(iter(motions.values()))
    figure, axes, lines = _stage(motions, original)
    writer = PillowWriter(fps=max(1, round(rate / every)))
    with writer.saving(figure, str(file), dpi=72):
        for frame in range(0, len(original), every):
            middle = float(original[frame, :, FORWARD].mean())
            for ax, (behind, front), motion in zip(axes, lines, motions.values(), strict=True):
                behind.set_data(*bones(original[frame], parents))
                if motion is not original:
                    front.set_data(*bones(motion[frame], parents))
                ax.set_xlim(middle - 0.75, middle + 0.75)
            writer.grab_frame()


def _stage(
    motions: dict[str, Motion], original: Motion
) -> tuple[Any, Sequence[Any], list[tuple[Any, Any]]]:
    """A figure with a panel for each motion, and in each a line behind and one in front."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.2 * len(motions), 3.2))
    axes = figure.subplots(1, len(motions), squeeze=False)[0]
    figure.subplots_adjust(left=0, right=1, bottom=0, top=0.9, wspace=0)
    lines = []
    low, high = original[..., UP].min() - MARGIN, original[..., UP].max() + MARGIN
    for ax, name in zip(axes, motions, strict=True):
        behind = ax.plot([], [], color=GREY, linewidth=1.8)[0]
        lines.append((behind, ax.plot([], [], color=ACCENT, linewidth=1.3)[0]))
        ax.set_title(name, fontsize=9)
        ax.set_ylim(low, high)
        ax.set_aspect("equal")
        ax.axis("off")
    return figure, axes, lines
