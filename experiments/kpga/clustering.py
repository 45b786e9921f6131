"""Mixtures after kernel PGA and after kernel PCA, and spectral clustering, on UCI sets.

The kPGA paper's Figure 5 (§6.2): eight sets with their features as they are, the Gaussian kernel
with σ² the mean squared distance, Q = 1 … 30 modes. Each repeat draws 70 % of the points of each
class and clusters those; the error rate is that of the best matching of clusters with classes.
Both mixtures have the same points, the same starts (kernel k-means from farthest points, with the
same guard against collapsed clusters), the same scale of the floor of the covariances and the same
rule to stop; the flat one is scikit-learn's.

    python experiments/kpga/clustering.py [--quick]

writes clustering.csv, clustering.md and clustering.png next to this file. Needs the UCI sets
(ORTHODROME_DATA).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from common import HERE, publish
from numpy.typing import NDArray
from pages import (
    Row,
    command_line,
    count,
    labelled,
    new_figure,
    paired,
    published,
    side_by_side,
    table,
    timed,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from verdicts import Compared

from orthodrome import GeodesicMixture, KernelPCA, KernelSpectralClustering
from orthodrome._core.canonical import canonical_rows
from orthodrome._core.random import draw_seeds
from orthodrome.gram import gram_operator
from orthodrome.kernels import Gaussian
from orthodrome.metrics import clustering_error
from orthodrome.plots.palette import COLORS, MARKERS
from orthodrome.sphere.lloyd import SEEDINGS, FlatCenters, lloyd

PGA, PCA = "kPGA mixture", "kPCA mixture"
SPECTRAL = {"ncut": "spectral, Shi-Malik", "njw": "spectral, Ng-Jordan-Weiss"}
# in the order of the paper
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
N_STARTS = 5
SATURATED = 0.999


@dataclass(frozen=True)
class Setting:
    """Options of a mixture; the first are the defaults of GeodesicMixture."""

    name: str = "default"
    covariance_type: str = "full"
    reg_covar: float = 1e-6
    mean_update: str = "karcher"
    borrowed: bool = True  # whether the flat mixture begins with covariances as the other does


DEFAULT = Setting()
OTHERS = (
    Setting("larger floor (1e-3)", reg_covar=1e-3),
    Setting("diagonal covariances", covariance_type="diag"),
    Setting("round covariances", covariance_type="spherical"),
    Setting("kPGA with the likeliest means (step 6 of the paper)", mean_update="likelihood"),
    Setting("kPCA begun with the covariances of the clusters", borrowed=False),
)


@dataclass(frozen=True)
class Size:
    """How much is run; other settings are tried with fewer modes and repeats."""

    names: tuple[str, ...] = NAMES
    modes: tuple[int, ...] = tuple(range(1, 31))
    n_repeats: int = 50
    other_modes: tuple[int, ...] = (2, 5, 10, 20)
    other_repeats: int = 5

    @staticmethod
    def of(quick: bool) -> Size:
        return Size(("iris", "vote"), (1, 3, 8), 2, (3, 8), 2) if quick else Size()


# ---------------------------------------------------------------------------- runs


def measure(size: Size, quick: bool) -> list[Row]:
    # the largest numbers of clusters and points first, so that no process ends long after the other
    hard = ("ecoli", "blood_transfusion", "liver_bupa", "haberman")
    names = sorted(size.names, key=lambda name: hard.index(name) if name in hard else len(hard))
    jobs = [(name, repeat, size) for name in names for repeat in range(size.n_repeats)]
    parts = side_by_side(one_repeat, jobs, quick=quick)
    rows = [row for part in parts for row in part]
    return sorted(rows, key=lambda row: (size.names.index(row["data"]), row["repeat"]))


def one_repeat(name: str, repeat: int, size: Size) -> list[Row]:
    """Cluster one part of one set in every way."""
    X, y = labelled(name)
    k = len(np.unique(y))
    chosen = part_of_each_class(y, repeat)
    base = {
        "data": name,
        "n_points": len(chosen),
        "n_clusters": k,
        "majority_error": 1 - float(np.bincount(y[chosen]).max()) / len(chosen),
        "repeat": repeat,
    }
    X, y = X[chosen], y[chosen]
    rows = []
    with timed(f"{name}, repeat {repeat}"), warnings.catch_warnings():
        # components of few points, and starts that are not done in time, are part of the matter
        warnings.simplefilter("ignore", ConvergenceWarning)
        for laplacian, method in SPECTRAL.items():
            model = KernelSpectralClustering(
                k, kernel="gaussian", laplacian=laplacian, random_state=repeat
            )
            rows.append(row_of(method, "default", 0, clustering_error(y, model.fit(X).labels_)))
        flat = Flat(X, k, repeat, max(size.modes))
        rows += mixtures(X, y, flat, size.modes, DEFAULT)
        for setting in OTHERS if repeat < size.other_repeats else ():
            rows += mixtures(X, y, flat, size.other_modes, setting)
    return [base | row for row in rows]


def part_of_each_class(y: NDArray[Any], seed: int, share: float = 0.7) -> NDArray[np.intp]:
    """Draw so many of the points of each class, at least one."""
    random = np.random.default_rng(seed)
    parts = []
    for label in np.unique(y):
        own = np.flatnonzero(y == label)
        parts.append(random.permutation(own)[: max(1, round(share * len(own)))])
    return np.sort(np.concatenate(parts))


def mixtures(
    X: NDArray[Any], y: NDArray[Any], flat: Flat, modes: Sequence[int], setting: Setting
) -> list[Row]:
    """Both mixtures with each number of modes."""
    rows = []
    for n_modes in modes:
        sphere = GeodesicMixture(
            flat.k,
            n_modes,
            covariance_type=setting.covariance_type,
            mean_update=setting.mean_update,
            reg_covar=setting.reg_covar,
            n_init=N_STARTS,
            random_state=flat.seed,
        ).fit(X)
        model = flat.fit(n_modes, setting)
        posteriors = {
            PGA: (sphere, sphere.predict_proba(X)),
            PCA: (model, model.predict_proba(flat.coordinates[:, :n_modes])),
        }
        for method, (fitted, posterior) in posteriors.items():
            row = row_of(method, setting.name, n_modes, math.nan)
            rows.append(row | of_posterior(y, posterior, fitted, flat.starts))
    return rows


class Flat:
    """scikit-learn's mixture on the coordinates of kernel PCA, begun as GeodesicMixture begins."""

    def __init__(self, X: NDArray[Any], k: int, seed: int, most_modes: int) -> None:
        self.k, self.seed = k, seed
        self.coordinates = KernelPCA(most_modes).fit_transform(X)
        self.starts = starting_labels(X, k, seed)

    def fit(self, n_modes: int, setting: Setting) -> GaussianMixture:
        """The likeliest of the mixtures from all starts."""
        Z = self.coordinates[:, :n_modes]
        floor = setting.reg_covar * float(Z.var(axis=0).mean())
        fits = [self._fit(Z, labels, setting, floor) for labels in self.starts]
        return max(fits, key=lambda fit: fit.lower_bound_)

    def _fit(self, Z: NDArray[Any], labels: NDArray[Any], setting: Setting, floor: float) -> Any:
        """EM from the moments of the clusters."""
        sizes, means, covariances = moments(Z, labels, self.k, borrowed=setting.borrowed)
        return GaussianMixture(
            self.k,
            covariance_type=setting.covariance_type,
            means_init=means,
            weights_init=sizes / sizes.sum(),
            precisions_init=precisions(covariances, setting.covariance_type, floor),
            reg_covar=floor,
            tol=1e-3,
            max_iter=100,
        ).fit(Z)


def moments(
    Z: NDArray[Any], labels: NDArray[Any], k: int, *, borrowed: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Sizes, means and covariances of clusters.

    GeodesicMixture gives each cluster, to begin with, as many points' worth of the covariance
    within all clusters as there are modes and one more; so it is here, if `borrowed`.
    """
    memberships = np.eye(k)[labels]
    sizes = np.maximum(memberships.sum(axis=0), 1.0)
    means = memberships.T @ Z / sizes[:, None]
    n_modes = Z.shape[1]
    scatters = np.empty((k, n_modes, n_modes))
    for number in range(k):
        around = Z[labels == number] - means[number]
        scatters[number] = around.T @ around
    extra = n_modes + 1 if borrowed else 0
    within = scatters.sum(axis=0) / len(Z)
    return sizes, means, (scatters + extra * within) / (sizes + extra)[:, None, None]


def precisions(covariances: NDArray[np.float64], kind: str, floor: float) -> NDArray[np.float64]:
    """The inverses of covariances, in the shape of scikit-learn."""
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    if kind == "diag":
        return 1 / (variances + floor)
    if kind == "spherical":
        return 1 / (variances.mean(axis=1) + floor)
    values, vectors = np.linalg.eigh(covariances)
    # a plain inverse of a cluster with fewer points than modes is not symmetric enough for EM
    scaled = vectors / np.sqrt(np.maximum(values, 0.0) + floor)[:, None, :]
    return scaled @ np.swapaxes(scaled, 1, 2)


def starting_labels(X: NDArray[Any], k: int, seed: int) -> list[NDArray[np.intp]]:
    """What GeodesicMixture begins with: kernel k-means from points each farthest from the others.

    The same seeds in the same order, so that both mixtures start from the same clusters.
    """
    canonical = canonical_rows(X, None)
    kernel = Gaussian().fit(canonical.data, sample_weight=canonical.weights)
    geometry = FlatCenters(gram_operator(kernel, canonical.data), canonical.weights)
    first = []
    for own_seed in draw_seeds(seed, 1 + N_STARTS, "starting_labels")[1:]:
        points = SEEDINGS["farthest-first"](
            geometry.squared_from, canonical.weights, k, np.random.RandomState(own_seed)
        )
        first.append(np.argmin(geometry.squared_from(points), axis=1))
    return [run.labels[canonical.inverse] for run in lloyd(geometry, first, k, max_iter=100)]


def of_posterior(
    y: NDArray[Any],
    posterior: NDArray[np.float64],
    model: Any,
    starts: Sequence[NDArray[np.intp]],
) -> Row:
    """How well the posterior probabilities find the classes, and how far EM came from its start."""
    labels = posterior.argmax(axis=1)
    with np.errstate(divide="ignore"):
        densities = np.log(posterior) - np.log(model.weights_)
    return {
        "error": clustering_error(y, labels),
        # the paper's rule compares densities without the weights
        "error_by_density": clustering_error(y, densities.argmax(axis=1)),
        "saturated": float(np.mean(posterior.max(axis=1) > SATURATED)),
        "moved": min(clustering_error(start, labels) for start in starts),
        "n_iter": model.n_iter_,
    }


def row_of(method: str, setting: str, n_modes: int, error: float) -> Row:
    return {
        "method": method,
        "setting": setting,
        "n_modes": n_modes,
        "error": error,
        "error_by_density": error,
        "saturated": math.nan,
        "moved": math.nan,
        "n_iter": 0,
    }


# ---------------------------------------------------------------------------- what it shows


class Findings:
    """The rows, as questions that the page and the figure ask."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows
        self.names = list(dict.fromkeys(row["data"] for row in rows))
        self.repeats = sorted({row["repeat"] for row in rows})
        self.modes = sorted({r["n_modes"] for r in rows if r["setting"] == DEFAULT.name} - {0})
        self.every_mode = len(self.modes) == self.modes[-1] - self.modes[0] + 1
        self._cells: dict[tuple[str, str, str], dict[tuple[int, int], Row]] = {}
        for row in rows:
            key = (row["data"], row["method"], row["setting"])
            self._cells.setdefault(key, {})[row["repeat"], row["n_modes"]] = row

    def first(self, name: str) -> Row:
        return next(row for row in self._rows if row["data"] == name)

    def grid(
        self, name: str, method: str, what: str = "error", setting: str = DEFAULT.name
    ) -> NDArray[np.float64]:
        """One number for each repeat (rows) and number of modes (columns)."""
        cells = self._cells[name, method, setting]
        repeats, modes = (sorted({key[i] for key in cells}) for i in (0, 1))
        return np.array([[cells[repeat, q][what] for q in modes] for repeat in repeats])

    def over_modes(self, name: str, method: str, **options: Any) -> NDArray[np.float64]:
        """The mean over the modes of each repeat."""
        return self.grid(name, method, **options).mean(axis=1)

    def over_every_mode(self, name: str, method: str) -> NDArray[np.float64]:
        """The mean over every Q from the least to the most, of each repeat.

        Those between the ones measured are taken from straight lines.
        """
        every = np.arange(self.modes[0], self.modes[-1] + 1)
        curves = self.grid(name, method)
        return np.array([np.interp(every, self.modes, curve).mean() for curve in curves])

    def difference(self, name: str, **options: Any) -> NDArray[np.float64]:
        """kPGA less kPCA, of each repeat, over the modes."""
        return self.over_modes(name, PGA, **options) - self.over_modes(name, PCA, **options)

    def part_of_default(self, name: str) -> NDArray[np.float64]:
        """The same with the repeats and modes only with which other settings were tried."""
        tried = self._cells[name, PGA, OTHERS[0].name]
        repeats, modes = (sorted({key[i] for key in tried}) for i in (0, 1))
        errors = {
            method: np.array([[cells[repeat, q]["error"] for q in modes] for repeat in repeats])
            for method in (PGA, PCA)
            for cells in [self._cells[name, method, DEFAULT.name]]
        }
        return (errors[PGA] - errors[PCA]).mean(axis=1)

    def every_difference(self, name: str) -> NDArray[np.float64]:
        """The same over every Q."""
        return self.over_every_mode(name, PGA) - self.over_every_mode(name, PCA)

    def at_best(self, name: str, method: str) -> NDArray[np.float64]:
        """The errors of the repeats with the number of modes of the least mean."""
        errors = self.grid(name, method)
        return errors[:, int(errors.mean(axis=0).argmin())]

    def best_modes(self, name: str, method: str) -> tuple[int, float]:
        """The number of modes of the least error, and that error."""
        curve = self.grid(name, method).mean(axis=0)
        return self.modes[int(curve.argmin())], float(curve.min())

    def saturates_at(self, name: str, method: str) -> int | None:
        """The least number of modes from which on nearly all posteriors are 0 or 1."""
        curve = self.grid(name, method, "saturated").mean(axis=0)
        full = [bool(np.all(curve[place:] > 0.99)) for place in range(len(curve))]
        return next((q for q, yes in zip(self.modes, full, strict=True) if yes), None)


def error_of_mean(values: NDArray[np.float64]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def percent(values: NDArray[np.float64], sign: str = "") -> str:
    """Mean ± standard error over repeats, in percent."""
    return f"{100 * values.mean():{sign}.2f} ± {100 * error_of_mean(values):.2f}"


def page(rows: list[Row]) -> str:
    found = Findings(rows)
    modes = f"{found.modes[0]} … {found.modes[-1]}"
    if not found.every_mode:
        modes = ", ".join(map(str, found.modes))
    text = [
        "# Clustering by mixtures on the sphere and in flat space",
        "",
        "Written by `experiments/kpga/clustering.py` (`make experiments`); do not edit. Error "
        "rates in percent under the best matching of clusters with classes (kPGA paper, Figure 5, "
        "which shows box plots without numbers). There are "
        f"{count(len(found.repeats), 'repeat')}, each with 70 % of the points of each class. "
        "Features are as published; vote is reduced to the 232 rows without missing values. "
        f"Gaussian kernel, where σ² is the mean squared distance; Q = {modes}. Both mixtures have "
        "full covariances and the same stopping rule. They have the same starts: kernel k-means "
        f"from farthest points, {N_STARTS} times, with initial covariances shrunk towards the "
        "pooled one; the run with the highest likelihood is kept. Both keep variances "
        f"above {DEFAULT.reg_covar:g} of the mean variance of all points: scikit-learn's mixture "
        "adds this number, ours uses it as a lower bound. ± is the standard error over repeats. "
        "The repeats share points, so it is smaller than it would be for independent samples.",
        "",
        *claims(found),
        "",
        "![Error over the number of modes, one panel for each set](clustering.png)",
        "",
        "## Mean over Q",
        "",
        *main_table(found),
        "",
        "The majority error is that of a single cluster of all points. If all methods are above "
        "it, the classes are not clusters.",
        "",
        "## Modes",
        "",
        "The best Q is chosen with the labels. A mixture is saturated from the first Q at which "
        f"more than 99 % of the points have a posterior above {SATURATED}. Moved is the "
        "percentage of points that EM moved out of their initial cluster, for the fewest and the "
        "most modes (minimum over the starts). If it is 0, EM only returned its start.",
        "",
        *modes_table(found),
        "",
        "## Other settings",
        "",
        "Error of kPGA minus that of kPCA, in points (kPGA is better if negative).",
        "",
        *settings_table(found),
    ]
    return "\n".join(text) + "\n"


def claims(found: Findings) -> list[str]:
    """Say what was expected, and where it does not hold."""
    n = len(found.names)
    measured = {name: found.difference(name) for name in found.names}
    every = {name: found.every_difference(name) for name in found.names}
    by_density = {name: found.difference(name, what="error_by_density") for name in found.names}
    sure = [name for name in found.names if two_errors_below(measured[name])]
    against = [name for name in found.names if two_errors_below(-measured[name])]
    return [
        "- Expected: the error of the kPGA mixture, averaged over Q, is at or below that of the "
        "kPCA mixture on most sets.",
        f"- Averaged over the measured Q, this {verdict(measured)}",
        *(
            []
            if found.every_mode
            else [
                f"- Averaged over every Q from {found.modes[0]} to {found.modes[-1]}, with linear "
                f"interpolation between the measured ones, this {verdict(every)}"
            ]
        ),
        best_claim(found),
        "- With the paper's rule for labels (densities without the weights), averaged over the "
        f"measured Q, this {verdict(by_density)}",
        f"- The differences exceed two standard errors on {len(sure)} of {n} in favour of kPGA "
        f"({', '.join(sure) or 'none'}) and on {len(against)} against it "
        f"({', '.join(against) or 'none'}); on the other {n - len(sure) - len(against)} the two "
        "mixtures are not significantly different.",
        *(spectral_claim(found, method) for method in SPECTRAL.values()),
        majority_claim(found),
    ]


def best_claim(found: Findings) -> str:
    """Compare the mixtures as the paper reads its figure, each at its own best Q."""
    best = {
        name: [found.best_modes(name, method)[1] for method in (PGA, PCA)] for name in found.names
    }
    kept = [name for name, (ours, flat) in best.items() if ours <= flat + 1e-12]
    above = [
        f"{name} ({100 * ours:.1f} against {100 * flat:.1f})"
        for name, (ours, flat) in best.items()
        if name not in kept
    ]
    return (
        "- The paper compares “lowest error rates over all Q”. This chooses Q with the labels. "
        f"With each method at its own best Q, kPGA is at or below kPCA on {len(kept)} of "
        f"{len(best)} sets, and above on {', '.join(above) or 'none'}."
    )


def verdict(differences: dict[str, NDArray[np.float64]]) -> str:
    kept = [name for name, values in differences.items() if at_or_below(values)]
    lost = [name for name in differences if name not in kept]
    word = "holds" if 2 * len(kept) > len(differences) else "**does not hold**"
    which = f"{len(kept)} of {len(differences)} sets"
    return f"{word}: it is true on {which}, and not on {', '.join(lost) or 'any other'}."


def at_or_below(values: NDArray[np.float64]) -> bool:
    """Whether the mean is 0 or less, to rounding."""
    return bool(values.mean() <= 1e-9)


def two_errors_below(values: NDArray[np.float64]) -> bool:
    return float(values.mean()) < -2 * error_of_mean(values)


def spectral_claim(found: Findings, method: str) -> str:
    ahead = [
        f"{name} ({100 * found.over_modes(name, method).mean():.1f} against "
        f"{100 * found.over_modes(name, PGA).mean():.1f})"
        for name in found.names
        if found.over_modes(name, method).mean() < found.over_modes(name, PGA).mean()
    ]
    return (
        f"- {method[0].upper()}{method[1:]}, has a lower error than the kPGA mixture averaged over "
        f"Q on {len(ahead)} of {len(found.names)}: {', '.join(ahead) or 'none'}."
    )


def majority_claim(found: Findings) -> str:
    above = [
        name
        for name in found.names
        if found.over_modes(name, PGA).mean() >= found.first(name)["majority_error"]
    ]
    return (
        "- The kPGA mixture, averaged over Q, is no better than one cluster of all points on "
        f"{', '.join(above) or 'none'}."
    )


def compared(rows: list[Row]) -> list[Compared]:
    """Figure 5: the error of each at its own best Q, and what is said of many Q."""
    found, said = Findings(rows), published(HERE, "clustering")
    at_best = [best_orders(found, each) for each in said["orders"] if each["data"] in found.names]
    over = [mode_orders(found, each) for each in said["over_modes"] if each["data"] in found.names]
    return [each for made in (*at_best, *over) for each in made]


def relation(said: dict[str, Any], other: str) -> str:
    """What is claimed; one as good as the other is contradicted if it is worse."""
    word = "as good as, or before," if said.get("as_good_as") else "before"
    return f"{said['data']}: {said['better']} {word} {other}, error in %"


def best_orders(found: Findings, said: dict[str, Any]) -> Iterator[Compared]:
    """What is said of the lowest errors, over all Q."""
    name = said["data"]
    ours = found.at_best(name, said["better"])
    for other in said["than"]:
        what = f"{relation(said, other)}, best Q of each, by the mean over the same repeats"
        yield paired(said["where"], what, 100 * (found.at_best(name, other) - ours))


def mode_orders(found: Findings, said: dict[str, Any]) -> Iterator[Compared]:
    """What is said of all Q, or all from one on: the mean over these, and at how many it is so."""
    name, first = said["data"], said["from"]
    columns = [place for place, q in enumerate(found.modes) if q >= first]
    ours = found.grid(name, said["better"])[:, columns]
    for other in said["than"]:
        theirs = found.grid(name, other)
        # a method without modes has one error in each repeat
        theirs = theirs[:, columns] if theirs.shape[1] > 1 else theirs
        gains = 100 * (theirs - ours)
        level = gains.mean(axis=0) >= -1e-9 if said.get("as_good_as") else gains.mean(axis=0) > 1e-9
        what = (
            f"{relation(said, other)}, mean over Q = {first} … {found.modes[-1]}; so at "
            f"{int(level.sum())} of {len(columns)} single Q"
        )
        yield paired(said["where"], what, gains.mean(axis=1))


def main_table(found: Findings) -> list[str]:
    header = ["set", "points", "clusters", "majority error", PGA, PCA, "kPGA - kPCA"]
    if not found.every_mode:
        header.append("the same over every Q")
    cells = []
    for name in found.names:
        first = found.first(name)
        cells.append(
            [
                name,
                str(first["n_points"]),
                str(first["n_clusters"]),
                f"{100 * first['majority_error']:.1f}",
                percent(found.over_modes(name, PGA)),
                percent(found.over_modes(name, PCA)),
                percent(found.difference(name), "+"),
                *([] if found.every_mode else [percent(found.every_difference(name), "+")]),
                *(percent(found.over_modes(name, method)) for method in SPECTRAL.values()),
            ]
        )
    return table([*header, *SPECTRAL.values()], cells)


def modes_table(found: Findings) -> list[str]:
    header = ["set"]
    for method in (PGA, PCA):
        header += [f"{method}: best Q", "its error", "saturated from Q"]
        header += [f"moved at Q = {q}" for q in (found.modes[0], found.modes[-1])]
    cells = []
    for name in found.names:
        row = [name]
        for method in (PGA, PCA):
            q, error = found.best_modes(name, method)
            since = found.saturates_at(name, method)
            row += [str(q), f"{100 * error:.1f}", "never" if since is None else str(since)]
            moved = found.grid(name, method, "moved").mean(axis=0)
            row += [f"{100 * moved[place]:.1f}" for place in (0, -1)]
        cells.append(row)
    return table(header, cells)


def settings_table(found: Findings) -> list[str]:
    columns = {f"default, {_extent(found, DEFAULT)}": found.difference}
    columns["default, as many as of the others"] = found.part_of_default
    for setting in OTHERS:
        title = f"{setting.name}, {_extent(found, setting)}"
        columns[title] = partial(found.difference, setting=setting.name)
    columns["default, the paper's rule for labels"] = partial(
        found.difference, what="error_by_density"
    )
    cells = [[name, *(percent(of(name), "+") for of in columns.values())] for name in found.names]
    counts = [sum(at_or_below(of(name)) for name in found.names) for of in columns.values()]
    cells.append(["at or below on", *(f"{number} of {len(found.names)}" for number in counts)])
    return table(["set", *columns], cells)


def _extent(found: Findings, setting: Setting) -> str:
    n_repeats, n_modes = found.grid(found.names[0], PGA, setting=setting.name).shape
    return f"{count(n_repeats, 'repeat')}, {count(n_modes, 'value')} of Q"


def figure(rows: list[Row]) -> Any:
    found = Findings(rows)
    n_columns = min(4, len(found.names))
    n_rows = -(-len(found.names) // n_columns)
    fig, axes = new_figure(3.6 * n_columns, 0.9 + 3.1 * n_rows, n_rows, n_columns, sharex=True)
    for ax, name in zip(axes.flat, found.names, strict=False):
        draw(ax, found, name)
    for ax in axes[-1]:
        ax.set_xlabel("Modes Q")
    for ax in axes[:, 0]:
        ax.set_ylabel("Error rate (%)")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    fig.legend(
        handles, labels, loc="outside lower center", ncols=5 if n_columns == 4 else 2, frameon=False
    )
    return fig


def draw(ax: Any, found: Findings, name: str) -> None:
    """One set: the mean over repeats with its standard deviation, over Q."""
    for number, method in enumerate((PGA, PCA)):
        errors = 100 * found.grid(name, method)
        mean, spread = errors.mean(axis=0), errors.std(axis=0, ddof=1)
        color = COLORS[number]
        ax.plot(found.modes, mean, color=color, marker=MARKERS[number], markersize=5, label=method)
        ax.fill_between(
            found.modes, mean - spread, mean + spread, color=color, alpha=0.15, linewidth=0
        )
    for method, color, dashes in zip(SPECTRAL.values(), COLORS[2:4], ("--", "-."), strict=True):
        level = 100 * found.over_modes(name, method).mean()
        ax.axhline(level, color=color, linestyle=dashes, label=method)
    majority = 100 * found.first(name)["majority_error"]
    ax.axhline(majority, color="0.5", linewidth=1.2, linestyle=":", label="one cluster of all")
    ax.set(title=name, xscale="log", ylim=(0, None))
    ticks = [q for q in (1, 2, 3, 5, 10, 20, 30) if found.modes[0] <= q <= found.modes[-1]]
    ax.set_xticks(ticks, [str(q) for q in ticks])
    ax.minorticks_off()


def main(quick: bool = False) -> None:
    rows = measure(Size.of(quick), quick)
    publish("clustering", rows, page, figure, quick=quick, compared=compared)


if __name__ == "__main__":
    command_line(main, __doc__)
