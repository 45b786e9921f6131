"""Kernel PGA: from coordinates over the sphere back to inputs, beside slow oracles."""

import numpy as np
import pytest

from laws_decomposition import assert_same, held_out, training
from laws_preimage import climb, objective
from orthodrome import KernelPGA
from orthodrome.kernels import Exponential, Gaussian, Laplacian, Matern, RationalQuadratic

WEIGHTS = np.random.default_rng(61).integers(1, 4, size=60)
weighted_or_not = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])


def positive():
    return np.abs(training(n=60)), np.abs(held_out())


def expansion(pga, e):
    """Coefficients of Exp_μ(Σ e_q v_q) over the training points, for one row of coordinates."""
    length = np.linalg.norm(e)
    tangent = pga.dual_coef_ @ e
    return np.cos(length) * pga.mean_ + (np.sin(length) / length if length else 1) * tangent


@weighted_or_not
@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_all_components_return_the_training_data(sigma, weights):
    """To 1e-6 of the spread, where fixed points stop."""
    X = training(n=60)
    pga = KernelPGA(kernel=Gaussian(sigma=sigma)).fit(X, sample_weight=weights)
    assert_same(pga.inverse_transform(pga.embedding_), X, 1e-6)


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(),
        pytest.param(Matern(nu=2.5), marks=pytest.mark.slow),
        pytest.param(RationalQuadratic(), marks=pytest.mark.slow),
    ],
    ids=lambda k: type(k).__name__,
)
@weighted_or_not
def test_no_optimiser_finds_a_nearer_input(weights, kernel):
    """Σ β_n k(x_n, z) is as large as a derivative-free search from the same starts makes it."""
    X = training(n=60, d=2)
    pga = KernelPGA(2, kernel=kernel).fit(X, sample_weight=weights)
    E = np.vstack([pga.transform(held_out(m=3, d=2)), np.zeros(2), 2 * pga.embedding_[:1]])
    for e, z in zip(E, pga.inverse_transform(E), strict=True):
        beta = expansion(pga, e)
        assert objective(pga.kernel_, X, beta, z) >= climb(pga.kernel_, X, beta) - 1e-9


@pytest.mark.parametrize("kernel", [Gaussian(), Exponential(), Matern(nu=2.5)])
def test_coordinates_0_are_the_pre_image_of_the_mean(kernel):
    """Beside every point of a fine grid in the plane."""
    X = training(n=60, d=2)
    pga = KernelPGA(3, kernel=kernel).fit(X)
    z = pga.inverse_transform(np.zeros((1, 3)))
    low, high = X.min(axis=0), X.max(axis=0)
    axes = [np.linspace(a, b, 200) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    values = pga.kernel_(np.vstack([z, grid]), X) @ pga.mean_
    assert values[0] >= values[1:].max() - 1e-9
    spacing = (high - low) / 199
    assert np.all(np.abs(grid[np.argmax(values[1:])] - z[0]) <= spacing)


@pytest.mark.parametrize("radius", [1.0, 3.0])
@weighted_or_not
def test_directions_return(radius, weights):
    """The linear kernel: inputs are a linear function of the points of the sphere."""
    X, new = (radius * A / np.linalg.norm(A, axis=1, keepdims=True) for A in positive())
    pga = KernelPGA(kernel="linear").fit(X, sample_weight=weights)
    assert_same(pga.inverse_transform(pga.embedding_), X, 1e-4)
    assert_same(pga.inverse_transform(pga.transform(new)), new, 1e-4)


@weighted_or_not
def test_precomputed_is_data(weights):
    X, new = positive()
    kernel = Laplacian(gamma=0.1).fit(X)
    from_data = KernelPGA(4, kernel=kernel).fit(X, sample_weight=weights)
    matrix = KernelPGA(4, kernel="precomputed").fit(kernel(X), sample_weight=weights)
    Z = from_data.transform(new)
    assert_same(matrix.inverse_transform(Z, inputs=X), from_data.inverse_transform(Z), 1e-10)


def test_a_constant_length_is_divided_out():
    X, new = positive()
    kernel = Gaussian(sigma=3.0).fit(X)
    plain = KernelPGA(4, kernel="precomputed").fit(kernel(X))
    scaled = KernelPGA(4, kernel="precomputed").fit(4 * kernel(X))
    Z = plain.transform(kernel(new, X))
    assert_same(scaled.inverse_transform(Z, inputs=X), plain.inverse_transform(Z, inputs=X), 1e-8)
