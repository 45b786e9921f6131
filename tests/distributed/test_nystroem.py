"""Kernel PCA, kernel PGA and mixtures on features of dask arrays: as in memory, to rounding."""

import numpy as np
import pytest
from sklearn.base import clone

from orthodrome import GeodesicMixture, KernelPCA, KernelPGA
from orthodrome.coordinates import anchor_coordinates, choose_anchors
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Linear, LogEuclidean, Normalized

dask = pytest.importorskip("dask", reason="needs dask: pip install orthodrome[distributed]")
da = pytest.importorskip("dask.array", reason="needs dask: pip install orthodrome[distributed]")

TOLERANCE = {np.float64: 1e-10, np.float32: 5e-4}


def data(n=3000, d=5, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    centers = 2 * np.random.default_rng(9).standard_normal((4, d))
    return (centers[rng.integers(4, size=n)] + rng.standard_normal((n, d))).astype(dtype)


def chunked(X, rows=700):
    return da.from_array(X, chunks=(rows, 3))


def anchors(n=60):
    return Nystroem(n_anchors=n, random_state=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("Estimator", [KernelPCA, KernelPGA])
def test_fit_and_transform_equal_the_local_ones(Estimator, dtype):
    X, new = data(dtype=dtype), data(90, dtype=dtype, seed=1)
    weights = np.random.default_rng(2).integers(0, 4, size=len(X)).astype(np.float64)
    for given, lazy_weights in ((None, None), (weights, da.from_array(weights, chunks=900))):
        local = Estimator(3, solver=anchors()).fit(X, sample_weight=given)
        lazy = Estimator(3, solver=anchors()).fit(chunked(X), sample_weight=lazy_weights)
        tolerance = TOLERANCE[dtype] * np.abs(local.embedding_).max()
        np.testing.assert_array_equal(lazy.anchor_indices_, local.anchor_indices_)
        np.testing.assert_allclose(lazy.eigenvalues_, local.eigenvalues_, rtol=TOLERANCE[dtype])
        for found, expected in (
            (lazy.embedding_, local.embedding_),
            (lazy.transform(chunked(new, 40)), local.transform(new)),
            *[(getattr(lazy, name), getattr(local, name)) for name in of_rows(local)],
        ):
            assert isinstance(found, da.Array)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found.compute(), expected, atol=tolerance)
        assert lazy.embedding_.chunks[0] == (700, 700, 700, 700, 200)
        np.testing.assert_allclose(lazy.transform(new), local.transform(new), atol=tolerance)
        for X_new in (new, chunked(new, 40)):
            assert lazy.score(X_new) == pytest.approx(local.score(new), rel=TOLERANCE[dtype])
        assert not any(
            isinstance(value, np.ndarray) and len(X) in value.shape
            for name, value in vars(lazy).items()
        )


@pytest.mark.parametrize("length", [1.0, 2.0, 0.5])
@pytest.mark.parametrize("unit", [False, True])
def test_features_of_points_on_any_sphere_equal_the_local_ones(unit, length):
    rows, scale = data(230), length**-2
    X, new = np.split(length * rows / np.linalg.norm(rows, axis=1)[:, None], [200])
    kernel = Linear().fit(X)
    anchors = choose_anchors(kernel, X, 20, scale=scale, random_state=0)
    options = {"unit": unit, "scale": scale}
    local = anchor_coordinates(kernel, X, anchors, **options)
    lazy = anchor_coordinates(kernel, chunked(X, 70), anchors, **options)
    assert lazy.shape == local.shape
    assert lazy.dtype == local.dtype
    V, w = np.ones((local.shape[1], 2)), np.arange(len(X)) % 4
    for found, expected in (
        (lazy.captured, local.captured),
        (lazy.apply(V), local.apply(V)),
        (lazy.combine(w), local.combine(w)),
        (lazy.take(np.array([150, 3])), local.take(np.array([150, 3]))),
        (lazy.toarray()[60:80], local.toarray()[60:80]),
        (lazy.of(new).toarray(), local.of(new).toarray()),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


def of_rows(model):
    names = ("eigenvectors_", "mean_cosines_", "sphere_coordinates_")
    return [name for name in names if hasattr(model, name)]


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_auto_is_nystroem_and_any_scheduler_will_do(scheduler):
    X = data(900)
    local = KernelPGA(2, solver="nystroem", n_anchors=50, random_state=0).fit(X)
    with dask.config.set(scheduler=scheduler):
        lazy = KernelPGA(2, n_anchors=50, random_state=0).fit(chunked(X, 200))
        assert lazy.solver_ == "nystroem"
        np.testing.assert_allclose(lazy.embedding_.compute(), local.embedding_, atol=1e-10)


def test_candidates_for_anchors_may_stay_away(monkeypatch):
    X = data(1500)
    here = KernelPCA(2, solver=anchors()).fit(chunked(X, 400))
    monkeypatch.setattr("orthodrome.rows.dask._MAX_GATHERED", 1000)
    away = KernelPCA(2, solver=anchors()).fit(chunked(X, 400))
    np.testing.assert_array_equal(away.anchor_indices_, here.anchor_indices_)
    np.testing.assert_allclose(away.eigenvalues_, here.eigenvalues_, rtol=1e-12)


def test_a_missing_value_is_named_by_its_row():
    X = data(500)
    X[321, 2] = np.nan
    for model in (KernelPGA(2, n_anchors=30), GeodesicMixture(2, n_anchors=30)):
        name = type(model).__name__
        with pytest.raises(ValueError, match=rf"{name} contains NaN or infinity in row 321\."):
            model.fit(chunked(X, 100))
    fitted = GeodesicMixture(2, n_anchors=30).fit(chunked(X[:300], 100))
    labels = fitted.predict(chunked(X, 100))
    with pytest.raises(ValueError, match=r"GeodesicMixture contains NaN or infinity in row 321\."):
        labels.compute()


@pytest.mark.parametrize(
    ("kind", "solver"), [("full", Nystroem(anchors=data(80, seed=4))), ("tied", "krylov")]
)
def test_mixtures_equal_the_local_ones(kind, solver):
    X, new = data(600), data(70, seed=1)
    weights = np.random.default_rng(2).integers(1, 3, size=len(X))
    model = GeodesicMixture(
        5, n_modes=3, solver=solver, covariance_type=kind, n_init=2, random_state=0, tol=1e-4
    )
    local = clone(model).fit(X, sample_weight=weights)
    lazy = clone(model).fit(chunked(X, 160), sample_weight=weights)
    assert local.n_iter_ > 3
    assert lazy.n_iter_ == local.n_iter_
    tolerance = 1e-6 if solver == "krylov" else 1e-9
    assert lazy.lower_bound_ == pytest.approx(local.lower_bound_, rel=tolerance)
    np.testing.assert_allclose(lazy.means_, local.means_, atol=tolerance)
    np.testing.assert_allclose(lazy.covariances_, local.covariances_, atol=tolerance)
    np.testing.assert_array_equal(np.asarray(lazy.labels_), local.labels_)
    labels = lazy.predict(chunked(new, 30))
    assert isinstance(labels, da.Array)
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(labels.compute(), local.predict(new))
    np.testing.assert_allclose(
        lazy.predict_proba(chunked(new, 30)).compute(), local.predict_proba(new), atol=1e-5
    )
    assert lazy.bic(chunked(X, 160)) == pytest.approx(local.bic(X), rel=1e-6)
    assert lazy.score(chunked(new, 30)) == pytest.approx(local.score(new), rel=1e-6)


def test_matrices_are_led_back_by_the_sample():
    """They become vectors only together with others: the regression uses the sample."""
    A = np.random.default_rng(0).normal(size=(40, 2, 2))
    X = A @ A.swapaxes(1, 2) + np.eye(2)
    solver = Nystroem(n_anchors=40, random_state=0)
    lazy = KernelPCA(3, kernel=Normalized(LogEuclidean()), solver=solver).fit(
        da.from_array(X, chunks=(10, 2, 2))
    )
    found = lazy.inverse_transform(np.asarray(lazy.transform(X)))
    assert found.shape == X.shape
    assert np.linalg.eigvalsh(found).min() > 0
    assert np.linalg.norm(found - X) < 0.8 * np.linalg.norm(X - X.mean(axis=0))
