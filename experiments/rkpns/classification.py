"""Digits from few modes: the rkPNS paper's Figures 5 and 6 (§VI and §VII).

Pen-digits and MNIST, D = 2 … 16 features, one linear support vector machine for each class against
the rest (C = 1, features divided by their root mean square). Points are clean; or 20 % of the
features of each training point, chosen at random, are set to 0; or those of each test point too.
p is chosen for each D by five-fold cross-validation; of equals the largest. Chains with p < 2 are
shortened: outer subspheres, which give no features, are fitted with p = 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray
from reproduce import About, Found, Part, Values, load
from rkpns.neighborhoods import KERNELS, changed
from rkpns.variance import without_wraps
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC
from verdicts import OWN, Compared, Sample, order

from orthodrome import KernelPCA, KernelPNS, RobustKernelPCA
from orthodrome.sphere import nested_spheres

Features = dict[str, NDArray[np.float64]]  # by the name of a set of points: TRAIN, CLEAN, ZEROED

TRAIN, CLEAN, ZEROED = "train", "clean", "zeroed"
# what is zeroed, and which test points that means
CONDITIONS = {"nothing": CLEAN, "training": CLEAN, "both": ZEROED}
ZEROS = {"training": "zeros in training points", "both": "zeros in all points"}
NAMES = ("pendigits", "mnist")
OURS, ROBUST, PLAIN, FLAT, UNIT = "rkPNS", "rkPCA", "kPNS, p = 2", "kPCA", "kPCA of unit vectors"
POWERS = (0.5, 1.0, 1.5, 2.0)
DIMENSIONS = tuple(range(2, 17))
SMALL_D = (2, 3, 4)
# the dimension of the smallest sphere that holds all subspheres of which features are residuals
INNER = max(DIMENSIONS) + 1


def jobs(quick: bool) -> Iterable[tuple[Any, ...]]:
    # names, training and test points, repeats, folds and powers
    size = (("pendigits",), 40, 60, 2, 2, (1.0, 2.0)) if quick else (NAMES, 150, 1000, 5, 5, POWERS)
    names, n_train, n_test, repeats, *choice = size
    return [
        (name, kernel, zeroed, n_train, n_test, *choice, repeat)
        for repeat in range(repeats)
        for name in names
        for kernel in KERNELS
        for zeroed in (False, True)
    ]


def measure(
    name: str,
    kernel: str,
    zeroed: bool,
    n_train: int,
    n_test: int,
    n_folds: int,
    powers: tuple[float, ...],
    repeat: int,
) -> Values:
    """Train every method on one part of a set; its errors in percent under each condition."""
    points, labels = drawn(name, zeroed, repeat, n_train, n_test)
    with without_wraps():
        models = Models(points, kernel)
        chosen = chosen_powers(points[TRAIN], labels[TRAIN], kernel, n_folds, powers)
        fixed = {PLAIN: models.of(OURS, 2.0), FLAT: models.flat(), UNIT: models.unit()}
        found: Values = {}
        for D in DIMENSIONS:
            features = fixed | {m: models.of(m, chosen[m, D]) for m in (OURS, ROBUST)}
            for method, own in features.items():
                errors = errors_of(own, labels, D)
                for condition, where in CONDITIONS.items():
                    if (condition != "nothing") == zeroed:
                        found[name, kernel, condition, method, D] = errors[where]
    return found


def drawn(
    name: str, zeroed: bool, repeat: int, n_train: int, n_test: int
) -> tuple[Features, dict[str, NDArray[Any]]]:
    """Training points and test points, clean and zeroed, and their classes, from a seed."""
    everything = load(name)
    random = np.random.default_rng(repeat)
    rows = random.permutation(len(everything.data))[: n_train + n_test]
    X = np.asarray(everything.data[rows], dtype=np.float64)
    if name == "mnist":
        X /= 255.0
    y = np.asarray(everything.target[rows])
    hidden = with_zeros(X, random)
    train, test = slice(0, n_train), slice(n_train, None)
    points = {TRAIN: (hidden if zeroed else X)[train], CLEAN: X[test], ZEROED: hidden[test]}
    return points, {TRAIN: y[train], CLEAN: y[test], ZEROED: y[test]}


def with_zeros(
    X: NDArray[np.float64], random: np.random.Generator, share: float = 0.2
) -> NDArray[np.float64]:
    """Set so many of the features of each point to 0, other ones each time."""
    hidden = X.copy()
    places = np.argsort(random.random(X.shape), axis=1)[:, : round(share * X.shape[1])]
    np.put_along_axis(hidden, places, 0.0, axis=1)
    return hidden


class Models:
    """Features of all points by each method, fitted to the training points."""

    def __init__(self, points: Features, kernel: str) -> None:
        self.points, self.kernel = points, changed(kernel, 1.0, points[TRAIN])
        model = KernelPNS(1, kernel=self.kernel, sphere="small", negligible=0.0)
        self.chain = model.fit(points[TRAIN]).nested_spheres_
        self.coordinates = {key: model.sphere_coordinates(X) for key, X in points.items()}
        self._made: dict[tuple[str, float], Features] = {}

    def of(self, method: str, p: float) -> Features:
        """The features for the largest D; those of a smaller one are the first columns."""
        if (method, p) not in self._made:
            self._made[method, p] = (self.nested if method == OURS else self.robust)(p)
        return self._made[method, p]

    def nested(self, p: float) -> Features:
        """Residuals from the innermost subspheres (§VI)."""
        chain, points = self.chain, self.coordinates
        if p != 2:
            inner = min(INNER, chain.n_modes)
            points = {key: chain.projected(each, inner) for key, each in points.items()}
            chain = nested_spheres(points[TRAIN], p=p, sphere="small", negligible=0.0)
        return {key: chain.features(each, max(DIMENSIONS)) for key, each in points.items()}

    def robust(self, p: float) -> Features:
        """Robust kernel PCA through the Karcher mean."""
        model = RobustKernelPCA(
            max(DIMENSIONS), kernel=self.kernel, method="pursuit", p=p, center="karcher"
        ).fit(self.points[TRAIN])
        return {key: model.transform(X) for key, X in self.points.items()}

    def flat(self) -> Features:
        model = KernelPCA(max(DIMENSIONS), kernel=self.kernel).fit(self.points[TRAIN])
        return {key: model.transform(X) for key, X in self.points.items()}

    def unit(self) -> Features:
        """Principal components of the unit vectors that the points are in the training span."""
        train = self.coordinates[TRAIN]
        center = train.mean(axis=0)
        rows = np.linalg.svd(train - center, full_matrices=False)[2][: max(DIMENSIONS)]
        return {key: (each - center) @ rows.T for key, each in self.coordinates.items()}


def chosen_powers(
    X: NDArray[Any], y: NDArray[Any], kernel: str, n_folds: int, powers: tuple[float, ...]
) -> dict[tuple[str, int], float]:
    """Choose p of both robust methods for each D by the accuracy over folds; ties: the largest."""
    wrong: dict[tuple[str, int, float], float] = {}
    with catch_warnings():  # of classes with fewer points than folds, which a quick run has
        simplefilter("ignore", UserWarning)
        folds = list(StratifiedKFold(n_folds).split(X, y))
    for train, left in folds:
        models = Models({TRAIN: X[train], CLEAN: X[left]}, kernel)
        labels = {TRAIN: y[train], CLEAN: y[left]}
        for method in (OURS, ROBUST):
            for p in powers:
                for D in DIMENSIONS:
                    error = errors_of(models.of(method, p), labels, D)[CLEAN]
                    # sums of rounded percentages: ties to a tiny margin
                    wrong[method, D, p] = round(wrong.get((method, D, p), 0.0) + error, 9)
    return {
        (method, D): min(powers, key=lambda p: (wrong[method, D, p], -p))
        for method in (OURS, ROBUST)
        for D in DIMENSIONS
    }


def errors_of(features: Features, labels: dict[str, NDArray[Any]], D: int) -> dict[str, float]:
    """Train on the first D features divided by one number; errors on other points, in percent."""
    own = {key: each[:, :D] for key, each in features.items()}
    unit = float(np.sqrt(np.mean(own[TRAIN] ** 2))) or 1.0
    machine = LinearSVC(C=1.0, dual=False)
    with catch_warnings():
        simplefilter("ignore", ConvergenceWarning)
        machine.fit(own[TRAIN] / unit, labels[TRAIN])
    return {
        key: 100 * (1 - float(machine.score(each / unit, labels[key])))
        for key, each in own.items()
        if key != TRAIN
    }


def gain_over(found: Found, dimensions: Iterable[int], *key: Any) -> Sample:
    """How much lower the error of rkPNS is than that of rkPCA, the mean over D."""
    gains = [found(*key, ROBUST, D) - found(*key, OURS, D) for D in dimensions]
    if all(gain.values for gain in gains):
        return Sample.of(np.mean([gain.values for gain in gains], axis=0).tolist())
    means, deviations = ([getattr(g, name) for g in gains] for name in ("mean", "deviation"))
    return Sample(float(np.mean(means)), float(np.mean(deviations)), gains[0].n)


def compare_clean(found: Found, kernel: str) -> list[Compared]:
    """Figure 5: often better, or about as good (worse by less than one point), over all D."""
    return [
        order(
            f"{name}: rkPNS better than rkPCA or about as good, mean over D",
            gain_over(found, DIMENSIONS, name, kernel, "nothing").map(lambda gain: gain + 1.0),
            where="Figure 5",
            unit="error, points",
        )
        for name in NAMES
        if (name, kernel, "nothing", OURS, 2) in found
    ]


def compare_zeroed(found: Found, variant: tuple[str, str]) -> list[Compared]:
    """Figure 6: almost always better at small D, often by 5 to 10 points on MNIST."""
    kernel, zeroed, made = variant[0], {v: k for k, v in ZEROS.items()}[variant[1]], []
    for name in NAMES:
        key = (name, kernel, zeroed)
        if (*key, OURS, 2) not in found:
            continue
        for D in SMALL_D:
            what = f"{name}, D = {D}: rkPNS before rkPCA"
            gain = gain_over(found, (D,), *key)
            made.append(order(what, gain, where="Figure 6", unit="error, points"))
        if name == "mnist":
            # "5% – 10%": the middle, and half of the range as its rounding
            what, gain = (
                "mnist: rkPNS lower by, mean of D = 2, 3, 4",
                gain_over(found, SMALL_D, *key),
            )
            more = {"published": 7.5, "rounding": 2.5, "theirs": 0.0, "unit": "error, points"}
            made.append(Compared(OWN, what, gain, where="text on Figure 6", **more))
    return made


PARTS = [
    Part(compare_clean, KERNELS, "the kernel of these figures"),
    Part(
        compare_zeroed,
        tuple((kernel, zeros) for kernel in KERNELS for zeros in ZEROS.values()),
        "the kernel, and whether test points have zeros too",
    ),
]
ABOUT = About(
    title="Digits from few modes",
    where="Figures 5 and 6",
    says="Box plots without numbers: errors of linear support vector machines on D features "
    "of MNIST and pen-based digits. On the original data, robust nested spheres are often "
    "better than robust kernel PCA, or about as good. With a fifth of the features set to "
    "zero they are almost always better if D is small; on MNIST the error is then often "
    "5-10 % lower.",
    differs="With the polynomial kernel, the claims hold on MNIST and are mostly open on "
    "pen-digits. With the Gaussian kernel they are contradicted on both sets: robust "
    "nested spheres are worse at small D, by 4 to 15 points.",
    tried="Both kernels of the paper, with zeros in the training points only or in all "
    "points. In an earlier run we also tried great subspheres, another C, and features "
    "with the angle on the last circle. A power p below 2 does not help: with p = 2 the "
    "errors of nested spheres are equal or smaller, by up to 1.7 points.",
    reason="Most of the gain comes from normalising the points, which nested spheres do "
    "and kernel PCA does not. With the Gaussian kernel and the mean distance as σ, the "
    "points lie in a nearly flat cap, and small subspheres follow noise.",
    partial="We use 5 random training sets of 150 points; the paper gives neither "
    "number. An earlier run kept only means and standard errors, so differences are not "
    "computed within splits.",
    short="not short with the polynomial kernel; with the Gaussian kernel see the experiment",
)
