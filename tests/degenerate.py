"""Degenerate data for every estimator.

A case has data, a kernel, and whether estimators must answer, must refuse, or may do either. No
case depends on rounding. A twin is simpler data with the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laws_product import Configuration, sample
from laws_shapes import three_leaves, two_kinds_of_matrices
from orthodrome.kernels import Gaussian, LogEuclidean, VeroneseWhitney

ANSWERED, REFUSED, EITHER = "answered", "refused", "either"
Outcome = str | Callable[[Configuration], str]

N = 12
CLASSES = np.array(["ash", "beech", "oak"])
LABELS = CLASSES[np.arange(N) % 3]


@dataclass(frozen=True)
class Case:
    """Training rows, classes and weights, new rows, and what estimators do with them."""

    X: Any
    y: Any = "in turn"
    new: Any = "the same"  # as the training rows
    kernel: Any = "gaussian"  # its scale comes from the data
    weight: Any = None
    options: Any = None  # of the estimator
    outcome: Outcome = ANSWERED
    new_outcome: str = ANSWERED  # of methods for new rows
    twin: Case | None = None
    tolerance: float = 1e-6  # of the comparison with the twin

    def expected(self, each: Configuration) -> str:
        return self.outcome if isinstance(self.outcome, str) else self.outcome(each)

    @property
    def classes(self) -> Any:
        if not isinstance(self.y, str):
            return self.y
        return CLASSES[np.arange(np.shape(self.X)[0] if np.ndim(self.X) else N) % 3]

    @property
    def new_rows(self) -> Any:
        return self.X if isinstance(self.new, str) else self.new


def on_sphere(each: Configuration) -> str:
    """Points of different lengths lie on no sphere."""
    return REFUSED if each.sphere else EITHER


def on_a_circle(each: Configuration) -> str:
    """Points on a circle leave no subspheres to measure residuals from."""
    return EITHER if each.options.get("features") == "paper" else ANSWERED


def supervised(each: Configuration) -> str:
    """Only classifiers use y."""
    return REFUSED if each.is_classifier else ANSWERED


def in_double(each: Configuration) -> str:
    """Squares overflow or underflow in single precision; some classifiers compute in double."""
    return EITHER if each.is_classifier else REFUSED


def with_matrices(each: Configuration) -> str:
    return REFUSED if each.matrices is False else ANSWERED


def with_inputs(each: Configuration) -> str:
    """The linear kernel has no pre-images."""
    return REFUSED if each.inputs else ANSWERED


def good(n: int = N, seed: int = 0) -> NDArray[np.float64]:
    """Return rows of three groups, in turn."""
    given = sample("Gaussian", n, seed)
    order = np.argsort(given.y, kind="stable").reshape(3, -1).T.ravel()
    return given.X[order]


def with_entry(X: Any, value: Any, place: Any = (5, 1)) -> Any:
    X = np.array(X, copy=True)
    X[place] = value
    return X


def with_both(K: NDArray[Any], value: float, i: int, j: int) -> NDArray[Any]:
    return with_entry(with_entry(K, value, (i, j)), value, (j, i))


def with_diagonal(K: NDArray[Any], value: float) -> NDArray[Any]:
    return with_entry(K, value, np.diag_indices(len(K)))


def refusing(given: dict[str, Any], y: Any = LABELS) -> dict[str, Case]:
    return {name: Case(data, y, outcome=REFUSED) for name, data in given.items()}


def few_points() -> dict[str, Case]:
    X = good()
    few = {"one point": X[:1], "two points": X[:2], "two equal points": X[[0, 0]]}
    few |= {"three points": X[:3]}
    many = {
        "components": {"n_components": 1000},
        "clusters": {"n_clusters": 1000},
        "anchors": {"n_anchors": 1000, "solver": "nystroem"},
    }
    found = {name: Case(rows, outcome=EITHER) for name, rows in few.items()}
    return found | {
        f"fewer points than {name}": Case(X, options=options, outcome=EITHER)
        for name, options in many.items()
    }


def coinciding() -> dict[str, Case]:
    """Points that coincide or lie in a subspace."""
    X, rng = good(), np.random.default_rng(0)
    line = rng.gumbel(size=(N, 1))
    return {
        "all equal": Case(np.tile(X[:1], (N, 1)), outcome=on_a_circle),
        "all zero": Case(np.zeros((N, 3)), outcome=on_a_circle),
        "two places": Case(X[[0, 1] * 6], outcome=on_a_circle),
        "three places": Case(X[np.arange(N) // 4]),
        "a huge constant column": Case(np.insert(X, 1, 1e8, axis=1), twin=Case(X)),
        "collinear": Case(line * [2.0, -3.0, 6.0], twin=Case(7.0 * line)),
        "equidistant": Case(np.eye(N)),
        "nearly equal": Case(X[0] + 1e-13 * rng.normal(size=(N, 3))),
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
        "far from zero": Case(far, twin=Case(far - 1e9)),
        "an outlier of 1e6": Case(with_entry(X, 1e6)),
        "an outlier of 1e150": Case(with_entry(X, 1e150), outcome=on_a_circle),
        "1e18 in single precision": Case(
            single * np.float32(2.0**60), twin=Case(single), tolerance=1e-3
        ),
        "1e30 in single precision": Case((X * 1e30).astype(np.float32), outcome=in_double),
        "large integers": Case(whole * 2**55, twin=Case(whole.astype(float))),
        "booleans": Case(X.mean() < X, twin=Case((X.mean() < X).astype(float))),
        "numbers as objects": Case(X.astype(object), twin=Case(X)),
    }


def scales() -> dict[str, Case]:
    """Bandwidths for which all points are similar, or none are."""
    found = {}
    for power in range(-12, 13, 3):
        kernel = Gaussian(sigma=10.0**power)
        outcome = ANSWERED if 0 <= power <= 6 else EITHER
        found[f"sigma 1e{power}"] = Case(good(), kernel=kernel, outcome=outcome)
    for sigma in (1e-160, 1e160):
        found[f"sigma {sigma}"] = Case(good(), kernel=Gaussian(sigma), outcome=REFUSED)
    return found


def classes() -> dict[str, Case]:
    X, y = good(), CLASSES[np.arange(N) % 3]
    alone = np.array(["ash"] * 6 + ["beech"] * 5 + ["oak"])
    still = np.where((y == "oak")[:, None], X[2], X)
    odd = {
        "a class of one": Case(X, alone),
        "classes of one": Case(X[:3], CLASSES, outcome=EITHER),
        "a class without variance": Case(still, y),
        "classes without variance": Case(X[np.arange(N) % 3], y),
        "classes in one place": Case(np.tile(X[:1], (N, 1)), y, outcome=on_a_circle),
    }
    none = {
        "no classes": None,
        "one class": np.full(N, "ash"),
        "a class of nan": with_entry(np.arange(N, dtype=float) % 3, np.nan, 4),
        "classes of two kinds": with_entry(y.astype(object), 7, 4),
        "numbers for classes": np.linspace(0, 1, N),
    }
    return odd | {name: Case(X, each, outcome=supervised) for name, each in none.items()}


def weights() -> dict[str, Case]:
    X, some = good(), np.arange(N, dtype=float)
    odd = {
        "one weight": (some == 4).astype(float),
        "two weights": np.isin(some, (4, 5)).astype(float),
        "uneven weights": np.where(some == 4, 1e12, 1e-12),
    }
    odd |= {f"weights of {size:g}": some * size for size in (1e40, 1e-50, 1e300, 1e-310)}
    none = {
        "weights of zero": 0 * some,
        "a negative weight": some - 1,
        "a weight of nan": with_entry(some, np.nan, 3),
        "weights beyond all numbers": np.full(N, 1.7e308),
        "weights of text": np.array(["a"] * N),
    }
    found = {name: Case(X, weight=each, outcome=EITHER) for name, each in odd.items()}
    return found | {name: Case(X, weight=each, outcome=REFUSED) for name, each in none.items()}


def no_data() -> dict[str, Case]:
    """Invalid data."""
    X = good()
    return refusing(
        {
            "nan in the last place": with_entry(X, np.nan, (-1, -1)),
            "no columns": np.empty((N, 0)),
            "no dimension": 3.0,
            "a text": "orthodrome",
            "objects": np.array([[object()] * 2] * N, dtype=object),
            "None in a place": with_entry(X.astype(object), None),
            "ragged": [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]] * 4,
            "a dictionary": {"a": [1.0, 2.0]},
            "dates": np.array([["2026-01-01", "2026-01-02"]] * N, dtype="datetime64[D]"),
        }
    )


def new_data() -> dict[str, Case]:
    """Good training rows, and unusual new rows."""
    X = good()
    refused = {
        "nan": with_entry(X, np.nan),
        "no rows": X[:0],
        "fewer columns": X[:, :2],
        "one row without its dimension": X[0],
        "1e300": X * 1e300,
    }
    answered = {"one row": X[:1], "1e-300": X * 1e-300}
    # orthogonal to the training rows
    apart = {"1e100": X * 1e100, "far away": X + 1e6}
    outcomes = ((REFUSED, refused), (ANSWERED, answered), (EITHER, apart))
    return {
        f"new: {name}": Case(X, new=new, new_outcome=outcome)
        for outcome, several in outcomes
        for name, new in several.items()
    }


def spheres() -> dict[str, Case]:
    """Unit vectors and others under the linear kernel."""
    U, pole = good(), np.array([[0.0, 0.0, 1.0]])
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    turns = 2 * np.pi * np.arange(N) / N
    circle = np.column_stack([np.cos(turns), np.sin(turns), 0 * turns])
    ring = (circle + pole) / np.sqrt(2)
    without_mean = {
        "two antipodal points": np.vstack([pole, -pole]),
        "antipodal halves": np.vstack([U[:6], -U[:6]]),
        "the antipode of the mean": np.vstack([ring, -pole]),
        "one antipode": np.vstack([np.tile(pole, (N - 1, 1)), -pole]),
        "a great circle": circle,
        "only the pole": np.tile(pole, (N, 1)),
        "lengths of 1e150": U * 2.0**498,
        "lengths of 1e-150": U * 2.0**-498,
    }
    with_mean = {
        "a point at the mean": np.vstack([ring, pole]),
        "nearly a length": with_entry(U, U[5] * (1 + 1e-9), 5),
    }
    of_lengths = {
        "a vector of no length": with_entry(U, 0.0, 5),
        "no lengths": np.zeros((N, 3)),
        "another length": with_entry(U, U[5] * 3, 5),
    }
    return {
        f"sphere: {name}": Case(X, kernel="linear", outcome=outcome)
        for outcome, several in (
            (EITHER, without_mean),
            (with_inputs, with_mean),
            (on_sphere, of_lengths),
        )
        for name, X in several.items()
    }


def gram_matrices() -> dict[str, Case]:
    K = np.asarray(Gaussian(sigma=2.0).fit(good())(good()))
    signs = np.where(np.arange(N) % 2, 1.0, -1.0)
    steps = np.arange(1.0, N + 1) ** 1.5
    wild = np.random.default_rng(0).uniform(-1, 1, size=(N, N))
    wild = (wild + wild.T) / 2
    plain = Case(K, kernel="precomputed")
    either = {
        "ones": np.ones((N, N)),
        "signs of rank one": np.outer(signs, signs),
        "the identity": np.eye(N),
        "of one point": np.ones((1, 1)),
        "indefinite": with_diagonal(wild, 1.0),
        "negative definite": -K,
        "a similarity above one": with_both(K, 1.4, 5, 2),
        "values of 1e300": K * 2.0**996,
        "values of 1e-300": K * 2.0**-996,
        "integers": np.rint(3 * K).astype(int),
    }
    of_lengths = {
        "rank one": np.outer(steps, steps),
        "zeros": np.zeros((N, N)),
        "another diagonal": with_entry(K, 2.0, (5, 5)),
        "zero on the diagonal": with_entry(K, 0.0, (5, 5)),
        "negative on the diagonal": with_entry(K, -1.0, (5, 5)),
    }
    refused = {
        "asymmetric": with_entry(K, 0.5, (5, 2)),
        "nan": with_both(K, np.nan, 5, 2),
        "inf on the diagonal": with_entry(K, np.inf, (5, 5)),
    }
    new = {"narrower": K[:, 1:], "wider": np.column_stack([K, K]), "nan": with_entry(K, np.nan)}
    found = {
        "blocks": Case(np.kron(np.eye(3), np.ones((4, 4))), outcome=with_matrices),
        "a little indefinite": Case(
            with_diagonal(K - 1e-13 * wild, 1.0), outcome=with_matrices, twin=plain
        ),
        "nearly the diagonal": Case(
            with_entry(K, 1 + 1e-12, (5, 5)), outcome=with_matrices, twin=plain
        ),
        **{name: Case(X, outcome=EITHER) for name, X in either.items()},
        **{name: Case(X, outcome=on_sphere) for name, X in of_lengths.items()},
        **refusing(refused),
        **{
            f"new, {name}": Case(K, new=X, outcome=with_matrices, new_outcome=REFUSED)
            for name, X in new.items()
        },
    }
    return {f"gram: {name}": replace(case, kernel="precomputed") for name, case in found.items()}


def shapes() -> dict[str, Case]:
    z, y = three_leaves(N, 0, spread=0.05)
    kernel = VeroneseWhitney()
    X = np.stack([z.real, z.imag], axis=-1)
    plain = Case(X, y, kernel=kernel)
    found = {
        "equal": Case(np.tile(X[:1], (N, 1, 1)), y, outcome=on_a_circle),
        "one": Case(X[:1], y[:1], outcome=EITHER),
        "of 1e150": Case(X * 2.0**498, y, twin=plain),
        "of 1e-150": Case(X * 2.0**-498, y, twin=plain),
        "far away": Case(X + 1e6, y, twin=plain, tolerance=1e-4),
        "mirrored": Case(np.concatenate([X[:6], X[:6] * [1.0, -1.0]]), y),
        "new, other landmarks": Case(X, y, new=X[:, 1:], new_outcome=REFUSED),
        "new, no shape": Case(X, y, new=0 * X[:2], new_outcome=REFUSED),
    }
    refused = {
        "all landmarks in one place": with_entry(X, X[5, 0], 5),
        "a landmark of nan": with_entry(X, np.nan, (5, 1, 0)),
        "ragged": [X[0], X[1][:-1], *X[2:]],
    }
    found |= refusing(refused, y)
    return {f"shapes: {name}": replace(case, kernel=kernel) for name, case in found.items()}


def covariances() -> dict[str, Case]:
    X, y = two_kinds_of_matrices(N, 0)
    d = X.shape[1]
    kernel = LogEuclidean()
    plain = Case(X, y, kernel=kernel)
    found = {
        "equal": Case(np.tile(X[:1], (N, 1, 1)), y, outcome=on_a_circle),
        "one": Case(X[:1], y[:1], outcome=EITHER),
        "of one number": Case(X[:, :1, :1], y),
        "of 1e150": Case(X * 2.0**498, y, twin=plain),
        "of 1e-150": Case(X * 2.0**-498, y, twin=plain),
    }
    refused = {
        "negative": with_entry(X, -np.eye(d), 5),
        "asymmetric": with_entry(X, np.tri(d), 5),
        "nan": with_entry(X, np.nan, (5, 0, 0)),
        "ragged": [X[0], X[1][:-1, :-1], *X[2:]],
    }
    found |= refusing(refused, y)
    return {f"matrices: {name}": replace(case, kernel=kernel) for name, case in found.items()}


MAKERS = (few_points, coinciding, extreme, scales, classes, weights, no_data, new_data, spheres)
MAKERS += (gram_matrices, shapes, covariances)
GROUPS: dict[str, dict[str, Case]] = {make.__name__: make() for make in MAKERS}
CASES = {name: case for group in GROUPS.values() for name, case in group.items()}


def fits_single(case: Case) -> bool:
    """Return whether squares of a case's float64 numbers fit in single precision."""
    if getattr(case.X, "dtype", None) != np.float64 or not np.size(case.X):
        return False
    sizes = np.abs(case.X[np.isfinite(case.X)])
    return bool(sizes.max(initial=0) < 1e18 and sizes[sizes > 0].min(initial=1) > 1e-18)


def in_single(case: Case) -> Case:
    X, new = (
        each.astype(np.float32) if getattr(each, "dtype", None) == np.float64 else each
        for each in (case.X, case.new)
    )
    return replace(case, X=X, new=new, twin=None)


#: Shapes far away have no digits left, and 1e100 is infinite.
SINGLE = {
    name: in_single(case)
    for name, case in CASES.items()
    if fits_single(case) and name not in ("shapes: far away", "new: 1e100", "new: 1e300")
}
