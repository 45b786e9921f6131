"""Kernel PGA: which data lie on a sphere, and those that lie on it badly."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from laws_decomposition import assert_same, every_solver, held_out, training
from optional import optional
from orthodrome import KernelPGA
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.kernels import Exponential, FromCallable, Gaussian, Matern, Normalized, Polynomial
from orthodrome.sphere import karcher_mean

pd = optional("pandas")

K = 3


def assert_unfitted(model):
    left = {name for name in vars(model) if name.endswith("_")}
    assert left <= {"n_features_in_", "feature_names_in_"}  # set by scikit-learn's check of X
    assert not hasattr(model, "_squared_radius")
    with pytest.raises(NotFittedError):
        model.transform(training())


def assert_finite(model, *more):
    names = ("eigenvalues_", "embedding_", "mean_", "mean_cosines_", "dual_coef_")
    for name in (*names, "sphere_coordinates_", "explained_variance_ratio_", "geodesic_variance_"):
        assert np.all(np.isfinite(getattr(model, name))), name
    assert all(np.all(np.isfinite(array)) for array in more)


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


# ------------------------------------------------------------------ one length, or none


def scaled_gaussian(factor):
    return FromCallable(lambda A, B: factor * Gaussian(sigma=3.0)(A, B))


@pytest.mark.parametrize("factor", [1e-100, 1e-3, 4.0, 9.0, 1e100])
@every_solver
def test_a_constant_length_is_divided_out(solver, factor):
    X, new = training(), held_out()
    kernel = Gaussian(sigma=3.0).fit(X)
    plain = KernelPGA(K, kernel=kernel, **solver).fit(X)
    called = KernelPGA(K, kernel=scaled_gaussian(factor), **solver).fit(X)
    matrix = KernelPGA(K, kernel="precomputed", **solver).fit(factor * kernel(X))
    for scaled, inputs, news in (
        (called, X, new),
        (matrix, factor * kernel(X), factor * kernel(new, X)),
    ):
        for name in ("eigenvalues_", "embedding_", "mean_", "mean_cosines_", "dual_coef_"):
            assert_same(getattr(scaled, name), getattr(plain, name), 1e-9)
        assert_same(scaled.explained_variance_ratio_, plain.explained_variance_ratio_, 1e-10)
        assert scaled.geodesic_variance_ == pytest.approx(plain.geodesic_variance_, rel=1e-10)
        assert_same(scaled.transform(inputs), plain.embedding_, 1e-9)
        assert_same(scaled.transform(news), plain.transform(new), 1e-9)
        assert scaled.score(news) == pytest.approx(plain.score(new), rel=1e-9)


def test_unit_vectors_may_have_been_float32():
    X = unit(training() + 4)
    exact = KernelPGA(K, kernel="linear").fit(X)
    rounded = KernelPGA(K, kernel="linear").fit(X.astype(np.float32).astype(np.float64))
    assert_same(rounded.embedding_, exact.embedding_, 1e-5)
    rounded.transform(X)


with_a_zero_row = np.where(np.arange(120)[:, None] == 7, 0.0, unit(training() + 4))
REFUSED = {
    "lengths": ("linear", training(), r"it is .* at row \d+ of X and .* at row \d+\..*Normalized"),
    "polynomial": (Polynomial(2), training(), r"at row \d+.*kernel=Normalized\(kernel\)"),
    "zero row": ("linear", with_a_zero_row, r"k\(x, x\) is 0 at row 7 of X \(1 such row"),
    "zero cosine": ("cosine", with_a_zero_row, r"is 0 at row 7 of X"),
    "normalized": (Normalized("linear"), with_a_zero_row, "cannot normalise row 7"),
    "power": ("power", training(), r"k\(x, x\) is -?0 at row 0 of X \(120 such rows\)"),
    "log": ("log", training(), r"k\(x, x\) is -?0 at row 0 of X \(120 such rows\)"),
    "negative": ("precomputed", -np.eye(5), r"k\(x, x\) is -1 at row 0"),
    "matrix": ("precomputed", np.diag([1.0, 1.0, 2.0]), "2 at row 2 of X and 1 at row 0"),
}


@pytest.mark.parametrize(("kernel", "X", "message"), REFUSED.values(), ids=REFUSED)
def test_data_on_no_sphere_are_refused(kernel, X, message):
    model = KernelPGA(K, kernel=kernel)
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    assert_unfitted(model)


@pytest.mark.parametrize("method", ["transform", "score"])
def test_new_points_of_another_length(method):
    X = unit(training() + 4)
    model = KernelPGA(K, kernel="linear").fit(X)
    new = X.copy()
    new[5] *= 2
    with pytest.raises(ValueError, match=r"4 at row 5 of X and .*\b1\b.*Normalized"):
        getattr(model, method)(new)
    with pytest.raises(ValueError, match=r"it is 4 at row \d+ of X and .*\b1\b"):
        getattr(model, method)(2 * X)
    new[5] = 0
    with pytest.raises(ValueError, match=r"k\(x, x\) is 0 at row 5 of X"):
        getattr(model, method)(new)


# ------------------------------------------------------------------ antipodes and hemispheres


def test_antipodal_points_have_no_mean():
    X = unit(training(n=1))
    model = KernelPGA(1, kernel="linear")
    with pytest.raises(ValueError, match="they cancel, as antipodal points do"):
        model.fit(np.vstack([X, -X]))
    assert_unfitted(model)


@pytest.mark.parametrize("radius", [1.0, 3.0])
def test_an_antipode_of_the_mean_is_named(radius):
    X = radius * unit(training(n=1))
    model = KernelPGA(1, kernel="linear")
    for weights in ([2, 1], [1, 0]):  # a row that counts for nothing is to be embedded as well
        with pytest.raises(ValueError, match=r"1 of the points \(row 1\) is antipodal"):
            model.fit(np.vstack([X, -X]), sample_weight=weights)
        assert_unfitted(model)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", ["transform", "score"])
def test_a_new_antipode_of_the_mean_is_named(method, dtype):
    X = unit(training() + 4)
    model = KernelPGA(K, kernel="linear").fit(X.astype(dtype))
    new = X[:4].copy()
    new[2] = -unit(model.mean_[None] @ model.X_fit_)
    with pytest.raises(ValueError, match=r"1 of the rows of X \(row 2\) is antipodal"):
        getattr(model, method)(new.astype(dtype))


@every_solver
def test_wider_than_a_hemisphere(solver):
    """One warning, with the count; the fit is as good as any."""
    X = make_von_mises_fisher(200, 100, 2, 1.0, random_state=0)
    model = KernelPGA(2, kernel="linear", **solver)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    (warning,) = caught
    assert warning.category is UserWarning
    far = np.count_nonzero(X @ (model.mean_ @ X) <= 0)
    assert far > 10
    assert str(warning.message).startswith(f"{far} of 200 points lie a quarter of a great circle")
    assert model.mean_gradient_norm_ <= 1e-11
    assert model.eigenvalues_.sum() == pytest.approx(model.geodesic_variance_, rel=1e-10)
    assert_same(model.transform(X), model.embedding_, 1e-9)
    Y = model.sphere_coordinates_
    np.testing.assert_allclose(Y @ Y.T, X @ X.T, atol=1e-8)


@pytest.mark.filterwarnings("ignore:.*outside its open hemisphere:UserWarning")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("concentration", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [50, 200])
def test_the_mean_of_wide_data_of_low_rank(n, concentration, seed):
    """Three dimensions hold all points: their coefficients are not unique, the mean is."""
    X = make_von_mises_fisher(n, 100, 2, concentration, random_state=seed)
    model = KernelPGA(2, kernel="linear", solver="dense").fit(X)
    mean = model.mean_ @ X
    assert np.linalg.norm(mean) == pytest.approx(1.0, abs=1e-10)
    assert_same(model.mean_cosines_, X @ mean, 1e-10)
    angles = np.arccos(X @ mean)
    gradient = np.mean((angles / np.sin(angles))[:, None] * (X - np.outer(X @ mean, mean)), axis=0)
    assert model.converged_
    assert np.linalg.norm(gradient) <= 1e-10


def test_cosines_of_exactly_0():
    """Ten points at the mean, and two a quarter of a circle away on either side."""
    X = np.array([[1.0, 0, 0]] * 10 + [[0, 1.0, 0], [0, -1.0, 0]])
    with pytest.warns(UserWarning, match="2 of 12 points"):
        model = KernelPGA(kernel="linear").fit(X)
    np.testing.assert_array_equal(model.mean_cosines_, [1] * 10 + [0] * 2)
    np.testing.assert_allclose(np.abs(model.embedding_[:, 0]), [0] * 10 + [np.pi / 2] * 2)
    assert model.embedding_[10, 0] == -model.embedding_[11, 0]
    np.testing.assert_allclose(model.eigenvalues_, [np.pi**2 / 4 / 6])
    # a new point at right angles to everything has no coordinates, and the same distance
    np.testing.assert_array_equal(model.transform([[0.0, 0.0, 1.0]]), [[0.0]])
    assert model.score([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]) == pytest.approx(0.5)


def test_a_row_without_weight_may_lie_anywhere_else():
    X = np.vstack([unit(training() + 4), unit(-training(n=3) - 4)])
    weights = np.arange(len(X)) < 120
    model = KernelPGA(K, kernel="linear").fit(X, sample_weight=weights)  # without a warning
    without = KernelPGA(K, kernel="linear").fit(X[:120])
    assert_same(model.eigenvalues_, without.eigenvalues_, 1e-10)
    assert_same(model.embedding_, without.transform(X), 1e-9)
    assert np.all(model.mean_cosines_[120:] < 0)


# ------------------------------------------------------------------ degenerate data


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "linear", "exponential"])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_points_that_coincide(n, kernel):
    """No variance, no components, no NaN; a new point has a direction all the same."""
    X = np.repeat(unit(training(n=1)), n, axis=0)
    model = KernelPGA(K, kernel=kernel).fit(X)
    assert_finite(model, model.transform(unit(held_out())))
    np.testing.assert_array_equal(model.eigenvalues_, 0)
    np.testing.assert_array_equal(model.embedding_, 0)
    np.testing.assert_array_equal(model.transform(X), 0)
    np.testing.assert_array_equal(model.explained_variance_ratio_, 0)
    np.testing.assert_allclose(model.mean_cosines_, 1.0, rtol=1e-15)
    assert model.geodesic_variance_ <= 1e-15
    assert_same(model.inverse_transform(model.embedding_), X, 1e-12)


@every_solver
def test_points_at_the_mean_and_duplicates(solver):
    """A symmetric cross with its centre, thrice: the centre is the mean, exactly at 0."""
    cross = np.array([[0, 0], [1, 0], [-1, 0], [0, 2], [0, -2]])
    X = np.repeat(unit(np.column_stack([np.full(5, 3.0), cross])), 3, axis=0)
    model = KernelPGA(kernel="linear", **solver).fit(X)
    assert model.n_components_ == 2
    np.testing.assert_allclose(model.mean_cosines_[:3], 1.0, rtol=1e-15)
    np.testing.assert_allclose(model.embedding_[:3], 0.0, atol=1e-14)
    angles = np.arctan([2 / 3, 1 / 3])
    np.testing.assert_allclose(model.eigenvalues_, angles**2 * 2 / 5)
    expected = [[0, angles[1]], [0, angles[1]], [angles[0], 0], [angles[0], 0]]
    np.testing.assert_allclose(np.abs(model.embedding_[3::3]), expected, atol=1e-14)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_fewer_points_than_components(n):
    X = training(n=n)
    model = KernelPGA(9, kernel="gaussian").fit(X)
    assert model.n_components_ == n
    assert np.all(model.eigenvalues_[:-1] > 0)
    assert model.eigenvalues_[-1] == 0
    np.testing.assert_array_equal(model.embedding_[:, -1], 0)
    np.testing.assert_array_equal(model.transform(held_out())[:, -1], 0)
    assert model.eigenvalues_.sum() == pytest.approx(model.geodesic_variance_)


SIGMAS = 10.0 ** np.array([-12, -8, -4, -2, 0, 2, 4, 6])


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("kernel", [Gaussian, Exponential, Matern])
def test_every_sigma(kernel, sigma):
    """Coordinates of size s are differences of numbers of size 1 over s."""
    X, new = training(), held_out()
    model = KernelPGA(K, kernel=kernel(sigma=sigma)).fit(X)
    size = np.abs(model.embedding_).max()
    assert_finite(model, model.transform(new), model.inverse_transform(model.embedding_[:5]))
    assert np.all(np.diff(model.eigenvalues_) <= 0)
    assert np.all(model.eigenvalues_ > 0)
    atol = 100 * len(X) * np.finfo(np.float64).eps / size
    np.testing.assert_allclose(model.transform(X), model.embedding_, rtol=0, atol=atol)
    np.testing.assert_allclose(
        model.eigenvalues_, np.mean(model.embedding_**2, axis=0), rtol=0, atol=atol * size
    )


@pytest.mark.parametrize("sigma", [1e9, 1e12])
@every_solver
def test_a_sigma_that_leaves_only_rounding(solver, sigma):
    with pytest.warns(UserWarning, match="All components are zero"):
        model = KernelPGA(K, kernel=Gaussian(sigma=sigma), **solver).fit(training())
    assert_finite(model, model.transform(held_out()))
    np.testing.assert_array_equal(model.eigenvalues_, 0)
    np.testing.assert_array_equal(model.embedding_, 0)


# ------------------------------------------------------------------ matrices that are not definite


def indefinite(seed, n=12):
    rng = np.random.default_rng(seed)
    matrix = np.clip(rng.normal(0.5, 0.4, size=(n, n)), -1, 1)
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 1.0)
    return matrix


@pytest.mark.filterwarnings("ignore:.*outside its open hemisphere:UserWarning")
@pytest.mark.parametrize("k", [None, 2, 0.9])
@pytest.mark.parametrize("seed", range(8))
def test_an_indefinite_matrix_is_refused_or_fitted(seed, k):
    matrix = indefinite(seed)
    assert np.linalg.eigvalsh(matrix)[0] < -0.1
    model = KernelPGA(k, kernel="precomputed")
    try:
        model.fit(matrix)
    except ValueError as error:
        refusal = str(error)
    else:
        assert_finite(model, model.transform(matrix))
        assert np.all(model.eigenvalues_ >= 0)
        return
    assert re.search("not positive definite|antipodal", refusal)
    assert_unfitted(model)


def test_a_matrix_that_is_on_no_sphere_is_refused():
    """All but one point are one, which has a product with the last that no unit vector has."""
    matrix = np.ones((5, 5))
    matrix[:4, 4] = matrix[4, :4] = 3.0
    with pytest.raises(
        ValueError, match=r"more than 1 in modulus: the kernel is not positive definite"
    ):
        KernelPGA(2, kernel="precomputed").fit(matrix)


# ------------------------------------------------------------------ fits that fail late


def test_a_fit_that_fails_after_the_mean_leaves_nothing():
    model = KernelPGA(0.5, solver="dense", memory_budget="1KiB")
    with pytest.raises(ValueError, match="memory_budget is 1 KiB"):
        model.fit(training(n=1100))
    assert_unfitted(model)


def test_a_failed_fit_leaves_the_last_one_whole():
    X = unit(training() + 4)
    model = KernelPGA(K, kernel="linear").fit(X)
    before = model.transform(X)
    other = unit(training(d=7) + 4)
    named = pd.DataFrame(np.vstack([X, -X])).add_prefix("column")
    for failing in (np.vstack([X, -X]), np.vstack([other, -other]), named):
        with pytest.raises(ValueError, match="they cancel"):
            model.fit(failing)
    np.testing.assert_array_equal(model.transform(X), before)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("method", ["transform", "score"])
def test_new_rows_that_are_on_no_sphere_are_named(method, sign):
    """Of a precomputed kernel k(x, x) is not known, but the product with the mean is."""
    X = unit(training() + 4)
    model = KernelPGA(K, kernel="precomputed").fit(X @ X.T)
    new = X[:3] * np.array([[1.0], [1.5 * sign], [1.0]])
    with pytest.raises(ValueError, match=r"row 1 of X .* more than 1"):
        getattr(model, method)(new @ X.T)


def test_the_variance_is_the_sum_of_the_eigenvalues_where_lengths_are_rounded():
    """Angles of 1e-4, and lengths that went through float32."""
    rng = np.random.default_rng(1)
    X = unit(np.arange(1.0, 5) + 1e-4 * rng.normal(size=(100, 4))).astype(np.float32)
    model = KernelPGA(kernel="linear").fit(X.astype(np.float64))
    assert model.geodesic_variance_ == pytest.approx(model.eigenvalues_.sum(), rel=1e-6)
    assert model.geodesic_variance_ == pytest.approx(karcher_mean(X).variance, rel=1e-2)
