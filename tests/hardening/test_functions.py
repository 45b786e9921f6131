"""Odd arguments: every public function returns finite numbers or raises a clear error."""

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orthodrome
from absurd import ABSURD, assert_no_complaints, complaint, is_finite, odd_arrays, quiet
from orthodrome import (
    KernelPCA,
    classification,
    coordinates,
    datasets,
    eigen,
    gram,
    kernels,
    metrics,
    preimage,
    rows,
    spaces,
    sphere,
)
from orthodrome.kernels import Gaussian

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")


@dataclass(frozen=True)
class Case:
    """A valid call; each argument in turn is replaced by odd values.

    Arguments in `made` are only made by the library and not replaced. `numbers` selects the part of
    the result that must be finite, and `errors` are allowed besides ValueError and TypeError.
    """

    call: Callable[..., Any]
    good: dict[str, Any]
    made: set[str] = field(default_factory=set)
    numbers: Callable[[Any], Any] = lambda result: result
    errors: tuple[type[Exception], ...] = ()
    allowed: set[tuple[str, str]] = field(default_factory=set)

    def values(self):
        """Yield each parameter with each odd value and its description."""
        for name in inspect.signature(self.call).parameters:
            if name in self.made:
                continue
            for word, value in self.odd(name).items():
                if not {(name, word), (name, "")} & (self.allowed | CALLERS):
                    yield name, word, value

    def odd(self, name):
        good = self.good.get(name)
        return ABSURD | (odd_arrays(good) if isinstance(good, np.ndarray) else {})


def calls(*cases):
    """Return cases by room and function; `note` distinguishes several of one function."""
    found = {}
    for call, options, good in cases:
        note = options.pop("note", "")
        room = call.__module__.split(".")[1]
        found[f"{room}.{call.__qualname__}{note and ' ' + note}"] = Case(call, good, **options)
    return found


def case(call, options=None, /, **good):
    return call, dict(options or {}), good


#: Functions of the caller may raise anything.
CALLERS = {
    (name, word)
    for name in ("callback", "kernel", "pairwise")
    for word in ("a function", "a class")
}

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
NEW = RNG.normal(size=(5, 3))
Z = RNG.normal(size=(12, 2))
LABELS = np.arange(12) % 3
WEIGHTS = np.linspace(0.5, 2.0, 12)
KERNEL = Gaussian(2.0).fit(X)
K = KERNEL(X)
DENSE = gram.DenseGram(K)
UNIT = np.abs(X) / np.linalg.norm(X, axis=1, keepdims=True)
MEAN = sphere.karcher_mean(DENSE).point
SHAPES = RNG.normal(size=(6, 5, 2))
SPD = np.stack([np.cov(RNG.normal(size=(3, 20))) for _ in range(4)])
CURVE = metrics.neighborhood_preservation(X, Z)
CHAIN = sphere.nested_spheres(UNIT, sphere="great")
SEED = {"random_state": 0}
#: Values of a matrix are checked when it is validated, not by each operator.
MATRIX = {"note": "of a matrix"} | {
    "allowed": {("X", word) for word in ("NaN", "infinite", "all NaN")}
}
PRECOMPUTED = kernels.Precomputed()
COMPONENTS = {"operator": K, "coefficients": X[:, :2].T, "projections": X[:, :2].T @ K}
CLUSTERS = {"labels_true": LABELS, "labels_pred": LABELS[::-1], "sample_weight": WEIGHTS}
FILE = {"errors": (OSError,)}

CASES = calls(
    # gram
    case(gram.gram_operator, kernel=KERNEL, X=X),
    case(gram.gram_operator, MATRIX, kernel=PRECOMPUTED, X=K),
    case(gram.cross_operator, kernel=KERNEL, X_new=NEW, X=X),
    case(gram.choose_storage, kernel=KERNEL, X=X, memory_budget="1GiB", storage="auto"),
    case(gram.DenseGram, {"made": {"check"}}, matrix=K),
    case(gram.Scaled, operator=DENSE, factor=2.0),
    case(gram.Centered, operator=DENSE, sample_weight=WEIGHTS),
    case(gram.Tangent, operator=DENSE, base_point=MEAN, cosines=K @ MEAN),
    case(
        gram.Degree,
        operator=DENSE,
        sample_weight=1 + WEIGHTS,
        row_numbers=np.arange(12),
        uncertainty=np.zeros(12),
    ),
    case(gram.Weighted, operator=DENSE, factors=WEIGHTS),
    # coordinates
    case(coordinates.isometric_coordinates, operator=DENSE),
    case(coordinates.pivoted_cholesky, operator=DENSE, tol=1e-6, max_rank=5),
    case(coordinates.partial_cholesky, operator=DENSE, max_rank=5, sample_weight=WEIGHTS, **SEED),
    case(
        coordinates.choose_anchors, kernel=KERNEL, X=X, n_anchors=4, sample_weight=WEIGHTS, **SEED
    ),
    case(
        coordinates.anchor_coordinates,
        {"made": {"anchors", "unit"}, "numbers": lambda features: features.toarray()},
        kernel=KERNEL,
        X=X,
        anchors=coordinates.choose_anchors(KERNEL, X, 4, **SEED),
    ),
    # rows, by the type alone
    case(rows.kind_of, {"made": {"kernel"}, "allowed": {("X", "masked")}}, X=X, kernel=KERNEL),
    # kernels
    case(kernels.as_kernel, {"made": {"owner"}}, kernel="gaussian"),
    case(kernels.as_fitted_kernel, kernel="gaussian", X=X),
    case(kernels.mean_squared_distance, X=X, sample_weight=WEIGHTS),
    case(
        kernels.median_distance,
        # the function has distances of twelve rows
        {"allowed": {("n_samples", "a million millions"), ("n_samples", "beyond 64 bits")}},
        pairwise=lambda i, j: np.linalg.norm(X[i] - X[j], axis=1),
        n_samples=12,
        sample_weight=WEIGHTS,
    ),
    # eigen
    case(eigen.leading, operator=DENSE, k=2, **SEED),
    case(eigen.choose_solver, {"made": {"exact"}}, n=100, k=2),
    case(
        eigen.hebbian,
        {"made": {"options"}},  # checked as parameters of the solver
        operator=K,
        n_components=2,
        n_passes=2,
        initial=X[:, :2].T,
        order=np.array([RNG.permutation(12) for _ in range(2)]),
        **SEED,
    ),
    # sphere
    case(sphere.log, points=UNIT, base_point=UNIT[0]),
    case(sphere.exp, tangents=sphere.log(UNIT, base_point=UNIT[0]), base_point=UNIT[0]),
    case(sphere.distance, first=UNIT, second=UNIT[::-1]),
    case(sphere.log_at_pole, points=UNIT),
    case(sphere.exp_at_pole, coordinates=Z),
    case(sphere.geodesic_distances, X=UNIT, Y=UNIT[:4]),
    case(sphere.geodesic_distances, {"note": "with a kernel"}, X=X, Y=NEW, kernel="gaussian"),
    case(sphere.karcher_mean, points=UNIT, sample_weight=WEIGHTS, initial=UNIT[0]),
    case(sphere.nested_spheres, points=UNIT, sample_weight=WEIGHTS, sphere="great"),
    case(CHAIN.scores, points=UNIT),
    case(CHAIN.points, scores=CHAIN.scores(UNIT)),
    # preimage
    case(
        preimage.preimage,
        {"numbers": lambda found: found.points},  # the ridge method has no similarities
        kernel=Gaussian(2.0),
        X=X,
        coefficients=np.ones((2, 12)) / 12,
    ),
    case(
        preimage.karcher_mean_preimage,
        kernel=Gaussian(2.0),
        X=X,
        sample_weight=WEIGHTS,
        starts=X[:3],
    ),
    case(preimage.geodesic_kernel, kernel=Gaussian(2.0), X=X, sample_weight=WEIGHTS),
    # metrics
    case(metrics.neighborhood_preservation, X=X, embedding=Z),
    case(metrics.coranking_matrix, X=X, embedding=Z),
    case(metrics.neighborhood_area, quality=CURVE),
    case(metrics.clustering_error, **CLUSTERS),
    case(metrics.variation_of_information, **CLUSTERS),
    case(metrics.reconstruction_error, **COMPONENTS),
    case(
        metrics.excess_reconstruction_error,
        {"numbers": lambda excess: 0.0 if excess == np.inf else excess},  # if the least error is 0
        **COMPONENTS,
    ),
    # spaces
    *(
        case(function, {"made": {"name"}}, X=data)
        for data, functions in (
            (SHAPES, "as_points as_complex preshape helmertize centroid_size"),
            (SPD, "check_spd spd_log spd_exp symmetric_vectors"),
        )
        for function in (getattr(spaces, name) for name in functions.split())
    ),
    case(spaces.extrinsic_mean, X=SHAPES, sample_weight=WEIGHTS[:6]),
    case(spaces.procrustes_align, X=SHAPES, reference=SHAPES[0], size="own"),
    case(spaces.procrustes_distance, X=SHAPES, Y=SHAPES[:2]),
    case(spaces.riemannian_distance, X=SHAPES, Y=SHAPES[:2]),
    case(spaces.symmetric_matrices, vectors=spaces.symmetric_vectors(SPD)),
    case(spaces.log_euclidean_mean, X=SPD, sample_weight=WEIGHTS[:4]),
    case(spaces.log_euclidean_distance, X=SPD, Y=SPD[:2]),
    case(spaces.find_landmark_errors, {"numbers": lambda found: found.distances}, X=SHAPES),
    case(
        spaces.reflect_specimens,
        {"allowed": {("X", "all NaN"), ("X", "NaN"), ("X", "None among them")}},
        X=SHAPES,
        specimens=np.array([1, 3]),
    ),
    case(spaces.find_mirrored, X=SHAPES, mean=SHAPES[0]),
    case(spaces.estimate_landmarks, {"numbers": lambda found: found[0]}, X=SHAPES),
    case(spaces.match_labels, names=["ash_1", "oak_2"], pattern="^([a-z]+)_"),
    case(spaces.read_nts, FILE | {"numbers": lambda found: found.landmarks}, path="good.nts"),
    case(
        spaces.read_morphologika,
        FILE | {"numbers": lambda found: found.landmarks},
        path="good.txt",
    ),
    case(spaces.read_tps, FILE | {"numbers": lambda found: found.landmarks}, path="good.tps"),
    case(
        spaces.write_tps,
        FILE,
        path="new.tps",
        landmarks=np.abs(SHAPES[:2]),
        scales=np.ones(2),
    ),
    # datasets
    case(datasets.make_von_mises_fisher, mean_direction=np.ones(3), **SEED),
    case(datasets.make_spirals, **SEED),
    case(datasets.make_landmark_shapes, **SEED),
    case(
        datasets.load,
        FILE | {"made": {"download_if_missing"}},
        name="wine",
        download_if_missing=False,
    ),
    case(datasets.path, FILE, name="wine", data_home="data"),
)
FILES = {
    "save": Case(orthodrome.save, {"model": KernelPCA(2), "path": "model.orthodrome"}, **FILE),
    "load": Case(orthodrome.load, {"path": "good.orthodrome"}, **FILE),
}


#: Public functions that estimators call with validated arguments.
TRUSTING = {
    *("squared_distance_to_mean", "principal_coordinates", "as_rows", "resolve_solver"),
    *("solve_components", "make_components", "weighted_problem", "affine_map", "tangent_frame"),
    *("orient_by_moments", "feature_axes", "radial_preimages", "fixed_point"),
    *("ridge", "fixed_point_preimages", "decode_components", "leave_one_out_preimages"),
    *("available", "cache_folder", "landmarks_from_table"),
}


def test_every_public_function_is_called():
    called = {name.split(" ")[0].split(".")[1] for name in CASES}
    rooms = (classification, coordinates, datasets, eigen, gram, kernels, metrics, preimage)
    for room in (*rooms, rows, spaces, sphere):
        public = {name for name in room.__all__ if inspect.isfunction(getattr(room, name))}
        assert public <= called | TRUSTING


def use(case, name, word, value):
    """Call a function with one odd value; masked values must be refused."""
    result = case.call(**{**case.good, name: value})
    return np.nan if word.startswith("masked") else case.numbers(result)


def complaints_about(case):
    found = []
    for name, word, value in case.values():
        call = functools.partial(use, case, name, word, value)
        text = complaint(call, refusals=(ValueError, TypeError, *case.errors))
        if text:
            found.append(f"{name} = {word}: {text}")
    return found


def check(case):
    with quiet():  # compiles loops, which needs more memory than the child may use
        assert is_finite(case.numbers(case.call(**case.good)))
    assert_no_complaints(lambda: complaints_about(case))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder, where a string is the name of a file."""
    monkeypatch.chdir(tmp_path)
    with quiet():
        spaces.write_tps("good.tps", np.abs(SHAPES))
        Path("good.nts").write_text("1 1 6 0 DIM=2\n1 2 3 4 5 7\n")
        sections = "[individuals]\n1\n[landmarks]\n3\n[dimensions]\n2\n[rawpoints]\n1 2\n3 4\n5 7\n"
        Path("good.txt").write_text(sections)
    orthodrome.save(KernelPCA(2), "good.orthodrome")
    (tmp_path / "data" / "uci").mkdir(parents=True)
    (tmp_path / "data" / "uci" / "wine.csv").touch()
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", [*CASES, *FILES])
def test_odd_values_are_used_or_refused(name):
    check((CASES | FILES)[name])
