"""Laws of the spectral filters: naive oracles, leave-one-out, null directions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from laws_classification import gaussian, naive_perturbation, naive_ridge
from orthodrome.classification.filters import (
    Perturbation,
    RidgeResidual,
    Truncation,
    class_spectrum,
    squared_magnitudes,
    tie_within_rounding,
)

FILTERS = {Perturbation: naive_perturbation, RidgeResidual: naive_ridge}
every_filter = pytest.mark.parametrize("kind", list(FILTERS), ids=lambda kind: kind.__name__)


def spectrum_of(K, weights=None, **options):
    """Return the spectrum of a group of one class."""
    weights = np.ones(len(K)) if weights is None else weights
    return class_spectrum(K[None], weights[None], **options)


def left_out(kind, spectrum, alpha):
    return kind().left_out(spectrum, np.array([[alpha]]))[0, :, 0]


def residuals(kind, spectrum, alpha, k, own):
    gains = kind().gains(spectrum, np.array([[alpha]]))[0, :, 0]
    return own - squared_magnitudes(k @ spectrum.directions()[0]) @ gains


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
    spectrum, rounding = spectrum_of(K), 64 * np.finfo(precision).eps * scale
    left = left_out(kind, spectrum, alpha)
    placed = residuals(kind, spectrum, alpha, K, np.diagonal(K))
    assert np.all(left >= 0)
    assert np.all(placed >= -rounding)
    assert np.all(tie_within_rounding(placed[:, None], np.diagonal(K)) >= 0)
    for found in (left, placed):
        assert np.all(found <= scale + rounding)


def test_the_positive_part_of_an_indefinite_matrix_is_used():
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    s = np.array([3.0, 2.0, 1.0, 0.5, -0.5, -2.0])
    whole, part = spectrum_of((U * s) @ U.T), spectrum_of((U * np.maximum(s, 0)) @ U.T)
    np.testing.assert_allclose(whole.values, part.values, atol=1e-14)
    for alpha in (0.0, 0.1):
        found, expected = (left_out(Perturbation, each, alpha) for each in (whole, part))
        np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.all(Perturbation().gains(whole, np.array([[1e-3]]))[0, 4:] == 0)
    k = rng.standard_normal((4, 6))
    assert np.all(np.isfinite(residuals(Perturbation, whole, 1e-9, k, 1.0)))


@every_filter
def test_entries_that_are_rounding_of_larger_terms(kind):
    """With the size of the terms given, rounding errors are not used as directions."""
    noise = 1e-17 * np.random.default_rng(0).standard_normal((9, 12))
    K, k, own = noise[:8] @ noise[:8].T / 1e-17, noise[8:] @ noise[:8].T / 1e-17, np.array([1e-16])
    sized = spectrum_of(K, entry_size=1.0)
    np.testing.assert_allclose(residuals(kind, sized, 0.0, k, own), own, rtol=0.1)
    assert residuals(kind, spectrum_of(K), 0.0, k, own) < 0.8 * own


@every_filter
def test_no_triangular_directions_where_they_are_inaccurate(kind):
    K, ones = np.ones((4, 4)) + 1e-13 * np.eye(4), np.ones(4)
    assert kind().directions(K, ones, 1e-8) is None  # α is small compared with the trace
    assert kind().directions(K, ones, 0.0) is None
    assert kind().directions(np.diag([1.0, -0.5, 1.0]), np.ones(3), 0.1) is None  # indefinite
    assert kind().directions(K, ones, 0.1) is not None
    assert Truncation(2).directions(K, ones, 0.1) is None
    K[1, 2] = K[2, 1] = np.nan
    for decompose in (lambda K: kind().directions(K, ones, 0.1), spectrum_of):
        with pytest.raises(ValueError, match=r"Gram matrix of a class .* not finite.*Rescale"):
            decompose(K)
