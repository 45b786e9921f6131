"""Laws of the spectral filters of a class: their naive twins, leave-one-out, null directions."""

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
    LeftOutTangents,
    Perturbation,
    RidgeResidual,
    Truncation,
    captured,
    class_spectrum,
    folded_residuals,
    left_out_mean_cosines,
    leveled,
    remainder,
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


# ------------------------------------------------------------------ other points


@every_alpha
@every_filter
def test_residuals_against_the_naive_twin(kind, alpha):
    X, new = points(), points(10, seed=1)
    K, k = gaussian(X), gaussian(new, X)
    found = residuals(class_spectrum(K), kind(alpha), k, np.ones(10))
    expected = [FILTERS[kind](K, row, 1.0, alpha) for row in k]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@every_alpha
@every_filter
def test_weights_are_repetition(kind, alpha):
    X, new = points(), points(10, seed=1)
    w = np.random.default_rng(2).integers(1, 5, size=25)
    repeated = np.repeat(X, w, axis=0)
    k = gaussian(new, repeated)
    expected = [FILTERS[kind](gaussian(repeated), row, 1.0, alpha) for row in k]
    spectrum = class_spectrum(gaussian(X), w.astype(float))
    found = residuals(spectrum, kind(alpha), gaussian(new, X), np.ones(10))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_one_decomposition_serves_several_filters():
    X, new = points(), points(10, seed=1)
    spectrum = class_spectrum(gaussian(X))
    kinds = [Perturbation(0.1), Perturbation(1e-5), RidgeResidual(0.1), Truncation(3)]
    gains = np.column_stack([kept.gains(spectrum) for kept in kinds])
    k = gaussian(new, X)
    together = remainder(np.ones(10), captured(k @ spectrum.directions(), gains))
    assert together.shape == (10, 4)
    for kept, column in zip(kinds, together.T, strict=True):
        np.testing.assert_allclose(column, residuals(spectrum, kept, k, np.ones(10)), atol=1e-14)


@pytest.mark.parametrize("n_components", [1, 4, 10])
def test_truncation_against_the_naive_twin(n_components):
    X, new = points(), points(10, seed=1)
    K, k = gaussian(X), gaussian(new, X)
    found = residuals(class_spectrum(K), Truncation(n_components), k, np.ones(10))
    expected = [naive_truncation(K, row, 1.0, n_components) for row in k]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    both = residuals(class_spectrum(K), Truncation(n_components, 0.3), k, np.ones(10))
    assert np.all(both > found)


def test_the_filters_agree_where_they_should():
    X, new = points(), points(10, seed=1)
    spectrum, k = class_spectrum(gaussian(X)), gaussian(new, X)
    exact = residuals(spectrum, Perturbation(0.0), k, np.ones(10))
    for same in (RidgeResidual(0.0), Truncation(25), Truncation(99), Perturbation(1e-15)):
        np.testing.assert_allclose(residuals(spectrum, same, k, np.ones(10)), exact, atol=1e-11)
    # the penalty is not part of the ridge residual, which lies between the others
    between = residuals(spectrum, RidgeResidual(0.1), k, np.ones(10))
    assert np.all(exact < between)
    assert np.all(between < residuals(spectrum, Perturbation(0.1), k, np.ones(10)))


@every_filter
def test_residuals_grow_with_alpha(kind):
    X, new = points(), points(10, seed=1)
    spectrum, k = class_spectrum(gaussian(X)), gaussian(new, X)
    grid = [0.0, 1e-6, 1e-3, 0.1, 1.0, 100.0]
    found = [residuals(spectrum, kind(alpha), k, np.ones(10)) for alpha in grid]
    assert np.all(np.diff(found, axis=0) > 0)
    assert np.all(np.array(found) <= 1)


# ------------------------------------------------------------------ points of the class itself


@every_alpha
@every_filter
def test_leave_one_out_against_brute_force(kind, alpha):
    K = gaussian(points())
    expected = left_out_naively(FILTERS[kind], K, alpha)
    np.testing.assert_allclose(kind(alpha).left_out(class_spectrum(K)), expected, rtol=1e-10)


@every_alpha
@every_filter
def test_leave_one_out_leaves_out_all_copies(kind, alpha):
    K = gaussian(points())
    w = np.random.default_rng(2).integers(1, 5, size=25)
    expected = left_out_naively(FILTERS[kind], K, alpha, w)
    found = kind(alpha).left_out(class_spectrum(K, w.astype(float)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@every_filter
def test_leave_one_out_of_dependent_points(kind):
    """Five in a plane, and one that leaves it: only that one is not in the span of the others."""
    X = np.column_stack([points(6, 2), np.zeros(6)])
    X[5] = [0.3, -0.2, 2.0]
    found = kind(0.0).left_out(class_spectrum(X @ X.T))
    np.testing.assert_allclose(found, [0, 0, 0, 0, 0, 4.0], atol=1e-11)
    near = kind(1e-7).left_out(class_spectrum(X @ X.T))
    np.testing.assert_allclose(near, [0, 0, 0, 0, 0, 4.0], atol=1e-5)


@every_filter
def test_leave_one_out_keeps_its_digits(kind):
    """Residuals of 1e-9 and weights of 1e9 beside an α of 1: no difference of large numbers."""
    K = np.diag([1e-9, 1.0, 2.0])
    np.testing.assert_allclose(kind(1.0).left_out(class_spectrum(K)), np.diag(K), rtol=1e-14)
    found = kind(1.0).left_out(class_spectrum(K, np.array([1e9, 1.0, 1e-9])))
    np.testing.assert_allclose(found, np.diag(K), rtol=1e-14)


@every_filter
def test_one_point_and_none(kind):
    for alpha in (0.0, 1e-8, 1.0):
        spectrum = class_spectrum(np.array([[2.0]]), np.array([3.0]))
        np.testing.assert_allclose(kind(alpha).left_out(spectrum), [2.0], rtol=1e-14)
        nothing = class_spectrum(np.zeros((3, 3)))
        np.testing.assert_allclose(kind(alpha).left_out(nothing), 0.0, atol=1e-300)
        assert residuals(nothing, kind(alpha), np.zeros((1, 3)), np.ones(1)) == 1


def test_folds_against_the_naive_twin():
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
    """A Gram matrix on the sphere, its mean, and the mean without each point."""
    K = gaussian(points(n, d, seed), sigma=sigma)
    w = np.random.default_rng(seed).integers(1, 4, size=n).astype(float)
    mean = karcher_mean(DenseGram(K), w)
    without = []
    for left in range(n):
        weights = w.copy()
        weights[left] = 0
        without.append(karcher_mean(DenseGram(K), weights).cosines)
    return K, w, mean, np.array(without).T


def tangent_gram(K, cosines):
    stretch = np.arccos(cosines) / np.sqrt(1 - cosines**2)
    return stretch[:, None] * (K - np.outer(cosines, cosines)) * stretch


def test_the_mean_without_a_point_to_first_order():
    K, _, mean, without = sphere_class()
    found = left_out_mean_cosines(K, mean.point)
    shift = np.abs(mean.cosines[:, None] - without).max()
    assert np.abs(found - without).max() < 0.1 * shift
    assert shift > 0.02


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("exact", [True, False])
def test_leave_one_out_at_the_mean_against_brute_force(alpha, exact):
    K, w, mean, without = sphere_class()
    cosines = without if exact else left_out_mean_cosines(K, mean.point)
    found = LeftOutTangents.of(K, w, mean.cosines, cosines).perturbation(alpha)
    expected = []
    for left in range(len(K)):
        T = tangent_gram(K, without[:, left])
        rest = np.repeat(np.arange(len(K)), w.astype(int))
        rest = rest[rest != left]
        part = T[np.ix_(rest, rest)]
        expected.append(naive_perturbation(part, T[rest, left], T[left, left], alpha))
    np.testing.assert_allclose(found, expected, rtol=0.03)
    # as if the reference did not know of the point: too small, for a small α by all
    fixed = Perturbation(alpha).left_out(class_spectrum(tangent_gram(K, mean.cosines), w))
    assert np.all(fixed < expected)
    if alpha <= 1e-3:
        assert np.median(fixed / np.array(expected)) < 0.5


def test_without_regularisation_the_mean_stretches_the_plain_residual():
    K, w, mean, _ = sphere_class()
    tangents = LeftOutTangents.of(K, w, mean.cosines, left_out_mean_cosines(K, mean.point))
    plain = Perturbation(0.0).left_out(class_spectrum(K, w))
    theta = np.arccos(np.diagonal(left_out_mean_cosines(K, mean.point)))
    np.testing.assert_allclose(
        tangents.perturbation(0.0), plain * (theta / np.sin(theta)) ** 2, rtol=1e-6
    )


def test_two_points_on_the_sphere_are_as_far_as_they_are():
    """Without one of them the reference is the other, and there is no direction left."""
    K = np.array([[1.0, 0.3], [0.3, 1.0]])
    mean = karcher_mean(DenseGram(K))
    tangents = LeftOutTangents.of(K, np.ones(2), mean.cosines, left_out_mean_cosines(K, mean.point))
    for alpha in (1e-6, 1e-2, 1.0):
        np.testing.assert_allclose(tangents.perturbation(alpha), np.arccos(0.3) ** 2, rtol=1e-6)


# ------------------------------------------------------------------ numbers of every kind


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
def test_never_negative_never_nan(kind, X, alpha, scale, precision):
    """Duplicates and null directions and an α of every size: between 0 and k(x, x)."""
    K = (scale * gaussian(X)).astype(precision)
    spectrum = class_spectrum(K)
    kept, rounding = kind(alpha), 64 * np.finfo(precision).eps * scale
    left, placed = kept.left_out(spectrum), residuals(spectrum, kept, K, np.diagonal(K))
    assert np.all(left >= 0)
    assert np.all(placed >= -rounding)
    assert np.all(leveled(placed[:, None], np.diagonal(K)) >= 0)
    for found in (left, placed):
        assert np.all(found <= scale + rounding)


@every_filter
def test_training_points_are_interpolated(kind):
    K = gaussian(points())
    found = residuals(class_spectrum(K), kind(0.0), K, np.ones(25))
    np.testing.assert_allclose(found, 0, atol=1e-12)


@every_filter
def test_single_precision_is_trusted_to_its_own(kind):
    X, new = points(200, 2), points(10, 2, seed=1)
    K, k = gaussian(X), gaussian(new, X)
    spectrum = class_spectrum(K.astype(np.float32))
    assert spectrum.rounding > 1e-5
    assert class_spectrum(K).rounding < 1e-12
    for alpha in (0.0, 1e-9, 1e-2):  # below what it can tell, α has no effect
        found = residuals(spectrum, kind(alpha), k.astype(np.float32), np.ones(10))
        expected = residuals(class_spectrum(K), kind(max(alpha, 1e-4)), k, np.ones(10))
        np.testing.assert_allclose(found, expected, rtol=0, atol=3e-3)


@every_filter
def test_the_scale_of_the_kernel(kind):
    X, new = points(), points(10, seed=1)
    K, k = gaussian(X), gaussian(new, X)
    plain, scaled = class_spectrum(K), class_spectrum(1e8 * K)
    np.testing.assert_allclose(
        kind(1e7).left_out(scaled), 1e8 * kind(0.1).left_out(plain), rtol=1e-10
    )
    np.testing.assert_allclose(
        residuals(scaled, kind(1e7), 1e8 * k, np.full(10, 1e8)),
        1e8 * residuals(plain, kind(0.1), k, np.ones(10)),
        rtol=1e-10,
    )


def test_of_an_indefinite_matrix_the_positive_part_is_taken():
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    s = np.array([3.0, 2.0, 1.0, 0.5, -0.5, -2.0])
    whole, part = class_spectrum((U * s) @ U.T), class_spectrum((U * np.maximum(s, 0)) @ U.T)
    np.testing.assert_allclose(whole.values, part.values, atol=1e-14)
    for alpha in (0.0, 0.1):
        np.testing.assert_allclose(
            Perturbation(alpha).left_out(whole), Perturbation(alpha).left_out(part), atol=1e-12
        )
    k = rng.standard_normal((4, 6))
    null = class_spectrum((U * s) @ U.T)
    assert np.all(Perturbation(1e-3).gains(null)[4:] == 0)
    assert np.all(np.isfinite(residuals(null, Perturbation(1e-9), k, np.ones(4))))


@every_filter
def test_entries_that_are_rounding_of_larger_terms(kind):
    """Whoever made the matrix says how large they were, and nothing is read out of the rest."""
    noise = 1e-17 * np.random.default_rng(0).standard_normal((9, 12))
    K, k, own = noise[:8] @ noise[:8].T / 1e-17, noise[8:] @ noise[:8].T / 1e-17, np.array([1e-16])
    told = class_spectrum(K, entry_size=1.0)
    np.testing.assert_allclose(residuals(told, kind(0.0), k, own), own, rtol=0.1)
    assert residuals(class_spectrum(K), kind(0.0), k, own) < 0.8 * own


def test_values_that_are_not_finite():
    with pytest.raises(ValueError, match=r"Gram matrix of a class .* not finite.*Rescale"):
        class_spectrum(np.array([[np.inf, 0.0], [0.0, 1.0]]))


# ---------------------------------------------------------------------------- without the spectrum


@pytest.mark.parametrize("kind", [Perturbation, RidgeResidual])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_directions_capture_what_the_spectrum_does(kind, dtype):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 30)).astype(dtype)
    if dtype is np.complex128:
        A = A + 1j * rng.standard_normal(A.shape)
    K = A[:9] @ A[:9].conj().T
    k = A[9:] @ A[:9].conj().T
    weights = rng.uniform(0.5, 3, 9)
    kept = kind(0.3)
    D = kept.directions(K, weights)
    np.testing.assert_array_equal(D, np.tril(D))
    spectrum = class_spectrum(K, weights)
    expected = captured(k @ spectrum.directions(), kept.gains(spectrum))
    np.testing.assert_allclose(np.sum(np.abs(k @ D) ** 2, axis=1), expected, rtol=1e-11)


@pytest.mark.parametrize("kind", [Perturbation, RidgeResidual])
def test_directions_are_refused_where_they_are_not_to_be_trusted(kind):
    K = np.ones((4, 4)) + 1e-13 * np.eye(4)
    assert kind(1e-8).directions(K, np.ones(4)) is None  # α against the trace
    assert kind(0.0).directions(K, np.ones(4)) is None
    assert kind(0.1).directions(np.diag([1.0, -0.5, 1.0]), np.ones(3)) is None  # indefinite
    assert kind(0.1).directions(K, np.ones(4)) is not None
    assert Truncation(2, 0.1).directions(K, np.ones(4)) is None
    K[1, 2] = K[2, 1] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        kind(0.1).directions(K, np.ones(4))


@pytest.mark.parametrize("kind", [Perturbation, RidgeResidual, partial(Truncation, 3)])
def test_several_alphas_are_columns(kind):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((8, 5))
    spectrum = class_spectrum(A @ A.T, rng.uniform(0.5, 2, 8))  # three null directions
    alphas = np.array([0.0, 1e-12, 0.1, 3.0])
    gains = kind(alpha=alphas).gains(spectrum)
    for column, alpha in zip(gains.T, alphas, strict=True):
        np.testing.assert_array_equal(column, kind(alpha=float(alpha)).gains(spectrum))
    if kind in (Perturbation, RidgeResidual):
        left = kind(alpha=alphas).left_out(spectrum)
        for column, alpha in zip(left.T, alphas, strict=True):
            expected = kind(alpha=float(alpha)).left_out(spectrum)
            np.testing.assert_allclose(column, expected, rtol=1e-12, atol=1e-14)
