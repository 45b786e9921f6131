"""Kernels that are not positive definite: no wrong answer without an error or a warning."""

import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import sigmoid_kernel

from orthodrome import (
    GeodesicMixture,
    HypersphericalKMeans,
    KernelKMeans,
    KernelPCA,
    KernelPGA,
    KernelPNS,
    KernelSpectralClustering,
)
from orthodrome.eigen import Nystroem, leading
from orthodrome.gram import DenseGram
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial, Sigmoid

X = np.random.default_rng(0).normal(size=(400, 4))
KERNELS = {"name": "sigmoid", "callable": sigmoid_kernel, "normalized": Normalized(Sigmoid())}
SPHERICAL = {
    "KernelPGA": lambda **options: KernelPGA(3, **options),
    "KernelPGA, angles": lambda random_state, n_anchors, **options: KernelPGA(
        3, solver=nystroem(n_anchors, random_state, sphere="angles"), **options
    ),
    "KernelPNS": lambda random_state, **options: KernelPNS(3, **options),
    "GeodesicMixture": lambda **options: GeodesicMixture(3, **options),
    "HypersphericalKMeans": lambda **options: HypersphericalKMeans(
        3, centers="intrinsic", **options
    ),
}
FLAT = {
    "KernelPCA": lambda **options: KernelPCA(3, **options),
    "KernelPCA, recomputed": lambda **options: KernelPCA(3, storage="recompute", **options),
    "KernelKMeans": lambda **options: KernelKMeans(3, **options),
    "spectral, njw": lambda **options: KernelSpectralClustering(3, **options),
    "spectral, kernel-pca": lambda **options: KernelSpectralClustering(
        3, laplacian="kernel-pca", **options
    ),
}
CASES = [
    *((make, kernel) for make in FLAT for kernel in KERNELS),
    *((make, "normalized") for make in SPHERICAL),
]


def nystroem(n_anchors, random_state, **options):
    return Nystroem(n_anchors, random_state=random_state, **options)


def refused():
    return pytest.raises(ValueError, match=r"not positive definite on these data .*meaningless")


@pytest.mark.parametrize(("make", "kernel"), CASES)
def test_nystroem_refuses_an_indefinite_kernel(make, kernel):
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(X)
        model = (FLAT | SPHERICAL)[make](kernel=KERNELS[kernel], n_anchors=20, random_state=seed)
        with refused():
            model.fit(rows)
        assert not hasattr(model, "kernel_")


def test_batches_a_matrix_and_an_operator_are_refused():
    options = {"n_anchors": 20, "random_state": 0}
    matrix = sigmoid_kernel(X)
    waiting = KernelPCA(3, kernel="sigmoid", **options).partial_fit(X[:100])
    for use in (
        lambda: KernelPCA(3, kernel="sigmoid", **options).partial_fit(X),
        lambda: waiting.transform(X),
        lambda: KernelPCA(3, kernel="precomputed", **options).fit(matrix),
        lambda: leading(DenseGram(matrix), 3, solver=nystroem(20, 0)),
    ):
        with refused():
            use()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kernel", [Gaussian(), Gaussian(sigma=30.0), Polynomial(degree=3), Linear()], ids=repr
)
def test_rounding_of_positive_kernels_is_allowed(kernel, dtype):
    rows = np.concatenate([X, X, 1e-3 * X, np.zeros((1, 4)), 1e3 + X]).astype(dtype)
    model = KernelPCA(3, kernel=kernel, n_anchors=300, random_state=0).fit(rows)
    assert model.converged_


dropped = pytest.warns(UserWarning, match=r"negative eigenvalues.*left out.*more than 1")


@pytest.mark.parametrize("solver", ["dense", "krylov"])
@pytest.mark.parametrize("n_components", [3, 0.9, None])
@pytest.mark.parametrize("kernel", [*KERNELS, "precomputed"])
def test_dropped_negative_eigenvalues_are_reported(kernel, n_components, solver):
    given = sigmoid_kernel(X) if kernel == "precomputed" else X
    model = KernelPCA(n_components, kernel=KERNELS.get(kernel, kernel), solver=solver)
    with dropped as caught:
        model.fit(given)
    assert caught[0].filename == __file__
    assert np.all(model.eigenvalues_ >= 0)
    values = np.linalg.eigvalsh(centered(model.kernel_(X) if kernel != "precomputed" else given))
    ratio = values[::-1][: model.n_components_] / values.sum()
    np.testing.assert_allclose(model.explained_variance_ratio_, ratio, rtol=1e-5)
    if n_components is None:
        assert model.explained_variance_ratio_.sum() > 1.2


def test_ratios_beyond_one_are_reported_whatever_the_solver():
    with warnings.catch_warnings(), dropped:
        warnings.filterwarnings("ignore", message=".*converge")
        KernelPCA(80, kernel="sigmoid", solver="hebbian", random_state=0).fit(X[:100])


@pytest.mark.parametrize("solver", ["dense", "krylov"])
@pytest.mark.parametrize("n_components", [3, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_positive_matrix_is_not_warned_about(n_components, solver, dtype):
    """Of low rank, so that half of its eigenvalues are rounding, of either sign."""
    matrix = Polynomial(degree=2)(X.astype(dtype))
    KernelPCA(n_components, kernel="precomputed", solver=solver).fit(matrix)
    KernelPCA(n_components, kernel=lambda a, b: a @ b.T, solver=solver).fit(X.astype(dtype))


def centered(matrix):
    rows = matrix - matrix.mean(axis=0)
    return rows - rows.mean(axis=1)[:, None]
