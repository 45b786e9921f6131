"""Sums by passes over rows, compared with those of all rows at once."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse

from orthodrome import KernelPCA
from orthodrome.coordinates import Coordinates, anchor_coordinates, choose_anchors
from orthodrome.coordinates.blocks import AnchorMap
from orthodrome.eigen.features import centered_sums
from orthodrome.kernels import Gaussian, Polynomial
from orthodrome.rows import as_rows
from orthodrome.rows.moments import row_moments
from orthodrome.sphere.karcher import log_sums, pull_sums

N = 300
weighted = pytest.mark.parametrize("weighted", [False, True])


def data(n=N, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def weights_of(weighted, n=N):
    drawn = np.random.default_rng(5).integers(0, 4, size=n).astype(np.float64)
    return drawn if weighted else np.ones(n)


def batches(X):
    return [X[:1], X[1:120], X[120:]]


class Case:
    """A map to vectors, the rows in batches, and the vectors of all rows."""

    def __init__(self, kernel, *, unit=False):
        self.X = data()
        self.kernel = kernel.fit(self.X)
        anchors = choose_anchors(self.kernel, self.X, 12, random_state=0)
        self.map = AnchorMap.from_anchors(
            self.kernel, anchors, self.X.dtype, unit=unit, radius=None
        )
        self.rows = as_rows(batches(self.X), kernel, KernelPCA())
        plain = anchor_coordinates(self.kernel, self.X, anchors).toarray()
        self.squares = np.sum(plain**2, axis=1)
        self.features = plain / np.sqrt(self.squares)[:, None] if unit else plain
        self.diagonal = np.diagonal(self.kernel(self.X))

    def points(self, weights=None):
        return Coordinates(self.rows.zip(weights=weights), self.map)


def assert_sums(found, expected):
    assert len(found) == len(expected)
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        size = 1e-10 * np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=size, err_msg=str(number))


@weighted
@pytest.mark.parametrize("unit", [False, True])
def test_moments_about_a_center(weighted, unit):
    case = Case(Polynomial(degree=2), unit=unit)
    w, center = weights_of(weighted), data(1, case.features.shape[1], seed=3)[0]
    z = case.features - center
    scatter, traces = (z * w[:, None]).T @ z, (w @ case.diagonal, w @ case.diagonal**2)
    assert np.ptp(case.diagonal) > 1
    found = case.points(w if weighted else None).reduce(partial(centered_sums, center))
    assert_sums(found, [w.sum(), w @ z, scatter, *traces, w @ case.squares])


@weighted
@pytest.mark.parametrize("unit", [False, True])
def test_what_pulls_a_point_and_logs_at_it(weighted, unit):
    """With features of unit length, and with those that lie a little inside of the sphere."""
    case = Case(Gaussian(sigma=3.0), unit=unit)
    w = weights_of(weighted)
    point = case.features.mean(axis=0)
    point /= np.linalg.norm(point)
    cosines = case.features @ point
    angles = np.arccos(cosines)
    stretches = angles / np.sin(angles)
    points = case.points(w if weighted else None)

    lengths = np.sqrt(case.squares) if unit else np.ones(N)
    pulled = (w * stretches) @ case.features
    expected = [w.sum(), w @ angles**2, w @ (stretches * cosines), pulled, 0.0]
    assert_sums(points.reduce(partial(pull_sums, point)), expected)

    z = stretches[:, None] * (case.features - np.outer(cosines, point))
    own = np.arccos(cosines * lengths)  # the points have length 1 and differ from their features
    expected = [w.sum(), (z * w[:, None]).T @ z, w @ own**2, w @ stretches**2, w.sum()]
    assert_sums(points.reduce(partial(log_sums, point)), [*expected, w @ case.squares])


@weighted
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_moments_of_rows_are_those_of_all_pairs(weighted, kind, offset):
    X = data(90) + offset
    w = weights_of(weighted, 90)
    p = w / w.sum()
    distances = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
    exact, mean = float(p @ distances @ p), p @ X
    rows = X if kind == "dense" else scipy.sparse.csr_array(X)
    rows = as_rows(rows, Gaussian(), KernelPCA()).zip(weights=w if weighted else None)
    center = X[4] if kind == "dense" else np.zeros(3)
    found = row_moments(rows, center)
    square = float(p @ np.sum((X - center) ** 2, axis=1))
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12, atol=1e-12)
    # what is called rounding holds the error, and is no more than rounding
    assert abs(found.squared_distance - exact) <= found.rounding + 1e-12 * exact
    assert np.finfo(np.float64).eps * square <= found.rounding <= 1e-13 * square
