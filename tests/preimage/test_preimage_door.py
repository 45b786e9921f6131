"""Input of `preimage`, and the method that it chooses."""

import numpy as np
import pytest
import scipy.sparse

from laws_preimage import cloud, expansions
from orthodrome.kernels import Gaussian, Normalized, Polynomial
from orthodrome.preimage import preimage

X = cloud()
BETA = expansions("few", len(X))


def test_method_auto():
    for kernel, method in (
        ("gaussian", "fixed-point"),
        ("power", "fixed-point"),
        (Gaussian(sigma=2.0), "fixed-point"),
        ("polynomial", "ridge"),
        ("laplacian", "ridge"),
        (Normalized(Polynomial(2)), "ridge"),
        (lambda A, B: A @ B.T, "ridge"),
    ):
        assert preimage(kernel, X, BETA).method == method, kernel


def test_a_fitted_kernel_is_used_as_it_is():
    kernel = Gaussian().fit(10 * X)
    sigma = kernel.sigma_
    explicit = preimage(Gaussian(sigma=sigma), X, BETA).points
    np.testing.assert_allclose(preimage(kernel, X, BETA).points, explicit, atol=1e-5)
    assert kernel.sigma_ == sigma
    fresh = Gaussian()
    preimage(fresh, X, BETA)
    assert not hasattr(fresh, "sigma_")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"kernel": "polynomial", "method": "fixed-point"},
            "radial kernel.* got Polynomial",
        ),
        ({"kernel": "precomputed"}, "not a precomputed matrix"),
        ({"coefficients": np.ones((2, 3))}, "one column per row of X, 40; got 3"),
        ({"method": "ridge", "memory_budget": "1KiB"}, "40 x 40 system.*1 KiB.*Raise memory"),
        ({"X": scipy.sparse.csr_array(X), "method": "fixed-point"}, "needs dense X"),
    ],
)
def test_invalid_input(arguments, message):
    given = {"kernel": "gaussian", "X": X, "coefficients": BETA, **arguments}
    with pytest.raises(ValueError, match=message):
        preimage(given.pop("kernel"), given.pop("X"), given.pop("coefficients"), **given)
