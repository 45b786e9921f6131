"""Clusterings on Nyström features: flat, on the sphere, and of their graph."""

import sys

import numpy as np
import pytest
from sklearn.cluster import KMeans

from laws_cluster import LAPLACIANS, blobs, graphs_only, same_partition
from laws_clusterings import estimator, placed
from orthodrome import GeodesicMixture
from orthodrome.eigen import Nystroem
from orthodrome.gram.tiled import TiledGram
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial, Power

K = 3
KERNEL = Gaussian(sigma=1.5)
WEIGHTS = np.random.default_rng(3).integers(0, 4, size=150)
STARTS = ["kernel-k-means", "k-means", "random"]
KINDS = ["flat", "intrinsic", *LAPLACIANS, "mixture"]
every_storage = pytest.mark.parametrize("storage", ["memory", "disk", "recompute"])
every_kind = pytest.mark.parametrize("kind", KINDS)


def fit(kind, X, weights=None, n_clusters=K, **options):
    n_init = 3 if kind == "mixture" else 10
    given = {"kernel": KERNEL, "solver": "nystroem", "n_init": n_init} | options
    given |= {"tol": 1e-6} if kind == "mixture" and "tol" not in options else {}
    return estimator(kind, n_clusters, **given).fit(X, sample_weight=weights)


def exact(kind):
    """The solver that does without features."""
    return "exact" if kind in ("flat", "intrinsic") else "dense"


def anchors_of(model):
    """The fit that keeps the anchors."""
    return getattr(model, "pga_", model)


def positive(n=150, dtype=np.float64, seed=0):
    """Blobs whose directions lie in a hemisphere: inner products are positive."""
    return np.abs(blobs(n, dtype, seed)) + 0.1


INITS = [
    *[(kind, {"init": init}) for kind in KINDS[:2] for init in ("k-means++", "random", "given")],
    *[(kind, {"init": "farthest-first"}) for kind in KINDS[:2]],
    *[(kind, {}) for kind in LAPLACIANS],
    *[("mixture", {"init_params": start}) for start in STARTS],
]
#: Two pairs of kernel and weights are quick, one after the other; the rest is slow.
PAIRS = [(Linear(), WEIGHTS), (Polynomial(degree=2), None)]
PAIRS += [(Linear(), None), (Polynomial(degree=2), WEIGHTS)]
RANKS = [
    pytest.param(*init, weights, kernel, marks=[] if i % 2 == pair else pytest.mark.slow)
    for i, init in enumerate(INITS)
    for pair, (kernel, weights) in enumerate(PAIRS)
]


@pytest.mark.parametrize(("kind", "options", "weights", "kernel"), RANKS)
def test_anchors_up_to_the_rank_are_exact(kind, options, weights, kernel):
    X, new = positive(), positive(60, seed=1)
    if options.get("init") == "given":
        options = {"init": X[[0, 80, 140]]}
    on_sphere = kind in ("intrinsic", "mixture")
    options = options | {"kernel": Normalized(kernel) if on_sphere else kernel}
    ours = fit(kind, X, weights, n_anchors=40, **options)
    other = fit(kind, X, weights, solver=exact(kind), **options)
    np.testing.assert_array_equal(ours.labels_, other.labels_)
    tol = 1e-7 if kind == "mixture" else 1e-8
    for data in (X, new):
        np.testing.assert_allclose(placed(ours, data), placed(other, data), rtol=0, atol=tol)
        np.testing.assert_array_equal(ours.predict(data), other.predict(data))
    names = ("inertia_", "eigenvalues_", "embedding_", "weights_", "means_", "covariances_")
    for name in (*names, "lower_bound_"):
        if hasattr(ours, name):
            np.testing.assert_allclose(
                getattr(ours, name), getattr(other, name), rtol=1e-8, atol=1e-8
            )
    found = anchors_of(ours)
    assert found.n_anchors_ == len(found.X_fit_) == len(found.anchor_indices_) < 12
    if kind != "mixture":
        np.testing.assert_array_equal(ours.X_fit_, X[ours.anchor_indices_])
        assert other.n_anchors_ is None


# ------------------------------------------------------------------ few anchors, by their formulas


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_storage
def test_few_anchors_equal_k_means_of_features(storage, dtype):
    X = blobs(dtype=dtype)
    ours = fit("flat", X, WEIGHTS, n_anchors=20, storage=storage)
    k, S = ours.kernel_, ours.anchor_indices_
    wide = X.astype(np.float64)
    F = k(wide, wide[S]) @ np.linalg.inv(np.linalg.cholesky(k(wide[S]))).T
    naive = KMeans(K, n_init=20, tol=0, random_state=1).fit(F, sample_weight=WEIGHTS)
    assert same_partition(ours.labels_, naive.labels_)
    left_out = WEIGHTS @ (1 - np.square(F).sum(axis=1))
    tol = 1e-8 if dtype == np.float64 else 1e-3
    assert left_out > 0.5
    assert ours.inertia_ == pytest.approx(naive.inertia_ + left_out, rel=tol)
    assert ours.history_[-1]["inertia"] == ours.inertia_
    members = [WEIGHTS * (ours.labels_ == c) for c in range(K)]
    centers = np.array([np.average(F, axis=0, weights=own) for own in members])
    squared = 1 - 2 * F @ centers.T + np.square(centers).sum(axis=1)
    np.testing.assert_allclose(ours.transform(X), np.sqrt(squared), atol=tol)
    assert ours.transform(X).dtype == dtype
    assert ours.score(X, sample_weight=WEIGHTS) == pytest.approx(-ours.inertia_, rel=tol)


# ------------------------------------------------------------------ weights, order, input


@every_kind
def test_when_auto_uses_anchors(kind, monkeypatch):
    X = blobs()
    assert anchors_of(fit(kind, X, solver="auto")).n_anchors_ is None
    assert anchors_of(fit(kind, X, solver="auto", n_anchors=20)).n_anchors_ == 20
    with pytest.raises(ValueError, match="n_anchors of"):
        fit(kind, X, n_anchors=0)
    with pytest.raises(ValueError, match="must not exceed"):
        fit(kind, X[:2], n_anchors=5)
    rule = sys.modules["orthodrome.eigen.leading"]
    monkeypatch.setattr(rule, "_DENSE_ROWS", 10)
    monkeypatch.setattr(rule, "_KRYLOV_ROWS", 100)
    assert anchors_of(fit(kind, X, solver="auto")).n_anchors_ is not None
    # different rows are counted, so that weights are repetition
    assert anchors_of(fit(kind, np.tile(X[:90], (2, 1)), solver="auto")).n_anchors_ is None


@pytest.mark.parametrize("start", STARTS)
def test_anchors_never_use_the_gram_matrix(start, monkeypatch):
    def refuse(*_):
        raise AssertionError("a product with the Gram matrix")

    monkeypatch.setattr(TiledGram, "_matmat", refuse)
    monkeypatch.setattr(TiledGram, "toarray", refuse)
    fit("mixture", blobs(), n_anchors=20, init_params=start)
    with pytest.raises(AssertionError, match="a product"):
        fit("mixture", blobs(), solver="dense")


@pytest.mark.parametrize("n_modes", [3, 0.99])  # known before or only after kernel PGA
def test_coordinates_beyond_the_memory_budget(n_modes):
    X = np.random.default_rng(0).standard_normal((3000, 4))
    options = {"n_anchors": 20, "n_init": 1, "memory_budget": "64KiB", "random_state": 0}
    with pytest.raises(ValueError, match=r"coordinates of all 3,000 rows .*memory_budget"):
        GeodesicMixture(2, n_modes, **options).fit([X[:1000], X[1000:]])


# ------------------------------------------------------------------ difficult data


@graphs_only
def test_points_that_the_anchors_do_not_span(laplacian):
    """Their degrees are rounding of either sign: isolated, and the others are not disturbed."""
    X = np.concatenate([blobs(), [[60.0, 60.0, 60.0], [90.0, 0.0, 0.0]]])
    solver = Nystroem(anchors=np.arange(0, 150, 3))
    with pytest.warns(UserWarning, match=r"by the anchors.*n_anchors"):
        ours = fit(laplacian, X, solver=solver, random_state=1)
    assert not ours.embedding_[150:].any()
    without = fit(laplacian, blobs(), solver=solver, random_state=1)
    assert same_partition(ours.labels_[:150], without.labels_)


@graphs_only
def test_negative_degrees_with_anchors_raise(laplacian):
    X = blobs() - 2.0
    with pytest.raises(ValueError, match=r"degree of row .* below 0"):
        fit(laplacian, X, kernel="linear")
    with pytest.raises(ValueError, match="not positive definite"):
        fit(laplacian, X, kernel=Power(), n_anchors=20)
    with pytest.raises(ValueError, match="accepts rows of weight 0 only in memory"):
        fit(laplacian, [X[:80], X[80:]], WEIGHTS, n_anchors=20)
