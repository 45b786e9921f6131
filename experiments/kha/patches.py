"""A noisy image cleaned by kernel PCA of its windows: the KHA paper's Figure 2 (§5.2).

Four quarters of an image of 256 x 256 pixels, of each 3,844 windows of 11 x 11 pixels, two pixels
apart, 20 components, the Gaussian kernel with σ = 1. KHA with the constant gain 0.05 runs for 800
passes, as before the paper; KHA/t, KHA/et and KHA-SMD for 50, tuned as in the paper. Windows are
projected on the components, and their pre-images averaged where they overlap. The paper's image is
not ours to use: here it is the cameraman.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from kha.common import Problem, cleaned, decades, followed, tuned
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from reproduce import About, Found, Part, Values, load
from verdicts import Compared, Sample, number, order

from orthodrome.kernels import Gaussian

WINDOW, STEP, N_COMPONENTS, SIGMA = 11, 2, 20, 1.0
# 3,844 is 62², and 62 windows two pixels apart cover 133 pixels: five more than a quarter has
BEFORE, AFTER = 2, 3
LEVELS = (0.05, 0.075, 0.1, 0.15, 0.2)
LEVEL = 0.075  # nearest to the paper's ratio of those at which cleaning helps: all methods are run
OLD_GAIN = {"gain": "constant", "eta0": 0.05}  # of the KHA before the paper

Image = NDArray[np.float64]


def jobs(quick: bool) -> Iterable[tuple[Any, ...]]:
    side, passes, long, levels = (96, 10, 40, (LEVEL,)) if quick else (256, 50, 800, LEVELS)
    return [(side, level, passes, long, quarter) for level in levels for quarter in range(4)]


def measure(side: int, level: float, passes: int, long: int, quarter: int) -> Values:
    """Clean a quarter with the exact components and, at one level, with those of all methods."""
    part = Quarter(side, level, quarter)
    found: Values = {
        (level, "signal"): part.signal,
        (level, "noisy"): float(np.mean((part.noisy - part.clean) ** 2)),
        (level, "exact"): part.error_of(part.problem.exact),
    }
    if level != LEVEL:
        return found
    options = {m: tuned(part.problem, m, passes, (0,)) for m in ("KHA/t", "KHA/et")}
    eta0 = options["KHA/et"]["eta0"]
    options["KHA-SMD"] = tuned(part.problem, "KHA-SMD", passes, (0,), eta0=eta0)
    for method, own in ({"KHA": OLD_GAIN} | options).items():
        marks = (passes, long) if method == "KHA" else (passes,)
        for name, coefficients in zip(
            ("short", "long"), followed(part.problem, marks, 0, own), strict=False
        ):
            found[level, method, name, "excess"] = part.problem.excess(coefficients)
            if coefficients is not None:
                found[level, method, name, "square"] = part.error_of(coefficients)
    return found


class Quarter:
    """A quarter of the noisy image: its windows, and the problem of their kernel PCA."""

    def __init__(self, side: int, level: float, quarter: int) -> None:
        whole = picture(side)
        noisy = whole + level * np.random.default_rng(0).standard_normal(whole.shape)
        self.signal = float(whole.var())
        self.clean, self.noisy = quarter_of(whole, quarter), quarter_of(noisy, quarter)
        self.windows = windows_of(self.noisy)
        self.kernel = Gaussian(SIGMA).fit(self.windows)
        self.problem = Problem.of(self.kernel, self.windows, N_COMPONENTS)

    def error_of(self, coefficients: NDArray[Any]) -> float:
        """The mean squared error of the cleaned image."""
        windows = cleaned(self.problem, self.kernel, self.windows, coefficients)
        return float(np.mean((image_of(windows, len(self.noisy)) - self.clean) ** 2))


def picture(side: int) -> Image:
    """The middle of the cameraman, between 0 and 1."""
    image = np.asarray(load("camera_256").image, dtype=np.float64) / 255
    first = (len(image) - side) // 2
    return image[first : first + side, first : first + side]


def quarter_of(image: Image, quarter: int) -> Image:
    """One of the four quarters, row by row."""
    half, (row, column) = len(image) // 2, divmod(quarter, 2)
    return image[row * half : (row + 1) * half, column * half : (column + 1) * half]


def windows_of(image: Image) -> Image:
    """The windows of a square image extended by mirroring, the border pixel repeated."""
    extended = np.pad(image, (BEFORE, AFTER), mode="symmetric")
    windows = sliding_window_view(extended, (WINDOW, WINDOW))[::STEP, ::STEP]
    return windows.reshape(-1, WINDOW * WINDOW)


def image_of(windows: Image, side: int) -> Image:
    """The average of overlapping windows, without the extension."""
    extended = side + BEFORE + AFTER
    total, n_over = np.zeros((2, extended, extended))
    n = round(math.sqrt(len(windows)))
    stack = windows.reshape(n, n, WINDOW, WINDOW)
    reach = (n - 1) * STEP + 1
    for i, j in itertools.product(range(WINDOW), repeat=2):
        there = slice(i, i + reach, STEP), slice(j, j + reach, STEP)
        total[there] += stack[..., i, j]
        n_over[there] += 1
    inside = slice(BEFORE, BEFORE + side)
    return total[inside, inside] / n_over[inside, inside]


def ratio(found: Found, level: float, *key: Any) -> Sample:
    """The signal-to-noise ratio of the whole image in dB."""
    noise = found(level, *key).mean
    return Sample(10 * math.log10(found(level, "signal").mean / noise))


def compare(found: Found, level: float) -> list[Compared]:
    """The ratio; of levels at which not all methods were run, with the exact components."""
    if (level, "exact") not in found or ratio(found, level, "exact").mean < ratio(
        found, level, "noisy"
    ).mean:
        return []
    key = ("KHA/et", "short", "square")
    ours = ratio(found, level, *(key if (level, *key) in found else ("exact",)))
    what = "KHA/et after 50 passes, ratio of the cleaned image"
    return [number("13.49", what, ours, own=True, where="§5.2", unit="signal-to-noise ratio, dB")]


def compare_runs(found: Found, level: float) -> list[Compared]:
    more: dict[str, Any] = {"own": False, "where": "§5.2"}
    excess = Sample(100 * found(level, "KHA", "long", "excess").mean)
    snr = ratio(found, level, "KHA", "long", "square")
    made = [
        number("5.64", "KHA, 800 passes, error", excess, better=-1, unit="excess error, %", **more),
        number("13.46", "KHA, 800 passes, ratio", snr, unit="signal-to-noise ratio, dB", **more),
    ]
    for better, than in (("KHA/t", "KHA"), ("KHA/et", "KHA/t"), ("KHA-SMD", "KHA/et")):
        pair = [
            Sample.of(decades(found(level, m, "short", "excess").values)) for m in (than, better)
        ]
        what = f"{better} before {than}, four quarters"
        made.append(
            order(what, pair[0] - pair[1], where="Figure 2", unit="decades of excess error")
        )
    return made


PARTS = [
    Part(compare, LEVELS, "the noise level (levels at which cleaning improves the image)"),
    Part(compare_runs, (LEVEL,)),
]
ABOUT = About(
    title="Image denoising by patches",
    where="Figure 2 and §5.2",
    says="With the constant gain 0.05, the signal-to-noise ratio after 800 passes is 13.46 "
    "and the reconstruction error 5.64 %, which we take to be the excess error. KHA/et "
    "reaches a ratio of 13.49 in 50 passes, with an error two orders of magnitude below "
    "that of KHA. The error of KHA-SMD is one order below that of KHA/et. KHA/t is slightly "
    "better than a constant gain.",
    differs="The ratio is 0.9 dB lower than in the paper. The error of KHA is smaller "
    "(1.3 %). The error of KHA-SMD is 0.4 decades below that of KHA/et; in the paper it "
    "is one decade below.",
    tried="Five noise levels. KHA/et, KHA and the exact components denoise equally well, "
    "within 0.1 dB.",
    reason="We use another image, because the paper's is not free to use. The "
    "reconstruction may differ too; the paper says that this explains a difference of 0.6 "
    "dB from its predecessor.",
    partial="We use another image and one draw of the noise, so the numbers have no "
    "sampling error. Comparisons use the four quarters of the image as repeats.",
    short="unknown. We use another image, because the paper's is not free to use; with five noise "
    "levels it was not reached either",
)
