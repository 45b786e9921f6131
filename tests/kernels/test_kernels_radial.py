"""Profiles of radial kernels: values, derivatives and 1 - k against 60-digit oracles."""

import math
from itertools import product

import numpy as np
import pytest

from laws_kernels import DIGITS, DTYPES, RADIAL, SIGMA, rational_quadratic, tolerance
from oracles import digits, exact, mpmath
from orthodrome.kernels import (
    RBF,
    Circular,
    Exponential,
    Gaussian,
    Matern,
    RationalQuadratic,
    Spherical,
    Wave,
    _loops,
    base,
)

every_radial = pytest.mark.parametrize("case", RADIAL.values(), ids=RADIAL.keys())

# d/σ: tiny, small, about one, and near the edge of a compact support on both sides.
RATIOS = [1e-8, 1e-4, 0.01, 0.1, 0.29, 0.31, 0.7, 1 - 1e-6, 1 + 1e-6, 1.5, 2.5]


@pytest.fixture(autouse=True, params=[0, 2**60], ids=["compiled", "plain"])
def _both_ways(request, monkeypatch):
    """Run every test with compiled loops, and without."""
    monkeypatch.setattr(base, "COMPILED_PAIRS", request.param)


def squared(ratios):
    return (np.asarray(ratios) * SIGMA) ** 2


def rounded(function, values):
    """Evaluate a function in mpmath at each float, and round once."""
    with digits(DIGITS):
        return np.array([float(function(exact(s))) for s in values])


@every_radial
def test_profile_and_one_minus(case):
    kernel, d2 = case.make(), squared(RATIOS)
    np.testing.assert_allclose(kernel.profile(d2), rounded(case.profile, d2), atol=1e-13)
    expected = rounded(lambda s: 1 - case.profile(s), d2)
    np.testing.assert_allclose(kernel.one_minus(d2), expected, rtol=1e-9)
    assert kernel.one_minus(0.0) == (0.0 if kernel.unit_norm else 1.0)
    d2 = squared(np.linspace(0, 3, 61))
    np.testing.assert_allclose(kernel.one_minus(d2) + kernel.profile(d2), 1.0, atol=1e-13)
    values = kernel.profile(np.linspace(0, 10 * SIGMA, 400) ** 2)
    assert kernel.decreasing == bool(np.all(np.diff(values) <= 0))


@every_radial
def test_profile_derivative(case):
    """A central difference with a step of 1e-20, has no error that matters here."""

    def difference(s):
        step = s * mpmath.mpf(10) ** -20
        return (case.profile(s + step) - case.profile(s - step)) / (2 * step)

    d2 = squared(RATIOS)
    actual = case.make().profile_derivative(d2)
    np.testing.assert_allclose(actual, rounded(difference, d2), rtol=1e-9, atol=1e-14)
    assert np.all(actual[:7] < 0)


@every_radial
def test_derivative_at_zero(case):
    kernel = case.make()
    at_zero = float(kernel.profile_derivative(0.0))
    if kernel.cusp:
        assert at_zero == -np.inf
    else:
        with digits(DIGITS):
            step = mpmath.mpf(10) ** -40
            slope = (case.profile(step) - case.profile(mpmath.mpf(0))) / step
        assert at_zero == pytest.approx(float(slope), rel=1e-9 if at_zero else 0)
    both = kernel.profile_derivative(np.array([0.0, SIGMA**2 / 4]))  # no warning, no NaN
    assert both[0] == at_zero
    assert np.isfinite(both[1])


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, 40.0, 41.0])
def test_matern_of_whole_order_lies_between_its_neighbours(order):
    """The oracle's series has poles at whole ν; there the kernel must be continuous in ν."""
    d2 = squared(RATIOS)
    step = 1e-6
    for name in ("profile", "one_minus"):
        low, at, high = (
            getattr(Matern(nu=nu, sigma=SIGMA), name)(d2)
            for nu in (order - step, order, order + step)
        )
        np.testing.assert_allclose(at, (low + high) / 2, rtol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("nu", [1e12, 1e13, 1e15, 9e15, 1e16, 1e20, 1e100, 1e300, math.inf])
def test_matern_of_huge_order_is_the_gaussian(nu, dtype):
    """The exponent x = d²/2σ² of the limit is off by about x²/2ν; near 0, k' by a part 1/ν."""
    d2 = np.concatenate([[0.0], squared([1e-8, 0.01, 0.3, 1.0, 5.0, 12.0, 1e4])]).astype(dtype)
    x = d2.astype(np.float64) / (2 * SIGMA**2)
    rounding = 8 * np.finfo(dtype).eps
    kernel, limit = Matern(nu=nu, sigma=SIGMA), Gaussian(sigma=SIGMA)
    for name in ("profile", "profile_derivative", "one_minus"):
        found, expected = getattr(kernel, name)(d2), getattr(limit, name)(d2)
        assert found.dtype == dtype
        allowed = np.abs(expected) * ((x + 1) ** 2 / nu + rounding * (x + 1))
        np.testing.assert_array_less(np.abs(found - expected), allowed + np.finfo(dtype).tiny)


def compiled_exponential(x):
    block = -np.asarray(x)[None, :]
    _loops.gaussian(block, 1.0)
    return block[0]


def test_compiled_exponential():
    """Accurate to two units in the last place, 1 at 0, falling; subnormal results are flushed."""
    x = -np.concatenate([np.linspace(0, 700, 200_001), np.geomspace(1e-300, 700, 20_001)])
    exact = np.exp(x.astype(np.longdouble))
    assert np.max(np.abs(compiled_exponential(x) / exact - 1)) < 4.5e-16
    assert np.all(np.diff(compiled_exponential(-np.linspace(0, 800, 400_001))) <= 0)
    far = compiled_exponential([-0.0, -708.1, -745.2, -1e3, -1e10, -1e300])
    np.testing.assert_array_equal(far, [1.0, 0, 0, 0, 0, 0])
    assert compiled_exponential([-707.9])[0] == pytest.approx(np.exp(-707.9), rel=1e-15)


@pytest.mark.parametrize("sigma", [1e-160, "mean", "median"])
def test_scales_whose_squares_underflow_raise(sigma):
    X = np.array([[0.0], [1e-160], [3e-160]])
    with pytest.raises(ValueError, match=r"square underflows in float64; rescale"):
        Gaussian(sigma=sigma).fit(X)
    if isinstance(sigma, str):  # a rule depends on the precision of the data
        X = (np.arange(6.0)[:, None] * 1e-25).astype(np.float32)
        with pytest.raises(ValueError, match=r"square underflows in float32; rescale"):
            Gaussian(sigma=sigma).fit(X)
        assert Gaussian(sigma=sigma).fit(X.astype(np.float64)).sigma_ > 0


@pytest.mark.parametrize("kernel", [Gaussian(1e160), Matern(0.7, 1e160), Exponential(1e160)])
def test_scales_whose_squares_overflow_raise(kernel):
    for use in (lambda: kernel.fit(np.eye(3)), lambda: kernel.profile(1.0)):
        with pytest.raises(ValueError, match="whose square overflows in float64"):
            use()


@every_radial
def test_far_points(case):
    """Bounded kernels vanish, the others grow, and nothing is NaN."""
    kernel, d2 = case.make(), squared([30.0, 1e3, 1e6, 1e9, 1e12])
    values, rest, slopes = kernel.profile(d2), kernel.one_minus(d2), kernel.profile_derivative(d2)
    assert np.all(np.isfinite([values, rest, slopes]))
    if kernel.unit_norm:
        assert np.all(np.abs(values) < 0.05)
        assert abs(values[2]) < 1e-5
        assert abs(slopes[2]) < 1e-12
        np.testing.assert_allclose(rest, 1 - values, atol=1e-12)
        assert kernel([[0.0]], [[1e6]])[0, 0] == pytest.approx(kernel.profile(1e12), abs=1e-12)


SCALES = [2e-153, 1e-46, 1e-38, 1e-20, 1e-12, 1e12, 1e20, 1e46, 1e150]

OF_SIGMA = {
    "gaussian": Gaussian,
    "rbf": lambda sigma: RBF(gamma=0.5 / sigma**2),
    "exponential": Exponential,
    "matern-0.5": lambda sigma: Matern(0.5, sigma),
    "matern-0.7": lambda sigma: Matern(0.7, sigma),
    "matern-1.5": lambda sigma: Matern(1.5, sigma),
    "matern-2.5": lambda sigma: Matern(2.5, sigma),
    "matern-50": lambda sigma: Matern(50.0, sigma),
    "rational-quadratic": lambda sigma: RationalQuadratic(1.0, sigma),
    "rational-quadratic-tail": lambda sigma: RationalQuadratic(0.01, sigma),
    "wave": Wave,
    "spherical": Spherical,
    "circular": Circular,
}

of_scale = pytest.mark.parametrize("make", OF_SIGMA.values(), ids=OF_SIGMA.keys())


@of_scale
def test_float32_has_the_values_of_float64_at_every_scale(make):
    d2 = np.array([0.0, 1e-30, 1e-3, 1.0, 9.0, 1e30, 3e38], dtype=np.float32)
    for sigma, name in product(SCALES, ("profile", "one_minus", "profile_derivative")):
        evaluate = getattr(make(sigma), name)
        with np.errstate(over="ignore"):
            expected = evaluate(d2.astype(np.float64)).astype(np.float32)
        found = evaluate(d2)
        assert found.dtype == np.float32
        assert not np.any(np.isnan(found)), (sigma, name)
        with np.errstate(invalid="ignore"):  # both are -inf at a cusp
            np.testing.assert_allclose(
                found, expected, rtol=2e-5, atol=1e-30, err_msg=f"{name}, sigma={sigma}"
            )


@of_scale
@pytest.mark.parametrize("dtype", DTYPES)
def test_coincident_points_have_value_one_at_every_scale(make, dtype):
    X = np.array([[0.0], [0.0], [1.0], [3e10]], dtype=dtype)
    for sigma in SCALES:
        K = make(sigma).fit(X)(X)
        assert np.all(np.diagonal(K) == 1), sigma
        assert K[0, 1] == 1, sigma
        assert np.all(np.abs(K) <= 1 + tolerance(dtype)), sigma
        if sigma < 1e-12 and make is not OF_SIGMA["rational-quadratic-tail"]:
            np.testing.assert_allclose(K[:2, 2:], 0, atol=1e-12, err_msg=f"sigma={sigma}")
        if sigma > 1e25:
            np.testing.assert_allclose(K, 1, atol=1e-12, err_msg=f"sigma={sigma}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sigma", [2e-153, 1e-20, 1.0, 1e150])
@pytest.mark.parametrize("alpha", [1e-310, 1e-300, 1e-20, 0.01, 1.0, 1e20])
def test_rational_quadratic_kernels_of_every_tail_and_scale(alpha, sigma, dtype):
    kernel = RationalQuadratic(alpha, sigma)
    d2 = np.array([0.0, 1e-30, 1.0, 9.0, 1e30], dtype=dtype)

    def right(s):
        return rational_quadratic(alpha)(s, exact(sigma))

    expected = rounded(right, d2)
    found = kernel.profile(d2)
    np.testing.assert_allclose(found, expected, atol=tolerance(dtype), rtol=tolerance(dtype))
    lacking = rounded(lambda s: 1 - right(s), d2)
    normal = lacking > 1e-30  # below it the oracle has too few digits
    np.testing.assert_allclose(kernel.one_minus(d2)[normal], lacking[normal], rtol=tolerance(dtype))
    assert not np.any(np.isnan(kernel.profile_derivative(d2)))
