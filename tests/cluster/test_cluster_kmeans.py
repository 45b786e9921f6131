"""Laws of k-means in feature space and on its sphere: twins, weights, order, storage, starts."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from laws_cluster import blobs, gaussian, rings, same_partition
from laws_kmeans import (
    cloud,
    equation_8,
    estimator,
    every_kind,
    geometry,
    sphere_kinds,
)
from laws_shapes import every_form, in_form, matrices, moved, near, three_leaves
from laws_shapes import two_kinds_of_matrices as two_kinds
from laws_sphere import DTYPES, slow_karcher_mean, unit
from orthodrome import HypersphericalKMeans, KernelKMeans
from orthodrome.gram import DenseGram
from orthodrome.kernels import (
    ComplexGaussian,
    Cosine,
    Embedded,
    FullProcrustes,
    Gaussian,
    Linear,
    LogEuclidean,
    Matern,
    Normalized,
    Polynomial,
    RationalQuadratic,
    RiemannianShape,
    VeroneseWhitney,
)
from orthodrome.metrics import clustering_error
from orthodrome.preimage.centers import PreimageCenters
from orthodrome.spaces import (
    centroid_size,
    extrinsic_mean,
    log_euclidean_mean,
    procrustes_distance,
)
from orthodrome.sphere import geodesic_distances, karcher_mean
from orthodrome.sphere.lloyd import lloyd, numbered_by_first
from real_data import load_or_skip

SIGMA = 1.5


# ------------------------------------------------------------------ against others


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(3))
def test_with_the_linear_kernel_it_is_k_means(seed, dtype, weighted):
    X, new = cloud(150, seed=seed, dtype=dtype), cloud(30, seed=9, dtype=dtype)
    w = np.random.default_rng(seed).uniform(0.5, 2, 150) if weighted else None
    init = X[np.random.default_rng(seed).choice(150, 5, replace=False)]
    plain = KMeans(5, init=init, n_init=1, tol=0, algorithm="lloyd").fit(
        X.astype(np.float64), sample_weight=w
    )
    model = KernelKMeans(5, kernel=Linear(), init=init).fit(X, sample_weight=w)
    assert same_partition(model.labels_, plain.labels_)
    tol = 1e-10 if dtype is np.float64 else 1e-5
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=tol)
    both = [np.concatenate([m.labels_, m.predict(new.astype(m_type))]) for m, m_type in
            ((model, dtype), (plain, np.float64))]  # fmt: skip
    assert same_partition(*both)
    found = np.sort(model.transform(new), axis=1)
    expected = np.sort(plain.transform(new.astype(np.float64)), axis=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 if dtype is np.float64 else 2e-3)
    assert model.transform(new).dtype == dtype


def test_curved_groups_in_the_right_feature_space():
    """Two rings, which a circle separates: a plane in the space of squares."""
    X, y = rings(200)
    squares = Embedded(lambda A: np.sum(np.asarray(A) ** 2, axis=1, keepdims=True), Linear())
    model = KernelKMeans(2, kernel=squares, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert (
        adjusted_rand_score(y, KernelKMeans(2, kernel="linear", random_state=0).fit(X).labels_)
        < 0.1
    )


@every_kind
def test_round_groups_are_separated(kind):
    y = np.arange(150) % 3
    centers = np.array([[0.0, 0.0], [6.0, 1.0], [0.0, 6.0]])
    X = centers[y] + np.random.default_rng(0).standard_normal((150, 2))
    for init in ("k-means++", "farthest-first", "random"):
        model = estimator(kind, kernel="gaussian", init=init, n_init=5).fit(X)
        assert clustering_error(y, model.labels_) < 0.02


@pytest.mark.parametrize("scale", [1.0, 7.5])
def test_intrinsic_centers_are_karcher_means(scale):
    """By the linear kernel of points on a sphere of any radius; against a slow descent."""
    Y = unit(blobs(90) + 1.0)
    options = {"centers": "intrinsic", "solver": "exact", "random_state": 0, "n_init": 3}
    model = HypersphericalKMeans(4, kernel="linear", **options)
    model.fit(scale * Y)
    w = np.ones(len(model.X_fit_))
    labels = model.predict(model.X_fit_)
    for c, coefficients in enumerate(model.cluster_centers_):
        members = labels == c
        mean = slow_karcher_mean(model.X_fit_[members] / scale, w[members])
        np.testing.assert_allclose(coefficients @ model.X_fit_ / scale, mean, rtol=0, atol=1e-8)
        angles = np.arccos(np.clip(Y @ mean, -1, 1))
        np.testing.assert_allclose(model.transform(scale * Y)[:, c], angles, rtol=0, atol=1e-7)


UNIT_KERNELS = {
    "gaussian": Gaussian(sigma=1.0),
    "matern": Matern(nu=1.5, sigma=1.0),
    "normalized": Normalized(Polynomial(degree=2)),
    "cosine": Cosine(),
    "scaled": lambda A, B: 3.7 * gaussian(A, B, 1.0),
    "callable": lambda A, B: gaussian(A, B, 1.0),
    "embedded": Embedded(np.abs, Gaussian(sigma=1.0)),
}


@pytest.mark.parametrize("kernel", UNIT_KERNELS.values(), ids=UNIT_KERNELS)
def test_gradients_of_intrinsic_centers_vanish(kernel):
    X = blobs(80) + 3
    model = estimator("intrinsic", kernel=kernel, solver="exact").fit(X)
    rows = model.X_fit_
    K = model.kernel_(rows).astype(np.float64)
    K /= K[0, 0]
    labels = model.predict(rows)
    for c, coefficients in enumerate(model.cluster_centers_):
        assert coefficients @ K @ coefficients == pytest.approx(1, abs=1e-12)
        members = np.flatnonzero(labels == c)
        cosines = np.clip(K @ coefficients, -1, 1)[members]
        theta = np.arccos(cosines)
        pulls = np.zeros(len(rows))
        pulls[members] = theta / np.sin(theta) / len(members)
        gradient = pulls - (pulls[members] @ cosines) * coefficients
        assert np.sqrt(max(gradient @ K @ gradient, 0)) <= 1e-8
        mean = karcher_mean(DenseGram(K[np.ix_(members, members)]))
        np.testing.assert_allclose(K[:, members] @ mean.point, K @ coefficients, atol=1e-8)
    angles = np.arccos(np.clip(K @ model.cluster_centers_.T, -1, 1))
    assert model.inertia_ == pytest.approx(np.sum(angles.min(axis=1) ** 2), rel=1e-9)
    np.testing.assert_allclose(model.transform(rows), angles, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", ["iris", "glass"])
def test_equation_8_vanishes_on_real_data(name):
    X = load_or_skip(name).data.astype(np.float64)
    kernel = Gaussian()
    model = HypersphericalKMeans(3, kernel=kernel, n_init=2, random_state=0).fit(X)
    for c, center in enumerate(model.cluster_centers_):
        members = X[model.labels_ == c]
        gradient = equation_8(members, np.ones(len(members)), center, model.kernel_.sigma_)
        assert np.linalg.norm(gradient) <= 1e-8


# ------------------------------------------------------------------ labels, inertia, distances


KERNELS = {"gaussian": Gaussian(sigma=1.0), "rational": RationalQuadratic(sigma=2.0, alpha=1.0)}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@every_kind
def test_methods_and_attributes_agree(kind, kernel):
    X, new = cloud(120), cloud(40, seed=1)
    w = np.random.default_rng(0).uniform(0.1, 2, len(X))
    model = estimator(kind, 5, kernel=kernel)
    labels = model.fit_predict(X, sample_weight=w)
    np.testing.assert_array_equal(labels, model.labels_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    distances = model.transform(X)
    np.testing.assert_array_equal(distances.argmin(axis=1), model.labels_)
    np.testing.assert_array_equal(model.transform(new).argmin(axis=1), model.predict(new))
    assert model.inertia_ == pytest.approx(w @ distances.min(axis=1) ** 2, rel=1e-10)
    assert model.score(X, sample_weight=w) == pytest.approx(-model.inertia_, rel=1e-10)
    assert model.score(new) == pytest.approx(-np.sum(model.transform(new).min(axis=1) ** 2))
    assert model.history_[-1]["inertia"] == model.inertia_
    inertias = [entry["inertia"] for entry in model.history_]
    assert np.all(np.diff(inertias) <= 1e-12 * inertias[0])
    assert (model.n_iter_, model.converged_) == (len(inertias), True)
    assert model.labels_.dtype == model.predict(X).dtype == np.int32
    assert list(model.get_feature_names_out()) == [
        f"{type(model).__name__.lower()}{i}" for i in range(5)
    ]


def test_distances_from_pre_images_are_angles():
    X, new = cloud(90), cloud(20, seed=1)
    model = estimator("preimage", 4).fit(X)
    expected = geodesic_distances(new, model.cluster_centers_, kernel=model.kernel_)
    np.testing.assert_allclose(model.transform(new), expected, rtol=0, atol=1e-12)


@every_kind
def test_the_best_start_is_kept(kind):
    """The first starts of many are those of fewer, so that more of them are never worse."""
    X = cloud(100)
    inertias = [estimator(kind, 6, n_init=n, random_state=3).fit(X).inertia_ for n in range(1, 7)]
    assert np.all(np.diff(inertias) <= 1e-12 * inertias[0])
    assert inertias[-1] < inertias[0] - 1e-6


@every_kind
def test_given_centers(kind):
    X = cloud(100)
    init = X[[3, 20, 50, 77]]
    model = estimator(kind, 4, init=init, random_state=0).fit(X)
    for seed in (1, None):
        other = estimator(kind, 4, init=init.tolist(), random_state=seed, n_init=9).fit(X)
        np.testing.assert_array_equal(other.labels_, model.labels_)
    rows = model.X_fit_  # all kinds of distance from an input grow with the straight one
    start = np.sum((rows[:, None] - init[None]) ** 2, axis=-1).argmin(axis=1)
    run = lloyd(geometry(kind, rows), [start], 4, max_iter=300)[0]
    np.testing.assert_array_equal(model.predict(rows), numbered_by_first(run.labels)[0])
    assert model.inertia_ == pytest.approx(run.inertia, rel=1e-12)
    far = estimator(kind, 4, init=X[[3, 3, 3, 3]] + 50 * np.eye(4, 3)).fit(X)
    assert set(far.labels_) == {0, 1, 2, 3}


def test_bounding_box_places_lie_in_the_box(monkeypatch):
    """And all over it: as often in one half as in the other."""
    X = cloud(60) + np.array([10, 0, -5])
    model = estimator("preimage", 5, init="bounding-box", n_init=40)
    drawn = []
    squared = PreimageCenters.squared

    def spied(centers, places):
        drawn.append(places)
        return squared(centers, places)

    monkeypatch.setattr(PreimageCenters, "squared", spied)
    monkeypatch.setattr("orthodrome.cluster.centers.lloyd", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(X)
    places = np.concatenate(drawn)
    assert places.shape == (200, 3)
    low, high = X.min(axis=0), X.max(axis=0)
    assert np.all(places >= low)
    assert np.all(places <= high)
    share = np.mean(places > (low + high) / 2, axis=0)
    assert np.all(np.abs(share - 0.5) < 0.12)
    assert len({places[5 * i].tobytes() for i in range(40)}) == 40


# ------------------------------------------------------------------ weights and order


@every_kind
def test_weights_times_a_constant(kind):
    X = cloud(80)
    one, two = (estimator(kind, 4).fit(X, sample_weight=np.full(80, value)) for value in (1.0, 2.0))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert two.inertia_ == pytest.approx(2 * one.inertia_, rel=1e-12)


# ------------------------------------------------------------------ one result, however computed


@pytest.mark.parametrize("most", [1, 1500])
@every_kind
def test_starts_one_after_the_other_or_side_by_side(kind, most, monkeypatch):
    X = cloud(90)
    together = estimator(kind, 5, n_init=4).fit(X)
    monkeypatch.setattr("orthodrome.sphere.lloyd._MAX_ENTRIES", most)
    alone = estimator(kind, 5, n_init=4).fit(X)
    np.testing.assert_array_equal(alone.labels_, together.labels_)
    assert alone.inertia_ == pytest.approx(together.inertia_, rel=1e-12)


# ------------------------------------------------------------------ limits


@sphere_kinds
def test_wide_kernels_give_k_means(kind):
    X = blobs(100)
    plain = KMeans(3, n_init=5, tol=0, random_state=0).fit(X)
    model = estimator(kind, kernel=Gaussian(sigma=1e3)).fit(X)
    assert same_partition(model.labels_, plain.labels_)
    assert model.inertia_ * 1e6 == pytest.approx(plain.inertia_, rel=1e-4)


def test_intrinsic_and_flat_agree_where_angles_are_small_only():
    X = blobs(100)
    errors = []
    for sigma in (1.0, 10.0, 100.0):
        flat, sphere = (
            estimator(kind, kernel=Gaussian(sigma=sigma)).fit(X) for kind in ("flat", "intrinsic")
        )
        errors.append(abs(sphere.inertia_ / flat.inertia_ - 1))
    assert errors[0] > 0.01
    assert errors[2] < 1e-3 < errors[0]
    assert errors[0] > errors[1] > errors[2]


def test_parameters_changed_after_a_fit_have_no_effect():
    X = blobs()
    for before, after in (("preimage", "intrinsic"), ("intrinsic", "preimage")):
        model = HypersphericalKMeans(3, centers=before, random_state=0).fit(X)
        labels, distances = model.predict(X), model.transform(X)
        model.set_params(centers=after)
        np.testing.assert_array_equal(model.predict(X), labels)
        np.testing.assert_array_equal(model.transform(X), distances)


# ------------------------------------------------------------------ shapes and matrices

MANIFOLD = [VeroneseWhitney, FullProcrustes, ComplexGaussian, LogEuclidean]
every_manifold = pytest.mark.parametrize("kernel", MANIFOLD)


def kinds_of(kernel):
    """Specimens of a few kinds, their names, and how many there are."""
    if kernel is LogEuclidean:
        return *two_kinds(24), 2
    return *three_leaves(45, spread=0.1), 3


@every_manifold
def test_centers_are_specimens_and_the_best_of_all(kernel):
    X, y, k = kinds_of(kernel)
    model = HypersphericalKMeans(k, kernel=kernel(), n_init=3, random_state=0).fit(X)
    assert same_partition(model.labels_, y)
    assert model.converged_
    assert model.cluster_centers_.shape == (k, *X.shape[1:])
    assert model.cluster_centers_.dtype == X.dtype
    angles = np.arccos(model.kernel_(X, model.cluster_centers_))
    np.testing.assert_allclose(model.transform(X), angles, atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(angles.argmin(axis=1), model.labels_)
    assert model.inertia_ == pytest.approx(np.sum(angles.min(axis=1) ** 2), rel=1e-9)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-9)
    for cluster in range(k):
        members = X[model.labels_ == cluster]
        between = np.arccos(np.clip(model.kernel_(members), -1, 1))
        own = np.sum(angles[model.labels_ == cluster, cluster] ** 2)
        assert own <= np.sum(between**2, axis=1).min()


@every_form
@pytest.mark.parametrize("kernel", ["veronese_whitney", "complex_gaussian"])
def test_centers_have_the_form_of_the_landmarks(form, kernel):
    X, y, k = kinds_of(VeroneseWhitney)
    given, new = in_form(X, form), in_form(moved(X, 3), form)
    model = HypersphericalKMeans(k, kernel=kernel, init=given[[0, 25, 40]]).fit(given)
    expected = HypersphericalKMeans(k, kernel=kernel, init=X[[0, 25, 40]]).fit(X)
    np.testing.assert_allclose(
        model.cluster_centers_, in_form(expected.cluster_centers_, form), atol=1e-12
    )
    np.testing.assert_allclose(centroid_size(model.cluster_centers_), 1.0, rtol=1e-12)
    assert same_partition(model.predict(new), y)
    np.testing.assert_allclose(model.transform(new), expected.transform(X), atol=1e-7)


def test_flat_matrices_have_flat_centers():
    X, _, k = kinds_of(LogEuclidean)
    whole, flat = (
        HypersphericalKMeans(k, kernel="log_euclidean", n_init=2, random_state=0).fit(Z)
        for Z in (X, X.reshape(len(X), -1))
    )
    np.testing.assert_array_equal(flat.cluster_centers_, whole.cluster_centers_.reshape(k, -1))
    np.testing.assert_array_equal(flat.predict(X.reshape(len(X), -1)), whole.labels_)


@every_manifold
def test_the_center_of_one_shape_is_that_shape(kernel):
    A, B = (matrices(2) if kernel is LogEuclidean else near(2, spread=0.5))[:, None]
    X = np.concatenate([np.repeat(A, 5, axis=0), np.repeat(B, 4, axis=0)])
    X = X if kernel is LogEuclidean else moved(X)
    model = HypersphericalKMeans(2, kernel=kernel(1.0), n_init=2, random_state=0).fit(X)
    assert same_partition(model.labels_, np.repeat([0, 1], [5, 4]))
    assert model.inertia_ < 1e-13
    found = model.cluster_centers_[model.labels_[[0, 5]]]
    if kernel is LogEuclidean:
        np.testing.assert_allclose(found, np.concatenate([A, B]), rtol=1e-10)
    else:
        assert np.diagonal(procrustes_distance(found, X[[0, 5]])).max() < 1e-10


@pytest.mark.parametrize("kernel", [VeroneseWhitney, LogEuclidean])
def test_under_wide_kernels_centers_are_means(kernel):
    X, _, k = kinds_of(kernel)
    model = HypersphericalKMeans(k, kernel=kernel(1e3), n_init=2, random_state=0).fit(X)
    for cluster, center in enumerate(model.cluster_centers_):
        members = X[model.labels_ == cluster]
        if kernel is LogEuclidean:
            np.testing.assert_allclose(center, log_euclidean_mean(members), rtol=1e-5)
        else:
            assert procrustes_distance(center[None], extrinsic_mean(members)[None])[0, 0] < 1e-5


@every_manifold
def test_specimens_weights_are_copies_in_any_order(kernel):
    X, _, k = kinds_of(kernel)
    w = np.arange(len(X)) % 3
    order = np.random.default_rng(0).permutation(int(w.sum()))
    model = HypersphericalKMeans(k, kernel=kernel(), n_init=2, random_state=0)
    weighted = clone(model).fit(X, sample_weight=w)
    copied = model.fit(np.repeat(X, w, axis=0)[order])
    np.testing.assert_array_equal(weighted.cluster_centers_, copied.cluster_centers_)
    assert weighted.inertia_ == copied.inertia_


@pytest.mark.parametrize("kernel", [VeroneseWhitney, LogEuclidean])
def test_specimens_in_single_precision(kernel):
    X, y, k = kinds_of(kernel)
    narrow = X.astype(np.float32 if kernel is LogEuclidean else np.complex64)
    model = HypersphericalKMeans(k, kernel=kernel(), n_init=2, random_state=0).fit(narrow)
    assert model.cluster_centers_.dtype == narrow.dtype
    assert same_partition(model.predict(narrow), y)


@pytest.mark.filterwarnings("ignore:RiemannianShape is not positive definite")
def test_kernels_of_specimens_without_preimages():
    shapes, A = near(12, spread=0.3), matrices(12)
    embedded = Embedded(lambda X: X.reshape(len(X), -1), Gaussian(10.0))
    for kernel, X in ((RiemannianShape(), shapes), (embedded, A)):
        message = f"got {type(kernel).__name__}.*intrinsic"
        with pytest.raises(ValueError, match=message):
            HypersphericalKMeans(2, kernel=kernel).fit(X)
        model = HypersphericalKMeans(2, kernel=kernel, centers="intrinsic", random_state=0).fit(X)
        assert model.cluster_centers_.shape == (2, 12)
    with pytest.raises(ValueError, match=r"init='bounding-box' .* needs vectors"):
        HypersphericalKMeans(2, kernel="veronese_whitney", init="bounding-box").fit(shapes)
