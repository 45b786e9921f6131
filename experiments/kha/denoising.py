"""Noisy images and noisy motion, cleaned by kernel PCA with nothing tuned by hand.

The KHA paper's §5.2 and §5.4. Images: the signal-to-noise ratio after kernel PCA of the patches by
the automatic choice, after linear PCA of the same patches with the same and with its best number of
components (chosen with the clean image at hand), and after scikit-image's non-local means. Motion:
the part of the mean squared error that is removed from a walk in absolute coordinates, with the
paper's parameters and by the automatic choice, compared with linear PCA and a low-pass filter.

    python experiments/kha/denoising.py [--quick]

writes denoising.csv, denoising.md, denoising_images.png, denoising_motion.png, denoising_walk.png
and denoising_walk.gif next to this file. Needs the test image and the walks (ORTHODROME_DATA); the
other images come with scikit-image.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.signal
import skimage.data
from common import (
    HERE,
    Row,
    command_line,
    count,
    error_of_mean,
    load,
    published,
    read_rows,
    record,
    table,
    timed,
    write_rows,
)
from numpy.typing import NDArray
from skeletons import walk_figure, write_animation
from skimage.restoration import denoise_nl_means, estimate_sigma
from verdicts import Compared

from orthodrome import PatchDenoiser
from orthodrome.denoising import SequenceDenoiser
from orthodrome.denoising.patches import PatchGrid
from orthodrome.kernels import Gaussian, mean_squared_distance

NOISY = "noisy"
KERNEL, KERNEL_WHOLE, KERNEL_PAPER = (
    "kernel PCA, automatic",
    "kernel PCA, automatic, blend = 1",
    "kernel PCA, the paper's",
)
LINEAR, SAME, BEST = (
    "linear PCA, automatic",
    "linear PCA, same number",
    "linear PCA, best number",
)
MEANS, LOW_PASS = "non-local means", "low-pass filter, 6 Hz"
SAID = published(HERE, "denoising")
PAPER_REMOVED = SAID["numbers"][0]["value"] / 100

Image = NDArray[np.float64]


@dataclass(frozen=True)
class Size:
    """How much is run."""

    images: tuple[str, ...] = ("camera_256", "coins", "brick", "moon")
    levels: tuple[int, ...] = (15, 40)  # of 255
    side: int = 256
    walks: tuple[str, ...] = ("cmu_walk_35", "cmu_walk_02")
    metres: tuple[float, ...] = (0.01, 0.03, 0.1)
    paper: bool = True
    n_draws: int = 5  # of the noise of a walk, where it is cleaned as in the paper

    @staticmethod
    def of(quick: bool) -> Size:
        if not quick:
            return Size()
        return Size(("camera_256",), (40,), 96, ("cmu_walk_35",), (0.01,), paper=False, n_draws=2)


# ---------------------------------------------------------------------------- images


def picture(name: str, side: int) -> Image:
    """A grey image between 0 and 1: of 512 pixels or more halved, and cut to a square."""
    data = load(name).image if name == "camera_256" else getattr(skimage.data, name)()
    image = np.asarray(data, dtype=np.float64) / 255
    if image.ndim == 3:
        image = image @ [0.2125, 0.7154, 0.0721]
    if min(image.shape) >= 512:
        height, width = (n // 2 for n in image.shape)
        image = image[: 2 * height, : 2 * width].reshape(height, 2, width, 2).mean(axis=(1, 3))
    top, left = ((n - side) // 2 for n in image.shape)
    return image[top : top + side, left : left + side]


def snr(clean: Image, other: Image) -> float:
    """Signal-to-noise ratio in dB: the variance of the clean image over the mean squared error."""
    return float(10 * np.log10(clean.var() / np.mean((other - clean) ** 2)))


def linear_images(noisy: Image, denoiser: PatchDenoiser) -> list[Image]:
    """Linear PCA of all patches of the same grid, with 1, 2, … components."""
    side = denoiser.patch_size
    grid = PatchGrid((*noisy.shape, 1), (side, side), denoiser.step)
    extended = grid.extend(noisy[..., None])
    patches = grid.extract(extended, grid.positions)
    mean = patches.mean(axis=0)
    axes = np.linalg.eigh(np.cov(patches.T))[1][:, ::-1].T
    total = np.zeros_like(extended)
    grid.add(total, np.broadcast_to(mean, patches.shape), grid.positions)
    images = []
    for axis in axes:
        grid.add(total, np.outer((patches - mean) @ axis, axis), grid.positions)
        images.append(grid.average(total)[..., 0])
    return images


def clean_as_the_paper(noisy: Image) -> Image:
    """§5.2: four sub-images, 11 x 11 windows two pixels apart, σ = 1, 20 components.

    Each is fitted to 1,000 of its windows; the paper takes all 3,844.
    """
    cleaned = np.empty_like(noisy)
    middle = noisy.shape[0] // 2, noisy.shape[1] // 2
    for rows in (slice(None, middle[0]), slice(middle[0], None)):
        for columns in (slice(None, middle[1]), slice(middle[1], None)):
            denoiser = PatchDenoiser(11, 2, 20, Gaussian(1.0), blend=1.0, random_state=0)
            cleaned[rows, columns] = denoiser.denoise(noisy[rows, columns])
    return cleaned


def measure_image(name: str, level: int, size: Size) -> tuple[list[Row], dict[str, Image]]:
    """Rows of the table, and the images that they are about."""
    clean = picture(name, size.side)
    noisy = clean + level / 255 * np.random.default_rng(0).standard_normal(clean.shape)
    base: Row = {"part": "image", "name": name, "level": float(level)}
    shown, rows = {"original": clean, NOISY: noisy}, []

    def add(method: str, image: Image, seconds: float = math.nan, **more: Any) -> None:
        shown[method] = image
        rows.append(
            base
            | {"method": method, "value": snr(clean, image)}
            | EMPTY
            | more
            | {"seconds": seconds}
        )

    add(NOISY, noisy)
    denoiser = PatchDenoiser(random_state=0)
    image, seconds = stopped(lambda: denoiser.denoise(noisy))
    add(KERNEL, image, seconds, **chosen(denoiser))
    whole = noisy + (image - noisy) / denoiser.blend_
    add(KERNEL_WHOLE, whole, **(chosen(denoiser) | {"blend": 1.0}))
    flat = PatchDenoiser(kernel="linear", random_state=0)
    add(LINEAR, *stopped(lambda: flat.denoise(noisy)), **chosen(flat))
    linear, seconds = stopped(lambda: linear_images(noisy, denoiser))
    same, best = denoiser.n_components_, 1 + int(np.argmax([snr(clean, z) for z in linear]))
    for method, n in ((SAME, min(same, len(linear))), (BEST, best)):
        add(method, linear[n - 1], seconds / len(linear), n_components=n)
    sigma = float(estimate_sigma(noisy))
    means = {"patch_size": 5, "patch_distance": 6, "h": 0.8 * sigma, "sigma": sigma}
    add(MEANS, *stopped(lambda: denoise_nl_means(noisy, fast_mode=True, **means)))
    if size.paper and name == "camera_256":
        add(KERNEL_PAPER, *stopped(lambda: clean_as_the_paper(noisy)), sigma=1.0, n_components=20)
    return rows, shown


# ---------------------------------------------------------------------------- motion


def walk(name: str) -> tuple[NDArray[np.float64], NDArray[np.intp], float]:
    """The first trial in metres, the parents of the joints, and frames per second."""
    data = load(name)
    frames = data.frames[data.trial == 0].astype(np.float64)
    return frames, data.parents, float(data.frames_per_second)


def linear_motion(noisy: NDArray[Any], n_components: int) -> NDArray[Any]:
    """Linear PCA of the frames."""
    points = noisy.reshape(len(noisy), -1)
    mean = points.mean(axis=0)
    axes = np.linalg.svd(points - mean, full_matrices=False)[2][:n_components]
    return (mean + (points - mean) @ axes.T @ axes).reshape(noisy.shape)


def low_pass(noisy: NDArray[Any], rate: float) -> NDArray[Any]:
    """A Butterworth filter of fourth order in all, forth and back, as usual for gait."""
    numerator, denominator = scipy.signal.butter(2, 6.0, fs=rate)
    return scipy.signal.filtfilt(numerator, denominator, noisy, axis=0)


def noisy_walk(frames: NDArray[Any], metres: float, draw: int) -> NDArray[Any]:
    """Gaussian noise added to every coordinate."""
    return frames + metres * np.random.default_rng(draw).standard_normal(frames.shape)


def paper_denoiser() -> SequenceDenoiser:
    """§5.4: 25 components, σ = √1.5, all of the change made."""
    return SequenceDenoiser(25, Gaussian(math.sqrt(1.5)), blend=1.0)


def measure_draws(name: str, metres: float, n_draws: int) -> list[Row]:
    """Further draws of the noise, cleaned as in the paper alone."""
    frames, _, _ = walk(name)
    rows = []
    for draw in range(1, n_draws):
        noisy, denoiser = noisy_walk(frames, metres, draw), paper_denoiser()
        cleaned, seconds = stopped(partial(denoiser.denoise, noisy))
        removed = 1 - float(np.mean((cleaned - frames) ** 2) / np.mean((noisy - frames) ** 2))
        base = {"part": "motion", "name": name, "level": metres}
        base |= {"method": KERNEL_PAPER, "value": removed}
        rows.append(base | EMPTY | chosen(denoiser) | {"seconds": seconds, "draw": draw})
    return rows


def measure_walk(name: str, metres: float) -> tuple[list[Row], dict[str, NDArray[Any]]]:
    frames, _, rate = walk(name)
    noisy = noisy_walk(frames, metres, 0)
    base: Row = {"part": "motion", "name": name, "level": metres}
    shown, rows = {"original": frames, NOISY: noisy}, []
    noise = float(np.mean((noisy - frames) ** 2))

    def add(method: str, cleaned: NDArray[Any], seconds: float = math.nan, **more: Any) -> None:
        shown[method] = cleaned
        removed = 1 - float(np.mean((cleaned - frames) ** 2)) / noise
        rows.append(
            base | {"method": method, "value": removed} | EMPTY | more | {"seconds": seconds}
        )

    paper = paper_denoiser()
    add(KERNEL_PAPER, *stopped(lambda: paper.denoise(noisy)), **chosen(paper))
    automatic = SequenceDenoiser(random_state=0)
    add(KERNEL, *stopped(lambda: automatic.denoise(noisy)), **chosen(automatic))
    flat = SequenceDenoiser(kernel="linear", random_state=0)
    add(LINEAR, *stopped(lambda: flat.denoise(noisy)), **chosen(flat))
    linear = [linear_motion(noisy, n) for n in range(1, 60)]
    best = int(np.argmin([np.mean((z - frames) ** 2) for z in linear])) + 1
    for method, n in ((SAME, automatic.n_components_), (BEST, best)):
        add(method, linear[n - 1], n_components=n)
    add(LOW_PASS, low_pass(noisy, rate))
    return rows, shown


# ---------------------------------------------------------------------------- rows

EMPTY: Row = {
    "noise": math.nan,
    "sigma": math.nan,
    "sigma_over_mean": math.nan,
    "n_components": 0,
    "blend": math.nan,
}


def chosen(denoiser: Any) -> Row:
    """What a denoiser took or chose; σ also in units of the root mean squared distance."""
    mean = math.sqrt(mean_squared_distance(denoiser.model_.X_fit_))
    return {
        "noise": denoiser.noise_,
        "sigma": denoiser.sigma_,
        "sigma_over_mean": denoiser.sigma_ / mean,
        "n_components": denoiser.n_components_,
        "blend": denoiser.blend_,
    }


def stopped(run: Callable[[], Any]) -> tuple[Any, float]:
    """A result and the seconds that it took."""
    since = time.perf_counter()
    return run(), time.perf_counter() - since


def measure(size: Size) -> tuple[list[Row], dict[Any, Any]]:
    """All rows, and what is drawn, by name and level."""
    rows, shown = [], {}
    for name in size.images:
        for level in size.levels:
            with timed(f"{name}, {level}/255"):
                more, shown[name, level] = measure_image(name, level, size)
            rows += more
    for name in size.walks:
        for metres in size.metres:
            with timed(f"{name}, {metres} m"):
                more, shown[name, metres] = measure_walk(name, metres)
            rows += more
    rows = [row | {"draw": 0} for row in rows]
    for name in size.walks:
        for metres in size.metres:
            rows += measure_draws(name, metres, size.n_draws)
    return rows, shown


# ---------------------------------------------------------------------------- page


class Findings:
    """Rows of the first draw of the noise by part, name, level and method."""

    def __init__(self, rows: Sequence[Row]) -> None:
        first = [row for row in rows if row["draw"] == 0]
        self._rows = {(r["part"], r["name"], r["level"], r["method"]): r for r in first}
        self._all = rows
        self.settings = list(dict.fromkeys(key[:3] for key in self._rows))

    def row(self, setting: tuple[Any, ...], method: str) -> Row | None:
        return self._rows.get((*setting, method))

    def value(self, setting: tuple[Any, ...], method: str) -> float:
        found = self.row(setting, method)
        return math.nan if found is None else found["value"]

    def removed(self, setting: tuple[Any, ...]) -> NDArray[np.float64]:
        """The share of the error that the paper's way removes, in %, of every draw."""
        wanted = (*setting, KERNEL_PAPER)
        names = ("part", "name", "level", "method")
        found = [r["value"] for r in self._all if tuple(r[name] for name in names) == wanted]
        return 100 * np.array(found)

    def of(self, part: str) -> list[tuple[Any, ...]]:
        return [setting for setting in self.settings if setting[0] == part]


def compared(rows: list[Row]) -> list[Compared]:
    """The share of the error removed from a walk, at the noise that fits best."""
    found, number = Findings(rows), SAID["numbers"][0]
    shares = {setting: found.removed(setting) for setting in found.of("motion")}
    nearest = min(shares, key=lambda each: abs(float(shares[each].mean()) - number["value"]))
    ours = shares[nearest]
    # the paper has one draw, and so has the standard error
    error = error_of_mean(ours) * math.sqrt(len(ours))
    what = (
        "motion, % of the error removed, σ = √1.5, 25 components, exact ones, "
        f"{nearest[1]} with noise of {1000 * nearest[2]:g} mm, the nearest of "
        f"{count(len(shares), 'walk and noise level', 'walks and noise levels')}, "
        f"{count(len(ours), 'draw')} of the noise"
    )
    return [Compared.number(number["where"], what, number["value"], 0.0, float(ours.mean()), error)]


def page(rows: list[Row]) -> str:
    found = Findings(rows)
    return "\n".join([*image_page(found), "", *motion_page(found)]) + "\n"


def image_page(found: Findings) -> list[str]:
    settings = found.of("image")
    methods = [NOISY, KERNEL, KERNEL_WHOLE, LINEAR, SAME, BEST, MEANS]
    values = [
        [f"{name}, {level:g}", *(f"{found.value((part, name, level), m):.2f}" for m in methods)]
        for part, name, level in settings
    ]
    choices = []
    for setting in settings:
        row = found.row(setting, KERNEL)
        choices.append(
            [
                f"{setting[1]}, {setting[2]:g}",
                f"{255 * row['noise']:.1f}",
                f"{row['sigma']:.2f}",
                f"{row['sigma_over_mean']:.2g}",
                f"{row['n_components']}",
                f"{row['blend']:.2f}",
                f"{found.row(setting, BEST)['n_components']}",
                f"{row['seconds']:.0f}",
                f"{found.row(setting, MEANS)['seconds']:.2f}",
            ]
        )
    return [
        "# Denoising by kernel PCA: images and motion",
        "",
        "Written by `experiments/kha/denoising.py`; do not edit.",
        "",
        "## Images",
        "",
        "Signal-to-noise ratio in dB: ten times the logarithm of the variance of the clean image "
        "over the mean squared error. The number after the name is the standard deviation of the "
        "Gaussian noise, in units of 1/255. All methods use 8 x 8 patches, two pixels apart. "
        "*Automatic*: `PatchDenoiser()` with its defaults; it uses only the noisy image. *blend = "
        "1*: the same model with blend 1. *Linear PCA, automatic*: parameters are chosen in the "
        "same way for the linear kernel. *Same number*, *best number*: linear PCA with as many "
        "components, or with the number that is best for the clean image; it learns from all "
        "patches (kernel PCA from 1,000) and has blend 1. Non-local means: scikit-image's fast "
        "mode, 5 x 5 patches, distance 6, h = 0.8 of the estimated noise.",
        "",
        *table(["image, noise", *methods], values),
        "",
        *verdict(found, settings),
        "",
        "Chosen parameters (σ for pixels from 0 to 1, and in units of the root mean squared "
        "distance between patches), and run time in seconds.",
        "",
        *table(
            [
                "image, noise",
                "noise, estimated",
                "σ",
                "σ / mean",
                "components",
                "blend",
                "linear PCA's best",
                "seconds",
                "non-local means, seconds",
            ],
            choices,
        ),
        *paper_page(found, settings),
        "",
        "![images](denoising_images.png)",
    ]


def verdict(found: Findings, settings: list[tuple[Any, ...]]) -> list[str]:
    """Say where kernel PCA is better than linear PCA, and where it is not."""
    lines = []
    pairs = [(KERNEL, other) for other in (SAME, BEST, LINEAR, MEANS)]
    for method, other in (*pairs, (KERNEL_WHOLE, BEST)):
        gains = {s: found.value(s, method) - found.value(s, other) for s in settings}
        worse = [f"{s[1]}, {s[2]:g} ({gain:+.2f} dB)" for s, gain in gains.items() if gain < -0.005]
        better = sum(gain > 0.005 for gain in gains.values())
        lines.append(
            f"- {method}, against {other}: better in {better} of {len(settings)} "
            f"({min(gains.values()):+.2f} to {max(gains.values()):+.2f} dB); worse at "
            f"{'; '.join(worse) or 'none'}."
        )
    return lines


def paper_page(found: Findings, settings: list[tuple[Any, ...]]) -> list[str]:
    values = {s: found.value(s, KERNEL_PAPER) for s in settings if found.row(s, KERNEL_PAPER)}
    if not values:
        return []
    text = ", ".join(f"{value:.2f} dB at {s[2]:g}" for s, value in values.items())
    return [
        "",
        "The paper's parameters (four sub-images, 11 x 11 windows two pixels apart, σ = 1, 20 "
        f"components, blend 1, 1,000 training windows for each sub-image) give {text} on "
        f"{next(iter(values))[1]}. The paper reports 13.5 dB on another image, with a noise level "
        "that it does not state.",
    ]


def motion_page(found: Findings) -> list[str]:
    settings = found.of("motion")
    methods = [KERNEL_PAPER, KERNEL, LINEAR, SAME, BEST, LOW_PASS]
    values = []
    for setting in settings:
        row = found.row(setting, KERNEL)
        values.append(
            [
                setting[1],
                f"{1000 * setting[2]:g}",
                f"{1000 * row['noise']:.2f}",
                *(f"{found.value(setting, m):.1%}" for m in methods),
                f"{row['sigma']:.2f}",
                f"{row['n_components']}",
                f"{row['blend']:.2f}",
                f"{found.row(setting, BEST)['n_components']}",
            ]
        )
    paper = [s for s in settings if abs(found.value(s, KERNEL_PAPER) - PAPER_REMOVED) < 0.03]
    near = ", ".join(f"{1000 * s[2]:g} mm on {s[1]}" for s in paper) or "none of these"
    worse = [s for s in settings if found.value(s, KERNEL) < found.value(s, BEST)]
    return [
        "## Motion",
        "",
        "The fraction of the mean squared error that is removed from a walk: frames x 31 joints x "
        "3 coordinates in metres, absolute, with Gaussian noise of the given standard deviation. "
        "*The paper's*: σ = √1.5, 25 components and blend 1. *Automatic*: `SequenceDenoiser()` "
        "with its defaults. Linear PCA: with parameters chosen in the same way, with as many "
        "components as kernel PCA, and with the number that is best for the clean walk. The "
        "filter is the usual alternative: a Butterworth filter of fourth order, applied forwards "
        "and backwards.",
        "",
        *table(
            [
                "walk",
                "noise, mm",
                "estimated",
                *methods,
                "σ, automatic",
                "components",
                "blend",
                "linear PCA's best",
            ],
            values,
        ),
        "",
        f"The paper reports {PAPER_REMOVED:.1%}, without its noise level or units. With its σ and "
        "number of components, and coordinates in metres, these settings are within three points "
        f"of it: {near}. The automatic choice is better than linear PCA with its best number in "
        f"{len(settings) - len(worse)} of {len(settings)} settings.",
        "",
        "![motion](denoising_motion.png)",
        "",
        "Some frames of the walk, and an animation, with the paper's σ and number of components: "
        "the original in grey, with the noisy and the denoised walk in colour (as in the paper's "
        "Figure 4 and its films).",
        "",
        "![frames](denoising_walk.png)",
        "",
        "![the walk](denoising_walk.gif)",
    ]


# ---------------------------------------------------------------------------- figures


def new_grid(rows: int, columns: int, width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def image_figure(shown: dict[Any, Any], size: Size) -> Any:
    """The first image at every level, by method."""
    name, methods = size.images[0], ("original", NOISY, BEST, KERNEL, MEANS)
    figure, axes = new_grid(len(size.levels), len(methods), 13.0, 2.9 * len(size.levels))
    for level, line in zip(size.levels, axes, strict=True):
        images = shown[name, level]
        for method, ax in zip(methods, line, strict=True):
            ax.imshow(images[method], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            label = method.replace(", automatic", "").replace(", best number", ", best")
            score = snr(images["original"], images[method]) if method != "original" else None
            ax.set_title(label if score is None else f"{label}, {score:.1f} dB", fontsize=10)
        line[0].set_ylabel(f"noise {level}/255")
    return figure


def motion_figure(shown: dict[Any, Any], size: Size) -> Any:
    """One frame from the side: the original alone, then under the noisy and the cleaned one."""
    from orthodrome.plots.palette import ACCENT

    name, metres = drawn_walk(size)
    motion = shown[name, metres]
    parents = walk(name)[1]
    panels = ("original", NOISY, BEST, KERNEL)
    figure, axes = new_grid(1, len(panels), 10.0, 4.6)
    frame = len(motion["original"]) // 2
    error = {p: 1000 * math.sqrt(np.mean((motion[p] - motion["original"]) ** 2)) for p in panels}
    for panel, ax in zip(panels, axes[0], strict=True):
        draw_skeleton(ax, motion["original"][frame], parents, "0.65")
        if panel == "original":
            ax.set_title(f"original, frame {frame}", fontsize=10)
        else:
            draw_skeleton(ax, motion[panel][frame], parents, ACCENT)
            label = panel.replace(", automatic", "").replace(", best number", ", best")
            ax.set_title(f"{label}\nrms error {error[panel]:.0f} mm", fontsize=10)
        ax.set_aspect("equal")
        ax.axis("off")
    figure.suptitle(f"{name}, noise {1000 * metres:g} mm; the original in grey", fontsize=11)
    return figure


def drawn_walk(size: Size) -> tuple[str, float]:
    """The walk and the noise that are drawn."""
    return size.walks[0], size.metres[min(1, len(size.metres) - 1)]


def drawn_motions(shown: dict[Any, Any], size: Size) -> dict[str, NDArray[Any]]:
    """The original, the noisy walk and the cleaned one, by their titles."""
    motion = shown[drawn_walk(size)]
    made = {"original": motion["original"]}
    for title, method in ((NOISY, NOISY), ("cleaned", KERNEL_PAPER)):
        error = math.sqrt(np.mean((motion[method] - motion["original"]) ** 2))
        made[f"{title}, rms error {1000 * error:.0f} mm"] = motion[method]
    return made


def frames_figure(shown: dict[Any, Any], size: Size) -> Any:
    """Frames of the walk on its way, superposed."""
    name, metres = drawn_walk(size)
    title = f"{name}, noise {1000 * metres:g} mm; the original in grey"
    return walk_figure(drawn_motions(shown, size), walk(name)[1], title)


def draw_skeleton(ax: Any, joints: NDArray[Any], parents: NDArray[np.intp], color: str) -> None:
    """Bones and joints seen from the side: forwards to the right, up upwards."""
    for joint, parent in enumerate(parents):
        if parent >= 0:
            ends = joints[[joint, parent]]
            ax.plot(ends[:, 2], ends[:, 1], color=color, linewidth=1.6)
    ax.plot(joints[:, 2], joints[:, 1], "o", color=color, markersize=2.5)


def main(quick: bool = False) -> None:
    size = Size.of(quick)
    folder = HERE / "scratch" if quick else HERE
    folder.mkdir(exist_ok=True)
    rows, shown = measure(size)
    write_rows(folder / "denoising.csv", rows)
    kept = read_rows(folder / "denoising.csv")
    text = page(kept)
    (folder / "denoising.md").write_text(text, encoding="utf-8")
    record(HERE, "denoising", compared(kept), quick=quick)
    figures = (("images", image_figure), ("motion", motion_figure), ("walk", frames_figure))
    for name, figure in figures:
        figure(shown, size).savefig(
            folder / f"denoising_{name}.png", dpi=110, metadata={"Software": None}
        )
    _, parents, rate = walk(drawn_walk(size)[0])
    write_animation(folder / "denoising_walk.gif", drawn_motions(shown, size), parents, rate)
    print(text)


if __name__ == "__main__":
    command_line(main, __doc__)
