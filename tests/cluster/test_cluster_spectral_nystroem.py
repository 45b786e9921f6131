"""Spectral clustering on Nyström features."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from laws_cluster import (
    blobs,
    every_laplacian,
    graphs_only,
    moons,
    naive_embedding,
    naive_labels,
    same_partition,
    up_to_sign,
)
from orthodrome import KernelSpectralClustering, load, save
from orthodrome.coordinates import anchor_coordinates, choose_anchors
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian, Polynomial, Power
from orthodrome.metrics import variation_of_information

K = 3
KERNEL = Gaussian(sigma=1.5)
WEIGHTS = np.random.default_rng(3).integers(0, 4, size=150)
every_storage = pytest.mark.parametrize("storage", ["memory", "disk", "recompute"])


def fit(X, laplacian="njw", weights=None, n_clusters=K, **options):
    given = {"kernel": KERNEL, "solver": "nystroem", "n_init": 4, "random_state": 0}
    model = KernelSpectralClustering(n_clusters, laplacian=laplacian, **(given | options))
    return model.fit(X, sample_weight=weights)


def positive(n=150, dtype=np.float64, seed=0):
    """Blobs whose inner products are positive, as similarities are."""
    return np.abs(blobs(n, dtype, seed))


def check_same(one, other, new, tol=1e-8):
    for name in ("eigenvalues_", "embedding_", "cluster_centers_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=tol, atol=tol)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.embed(new), other.embed(new), rtol=0, atol=tol)
    np.testing.assert_array_equal(one.predict(new), other.predict(new))


# ------------------------------------------------------------------ beside the exact method


@pytest.mark.parametrize("kernel", ["linear", Polynomial(degree=2)], ids=["linear", "polynomial"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@every_laplacian
def test_with_as_many_anchors_as_the_rank_it_is_the_exact_method(laplacian, weights, kernel):
    X, new = positive(), positive(60, seed=1)
    ours = fit(X, laplacian, weights, kernel=kernel, n_anchors=40)
    exact = fit(X, laplacian, weights, kernel=kernel, solver="dense")
    assert ours.solver_ == "nystroem"
    assert ours.n_anchors_ == len(ours.X_fit_) == len(ours.anchor_indices_) < 12
    np.testing.assert_array_equal(ours.X_fit_, X[ours.anchor_indices_])
    check_same(ours, exact, new)


@every_laplacian
def test_with_all_rows_as_anchors_the_training_data_are_exact(laplacian):
    X = blobs()
    ours, exact = (fit(X, laplacian, solver=solver) for solver in ("nystroem", "dense"))
    np.testing.assert_allclose(ours.embedding_, exact.embedding_, atol=1e-8)
    np.testing.assert_array_equal(ours.labels_, exact.labels_)
    np.testing.assert_allclose(ours.embed(X), exact.embedding_, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_storage
@every_laplacian
def test_few_anchors_against_the_naive_twin(laplacian, storage, dtype):
    """The naive way, of the Gram matrix that the features have."""
    X = blobs(dtype=dtype)
    ours = fit(X, laplacian, n_anchors=40, storage=storage, n_init=20)
    S = ours.anchor_indices_
    k = ours.kernel_
    X = X.astype(np.float64)
    G = k(X, X[S]) @ np.linalg.inv(k(X[S])) @ k(X[S], X)
    values, rows = naive_embedding(G, K, laplacian)
    tol = 1e-8 if dtype == np.float64 else 1e-2
    np.testing.assert_allclose(ours.eigenvalues_, values, rtol=tol)
    np.testing.assert_allclose(ours.embedding_, up_to_sign(ours.embedding_, rows), atol=tol)
    assert same_partition(ours.labels_, naive_labels(G, K, laplacian))
    assert ours.embedding_.dtype == ours.embed(X.astype(dtype)).dtype == dtype
    np.testing.assert_allclose(ours.embed(X.astype(dtype)), ours.embedding_, atol=tol)
    np.testing.assert_array_equal(ours.predict(X.astype(dtype)), ours.labels_)


def test_moons_are_told_apart():
    X, y = moons(1500)
    ours = fit(X, n_clusters=2, kernel=Gaussian(sigma=0.15), n_anchors=150)
    assert variation_of_information(y, ours.labels_) == 0
    new, expected = moons(400, seed=1)
    assert variation_of_information(expected, ours.predict(new)) < 0.05
    assert ours.history_[0]["trace_error"] < 0.05
    assert ours.converged_


# ------------------------------------------------------------------ weights, order, input


@every_laplacian
def test_weights_are_repetition_and_order_does_not_matter(laplacian):
    X, new = blobs(), blobs(50, seed=1)
    rows = np.repeat(np.arange(150), WEIGHTS)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    weighted = fit(X, laplacian, WEIGHTS, n_anchors=30)
    repeated = fit(X[rows], laplacian, n_anchors=30)
    np.testing.assert_array_equal(weighted.X_fit_, repeated.X_fit_)
    np.testing.assert_allclose(repeated.embedding_, weighted.embedding_[rows], atol=1e-12)
    np.testing.assert_array_equal(repeated.labels_, weighted.labels_[rows])
    np.testing.assert_allclose(repeated.embed(new), weighted.embed(new), atol=1e-12)


@every_laplacian
def test_given_matrices_and_sparse_rows(laplacian):
    X, new = blobs(), blobs(50, seed=1)
    plain = fit(X, laplacian, n_anchors=30)
    sparse = fit(scipy.sparse.csr_array(X), laplacian, n_anchors=30)
    np.testing.assert_array_equal(plain.anchor_indices_, sparse.anchor_indices_)
    np.testing.assert_allclose(sparse.embed(scipy.sparse.csr_array(new)), plain.embed(new))
    rows = Nystroem(anchors=plain.anchor_indices_ * 0 + np.arange(plain.n_anchors_))
    by_rows = fit(X, laplacian, solver=Nystroem(anchors=X[plain.anchor_indices_]))
    np.testing.assert_allclose(by_rows.embed(new), plain.embed(new), atol=1e-7)
    assert by_rows.anchor_indices_ is None
    given = fit(KERNEL(X), laplacian, kernel="precomputed", solver=rows)
    assert given.n_anchors_ == plain.n_anchors_
    S = given.anchor_indices_
    same = fit(X, laplacian, solver=Nystroem(anchors=X[S]))
    np.testing.assert_allclose(given.embedding_, same.embedding_, atol=1e-7)
    np.testing.assert_allclose(given.embed(KERNEL(new, X)), same.embed(new), atol=1e-7)


def test_where_it_stands_in_auto():
    X = blobs()
    assert fit(X, solver="auto").solver_ == "dense"
    assert fit(X, solver="auto").n_anchors_ is None
    assert fit(X, solver="auto", n_anchors=20).solver_ == "nystroem"
    with pytest.raises(ValueError, match="n_anchors of KernelSpectralClustering"):
        fit(X, n_anchors=0)


def test_files_and_a_fit_after_another(tmp_path):
    X, new = blobs(), blobs(50, seed=1)
    model = fit(X, n_anchors=30)
    expected = model.embed(new)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).embed(new), expected)
    save(model, tmp_path / "model.orthodrome")
    np.testing.assert_array_equal(load(tmp_path / "model.orthodrome").embed(new), expected)
    exact = model.set_params(solver="dense").fit(X)
    assert exact.n_anchors_ is None
    np.testing.assert_allclose(exact.embed(new), fit(X, solver="dense").embed(new))


# ------------------------------------------------------------------ where it is hard


@every_laplacian
def test_degenerate_data(laplacian):
    assert fit(np.full((1, 2), 3.0), laplacian, n_clusters=1).labels_.tolist() == [0]
    with pytest.warns(ConvergenceWarning, match="found 1 of"):
        fit(np.ones((7, 2)), laplacian, n_clusters=2)
    two = np.repeat([[0.0, 0.0], [1.0, 1.0]], [5, 3], axis=0)
    ours = fit(two, laplacian, n_clusters=2, n_anchors=20)
    assert ours.n_anchors_ == 2
    assert same_partition(ours.labels_, np.repeat([0, 1], [5, 3]))


@graphs_only
def test_points_that_the_anchors_do_not_show(laplacian):
    """Their degrees are rounding of either sign: isolated, and the others are not disturbed."""
    X = np.concatenate([blobs(), [[60.0, 60.0, 60.0], [90.0, 0.0, 0.0]]])
    solver = Nystroem(anchors=np.arange(0, 150, 3))
    with pytest.warns(UserWarning, match="anchors show.*take more anchors"):
        ours = fit(X, laplacian, solver=solver, random_state=1)
    assert not ours.embedding_[150:].any()
    without = fit(blobs(), laplacian, solver=solver, random_state=1)
    assert same_partition(ours.labels_[:150], without.labels_)


@graphs_only
def test_degrees_below_what_the_anchors_leave_out_are_refused(laplacian):
    X = blobs() - 2.0
    with pytest.raises(ValueError, match=r"degree of row .* below 0"):
        fit(X, laplacian, kernel="linear")
    with pytest.raises(ValueError, match="not positive definite"):
        fit(X, laplacian, kernel=Power(), n_anchors=20)


def test_the_tolerance_is_that_of_the_trace():
    X = blobs()
    loose = fit(X, tol=0.1)
    assert loose.n_anchors_ < 60
    assert loose.history_[0]["trace_error"] <= 0.1
    assert loose.converged_
    with pytest.warns(ConvergenceWarning, match="stopped at n_anchors.*Raise n_anchors"):
        few = fit(X, tol=1e-3, n_anchors=5)
    assert not few.converged_
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
        fit(blobs(1200), n_anchors=50, max_iter=1)


def test_the_uncertainty_of_degrees_is_a_bound():
    from orthodrome._core.canonical import canonical_rows
    from orthodrome.base import rows_of
    from orthodrome.decomposition.view import view_of
    from orthodrome.plan import Request, make_plan

    X = blobs()
    kernel = Gaussian(sigma=0.5).fit(X)
    canonical = canonical_rows(X, WEIGHTS.astype(float))
    for count in (5, 40, 110):
        request = Request("a test", K, Nystroem(n_anchors=count, random_state=0))
        plan = make_plan(rows_of(canonical, kernel), kernel, request)
        view = view_of(canonical, kernel, plan, K)
        exact = kernel(canonical.data) @ canonical.weights
        ours = view.gram @ canonical.weights
        assert np.all(np.abs(ours - exact) <= view.sum_uncertainty())
        anchors = choose_anchors(
            kernel, canonical.data, count, sample_weight=canonical.weights, random_state=0
        )
        features = anchor_coordinates(kernel, canonical.data, anchors)
        np.testing.assert_array_equal(features.toarray(), view.points.toarray())
