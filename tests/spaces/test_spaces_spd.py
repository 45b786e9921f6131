"""Laws of symmetric positive definite matrices: logarithm, vectors, distance and mean."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse

from laws_shapes import matrices, naive_log, naive_log_distance
from orthodrome.spaces import (
    check_spd,
    log_euclidean_distance,
    log_euclidean_mean,
    spd_exp,
    spd_log,
    symmetric_matrices,
    symmetric_vectors,
)

sizes = pytest.mark.parametrize("d", [1, 2, 3, 8])
FUNCTIONS = [check_spd, spd_log, log_euclidean_mean, log_euclidean_distance]


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@sizes
def test_logarithm_and_exponential_equal_those_of_scipy(d):
    A = matrices(6, d)
    S, size = spd_log(A), np.abs(A).max(axis=(1, 2), keepdims=True)
    close(S, naive_log(A))
    expected = [scipy.linalg.expm(matrix) for matrix in S]
    np.testing.assert_allclose(spd_exp(S), expected, rtol=1e-11, atol=1e-12)
    close(spd_exp(S) / size, A / size)
    close(spd_log(spd_exp(S)), S)
    for found in (S, spd_exp(S), check_spd(A * (1 + 1e-12 * np.triu(A[0])))):
        np.testing.assert_array_equal(found, found.transpose(0, 2, 1))


@sizes
def test_vectors_keep_inner_products(d):
    A, B = spd_log(matrices(5, d)), spd_log(matrices(4, d, seed=1))
    a, b = symmetric_vectors(A), symmetric_vectors(B)
    assert a.shape == (5, d * (d + 1) // 2)
    close(a @ b.T, np.einsum("nij,mij->nm", A, B))
    close(symmetric_matrices(a), A, 1e-15)


def test_distances_equal_the_naive_ones():
    A, B = matrices(12), matrices(5, seed=1)
    expected, D = log_euclidean_distance(A, B), log_euclidean_distance(A)
    close(expected, naive_log_distance(A, B))
    close(D, naive_log_distance(A, A))
    np.testing.assert_array_equal(np.diagonal(D), 0)
    np.testing.assert_array_equal(D, D.T)


def test_the_mean_of_logarithms_and_weights_are_repetition():
    A = matrices()
    w = np.random.default_rng(0).integers(0, 4, size=10)
    mean = log_euclidean_mean(A, w)
    assert mean.shape == (3, 3)
    close(mean, log_euclidean_mean(np.repeat(A, w, axis=0)))
    close(log_euclidean_mean(A, 3.5 * w), mean)
    close(log_euclidean_mean(A[:1]), A[0])
    share = w / w.sum()
    close(spd_log(mean[None])[0], np.einsum("n,nij->ij", share, naive_log(A)))


def changed(number, value):
    A = matrices(6)
    A[number] = value
    return A


BAD = {  # for all functions of symmetric matrices
    "not symmetric": (changed(4, np.eye(3) + np.diag([0.1, 0.0], 1)), "Matrix 4 of X .* 0.1"),
    "NaN": (changed(3, np.nan), "Matrix 3 of X has entries that are NaN or infinite"),
}
INDEFINITE = {
    "not positive": (changed(2, np.diag([1.0, -1.0, 1.0])), "Matrix 2 of X is not positive def"),
    "singular": (changed(5, np.ones((3, 3))), "Matrix 5 of X is not positive definite"),
}


@pytest.mark.parametrize("name", BAD | INDEFINITE)
def test_bad_matrices_raise(name):
    A, message = (BAD | INDEFINITE)[name]
    for function in (*FUNCTIONS, *([spd_exp, symmetric_vectors] if name in BAD else [])):
        with pytest.raises(ValueError, match=message):
            function(A)


def test_other_errors():
    assert np.all(np.linalg.eigvalsh(spd_exp([np.diag([1.0, -3.0])])) > 0)
    with pytest.raises(ValueError, match="exponential of matrix 1 of X overflows"):
        spd_exp([np.eye(2), 800 * np.eye(2)])
    with pytest.raises(ValueError, match="X and Y have matrices of different sizes"):
        log_euclidean_distance(matrices(2), matrices(2, 4))
    with pytest.raises(ValueError, match="Matrix 1 of covariances is not symmetric"):
        check_spd([np.eye(2), [[1.0, 0.5], [0.0, 1.0]]], "covariances")
    with pytest.raises(TypeError, match="Sparse data was passed for X"):
        spd_log(scipy.sparse.csr_array(np.eye(3)))
