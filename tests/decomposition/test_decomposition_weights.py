"""Weights mean repetition, exactly; the order of the rows does not matter."""

import numpy as np
import pytest

from laws_decomposition import SOLVERS, assert_same, held_out, training
from orthodrome import KernelPCA
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
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
WEIGHTS = np.random.default_rng(33).integers(0, 4, size=120)


def sigma(estimator):
    return getattr(estimator.kernel_, "sigma_", 1.0)


def check_equal_fits(first, second, new, tol):
    assert_same(first.eigenvalues_, second.eigenvalues_, tol)
    assert_same(first.explained_variance_ratio_, second.explained_variance_ratio_, tol)
    assert_same(first.transform(new), second.transform(new), tol)
    assert first.score(new) == pytest.approx(second.score(new), rel=10 * tol)
    assert sigma(first) == pytest.approx(sigma(second), rel=1e-6 if tol > 1e-6 else 1e-12)


@every_kernel
@every_solver
def test_integer_weights_are_repeated_rows(solver, kernel):
    X, new = training(), held_out()
    weighted = KernelPCA(K, kernel=kernel, **solver).fit(X, sample_weight=WEIGHTS)
    repeated = KernelPCA(K, kernel=kernel, **solver).fit(np.repeat(X, WEIGHTS, axis=0))
    assert weighted.solver_ == repeated.solver_ == solver["solver"]
    check_equal_fits(weighted, repeated, new, 1e-8)
    assert_same(np.repeat(weighted.embedding_, WEIGHTS, axis=0), repeated.embedding_)
    assert_same(weighted.transform(X), weighted.embedding_)
    assert weighted.score(X, sample_weight=WEIGHTS) == pytest.approx(
        repeated.score(np.repeat(X, WEIGHTS, axis=0)), rel=1e-8
    )


@every_kernel
def test_inverse_transform_of_weighted_fits(kernel):
    """Radial kernels by fixed points that stop within 1e-6; the others by the same ridge."""
    X, new = training(), held_out()
    weighted = KernelPCA(K, kernel=kernel).fit(X, sample_weight=WEIGHTS)
    repeated = KernelPCA(K, kernel=kernel).fit(np.repeat(X, WEIGHTS, axis=0))
    first, second = (pca.inverse_transform(pca.transform(new)) for pca in (weighted, repeated))
    assert_same(first, second, 1e-4)


@every_kernel
@every_solver
def test_weight_zero_is_a_row_left_out(solver, kernel):
    X, new = training(), held_out()
    kept = np.arange(len(X)) % 7 != 0
    outliers = np.where(kept[:, None], X, 50.0)
    weighted = KernelPCA(K, kernel=kernel, **solver).fit(outliers, sample_weight=kept.astype(float))
    without = KernelPCA(K, kernel=kernel, **solver).fit(X[kept])
    check_equal_fits(weighted, without, new, 1e-8)
    assert_same(weighted.embedding_[kept], without.embedding_)


@pytest.mark.parametrize("kernel", [Gaussian(), "linear"])
@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_weights_in_float32(solver, kernel):
    X, new = training(dtype=np.float32), held_out(dtype=np.float32)
    options = {"solver": solver, "random_state": 0}
    weighted = KernelPCA(K, kernel=kernel, **options).fit(X, sample_weight=WEIGHTS)
    repeated = KernelPCA(K, kernel=kernel, **options).fit(np.repeat(X, WEIGHTS, axis=0))
    assert weighted.transform(new).dtype == weighted.embedding_.dtype == np.float32
    check_equal_fits(weighted, repeated, new, 1e-4)


@every_solver
def test_fractional_weights(solver):
    """Twice the weight everywhere is twice the data: eigenvalues double, coordinates stay."""
    X, new = training(), held_out()
    weights = np.random.default_rng(1).random(len(X))
    one, two = (KernelPCA(K, **solver).fit(X, sample_weight=factor * weights) for factor in (1, 2))
    assert_same(two.eigenvalues_, 2 * one.eigenvalues_)
    assert_same(two.transform(new), one.transform(new))
    tiny = KernelPCA(K, **solver).fit(X, sample_weight=1e-12 * weights)
    assert_same(tiny.transform(new), one.transform(new))


@every_solver
def test_equal_weights_are_none(solver):
    X, new = training(), held_out()
    plain = KernelPCA(K, **solver).fit(X)
    for weights in (np.ones(len(X)), 1, 1.0):
        weighted = KernelPCA(K, **solver).fit(X, sample_weight=weights)
        check_equal_fits(weighted, plain, new, 1e-8)
    assert plain.sample_weight_ is None


@every_solver
def test_weights_on_a_precomputed_matrix(solver):
    X, new = training(), held_out()
    kernel = Gaussian(sigma=3.0).fit(X)
    ours = KernelPCA(K, kernel="precomputed", **solver).fit(kernel(X), sample_weight=WEIGHTS)
    from_data = KernelPCA(K, kernel=kernel, **solver).fit(X, sample_weight=WEIGHTS)
    assert_same(ours.transform(kernel(new, X)), from_data.transform(new))


@every_kernel
@every_solver
def test_order_of_rows_does_not_matter(solver, kernel):
    """Signs included."""
    X, new = training(), held_out()
    order = np.random.default_rng(2).permutation(len(X))
    plain = KernelPCA(K, kernel=kernel, **solver).fit(X)
    permuted = KernelPCA(K, kernel=kernel, **solver).fit(X[order])
    check_equal_fits(permuted, plain, new, 1e-8)
    assert_same(permuted.embedding_, plain.embedding_[order])


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
def test_messages(weights, message):
    with pytest.raises(ValueError, match=message):
        KernelPCA(K).fit(training(), sample_weight=weights)
