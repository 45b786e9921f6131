"""Spectral clustering of data of every kind: the right answer or a clear error, never NaN."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laws_cluster import LAPLACIANS, blobs, every_laplacian, gaussian, graphs_only
from optional import optional
from orthodrome import KernelSpectralClustering
from orthodrome.eigen import Dense, Krylov
from orthodrome.kernels import Gaussian, Normalized, Polynomial

pd = optional("pandas")

K = 3


def estimator(laplacian="njw", n_clusters=K, **options):
    options = {"kernel": Gaussian(sigma=1.5), "n_init": 2, "random_state": 0, **options}
    return KernelSpectralClustering(n_clusters, laplacian=laplacian, **options)


# ------------------------------------------------------------------ degenerate data


@every_laplacian
def test_one_point(laplacian):
    model = estimator(laplacian, 1).fit([[1.0, 2.0]])
    np.testing.assert_array_equal(model.labels_, [0])
    np.testing.assert_array_equal(model.predict([[1.0, 2.0], [5.0, 5.0]]), [0, 0])
    with pytest.raises(ValueError, match=r"n_clusters=2 of Kernel.* n_samples=1\. Ask for fewer"):
        estimator(laplacian, 2).fit([[1.0, 2.0]])


@every_laplacian
def test_fewer_points_than_clusters(laplacian):
    with pytest.raises(ValueError, match=r"n_clusters=5 .*must not exceed .* n_samples=4"):
        estimator(laplacian, 5).fit(blobs(4))
    with pytest.raises(ValueError, match=r"n_clusters=5 .*must not exceed .* n_samples=4"):
        estimator(laplacian, 5).fit(blobs(9), sample_weight=np.arange(9) < 4)
    model = estimator(laplacian, 4).fit(blobs(4))
    assert sorted(model.labels_) == [0, 1, 2, 3]


@every_laplacian
def test_fewer_different_points_than_clusters(laplacian):
    """However the copies are written: each point is a cluster, and a warning says so."""
    X = 3 * blobs(4)
    message = r"found 4 of n_clusters=6 clusters: there are no more different points"
    with pytest.warns(ConvergenceWarning, match=message):
        repeated = estimator(laplacian, 6).fit(np.repeat(X, 3, axis=0))
    with pytest.warns(ConvergenceWarning, match=message):
        weighted = estimator(laplacian, 6).fit(X, sample_weight=np.full(4, 3.0))
    assert sorted(weighted.labels_) == [0, 1, 2, 3]
    np.testing.assert_array_equal(repeated.labels_, np.repeat(weighted.labels_, 3))
    np.testing.assert_array_equal(repeated.predict(X), weighted.labels_)


@every_laplacian
def test_all_points_equal(laplacian):
    X = np.full((6, 2), 3.0)
    np.testing.assert_array_equal(estimator(laplacian, 1).fit(X).labels_, 0)
    with pytest.warns(ConvergenceWarning, match="found 1 of n_clusters=3"):
        model = estimator(laplacian).fit(X)
    np.testing.assert_array_equal(model.labels_, 0)
    assert np.all(np.isfinite(model.embedding_))


@every_laplacian
@pytest.mark.parametrize("solver", ["dense", "krylov", "nystroem"])
def test_points_that_the_kernel_does_not_tell_apart(laplacian, solver):
    wide = Gaussian(sigma=1e12)
    with pytest.warns(ConvergenceWarning, match=r"found 1 of .*choose another scale"):
        model = estimator(laplacian, kernel=wide, solver=solver).fit(blobs())
    np.testing.assert_array_equal(model.labels_, 0)
    np.testing.assert_array_equal(model.predict(blobs() + 1), 0)
    np.testing.assert_array_equal(model.embedding_[:, 1:], 0)
    if laplacian == "kernel-pca":
        np.testing.assert_array_equal(model.embedding_, 0)


@graphs_only
def test_isolated_points_are_at_the_origin(laplacian):
    X = np.concatenate([blobs(30), [[1e4, 0, 0], [0, 1e4, 0]]])
    with pytest.warns(UserWarning, match="2 of the 32 different points have no similarity") as seen:
        model = estimator(laplacian).fit(X)
    assert seen[0].filename == __file__
    np.testing.assert_array_equal(model.embedding_[-2:], 0)
    np.testing.assert_array_equal(model.embed(X[-2:]), 0)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    plain = estimator(laplacian).fit(X[:-2])
    np.testing.assert_allclose(model.embedding_[:-2], plain.embedding_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.eigenvalues_, plain.eigenvalues_, rtol=1e-12)


@graphs_only
def test_no_point_has_a_neighbour(laplacian):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator(laplacian, kernel=Gaussian(sigma=1e-6)).fit(blobs())
    assert [type(w.message) for w in caught] == [ConvergenceWarning, UserWarning]
    np.testing.assert_array_equal(model.embedding_, 0)
    np.testing.assert_array_equal(model.labels_, 0)


@graphs_only
def test_a_loosely_connected_point_follows_its_neighbours(laplacian):
    """Its row of the eigenvectors is 1e-20 of the others: below the rounding of any solver."""
    X = np.concatenate([blobs(), [[27.0, 6.0, 0.0]]])
    assert np.sort(gaussian(X, sigma=1.5)[-1])[-2] < 1e-40
    for solver in ("dense", Krylov(1e-12, max_basis=1, block_size=3)):
        model = estimator(laplacian, solver=solver).fit(X)
        assert model.labels_[-1] == model.predict([[4.0, 1.0, 0.0]])[0]
        np.testing.assert_array_equal(model.predict(X), model.labels_)


@settings(max_examples=30, deadline=None)
@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 3)),
        elements=st.floats(-100, 100).map(lambda value: round(value, 3)),
    ),
    k=st.integers(1, 4),
    sigma=st.sampled_from(["mean", 0.01, 1.0, 1e6]),
)
@pytest.mark.filterwarnings("ignore:.*found . of n_clusters:UserWarning")
@pytest.mark.filterwarnings("ignore:.*have no similarity:UserWarning")
@pytest.mark.filterwarnings("ignore:Number of distinct clusters:UserWarning")  # k-means, by a hair
@every_laplacian
def test_anything_finite_gives_something_finite(laplacian, X, k, sigma):
    k = min(k, len(X))
    if sigma == "mean" and len(np.unique(X, axis=0)) == 1:
        sigma = 1.0  # no distances to take a mean of
    model = estimator(laplacian, k, kernel=Gaussian(sigma=sigma)).fit(X)
    assert np.all(np.isfinite(model.embedding_))
    assert np.all(np.isfinite(model.embed(X + 0.5)))
    assert set(model.labels_) <= set(range(k))
    assert np.all(np.diff(model.eigenvalues_) <= 1e-12)
    for row in X[:3]:
        assert len(set(model.labels_[np.all(row == X, axis=1)])) == 1


# ------------------------------------------------------------------ containers


@every_laplacian
def test_containers(laplacian):
    X = blobs()
    expected = estimator(laplacian).fit(X)
    X_before = X.copy()
    for convert in (np.asfortranarray, np.ndarray.tolist, lambda X: X.astype(">f8")):
        model = estimator(laplacian).fit(convert(X))
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        np.testing.assert_array_equal(model.predict(convert(X)), expected.labels_)
    np.testing.assert_array_equal(X, X_before)


def test_frames():
    frame = pd.DataFrame(blobs(), columns=list("abc"), index=np.arange(150) + 7)
    model = estimator().fit(frame)
    assert list(model.feature_names_in_) == list("abc")
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    np.testing.assert_array_equal(model.labels_, estimator().fit(blobs()).labels_)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("cba")])


def test_later_changes_of_the_data_do_not_reach_the_model():
    X, new = blobs(), blobs(20, seed=1)
    model = estimator().fit(X)
    before = model.embed(new)
    X[...] = 0
    np.testing.assert_array_equal(model.embed(new), before)
    model.fit_predict(blobs())[...] = 9
    assert 9 not in model.labels_


BAD_DATA = {
    "NaN": (np.where(np.arange(450).reshape(150, 3) == 7, np.nan, blobs()), "NaN"),
    "inf": (np.where(np.arange(450).reshape(150, 3) == 7, np.inf, blobs()), "infinity"),
    "complex": (blobs() * 1j, "[Cc]omplex"),
    "1-D": (blobs()[:, 0], "Expected 2D array, got 1D"),
    "3-D": (blobs()[None], "dim 3"),
    "no rows": (np.empty((0, 3)), "0 sample"),
}


@pytest.mark.parametrize(("X", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data(X, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit(X)
    with pytest.raises(ValueError, match=rf"{message}|features"):
        estimator().fit(blobs()).predict(X)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((3, 4)), "square"),
        (np.triu(np.ones((4, 4))), r"symmetric; entries \(\d, \d\)"),
        (np.full((4, 4), np.nan), "NaN"),
    ],
)
def test_bad_matrices(matrix, message):
    with pytest.raises(ValueError, match=message):
        estimator(kernel="precomputed").fit(matrix)


def test_new_rows_of_a_precomputed_kernel_must_match():
    model = estimator(kernel="precomputed").fit(gaussian(blobs()))
    with pytest.raises(ValueError, match=r"5 features.*150 features"):
        model.predict(np.ones((2, 5)))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        estimator(kernel="precomputed").fit(scipy.sparse.csr_array(np.eye(5)))


# ------------------------------------------------------------------ rows are named as given


@graphs_only
def test_negative_degrees_name_the_row_of_the_caller(laplacian):
    X = np.concatenate([np.full((5, 1), 2.0) + np.arange(5)[:, None], [[-3.0]]])
    with pytest.raises(ValueError, match=r"degree of row 5, .*is -60 \(one of 1 below 0\)"):
        estimator(laplacian, 2, kernel="linear").fit(X)
    assert estimator("kernel-pca", 2, kernel="linear").fit(X).labels_[-1] == 0
    model = estimator(laplacian, 2, kernel="linear").fit(np.abs(X))
    with pytest.raises(ValueError, match="degree of row 1 of the new points"):
        model.predict([[1.0], [-1.0]])


@graphs_only
def test_weights_that_do_not_count(laplacian):
    X = blobs()
    with pytest.raises(ValueError, match=r"Weights count copies.*multiply the weights"):
        estimator(laplacian).fit(X, sample_weight=np.full(150, 1 / 150))
    whole = estimator("kernel-pca").fit(X)
    part = estimator("kernel-pca").fit(X, sample_weight=np.full(150, 1 / 150))
    np.testing.assert_allclose(part.embedding_, whole.embedding_, rtol=0, atol=1e-10)


def test_errors_of_a_kernel_name_the_row_of_the_caller():
    X = blobs()
    X[17] = 1e155
    with pytest.raises(ValueError, match="row 17 are so large that their squares overflow"):
        estimator().fit(X)
    X[17] = 0
    with pytest.raises(ValueError, match="cannot normalise row 17"):
        estimator(kernel=Normalized(Polynomial(degree=2, coef0=0.0))).fit(X)


@every_laplacian
def test_sums_that_overflow(laplacian):
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=r"overflow in float64"):
        estimator(laplacian, kernel="precomputed").fit(np.full((5, 5), 1e308) + np.eye(5) * 1e307)


# ------------------------------------------------------------------ parameters


BAD_PARAMETERS = [
    ({"n_clusters": 0}, "n_clusters of OWNER must be an integer >= 1; got 0"),
    ({"n_clusters": 2.0}, "n_clusters of OWNER must be an integer >= 1; got 2.0"),
    ({"n_clusters": True}, "n_clusters of OWNER must be an integer"),
    (
        {"laplacian": "unnormalized"},
        "laplacian of OWNER must be one of 'njw', 'kernel-pca', 'ncut'",
    ),
    ({"laplacian": None}, "laplacian of OWNER must be one of .*; got None"),
    ({"kernel": "nonsense"}, "Unknown kernel 'nonsense'"),
    ({"kernel": Gaussian}, r"kernel=Gaussian of OWNER is a class; write Gaussian\(\)"),
    ({"kernel": Gaussian(sigma=0)}, "sigma of Gaussian must be a finite number > 0; got 0"),
    ({"kernel": lambda A, B: np.ones(3)}, "callable kernel must return the whole block"),
    ({"solver": "arpack"}, "solver of OWNER must be one of 'auto', 'dense', 'krylov'"),
    ({"solver": None}, "solver of .* must be one of .* or a solver object; got None"),
    ({"tol": -1e-3}, "tol of OWNER must be a finite number >= 0"),
    ({"max_iter": 0}, "max_iter of OWNER must be an integer >= 1"),
    ({"n_init": 0}, "n_init of OWNER must be an integer >= 1"),
    ({"n_init": "auto"}, "n_init of OWNER must be an integer >= 1 .*; got 'auto'"),
    ({"memory_budget": "lots"}, "memory_budget of OWNER must be a number of bytes or a string"),
    ({"storage": "ram"}, "storage of OWNER must be one of 'auto', 'memory'"),
    ({"random_state": "seed"}, "random_state of KernelSpectralClustering must be an integer"),
    ({"verbose": -1}, "verbose of OWNER must be an integer >= 0"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS)
def test_bad_parameters(parameters, message):
    """Refused by fit, not by the constructor; and nothing fitted is left behind."""
    model = estimator(**parameters)
    with pytest.raises(ValueError, match=message.replace("OWNER", "KernelSpectralClustering")):
        model.fit(blobs())
    left = {name for name in vars(model) if name.endswith("_")}
    assert left <= {"n_features_in_"}  # set by scikit-learn's check of X
    for method in (model.predict, model.embed):
        with pytest.raises(NotFittedError):
            method(blobs())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"shape \(150,\), one weight per sample; got \(3,\)"),
        (np.where(np.arange(150) == 7, -1.0, 1.0), "must not be negative; entry 7 is -1"),
        (np.zeros(150), "must have a positive entry"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit(blobs(), sample_weight=weights)


@pytest.mark.parametrize("solver", ["dense", "auto"])
def test_a_dense_problem_that_does_not_fit(solver):
    """Refused before the kernel is evaluated."""

    def kernel(A, B):
        raise AssertionError("evaluated")

    model = estimator(n_clusters=400, kernel=kernel, solver=solver, memory_budget="1MiB")
    with pytest.raises(ValueError, match=r"whole 1100 x 1100 matrix.*krylov"):
        model.fit(blobs(1100))
    with pytest.raises(ValueError, match=r"whole 1100 x 1100 matrix"):
        estimator(solver=Dense(), memory_budget="1MiB").fit(blobs(1100))


@every_laplacian
def test_a_failing_refit_keeps_the_last_fit(laplacian):
    X, new = blobs(), blobs(20, seed=1)
    model = estimator(laplacian).fit(X)
    before, labels, names = model.embed(new), model.labels_.copy(), set(vars(model))
    changes = [
        ({"n_clusters": 0}, X),
        ({"kernel": lambda A, B: np.ones(3)}, X),
        ({"kernel": "precomputed"}, gaussian(X)),
        ({"n_clusters": 4}, X[:3]),
        ({}, np.full((150, 4), np.nan)),
    ]
    for change, data in changes:
        bad = clone(model).set_params(**change)
        vars(model).update({name: getattr(bad, name) for name in change})
        weights = np.full(len(data), -1.0) if "precomputed" in change.values() else None
        with pytest.raises(ValueError, match=r".+"):
            model.fit(data, sample_weight=weights)
        vars(model).update({name: getattr(estimator(laplacian), name) for name in change})
        np.testing.assert_array_equal(model.embed(new), before)
        np.testing.assert_array_equal(model.labels_, labels)
        assert set(vars(model)) == names


def test_a_refit_that_fails_at_the_very_end_keeps_the_last_fit():
    """A row of weight 0 that cannot be placed, after all the rest is done."""
    X = np.arange(1.0, 7.0)[:, None]
    model = estimator(n_clusters=2, kernel="linear").fit(X)
    before = model.embed(X)
    matrix = np.concatenate([X, [[-1.0]]]) @ np.concatenate([X, [[-1.0]]]).T
    model.set_params(kernel="precomputed")
    with pytest.raises(ValueError, match="of the new points"):
        model.fit(matrix, sample_weight=np.append(np.ones(6), 0.0))
    model.set_params(kernel="linear")
    np.testing.assert_array_equal(model.embed(X), before)


# ------------------------------------------------------------------ protocol


@every_laplacian
def test_pickling_and_cloning(laplacian):
    X, new = blobs(), blobs(20, seed=1)
    model = estimator(laplacian).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.embed(new), model.embed(new))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    copy = clone(model)
    assert not hasattr(copy, "kernel_")
    np.testing.assert_array_equal(copy.fit_predict(X), model.labels_)


def test_parameters_of_the_kernel():
    model = KernelSpectralClustering(2)
    with pytest.raises(ValueError, match=r"kernel__sigma cannot be set.*Write kernel=Gaussian\(\)"):
        model.set_params(kernel__sigma=2.0)
    for values in ParameterGrid({"kernel__sigma": [1.0, 2.0], "laplacian": LAPLACIANS}):
        fitted = estimator().set_params(**values).fit(blobs())
        assert fitted.kernel_.sigma_ == values["kernel__sigma"]
    pipeline = make_pipeline(StandardScaler(), estimator()).fit(blobs())
    np.testing.assert_array_equal(pipeline.predict(blobs()), pipeline[-1].labels_)


@every_laplacian
def test_diagnostics(laplacian):
    model = estimator(laplacian).fit(blobs())
    assert (model.solver_, model.n_iter_, model.converged_) == ("dense", 1, True)
    assert model.eigenvalues_.shape == model.residuals_.shape == (K,)
    assert model.embedding_.shape == (150, K)
    assert model.cluster_centers_.shape == (K, K)
    assert model.labels_.dtype == model.predict(blobs()).dtype == np.int32
    iterated = estimator(laplacian, solver=Krylov(1e-10, block_size=3, max_basis=1)).fit(blobs())
    assert iterated.solver_ == "krylov"
    assert iterated.n_iter_ == len(iterated.history_) > 1
    assert np.all(iterated.residuals_ <= 1e-10 * 1.001 * (1 + np.abs(model.eigenvalues_[0])))


@every_laplacian
def test_non_convergence_is_one_warning(laplacian):
    model = estimator(laplacian, solver="krylov", tol=0, max_iter=1)
    message = r"KernelSpectralClustering \(krylov\): stopped at max_iter \(largest relative res"
    with pytest.warns(ConvergenceWarning, match=message) as seen:
        model.fit(blobs(800))
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert not model.converged_
    assert np.all(np.isfinite(model.embedding_))


class Recorder:
    """The FitCallback protocol, writing down what it is told."""

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, **_):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, **_):
        self.events.append(("end", context.task_name))


@pytest.mark.parametrize("options", [{}, {"solver": "krylov"}], ids=str)
@every_laplacian
def test_callbacks_see_the_fit_from_begin_to_end(laplacian, options):
    recorder = Recorder()
    model = estimator(laplacian, **options).set_callbacks(recorder)
    model.fit(blobs(600))
    events = recorder.events
    assert events[:2] == ["setup", ("begin", "fit")]
    assert events[-2:] == [("end", "fit"), "teardown"]
    assert [kind for kind, _ in events[2:-2]] == ["begin", "end"] * 20
    plain = estimator(laplacian, **options).fit(blobs(600))
    np.testing.assert_array_equal(model.labels_, plain.labels_)
