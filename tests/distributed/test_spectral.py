"""Spectral clustering of dask arrays: the embedding and the clusters of the same rows in memory."""

import numpy as np
import pytest

from orthodrome import KernelSpectralClustering
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian, LogEuclidean, VeroneseWhitney
from orthodrome.metrics import variation_of_information

da = pytest.importorskip("dask.array", reason="needs dask: pip install orthodrome[distributed]")

LAPLACIANS = ["njw", "ncut", "kernel-pca"]


def data(n=300, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    centers = 3 * np.random.default_rng(9).standard_normal((3, 4))
    return (centers[rng.integers(3, size=n)] + 0.7 * rng.standard_normal((n, 4))).astype(dtype)


def chunked(X, rows=80):
    return da.from_array(X, chunks=(rows, 3))


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("solver", [Nystroem(anchors=data(60, seed=5)), "krylov"])
def test_clusters_and_embedding_equal_the_local_ones(laplacian, solver):
    X, new = data(), data(70, seed=1)
    weights = np.random.default_rng(2).integers(0, 3, size=len(X))
    model = {"kernel": Gaussian(sigma=2.0), "laplacian": laplacian, "random_state": 0}
    for given in (None, weights):
        local = KernelSpectralClustering(3, solver=solver, **model).fit(X, sample_weight=given)
        lazy = KernelSpectralClustering(3, solver=solver, **model)
        lazy.fit(chunked(X), sample_weight=given)
        np.testing.assert_allclose(lazy.eigenvalues_, local.eigenvalues_, rtol=1e-8)
        assert isinstance(lazy.labels_, da.Array)
        assert lazy.labels_.chunks == (chunked(X).chunks[0],)
        np.testing.assert_allclose(lazy.embedding_.compute(), local.embedding_, atol=1e-5)
        assert variation_of_information(lazy.labels_.compute(), local.labels_) == 0
        assert variation_of_information(lazy.predict(new), local.predict(new)) == 0
    if solver == "krylov":
        with pytest.raises(ValueError, match="solver='nystroem'"):
            lazy.predict(chunked(new, 30))
    else:
        labels = lazy.predict(chunked(new, 30))
        assert isinstance(labels, da.Array)
        np.testing.assert_array_equal(labels.compute(), lazy.predict(new))


def shapes(n=120, seed=0):
    """Outlines of seven landmarks in two groups."""
    rng = np.random.default_rng(seed)
    groups = np.random.default_rng(9).standard_normal((2, 7, 2))
    return groups[rng.integers(2, size=n)] + 0.1 * rng.standard_normal((n, 7, 2))


def matrices(n=120, seed=0):
    """Covariances in two groups."""
    rng = np.random.default_rng(seed)
    scales = np.array([[1.0, 1.0, 1.0], [9.0, 3.0, 0.5]])[rng.integers(2, size=n)]
    draws = np.sqrt(scales)[:, None, :] * rng.standard_normal((n, 40, 3))
    return np.swapaxes(draws, 1, 2) @ draws / 40


@pytest.mark.parametrize(
    ("make", "kernel"),
    [(shapes, VeroneseWhitney()), (matrices, LogEuclidean())],
)
def test_rows_that_are_shapes_or_positive_matrices(make, kernel):
    X = make()
    model = {"kernel": kernel, "solver": Nystroem(anchors=make(25, 5)), "random_state": 0}
    local = KernelSpectralClustering(2, **model).fit(X)
    lazy = KernelSpectralClustering(2, **model).fit(da.from_array(X, chunks=(50, -1, -1)))
    np.testing.assert_allclose(lazy.eigenvalues_, local.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(lazy.embedding_.compute(), local.embedding_, atol=1e-5)
    assert variation_of_information(lazy.labels_.compute(), local.labels_) == 0
