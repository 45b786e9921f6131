"""Fingerprints: the same for what is the same, another for all that differs."""

import datetime
import functools
import operator
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba import njit

from orthodrome._core import digest as digest_module
from orthodrome._core.digest import digest, sketch
from orthodrome.gram import Centered, Combined, DenseGram, TiledGram
from orthodrome.kernels import Exponential, Gaussian, Linear, Normalized, Polynomial

ARRAYS = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.bool_, np.dtype("<U3")]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@settings(max_examples=60, deadline=None)
@given(ARRAYS)
def test_arrays_count_by_their_content(array):
    same = [array.copy(), np.array(array, order="F"), np.array(array, order="C")]
    if array.ndim:
        same.append(np.repeat(array, 2, axis=0)[::2])
        same.append(array[::-1].copy()[::-1])
    for other in same:
        assert digest(other) == digest(array)
    assert digest(array.reshape(1, *array.shape)) != digest(array)
    if array.ndim:
        assert digest(np.concatenate([array, array[:1]])) != digest(array) or not array.size


@settings(max_examples=60, deadline=None)
@given(ARRAYS, st.data())
def test_any_entry_counts(array, data):
    if not array.size:
        return
    position = data.draw(st.integers(0, array.size - 1))
    changed = array.copy()
    flat = changed.reshape(-1).view(np.uint8).reshape(array.size, -1)
    flat[position, 0] ^= 1
    assert digest(changed) != digest(array)
    assert digest(changed.T) != digest(array.T)


def test_long_arrays_that_are_not_contiguous():
    """They are read in parts: several, and the last one shorter."""
    array = np.arange(3_000_001, dtype=np.float64)
    strided = np.repeat(array, 2)[::2]
    assert not strided.flags.c_contiguous
    assert digest(strided) == digest(array)
    for position in (0, 2**19, 3_000_000):
        strided[position] += 1
        assert digest(strided) != digest(array)
        strided[position] -= 1


def test_memory_maps_count_as_arrays(tmp_path):
    array = np.random.default_rng(0).standard_normal((20, 3))
    np.save(tmp_path / "a.npy", array)
    assert digest(np.load(tmp_path / "a.npy", mmap_mode="r")) == digest(array)


class Plain:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Other(Plain):
    pass


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b=None):
        self.a = a
        if b is not None:
            self.b = b


class WithCache:
    def __init__(self, value, cache):
        self.value, self.cache = value, cache

    def _identity(self):
        return (self.value,)


class OtherWithCache(WithCache):
    pass


def scaled(factor):
    def kernel(X, Y):
        return factor * (X @ Y.T)

    return kernel


def with_default(factor=2):
    return factor


def with_keyword(*, factor=2):
    return factor


def _with(function, **attributes):
    """The same function, but for these attributes."""
    copy = type(function)(
        function.__code__, function.__globals__, function.__name__, function.__defaults__
    )
    copy.__qualname__, copy.__kwdefaults__ = function.__qualname__, function.__kwdefaults__
    for name, value in attributes.items():
        setattr(copy, name, value)
    return copy


X = np.random.default_rng(0).standard_normal((30, 3))
K = X @ X.T
SPARSE = scipy.sparse.random_array((6, 5), density=0.4, random_state=np.random.default_rng(1))

#: Things no two of which are the same.
DIFFERENT = {
    "None": None,
    "False": False,
    "0": 0,
    "0.0": 0.0,
    "-0.0": -0.0,
    "1": 1,
    "True": True,
    "nan": np.nan,
    "'1'": "1",
    "b'1'": b"1",
    "empty": "",
    "'None'": "None",
    "complex": 1j,
    "dtype": np.dtype("float64"),
    "other dtype": np.dtype("float32"),
    "()": (),
    "(1,)": (1,),
    "(1, 2)": (1, 2),
    "((1,), 2)": ((1,), 2),
    "(1, (2,))": (1, (2,)),
    "((1, 2), 3)": ((1, 2), 3),
    "((1,), 2, 3)": ((1,), 2, 3),
    "('12',)": ("12",),
    "('1', '2')": ("1", "2"),
    "{}": {},
    "{'a': 1}": {"a": 1},
    "{'a': 2}": {"a": 2},
    "{'b': 1}": {"b": 1},
    "array": np.array([1.0, 2.0]),
    "float32": np.array([1.0, 2.0], dtype=np.float32),
    "bits": np.array([1.0, 2.0]).view(np.int64),
    "row": np.array([[1.0, 2.0]]),
    "column": np.array([[1.0], [2.0]]),
    "swapped": np.array([2.0, 1.0]),
    "other bytes": np.array([1.0, 2.0], dtype=">f8"),
    "no entries": np.zeros((0, 3)),
    "no columns": np.zeros((3, 0)),
    "scalar": np.array(1.0),
    "sparse": SPARSE,
    "sparse transposed": SPARSE.T,
    "sparse doubled": 2 * SPARSE,
    "sparse, dense": SPARSE.toarray(),
    "plain": Plain(a=1),
    "plain b": Plain(b=1),
    "plain 2": Plain(a=2),
    "plain array": Plain(a=np.ones(3)),
    "plain other array": Plain(a=np.ones(4)),
    "other class": Other(a=1),
    "class": Plain,
    "other class itself": Other,
    "slotted": Slotted(1),
    "slotted 2": Slotted(2),
    "slotted b": Slotted(1, 2),
    "identity": WithCache(1, 0),
    "identity 2": WithCache(2, 0),
    "identity, other class": OtherWithCache(1, 0),
    "function": scaled,
    "closure": scaled(2.0),
    "closure 3": scaled(3.0),
    "closure array": scaled(np.ones(2)),
    "default": with_default,
    "default 3": _with(with_default, __defaults__=(3,)),
    "lambda": lambda X, Y: X @ Y.T,
    "other lambda": lambda X, Y: X @ Y.T + X @ Y.T,
    "ufunc": np.add,
    "other ufunc": np.multiply,
    "gaussian": Gaussian(sigma=2.0).fit(X),
    "gaussian 3": Gaussian(sigma=3.0).fit(X),
    "exponential": Exponential(sigma=2.0).fit(X),
    "polynomial": Polynomial(degree=2).fit(X),
    "polynomial 3": Polynomial(degree=3).fit(X),
    "normalized": Normalized(Polynomial(degree=2)).fit(X),
    "normalized 3": Normalized(Polynomial(degree=3)).fit(X),
    "dense": DenseGram(K),
    "other dense": DenseGram(K + np.eye(30)),
    "centred": Centered(DenseGram(K)),
    "centred twice": Centered(Centered(DenseGram(K))),
    "centred with weights": Centered(DenseGram(K), np.arange(30.0)),
    "combined": Combined(DenseGram(K), np.ones(30)),
    "combined otherwise": Combined(DenseGram(K), np.arange(30.0)),
    "tiled": TiledGram(Linear().fit(X), X, "memory"),
    "tiled, other points": TiledGram(Linear().fit(X), X + 1, "memory"),
    "tiled, other kernel": TiledGram(Gaussian(sigma=2.0).fit(X), X, "memory"),
}


def test_all_that_differs_differs():
    found = {}
    for name, thing in DIFFERENT.items():
        assert found.setdefault(digest(thing), name) == name
    assert all(len(key) == 40 and int(key, 16) >= 0 for key in found)


#: Functions that do something else.
FUNCTIONS = {
    "a constant": (lambda X: X * 2, lambda X: X * 3),
    "a name": (lambda X: np.exp(X), lambda X: np.log(X)),
    "a keyword's default": (with_keyword, _with(with_keyword, __kwdefaults__={"factor": 3})),
    "an argument given in advance": (
        functools.partial(with_default, factor=1),
        functools.partial(with_default, factor=2),
    ),
    "the object of a method": (Gaussian(sigma=1.0).evaluate, Gaussian(sigma=2.0).evaluate),
    "an inner function": (lambda X: (lambda: 1)(), lambda X: (lambda: 2)()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_do_something_else_differ(name):
    """A kernel may be any callable: another one is another kernel."""
    one, other = FUNCTIONS[name]
    assert digest(one) != digest(other)
    assert digest(one) == digest(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, 2), [1, 2]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (SPARSE, SPARSE.tocsr()),
        (SPARSE, SPARSE.tocsc()),
        (SPARSE, SPARSE.tolil()),
        (Plain(a=np.ones(3)), Plain(a=np.ones(3))),
        (Plain(a=1, b=2), Plain(b=2, a=1)),
        (WithCache(1, 0), WithCache(1, 5)),
        (scaled(2.0), scaled(2.0)),
        (Gaussian().fit(X), Gaussian().fit(X.copy())),
        (DenseGram(K), DenseGram(np.asfortranarray(K))),
        (
            TiledGram(Gaussian(sigma=2.0).fit(X), X, "memory"),
            TiledGram(Gaussian(sigma=2.0).fit(X), X, "recompute"),
        ),
        (
            Centered(TiledGram(Gaussian(sigma=2.0).fit(X), X, "disk")),
            Centered(TiledGram(Gaussian(sigma=2.0).fit(X), X, "recompute")),
        ),
    ],
)
def test_what_is_the_same_is_the_same(one, other):
    assert digest(one) == digest(other)


def test_the_width_of_places_does_not_matter():
    """Which one SciPy takes depends on its version and on the format that it comes from."""
    for width in (np.int32, np.int64):
        same = SPARSE.tocsr()
        same.indices, same.indptr = same.indices.astype(width), same.indptr.astype(width)
        assert digest(same) == digest(SPARSE)


def test_a_sparse_array_in_another_order():
    data, rows, columns = [3.0, 1.0, 2.0], [1, 0, 1], [0, 1, 0]
    one = scipy.sparse.csr_array((data, (rows, columns)), shape=(2, 2))
    other = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 3.0]), np.array([1, 0, 0]), np.array([0, 1, 3])), shape=(2, 2)
    )
    assert digest(one) == digest(other)


def test_several_things_are_not_their_parts():
    assert digest(1, 2) != digest(2, 1)
    assert digest("ab", "c") != digest("a", "bc")
    assert digest({"a": 1, "b": 2}) != digest({"a": 1}, ("b", 2))
    assert digest(np.ones(2), np.ones(3)) != digest(np.ones(3), np.ones(2))
    assert digest(np.ones(4)) != digest(np.ones(2), np.ones(2))
    assert digest() != digest(None)


@pytest.mark.slow
def test_another_process_finds_the_same():
    """Neither addresses nor the seed of hashes enter."""
    code = (
        "import numpy as np\n"
        "from orthodrome._core.digest import digest\n"
        "from orthodrome.gram import Centered, TiledGram\n"
        "from orthodrome.kernels import Gaussian, Normalized, Polynomial\n"
        "X = np.arange(12.0).reshape(6, 2)\n"
        "kernels = Gaussian(sigma=2.0).fit(X), Normalized(Polynomial()).fit(X)\n"
        "operators = [TiledGram(kernel, X, 'recompute') for kernel in kernels]\n"
        "print(digest(*operators, {'b': 1, 'a': (2.5, None)}, lambda X, Y: X @ Y.T))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1


def test_the_thing_is_not_changed():
    unsorted = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 1, 3])), shape=(2, 2)
    )
    before = [part.copy() for part in (unsorted.data, unsorted.indices, unsorted.indptr)]
    digest(unsorted)
    for part, kept in zip((unsorted.data, unsorted.indices, unsorted.indptr), before, strict=True):
        np.testing.assert_array_equal(part, kept)


def test_all():
    assert digest_module.__all__ == ["digest", "sketch"]


# ------------------------------------------------------------------ things without attributes


def plus(x):
    return x + 1


def minus(x):
    return x - 1


APART = {
    "sets": ({1}, {2}),
    "frozen sets": (frozenset("ab"), frozenset("ac")),
    "builtins": (len, sum),
    "functions of the array": (np.exp, np.sin),
    "slices": (slice(1, 2), slice(1, 3)),
    "ranges": (range(3), range(4)),
    "dates": (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
    "getters": (operator.itemgetter(1), operator.itemgetter(2)),
    "generators": (np.random.default_rng(0), np.random.default_rng(1)),
    "states": (np.random.RandomState(0), np.random.RandomState(1)),
    "objects in arrays": (np.array([1, "a"], object), np.array([1, "b"], object)),
    "keys of several types": ({1: 2, "a": 3}, {1: 2, "a": 4}),
    "types": (int, float),
    "compiled functions": (njit(plus), njit(minus)),
}


@pytest.mark.parametrize("name", APART)
def test_things_without_attributes_are_told_apart(name):
    one, other = APART[name]
    assert digest(one) == digest(one) != digest(other)


def test_order_within_sets_and_mappings_does_not_matter():
    assert digest({1: 2, "a": 3}) == digest({"a": 3, 1: 2})
    assert digest(set("abcdef")) == digest(set("fedcba"))


def test_what_cannot_be_seen_is_refused():
    itself = []
    itself.append(itself)
    with pytest.raises(ValueError, match="fingerprint of list: maximum recursion"):
        digest(itself)
    with pytest.raises(ValueError, match=r"fingerprint of dict: cannot pickle .*lock"):
        digest({"a": threading.Lock()})


# ------------------------------------------------------------------ sketches


def test_a_sketch_forgets_rounding_and_nothing_else():
    rng = np.random.default_rng(0)
    for n in (1, 3, 1000):
        x = rng.standard_normal(n)
        whole = sketch(x, 6)
        assert sketch(x + 1e-13 * rng.standard_normal(n), 6) == whole
        assert sketch(7 * x, 6) == whole  # in units of the length
        if n > 1:
            for i in range(0, n, max(1, n // 10)):
                assert sketch(x + 1e-4 * np.linalg.norm(x) * np.eye(n)[i], 6) != whole
            assert sketch(np.roll(x, 1), 6) != whole
    assert sketch(np.zeros(4), 6) == [0.0] * 8
    assert sketch(-x, 6) != whole
    assert "-0.0" not in repr(sketch(np.array([1e-9, 1.0]) * 0, 6))
