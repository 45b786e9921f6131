"""Fits to dask arrays: what they are of the same rows in memory, and lazy where rows are many.

`tests/test_storage.py` compares the components and clusters of all storages. Here are the results
for each row, the kinds of data, and what only dask arrays have.
"""

import numpy as np
import pytest
from sklearn.base import clone

from laws_shapes import in_form, three_leaves, two_kinds_of_matrices
from orthodrome import GeodesicMixture, KernelPCA, KernelPGA, KernelSpectralClustering
from orthodrome.coordinates import anchor_coordinates, choose_anchors
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian, Linear, LogEuclidean, Normalized, VeroneseWhitney
from orthodrome.metrics import variation_of_information

dask = pytest.importorskip("dask", reason="needs dask: pip install orthodrome[distributed]")
da = pytest.importorskip("dask.array", reason="needs dask: pip install orthodrome[distributed]")

TOLERANCE = {"float64": 1e-9, "float32": 5e-4}


def data(n=600, d=5, seed=0):
    rng = np.random.default_rng(seed)
    centers = 2 * np.random.default_rng(9).standard_normal((4, d))
    return centers[rng.integers(4, size=n)] + rng.standard_normal((n, d)) * np.linspace(1.5, 0.5, d)


def shapes(n=600, seed=0):
    return in_form(three_leaves(n, seed, spread=0.1)[0], "points")


def matrices(n=600, seed=0):
    return two_kinds_of_matrices(n, seed)[0]


def chunked(X, rows=160):
    return da.from_array(X, chunks=(rows, 3) if X.ndim == 2 else (rows, -1, -1))


# Where tiles are recomputed, as they are here, blocks of vectors are as wide.
KRYLOV = {"solver": "krylov", "tol": 1e-13, "storage": "recompute", "random_state": 0}
ANCHORS = {"solver": Nystroem(n_anchors=60, random_state=0)}


def spectral(k=3, make=data, **options):
    options = {"solver": Nystroem(anchors=make(60, seed=5)), "random_state": 0} | options
    return KernelSpectralClustering(k, **({"kernel": Gaussian(sigma=2.0)} | options))


def mixture(kind, solver):
    options = {"n_init": 2, "random_state": 0, "tol": 1e-4}
    return GeodesicMixture(5, n_modes=3, solver=solver, covariance_type=kind, **options)


MODELS = {
    "pca, krylov": (KernelPCA(3, **KRYLOV), data),
    "pga, krylov": (KernelPGA(3, **KRYLOV), data),
    "pca, dense": (KernelPCA(2, solver="dense"), data),
    "pca, hebbian": (KernelPCA(2, solver="hebbian", random_state=0), data),
    "pga of shapes, krylov": (KernelPGA(2, VeroneseWhitney(), **KRYLOV), shapes),
    "pca, anchors": (KernelPCA(3, **ANCHORS), data),
    "pga, anchors": (KernelPGA(3, **ANCHORS), data),
    "mixture, anchors": (mixture("full", Nystroem(anchors=data(80, seed=4))), data),
    "mixture, krylov": (mixture("tied", "krylov"), data),
    "njw": (spectral(), data),
    "ncut": (spectral(laplacian="ncut"), data),
    "kernel-pca": (spectral(laplacian="kernel-pca"), data),
    "njw, krylov": (spectral(solver="krylov"), data),
    "shapes": (spectral(3, shapes, kernel=VeroneseWhitney()), shapes),
    "matrices": (spectral(2, matrices, kernel=LogEuclidean()), matrices),
}
SINGLE = ("pca, krylov", "pga, krylov", "pca, anchors", "pga, anchors")
#: Found by iterations that stop at a tolerance.
LOOSE = {"mixture, krylov": 1e-5, "pca, hebbian": 1e-8}
FITTED = ("eigenvalues_", "means_", "covariances_", "lower_bound_", "anchor_indices_")
OF_ROWS = ("embedding_", "labels_", "eigenvectors_", "mean_cosines_", "sphere_coordinates_")


def same(found, expected, tolerance):
    if np.asarray(expected).dtype.kind in "iu" and np.ndim(expected):
        assert variation_of_information(np.asarray(found), expected) == 0
        return
    atol = tolerance * np.abs(expected).max()
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float64") for name in MODELS), *((n, "float32") for n in SINGLE)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_results_equal_those_in_memory(name, dtype, weighted):
    model, make = MODELS[name]
    X, new = make().astype(dtype), make(70, seed=1).astype(dtype)
    weights = np.random.default_rng(2).integers(1, 4, size=len(X)) if weighted else None
    local = clone(model).fit(X, sample_weight=weights)
    is_spectral = isinstance(model, KernelSpectralClustering)
    in_rows = "anchors" in name or (is_spectral and "krylov" not in name)
    tolerance = LOOSE.get(name, 1e-5 if is_spectral else TOLERANCE[dtype])
    if weighted and in_rows:
        weights = da.from_array(weights.astype(float), chunks=200)
    lazy = clone(model).fit(chunked(X), sample_weight=weights)
    for attribute in (*FITTED, *OF_ROWS):
        expected, found = (getattr(model, attribute, None) for model in (local, lazy))
        if expected is None:
            continue
        same(found, expected, tolerance)
        if in_rows and attribute in OF_ROWS:
            assert isinstance(found, da.Array)
            assert (found.dtype, found.chunks[0]) == (expected.dtype, (160, 160, 160, 120))
    for method in ("transform", "predict", "predict_proba", "score", "bic"):
        if not hasattr(local, method):
            continue
        expected = getattr(local, method)(new)
        same(getattr(lazy, method)(new), expected, 10 * tolerance)
        if name == "njw, krylov":
            with pytest.raises(ValueError, match="solver='nystroem'"):
                lazy.predict(chunked(new, 30))
            continue
        there = getattr(lazy, method)(chunked(new, 30))
        same(there, expected, 10 * tolerance)
        if method in ("transform", "predict", "predict_proba"):
            assert isinstance(there, da.Array)
            assert (there.dtype, there.chunks[0]) == (expected.dtype, (30, 30, 10))
    arrays = [each for each in vars(lazy).values() if isinstance(each, np.ndarray)]
    assert not in_rows or all(len(X) not in each.shape for each in arrays)


def test_a_widely_spread_cloud_needs_no_data_in_this_process():
    """The descent to its mean may need a factor of the Gram matrix."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 3)) + np.array([1.2, 0, 0])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    with pytest.warns(UserWarning, match="quarter of a great circle"):
        local, lazy = (
            KernelPGA(2, kernel="linear", solver="krylov").fit(each) for each in (X, chunked(X))
        )
    same(lazy.mean_cosines_, local.mean_cosines_, 1e-8)


@pytest.mark.parametrize("length", [1.0, 2.0, 0.5])
@pytest.mark.parametrize("unit", [False, True])
def test_features_of_points_on_any_sphere_equal_the_local_ones(unit, length):
    rows, scale = data(230), length**-2
    X, new = np.split(length * rows / np.linalg.norm(rows, axis=1)[:, None], [200])
    kernel = Linear().fit(X)
    anchors = choose_anchors(kernel, X, 20, scale=scale, random_state=0)
    local, lazy = (
        anchor_coordinates(kernel, each, anchors, unit=unit, scale=scale)
        for each in (X, chunked(X, 70))
    )
    assert (lazy.shape, lazy.dtype) == (local.shape, local.dtype)
    V, w = np.ones((local.shape[1], 2)), np.arange(len(X)) % 4
    for found, expected in (
        (lazy.captured, local.captured),
        (lazy.apply(V), local.apply(V)),
        (lazy.combine(w), local.combine(w)),
        (lazy.take(np.array([150, 3])), local.take(np.array([150, 3]))),
        (lazy.toarray()[60:80], local.toarray()[60:80]),
        (lazy.of(new).toarray(), local.of(new).toarray()),
    ):
        same(found, expected, 1e-10)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_auto_is_nystroem_and_any_scheduler_will_do(scheduler):
    X = data(900)
    local = KernelPGA(2, solver="nystroem", n_anchors=50, random_state=0).fit(X)
    with dask.config.set(scheduler=scheduler):
        lazy = KernelPGA(2, n_anchors=50, random_state=0).fit(chunked(X, 200))
        assert lazy.solver_ == "nystroem"
        same(lazy.embedding_, local.embedding_, 1e-10)


def test_candidates_for_anchors_may_stay_away(monkeypatch):
    X = data(1500)
    here = KernelPCA(2, **ANCHORS).fit(chunked(X, 400))
    monkeypatch.setattr("orthodrome.rows.dask._MAX_GATHERED", 1000)
    away = KernelPCA(2, **ANCHORS).fit(chunked(X, 400))
    np.testing.assert_array_equal(away.anchor_indices_, here.anchor_indices_)
    np.testing.assert_allclose(away.eigenvalues_, here.eigenvalues_, rtol=1e-12)


def test_matrices_are_led_back_by_the_sample():
    """They become vectors only together with others: the regression uses the sample."""
    A = np.random.default_rng(0).normal(size=(40, 2, 2))
    X = A @ A.swapaxes(1, 2) + np.eye(2)
    solver = Nystroem(n_anchors=40, random_state=0)
    lazy = KernelPCA(3, kernel=Normalized(LogEuclidean()), solver=solver).fit(chunked(X, 10))
    found = lazy.inverse_transform(np.asarray(lazy.transform(X)))
    assert found.shape == X.shape
    assert np.linalg.eigvalsh(found).min() > 0
    assert np.linalg.norm(found - X) < 0.8 * np.linalg.norm(X - X.mean(axis=0))


def test_a_missing_value_is_named_by_its_row():
    X = data(500)
    X[321, 2] = np.nan
    for model in (KernelPGA(2, n_anchors=30), GeodesicMixture(2, n_anchors=30)):
        name = type(model).__name__
        with pytest.raises(ValueError, match=rf"{name} contains NaN or infinity in row 321\."):
            model.fit(chunked(X, 100))
    labels = GeodesicMixture(2, n_anchors=30).fit(chunked(X[:300], 100)).predict(chunked(X, 100))
    with pytest.raises(ValueError, match=r"GeodesicMixture contains NaN or infinity in row 321\."):
        labels.compute()


def test_unsupported_uses_raise():
    X = data(100)
    with pytest.raises(ValueError, match=r"precomputed.*dask"):
        KernelPCA(2, kernel="precomputed", solver="krylov").fit(da.from_array(X @ X.T, chunks=50))
    model = KernelPCA(2, solver="krylov").fit(chunked(X, 40))
    with pytest.raises(ValueError, match="solver='nystroem'"):
        model.inverse_transform(model.embedding_)
    with pytest.raises(ValueError, match="8 features, but KernelPCA is expecting 5"):
        model.transform(da.ones((4, 8), chunks=2))
