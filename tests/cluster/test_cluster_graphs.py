"""Spectral clustering of sparse graphs: scikit-learn as an oracle, new rows, errors, files."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits, make_circles
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import kneighbors_graph

from laws_cluster import blobs, every_laplacian, graphs_only
from orthodrome import KernelPCA, KernelSpectralClustering
from orthodrome.kernels import Gaussian, NeighborGraph


def circles(n=400, seed=0):
    return make_circles(n, factor=0.5, noise=0.05, random_state=seed)


def neighbors(X, k=10):
    edges = kneighbors_graph(X, k)
    return scipy.sparse.csr_array((edges + edges.T) / 2)


def fit(X, kernel="precomputed", n_clusters=2, *, sample_weight=None, **options):
    model = KernelSpectralClustering(n_clusters, kernel, random_state=0, **options)
    return model.fit(X, sample_weight=sample_weight)


def test_shared_neighbors_against_their_definition():
    X, new = np.random.default_rng(0).standard_normal((2, 40, 2))
    nearest = kneighbors_graph(X, 4).toarray()
    A = np.maximum(nearest, nearest.T)
    graph = NeighborGraph(4, "shared").fit(X)
    expected = np.zeros((40, 40))
    for i, j in np.argwhere(A):
        expected[i, j] = A[i] @ A[j] + 0.1
    np.testing.assert_allclose(graph.graph().toarray(), expected)
    distances = np.linalg.norm(new[:, None] - X, axis=2)
    near = (distances <= np.sort(distances, axis=1)[:, [3]]).astype(float)
    found = graph.new_edges(np.concatenate([new, X]), X).toarray()
    np.testing.assert_allclose(found, np.concatenate([near * (near @ A + 0.1), expected]))


@graphs_only
@pytest.mark.parametrize("n", [300, 3000])  # LAPACK, and the inverse of the sparse graph
def test_circles_are_separated_also_for_new_rows(n, laplacian):
    X, y = circles(n)
    new, y_new = circles(300, seed=1)
    model = fit(X, "nearest_neighbors", laplacian=laplacian)
    assert model.converged_
    assert model.solver_ == ("dense" if n == 300 else "shift-invert")
    assert adjusted_rand_score(y, model.labels_) >= 0.95
    assert adjusted_rand_score(y_new, model.predict(new)) >= 0.95
    np.testing.assert_allclose(model.embed(X), model.embedding_, atol=1e-7)
    given = fit(neighbors(X), laplacian=laplacian)
    np.testing.assert_array_equal(given.predict(neighbors(X)), given.labels_)
    if n == 300:  # a fit to a dense graph accepts sparse new rows
        fit(neighbors(X).toarray(), laplacian=laplacian).predict(neighbors(X))
    assert adjusted_rand_score(given.labels_, model.labels_) == 1


def test_against_scikit_learn():
    X = load_digits().data
    X = X + 0.01 * np.random.default_rng(0).standard_normal(X.shape)  # no ties
    graph = neighbors(X)
    model = fit(graph, n_clusters=10, laplacian="ncut")
    assert model.solver_ == "krylov"
    options = {"affinity": "precomputed", "random_state": 0, "n_init": 20}
    expected = SpectralClustering(10, **options).fit_predict(graph)
    assert adjusted_rand_score(expected, model.labels_) > 0.98
    found = fit(X, "nearest_neighbors", 10, laplacian="ncut").labels_
    assert adjusted_rand_score(expected, found) > 0.98
    # scikit-learn counts the point itself
    nine = kneighbors_graph(X, 10, include_self=True)
    np.testing.assert_array_equal(
        NeighborGraph(n_neighbors=9).fit(X).graph().toarray(),
        ((nine + nine.T) / 2).toarray() - np.eye(len(X)),
    )


@every_laplacian
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_equals_dense(laplacian, dtype):
    X = np.random.default_rng(0).standard_normal((90, 2))
    graph = (neighbors(X, 6) + 0.3 * scipy.sparse.eye_array(90)).astype(dtype)
    graph = graph * (1 + np.abs(np.subtract.outer(X[:, 0], X[:, 0]))).astype(dtype)  # no ties
    weights = 1 + np.arange(90) % 3
    weights[:4] = 0  # labelled as new rows
    models = [
        fit(given, n_clusters=3, laplacian=laplacian, sample_weight=weights)
        for given in (graph, scipy.sparse.csr_matrix(graph), graph.toarray())
    ]
    tolerance = 1e-9 if dtype == np.float64 else 1e-3
    for model in models[:2]:
        assert model.embedding_.dtype == dtype
        np.testing.assert_allclose(model.eigenvalues_, models[2].eigenvalues_, rtol=tolerance)
        found, expected = np.abs(model.embed(graph)), np.abs(models[2].embed(graph.toarray()))
        np.testing.assert_allclose(found, expected, atol=tolerance)
        found, expected = np.abs(model.embedding_), np.abs(models[2].embedding_)
        np.testing.assert_allclose(found, expected, atol=tolerance)
        np.testing.assert_array_equal(model.predict(graph.toarray()), model.predict(graph))


def test_large_graphs_stay_sparse(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("made dense")

    X, y = circles(3000)
    graph = neighbors(X)
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array):
        monkeypatch.setattr(kind, "toarray", refuse)
        monkeypatch.setattr(kind, "todense", refuse)
    assert adjusted_rand_score(y, fit(graph).labels_) == 1
    model = fit(X, NeighborGraph())
    model.predict(X[:5] + 0.001)


def test_repetition_order_and_scale_of_rows():
    X, _ = circles(200)
    model = fit(X, "nearest_neighbors")
    order = np.random.default_rng(0).permutation(200)
    again = fit(X[order], "nearest_neighbors")
    np.testing.assert_array_equal(again.labels_, model.labels_[order])
    w = 1 + np.arange(200) % 3
    weighted, repeated = (
        fit(X, "nearest_neighbors", sample_weight=w),
        fit(np.repeat(X, w, axis=0), "nearest_neighbors"),
    )
    np.testing.assert_array_equal(np.repeat(weighted.labels_, w), repeated.labels_)
    sparse = fit(scipy.sparse.csr_array(X), "nearest_neighbors")
    np.testing.assert_array_equal(sparse.labels_, model.labels_)
    np.testing.assert_array_equal(sparse.predict(scipy.sparse.csr_array(X)), model.labels_)
    for other in (X * 1e-200, X * 1e200, X + 1e6):
        np.testing.assert_array_equal(fit(other, "nearest_neighbors").labels_, model.labels_)


def test_few_rows_and_parameters():
    # fewer rows than neighbours
    assert set(fit([[0.0], [1.0], [5.0]], "nearest_neighbors", 2).labels_) == {0, 1}
    assert fit([[0.0], [1.0]], NeighborGraph(1), 1).predict([[0.4]]) == 0
    X, y = circles(600)
    grid = {"kernel__n_neighbors": [8, 150]}
    model = KernelSpectralClustering(2, "nearest_neighbors", random_state=0)
    search = GridSearchCV(model, grid, scoring="adjusted_rand_score", cv=3).fit(X, y)
    assert search.best_params_ == {"kernel__n_neighbors": 8}


def test_warnings():
    X = np.concatenate([blobs(60), blobs(60) + 1000, blobs(60) - 1000, np.full((1, 3), 1e5)])
    with pytest.warns(UserWarning, match=r"3 separate parts, more than n_clusters=2.*n_neighbors"):
        fit(X[:-1], NeighborGraph(30))
    graph = neighbors(X[:60]).tolil()
    graph[0] = 0
    graph[:, 0] = 0
    with pytest.warns(UserWarning, match="1 of the 60 distinct points have no similarity"):
        fit(graph.tocsr())


GRAPH = neighbors(blobs(30), 4)
ASKEW, NEGATIVE = GRAPH.tolil(), GRAPH.tolil()
ASKEW[2, 7] = 9.0
NEGATIVE[2, 7] = NEGATIVE[7, 2] = -1.0

ERRORS = [
    (lambda: fit(ASKEW.tocsr()), r"must be symmetric; entries \(2, 7\) and \(7, 2\).*\(K \+ K.T\)"),
    (lambda: fit(NEGATIVE.tocsr()), r"must not have negative weights; entry \(2, 7\) is -1"),
    (lambda: fit(GRAPH[:20]), r"must be a square matrix; got shape \(20, 30\)"),
    (lambda: fit(GRAPH * np.nan), "contains NaN"),
    (lambda: fit(GRAPH * 1e-310), "so small"),
    (lambda: fit(GRAPH, n_anchors=5), "cannot use anchors for a sparse graph"),
    (lambda: fit(blobs(), NeighborGraph(), solver="nystroem"), "cannot use anchors"),
    (lambda: fit([blobs(), blobs()], NeighborGraph()), "only among rows in memory"),
    (lambda: fit(blobs(), NeighborGraph(0)), "n_neighbors of NeighborGraph must be"),
    (lambda: fit(blobs(), NeighborGraph(5, "rank")), "weights of NeighborGraph must be"),
    (lambda: fit(GRAPH).predict(NEGATIVE.tocsr()), "must not have negative weights"),
    (lambda: fit(GRAPH).predict(GRAPH[:, :9]), "9 features.*expecting 30"),
    (lambda: KernelPCA(kernel="precomputed").fit(GRAPH), "Sparse data was passed"),
    (lambda: KernelPCA(kernel="nearest_neighbors").fit(blobs()), "Only KernelSpectralClustering"),
    (lambda: NeighborGraph()(blobs()), "no kernel values of two points"),
    (lambda: fit(blobs(), Gaussian()).predict(GRAPH), "features"),
]


@pytest.mark.parametrize(("use", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_errors(use, message):
    with pytest.raises((ValueError, TypeError), match=message):
        use()
