"""Laws of the neighbourhood metrics, against neighbours listed one point at a time."""

import numpy as np
import pytest
import scipy.sparse
import scipy.spatial.distance
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from orthodrome._core import threads
from orthodrome.gram import DenseGram, gram_operator
from orthodrome.kernels import (
    Exponential,
    Gaussian,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    Power,
    Radial,
    Spherical,
    Wave,
)
from orthodrome.metrics import (
    coranking_matrix,
    neighborhood_area,
    neighborhood_preservation,
    neighborhoods,
)

N = 37


def data(n=N, d=5, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def neighbours(distances, i):
    """The other points from near to far; of those equally far the first row comes first."""
    others = [j for j in range(len(distances)) if j != i]
    return sorted(others, key=lambda j: (distances[i, j], j))


def slow_preservation(high, low):
    n = len(high)
    lists = [(neighbours(high, i), neighbours(low, i)) for i in range(n)]
    return np.array(
        [
            sum(len(set(before[:k]) & set(after[:k])) for before, after in lists) / (k * n)
            for k in range(1, n)
        ]
    )


def slow_coranking(high, low):
    n = len(high)
    counts = np.zeros((n - 1, n - 1), dtype=int)
    for i in range(n):
        before, after = neighbours(high, i), neighbours(low, i)
        for j in before:
            counts[before.index(j), after.index(j)] += 1
    return counts


def euclidean(X):
    return scipy.spatial.distance.cdist(np.float64(X), np.float64(X))


def feature_space(K):
    """‖Φ(x) - Φ(y)‖² from kernel values; kernels are not all positive definite."""
    return np.diagonal(K)[:, None] + np.diagonal(K) - 2 * K


def geodesic(E):
    """Angles between the points Exp(e) of the sphere, by their cosines."""
    E = np.float64(E)
    lengths = np.linalg.norm(E, axis=1, keepdims=True)
    points = np.hstack([np.cos(lengths), np.sin(lengths) * E / lengths])
    return np.arccos(np.clip(points @ points.T, -1, 1))


def assert_both(high, low, X, embedding, **options):
    """Both functions are the slow ones, and agree with each other."""
    quality = neighborhood_preservation(X, embedding, **options)
    counts = coranking_matrix(X, embedding, **options)
    np.testing.assert_allclose(quality, slow_preservation(high, low), rtol=1e-14)
    np.testing.assert_array_equal(counts, slow_coranking(high, low))
    assert quality.dtype == np.float64
    assert counts.dtype == np.int64


# Distances of the embedding -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [2, 3, N])
def test_euclidean(n, dtype):
    X = data(n, dtype=dtype)
    assert_both(euclidean(X), euclidean(X[:, :2]), X, X[:, :2])


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_geodesic(scale):
    """Also beyond π, where Exp has gone past the antipode."""
    X, E = data(), scale * data(d=2, seed=1)
    assert_both(euclidean(X), geodesic(E), X, E, metric="geodesic")
    differs = neighborhood_preservation(X, E) != neighborhood_preservation(X, E, metric="geodesic")
    assert np.any(differs)


def test_precomputed():
    """Distances may be not Euclidean, not even positive, and the diagonal does not count."""
    X, L, M = data(), euclidean(data(d=2, seed=1)), data(N, N, seed=1)
    M = M + M.T
    for distances in (L, M, M + 100 * np.eye(N)):
        assert_both(euclidean(X), distances, X, distances, metric="precomputed")


# Distances of the data ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(),
        Exponential(sigma=2.0),
        Matern(nu=1.5),
        Power(beta=1.0),
        Wave(sigma=0.3),  # rises again: far points may be nearer in feature space
        Polynomial(3),  # k(x, x) differs between points
        Normalized(Polynomial(3)),
        Linear(),
    ],
    ids=repr,
)
def test_kernels(kernel):
    X, E = data(d=2), data(d=2, seed=1)
    K = kernel.fit(X)(X)
    assert_both(feature_space(K), euclidean(E), X, E, kernel=kernel)
    is_monotone = isinstance(kernel, Radial) and kernel.decreasing
    assert np.all(neighborhood_preservation(X, X, kernel=kernel) == 1) or not is_monotone


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_precomputed_kernels_operators_and_callables(dtype):
    X, E = data(d=3, dtype=dtype), data(d=2, seed=1)
    kernel = Polynomial(2).fit(X)
    K = kernel(X)
    high, low = feature_space(np.float64(K)), euclidean(E)
    assert_both(high, low, K, E, kernel="precomputed")
    assert_both(high, low, DenseGram(K), E)
    assert_both(high, low, gram_operator(kernel, X, storage="recompute"), E)
    assert_both(high, low, X, E, kernel=lambda A, B: kernel(A, B))


def test_names_fitted_kernels_and_sparse_data():
    X, E = data() * (data(seed=3) > 0), data(d=2, seed=1)
    kernel = Wave(sigma="mean")
    by_object = neighborhood_preservation(X, E, kernel=kernel)
    assert not hasattr(kernel, "sigma_")
    np.testing.assert_array_equal(neighborhood_preservation(X, E, kernel="wave"), by_object)
    fitted = Wave(sigma="mean").fit(X / 9)
    assert_both(feature_space(fitted(X)), euclidean(E), X, E, kernel=fitted)
    for name in ("gaussian", "linear"):
        np.testing.assert_array_equal(
            neighborhood_preservation(scipy.sparse.csr_array(X), E, kernel=name),
            neighborhood_preservation(X, E, kernel=name),
        )


@pytest.mark.parametrize("kernel", [Gaussian(sigma=1e-3), Exponential(sigma=1e-4), Spherical(1e-3)])
def test_kernel_values_of_zero(kernel):
    X, E = data(), data(d=2, seed=1)
    K = kernel.fit(X)(X)
    np.testing.assert_array_equal(K, np.eye(N))
    np.testing.assert_array_equal(neighborhood_preservation(X, X, kernel=kernel), 1)
    assert_both(euclidean(X), euclidean(E), X, E, kernel=kernel)


def test_origin_scale_and_order_of_rows_do_not_matter():
    X, E = data(), data(d=2, seed=1)
    expected = neighborhood_preservation(X, E)
    for change in (lambda Z: Z + 1e6, lambda Z: 1e-100 * Z, lambda Z: 1e100 * Z):
        np.testing.assert_array_equal(neighborhood_preservation(change(X), change(E)), expected)
    order = np.random.default_rng(2).permutation(N)
    np.testing.assert_array_equal(neighborhood_preservation(X[order], E[order]), expected)
    np.testing.assert_array_equal(coranking_matrix(X[order], E[order]), coranking_matrix(X, E))
    # twelve bits after the point, so that even the smallest scale is exact
    X = np.round(4096 * data(n=300)) / 4096
    for scale in (2.0**-1060, 2.0**-700, 2.0**-150, 2.0**300):
        np.testing.assert_array_equal(neighborhood_preservation(scale * X, X), 1)
        np.testing.assert_array_equal(neighborhood_preservation(X, scale * X), 1)


def test_near_points_keep_their_order():
    """Pairs at 1e-9, other distances of 1: differences of squares would lose them."""
    X = np.vstack([data(20), data(20) + 1e-9 * data(20, seed=5), data(20)[:5] + 3e-9])
    np.testing.assert_array_equal(
        neighborhood_preservation(X, euclidean(X), metric="precomputed"), 1
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 15), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_laws_of_the_counts(n, d, seed):
    X, E = data(n, 4, seed), data(n, d, seed + 1)
    quality, counts = neighborhood_preservation(X, E), coranking_matrix(X, E)
    np.testing.assert_array_equal(counts.sum(axis=0), n)
    np.testing.assert_array_equal(counts.sum(axis=1), n)
    corners = [counts[:k, :k].sum() / (k * n) for k in range(1, n)]
    np.testing.assert_allclose(quality, corners, rtol=1e-14)
    assert quality[-1] == 1
    assert np.all((quality >= 0) & (quality <= 1))
    swapped = coranking_matrix(E, X)
    np.testing.assert_array_equal(swapped, counts.T)


@pytest.mark.parametrize(
    "options", [{}, {"kernel": Wave(sigma=0.3)}, {"metric": "geodesic"}], ids=str
)
def test_blocks_and_threads_do_not_matter(monkeypatch, options):
    X, E = data(), data(d=2, seed=1)
    quality = neighborhood_preservation(X, E, **options)
    counts = coranking_matrix(X, E, **options)
    monkeypatch.setattr(threads, "_cores", lambda: 2)
    for elements in (1, N, 5 * N + 3, N * N):
        monkeypatch.setattr(neighborhoods, "_BLOCK_ELEMENTS", elements)
        with threadpool_limits(2, user_api="blas"):
            np.testing.assert_array_equal(neighborhood_preservation(X, E, **options), quality)
            np.testing.assert_array_equal(coranking_matrix(X, E, **options), counts)


# Ties ---------------------------------------------------------------------------------------------


def test_given_distances_that_tie_are_ranked_by_row_number():
    rng = np.random.default_rng(3)
    H, L = (np.triu(rng.integers(1, 4, size=(60, 60)), 1).astype(float) for _ in range(2))
    H, L = H + H.T, L + L.T
    K = 4 * np.eye(60) - H / 2  # a diagonal of 4: distances of 8 + H
    assert_both(H, L, K, L, kernel="precomputed", metric="precomputed")
    assert_both(H, L, DenseGram(K), L, metric="precomputed")


@pytest.mark.parametrize("levels", [2, 3, 17])
def test_distances_of_integers_that_tie_are_ranked_by_row_number(levels):
    """As the documentation says: rounding must not decide, in either space."""
    X = np.random.default_rng(0).integers(0, levels, size=(61, 8)).astype(float)
    X = np.vstack([X, X[::4]])
    for options in (
        {"embedding": 3 * X},
        {"embedding": euclidean(X), "metric": "precomputed"},
        *(
            {"embedding": X, "kernel": k}
            for k in ("linear", Gaussian(), Gaussian(1e-3), Exponential())
        ),
    ):
        np.testing.assert_array_equal(neighborhood_preservation(X, **options), 1)


# The area -----------------------------------------------------------------------------------------


def test_area_by_hand():
    """Four neighbours: R = (4 Q - κ)/(4 - κ) for κ = 1, 2, 3."""
    Q = [0.5, 0.75, 0.8, 1.0]
    R = [(2 - 1) / 3, (3 - 2) / 2, (3.2 - 3) / 1]
    expected = (R[0] + R[1] / 2 + R[2] / 3) / (1 + 1 / 2 + 1 / 3)
    assert neighborhood_area(Q) == pytest.approx(expected, rel=1e-14)
    assert neighborhood_area(Q, scale="linear") == pytest.approx(sum(R) / 3, rel=1e-14)
    assert isinstance(neighborhood_area(Q), float)


@pytest.mark.parametrize("function", [neighborhood_preservation, coranking_matrix])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"embedding": data(N - 1)}, f"one row per row of X, {N}; got {N - 1}"),
        ({"X": data(1), "embedding": data(1)}, "at least two points; got 1"),
        ({"metric": "precomputed"}, r"a matrix of distances, must be a square matrix; got shape"),
        ({"metric": "precomputed", "embedding": data(N, N)}, "a matrix of distances, must be symm"),
        ({"X": DenseGram(np.eye(N)), "kernel": "linear"}, "kernel must be None if X is a Gram"),
        ({"X": 1e200 * data()}, "so large that their squares overflow"),
    ],
)
def test_invalid_input(function, arguments, message):
    arguments = {"X": data(), "embedding": data(d=2, seed=1), **arguments}
    with pytest.raises(ValueError, match=message):
        function(arguments.pop("X"), arguments.pop("embedding"), **arguments)
