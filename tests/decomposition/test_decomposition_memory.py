"""Storage and the memory budget change what is kept in memory, and nothing else."""

import tracemalloc

import numpy as np
import pytest

from laws_decomposition import every_estimator, training
from orthodrome import KernelPCA, KernelPGA
from orthodrome.eigen import Dense
from orthodrome.kernels import Gaussian

KERNEL = Gaussian(sigma=3.0)


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
