"""Linear and cosine kernels work in the coordinates of the rows, without an n x n matrix."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import cosine_similarity, linear_kernel

from laws_cluster import same_partition
from laws_decomposition import assert_same
from orthodrome import GeodesicMixture, HypersphericalKMeans, KernelKMeans, KernelPCA, KernelPGA
from orthodrome.kernels import Cosine, Linear

N, D, K = 300, 6, 3
WEIGHTS = {"plain": None, "weighted": np.random.default_rng(2).integers(0, 4, N).astype(float)}
every_weighting = pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)


def rows(n=N, d=D, seed=0):
    """Three groups in different directions, with positive entries."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(K, size=n, p=[0.5, 0.3, 0.2])
    spread = rng.gamma(2.0, 0.3, size=(n, d)) * np.linspace(1.5, 0.5, d)
    return 6 * np.eye(d)[groups] + 1 + spread


MODELS = {
    "pca": (KernelPCA(K), "linear"),
    "pga": (KernelPGA(K), "cosine"),
    "k-means": (KernelKMeans(K, random_state=0), "linear"),
    "hyperspherical": (HypersphericalKMeans(K, centers="intrinsic", random_state=0), "cosine"),
    "mixture": (GeodesicMixture(K, n_modes=2, tol=1e-12, random_state=0), "cosine"),
}
KERNELS = {"linear": linear_kernel, "cosine": cosine_similarity}
every_model = pytest.mark.parametrize("name", MODELS)


def fit(name, X, weights=None, kernel=None, **options):
    model, own = MODELS[name]
    return clone(model).set_params(kernel=kernel or own, **options).fit(X, sample_weight=weights)


@every_weighting
@every_model
def test_the_fit_is_that_of_the_gram_matrix(name, weights):
    X, new = rows(), rows(40, seed=1)
    kernel = KERNELS[MODELS[name][1]]
    ours = fit(name, X, weights)
    exact = fit(name, kernel(X), weights, kernel="precomputed")
    for attribute in ("eigenvalues_", "embedding_", "inertia_", "lower_bound_"):
        if hasattr(exact, attribute):
            assert_same(getattr(ours, attribute), getattr(exact, attribute))
    if hasattr(exact, "labels_"):
        labels = ours.predict(new), exact.predict(kernel(new, X))
        assert same_partition(
            np.append(ours.labels_, labels[0]), np.append(exact.labels_, labels[1])
        )
    if hasattr(exact, "transform") and name != "k-means":  # needs k(x, x) of new rows
        assert_same(np.sort(ours.transform(new)), np.sort(exact.transform(kernel(new, X))))


@every_model
def test_many_rows_need_no_gram_matrix(name, monkeypatch):
    n, evaluated = 60_000, 0
    evaluate = Linear.evaluate

    def counted(kernel, a, b, out=None):
        nonlocal evaluated
        evaluated += len(a) * len(b)
        assert evaluated < n * n // 100, "a part of the n x n Gram matrix that grows with n"
        return evaluate(kernel, a, b, out)

    for Kernel in (Linear, Cosine):
        monkeypatch.setattr(Kernel, "evaluate", counted)
    X = rows(n, 8)
    options = {} if name in ("pca", "pga") else {"n_init": 1}
    options |= {"tol": 1e-3} if name == "mixture" else {}
    model = fit(name, X, memory_budget="64MiB", **options)
    labels_or_embedding = model.labels_ if hasattr(model, "labels_") else model.embedding_
    assert len(labels_or_embedding) == n
