"""KernelPCA compared with KernelPCA and PCA of scikit-learn."""

import pytest
from sklearn.decomposition import KernelPCA as Peer

from laws_decomposition import assert_same, every_solver, held_out, same_signs, training
from orthodrome import KernelPCA
from orthodrome.kernels import RBF, Gaussian, Polynomial, Sigmoid

X, X_NEW = training(), held_out()
K = 4

#: Our kernel, and the parameters of scikit-learn's estimator for the same kernel.
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


def check_twins(ours, theirs, train, new, tols=(1e-8, 1e-8)):
    """Compare two estimators, ours fitted already; tolerances of eigenvalues and vectors."""
    theirs = theirs.fit(train)
    signs = same_signs(ours.embedding_, theirs.transform(train))
    assert_same(ours.eigenvalues_, theirs.eigenvalues_, tols[0])
    assert_same(ours.embedding_, theirs.transform(train) * signs, tols[1])
    assert_same(ours.transform(train), theirs.transform(train) * signs, tols[1])
    assert_same(ours.transform(new), theirs.transform(new) * signs, tols[1])
    assert_same(ours.eigenvectors_, theirs.eigenvectors_ * signs, tols[1])
    assert ours.n_components_ == len(theirs.eigenvalues_)


@pytest.mark.parametrize(("kernel", "peer"), TWINS.values(), ids=TWINS)
@pytest.mark.filterwarnings("ignore:.*negative eigenvalues")
@every_solver
def test_equals_scikit_learn(solver, kernel, peer):
    theirs = Peer(n_components=K, eigen_solver="dense", **peer)
    check_twins(KernelPCA(K, kernel=kernel, **solver).fit(X), theirs, X, X_NEW)
