"""Laws of eigensolvers: whoever adds a solver, an operator or a spectrum adds one entry here."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from orthodrome.eigen import Dense, Eigenpairs, Hebbian, Krylov
from orthodrome.gram import Centered, DenseGram, GramOperator, Weighted
from orthodrome.gram.tiled import TiledGram
from orthodrome.kernels import Gaussian, Linear

TOL = 1e-10
DTYPES = (np.float64, np.float32)


def attainable(solver, dtype) -> float:
    """The relative residual that a solver stops at: its tolerance, or what the precision allows."""
    return max(getattr(solver, "tol", TOL), 50 * float(np.finfo(dtype).eps))


@dataclass(frozen=True)
class SolverCase:
    """How to make a solver; `restarts` asks for a basis so small that it restarts all the time."""

    make: Callable[[], object]
    restarts: bool = False
    block_size: int | None = None  # None: at least as wide as the number of pairs
    semidefinite: bool = False  # whether it takes matrices without negative eigenvalues only


SOLVERS = {
    "dense": SolverCase(Dense),
    "krylov": SolverCase(lambda: Krylov(tol=TOL, random_state=0)),
    "krylov-1": SolverCase(
        lambda: Krylov(tol=TOL, max_iter=2000, random_state=0, block_size=1), block_size=1
    ),
    "krylov-restarted": SolverCase(
        lambda: Krylov(tol=TOL, max_iter=2000, random_state=0), restarts=True
    ),
    # few digits, and small blocks, so that the matrices here are iterated on
    "hebbian": SolverCase(
        lambda: Hebbian(tol=1e-3, n_passes=200, block_size=64, random_state=0), semidefinite=True
    ),
    "hebbian-smd": SolverCase(
        lambda: Hebbian(gain="smd", tol=1e-3, n_passes=200, block_size=7, random_state=0),
        semidefinite=True,
    ),
}


N_POINTS = 300


def points(dtype, n: int = N_POINTS, d: int = 5) -> NDArray:
    """Points whose spread falls from axis to axis."""
    rng = np.random.default_rng(11)
    return (rng.standard_normal((n, d)) * np.linspace(2, 0.3, d)).astype(dtype)


def integer_weights() -> NDArray:
    return np.random.default_rng(12).integers(0, 4, size=N_POINTS).astype(float)


def _tiled(dtype, storage="memory", kernel=None) -> TiledGram:
    X = points(dtype)
    return TiledGram((kernel or Gaussian()).fit(X), X, storage)


def _weighted(gram: GramOperator) -> GramOperator:
    weights = integer_weights()
    return Weighted(Centered(gram, weights), np.sqrt(weights))


OPERATORS = {
    "dense": lambda dtype: DenseGram(_tiled(dtype).toarray()),
    "tiled": _tiled,
    "recomputed": lambda dtype: _tiled(dtype, storage="recompute"),
    "centered": lambda dtype: Centered(_tiled(dtype)),
    "weighted": lambda dtype: _weighted(_tiled(dtype)),
    "weighted linear": lambda dtype: _weighted(_tiled(dtype, kernel=Linear())),
}


def _padded(leading, n: int, tail: float = 0.0) -> NDArray:
    values = np.full(n, float(tail))
    values[: len(leading)] = leading
    return values


N_PLANTED = 240
#: All eigenvalues, descending not required; the laws sort them.
SPECTRA = {
    "fast": 2.0 ** -np.arange(N_PLANTED),
    "slow": 1.0 / (1 + np.arange(N_PLANTED)),
    "clustered": np.concatenate(
        [3 + 1e-5 * np.arange(3), 2 + 1e-5 * np.arange(3), np.linspace(1, 0, N_PLANTED - 6)]
    ),
    "tied": _padded([5, 5, 5, 5, 3, 2, 1], N_PLANTED),
    "rank 5": _padded([9, 7, 5, 3, 1], N_PLANTED),
    "zero": np.zeros(N_PLANTED),
    "identity": np.ones(N_PLANTED),
    "centred identity": _padded([], N_PLANTED, tail=1.0) - np.eye(N_PLANTED)[0],
    "large negative": np.concatenate(
        [-10.0 * np.arange(1, 21), [4, 3, 2, 1.5, 1.2, 1.1], np.linspace(1, -1, N_PLANTED - 26)]
    ),
    "all negative": -1.0 - np.arange(N_PLANTED),
    "tiny": 1e-290 * 2.0 ** -np.arange(N_PLANTED),
    "huge": 1e290 * 2.0 ** -np.arange(N_PLANTED),
}
#: Eigenvalues of higher multiplicity than a block is wide may be found too few times.
NEEDS_WIDE_BLOCK = {"tied": 4, "rank 5": 3, "centred identity": 6}


def planted(name: str, dtype=np.float64) -> tuple[NDArray, NDArray, NDArray]:
    """A symmetric matrix with the spectrum of that name, its values (descending) and vectors."""
    values = np.sort(SPECTRA[name])[::-1]
    rng = np.random.default_rng(13)
    vectors = scipy.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    matrix = (vectors * values) @ vectors.T
    return ((matrix + matrix.T) / 2).astype(dtype), values, vectors


def check_shapes(pairs: Eigenpairs, n: int, k: int, dtype) -> None:
    assert pairs.values.shape == pairs.residuals.shape == (k,)
    assert pairs.vectors.shape == (n, k)
    assert pairs.values.dtype == pairs.vectors.dtype == np.dtype(dtype)
    assert pairs.n_iter == len(pairs.history)
    assert pairs.converged


def check_values(pairs: Eigenpairs, matrix: NDArray, rtol: float) -> None:
    """Descending, and the largest ones of the matrix, relative to the largest in modulus."""
    exact = np.linalg.eigvalsh(matrix.astype(np.float64))
    scale = np.abs(exact).max()
    assert np.all(np.diff(pairs.values) <= 0)
    expected = exact[::-1][: len(pairs.values)]
    np.testing.assert_allclose(pairs.values, expected, rtol=0, atol=rtol * scale)


def check_orthonormal(pairs: Eigenpairs) -> None:
    vectors = pairs.vectors.astype(np.float64)
    gram = vectors.T @ vectors
    # each restart rotates the basis and adds its own rounding; hebbian divides by lengths squared
    # that are eigenvalues of a product, rounded as a sum of n terms is
    terms = 50 + (len(vectors) if pairs.solver == "hebbian" else pairs.n_iter)
    tolerance = terms * np.finfo(pairs.vectors.dtype).eps
    np.testing.assert_allclose(gram, np.eye(len(gram)), rtol=0, atol=tolerance)


def check_residuals(pairs: Eigenpairs, matrix: NDArray) -> None:
    """The residuals reported are the true ones, to the rounding of a product, or near them."""
    matrix = matrix.astype(np.float64)
    vectors, values = pairs.vectors.astype(np.float64), pairs.values.astype(np.float64)
    scale = max(np.abs(np.linalg.eigvalsh(matrix)).max(), np.finfo(np.float64).tiny)
    true = np.linalg.norm((matrix / scale) @ vectors - vectors * (values / scale), axis=0)
    reported = pairs.residuals.astype(np.float64) / scale
    rounding = np.finfo(pairs.values.dtype).eps * len(matrix) ** 0.5
    if pairs.solver == "dense":  # a bound, not a measurement
        assert np.all(true <= reported)
    elif pairs.solver == "hebbian":  # an estimate, from a sample of rows
        for one, other in ((true, reported), (reported, true)):
            assert one.max() <= 2 * other.max() + 10 * rounding
            assert np.all(one <= 5 * other + 10 * rounding)
    else:
        np.testing.assert_allclose(true, reported, rtol=0, atol=10 * rounding)
        # relative to the largest Ritz value, which is at most the largest eigenvalue
        assert pairs.history[-1]["max_residual"] >= 0.999 * reported.max() - rounding


def check_invariant(
    pairs: Eigenpairs, values: NDArray, vectors: NDArray, gap: float, tol: float
) -> None:
    """Each vector lies in the span of the eigenvectors within `gap` of its value (Davis-Kahan).

    Unlike an angle to a single eigenvector this also has a meaning for tied eigenvalues.
    """
    for value, vector in zip(pairs.values.astype(float), pairs.vectors.T, strict=True):
        near = vectors[:, np.abs(values - value) <= gap]
        outside = vector - near @ (near.T @ vector)
        assert np.linalg.norm(outside) <= 2 * tol * np.abs(values).max() / gap
