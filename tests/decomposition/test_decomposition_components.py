"""The number of components, what they explain, the score, and the memory of a fit."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from laws_decomposition import (
    assert_same,
    every_estimator,
    every_solver,
    held_out,
    positive,
    spectrum,
    suited,
    training,
)
from orthodrome import KernelPCA, KernelPGA
from orthodrome.kernels import Gaussian, Normalized, Polynomial


@every_solver
@every_estimator
def test_a_fraction_is_the_smallest_number_that_reaches_it(Estimator, solver):
    X = training()
    values = spectrum(Estimator, Gaussian().fit(X)(X))
    for fraction in (0.05, 0.5, 0.9, 0.99, 0.9999):
        expected = 1 + np.argmax(np.cumsum(values) >= fraction * values.sum())
        model = Estimator(fraction, kernel=Gaussian(), **solver).fit(X)
        assert model.n_components_ == expected
        assert model.explained_variance_ratio_.sum() >= fraction
        assert model.explained_variance_ratio_[:-1].sum() < fraction
        assert model.transform(X).shape == (len(X), expected)


@pytest.mark.parametrize(
    ("kernel", "monomials", "constant"),
    [
        ("linear", 2, False),
        (Polynomial(degree=2), 6, True),
        (Polynomial(degree=2, coef0=0.0), 3, False),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_solver
@every_estimator
def test_none_is_the_rank(Estimator, solver, kernel, monomials, constant, dtype):
    """Monomials of two variables, less the constant one; on the sphere, less the mean."""
    X = np.abs(training(d=2, dtype=dtype))
    model = Estimator(kernel=suited(kernel, Estimator), **solver).fit(X)
    assert model.n_components_ == monomials - (constant or Estimator is KernelPGA)
    assert np.all(model.eigenvalues_ > 0)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("k", [20, 21, 500])
@every_solver
@every_estimator
def test_components_beyond_the_rank_are_zero(Estimator, solver, k):
    """There is at most one component per row."""
    X = np.abs(training(n=20))
    model = Estimator(k, kernel=suited("linear", Estimator), **solver).fit(X)
    rank = 4 if Estimator is KernelPGA else 5
    assert model.n_components_ == 20
    assert np.all(model.eigenvalues_[:rank] > 0)
    np.testing.assert_array_equal(model.eigenvalues_[rank:], 0)
    np.testing.assert_array_equal(model.embedding_[:, rank:], 0)
    np.testing.assert_array_equal(model.transform(X)[:, rank:], 0)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("weights", [None, np.arange(120) % 4], ids=["equal", "weighted"])
def test_transform_is_the_affine_map_of_the_attributes(weights):
    X, new = training(), held_out()
    model = KernelPCA(3).fit(X, sample_weight=weights)
    expected = model.kernel_(new, model.X_fit_) @ model.dual_coef_ + model.intercept_
    assert_same(model.transform(new), expected, 1e-12)
    # the mean in feature space has the coordinates 0
    mean = np.average(model.embedding_, axis=0, weights=weights)
    assert_same(mean + 1, np.ones(3), 1e-12)


@pytest.mark.parametrize(("solver", "n"), [("dense", 800), ("krylov", 4000)])
def test_float32_keeps_small_components_of_many_rows(solver, n):
    """Rounding does not grow with the number of rows: what is 1e-4 of the first stays."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 6)) * np.array([4.0, 2.0, 1.0, 0.5, 0.25, 0.07])
    model = KernelPCA(6, kernel="linear", solver=solver, random_state=0)
    double, single = clone(model).fit(X), clone(model).fit(X.astype(np.float32))
    assert double.eigenvalues_[-1] < 1e-3 * double.eigenvalues_[0]
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-3)
    np.testing.assert_allclose(
        single.explained_variance_ratio_, double.explained_variance_ratio_, rtol=1e-3
    )


SCORED = ["gaussian", "linear", "polynomial", "laplacian", "cosine", Normalized("polynomial")]
SCORED = [(KernelPCA, "power")] + [(E, kernel) for E in (KernelPCA, KernelPGA) for kernel in SCORED]


@pytest.mark.parametrize(("Estimator", "kernel"), SCORED)
@every_solver
def test_score_of_the_training_data_is_what_is_explained(Estimator, solver, kernel):
    X, _ = positive()
    model = Estimator(4, kernel=suited(kernel, Estimator), **solver).fit(X)
    assert model.score(X) == pytest.approx(model.explained_variance_ratio_.sum(), rel=1e-10)


@pytest.mark.parametrize("factor", [1, 2])
@every_estimator
def test_score_of_a_precomputed_kernel(Estimator, factor):
    """Any constant diagonal is known for new points."""
    X, new = training(), held_out()
    kernel = Gaussian(sigma=3.0).fit(X)
    model = Estimator(3, kernel="precomputed").fit(factor * kernel(X))
    expected = Estimator(3, kernel=kernel).fit(X).score(new)
    assert model.score(factor * kernel(new, X)) == pytest.approx(expected)


def test_score_needs_a_known_diagonal():
    X = training()
    model = KernelPCA(3, kernel="precomputed").fit(X @ X.T)
    with pytest.raises(ValueError, match=r"needs k\(x, x\) of the new points"):
        model.score(X @ X.T)


@pytest.mark.parametrize(("Estimator", "kernel"), SCORED)
def test_score_without_variance(Estimator, kernel):
    X = np.full((10, 2), 0.1)
    with pytest.raises(ValueError, match="no variance in feature space"):
        Estimator(2, kernel=kernel).fit(X).score(X)


@every_estimator
def test_a_memory_map_is_not_copied(Estimator, tmp_path):
    np.save(tmp_path / "x.npy", training())
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(Estimator(2).fit(mapped).X_fit_, mapped)


SIZES = [  # rows, columns, components, budget, and the peak allowed
    # The whole matrix would take 122 MiB, the stored half 61 MiB.
    (KernelPCA, 4000, 8, 4, "16MiB", 48 * 2**20),
    (KernelPGA, 4000, 8, 4, "16MiB", 48 * 2**20),
    pytest.param(KernelPCA, 4000, 8, 4, "1GiB", (61 + 48) * 2**20, marks=pytest.mark.slow),
    pytest.param(KernelPGA, 4000, 8, 4, "1GiB", (61 + 48) * 2**20, marks=pytest.mark.slow),
    # scikit-learn needs over 3 GiB for this.
    pytest.param(KernelPCA, 20_000, 32, 16, "512MiB", 2**30, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("Estimator", "n", "d", "k", "budget", "most"), SIZES)
def test_peak_memory_follows_the_budget(Estimator, n, d, k, budget, most):
    X = np.random.default_rng(1).standard_normal((n, d)) * np.linspace(2, 0.2, d)
    tracemalloc.start()
    try:
        model = Estimator(k, memory_budget=budget, random_state=0).fit(X)
        model.transform(X)
        score = model.score(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.converged_
    assert score == pytest.approx(model.explained_variance_ratio_.sum(), rel=1e-6)
    assert peak < most
