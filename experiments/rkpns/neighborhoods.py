"""Neighbourhood preservation of nested spheres compared with flat and neighbour-graph methods.

The rkPNS paper's Figures 3 and 4 (§VII, "Model Compactness" and "Dimensionality Reduction") by its
protocol: random 80 % of each of eight UCI sets, both kernels. The embedding has the smallest
dimension with which a method explains 70 % of its variance. Kernel nested spheres (p = 2, small and
great) are compared with kernel PCA. Kernel PGA, locally linear embedding, multidimensional scaling
and Laplacian eigenmaps are shown for context. The comparison is repeated with the kernels'
parameters and the numbers of neighbours 30 % smaller and larger, and with standardised features.
variance.py has the full curves of variance, for all points.

    python experiments/rkpns/neighborhoods.py [--quick]

writes neighborhoods.csv, .md, .png and neighborhoods_stability.png next to this file. Needs the UCI
sets (ORTHODROME_DATA).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from warnings import catch_warnings, filterwarnings

import numpy as np
from common import GAUSSIAN, HERE, KERNELS, POLYNOMIAL, kernel_of, publish, wraps_recorded
from numpy.typing import NDArray
from pages import (
    Row,
    command_line,
    count,
    error_of_mean,
    load,
    new_figure,
    published,
    read_rows,
    side_by_side,
    table,
    timed,
)
from scipy.sparse.csgraph import connected_components
from sklearn.manifold import ClassicalMDS, LocallyLinearEmbedding, SpectralEmbedding
from sklearn.preprocessing import StandardScaler
from variance import (
    ENOUGH,
    FLAT,
    GREAT,
    METHODS,
    MOST_MODES,
    NAMES,
    OVER_ALL,
    OVER_OTHERS,
    RAW,
    ROUNDING,
    SCALED,
    SMALL,
    SPHERES,
    least_modes,
)
from verdicts import CONTRADICTED, HOLDS, OPEN, Compared

from orthodrome import KernelPCA, KernelPGA, KernelPNS
from orthodrome.kernels import Gaussian, Kernel, Normalized, Polynomial
from orthodrome.metrics import neighborhood_area, neighborhood_preservation
from orthodrome.plots.palette import COLORS, MARKERS
from orthodrome.sphere import log

PGA = "kPGA"
LLE, MDS, EIGENMAPS = "LLE", "MDS", "Laplacian eigenmaps"
KERNEL_METHODS = (*METHODS, PGA)
IN_TEXT = {SMALL: "small kPNS", GREAT: "great kPNS", PGA: PGA}
CONTEXT = (LLE, MDS, EIGENMAPS)

SAID = published(HERE, "neighborhoods")

COMPACT = "variance"
RULES = {OVER_ALL: METHODS, OVER_OTHERS: (GREAT, FLAT)}
# Neighbours in the data: by the kernel's distance, or by that of the features. The Gaussian kernel
# falls with the distance, and its neighbours are the same.
FEATURE_SPACE, INPUT_SPACE = "feature space", "input space"
REFERENCES = {GAUSSIAN: (FEATURE_SPACE,), POLYNOMIAL: (FEATURE_SPACE, INPUT_SPACE)}
# The paper specifies neither the features nor the space.
VARIANTS = tuple((f, r) for f in (RAW, SCALED) for r in (FEATURE_SPACE, INPUT_SPACE))

AS_SET = 1.0
FACTORS = (0.7, AS_SET, 1.3)  # the paper: "stable up to 30% perturbation in these parameter values"
DEGREE = 10
NEIGHBORS = 10  # of LLE and Laplacian eigenmaps; not given in the paper
KAPPAS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70)
TOGETHER = "all sets"
PAPER_PARTS = 25


@dataclass(frozen=True)
class Size:
    """How much is run: numbers of random parts."""

    names: tuple[str, ...] = NAMES
    n_parts: int = 25
    changed_parts: int = 4  # with each changed parameter
    scaled_parts: int = 25

    @staticmethod
    def of(quick: bool) -> Size:
        return Size(("fertility", "concrete_slump"), 2, 1, 1) if quick else Size()

    def settings(self) -> list[tuple[str, float, int]]:
        """Features, factor of the parameters, and how many parts."""
        changed = [(RAW, factor, self.changed_parts) for factor in FACTORS if factor != AS_SET]
        return [*changed, (SCALED, AS_SET, self.scaled_parts), (RAW, AS_SET, self.n_parts)]

    def jobs(self) -> list[tuple[str, str, str, float, int]]:
        """Data, features, kernel, factor and part."""
        return [
            (name, features, kernel, factor, part)
            for features, factor, n_parts in self.settings()
            for part in range(1, n_parts + 1)
            for kernel in KERNELS
            for name in self.names
        ]


# ---------------------------------------------------------------------------- runs


def measure(size: Size, quick: bool) -> list[Row]:
    jobs = size.jobs()
    results = side_by_side(one_run, jobs, quick=quick)
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for (name, features, kernel, factor, _), found in zip(jobs, results, strict=True):
        for row in found:
            key = (row["part"], features, kernel, factor, row["reference"], row["method"])
            cells.setdefault((*key, name), []).append(row)
    rows = []
    for key in dict.fromkeys(key[:-1] for key in cells):
        by_set = [cells[*key, name] for name in size.names]
        base = dict(
            zip(("part", "features", "kernel", "factor", "reference"), key[:-1], strict=True)
        )
        for name, runs in zip(size.names, by_set, strict=True):
            rows.append(base | {"data": name, "method": key[-1]} | summary(runs))
        # of each part the mean over the sets
        together = [mean_of(runs) for runs in zip(*by_set, strict=True)]
        rows.append(base | {"data": TOGETHER, "method": key[-1]} | summary(together))
    return rows


def one_run(name: str, features: str, kernel: str, factor: float, part: int) -> list[Row]:
    """Embed random 80 % of a set by all methods, and measure each embedding."""
    X = part_of(np.asarray(load(name).data, dtype=np.float64), part)
    if features == SCALED:
        X = StandardScaler().fit_transform(X)
    own_kernel = changed(kernel, factor, X)
    with timed(f"{name}, {features}, {kernel} x {factor:g}, {part}"):
        models = {method: fitted(method, own_kernel, X) for method in KERNEL_METHODS}
        captured = {method: captured_by(model) for method, model in models.items()}
        rows = [compact_row(method, captured) for method in KERNEL_METHODS]
        for rule, methods in RULES.items():
            dimension = least_modes(captured, methods)
            low, split = embeddings(X, models, dimension, round(factor * NEIGHBORS))
            for reference in REFERENCES[kernel]:
                high = own_kernel if reference == FEATURE_SPACE else None
                base = {"part": rule, "reference": reference, "n_modes": dimension}
                rows += quality_rows(base, X, low, high, split)
    return rows


def part_of(X: NDArray[np.float64], part: int) -> NDArray[np.float64]:
    """Random 80 %, the same as in variance.py."""
    order = np.random.default_rng(part).permutation(len(X))
    return X[np.sort(order[: round(0.8 * len(X))])]


def changed(kernel: str, factor: float, X: NDArray[np.float64]) -> Kernel:
    """One of the paper's kernels fitted to X, its σ or its degree times a factor."""
    if factor == AS_SET:
        return kernel_of(kernel).fit(X)
    if kernel == GAUSSIAN:
        return Gaussian(sigma=factor * kernel_of(kernel).fit(X).sigma_).fit(X)
    return Normalized(Polynomial(degree=round(factor * DEGREE), gamma=1.0, coef0=0.0)).fit(X)


def fitted(method: str, kernel: Kernel, X: NDArray[np.float64]) -> Any:
    if method in SPHERES:
        with wraps_recorded():
            return KernelPNS(1, kernel=kernel, sphere=SPHERES[method], negligible=0.0).fit(X)
    analysis = KernelPCA if method == FLAT else KernelPGA
    return analysis(min(MOST_MODES, len(X) - 1), kernel=kernel).fit(X)


def captured_by(model: Any) -> NDArray[np.float64]:
    """The cumulative percent of variance in 1, …, MOST_MODES modes."""
    found = 100 * np.cumsum(model.explained_variance_ratio_)[:MOST_MODES]
    return np.pad(found, (0, MOST_MODES - len(found)), mode="edge")


def compact_row(method: str, captured: dict[str, NDArray[np.float64]]) -> Row:
    """The mean percentage over the numbers of modes, and the modes that hold enough."""
    gains = captured[method] - captured[FLAT]
    return {
        "part": COMPACT,
        "reference": "",
        "n_modes": least_modes(captured, (method,)),
        "method": method,
        "value": float(captured[method].mean()),
        "gain": float(gains.mean()),
        "below": int(gains.min() < -ROUNDING),
        "split": 0,
        "curve": [],
    }


def embeddings(
    X: NDArray[np.float64], models: dict[str, Any], dimension: int, n_neighbors: int
) -> tuple[dict[str, NDArray[np.float64]], bool]:
    """The embeddings of all methods, and whether the graph of neighbours falls apart."""
    low = {method: embedding(model, dimension) for method, model in models.items()}
    flat = min(dimension, X.shape[1])  # LLE refuses more than the features, MDS has 0 beyond
    low[LLE] = LocallyLinearEmbedding(
        n_neighbors=n_neighbors, n_components=flat, eigen_solver="dense"
    ).fit_transform(X)
    # the kind that is kernel PCA with a kernel, as the paper says
    low[MDS] = ClassicalMDS(flat).fit_transform(X)
    maps = SpectralEmbedding(
        dimension, affinity="nearest_neighbors", n_neighbors=n_neighbors, random_state=0
    )
    with catch_warnings():  # counted instead
        filterwarnings("ignore", "Graph is not fully connected", UserWarning)
        low[EIGENMAPS] = maps.fit_transform(X)
    return low, bool(connected_components(maps.affinity_matrix_)[0] > 1)


def embedding(model: Any, dimension: int) -> NDArray[np.float64]:
    """Coordinates in a number of modes; of nested spheres, Log maps at the mean (§V)."""
    if not isinstance(model, KernelPNS):
        return model.embedding_[:, :dimension]
    chain = model.nested_spheres_
    below = chain.projected(model.sphere_coordinates_, dimension)
    return log(below, base_point=chain.projected(chain.mean[None], dimension)[0])


def quality_rows(
    base: Row,
    X: NDArray[np.float64],
    low: dict[str, NDArray[np.float64]],
    kernel: Kernel | None,
    split: bool,
) -> list[Row]:
    """Which neighbourhoods each embedding keeps, in percent, at some κ and as an area over all."""
    curves = {method: neighborhood_preservation(X, Y, kernel=kernel) for method, Y in low.items()}
    areas = {method: 100 * neighborhood_area(curve) for method, curve in curves.items()}
    return [
        base
        | {
            "method": method,
            "value": areas[method],
            "gain": areas[method] - areas[FLAT],
            "below": int(areas[method] - areas[FLAT] < -ROUNDING),
            "split": int(split),
            "curve": [float(100 * curve[min(kappa, len(curve)) - 1]) for kappa in KAPPAS],
        }
        for method, curve in curves.items()
    ]


def mean_of(runs: Sequence[Row]) -> Row:
    """The mean of runs with several sets."""
    numbers = ("n_modes", "value", "gain", "below", "split")
    mean = {name: float(np.mean([run[name] for run in runs])) for name in numbers}
    return mean | {"curve": np.mean([run["curve"] for run in runs], axis=0).tolist()}


def summary(runs: Sequence[Row]) -> Row:
    """Means over parts, with the standard errors of two; the number of parts below kPCA."""
    values, gains = (np.array([run[name] for run in runs]) for name in ("value", "gain"))
    mean = mean_of(runs)
    curve = mean["curve"] or [np.nan] * len(KAPPAS)
    return {
        "n_parts": len(runs),
        "n_modes": mean["n_modes"],
        "mean": mean["value"],
        "error": error_of_mean(values),
        "gain": mean["gain"],
        "gain_error": error_of_mean(gains),
        "n_below": float(np.sum([run["below"] for run in runs])),
        "n_split": float(np.sum([run["split"] for run in runs])),
    } | {f"kept_{kappa}": value for kappa, value in zip(KAPPAS, curve, strict=True)}


# ---------------------------------------------------------------------------- what it shows


class Findings:
    """The rows, as questions that the page and the figures ask."""

    def __init__(self, rows: list[Row]) -> None:
        self._cells = {
            (
                row["part"],
                row["features"],
                row["kernel"],
                float(row["factor"]),
                row["reference"],
                row["data"],
                row["method"],
            ): row
            for row in rows
        }
        self.names = list(dict.fromkeys(r["data"] for r in rows if r["data"] != TOGETHER))

    def compact(self, kernel: str, name: str, method: str, features: str = RAW) -> Row:
        """Percent of variance, mean over the numbers of modes."""
        return self._cells[COMPACT, features, kernel, AS_SET, "", name, method]

    def quality(
        self,
        kernel: str,
        name: str,
        method: str,
        *,
        rule: str = OVER_ALL,
        variant: tuple[str, str] = VARIANTS[0],
        factor: float = AS_SET,
    ) -> Row:
        """Neighbourhoods kept."""
        features, reference = variant
        own = reference if reference in REFERENCES[kernel] else FEATURE_SPACE
        return self._cells[rule, features, kernel, factor, own, name, method]

    def n_parts(self, features: str = RAW, factor: float = AS_SET) -> int:
        variant = (features, FEATURE_SPACE)
        cell = self.quality(GAUSSIAN, self.names[0], SMALL, variant=variant, factor=factor)
        return cell["n_parts"]

    def holding(self, variant: tuple[str, str]) -> int:
        """In how many sets and kernels the paper's order of Figure 4 holds."""
        return sum(
            each.finding == HOLDS
            for order in SAID["orders"]
            if order["of"] == "neighbourhoods"
            for each in orders_kept(self, order, variant)
        )

    def best(self) -> tuple[str, str]:
        """The features and the space with which most of the paper's orders hold."""
        return max(VARIANTS, key=self.holding)


def compared(rows: list[Row]) -> list[Compared]:
    """The paper's orders, with the features and the space that fit best."""
    found = Findings(rows)
    variant = found.best()
    ways = {"variance": orders_compact, "neighbourhoods": orders_kept, "stability": orders_changed}
    return [each for order in SAID["orders"] for each in ways[order["of"]](found, order, variant)]


def orders_compact(found: Findings, order: Row, variant: tuple[str, str]) -> list[Compared]:
    """The mean over the numbers of modes, and the number of parts in which it is ever lower."""
    made = []
    for kernel in KERNELS:
        for name in found.names:
            row = found.compact(kernel, name, beside_flat(order), variant[0])
            what = (
                f"% of variance, mean over 1 … {MOST_MODES} modes, ever lower in "
                f"{row['n_below']:g} parts (features {variant[0]})"
            )
            made.append(ordered(order, f"{name}, {kernel}", what, row))
    return made


def orders_kept(found: Findings, order: Row, variant: tuple[str, str]) -> list[Compared]:
    what = f"neighbourhood preservation (features {variant[0]}, {variant[1]})"
    return [
        ordered(
            order,
            f"{name}, {kernel}",
            what,
            found.quality(kernel, name, beside_flat(order), variant=variant),
        )
        for kernel in KERNELS
        for name in found.names
    ]


def orders_changed(found: Findings, order: Row, variant: tuple[str, str]) -> list[Compared]:
    """With changed parameters only the features as published were run."""
    own, method = (RAW, variant[1]), beside_flat(order)
    other = "" if own == variant else ", unlike the rows above"
    what = f"neighbourhood preservation (features {own[0]}{other}, {own[1]})"
    return [
        ordered(
            order,
            f"{TOGETHER}, {kernel}, {parameter(kernel, factor)}",
            what,
            found.quality(kernel, TOGETHER, method, variant=own, factor=factor),
        )
        for kernel in KERNELS
        for factor in FACTORS
        if factor != AS_SET
    ]


def beside_flat(order: Row) -> str:
    """The method that an order compares with kPCA."""
    others = {order["better"], order["than"]} - {FLAT}
    if len(others) != 1:
        raise ValueError(
            f"An order in published.toml must compare {FLAT} with another method, from which "
            f"differences are kept; got {order['better']!r} and {order['than']!r}."
        )
    return others.pop()


def ordered(order: Row, where: str, what: str, row: Row) -> Compared:
    """One published order, from the differences from kPCA within parts."""
    sign = 1.0 if order["than"] == FLAT else -1.0
    parts = count(row["n_parts"], "part")
    text = f"{where}: {order['better']} above {order['than']}, {what}, {parts}"
    return Compared.order(order["where"], text, sign * row["gain"], row["gain_error"])


def parameter(kernel: str, factor: float) -> str:
    """What a factor makes of a kernel's parameter."""
    return f"σ × {factor:g}" if kernel == GAUSSIAN else f"degree {round(factor * DEGREE)}"


def finding(row: Row) -> str:
    """Whether a method is above kPCA, by the rule of orders."""
    return Compared.order("", "", row["gain"], row["gain_error"]).finding


# ---------------------------------------------------------------------------- page


def page(rows: list[Row]) -> str:
    found = Findings(rows)
    text = [
        "# Neighbourhood preservation of nested spheres and other methods",
        "",
        "Written by `experiments/rkpns/neighborhoods.py` (`make experiments`); do not edit. The "
        "rkPNS paper's Figures 3 and 4, on random parts with 80 % of each set. Methods: kernel "
        "nested spheres with p = 2, small (as in the paper) and great, and kernel PCA. For "
        "context: kernel PGA and, without a kernel, locally linear embedding, classical "
        f"multidimensional scaling and Laplacian eigenmaps (scikit-learn, {NEIGHBORS} neighbours). "
        "Kernels: Gaussian, where σ² is the mean squared distance, and the polynomial "
        f"(xᵀx')^{DEGREE}, normalised. Neighbourhood preservation is the area under the rescaled "
        "curve of Q(κ) over the logarithm of κ: 100 if perfect, 0 if random. All methods embed in "
        f"the same dimension D, the smallest number of modes that explains {ENOUGH:g} % of a "
        "method's variance (for LLE and MDS, at most the number of features). A difference is "
        "significant if it exceeds two standard errors over the parts.",
        "",
        *claims(found),
        "",
        "![Percent of the κ nearest neighbours preserved, one panel for each set and kernel]"
        "(neighborhoods.png)",
        "",
        f"Mean over {count(found.n_parts(), 'part')}; the mean D is in brackets after each set.",
        "",
        "![Difference from kPCA with changed parameters](neighborhoods_stability.png)",
        "",
        "Difference of the area from that of kPCA, averaged over the sets, ± two standard errors "
        f"over parts: {count(found.n_parts(), 'part')} with the paper's parameters, "
        f"{count(found.n_parts(factor=FACTORS[0]), 'part')} with each changed parameter.",
    ]
    for kernel in KERNELS:
        text += ["", f"## {kernel[0].upper()}{kernel[1:]} kernel", ""]
        text += [
            "Explained variance in percent, mean over 1 … 20 modes (standard error in brackets).",
            "",
            *compact_table(found, kernel),
        ]
        for rule in RULES:
            for variant in VARIANTS[: len(REFERENCES[kernel])]:
                text += [
                    "",
                    f"Neighbourhood preservation; D is the {rule}; neighbours in {variant[1]}.",
                    "",
                ]
                text += quality_table(found, kernel, rule, variant)
    return "\n".join([*text, "", "## Changed parameters", "", *stability_table(found)]) + "\n"


def claims(found: Findings) -> list[str]:
    lines = [run_claim(found), compact_claim(found)]
    for rule in RULES:
        lines += [kept_claim(found, rule, method) for method in (SMALL, GREAT, PGA)]
    return [*lines, variant_claim(found), context_claim(found), *stability_claims(found)]


def run_claim(found: Findings) -> str:
    changed_parts = found.n_parts(factor=FACTORS[0])
    return (
        f"- Run: {len(found.names)} of the paper's {count(len(NAMES), 'set')}, "
        f"{found.n_parts()} of its {PAPER_PARTS} random parts; "
        f"{count(changed_parts, 'part')} with each changed parameter and "
        f"{found.n_parts(SCALED)} with standardised features (the paper gives no number for these)."
    )


def compact_claim(found: Findings) -> str:
    parts = []
    for method in (SMALL, GREAT, PGA):
        cells = [found.compact(k, name, method) for k in KERNELS for name in found.names]
        total, below = (sum(cell[what] for cell in cells) for what in ("n_parts", "n_below"))
        gains = [cell["gain"] for cell in cells]
        parts.append(
            f"{IN_TEXT[method]}, in {total - below:g} of {total} parts, over sets and kernels "
            f"(mean difference on a set: {min(gains):+.1f} … {max(gains):+.1f} points)"
        )
    return (
        "- Explained variance (paper: never less than kPCA): at least that of kPCA for every "
        f"number of modes: {'; '.join(parts)}."
    )


def kept_claim(found: Findings, rule: str, method: str) -> str:
    paper = " (paper: kPNS is never worse)" if (rule, method) == (OVER_ALL, SMALL) else ""
    parts = []
    for kernel in KERNELS:
        cells = {n: found.quality(kernel, n, method, rule=rule) for n in found.names}
        findings = [finding(cell) for cell in cells.values()]
        worse = [
            f"{name} ({cell['gain']:+.1f})"
            for name, cell in cells.items()
            if finding(cell) == CONTRADICTED
        ]
        parts.append(
            f"{kernel}, better on {findings.count(HOLDS)} of {len(findings)} sets, not "
            f"significant on {findings.count(OPEN)}, worse on {', '.join(worse) or 'none'}"
        )
    return (
        f"- Neighbourhoods, {IN_TEXT[method]} compared with kPCA{paper}, where D is the {rule}: "
        f"{'; '.join(parts)}."
    )


def variant_claim(found: Findings) -> str:
    total = len(found.names) * len(KERNELS)
    parts = [
        f"features {features}, neighbours in {reference}: {found.holding((features, reference))}"
        for features, reference in VARIANTS
    ]
    features, reference = found.best()
    return (
        "- The paper does not say whether features were standardised, nor in which space "
        f"neighbours were computed. Number of cases, of {total} (set and kernel), in which small "
        f"kPNS is better than kPCA: {'; '.join(parts)}. The verdict uses the variant that fits "
        f"best: features {features}, neighbours in {reference}."
    )


def context_claim(found: Findings) -> str:
    parts = []
    for method in CONTEXT:
        above = [
            sum(
                found.quality(kernel, name, method)["mean"]
                > found.quality(kernel, name, SMALL)["mean"]
                for name in found.names
            )
            for kernel in KERNELS
        ]
        each = ", ".join(f"{n} ({kernel})" for n, kernel in zip(above, KERNELS, strict=True))
        parts.append(f"{method}, {each}")
    cells = [found.quality(GAUSSIAN, name, EIGENMAPS) for name in found.names]
    split, total = (sum(cell[what] for cell in cells) for what in ("n_split", "n_parts"))
    return (
        f"- For context, where D is the {OVER_ALL}: number of sets, of {len(found.names)}, on "
        f"which a method is better than small kPNS on average: {'; '.join(parts)}. The graph of "
        f"{NEIGHBORS} neighbours is disconnected in {split:g} of {total} parts; eigenmaps then "
        "carry no information about distances between its components."
    )


def stability_claims(found: Findings) -> list[str]:
    lines = []
    for kernel in KERNELS:
        parts = []
        for factor in FACTORS:
            if factor == AS_SET:
                continue
            kept, flipped = signs_kept(found, kernel, factor)
            same, pairs = pairs_kept(found, kernel, factor)
            cell = found.quality(kernel, TOGETHER, SMALL, factor=factor)
            parts.append(
                f"With {parameter(kernel, factor)} the mean difference is {cell['gain']:+.1f}, "
                f"with the same sign on {kept} of {len(found.names)} sets and significantly "
                f"reversed on {', '.join(flipped) or 'none'}; {100 * same / pairs:.0f} % of all "
                "pairs of methods are in the same order"
            )
        gain = found.quality(kernel, TOGETHER, SMALL)["gain"]
        lines.append(
            f"- Stability (paper: quite stable if parameters change by 30 %), {kernel} kernel: "
            f"the mean difference between small kPNS and kPCA is {gain:+.1f}. {'. '.join(parts)}."
        )
    return lines


def signs_kept(found: Findings, kernel: str, factor: float) -> tuple[int, list[str]]:
    """On how many sets the sign of kPNS - kPCA is the same; where it is significantly reversed."""
    kept, flipped = 0, []
    for name in found.names:
        before = found.quality(kernel, name, SMALL)
        after = found.quality(kernel, name, SMALL, factor=factor)
        kept += (before["gain"] > 0) == (after["gain"] > 0)
        if {finding(before), finding(after)} == {HOLDS, CONTRADICTED}:
            flipped.append(name)
    return kept, flipped


def pairs_kept(found: Findings, kernel: str, factor: float) -> tuple[int, int]:
    """How many pairs of methods, over the sets, have their means in the same order; and of all."""
    methods = (*KERNEL_METHODS, *CONTEXT)
    same = total = 0
    for name in found.names:
        before, after = (
            [found.quality(kernel, name, method, factor=each)["mean"] for method in methods]
            for each in (AS_SET, factor)
        )
        for i in range(len(methods)):
            for j in range(i):
                same += (before[i] > before[j]) == (after[i] > after[j])
                total += 1
    return same, total


# ---------------------------------------------------------------------------- tables, figures


def compact_table(found: Findings, kernel: str) -> list[str]:
    cells = [
        [
            name,
            *(
                f"{cell['mean']:.1f} ({cell['error']:.1f})"
                for cell in (found.compact(kernel, name, method) for method in KERNEL_METHODS)
            ),
        ]
        for name in [*found.names, TOGETHER]
    ]
    return table(["set", *KERNEL_METHODS], cells)


def quality_table(found: Findings, kernel: str, rule: str, variant: tuple[str, str]) -> list[str]:
    """Areas with their standard errors, and whether kPNS is above kPCA."""
    methods = (*KERNEL_METHODS, *CONTEXT)
    lines = []
    for name in [*found.names, TOGETHER]:
        own = {m: found.quality(kernel, name, m, rule=rule, variant=variant) for m in methods}
        small = own[SMALL]
        lines.append(
            [
                name,
                f"{small['n_modes']:.3g}",
                *(f"{own[m]['mean']:.1f} ({own[m]['error']:.1f})" for m in methods),
                f"{small['gain']:+.2f} ({small['gain_error']:.2f})",
            ]
        )
    return table(["set", "mean D", *methods, f"{SMALL} - {FLAT}"], lines)


def stability_table(found: Findings) -> list[str]:
    """Differences from kPCA over the sets, for each parameter."""
    methods = (SMALL, GREAT, PGA, *CONTEXT)
    lines = []
    for kernel in KERNELS:
        for factor in FACTORS:
            own = [found.quality(kernel, TOGETHER, m, factor=factor) for m in methods]
            cells = [f"{cell['gain']:+.2f} ({cell['gain_error']:.2f})" for cell in own]
            name = f"{kernel}, {parameter(kernel, factor)}"
            n_neighbors = str(round(factor * NEIGHBORS))
            lines.append([name, n_neighbors, str(own[0]["n_parts"]), *cells])
    header = ["kernel", "neighbours", "parts", *(f"{method} - {FLAT}" for method in methods)]
    return table(header, lines)


def style(method: str) -> dict[str, Any]:
    """Colours and markers for the methods with kernels; grey dashes for the others."""
    if method in CONTEXT:
        dashes = ("--", "-.", ":")[CONTEXT.index(method)]
        return {"color": "0.45", "linestyle": dashes, "linewidth": 1.2}
    number = KERNEL_METHODS.index(method)
    return {"color": COLORS[number], "marker": MARKERS[number], "markersize": 3.5}


def figure(rows: list[Row]) -> Any:
    """Q(κ) of each set and kernel, as in the paper's Figure 4."""
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
            ax.set_ylabel("Neighbours kept (%)")
    for ax in axes[-1]:
        ax.set_xlabel("κ, size of the neighbourhood")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=n_columns, frameon=False)
    return fig


def draw(ax: Any, found: Findings, name: str, kernel: str) -> None:
    # the paper's two methods are drawn over the others
    above = {SMALL: 4, FLAT: 3.5}
    for method in (*KERNEL_METHODS, *CONTEXT):
        cell = found.quality(kernel, name, method)
        kept = [cell[f"kept_{kappa}"] for kappa in KAPPAS]
        ax.plot(KAPPAS, kept, label=method, zorder=above.get(method, 3), **style(method))
    dimension = found.quality(kernel, name, SMALL)["n_modes"]
    ticks = (1, 2, 5, 10, 20, 50)
    ax.set_title(f"{name}, {kernel} (D {dimension:.3g})", fontsize="medium")
    ax.set(xscale="log", ylim=(0, 102))
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()


def stability_figure(rows: list[Row]) -> Any:
    """Differences from kPCA with the parameters smaller, as set and larger."""
    found = Findings(rows)
    fig, axes = new_figure(10, 4.2, 1, len(KERNELS), sharey=True)
    for ax, kernel in zip(axes[0], KERNELS, strict=True):
        for number, method in enumerate((SMALL, GREAT, PGA, *CONTEXT)):
            own = [found.quality(kernel, TOGETHER, method, factor=f) for f in FACTORS]
            places = np.arange(len(FACTORS)) + 0.04 * (number - 2.5)
            gains, errors = ([cell[what] for cell in own] for what in ("gain", "gain_error"))
            ax.errorbar(
                places,
                gains,
                yerr=2 * np.array(errors),
                capsize=2,
                label=method,
                **style(method),
            )
        ax.axhline(0, color="0.2", linewidth=1)
        labels = [f"{parameter(kernel, f)}\n{round(f * NEIGHBORS)} neighbours" for f in FACTORS]
        ax.set_xticks(range(len(FACTORS)), labels)
        ax.set_xlim(-0.4, len(FACTORS) - 0.6)
        ax.set_title(f"{kernel} kernel, mean of {count(len(found.names), 'set')}")
    axes[0, 0].set_ylabel("Area above that of kPCA (points)")
    handles, names = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=6, frameon=False)
    return fig


def main(quick: bool = False) -> None:
    rows = measure(Size.of(quick), quick)
    publish("neighborhoods", rows, page, figure, quick=quick, compared=compared)
    folder = HERE / "scratch" if quick else HERE
    kept = read_rows(folder / "neighborhoods.csv")
    target = folder / "neighborhoods_stability.png"
    stability_figure(kept).savefig(target, dpi=144, metadata={"Software": None})


if __name__ == "__main__":
    command_line(main, __doc__)
