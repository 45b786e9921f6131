"""Exact kernel PCA and kernel PGA of dask arrays: what they are of the same rows in memory."""

import numpy as np
import pytest

from orthodrome import KernelPCA, KernelPGA
from orthodrome.kernels import Linear, VeroneseWhitney

da = pytest.importorskip("dask.array", reason="needs dask: pip install orthodrome[distributed]")

TOLERANCE = {np.float64: 1e-9, np.float32: 2e-4}


# To rounding; and where tiles are recomputed, as they are here, blocks of vectors are as wide.
KRYLOV = {"solver": "krylov", "tol": 1e-13, "storage": "recompute", "random_state": 0}


def data(n=700, d=6, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, d)) * np.linspace(2, 0.3, d) + 1).astype(dtype)


def chunked(X, rows=200):
    return da.from_array(X, chunks=(rows, 3))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("Estimator", [KernelPCA, KernelPGA])
def test_fit_and_transform_equal_the_local_ones(Estimator, dtype):
    X, new = data(dtype=dtype), data(90, dtype=dtype, seed=1)
    weights = np.random.default_rng(2).integers(0, 4, size=len(X))
    for sample_weight in (None, weights):
        local = Estimator(3, **KRYLOV).fit(X, sample_weight=sample_weight)
        lazy = Estimator(3, **KRYLOV)
        lazy.fit(chunked(X), sample_weight=sample_weight)
        same(local, lazy, TOLERANCE[dtype])
        tolerance = TOLERANCE[dtype] * np.abs(local.embedding_).max()
        here = lazy.transform(new)
        assert isinstance(here, np.ndarray)
        np.testing.assert_allclose(here, local.transform(new), atol=tolerance)
        there = lazy.transform(chunked(new, 40))
        assert isinstance(there, da.Array)
        assert there.chunks[0] == (40, 40, 10)
        assert there.dtype == here.dtype
        np.testing.assert_allclose(there.compute(), here, atol=tolerance)
        for given in (new, chunked(new, 40)):
            assert lazy.score(given) == pytest.approx(local.score(new), rel=10 * TOLERANCE[dtype])


def same(local, lazy, tolerance):
    assert lazy.solver_ == local.solver_
    assert lazy.n_features_in_ == local.n_features_in_
    assert lazy.kernel_.sigma_ == pytest.approx(local.kernel_.sigma_, rel=tolerance)
    np.testing.assert_allclose(lazy.eigenvalues_, local.eigenvalues_, rtol=10 * tolerance)
    np.testing.assert_allclose(
        lazy.embedding_, local.embedding_, atol=tolerance * np.abs(local.embedding_).max()
    )
    if hasattr(local, "mean_cosines_"):
        np.testing.assert_allclose(lazy.mean_cosines_, local.mean_cosines_, atol=tolerance)


@pytest.mark.parametrize("solver", ["dense", "hebbian"])
def test_other_solvers_take_the_operator_too(solver):
    X = data(300)
    local = KernelPCA(2, solver=solver, random_state=0).fit(X)
    lazy = KernelPCA(2, solver=solver, random_state=0).fit(chunked(X, 80))
    same(local, lazy, 1e-8)


def test_shapes_and_other_kernels():
    landmarks = data(200, 12)
    local = KernelPGA(2, kernel=VeroneseWhitney(), **KRYLOV).fit(landmarks)
    lazy = KernelPGA(2, kernel=VeroneseWhitney(), **KRYLOV).fit(chunked(landmarks, 70))
    np.testing.assert_allclose(lazy.embedding_, local.embedding_, atol=1e-8)
    X = data(400)
    local = KernelPCA(2, kernel=Linear(), solver="krylov").fit(X)
    lazy = KernelPCA(2, kernel=Linear(), solver="krylov").fit(chunked(X, 70))
    np.testing.assert_allclose(lazy.embedding_, local.embedding_, atol=1e-8)


def test_a_widely_spread_cloud_needs_no_data_in_this_process():
    """The descent to its mean may need a factor of the Gram matrix."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 3)) + np.array([1.2, 0, 0])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    with pytest.warns(UserWarning, match="quarter of a great circle"):
        local = KernelPGA(2, kernel="linear", solver="krylov").fit(X)
    with pytest.warns(UserWarning, match="quarter of a great circle"):
        lazy = KernelPGA(2, kernel="linear", solver="krylov").fit(chunked(X, 100))
    np.testing.assert_allclose(lazy.mean_cosines_, local.mean_cosines_, atol=1e-8)


def test_unsupported_uses_raise():
    X = data(100)
    with pytest.raises(ValueError, match=r"precomputed.*dask"):
        KernelPCA(2, kernel="precomputed", solver="krylov").fit(da.from_array(X @ X.T, chunks=50))
    model = KernelPCA(2, solver="krylov").fit(chunked(X, 40))
    with pytest.raises(ValueError, match="solver='nystroem'"):
        model.inverse_transform(model.embedding_)
    with pytest.raises(ValueError, match="8 features, but KernelPCA is expecting 6"):
        model.transform(da.ones((4, 8), chunks=2))
