"""Principal axes of features."""

import numpy as np
import pytest

from orthodrome.eigen.features import feature_axes

EPS = np.finfo(np.float64).eps


VARIANCES = np.array([4.0, 3.0, 2.0, 1.0, 0.0])


def planted(variances=VARIANCES, seed=0):
    size = (len(variances), len(variances))
    frame = np.linalg.qr(np.random.default_rng(seed).standard_normal(size))[0]
    return (frame * variances) @ frame.T, frame


def axes_of(n_components, *, total=10.0, n=100, floor=1e-12, variances=VARIANCES):
    covariance, frame = planted(variances)
    found = feature_axes(covariance, n_components, total=total, n=n, floor=floor, eps=EPS)
    return found, frame


def check_axes(found, frame, variances):
    np.testing.assert_allclose(found[0], variances, rtol=1e-12, atol=0)
    assert found[1].shape == (len(frame), len(variances))
    there = np.asarray(variances) > 0
    k = np.count_nonzero(there)
    np.testing.assert_allclose(np.abs(np.diag(frame[:, :k].T @ found[1][:, :k])), 1, rtol=1e-12)
    assert np.all(found[1][:, ~there] == 0)


NO, FEW = np.zeros(3), VARIANCES[:4]
CASES = [
    *[(count, {}, VARIANCES[:count]) for count in (1, 3, 4)],
    # a number above the rank is filled with zeros, up to the number of points
    *[
        (c, {"n": n}, np.pad(VARIANCES, (0, 4))[:k])
        for c, n, k in ((5, 99, 5), (9, 99, 9), (9, 7, 7))
    ],
    (None, {}, FEW),
    (None, {"variances": NO}, [0.0]),
    # the fewest that explain a part
    *[
        (part, {"total": 10.0 - 1e-9}, VARIANCES[:count])
        for part, count in ((0.05, 1), (0.39, 1), (0.41, 2), (0.71, 3), (1.0, 4))
    ],
    # a part of more than the features hold takes all of them
    (0.9, {"total": 20.0}, FEW),
    (0.9, {"total": 20.0, "variances": NO}, [0.0]),
]


@pytest.mark.parametrize(("n_components", "options", "expected"), CASES)
def test_as_many_axes_as_are_asked_for(n_components, options, expected):
    check_axes(*axes_of(n_components, **options), expected)


def test_what_may_be_rounding_is_not_there():
    variances = np.array([1.0, 1e-3, 1e-5])
    for floor, count in ((1e-2, 1), (1e-4, 2), (1e-6, 3)):
        found, _ = axes_of(None, variances=variances, floor=floor)
        np.testing.assert_allclose(found[0], variances[:count], rtol=1e-9)
        found, _ = axes_of(3, variances=variances, floor=floor)
        assert np.count_nonzero(found[0]) == count
        assert np.all(np.any(found[1] != 0, axis=0) == (found[0] > 0))
    found, _ = axes_of(None, variances=np.array([1.0, 5 * EPS]), floor=0.0)
    assert len(found[0]) == 1
