"""Storage of tiles: memory, disk and recomputation give the same numbers, within the budget."""

import gc
import os
import tempfile
import tracemalloc

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from laws_kernels import squared_plus_one
from orthodrome._core.threads import n_threads
from orthodrome.gram import DenseGram, Weighted, choose_storage, gram_operator, tiled
from orthodrome.gram.tiled import TiledGram, stored_bytes
from orthodrome.kernels import (
    Exponential,
    FromCallable,
    Gaussian,
    Laplacian,
    Normalized,
    Polynomial,
)

STORAGES = ["memory", "disk", "recompute"]
KERNELS = [Gaussian(), Exponential(), Normalized(Polynomial()), Laplacian()]


def data(n, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(dtype)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_do_not_depend_on_storage_nor_threads(kernel, dtype, small_work_in_threads):
    """With one number of threads all bits are the same, every time."""
    X, V = data(1100, dtype), data(1100, dtype, seed=1)
    operators = [TiledGram(kernel.fit(X), X, storage) for storage in (*STORAGES, "recompute")]
    products = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            first, *others = [operator @ V for operator in operators]
            products.append((first, operators[0].cross(X[:90]) @ V))
        for product in others:
            np.testing.assert_array_equal(product, first)
    scale = np.abs(V).sum(axis=0).max()
    for one, two in zip(*products, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=4 * np.finfo(dtype).eps * scale)


@pytest.mark.parametrize("storage", STORAGES)
def test_kernels_that_are_not_threadsafe_run_one_call_at_a_time(storage):
    running, most = [], []

    def function(A, B):
        running.append(1)
        most.append(len(running))
        block = squared_plus_one(A, B)
        running.pop()
        return block

    X, V = data(1100), data(1100, seed=1)
    operator = TiledGram(FromCallable(function).fit(X), X, storage)
    expected = squared_plus_one(X, X)
    np.testing.assert_allclose(operator @ V, expected @ V, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(operator.rows([3, 600]), expected[[3, 600]], rtol=1e-12)
    np.testing.assert_allclose(operator.cross(X[:50]) @ V, expected[:50] @ V, rtol=1e-10, atol=1e-9)
    assert max(most) == 1


def test_choice_by_budget():
    for n in (1, 511, 512, 513, 1100):
        sizes = [min(tiled.TILE, n - start) for start in range(0, n, tiled.TILE)]
        assert stored_bytes(n, 8) == 8 * sum(a * b for i, a in enumerate(sizes) for b in sizes[i:])
    X, kernel = data(1100), Gaussian().fit(data(1100))
    slow = FromCallable(squared_plus_one).fit(X)
    needed = stored_bytes(1100, 8)
    for given, points, budget, expected in (
        (kernel, X, needed, "memory"),
        (kernel, X, needed - 1, "recompute"),
        (kernel, X.astype(np.float32), needed // 2, "memory"),
        (slow, X, needed - 1, "disk"),
        (Normalized(slow).fit(X), X, needed - 1, "disk"),
    ):
        assert choose_storage(given, points, budget, "auto")[0] == expected
    reason = choose_storage(kernel, X, "1MiB", "auto")[1]
    assert "takes 6.64 MiB" in reason
    assert "budget is 1 MiB" in reason
    with pytest.raises(ValueError, match=r"storage='memory' does not fit: .* Raise memory_budget"):
        gram_operator(kernel, X, memory_budget="1MiB", storage="memory")


def mapped_files(folder):
    with open("/proc/self/maps") as maps:
        return [line for line in maps if str(folder) in line]


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs Linux's /proc")
def test_the_temporary_file_is_deleted_with_the_operator(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    X = data(600)
    operator = TiledGram(Gaussian().fit(X), X, "disk")
    product = operator @ X
    assert list(tmp_path.iterdir()) == []
    assert mapped_files(tmp_path)
    np.testing.assert_array_equal(operator @ X, product)
    del operator
    gc.collect()
    assert not mapped_files(tmp_path)


@pytest.mark.parametrize("storage", STORAGES)
def test_peak_memory(storage):
    n = 2600
    X = data(n)
    kernel = Gaussian().fit(X)
    TiledGram(kernel, X[:10], storage) @ X[:10]  # compile
    tracemalloc.start()
    try:
        operator = TiledGram(kernel, X, storage)
        operator @ X
        operator.cross(X) @ X
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    kept = {"memory": stored_bytes(n, 8), "disk": 0, "recompute": 0}[storage]
    few_tiles = (2 + 2 * n_threads()) * 8 * tiled.TILE**2
    assert peak < kept + few_tiles < 8 * n * n


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DenseGram(np.ones((2, 3))), r"A Gram matrix must be a square .* shape \(2, 3\)"),
        (lambda: DenseGram([[1.0, 2.0], [3.0, 1.0]]), r"symmetric; entries \(0, 1\) and \(1, 0\)"),
        (lambda: DenseGram(np.eye(2)).cross(np.ones((1, 3))), r"\(n_new, 2\).*got \(1, 3\)"),
        (lambda: Weighted(DenseGram(np.eye(2)), np.ones(3)), "factors of Weighted must be 2"),
        (lambda: Weighted(DenseGram(np.eye(2)), [1e200, 1.0]), "Squares of factors .* overflow"),
    ],
)
def test_matrices_must_fit(make, message):
    with pytest.raises(ValueError, match=message):
        make()
