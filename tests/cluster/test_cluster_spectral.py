"""Spectral clustering compared with a naive implementation; weights, solvers and new points."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.manifold import spectral_embedding

from laws_cluster import (
    blobs,
    every_laplacian,
    every_solver,
    gaussian,
    graphs_only,
    moons,
    naive_embedding,
    naive_labels,
    rings,
    same_partition,
    up_to_sign,
)
from orthodrome import KernelSpectralClustering
from orthodrome.kernels import Gaussian, Polynomial
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


def test_ncut_is_the_spectral_embedding_of_scikit_learn():
    affinity = gaussian(blobs(), sigma=SIGMA)
    model = fit(affinity, "ncut", kernel="precomputed")
    expected = spectral_embedding(
        affinity, n_components=K, drop_first=False, eigen_solver="arpack", random_state=0
    )
    lengths = [np.linalg.norm(rows, axis=0) for rows in (model.embedding_, expected)]
    expected = expected * (lengths[0] / lengths[1])
    np.testing.assert_allclose(
        model.embedding_, up_to_sign(model.embedding_, expected), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("shape", [rings, moons])
@graphs_only
def test_curved_groups_are_separated(shape, laplacian):
    X, y = shape()
    new, y_new = shape(200, seed=1)
    model = fit(X, laplacian, n_clusters=2, kernel=Gaussian(sigma=0.1))
    assert variation_of_information(y, model.labels_) == 0
    both = np.concatenate([model.labels_, model.predict(new)])
    assert variation_of_information(np.concatenate([y, y_new]), both) < 0.05
    assert variation_of_information(y, KMeans(2, random_state=0).fit_predict(X)) > 0.5


@every_laplacian
def test_weights_against_the_naive_implementation(laplacian):
    X = blobs(60)
    w = 1 + np.arange(60) % 3
    repeated = np.repeat(X, w, axis=0)
    model = fit(X, laplacian, sample_weight=w)
    values, rows = naive_embedding(gaussian(repeated, sigma=SIGMA), K, laplacian)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    embedding = np.repeat(model.embedding_, w, axis=0)
    np.testing.assert_allclose(embedding, up_to_sign(embedding, rows), atol=1e-9)


@every_laplacian
def test_clusters_are_a_fixed_point_of_k_means(laplacian):
    X = np.random.default_rng(0).standard_normal((900, 4))
    w = 1.0 + np.arange(900) % 3
    model = fit(X, laplacian, n_clusters=6, sample_weight=w, n_init=1)
    means = [
        np.average(model.embedding_[model.labels_ == c], axis=0, weights=w[model.labels_ == c])
        for c in range(6)
    ]
    np.testing.assert_allclose(model.cluster_centers_, means, rtol=0, atol=1e-12)


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


def test_kernel_with_varying_diagonal():
    """Of positive data, so that all similarities are positive."""
    X = np.abs(blobs()) + 0.5
    model = fit(X, kernel=Polynomial(degree=3))
    values, rows = naive_embedding((X @ X.T / 3 + 1) ** 3, K, "njw")
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    np.testing.assert_allclose(model.embedding_, up_to_sign(model.embedding_, rows), atol=1e-8)
    np.testing.assert_allclose(model.embed(X), model.embedding_, rtol=0, atol=1e-7)
