"""Storage and the memory budget change what is kept in memory, and nothing else."""

import tracemalloc

import numpy as np
import pytest

from laws_decomposition import assert_same, every_estimator, held_out, training
from orthodrome import KernelPCA, KernelPGA
from orthodrome.eigen import Dense, Nystroem
from orthodrome.kernels import Gaussian

KERNEL = Gaussian(sigma=3.0)
SOLVERS = {  # with the tolerance of the law
    "krylov": ({"solver": "krylov", "tol": 1e-12}, 1e-8),
    "hebbian": ({"solver": "hebbian", "tol": 0, "max_iter": 3}, 1e-9),
    "unit": ({"solver": Nystroem(n_anchors=40)}, 1e-9),
    "angles": ({"solver": Nystroem(n_anchors=40, sphere="angles")}, 1e-9),
}
STORAGE = [
    {"storage": "memory"},
    {"storage": "disk"},
    {"storage": "recompute"},
    {"memory_budget": "64KiB"},
    {"memory_budget": 1},
    {"memory_budget": "64KiB", "kernel": lambda A, B: KERNEL(A, B)},
]


def fitted(Estimator, solver, weights, **storage):
    options = {"kernel": KERNEL} | SOLVERS[solver][0] | storage
    model = Estimator(4, random_state=0, **options)
    return model.fit(training(300), sample_weight=weights)


#: The sphere of the features does not concern kernel PCA.
CASES = [(KernelPGA, solver) for solver in SOLVERS]
CASES += [(KernelPCA, solver) for solver in SOLVERS if solver != "angles"]


@pytest.mark.parametrize("weights", [None, np.arange(300) % 3], ids=["equal", "weighted"])
@pytest.mark.parametrize(("Estimator", "solver"), CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_storage_and_budget_change_no_result(Estimator, solver, weights):
    plain = fitted(Estimator, solver, weights)
    for storage in STORAGE:
        check_same(fitted(Estimator, solver, weights, **storage), plain, solver, storage)


def check_same(other, plain, solver, storage):
    tol = SOLVERS[solver][1]
    assert_same(other.eigenvalues_, plain.eigenvalues_, 1e-12 if solver == "hebbian" else tol)
    assert_same(other.embedding_, plain.embedding_, tol)
    assert_same(other.transform(held_out()), plain.transform(held_out()), tol)
    assert_same(other.explained_variance_ratio_, plain.explained_variance_ratio_, tol)
    assert other.score(held_out()) == pytest.approx(plain.score(held_out()), rel=10 * tol)


@every_estimator
def test_a_memory_map_is_not_copied(Estimator, tmp_path):
    np.save(tmp_path / "x.npy", training())
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(Estimator(2).fit(mapped).X_fit_, mapped)


REFUSED = [
    ({"n_components": None}, r"whole 1100 x 1100 matrix.*memory_budget is 1 MiB.*krylov"),
    ({"n_components": 900}, r"whole 1100 x 1100 matrix.*memory_budget is 1 MiB.*krylov"),
    ({"solver": Dense()}, "memory_budget is 1 MiB"),
    ({"storage": "memory", "solver": "krylov"}, "storage='memory' does not fit: .* Raise memory_b"),
    ({"storage": "memory", "solver": "nystroem", "n_anchors": 500}, "the features take"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=str)
@every_estimator
def test_what_does_not_fit_is_refused_before_the_work(Estimator, options, message):
    calls = []

    def called(X, Y):
        calls.append(len(X))
        return KERNEL(X, Y)

    model = Estimator(**{"n_components": 2, "kernel": called, "memory_budget": "1MiB"} | options)
    with pytest.raises(ValueError, match=message):
        model.fit(training(1100))
    assert max(calls, default=0) <= 16  # the diagonal at most, in small blocks


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
