"""Kernel PCA and kernel PGA by the Kernel Hebbian Algorithm; warm starts."""

import contextlib
import pickle
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

from laws_decomposition import assert_same, every_estimator, positive, suited, training
from orthodrome import KernelPGA
from orthodrome.eigen import Hebbian
from orthodrome.kernels import Gaussian, Linear, Polynomial

K = 3
N = 300
unfinished = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
weighted_or_not = pytest.mark.parametrize(
    "weights", [None, np.arange(N) % 4], ids=["equal", "weighted"]
)


def fitted(Estimator, X, sample_weight=None, kernel=None, n_components=K, **arguments):
    settings = {"solver": "hebbian", "random_state": 0, **arguments}
    kernel = Gaussian() if kernel is None else kernel
    return Estimator(n_components, kernel=kernel, **settings).fit(X, sample_weight=sample_weight)


@cache
def exact(Estimator, n_components=K):
    return fitted(Estimator, training(N), n_components=n_components, solver="dense")


def check_same_fit(one, other):
    """Compare to the last bit."""
    for name in ("eigenvalues_", "eigenvectors_", "embedding_", "dual_coef_", "residuals_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.n_iter_, one.converged_) == (other.n_iter_, other.converged_)


@pytest.mark.parametrize("kernel", [Gaussian(), Linear(), Polynomial(degree=2)])
@weighted_or_not
@pytest.mark.parametrize("tol", [1e-2, 2e-3])
@every_estimator
def test_near_the_exact_decomposition(Estimator, tol, weights, kernel):
    X, new = positive(N)
    kernel = suited(kernel, Estimator)
    found = fitted(Estimator, X, weights, kernel, tol=tol, max_iter=400)
    whole = fitted(Estimator, X, weights, kernel, n_components=K + 1, solver="dense")
    assert found.solver_ == "hebbian"
    assert found.converged_
    assert found.n_iter_ == len(found.history_)
    largest = whole.eigenvalues_[0]
    assert_same(found.eigenvalues_, whole.eigenvalues_[:K], tol)
    assert np.all(found.residuals_ <= tol * largest)
    # an angle of tol λ_1 / gap turns the coordinates by as much
    turn = 3 * tol * largest / np.abs(np.diff(whole.eigenvalues_)).min()
    assert_same(found.embedding_, whole.embedding_[:, :K], turn)
    assert_same(found.transform(new), whole.transform(new)[:, :K], turn)


@every_dtype
@weighted_or_not
@pytest.mark.parametrize("gain", ["constant", "t", "et", "smd"])
@every_estimator
@unfinished
def test_unfinished_components_are_consistent(Estimator, gain, weights, dtype):
    """Coordinates on orthonormal axes, uncorrelated over the data, and the same in transform."""
    X = training(N, dtype=dtype)
    solver = Hebbian(gain=gain, n_passes=1, tol=0, start="orthonormal", random_state=0)
    model = fitted(Estimator, X, weights, solver=solver)
    assert not model.converged_
    assert model.embedding_.dtype == model.transform(X).dtype == dtype
    tol = 1e-10 if dtype == np.float64 else 2e-4
    assert_same(model.transform(X), model.embedding_, tol)
    embedding, w = model.embedding_.astype(float), np.ones(N) if weights is None else weights
    inner = embedding.T @ (w[:, None] * embedding)
    scale = w.sum() if Estimator is KernelPGA else 1.0
    assert_same(inner / scale, np.diag(model.eigenvalues_), tol)
    finished = fitted(Estimator, X, weights, solver="dense").eigenvalues_
    assert np.abs(model.eigenvalues_ - finished).max() > 1e-3 * model.eigenvalues_[0]


@pytest.mark.parametrize("fraction", [0.3, 0.6, 0.9])
@every_estimator
def test_a_fraction_of_the_variance(Estimator, fraction):
    """At most one more component than the exact solver: Ritz values are a little small."""
    X, options = training(N), {"kernel": Gaussian(sigma=4.0), "n_components": fraction}
    number = fitted(Estimator, X, solver="dense", **options).n_components_
    model = fitted(Estimator, X, **options)
    assert number <= model.n_components_ <= number + 1
    assert model.explained_variance_ratio_.sum() >= fraction
    assert model.explained_variance_ratio_[:-1].sum() < fraction


@weighted_or_not
@pytest.mark.parametrize("gain", ["et", "smd"])
@every_estimator
@unfinished
def test_warm_starts_are_one_longer_run(Estimator, gain, weights):
    """Bit for bit, and after pickling; `max_iter` is what each fit adds."""
    X = training(N)

    def fit(model, n_passes):
        solver = Hebbian(gain=gain, n_passes=n_passes, tol=0, random_state=0)
        return model.set_params(solver=solver).fit(X, sample_weight=weights)

    whole = fit(Estimator(K), 6)
    parts = Estimator(K, warm_start=True)
    for n_passes, total in ((2, 2), (1, 3), (3, 6)):
        parts = pickle.loads(pickle.dumps(fit(parts, n_passes)))
        assert parts.n_iter_ == total
    check_same_fit(parts, whole)
    assert len(parts.history_) == 6
    assert fit(clone(parts), 2).n_iter_ == 2
    assert fit(whole, 1).n_iter_ == 1  # without warm_start


@pytest.mark.parametrize("solver", ["hebbian", "krylov"])
@every_estimator
def test_a_warm_start_needs_the_same_number_of_rows(Estimator, solver):
    X = training(N)
    model = fitted(Estimator, X, warm_start=True, solver=solver)
    embedding = model.embedding_
    with pytest.raises(ValueError, match=r"warm_start of Kernel\w+ .* 300 samples; got 299.*False"):
        model.fit(X[:-1])
    np.testing.assert_array_equal(model.embedding_, embedding)  # the last fit is kept
    assert model.set_params(warm_start=False).fit(X[:-1]).embedding_.shape == (N - 1, K)


OTHER_DATA = {
    "data": lambda model, X: model.fit(X[::-1] ** 2),
    "kernel": lambda model, X: model.set_params(kernel=Gaussian(sigma=1.0)).fit(X),
    "weights": lambda model, X: model.fit(X, sample_weight=np.arange(N) % 7),
}


@pytest.mark.parametrize("other", OTHER_DATA)
@every_estimator
def test_warm_starts_on_other_data_of_the_same_size(Estimator, other):
    """The state of other data is refused or not used."""
    X = training(N)
    model = fitted(Estimator, X, warm_start=True)
    expected = OTHER_DATA[other](fitted(Estimator, X, solver="dense"), X).eigenvalues_
    with contextlib.suppress(ValueError):
        found = OTHER_DATA[other](model, X)
        assert_same(found.eigenvalues_, expected, 0.02)
        assert_same(found.transform(X), found.embedding_, 1e-8)
