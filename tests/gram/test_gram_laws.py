"""Laws that every Gram operator obeys, against its dense twin; see laws_gram."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

from laws_gram import ENTRY_CASES, PRODUCT_CASES, case_id, twin_of
from orthodrome.gram import CrossOperator, GramOperator


def vectors(n, k, dtype, seed=0):
    return np.random.default_rng(seed).normal(size=(n, k)).astype(dtype)


def assert_product(product, matrix, bound, V, tolerance):
    """Within the tolerance of the terms that were summed, largest column sum of them."""
    assert product.shape == (len(matrix), *V.shape[1:])
    atol = tolerance * (bound @ np.abs(V)).max()
    np.testing.assert_allclose(product, matrix @ V, rtol=0, atol=atol)


def assert_entries(block, matrix, bound, tolerance):
    assert block.shape == matrix.shape
    np.testing.assert_allclose(block, matrix, rtol=0, atol=tolerance * bound.max(initial=0))


@pytest.mark.parametrize("case", PRODUCT_CASES, ids=case_id)
def test_products(case):
    twin = twin_of(*case)
    check_products(twin)
    check_products_with_other_types(twin)
    check_symmetry(twin)
    if hasattr(twin.operator, "mean_square"):
        check_that_weights_are_annihilated(twin)


def check_products(twin):
    n, dtype = len(twin.dense), twin.operator.dtype
    block, vector = vectors(n, 3, dtype), vectors(n, 1, dtype, seed=1)[:, 0]
    for V in (block, np.asfortranarray(block), block[:, :1], vector):
        before = V.copy()
        product = twin.operator @ V
        assert product.dtype == dtype
        assert_product(product, twin.dense, twin.bound, V, twin.tolerance)
        np.testing.assert_array_equal(V, before)


def check_products_with_other_types(twin):
    n = len(twin.dense)
    integers = np.arange(2 * n).reshape(n, 2) % 7
    for V in (integers, integers.astype(np.float64), integers.astype(np.float32), integers * 1j):
        V.setflags(write=False)
        product = twin.operator @ V
        assert product.dtype == np.result_type(twin.operator.dtype, V.dtype)
        assert_product(product, twin.dense, twin.bound, V, twin.tolerance)


def check_symmetry(twin):
    n, dtype = len(twin.dense), twin.operator.dtype
    u, v = vectors(n, 2, dtype).T.copy()
    left, right = u @ (twin.operator @ v), (twin.operator @ u) @ v
    scale = np.abs(u) @ twin.bound @ np.abs(v)
    assert abs(left - right) <= twin.tolerance * scale
    for adjoint in (twin.operator.T, twin.operator.H):
        np.testing.assert_array_equal(adjoint @ v, twin.operator @ v)


def check_that_weights_are_annihilated(twin):
    p = twin.operator.weights
    assert np.abs(twin.operator @ p).max() <= twin.tolerance * (twin.bound @ p).max()
    cross = twin.operator.cross(twin.new)
    assert np.abs(cross @ p).max() <= twin.tolerance * (twin.cross_bound @ p).max()


@pytest.mark.parametrize("case", ENTRY_CASES, ids=case_id)
def test_entries(case):
    twin = twin_of(*case)
    assert isinstance(twin.operator, LinearOperator)
    assert isinstance(twin.operator, GramOperator)
    assert twin.operator.shape == twin.dense.shape
    assert twin.operator.dtype in (np.float32, np.float64)
    check_rows_in_any_order(twin)
    check_diagonal_trace_and_toarray(twin)
    check_cross(twin)


def check_rows_in_any_order(twin):
    n, operator = len(twin.dense), twin.operator
    mask = np.arange(n) % 2 == 0
    for indices in ([n - 1, 0, n // 2, 0], np.arange(n)[::-1][:40], [-1], mask, []):
        chosen = np.arange(n)[np.asarray(indices, dtype=None if len(indices) else int)]
        rows = operator.rows(indices)
        assert rows.dtype == operator.dtype
        assert_entries(rows, twin.dense[chosen], twin.bound, twin.tolerance)
    with pytest.raises(IndexError, match="out of bounds"):
        operator.rows([n])


def check_diagonal_trace_and_toarray(twin):
    operator, tolerance = twin.operator, twin.tolerance
    for copy in (operator.rows([0]), operator.toarray(), operator.diagonal()):
        copy[...] = np.nan  # must not reach the operator
    diagonal, matrix = operator.diagonal(), operator.toarray()
    assert diagonal.dtype == matrix.dtype == operator.dtype
    assert_entries(diagonal, np.diagonal(twin.dense), twin.bound, tolerance)
    assert_entries(matrix, twin.dense, twin.bound, tolerance)
    assert isinstance(operator.trace(), float)
    assert abs(operator.trace() - np.trace(twin.dense)) <= tolerance * np.trace(twin.bound)


def check_cross(twin):
    cross, n = twin.operator.cross(twin.new), len(twin.dense)
    assert isinstance(cross, CrossOperator)
    assert cross.shape == twin.cross.shape
    assert cross.dtype == twin.operator.dtype
    tolerance = twin.tolerance
    for V in (vectors(n, 3, cross.dtype), vectors(n, 1, cross.dtype)[:, 0]):
        assert (cross @ V).dtype == cross.dtype
        assert_product(cross @ V, twin.cross, twin.cross_bound, V, tolerance)
    integers = np.arange(n) % 5
    assert_product(cross @ integers, twin.cross, twin.cross_bound, integers, tolerance)
    assert_product(cross @ (1j * integers), twin.cross, twin.cross_bound, 1j * integers, tolerance)
    assert_entries(cross.toarray(), twin.cross, twin.cross_bound, tolerance)
    chosen = [3, 0, 3, -1]
    assert_entries(cross.rows(chosen), twin.cross[chosen], twin.cross_bound, tolerance)
    assert cross.rows([]).shape == (0, n)
