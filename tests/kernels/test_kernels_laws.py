"""Laws of all kernels, against slow oracles; see laws_kernels.CASES."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from laws_kernels import CASES, DTYPES, RADIAL, tolerance
from laws_product import kernel_classes
from orthodrome.kernels import (
    Circular,
    FromCallable,
    Gaussian,
    Linear,
    Normalized,
    Polynomial,
    Spherical,
    Wave,
)
from orthodrome.kernels.base import TILE
from orthodrome.kernels.manifolds import DistanceGaussian, ShapeKernel

every_kernel = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
every_radial = pytest.mark.parametrize("case", RADIAL.values(), ids=RADIAL.keys())
both_dtypes = pytest.mark.parametrize("dtype", DTYPES)


def assert_close(actual, expected, dtype=np.float64):
    """To the tolerance of the precision, relative to the largest value of the block."""
    scale = max(1.0, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance(dtype) * scale)


@every_kernel
@both_dtypes
def test_blocks_and_diagonals_equal_the_oracle(case, dtype):
    X, Y = case.data(40, 0, dtype), case.data(6, 1, dtype)
    kernel, fitted = case.make(), case.make().fit(case.data(30, 2, dtype))
    gram, block, diagonal = fitted(X), kernel(X, Y), kernel.diag(X)
    assert block.dtype == gram.dtype == diagonal.dtype == dtype
    assert_close(block[:9], case.block(X[:9], Y), dtype)
    assert_close(fitted(X, Y), block, dtype)
    np.testing.assert_array_equal(gram, gram.T)
    assert_close(gram, fitted(X, X), dtype)
    assert_close(kernel(Y, X), block.T, dtype)
    assert_close(diagonal, np.diagonal(kernel(X)), dtype)
    assert_close(diagonal[:5], np.diagonal(case.block(X[:5], X[:5])), dtype)
    assert_close(case.make()(X[:1]), case.block(X[:1], X[:1]), dtype)
    if fitted.unit_norm:
        np.testing.assert_array_equal(diagonal, 1.0)
    else:
        assert np.ptp(diagonal) > 0 or diagonal[0] != 1
    mixed = case.make()(X[:9], Y.astype(np.float64))  # as accurate as the coarser side
    assert mixed.dtype == np.float64
    assert_close(mixed, case.block(X[:9], Y), dtype)


@every_kernel
def test_blocks_of_several_tiles(case):
    X, Y = case.data(TILE + 5, 0), case.data(TILE + 9, 1)
    kernel = case.make().fit(X)
    rows, columns = [0, 3, TILE - 1, TILE, TILE + 4], [1, TILE - 1, TILE, TILE + 8]
    assert_close(kernel(X, Y)[np.ix_(rows, columns)], case.block(X[rows], Y[columns]))
    gram = kernel(X)
    assert_close(gram[np.ix_(rows, rows)], case.block(X[rows], X[rows]))
    np.testing.assert_array_equal(gram, gram.T)


def smallest_eigenvalue(gram):
    """Relative to the largest."""
    values = np.linalg.eigvalsh(gram)
    return values[0] / max(abs(values[-1]), abs(values[0]))


LIMITED = [(Spherical, 3), (Circular, 2), (Wave, 3)]


@pytest.mark.parametrize(("kernel_class", "limit"), LIMITED)
@pytest.mark.parametrize("n_features", range(1, 7))
def test_definiteness_by_dimension(kernel_class, limit, n_features):
    rng = np.random.default_rng(n_features)
    points = rng.normal(size=(80, n_features))
    points[40:] = np.round(2 * points[40:])  # lattice points too, some of them equal
    kernel = kernel_class(sigma=0.9)
    assert kernel.positive_definite is False  # before fit nothing is promised
    kernel.fit(points)
    assert kernel.positive_definite is (n_features <= limit)
    if kernel.positive_definite:
        assert smallest_eigenvalue(kernel(points)) > -80 * np.finfo(float).eps


@pytest.mark.parametrize(("degree", "coef0"), [(2, 1.0), (2.5, 1.0), (3, -1.0)])
def test_definiteness_of_polynomials(degree, coef0):
    X = 2 + np.abs(np.random.default_rng(0).normal(size=(10, 3)))
    for kernel in (Polynomial(degree, 1.0, coef0), Normalized(Polynomial(degree, 1.0, coef0))):
        assert kernel.fit(X).positive_definite == (degree == 2)


@every_kernel
def test_parameter_objects(case):
    X, kernel = case.data(8), case.make()
    parameters = kernel.get_params(deep=False)
    assert repr(kernel).startswith(type(kernel).__name__)
    assert repr(clone(kernel)) == repr(kernel)
    rebuilt, changed = (type(kernel)(**parameters) for _ in range(2))
    changed.set_params(**parameters)
    fitted = case.make()
    assert not fitted.__sklearn_is_fitted__()
    assert fitted.fit(X) is fitted
    assert fitted.__sklearn_is_fitted__()
    assert not clone(fitted).__sklearn_is_fitted__()
    for twin in (rebuilt, changed, clone(fitted), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(twin(X), kernel(X))
    for y in (np.ones(8), ["a"] * 8):
        with pytest.raises(TypeError, match=rf"{type(kernel).__name__}.fit takes no y; pass wei"):
            kernel.fit(X, y)
    assert kernel.fit(X, None, sample_weight=np.ones(8)) is kernel  # as scikit-learn calls it


def thinned(X):
    """About a third of the entries 0, but the first column none, and two equal rows."""
    X = np.where(np.abs(X) > 0.4, X, 0)
    X[:, 0] = 1
    X[4] = X[5]
    return X


@every_kernel
@both_dtypes
def test_sparse_equals_dense(case, dtype):
    X, Y = (thinned(case.data(n, n, dtype)) for n in (30, 11))
    kernel, by_dense = case.make(), case.make().fit(X)
    gram, block = kernel(X), kernel(X, Y)
    for container in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        sparse_X, sparse_Y = container(X), container(Y)
        if not kernel.accepts_sparse:
            with pytest.raises(TypeError, match="Sparse data was passed"):
                kernel(sparse_X)
            continue
        by_sparse = case.make().fit(sparse_X)
        assert kernel(sparse_X).dtype == dtype
        assert_close(kernel(sparse_X), gram, dtype)
        assert_close(kernel.diag(sparse_X), kernel.diag(X), dtype)
        for left, right in [(sparse_X, sparse_Y), (sparse_X, Y), (X, sparse_Y)]:
            for each in (kernel, by_dense, by_sparse):
                assert_close(each(left, right), block, dtype)


@every_radial
@both_dtypes
def test_duplicates_are_at_distance_zero_exactly(case, dtype):
    X = case.data(TILE + 20, 0, dtype) + dtype(3)
    X[TILE + 7] = X[2]
    X[5] = X[3]
    kernel = case.make().fit(X)
    at_zero = float(kernel.profile(0.0))
    assert at_zero == (1.0 if kernel.unit_norm else 0.0)
    for gram in (kernel(X), kernel(X, X)):
        np.testing.assert_array_equal(np.diagonal(gram), at_zero)
        assert gram[TILE + 7, 2] == gram[2, TILE + 7] == gram[5, 3] == at_zero


@pytest.mark.parametrize("wrap", [Normalized, lambda kernel: Normalized(Normalized(kernel))])
def test_wrappers_inherit_the_flags_of_the_inner_kernel(wrap):
    single = wrap(FromCallable(lambda A, B: A @ B.T + 100)).fit(np.ones((4, 2)))
    assert not single.threadsafe
    assert wrap(Linear()).threadsafe
    assert wrap(Linear()).accepts_sparse
    assert not wrap(CASES["chi2"].make()).accepts_sparse


@pytest.mark.parametrize("rule", ["mean", "median"])
def test_sparse_bandwidth_equals_dense(rule):
    X = thinned(np.random.default_rng(0).normal(size=(40, 6)))
    for w in (None, np.arange(40.0)):
        sparse, dense = (
            Gaussian(rule).fit(data, sample_weight=w) for data in (scipy.sparse.csr_array(X), X)
        )
        assert sparse.sigma_ == pytest.approx(dense.sigma_, rel=1e-12)


def test_every_kernel_class_has_a_case():
    """Those of shapes and matrices are in test_kernels_shapes.py."""
    vectors = {
        each for each in kernel_classes() if not issubclass(each, (ShapeKernel, DistanceGaussian))
    }
    assert vectors == {type(case.kernel) for case in CASES.values()}
