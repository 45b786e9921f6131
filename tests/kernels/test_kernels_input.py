"""What kernels take, and what they say about what they do not take."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from laws_kernels import CASES
from optional import optional
from orthodrome.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    Embedded,
    Exponential,
    FromCallable,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Log,
    Matern,
    Normalized,
    Polynomial,
    Power,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
    as_kernel,
)
from orthodrome.kernels._profiles import profile_of
from orthodrome.preimage.domains import domain_of

pd = optional("pandas")

every_kernel = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())

# Forms of good input ------------------------------------------------------------------------------


def read_only(X, _folder):
    X = X.copy()
    X.setflags(write=False)
    return X


def memory_mapped(X, folder):
    np.save(folder / f"{len(X)}.npy", X)
    return np.load(folder / f"{len(X)}.npy", mmap_mode="r")


FORMS = {
    "read-only": read_only,
    "fortran": lambda X, _: np.asfortranarray(X),
    "strided": lambda X, _: np.repeat(X, 2, axis=1)[:, ::2],
    "memory-mapped": memory_mapped,
    "list": lambda X, _: X.tolist(),
    "dataframe": lambda X, _: pd.DataFrame(X, columns=list("abc")),
}


@every_kernel
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_of_the_data_gives_the_same(case, form, tmp_path):
    X, Y = case.data(20), case.data(8, 1)
    given_X = form(X, tmp_path)
    expected = case.make().fit(X)
    kernel = case.make().fit(given_X)
    np.testing.assert_allclose(kernel(given_X), expected(X), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(given_X), expected.diag(X), rtol=1e-13)
    given_Y = form(Y, tmp_path)
    np.testing.assert_allclose(kernel(given_X, given_Y), expected(X, Y), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(np.asarray(given_Y), Y)  # left as it was


def test_integers_become_float64():
    X = np.arange(6).reshape(3, 2)
    assert Gaussian(1.0)(X).dtype == np.float64
    np.testing.assert_array_equal(Gaussian(1.0)(X), Gaussian(1.0)(X.astype(float)))


def test_blocks_are_fresh_arrays():
    X = np.eye(3)
    for case in CASES.values():
        kernel = case.make().fit(X)
        kernel(X)[...] = np.nan
        assert np.isfinite(kernel(X)).all()


# Data ---------------------------------------------------------------------------------------------

BAD_DATA = {
    "nan": ([[1.0, np.nan, 2.0]], ValueError, "contains NaN"),
    "inf": ([[1.0, np.inf, 2.0]], ValueError, "contains infinity"),
    "complex": (np.array([[1.0, 2j, 3.0]]), ValueError, "Complex data not supported"),
    "strings": ([["a", "b", "c"]], ValueError, "could not convert string to float"),
    "1-D": ([1.0, 2.0, 3.0], ValueError, "Expected 2D array, got 1D array"),
    "0-D": (1.0, ValueError, "Expected 2D array, got scalar array"),
    "empty": (np.empty((0, 3)), ValueError, r"Found array with 0 sample\(s\)"),
    "no features": (np.empty((4, 0)), ValueError, r"Found array with 0 feature\(s\)"),
}


@every_kernel
@pytest.mark.parametrize(("X", "error", "message"), BAD_DATA.values(), ids=BAD_DATA.keys())
def test_bad_data_are_refused_in_fit_and_in_both_places_of_a_call(case, X, error, message):
    good = case.data(4)
    fitted = case.make().fit(good)
    for use in (case.make().fit, case.make(), fitted, lambda bad: fitted(good, bad), fitted.diag):
        with pytest.raises(error, match=message):
            use(X)


@every_kernel
def test_three_dimensions_are_refused_by_kernels_of_vectors(case):
    if not isinstance(case.kernel, Embedded):
        with pytest.raises(ValueError, match="Found array with dim 3"):
            case.make()(np.ones((3, 3, 3)))


@every_kernel
def test_another_number_of_features_is_refused(case):
    kernel, name = case.make().fit(case.data(5)), type(case.kernel).__name__
    for use in (kernel, lambda Y: kernel(case.data(5), Y), kernel.diag):
        with pytest.raises(ValueError, match=f"X has 4 features, but {name} is expecting 3"):
            use(np.ones((2, 4)))


@pytest.mark.parametrize(
    "kernel",
    [
        *[Gaussian(1.0), Exponential("mean"), Gaussian("median"), RBF(), Power(), Log()],
        *[Linear(), Polynomial(), Sigmoid(), AdditiveChi2(), Normalized(Linear())],
    ],
    ids=repr,
)
@pytest.mark.parametrize(("dtype", "size"), [(float, 1e200), (float, 1.7e308), (np.float32, 1e30)])
def test_values_whose_squares_overflow_are_refused(kernel, dtype, size):
    X = (size * np.array([[1.0, 0.5], [0.25, 1.0], [1.0, 1.0]])).astype(dtype)
    with pytest.raises(ValueError, match="rescale"):
        kernel.fit(X)(X)


@pytest.mark.parametrize("kernel", [Linear(), Normalized(Linear())], ids=repr)
@pytest.mark.parametrize(("dtype", "size"), [(float, 1e-170), (float, 1e-155), (np.float32, 1e-20)])
def test_values_whose_squares_underflow_are_refused(kernel, dtype, size):
    X = (size * np.array([[1.0, 0.5], [0.25, 1.0], [0.0, 0.0]])).astype(dtype)
    with pytest.raises(ValueError, match=rf"so small, .* underflow in {np.dtype(dtype)}; rescale"):
        kernel.fit(X)


@pytest.mark.parametrize("scale", [1e-320, 1e-170, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("sparse", [False, True])
def test_cosines_do_not_depend_on_lengths(scale, sparse):
    X = np.array([[1.0, 0.5, 0.0], [-0.25, 1.0, 0.0], [0.0, 0.0, 0.0], [3.0, 4.0, 1.0]])
    scaled = X * np.array([scale, 1.0, 1.0, scale])[:, None]
    found = Cosine()(scipy.sparse.csr_array(scaled) if sparse else scaled)
    np.testing.assert_allclose(found, Cosine()(X), atol=1e-3 if scale == 1e-320 else 1e-15)
    np.testing.assert_array_equal(Cosine().diag(scaled), [1, 1, 0, 1])


def test_a_row_too_short_to_be_normalised_is_named():
    kernel = Normalized(Linear()).fit(np.eye(3))
    with pytest.raises(ValueError, match=r"cannot normalise row 1: .*rescale the data"):
        kernel(np.eye(3) * [[1.0], [1e-160], [1.0]])


def test_a_polynomial_that_overflows_is_refused():
    X = np.array([[1e20, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="Polynomial overflows in float64; rescale"):
        Polynomial(degree=10)(X)
    with pytest.raises(ValueError, match="Polynomial overflows in float32; rescale"):
        Normalized(Polynomial(degree=10))((X / 1e10).astype(np.float32))


@pytest.mark.parametrize("kernel_class", [Chi2, AdditiveChi2])
def test_negative_values_are_refused_by_histogram_kernels(kernel_class):
    X = [[1.0, 2.0], [3.0, -0.5]]
    name = kernel_class.__name__
    with pytest.raises(
        ValueError, match=rf"Negative values in data passed to {name}.*row 1, col.* -0.5"
    ):
        kernel_class()(X)


# Parameters ---------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(6, 3))
NUMBERS = [0, -1, np.nan, np.inf, True, "banana", None, [1.0], 1j]


@pytest.mark.parametrize("kernel_class", [Gaussian, Exponential, Matern, RationalQuadratic])
@pytest.mark.parametrize("sigma", NUMBERS, ids=repr)
def test_sigma(kernel_class, sigma):
    message = f"sigma of {kernel_class.__name__} must be a .*number.*; got"
    with pytest.raises(ValueError, match=message):
        kernel_class(sigma=sigma).fit(X)
    error = NotFittedError if isinstance(sigma, str) else ValueError
    with pytest.raises(error, match="sigma"):
        kernel_class(sigma=sigma)(X)
    with pytest.raises(error, match="sigma"):
        kernel_class(sigma=sigma).profile(1.0)


# class, parameter, what it must be, what it is given
OUT_OF_RANGE = [
    (Matern, "nu", "a number > 0; got", [0, -1, np.nan, "1", None]),
    (RationalQuadratic, "alpha", "a finite number > 0; got", [0, -1, np.inf, None]),
    (Power, "beta", "a finite number > 0 and <= 2; got", [0, -1, 2.1, None]),
    (Log, "beta", "a finite number > 0 and <= 2; got", [0, 3, np.nan]),
    (Polynomial, "degree", "a finite number > 0; got", [0, -2, np.inf, "3"]),
    (Polynomial, "coef0", "a finite number; got", [np.nan, "1", None]),
    (Sigmoid, "coef0", "a finite number; got", [np.inf, None]),
    *[
        (kernel_class, "gamma", "a finite number > 0; got", [0, -1, np.nan, "scale"])
        for kernel_class in (RBF, Polynomial, Sigmoid, Laplacian, Chi2)
    ],
]


@pytest.mark.parametrize(("kernel_class", "name", "requirement", "values"), OUT_OF_RANGE)
def test_parameters_out_of_range(kernel_class, name, requirement, values):
    message = f"{name} of {kernel_class.__name__} must be {requirement}"
    for value in values:
        kernel = kernel_class(**{name: value})
        with pytest.raises(ValueError, match=message):
            kernel.fit(np.abs(X))
        if hasattr(kernel, "sigma"):
            kernel.set_params(sigma=1.0)
            with pytest.raises(ValueError, match=message):
                kernel.profile(1.0)
        with pytest.raises(ValueError, match=message):
            kernel(np.abs(X))


def test_a_fractional_degree_needs_products_that_are_not_negative():
    with pytest.raises(ValueError, match="degree of Polynomial must be a whole number"):
        Polynomial(degree=2.5, coef0=0.0)(X)
    assert np.isfinite(Polynomial(degree=2.5)(np.abs(X))).all()


def test_an_unfitted_kernel_with_a_rule_says_what_to_do():
    for kernel in (Gaussian(), Normalized(Gaussian()), Embedded(np.abs), Matern(sigma="median")):
        with pytest.raises(
            NotFittedError, match=r"sigma='me.*call fit\(X\) first, or give a number"
        ):
            kernel(X)
    with pytest.raises(ValueError, match="gamma=None of RBF means 1 / n_features: call fit"):
        RBF().profile(1.0)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"sample_weight of Gaussian must have shape \(6,\)"),
        ([1, 1, 1, 1, 1, -1], "sample_weight of Gaussian must not be negative; entry 5 is -1"),
        (np.zeros(6), "sample_weight of Gaussian must have a positive entry"),
        ([1, 1, 1, 1, 1, np.nan], "sample_weight contains NaN"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        Gaussian().fit(X, sample_weight=weights)


# Names, wrappers and callables --------------------------------------------------------------------


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        ValueError, match=r"Unknown kernel 'gausian'. Known names: .*gaussian, .*wave"
    ):
        as_kernel("gausian")


def test_a_class_instead_of_an_object():
    with pytest.raises(ValueError, match=r"kernel=Gaussian is a class; write Gaussian\(\)"):
        as_kernel(Gaussian)


@pytest.mark.parametrize("thing", [None, 3, ["gaussian"]])
def test_something_that_is_no_kernel(thing):
    with pytest.raises(ValueError, match="kernel must be a Kernel object, a name"):
        as_kernel(thing)
    with pytest.raises(ValueError, match="kernel of Normalized must be a Kernel object, a name"):
        Normalized(thing).fit(X)


def test_everything_that_is_a_kernel():
    kernel = Gaussian()
    assert as_kernel(kernel) is kernel
    assert isinstance(as_kernel(np.dot), FromCallable)
    assert all(isinstance(as_kernel(name), Kernel) for name in ("rbf", "precomputed", "matern"))


def test_normalized_names_the_row_it_cannot_normalise():
    with pytest.raises(ValueError, match=r"cannot normalise row 1: k\(x, x\) = 0 there"):
        Normalized(Linear())([[1.0, 1.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="cannot normalise row 0"):
        Normalized(Power())(X)
    fitted = Normalized(Linear()).fit(X)
    with pytest.raises(ValueError, match="cannot normalise row 0"):
        fitted(X, np.zeros((1, 3)))


def test_embedded_checks_what_its_function_returns():
    with pytest.raises(ValueError, match="function of Embedded must be callable; got 'log'"):
        Embedded("log", Linear())(X)
    with pytest.raises(ValueError, match="returned 5 rows for 6 samples"):
        Embedded(lambda Z: Z[:-1], Linear())(X)
    with pytest.raises(ValueError, match="contains NaN"):
        Embedded(lambda Z: Z * np.nan, Linear())(X)
    hidden, dates = np.ma.masked_greater(X, 0.5), np.full((3, 2), np.datetime64("2020"))
    for given, words in ((hidden, "masked"), (dates, "datetime"), ([[10**400]], "beyond")):
        with pytest.raises(ValueError, match=f"X of Embedded .*{words}"):
            Embedded(np.abs, Linear())(given)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: 1.0, r"must return the whole block, shape \(6, 6\).*got \(\)"),
        (lambda A, B: np.ones(len(A)), r"got \(6,\)"),
        (lambda A, B: np.ones((len(A) + 1, len(B))), r"got \(7, 6\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "not finite real numbers"),
        (lambda A, B: np.full((len(A), len(B)), 1j), "not finite real numbers"),
        (lambda A, B: np.full((len(A), len(B)), "a"), "not finite real numbers"),
        (lambda A, B: np.full((len(A), len(B)), None), "not finite real numbers"),
        (lambda A, B: np.ma.masked_all((len(A), len(B))), "callable kernel has masked entries"),
    ],
)
def test_a_callable_must_return_a_block_of_numbers(function, message):
    with pytest.raises(ValueError, match=message):
        FromCallable(function)(X)


def test_a_callable_that_writes_into_its_arguments_changes_nothing():
    def careless(A, B):
        block = A @ B.T
        A[...] = B[...] = 9
        return block

    given, new = X.copy(), X[:2].copy()
    fitted = FromCallable(careless).fit(given)
    np.testing.assert_array_equal(fitted(given, new), X @ X[:2].T)
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(new, X[:2])


def test_an_error_inside_a_callable_comes_through():
    def function(A, B):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        FromCallable(function)(X)


# Precomputed --------------------------------------------------------------------------------------

GRAM = Gaussian(1.0)(X)


def test_precomputed_returns_what_it_is_given():
    kernel = Precomputed().fit(GRAM)
    np.testing.assert_array_equal(kernel(GRAM), GRAM)
    np.testing.assert_array_equal(kernel(GRAM[:2]), GRAM[:2])
    np.testing.assert_array_equal(kernel.diag(GRAM), np.diagonal(GRAM))
    assert kernel(GRAM.astype(np.float32)).dtype == np.float32


def test_precomputed_must_be_square_symmetric_and_alone():
    with pytest.raises(ValueError, match=r"must be a square matrix; got shape \(6, 3\)"):
        Precomputed().fit(X)
    askew = GRAM.copy()
    askew[4, 1] += 0.5
    with pytest.raises(ValueError, match=r"must be symmetric; entries \(1, 4\) and \(4, 1\)"):
        Precomputed().fit(askew)
    with pytest.raises(ValueError, match="takes one matrix of kernel values, not two sets"):
        Precomputed()(GRAM, GRAM)
    with pytest.raises(ValueError, match="X has 5 features, but Precomputed is expecting 6"):
        Precomputed().fit(GRAM)(GRAM[:, :5])
    with pytest.raises(ValueError, match="contains NaN"):
        Precomputed().fit(np.full((2, 2), np.nan))
    with pytest.raises(TypeError, match="Sparse data was passed"):
        Precomputed().fit(scipy.sparse.eye_array(3, format="csr"))


# Wrappers and callables -----------------------------------------------------------------------


@pytest.mark.parametrize("wrapper", [Normalized("precomputed"), Embedded(np.abs, "precomputed")])
def test_a_matrix_cannot_be_wrapped(wrapper):
    with pytest.raises(ValueError, match=r"cannot wrap 'precomputed'.*change the matrix itself"):
        wrapper.fit(np.eye(3))


@pytest.mark.parametrize("wrapper", [Normalized("gaussian"), Embedded(np.abs)])
def test_parameters_of_a_name_inside_a_wrapper(wrapper):
    with pytest.raises(ValueError, match=r"Write kernel=Gaussian\(\) to begin with"):
        wrapper.set_params(kernel__sigma=2.0)


def test_new_parameters_are_not_answered_with_old_ones():
    X = np.arange(4.0)[:, None]
    for kernel in (Gaussian(1.0).fit(X), Gaussian("mean").fit(X)):
        kernel.set_params(sigma=5.0)
        np.testing.assert_allclose(kernel(X), Gaussian(5.0)(X))
    fractional = Polynomial(degree=2).fit(X).set_params(degree=2.5).fit(X)
    assert not fractional.positive_definite
    assert fractional.set_params(degree=2).fit(X).positive_definite


def test_a_callable_may_return_a_sparse_block():
    def linear(X, Y):
        return scipy.sparse.csr_array(X @ Y.T)

    X = np.random.default_rng(0).standard_normal((20, 3))
    np.testing.assert_allclose(FromCallable(linear)(X), X @ X.T)


def test_a_callable_that_is_not_symmetric_is_found_out():
    def lopsided(X, Y):
        return X[:, :1] - Y[:, :1].T

    with pytest.raises(ValueError, match="must be symmetric"):
        FromCallable(lopsided).diag(np.arange(6.0)[:, None])


def test_overflow_of_negative_products_is_seen_too():
    with pytest.raises(ValueError, match="so large that Polynomial overflows"):
        # 3e102 - 3e102 is harmless; the cube of -3e102 - 3e102 is not
        Polynomial(3, 1.0, -3e102)(np.sqrt(3e102) * np.array([[1.0], [-1.0]]))


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(), Linear()], ids=repr)
def test_sparse_data_with_64_bit_indices(kernel):
    X = np.round(np.random.default_rng(0).standard_normal((6, 4)))
    sparse = scipy.sparse.csr_array(X)
    sparse.indices, sparse.indptr = (a.astype(np.int64) for a in (sparse.indices, sparse.indptr))
    np.testing.assert_allclose(kernel.fit(sparse)(sparse), kernel.fit(X)(X), atol=1e-14)


def test_a_damaged_sparse_array_is_refused():
    """An index outside would be read from memory that belongs to others."""
    X = scipy.sparse.csr_array(np.eye(4))
    X.indices[2] = 10**6
    with pytest.raises(ValueError, match="X of Gaussian is a damaged sparse array"):
        Gaussian(sigma=1.0).fit(X)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Polynomial(coef0=10**400),
            r"coef0 of Polynomial must be a finite number; got 10+",
        ),
        (lambda: Matern(sigma=1.0, nu=1e-301), r"nu of Matern must be at least .*; got 1e-301"),
        (lambda: FromCallable("linear"), r"function of FromCallable must be callable\(X, Y\); got"),
    ],
)
def test_parameters_that_no_kernel_has(make, words):
    with pytest.raises(ValueError, match=words):
        make()(np.eye(3), np.eye(3))


def test_products_without_a_buffer():
    kernel = Linear()
    a, b = (kernel.prepare(np.arange(6.0).reshape(n, -1)) for n in (3, 3))
    np.testing.assert_array_equal(kernel.evaluate(a, b), a.coordinates @ b.coordinates.T)


def test_more_entries_than_32_bits_can_count_are_refused(monkeypatch):
    matrix = scipy.sparse.csr_array(np.eye(3))
    monkeypatch.setattr(type(matrix), "nnz", 2**31)
    with pytest.raises(
        ValueError, match=r"Laplacian takes at most 2³¹ - 1 stored .*; got 2147483648"
    ):
        Laplacian().prepare(matrix)


def test_only_functions_of_a_distance_have_a_profile_and_a_fixed_point():
    with pytest.raises(TypeError, match="Linear is no function of a distance"):
        profile_of(Linear())
    with pytest.raises(TypeError, match="Linear has no fixed point"):
        domain_of(Linear(), np.eye(3))
