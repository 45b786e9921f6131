"""Estimators of dask arrays: what they are of the same rows in memory, to rounding."""

import numpy as np
import pytest
from sklearn.base import clone

from laws_shapes import in_form, three_leaves, two_kinds_of_matrices
from orthodrome import GeodesicMixture, KernelPCA, KernelPGA, KernelSpectralClustering, load, save
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian, Linear, LogEuclidean, VeroneseWhitney
from orthodrome.metrics import variation_of_information

dask = pytest.importorskip("dask", reason="needs dask: pip install orthodrome[distributed]")
da = pytest.importorskip("dask.array", reason="needs dask: pip install orthodrome[distributed]")


def data(n=600, d=5, seed=0):
    rng = np.random.default_rng(seed)
    centers = 3 * np.random.default_rng(9).standard_normal((3, d))
    return centers[rng.integers(3, size=n)] + rng.standard_normal((n, d))


def chunked(X, rows=160):
    return da.from_array(X, chunks=(rows, 3, *X.shape[2:]))


ANCHORS = Nystroem(n_anchors=60, random_state=0)
GIVEN = Nystroem(anchors=data(60, seed=5))
# To rounding; and where tiles are recomputed, as they are here, blocks of vectors are as wide.
KRYLOV = {"solver": "krylov", "tol": 1e-13, "storage": "recompute", "random_state": 0}


def mixture(solver, kind):
    return GeodesicMixture(
        5, n_modes=3, solver=solver, covariance_type=kind, n_init=2, random_state=0, tol=1e-4
    )


def spectral(solver, laplacian):
    kernel = Gaussian(sigma=2.0)
    return KernelSpectralClustering(3, kernel, laplacian=laplacian, solver=solver, random_state=0)


#: Estimators, and tolerances relative to the largest number.
MODELS = {
    "KernelPCA, nystroem": (KernelPCA(3, solver=ANCHORS), 1e-10),
    "KernelPGA, nystroem": (KernelPGA(3, solver=ANCHORS), 1e-10),
    "KernelPCA, krylov": (KernelPCA(3, **KRYLOV), 1e-9),
    "KernelPGA, krylov": (KernelPGA(3, **KRYLOV), 1e-9),
    "KernelPCA, dense": (KernelPCA(2, solver="dense"), 1e-8),
    "KernelPCA, hebbian": (KernelPCA(2, solver="hebbian", random_state=0), 1e-8),
    "GeodesicMixture, full": (mixture(GIVEN, "full"), 1e-9),
    "GeodesicMixture, tied": (mixture("krylov", "tied"), 1e-6),
    **{
        f"KernelSpectralClustering, {name}, {laplacian}": (spectral(solver, laplacian), 1e-5)
        for name, solver in (("nystroem", GIVEN), ("krylov", "krylov"))
        for laplacian in ("njw", "ncut", "kernel-pca")
    },
}
ATTRIBUTES = ("eigenvalues_", "embedding_", "mean_cosines_", "sphere_coordinates_")
ATTRIBUTES += ("means_", "covariances_", "lower_bound_", "anchor_indices_", "labels_")
METHODS = ("transform", "predict", "predict_proba", "score", "bic")


def check_same(found, expected, tolerance, name):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype, name
    if expected.dtype.kind == "f":
        atol = tolerance * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol, err_msg=name)
    elif name == "anchor_indices_":
        np.testing.assert_array_equal(found, expected)
    else:
        assert variation_of_information(found, expected) == 0, name


def check_fits(model, X, new, weights, lazy_weights, tolerance):
    local = clone(model).fit(X, sample_weight=weights)
    lazy = clone(model).fit(chunked(X), sample_weight=lazy_weights)
    for name in ATTRIBUTES:
        if hasattr(local, name):
            check_same(getattr(lazy, name), getattr(local, name), tolerance, name)
    for name in METHODS:
        if not hasattr(local, name):
            continue
        expected = getattr(local, name)(new)
        check_same(getattr(lazy, name)(new), expected, 10 * tolerance, name)
        if isinstance(model, KernelSpectralClustering) and model.solver == "krylov":
            with pytest.raises(ValueError, match="solver='nystroem'"):
                lazy.predict(chunked(new, 30))
            continue
        found = getattr(lazy, name)(chunked(new, 30))
        assert isinstance(found, da.Array) == bool(np.ndim(expected))
        check_same(found, expected, 10 * tolerance, name)
    return lazy


@pytest.mark.parametrize("name", MODELS)
def test_fits_and_new_rows_equal_the_local_ones(name):
    model, tolerance = MODELS[name]
    X, new = data(), data(70, seed=1)
    weights = np.random.default_rng(2).integers(0, 4, size=len(X)).astype(np.float64)
    check_fits(model, X, new, None, None, tolerance)
    anchors = isinstance(model.solver, Nystroem)
    lazy_weights = da.from_array(weights, chunks=250) if anchors else weights
    lazy = check_fits(model, X, new, weights, lazy_weights, tolerance)
    if anchors:  # no row of the data is here
        assert not any(
            isinstance(value, np.ndarray) and len(X) in value.shape for value in vars(lazy).values()
        )


@pytest.mark.parametrize("name", ["KernelPCA, nystroem", "KernelPGA, krylov"])
def test_single_precision(name):
    X, new = data().astype(np.float32), data(70, seed=1).astype(np.float32)
    check_fits(MODELS[name][0], X, new, None, None, 5e-4)


SHAPES, MATRICES = in_form(three_leaves(200)[0], "points"), two_kinds_of_matrices(200)[0]


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (KernelPGA(2, VeroneseWhitney(), solver=ANCHORS), SHAPES),
        (KernelPGA(2, VeroneseWhitney(), **KRYLOV), SHAPES),
        (KernelPCA(2, Linear(), **KRYLOV), data(400)),
        (KernelPCA(2, LogEuclidean(), solver=ANCHORS), MATRICES),
    ],
)
def test_shapes_matrices_and_other_kernels(model, X):
    check_fits(model, X, X[:50], None, None, 1e-8)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("make", [KernelPGA, KernelSpectralClustering])
def test_auto_is_nystroem_and_any_scheduler_will_do(make, scheduler):
    X = data()
    local = make(3, solver="nystroem", n_anchors=50, random_state=0).fit(X)
    with dask.config.set(scheduler=scheduler):
        lazy = make(3, n_anchors=50, random_state=0).fit(chunked(X))
        assert lazy.solver_ == "nystroem"
        name = "labels_" if hasattr(lazy, "labels_") else "embedding_"  # other anchors
        check_same(getattr(lazy, name), getattr(local, name), 1e-10, name)


def test_a_widely_spread_cloud_needs_no_data_in_this_process():
    """The descent to its mean may need a factor of the Gram matrix."""
    X = np.random.default_rng(3).standard_normal((300, 3)) + np.array([1.2, 0, 0])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    model = KernelPGA(2, kernel="linear", solver="krylov")
    with pytest.warns(UserWarning, match="quarter of a great circle"):
        local, lazy = clone(model).fit(X), clone(model).fit(chunked(X, 100))
    np.testing.assert_allclose(lazy.mean_cosines_, local.mean_cosines_, atol=1e-8)


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


def test_models_are_saved_without_their_rows(tmp_path):
    X, new = data(900), data(20, seed=1)
    weights = da.ones(900, chunks=200)
    model = KernelPGA(2, n_anchors=40, random_state=0).fit(chunked(X, 300), sample_weight=weights)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(new), model.transform(new))
    mixture = GeodesicMixture(3, n_modes=2, n_anchors=40, random_state=0).fit(chunked(X, 300))
    save(mixture, tmp_path / "mixture")
    np.testing.assert_array_equal(load(tmp_path / "mixture").predict(X), mixture.labels_)
    exact = KernelPCA(2, solver="krylov").fit(chunked(X, 300))
    with pytest.raises(ValueError, match=r"X_fit_ is a dask array.*solver='nystroem'"):
        save(exact, tmp_path / "exact")
