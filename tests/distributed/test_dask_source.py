"""Rows of dask arrays: their blocks, and what is computed when."""

import numpy as np
import pytest

from orthodrome import KernelPCA
from orthodrome.gram.dask_gram import DaskGram
from orthodrome.kernels import Gaussian, VeroneseWhitney, as_kernel
from orthodrome.rows import DaskRows, as_rows

dask = pytest.importorskip("dask", reason="needs dask: pip install orthodrome[distributed]")
da = pytest.importorskip("dask.array", reason="needs dask: pip install orthodrome[distributed]")


def data(n=1000, d=5, dtype=np.float64):
    return np.random.default_rng(0).standard_normal((n, d)).astype(dtype)


def moments(rows, start):
    return rows.sum(axis=0), rows.T @ rows, float(start)


def numbers(rows, start):
    return np.arange(start, start + len(rows))


def source_of(X, kernel=None):
    return as_rows(X, Gaussian() if kernel is None else kernel, KernelPCA())


def test_weights_of_a_dask_array_spread_rows_as_others_do():
    X = data()
    weights = np.random.default_rng(1).integers(0, 4, size=len(X)).astype(np.float64)
    weights[100:250] = 0  # a block without weight
    source = source_of(da.from_array(X, chunks=(50, 5)))
    lazy = source.weights(da.from_array(weights, chunks=77), "KernelPCA")
    for count in (7, 300, 5000):
        for found, expected in zip(
            source.spread(count, lazy, np.random.default_rng(3)),
            source.spread(count, weights, np.random.default_rng(3)),
            strict=True,
        ):
            np.testing.assert_array_equal(found, expected)
    unknown = da.from_array(weights, chunks=77)
    unknown = unknown[unknown >= 0]  # how many these are, dask does not know
    np.testing.assert_array_equal(source.weights(unknown, "KernelPCA").compute(), weights)
    for wrong, message in (
        (np.full(1000, -1.0), "not negative"),
        (np.zeros(1000), "all zero"),
        (np.full(1000, np.nan), "finite"),
        (np.ones(3), r"shape \(1000,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            source.weights(da.from_array(wrong, chunks=50), "KernelPCA")


def test_unknown_and_empty_blocks():
    X = data()
    lazy = da.from_array(X, chunks=(100, 5))
    kept = (X[:, 0] > 1) & (np.arange(len(X)) // 100 != 3)
    filtered = lazy[da.from_array(kept, chunks=100)]
    assert np.isnan(filtered.shape[0])
    source = source_of(filtered)
    assert np.isnan(filtered.shape[0])  # the caller's array is left as it was
    assert source.shape == (kept.sum(), 5)
    assert source.array.numblocks[0] == 9
    np.testing.assert_array_equal(source.whole().compute(), X[kept])
    np.testing.assert_array_equal(source.map(numbers).compute(), np.arange(kept.sum()))


def test_integers_become_floats_and_shapes_keep_their_form():
    counts = da.from_array(np.arange(12).reshape(6, 2), chunks=(4, 1))
    assert source_of(counts).dtype == source_of(counts).whole().compute().dtype == np.float64
    landmarks = da.from_array(data(40, 12), chunks=(11, 5))
    source = source_of(landmarks, VeroneseWhitney())
    assert source.shape == source.whole().shape == source.whole().compute().shape == (40, 6, 2)


def test_nothing_is_computed_before_it_is_asked_for():
    calls = []

    def counted(block):
        calls.append(len(block))
        return block

    X = da.from_array(data(), chunks=(250, 5)).map_blocks(counted, dtype=np.float64, meta=data(0))
    with dask.config.set(scheduler="synchronous"):
        source = source_of(X)
        assert calls == [250]  # the block with the first row
        rows = source.map(numbers)
        assert len(calls) == 1
        rows.compute()
        assert len(calls) == 5


def test_products_evaluate_pairs_of_blocks_once():
    """Unless V has so many columns that moving results costs more than evaluating them again."""
    calls = []

    def counted(X, Y):
        calls.append(len(X))
        return X @ Y.T

    X = data()
    gram = DaskGram(as_kernel(counted).fit(X), da.from_array(X, chunks=(250, 5)))
    with dask.config.set(scheduler="synchronous"):
        for n_columns, n_calls in ((1, 10), (4, 16)):
            calls.clear()
            V = np.ones((len(X), n_columns))
            np.testing.assert_allclose(gram @ V, X @ (X.T @ V), rtol=1e-10, atol=1e-8)
            assert len(calls) == n_calls


def test_other_input_raises():
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        source_of(da.ones(5, chunks=2))
    with pytest.raises(ValueError, match="at least one row"):
        source_of(da.ones((0, 3)))
    with pytest.raises(ValueError, match=r"needs a dask array; got Delayed.*to_dask_array"):
        DaskRows(dask.delayed(np.ones)(3), Gaussian(), KernelPCA())
    with pytest.raises(ValueError, match=r"KernelPCA needs a dask array; got DelayedLeaf"):
        KernelPCA(2).fit(dask.delayed(data()))
    with pytest.raises(ValueError, match=r"DaskGram needs a dask array; got ndarray"):
        DaskGram(Gaussian(sigma=1.0).fit(data()), data())
