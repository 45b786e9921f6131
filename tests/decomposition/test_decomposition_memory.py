"""Storage and the memory budget change what is kept in memory, and nothing else."""

import tracemalloc

import numpy as np
import pytest

from laws_decomposition import every_estimator, training
from orthodrome import KernelPCA, KernelPGA


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
