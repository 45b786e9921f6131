"""Digests are equal for equal content only."""

import functools
import threading

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba import njit

from orthodrome._core.digest import digest, sketch
from orthodrome.gram import Centered, DenseGram, Weighted
from orthodrome.gram.tiled import TiledGram
from orthodrome.kernels import Exponential, Gaussian, Linear, Normalized, Polynomial

ARRAYS = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.bool_, np.dtype("<U3")]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@settings(max_examples=60, deadline=None)
@given(ARRAYS, st.data())
def test_arrays(array, data):
    same = [array.copy(), np.array(array, order="F"), np.array(array, order="C")]
    if array.ndim:
        same += [np.repeat(array, 2, axis=0)[::2], array[::-1].copy()[::-1]]
    for other in same:
        assert digest(other) == digest(array)
    assert digest(array.reshape(1, *array.shape)) != digest(array)
    if array.size:
        changed = array.copy()
        flat = changed.reshape(-1).view(np.uint8).reshape(array.size, -1)
        flat[data.draw(st.integers(0, array.size - 1)), 0] ^= 1
        assert digest(changed) != digest(array)
        assert digest(changed.T) != digest(array.T)


class Plain:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Other(Plain):
    pass


class WithCache(Plain):
    def _identity(self):
        return (self.value,)


def scaled(factor):
    def kernel(X, Y):
        return factor * (X @ Y.T)

    return kernel


def with_default(factor=2, *, more=3):
    return factor + more


X = np.random.default_rng(0).standard_normal((30, 3))
K = X @ X.T
SPARSE = scipy.sparse.random_array((6, 5), density=0.4, random_state=np.random.default_rng(1))

#: No two of these are the same.
DIFFERENT = [
    *(None, False, 0, 0.0, -0.0, 1, True, np.nan, "1", b"1", "", "None", 1j),
    *(np.dtype("float64"), np.dtype("float32"), (), (1,), (1, 2), ((1,), 2), (1, (2,)), ("12",)),
    *(("1", "2"), {}, {"a": 1}, {"a": 2}, {"b": 1}, {1}, {2}, {1: 2, "a": 3}, {1: 2, "a": 4}),
    *(np.array([1.0, 2.0]), np.array([1.0, 2.0], np.float32), np.array([1.0, 2.0], ">f8")),
    *(np.array([1.0, 2.0]).view(np.int64), np.array([[1.0, 2.0]]), np.array([[1.0], [2.0]])),
    *(np.array([2.0, 1.0]), np.zeros((0, 3)), np.zeros((3, 0)), np.array(1.0)),
    *(np.array([1, "a"], object), np.array([1, "b"], object)),
    *(SPARSE, SPARSE.T, 2 * SPARSE, SPARSE.toarray()),
    *(Plain(a=1), Plain(b=1), Plain(a=2), Plain(a=np.ones(3)), Plain(a=np.ones(4)), Other(a=1)),
    *(Plain, Other, WithCache(value=1, cache=0), WithCache(value=2, cache=0)),
    *(len, sum, np.add, np.multiply, slice(1, 2), slice(1, 3), range(3), range(4), int, float),
    *(np.random.default_rng(0), np.random.default_rng(1), np.random.RandomState(0)),
    *(scaled, scaled(2.0), scaled(3.0), scaled(np.ones(2)), with_default, njit(with_default)),
    *(functools.partial(with_default, factor=1), functools.partial(with_default, factor=2)),
    *(lambda X, Y: X @ Y.T, lambda X, Y: X @ Y.T + 1, lambda X, Y: X @ Y.T + 2),
    *(lambda X: np.exp(X), lambda X: np.log(X), lambda X: (lambda: 1)(), lambda X: (lambda: 2)()),
    *(lambda X=1: X, lambda X=2: X, lambda *, X=1: X, lambda *, X=2: X),
    *(Gaussian(sigma=1.0).evaluate, Gaussian(sigma=2.0).evaluate),
    *(Gaussian(sigma=2.0).fit(X), Gaussian(sigma=3.0).fit(X), Exponential(sigma=2.0).fit(X)),
    *(Polynomial(degree=2).fit(X), Normalized(Polynomial(degree=2)).fit(X)),
    *(DenseGram(K), DenseGram(K + np.eye(30)), Centered(DenseGram(K))),
    *(Centered(Centered(DenseGram(K))), Centered(DenseGram(K), np.arange(30.0))),
    *(Weighted(DenseGram(K), np.ones(30)), Weighted(DenseGram(K), np.arange(30.0))),
    *(TiledGram(Linear().fit(X), X, "memory"), TiledGram(Linear().fit(X), X + 1, "memory")),
    TiledGram(Gaussian(sigma=2.0).fit(X), X, "memory"),
]


def test_different_content_has_different_digests():
    found = [digest(thing) for thing in DIFFERENT]
    assert found == [digest(thing) for thing in DIFFERENT]
    assert len(set(found)) == len(DIFFERENT)
    several = [digest(), digest(1, 2), digest(2, 1), digest("ab", "c"), digest("a", "bc")]
    assert len({*several, *found}) == len(several) + len(found)


def csr(data, indices, indptr, width=np.int32):
    parts = (np.array(data), np.array(indices, width), np.array(indptr, width))
    return scipy.sparse.csr_array(parts, shape=(2, 2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, 2), [1, 2]),
        ({"a": 1, 2: 2}, {2: 2, "a": 1}),
        (set("abcdef"), set("fedcba")),
        (SPARSE, SPARSE.tocsc()),
        (SPARSE, SPARSE.tolil()),
        (csr([1.0, 5.0], [1, 0], [0, 1, 2]), csr([1.0, 2, 3], [1, 0, 0], [0, 1, 3], np.int64)),
        (Plain(a=1, b=np.ones(3)), Plain(b=np.ones(3), a=1)),
        (WithCache(value=1, cache=0), WithCache(value=1, cache=5)),
        (scaled(2.0), scaled(2.0)),
        (Gaussian().fit(X), Gaussian().fit(X.copy())),
        (DenseGram(K), DenseGram(np.asfortranarray(K))),
        (
            Centered(TiledGram(Gaussian(sigma=2.0).fit(X), X, "disk")),
            Centered(TiledGram(Gaussian(sigma=2.0).fit(X), X, "recompute")),
        ),
    ],
)
def test_equal_content_has_equal_digests(one, other):
    assert digest(one) == digest(other)
    unsorted = csr([1.0, 2, 3], [1, 1, 0], [0, 1, 3])
    digest(unsorted)
    assert unsorted.indices.tolist() == [1, 1, 0]  # not changed


def test_objects_that_cannot_be_pickled_raise():
    itself = []
    itself.append(itself)
    with pytest.raises(ValueError, match="fingerprint of list: maximum recursion"):
        digest(itself)
    with pytest.raises(ValueError, match=r"fingerprint of dict: cannot pickle .*lock"):
        digest({"a": threading.Lock()})


def test_a_sketch_ignores_only_rounding_and_length():
    rng = np.random.default_rng(0)
    for n in (1, 3, 1000):
        x = rng.standard_normal(n)
        whole = sketch(x, 6)
        assert sketch(x + 1e-13 * rng.standard_normal(n), 6) == whole
        assert sketch(7 * x, 6) == whole  # in units of the length
        for i in range(0, n if n > 1 else 0, max(1, n // 10)):
            assert sketch(x + 1e-4 * np.linalg.norm(x) * np.eye(n)[i], 6) != whole
    assert sketch(np.roll(x, 1), 6) != whole
    assert sketch(-x, 6) != whole
    assert repr(sketch(np.zeros(4), 6)) == repr([0.0] * 8)
