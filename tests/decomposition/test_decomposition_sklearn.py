"""KernelPCA beside scikit-learn's KernelPCA and PCA."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Peer
from sklearn.metrics.pairwise import pairwise_kernels

from laws_decomposition import assert_same, every_solver, held_out, same_signs, training
from orthodrome import KernelPCA
from orthodrome.kernels import RBF, Chi2, Gaussian, Laplacian, Polynomial, Sigmoid

X, X_NEW = training(), held_out()
K = 4

#: (ours, parameters of scikit-learn's estimator) for one and the same kernel.
TWINS = {
    "rbf": ("rbf", {"kernel": "rbf"}),
    "rbf gamma": (RBF(gamma=0.05), {"kernel": "rbf", "gamma": 0.05}),
    "gaussian": (Gaussian(sigma=3.0), {"kernel": "rbf", "gamma": 1 / 18}),
    "polynomial": ("polynomial", {"kernel": "poly"}),
    "poly": (
        Polynomial(degree=2, gamma=0.3, coef0=0.5),
        {"kernel": "poly", "degree": 2, "gamma": 0.3, "coef0": 0.5},
    ),
    "linear": ("linear", {"kernel": "linear"}),
    "cosine": ("cosine", {"kernel": "cosine"}),
    "sigmoid": (Sigmoid(gamma=0.01), {"kernel": "sigmoid", "gamma": 0.01}),
}


def check_twins(ours, theirs, train, new, n_components=K):
    ours, theirs = ours.fit(train), theirs.fit(train)
    signs = same_signs(ours.embedding_, theirs.transform(train))
    assert_same(ours.eigenvalues_, theirs.eigenvalues_)
    assert_same(ours.embedding_, theirs.transform(train) * signs)
    assert_same(ours.transform(train), theirs.transform(train) * signs)
    assert_same(ours.transform(new), theirs.transform(new) * signs)
    assert_same(ours.eigenvectors_, theirs.eigenvectors_ * signs)
    assert ours.n_components_ == n_components


@pytest.mark.parametrize(("kernel", "peer"), TWINS.values(), ids=TWINS)
@pytest.mark.filterwarnings("ignore:.*negative eigenvalues")
@every_solver
def test_equals_scikit_learn(solver, kernel, peer):
    theirs = Peer(n_components=K, eigen_solver="dense", **peer)
    check_twins(KernelPCA(K, kernel=kernel, **solver), theirs, X, X_NEW)


@pytest.mark.parametrize(
    ("metric", "kernel"),
    [("laplacian", Laplacian()), ("chi2", Chi2(gamma=1.0)), ("rbf", RBF())],
    ids=["laplacian", "chi2", "rbf"],
)
@every_solver
def test_equals_scikit_learn_on_a_precomputed_matrix(solver, metric, kernel):
    """The matrix by scikit-learn; and the same from our kernel object on the data."""
    positive, new = np.abs(X), np.abs(X_NEW)
    K_train = pairwise_kernels(positive, metric=metric)
    K_new = pairwise_kernels(new, positive, metric=metric)
    theirs = Peer(n_components=K, kernel="precomputed", eigen_solver="dense")
    ours = KernelPCA(K, kernel="precomputed", **solver)
    check_twins(ours, theirs, K_train, K_new)
    from_data = KernelPCA(K, kernel=kernel, **solver).fit(positive)
    assert_same(from_data.transform(new), ours.transform(K_new))


@every_solver
def test_linear_kernel_is_pca(solver):
    ours = KernelPCA(K, kernel="linear", **solver).fit(X)
    pca = PCA(K, svd_solver="full").fit(X)
    signs = same_signs(ours.embedding_, pca.transform(X))
    assert_same(ours.embedding_, pca.transform(X) * signs)
    assert_same(ours.transform(X_NEW), pca.transform(X_NEW) * signs)
    assert_same(ours.eigenvalues_, pca.explained_variance_ * (len(X) - 1))
    assert_same(ours.explained_variance_ratio_, pca.explained_variance_ratio_)
    inverse = pca.inverse_transform(pca.transform(X_NEW))
    assert_same(ours.inverse_transform(ours.transform(X_NEW)), inverse, 1e-5)


def test_large_enough_to_choose_krylov_by_itself():
    train, new = training(n=1100), held_out(m=60)
    ours = KernelPCA(6, kernel=RBF(gamma=0.05), tol=1e-12, random_state=0)
    theirs = Peer(6, kernel="rbf", gamma=0.05, eigen_solver="dense")
    check_twins(ours, theirs, train, new, n_components=6)
    assert ours.solver_ == "krylov"


def test_float32_is_near():
    peer = Peer(K, kernel="rbf", gamma=0.05).fit(X)
    for solver in ("dense", "krylov"):
        ours = KernelPCA(K, kernel=RBF(gamma=0.05), solver=solver, random_state=0)
        embedding = ours.fit_transform(X.astype(np.float32))
        new = ours.transform(X_NEW.astype(np.float32))
        assert embedding.dtype == new.dtype == ours.eigenvalues_.dtype == np.float32
        signs = same_signs(embedding, peer.transform(X))
        assert_same(ours.eigenvalues_, peer.eigenvalues_, 1e-5)
        assert_same(embedding, peer.transform(X) * signs, 1e-4)
        assert_same(new, peer.transform(X_NEW) * signs, 1e-4)
