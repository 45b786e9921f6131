"""Back from coordinates to inputs."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from laws_decomposition import assert_same, every_estimator, held_out, positive, suited, training
from laws_preimage import climb, objective
from orthodrome import KernelPCA, KernelPGA, RobustKernelPCA
from orthodrome.kernels import (
    Embedded,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
    RationalQuadratic,
)

every_decomposition = pytest.mark.parametrize("Estimator", [KernelPCA, KernelPGA, RobustKernelPCA])
WEIGHTS = np.random.default_rng(61).integers(1, 4, size=60)
weighted_or_not = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])


def noisy_circle(n=150, noise=0.15):
    rng = np.random.default_rng(41)
    angles = rng.uniform(0, 2 * np.pi, n)
    clean = np.column_stack([np.cos(angles), np.sin(angles)])
    return clean, clean + noise * rng.standard_normal(clean.shape)


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.6), Matern(2.5, 0.8), RationalQuadratic(1.0, 0.6), Exponential(1.0)]
)
@every_estimator
def test_a_noisy_circle_is_denoised(Estimator, kernel):
    clean, noisy = noisy_circle()
    model = Estimator(4, kernel=kernel).fit(noisy)
    back = model.inverse_transform(model.transform(noisy))
    off_circle = [np.mean((np.linalg.norm(Z, axis=1) - 1) ** 2) for Z in (back, noisy)]
    assert off_circle[0] < 0.5 * off_circle[1]
    assert np.mean((back - clean) ** 2) < np.mean((noisy - clean) ** 2)


@pytest.mark.parametrize("radius", [1.0, 3.0])
@weighted_or_not
def test_directions_return(radius, weights):
    """With the linear kernel inputs are a linear function of points of the sphere."""
    X, new = (radius * A / np.linalg.norm(A, axis=1, keepdims=True) for A in positive(60))
    pga = KernelPGA(kernel="linear").fit(X, sample_weight=weights)
    assert_same(pga.inverse_transform(pga.embedding_), X, 1e-4)
    assert_same(pga.inverse_transform(pga.transform(new)), new, 1e-4)


def flattened(arrays):
    return arrays.reshape(len(arrays), -1)


@every_estimator
def test_inputs_of_three_dimensions_keep_their_shape(Estimator):
    frames = 2 + np.random.default_rng(0).standard_normal((40, 3, 2))
    frames /= np.linalg.norm(frames, axis=(1, 2), keepdims=True)
    model = Estimator(kernel=Embedded(flattened, "linear"), inverse_alpha=1e-12).fit(frames)
    np.testing.assert_allclose(model.inverse_transform(model.embedding_), frames, atol=1e-6)


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
    E = np.vstack([pga.transform(held_out(m=1, d=2)), np.zeros(2), 2 * pga.embedding_[:1]])
    for e, z in zip(E, pga.inverse_transform(E), strict=True):
        length = np.linalg.norm(e)  # β: coefficients of Exp_μ(Σ e_q v_q)
        stretch = np.sin(length) / length if length else 1
        beta = np.cos(length) * pga.mean_ + stretch * (pga.dual_coef_ @ e)
        assert objective(pga.kernel_, X, beta, z) >= climb(pga.kernel_, X, beta) - 1e-9


def test_ridge_shrinks():
    X = training()
    models = [KernelPCA(3, kernel="linear", inverse_alpha=a).fit(X) for a in (1.0, 1e-6)]
    center = X.mean(axis=0)
    size = [np.linalg.norm(p.inverse_transform(p.embedding_) - center) for p in models]
    assert 0.3 * size[1] < size[0] < 0.6 * size[1]


@pytest.mark.parametrize("kernel", [Polynomial(degree=2), Laplacian(gamma=0.1)], ids=repr)
@weighted_or_not
@every_estimator
def test_precomputed_needs_the_inputs(Estimator, kernel, weights):
    X, new = positive(60)
    kernel = suited(kernel, Estimator).fit(X)
    ours = Estimator(4, kernel="precomputed").fit(kernel(X), sample_weight=weights)
    from_data = Estimator(4, kernel=kernel).fit(X, sample_weight=weights)
    Z = ours.transform(kernel(new, X))
    expected = from_data.inverse_transform(Z)
    tol = 1e-10 if isinstance(kernel, Laplacian) else 1e-8
    assert_same(ours.inverse_transform(Z, inputs=X), expected, tol)
    scaled = Estimator(4, kernel="precomputed").fit(4 * kernel(X), sample_weight=weights)
    Z = Z if Estimator is KernelPGA else 2 * Z
    assert_same(scaled.inverse_transform(Z, inputs=X), expected)
    with pytest.raises(ValueError, match=r"inverse_transform\(Z, inputs=X_train\)"):
        ours.inverse_transform(Z)
    with pytest.raises(ValueError, match="one row per training sample, 60; got 3"):
        ours.inverse_transform(Z, inputs=X[:3])
    with pytest.raises(ValueError, match="Input inputs contains NaN"):
        ours.inverse_transform(Z, inputs=np.full_like(X, np.nan))
    with pytest.raises(ValueError, match="inputs is only for kernel='precomputed'"):
        from_data.inverse_transform(Z, inputs=X)


BAD = {
    "few": (np.zeros((2, 1)), "needs 2 coordinates .* got 1"),
    "nan": ([[np.nan] * 2], "NaN"),
    "texts": ([["a", "b"]], "X of OWNER must hold numbers"),
}


@pytest.mark.parametrize(("given", "message"), BAD.values(), ids=BAD)
@every_decomposition
def test_bad_coordinates(Estimator, given, message):
    model = Estimator(2, kernel=Gaussian(0.6)).fit(noisy_circle(20)[0])
    with pytest.raises(ValueError, match=message.replace("OWNER", Estimator.__name__)):
        model.inverse_transform(given)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [Gaussian(0.6), Polynomial(degree=2)], ids=["radial", "ridge"])
@every_decomposition
def test_huge_coordinates_have_an_input_or_are_refused(Estimator, kernel, dtype):
    model = Estimator(2, kernel=kernel).fit(noisy_circle(40)[0].astype(dtype))
    largest = float(np.finfo(dtype).max)
    for size in (largest**0.4, largest**0.8, 0.9 * largest):
        refusal, found = "", np.zeros(1)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found = model.inverse_transform(np.array([[0.1, 0.2], [size, -size]], dtype))
        except ValueError as error:
            refusal = str(error)
        assert np.all(np.isfinite(found))
        assert not refusal or re.search("row 1 (of X are so|overflows)", refusal)
