"""Where the rows are stored does not change a fit: memory, batches, memory map, zarr or Dask."""

from functools import cache

import numpy as np
import pytest

from laws_cluster import same_partition
from laws_decomposition import assert_same
from orthodrome import (
    GeodesicMixture,
    HypersphericalKMeans,
    KernelKMeans,
    KernelPCA,
    KernelPGA,
    KernelSpectralClustering,
)
from orthodrome.coordinates import choose_anchors
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian
from orthodrome.rows import as_rows
from orthodrome.sphere.lloyd import SEEDINGS

N, D, K = 320, 5, 3
DTYPES = {"float64": 1e-12, "float32": 5e-6}  # tolerances: 4,500 and 42 units of rounding
WEIGHTS = {"plain": None, "weighted": np.random.default_rng(2).integers(0, 4, N).astype(float)}


def rows(n=N, seed=0, dtype="float64"):
    """Three skewed groups of different sizes, with positive entries."""
    rng = np.random.default_rng(seed)
    centers = np.array([[1, 1, 2, 1, 1], [5, 2, 1, 2, 1], [1, 5, 2, 3, 1]], dtype=np.float64)
    groups = rng.choice(K, size=n, p=[0.5, 0.3, 0.2])
    return (centers[groups] + rng.gamma(2.0, 0.4, size=(n, D)) * np.linspace(1.5, 0.5, D)).astype(
        dtype
    )


# ------------------------------------------------------------------ kinds of storage


def memory_map(X, folder):
    np.save(folder / "rows.npy", X)
    return np.load(folder / "rows.npy", mmap_mode="r")


def zarr_array(X, folder):
    zarr = pytest.importorskip("zarr", reason="needs zarr: pip install orthodrome[distributed]")
    stored = zarr.create_array(
        str(folder / "rows.zarr"), shape=X.shape, chunks=(90, D), dtype=X.dtype
    )
    stored[:] = X
    return stored


def dask_array(X, folder):
    da = pytest.importorskip("dask.array", reason="needs dask: pip install orthodrome[distributed]")
    return da.from_array(X, chunks=(130, 3))


KINDS = {
    "memory": lambda X, folder: X,
    "batches": lambda X, folder: [X[:7], X[7:250], X[250:]],
    "memory map": memory_map,
    "zarr": zarr_array,
    "dask": dask_array,
}

# ------------------------------------------------------------------ models

BY_NUMBER = {"solver": Nystroem(anchors=np.arange(0, N, 16))}
BY_POINTS = {"solver": Nystroem(anchors=rows(25, seed=1))}
DENSE = {"solver": "dense"}
KRYLOV = {"solver": "krylov", "tol": 1e-13, "random_state": 0}
WIDE = Gaussian(sigma=3.0)


def hyperspherical(**options):
    return HypersphericalKMeans(K, centers="intrinsic", init=rows(K, seed=4), **options)


def k_means(**options):
    return KernelKMeans(K, init=rows(K, seed=4), **options)


def mixture(**options):
    return GeodesicMixture(K, n_modes=2, n_init=2, random_state=0, **options)


def pca(**options):
    return KernelPCA(K + 1, **options)


def pga(**options):
    return KernelPGA(K + 1, **options)


def spectral(**options):
    return KernelSpectralClustering(K, tol=1e-13, n_init=2, random_state=0, **options)


MODELS = {
    "pca, gaussian, anchors": (pca, {"kernel": "gaussian"} | BY_NUMBER),
    "pca, linear, anchors": (pca, {"kernel": "linear"} | BY_POINTS),
    "pca, linear, dense": (pca, {"kernel": "linear"} | DENSE),
    "pca, gaussian, krylov": (pca, {"kernel": "gaussian"} | KRYLOV),
    "pga, gaussian, anchors": (pga, {"kernel": WIDE} | BY_NUMBER),
    "pga, gaussian, angles": (
        pga,
        {"kernel": WIDE, "solver": Nystroem(anchors=np.arange(0, N, 16), sphere="angles")},
    ),
    "pga, cosine, anchors": (pga, {"kernel": "cosine"} | BY_POINTS),
    "pga, cosine, dense": (pga, {"kernel": "cosine"} | DENSE),
    "pga, gaussian, krylov": (pga, {"kernel": WIDE} | KRYLOV),
    "mixture, gaussian": (mixture, {"kernel": WIDE} | BY_POINTS),
    "mixture, cosine": (mixture, {"kernel": "cosine"} | BY_POINTS),
    "spectral clustering, gaussian": (spectral, {"kernel": WIDE} | BY_POINTS),
    "k-means, gaussian": (k_means, {"kernel": WIDE} | BY_POINTS),
    "k-means, linear": (k_means, {"kernel": "linear"} | BY_POINTS),
    "hyperspherical k-means, gaussian": (hyperspherical, {"kernel": WIDE} | BY_POINTS),
    "hyperspherical k-means, cosine": (hyperspherical, {"kernel": "cosine"} | BY_POINTS),
}
CASES = [
    (name, kind)
    for name in MODELS
    for kind in KINDS
    if kind in ("memory", "memory map", "dask") or not name.endswith(("dense", "krylov"))
]


@cache
def in_memory(name, weights, dtype):
    make, options = MODELS[name]
    return make(**options).fit(rows(dtype=dtype), sample_weight=WEIGHTS[weights])


# Half of all combinations, in which any two values of different columns meet.
EVERY_PAIR = [
    ("auto", "plain", "float64"),
    ("auto", "weighted", "float32"),
    ("recompute", "plain", "float32"),
    ("recompute", "weighted", "float64"),
]
# One combination of each case is quick. They take turns, so that every kind of storage and every
# estimator meets all of them.
TURNS = [
    pytest.param(
        name, kind, *pair, marks=[] if i == (list(MODELS).index(name) + j) % 4 else pytest.mark.slow
    )
    for name, kind in CASES
    for j in [list(KINDS).index(kind)]
    for i, pair in enumerate(EVERY_PAIR)
]

# ------------------------------------------------------------------ the law


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let so few rows be several blocks of every kind."""
    monkeypatch.setattr("orthodrome.rows.local._BLOCK", 64)
    monkeypatch.setattr("orthodrome.rows.local._SMALL", 100)


def projector(embedding, k):
    basis, _ = np.linalg.qr(np.asarray(embedding, dtype=np.float64)[:, :k])
    return basis @ basis.T


def check_components(fitted, expected, new, tol):
    assert_same(fitted.eigenvalues_, expected.eigenvalues_, tol)
    assert_same(fitted.explained_variance_ratio_, expected.explained_variance_ratio_, 10 * tol)
    gaps = -np.diff(expected.eigenvalues_) / expected.eigenvalues_[0]
    for k, gap in enumerate(gaps, start=1):
        difference = projector(fitted.embedding_, k) - projector(expected.embedding_, k)
        assert np.linalg.norm(difference) <= tol / gap
    # The last component only gives the gap below the others.
    assert_same(fitted.transform(new)[:, :K], expected.transform(new)[:, :K], 10 * tol)
    # Inner products with the mean: its coefficients over the anchors are ill-conditioned.
    cosines = [
        model.kernel_(new.astype(np.float64), np.asarray(model.X_fit_, dtype=np.float64))
        @ model.mean_
        for model in (fitted, expected)
    ]
    assert_same(*cosines, 10 * tol)


def check_clusters(fitted, expected, new, tol):
    for name in ("eigenvalues_", "inertia_", "lower_bound_", "means_", "covariances_"):
        if hasattr(expected, name):
            assert_same(getattr(fitted, name), getattr(expected, name), 10 * tol)
    labels = [
        np.append(np.asarray(model.labels_), model.predict(new)) for model in (fitted, expected)
    ]
    assert same_partition(*labels)


@pytest.mark.parametrize(("name", "kind", "storage", "weights", "dtype"), TURNS)
def test_the_fit_does_not_depend_on_storage(name, kind, storage, weights, dtype, tmp_path):
    if "spectral" in name and kind in ("batches", "zarr"):  # which take no rows of weight 0
        weights = "plain"
    make, options = MODELS[name]
    X = KINDS[kind](rows(dtype=dtype), tmp_path)
    fitted = make(storage=storage, **options).fit(X, sample_weight=WEIGHTS[weights])
    check = check_clusters if hasattr(fitted, "labels_") else check_components
    check(fitted, in_memory(name, weights, dtype), rows(60, 5, dtype), DTYPES[dtype])


@pytest.mark.parametrize("init", ["k-means++", "farthest-first", "random"])
@pytest.mark.parametrize("make", [k_means, hyperspherical])
@pytest.mark.parametrize("kind", KINDS)
def test_starts_from_rows_in_blocks(kind, make, init, tmp_path):
    """Starts depend on the order of the rows, and on a sample; clear groups are found anyway."""
    X, y = rows(), np.repeat(np.arange(K), [160, 100, 60])
    X = 6 * np.eye(D)[y] + 0.1 * X
    w = np.where(np.arange(N) % 7 == 0, 0.0, 1.0)
    outliers = np.flatnonzero(w == 0)[:5]
    X[outliers] = 60.0  # of weight 0: as if they were not there
    model = make(kernel=Gaussian(sigma=6.0), n_anchors=60, storage="recompute")
    model.set_params(init=init, n_init=4, random_state=0)
    fitted = model.fit(KINDS[kind](X, tmp_path), sample_weight=w)
    assert same_partition(np.asarray(fitted.labels_)[w > 0], y[w > 0])
    np.testing.assert_array_equal(fitted.predict(X), np.asarray(fitted.labels_))


def test_points_of_weight_0_are_no_starts():
    squared = (np.arange(6.0)[:, None] - np.arange(6.0)) ** 2
    weights = np.array([0.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    for name, seeding in SEEDINGS.items():
        for seed in range(5):
            chosen = seeding(lambda c: squared[:, c], weights, 2, np.random.RandomState(seed))
            assert np.all(weights[chosen] > 0), name


@pytest.mark.parametrize("kind", ["memory", "batches", "dask"])
def test_more_clusters_than_rows_of_positive_weight_are_refused(kind, tmp_path):
    w = np.zeros(N)
    w[:2] = 1.0
    with pytest.raises(ValueError, match="must not exceed the number of points"):
        KernelKMeans(3, n_anchors=5).fit(KINDS[kind](rows(), tmp_path), sample_weight=w)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("n_anchors", "way"), [(10, "uniform"), (60, "rpcholesky")])
@pytest.mark.parametrize("kind", KINDS)
def test_automatic_anchors(kind, n_anchors, way, weights, tmp_path):
    kernel, given = Gaussian(sigma=2.0).fit(rows()), KINDS[kind](rows(), tmp_path)
    options = {"anchors": "auto", "sample_weight": WEIGHTS[weights], "random_state": 0}
    found, expected = (
        choose_anchors(kernel, X, n_anchors, **options)
        for X in (as_rows(given, kernel, KernelPCA()), rows())
    )
    assert found.choice == expected.choice
    assert found.choice.startswith(way)
    np.testing.assert_array_equal(found.indices, expected.indices)


@pytest.mark.parametrize("make", [mixture, spectral, k_means, hyperspherical])
def test_numbers_of_anchors_are_those_of_the_rows_given(make):
    X = rows()
    by_number = make(kernel=WIDE, **BY_NUMBER).fit(X)
    by_points = make(kernel=WIDE, solver=Nystroem(anchors=X[::16])).fit(X)
    check_clusters(by_number, by_points, rows(60, 5), DTYPES["float64"])
