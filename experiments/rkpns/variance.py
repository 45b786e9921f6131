"""How much variance principal nested spheres capture, compared with principal components.

The rkPNS paper's Figures 2, 3 and 4 (§VII, "Model Compactness" and "Dimensionality Reduction").
First 200 points on the sphere S² from a von Mises-Fisher distribution with the linear kernel, for
several concentrations, since the paper does not tell its own: variance, and neighbourhoods kept in
1 and 2 dimensions. Then eight UCI sets with both kernels
of the paper: the cumulative percent of variance in 1 … 20 modes, for all points and for random
80 % of them, features as published and standardised (the paper does not say which). Last, how well
an embedding in the least number of modes that capture 70 % keeps neighbourhoods.

    python experiments/rkpns/variance.py [--quick]

writes variance.csv, variance.md and variance.png next to this file. Needs the UCI sets
(ORTHODROME_DATA).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import GAUSSIAN, HERE, KERNELS, kernel_of, publish, wraps_recorded
from numpy.typing import NDArray
from pages import Row, command_line, count, load, new_figure, published, side_by_side, table, timed
from sklearn.preprocessing import StandardScaler
from verdicts import STANDARD_ERRORS, Compared

from orthodrome import KernelPCA, KernelPNS
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.metrics import neighborhood_area, neighborhood_preservation
from orthodrome.plots.palette import COLORS, MARKERS
from orthodrome.sphere import log

SMALL, GREAT, FLAT = "kPNS, small", "kPNS, great", "kPCA"
METHODS = (SMALL, GREAT, FLAT)
SPHERES = {SMALL: "small", GREAT: "great"}

# in the order of the paper
NAMES = (
    "fertility",
    "vertebral_column_3c",
    "ecoli",
    "concrete_slump",
    "seeds",
    "iris",
    "glass",
    "haberman",
)
RAW, SCALED = "as published", "standardised"
MOST_MODES = 20
TABLE_MODES = (1, 2, 3, 5, 10, 20)
ENOUGH = 70.0  # percent of variance that an embedding is to capture, as in the paper

# §VII: percent of variance in 1 and 2 modes on S²
SAID = published(HERE, "variance")
SPHERE_SAID = [row for row in SAID["numbers"] if row["of"] == "sphere"]
PAPER = {
    method: tuple(row["value"] for row in SPHERE_SAID if row["method"] == method)
    for method in (SMALL, FLAT)
}
NEAR = 5.0
# what counts as less, in points: more than rounding
ROUNDING = 1e-6
# what counts as more, in points: what tables with one decimal can show
SEEN = 0.05

SPHERE_MODES = (1, 2)
ON_SPHERE = "neighbourhoods on the sphere"
# The embedding dimension: least over all methods, or over those whose first mode is not inflated.
OVER_ALL, OVER_OTHERS = "least over all methods", "least over great spheres and kPCA"


@dataclass(frozen=True)
class Size:
    """How much is run."""

    concentrations: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
    n_draws: int = 25
    names: tuple[str, ...] = NAMES
    n_repeats: int = 25
    scaled_repeats: int = 5

    @staticmethod
    def of(quick: bool) -> Size:
        return Size((0.5, 10.0), 3, ("concrete_slump", "iris"), 2, 2) if quick else Size()

    def jobs(self) -> list[tuple[str, str, str, int]]:
        """Data, features, kernel and repeat; large sets first, repeat 0 is all points."""
        hard = ("ecoli", "vertebral_column_3c", "haberman", "glass")
        names = sorted(self.names, key=lambda name: name not in hard)
        return [
            (name, features, kernel, repeat)
            for name in names
            for features, n in ((RAW, self.n_repeats), (SCALED, self.scaled_repeats))
            for kernel in KERNELS
            for repeat in range(n + 1)
        ]


# ---------------------------------------------------------------------------- runs


def measure(size: Size, quick: bool) -> list[Row]:
    rows = [row for value in size.concentrations for row in on_sphere(value, size.n_draws)]
    jobs = size.jobs()
    parts = side_by_side(one_run, jobs, quick=quick)
    cells: dict[tuple[str, str, str], list[Run]] = {}
    for (name, features, kernel, _), run in zip(jobs, parts, strict=True):
        cells.setdefault((features, kernel, name), []).append(run)
    for features in (RAW, SCALED):
        for kernel in KERNELS:
            for name in size.names:
                runs = cells[features, kernel, name]
                base = {"data": name, "features": features, "kernel": kernel}
                rows += [*variance_rows(base, runs), *quality_rows(base, runs)]
    return rows


def on_sphere(concentration: float, n_draws: int) -> list[Row]:
    """Draw 200 points on S² several times: variance and neighbourhoods kept in 1 and 2 modes.

    These rows need no data and take seconds: they can be made without the rest of the run.
    """
    captured: dict[str, list[NDArray[np.float64]]] = {method: [] for method in METHODS}
    quality: dict[str, list[NDArray[np.float64]]] = {method: [] for method in METHODS}
    wraps: dict[str, list[float]] = {method: [] for method in METHODS}
    for seed in range(n_draws):
        points = make_von_mises_fisher(200, concentration=concentration, random_state=seed)
        for method in METHODS:
            curve, wrap, model = fitted(method, "linear", points)
            captured[method].append(curve)
            quality[method].append(np.array([kept(points, model, n) for n in SPHERE_MODES]))
            wraps[method].append(wrap)
    base = {"data": f"{concentration:g}", "features": "", "kernel": "linear"}
    return [
        {"part": part, **base}
        | moments(method, modes, own)
        # of draws there is no run with all points
        | {"all_points": math.nan, "wrap": float(np.mean(wraps[method])), "n_points": 200}
        | against(own, flat)
        for part, values in (("sphere", captured), (ON_SPHERE, quality))
        for method in METHODS
        for modes in SPHERE_MODES
        for own, flat in [[[each[modes - 1] for each in values[m]] for m in (method, FLAT)]]
    ]


@dataclass(frozen=True)
class Run:
    """What one set of points gave, by method."""

    n_points: int
    captured: dict[str, NDArray[np.float64]]
    wraps: dict[str, float]
    quality: dict[tuple[str, str], float]  # by rule and method
    dimensions: dict[str, int]  # by rule


def one_run(name: str, features: str, kernel: str, repeat: int) -> Run:
    """Fit all methods to all points of a set (repeat 0) or to random 80 % of them."""
    X = np.asarray(load(name).data, dtype=np.float64)
    if repeat:
        order = np.random.default_rng(repeat).permutation(len(X))
        X = X[np.sort(order[: round(0.8 * len(X))])]
    if features == SCALED:
        X = StandardScaler().fit_transform(X)
    captured, wraps, models = {}, {}, {}
    with timed(f"{name}, {features}, {kernel}, {repeat}"):
        for method in METHODS:
            captured[method], wraps[method], models[method] = fitted(method, kernel, X)
        dimensions = {
            OVER_ALL: least_modes(captured, METHODS),
            OVER_OTHERS: least_modes(captured, (GREAT, FLAT)),
        }
        quality = {
            (rule, method): kept(X, models[method], dimension)
            for rule, dimension in dimensions.items()
            for method in METHODS
        }
    return Run(len(X), captured, wraps, quality, dimensions)


def fitted(
    method: str, kernel: str, X: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float, Any]:
    """The cumulative percent of variance of each mode, the wrap of the circle, and the model."""
    of_kernel = kernel if kernel == "linear" else kernel_of(kernel)
    if method == FLAT:
        model: Any = KernelPCA(min(MOST_MODES, len(X) - 1), kernel=of_kernel).fit(X)
        wrap = math.nan
    else:
        with wraps_recorded():
            model = KernelPNS(1, kernel=of_kernel, sphere=SPHERES[method], negligible=0.0).fit(X)
        wrap = model.nested_spheres_.wrap
    found = 100 * np.cumsum(model.explained_variance_ratio_)[:MOST_MODES]
    # a sphere of few dimensions has no more modes: all is captured
    return np.pad(found, (0, MOST_MODES - len(found)), constant_values=found[-1]), wrap, model


def least_modes(captured: dict[str, NDArray[np.float64]], methods: tuple[str, ...]) -> int:
    """The least number of modes with which one of the methods captures enough; or the most."""
    best = np.max([captured[method] for method in methods], axis=0)
    return min(int(np.sum(best < ENOUGH)) + 1, MOST_MODES)


def kept(X: NDArray[np.float64], model: Any, dimension: int) -> float:
    """How well an embedding keeps neighbourhoods of all sizes: 100 if perfect, 0 if random.

    That of nested spheres is the paper's (§V), Log maps at the mean on the subsphere of that
    dimension; its last step, a rotation, does not change distances.
    """
    if isinstance(model, KernelPNS):
        chain = model.nested_spheres_
        below = chain.projected(model.sphere_coordinates_, dimension)
        embedding = log(below, base_point=chain.projected(chain.mean[None], dimension)[0])
    else:
        embedding = model.embedding_[:, :dimension]
    quality = neighborhood_preservation(X, embedding, kernel=model.kernel_)
    return 100 * neighborhood_area(quality)


def variance_rows(base: Row, runs: list[Run]) -> list[Row]:
    whole, parts = runs[0], runs[1:]
    return [
        {"part": "variance", **base}
        | moments(method, modes, [run.captured[method][modes - 1] for run in parts])
        | {
            "all_points": float(whole.captured[method][modes - 1]),
            "wrap": whole.wraps[method],
            "n_points": whole.n_points,
        }
        | against(*([run.captured[m][modes - 1] for run in parts] for m in (method, FLAT)))
        for method in METHODS
        for modes in range(1, MOST_MODES + 1)
    ]


def quality_rows(base: Row, runs: list[Run]) -> list[Row]:
    """Neighbourhoods kept; the dimension is that of all points, each part has its own."""
    whole, parts = runs[0], runs[1:]
    return [
        {"part": rule, **base}
        | moments(method, whole.dimensions[rule], [run.quality[rule, method] for run in parts])
        | {
            "all_points": whole.quality[rule, method],
            "wrap": whole.wraps[method],
            "n_points": whole.n_points,
        }
        | against(*([run.quality[rule, m] for run in parts] for m in (method, FLAT)))
        for rule in (OVER_ALL, OVER_OTHERS)
        for method in METHODS
    ]


def moments(method: str, n_modes: int, values: list[Any]) -> Row:
    return {
        "method": method,
        "n_modes": n_modes,
        "n_repeats": len(values),
        "mean": float(np.mean(values)),
        "deviation": float(np.std(values, ddof=1)),
    }


def against(values: list[Any], flat: list[Any]) -> Row:
    """In how many repeats less is captured than by kPCA, and the least and mean difference."""
    gains = np.asarray(values) - np.asarray(flat)
    return {
        "n_below": int(np.sum(gains < -ROUNDING)),
        "least_gain": float(gains.min()),
        "mean_gain": float(gains.mean()),
    }


# ---------------------------------------------------------------------------- what it shows


class Findings:
    """The rows, as questions that the page and the figure ask."""

    def __init__(self, rows: list[Row]) -> None:
        keys = ("part", "features", "kernel", "data", "method")
        self._cells: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            cell = self._cells.setdefault(tuple(str(row[key]) for key in keys), [])
            cell.append(row)
        own = [row for row in rows if row["part"] == "variance"]
        self.names = list(dict.fromkeys(row["data"] for row in own))
        self.concentrations = list(
            dict.fromkeys(float(row["data"]) for row in rows if row["part"] == "sphere")
        )
        self.n_draws = next(row["n_repeats"] for row in rows if row["part"] == "sphere")

    def sphere(self, concentration: float, method: str) -> list[Row]:
        """The rows of one and of two modes on S²."""
        return self._cells["sphere", "", "linear", f"{concentration:g}", method]

    def curve(self, name: str, method: str, features: str, kernel: str) -> list[Row]:
        """One row for each number of modes, ascending."""
        return self._cells["variance", features, kernel, name, method]

    def quality(self, rule: str, name: str, method: str, features: str, kernel: str) -> Row:
        return self._cells[rule, features, kernel, name, method][0]

    def wrap(self, name: str, method: str, features: str, kernel: str) -> float:
        return self.curve(name, method, features, kernel)[0]["wrap"]

    def n_repeats(self, features: str) -> int:
        return self.curve(self.names[0], SMALL, features, GAUSSIAN)[0]["n_repeats"]

    def gains(self, name: str, method: str, features: str, kernel: str) -> NDArray[np.float64]:
        """What a method captures more than kPCA of all points, for each number of modes."""
        curves = (self.curve(name, m, features, kernel) for m in (method, FLAT))
        ours, flat = (np.array([row["all_points"] for row in curve]) for curve in curves)
        return ours - flat

    def kept_on_sphere(self, concentration: float, method: str) -> list[Row]:
        """The rows of neighbourhoods kept in one and in two dimensions on S²."""
        return self._cells[ON_SPHERE, "", "linear", f"{concentration:g}", method]

    def nearest(self) -> float:
        """The concentration with which the variance on S² is nearest to the paper's."""
        return min(self.concentrations, key=lambda each: off_the_paper(self, each))

    def typical(self, name: str, method: str, features: str, kernel: str) -> Gain:
        """What a method holds more than kPCA, at the lower median of all numbers of modes."""
        pairs = zip(*(self.curve(name, m, features, kernel) for m in (method, FLAT)), strict=True)
        gains = sorted((gain_of(*pair) for pair in pairs), key=lambda gain: gain.mean)
        return gains[(len(gains) - 1) // 2]

    def less(self, name: str, method: str, features: str, kernel: str) -> tuple[int, int]:
        """In how many parts, over all numbers of modes, less is held than by kPCA; and of all."""
        curve = self.curve(name, method, features, kernel)
        return sum(row["n_below"] for row in curve), sum(row["n_repeats"] for row in curve)


@dataclass(frozen=True)
class Gain:
    """What a method has more than kPCA in some modes, mean over repeats and most of its error."""

    n_modes: int
    mean: float
    error: float


def gain_of(row: Row, flat: Row) -> Gain:
    # a deviation is a norm: that of the differences is not more than the sum of both
    error = (row["deviation"] + flat["deviation"]) / math.sqrt(row["n_repeats"])
    return Gain(row["n_modes"], row["mean_gain"], error)


def compared(rows: list[Row]) -> list[Compared]:
    """Figure 2 at the concentration whose variance fits best, and Figure 3 as it is claimed."""
    found = Findings(rows)
    made = []
    for said in SAID["numbers"]:
        made += (
            [sphere_number(found, said)] if said["of"] == "sphere" else less_numbers(found, said)
        )
    for said in SAID["orders"]:
        made += [sphere_order(found, said)] if said["of"] == "sphere" else more_orders(found, said)
    return made


def sphere_number(found: Findings, said: Row) -> Compared:
    """A percentage on S²; the paper has one draw."""
    best, modes = found.nearest(), said["n_modes"]
    row = found.sphere(best, said["method"])[modes - 1]
    name = said["method"].removesuffix(", small").removeprefix("k")
    note = "; an identity: S² has two modes" if (name, modes) == ("PNS", 2) else ""
    what = (
        f"S², {name}, {count(modes, 'mode')}, % of variance (concentration {best:g} fits best of "
        f"{len(found.concentrations)}{note})"
    )
    printed = (said["value"], 0.0)
    return Compared.number(said["where"], what, *printed, row["mean"], row["deviation"])


def sphere_order(found: Findings, said: Row) -> Compared:
    """Neighbourhoods on S², with the concentration that the variances choose."""
    best, modes = found.nearest(), said["n_modes"]
    pair = (found.kept_on_sphere(best, said[key])[modes - 1] for key in ("better", "than"))
    gain = gain_of(*pair)
    what = (
        f"S²: PNS keeps neighbourhoods better than PCA, {count(modes, 'dimension')}, points of "
        f"area, {count(found.n_draws, 'draw')} (concentration {best:g}, whose variance fits best)"
    )
    return Compared.order(said["where"], what, gain.mean, gain.error)


def less_numbers(found: Findings, said: Row) -> list[Compared]:
    """“Never smaller”: how often nested spheres explain less than kernel PCA."""
    made = []
    for kernel in KERNELS:
        for name in found.names:
            less, total = found.less(name, said["method"], RAW, kernel)
            what = (
                f"{name}, {kernel} kernel: how often nested spheres hold less than kPCA, of "
                f"{total} ({count(found.n_repeats(RAW), 'part')} × {MOST_MODES} numbers of modes)"
            )
            made.append(Compared.number(said["where"], what, said["value"], 0.0, less, 0.0))
    return made


def more_orders(found: Findings, said: Row) -> list[Compared]:
    """“Typically larger”: more than kPCA at the median of all numbers of modes."""
    made = []
    for kernel in KERNELS:
        for name in found.names:
            typical = found.typical(name, said["better"], RAW, kernel)
            what = (
                f"{name}, {kernel} kernel: nested spheres above kPCA, points, at the lower median "
                f"of 1 … {MOST_MODES} modes ({typical.n_modes}), "
                f"{count(found.n_repeats(RAW), 'part')}; up to {SEEN:g} is none"
            )
            error = max(typical.error, SEEN / STANDARD_ERRORS)
            made.append(Compared.order(said["where"], what, typical.mean, error))
    return made


def page(rows: list[Row]) -> str:
    found = Findings(rows)
    repeats = found.n_repeats(RAW)
    text = [
        "# Variance in few modes: nested spheres and principal components",
        "",
        "Written by `experiments/rkpns/variance.py` (`make experiments`); do not edit. Cumulative "
        "percent of variance (rkPNS paper, Figures 2 and 3), relative to the total of each "
        "method: squared residuals along the sphere, or squared coordinates. Methods: kernel "
        "nested spheres with p = 2 and the full chain, small (as in the paper) and great, and "
        "kernel PCA. Kernels: Gaussian, where σ² is the mean squared distance, and the polynomial "
        "(xᵀx')¹⁰, normalised.",
        "",
        *claims(found),
        "",
        "![Cumulative percent of variance, one panel for each set and kernel](variance.png)",
        "",
        "Lines: all points. Bands: mean ± standard deviation over "
        f"{count(repeats, 'random part')} of 80 %.",
        "",
        f"## 200 points on S², linear kernel, {count(found.n_draws, 'draw')}",
        "",
        *sphere_table(found),
        "",
        "Mean over draws, with the standard deviation in brackets. The wrap is the length of the "
        "arc of the last circle that contains all points, in radians, at most 6.28.",
        "",
        "Neighbourhood preservation with 1 and 2 dimensions (paper: PNS is better than PCA with "
        "both), as areas (see below); the mean difference from PCA is in brackets.",
        "",
        *sphere_quality_table(found),
    ]
    for features in (RAW, SCALED):
        for kernel in KERNELS:
            text += ["", f"## Features {features}, {kernel} kernel, all points", ""]
            text += variance_table(found, features, kernel)
    text += [
        "",
        "## Neighbourhoods",
        "",
        f"Neighbourhood preservation over all sizes (Figure 4), features {RAW}: the area under "
        "the rescaled curve of Q(κ) over the logarithm of κ, 100 if perfect and 0 if random. All "
        f"points; the mean difference from kPCA over {count(repeats, 'random part')} of 80 % is "
        "in brackets. The embedding dimension D is the smallest number of modes that explains "
        f"{ENOUGH:g} % of the variance: over all methods, as in the paper, or without small "
        "spheres, whose first mode is inflated if the points cover most of the circle.",
    ]
    for kernel in KERNELS:
        text += ["", f"### {kernel[0].upper()}{kernel[1:]} kernel", ""]
        text += quality_table(found, kernel)
    return "\n".join(text) + "\n"


# ---------------------------------------------------------------------------- claims


def claims(found: Findings) -> list[str]:
    lines = [sphere_claim(found), sphere_wrap_claim(found), sphere_quality_claim(found)]
    for features in (RAW, SCALED):
        for method in SPHERES:
            lines += [captured_claim(found, method, features)]
    return [*lines, wrap_claim(found), quality_claim(found, OVER_ALL), compared_claim(found)]


def off_the_paper(found: Findings, concentration: float) -> float:
    """The largest distance from the paper's percentages."""
    return max(
        abs(row["mean"] - value)
        for method, values in PAPER.items()
        for row, value in zip(found.sphere(concentration, method), values, strict=True)
    )


def sphere_claim(found: Findings) -> str:
    off = {value: off_the_paper(found, value) for value in found.concentrations}
    met = [f"{value:g}" for value in found.concentrations if off[value] <= NEAR]
    best = found.nearest()
    figures = " against ".join(" / ".join(f"{x:.0f}" for x in PAPER[m]) for m in (SMALL, FLAT))
    return (
        f"- On S² the paper has {figures} % with 1 / 2 modes, PNS against PCA; it does not give "
        f"the concentration. The means over draws are within {NEAR:g} points of all four numbers "
        f"at concentration {', '.join(met) or 'none of those tried'}. Nearest at {best:g} (off by "
        f"{off[best]:.1f} at most)."
    )


def sphere_wrap_claim(found: Findings) -> str:
    beyond = [
        f"{value:g} ({found.sphere(value, SMALL)[0]['wrap']:.2f})"
        for value in found.concentrations
        if found.sphere(value, SMALL)[0]["wrap"] > math.pi
    ]
    return (
        "- On S² the points cover more than half of the small circle (mean wrap above π) at "
        f"concentration {', '.join(beyond) or 'none'}. The variance of the first mode is then that "
        "of angles around a circle; S² has only two modes."
    )


def sphere_quality_claim(found: Findings) -> str:
    """Say at which concentrations nested spheres keep neighbourhoods better on S²."""
    parts = []
    for modes in SPHERE_MODES:
        gains = [
            gain_of(*(found.kept_on_sphere(value, m)[modes - 1] for m in (SMALL, FLAT)))
            for value in found.concentrations
        ]
        sure = sum(gain.mean > STANDARD_ERRORS * gain.error for gain in gains)
        parts.append(
            f"{count(modes, 'dimension')} on {sure} of {len(gains)} "
            f"({min(gain.mean for gain in gains):+.1f} … {max(gain.mean for gain in gains):+.1f})"
        )
    return (
        "- On S² PNS with small spheres preserves neighbourhoods significantly better than PCA "
        f"(two standard errors) with {', '.join(parts)} concentrations."
    )


def captured_claim(found: Findings, method: str, features: str) -> str:
    """Say where a method captures less than kPCA with the same number of modes."""
    parts = []
    for kernel in KERNELS:
        less = {
            name: gains[gains < -ROUNDING]
            for name in found.names
            for gains in [found.gains(name, method, features, kernel)]
        }
        total = len(found.names) * MOST_MODES
        n_less = sum(map(len, less.values()))
        where = [
            f"{name} ({count(len(gains), 'number')} of modes, {gains.min():+.2g} at the worst)"
            for name, gains in less.items()
            if len(gains)
        ]
        curves = [found.curve(name, method, features, kernel) for name in found.names]
        n_runs = sum(row["n_repeats"] for curve in curves for row in curve)
        below = sum(row["n_below"] for curve in curves for row in curve)
        worst = min(row["least_gain"] for curve in curves for row in curve)
        parts.append(
            f"{kernel}: on {total - n_less} of {total} sets × modes; less on "
            f"{', '.join(where) or 'none'}; of random parts {n_runs - below} of {n_runs}"
            + (f" ({worst:+.2g} at the worst)" if below else "")
        )
    return f"- {method}, features {features}: at least the variance of kPCA. {'. '.join(parts)}."


def wrap_claim(found: Findings) -> str:
    parts = []
    for method in SPHERES:
        for kernel in KERNELS:
            wraps = {name: found.wrap(name, method, RAW, kernel) for name in found.names}
            beyond = [name for name, wrap in wraps.items() if wrap > math.pi]
            parts.append(
                f"{method}, {kernel}, on {len(beyond)} of {len(wraps)} sets "
                f"({min(wraps.values()):.2f} … {max(wraps.values()):.2f})"
            )
    return (
        "- Sets on which the points cover more than half of the last circle, wrap above π "
        f"(features {RAW}): {'; '.join(parts)}. On these sets the variance of the first mode, and "
        "so every cumulative percentage, is inflated; the curve of great spheres describes the "
        "data better than that of small spheres."
    )


def quality_claim(found: Findings, rule: str) -> str:
    parts = []
    for method in SPHERES:
        for kernel in KERNELS:
            less = [
                f"{name} ({difference:+.2f})"
                for name in found.names
                for difference in [quality_gain(found, rule, name, method, kernel)]
                if difference < -ROUNDING
            ]
            parts.append(
                f"{method}, {kernel}, on {len(found.names) - len(less)} of {len(found.names)}"
                + (f", worse on {', '.join(less)}" if less else "")
            )
    return (
        "- Neighbourhoods (paper: kPNS is never worse), D the "
        f"{rule}, all points: at least as good as kPCA: {'; '.join(parts)}."
    )


def quality_gain(found: Findings, rule: str, name: str, method: str, kernel: str) -> float:
    ours, flat = (found.quality(rule, name, m, RAW, kernel) for m in (method, FLAT))
    return ours["all_points"] - flat["all_points"]


def compared_claim(found: Findings) -> str:
    """The same with a dimension that wrapping has not made small."""
    line = quality_claim(found, OVER_OTHERS)
    return line.replace(" (paper: kPNS is never worse)", ", the same")


# ---------------------------------------------------------------------------- tables, figure


def sphere_table(found: Findings) -> list[str]:
    header = ["concentration"]
    for method in METHODS:
        name = method.removeprefix("k")
        header += [f"{name}: 1 mode", "2 modes", *(["wrap"] if method in SPHERES else [])]
    cells = []
    for value in found.concentrations:
        row = [f"{value:g}"]
        for method in METHODS:
            own = found.sphere(value, method)
            row += [f"{each['mean']:.1f} ({each['deviation']:.1f})" for each in own]
            row += [f"{own[0]['wrap']:.2f}"] if method in SPHERES else []
        cells.append(row)
    paper = ["paper (not given)"]
    for method in METHODS:
        paper += [f"{x:.0f}" for x in PAPER[method]] if method in PAPER else ["", ""]
        paper += [""] if method in SPHERES else []
    return table(header, [*cells, paper])


def sphere_quality_table(found: Findings) -> list[str]:
    header = ["concentration"]
    for method in METHODS:
        header += [f"{method.removeprefix('k')}: 1 dimension", "2 dimensions"]
    cells = []
    for value in found.concentrations:
        row = [f"{value:g}"]
        for method in METHODS:
            own = found.kept_on_sphere(value, method)
            gain = "" if method == FLAT else " ({mean_gain:+.1f})"
            row += [("{mean:.1f}" + gain).format(**each) for each in own]
        cells.append(row)
    return table(header, cells)


def variance_table(found: Findings, features: str, kernel: str) -> list[str]:
    header = ["set", "points", "method", *(f"{modes}" for modes in TABLE_MODES), "wrap"]
    cells = []
    for name in found.names:
        for method in METHODS:
            curve = found.curve(name, method, features, kernel)
            first = [name, str(curve[0]["n_points"])] if method == SMALL else ["", ""]
            wrap = found.wrap(name, method, features, kernel)
            cells.append(
                [
                    *first,
                    method,
                    *(f"{curve[modes - 1]['all_points']:.1f}" for modes in TABLE_MODES),
                    "" if math.isnan(wrap) else f"{wrap:.2f}",
                ]
            )
    return table(header, cells)


def quality_table(found: Findings, kernel: str) -> list[str]:
    header = ["set"]
    for rule in (OVER_ALL, OVER_OTHERS):
        header += [f"D, {rule}", *METHODS]
    cells = []
    for name in found.names:
        row = [name]
        for rule in (OVER_ALL, OVER_OTHERS):
            own = {m: found.quality(rule, name, m, RAW, kernel) for m in METHODS}
            row.append(str(own[SMALL]["n_modes"]))
            row += [f"{own[m]['all_points']:.1f} ({own[m]['mean_gain']:+.1f})" for m in SPHERES]
            row.append(f"{own[FLAT]['all_points']:.1f}")
        cells.append(row)
    return table(header, cells)


def figure(rows: list[Row]) -> Any:
    found = Findings(rows)
    n_columns = min(4, len(found.names))
    per_kernel = -(-len(found.names) // n_columns)
    n_rows = per_kernel * len(KERNELS)
    fig, axes = new_figure(
        3.4 * n_columns, 0.9 + 2.6 * n_rows, n_rows, n_columns, sharex=True, sharey=True
    )
    for number, kernel in enumerate(KERNELS):
        own = axes[number * per_kernel : (number + 1) * per_kernel]
        for ax, name in zip(own.flat, found.names, strict=False):
            draw(ax, found, name, kernel)
        for ax in own[:, 0]:
            ax.set_ylabel("Variance (%)")
    for ax in axes[-1]:
        ax.set_xlabel("Modes")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return fig


def draw(ax: Any, found: Findings, name: str, kernel: str) -> None:
    """One set and kernel: all points, and the spread over parts of them."""
    for number, method in enumerate(METHODS):
        curve = found.curve(name, method, RAW, kernel)
        modes = [row["n_modes"] for row in curve]
        mean, spread = (np.array([row[what] for row in curve]) for what in ("mean", "deviation"))
        color = COLORS[number]
        ax.plot(
            modes,
            [row["all_points"] for row in curve],
            color=color,
            marker=MARKERS[number],
            markersize=3.5,
            label=method,
        )
        ax.fill_between(modes, mean - spread, mean + spread, color=color, alpha=0.2, linewidth=0)
    wrap = found.wrap(name, SMALL, RAW, kernel)
    ax.set(title=f"{name}, {kernel}", ylim=(0, 102), xticks=(1, 5, 10, 15, 20))
    ax.text(19.8, 4, f"small spheres wrap {wrap:.1f} rad", ha="right", fontsize=8, color="0.35")


def main(quick: bool = False) -> None:
    rows = measure(Size.of(quick), quick)
    publish("variance", rows, page, figure, quick=quick, compared=compared)


if __name__ == "__main__":
    command_line(main, __doc__)
