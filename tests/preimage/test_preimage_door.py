"""Input of `preimage`, and the method that it chooses."""

import numpy as np
import pytest
import scipy.sparse

from laws_preimage import cloud, expansions
from laws_sphere import INPUT_KINDS
from optional import optional
from orthodrome.kernels import Gaussian, Normalized, Polynomial
from orthodrome.preimage import preimage

pd = optional("pandas")

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
    "convert", [*INPUT_KINDS.values(), pd.DataFrame], ids=[*INPUT_KINDS, "frame"]
)
@pytest.mark.parametrize("method", ["fixed-point", "ridge"])
def test_kinds_of_input(convert, method):
    expected, before = preimage("gaussian", X, BETA, method=method).points, X.copy()
    points = preimage("gaussian", convert(X), np.asarray(BETA).tolist(), method=method).points
    np.testing.assert_allclose(points, expected, atol=1e-9)
    np.testing.assert_array_equal(X, before)


def with_nan(array):
    array = array.copy()
    array[0, 0] = np.nan
    return array


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"kernel": "polynomial", "method": "fixed-point"},
            "radial kernel.* got Polynomial",
        ),
        ({"kernel": "precomputed"}, "not a precomputed matrix"),
        ({"kernel": "nonsense"}, "Unknown kernel 'nonsense'"),
        ({"method": "newton"}, "method of preimage must be one of 'auto'"),
        ({"n_starts": 0}, "n_starts of preimage must be an integer >= 1"),
        ({"max_iter": 0}, "max_iter of preimage must be an integer >= 1"),
        ({"tol": 0.0}, "tol of preimage must be a finite number > 0"),
        ({"alpha": -1.0}, "alpha of preimage must be a finite number > 0"),
        ({"coefficients": np.ones((2, 3))}, "one column per row of X, 40; got 3"),
        ({"coefficients": np.ones(39)}, "one column per row of X, 40; got 39"),
        ({"coefficients": np.ones((1, 1, 40))}, "dim 3"),
        ({"coefficients": with_nan(BETA)}, "Input coefficients contains NaN"),
        ({"coefficients": 1j * BETA}, "Complex data not supported"),
        ({"X": with_nan(X)}, "Input X contains NaN"),
        ({"X": X[:, 0]}, "Expected 2D array"),
        ({"X": X[:0]}, "0 sample"),
        ({"method": "ridge", "memory_budget": "1KiB"}, "40 x 40 system.*1 KiB.*Raise it"),
        ({"method": "ridge", "memory_budget": "tiny"}, "memory_budget must be a number of bytes"),
        ({"X": scipy.sparse.csr_array(X), "method": "fixed-point"}, "needs dense X"),
        ({"kernel": Gaussian(sigma=-1.0)}, "sigma of Gaussian must be a finite number > 0"),
    ],
)
def test_invalid_input(arguments, message):
    given = {"kernel": "gaussian", "X": X, "coefficients": BETA, **arguments}
    with pytest.raises(ValueError, match=message):
        preimage(given.pop("kernel"), given.pop("X"), given.pop("coefficients"), **given)
