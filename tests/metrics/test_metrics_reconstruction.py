"""Reconstruction errors, eq. (22) of KHA, against the whole matrix."""

from types import SimpleNamespace

import numpy as np
import pytest

from orthodrome.gram import Centered, DenseGram, Weighted
from orthodrome.gram.tiled import TiledGram
from orthodrome.kernels import Gaussian
from orthodrome.metrics import excess_reconstruction_error, reconstruction_error
from orthodrome.metrics import reconstruction as module

N, R = 90, 4


def data(n=N, dtype=np.float64):
    return np.random.default_rng(3).standard_normal((n, 4)).astype(dtype)


def operator(n=N, dtype=np.float64, storage="memory"):
    X = data(n, dtype)
    return Centered(TiledGram(Gaussian(sigma=2.0).fit(X), X, storage))


def coefficients(n=N, r=R, seed=0):
    return np.random.default_rng(seed).standard_normal((r, n)) / np.sqrt(r * n)


def exact(K, r):
    """A of the r leading eigenvectors, of unit length in feature space."""
    values, vectors = np.linalg.eigh(K)
    return (vectors[:, -r:] / np.sqrt(values[-r:])).T


def naive(K, A):
    return np.linalg.norm(K - (A @ K).T @ (A @ K))


@pytest.mark.parametrize("storage", ["memory", "recompute"])
@pytest.mark.parametrize("elements", [1, 1000, 2**22])  # one row at a time, uneven blocks, all
def test_equals_the_whole_matrix(storage, elements, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_ELEMENTS", elements)
    gram = Weighted(operator(storage=storage), np.linspace(0.5, 2, N))
    K, A = gram.toarray(), coefficients()
    expected = naive(K, A)
    for given in (gram, K, K.tolist()):
        assert reconstruction_error(given, A) == pytest.approx(expected, rel=1e-12)
        known = reconstruction_error(given, A, projections=A @ K)
        assert known == pytest.approx(expected, rel=1e-12)
    assert excess_reconstruction_error(gram, A) == pytest.approx(
        expected / naive(K, exact(K, R)) - 1, rel=1e-10
    )


def test_small_errors_are_accurate():
    """The expansion ‖K‖² - 2 tr + ‖·‖² would be left with rounding of ‖K‖², 1e-8 of ‖K‖."""
    U = np.linalg.qr(np.random.default_rng(0).standard_normal((N, 3)))[0]
    K = U @ np.diag([1.0, 0.5, 1e-11]) @ U.T
    A = (U[:, :2] / np.sqrt([1.0, 0.5])).T
    assert reconstruction_error(K, A) == pytest.approx(1e-11, rel=1e-3)


@pytest.mark.parametrize("coefficient_type", [np.float32, np.float64])
def test_float32_matrices_are_summed_in_float64(coefficient_type):
    gram = operator(dtype=np.float32)
    A = coefficients().astype(coefficient_type)
    K = gram.toarray().astype(np.float64)
    expected = naive(K, A.astype(np.float64))
    known = reconstruction_error(gram, A, projections=A.astype(np.float64) @ K)
    assert known == pytest.approx(expected, rel=1e-13)
    assert reconstruction_error(gram, A) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n", [N, 1100])  # by LAPACK, by Krylov
@pytest.mark.parametrize("r", [1, R])
def test_exact_eigenvectors_have_no_excess(n, r):
    gram = operator(n)
    A = exact(gram.toarray(), r)
    assert excess_reconstruction_error(gram, A) == pytest.approx(0, abs=1e-12)
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((r, r)))[0]
    assert excess_reconstruction_error(gram, rotation @ A) == pytest.approx(0, abs=1e-12)


def test_indefinite_matrices_and_more_components_than_points():
    """(AK)ᵀAK is positive semidefinite for every A."""
    K = np.diag([3.0, 2.0, -1.0, -4.0])
    A = np.zeros((3, 4))
    A[0, 0], A[1, 1] = 3**-0.5, 2**-0.5
    assert reconstruction_error(K, A) == pytest.approx(np.sqrt(17))
    assert excess_reconstruction_error(K, A) == pytest.approx(0, abs=1e-14)
    K = np.diag([3.0, 2.0, 1.0])
    A = np.vstack([np.diag(1 / np.sqrt([3.0, 2.0, 1.0])), np.zeros((2, 3))])
    assert excess_reconstruction_error(K, A) == 0.0
    assert excess_reconstruction_error(np.zeros((3, 3)), A) == 0.0


@pytest.mark.parametrize("n", [N, 1100])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("r", [3, 4, 6])
def test_a_rank_of_at_most_r(n, offset, r):
    """The least error is rounding: 0 for what is exact, infinite for what is not."""
    X = np.random.default_rng(0).standard_normal((n, 3)) + offset
    gram = Centered(DenseGram(X @ X.T, check=False))
    values, vectors = np.linalg.eigh(gram.toarray())
    A = (vectors[:, -3:] / np.sqrt(values[-3:])).T
    A = np.vstack([A, np.zeros((r - 3, n))])
    assert excess_reconstruction_error(gram, A) == 0.0
    assert excess_reconstruction_error(gram, A, minimal=0.0) == 0.0
    for wrong in (0.9 * A, 0 * A):
        assert excess_reconstruction_error(gram, wrong) == np.inf
        assert excess_reconstruction_error(gram, wrong, minimal=0.0) == np.inf


@pytest.mark.parametrize("factor", [1e-300, 1e-170, 3.7, 1e200])
def test_every_scale_of_the_matrix_gives_the_same_excess(factor):
    """Squares of the entries would over- or underflow at most of these."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    K, A = X @ X.T, 0.1 * rng.standard_normal((2, 40))
    root = np.sqrt(factor)
    error, excess = reconstruction_error(K, A), excess_reconstruction_error(K, A)
    assert reconstruction_error(factor * K, A / root) == pytest.approx(factor * error, rel=1e-9)
    assert excess_reconstruction_error(factor * K, A / root) == pytest.approx(excess, rel=1e-9)
    least = error / (1 + excess)
    given = {"minimal": factor * least, "projections": root * (A @ K)}
    assert excess_reconstruction_error(factor * K, A / root, **given) == pytest.approx(excess)


def with_entry(value, i, j):
    K = np.eye(5)
    K[i, j] = K[j, i] = value
    return K


A = np.ones((2, 5))


@pytest.mark.parametrize("function", [reconstruction_error, excess_reconstruction_error])
@pytest.mark.parametrize(
    ("K", "coefficients", "options", "message"),
    [
        (np.eye(5), A.T, {}, r"coefficients must have .* 5; got shape \(5, 2\)"),
        (np.eye(5), A, {"projections": np.ones((3, 5))}, r"the shape .*\(2, 5\); got \(3, 5\)"),
        (np.eye(5), 1e80 * A, {}, "coefficients of the .* squares overflow"),
        (np.eye(5), A, {"projections": 1e80 * A}, "projections of the .* squares overflow"),
        (with_entry(np.nan, 3, 3), A, {"projections": A}, r"must be finite.*entry \(3, "),
        ([[1.0], [1.0, 2.0]], A, {}, r"(operator|Gram matrix) of .* must hold"),
    ],
)
def test_invalid_input(function, K, coefficients, options, message):
    with pytest.raises(ValueError, match=message):
        function(K, coefficients, **options)


def test_bad_minimum_and_nan_from_a_kernel():
    for minimal in (-1.0, np.nan, "none"):
        with pytest.raises(ValueError, match="minimal of excess_reconstruction_error must be"):
            excess_reconstruction_error(np.eye(5), A, minimal=minimal)
    # a kernel may have NaN, which is not checked before
    gram = SimpleNamespace(shape=(5, 5), rows=with_entry(np.nan, 1, 2).__getitem__)
    with pytest.raises(ValueError, match="row 1 has NaN"):
        module._residual(gram, np.zeros((1, 5)))
