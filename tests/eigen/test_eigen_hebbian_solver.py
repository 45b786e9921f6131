"""The Kernel Hebbian Algorithm as a solver among the others."""

import numpy as np
import pytest

from laws_eigen import OPERATORS, planted
from laws_hebbian import semidefinite
from orthodrome.eigen import Hebbian, hebbian, leading
from orthodrome.gram import DenseGram

K = 4


def operator(dtype=np.float64):
    return OPERATORS["centered"](dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("gain", ["constant", "t", "et", "smd"])
def test_a_solver_is_the_function_from_a_pilot(gain, dtype):
    gram = operator(dtype)
    found = hebbian(gram, K, gain=gain, start="pilot", random_state=3)
    pairs = leading(gram, K, solver=Hebbian(gain=gain), random_state=3)
    np.testing.assert_array_equal(pairs.values, found.eigenvalues)
    np.testing.assert_array_equal(pairs.vectors, found.eigenvectors)
    np.testing.assert_array_equal(pairs.residuals, found.residuals)
    np.testing.assert_array_equal(pairs.coefficients, found.coefficients.T)
    assert pairs.solver == "hebbian"
    assert pairs.status is found.status
    assert pairs.n_iter == found.n_passes == len(pairs.history)
    assert pairs.values.dtype == pairs.vectors.dtype == pairs.coefficients.dtype == dtype


@pytest.mark.parametrize(
    ("block_size", "n", "k", "solver"),
    [
        (None, 256, 1, "dense"),
        (None, 257, 1, "hebbian"),
        (1, 100, 20, "hebbian"),
        (1, 100, 21, "dense"),
    ],
)
def test_small_problems_go_to_lapack(block_size, n, k, solver):
    heb = Hebbian(block_size=block_size, random_state=0)
    K, _ = semidefinite(1.0 / np.arange(1, n + 1) ** 2)
    assert leading(K, k, solver=heb).solver == solver
    assert heb.solve(DenseGram(K), k).solver == solver
    assert heb.for_size(n, k).name == solver


@pytest.mark.parametrize("n_given", [2, 4, 8])
def test_vectors_to_start_from(n_given):
    """Fewer than asked for are filled up, more are cut off; their lengths do not matter."""
    gram = operator()
    exact = leading(gram, 8, solver="dense")
    vectors = exact.vectors[:, :n_given]
    pairs = leading(gram, K, solver="hebbian", initial=vectors, random_state=0)
    assert pairs.converged
    np.testing.assert_allclose(pairs.values, exact.values[:K], rtol=0, atol=0.01 * pairs.values[0])
    one_pass = Hebbian(tol=0, n_passes=1, random_state=0)
    one, other = (
        leading(gram, K, initial=given, solver=one_pass) for given in (vectors, 2.0**20 * vectors)
    )
    np.testing.assert_allclose(one.values, other.values, rtol=1e-10)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        *[(np.ones(shape), r"must have shape \(300, m") for shape in ((300,), (299, 2), (4, 300))],
        (np.full((300, 2), np.nan), "contains NaN"),
    ],
)
def test_vectors_that_are_no_start_are_refused(vectors, message):
    with pytest.raises(ValueError, match=f"initial.*{message}"):
        leading(operator(), K, solver="hebbian", initial=vectors)


def test_vectors_are_orthonormal_beyond_the_rank():
    """Zeros for components, but vectors that complete the basis, as the other solvers have."""
    matrix, values, _ = planted("rank 5")
    heb = Hebbian(block_size=64, random_state=0)
    pairs = leading(matrix, 9, solver=heb)
    np.testing.assert_allclose(pairs.values, values[:9], rtol=0, atol=0.01 * values[0])
    assert not np.any(pairs.values[5:])
    assert not np.any(pairs.coefficients[:, 5:])
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(9), atol=1e-10)
    zeros = leading(np.zeros((240, 240)), 3, solver=heb)
    assert zeros.converged
    assert not np.any(zeros.values)
    np.testing.assert_allclose(zeros.vectors.T @ zeros.vectors, np.eye(3), atol=1e-10)
