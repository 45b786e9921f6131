"""k-means on Nyström features, flat and on the sphere."""

import pickle
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from laws_cluster import blobs, same_partition
from orthodrome import GeodesicMixture, HypersphericalKMeans, KernelKMeans, load, save
from orthodrome.eigen import Krylov, Nystroem
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial, VeroneseWhitney

K = 3
KERNEL = Gaussian(sigma=1.5)
WEIGHTS = np.random.default_rng(3).integers(0, 4, size=150)
every_storage = pytest.mark.parametrize("storage", ["memory", "disk", "recompute"])
every_estimator = pytest.mark.parametrize("Estimator", [KernelKMeans, HypersphericalKMeans])


def fit(Estimator, X, weights=None, n_clusters=K, **options):
    given = {"kernel": KERNEL, "solver": "nystroem", "random_state": 0}
    if Estimator is HypersphericalKMeans:
        given["centers"] = "intrinsic"
    return Estimator(n_clusters, **(given | options)).fit(X, sample_weight=weights)


def positive(n=150, dtype=np.float64, seed=0):
    """Blobs whose directions lie in a hemisphere."""
    return np.abs(blobs(n, dtype, seed)) + 0.1


def suited(kernel, Estimator):
    return Normalized(kernel) if Estimator is HypersphericalKMeans else kernel


# ------------------------------------------------------------------ beside the exact method


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2)], ids=["linear", "polynomial"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("init", ["k-means++", "farthest-first", "random", "given"])
@every_estimator
def test_with_as_many_anchors_as_the_rank_it_is_the_exact_method(Estimator, init, weights, kernel):
    X, new = positive(), positive(60, seed=1)
    options = {"kernel": suited(kernel, Estimator), "init": X[[0, 80, 140]]}
    options |= {} if init == "given" else {"init": init}
    ours = fit(Estimator, X, weights, n_anchors=40, **options)
    exact = fit(Estimator, X, weights, solver="exact", **options)
    assert ours.n_anchors_ == len(ours.X_fit_) == ours.cluster_centers_.shape[1] < 12
    np.testing.assert_array_equal(ours.X_fit_, X[ours.anchor_indices_])
    np.testing.assert_array_equal(ours.labels_, exact.labels_)
    assert ours.inertia_ == pytest.approx(exact.inertia_, rel=1e-8)
    assert ours.history_[-1]["inertia"] == pytest.approx(exact.history_[-1]["inertia"], rel=1e-8)
    for data in (X, new):
        np.testing.assert_allclose(ours.transform(data), exact.transform(data), atol=1e-8)
        np.testing.assert_array_equal(ours.predict(data), exact.predict(data))
        assert ours.score(data) == pytest.approx(exact.score(data), rel=1e-8)
    assert exact.n_anchors_ is None


@every_estimator
def test_with_all_rows_as_anchors_the_training_data_are_exact(Estimator):
    X = blobs()
    ours, exact = (fit(Estimator, X, solver=solver) for solver in ("nystroem", "exact"))
    np.testing.assert_array_equal(ours.labels_, exact.labels_)
    np.testing.assert_allclose(ours.transform(X), exact.transform(X), atol=1e-8)
    assert ours.inertia_ == pytest.approx(exact.inertia_, rel=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_storage
def test_few_anchors_are_k_means_of_explicit_features(storage, dtype):
    X = blobs(dtype=dtype)
    ours = fit(KernelKMeans, X, WEIGHTS, n_anchors=20, storage=storage)
    k, S = ours.kernel_, ours.anchor_indices_
    wide = X.astype(np.float64)
    F = k(wide, wide[S]) @ np.linalg.inv(np.linalg.cholesky(k(wide[S]))).T
    naive = KMeans(K, n_init=20, tol=0, random_state=1).fit(F, sample_weight=WEIGHTS)
    assert same_partition(ours.labels_, naive.labels_)
    left_out = WEIGHTS @ (1 - np.square(F).sum(axis=1))
    tol = 1e-8 if dtype == np.float64 else 1e-3
    assert left_out > 0.5
    assert ours.inertia_ == pytest.approx(naive.inertia_ + left_out, rel=tol)
    centers = np.array(
        [np.average(F, axis=0, weights=WEIGHTS * (ours.labels_ == c)) for c in (0, 1, 2)]
    )
    squared = 1 - 2 * F @ centers.T + np.square(centers).sum(axis=1)
    np.testing.assert_allclose(ours.transform(X), np.sqrt(squared), atol=tol)
    assert ours.transform(X).dtype == dtype
    assert ours.score(X, sample_weight=WEIGHTS) == pytest.approx(-ours.inertia_, rel=tol)


@every_storage
def test_few_anchors_on_the_sphere_of_unit_features(storage):
    X = blobs()
    ours = fit(HypersphericalKMeans, X, n_anchors=20, storage=storage)
    k, S = ours.kernel_, ours.anchor_indices_
    G = k(X, X[S]) @ np.linalg.inv(k(X[S])) @ k(X[S], X)
    lengths = np.sqrt(np.diagonal(G))
    assert lengths.min() < 0.98
    exact = fit(
        HypersphericalKMeans, G / np.outer(lengths, lengths), kernel="precomputed", solver="exact"
    )
    assert same_partition(ours.labels_, exact.labels_)
    assert ours.inertia_ == pytest.approx(exact.inertia_, rel=1e-8)
    assert ours.score(X) == pytest.approx(-ours.inertia_, rel=1e-8)
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)


# ------------------------------------------------------------------ weights, order, input


@every_estimator
def test_weights_are_repetition_and_order_does_not_matter(Estimator):
    X, new = blobs(), blobs(50, seed=1)
    rows = np.repeat(np.arange(150), WEIGHTS)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    weighted = fit(Estimator, X, WEIGHTS, n_anchors=30)
    repeated = fit(Estimator, X[rows], n_anchors=30)
    np.testing.assert_array_equal(weighted.X_fit_, repeated.X_fit_)
    np.testing.assert_array_equal(repeated.labels_, weighted.labels_[rows])
    np.testing.assert_allclose(repeated.transform(new), weighted.transform(new), atol=1e-12)
    assert repeated.inertia_ == pytest.approx(weighted.inertia_, rel=1e-12)


@every_estimator
def test_given_matrices_sparse_rows_shapes_and_points_as_anchors(Estimator):
    X, new = blobs(), blobs(50, seed=1)
    plain = fit(Estimator, X, n_anchors=30)
    sparse = fit(Estimator, scipy.sparse.csr_array(X), n_anchors=30)
    np.testing.assert_allclose(
        sparse.transform(scipy.sparse.csr_array(new)), plain.transform(new), atol=1e-7
    )
    points = fit(Estimator, X, solver=Nystroem(anchors=plain.X_fit_))
    np.testing.assert_array_equal(points.labels_, plain.labels_)
    np.testing.assert_allclose(points.transform(new), plain.transform(new), atol=1e-7)
    assert points.anchor_indices_ is None
    given = fit(Estimator, KERNEL(X), kernel="precomputed", n_anchors=30)
    assert given.X_fit_ is None
    same = fit(Estimator, X, solver=Nystroem(anchors=X[given.anchor_indices_]))
    assert same_partition(given.labels_, same.labels_)
    assert given.inertia_ == pytest.approx(same.inertia_, rel=1e-8)
    assert same_partition(given.predict(KERNEL(new, X)), same.predict(new))
    shapes = np.random.default_rng(0).standard_normal((40, 6, 2))
    model = fit(Estimator, shapes, kernel=VeroneseWhitney(), n_anchors=15)
    assert model.X_fit_.shape[0] == 15
    np.testing.assert_array_equal(model.predict(shapes), model.labels_)


@every_estimator
def test_where_it_stands_in_auto(Estimator, monkeypatch):
    X = blobs()
    assert fit(Estimator, X, solver="auto").n_anchors_ is None
    assert fit(Estimator, X, solver="auto", n_anchors=20).n_anchors_ == 20
    assert fit(Estimator, X, solver="exact", n_anchors=20).n_anchors_ is None
    rule = sys.modules["orthodrome.eigen.leading"]
    monkeypatch.setattr(rule, "_DENSE_ROWS", 10)
    monkeypatch.setattr(rule, "_KRYLOV_ROWS", 100)
    assert fit(Estimator, X, solver="auto").n_anchors_ is not None
    # different rows are counted, so that weights are repetition
    assert fit(Estimator, np.tile(X[:90], (2, 1)), solver="auto").n_anchors_ is None


def test_pre_images_need_no_features_of_many_rows(monkeypatch):
    X = blobs()
    exact = HypersphericalKMeans(K, kernel=Gaussian(sigma=2.0), random_state=0).fit(X)
    rule = sys.modules["orthodrome.eigen.leading"]
    monkeypatch.setattr(rule, "_DENSE_ROWS", 10)
    monkeypatch.setattr(rule, "_KRYLOV_ROWS", 100)
    many = HypersphericalKMeans(K, kernel=Gaussian(sigma=2.0), random_state=0).fit(X)
    assert many.n_anchors_ is None
    np.testing.assert_array_equal(many.cluster_centers_, exact.cluster_centers_)


@every_estimator
def test_what_is_refused(Estimator):
    X = blobs()
    for solver in ("krylov", Krylov(), None):
        with pytest.raises(ValueError, match=r"solver of \w+KMeans must be"):
            fit(Estimator, X, solver=solver)
    with pytest.raises(ValueError, match="n_anchors of"):
        fit(Estimator, X, n_anchors=0)
    with pytest.raises(ValueError, match="must not exceed"):
        fit(Estimator, X[:2], n_anchors=5)
    with pytest.raises(ValueError, match="intrinsic"):
        HypersphericalKMeans(2, n_anchors=5).fit(X)
    with pytest.warns(ConvergenceWarning, match="Raise n_anchors"):
        few = fit(Estimator, X, solver=Nystroem(n_anchors=5, tol=1e-4, random_state=0))
    assert not few.converged_


@every_estimator
def test_files(Estimator, tmp_path):
    X, new = blobs(), blobs(50, seed=1)
    model = fit(Estimator, X, n_anchors=30)
    expected = model.transform(new)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(new), expected)
    save(model, tmp_path / "model.orthodrome")
    np.testing.assert_array_equal(load(tmp_path / "model.orthodrome").transform(new), expected)


# ------------------------------------------------------------------ where it is hard


@every_estimator
def test_degenerate_data(Estimator):
    assert fit(Estimator, np.full((1, 2), 3.0), n_clusters=1).labels_.tolist() == [0]
    with pytest.warns(ConvergenceWarning, match="found 1 of"):
        fit(Estimator, np.ones((7, 2)), n_clusters=2)
    two = np.repeat([[0.0, 0.0], [1.0, 1.0]], [5, 3], axis=0)
    ours = fit(Estimator, two, n_clusters=2, n_anchors=20)
    assert ours.n_anchors_ == 2
    assert same_partition(ours.labels_, np.repeat([0, 1], [5, 3]))
    assert ours.inertia_ == pytest.approx(0, abs=1e-12)


def test_antipodes():
    """Flat means of antipodes are 0; on the sphere a cluster of them has no mean."""
    circle = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    flat = fit(KernelKMeans, circle, kernel="linear", n_clusters=1)
    assert flat.inertia_ == pytest.approx(4)
    with pytest.raises(ValueError, match="cancel"):
        fit(HypersphericalKMeans, circle, kernel="linear", n_clusters=1)
    apart = fit(HypersphericalKMeans, circle[:2], kernel="linear", n_clusters=2)
    assert apart.labels_.tolist() == [1, 0]


def test_a_point_that_no_anchor_shows_has_no_direction():
    X = np.concatenate([[[90.0, 90.0, 90.0]], blobs()])
    solver = Nystroem(anchors=blobs()[::3])
    with pytest.raises(ValueError, match="Row 0 of X is orthogonal to all anchors"):
        fit(HypersphericalKMeans, X, solver=solver)
    with pytest.raises(ValueError, match="Row 0 of X is orthogonal to all anchors"):
        GeodesicMixture(2, kernel=KERNEL, solver=solver).fit(X)
    model = fit(HypersphericalKMeans, X[1:], solver=solver)
    with pytest.raises(ValueError, match="orthogonal to all anchors"):
        model.predict(X[:1])
    assert len(fit(KernelKMeans, X, solver=solver).labels_) == 151
