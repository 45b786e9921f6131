"""Input of kernels: accepted forms, and errors."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from laws_kernels import CASES
from orthodrome.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Embedded,
    Exponential,
    FromCallable,
    Gaussian,
    Laplacian,
    Linear,
    Log,
    Matern,
    Normalized,
    Polynomial,
    Power,
    Precomputed,
    Sigmoid,
    as_kernel,
)
from orthodrome.kernels.manifolds import profile_of
from orthodrome.preimage.fixed_point import domain_of

every_kernel = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
X = np.random.default_rng(0).normal(size=(6, 3))


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(), Linear()], ids=repr)
def test_sparse_data_with_64_bit_indices(kernel):
    X = np.round(np.random.default_rng(0).standard_normal((6, 4)))
    sparse = scipy.sparse.csr_array(X)
    sparse.indices, sparse.indptr = (a.astype(np.int64) for a in (sparse.indices, sparse.indptr))
    np.testing.assert_allclose(kernel.fit(sparse)(sparse), kernel.fit(X)(X), atol=1e-14)


def test_invalid_or_too_long_sparse_arrays_raise(monkeypatch):
    """SciPy would read outside of the array."""
    matrix = scipy.sparse.csr_array(np.eye(4))
    with monkeypatch.context() as patch:
        patch.setattr(type(matrix), "nnz", 2**31)
        with pytest.raises(ValueError, match=r"at most 2³¹ - 1 stored .*; got 2147483648"):
            Laplacian().prepare(matrix)
    matrix.indices[2] = 10**6
    with pytest.raises(ValueError, match="X of Gaussian is a damaged sparse array"):
        Gaussian(sigma=1.0).fit(matrix)


BAD_DATA = {
    "nan": ([[1.0, np.nan, 2.0]], "contains NaN"),
    "complex": (np.array([[1.0, 2j, 3.0]]), "Complex data not supported"),
    "strings": ([["a", "b", "c"]], "could not convert string to float"),
    "1-D": ([1.0, 2.0, 3.0], "Expected 2D array, got 1D array"),
    "3-D": (np.ones((3, 3, 3)), "Found array with dim 3"),
    "empty": (np.empty((0, 3)), r"Found array with 0 sample\(s\)"),
}


@every_kernel
def test_bad_data_raise(case):
    good = case.data(4)
    fitted = case.make().fit(good)
    for name, (bad, message) in BAD_DATA.items():
        if isinstance(case.kernel, Embedded) and name == "3-D":
            continue
        fit, new = case.make().fit, case.make()
        for use in (fit, new, fitted, lambda bad: fitted(good, bad), fitted.diag):
            with pytest.raises(ValueError, match=message):
                use(bad)
    for use in (fitted, lambda bad: fitted(good, bad), fitted.diag):
        with pytest.raises(ValueError, match=f"4 features, but {type(fitted).__name__} is expect"):
            use(np.ones((2, 4)))


LARGE = [(float, 1e200), (float, 1.7e308), (np.float32, 1e30)]
SMALL = [(float, 1e-170), (float, 1e-155), (np.float32, 1e-20)]


@pytest.mark.parametrize(
    "kernel",
    [
        *[Gaussian(1.0), Exponential("mean"), Gaussian("median"), RBF(), Power(), Log()],
        *[Linear(), Polynomial(), Sigmoid(), AdditiveChi2(), Normalized(Linear())],
    ],
    ids=repr,
)
def test_values_whose_squares_overflow_or_underflow_raise(kernel):
    X = np.array([[1.0, 0.5], [0.25, 1.0], [1.0, 1.0]])
    for dtype, size in LARGE:
        with pytest.raises(ValueError, match="rescale"):
            kernel.fit((size * X).astype(dtype))((size * X).astype(dtype))
    for dtype, size in SMALL if "Linear" in repr(kernel) else []:
        words = rf"so small, .* underflow in {np.dtype(dtype)}; rescale"
        with pytest.raises(ValueError, match=words):
            kernel.fit((size * X).astype(dtype))


# class, parameter, what it must be, what it is given; tests/hardening tries more values
def test_an_unfitted_kernel_with_a_rule_raises():
    for kernel in (Gaussian(), Normalized(Gaussian()), Embedded(np.abs), Matern(sigma="median")):
        with pytest.raises(NotFittedError, match=r"sigma='me.*call fit\(X\) first, or pass a num"):
            kernel(X)
    with pytest.raises(ValueError, match="gamma=None of RBF means 1 / n_features: call fit"):
        RBF().profile(1.0)


GRAM = Gaussian(1.0)(X)
ASKEW = GRAM + 0.5 * np.outer(np.eye(6)[4], np.eye(6)[1])
HUGE = np.array([[1e20, 0.0], [0.0, 1.0]])


def block_of(make):
    """A callable kernel whose blocks are made from their shape."""
    return FromCallable(lambda A, B: make((len(A), len(B))))


ERRORS = [
    (lambda: as_kernel("gausian"), r"Unknown kernel 'gausian'. Known names: .*gaussian, .*wave"),
    (lambda: as_kernel(Gaussian), r"kernel=Gaussian is a class; write Gaussian\(\)"),
    *[(lambda thing=thing: as_kernel(thing), "kernel must be a Kernel") for thing in (None, 3, [])],
    # parameters; tests/hardening tries more values
    (lambda: Matern(1e-301).fit(X), "nu of Matern must be a number >= .*, or infinity; got 1e-301"),
    (lambda: Power(2.1).fit(X), "beta of Power must be a finite number > 0 and <= 2; got 2.1"),
    # weights
    (lambda: Gaussian().fit(X, sample_weight=[1.0]), r"of Gaussian must have shape \(6,\)"),
    # values that do not fit a kernel
    (lambda: Chi2()([[1.0, 2], [3, -0.5]]), r"data passed to Chi2.*row 1, column 1 is -0.5"),
    (lambda: Polynomial(2.5, coef0=0.0)(X), "degree of Polynomial must be a whole number"),
    (lambda: Polynomial(10)(HUGE), "Polynomial overflows in float64; rescale"),
    # 3e102 - 3e102 is harmless; the cube of -3e102 - 3e102 is not
    (lambda: Polynomial(3, 1.0, -3e102)([[3e102**0.5], [-(3e102**0.5)]]), "Polynomial overflows"),
    (lambda: Normalized(Linear())([[1.0], [0.0]]), r"cannot normalise row 1: k\(x, x\) = 0 there"),
    (lambda: Normalized(Linear()).fit(X)(X[:1] * 1e-160), "row 0: .*rescale the data"),
    # functions
    (lambda: Embedded("log", Linear())(X), "function of Embedded must be callable; got 'log'"),
    (lambda: Embedded(lambda Z: Z[:-1], Linear())(X), "returned 5 rows for 6 samples"),
    (lambda: FromCallable("linear")(X), r"function of FromCallable must be callable\(X, Y\); got"),
    (lambda: FromCallable(lambda A, B: 1.0)(X), r"the whole block, shape \(6, 6\).*got \(\)"),
    (lambda: FromCallable(lambda A, B: A[:, :1] - B[:, :1].T).diag(X), "must be symmetric"),
    *[
        (lambda value=value: block_of(lambda shape: np.full(shape, value))(X), "not finite real")
        for value in (np.nan, 1j, "a", None)
    ],
    # matrices
    (lambda: Precomputed().fit(X), r"must be a square matrix; got shape \(6, 3\)"),
    (lambda: Precomputed().fit(ASKEW), r"must be symmetric; entries \(1, 4\) and \(4, 1\)"),
    (lambda: Precomputed()(GRAM, GRAM), "takes one matrix of kernel values, not two sets"),
    (lambda: Precomputed().fit(GRAM * 1e-310), "Gram matrix are so small, .* underflow"),
    (lambda: Normalized("precomputed").fit(GRAM), "cannot wrap 'precomputed'.*change the matrix"),
    # parameters of a kernel that is not an object
    (lambda: Normalized(np.dot).set_params(kernel__sigma=2.0), "cannot be set while kernel="),
    (lambda: Embedded(np.abs).set_params(kernel__wide=2.0), "Invalid parameter 'wide'"),
    # kernels that are not functions of a distance
    (lambda: profile_of(Linear()), "Linear is not a function of a distance"),
    (lambda: domain_of(Linear(), np.eye(3)), "Linear has no fixed point"),
]


@pytest.mark.parametrize(("use", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_errors(use, message):
    with pytest.raises((ValueError, TypeError), match=message):
        use()


def test_a_precomputed_matrix_of_zeros_does_not_underflow():
    assert not Precomputed().validate(np.zeros((3, 3))).any()
