"""Data of every kind and scale give the right answer or a clear error, never NaN."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from laws_decomposition import (
    assert_same,
    every_estimator,
    every_solver,
    held_out,
    suited,
    training,
    with_zeros,
)
from orthodrome import KernelPCA, KernelPGA
from orthodrome.kernels import (
    Gaussian,
    Log,
    Polynomial,
    Power,
)

K = 3


@pytest.mark.parametrize("kernel", ["gaussian", "linear", "cosine", "polynomial", "exponential"])
@every_estimator
def test_sparse_is_dense(Estimator, kernel):
    X, new = with_zeros(training()), with_zeros(held_out())
    kernel = suited(kernel, Estimator)
    dense = Estimator(K, kernel=kernel).fit(X)
    for convert in (scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.csc_array):
        sparse = Estimator(K, kernel=kernel).fit(convert(X))
        assert_same(sparse.embedding_, dense.embedding_)
        assert_same(sparse.transform(convert(new)), dense.transform(new))
        assert_same(sparse.transform(new), dense.transform(new))
        assert sparse.score(convert(new)) == pytest.approx(dense.score(new), rel=1e-8)


@every_estimator
def test_a_kernel_by_name_object_callable_and_matrix(Estimator):
    X, new = training(), held_out()
    kernel, unfitted = Gaussian().fit(X), Gaussian()
    expected = Estimator(K, kernel="gaussian").fit(X).transform(new)
    sigma = kernel.sigma_
    for given_kernel in (unfitted, Gaussian(sigma=sigma), lambda A, B: Gaussian(sigma=sigma)(A, B)):
        model = Estimator(K, kernel=given_kernel).fit(X)
        assert model.kernel is given_kernel
        assert_same(model.transform(new), expected, 1e-10)
    assert not hasattr(unfitted, "sigma_")
    matrix = Estimator(K, kernel="precomputed").fit(kernel(X))
    assert_same(matrix.transform(kernel(new, X)), expected, 1e-10)


@pytest.mark.parametrize("kernel", [Power(1.0), Power(2.0), Log(1.0), Log(2.0)])
@every_solver
def test_conditionally_definite_kernels(solver, kernel):
    """They are positive semidefinite once centred."""
    X = training()
    model = KernelPCA(K, kernel=kernel, **solver).fit(X)
    assert np.all(model.eigenvalues_ > 0)
    assert_same(model.transform(X), model.embedding_)
    assert KernelPCA(kernel=kernel).fit(X).explained_variance_ratio_.sum() == pytest.approx(1.0)
    if kernel.beta == 2.0 and isinstance(kernel, Power):  # -‖x - y‖² centres to 2<x, y>
        linear = KernelPCA(K, kernel="linear", **solver).fit(X)
        assert_same(model.embedding_, np.sqrt(2) * linear.embedding_)


@every_solver
@every_estimator
def test_huge_sigma(Estimator, solver):
    """Feature vectors that coincide to rounding give zeros and a warning."""
    X = training()
    for sigma, by in ((1e9, solver), (1e12, solver), (1e9, {"solver": "nystroem"})):
        with pytest.warns(UserWarning, match="All components are zero.*smaller scale"):
            model = Estimator(K, kernel=Gaussian(sigma=sigma), **by).fit(X)
        for zero in (model.embedding_, model.eigenvalues_, model.transform(X)):
            np.testing.assert_array_equal(zero, 0)
    # below that it tends to linear PCA
    wide = Estimator(K, kernel=Gaussian(sigma=1e4), **solver).fit(X)
    linear = KernelPCA(K, kernel="linear", **solver).fit(X)
    assert_same(wide.embedding_ * 1e4, linear.embedding_, 1e-3)


OVERFLOWS = [
    ("polynomial", 1e120, np.float64),
    (Polynomial(degree=10), 1e6, np.float32),
    ("gaussian", 1e160, np.float64),
]


@pytest.mark.parametrize("n", [60, 1100])  # one tile; several, in threads
@pytest.mark.parametrize(("kernel", "scale", "dtype"), OVERFLOWS)
@every_estimator
def test_overflow_is_a_clear_error(Estimator, kernel, scale, dtype, n):
    X = np.abs(training(n=n)) * scale
    with pytest.raises(ValueError, match=f"overflows? (in {dtype.__name__}|because).*rescale"):
        Estimator(K, kernel=kernel).fit(X.astype(dtype))


def test_sums_that_overflow_are_a_clear_error():
    message = r"overflow in float64; entry .* rescale"
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=message):
        KernelPCA(2, kernel="precomputed").fit(1e307 * np.eye(50))


@pytest.mark.filterwarnings("ignore:All components are zero:UserWarning")
@pytest.mark.filterwarnings("ignore:.*lie a quarter of a great circle:UserWarning")
@settings(max_examples=40, deadline=None)
@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 3)),
        # scales whose squares underflow are refused, which is another law
        elements=st.floats(-100, 100).map(lambda value: round(value, 9)),
    ),
    kernel=st.sampled_from(["gaussian", "exponential", "linear", "polynomial", "laplacian"]),
    k=st.one_of(st.none(), st.integers(1, 15), st.floats(0.01, 0.99)),
)
@every_estimator
def test_anything_finite_gives_something_finite(Estimator, X, kernel, k):
    if Estimator is KernelPGA and kernel == "linear":
        X = X + 200.0  # no row of zeros, which has no direction
    model = Estimator(k, kernel=suited(kernel, Estimator)).fit(X)
    own = "mean_" if Estimator is KernelPGA else "intercept_"
    for name in ("embedding_", "eigenvalues_", "dual_coef_", own):
        assert np.all(np.isfinite(getattr(model, name)))
    assert np.all(np.diff(model.eigenvalues_) <= 0)
    assert np.all(model.eigenvalues_ >= 0)
    assert model.explained_variance_ratio_.sum() <= 1 + 1e-6
    size = np.sqrt(np.abs(model.kernel_.diag(X)).max())
    np.testing.assert_allclose(
        model.transform(X), model.embedding_, rtol=0, atol=1e-5 * size + 1e-12
    )
