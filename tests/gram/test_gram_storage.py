"""Where tiles live: the same numbers from memory, disk and recomputation, within the budget."""

import collections
import gc
import os
import shutil
import tempfile
import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from laws_kernels import squared_plus_one
from orthodrome._core.threads import n_threads
from orthodrome.coordinates import choose_anchors
from orthodrome.gram import (
    Centered,
    Combined,
    DenseGram,
    TiledGram,
    choose_storage,
    gram_operator,
    tiled,
)
from orthodrome.gram.tiled import stored_bytes
from orthodrome.kernels import (
    Exponential,
    FromCallable,
    Gaussian,
    Laplacian,
    Normalized,
    Polynomial,
    Precomputed,
)

STORAGES = ["memory", "disk", "recompute"]
KERNELS = [Gaussian(), Exponential(), Normalized(Polynomial()), Laplacian()]


def data(n, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(dtype)


# The same numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("threads", [1, 2])
def test_products_are_bit_identical_whatever_the_storage(
    kernel, dtype, threads, small_work_in_threads
):
    X, V = data(1100, dtype), data(1100, dtype, seed=1)
    kernel.fit(X)
    with threadpool_limits(threads, user_api="blas"):
        first, *others = [TiledGram(kernel, X, storage) @ V for storage in STORAGES]
    for product in others:
        np.testing.assert_array_equal(product, first)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_do_not_depend_on_the_number_of_threads(storage, dtype, small_work_in_threads):
    X, V = data(1100, dtype), data(1100, dtype, seed=1)
    operator = TiledGram(Gaussian().fit(X), X, storage)
    products = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            products.append((operator @ V, operator.cross(X[:90]) @ V))
    scale = np.abs(V).sum(axis=0).max()
    for one, two in zip(*products, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=4 * np.finfo(dtype).eps * scale)


def test_the_same_number_of_threads_gives_the_same_bits_every_time():
    X, V = data(1100), data(1100, seed=1)
    operator = TiledGram(Gaussian().fit(X), X, "recompute")
    first = operator @ V
    for _ in range(5):
        np.testing.assert_array_equal(operator @ V, first)


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


@pytest.mark.parametrize("storage", STORAGES)
def test_each_tile_is_evaluated_once_or_once_per_product(storage, monkeypatch):
    """Three tiles on and above the diagonal of 2 x 2; never the fourth."""
    calls = collections.Counter()
    evaluate = Gaussian.evaluate

    def counting(self, a, b, out=None):
        calls[len(a), len(b)] += 1
        return evaluate(self, a, b, out)

    monkeypatch.setattr(Gaussian, "evaluate", counting)
    X = data(tiled.TILE + 40)
    operator = TiledGram(Gaussian().fit(X), X, storage)
    stored = sum(calls.values())
    operator @ X
    operator @ X
    assert stored == (0 if storage == "recompute" else 3)
    assert sum(calls.values()) - stored == (6 if storage == "recompute" else 0)
    assert calls[40, tiled.TILE] == 0


# The choice ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 511, 512, 513, 1100, 5000])
def test_stored_bytes_is_half_of_the_matrix_and_the_diagonal_tiles(n):
    full, rest = divmod(n, tiled.TILE)
    diagonal = full * tiled.TILE**2 + rest**2
    assert stored_bytes(n, 8) == 8 * (n * n + diagonal) // 2


def test_choice_by_budget():
    X, kernel = data(1100), Gaussian().fit(data(1100))
    needed = stored_bytes(1100, 8)
    assert choose_storage(kernel, X, needed, "auto")[0] == "memory"
    assert choose_storage(kernel, X, needed - 1, "auto")[0] == "recompute"
    assert choose_storage(kernel, X.astype(np.float32), needed // 2, "auto")[0] == "memory"
    callable_kernel = FromCallable(squared_plus_one).fit(X)
    assert choose_storage(callable_kernel, X, needed - 1, "auto")[0] == "disk"
    assert choose_storage(Normalized(callable_kernel).fit(X), X, needed - 1, "auto")[0] == "disk"
    storage, reason = choose_storage(kernel, X, "1MiB", "auto")
    assert storage == "recompute"
    assert "takes 6.64 MiB" in reason
    assert "budget is 1 MiB" in reason


@pytest.mark.parametrize("storage", STORAGES)
def test_a_storage_that_is_asked_for_is_given(storage):
    X = data(60)
    operator = gram_operator(Gaussian().fit(X), X, storage=storage)
    assert operator.storage == storage
    assert operator.recomputes is (storage == "recompute")
    assert Centered(operator).recomputes is operator.recomputes
    assert Combined(operator, np.ones(60)).recomputes is operator.recomputes


def test_auto_is_the_default():
    X = data(600)
    assert gram_operator(Gaussian().fit(X), X).storage == "memory"
    assert gram_operator(Gaussian().fit(X), X, memory_budget="10kB").storage == "recompute"


def test_precomputed_is_taken_as_it_is():
    gram = Gaussian(1.0)(data(30))
    operator = gram_operator(Precomputed().fit(gram), gram, memory_budget=1)
    assert isinstance(operator, DenseGram)
    assert operator.matrix is gram


def test_memory_that_does_not_fit_is_an_error_that_says_so():
    X = data(1100)
    with pytest.raises(ValueError, match=r"storage='memory' does not fit: .* Raise memory_budget"):
        gram_operator(Gaussian().fit(X), X, memory_budget="1MiB", storage="memory")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"storage": "ram"}, "storage of the Gram operator must be one of 'auto', 'memory'"),
        ({"storage": None}, "storage of the Gram operator must be one of"),
        (
            {"memory_budget": "2 bananas"},
            "memory_budget has the unknown unit 'bananas'; got '2 bananas'",
        ),
        ({"memory_budget": None}, "memory_budget must be a number of bytes or a string"),
        ({"memory_budget": -1}, "memory_budget must be finite and at least one byte"),
    ],
)
def test_bad_options(options, message):
    X = data(5)
    with pytest.raises(ValueError, match=message):
        gram_operator(Gaussian().fit(X), X, **options)


# Disk ---------------------------------------------------------------------------------------------


def test_a_full_disk_is_an_error_with_advice(monkeypatch):
    usage = collections.namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10, 9, 1000))
    X = data(600)
    with pytest.raises(OSError, match=r"has 1000 B free; set TMPDIR .*storage='recompute'"):
        TiledGram(Gaussian().fit(X), X, "disk")


def mapped_files(folder):
    with open("/proc/self/maps") as maps:
        return [line for line in maps if str(folder) in line]


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs Linux's /proc")
def test_the_temporary_file_has_no_name_and_disappears_with_the_operator(monkeypatch, tmp_path):
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


# Memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
def test_memory_stays_near_what_the_storage_says(storage):
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


# Bad matrices -------------------------------------------------------------------------------------


def test_dense_gram_must_be_square_and_symmetric():
    with pytest.raises(
        ValueError, match=r"A Gram matrix must be a square matrix; got shape \(2, 3\)"
    ):
        DenseGram(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"must be symmetric; entries \(0, 1\) and \(1, 0\)"):
        DenseGram([[1.0, 2.0], [3.0, 1.0]])
    with pytest.raises(ValueError, match=r"must have shape \(n_new, 2\).*got \(1, 3\)"):
        DenseGram(np.eye(2)).cross(np.ones((1, 3)))
    with pytest.raises(ValueError, match=r"must have shape \(n_new, 2\).*got \(2,\)"):
        DenseGram(np.eye(2)).cross(np.ones(2))


def test_dense_gram_of_integers_is_float64():
    operator = DenseGram(np.array([[2, 1], [1, 2]]))
    assert operator.dtype == np.float64
    new = np.array([[1, 2]])
    assert operator.cross(new).dtype == np.float64
    np.testing.assert_allclose(Centered(operator).cross(new).toarray(), [[-0.5, 0.5]])


def test_combination_must_fit():
    with pytest.raises(ValueError, match=r"combination must have 2 columns.*got shape \(2, 3\)"):
        Combined(DenseGram(np.eye(2)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="combination must have 2 columns"):
        Combined(DenseGram(np.eye(2)), np.ones(3))


def test_transposed_cross_products_say_what_to_use():
    X = data(20)
    cross = TiledGram(Gaussian().fit(X), X, "memory").cross(X[:3])
    with pytest.raises(NotImplementedError, match=r"use rows\(\) or toarray\(\)"):
        cross.H @ np.ones(3)


# ------------------------------------------------------------------ what was not validated

POINTS = np.random.default_rng(0).standard_normal((6, 3))


@pytest.mark.parametrize(
    ("X", "found"),
    [
        (None, "NoneType"),
        (POINTS.tolist(), "list"),
        (POINTS.astype(np.float16), r"float16 of shape \(6, 3\)"),
        (np.ones((6, 3), dtype=int), r"int64 of shape \(6, 3\)"),
        (np.full((6, 3), np.datetime64("2020-01-01")), "datetime64"),
        (np.full((6, 3), "a"), "<U1"),
        (POINTS[0], r"float64 of shape \(3,\)"),
        (POINTS[:0], r"float64 of shape \(0, 3\)"),
    ],
    ids=["none", "list", "float16", "integers", "dates", "texts", "vector", "empty"],
)
def test_what_was_not_validated_is_refused_by_name(X, found):
    kernel = Gaussian(1.0).fit(POINTS)
    with pytest.raises(ValueError, match=rf"X of gram_operator must be validated.*got {found}"):
        gram_operator(kernel, X)
    with pytest.raises(ValueError, match=rf"X of choose_anchors must be validated.*got {found}"):
        choose_anchors(kernel, X, 2)


def test_kernels_that_are_not_ready_are_refused_by_name():
    with pytest.raises(NotFittedError, match="Gaussian of gram_operator is not fitted"):
        gram_operator(Gaussian(1.0), POINTS)
    with pytest.raises(NotFittedError, match="Gaussian of choose_anchors is not fitted"):
        choose_anchors(Gaussian(), POINTS, 2)
    with pytest.raises(ValueError, match="kernel of gram_operator must be a fitted Kernel"):
        gram_operator("gaussian", POINTS)
    with pytest.raises(ValueError, match="has 2 features; Gaussian was fitted to 3"):
        gram_operator(Gaussian(1.0).fit(POINTS), POINTS[:, :2])
