"""Clusterings on Nyström features: flat, on the sphere, and of their graph."""

import pickle
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from laws_cluster import (
    LAPLACIANS,
    blobs,
    every_laplacian,
    graphs_only,
    moons,
    naive_embedding,
    naive_labels,
    same_partition,
    up_to_sign,
)
from laws_clusterings import estimator, placed
from orthodrome import GeodesicMixture, HypersphericalKMeans, KernelPGA, load, save
from orthodrome._core.canonical import canonical_rows
from orthodrome.base import rows_of
from orthodrome.coordinates import anchor_coordinates, choose_anchors
from orthodrome.decomposition.view import view_of
from orthodrome.eigen import Krylov, Nystroem
from orthodrome.gram.tiled import TiledGram
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial, Power, VeroneseWhitney
from orthodrome.metrics import variation_of_information
from orthodrome.plan import Request, make_plan

K = 3
KERNEL = Gaussian(sigma=1.5)
WEIGHTS = np.random.default_rng(3).integers(0, 4, size=150)
STARTS = ["kernel-k-means", "k-means", "random"]
KINDS = ["flat", "intrinsic", *LAPLACIANS, "mixture"]
every_storage = pytest.mark.parametrize("storage", ["memory", "disk", "recompute"])
every_kind = pytest.mark.parametrize("kind", KINDS)
hard = pytest.mark.parametrize("kind", KINDS[:-1])
k_means = pytest.mark.parametrize("kind", ["flat", "intrinsic"])


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


def gram_of_anchors(model, X):
    """The Gram matrix that the features have, by its formula."""
    k, S = model.kernel_, anchors_of(model).X_fit_.astype(np.float64)
    return k(X, S) @ np.linalg.inv(k(S)) @ k(S, X)


# ------------------------------------------------------------------ against the exact method

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
def test_with_as_many_anchors_as_the_rank_it_is_the_exact_method(kind, options, weights, kernel):
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


@hard
def test_with_all_rows_as_anchors_the_training_data_are_exact(kind):
    X = blobs()
    ours, other = (fit(kind, X, solver=solver) for solver in ("nystroem", exact(kind)))
    np.testing.assert_array_equal(ours.labels_, other.labels_)
    np.testing.assert_allclose(placed(ours, X), placed(other, X), atol=1e-8)


# ------------------------------------------------------------------ few anchors, by their formulas


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_storage
def test_few_anchors_are_k_means_of_explicit_features(storage, dtype):
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


@pytest.mark.parametrize(
    ("storage", "dtype"),
    [("memory", np.float64), ("disk", np.float32), ("recompute", np.float64)],
)
@pytest.mark.parametrize("kind", ["intrinsic", "mixture"])
def test_few_anchors_on_the_sphere_of_unit_features(kind, storage, dtype):
    X = blobs(dtype=dtype)
    kernel = Gaussian(sigma=3.0) if kind == "mixture" else KERNEL
    ours = fit(kind, X, n_anchors=20, storage=storage, kernel=kernel)
    G = gram_of_anchors(ours, X.astype(np.float64))
    lengths = np.sqrt(np.diagonal(G))
    unit = G / np.outer(lengths, lengths)
    other = fit(kind, unit, kernel="precomputed", solver=exact(kind))
    assert same_partition(ours.labels_, other.labels_)
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)
    if kind == "intrinsic":
        tol = 1e-8 if dtype == np.float64 else 1e-3
        assert ours.inertia_ == pytest.approx(other.inertia_, rel=tol)
        assert ours.score(X) == pytest.approx(-ours.inertia_, rel=tol)
    else:
        tol = 1e-6 if dtype == np.float64 else 1e-2
        assert ours.lower_bound_ == pytest.approx(other.lower_bound_, abs=tol)
        assert ours.score(X) == pytest.approx(ours.lower_bound_, abs=tol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_storage
@every_laplacian
def test_few_anchors_against_the_naive_embedding(laplacian, storage, dtype):
    X = blobs(dtype=dtype)
    ours = fit(laplacian, X, n_anchors=40, storage=storage, n_init=20)
    G = gram_of_anchors(ours, X.astype(np.float64))
    values, rows = naive_embedding(G, K, laplacian)
    tol = 1e-8 if dtype == np.float64 else 1e-2
    np.testing.assert_allclose(ours.eigenvalues_, values, rtol=tol)
    np.testing.assert_allclose(ours.embedding_, up_to_sign(ours.embedding_, rows), atol=tol)
    assert same_partition(ours.labels_, naive_labels(G, K, laplacian))
    assert ours.embedding_.dtype == ours.embed(X).dtype == dtype
    np.testing.assert_allclose(ours.embed(X), ours.embedding_, atol=tol)
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)


def test_moons_are_separated():
    X, y = moons(1500)
    ours = fit("njw", X, n_clusters=2, kernel=Gaussian(sigma=0.15), n_anchors=150)
    assert variation_of_information(y, ours.labels_) == 0
    new, expected = moons(400, seed=1)
    assert variation_of_information(expected, ours.predict(new)) < 0.05
    assert ours.history_[0]["trace_error"] < 0.05
    assert ours.converged_


# ------------------------------------------------------------------ weights, order, input


@every_kind
def test_weights_are_repetition_and_order_does_not_matter(kind):
    X, new = blobs(), blobs(50, seed=1)
    rows = np.repeat(np.arange(150), WEIGHTS)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    weighted, repeated = fit(kind, X, WEIGHTS, n_anchors=30), fit(kind, X[rows], n_anchors=30)
    np.testing.assert_array_equal(anchors_of(weighted).X_fit_, anchors_of(repeated).X_fit_)
    np.testing.assert_array_equal(repeated.labels_, weighted.labels_[rows])
    tol = 1e-9 if kind == "mixture" else 1e-12
    np.testing.assert_allclose(placed(repeated, new), placed(weighted, new), atol=tol)


@every_kind
def test_given_matrices_sparse_rows_shapes_and_points_as_anchors(kind):
    X, new = blobs(), blobs(50, seed=1)
    plain = fit(kind, X, n_anchors=30)
    points = fit(kind, X, solver=Nystroem(anchors=anchors_of(plain).X_fit_))
    np.testing.assert_array_equal(points.labels_, plain.labels_)
    np.testing.assert_allclose(placed(points, new), placed(plain, new), atol=1e-7)
    assert anchors_of(points).anchor_indices_ is None
    given = fit(kind, KERNEL(X), kernel="precomputed", n_anchors=30)
    chosen = anchors_of(given).anchor_indices_
    chosen = given._columns_[chosen] if kind == "mixture" else chosen
    same = fit(kind, X, solver=Nystroem(anchors=X[chosen]))
    assert anchors_of(given).X_fit_ is None
    assert anchors_of(given).n_anchors_ == 30
    assert same_partition(given.labels_, same.labels_)
    assert same_partition(given.predict(KERNEL(new, X)), same.predict(new))
    if kind != "mixture":
        sparse = fit(kind, scipy.sparse.csr_array(X), n_anchors=30)
        found = placed(sparse, scipy.sparse.csr_array(new))
        np.testing.assert_allclose(found, placed(plain, new), atol=1e-7)
    shapes = np.random.default_rng(0).standard_normal((60, 6, 2))
    model = fit(kind, shapes, n_clusters=2, kernel=VeroneseWhitney(), n_anchors=25)
    np.testing.assert_array_equal(model.predict(shapes), model.labels_)


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
    if kind == "intrinsic":  # pre-images need no features, of however many rows
        many = HypersphericalKMeans(K, kernel=KERNEL, random_state=0).fit(X)
        assert many.n_anchors_ is None


@k_means
def test_what_is_refused(kind):
    X = blobs()
    assert fit(kind, X, solver="exact", n_anchors=20).n_anchors_ is None
    for solver in ("krylov", Krylov(), None):
        with pytest.raises(ValueError, match=r"solver of \w+KMeans must be"):
            fit(kind, X, solver=solver)
    with pytest.raises(ValueError, match="intrinsic"):
        HypersphericalKMeans(2, n_anchors=5).fit(X)
    with pytest.warns(ConvergenceWarning, match="Raise n_anchors"):
        few = fit(kind, X, solver=Nystroem(n_anchors=5, tol=1e-4, random_state=0))
    assert not few.converged_


@every_kind
def test_files_and_a_fit_after_another(kind, tmp_path):
    X, new = blobs(), blobs(50, seed=1)
    model = fit(kind, X, n_anchors=30)
    expected = placed(model, new)
    np.testing.assert_array_equal(placed(pickle.loads(pickle.dumps(model)), new), expected)
    save(model, tmp_path / "model.orthodrome")
    np.testing.assert_array_equal(placed(load(tmp_path / "model.orthodrome"), new), expected)
    if kind == "mixture":
        drawn, labels = model.sample(200, random_state=0)
        assert np.mean(model.predict(drawn) == labels) > 0.9
    again = model.set_params(solver=exact(kind), n_anchors=None).fit(X)
    assert anchors_of(again).n_anchors_ is None
    np.testing.assert_allclose(placed(again, new), placed(fit(kind, X, solver=exact(kind)), new))


@pytest.mark.parametrize("start", STARTS)
def test_nothing_is_as_large_as_the_gram_matrix(start, monkeypatch):
    def refuse(*_):
        raise AssertionError("a product with the Gram matrix")

    monkeypatch.setattr(TiledGram, "_matmat", refuse)
    monkeypatch.setattr(TiledGram, "toarray", refuse)
    fit("mixture", blobs(), n_anchors=20, init_params=start)
    with pytest.raises(AssertionError, match="a product"):
        fit("mixture", blobs(), solver="dense")


@pytest.mark.parametrize("n_modes", [3, 0.99])
def test_coordinates_that_do_not_fit_are_refused(n_modes, monkeypatch):
    X = np.random.default_rng(0).standard_normal((3000, 4))
    fits = []
    fit_pga = KernelPGA._fit_rows

    def noted(self, *args, **options):
        fits.append(self)
        return fit_pga(self, *args, **options)

    monkeypatch.setattr(KernelPGA, "_fit_rows", noted)
    options = {"n_anchors": 20, "n_init": 1, "memory_budget": "64KiB", "random_state": 0}
    with pytest.raises(ValueError, match=r"coordinates of all 3,000 rows .*memory_budget"):
        GeodesicMixture(2, n_modes, **options).fit([X[:1000], X[1000:]])
    assert len(fits) == (n_modes != 3)  # the number of modes is known before, or only after


# ------------------------------------------------------------------ where it is hard


def test_antipodes():
    """Flat means of antipodes are 0; on the sphere a cluster of them has no mean."""
    circle = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    flat = fit("flat", circle, kernel="linear", n_clusters=1)
    assert flat.inertia_ == pytest.approx(4)
    for kind in ("intrinsic", "mixture"):
        with pytest.raises(ValueError, match=r"antipod|cancel"):
            fit(kind, circle[:2], kernel="linear", n_clusters=1)
    apart = fit("intrinsic", circle[:2], kernel="linear", n_clusters=2)
    assert apart.labels_.tolist() == [1, 0]


def test_a_point_orthogonal_to_all_anchors_is_refused():
    X = np.concatenate([[[90.0, 90.0, 90.0]], blobs()])
    solver = Nystroem(anchors=blobs()[::3])
    for kind in ("intrinsic", "mixture"):
        with pytest.raises(ValueError, match="Row 0 of X is orthogonal to all anchors"):
            fit(kind, X, solver=solver)
    model = fit("intrinsic", X[1:], solver=solver)
    with pytest.raises(ValueError, match="orthogonal to all anchors"):
        model.predict(X[:1])
    assert len(fit("flat", X, solver=solver).labels_) == 151


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
def test_degrees_below_what_the_anchors_leave_out_are_refused(laplacian):
    X = blobs() - 2.0
    with pytest.raises(ValueError, match=r"degree of row .* below 0"):
        fit(laplacian, X, kernel="linear")
    with pytest.raises(ValueError, match="not positive definite"):
        fit(laplacian, X, kernel=Power(), n_anchors=20)


def test_the_tolerance_is_that_of_the_trace():
    X = blobs()
    loose = fit("njw", X, tol=0.1)
    assert loose.n_anchors_ < 60
    assert loose.history_[0]["trace_error"] <= 0.1
    assert loose.converged_
    with pytest.warns(ConvergenceWarning, match="stopped at n_anchors.*Raise n_anchors"):
        few = fit("njw", X, tol=1e-3, n_anchors=5)
    assert not few.converged_
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
        fit("njw", blobs(1200), n_anchors=50, max_iter=1)


def test_the_uncertainty_of_degrees_is_a_bound():
    X = blobs()
    kernel = Gaussian(sigma=0.5).fit(X)
    canonical = canonical_rows(X, WEIGHTS.astype(float))
    for count in (5, 40, 110):
        request = Request("a test", K, Nystroem(n_anchors=count, random_state=0))
        plan = make_plan(rows_of(canonical, kernel), kernel, request)
        view = view_of(canonical, kernel, plan, K)
        sums = kernel(canonical.data) @ canonical.weights
        ours = view.gram @ canonical.weights
        assert np.all(np.abs(ours - sums) <= view.sum_uncertainty())
        anchors = choose_anchors(
            kernel, canonical.data, count, sample_weight=canonical.weights, random_state=0
        )
        features = anchor_coordinates(kernel, canonical.data, anchors)
        np.testing.assert_array_equal(features.toarray(), view.points.toarray())
