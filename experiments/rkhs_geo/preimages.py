"""The pre-image of a Karcher mean on a square and on a spiral, over σ and over starts.

The RKHS-GEO paper's Figure 2 and Algorithm 1 (§3.1): points in the plane, the Gaussian kernel, the
objective f (eq. 7), and its minimum as found by the fixed-point iteration (eq. 9) from every data
point. The paper does not give the number of points, σ or the tolerance. Here there are 200 points,
a range of σ and several draws. The library's pre-images are compared with those of the iteration as
printed in the paper. It leaves the starting point out of the sum, because its weight is 0/0 in the
first step: here in the first step only, or in all steps.

    python experiments/rkhs_geo/preimages.py [--quick]

writes preimages.csv, preimages.md and preimages.png next to this file. Needs no data.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from common import HERE, publish
from numpy.typing import NDArray
from pages import Row, command_line, count, paired, plain, published, side_by_side, table, timed
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning
from verdicts import CONTRADICTED, HOLDS, Compared

from orthodrome import plots
from orthodrome.datasets import make_spirals
from orthodrome.gram import gram_operator
from orthodrome.kernels import Gaussian
from orthodrome.plots.palette import COLORS, MARKERS
from orthodrome.preimage import karcher_mean_preimage
from orthodrome.preimage.domains import Vectors
from orthodrome.preimage.fixed_point import FixedPoint, fixed_point, negated_squared_angles
from orthodrome.sphere import geodesic_distances, karcher_mean

Points = NDArray[np.float64]

N_POINTS = 200
N_MORE_STARTS = 400  # uniform in the bounding box, in addition to the data
TOLERANCE = 1e-6  # of a step, relative to the spread of the data
PAPER_TOLERANCE = 1e-3  # the same for the paper's iteration: its "small value" is the square
SAID = published(HERE, "preimages")
# §3.1: "in practice k is small, namely less than 10"
(PAPER_ITERATIONS,) = (row["less_than"] for row in SAID["orders"] if row["of"] == "iterations")
STARTS = (
    "mean_start",
    "paper_once",
)  # compared: one start, and one at each data point
MOST_ITERATIONS = 2000
SAME_VALUE = 1e-4  # rad² of the objective: as good as the best
SAME_PLACE = 1e-2  # of the spread: the same minimum


def square(draw: int) -> Points:
    return np.random.default_rng(draw).uniform(-1.0, 1.0, size=(N_POINTS, 2))


def spiral(draw: int) -> Points:
    return make_spirals(N_POINTS, 1, noise=0.02, n_turns=2.0, random_state=draw)[0]


SETS: dict[str, Callable[[int], Points]] = {"square": square, "spiral": spiral}

# what is compared with the best of many starts, and how each is called
STRATEGIES = {
    "mean_start": "from the mean alone",
    "few": "library, few starts",
    "all": "library, all starts",
    "paper_once": "paper, start left out of the first step",
    "paper_always": "paper, start left out of all steps",
}


@dataclass(frozen=True)
class Size:
    """How much is run."""

    n_draws: int = 10
    powers: tuple[int, ...] = tuple(range(-5, 4))  # σ is that of "mean" times 2 to this power
    n_more: int = N_MORE_STARTS

    @staticmethod
    def of(quick: bool) -> Size:
        return Size(2, (-4, -2, -1, 0, 2), 60) if quick else Size()


# ---------------------------------------------------------------------------- runs


def measure(size: Size, quick: bool) -> list[Row]:
    cases = product(SETS, range(size.n_draws), size.powers)
    jobs = [(name, draw, power, size.n_more) for name, draw, power in cases]
    return side_by_side(one_case, jobs, quick=quick)


def one_case(name: str, draw: int, power: int, n_more: int) -> Row:
    """One draw of a set with one σ: where every way ends, how far from the best and the mean."""
    X = SETS[name](draw)
    kernel = Gaussian(sigma=float(Gaussian().fit(X).sigma_) * 2.0**power).fit(X)
    case = f"{name}, draw {draw}, σ = {plain(2.0**power)} of the mean σ"
    with timed(case), warnings.catch_warnings():
        # flat valleys, which are not followed to their end: `settled` counts them
        warnings.simplefilter("ignore", ConvergenceWarning)
        few, mean_start = (
            karcher_mean_preimage(kernel, X, starts=starts, tol=TOLERANCE, max_iter=MOST_ITERATIONS)
            for starts in ("few", X.mean(axis=0)[None])
        )
        ends = from_starts(kernel, X, many_starts(X, draw, n_more))
        own = ends.points[: len(X) + 1], -ends.objective[: len(X) + 1]
        once, always = (papers_iteration(X, kernel.sigma_, out) for out in (False, True))
    best = float(-ends.objective.max())
    values = {
        "mean": float(objective_at(X.mean(axis=0)[None], X, kernel.sigma_)[0]),
        "mean_start": mean_start.objective,
        "few": few.objective,
        "all": float(own[1].min()),
        "paper_once": once.objective,
        "paper_always": always.objective,
    }
    return {
        "data": name,
        "draw": draw,
        "power": power,
        "sigma": float(kernel.sigma_),
        "n_points": len(X),
        "n_starts": len(ends.points),
        "best": best,
        **{f"excess_{way}": value - best for way, value in values.items()},
        "n_minima": n_places(own[0], spread_of(X)),
        "share_reaching": float(np.mean(own[1] <= best + SAME_VALUE)),
        "settled": float(np.mean(ends.converged)),
        "iterations_median": float(np.median(once.n_iter)),
        "iterations_most": int(once.n_iter.max()),
        "iterations_few": few.n_iter,
        **places(X, kernel, few.point, few.objective),
    }


def spread_of(X: Points) -> float:
    """The root mean squared distance from the mean."""
    return float(np.sqrt(np.sum(X.var(axis=0))))


def many_starts(X: Points, draw: int, n_more: int) -> Points:
    """The mean, every datum, and places anywhere in the box of the data."""
    more = np.random.default_rng([draw, 1]).uniform(X.min(axis=0), X.max(axis=0), (n_more, 2))
    return np.vstack([X.mean(axis=0), X, more])


def from_starts(kernel: Gaussian, X: Points, starts: Points) -> FixedPoint:
    """Where the library's fixed point ends from each start."""
    return fixed_point(
        Vectors(kernel, X),
        np.full((1, len(X)), 1 / len(X)),
        starts,
        expansion=np.zeros(len(starts), dtype=np.intp),
        objective=negated_squared_angles,
        tol=TOLERANCE,
        max_iter=MOST_ITERATIONS,
    )


def n_places(points: Points, spread: float) -> int:
    """How many places these are; those nearer than a part of the spread are one."""
    left, number = points, 0
    while len(left):
        number += 1
        left = left[np.linalg.norm(left - left[0], axis=1) > SAME_PLACE * spread]
    return number


def places(X: Points, kernel: Gaussian, point: Points, objective: float) -> Row:
    """How a pre-image stands to the data, their mean, and the Karcher mean in feature space."""
    karcher = karcher_mean(gram_operator(kernel, X))
    middle, spread = X.mean(axis=0), spread_of(X)
    cosine = float((kernel(point[None], X) @ karcher.point)[0])
    return {
        "x": float(point[0]),
        "y": float(point[1]),
        "from_mean": float(np.linalg.norm(point - middle)) / spread,
        "nearest_datum": float(np.linalg.norm(X - point, axis=1).min()) / spread,
        "mean_nearest_datum": float(np.linalg.norm(X - middle, axis=1).min()) / spread,
        # the least that any point of the sphere could have, with or without a pre-image
        "least_on_sphere": karcher.variance,
        "above_sphere": objective - karcher.variance,
        "angle_to_karcher": math.acos(min(1.0, cosine)),
        "ball_radius": ball_radius(kernel(X)),
    }


def ball_radius(gram: Points) -> float:
    """The radius of the smallest ball on the sphere that holds all points, by their Gram matrix.

    Its centre c has the largest min_n <c, φ_n>, which is the least length of Σ w_n φ_n over weights
    that sum to one. Of the w >= 0 that minimise wᵀKw + (Σw - 1)², only the sum differs from those.
    """
    values, vectors = np.linalg.eigh(gram)
    factor = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    target = np.append(np.zeros(len(gram)), 1.0)
    weights, _ = nnls(np.vstack([factor, np.ones(len(gram))]), target)
    return math.acos(min(1.0, float(np.linalg.norm(factor @ weights) / weights.sum())))


@dataclass(frozen=True)
class Iterated:
    """Algorithm 1: its best value, and the iterations from each datum."""

    point: Points
    objective: float
    n_iter: NDArray[np.intp]


def papers_iteration(X: Points, sigma: float, left_out: bool) -> Iterated:
    """Algorithm 1 as it is written, from each datum, which is left out of the sum or only at first.

    Plain steps of eq. 9, with neither weights nor shortened steps; the mean is the first candidate.
    """
    z, n_iter = X.copy(), np.zeros(len(X), dtype=np.intp)
    active = np.arange(len(X))
    limit = PAPER_TOLERANCE * spread_of(X)
    while len(active) and n_iter.max() < MOST_ITERATIONS:
        alpha = papers_weights(z[active], X, sigma)
        omitted = left_out | (n_iter[active] == 0)
        alpha[omitted, active[omitted]] = 0.0
        total = alpha.sum(axis=1, keepdims=True)
        # where all weights underflow there is nowhere to go
        moved = np.where(total > 0, alpha @ X / np.where(total > 0, total, 1.0), z[active])
        step = np.linalg.norm(moved - z[active], axis=1)
        z[active] = moved
        n_iter[active] += 1
        active = active[step >= limit]
    candidates = np.vstack([X.mean(axis=0), z])
    values = objective_at(candidates, X, sigma)
    best = int(np.argmin(values))
    return Iterated(candidates[best], float(values[best]), n_iter)


def papers_weights(z: Points, X: Points, sigma: float) -> Points:
    """α of eq. 9; at distance 0, which is 0/0 there, its limit."""
    d2 = ((z[:, None] - X[None]) ** 2).sum(axis=2)
    k = np.exp(-d2 / (2 * sigma**2))
    sine = np.sqrt(-np.expm1(-d2 / sigma**2))
    apart = sine > 0
    return np.where(apart, np.arctan2(sine, k) * k / np.where(apart, sine, 1.0), 1.0)


def objective_at(z: Points, X: Points, sigma: float) -> Points:
    """f of eq. 7 divided by the number of points."""
    angles = geodesic_distances(z, X, kernel=Gaussian(sigma=sigma).fit(X))
    return np.asarray(np.mean(angles**2, axis=1))


# ---------------------------------------------------------------------------- what it shows


class Findings:
    """The rows, as questions that the page and the figure ask."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.names = list(dict.fromkeys(row["data"] for row in rows))
        self.powers = sorted({row["power"] for row in rows})
        self.n_draws = len({row["draw"] for row in rows})
        self._cells: dict[tuple[str, int], list[Row]] = {}
        for row in rows:
            self._cells.setdefault((row["data"], row["power"]), []).append(row)

    def cell(self, name: str, power: int, what: str) -> NDArray[np.float64]:
        """One number for each draw."""
        return np.array([row[what] for row in self._cells[name, power]])

    def curve(self, name: str, what: str) -> NDArray[np.float64]:
        """The mean over draws, for each σ, ascending."""
        return np.array([self.cell(name, power, what).mean() for power in self.powers])

    def reached(self, way: str) -> list[Row]:
        """The cases in which a strategy is as good as the best of many starts."""
        return [row for row in self.rows if row[f"excess_{way}"] <= SAME_VALUE]

    def one_minimum_from(self, name: str) -> int | None:
        """The least power from which on all starts of all draws end at one place."""
        since = None
        for power in reversed(self.powers):
            if self.cell(name, power, "n_minima").max() > 1:
                break
            since = power
        return since


def error_of_mean(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def with_error(values: NDArray[np.float64], digits: int) -> str:
    mean = values.mean()
    # a mean of rounding errors is neither less nor more than nothing
    mean = 0.0 if abs(mean) < 0.5 * 10.0**-digits else mean
    return f"{mean:.{digits}f} ± {error_of_mean(values):.{digits}f}"


def page(rows: list[Row]) -> str:
    found = Findings(rows)
    n_points, n_starts = rows[0]["n_points"], rows[0]["n_starts"]
    text = [
        "# Pre-images of the Karcher mean on a square and a spiral",
        "",
        "Written by `experiments/rkhs_geo/preimages.py` (`make experiments`); do not edit. "
        "RKHS-GEO paper, §3.1, Algorithm 1 and Figure 2. The figure has no numbers, and the paper "
        "does not give the number of points, σ or the tolerance. "
        f"Data: {n_points} points of the plane, uniform in a square or on a spiral of 1.8 turns "
        f"with noise, {count(found.n_draws, 'draw')} each. Kernel: Gaussian; σ is the mean σ (that "
        f'of `sigma="mean"`) times powers of two from 2^{found.powers[0]} to '
        f"2^{found.powers[-1]}. The objective is f of eq. 7 divided by the number of points: the "
        f"mean squared geodesic distance, in rad². Its minimum is the best of {n_starts} starts: "
        "the mean, every data point, and points uniform in their bounding box; "
        f"{100 * float(np.mean([row['settled'] for row in rows])):.1f} % of the starts converge "
        f"within {MOST_ITERATIONS} steps. ± is the standard error over draws.",
        "",
        *claims(found),
        "",
        "![The objective with points, mean and pre-image; excess, minima and iterations over σ]"
        "(preimages.png)",
        "",
        "Circles show where the iterations from all data points end; lines connect some starts "
        "with their ends. (The paper's caption refers to eq. 8, the gradient; the figure shows f.)",
    ]
    for name in found.names:
        text += ["", f"## {name.capitalize()}: excess of the objective over its minimum", ""]
        text += excess_table(found, name)
        text += ["", f"## {name.capitalize()}: minima, iterations and distances", ""]
        text += places_table(found, name)
    return "\n".join(text) + "\n"


def compared(rows: list[Row]) -> list[Compared]:
    """Compare starts and iterations with the paper, on both sets, with the σ that fits best."""
    found = Findings(rows)
    return at_sigma(found, best_power(found), f", which fits best of {len(found.powers)}")


def at_sigma(found: Findings, power: int, note: str = "") -> list[Compared]:
    """Compare with the paper, on both sets with one σ."""
    draws = count(found.n_draws, "draw")
    made = []
    for said in SAID["orders"]:
        for name in found.names:
            if said["of"] == "starts":
                what = (
                    "starts at all data points end lower than the start at the mean, rad² "
                    f"(differences below {SAME_VALUE:g} count as 0)"
                )
                ways = (found.cell(name, power, f"excess_{way}") for way in STARTS)
                gains = without_rounding(np.subtract(*ways))
            else:
                what = f"fewer than {said['less_than']} iterations, median start"
                gains = said["less_than"] - found.cell(name, power, "iterations_median")
            case = f"{name}, σ = {plain(2.0**power)} of the mean σ{note}"
            made.append(paired(said["where"], f"{case}: {what}, {draws}", gains))
    return made


def best_power(found: Findings) -> int:
    """The σ with which most orders hold; among ties, the one with the fewest contradicted."""

    def fit(power: int) -> tuple[int, int, float]:
        findings = [each.finding for each in at_sigma(found, power)]
        return findings.count(HOLDS), -findings.count(CONTRADICTED), -abs(power)

    return max(found.powers, key=fit)


def without_rounding(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """Differences, 0 where both are as good: the iterations end at a tolerance."""
    return np.where(np.abs(gains) < SAME_VALUE, 0.0, gains)


def claims(found: Findings) -> list[str]:
    return [
        minima_claim(found),
        reached_claim(found),
        iterations_claim(found),
        sigmas_claim(found),
        approximation_claim(found),
        ball_claim(found),
        mean_claim(found),
    ]


def minima_claim(found: Findings) -> str:
    parts = []
    for name in found.names:
        most = found.powers[int(np.argmax(found.curve(name, "n_minima")))]
        since = found.one_minimum_from(name)
        one = "for no σ" if since is None else f"for σ ≥ {plain(2.0**since)} times the mean σ"
        parts.append(
            f"{name}, up to {found.cell(name, most, 'n_minima').mean():.0f} minima (σ = "
            f"{plain(2.0**most)} times the mean σ), a single one in all draws {one}"
        )
    return (
        "- The paper: the fixed point is “prone to find local minima and its output is strongly "
        f"dependent on the choice of the initial guess”. Started at all data points, it ends in: "
        f"{'; '.join(parts)}."
    )


def reached_claim(found: Findings) -> str:
    parts = [
        f"{called}: {len(found.reached(way))} (largest excess "
        f"{max(row[f'excess_{way}'] for row in found.rows):.4f})"
        for way, called in STRATEGIES.items()
    ]
    return (
        "- The paper's remedy is to start at every data point. Number of cases, of "
        f"{len(found.rows)} (set, draw and σ), in which each strategy reaches the minimum to "
        f"within {SAME_VALUE:g} rad²: {'; '.join(parts)}."
    )


def iterations_claim(found: Findings) -> str:
    kept = [row for row in found.rows if row["iterations_most"] < PAPER_ITERATIONS]
    typical = [row for row in found.rows if row["iterations_median"] < PAPER_ITERATIONS]
    verdict = "**True**" if len(kept) == len(found.rows) else "**Not true**"
    return (
        f"- The paper: the iterations are “less than {PAPER_ITERATIONS}” (for its sets). {verdict} "
        f"here. With a tolerance of {PAPER_TOLERANCE:g} of the spread for a step, the slowest "
        f"start needs fewer in {len(kept)} of {len(found.rows)} cases, the median start in "
        f"{len(typical)}; the maximum is {max(row['iterations_most'] for row in found.rows)}."
    )


def sigmas_claim(found: Findings) -> str:
    """How many of the paper's orders hold with each σ."""
    parts = []
    for power in found.powers:
        findings = [each.finding for each in at_sigma(found, power)]
        against = findings.count(CONTRADICTED)
        parts.append(
            f"{plain(2.0**power)}: {findings.count(HOLDS)} of {len(findings)}"
            + (f" ({against} contradicted)" if against else "")
        )
    return (
        "- The paper does not give σ. Two orders are compared on each set: starts at all data "
        "points end lower than the start at the mean, and the median start needs fewer than "
        f"{PAPER_ITERATIONS} iterations. Number of orders that hold, for each σ / mean σ: "
        f"{'; '.join(parts)}. The verdict uses {plain(2.0 ** best_power(found))}."
    )


def approximation_claim(found: Findings) -> str:
    low, high = found.powers[0], found.powers[-1]
    parts = [
        f"{name}, {found.cell(name, low, 'angle_to_karcher').mean():.2f} rad at σ = "
        f"{plain(2.0**low)} times the mean σ, "
        f"{found.cell(name, high, 'angle_to_karcher').mean():.4f} at {plain(2.0**high)}"
        for name in found.names
    ]
    return (
        "- The paper: the pre-image “only provides an approximation for the Karcher mean”. On the "
        f"sphere, its distance from the Karcher mean is: {'; '.join(parts)}."
    )


def ball_claim(found: Findings) -> str:
    larger = [row for row in found.rows if row["ball_radius"] > math.pi / 4]
    most = max(row["ball_radius"] for row in found.rows)
    verdict = "**Not true**" if larger else "**True**"
    return (
        "- The paper: no two points are farther apart than π/2, so the data lie in a ball of "
        f"radius π/4, and the Karcher mean is unique. {verdict}: in {len(larger)} of "
        f"{len(found.rows)} cases the smallest enclosing ball is larger; the largest radius is "
        f"{most:.2f} (π/4 is {math.pi / 4:.2f}). "
        + ("In every case" if most < math.pi / 2 else "**Not in every case**")
        + " it is below π/2, which is enough on a sphere."
    )


def mean_claim(found: Findings) -> str:
    parts = []
    for name in found.names:
        away = found.curve(name, "from_mean")
        near, middle = (
            found.curve(name, what).min() for what in ("nearest_datum", "mean_nearest_datum")
        )
        far = found.powers[int(np.argmax(away))]
        parts.append(
            f"{name}, up to {away.max():.2f} (σ = {plain(2.0**far)} times the mean σ), "
            f"{away[-1]:.4f} at the largest σ; the nearest data point is {near:.2f} from the "
            f"pre-image at the best σ, and {middle:.2f} from the mean"
        )
    return (
        "- Distance between the pre-image and the mean of the points, in units of the spread: "
        f"{'; '.join(parts)}."
    )


def excess_table(found: Findings, name: str) -> list[str]:
    header = ["σ / mean σ", "minimum", "at the mean itself", *STRATEGIES.values()]
    cells = [
        [
            plain(2.0**power),
            with_error(found.cell(name, power, "best"), 4),
            *(
                with_error(found.cell(name, power, f"excess_{way}"), 4)
                for way in ("mean", *STRATEGIES)
            ),
        ]
        for power in found.powers
    ]
    return table(header, cells)


def places_table(found: Findings, name: str) -> list[str]:
    header = ["σ / mean σ", "local minima", "starts that reach the minimum (%)"]
    header += ["iterations: median", "maximum", "library, few starts"]
    header += ["distance from the mean / spread", "from the nearest data point / spread"]
    header += ["angle to the Karcher mean (rad)", "objective above that of the Karcher mean"]
    header += ["radius of the smallest ball"]
    cells = []
    for power in found.powers:
        own = {what: found.cell(name, power, what) for what in found.rows[0] if what != "data"}
        cells.append(
            [
                plain(2.0**power),
                with_error(own["n_minima"], 1),
                f"{100 * own['share_reaching'].mean():.0f}",
                f"{np.median(own['iterations_median']):.0f}",
                f"{own['iterations_most'].max():.0f}",
                f"{own['iterations_few'].max():.0f}",
                with_error(own["from_mean"], 3),
                with_error(own["nearest_datum"], 3),
                with_error(own["angle_to_karcher"], 4),
                with_error(own["above_sphere"], 4),
                f"{own['ball_radius'].mean():.3f}",
            ]
        )
    return table(header, cells)


# ---------------------------------------------------------------------------- figure


def figure(rows: list[Row]) -> Any:
    from matplotlib.figure import Figure

    found = Findings(rows)
    shown = [power for power in (-3, -2, -1, 1) if power in found.powers]
    fig = Figure(figsize=(3.3 * len(shown), 10.4), layout="constrained")
    above, below = fig.subfigures(2, 1, height_ratios=(2.0, 1.0))
    axes = above.subplots(len(found.names), len(shown), squeeze=False)
    for name, line in zip(found.names, axes, strict=True):
        for power, ax in zip(shown, line, strict=True):
            draw_objective(ax, name, power)
            if power != shown[-1]:
                ax.child_axes[0].set_ylabel("")  # one name for the scales of a row
    handles, labels = axes[0, 0].get_legend_handles_labels()
    above.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False)
    draw_curves(below.subplots(1, 3), found)
    return fig


def draw_objective(ax: Any, name: str, power: int) -> None:
    """The first draw: f, the points, their mean, the pre-image, and where the starts end."""
    X = SETS[name](0)
    kernel = Gaussian(sigma=float(Gaussian().fit(X).sigma_) * 2.0**power).fit(X)
    with warnings.catch_warnings():
        # a flat valley is not followed to its last digits
        warnings.simplefilter("ignore", ConvergenceWarning)
        plots.karcher_objective(kernel, X, ax=ax, xlabel="", ylabel="")
    ax.get_legend().remove()
    ends = from_starts(kernel, X, X).points
    for number in range(0, len(X), 10):
        path = np.stack([X[number], ends[number]])
        label = "from a start to its end" if number == 0 else None
        ax.plot(*path.T, color="black", linewidth=0.5, alpha=0.6, zorder=2, label=label)
    style = {"marker": "o", "facecolor": "none", "edgecolor": "black", "linewidth": 0.9}
    ax.scatter(*ends.T, s=26, zorder=2.5, label="where starts end", **style)
    ax.set_title(f"{name}, σ = {plain(2.0**power)} of the mean σ", loc="center", pad=6.0)
    ax.set_title("", loc="left")


def draw_curves(axes: Any, found: Findings) -> None:
    """Excess over the minimum, number of minima and iterations, over σ."""
    x = [2.0**power for power in found.powers]
    for number, name in enumerate(found.names):
        style = {"marker": MARKERS[number], "markersize": 5, "linestyle": ("-", "--")[number]}
        for way, color in (("mean", COLORS[5]), ("mean_start", COLORS[1]), ("few", COLORS[0])):
            called = {"mean": "at the mean itself"} | STRATEGIES
            y = found.curve(name, f"excess_{way}")
            axes[0].plot(x, y, color=color, label=f"{name}: {called[way]}", **style)
        axes[1].plot(x, found.curve(name, "n_minima"), color=COLORS[0], label=name, **style)
        for what, color in (("median", COLORS[0]), ("most", COLORS[1])):
            y = found.curve(name, f"iterations_{what}")
            axes[2].plot(x, y, color=color, label=f"{name}: {what}", **style)
    axes[2].axhline(PAPER_ITERATIONS, color="0.5", linestyle=":", label="upper bound in the paper")
    titles = ("Excess over the minimum", "Local minima, from all data points", "Iterations")
    labels = ("rad²", "Number", "Eq. 9, from each data point")
    for ax, title, label in zip(axes, titles, labels, strict=True):
        ax.set_xscale("log", base=2)
        ax.set(title=title, xlabel="σ / mean σ", ylabel=label)
        ax.grid(color="0.92", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize="small")
    for ax in axes[1:]:
        ax.set_yscale("log")


def main(quick: bool = False) -> None:
    rows = measure(Size.of(quick), quick)
    publish("preimages", rows, page, figure, quick=quick, compared=compared)


if __name__ == "__main__":
    command_line(main, __doc__)
