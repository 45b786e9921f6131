"""k-means of data of every kind: the right answer or a clear error, never NaN."""

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
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laws_cluster import blobs, gaussian, same_partition
from laws_kmeans import cloud, estimator, every_kind, gram_kinds
from laws_sphere import unit
from optional import optional
from orthodrome.kernels import Gaussian, Linear, Log, Normalized, Polynomial, Sigmoid

pd = optional("pandas")

# ------------------------------------------------------------------ degenerate data


@every_kind
def test_one_point(kind):
    model = estimator(kind, 1).fit([[1.0, 2.0]])
    np.testing.assert_array_equal(model.labels_, [0])
    np.testing.assert_array_equal(model.predict([[1.0, 2.0], [5.0, 5.0]]), [0, 0])
    assert model.inertia_ == pytest.approx(0, abs=1e-15)
    name = type(model).__name__
    with pytest.raises(ValueError, match=rf"n_clusters=2 of {name} .* n_samples=1\. Ask for fewer"):
        estimator(kind, 2).fit([[1.0, 2.0]])


@every_kind
def test_fewer_points_than_clusters(kind):
    with pytest.raises(ValueError, match=r"n_clusters=5 .*must not exceed .* n_samples=4"):
        estimator(kind, 5).fit(blobs(4))
    with pytest.raises(ValueError, match=r"n_clusters=5 .*must not exceed .* n_samples=4"):
        estimator(kind, 5).fit(blobs(9), sample_weight=np.arange(9) < 4)
    for init in ("k-means++", "farthest-first", "random", blobs(4)):
        model = estimator(kind, 4, init=init).fit(blobs(4))
        assert sorted(model.labels_) == [0, 1, 2, 3]
        assert model.inertia_ == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("init", ["k-means++", "farthest-first", "random", "given"])
@every_kind
def test_fewer_different_points_than_clusters(kind, init):
    """However the copies are written: each point is a cluster, and a warning says so."""
    X = 3 * blobs(4)
    init = np.repeat(X, 2, axis=0)[:6] if init == "given" else init
    message = r"found 4 of n_clusters=6 clusters: there are no more different points"
    with pytest.warns(ConvergenceWarning, match=message) as seen:
        repeated = estimator(kind, 6, init=init).fit(np.repeat(X, 3, axis=0))
    assert [warning.filename for warning in seen] == [__file__]
    with pytest.warns(ConvergenceWarning, match=message):
        weighted = estimator(kind, 6, init=init).fit(X, sample_weight=np.full(4, 3.0))
    assert sorted(weighted.labels_) == [0, 1, 2, 3]
    assert weighted.cluster_centers_.shape[0] == weighted.transform(X).shape[1] == 4
    np.testing.assert_array_equal(repeated.labels_, np.repeat(weighted.labels_, 3))
    np.testing.assert_array_equal(repeated.predict(X), weighted.labels_)
    assert repeated.inertia_ == pytest.approx(0, abs=1e-12)


@every_kind
def test_all_points_equal(kind):
    X = np.full((6, 2), 3.0)
    for kernel in (Gaussian(), Gaussian(sigma=0.1)):
        np.testing.assert_array_equal(estimator(kind, 1, kernel=kernel).fit(X).labels_, 0)
        with pytest.warns(ConvergenceWarning, match="found 1 of n_clusters=3"):
            model = estimator(kind, kernel=kernel).fit(X)
        np.testing.assert_array_equal(model.labels_, 0)
        assert np.all(np.isfinite(model.transform(X + 1)))


@every_kind
def test_constant_columns_change_nothing(kind):
    X = blobs(90)
    wide = np.column_stack([X, np.full(90, 7.0), np.zeros(90)])
    plain = estimator(kind).fit(X)
    np.testing.assert_array_equal(estimator(kind).fit(wide).labels_, plain.labels_)


@every_kind
def test_copies_have_one_label(kind):
    X = np.round(cloud(200), 0)
    model = estimator(kind, 6).fit(X)
    for row in np.unique(X, axis=0):
        assert len(set(model.labels_[np.all(row == X, axis=1)])) == 1
    assert set(model.labels_) == set(range(6))


@pytest.mark.parametrize("sigma", [1e-150, 1e-100, 1e-8, 1e-3, 1e3, 1e8, 1e150])
@every_kind
def test_any_scale_of_the_kernel(kind, sigma):
    X = blobs(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "KernelKMeans found . of", ConvergenceWarning)
        warnings.filterwarnings("ignore", "HypersphericalKMeans found . of", ConvergenceWarning)
        model = estimator(kind, kernel=Gaussian(sigma=sigma)).fit(X)
    assert np.isfinite(model.inertia_)
    assert np.all(np.isfinite(model.cluster_centers_))
    assert np.all(np.isfinite(model.transform(X)))
    assert model.converged_
    if kind == "preimage":  # clusters are those of the inputs at every scale
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        assert len(set(model.labels_)) == 3


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e140])
@every_kind
def test_any_scale_of_the_data(kind, scale):
    X = blobs(60)
    plain = estimator(kind, kernel=Gaussian()).fit(X)
    model = estimator(kind, kernel=Gaussian()).fit(scale * X)
    assert same_partition(model.labels_, plain.labels_)
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-9)


def test_antipodal_points():
    top = unit(blobs(30) + 5)
    Y = np.concatenate([top, -top])
    model = estimator("intrinsic", 2, kernel="linear").fit(Y)
    assert same_partition(model.labels_, np.repeat([0, 1], 30))
    with pytest.raises(ValueError, match=r"cluster cancel, as antipodal points do.*more clusters"):
        estimator("intrinsic", 1, kernel="linear").fit(Y)
    flat = estimator("flat", 1, kernel="linear").fit(Y)  # of which the mean is the origin
    assert flat.inertia_ == pytest.approx(60)


@pytest.mark.parametrize(
    "kernel", [Sigmoid(), Log(), lambda A, B: -gaussian(A, B)], ids=["sigmoid", "log", "negative"]
)
def test_kernels_that_are_not_positive_definite(kernel):
    """Finite labels, with or without a warning that labels kept changing."""
    X = blobs(60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator("flat", 4, kernel=kernel, max_iter=30).fit(X)
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught)
    assert np.isfinite(model.inertia_)
    assert model.converged_ == (not any("max_iter" in str(w.message) for w in caught))
    assert np.all(np.isfinite(model.transform(X)))
    assert set(model.labels_) <= set(range(4))


class Broken(Gaussian):
    """A kernel of one's own, with values that are none."""

    def evaluate(self, a, b, out=None):
        return np.full_like(super().evaluate(a, b, out), np.nan)


def test_kernel_values_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="Sums of kernel values are NaN or infinite"):
        estimator("flat", 3, kernel=Broken(sigma=1.0)).fit(blobs(40))


def test_an_iteration_that_need_not_end_is_one_warning():
    """Of a negative definite matrix points flee from their own centres."""
    K = -gaussian(blobs(40), sigma=1.0)
    model = estimator("flat", 4, kernel="precomputed", max_iter=25, init="random")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(K)
    messages = [str(w.message) for w in caught if "max_iter" in str(w.message)]
    assert len(messages) == (0 if model.converged_ else 1)
    assert model.n_iter_ <= 25


def test_non_convergence_is_one_warning():
    for kind in ("flat", "intrinsic", "preimage"):
        model = estimator(kind, 6, max_iter=1, init="random")
        message = r"KMeans: stopped at max_iter \(\d+ of 120 different points changed .*Raise max_"
        with pytest.warns(ConvergenceWarning, match=message) as seen:
            model.fit(cloud(120))
        assert [warning.filename for warning in seen] == [__file__]
        assert (model.n_iter_, model.converged_) == (1, False)
        np.testing.assert_array_equal(model.predict(cloud(120)), model.labels_)
        assert model.score(cloud(120)) == pytest.approx(-model.inertia_, rel=1e-10)


def test_points_without_one_length_are_refused():
    X = blobs(30)
    with pytest.raises(ValueError, match=r"k\(x, x\) must be the same.*Normalized\(kernel\)"):
        estimator("intrinsic", kernel="linear").fit(X)
    model = estimator("intrinsic", kernel="linear").fit(unit(X))
    with pytest.raises(ValueError, match=r"row 1 of X and not 1"):
        model.predict([unit(X)[0], 2 * unit(X)[1]])
    with pytest.raises(ValueError, match=r"row \d of init"):
        estimator("intrinsic", kernel="linear", init=2 * X[:3]).fit(unit(X))


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
@every_kind
def test_anything_finite_gives_something_finite(kind, X, k, sigma):
    k = min(k, len(X))
    model = estimator(kind, k, kernel=Gaussian(sigma=sigma)).fit(X)
    assert np.all(np.isfinite(model.cluster_centers_))
    assert np.all(np.isfinite(model.transform(X + 0.5)))
    assert set(model.labels_) == set(range(len(model.cluster_centers_)))
    assert model.inertia_ >= -1e-12
    inertias = [entry["inertia"] for entry in model.history_]
    assert np.all(np.diff(inertias) <= 1e-12 * (1 + inertias[0]))
    # of two centres that are equally near, either
    distances = model.transform(X) ** 2
    own = distances[np.arange(len(X)), model.labels_]
    assert np.all(own <= distances.min(axis=1) + 1e-12)


# ------------------------------------------------------------------ containers


@every_kind
def test_containers(kind, tmp_path):
    X = cloud(90)
    expected = estimator(kind, 4).fit(X)
    path = tmp_path / "X.npy"
    np.save(path, X)
    frozen = X.copy()
    frozen.setflags(write=False)
    kinds = (
        np.asfortranarray(X),
        X.tolist(),
        X.astype(">f8"),
        frozen,
        np.load(path, mmap_mode="r"),
        np.repeat(X, 2, axis=0)[::2],
        pd.DataFrame(X).to_numpy(),
    )
    for data in kinds:
        model = estimator(kind, 4).fit(data)
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        np.testing.assert_array_equal(model.predict(data), expected.labels_)
        assert model.inertia_ == expected.inertia_
    np.testing.assert_array_equal(X, cloud(90))


@every_kind
def test_frames(kind):
    frame = pd.DataFrame(blobs(), columns=list("abc"), index=np.arange(150) + 7)
    model = estimator(kind).fit(frame)
    assert list(model.feature_names_in_) == list("abc")
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    np.testing.assert_array_equal(model.labels_, estimator(kind).fit(blobs()).labels_)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("cba")])
    distances = model.set_output(transform="pandas").transform(frame)
    assert list(distances.index) == list(frame.index)
    assert list(distances.columns) == list(model.get_feature_names_out())
    given = estimator(kind, init=frame.iloc[:3]).fit(frame)
    np.testing.assert_array_equal(
        given.labels_, estimator(kind, init=blobs()[:3]).fit(blobs()).labels_
    )


@every_kind
def test_init_of_another_precision(kind):
    X = cloud(90, dtype=np.float32)
    init = X[:4]
    plain = estimator(kind, 4, init=init).fit(X)
    double = estimator(kind, 4, init=init.astype(np.float64)).fit(X)
    np.testing.assert_array_equal(plain.labels_, double.labels_)
    whole = estimator(kind, 4, init=np.round(init).astype(int)).fit(X)
    assert set(whole.labels_) == {0, 1, 2, 3}


def test_sparse_data_have_no_pre_images():
    X = scipy.sparse.csr_array(np.maximum(blobs(), 0))
    with pytest.raises(
        ValueError, match=r"not support sparse X: call X\.toarray\(\), or .*'intrin"
    ):
        estimator("preimage").fit(X)
    model = estimator("preimage").fit(X.toarray())
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@every_kind
def test_later_changes_of_the_data_do_not_reach_the_model(kind):
    X, new = blobs(), blobs(20, seed=1)
    model = estimator(kind).fit(X)
    before = model.transform(new)
    X[...] = 0
    np.testing.assert_array_equal(model.transform(new), before)
    model.fit_predict(blobs())[...] = 9
    assert 9 not in model.labels_


BAD_DATA = {
    "NaN": (np.where(np.arange(450).reshape(150, 3) == 7, np.nan, blobs()), "NaN"),
    "inf": (np.where(np.arange(450).reshape(150, 3) == 7, np.inf, blobs()), "infinity"),
    "complex": (blobs() * 1j, "[Cc]omplex"),
    "1-D": (blobs()[:, 0], "Expected 2D array, got 1D"),
    "3-D": (blobs()[None], "dim 3"),
    "no rows": (np.empty((0, 3)), "0 sample"),
    "no columns": (np.empty((5, 0)), "0 feature"),
    "words": ([["a", "b", "c"]] * 5, "could not convert|dtype"),
}


@pytest.mark.parametrize(("X", "message"), BAD_DATA.values(), ids=BAD_DATA)
@every_kind
def test_bad_data(kind, X, message):
    with pytest.raises(ValueError, match=message):
        estimator(kind).fit(X)
    model = estimator(kind).fit(blobs())
    for method in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match=rf"{message}|features"):
            method(X)


@gram_kinds
def test_bad_matrices(kind):
    for matrix, message in (
        (np.ones((3, 4)), "square"),
        (np.triu(np.ones((4, 4))), r"symmetric; entries \(\d, \d\)"),
        (np.full((4, 4), np.nan), "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator(kind, kernel="precomputed").fit(matrix)
    model = estimator(kind, kernel="precomputed").fit(gaussian(blobs()))
    with pytest.raises(ValueError, match=r"5 features.*150 features"):
        model.predict(np.ones((2, 5)))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        estimator(kind, kernel="precomputed").fit(scipy.sparse.csr_array(np.eye(5)))


@every_kind
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


BAD_PARAMETERS = [
    ({"n_clusters": 0}, "n_clusters of OWNER must be an integer >= 1; got 0"),
    ({"n_clusters": 2.0}, "n_clusters of OWNER must be an integer >= 1; got 2.0"),
    ({"n_clusters": True}, "n_clusters of OWNER must be an integer"),
    ({"kernel": "nonsense"}, "Unknown kernel 'nonsense'"),
    ({"kernel": Gaussian}, r"kernel=Gaussian of OWNER is a class; write Gaussian\(\)"),
    ({"kernel": Gaussian(sigma=0)}, "sigma of Gaussian must be a finite number > 0; got 0"),
    ({"kernel": Gaussian(sigma=1e-300)}, "sigma=1e-300 of Gaussian .*underflows"),
    ({"init": "kmeans"}, "init of OWNER must be one of 'k-means\\+\\+', 'farthest-first'"),
    ({"init": np.ones((3, 2))}, "init of OWNER has no centres of the data: .*2 features.* 3"),
    ({"init": np.full((3, 3), np.nan)}, "init of OWNER has no centres of the data: .*NaN"),
    ({"init": np.ones((2, 3))}, "init of OWNER must have n_clusters=3 rows; got 2"),
    ({"init": np.ones(3)}, "init of OWNER has no centres of the data"),
    ({"init": None}, "init of OWNER"),
    ({"init": 3}, "init of OWNER"),
    ({"max_iter": 0}, "max_iter of OWNER must be an integer >= 1"),
    ({"max_iter": 2.5}, "max_iter of OWNER must be an integer >= 1; got 2.5"),
    ({"n_init": 0}, "n_init of OWNER must be an integer >= 1"),
    ({"n_init": "auto"}, "n_init of OWNER must be an integer >= 1 .*; got 'auto'"),
    ({"memory_budget": "lots"}, "memory_budget of OWNER must be a number of bytes or a string"),
    ({"storage": "ram"}, "storage of OWNER must be one of 'auto', 'memory'"),
    ({"random_state": "seed"}, "random_state of OWNER must be an integer"),
    ({"verbose": -1}, "verbose of OWNER must be an integer >= 0"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS)
@every_kind
def test_bad_parameters(kind, parameters, message):
    """Refused by fit, not by the constructor; and nothing fitted is left behind."""
    model = estimator(kind, **parameters)
    with pytest.raises(ValueError, match=message.replace("OWNER", type(model).__name__)):
        model.fit(blobs())
    left = {name for name in vars(model) if name.endswith("_")}
    assert left <= {"n_features_in_"}  # set by scikit-learn's check of X
    for method in (model.predict, model.transform, model.score):
        with pytest.raises(NotFittedError):
            method(blobs())


def test_bad_parameters_of_one_kind():
    model = estimator("preimage").set_params(centers="mean")
    with pytest.raises(ValueError, match=r"centers of Hyper.* must be one of 'preimage', 'intrin"):
        model.fit(blobs())
    for kernel in ("linear", "precomputed", Log(), gaussian, Normalized(Gaussian(sigma=1.0))):
        with pytest.raises(ValueError, match=r"needs a radial kernel .* is none; centers='intrin"):
            estimator("preimage", kernel=kernel).fit(gaussian(blobs()))
    for kind in ("flat", "intrinsic"):
        with pytest.raises(ValueError, match=r"init of .* must be one of .*; got 'bounding-box'"):
            estimator(kind, init="bounding-box").fit(blobs())
        with pytest.raises(ValueError, match=r"init of .* if the kernel is precomputed"):
            estimator(kind, kernel="precomputed", init=blobs(3)).fit(gaussian(blobs()))
        with pytest.raises(ValueError, match="callable kernel must return the whole block"):
            estimator(kind, kernel=lambda A, B: np.ones(3)).fit(blobs())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"shape \(150,\), one weight per sample; got \(3,\)"),
        (np.where(np.arange(150) == 7, -1.0, 1.0), "must not be negative; entry 7 is -1"),
        (np.zeros(150), "must have a positive entry"),
    ],
)
@every_kind
def test_bad_weights(kind, weights, message):
    with pytest.raises(ValueError, match=message):
        estimator(kind).fit(blobs(), sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        estimator(kind).fit(blobs()).score(blobs(), sample_weight=weights)


@every_kind
def test_a_failing_refit_keeps_the_last_fit(kind):
    X, new = blobs(), blobs(20, seed=1)
    model = estimator(kind).fit(X)
    before, labels, names = model.transform(new), model.labels_.copy(), set(vars(model))
    changes = [
        ({"n_clusters": 0}, X),
        ({"init": np.ones((2, 3))}, X),
        ({"kernel": Normalized(Linear()), "init": "bounding-box"}, X),
        ({"n_clusters": 4}, X[:3]),
        ({}, np.full((150, 4), np.nan)),
        ({"n_clusters": 2}, 1e200 * np.arange(600.0).reshape(150, 4)),
    ]
    for change, data in changes:
        model.set_params(**change)
        with pytest.raises(ValueError, match=r".+"):
            model.fit(data)
        model.set_params(**{name: getattr(estimator(kind), name) for name in change})
        np.testing.assert_array_equal(model.transform(new), before)
        np.testing.assert_array_equal(model.labels_, labels)
        assert set(vars(model)) == names


# ------------------------------------------------------------------ protocol


@every_kind
def test_pickling_and_cloning(kind):
    X, new = blobs(), blobs(20, seed=1)
    model = estimator(kind).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(new), model.transform(new))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    copy = clone(model)
    assert not hasattr(copy, "kernel_")
    np.testing.assert_array_equal(copy.fit_predict(X), model.labels_)


@every_kind
def test_parameters_of_the_kernel(kind):
    """Searched by their names; `score` is what the search maximises."""
    search = GridSearchCV(estimator(kind), {"kernel__sigma": [1.0, 5.0]}, cv=2).fit(blobs(60))
    assert search.best_params_ == {"kernel__sigma": 5.0}  # all are near in a wide kernel
    pipeline = make_pipeline(StandardScaler(), estimator(kind)).fit(blobs())
    np.testing.assert_array_equal(pipeline.predict(blobs()), pipeline[-1].labels_)


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


@every_kind
def test_callbacks_see_the_fit_from_begin_to_end(kind):
    recorder = Recorder()
    model = estimator(kind).set_callbacks(recorder).fit(blobs(60))
    events = recorder.events
    assert events[:2] == ["setup", ("begin", "fit")]
    assert events[-2:] == [("end", "fit"), "teardown"]
    assert [event for event, _ in events[2:-2]] == ["begin", "end"] * 20
    np.testing.assert_array_equal(model.labels_, estimator(kind).fit(blobs(60)).labels_)
