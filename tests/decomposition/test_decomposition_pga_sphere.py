"""Kernel PGA: which data lie on a sphere, and hard cases of such data."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from laws_decomposition import assert_same, directions, every_solver, held_out, training
from laws_sphere import unit
from orthodrome import KernelPGA
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.kernels import FromCallable, Gaussian, Normalized
from orthodrome.sphere import karcher_mean

K = 3
X = directions(training())
every_method = pytest.mark.parametrize("method", ["transform", "score"])


def linear(rows, **options):
    return KernelPGA(**{"n_components": K, "kernel": "linear"} | options).fit(rows)


def assert_unfitted(model):
    left = {name for name in vars(model) if name.endswith("_")}
    assert left <= {"n_features_in_", "feature_names_in_"}  # set by scikit-learn's check of X
    assert not hasattr(model, "_squared_radius")
    with pytest.raises(NotFittedError):
        model.transform(training())


@pytest.mark.parametrize("factor", [1e-100, 1e-3, 4.0, 9.0, 1e100])
@every_solver
def test_a_constant_length_is_divided_out(solver, factor):
    X, new = training(), held_out()
    kernel = Gaussian(sigma=3.0).fit(X)
    called = FromCallable(lambda A, B: factor * Gaussian(sigma=3.0)(A, B))
    K_train, K_new = factor * kernel(X), factor * kernel(new, X)
    plain = KernelPGA(K, kernel=kernel, **solver).fit(X)
    for given, inputs, news in ((called, X, new), ("precomputed", K_train, K_new)):
        scaled = KernelPGA(K, kernel=given, **solver).fit(inputs)
        for name in ("eigenvalues_", "embedding_", "mean_", "mean_cosines_", "dual_coef_"):
            assert_same(getattr(scaled, name), getattr(plain, name), 1e-9)
        assert_same(scaled.explained_variance_ratio_, plain.explained_variance_ratio_, 1e-10)
        assert scaled.geodesic_variance_ == pytest.approx(plain.geodesic_variance_, rel=1e-10)
        assert_same(scaled.transform(inputs), plain.embedding_, 1e-9)
        assert_same(scaled.transform(news), plain.transform(new), 1e-9)
        assert scaled.score(news) == pytest.approx(plain.score(new), rel=1e-9)


def test_unit_vectors_may_have_been_float32():
    rounded = linear(X.astype(np.float32).astype(np.float64))
    assert_same(rounded.embedding_, linear(X).embedding_, 1e-5)
    rounded.transform(X)
    # angles of 1e-4: the variance is still the sum of the eigenvalues
    rng = np.random.default_rng(1)
    near = unit(np.arange(1.0, 5) + 1e-4 * rng.normal(size=(100, 4))).astype(np.float32)
    model = linear(near.astype(np.float64), n_components=None)
    assert model.geodesic_variance_ == pytest.approx(model.eigenvalues_.sum(), rel=1e-6)
    assert model.geodesic_variance_ == pytest.approx(karcher_mean(near).variance, rel=1e-2)


with_a_zero_row = np.where(np.arange(120)[:, None] == 7, 0.0, X)
one_and_three = np.ones((5, 5))  # no unit vector has a product of 3 with another
one_and_three[:4, 4] = one_and_three[4, :4] = 3.0
REFUSED = {
    "lengths": ("linear", training(), r"it is .* at row \d+ of X and .* at row \d+\..*Normalized"),
    "zero row": ("linear", with_a_zero_row, r"k\(x, x\) is 0 at row 7 of X \(1 such row"),
    "normalized": (Normalized("linear"), with_a_zero_row, "cannot normalise row 7"),
    "power": ("power", training(), r"k\(x, x\) is -?0 at row 0 of X \(120 such rows\)"),
    "matrix": ("precomputed", np.diag([1.0, 1.0, 2.0]), "2 at row 2 of X and 1 at row 0"),
    "products": ("precomputed", one_and_three, "more than 1 in modulus: .* not positive definite"),
    "antipodes": ("linear", np.vstack([X[:1], -X[:1]]), "they cancel, as antipodal points do"),
}


@pytest.mark.parametrize(("kernel", "rows", "message"), REFUSED.values(), ids=REFUSED)
def test_data_on_no_sphere_are_refused(kernel, rows, message):
    model = KernelPGA(2, kernel=kernel)
    with pytest.raises(ValueError, match=message):
        model.fit(rows)
    assert_unfitted(model)


@every_method
def test_new_points_of_another_length(method):
    ask, new = getattr(linear(X), method), X.copy()
    new[5] *= 2
    with pytest.raises(ValueError, match=r"4 at row 5 of X and .*\b1\b.*Normalized"):
        ask(new)
    with pytest.raises(ValueError, match=r"it is 4 at row \d+ of X and .*\b1\b"):
        ask(2 * X)
    new[5] = 0
    with pytest.raises(ValueError, match=r"k\(x, x\) is 0 at row 5 of X"):
        ask(new)


@pytest.mark.parametrize("sign", [1, -1])
@every_method
def test_new_rows_of_a_matrix_that_are_on_no_sphere_are_named(method, sign):
    """k(x, x) is not known there, but the product with the mean is."""
    model = KernelPGA(K, kernel="precomputed").fit(X @ X.T)
    new = X[:3] * np.array([[1.0], [1.5 * sign], [1.0]])
    with pytest.raises(ValueError, match=r"row 1 of X .* more than 1"):
        getattr(model, method)(new @ X.T)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_method
def test_a_new_antipode_of_the_mean_is_named(method, dtype):
    model, new = linear(X.astype(dtype)), X[:4].copy()
    new[2] = -unit(model.mean_[None] @ model.X_fit_)
    with pytest.raises(ValueError, match=r"1 of the rows of X \(row 2\) is antipodal"):
        getattr(model, method)(new.astype(dtype))


@pytest.mark.parametrize("concentration", [0.5, 1.0])
@every_solver
def test_wider_than_a_hemisphere(solver, concentration):
    """One warning with the count. Coefficients are not unique in three dimensions; the mean is."""
    n = 200
    X = make_von_mises_fisher(n, 100, 2, concentration, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = linear(X, n_components=2, **solver)
    mean = model.mean_ @ X
    far = np.count_nonzero(X @ mean <= 0)
    assert far > 2
    (warning,) = caught
    assert (warning.category, warning.filename) == (UserWarning, __file__)
    assert str(warning.message).startswith(f"{far} of {n} points lie a quarter of a great circle")
    assert model.converged_
    assert model.mean_gradient_norm_ <= 1e-11
    assert np.linalg.norm(mean) == pytest.approx(1.0, abs=1e-10)
    assert_same(model.mean_cosines_, X @ mean, 1e-10)
    angles = np.arccos(X @ mean)
    gradient = np.mean((angles / np.sin(angles))[:, None] * (X - np.outer(X @ mean, mean)), axis=0)
    assert np.linalg.norm(gradient) <= 1e-10
    assert model.eigenvalues_.sum() == pytest.approx(model.geodesic_variance_, rel=1e-10)
    assert_same(model.transform(X), model.embedding_, 1e-9)
    Y = model.sphere_coordinates_
    np.testing.assert_allclose(Y @ Y.T, X @ X.T, atol=1e-8)
