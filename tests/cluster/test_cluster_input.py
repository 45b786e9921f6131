"""Clusterings of data of every kind: the right answer or a clear error, never NaN."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from laws_cluster import LAPLACIANS, blobs, gaussian, graphs_only, same_partition
from laws_clusterings import CLUSTERINGS, estimator, every_clustering, hard, methods_of, placed
from laws_kmeans import KINDS, cloud, every_kind
from laws_sphere import unit
from optional import optional
from orthodrome.eigen import Dense, Krylov
from orthodrome.kernels import Gaussian, Linear, Log, Normalized, Polynomial, Sigmoid
from recording import Recorder

pd = optional("pandas")

every_laplacian = pytest.mark.parametrize("kind", LAPLACIANS)


# ------------------------------------------------------------------ degenerate data


@hard
def test_fewer_points_than_clusters(kind):
    for X, weights in ((blobs(4), None), (blobs(9), np.arange(9) < 4)):
        with pytest.raises(ValueError, match=r"n_clusters=5 .*must not exceed .* n_samples=4"):
            estimator(kind, 5).fit(X, sample_weight=weights)
    inits = ("k-means++", "farthest-first", "random", blobs(4)) if kind in KINDS else (None,)
    for init in inits:
        model = estimator(kind, 4, **({} if init is None else {"init": init})).fit(blobs(4))
        assert sorted(model.labels_) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "init"),
    [(kind, None) for kind in LAPLACIANS]
    + [
        (kind, init)
        for kind in KINDS
        for init in ("k-means++", "farthest-first", "random", "given")
    ],
)
def test_fewer_different_points_than_clusters(kind, init):
    """However the copies are written: each point is a cluster, and a warning says so."""
    X = 3 * blobs(4)
    init = np.repeat(X, 2, axis=0)[:6] if init == "given" else init
    model = estimator(kind, 6, **({} if init is None else {"init": init}))
    message = r"found 4 of n_clusters=6 clusters"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        repeated = clone(model).fit(np.repeat(X, 3, axis=0))
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(ConvergenceWarning, match=message):
        weighted = model.fit(X, sample_weight=np.full(4, 3.0))
    assert sorted(weighted.labels_) == [0, 1, 2, 3]
    assert weighted.cluster_centers_.shape[0] == 4
    np.testing.assert_array_equal(repeated.labels_, np.repeat(weighted.labels_, 3))
    np.testing.assert_array_equal(repeated.predict(X), weighted.labels_)


@pytest.mark.parametrize("solver", ["dense", "krylov", "nystroem"])
@every_laplacian
def test_points_that_the_kernel_does_not_distinguish(kind, solver):
    with pytest.warns(ConvergenceWarning, match=r"found 1 of .*choose another scale"):
        model = estimator(kind, kernel=Gaussian(sigma=1e12), solver=solver).fit(blobs())
    np.testing.assert_array_equal(model.labels_, 0)
    np.testing.assert_array_equal(model.predict(blobs() + 1), 0)
    np.testing.assert_array_equal(model.embedding_[:, 0 if kind == "kernel-pca" else 1 :], 0)


@every_kind
def test_copies_have_one_label(kind):
    X = np.round(cloud(200), 0)
    model = estimator(kind, 6).fit(X)
    for row in np.unique(X, axis=0):
        assert len(set(model.labels_[np.all(row == X, axis=1)])) == 1
    assert set(model.labels_) == set(range(6))


@settings(max_examples=25, deadline=None)
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
@hard
def test_anything_finite_gives_something_finite(kind, X, k, sigma):
    model = estimator(kind, min(k, len(X)), kernel=Gaussian(sigma=sigma)).fit(X)
    assert np.all(np.isfinite(model.cluster_centers_))
    assert np.all(np.isfinite(placed(model, X + 0.5)))
    for row in X[:3]:
        assert len(set(model.labels_[np.all(row == X, axis=1)])) == 1
    if kind in LAPLACIANS:
        assert set(model.labels_) <= set(range(k))
        assert np.all(np.diff(model.eigenvalues_) <= 1e-12)
        return
    assert set(model.labels_) == set(range(len(model.cluster_centers_)))
    inertias = [entry["inertia"] for entry in model.history_]
    assert model.inertia_ >= -1e-12
    assert np.all(np.diff(inertias) <= 1e-12 * (1 + inertias[0]))
    distances = model.transform(X) ** 2  # of two centres that are equally near, either
    own = distances[np.arange(len(X)), model.labels_]
    assert np.all(own <= distances.min(axis=1) + 1e-12)


# ------------------------------------------------------------------ points of the sphere, kernels


def test_antipodal_points():
    top = unit(blobs(30) + 5)
    Y = np.concatenate([top, -top])
    model = estimator("intrinsic", 2, kernel="linear").fit(Y)
    assert same_partition(model.labels_, np.repeat([0, 1], 30))
    with pytest.raises(ValueError, match=r"cluster cancel, as antipodal points do.*more clusters"):
        estimator("intrinsic", 1, kernel="linear").fit(Y)
    flat = estimator("flat", 1, kernel="linear").fit(Y)  # of which the mean is the origin
    assert flat.inertia_ == pytest.approx(60)


def test_points_without_one_length_are_refused():
    X = blobs(30)
    with pytest.raises(ValueError, match=r"k\(x, x\) must be the same.*Normalized\(kernel\)"):
        estimator("intrinsic", kernel="linear").fit(X)
    model = estimator("intrinsic", kernel="linear").fit(unit(X))
    with pytest.raises(ValueError, match=r"row 1 of X and not 1"):
        model.predict([unit(X)[0], 2 * unit(X)[1]])
    with pytest.raises(ValueError, match=r"row \d of init"):
        estimator("intrinsic", kernel="linear", init=2 * X[:3]).fit(unit(X))


@pytest.mark.parametrize(
    "kernel", [Sigmoid(), Log(), lambda A, B: -gaussian(A, B)], ids=["sigmoid", "log", "negative"]
)
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_kernels_that_are_not_positive_definite(kernel, init):
    """Finite labels; one warning if labels kept changing, as points flee from their centres."""
    X = blobs(60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator("flat", 4, kernel=kernel, max_iter=25, init=init).fit(X)
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught)
    endless = [w for w in caught if "max_iter" in str(w.message)]
    assert len(endless) == (0 if model.converged_ else 1)
    assert np.isfinite(model.inertia_)
    assert np.all(np.isfinite(model.transform(X)))
    assert set(model.labels_) <= set(range(4))


class Broken(Gaussian):
    """A kernel of one's own, whose values are NaN."""

    def evaluate(self, a, b, out=None):
        return np.full_like(super().evaluate(a, b, out), np.nan)


def test_kernel_values_of_nan_are_refused():
    with pytest.raises(ValueError, match="Sums of kernel values are NaN or infinite"):
        estimator("flat", 3, kernel=Broken(sigma=1.0)).fit(blobs(40))


@every_laplacian
def test_sums_that_overflow(kind):
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=r"overflow in float64"):
        estimator(kind, kernel="precomputed").fit(np.full((5, 5), 1e308) + np.eye(5) * 1e307)


# ------------------------------------------------------------------ graphs


@graphs_only
def test_isolated_points_are_at_the_origin(laplacian):
    X = np.concatenate([blobs(30), [[1e4, 0, 0], [0, 1e4, 0]]])
    with pytest.warns(UserWarning, match=r"2 of the 32 .* have no similarity") as caught:
        model = estimator(laplacian).fit(X)
    assert caught[0].filename == __file__
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
def test_weights_that_are_not_counts(laplacian):
    X, shares = blobs(), np.full(150, 1 / 150)
    with pytest.raises(ValueError, match=r"weights below 1.*count copies"):
        estimator(laplacian).fit(X, sample_weight=shares)
    part = estimator("kernel-pca").fit(X, sample_weight=shares)
    whole = estimator("kernel-pca").fit(X)
    np.testing.assert_allclose(part.embedding_, whole.embedding_, rtol=0, atol=1e-10)


# ------------------------------------------------------------------ containers


@every_clustering
def test_frames(kind):
    frame = pd.DataFrame(blobs(), columns=list("abc"), index=np.arange(150) + 7)
    model, plain = estimator(kind).fit(frame), estimator(kind).fit(blobs())
    assert list(model.feature_names_in_) == list("abc")
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(placed(model, frame), placed(plain, blobs()))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("cba")])
    if kind in KINDS:
        distances = model.set_output(transform="pandas").transform(frame)
        assert list(distances.index) == list(frame.index)
        assert list(distances.columns) == list(model.get_feature_names_out())
        for init in (frame.iloc[:3], blobs()[:3]):
            given = estimator(kind, init=init).fit(frame)
            assert given.inertia_ == estimator(kind, init=blobs()[:3]).fit(blobs()).inertia_


@every_kind
def test_init_of_another_precision(kind):
    X = cloud(90, dtype=np.float32)
    plain = estimator(kind, 4, init=X[:4]).fit(X)
    double = estimator(kind, 4, init=X[:4].astype(np.float64)).fit(X)
    np.testing.assert_array_equal(plain.labels_, double.labels_)
    whole = estimator(kind, 4, init=np.round(X[:4]).astype(int)).fit(X)
    assert set(whole.labels_) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("preimage", r"Call X\.toarray\(\) if X is sparse.*'intrin"),
        ("mixture", r"sparse X\. Call X\.toarray"),
    ],
)
def test_sparse_data_that_are_refused(kind, message):
    X = scipy.sparse.csr_array(np.maximum(blobs(), 0))
    with pytest.raises(ValueError, match=message):
        estimator(kind).fit(X)


@every_clustering
def test_errors_of_a_kernel_name_the_row_of_the_caller(kind):
    X = blobs()
    X[17] = 1e155
    with pytest.raises(ValueError, match="row 17 are so large that their squares overflow"):
        estimator(kind).fit(X)
    X[17] = 0
    if kind != "preimage":
        with pytest.raises(ValueError, match="cannot normalise row 17"):
            estimator(kind, kernel=Normalized(Polynomial(degree=2, coef0=0.0))).fit(X)


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [
        (17, 17, -1.0, r"k\(x, x\) is -1 at row 17 of X"),
        (17, 17, 2.0, r"it is 2 at row 17 of X and 1 at row \d+"),
        (17, 5, 90.0, r"inner product of row (17|5) of the points"),
    ],
)
def test_errors_of_the_sphere_name_the_row_of_the_caller(row, column, value, message):
    gram = gaussian(blobs())
    gram[row, column] = gram[column, row] = value
    with pytest.raises(ValueError, match=message):
        estimator("intrinsic", kernel="precomputed").fit(gram)


# ------------------------------------------------------------------ parameters

BAD_INITS = [
    ("kmeans", "init of OWNER must be one of 'k-means\\+\\+', 'farthest-first'"),
    (np.ones((3, 2)), "init of OWNER .*2 features.* 3"),
    (np.full((3, 3), np.nan), "init of OWNER .*NaN"),
    (np.ones((2, 3)), "init of OWNER must have n_clusters=3 rows; got 2"),
    *[(init, "init of OWNER") for init in (np.ones(3), None, 3)],
]


@every_kind
def test_bad_inits(kind):
    """`fit` raises, not the constructor, and leaves nothing fitted."""
    for init, message in BAD_INITS:
        model = estimator(kind, init=init)
        with pytest.raises(ValueError, match=message.replace("OWNER", type(model).__name__)):
            model.fit(blobs())
        assert {name for name in vars(model) if name.endswith("_")} <= {"n_features_in_"}
        for method in methods_of(model):
            with pytest.raises(NotFittedError):
                method(blobs())


def test_bad_parameters_of_one_kind():
    model = estimator("preimage").set_params(centers="mean")
    with pytest.raises(ValueError, match=r"centers of Hyper.* must be one of 'preimage', 'intrin"):
        model.fit(blobs())
    for kernel in ("linear", "precomputed", Log(), gaussian, Normalized(Gaussian(sigma=1.0))):
        with pytest.raises(ValueError, match=r"needs a radial kernel .*intrinsic"):
            estimator("preimage", kernel=kernel).fit(gaussian(blobs()))
    for kind in ("flat", "intrinsic"):
        with pytest.raises(ValueError, match=r"init of .* must be one of .*; got 'bounding-box'"):
            estimator(kind, init="bounding-box").fit(blobs())
        with pytest.raises(ValueError, match=r"init of .* if the kernel is precomputed"):
            estimator(kind, kernel="precomputed", init=blobs(3)).fit(gaussian(blobs()))


@pytest.mark.parametrize("solver", ["dense", "auto", Dense()], ids=str)
def test_a_dense_problem_that_does_not_fit(solver):
    """Refused before the kernel is evaluated."""

    def kernel(A, B):
        raise AssertionError("evaluated")

    k = 3 if isinstance(solver, Dense) else 400
    model = estimator("njw", k, kernel=kernel, solver=solver, memory_budget="1MiB")
    with pytest.raises(ValueError, match=r"whole 1100 x 1100 matrix.*krylov"):
        model.fit(blobs(1100))


@every_clustering
def test_a_failing_refit_keeps_the_last_fit(kind):
    X, new = blobs(), blobs(20, seed=1)
    model = estimator(kind).fit(X)
    before, labels, names = placed(model, new), model.labels_.copy(), set(vars(model))
    count = "n_components" if kind == "mixture" else "n_clusters"
    changes = [
        ({count: 0}, X),
        ({count: 4}, X[:3]),
        ({"kernel": lambda A, B: np.ones(3)}, X),
        ({"kernel": Normalized(Linear())}, np.zeros((150, 4))),
        ({}, np.full((150, 4), np.nan)),
        ({}, 1e200 * np.arange(600.0).reshape(150, 4)),
    ]
    for change, data in changes:
        kept = {name: getattr(model, name) for name in change}
        with pytest.raises(ValueError, match=r".+"):
            model.set_params(**change).fit(data)
        vars(model).update(kept)
        np.testing.assert_array_equal(placed(model, new), before)
        np.testing.assert_array_equal(model.labels_, labels)
        assert set(vars(model)) == names


def test_a_refit_that_fails_at_the_very_end_keeps_the_last_fit():
    """A row of weight 0 that cannot be placed, after all the rest is done."""
    X = np.arange(1.0, 7.0)[:, None]
    model = estimator("njw", 2, kernel="linear").fit(X)
    before = model.embed(X)
    matrix = np.concatenate([X, [[-1.0]]]) @ np.concatenate([X, [[-1.0]]]).T
    model.set_params(kernel="precomputed")
    with pytest.raises(ValueError, match="of the new points"):
        model.fit(matrix, sample_weight=np.append(np.ones(6), 0.0))
    model.set_params(kernel="linear")
    np.testing.assert_array_equal(model.embed(X), before)


# ------------------------------------------------------------------ protocol


@every_laplacian
def test_diagnostics(kind):
    model = estimator(kind).fit(blobs())
    assert (model.solver_, model.n_iter_, model.converged_) == ("dense", 1, True)
    assert model.eigenvalues_.shape == model.residuals_.shape == (3,)
    assert model.embedding_.shape == (150, 3)
    assert model.cluster_centers_.shape == (3, 3)
    assert model.labels_.dtype == model.predict(blobs()).dtype == np.int32
    iterated = estimator(kind, solver=Krylov(1e-10, block_size=3, max_basis=1)).fit(blobs())
    assert iterated.solver_ == "krylov"
    assert iterated.n_iter_ == len(iterated.history_) > 1
    assert np.all(iterated.residuals_ <= 1e-10 * 1.001 * (1 + np.abs(model.eigenvalues_[0])))


@every_clustering
def test_non_convergence_is_one_warning(kind):
    X, options, detail = cloud(120), {"max_iter": 1, "init": "random"}, r"\d+ of 120"
    if kind in LAPLACIANS:
        X, options = blobs(800), {"max_iter": 1, "solver": "krylov", "tol": 0}
        detail = "largest relative residual"
    elif kind == "mixture":
        options, detail = {"max_iter": 1, "tol": 0.0}, "mean log-likelihood"
    model = estimator(kind, 3 if kind in LAPLACIANS else 6, **options)
    message = rf"{type(model).__name__}.*: stopped at max_iter \({detail}.*Raise max_iter"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model.fit(X)
    assert [warning.filename for warning in caught] == [__file__]
    assert (model.n_iter_, model.converged_) == (1, False)
    if kind in KINDS:
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-10)
    else:
        assert np.all(np.isfinite(placed(model, X)))


@pytest.mark.parametrize(
    ("kind", "options"),
    [(kind, {}) for kind in CLUSTERINGS] + [("njw", {"solver": "krylov"})],
    ids=str,
)
def test_callbacks_follow_the_fit(kind, options):
    recorder = Recorder()
    model = estimator(kind, **options).set_callbacks(recorder).fit(blobs(90))
    events = recorder.events
    assert events[:2] == ["setup", ("begin", "fit")]
    assert events[-2:] == [("end", "fit"), "teardown"]
    assert [event for event, _ in events[2:-2]] == ["begin", "end"] * 20
    np.testing.assert_array_equal(model.labels_, estimator(kind, **options).fit(blobs(90)).labels_)
