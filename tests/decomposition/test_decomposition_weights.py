"""Weights mean repetition, exactly; the order of the rows does not matter."""

import numpy as np
import pytest

from laws_decomposition import (
    assert_same,
    every_estimator,
    every_solver,
    held_out,
    suited,
    training,
)
from orthodrome import KernelPCA, KernelPGA
from orthodrome.kernels import Exponential, Gaussian, Matern, Normalized, Polynomial, Power

K = 4
KERNELS = {
    "gaussian": Gaussian(),
    "gaussian median": Gaussian(sigma="median"),
    "exponential": Exponential(),
    "matern": Matern(nu=2.5),
    "polynomial": Polynomial(degree=2),
    "normalized": Normalized(Polynomial(degree=2)),
    "power": Power(beta=1.0),
    "linear": "linear",
}
#: Kernel PGA takes them normalised, and power, whose diagonal is 0, not at all.
CASES = {
    f"{Estimator.__name__}-{name}": (Estimator, suited(kernel, Estimator))
    for Estimator in (KernelPCA, KernelPGA)
    for name, kernel in KERNELS.items()
    if (Estimator, name) != (KernelPGA, "power")
}
every_case = pytest.mark.parametrize(("Estimator", "kernel"), CASES.values(), ids=CASES)
WEIGHTS = np.random.default_rng(33).integers(0, 4, size=120)


def data(dtype=np.float64):
    """Of one sign, so that the directions of all rows lie in a hemisphere."""
    return np.abs(training(dtype=dtype)), np.abs(held_out(dtype=dtype))


def sigma(estimator):
    return getattr(estimator.kernel_, "sigma_", 1.0)


def per_row(model):
    """What a model says of each training point."""
    if isinstance(model, KernelPGA):
        return np.column_stack([model.embedding_, model.mean_cosines_])
    return model.embedding_


def check_equal_fits(first, second, new, tol):
    assert_same(first.eigenvalues_, second.eigenvalues_, tol)
    assert_same(first.explained_variance_ratio_, second.explained_variance_ratio_, tol)
    assert_same(first.transform(new), second.transform(new), tol)
    assert first.score(new) == pytest.approx(second.score(new), rel=10 * tol)
    assert sigma(first) == pytest.approx(sigma(second), rel=1e-6 if tol > 1e-6 else 1e-12)
    if isinstance(first, KernelPGA):
        assert first.geodesic_variance_ == pytest.approx(second.geodesic_variance_, rel=tol)


@every_solver
@every_case
def test_integer_weights_are_repeated_rows(Estimator, kernel, solver):
    X, new = data()
    weighted = Estimator(K, kernel=kernel, **solver).fit(X, sample_weight=WEIGHTS)
    repeated = Estimator(K, kernel=kernel, **solver).fit(np.repeat(X, WEIGHTS, axis=0))
    assert weighted.solver_ == repeated.solver_ == solver["solver"]
    check_equal_fits(weighted, repeated, new, 1e-8)
    assert_same(np.repeat(per_row(weighted), WEIGHTS, axis=0), per_row(repeated))
    assert_same(weighted.transform(X), weighted.embedding_)
    assert weighted.score(X, sample_weight=WEIGHTS) == pytest.approx(
        repeated.score(np.repeat(X, WEIGHTS, axis=0)), rel=1e-8
    )


@every_case
def test_inverse_transform_of_weighted_fits(Estimator, kernel):
    """Radial kernels by fixed points that stop within 1e-6; the others by the same ridge."""
    X, new = data()
    weighted = Estimator(K, kernel=kernel).fit(X, sample_weight=WEIGHTS)
    repeated = Estimator(K, kernel=kernel).fit(np.repeat(X, WEIGHTS, axis=0))
    first, second = (
        model.inverse_transform(model.transform(new)) for model in (weighted, repeated)
    )
    assert_same(first, second, 1e-4)


@every_solver
@every_case
def test_weight_zero_is_a_row_left_out(Estimator, kernel, solver):
    X, new = data()
    kept = np.arange(len(X)) % 7 != 0
    outliers = np.where(kept[:, None], X, 50.0)
    weighted = Estimator(K, kernel=kernel, **solver).fit(outliers, sample_weight=kept.astype(float))
    without = Estimator(K, kernel=kernel, **solver).fit(X[kept])
    check_equal_fits(weighted, without, new, 1e-8)
    assert_same(per_row(weighted)[kept], per_row(without))


@pytest.mark.parametrize("kernel", [Gaussian(), "linear"])
@pytest.mark.parametrize("solver", ["dense", "krylov"])
@every_estimator
def test_weights_in_float32(Estimator, solver, kernel):
    X, new = data(np.float32)
    options = {"kernel": suited(kernel, Estimator), "solver": solver, "random_state": 0}
    weighted = Estimator(K, **options).fit(X, sample_weight=WEIGHTS)
    repeated = Estimator(K, **options).fit(np.repeat(X, WEIGHTS, axis=0))
    assert weighted.transform(new).dtype == weighted.embedding_.dtype == np.float32
    check_equal_fits(weighted, repeated, new, 1e-4)


@every_solver
@every_estimator
def test_fractional_weights(Estimator, solver):
    """Twice the weight everywhere is twice the data: coordinates and variances stay.

    Eigenvalues of kernel PCA, which are sums, double.
    """
    X, new = data()
    weights = np.random.default_rng(1).random(len(X))
    one, two = (Estimator(K, **solver).fit(X, sample_weight=factor * weights) for factor in (1, 2))
    assert_same(two.eigenvalues_, (1 if Estimator is KernelPGA else 2) * one.eigenvalues_)
    assert_same(two.transform(new), one.transform(new))
    tiny = Estimator(K, **solver).fit(X, sample_weight=1e-12 * weights)
    assert_same(tiny.transform(new), one.transform(new))


@every_solver
@every_estimator
def test_equal_weights_are_none(Estimator, solver):
    X, new = data()
    plain = Estimator(K, **solver).fit(X)
    for weights in (np.ones(len(X)), 1, 1.0):
        weighted = Estimator(K, **solver).fit(X, sample_weight=weights)
        check_equal_fits(weighted, plain, new, 1e-8)
    assert plain.sample_weight_ is None


@every_solver
@every_estimator
def test_weights_on_a_precomputed_matrix(Estimator, solver):
    X, new = data()
    kernel = Gaussian(sigma=3.0).fit(X)
    ours = Estimator(K, kernel="precomputed", **solver).fit(kernel(X), sample_weight=WEIGHTS)
    from_data = Estimator(K, kernel=kernel, **solver).fit(X, sample_weight=WEIGHTS)
    assert_same(ours.transform(kernel(new, X)), from_data.transform(new))


@every_solver
@every_case
def test_order_of_rows_does_not_matter(Estimator, kernel, solver):
    """Signs included."""
    X, new = data()
    order = np.random.default_rng(2).permutation(len(X))
    plain = Estimator(K, kernel=kernel, **solver).fit(X)
    permuted = Estimator(K, kernel=kernel, **solver).fit(X[order])
    check_equal_fits(permuted, plain, new, 1e-8)
    assert_same(per_row(permuted), per_row(plain)[order])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"shape \(120,\), one weight per sample; got \(3,\)"),
        (np.ones((120, 2)), r"one weight per sample; got \(120, 2\)"),
        (np.where(np.arange(120) == 7, -1.0, 1.0), "must not be negative; entry 7 is -1"),
        (np.zeros(120), "must have a positive entry"),
        (np.full(120, np.nan), "sample_weight contains NaN"),
        (np.full(120, np.inf), "sample_weight contains infinity"),
    ],
)
@every_estimator
def test_messages(Estimator, weights, message):
    with pytest.raises(ValueError, match=message):
        Estimator(K).fit(training(), sample_weight=weights)


@every_estimator
@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1e290])
def test_pre_images_do_not_depend_on_the_scale_of_the_weights(Estimator, scale):
    """By ridge, whose penalty is relative to the spread of what it regresses on."""
    (X, new), weights = data(), 1.0 + np.arange(120) % 3
    kernel = suited(Polynomial(degree=2), Estimator)
    expected, scaled = (
        Estimator(K, kernel=kernel).fit(X, sample_weight=w) for w in (weights, scale * weights)
    )
    Z = expected.transform(new)
    assert_same(scaled.inverse_transform(Z), expected.inverse_transform(Z), 1e-6)
