"""Fits of dask arrays: those of the same rows in memory, with lazy results for every row."""

import numpy as np
import pytest
from sklearn.base import clone

from orthodrome import (
    GeodesicMixture,
    KernelPCA,
    KernelPGA,
    KernelSpectralClustering,
    load,
    save,
)
from orthodrome.coordinates import anchor_coordinates, choose_anchors
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian, Linear, LogEuclidean, Normalized, VeroneseWhitney
from orthodrome.metrics import variation_of_information

dask = pytest.importorskip("dask", reason="needs dask: pip install orthodrome[distributed]")
da = pytest.importorskip("dask.array", reason="needs dask: pip install orthodrome[distributed]")

N = 1500
CHUNKS = (400, 400, 400, 300)


def data(n=N, d=5, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    centers = 2 * np.random.default_rng(9).standard_normal((4, d))
    return (centers[rng.integers(4, size=n)] + rng.standard_normal((n, d))).astype(dtype)


def chunked(X, rows=400):
    return da.from_array(X, chunks=(rows, 3, 2)[: X.ndim])


ANCHORS = Nystroem(n_anchors=60, random_state=0)
POINTS = Nystroem(anchors=data(60, seed=5))
# To rounding; if tiles are recomputed, as they are with dask, blocks of vectors are as wide.
KRYLOV = {"solver": "krylov", "tol": 1e-13, "storage": "recompute", "random_state": 0}


def mixture(kind, solver):
    options = {"covariance_type": kind, "n_init": 2, "random_state": 0, "tol": 1e-4}
    return GeodesicMixture(5, n_modes=3, solver=solver, **options)


def spectral(laplacian, solver):
    options = {"kernel": Gaussian(sigma=2.0), "laplacian": laplacian, "random_state": 0}
    return KernelSpectralClustering(3, solver=solver, **options)


# Each with the tolerance of its results, relative to the largest.
DECOMPOSITIONS = {
    "pca": (KernelPCA(3, solver=ANCHORS), 1e-10),
    "pga": (KernelPGA(3, solver=ANCHORS), 1e-10),
    "exact pca": (KernelPCA(3, **KRYLOV), 1e-9),
    "exact pga": (KernelPGA(3, **KRYLOV), 1e-9),
}
CLUSTERINGS = {
    f"{name}, {way}": (make(way, solver), tolerance)
    for make, ways in ((mixture, ("full", "tied")), (spectral, ("njw", "ncut", "kernel-pca")))
    for way in ways
    for name, solver, tolerance in (("points", POINTS, 1e-9), ("exact", "krylov", 1e-6))
}
SINGLE = {1e-10: 5e-4, 1e-9: 2e-4}
OF_FITS = ("eigenvalues_", "means_", "covariances_", "lower_bound_")
OF_ROWS = ("embedding_", "eigenvectors_", "mean_cosines_", "sphere_coordinates_")


def close(found, expected, tolerance):
    atol = tolerance * np.abs(expected).max()
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=atol)


def check_attributes(lazy, local, tolerance):
    assert getattr(lazy, "solver_", None) == getattr(local, "solver_", None)
    assert lazy.n_features_in_ == local.n_features_in_
    for name in (*OF_FITS, *OF_ROWS):
        if hasattr(local, name):
            expected = getattr(local, name)
            close(getattr(lazy, name), expected, tolerance if name in OF_FITS else 10 * tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_decompositions_equal_the_local_ones(name, dtype):
    model, tolerance = DECOMPOSITIONS[name]
    tolerance = tolerance if dtype == np.float64 else SINGLE[tolerance]
    X, new = data(dtype=dtype), data(90, dtype=dtype, seed=1)
    weights = np.random.default_rng(2).integers(0, 4, size=N).astype(np.float64)
    there = da.from_array(weights, chunks=90) if "exact" not in name else weights
    for given, lazy_weights in ((None, None), (weights, there)):
        local = clone(model).fit(X, sample_weight=given)
        lazy = clone(model).fit(chunked(X), sample_weight=lazy_weights)
        check_attributes(lazy, local, tolerance)
        expected = local.transform(new)
        for rows in (new, chunked(new, 40)):
            found = lazy.transform(rows)
            assert isinstance(found, da.Array) is isinstance(rows, da.Array)
            assert found.dtype == expected.dtype
            close(found, expected, 10 * tolerance)
            assert lazy.score(rows) == pytest.approx(local.score(new), rel=10 * tolerance)
        assert found.chunks[0] == (40, 40, 10)
        if model.solver is ANCHORS:
            np.testing.assert_array_equal(lazy.anchor_indices_, local.anchor_indices_)
            assert lazy.embedding_.chunks[0] == CHUNKS
            arrays = [value for value in vars(lazy).values() if isinstance(value, np.ndarray)]
            assert not any(N in array.shape for array in arrays)


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_clusterings_equal_the_local_ones(name):
    model, tolerance = CLUSTERINGS[name]
    X, new = data(), data(70, seed=1)
    few = 1 if isinstance(model, GeodesicMixture) else 0
    weights = np.random.default_rng(2).integers(few, 3, size=N)
    local = clone(model).fit(X, sample_weight=weights)
    lazy = clone(model).fit(chunked(X), sample_weight=weights)
    check_attributes(lazy, local, tolerance if isinstance(model, GeodesicMixture) else 1e-6)
    if few == 0 or model.solver is POINTS:
        assert lazy.labels_.chunks == (CHUNKS,)
    assert variation_of_information(np.asarray(lazy.labels_), local.labels_) == 0
    assert variation_of_information(lazy.predict(new), local.predict(new)) == 0
    if isinstance(model, KernelSpectralClustering) and model.solver == "krylov":
        with pytest.raises(ValueError, match="solver='nystroem'"):
            lazy.predict(chunked(new, 30))
        return
    labels = lazy.predict(chunked(new, 30))
    assert isinstance(labels, da.Array)
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(labels.compute(), lazy.predict(new))
    if isinstance(model, GeodesicMixture):
        assert lazy.n_iter_ == local.n_iter_ > 3
        close(lazy.predict_proba(chunked(new, 30)), local.predict_proba(new), 1e-5)
        assert lazy.bic(chunked(X)) == pytest.approx(local.bic(X), rel=1e-6)
        assert lazy.score(chunked(new, 30)) == pytest.approx(local.score(new), rel=1e-6)


def shapes(n, seed=0):
    """Outlines of seven landmarks in two groups."""
    rng = np.random.default_rng(seed)
    groups = np.random.default_rng(9).standard_normal((2, 7, 2))
    return groups[rng.integers(2, size=n)] + 0.1 * rng.standard_normal((n, 7, 2))


def matrices(n, seed=0):
    """Covariances in two groups."""
    rng = np.random.default_rng(seed)
    scales = np.array([[1.0, 1.0, 1.0], [9.0, 3.0, 0.5]])[rng.integers(2, size=n)]
    draws = np.sqrt(scales)[:, None, :] * rng.standard_normal((n, 40, 3))
    return np.swapaxes(draws, 1, 2) @ draws / 40


@pytest.mark.parametrize(
    ("make", "kernel"), [(shapes, VeroneseWhitney()), (matrices, Normalized(LogEuclidean()))]
)
def test_rows_that_are_shapes_or_positive_matrices(make, kernel):
    X = make(120)
    for model in (
        KernelSpectralClustering(2, solver=Nystroem(anchors=make(25, 5)), random_state=0),
        KernelPGA(2, solver=Nystroem(n_anchors=40, random_state=0)),
        KernelPGA(2, **KRYLOV),
    ):
        model.set_params(kernel=kernel)
        local, lazy = clone(model).fit(X), clone(model).fit(chunked(X, 50))
        check_attributes(lazy, local, 1e-6)
    # these become vectors only beside others: the map back is that of a sample
    solver = Nystroem(n_anchors=40, random_state=0)
    lazy = KernelPCA(3, kernel=kernel, solver=solver).fit(chunked(X, 50))
    found = lazy.inverse_transform(np.asarray(lazy.transform(X)))
    assert found.shape == X.shape
    if make is matrices:
        assert np.linalg.eigvalsh(found).min() > 0


@pytest.mark.parametrize("length", [1.0, 2.0, 0.5])
@pytest.mark.parametrize("unit", [False, True])
def test_features_of_points_on_any_sphere_equal_the_local_ones(unit, length):
    rows, options = data(230), {"unit": unit, "scale": length**-2}
    X, new = np.split(length * rows / np.linalg.norm(rows, axis=1)[:, None], [200])
    kernel = Linear().fit(X)
    anchors = choose_anchors(kernel, X, 20, scale=length**-2, random_state=0)
    local, lazy = (
        anchor_coordinates(kernel, given, anchors, **options) for given in (X, chunked(X, 70))
    )
    assert (lazy.shape, lazy.dtype) == (local.shape, local.dtype)
    for use in (
        lambda points: points.captured,
        lambda points: points.apply(np.ones((local.shape[1], 2))),
        lambda points: points.combine(np.arange(len(X)) % 4),
        lambda points: points.take(np.array([150, 3])),
        lambda points: points.toarray(),
        lambda points: points.of(new).toarray(),
    ):
        close(use(lazy), use(local), 1e-10)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_any_scheduler_and_any_solver(scheduler):
    X = data(300)
    with dask.config.set(scheduler=scheduler):
        for solver in ("dense", "hebbian", "nystroem"):
            model = KernelPCA(2, random_state=0, solver=solver, n_anchors=50)
            check_attributes(clone(model).fit(chunked(X, 80)), model.fit(X), 1e-8)
        assert clone(model).set_params(solver="auto").fit(chunked(X)).solver_ == "nystroem"
        clusters = KernelSpectralClustering(3, n_anchors=40, random_state=0).fit(chunked(X, 80))
        assert clusters.solver_ == "nystroem"


def test_candidates_for_anchors_may_stay_away(monkeypatch):
    here = KernelPCA(2, solver=ANCHORS).fit(chunked(data()))
    monkeypatch.setattr("orthodrome.rows.dask._MOST_GATHERED", 1000)
    away = KernelPCA(2, solver=ANCHORS).fit(chunked(data()))
    np.testing.assert_array_equal(away.anchor_indices_, here.anchor_indices_)
    np.testing.assert_allclose(away.eigenvalues_, here.eigenvalues_, rtol=1e-12)


def test_a_mean_that_is_far_needs_no_data_here():
    """A widely spread cloud on a sphere: the descent to the mean restates it, or gets a factor."""
    X = np.random.default_rng(3).standard_normal((300, 3)) + np.array([1.2, 0, 0])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    with pytest.warns(UserWarning, match="quarter of a great circle"):
        local, lazy = (
            KernelPGA(2, kernel="linear", solver="krylov").fit(given)
            for given in (X, chunked(X, 100))
        )
    np.testing.assert_allclose(lazy.mean_cosines_, local.mean_cosines_, atol=1e-8)


def test_a_missing_value_is_named_by_its_row():
    X = data(500)
    X[321, 2] = np.nan
    for model in (KernelPGA(2, n_anchors=30), GeodesicMixture(2, n_anchors=30)):
        words = rf"{type(model).__name__} contains NaN or infinity in row 321\."
        with pytest.raises(ValueError, match=words):
            clone(model).fit(chunked(X, 100))
        fitted = model.fit(chunked(X[:300], 100))
        rows = getattr(fitted, "transform", None) or fitted.predict
        with pytest.raises(ValueError, match=words):
            rows(chunked(X, 100)).compute()


def test_models_are_saved_without_their_rows(tmp_path):
    X, new = data(900), data(20, seed=1)
    weights = da.ones(900, chunks=200)
    model = KernelPGA(2, n_anchors=40, random_state=0).fit(chunked(X, 300), sample_weight=weights)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(new), model.transform(new))
    coordinates = loaded.transform(chunked(X, 300)).compute()
    np.testing.assert_allclose(coordinates, model.embedding_.compute(), atol=1e-14)
    mixture = GeodesicMixture(3, n_modes=2, n_anchors=40, random_state=0).fit(chunked(X, 300))
    save(mixture, tmp_path / "mixture")
    np.testing.assert_array_equal(load(tmp_path / "mixture").predict(X), mixture.labels_)
    exact = KernelPCA(2, solver="krylov").fit(chunked(X, 300))
    with pytest.raises(ValueError, match=r"X_fit_ is a dask array.*solver='nystroem'"):
        save(exact, tmp_path / "exact")


def test_refusals():
    X = data(100)
    with pytest.raises(ValueError, match=r"precomputed.*dask"):
        KernelPCA(2, kernel="precomputed", solver="krylov").fit(da.from_array(X @ X.T, chunks=50))
    model = KernelPCA(2, solver="krylov").fit(chunked(X, 40))
    with pytest.raises(ValueError, match="solver='nystroem'"):
        model.inverse_transform(model.embedding_)
    with pytest.raises(ValueError, match="8 features, but KernelPCA is expecting 5"):
        model.transform(da.ones((4, 8), chunks=2))
    local = KernelSpectralClustering(2, random_state=0).fit(X)
    for use in (KernelSpectralClustering(2).fit, local.predict):
        with pytest.raises(ValueError, match=r"takes dask arrays, not Delayed.*to_dask_array"):
            use(dask.delayed(X))
