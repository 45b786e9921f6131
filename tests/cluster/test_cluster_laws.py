"""Laws of all clusterings: weights, order, storage, kinds of kernels and of data, seeds."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from laws_cluster import LAPLACIANS, blobs, gaussian
from laws_clusterings import CLUSTERINGS, estimator, every_clustering, on_gram, placed
from laws_kmeans import cloud
from orthodrome.kernels import Embedded, Gaussian, Normalized

SIGMA = 1.5
TIGHT = {"tol": 1e-10, "max_iter": 500}  # of a mixture, whose probabilities feel the last step


def fit(kind, X, weights=None, **options):
    given = TIGHT if kind == "mixture" else {}
    return estimator(kind, **given | options).fit(X, sample_weight=weights)


SOLVERS = [(kind, {}) for kind in CLUSTERINGS]
SOLVERS += [(kind, {"solver": "krylov", "tol": 1e-12}) for kind in LAPLACIANS]
every_solver = pytest.mark.parametrize(("kind", "options"), SOLVERS, ids=str)


@pytest.mark.parametrize("kernel", [Gaussian(), Gaussian(sigma="median")], ids=repr)
@every_solver
def test_weights_are_repetition_to_the_last_bit(kind, options, kernel):
    X, new = cloud(80), cloud(40, seed=1)
    w = np.random.default_rng(2).integers(0, 4, size=len(X))
    copies = np.random.default_rng(3).permutation(np.repeat(np.arange(len(X)), w))
    weighted = fit(kind, X, w, kernel=kernel, **options)
    repeated = fit(kind, X[copies], kernel=kernel, **options)
    np.testing.assert_array_equal(placed(weighted, new), placed(repeated, new))
    np.testing.assert_array_equal(weighted.labels_[copies], repeated.labels_)
    np.testing.assert_array_equal(weighted.labels_[w == 0], weighted.predict(X[w == 0]))
    names = ("inertia_", "cluster_centers_", "eigenvalues_", "means_", "covariances_")
    for name in names:
        if hasattr(weighted, name):
            np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name))
    if kind in LAPLACIANS:
        np.testing.assert_array_equal(weighted.embedding_[copies], repeated.embedding_)
    sigma = clone(kernel).fit(np.repeat(X, w, axis=0)).sigma_
    assert weighted.kernel_.sigma_ == pytest.approx(sigma, rel=1e-12)


@every_clustering
def test_a_row_of_weight_zero_changes_nothing(kind):
    X = blobs(80)
    more = np.concatenate([X, [[8.0, 0.0, 0.0]], X[:1]])
    model = fit(kind, more, np.append(np.ones(80), [0, 0]))
    plain = fit(kind, X)
    np.testing.assert_array_equal(placed(model, more), placed(plain, more))
    np.testing.assert_array_equal(model.labels_[:80], plain.labels_)
    assert model.labels_[80] == plain.predict(more[80:81])[0]
    assert model.labels_[81] == plain.labels_[0]
    if kind in LAPLACIANS:
        np.testing.assert_array_equal(model.embedding_[81], plain.embedding_[0])
        np.testing.assert_allclose(model.embedding_[80], plain.embed(more[80:81])[0], atol=1e-12)


@every_solver
def test_the_order_of_rows_does_not_matter(kind, options):
    X, new = cloud(80), cloud(40, seed=1)
    w = np.random.default_rng(2).uniform(1, 2, len(X))
    order = np.random.default_rng(4).permutation(len(X))
    plain, permuted = (fit(kind, X[o], w[o], **options) for o in (slice(None), order))
    np.testing.assert_array_equal(placed(permuted, new), placed(plain, new))
    np.testing.assert_array_equal(permuted.labels_, plain.labels_[order])


WAYS = {
    "memory": {"storage": "memory"},
    "disk": {"storage": "disk", "memory_budget": "1KiB"},
    "recompute": {"storage": "recompute", "memory_budget": "1KiB"},
    "small budget": {"memory_budget": "1KiB"},
    "callable": {"kernel": lambda A, B: gaussian(A, B, SIGMA)},
    "embedded": {"kernel": Embedded(np.asarray, Gaussian(sigma=SIGMA))},
    "normalized": {"kernel": Normalized(Gaussian(sigma=SIGMA))},
}


@on_gram
def test_storage_and_kind_of_kernel_do_not_matter(kind):
    X, new = blobs(300), blobs(40, seed=1)
    dense = {} if kind in ("flat", "intrinsic") else {"solver": "dense"}
    krylov = {"solver": "krylov"} | ({} if kind == "mixture" else {"tol": 1e-12})
    tol = {"flat": 1e-7, "intrinsic": 1e-7, "mixture": 1e-4}.get(kind, 1e-9)
    expected = fit(kind, X, **dense)
    distances = placed(expected, new)
    for way, options in WAYS.items():
        solver = krylov if dense and "memory_budget" in options else dense
        model = fit(kind, X, **options, **solver)
        np.testing.assert_array_equal(model.labels_, expected.labels_, err_msg=way)
        np.testing.assert_allclose(placed(model, new), distances, rtol=0, atol=tol, err_msg=way)


@pytest.mark.parametrize("kind", ["flat", "intrinsic", *LAPLACIANS])
def test_sparse_is_dense(kind):
    X, new = np.maximum(blobs(80), 0) + 0.0, np.maximum(blobs(40, seed=1), 0)
    dense = fit(kind, X)
    for convert in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        sparse = fit(kind, convert(X))
        np.testing.assert_array_equal(sparse.labels_, dense.labels_)
        np.testing.assert_array_equal(sparse.predict(convert(new)), dense.predict(new))
        found = placed(sparse, convert(new))
        np.testing.assert_allclose(found, placed(dense, new), rtol=0, atol=1e-6)
        if kind in LAPLACIANS:
            np.testing.assert_allclose(sparse.embedding_, dense.embedding_, rtol=0, atol=1e-10)
    if kind in ("flat", "intrinsic"):
        given = fit(kind, convert(X), init=scipy.sparse.csr_array(X[:3]))
        np.testing.assert_array_equal(given.labels_, fit(kind, X, init=X[:3]).labels_)


@every_solver
def test_float32(kind, options):
    X, new = blobs(90, dtype=np.float32), blobs(40, dtype=np.float32, seed=1)
    model, double = fit(kind, X, **options), fit(kind, X.astype(np.float64), **options)
    np.testing.assert_array_equal(model.labels_, double.labels_)
    found, expected = placed(model, new), placed(double, new.astype(np.float64))
    tol = 1e-4 if kind in LAPLACIANS else 5e-3
    np.testing.assert_allclose(found, expected, rtol=0, atol=tol)
    if kind != "mixture":
        assert found.dtype == np.float32
    if kind in (*LAPLACIANS, "preimage"):
        assert model.cluster_centers_.dtype == np.float32


@every_clustering
def test_clusters_are_numbered_by_their_first_point_when_sorted(kind):
    X = blobs()
    order = np.lexsort(X.T[::-1])
    for seed in range(3):
        model = fit(kind, X, random_state=seed)
        assert list(dict.fromkeys(model.labels_[order].tolist())) == [0, 1, 2]


@every_clustering
def test_the_seed_decides(kind):
    X = cloud(120, d=4)
    options = {"n_clusters": 6, "n_init": 1} | (
        {"init_params": "random"} if kind == "mixture" else {}
    )
    for make in (lambda seed: seed, np.random.RandomState, np.random.default_rng):
        fits = [estimator(kind, random_state=make(seed), **options).fit(X) for seed in (7, 7, 8)]
        np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
        assert not np.array_equal(fits[0].labels_, fits[2].labels_)
    estimator(kind, random_state=None).fit(X)
