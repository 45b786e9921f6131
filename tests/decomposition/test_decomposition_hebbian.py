"""Kernel PCA and kernel PGA by the Kernel Hebbian Algorithm; warm starts."""

import contextlib
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from laws_decomposition import assert_same, every_estimator, held_out, suited, training
from laws_hebbian import Counted
from orthodrome import KernelPCA, KernelPGA
from orthodrome.eigen import Hebbian, Krylov
from orthodrome.gram import Centered, gram_operator
from orthodrome.kernels import Gaussian, Linear, Polynomial

K = 3
N = 300
unfinished = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fitted(Estimator, X, sample_weight=None, kernel=None, n_components=K, **arguments):
    settings = {"solver": "hebbian", "random_state": 0, **arguments}
    kernel = Gaussian() if kernel is None else kernel
    return Estimator(n_components, kernel=kernel, **settings).fit(X, sample_weight=sample_weight)


def check_same_fit(one, other):
    """To the last bit."""
    names = ["eigenvalues_", "eigenvectors_", "embedding_", "dual_coef_", "residuals_"]
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.n_iter_ == other.n_iter_
    assert one.converged_ == other.converged_


# ------------------------------------------------------------------ near the exact one


@pytest.mark.parametrize("kernel", [Gaussian(), Linear(), Polynomial(degree=2)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tol", [1e-2, 2e-3])
@every_estimator
def test_near_the_exact_decomposition(Estimator, tol, weighted, kernel):
    X, new = np.abs(training(N)), np.abs(held_out())
    weights = np.arange(N) % 4 if weighted else None
    kernel = suited(kernel, Estimator)
    found = fitted(Estimator, X, weights, kernel, tol=tol, max_iter=400)
    exact = fitted(Estimator, X, weights, kernel, solver="dense")
    assert found.solver_ == "hebbian"
    assert found.converged_
    assert found.n_iter_ == len(found.history_)
    largest = exact.eigenvalues_[0]
    assert_same(found.eigenvalues_, exact.eigenvalues_, tol)
    assert np.all(found.residuals_ <= tol * largest)
    # an angle of tol λ_1 / gap turns the coordinates by as much
    four = fitted(Estimator, X, weights, kernel, n_components=K + 1, solver="dense").eigenvalues_
    turn = 3 * tol * largest / np.abs(np.diff(four)).min()
    assert_same(found.embedding_, exact.embedding_, turn)
    assert_same(found.transform(new), exact.transform(new), turn)
    assert found.score(new) == pytest.approx(exact.score(new), rel=turn)


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gain", ["constant", "t", "et", "smd"])
@every_estimator
@unfinished
def test_training_data_transformed_are_the_embedding_however_unfinished(
    Estimator, gain, weighted, dtype
):
    """The components are what they are, near eigenvectors or not."""
    X = training(N, dtype=dtype)
    weights = np.arange(N) % 4 if weighted else None
    solver = Hebbian(gain=gain, n_passes=1, tol=0, start="orthonormal", random_state=0)
    model = fitted(Estimator, X, weights, solver=solver)
    assert not model.converged_
    assert model.embedding_.dtype == model.transform(X).dtype == dtype
    assert_same(model.transform(X), model.embedding_, 1e-10 if dtype == np.float64 else 2e-4)
    # coordinates on orthonormal axes, uncorrelated over the (weighted) data
    embedding = model.embedding_.astype(float)
    w = np.ones(N) if weights is None else weights
    inner = embedding.T @ (w[:, None] * embedding)
    scale = w.sum() if Estimator is KernelPGA else 1.0
    assert_same(inner / scale, np.diag(model.eigenvalues_), 1e-10 if dtype == np.float64 else 2e-4)
    error = np.abs(
        model.eigenvalues_ - fitted(Estimator, X, weights, solver="dense").eigenvalues_
    ).max()
    assert error > 1e-3 * model.eigenvalues_[0]  # else it was finished after all


@every_estimator
def test_integer_weights_are_near_repeated_rows(Estimator):
    X, new = training(N), held_out()
    weights = np.random.default_rng(0).integers(0, 4, size=N)
    weighted = fitted(Estimator, X, weights, tol=2e-3, max_iter=300)
    repeated = fitted(Estimator, np.repeat(X, weights, axis=0), tol=2e-3, max_iter=300)
    assert_same(weighted.eigenvalues_, repeated.eigenvalues_, 4e-3)
    assert_same(weighted.transform(new), repeated.transform(new), 0.05)
    assert_same(np.repeat(weighted.embedding_, weights, axis=0), repeated.embedding_, 0.05)


@every_estimator
def test_rows_of_weight_zero_do_not_matter(Estimator):
    """Even where they are most of the rows."""
    X, new = training(600), held_out()
    weights = np.zeros(600)
    weights[:60] = 1
    exact = fitted(Estimator, X[:60], solver="dense")
    for seed in range(3):
        weighted = fitted(Estimator, X, weights, random_state=seed)
        assert weighted.solver_ == "hebbian"
        assert_same(weighted.eigenvalues_, exact.eigenvalues_, 0.02)
        assert_same(weighted.transform(new), exact.transform(new), 0.3)


@every_estimator
@unfinished
def test_the_memory_budget_does_not_matter(Estimator):
    X = training(N)
    settings = {"tol": 0, "max_iter": 3}
    held = fitted(Estimator, X, memory_budget="1GiB", **settings)
    for other in ({"memory_budget": "1KiB"}, {"storage": "recompute"}, {"storage": "disk"}):
        model = fitted(Estimator, X, **other, **settings)
        assert_same(model.eigenvalues_, held.eigenvalues_, 1e-12)
        assert_same(model.embedding_, held.embedding_, 1e-9)


@pytest.mark.parametrize("fraction", [0.3, 0.6, 0.9])
@every_estimator
def test_a_fraction_of_the_variance(Estimator, fraction):
    """One more component than the exact solver at the most: Ritz values are a little small."""
    X = training(N)
    kernel = Gaussian(sigma=4.0)
    exact = fitted(Estimator, X, kernel=kernel, n_components=fraction, solver="dense")
    model = fitted(Estimator, X, kernel=kernel, n_components=fraction)
    assert exact.n_components_ <= model.n_components_ <= exact.n_components_ + 1
    assert model.explained_variance_ratio_.sum() >= fraction
    assert model.explained_variance_ratio_[:-1].sum() < fraction


@every_estimator
def test_float32(Estimator):
    X = training(N)
    one, other = (fitted(Estimator, X.astype(dtype)) for dtype in (np.float64, np.float32))
    assert other.embedding_.dtype == other.eigenvalues_.dtype == np.float32
    assert other.transform(X.astype(np.float32)).dtype == np.float32
    assert_same(other.eigenvalues_, one.eigenvalues_, 1e-4)
    assert_same(other.embedding_, one.embedding_, 1e-2)


@every_estimator
def test_small_data_are_lapacks(Estimator):
    X = training(100)
    check_same_fit(fitted(Estimator, X), fitted(Estimator, X, solver="dense"))
    assert fitted(Estimator, X).solver_ == "dense"
    assert fitted(Estimator, training(N), n_components=None).solver_ == "dense"


# ------------------------------------------------------------------ what a user is told


@pytest.mark.parametrize(
    ("arguments", "tol"),
    [
        ({"solver": "hebbian", "max_iter": 1, "tol": 1e-7}, "1e-07"),
        ({"solver": "hebbian", "max_iter": 1, "kernel": Gaussian(sigma=0.5)}, "0.01"),
        ({"solver": Hebbian(n_passes=1, tol=1e-5)}, "1e-05"),
        ({"solver": Hebbian(n_passes=1, tol=1e-5), "tol": 0.5}, "1e-05"),
        ({"solver": Krylov(max_iter=1, block_size=4, max_basis=8)}, "1e-08"),
        ({"solver": "krylov", "max_iter": 1, "n_components": 1}, "1e-08"),
    ],
)
def test_the_warning_says_what_and_how_far(arguments, tol):
    X = training(1000) if "krylov" in str(arguments).lower() else training(N)
    with pytest.warns(ConvergenceWarning) as caught:
        model = fitted(KernelPCA, X, **arguments)
    assert len(caught) == 1
    message = str(caught[0].message)
    pattern = (
        r"KernelPCA \((\w+)\): stopped at max_iter \(largest relative residual (\S+), tol=(\S+)\)"
    )
    name, residual, said = re.match(pattern, message).groups()
    assert name == model.solver_
    assert said == tol
    assert float(residual) == pytest.approx(model.history_[-1]["max_residual"], rel=0.1)
    assert float(residual) > float(said)
    assert "max_iter" in message.split(")")[-1]
    assert caught[0].filename == __file__


def test_no_warning_where_it_converges():
    model = fitted(KernelPCA, training(N))  # warnings are errors here
    assert model.converged_
    assert model.history_[-1]["max_residual"] <= 1e-2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tol": -1}, "tol of KernelPCA"),
        ({"tol": "a"}, "tol of KernelPCA"),
        ({"max_iter": 0}, "max_iter of KernelPCA"),
        ({"max_iter": 2.0}, "max_iter of KernelPCA"),
        ({"warm_start": 1}, "warm_start of KernelPCA must be True or False; got 1"),
        ({"warm_start": "yes"}, "warm_start of KernelPCA must be True or False; got 'yes'"),
        ({"solver": "kha"}, "solver of KernelPCA must be one of .*'hebbian'"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=message):
        fitted(KernelPCA, training(), **arguments)


def test_the_mean_is_not_limited_by_the_number_of_passes():
    """With hebbian `max_iter` counts passes; the mean takes the steps it needs."""
    X = training(N)
    for solver in ("hebbian", Hebbian(n_passes=1, tol=0.9)):
        model = fitted(KernelPGA, X, solver=solver, max_iter=1, tol=0.9)
        assert model.mean_n_iter_ > 1
        assert model.mean_gradient_norm_ < 1e-11
        assert model.converged_
        assert model.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match=r"the Karcher mean stopped at max_iter"):
        model = fitted(KernelPGA, X, solver="dense", max_iter=1)
    assert model.mean_n_iter_ == 1
    exact = fitted(KernelPGA, X, solver="dense")
    assert_same(fitted(KernelPGA, X, tol=0.9, max_iter=1).mean_cosines_, exact.mean_cosines_, 1e-12)


@every_estimator
@unfinished
def test_pickles_and_clones(Estimator):
    X, new = training(N), held_out()
    solver = Hebbian(gain="smd", n_passes=2, tol=0, random_state=0)
    model = fitted(Estimator, X, solver=solver, warm_start=True)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(new), model.transform(new))
    check_same_fit(copy.fit(X), model.fit(X))  # the state goes with it
    assert copy.n_iter_ == 4
    fresh = clone(model)
    assert fresh.solver == solver
    assert fresh.fit(X).n_iter_ == 2


# ------------------------------------------------------------------ warm starts


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gain", ["et", "smd"])
@every_estimator
@unfinished
def test_going_on_is_one_longer_run(Estimator, gain, weighted):
    """Bit for bit; `max_iter` is what each fit adds."""
    X = training(N)
    weights = np.arange(N) % 4 if weighted else None

    def fit(model, n_passes):
        solver = Hebbian(gain=gain, n_passes=n_passes, tol=0, random_state=0)
        return model.set_params(solver=solver).fit(X, sample_weight=weights)

    whole = fit(Estimator(K), 6)
    parts = Estimator(K, warm_start=True)
    for n_passes, total in ((2, 2), (1, 3), (3, 6)):
        assert fit(parts, n_passes).n_iter_ == total
    check_same_fit(parts, whole)
    assert len(parts.history_) == 6
    anew = Estimator(K)
    fit(anew, 2)
    assert fit(anew, 1).n_iter_ == 1  # without warm_start


@unfinished
def test_going_on_by_name():
    X = training(N)
    whole = fitted(KernelPCA, X, max_iter=5, tol=0)
    parts = fitted(KernelPCA, X, max_iter=2, tol=0, warm_start=True)
    check_same_fit(parts.set_params(max_iter=3).fit(X), whole)


def test_going_on_until_the_tolerance():
    """A fit that has converged is there at once; a smaller tol goes on."""
    X = training(N)
    model = fitted(KernelPCA, X, warm_start=True, max_iter=500)
    before = clone(model).fit(X)
    check_same_fit(model.fit(X), before)
    model.set_params(tol=1e-3).fit(X)
    assert model.n_iter_ > before.n_iter_
    check_same_fit(model, fitted(KernelPCA, X, tol=1e-3, max_iter=500 + before.n_iter_))


@pytest.mark.parametrize("solver", ["hebbian", "krylov"])
@every_estimator
def test_other_numbers_of_rows_are_an_error(Estimator, solver):
    X = training(N)
    model = fitted(Estimator, X, warm_start=True, solver=solver)
    embedding = model.embedding_
    with pytest.raises(ValueError, match=r"warm_start of Kernel\w+ .* 300 samples; got 299.*False"):
        model.fit(X[:-1])
    np.testing.assert_array_equal(model.embedding_, embedding)  # the last fit is kept
    assert model.set_params(warm_start=False).fit(X[:-1]).embedding_.shape == (N - 1, K)


@every_estimator
def test_krylov_goes_on_from_its_vectors(Estimator):
    X = training(1000)
    solver = Krylov(block_size=4, max_basis=20, random_state=0)
    model = fitted(Estimator, X, solver=solver, warm_start=True)
    cold = model.n_iter_
    embedding = model.embedding_
    model.fit(X)
    assert model.solver_ == "krylov"
    assert model.n_iter_ < cold
    assert_same(model.embedding_, embedding, 1e-6)
    assert fitted(Estimator, X, solver=solver).fit(X).n_iter_ == cold


@every_estimator
def test_more_or_fewer_components(Estimator):
    """The vectors found are where to start."""
    X = training(N)
    model = fitted(Estimator, X, warm_start=True)
    for k in (2, 5):
        model.set_params(n_components=k).fit(X)
        exact = fitted(Estimator, X, n_components=k, solver="dense")
        assert_same(model.eigenvalues_, exact.eigenvalues_, 0.02)
        assert model.converged_


SOLVERS = ("hebbian", "krylov", "dense")


@pytest.mark.parametrize("first", SOLVERS)
@pytest.mark.parametrize("second", SOLVERS)
@every_estimator
def test_from_one_solver_to_another(Estimator, first, second):
    X = training(N)
    model = fitted(Estimator, X, warm_start=True, solver=first)
    model.set_params(solver=second).fit(X)
    exact = fitted(Estimator, X, solver="dense")
    assert_same(model.eigenvalues_, exact.eigenvalues_, 0.02)
    assert model.converged_


OTHER_DATA = {
    "data": lambda model, X: model.fit(X[::-1] ** 2),
    "kernel": lambda model, X: model.set_params(kernel=Gaussian(sigma=1.0)).fit(X),
    "weights": lambda model, X: model.fit(X, sample_weight=np.arange(N) % 7),
}


@pytest.mark.parametrize("other", OTHER_DATA)
@every_estimator
def test_other_data_of_the_same_size_are_no_trap(Estimator, other):
    """A state of other data is refused or not used; what is returned is of these data."""
    X = training(N)
    model = fitted(Estimator, X, warm_start=True)
    exact = OTHER_DATA[other](fitted(Estimator, X, solver="dense"), X)
    with contextlib.suppress(ValueError):  # which would do as well
        found = OTHER_DATA[other](model, X)
        assert_same(found.eigenvalues_, exact.eigenvalues_, 0.02)
        assert_same(found.transform(X), found.embedding_, 1e-8)


# ------------------------------------------------------------------ with a checkpoint


@every_estimator
def test_a_fraction_with_a_checkpoint_is_refused(Estimator, tmp_path):
    """It takes several runs, of more and more components, and the file keeps one."""
    solver = Hebbian(tol=0.05, random_state=0, checkpoint=tmp_path / "run")
    message = "n_components of .* must be an integer with a checkpoint.* Got 0.8"
    with pytest.raises(ValueError, match=message):
        Estimator(0.8, solver=solver).fit(training(N, d=12))
    assert not list(tmp_path.iterdir())


@unfinished
def test_a_warm_start_with_a_checkpoint(tmp_path):
    X = training(N)
    solver = Hebbian(n_passes=2, tol=0, random_state=0, checkpoint=tmp_path / "run")
    model = fitted(KernelPCA, X, solver=solver, warm_start=True)
    assert model.fit(X).n_iter_ == 4


# ------------------------------------------------------------------ nothing to find


@every_estimator
def test_data_that_coincide_are_as_with_the_other_solvers(Estimator):
    X = np.ones((400, 3))
    found, exact = (Estimator(2, solver=solver).fit(X) for solver in ("hebbian", "dense"))
    np.testing.assert_array_equal(found.eigenvalues_, exact.eigenvalues_)
    np.testing.assert_allclose(found.embedding_, exact.embedding_, atol=1e-12)


def test_a_block_of_rows_keeps_to_the_memory_budget():
    X = training(2000)
    operator = Counted(Centered(gram_operator(Gaussian().fit(X), X)))
    Hebbian(n_passes=1, tol=1, memory_budget=64 * 2000 * 8).solve(operator, 3)
    assert max(len(rows) for rows in operator.asked[2:]) == 64
