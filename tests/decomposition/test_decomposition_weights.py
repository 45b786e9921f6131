"""Weights mean repetition; the order of the rows does not matter."""

import numpy as np
import pytest

from laws_decomposition import (
    assert_same,
    every_estimator,
    every_solver,
    positive,
    suited,
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
#: Kernel PGA takes them normalised, and not power, whose diagonal is 0.
CASES = {
    f"{Estimator.__name__}-{name}": (Estimator, suited(kernel, Estimator))
    for Estimator in (KernelPCA, KernelPGA)
    for name, kernel in KERNELS.items()
    if (Estimator, name) != (KernelPGA, "power")
}
every_case = pytest.mark.parametrize(("Estimator", "kernel"), CASES.values(), ids=CASES)
WEIGHTS = np.random.default_rng(33).integers(0, 4, size=120)
REPEATED = np.repeat(np.arange(120), WEIGHTS)


def per_row(model):
    """Return the fitted values of each training point."""
    if isinstance(model, KernelPGA):
        return np.column_stack([model.embedding_, model.mean_cosines_])
    return model.embedding_


def check_equal_fits(first, second, new, tol=1e-8):
    assert_same(first.eigenvalues_, second.eigenvalues_, tol)
    assert_same(first.explained_variance_ratio_, second.explained_variance_ratio_, tol)
    assert_same(first.transform(new), second.transform(new), tol)
    assert first.score(new) == pytest.approx(second.score(new), rel=10 * tol)
    scales = [getattr(model.kernel_, "sigma_", 1.0) for model in (first, second)]
    assert scales[0] == pytest.approx(scales[1], rel=1e-6 if tol > 1e-6 else 1e-12)
    if isinstance(first, KernelPGA):
        assert first.geodesic_variance_ == pytest.approx(second.geodesic_variance_, rel=tol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_solver
@every_case
def test_weights_are_repeated_rows_in_any_order(Estimator, kernel, solver, dtype):
    """Signs included; rows of weight 0 are outliers."""
    X, new = positive(dtype=dtype)
    X[WEIGHTS == 0] = 50.0
    rows = np.random.default_rng(2).permutation(REPEATED)
    single = dtype is np.float32
    if single:
        solver = {"solver": solver["solver"], "random_state": 0}
    weighted = Estimator(K, kernel=kernel, **solver).fit(X, sample_weight=WEIGHTS)
    repeated = Estimator(K, kernel=kernel, **solver).fit(X[rows])
    assert weighted.solver_ == repeated.solver_ == solver["solver"]
    assert weighted.transform(new).dtype == weighted.embedding_.dtype == dtype
    check_equal_fits(weighted, repeated, new, 1e-4 if single else 1e-8)
    if single:
        return
    assert_same(per_row(weighted)[rows], per_row(repeated))
    assert_same(weighted.transform(X), weighted.embedding_)
    score = weighted.score(X, sample_weight=WEIGHTS)
    assert score == pytest.approx(repeated.score(X[rows]), rel=1e-8)
    if solver["solver"] == "dense":  # fixed points stop within 1e-6
        inputs = [model.inverse_transform(model.transform(new)) for model in (weighted, repeated)]
        assert_same(*inputs, 1e-4)


@every_solver
@every_estimator
def test_only_proportions_of_weights_matter(Estimator, solver):
    """Coordinates and variances stay; eigenvalues of kernel PCA, which are sums, are scaled."""
    X, new = positive()
    weights = np.random.default_rng(1).random(len(X))
    one = Estimator(K, **solver).fit(X, sample_weight=weights)
    for factor in (2.0, 1e-12):
        tol = 1e-12 if (factor, solver["solver"]) == (2.0, "dense") else 1e-8
        other = Estimator(K, **solver).fit(X, sample_weight=factor * weights)
        scale = 1 if Estimator is KernelPGA else factor
        assert_same(other.eigenvalues_, scale * one.eigenvalues_)
        for name in ("embedding_", "mean_", "dual_coef_", "explained_variance_ratio_"):
            assert_same(getattr(other, name), getattr(one, name), tol)
        assert_same(other.transform(new), one.transform(new))
    plain = Estimator(K, **solver).fit(X)
    for equal in (np.ones(len(X)), 1, 1.0):
        check_equal_fits(Estimator(K, **solver).fit(X, sample_weight=equal), plain, new)
    assert plain.sample_weight_ is None


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1e290])
@every_estimator
def test_pre_images_do_not_depend_on_the_scale_of_the_weights(Estimator, scale):
    """By ridge, whose penalty is relative to the spread of the regressors."""
    (X, new), weights = positive(), 1.0 + np.arange(120) % 3
    kernel = suited(Polynomial(degree=2), Estimator)
    expected, scaled = (
        Estimator(K, kernel=kernel).fit(X, sample_weight=w) for w in (weights, scale * weights)
    )
    Z = expected.transform(new)
    assert_same(scaled.inverse_transform(Z), expected.inverse_transform(Z), 1e-6)
