"""Ridge pre-images against the formula written out, and against the decoder of kernel PCA."""

import numpy as np
import pytest
import scipy.sparse

from laws_preimage import cloud, expansions
from orthodrome import KernelPCA
from orthodrome.gram import gram_operator
from orthodrome.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from orthodrome.preimage import preimage
from orthodrome.preimage.ridge import decode_components, ridge

KERNELS = {
    "linear": Linear,
    "polynomial": lambda: Polynomial(degree=2),
    "cosine": Cosine,
    "laplacian": Laplacian,
    "gaussian": Gaussian,
    "sigmoid": lambda: Sigmoid(gamma=0.05),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def naive(K, X, beta, alpha):
    """The formula of `ridge`, written out."""
    n = len(K)
    H = np.eye(n) - 1 / n
    centered = H @ K @ H
    penalty = alpha * np.trace(centered) / n
    mean = X.mean(axis=0)
    solution = np.linalg.inv(centered + penalty * np.eye(n)) @ (X - mean)
    return mean + (centered @ (beta - 1 / n).T).T @ solution


@pytest.mark.parametrize("kind", ["few", "mixed"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 10.0])
@every_kernel
def test_equals_the_formula(kernel, alpha, kind):
    X = cloud()
    kernel = kernel().fit(X)
    beta = expansions(kind, len(X))
    result = preimage(kernel, X, beta, method="ridge", alpha=alpha)
    np.testing.assert_allclose(result.points, naive(kernel(X), X, beta, alpha), rtol=0, atol=1e-7)
    assert result.method == "ridge"
    assert result.converged
    assert np.all(np.isnan(result.similarity))


def test_linear_kernel():
    """The linear combination for a small penalty, the mean for a large one or constant inputs."""
    X = cloud() + 5.0
    beta = expansions("mixed", len(X))
    points = preimage("linear", X, beta, alpha=1e-10).points
    np.testing.assert_allclose(points, beta @ X, rtol=0, atol=1e-7)
    points = preimage("linear", cloud(), beta, alpha=1e12).points
    np.testing.assert_allclose(points, np.tile(cloud().mean(axis=0), (6, 1)), atol=1e-8)
    same = np.full((6, 2), 0.1)
    points = preimage("linear", same, np.full(6, 1 / 6)).points
    np.testing.assert_allclose(points, same[:1])


@pytest.mark.parametrize("n_components", [2, 5])
@every_kernel
@pytest.mark.filterwarnings("ignore:.*negative eigenvalues")
def test_the_decoder_is_ridge_on_kernel_pca_reconstructions(kernel, n_components):
    """One penalty, two scales: the decoder's alpha is relative to λ₁, ridge's to tr K'/n."""
    X = cloud()
    alpha = 1e-3
    pca = KernelPCA(n_components, kernel=kernel(), solver="dense").fit(X)
    coordinates = pca.transform(X[:7] + 0.1)
    decode = decode_components(pca.embedding_, X, np.ones(len(X)), alpha)
    gram = gram_operator(pca.kernel_, X)
    trace = pca.eigenvalues_[0] / pca.explained_variance_ratio_[0]
    beta = 1 / len(X) + coordinates @ pca.dual_coef_.T
    expected = ridge(
        gram,
        X,
        beta,
        alpha=alpha * pca.eigenvalues_[0] * len(X) / trace,
        memory_budget="1GiB",
    )
    np.testing.assert_allclose(decode(coordinates), expected, rtol=0, atol=1e-9)


def test_sparse_inputs():
    X = np.maximum(cloud(), 0)
    beta = expansions("few", len(X))
    for kernel in ("linear", "gaussian"):
        dense = preimage(kernel, X, beta, method="ridge").points
        sparse = preimage(kernel, scipy.sparse.csr_array(X), beta)
        assert sparse.method == "ridge"
        np.testing.assert_allclose(sparse.points, dense, atol=1e-6)
