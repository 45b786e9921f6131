"""Laws of the spectral filters: naive oracles, leave-one-out, null directions."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from laws_classification import (
    gaussian,
    left_out_naively,
    naive_perturbation,
    naive_ridge,
    naive_truncation,
)
from orthodrome.classification.filters import (
    Perturbation,
    RidgeResidual,
    Truncation,
    captured,
    class_spectrum,
    folded_residuals,
    left_out_mean_cosines,
    left_out_tangent_residuals,
    remainder,
    tie_within_rounding,
)
from orthodrome.gram import DenseGram
from orthodrome.sphere import karcher_mean

FILTERS = {Perturbation: naive_perturbation, RidgeResidual: naive_ridge}
every_filter = pytest.mark.parametrize("kind", list(FILTERS), ids=lambda kind: kind.__name__)
every_alpha = pytest.mark.parametrize("alpha", [0.0, 1e-6, 1e-3, 0.1, 3.0, 1e4])


def points(n=25, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def residuals(spectrum, kept, k, own):
    return remainder(own, captured(k @ spectrum.directions(), kept.gains(spectrum)))


# ------------------------------------------------------------------ new points


@every_alpha
@every_filter
def test_residuals_of_new_points_and_points_left_out(kind, alpha):
    """Against naive oracles, without weights and with weights that mean repetition."""
    X, new, naive = points(), points(10, seed=1), FILTERS[kind]
    K, k = gaussian(X), gaussian(new, X)
    spectrum = class_spectrum(K)
    expected = [naive(K, row, 1.0, alpha) for row in k]
    found = residuals(spectrum, kind(alpha), k, np.ones(10))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    expected = left_out_naively(naive, K, alpha)
    np.testing.assert_allclose(kind(alpha).left_out(spectrum), expected, rtol=1e-10)

    w = np.random.default_rng(2).integers(1, 5, size=25)
    repeated = np.repeat(X, w, axis=0)
    spectrum = class_spectrum(K, w.astype(float))
    expected = [naive(gaussian(repeated), row, 1.0, alpha) for row in gaussian(new, repeated)]
    found = residuals(spectrum, kind(alpha), k, np.ones(10))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    expected = left_out_naively(naive, K, alpha, w)  # all copies at once
    np.testing.assert_allclose(kind(alpha).left_out(spectrum), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_components", [1, 4, 10])
def test_truncation(n_components):
    X, new = points(), points(10, seed=1)
    K, k = gaussian(X), gaussian(new, X)
    found = residuals(class_spectrum(K), Truncation(n_components), k, np.ones(10))
    expected = [naive_truncation(K, row, 1.0, n_components) for row in k]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    both = residuals(class_spectrum(K), Truncation(n_components, 0.3), k, np.ones(10))
    assert np.all(both > found)


def test_filters_agree_for_alpha_zero():
    X, new = points(), points(10, seed=1)
    spectrum, k = class_spectrum(gaussian(X)), gaussian(new, X)
    exact = residuals(spectrum, Perturbation(0.0), k, np.ones(10))
    for same in (RidgeResidual(0.0), Truncation(25), Truncation(99), Perturbation(1e-15)):
        np.testing.assert_allclose(residuals(spectrum, same, k, np.ones(10)), exact, atol=1e-11)
    # the ridge residual leaves out the penalty, so it lies between the others
    between = residuals(spectrum, RidgeResidual(0.1), k, np.ones(10))
    assert np.all(exact < between)
    assert np.all(between < residuals(spectrum, Perturbation(0.1), k, np.ones(10)))


@every_filter
def test_residuals_grow_with_alpha_and_scale_with_the_kernel(kind):
    X, new = points(), points(10, seed=1)
    K, k = gaussian(X), gaussian(new, X)
    spectrum, scaled = class_spectrum(K), class_spectrum(1e8 * K)
    grid = [0.0, 1e-6, 1e-3, 0.1, 1.0, 100.0]
    found = np.array([residuals(spectrum, kind(alpha), k, np.ones(10)) for alpha in grid])
    assert np.all(np.diff(found, axis=0) > 0)
    assert np.all(found <= 1)
    large = residuals(scaled, kind(1e7), 1e8 * k, np.full(10, 1e8))
    np.testing.assert_allclose(large, 1e8 * found[3], rtol=1e-10)
    left_out = kind(1e7).left_out(scaled)
    np.testing.assert_allclose(left_out, 1e8 * kind(0.1).left_out(spectrum), rtol=1e-10)


# ------------------------------------------------------------------ points left out


@every_filter
def test_leave_one_out_of_dependent_points(kind):
    """Five points in a plane and one outside: only that one is not in the span of the others."""
    X = np.column_stack([points(6, 2), np.zeros(6)])
    X[5] = [0.3, -0.2, 2.0]
    for alpha, atol in ((0.0, 1e-11), (1e-7, 1e-5)):
        found = kind(alpha).left_out(class_spectrum(X @ X.T))
        np.testing.assert_allclose(found, [0, 0, 0, 0, 0, 4.0], atol=atol)


@every_filter
def test_leave_one_out_has_no_cancellation(kind):
    """Residuals of 1e-9 and weights of 1e9 with α = 1 keep their digits."""
    K = np.diag([1e-9, 1.0, 2.0])
    for weights in (None, np.array([1e9, 1.0, 1e-9])):
        found = kind(1.0).left_out(class_spectrum(K, weights))
        np.testing.assert_allclose(found, np.diag(K), rtol=1e-14)


@every_filter
@pytest.mark.parametrize("alpha", [0.0, 1e-8, 1.0])
def test_one_point_and_zero_matrices(kind, alpha):
    spectrum = class_spectrum(np.array([[2.0]]), np.array([3.0]))
    np.testing.assert_allclose(kind(alpha).left_out(spectrum), [2.0], rtol=1e-14)
    zero = class_spectrum(np.zeros((3, 3)))
    np.testing.assert_allclose(kind(alpha).left_out(zero), 0.0, atol=1e-300)
    assert residuals(zero, kind(alpha), np.zeros((1, 3)), np.ones(1)) == 1


def test_folds():
    K, w = gaussian(points(13)), np.random.default_rng(0).integers(1, 4, size=13)
    found = folded_residuals(K, w.astype(float), Truncation(3))
    for fold in range(5):
        rest = np.repeat(np.arange(13), np.where(np.arange(13) % 5 == fold, 0, w))
        for n in range(fold, 13, 5):
            expected = naive_truncation(K[np.ix_(rest, rest)], K[rest, n], 1.0, 3)
            assert found[n] == pytest.approx(expected, rel=1e-10)
    single = folded_residuals(K, np.ones(13), Perturbation(0.1), n_folds=99)
    np.testing.assert_allclose(single, Perturbation(0.1).left_out(class_spectrum(K)), rtol=1e-10)
    np.testing.assert_array_equal(
        folded_residuals(np.array([[3.0]]), np.ones(1), Truncation(1)), [3.0]
    )


# ------------------------------------------------------------------ a reference that moves


def sphere_class(n=30, d=6, seed=0, sigma=1.5):
    """Return a Gram matrix on the sphere, its mean, and the mean without each point."""
    K = gaussian(points(n, d, seed), sigma=sigma)
    w = np.random.default_rng(seed).integers(1, 4, size=n).astype(float)
    mean = karcher_mean(DenseGram(K), w)
    without = [karcher_mean(DenseGram(K), w * (np.arange(n) != left)).cosines for left in range(n)]
    return K, w, mean, np.array(without).T


def tangent_gram(K, cosines):
    stretch = np.arccos(cosines) / np.sqrt(1 - cosines**2)
    return stretch[:, None] * (K - np.outer(cosines, cosines)) * stretch


def test_leave_one_out_at_the_mean_is_brute_force():
    K, w, mean, without = sphere_class()
    first_order = left_out_mean_cosines(K, mean.point)
    shift = np.abs(mean.cosines[:, None] - without).max()
    assert shift > 0.02
    assert np.abs(first_order - without).max() < 0.1 * shift
    alphas = [1e-6, 1e-3, 0.1, 1.0]
    found = [
        left_out_tangent_residuals(K, w, mean.cosines, cosines, alphas).T
        for cosines in (without, first_order)
    ]
    for number, alpha in enumerate(alphas):
        expected = []
        for left in range(len(K)):
            T = tangent_gram(K, without[:, left])
            rest = np.repeat(np.arange(len(K)), w.astype(int))
            rest = rest[rest != left]
            part = T[np.ix_(rest, rest)]
            expected.append(naive_perturbation(part, T[rest, left], T[left, left], alpha))
        for each in found:
            np.testing.assert_allclose(each[number], expected, rtol=0.03)
        # a reference that does not move gives residuals that are too small
        fixed = Perturbation(alpha).left_out(class_spectrum(tangent_gram(K, mean.cosines), w))
        assert np.all(fixed < expected)
        assert alpha > 1e-3 or np.median(fixed / np.array(expected)) < 0.5


def test_without_regularisation_the_mean_stretches_the_plain_residual():
    K, w, mean, _ = sphere_class()
    cosines = left_out_mean_cosines(K, mean.point)
    found = left_out_tangent_residuals(K, w, mean.cosines, cosines, [0.0])[:, 0]
    plain = Perturbation(0.0).left_out(class_spectrum(K, w))
    theta = np.arccos(np.diagonal(cosines))
    np.testing.assert_allclose(found, plain * (theta / np.sin(theta)) ** 2, rtol=1e-6)


def test_the_residual_of_one_of_two_points_is_their_distance():
    """Without one of them the reference is the other, and there is no direction left."""
    K = np.array([[1.0, 0.3], [0.3, 1.0]])
    mean = karcher_mean(DenseGram(K))
    cosines = left_out_mean_cosines(K, mean.point)
    found = left_out_tangent_residuals(K, np.ones(2), mean.cosines, cosines, [1e-6, 1e-2, 1.0])
    np.testing.assert_allclose(found, np.arccos(0.3) ** 2, rtol=1e-6)


# ------------------------------------------------------------------ precision


@settings(max_examples=60, deadline=None)
@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 10), st.integers(1, 3)),
        elements=st.floats(-3, 3).map(lambda value: round(value, 2)),
    ),
    alpha=st.sampled_from([0.0, 1e-300, 1e-20, 1e-15, 1e-13, 1e-9, 1.0, 1e12]),
    scale=st.sampled_from([1e-12, 1.0, 1e12]),
    precision=st.sampled_from([np.float32, np.float64]),
)
@every_filter
def test_residuals_are_between_zero_and_the_diagonal(kind, X, alpha, scale, precision):
    """With duplicates, null directions and α of every size."""
    K = (scale * gaussian(X)).astype(precision)
    spectrum = class_spectrum(K)
    kept, rounding = kind(alpha), 64 * np.finfo(precision).eps * scale
    left, placed = kept.left_out(spectrum), residuals(spectrum, kept, K, np.diagonal(K))
    assert np.all(left >= 0)
    assert np.all(placed >= -rounding)
    assert np.all(tie_within_rounding(placed[:, None], np.diagonal(K)) >= 0)
    for found in (left, placed):
        assert np.all(found <= scale + rounding)


@every_filter
def test_training_points_are_interpolated(kind):
    K = gaussian(points())
    found = residuals(class_spectrum(K), kind(0.0), K, np.ones(25))
    np.testing.assert_allclose(found, 0, atol=1e-12)


@every_filter
def test_single_precision_limits_alpha(kind):
    X, new = points(200, 2), points(10, 2, seed=1)
    K, k = gaussian(X), gaussian(new, X)
    spectrum = class_spectrum(K.astype(np.float32))
    assert spectrum.rounding > 1e-5
    assert class_spectrum(K).rounding < 1e-12
    for alpha in (0.0, 1e-9, 1e-2):  # below the rounding, α has no effect
        found = residuals(spectrum, kind(alpha), k.astype(np.float32), np.ones(10))
        expected = residuals(class_spectrum(K), kind(max(alpha, 1e-4)), k, np.ones(10))
        np.testing.assert_allclose(found, expected, rtol=0, atol=3e-3)


def test_the_positive_part_of_an_indefinite_matrix_is_used():
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    s = np.array([3.0, 2.0, 1.0, 0.5, -0.5, -2.0])
    whole, part = class_spectrum((U * s) @ U.T), class_spectrum((U * np.maximum(s, 0)) @ U.T)
    np.testing.assert_allclose(whole.values, part.values, atol=1e-14)
    for alpha in (0.0, 0.1):
        found, expected = (Perturbation(alpha).left_out(each) for each in (whole, part))
        np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.all(Perturbation(1e-3).gains(whole)[4:] == 0)
    k = rng.standard_normal((4, 6))
    assert np.all(np.isfinite(residuals(whole, Perturbation(1e-9), k, np.ones(4))))


@every_filter
def test_entries_that_are_rounding_of_larger_terms(kind):
    """With the size of the terms given, rounding errors are not used as directions."""
    noise = 1e-17 * np.random.default_rng(0).standard_normal((9, 12))
    K, k, own = noise[:8] @ noise[:8].T / 1e-17, noise[8:] @ noise[:8].T / 1e-17, np.array([1e-16])
    sized = class_spectrum(K, entry_size=1.0)
    np.testing.assert_allclose(residuals(sized, kind(0.0), k, own), own, rtol=0.1)
    assert residuals(class_spectrum(K), kind(0.0), k, own) < 0.8 * own


# ------------------------------------------------------------------ without the spectrum


@every_filter
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_triangular_directions(kind, dtype):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 30)).astype(dtype)
    if dtype is np.complex128:
        A = A + 1j * rng.standard_normal(A.shape)
    K, k = A[:9] @ A[:9].conj().T, A[9:] @ A[:9].conj().T
    weights, kept = rng.uniform(0.5, 3, 9), kind(0.3)
    D = kept.directions(K, weights)
    np.testing.assert_array_equal(D, np.tril(D))
    spectrum = class_spectrum(K, weights)
    expected = captured(k @ spectrum.directions(), kept.gains(spectrum))
    np.testing.assert_allclose(np.sum(np.abs(k @ D) ** 2, axis=1), expected, rtol=1e-11)


@every_filter
def test_no_triangular_directions_where_they_are_inaccurate(kind):
    K = np.ones((4, 4)) + 1e-13 * np.eye(4)
    assert kind(1e-8).directions(K, np.ones(4)) is None  # α is small compared with the trace
    assert kind(0.0).directions(K, np.ones(4)) is None
    assert kind(0.1).directions(np.diag([1.0, -0.5, 1.0]), np.ones(3)) is None  # indefinite
    assert kind(0.1).directions(K, np.ones(4)) is not None
    assert Truncation(2, 0.1).directions(K, np.ones(4)) is None
    K[1, 2] = K[2, 1] = np.nan
    for decompose in (kind(0.1).directions, class_spectrum):
        with pytest.raises(ValueError, match=r"Gram matrix of a class .* not finite.*Rescale"):
            decompose(K, np.ones(4))


@pytest.mark.parametrize("kind", [Perturbation, RidgeResidual, partial(Truncation, 3)])
def test_several_alphas_are_columns(kind):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((8, 5))
    spectrum = class_spectrum(A @ A.T, rng.uniform(0.5, 2, 8))  # three null directions
    alphas = np.array([0.0, 1e-12, 0.1, 3.0])
    gains = kind(alpha=alphas).gains(spectrum)
    for column, alpha in zip(gains.T, alphas, strict=True):
        np.testing.assert_array_equal(column, kind(alpha=float(alpha)).gains(spectrum))
    if kind in FILTERS:
        left = kind(alpha=alphas).left_out(spectrum)
        for column, alpha in zip(left.T, alphas, strict=True):
            expected = kind(alpha=float(alpha)).left_out(spectrum)
            np.testing.assert_allclose(column, expected, rtol=1e-12, atol=1e-14)
