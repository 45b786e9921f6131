"""Points on a simulated sphere: eigenvalues and neighbourhoods of kernel PCA and of kernel PGA.

The kPGA paper's Figure 2 and the eigenvalues next to it (§6.1): 200 unit vectors of R¹⁰⁰ from a
von Mises-Fisher law on a subsphere S², the linear kernel, Q = 1 and 2. The paper prints the
eigenvalues of one draw and no concentration: several are tried here, many draws each, and the one
that fits the printed figures best is named. Then, from the beginning of §6.2, how many modes hold
90 % of the energy of the sets that the paper clusters (Gaussian kernel, σ² the mean squared
distance).

    python experiments/kpga/sphere.py [--quick]

writes sphere.csv, sphere.md and sphere.png next to this file. Only the last part needs the UCI sets
(ORTHODROME_DATA); without them the rest is written.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from common import HERE, publish
from numpy.typing import NDArray
from pages import (
    Row,
    command_line,
    count,
    labelled,
    load,
    new_figure,
    plain,
    published,
    side_by_side,
    table,
    timed,
)
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from verdicts import Compared

from orthodrome import KernelPCA, KernelPGA, plots
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.metrics import neighborhood_preservation
from orthodrome.plots.palette import COLORS, MARKERS
from orthodrome.sphere import exp_at_pole

PCA, PGA, ALONG = "kPCA", "kPGA", "kPGA, geodesic"
METHODS = (PCA, PGA, ALONG)
SPHERE = "sphere"  # instead of the name of a set
N_POINTS, N_DIMENSIONS = 200, 100

# §6.1, "consistent with the covariance eigenspectra": of one draw
SAID = published(HERE, "sphere")
PAPER_EIGENVALUES = {
    method: tuple(row["value"] for row in SAID["numbers"] if row["method"] == method)
    for method in (PCA, PGA)
}
PAPER_MODES = SAID["modes"]  # §6.2
PAPER_RANGE = PAPER_MODES["least"], PAPER_MODES["most"]
PAPER_MEAN, PAPER_DEVIATION = PAPER_MODES["mean"], PAPER_MODES["deviation"]
PAPER_ABOVE, PAPER_N_ABOVE = PAPER_MODES["above"], PAPER_MODES["n_above"]
ENERGY = 0.9
N_SHOWN = 12  # variants of the count of modes in the table

# in the order of the paper's Figure 5
NAMES = (
    "wine",
    "haberman",
    "iris",
    "vote",
    "heart_statlog",
    "ecoli",
    "blood_transfusion",
    "liver_bupa",
)
FILLED = "vote, missing as 1/2"  # all 435 rows, where a missing vote is neither yes nor no
VOTES = {"vote": "complete rows", FILLED: "all rows, missing as 1/2"}
FEATURES = {"as published": None, "standardised": StandardScaler, "from 0 to 1": MinMaxScaler}
ENERGIES = {"eigenvalues": 1, "their squares": 2}

EIGENVALUE, RANK, RATIO = "eigenvalue", "non-zero eigenvalues", "ratio of the sums"
KEPT, KEPT_MEAN, KEPT_LEAST, KEPT_ALMOST = "kept", "kept, mean", "kept, least", "kept >= 0.99"
FAR, MODES = "points beyond a quarter circle", "modes"
ALMOST = 0.99
# neighbourhoods of all sizes enter the means; these are written
SIZES = (*range(1, 20), *range(20, N_POINTS - 1, 5), N_POINTS - 1)

# features, method, what the energy is the sum of, and which rows of vote
Variant = tuple[str, str, str, str]
# method, number of components or of the eigenvalue, quantity, κ (0: none), value
Cell = list[Any]


@dataclass(frozen=True)
class Size:
    """How much is run."""

    concentrations: tuple[float, ...] = (1.0, 2.0, 4.0, 6.0, 8.0, 8.4, 8.8, 9.2, 10.0, 15.0, 50.0)
    n_draws: int = 50
    names: tuple[str, ...] = NAMES

    @staticmethod
    def of(quick: bool) -> Size:
        return Size((1.0, 4.0, 8.0, 8.8, 15.0), 8) if quick else Size()


# ---------------------------------------------------------------------------- runs


def measure(size: Size, quick: bool) -> list[Row]:
    jobs = [(value, draw) for value in size.concentrations for draw in range(size.n_draws)]
    with timed("simulated spheres"):
        draws = side_by_side(one_draw, jobs, quick=quick)
    rows = []
    for value in size.concentrations:
        own = [cells for job, cells in zip(jobs, draws, strict=True) if job[0] == value]
        rows += summary(value, own)
    names = (*size.names, FILLED) if "vote" in size.names else size.names
    jobs = [(name, features) for name in names for features in FEATURES]
    with timed("modes"):
        counted = side_by_side(modes_of_set, jobs, quick=quick)
    for (name, features), cells in zip(jobs, counted, strict=True):
        rows += [row_of(name, features, cell, [cell[-1]]) for cell in cells]
    return rows


def points_of(concentration: float, draw: int) -> NDArray[np.float64]:
    return make_von_mises_fisher(N_POINTS, N_DIMENSIONS, 2, concentration, random_state=draw)


def one_draw(concentration: float, draw: int) -> list[Cell]:
    """The eigenvalues of one draw, and what one and two components keep of it."""
    X = points_of(concentration, draw)
    with warnings.catch_warnings():
        # points far from the mean, which are counted here, and the third mode that kPGA has not
        warnings.simplefilter("ignore", UserWarning)
        flat, sphere = KernelPCA(3, "linear").fit(X), KernelPGA(3, "linear").fit(X)
    # scikit-learn's eigenvalues are those of the Gram matrix, the paper's of the covariance
    values = {PCA: flat.eigenvalues_ / len(X), PGA: sphere.eigenvalues_}
    cells: list[Cell] = [[PGA, 0, FAR, 0, int(np.sum(sphere.mean_cosines_ <= 0))]]
    for method, own in values.items():
        cells += [[method, n + 1, EIGENVALUE, 0, float(each)] for n, each in enumerate(own)]
        cells.append([method, 0, RANK, 0, int(np.sum(own > 1e-10 * own[0]))])
    ratio = values[PGA][:2].sum() / values[PCA][:2].sum()
    cells.append([PGA, 0, RATIO, 0, float(ratio)])
    embeddings = {PCA: flat.embedding_, PGA: sphere.embedding_, ALONG: sphere.embedding_}
    for n_components in (1, 2):
        cells += kept(X, {m: e[:, :n_components] for m, e in embeddings.items()}, n_components)
    return cells


def kept(X: NDArray[Any], embeddings: dict[str, NDArray[Any]], n_components: int) -> list[Cell]:
    """The neighbourhoods that each embedding keeps, and by how much kPGA's keep more."""
    cells: list[Cell] = []
    means = {}
    for method, embedding in embeddings.items():
        metric = "geodesic" if method == ALONG else "euclidean"
        curve = neighborhood_preservation(X, embedding, kernel="linear", metric=metric)
        means[method] = float(curve.mean())
        cells += [[method, n_components, KEPT, k, float(curve[k - 1])] for k in SIZES]
        cells += [
            [method, n_components, KEPT_MEAN, 0, means[method]],
            [method, n_components, KEPT_LEAST, 0, float(curve.min())],
            [method, n_components, KEPT_ALMOST, 0, float(np.mean(curve >= ALMOST))],
        ]
    for method in (PGA, ALONG):
        gain = means[method] - means[PCA]
        cells.append([gain_of(method), n_components, KEPT_MEAN, 0, gain])
    return cells


def gain_of(method: str) -> str:
    return f"{method} - {PCA}"


def summary(concentration: float, draws: list[list[Cell]]) -> list[Row]:
    """Mean and standard deviation over draws, of each cell."""
    return [
        row_of(SPHERE, concentration, same[0], [cell[-1] for cell in same])
        for same in zip(*draws, strict=True)
    ]


def row_of(data: str, setting: Any, cell: Cell, values: list[float]) -> Row:
    method, components, quantity, kappa, _ = cell
    return {
        "data": data,
        "setting": setting,
        "method": method,
        "components": components,
        "quantity": quantity,
        "kappa": kappa,
        "n_repeats": len(values),
        "mean": float(np.mean(values)),
        "deviation": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
    }


def modes_of_set(name: str, features: str) -> list[Cell]:
    """How many modes hold so much of the energy of a UCI set; nothing where it is not there."""
    try:
        X = filled_vote() if name == FILLED else labelled(name)[0]
    except FileNotFoundError as error:
        if features == next(iter(FEATURES)):  # once for each set
            print(f"{name} is left out: {error}", flush=True)
        return []
    scaler = FEATURES[features]
    if scaler is not None:
        X = scaler().fit_transform(X)
    cells: list[Cell] = []
    for method, estimator in ((PCA, KernelPCA), (PGA, KernelPGA)):
        spectrum = estimator(len(X) - 1, solver="dense").fit(X).eigenvalues_
        for energy, power in ENERGIES.items():
            cells.append([method, 0, f"{MODES}, {energy}", 0, n_modes(spectrum**power)])
    return cells


def filled_vote() -> NDArray[np.float64]:
    votes = load("vote").data
    return np.where(np.isnan(votes), 0.5, votes)


def n_modes(spectrum: NDArray[np.float64], share: float = ENERGY) -> int:
    """The least number of leading values that sum to this share of all."""
    held = np.cumsum(spectrum) / np.sum(spectrum)
    return int(np.argmax(held >= share * (1 - 1e-12))) + 1


# ---------------------------------------------------------------------------- what it shows


class Findings:
    """The rows, as questions that the page and the figure ask."""

    def __init__(self, rows: list[Row]) -> None:
        keys = ("data", "setting", "method", "components", "quantity", "kappa")
        self._rows = {tuple(row[key] for key in keys): row for row in rows}
        of_sphere = [row for row in rows if row["data"] == SPHERE]
        self.concentrations = sorted({row["setting"] for row in of_sphere})
        self.n_draws = of_sphere[0]["n_repeats"]
        self.names = [name for name in dict.fromkeys(r["data"] for r in rows) if name != SPHERE]
        self.best = min(self.concentrations, key=self.misfit)

    def row(
        self, concentration: float, method: str, components: int, quantity: str, kappa: int = 0
    ) -> Row:
        return self._rows[SPHERE, concentration, method, components, quantity, kappa]

    def curve(self, concentration: float, method: str, components: int) -> list[Row]:
        """The neighbourhoods kept, one row for each size, ascending."""
        return [self.row(concentration, method, components, KEPT, kappa) for kappa in SIZES]

    def eigenvalues(self, concentration: float) -> list[tuple[str, int, float, Row]]:
        """Method, number, the paper's figure and ours, of each that the paper prints."""
        return [
            (method, n, value, self.row(concentration, method, n, EIGENVALUE))
            for method, values in PAPER_EIGENVALUES.items()
            for n, value in enumerate(values, start=1)
        ]

    def misfit(self, concentration: float) -> float:
        """The root mean square of the distances from the paper, in deviations of one draw."""
        squares = [distance(value, row) ** 2 for *_, value, row in self.eigenvalues(concentration)]
        return math.sqrt(np.mean(squares))

    def modes(self, features: str, method: str, energy: str, vote: str) -> dict[str, int]:
        """The number of modes of each set, with one version of vote."""
        quantity = f"{MODES}, {energy}"
        return {
            name: int(self._rows[name, features, method, 0, quantity, 0]["mean"])
            for name in self.names
            if name not in VOTES or name == vote
        }

    def variants(self) -> list[Variant]:
        """All of them, that nearest to the paper first."""
        every = product((PCA, PGA), FEATURES, ENERGIES, VOTES)
        return sorted(
            [(features, method, energy, vote) for method, features, energy, vote in every],
            key=lambda variant: modes_misfit(self.modes(*variant)),
        )


def distance(value: float, row: Row) -> float:
    """How far the paper's figure is from the mean of the draws, in deviations of one draw."""
    return float((value - row["mean"]) / row["deviation"])


def error_of_mean(row: Row) -> float:
    return float(row["deviation"] / math.sqrt(row["n_repeats"]))


def modes_misfit(modes: dict[str, int]) -> tuple[float, float]:
    """How many sets are not where the paper has them, then how far the mean of the others is."""
    low, high = PAPER_RANGE
    inside = sum(low <= n <= high for n in modes.values())
    above = sum(n > PAPER_ABOVE for n in modes.values())
    wrong = abs(inside - (len(modes) - PAPER_N_ABOVE)) + abs(above - PAPER_N_ABOVE)
    return wrong, abs(float(np.mean(fewest(modes))) - PAPER_MEAN)


def fewest(modes: dict[str, int]) -> list[int]:
    """The numbers of modes of all sets but the two of the most."""
    return sorted(modes.values())[: max(1, len(modes) - PAPER_N_ABOVE)]


def compared(rows: list[Row]) -> list[Compared]:
    """Eigenvalues and neighbourhoods at the concentration that fits best, and numbers of modes."""
    found = Findings(rows)
    which = f"concentration {plain(found.best)} fits best"
    made = [
        # the paper has one draw
        Compared.number(
            SAID["numbers"][0]["where"],
            f"{method}, eigenvalue {n} ({which})",
            value,
            0.0,
            row["mean"],
            row["deviation"],
        )
        for method, n, value, row in found.eigenvalues(found.best)
    ]
    ratio = found.row(found.best, PGA, 0, RATIO)
    what = f"sum of the first two eigenvalues, kPGA to kPCA ({which})"
    where = SAID["ratio"]["where"]
    made.append(
        Compared.number(where, what, printed_ratio(), 0.0, ratio["mean"], ratio["deviation"])
    )
    for said in SAID["orders"]:
        row = found.row(found.best, gain_of(said["better"]), said["components"], KEPT_MEAN)
        what = (
            f"{said['components']} components: {said['better']} (tangent coordinates) before "
            f"{said['than']} ({which})"
        )
        made.append(Compared.order(said["where"], what, row["mean"], error_of_mean(row)))
    return [*made, *compared_modes(found)]


def printed_ratio() -> float:
    """The sum of the eigenvalues of kernel PGA to that of as many of kernel PCA, as printed."""
    n = SAID["ratio"]["modes"]
    return sum(PAPER_EIGENVALUES[PGA][:n]) / sum(PAPER_EIGENVALUES[PCA][:n])


def compared_modes(found: Findings) -> list[Compared]:
    """How many modes hold 90 % of the energy, with the variant that fits best."""
    if not set(NAMES) <= set(found.names):  # some sets are not there
        return []
    variants = found.variants()
    modes = found.modes(*variants[0])
    low, high = PAPER_RANGE
    inside = sum(low <= n <= high for n in modes.values())
    above = sum(n > PAPER_ABOVE for n in modes.values())
    others = np.array(fewest(modes))
    features, method, energy, vote = variants[0]
    which = (
        f"the nearest of {len(variants)} variants: {method}, features {features}, energy by "
        f"{energy}, of vote {VOTES[vote]}"
    )
    given = (
        (f"sets with {low} to {high} modes", len(modes) - PAPER_N_ABOVE, 0.0, inside),
        (f"sets with more than {PAPER_ABOVE} modes", PAPER_N_ABOVE, 0.0, above),
        ("mean number of modes, all sets but two", PAPER_MEAN, PAPER_DEVIATION, others.mean()),
        ("its deviation between sets", PAPER_DEVIATION, 0.0, others.std(ddof=1)),
    )
    return [
        Compared.number(
            PAPER_MODES["where"], f"{what} ({which})", value, deviation, float(ours), 0.0
        )
        for what, value, deviation, ours in given
    ]


def page(rows: list[Row]) -> str:
    found = Findings(rows)
    text = [
        "# A simulated sphere: kernel PCA and kernel PGA",
        "",
        f"Written by `experiments/kpga/sphere.py` (`make experiments`); do not edit. {N_POINTS} "
        f"unit vectors of R^{N_DIMENSIONS} from a von Mises-Fisher distribution on a random "
        f"subsphere S², linear kernel, {count(found.n_draws, 'draw')} for each concentration "
        "(kPGA paper, §6.1 and Figure 2). The paper does not give the concentration, and its "
        "curves of one draw have no numbers. The quality is the fraction of all κ-neighbourhoods "
        f"that the Q coordinates preserve, κ = 1 … {N_POINTS - 1}; for kernel PGA, with Euclidean "
        "distances between coordinates, and with geodesic distances between points mapped back to "
        "the sphere. ± is the standard error over draws.",
        "",
        *fit_claims(found),
        *kept_claims(found),
        *modes_claims(found),
        "",
        "![The sphere, neighbourhood preservation over κ, eigenvalues and modes](sphere.png)",
        "",
        f"## Eigenvalues at concentration {plain(found.best)}, the best fit",
        "",
        *eigenvalue_table(found),
        "",
        "## Every concentration",
        "",
        "The misfit is the root mean square difference between the five printed eigenvalues and "
        "our means, in standard deviations of one draw. Neighbourhood preservation is the mean "
        "over all κ.",
        "",
        *concentration_table(found),
        "",
        "## Modes needed for 90 % of the energy",
        "",
        *modes_section(found),
    ]
    return "\n".join(text) + "\n"


def fit_claims(found: Findings) -> list[str]:
    best = found.best
    off = [
        f"{method} {n} ({distance(value, row):+.1f})"
        for method, n, value, row in found.eigenvalues(best)
        if abs(distance(value, row)) > 2
    ]
    ranks = {m: [found.row(c, m, 0, RANK) for c in found.concentrations] for m in (PCA, PGA)}
    as_said = all(r["mean"] == 3 and r["deviation"] == 0 for r in ranks[PCA]) and all(
        r["mean"] == 2 and r["deviation"] == 0 for r in ranks[PGA]
    )
    ratio = found.row(best, PGA, 0, RATIO)
    printed = printed_ratio()
    return [
        f"- Of the concentrations tried, {plain(best)} fits the printed eigenvalues best: they "
        f"are {found.misfit(best):.2f} deviations of one draw away (root mean square); more than "
        f"2 deviations away: {', '.join(off) or 'none'}.",
        "- The paper: kernel PCA has three non-zero eigenvalues, kernel PGA two. "
        f"{'**True**' if as_said else '**Not true**'} in every draw at every concentration.",
        f"- The printed eigenvalues of kernel PGA sum to {printed:.3f} times the first two of "
        f"kernel PCA; in our draws to {ratio['mean']:.3f}, with a deviation of "
        f"{ratio['deviation']:.3f} from draw to draw, of which that is "
        f"{distance(printed, ratio):+.1f}.",
    ]


def kept_claims(found: Findings) -> list[str]:
    best = found.best
    means = {m: [found.row(best, m, q, KEPT_MEAN)["mean"] for q in (1, 2)] for m in METHODS}
    almost = [
        f"{method} {100 * found.row(best, method, 2, KEPT_ALMOST)['mean']:.0f} % (at least "
        f"{found.row(best, method, 2, KEPT_LEAST)['mean']:.3f})"
        for method in METHODS
    ]
    one, two = (
        [f"{gain_text(found.row(best, gain_of(m), q, KEPT_MEAN))} ({m})" for m in (PGA, ALONG)]
        for q in (1, 2)
    )
    ahead = [
        sum(
            found.row(c, gain_of(method), 2, KEPT_MEAN)["mean"]
            > 2 * error_of_mean(found.row(c, gain_of(method), 2, KEPT_MEAN))
            for c in found.concentrations
        )
        for method in (PGA, ALONG)
    ]
    n = len(found.concentrations)
    return [
        f"- The paper: with Q = 1 both “perform comparably”. At {plain(best)}, the mean over κ: "
        f"kPCA {means[PCA][0]:.3f}; differences from kPCA {', '.join(one)}.",
        f"- The paper: with Q = 2 kernel PGA “clearly outperforms”. At {plain(best)}: kPCA "
        f"{means[PCA][1]:.3f}; differences from kPCA {', '.join(two)}. Significantly better (two "
        f"standard errors) at {ahead[0]} of {n} concentrations (kPGA) and at {ahead[1]} (kPGA, "
        "geodesic).",
        "- The paper: with Q = 2 kernel PGA preserves the neighbourhoods “for almost every value "
        f"of κ”. Fraction of κ at which at least {ALMOST} of them are preserved, with the minimum "
        f"over κ in brackets, averaged over draws: {', '.join(almost)}.",
    ]


def gain_text(row: Row) -> str:
    return f"{row['mean']:+.4f} ± {error_of_mean(row):.4f}"


def modes_claims(found: Findings) -> list[str]:
    if not found.names:
        return ["- The UCI sets were not found: set ORTHODROME_DATA for the last section."]
    features, method, energy, vote = variant = found.variants()[0]
    low, high = PAPER_RANGE
    modes = found.modes(*variant)
    inside = [n for n in modes.values() if low <= n <= high]
    above = [
        f"{'vote' if name in VOTES else name} ({n})" for name, n in modes.items() if n > PAPER_ABOVE
    ]
    return [
        f"- The paper: on all of its sets but {PAPER_N_ABOVE} from {low} to {high} modes hold 90 % "
        f"of the energy (mean {PAPER_MEAN}, deviation {PAPER_DEVIATION}), on {PAPER_N_ABOVE} more "
        f"than {PAPER_ABOVE}. Of the variants tried the nearest is {method}, features {features}, "
        f"energy by {energy}, of vote {VOTES[vote]}: {len(inside)} of {len(modes)} from {low} to "
        f"{high}; more than {PAPER_ABOVE} on {', '.join(above) or 'none'}; mean of the others "
        f"{np.mean(fewest(modes)):.1f}."
    ]


def eigenvalue_table(found: Findings) -> list[str]:
    cells = [
        [
            f"{method} {n}",
            f"{value:g}",
            f"{row['mean']:.4f} ± {error_of_mean(row):.4f}",
            f"{row['deviation']:.4f}",
            f"{distance(value, row):+.1f}",
        ]
        for method, n, value, row in found.eigenvalues(found.best)
    ]
    header = ["eigenvalue", "paper", "ours", "deviation of one draw", "(paper - ours) / deviation"]
    return table(header, cells)


def concentration_table(found: Findings) -> list[str]:
    header = ["concentration", "misfit", "points beyond a quarter circle"]
    header += [f"Q = {q}: {method}" for q in (1, 2) for method in METHODS]
    cells = []
    for c in found.concentrations:
        name = f"**{plain(c)}**" if c == found.best else plain(c)
        row = [name, f"{found.misfit(c):.2f}", f"{found.row(c, PGA, 0, FAR)['mean']:.1f}"]
        for q in (1, 2):
            for method in METHODS:
                own = found.row(c, method, q, KEPT_MEAN)
                row.append(f"{own['mean']:.4f} ± {error_of_mean(own):.4f}")
        cells.append(row)
    return table(header, cells)


def modes_section(found: Findings) -> list[str]:
    if not found.names:
        return ["The UCI sets were not found; see `experiments/kpga/sphere.py`."]
    low, high = PAPER_RANGE
    n_inside = len(NAMES) - PAPER_N_ABOVE
    names = [name for name in found.names if name != FILLED]
    header = ["method", "features", "energy by", "vote", *names, f"from {low} to {high}"]
    header += [f"above {PAPER_ABOVE}", f"all but {PAPER_N_ABOVE}: mean", "deviation"]
    published = ["the paper", "", "", "", *("" for _ in names), f"{n_inside} of {len(NAMES)}"]
    published += [str(PAPER_N_ABOVE), str(PAPER_MEAN), str(PAPER_DEVIATION)]
    variants = found.variants()
    absent = [name for name in NAMES if name not in found.names]
    return [
        "Gaussian kernel, where σ² is the mean squared distance; all points. The paper refers to "
        "kernel PCA. It does not name the two sets, nor say whether features are standardised and "
        "how missing values are treated; its “energy” may be the sum of the eigenvalues or of "
        "their squares. Vote: the 232 rows without missing values, or all 435 rows with missing "
        "values set to 1/2. The table shows the variants nearest to the paper; all "
        f"{len(variants)} are in the CSV. “All but two” excludes the two sets with the most modes."
        + (f" Not found, and left out: {', '.join(absent)}." if absent else ""),
        "",
        *table(header, [published, *(variant_cells(found, each) for each in variants[:N_SHOWN])]),
    ]


def variant_cells(found: Findings, variant: Variant) -> list[str]:
    low, high = PAPER_RANGE
    features, method, energy, vote = variant
    modes = found.modes(*variant)
    # the version of vote stands where vote stands
    order = [name for name in found.names if name != FILLED]
    numbers = [str(modes[vote if name in VOTES else name]) for name in order]
    few = fewest(modes)
    return [
        method,
        features,
        energy,
        VOTES[vote],
        *numbers,
        f"{sum(low <= n <= high for n in modes.values())} of {len(modes)}",
        str(sum(n > PAPER_ABOVE for n in modes.values())),
        f"{np.mean(few):.1f}",
        f"{np.std(few, ddof=1):.1f}" if len(few) > 1 else "",
    ]


# ---------------------------------------------------------------------------- figure


def figure(rows: list[Row]) -> Any:
    found = Findings(rows)
    fig, axes = new_figure(12.5, 8.2, 2, 3)
    draw_sphere(axes[0, 0], found)
    for n_components, ax in zip((1, 2), axes[0, 1:], strict=True):
        draw_kept(ax, found, n_components)
    draw_eigenvalues(axes[1, 0], found)
    draw_over_concentrations(axes[1, 1], found)
    draw_modes(axes[1, 2], found)
    return fig


def draw_sphere(ax: Any, found: Findings) -> None:
    """The first draw of the best fit, and its projections on the first geodesic."""
    from matplotlib.legend import Legend

    model = KernelPGA(2, "linear").fit(points_of(found.best, 0))
    first = model.embedding_ * [1.0, 0.0]
    points = np.vstack([model.sphere_coordinates_, exp_at_pole(first)])
    labels = np.repeat(["points", "Q = 1"], len(first))
    ax.grid(visible=False)
    plots.sphere(points, labels, ax=ax, tilt=30.0, turn=15.0, size=14.0)
    ax.set_title(f"One draw, concentration {plain(found.best)}")
    # next to the sphere on the left, where there is room, and not in the way of the next panel
    legend = next(each for each in ax.artists if isinstance(each, Legend))
    legend.set_loc("upper left")
    legend.set_bbox_to_anchor((-0.28, 1.0), transform=ax.transAxes)


def draw_kept(ax: Any, found: Findings, n_components: int) -> None:
    """The curves of the paper's Figure 2, with the spread of single draws."""
    for number, (method, dashes) in enumerate(zip(METHODS, ("-", "--", ":"), strict=True)):
        curve = found.curve(found.best, method, n_components)
        mean = np.array([row["mean"] for row in curve])
        spread = np.array([row["deviation"] for row in curve])
        color = COLORS[number]
        ax.plot(SIZES, mean, color=color, linestyle=dashes, linewidth=2, label=method)
        ax.fill_between(SIZES, mean - spread, mean + spread, color=color, alpha=0.15, linewidth=0)
    ax.set(title=f"Q = {n_components}", xlabel="κ", ylabel="Neighbourhoods kept")
    ax.legend(frameon=False, loc="lower right")


def draw_eigenvalues(ax: Any, found: Findings) -> None:
    """Ours over the concentrations near the best, and the paper's as levels."""
    levels = [(m, n, v) for m, n, v, _ in found.eigenvalues(found.best)]
    x = np.array([c for c in found.concentrations if 4 <= c <= 15])
    for (method, n, value), color, marker in zip(levels, COLORS, MARKERS, strict=False):
        own = [found.row(c, method, n, EIGENVALUE) for c in x]
        y, spread = (np.array([row[key] for row in own]) for key in ("mean", "deviation"))
        ax.plot(x, y, color=color, marker=marker, markersize=4, label=f"{method} {n}")
        ax.fill_between(x, y - spread, y + spread, color=color, alpha=0.15, linewidth=0)
        ax.axhline(value, color=color, linestyle=":", linewidth=1.2)
    ax.axvline(found.best, color="0.6", linewidth=1, label="best fit")
    ax.set(xscale="log", yscale="log", xlabel="Concentration", ylabel="Eigenvalue")
    ax.set_title("Eigenvalues (dotted: the paper's)")
    ax.legend(frameon=False, fontsize="small", ncols=2)
    ticks_at(ax, [c for c in (4, 6, 8, 10, 15) if c in x])


def draw_over_concentrations(ax: Any, found: Findings) -> None:
    for number, method in enumerate(METHODS):
        own = [found.row(c, method, 2, KEPT_MEAN) for c in found.concentrations]
        ax.errorbar(
            found.concentrations,
            [row["mean"] for row in own],
            [row["deviation"] for row in own],
            color=COLORS[number],
            marker=MARKERS[number],
            markersize=5,
            capsize=2,
            label=method,
        )
    ax.axvline(found.best, color="0.6", linewidth=1, label="best fit")
    ax.set(xscale="log", xlabel="Concentration", ylabel="Neighbourhoods kept, mean over κ")
    ax.set_title("Q = 2, all concentrations")
    ax.legend(frameon=False, loc="center right")
    ticks_at(ax, [c for c in (1, 2, 4, 8, 15, 50) if c in found.concentrations])


def ticks_at(ax: Any, ticks: Sequence[float]) -> None:
    ax.set_xticks(ticks, [plain(tick) for tick in ticks])
    ax.minorticks_off()


def draw_modes(ax: Any, found: Findings) -> None:
    """The modes of each set, and the range of the paper."""
    low, high = PAPER_RANGE
    ax.axhspan(low, high, color="0.9", zorder=0, label=f"the paper: {low} to {high}")
    ax.axhline(PAPER_ABOVE, color="0.5", linestyle=":", label=f"above on {PAPER_N_ABOVE}")
    for number, features in enumerate(FEATURES if found.names else ()):
        modes = found.modes(features, PCA, "eigenvalues", FILLED)
        style = {"color": COLORS[number], "marker": MARKERS[number], "linestyle": ""}
        places = np.arange(len(modes)) + 0.2 * (number - 1)
        ax.plot(places, list(modes.values()), label=f"features {features}", **style)
        names = [name.split("_")[0].split(",")[0] for name in modes]
        ax.set_xticks(range(len(modes)), names, rotation=40, ha="right", rotation_mode="anchor")
    ax.set(yscale="log", ylabel="Modes", title="Modes with 90 % of the energy, kPCA")
    ticks = (2, 5, 10, 20, 50, 100, 200)
    ax.set_yticks(ticks, map(str, ticks))
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize="small")


def main(quick: bool = False) -> None:
    rows = measure(Size.of(quick), quick)
    publish("sphere", rows, page, figure, quick=quick, compared=compared)


if __name__ == "__main__":
    command_line(main, __doc__)
