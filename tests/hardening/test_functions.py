"""Battery "functions": whatever a documented function is given, it answers or refuses in words."""

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import orthodrome
from absurd import ABSURD, assert_nothing_found, complaint, is_finite, odd_arrays, quiet
from optional import needs
from orthodrome import (
    KernelPCA,
    classification,
    coordinates,
    datasets,
    eigen,
    gram,
    kernels,
    metrics,
    plots,
    preimage,
    rows,
    spaces,
    sphere,
)
from orthodrome.kernels import Gaussian

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bounds of Linux")

# What is looked at -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A call as it should be; every other argument is odd in its turn.

    What only other functions of the library make (`made`) is taken as it is. `look` says what of
    the answer has to be finite, and `beyond` what a refusal may be beside ValueError and TypeError.
    """

    call: Callable[..., Any]
    good: dict[str, Any]
    made: set[str] = field(default_factory=set)
    look: Callable[[Any], Any] = lambda answer: answer
    beyond: tuple[type[Exception], ...] = ()
    allowed: set[tuple[str, str]] = field(default_factory=set)

    def values(self):
        """Yield each parameter with each odd value and what that is called."""
        for name in inspect.signature(self.call).parameters:
            if name in self.made:
                continue
            for word, value in self.odd(name).items():
                if not {(name, word), (name, "")} & (self.allowed | CALLERS):
                    yield name, word, value

    def odd(self, name):
        good = self.good.get(name)
        arrays = {}
        if isinstance(good, list):
            arrays = odd_arrays(np.array(good))
        elif isinstance(good, np.ndarray):
            arrays = odd_arrays(good)
        elif isinstance(good, dict) and good:
            key, array = next(iter(good.items()))
            odd = odd_arrays(np.asarray(array)) | ABSURD
            arrays = {f"{word} by name": {**good, key: value} for word, value in odd.items()}
        return ABSURD | arrays


#: Functions are the caller's, and so is what they raise.
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
OF_SHAPES = kernels.VeroneseWhitney(1.0).fit(SHAPES)
SPD = np.stack([np.cov(RNG.normal(size=(3, 20))) for _ in range(4)])
CURVE = metrics.neighborhood_preservation(X, Z)
CHAIN = sphere.nested_spheres(UNIT, sphere="great")
SEED = {"random_state": 0}
#: Values of a matrix are looked at when it is validated, and not for each operator.
UNSEEN = {(name, word) for name in ("X", "X_new") for word in ("NaN", "infinite", "all NaN")}

CASES = {
    # gram
    "gram.gram_operator": Case(gram.gram_operator, {"kernel": KERNEL, "X": X}),
    "gram.cross_operator": Case(gram.cross_operator, {"kernel": KERNEL, "X_new": NEW, "X": X}),
    "gram.gram_diagonal": Case(gram.gram_diagonal, {"kernel": KERNEL, "X": X}),
    "gram.gram_operator of shapes": Case(gram.gram_operator, {"kernel": OF_SHAPES, "X": SHAPES}),
    "gram.gram_operator of a matrix": Case(
        gram.gram_operator, {"kernel": kernels.Precomputed(), "X": K}, allowed=UNSEEN
    ),
    "gram.cross_operator of shapes": Case(
        gram.cross_operator, {"kernel": OF_SHAPES, "X_new": SHAPES[:2], "X": SHAPES}
    ),
    "gram.cross_operator of a matrix": Case(
        gram.cross_operator,
        {"kernel": kernels.Precomputed(), "X_new": K[:5], "X": None},
        allowed=UNSEEN,
    ),
    "gram.gram_diagonal of shapes": Case(gram.gram_diagonal, {"kernel": OF_SHAPES, "X": SHAPES}),
    "gram.gram_diagonal of a matrix": Case(
        gram.gram_diagonal, {"kernel": kernels.Precomputed(), "X": K}, allowed=UNSEEN
    ),
    "gram.choose_storage": Case(
        gram.choose_storage,
        {"kernel": KERNEL, "X": X, "memory_budget": "1GiB", "storage": "auto"},
    ),
    "gram.DenseGram": Case(gram.DenseGram, {"matrix": K}, made={"check"}),
    "gram.Scaled": Case(gram.Scaled, {"operator": DENSE, "factor": 2.0}),
    "gram.Centered": Case(gram.Centered, {"operator": DENSE, "sample_weight": WEIGHTS}),
    "gram.Tangent": Case(
        gram.Tangent, {"operator": DENSE, "base_point": MEAN, "cosines": K @ MEAN}
    ),
    "gram.Degree": Case(
        gram.Degree,
        {
            "operator": DENSE,
            "sample_weight": 1 + WEIGHTS,
            "row_numbers": np.arange(12),
            "uncertainty": np.zeros(12),
        },
    ),
    "gram.Combined": Case(gram.Combined, {"operator": DENSE, "combination": X.T @ X @ X.T}),
    # coordinates
    "coordinates.isometric_coordinates": Case(
        coordinates.isometric_coordinates, {"operator": DENSE}
    ),
    "coordinates.pivoted_cholesky": Case(
        coordinates.pivoted_cholesky, {"operator": DENSE, "tol": 1e-6, "max_rank": 5}
    ),
    "coordinates.partial_cholesky": Case(
        coordinates.partial_cholesky,
        {"operator": DENSE, "max_rank": 5, "sample_weight": WEIGHTS, **SEED},
    ),
    "coordinates.choose_anchors": Case(
        coordinates.choose_anchors,
        {"kernel": KERNEL, "X": X, "n_anchors": 4, "sample_weight": WEIGHTS, **SEED},
    ),
    "coordinates.anchor_coordinates": Case(
        coordinates.anchor_coordinates,
        {"kernel": KERNEL, "X": X, "anchors": coordinates.choose_anchors(KERNEL, X, 4, **SEED)},
        made={"anchors", "unit"},
        look=lambda features: features.toarray(),
    ),
    # rows
    "rows.kind_of": Case(  # by the type alone
        rows.kind_of, {"X": X, "kernel": KERNEL}, made={"kernel"}, allowed={("X", "masked")}
    ),
    # kernels
    "kernels.as_kernel": Case(kernels.as_kernel, {"kernel": "gaussian"}, made={"owner"}),
    "kernels.as_fitted_kernel": Case(kernels.as_fitted_kernel, {"kernel": "gaussian", "X": X}),
    "kernels.mean_squared_distance": Case(
        kernels.mean_squared_distance, {"X": X, "sample_weight": WEIGHTS}
    ),
    "kernels.median_distance": Case(
        kernels.median_distance,
        {
            "pairwise": lambda i, j: np.linalg.norm(X[i] - X[j], axis=1),
            "n_samples": 12,
            "sample_weight": WEIGHTS,
        },
        # the function has distances of twelve rows
        allowed={("n_samples", "a million millions"), ("n_samples", "beyond 64 bits")},
    ),
    # eigen
    "eigen.leading": Case(eigen.leading, {"operator": DENSE, "k": 2, **SEED}),
    "eigen.choose_solver": Case(eigen.choose_solver, {"n": 100, "k": 2}, made={"exact"}),
    "eigen.hebbian": Case(
        eigen.hebbian,
        {
            "operator": K,
            "n_components": 2,
            "n_passes": 2,
            "initial": X[:, :2].T,
            "order": np.array([RNG.permutation(12) for _ in range(2)]),
            **SEED,
        },
    ),
    "eigen.hebbian from a random start": Case(
        eigen.hebbian, {"operator": K, "n_components": 2, "n_passes": 2, **SEED}, made={"initial"}
    ),
    # sphere
    "sphere.log": Case(sphere.log, {"points": UNIT, "base_point": UNIT[0]}),
    "sphere.exp": Case(
        sphere.exp,
        {"tangents": sphere.log(UNIT, base_point=UNIT[0]), "base_point": UNIT[0]},
    ),
    "sphere.distance": Case(sphere.distance, {"first": UNIT, "second": UNIT[::-1]}),
    "sphere.log_at_pole": Case(sphere.log_at_pole, {"points": UNIT}),
    "sphere.exp_at_pole": Case(sphere.exp_at_pole, {"coordinates": Z}),
    "sphere.geodesic_distances": Case(sphere.geodesic_distances, {"X": UNIT, "Y": UNIT[:4]}),
    "sphere.geodesic_distances with a kernel": Case(
        sphere.geodesic_distances, {"X": X, "Y": NEW, "kernel": "gaussian"}
    ),
    "sphere.karcher_mean": Case(
        sphere.karcher_mean, {"points": UNIT, "sample_weight": WEIGHTS, "initial": UNIT[0]}
    ),
    "sphere.nested_spheres": Case(
        sphere.nested_spheres,
        {"points": UNIT, "sample_weight": WEIGHTS, "sphere": "great"},
    ),
    "sphere.NestedSpheres.scores": Case(CHAIN.scores, {"points": UNIT}),
    "sphere.NestedSpheres.points": Case(CHAIN.points, {"scores": CHAIN.scores(UNIT)}),
    # preimage
    "preimage.preimage": Case(
        preimage.preimage,
        {"kernel": Gaussian(2.0), "X": X, "coefficients": np.ones((2, 12)) / 12},
        look=lambda found: found.points,  # the ridge method does not know similarities
    ),
    "preimage.karcher_mean_preimage": Case(
        preimage.karcher_mean_preimage,
        {"kernel": Gaussian(2.0), "X": X, "sample_weight": WEIGHTS, "starts": X[:3]},
    ),
    "preimage.geodesic_kernel": Case(
        preimage.geodesic_kernel, {"kernel": Gaussian(2.0), "X": X, "sample_weight": WEIGHTS}
    ),
    # metrics
    "metrics.neighborhood_preservation": Case(
        metrics.neighborhood_preservation, {"X": X, "embedding": Z}
    ),
    "metrics.coranking_matrix": Case(metrics.coranking_matrix, {"X": X, "embedding": Z}),
    "metrics.neighborhood_area": Case(metrics.neighborhood_area, {"quality": CURVE}),
    "metrics.clustering_error": Case(
        metrics.clustering_error,
        {"labels_true": LABELS, "labels_pred": LABELS[::-1], "sample_weight": WEIGHTS},
    ),
    "metrics.variation_of_information": Case(
        metrics.variation_of_information,
        {"labels_true": LABELS, "labels_pred": LABELS[::-1], "sample_weight": WEIGHTS},
    ),
    "metrics.reconstruction_error": Case(
        metrics.reconstruction_error,
        {"operator": K, "coefficients": X[:, :2].T, "projections": X[:, :2].T @ K},
    ),
    "metrics.excess_reconstruction_error": Case(
        metrics.excess_reconstruction_error,
        {"operator": K, "coefficients": X[:, :2].T, "projections": X[:, :2].T @ K},
        look=lambda excess: 0.0 if excess == np.inf else excess,  # where the least error is 0
    ),
    # spaces
    **{
        f"spaces.{function.__name__}": Case(function, {"X": SHAPES}, made={"name"})
        for function in (
            spaces.as_points,
            spaces.as_complex,
            spaces.preshape,
            spaces.helmertize,
            spaces.centroid_size,
        )
    },
    **{
        f"spaces.{function.__name__}": Case(function, {"X": SPD}, made={"name"})
        for function in (
            spaces.check_spd,
            spaces.spd_log,
            spaces.spd_exp,
            spaces.symmetric_vectors,
        )
    },
    "spaces.extrinsic_mean": Case(
        spaces.extrinsic_mean, {"X": SHAPES, "sample_weight": WEIGHTS[:6]}
    ),
    "spaces.procrustes_align": Case(
        spaces.procrustes_align, {"X": SHAPES, "reference": SHAPES[0], "size": "own"}
    ),
    "spaces.procrustes_align by the mean": Case(
        spaces.procrustes_align, {"X": SHAPES, "sample_weight": WEIGHTS[:6]}, made={"X"}
    ),
    "spaces.procrustes_distance": Case(spaces.procrustes_distance, {"X": SHAPES, "Y": SHAPES[:2]}),
    "spaces.riemannian_distance": Case(spaces.riemannian_distance, {"X": SHAPES, "Y": SHAPES[:2]}),
    "spaces.symmetric_matrices": Case(
        spaces.symmetric_matrices, {"vectors": spaces.symmetric_vectors(SPD)}
    ),
    "spaces.log_euclidean_mean": Case(
        spaces.log_euclidean_mean, {"X": SPD, "sample_weight": WEIGHTS[:4]}
    ),
    "spaces.log_euclidean_distance": Case(spaces.log_euclidean_distance, {"X": SPD, "Y": SPD[:2]}),
    "spaces.read_tps": Case(
        spaces.read_tps, {"path": "good.tps"}, look=lambda found: found.landmarks, beyond=(OSError,)
    ),
    "spaces.write_tps": Case(
        spaces.write_tps,
        {"path": "new.tps", "landmarks": np.abs(SHAPES[:2]), "scales": np.ones(2)},
        beyond=(OSError,),
    ),
    # datasets
    "datasets.make_von_mises_fisher": Case(
        datasets.make_von_mises_fisher, {"mean_direction": np.ones(3), **SEED}
    ),
    "datasets.make_spirals": Case(datasets.make_spirals, SEED),
    "datasets.make_noisy_circles": Case(datasets.make_noisy_circles, SEED),
    "datasets.make_landmark_shapes": Case(datasets.make_landmark_shapes, SEED),
    "datasets.load": Case(
        datasets.load,
        {"name": "wine", "download_if_missing": False},
        made={"download_if_missing"},
        beyond=(OSError,),
    ),
    "datasets.path": Case(datasets.path, {"name": "wine", "data_home": "data"}, beyond=(OSError,)),
}
FILES = {
    "save": Case(
        orthodrome.save, {"model": KernelPCA(2), "path": "model.orthodrome"}, beyond=(OSError,)
    ),
    "load": Case(orthodrome.load, {"path": "good.orthodrome"}, beyond=(OSError,)),
}
DRAWN = {
    "plots.embedding": Case(
        plots.embedding, {"Z": Z, "labels": LABELS, "ratios": np.array([0.6, 0.3])}
    ),
    "plots.clusters": Case(
        plots.clusters,
        {"Z": Z, "labels": LABELS, "centers": Z[:3], "proba": np.full((12, 3), 1 / 3)},
    ),
    "plots.sphere": Case(
        plots.sphere, {"points": UNIT, "labels": LABELS, "curves": {"line": UNIT[:5]}}
    ),
    "plots.spectrum": Case(plots.spectrum, {"model": np.array([3.0, 2.0, 1.0])}),
    "plots.neighborhood": Case(plots.neighborhood, {"curves": {"a": CURVE, "b": CURVE}}),
    "plots.confusion": Case(
        plots.confusion, {"y_true": LABELS, "y_pred": LABELS[::-1], "labels": np.arange(3)}
    ),
    "plots.shape_modes": Case(
        plots.shape_modes, {"model": KernelPCA(2, "veronese_whitney").fit(SHAPES), "n_steps": 3}
    ),
    "plots.shapes": Case(plots.shapes, {"X": SHAPES, "labels": np.arange(6) % 2}),
    "plots.karcher_objective": Case(
        plots.karcher_objective,
        {"kernel": Gaussian(2.0), "X": Z, "sample_weight": WEIGHTS, "n_grid": 5},
    ),
    "plots.curves": Case(
        plots.curves,
        {"x": np.arange(1.0, 6), "values": {"a": np.arange(5.0)}, "xlabel": "x", "ylabel": "y"},
    ),
    "plots.images": Case(plots.images, {"rows": {"a": RNG.random((2, 3, 3))}}),
}


#: Public functions that estimators call with what they have validated.
TRUSTING = {
    *("squared_distance_to_mean", "principal_coordinates", "as_rows", "resolve_solver"),
    *("solve_components", "make_components", "weighted_problem", "affine_map", "tangent_frame"),
    *("orient_by_moments", "second_moment", "feature_axes", "captured", "remainder", "leveled"),
    *("folded_residuals", "left_out_mean_cosines", "radial_preimages", "fixed_point", "ridge"),
    *("fixed_point_preimages", "decode_components", "left_out_preimages"),
    *("available", "cache_folder"),
}


def test_every_public_function_is_called_here():
    called = {name.split(" ")[0].split(".")[1] for name in CASES}
    rooms = (classification, coordinates, datasets, eigen, gram, kernels, metrics, preimage)
    for room in (*rooms, rows, spaces, sphere):
        public = {name for name in room.__all__ if inspect.isfunction(getattr(room, name))}
        assert public <= called | TRUSTING


# What is done with it ----------------------------------------------------------------------------


def use(case, name, word, value):
    """Call a function with one odd value; what a mask hides must not be used."""
    answer = case.call(**{**case.good, name: value})
    return np.nan if word.startswith("masked") else case.look(answer)


def found_by(case, names=None):
    """Return what is wrong with how a function takes its odd values."""
    refusals = (ValueError, TypeError, *case.beyond)
    found = []
    for name, word, value in case.values():
        if names is None or name in names:
            said = complaint(functools.partial(use, case, name, word, value), refusals=refusals)
            if said:
                found.append(f"{name} = {word}: {said}")
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a word is the name of a file."""
    monkeypatch.chdir(tmp_path)
    with quiet():
        spaces.write_tps("good.tps", np.abs(SHAPES))
    (tmp_path / "data" / "uci").mkdir(parents=True)
    (tmp_path / "data" / "uci" / "wine.csv").touch()  # a path of which nobody reads the file
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_odd_values_are_taken_or_refused_in_words(name, folder):
    assert_works(CASES[name])
    assert_nothing_found(lambda: found_by(CASES[name]))


def assert_works(case):
    """Also compiles loops, where the memory for that has no bound."""
    with quiet():
        assert is_finite(case.look(case.call(**case.good)))


@pytest.mark.parametrize("name", FILES)
def test_odd_values_of_what_reads_and_writes_models(name, folder):
    orthodrome.save(KernelPCA(2), "good.orthodrome")
    assert_works(FILES[name])
    assert_nothing_found(lambda: found_by(FILES[name]))


def data_of(case):
    """Return the arguments that hold data; the others are options."""
    return {name for name, value in case.good.items() if isinstance(value, np.ndarray | dict)}


#: Some figures take longer than others.
QUICK = ("plots.confusion",)


@needs("matplotlib")
@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in DRAWN],
)
def test_odd_data_of_figures(name):
    assert_works(DRAWN[name])
    assert_nothing_found(lambda: found_by(DRAWN[name], data_of(DRAWN[name])))


@needs("matplotlib")
@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_odd_options_of_figures(name):
    case = DRAWN[name]
    options = set(inspect.signature(case.call).parameters) - data_of(case)
    assert_works(case)
    assert_nothing_found(lambda: found_by(case, options))
