"""Spectral clustering compared with a naive implementation; weights, solvers and new points."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from laws_cluster import (
    blobs,
    every_laplacian,
    every_solver,
    gaussian,
    graphs_only,
    naive_embedding,
    naive_labels,
    rings,
    same_partition,
    up_to_sign,
)
from orthodrome import KernelSpectralClustering
from orthodrome.cluster.spectral import compare_clusters, normalized_cut
from orthodrome.kernels import Gaussian, NeighborGraph
from orthodrome.metrics import variation_of_information

K = 3
SIGMA = 1.5
KERNEL = Gaussian(sigma=SIGMA)


def fit(X, laplacian="njw", *, n_clusters=K, sample_weight=None, **options):
    options = {"kernel": KERNEL, "n_init": 4, "random_state": 0, **options}
    model = KernelSpectralClustering(n_clusters, laplacian=laplacian, **options)
    return model.fit(X, sample_weight=sample_weight)


@every_solver
@every_laplacian
def test_against_the_naive_implementation(laplacian, solver):
    X = blobs()
    model = fit(X, laplacian, n_init=20, **solver)
    values, rows = naive_embedding(gaussian(X, sigma=SIGMA), K, laplacian)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    np.testing.assert_allclose(model.embedding_, up_to_sign(model.embedding_, rows), atol=1e-9)
    expected = naive_labels(gaussian(X, sigma=SIGMA), K, laplacian)
    assert same_partition(model.labels_, expected)
    assert len(set(expected)) == K


@pytest.mark.parametrize("kernel", [KERNEL, Gaussian(), "precomputed"], ids=str)
@every_laplacian
def test_hebbian_labels(laplacian, kernel):
    """Some passes are enough for them; a matrix that may be indefinite has the larger shift."""
    X = blobs(300)
    X = gaussian(X, sigma=SIGMA) if kernel == "precomputed" else X
    exact = fit(X, laplacian, kernel=kernel)
    model = fit(X, laplacian, kernel=kernel, solver="hebbian", tol=0.05, max_iter=100)
    assert model.solver_ == "hebbian"
    assert variation_of_information(exact.labels_, model.labels_) < 0.25


@pytest.mark.parametrize("sigma", ["mean", 3.0, 0.7])
@pytest.mark.parametrize("k", [3, 8])  # 8 of three groups: eigenvalues without information
@every_laplacian
def test_training_points_are_embedded_exactly(laplacian, k, sigma):
    X = blobs()
    w = np.random.default_rng(2).integers(1, 3, size=len(X))
    model = fit(X, laplacian, n_clusters=k, kernel=Gaussian(sigma=sigma), sample_weight=w)
    np.testing.assert_allclose(model.embed(X), model.embedding_, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("shift", [0.0, 0.5])  # the diagonal of similarities, which may be 0
@graphs_only
def test_training_points_of_a_precomputed_kernel_are_embedded_exactly(laplacian, shift):
    matrix = gaussian(blobs(), sigma=SIGMA)
    np.fill_diagonal(matrix, shift)
    model = fit(matrix, laplacian, kernel="precomputed")
    np.testing.assert_allclose(model.embed(matrix), model.embedding_, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(model.predict(matrix), model.labels_)


@graphs_only
def test_extension_converges_to_the_plain_extension(laplacian):
    """As a point's similarity to itself becomes a small part of its degree."""
    rng = np.random.default_rng(0)
    off = []
    for n in (60, 240, 960):
        X, new = rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, (20, 2))
        model = fit(X, laplacian, kernel=Gaussian(sigma=0.5), n_clusters=3)
        matrix = gaussian(X, sigma=0.5) - np.eye(n)
        degrees, cross = matrix.sum(axis=1), gaussian(new, X, 0.5)
        values, vectors = (
            part[..., -3:][..., ::-1]
            for part in np.linalg.eigh(matrix / np.sqrt(np.outer(degrees, degrees)))
        )
        plain = cross @ (vectors / np.sqrt(degrees)[:, None]) / values
        sums = cross.sum(axis=1)[:, None]
        rows = (
            plain / sums
            if laplacian == "ncut"
            else plain / np.linalg.norm(plain, axis=1, keepdims=True)
        )
        found = model.embed(new)
        difference = np.abs(found - up_to_sign(found, rows)).max() / np.abs(found).max()
        off.append(difference)
    assert off[0] < 0.2
    assert off[2] < off[1] / 2 < off[0] / 4


@graphs_only
def test_a_new_point_far_from_all_others_follows_the_nearest(laplacian):
    """Its similarities are 1e-40 and less, and still one group has nearly all of them."""
    X = blobs()
    model = fit(X, laplacian)
    ends = np.array([[20.0, 5.0, 0.0], [0.0, 20.0, 5.0], [-14.0, -14.0, 0.0]])
    assert gaussian(ends, X, SIGMA).max() < 1e-15
    inside = np.array([[4.0, 1.0, 0.0], [0.0, 4.0, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(model.predict(ends), model.predict(inside))


# ------------------------------------------------------------------ kernel="auto"


def anisotropic(n, seed):
    X, y = make_blobs(n, random_state=170)
    centers = np.array([X[y == c].mean(axis=0) for c in range(3)])
    X, y = make_blobs(n, centers=centers, random_state=seed)
    return X @ np.array([[0.6, -0.6], [-0.4, 0.8]]), y


SHAPES = {
    "moons": lambda seed: make_moons(500, noise=0.05, random_state=seed),
    "circles": lambda seed: make_circles(500, factor=0.5, noise=0.05, random_state=seed),
    "anisotropic": lambda seed: anisotropic(500, seed),
    "blobs": lambda seed: make_blobs(
        500, centers=[[-3, 2], [7, -3], [5, 5]], random_state=seed, cluster_std=1.0
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@graphs_only
def test_automatic_kernel_finds_the_groups_of_scikit_learns_comparison(shape, laplacian):
    for seed in range(2):
        X, y = SHAPES[shape](seed)
        model = KernelSpectralClustering(len(set(y)), laplacian=laplacian, random_state=0)
        model.fit(StandardScaler().fit_transform(X))
        assert adjusted_rand_score(y, model.labels_) >= 0.95
        choice = model.kernel_choice_
        curved = choice["cuts"]["shared_neighbors"] < 0.5 * choice["cuts"]["gaussian"]
        assert choice["kernel"] == ("shared_neighbors" if curved else "gaussian")
        if shape != "blobs":
            assert curved


@graphs_only
def test_automatic_kernel_is_the_same_as_the_given_kernel(laplacian):
    kernels = {"gaussian": Gaussian(), "shared_neighbors": NeighborGraph(10, "shared")}
    for X, n_clusters in ((blobs(), 3), (rings()[0], 2)):
        w = 1.0 + np.arange(len(X)) % 2
        model = fit(X, laplacian, n_clusters=n_clusters, kernel="auto", sample_weight=w)
        kernel = kernels[model.kernel_choice_["kernel"]]
        given = fit(X, laplacian, n_clusters=n_clusters, kernel=kernel, sample_weight=w)
        np.testing.assert_array_equal(model.labels_, given.labels_)
        np.testing.assert_array_equal(model.embed(X + 0.01), given.embed(X + 0.01))
        assert given.kernel_choice_ is None
        repeated = fit(np.repeat(X, w.astype(int), axis=0), laplacian, kernel="auto",
                       n_clusters=n_clusters)  # fmt: skip
        np.testing.assert_array_equal(np.repeat(model.labels_, w.astype(int)), repeated.labels_)


def test_small_groups_need_a_cut_of_almost_zero():
    rng = np.random.default_rng(0)
    group = rng.standard_normal((300, 2))
    graph = NeighborGraph(10, "shared")
    for distance, found in ((3.0, "gaussian"), (40.0, "shared_neighbors")):
        X = np.concatenate([group, 0.1 * rng.standard_normal((30, 2)) + [distance, 0]])
        labels = {"shared_neighbors": np.repeat([0, 1], [300, 30]), "gaussian": (X[:, 1] > 0) + 0}
        weights = np.ones(330)
        choice = compare_clusters(graph.fit(X).graph(), weights, labels, 2)
        assert choice["smallest_cluster"] == pytest.approx(60 / 330)
        assert choice["kernel"] == found


def test_automatic_kernel_without_a_comparison():
    X = blobs()
    for options in ({"n_anchors": 20}, {"laplacian": "kernel-pca"}, {"n_clusters": 1}):
        assert fit(X, **{"kernel": "auto"} | options).kernel_choice_["kernel"] == "gaussian"
    few = fit(X[:20], kernel="auto")
    assert "cuts" not in few.kernel_choice_
    batches = fit([X[:80], X[80:]], kernel="auto")
    assert isinstance(batches.kernel_, Gaussian)
    model = KernelSpectralClustering().set_params(kernel__sigma=2.0)
    assert model.kernel.sigma == 2.0


def test_automatic_kernel_of_many_rows_is_chosen_from_a_sample(monkeypatch):
    monkeypatch.setattr("orthodrome.cluster.spectral._MAX_COMPARED", 300)
    X, y = rings(700)
    model = fit(X, kernel="auto", n_clusters=2)
    assert model.kernel_choice_["n_compared"] <= 300
    assert model.kernel_choice_["kernel"] == "shared_neighbors"
    assert variation_of_information(y, model.labels_) == 0


def test_normalized_cut_against_its_formula():
    X = blobs(60)
    graph = NeighborGraph(5).fit(X).graph()
    labels, w = np.arange(60) % 3, 1.0 + np.arange(60) % 4
    W = graph.toarray() * np.outer(w, w)
    shares = [W[labels == c][:, labels != c].sum() / W[labels == c].sum() for c in range(3)]
    assert normalized_cut(graph, w, labels) == pytest.approx(np.mean(shares))
