"""Back from coordinates to inputs."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from laws_decomposition import assert_same, every_estimator, held_out, suited, training, with_zeros
from orthodrome import KernelPCA, KernelPGA, RobustKernelPCA
from orthodrome.kernels import (
    Embedded,
    Exponential,
    Gaussian,
    Matern,
    Polynomial,
    RationalQuadratic,
)


def noisy_circle(n=300, noise=0.15):
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


@pytest.mark.parametrize("kernel", ["gaussian", Polynomial(degree=2), "linear"])
@every_estimator
def test_noisy_digits_are_denoised(Estimator, kernel):
    images = load_digits().data / 16
    train, clean = images[:800], images[800:900]
    noise = 0.25 * np.random.default_rng(42).standard_normal(clean.shape)
    model = Estimator(24, kernel=suited(kernel, Estimator), random_state=0).fit(train)
    back = model.inverse_transform(model.transform(clean + noise))
    assert np.mean((back - clean) ** 2) < 0.6 * np.mean(noise**2)


@every_estimator
def test_all_components_return_the_training_data(Estimator):
    X = training(n=40)
    model = Estimator(kernel="gaussian").fit(X)
    assert_same(model.inverse_transform(model.embedding_), X, 1e-3)


def test_polynomial_is_nearly_exact_where_it_can_be():
    X = training()
    model = KernelPCA(kernel=Polynomial(degree=2)).fit(X)
    new = held_out()
    assert_same(model.inverse_transform(model.transform(new)), new, 1e-3)


def test_the_mean_goes_to_the_mean():
    X = training()
    for weights in (None, np.arange(len(X)) % 3):
        model = KernelPCA(3, kernel="linear").fit(X, sample_weight=weights)
        expected = np.average(X, axis=0, weights=weights)
        np.testing.assert_allclose(model.inverse_transform(np.zeros((1, 3)))[0], expected)


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
@every_estimator
def test_float32(Estimator, kernel):
    X = training(dtype=np.float32)
    kernel = suited(kernel, Estimator)
    model = Estimator(4, kernel=kernel).fit(X)
    exact = Estimator(4, kernel=kernel).fit(X.astype(np.float64))
    new = held_out(dtype=np.float32)
    back = model.inverse_transform(model.transform(new))
    assert back.dtype == np.float32
    expected = exact.inverse_transform(exact.transform(new.astype(np.float64)))
    assert_same(back, expected, 1e-2)


@every_estimator
def test_precomputed_needs_the_inputs(Estimator):
    X, new = training(), held_out()
    kernel = suited(Polynomial(degree=2), Estimator).fit(X)
    ours = Estimator(4, kernel="precomputed").fit(kernel(X))
    Z = ours.transform(kernel(new, X))
    with pytest.raises(ValueError, match=r"inverse_transform\(Z, inputs=X_train\)"):
        ours.inverse_transform(Z)
    with pytest.raises(ValueError, match="one row per training sample, 120; got 3"):
        ours.inverse_transform(Z, inputs=X[:3])
    with pytest.raises(ValueError, match="Input inputs contains NaN"):
        ours.inverse_transform(Z, inputs=np.full_like(X, np.nan))
    from_data = Estimator(4, kernel=kernel).fit(X)
    with pytest.raises(ValueError, match="inputs is only for kernel='precomputed'"):
        from_data.inverse_transform(Z, inputs=X)
    assert_same(ours.inverse_transform(Z, inputs=X), from_data.inverse_transform(Z))


@pytest.mark.parametrize("n_coordinates", [1, 5])
@every_estimator
def test_wrong_number_of_coordinates(Estimator, n_coordinates):
    model = Estimator(3).fit(training())
    with pytest.raises(ValueError, match=f"takes 3 coordinates .* got {n_coordinates}"):
        model.inverse_transform(np.zeros((2, n_coordinates)))


@pytest.mark.parametrize("bad", [[[np.nan] * 3], [[np.inf] * 3], [0.0] * 3, np.array([[1j] * 3])])
@every_estimator
def test_bad_coordinates(Estimator, bad):
    with pytest.raises(ValueError):  # noqa: PT011  # scikit-learn's own messages
        Estimator(3).fit(training()).inverse_transform(bad)


@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
@every_estimator
def test_sparse_training_data(Estimator, kernel):
    X = with_zeros(training())
    model = Estimator(4, kernel=suited(kernel, Estimator)).fit(scipy.sparse.csr_array(X))
    back = model.inverse_transform(model.transform(scipy.sparse.csr_array(X)))
    assert isinstance(back, np.ndarray)
    variance = np.mean((X - X.mean(axis=0)) ** 2)
    assert np.mean((back - X) ** 2) < 0.5 * variance


def test_ridge_shrinks():
    X = training()
    model = KernelPCA(3, kernel="linear", inverse_alpha=1.0).fit(X)
    free = KernelPCA(3, kernel="linear").fit(X)
    center = X.mean(axis=0)
    size = [np.linalg.norm(p.inverse_transform(p.embedding_) - center) for p in (model, free)]
    assert 0.3 * size[1] < size[0] < 0.6 * size[1]


@every_estimator
def test_the_result_of_fit_transform_is_the_callers(Estimator):
    X = np.abs(training())
    model = Estimator(3, kernel=suited("linear", Estimator))
    Z = model.fit_transform(X)
    expected = model.inverse_transform(Z)
    unchanged = Z.copy()
    Z[:] = 0
    np.testing.assert_array_equal(model.inverse_transform(unchanged), expected)


def flattened(arrays):
    return arrays.reshape(len(arrays), -1)


@every_estimator
def test_inputs_of_three_dimensions_keep_their_shape(Estimator):
    frames = 2 + np.random.default_rng(0).standard_normal((40, 3, 2))
    frames /= np.linalg.norm(frames, axis=(1, 2), keepdims=True)
    model = Estimator(kernel=Embedded(flattened, "linear"), inverse_alpha=1e-12).fit(frames)
    back = model.inverse_transform(model.embedding_)
    np.testing.assert_allclose(back, frames, atol=1e-6)


@every_estimator
def test_the_training_data_are_the_estimators_own(Estimator):
    X = np.random.default_rng(0).standard_normal((40, 3))
    model = Estimator(2).fit(X)
    new = X[:5].copy()
    before = model.transform(new)
    X += 1
    np.testing.assert_array_equal(model.transform(new), before)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [Gaussian(0.6), Polynomial(degree=2)], ids=["radial", "ridge"])
@pytest.mark.parametrize("Estimator", [KernelPCA, KernelPGA, RobustKernelPCA])
def test_huge_coordinates_have_an_input_or_are_refused(Estimator, kernel, dtype):
    X = noisy_circle(40)[0].astype(dtype)
    model = Estimator(2, kernel=kernel).fit(X)
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
        assert not refusal or re.search("row 1 of (X are so|coordinates overflows)", refusal)


def test_the_pre_image_does_not_feel_how_huge_an_expansion_is():
    X = noisy_circle(40)[0]
    model = KernelPCA(2, kernel=Gaussian(0.6)).fit(X)
    far = np.array([[1.0, -0.5], [0.2, 0.3]])
    at = [model.inverse_transform(size * far) for size in (1e40, 1e150, 1e300)]
    np.testing.assert_allclose(at[1], at[0], atol=1e-5)
    np.testing.assert_allclose(at[2], at[0], atol=1e-5)


@pytest.mark.parametrize(
    "given",
    [[[1.0], [1.0, 2.0]], [["a", "b"]], np.full((2, 2), np.datetime64("2020-01-01"))],
    ids=["ragged", "texts", "dates"],
)
@pytest.mark.parametrize("Estimator", [KernelPCA, KernelPGA, RobustKernelPCA])
def test_coordinates_that_are_no_numbers_are_refused_by_name(Estimator, given):
    model = Estimator(2, kernel=Gaussian(0.6)).fit(noisy_circle(20)[0])
    with pytest.raises(ValueError, match=f"X of {Estimator.__name__} must hold numbers"):
        model.inverse_transform(given)
