"""Data of every kind and scale give the right answer or a clear error, never NaN."""

import numpy as np
import pytest

from laws_decomposition import assert_same, every_estimator, every_solver, training
from orthodrome import KernelPCA
from orthodrome.kernels import Gaussian, Log, Polynomial, Power

K = 3


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
