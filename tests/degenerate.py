"""Degenerate data for every estimator.

A case has data, a kernel, and a predicate of the configurations that must refuse them. No case
depends on rounding. A twin is simpler data with the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laws_product import CONFIGURATIONS, Configuration, sample, solver_name
from laws_shapes import three_leaves, two_kinds_of_matrices
from orthodrome import (
    GeodesicMixture,
    HypersphericalKMeans,
    KernelPCA,
    KernelPGA,
    KernelPNS,
    KernelRidgeRegressionClassifier,
    KernelSpectralClustering,
    NestedSpheresClassifier,
    PerTurbo,
    RobustKernelPCA,
)
from orthodrome.kernels import Gaussian, LogEuclidean, VeroneseWhitney

ANSWERED, REFUSED = False, True
Predicate = Callable[[Configuration], bool]

N = 12
CLASSES = np.array(["ash", "beech", "oak"])
LABELS = CLASSES[np.arange(N) % 3]


@dataclass(frozen=True)
class Case:
    """Training rows, classes and weights, new rows, and which configurations refuse them."""

    X: Any
    y: Any = "in turn"
    new: Any = "the same"  # as the training rows
    kernel: Any = "gaussian"  # its scale comes from the data
    weight: Any = None
    options: Any = None  # of the estimator: a function of its configuration
    outcome: bool | Predicate = ANSWERED
    new_outcome: bool | Predicate = ANSWERED  # of methods for new rows
    twin: Case | None = None
    tolerance: float = 1e-6  # of the comparison with the twin
    #: For which configurations the twin has the same results.
    alike: Predicate = lambda each: True

    def expected(self, each: Configuration) -> bool:
        return self.outcome if isinstance(self.outcome, bool) else self.outcome(each)

    def expected_of_new(self, each: Configuration) -> bool:
        return self.new_outcome if isinstance(self.new_outcome, bool) else self.new_outcome(each)

    @property
    def classes(self) -> Any:
        if not isinstance(self.y, str):
            return self.y
        return CLASSES[np.arange(np.shape(self.X)[0] if np.ndim(self.X) else N) % 3]

    @property
    def new_rows(self) -> Any:
        return self.X if isinstance(self.new, str) else self.new


# Which configurations refuse ----------------------------------------------------------------------


def solver_of(each: Configuration) -> str:
    return solver_name(each.options.get("solver", "auto"))


def is_graph(each: Configuration) -> bool:
    """Rows are nodes of a graph, whose degrees must be positive."""
    return each.make is KernelSpectralClustering and each.options.get("laplacian") != "kernel-pca"


def has_residuals(each: Configuration) -> bool:
    """It computes residuals of classes, in double precision."""
    return each.make in (KernelRidgeRegressionClassifier, PerTurbo)


def by_folds(each: Configuration) -> bool:
    """Folds need two classes of two points."""
    return each.options.get("p") == "cv"


def never(each: Configuration) -> bool:
    return False


def on_sphere(each: Configuration) -> bool:
    """Points of different lengths lie on no sphere."""
    return each.sphere


def on_a_circle(each: Configuration) -> bool:
    """Points on a circle leave no subspheres to measure residuals from."""
    return each.options.get("features") == "paper"


def supervised(each: Configuration) -> bool:
    """Only classifiers use y."""
    return each.is_classifier


def in_double(each: Configuration) -> bool:
    """Squares overflow or underflow in single precision."""
    return not has_residuals(each)


def is_kpca_by_steps(each: Configuration) -> bool:
    return solver_of(each) == "hebbian" and each.make is KernelPCA


def with_lengths(*, mean: bool = ANSWERED) -> Predicate:
    """Refuse negative squared lengths where they are used.

    Hebbian steps and anchors use the diagonal; graphs use sums of rows, and classifiers the mean of
    the diagonal.
    """

    def refuses(each: Configuration) -> bool:
        lengths = each.sphere or each.make is RobustKernelPCA
        if lengths or is_kpca_by_steps(each) or solver_of(each) == "nystroem":
            return True
        return mean and (is_graph(each) or has_residuals(each))

    return refuses


def with_a_mean(then: Predicate) -> Predicate:
    """Refuse points without a mean direction or with negative degrees, and pre-images."""

    def refuses(each: Configuration) -> bool:
        options = each.options.values()
        means = each.make in (KernelPGA, GeodesicMixture) or {"karcher", "mean"} & {
            option for option in options if isinstance(option, str)
        }
        return bool(means) or is_graph(each) or each.inputs or then(each)

    return refuses


def of_two_points_that_cancel(each: Configuration) -> bool:
    return each.is_clustering or by_folds(each) or with_a_mean(on_a_circle)(each)


def of_no_points(graph: bool, *, steps: bool = REFUSED, centers: bool = ANSWERED) -> Predicate:
    """Refuse indefinite matrices.

    Eigenvectors, flat k-means and class residuals are still defined; a Nyström approximation is
    not. For Hebbian `steps`, graphs and the `centers` of k-means it depends on the matrix.
    """

    def refuses(each: Configuration) -> bool:
        if not each.matrices or solver_of(each) == "nystroem":
            return True
        if each.make is HypersphericalKMeans:
            return centers
        if each.sphere or each.make is RobustKernelPCA:
            return True
        if is_graph(each):
            return graph
        return steps and solver_of(each) == "hebbian"

    return refuses


def of_size(*, small: bool) -> Predicate:
    """Refuse numbers whose squares overflow or underflow, where they are needed."""
    return lambda each: (
        (has_residuals(each) and not each.sphere) or (small and is_kpca_by_steps(each))
    )


def at_least(n_clusters: int, *, circle: bool = True) -> Predicate:
    """Refuse fewer points than clusters, or than classes."""

    def refuses(each: Configuration) -> bool:
        if each.is_clustering:
            return n_clusters < 3
        few = by_folds(each) or (each.is_classifier and n_clusters < 2)
        return few or (circle and on_a_circle(each))

    return refuses


def anchors_alone(each: Configuration) -> bool:
    """Nested spheres have no place for a point that is orthogonal to all anchors."""
    return each.make is KernelPNS and solver_of(each) == "nystroem"


def orthogonal(each: Configuration) -> bool:
    """Points orthogonal to the training rows have no direction in their span."""
    nested = each.make in (KernelPNS, NestedSpheresClassifier)
    return nested or (each.sphere and solver_of(each) == "nystroem")


def of_tiny_weights(each: Configuration) -> bool:
    """Graphs need positive degrees, and the Hebbian algorithm a positive total."""
    return is_graph(each) or solver_of(each) == "hebbian"


def of_one_dominant_weight(each: Configuration) -> bool:
    """Compared with one heavy point the others span nothing, and have no degree."""
    graph = is_graph(each) and solver_of(each) != "nystroem"
    return graph or each.make is KernelPNS


def with_inputs(then: Predicate) -> Predicate:
    """Refuse pre-images of the linear kernel, which is not radial."""
    return lambda each: each.inputs or then(each)


def with_matrices(then: Predicate) -> Predicate:
    """Refuse matrices where inputs are needed."""
    return lambda each: not each.matrices or then(each)


def with_sums(case: Case, least: float, most: float) -> bool | Predicate:
    """Refuse also if the sum of weights is outside these bounds."""
    if case.weight is None or case.expected(CONFIGURATIONS["KernelKMeans, exact"]):
        return case.outcome
    total = case.weight.sum()
    weighted = (KernelPCA, KernelPGA, GeodesicMixture, KernelSpectralClustering)

    def refuses(each: Configuration) -> bool:
        if each.is_classifier:  # these compute in double precision
            return total < 1e-300 or case.expected(each)
        beyond = not least <= total <= most and each.make in weighted
        return beyond or case.expected(each)

    return refuses


# Where twins have the same results ---------------------------------------------------------------


def measured_in_angles(each: Configuration) -> bool:
    """Lengths do not matter on the sphere, except for RobustKernelPCA."""
    return each.sphere and each.make is not RobustKernelPCA


def whatever_the_order(each: Configuration) -> bool:
    """Rotated rows are sorted differently, so random draws, starts and folds differ."""
    options = each.options
    drawn = options.get("solver") == "nystroem" or options.get("laplacian") == "kernel-pca"
    part = each.is_classifier and {"n_components", "subspace_size"} & set(options)
    return not (drawn or options.get("p", 2.0) != 2.0 or part)


def has_one_answer(each: Configuration) -> bool:
    """A graph of points on a line has more than one best cut."""
    return not (each.sphere or each.make is KernelSpectralClustering)


def by_ratios(each: Configuration) -> bool:
    """Only ratios of weights matter, not their sum."""
    tested = each.options.get("sphere") in ("bic", "test")
    return not (is_graph(each) or each.is_classifier or tested)


# Data ---------------------------------------------------------------------------------------------


def good(n: int = N, seed: int = 0) -> NDArray[np.float64]:
    """Return rows of three groups, in turn."""
    given = sample("Gaussian", n, seed)
    order = np.argsort(given.y, kind="stable").reshape(3, -1).T.ravel()
    return given.X[order]


def directions() -> NDArray[np.float64]:
    """Return unit vectors around one direction."""
    X = good()
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def with_entry(X: Any, value: Any, place: Any = (5, 1)) -> Any:
    X = np.array(X, copy=True)
    X[place] = value
    return X


def with_both(K: NDArray[Any], value: float, i: int, j: int) -> NDArray[Any]:
    return with_entry(with_entry(K, value, (i, j)), value, (j, i))


def with_diagonal(K: NDArray[Any], value: float) -> NDArray[Any]:
    K = K.copy()
    np.fill_diagonal(K, value)
    return K


def few_points() -> dict[str, Case]:
    X = good()
    return {
        "one point": Case(X[:1], outcome=at_least(1)),
        "two points": Case(X[:2], outcome=at_least(2)),
        "two equal points": Case(X[[0, 0]], outcome=at_least(2)),
        "three points": Case(X[:3], outcome=at_least(3, circle=False)),
        "two equal points and another": Case(X[[0, 0, 1]], outcome=at_least(3)),
        "fewer points than components": Case(
            X,
            options=lambda each: {"n_components": 1000},
            outcome=lambda each: each.make is GeodesicMixture,
        ),
        "fewer points than clusters": Case(
            X,
            options=lambda each: {"n_clusters": 1000},
            outcome=lambda each: "n_clusters" in each.takes,
        ),
        "fewer points than anchors": Case(
            X,
            options=lambda each: {"n_anchors": 1000, "solver": "nystroem"},
            outcome=lambda each: each.inputs and each.is_clustering,
        ),
    }


def coinciding() -> dict[str, Case]:
    """Points that coincide or lie in a subspace."""
    X, rng = good(), np.random.default_rng(0)
    line = rng.gumbel(size=(N, 1))
    turns = 2 * np.pi * np.arange(N) / N
    return {
        "all equal": Case(np.tile(X[:1], (N, 1)), outcome=on_a_circle),
        "all zero": Case(np.zeros((N, 3)), outcome=on_a_circle),
        "two places": Case(X[[0, 1] * 6], outcome=on_a_circle),
        "three places": Case(X[np.arange(N) // 4]),
        "a constant column": Case(np.insert(X, 1, 7.0, axis=1), twin=Case(X)),
        "a huge constant column": Case(np.insert(X, 1, 1e8, axis=1), twin=Case(X)),
        "one column": Case(X[:, :1]),
        "collinear": Case(line * [2.0, -3.0, 6.0], twin=Case(7.0 * line)),
        "equidistant": Case(np.eye(N)),
        "a regular polygon": Case(np.column_stack([np.cos(turns), np.sin(turns)])),
        "nearly equal": Case(X[0] + 1e-13 * rng.normal(size=(N, 3))),
        "nearly equal pairs": Case(X[np.arange(N) // 2] * (1 + 1e-15 * np.arange(N)[:, None])),
        "points at the mean": Case(np.vstack([X, 2 * X.mean(axis=0) - X, [X.mean(axis=0)] * 2])),
        "more columns than rows": Case(rng.normal(size=(6, 400))),
    }


def extreme() -> dict[str, Case]:
    """Very large and very small numbers. The scale of the kernel is that of the data."""
    X, single = good(), good().astype(np.float32)
    whole = np.rint(X).astype(np.int64)
    far = X + 1e9
    return {
        "values of 1e150": Case(X * 2.0**498, twin=Case(X)),
        "values of 1e-150": Case(X * 2.0**-498, twin=Case(X)),
        "values of 1e300": Case(X * 1e300, outcome=REFUSED),
        "values of 1e-300": Case(X * 1e-300, outcome=REFUSED),
        "a value of 1e308": Case(with_entry(X, 1.7e308), outcome=REFUSED),
        "denormal values": Case(np.rint(X) * 5e-324, outcome=REFUSED),
        "columns of 1e-150 and 1e150": Case(X * [1e-150, 1.0, 1e150]),
        "far from zero": Case(far, twin=Case(far - 1e9)),
        "an outlier of 1e6": Case(with_entry(X, 1e6)),
        "an outlier of 1e150": Case(with_entry(X, 1e150), outcome=on_a_circle),
        "1e18 in single precision": Case(
            single * np.float32(2.0**60), twin=Case(single), tolerance=1e-3
        ),
        "1e30 in single precision": Case((X * 1e30).astype(np.float32), outcome=in_double),
        "1e-30 in single precision": Case((X * 1e-30).astype(np.float32), outcome=in_double),
        "integers": Case(whole, twin=Case(whole.astype(float))),
        "large integers": Case(whole * 2**55, twin=Case(whole.astype(float))),
        "booleans": Case(X.mean() < X, twin=Case((X.mean() < X).astype(float))),
        "numbers as objects": Case(X.astype(object), twin=Case(X)),
        "numbers as texts": Case(X.astype(str), twin=Case(X)),
    }


def scales() -> dict[str, Case]:
    """Bandwidths for which all points are similar, or none are."""
    X = good()
    found = {}
    for power in range(-12, 13, 3):
        kernel = Gaussian(sigma=10.0**power)
        # points are orthogonal to all anchors
        some = anchors_alone if power < 0 else on_a_circle if power > 6 else never
        found[f"sigma 1e{power}"] = Case(X, kernel=kernel, outcome=some)
        if abs(power) in (6, 12):
            found[f"sigma 1e{power} in single precision"] = Case(
                X.astype(np.float32), kernel=kernel, outcome=on_a_circle if power > 0 else some
            )
    found["sigma 1e-160"] = Case(X, kernel=Gaussian(sigma=1e-160), outcome=REFUSED)
    found["sigma 1e160"] = Case(X, kernel=Gaussian(sigma=1e160), outcome=REFUSED)
    return found


def classes() -> dict[str, Case]:
    X, y = good(), CLASSES[np.arange(N) % 3]
    alone = np.array(["ash"] * 6 + ["beech"] * 5 + ["oak"])
    still = np.where((y == "oak")[:, None], X[2], X)
    odd = {
        "a class of one": Case(X, alone),
        "classes of one": Case(X[:3], CLASSES, outcome=at_least(3, circle=False)),
        "a class without variance": Case(still, y),
        "classes without variance": Case(X[np.arange(N) % 3], y),
        "classes of equal points": Case(np.tile(X[:4], (3, 1)), np.repeat(CLASSES, 4)),
        "classes in one place": Case(np.tile(X[:1], (N, 1)), y, outcome=on_a_circle),
        "a class in two places": Case(X[np.arange(N) % 6], y),
    }
    none = {
        "no classes": None,
        "one class": np.full(N, "ash"),
        "classes of fewer rows": y[1:],
        "a class of nan": with_entry(np.arange(N, dtype=float) % 3, np.nan, 4),
        "a class of None": with_entry(y.astype(object), None, 4),
        "classes of two kinds": with_entry(y.astype(object), 7, 4),
        "numbers for classes": np.linspace(0, 1, N),
        "classes in two dimensions": np.column_stack([y, y]),
        "classes of nothing": np.array([]),
    }
    return odd | {name: Case(X, each, outcome=supervised) for name, each in none.items()}


def weights() -> dict[str, Case]:
    X, some = good(), np.arange(N, dtype=float)
    odd = {
        "one weight": Case(X, weight=(some == 4).astype(float), outcome=at_least(1)),
        "two weights": Case(X, weight=np.isin(some, (4, 5)).astype(float), outcome=at_least(2)),
        "huge weights": Case(X, weight=some * 1e300),
        "tiny weights": Case(X, weight=(some + 1) * 1e-300, outcome=of_tiny_weights),
        "uneven weights": Case(
            X,
            weight=np.where(some == 4, 1e12, 1e-12),
            outcome=of_one_dominant_weight,
        ),
    }
    none = {
        "weights of zero": 0 * some,
        "a negative weight": some - 1,
        "a weight of nan": with_entry(some, np.nan, 3),
        "a weight of inf": with_entry(some, np.inf, 3),
        "weights beyond all numbers": np.full(N, 1.7e308),
        "too few weights": some[1:],
        "weights in two dimensions": some[:, None],
        "weights of text": np.array(["a"] * N),
        "weights that are dates": np.array(["2026-01-01"] * N, dtype="datetime64[D]"),
    }
    return odd | {name: Case(X, weight=each, outcome=REFUSED) for name, each in none.items()}


def no_data() -> dict[str, Case]:
    """Invalid data."""
    X = good()
    words = [["a", "b"], ["c", "d"], ["e", "f"]] * 4
    given = {
        "nan": with_entry(X, np.nan),
        "nan in the last place": with_entry(X, np.nan, (-1, -1)),
        "all nan": np.full((N, 3), np.nan),
        "inf": with_entry(X, np.inf),
        "minus inf": with_entry(X, -np.inf),
        "nan in single precision": with_entry(X.astype(np.float32), np.nan),
        "no rows": np.empty((0, 3)),
        "no columns": np.empty((N, 0)),
        "nothing": np.empty((0, 0)),
        "an empty list": [],
        "one dimension": X[:, 0],
        "no dimension": 3.0,
        "three dimensions": X[:, :, None],
        "texts": np.array(words),
        "lists of texts": words,
        "texts as objects": np.array(words, dtype=object),
        "a text": "orthodrome",
        "objects": np.array([[object()] * 2] * N, dtype=object),
        "None": None,
        "None in a place": with_entry(X.astype(object), None),
        "ragged": [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]] * 4,
        "complex": X + 1j,
        "a dictionary": {"a": [1.0, 2.0]},
        "dates": np.array([["2026-01-01", "2026-01-02"]] * N, dtype="datetime64[D]"),
    }
    return {name: Case(data, LABELS, outcome=REFUSED) for name, data in given.items()}


def new_data() -> dict[str, Case]:
    """Good training rows, and unusual new rows."""
    X = good()
    refused = {
        "nan": with_entry(X, np.nan),
        "inf": with_entry(X, np.inf),
        "no rows": X[:0],
        "fewer columns": X[:, :2],
        "more columns": np.column_stack([X, X]),
        "one row without its dimension": X[0],
        "texts": np.array([["a", "b", "c"]]),
        "None": None,
        "ragged": [[1.0, 2.0, 3.0], [3.0]],
        "complex": X + 1j,
        "1e300": X * 1e300,
    }
    answered = {"one row": X[:1], "1e-300": X * 1e-300}
    apart = {"1e100": X * 1e100, "far away": X + 1e6}
    outcomes = ((REFUSED, refused), (ANSWERED, answered), (orthogonal, apart))
    return {
        f"new: {name}": Case(X, new=new, new_outcome=outcome)
        for outcome, several in outcomes
        for name, new in several.items()
    }


def spheres() -> dict[str, Case]:
    """Unit vectors and others under the linear kernel."""
    U, pole = directions(), np.array([[0.0, 0.0, 1.0]])
    turns = 2 * np.pi * np.arange(N) / N
    circle = np.column_stack([np.cos(turns), np.sin(turns), 0 * turns])
    ring = (circle + pole) / np.sqrt(2)
    some = with_inputs(on_a_circle)
    cancel, cancel_on_a_circle = with_a_mean(never), with_a_mean(on_a_circle)
    given: dict[str, tuple[Any, Predicate]] = {
        "two antipodal points": (np.vstack([pole, -pole]), of_two_points_that_cancel),
        "antipodal halves": (np.vstack([U[:6], -U[:6]]), cancel),
        "the antipode of the mean": (np.vstack([ring, -pole]), cancel),
        "nearly the antipode of the mean": (np.vstack([ring, [[1e-9, 0.0, -1.0]]]), cancel),
        "one antipode": (np.vstack([np.tile(pole, (N - 1, 1)), -pole]), cancel_on_a_circle),
        "a great circle": (circle, cancel_on_a_circle),
        "the ends of all axes": (np.vstack([np.eye(3), -np.eye(3)] * 2), cancel),
        "signs": (np.where(np.arange(N) % 2, 1.0, -1.0)[:, None], cancel_on_a_circle),
        "a point at the mean": (np.vstack([ring, pole]), with_inputs(never)),
        "a ring": (ring, with_inputs(never)),
        "only the pole": (np.tile(pole, (N, 1)), some),
        "one column of ones": (np.ones((N, 1)), some),
        "nearly a length": (with_entry(U, U[5] * (1 + 1e-9), 5), with_inputs(never)),
        "a vector of no length": (with_entry(U, 0.0, 5), on_sphere),
        "no lengths": (np.zeros((N, 3)), on_sphere),
        "another length": (with_entry(U, U[5] * 3, 5), on_sphere),
    }
    found = {
        name: Case(X, kernel="linear", outcome=outcome) for name, (X, outcome) in given.items()
    }
    plain = Case(U, kernel="linear")
    for name, factor in (("lengths of 1e150", 2.0**498), ("lengths of 1e-150", 2.0**-498)):
        outcome = with_inputs(of_size(small=factor < 1))
        found[name] = replace(
            plain, X=U * factor, outcome=outcome, twin=plain, alike=measured_in_angles
        )
    return {f"sphere: {name}": case for name, case in found.items()}


def gram_matrices() -> dict[str, Case]:
    K = np.asarray(Gaussian(sigma=2.0).fit(good())(good()))
    signs = np.where(np.arange(N) % 2, 1.0, -1.0)
    steps = np.arange(1.0, N + 1) ** 1.5
    rng = np.random.default_rng(0)
    wild = rng.uniform(-1, 1, size=(N, N))
    wild = (wild + wild.T) / 2
    some = with_matrices(on_a_circle)
    column = Case(steps[:, None], kernel="linear")
    plain = Case(K, kernel="precomputed")
    found = {
        "ones": Case(np.ones((N, N)), outcome=some),
        "signs of rank one": Case(
            np.outer(signs, signs), outcome=with_matrices(with_a_mean(on_a_circle))
        ),
        "rank one": Case(
            np.outer(steps, steps), outcome=on_sphere, twin=column, alike=has_one_answer
        ),
        "the identity": Case(np.eye(N), outcome=with_matrices(anchors_alone)),
        "blocks": Case(np.kron(np.eye(3), np.ones((4, 4))), outcome=with_matrices(never)),
        "zeros": Case(np.zeros((N, N)), outcome=on_sphere),
        "of one point": Case(np.ones((1, 1)), outcome=with_matrices(at_least(1))),
        "a little indefinite": Case(
            with_diagonal(K - 1e-13 * wild, 1.0), outcome=with_matrices(never), twin=plain
        ),
        "nearly the diagonal": Case(
            with_entry(K, 1 + 1e-12, (5, 5)), outcome=with_matrices(never), twin=plain
        ),
        "indefinite": Case(with_diagonal(wild, 1.0), outcome=of_no_points(graph=REFUSED)),
        "negative definite": Case(-K, outcome=with_lengths(mean=REFUSED)),
        "all minus one": Case(
            with_diagonal(np.full((N, N), -1.0), 1.0),
            outcome=of_no_points(graph=REFUSED, steps=ANSWERED, centers=REFUSED),
        ),
        "a similarity above one": Case(
            with_both(K, 1.4, 5, 2),
            outcome=of_no_points(graph=ANSWERED, centers=REFUSED),
        ),
        "another diagonal": Case(with_entry(K, 2.0, (5, 5)), outcome=on_sphere),
        "zero on the diagonal": Case(with_entry(K, 0.0, (5, 5)), outcome=with_lengths()),
        "negative on the diagonal": Case(with_entry(K, -1.0, (5, 5)), outcome=with_lengths()),
        "values of 1e300": Case(
            K * 2.0**996,
            outcome=with_matrices(of_size(small=False)),
            twin=plain,
            alike=measured_in_angles,
        ),
        "values of 1e-300": Case(
            K * 2.0**-996,
            outcome=with_matrices(of_size(small=True)),
            twin=plain,
            alike=measured_in_angles,
        ),
        "integers": Case(np.rint(3 * K).astype(int), outcome=of_no_points(graph=ANSWERED)),
    }
    refused = {
        "asymmetric": with_entry(K, 0.5, (5, 2)),
        "not square": K[:, :-1],
        "nan": with_both(K, np.nan, 5, 2),
        "nan on the diagonal": with_entry(K, np.nan, (5, 5)),
        "inf": with_both(K, np.inf, 5, 2),
        "inf on the diagonal": with_entry(K, np.inf, (5, 5)),
        "a vector": K[0],
        "empty": np.empty((0, 0)),
        "complex": K + 1j,
        "texts": np.full((N, N), "a"),
    }
    found |= {name: Case(X, LABELS, outcome=REFUSED) for name, X in refused.items()}
    new = {"narrower": K[:, 1:], "wider": np.column_stack([K, K]), "nan": with_entry(K, np.nan)}
    found |= {
        f"new, {name}": Case(K, new=X, outcome=with_matrices(never), new_outcome=REFUSED)
        for name, X in new.items()
    }
    return {f"gram: {name}": replace(case, kernel="precomputed") for name, case in found.items()}


def shapes() -> dict[str, Case]:
    z, y = three_leaves(N, 0, spread=0.05)
    kernel = VeroneseWhitney()

    def points(z: NDArray[Any]) -> NDArray[Any]:
        return np.stack([z.real, z.imag], axis=-1)

    X = points(z)
    turned = np.exp(1j * np.arange(N))[:, None] * z + np.arange(N)[:, None]
    plain = Case(X, y, kernel=kernel)
    found = {
        "equal": Case(np.tile(X[:1], (N, 1, 1)), y, outcome=on_a_circle),
        "one": Case(X[:1], y[:1], outcome=at_least(1)),
        "one, turned and moved": Case(
            points(np.exp(1j * np.arange(N))[:, None] * z[:1] + 3.0), y, outcome=on_a_circle
        ),
        "turned and moved": Case(
            points(turned), y, new=points(turned), twin=plain, alike=whatever_the_order
        ),
        "of 1e150": Case(X * 2.0**498, y, twin=plain),
        "of 1e-150": Case(X * 2.0**-498, y, twin=plain),
        "on a line": Case(X * [1.0, 0.0], y),
        "with equal landmarks": Case(with_entry(X, X[:, :1], (slice(None), slice(0, 3))), y),
        "far away": Case(X + 1e6, y, twin=plain, tolerance=1e-4),
        "mirrored": Case(np.concatenate([X[:6], X[:6] * [1.0, -1.0]]), y),
    }
    refused = {
        "all landmarks in one place": with_entry(X, X[5, 0], 5),
        "two landmarks": X[:, :2],
        "one landmark": X[:, :1],
        "no landmark": X[:, :0],
        "a landmark of nan": with_entry(X, np.nan, (5, 1, 0)),
        "a landmark of inf": with_entry(X, np.inf, (5, 1, 0)),
        "ragged": [X[0], X[1][:-1], *X[2:]],
        "ragged as objects": np.array([*map(list, X[1:]), list(X[0][1:])], dtype=object),
        "landmarks in space": np.concatenate([X, X[..., :1]], axis=-1),
        "none": X[:0],
        "texts": np.full(X.shape, "a"),
    }
    found |= {name: Case(data, y, outcome=REFUSED) for name, data in refused.items()}
    found["new, other landmarks"] = Case(X, y, new=X[:, 1:], new_outcome=REFUSED)
    found["new, no shape"] = Case(X, y, new=0 * X[:2], new_outcome=REFUSED)
    return {f"shapes: {name}": replace(case, kernel=kernel) for name, case in found.items()}


def covariances() -> dict[str, Case]:
    X, y = two_kinds_of_matrices(N, 0)
    d = X.shape[1]
    kernel = LogEuclidean()
    plain = Case(X, y, kernel=kernel)
    found = {
        "equal": Case(np.tile(X[:1], (N, 1, 1)), y, outcome=on_a_circle),
        "identities": Case(np.tile(np.eye(d), (N, 1, 1)), y, outcome=on_a_circle),
        "one": Case(X[:1], y[:1], outcome=at_least(1)),
        "of one number": Case(X[:, :1, :1], y),
        "of 1e150": Case(X * 2.0**498, y, twin=plain),
        "of 1e-150": Case(X * 2.0**-498, y, twin=plain),
    }
    refused = {
        "nearly singular": with_entry(X, np.diag([1e-300] + [1.0] * (d - 1)), 5),
        "singular": with_entry(X, np.ones((d, d)), 5),
        "zeros": with_entry(X, 0.0, 5),
        "negative": with_entry(X, -np.eye(d), 5),
        "asymmetric": with_entry(X, np.tri(d), 5),
        "nan": with_entry(X, np.nan, (5, 0, 0)),
        "inf": with_entry(X, np.inf, (5, 0, 0)),
        "not square": X[:, :, :-1],
        "ragged": [X[0], X[1][:-1, :-1], *X[2:]],
        "none": X[:0],
        "texts": np.full(X.shape, "a"),
    }
    found |= {name: Case(data, y, outcome=REFUSED) for name, data in refused.items()}
    return {f"matrices: {name}": replace(case, kernel=kernel) for name, case in found.items()}


# Single precision ---------------------------------------------------------------------------------


def in_single(data: Any) -> Any:
    """Return numbers in single precision, and other data unchanged."""
    with np.errstate(over="ignore"):
        return data.astype(np.float32) if getattr(data, "dtype", None) == np.float64 else data


def fits_single(case: Case) -> bool:
    """Return whether squares of a case's float64 numbers fit in single precision."""
    if getattr(case.X, "dtype", None) != np.float64 or not np.size(case.X):
        return False
    sizes = np.abs(case.X[np.isfinite(case.X)])
    return bool(sizes.max(initial=0) < 1e18 and sizes[sizes > 0].min(initial=1) > 1e-18)


def scaled_weights() -> dict[str, Case]:
    """Very large and very small weights: only their ratios matter."""
    X, some = good(), np.arange(N, dtype=float)
    plain = Case(X, weight=some)
    found = {
        f"weights of {size:g}": Case(
            X,
            weight=some * size,
            outcome=is_graph if size < 1 else ANSWERED,
            twin=plain,
            alike=by_ratios,
        )
        for size in (1e40, 1e-50, 1e300, 1e-310)
    }
    return {
        name: replace(case, outcome=with_sums(case, 1e-300, 1e308)) for name, case in found.items()
    }


MAKERS = (few_points, coinciding, extreme, scales, classes, weights, no_data, new_data, spheres)
MAKERS += (gram_matrices, shapes, covariances, scaled_weights)
GROUPS: dict[str, dict[str, Case]] = {make.__name__: make() for make in MAKERS}
CASES = {name: case for group in GROUPS.values() for name, case in group.items()}


def single(name: str, case: Case) -> Case:
    """Return the case in single precision."""
    return replace(
        case,
        X=in_single(case.X),
        new=in_single(case.new),
        twin=None,
        outcome=with_sums(case, 1e-30, 1e30),
        new_outcome=REFUSED if name == "new: 1e100" else case.new_outcome,  # infinite
    )


SINGLE: dict[str, dict[str, Case]] = {
    group: {name: single(name, case) for name, case in cases.items() if fits_single(case)}
    for group, cases in GROUPS.items()
}


# Images and motions -------------------------------------------------------------------------------


def picture(seed: int = 0, dtype: Any = np.float64) -> NDArray[Any]:
    """Return an image of blocks with noise."""
    rng = np.random.default_rng(seed)
    blocks = np.add.outer(np.arange(14) // 5, np.arange(14) // 4) % 2
    return (blocks + 0.1 * rng.normal(size=(14, 14))).astype(dtype)


def motion(seed: int = 0, dtype: Any = np.float64, n: int = 24) -> NDArray[Any]:
    """Return a motion of four joints with noise."""
    rng = np.random.default_rng(seed)
    time = np.linspace(0, 6, n)[:, None, None]
    joints = rng.normal(size=(1, 4, 3))
    return (np.sin(time + joints) + 0.1 * rng.normal(size=(n, 4, 3))).astype(dtype)


def no_values(good: NDArray[np.float64]) -> dict[str, Any]:
    """Return values that are neither an image nor a motion."""
    place = (3,) * good.ndim if min(good.shape) > 3 else (0,) * good.ndim
    return {
        "nan": with_entry(good, np.nan, place),
        "inf": with_entry(good, np.inf, place),
        "empty": good[:0],
        "one dimension": good.ravel(),
        "five dimensions": good[None, None, None],
        "texts": np.full(good.shape, "a"),
        "objects": good.astype(object),
        "complex": good + 1j,
        "dates": np.full(good.shape, np.datetime64("2026-01-01")),
        "None": None,
        "ragged": [good[0], good[1][:-1]],
        "values of 1e300": good * 1e300,
        "values of 1e-300": good * 1e-300,
        "float32 of 1e30": (good * 1e30).astype(np.float32),
    }


def with_outcomes(refused: dict[str, Any], answered: dict[str, Any]) -> dict[str, tuple[Any, bool]]:
    found = {name: (value, REFUSED) for name, value in refused.items()}
    return found | {name: (value, ANSWERED) for name, value in answered.items()}


PICTURES = with_outcomes(
    {
        **no_values(picture()),
        "one pixel": np.ones((1, 1)),
        "smaller than a patch": picture()[:3, :3],
        "one row": picture()[:1],
        "booleans": picture() > 0.5,
    },
    {
        "constant": np.full((14, 14), 0.5),
        "zeros": np.zeros((14, 14)),
        "two values": np.where(picture() > 0.5, 1.0, 0.0),
        "a dot": with_entry(np.zeros((14, 14)), 1.0, (3, 3)),
        "bytes": np.clip(255 * picture(), 0, 255).astype(np.uint8),
        "one patch": picture()[:4, :4],
        "values of 1e150": picture() * 2.0**498,
        "values of 1e-150": picture() * 2.0**-498,
        "float32": picture().astype(np.float32),
        "colours that are equal": np.repeat(picture()[:, :, None], 3, axis=2),
    },
)
MOTIONS = with_outcomes(
    {**no_values(motion()), "one frame": motion()[:1], "no joints": motion()[:, :0]},
    {
        "still": np.repeat(motion()[:1], 24, axis=0),
        "zeros": np.zeros((24, 4, 3)),
        "one joint": motion()[:, :1],
        "frames twice": np.repeat(motion()[::2], 2, axis=0),
        "values of 1e150": motion() * 2.0**498,
        "values of 1e-150": motion() * 2.0**-498,
        "float32": motion().astype(np.float32),
    },
)
