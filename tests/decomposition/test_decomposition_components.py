"""How many components, how much they explain, and that storage does not matter."""

import numpy as np
import pytest
from sklearn.base import clone

from laws_decomposition import SOLVERS, assert_same, held_out, training
from orthodrome import KernelPCA
from orthodrome.eigen import Dense, Krylov
from orthodrome.gram import Centered, DenseGram
from orthodrome.kernels import Gaussian, Normalized, Polynomial

every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


def spectrum(kernel, X):
    """All eigenvalues of the centred Gram matrix, descending, by the shortest way."""
    return np.linalg.eigvalsh(Centered(DenseGram(kernel.fit(X)(X))).toarray())[::-1]


# ------------------------------------------------------------------ n_components


@pytest.mark.parametrize("fraction", [0.05, 0.5, 0.9, 0.99, 0.9999])
@every_solver
def test_a_fraction_is_the_smallest_number_that_reaches_it(solver, fraction):
    X = training()
    values = spectrum(Gaussian(), X)
    expected = 1 + np.argmax(np.cumsum(values) >= fraction * values.sum())
    pca = KernelPCA(fraction, kernel=Gaussian(), **solver).fit(X)
    assert pca.n_components_ == expected
    assert pca.explained_variance_ratio_.sum() >= fraction
    assert pca.explained_variance_ratio_[:-1].sum() < fraction
    assert pca.transform(X).shape == (len(X), expected)


@pytest.mark.parametrize("solver", ["auto", "krylov"])
def test_a_fraction_that_takes_several_rounds(solver):
    """More than the first guess of 16, so that krylov starts again from what it has."""
    X = training(n=1400)
    kernel = Gaussian(sigma=4.0)
    values = spectrum(kernel, X)
    fraction = values[:41].sum() / values.sum() - 0.5 * values[40] / values.sum()
    pca = KernelPCA(float(fraction), kernel=kernel, solver=solver, random_state=0).fit(X)
    assert pca.solver_ == "krylov"
    assert pca.n_components_ == 41
    assert_same(pca.eigenvalues_, values[:41])


def test_an_integer_is_the_beginning_of_more():
    X, new = training(), held_out()
    many, few = (KernelPCA(k, solver="dense").fit(X) for k in (9, 3))
    assert_same(few.transform(new), many.transform(new)[:, :3])
    assert_same(few.explained_variance_ratio_, many.explained_variance_ratio_[:3])


@pytest.mark.parametrize(
    ("kernel", "rank"),
    [("linear", 2), (Polynomial(degree=2), 5), (Polynomial(degree=2, coef0=0.0), 3)],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_solver
def test_none_is_the_rank(solver, kernel, rank, dtype):
    """Monomials of two variables up to degree two, less the constant one."""
    X = training(d=2, dtype=dtype)
    pca = KernelPCA(kernel=kernel, **solver).fit(X)
    assert pca.n_components_ == rank
    assert np.all(pca.eigenvalues_ > 0)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1.0, rel=1e-5)


def test_none_of_independent_points_is_all_but_the_mean():
    X = training(n=25)
    assert KernelPCA(kernel=Gaussian(sigma=1.0)).fit(X).n_components_ == 24


@pytest.mark.parametrize("k", [20, 21, 500])
@every_solver
def test_more_than_there_are(solver, k):
    """At most one per row; those beyond the rank are zero columns."""
    X = training(n=20)
    pca = KernelPCA(k, kernel="linear", **solver).fit(X)
    assert pca.n_components_ == 20
    np.testing.assert_array_equal(pca.eigenvalues_[5:], 0)
    np.testing.assert_array_equal(pca.embedding_[:, 5:], 0)
    np.testing.assert_array_equal(pca.transform(X)[:, 5:], 0)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1.0)


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
def test_storage_and_budget_do_not_matter(options, weighted):
    X, new = training(n=1100), held_out()
    weights = np.arange(len(X)) % 3 if weighted else None
    common = {"tol": 1e-12, "random_state": 0}
    plain = KernelPCA(5, **common).fit(X, sample_weight=weights)
    other = KernelPCA(5, **common, **options).fit(X, sample_weight=weights)
    assert_same(other.eigenvalues_, plain.eigenvalues_)
    assert_same(other.embedding_, plain.embedding_)
    assert_same(other.transform(new), plain.transform(new))


def test_a_callable_beyond_the_budget():
    X = training(n=600)
    options = {"tol": 1e-12, "random_state": 0}
    plain = KernelPCA(3, kernel="linear", **options).fit(X)
    stored = KernelPCA(3, kernel=lambda A, B: A @ B.T, memory_budget="64KiB", **options).fit(X)
    assert_same(stored.embedding_, plain.embedding_)


@pytest.mark.parametrize("solver", [Dense(), Krylov(block_size=3, tol=1e-12, random_state=0)])
def test_solver_objects(solver):
    X = training(n=300)
    exact = KernelPCA(3, solver="dense").fit(X)
    pca = KernelPCA(3, solver=solver).fit(X)
    assert pca.solver_ == solver.name
    assert_same(pca.embedding_, exact.embedding_)


def test_diagnostics():
    pca = KernelPCA(3, solver="krylov", random_state=0).fit(training(n=700))
    assert pca.converged_
    assert pca.n_iter_ == len(pca.history_) > 1
    assert np.all(pca.residuals_ <= 1e-8 * pca.eigenvalues_[0])
    assert pca.history_[-1]["max_residual"] <= 1e-8


def test_transform_is_the_affine_map_of_the_attributes():
    X, new = training(), held_out()
    for weights in (None, np.arange(len(X)) % 4):
        pca = KernelPCA(3).fit(X, sample_weight=weights)
        expected = pca.kernel_(new, pca.X_fit_) @ pca.dual_coef_ + pca.intercept_
        assert_same(pca.transform(new), expected, 1e-12)
        # the mean in feature space has the coordinates 0
        p = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
        assert_same(p @ pca.embedding_ + 1, np.ones(3), 1e-12)


# ------------------------------------------------------------------ score


@pytest.mark.parametrize(
    "kernel", ["gaussian", "linear", "polynomial", "laplacian", "power", Normalized("polynomial")]
)
@every_solver
def test_score_of_the_training_data_is_what_is_explained(solver, kernel):
    X = training()
    pca = KernelPCA(4, kernel=kernel, **solver).fit(X)
    assert pca.score(X) == pytest.approx(pca.explained_variance_ratio_.sum(), rel=1e-10)


@pytest.mark.parametrize("kernel", ["gaussian", "linear", "laplacian", "polynomial"])
def test_score_of_new_data_grows_from_0_to_1(kernel):
    X, new = training(), held_out()
    scores = [KernelPCA(k, kernel=kernel).fit(X).score(new) for k in (1, 2, 4, 8, 16, 60)]
    assert np.all(np.diff(scores) >= -1e-12)
    assert 0 <= scores[0] <= scores[-1] <= 1 + 1e-12
    if kernel == "linear":
        assert scores[-1] == pytest.approx(1.0)


def test_score_of_a_precomputed_kernel():
    X, new = training(), held_out()
    kernel = Gaussian(sigma=3.0).fit(X)
    pca = KernelPCA(3, kernel="precomputed").fit(kernel(X))
    assert pca.score(kernel(new, X)) == pytest.approx(KernelPCA(3, kernel=kernel).fit(X).score(new))
    # a constant other than 1 is known just as well
    twice = KernelPCA(3, kernel="precomputed").fit(2 * kernel(X))
    assert twice.score(2 * kernel(new, X)) == pytest.approx(pca.score(kernel(new, X)))


def test_score_where_the_diagonal_is_not_known():
    X = training()
    pca = KernelPCA(3, kernel="precomputed").fit(X @ X.T)
    with pytest.raises(ValueError, match=r"needs k\(x, x\) of the new points"):
        pca.score(X @ X.T)


def test_score_without_variance():
    X = np.full((10, 2), 0.1)
    for kernel in ("gaussian", "linear", "power"):
        with pytest.raises(ValueError, match="no variance in feature space"):
            KernelPCA(2, kernel=kernel).fit(X).score(X)


def test_score_weights_are_repetitions():
    X, new = training(), held_out()
    weights = np.arange(len(new)) % 3
    pca = KernelPCA(3).fit(X)
    assert pca.score(new, sample_weight=weights) == pytest.approx(
        pca.score(np.repeat(new, weights, axis=0))
    )


@pytest.mark.parametrize(("solver", "n"), [("dense", 1500), ("krylov", 6000)])
def test_float32_keeps_small_components_of_many_rows(solver, n):
    """Rounding does not grow with the number of rows: what is 1e-4 of the first stays."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 6)) * np.array([4.0, 2.0, 1.0, 0.5, 0.25, 0.07])
    pca = KernelPCA(6, kernel="linear", solver=solver, random_state=0)
    double, single = clone(pca).fit(X), clone(pca).fit(X.astype(np.float32))
    assert double.eigenvalues_[-1] < 1e-3 * double.eigenvalues_[0]
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-3)
    np.testing.assert_allclose(
        single.explained_variance_ratio_, double.explained_variance_ratio_, rtol=1e-3
    )


def test_a_solver_object_takes_the_seed_and_the_budget_of_the_estimator():
    X = training(n=900)
    pca = KernelPCA(6, solver=Krylov(block_size=3), random_state=0)
    np.testing.assert_array_equal(clone(pca).fit(X).embedding_, clone(pca).fit(X).embedding_)
    with pytest.raises(ValueError, match="memory_budget is 1 KiB"):
        KernelPCA(solver=Dense(), memory_budget="1KiB").fit(training(n=1100))


@pytest.mark.parametrize("tol", [0.5, 1.0, 10.0])
def test_loose_tolerances(tol):
    assert KernelPCA(2, solver="krylov", tol=tol, random_state=0).fit(training(n=700)).converged_


def test_a_memory_map_is_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", training())
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(KernelPCA(2).fit(mapped).X_fit_, mapped)
