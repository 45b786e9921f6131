"""Loops are compiled with a cache and without one."""

import numba
import numpy as np
import pytest

from orthodrome._core.compiled import compiled


def double(array):
    for i in range(array.shape[0]):
        array[i] = 2 * array[i] + 1 / array[i]


def check(loop):
    array = np.array([1.0, 0.0])
    loop(array)
    np.testing.assert_array_equal(array, [3.0, np.inf])  # 1/0 as in NumPy, no exception


def test_a_compiled_loop_runs_without_the_gil():
    loop = compiled(double)
    check(loop)
    assert loop.dispatcher.targetoptions["nogil"]
    assert not loop.dispatcher.targetoptions.get("parallel")  # would abort forked children


def test_a_function_without_a_file_is_compiled_without_a_cache():
    namespace = {}
    source = "def double(a):\n    for i in range(a.shape[0]):\n        a[i] = 2 * a[i] + 1 / a[i]"
    exec(source, namespace)
    with pytest.raises(RuntimeError, match="cannot cache function"):
        numba.njit(cache=True)(namespace["double"])
    loop = compiled(namespace["double"])
    assert not loop.cached
    check(loop)


def add_and_fail(array):
    array[0] += 1
    raise ValueError("no")


def test_a_loop_that_fails_is_not_repeated():
    loop, array = compiled(add_and_fail), np.zeros(1)
    for n_calls in (1, 2):
        with pytest.raises(ValueError, match="no"):
            loop(array)
        assert array == n_calls
    assert loop.cached
