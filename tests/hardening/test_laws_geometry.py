"""Laws of the sphere for every kernel and every Gram operator, drawn by hypothesis.

Gram matrices of positive definite kernels are semidefinite; Log and Exp are inverse; distances
satisfy the triangle inequality; Karcher means are equivariant under permutations and rotations, and
weights are repetition.
"""

import importlib
import inspect
import pkgutil
import warnings
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from laws_product import CONDITIONAL, DTYPES, KERNELS, examples, on_sphere, sample
from laws_sphere import rotation
from orthodrome.coordinates import anchor_coordinates, choose_anchors, isometric_coordinates
from orthodrome.coordinates.gram import CoordinateGram
from orthodrome.gram import Centered, Degree, DenseGram, GramOperator, Scaled, Tangent, Weighted
from orthodrome.gram.dask_gram import DaskGram
from orthodrome.gram.tiled import TiledGram
from orthodrome.kernels import Radial
from orthodrome.sphere import geodesic_distances, karcher_mean

seeds = st.integers(0, 2**16)
dtypes = st.sampled_from(DTYPES)


def rows(kernel, n, seed, dtype, copies=0, near=0):
    """Return rows for a kernel, with some copies and near copies."""
    X = sample(kernel, n, seed, dtype).X
    rng = np.random.default_rng(seed)
    for _ in range(copies):
        X[rng.integers(n)] = X[rng.integers(n)]
    for _ in range(near):
        X[rng.integers(n)] = X[rng.integers(n)] * dtype(1 + 1e-6)
    return X


@cache
def is_definite(name):
    """Return whether the kernel is positive definite on such data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of indefinite kernels
        return bool(clone(KERNELS[name]).fit(rows(name, 9, 0, np.float64)).positive_definite)


DEFINITE = [name for name in KERNELS if is_definite(name)]
#: Those that can be normalised.
ON_SPHERE = [name for name in DEFINITE if name != "HermitianLinear"]


def _features(kernel, X):
    """Use all points as anchors, so that the error is only rounding."""
    return CoordinateGram(
        anchor_coordinates(kernel, X, choose_anchors(kernel, X, len(X)), unit=True)
    )


def _on_dask(kernel, X):
    import dask.array as da

    return DaskGram(kernel, da.from_array(X, chunks=(max(1, len(X) // 2), *X.shape[1:])))


#: Operators of points of unit length, from a fitted kernel and data.
POINTS = {
    "DenseGram": lambda kernel, X: DenseGram(kernel(X)),
    "TiledGram, memory": lambda kernel, X: TiledGram(kernel, X, "memory"),
    "TiledGram, disk": lambda kernel, X: TiledGram(kernel, X, "disk"),
    "TiledGram, recompute": lambda kernel, X: TiledGram(kernel, X, "recompute"),
    "Scaled": lambda kernel, X: Scaled(DenseGram(4 * kernel(X)), 0.25),
    "Weighted": lambda kernel, X: Weighted(DenseGram(4 * kernel(X)), np.full(len(X), 0.5)),
    "CoordinateGram": _features,
}
if find_spec("dask") is not None:
    POINTS["DaskGram"] = _on_dask


names, operators = st.sampled_from(ON_SPHERE), st.sampled_from(sorted(POINTS))
few = st.integers(0, 3)


def _weights(n):
    return np.arange(n) % 3 + 0.5


def _about_mean(gram):
    n = gram.shape[0]
    xi = np.full(n, 1 / n)
    return Tangent(gram, xi / np.sqrt(xi @ (gram @ xi)))


#: Geometries, which are semidefinite if the matrix is; graphs also need nonnegative entries.
GEOMETRIES = {
    "plain": lambda gram: gram,
    "Centered": Centered,
    "Centered, weighted": lambda gram: Centered(gram, _weights(gram.shape[0])),
    "Tangent": _about_mean,
    "Degree": lambda gram: Degree(gram, shift=1.0),
}


def test_every_operator_is_here():
    operators = {
        name
        for room in ("gram", "coordinates")
        for module in pkgutil.iter_modules(importlib.import_module(f"orthodrome.{room}").__path__)
        for name, each in vars(importlib.import_module(f"orthodrome.{room}.{module.name}")).items()
        if inspect.isclass(each) and issubclass(each, GramOperator)
    } - {"GramOperator", "WrappedGram", "SparseGram"}  # the last is of graphs, not of points
    listed = {name.split(",")[0] for name in (*POINTS, *GEOMETRIES, "DaskGram")}
    assert operators == listed - {"plain"}


def assert_semidefinite(matrix, dtype, terms=None):
    """Check that a matrix is semidefinite up to rounding of its entries.

    Entries are differences of numbers of the size `terms`, by default the largest entry.
    """
    matrix = matrix.astype(np.complex128 if np.iscomplexobj(matrix) else np.float64)
    size = len(matrix) * (float(np.abs(matrix).max()) if terms is None else terms)
    least = float(np.linalg.eigvalsh((matrix + matrix.conj().T) / 2)[0])
    assert least >= -8 * np.finfo(dtype).eps * size


@examples(80)
@given(
    operators,
    st.sampled_from(sorted(GEOMETRIES)),
    names,
    st.integers(3, 20),
    seeds,
    dtypes,
    few,
    few,
)
def test_every_geometry_of_every_operator(operator, geometry, name, n, seed, dtype, copies, near):
    X = rows(name, n, seed, dtype, copies, near)
    kernel = on_sphere(name).fit(X)
    gram = GEOMETRIES[geometry](POINTS[operator](kernel, X))
    # unit vectors up to a quarter circle from the mean: θ/sin θ is at most π/2
    assert_semidefinite(gram.toarray(), dtype, terms=(np.pi / 2) ** 2)


@examples(60)
@given(st.sampled_from(DEFINITE), st.integers(1, 20), seeds, dtypes, few, few)
def test_gram_matrices_are_positive_semidefinite(name, n, seed, dtype, copies, near):
    X = rows(name, n, seed, dtype, copies, near)
    assert_semidefinite(clone(KERNELS[name]).fit(X)(X), dtype)


@examples(30)
@given(
    st.sampled_from(sorted(CONDITIONAL)), st.sampled_from(["memory", "recompute"]), seeds, dtypes
)
def test_conditionally_definite_kernels_are_definite_once_centred(name, storage, seed, dtype):
    X = rows(name, 15, seed, dtype, copies=2)
    gram = TiledGram(clone(KERNELS[name]).fit(X), X, storage)
    terms = float(np.abs(gram.toarray()).max())
    assert_semidefinite(Centered(gram).toarray(), dtype, terms)


@examples(80)
@given(names, seeds, dtypes, few, few)
def test_distances_keep_the_triangle_inequality(name, seed, dtype, copies, near):
    X = rows(name, 12, seed, dtype, copies, near)
    kernel = on_sphere(name).fit(X)
    angles = geodesic_distances(X, kernel=kernel).astype(np.float64)
    eps = float(np.finfo(dtype).eps)
    # from a cosine, an angle near 0 has half of the digits
    slack = 64 * eps if isinstance(kernel, Radial) else 8 * np.sqrt(eps)
    np.testing.assert_allclose(angles, angles.T, rtol=0, atol=slack)
    np.testing.assert_allclose(np.diagonal(angles), 0, rtol=0, atol=slack)
    detours = angles[:, :, None] + angles[None]
    assert np.all(angles[:, None] <= detours + slack)
    cosines = np.clip(kernel(X).astype(np.float64), -1, 1)
    np.testing.assert_allclose(np.cos(angles), cosines, rtol=0, atol=64 * eps)


#: Tolerances of a mean over an operator.
MEANS = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-3}


def mean_of(points, weights):
    with warnings.catch_warnings():  # a few points may lie outside the hemisphere of the mean
        warnings.simplefilter("ignore", UserWarning)
        return karcher_mean(points, weights)


@examples(40)
@given(names, operators, seeds, dtypes)
def test_karcher_means_are_equivariant(name, operator, seed, dtype):
    n = 12
    X = rows(name, n, seed, dtype)
    rng = np.random.default_rng(seed)
    kernel, counts = on_sphere(name).fit(X), rng.integers(0, 4, n)
    counts[0] = 1
    gram = POINTS[operator](kernel, X)
    matrix = gram.toarray().astype(np.float64)
    tol = MEANS[np.dtype(dtype)]
    plain = mean_of(gram, counts)

    def assert_same_point(coefficients):
        difference = coefficients - plain.point
        assert np.sqrt(max(difference @ matrix @ difference, 0.0)) <= tol

    order = rng.permutation(n)
    permuted = mean_of(DenseGram(matrix[np.ix_(order, order)].astype(dtype)), counts[order])
    assert_same_point(permuted.point[np.argsort(order)])
    np.testing.assert_allclose(permuted.cosines, plain.cosines[order], rtol=0, atol=tol)

    again = rng.permutation(np.repeat(np.arange(n), counts))
    repeated = mean_of(DenseGram(matrix[np.ix_(again, again)].astype(dtype)), None)
    assert_same_point(np.bincount(again, repeated.point, minlength=n))
    assert repeated.variance == pytest.approx(plain.variance, abs=tol)

    Y = isometric_coordinates(gram).points
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    turn = rotation(Y.shape[1], seed)
    turned = mean_of(Y @ turn.T, counts).point
    np.testing.assert_allclose(turned, turn @ (plain.point @ Y), rtol=0, atol=tol)
