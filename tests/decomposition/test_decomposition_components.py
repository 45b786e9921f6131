"""How many components, how much they explain, and that storage does not matter."""

import numpy as np
import pytest
from sklearn.base import clone

from laws_decomposition import (
    assert_same,
    every_estimator,
    every_solver,
    held_out,
    spectrum,
    suited,
    training,
)
from orthodrome import KernelPCA, KernelPGA
from orthodrome.eigen import Dense, Krylov
from orthodrome.kernels import Gaussian, Normalized, Polynomial

# ------------------------------------------------------------------ n_components


@pytest.mark.parametrize("fraction", [0.05, 0.5, 0.9, 0.99, 0.9999])
@every_solver
@every_estimator
def test_a_fraction_is_the_smallest_number_that_reaches_it(Estimator, solver, fraction):
    X = training()
    values = spectrum(Estimator, Gaussian().fit(X)(X))
    expected = 1 + np.argmax(np.cumsum(values) >= fraction * values.sum())
    model = Estimator(fraction, kernel=Gaussian(), **solver).fit(X)
    assert model.n_components_ == expected
    assert model.explained_variance_ratio_.sum() >= fraction
    assert model.explained_variance_ratio_[:-1].sum() < fraction
    assert model.transform(X).shape == (len(X), expected)


@pytest.mark.parametrize("solver", ["auto", pytest.param("krylov", marks=pytest.mark.slow)])
@every_estimator
def test_a_fraction_that_takes_several_rounds(Estimator, solver):
    """More than the first guess of 16, so that krylov starts again from what it has."""
    X = training(n=1400)
    kernel = Gaussian(sigma=4.0)
    values = spectrum(Estimator, kernel.fit(X)(X))
    fraction = values[:41].sum() / values.sum() - 0.5 * values[40] / values.sum()
    model = Estimator(float(fraction), kernel=kernel, solver=solver, random_state=0).fit(X)
    assert model.solver_ == "krylov"
    assert model.n_components_ == 41
    assert_same(model.eigenvalues_, values[:41])


@every_estimator
def test_an_integer_is_the_beginning_of_more(Estimator):
    X, new = training(), held_out()
    many, few = (Estimator(k, solver="dense").fit(X) for k in (9, 3))
    assert_same(few.transform(new), many.transform(new)[:, :3])
    assert_same(few.explained_variance_ratio_, many.explained_variance_ratio_[:3])


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


@every_estimator
def test_none_of_independent_points_is_all_but_the_mean(Estimator):
    X = training(n=25)
    assert Estimator(kernel=Gaussian(sigma=1.0)).fit(X).n_components_ == 24


@pytest.mark.parametrize("k", [20, 21, 500])
@every_solver
@every_estimator
def test_more_than_there_are(Estimator, solver, k):
    """At most one per row; those beyond the rank are zero columns."""
    X = np.abs(training(n=20))
    model = Estimator(k, kernel=suited("linear", Estimator), **solver).fit(X)
    rank = 4 if Estimator is KernelPGA else 5
    assert model.n_components_ == 20
    assert np.all(model.eigenvalues_[:rank] > 0)
    np.testing.assert_array_equal(model.eigenvalues_[rank:], 0)
    np.testing.assert_array_equal(model.embedding_[:, rank:], 0)
    np.testing.assert_array_equal(model.transform(X)[:, rank:], 0)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0)


# ------------------------------------------------------------------ storage, solvers


STORAGE = [
    {"storage": "memory"},
    {"storage": "disk"},
    {"storage": "recompute"},
    {"memory_budget": "64KiB"},
    {"memory_budget": 1, "solver": "krylov"},
]


@pytest.mark.parametrize("options", STORAGE, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@every_estimator
def test_storage_and_budget_do_not_matter(Estimator, options, weighted):
    X, new = training(n=1100), held_out()
    weights = np.arange(len(X)) % 3 if weighted else None
    common = {"tol": 1e-12, "random_state": 0}
    plain = Estimator(5, **common).fit(X, sample_weight=weights)
    other = Estimator(5, **common, **options).fit(X, sample_weight=weights)
    assert_same(other.eigenvalues_, plain.eigenvalues_)
    assert_same(other.embedding_, plain.embedding_)
    assert_same(other.transform(new), plain.transform(new))


@every_estimator
def test_a_callable_beyond_the_budget(Estimator):
    X = training(n=600)
    options = {"tol": 1e-12, "random_state": 0}
    kernel = Gaussian(sigma=3.0)
    plain = Estimator(3, kernel=kernel, **options).fit(X)
    stored = Estimator(3, kernel=lambda A, B: kernel(A, B), memory_budget="64KiB", **options).fit(X)
    assert_same(stored.embedding_, plain.embedding_)


@pytest.mark.parametrize("solver", [Dense(), Krylov(block_size=3, tol=1e-12, random_state=0)])
@every_estimator
def test_solver_objects(Estimator, solver):
    X = training(n=300)
    exact = Estimator(3, solver="dense").fit(X)
    model = Estimator(3, solver=solver).fit(X)
    assert model.solver_ == solver.name
    assert_same(model.embedding_, exact.embedding_)


@every_estimator
def test_diagnostics(Estimator):
    model = Estimator(3, solver="krylov", random_state=0).fit(training(n=700))
    assert model.converged_
    assert model.n_iter_ == len(model.history_) > 1
    assert np.all(model.residuals_ <= 1e-8 * model.eigenvalues_[0])
    assert model.history_[-1]["max_residual"] <= 1e-8


def test_transform_is_the_affine_map_of_the_attributes():
    X, new = training(), held_out()
    for weights in (None, np.arange(len(X)) % 4):
        model = KernelPCA(3).fit(X, sample_weight=weights)
        expected = model.kernel_(new, model.X_fit_) @ model.dual_coef_ + model.intercept_
        assert_same(model.transform(new), expected, 1e-12)
        # the mean in feature space has the coordinates 0
        p = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
        assert_same(p @ model.embedding_ + 1, np.ones(3), 1e-12)


# ------------------------------------------------------------------ score


@pytest.mark.parametrize(
    "kernel", ["gaussian", "linear", "polynomial", "laplacian", Normalized("polynomial")]
)
@every_solver
@every_estimator
def test_score_of_the_training_data_is_what_is_explained(Estimator, solver, kernel):
    X = np.abs(training())
    model = Estimator(4, kernel=suited(kernel, Estimator), **solver).fit(X)
    assert model.score(X) == pytest.approx(model.explained_variance_ratio_.sum(), rel=1e-10)


def test_score_of_a_conditionally_definite_kernel():
    X = training()
    model = KernelPCA(4, kernel="power").fit(X)
    assert model.score(X) == pytest.approx(model.explained_variance_ratio_.sum(), rel=1e-10)
    with pytest.raises(ValueError, match="no variance in feature space"):
        model.fit(np.full((10, 2), 0.1)).score(np.full((10, 2), 0.1))


@pytest.mark.parametrize("kernel", ["gaussian", "linear", "laplacian", "polynomial"])
@every_estimator
def test_score_of_new_data_grows_from_0_to_1(Estimator, kernel):
    X, new = np.abs(training()), np.abs(held_out())
    models = [Estimator(k, kernel=suited(kernel, Estimator)) for k in (1, 2, 4, 8, 16, 60)]
    scores = [model.fit(X).score(new) for model in models]
    assert np.all(np.diff(scores) >= -1e-12)
    assert 0 <= scores[0] <= scores[-1] <= 1 + 1e-12
    if kernel == "linear":
        assert scores[-1] == pytest.approx(1.0)


@every_estimator
def test_score_of_a_precomputed_kernel(Estimator):
    X, new = training(), held_out()
    kernel = Gaussian(sigma=3.0).fit(X)
    model = Estimator(3, kernel="precomputed").fit(kernel(X))
    assert model.score(kernel(new, X)) == pytest.approx(
        Estimator(3, kernel=kernel).fit(X).score(new)
    )
    # a constant other than 1 is known just as well
    twice = Estimator(3, kernel="precomputed").fit(2 * kernel(X))
    assert twice.score(2 * kernel(new, X)) == pytest.approx(model.score(kernel(new, X)))


def test_score_where_the_diagonal_is_not_known():
    X = training()
    model = KernelPCA(3, kernel="precomputed").fit(X @ X.T)
    with pytest.raises(ValueError, match=r"needs k\(x, x\) of the new points"):
        model.score(X @ X.T)


@every_estimator
def test_score_without_variance(Estimator):
    X = np.full((10, 2), 0.1)
    for kernel in ("gaussian", "linear", "cosine"):
        with pytest.raises(ValueError, match="no variance in feature space"):
            Estimator(2, kernel=kernel).fit(X).score(X)


@every_estimator
def test_score_weights_are_repetitions(Estimator):
    X, new = training(), held_out()
    weights = np.arange(len(new)) % 3
    model = Estimator(3).fit(X)
    assert model.score(new, sample_weight=weights) == pytest.approx(
        model.score(np.repeat(new, weights, axis=0))
    )


@pytest.mark.parametrize(("solver", "n"), [("dense", 1500), ("krylov", 6000)])
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


@every_estimator
def test_a_solver_object_takes_the_seed_and_the_budget_of_the_estimator(Estimator):
    X = training(n=900)
    model = Estimator(6, solver=Krylov(block_size=3), random_state=0)
    np.testing.assert_array_equal(clone(model).fit(X).embedding_, clone(model).fit(X).embedding_)
    with pytest.raises(ValueError, match="memory_budget is 1 KiB"):
        Estimator(solver=Dense(), memory_budget="1KiB").fit(training(n=1100))


@pytest.mark.parametrize("tol", [0.5, 1.0, 10.0])
@every_estimator
def test_loose_tolerances(Estimator, tol):
    assert Estimator(2, solver="krylov", tol=tol, random_state=0).fit(training(n=700)).converged_


@every_estimator
def test_a_memory_map_is_not_copied(Estimator, tmp_path):
    np.save(tmp_path / "x.npy", training())
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(Estimator(2).fit(mapped).X_fit_, mapped)
