"""scikit-learn's kernel names mean scikit-learn's kernels."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from orthodrome.kernels import (
    KERNELS,
    Chi2,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    as_kernel,
)

rng = np.random.default_rng(0)
X, Y = np.abs(rng.normal(size=(30, 4))), np.abs(rng.normal(size=(12, 4)))


@pytest.mark.parametrize("name", sorted(PAIRWISE_KERNEL_FUNCTIONS))
def test_every_name_with_its_defaults(name):
    kernel = as_kernel(name)
    for others in (None, Y):
        expected = pairwise_kernels(X, others, metric=name)
        np.testing.assert_allclose(kernel(X, others), expected, rtol=1e-12, atol=1e-12)


def test_the_registry_has_all_names_and_ours():
    ours = "gaussian exponential matern rational_quadratic spherical circular wave power log"
    assert set(KERNELS) >= {*PAIRWISE_KERNEL_FUNCTIONS, *ours.split(), "precomputed"}


@pytest.mark.parametrize(
    ("kernel", "name", "parameters"),
    [
        (
            Polynomial(degree=2, gamma=0.3, coef0=0.7),
            "poly",
            {"degree": 2, "gamma": 0.3, "coef0": 0.7},
        ),
        (Sigmoid(gamma=0.3, coef0=-0.2), "sigmoid", {"gamma": 0.3, "coef0": -0.2}),
        (Laplacian(gamma=2.0), "laplacian", {"gamma": 2.0}),
        (Chi2(gamma=0.2), "chi2", {"gamma": 0.2}),
        (Gaussian(sigma=2.0), "rbf", {"gamma": 0.125}),
    ],
)
def test_parameters_mean_the_same(kernel, name, parameters):
    expected = pairwise_kernels(X, Y, metric=name, **parameters)
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "process"),
    [
        (Gaussian(sigma=1.7), gp.RBF(1.7)),
        (Exponential(sigma=1.7), gp.Matern(1.7, nu=0.5)),
        (Matern(nu=0.8, sigma=1.7), gp.Matern(1.7, nu=0.8)),
        (Matern(nu=1.5, sigma=1.7), gp.Matern(1.7, nu=1.5)),
        (Matern(nu=2.0, sigma=1.7), gp.Matern(1.7, nu=2.0)),
        (Matern(nu=2.5, sigma=1.7), gp.Matern(1.7, nu=2.5)),
        (RationalQuadratic(alpha=0.6, sigma=1.7), gp.RationalQuadratic(1.7, alpha=0.6)),
    ],
)
def test_the_covariances_of_gaussian_processes(kernel, process):
    np.testing.assert_allclose(kernel(X, Y), process(X, Y), rtol=1e-10)


def test_zero_rows_have_cosine_zero_as_in_scikit_learn():
    Z = np.array([[0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_allclose(as_kernel("cosine")(Z), pairwise_kernels(Z, metric="cosine"))
    np.testing.assert_array_equal(as_kernel("cosine").diag(Z), [0.0, 1.0])
